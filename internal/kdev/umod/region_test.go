//go:build cgo

package umod_test

import (
	"syscall"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"

	"github.com/nfcomms/nfcomms/bridge/abi"
	"github.com/nfcomms/nfcomms/internal/kdev/uapi"
)

// heap holds what an address names without a pointer to it: a stack may move.
var heap []byte

func bytesOnHeap(n int) []byte {
	heap = make([]byte, n)
	return heap
}

// register makes a region of bytes, with a change to what the module is asked.
func (c *client) register(mem []byte, change func(*uapi.Register)) syscall.Errno {
	r := uapi.Register{Address: uint64(uintptr(unsafe.Pointer(&mem[0]))), Length: uint64(len(mem))}
	r.Size = uint32(unsafe.Sizeof(r))
	if change != nil {
		change(&r)
	}
	return c.Ioctl(uapi.IOCRegister, unsafe.Pointer(&r))
}

// unregister ends the region that begins there.
func (c *client) unregister(mem []byte) syscall.Errno {
	u := uapi.Unregister{Address: uint64(uintptr(unsafe.Pointer(&mem[0])))}
	u.Size = uint32(unsafe.Sizeof(u))
	return c.Ioctl(uapi.IOCUnregister, unsafe.Pointer(&u))
}

// TestRegionsRefused: what the module refuses is refused here, by the same errno.
func TestRegionsRefused(t *testing.T) {
	c := newClient(t, "hold")
	mem := bytesOnHeap(3 * abi.PageSize)
	for name, w := range map[string]struct {
		change func(*uapi.Register)
		want   syscall.Errno
	}{
		"older":       {func(r *uapi.Register) { r.Size-- }, syscall.EINVAL},
		"newer":       {func(r *uapi.Register) { r.Size++ }, syscall.E2BIG},
		"flag":        {func(r *uapi.Register) { r.Flags = 1 << 9 }, syscall.EINVAL},
		"reserved":    {func(r *uapi.Register) { r.Rsvd[2] = 1 }, syscall.EINVAL},
		"no bytes":    {func(r *uapi.Register) { r.Length = 0 }, syscall.EINVAL},
		"many bytes":  {func(r *uapi.Register) { r.Length = 1<<36 + 1 }, syscall.EINVAL},
		"descriptor":  {func(r *uapi.Register) { r.FD = 3 }, syscall.EINVAL},
		"dma-buf":     {func(r *uapi.Register) { r.Flags = uapi.RegionDMABuf }, syscall.EOPNOTSUPP},
		"no memory":   {func(r *uapi.Register) { r.Address = 4096 }, syscall.EFAULT},
		"the highest": {func(r *uapi.Register) { r.Address = 1<<63 + 4096 }, syscall.EFAULT},
	} {
		require.Equal(t, w.want, c.register(mem, w.change), name)
	}
	require.Equal(t, syscall.ENOENT, c.unregister(mem))
	require.Zero(t, c.register(mem[10:20], nil))
	require.Equal(t, syscall.EEXIST, c.register(mem[19:], nil))
	require.Zero(t, c.register(mem[:10], func(r *uapi.Register) { r.Flags = uapi.RegionReadOnly }))
	require.Equal(t, syscall.ENOENT, c.unregister(mem[11:]))
	require.Zero(t, c.unregister(mem[10:]))
	require.Zero(t, c.unregister(mem))
}

// TestRegionInUse: a region is not ended under a transfer.
func TestRegionInUse(t *testing.T) {
	c := newClient(t, "hold")
	mem := bytesOnHeap(100)
	require.Zero(t, c.register(mem, nil))
	out, over := c.start(uapi.Op{
		Opcode: uapi.OpSendInd, Channel: c.channel, Address: uint64(uintptr(unsafe.Pointer(&mem[5]))), Length: 50,
	})
	require.Equal(t, syscall.EBUSY, c.unregister(mem))
	c.TakeBack(out)
	<-over
	require.EqualValues(t, abi.ErrWithdrawn, out.Status)
	require.Zero(t, c.unregister(mem))
}
