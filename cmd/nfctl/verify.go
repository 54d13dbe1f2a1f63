package main

import (
	"errors"
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"github.com/nfcomms/nfcomms/spec"
)

// verifyRecord is the output of nfctl verify.
type verifyRecord struct {
	File    string         `json:"file" doc:"name of the log"`
	Slots   int            `json:"slots" doc:"slots in the log"`
	Illegal *illegalRecord `json:"illegal" doc:"first slot that the protocol does not allow; null if there is none, else the exit code is 8"`
}

// illegalRecord is a slot that no path of the protocol's tables has.
type illegalRecord struct {
	Index   int      `json:"index" doc:"number of the slot in the log, from 0"`
	Mailbox uint32   `json:"mailbox" doc:"mailbox that it passed"`
	Side    string   `json:"side" doc:"side that put it: host or device"`
	Slot    string   `json:"slot" doc:"slot, field by field"`
	Why     string   `json:"why" doc:"what is wrong with it"`
	Before  string   `json:"before" doc:"states that the halves of the channel could have had before it"`
	Allowed []string `json:"allowed" doc:"what that side could have put, or the host could have done"`
}

func newVerify(a *app) *cobra.Command {
	return &cobra.Command{
		Use: "verify FILE", GroupID: groupLook,
		Short: "Say whether a log of slots is a path of the protocol",
		Long: `Say whether a log of the slots that passed between a host and a device is a path
of the protocol's tables. If not, the first slot that is not is shown, with the
states before it. Exit code 8 says that there is such a slot, and 2 that the
file is no log.`,
		Args: cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			r, err := verifyFile(args[0])
			if err != nil {
				return usageError{err}
			}
			if err := a.print(r); err != nil || r.Illegal == nil {
				return err
			}
			return errUnhealthy
		},
	}
}

// verifyFile verifies a log. An error is one of the file.
func verifyFile(name string) (verifyRecord, error) {
	f, err := os.Open(name)
	if err != nil {
		return verifyRecord{}, err
	}
	defer f.Close()
	l, err := spec.ReadLog(f)
	if err != nil {
		return verifyRecord{}, fmt.Errorf("%s: %w", name, err)
	}
	r := verifyRecord{File: name, Slots: len(l.Records)}
	var illegal *spec.IllegalError
	if errors.As(spec.Verify(l), &illegal) {
		side := "host"
		if illegal.Record.Taken {
			side = "device"
		}
		r.Illegal = &illegalRecord{
			Index: illegal.Index, Mailbox: illegal.Record.Mailbox, Side: side, Slot: illegal.Record.Slot.String(),
			Why: illegal.Why, Before: illegal.Before, Allowed: illegal.Allowed,
		}
	}
	return r, nil
}

func (r verifyRecord) table(p *printer) {
	if r.Illegal == nil {
		fmt.Fprintf(p.w, "%d slots, all legal\n", r.Slots)
		return
	}
	i := r.Illegal
	fmt.Fprintf(p.w, "slot %d of %d is illegal: %s\n", i.Index, r.Slots, i.Why)
	fmt.Fprintf(p.w, "put by the %s in mailbox %d: %s\nbefore: %s\n", i.Side, i.Mailbox, i.Slot, i.Before)
	for _, row := range i.Allowed {
		fmt.Fprintf(p.w, "allowed: %s\n", row)
	}
}
