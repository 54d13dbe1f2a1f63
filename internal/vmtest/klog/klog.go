package klog

import (
	"fmt"
	"regexp"
	"strings"
)

// MarkBegin and MarkEnd, each before a name, are what a guest writes to the log
// to say which program runs.
const (
	MarkBegin = "vmtest: begin "
	MarkEnd   = "vmtest: end "
)

// maxReport bounds the lines kept of one report.
const maxReport = 80

// Report is one thing that the kernel complained about.
type Report struct {
	During string   // the program that ran, "" outside of all
	Lines  []string // from the line that was recognized; later ones may be other matters
}

// String returns the report as text of several lines.
func (r Report) String() string {
	head := "kernel report"
	if r.During != "" {
		head += " during " + r.During
	}
	return head + ":\n\t" + strings.Join(r.Lines, "\n\t")
}

// Scanner collects reports from the lines of a kernel log.
type Scanner struct {
	allowed []*regexp.Regexp
	during  string
	reports []Report
	open    bool // the last report still takes lines
	mute    int  // so many lines at most are still of a warning that was let pass
}

// NewScanner returns a scanner that lets lines pass which match one of the
// expressions: what a test provokes on purpose. With a warning passes its trace.
func NewScanner(allowed ...string) (*Scanner, error) {
	s := new(Scanner)
	for _, text := range allowed {
		re, err := regexp.Compile(text)
		if err != nil {
			return nil, fmt.Errorf("allowed kernel message %q: %w", text, err)
		}
		s.allowed = append(s.allowed, re)
	}
	return s, nil
}

// Reports returns what was found so far.
func (s *Scanner) Reports() []Report { return s.reports }

// Line takes one line of the log, with or without its time stamp.
func (s *Scanner) Line(line string) {
	line = strings.TrimRight(line, "\r\n")
	text := stamp.ReplaceAllString(line, "")
	switch {
	case strings.HasPrefix(text, MarkBegin):
		s.during, s.open, s.mute = strings.TrimPrefix(text, MarkBegin), false, 0
	case strings.HasPrefix(text, MarkEnd):
		s.during, s.open, s.mute = "", false, 0
	case s.open:
		s.extend(line, text)
	case s.mute > 0:
		s.mute--
		if strings.HasPrefix(text, endOfTrace) {
			s.mute = 0
		}
	case s.bad(text):
		s.reports = append(s.reports, Report{During: s.during, Lines: []string{line}})
		s.open = true
	}
}

// extend adds a line to the last report, up to its end. A finding inside of a report is a
// consequence of it.
func (s *Scanner) extend(line, text string) {
	r := &s.reports[len(s.reports)-1]
	r.Lines = append(r.Lines, line)
	if len(r.Lines) == maxReport || strings.HasPrefix(text, endOfTrace) {
		s.open = false
	}
}

func (s *Scanner) bad(text string) bool {
	if !trouble.MatchString(text) || harmless.MatchString(text) {
		return false
	}
	for _, re := range s.allowed {
		if re.MatchString(text) {
			if strings.HasPrefix(text, "WARNING: ") {
				s.mute = maxReport
			}
			return false
		}
	}
	return true
}

const endOfTrace = "---[ end "

var (
	// stamp is the time, and the task or processor, before a message.
	stamp = regexp.MustCompile(`^(<\d+>)?\[\s*\d+\.\d+\](\[\s*[TC]\d+\])? `)

	trouble = regexp.MustCompile(strings.Join([]string{
		`^BUG: `, // KASAN, sleeping in atomic context, bad pages, lockups
		`^kernel BUG at `,
		`^WARNING: `, // WARN(), lockdep, suspicious RCU usage
		`^Oops: `,
		`^(general protection fault|int3|stack segment|double fault|divide error|invalid opcode|traps: PANIC)\b`,
		`^Unable to handle kernel `,
		`^Kernel panic`,
		`^Modules linked in: `, // a trace whose head was lost
		`^=+\[? ?(BUG|INFO|WARNING)`,
		`^UBSAN: `,
		`^DMA-API: `,
		`^DMAR: .*[Ff]ault`,
		`^DMAR: \[`,
		`^ODEBUG: `,
		`^kmemleak: .*(suspected memory leaks|Cannot|Allocation failed)`,
		`^unreferenced object `,
		`^INFO: (task .* blocked|possible |trying to register|lockdep is turned off|rcu|HARDIRQ|SOFTIRQ|inconsistent)`,
		`^rcu: INFO: .*(stall|starved)`,
		`^watchdog: BUG`,
		`^(NMI watchdog|workqueue): .*lockup`,
		`^irq \d+: nobody cared`,
		`^Disabling IRQ #`,
		`^refcount_t: `,
		`^(list_add|list_del) corruption`,
		`^swiotlb .*full`,
		`^Bad (page|rss-counter)`,
		`^SLUB: .*(object|redzone)`,
		`page allocation failure`,
		`^usercopy: Kernel memory `,
		`^do_IRQ: .*No irq handler`,
		`^\S+: kernel stack overflow`,
	}, "|"))

	// harmless are messages of every boot that look like trouble.
	harmless = regexp.MustCompile(strings.Join([]string{
		`^DMA-API: (preallocated|debugging enabled|dma_debug_add_bus)`,
		`^DMAR: .*Fault tolerant`,
	}, "|"))
)
