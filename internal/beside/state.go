package beside

import (
	"context"
	"os"
	"testing"
	"testing/fstest"
	"time"

	"github.com/nfcomms/nfcomms/pkg/nfcomms"
	"github.com/nfcomms/nfcomms/pkg/program"
)

// still is a program that does not call the firmware until a pipe is closed, whose number is its argument.
const still = `#include "nfc_fw.h"

static long read_byte(uint64_t fd)
{
	char byte;
#ifdef __x86_64__
	long rc;

	__asm__ volatile("syscall" : "=a"(rc) : "0"(0L), "D"(fd), "S"(&byte), "d"(1L) : "rcx", "r11", "memory");
	return rc;
#else
	register long number __asm__("x8") = 63, first __asm__("x0") = (long)fd;
	register long second __asm__("x1") = (long)&byte, third __asm__("x2") = 1;

	__asm__ volatile("svc 0" : "+r"(first) : "r"(number), "r"(second), "r"(third) : "memory");
	return first;
#endif
}

static void still_main(struct nfc_process *self)
{
	while (read_byte(nfc_argument(self)) == -4) /* a signal */
		;
}

NFC_PROGRAMS({ NFC_PROGRAM_ABI, 0, "still", still_main });
`

// Computing returns a state in which a process of each device keeps its island to itself. The devices
// are of this process.
func Computing(t *testing.T) func(all []*World) (leave func()) {
	image := buildStill(t)
	return func(all []*World) (leave func()) {
		r, w, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		compute(t, all, image, uint64(r.Fd()))
		return func() {
			_ = w.Close()
			t.Cleanup(func() { _ = r.Close() }) // they may read it for a while
		}
	}
}

// ComputingElsewhere is [Computing] for devices of other processes, whose standard input is a pipe that
// stays open until they are killed.
func ComputingElsewhere(t *testing.T) func(all []*World) (leave func()) {
	image := buildStill(t)
	return func(all []*World) (leave func()) {
		compute(t, all, image, 0)
		return func() {}
	}
}

func buildStill(t *testing.T) []byte {
	image, err := program.Build(t.Context(), fstest.MapFS{"still.c": {Data: []byte(still), Mode: 0o600}}, program.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return image
}

// compute has a process of each device keep its island.
func compute(t *testing.T, all []*World, image []byte, fd uint64) {
	for _, w := range all {
		if err := w.compute(image, fd); err != nil {
			t.Fatal(err)
		}
	}
}

// compute has a process of the device keep its island.
func (w *World) compute(image []byte, fd uint64) error {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	dev := w.Device()
	_, err := dev.Load(ctx, image)
	if err == nil {
		_, err = dev.Start(ctx, nfcomms.Program{Name: "still", Targets: 1, Argument: fd})
	}
	return err
}

// Device returns the device of a world that [OpenDevice] returned.
func (w *World) Device() *nfcomms.Device { return w.Objects[0].Value.(*nfcomms.Device) }

// Full is a state in which every device has no context for a process left but so many that another state
// needs, which it enters, and on every channel of its processes as much waits as can. With few slots its
// rings are full as well.
func Full(spare int, enter func([]*World) func()) func([]*World) func() {
	return func(all []*World) func() {
		var channels []*nfcomms.Channel
		for _, w := range all {
			channels = append(channels, w.occupy(spare)...)
		}
		leave := enter(all)
		ctx, cancel := context.WithCancel(context.Background())
		var waiting []*nfcomms.Future
		for _, ch := range channels {
			for range 3 { // the process has one, another is offered, a third waits for that
				waiting = append(waiting, nfcomms.SendCase(ch, []byte("full")).Start(ctx))
			}
		}
		return func() {
			leave()
			cancel()
			for _, f := range waiting {
				<-f.Done()
			}
		}
	}
}

// Serving is the state of a device that works.
func Serving([]*World) (leave func()) { return func() {} }

// occupy starts processes until there are no contexts but the spare ones, and returns their channels, which
// end with the device.
func (w *World) occupy(spare int) (channels []*nfcomms.Channel) {
	var running []*nfcomms.Instance
	for {
		i, err := w.Device().Run(context.Background(), nfcomms.Program{Name: "loopback", Targets: 4})
		if err != nil {
			break
		}
		running = append(running, i)
	}
	spare = min(spare, len(running))
	for _, i := range running[:spare] {
		_ = i.Close() // a device that was lost has none
	}
	for _, i := range running[spare:] {
		channels = append(channels, i.Channels...)
	}
	return channels
}

// Resetting is a state in which every device is being reset, after it entered another.
func Resetting(enter func([]*World) func()) func([]*World) func() {
	return during(enter, func(d *nfcomms.Device) { _ = d.Reset(context.Background()) })
}

// Closing is a state in which every device is being closed, after it entered another.
func Closing(enter func([]*World) func()) func([]*World) func() {
	return during(enter, func(d *nfcomms.Device) { _ = d.Close() })
}

// during is a state in which a call of each device is under way.
func during(enter func([]*World) func(), call func(*nfcomms.Device)) func([]*World) func() {
	return func(all []*World) func() {
		leave := enter(all)
		done := make(chan struct{}, len(all))
		for _, w := range all {
			go func() {
				call(w.Device())
				done <- struct{}{}
			}()
		}
		return func() {
			leave()
			for range all {
				<-done
			}
		}
	}
}
