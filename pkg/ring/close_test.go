//go:build linux

package ring

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// TestCloseDuringFirstCall: a side that closes while its first call starts it has closed for the other side,
// and has not died.
func TestCloseDuringFirstCall(t *testing.T) {
	for _, c := range []struct {
		name  string
		close func(w *Writer, d *Reader) (*side, func(), func() error)
		end   func(w *Writer, d *Reader) error
		want  error
	}{
		{"writer", func(w *Writer, _ *Reader) (*side, func(), func() error) {
			return w.side, w.start, w.Close
		}, func(_ *Writer, d *Reader) error { _, err := d.Peek(t.Context()); return err }, EOF},
		{"reader", func(w *Writer, d *Reader) (*side, func(), func() error) {
			require.NoError(t, w.Write(t.Context(), []byte{1}))
			return d.side, func() { _, _ = d.take() }, d.Close
		}, func(w *Writer, _ *Reader) error { return w.Flush(t.Context()) }, ErrReaderClosed},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := create(t, Config{})
			w, err := r.Writer(t.Context())
			require.NoError(t, err)
			d, err := r.Reader(t.Context())
			require.NoError(t, err)
			s, first, closes := c.close(w, d)
			s.call.Lock()
			closed := make(chan error, 1)
			go func() { closed <- closes() }()
			var b [8]byte
			_, err = r.fds[s.role].Read(b[:]) // the close waits for the call
			require.NoError(t, err)
			first()
			s.call.Unlock()
			require.NoError(t, <-closed)
			require.ErrorIs(t, c.end(w, d), c.want)
		})
	}
}

// TestReaderAfterClose: a reader whose ring is closed before the reader starts leaves the heads of the next
// generation alone.
func TestReaderAfterClose(t *testing.T) {
	r := create(t, Config{})
	s, err := r.attach(t.Context(), roleReader)
	require.NoError(t, err)
	s.close()
	d := &Reader{side: s}
	require.ErrorIs(t, d.start(), ErrClosed)
	require.EqualValues(t, posInit, s.mine.pos.Load())
	require.EqualValues(t, statusInit, s.mine.status.Load())
}
