package peers

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/nfcomms/nfcomms/bench/internal/cli"
	"github.com/nfcomms/nfcomms/bench/internal/compare"
	"github.com/nfcomms/nfcomms/pkg/nfcomms"
)

// nameIceoryx2 is the library that memory which is given away stands beside.
const nameIceoryx2 = "iceoryx2"

// giftSides are the contenders beside those of each size: memcpy, the echo, and its limit.
const giftSides = 3

// compareGifts compares memory that goes to another process and back with the echo of a message.
func (r *Report) compareGifts(ctx context.Context, dev *nfcomms.Device, o options, sizes []int, b beside, bar cli.Progress) error {
	g, err := compare.StartGifts(ctx, dev)
	if err != nil {
		return err
	}
	memcpy := compare.NewMemcpy(compare.SmallMemcpy) // tells whether the machine is quiet
	t := &compare.Comparison{Contenders: append([]*compare.Contender{memcpy, g.Echo()}, b.limits.Line(true)...)}
	for _, size := range sizes {
		if err == nil {
			err = t.LineUp(func() (*compare.Contender, error) { return g.Gift(size) })
		}
		t.Contenders = append(t.Contenders, b.others.InPlace(size)...)
	}
	if err == nil {
		err = t.Play(ctx, o.rounds, o.slice, func(s string) { bar.Step("given away, " + s) })
	}
	if err = errors.Join(err, t.Close(), g.Close()); err != nil {
		return err
	}
	r.busy = cmp.Or(r.busy, t.Busy)
	r.Gifts, r.NotMeasured = rows(t, compare.NameHosts, lines), append(r.NotMeasured, t.Failed...)
	for _, size := range sizes {
		r.Goals = append(r.Goals, giftGoals(t, size)...)
	}
	return nil
}

// giftGoals decides T19 at one size.
func giftGoals(t *compare.Comparison, size int) []cli.Goal {
	gift, other, missing := compare.NameGift(size), compare.NameInPlace(nameIceoryx2, size), t.Busy
	if t.Find(other) == nil {
		missing = "there is no " + nameIceoryx2
	}
	what := fmt.Sprintf("%s to another process in place, and an answer", cli.SizeText(size))
	return []cli.Goal{
		cli.Goal{ID: "T19", What: what + " : 56 B and its echo, time",
			Value: t.Ratio(gift, compare.NameHosts).Median, Target: 1.5, AtMost: true}.Decide(t.Busy),
		cli.Goal{ID: "T19", What: what + " : " + nameIceoryx2 + "'s, time",
			Value: t.Ratio(gift, other).Median, Target: 0.6, AtMost: true}.Decide(missing),
	}
}
