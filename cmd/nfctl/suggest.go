package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/nfcomms/nfcomms/pkg/control"
)

// suggestDevice adds to the error about a device that is not there the names that
// are spelled like the one that was given.
func suggestDevice(ctx context.Context, c *control.Client, args []string, err error) error {
	if !errors.Is(err, control.ErrNoDevice) {
		return err
	}
	devices, failed := listDevices(ctx, c)
	if failed != nil {
		return err
	}
	var like []string
	for _, d := range devices {
		name := deviceID(d.GetName())
		for _, arg := range args {
			if n := distance(deviceID(arg), name); n > 0 && n <= max(1, len(name)/3) {
				like = append(like, name)
				break
			}
		}
	}
	if len(like) == 0 {
		return err
	}
	return fmt.Errorf("%w%s", err, didYouMean(like))
}

// distance is the number of letters to change, add or leave out between two
// names.
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := 1
			if a[i] == b[j] {
				cost = 0
			}
			diagonal, row[j+1] = row[j+1], min(diagonal+cost, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}
