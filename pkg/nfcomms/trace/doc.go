// Package trace measures calls of a device layer by layer: how long a message waited for its
// target, how long bytes moved, how long the caller took to wake.
//
//	t, err := trace.Start(ctx, dev, trace.Options{Every: 1})
//	…
//	defer t.Close()
//	err = ch.SendInd(ctx, samples)
//	for _, w := range t.Take(ctx).Waterfalls() {
//		fmt.Println(w.Op, w.Whole.P50, w.Dominant().Layer)
//	}
//
// While nobody traces a device that costs nothing.
package trace
