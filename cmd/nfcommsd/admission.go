package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"sync"
	"syscall"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"google.golang.org/grpc/credentials"

	"github.com/nfcomms/nfcomms/cmd/nfcommsd/internal/listen"
	"github.com/nfcomms/nfcomms/pkg/control/access"
)

// mostWaiting is how many connections of a listener may be before their
// handshake or, over HTTP, without a request.
const mostWaiting = 256

// How many connections are taken in a second. A TLS handshake costs some tenths
// of a millisecond of a processor, with a key of RSA some milliseconds; the start
// of a local connection, or of one over HTTP, less than a tenth.
var (
	localPace = listen.Pace{Known: 500}
	tlsPace   = listen.Pace{Stranger: 20, Strangers: 500, Known: 200}
	webPace   = listen.Pace{Stranger: 100, Strangers: 200, Known: 500, Requests: 50}
)

// Names of the listeners, in metrics and log lines.
const (
	localListener = "unix"
	tlsListener   = "tls"
	webListener   = "http"
)

// handshake is why a client did not get in that has no certificate, or no good
// one.
const handshake listen.Reason = "handshake"

// refusals counts and reports the connections that did not get in.
type refusals struct {
	count *prometheus.CounterVec
	log   func(listener, source string, why listen.Reason, detail string, more int)

	mu    sync.Mutex
	quiet map[refusal]*quietPeriod
}

// refusal is what is reported apart.
type refusal struct {
	listener string
	why      listen.Reason
}

// quietPeriod is the time after a log line in which its like is counted only.
type quietPeriod struct {
	until time.Time
	count int // what happened meanwhile
}

// refusalQuiet is the time between two log lines about the same.
const refusalQuiet = 10 * time.Second

func newRefusals(log func(listener, source string, why listen.Reason, detail string, more int)) *refusals {
	r := &refusals{
		count: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "nfcommsd_connections_refused_total",
			Help: "Connections that were closed before they were of use: full, no place was free or the caller has its share; pace, too many of one source in a second; evicted, it waited and another came; handshake, no certificate or no good one; unknown, the kernel did not say whose it was.",
		}, []string{"listener", "reason"}),
		log: log, quiet: make(map[refusal]*quietPeriod),
	}
	for _, l := range []string{localListener, tlsListener, webListener} {
		for _, why := range []listen.Reason{listen.Full, listen.TooFast, listen.Evicted, listen.Unknown, handshake} {
			r.count.WithLabelValues(l, string(why))
		}
	}
	return r
}

// add counts one, and logs it unless the like of it was logged lately.
func (r *refusals) add(listener, source string, why listen.Reason, detail string) {
	r.count.WithLabelValues(listener, string(why)).Inc()
	r.mu.Lock()
	key, now := refusal{listener, why}, time.Now()
	s := r.quiet[key]
	if s == nil {
		s = &quietPeriod{}
		r.quiet[key] = s
	}
	if now.Before(s.until) {
		s.count++
		r.mu.Unlock()
		return
	}
	more := s.count
	s.until, s.count = now.Add(refusalQuiet), 0
	r.mu.Unlock()
	r.log(listener, source, why, detail, more)
}

// logRefusal writes the line of a refusal.
func (d *daemon) logRefusal(listener, source string, why listen.Reason, detail string, more int) {
	text := "connection refused"
	if why == handshake {
		text = "handshake failed"
	}
	args := []any{"listener", listener, "source", source, "reason", string(why), "more_since_last", more}
	if detail != "" {
		args = append(args, "error", detail)
	}
	d.log.Warn(text, args...)
}

// limitLocal bounds the connections of a UNIX socket, whose owners the kernel
// reports.
func (d *daemon) limitLocal(l net.Listener) net.Listener {
	limits := d.limits(localListener, localPace)
	limits.OwnerOf = func(conn syscall.Conn) (listen.Owner, error) {
		who, err := access.LocalOf(conn)
		return d.ownerOf(who), err
	}
	return listen.Limit(l, limits)
}

// limitWeb bounds the connections of HTTP: of a UNIX socket, and of the loopback
// interface, they are those of users, and else of addresses.
func (d *daemon) limitWeb(l net.Listener) net.Listener {
	limits := d.limits(webListener, webPace)
	limits.Late, limits.OwnerOf = true, func(conn syscall.Conn) (listen.Owner, error) {
		switch c := conn.(type) {
		case *net.UnixConn:
			who, err := access.LocalOf(c)
			return d.ownerOf(who), err
		case *net.TCPConn:
			if uid, err := listen.LoopbackUser(c); err == nil {
				return d.ownerOf(access.Local{UID: uid}), nil
			}
		}
		return listen.Owner{}, nil
	}
	return listen.Limit(l, limits)
}

// limits are what all listeners have in common.
func (d *daemon) limits(name string, pace listen.Pace) listen.Limits {
	return listen.Limits{
		Open: d.conf.Limits.Connections, Reserved: d.conf.Limits.AdminConnections, Waiting: mostWaiting, Pace: pace,
		Refused: func(source string, why listen.Reason) { d.refused.add(name, source, why, "") },
	}
}

// ownerOf is whom a connection is counted as.
func (d *daemon) ownerOf(who credentials.AuthInfo) listen.Owner {
	return listen.Owner{Name: d.authorizer.Owner(who), Privileged: d.authorizer.RoleOf(who) == access.Admin}
}

// refusing are credentials that report the connections that they refuse.
type refusing struct {
	credentials.TransportCredentials
	d        *daemon
	listener string
}

// ServerHandshake does the handshake, and counts a refusal.
func (r refusing) ServerHandshake(raw net.Conn) (net.Conn, credentials.AuthInfo, error) {
	conn, info, err := r.TransportCredentials.ServerHandshake(raw)
	if err != nil && !errors.Is(err, net.ErrClosed) { // then the listener took it away, and said so
		why := handshake
		switch {
		case errors.Is(err, access.ErrTooMany):
			why = listen.Full
		case errors.Is(err, access.ErrTooFast):
			why = listen.TooFast
		}
		r.d.refused.add(r.listener, raw.(*listen.Conn).Source(), why, err.Error())
	}
	return conn, info, err
}

// Clone returns credentials that report for the same listener.
func (r refusing) Clone() credentials.TransportCredentials {
	return refusing{r.TransportCredentials.Clone(), r.d, r.listener}
}

// settling are credentials that report to the listener which user was proved.
type settling struct{ refusing }

// ServerHandshake does the handshake, and finds a place for the caller that it names.
func (s settling) ServerHandshake(raw net.Conn) (net.Conn, credentials.AuthInfo, error) {
	conn, info, err := s.refusing.ServerHandshake(raw)
	if err != nil {
		return nil, nil, err
	}
	c := raw.(*listen.Conn)
	if err := c.Settle(s.d.ownerOf(info)); err != nil {
		conn.Close()
		if errors.Is(err, listen.ErrFull) {
			s.d.refused.add(s.listener, c.Source(), listen.Full, access.Caller(info))
		}
		return nil, nil, fmt.Errorf("%s: %w", access.Caller(info), err)
	}
	return conn, info, nil
}

// ClientHandshake refuses: these credentials have no client side.
func (s settling) ClientHandshake(context.Context, string, net.Conn) (net.Conn, credentials.AuthInfo, error) {
	return nil, nil, errors.New("these credentials are for servers")
}

// Clone returns credentials that report to the same listener.
func (s settling) Clone() credentials.TransportCredentials {
	return settling{s.refusing.Clone().(refusing)}
}

// webConn returns the listener's connection below one of HTTP.
func webConn(conn net.Conn) (*listen.Conn, bool) {
	if over, ok := conn.(interface{ NetConn() net.Conn }); ok { // TLS
		conn = over.NetConn()
	}
	c, ok := conn.(*listen.Conn)
	return c, ok
}

// settleWeb counts a connection of HTTP as its source's while a request of it is
// served, and as waiting before and after.
func (d *daemon) settleWeb(conn net.Conn, state http.ConnState) {
	c, ok := webConn(conn)
	if !ok {
		return
	}
	switch state {
	case http.StateActive:
		if err := c.Settle(listen.Owner{}); errors.Is(err, listen.ErrFull) {
			d.refused.add(webListener, c.Source(), listen.Full, "")
			c.Close()
		}
	case http.StateIdle:
		c.Wait()
	}
}

// connKey is the key of a request's connection in its context.
type connKey struct{}

// withConn notes the connection of requests.
func withConn(ctx context.Context, conn net.Conn) context.Context {
	if c, ok := webConn(conn); ok {
		ctx = context.WithValue(ctx, connKey{}, c)
	}
	return ctx
}

// paced serves requests no faster than the pace of their source.
func paced(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if c, ok := r.Context().Value(connKey{}).(*listen.Conn); ok && c.Request(r.Context()) != nil {
			return // the client has closed
		}
		next.ServeHTTP(w, r)
	})
}
