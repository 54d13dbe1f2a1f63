package main

import (
	"errors"
	"io/fs"
	"path/filepath"

	"github.com/spf13/cobra"
)

// contextsRecord is the output of nfctl contexts.
type contextsRecord struct {
	File     string          `json:"file" doc:"path of the file; empty if the environment does not lead to one"`
	Contexts []contextRecord `json:"contexts" doc:"the contexts, in the order of their names"`
}

// contextRecord is a context.
type contextRecord struct {
	Context       string `json:"context" doc:"its name; empty if commands use none"`
	Current       bool   `json:"current" doc:"true if commands without --context, --address and --device use it"`
	Address       string `json:"address" doc:"the server"`
	ServerUser    string `json:"server_user" doc:"user who may serve at a UNIX socket beside root and you"`
	TLSCA         string `json:"tls_ca" doc:"file of the authorities; empty for none, as below"`
	TLSCert       string `json:"tls_cert" doc:"file of the certificate"`
	TLSKey        string `json:"tls_key" doc:"file of the key"`
	TLSServerName string `json:"tls_server_name" doc:"name in the server's certificate, if it is not that of the address"`
}

// contextOf describes a context of a file.
func (c *contextFile) contextOf(s namedServer) contextRecord {
	return contextRecord{
		Context: s.name, Current: s.name == c.current && s.name != "", Address: s.address, ServerUser: s.serverUser,
		TLSCA: s.tls.ca, TLSCert: s.tls.cert, TLSKey: s.tls.key, TLSServerName: s.tls.serverName,
	}
}

const contextsLong = `A context is a server with a name: --context NAME uses it, and commands that name no
server use the current one. The file of --config has them, with the keys of the flags;
paths are relative to its folder. Only root and you may be able to write to it.

  current: rack1
  contexts:
    rack1:
      address: rack1.example.org:7070
      tls-ca: ca.pem
      tls-cert: me.pem
      tls-key: me.key
    here:
      address: unix:///run/nfcomms/nfcommsd.sock`

func newContexts(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use: "contexts", GroupID: groupLook,
		Short: "List, show and choose the servers that have names",
		Long:  "List, show and choose the servers that have names.\n\n" + contextsLong,
		Example: `  nfctl contexts use rack1
  nfctl --context rack2 list
  nfctl list --all`,
		Args: unknownCommand,
		RunE: func(*cobra.Command, []string) error { return a.listContexts() },
	}
	cmd.AddCommand(&cobra.Command{
		Use: "list", Aliases: []string{"ls"},
		Short: "List the contexts",
		Long:  "List the contexts; * marks the current one. No server is asked.\n\n" + contextsLong,
		Args:  cobra.NoArgs,
		RunE:  func(*cobra.Command, []string) error { return a.listContexts() },
	}, &cobra.Command{
		Use:   "show [CONTEXT]",
		Short: "Show a context, or the server that commands use",
		Long: `Show a context, or, without a name, the server that commands use with the same flags
and environment. No server is asked.`,
		Args: cobra.MaximumNArgs(1), ValidArgsFunction: a.completeContextOnce,
		RunE: func(_ *cobra.Command, args []string) error { return a.showContext(args) },
	}, &cobra.Command{
		Use:   "use CONTEXT",
		Short: "Make a context the current one",
		Long:  "Make a context the current one: its name becomes that of current in the file of\n--config, which otherwise stays as it is. No server is asked.",
		Args:  cobra.ExactArgs(1), ValidArgsFunction: a.completeContextOnce,
		RunE: func(_ *cobra.Command, args []string) error { return a.useContext(args[0]) },
	})
	return cmd
}

// contextPath returns the path of the file of contexts; empty if the environment leads to none.
func (a *app) contextPath() string {
	if a.config != "" {
		return a.config
	}
	if dir := a.getenv("XDG_CONFIG_HOME"); filepath.IsAbs(dir) {
		return filepath.Join(dir, "nfctl", "config.yaml")
	}
	if home := a.getenv("HOME"); filepath.IsAbs(home) {
		return filepath.Join(home, ".config", "nfctl", "config.yaml")
	}
	return ""
}

// contexts reads the file of contexts. Without a file there are none, unless --config names it.
func (a *app) contexts() (*contextFile, error) {
	path := a.contextPath()
	if path == "" {
		return &contextFile{}, nil
	}
	c, err := readContexts(path)
	if errors.Is(err, fs.ErrNotExist) && a.config == "" {
		return &contextFile{path: path}, nil
	}
	return c, err
}

// place chooses the server of the context, if a context does so: that of --context, or the current
// one if nothing names an address.
func (a *app) place() error {
	if a.device != "" || a.given["address"] || a.getenv("NFCTL_ADDRESS") != "" && a.context == "" {
		return nil
	}
	c, err := a.contexts()
	if err != nil {
		return err
	}
	if a.context == "" {
		a.context = c.current
	}
	if a.context == "" {
		return nil
	}
	s, err := c.find(a.context)
	if err == nil {
		a.server = a.completed(s.server)
	}
	return err
}

// completed returns the server of a context with what the flags say, and with what the environment
// says where the context says nothing.
func (a *app) completed(s server) server {
	own, all := a.texts(), s.texts()
	for name, text := range all {
		if name != "address" && (a.given[name] || *text == "") {
			*text = *own[name]
		}
	}
	return s
}

func (a *app) listContexts() error {
	c, err := a.contexts()
	if err != nil {
		return err
	}
	r := contextsRecord{File: c.path, Contexts: []contextRecord{}}
	for _, s := range c.contexts {
		r.Contexts = append(r.Contexts, c.contextOf(s))
	}
	return a.print(r)
}

func (a *app) showContext(args []string) error {
	c, err := a.contexts()
	if err != nil {
		return err
	}
	if len(args) > 0 {
		s, err := c.find(args[0])
		if err != nil {
			return err
		}
		return a.print(c.contextOf(s))
	}
	if a.device != "" {
		return usagef("--device does without a server")
	}
	if err := a.place(); err != nil {
		return err
	}
	return a.print(c.contextOf(namedServer{a.context, a.server}))
}

func (a *app) useContext(name string) error {
	c, err := a.contexts()
	if err != nil {
		return err
	}
	if err := c.use(name); err != nil {
		return err
	}
	c.current = name
	s, err := c.find(name)
	if err != nil {
		return err
	}
	return a.print(c.contextOf(s))
}

// completeContext completes the name of a context.
func (a *app) completeContext(cmd *cobra.Command, _ []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
	if a.config == "" { // a flag beats the environment
		a.config = a.getenv(flagEnv["config"])
	}
	c, err := a.contexts()
	if err != nil {
		return nil, cobra.ShellCompDirectiveError
	}
	var names []cobra.Completion
	for _, s := range c.contexts {
		names = append(names, cobra.CompletionWithDesc(s.name, escape(s.address)))
	}
	return names, cobra.ShellCompDirectiveNoFileComp
}

// completeContextOnce completes the name of a context as the only argument.
func (a *app) completeContextOnce(cmd *cobra.Command, args []string, word string) ([]cobra.Completion, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return a.completeContext(cmd, args, word)
}

func (r contextsRecord) table(p *printer) {
	type row = contextRecord
	writeTable(p, []column[row]{
		{cell: func(c row) string {
			if c.Current {
				return "*"
			}
			return ""
		}},
		{title: "CONTEXT", cell: func(c row) string { return c.Context }},
		{title: "ADDRESS", cell: func(c row) string { return c.Address }},
		{title: "SERVER USER", wide: true, cell: func(c row) string { return orDash(c.ServerUser) }},
		{title: "CERTIFICATE", wide: true, cell: func(c row) string { return orDash(c.TLSCert) }},
	}, r.Contexts)
}

func (r contextRecord) table(p *printer) {
	fields := []field{
		{"context", orDash(r.Context), plainTint}, {"current", yesNo(r.Current), plainTint}, {"address", r.Address, plainTint},
		{"server user", orDash(r.ServerUser), plainTint},
	}
	for _, f := range []field{{name: "tls ca", value: r.TLSCA}, {name: "tls cert", value: r.TLSCert}, {name: "tls key", value: r.TLSKey}, {name: "tls name", value: r.TLSServerName}} {
		if f.value != "" {
			fields = append(fields, f)
		}
	}
	writeFields(p, fields)
}
