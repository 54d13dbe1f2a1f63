package driver

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"k8s.io/apimachinery/pkg/types"

	"github.com/nfcomms/nfcomms/internal/cdi"
)

const (
	// claimKind is the kind of the devices of claims in specifications of CDI.
	claimKind = Name + "/claim"
	// claimFile begins the names of their files, one for each claim.
	claimFile = Name + "-claim_"
)

// claimDevice returns the name of a device of a claim in its specification. No other claim has it.
func claimDevice(uid types.UID, g given) string { return string(uid) + "-" + g.Device }

// specification returns the file of a claim.
func (d *driver) specification(uid types.UID) string {
	return filepath.Join(d.CDI, claimFile+string(uid)+".json")
}

// described reports whether the specification of a claim is there.
func (d *driver) described(uid types.UID) bool {
	_, err := os.Stat(d.specification(uid))
	return err == nil
}

// describe writes the specification of a claim, also one more time: its folder is empty after a start
// of the machine.
func (d *driver) describe(ctx context.Context, uid types.UID, p prepared) error {
	var list []cdi.Device
	have := make(map[string]bool)
	for _, g := range p.Devices {
		if have[g.Name] {
			continue // several parts of one device are one
		}
		one, err := d.offer(ctx, uid, p, g.Name)
		if err != nil {
			return err
		}
		one.Name, have[g.Name] = claimDevice(uid, g), true
		list = append(list, one)
	}
	s, err := cdi.New(list)
	if err != nil {
		return err
	}
	s.Kind = claimKind
	return s.WriteFile(d.CDI, filepath.Base(d.specification(uid)))
}

// sweep removes specifications of claims that are not noted.
func (d *driver) sweep() error {
	list, err := os.ReadDir(d.CDI)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	for _, f := range list {
		uid, is := strings.CutPrefix(strings.TrimSuffix(f.Name(), ".json"), claimFile)
		if _, noted := d.noted.get(types.UID(uid)); is && !noted {
			err = errors.Join(err, os.Remove(filepath.Join(d.CDI, f.Name())))
		}
	}
	return err
}
