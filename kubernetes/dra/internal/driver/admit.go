package driver

import (
	"context"
	"errors"
	"fmt"
	"slices"

	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/types"
)

// admit checks what the scheduler allocated against the devices that there are and the claims that
// have them: nothing is given twice, whatever the API server holds.
func (d *driver) admit(ctx context.Context, c *resourceapi.ResourceClaim) (prepared, error) {
	p := prepared{Namespace: c.Namespace, Name: c.Name}
	for _, config := range c.Status.Allocation.Devices.Config {
		if config.Opaque != nil && config.Opaque.Driver == Name {
			return p, errors.New("the claim or its class has parameters of " + Name + ", which knows none")
		}
	}
	there, _ := d.sources(ctx)
	for _, r := range c.Status.Allocation.Devices.Results {
		if r.Driver != Name {
			continue
		}
		i := slices.IndexFunc(there, func(one source) bool { return label(one.Name) == r.Device })
		switch {
		case r.Pool != d.Node:
			return p, fmt.Errorf("device %q is of node %q, this is %q", r.Device, r.Pool, d.Node)
		case r.AdminAccess != nil && *r.AdminAccess:
			return p, fmt.Errorf("device %q: access of an administrator is not offered", r.Device)
		case i < 0:
			return p, fmt.Errorf("device %q is not there", r.Device)
		case !there[i].Healthy:
			return p, fmt.Errorf("device %q is not healthy", r.Device)
		}
		g := given{Request: r.Request, Device: r.Device, Name: there[i].Name}
		if there[i].Shares > 0 && r.ShareID != nil {
			g.Share, g.parts = *r.ShareID, there[i].taken(r)
		}
		p.Devices = append(p.Devices, g)
		if err := d.fits(c.UID, p, there[i]); err != nil {
			return p, err
		}
	}
	return p, nil
}

// fits checks that a device has room for all that claims have of it, with one more that is p.
func (d *driver) fits(uid types.UID, p prepared, device source) error {
	all := d.noted.all()
	all[uid] = p
	var taken []parts
	whole, others := device.Shares == 0, ""
	for other, q := range all {
		for _, g := range q.Devices {
			if g.Name != device.Name {
				continue
			}
			taken = append(taken, g.parts)
			if other != uid {
				others = fmt.Sprintf(", as claim %s/%s has it", q.Namespace, q.Name)
			}
			whole = whole || g.Share == ""
		}
	}
	if whole && len(taken) > 1 {
		return fmt.Errorf("device %q is given as a whole and cannot be given twice%s", device.Name, others)
	}
	if device.Shares == 0 {
		return nil
	}
	return device.room(taken, others)
}
