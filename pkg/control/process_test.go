package control_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/nfcomms/nfcomms/pkg/control"
	"github.com/nfcomms/nfcomms/pkg/control/proto/nfcomms/v1"
	"github.com/nfcomms/nfcomms/pkg/nfcomms"
)

// running lists the processes of all devices as "number program".
func running(t *testing.T, c *control.Client, size int32) []string {
	t.Helper()
	var all []string
	for token := ""; ; {
		r, err := c.Devices.ListProcesses(background(t), &nfcommsv1.ListProcessesRequest{Parent: control.AllDevices, PageSize: size, PageToken: token})
		require.NoError(t, err)
		for _, p := range r.Processes {
			require.NotZero(t, p.GetStartTime().AsTime().Unix())
			all = append(all, strings.TrimPrefix(p.Name, "devices/")+" "+strings.TrimPrefix(p.Program, "devices/nic0/programs/"))
		}
		if token = r.NextPageToken; token == "" {
			return all
		}
	}
}

// run starts a program and returns the name of its process.
func run(t *testing.T, c *control.Client, program string) string {
	t.Helper()
	r, err := c.Devices.StartProgram(background(t), &nfcommsv1.StartProgramRequest{Name: "devices/nic0/programs/" + program})
	require.NoError(t, err)
	return r.Process.Name
}

// TestProcesses: what clients started is listed, page by page, until it is
// stopped or the device is reset, by whomever.
func TestProcesses(t *testing.T) {
	dev := open(t, "sim:")
	srv, c := serve(t, quick)
	require.NoError(t, srv.Attach("nic0", dev))
	require.Empty(t, running(t, c, 0))
	first := run(t, c, "hold")
	for range 11 { // numbers of one digit and of two
		run(t, c, "hold")
	}
	all := running(t, c, 5)
	require.Len(t, all, 12)
	require.Equal(t, strings.TrimPrefix(first, "devices/")+" hold", all[0])
	require.Equal(t, all, running(t, c, 0))

	_, err := c.Devices.StopProgram(background(t), &nfcommsv1.StopProgramRequest{Name: first})
	require.NoError(t, err)
	require.Equal(t, all[1:], running(t, c, 0))
	require.NoError(t, dev.Reset(background(t)), "by the application")
	require.Empty(t, running(t, c, 0))
	run(t, c, "hold")
	_, err = c.Devices.ResetDevice(background(t), &nfcommsv1.ResetDeviceRequest{Name: "devices/nic0"})
	require.NoError(t, err)
	require.Empty(t, running(t, c, 0))
}

// TestProcessesAreBounded: processes that return by themselves do not add up, however
// seldom the device is probed.
func TestProcessesAreBounded(t *testing.T) {
	dev := open(t, "sim:")
	srv, c := serve(t, quick)
	require.NoError(t, srv.Attach("nic0", dev))
	most := dev.Info().Contexts
	for n := 0; n < most+10; { // lone.spin returns at once with an argument of 0
		_, err := c.Devices.StartProgram(background(t), &nfcommsv1.StartProgramRequest{Name: "devices/nic0/programs/lone.spin"})
		if err == nil {
			n++
			continue
		}
		require.ErrorIs(t, err, nfcomms.ErrNoMemory, "those before are on their way out")
	}
	require.LessOrEqual(t, len(running(t, c, 0)), most)
}

// TestErrorsNameTheDevice: of two devices with one address the error says which,
// and its details keep the address.
func TestErrorsNameTheDevice(t *testing.T) {
	srv, c := serve(t, quick)
	for _, name := range []string{"nic0", "nic1"} {
		require.NoError(t, srv.Open(background(t), name, "sim:"))
	}
	for _, name := range []string{"nic0", "nic1"} {
		_, err := c.Channels.OpenChannel(background(t), &nfcommsv1.OpenChannelRequest{Name: control.ChannelName(name, 4711)})
		require.ErrorIs(t, err, nfcomms.ErrNotSubscribed)
		require.ErrorContains(t, err, fmt.Sprintf("subscribe %s target 4711", name))
		var op *nfcomms.OpError
		require.ErrorAs(t, err, &op)
		require.Equal(t, "sim:", op.Device)
	}
}

// TestProcessEndsByItself: it leaves the list, and an event names it; one that is stopped ends
// with the event of that alone.
func TestProcessEndsByItself(t *testing.T) {
	_, c := serveSim(t, quick)
	stays := run(t, c, "hold")
	ends := run(t, c, "lone.spin") // for no time
	require.Eventually(t, func() bool { return len(running(t, c, 0)) == 1 }, time.Minute, time.Millisecond)
	_, err := c.Devices.StopProgram(background(t), &nfcommsv1.StopProgramRequest{Name: stays})
	require.NoError(t, err)
	_, err = c.Devices.StopProgram(background(t), &nfcommsv1.StopProgramRequest{Name: ends})
	require.ErrorIs(t, err, control.ErrNoProcess)
	r, err := c.Events.ListEvents(background(t), &nfcommsv1.ListEventsRequest{Parent: control.AllDevices})
	require.NoError(t, err)
	last := make(map[string]nfcommsv1.Event_Type)
	for _, e := range r.Events {
		last[e.Resource] = e.Type
	}
	require.Equal(t, nfcommsv1.Event_TYPE_PROCESS_ENDED, last[ends])
	require.Equal(t, nfcommsv1.Event_TYPE_PROCESS_STOPPED, last[stays])
}
