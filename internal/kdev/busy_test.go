//go:build cgo

package kdev

import (
	"syscall"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"

	"github.com/nfcomms/nfcomms/internal/kdev/uapi"
)

// setups is a file of which each SETUP is kept.
type setups struct {
	over
	got []uapi.Setup
}

func (s *setups) ioctl(number uintptr, argument unsafe.Pointer) syscall.Errno {
	errno := s.over.ioctl(number, argument)
	if number == uapi.IOCSetup {
		s.got = append(s.got, *(*uapi.Setup)(argument))
	}
	return errno
}

// TestBusyPoll: the option is the file's to ask for. It neither resets the device nor needs rights.
func TestBusyPoll(t *testing.T) {
	file := &setups{over: over{newModule(t).open()}}
	dev := openOn(t, file, "busy-poll=1500ns")
	require.Equal(t, []uapi.Setup{{Size: 32, CompletionSize: uint32(unsafe.Sizeof(uapi.Record{})), BusyPollUS: 2}}, file.got)
	require.EqualValues(t, 1, dev.Info().Epoch)
	require.NoError(t, dev.Close())
}
