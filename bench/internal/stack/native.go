package stack

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"embed"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	sources "github.com/nfcomms/nfcomms"
	"github.com/nfcomms/nfcomms/bench/internal/cli"
	"github.com/nfcomms/nfcomms/bench/internal/compare"
	"github.com/nfcomms/nfcomms/internal/subprocess"
)

// nativeStack is libnfcomms, as another program would use it.
var nativeStack = &compare.NativeLibrary{ID: "stack", Name: "libnfcomms", Compiler: "cc", Flags: []string{"-ldl", "-Wl,-rpath,$ORIGIN"}, Install: "Debian: gcc, libc6-dev"}

// stackLibrary is what libnfcomms loads for addresses without the kernel module.
const stackLibrary = "libnfcomms-umod.so.1"

// stackNative is the C path: a program over libnfcomms, in a process of its own, that moves the
// chunks of the Go path when it is told. After a failure it is left out.
type stackNative struct {
	program *compare.NativeProgram
	in      io.WriteCloser
	out     *bufio.Reader
	errs    bytes.Buffer
	cmd     *exec.Cmd
	limit   *time.Timer   // ends a program that hangs
	used    time.Duration // CPU time of the process
	missing string        // why it is not measured
}

// newStackNative builds and starts the program for a device, with memory of so many bytes in
// each direction.
func newStackNative(ctx context.Context, address string, channels, memory int) *stackNative {
	n := &stackNative{program: &compare.NativeProgram{Library: nativeStack, Name: "C", Limit: compare.NativeLimit}}
	files := []string{"native/stack.c"}
	for _, f := range []string{"device", "control", "channel", "async", "region", "umod"} {
		files = append(files, "kmod/lib/"+f+".c")
	}
	n.program.Build(ctx, "-O2", []embed.FS{compare.NativeSources, sources.Library}, files...)
	if n.missing = strings.TrimPrefix(n.program.Missing, cli.ResultNotMeasured); n.missing != "" {
		return n
	}
	loads := ""
	if !strings.HasPrefix(address, "dev:") {
		loads = n.buildLoaded(ctx)
	}
	if err := n.start(ctx, address, channels, memory); err != nil {
		n.fail(fmt.Errorf("%w%s", err, loads))
	}
	return n
}

// buildLoaded makes what libnfcomms loads beside the program, where there is Go and this module's
// source; elsewhere the loader finds what is installed. It returns the reason if it did not.
func (n *stackNative) buildLoaded(ctx context.Context) string {
	cmd := subprocess.Command(ctx, "go", "build", "-buildmode=c-shared", "-trimpath", "-buildvcs=false", "-ldflags=-s -w",
		"-o", filepath.Join(n.program.Dir, stackLibrary), "github.com/nfcomms/nfcomms/kmod/lib/umod")
	cmd.Env = append(cmd.Environ(), "CGO_ENABLED=1")
	if text, err := compare.GroupOutput(cmd, nil, n.program.Grace()); err != nil {
		return fmt.Sprintf("; %s is not installed and was not built: %v: %s", stackLibrary, err, compare.LastLine(text))
	}
	return ""
}

// start opens the device in the other process.
func (n *stackNative) start(ctx context.Context, address string, channels, memory int) (err error) {
	n.cmd = subprocess.Command(ctx, n.program.Path(), address, fmt.Sprint(channels), fmt.Sprint(memory), n.image())
	n.cmd.Stderr, n.cmd.WaitDelay = &n.errs, n.program.Grace()
	if n.in, err = n.cmd.StdinPipe(); err != nil {
		return err
	}
	out, err := n.cmd.StdoutPipe()
	if err == nil {
		err = n.cmd.Start()
	}
	if err != nil {
		n.cmd = nil
		return err
	}
	n.out = bufio.NewReader(out)
	process := n.cmd.Process
	n.limit = time.AfterFunc(n.program.Limit, func() { _ = process.Kill() })
	return n.answer("ready", nil)
}

// ask has the program do something, and reads the numbers of its answer, of which the last is
// the CPU time of its process.
func (n *stackNative) ask(answer string, numbers []int64, command ...any) error {
	n.limit.Reset(n.program.Limit)
	if _, err := fmt.Fprintln(n.in, command...); err != nil {
		return cmp.Or(n.ended(), err)
	}
	if err := n.answer(answer, numbers); err != nil {
		return err
	}
	n.used = time.Duration(numbers[len(numbers)-1])
	return nil
}

// answer reads a line: the word, and as many numbers.
func (n *stackNative) answer(word string, numbers []int64) error {
	line, err := n.out.ReadString('\n')
	if late := !n.limit.Stop(); late {
		_ = n.ended()
		return fmt.Errorf("said nothing for %v and was ended", n.program.Limit)
	}
	if err != nil {
		return cmp.Or(n.ended(), err)
	}
	first, rest, _ := strings.Cut(strings.TrimSpace(line), " ")
	to := make([]any, len(numbers))
	for i := range numbers {
		to[i] = &numbers[i]
	}
	if read, _ := fmt.Sscan(rest, to...); first != word || read < len(to) {
		return fmt.Errorf("printed %q", strings.TrimSpace(line))
	}
	return nil
}

// ended waits for the end of the program, which has no more to read, and returns why it failed:
// what it said, or how it ended. One that does not end is killed.
func (n *stackNative) ended() error {
	n.limit.Reset(n.program.Limit)
	defer n.limit.Stop()
	_ = n.in.Close()
	err := n.cmd.Wait()
	n.cmd = nil
	if text := compare.LastLine(n.errs.Bytes()); text != "" {
		return errors.New(text)
	}
	return err
}

// fail leaves the program out.
func (n *stackNative) fail(err error) {
	n.missing = err.Error()
}

// move is a test of [stackPath.run] of so many groups, or of fewer: a group of calls that wait for
// other threads takes long on a busy machine.
func (n *stackNative) move(mode string, size, groups int) (wall, cpu [2]time.Duration, moved int, err error) {
	var of [6]int64
	if err = n.ask("moved", of[:], mode, size, groups, compare.NativeMillis); err == nil && of[0] < 1 {
		err = errors.New("moved nothing")
	}
	for d := range compare.Directions {
		wall[d], cpu[d] = time.Duration(of[1+d]), time.Duration(of[3+d])
	}
	return wall, cpu, int(of[0]), err
}

// image is the file of the program without flow control.
func (n *stackNative) image() string { return filepath.Join(n.program.Dir, "overrun") }

// loose is [overrun.run] in C.
func (n *stackNative) loose(image []byte, size, chunks, buffers int) (result overran, err error) {
	if _, err = os.Stat(n.image()); errors.Is(err, os.ErrNotExist) {
		err = os.WriteFile(n.image(), image, 0o600)
	}
	if err != nil {
		return result, err
	}
	var of [4]int64
	if err = n.ask("loose", of[:], "loose", size, chunks, buffers); err == nil && of[0] == 0 {
		err = errRoom
	}
	return overran{int(of[0]), int(of[1]), time.Duration(of[2])}, err
}

// end ends the program and deletes it.
func (n *stackNative) end() error {
	if n.cmd != nil {
		if err := n.ended(); err != nil && n.missing == "" {
			return errors.Join(fmt.Errorf("the C path: %w", err), n.program.Remove())
		}
	}
	return n.program.Remove()
}
