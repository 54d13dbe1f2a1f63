//go:build cgo

package proto_test

import (
	"flag"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/nfcomms/nfcomms/internal/proto"
	"github.com/nfcomms/nfcomms/internal/proto/talk"
)

// walkWhole is how many steps a walk has in which everything happens.
const walkWhole = 1_000_000

var (
	walkSteps = flag.Int("walk", walkWhole, "steps of TestWalk")
	walkSeed  = flag.Uint64("walk.seed", 1, "seed of TestWalk")
)

// TestWalk: whatever is said, the table and the core of the kernel module make the same of it.
func TestWalk(t *testing.T) {
	const batch = 5000
	w := talk.NewWalk(proto.Default(), *walkSeed)
	p := module(t)
	for done := 0; done < *walkSteps; done += batch {
		lines, texts := make([]talk.Line, batch), make([]string, batch)
		for i := range lines {
			lines[i] = w.Next()
			texts[i] = lines[i].Text
		}
		answers, err := p.Exchange(texts)
		require.NoError(t, err)
		for i, line := range lines {
			require.True(t, line.Agrees(answers[i]), "step %d (-walk.seed %d): %s is %q to the module, not %q; before:\n%v",
				done+i, *walkSeed, line.Text, answers[i], line.Answer, lines[max(0, i-12):i])
		}
	}
	for e, n := range w.Events {
		require.True(t, n > 0 || *walkSteps < walkWhole, "%v never came", proto.Event(e))
	}
	t.Logf("%d steps: %v", *walkSteps, w.Events)
}
