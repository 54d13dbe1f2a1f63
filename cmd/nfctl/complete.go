package main

import (
	"context"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/nfcomms/nfcomms/pkg/control"
)

// completion is how long the shell may wait for an answer of the server.
const completion = 2 * time.Second

// completer lists what an argument may be, given those before it.
type completer func(ctx context.Context, c *control.Client, args []string) ([]cobra.Completion, error)

// complete returns a cobra function that completes each argument with its own
// completer, and those after them with nothing.
func (a *app) complete(each ...completer) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
		if len(args) >= len(each) {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		var found []cobra.Completion
		a.timeout = completion
		err := a.start(cmd)
		if err == nil {
			err = a.bounded(func(ctx context.Context, c *control.Client, _ []string) (err error) {
				found, err = each[len(args)](ctx, c, args)
				return err
			})(cmd, nil)
		}
		if err != nil {
			return nil, cobra.ShellCompDirectiveError
		}
		for i := range found {
			name, about, described := strings.Cut(found[i], "\t")
			if found[i] = escape(name); described {
				found[i] = cobra.CompletionWithDesc(found[i], escape(about))
			}
		}
		return found, cobra.ShellCompDirectiveNoFileComp
	}
}

// completeDevice completes the first argument with the names of the devices.
func (a *app) completeDevice(cmd *cobra.Command, args []string, word string) ([]cobra.Completion, cobra.ShellCompDirective) {
	return a.complete(a.devices)(cmd, args, word)
}

// completeDevices completes every argument with the names of the devices that are
// not there yet.
func (a *app) completeDevices(cmd *cobra.Command, args []string, word string) ([]cobra.Completion, cobra.ShellCompDirective) {
	names, directive := a.complete(a.devices)(cmd, nil, word)
	names = slices.DeleteFunc(names, func(name cobra.Completion) bool {
		plain, _, _ := strings.Cut(name, "\t")
		return slices.Contains(args, plain)
	})
	return names, directive
}

func (a *app) devices(ctx context.Context, c *control.Client, _ []string) ([]cobra.Completion, error) {
	devices, err := collect(c.ListDevices(ctx))
	var names []cobra.Completion
	for _, d := range devices {
		names = append(names, cobra.CompletionWithDesc(deviceID(d.GetName()), word(d.GetState())))
	}
	return names, err
}

func (a *app) programs(ctx context.Context, c *control.Client, args []string) ([]cobra.Completion, error) {
	return listPrograms(ctx, c, deviceName(args[0]), "")
}

func (a *app) processes(ctx context.Context, c *control.Client, args []string) ([]cobra.Completion, error) {
	processes, err := collect(c.ListProcesses(ctx, deviceName(args[0])))
	var numbers []cobra.Completion
	for _, p := range processes {
		numbers = append(numbers, cobra.CompletionWithDesc(at(p.GetNode(), lastID(p.GetName())), programID(p.GetProgram())))
	}
	return numbers, err
}

// targets are the services, the open channels and the ports of processes.
func (a *app) targets(ctx context.Context, c *control.Client, args []string) ([]cobra.Completion, error) {
	found := slices.Sorted(maps.Keys(targetNames))
	channels, err := collect(c.ListChannels(ctx, deviceName(args[0])))
	if err != nil {
		return found, err
	}
	for _, ch := range channels {
		found = append(found, cobra.CompletionWithDesc(channelOf(ch).farEnd.text(), "open"))
	}
	processes, err := collect(c.ListProcesses(ctx, deviceName(args[0])))
	for _, p := range processes {
		for i := range p.GetTargets() {
			found = append(found, cobra.CompletionWithDesc(at(p.GetNode(), number(p.GetFirstTarget()+i)), programID(p.GetProgram())))
		}
	}
	return found, err
}
