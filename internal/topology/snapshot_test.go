package topology

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/nfcomms/nfcomms/bridge/abi"
)

const well = abi.Diagnostic(1 << 31)

func sample() *Snapshot {
	s := &Snapshot{Torus: Torus{3, 2, 1}, Nodes: make([]NodeState, 6)}
	for i := range s.Nodes {
		s.Nodes[i].Word = well
	}
	s.Nodes[0].Word |= abi.Diagnostic(abi.Broken) << abi.DiagXPlus // as 1 says, too
	s.Nodes[1].Word |= abi.Diagnostic(abi.Broken) << abi.DiagXMinus
	s.Nodes[2].Word |= abi.Diagnostic(abi.Sick) << abi.DiagTemperature
	s.Nodes[2].Name = "hot & high"
	s.Nodes[4].Word = 0
	s.Nodes[3].Links[XPlus] = LinkState{BytesPerSecond: 12.5e6, Errors: 3, Repeats: 4}
	s.Routes = []Route{
		{From: 0, To: abi.MakeNode(1, 0, 0), Hops: []Hop{{YPlus, true}, {XPlus, true}, {YPlus, true}}},
		{From: 0, To: abi.MakeNode(1, 1, 0)},
	}
	return s
}

func TestText(t *testing.T) {
	var b bytes.Buffer
	require.NoError(t, sample().Text(&b))
	require.Equal(t, `      0    1    2
   0  o xx o -- s --
      |    |    |
   1  o -- ? -- o --
      |    |    |
o normal  s sick  X broken  ? unknown; links -- normal, ~~ sick, xx broken, .. unknown
link 0.0.0 x+ to 1.0.0: broken
node 2.0.0 (hot & high): sick
link 0.1.0 x+ to 1.1.0: normal, 12.5 MB/s, 3 errors, 4 packets repeated
node 1.1.0: unknown
0.0.0 to 1.0.0: 3 hops: y+* x+* y+*
0.0.0 to 1.1.0: no way
`, b.String())
}

// TestDeadNode: one that no neighbour reaches is broken, whatever it said last.
func TestDeadNode(t *testing.T) {
	s := &Snapshot{Torus: Torus{3, 1, 1}, Nodes: make([]NodeState, 3)}
	for i := range s.Nodes {
		s.Nodes[i].Word = well
	}
	s.Nodes[0].Word |= abi.Diagnostic(abi.Broken) << abi.DiagXPlus
	s.Nodes[2].Word |= abi.Diagnostic(abi.Broken) << abi.DiagXMinus
	require.Equal(t, Broken, s.StateOf(s.Torus.Node(1)))
	require.Equal(t, Normal, s.StateOf(s.Torus.Node(0)))
}

func TestDiagnose(t *testing.T) {
	require.Empty(t, Diagnose(well))
	require.Equal(t, []string{"temperature sick", "link x+ broken", "link z- broken"},
		Diagnose(well|abi.Diagnostic(abi.Sick)<<abi.DiagTemperature|abi.Diagnostic(abi.Broken)<<abi.DiagXPlus|3<<abi.DiagZMinus))
}
