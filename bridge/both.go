package bridge

import "github.com/nfcomms/nfcomms/bridge/abi"

// Both has a value for each direction.
type Both[T any] struct {
	H2D T // from the host to the device
	D2H T // from the device to the host
}

// Of returns the value of a direction.
func (b *Both[T]) Of(d abi.Direction) *T {
	if d == abi.D2H {
		return &b.D2H
	}
	return &b.H2D
}
