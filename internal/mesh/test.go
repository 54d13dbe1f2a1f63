package mesh

import (
	"context"
	"fmt"
	"math"

	"github.com/nfcomms/nfcomms/bridge"
	"github.com/nfcomms/nfcomms/internal/firmware"
)

// Tested is the result of a test of a link: words of 128 bits that the other end
// checked, and those that were not as sent.
type Tested struct {
	Words, Wrong uint64
}

// TestMax bounds the words of one test: days at 28 Gbit/s.
const TestMax = math.MaxUint32 * firmware.MeshTestWords

// Test sends words of the self-test by a link, between packets, which it does not
// disturb, until the other end checked so many or ctx ends. The result is of what was
// checked, also with an error: that of ctx, bridge.ErrLinkDown if the link is not up
// or was not meanwhile, bridge.ErrBusy if it is being tested.
func (m *Mesh) Test(ctx context.Context, node, link int, words uint64) (t Tested, err error) {
	if words < 1 || words > TestMax {
		return t, fmt.Errorf("a test of %d words: %w: want 1..%d", words, bridge.ErrInvalid, uint64(TestMax))
	}
	if err := m.claimTest(node, link); err != nil {
		return t, err
	}
	defer m.endTest(node, link)
	before, err := m.upLink(node, link)
	if err != nil {
		return t, err
	}
	bursts := (words + firmware.MeshTestWords - 1) / firmware.MeshTestWords
	if err := m.sendTest(node, link, uint32(bursts)); err != nil {
		return t, err
	}
	err = m.poll(ctx, func() (bool, error) {
		now, err := m.upLink(node, link)
		if err == nil && now.Restarts != before.Restarts {
			err = fmt.Errorf("link %d of node %d restarted: %w", link, node, bridge.ErrLinkDown)
		}
		if err == nil {
			t = Tested{Words: now.Tested - before.Tested, Wrong: now.TestWrong - before.TestWrong}
		}
		return t.Words >= bursts*firmware.MeshTestWords, err
	})
	return t, err
}

// sendTest has a link send so many bursts.
func (m *Mesh) sendTest(node, link int, bursts uint32) error {
	return m.withLink(node, link, func(f *firmware.Mesh) { f.Test(node, link, bursts) })
}

// upLink is the state of a link, or bridge.ErrLinkDown.
func (m *Mesh) upLink(node, link int) (Link, error) {
	s, err := m.State(node)
	if err == nil && !s.Links[link].Up {
		err = fmt.Errorf("link %d of node %d: %w", link, node, bridge.ErrLinkDown)
	}
	return s.Links[link], err
}

// claimTest makes the caller the only tester of a link.
func (m *Mesh) claimTest(node, link int) error {
	if err := m.withLink(node, link, func(*firmware.Mesh) {}); err != nil {
		return err
	}
	m.testing.Lock()
	defer m.testing.Unlock()
	if m.tested[[2]int{node, link}] {
		return fmt.Errorf("link %d of node %d is being tested: %w", link, node, bridge.ErrBusy)
	}
	m.tested[[2]int{node, link}] = true
	return nil
}

// endTest sends no more words, and lets others test.
func (m *Mesh) endTest(node, link int) {
	m.testing.Lock()
	defer m.testing.Unlock()
	delete(m.tested, [2]int{node, link})
	_ = m.sendTest(node, link, 0) // a mesh that was closed sends none
}
