package config

import (
	"fmt"
	"io/fs"
	"log/slog"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/nfcomms/nfcomms/pkg/nfcomms/trace"
)

// setting is one row of the table.
type setting struct {
	key, help string
	kind      string // of the value, for the help
	form      form
	get       func() []string
	set       func([]string) error
}

// form is how a setting looks in YAML.
type form int

const (
	scalar form = iota
	list        // a sequence
	pairs       // a mapping of names to values; elsewhere NAME=VALUE
)

// flag and env return the other two names of a setting.
func (s *setting) flag() string { return strings.NewReplacer(".", "-", "_", "-").Replace(s.key) }
func (s *setting) env() string {
	return "NFCOMMSD_" + strings.ToUpper(strings.ReplaceAll(s.key, ".", "_"))
}

// settings is the table, over one configuration.
func (c *Config) settings() []*setting {
	return []*setting{
		mapping("devices", "devices to open, NAME=ADDRESS; or auto: each card of this machine", &c.Devices, &c.Auto),
		text("socket.path", "UNIX socket of the control plane; empty for none", &c.Socket.Path),
		mode("socket.mode", "permissions of the socket", &c.Socket.Mode),
		text("socket.group", "group of the socket; empty for the daemon's own", &c.Socket.Group),
		choice("socket.max_role", &c.Socket.MaxRole, "viewer", "operator", "admin"),
		text("tcp.address", "host:port of the control plane with mutual TLS; empty for none", &c.TCP.Address),
		text("tcp.certificate", "PEM file: the server's certificate and its intermediates", &c.TCP.Files.Certificate),
		text("tcp.key", "PEM file: the certificate's key", &c.TCP.Files.Key),
		text("tcp.client_ca", "PEM file: authorities of client certificates", &c.TCP.Files.ClientCA),
		text("tcp.client_crl", "PEM file: certificates that they revoked; empty for none", &c.TCP.Files.ClientCRL),
		boolean("tcp.reflection", "let TCP clients ask for the services", &c.TCP.Reflection),
		text("http.address", "host:port, or unix:PATH, of /metrics, /healthz and /readyz; empty for none", &c.HTTP.Address),
		mode("http.mode", "permissions of that socket", &c.HTTP.Mode),
		text("http.group", "group of that socket; empty for the daemon's own", &c.HTTP.Group),
		text("http.web_config", "web configuration file of the Prometheus exporter toolkit", &c.HTTP.WebConfig),
		boolean("http.pprof", "serve /debug/pprof/", &c.HTTP.Pprof),
		boolean("http.channels", "metrics of each channel", &c.HTTP.Channels),
		number("http.trace", "one call in so many is measured layer by layer, for metrics; 0 for none", &c.HTTP.Trace, 0, trace.MaxEvery),
		number("http.max_series", "series of devices and channels; what is beyond is added up", &c.HTTP.MaxSeries, 1, 1<<20),
		texts("roles.viewer", "who may look: user:, uid:, group:, gid:, uri:, cn:", &c.Roles.Viewer),
		texts("roles.operator", "who may use devices as well", &c.Roles.Operator),
		texts("roles.admin", "who may reset devices and load programs as well", &c.Roles.Admin),
		number("limits.connections", "open connections of each listener", &c.Limits.Connections, 1, 1<<20),
		number("limits.admin_connections", "connections kept for admins when all others are taken", &c.Limits.AdminConnections, 0, 1<<20),
		number("limits.calls", "calls under way of all callers of a listener but admins; one may have as many as are free", &c.Limits.Caller.AllCalls, 1, 1<<20),
		number("limits.caller_connections", "of them by one user or certificate", &c.Limits.Caller.Connections, 1, 1<<20),
		number("limits.caller_calls", "calls under way of one user or certificate", &c.Limits.Caller.Calls, 1, 1<<20),
		number("limits.caller_work", "bytes a second of one user or certificate; a call counts as 1024, a streamed message as 128", &c.Limits.Caller.Work, 1<<12, 1<<30),
		number("limits.streams", "concurrent calls of one connection", &c.Limits.Streams, 1, 1<<20),
		number("limits.message_bytes", "size of a request", &c.Limits.MessageBytes, 4096, 1<<30),
		duration("limits.handshake", "time to finish a handshake, and for a request to arrive", &c.Limits.Handshake, 100*time.Millisecond),
		duration("keepalive.time", "silence after which a client is pinged", &c.Keepalive.Time, time.Second),
		duration("keepalive.timeout", "time for its answer", &c.Keepalive.Timeout, 100*time.Millisecond),
		duration("keepalive.min_time", "least time between two pings of a client", &c.Keepalive.MinTime, time.Millisecond),
		duration("keepalive.max_age", "age at which a connection ends; 0 for never", &c.Keepalive.MaxAge, 0),
		duration("keepalive.grace", "time for its calls then", &c.Keepalive.Grace, 0),
		duration("health.interval", "time between two round trips to the firmware", &c.Health.Interval, 10*time.Millisecond),
		duration("health.timeout", "time for one", &c.Health.Timeout, 10*time.Millisecond),
		duration("drain.timeout", "time for running calls on SIGTERM", &c.Drain.Timeout, 0),
		level("log.level", "debug, info, warn or error", &c.Log.Level),
		choice("log.format", &c.Log.Format, "text", "json"),
	}
}

// one makes a scalar setting.
func one(key, help, kind string, get func() string, set func(string) error) *setting {
	return &setting{key: key, help: help, kind: kind, get: func() []string { return []string{get()} },
		set: func(v []string) error { return set(v[len(v)-1]) }}
}

func text(key, help string, p *string) *setting {
	return one(key, help, "string", func() string { return *p }, func(v string) error {
		*p = v
		return nil
	})
}

func choice(key string, p *string, of ...string) *setting {
	help := strings.Join(of, " or ")
	return one(key, help, "string", func() string { return *p }, func(v string) error {
		if !slices.Contains(of, v) {
			return fmt.Errorf("%q is not %s", v, help)
		}
		*p = v
		return nil
	})
}

func boolean(key, help string, p *bool) *setting {
	return one(key, help, "bool", func() string { return strconv.FormatBool(*p) }, func(v string) error {
		if v != "true" && v != "false" {
			return fmt.Errorf("%q is not true or false", v)
		}
		*p = v == "true"
		return nil
	})
}

func number(key, help string, p *int, least, most int) *setting {
	return one(key, help, "int", func() string { return strconv.Itoa(*p) }, func(v string) error {
		n, err := strconv.Atoi(v)
		if err != nil || n < least || n > most {
			return fmt.Errorf("%q is not a number from %d to %d", v, least, most)
		}
		*p = n
		return nil
	})
}

func duration(key, help string, p *time.Duration, least time.Duration) *setting {
	return one(key, help, "duration", func() string { return p.String() }, func(v string) error {
		d, err := time.ParseDuration(v)
		if err != nil || d < least || d > math.MaxInt64/4 {
			return fmt.Errorf("%q is not a time of at least %v, such as \"90s\"", v, least)
		}
		*p = d
		return nil
	})
}

func mode(key, help string, p *fs.FileMode) *setting {
	return one(key, help, "octal", func() string { return fmt.Sprintf("%#o", uint32(*p)) }, func(v string) error {
		n, err := strconv.ParseUint(strings.TrimPrefix(v, "0o"), 8, 32)
		if err != nil || n&^0o777 != 0 {
			return fmt.Errorf("%q is not an octal mode such as 0660", v)
		}
		*p = fs.FileMode(n)
		return nil
	})
}

func level(key, help string, p *slog.Level) *setting {
	return one(key, help, "string", func() string { return strings.ToLower(p.String()) }, func(v string) error {
		if err := p.UnmarshalText([]byte(v)); err != nil {
			return fmt.Errorf("%q is not %s", v, help)
		}
		return nil
	})
}

// texts makes a list of strings.
func texts(key, help string, p *[]string) *setting {
	return &setting{key: key, help: help, kind: "list", form: list,
		get: func() []string { return *p },
		set: func(v []string) error {
			*p = append([]string(nil), v...)
			return nil
		}}
}

// auto stands in place of names and values that are found.
const auto = "auto"

// mapping makes a setting of names and values, each once, or of auto alone.
func mapping(key, help string, p *map[string]string, found *bool) *setting {
	return &setting{key: key, help: help, kind: "list", form: pairs,
		get: func() []string {
			if *found {
				return []string{auto}
			}
			var all []string
			for _, name := range slices.Sorted(maps.Keys(*p)) {
				all = append(all, name+"="+(*p)[name])
			}
			return all
		},
		set: func(v []string) error {
			*found = slices.Equal(v, []string{auto})
			m := make(map[string]string, len(v))
			for _, pair := range v {
				name, value, ok := strings.Cut(pair, "=")
				if _, dup := m[name]; !*found && (!ok || name == "" || dup) {
					return fmt.Errorf("%q is not NAME=VALUE with a name of its own", pair)
				}
				m[name] = value
			}
			if *found {
				clear(m)
			}
			*p = m
			return nil
		}}
}
