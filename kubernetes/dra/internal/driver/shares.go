package driver

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"strings"

	"k8s.io/apimachinery/pkg/types"

	"github.com/nfcomms/nfcomms/bridge"
	"github.com/nfcomms/nfcomms/internal/cdi"
	"github.com/nfcomms/nfcomms/internal/shmwire"
)

// sharer makes shares of devices, and ends them: it is [shmwire], but for tests.
type sharer struct {
	open  func(ctx context.Context, device, path string, mode os.FileMode, l shmwire.Limits) error
	close func(ctx context.Context, path string) error
}

// shares returns the folder of all shares. Paths of sockets are short, so its name is.
func (d *driver) shares() string { return filepath.Join(d.State, "s") }

// share returns the folder of a claim's share of a device.
func (d *driver) share(uid types.UID, device string) string {
	sum := sha256.Sum256([]byte(string(uid) + "/" + device))
	return filepath.Join(d.shares(), hex.EncodeToString(sum[:8]))
}

// limits are those of all parts of a device that a claim has; false if it was prepared without.
func (p prepared) limits(device string) (shmwire.Limits, bool) {
	var sum parts
	for _, g := range p.Devices {
		if g.Name == device {
			sum.Clients += g.Clients
			sum.Channels += g.Channels
			sum.Processes += g.Processes
			sum.Memory += g.Memory
		}
	}
	return shmwire.Limits{
		Clients: uint16(min(sum.Clients, math.MaxUint16)), Processes: uint16(min(sum.Processes, math.MaxUint16)),
		Channels: uint32(min(sum.Channels, math.MaxUint32)), Memory: uint64(sum.Memory),
	}, sum.Memory > 0
}

// offer returns what containers of a claim need for a device. Of one that enforces limits they get the
// socket of a share alone, in a folder that stays when a restart of the device makes another.
func (d *driver) offer(ctx context.Context, uid types.UID, p prepared, name string) (cdi.Device, error) {
	one, err := d.devices.Describe(name)
	limits, limited := p.limits(name)
	if err != nil || !limited {
		return one, err
	}
	_, address, _ := strings.Cut(one.Edits.Env[0], "=")
	device, err := bridge.ParseAddress(address)
	if err != nil {
		return one, err
	}
	folder := filepath.Join(d.share(uid, name), name) // named as the device, a container gets it as a whole
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return one, err
	}
	socket := filepath.Join(folder, "s")
	// Any user of the containers may use it; others of the machine do not reach the driver's folder.
	if err := d.sharer.open(ctx, device.Path, socket, 0o666, limits); err != nil {
		return one, err
	}
	return cdi.Describe(name, (&bridge.Address{Scheme: "shm", Path: socket}).String(), []string{d.shares()})
}

// restore makes shares again whose device process has started anew.
func (d *driver) restore(ctx context.Context) {
	d.sharing.Lock()
	defer d.sharing.Unlock()
	list, _ := d.devices.List()
	for _, one := range list {
		for uid, p := range d.noted.all() {
			if _, limited := p.limits(one.Name); !limited || !one.Healthy {
				continue
			}
			if _, err := d.offer(ctx, uid, p, one.Name); err != nil {
				d.Log.Warn("share is not made", "device", one.Name, "claim", p.Namespace+"/"+p.Name, "reason", err)
			}
		}
	}
}

// endShares ends the shares of a claim, and the clients that still have them.
func (d *driver) endShares(ctx context.Context, uid types.UID, p prepared) error {
	for _, g := range p.Devices {
		if err := d.endShare(ctx, d.share(uid, g.Name)); err != nil {
			return err
		}
	}
	return nil
}

// endShare ends the share of a folder, and removes that.
func (d *driver) endShare(ctx context.Context, folder string) error {
	sockets, err := filepath.Glob(filepath.Join(folder, "*", "s"))
	for _, path := range sockets {
		err = errors.Join(err, d.sharer.close(ctx, path))
	}
	if err != nil {
		return err
	}
	return os.RemoveAll(folder)
}

// sweepShares ends shares of claims that are not noted.
func (d *driver) sweepShares(ctx context.Context) error {
	noted := make(map[string]bool)
	for uid, p := range d.noted.all() {
		for _, g := range p.Devices {
			noted[d.share(uid, g.Name)] = true
		}
	}
	list, err := os.ReadDir(d.shares())
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	for _, f := range list {
		if folder := filepath.Join(d.shares(), f.Name()); !noted[folder] {
			err = errors.Join(err, d.endShare(ctx, folder))
		}
	}
	return err
}
