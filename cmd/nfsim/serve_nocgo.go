//go:build !cgo

package main

import (
	"context"
	"errors"
	"io"
)

var errNoFirmware = errors.New("the firmware is C: build with CGO_ENABLED=1 and a C compiler (gcc or clang)")

// serve returns what this build lacks.
func serve(context.Context, *options, io.Writer, io.Writer) error { return errNoFirmware }

// runNode says it, too.
func runNode(context.Context, *options, streams) error { return errNoFirmware }

// share says it, too.
func share(context.Context, *options, io.Writer, io.Writer) error { return errNoFirmware }
