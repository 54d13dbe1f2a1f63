package main

import (
	"errors"
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"github.com/nfcomms/nfcomms/internal/slottrace"
	"github.com/nfcomms/nfcomms/spec"
)

// verifyRecord is the output of nfctl verify.
type verifyRecord struct {
	File    string         `json:"file" doc:"name of the log"`
	Slots   int            `json:"slots" doc:"slots that were verified"`
	Epochs  int            `json:"epochs" doc:"epochs of devices in a trace; 0 for a log"`
	Skipped int            `json:"skipped" doc:"slots of a trace that were not verified, as their epoch began before it or beside lost events"`
	Lost    uint64         `json:"lost" doc:"events of a trace that the kernel lost"`
	Illegal *illegalRecord `json:"illegal" doc:"first slot that the protocol does not allow; null if there is none, else the exit code is 8"`
}

// incomplete reports whether slots are missing.
func (r verifyRecord) incomplete() bool { return r.Skipped > 0 || r.Lost > 0 }

// illegalRecord is a slot that no path of the protocol's tables has.
type illegalRecord struct {
	Index   int      `json:"index" doc:"number of the slot in the log, from 0; for a trace, in its epoch"`
	Line    int      `json:"line" doc:"line of the trace, from 1; 0 for a log"`
	Device  int      `json:"device" doc:"number of the device of a trace; 0 for a log"`
	Mailbox uint32   `json:"mailbox" doc:"mailbox that it passed"`
	Side    string   `json:"side" doc:"side that put it: host or device"`
	Slot    string   `json:"slot" doc:"slot, field by field"`
	Why     string   `json:"why" doc:"what is wrong with it"`
	Before  string   `json:"before" doc:"states that the halves of the channel could have had before it"`
	Allowed []string `json:"allowed" doc:"what that side could have put, or the host could have done"`
}

func newVerify(a *app) *cobra.Command {
	var trace bool
	c := &cobra.Command{
		Use: "verify FILE", GroupID: groupLook,
		Short: "Say whether a log of slots is a path of the protocol",
		Long: `Say whether a log of the slots that passed between a host and a device is a path
of the protocol's tables. If not, the first slot that is not is shown, with the
states before it. Exit code 8 says that there is such a slot, or that slots are
missing, and 2 that the file is no log.

With --trace the file is a copy of tracefs' file "trace" with the events
nfcomms_epoch, nfcomms_slot_in and nfcomms_slot_out of the kernel module.`,
		Args: cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			f, err := os.Open(args[0])
			if err != nil {
				return usageError{err}
			}
			defer f.Close()
			verify := verifyLog
			if trace {
				verify = verifyTrace
			}
			r := verifyRecord{File: args[0]}
			if err := verify(f, &r); err != nil {
				return usageError{fmt.Errorf("%s: %w", args[0], err)}
			}
			if err := a.print(r); err != nil || r.Illegal == nil && !r.incomplete() {
				return err
			}
			return errUnhealthy
		},
	}
	c.Flags().BoolVar(&trace, "trace", false, "the file is a text of tracefs")
	return c
}

// verifyLog verifies a log. An error is one of the file.
func verifyLog(f *os.File, r *verifyRecord) error {
	slots, err := spec.VerifyFile(f)
	r.Slots = slots
	if illegal := new(spec.IllegalError); errors.As(err, &illegal) {
		r.Illegal, err = newIllegal(illegal), nil
	}
	return err
}

// verifyTrace verifies a text of tracefs. An error is one of the file.
func verifyTrace(f *os.File, r *verifyRecord) error {
	sum, err := slottrace.Verify(f)
	r.Slots, r.Epochs, r.Skipped, r.Lost = sum.Slots, sum.Epochs, sum.Skipped, sum.Lost
	illegal := new(slottrace.IllegalError)
	if errors.As(err, &illegal) {
		r.Illegal, err = newIllegal(illegal.IllegalError), nil
		r.Illegal.Line, r.Illegal.Device = illegal.Line, illegal.Device
	}
	return err
}

func newIllegal(e *spec.IllegalError) *illegalRecord {
	side := "host"
	if e.Record.Taken {
		side = "device"
	}
	return &illegalRecord{
		Index: e.Index, Mailbox: e.Record.Mailbox, Side: side, Slot: e.Record.Slot.String(),
		Why: e.Why, Before: e.Before, Allowed: e.Allowed,
	}
}

func (r verifyRecord) table(p *printer) {
	i := r.Illegal
	switch {
	case i == nil && r.incomplete():
		fmt.Fprintf(p.w, "incomplete: %d slots, all legal; %d skipped, %d events lost\n", r.Slots, r.Skipped, r.Lost)
		return
	case i == nil:
		fmt.Fprintf(p.w, "%d slots, all legal\n", r.Slots)
		return
	case i.Line > 0:
		fmt.Fprintf(p.w, "line %d, slot %d of an epoch of device %d, is illegal: %s\n", i.Line, i.Index, i.Device, i.Why)
	default:
		fmt.Fprintf(p.w, "slot %d is illegal: %s\n", i.Index, i.Why)
	}
	fmt.Fprintf(p.w, "put by the %s in mailbox %d: %s\nbefore: %s\n", i.Side, i.Mailbox, i.Slot, i.Before)
	for _, row := range i.Allowed {
		fmt.Fprintf(p.w, "allowed: %s\n", row)
	}
}
