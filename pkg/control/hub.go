package control

import (
	"fmt"
	"maps"
	"slices"
	"sync"

	"github.com/nfcomms/nfcomms/pkg/control/proto/nfcomms/v1"
)

// history is the number of changes a hub keeps for those who resume.
const history = 4096

// change is one entry of a hub's log.
type change[T any] struct {
	kind     nfcommsv1.Change
	revision int64
	key      string
	value    T // never changed once it is here
}

// hub holds the last state of a kind of resource, and the changes that led to
// it. Writers never wait for watchers: each watcher reads the log at its own
// pace, and one that falls too far behind is cut off.
type hub[T any] struct {
	keep bool // without it there is no state but the log

	mu       sync.Mutex
	revision int64       // of the last change
	log      []change[T] // the last ones, revision r at r modulo history
	state    map[string]T
	shared   []change[T]   // what snapshot returned, while it is true; nobody changes it
	logged   []change[T]   // the same of the log
	bell     chan struct{} // closed and replaced by each change
}

// newHub returns an empty hub. With keep a snapshot is the state, without it
// the log.
func newHub[T any](keep bool) *hub[T] {
	return &hub[T]{keep: keep, state: make(map[string]T), bell: make(chan struct{})}
}

// put stores the new state of a resource.
func (h *hub[T]) put(key string, value T) {
	h.mu.Lock()
	defer h.mu.Unlock()
	kind := nfcommsv1.Change_CHANGE_CREATED
	if _, there := h.state[key]; there {
		kind = nfcommsv1.Change_CHANGE_UPDATED
	}
	h.state[key] = value
	h.appendLocked(kind, key, value)
}

// remove forgets a resource; value is its last state.
func (h *hub[T]) remove(key string, value T) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if _, there := h.state[key]; there {
		delete(h.state, key)
		h.appendLocked(nfcommsv1.Change_CHANGE_DELETED, key, value)
	}
}

// publish appends what make returns for the number it will have.
func (h *hub[T]) publish(key string, make func(revision int64) T) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.appendLocked(nfcommsv1.Change_CHANGE_CREATED, key, make(h.revision+1))
}

// appendLocked logs a change and wakes the watchers. Must hold mu.
func (h *hub[T]) appendLocked(kind nfcommsv1.Change, key string, value T) {
	h.revision++
	c := change[T]{kind, h.revision, key, value}
	if len(h.log) < history {
		h.log = append(h.log, c)
	} else {
		h.log[(h.revision-1)%history] = c
	}
	h.shared, h.logged = nil, nil
	close(h.bell)
	h.bell = make(chan struct{})
}

// sinceLocked returns the changes after a revision. All watchers that read between two changes
// share one copy of the log: there may be a thousand. Must hold mu; the changes must be in the log.
func (h *hub[T]) sinceLocked(revision int64) []change[T] {
	if h.logged == nil {
		h.logged = make([]change[T], 0, len(h.log))
		for r := h.revision - int64(len(h.log)) + 1; r <= h.revision; r++ {
			h.logged = append(h.logged, h.log[(r-1)%history])
		}
	}
	return slices.Clip(h.logged[len(h.logged)-int(h.revision-revision):])
}

// snapshot returns everything there is, in the order of keys or of the log, and
// the revision that it shows. Others may have the same list: it is not to be
// changed.
func (h *hub[T]) snapshot() ([]change[T], int64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.shared == nil && h.keep {
		h.shared = make([]change[T], 0, len(h.state))
		for _, key := range slices.Sorted(maps.Keys(h.state)) {
			h.shared = append(h.shared, change[T]{nfcommsv1.Change_CHANGE_SNAPSHOT, h.revision, key, h.state[key]})
		}
	} else if h.shared == nil {
		h.shared = slices.Clone(h.sinceLocked(h.revision - int64(len(h.log))))
		for i := range h.shared {
			h.shared[i].kind = nfcommsv1.Change_CHANGE_SNAPSHOT
		}
	}
	return slices.Clip(h.shared), h.revision
}

// resume returns what happened after a revision, and the revision it leads to.
func (h *hub[T]) resume(revision int64) ([]change[T], int64, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	switch oldest := h.revision - int64(len(h.log)); {
	case revision < 0 || revision > h.revision:
		return nil, 0, &FieldError{Field: "resume_token", Err: ErrResumeToken}
	case revision < oldest:
		return nil, 0, &FieldError{Field: "resume_token", Err: fmt.Errorf("%d changes since: %w", h.revision-revision, ErrResumeExpired)}
	}
	return h.sinceLocked(revision), h.revision, nil
}

// next returns the change after a revision, or, if there is none, a bell that
// closes with it. ErrSlowWatcher if more than limit changes were made since.
func (h *hub[T]) next(revision int64, limit int) (c change[T], bell <-chan struct{}, err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	switch behind := h.revision - revision; {
	case behind == 0:
		return c, h.bell, nil
	case behind > int64(limit):
		return c, nil, fmt.Errorf("%d changes behind, at most %d: %w", behind, limit, ErrSlowWatcher)
	}
	return h.log[revision%history], nil, nil
}

// changed returns a bell that closes with the next change.
func (h *hub[T]) changed() <-chan struct{} {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.bell
}
