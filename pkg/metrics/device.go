package metrics

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/nfcomms/nfcomms/bridge"
	"github.com/nfcomms/nfcomms/bridge/abi"
	"github.com/nfcomms/nfcomms/pkg/nfcomms"
)

// states are the values of the label state, in the words of the control plane.
const (
	stateReady = iota
	stateDegraded
	stateFailed
	stateCount
)

// notOpen is the code of a device that could not be opened.
const notOpen = "not_open"

var stateNames = [stateCount]string{"ready", "degraded", "failed"}

// snapshot is what a device, or several added up, returned at one scrape.
type snapshot struct {
	name   string
	dev    *nfcomms.Device // nil for those that are not open, and for a sum
	info   nfcomms.Info
	stats  nfcomms.Stats
	health nfcomms.Health
	levels [len(parts)]abi.Level
	layers *layers       // nil where calls are not traced
	age    time.Duration // of the last heartbeat, the oldest of several
	states [stateCount]int
	// failures counts devices in the state failed, by code.
	failures map[string]int
}

// read takes a snapshot of a device; dev is nil if it could not be opened.
func read(name string, dev *nfcomms.Device) *snapshot {
	s := &snapshot{name: name, dev: dev, failures: map[string]int{}}
	if dev == nil {
		s.fail(notOpen)
		return s
	}
	s.info, s.stats = dev.Info(), dev.Stats()
	s.stats.Profile = whole(s.stats.Profile)
	health, err := dev.Health()
	switch {
	case err != nil:
		s.fail(code(err))
	case health.Diagnostic.Valid() && health.Diagnostic.Worst() > 0:
		s.states[stateDegraded]++
	default:
		s.states[stateReady]++
	}
	s.health = health
	for i, p := range parts {
		s.levels[i] = health.Diagnostic.Reading(p.shift)
	}
	s.age = s.stats.Age
	return s
}

// whole returns a profile in which a measured message stands for all of those
// that it was chosen from, so that counts and rates are those of the messages.
func whole(p *nfcomms.Profile) *nfcomms.Profile {
	all := *p
	for d := range abi.Direction(2) {
		path := all.Direct.Of(d)
		every := uint64(max(1, path.Every))
		path.Time *= time.Duration(every)
		path.Bytes *= every
		for _, counts := range [][]uint64{path.Durations[:], path.Sizes[:]} {
			for i := range counts {
				counts[i] *= every
			}
		}
	}
	return &all
}

func (s *snapshot) fail(code string) {
	s.states[stateFailed]++
	s.failures[code]++
}

// code returns the label value for an error.
func code(err error) string {
	status, _ := bridge.StatusOf(err)
	return codeNames[status]
}

// safeName makes a device's name fit for a label: any text, but not without
// end.
func safeName(name string) string {
	const most = 128
	name = strings.ToValidUTF8(name, "\ufffd")
	if len(name) > most {
		name = strings.ToValidUTF8(name[:most], "")
	}
	return name
}

// scrape shows the snapshot.
func (s *snapshot) scrape() *scrape {
	out := new(scrape)
	s.showState(out)
	if s.stats.Profile == nil { // no device is open
		return out
	}
	s.showCalls(out)
	s.showProfile(out)
	s.showNow(out)
	s.showMailboxes(out)
	s.showWaking(out)
	s.showHealth(out)
	s.showLayers(out)
	return out
}

func (s *snapshot) showState(out *scrape) {
	for i, name := range stateNames {
		out.add(fState, float64(s.states[i]), s.name, name)
	}
	for code, n := range s.failures {
		out.add(fFailure, float64(n), s.name, code)
	}
	if s.dev != nil {
		out.add(fInfo, 1, s.name, s.info.Driver, s.info.Kind(), safeName(s.info.Address), fmt.Sprintf("%d.%d", s.info.Major, s.info.Minor))
		if b := s.info.Board; b != nil {
			out.add(fBoard, 1, s.name, safeName(b.Address), safeName(b.Serial))
		}
	}
}

func (s *snapshot) showCalls(out *scrape) {
	st := &s.stats
	for d, direction := range directions {
		for i, p := range [2]*nfcomms.PathStats{st.Direct.Of(d), st.Indirect.Of(d)} {
			out.count(fMessages, p.Messages, s.name, direction, paths[i])
			out.count(fBytes, p.Bytes, s.name, direction, paths[i])
		}
	}
	out.count(fLists, st.Lists, s.name)
	out.count(fRepeated, st.Repeated, s.name)
	out.count(fUnaligned, st.Unaligned, s.name)
	out.count(fCorrupt, st.Corrupt, s.name)
	out.count(fRegistered, st.Registered, s.name)
	out.count(fSleeps, st.Sleeps, s.name)
}

func (s *snapshot) showProfile(out *scrape) {
	out.add(fMeasured, 1/float64(max(1, s.stats.Profile.Direct.H2D.Every)), s.name)
	for d, direction := range directions {
		direct, indirect := s.stats.Profile.Direct.Of(d), s.stats.Profile.Indirect.Of(d)
		for i, p := range [2]*nfcomms.PathProfile{direct, indirect} {
			for status, n := range p.Errors {
				out.count(fErrors, n, s.name, direction, paths[i], codeNames[status])
			}
		}
		out.durations(fMessageTime, direct, callBuckets, s.name, direction)
		out.durations(fTransferTime, indirect, callBuckets, s.name, direction)
		out.sizes(fMessageSize, direct, messageSizes, s.name, direction)
		out.sizes(fTransferSize, indirect, transferSizes, s.name, direction)
	}
}

func (s *snapshot) showNow(out *scrape) {
	st := &s.stats
	out.count(fChannels, uint64(st.Channels), s.name)
	out.add(fWindow, float64(s.info.Window), s.name)
	for d, direction := range directions {
		out.add(fBlocked, float64(*st.Waiting.Of(d)), s.name, direction)
		out.add(fTransfers, float64(*st.Transfers.Of(d)), s.name, direction)
		out.add(fListsNow, float64(*st.InFlight.Of(d)), s.name, direction)
	}
}

// mailboxesShown bounds the label mailbox; what is beyond is added up.
const mailboxesShown = 16

func (s *snapshot) showMailboxes(out *scrape) {
	out.count(fFull, s.stats.Full, s.name)
	shown, others := s.stats.Mailboxes, nfcomms.MailboxStats{}
	switch {
	case s.dev == nil: // those of several devices
		shown = nil
	case len(shown) > mailboxesShown:
		shown = shown[:mailboxesShown-1]
	}
	for i, m := range s.stats.Mailboxes {
		if i < len(shown) {
			s.showMailbox(out, strconv.Itoa(i), m)
			continue
		}
		others.Slots += m.Slots
		for d := range abi.Direction(2) {
			*others.Used.Of(d) += *m.Used.Of(d)
		}
	}
	if others.Slots > 0 {
		s.showMailbox(out, overflow, others)
	}
}

func (s *snapshot) showMailbox(out *scrape, label string, m nfcomms.MailboxStats) {
	out.add(fSlots, float64(m.Slots), s.name, label)
	for d, direction := range directions {
		out.add(fUsed, float64(*m.Used.Of(d)), s.name, label, direction)
	}
}

func (s *snapshot) showWaking(out *scrape) {
	st := &s.stats
	out.count(fWakeups, st.Wakeups, s.name)
	out.count(fSpurious, st.Spurious, s.name)
	out.count(fDoorbells, st.Doorbells, s.name)
	out.count(fStale, st.Dropped, s.name)
	out.count(fFaults, st.Faults, s.name)
	out.count(fResets, st.Resets, s.name)
	out.count(fLogDropped, st.LogDropped, s.name)
	out.add(fRegions, float64(st.Regions), s.name)
	out.count(fRegionBytes, st.RegionBytes, s.name)
}

// showHealth shows the last heartbeat; of a device that failed, only when it was.
func (s *snapshot) showHealth(out *scrape) {
	out.add(fHeartbeatTime, float64(time.Now().Add(-s.age).UnixMilli())/1000, s.name)
	out.add(fHeartbeatAge, s.age.Seconds(), s.name)
	if s.states[stateFailed] == s.devices() {
		return
	}
	h := &s.health
	out.count(fHeartbeats, h.Beat, s.name)
	out.add(fProcesses, float64(h.Processes), s.name)
	out.count(fQueued, h.Queued, s.name)
	out.count(fDeviceMessages, h.Messages, s.name)
	out.count(fDeviceBytes, h.Bytes, s.name)
	out.count(fDeviceDropped, h.Dropped, s.name)
	for i, p := range parts {
		out.add(fDiagnostic, float64(s.levels[i]), s.name, p.name)
	}
}

// devices is the number of devices in the snapshot.
func (s *snapshot) devices() (n int) {
	for _, k := range s.states {
		n += k
	}
	return n
}
