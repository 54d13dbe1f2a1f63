package control

import (
	"fmt"
	"strings"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/nfcomms/nfcomms/bridge"
	"github.com/nfcomms/nfcomms/bridge/abi"
	"github.com/nfcomms/nfcomms/pkg/control/proto/nfcomms/v1"
	"github.com/nfcomms/nfcomms/pkg/nfcomms"
	"github.com/nfcomms/nfcomms/pkg/nfcomms/admin"
)

// describe fills in what an open device says of itself.
func describe(m *nfcommsv1.Device, i nfcomms.Info) {
	m.Driver, m.Kind = i.Driver, kindOf(i)
	m.Epoch = i.Epoch
	m.AbiMajor, m.AbiMinor = int32(i.Major), int32(i.Minor)
	m.Shape = &nfcommsv1.Shape{
		Channels:          int32(i.Channels),
		Mailboxes:         int32(i.Mailboxes),
		Islands:           int32(i.Islands),
		Slots:             int32(i.Slots),
		Contexts:          int32(i.Contexts),
		ReadManagers:      int32(i.ReadManagers),
		WriteManagers:     int32(i.WriteManagers),
		Window:            int32(i.Window),
		MaxTransferBytes:  i.MaxTransfer,
		HeartbeatInterval: durationpb.New(i.Beat),
		CanLoad:           i.CanLoad,
	}
	m.Board = board(i.Board)
}

// kindOf is the kind of a device, under the name that it has in reports.
func kindOf(i nfcomms.Info) nfcommsv1.Device_Kind {
	return nfcommsv1.Device_Kind(nfcommsv1.Device_Kind_value["KIND_"+strings.ToUpper(i.Kind())])
}

// barKinds are the kinds of windows by their number.
var barKinds = []nfcommsv1.Bar_Kind{
	bridge.BarIO:       nfcommsv1.Bar_KIND_IO,
	bridge.BarMemory32: nfcommsv1.Bar_KIND_MEMORY_32,
	bridge.BarMemory64: nfcommsv1.Bar_KIND_MEMORY_64,
}

// board describes the card that a device is; nil for none.
func board(b *bridge.Board) *nfcommsv1.Board {
	if b == nil {
		return nil
	}
	m := &nfcommsv1.Board{
		Address: b.Address, VendorId: uint32(b.Vendor), DeviceId: uint32(b.Device), Serial: text(b.Serial), Vectors: int32(b.Vectors),
		Link: &nfcommsv1.BusLink{
			SpeedGts: b.Link.Speed, MaxSpeedGts: b.Link.MaxSpeed, Width: int32(b.Link.Width), MaxWidth: int32(b.Link.MaxWidth),
		},
	}
	if b.NUMA >= 0 {
		m.NumaNode = proto.Int32(int32(b.NUMA))
	}
	for _, x := range b.Bars {
		m.Bars = append(m.Bars, &nfcommsv1.Bar{
			Number: int32(x.Number), Kind: barKinds[x.Kind], Prefetchable: x.Prefetchable, Address: x.Address, SizeBytes: x.Size,
		})
	}
	return m
}

func pathStats(p nfcomms.PathStats) *nfcommsv1.PathStats {
	return &nfcommsv1.PathStats{Messages: p.Messages, Bytes: p.Bytes, Errors: p.Errors}
}

func channelStats(c nfcomms.ChannelStats) *nfcommsv1.ChannelStats {
	return &nfcommsv1.ChannelStats{
		DirectH2D:   pathStats(c.Direct.H2D),
		DirectD2H:   pathStats(c.Direct.D2H),
		IndirectH2D: pathStats(c.Indirect.H2D),
		IndirectD2H: pathStats(c.Indirect.D2H),
		Lists:       c.Lists,
		Repeated:    c.Repeated,
		Sleeps:      c.Sleeps,
		Registered:  c.Registered,
		Corrupt:     c.Corrupt,
		Unaligned:   c.Unaligned,

		WaitingH2D:   int32(c.Waiting.H2D),
		WaitingD2H:   int32(c.Waiting.D2H),
		TransfersH2D: int32(c.Transfers.H2D),
		TransfersD2H: int32(c.Transfers.D2H),
		InFlightH2D:  int32(c.InFlight.H2D),
		InFlightD2H:  int32(c.InFlight.D2H),
	}
}

// now fills in a channel's counters, and the calls that wait on it.
func now(m *nfcommsv1.Channel, ch *nfcomms.Channel) {
	halves := admin.Halves(ch)
	m.Stats = channelStats(ch.Stats())
	m.H2D, m.D2H = half(halves.H2D), half(halves.D2H)
}

func half(h bridge.Half) *nfcommsv1.Half {
	m := &nfcommsv1.Half{
		State: nfcommsv1.Half_State(h.State), Closed: h.Closed, Transaction: h.Transaction,
		Waiting: int32(h.Waiting), Queued: int32(h.Queued), Armed: int32(h.Armed),
	}
	if h.Slept > 0 {
		m.Slept = durationpb.New(h.Slept)
	}
	return m
}

func deviceStats(s nfcomms.Stats) *nfcommsv1.DeviceStats {
	m := &nfcommsv1.DeviceStats{
		Channels:          channelStats(s.ChannelStats),
		OpenChannels:      int32(s.Channels),
		BlockedCalls:      int32(s.Blocked),
		Wakeups:           s.Wakeups,
		Doorbells:         s.Doorbells,
		Dropped:           s.Dropped,
		Faults:            s.Faults,
		Resets:            s.Resets,
		SpuriousWakeups:   s.Spurious,
		Full:              s.Full,
		LogRecordsDropped: s.LogDropped,
		Regions:           int32(s.Regions),
		RegionBytes:       s.RegionBytes,
	}
	for _, b := range s.Mailboxes {
		m.Mailboxes = append(m.Mailboxes, &nfcommsv1.MailboxStats{
			Slots: int32(b.Slots), UsedH2D: int32(b.Used.H2D), UsedD2H: int32(b.Used.D2H),
		})
	}
	return m
}

func failureOf(err error) *nfcommsv1.Failure {
	if err == nil {
		return nil
	}
	return &nfcommsv1.Failure{Reason: Reason(err), Message: text(err.Error())}
}

func heartbeat(h nfcomms.Health) *nfcommsv1.Heartbeat {
	return &nfcommsv1.Heartbeat{
		Beat:      h.Beat,
		Age:       durationpb.New(h.Age),
		Processes: int32(h.Processes),
		Messages:  h.Messages,
		Bytes:     h.Bytes,
		Dropped:   h.Dropped,
		Queued:    h.Queued,
	}
}

// parts are the readings of the diagnostic word, in its order.
var parts = []struct {
	part  nfcommsv1.Part
	shift uint
}{
	{nfcommsv1.Part_PART_SERVICE_NETWORK, abi.DiagServiceNetwork},
	{nfcommsv1.Part_PART_MEMORY, abi.DiagMemory},
	{nfcommsv1.Part_PART_PERIPHERAL, abi.DiagPeripheral},
	{nfcommsv1.Part_PART_CORE, abi.DiagCore},
	{nfcommsv1.Part_PART_CURRENT, abi.DiagCurrent},
	{nfcommsv1.Part_PART_VOLTAGE, abi.DiagVoltage},
	{nfcommsv1.Part_PART_TEMPERATURE, abi.DiagTemperature},
	{nfcommsv1.Part_PART_Z_MINUS, abi.DiagZMinus},
	{nfcommsv1.Part_PART_Z_PLUS, abi.DiagZPlus},
	{nfcommsv1.Part_PART_Y_MINUS, abi.DiagYMinus},
	{nfcommsv1.Part_PART_Y_PLUS, abi.DiagYPlus},
	{nfcommsv1.Part_PART_X_MINUS, abi.DiagXMinus},
	{nfcommsv1.Part_PART_X_PLUS, abi.DiagXPlus},
}

func levelOf(l abi.Level) nfcommsv1.Level {
	switch l {
	case abi.Normal:
		return nfcommsv1.Level_LEVEL_NORMAL
	case abi.Sick:
		return nfcommsv1.Level_LEVEL_SICK
	case abi.Broken:
		return nfcommsv1.Level_LEVEL_BROKEN
	}
	return nfcommsv1.Level_LEVEL_UNKNOWN
}

// diagnostic decodes the diagnostic word.
func diagnostic(w abi.Diagnostic) *nfcommsv1.DiagnosticWord {
	m := &nfcommsv1.DiagnosticWord{Word: uint32(w), Valid: w.Valid()}
	if !m.Valid {
		return m
	}
	for _, p := range parts {
		m.Readings = append(m.Readings, &nfcommsv1.Reading{Part: p.part, Level: levelOf(w.Reading(p.shift))})
	}
	m.Worst = levelOf(w.Worst())
	return m
}

// wordText says in words which parts are not well.
func wordText(w abi.Diagnostic) string {
	if !w.Valid() {
		return "no diagnostic word"
	}
	var ill []string
	for _, r := range diagnostic(w).Readings {
		if r.Level != nfcommsv1.Level_LEVEL_NORMAL {
			ill = append(ill, plain(r.Part.String(), "PART_")+" "+plain(r.Level.String(), "LEVEL_"))
		}
	}
	if ill == nil {
		return "all parts are normal"
	}
	return fmt.Sprintf("diagnostic word %#08x: %s", uint32(w), strings.Join(ill, ", "))
}

func stateText(s nfcommsv1.Device_State) string { return plain(s.String(), "STATE_") }

// plain makes words of the name of an enum value.
func plain(name, prefix string) string {
	return strings.ToLower(strings.ReplaceAll(strings.TrimPrefix(name, prefix), "_", " "))
}
