package group

import (
	"context"
	"fmt"
	"reflect"
	"unsafe"
)

// Batch is a [Package] of events: Rank is the target's or the source's.
type Batch[T any] struct {
	Rank   int
	Events []T
}

// typed is what Exchange keeps of a type from call to call.
type typed[T any] struct {
	out []Package
	in  []Batch[T]
}

// Exchange is [Group.Exchange] of events of one type, which must hold no
// pointers. They travel as they are in memory: all members must be built for the
// same architecture. ErrEventSize names a source whose bytes are no whole number of
// events; its step has ended, and the group is not broken.
func Exchange[T any](ctx context.Context, g *Group, out []Batch[T]) ([]Batch[T], error) {
	if err := g.lock(opExchange); err != nil {
		return nil, err
	}
	defer g.call.Unlock()
	x, err := typedOf[T](g)
	if err != nil {
		return nil, g.report(opExchange, err)
	}
	size := int(unsafe.Sizeof(*new(T)))
	x.out, x.in = x.out[:0], x.in[:0]
	for _, b := range out {
		x.out = append(x.out, Package{b.Rank, bytesOf(b.Events)})
	}
	if err := g.locked(ctx, x.out, nil); err != nil {
		return nil, err
	}
	for _, p := range g.exchange.in {
		if len(p.Data)%size != 0 {
			failed := g.report(opExchange, aboutf([]int{p.Rank}, ErrEventSize, "%d bytes, events of %d", len(p.Data), size))
			failed.Step-- // it has ended
			return nil, failed
		}
		x.in = append(x.in, Batch[T]{p.Rank, eventsOf[T](g, p.Data)})
	}
	return x.in, nil
}

// typedOf returns the group's state for T.
func typedOf[T any](g *Group) (*typed[T], error) {
	if x, same := g.typed.(*typed[T]); same {
		return x, nil
	}
	t := reflect.TypeFor[T]()
	size := int(t.Size())
	switch fixed := g.options.EventSize; {
	case size == 0 || !plain(t):
		return nil, fmt.Errorf("%w: events of type %v, which is empty or holds pointers", ErrOptions, t)
	case fixed > 0 && fixed != size:
		return nil, fmt.Errorf("%w: type %v has %d bytes, Options.EventSize is %d", ErrEventSize, t, size, fixed)
	}
	x := new(typed[T])
	g.typed = x
	return x, nil
}

// plain reports whether a type means the same in another process.
func plain(t reflect.Type) bool {
	switch t.Kind() {
	case reflect.Array:
		return plain(t.Elem())
	case reflect.Struct:
		for i := range t.NumField() {
			if !plain(t.Field(i).Type) {
				return false
			}
		}
		return true
	}
	return t.Kind() >= reflect.Bool && t.Kind() <= reflect.Complex128 && t.Kind() != reflect.Uintptr
}

func bytesOf[T any](events []T) []byte {
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(events))), len(events)*int(unsafe.Sizeof(*new(T))))
}

// eventsOf shows bytes as events in place; where none may be aligned, as a copy
// that lasts as long.
func eventsOf[T any](g *Group, data []byte) []T {
	if at := uintptr(unsafe.Pointer(unsafe.SliceData(data))); at%unsafe.Alignof(*new(T)) != 0 {
		aligned := g.bytes(len(data))
		copy(aligned, data)
		data = aligned
	}
	return unsafe.Slice((*T)(unsafe.Pointer(unsafe.SliceData(data))), len(data)/int(unsafe.Sizeof(*new(T))))
}
