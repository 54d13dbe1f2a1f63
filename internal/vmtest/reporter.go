//go:build linux

package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/nfcomms/nfcomms/internal/vmtest/klog"
	"github.com/nfcomms/nfcomms/internal/vmtest/vm"
	"github.com/nfcomms/nfcomms/internal/vmtest/wire"
)

// reporter makes tests out of what a guest reports, and out of what it does not.
// Its methods are called one at a time.
type reporter struct {
	boot    *boot
	stream  *stream
	suite   *suite // the job's own checks
	scanner *klog.Scanner
	log     io.Writer // of the console
	again   string
	devices []*device
	cancel  context.CancelCauseFunc

	hello   atomic.Bool
	began   time.Time
	booted  time.Duration // from began to the first frame
	ended   bool
	next    int     // the first program that has not begun
	current results // of the program that runs
	status  int     // of the last program
	trouble []string
	tail    []string // the console's last lines
}

// tailLines is how much of the console a failure shows.
const tailLines = 40

func (v *reporter) console(line string) {
	fmt.Fprintln(v.log, line)
	v.scanner.Line(line)
	v.tail = append(v.tail, line)
	if len(v.tail) > tailLines {
		v.tail = v.tail[1:]
	}
}

// noHello stops a machine that has not come up.
func (v *reporter) noHello() {
	if !v.hello.Load() {
		v.cancel(fmt.Errorf("not up after %v", v.boot.patience))
	}
}

func (v *reporter) frame(f wire.Frame) {
	switch f.Kind {
	case wire.Hello:
		v.hello.Store(true)
		v.booted = time.Since(v.began)
	case wire.Begin:
		v.begin(f.Program)
	case wire.Output:
		if v.boot.echo != nil {
			_, _ = v.boot.echo.Write(f.Data)
		}
		if v.current != nil {
			_, _ = v.current.Write(f.Data) // end says that the reader is gone
		}
	case wire.Exit:
		v.exit(f)
	case wire.Check:
		v.check(f)
	case wire.File:
		if err := v.save(f); err != nil {
			v.trouble = append(v.trouble, err.Error())
		}
	case wire.Device:
		v.command(f.Text)
	case wire.End:
		v.ended = true
	default:
		v.trouble = append(v.trouble, fmt.Sprintf("unknown frame %q", f.Kind))
	}
}

// name returns how the tests of a program are called.
func (v *reporter) name(i int) string { return "vm/" + v.boot.job.name + "/" + v.boot.programs[i].name }

func (v *reporter) begin(i int) {
	if i != v.next || i >= len(v.boot.programs) {
		v.trouble = append(v.trouble, fmt.Sprintf("program %d began, want %d of %d", i, v.next, len(v.boot.programs)))
		return
	}
	v.next++
	r, err := newResults(v.stream, v.boot.programs[i].kind, v.name(i))
	if err != nil {
		v.trouble = append(v.trouble, err.Error())
		return
	}
	v.current = r
}

func (v *reporter) exit(f wire.Frame) {
	if v.current == nil {
		return
	}
	v.status = f.Status
	trouble := f.Text
	if f.Status > 0 {
		trouble = fmt.Sprintf("exit status %d", f.Status)
	}
	v.current.end(trouble)
	v.current = nil
}

// check reports a check of the guest; those of a program bear its name.
func (v *reporter) check(f wire.Frame) {
	name := strings.ReplaceAll(f.Name, " ", "-")
	if f.Program >= 0 && f.Program < len(v.boot.programs) {
		if f.Name == "log" && f.Text == "" {
			return // a mark in the log is no test
		}
		name += "-after-" + v.boot.programs[f.Program].name
	}
	v.suite.test(name, f.Text)
}

// save keeps a file of the guest in the folder of the logs.
func (v *reporter) save(f wire.Frame) error {
	name := filepath.Join(v.boot.folder, "files", filepath.Clean("/"+f.Name))
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		return err
	}
	return os.WriteFile(name, f.Data, 0o644)
}

// command carries out a device command, "kill" or "kill 1".
func (v *reporter) command(text string) {
	name, number, _ := strings.Cut(text, " ")
	n, err := strconv.Atoi(cmp.Or(number, "0"))
	if err != nil || n < 0 || n >= len(v.devices) {
		v.trouble = append(v.trouble, fmt.Sprintf("device command %q, and there are %d devices", text, len(v.devices)))
		return
	}
	if err := v.devices[n].Command(name); err != nil {
		v.trouble = append(v.trouble, err.Error())
	}
}

// conclude makes tests of the whole run.
func (v *reporter) conclude(outcome vm.Outcome, bootErr error) {
	v.unfinished()
	v.suite.test("boot", lacks(v.hello.Load(), "the guest did not come up"))
	v.suite.test("kernel-log", join(v.scanner.Reports()))
	v.concludeDevices(outcome)
	if bootErr != nil {
		v.trouble = append(v.trouble, bootErr.Error())
	}
	if !v.ended || outcome.Status != v.boot.machine.ExitDone() {
		v.trouble = append(v.trouble, fmt.Sprintf("the guest did not come to its end: the machine's exit status is %d\n%s\nthe console's end:\n%s",
			outcome.Status, outcome.Stderr, strings.Join(v.tail, "\n")))
	}
	v.suite.test("end", strings.Join(v.trouble, "\n"))
	if v.suite.failed {
		v.suite.s.send(event{Action: "output", Package: v.suite.name, Output: fmt.Sprintf(
			"logs: %s\nboot it again: %s\n%s\n", v.boot.folder, v.again, v.boot.machine.Command())})
	}
}

// concludeDevices makes tests of what the devices saw, and whether they ended as they should.
func (v *reporter) concludeDevices(outcome vm.Outcome) {
	killed := len(v.devices) == 0
	for i, d := range v.devices {
		v.suite.test(fmt.Sprintf("device-%d", i), text(d.err))
		if !d.lost() {
			v.suite.test(fmt.Sprintf("bus-%d", i), text(d.bus(v.boot.machine.IOMMU, v.ended)))
		}
		killed = killed || d.lost()
	}
	if v.boot.job.counts != nil {
		v.accesses()
	}
	if !killed {
		v.suite.test("qemu", vfioLines(outcome.Stderr))
	}
}

// unfinished fails the program that was running, and those that never ran.
func (v *reporter) unfinished() {
	if v.current != nil {
		v.current.end("the machine ended first")
		v.current = nil
	}
	for i := v.next; i < len(v.boot.programs); i++ {
		s := newSuite(v.stream, v.name(i))
		s.test("run", "the machine ended before its turn")
		s.end()
	}
}

func lacks(ok bool, otherwise string) string {
	if ok {
		return ""
	}
	return otherwise
}

func text(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

func join(reports []klog.Report) string {
	var b strings.Builder
	for _, r := range reports {
		b.WriteString(r.String() + "\n")
	}
	return b.String()
}

// vfioLines returns what QEMU says about the device's connection: after such a
// line it may be dead while the guest's test still passes.
func vfioLines(stderr string) string {
	var bad strings.Builder
	for line := range strings.Lines(stderr) {
		if strings.Contains(line, "vfio") {
			bad.WriteString(line)
		}
	}
	return bad.String()
}
