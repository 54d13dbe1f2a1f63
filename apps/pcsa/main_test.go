package main

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/xml"
	"errors"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/gopacket/gopacket"
	"github.com/gopacket/gopacket/layers"
	"github.com/gopacket/gopacket/pcapgo"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/nfcomms/nfcomms/internal/command"
	"github.com/nfcomms/nfcomms/internal/commandtest"
	"github.com/nfcomms/nfcomms/pkg/nfcomms"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// cli runs a command line and returns what it printed.
func cli(ctx context.Context, args ...string) (code int, stdout, stderr string) {
	return commandtest.Run(ctx, "pcsa", pcsa, args...)
}

func TestPCSA(t *testing.T) {
	svg := filepath.Join(t.TempDir(), "errors.svg")
	code, out, errs := cli(t.Context(), "--flows", "25000", "--seeds", "3", "--consumers", "5", "--svg", svg)
	require.Equal(t, command.ExitOK, code, errs)
	require.Empty(t, errs, "quiet in a pipe")
	require.Contains(t, out, "31250 packets with 25000 flows in a stream, 0 without one; 5 consumers, 2048 sketches")
	require.Contains(t, out, "error over 3 seeds")
	require.Contains(t, out, "verified: the device's sketches are those that Go computes, in all of 3 streams")
	require.Contains(t, out, "sketches; simulated device\n")
	text, err := os.ReadFile(svg)
	require.NoError(t, err)
	require.NoError(t, xml.Unmarshal(text, new(struct{ XMLName xml.Name })))
	require.Equal(t, 6, strings.Count(string(text), "<circle"))
}

// TestOneFlow has more consumers than a small device has contexts.
func TestOneFlow(t *testing.T) {
	code, out, errs := cli(t.Context(), "--address", "sim:?islands=2&contexts=1", "--consumers", "50", "--flows", "1", "--packets", "9", "--seeds", "1")
	require.Equal(t, command.ExitOK, code, errs)
	require.Contains(t, out, "9 packets with 1 flows in a stream")
	require.Contains(t, out, "the estimate is too high")
}

// TestErrorsAreThoseOfTheory has Go count what the device would: over seeds the error
// is below 2 %.
func TestErrorsAreThoseOfTheory(t *testing.T) {
	const streams, flows = 40, 25_000
	var errs []float64
	for seed := range uint64(streams) {
		var p peers
		in, find := newTraffic(flows, flows, seed), keys{}
		for frame, err := in.next(); err == nil; frame, err = in.next() {
			k, is := find.of(frame)
			require.True(t, is)
			p.update(&k)
		}
		errs = append(errs, estimate(p.sum(), sketches)/flows-1)
	}
	require.Less(t, rms(errs), 0.02)
	require.InDelta(t, 0.0172, theory(sketches), 0.0001)
}

// captured writes frames to a file and returns its name.
func captured(t *testing.T, link layers.LinkType, frames ...[]byte) string {
	t.Helper()
	var b bytes.Buffer
	w := pcapgo.NewWriter(&b)
	require.NoError(t, w.WriteFileHeader(1<<16, link))
	for _, f := range frames {
		info := gopacket.CaptureInfo{Timestamp: time.Unix(1, 0), CaptureLength: len(f), Length: len(f)}
		require.NoError(t, w.WritePacket(info, f))
	}
	return write(t, b.Bytes())
}

func write(t *testing.T, text []byte) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "x.pcap")
	require.NoError(t, os.WriteFile(path, text, 0o600))
	return path
}

// made serialises a packet.
func made(t *testing.T, parts ...gopacket.SerializableLayer) []byte {
	t.Helper()
	b := gopacket.NewSerializeBuffer()
	require.NoError(t, gopacket.SerializeLayers(b, gopacket.SerializeOptions{FixLengths: true}, parts...))
	return b.Bytes()
}

// kinds are frames of many kinds; each is a flow of its own, but for the last two,
// which have none.
func kinds(t *testing.T) [][]byte {
	t.Helper()
	ethernet := func(kind layers.EthernetType) *layers.Ethernet {
		return &layers.Ethernet{SrcMAC: make([]byte, 6), DstMAC: make([]byte, 6), EthernetType: kind}
	}
	ip4 := func(p layers.IPProtocol) *layers.IPv4 {
		return &layers.IPv4{Version: 4, TTL: 9, Protocol: p, SrcIP: []byte{1, 2, 3, 4}, DstIP: []byte{5, 6, 7, 8}}
	}
	ip6 := func(p layers.IPProtocol) *layers.IPv6 {
		return &layers.IPv6{Version: 6, NextHeader: p, SrcIP: bytes.Repeat([]byte{1}, 16), DstIP: bytes.Repeat([]byte{2}, 16)}
	}
	fragment := ip4(layers.IPProtocolUDP)
	fragment.FragOffset = 3
	options := ip4(layers.IPProtocolTCP)
	options.Options = []layers.IPv4Option{{OptionType: 7, OptionLength: 7, OptionData: make([]byte, 5)}}
	e4, e6 := ethernet(layers.EthernetTypeIPv4), ethernet(layers.EthernetTypeIPv6)
	return [][]byte{
		made(t, e4, ip4(layers.IPProtocolUDP), &layers.UDP{SrcPort: 1, DstPort: 2}, gopacket.Payload("x")),
		made(t, e4, ip4(layers.IPProtocolTCP), &layers.TCP{SrcPort: 1, DstPort: 2}),
		made(t, e4, options, &layers.TCP{SrcPort: 3, DstPort: 4}, gopacket.Payload(make([]byte, 1400))),
		made(t, e4, fragment, gopacket.Payload(make([]byte, 24))),
		made(t, e4, ip4(layers.IPProtocolICMPv4), gopacket.Payload(make([]byte, 8))),
		made(t, ethernet(layers.EthernetTypeDot1Q), &layers.Dot1Q{VLANIdentifier: 5, Type: layers.EthernetTypeIPv4},
			ip4(layers.IPProtocolUDP), &layers.UDP{SrcPort: 8, DstPort: 2}),
		made(t, e6, ip6(layers.IPProtocolUDP), &layers.UDP{SrcPort: 1, DstPort: 2}),
		made(t, e6, ip6(layers.IPProtocolTCP), &layers.TCP{SrcPort: 1, DstPort: 2}),
		made(t, e6, ip6(layers.IPProtocolIPv6HopByHop), gopacket.Payload(make([]byte, 16))),
		made(t, ethernet(layers.EthernetTypeARP), gopacket.Payload(make([]byte, 28))),
		{1, 2, 3},
	}
}

func TestCapture(t *testing.T) {
	frames := kinds(t)
	code, out, errs := cli(t.Context(), "--pcap", captured(t, layers.LinkTypeEthernet, append(frames, frames...)...))
	require.Equal(t, command.ExitOK, code, errs)
	require.Contains(t, out, "18 packets with 9 flows in a stream, 4 without one")
	require.Contains(t, out, "verified")
	code, out, errs = cli(t.Context(), "--pcap", captured(t, layers.LinkTypeEthernet))
	require.Equal(t, command.ExitOK, code, errs)
	require.Contains(t, out, "0 packets with 0 flows")

	path := filepath.Join(t.TempDir(), "x.pcapng")
	f, err := os.Create(path)
	require.NoError(t, err)
	w, err := pcapgo.NewNgWriter(f, layers.LinkTypeEthernet)
	require.NoError(t, err)
	for _, frame := range frames {
		require.NoError(t, w.WritePacket(gopacket.CaptureInfo{CaptureLength: len(frame), Length: len(frame)}, frame))
	}
	require.NoError(t, w.Flush())
	require.NoError(t, f.Close())
	code, out, errs = cli(t.Context(), "--pcap", path)
	require.Equal(t, command.ExitOK, code, errs)
	require.Contains(t, out, "9 packets with 9 flows")
}

// scrambled is a stream of frames with random bytes changed and cut off.
type scrambled struct {
	frames [][]byte
	left   int
	draw   *rand.Rand
}

func (s *scrambled) next() ([]byte, error) {
	if s.left--; s.left < 0 {
		return nil, io.EOF
	}
	f := bytes.Clone(s.frames[s.draw.IntN(len(s.frames))])
	f = f[:min(len(f), snap)]
	for range s.draw.IntN(4) {
		f[s.draw.IntN(len(f))] = byte(s.draw.Uint32())
	}
	return f[:s.draw.IntN(len(f)+1)], nil
}

func (s *scrambled) Close() error { return nil }

// TestScrambledPackets: whatever a packet holds, the device and the packet library
// find the same flow in it.
func TestScrambledPackets(t *testing.T) {
	dev, err := nfcomms.Open(t.Context(), "sim:")
	require.NoError(t, err)
	defer dev.Close()
	d, err := load(t.Context(), dev, 3)
	require.NoError(t, err)
	frames := kinds(t)
	r, err := count(t.Context(), d, func() (packets, error) {
		return &scrambled{frames, 20_000, rand.New(rand.NewPCG(1, 1))}, nil
	})
	require.NoError(t, err)
	require.NoError(t, r.check())
	require.Greater(t, r.peers.exact(), uint64(1000))
	r.peers.sketch[0] ^= 1
	require.ErrorIs(t, r.check(), errDiffer)
	require.NoError(t, d.close())
}

func TestBadInput(t *testing.T) {
	text, err := os.ReadFile(captured(t, layers.LinkTypeEthernet, kinds(t)...))
	require.NoError(t, err)
	huge := bytes.Clone(text[:40])
	binary.LittleEndian.PutUint32(huge[24+8:], 1<<31)
	for args, says := range map[string]string{
		"--pcap " + write(t, text[:len(text)-1]):              "is torn after 10 packets",
		"--pcap " + write(t, text[:24+5]):                     "is torn after 0 packets",
		"--pcap " + write(t, huge):                            "is torn after 0 packets",
		"--pcap " + write(t, text[:20]):                       "is no capture of packets",
		"--pcap " + write(t, nil):                             "is no capture of packets",
		"--pcap " + write(t, []byte{10, 13, 13, 10, 0}):       "is no capture of packets",
		"--pcap " + write(t, []byte(strings.Repeat("z", 99))): "is no capture of packets",
		"--pcap " + captured(t, layers.LinkTypeIEEE802_11):    "only Ethernet is known",
		"--pcap /none/there":                                  "no such file",
		"--flows 0":                                           "--flows 0 is not",
		"--flows 9 --packets 8":                               "--packets 8 is not 9",
		"--seeds 0":                                           "--seeds 0 is not",
		"--consumers 0":                                       "--consumers 0 is not",
		"--address card:0":                                    `"card"`,
		"x":                                                   `"x" is no flag`,
		"--flows 1 --seeds 1 --svg /none/there/x":             "no such file",
	} {
		code, _, errs := cli(t.Context(), strings.Fields(args)...)
		require.Equal(t, command.ExitInput, code, "%s: %s", args, errs)
		require.Contains(t, errs, says)
		require.Equal(t, 1, strings.Count(errs, "\n"), errs)
	}
	for address, says := range map[string]string{
		"sim:?cls=4KiB": "no room for the sketches", "sim:?emem=1MiB": "no room for a batch",
	} {
		code, _, errs := cli(t.Context(), "--address", address, "--flows", "90000", "--seeds", "1")
		require.Equal(t, command.ExitFailed, code)
		require.Contains(t, errs, says)
		require.Equal(t, 1, strings.Count(errs, "\n"), errs)
	}
	code, out, errs := cli(t.Context(), "--help")
	require.Equal(t, command.ExitOK, code)
	require.Empty(t, out)
	require.Contains(t, errs, "usage: pcsa")
}

// endless is a stream that ends a context.
type endless struct {
	packets
	left int
	end  func()
}

func (e *endless) next() ([]byte, error) {
	if e.left--; e.left == 0 {
		e.end()
	}
	return e.packets.next()
}

// TestInterrupted: a stream that is interrupted leaves nothing behind, nor does one of
// a program that has ended.
func TestInterrupted(t *testing.T) {
	for _, end := range []string{"context", "reset"} {
		dev, err := nfcomms.Open(t.Context(), "sim:")
		require.NoError(t, err)
		d, err := load(t.Context(), dev, 8)
		require.NoError(t, err)
		ctx, cancel := context.WithCancelCause(t.Context())
		stop := errors.New("enough")
		in := &endless{newTraffic(1000, 1<<30, 1), 100_000, func() { cancel(stop) }}
		want := stop
		if end == "reset" {
			in.end = func() { require.NoError(t, dev.Reset(ctx)) }
			want = nfcomms.ErrDeviceLost
		}
		_, _, err = d.count(ctx, in)
		require.ErrorIs(t, err, want)
		require.NoError(t, d.close())
		require.NoError(t, dev.Close())
		cancel(nil)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	code, _, errs := cli(ctx)
	require.Equal(t, command.ExitInterrupted, code)
	require.Equal(t, "pcsa: interrupted\n", errs)
}
