package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"strings"
	"sync"
	"syscall"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/encoding"
	_ "google.golang.org/grpc/encoding/proto"
	"google.golang.org/grpc/mem"

	"github.com/nfcomms/nfcomms/pkg/control"
	"github.com/nfcomms/nfcomms/pkg/control/access"
	"github.com/nfcomms/nfcomms/pkg/control/proto/nfcomms/v1"
)

// attacks are the ways to misbehave, by name. Each runs until the process is
// killed.
var attacks = map[string]func(address string){
	"malformed": malformed,
	"garbage":   garbage,
	"frames":    frames,
	"flood":     flood,
	"idle":      idle,
	"deaf":      deaf,
	"oversize":  oversize,
	"calls":     calls,
}

// attack runs one attack in a process of its own. It has the lowest priority, so
// that what others see is the work it makes for the daemon and not its own.
func attack(name, address string) int {
	run, ok := attacks[name]
	if !ok {
		run, ok = sieges[name]
	}
	if !ok {
		fmt.Println("no attack", name)
		return 1
	}
	if err := syscall.Setpriority(syscall.PRIO_PROCESS, 0, 19); err != nil {
		fmt.Println(err)
		return 1
	}
	go func() { // the test has ended when its end of the pipe is closed
		_, _ = os.Stdin.Read(make([]byte, 1))
		os.Exit(0)
	}()
	run(address)
	return 0
}

// raw is a codec that sends bytes as they are.
type raw struct{}

func (raw) Marshal(v any) (mem.BufferSlice, error) {
	return mem.BufferSlice{mem.SliceBuffer(v.([]byte))}, nil
}
func (raw) Unmarshal(mem.BufferSlice, any) error { return nil }
func (raw) Name() string                         { return "proto" }

var _ encoding.CodecV2 = raw{}

func connect(address string, o ...grpc.DialOption) *grpc.ClientConn {
	conn, err := grpc.NewClient(address, append(o, grpc.WithTransportCredentials(insecure.NewCredentials()))...)
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	return conn
}

// bytesOf returns random bytes that often begin like a field of a message.
func bytesOf(size int) []byte {
	b := make([]byte, size)
	for i := range b {
		b[i] = byte(rand.Uint32())
	}
	if size > 2 {
		b[0], b[1] = 0x0a, byte(rand.IntN(size))
	}
	return b
}

// malformed calls every method with bytes that are no message.
func malformed(address string) {
	conn := connect(address)
	ctx := context.Background()
	for {
		for method := range access.Methods() {
			stream, err := conn.NewStream(ctx, &grpc.StreamDesc{ClientStreams: true, ServerStreams: true}, method, grpc.ForceCodecV2(raw{}))
			if err != nil {
				time.Sleep(10 * time.Millisecond) // there may be no daemon
				continue
			}
			ctx, cancel := context.WithTimeout(ctx, 10*time.Millisecond)
			_ = stream.SendMsg(bytesOf(rand.IntN(200)))
			_ = stream.CloseSend()
			done := make(chan struct{})
			go func() {
				_ = stream.RecvMsg(nil)
				close(done)
			}()
			select {
			case <-done:
			case <-ctx.Done():
			}
			cancel()
		}
	}
}

// path returns the file of a UNIX socket's address.
func path(address string) string { return strings.TrimPrefix(address, "unix://") }

const preface = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"

// garbage talks something that is no HTTP/2, or stops being it.
func garbage(address string) {
	starts := []string{"", preface[:7], preface, preface + "\x00\x00\x00\x04\x00\x00\x00\x00\x00", "GET / HTTP/1.1\r\n\r\n"}
	for {
		conn, err := net.Dial("unix", path(address))
		if err != nil {
			time.Sleep(10 * time.Millisecond)
			continue
		}
		_, _ = conn.Write([]byte(starts[rand.IntN(len(starts))]))
		for range rand.IntN(8) {
			if _, err := conn.Write(bytesOf(rand.IntN(4096))); err != nil {
				break
			}
		}
		conn.Close()
	}
}

// frames sends frames that HTTP/2 allows without end and that are no call. Only
// what counts bytes bounds them.
func frames(address string) {
	priority := "\x00\x00\x05\x02\x00\x00\x00\x00\x01\x00\x00\x00\x00\x10"
	many := []byte(strings.Repeat(priority, 4000))
	for {
		conn, err := net.Dial("unix", path(address))
		if err != nil {
			time.Sleep(10 * time.Millisecond)
			continue
		}
		_, err = conn.Write([]byte(preface + "\x00\x00\x00\x04\x00\x00\x00\x00\x00"))
		for err == nil {
			_, err = conn.Write(many)
		}
		conn.Close()
	}
}

// flood opens and closes connections.
func flood(address string) {
	for {
		conn, err := net.Dial("unix", path(address))
		if err != nil {
			time.Sleep(time.Millisecond)
			continue
		}
		conn.Close()
	}
}

// idle holds as many connections as it gets, and says nothing on them.
func idle(address string) {
	var all []net.Conn
	for {
		for len(all) < 4000 {
			conn, err := net.Dial("unix", path(address))
			if err != nil {
				break
			}
			all = append(all, conn)
		}
		time.Sleep(time.Second)
		for _, c := range all {
			c.Close()
		}
		all = all[:0]
	}
}

// deaf begins a thousand watches and reads none of them, for a while.
func deaf(address string) {
	for {
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		var conns []*grpc.ClientConn
		for range 10 {
			conn := connect(address, grpc.WithInitialWindowSize(1<<16), grpc.WithInitialConnWindowSize(1<<16))
			conns = append(conns, conn)
			c := control.NewClient(conn)
			for range 50 {
				_, _ = c.Events.WatchEvents(ctx, &nfcommsv1.WatchEventsRequest{Parent: control.AllDevices})
				_, _ = c.Devices.WatchDevices(ctx, &nfcommsv1.WatchDevicesRequest{})
			}
		}
		<-ctx.Done()
		cancel()
		for _, conn := range conns {
			conn.Close()
		}
	}
}

// oversize sends requests and headers that are too large, and calls what is not
// there.
func oversize(address string) {
	conn := connect(address)
	ctx := context.Background()
	large := bytesOf(256 << 10)
	for {
		_ = conn.Invoke(ctx, "/nfcomms.v1.DeviceService/GetDevice", large, nil, grpc.ForceCodecV2(raw{}))
		_ = conn.Invoke(ctx, "/nfcomms.v1."+strings.Repeat("x", 1<<15)+"/y", []byte{}, nil, grpc.ForceCodecV2(raw{}))
		_ = conn.Invoke(ctx, "/nowhere/nothing", []byte{}, nil, grpc.ForceCodecV2(raw{}))
		time.Sleep(time.Millisecond)
	}
}

// calls calls as often as it can, so that there is something to watch as well.
func calls(address string) {
	var all sync.WaitGroup
	for i := range 4 {
		all.Go(func() {
			conn := connect(address)
			c := control.NewClient(conn)
			ctx := context.Background()
			channel := fmt.Sprintf("devices/sim0/channels/%d", i+1)
			for {
				_, _ = c.Channels.OpenChannel(ctx, &nfcommsv1.OpenChannelRequest{Name: channel})
				_, err := c.Devices.ListDevices(ctx, &nfcommsv1.ListDevicesRequest{})
				_, _ = c.Diagnostics.PingDevice(ctx, &nfcommsv1.PingDeviceRequest{Name: "devices/sim0"})
				_, _ = c.Channels.CloseChannel(ctx, &nfcommsv1.CloseChannelRequest{Name: channel})
				if err != nil {
					time.Sleep(10 * time.Millisecond) // there may be no daemon
				}
			}
		})
	}
	all.Wait()
}
