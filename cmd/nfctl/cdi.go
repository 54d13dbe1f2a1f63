package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/nfcomms/nfcomms/internal/cdi"
	"github.com/nfcomms/nfcomms/pkg/control"
	"github.com/nfcomms/nfcomms/pkg/control/proto/nfcomms/v1"
)

func newCDI(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use: "cdi", GroupID: groupOperate,
		Short: "Describe devices to container runtimes",
		Args:  unknownCommand,
		RunE:  func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(newCDIGenerate(a))
	return cmd
}

func newCDIGenerate(a *app) *cobra.Command {
	var folder string
	var sockets []string
	cmd := &cobra.Command{
		Use:   "generate [DEVICE...]",
		Short: "Write a specification of the Container Device Interface",
		Long: `Write a specification of the devices, or of those that are named, for the Container
Device Interface (CDI) of podman, containerd and others, always as JSON. A container that
is given ` + cdi.Kind + `=NAME opens the device as "env:". A device that other processes
cannot open, as "sim:", is left out with a line that says so; if it is named, it is an
error. A shared device must have its socket below a folder of --sockets; a folder of the
device's name is given as a whole, so that the container finds the socket that a restart
of the device makes.`,
		Example: `  sudo nfctl cdi generate --dir /etc/cdi
  podman run --device ` + cdi.Kind + `=nic0 …`,
		ValidArgsFunction: a.completeDevices,
		RunE: a.connected(func(ctx context.Context, c *control.Client, args []string) error {
			devices, err := a.namedDevices(ctx, c, args)
			if err != nil {
				return err
			}
			spec, err := a.specOf(devices, sockets, len(args) > 0)
			switch {
			case err != nil:
				return usageError{err}
			case folder != "":
				if err := spec.Write(folder); err != nil {
					return usageError{err}
				}
				return nil
			}
			if _, err := a.buffered.Write(spec.Text()); err != nil {
				return err
			}
			return a.buffered.Flush()
		}),
	}
	cmd.Flags().StringVar(&folder, "dir", "", "replace "+cdi.File+" in this folder; by default the text goes to the standard output")
	cmd.Flags().StringSliceVar(&sockets, "sockets", []string{"/run/nfsim"}, "folders below which sockets of shared devices may lie")
	return cmd
}

// specOf describes the devices that containers can be given. One that cannot is an error if it was
// named.
func (a *app) specOf(devices []*nfcommsv1.Device, sockets []string, named bool) (*cdi.Spec, error) {
	var given []cdi.Device
	for _, d := range devices {
		name := deviceID(d.GetName())
		g, err := cdi.Describe(name, d.GetAddress(), sockets)
		switch {
		case err == nil:
			given = append(given, g)
		case named:
			return nil, fmt.Errorf("device %q: %w", name, err)
		default:
			a.note("%s is left out: %v", name, err)
		}
	}
	return cdi.New(given)
}
