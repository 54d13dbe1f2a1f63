package config

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/pflag"
	"github.com/stretchr/testify/require"

	"github.com/nfcomms/nfcomms/pkg/control/access"
)

// load puts a configuration together from a file's text, an environment and a
// command line.
func load(t *testing.T, text string, environ, args []string) (*Loaded, error) {
	t.Helper()
	set := pflag.NewFlagSet("test", pflag.ContinueOnError)
	f := AddFlags(set)
	if text != "" {
		name := filepath.Join(t.TempDir(), "c.yaml")
		require.NoError(t, os.WriteFile(name, []byte(text), 0o600))
		args = append(args, "--config", name)
	}
	require.NoError(t, set.Parse(args))
	return f.Load(environ)
}

func TestDefaultIsTheTable(t *testing.T) {
	l, err := load(t, "", nil, nil)
	require.NoError(t, err)
	require.Equal(t, Default(), l.Config)
	require.Equal(t, map[string]string{"sim0": "sim:"}, l.Devices)
}

// TestEverySetting gives each setting another value from each source, alone and
// against the weaker ones.
func TestEverySetting(t *testing.T) {
	other := func(s *setting, i int) string { // a value that is not the default
		switch s.kind {
		case "list":
			return fmt.Sprintf("x%d=sim:?managers=%d", i, i+2)
		case "bool":
			return map[bool]string{true: "true", false: "false"}[s.get()[0] == "false"]
		case "int":
			return fmt.Sprint(5000 + i)
		case "duration":
			return fmt.Sprintf("1h%dm0s", i+1)
		case "octal":
			return fmt.Sprintf("0%o", 0o600+i)
		}
		switch s.key {
		case "log.level":
			return []string{"debug", "warn", "error"}[i]
		case "log.format":
			return "json"
		case "socket.max_role":
			return []string{"operator", "viewer", "operator"}[i]
		}
		return fmt.Sprintf("/x/%d", i)
	}
	yaml := func(s *setting, v string) string {
		section, name, nested := strings.Cut(s.key, ".")
		switch s.form {
		case list:
			v = "[\"" + v + "\"]"
		case pairs:
			n, a, _ := strings.Cut(v, "=")
			v = "{" + n + ": \"" + a + "\"}"
		}
		if !nested {
			return section + ": " + v
		}
		return section + ":\n  " + name + ": " + v
	}
	find := func(l *Loaded, key string) *setting {
		for _, s := range l.settings() {
			if s.key == key {
				return s
			}
		}
		return nil
	}
	c := Default()
	for _, s := range c.settings() {
		file := yaml(s, other(s, 0))
		env := []string{s.env() + "=" + other(s, 1)}
		flag := []string{"--" + s.flag() + "=" + other(s, 2)}
		for i, from := range []struct {
			file        string
			env, flag   []string
			source      string
			description string
		}{
			{file, nil, nil, "c.yaml:", "file"},
			{file, env, nil, "environment " + s.env(), "environment over file"},
			{file, env, flag, "flag --" + s.flag(), "flag over environment over file"},
		} {
			l, err := load(t, from.file, from.env, from.flag)
			require.NoError(t, err, "%s from %s", s.key, from.description)
			require.Equal(t, []string{other(s, i)}, find(l, s.key).get(), "%s from %s", s.key, from.description)
			require.Contains(t, l.from[s.key], from.source)
		}
	}
}

// TestAuto: devices are found, or named, and a file that is printed says which.
func TestAuto(t *testing.T) {
	for _, source := range []struct{ file, env, flag string }{{"devices: auto", "", ""}, {"devices: {a: \"sim:\"}", "auto", ""}, {"", "b=sim:", "auto"}} {
		var env, flags []string
		if source.env != "" {
			env = []string{"NFCOMMSD_DEVICES=" + source.env}
		}
		if source.flag != "" {
			flags = []string{"--devices", source.flag}
		}
		l, err := load(t, source.file, env, flags)
		require.NoError(t, err)
		require.True(t, l.Auto)
		require.Empty(t, l.Devices)
		text, err := l.YAML()
		require.NoError(t, err)
		again, err := load(t, string(text), nil, nil)
		require.NoError(t, err)
		require.True(t, again.Auto)
	}
	l, err := load(t, "devices: auto", []string{"NFCOMMSD_DEVICES=a=sim:"}, nil)
	require.NoError(t, err)
	require.False(t, l.Auto)
	require.Equal(t, map[string]string{"a": "sim:"}, l.Devices)
	_, err = load(t, "devices: automatic", nil, nil)
	require.ErrorContains(t, err, "devices wants names with values")
	_, err = load(t, "", nil, []string{"--devices", "auto,a=sim:"})
	require.ErrorContains(t, err, `"auto" is not NAME=VALUE`)
}

func TestLists(t *testing.T) {
	l, err := load(t, "roles:\n  viewer: [uid:1, uid:2]\n  operator: []\n", []string{"NFCOMMSD_ROLES_ADMIN=uid:3, uid:4,"},
		[]string{"--devices", "a=sim:,b=sim:?managers=2", "--devices", "c=sim:"})
	require.NoError(t, err)
	require.Equal(t, []string{"uid:1", "uid:2"}, l.Roles.Viewer)
	require.Empty(t, l.Roles.Operator)
	require.Equal(t, []string{"uid:3", "uid:4"}, l.Roles.Admin)
	require.Equal(t, map[string]string{"a": "sim:", "b": "sim:?managers=2", "c": "sim:"}, l.Devices)

	l, err = load(t, "roles:\n  viewer: [uid:1, uid:2]\n", []string{"NFCOMMSD_ROLES_VIEWER=", "NFCOMMSD_DEVICES="}, nil)
	require.NoError(t, err)
	require.Empty(t, l.Roles.Viewer, "an empty list is a list")
	require.Empty(t, l.Devices)
}

// TestRefuses: each mistake is one line that says where it is.
func TestRefuses(t *testing.T) {
	for _, c := range []struct {
		name, file string
		env, args  []string
		want       string
	}{
		{"an unknown key", "socket:\n  path: /x\n  mod: 0600\n", nil, nil, `c.yaml:3: unknown key "socket.mod"`},
		{"an unknown section", "log:\n  level: info\nsockets:\n  path: /x\n", nil, nil, `c.yaml:3: unknown key "sockets"`},
		{"a key twice", "log:\n  level: info\n  level: debug\n", nil, nil, `c.yaml:3: "log.level" is there already, in line 2`},
		{"a section twice", "log:\n  level: info\nlog:\n  level: debug\n", nil, nil, `c.yaml:3: "log" is there already`},
		{"a value for a section", "log: info\n", nil, nil, "c.yaml:1: log holds settings by name, not a value"},
		{"a list for a value", "log:\n  level: [info]\n", nil, nil, "c.yaml:2: log.level wants a value, not a list"},
		{"a value for a list", "roles:\n  admin: uid:0\n", nil, nil, "c.yaml:2: roles.admin wants a list, not a value"},
		{"a list of lists", "roles:\n  admin: [[uid:0]]\n", nil, nil, "c.yaml:2: roles.admin wants a list of values, not a list"},
		{"a list for names", "devices: [\"sim:\"]\n", nil, nil, "c.yaml:1: devices wants names with values, not a list"},
		{"a name without a value", "devices:\n  a:\n", nil, nil, "c.yaml:2: devices wants a value for each name"},
		{"nothing", "log:\n  level:\n", nil, nil, "c.yaml:2: log.level wants a value, not nothing"},
		{"an alias", "log: &x\n  level: info\nsocket: *x\n", nil, nil, "c.yaml:3: socket holds settings by name, not an alias"},
		{"two documents", "log:\n  level: info\n---\nlog:\n  level: info\n", nil, nil, "one document is all it may hold"},
		{"no YAML", "a: b: c\n", nil, nil, "c.yaml: yaml: "},
		{"a trace of no call", "http:\n  trace: -1\n", nil, nil, `c.yaml:2: http.trace: "-1" is not a number from 0 to`},
		{"a bad number", "limits:\n  streams: many\n", nil, nil, `c.yaml:2: limits.streams: "many" is not a number from 1 to`},
		{"a number out of range", "limits:\n  streams: 0\n", nil, nil, `"0" is not a number from 1`},
		{"a bad time", "drain:\n  timeout: 10\n", nil, nil, `"10" is not a time of at least 0s`},
		{"a negative time", "", nil, []string{"--drain-timeout=-1s"}, `flag --drain-timeout: drain.timeout: "-1s"`},
		{"a time too short", "health:\n  interval: 1ms\n", nil, nil, `"1ms" is not a time of at least 10ms`},
		{"pings without a pause", "", nil, []string{"--keepalive-min-time=0"}, `"0" is not a time of at least 1ms`},
		{"a bad mode", "socket:\n  mode: 0680\n", nil, nil, `"0680" is not an octal mode`},
		{"a mode with set-uid", "socket:\n  mode: 04660\n", nil, nil, `"04660" is not an octal mode`},
		{"a bad truth", "http:\n  pprof: yes\n", nil, nil, `"yes" is not true or false`},
		{"a bad level", "log:\n  level: loud\n", nil, nil, `"loud" is not debug, info, warn or error`},
		{"a bad format", "", []string{"NFCOMMSD_LOG_FORMAT=xml"}, nil, `environment NFCOMMSD_LOG_FORMAT: log.format: "xml" is not text or json`},
		{"an unknown variable", "", []string{"NFCOMMSD_LOG_LEVL=info"}, nil, "unknown variable NFCOMMSD_LOG_LEVL"},
		{"a device without a name", "", nil, []string{"--devices", "sim:"}, `"sim:" is not NAME=VALUE`},
		{"a device twice", "", nil, []string{"--devices", "a=sim:,a=sim:"}, `"a=sim:" is not NAME=VALUE with a name of its own`},
		{"a missing file", "", []string{"NFCOMMSD_CONFIG=/nowhere/c.yaml"}, nil, "open /nowhere/c.yaml"},
	} {
		_, err := load(t, c.file, c.env, c.args)
		require.ErrorContains(t, err, c.want, c.name)
		require.NotContains(t, err.Error(), "\n", "%s: one line", c.name)
	}
	_, err := load(t, "a: 1\nlog:\n  b: 2\n  level: x\n", []string{"NFCOMMSD_X=1"}, nil)
	require.Len(t, strings.Split(err.Error(), "\n"), 4, "all that is wrong at once: %v", err)
}

// TestKubernetes: what Kubernetes sets beside a service called nfcommsd is no
// setting, and no mistake.
func TestKubernetes(t *testing.T) {
	env := []string{
		"NFCOMMSD_SERVICE_HOST=10.0.0.1", "NFCOMMSD_SERVICE_PORT=7450", "NFCOMMSD_SERVICE_PORT_GRPC=7450", "NFCOMMSD_PORT=tcp://10.0.0.1:7450",
		"NFCOMMSD_PORT_7450_TCP=tcp://10.0.0.1:7450", "NFCOMMSD_PORT_7450_TCP_PROTO=tcp", "NFCOMMSD_PORT_7450_TCP_PORT=7450",
		"NFCOMMSD_PORT_7450_TCP_ADDR=10.0.0.1", "NFCOMMSD_METRICS_SERVICE_HOST=10.0.0.2", "NFCOMMSD_METRICS_PORT_7451_TCP=tcp://10.0.0.2:7451",
	}
	l, err := load(t, "", env, nil)
	require.NoError(t, err)
	require.Equal(t, Default(), l.Config)
	for _, wrong := range []string{"NFCOMMSD_SERVICE=x", "NFCOMMSD_PORTS=x", "NFCOMMSD_HTTP_PORT_x=1"} {
		_, err = load(t, "", []string{wrong}, nil)
		require.ErrorContains(t, err, "unknown variable", wrong)
	}
}

func TestEmptyFiles(t *testing.T) {
	for _, text := range []string{"\n", "# nothing\n", "log:\n# level: info\n", "---\n"} {
		l, err := load(t, text, nil, nil)
		require.NoError(t, err, "%q", text)
		require.Equal(t, Default(), l.Config, "%q", text)
	}
}

// TestYAMLRoundTrip: what is printed reads as the same, and says where it is from.
func TestYAMLRoundTrip(t *testing.T) {
	l, err := load(t, "limits:\n  streams: 7\n", []string{"NFCOMMSD_LOG_LEVEL=warn"},
		[]string{"--devices=b=sim:?managers=2,a=sim:", "--roles-viewer=group:x,uri:spiffe://a/b", "--http-pprof", "--socket-mode=0600"})
	require.NoError(t, err)
	text, err := l.YAML()
	require.NoError(t, err)
	again, err := load(t, string(text), nil, nil)
	require.NoError(t, err, "%s", text)
	require.Equal(t, l.Config, again.Config, "%s", text)
	for _, want := range []string{
		"c.yaml:2)\n  streams: 7\n", "(environment NFCOMMSD_LOG_LEVEL)\n  level: \"warn\"\n",
		"(flag --http-pprof)\n  pprof: true\n", "(default)\n  timeout: \"15s\"\n",
	} {
		require.Contains(t, string(text), want)
	}
}

func TestFixedAndLive(t *testing.T) {
	old, err := load(t, "", nil, nil)
	require.NoError(t, err)
	next, err := load(t, "", nil, []string{"--devices=a=sim:", "--roles-viewer=uid:5", "--log-level=debug", "--limits-streams=9", "--tcp-key=k"})
	require.NoError(t, err)
	require.Equal(t, []string{"tcp.key", "limits.streams"}, old.Fixed(next))
	old.TakeLive(next)
	require.Equal(t, []string{"tcp.key", "limits.streams"}, old.Fixed(next), "still waiting for a restart")
	require.Equal(t, next.Devices, old.Devices)
	require.Equal(t, next.Roles, old.Roles)
	require.Equal(t, next.Log, old.Log)
}

func TestPolicy(t *testing.T) {
	l, err := load(t, "", nil, []string{"--roles-viewer=uid:5", "--roles-operator=gid:6", "--roles-admin=uid:7"})
	require.NoError(t, err)
	p, unknown, err := l.Policy()
	require.NoError(t, err)
	require.Empty(t, unknown)
	require.Equal(t, access.Viewer, p.RoleOf(access.Local{UID: 5}))
	require.Equal(t, access.Operator, p.RoleOf(access.Local{UID: 9, GID: 6}))
	require.Equal(t, access.Admin, p.RoleOf(access.Local{UID: 7}))
	require.Equal(t, access.None, p.RoleOf(access.Local{UID: 0}), "roles.admin replaces the default")

	l.Roles.Operator = []string{"gid:x", "user:no-such-user-at-all", "group:no-such-group-at-all"}
	p, unknown, err = l.Policy()
	require.ErrorContains(t, err, "roles.operator: subject \"gid:x\"")
	require.NotContains(t, err.Error(), "no-such", "a name may be known later")
	require.Len(t, unknown, 2)
	require.ErrorContains(t, unknown[0], "flag --roles-operator: roles.operator: subject \"user:no-such-user-at-all\": unknown name")
	require.Equal(t, access.Viewer, p.RoleOf(access.Local{UID: 5}), "the others hold theirs")
}

// FuzzFile: no text makes the reader panic, and what it accepts prints and
// reads as the same.
func FuzzFile(f *testing.F) {
	for _, s := range []string{"", "log:\n  level: info\n", "devices: {a: \"sim:\"}\n", "a: &a [*a]\n", "? [a]\n: b\n", "socket: {mode: 0o660}\n", "- a\n", "!!binary x: 1\n"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		l := &Loaded{Config: Default(), from: make(map[string]string)}
		values := make(map[string]given)
		if parseFile("f", []byte(text), l.keys(), values) != nil || l.apply(values) != nil {
			return
		}
		out, err := l.YAML()
		require.NoError(t, err)
		again := &Loaded{Config: Default(), from: make(map[string]string)}
		values = make(map[string]given)
		require.NoError(t, parseFile("f", out, l.keys(), values), "%s", out)
		require.NoError(t, again.apply(values), "%s", out)
		require.Equal(t, l.Config, again.Config, "%s", out)
	})
}
