package control_test

import (
	"bytes"
	"context"
	"log/slog"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/metadata"

	"github.com/nfcomms/nfcomms/pkg/control"
	"github.com/nfcomms/nfcomms/pkg/control/proto/nfcomms/v1"
)

// journal is a log that several goroutines write to.
type journal struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (j *journal) Write(p []byte) (int, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.b.Write(p)
}

func (j *journal) String() string {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.b.String()
}

// callerIn takes the name of the caller from the metadata of the call.
func callerIn(ctx context.Context) string {
	md, _ := metadata.FromIncomingContext(ctx)
	return strings.Join(md.Get("caller"), "")
}

// events lists all kept events.
func events(t testing.TB, c *control.Client) []*nfcommsv1.Event {
	r, err := c.Events.ListEvents(background(t), &nfcommsv1.ListEventsRequest{Parent: control.AllDevices, PageSize: 1000})
	require.NoError(t, err)
	require.Empty(t, r.NextPageToken)
	return r.Events
}

// TestALoopDoesNotFlushTheEvents: what one caller does a thousand times is reported a few times and
// then counted, in the events and in the log. The events of others are reported as before.
func TestALoopDoesNotFlushTheEvents(t *testing.T) {
	var log journal
	srv, c := serveSim(t, control.Options{Caller: callerIn, Logger: slog.New(slog.NewTextHandler(&log, nil))})
	by := func(name string) context.Context {
		return metadata.AppendToOutgoingContext(background(t), "caller", name)
	}
	loop := by("uid 7")
	for range 300 {
		_, err := c.Channels.OpenChannel(loop, &nfcommsv1.OpenChannelRequest{Name: loopback})
		require.NoError(t, err)
		_, err = c.Channels.CloseChannel(loop, &nfcommsv1.CloseChannelRequest{Name: loopback})
		require.NoError(t, err)
		_, err = c.Devices.DrainDevice(loop, &nfcommsv1.DrainDeviceRequest{Name: nic0})
		require.NoError(t, err)
		_, err = c.Devices.ResumeDevice(loop, &nfcommsv1.ResumeDeviceRequest{Name: nic0})
		require.NoError(t, err)
	}
	other := by("uid 8")
	_, err := c.Channels.OpenChannel(other, &nfcommsv1.OpenChannelRequest{Name: loopback})
	require.NoError(t, err)
	all := events(t, c)
	require.Less(t, len(all), 100, "of 1,800")
	last := all[len(all)-1]
	require.Equal(t, nfcommsv1.Event_TYPE_CHANNEL_OPENED, last.Type)
	require.Equal(t, "uid 8", last.Caller)
	_, err = c.Devices.ResetDevice(loop, &nfcommsv1.ResetDeviceRequest{Name: nic0})
	require.NoError(t, err)
	all = events(t, c)
	for _, e := range all {
		if e.Type == nfcommsv1.Event_TYPE_RESET {
			last = e
		}
	}
	require.Equal(t, nfcommsv1.Event_TYPE_RESET, last.Type, "a reset is told always")
	require.Equal(t, "uid 7", last.Caller)
	require.NoError(t, srv.Shutdown(background(t)))
	require.Less(t, strings.Count(log.String(), "\n"), 120)
	require.Regexp(t, `msg="[0-9]+ more: .* channel opened" resource=devices/nic0 event=suppressed caller="uid 7"`, log.String())
}
