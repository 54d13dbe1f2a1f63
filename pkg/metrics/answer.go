package metrics

import (
	"bytes"
	"context"
	"maps"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/common/expfmt"
)

// pageTime is the age up to which a page answers further requests.
const pageTime = time.Second

// answers serves pages that a handler rendered. Each form of the page is rendered once
// in pageTime for all requests together, so that a request costs no more than its connection.
type answers struct {
	render http.Handler

	rendering sync.Mutex // one form after the other
	mu        sync.Mutex // guards kept
	kept      map[form]*answer
}

// form is one of the few ways in which a client may ask for the page.
type form struct {
	format expfmt.Format
	gzip   bool
}

// formOf returns the form that a request asks for. Queries select nothing.
func formOf(h http.Header) form {
	format := expfmt.NegotiateAccept(h, expfmt.DefaultOpenMetricsAcceptedFormats()...)
	for _, list := range h.Values("Accept-Encoding") {
		for coding := range strings.SplitSeq(list, ",") {
			name, weight, _ := strings.Cut(coding, ";")
			refused := strings.TrimRight(strings.ReplaceAll(weight, " ", ""), "0.") == "q="
			if strings.TrimSpace(name) == "gzip" && !refused {
				return form{format, true}
			}
		}
	}
	return form{format: format}
}

// answer is one form at one time. It implements http.ResponseWriter for the handler that renders it.
type answer struct {
	begun time.Time
	done  chan struct{} // closed once the rest is complete

	status int
	header http.Header
	body   bytes.Buffer
}

// Header, WriteHeader and Write are http.ResponseWriter's.
func (p *answer) Header() http.Header { return p.header }
func (p *answer) WriteHeader(status int) {
	p.status = status
}
func (p *answer) Write(b []byte) (int, error) { return p.body.Write(b) }

// fresh returns a page that is complete and young, or one that is about to be complete.
func (s *answers) fresh(f form) *answer {
	now := time.Now()
	s.mu.Lock()
	defer s.mu.Unlock()
	if p := s.kept[f]; p != nil {
		select {
		case <-p.done:
			if now.Sub(p.begun) < pageTime {
				return p
			}
		default:
			return p
		}
	}
	maps.DeleteFunc(s.kept, func(_ form, p *answer) bool { return now.Sub(p.begun) >= pageTime })
	p := &answer{begun: now, done: make(chan struct{}), status: http.StatusOK, header: make(http.Header)}
	s.kept[f] = p
	go s.fill(p, f)
	return p
}

// fill renders a page. It outlives the request that asked first.
func (s *answers) fill(p *answer, f form) {
	s.rendering.Lock()
	defer s.rendering.Unlock()
	defer close(p.done)
	r := &http.Request{Method: http.MethodGet, Header: http.Header{"Accept": {string(f.format)}}}
	if f.gzip {
		r.Header.Set("Accept-Encoding", "gzip")
	}
	s.render.ServeHTTP(p, r)
	p.header.Set("Content-Length", strconv.Itoa(p.body.Len()))
}

// ServeHTTP answers with the page.
func (s *answers) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	ctx, cancel := context.WithTimeout(r.Context(), scrapeTime)
	defer cancel()
	p := s.fresh(formOf(r.Header))
	select {
	case <-p.done:
	case <-ctx.Done():
		plain(w, http.StatusServiceUnavailable, "the devices did not answer in time")
		return
	}
	maps.Copy(w.Header(), p.header)
	w.WriteHeader(p.status)
	_, _ = w.Write(p.body.Bytes()) // fails only when the client has ended
}
