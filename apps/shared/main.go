// Command shared shows a device that processes share: nfsim in one process, two clients
// in two others that move bulk data at once and compare every byte, one of which is killed
// half way, beside memcpy and a UNIX socket. Run it from the top of the tree.
package main

import (
	"bufio"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/nfcomms/nfcomms/internal/subprocess"
	"github.com/nfcomms/nfcomms/internal/texttable"
	"github.com/nfcomms/nfcomms/internal/units"
)

// Roles of this program in processes of their own.
const (
	roleClient = "client"
	roleEcho   = "echo"
)

// options are the flags.
type options struct {
	length time.Duration // of each part
	size   int           // of a transfer
}

func main() {
	if len(os.Args) > 2 {
		if act := roles[os.Args[1]]; act != nil {
			exit(act(os.Args[2], os.Stdin, os.Stdout))
		}
	}
	var o options
	flag.DurationVar(&o.length, "length", 4*time.Second, "time of each part of the demonstration")
	flag.IntVar(&o.size, "size", 4<<20, "bytes of a transfer")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := o.demo(ctx, os.Stdout)
	stop()
	exit(err)
}

func exit(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "shared:", err)
		os.Exit(1)
	}
	os.Exit(0)
}

// patience bounds the demonstration beside its parts.
const patience = time.Minute

// demo shows all of it.
func (o *options) demo(ctx context.Context, w io.Writer) (err error) {
	ctx, cancel := context.WithTimeout(ctx, patience+6*o.length)
	defer cancel()
	dir, err := os.MkdirTemp("", "nfcomms-demo")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	device, err := startDevice(ctx, dir, w)
	if err != nil {
		return err
	}
	t := texttable.Numbers("there and back", "GB/s", "transfers", "verified", "longest")
	if err := errors.Join(o.share(ctx, dir, device, w, t), device.end()); err != nil {
		return err
	}
	fmt.Fprintf(w, "\nbeside them, by this process alone:\n")
	if err := o.beside(ctx, dir, t); err != nil {
		return err
	}
	fmt.Fprintln(w)
	t.Write(w)
	fmt.Fprintf(w, "\nA simulated device; transfers of %s from memory of Alloc; every byte compared, and comparing not timed. memcpy is of\n"+
		"two copies, as there and back are.\n", units.Bytes(float64(o.size)))
	return nil
}

// startDevice builds nfsim and starts it.
func startDevice(ctx context.Context, dir string, w io.Writer) (*process, error) {
	fmt.Fprintln(w, "build nfsim, and start it: the device of all that follows")
	program, socket := filepath.Join(dir, "nfsim"), filepath.Join(dir, "s")
	if err := subprocess.Program(ctx, program, "github.com/nfcomms/nfcomms/cmd/nfsim"); err != nil {
		return nil, err
	}
	p, err := start(ctx, program, "--shm", socket, "--hosts", "2")
	if err != nil {
		return nil, err
	}
	if line, err := p.out.ReadString('\n'); err != nil || !strings.HasPrefix(line, "listening") {
		return nil, errors.Join(fmt.Errorf("nfsim does not listen: %q", line), err, p.end())
	}
	return p, nil
}

// share has two clients move data, kills one, and shows that the other goes on.
func (o *options) share(ctx context.Context, dir string, device *process, w io.Writer, t *texttable.Table) error {
	address := "shm:" + filepath.Join(dir, "s")
	a, err := o.client(ctx, address)
	if err != nil {
		return err
	}
	defer a.kill()
	b, err := o.client(ctx, address)
	if err != nil {
		return err
	}
	defer b.kill()
	fmt.Fprintf(w, "clients A (process %d) and B (process %d) move data through the device (process %d) for %v\n",
		a.cmd.Process.Pid, b.cmd.Process.Pid, device.cmd.Process.Pid, o.length)
	var parts [3]moved
	if parts[0], err = a.part(o.length, nil); err != nil {
		return fmt.Errorf("client A: %w", err)
	}
	other, err := b.part(0, nil)
	if err != nil {
		return fmt.Errorf("client B: %w", err)
	}
	fmt.Fprintf(w, "kill -9 B in the middle of a transfer, and let A go on for %v\n", o.length)
	if parts[1], err = a.part(o.length, b.kill); err != nil {
		return fmt.Errorf("client A, as B was killed: %w", err)
	}
	fmt.Fprintln(w, "client C takes the place of B, as the device has no third")
	c, err := o.client(ctx, address)
	if err != nil {
		return fmt.Errorf("client C: %w", err)
	}
	defer c.kill()
	if parts[2], err = a.part(o.length, nil); err != nil {
		return fmt.Errorf("client A beside C: %w", err)
	}
	parts[0].row(t, "A, beside B")
	other.row(t, "B, beside A, until killed")
	parts[1].row(t, "A, as B was killed")
	parts[2].row(t, "A, beside C")
	fmt.Fprintf(w, "A had no error, and not a byte that was wrong, in %d transfers\n", parts[0].Transfers+parts[1].Transfers+parts[2].Transfers)
	return nil
}

// process is another process that talks over its standard input and output.
type process struct {
	cmd *exec.Cmd
	in  io.WriteCloser
	out *bufio.Reader
}

// start starts one, which ends at the latest with ctx.
func start(ctx context.Context, program string, args ...string) (*process, error) {
	p := &process{cmd: subprocess.Command(ctx, program, args...)}
	p.cmd.Env = append(os.Environ(), roleEnv+"=1")
	var err error
	if p.in, err = p.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	p.out = bufio.NewReader(out)
	return p, p.cmd.Start()
}

// roleEnv tells the test of this program, which runs as any of its processes, that it is
// one.
const roleEnv = "NFCOMMS_SHMDEMO"

// kill ends the process where it stands.
func (p *process) kill() {
	if p.cmd.ProcessState == nil {
		_ = p.cmd.Process.Kill() // it may have ended
		_ = p.cmd.Wait()
	}
}

// end asks it to end, and waits.
func (p *process) end() error {
	return errors.Join(p.in.Close(), p.cmd.Process.Signal(syscall.SIGTERM), p.cmd.Wait())
}
