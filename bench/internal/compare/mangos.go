package compare

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"sync"
	"time"

	"go.nanomsg.org/mangos/v3"
	"go.nanomsg.org/mangos/v3/protocol/pair"
	_ "go.nanomsg.org/mangos/v3/transport/ipc" // the only transport that is used
)

// The mangos peer: two pair sockets of the Scalability Protocols over a UNIX socket.
// One sends each message back, the other answers it with a word.
var mangosSockets = map[int]string{WireEcho: "mangos-echo.sock", WireTake: "mangos-take.sock"}

// openMangos makes a pair socket that takes messages of any size.
func openMangos() (mangos.Socket, error) {
	s, err := pair.NewSocket()
	if err != nil {
		return nil, fmt.Errorf("mangos: %w", err)
	}
	if err := s.SetOption(mangos.OptionMaxRecvSize, 0); err != nil {
		return nil, errors.Join(fmt.Errorf("mangos: %w", err), s.Close())
	}
	return s, nil
}

// mangosServer is the child's end.
type mangosServer map[int]mangos.Socket

func listenMangos(dir string) (mangosServer, error) {
	m := make(mangosServer)
	for op, name := range mangosSockets {
		s, err := openMangos()
		if err == nil {
			m[op] = s
			err = s.Listen("ipc://" + filepath.Join(dir, name))
		}
		if err != nil {
			return nil, errors.Join(err, m.Close())
		}
	}
	return m, nil
}

// serve answers until the sockets are closed.
func (m mangosServer) serve() error {
	var wg sync.WaitGroup
	errs := make([]error, 0, len(m))
	var mu sync.Mutex
	for op, s := range m {
		wg.Go(func() {
			if err := serveMangos(s, op); !errors.Is(err, mangos.ErrClosed) {
				mu.Lock()
				errs = append(errs, err)
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	return errors.Join(errs...)
}

func serveMangos(s mangos.Socket, op int) error {
	var word [8]byte
	for {
		msg, err := s.RecvMsg()
		if err != nil {
			return err
		}
		if op == WireTake {
			msg.Free()
			msg = mangos.NewMessage(len(word))
			msg.Body = append(msg.Body, word[:]...)
		}
		if err := s.SendMsg(msg); err != nil {
			return err
		}
	}
}

func (m mangosServer) Close() error {
	var errs []error
	for _, s := range m {
		errs = append(errs, s.Close())
	}
	return errors.Join(errs...)
}

// NewMangos exchanges with the other process over mangos.
func NewMangos(c *Child, op, size, batch int) (*Contender, error) {
	s, err := openMangos()
	if err != nil {
		return nil, err
	}
	if err := s.Dial("ipc://" + filepath.Join(c.dir, mangosSockets[op])); err != nil {
		return nil, errors.Join(fmt.Errorf("mangos: %w", err), s.Close())
	}
	data := Buffer(size)
	exchange := func(n int) error {
		for range n {
			msg := mangos.NewMessage(size)
			msg.Body = append(msg.Body, data...)
			if err := s.SendMsg(msg); err != nil {
				return fmt.Errorf("send to mangos peer: %w", err)
			}
			answer, err := s.RecvMsg()
			if err != nil {
				return fmt.Errorf("receive from mangos peer: %w", err)
			}
			answer.Free()
		}
		return nil
	}
	return &Contender{
		Name: NameMangos, Does: doesOf(op), Size: size, Batch: batch, CPU: c.CPU, Close: s.Close,
		Run: func(_ context.Context, n int) (time.Duration, error) {
			return Timed(func() error { return exchange(n) })
		},
	}, nil
}
