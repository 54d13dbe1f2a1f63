package cdi

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/nfcomms/nfcomms/bridge"
)

// Device is a device as a specification has it.
type Device struct {
	// Name is that of the daemon's device.
	Name  string `json:"name"`
	Edits Edits  `json:"containerEdits"`
}

// Edits are what a runtime adds to a container.
type Edits struct {
	// Env has one variable, with the address of the device in the container.
	Env    []string `json:"env"`
	Nodes  []Node   `json:"deviceNodes,omitempty"`
	Mounts []Mount  `json:"mounts,omitempty"`
}

// Node is a device node, of the same path on the host and in the container.
type Node struct {
	Path        string `json:"path"`
	Permissions string `json:"permissions"`
}

// Mount is a bind mount, of the same path on the host and in the container.
type Mount struct {
	HostPath      string   `json:"hostPath"`
	ContainerPath string   `json:"containerPath"`
	Options       []string `json:"options"`
}

// variablePrefix begins the variables that bridge.Open reads for "env:".
const variablePrefix = "NFCOMMS_DEVICE_"

// notPlain are the characters of device names that variables do not have.
var notPlain = regexp.MustCompile(`[^A-Z0-9]`)

// Variable returns the variable of a device: NFCOMMS_DEVICE_NIC_0 of "nic-0".
func Variable(name string) string {
	return variablePrefix + notPlain.ReplaceAllString(strings.ToUpper(name), "_")
}

// node is a device node of the kernel module. No other is given to a container.
var node = regexp.MustCompile(`^/dev/nfcomms(0|[1-9][0-9]{0,5})$`)

// Describe returns what a container needs for the device that a daemon has under a name and an
// address. Sockets may lie below the folders alone: the daemon does not decide what else of the host
// a container gets. An address that no other process can open, as "sim:", is bridge.ErrNotSupported.
func Describe(name, address string, folders []string) (Device, error) {
	a, err := bridge.ParseAddress(address)
	if err != nil {
		return Device{}, err
	}
	d := Device{Name: name}
	switch a.Scheme {
	case "dev":
		err = d.card(a)
	case "shm":
		err = d.shared(a, folders)
	default:
		err = fmt.Errorf("%s: belongs to the process that opened it: %w", a.Scheme, bridge.ErrNotSupported)
	}
	return d, err
}

// card adds a device node. Options are the daemon's: with most the address would reset the device.
func (d *Device) card(a bridge.Address) error {
	path := a.Path
	if _, err := strconv.ParseUint(path, 10, 20); err == nil {
		path = "/dev/nfcomms" + path
	}
	if !node.MatchString(path) {
		return fmt.Errorf("%q is no device node /dev/nfcommsN: %w", a.Path, bridge.ErrInvalid)
	}
	d.Edits.Nodes = []Node{{Path: path, Permissions: "rw"}}
	d.give(bridge.Address{Scheme: a.Scheme, Path: path})
	return nil
}

// shared adds the mount of a socket. A folder that has the name of the device is the device's own.
// The container gets it as a whole, and so finds the socket that a restart of the device makes.
func (d *Device) shared(a bridge.Address, folders []string) error {
	path := a.Path
	if !below(path, folders) {
		return fmt.Errorf("socket %q is not below %s: %w", path, strings.Join(folders, " or "), bridge.ErrInvalid)
	}
	info, err := os.Lstat(path)
	if err != nil {
		return err
	}
	if info.Mode().Type() != fs.ModeSocket {
		return fmt.Errorf("%q is no socket: %w", path, bridge.ErrInvalid)
	}
	// A client of another user than root has to name the user of the device's process.
	if uid := ownerOf(info); uid != 0 && !a.Options.Has("user") {
		options := map[string][]string{"user": {strconv.FormatUint(uint64(uid), 10)}}
		for name, values := range a.Options {
			options[name] = values
		}
		a.Options = options
	}
	if folder := filepath.Dir(path); filepath.Base(folder) == d.Name && below(folder, folders) {
		path = folder
	}
	d.Edits.Mounts = []Mount{{HostPath: path, ContainerPath: path, Options: []string{"bind", "ro", "nosuid", "nodev", "noexec"}}}
	d.give(a)
	return nil
}

// give adds the variable.
func (d *Device) give(a bridge.Address) {
	d.Edits.Env = []string{Variable(d.Name) + "=" + a.String()}
}

// below reports whether a path, written in the one form that it has, is below a folder, and no
// folder on the way to it is a link.
func below(path string, folders []string) bool {
	return filepath.Clean(path) == path && slices.ContainsFunc(folders, func(folder string) bool {
		rest, is := strings.CutPrefix(path, strings.TrimSuffix(folder, "/")+"/")
		if !is || rest == "" {
			return false
		}
		real, err := filepath.EvalSymlinks(folder)
		if err != nil {
			return true // there is nothing, which Lstat says
		}
		found, err := filepath.EvalSymlinks(filepath.Dir(path))
		return err != nil || found == filepath.Join(real, filepath.Dir(rest))
	})
}
