package control_test

import (
	"bytes"
	"context"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/nfcomms/nfcomms/internal/bridgetest"
	"github.com/nfcomms/nfcomms/pkg/control"
	"github.com/nfcomms/nfcomms/pkg/control/proto/nfcomms/v1"
	"github.com/nfcomms/nfcomms/pkg/nfcomms"
)

// refusal is what a bad request gets.
type refusal struct {
	code   codes.Code
	reason string
	field  string // of the FieldError, if there is one
	text   string // part of the message
}

// TestBadInput: one clear status for each mistake.
func TestBadInput(t *testing.T) {
	srv, c := serveSim(t, control.Options{MaxImage: 1000})
	app := open(t, "sim:")
	require.NoError(t, srv.Attach("app", app))
	_, err := app.Subscribe(background(t), nfcomms.Loopback)
	require.NoError(t, err)
	openChannel(t, c, loopback)

	malformed := refusal{codes.InvalidArgument, "INVALID", "name", "is not"}
	noDevice := refusal{codes.NotFound, "NO_DEVICE", "", `"devices/none"`}
	noChannel := refusal{codes.NotFound, "NOT_SUBSCRIBED", "", "channels/9"}
	parent := refusal{codes.InvalidArgument, "INVALID", "parent", "is not"}
	notOwned := refusal{codes.FailedPrecondition, "NOT_OWNED", "", "devices/app/channels/1"}

	cases := map[string]struct {
		call func(ctx context.Context) error
		want refusal
	}{
		"device unknown":         {get(c, "devices/none"), noDevice},
		"device empty":           {get(c, ""), malformed},
		"device without prefix":  {get(c, "nic0"), malformed},
		"device in upper case":   {get(c, "devices/NIC0"), malformed},
		"device with a slash":    {get(c, "devices/nic0/"), malformed},
		"device wildcard":        {get(c, control.AllDevices), malformed},
		"device much too long":   {get(c, "devices/"+strings.Repeat("a", 1<<16)), malformed},
		"reset unknown":          {reset(c, "devices/none"), noDevice},
		"diagnostics unknown":    {diagnose(c, "devices/none"), noDevice},
		"ping unknown":           {ping(c, "devices/none"), noDevice},
		"drain negative":         {drain(c, nic0, durationpb.New(-1)), refusal{codes.InvalidArgument, "INVALID", "timeout", "negative"}},
		"drain no duration":      {drain(c, nic0, &durationpb.Duration{Seconds: 1, Nanos: -1}), refusal{codes.InvalidArgument, "INVALID", "timeout", "no duration"}},
		"page size negative":     {listDevices(c, -1, ""), refusal{codes.InvalidArgument, "INVALID", "page_size", "-1 is negative"}},
		"page token of nothing":  {listDevices(c, 0, "!"), refusal{codes.InvalidArgument, "PAGE_TOKEN", "page_token", "bad page token"}},
		"page token forged":      {listDevices(c, 0, "AAAAAAAA"), refusal{codes.InvalidArgument, "PAGE_TOKEN", "page_token", "bad page token"}},
		"page token of another":  {listDevices(c, 0, channelToken(t, c)), refusal{codes.InvalidArgument, "PAGE_TOKEN", "page_token", "bad page token"}},
		"resume token forged":    {watchDevices(c, "AAAAAAAA"), refusal{codes.InvalidArgument, "RESUME_TOKEN", "resume_token", "bad resume token"}},
		"resume token of a page": {watchDevices(c, channelToken(t, c)), refusal{codes.InvalidArgument, "RESUME_TOKEN", "resume_token", "bad resume token"}},
		"resume token of events": {watchDevices(c, eventToken(t, c)), refusal{codes.InvalidArgument, "RESUME_TOKEN", "resume_token", "bad resume token"}},
		"channels of nothing":    {listChannels(c, ""), parent},
		"channels of unknown":    {listChannels(c, "devices/none"), noDevice},
		"channel unknown":        {getChannel(c, "devices/nic0/channels/9"), noChannel},
		"channel without number": {getChannel(c, "devices/nic0/channels/x"), malformed},
		"channel negative":       {getChannel(c, "devices/nic0/channels/-1"), malformed},
		"channel with a zero":    {getChannel(c, "devices/nic0/channels/01"), malformed},
		"channel over 24 bits":   {getChannel(c, "devices/nic0/channels/16777216"), malformed},
		"channel over 64 bits":   {getChannel(c, "devices/nic0/channels/18446744073709551617"), malformed},
		"channel of no node":     {getChannel(c, "devices/nic0/channels/2.0/1"), malformed},
		"channel under a target": {getChannel(c, "devices/nic0/channels/2.0.1/1/1"), malformed},
		"channel of a node":      {openChannelAt(c, "devices/nic0/channels/2.0.1/1"), refusal{codes.NotFound, "NOT_SUBSCRIBED", "", "2.0.1/1"}},
		"open no such target":    {openChannelAt(c, "devices/nic0/channels/99"), refusal{codes.NotFound, "NOT_SUBSCRIBED", "", "99"}},
		"open control":           {openChannelAt(c, "devices/nic0/channels/0"), refusal{codes.NotFound, "NOT_SUBSCRIBED", "", "targets are 1 to 65535: no such target"}},
		"open twice":             {openChannelAt(c, loopback), refusal{codes.FailedPrecondition, "BUSY", "", "in use"}},
		"close unknown":          {closeChannel(c, "devices/nic0/channels/9"), noChannel},
		"close another's":        {closeChannel(c, "devices/app/channels/1"), notOwned},
		"send on another's":      {send(c, "devices/app/channels/1", nil), notOwned},
		"receive on another's":   {receive(c, "devices/app/channels/1"), notOwned},
		"send on unknown":        {send(c, "devices/nic0/channels/9", nil), noChannel},
		"send 57 bytes":          {send(c, loopback, make([]byte, 57)), refusal{codes.InvalidArgument, "TOO_LARGE", "payload", "SendInd and ReceiveInd in the process that has the device open"}},
		"events of nothing":      {listEvents(c, "devices"), parent},
		"program unknown":        {start(c, "devices/nic0/programs/none"), refusal{codes.NotFound, "NO_PROGRAM", "", `"none"`}},
		"program malformed":      {start(c, "devices/nic0/programs/"), malformed},
		"program escaped wrong":  {start(c, "devices/nic0/programs/%zz"), malformed},
		"program name too long":  {start(c, "devices/nic0/programs/"+strings.Repeat("p", 24)), refusal{codes.NotFound, "NO_PROGRAM", "", "ppp"}},
		"process unknown":        {stop(c, "devices/nic0/processes/77"), refusal{codes.NotFound, "NO_PROCESS", "", "stop nic0: process 77"}},
		"process malformed":      {stop(c, "devices/nic0/processes/seven"), malformed},
		"image empty":            {load(c, nic0, 0, 0), refusal{codes.InvalidArgument, "INVALID", "header.size_bytes", "at least 1"}},
		"image over the limit":   {load(c, nic0, 1001, 1001), refusal{codes.InvalidArgument, "TOO_LARGE", "header.size_bytes", "at most 1000"}},
		"image of unknown":       {load(c, "devices/none", 5, 5), noDevice},
		"image of no device":     {load(c, "none", 5, 5), refusal{codes.InvalidArgument, "INVALID", "header.parent", "is not"}},
		"image shorter":          {load(c, nic0, 5, 4), refusal{codes.InvalidArgument, "INVALID", "chunk", "ends after 4 of 5"}},
		"image longer":           {load(c, nic0, 5, 6), refusal{codes.InvalidArgument, "INVALID", "chunk", "longer than the 5"}},
		"image no program":       {load(c, nic0, 5, 5), refusal{codes.InvalidArgument, "INVALID", "", "image of 5 bytes"}},
		"trace of unknown":       {traced(c, &nfcommsv1.WatchLatencyRequest{Name: "devices/none"}), noDevice},
		"trace of too few":       {traced(c, &nfcommsv1.WatchLatencyRequest{Name: nic0, Every: 1<<30 + 1}), refusal{codes.InvalidArgument, "INVALID", "every", "one call in"}},
		"trace too often":        {traced(c, &nfcommsv1.WatchLatencyRequest{Name: nic0, Interval: durationpb.New(1)}), refusal{codes.InvalidArgument, "INVALID", "interval", "1ns is not 10ms"}},
		"trace backwards":        {traced(c, &nfcommsv1.WatchLatencyRequest{Name: nic0, Interval: durationpb.New(-1)}), refusal{codes.InvalidArgument, "INVALID", "interval", "is not 10ms"}},
		"load without header":    {upload(c, &nfcommsv1.LoadProgramRequest{}), refusal{codes.InvalidArgument, "INVALID", "header", "has none"}},
		"load nothing":           {upload(c), refusal{codes.InvalidArgument, "INVALID", "header", "before it began"}},
		"load an empty chunk":    {upload(c, header(nic0, 5), chunk(0)), refusal{codes.InvalidArgument, "INVALID", "chunk", "empty"}},
	}
	for name, bad := range cases {
		t.Run(name, func(t *testing.T) {
			err := bad.call(background(t))
			var e *control.Error
			require.ErrorAs(t, err, &e)
			require.Equal(t, bad.want.code, status.Code(err), err)
			require.Equal(t, bad.want.reason, e.Reason, err)
			require.ErrorContains(t, err, bad.want.text)
			require.Empty(t, bridgetest.Stutter(err.Error()), err)
			var field *control.FieldError
			if bad.want.field != "" {
				require.ErrorAs(t, err, &field)
				require.Equal(t, bad.want.field, field.Field)
			}
		})
	}
}

func get(c *control.Client, name string) func(context.Context) error {
	return func(ctx context.Context) error {
		_, err := c.Devices.GetDevice(ctx, &nfcommsv1.GetDeviceRequest{Name: name})
		return err
	}
}

func reset(c *control.Client, name string) func(context.Context) error {
	return func(ctx context.Context) error {
		_, err := c.Devices.ResetDevice(ctx, &nfcommsv1.ResetDeviceRequest{Name: name})
		return err
	}
}

func diagnose(c *control.Client, name string) func(context.Context) error {
	return func(ctx context.Context) error {
		_, err := c.Diagnostics.GetDiagnostics(ctx, &nfcommsv1.GetDiagnosticsRequest{Name: name})
		return err
	}
}

func ping(c *control.Client, name string) func(context.Context) error {
	return func(ctx context.Context) error {
		_, err := c.Diagnostics.PingDevice(ctx, &nfcommsv1.PingDeviceRequest{Name: name})
		return err
	}
}

func traced(c *control.Client, req *nfcommsv1.WatchLatencyRequest) func(context.Context) error {
	return func(ctx context.Context) error {
		_, err := watchLatency(ctx, c, req)
		return err
	}
}

func drain(c *control.Client, name string, timeout *durationpb.Duration) func(context.Context) error {
	return func(ctx context.Context) error {
		_, err := c.Devices.DrainDevice(ctx, &nfcommsv1.DrainDeviceRequest{Name: name, Timeout: timeout})
		return err
	}
}

func listDevices(c *control.Client, size int32, token string) func(context.Context) error {
	return func(ctx context.Context) error {
		_, err := c.Devices.ListDevices(ctx, &nfcommsv1.ListDevicesRequest{PageSize: size, PageToken: token})
		return err
	}
}

func watchDevices(c *control.Client, token string) func(context.Context) error {
	return func(ctx context.Context) error {
		s, err := c.Devices.WatchDevices(ctx, &nfcommsv1.WatchDevicesRequest{ResumeToken: token})
		if err == nil {
			_, err = s.Recv()
		}
		return err
	}
}

func listChannels(c *control.Client, parent string) func(context.Context) error {
	return func(ctx context.Context) error {
		_, err := c.Channels.ListChannels(ctx, &nfcommsv1.ListChannelsRequest{Parent: parent})
		return err
	}
}

func getChannel(c *control.Client, name string) func(context.Context) error {
	return func(ctx context.Context) error {
		_, err := c.Channels.GetChannel(ctx, &nfcommsv1.GetChannelRequest{Name: name})
		return err
	}
}

func openChannelAt(c *control.Client, name string) func(context.Context) error {
	return func(ctx context.Context) error {
		_, err := c.Channels.OpenChannel(ctx, &nfcommsv1.OpenChannelRequest{Name: name})
		return err
	}
}

func closeChannel(c *control.Client, name string) func(context.Context) error {
	return func(ctx context.Context) error {
		_, err := c.Channels.CloseChannel(ctx, &nfcommsv1.CloseChannelRequest{Name: name})
		return err
	}
}

// send avoids Client.Send, which refuses long messages itself.
func send(c *control.Client, name string, payload []byte) func(context.Context) error {
	return func(ctx context.Context) error {
		_, err := c.Messages.SendMessage(ctx, &nfcommsv1.SendMessageRequest{Name: name, Payload: payload})
		return err
	}
}

func receive(c *control.Client, name string) func(context.Context) error {
	return func(ctx context.Context) error { _, err := c.Receive(ctx, name); return err }
}

func listEvents(c *control.Client, parent string) func(context.Context) error {
	return func(ctx context.Context) error {
		_, err := c.Events.ListEvents(ctx, &nfcommsv1.ListEventsRequest{Parent: parent})
		return err
	}
}

func start(c *control.Client, name string) func(context.Context) error {
	return func(ctx context.Context) error {
		_, err := c.Devices.StartProgram(ctx, &nfcommsv1.StartProgramRequest{Name: name})
		return err
	}
}

func stop(c *control.Client, name string) func(context.Context) error {
	return func(ctx context.Context) error {
		_, err := c.Devices.StopProgram(ctx, &nfcommsv1.StopProgramRequest{Name: name})
		return err
	}
}

func header(parent string, size uint64) *nfcommsv1.LoadProgramRequest {
	return &nfcommsv1.LoadProgramRequest{Part: &nfcommsv1.LoadProgramRequest_Header{
		Header: &nfcommsv1.LoadProgramHeader{Parent: parent, SizeBytes: size},
	}}
}

func chunk(size int) *nfcommsv1.LoadProgramRequest {
	return &nfcommsv1.LoadProgramRequest{Part: &nfcommsv1.LoadProgramRequest_Chunk{Chunk: bytes.Repeat([]byte("x"), size)}}
}

// load announces an image of one size and sends another, in two chunks.
func load(c *control.Client, parent string, announced uint64, size int) func(context.Context) error {
	return upload(c, header(parent, announced), chunk(size/2), chunk(size-size/2))
}

func upload(c *control.Client, parts ...*nfcommsv1.LoadProgramRequest) func(context.Context) error {
	return func(ctx context.Context) error {
		s, err := c.Devices.LoadProgram(ctx)
		if err != nil {
			return err
		}
		for _, p := range parts {
			if s.Send(p) != nil {
				break // the server has refused: Recv says why
			}
		}
		_ = s.CloseSend()
		for err == nil {
			_, err = s.Recv()
		}
		return err
	}
}

// channelToken is a page token that a list of channels gave.
func channelToken(t testing.TB, c *control.Client) string {
	r, err := c.Channels.ListChannels(background(t), &nfcommsv1.ListChannelsRequest{Parent: control.AllDevices, PageSize: 1})
	require.NoError(t, err)
	require.NotEmpty(t, r.NextPageToken)
	return r.NextPageToken
}

// eventToken is a resume token that a watch of events gave.
func eventToken(t testing.TB, c *control.Client) string {
	for r, err := range c.WatchEvents(background(t), control.AllDevices) {
		require.NoError(t, err)
		if r.ResumeToken != "" {
			return r.ResumeToken
		}
	}
	panic("unreachable")
}
