// Command bulk sends files to a device and back, compares SHA-256 of what went
// out and what came back, and shows how fast it was beside memcpy.
//
//	go run ./apps/bulk PATH…
//	go run ./apps/bulk --demo
//
// Directories are walked. Exit codes: 0 verified, 1 failed, 2 bad input, 130
// interrupted.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/nfcomms/nfcomms/internal/command"
	"github.com/nfcomms/nfcomms/pkg/nfcomms"
)

// Exit codes.
const (
	exitOK          = 0
	exitFailed      = 1
	exitInput       = 2
	exitInterrupted = 130
)

// inputError is a fault of the command line or of the files it names.
type inputError struct{ error }

func (e inputError) Unwrap() error { return e.error }

func inputf(format string, args ...any) error {
	return inputError{fmt.Errorf(format, args...)}
}

// options is the command line.
type options struct {
	address  string
	output   string
	demo     bool
	channels int
	chunk    int // bytes
	paths    []string
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}

// run executes one command line and returns its exit code.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	o, err := parse(args, stderr)
	if errors.Is(err, flag.ErrHelp) {
		return exitOK
	}
	var r *report
	if err == nil {
		r, err = bulk(ctx, o, stderr)
	}
	var input inputError
	switch {
	case err == nil:
		err = r.write(stdout, o.output)
	case ctx.Err() != nil:
		fmt.Fprintf(stderr, "bulk: interrupted after %s there and back, all verified\n", byteText(r.bytesMoved()))
		return exitInterrupted
	}
	switch {
	case err == nil:
		return exitOK
	case errors.As(err, &input), errors.Is(err, nfcomms.ErrScheme), errors.Is(err, nfcomms.ErrOption):
		fmt.Fprintf(stderr, "bulk: %v\n", err)
		return exitInput
	default:
		fmt.Fprintf(stderr, "bulk: %v\n", err)
		return exitFailed
	}
}

func parse(args []string, stderr io.Writer) (options, error) {
	var o options
	f := flag.NewFlagSet("bulk", flag.ContinueOnError)
	f.SetOutput(io.Discard) // one line for an error, written by run
	f.StringVar(&o.address, "address", "sim:", "device `address`")
	f.StringVar(&o.output, "output", "table", "output `format`: table or json")
	f.BoolVar(&o.demo, "demo", false, "send files of the Go toolchain, over 1 GiB in all")
	f.IntVar(&o.channels, "channels", 2, "`number` of channels in use at once")
	f.IntVar(&o.chunk, "chunk", 16<<20, "`bytes` per transfer")
	err := f.Parse(args)
	o.paths = f.Args()
	switch {
	case errors.Is(err, flag.ErrHelp):
		fmt.Fprintln(stderr, "usage: bulk [flags] PATH…    files, or folders with files, to send to a device and back")
		f.SetOutput(stderr)
		f.PrintDefaults()
		return o, err
	case err != nil:
		return o, inputError{err}
	case o.output != "table" && o.output != "json":
		return o, inputf("--output %q is neither table nor json", o.output)
	case o.channels < 1 || o.channels > 64:
		return o, inputf("--channels %d is not 1 to 64", o.channels)
	case o.chunk < 1 || o.chunk > 1<<30:
		return o, inputf("--chunk %d is not 1 byte to 1 GiB", o.chunk)
	case o.demo == (len(o.paths) > 0):
		return o, inputf("name the files or folders to send, or --demo, and not both")
	}
	return o, nil
}

// bulk does the work. After an error the report says what was moved before.
func bulk(ctx context.Context, o options, stderr io.Writer) (*report, error) {
	files, err := o.files(ctx)
	if err != nil {
		return nil, err
	}
	dev, err := nfcomms.Open(ctx, o.address)
	if err != nil {
		return nil, err
	}
	kind := dev.Info().Kind()
	m, err := newMover(ctx, dev, o)
	if err == nil {
		bar := command.NewBar(stderr, files.bytes, "to the device and back", true)
		err = m.moveAll(ctx, files.reader(), bar)
		bar.End()
	}
	if cerr := dev.Close(); err == nil {
		err = cerr
	}
	return m.report(files, kind), err
}
