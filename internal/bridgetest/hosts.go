package bridgetest

import (
	"context"
	"encoding/binary"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/nfcomms/nfcomms/bridge"
	"github.com/nfcomms/nfcomms/bridge/abi"
)

// hostsFunc opens two hosts of one device: the one that listens, with the options that say which
// hosts may connect, and the one that connects. The suite closes them.
type hostsFunc func(t *testing.T) (listens, connects bridge.Device, o bridge.ListenOptions)

// RunHosts runs the rules of channels between hosts (S69, S70), each with devices of its own.
func RunHosts(t *testing.T, open hostsFunc) {
	for _, c := range hostCases {
		t.Run(c.name, func(t *testing.T) {
			p := &hostPair{Env: NewEnv(t)}
			p.listens, p.connects, p.options = open(t)
			t.Cleanup(func() {
				require.NoError(t, p.connects.Close())
				require.NoError(t, p.listens.Close())
			})
			p.l = p.listen()
			c.run(p)
			require.NoError(t, p.l.Close())
		})
	}
}

var hostCases = []struct {
	name string
	run  func(p *hostPair)
}{
	{"messages", hostMessages},
	{"rendezvous", hostRendezvous},
	{"cancel", hostCancel},
	{"cancel-races", hostCancelRaces},
	{"half-close", hostHalfClose},
	{"close-ends-calls", hostCloseEndsCalls},
	{"again", hostAgain},
	{"armed", hostArmed},
	{"try", hostTry},
	{"try-races", hostTryRaces},
	{"try-ind", hostTryInd},
	{"armed-send", hostArmedSend},
	{"armed-leaves", hostArmedLeaves},
	{"armed-both", hostArmedBoth},
	{"no-listener", hostRefusals},
	{"waiting", hostWaiting},
	{"listeners", hostListeners},
	{"names", hostNames},
	{"names-refused", hostWrongNames},
	{"names-of-a-host-that-was-reset", hostNameGoes},
	{"listener-closes", hostListenerCloses},
	{"goes", hostGoes},
	{"takes-and-goes", hostTakesAndGoes},
	{"transfers", hostTransfers},
	{"transfers-at-once", hostTransfersAtOnce},
	{"transfer-rendezvous", hostTransferRendezvous},
	{"transfer-mismatch", hostTransferMismatch},
	{"transfer-cancel", hostTransferCancel},
	{"transfer-cancel-races", hostTransferCancelRaces},
	{"transfer-close", hostTransferClose},
	{"transfer-goes", hostTransferGoes},
	{"move", hostMove},
	{"move-half", hostMoveHalf},
	{"move-refused", hostMoveRefused},
	{"move-as-bytes", hostMoveAsBytes},
	{"move-races", hostMoveRaces},
	{"move-goes", hostMoveGoes},
	{"give", hostGive},
	{"give-refused", hostGiveRefused},
	{"give-as-bytes", hostGiveAsBytes},
	{"give-races", hostGiveRaces},
	{"give-goes", hostGiveGoes},
}

// hostPair is two hosts of a device, of which one listens.
type hostPair struct {
	*Env
	listens, connects bridge.Device
	options           bridge.ListenOptions
	l                 bridge.Listener
}

func (p *hostPair) listen() bridge.Listener {
	l, err := p.listens.(bridge.HostListener).Listen(p.Ctx(), p.options)
	require.NoError(p, err)
	return l
}

// channel returns both ends of a new channel: that of the host that connected, and that of the host
// that accepted.
func (p *hostPair) channel() (near, far bridge.Channel) {
	p.Helper()
	near, err := p.connects.Subscribe(p.Ctx(), p.l.Target())
	require.NoError(p, err)
	far, err = p.l.Accept(p.Ctx())
	require.NoError(p, err)
	require.Equal(p, p.l.Target(), far.Target())
	return near, far
}

func word(i int) []byte { return binary.LittleEndian.AppendUint64(nil, uint64(i)) }

// takes requires the next message of a channel.
func (p *hostPair) takes(ch bridge.Channel, want []byte) {
	p.Helper()
	var buf [abi.PayloadSize]byte
	n, err := ch.Receive(p.Ctx(), buf[:])
	require.NoError(p, err)
	require.Equal(p, want, buf[:n])
}

// gives sends a message from another goroutine, whose error the returned function gives.
func (p *hostPair) gives(ctx context.Context, ch bridge.Channel, msg []byte) <-chan error {
	done := make(chan error, 1)
	go func() { done <- ch.Send(ctx, msg) }()
	return done
}

// hostMessages: messages of both directions arrive in order, once, at the same time.
func hostMessages(p *hostPair) {
	const messages = 500
	near, far := p.channel()
	done := make(chan error, 2)
	for _, ch := range []bridge.Channel{near, far} {
		go func() {
			for i := range messages {
				if err := ch.Send(p.Ctx(), word(i)[:i%9]); err != nil {
					done <- err
					return
				}
			}
			done <- nil
		}()
	}
	received := make(chan struct{}, 2)
	for _, ch := range []bridge.Channel{near, far} {
		go func() {
			defer func() { received <- struct{}{} }()
			var buf [abi.PayloadSize]byte
			for i := range messages {
				n, err := ch.Receive(p.Ctx(), buf[:])
				if !assert.NoError(p, err) || !assert.Equal(p, word(i)[:i%9], buf[:n]) {
					return
				}
			}
		}()
	}
	for range 2 {
		require.NoError(p, <-done)
		<-received
	}
	require.NoError(p, near.Close())
	require.NoError(p, far.Close())
}

// hostRendezvous: a send returns when the other host took the message, and not before.
func hostRendezvous(p *hostPair) {
	near, far := p.channel()
	sent := p.gives(p.Ctx(), near, []byte("take me"))
	require.NoError(p, far.ReceiveFunc(p.Ctx(), func(msg []byte) error {
		require.Equal(p, "take me", string(msg))
		select {
		case err := <-sent:
			require.Fail(p, "sent before it was taken", "%v", err)
		default:
		}
		return nil
	}))
	require.NoError(p, <-sent)
	sent = p.gives(p.Ctx(), near, nil)
	require.ErrorIs(p, far.ReceiveFunc(p.Ctx(), func([]byte) error { return context.Canceled }), context.Canceled, "it stays")
	p.takes(far, []byte{})
	require.NoError(p, <-sent)
}

// hostCancel: what is cancelled is not delivered, and nobody is notified of it.
func hostCancel(p *hostPair) {
	near, far := p.channel()
	for i := range 20 {
		ctx, cancel := context.WithCancel(p.Ctx())
		sent := p.gives(ctx, near, []byte("never"))
		if i%2 == 0 { // the other host has it before it
			_, err := far.Next(p.Ctx())
			require.NoError(p, err)
		}
		cancel()
		p.IsWithdrawn(<-sent, context.Canceled)
	}
	sent := p.gives(p.Ctx(), near, []byte("this"))
	p.takes(far, []byte("this"))
	require.NoError(p, <-sent)
}

// takesInHaste receives by calls that give up after at most so many microseconds, until an empty
// message arrives; then the words of those before it are there.
func (p *hostPair) takesInHaste(far bridge.Channel, most int) <-chan []int {
	taken := make(chan []int)
	go func() {
		var got []int
		var buf [abi.PayloadSize]byte
		for {
			ctx, cancel := context.WithTimeout(p.Ctx(), time.Duration(rand.IntN(most))*time.Microsecond)
			n, err := far.Receive(ctx, buf[:])
			cancel()
			switch {
			case err != nil:
				assert.ErrorIs(p, err, bridge.ErrWithdrawn)
			case n == 0:
				taken <- got
				return
			default:
				got = append(got, int(binary.LittleEndian.Uint64(buf[:])))
			}
		}
	}()
	return taken
}

// hostCancelRaces: of a message that is cancelled as it is taken both hosts say the same.
func hostCancelRaces(p *hostPair) {
	const messages = 300
	near, far := p.channel()
	taken := p.takesInHaste(far, 200)
	var sent []int
	for i := range messages {
		ctx, cancel := context.WithTimeout(p.Ctx(), time.Duration(rand.IntN(200))*time.Microsecond)
		err := near.Send(ctx, word(i))
		cancel()
		if err == nil {
			sent = append(sent, i)
		} else {
			require.ErrorIs(p, err, bridge.ErrWithdrawn)
		}
	}
	require.NoError(p, near.Send(p.Ctx(), nil))
	require.Equal(p, sent, <-taken)
}

// hostHalfClose: each half closes by itself, at both ends.
func hostHalfClose(p *hostPair) {
	near, far := p.channel()
	require.NoError(p, near.CloseSend())
	_, err := far.Receive(p.Ctx(), nil)
	require.ErrorIs(p, err, bridge.ErrClosed)
	sent := p.gives(p.Ctx(), far, []byte("the other way"))
	p.takes(near, []byte("the other way"))
	require.NoError(p, <-sent)
	require.NoError(p, near.CloseReceive())
	p.Until("the other host hears of it", func() bool { return far.Send(p.Ctx(), nil) != nil })
	require.ErrorIs(p, far.Send(p.Ctx(), nil), bridge.ErrClosed)
	require.NoError(p, far.Close())
}

// hostCloseEndsCalls: a close ends what waits at the other end.
func hostCloseEndsCalls(p *hostPair) {
	near, far := p.channel()
	sent := p.gives(p.Ctx(), near, []byte("nobody takes it"))
	_, err := far.Next(p.Ctx())
	require.NoError(p, err)
	received := make(chan error, 1)
	go func() {
		_, err := near.Receive(p.Ctx(), nil)
		received <- err
	}()
	require.NoError(p, far.Close())
	require.ErrorIs(p, <-sent, bridge.ErrClosed)
	require.ErrorIs(p, <-received, bridge.ErrClosed)
	require.NoError(p, near.Close())
}

// hostAgain: closed channels leave no trace, in either order of closing.
func hostAgain(p *hostPair) {
	for i := range 300 {
		near, far := p.channel()
		if i%3 == 0 {
			near, far = far, near
		}
		sent := p.gives(p.Ctx(), near, word(i))
		p.takes(far, word(i))
		require.NoError(p, <-sent)
		require.NoError(p, near.Close())
		require.NoError(p, far.Close())
	}
}

// hostArmed: a Select may receive from a host.
func hostArmed(p *hostPair) {
	near, far := p.channel()
	wake := make(chan struct{}, 1)
	require.NoError(p, far.Arm(abi.D2H, wake))
	sent := p.gives(p.Ctx(), near, []byte("wake"))
	<-wake
	var buf [abi.PayloadSize]byte
	n, ok, err := far.TryReceive(buf[:])
	require.NoError(p, err)
	require.True(p, ok)
	require.Equal(p, "wake", string(buf[:n]))
	require.NoError(p, <-sent)
}

// hostRefusals: what is no listener of this device is no target.
func hostRefusals(p *hostPair) {
	for _, id := range []bridge.Target{abi.TargetHosts, abi.ChannelsMax - 1} {
		if id != p.l.Target() {
			_, err := p.connects.Subscribe(p.Ctx(), id)
			require.ErrorIs(p, err, bridge.ErrNotSubscribed, "%v", id)
		}
	}
}

// hostsWaiting opens so many channels from a host to the one that listens, and requires that one
// more is refused.
func (p *hostPair) hostsWaiting(from bridge.Device, most int) (near []bridge.Channel) {
	for range most {
		ch, err := from.Subscribe(p.Ctx(), p.l.Target())
		require.NoError(p, err)
		near = append(near, ch)
	}
	_, err := from.Subscribe(p.Ctx(), p.l.Target())
	require.ErrorIs(p, err, bridge.ErrBusy)
	return near
}

// hostWaiting: 8 channels of one host wait to be accepted, and are, in order, with what they offer.
// Of the 8 places that are left a second host gets half.
func hostWaiting(p *hostPair) {
	near := p.hostsWaiting(p.connects, 8)
	if p.connects != p.listens {
		near = append(near, p.hostsWaiting(p.listens, 4)...)
	}
	for i, ch := range near {
		sent := p.gives(p.Ctx(), ch, word(i))
		far, err := p.l.Accept(p.Ctx())
		require.NoError(p, err)
		p.takes(far, word(i))
		require.NoError(p, <-sent)
		require.NoError(p, far.Close())
		require.NoError(p, ch.Close())
	}
	ctx, cancel := context.WithCancel(p.Ctx())
	cancel()
	_, err := p.l.Accept(ctx)
	p.IsWithdrawn(err, context.Canceled)
}

// hostListeners: a host has some of them, and each has a target of its own.
func hostListeners(p *hostPair) {
	listeners := map[bridge.Target]bridge.Listener{p.l.Target(): p.l}
	for len(listeners) < 8 {
		l := p.listen()
		require.NotContains(p, listeners, l.Target())
		listeners[l.Target()] = l
	}
	_, err := p.listens.(bridge.HostListener).Listen(p.Ctx(), p.options)
	require.ErrorIs(p, err, bridge.ErrNoMemory)
	for target, l := range listeners {
		near, err := p.connects.Subscribe(p.Ctx(), target)
		require.NoError(p, err)
		far, err := l.Accept(p.Ctx())
		require.NoError(p, err)
		sent := p.gives(p.Ctx(), far, word(int(target)))
		p.takes(near, word(int(target)))
		require.NoError(p, <-sent)
		if l != p.l {
			require.NoError(p, l.Close())
			_, err = p.connects.Subscribe(p.Ctx(), target)
			require.ErrorIs(p, err, bridge.ErrNotSubscribed)
		}
	}
	require.NoError(p, p.listen().Close(), "there is room again")
}

// hostListenerCloses: a host that was not accepted finds a closed channel, an accepted one continues.
func hostListenerCloses(p *hostPair) {
	near, far := p.channel()
	late, err := p.connects.Subscribe(p.Ctx(), p.l.Target())
	require.NoError(p, err)
	sent := p.gives(p.Ctx(), late, []byte("nobody accepts"))
	waits := p.gives(p.Ctx(), near, []byte("goes on"))
	require.NoError(p, p.l.Close())
	require.ErrorIs(p, <-sent, bridge.ErrClosed)
	_, err = p.l.Accept(p.Ctx())
	require.ErrorIs(p, err, bridge.ErrClosed)
	p.takes(far, []byte("goes on"))
	require.NoError(p, <-waits)
}

// hostGoes: a host that closes closes its channels for the other.
func hostGoes(p *hostPair) {
	if p.connects == p.listens {
		return // it takes both ends with it
	}
	near, far := p.channel()
	received := make(chan error, 1)
	go func() {
		_, err := far.Receive(p.Ctx(), nil)
		received <- err
	}()
	sent := p.gives(p.Ctx(), far, []byte("nobody takes it"))
	_, err := near.Next(p.Ctx())
	require.NoError(p, err)
	require.NoError(p, p.connects.Reset(p.Ctx()))
	require.ErrorIs(p, <-received, bridge.ErrClosed)
	require.ErrorIs(p, <-sent, bridge.ErrClosed)
	near, far = p.channel()
	sent = p.gives(p.Ctx(), near, []byte("it comes back"))
	p.takes(far, []byte("it comes back"))
	require.NoError(p, <-sent)
}
