package spectest

import (
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/nfcomms/nfcomms/bridge"
	"github.com/nfcomms/nfcomms/bridge/mailbox"
	"github.com/nfcomms/nfcomms/spec"
)

// LoggedSlots is how many slots of a device a test verifies, the first ones.
const LoggedSlots = 1 << 18

// Verified has the slots of a device verified when its test ends: each run is a path of the tables.
// The device is one of bridge/mailbox, or a struct around one, its field Device. Nobody has called it yet.
func Verified(t testing.TB, dev bridge.Device) bridge.Device {
	t.Helper()
	inner := dev
	for f := reflect.ValueOf(inner).Elem().FieldByName("Device"); f.IsValid(); f = reflect.ValueOf(inner).Elem().FieldByName("Device") {
		inner = f.Interface().(bridge.Device)
	}
	log := mailbox.LogSlots(inner, LoggedSlots)
	t.Cleanup(func() {
		l := Log(log)
		t.Logf("%d slots verified", len(l.Records))
		if err := spec.Verify(l); err != nil {
			t.Errorf("%v\nthe log: %s", err, keep(t, l))
		}
	})
	return dev
}

// Log is a log as package spec has it.
func Log(log *mailbox.SlotLog) *spec.Log {
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
func keep(t testing.TB, l *spec.Log) string {
	t.Helper()
	name := filepath.Join(os.TempDir(), strings.ReplaceAll(t.Name(), "/", "_")+".slots")
	f, err := os.Create(name)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := l.WriteTo(f); err != nil {
		t.Fatal(err)
	}
	return name
}
