package metrics

import (
	"cmp"
	"slices"

	"github.com/nfcomms/nfcomms/bridge"
	"github.com/nfcomms/nfcomms/bridge/abi"
	"github.com/nfcomms/nfcomms/pkg/nfcomms"
	"github.com/nfcomms/nfcomms/pkg/nfcomms/admin"
)

// channelSeries is what one channel shows.
const channelSeries = 16

// channelTable remembers which channels of a device have series of their own. A
// channel keeps its place until it closes, and one that found no place gets none
// later: so no count falls, and none is counted twice.
type channelTable struct {
	shown  map[*nfcomms.Channel]nfcomms.ChannelStats // as last seen
	other  map[*nfcomms.Channel]bool                 // without a place
	gone   nfcomms.ChannelStats                      // as last seen, of those that had one
	others nfcomms.ChannelStats                      // as last shown, of all without a place
}

// addChannels adds the channels of the devices that are shown, and shares the
// room among them.
func (c *collector) addChannels(l *layout) {
	c.mu.Lock()
	defer c.mu.Unlock()
	tables := make(map[*nfcomms.Device]*channelTable, len(l.pages))
	room := l.room()
	for i, p := range l.pages {
		if p.dev == nil || tables[p.dev] != nil {
			continue
		}
		t := c.tables[p.dev]
		if t == nil {
			t = &channelTable{shown: map[*nfcomms.Channel]nfcomms.ChannelStats{}}
		}
		tables[p.dev] = t
		share := room/(len(l.pages)-i)/channelSeries - 1 // one for the others
		if share < 0 {
			continue
		}
		before := p.series
		t.update(admin.Channels(p.dev), share)
		t.show(p)
		room -= p.series - before
	}
	c.tables = tables
}

// update compares with the channels that are open, and gives at most limit of them
// a place.
func (t *channelTable) update(open []*nfcomms.Channel, limit int) {
	slices.SortFunc(open, func(x, y *nfcomms.Channel) int { return cmp.Compare(x.Target(), y.Target()) })
	other := make(map[*nfcomms.Channel]bool)
	there := make(map[*nfcomms.Channel]bool, len(open))
	for _, ch := range open {
		there[ch] = true
		if t.other[ch] {
			other[ch] = true
		}
	}
	for ch := range t.shown {
		if !there[ch] {
			t.drop(ch)
		}
	}
	for ch := range t.shown {
		if len(t.shown) > limit {
			t.drop(ch)
			other[ch] = true
		}
	}
	for _, ch := range open {
		if _, has := t.shown[ch]; has || other[ch] {
			continue
		}
		if len(t.shown) < limit {
			t.shown[ch] = nfcomms.ChannelStats{}
		} else {
			other[ch] = true
		}
	}
	t.other = other
}

// drop takes a channel's place away.
func (t *channelTable) drop(ch *nfcomms.Channel) {
	t.gone.Add(t.shown[ch])
	delete(t.shown, ch)
}

// show adds the channels to the page of their device.
func (t *channelTable) show(p page) {
	sum := t.gone
	zeroNow(&sum)
	labels := make(map[string]nfcomms.ChannelStats, len(t.shown))
	for ch := range t.shown {
		s := ch.Stats()
		t.shown[ch] = s
		sum.Add(s)
		old := labels[label(ch)] // a channel that closes and its successor, or all of one name
		old.Add(s)
		labels[label(ch)] = old
	}
	for label, s := range labels {
		p.channel(p.name, label, &s)
	}
	t.remain(&p.stats.ChannelStats, &sum)
	p.channel(p.name, overflow, &t.others)
}

// label is the name of a channel's listener, or its target: no name is a number.
func label(ch *nfcomms.Channel) string {
	if name := ch.Name(); name != "" {
		return name
	}
	return ch.Target().String()
}

// zeroNow forgets what is of the moment.
func zeroNow(s *nfcomms.ChannelStats) {
	s.Waiting, s.Transfers, s.InFlight = bridge.Both[int]{}, bridge.Both[int]{}, bridge.Both[int]{}
}

// remain works out what the channels without a place did: all that the device
// counted, less what is shown. The two were not read at the same moment, so
// that the counts must be kept from falling.
func (t *channelTable) remain(total, shown *nfcomms.ChannelStats) {
	path := func(others, total, shown *nfcomms.PathStats) {
		others.Messages = grow(others.Messages, total.Messages, shown.Messages)
		others.Bytes = grow(others.Bytes, total.Bytes, shown.Bytes)
		others.Errors = grow(others.Errors, total.Errors, shown.Errors)
	}
	for d := range abi.Direction(2) {
		path(t.others.Direct.Of(d), total.Direct.Of(d), shown.Direct.Of(d))
		path(t.others.Indirect.Of(d), total.Indirect.Of(d), shown.Indirect.Of(d))
		*t.others.Waiting.Of(d) = max(0, *total.Waiting.Of(d)-*shown.Waiting.Of(d))
		*t.others.Transfers.Of(d) = max(0, *total.Transfers.Of(d)-*shown.Transfers.Of(d))
	}
}

// grow returns total less shown, but not less than before.
func grow(before, total, shown uint64) uint64 {
	if total < shown {
		return before
	}
	return max(before, total-shown)
}

// channel adds one channel.
func (s *scrape) channel(device, channel string, st *nfcomms.ChannelStats) {
	for d, direction := range directions {
		for i, p := range [2]*nfcomms.PathStats{st.Direct.Of(d), st.Indirect.Of(d)} {
			s.count(fChannelMessages, p.Messages, device, channel, direction, paths[i])
			s.count(fChannelBytes, p.Bytes, device, channel, direction, paths[i])
			s.count(fChannelErrors, p.Errors, device, channel, direction, paths[i])
		}
		s.add(fChannelBlocked, float64(*st.Waiting.Of(d)), device, channel, direction)
		s.add(fChannelTransfers, float64(*st.Transfers.Of(d)), device, channel, direction)
	}
}
