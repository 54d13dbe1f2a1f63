package driver

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/dynamic-resource-allocation/kubeletplugin"
)

// PrepareResourceClaims prepares claims. The helper calls it once at a time, and again for claims that
// are prepared, after a restart of the kubelet.
func (d *driver) PrepareResourceClaims(ctx context.Context, claims []*resourceapi.ResourceClaim) (map[types.UID]kubeletplugin.PrepareResult, error) {
	d.sharing.Lock()
	defer d.sharing.Unlock()
	results := make(map[types.UID]kubeletplugin.PrepareResult)
	for _, c := range claims {
		devices, err := d.prepare(ctx, c)
		if err != nil {
			d.Log.Warn("claim is not prepared", "claim", c.Namespace+"/"+c.Name, "reason", err)
		}
		results[c.UID] = kubeletplugin.PrepareResult{Devices: devices, Err: err}
	}
	return results, nil
}

// prepare notes what a claim got, then describes it to runtimes. A claim that is noted keeps its
// devices, whatever they are now, as its containers may run.
func (d *driver) prepare(ctx context.Context, c *resourceapi.ResourceClaim) ([]kubeletplugin.Device, error) {
	p, again := d.noted.get(c.UID)
	if !again {
		var err error
		if p, err = d.admit(ctx, c); err != nil {
			return nil, err
		}
		if err := d.clear(ctx, p); err != nil {
			return nil, err
		}
		if err := d.noted.set(c.UID, &p); err != nil {
			return nil, err
		}
		d.Log.Info("prepared", "claim", c.Namespace+"/"+c.Name, "devices", len(p.Devices))
	}
	if err := d.describe(ctx, c.UID, p); err != nil && (!again || !d.described(c.UID)) {
		return nil, err
	}
	var list []kubeletplugin.Device
	for _, g := range p.Devices {
		one := kubeletplugin.Device{Requests: []string{g.Request}, PoolName: d.Node, DeviceName: g.Device, CDIDeviceIDs: []string{claimKind + "=" + claimDevice(c.UID, g)}}
		if g.Share != "" {
			one.ShareID = &g.Share
		}
		list = append(list, one)
	}
	return list, nil
}

// clear resets devices that a claim gets as a whole, so that it finds nothing of the claim before.
func (d *driver) clear(ctx context.Context, p prepared) error {
	for _, g := range p.Devices {
		if !d.Reset || g.Share != "" {
			continue
		}
		if err := d.devices.Reset(ctx, g.Name); err != nil {
			return fmt.Errorf("reset device %q: %w", g.Name, err)
		}
		d.Log.Info("reset for a claim", "device", g.Name, "claim", p.Namespace+"/"+p.Name)
	}
	return nil
}

// UnprepareResourceClaims forgets claims, also those that are not prepared.
func (d *driver) UnprepareResourceClaims(ctx context.Context, claims []kubeletplugin.NamespacedObject) (map[types.UID]error, error) {
	d.sharing.Lock()
	defer d.sharing.Unlock()
	results := make(map[types.UID]error)
	for _, c := range claims {
		err := d.unprepare(ctx, c.UID)
		if err != nil {
			d.Log.Warn("claim is not given back", "claim", c.String(), "reason", err)
		}
		results[c.UID] = err
	}
	return results, nil
}

// unprepare removes the specification and the shares first: the note is what asks for them to be removed.
func (d *driver) unprepare(ctx context.Context, uid types.UID) error {
	if filepath.Base(string(uid)) != string(uid) {
		return fmt.Errorf("%q is no uid", uid)
	}
	if d.described(uid) {
		if err := os.Remove(d.specification(uid)); err != nil {
			return err
		}
	}
	p, is := d.noted.get(uid)
	if !is {
		return nil
	}
	if err := d.endShares(ctx, uid, p); err != nil {
		return err
	}
	return d.noted.set(uid, nil)
}
