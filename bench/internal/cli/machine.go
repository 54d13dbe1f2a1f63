package cli

import (
	"bufio"
	"bytes"
	"context"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/nfcomms/nfcomms/bench/internal/stat"
	"github.com/nfcomms/nfcomms/internal/subprocess"
)

// The files of /proc are read where there are any; elsewhere each function
// says that it does not know.

// loadAverage returns the one-minute load average, -1 if unknown.
func loadAverage() float64 {
	text, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return -1
	}
	first, _, _ := strings.Cut(string(text), " ")
	load, err := strconv.ParseFloat(first, 64)
	if err != nil {
		return -1
	}
	return load
}

// modulePath is the module of this program.
const modulePath = "github.com/nfcomms/nfcomms"

// revision is that of the program: what the linker wrote, or, for
// "go run", what git reports of the folder if that is of this module.
var revision = sync.OnceValue(func() string {
	if info, ok := debug.ReadBuildInfo(); ok {
		set := make(map[string]string)
		for _, s := range info.Settings {
			set[s.Key] = s.Value
		}
		if v := set["vcs.revision"]; v != "" {
			if set["vcs.modified"] == "true" {
				v += "-dirty"
			}
			return v
		}
	}
	git := func(args ...string) string {
		text, _ := subprocess.Command(context.Background(), "git", args...).Output() // no git: empty
		return strings.TrimSpace(string(text))
	}
	module, _ := os.ReadFile(filepath.Join(git("rev-parse", "--show-toplevel"), "go.mod"))
	if v := git("describe", "--always", "--dirty", "--abbrev=40", "--exclude=*"); v != "" && strings.HasPrefix(string(module), "module "+modulePath+"\n") {
		return v
	}
	return "unknown"
})

// CPUModel is the name of the processor.
func CPUModel() string {
	if model, ok := procField("/proc/cpuinfo", "model name"); ok {
		return model
	}
	return "unknown CPU"
}

// ResidentBytes is the memory of this process, -1 if unknown.
func ResidentBytes() float64 {
	text, ok := procField("/proc/self/status", "VmRSS")
	kib, err := strconv.Atoi(strings.TrimSuffix(text, " kB"))
	if !ok || err != nil {
		return -1
	}
	return float64(kib) * 1024
}

// HeapBytes is the live part of the Go heap and the stacks of goroutines.
func HeapBytes() float64 {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return float64(m.HeapAlloc + m.StackInuse)
}

// Threads returns the number of OS threads of this process, -1 if unknown.
func Threads() int {
	text, ok := procField("/proc/self/status", "Threads")
	if !ok {
		return -1
	}
	n, err := strconv.Atoi(text)
	if err != nil {
		return -1
	}
	return n
}

// procField finds the first "name : value" line.
func procField(path, name string) (string, bool) {
	text, err := os.ReadFile(path)
	if err != nil {
		return "", false
	}
	for lines := bufio.NewScanner(bytes.NewReader(text)); lines.Scan(); {
		key, value, ok := strings.Cut(lines.Text(), ":")
		if ok && strings.TrimSpace(key) == name {
			return strings.TrimSpace(value), true
		}
	}
	return "", false
}

// jiffy is the unit of /proc/stat (USER_HZ is 100 on every Linux).
const jiffy = 10 * time.Millisecond

// machineTime returns the CPU time all processes used since boot, time stolen
// by the hypervisor included, and the number of CPUs it is spread over.
func machineTime() (used time.Duration, cpus int, ok bool) {
	text, err := os.ReadFile("/proc/stat")
	if err != nil {
		return 0, 0, false
	}
	for line := range strings.Lines(string(text)) {
		f := strings.Fields(line)
		if len(f) < 9 || !strings.HasPrefix(f[0], "cpu") {
			continue
		}
		if f[0] != "cpu" {
			cpus++
			continue
		}
		for i, v := range f[1:9] { // user nice system idle iowait irq softirq steal
			if n, err := strconv.ParseInt(v, 10, 64); err == nil && i != 3 && i != 4 {
				used += time.Duration(n) * jiffy
			}
		}
	}
	return used, cpus, cpus > 0
}

// watch notes whether somebody else used the machine while it was open.
type watch struct {
	Start time.Time
	used  time.Duration
	own   time.Duration
}

// NewWatch starts watching; own is the CPU time of this benchmark so far.
func NewWatch(own time.Duration) watch {
	used, _, _ := machineTime()
	return watch{Start: time.Now(), used: used, own: own}
}

const (
	// busyShare is the share of all CPUs that makes a machine too busy.
	busyShare = 0.25
	// leastWatch is the time in which such a share shows: the machine counts in jiffies.
	leastWatch = 20 * jiffy
)

// Busy returns why figures taken since NewWatch are not to be trusted, or "".
// own is the CPU time of this benchmark so far, memcpy the time of the same copy
// in each round. After less than leastWatch it waits for the rest, in which others count as well.
func (w watch) Busy(own time.Duration, memcpy []float64) string {
	time.Sleep(leastWatch - time.Since(w.Start))
	used, cpus, _ := machineTime()
	others := (used - w.used) - (own - w.own)
	return busyReason(time.Since(w.Start), others, cpus, memcpy)
}

// busyReason looks at the CPU time that others used of so many CPUs, each of which may have counted a
// jiffy too much, and at how much memcpy varied. Zero CPUs means that the machine does not report them.
func busyReason(wall, others time.Duration, cpus int, memcpy []float64) string {
	idle := time.Duration(busyShare*float64(cpus)*float64(wall)) + time.Duration(cpus)*jiffy
	if wall >= leastWatch && cpus > 0 && others > idle {
		return ReasonBusy
	}
	if s := stat.Summarise(memcpy); s.N > 1 && s.Max > 2*s.Min {
		return ReasonBusy
	}
	return ""
}

// ReasonBusy is why figures of a busy machine are worth nothing.
const ReasonBusy = "machine busy"
