package units

import "fmt"

// Flag is a flag of bytes such as 64KiB: one at least, and no more than 1 TiB.
type Flag struct{ N *int }

// String writes the number as Set reads it.
func (f Flag) String() string {
	if f.N == nil {
		return ""
	}
	return Option(uint64(*f.N))
}

// Type is what a help text calls the value.
func (Flag) Type() string { return "bytes" }

// Set reads the number. It stays what it was after an error.
func (f Flag) Set(text string) error {
	n, err := ParseSize(text)
	if err == nil {
		*f.N = n
	}
	return err
}

// ParseSize reads bytes as ParseBytes does: one at least, and no more than 1 TiB.
func ParseSize(text string) (int, error) {
	n, err := ParseBytes(text)
	if err == nil && (n < 1 || n > 1<<40) {
		err = fmt.Errorf("%q is not a size from 1 byte to 1 TiB", text)
	}
	return int(n), err
}
