package ring

import (
	"fmt"
	"unsafe"
)

// Records shows the payload of a packet as records of one type, as many as fit: what Reserve
// returned to write them, what Peek returned to read them. T must hold no pointers, which would
// mean nothing in the other process; both sides must agree on its layout.
func Records[T any](payload []byte) []T {
	size := int(unsafe.Sizeof(*new(T)))
	if size == 0 || len(payload) < size {
		return nil
	}
	if at := uintptr(unsafe.Pointer(unsafe.SliceData(payload))); at%unsafe.Alignof(*new(T)) != 0 {
		panic(fmt.Sprintf("ring: payload at %#x is not aligned for %T", at, *new(T)))
	}
	return unsafe.Slice((*T)(unsafe.Pointer(unsafe.SliceData(payload))), len(payload)/size)
}
