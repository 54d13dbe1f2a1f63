package control

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/nfcomms/nfcomms/pkg/control/proto/nfcomms/v1"
)

// TestHubResumes: whatever is put and removed, a watcher that resumes anywhere
// ends with the state of the hub, or gets an error that says to start anew.
func TestHubResumes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		h := newHub[int](true)
		view := make(map[string]int) // of the watcher
		at := int64(0)
		for range rapid.IntRange(0, 60).Draw(t, "steps") {
			key := fmt.Sprint(rapid.IntRange(0, 5).Draw(t, "key"))
			switch rapid.IntRange(0, 3).Draw(t, "what") {
			case 0, 1:
				h.put(key, rapid.Int().Draw(t, "value"))
			case 2:
				h.remove(key, 0)
			case 3:
				at = catchUp(t, h, view, at)
			}
		}
		catchUp(t, h, view, at)
		require.Equal(t, h.state, view)
		list, revision := h.snapshot()
		require.Equal(t, h.revision, revision)
		require.Len(t, list, len(h.state))
		require.True(t, slices.IsSortedFunc(list, func(a, b change[int]) int { return strings.Compare(a.key, b.key) }))
	})
}

// catchUp applies what happened since a revision.
func catchUp(t *rapid.T, h *hub[int], view map[string]int, at int64) int64 {
	list, now, err := h.resume(at)
	require.NoError(t, err)
	for _, c := range list {
		require.Equal(t, at+1, c.revision, "no change is left out")
		at = c.revision
		_, there := view[c.key]
		switch c.kind {
		case nfcommsv1.Change_CHANGE_DELETED:
			require.True(t, there)
			delete(view, c.key)
		default:
			require.Equal(t, there, c.kind == nfcommsv1.Change_CHANGE_UPDATED)
			view[c.key] = c.value
		}
	}
	require.Equal(t, now, at)
	return now
}

// TestHubForgets: the log is bounded, and a watcher that asks for more starts anew.
func TestHubForgets(t *testing.T) {
	h := newHub[int](false)
	for i := range 2*history + 5 {
		h.publish("k", func(revision int64) int { require.EqualValues(t, i+1, revision); return i })
	}
	require.Len(t, h.log, history)
	oldest := h.revision - history
	list, _, err := h.resume(oldest)
	require.NoError(t, err)
	require.Len(t, list, history)
	require.Equal(t, int(oldest), list[0].value)
	_, _, err = h.resume(oldest - 1)
	require.ErrorIs(t, err, ErrResumeExpired)
	for _, revision := range []int64{-1, h.revision + 1} {
		_, _, err = h.resume(revision)
		require.ErrorIs(t, err, ErrResumeToken)
	}
	kept, revision := h.snapshot()
	require.Equal(t, h.revision, revision)
	require.Len(t, kept, history)
	require.Equal(t, nfcommsv1.Change_CHANGE_SNAPSHOT, kept[0].kind)

	_, _, err = h.next(h.revision-11, 10)
	require.ErrorIs(t, err, ErrSlowWatcher)
	c, bell, err := h.next(h.revision-10, 10)
	require.NoError(t, err)
	require.Nil(t, bell)
	require.Equal(t, h.revision-9, c.revision)
	_, bell, err = h.next(h.revision, 10)
	require.NoError(t, err)
	h.publish("k", func(int64) int { return 0 })
	<-bell
}

// TestTokens: a token serves one kind, one scope and one session.
func TestTokens(t *testing.T) {
	a, b := session{1}, session{2}
	token := a.resumeToken(watchOfChannels, "nic0", 77)
	revision, err := a.revision(watchOfChannels, "nic0", token)
	require.NoError(t, err)
	require.EqualValues(t, 77, revision)
	_, err = b.revision(watchOfChannels, "nic0", token)
	require.ErrorIs(t, err, ErrResumeExpired)
	for name, err := range map[string]error{
		"kind":  second(a.revision(watchOfEvents, "nic0", token)),
		"scope": second(a.revision(watchOfChannels, "nic1", token)),
		"short": second(a.revision(watchOfChannels, "nic0", token[:8])),
		"page":  second(a.revision(watchOfChannels, "nic0", watchOfChannels.seal("nic0", []byte("x")))),
		"empty": second(a.revision(watchOfChannels, "nic0", "")),
	} {
		require.ErrorIs(t, err, ErrResumeToken, name)
	}
}

func second(_ int64, err error) error { return err }

// FuzzNamesAndTokens: no name and no token does harm, and a name that is
// accepted is the one that is written.
func FuzzNamesAndTokens(f *testing.F) {
	for _, s := range []string{
		"devices/nic0", "devices/-", "devices/nic0/channels/17", "devices/nic0/channels/2.0.1/1042", "devices/nic0/programs/a%2Fb",
		"devices/nic0/processes/3", "devices/nic0/processes/2.0.1/3", "AAAAAAAA", session{}.resumeToken(watchOfDevices, "", 1), "devices/nic0/channels/99999999999999999999",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		if id, err := parseDevice("name", s); err == nil {
			require.Equal(t, s, DeviceName(id))
		}
		if id, target, err := parseChannel("name", s); err == nil {
			require.Equal(t, s, ChannelName(id, target))
		}
		if id, node, process, err := parseProcess("name", s); err == nil {
			require.Equal(t, s, ProcessName(id, node, process))
		}
		if id, program, err := parseProgram("name", s); err == nil {
			again, same, err := parseProgram("name", ProgramName(id, program))
			require.NoError(t, err)
			require.Equal(t, id, again)
			require.Equal(t, program, same)
		}
		if raw, ok := watchOfDevices.open("", s); ok {
			require.Equal(t, s, watchOfDevices.seal("", raw))
		}
		if revision, err := (session{}).revision(watchOfDevices, "", s); err == nil {
			require.Equal(t, s, session{}.resumeToken(watchOfDevices, "", revision))
		}
	})
}

// numbered asks for a page.
type numbered struct {
	size  int32
	token string
}

func (n numbered) GetPageSize() int32   { return n.size }
func (n numbered) GetPageToken() string { return n.token }

// TestPagesHoldStill: items that are put and removed between two pages move no others.
func TestPagesHoldStill(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		items := make(map[string]bool)
		key := rapid.StringMatching(`[a-d]{1,3}`)
		for _, k := range rapid.SliceOf(key).Draw(t, "items") {
			items[k] = true
		}
		still := make(map[string]bool) // there all the time
		for k := range items {
			still[k] = true
		}
		var seen []string
		for token := ""; ; {
			sorted := make([]string, 0, len(items))
			for k := range items {
				sorted = append(sorted, k)
			}
			slices.Sort(sorted)
			size := rapid.Int32Range(1, 4).Draw(t, "size")
			got, next, err := page(pageOfEvents, "s", sorted, func(k string) string { return k }, numbered{size, token})
			require.NoError(t, err)
			require.LessOrEqual(t, len(got), int(size))
			seen = append(seen, got...)
			if token = next; token == "" {
				break
			}
			gone, come := key.Draw(t, "gone"), key.Draw(t, "come")
			delete(items, gone)
			delete(still, gone)
			items[come] = true
		}
		require.True(t, slices.IsSorted(seen))
		require.Len(t, slices.Compact(slices.Clone(seen)), len(seen), "no item comes twice")
		for k := range still {
			require.Contains(t, seen, k)
		}
	})
}

func TestPageSizes(t *testing.T) {
	items := make([]string, 2000)
	for i := range items {
		items[i] = fmt.Sprintf("%04d", i)
	}
	for size, want := range map[int32]int{0: 50, 1: 1, 1000: 1000, 5000: 1000} {
		got, next, err := page(pageOfEvents, "", items, func(s string) string { return s }, numbered{size: size})
		require.NoError(t, err)
		require.Len(t, got, want)
		require.NotEmpty(t, next)
	}
}

// TestWatchersShareSnapshots: what a thousand watchers have not read yet is in
// memory once, and stays as it was when something happens.
func TestWatchersShareSnapshots(t *testing.T) {
	for _, keep := range []bool{true, false} {
		h := newHub[int](keep)
		for i := range 10 {
			h.put(fmt.Sprint(i), i)
		}
		one, at := h.snapshot()
		two, _ := h.snapshot()
		require.Same(t, &one[0], &two[0])
		missed, _, err := h.resume(4)
		require.NoError(t, err)
		again, _, err := h.resume(4)
		require.NoError(t, err)
		require.Len(t, missed, 6)
		require.Same(t, &missed[0], &again[0])
		before := slices.Clone(one)
		h.put("5", 50)
		require.Equal(t, before, one)
		require.NotEqual(t, 50, missed[0].value)
		after, next := h.snapshot()
		require.Equal(t, at+1, next)
		require.NotSame(t, &one[0], &after[0])
	}
}
