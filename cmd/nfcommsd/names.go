package main

import (
	"time"

	"github.com/nfcomms/nfcomms/pkg/control/access"
)

// namesAgain is the time between two searches for users and groups that hold a role
// and that this machine did not know: a directory service may start later than
// the daemon, and a user may be made later than the configuration.
const namesAgain = 10 * time.Second

// setPolicy puts roles in force. unknown lists the names that hold none for now.
func (d *daemon) setPolicy(p *access.Policy, unknown []error) {
	for _, err := range unknown {
		d.log.Warn("a role without its holder until the name is known", "error", err)
	}
	d.unknown = len(unknown)
	d.authorizer.SetPolicy(p)
}

// lookAgain looks unknown names up again.
func (d *daemon) lookAgain() {
	if d.unknown == 0 {
		return
	}
	policy, unknown, err := d.conf.Policy()
	if err == nil && len(unknown) < d.unknown {
		d.log.Info("names of roles are known now", "known", d.unknown-len(unknown), "unknown", len(unknown))
		d.setPolicy(policy, unknown)
	}
}
