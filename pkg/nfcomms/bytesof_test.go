package nfcomms

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"runtime/debug"
	"strings"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

type point struct{ X, Y int32 }

type celsius float64

type order struct {
	ID       uint64
	Customer struct {
		Age  uint8
		Name string
	}
}

type padded struct {
	A uint8
	B uint64
}

// sink keeps what tests allocate on the heap.
var sink any

func onHeap[T any](v T) *T {
	p := &v
	sink = p
	return p
}

func address(b []byte) uintptr { return uintptr(unsafe.Pointer(unsafe.SliceData(b))) }

// checkSlice holds that the view of a slice is its own memory.
func checkSlice[T any](t *rapid.T) {
	s := make([]T, rapid.IntRange(1, 40).Draw(t, "len"))
	sink = s
	checkView(t, s, uintptr(unsafe.Pointer(&s[0])), len(s)*int(unsafe.Sizeof(s[0])), false)
	checkView(t, s[:0], 0, 0, false)
	checkView(t, []T(nil), 0, 0, false)
}

// checkPointer holds the same of a pointer, on the heap and on the stack.
func checkPointer[T any](t *rapid.T) {
	p := onHeap(*new(T))
	checkView(t, p, uintptr(unsafe.Pointer(p)), int(unsafe.Sizeof(*p)), false)
	_, err := objectOf((*T)(nil))
	require.ErrorIs(t, err, ErrInvalid)
	o, err := objectOf(*p)
	require.NoError(t, err)
	require.True(t, o.readOnly)
	require.Len(t, o.mem, int(unsafe.Sizeof(*p)))
	back := *new(T)
	copy(valueBytes(&back), o.mem)
	require.Equal(t, *p, back) // padding is anything
}

func checkView(t *rapid.T, data any, at uintptr, size int, readOnly bool) {
	o, err := objectOf(data)
	require.NoError(t, err)
	require.Len(t, o.mem, size, "%T", data)
	if size > 0 {
		require.Equal(t, at, address(o.mem), "%T", data)
	}
	require.Equal(t, readOnly, o.readOnly)
	require.False(t, o.moves, "%T is not on the stack", data)
}

// kinds holds the two checks for one type.
func kinds[T any](name string, into map[string]func(*rapid.T)) {
	into[name] = func(t *rapid.T) { checkSlice[T](t); checkPointer[T](t) }
}

func TestBytesOfAliases(t *testing.T) {
	m := make(map[string]func(*rapid.T))
	kinds[bool]("bool", m)
	kinds[byte]("byte", m)
	kinds[int8]("int8", m)
	kinds[int16]("int16", m)
	kinds[uint16]("uint16", m)
	kinds[int32]("int32", m)
	kinds[uint32]("uint32", m)
	kinds[float32]("float32", m)
	kinds[int64]("int64", m)
	kinds[uint64]("uint64", m)
	kinds[float64]("float64", m)
	kinds[complex64]("complex64", m)
	kinds[complex128]("complex128", m)
	kinds[int]("int", m)
	kinds[uint]("uint", m)
	kinds[uintptr]("uintptr", m)
	kinds[celsius]("named scalar", m)
	kinds[point]("struct", m)
	kinds[padded]("padded struct", m)
	kinds[[3]uint16]("array", m)
	kinds[[2][2]point]("array of arrays", m)
	for name, check := range m {
		t.Run(name, rapid.MakeCheck(check))
	}
}

func TestBytesOfWritesThrough(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want := rapid.SliceOfN(rapid.Byte(), 8, 8).Draw(t, "bytes")
		x := onHeap(point{})
		o, err := objectOf(x)
		require.NoError(t, err)
		copy(o.mem, want)
		require.Equal(t, want, valueBytes(x))
		named := []celsius{0}
		o, err = objectOf(named)
		require.NoError(t, err)
		copy(o.mem, want)
		require.Equal(t, want, elements(named).mem)
	})
}

func TestBytesOfStrings(t *testing.T) {
	type name string
	for _, data := range []any{"nine char", name("nine char")} {
		o, err := objectOf(data)
		require.NoError(t, err)
		assert.Equal(t, "nine char", string(o.mem))
		assert.ErrorIs(t, o.writable(""), ErrInvalid)
	}
}

// hugeOnStack: parameters are on the stack however large they are.
//
//go:noinline
func hugeOnStack(t *testing.T, p [300 << 10]byte) bool {
	o, err := objectOf(&p)
	require.NoError(t, err)
	return o.moves
}

func TestBytesOfKnowsTheStack(t *testing.T) {
	var local point
	o, err := objectOf(&local)
	require.NoError(t, err)
	assert.True(t, o.moves, "a local whose address stays here is on the stack")
	o, err = objectOf(onHeap(point{}))
	require.NoError(t, err)
	assert.False(t, o.moves)
	assert.True(t, hugeOnStack(t, [300 << 10]byte{}))
	assert.True(t, onStack(uintptr(unsafe.Pointer(&local))))
	o, err = objectOf(&sink)
	require.ErrorIs(t, err, ErrPointers)
	assert.Empty(t, o.mem)
}

// grow makes the goroutine's stack larger, so that the runtime moves it.
//
//go:noinline
func grow(n int) byte {
	var frame [1 << 10]byte
	frame[n%len(frame)] = byte(n)
	if n > 0 {
		frame[0] += grow(n - 1)
	}
	return frame[0] + frame[n%len(frame)]
}

// mover moves the caller's stack in the middle of a transfer.
// A device keeps the address that it was given, not that of the moved bytes.
type mover struct {
	null
	moved bool
}

func (m *mover) SendInd(_ context.Context, data []byte) error {
	told := address(data)
	grow(2000)
	m.moved = m.moved || told != address(data)
	m.got = append([]byte(nil), data...)
	return nil
}

func (m *mover) ReceiveInd(_ context.Context, data []byte) error {
	told := address(data)
	grow(4000)
	m.moved = m.moved || told != address(data)
	for i := range data {
		data[i] = byte(i)
	}
	return nil
}

func TestStackMovesDuringTransfer(t *testing.T) {
	m := new(mover)
	ch := &Channel{dev: new(Device), ch: m}
	done := make(chan struct{})
	go func() { // a goroutine of its own starts with a small stack
		defer close(done)
		v := [16]byte{1, 2, 3, 15: 9}
		assert.NoError(t, ch.SendInd(context.Background(), &v, len(v)))
		assert.Equal(t, v[:], m.got)
		var w [16]byte
		n, err := ch.ReceiveInd(context.Background(), &w, len(w))
		assert.NoError(t, err)
		assert.Equal(t, 16, n)
		assert.Equal(t, [16]byte{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15}, w)
	}()
	<-done
	assert.False(t, m.moved, "the device was told an address on the stack")
}

func TestPointersAreRefused(t *testing.T) {
	type node struct {
		Value int
		Next  *node
	}
	type lines struct{ Line [4]struct{ Text []byte } }
	tests := []struct {
		data any
		want string
	}{
		{nil, "nil has no type"},
		{order{}, "order.Customer.Name is a string: type holds pointers: use an array of bytes, such as [32]byte"},
		{&order{}, "order.Customer.Name is a string"},
		{[]order{}, "order.Customer.Name is a string"},
		{[2]order{}, "[2]nfcomms.order[0].Customer.Name is a string"},
		{node{}, "node.Next is a pointer"},
		{lines{}, "lines.Line[0].Text is a slice"},
		{map[string]int{}, "map[string]int is a map: type holds pointers: use numbers, booleans, arrays and structs"},
		{make(chan int), "chan int is a Go channel"},
		{func() {}, "func() is a func"},
		{new(any), "what *interface {} points to is an interface"},
		{[]string{"a"}, "an element of []string is a string: type holds pointers: use an array of bytes, such as [32]byte"},
		{[][]byte{}, "an element of [][]uint8 is a slice: type holds pointers: use an array, such as [16]uint8"},
		{new([]byte), "what *[]uint8 points to is a slice: type holds pointers: give the slice itself"},
		{new(string), "what *string points to is a string: type holds pointers: give the string itself"},
		{new(*int), "what **int points to is a pointer: type holds pointers: use int itself"},
		{unsafe.Pointer(nil), "Pointer is a pointer"},
	}
	ch, _ := nullChannel()
	for _, tt := range tests {
		t.Run(fmt.Sprintf("%T", tt.data), func(t *testing.T) {
			err := ch.SendInd(context.Background(), tt.data, 0)
			var te *TypeError
			require.ErrorAs(t, err, &te)
			assert.ErrorIs(t, err, ErrPointers)
			assert.Equal(t, reflect.TypeOf(tt.data), te.Type)
			assert.True(t, strings.HasPrefix(te.Error(), tt.want), te.Error())
			_, err = ch.ReceiveInd(context.Background(), tt.data, 0)
			assert.ErrorIs(t, err, ErrPointers)
		})
	}
}

// TestChanOfSaysWhatToUse: a type that no typed channel can carry is refused with
// what carries it.
func TestChanOfSaysWhatToUse(t *testing.T) {
	type names []string
	ch, _ := nullChannel()
	for _, tt := range []struct {
		err  error
		want string
	}{
		{ChanOf[[]float64](ch).Err(), "[]float64 is a slice: type holds pointers: " +
			"its length varies, so give it to SendInd and ReceiveInd, or use an array, such as [16]float64"},
		{ChanOf[string](ch).Err(), "string is a string: type holds pointers: " +
			"its length varies, so give its bytes to Send or to SendInd, or use an array of bytes, such as [32]byte"},
		{ChanOf[names](ch).Err(), "names is a slice: type holds pointers: use numbers, booleans, arrays and structs"},
		{ChanOf[*point](ch).Err(), "*nfcomms.point is a pointer: type holds pointers: use nfcomms.point itself"},
		{ChanOf[order](ch).Err(), "order.Customer.Name is a string: type holds pointers: use an array of bytes, such as [32]byte"},
		{ChanOf[[2][]int](ch).Err(), "[2][]int[0] is a slice: type holds pointers: use an array, such as [16]int"},
		{ChanOf[error](ch).Err(), "error is an interface: type holds pointers: use numbers, booleans, arrays and structs"},
		{ChanOf[map[int]int](ch).Err(), "map[int]int is a map: type holds pointers: use numbers, booleans, arrays and structs"},
	} {
		require.ErrorIs(t, tt.err, ErrPointers)
		assert.EqualError(t, tt.err, "typed channel null: "+tt.want)
	}
}

func TestNoPointerMayHideInAnEmptyArray(t *testing.T) {
	size, err := valueLayout(reflect.TypeFor[struct {
		A [0]*int
		B uint16
	}]())
	require.NoError(t, err)
	assert.Equal(t, 2*wordSize-wordSize, size)
}

func TestSizes(t *testing.T) {
	o := object{mem: make([]byte, 8), elem: 1}
	for _, size := range []int{0, 5, 8} {
		part, err := o.first(nil, []int{size})
		require.NoError(t, err)
		assert.Len(t, part.mem, size)
		if size > 0 {
			assert.Equal(t, address(o.mem), address(part.mem))
		}
	}
	_, err := o.first(nil, []int{-1})
	assert.ErrorIs(t, err, ErrSize)
	assert.ErrorContains(t, err, "size -1 is negative")
	_, err = o.first(nil, []int{9})
	assert.ErrorIs(t, err, ErrSize)
	assert.ErrorContains(t, err, "buffer of 8 bytes is shorter than size 9")
	_, err = o.first(nil, []int{4, 4})
	assert.ErrorIs(t, err, ErrSize)
	assert.ErrorContains(t, err, "2 sizes given, at most one")
}

// TestSizeThatCutsAnElementIsRefused: half a number, or half a struct, is sent or filled by mistake.
func TestSizeThatCutsAnElementIsRefused(t *testing.T) {
	ctx := background(t)
	ch, n := nullChannel()
	for _, tt := range []struct {
		data      any
		fits, not int
		elem      string
	}{
		{make([]float64, 100), 96, 100, "8 bytes of []float64"},
		{make([]celsius, 9), 16, 17, "8 bytes of []nfcomms.celsius"},
		{make([]point, 3), 8, 4, "8 bytes of []nfcomms.point"},
		{&[4]uint32{}, 12, 13, "4 bytes of *[4]uint32"},
		{[4]uint32{}, 12, 11, "4 bytes of [4]uint32"},
		{&[2][2]int16{}, 4, 6, "4 bytes of *[2][2]int16"},
		{onHeap(padded{}), 16, 8, "16 bytes of *nfcomms.padded"},
		{padded{}, 16, 9, "16 bytes of nfcomms.padded"},
		{onHeap(uint64(1)), 8, 4, "8 bytes of *uint64"},
		{int32(5), 4, 2, "4 bytes of int32"},
	} {
		require.NoError(t, ch.SendInd(ctx, tt.data, tt.fits), "%T", tt.data)
		require.NoError(t, ch.SendInd(ctx, tt.data, 0), "%T", tt.data)
		n.got = nil
		for _, err := range []error{
			ch.SendInd(ctx, tt.data, tt.not),
			SendStriped(ctx, tt.data, tt.not, ch),
			func() error { _, err := SendIndCase(ch, tt.data, tt.not).Start(ctx).Wait(ctx); return err }(),
			func() error { _, err := Select(ctx, SendIndCase(ch, tt.data, tt.not)); return err }(),
			func() error { _, err := ReceiveIndCase(ch, tt.data, tt.not).Start(ctx).Wait(ctx); return err }(),
			func() error { _, err := ch.ReceiveInd(ctx, tt.data, tt.not); return err }(),
		} {
			if errors.Is(err, ErrInvalid) {
				continue // a value, which nothing is received into
			}
			require.ErrorIs(t, err, ErrSize, "%T", tt.data)
			require.ErrorContains(t, err, fmt.Sprintf("size %d cuts an element of %s: ", tt.not, tt.elem))
		}
		require.Nil(t, n.got, "%T: nothing is sent", tt.data)
	}
	text := "some text"
	require.NoError(t, ch.SendInd(ctx, text, 3), "a string has no elements but bytes")
}

// TestSizeMayBeLeftOut: without a size every form of SendInd and ReceiveInd
// means the whole object, with one its first bytes.
func TestSizeMayBeLeftOut(t *testing.T) {
	ctx := background(t)
	ch, n := nullChannel()
	text, local := "a string", [3]uint16{1, 2, 3}
	floats, named, p := make([]float64, 5), make([]celsius, 2), onHeap(point{})
	for _, tt := range []struct {
		data any
		all  int
		part int
	}{
		{[]byte{1, 2, 3}, 3, 1}, {[]byte{}, 0, 0}, {[]byte(nil), 0, 0}, {floats, 40, 24}, {floats[1:3], 16, 8},
		{named, 16, 8}, {p, 8, 0}, {&local, 6, 4}, {text, 8, 3}, {local, 6, 2}, {int32(5), 4, 0}, {point{}, 8, 0},
	} {
		require.NoError(t, ch.SendInd(ctx, tt.data))
		require.Len(t, n.got, tt.all, "%T", tt.data)
		moved, err := SendIndCase(ch, tt.data).Start(ctx).Wait(ctx)
		require.NoError(t, err)
		require.Equal(t, tt.all, moved, "%T", tt.data)
		require.NoError(t, ch.SendInd(ctx, tt.data, tt.part))
		require.Len(t, n.got, tt.part, "%T", tt.data)
		if o, err := objectOf(tt.data); err != nil || o.readOnly {
			continue
		}
		moved, err = ch.ReceiveInd(ctx, tt.data)
		require.NoError(t, err)
		require.Equal(t, tt.all, moved, "%T", tt.data)
		moved, err = ReceiveIndCase(ch, tt.data).Start(ctx).Wait(ctx)
		require.NoError(t, err)
		require.Equal(t, tt.all, moved, "%T", tt.data)
		moved, err = ch.ReceiveInd(ctx, tt.data, tt.part)
		require.NoError(t, err)
		require.Equal(t, tt.part, moved, "%T", tt.data)
	}
}

func TestValuesCannotBeReceivedInto(t *testing.T) {
	ch, _ := nullChannel()
	type name string
	for _, data := range []any{"text", name("text")} {
		_, err := ch.ReceiveInd(context.Background(), data)
		assert.ErrorContains(t, err, fmt.Sprintf(": a %T cannot be written to: give a []byte: invalid argument", data))
	}
	for _, data := range []any{int64(1), point{}, [4]byte{}, celsius(3)} {
		_, err := ch.ReceiveInd(context.Background(), data)
		assert.ErrorIs(t, err, ErrInvalid, "%T", data)
		assert.ErrorContains(t, err, fmt.Sprintf(": %T is a copy of the caller's variable: give a pointer to it, or a slice: ", data))
	}
}

func TestPages(t *testing.T) {
	for _, n := range []int{1, 7, pageSize - 1, pageSize, pageSize + 1, 5*pageSize + 3} {
		b := pages(n)
		assert.Len(t, b, n)
		assert.Zero(t, misaligned(b))
		assert.Equal(t, n, cap(b[:n:n]))
	}
	assert.Empty(t, pages(0))
}

func TestTakeBuffer(t *testing.T) {
	for _, n := range []int{0, 1, pageSize, pageSize + 1, 1 << 20, pageSize << poolClasses} {
		b, err := takeBuffer(n)
		require.NoError(t, err)
		assert.Len(t, b.mem, n)
		if n > 0 {
			assert.Zero(t, misaligned(b.mem))
		}
		b.release()
	}
	large, err := takeBuffer(pageSize<<poolClasses + 5)
	require.NoError(t, err)
	kept := large.mem
	kept[0], kept[len(kept)-1] = 1, 2
	large.release()
	func() { // a caller that kept the memory past its call
		defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
		assert.NotPanics(t, func() { kept[1] = kept[0] + kept[len(kept)-1] }, "it is mapped still")
	}()
	assert.Zero(t, kept[0], "its pages went back to the system")
	again, err := takeBuffer(len(kept) - 4)
	require.NoError(t, err)
	assert.Equal(t, address(kept), address(again.mem), "the next call has the same mapping")
	again.release()
	_, err = takeBuffer(-1)
	assert.ErrorIs(t, err, ErrSize)
	_, err = takeBuffer(1 << 52) // no address space has it
	assert.ErrorIs(t, err, ErrNoMemory)
}

// absurd is a channel whose device offers more than any host has.
type absurd struct {
	null
	kept error // why the transfer stayed offered
}

func (a *absurd) ReceiveIndFunc(_ context.Context, _ uint64, place func() ([]byte, error), fn func([]byte) error) error {
	mem, err := place()
	if a.kept = err; err != nil {
		return err
	}
	return fn(mem)
}

// TestMemoryThatCannotBeHad is an error of the call, and no end of the process.
func TestMemoryThatCannotBeHad(t *testing.T) {
	ctx := background(t)
	a := new(absurd)
	ch := &Channel{dev: &Device{address: "null:"}, ch: a}
	never := func([]byte) error { panic("there is no memory") }
	err := ch.ReceiveIndFunc(ctx, 1<<52, never)
	require.ErrorIs(t, err, ErrNoMemory)
	require.ErrorIs(t, a.kept, ErrNoMemory)
	require.ErrorContains(t, err, "receive transfer null: 4503599627370496 bytes of memory on this host: out of resources")
	require.ErrorIs(t, ch.SendIndFunc(ctx, 1<<52, never), ErrNoMemory)
	require.NoError(t, ch.ReceiveIndFunc(ctx, 100<<20, func(mem []byte) error {
		mem[100<<20-1] = 1
		return nil
	}), "beyond the pools")
}

// The three ways to the bytes of an object.

func BenchmarkBytesOf(b *testing.B) {
	builtin, named := make([]float64, 100), make([]celsius, 100)
	b.Run("assertion", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			_, _ = objectOf(builtin)
		}
	})
	b.Run("reflect", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			_, _ = objectOf(named)
		}
	})
	b.Run("generic", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			_ = elements(named)
		}
	})
}
