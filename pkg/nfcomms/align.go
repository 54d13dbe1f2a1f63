package nfcomms

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/nfcomms/nfcomms/bridge"
	"github.com/nfcomms/nfcomms/bridge/abi"
	"github.com/nfcomms/nfcomms/internal/meter"
	"github.com/nfcomms/nfcomms/internal/stamp"
)

const (
	alignEvery = time.Second            // between two looks at the device's clock
	alignTime  = 100 * time.Millisecond // that one may take
	alignTrips = 16                     // of which the shortest counts
)

// clock is what is known of a device's clock.
type clock struct {
	mu    sync.Mutex // guards what follows, and the list of tracers
	clock stamp.Clock
	at    time.Time // when it was last asked

	// asking holds a token while somebody opens the channel to the time service.
	asking chan struct{}
}

// enter waits until nobody else opens the channel to the time service.
func (c *clock) enter(ctx context.Context) error {
	select {
	case c.asking <- struct{}{}:
		return nil
	case <-ctx.Done():
		return &WithdrawnError{Cause: ctx.Err()}
	}
}

// leave ends enter.
func (c *clock) leave() { <-c.asking }

func (c *clock) get() stamp.Clock {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.clock
}

// align asks the device's time service, unless it did lately. No error if the application holds that
// service: the clock is then as well known as before.
func (d *Device) align(ctx context.Context) error {
	d.clock.mu.Lock()
	if time.Since(d.clock.at) < alignEvery {
		d.clock.mu.Unlock()
		return nil
	}
	d.clock.at = time.Now() // nobody else asks meanwhile
	d.clock.mu.Unlock()
	found, err := behind(ctx, &d.late, func() (stamp.Clock, error) { return d.askTime(ctx) }, nil)
	if errors.Is(err, ErrBusy) || errors.Is(err, ErrNotSubscribed) {
		return nil
	}
	d.clock.mu.Lock()
	defer d.clock.mu.Unlock()
	if err != nil {
		d.clock.at = time.Time{}
		return err
	}
	d.clock.clock = found
	return nil
}

// askTime makes some round trips to the device's time service, and returns what the shortest says.
// A call that subscribes that service meanwhile waits for it.
func (d *Device) askTime(ctx context.Context) (best stamp.Clock, err error) {
	if err := d.clock.enter(ctx); err != nil {
		return best, err
	}
	defer d.clock.leave()
	ch, err := d.dev.Subscribe(ctx, abi.TargetTime)
	if err != nil {
		return best, err
	}
	defer ch.Close()
	for range alignTrips {
		c, err := tripForTime(ctx, ch)
		if err != nil && best.Known {
			return best, nil // there was no time for more
		}
		if err != nil {
			return best, err
		}
		if c.Known && (!best.Known || c.Error < best.Error) {
			best = c
		}
	}
	return best, nil
}

// tripForTime asks the time service once.
func tripForTime(ctx context.Context, ch bridge.Channel) (stamp.Clock, error) {
	const word = 8 // bytes: the host's clock is returned, then when the device took and answered it
	var buf [MessageSize]byte
	sent := meter.Now()
	err := ch.Send(ctx, buf[:word])
	if err != nil {
		return stamp.Clock{}, err
	}
	n, err := ch.Receive(ctx, buf[:])
	if err != nil {
		return stamp.Clock{}, err
	}
	if n != 3*word {
		return stamp.Clock{}, fmt.Errorf("time service answered with %d bytes: %w", n, ErrProtocol)
	}
	at := func(i int) uint64 { return binary.LittleEndian.Uint64(buf[i*word:]) }
	c, _ := stamp.Align(sent, meter.Now(), at(1), at(2))
	return c, nil
}
