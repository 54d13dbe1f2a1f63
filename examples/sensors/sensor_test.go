package main

import (
	"context"
	"log/slog"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/require"

	"github.com/nfcomms/nfcomms/internal/command"
	"github.com/nfcomms/nfcomms/internal/commandtest"
	"github.com/nfcomms/nfcomms/pkg/nfcomms"
	"github.com/nfcomms/nfcomms/pkg/program"
)

// load opens a device that has the program.
func load(t *testing.T, o ...nfcomms.Option) (dev *nfcomms.Device, name string) {
	t.Helper()
	dev, err := nfcomms.Open(t.Context(), "sim:", o...)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, dev.Close()) })
	image, err := program.Build(t.Context(), source, program.Options{})
	require.NoError(t, err)
	name, err = dev.Load(t.Context(), image)
	require.NoError(t, err)
	return dev, name
}

// lines are those of a log; what nobody takes is dropped.
type lines chan string

func (l lines) Write(line []byte) (int, error) {
	select {
	case l <- string(line):
	default:
	}
	return len(line), nil
}

// A sensor that finds no room at the host, which has 32 channels already, waits until another
// has done.
func TestWaitsForRoom(t *testing.T) {
	log := make(lines, 64)
	dev, name := load(t, nfcomms.WithLogger(slog.New(slog.NewTextHandler(log, nil))))
	l, err := dev.Listen(t.Context(), "")
	require.NoError(t, err)
	s := settings{above: 65000, events: 1, readings: 10}
	ran := make(chan error, 33)
	start := func() { ran <- runSensor(t.Context(), dev, name, l.Target()) }
	var connected []*nfcomms.Channel
	accept := func() {
		ch, err := l.Accept(t.Context())
		require.NoError(t, err)
		connected = append(connected, ch)
	}
	for range 32 {
		go start()
		accept()
	}
	go start()
	select {
	case err := <-ran:
		t.Fatal("it does not wait:", err)
	case line := <-log:
		require.Contains(t, line, "sensor waits for a place: status 15")
	}
	for i := range 33 {
		if i == 32 {
			accept()
		}
		_, err := s.take(t.Context(), connected[i], i)
		require.NoError(t, err)
		require.NoError(t, <-ran)
	}
	require.NoError(t, l.Close())
}

// A sensor whose host does not listen any more says so.
func TestHostThatDoesNotListen(t *testing.T) {
	dev, name := load(t)
	l, err := dev.Listen(t.Context(), "")
	require.NoError(t, err)
	require.NoError(t, l.Close())
	err = runSensor(t.Context(), dev, name, l.Target())
	require.ErrorIs(t, err, errSensor)
	require.ErrorContains(t, err, "to connect to the host: status 11")
}

// A sensor that waits in line hears it when the listener closes.
func TestListenerCloses(t *testing.T) {
	dev, name := load(t)
	l, err := dev.Listen(t.Context(), "")
	require.NoError(t, err)
	ran := make(chan error, 2)
	for range 2 {
		go func() { ran <- runSensor(t.Context(), dev, name, l.Target()) }()
	}
	ch, err := l.Accept(t.Context())
	require.NoError(t, err)
	require.NoError(t, ch.Close())
	require.ErrorContains(t, <-ran, "to hear what to do: status 1 ")
	require.NoError(t, l.Close())
	require.ErrorIs(t, <-ran, errSensor) // it waited, or came too late
}

// A program that is no sensor ends the wait for a connection.
func TestProgramThatIsNoSensor(t *testing.T) {
	dev, _ := load(t)
	image, err := program.Build(t.Context(), fstest.MapFS{"other.c": {Data: []byte(`#include "nfc_fw.h"
static void other(struct nfc_process *self) { channel_write(nfc_channel_of(self, 0), "?", 1); }
NFC_PROGRAMS({ NFC_PROGRAM_ABI, 0, "other", other });
`)}}, program.Options{})
	require.NoError(t, err)
	name, err := dev.Load(t.Context(), image)
	require.NoError(t, err)
	_, err = settings{sensors: 2}.collect(t.Context(), dev, name)
	require.ErrorContains(t, err, "a sensor that did not say how it ended")
}

// The host does not trust a sensor: another host, in its place, sends wrong messages.
func TestSensorsThatLie(t *testing.T) {
	s := settings{above: 10, events: 2, readings: 4}
	for name, lie := range map[string]struct {
		said []said
		log  []uint16
		err  error
	}{
		"well":           {said: []said{{Reading: 1, Value: 11}, {Log: 4}}, log: []uint16{10, 11}},
		"events":         {said: []said{{Reading: 0, Value: 11}, {Reading: 1, Value: 11}, {Reading: 2, Value: 11}}, err: errTooMuch},
		"large log":      {said: []said{{Log: 1 << 62}}, err: errTooMuch},
		"odd log":        {said: []said{{Log: 3}}, err: errTooMuch},
		"not in the log": {said: []said{{Reading: 1, Value: 12}, {Log: 4}}, log: []uint16{10, 11}, err: errDiffers},
		"behind the log": {said: []said{{Reading: 2, Value: 12}, {Log: 4}}, log: []uint16{10, 10}, err: errDiffers},
		"not said":       {said: []said{{Log: 4}}, log: []uint16{10, 11}, err: errDiffers},
		"goes":           {said: []said{{Reading: 1, Value: 11}}, err: nfcomms.ErrClosed},
	} {
		t.Run(name, func(t *testing.T) { require.ErrorIs(t, s.takeOf(t, lie.said, lie.log), lie.err) })
	}
}

// takeOf is what take returns of a host that connects, says this, gives the log and closes.
func (s settings) takeOf(t *testing.T, all []said, log []uint16) error {
	dev, err := nfcomms.Open(t.Context(), "sim:")
	require.NoError(t, err)
	defer func() { require.NoError(t, dev.Close()) }()
	l, err := dev.Listen(t.Context(), "")
	require.NoError(t, err)
	sensor, err := dev.Subscribe(t.Context(), l.Target())
	require.NoError(t, err)
	ch, err := l.Accept(t.Context())
	require.NoError(t, err)
	took := make(chan error, 1)
	go func() {
		_, err := s.take(t.Context(), ch, 7)
		took <- err
	}()
	o, err := nfcomms.ChanOf[order](sensor).Receive(t.Context())
	require.NoError(t, err)
	require.Equal(t, order{Number: 7, Above: 10, Events: 2, Readings: 4}, o)
	for _, m := range all {
		require.NoError(t, nfcomms.ChanOf[said](sensor).Send(t.Context(), m))
	}
	if log != nil {
		require.NoError(t, sensor.SendInd(t.Context(), log))
	}
	require.NoError(t, sensor.Close())
	return <-took
}

// An interrupt ends host and sensors, in either order of waiting.
func TestInterrupted(t *testing.T) {
	dev, name := load(t)
	ctx, cancel := context.WithCancel(t.Context())
	g := make(chan error, 1)
	l, err := dev.Listen(ctx, "")
	require.NoError(t, err)
	go func() { g <- runSensor(ctx, dev, name, l.Target()) }()
	ch, err := l.Accept(ctx)
	require.NoError(t, err)
	cancel() // the sensor waits for its order
	require.ErrorIs(t, <-g, context.Canceled)
	require.NoError(t, ch.Close())
	require.NoError(t, l.Close())

	code, out, errs := commandtest.Run(ctx, "sensors", sensors)
	require.Equal(t, command.ExitInterrupted, code)
	require.Empty(t, out)
	require.Equal(t, "sensors: interrupted\n", errs)
}
