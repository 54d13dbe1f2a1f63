//go:build cgo

package main

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/nfcomms/nfcomms/internal/bridgetest"
	"github.com/nfcomms/nfcomms/pkg/nfcomms"
)

// TestBadMemoryOfAChannel: the calls of package nfcomms that take memory beside those of a back end, with
// memory that cannot be reached. A new pair of loopbacks echoes for each.
func TestBadMemoryOfAChannel(t *testing.T) {
	e := bridgetest.NewEnv(t)
	for name, address := range map[string]string{"sim": "sim:?beat=10ms", "torus": "sim:?torus=2x1x1", "shm": shareDevice(t, "beat=10ms")} {
		dev, err := nfcomms.Open(e.Ctx(), address)
		require.NoError(t, err)
		for _, kind := range []string{"truncated file", "no access"} {
			for _, size := range []int{8192, 3<<20 + 5} {
				bad := bridgetest.BadMemory(t, kind, size, size*3/4)
				t.Run(name+"/"+kind, func(t *testing.T) {
					for call, one := range badCalls(e, bad) {
						first, err := dev.Run(e.Ctx(), nfcomms.Program{Name: "loopback"})
						require.NoError(t, err)
						second, err := dev.Run(e.Ctx(), nfcomms.Program{Name: "loopback"})
						require.NoError(t, err)
						require.ErrorIs(t, one(append(first.Channels, second.Channels...)), nfcomms.ErrDMA, call)
						require.NoError(t, errors.Join(first.Close(), second.Close()))
					}
				})
			}
		}
		require.NoError(t, dev.Close())
	}
}

// badCalls are the calls, of memory that cannot be reached.
func badCalls(e *bridgetest.Env, bad []byte) map[string]func(chs []*nfcomms.Channel) error {
	good := make([]byte, len(bad))
	echoed := func(chs []*nfcomms.Channel, receive func() error) error {
		return errors.Join(chs[0].SendInd(e.Ctx(), good), receive())
	}
	return map[string]func(chs []*nfcomms.Channel) error{
		"SendStriped": func(chs []*nfcomms.Channel) error { return nfcomms.SendStriped(e.Ctx(), bad, len(bad), chs...) },
		"ReceiveStriped": func(chs []*nfcomms.Channel) error {
			err := nfcomms.SendStriped(e.Ctx(), good, len(good), chs...)
			if err == nil {
				_, err = nfcomms.ReceiveStriped(e.Ctx(), bad, len(bad), chs...)
			}
			return err
		},
		"SendIndCase.Start": func(chs []*nfcomms.Channel) error {
			_, err := nfcomms.SendIndCase(chs[0], bad).Start(e.Ctx()).Wait(e.Ctx())
			return err
		},
		"ReceiveIndCase.Start": func(chs []*nfcomms.Channel) error {
			return echoed(chs, func() error { _, err := nfcomms.ReceiveIndCase(chs[0], bad).Start(e.Ctx()).Wait(e.Ctx()); return err })
		},
		"SendIndCase": func(chs []*nfcomms.Channel) error {
			_, err := nfcomms.Select(e.Ctx(), nfcomms.SendIndCase(chs[0], bad))
			return err
		},
		"ReceiveIndCase": func(chs []*nfcomms.Channel) error {
			return echoed(chs, func() error { _, err := nfcomms.Select(e.Ctx(), nfcomms.ReceiveIndCase(chs[0], bad)); return err })
		},
	}
}
