package compare

import (
	"context"
	"embed"
	"errors"
	"strings"

	"github.com/nfcomms/nfcomms/bench/internal/stat"
)

// Names of the limits, as they stand in reports.
const (
	NameLineThreads   = "cache line there and back, two threads in C"
	NameLineProcesses = "cache line there and back, two processes in C"
	NameFutex         = "futex wake-up there and back, two processes in C"
	NamePin           = "a page pinned and read: process_vm_readv of 8 bytes"
	NameRead          = "process_vm_readv of another process"
	NameCopyOne       = "memcpy in C, one thread"
	NameCopyTwo       = "memcpy in C, two threads"
	NameCopyOneCold   = NameCopyOne + cold
	NameCopyTwoCold   = NameCopyTwo + cold
)

// DoesLimit is what the limits do: nothing for anybody.
const DoesLimit = "limit"

// NativeFutex is two processes that sleep in turn, in C.
var NativeFutex = &NativeLibrary{ID: "futex", Name: "futex", Compiler: "cc", Install: "Debian: gcc"}

// Limits are programs in C that do what the machine allows, and nothing else.
type Limits struct{ limits, futex *NativeProgram }

// NewLimits builds the programs; they may be missing.
func NewLimits(ctx context.Context) *Limits {
	p := &NativeProgram{Library: &NativeLibrary{ID: "limits", Name: "limits", Compiler: "cc", Install: "Debian: gcc"}, Limit: NativeLimit}
	return &Limits{p.Build(ctx, "-O2", []embed.FS{NativeSources}, "native/limits.c"), NativeFutex.Program(ctx)}
}

// Missing says why they are not measured; empty if they are.
func (l *Limits) Missing() []string { return Natives{l.limits, l.futex}.Missing() }

// Remove deletes what was built.
func (l *Limits) Remove() error { return errors.Join(l.limits.Remove(), l.futex.Remove()) }

// one is a limit: operations on so many buffers in turn.
func (l *Limits) one(name, kind string, size, buffers, batch int) *Contender {
	return l.limits.Repeated(name, DoesLimit, size, batch, func(ctx context.Context, batches int) (*NativeRun, error) {
		return l.limits.Run(ctx, 2, kind, size, buffers, batches, batch, NativeMillis, 0, 0)
	})
}

// Line is the limit of a message: threads of one process, or two processes. None if it is missing.
func (l *Limits) Line(processes bool) []*Contender {
	name, kind := NameLineThreads, "threads"
	if processes {
		name, kind = NameLineProcesses, "processes"
	}
	if l.limits.Missing != "" {
		return nil
	}
	return []*Contender{l.one(name, kind, MessageSize, 1, SmallBatch)}
}

// Small are all limits of a message; none of what is missing.
func (l *Limits) Small() []*Contender {
	all := append(l.Line(false), l.Line(true)...)
	if l.futex.Missing == "" {
		all = append(all, l.futex.Contender("echo", DoesLimit, MessageSize, 1))
		all[len(all)-1].Name = NameFutex
	}
	if l.limits.Missing == "" {
		all = append(all, l.one(NamePin, "read", 8, 1, SmallBatch))
	}
	return all
}

// Copies are the limits of a transfer, from and to the same buffers each time and with buffers in turn;
// none if they are missing.
func (l *Limits) Copies(size int) []*Contender {
	if l.limits.Missing != "" {
		return nil
	}
	n := ColdCount(size)
	return []*Contender{
		l.one(NameCopyOne, "copy1", size, 1, 1), l.one(NameCopyTwo, "copy2", size, 1, 1),
		l.one(NameCopyOneCold, "copy1", size, n, 1), l.one(NameCopyTwoCold, "copy2", size, n, 1),
	}
}

// Bulk are all limits of a transfer.
func (l *Limits) Bulk(size int) []*Contender {
	all := l.Copies(size)
	if len(all) > 0 {
		all = append(all, l.one(NameRead, "read", size, ColdCount(size), 1))
	}
	return all
}

// CopiesBeside names the copies that are the limit of a transfer: hot where it is, else with buffers in turn.
func CopiesBeside(name string) []string {
	if strings.HasSuffix(name, cold) {
		return []string{NameMemcpyCold, NameCopyOneCold, NameCopyTwoCold}
	}
	return []string{NameMemcpy, NameCopyOne, NameCopyTwo}
}

// OverLimit is the time of a contender over that of the fastest limit of those named that took part, the
// median of the rounds; zero if none did.
func (t *Comparison) OverLimit(name string, limits ...string) stat.Spread {
	var best stat.Spread
	for _, l := range limits {
		if s := t.Ratio(name, l); s.Median > best.Median {
			best = s
		}
	}
	return best
}
