#include "textflag.h"

// func storeAround(to, from *byte, n uintptr)
// Stores that go around the caches, a line at a time.
TEXT ·storeAround(SB), NOSPLIT, $0-24
	MOVQ to+0(FP), DI
	MOVQ from+8(FP), SI
	MOVQ n+16(FP), CX
line:
	MOVOU (SI), X0
	MOVOU 16(SI), X1
	MOVOU 32(SI), X2
	MOVOU 48(SI), X3
	MOVNTO X0, (DI)
	MOVNTO X1, 16(DI)
	MOVNTO X2, 32(DI)
	MOVNTO X3, 48(DI)
	ADDQ $64, SI
	ADDQ $64, DI
	SUBQ $64, CX
	JNE line
	SFENCE
	RET
