package main

import (
	"bytes"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"github.com/nfcomms/nfcomms/bridge/abi"
	"github.com/nfcomms/nfcomms/internal/topology"
	"github.com/nfcomms/nfcomms/pkg/control"
	"github.com/nfcomms/nfcomms/pkg/control/proto/nfcomms/v1"
	"github.com/nfcomms/nfcomms/pkg/nfcomms"
	"github.com/nfcomms/nfcomms/pkg/nfcomms/admin"
	"github.com/nfcomms/nfcomms/pkg/nfcomms/fabric"
)

// targetNames are the services that every device has.
var targetNames = map[string]nfcomms.Target{
	"loopback":  nfcomms.Loopback,
	"log":       admin.Log,
	"telemetry": admin.Telemetry,
	"time":      admin.Time,
}

const targetHelp = `TARGET is the number of the far end, or the name of a service that every device
has: loopback, log, telemetry, time. At another node of the device's fabric it
stands behind the node: 2.0.1/1042, 2.0.1/loopback.`

// parseTarget reads a target.
func parseTarget(arg string) (nfcomms.Target, error) {
	node, local, err := cutNode("target", arg)
	if err != nil {
		return 0, err
	}
	t, err := parseLocal(arg, local)
	if node != nil {
		t = fabric.Target(*node, t)
	}
	return t, err
}

// cutNode reads the node that stands before a slash, nil if there is none, and returns the rest.
func cutNode(what, arg string) (node *topology.Node, rest string, err error) {
	place, rest, remote := strings.Cut(arg, "/")
	if !remote {
		return nil, arg, nil
	}
	n, err := topology.ParseNode(place)
	if err != nil {
		return nil, "", usagef("%s %q: %w", what, arg, err)
	}
	return &n, rest, nil
}

// parseLocal reads what names a target at its node.
func parseLocal(arg, local string) (nfcomms.Target, error) {
	if t, ok := targetNames[local]; ok {
		return t, nil
	}
	n, err := strconv.ParseUint(local, 0, 32)
	if err != nil || n >= abi.ChannelsMax {
		return 0, usagef("target %q is neither a number below %d nor loopback, log, telemetry or time", arg, abi.ChannelsMax)
	}
	return nfcomms.Target(n), nil
}

// parseChannel returns the resource name of a channel for DEVICE and TARGET.
func parseChannel(args []string) (string, error) {
	t, err := parseTarget(args[1])
	if err != nil {
		return "", err
	}
	return control.ChannelName(deviceID(args[0]), t), nil
}

// openedRecord is the output of nfctl open and nfctl close.
type openedRecord struct {
	channelRecord
}

func (r openedRecord) table(p *printer) {
	p.printf("%s/%s %s\n", r.Device, r.farEnd.text(), r.State)
}

func newOpen(a *app) *cobra.Command {
	return &cobra.Command{
		Use: "open DEVICE TARGET", GroupID: groupUse,
		Short: "Open a channel for remote clients",
		Long: `Open a channel for remote clients. It belongs to the server, which closes it when
nobody used it for some time. send and receive open the channel by themselves.

` + targetHelp,
		Args: cobra.ExactArgs(2), ValidArgsFunction: a.complete(a.devices, a.targets),
		RunE: a.bounded(func(ctx context.Context, c *control.Client, args []string) error {
			name, err := parseChannel(args)
			if err != nil {
				return err
			}
			r, err := c.Channels.OpenChannel(ctx, &nfcommsv1.OpenChannelRequest{Name: name})
			if err != nil {
				return err
			}
			return a.print(openedRecord{channelOf(r.GetChannel())})
		}),
	}
}

func newClose(a *app) *cobra.Command {
	return &cobra.Command{
		Use: "close DEVICE TARGET", GroupID: groupUse,
		Short: "Close a channel that open, send or receive opened",
		Long:  "Close a channel that open, send or receive opened. Pending calls end, and the\ndevice's process sees the close.\n\n" + targetHelp,
		Args:  cobra.ExactArgs(2), ValidArgsFunction: a.complete(a.devices, a.targets),
		RunE: a.bounded(func(ctx context.Context, c *control.Client, args []string) error {
			name, err := parseChannel(args)
			if err != nil {
				return err
			}
			r, err := c.Channels.CloseChannel(ctx, &nfcommsv1.CloseChannelRequest{Name: name})
			if err != nil {
				return err
			}
			return a.print(openedRecord{channelOf(r.GetChannel())})
		}),
	}
}

// messageRecord is the output of nfctl send and nfctl receive.
type messageRecord struct {
	Device string `json:"device" doc:"name of the device"`
	farEnd
	SizeBytes int     `json:"size_bytes" doc:"length of the message"`
	Hex       string  `json:"hex" doc:"the message as hexadecimal digits"`
	Text      *string `json:"text" doc:"the message as text; null if it is not UTF-8"`

	payload []byte
	style   style
}

// style returns how a table shows a message.
type style int

const (
	styleNone style = iota
	styleText
	styleHex
	styleRaw
)

func messageOf(args []string, payload []byte, s style) (messageRecord, error) {
	t, err := parseTarget(args[1])
	r := messageRecord{
		Device: deviceID(args[0]), farEnd: farEndOf(t), SizeBytes: len(payload),
		Hex: hex.EncodeToString(payload), payload: payload, style: s,
	}
	if utf8.Valid(payload) {
		text := string(payload)
		r.Text = &text
	}
	return r, err
}

func (r messageRecord) table(p *printer) {
	switch r.style {
	case styleText:
		p.printf("%s\n", strings.ReplaceAll(string(r.payload), `\`, `\\`))
	case styleHex:
		p.printf("%s\n", r.Hex)
	case styleRaw:
		p.printf("%s", r.payload)
	}
}

func newSend(a *app) *cobra.Command {
	var asHex, reply bool
	cmd := &cobra.Command{
		Use: "send DEVICE TARGET [MESSAGE]", GroupID: groupUse,
		Short: "Send a direct message of at most 56 bytes",
		Long: `Send a direct message of at most 56 bytes and wait until the target took it.
Without MESSAGE it is read from the standard input, every byte of it. An error
says that the target did not take it, but for a lost device or connection. The
loopback takes no message before its answer to the last one was received: use
--reply, or receive.

Bulk data does not pass here: use SendInd in the process that has the device
open.

` + targetHelp,
		Example: `  nfctl send sim0 loopback hello --reply
  nfctl send sim0 17 --hex 0100000000000000
  nfctl send sim0 2.0.1/loopback hello --reply
  head -c 56 /dev/urandom | nfctl send sim0 17`,
		Args: cobra.RangeArgs(2, 3), ValidArgsFunction: a.complete(a.devices, a.targets),
		RunE: a.connected(func(ctx context.Context, c *control.Client, args []string) error {
			payload, err := a.payload(args[2:], asHex)
			if err != nil {
				return err
			}
			r, err := a.send(ctx, c, args, payload)
			err = answerWaits(args, err)
			if err == nil && reply {
				r, err = a.receive(ctx, c, args, styleOf(asHex, false))
			}
			if err != nil {
				return err
			}
			return a.print(r)
		}),
	}
	cmd.Flags().BoolVar(&asHex, "hex", false, "MESSAGE, or the standard input, is hexadecimal digits; blanks do not count")
	cmd.Flags().BoolVar(&reply, "reply", false, "print the next message from the target, as receive does")
	return cmd
}

// answerWaits says of a message that the loopback did not take in time why it
// did not: it takes the next one when its answer to the last was received.
func answerWaits(args []string, err error) error {
	t, bad := parseTarget(args[1])
	if bad != nil || abi.ID(t).Target() != uint32(nfcomms.Loopback) || !errors.Is(err, nfcomms.ErrWithdrawn) || !errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	return fmt.Errorf("%w (does its answer to an earlier message wait? nfctl receive %s %s takes it, send --reply takes its own)", err, deviceID(args[0]), args[1])
}

// send gives one message to the target.
func (a *app) send(ctx context.Context, c *control.Client, args []string, payload []byte) (r messageRecord, err error) {
	err = a.onChannel(ctx, c, args, func(ctx context.Context, name string) error {
		return c.Send(ctx, name, payload)
	})
	if err != nil {
		return r, err
	}
	return messageOf(args, payload, styleNone)
}

// receive takes one message from the target.
func (a *app) receive(ctx context.Context, c *control.Client, args []string, s style) (r messageRecord, err error) {
	var payload []byte
	err = a.onChannel(ctx, c, args, func(ctx context.Context, name string) (err error) {
		payload, err = c.Receive(ctx, name)
		return err
	})
	if err != nil {
		return r, err
	}
	return messageOf(args, payload, s)
}

// onChannel calls on the channel that DEVICE and TARGET name, and opens it if it
// is not open.
func (a *app) onChannel(ctx context.Context, c *control.Client, args []string, call func(ctx context.Context, name string) error) error {
	ctx, cancel := a.limited(ctx)
	defer cancel()
	name, err := parseChannel(args)
	if err != nil {
		return err
	}
	var held error
	for {
		err := call(ctx, name)
		switch {
		case !errors.Is(err, nfcomms.ErrNotSubscribed):
			return known(err)
		case held != nil:
			return held
		}
		_, err = c.Channels.OpenChannel(ctx, &nfcommsv1.OpenChannelRequest{Name: name})
		var op *nfcomms.OpError
		switch {
		case errors.Is(err, nfcomms.ErrBusy) && errors.As(err, &op): // another client was faster, or the server does not know who
			held = err
		case errors.Is(err, nfcomms.ErrBusy): // another client opens it now
			if !pause(ctx, openPause) {
				return err
			}
		case err != nil:
			return err
		}
	}
}

// known distinguishes a time-out of which the server reports that nothing was delivered from
// one without an answer.
func known(err error) error {
	answered := errors.Is(err, nfcomms.ErrWithdrawn) || errors.Is(err, nfcomms.ErrTargetTimeout)
	if errors.Is(err, context.DeadlineExceeded) && !answered {
		return errUnanswered
	}
	return err
}

// openPause is the time between two checks of a channel that another opens.
const openPause = time.Millisecond

// maxInput bounds what is read for one message. It is far more than one has, so
// that the error for a longer one has its length.
const maxInput = 1 << 20

// payload returns the message of a command line.
func (a *app) payload(args []string, asHex bool) ([]byte, error) {
	var data []byte
	if len(args) > 0 {
		data = []byte(args[0])
	} else {
		var err error
		if data, err = io.ReadAll(io.LimitReader(a.in, maxInput+1)); err != nil {
			return nil, fmt.Errorf("read the message: %w", err)
		}
		if len(data) > maxInput {
			return nil, usagef("the input has more than %d bytes: %w as a message", maxInput, nfcomms.ErrTooLarge)
		}
	}
	if asHex {
		plain := make([]byte, hex.DecodedLen(len(data)))
		n, err := hex.Decode(plain, bytes.Join(bytes.Fields(data), nil))
		if err != nil {
			return nil, usagef("message: %w", err)
		}
		data = plain[:n]
	}
	return data, nil
}

func newReceive(a *app) *cobra.Command {
	var asHex, raw bool
	count := 1
	cmd := &cobra.Command{
		Use: "receive DEVICE TARGET", Aliases: []string{"recv"}, GroupID: groupUse,
		Short: "Receive direct messages",
		Long: `Receive direct messages, one line each. What a line cannot show is written as
\xNN, a backslash as \\; --hex and --raw show every byte. --timeout bounds the
wait for each message.

` + targetHelp,
		Args: cobra.ExactArgs(2), ValidArgsFunction: a.complete(a.devices, a.targets),
		RunE: a.connected(func(ctx context.Context, c *control.Client, args []string) error {
			if count < 0 {
				return usagef("--count %d is negative", count)
			}
			out := a.series()
			for i := 0; count == 0 || i < count; i++ {
				r, err := a.receive(ctx, c, args, styleOf(asHex, raw))
				if err == nil {
					err = out.print(r)
				}
				if err != nil {
					return err
				}
			}
			return nil
		}),
	}
	cmd.Flags().BoolVar(&asHex, "hex", false, "hexadecimal digits")
	cmd.Flags().BoolVar(&raw, "raw", false, "the bytes as they are, without line ends")
	cmd.MarkFlagsMutuallyExclusive("hex", "raw")
	cmd.Flags().IntVarP(&count, "count", "n", 1, "number of messages; 0 means until interrupted")
	return cmd
}

func styleOf(asHex, raw bool) style {
	switch {
	case asHex:
		return styleHex
	case raw:
		return styleRaw
	}
	return styleText
}
