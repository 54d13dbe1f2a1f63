package nfcomms

// sliceObject is the memory of a slice of a built-in scalar type; false for other types.
func sliceObject(data any) (object, bool) {
	switch s := data.(type) {
	case []byte:
		return object{mem: s, elem: 1}, true
	case []bool:
		return elements(s), true
	case []int8:
		return elements(s), true
	case []int16:
		return elements(s), true
	case []uint16:
		return elements(s), true
	case []int32:
		return elements(s), true
	case []uint32:
		return elements(s), true
	case []float32:
		return elements(s), true
	case []int64:
		return elements(s), true
	case []uint64:
		return elements(s), true
	case []float64:
		return elements(s), true
	case []complex64:
		return elements(s), true
	case []complex128:
		return elements(s), true
	case []int:
		return elements(s), true
	case []uint:
		return elements(s), true
	case []uintptr:
		return elements(s), true
	}
	return object{}, false
}

// wordSize is the size of int, uint and uintptr in bytes.
const wordSize = 4 << (^uint(0) >> 63)

// scalarSize is the size in bytes of a built-in scalar, 0 for other types.
func scalarSize(data any) int {
	switch data.(type) {
	case bool, int8, uint8:
		return 1
	case int16, uint16:
		return 2
	case int32, uint32, float32:
		return 4
	case int64, uint64, float64, complex64:
		return 8
	case complex128:
		return 16
	case int, uint, uintptr:
		return wordSize
	}
	return 0
}

// pointeeSize is the size in bytes of what a pointer to a built-in scalar
// points to, 0 for other types.
func pointeeSize(data any) int {
	switch data.(type) {
	case *bool, *int8, *uint8:
		return 1
	case *int16, *uint16:
		return 2
	case *int32, *uint32, *float32:
		return 4
	case *int64, *uint64, *float64, *complex64:
		return 8
	case *complex128:
		return 16
	case *int, *uint, *uintptr:
		return wordSize
	}
	return 0
}
