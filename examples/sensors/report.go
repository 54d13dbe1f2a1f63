package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/nfcomms/nfcomms/pkg/nfcomms"
)

// order is what the host tells a sensor that it has accepted.
type order struct{ Number, Above, Events, Readings uint64 }

// said is what a sensor says: an event, or how many bytes of log it offers now.
type said struct {
	Reading, Value uint64
	Log            uint64 // 0: this is an event
}

// event is a reading above the limit.
type event struct{ reading, value uint64 }

// report is what came of a sensor.
type report struct {
	events []event
	log    []uint16 // all readings
}

// Errors of a sensor.
var (
	errTooMuch = errors.New("more than it was asked for")
	errDiffers = errors.New("log and events differ")
)

// take hears the sensor that connected, and closes its channel.
func (s settings) take(ctx context.Context, ch *nfcomms.Channel, number int) (r report, err error) {
	defer func() {
		if err = errors.Join(err, ch.Close()); err != nil {
			err = fmt.Errorf("sensor %d: %w", number, err)
		}
	}()
	o := order{Number: uint64(number), Above: uint64(s.above), Events: uint64(s.events), Readings: uint64(s.readings)}
	if err := nfcomms.ChanOf[order](ch).Send(ctx, o); err != nil {
		return r, err
	}
	size, err := r.hear(ctx, ch, s.events)
	if err != nil {
		return r, err
	}
	if size%2 != 0 || size/2 > o.Readings {
		return r, fmt.Errorf("a log of %d bytes: %w", size, errTooMuch)
	}
	r.log = make([]uint16, size/2)
	if _, err := ch.ReceiveInd(ctx, r.log); err != nil {
		return r, err
	}
	return r, r.check(o.Above)
}

// hear takes events until the sensor says how large its log is.
func (r *report) hear(ctx context.Context, ch *nfcomms.Channel, most int) (log uint64, err error) {
	for {
		m, err := nfcomms.ChanOf[said](ch).Receive(ctx)
		switch {
		case err != nil:
			return 0, err
		case m.Log != 0:
			return m.Log, nil
		case len(r.events) == most:
			return 0, fmt.Errorf("event %d: %w", most+1, errTooMuch)
		}
		r.events = append(r.events, event{m.Reading, m.Value})
	}
}

// check holds the log to the events: both have the same readings above the limit.
func (r *report) check(above uint64) error {
	events := r.events
	for i, v := range r.log {
		if uint64(v) <= above {
			continue
		}
		if len(events) == 0 || events[0] != (event{uint64(i), uint64(v)}) {
			return fmt.Errorf("reading %d is %d, and was not said: %w", i, v, errDiffers)
		}
		events = events[1:]
	}
	if len(events) != 0 {
		return fmt.Errorf("reading %d is said to be %d: %w", events[0].reading, events[0].value, errDiffers)
	}
	return nil
}

func (r *report) print(to io.Writer, number int) error {
	var b bytes.Buffer
	for _, e := range r.events {
		fmt.Fprintf(&b, "sensor %d: event: reading %d is %d\n", number, e.reading, e.value)
	}
	fmt.Fprintf(&b, "sensor %d: log of %d bytes has these %d events and no other\n", number, 2*len(r.log), len(r.events))
	_, err := to.Write(b.Bytes())
	return err
}

// text is what a string of C says.
func text(c []byte) string {
	s, _, _ := bytes.Cut(c, []byte{0})
	return string(s)
}
