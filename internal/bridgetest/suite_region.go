package bridgetest

import (
	"context"
	"math"

	"github.com/stretchr/testify/require"

	"github.com/nfcomms/nfcomms/bridge"
	"github.com/nfcomms/nfcomms/bridge/abi"
	"github.com/nfcomms/nfcomms/internal/pattern"
)

var regionCases = []testCase{
	{"region/transfers", regionTransfers},
	{"region/refused", regionRefused},
	{"region/in-use", regionInUse},
	{"region/reset", regionReset},
	{"region/device-close", regionDeviceClose},
	{"region/stays", regionStays},
}

// region is what a call of Alloc or Register must give.
func (e *Env) region(r bridge.Region, err error) bridge.Region {
	e.Helper()
	require.NoError(e, err)
	return r
}

// registered requires so many regions of so many bytes.
func (e *Env) registered(dev bridge.Device, regions int, bytes uint64) {
	e.Helper()
	s := dev.Stats()
	require.Equal(e, regions, s.Regions)
	require.Equal(e, bytes, s.RegionBytes)
}

// regionTransfers: transfers from inside a region, at its edges and across them,
// arrive like others, and those inside are counted.
func regionTransfers(e *Env) {
	dev := e.device("")
	ch := e.Ports(dev, "loopback", 1)[0]
	const size = 10 * abi.PageSize
	around := NewBuffer(size+200, 0)
	own := e.region(dev.Register(around.Data[100 : 100+size]))
	got := e.region(dev.Alloc(size))
	require.Equal(e, make([]byte, size), got.Bytes())
	e.registered(dev, 2, 2*size)
	inside := uint64(0)
	for i, part := range [][2]int{{100, 100 + size}, {100, 101}, {99 + size, 100 + size}, {4711, 4711 + 5*abi.PageSize},
		{99, 200}, {50 + size, 150 + size}, {0, 100}, {100 + size, 200 + size}} {
		data := around.Data[part[0]:part[1]]
		pattern.Fill(data, 0, uint64(i))
		require.NoError(e, ch.SendInd(e.Ctx(), data))
		back := got.Bytes()[size-len(data):]
		require.NoError(e, ch.ReceiveInd(e.Ctx(), back))
		require.Negative(e, pattern.Diff(back, 0, uint64(i)), "part %v", part)
		if inside++; i < 4 {
			inside++
		}
	}
	require.Equal(e, inside, dev.Stats().Registered)
	require.NoError(e, own.Close())
	e.registered(dev, 1, size)
	require.NoError(e, ch.SendInd(e.Ctx(), around.Data[100:100+size]), "as before it was registered")
	require.NoError(e, ch.ReceiveInd(e.Ctx(), got.Bytes()))
	require.Equal(e, inside+1, dev.Stats().Registered)
	e.Check(around)
}

// regionRefused: what cannot be a region is refused, with one error each, and
// changes nothing.
func regionRefused(e *Env) {
	dev := e.device("")
	for _, size := range []int{0, -1, math.MinInt} {
		_, err := dev.Alloc(size)
		require.ErrorIs(e, err, bridge.ErrInvalid, "size %d", size)
	}
	_, err := dev.Alloc(math.MaxInt)
	require.ErrorIs(e, err, bridge.ErrNoMemory)
	_, err = dev.Register(nil)
	require.ErrorIs(e, err, bridge.ErrInvalid)
	mem := make([]byte, 300)
	r := e.region(dev.Register(mem[100:200]))
	for _, part := range [][2]int{{100, 200}, {0, 300}, {0, 101}, {199, 300}, {150, 151}} {
		_, err := dev.Register(mem[part[0]:part[1]])
		require.ErrorIs(e, err, bridge.ErrBusy, "part %v", part)
	}
	e.registered(dev, 1, 100)
	beside := []bridge.Region{e.region(dev.Register(mem[:100])), e.region(dev.Register(mem[200:]))}
	require.NoError(e, r.Close())
	r = e.region(dev.Register(mem[100:200]))
	for _, r := range append(beside, r) {
		require.NoError(e, r.Close())
		require.NoError(e, r.Close(), "again")
		require.Nil(e, r.Bytes())
	}
	e.registered(dev, 0, 0)
	e.tooManyRegions(dev)
}

// tooManyRegions registers as many as there can be, and one more.
func (e *Env) tooManyRegions(dev bridge.Device) {
	e.Helper()
	mem := make([]byte, 1<<16)
	var all []bridge.Region
	for {
		r, err := dev.Register(mem[len(all) : len(all)+1])
		if err != nil {
			require.ErrorIs(e, err, bridge.ErrNoMemory)
			break
		}
		all = append(all, r)
	}
	require.Len(e, all, 1024)
	for _, r := range all {
		require.NoError(e, r.Close())
	}
	e.registered(dev, 0, 0)
}

// regionInUse: a region is not released under a transfer, whose end frees it.
func regionInUse(e *Env) {
	dev := e.device("")
	ports := e.Ports(dev, "hold", 2)
	r := e.region(dev.Alloc(3 * abi.PageSize))
	ctx, cancel := context.WithCancel(e.Ctx())
	send := Call("send", func() error { return ports[0].SendInd(ctx, r.Bytes()[100:5000]) })
	e.UntilBlocked(dev, 1)
	require.ErrorIs(e, r.Close(), bridge.ErrBusy)
	require.Len(e, r.Bytes(), 3*abi.PageSize)
	e.registered(dev, 1, 3*abi.PageSize)
	cancel()
	e.IsWithdrawn(e.Wait(send), context.Canceled)
	require.NoError(e, r.Close())
	e.registered(dev, 0, 0)
}

// regionReset: a region stays over a reset, also under a transfer that it ends.
func regionReset(e *Env) {
	dev := e.device("")
	r := e.region(dev.Alloc(1 << 20))
	port := e.Ports(dev, "hold", 1)[0]
	send := Call("send", func() error { return port.SendInd(e.Ctx(), r.Bytes()) })
	e.UntilBlocked(dev, 1)
	require.NoError(e, dev.Reset(e.Ctx()))
	require.ErrorIs(e, e.Wait(send), bridge.ErrDeviceLost)
	ch := e.Ports(dev, "loopback", 1)[0]
	pattern.Fill(r.Bytes(), 0, 3)
	before := dev.Stats().Registered
	require.NoError(e, ch.SendInd(e.Ctx(), r.Bytes()))
	clear(r.Bytes())
	require.NoError(e, ch.ReceiveInd(e.Ctx(), r.Bytes()))
	require.Negative(e, pattern.Diff(r.Bytes(), 0, 3))
	require.Equal(e, before+2, dev.Stats().Registered)
	require.NoError(e, r.Close())
}

// regionDeviceClose: a device takes its regions with it.
func regionDeviceClose(e *Env) {
	dev := e.device("")
	mem := make([]byte, 1000)
	registered, allocated := e.region(dev.Register(mem)), e.region(dev.Alloc(1000))
	require.NoError(e, dev.Close())
	for _, r := range []bridge.Region{registered, allocated} {
		require.Nil(e, r.Bytes())
		require.NoError(e, r.Close())
	}
	_, err := dev.Alloc(1000)
	require.ErrorIs(e, err, bridge.ErrClosed)
	_, err = dev.Register(mem)
	require.ErrorIs(e, err, bridge.ErrClosed)
	e.registered(dev, 0, 0)
	mem[0], mem[999] = 1, 1 // the caller's alone
}

// regionStays: a channel to a process carries neither memory nor ends, whatever the device has. The error
// says so, and both stay.
func regionStays(e *Env) {
	dev := e.device("")
	ports := e.Ports(dev, "loopback", 2)
	m, ok := ports[0].(bridge.Mover)
	if !ok {
		return // package nfcomms says so
	}
	own, other := e.region(dev.Register(make([]byte, 100))), e.region(dev.Alloc(100))
	for _, r := range []bridge.Region{own, other, nil} {
		require.ErrorIs(e, m.SendRegion(e.Ctx(), r), bridge.ErrNotSupported)
	}
	require.ErrorIs(e, m.SendChannel(e.Ctx(), ports[1]), bridge.ErrNotSupported)
	_, err := m.ReceiveRegion(e.Ctx())
	require.ErrorIs(e, err, bridge.ErrNotSupported)
	_, err = m.ReceiveChannel(e.Ctx())
	require.ErrorIs(e, err, bridge.ErrNotSupported)
	e.registered(dev, 2, 200)
	for _, ch := range ports {
		e.Echo(ch, []byte("goes on"))
	}
}
