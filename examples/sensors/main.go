// Command sensors has a host that listens, and processes of a device that connect to it: each
// is a sensor that says its events in messages, and gives the log of all its readings as one
// transfer. The host subscribes to none of this: sensors come when they like, and wait in line.
//
//	go run ./examples/sensors
//	go run ./examples/sensors --sensors 20 --events 3 --address 'sim:?islands=4'
//
// Exit codes: 0 every log has the events that were said and no other, 1 failed, 2 bad input,
// 130 interrupted.
package main

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"io"

	"golang.org/x/sync/errgroup"

	"github.com/nfcomms/nfcomms/internal/command"
	"github.com/nfcomms/nfcomms/pkg/nfcomms"
	"github.com/nfcomms/nfcomms/pkg/program"
)

//go:embed device
var source embed.FS

// settings is the command line.
type settings struct {
	address         string
	sensors, events int
	above, readings int
}

func main() { command.Main("sensors", sensors) }

func sensors(ctx context.Context, args []string, stdout, stderr io.Writer) (err error) {
	s, err := parse(args, stderr)
	if err != nil {
		return err
	}
	dev, err := nfcomms.Open(ctx, s.address)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, dev.Close()) }()
	image, err := program.Build(ctx, source, program.Options{})
	if err != nil {
		return err
	}
	name, err := dev.Load(ctx, image)
	if err != nil {
		return err
	}
	reports, err := s.collect(ctx, dev, name)
	if err != nil {
		return err
	}
	for i, r := range reports {
		if err := r.print(stdout, i); err != nil {
			return err
		}
	}
	return nil
}

func parse(args []string, stderr io.Writer) (settings, error) {
	var s settings
	f := command.Flags("sensors")
	f.StringVar(&s.address, "address", "sim:", "device `address`")
	f.IntVar(&s.sensors, "sensors", 3, "`number` of sensors")
	f.IntVar(&s.events, "events", 2, "`number` of events after which a sensor has seen enough")
	f.IntVar(&s.above, "above", 65530, "a reading above this `value`, of 0 to 65535, is an event")
	f.IntVar(&s.readings, "readings", 1<<20, "`number` of readings after which a sensor ends anyway")
	err := command.Parse(f, args, stderr, "sensors [flags]    device processes that connect to a host that listens")
	switch {
	case err != nil:
		return s, err
	case s.sensors < 1 || s.sensors > 50:
		return s, command.Inputf("--sensors %d is not 1 to 50", s.sensors)
	case s.events < 1:
		return s, command.Inputf("--events %d is not positive", s.events)
	case s.above < 0 || s.above > 65535:
		return s, command.Inputf("--above %d is not 0 to 65535", s.above)
	case s.readings < 1 || s.readings > 1<<22:
		return s, command.Inputf("--readings %d is not 1 to %d", s.readings, 1<<22)
	}
	return s, command.NoArguments(f)
}

// collect listens, starts the sensors and takes what they report. The first error ends all.
func (s settings) collect(ctx context.Context, dev *nfcomms.Device, name string) (_ []report, err error) {
	l, err := dev.Listen(ctx, "")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, l.Close()) }()
	reports := make([]report, s.sensors)
	g, ctx := errgroup.WithContext(ctx)
	for range reports {
		g.Go(func() error { return runSensor(ctx, dev, name, l.Target()) })
	}
	g.Go(func() error {
		for i := range reports {
			ch, err := l.Accept(ctx)
			if err != nil {
				return err
			}
			g.Go(func() (err error) {
				reports[i], err = s.take(ctx, ch, i)
				return err
			})
		}
		return nil
	})
	return reports, g.Wait()
}

// outcome is a sensor's last message to the host that started it.
type outcome struct {
	Status int64 // an enum nfc_status, negated; 0: all went well
	Step   [24]byte
}

// errSensor means that a sensor says that it failed.
var errSensor = errors.New("a sensor failed")

// runSensor starts a sensor, which is told the target of the listener, and waits until it is
// done. Without its word a sensor that cannot connect would be waited for in Accept for ever.
func runSensor(ctx context.Context, dev *nfcomms.Device, name string, host nfcomms.Target) (err error) {
	p, err := dev.Run(ctx, nfcomms.Program{Name: name, Argument: uint64(host)})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, p.Close()) }()
	how, err := nfcomms.ChanOf[outcome](p.Channels[0]).Receive(ctx)
	if err != nil {
		return fmt.Errorf("a sensor that did not say how it ended: %w", err)
	}
	if how.Status != 0 {
		return fmt.Errorf("%w to %s: status %d of enum nfc_status", errSensor, text(how.Step[:]), -how.Status)
	}
	return nil
}
