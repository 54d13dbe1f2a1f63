package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/nfcomms/nfcomms/internal/dmaloop"
	"github.com/nfcomms/nfcomms/internal/units"
	"github.com/nfcomms/nfcomms/pkg/control"
	"github.com/nfcomms/nfcomms/pkg/nfcomms"
)

// selftestRecord is the output of nfctl selftest.
type selftestRecord struct {
	Device string          `json:"device" doc:"address of the device"`
	Kind   string          `json:"kind" doc:"kind of the device that the figures are of: simulated, emulated or hardware"`
	Passed bool            `json:"passed" doc:"true if every variant passed"`
	Loops  []variantRecord `json:"loops" doc:"the variants, in the order in which they ran"`
}

// variantRecord is the result of one variant.
type variantRecord struct {
	Variant   string  `json:"variant" doc:"synchronous, overlapped (blocking calls) or futures"`
	Passed    bool    `json:"passed" doc:"true if every byte returned as it was sent"`
	Failure   string  `json:"failure" doc:"the error; empty if none"`
	Transfers int     `json:"transfers" doc:"transfers there, and as many back"`
	Bytes     int64   `json:"bytes" doc:"bytes there, and as many back"`
	Seconds   float64 `json:"took_seconds" doc:"how long it took"`
	Rate      float64 `json:"bytes_per_second" doc:"bytes of both ways for each second"`
}

func newSelftest(a *app) *cobra.Command {
	o := dmaloop.Options{Size: 1 << 20}
	cmd := &cobra.Command{
		Use: "selftest", GroupID: groupLook,
		Short: "Send sequence numbers through a device and back, and compare them",
		Long: `Send sequence numbers through a device and back, and compare every byte: one
transfer at a time, several blocking calls at once, and futures. The device is
that of --device, which must not be in use: bulk data does not pass a server.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			switch {
			case a.device == "":
				return usagef("name a device with --device: bulk data does not pass a server")
			case o.Size < 8 || o.Size > 1<<30 || o.Size%8 != 0:
				return usagef("--size %d is not a multiple of 8 up to 1 GiB", o.Size)
			case o.Transfers < 1 || o.Depth < 1 || o.Depth > 64:
				return usagef("--transfers must be positive, and --depth 1 to 64")
			}
			ctx, cancel := a.limited(cmd.Context())
			defer cancel()
			return a.selftest(ctx, o)
		},
	}
	cmd.Flags().Var(units.Flag{N: &o.Size}, "size", "size of a transfer, a multiple of 8 bytes up to 1 GiB")
	cmd.Flags().IntVar(&o.Transfers, "transfers", 64, "transfers in each direction")
	cmd.Flags().IntVar(&o.Depth, "depth", 4, "transfers at once, where they overlap")
	return cmd
}

// selftest runs all variants, also those after one that failed, unless ctx ended.
func (a *app) selftest(ctx context.Context, o dmaloop.Options) error {
	dev, err := nfcomms.Open(ctx, a.device)
	if err != nil {
		return fmt.Errorf("%w: %w", control.ErrNotOpen, err)
	}
	r := selftestRecord{Device: a.device, Kind: dev.Info().Kind(), Passed: true, Loops: []variantRecord{}}
	for v := range dmaloop.Variants {
		one, err := dmaloop.Run(ctx, dev, v, o)
		if ctx.Err() != nil {
			return errors.Join(ctx.Err(), dev.Close())
		}
		r.Passed = r.Passed && err == nil
		r.Loops = append(r.Loops, variantOf(v, one, err))
	}
	if err = errors.Join(a.print(r), dev.Close()); err == nil && !r.Passed {
		err = errUnhealthy
	}
	return err
}

func variantOf(v dmaloop.Variant, r dmaloop.Result, err error) variantRecord {
	if err != nil {
		return variantRecord{Variant: v.String(), Failure: err.Error()}
	}
	return variantRecord{
		Variant: v.String(), Passed: true, Transfers: r.Transfers, Bytes: r.Bytes, Seconds: r.Took.Seconds(), Rate: r.Rate(),
	}
}

func (r selftestRecord) table(p *printer) {
	writeTable(p, []column[variantRecord]{
		{title: "VARIANT", cell: func(x variantRecord) string { return x.Variant }},
		{title: "RESULT", cell: func(x variantRecord) string { return x.result() }, tint: func(x variantRecord) tint { return x.tint() }},
		{title: "BYTES EACH WAY", right: true, cell: func(x variantRecord) string { return units.Bytes(float64(x.Bytes)) }},
		{title: "TOOK", right: true, cell: func(x variantRecord) string { return secondsText(&x.Seconds) }},
		{title: "BOTH WAYS, " + strings.ToUpper(r.Kind), right: true, cell: func(x variantRecord) string { return units.Bytes(x.Rate) + "/s" }},
		{title: "FAILURE", cell: func(x variantRecord) string { return x.Failure }, tint: func(variantRecord) tint { return bad }},
	}, r.Loops)
}

func (x variantRecord) result() string {
	if x.Passed {
		return "pass"
	}
	return "fail"
}

func (x variantRecord) tint() tint {
	if x.Passed {
		return good
	}
	return bad
}
