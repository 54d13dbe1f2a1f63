package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/nfcomms/nfcomms/internal/texttable"
	"github.com/nfcomms/nfcomms/internal/units"
	"github.com/nfcomms/nfcomms/pkg/nfcomms"
)

// roles are what this program does as another process; the argument says on what.
var roles = map[string]func(job string, in io.Reader, out io.Writer) error{roleClient: actClient, roleEcho: actEcho}

// moved is what was moved there and back.
type moved struct {
	Transfers int           `json:"transfers"`
	Bytes     int           `json:"bytes"`
	Took      time.Duration `json:"took"`
	Longest   time.Duration `json:"longest"` // of one transfer there and back
}

// add counts a transfer there and back.
func (m *moved) add(size int, took time.Duration) {
	m.Transfers++
	m.Bytes += size
	m.Took += took
	m.Longest = max(m.Longest, took)
}

// row writes it into the table.
func (m *moved) row(t *texttable.Table, name string) {
	t.Add(name, fmt.Sprintf("%.2f", float64(m.Bytes)/max(m.Took.Seconds(), 1e-9)/1e9), strconv.Itoa(m.Transfers),
		units.Bytes(float64(m.Bytes)), m.Longest.Round(time.Microsecond).String())
}

// carry sends a buffer there and has it back in another, for a time or while it may, and
// compares every byte; what it takes to compare is not counted.
func carry(sent, got []byte, there func() error, goOn func() bool) (m moved, err error) {
	_, _ = rand.NewChaCha8([32]byte{1}).Read(sent) // it never fails
	for n := uint64(0); goOn(); n++ {
		for at := 0; at+8 <= len(sent); at += 4096 {
			binary.LittleEndian.PutUint64(sent[at:], n)
		}
		clear(got)
		begun := time.Now()
		if err := there(); err != nil {
			return m, err
		}
		m.add(len(sent), time.Since(begun))
		if !bytes.Equal(sent, got) {
			return m, errors.New("bytes came back changed")
		}
	}
	return m, nil
}

// client starts a process that moves data as long as it lives.
func (o *options) client(ctx context.Context, address string) (*process, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	p, err := start(ctx, self, roleClient, fmt.Sprintf("%d %s", o.size, address))
	if err == nil {
		_, err = p.part(0, nil) // it is there, and moves
	}
	return p, err
}

// part asks a client what it moved since it was asked before, after a time, half way in
// which something happens.
func (p *process) part(d time.Duration, halfWay func()) (m moved, err error) {
	time.Sleep(d / 2)
	if halfWay != nil {
		halfWay()
	}
	time.Sleep(d / 2)
	if _, err := io.WriteString(p.in, "part\n"); err != nil {
		return m, err
	}
	line, err := p.out.ReadString('\n')
	if err == nil {
		err = json.Unmarshal([]byte(line), &m)
	}
	if err != nil {
		err = fmt.Errorf("%s%w", line, err)
	}
	return m, err
}

// actClient moves data through a device, and answers each line with what it moved.
func actClient(job string, in io.Reader, out io.Writer) error {
	number, address, _ := strings.Cut(job, " ")
	size, err := strconv.Atoi(number)
	if err != nil {
		return err
	}
	ctx := context.Background() // it is killed
	dev, err := nfcomms.Open(ctx, address)
	if err != nil {
		return err
	}
	defer dev.Close()
	run, err := dev.Run(ctx, nfcomms.Program{Name: "loopback", Targets: 1})
	if err != nil {
		return err
	}
	memory, err := dev.Alloc(2 * size)
	if err != nil {
		return err
	}
	sent, got, ch := memory.Bytes()[:size], memory.Bytes()[size:], run.Channels[0]
	asked := lines(in)
	there := func() error {
		if err := ch.SendInd(ctx, sent, size); err != nil {
			return err
		}
		_, err := ch.ReceiveInd(ctx, got, size)
		return err
	}
	for {
		more := true
		m, err := carry(sent, got, there, func() bool {
			select {
			case _, more = <-asked:
				return false
			default:
				return true
			}
		})
		if err != nil || !more {
			return err
		}
		if err := json.NewEncoder(out).Encode(m); err != nil {
			return err
		}
	}
}

// lines says that a line came, for each, and is closed after the last.
func lines(in io.Reader) <-chan struct{} {
	came := make(chan struct{})
	go func() {
		defer close(came)
		for lines := bufio.NewScanner(in); lines.Scan(); {
			came <- struct{}{}
		}
	}()
	return came
}

// beside measures memcpy and a UNIX socket to another process, each for a part's time.
func (o *options) beside(ctx context.Context, dir string, t *texttable.Table) error {
	sent, got, device := make([]byte, o.size), make([]byte, o.size), make([]byte, o.size)
	during := func() func() bool {
		end := time.Now().Add(o.length / 2)
		return func() bool { return time.Now().Before(end) }
	}
	m, err := carry(sent, got, func() error {
		copy(device, sent)
		copy(got, device)
		return nil
	}, during())
	if err != nil {
		return err
	}
	m.row(t, "memcpy")
	conn, end, err := echo(ctx, dir+"/echo")
	if err != nil {
		return err
	}
	m, err = carry(sent, got, func() error {
		wrote := make(chan error, 1) // while the answer is read: a socket holds less
		go func() {
			_, err := conn.Write(sent)
			wrote <- err
		}()
		_, err := io.ReadFull(conn, got)
		return errors.Join(err, <-wrote)
	}, during())
	m.row(t, "a UNIX socket to another process")
	return errors.Join(err, conn.Close(), end())
}

// echo starts a process that sends back what comes through a UNIX socket.
func echo(ctx context.Context, path string) (conn net.Conn, end func() error, err error) {
	self, err := os.Executable()
	if err != nil {
		return nil, nil, err
	}
	l, err := net.Listen("unix", path)
	if err != nil {
		return nil, nil, err
	}
	defer l.Close()
	p, err := start(ctx, self, roleEcho, path)
	if err != nil {
		return nil, nil, err
	}
	defer context.AfterFunc(ctx, func() { _ = l.Close() })()
	if conn, err = l.Accept(); err != nil {
		p.kill()
	}
	return conn, func() error { return p.cmd.Wait() }, err
}

// actEcho is that process.
func actEcho(path string, _ io.Reader, _ io.Writer) error {
	conn, err := net.Dial("unix", path)
	if err != nil {
		return err
	}
	defer conn.Close()
	_, err = io.CopyBuffer(struct{ io.Writer }{conn}, struct{ io.Reader }{conn}, make([]byte, 1<<20)) // by this program, not the kernel
	return err
}
