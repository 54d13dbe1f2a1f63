package main

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"maps"
	"net"
	"net/http"
	"os"
	"runtime/trace"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"

	"github.com/nfcomms/nfcomms/pkg/metrics"
	"github.com/nfcomms/nfcomms/pkg/nfcomms"
	"github.com/nfcomms/nfcomms/pkg/nfcomms/pool"
)

// answer is what an upload is answered with.
type answer struct {
	Bytes int64  `json:"bytes"`
	CRC32 string `json:"crc32"`
}

// server takes uploads. It holds one chunk of each upload that it works on, and works
// on no more than it has places for: others wait, with their bodies unread, so that
// the clients' sockets fill up.
type server struct {
	pool    *pool.Pool
	places  chan struct{}
	buffers sync.Pool
	idle    time.Duration // how long an upload may stand still

	uploads *prometheus.CounterVec
	bytes   prometheus.Counter
	seconds prometheus.Histogram
}

func newServer(p *pool.Pool, places int, idle time.Duration, reg prometheus.Registerer) *server {
	f := promauto.With(reg)
	return &server{
		pool: p, places: make(chan struct{}, places), idle: idle,
		buffers: sync.Pool{New: func() any { b := make([]byte, prefix+chunkSize); return &b }},
		uploads: f.NewCounterVec(prometheus.CounterOpts{Name: "uploads_total", Help: "Uploads that ended, by HTTP status."}, []string{"code"}),
		bytes:   f.NewCounter(prometheus.CounterOpts{Name: "uploads_bytes_total", Help: "Bytes that the device summed up."}),
		seconds: f.NewHistogram(prometheus.HistogramOpts{Name: "uploads_duration_seconds", Help: "Time of an upload.", NativeHistogramBucketFactor: 1.1}),
	}
}

// ServeHTTP sums up one upload.
func (s *server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	ctx, task := trace.NewTask(r.Context(), "upload")
	defer task.End()
	start := time.Now()
	a, err := s.upload(ctx, w, r)
	code := statusOf(err)
	s.uploads.WithLabelValues(fmt.Sprint(code)).Inc()
	s.seconds.Observe(time.Since(start).Seconds())
	if err != nil {
		w.Header().Set("Connection", "close") // the rest of the body is not read
		if code == http.StatusServiceUnavailable {
			w.Header().Set("Retry-After", "1")
		}
		http.Error(w, err.Error(), code)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(a) // the client may have gone
}

// statusOf is the HTTP status of an error.
func statusOf(err error) int {
	switch {
	case err == nil:
		return http.StatusOK
	case errors.Is(err, errDevice), errors.Is(err, context.Canceled):
		return http.StatusServiceUnavailable
	case errors.Is(err, os.ErrDeadlineExceeded):
		return http.StatusRequestTimeout
	default:
		return http.StatusBadRequest
	}
}

// upload streams a body to the device, chunk by chunk.
func (s *server) upload(ctx context.Context, w http.ResponseWriter, r *http.Request) (a answer, err error) {
	select {
	case s.places <- struct{}{}:
		defer func() { <-s.places }()
	case <-ctx.Done():
		return a, context.Cause(ctx)
	}
	b := s.buffers.Get().(*[]byte)
	defer s.buffers.Put(b)
	deadline := http.NewResponseController(w).SetReadDeadline
	var sum uint32
	for end := false; !end; {
		if err := deadline(time.Now().Add(s.idle)); err != nil {
			return a, err
		}
		var n int
		trace.WithRegion(ctx, "read", func() { n, end, err = fill(r.Body, (*b)[prefix:]) })
		if err != nil {
			return a, fmt.Errorf("the upload stopped after %d bytes: %w", a.Bytes+int64(n), err)
		}
		if n == 0 {
			break
		}
		trace.WithRegion(ctx, "device", func() { sum, err = s.sum(ctx, sum, (*b)[:prefix+n]) })
		if err != nil {
			return a, err
		}
		a.Bytes += int64(n)
		s.bytes.Add(float64(n))
	}
	a.CRC32 = fmt.Sprintf("%08x", sum)
	return a, nil
}

// sum has a device process add a chunk to a sum. buf holds the chunk, behind prefix bytes.
func (s *server) sum(ctx context.Context, before uint32, buf []byte) (uint32, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	binary.NativeEndian.PutUint64(buf, uint64(before))
	var answer [8]byte
	if _, err := s.pool.Do(ctx, buf, answer[:]); err != nil {
		return 0, fmt.Errorf("%w: %w", errDevice, err)
	}
	return uint32(binary.NativeEndian.Uint64(answer[:])), nil
}

// fill reads until buf is full or the body ends. io.ReadFull would not tell a body
// that ends from one that was cut off.
func fill(body io.Reader, buf []byte) (n int, end bool, err error) {
	for n < len(buf) {
		k, err := body.Read(buf[n:])
		n += k
		if err == io.EOF {
			return n, true, nil
		}
		if err != nil {
			return n, false, err
		}
	}
	return n, false, nil
}

// handler is what clients see.
func (s *server) handler() http.Handler {
	mux := http.NewServeMux()
	mux.Handle("POST /checksum", s)
	return mux
}

// operate is what operators look at: metrics, health, and traces, whose tasks are
// "upload" and whose regions are "read" and "device".
func operate(p *pool.Pool, dev *nfcomms.Device, reg *prometheus.Registry) http.Handler {
	reg.MustRegister(metrics.NewCollector(metrics.One("device0", dev), metrics.Options{}),
		metrics.NewPoolCollector(func() iter.Seq2[string, *pool.Pool] {
			return maps.All(map[string]*pool.Pool{"sums": p})
		}))
	return metrics.Handler(metrics.HandlerOptions{Gatherer: reg, Pprof: true, Ready: func(context.Context) error {
		if p.Stats().Running == 0 {
			return errDevice
		}
		return nil
	}})
}

// listen serves until the function that it returns stops it: uploads that run have
// so long to end.
func listen(address string, h http.Handler) (url string, stop func(grace time.Duration) error, err error) {
	l, err := net.Listen("tcp", address)
	if err != nil {
		return "", nil, err
	}
	web := &http.Server{Handler: h, ReadHeaderTimeout: 10 * time.Second, IdleTimeout: time.Minute}
	ended := make(chan error, 1)
	go func() { ended <- web.Serve(l) }()
	return "http://" + l.Addr().String(), func(grace time.Duration) error {
		ctx, cancel := context.WithTimeout(context.Background(), grace)
		defer cancel()
		err := web.Shutdown(ctx)
		if err != nil {
			err = errors.Join(fmt.Errorf("uploads were cut off: %w", err), web.Close())
		}
		<-ended
		return err
	}, nil
}
