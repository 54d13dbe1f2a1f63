package driver

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"

	"k8s.io/apimachinery/pkg/types"
)

// checkpointVersion is that of the file's form.
const checkpointVersion = 1

// checkpoint has the claims that are prepared, in a file that a restart of the driver reads.
type checkpoint struct {
	path string

	mu     sync.Mutex
	claims map[types.UID]prepared
}

// prepared is a claim that is.
type prepared struct {
	Namespace string  `json:"namespace"`
	Name      string  `json:"name"`
	Devices   []given `json:"devices"`
}

// given is a device, or a part of one, that a request of a claim got.
type given struct {
	Request string `json:"request"`
	// Device is its name in the slice, Name that of the daemon.
	Device string `json:"device"`
	Name   string `json:"name"`
	// Share tells parts of one device apart; empty for a whole device.
	Share types.UID `json:"share,omitempty"`
	parts
}

// file is the form of the checkpoint.
type file struct {
	Version int                    `json:"version"`
	Claims  map[types.UID]prepared `json:"claims"`
}

// openCheckpoint reads a checkpoint. Without a file no claim is prepared. A file that cannot be read
// is an error: to begin without it could give a device twice.
func openCheckpoint(path string) (*checkpoint, error) {
	c := &checkpoint{path: path, claims: make(map[types.UID]prepared)}
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return c, nil
	}
	if err != nil {
		return nil, err
	}
	var f file
	if err := json.Unmarshal(text, &f); err != nil {
		return nil, fmt.Errorf("checkpoint %s: %w: drain the node and remove the file", path, err)
	}
	if f.Version != checkpointVersion {
		return nil, fmt.Errorf("checkpoint %s has version %d, want %d: drain the node and remove the file", path, f.Version, checkpointVersion)
	}
	for uid, p := range f.Claims {
		c.claims[uid] = p
	}
	return c, nil
}

// get returns a claim that is prepared.
func (c *checkpoint) get(uid types.UID) (prepared, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	p, is := c.claims[uid]
	return p, is
}

// all returns the claims that are prepared.
func (c *checkpoint) all() map[types.UID]prepared {
	c.mu.Lock()
	defer c.mu.Unlock()
	all := make(map[types.UID]prepared, len(c.claims))
	for uid, p := range c.claims {
		all[uid] = p
	}
	return all
}

// set notes a claim, or with nil that it is not prepared any more. It returns once the file has that;
// on an error nothing changed.
func (c *checkpoint) set(uid types.UID, p *prepared) error {
	all := c.all()
	if p == nil {
		delete(all, uid)
	} else {
		all[uid] = *p
	}
	text, err := json.MarshalIndent(file{Version: checkpointVersion, Claims: all}, "", "  ")
	if err == nil {
		err = replace(c.path, append(text, '\n'))
	}
	if err != nil {
		return fmt.Errorf("checkpoint: %w", err)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.claims = all
	return nil
}

// replace replaces a file as a whole, also if the machine stops meanwhile.
func replace(path string, text []byte) error {
	f, err := os.CreateTemp(filepath.Dir(path), ".checkpoint-*")
	if err != nil {
		return err
	}
	defer func() { _ = os.Remove(f.Name()) }() // gone if all went well
	_, err = f.Write(text)
	err = errors.Join(err, f.Sync())
	if err = errors.Join(err, f.Close()); err != nil {
		return err
	}
	if err := os.Rename(f.Name(), path); err != nil {
		return err
	}
	folder, err := os.Open(filepath.Dir(path))
	if err != nil {
		return err
	}
	return errors.Join(folder.Sync(), folder.Close())
}
