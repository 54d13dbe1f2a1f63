package kdev

import (
	"errors"
	"io/fs"
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/nfcomms/nfcomms/internal/slottrace"
)

// traceFolder is a buffer of events of its own, beside those that other programs read.
const traceFolder = "/sys/kernel/tracing/instances/nfcomms-conformance"

// traced has the slots of the real devices, more than so many, verified when the test ends: the module's
// tracepoints have each. It needs root, as a virtual machine has.
func traced(t *testing.T, slots int) {
	t.Helper()
	err := os.Mkdir(traceFolder, 0o700)
	if errors.Is(err, fs.ErrPermission) && os.Getenv("NFC_VM") == "" {
		t.Log("only root traces: the slots are not verified")
		return
	}
	require.NoError(t, err)
	put := func(file, text string) {
		require.NoError(t, os.WriteFile(traceFolder+"/"+file, []byte(text), 0))
	}
	put("buffer_size_kb", "16384") // of each processor: a slot takes 84 bytes
	put("trace_clock", "counter")  // an order over all processors
	for _, e := range []string{"epoch", "slot_in", "slot_out"} {
		put("events/nfcomms/nfcomms_"+e+"/enable", "1")
	}
	t.Cleanup(func() {
		put("tracing_on", "0")
		f, err := os.Open(traceFolder + "/trace")
		require.NoError(t, err)
		sum, err := slottrace.Verify(f)
		require.NoError(t, errors.Join(err, f.Close()))
		t.Logf("%d slots of %d epochs verified, %d skipped, %d events lost", sum.Slots, sum.Epochs, sum.Skipped, sum.Lost)
		require.True(t, sum.Complete(), "incomplete: %+v", sum)
		require.Greater(t, sum.Slots, slots)
		require.NoError(t, os.Remove(traceFolder))
	})
}
