//go:build linux

package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"strconv"
	"strings"
	"syscall"
)

const usage = `usage: vmtest list
       vmtest run [-group GROUP] [-kernel KERNEL] [-count N] [JOB…]
       vmtest exec [flags] FILE [ARG…]
       vmtest demo [flags]
       vmtest shell [flags]
"vmtest exec -h" lists the flags.
`

// Exit codes.
const (
	exitOK     = 0
	exitFailed = 1
	exitUsage  = 2
)

// usageError is a fault of the command line.
type usageError struct{ error }

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	defer stop()
	err := command(ctx, os.Args[1:])
	var bad usageError
	var status statusError
	switch {
	case err == nil, errors.Is(err, flag.ErrHelp):
		os.Exit(exitOK)
	case errors.As(err, &bad):
		fmt.Fprintf(os.Stderr, "vmtest: %v\n%s", err, usage)
		os.Exit(exitUsage)
	case errors.As(err, &status) && status > 0:
		os.Exit(int(status))
	case !errors.Is(err, errFailed):
		fmt.Fprintln(os.Stderr, "vmtest:", err)
	}
	os.Exit(exitFailed)
}

// statusError is the exit status of a program that ran in a guest.
type statusError int

func (e statusError) Error() string { return fmt.Sprintf("exit status %d", int(e)) }

// errFailed means that tests failed, which they said themselves.
var errFailed = errors.New("failed")

// command runs one command line.
func command(ctx context.Context, args []string) error {
	if len(args) == 0 {
		return usageError{errors.New("no command")}
	}
	switch args[0] {
	case "list":
		list(os.Stdout)
		return nil
	case "run":
		return runCommand(ctx, args[1:])
	case "exec":
		return execCommand(ctx, args[1:])
	case "demo":
		return demoCommand(ctx, args[1:])
	case "shell":
		return shellCommand(ctx, args[1:])
	case "-h", "-help", "--help", "help":
		fmt.Print(usage)
		return nil
	}
	return usageError{fmt.Errorf("unknown command %q", args[0])}
}

// list prints the jobs.
func list(w io.Writer) {
	for _, j := range jobs {
		fmt.Fprintf(w, "%-6s %-16s %s: %s\n", j.group, j.name, j.about, strings.Join(j.programs, " "))
	}
}

// machineFlags are those of a machine that is no job of the table.
func machineFlags(f *flag.FlagSet, j *job) (device *string, bare *bool) {
	f.StringVar(&j.kernel, "kernel", j.kernel, strings.Join(kernelNames, ", "))
	f.BoolVar(&j.machine.IOMMU, "iommu", j.machine.IOMMU, "with an emulated IOMMU")
	f.IntVar(&j.machine.Memory, "memory", j.machine.Memory, "MiB; 0: the default")
	f.IntVar(&j.machine.CPUs, "cpus", j.machine.CPUs, "processors; 0: the default")
	f.Func("append", "more kernel parameters", func(text string) error {
		j.machine.Append = append(j.machine.Append, strings.Fields(text)...)
		return nil
	})
	f.Func("devices", "how many (1)", func(text string) error {
		const most = 24 // slots of the machine's bus
		n, err := strconv.Atoi(text)
		if err != nil || n < 1 || n > most {
			return fmt.Errorf("want 1 to %d", most)
		}
		j.nodes = make([]node, n)
		return nil
	})
	f.StringVar(&j.params, "params", j.params, "of the module")
	f.DurationVar(&j.limit, "timeout", jobTimeout, "for everything from boot to power off")
	return f.String("device", strings.Join(j.device, " "), "more arguments of nfsim"),
		f.Bool("bare", false, "no device and no module")
}

// parseMachine parses flags for a job and returns the arguments after them.
func parseMachine(name string, args []string, j *job) ([]string, error) {
	f := flag.NewFlagSet("vmtest "+name, flag.ContinueOnError)
	device, bare := machineFlags(f, j)
	if err := f.Parse(args); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			return nil, err
		}
		return nil, usageError{err}
	}
	if !slices.Contains(kernelNames, j.kernel) {
		return nil, usageError{fmt.Errorf("kernel %q is not one of %s", j.kernel, strings.Join(kernelNames, ", "))}
	}
	if j.kernel == "arm64" && j.machine.IOMMU {
		return nil, usageError{errors.New("no IOMMU that QEMU emulates for arm64 takes a device of another process")}
	}
	j.device = append([]string{}, strings.Fields(*device)...)
	if *bare {
		j.device = nil
	}
	return f.Args(), nil
}
