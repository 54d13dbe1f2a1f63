package control

import (
	"cmp"
	"slices"
)

// Sizes of a page.
const (
	pageDefault = 50
	pageMost    = 1000
)

// pager is the part of a list request that asks for one page.
type pager interface {
	GetPageSize() int32
	GetPageToken() string
}

// page returns one page of items, which are in the order of their keys, and the
// token of the next. A token holds the last key seen, so that items that are put
// and removed between two pages move no others.
func page[T any](k tokenKind, scope string, items []T, key func(T) string, req pager) ([]T, string, error) {
	size := int(req.GetPageSize())
	switch {
	case size < 0:
		return nil, "", invalid("page_size", "%d is negative", size)
	case size == 0:
		size = pageDefault
	case size > pageMost:
		size = pageMost
	}
	if token := req.GetPageToken(); token != "" {
		last, ok := k.open(scope, token)
		if !ok {
			return nil, "", &FieldError{Field: "page_token", Err: ErrPageToken}
		}
		at, found := slices.BinarySearchFunc(items, string(last), func(item T, last string) int {
			return cmp.Compare(key(item), last)
		})
		if found {
			at++
		}
		items = items[at:]
	}
	if len(items) <= size {
		return items, "", nil
	}
	return items[:size], k.seal(scope, []byte(key(items[size-1]))), nil
}
