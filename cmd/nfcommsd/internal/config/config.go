package config

import (
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"strings"
	"time"

	"github.com/nfcomms/nfcomms/pkg/control"
	"github.com/nfcomms/nfcomms/pkg/control/access"
)

// Config is the configuration of nfcommsd. Default returns one that is complete.
type Config struct {
	// Devices are the addresses to open, by name.
	Devices map[string]string
	// Auto has the daemon find the devices.
	Auto      bool
	Socket    Socket
	TCP       TCP
	HTTP      HTTP
	Roles     Roles
	Limits    Limits
	Keepalive Keepalive
	Health    Health
	Drain     Drain
	Log       Log
}

// Socket is the UNIX socket of the control plane.
type Socket struct {
	// Path is where it is; empty means none.
	Path string
	// Mode are its permissions.
	Mode fs.FileMode
	// Group owns it; empty leaves the daemon's own.
	Group string
	// MaxRole bounds the role of every caller on it.
	MaxRole string
}

// TCP is the control plane on TCP, which needs certificates on both sides.
type TCP struct {
	// Address is host:port; empty means none.
	Address string
	// Files are the certificates.
	Files access.Files
	// Reflection lets clients ask for the services.
	Reflection bool
}

// UnixPath returns the path of a UNIX socket that serves HTTP; empty if another
// kind of address does.
func (h HTTP) UnixPath() string {
	path, ok := strings.CutPrefix(h.Address, "unix:")
	if !ok {
		return ""
	}
	return path
}

// HTTP is what Prometheus and probes ask.
type HTTP struct {
	// Address is host:port, or unix:PATH; empty means none.
	Address string
	// Mode are the permissions of a UNIX socket, and Group owns it; empty leaves
	// the daemon's own.
	Mode  fs.FileMode
	Group string
	// WebConfig is a web configuration file of the Prometheus exporter toolkit:
	// TLS and basic authentication. Empty means neither.
	WebConfig string
	// Pprof adds the profiler.
	Pprof bool
	// Channels adds series of each channel.
	Channels bool
	// Trace adds histograms of layers: one call in so many is measured; 0: none.
	Trace int
	// MaxSeries bounds the series of devices and channels.
	MaxSeries int
}

// Roles lists who has which role, as access.Policy.Grant takes it.
type Roles struct{ Viewer, Operator, Admin []string }

// Limits bounds what clients can take.
type Limits struct {
	// Connections is the most open connections of each listener, and
	// AdminConnections how many more admins may have.
	Connections, AdminConnections int
	// Caller are the limits of each user and certificate.
	Caller access.Limits
	// Streams is the most concurrent calls of one connection.
	Streams int
	// MessageBytes is the largest request.
	MessageBytes int
	// Handshake is the time to finish a handshake, and for a request to arrive.
	Handshake time.Duration
}

// Keepalive finds dead connections and ends old ones. Zero ages mean never.
type Keepalive struct {
	// Time without traffic after which a client is pinged, and Timeout for its
	// answer.
	Time, Timeout time.Duration
	// MinTime is the least time between two pings of a client.
	MinTime time.Duration
	// MaxAge is how old a connection may get, and Grace how long its calls may
	// then continue.
	MaxAge, Grace time.Duration
}

// Health is how devices are looked after.
type Health struct {
	// Interval is the time between two round trips to the firmware.
	Interval time.Duration
	// Timeout bounds one.
	Timeout time.Duration
}

// Drain is what happens on SIGTERM.
type Drain struct {
	// Timeout is how long running calls may continue.
	Timeout time.Duration
}

// Log is the target of log lines: standard error, always.
type Log struct {
	Level slog.Level
	// Format is "text" or "json".
	Format string
}

// Default returns the configuration of a daemon without settings: one
// in-process device, a UNIX socket, and root and the daemon's own user as
// admins.
func Default() Config {
	return Config{
		Devices: map[string]string{"sim0": "sim:"},
		Socket:  Socket{Path: socketPath(), Mode: 0o660, MaxRole: access.Admin.String()},
		HTTP:    HTTP{Mode: 0o660, MaxSeries: 6000},
		Roles:   Roles{Admin: ownAdmins()},
		Limits: Limits{
			Connections: 1024, AdminConnections: 16,
			Caller:  access.Limits{Connections: 256, Calls: 1024, Work: 1 << 20, AllCalls: 2048},
			Streams: 1024, MessageBytes: 128 << 10, Handshake: 10 * time.Second,
		},
		Keepalive: Keepalive{
			Time: 30 * time.Second, Timeout: 10 * time.Second, MinTime: 10 * time.Second,
			MaxAge: 2 * time.Hour, Grace: 10 * time.Minute,
		},
		Health: Health{Interval: time.Second, Timeout: time.Second},
		Drain:  Drain{Timeout: 15 * time.Second},
		Log:    Log{Level: slog.LevelInfo, Format: "text"},
	}
}

// socketPath is in the runtime directory of the user, if it is a user's, else of
// the machine's service.
func socketPath() string {
	if path := control.UserSocket(); path != "" {
		return path
	}
	return strings.TrimPrefix(control.DefaultAddress, "unix://")
}

func ownAdmins() []string {
	if own := os.Geteuid(); own != 0 {
		return []string{"uid:0", fmt.Sprintf("uid:%d", own)}
	}
	return []string{"uid:0"}
}

// Policy returns the roles in the form that the authorizer takes. Names that this
// machine does not know hold no role; unknown lists them. A subject
// that makes no sense is an error.
func (l *Loaded) Policy() (p *access.Policy, unknown []error, err error) {
	p = access.NewPolicy()
	most, err := access.ParseRole(l.Socket.MaxRole)
	wrong := []error{l.Wrong("socket.max_role", err)}
	p.LimitLocal(most)
	for i, subjects := range [][]string{l.Roles.Viewer, l.Roles.Operator, l.Roles.Admin} {
		role := access.Viewer + access.Role(i)
		for _, subject := range subjects {
			err := l.Wrong("roles."+role.String(), p.Grant(role, subject))
			if errors.Is(err, access.ErrUnknownName) {
				unknown = append(unknown, err)
			} else {
				wrong = append(wrong, err)
			}
		}
	}
	return p, unknown, errors.Join(wrong...)
}
