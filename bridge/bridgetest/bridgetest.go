package bridgetest

import (
	"testing"

	"github.com/nfcomms/nfcomms/internal/bridgetest"
)

// OpenFunc opens a device of the back end under test. Options is the query of
// an address, such as "channels=20000&managers=2"; the function fails the test
// if the device does not open. The suite closes the device.
type OpenFunc = bridgetest.OpenFunc

// Run runs the conformance suite: every rule a back end keeps, one subtest
// each, every subtest with a device of its own and a leak check.
//
// The options it uses are managers, islands, channels, slots, window (numbers),
// emem (bytes, with KiB, MiB or GiB) and target-timeout (a Go duration).
//
// The device must have these programs. "loopback": what arrives on a port is returned on it. "hold":
// touches no port. "sink": takes everything; a message that starts with SINKSTAT is answered with
// three little-endian u64: messages taken, transfer bytes taken, FNV-1a 64 of the last transfer.
// "source": a message {u64 size, u64 seed} is answered by a transfer of the pattern whose byte i is
// (i*0x9E3779B97F4A7C15+seed)>>56. "gate": for each message on port 0 takes one message or transfer
// from port 1 and answers on port 0 with u64 {0 message or 1 transfer, size}. "expect": a message
// u64 size on port 0 makes it read a transfer of that size from port 1, or write one if the top bit
// is set. It answers the status as u64 on port 0. "asked": does what a
// message {i64 what, i64 n} on port 0 says, and answers the result there as i64, a negative status for
// an error. 'q' takes a question from port 1, and 'p' reads it plainly. 'r' replies by its first n
// bytes. 'e' ends the process.
//
// without names cases that say something of the host alone, and cannot where
// the device is a part of the test's own process or has no such process. The race detector has nothing
// to find in huge transfers, and takes a minute for them: with it they are left
// out, and where time is short.
func Run(t *testing.T, open OpenFunc, without ...string) {
	t.Helper()
	bridgetest.Run(t, open, without...)
}
