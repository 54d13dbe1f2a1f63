package sim

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/nfcomms/nfcomms/bridge"
	"github.com/nfcomms/nfcomms/bridge/mailbox"
	"github.com/nfcomms/nfcomms/spec"
)

// loggedSlots is how many slots of a device a test verifies, the first ones.
const loggedSlots = 1 << 18

// verified has the slots of a device verified when its test ends: each run is a path of the tables.
func verified(t *testing.T, dev bridge.Device) bridge.Device {
	t.Helper()
	log := dev.(*mailbox.Device).LogSlots(loggedSlots)
	t.Cleanup(func() {
		l := specLog(log)
		t.Logf("%d slots verified", len(l.Records))
		if err := spec.Verify(l); err != nil {
			t.Errorf("%v\nthe log: %s", err, keep(t, l))
		}
	})
	return dev
}

// specLog is a log as package spec has it.
func specLog(log *mailbox.SlotLog) *spec.Log {
	h := log.Hello()
	l := &spec.Log{
		Window: uint64(h.Window), Limit: h.MaxTransfer, Channels: h.Channels,
		Mailboxes: uint32(h.Mailboxes), Islands: uint32(h.Islands),
	}
	for _, s := range log.Slots() {
		l.Records = append(l.Records, spec.Record{Time: uint64(s.Time), Mailbox: uint32(s.Mailbox), Taken: s.Taken, Slot: s.Slot})
	}
	return l
}

// keep writes a log to a file that outlives the test.
func keep(t *testing.T, l *spec.Log) string {
	name := filepath.Join(os.TempDir(), strings.ReplaceAll(t.Name(), "/", "_")+".slots")
	f, err := os.Create(name)
	require.NoError(t, err)
	defer f.Close()
	_, err = l.WriteTo(f)
	require.NoError(t, err)
	return name
}

// openVerified opens a device whose slots are verified.
func openVerified(t *testing.T, options string) bridge.Device {
	return verified(t, openDevice(t, options))
}
