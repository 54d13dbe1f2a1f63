package access

import (
	"fmt"
	"strings"
)

// Role is what a caller may do. Each role may do what the ones before it may.
type Role int

const (
	// None may do nothing.
	None Role = iota
	// Viewer may look: lists, states, events, diagnostics, health.
	Viewer
	// Operator may also use devices: open channels, send and receive
	// messages, start and stop the programs that are there, drain a device.
	Operator
	// Admin may also do what ends the work of others or brings in code: reset
	// a device, load a program, reach registers past the driver.
	Admin
)

var roleNames = [...]string{"none", "viewer", "operator", "admin"}

// String returns the role's name in lower case.
func (r Role) String() string {
	if r < None || r > Admin {
		return fmt.Sprintf("role(%d)", int(r))
	}
	return roleNames[r]
}

// ParseRole returns the role of a name as String gives it, "none" excluded.
func ParseRole(name string) (Role, error) {
	for r := Viewer; r <= Admin; r++ {
		if r.String() == name {
			return r, nil
		}
	}
	return None, fmt.Errorf("role %q is not one of %s", name, strings.Join(roleNames[Viewer:], ", "))
}
