package main

import (
	"cmp"
	"strings"

	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/nfcomms/nfcomms/bridge/abi"
	"github.com/nfcomms/nfcomms/pkg/control/proto/nfcomms/v1"
	"github.com/nfcomms/nfcomms/pkg/nfcomms"
)

// The records below are the output of more than one command. Their doc tags are
// the text of nfctl explain and of the manual pages.

// deviceRecord is a device.
type deviceRecord struct {
	Device    string         `json:"device" doc:"name of the device"`
	Address   string         `json:"address" doc:"address it is opened with"`
	Driver    string         `json:"driver" doc:"back end; empty until the device was open once"`
	Kind      string         `json:"kind" doc:"kind of the device: simulated, emulated or hardware; empty until it was open once, and if the server does not tell"`
	State     string         `json:"state" doc:"opening, ready, degraded, draining, drained, resetting or failed; removed in list --watch alone"`
	Failure   *failureRecord `json:"failure" doc:"why it is failed; null in other states"`
	Owned     bool           `json:"owned" doc:"true if the server opened it, false if it is the application's own"`
	StateTime string         `json:"state_time" doc:"when the state last changed, RFC 3339 in UTC"`
	Epoch     uint32         `json:"epoch" doc:"counts resets"`
	ABIMajor  int32          `json:"abi_major" doc:"version of the device ABI, major"`
	ABIMinor  int32          `json:"abi_minor" doc:"version of the device ABI, minor"`
	Shape     *shapeRecord   `json:"shape" doc:"what it is made of; null until the device was open once"`
	Board     *boardRecord   `json:"board" doc:"the card that it is; null where it is none, as with sim: and shm:"`
	Stats     *statsRecord   `json:"stats" doc:"counters since it was opened; null until the device was open once"`
}

// failureRecord has the reason why something is out of use.
type failureRecord struct {
	Reason  string `json:"reason" doc:"one word: DEVICE_LOST, FAULT and so on"`
	Message string `json:"message" doc:"one sentence"`
}

func failureOf(f *nfcommsv1.Failure) *failureRecord {
	if f == nil {
		return nil
	}
	return &failureRecord{Reason: f.GetReason(), Message: f.GetMessage()}
}

// shapeRecord is what a device is made of.
type shapeRecord struct {
	Channels          int32   `json:"channels" doc:"target numbers are below this"`
	Mailboxes         int32   `json:"mailboxes" doc:"number of mailboxes"`
	Islands           int32   `json:"islands" doc:"number of islands"`
	Slots             int32   `json:"slots" doc:"slots of a ring"`
	Contexts          int32   `json:"contexts" doc:"processes that can run at once"`
	ReadManagers      int32   `json:"read_managers" doc:"managers that read mailboxes"`
	WriteManagers     int32   `json:"write_managers" doc:"managers that write mailboxes"`
	Window            int32   `json:"window" doc:"gather lists in flight per transfer"`
	MaxTransferBytes  uint64  `json:"max_transfer_bytes" doc:"the longest transfer"`
	HeartbeatInterval float64 `json:"heartbeat_interval_seconds" doc:"time between two heartbeats"`
	CanLoad           bool    `json:"can_load" doc:"true if nfctl load works"`
}

// pathRecord counts one direction of one path.
type pathRecord struct {
	Messages uint64 `json:"messages" doc:"messages or transfers that were delivered"`
	Bytes    uint64 `json:"bytes" doc:"bytes that were delivered"`
	Errors   uint64 `json:"errors" doc:"calls that ended with an error"`
}

func (p pathRecord) plus(q pathRecord) pathRecord {
	return pathRecord{p.Messages + q.Messages, p.Bytes + q.Bytes, p.Errors + q.Errors}
}

// trafficRecord counts what a channel, or all channels of a device, did.
type trafficRecord struct {
	DirectH2D   pathRecord `json:"direct_h2d" doc:"messages from host to device"`
	DirectD2H   pathRecord `json:"direct_d2h" doc:"messages from device to host"`
	IndirectH2D pathRecord `json:"indirect_h2d" doc:"transfers from host to device"`
	IndirectD2H pathRecord `json:"indirect_d2h" doc:"transfers from device to host"`
	Lists       uint64     `json:"lists" doc:"gather lists sent"`
	Repeated    uint64     `json:"repeated" doc:"rounds sent again on the device's request"`
	Sleeps      uint64     `json:"sleeps" doc:"times a call had to sleep"`
	nowRecord
}

// nowRecord is what a channel, or all channels of a device, do now.
type nowRecord struct {
	WaitingH2D   int32 `json:"waiting_h2d" doc:"calls that wait now to send"`
	WaitingD2H   int32 `json:"waiting_d2h" doc:"calls that wait now to receive"`
	TransfersH2D int32 `json:"transfers_h2d" doc:"transfers under way now from host to device"`
	TransfersD2H int32 `json:"transfers_d2h" doc:"transfers under way now from device to host"`
	InFlightH2D  int32 `json:"in_flight_h2d" doc:"gather lists sent now and not acked, host to device; 0 where a driver sends them"`
	InFlightD2H  int32 `json:"in_flight_d2h" doc:"gather lists sent now and not acked, device to host; 0 where a driver sends them"`
}

// waiting and transfers are those of both directions.
func (n nowRecord) waiting() int32   { return n.WaitingH2D + n.WaitingD2H }
func (n nowRecord) transfers() int32 { return n.TransfersH2D + n.TransfersD2H }

// h2d and d2h are both paths of a direction.
func (t trafficRecord) h2d() pathRecord { return t.DirectH2D.plus(t.IndirectH2D) }
func (t trafficRecord) d2h() pathRecord { return t.DirectD2H.plus(t.IndirectD2H) }

// statsRecord counts what a device did.
type statsRecord struct {
	trafficRecord
	OpenChannels int32  `json:"open_channels" doc:"channels open now, the application's included"`
	BlockedCalls int32  `json:"blocked_calls" doc:"calls that wait now, those of the control channel too"`
	Wakeups      uint64 `json:"wakeups" doc:"doorbells from the device"`
	Spurious     uint64 `json:"spurious_wakeups" doc:"doorbells from the device that found nothing to take"`
	Full         uint64 `json:"full" doc:"messages and offers that found no room in their ring; 0 where a driver does not count"`
	Doorbells    uint64 `json:"doorbells" doc:"doorbells to the device"`
	Dropped      uint64 `json:"dropped" doc:"messages from the device that were stale"`
	Faults       uint64 `json:"faults" doc:"times the device was latched as faulty"`
	Resets       uint64 `json:"resets" doc:"times it was reset"`
	LogDropped   uint64 `json:"log_records_dropped" doc:"log records dropped because the handler of the log was too slow"`

	Mailboxes []mailboxRecord `json:"mailboxes" doc:"the rings, by mailbox; empty once the device is lost, and where they are a driver's own"`
}

// mailboxRecord has the fill of the two rings of a mailbox.
type mailboxRecord struct {
	Slots   int32 `json:"slots" doc:"slots of each ring"`
	UsedH2D int32 `json:"used_h2d" doc:"slots that the host may not write now, of the ring to the device"`
	UsedD2H int32 `json:"used_d2h" doc:"slots that the device may not write now, of the ring to the host"`
}

// farEnd is the target of a channel.
type farEnd struct {
	Target uint32 `json:"target" doc:"number of the far end, at its node"`
	Node   string `json:"node" doc:"x.y.z of the fabric's node that it is at; empty: the device's own"`
}

// farEndOf takes a target apart.
func farEndOf(t nfcomms.Target) farEnd {
	e := farEnd{Target: abi.ID(t).Target()}
	if node, there := t.Node(); there {
		e.Node = node.String()
	}
	return e
}

// text is the target as commands take it.
func (e farEnd) text() string { return at(e.Node, number(e.Target)) }

// at is what commands take for a target or process of a node; an empty one is the
// device's own.
func at(node, what string) string {
	if node == "" {
		return what
	}
	return node + "/" + what
}

// compare orders those of the device's own node first.
func (e farEnd) compare(o farEnd) int {
	return cmp.Or(strings.Compare(e.Node, o.Node), cmp.Compare(e.Target, o.Target))
}

// channelRecord is the host's end of a channel.
type channelRecord struct {
	Device string `json:"device" doc:"name of the device"`
	farEnd
	Listener string `json:"listener" doc:"name of the listener that the application dialed, or that accepted the channel; empty for other channels"`
	State    string `json:"state" doc:"open or closed"`
	Owner    string `json:"owner" doc:"server: remote clients may use it; application: it is the application's own"`
	kindRecord
	CreateTime string        `json:"create_time" doc:"when the server opened or first saw it, RFC 3339 in UTC"`
	Caller     string        `json:"caller" doc:"who opened it, of a channel of the server; empty if the server does not know"`
	Stats      trafficRecord `json:"stats" doc:"counters since it was opened"`
	H2D        *halfRecord   `json:"h2d" doc:"what waits from host to device; null if the server does not know"`
	D2H        *halfRecord   `json:"d2h" doc:"what waits from device to host; null if the server does not know"`
}

// halfRecord is one direction of a channel.
type halfRecord struct {
	State       string   `json:"state" doc:"of its transaction: idle, offered, answering, moving or complete; unspecified where a driver does not report it"`
	Closed      bool     `json:"closed" doc:"true if calls end with an error"`
	Transaction uint64   `json:"transaction" doc:"number of the transaction under way; 0 while idle"`
	Waiting     int32    `json:"waiting" doc:"calls that wait now"`
	Queued      int32    `json:"queued" doc:"those of them that wait behind another call"`
	Armed       int32    `json:"armed" doc:"waiters of a Select or an adapter"`
	Slept       *float64 `json:"slept_seconds" doc:"time since the call in front fell asleep; null while none sleeps"`
}

// heartbeatRecord is a device's last life sign.
type heartbeatRecord struct {
	Beat      uint64  `json:"beat" doc:"counts up by one each interval"`
	Age       float64 `json:"age_seconds" doc:"time since the server saw it"`
	Processes int32   `json:"processes" doc:"device processes running"`
	Messages  uint64  `json:"messages" doc:"messages that the device took"`
	Bytes     uint64  `json:"bytes" doc:"bytes that its DMA engines moved"`
	Dropped   uint64  `json:"dropped" doc:"messages that it refused as stale or malformed"`
	Queued    uint64  `json:"queued" doc:"requests that wait for a target"`
}

// diagnosticRecord is the diagnostic word.
type diagnosticRecord struct {
	Word     uint32          `json:"word" doc:"the 32 bits as they are"`
	Valid    bool            `json:"valid" doc:"true if the device filled the word in"`
	Worst    string          `json:"worst" doc:"the worst of all readings; empty without readings"`
	Readings []readingRecord `json:"readings" doc:"one for each part of the device"`
}

// readingRecord is the health of one part of a device.
type readingRecord struct {
	Part  string `json:"part" doc:"service_network, memory, peripheral, core, current, voltage, temperature, z_minus … x_plus"`
	Level string `json:"level" doc:"normal, sick, broken or unknown"`
}

// memoryRecord is a device memory.
type memoryRecord struct {
	Type      string `json:"type" doc:"cls, ctm, imem or emem"`
	Base      uint64 `json:"base" doc:"device address of the first byte"`
	SizeBytes uint64 `json:"size_bytes" doc:"size"`
	FreeBytes uint64 `json:"free_bytes" doc:"free part of it"`
}

func deviceOf(d *nfcommsv1.Device) deviceRecord {
	return deviceRecord{
		Device: deviceID(d.GetName()), Address: d.GetAddress(), Driver: d.GetDriver(), Kind: deviceKind(d.GetKind()),
		State: word(d.GetState()), Failure: failureOf(d.GetFailure()), Owned: d.GetOwned(),
		StateTime: timeText(d.GetStateTime()), Epoch: d.GetEpoch(),
		ABIMajor: d.GetAbiMajor(), ABIMinor: d.GetAbiMinor(),
		Shape: shapeOf(d.GetShape()), Board: boardOf(d.GetBoard()), Stats: statsOf(d.GetStats()),
	}
}

func shapeOf(s *nfcommsv1.Shape) *shapeRecord {
	if s == nil {
		return nil
	}
	return &shapeRecord{
		Channels: s.GetChannels(), Mailboxes: s.GetMailboxes(), Islands: s.GetIslands(), Slots: s.GetSlots(),
		Contexts: s.GetContexts(), ReadManagers: s.GetReadManagers(), WriteManagers: s.GetWriteManagers(),
		Window: s.GetWindow(), MaxTransferBytes: s.GetMaxTransferBytes(),
		HeartbeatInterval: seconds(s.GetHeartbeatInterval()), CanLoad: s.GetCanLoad(),
	}
}

func pathOf(p *nfcommsv1.PathStats) pathRecord {
	return pathRecord{Messages: p.GetMessages(), Bytes: p.GetBytes(), Errors: p.GetErrors()}
}

func trafficOf(s *nfcommsv1.ChannelStats) trafficRecord {
	return trafficRecord{
		DirectH2D: pathOf(s.GetDirectH2D()), DirectD2H: pathOf(s.GetDirectD2H()),
		IndirectH2D: pathOf(s.GetIndirectH2D()), IndirectD2H: pathOf(s.GetIndirectD2H()),
		Lists: s.GetLists(), Repeated: s.GetRepeated(), Sleeps: s.GetSleeps(), nowRecord: nowOf(s),
	}
}

func nowOf(s *nfcommsv1.ChannelStats) nowRecord {
	return nowRecord{
		WaitingH2D: s.GetWaitingH2D(), WaitingD2H: s.GetWaitingD2H(),
		TransfersH2D: s.GetTransfersH2D(), TransfersD2H: s.GetTransfersD2H(),
		InFlightH2D: s.GetInFlightH2D(), InFlightD2H: s.GetInFlightD2H(),
	}
}

func statsOf(s *nfcommsv1.DeviceStats) *statsRecord {
	if s == nil {
		return nil
	}
	r := &statsRecord{
		trafficRecord: trafficOf(s.GetChannels()), Mailboxes: []mailboxRecord{},
		OpenChannels: s.GetOpenChannels(), BlockedCalls: s.GetBlockedCalls(),
		Wakeups: s.GetWakeups(), Spurious: s.GetSpuriousWakeups(), Full: s.GetFull(), Doorbells: s.GetDoorbells(), Dropped: s.GetDropped(),
		Faults: s.GetFaults(), Resets: s.GetResets(), LogDropped: s.GetLogRecordsDropped(),
	}
	for _, b := range s.GetMailboxes() {
		r.Mailboxes = append(r.Mailboxes, mailboxRecord{Slots: b.GetSlots(), UsedH2D: b.GetUsedH2D(), UsedD2H: b.GetUsedD2H()})
	}
	return r
}

func channelOf(c *nfcommsv1.Channel) channelRecord {
	return channelRecord{
		Device: resourceDevice(c.GetName()), farEnd: farEnd{c.GetTarget(), c.GetNode()}, Listener: c.GetListener(), State: word(c.GetState()), Owner: word(c.GetOwner()), kindRecord: kindRecord{deviceKind(c.GetDeviceKind())},
		CreateTime: timeText(c.GetCreateTime()), Caller: c.GetCaller(), Stats: trafficOf(c.GetStats()),
		H2D: halfOf(c.GetH2D()), D2H: halfOf(c.GetD2H()),
	}
}

func halfOf(h *nfcommsv1.Half) *halfRecord {
	if h == nil {
		return nil
	}
	return &halfRecord{
		State: word(h.GetState()), Closed: h.GetClosed(), Transaction: h.GetTransaction(),
		Waiting: h.GetWaiting(), Queued: h.GetQueued(), Armed: h.GetArmed(), Slept: secondsOrNil(h.GetSlept()),
	}
}

func heartbeatOf(h *nfcommsv1.Heartbeat) *heartbeatRecord {
	if h == nil {
		return nil
	}
	return &heartbeatRecord{
		Beat: h.GetBeat(), Age: seconds(h.GetAge()), Processes: h.GetProcesses(), Messages: h.GetMessages(),
		Bytes: h.GetBytes(), Dropped: h.GetDropped(), Queued: h.GetQueued(),
	}
}

func diagnosticOf(d *nfcommsv1.DiagnosticWord) *diagnosticRecord {
	if d == nil {
		return nil
	}
	r := &diagnosticRecord{Word: d.GetWord(), Valid: d.GetValid(), Readings: []readingRecord{}}
	if d.GetValid() {
		r.Worst = word(d.GetWorst())
	}
	for _, x := range d.GetReadings() {
		r.Readings = append(r.Readings, readingRecord{Part: word(x.GetPart()), Level: word(x.GetLevel())})
	}
	return r
}

func memoriesOf(list []*nfcommsv1.Memory) []memoryRecord {
	records := []memoryRecord{}
	for _, m := range list {
		records = append(records, memoryRecord{
			Type: word(m.GetType()), Base: m.GetBase(), SizeBytes: m.GetSizeBytes(), FreeBytes: m.GetFreeBytes(),
		})
	}
	return records
}

// enum is a generated enumeration.
type enum interface{ String() string }

// prefixes of the names of enumerations, as the protos have them.
var prefixes = []string{"STATE_", "OWNER_", "PART_", "LEVEL_", "TYPE_", "SEVERITY_", "CHANGE_", "KIND_"}

// word is the name of an enumeration's value as the output has it: "ready".
func word(e enum) string {
	name := e.String()
	for _, p := range prefixes {
		if rest, ok := strings.CutPrefix(name, p); ok {
			name = rest
			break
		}
	}
	return strings.ToLower(name)
}

// kindRecord is the kind of the device of a record.
type kindRecord struct {
	Kind string `json:"kind" doc:"kind of the device that the figures are of: simulated, emulated or hardware; empty if the server does not tell"`
}

// deviceKind is the kind of a device; empty if the server does not tell.
func deviceKind(k nfcommsv1.Device_Kind) string {
	if k == nfcommsv1.Device_KIND_UNSPECIFIED {
		return ""
	}
	return word(k)
}

// kindText is a kind as a person reads it.
func kindText(kind string) string { return cmp.Or(kind, "kind not told") }

func seconds(d *durationpb.Duration) float64 { return d.AsDuration().Seconds() }

// timeLayout is RFC 3339 with a fixed number of digits.
const timeLayout = "2006-01-02T15:04:05.000000Z07:00"

// timeText writes a time; empty if there is none.
func timeText(t *timestamppb.Timestamp) string {
	if t == nil {
		return ""
	}
	return t.AsTime().Format(timeLayout)
}

// deviceID returns the name of a device without its collection.
func deviceID(name string) string { return strings.TrimPrefix(name, "devices/") }

// resourceDevice returns the device in the name of what belongs to it.
func resourceDevice(name string) string {
	device, _, _ := strings.Cut(deviceID(name), "/")
	return device
}

// lastID returns the last part of a resource name.
func lastID(name string) string { return name[strings.LastIndex(name, "/")+1:] }

// deviceName returns the resource name for what a person wrote: "sim0" or
// "devices/sim0".
func deviceName(arg string) string { return "devices/" + deviceID(arg) }

// tintOf colours states and levels.
func tintOf(state string) tint {
	switch state {
	case "ready", "normal", "serving", "ok", "info":
		return good
	case "failed", "broken", "not_serving", "error":
		return bad
	case "open", "closed", "skipped", "", "-":
		return plainTint
	}
	return warn
}
