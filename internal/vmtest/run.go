//go:build linux

package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/nfcomms/nfcomms/internal/vmtest/klog"
	"github.com/nfcomms/nfcomms/internal/vmtest/vm"
	"github.com/nfcomms/nfcomms/internal/vmtest/wire"
)

// boot is one machine that is ready to run a job.
type boot struct {
	job      job
	programs []program
	machine  vm.Machine
	devices  []deviceSpec
	plan     *wire.Plan
	folder   string // of logs, kept until the next run of the job
	scratch  string // of the socket, removed
	unlock   func()
	patience time.Duration // for the first frame
	echo     io.Writer     // gets what programs write, besides the events; may be nil
	cost     cost          // of all attempts; valid after run
	late     *time.Timer   // ends the run; valid while the machine runs
}

// prepare builds everything that a job needs.
func (w *workshop) prepare(ctx context.Context, j job, programs []program) (*boot, error) {
	b := &boot{job: j, programs: programs, machine: j.machine, patience: bootTimeout,
		folder: filepath.Join(w.out, "log", j.name)}
	err := b.folders()
	if err == nil {
		err = w.equip(ctx, b)
	}
	if err != nil {
		b.close()
		return nil, err
	}
	return b, nil
}

// equip builds what the machine is made of, while no other vmtest does.
func (w *workshop) equip(ctx context.Context, b *boot) error {
	unlock, err := lock(w.out)
	if err != nil {
		return err
	}
	defer unlock()
	k, err := w.kernelFor(ctx, b.job.kernel)
	if err != nil {
		return err
	}
	b.machine.Kernel, b.machine.Arch = k.image, k.arch
	if b.job.kmemleak {
		b.machine.Append = append(slices.Clone(b.job.machine.Append), "kmemleak=on")
	}
	if b.machine.QEMU, err = w.qemu(ctx, k.arch); err != nil {
		return err
	}
	if b.job.device != nil {
		nfsim, err := w.device(ctx)
		if err != nil {
			return err
		}
		for i := range max(len(b.job.nodes), 1) {
			d := b.newDevice(i, nfsim)
			b.devices, b.machine.Devices = append(b.devices, d), append(b.machine.Devices, d.port())
		}
	}
	return w.fill(ctx, b, k)
}

// folders makes the folder of the logs anew, which nobody else does until close,
// and one for the socket, whose name must be short.
func (b *boot) folders() error {
	var err error
	if b.unlock, err = lock(b.folder + ".lock"); err != nil {
		return err
	}
	err = os.RemoveAll(b.folder)
	if err == nil {
		err = os.MkdirAll(b.folder, 0o755)
	}
	if err == nil {
		b.scratch, err = os.MkdirTemp("", "nfcomms-vm-")
	}
	if err != nil {
		return fmt.Errorf("prepare %s: %w", b.job.name, err)
	}
	return nil
}

// close gives up what the boot holds.
func (b *boot) close() {
	if b.scratch != "" {
		os.RemoveAll(b.scratch)
	}
	if b.unlock != nil {
		b.unlock()
	}
}

// fill builds what runs in the guest and writes the initramfs.
func (w *workshop) fill(ctx context.Context, b *boot, k *kernel) error {
	init, err := w.program(ctx, k.arch, program{name: "init", kind: goMain, source: []string{"./internal/vmtest/guest"}})
	if err != nil {
		return err
	}
	b.plan = &wire.Plan{Results: b.machine.Serial(1), Kmemleak: b.job.kmemleak, Coverage: k.debug && b.job.device != nil && b.job.defect == "",
		Shell: b.job.banner != "", Banner: b.job.banner,
		Warns: slices.ContainsFunc(b.job.allow, func(s string) bool { return strings.HasPrefix(s, "^WARNING") })}
	items, err := w.modules(ctx, b, k)
	if err != nil {
		return err
	}
	for _, p := range b.programs {
		built, err := w.program(ctx, k.arch, p)
		if err != nil {
			return err
		}
		path := "/bin/" + p.name
		items = append(items, item{name: path, from: built, perm: 0o755})
		b.plan.Programs = append(b.plan.Programs, p.wire(path))
	}
	b.machine.Initrd = filepath.Join(b.folder, "initrd.cpio")
	return writeInitramfs(b.machine.Initrd, init, b.plan, append(items, b.job.files...))
}

// modules puts the modules that a job needs into the plan, and returns their files.
func (w *workshop) modules(ctx context.Context, b *boot, k *kernel) (items []item, err error) {
	load := func(name, from, params string) {
		path := "/modules/" + name + ".ko"
		items = append(items, item{name: path, from: from, perm: 0o644})
		if !b.job.udev {
			b.plan.Modules = append(b.plan.Modules, wire.Module{Name: name, Path: path, Params: params})
		}
	}
	switch {
	case b.job.device == nil:
		return nil, nil
	case b.job.vfio:
		for _, file := range vfioModules {
			load(strings.ReplaceAll(file, "-", "_"), filepath.Join(k.modules, file+".ko"), "")
		}
		return items, nil
	}
	module, err := w.module(ctx, k, b.job.defect)
	if err != nil {
		return nil, err
	}
	load("nfcomms", module, b.job.params)
	if b.job.udev {
		udev, err := w.udev(ctx)
		if err != nil {
			return nil, err
		}
		items = append(items, udev...)
	}
	return items, nil
}

// vfioModules are those of the release's kernel, each after what it needs.
var vfioModules = []string{"irqbypass", "vfio_virqfd", "vfio", "vfio_iommu_type1", "vfio-pci-core", "vfio-pci"}

// wire returns what the guest must know of a program.
func (p program) wire(path string) wire.Program {
	timeout := p.timeout
	if timeout == 0 {
		timeout = programTimeout
	}
	args := p.args
	if p.kind == goTest {
		// Its own limit is the lower one: it says where it hangs.
		args = append([]string{"-test.v=test2json", "-test.timeout=" + (timeout - timeout/8).String()}, args...)
	}
	return wire.Program{Name: p.name, Path: path, Args: args, Env: p.env, Timeout: timeout}
}

// reproduce writes a script that boots the same machine by hand.
func (b *boot) reproduce() (string, error) {
	var text strings.Builder
	text.WriteString("#!/bin/sh\n# Boot this machine again: the console on the standard error, results on the standard output.\n")
	for _, d := range b.devices {
		fmt.Fprintf(&text, "mkdir -p %s\n%s &\nwhile [ ! -S %s ]; do sleep 0.1; done\n",
			b.scratch, strings.Join(d.command, " "), d.socket)
	}
	text.WriteString(b.machine.Command() + "\n")
	name := filepath.Join(b.folder, "again.sh")
	return name, os.WriteFile(name, []byte(text.String()), 0o755)
}

// run boots the machine, reports everything to s and returns the exit status of
// the last program.
func (b *boot) run(ctx context.Context, s *stream) (status int, err error) {
	defer b.close()
	began := time.Now()
	defer func() { b.cost.job, b.cost.wall = b.job.name, time.Since(began) }()
	again, err := b.reproduce()
	if err != nil {
		return 0, err
	}
	u := newSuite(s, "vm/"+b.job.name)
	defer u.end()
	v, err := b.attempt(ctx, s, u, again, false)
	if errors.Is(err, errNotUp) {
		// No program of ours ran yet: an emulated kernel hangs in its own boot now and then.
		fmt.Fprintf(os.Stderr, "vmtest: %s: %v; booting once more\n", b.job.name, err)
		v, err = b.attempt(ctx, s, u, again, true)
	}
	if err != nil {
		return 0, err
	}
	return v.status, nil
}

// errNotUp means that a machine sent nothing in time.
var errNotUp = errors.New("the machine did not come up")

// attempt boots the machine and returns what came of it. If it does not come up
// that is errNotUp, or a failed test of the last attempt.
func (b *boot) attempt(ctx context.Context, s *stream, u *suite, again string, last bool) (*reporter, error) {
	console, err := os.Create(filepath.Join(b.folder, "console.log"))
	if err != nil {
		return nil, fmt.Errorf("create log: %w", err)
	}
	defer console.Close()
	scanner, err := klog.NewScanner(b.job.allow...)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	v := &reporter{boot: b, stream: s, suite: u, scanner: scanner, log: console, again: again, cancel: cancel}
	return v, v.drive(ctx, last)
}

// drive starts the device and the machine, and reports how they end, unless the
// machine did not come up and may be booted again: that is errNotUp.
func (v *reporter) drive(ctx context.Context, last bool) error {
	b := v.boot
	var err error
	if v.devices, err = startDevices(ctx, b.devices); err != nil {
		v.suite.test("device", err.Error())
		return nil
	}
	timeout := cmp.Or(b.job.limit, jobTimeout)
	b.late = time.AfterFunc(timeout, func() { v.cancel(fmt.Errorf("not done after %v", timeout)) })
	defer b.late.Stop()
	absent := time.AfterFunc(b.patience, v.noHello)
	v.began = time.Now()
	outcome, err := b.machine.Boot(ctx, vm.Events{Frame: v.frame, Console: v.console})
	for _, d := range v.devices {
		d.err = d.stop()
		b.cost.devices += d.Spent()
	}
	b.cost.machine += outcome.Spent
	b.cost.boot += v.booted
	if !absent.Stop() && !v.hello.Load() && !last {
		return errNotUp
	}
	v.conclude(outcome, err)
	return nil
}
