package nfcomms

import (
	"fmt"
	"reflect"
	"unsafe"
)

// object is the memory of what a caller gave: a view, never a copy.
type object struct {
	mem []byte
	// elem is the size in bytes of an element: of a slice or an array one of theirs, of other types
	// all of it. A size given by the caller is a multiple.
	elem int
	// readOnly: a value or a string, which nobody may write to.
	readOnly bool
	// moves: the memory is on the goroutine's stack, which the runtime moves
	// when it grows or shrinks, so no device may have its address.
	moves bool
}

// first narrows o, which is of data, to its first n bytes, where size is empty or n alone: a call
// that gives no size means all of the object.
func (o object) first(data any, size []int) (object, error) {
	if len(size) == 0 {
		return o, nil
	}
	n := size[0]
	switch {
	case len(size) > 1:
		return o, fmt.Errorf("%d sizes given, at most one: %w", len(size), ErrSize)
	case n < 0:
		return o, fmt.Errorf("size %d is negative: %w", n, ErrSize)
	case n > len(o.mem):
		return o, fmt.Errorf("buffer of %d bytes is shorter than size %d: %w", len(o.mem), n, ErrSize)
	case o.elem > 1 && n%o.elem != 0:
		return o, fmt.Errorf("size %d cuts an element of %d bytes of %v: %w", n, o.elem, reflect.TypeOf(data), ErrSize)
	}
	o.mem = o.mem[:n]
	return o, nil
}

// writable returns ErrInvalid for memory nobody may write to.
func (o object) writable(data any) error {
	switch t := reflect.TypeOf(data); {
	case !o.readOnly:
		return nil
	case t.Kind() == reflect.String:
		return fmt.Errorf("a %v cannot be written to: give a []byte: %w", t, ErrInvalid)
	default:
		return fmt.Errorf("%v is a copy of the caller's variable: give a pointer to it, or a slice: %w", t, ErrInvalid)
	}
}

// readableObject is the object of a call that sends data, or its first bytes if a size is given.
func readableObject(data any, size []int) (object, error) {
	o, err := objectOf(data)
	if err != nil {
		return o, err
	}
	return o.first(data, size)
}

// writableObject is readableObject of a call that receives.
func writableObject(data any, size []int) (object, error) {
	o, err := objectOf(data)
	if err == nil {
		err = o.writable(data)
	}
	if err != nil {
		return o, err
	}
	return o.first(data, size)
}

// objectOf finds the bytes of data: first by type assertions for the types Go
// has built in, then by reflection. It does not allocate for types it has
// seen, and keeps the interface's own words off the heap: only what a slice
// points to escapes. Pointers and values stay on the caller's stack if they
// are there, so moves holds where they are.
func objectOf(data any) (object, error) {
	if o, ok := sliceObject(data); ok {
		return o, nil
	}
	if s, ok := data.(string); ok {
		return object{mem: unsafe.Slice(unsafe.StringData(s), len(s)), elem: 1, readOnly: true}, nil
	}
	if size := scalarSize(data); size > 0 {
		return wordObject(data, size, size, true), nil
	}
	if size := pointeeSize(data); size > 0 {
		return pointerObject(data, size, size)
	}
	return reflectObject(data)
}

// reflectObject is objectOf for types that are not built in.
func reflectObject(data any) (object, error) {
	t := reflect.TypeOf(data)
	l := layoutOf(t)
	switch {
	case l.err != nil:
		return object{}, l.err
	case l.kind == reflect.Slice:
		// The element type does not matter to a slice's header.
		h := *(*[]byte)(word(data))
		return object{mem: unsafe.Slice(unsafe.SliceData(h), len(h)*l.size), elem: l.size}, nil
	case l.kind == reflect.String:
		s := *(*string)(word(data))
		return object{mem: unsafe.Slice(unsafe.StringData(s), len(s)), elem: 1, readOnly: true}, nil
	case l.kind == reflect.Pointer:
		return pointerObject(data, l.size, l.elem)
	default:
		return wordObject(data, l.size, l.elem, true), nil
	}
}

// pointerObject is the object of size bytes that data, a pointer, points to.
func pointerObject(data any, size, elem int) (object, error) {
	if word(data) == nil {
		return object{}, fmt.Errorf("nil %v points to nothing: %w", reflect.TypeOf(data), ErrInvalid)
	}
	return wordObject(data, size, elem, false), nil
}

// wordObject is the object of size bytes at the interface's data word: what a
// pointer points to, or where the interface keeps a value.
func wordObject(data any, size, elem int, readOnly bool) object {
	p := word(data)
	return object{
		mem:      unsafe.Slice((*byte)(p), size),
		elem:     elem,
		readOnly: readOnly,
		moves:    onStack(uintptr(p)),
	}
}

// word returns the data word of an interface: a pointer as it is, and of any
// other type the address of the value. The sum with nil hides from escape
// analysis that the word leads to data, so that converting a slice to any costs
// the caller no allocation (docs/design/0040); no call is between, so the stack cannot move.
//
//go:nosplit
//go:nocheckptr
func word(data any) unsafe.Pointer {
	return unsafe.Add(nil, (*[2]uintptr)(unsafe.Pointer(&data))[1])
}

// onStack reports whether an address is on the calling goroutine's stack. It
// answers yes where it does not know, which costs a copy and is always right.
func onStack(p uintptr) bool {
	low, high := stackBounds()
	here := uintptr(unsafe.Pointer(&low))
	known := low <= here && here < high
	return !known || low <= p && p < high
}

// valueBytes is the memory of *v.
func valueBytes[T any](v *T) []byte {
	return unsafe.Slice((*byte)(unsafe.Pointer(v)), unsafe.Sizeof(*v))
}

// sliceAt is the slice at v, whose type is []byte.
func sliceAt[T any](v *T) *[]byte { return (*[]byte)(unsafe.Pointer(v)) }

// elements is the memory of a slice's elements.
func elements[T any](s []T) object {
	var zero T
	size := int(unsafe.Sizeof(zero))
	return object{mem: unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(s))), len(s)*size), elem: size}
}

// pages returns n bytes that start on a page.
func pages(n int) []byte {
	if n == 0 {
		return nil
	}
	b := make([]byte, n)
	if misaligned(b) == 0 {
		return b
	}
	b = make([]byte, n+pageSize)
	skip := (pageSize - misaligned(b)) % pageSize
	return b[skip : skip+n : skip+n]
}

// misaligned returns how far into a page b starts.
func misaligned(b []byte) int {
	return int(uintptr(unsafe.Pointer(unsafe.SliceData(b))) % pageSize)
}
