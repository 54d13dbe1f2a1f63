package fault

import (
	"fmt"
	"runtime/debug"
	"syscall"
	"unsafe"
)

// page is the least size of a page anywhere.
const page = 4096

// errUnreachable is the error for memory that cannot be touched.
var errUnreachable = fmt.Errorf("memory cannot be reached: %w", syscall.EFAULT)

// Copy copies as the builtin does, and returns the number of bytes copied. If that is less than what
// both have, the next byte of one cannot be reached, and the error is [syscall.EFAULT].
func Copy(to, from []byte) (int, error) { return guarded(plain, to, from) }

// Give is Copy for bytes that another processor reads next and this one does not, to where a line of
// the cache starts.
func Give(to, from []byte) (int, error) { return guarded(around, to, from) }

// Writable reports whether all bytes can be written. None changes.
func Writable(b []byte) bool { return len(b) == 0 || try(probe, b, nil) }

// Try calls a function that touches memory; false if it met some that cannot be reached. The function
// ends there, so it holds no lock.
func Try(touches func()) (ok bool) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		switch p := recover().(type) {
		case nil:
			ok = true
		case interface{ Addr() uintptr }: // of a fault
		default:
			panic(p)
		}
	}()
	touches()
	return true
}

// Read reads a byte of each page.
func Read(b []byte) {
	for at := 0; at < len(b); at += page {
		load(&b[at])
	}
	if len(b) > 0 {
		load(&b[len(b)-1])
	}
}

// move is a way to touch memory.
type move int

const (
	plain move = iota
	around
	probe
)

// guarded copies what can be copied.
func guarded(how move, to, from []byte) (int, error) {
	n := min(len(to), len(from))
	to, from = to[:n], from[:n]
	if try(how, to, from) {
		return n, nil
	}
	for done := 0; done < n; {
		part := min(n-done, rest(to[done:]), rest(from[done:]))
		if !try(plain, to[done:done+part], from[done:done+part]) {
			return done, errUnreachable
		}
		done += part
	}
	return n, nil // it is there again
}

// rest returns the number of bytes up to the end of the first page of b.
func rest(b []byte) int {
	return page - int(uintptr(unsafe.Pointer(unsafe.SliceData(b)))%page)
}

// try touches memory; false if a page of it cannot be reached.
func try(how move, to, from []byte) (ok bool) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() { ok = recover() == nil }() // nothing else can panic
	switch how {
	case plain:
		copy(to, from)
	case around:
		copyAround(to, from)
	case probe:
		for at := 0; at < len(to); at += page {
			touch(&to[at])
		}
		touch(&to[len(to)-1])
	}
	return true
}

// touch writes to a byte what it has. A compiler that saw both halves at once would leave them out.
func touch(b *byte) { store(b, load(b)) }

//go:noinline
func load(b *byte) byte { return *b }

//go:noinline
func store(b *byte, v byte) { *b = v }
