package main

import (
	"io"
	"log"
	"log/slog"
	"strings"
	"sync/atomic"
	"time"

	"golang.org/x/time/rate"
	"google.golang.org/grpc/grpclog"

	"github.com/nfcomms/nfcomms/cmd/nfcommsd/internal/config"
)

// newLogger returns a logger and what changes its level.
func newLogger(c config.Log, w io.Writer) (*slog.Logger, *slog.LevelVar) {
	level := new(slog.LevelVar)
	level.Set(c.Level)
	o := &slog.HandlerOptions{Level: level}
	var out *slog.Logger
	if c.Format == "json" {
		out = slog.New(slog.NewJSONHandler(w, o))
	} else {
		out = slog.New(slog.NewTextHandler(w, o))
	}
	return out, level
}

// logGRPC takes to the log what gRPC has to say, so that every line has the same form. Before the
// first use of gRPC in this process.
func logGRPC(out *slog.Logger) {
	grpclog.SetLoggerV2(grpclog.NewLoggerV2(io.Discard, io.Discard, newLines(out, "gRPC")))
}

// plainLog returns a logger for code that writes lines of text, such as that
// somebody speaks no TLS.
func plainLog(out *slog.Logger) *log.Logger { return log.New(newLines(out, "HTTP"), "", 0) }

// lines turns lines of text into warnings. Strangers can cause them: ten at
// first, then one a second, with the number of those that were not logged.
type lines struct {
	log  *slog.Logger
	msg  string
	now  rate.Sometimes
	held atomic.Int64 // lines since the last that was logged
}

func newLines(log *slog.Logger, msg string) *lines {
	return &lines{log: log, msg: msg, now: rate.Sometimes{First: 10, Interval: time.Second}}
}

// Write logs one line.
func (l *lines) Write(text []byte) (int, error) {
	l.held.Add(1)
	l.now.Do(func() {
		l.log.Warn(l.msg, "error", strings.TrimSpace(string(text)), "more_since_last", l.held.Swap(0)-1)
	})
	return len(text), nil
}
