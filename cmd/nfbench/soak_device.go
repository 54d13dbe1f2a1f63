//go:build linux

package main

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/nfcomms/nfcomms/pkg/nfcomms"
)

// soakExchange sends what follows from a seed there and back.
type soakExchange struct {
	job       *soakJob
	ch        *nfcomms.Channel
	chance    *rand.Rand
	sent, got []byte
}

// soakTransfer bounds a transfer.
const soakTransfer = 256 << 10

func newSoakExchange(j *soakJob, ch *nfcomms.Channel) *soakExchange {
	return &soakExchange{
		job: j, ch: ch, chance: rand.New(rand.NewPCG(j.Seed, 1)), sent: make([]byte, soakTransfer), got: make([]byte, soakTransfer),
	}
}

// next makes exchange number n: its size, and what is wrong with what came back.
func (e *soakExchange) next(ctx context.Context, n uint64) (size int, wrong string, err error) {
	direct := e.chance.IntN(4) > 0
	size = e.chance.IntN(messageSize + 1)
	if !direct {
		size = 1 + e.chance.IntN(soakTransfer)
	}
	sent, got := e.sent[:size], e.got[:size]
	fillPattern(sent, e.job.Seed<<20+n)
	clear(got)
	if direct {
		err = e.message(ctx, sent, got)
	} else if err = e.ch.SendInd(ctx, sent, size); err == nil {
		_, err = e.ch.ReceiveInd(ctx, got, size)
	}
	if err != nil {
		return 0, "", err
	}
	if e.job.Spoil > 0 && n%e.job.Spoil == e.job.Spoil-1 && size > 0 {
		got[size/2]++
	}
	if !bytes.Equal(sent, got) {
		return 0, fmt.Sprintf("exchange %d of %d bytes came back changed", n, size), nil
	}
	return size, "", nil
}

func (e *soakExchange) message(ctx context.Context, sent, got []byte) error {
	if err := e.ch.Send(ctx, sent); err != nil {
		return err
	}
	n, err := e.ch.Receive(ctx, got)
	if err == nil && n != len(got) {
		err = fmt.Errorf("a message of %d bytes came back with %d", len(got), n)
	}
	return err
}

// soakedDevice soaks a device with processes.
type soakedDevice struct {
	o       *soakOptions
	address string
}

// round lets the clients go, kills one, lets the others go on, and asks them to end.
func (s *soakedDevice) round(ctx context.Context, b *SoakBooks, chance *rand.Rand, length time.Duration) error {
	var clients []*soakProcess
	defer func() {
		for _, p := range clients {
			p.leave()
		}
	}()
	for i := range s.o.clients {
		j := soakJob{Address: s.address, Seed: b.Seed + b.Rounds*64 + uint64(i), Spoil: s.o.spoil}
		p, err := startSoak(soakClientCommand, j)
		if err != nil {
			return err
		}
		clients = append(clients, p)
	}
	for _, p := range clients {
		if err := p.ready(); err != nil {
			return fmt.Errorf("client: %w", err)
		}
	}
	soakSleep(ctx, length/2)
	victim := chance.IntN(len(clients))
	clients[victim].kill()
	b.fault("client killed")
	soakSleep(ctx, length/2)
	for i, p := range clients {
		if i != victim {
			p.ask()
		}
	}
	for i, p := range clients {
		if i == victim {
			continue
		}
		end, err := p.end()
		b.Operations += end.Operations
		b.Bytes += end.Bytes
		switch {
		case err != nil:
			b.wrong("client %d: %v", i, err)
		case end.Wrong != "":
			b.wrong("client %d: %s", i, end.Wrong)
		case end.Why != soakAsked:
			b.wrong("client %d: %s", i, end.Why)
		}
	}
	return nil
}

// soakSleep passes time, less if the user interrupts.
func soakSleep(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}
