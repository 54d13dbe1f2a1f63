package main

import (
	"context"
	"fmt"
	"iter"
	"strings"

	"github.com/spf13/cobra"

	"github.com/nfcomms/nfcomms/pkg/control"
)

// newRoot builds the tree of commands.
func newRoot(a *app) *cobra.Command {
	root := &cobra.Command{
		Use:   "nfctl",
		Short: "Show and operate NFComms devices",
		Long:  rootLong(),
		Example: `  nfctl list
  nfctl top
  nfctl --device sim: ping
  nfctl send sim0 loopback hello && nfctl receive sim0 loopback
  nfctl list -o json | jq -r '.devices[] | select(.state != "ready") | .device'`,
		Args:          unknownCommand,
		Version:       versionText(),
		SilenceUsage:  true,
		SilenceErrors: true,
		PersistentPreRunE: func(cmd *cobra.Command, _ []string) error {
			err := a.start(cmd)
			if err == nil {
				err = cmd.ValidateFlagGroups() // cobra would do it too late
			}
			a.started = err == nil
			return err
		},
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	root.SetVersionTemplate("{{.Name}} {{.Version}}\n")
	a.flags(root.PersistentFlags())
	root.AddGroup(
		&cobra.Group{ID: groupLook, Title: "Look:"},
		&cobra.Group{ID: groupUse, Title: "Use:"},
		&cobra.Group{ID: groupOperate, Title: "Operate:"},
	)
	root.AddCommand(
		newList(a), newInfo(a), newChannels(a), newPrograms(a), newPs(a), newGroups(a), newFabric(a), newTop(a), newPing(a), newLatency(a),
		newEvents(a), newHealth(a), newDoctor(a), newSelftest(a), newVerify(a), newVersion(a), newExplain(a),
		newOpen(a), newClose(a), newSend(a), newReceive(a),
		newContexts(a), newReset(a), newDrain(a), newResume(a), newLoad(a), newStart(a), newStop(a), newProgram(a), newReg(a), newCDI(a),
		newMan(a),
	)
	// The flags are there: they were defined above.
	_ = root.RegisterFlagCompletionFunc("output", cobra.FixedCompletions(formats, cobra.ShellCompDirectiveNoFileComp))
	_ = root.RegisterFlagCompletionFunc("context", a.completeContext)
	strictHelp(root)
	return root
}

// strictHelp makes help of an unknown command an error; cobra's shows the help of all.
func strictHelp(root *cobra.Command) {
	root.InitDefaultHelpCmd()
	help, _, _ := root.Find([]string{"help"}) // it is there
	help.Run, help.RunE = nil, func(cmd *cobra.Command, args []string) error {
		about, rest, err := cmd.Root().Find(args)
		if err == nil {
			err = unknownCommand(about, rest)
		}
		if err != nil {
			return usageError{err}
		}
		about.InitDefaultHelpFlag()
		return about.Help()
	}
}

// unknownCommand refuses what is no command, with the names of those that are
// spelled like it.
func unknownCommand(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	cmd.SuggestionsMinimumDistance = 2
	like := didYouMean(cmd.SuggestionsFor(args[0]))
	if like == "" {
		like = fmt.Sprintf(" (%s --help shows all)", cmd.CommandPath())
	}
	return fmt.Errorf("unknown command %q%s", args[0], like)
}

// didYouMean is the end of an error about a name that is not there.
func didYouMean(names []string) string {
	if len(names) == 0 {
		return ""
	}
	return " (did you mean " + strings.Join(names, " or ") + "?)"
}

// versionText is what nfctl --version prints.
func versionText() string {
	version, commit := control.Build()
	return strings.TrimSpace(version + " " + commit)
}

// rootLong is what nfctl --help prints first.
func rootLong() string {
	return `Show and operate the devices of a control plane server: those of nfcommsd, of
an application that embeds the server, or, with --device, of one that nfctl
opens itself for the time of the command.

Data is written to the standard output, everything else to the standard error. The
keys of -o json and -o yaml are documented and stable; their numbers are in
base units, seconds and bytes.

Environment:
` + envHelp() + `
Exit codes:
` + exitHelp()
}

// Groups of commands.
const (
	groupLook    = "look"
	groupUse     = "use"
	groupOperate = "operate"
)

// envHelp lists the environment variables for the help.
func envHelp() string {
	var b strings.Builder
	for _, name := range []string{"address", "context", "config", "device", "output", "timeout", "server-user", "tls-ca", "tls-cert", "tls-key", "tls-server-name"} {
		fmt.Fprintf(&b, "  %-22s as --%s, which beats it\n", flagEnv[name], name)
	}
	fmt.Fprintf(&b, "  %-22s if it is not empty, no colours\n", "NO_COLOR")
	return b.String()
}

// onlyDevice returns the resource name of the device that an optional argument
// names, or of the only one there is.
func onlyDevice(ctx context.Context, c *control.Client, args []string) (string, error) {
	if len(args) > 0 {
		return deviceName(args[0]), nil
	}
	devices, err := collect(c.ListDevices(ctx))
	if err != nil {
		return "", err
	}
	if len(devices) == 1 {
		return devices[0].GetName(), nil
	}
	var names []string
	for _, d := range devices {
		names = append(names, deviceID(d.GetName()))
	}
	return "", usagef("name one of the %d devices: %s", len(devices), orDash(strings.Join(names, ", ")))
}

// parentOf returns the parent that an optional argument names, else that of all
// devices.
func parentOf(args []string) string {
	if len(args) > 0 {
		return deviceName(args[0])
	}
	return control.AllDevices
}

// collect returns all items of a list of the client.
func collect[T any](list iter.Seq2[T, error]) (all []T, err error) {
	for item, err := range list {
		if err != nil {
			return nil, err
		}
		all = append(all, item)
	}
	return all, nil
}
