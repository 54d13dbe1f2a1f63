//go:build cgo

package kdev

import (
	"syscall"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"

	"github.com/nfcomms/nfcomms/internal/kdev/uapi"
)

// TestFakeRefuses holds the fake module to the interface: each field of each
// structure wrong in turn. The module itself is held to the same by
// internal/vmtest/c/validate_test.c.
func TestFakeRefuses(t *testing.T) {
	f := newModule(t).open()
	defer func() { require.NoError(t, f.close()) }()
	control := uapi.Op{Opcode: uapi.OpControl, Payload: uapi.Pack(uapi.RequestMemory{Request: uapi.ControlMemory})}
	for name, c := range map[string]struct {
		op   uapi.Op
		want syscall.Errno
	}{
		"no opcode":         {uapi.Op{}, syscall.EINVAL},
		"unknown opcode":    {uapi.Op{Opcode: uapi.OpCount, Channel: 1}, syscall.EINVAL},
		"unknown flag":      {uapi.Op{Opcode: uapi.OpSend, Flags: 1 << 9, Channel: 1}, syscall.EINVAL},
		"flag of another":   {uapi.Op{Opcode: uapi.OpSend, Flags: uapi.Hold, Channel: 1}, syscall.EINVAL},
		"both flags":        {uapi.Op{Opcode: uapi.OpReceive, Flags: uapi.Hold | uapi.Nowait, Channel: 1}, syscall.EINVAL},
		"close nothing":     {uapi.Op{Opcode: uapi.OpClose, Channel: 1}, syscall.EINVAL},
		"arm both":          {uapi.Op{Opcode: uapi.OpArm, Flags: uapi.H2D | uapi.D2H, Channel: 1}, syscall.EINVAL},
		"reserved":          {uapi.Op{Opcode: uapi.OpNext, Channel: 1, Rsvd: 1}, syscall.EINVAL},
		"epoch":             {uapi.Op{Opcode: uapi.OpNext, Channel: 1, Epoch: 1}, syscall.EINVAL},
		"stray target":      {uapi.Op{Opcode: uapi.OpControl, Target: 1}, syscall.EINVAL},
		"stray operation":   {uapi.Op{Opcode: uapi.OpRefuse, Channel: 1, Operation: 1}, syscall.EINVAL},
		"long message":      {uapi.Op{Opcode: uapi.OpSend, Channel: 1, Length: 57}, syscall.EINVAL},
		"stray address":     {uapi.Op{Opcode: uapi.OpSend, Channel: 1, Address: 1}, syscall.EINVAL},
		"stray length":      {uapi.Op{Opcode: uapi.OpNext, Channel: 1, Length: 1}, syscall.EINVAL},
		"stray payload":     {uapi.Op{Opcode: uapi.OpNext, Channel: 1, Payload: [56]byte{55: 1}}, syscall.EINVAL},
		"stray time-out":    {uapi.Op{Opcode: uapi.OpSend, Channel: 1, TimeoutNS: 1}, syscall.EINVAL},
		"unknown request":   {uapi.Op{Opcode: uapi.OpControl, Payload: uapi.Pack(uapi.RequestProcess{Request: 8})}, syscall.EINVAL},
		"answer in request": {uapi.Op{Opcode: uapi.OpControl, Payload: uapi.Pack(uapi.RequestStart{Request: uapi.ControlStart, Process: 1})}, syscall.EINVAL},
		"control's channel": {uapi.Op{Opcode: uapi.OpControl, Channel: 1}, syscall.EINVAL},
		"no channel":        {uapi.Op{Opcode: uapi.OpSend}, syscall.EINVAL},
		"unknown channel":   {uapi.Op{Opcode: uapi.OpSend, Channel: 77}, syscall.ENOENT},
	} {
		s := submission(&c.op)
		require.Equal(t, c.want, f.ioctl(uapi.IOCSubmit, unsafe.Pointer(&s)), name)
	}
	for name, change := range map[string]func(*uapi.Submit){
		"small":     func(s *uapi.Submit) { s.Size-- },
		"count 0":   func(s *uapi.Submit) { s.Count = 0 },
		"count 257": func(s *uapi.Submit) { s.Count = 257 },
		"op size":   func(s *uapi.Submit) { s.OpSize = 8 },
		"reserved":  func(s *uapi.Submit) { s.Rsvd = 1 },
	} {
		s := submission(&control)
		change(&s)
		require.Equal(t, syscall.EINVAL, f.ioctl(uapi.IOCSubmit, unsafe.Pointer(&s)), name)
	}
	large := submission(&control)
	large.Size++
	require.Equal(t, syscall.E2BIG, f.ioctl(uapi.IOCSubmit, unsafe.Pointer(&large)))
	null := submission(&control)
	null.Ops = 0
	require.Equal(t, syscall.EFAULT, f.ioctl(uapi.IOCSubmit, unsafe.Pointer(&null)))
	cancel := uapi.Cancel{Size: 32, ID: 9}
	require.Equal(t, syscall.ENOENT, f.ioctl(uapi.IOCCancel, unsafe.Pointer(&cancel)))
	cancel.Flags = 1
	require.Equal(t, syscall.EINVAL, f.ioctl(uapi.IOCCancel, unsafe.Pointer(&cancel)))
	reset := uapi.Reset{Size: 72, Rsvd: [4]uint64{1}}
	require.Equal(t, syscall.EINVAL, f.ioctl(uapi.IOCReset, unsafe.Pointer(&reset)))
	channel := uapi.Channel{Channel: 5}
	channel.Size = uint32(unsafe.Sizeof(channel))
	require.Equal(t, syscall.ENOENT, f.ioctl(uapi.IOCChannel, unsafe.Pointer(&channel)))
	require.Equal(t, syscall.ENOTTY, f.ioctl(1, nil))
	health := uapi.Health{Size: uint32(unsafe.Sizeof(uapi.Health{}))}
	require.Zero(t, f.ioctl(uapi.IOCHealth, unsafe.Pointer(&health)))
	require.Zero(t, health.Operations, "nothing was taken")
}

// kept makes what an address names stay on the heap: a stack may move.
var kept *uapi.Op

func submission(o *uapi.Op) uapi.Submit {
	kept = o
	return uapi.Submit{
		Size: uint32(unsafe.Sizeof(uapi.Submit{})), Count: 1, OpSize: uint32(unsafe.Sizeof(*o)),
		Ops: uint64(uintptr(unsafe.Pointer(o))),
	}
}
