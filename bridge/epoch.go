package bridge

import (
	"context"
	"fmt"
)

// ErrReset is the error of a call whose epoch a reset has ended.
var ErrReset = fmt.Errorf("%w: reset", ErrDeviceLost)

// epochKey is the key of the epoch in a context.
type epochKey struct{}

// InEpoch returns a context whose calls of a [Device] take effect in one epoch of the device or
// not at all, see [EpochOf]. epoch is a number of [Info].
// A caller whose steps depend on each other gives this context to each of them: what an earlier
// step found, another epoch may have given to a stranger. Epochs are counted from 1, and number 0
// stands for any epoch.
func InEpoch(ctx context.Context, epoch uint32) context.Context {
	return context.WithValue(ctx, epochKey{}, epoch)
}

// EpochOf returns the number that [InEpoch] was given, or 0. Every method of Device that takes a
// context returns ErrReset, and changes nothing, if that epoch is over. Reset returns nil then:
// the epoch has ended.
func EpochOf(ctx context.Context) uint32 {
	epoch, _ := ctx.Value(epochKey{}).(uint32)
	return epoch
}

// CheckEpoch returns ErrReset if a call is made in another epoch than the given one.
func CheckEpoch(ctx context.Context, epoch uint32) error {
	if of := EpochOf(ctx); of != 0 && of != epoch {
		return ErrReset
	}
	return nil
}
