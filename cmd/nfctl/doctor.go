package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/nfcomms/nfcomms/bridge"
	"github.com/nfcomms/nfcomms/pkg/control"
	"github.com/nfcomms/nfcomms/pkg/nfcomms"
)

// Outcomes of a check.
const (
	statusOK      = "ok"
	statusWarning = "warning"
	statusError   = "error"
	statusSkipped = "skipped"
)

// doctorRecord is the output of nfctl doctor.
type doctorRecord struct {
	Errors   int             `json:"errors" doc:"number of findings with status error; the exit code is 8 if there are any"`
	Warnings int             `json:"warnings" doc:"number of findings with status warning"`
	Findings []findingRecord `json:"findings" doc:"what was looked at, in order"`
}

// findingRecord is the outcome of one check.
type findingRecord struct {
	Check  string `json:"check" doc:"name of the check"`
	Status string `json:"status" doc:"ok, warning, error, or skipped if it does not matter here"`
	Detail string `json:"detail" doc:"what was found"`
	Fix    string `json:"fix" doc:"what to do about it; empty if nothing"`
}

// check is one thing that doctor looks at. It may give one finding for each of
// several devices.
type check struct {
	name, about string
	run         func(*doctor, context.Context) []findingRecord
}

// checks lists all of them in the order of the output. docs/nfctl.md prints it.
var checks = []check{
	{"module", "the kernel module is loaded if there is a PCI device for it", (*doctor).module},
	{"device-nodes", "the nodes in /dev may be opened by this user, and not by everybody", (*doctor).nodes},
	{"group", "this user is in the group of the nodes, also in this session", (*doctor).group},
	{"device-abi", "firmware and driver behind each node speak the versions of this nfctl", (*doctor).deviceABI},
	{"iommu", "an IOMMU keeps devices out of memory that is not theirs", (*doctor).iommu},
	{"memlock", "the daemon, else this shell, may pin enough memory for DMA", (*doctor).memlock},
	{"open-files", "the daemon, else this shell, may open enough files", (*doctor).openFiles},
	{"processors", "there are processors enough to wait actively, and no quota takes them away", (*doctor).processors},
	{"memory", "the Go runtime of the daemon knows of a memory limit of its control group", (*doctor).memory},
	{"socket", "the daemon's socket is there and may be opened", (*doctor).socket},
	{"server", "the server answers and was built for the same device ABI", (*doctor).server},
	{"role", "which role the server gives this user", (*doctor).role},
	{"devices", "the server's devices, or that of --device, answer and are well", (*doctor).devices},
}

// doctor checks a host.
type doctor struct {
	// root is where /dev, /etc, /proc and /sys are.
	root string
	who  identity
	// explicit: the person named the address, so somebody should answer.
	address  string
	explicit bool
	// trusts reports who may serve at the socket; nil trusts anybody.
	trusts func(uid uint32) bool
	// explain finds the reason for an error of a connection; nil leaves the error as it is.
	explain func(ctx context.Context, err error) error
	// client asks the server; nil if there is none to ask, as unopened says.
	client *control.Client
	// unopened is why the device of --device could not be opened.
	unopened error
	// schemes and open are those of package nfcomms.
	schemes []string
	open    func(ctx context.Context, address string) (nfcomms.Info, error)

	// reached: the server answered, so that further questions make sense.
	reached bool
	seen    serverView
}

// identity is the user that runs doctor.
type identity struct {
	uid    int
	groups []int
}

// self returns who runs this process.
func self() (identity, error) {
	groups, err := os.Getgroups()
	return identity{uid: os.Geteuid(), groups: append(groups, os.Getegid())}, err
}

func newDoctor(a *app) *cobra.Command {
	return &cobra.Command{
		Use: "doctor", GroupID: groupLook,
		Short: "Look for what is wrong with this host and the server, and say how to mend it",
		Long: `Look for what is wrong with this host and the server, and say how to mend it. It
also works without a server. Exit code 8 says that an error was found; warnings
alone do not count.

Checks:
` + checkHelp(),
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			who, err := self()
			if err != nil {
				return err
			}
			if err := a.place(); err != nil {
				return err
			}
			d := doctor{
				root: "/", who: who, address: a.address, schemes: bridge.Schemes(), open: openInfo, explain: a.explain,
				explicit: a.context != "" || cmd.Root().PersistentFlags().Changed("address"),
			}
			d.trusts, err = a.trusts()
			if err != nil {
				return err
			}
			c, done, err := a.dial(cmd.Context())
			switch {
			case err == nil:
				defer done()
				d.client = c
			case a.device == "" || exitCode(cmd.Context(), err) == exitUsage:
				return err
			default:
				d.unopened = err
			}
			if a.device != "" {
				d.address = ""
			}
			ctx, cancel := a.limited(cmd.Context())
			defer cancel()
			r := d.examine(ctx)
			if err := a.print(r); err != nil || r.Errors == 0 {
				return err
			}
			return fmt.Errorf("%d of %d findings are errors: %w", r.Errors, len(r.Findings), errUnhealthy)
		},
	}
}

// checkHelp lists the checks for the help.
func checkHelp() string {
	var b strings.Builder
	for _, c := range checks {
		fmt.Fprintf(&b, "  %-13s %s\n", c.name, c.about)
	}
	return b.String()
}

// openInfo opens a device for a moment.
func openInfo(ctx context.Context, address string) (nfcomms.Info, error) {
	dev, err := nfcomms.Open(ctx, address)
	if err != nil {
		return nfcomms.Info{}, err
	}
	return dev.Info(), dev.Close()
}

// examine runs all checks.
func (d *doctor) examine(ctx context.Context) doctorRecord {
	r := doctorRecord{Findings: []findingRecord{}}
	for _, c := range checks {
		for _, f := range c.run(d, ctx) {
			f.Check = c.name
			r.Findings = append(r.Findings, f)
			switch f.Status {
			case statusError:
				r.Errors++
			case statusWarning:
				r.Warnings++
			}
		}
	}
	return r
}

func (r doctorRecord) table(p *printer) {
	for _, f := range r.Findings {
		p.printf("%s  %-12s  %s\n", p.paint(fmt.Sprintf("%-7s", f.Status), tintOf(f.Status)), f.Check, f.Detail)
		if f.Fix != "" {
			p.printf("%21s  fix: %s\n", "", f.Fix)
		}
	}
	p.printf("%d errors, %d warnings\n", r.Errors, r.Warnings)
}

// one is the finding of a check that has one.
func one(status, detail, fix string) []findingRecord {
	return []findingRecord{{Status: status, Detail: detail, Fix: fix}}
}

// path returns a path below the root.
func (d *doctor) path(name string) string { return filepath.Join(d.root, name) }

// read returns a small file's text without blanks around it, "" if it cannot be
// read.
func (d *doctor) read(name string) string {
	text, err := os.ReadFile(d.path(name))
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(text))
}

// glob lists the paths, from the root, that match a pattern.
func (d *doctor) glob(pattern string) []string {
	found, _ := filepath.Glob(d.path(pattern)) // the patterns are ours and well-formed
	for i, f := range found {
		found[i] = "/" + strings.TrimPrefix(strings.TrimPrefix(f, filepath.Clean(d.root)), "/")
	}
	slices.Sort(found)
	return found
}

// deviceNodes lists the nodes of devices.
func (d *doctor) deviceNodes() []string { return d.glob("/dev/nfcomms[0-9]*") }
