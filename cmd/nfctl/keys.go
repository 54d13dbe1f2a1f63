package main

import (
	"fmt"
	"reflect"
	"strings"
)

// key is one key of a command's JSON and YAML.
type key struct {
	// path is "devices[].state".
	path string
	// kind is "string", "integer", "number", "boolean", "object" or "list",
	// with " or null".
	kind string
	// doc says what it means, from the field's doc tag.
	doc string
}

// keysOf lists the keys of a record in the order of its fields.
func keysOf(r record) []key {
	return appendKeys(nil, "", reflect.TypeOf(r))
}

func appendKeys(keys []key, prefix string, t reflect.Type) []key {
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	for i := range t.NumField() {
		f := t.Field(i)
		if f.Anonymous {
			keys = appendKeys(keys, prefix, f.Type)
			continue
		}
		path := prefix + f.Tag.Get("json")
		kind, element := kindOf(f.Type)
		keys = append(keys, key{path, kind, f.Tag.Get("doc")})
		if element == nil {
			continue
		}
		if strings.HasPrefix(kind, "list") {
			path += "[]"
		}
		keys = appendKeys(keys, path+".", element)
	}
	return keys
}

// kindOf names a type; element is what has keys of its own in it.
func kindOf(t reflect.Type) (kind string, element reflect.Type) {
	switch t.Kind() {
	case reflect.Pointer:
		kind, element = kindOf(t.Elem())
		return kind + " or null", element
	case reflect.Slice:
		_, element = kindOf(t.Elem())
		if element == nil {
			inner, _ := kindOf(t.Elem())
			return "list of " + inner, nil
		}
		return "list", element
	case reflect.Struct:
		return "object", t
	case reflect.Bool:
		return "boolean", nil
	case reflect.String:
		return "string", nil
	case reflect.Float64:
		return "number", nil
	case reflect.Int, reflect.Int32, reflect.Int64, reflect.Uint32, reflect.Uint64:
		return "integer", nil
	}
	panic(fmt.Sprintf("no kind for %v", t))
}
