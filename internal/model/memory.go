package model

// Memory is a type of device memory, and the cycles that an access to it takes.
type Memory struct {
	Type        string `json:"type"`
	Least, Most int
}

// Memories are the types, the smallest first and in the order of their addresses. The bulk-transfer
// paper prints the latency of CLS, and that those of larger types are longer; how long is assumed, as
// programmers of such processors have it.
var Memories = [...]Memory{{"CLS", 25, 50}, {"CTM", 50, 100}, {"IMEM", 150, 250}, {"EMEM", 150, 500}}

// AccessNS is the mean time of an access in nanoseconds, at so many megahertz; 0 at none.
func (m Memory) AccessNS(mhz int) int {
	if mhz <= 0 {
		return 0
	}
	return (m.Least + m.Most) * 1000 / (2 * mhz)
}
