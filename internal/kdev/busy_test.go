//go:build cgo

package kdev

import (
	"syscall"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"

	"github.com/nfcomms/nfcomms/bridge"
	"github.com/nfcomms/nfcomms/internal/kdev/uapi"
)

// setups is a file whose module says what it adds, and of which the last SETUP is kept.
type setups struct {
	over
	features uint64
	got      []uapi.Setup
}

func (s *setups) ioctl(number uintptr, argument unsafe.Pointer) syscall.Errno {
	errno := s.over.ioctl(number, argument)
	switch {
	case number == uapi.IOCSetup:
		s.got = append(s.got, *(*uapi.Setup)(argument))
	case number == uapi.IOCInfo && errno == 0:
		(*uapi.Info)(argument).Features = s.features
	}
	return errno
}

// TestBusyPoll: the option is the file's to ask for, and a module that does not know it is no
// silent disappointment. It neither resets the device nor needs rights.
func TestBusyPoll(t *testing.T) {
	old := &setups{over: over{newModule(t).open()}, features: uapi.FeatureEventfd}
	_, err := tryOpen(old, "busy-poll=20us")
	require.ErrorIs(t, err, bridge.ErrNotSupported)
	require.Empty(t, old.got)
	require.NoError(t, old.close())

	file := &setups{over: over{newModule(t).open()}, features: uapi.FeatureBusyPoll}
	dev := openOn(t, file, "busy-poll=1500ns")
	require.Equal(t, []uapi.Setup{{Size: 32, CompletionSize: uint32(unsafe.Sizeof(uapi.Completion{})), BusyPollUS: 2}}, file.got)
	require.EqualValues(t, 1, dev.Info().Epoch)
	require.NoError(t, dev.Close())
}
