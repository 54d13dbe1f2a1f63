// Package nfcomms gives a goroutine channels to processes on a device.
//
// A channel is synchronous: Send returns once the device's process took the
// message, Receive once it gave one. Messages of up to 56 bytes pass through a
// mailbox; for anything larger SendInd and ReceiveInd give the device the addresses of
// the bytes, and its DMA engine moves them.
//
//	dev, err := nfcomms.Open(ctx, "sim:")
//	…
//	defer dev.Close()
//	ch, err := dev.Subscribe(ctx, nfcomms.Loopback)
//	…
//	err = ch.Send(ctx, []byte("hello"))
//	n, err := ch.Receive(ctx, buf)
//	err = ch.SendInd(ctx, samples)
//	n, err = ch.ReceiveInd(ctx, samples)
//
// A context bounds each call, and its outcome is exact: either the message
// was delivered and the call returns nil, or it was withdrawn and the error is
// ErrWithdrawn. Device.Run starts a program with channels to all of its ports, a
// Supervisor keeps programs running across resets. ChanOf gives a channel a type, Select waits for device channels
// and Go channels at once, futures run without their caller, SendStriped spreads
// one buffer over several targets. Every error is an *OpError; errors.Is finds its reason.
//
// The address "sim:" is a device inside this process that needs no hardware.
package nfcomms
