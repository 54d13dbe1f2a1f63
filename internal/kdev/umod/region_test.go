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

// register makes a region of bytes, with a change to what the module is asked, and returns its handle.
func (c *client) register(mem []byte, change func(*uapi.Register)) (uint32, syscall.Errno) {
	r := uapi.Register{Address: uint64(uintptr(unsafe.Pointer(&mem[0]))), Length: uint64(len(mem))}
	r.Size = uint32(unsafe.Sizeof(r))
	if change != nil {
		change(&r)
	}
	errno := c.Ioctl(uapi.IOCRegister, unsafe.Pointer(&r))
	return r.Region, errno
}

// unregister ends a region.
func (c *client) unregister(region uint32) syscall.Errno {
	u := uapi.Unregister{Region: region}
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
		"a handle":    {func(r *uapi.Register) { r.Region = 1 }, syscall.EINVAL},
		"no bytes":    {func(r *uapi.Register) { r.Length = 0 }, syscall.EINVAL},
		"many bytes":  {func(r *uapi.Register) { r.Length = 1<<36 + 1 }, syscall.EINVAL},
		"descriptor":  {func(r *uapi.Register) { r.FD = 3 }, syscall.EINVAL},
		"dma-buf":     {func(r *uapi.Register) { r.Flags = uapi.RegionDMABuf }, syscall.EOPNOTSUPP},
		"no memory":   {func(r *uapi.Register) { r.Address = 4096 }, syscall.EFAULT},
		"the highest": {func(r *uapi.Register) { r.Address = 1<<63 + 4096 }, syscall.EFAULT},
	} {
		_, errno := c.register(mem, w.change)
		require.Equal(t, w.want, errno, name)
	}
	require.Equal(t, syscall.ENOENT, c.unregister(0))
	first, errno := c.register(mem[10:20], nil)
	require.Zero(t, errno)
	second, errno := c.register(mem[19:], func(r *uapi.Register) { r.Flags = uapi.RegionReadOnly })
	require.Zero(t, errno)
	for _, w := range []struct {
		op   uapi.Op
		want syscall.Errno
	}{
		{uapi.Op{Opcode: uapi.OpSendInd, Region: second + 1, Length: 1}, syscall.ENOENT},
		{uapi.Op{Opcode: uapi.OpSendInd, Region: first, Offset: 1, Length: 10}, syscall.ERANGE},
		{uapi.Op{Opcode: uapi.OpSendInd, Region: first, Offset: 11, Length: 1}, syscall.ERANGE},
		{uapi.Op{Opcode: uapi.OpReceiveInd, Region: second, Length: 1}, syscall.EACCES},
	} {
		w.op.Channel = c.channel
		require.Equal(t, uint32(w.want), c.call(w.op).Error)
	}
	require.Zero(t, c.unregister(first))
	require.Equal(t, syscall.ENOENT, c.unregister(first))
	require.Zero(t, c.unregister(second))
}

// TestRegionInUse: a region is not ended under a transfer.
func TestRegionInUse(t *testing.T) {
	c := newClient(t, "hold")
	region, errno := c.register(bytesOnHeap(100), nil)
	require.Zero(t, errno)
	out, over := c.start(uapi.Op{Opcode: uapi.OpSendInd, Channel: c.channel, Region: region, Offset: 5, Length: 50})
	require.Equal(t, syscall.EBUSY, c.unregister(region))
	c.TakeBack(out)
	<-over
	require.EqualValues(t, abi.ErrWithdrawn, out.Status)
	require.Zero(t, c.unregister(region))
}
