package nfcomms

import (
	"reflect"
	"sync"
)

// layout is which bytes of a type are moved, if they may be.
type layout struct {
	// kind is Slice, String, Pointer, or that of a value.
	kind reflect.Kind
	// size is in bytes: of a slice's element, of what a pointer points to, or
	// of the value.
	size int
	// elem is the size of an array's element, else size.
	elem int
	// err is a *TypeError if there are pointers in the bytes.
	err error
}

// layouts caches layouts by reflect.Type. It is bounded by the types of the
// program.
var layouts sync.Map

// layoutOf returns the layout of an object.
func layoutOf(t reflect.Type) layout {
	if t == nil {
		return layout{err: &TypeError{}}
	}
	if l, ok := layouts.Load(t); ok {
		return *l.(*layout)
	}
	l := examine(t)
	layouts.Store(t, &l)
	return l
}

// examine finds the layout: a slice, a string or a pointer may stand at the
// top, where it selects the bytes, and nowhere below.
func examine(t reflect.Type) layout {
	held := t
	switch t.Kind() {
	case reflect.String:
		return layout{kind: reflect.String}
	case reflect.Slice, reflect.Pointer:
		held = t.Elem()
	}
	l := layout{kind: t.Kind(), size: int(held.Size()), elem: int(held.Size())}
	if held.Kind() == reflect.Array {
		l.elem = int(held.Elem().Size())
	}
	if field, part := pointerIn(held, nameOf(held)); part != nil {
		l.err = &TypeError{Type: t, Field: field, Kind: part.Kind(), Instead: instead(part, t)}
	}
	return l
}

// valueLayout is the layout of a type whose own bytes are meant, as ChanOf
// needs it: no slice, string or pointer at the top either.
func valueLayout(t reflect.Type) (size int, err error) {
	if field, part := pointerIn(t, nameOf(t)); part != nil {
		return 0, &TypeError{Type: t, Field: field, Kind: part.Kind(), Instead: insteadOfValue(part, t)}
	}
	return int(t.Size()), nil
}

// instead names what to use in place of part, which is a pointer of some sort in
// given.
func instead(part, given reflect.Type) string {
	direct := given.Kind() == reflect.Pointer && given.Elem() == part
	switch k := part.Kind(); {
	case direct && (k == reflect.Slice || k == reflect.String):
		return "give the " + k.String() + " itself"
	case k == reflect.String:
		return "use an array of bytes, such as [32]byte"
	case k == reflect.Slice && isPlain(part.Elem()):
		return "use an array, such as [16]" + part.Elem().String()
	case k == reflect.Pointer && isPlain(part.Elem()):
		return "use " + part.Elem().String() + " itself"
	default:
		return "use numbers, booleans, arrays and structs"
	}
}

// insteadOfValue is instead for a type that stands for its own bytes.
func insteadOfValue(part, given reflect.Type) string {
	text := instead(part, given)
	switch {
	case part != given:
		return text
	case part.Kind() == reflect.String:
		return "its length varies, so give its bytes to Send or to SendInd, or " + text
	case part.Kind() == reflect.Slice && isPlain(part.Elem()):
		return "its length varies, so give it to SendInd and ReceiveInd, or " + text
	default:
		return text
	}
}

// isPlain reports whether a type holds no pointers.
func isPlain(t reflect.Type) bool {
	_, part := pointerIn(t, "")
	return part == nil
}

// nameOf is how the path of a part begins.
func nameOf(t reflect.Type) string {
	if t.PkgPath() != "" {
		return t.Name()
	}
	return t.String()
}

// pointerIn returns the path and type of the first part of t that is a pointer
// of some sort, nil if there is none.
func pointerIn(t reflect.Type, path string) (string, reflect.Type) {
	switch t.Kind() {
	case reflect.Array:
		if t.Len() == 0 {
			return "", nil
		}
		return pointerIn(t.Elem(), path+"[0]")
	case reflect.Struct:
		for i := range t.NumField() {
			f := t.Field(i)
			if field, part := pointerIn(f.Type, path+"."+f.Name); part != nil {
				return field, part
			}
		}
		return "", nil
	case reflect.String, reflect.Slice, reflect.Map, reflect.Chan, reflect.Func,
		reflect.Interface, reflect.Pointer, reflect.UnsafePointer:
		return path, t
	default:
		return "", nil
	}
}
