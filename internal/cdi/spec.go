package cdi

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"

	"github.com/nfcomms/nfcomms/bridge"
)

// Kind is that of all devices: a runtime is asked for Kind=NAME.
const Kind = "nfcomms.dev/device"

// File is the name of the specification in its folder.
const File = "nfcomms.dev-device.json"

// version is the oldest of CDI that Debian 12 has; the keys below are older.
const version = "0.5.0"

// Spec is a specification.
type Spec struct {
	Version string   `json:"cdiVersion"`
	Kind    string   `json:"kind"`
	Devices []Device `json:"devices"`
}

// New returns the specification of devices, of which no two may have the same variable.
func New(devices []Device) (*Spec, error) {
	owner := make(map[string]string)
	for _, d := range devices {
		v := Variable(d.Name)
		if other, taken := owner[v]; taken {
			return nil, fmt.Errorf("devices %q and %q both have the variable %s: rename one: %w", other, d.Name, v, bridge.ErrInvalid)
		}
		owner[v] = d.Name
	}
	return &Spec{Version: version, Kind: Kind, Devices: append([]Device{}, devices...)}, nil
}

// Text returns the specification as JSON.
func (s *Spec) Text() []byte {
	text, err := json.MarshalIndent(s, "", "  ")
	if err != nil {
		panic(err) // it has nothing but text
	}
	return append(text, '\n')
}

// Write replaces the file of all devices in a folder, as [Spec.WriteFile] does.
func (s *Spec) Write(folder string) error { return s.WriteFile(folder, File) }

// WriteFile replaces a file in a folder, which is made if need be, as a whole: a runtime that reads
// meanwhile finds the old one or the new one. Without devices there is no file, as runtimes refuse
// a specification of none.
func (s *Spec) WriteFile(folder, file string) error {
	name := filepath.Join(folder, file)
	if len(s.Devices) == 0 {
		if err := os.Remove(name); !os.IsNotExist(err) {
			return err
		}
		return nil
	}
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return err
	}
	f, err := os.CreateTemp(folder, ".nfcomms-*") // no name that a runtime reads
	if err != nil {
		return err
	}
	defer func() { _ = os.Remove(f.Name()) }() // gone if all went well
	_, err = f.Write(s.Text())
	if err == nil {
		err = f.Chmod(0o644)
	}
	if bad := f.Close(); err == nil {
		err = bad
	}
	if err == nil {
		err = os.Rename(f.Name(), name)
	}
	return err
}
