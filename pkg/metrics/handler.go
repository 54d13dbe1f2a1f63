package metrics

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/pprof"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// HandlerOptions describes what Handler serves.
type HandlerOptions struct {
	// Gatherer answers /metrics.
	Gatherer prometheus.Gatherer
	// Live answers /healthz: nil while the process itself works. Nil means
	// that it always does.
	Live func(context.Context) error
	// Ready answers /readyz: nil while the devices serve. Nil means Live.
	Ready func(context.Context) error
	// Pprof adds /debug/pprof/. It shows memory and stops the world: only
	// for addresses that operators alone can reach.
	Pprof bool
	// Logger receives failures during a scrape. Nil discards it.
	Logger *slog.Logger
}

const (
	scrapeTime = 10 * time.Second // Prometheus' own default
	probeTime  = 5 * time.Second  // for Live and Ready
)

// Handler serves /metrics, /healthz, /readyz, with Pprof /debug/pprof/, and a
// page at / that names them. All scrapes within a second share one page in each
// form that they ask for.
func Handler(o HandlerOptions) http.Handler {
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.Ready == nil {
		o.Ready = o.Live
	}
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", &answers{kept: make(map[form]*answer), render: promhttp.HandlerFor(o.Gatherer, promhttp.HandlerOpts{
		ErrorLog:      slog.NewLogLogger(o.Logger.Handler(), slog.LevelError),
		ErrorHandling: promhttp.ContinueOnError,
		// Where a scraper asks for it; it alone carries exemplars as text.
		EnableOpenMetrics: true,
	})})
	mux.Handle("GET /healthz", probe(o.Live))
	mux.Handle("GET /readyz", probe(o.Ready))
	pages := []string{"/metrics", "/healthz", "/readyz"}
	if o.Pprof {
		pages = append(pages, "/debug/pprof/")
		mux.HandleFunc("GET /debug/pprof/", pprof.Index)
		mux.HandleFunc("GET /debug/pprof/cmdline", pprof.Cmdline)
		mux.HandleFunc("GET /debug/pprof/profile", pprof.Profile)
		mux.HandleFunc("GET /debug/pprof/symbol", pprof.Symbol)
		mux.HandleFunc("POST /debug/pprof/symbol", pprof.Symbol)
		mux.HandleFunc("GET /debug/pprof/trace", pprof.Trace)
	}
	mux.HandleFunc("GET /{$}", func(w http.ResponseWriter, _ *http.Request) {
		plain(w, http.StatusOK, "nfcomms\n"+strings.Join(pages, "\n"))
	})
	return mux
}

// probe answers 200 while check returns nil, else 503 with its error.
func probe(check func(context.Context) error) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if check == nil {
			plain(w, http.StatusOK, "ok")
			return
		}
		ctx, cancel := context.WithTimeoutCause(r.Context(), probeTime, errors.New("probe timed out"))
		defer cancel()
		if err := check(ctx); err != nil {
			plain(w, http.StatusServiceUnavailable, err.Error())
			return
		}
		plain(w, http.StatusOK, "ok")
	}
}

// plain answers with one text.
func plain(w http.ResponseWriter, status int, text string) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	_, _ = fmt.Fprintln(w, text) // fails only when the client has ended
}
