package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"time"

	"github.com/schollz/progressbar/v3"
	"github.com/spf13/cobra"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/nfcomms/nfcomms/internal/units"
	"github.com/nfcomms/nfcomms/pkg/control"
	"github.com/nfcomms/nfcomms/pkg/control/proto/nfcomms/v1"
	"github.com/nfcomms/nfcomms/pkg/nfcomms"
)

// changedRecord is the output of nfctl reset and nfctl resume.
type changedRecord struct {
	deviceRecord
}

func (r changedRecord) table(p *printer) {
	p.printf("%s %s, epoch %d\n", r.Device, p.paint(r.State, tintOf(r.State)), r.Epoch)
}

const severalHelp = `Several devices are taken one after the other, also after one failed; the exit
code is that of the first that did. If one is unknown nothing is done.`

// each makes a cobra function of what is done with one device, for all that are
// named: one gives a record, several a series. A record may have an error with it.
func (a *app) each(do func(ctx context.Context, c *control.Client, name string) (record, error)) func(*cobra.Command, []string) error {
	return a.connected(func(ctx context.Context, c *control.Client, args []string) error {
		show := a.print
		if len(args) > 1 {
			show = a.series().print
		}
		for _, arg := range args { // before anything is done
			if err := control.CheckDevice(deviceID(arg)); err != nil {
				return usageError{err}
			}
		}
		if len(args) > 1 {
			if _, err := a.namedDevices(ctx, c, args); err != nil {
				return err
			}
		}
		var failed []error
		for _, arg := range args {
			r, err := do(ctx, c, deviceName(arg))
			if err == nil || errors.Is(err, errUnhealthy) {
				err = errors.Join(err, show(r))
			}
			failed = append(failed, err)
			if ctx.Err() != nil {
				break
			}
		}
		return firstOf(failed)
	})
}

// severalErrors are those of several devices; the first gives the exit code.
type severalErrors struct{ all []error }

func (e severalErrors) Error() string { return errors.Join(e.all...).Error() }
func (e severalErrors) Unwrap() error { return e.all[0] }

// firstOf joins errors under the first.
func firstOf(all []error) error {
	all = slices.DeleteFunc(all, func(err error) bool { return err == nil })
	switch len(all) {
	case 0:
		return nil
	case 1:
		return all[0]
	}
	return severalErrors{all}
}

func newReset(a *app) *cobra.Command {
	return &cobra.Command{
		Use: "reset DEVICE...", GroupID: groupOperate,
		Short: "Reset a device: end every call, clear a fault, start the firmware anew",
		Long: `Reset a device: stop its DMA, end every pending call with DEVICE_LOST, clear a
fault and start the firmware anew under the next epoch. Channels from before stay
unusable, processes have ended. Drain the device first to let running work end.
` + severalHelp,
		Args: cobra.MinimumNArgs(1), ValidArgsFunction: a.completeDevices,
		RunE: a.each(func(ctx context.Context, c *control.Client, name string) (record, error) {
			ctx, cancel := a.limited(ctx)
			defer cancel()
			r, err := c.Devices.ResetDevice(ctx, &nfcommsv1.ResetDeviceRequest{Name: name})
			return changedRecord{deviceOf(r.GetDevice())}, err
		}),
	}
}

func newResume(a *app) *cobra.Command {
	return &cobra.Command{
		Use: "resume DEVICE...", GroupID: groupOperate,
		Short: "Let a drained device take new work again",
		Long:  "Let a drained device take new work again.\n" + severalHelp,
		Args:  cobra.MinimumNArgs(1), ValidArgsFunction: a.completeDevices,
		RunE: a.each(func(ctx context.Context, c *control.Client, name string) (record, error) {
			ctx, cancel := a.limited(ctx)
			defer cancel()
			r, err := c.Devices.ResumeDevice(ctx, &nfcommsv1.ResumeDeviceRequest{Name: name})
			return changedRecord{deviceOf(r.GetDevice())}, err
		}),
	}
}

// drainRecord is the output of nfctl drain.
type drainRecord struct {
	deviceRecord
	Drained      bool  `json:"drained" doc:"true if nothing is left"`
	RunningCalls int32 `json:"running_calls" doc:"remote calls that still run"`
	OpenChannels int32 `json:"open_channels" doc:"channels that are still open: the application's, or with a call running"`
}

func (r drainRecord) table(p *printer) {
	p.printf("%s %s, %d calls running, %d channels open\n", r.Device, p.paint(r.State, tintOf(r.State)), r.RunningCalls, r.OpenChannels)
}

// slack is how much longer a drain may take than the server is asked to wait, so
// that its answer, not our own deadline, says what is left.
const slack = 2 * time.Second

// waiting gives a call the time of --timeout, which the server knows.
func (a *app) waiting(ctx context.Context, do func(ctx context.Context, wait *durationpb.Duration) error) error {
	if a.timeout == 0 {
		return do(ctx, nil)
	}
	ctx, cancel := context.WithTimeout(ctx, a.timeout+slack)
	defer cancel()
	return do(ctx, durationpb.New(a.timeout))
}

func newDrain(a *app) *cobra.Command {
	return &cobra.Command{
		Use: "drain DEVICE...", GroupID: groupOperate,
		Short: "Refuse new work for a device and wait until the running work is done",
		Long: `Refuse new remote work for a device, and wait until the running work is done, at
most --timeout long. The device refuses new work in either case, until resume.
Exit code 8 says that something is left.
` + severalHelp,
		Args: cobra.MinimumNArgs(1), ValidArgsFunction: a.completeDevices,
		RunE: a.each(a.drain),
	}
}

// drain drains one device.
func (a *app) drain(ctx context.Context, c *control.Client, name string) (record, error) {
	var r *nfcommsv1.DrainDeviceResponse
	err := a.waiting(ctx, func(ctx context.Context, wait *durationpb.Duration) (err error) {
		r, err = c.Devices.DrainDevice(ctx, &nfcommsv1.DrainDeviceRequest{Name: name, Timeout: wait})
		return err
	})
	if err != nil {
		return nil, err
	}
	d := drainRecord{
		deviceRecord: deviceOf(r.GetDevice()), Drained: r.GetDrained(),
		RunningCalls: r.GetRunningCalls(), OpenChannels: r.GetOpenChannels(),
	}
	if !d.Drained {
		err = fmt.Errorf("%s is not drained yet: %w", d.Device, errUnhealthy)
	}
	return d, err
}

// loadRecord is the output of nfctl load.
type loadRecord struct {
	Device    string `json:"device" doc:"name of the device"`
	Node      string `json:"node" doc:"x.y.z of the fabric's node that has it; empty: the device's own"`
	Program   string `json:"program" doc:"the first program of the image, as nfctl start takes it"`
	SizeBytes uint64 `json:"size_bytes" doc:"size of the image"`
}

func (r loadRecord) table(p *printer) {
	where := ""
	if r.Node != "" {
		where = " at node " + r.Node
	}
	p.printf("%s loaded %s (%s)%s\n", r.Device, r.Program, units.Bytes(float64(r.SizeBytes)), where)
}

func newLoad(a *app) *cobra.Command {
	var node string
	cmd := &cobra.Command{
		Use: "load DEVICE FILE", GroupID: groupOperate,
		Short: "Load a program image into a device",
		Long: `Load a program image into a device. The device gets nothing unless the image
arrived whole, of at most 64 MiB. On a terminal the standard error shows the
progress. --timeout bounds the time in which nothing moves. start runs what was
loaded, at the node that has it.`,
		Args: cobra.ExactArgs(2), ValidArgsFunction: a.completeLoad,
		RunE: a.connected(func(ctx context.Context, c *control.Client, args []string) error {
			r, err := a.load(ctx, c, args[0], node, args[1])
			if err != nil {
				return err
			}
			return a.print(r)
		}),
	}
	nodeFlag(cmd, &node)
	return cmd
}

// completeLoad completes a device, then a file.
func (a *app) completeLoad(cmd *cobra.Command, args []string, toComplete string) ([]cobra.Completion, cobra.ShellCompDirective) {
	if len(args) == 1 {
		return nil, cobra.ShellCompDirectiveDefault
	}
	return a.completeDevice(cmd, args, toComplete)
}

func (a *app) load(ctx context.Context, c *control.Client, device, node, path string) (loadRecord, error) {
	f, size, err := openImage(path)
	if err != nil {
		return loadRecord{}, err
	}
	defer f.Close()
	ctx, moved, stop := a.moving(ctx) // ends the stream on every way out
	defer stop()
	bar := a.progressBar(size)
	header := &nfcommsv1.LoadProgramHeader{Parent: deviceName(device), Node: node, SizeBytes: uint64(size)}
	program, err := c.LoadProgram(ctx, header, f, func(received uint64) {
		moved()
		if bar != nil {
			_ = bar.Set64(int64(received)) // the image counts, not its picture
		}
	})
	if bar != nil {
		err = errors.Join(err, bar.Clear())
	}
	if still := context.Cause(ctx); err != nil && errors.Is(still, context.DeadlineExceeded) {
		err = still
	}
	if errors.Is(err, nfcomms.ErrInvalid) {
		err = fmt.Errorf("%w (nfctl program build makes images)", err)
	}
	return loadRecord{Device: deviceID(device), Node: node, Program: programID(program.GetName()), SizeBytes: uint64(size)}, err
}

// moving returns a context that ends when moved was not called for --timeout, with the cause.
func (a *app) moving(ctx context.Context) (moves context.Context, moved, stop func()) {
	moves, cancel := context.WithCancelCause(ctx)
	if a.timeout == 0 {
		return moves, func() {}, func() { cancel(nil) }
	}
	t := time.AfterFunc(a.timeout, func() {
		cancel(fmt.Errorf("nothing moved for %v (see --timeout): %w", a.timeout, context.DeadlineExceeded))
	})
	return moves, func() { t.Reset(a.timeout) }, func() {
		t.Stop()
		cancel(nil)
	}
}

// openImage opens the file of a program image.
func openImage(path string) (*os.File, int64, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, 0, usageError{err}
	}
	st, err := f.Stat()
	if err == nil && (!st.Mode().IsRegular() || st.Size() == 0) {
		err = fmt.Errorf("%s is no program image: not a file, or empty", path)
	}
	if err != nil {
		return nil, 0, errors.Join(usageError{err}, f.Close())
	}
	return f, st.Size(), nil
}

// progressBar shows on a terminal how far an upload is; nil elsewhere.
func (a *app) progressBar(size int64) *progressbar.ProgressBar {
	if !isTerminal(a.err) {
		return nil
	}
	return progressbar.NewOptions64(size, progressbar.OptionSetWriter(a.err), progressbar.OptionShowBytes(true),
		progressbar.OptionSetDescription("load"), progressbar.OptionEnableColorCodes(false))
}

// processRecord is the output of nfctl start.
type processRecord struct {
	Device      string `json:"device" doc:"name of the device"`
	Process     uint64 `json:"process" doc:"number of the process at its node"`
	Node        string `json:"node" doc:"x.y.z of the fabric's node that it runs at; empty: the device's own"`
	Program     string `json:"program" doc:"the program that it runs"`
	FirstTarget uint32 `json:"first_target" doc:"target of its port 0; port i has the i-th after it"`
	Targets     uint32 `json:"targets" doc:"number of its ports"`
}

func (r processRecord) table(p *printer) {
	last := ""
	if r.Targets > 1 {
		last = fmt.Sprintf(" to %d", r.FirstTarget+r.Targets-1)
	}
	p.printf("%s process %s runs %s on target %s%s\n", r.Device,
		at(r.Node, number(r.Process)), r.Program, at(r.Node, number(r.FirstTarget)), last)
}

func newStart(a *app) *cobra.Command {
	var first, targets uint32
	var argument uint64
	var node string
	cmd := &cobra.Command{
		Use: "start DEVICE PROGRAM", GroupID: groupOperate,
		Short: "Start a program as a new device process",
		Args:  cobra.ExactArgs(2), ValidArgsFunction: a.complete(a.devices, a.programs),
		RunE: a.bounded(func(ctx context.Context, c *control.Client, args []string) error {
			r, err := c.Devices.StartProgram(ctx, &nfcommsv1.StartProgramRequest{
				Name:        control.ProgramName(deviceID(args[0]), args[1]),
				FirstTarget: first, Targets: targets, Argument: argument, Node: node,
			})
			if err != nil {
				return err
			}
			p := r.GetProcess()
			id, err := strconv.ParseUint(lastID(p.GetName()), 10, 64)
			if err != nil {
				return fmt.Errorf("the server named the process %q: %w", p.GetName(), err)
			}
			return a.print(processRecord{
				Device: deviceID(args[0]), Process: id, Node: p.GetNode(), Program: args[1],
				FirstTarget: p.GetFirstTarget(), Targets: p.GetTargets(),
			})
		}),
	}
	cmd.Flags().Uint32Var(&first, "first-target", 0, "target of its port 0; 0 lets the device choose")
	cmd.Flags().Uint32Var(&targets, "targets", 1, "number of its ports")
	cmd.Flags().Uint64Var(&argument, "argument", 0, "a word that the program may read")
	nodeFlag(cmd, &node)
	return cmd
}

// nodeFlag is the flag of commands that name no target, for a node of the fabric.
func nodeFlag(cmd *cobra.Command, node *string) {
	cmd.Flags().StringVar(node, "node", "", "x.y.z of the node of the device's fabric, instead of the device's own")
}

// stoppedRecord is the output of nfctl stop.
type stoppedRecord struct {
	Device  string `json:"device" doc:"name of the device"`
	Process uint64 `json:"process" doc:"number, at its node, of the process that has ended"`
	Node    string `json:"node" doc:"x.y.z of the fabric's node that it ran at; empty: the device's own"`
}

func (r stoppedRecord) table(p *printer) {
	p.printf("%s process %s stopped\n", r.Device, at(r.Node, number(r.Process)))
}

// parseProcess reads "7", or "2.0.1/7" of a process at a node.
func parseProcess(arg string) (node string, id nfcomms.ProcessID, err error) {
	at, text, err := cutNode("process", arg)
	if err != nil {
		return "", 0, err
	}
	if at != nil {
		node = at.String()
	}
	n, err := strconv.ParseUint(text, 0, 64)
	if err != nil {
		return "", 0, usagef("process %q is not a number, which may stand behind x.y.z/ of a node", arg)
	}
	return node, nfcomms.ProcessID(n), nil
}

func newStop(a *app) *cobra.Command {
	return &cobra.Command{
		Use: "stop DEVICE PROCESS", GroupID: groupOperate,
		Short: "Ask a device process to return, and wait until it did",
		Args:  cobra.ExactArgs(2), ValidArgsFunction: a.complete(a.devices, a.processes),
		RunE: a.bounded(func(ctx context.Context, c *control.Client, args []string) error {
			node, id, err := parseProcess(args[1])
			if err != nil {
				return err
			}
			name := control.ProcessName(deviceID(args[0]), node, id)
			if _, err := c.Devices.StopProgram(ctx, &nfcommsv1.StopProgramRequest{Name: name}); err != nil {
				return err
			}
			return a.print(stoppedRecord{Device: deviceID(args[0]), Process: uint64(id), Node: node})
		}),
	}
}
