package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/nfcomms/nfcomms/pkg/control"
	"github.com/nfcomms/nfcomms/pkg/nfcomms"
)

// mostNamed is how many devices an error names.
const mostNamed = 8

// suggestDevice adds names to the error about a device that is not there, or cannot be: those that are
// spelled like the given one, or else all.
func suggestDevice(ctx context.Context, c *control.Client, args []string, err error) error {
	if bad := malformedDevice(args, err); bad != nil {
		err = usageError{bad}
	} else if !errors.Is(err, control.ErrNoDevice) {
		return err
	}
	devices, failed := collect(c.ListDevices(ctx))
	if failed != nil {
		return err
	}
	var like, all []string
	for _, d := range devices {
		name := deviceID(d.GetName())
		all = append(all, name)
		for _, arg := range args {
			if n := distance(deviceID(arg), name); n > 0 && n <= max(1, len(name)/3) {
				like = append(like, name)
				break
			}
		}
	}
	switch {
	case len(like) > 0:
		return fmt.Errorf("%w%s", err, didYouMean(like))
	case len(all) == 0:
		return fmt.Errorf("%w (the server has none)", err)
	case len(all) > mostNamed:
		return fmt.Errorf("%w (nfctl list shows the %d that there are)", err, len(all))
	}
	return fmt.Errorf("%w (there are: %s)", err, strings.Join(all, ", "))
}

// malformedDevice returns what is wrong with the argument that an error is about, if no device can have
// such a name.
func malformedDevice(args []string, err error) error {
	for _, arg := range args {
		bad := control.CheckDevice(deviceID(arg))
		if bad == nil || !errors.Is(err, nfcomms.ErrInvalid) {
			continue
		}
		if text := err.Error(); text == bad.Error() || strings.Contains(text, strconv.Quote(deviceName(arg))) {
			return bad
		}
	}
	return nil
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
