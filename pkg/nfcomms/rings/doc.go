// Package rings gives one side of a ring to a process on a device, which then writes or reads packets
// in place, while the other side is a process of the machine as ever.
//
//	r, err := ring.Create("frames", ring.Config{})
//	…
//	i, err := dev.Run(ctx, nfcomms.Program{Name: "analyse"})
//	…
//	go rings.ServeReader(ctx, dev, r, i)
//	w, err := r.Writer(ctx)
//
// The process includes nfc_ring.h. No byte of a packet is copied or sent: the channel carries the place
// of the memory, and wake-ups of a side that sleeps. It works where the device reaches memory of this
// host: "sim:" and "shm:".
package rings

import "errors"

// ErrProcess: the process said on the channel what no side of a ring says.
var ErrProcess = errors.New("the process broke the rules of a ring")
