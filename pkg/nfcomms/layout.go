package nfcomms

import (
	"reflect"
	"sync"
)

// layout is the verdict on a type.
type layout struct {
	// kind is Slice, String, Pointer, or that of a value.
	kind reflect.Kind
	// size is in bytes: of a slice's element, of what a pointer points to, or
	// of the value.
	size int
	// err is a *TypeError if there are pointers in the bytes.
	err error
}

// layouts caches verdicts by reflect.Type. It is bounded by the types of the
// program.
var layouts sync.Map

// layoutOf returns the verdict on the type of an object.
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

// examine finds the verdict: a slice, a string or a pointer may stand at the
// top, where it says which bytes are meant, and nowhere below.
func examine(t reflect.Type) layout {
	held := t
	switch t.Kind() {
	case reflect.String:
		return layout{kind: reflect.String}
	case reflect.Slice, reflect.Pointer:
		held = t.Elem()
	}
	l := layout{kind: t.Kind(), size: int(held.Size())}
	if field, kind := pointerIn(held, nameOf(held)); field != "" {
		l.err = &TypeError{Type: t, Field: field, Kind: kind}
	}
	return l
}

// valueLayout is the verdict on a type whose own bytes are meant, as ChanOf
// needs it: no slice, string or pointer at the top either.
func valueLayout(t reflect.Type) (size int, err error) {
	if field, kind := pointerIn(t, nameOf(t)); field != "" {
		return 0, &TypeError{Type: t, Field: field, Kind: kind}
	}
	return int(t.Size()), nil
}

// nameOf is how the path of a part begins.
func nameOf(t reflect.Type) string {
	if t.PkgPath() != "" {
		return t.Name()
	}
	return t.String()
}

// pointerIn returns the path and kind of the first part of t that is a pointer
// of some sort, "" if there is none.
func pointerIn(t reflect.Type, path string) (string, reflect.Kind) {
	switch k := t.Kind(); k {
	case reflect.Array:
		if t.Len() == 0 {
			return "", 0
		}
		return pointerIn(t.Elem(), path+"[0]")
	case reflect.Struct:
		for i := range t.NumField() {
			f := t.Field(i)
			if field, kind := pointerIn(f.Type, path+"."+f.Name); field != "" {
				return field, kind
			}
		}
		return "", 0
	case reflect.String, reflect.Slice, reflect.Map, reflect.Chan, reflect.Func,
		reflect.Interface, reflect.Pointer, reflect.UnsafePointer:
		return path, k
	default:
		return "", 0
	}
}
