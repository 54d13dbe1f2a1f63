//go:build !cgo

package main

import (
	"context"
	"errors"
	"io"
)

// serve says what this build lacks.
func serve(context.Context, *options, io.Writer, io.Writer) error {
	return errors.New("the firmware is C: build with CGO_ENABLED=1 and a C compiler (gcc or clang)")
}
