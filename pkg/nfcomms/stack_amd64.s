#include "textflag.h"

// func stackBounds() (low, high uintptr)
// The first two words of the running goroutine's descriptor, whose offsets the
// runtime keeps for cgo.
TEXT ·stackBounds(SB), NOSPLIT, $0-16
	MOVQ (TLS), AX
	MOVQ 0(AX), CX
	MOVQ 8(AX), DX
	MOVQ CX, low+0(FP)
	MOVQ DX, high+8(FP)
	RET
