package group

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// A model of the complete pairwise exchange without any buffer: a frame moves only
// when its sender and its receiver are both there. A member is in a round, and has
// sent and received in it or not; it continues when it has done both.
type cpexModel struct {
	n int
	// sendFirst: a member receives only once it has sent. That is how MPI_Send and
	// MPI_Recv in turn would be; the algorithm does both at once.
	sendFirst bool
	seen      map[cpexState]bool
	stuck     int
}

type cpexState [8]struct{ round, done uint8 }

const cpexSent, cpexReceived = 1, 2

// moves returns the states that follow, one frame on.
func (m *cpexModel) moves(s cpexState) []cpexState {
	var next []cpexState
	for i := range m.n {
		if int(s[i].round) == m.n || s[i].done&cpexSent != 0 {
			continue
		}
		to, _ := pairing(i, m.n, int(s[i].round))
		ready := int(s[to].round) < m.n && s[to].done&cpexReceived == 0 && (!m.sendFirst || s[to].done&cpexSent != 0)
		if !ready {
			continue
		}
		if _, from := pairing(to, m.n, int(s[to].round)); from != i || s[to].round != s[i].round {
			continue
		}
		t := s
		t[i].done |= cpexSent
		t[to].done |= cpexReceived
		for _, k := range []int{i, to} {
			if t[k].done == cpexSent|cpexReceived {
				t[k].round++
				t[k].done = 0
			}
		}
		next = append(next, t)
	}
	return next
}

// explore visits every state that any schedule reaches.
func (m *cpexModel) explore() {
	var start cpexState
	for i := range m.n {
		start[i].round = 1
	}
	m.seen = map[cpexState]bool{start: true}
	for todo := []cpexState{start}; len(todo) > 0; {
		s := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		next := m.moves(s)
		if len(next) == 0 && !m.finished(s) {
			m.stuck++
		}
		for _, t := range next {
			if !m.seen[t] {
				m.seen[t] = true
				todo = append(todo, t)
			}
		}
	}
}

func (m *cpexModel) finished(s cpexState) bool {
	for i := range m.n {
		if int(s[i].round) < m.n {
			return false
		}
	}
	return true
}

// TestCPEXHasNoDeadlock: no schedule of up to eight members gets stuck, although
// nothing is buffered; members who sent before they receive would.
func TestCPEXHasNoDeadlock(t *testing.T) {
	for n := 2; n <= 8; n++ {
		m := cpexModel{n: n}
		m.explore()
		require.Zero(t, m.stuck, "%d members", n)
		require.Greater(t, len(m.seen), n)
		t.Logf("%d members: %d states", n, len(m.seen))
		first := cpexModel{n: n, sendFirst: true}
		first.explore()
		require.Positive(t, first.stuck, "the model finds a deadlock of %d members", n)
	}
}

// TestPairing: in the rounds together each member meets each other once, and its partner expects
// it.
func TestPairing(t *testing.T) {
	for n := 2; n <= 64; n++ {
		for rank := range n {
			met := make([]bool, n)
			for round := 1; round < n; round++ {
				to, from := pairing(rank, n, round)
				require.NotEqual(t, rank, to)
				require.False(t, met[to])
				met[to] = true
				_, back := pairing(to, n, round)
				require.Equal(t, rank, back)
				ahead, _ := pairing(from, n, round)
				require.Equal(t, rank, ahead)
				if n&(n-1) == 0 {
					require.Equal(t, to, from, "a power of two pairs off")
				}
			}
		}
	}
}
