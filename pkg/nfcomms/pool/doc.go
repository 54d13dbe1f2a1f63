// Package pool gives callers the processes of a device program, one exchange at a time.
//
// A service has more callers than processes. A [Pool] runs a number of processes of one program and
// gives each caller a process for one exchange: the process takes the input and answers.
//
//	p, err := pool.New(ctx, dev, pool.Options{
//		Images:    [][]byte{image},
//		Program:   nfcomms.Program{Name: "upper"},
//		Processes: 8,
//	})
//	…
//	defer p.Close()
//	n, err := p.Do(ctx, in, out)             // bytes
//	sum, err := pool.Call[Pair, uint64](ctx, p, Pair{1, 2}) // values
//
// No exchange is left half done. A caller that cancels leaves at once, and the pool takes the
// late answer before the next caller gets the process. A process that crashes, returns, breaks the rule
// of one answer or exceeds Options.Timeout is replaced. After a reset or a loss of the device all
// processes start again, and callers wait meanwhile.
//
// Callers that wait are served in order of arrival. Their number is bounded: one more gets ErrBusy.
//
// An error that is not [nfcomms.ErrUnanswered] means that no process took the input. Such an exchange is
// tried again on another process, unless the input itself is the reason.
//
// Package metrics has a collector of pools.
package pool
