#include "textflag.h"

// func stackBounds() (low, high uintptr)
// The first two words of the running goroutine's descriptor, whose offsets the
// runtime keeps for cgo.
TEXT ·stackBounds(SB), NOSPLIT, $0-16
	MOVD 0(g), R0
	MOVD 8(g), R1
	MOVD R0, low+0(FP)
	MOVD R1, high+8(FP)
	RET
