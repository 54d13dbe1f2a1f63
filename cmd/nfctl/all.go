package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/spf13/cobra"
	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/stats"

	"github.com/nfcomms/nfcomms/pkg/control"
	"github.com/nfcomms/nfcomms/pkg/control/proto/nfcomms/v1"
)

// allTimeout is the --timeout of --all unless it is given: list takes no longer, and top no longer
// than two seconds with an interval of one.
const allTimeout = 900 * time.Millisecond

// serverRecord is what a server of --all answered.
type serverRecord struct {
	Context string  `json:"context" doc:"name of the context"`
	Address string  `json:"address" doc:"address of the server"`
	Status  string  `json:"status" doc:"ok; slow: it is connected, but its answer was not there in time; else the name of an exit code: unreachable, denied, refused and so on"`
	Error   string  `json:"error" doc:"why it is not ok; empty if it is"`
	Version string  `json:"version" doc:"version of the server; empty if it is not known"`
	Took    float64 `json:"answer_seconds" doc:"time until the answer, or until nfctl gave up"`
	// code is the exit code of the status.
	code int
}

// statusTint is the colour of the status.
func (r serverRecord) statusTint() tint {
	switch r.code {
	case exitOK:
		return good
	case exitTimeout:
		return warn
	}
	return bad
}

// allFlag defines --all.
func allFlag(cmd *cobra.Command, all *bool) {
	cmd.Flags().BoolVar(all, "all", false, "ask the servers of all contexts at once; each has --timeout, 900ms unless given")
}

// allServers returns the servers of all contexts, with what flags and environment say of them, and
// bounds the answer of each.
func (a *app) allServers() ([]namedServer, error) {
	c, err := a.contexts()
	if err != nil {
		return nil, err
	}
	if len(c.contexts) == 0 {
		return nil, usagef("--all: no contexts in %s (see nfctl contexts --help)", orDash(c.path))
	}
	if !a.given["timeout"] && a.getenv(flagEnv["timeout"]) == "" {
		a.timeout = allTimeout
	}
	for i := range c.contexts {
		c.contexts[i].server = a.completed(c.contexts[i].server)
	}
	return c.contexts, nil
}

// asked is a server of --all with its client.
type asked struct {
	namedServer
	client *control.Client
	// bad is why there is no client.
	bad error
	// connected: there was a connection.
	connected atomic.Bool
	version   atomic.Pointer[string]
}

// connect makes a client of a server, which close ends. A server that is away is tried every two
// seconds at least.
func connect(s namedServer) *asked {
	q := &asked{namedServer: s}
	soon := backoff.DefaultConfig
	soon.MaxDelay = 2 * time.Second
	q.client, q.bad = s.dial(grpc.WithStatsHandler(q), grpc.WithConnectParams(grpc.ConnectParams{
		Backoff: soon, MinConnectTimeout: 20 * time.Second, // as gRPC has it; a call has its own limit
	}))
	return q
}

func (q *asked) close() error {
	if q.bad != nil {
		return nil
	}
	return q.client.Close()
}

// TagRPC, HandleRPC and TagConn complete stats.Handler.
func (q *asked) TagRPC(ctx context.Context, _ *stats.RPCTagInfo) context.Context { return ctx }
func (q *asked) HandleRPC(context.Context, stats.RPCStats)                       {}
func (q *asked) TagConn(ctx context.Context, _ *stats.ConnTagInfo) context.Context {
	return ctx
}

// HandleConn notes that there is a connection.
func (q *asked) HandleConn(_ context.Context, s stats.ConnStats) {
	if _, begins := s.(*stats.ConnBegin); begins {
		q.connected.Store(true)
	}
}

// ask asks a server by questions, for --timeout at most.
func (a *app) ask(ctx context.Context, q *asked, questions func(context.Context, *control.Client) error) serverRecord {
	begin := time.Now()
	err := q.bad
	if err == nil {
		err = a.askClient(ctx, q, questions)
	}
	r := serverRecord{Context: q.name, Address: q.address, Status: "ok", Took: time.Since(begin).Seconds(), code: exitCode(ctx, err)}
	if v := q.version.Load(); v != nil {
		r.Version = *v
	}
	if err != nil {
		if gone := (*unreachableError)(nil); errors.As(err, &gone) {
			err = gone.reason // the address is beside it
		}
		r.Error = message(err)
		r.Status = statusOf(r.code)
	}
	return r
}

// askClient asks for the version, which an old server may not know, and then questions.
func (a *app) askClient(ctx context.Context, q *asked, questions func(context.Context, *control.Client) error) error {
	limited, cancel := a.limited(ctx)
	defer cancel()
	if q.version.Load() == nil {
		if v, err := q.client.Versions.GetVersion(limited, &nfcommsv1.GetVersionRequest{}); err == nil {
			version := v.GetVersion()
			q.version.Store(&version)
		}
	}
	err := questions(limited, q.client)
	if code := exitCode(ctx, err); code == exitTimeout && !q.connected.Load() {
		return &unreachableError{address: q.address, reason: fmt.Errorf("no connection within %v", a.timeout)}
	} else if code == exitTimeout {
		return fmt.Errorf("no answer within %v (%w)", a.timeout, context.DeadlineExceeded)
	}
	return q.explain(limited, err)
}

// statusOf is the status of a server whose questions ended with an exit code.
func statusOf(code int) string {
	if code == exitTimeout {
		return "slow"
	}
	i := slices.IndexFunc(exitTable, func(r exitRow) bool { return r.code == code })
	return exitTable[max(i, 1)].name // there is a row for each code
}

// askAll asks all servers at once, and returns their records in the same order.
func (a *app) askAll(ctx context.Context, servers []*asked, questions func(ctx context.Context, i int, c *control.Client) error) []serverRecord {
	records := make([]serverRecord, len(servers))
	var wg sync.WaitGroup
	for i, q := range servers {
		wg.Go(func() {
			records[i] = a.ask(ctx, q, func(ctx context.Context, c *control.Client) error { return questions(ctx, i, c) })
		})
	}
	wg.Wait()
	return records
}

// connectAll makes clients of servers, and a function that closes them.
func connectAll(servers []namedServer) ([]*asked, func() error) {
	all := make([]*asked, len(servers))
	for i, s := range servers {
		all[i] = connect(s)
	}
	return all, func() (err error) {
		for _, q := range all {
			err = errors.Join(err, q.close())
		}
		return err
	}
}

// partialError ends a command of --all that printed what servers answered, if some are not ok.
type partialError struct {
	counts []string
	code   int
}

func (e *partialError) Error() string { return strings.Join(e.counts, ", ") }

// partial returns the error of servers that are not ok: with their exit code if it is that of all,
// else that of what is not well.
func partial(servers []serverRecord) error {
	count, order := make(map[string]int), []string{}
	wrong, same := 0, true
	for _, s := range servers {
		same = same && s.code == servers[0].code
		if s.code == exitOK {
			continue
		}
		if wrong++; count[s.Status] == 0 {
			order = append(order, s.Status)
		}
		count[s.Status]++
	}
	if wrong == 0 {
		return nil
	}
	e := &partialError{code: exitUnhealthy, counts: []string{fmt.Sprintf("%d of %d servers are not ok", wrong, len(servers))}}
	slices.Sort(order)
	for _, status := range order {
		e.counts = append(e.counts, fmt.Sprintf("%d %s", count[status], status))
	}
	if same {
		e.code = servers[0].code
	}
	return e
}

// listAll prints the devices of all servers.
func (a *app) listAll(ctx context.Context) error {
	servers, err := a.allServers()
	if err != nil {
		return err
	}
	all, closeAll := connectAll(servers)
	devices := make([][]*nfcommsv1.Device, len(all))
	r := listRecord{Devices: []listedRecord{}}
	r.Servers = a.askAll(ctx, all, func(ctx context.Context, i int, c *control.Client) (err error) {
		devices[i], err = collect(c.ListDevices(ctx))
		return err
	})
	for i, s := range r.Servers {
		for _, d := range devices[i] {
			r.Devices = append(r.Devices, listedRecord{deviceOf(d), s.Context})
		}
	}
	if err := errors.Join(ctx.Err(), closeAll()); err != nil {
		return err
	}
	if err := a.print(r); err != nil {
		return err
	}
	return partial(r.Servers)
}

// writeServers writes a table of the servers that are not ok, or of all with -o wide.
func writeServers(p *printer, servers []serverRecord) {
	shown := slices.DeleteFunc(slices.Clone(servers), func(s serverRecord) bool { return s.code == exitOK && !p.wide })
	if len(shown) == 0 {
		return
	}
	p.printf("\n")
	type row = serverRecord
	writeTable(&printer{w: p.w, wide: p.wide, columns: p.columns, color: p.color}, []column[row]{
		{title: "CONTEXT", cell: func(s row) string { return s.Context }},
		{title: "STATUS", cell: func(s row) string { return s.Status }, tint: row.statusTint},
		{title: "AFTER", right: true, spare: 2, cell: func(s row) string { return secondsText(&s.Took) }},
		{title: "VERSION", spare: 3, cell: func(s row) string { return orDash(s.Version) }},
		{title: "ADDRESS", spare: 4, cell: func(s row) string { return s.Address }},
		{title: "ERROR", spare: 1, cell: func(s row) string { return s.Error }, tint: func(row) tint { return bad }},
	}, shown)
}
