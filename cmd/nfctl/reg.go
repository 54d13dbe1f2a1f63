package main

import (
	"context"
	"fmt"
	"strconv"

	"github.com/spf13/cobra"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/nfcomms/nfcomms/internal/units"
	"github.com/nfcomms/nfcomms/pkg/control"
	"github.com/nfcomms/nfcomms/pkg/control/proto/nfcomms/v1"
)

// registerRecord is the output of nfctl reg read and write.
type registerRecord struct {
	Device string `json:"device" doc:"name of the device"`
	Bar    int32  `json:"bar" doc:"the window of the card; 6: its configuration space"`
	Offset uint64 `json:"offset" doc:"the place in it"`
	Width  int32  `json:"width_bytes" doc:"4 or 8"`
	Value  uint64 `json:"value" doc:"what was read or written"`
}

func (r registerRecord) table(p *printer) { p.printf("%#0*x\n", 2*int(r.Width), r.Value) }

// interruptRecord is the output of nfctl reg wait.
type interruptRecord struct {
	Device string `json:"device" doc:"name of the device"`
	Vector int32  `json:"vector" doc:"the interrupt vector"`
	Count  uint64 `json:"count" doc:"its interrupts since the driver took the device"`
}

func (r interruptRecord) table(p *printer) {
	p.printf("%s vector %d: %d interrupts\n", r.Device, r.Vector, r.Count)
}

// switchRecord is the output of nfctl reg switch.
type switchRecord struct {
	Device string `json:"device" doc:"name of the device"`
	Vector int32  `json:"vector" doc:"the interrupt vector"`
	On     bool   `json:"on" doc:"true if its interrupts are served, false if they are held back"`
}

func (r switchRecord) table(p *printer) {
	state := "off"
	if r.On {
		state = "on"
	}
	p.printf("%s vector %d: %s\n", r.Device, r.Vector, state)
}

// regRules is what the help of each command says of all.
const regRules = `It needs the role admin, and CAP_SYS_ADMIN of the process that has the device open.
The module refuses unless it was loaded with register_access=1, or 1 was written to
register_access of the device in /sys/class/nfcomms. Each access is in the kernel's log
and in the server's. docs/device-spec.md lists the registers.`

func newReg(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use: "reg", GroupID: groupOperate,
		Short: "Read and write registers of a card, and wait for or switch its interrupts",
		Long:  "Reach the registers and interrupts of a card past its driver, to bring it up or to\nexamine it.\n\n" + regRules,
		Args:  unknownCommand,
		RunE:  func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(newRegRead(a), newRegWrite(a), newRegWait(a), newRegSwitch(a))
	return cmd
}

// The configuration space in place of a bar, by name and number.
const (
	configBar   = "config"
	configSpace = 6
)

// registerArgs reads BAR and OFFSET, and checks the width.
func registerArgs(bar, offset string, width int32) (b int32, o uint64, err error) {
	if width != 4 && width != 8 {
		return 0, 0, usagef("--width %d is not 4 or 8", width)
	}
	n, err := strconv.ParseInt(bar, 0, 32)
	if bar == configBar {
		n, err = configSpace, nil
	}
	if err != nil {
		return 0, 0, usagef("bar %q is not a number", bar)
	}
	if o, err = strconv.ParseUint(offset, 0, 64); err != nil {
		return 0, 0, usagef("offset %q is not a number", offset)
	}
	return int32(n), o, nil
}

func newRegRead(a *app) *cobra.Command {
	var width int32
	cmd := &cobra.Command{
		Use:     "read DEVICE BAR OFFSET",
		Short:   "Read a register of a card",
		Long:    "Read a register of a card. Numbers are decimal, or hexadecimal with 0x. BAR is a\nnumber, or config: the configuration space, which nobody has to switch on.\n\n" + regRules,
		Example: "  nfctl reg read nic0 0 0x10\n  nfctl reg read nic0 2 0 --width 8\n  nfctl reg read nic0 config 4",
		Args:    cobra.ExactArgs(3), ValidArgsFunction: a.complete(a.devices, a.bars),
		RunE: a.bounded(func(ctx context.Context, c *control.Client, args []string) error {
			bar, offset, err := registerArgs(args[1], args[2], width)
			if err != nil {
				return err
			}
			r, err := c.Boards.ReadRegister(ctx, &nfcommsv1.ReadRegisterRequest{Name: deviceName(args[0]), Bar: bar, Offset: offset, Width: width})
			if err != nil {
				return err
			}
			return a.print(registerRecord{deviceID(args[0]), bar, offset, width, r.GetValue()})
		}),
	}
	widthFlag(cmd, &width)
	return cmd
}

func newRegWrite(a *app) *cobra.Command {
	var width int32
	cmd := &cobra.Command{
		Use:     "write DEVICE BAR OFFSET VALUE",
		Short:   "Write a register of a card",
		Long:    "Write a register of a card. Numbers are decimal, or hexadecimal with 0x. What is the\ndriver's own is refused: registers that it writes, interrupt vectors, mailboxes.\n\n" + regRules,
		Example: "  nfctl reg write nic0 0 0x100 1",
		Args:    cobra.ExactArgs(4), ValidArgsFunction: a.complete(a.devices, a.bars),
		RunE: a.bounded(func(ctx context.Context, c *control.Client, args []string) error {
			bar, offset, err := registerArgs(args[1], args[2], width)
			if err != nil {
				return err
			}
			value, err := strconv.ParseUint(args[3], 0, 64)
			if err != nil {
				return usagef("value %q is not a number", args[3])
			}
			_, err = c.Boards.WriteRegister(ctx, &nfcommsv1.WriteRegisterRequest{
				Name: deviceName(args[0]), Bar: bar, Offset: offset, Width: width, Value: value,
			})
			if err != nil {
				return err
			}
			return a.print(registerRecord{deviceID(args[0]), bar, offset, width, value})
		}),
	}
	widthFlag(cmd, &width)
	return cmd
}

func widthFlag(cmd *cobra.Command, width *int32) {
	cmd.Flags().Int32Var(width, "width", 4, "bytes: 4 or 8")
	// The flag is there: it was defined above.
	_ = cmd.RegisterFlagCompletionFunc("width", cobra.FixedCompletions([]string{"4", "8"}, cobra.ShellCompDirectiveNoFileComp))
}

func newRegWait(a *app) *cobra.Command {
	var after uint64
	cmd := &cobra.Command{
		Use:     "wait DEVICE VECTOR",
		Short:   "Wait for an interrupt of a card",
		Long:    "Wait for the next interrupt of a vector, or until there were more than --after since\nthe driver took the device, which serves them as ever. Without one in the time of\n--timeout, a minute at most, the exit code is 6.\n\n" + regRules,
		Example: "  nfctl reg wait nic0 0 --timeout 30s",
		Args:    cobra.ExactArgs(2), ValidArgsFunction: a.complete(a.devices, a.vectors),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.bounded(func(ctx context.Context, c *control.Client, args []string) error {
				vector, err := vectorArg(args[1])
				if err != nil {
					return err
				}
				req := &nfcommsv1.WaitInterruptRequest{Name: deviceName(args[0]), Vector: vector}
				if a.timeout > 0 {
					req.Timeout = durationpb.New(a.timeout)
				}
				if cmd.Flags().Changed("after") {
					req.After = proto.Uint64(after)
				}
				r, err := c.Boards.WaitInterrupt(ctx, req)
				if err != nil {
					return err
				}
				return a.print(interruptRecord{deviceID(args[0]), vector, r.GetCount()})
			})(cmd, args)
		},
	}
	cmd.Flags().Uint64Var(&after, "after", 0, "wait until there were more than these; without it: for the next one")
	return cmd
}

func newRegSwitch(a *app) *cobra.Command {
	return &cobra.Command{
		Use:     "switch DEVICE VECTOR on|off",
		Short:   "Switch an interrupt of a card",
		Long:    "Switch a vector of a card off, or on again, as the server does when it closes the\ndevice. While it is off the driver looks for messages by itself, later than an\ninterrupt would have it look; one that was held back is served afterwards.\n\n" + regRules,
		Example: "  nfctl reg switch nic0 1 off",
		Args:    cobra.ExactArgs(3), ValidArgsFunction: a.complete(a.devices, a.vectors, onOrOff),
		RunE: a.bounded(func(ctx context.Context, c *control.Client, args []string) error {
			vector, err := vectorArg(args[1])
			on := args[2] == "on"
			if !on && args[2] != "off" {
				err = usagef("%q is not on or off", args[2])
			}
			if err != nil {
				return err
			}
			_, err = c.Boards.SwitchInterrupt(ctx, &nfcommsv1.SwitchInterruptRequest{Name: deviceName(args[0]), Vector: vector, On: on})
			if err != nil {
				return err
			}
			return a.print(switchRecord{deviceID(args[0]), vector, on})
		}),
	}
}

// vectorArg reads VECTOR.
func vectorArg(text string) (int32, error) {
	v, err := strconv.ParseInt(text, 0, 32)
	if err != nil {
		return 0, usagef("vector %q is not a number", text)
	}
	return int32(v), nil
}

func onOrOff(context.Context, *control.Client, []string) ([]cobra.Completion, error) {
	return []cobra.Completion{"on", "off"}, nil
}

// boardOfDevice asks for the card that the first argument names; empty for none.
func boardOfDevice(ctx context.Context, c *control.Client, args []string) (boardRecord, error) {
	d, err := c.Devices.GetDevice(ctx, &nfcommsv1.GetDeviceRequest{Name: deviceName(args[0])})
	if b := boardOf(d.GetDevice().GetBoard()); b != nil {
		return *b, err
	}
	return boardRecord{}, err
}

func (a *app) bars(ctx context.Context, c *control.Client, args []string) (found []cobra.Completion, err error) {
	b, err := boardOfDevice(ctx, c, args)
	for _, x := range b.Bars {
		found = append(found, cobra.CompletionWithDesc(number(x.Number), x.kind()+" of "+units.Bytes(float64(x.SizeBytes))))
	}
	if len(found) > 0 {
		found = append(found, configBar)
	}
	return found, err
}

func (a *app) vectors(ctx context.Context, c *control.Client, args []string) (found []cobra.Completion, err error) {
	b, err := boardOfDevice(ctx, c, args)
	for i := range b.Vectors {
		found = append(found, fmt.Sprint(i))
	}
	return found, err
}
