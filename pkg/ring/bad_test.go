//go:build linux

package ring

import (
	"context"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/nfcomms/nfcomms/internal/fdpass"
)

func TestBadConfig(t *testing.T) {
	page := os.Getpagesize()
	for _, c := range []struct {
		c    Config
		says string
	}{
		{Config{Packets: 2}, "2 packets: a ring has at least 3"},
		{Config{Packets: -1}, "-1 packets"},
		{Config{Packets: maxPackets + 1}, "at most 1073741824"},
		{Config{PacketSize: page - 1}, "not a multiple of the page"},
		{Config{PacketSize: page + 1}, "not a multiple of the page"},
		{Config{PacketSize: -page}, "not a multiple of the page"},
		{Config{PacketSize: 2 * maxPacket}, "at most 1073741824"},
		{Config{Packets: maxPackets, PacketSize: maxPacket}, "memory"},
	} {
		_, err := Create(newName(), c.c)
		require.Error(t, err, c.says)
		require.ErrorContains(t, err, c.says)
	}
	for _, name := range []string{"", "with space", "a/b", "@x", "tab\t", strings.Repeat("x", nameMax+1)} {
		_, err := Create(name, Config{})
		require.ErrorIs(t, err, ErrConfig, name)
		_, err = Open(background(t), name, Options{})
		require.ErrorIs(t, err, ErrConfig, name)
	}
	_, err := Create("bär", Config{})
	require.ErrorContains(t, err, "a name has no 'ä'")
}

func TestNames(t *testing.T) {
	ctx := background(t)
	name := newName()
	_, err := Open(ctx, name, Options{})
	require.ErrorIs(t, err, ErrNotExist)
	r, err := Create(name, Config{})
	require.NoError(t, err)
	_, err = Create(name, Config{})
	require.ErrorIs(t, err, ErrExists)
	o, err := Open(ctx, name, Options{})
	require.NoError(t, err)
	require.Equal(t, []int{r.Packets(), r.Payload()}, []int{o.Packets(), o.Payload()})
	d, err := o.Reader(ctx)
	require.NoError(t, err)
	require.NoError(t, r.Close())
	_, err = d.Peek(ctx)
	require.ErrorIs(t, err, ErrPeerDied, "the creator is gone")
	require.NoError(t, o.Close())
	_, err = Open(ctx, name, Options{})
	require.ErrorIs(t, err, ErrNotExist, "no trace is left")
	again, err := Create(name, Config{})
	require.NoError(t, err)
	require.NoError(t, again.Close())
}

func TestRolesAreTakenOnce(t *testing.T) {
	ctx := background(t)
	r := create(t, Config{})
	w, d := pair(t, r)
	_, err := r.Writer(ctx)
	require.ErrorIs(t, err, ErrBusy)
	_, err = r.Reader(ctx)
	require.ErrorIs(t, err, ErrBusy)
	require.NoError(t, w.Close())
	short, cancel := context.WithCancelCause(ctx)
	waiting := make(chan error, 1)
	go func() {
		_, err := r.Writer(short) // waits for the next generation
		waiting <- err
	}()
	require.Eventually(t, func() bool {
		r.own.mu.Lock()
		defer r.own.mu.Unlock()
		return len(r.own.waiting) == 1
	}, patience, time.Millisecond)
	_, err = r.Writer(ctx)
	require.ErrorIs(t, err, ErrBusy, "one may wait")
	cause := os.ErrDeadlineExceeded
	cancel(cause)
	require.ErrorIs(t, <-waiting, cause)
	require.NoError(t, d.Close())
	pair(t, r)
}

func TestEndOfStream(t *testing.T) {
	ctx := background(t)
	r := create(t, Config{Packets: 5})
	w, d := pair(t, r)
	for range 4 {
		require.NoError(t, w.Write(ctx, nil))
	}
	require.NoError(t, w.Close())
	require.ErrorIs(t, w.Write(ctx, nil), ErrClosed)
	for range 4 {
		p, err := d.Peek(ctx)
		require.NoError(t, err)
		require.Empty(t, p)
		d.Release()
	}
	_, err := d.Peek(ctx)
	require.ErrorIs(t, err, EOF)
	require.NoError(t, d.Close())

	w, d = pair(t, r)
	require.NoError(t, d.Close())
	for err = nil; err == nil; {
		err = w.Write(ctx, nil)
	}
	require.ErrorIs(t, err, ErrReaderClosed)
}

func TestPacketsThatDoNotFit(t *testing.T) {
	ctx := background(t)
	r := create(t, Config{})
	w, d := pair(t, r)
	require.Len(t, w.Reserve(), r.Payload())
	require.ErrorIs(t, w.Write(ctx, make([]byte, r.Payload()+1)), ErrTooLarge)
	require.ErrorIs(t, w.Commit(ctx, r.Payload()+1), ErrTooLarge)
	require.ErrorIs(t, w.Commit(ctx, -1), ErrTooLarge)
	require.NoError(t, w.Write(ctx, []byte("four")))
	_, err := d.Read(ctx, make([]byte, 3))
	require.ErrorIs(t, err, ErrTooLarge)
	n, err := d.Read(ctx, make([]byte, 4))
	require.NoError(t, err, "the packet stayed")
	require.Equal(t, 4, n)
	d.Release() // nothing to release
}

// TestCancelled: before, during and by a deadline; nothing is published or
// taken by a call that failed.
func TestCancelled(t *testing.T) {
	for _, wait := range []Wait{Adaptive, Spin, Yield, Park} {
		r := create(t, Config{Packets: 3, Wait: wait})
		w, d := pair(t, r)
		_, err := d.Peek(over)
		require.ErrorIs(t, err, context.Canceled)
		ctx, cancel := context.WithTimeout(background(t), time.Millisecond)
		_, err = d.Peek(ctx)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		cancel()
		require.NoError(t, w.Write(background(t), []byte{1}))
		require.NoError(t, w.Write(background(t), []byte{2}))
		ctx, cancel = context.WithTimeout(background(t), time.Millisecond)
		require.ErrorIs(t, w.Write(ctx, []byte{3}), context.DeadlineExceeded, "it is full")
		require.ErrorIs(t, w.Flush(ctx), context.DeadlineExceeded)
		cancel()
		for i := range 2 {
			p, err := d.Peek(background(t))
			require.NoError(t, err)
			require.Equal(t, []byte{byte(i + 1)}, p)
			d.Release()
		}
		require.NoError(t, w.Flush(background(t)))
		_, err = d.Peek(over)
		require.ErrorIs(t, err, context.Canceled, "the third was not published")
	}
}

// TestCloseEndsCalls: every sleeping call is woken, and the memory is not unmapped under a call.
func TestCloseEndsCalls(t *testing.T) {
	for _, wait := range []Wait{Adaptive, Park, Yield, Spin} {
		r, err := Create(newName(), Config{Packets: 3, Wait: wait})
		require.NoError(t, err)
		w, d := pair(t, r)
		var wg sync.WaitGroup
		wg.Go(func() {
			var err error
			for err == nil {
				err = w.Write(background(t), []byte("x"))
			}
			require.ErrorIs(t, err, ErrClosed)
		})
		require.Eventually(t, func() bool {
			s, err := r.Stats()
			return err == nil && s.Lag == 2
		}, patience, time.Millisecond)
		require.NoError(t, r.Close())
		wg.Wait()
		_, err = d.Peek(background(t))
		require.ErrorIs(t, err, ErrClosed)
		_, err = r.Stats()
		require.ErrorIs(t, err, ErrClosed)
		_, err = r.Reader(background(t))
		require.Error(t, err)
		require.NoError(t, r.Close())
	}
}

// TestLies: a peer that publishes nonsense costs the attachment, nothing else.
func TestLies(t *testing.T) {
	ctx := context.Background()
	for name, lie := range map[string]func(r *Ring, w *Writer, d *Reader) error{
		"the writer's head goes back": func(r *Ring, w *Writer, d *Reader) error {
			require.NoError(t, w.Write(ctx, nil))
			_, err := d.Peek(ctx)
			require.NoError(t, err)
			d.Release()
			r.area.head(roleWriter).pos.Store(0)
			_, err = d.Peek(over)
			return err
		},
		"the writer's head is a lap ahead": func(r *Ring, w *Writer, d *Reader) error {
			r.area.head(roleWriter).pos.Store(int64(r.Packets()))
			_, err := d.Peek(over)
			return err
		},
		"the writer's head is negative": func(r *Ring, w *Writer, d *Reader) error {
			r.area.head(roleWriter).pos.Store(-1 << 63)
			_, err := d.Peek(over)
			return err
		},
		"the reader's head goes back": func(r *Ring, w *Writer, d *Reader) error {
			r.area.head(roleReader).pos.Store(-7)
			var err error
			for err == nil {
				err = w.Write(over, nil)
			}
			return err
		},
		"the reader read what was not written": func(r *Ring, w *Writer, d *Reader) error {
			r.area.head(roleReader).pos.Store(1 << 40)
			var err error
			for err == nil {
				err = w.Write(over, nil)
			}
			return err
		},
		"the reader released what was not written": func(r *Ring, w *Writer, d *Reader) error {
			r.area.head(roleReader).done.Store(1 << 40)
			return w.Flush(over)
		},
		"a packet longer than packets are": func(r *Ring, w *Writer, d *Reader) error {
			require.NoError(t, w.Write(ctx, nil))
			p, _ := r.area.at(0)
			p.Length = 1 << 31
			_, err := d.Peek(ctx)
			return err
		},
		"a packet of another number": func(r *Ring, w *Writer, d *Reader) error {
			require.NoError(t, w.Write(ctx, nil))
			p, _ := r.area.at(0)
			p.Number = 9
			_, err := d.Peek(ctx)
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := create(t, Config{Packets: 5})
			w, d := pair(t, r)
			require.ErrorIs(t, lie(r, w, d), ErrCorrupt)
			require.NoError(t, w.Close())
			require.NoError(t, d.Close())
			w, d = pair(t, r) // the next generation works
			require.NoError(t, w.Write(ctx, []byte("right")))
			p, err := d.Peek(ctx)
			require.NoError(t, err)
			require.Equal(t, "right", string(p))
		})
	}
}

// hostile serves a name with a made-up answer.
func hostile(t *testing.T, answer []byte, files ...int) string {
	name := newName()
	l, err := net.ListenUnix("unixpacket", socketName(name))
	require.NoError(t, err)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			c, err := l.AcceptUnix()
			if err != nil {
				return
			}
			_, _ = c.Read(make([]byte, 64))
			_, _, _ = c.WriteMsgUnix(answer, syscall.UnixRights(files...), nil)
			_ = c.Close()
		}
	}()
	t.Cleanup(func() {
		_ = l.Close()
		<-done
	})
	return name
}

// memory makes shared memory as a hostile creator would.
func memory(t *testing.T, size int64, seals int, write func(h *header)) int {
	fd, err := unix.MemfdCreate("hostile", unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING)
	require.NoError(t, err)
	t.Cleanup(func() { _ = unix.Close(fd) })
	require.NoError(t, unix.Ftruncate(fd, size))
	if write != nil {
		s, err := newShape(3, os.Getpagesize())
		require.NoError(t, err)
		a, err := mapArea(fd, s)
		require.NoError(t, err)
		a.init()
		write(a.header())
		a.unmap()
	}
	_, err = unix.FcntlInt(uintptr(fd), unix.F_ADD_SEALS, seals)
	require.NoError(t, err)
	return fd
}

func TestHostileCreator(t *testing.T) {
	const sealed = unix.F_SEAL_SHRINK | unix.F_SEAL_GROW
	page := int64(os.Getpagesize())
	whole := int64(max(page, headArea)) + 3*page
	event, err := unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK)
	require.NoError(t, err)
	defer unix.Close(event)
	null, err := unix.Open(os.DevNull, unix.O_RDWR|unix.O_CLOEXEC, 0)
	require.NoError(t, err)
	defer unix.Close(null)
	old := message(answerOK)
	old[8] = version + 1
	for name, c := range map[string]struct {
		want   error
		answer []byte
		files  []int
	}{
		"another version":        {ErrVersion, old, nil},
		"another protocol":       {ErrPeer, []byte("HTTP/1.1 200 OK\r"), nil},
		"a short answer":         {ErrPeer, message(answerOK)[:7], nil},
		"no descriptors":         {ErrPeer, message(answerOK), nil},
		"too few descriptors":    {ErrPeer, message(answerOK), []int{event}},
		"an unknown answer":      {ErrPeer, message(99), nil},
		"a device as memory":     {ErrPeer, message(answerOK), []int{null, event, event}},
		"memory that may shrink": {ErrPeer, message(answerOK), []int{memory(t, whole, unix.F_SEAL_GROW, func(*header) {}), event, event}},
		"memory that may grow":   {ErrPeer, message(answerOK), []int{memory(t, whole, unix.F_SEAL_SHRINK, func(*header) {}), event, event}},
		"memory without a ring":  {ErrPeer, message(answerOK), []int{memory(t, 100, sealed, nil), event, event}},
		"memory of zeros":        {ErrVersion, message(answerOK), []int{memory(t, whole, sealed, nil), event, event}},
		"two packets":            {ErrConfig, message(answerOK), []int{memory(t, whole, sealed, func(h *header) { h.Packets = 2 }), event, event}},
		"more packets than fit":  {ErrPeer, message(answerOK), []int{memory(t, whole, sealed, func(h *header) { h.Packets = 4 }), event, event}},
		"packets past all sums":  {ErrPeer, message(answerOK), []int{memory(t, whole, sealed, func(h *header) { h.Packets = 1 << 63 }), event, event}},
		"half a page":            {ErrConfig, message(answerOK), []int{memory(t, whole, sealed, func(h *header) { h.PacketSize /= 2 }), event, event}},
		"packets elsewhere":      {ErrPeer, message(answerOK), []int{memory(t, whole, sealed, func(h *header) { h.Data -= 8 }), event, event}},
	} {
		t.Run(name, func(t *testing.T) {
			before := files(t)
			_, err := Open(background(t), hostile(t, c.answer, c.files...), Options{})
			require.ErrorIs(t, err, c.want)
			require.Eventually(t, func() bool { return files(t) <= before+1 }, patience, time.Millisecond, "descriptors leak")
		})
	}
}

// files counts this process's descriptors.
func files(t *testing.T) int {
	entries, err := os.ReadDir("/proc/self/fd")
	require.NoError(t, err)
	return len(entries)
}

// TestSilentConnections: many that say nothing keep nobody out for good.
func TestSilentConnections(t *testing.T) {
	ctx := background(t)
	r := create(t, Config{})
	for range 30 * connections {
		c, err := net.DialUnix("unixpacket", nil, socketName(r.Name()))
		if err != nil {
			break // the queue is full
		}
		defer c.Close()
	}
	o, err := Open(ctx, r.Name(), Options{})
	require.NoError(t, err)
	require.NoError(t, o.Close())
}

// TestAFullQueueIsWaitedFor: a flood of connections delays an attachment, and
// does not end it.
func TestAFullQueueIsWaitedFor(t *testing.T) {
	name := newName()
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
	require.NoError(t, err)
	defer unix.Close(fd)
	require.NoError(t, unix.Bind(fd, &unix.SockaddrUnix{Name: socketName(name).Name}))
	require.NoError(t, unix.Listen(fd, 0))
	for err == nil { // until there is no room
		var c net.Conn
		if c, err = net.DialUnix("unixpacket", nil, socketName(name)); err == nil {
			defer c.Close()
		}
	}
	require.ErrorIs(t, err, unix.EAGAIN)
	got := make(chan error, 1)
	go func() {
		c, err := fdpass.Dial(t.Context(), "unixpacket", socketName(name).Name)
		if err == nil {
			err = c.Close()
		}
		got <- err
	}()
	taken, _, err := unix.Accept(fd)
	require.NoError(t, err)
	require.NoError(t, unix.Close(taken))
	require.NoError(t, <-got)
	_, err = Open(over, name, Options{})
	require.ErrorIs(t, err, context.Canceled)
}

// TestOtherUsers: a ring of another user is not served, and a process that took the name of this
// user's ring is not believed.
func TestOtherUsers(t *testing.T) { requireDenied(t, create(t, Config{}).Name()) }

func requireDenied(t *testing.T, ring string) {
	if os.Getuid() != 0 {
		require.NotZero(t, os.Getuid())
		return // only root can be somebody else
	}
	dir, err := os.MkdirTemp("", "ring") // the other user must reach it
	require.NoError(t, err)
	defer os.RemoveAll(dir)
	require.NoError(t, os.Chmod(dir, 0o755))
	program, err := os.ReadFile(os.Args[0])
	require.NoError(t, err)
	copied := filepath.Join(dir, "ring.test")
	require.NoError(t, os.WriteFile(copied, program, 0o755))
	cmd := exec.Command(copied)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), childEnv+"=stranger", "NFC_RING_NAME="+ring)
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, string(out))
	require.Contains(t, string(out), "denied")
}

func init() {
	// The stranger asks root's ring for its memory, past what Open checks.
	children["stranger"] = func(ctx context.Context, name string) error {
		c, err := net.DialUnix("unixpacket", nil, &net.UnixAddr{Name: "@nfcomms/ring/0/" + name, Net: "unixpacket"})
		if err != nil {
			return err
		}
		defer c.Close()
		if err := trusted(c); err == nil {
			return os.ErrPermission
		}
		answer, files, err := ask(ctx, c, wantMemory, 3)
		if err == nil && answer == answerDenied && files == nil {
			_, err = os.Stdout.WriteString("denied\n")
		}
		return err
	}
}

// TestNothingIsLeft: descriptors, mappings and memory end with the ring.
func TestNothingIsLeft(t *testing.T) {
	cycle := func() {
		r, err := Create(newName(), Config{Prewarm: true})
		require.NoError(t, err)
		w, d := pair(t, r)
		require.NoError(t, w.Write(background(t), []byte("x")))
		_, err = d.Peek(background(t))
		require.NoError(t, err)
		o, err := Open(background(t), r.Name(), Options{})
		require.NoError(t, err)
		require.NoError(t, r.Close())
		require.NoError(t, o.Close())
	}
	cycle()
	runtime.GC()
	before, maps := files(t), mappings(t)
	for range 50 {
		cycle()
	}
	require.LessOrEqual(t, files(t), before)
	require.LessOrEqual(t, mappings(t), maps)
}

// mappings counts this process's mappings of rings.
func mappings(t *testing.T) int {
	text, err := os.ReadFile("/proc/self/maps")
	require.NoError(t, err)
	return strings.Count(string(text), "memfd:nfcomms-ring")
}

func TestRecords(t *testing.T) {
	type pulse struct {
		At    uint64
		Label uint32
	}
	r := create(t, Config{})
	w, d := pair(t, r)
	out := Records[pulse](w.Reserve())
	require.Len(t, out, r.Payload()/16)
	out[3] = pulse{7, 9}
	require.NoError(t, w.Commit(background(t), 4*16))
	p, err := d.Peek(background(t))
	require.NoError(t, err)
	in := Records[pulse](p)
	require.Len(t, in, 4)
	require.Equal(t, pulse{7, 9}, in[3])
	require.Nil(t, Records[pulse](p[:15]))
	require.Nil(t, Records[struct{}](p))
	require.Panics(t, func() { Records[pulse](p[1:]) })
}

// TestNoDescriptors: a process that has none left for a while takes who asks it
// for its ring when it has some again.
func TestNoDescriptors(t *testing.T) {
	r := create(t, Config{})
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
	require.NoError(t, err)
	defer unix.Close(fd)
	var limit unix.Rlimit
	require.NoError(t, unix.Getrlimit(unix.RLIMIT_NOFILE, &limit))
	none := unix.Rlimit{Cur: 0, Max: limit.Max}
	require.NoError(t, unix.Setrlimit(unix.RLIMIT_NOFILE, &none))
	restore := func() { require.NoError(t, unix.Setrlimit(unix.RLIMIT_NOFILE, &limit)) }
	defer restore()
	require.NoError(t, unix.Connect(fd, &unix.SockaddrUnix{Name: socketName(r.Name()).Name}))
	stacks := make([]byte, 1<<20)
	require.Eventually(t, func() bool {
		all := string(stacks[:runtime.Stack(stacks, true)])
		return !strings.Contains(all, "AcceptUnix")
	}, patience, time.Millisecond, "accepting fails")
	restore()
	goOnBothSidesOf(t, r)
}
