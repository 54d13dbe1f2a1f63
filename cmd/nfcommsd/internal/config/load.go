package config

import (
	"errors"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"

	"github.com/spf13/pflag"
)

// EnvFile is the environment variable that names the file, as --config does.
const EnvFile = "NFCOMMSD_CONFIG"

// Loaded is a configuration and its sources.
type Loaded struct {
	Config
	// File is the path of the YAML file; empty if there was none.
	File string
	// from is the source of each setting that was given, by key.
	from map[string]string
}

// Flags holds what a command line says.
type Flags struct {
	set  *pflag.FlagSet
	file string
	raw  map[string]*raw
}

// raw collects the values of one flag.
type raw struct {
	kind string
	form form
	v    []string
}

// String, Set and Type are pflag.Value's.
func (r *raw) String() string { return strings.Join(r.v, ",") }
func (r *raw) Type() string   { return r.kind }
func (r *raw) Set(v string) error {
	if r.form == scalar {
		r.v = []string{v}
	} else {
		r.v = append(r.v, split(v)...)
	}
	return nil
}

// split cuts a list at commas; an empty text is an empty list.
func split(v string) []string {
	var all []string
	for _, s := range strings.Split(v, ",") {
		if s = strings.TrimSpace(s); s != "" {
			all = append(all, s)
		}
	}
	return all
}

// AddFlags adds --config and a flag for each setting to a set.
func AddFlags(set *pflag.FlagSet) *Flags {
	f := &Flags{set: set, raw: make(map[string]*raw)}
	set.StringVar(&f.file, "config", "", "YAML file with settings ("+EnvFile+")")
	c := Default()
	for _, s := range c.settings() {
		r := &raw{kind: s.kind, form: s.form}
		f.raw[s.key] = r
		set.Var(r, s.flag(), s.help)
		fl := set.Lookup(s.flag())
		fl.DefValue = strings.Join(s.get(), ",")
		if s.kind == "bool" {
			fl.NoOptDefVal = "true"
		}
	}
	return f
}

// Load puts the configuration together from flags, an environment in the form
// of os.Environ, and the file that one of them names. It returns all that is
// wrong at once.
func (f *Flags) Load(environ []string) (*Loaded, error) {
	env, err := readEnv(environ)
	l := &Loaded{Config: Default(), File: f.file, from: make(map[string]string)}
	if l.File == "" {
		l.File = env[EnvFile]
	}
	values := make(map[string]given)
	if l.File != "" {
		text, readErr := os.ReadFile(l.File)
		err = errors.Join(err, readErr, parseFile(l.File, text, l.keys(), values))
	}
	for _, s := range l.settings() {
		if v, ok := env[s.env()]; ok {
			r := raw{form: s.form}
			_ = r.Set(v) // it only collects
			values[s.key] = given{r.v, "environment " + s.env()}
		}
		if f.set.Changed(s.flag()) {
			values[s.key] = given{f.raw[s.key].v, "flag --" + s.flag()}
		}
	}
	return l, errors.Join(err, l.apply(values))
}

// given is what one source says of a setting.
type given struct {
	v    []string
	from string
}

func (l *Loaded) keys() map[string]form {
	m := make(map[string]form)
	for _, s := range l.settings() {
		m[s.key] = s.form
	}
	return m
}

func (l *Loaded) apply(values map[string]given) error {
	var wrong []error
	for _, s := range l.settings() {
		g, ok := values[s.key]
		if !ok {
			continue
		}
		l.from[s.key] = g.from
		if err := s.set(g.v); err != nil {
			wrong = append(wrong, l.Wrong(s.key, err))
		}
	}
	return errors.Join(wrong...)
}

// Given is true for a setting that the file, the environment or a flag has.
func (l *Loaded) Given(key string) bool { return l.from[key] != "" }

// Wrong adds to an error of a setting its key and its
// source. Nil stays nil.
func (l *Loaded) Wrong(key string, err error) error {
	switch from := l.from[key]; {
	case err == nil:
		return nil
	case from == "":
		return fmt.Errorf("%s: %w", key, err)
	default:
		return fmt.Errorf("%s: %s: %w", from, key, err)
	}
}

// kubernetes matches the variables that Kubernetes sets in every pod beside a
// service whose name begins with nfcommsd.
var kubernetes = regexp.MustCompile(`^NFCOMMSD_([A-Z0-9_]+_)?(SERVICE_(HOST|PORT(_[A-Z0-9_]+)?)|PORT(_[0-9]+_(TCP|UDP|SCTP)(_(PROTO|PORT|ADDR))?)?)$`)

// readEnv takes our variables out of an environment; one that no setting has is
// an error.
func readEnv(environ []string) (map[string]string, error) {
	c := Default()
	known := []string{EnvFile}
	for _, s := range c.settings() {
		known = append(known, s.env())
	}
	m := make(map[string]string)
	var wrong []error
	for _, line := range environ {
		name, value, _ := strings.Cut(line, "=")
		switch {
		case slices.Contains(known, name):
			m[name] = value
		case strings.HasPrefix(name, "NFCOMMSD_") && !kubernetes.MatchString(name):
			wrong = append(wrong, fmt.Errorf("environment: unknown variable %s", name))
		}
	}
	return m, errors.Join(wrong...)
}

// isLive is true for a setting that a running daemon can change.
func isLive(key string) bool {
	return key == "devices" || key == "log.level" || key == "socket.max_role" || strings.HasPrefix(key, "roles.")
}

// Fixed lists the keys that differ in next and that only a restart changes.
func (l *Loaded) Fixed(next *Loaded) []string {
	var keys []string
	theirs := next.settings()
	for i, s := range l.settings() {
		if !isLive(s.key) && !slices.Equal(s.get(), theirs[i].get()) {
			keys = append(keys, s.key)
		}
	}
	return keys
}

// TakeLive takes over from next the settings that a running daemon can change.
func (l *Loaded) TakeLive(next *Loaded) {
	l.Devices, l.Auto, l.Roles, l.Log.Level = next.Devices, next.Auto, next.Roles, next.Log.Level
	l.Socket.MaxRole = next.Socket.MaxRole
}
