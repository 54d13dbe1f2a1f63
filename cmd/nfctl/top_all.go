package main

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/nfcomms/nfcomms/pkg/control"
)

// topServerRecord is a server of nfctl top --all.
type topServerRecord struct {
	serverRecord
	Interval float64 `json:"interval_seconds" doc:"time that the rates of its devices are about; 0 if there are none"`
}

// part is what one server of --all answered: the last two samples, as far as there are any.
type part struct {
	serverRecord
	before, now sample
}

// poller takes samples of one server. No server waits for another one.
type poller struct {
	*asked
	mu sync.Mutex
	// part is the last answer; guarded by mu.
	part part
	// count is the number of answers, with those that failed; guarded by mu.
	count int
	// news has a signal after each answer.
	news chan<- struct{}
}

// run takes a sample each interval until the context ends.
func (p *poller) run(ctx context.Context, a *app, interval time.Duration) {
	due := time.NewTicker(interval)
	defer due.Stop()
	for ctx.Err() == nil {
		var s sample
		r := a.ask(ctx, p.asked, func(ctx context.Context, c *control.Client) (err error) {
			s, err = takeSample(ctx, c, control.AllDevices)
			return err
		})
		p.note(r, s)
		select {
		case <-ctx.Done():
		case <-due.C:
		}
	}
}

// note takes an answer in. Without one, the devices of the last are not shown any more.
func (p *poller) note(r serverRecord, s sample) {
	p.mu.Lock()
	defer p.mu.Unlock()
	before := p.part.now
	p.part = part{serverRecord: r}
	if r.code == exitOK {
		p.part.before, p.part.now = before, s
	}
	p.count++
	select {
	case p.news <- struct{}{}:
	default: // there is a signal already
	}
}

// seen returns the last answer, and whether there were so many. A server that is not ok has no
// further answer to wait for.
func (p *poller) seen(want int) (part, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.part, p.count >= want || p.count > 0 && p.part.code != exitOK
}

// pollers are those of all servers.
type pollers struct {
	all  []*poller
	news chan struct{}
	// limit is how long fetch waits for answers.
	limit time.Duration
	// want is the number of answers that the next fetch waits for.
	want int
}

// fetch returns the last samples of all servers. It waits for the next answer of each that is ok, but
// no longer than --timeout.
func (p *pollers) fetch(ctx context.Context) (sample, error) {
	want := p.want
	p.want = max(2, want+1)   // rates need two
	var late <-chan time.Time // never without a limit
	if p.limit > 0 {
		t := time.NewTimer(p.limit)
		defer t.Stop()
		late = t.C
	}
	for over := false; ; {
		parts, all := p.parts(want, over)
		if all || over {
			return sample{at: time.Now(), parts: parts}, nil
		}
		select {
		case <-p.news:
		case <-late:
			over = true
		case <-ctx.Done():
			return sample{}, ctx.Err()
		}
	}
}

// parts returns what all servers answered, and whether each answered so often. Once the time is
// over, a server that has not answered at all, or for which there is no rate yet, is slow.
func (p *pollers) parts(want int, over bool) (parts []part, all bool) {
	all = true
	for _, q := range p.all {
		x, there := q.seen(want)
		all = all && there
		if x.Context == "" || over && !there {
			x.Context, x.Address, x.code = q.name, q.address, exitTimeout
			x.Status, x.Error, x.Took = statusOf(exitTimeout), "no answer yet", p.limit.Seconds()
		}
		parts = append(parts, x)
	}
	return parts, all
}

// startPollers connects to the servers of all contexts and takes samples until the function that it
// returns ends that. want is the number of answers that the first fetch waits for.
func (a *app) startPollers(ctx context.Context, interval time.Duration, want int) (*pollers, func() error, error) {
	servers, err := a.allServers()
	if err != nil {
		return nil, nil, err
	}
	ctx, cancel := context.WithCancel(ctx)
	all, closeAll := connectAll(servers)
	p := &pollers{news: make(chan struct{}, 1), limit: a.timeout, want: want}
	var wg sync.WaitGroup
	for _, q := range all {
		one := &poller{asked: q, news: p.news}
		p.all = append(p.all, one)
		wg.Go(func() { one.run(ctx, a, interval) })
	}
	return p, func() error {
		cancel()
		wg.Wait()
		return closeAll()
	}, nil
}

// topAll is nfctl top --all.
func (a *app) topAll(ctx context.Context, o topOptions) (err error) {
	first := 0 // the rates of one interval shall not wait for the first answers as well
	if !o.once && !o.loop {
		first = 1
	}
	p, stop, err := a.startPollers(ctx, o.interval, first)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, stop()) }()
	if !o.once {
		return a.topShow(ctx, p.fetch, o)
	}
	o.count = 1
	var last topRecord
	err = a.topLoop(ctx, p.fetch, o, func(r record) error {
		last = r.(topRecord)
		return a.print(r)
	})
	if err == nil {
		err = partial(plainServers(last.Servers))
	}
	return err
}

// compareParts makes a record of the samples of many servers.
func compareParts(now sample, channels int) topRecord {
	r := compare(sample{}, sample{at: now.at}, 0)
	for _, x := range now.parts {
		s := topServerRecord{serverRecord: x.serverRecord}
		if !x.now.at.IsZero() {
			own := compare(x.before, x.now, len(x.now.channels))
			for i := range own.Devices {
				own.Devices[i].Context = x.Context
			}
			for i := range own.Channels {
				own.Channels[i].Context = x.Context
			}
			s.Interval = own.Interval
			r.Devices, r.Channels = append(r.Devices, own.Devices...), append(r.Channels, own.Channels...)
		}
		r.Interval = max(r.Interval, s.Interval)
		r.Servers = append(r.Servers, s)
	}
	r.Total = len(r.Channels)
	slices.SortStableFunc(r.Channels, busiest)
	r.Channels = r.Channels[:min(channels, len(r.Channels))]
	return r
}

// plainServers returns what list shows as well.
func plainServers(servers []topServerRecord) (plain []serverRecord) {
	for _, s := range servers {
		plain = append(plain, s.serverRecord)
	}
	return plain
}
