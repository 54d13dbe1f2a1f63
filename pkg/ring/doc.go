// Package ring is a circular buffer of packets in memory that two processes
// share: one writes, one reads, and no byte is copied on the way. It is the
// buffer of the HMF Transmitter report made safe for processes that crash, deceive
// and outnumber the processors.
//
//	r, err := ring.Create("weather", ring.Config{})     // in one process
//	w, err := r.Writer(ctx)
//	copy(w.Reserve(), sample)
//	err = w.Commit(ctx, len(sample))
//
//	r, err := ring.Open(ctx, "weather", ring.Options{})                 // in another
//	rd, err := r.Reader(ctx)
//	packet, err := rd.Peek(ctx)
//	rd.Release()
//
// A ring has a fixed number of packets, at least [MinPackets], and two heads: the
// writer's stands on the packet being written, the reader's on the last one it
// took. The heads never touch, which is why a ring of n packets holds n-1.
//
// Nothing of a ring is in a file system. Its memory is sealed against resizing, its name is an
// abstract socket that vanishes with the process that created it, and only processes of the same
// user may open it. A pidfd watches each attached process: when one side dies the other's calls
// return [ErrPeerDied], and both roles may be taken anew under the next generation.
//
// The memory is trusted for nothing: positions and lengths are checked as they are read, and what
// cannot be ends with [ErrCorrupt]. A peer can only write nonsense into packets, which belong to it
// anyway.
//
// Rings need Linux. Elsewhere the package builds, and every call that would make
// or find a ring returns an error that wraps [errors.ErrUnsupported].
package ring
