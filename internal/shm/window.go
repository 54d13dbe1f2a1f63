//go:build linux

package shm

import (
	"context"
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"

	"github.com/nfcomms/nfcomms/bridge"
	"github.com/nfcomms/nfcomms/internal/shmwire"
)

// hostWindow is memory of this process that the device process lets others reach.
type hostWindow struct {
	torus  *torus
	link   *link // that it was made over
	remote bridge.FabricWindow
}

// Window makes memory of this process a window of the device process's node.
func (t *torus) Window(ctx context.Context, mem []byte, access bridge.WindowAccess) (bridge.HostWindow, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	l := t.port.linked()
	var remote bridge.FabricWindow
	var err error
	t.reaching(l, func() error {
		remote, err = t.port.window(l, mem, access)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("window of %d bytes: %w", len(mem), err)
	}
	return &hostWindow{t, l, remote}, nil
}

// window has the device process reach memory of Alloc for others. No lock is held while the device
// answers.
func (p *port) window(l *link, mem []byte, access bridge.WindowAccess) (bridge.FabricWindow, error) {
	fd, offset, err := p.File(mem)
	if err != nil {
		return bridge.FabricWindow{}, err
	}
	defer unix.Close(fd)
	ask := shmwire.Message{Kind: shmwire.Window, Address: offset, Size: uint64(len(mem)), Epoch: uint32(access)}
	answer, _, err := l.request(&ask, 0, fd)
	if err != nil {
		return bridge.FabricWindow{}, err
	}
	node, ok := shmwire.NodeOf(answer.Size)
	if !ok {
		return bridge.FabricWindow{}, fmt.Errorf("%w: a window of no node: %w", bridge.ErrDeviceLost, shmwire.ErrForeign)
	}
	return bridge.FabricWindow{Node: node, Key: answer.Address}, nil
}

// Remote returns what others need to know of it.
func (w *hostWindow) Remote() bridge.FabricWindow { return w.remote }

// Revoke has the device process forget it. One that does not answer is lost, and keeps a copy of
// the memory.
func (w *hostWindow) Revoke() {
	w.torus.reaching(w.link, func() error {
		return w.link.ask(&shmwire.Message{Kind: shmwire.Revoke, Address: w.remote.Key})
	})
}

// reaching makes a request about memory. One that was not answered ends the device, whose process may go
// on and touch memory as if it had been: no call uses that memory any more before it is covered.
func (t *torus) reaching(l *link, request func() error) {
	t.device.Ask(func() (lost error) {
		if err := request(); errors.Is(err, os.ErrDeadlineExceeded) {
			lost = err
		}
		return lost
	})
	if l.isSilent() {
		l.covering.Do(t.port.Cover)
	}
}
