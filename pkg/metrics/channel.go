package metrics

import (
	"slices"
	"strconv"

	"github.com/nfcomms/nfcomms/pkg/nfcomms"
)

// channelSeries is what one channel shows.
const channelSeries = 16

// book remembers which channels of a device are shown by themselves. A channel
// keeps its place until it closes, and one that found no place gets none
// later: so no count ever falls or is told twice.
type book struct {
	shown map[*nfcomms.Channel]nfcomms.ChannelStats // as last seen
	other map[*nfcomms.Channel]bool                 // without a place
	gone  nfcomms.ChannelStats                      // as last seen, of those that had one
	rest  nfcomms.ChannelStats                      // as last told, of all without a place
}

// addChannels adds the channels of the devices that are shown, and shares the
// room among them.
func (c *collector) addChannels(l *layout) {
	c.mu.Lock()
	defer c.mu.Unlock()
	books := make(map[*nfcomms.Device]*book, len(l.pages))
	room := l.room()
	for i, p := range l.pages {
		if p.dev == nil || books[p.dev] != nil {
			continue
		}
		b := c.books[p.dev]
		if b == nil {
			b = &book{shown: map[*nfcomms.Channel]nfcomms.ChannelStats{}}
		}
		books[p.dev] = b
		share := room/(len(l.pages)-i)/channelSeries - 1 // one for the rest
		if share < 0 {
			continue
		}
		before := p.series
		b.turn(p.dev.Channels(), share)
		b.show(p)
		room -= p.series - before
	}
	c.books = books
}

// turn takes note of which channels are open, and gives at most limit of them
// a place.
func (b *book) turn(open []*nfcomms.Channel, limit int) {
	slices.SortFunc(open, func(x, y *nfcomms.Channel) int { return int(x.Target()) - int(y.Target()) })
	other := make(map[*nfcomms.Channel]bool)
	there := make(map[*nfcomms.Channel]bool, len(open))
	for _, ch := range open {
		there[ch] = true
		if b.other[ch] {
			other[ch] = true
		}
	}
	for ch := range b.shown {
		if !there[ch] {
			b.drop(ch)
		}
	}
	for ch := range b.shown {
		if len(b.shown) > limit {
			b.drop(ch)
			other[ch] = true
		}
	}
	for _, ch := range open {
		if _, has := b.shown[ch]; has || other[ch] {
			continue
		}
		if len(b.shown) < limit {
			b.shown[ch] = nfcomms.ChannelStats{}
		} else {
			other[ch] = true
		}
	}
	b.other = other
}

// drop takes a channel's place away.
func (b *book) drop(ch *nfcomms.Channel) {
	b.gone.Add(b.shown[ch])
	delete(b.shown, ch)
}

// show adds the channels to the page of their device.
func (b *book) show(p page) {
	sum := b.gone
	zeroNow(&sum)
	targets := make(map[nfcomms.Target]nfcomms.ChannelStats, len(b.shown))
	for ch := range b.shown {
		s := ch.Stats()
		b.shown[ch] = s
		sum.Add(s)
		old := targets[ch.Target()] // a channel that closes and its successor
		old.Add(s)
		targets[ch.Target()] = old
	}
	for t, s := range targets {
		p.channel(p.name, strconv.FormatUint(uint64(t), 10), &s)
	}
	b.remain(&p.stats.ChannelStats, &sum)
	p.channel(p.name, Overflow, &b.rest)
}

// zeroNow forgets what is of the moment.
func zeroNow(s *nfcomms.ChannelStats) {
	s.Waiting, s.Transfers, s.InFlight = [2]int{}, [2]int{}, [2]int{}
}

// remain works out what the channels without a place did: all that the device
// counted, less what is shown. The two were not read at the same moment, so
// that the counts must be kept from falling.
func (b *book) remain(total, shown *nfcomms.ChannelStats) {
	path := func(rest, total, shown *nfcomms.PathStats) {
		rest.Messages = grow(rest.Messages, total.Messages, shown.Messages)
		rest.Bytes = grow(rest.Bytes, total.Bytes, shown.Bytes)
		rest.Errors = grow(rest.Errors, total.Errors, shown.Errors)
	}
	for d := range directions {
		path(&b.rest.Direct[d], &total.Direct[d], &shown.Direct[d])
		path(&b.rest.Indirect[d], &total.Indirect[d], &shown.Indirect[d])
		b.rest.Waiting[d] = max(0, total.Waiting[d]-shown.Waiting[d])
		b.rest.Transfers[d] = max(0, total.Transfers[d]-shown.Transfers[d])
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
func (s *sheet) channel(device, channel string, st *nfcomms.ChannelStats) {
	for d, direction := range directions {
		for i, p := range [2]*nfcomms.PathStats{&st.Direct[d], &st.Indirect[d]} {
			s.count(fChannelMessages, p.Messages, device, channel, direction, paths[i])
			s.count(fChannelBytes, p.Bytes, device, channel, direction, paths[i])
			s.count(fChannelErrors, p.Errors, device, channel, direction, paths[i])
		}
		s.add(fChannelBlocked, float64(st.Waiting[d]), device, channel, direction)
		s.add(fChannelTransfers, float64(st.Transfers[d]), device, channel, direction)
	}
}
