package control_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/status"

	"github.com/nfcomms/nfcomms/pkg/control"
	"github.com/nfcomms/nfcomms/pkg/control/proto/nfcomms/v1"
	"github.com/nfcomms/nfcomms/pkg/nfcomms/admin"
)

type deviceWatch = grpc.ServerStreamingClient[nfcommsv1.WatchDevicesResponse]

func watchFrom(t testing.TB, ctx context.Context, c *control.Client, token string) deviceWatch {
	s, err := c.Devices.WatchDevices(ctx, &nfcommsv1.WatchDevicesRequest{ResumeToken: token})
	require.NoError(t, err)
	return s
}

// untilSynced returns what precedes SYNCED, and the token with it.
func untilSynced(t testing.TB, s deviceWatch) (before []*nfcommsv1.WatchDevicesResponse, token string) {
	for {
		r, err := s.Recv()
		require.NoError(t, err)
		if r.Change == nfcommsv1.Change_CHANGE_SYNCED {
			require.Nil(t, r.Device)
			require.NotEmpty(t, r.ResumeToken)
			return before, r.ResumeToken
		}
		before = append(before, r)
	}
}

// churn drains and resumes a device: two changes at least.
func churn(t testing.TB, c *control.Client, name string) {
	_, err := c.Devices.DrainDevice(background(t), &nfcommsv1.DrainDeviceRequest{Name: name})
	require.NoError(t, err)
	_, err = c.Devices.ResumeDevice(background(t), &nfcommsv1.ResumeDeviceRequest{Name: name})
	require.NoError(t, err)
}

func TestWatchAndResume(t *testing.T) {
	srv, c := serve(t, control.Options{})
	for _, name := range []string{"b", "a", "c"} {
		require.NoError(t, srv.Open(background(t), name, "sim:"))
	}
	ctx, cancel := context.WithCancel(background(t))
	s := watchFrom(t, ctx, c, "")
	snapshot, token := untilSynced(t, s)
	require.Len(t, snapshot, 3)
	for i, name := range []string{"devices/a", "devices/b", "devices/c"} {
		require.Equal(t, nfcommsv1.Change_CHANGE_SNAPSHOT, snapshot[i].Change)
		require.Equal(t, name, snapshot[i].Device.Name)
		require.Nil(t, snapshot[i].Device.Stats)
		require.Empty(t, snapshot[i].ResumeToken, "a snapshot cannot be resumed")
	}
	churn(t, c, "devices/b")
	r, err := s.Recv()
	require.NoError(t, err)
	require.Equal(t, nfcommsv1.Change_CHANGE_UPDATED, r.Change)
	require.Equal(t, nfcommsv1.Device_STATE_DRAINED, r.Device.State)
	first := r.Revision
	cancel()
	_, err = s.Recv()
	for err == nil {
		_, err = s.Recv()
	}
	require.ErrorIs(t, err, context.Canceled)

	// Changes that happened meanwhile arrive, and none twice.
	require.NoError(t, srv.Remove("c"))
	s = watchFrom(t, background(t), c, r.ResumeToken)
	missed, _ := untilSynced(t, s)
	require.NotEmpty(t, missed)
	for i, m := range missed {
		require.Equal(t, first+int64(i)+1, m.Revision)
	}
	last := missed[len(missed)-1]
	require.Equal(t, nfcommsv1.Change_CHANGE_DELETED, last.Change)
	require.Equal(t, "devices/c", last.Device.Name)
	again, _ := untilSynced(t, watchFrom(t, background(t), c, token))
	require.Len(t, again, len(missed)+1, "the older token resumes one change earlier")
	none, _ := untilSynced(t, watchFrom(t, background(t), c, last.ResumeToken))
	require.Empty(t, none)
}

func TestWatchChannels(t *testing.T) {
	srv, c := serveSim(t, quick)
	require.NoError(t, srv.Open(background(t), "nic", "sim:")) // a name that begins as the other
	openChannel(t, c, loopback)
	openChannel(t, c, "devices/nic/channels/2")
	next := func(s grpc.ServerStreamingClient[nfcommsv1.WatchChannelsResponse]) *nfcommsv1.WatchChannelsResponse {
		r, err := s.Recv()
		require.NoError(t, err)
		return r
	}
	s, err := c.Channels.WatchChannels(background(t), &nfcommsv1.WatchChannelsRequest{Parent: "devices/nic"})
	require.NoError(t, err)
	require.Equal(t, "devices/nic/channels/2", next(s).Channel.Name)
	require.Equal(t, nfcommsv1.Change_CHANGE_SYNCED, next(s).Change)
	_, err = c.Channels.CloseChannel(background(t), &nfcommsv1.CloseChannelRequest{Name: loopback})
	require.NoError(t, err)
	openChannel(t, c, "devices/nic/channels/1")
	r := next(s)
	require.Equal(t, nfcommsv1.Change_CHANGE_CREATED, r.Change)
	require.Equal(t, "devices/nic/channels/1", r.Channel.Name, "the other device's close is not told")
	require.Nil(t, r.Channel.Stats)
	seen := 0
	for r, err := range c.WatchChannels(background(t), control.AllDevices) {
		require.NoError(t, err)
		if r.Change == nfcommsv1.Change_CHANGE_SYNCED {
			break
		}
		seen++
	}
	require.Equal(t, 2, seen)
	require.NoError(t, srv.Remove("nic"))
	gone := map[string]bool{}
	for range 2 {
		r := next(s)
		require.Equal(t, nfcommsv1.Change_CHANGE_DELETED, r.Change)
		require.Equal(t, nfcommsv1.Channel_STATE_CLOSED, r.Channel.State)
		gone[r.Channel.Name] = true
	}
	require.Len(t, gone, 2)
}

// TestAnotherSession: a token of an earlier server says to start anew, and
// the client's own watch does so.
func TestAnotherSession(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s.sock")
	c, err := control.Dial("unix://" + path)
	require.NoError(t, err)
	defer c.Close()

	stop := serveUnix(t, path)
	ctx, cancel := context.WithCancel(background(t))
	defer cancel()
	var token string
	var expired, snapshots int
	for r, err := range c.WatchDevices(ctx) {
		switch {
		case errors.Is(err, control.ErrResumeExpired):
			expired++
			continue
		case expired == 1 && snapshots == 2 && err != nil:
			require.ErrorIs(t, err, context.Canceled)
			continue
		}
		require.NoError(t, err)
		switch r.Change {
		case nfcommsv1.Change_CHANGE_SNAPSHOT:
			snapshots++
		case nfcommsv1.Change_CHANGE_SYNCED:
			if snapshots == 1 {
				token = r.ResumeToken
				stop()
				stop = serveUnix(t, path)
			} else {
				cancel()
			}
		}
	}
	require.Equal(t, 1, expired)
	require.Equal(t, 2, snapshots)
	err = watchDevices(c, token)(background(t))
	require.ErrorIs(t, err, control.ErrResumeExpired)
	require.Equal(t, codes.OutOfRange, status.Code(err))
	stop()
}

// serveUnix serves a device on a UNIX socket until stop.
func serveUnix(t testing.TB, path string) (stop func()) {
	srv := control.New(control.Options{ProbeTimeout: patientProbe})
	require.NoError(t, srv.Open(background(t), "nic0", "sim:"))
	l, err := net.Listen("unix", path)
	require.NoError(t, err)
	gs := grpc.NewServer()
	srv.Register(gs)
	served := make(chan error, 1)
	go func() { served <- gs.Serve(l) }()
	return func() {
		require.NoError(t, srv.Shutdown(background(t)))
		gs.GracefulStop()
		require.NoError(t, <-served)
	}
}

// TestManyWatchers: a thousand streams see the same changes in the same order.
func TestManyWatchers(t *testing.T) {
	const watchers, conns = 1000, 4
	srv := control.New(control.Options{WatchBuffer: 4096, ProbeTimeout: patientProbe})
	dial := listen(t, srv)
	require.NoError(t, srv.Open(background(t), "nic0", "sim:"))
	ctx, cancel := context.WithCancel(background(t))
	defer cancel()
	var watching, synced sync.WaitGroup
	streams := make([]deviceWatch, watchers)
	var clients []*control.Client
	for range conns {
		clients = append(clients, connect(t, dial))
	}
	for i := range streams {
		streams[i] = watchFrom(t, ctx, clients[i%conns], "")
	}
	failed := make(chan error, watchers)
	synced.Add(watchers)
	for _, s := range streams {
		watching.Go(func() { failed <- seeChanges(s, &synced) })
	}
	synced.Wait()
	for range 10 {
		churn(t, clients[0], nic0)
	}
	require.NoError(t, srv.Remove("nic0"))
	watching.Wait()
	close(failed)
	for err := range failed {
		require.NoError(t, err)
	}
}

// seeChanges reads until the device is removed; revisions must have no gap.
func seeChanges(s deviceWatch, synced *sync.WaitGroup) error {
	last, updates := int64(0), 0
	for {
		r, err := s.Recv()
		switch {
		case err != nil:
			return err
		case r.Change == nfcommsv1.Change_CHANGE_SYNCED:
			last = r.Revision
			synced.Done()
			continue
		case r.Change == nfcommsv1.Change_CHANGE_SNAPSHOT:
			continue
		case r.Revision != last+1:
			return fmt.Errorf("revision %d after %d", r.Revision, last)
		case r.Change == nfcommsv1.Change_CHANGE_DELETED && updates < 20:
			return fmt.Errorf("%d updates, want 20", updates)
		case r.Change == nfcommsv1.Change_CHANGE_DELETED:
			return nil
		}
		last = r.Revision
		updates++
	}
}

// TestClientThatStopsReading: it is cut off, holds nobody up, and may resume.
func TestClientThatStopsReading(t *testing.T) {
	_, c := serveSim(t, control.Options{WatchBuffer: 16})
	stuck := watchFrom(t, background(t), c, "")
	_, token := untilSynced(t, stuck)
	reader := watchFrom(t, background(t), c, "")
	untilSynced(t, reader)

	// More than the windows of a stream hold, while another client keeps up.
	var last *nfcommsv1.WatchDevicesResponse
	for last == nil || last.Revision < 1500 {
		churn(t, c, nic0)
		for range 2 {
			r, err := reader.Recv()
			require.NoError(t, err, "one that reads is not cut off")
			last = r
		}
	}
	seen := 0
	var err error
	for err == nil {
		var r *nfcommsv1.WatchDevicesResponse
		if r, err = stuck.Recv(); err == nil {
			seen, token = seen+1, r.ResumeToken
		}
	}
	require.ErrorIs(t, err, control.ErrSlowWatcher)
	require.Equal(t, codes.ResourceExhausted, status.Code(err))
	require.Less(t, seen, 1500, "the rest is not kept for it")
	rest, _ := untilSynced(t, watchFrom(t, background(t), c, token))
	require.GreaterOrEqual(t, rest[len(rest)-1].Revision, last.Revision, "it resumes where it was")
}

// TestShutdownEndsWatches with a status that may be resumed, and refuses calls.
func TestShutdownEndsWatches(t *testing.T) {
	srv, c := serveSim(t, control.Options{})
	openChannel(t, c, loopback)
	s := watchFrom(t, background(t), c, "")
	untilSynced(t, s)
	beat, err := c.Health.Watch(background(t), &healthpb.HealthCheckRequest{})
	require.NoError(t, err)
	r, err := beat.Recv()
	require.NoError(t, err)
	require.Equal(t, healthpb.HealthCheckResponse_SERVING, r.Status)
	upload, err := c.Devices.LoadProgram(background(t))
	require.NoError(t, err)
	require.NoError(t, upload.Send(header(nic0, 10)))
	dev := first(srv)

	require.NoError(t, srv.Shutdown(background(t)))
	require.NoError(t, srv.Shutdown(background(t)), "it is idempotent")
	for err == nil {
		_, err = s.Recv()
	}
	require.ErrorIs(t, err, control.ErrShutdown)
	require.Equal(t, codes.Unavailable, status.Code(err))
	for err = nil; err == nil; r, err = beat.Recv() {
		if r.GetStatus() == healthpb.HealthCheckResponse_NOT_SERVING {
			break
		}
	}
	require.NoError(t, err, "a watcher of the health hears of it first")
	_, err = beat.Recv()
	require.ErrorIs(t, err, control.ErrShutdown)
	_, err = upload.Recv()
	require.ErrorIs(t, err, control.ErrShutdown)
	_, err = c.Devices.ListDevices(background(t), nil)
	require.ErrorIs(t, err, control.ErrShutdown)
	require.ErrorIs(t, srv.Open(background(t), "late", "sim:"), control.ErrShutdown)
	_, err = dev.Health()
	require.Error(t, err, "the server's own device is closed")
	require.NotErrorIs(t, err, io.EOF)
}

// TestShutdownKeepsTheApplicationsDevice open, without remote channels.
func TestShutdownKeepsTheApplicationsDevice(t *testing.T) {
	srv, c := serve(t, control.Options{})
	dev := open(t, "sim:")
	require.NoError(t, srv.Attach("nic0", dev))
	openChannel(t, c, loopback)
	require.NoError(t, srv.Shutdown(background(t)))
	require.Empty(t, admin.Channels(dev))
	_, err := dev.Health()
	require.NoError(t, err)
}

// TestShutdownThatTakesTooLong says so when its context ends.
func TestShutdownThatTakesTooLong(t *testing.T) {
	srv := control.New(control.Options{ProbeTimeout: patientProbe})
	require.NoError(t, srv.Open(background(t), "nic0", "sim:"))
	ctx, cancel := context.WithDeadline(background(t), time.Now().Add(-time.Second))
	defer cancel()
	if err := srv.Shutdown(ctx); err != nil { // it may have been over at once
		require.ErrorIs(t, err, context.DeadlineExceeded)
	}
	require.NoError(t, srv.Shutdown(background(t)))
}
