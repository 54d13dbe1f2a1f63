//go:build linux

package soak

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/nfcomms/nfcomms/bench/internal/compare"
	"github.com/nfcomms/nfcomms/pkg/nfcomms"
)

// soakTransfer bounds a transfer.
const soakTransfer = 256 << 10

func newSoakClient() *cobra.Command { return soakCommand(soakClientCommand, soakClient) }

// soakClient exchanges messages and transfers with programs of a device until it is
// asked to end, or is in a state until it is killed.
func soakClient(ctx context.Context, j *soakJob, ready func(), asked <-chan struct{}) (end soakEnd) {
	dev, err := nfcomms.Open(ctx, j.Address)
	if err != nil {
		return soakEnd{Why: err.Error()}
	}
	defer dev.Close()
	if j.State != "" {
		return soakVictim(ctx, dev, j, ready, asked)
	}
	e := newSoakExchange(j, dev, soakTransfer)
	if err := e.begin(ctx); err != nil {
		return soakEnd{Why: err.Error()}
	}
	ready()
	return e.run(ctx, asked)
}

// soakExchange sends what follows from a seed there and back, and to a program that
// counts what it takes.
type soakExchange struct {
	job       *soakJob
	dev       *nfcomms.Device
	chance    *rand.Rand
	sent, got []byte
	end       soakEnd
	heard     func()       // the device was lost; nil: nobody asks
	far       *soakedJoint // by which the programs are reached; nil: they are the device's own

	loop, sink *compare.Program
	messages   uint64 // that the sink took, of this epoch of the device
	bytes      uint64
}

// newSoakExchange makes one whose transfers are so many bytes long at most.
func newSoakExchange(j *soakJob, dev *nfcomms.Device, most int) *soakExchange {
	return &soakExchange{job: j, dev: dev, chance: rand.New(rand.NewPCG(j.Seed, 1)), sent: make([]byte, most), got: make([]byte, most)}
}

// begin starts the programs, at first and after the device was lost.
func (e *soakExchange) begin(ctx context.Context) (err error) {
	e.messages, e.bytes = 0, 0
	if e.loop, err = e.start(ctx, "loopback"); err == nil {
		e.sink, err = e.start(ctx, "sink")
	}
	return err
}

func (e *soakExchange) start(ctx context.Context, name string) (*compare.Program, error) {
	if e.far != nil {
		return e.far.start(ctx, name)
	}
	return compare.Start(ctx, e.dev, name, 1)
}

// reset makes the device anew, or ends what is left of a joint: those who exchange with its
// nodes make these anew.
func (e *soakExchange) reset(ctx context.Context) error {
	if e.far == nil {
		return e.dev.Reset(ctx)
	}
	for _, p := range []*compare.Program{e.loop, e.sink} {
		if p != nil {
			_ = p.Stop(ctx) // it is lost, or ended
		}
	}
	e.loop, e.sink = nil, nil
	return nil
}

// lost reports whether an error means that what it exchanged with is gone.
func (e *soakExchange) lost(err error) bool {
	return isLost(err) || e.far != nil && isJointLost(err)
}

// run exchanges until it is asked to end.
func (e *soakExchange) run(ctx context.Context, asked <-chan struct{}) soakEnd {
	for e.end.Why == "" {
		select {
		case <-asked:
			e.end.Why = soakAsked
		default:
			e.step(ctx)
		}
	}
	return e.close(ctx)
}

// soakAudit is after how many exchanges the two ledgers are compared.
const soakAudit = 64

// step makes one exchange, and adds its result to end.
func (e *soakExchange) step(ctx context.Context) {
	n, wrong, err := e.next(ctx)
	if err == nil && wrong == "" && e.end.Operations%soakAudit == soakAudit-1 {
		wrong, err = e.audit(ctx)
	}
	switch {
	case wrong != "":
		e.end.Wrong, e.end.Why = wrong, soakAsked
	case err != nil && e.job.Mortal && e.lost(err):
		if err := e.again(ctx); err != nil {
			e.end.Why = err.Error()
		}
	case err != nil:
		e.end.Why = err.Error()
	default:
		e.end.Operations++
		e.end.Bytes += uint64(n)
	}
}

// next makes an exchange: its size, and what is wrong with what came back.
func (e *soakExchange) next(ctx context.Context) (size int, wrong string, err error) {
	n := e.end.Operations
	direct := e.chance.IntN(4) > 0
	size = e.chance.IntN(compare.MessageSize + 1)
	if !direct {
		size = 1 + e.chance.IntN(len(e.sent))
	}
	sent, got := e.sent[:size], e.got[:size]
	compare.FillPattern(sent, e.job.Seed<<20+n)
	if e.chance.IntN(4) == 0 {
		return size, "", e.give(ctx, sent, direct)
	}
	clear(got)
	if ch := e.loop.Chans[0]; direct {
		err = soakMessage(ctx, ch, sent, got)
	} else if err = ch.SendInd(ctx, sent, size); err == nil {
		_, err = ch.ReceiveInd(ctx, got, size)
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

// give hands a message or a transfer to the sink.
func (e *soakExchange) give(ctx context.Context, data []byte, direct bool) (err error) {
	if direct {
		err = e.sink.Chans[0].Send(ctx, data)
	} else {
		err = e.sink.Chans[0].SendInd(ctx, data, len(data))
	}
	switch {
	case err != nil:
	case direct:
		e.messages++
	default:
		e.bytes += uint64(len(data))
	}
	return err
}

// audit asks the sink what it took: that, and no more, was given.
func (e *soakExchange) audit(ctx context.Context) (wrong string, err error) {
	answer := make([]byte, compare.MessageSize)
	if err = e.sink.Chans[0].Send(ctx, []byte("SINKSTAT")); err == nil {
		_, err = e.sink.Chans[0].Receive(ctx, answer)
	}
	if err != nil {
		return "", err
	}
	messages, bytes := binary.LittleEndian.Uint64(answer), binary.LittleEndian.Uint64(answer[8:])
	if messages != e.messages || bytes != e.bytes {
		return fmt.Sprintf("the device took %d messages and %d bytes, it was given %d and %d", messages, bytes, e.messages, e.bytes), nil
	}
	return "", nil
}

func soakMessage(ctx context.Context, ch *nfcomms.Channel, sent, got []byte) error {
	if err := ch.Send(ctx, sent); err != nil {
		return err
	}
	n, err := ch.Receive(ctx, got)
	if err == nil && n != len(got) {
		err = fmt.Errorf("a message of %d bytes came back with %d", len(got), n)
	}
	return err
}

// isLost reports whether an error means that there is no device, or not the one that
// there was.
func isLost(err error) bool {
	for _, e := range []error{nfcomms.ErrDeviceLost, syscall.ECONNREFUSED, fs.ErrNotExist} {
		if errors.Is(err, e) {
			return true
		}
	}
	return false
}

// soakRetry is the time between two looks for the next device.
const soakRetry = 5 * time.Millisecond

// again finds the device that took over, however often it goes meanwhile.
func (e *soakExchange) again(ctx context.Context) error {
	e.end.Resets++
	if e.heard != nil {
		e.heard()
	}
	ctx, cancel := context.WithTimeout(ctx, soakPatience/2)
	defer cancel()
	for {
		err := e.reset(ctx)
		if err == nil {
			err = e.begin(ctx)
		}
		if err == nil || !e.lost(err) {
			return err
		}
		if soakSleep(ctx, soakRetry); ctx.Err() != nil {
			return fmt.Errorf("no device came back: %w", err)
		}
	}
}

// close compares the ledgers once more and ends the programs.
func (e *soakExchange) close(ctx context.Context) soakEnd {
	if e.end.Why != soakAsked || e.end.Wrong != "" {
		return e.end
	}
	wrong, err := e.audit(ctx)
	e.end.Wrong = wrong
	if err == nil {
		err = errors.Join(e.loop.Stop(ctx), e.sink.Stop(ctx))
	}
	switch {
	case err != nil && e.job.Mortal && e.lost(err):
		e.end.Resets++ // it was lost, and nobody looks for the next one any more
	case err != nil:
		e.end.Why = err.Error()
	}
	return e.end
}

// soakVictim is in a state until it is killed, asked to end, or its device is lost.
func soakVictim(ctx context.Context, dev *nfcomms.Device, j *soakJob, ready func(), asked <-chan struct{}) soakEnd {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	ended := make(chan error, 1) // so that it can end when nobody looks
	v := &victim{dev: dev, address: j.Address, chance: rand.New(rand.NewPCG(j.Seed, 2))}
	v.arrived = func() {
		ready()
		v.arrived = func() {}
	}
	go func() { ended <- soakStates[j.State](ctx, v) }()
	var err error
	select {
	case err = <-ended:
	case <-asked:
		cancel()
		if err = <-ended; errors.Is(err, context.Canceled) || errors.Is(err, nfcomms.ErrWithdrawn) || err == nil {
			return soakEnd{Why: soakAsked}
		}
	}
	if isLost(err) {
		return soakEnd{Why: soakNoDevice}
	}
	if errors.Is(err, io.EOF) {
		err = fmt.Errorf("an end without a name: %w", err)
	}
	return soakEnd{Why: fmt.Sprint(err)}
}
