package control

import (
	"context"

	"github.com/nfcomms/nfcomms/pkg/control/proto/nfcomms/v1"
)

// watch is one stream of changes to one client.
type watch[T any] struct {
	s     *Server
	hub   *hub[T]
	kind  tokenKind
	scope string
	// wants reports which changes belong to the scope.
	wants func(key string) bool
	// send gives the client one message; a nil value is sent with SYNCED.
	send func(c change[T], token string) error

	backlog []change[T] // still to be sent before the log
	synced  bool        // SYNCED was sent
	at      int64       // revision of the last change that was handed to send
}

// run streams a snapshot, or what was missed since the token, then SYNCED, then
// changes, until the client leaves, is cut off, or the server shuts down.
//
// A client that stops reading blocks send, so that send has a goroutine of its
// own. It ends with the stream, which is over as soon as run has returned.
func (w *watch[T]) run(ctx context.Context, token string) error {
	if err := w.begin(token); err != nil {
		return err
	}
	out, failed := make(chan change[T]), make(chan error, 1)
	sending := w.s.background.spawn(func() {
		for c := range out {
			if err := w.send(c, w.token(c)); err != nil {
				failed <- err
				return
			}
		}
	})
	if !sending {
		return ErrShutdown
	}
	defer close(out)
	for {
		c, bell, err := w.pull()
		if err != nil {
			return err
		}
		to := out
		if bell != nil {
			to = nil
		} else {
			bell = w.hub.changed()
		}
		select {
		case to <- c:
			w.taken(c)
		case <-bell:
		case err := <-failed:
			return err
		case <-ctx.Done():
			return ctx.Err()
		case <-w.s.done:
			return ErrShutdown
		}
	}
}

// begin fills the backlog.
func (w *watch[T]) begin(token string) (err error) {
	if token == "" {
		w.backlog, w.at = w.hub.snapshot()
		return nil
	}
	revision, err := w.s.session.revision(w.kind, w.scope, token)
	if err != nil {
		return err
	}
	w.backlog, w.at, err = w.hub.resume(revision)
	return err
}

// pull returns what to send next, or the bell to wait for. It does not count
// the backlog as being behind, but what happens meanwhile.
func (w *watch[T]) pull() (change[T], <-chan struct{}, error) {
	for len(w.backlog) > 0 && !w.wants(w.backlog[0].key) {
		w.backlog = w.backlog[1:]
	}
	for {
		c, bell, err := w.hub.next(w.at, w.s.opt.WatchBuffer)
		switch {
		case err != nil:
			return c, nil, err
		case len(w.backlog) > 0:
			return w.backlog[0], nil, nil
		case !w.synced:
			return change[T]{kind: nfcommsv1.Change_CHANGE_SYNCED, revision: w.at}, nil, nil
		case bell != nil || w.wants(c.key):
			return c, bell, nil
		}
		w.at = c.revision
	}
}

// taken notes that a change was handed to send.
func (w *watch[T]) taken(c change[T]) {
	switch {
	case len(w.backlog) > 0:
		w.backlog = w.backlog[1:]
	case !w.synced:
		w.synced = true
	default:
		w.at = c.revision
	}
}

// token resumes after a change; a snapshot cannot be resumed.
func (w *watch[T]) token(c change[T]) string {
	if c.kind == nfcommsv1.Change_CHANGE_SNAPSHOT {
		return ""
	}
	return w.s.session.resumeToken(w.kind, w.scope, c.revision)
}
