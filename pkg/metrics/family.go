package metrics

import (
	"strconv"
	"strings"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/nfcomms/nfcomms/bridge"
	"github.com/nfcomms/nfcomms/bridge/abi"
	"github.com/nfcomms/nfcomms/internal/meter"
)

// family is a metric: a name with its labels.
type family struct {
	desc *prometheus.Desc
	kind prometheus.ValueType
}

// families are all of them, for Describe.
var families []*family

// metric declares a family. labels follow "device".
func metric(kind prometheus.ValueType, name, help string, labels ...string) *family {
	f := &family{
		desc: prometheus.NewDesc("nfcomms_"+name, help, append([]string{"device"}, labels...), nil),
		kind: kind,
	}
	families = append(families, f)
	return f
}

const (
	counter = prometheus.CounterValue
	gauge   = prometheus.GaugeValue
	shape   = prometheus.UntypedValue // of histograms, which have no single value
)

var sampled = " Where a message takes less than the clock reads would add, one in " + strconv.Itoa(meter.Every) +
	" is measured and counted as so many: exact counts are nfcomms_messages_total and nfcomms_payload_bytes_total."

// Counters of the calls of all channels.
var (
	fMessages = metric(counter, "messages_total",
		"Messages (path direct) and transfers (path indirect) that were delivered.", "direction", "path")
	fBytes = metric(counter, "payload_bytes_total",
		"Bytes that were delivered.", "direction", "path")
	fErrors = metric(counter, "errors_total",
		"Calls that ended with an error, by its reason.", "direction", "path", "code")
	fMessageTime = metric(shape, "message_duration_seconds",
		"Time that delivered messages took, from the call's first wait to its end."+sampled, "direction")
	fTransferTime = metric(shape, "transfer_duration_seconds",
		"Time that delivered transfers took, from the call's first wait to its end. All are measured.", "direction")
	fMessageSize = metric(shape, "message_size_bytes",
		"Sizes of delivered messages."+sampled, "direction")
	fMeasured = metric(gauge, "measured_messages_ratio",
		"Share of the messages that are measured.")
	fTransferSize = metric(shape, "transfer_size_bytes",
		"Sizes of delivered transfers. All are measured.", "direction")
	fLists = metric(counter, "gather_lists_total",
		"Gather lists that were sent.")
	fRepeated = metric(counter, "rounds_repeated_total",
		"Rounds that were sent again on the device's request.")
	fUnaligned = metric(counter, "unaligned_transfers_total",
		"Transfers that were begun with a buffer which does not start at a multiple of 8 bytes.")
	fCorrupt = metric(counter, "corrupt_transfers_total",
		"Transfers whose checksums at both ends differed, and which were aborted.")
	fRegistered = metric(counter, "registered_transfers_total",
		"Transfers that were begun with registered memory.")
	fSleeps = metric(counter, "call_sleeps_total",
		"Times a call had to sleep because the answer did not come soon.")
)

// The present state.
var (
	fChannels = metric(gauge, "open_channels",
		"Channels that are open.")
	fBlocked = metric(gauge, "blocked_calls",
		"Calls that wait: asleep, for room in a ring, or for their turn behind another call.", "direction")
	fTransfers = metric(gauge, "transfers_in_flight",
		"Transfers under way.", "direction")
	fListsNow = metric(gauge, "gather_lists_in_flight",
		"Gather lists that were sent and not acknowledged.", "direction")
	fWindow = metric(gauge, "window_gather_lists",
		"Gather lists that one transfer may have in flight.")
	fQueued = metric(gauge, "queued_requests",
		"Requests that wait on the device because their target is not ready.")
	fUsed = metric(gauge, "mailbox_used_slots",
		"Slots of a mailbox's ring that its sender may not write now.", "mailbox", "direction")
	fSlots = metric(gauge, "mailbox_slots",
		"Slots of each of the two rings of a mailbox.", "mailbox")
	fFull = metric(counter, "mailbox_full_total",
		"Messages and offers that found no room in their ring.")
)

// How the two sides wake each other, and their failures.
var (
	fWakeups = metric(counter, "doorbells_received_total",
		"Doorbells from the device.")
	fSpurious = metric(counter, "spurious_wakeups_total",
		"Doorbells from the device after which there was nothing to take.")
	fDoorbells = metric(counter, "doorbells_sent_total",
		"Doorbells to the device.")
	fStale = metric(counter, "stale_messages_total",
		"Messages from the device about something that was over.")
	fFaults = metric(counter, "faults_total",
		"Times the device broke the protocol and was put out of use.")
	fResets = metric(counter, "resets_total",
		"Resets of the device.")
	fRegions = metric(gauge, "regions",
		"Regions of memory registered with the device now.")
	fRegionBytes = metric(gauge, "region_bytes",
		"Bytes of memory registered with the device now.")
	fLogDropped = metric(counter, "log_records_dropped_total",
		"Log records that found no room because the handler of the log was too slow.")
)

// The device itself.
var (
	fInfo = metric(gauge, "device_info",
		"What the device is, and whether that is simulated, emulated or hardware; always 1.", "driver", "kind", "address", "abi_version")
	fBoard = metric(gauge, "board_info",
		"The card that the device is; always 1.", "pci_address", "serial")
	fState = metric(gauge, "device_state",
		"1 for the state the device is in, 0 for the others.", "state")
	fFailure = metric(gauge, "device_failure",
		"Why the device is in the state failed; absent in other states.", "code")
	fHeartbeatTime = metric(gauge, "device_heartbeat_timestamp_seconds",
		"Time of the device's last heartbeat, since the Unix epoch.")
	fHeartbeatAge = metric(gauge, "device_heartbeat_age_seconds",
		"Time since the device's last heartbeat, by the clock of this process when it was scraped.")
	fHeartbeats = metric(counter, "device_heartbeats_total",
		"Heartbeats since the device booted.")
	fDiagnostic = metric(gauge, "device_diagnostic_level",
		"Reading of the diagnostic word: 0 normal, 1 sick, 2 broken.", "part")
	fProcesses = metric(gauge, "device_processes",
		"Processes that run on the device.")
	fDeviceMessages = metric(counter, "device_messages_total",
		"Messages that the device took since it booted.")
	fDeviceBytes = metric(counter, "device_dma_bytes_total",
		"Bytes that the device's DMA moved since it booted.")
	fDeviceDropped = metric(counter, "device_dropped_messages_total",
		"Messages that the device refused since it booted.")
)

// The time of calls by layer, with Options.Trace.
var (
	fLayerTime = metric(shape, "layer_duration_seconds",
		"Time that calls took in one layer, of the calls that were traced. A layer is there once it took any.", "direction", "path", "layer")
	fTraceLost = metric(counter, "trace_lost_calls_total",
		"Calls that were traced and found no room between two scrapes: a fair choice of all is kept.")
	fTraceWrong = metric(counter, "trace_wrong_stamps_total",
		"Calls whose stamps of the device could not be true, and count as far as they could.")
	fClockError = metric(gauge, "trace_clock_error_seconds",
		"How far pick-up and completion may be off, one against the other; absent where the device's clock is not known.")
)

// Each channel, with Options.Channels.
var (
	fChannelMessages = metric(counter, "channel_messages_total",
		"Messages and transfers of a channel that were delivered.", "channel", "direction", "path")
	fChannelBytes = metric(counter, "channel_payload_bytes_total",
		"Bytes of a channel that were delivered.", "channel", "direction", "path")
	fChannelErrors = metric(counter, "channel_errors_total",
		"Calls of a channel that ended with an error.", "channel", "direction", "path")
	fChannelBlocked = metric(gauge, "channel_blocked_calls",
		"Calls of a channel that wait.", "channel", "direction")
	fChannelTransfers = metric(gauge, "channel_transfers_in_flight",
		"Transfers of a channel under way.", "channel", "direction")
)

// directions yields both directions, with their label values.
func directions(yield func(abi.Direction, string) bool) {
	_ = yield(abi.H2D, abi.H2D.String()) && yield(abi.D2H, abi.D2H.String())
}

// paths are label values.
var paths = [2]string{"direct", "indirect"}

// codeNames are the values of the label code, by status.
var codeNames = func() (names [abi.StatusCount]string) {
	for s := range abi.StatusCount {
		c, _ := bridge.CodeOf(s)
		names[s] = strings.ToLower(c.Reason)
	}
	names[abi.OK] = "other" // no status stands for it
	return names
}()

// parts are the values of the label part, with the place of their reading.
var parts = [...]struct {
	name  string
	shift uint
}{
	{"service_network", abi.DiagServiceNetwork},
	{"memory", abi.DiagMemory},
	{"peripheral", abi.DiagPeripheral},
	{"core", abi.DiagCore},
	{"current", abi.DiagCurrent},
	{"voltage", abi.DiagVoltage},
	{"temperature", abi.DiagTemperature},
	{"z_minus", abi.DiagZMinus},
	{"z_plus", abi.DiagZPlus},
	{"y_minus", abi.DiagYMinus},
	{"y_plus", abi.DiagYPlus},
	{"x_minus", abi.DiagXMinus},
	{"x_plus", abi.DiagXPlus},
}
