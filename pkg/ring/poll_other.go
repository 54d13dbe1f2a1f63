//go:build unix && !linux

package ring

import "time"

// Poll waits for several sides of rings at once.
type Poll struct{}

// NewPoll needs Linux.
func NewPoll(Wait) (*Poll, error) { return nil, errLinux }

// Add has Wait wait for a side as well.
func (*Poll) Add(Side) (*Watch, error) { return nil, errLinux }

// Ready reports whether a side can continue.
func (*Poll) Ready() bool { return false }

// Wait returns once a side can continue.
func (*Poll) Wait(time.Time) {}

// Wake has a Wait return.
func (*Poll) Wake() {}

// Close frees what the Poll holds.
func (*Poll) Close() error { return nil }
