package bridgetest

import (
	"context"
	"encoding/binary"
	"errors"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/nfcomms/nfcomms/bridge"
	"github.com/nfcomms/nfcomms/bridge/abi"
	"github.com/nfcomms/nfcomms/internal/pattern"
)

var callCases = []testCase{
	{"call/answered", callAnswered},
	{"call/withdrawn", callWithdrawn},
	{"call/plain-read", callPlainRead},
	{"call/refused", callRefused},
	{"call/try", callTry},
	{"call/closed", callClosed},
	{"call/cancels", callCancels},
	{"call/bad-replies", callBadReplies},
	{"call/messages", callOfMessages},
	{"call/given-up", callGivenUp},
	{"call/ended", callEnded},
}

// caller returns a channel that takes questions; nil where the back end has messages alone.
func caller(ch bridge.Channel) bridge.Caller {
	c, _ := ch.(bridge.Caller)
	return c
}

// callAnswered: a question is answered, whatever the sizes, and messages go on beside it.
func callAnswered(e *Env) {
	ch := caller(e.Subscribe(e.device(""), abi.TargetLoopback))
	if ch == nil {
		return
	}
	buf := make([]byte, abi.PayloadSize)
	for n := range abi.PayloadSize + 1 {
		msg := NewBuffer(n, n).Data
		a, err := ch.Call(e.Ctx(), msg, buf)
		require.NoError(e, err)
		if a.Message { // the device is of a release without calls
			require.Equal(e, msg, e.receive(ch))
			continue
		}
		require.Equal(e, msg, buf[:a.Size])
		e.Echo(ch, msg)
	}
	require.NotZero(e, ch.Stats().Direct.H2D.Messages)
}

// callWithdrawn: a question that no process takes is withdrawn.
func callWithdrawn(e *Env) {
	ch := caller(e.Ports(e.device(""), "hold", 1)[0])
	if ch == nil {
		return
	}
	for range 3 {
		ctx, cancel := context.WithTimeout(e.Ctx(), time.Millisecond)
		_, err := ch.Call(ctx, []byte("anyone"), nil)
		cancel()
		require.ErrorIs(e, err, bridge.ErrWithdrawn)
		require.NotErrorIs(e, err, bridge.ErrUnanswered)
	}
	ctx, cancel := context.WithCancel(e.Ctx())
	cancel()
	_, err := ch.Call(ctx, make([]byte, 99), nil)
	require.ErrorIs(e, err, bridge.ErrWithdrawn)
}

// callPlainRead: a process that reads as ever has the question as a message.
func callPlainRead(e *Env) {
	ports := e.Ports(e.device(""), "gate", 2)
	ch := caller(ports[1])
	if ch == nil {
		return
	}
	for i := range uint64(5) {
		e.send(ports[0], nil)
		a, err := ch.Call(e.Ctx(), pattern.Words(i), nil)
		require.NoError(e, err)
		require.True(e, a.Message)
		require.Equal(e, pattern.Words(0, 8), e.receive(ports[0]))
	}
}

// callRefused: a reader of transfers refuses a question; one that is too long is not sent, and an
// answer that is too long is dropped.
func callRefused(e *Env) {
	dev := e.device("")
	ports := e.Ports(dev, "expect", 2)
	ch := caller(ports[1])
	if ch == nil {
		return
	}
	e.send(ports[0], pattern.Words(4096))
	_, err := ch.Call(e.Ctx(), []byte("kind"), nil)
	require.ErrorIs(e, err, bridge.ErrKindMismatch)
	require.Equal(e, abi.ErrKind, e.status(ports[0]))
	_, err = ch.Call(e.Ctx(), make([]byte, abi.PayloadSize+1), nil)
	require.ErrorIs(e, err, bridge.ErrTooLarge)
	echo := caller(e.Subscribe(dev, abi.TargetLoopback))
	a, err := echo.Call(e.Ctx(), []byte("answer"), make([]byte, 5))
	if a.Message {
		require.Equal(e, "answer", string(e.receive(echo)))
		return
	}
	require.ErrorIs(e, err, bridge.ErrTooLarge)
	e.Echo(echo, []byte("goes on"))
}

// callTry: a try asks a target that waits, and no other.
func callTry(e *Env) {
	dev := e.device("")
	held := caller(e.Ports(dev, "hold", 1)[0])
	if held == nil {
		return
	}
	for range 3 {
		_, ok, err := held.TryCall(e.Ctx(), []byte("now"), nil, nil)
		require.NoError(e, err)
		require.False(e, ok)
	}
	ch, buf := caller(e.Subscribe(dev, abi.TargetLoopback)), make([]byte, abi.PayloadSize)
	e.Until("the target waits", func() bool {
		a, ok, err := ch.TryCall(e.Ctx(), []byte("now"), buf, nil)
		require.NoError(e, err)
		if ok && a.Message {
			require.Equal(e, "now", string(e.receive(ch)))
		} else if ok {
			require.Equal(e, "now", string(buf[:a.Size]))
		}
		return ok
	})
}

// callClosed: closing ends a call, and nothing of it reaches the next subscriber.
func callClosed(e *Env) {
	ch := caller(e.Ports(e.device(""), "hold", 1)[0])
	if ch == nil {
		return
	}
	done := make(chan error, 1)
	go func() {
		_, err := ch.Call(e.Ctx(), []byte("pending"), nil)
		done <- err
	}()
	e.Until("the call waits", func() bool { return ch.Stats().Waiting.H2D > 0 })
	require.NoError(e, ch.Close())
	require.ErrorIs(e, <-done, bridge.ErrClosed)
	_, err := ch.Call(e.Ctx(), nil, nil)
	require.ErrorIs(e, err, bridge.ErrClosed)
}

// callCancels: calls of many goroutines end at any time, each with one outcome, and an answer is that
// to its own question.
func callCancels(e *Env) {
	ch := caller(e.Subscribe(e.device(""), abi.TargetLoopback))
	if ch == nil {
		return
	}
	if a, err := ch.Call(e.Ctx(), nil, nil); a.Message {
		require.NoError(e, err)
		e.receive(ch)
		return // the answers of such calls are messages, whose receivers are another's matter
	}
	var all sync.WaitGroup
	var counts [4]struct{ answered, withdrawn, unanswered int }
	for g := range counts {
		all.Go(func() {
			random := rand.New(rand.NewPCG(uint64(g), 1))
			buf := make([]byte, abi.PayloadSize)
			for i := range uint64(500) {
				msg := pattern.Words(uint64(g), i)
				ctx, cancel := context.WithTimeout(e.Ctx(), time.Duration(random.IntN(20))*time.Microsecond)
				a, err := ch.Call(ctx, msg, buf)
				cancel()
				switch {
				case err == nil:
					require.Equal(e, msg, buf[:a.Size])
					counts[g].answered++
				case errors.Is(err, bridge.ErrUnanswered):
					counts[g].unanswered++
				default:
					require.ErrorIs(e, err, bridge.ErrWithdrawn)
					counts[g].withdrawn++
				}
			}
		})
	}
	all.Wait()
	e.Logf("answered, withdrawn, unanswered: %v", counts)
	e.Echo(ch, []byte("goes on"))
}

// asked is a process that does with questions what it is told: they go to data.
type asked struct {
	*Env
	orders bridge.Channel
	data   bridge.Caller
}

// asked starts such a process; nil where the back end has messages alone.
func (e *Env) asked() *asked {
	ports := e.Ports(e.device(""), "asked", 2)
	return &asked{e, ports[0], caller(ports[1])}
}

// Orders.
const takeQuestion, readPlainly, replyTo, endNow = 'q', 'p', 'r', 'e'

// order has the process do something, and returns the result.
func (a *asked) order(what byte, n uint64) int64 {
	a.Helper()
	a.send(a.orders, pattern.Words(uint64(what), n))
	return int64(binary.LittleEndian.Uint64(a.receive(a.orders)))
}

// refuses has the process do what its firmware refuses.
func (a *asked) refuses(want abi.Status, what byte, n uint64) {
	a.Helper()
	require.Equal(a, -int64(want), a.order(what, n), want)
}

// ending is how a call ended, and its answer.
type ending struct {
	text string
	bridge.Answer
	err error
}

// ask begins a call, and receives its answer where that is a message.
func (a *asked) ask(ctx context.Context) <-chan ending {
	done := make(chan ending, 1)
	go func() {
		buf := make([]byte, abi.PayloadSize)
		got, err := a.data.Call(ctx, []byte("question"), buf)
		n := got.Size
		if got.Message && err == nil {
			n, err = a.data.Receive(ctx, buf)
		}
		done <- ending{string(buf[:n]), got, err}
	}()
	return done
}

// callBadReplies: a reply without a question, a second one and one that is too long are refused, each
// by its status. The next one counts.
func callBadReplies(e *Env) {
	a := e.asked()
	if a.data == nil {
		return
	}
	a.refuses(abi.ErrInvalid, replyTo, 1)
	for range 2 {
		done := a.ask(e.Ctx())
		require.EqualValues(e, 8, a.order(takeQuestion, 0))
		a.refuses(abi.ErrTooLarge, replyTo, abi.PayloadSize+1)
		require.Zero(e, a.order(replyTo, 3))
		got := <-done
		require.NoError(e, got.err)
		require.Equal(e, "que", got.text)
		a.refuses(abi.ErrInvalid, replyTo, 3)
	}
	done := a.ask(e.Ctx()) // taken plainly, it has no reply
	require.EqualValues(e, 8, a.order(readPlainly, 0))
	a.refuses(abi.ErrInvalid, replyTo, 3)
	require.NoError(e, a.data.CloseReceive())
	got := <-done
	require.True(e, got.Message)
	require.ErrorIs(e, got.err, bridge.ErrClosed)
}

// callOfMessages: a host without calls sends, and the process replies by a message.
func callOfMessages(e *Env) {
	a := e.asked()
	if a.data == nil {
		return
	}
	got := make(chan []byte, 1)
	go func() {
		a.send(a.data, []byte("message"))
		got <- a.receive(a.data)
	}()
	require.EqualValues(e, 7, a.order(takeQuestion, 0))
	a.refuses(abi.ErrTooLarge, replyTo, abi.PayloadSize+1)
	require.Zero(e, a.order(replyTo, 4))
	require.Equal(e, "mess", string(<-got))
	a.refuses(abi.ErrInvalid, replyTo, 4)
}

// callGivenUp: the process learns at its reply that nobody waits, and the next call has its own answer.
func callGivenUp(e *Env) {
	a := e.asked()
	if a.data == nil {
		return
	}
	for range 3 {
		ctx, cancel := context.WithCancel(e.Ctx())
		done := a.ask(ctx)
		require.EqualValues(e, 8, a.order(takeQuestion, 0))
		cancel()
		got := <-done
		if got.Message { // only the receive ended
			require.ErrorIs(e, got.err, bridge.ErrWithdrawn)
			return
		}
		a.requireUnanswered(got.err, context.Canceled)
		next := a.ask(e.Ctx())
		a.refuses(abi.ErrWithdrawn, replyTo, 8)
		require.EqualValues(e, 8, a.order(takeQuestion, 0))
		require.Zero(e, a.order(replyTo, 2))
		require.Equal(e, ending{"qu", bridge.Answer{Size: 2}, nil}, <-next)
	}
}

// callEnded: a process that ends with a question ends the call.
func callEnded(e *Env) {
	a := e.asked()
	if a.data == nil {
		return
	}
	done := a.ask(e.Ctx())
	require.EqualValues(e, 8, a.order(takeQuestion, 0))
	a.send(a.orders, pattern.Words(endNow, 0))
	got := <-done
	require.ErrorIs(e, got.err, bridge.ErrClosed)
	if !got.Message {
		a.requireUnanswered(got.err, bridge.ErrClosed)
	}
}

// requireUnanswered makes sure that a call ended after its question was taken, and for good.
func (a *asked) requireUnanswered(err, cause error) {
	a.Helper()
	var unanswered *bridge.UnansweredError
	require.ErrorAs(a, err, &unanswered)
	require.ErrorIs(a, err, cause)
	require.NotErrorIs(a, err, bridge.ErrWithdrawn)
	require.False(a, unanswered.Late)
}
