//go:build cgo

package fabric_test

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"log"
	"testing/fstest"

	"github.com/nfcomms/nfcomms/pkg/nfcomms"
	"github.com/nfcomms/nfcomms/pkg/nfcomms/fabric"
	"github.com/nfcomms/nfcomms/pkg/program"
)

// check ends an example that does not work.
func check(err error) {
	if err != nil {
		log.Panic(err)
	}
}

// counterC counts messages in device memory, and says how hosts reach the count.
const counterC = `
#include "nfc_fw.h"

static void counter_main(struct nfc_process *self)
{
	struct nfc_channel *ch = nfc_channel_of(self, 0);
	uint64_t memory = nfc_alloc(self, NFC_EMEM, 8), key, message;
	uint64_t *count = nfc_at(self, memory, 8);

	if (nfc_window(self, memory, 8, NFC_WINDOW_READ | NFC_WINDOW_WRITE, &key))
		return;
	channel_write(ch, &key, sizeof(key));
	while (channel_read(ch, &message, sizeof(message)) >= 0) {
		++*count;
		channel_write(ch, count, sizeof(*count));
	}
}

NFC_PROGRAMS({ NFC_PROGRAM_ABI, 0, "counter", counter_main });
`

// A window of device memory: a program that has its key reads and writes it from any node, while the
// process there does something else.
func ExampleFabric_window() {
	ctx := context.Background()
	dev, err := nfcomms.Open(ctx, "sim:?torus=3x1x1")
	check(err)
	defer dev.Close()
	far, err := fabric.Device(ctx, dev, fabric.At(2, 0, 0))
	check(err)
	image, err := program.Build(ctx, fstest.MapFS{"counter.c": {Data: []byte(counterC)}}, program.Options{})
	check(err)
	name, err := far.Load(ctx, image)
	check(err)
	p, err := far.Run(ctx, nfcomms.Program{Name: name})
	check(err)
	ch := p.Channels[0]
	key, count := make([]byte, 8), make([]byte, 8)
	_, err = ch.Receive(ctx, key)
	check(err)
	window := fabric.Window{Node: fabric.At(2, 0, 0), Key: binary.LittleEndian.Uint64(key)}

	binary.LittleEndian.PutUint64(count, 41)
	check(fabric.Of(dev).Put(ctx, window, 0, count))
	check(ch.Send(ctx, []byte("one more")))
	_, err = ch.Receive(ctx, count)
	check(err)
	clear(count)
	check(fabric.Of(dev).Get(ctx, window, 0, count))
	fmt.Println(binary.LittleEndian.Uint64(count))
	err = fabric.Of(dev).Get(ctx, window, 1, count)
	fmt.Println(errors.Is(err, nfcomms.ErrRange))
	// Output:
	// 42
	// true
}

// A window of memory of this process: a program at any node that knows its key puts there.
func ExampleFabric_hostWindow() {
	ctx := context.Background()
	dev, err := nfcomms.Open(ctx, "sim:?torus=3x1x1")
	check(err)
	defer dev.Close()
	memory, err := dev.Alloc(4096)
	check(err)
	window, err := fabric.Of(dev).Window(ctx, memory.Bytes(), fabric.Write)
	check(err)

	check(fabric.Of(dev).Put(ctx, window.Remote(), 100, []byte("hello")))
	fmt.Printf("%s\n", memory.Bytes()[100:105])
	window.Revoke()
	err = fabric.Of(dev).Put(ctx, window.Remote(), 100, []byte("never"))
	fmt.Printf("%s %v\n", memory.Bytes()[100:105], errors.Is(err, nfcomms.ErrNotSubscribed))
	// Output:
	// hello
	// hello true
}
