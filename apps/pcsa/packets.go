package main

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/gopacket/gopacket"
	"github.com/gopacket/gopacket/layers"
	"github.com/gopacket/gopacket/pcapgo"

	"github.com/nfcomms/nfcomms/internal/command"
)

// snap is how many bytes of a packet go to the device: all headers that matter.
const snap = 128

// packets is a stream of Ethernet frames. next returns one of at most snap bytes,
// which is valid until it is called again, or io.EOF.
type packets interface {
	next() ([]byte, error)
	io.Closer
}

// capture is a file of packets.
type capture struct {
	path  string
	file  *os.File
	read  func() ([]byte, gopacket.CaptureInfo, error)
	taken int
}

// openCapture opens a pcap or pcapng file of Ethernet frames.
func openCapture(path string) (packets, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, command.InputError{Err: err}
	}
	c := &capture{path: path, file: f}
	if err := c.begin(); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return c, nil
}

// begin reads the head of the file, which says of what kind it is.
func (c *capture) begin() error {
	in := bufio.NewReaderSize(c.file, 1<<20)
	magic, _ := in.Peek(4) // what is shorter is an error of the reader
	var link layers.LinkType
	if bytes.Equal(magic, []byte{0x0a, 0x0d, 0x0d, 0x0a}) {
		r, err := pcapgo.NewNgReader(in, pcapgo.DefaultNgReaderOptions)
		if err != nil {
			return command.Inputf("%s is no capture of packets: %w", c.path, err)
		}
		link, c.read = r.LinkType(), r.ZeroCopyReadPacketData
	} else {
		r, err := pcapgo.NewReader(in)
		if err != nil {
			return command.Inputf("%s is no capture of packets: %w", c.path, err)
		}
		link, c.read = r.LinkType(), r.ZeroCopyReadPacketData
	}
	if link != layers.LinkTypeEthernet {
		return command.Inputf("%s has packets of link type %v; only Ethernet is known", c.path, link)
	}
	return nil
}

func (c *capture) next() ([]byte, error) {
	data, _, err := c.read()
	switch {
	case err == io.EOF:
		return nil, io.EOF
	case err != nil:
		return nil, command.Inputf("%s is torn after %d packets: %w", c.path, c.taken, err)
	}
	c.taken++
	return data[:min(len(data), snap)], nil
}

func (c *capture) Close() error { return c.file.Close() }

// traffic makes packets of so many flows: each flow at least once, and those that
// are left over again in packets of flows that were there.
type traffic struct {
	flows, left uint64
	made        uint64
	seed        uint64
	frames      [2][]byte // IPv4 and IPv6, of which addresses and ports change
}

// Where the fields of the frames are that change.
const (
	atIP        = 14
	at4, at4End = atIP + 12, atIP + 20
	at6, at6End = atIP + 8 + 24, atIP + 8 + 32
)

func newTraffic(flows, packets int, seed uint64) *traffic {
	return &traffic{
		flows: uint64(flows), left: uint64(packets), seed: mix(seed),
		frames: [2][]byte{
			frame(&layers.IPv4{Version: 4, TTL: 64, Protocol: layers.IPProtocolUDP, SrcIP: make([]byte, 4), DstIP: make([]byte, 4)}, layers.EthernetTypeIPv4),
			frame(&layers.IPv6{Version: 6, HopLimit: 64, NextHeader: layers.IPProtocolUDP, SrcIP: make([]byte, 16), DstIP: make([]byte, 16)}, layers.EthernetTypeIPv6),
		},
	}
}

// frame makes one of a UDP packet.
func frame(ip gopacket.SerializableLayer, kind layers.EthernetType) []byte {
	b := gopacket.NewSerializeBuffer()
	err := gopacket.SerializeLayers(b, gopacket.SerializeOptions{FixLengths: true},
		&layers.Ethernet{SrcMAC: make([]byte, 6), DstMAC: make([]byte, 6), EthernetType: kind}, ip, &layers.UDP{})
	if err != nil {
		panic(fmt.Sprintf("make frame: %v", err)) // of constants
	}
	return b.Bytes()
}

// mix makes 64 bits that look random of 64 others, and of no two the same.
func mix(x uint64) uint64 {
	x += 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

func (t *traffic) next() ([]byte, error) {
	if t.left == 0 {
		return nil, io.EOF
	}
	t.left--
	flow := t.made
	t.made++
	if flow >= t.flows {
		flow = mix(t.seed+flow) % t.flows
	}
	address := mix(t.seed ^ flow) // no two flows have the same
	ports := uint32(mix(address))
	if flow%8 == 7 {
		f := t.frames[1]
		binary.BigEndian.PutUint64(f[at6:at6End], address)
		binary.BigEndian.PutUint32(f[atIP+40:], ports)
		return f, nil
	}
	f := t.frames[0]
	binary.BigEndian.PutUint64(f[at4:at4End], address)
	binary.BigEndian.PutUint32(f[atIP+20:], ports)
	return f, nil
}

func (t *traffic) Close() error { return nil }
