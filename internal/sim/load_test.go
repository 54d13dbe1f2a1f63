//go:build cgo

package sim

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/nfcomms/nfcomms/bridge"
	"github.com/nfcomms/nfcomms/internal/bridgetest"
)

// build compiles testdata/answer.c, or another source there, with macros.
func build(t *testing.T, source string, macros ...string) []byte {
	t.Helper()
	object := filepath.Join(t.TempDir(), "program.so")
	firmware, err := filepath.Abs("../../firmware")
	require.NoError(t, err)
	args := []string{"-std=c11", "-O1", "-g", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC", "-DNFC_PROGRAM_SHARED",
		"-I" + firmware, "-o", object, filepath.Join("testdata", source)}
	for _, m := range macros {
		args = append(args, "-D"+m)
	}
	out, err := exec.Command("gcc", args...).CombinedOutput()
	require.NoError(t, err, "gcc (install it with: apt-get install gcc): %s", out)
	image, err := os.ReadFile(object)
	require.NoError(t, err)
	return image
}

// Marks of images in place of the value that each test needs; as long as a name may be.
const (
	firstMark  = "11111111111111111111111"
	secondMark = "22222222222222222222222"
	tagMark    = 0x5ca1ab1e0ddba115
)

// answererImage is built once: gcc is slow beside a test that loads hundreds of images.
var answererImage []byte

// answerers makes an image with two programs that answer with tag.
func answerers(t *testing.T, first, second string, tag int) []byte {
	t.Helper()
	if answererImage == nil {
		answererImage = build(t, "answer.c", fmt.Sprintf("FIRST=%q", firstMark), fmt.Sprintf("SECOND=%q", secondMark),
			fmt.Sprintf("TAG=%#x", uint64(tagMark)))
	}
	image := bytes.Clone(answererImage)
	for mark, value := range map[string]string{
		firstMark: first, secondMark: second, number(tagMark): number(uint64(tag)),
	} {
		padded := append([]byte(value), make([]byte, len(mark)-len(value))...)
		require.Equal(t, 1, bytes.Count(image, []byte(mark)))
		image = bytes.Replace(image, []byte(mark), padded, 1)
	}
	return image
}

func number(n uint64) string { return string(binary.LittleEndian.AppendUint64(nil, n)) }

// answerer makes an image for one program; the other is named after it.
func answerer(t *testing.T, name string, tag int) []byte {
	t.Helper()
	return answerers(t, name, name+"'", tag)
}

// answerTo starts a process of a program and asks it n times; it returns the tag and
// count of the last answer, and the process, which continues.
func answerTo(ctx context.Context, t *testing.T, dev bridge.Device, name string, n int) (tag, count uint64, p bridge.Process) {
	t.Helper()
	p, err := dev.Start(ctx, bridge.Program{Name: name, Targets: 1})
	require.NoError(t, err)
	ch, err := dev.Subscribe(ctx, p.First)
	require.NoError(t, err)
	for range n {
		tag, count = ask(ctx, t, ch)
	}
	return tag, count, p
}

func ask(ctx context.Context, t *testing.T, ch bridge.Channel) (tag, count uint64) {
	t.Helper()
	var answer [56]byte
	require.NoError(t, ch.Send(ctx, nil))
	n, err := ch.Receive(ctx, answer[:])
	require.NoError(t, err)
	require.Equal(t, 16, n)
	return binary.LittleEndian.Uint64(answer[:]), binary.LittleEndian.Uint64(answer[8:])
}

func load(ctx context.Context, t *testing.T, dev bridge.Device, image []byte) string {
	t.Helper()
	name, err := dev.Load(ctx, image)
	require.NoError(t, err)
	return name
}

// TestLoadRunsTheImageGiven: images of the same program name on two devices, and of
// two names on one device, each run their own code.
func TestLoadRunsTheImageGiven(t *testing.T) {
	bridgetest.LeakCheck(t)
	ctx := within(t)
	a, b := openDevice(t, ""), openDevice(t, "")
	defer a.Close()
	defer b.Close()
	for i, dev := range []bridge.Device{a, b} {
		require.Equal(t, "answer", load(ctx, t, dev, answerer(t, "answer", 10+i)))
		tag, count, _ := answerTo(ctx, t, dev, "answer", 1)
		require.EqualValues(t, 10+i, tag)
		require.EqualValues(t, 1, count)
	}
	require.Equal(t, "second", load(ctx, t, a, answerer(t, "second", 12)))
	tag, _, _ := answerTo(ctx, t, a, "second", 1)
	require.EqualValues(t, 12, tag)
	tag, _, _ = answerTo(ctx, t, a, "answer", 1)
	require.EqualValues(t, 10, tag)
}

// TestLoadSharesNoStatics: devices that loaded the same image have its statics each
// for themselves; processes of one device share them.
func TestLoadSharesNoStatics(t *testing.T) {
	ctx := within(t)
	image := answerer(t, "answer", 1)
	for range 2 {
		dev := openDevice(t, "")
		defer dev.Close()
		load(ctx, t, dev, image)
		_, count, _ := answerTo(ctx, t, dev, "answer", 3)
		require.EqualValues(t, 3, count)
		_, count, _ = answerTo(ctx, t, dev, "answer", 1)
		require.EqualValues(t, 4, count)
	}
}

// TestResetDropsLoadedPrograms: after Reset only the firmware's own programs are
// there, and what is loaded then is new, statics and all.
func TestResetDropsLoadedPrograms(t *testing.T) {
	ctx := within(t)
	dev := openDevice(t, "")
	defer dev.Close()
	own, err := dev.Programs(ctx)
	require.NoError(t, err)
	for i := range 80 { // more often than a device has places for programs
		load(ctx, t, dev, answerer(t, "answer", i))
		tag, count, _ := answerTo(ctx, t, dev, "answer", 1)
		require.EqualValues(t, i, tag)
		require.EqualValues(t, 1, count)
		require.NoError(t, dev.Reset(ctx))
		_, err = dev.Start(ctx, bridge.Program{Name: "answer", Targets: 1})
		require.ErrorIs(t, err, bridge.ErrNoProgram)
		names, err := dev.Programs(ctx)
		require.NoError(t, err)
		require.Equal(t, own, names)
	}
}

// TestLoadsAtOnce: six devices, and six callers of one device, load six images at the
// same time, and each of them runs what it was given.
func TestLoadsAtOnce(t *testing.T) {
	const each = 6
	ctx := within(t)
	var images [each][]byte
	for i := range images {
		images[i] = answerer(t, fmt.Sprintf("answer%d", i), i)
	}
	one := openDevice(t, "islands=2&managers=2")
	defer one.Close()
	for name, pick := range map[string]func(i int) bridge.Device{
		"several devices": func(int) bridge.Device {
			dev := openDevice(t, "")
			t.Cleanup(func() { dev.Close() })
			return dev
		},
		"one device": func(int) bridge.Device { return one },
	} {
		t.Run(name, func(t *testing.T) {
			var all sync.WaitGroup
			for i, image := range images {
				dev := pick(i)
				all.Go(func() {
					name, err := dev.Load(ctx, image)
					if assert.NoError(t, err) {
						tag, _, _ := answerTo(ctx, t, dev, name, 1)
						assert.EqualValues(t, i, tag)
					}
				})
			}
			all.Wait()
		})
	}
}

// TestLoadReplaces: a program loaded again under its name is the new one for processes
// that start from then on; those that run continue with the old one, and its image stays
// until the last of them has ended.
func TestLoadReplaces(t *testing.T) {
	bridgetest.LeakCheck(t)
	ctx := within(t)
	dev := openDevice(t, "islands=2&managers=2")
	defer dev.Close()
	load(ctx, t, dev, answerer(t, "answer", 1))
	old, err := dev.Start(ctx, bridge.Program{Name: "answer", Targets: 1})
	require.NoError(t, err)
	ch, err := dev.Subscribe(ctx, old.First)
	require.NoError(t, err)
	ask(ctx, t, ch)
	before := mapped(t)
	for i := 2; i < 80; i++ { // more often than a device has places for programs
		load(ctx, t, dev, answerer(t, "answer", i))
		tag, count, p := answerTo(ctx, t, dev, "answer", 1)
		require.EqualValues(t, i, tag)
		require.EqualValues(t, 1, count)
		require.NoError(t, dev.Stop(ctx, p.ID))
		tag, count = ask(ctx, t, ch)
		require.EqualValues(t, 1, tag)
		require.EqualValues(t, i, count)
	}
	require.Equal(t, before+1, mapped(t), "images: the old one, which runs, and the last one")
	require.NoError(t, dev.Stop(ctx, old.ID))
	require.Equal(t, before, mapped(t))
}

// mapped counts the images that are mapped.
func mapped(t *testing.T) int {
	t.Helper()
	text, err := os.ReadFile("/proc/self/maps")
	require.NoError(t, err)
	inodes := map[string]bool{}
	for line := range bytes.Lines(text) {
		if f := bytes.Fields(line); len(f) > 5 && bytes.HasPrefix(f[5], []byte("/memfd:nfc-program")) {
			inodes[string(f[4])] = true
		}
	}
	return len(inodes)
}

// TestRefusedLoadChangesNothing: an image of which one name cannot be had registers
// none, and refusals use nothing up.
func TestRefusedLoadChangesNothing(t *testing.T) {
	ctx := within(t)
	dev := openDevice(t, "")
	defer dev.Close()
	before, err := dev.Programs(ctx)
	require.NoError(t, err)
	images := mapped(t)
	for second, want := range map[string]error{
		"loopback": bridge.ErrBusy, // the firmware's own
		"":         bridge.ErrInvalid,
		"first":    bridge.ErrInvalid, // twice in one image
	} {
		image := answerers(t, "first", second, 1)
		for range 70 {
			_, err := dev.Load(ctx, image)
			require.ErrorIs(t, err, want, second)
		}
	}
	after, err := dev.Programs(ctx)
	require.NoError(t, err)
	require.Equal(t, before, after)
	require.Equal(t, images, mapped(t))
	for i := range 25 {
		load(ctx, t, dev, answerer(t, fmt.Sprintf("answer%d", i), i))
	}
}

// TestLoadOfATruncatedImage: an upload that was cut short is refused, wherever it was.
func TestLoadOfATruncatedImage(t *testing.T) {
	ctx := within(t)
	dev := openDevice(t, "")
	defer dev.Close()
	image := answerer(t, "answer", 1)
	sections := binary.LittleEndian.Uint64(image[40:]) // not needed to run it
	for n := 1; n < int(sections)-1; n += 101 {
		if _, err := dev.Load(ctx, image[:n]); err != nil {
			require.ErrorIs(t, err, bridge.ErrInvalid, "%d of %d bytes", n, len(image))
		}
	}
}
