package main

import (
	"io"
	"log/slog"

	"github.com/nfcomms/nfcomms/cmd/nfcommsd/internal/config"
)

// newLogger returns a logger and what changes its level.
func newLogger(c config.Log, w io.Writer) (*slog.Logger, *slog.LevelVar) {
	level := new(slog.LevelVar)
	level.Set(c.Level)
	o := &slog.HandlerOptions{Level: level}
	if c.Format == "json" {
		return slog.New(slog.NewJSONHandler(w, o)), level
	}
	return slog.New(slog.NewTextHandler(w, o)), level
}
