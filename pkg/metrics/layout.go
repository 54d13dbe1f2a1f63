package metrics

import "github.com/nfcomms/nfcomms/pkg/nfcomms"

// layout decides which devices are shown one by one.
type layout struct {
	budget int // series
	used   int // of it, by pages
	rest   int // of it, that others may take
	pages  []page
	others *snapshot // the devices that did not fit, added up; nil if all did
	last   string    // the name placed last
	full   bool      // no more pages
}

// page is a device with what it shows.
type page struct {
	*snapshot
	*scrape
}

// overflowSeries is the most that a sum of devices shows, with or without layers.
func overflowSeries(traced bool) int {
	s := sum(overflow)
	for _, code := range codeNames {
		s.fail(code)
	}
	s.fail(notOpen)
	s.states[stateReady]++
	s.stats.Profile = new(nfcomms.Profile)
	s.stats.Mailboxes = []nfcomms.MailboxStats{{Slots: 1}}
	if traced {
		s.layers = &layers{clockError: 1}
		s.layers.each(func(_, _, _ int, p *nfcomms.PathProfile) { p.Time = 1 })
	}
	return s.scrape().series
}

// place takes the next device by name. A name is shown once, and overflow is
// the sum's.
func (l *layout) place(s *snapshot) {
	named := s.name != l.last && s.name != overflow
	l.last = s.name
	if named && !l.full {
		p := page{s, s.scrape()}
		if p.series <= l.room() {
			l.pages = append(l.pages, p)
			l.used += p.series
			return
		}
		l.full = true
	}
	if l.others == nil {
		l.others = sum(overflow)
		for n := len(l.pages) - 1; n >= 0 && l.room() < 0; n-- {
			l.others.merge(l.pages[n].snapshot)
			l.used -= l.pages[n].series
			l.pages = l.pages[:n]
		}
	}
	l.others.merge(s)
}

// room is the number of series that are left.
func (l *layout) room() int {
	if l.others != nil {
		return l.budget - l.used - l.rest
	}
	return l.budget - l.used
}
