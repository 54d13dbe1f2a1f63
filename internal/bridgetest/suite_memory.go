package bridgetest

import (
	"errors"
	"runtime"
	"sync"

	"github.com/stretchr/testify/require"

	"github.com/nfcomms/nfcomms/bridge"
	"github.com/nfcomms/nfcomms/bridge/abi"
)

// memoryCases are about memory of a caller that cannot be reached. Each call that takes it fails, and
// nothing else does.
var memoryCases = []testCase{
	{"memory/send", memorySend},
	{"memory/receive", memoryReceive},
	{"memory/try", memoryTry},
	{"memory/place", memoryPlace},
	{"memory/begun", memoryBegun},
	{"memory/region", memoryRegion},
	{"memory/load", memoryLoad},
	{"memory/vanishes", memoryVanishes},
}

// badSizes are sizes, and the first byte whose page cannot be reached.
var badSizes = []struct{ size, good int }{
	{1, 0}, {4096, 0}, {40 << 10, 20 << 10}, {100 << 10, 60 << 10}, {3<<20 + 5, 0}, {3<<20 + 5, 2<<20 + 4096*3}, {3<<20 + 5, 3 << 20},
}

// isDMA requires the outcome of a transfer of which the page of byte good, and those that follow,
// could not be reached. It reports whether the transfer began: a driver refuses memory before that,
// and does not report a place.
func (e *Env) isDMA(err error, size, good int) (began bool) {
	e.Helper()
	require.ErrorIs(e, err, bridge.ErrDMA)
	var where *bridge.TransferError
	if !errors.As(err, &where) {
		return false
	}
	require.EqualValues(e, size, where.Processed+where.Outstanding)
	require.LessOrEqual(e, where.Processed, uint64(good/abi.PageSize*abi.PageSize))
	return true
}

// failed requires the same of a receive, and takes what is still offered.
func (e *Env) failed(err error, ch bridge.Channel, size, good int) {
	e.Helper()
	if !e.isDMA(err, size, good) {
		require.NoError(e, ch.ReceiveInd(e.Ctx(), make([]byte, size)))
	}
}

// goesOn requires that a loopback works.
func (e *Env) goesOn(ch bridge.Channel, size int) {
	e.Helper()
	e.Echo(ch, []byte("goes on"))
	e.echoInd(ch, make([]byte, size), make([]byte, size))
}

// echoInd sends bytes to a loopback and receives them.
func (e *Env) echoInd(ch bridge.Channel, data, back []byte) {
	e.Helper()
	require.NoError(e, ch.SendInd(e.Ctx(), data))
	require.NoError(e, ch.ReceiveInd(e.Ctx(), back))
}

// memorySend: nothing is delivered, whichever page it is.
func memorySend(e *Env) {
	dev := e.device("")
	ch, other := e.Ports(dev, "loopback", 1)[0], e.Ports(dev, "loopback", 1)[0]
	for _, c := range badSizes {
		for _, kind := range []string{"truncated file", "no access"} {
			mem := BadMemory(e.T, kind, c.size, c.good)
			e.isDMA(ch.SendInd(e.Ctx(), mem), c.size, c.good)
			e.goesOn(ch, c.size)
			e.Echo(other, []byte("unharmed"))
		}
	}
}

// memoryReceive: the device's process is released, and what is before the first page that cannot be
// reached may have come.
func memoryReceive(e *Env) {
	dev := e.device("")
	ch, other := e.Ports(dev, "loopback", 1)[0], e.Ports(dev, "loopback", 1)[0]
	for _, c := range badSizes {
		for _, kind := range []string{"truncated file", "no access", "read only"} {
			mem := BadMemory(e.T, kind, c.size, c.good)
			require.NoError(e, ch.SendInd(e.Ctx(), make([]byte, c.size)))
			e.failed(ch.ReceiveInd(e.Ctx(), mem), ch, c.size, c.good)
			e.goesOn(ch, c.size)
			e.Echo(other, []byte("unharmed"))
		}
	}
}

// memoryTry: the same of calls that try.
func memoryTry(e *Env) {
	dev := e.device("")
	ch := e.Ports(dev, "loopback", 1)[0]
	for _, c := range badSizes {
		mem := BadMemory(e.T, "truncated file", c.size, c.good)
		var err error
		e.Until("the target waits", func() bool {
			_, err = ch.TrySendInd(e.Ctx(), mem, nil)
			return err != nil
		})
		e.isDMA(err, c.size, c.good)
		require.NoError(e, ch.SendInd(e.Ctx(), make([]byte, c.size)))
		e.Until("the transfer is offered", func() bool {
			_, err = ch.TryReceiveInd(e.Ctx(), mem)
			return err != nil
		})
		e.failed(err, ch, c.size, c.good)
		e.goesOn(ch, c.size)
	}
}

// memoryPlace: memory that is found once the transfer is offered; its function is not called.
func memoryPlace(e *Env) {
	dev := e.device("")
	ch := e.Ports(dev, "loopback", 1)[0]
	for _, c := range badSizes {
		mem := BadMemory(e.T, "no access", c.size, c.good)
		require.NoError(e, ch.SendInd(e.Ctx(), make([]byte, c.size)))
		err := ch.ReceiveIndFunc(e.Ctx(), uint64(c.size), func() ([]byte, error) { return mem, nil }, func([]byte) error {
			e.Error("bytes that have not come")
			return nil
		})
		e.failed(err, ch, c.size, c.good)
		e.goesOn(ch, c.size)
	}
}

// memoryBegun: transfers that begin in one call and end in another.
func memoryBegun(e *Env) {
	dev := e.device("")
	ch := e.Ports(dev, "loopback", 1)[0]
	const size, good = 20 << 10, 8 << 10
	mem := BadMemory(e.T, "truncated file", size, good)
	var err error
	if b := beginSend(e.Ctx(), ch, mem); b != nil {
		err = e.sent(b, mem)
	} else {
		err = ch.SendInd(e.Ctx(), mem)
	}
	e.isDMA(err, size, good)
	b := beginReceive(e.Ctx(), ch, mem)
	require.NoError(e, ch.SendInd(e.Ctx(), make([]byte, size)))
	if b != nil {
		_, err = b.EndReceiveInd(e.Ctx(), mem, true)
	} else {
		err = ch.ReceiveInd(e.Ctx(), mem)
	}
	e.failed(err, ch, size, good)
	e.goesOn(ch, size)
}

// pinsRegions is the driver whose regions keep their pages when their addresses are protected.
const pinsRegions = "dev"

// memoryRegion: a region whose memory its owner takes away, and others beside it.
func memoryRegion(e *Env) {
	dev := e.device("")
	ch := e.Ports(dev, "loopback", 1)[0]
	const size = 1 << 20
	mem, err := mapMemory(size)
	require.NoError(e, err)
	own, beside := e.region(dev.Register(mem)), e.region(dev.Alloc(size))
	e.echoInd(ch, mem, beside.Bytes())
	require.NoError(e, protect(mem[abi.PageSize:], noAccess))
	err = ch.SendInd(e.Ctx(), mem)
	if err == nil && dev.Info().Driver == pinsRegions {
		require.NoError(e, ch.ReceiveInd(e.Ctx(), mem))
	} else {
		e.isDMA(err, size, abi.PageSize)
		e.echoInd(ch, beside.Bytes(), beside.Bytes())
		require.NoError(e, ch.SendInd(e.Ctx(), beside.Bytes()))
		e.failed(ch.ReceiveInd(e.Ctx(), mem), ch, size, abi.PageSize)
	}
	e.goesOn(ch, size)
	require.NoError(e, own.Close())
	require.NoError(e, unmapMemory(mem))

	lost := beside.Bytes()
	require.NoError(e, protect(lost, noAccess))
	if err := ch.SendInd(e.Ctx(), lost); err != nil { // the device may have a mapping of its own
		e.isDMA(err, size, 0)
	} else {
		require.NoError(e, ch.ReceiveInd(e.Ctx(), make([]byte, size)))
	}
	require.NoError(e, beside.Close())
	again := e.region(dev.Alloc(size))
	e.echoInd(ch, again.Bytes(), again.Bytes())
	require.NoError(e, again.Close())
}

// memoryLoad: an image that cannot be read is refused, and another loads.
func memoryLoad(e *Env) {
	dev := e.device("")
	if !dev.Info().CanLoad {
		return
	}
	for _, c := range badSizes {
		_, err := dev.Load(e.Ctx(), BadMemory(e.T, "truncated file", c.size, c.good))
		require.ErrorIs(e, err, bridge.ErrDMA)
	}
	_, err := dev.Load(e.Ctx(), make([]byte, 100_000))
	requireOneOf(e, err, bridge.ErrABI, bridge.ErrInvalid)
	e.Echo(e.Subscribe(dev, abi.TargetLoopback), []byte("unharmed"))
}

// memoryVanishes: memory that its owner takes away and gives back while transfers use it, beside
// transfers of other memory.
func memoryVanishes(e *Env) {
	dev := e.device("")
	const size = 600 << 10
	mem, err := mapMemory(size)
	require.NoError(e, err)
	defer func() { require.NoError(e, unmapMemory(mem)) }()
	ill, well := e.Ports(dev, "loopback", 1)[0], e.Ports(dev, "loopback", 1)[0]
	over := make(chan struct{})
	var all sync.WaitGroup
	all.Go(func() {
		for access := noAccess; ; access ^= readWrite {
			select {
			case <-over:
				return
			default:
				runtime.Gosched()
				_ = protect(mem[4*abi.PageSize:], access) // it does not fail
			}
		}
	})
	good := make([]byte, 40<<10)
	for i := range Scaled(1000) {
		data := mem[:[]int{size, 30 << 10}[i%2]]
		if err := ill.SendInd(e.Ctx(), data); err != nil {
			e.isDMA(err, len(data), len(data))
		} else if err := ill.ReceiveInd(e.Ctx(), data); err != nil {
			e.failed(err, ill, len(data), len(data))
		}
		e.echoInd(well, good, good)
	}
	close(over)
	all.Wait()
	require.NoError(e, protect(mem, readWrite))
	e.goesOn(ill, size)
}
