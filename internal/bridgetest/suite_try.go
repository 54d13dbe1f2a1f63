package bridgetest

import (
	"github.com/stretchr/testify/require"

	"github.com/nfcomms/nfcomms/bridge"
	"github.com/nfcomms/nfcomms/bridge/abi"
	"github.com/nfcomms/nfcomms/internal/pattern"
)

var tryCases = []testCase{
	{"try/send", trySend},
	{"try/receive", tryReceive},
	{"try/arm-h2d", armH2D},
	{"try/arm-d2h", armD2H},
	{"try/arm-ends", armEnds},
	{"try/disarm", disarm},
	{"try/arm-many-h2d", armManyH2D},
	{"try/arm-many-d2h", armManyD2H},
	{"try/arm-hands-on", armHandsOn},
	{"try/arm-among-senders", armAmongSenders},
	{"try/arm-again", armAgain},
	{"try/send-ind", trySendInd},
	{"try/receive-ind", tryReceiveInd},
	{"try/next", tryNext},
	{"next", next},
}

// mustTrySend sends once the target waits, which may take a moment.
func (e *Env) mustTrySend(ch bridge.Channel, msg []byte, wake chan<- struct{}) {
	e.Helper()
	e.Until("target waits", func() bool {
		ok, err := ch.TrySend(msg, wake)
		require.NoError(e, err)
		return ok
	})
}

// trySend gives a message only to a target that waits, and leaves nothing
// behind otherwise.
func trySend(e *Env) {
	dev := e.device("")
	ports := e.Ports(dev, "gate", 2)
	for i := range 30 {
		ok, err := ports[1].TrySend(make([]byte, 7), nil)
		require.NoError(e, err)
		require.False(e, ok, "the gate is shut")
		e.send(ports[0], nil)
		e.mustTrySend(ports[1], make([]byte, i), nil)
		require.Equal(e, pattern.Words(0, uint64(i)), e.receive(ports[0]))
	}
	_, err := ports[1].TrySend(make([]byte, abi.PayloadSize+1), nil)
	require.ErrorIs(e, err, bridge.ErrTooLarge)
}

// tryReceive takes a message only if there is one.
func tryReceive(e *Env) {
	ch := e.Subscribe(e.device(""), abi.TargetLoopback)
	var buf [abi.PayloadSize]byte
	for i := range uint64(30) {
		_, ok, err := ch.TryReceive(buf[:])
		require.NoError(e, err)
		require.False(e, ok, "nothing was sent")
		e.send(ch, pattern.Words(i))
		_, err = ch.Next(e.Ctx())
		require.NoError(e, err)
		_, _, err = ch.TryReceive(buf[:7])
		require.ErrorIs(e, err, bridge.ErrTooLarge, "the message stays offered")
		n, ok, err := ch.TryReceive(buf[:])
		require.NoError(e, err)
		require.True(e, ok)
		require.Equal(e, pattern.Words(i), buf[:n])
	}
}

// token waits for a wake.
func (e *Env) token(wake <-chan struct{}) {
	e.Helper()
	e.Until("wake", func() bool { return len(wake) > 0 })
	<-wake
}

// armH2D: a token is sent when the target waits, not before.
func armH2D(e *Env) {
	dev := e.device("")
	ports := e.Ports(dev, "gate", 2)
	wake := make(chan struct{}, 1)
	for i := range 20 {
		require.NoError(e, ports[1].Arm(abi.H2D, wake))
		ok, err := ports[1].TrySend(nil, wake)
		require.NoError(e, err)
		require.False(e, ok)
		require.NoError(e, ports[1].Arm(abi.H2D, wake))
		e.send(ports[0], nil)
		e.token(wake)
		ok, err = ports[1].TrySend(make([]byte, i), nil)
		require.NoError(e, err)
		require.False(e, ok, "it is another's turn")
		e.mustTrySend(ports[1], make([]byte, i), wake)
		require.Equal(e, pattern.Words(0, uint64(i)), e.receive(ports[0]))
		ports[1].Disarm(abi.H2D, wake)
		drainTokens(wake)
	}
}

func drainTokens(wake chan struct{}) {
	for len(wake) > 0 {
		<-wake
	}
}

// armD2H: a token is sent when something is offered, at once if it is already.
func armD2H(e *Env) {
	ch := e.Subscribe(e.device(""), abi.TargetLoopback)
	wake := make(chan struct{}, 1)
	var buf [abi.PayloadSize]byte
	for i := range uint64(30) {
		if i%2 == 0 {
			require.NoError(e, ch.Arm(abi.D2H, wake))
			e.send(ch, pattern.Words(i))
		} else {
			e.send(ch, pattern.Words(i))
			_, err := ch.Next(e.Ctx())
			require.NoError(e, err)
			require.NoError(e, ch.Arm(abi.D2H, wake))
		}
		e.token(wake)
		n, ok, err := ch.TryReceive(buf[:])
		require.NoError(e, err)
		require.True(e, ok)
		require.Equal(e, pattern.Words(i), buf[:n])
		ch.Disarm(abi.D2H, wake)
		drainTokens(wake)
	}
}

// armEnds: a close and a reset wake what is armed.
func armEnds(e *Env) {
	dev := e.device("")
	ports := e.Ports(dev, "hold", 2)
	wake := make(chan struct{}, 2)
	for i, end := range []func() error{ports[0].Close, func() error { return dev.Reset(e.Ctx()) }} {
		for _, half := range []abi.Direction{abi.H2D, abi.D2H} {
			require.NoError(e, ports[i].Arm(half, wake))
		}
		require.NoError(e, end())
		e.token(wake)
		e.token(wake)
	}
}

// disarm: what was disarmed is not woken, not even by a close.
func disarm(e *Env) {
	ch := e.Ports(e.device(""), "hold", 1)[0]
	wake := make(chan struct{}, 2)
	for _, half := range []abi.Direction{abi.H2D, abi.D2H} {
		require.NoError(e, ch.Arm(half, wake))
		ch.Disarm(half, wake)
		ch.Disarm(half, wake)
	}
	require.NoError(e, ch.Close())
	require.Empty(e, wake)
}

// next: Next returns the kind and the size of what is offered and takes nothing.
func next(e *Env) {
	ch := e.Ports(e.device(""), "loopback", 1)[0]
	e.send(ch, []byte("seven b"))
	for range 3 {
		o, err := ch.Next(e.Ctx())
		require.NoError(e, err)
		require.Equal(e, bridge.Offer{Size: 7}, o)
	}
	require.Equal(e, "seven b", string(e.receive(ch)))
	b := NewBuffer(70_001, 9)
	pattern.Fill(b.Data, 0, 4)
	require.NoError(e, ch.SendInd(e.Ctx(), b.Data))
	for range 3 {
		o, err := ch.Next(e.Ctx())
		require.NoError(e, err)
		require.Equal(e, bridge.Offer{Indirect: true, Size: 70_001}, o)
	}
	clear(b.Data)
	require.NoError(e, ch.ReceiveInd(e.Ctx(), b.Data))
	require.Negative(e, pattern.Diff(b.Data, 0, 4))
}
