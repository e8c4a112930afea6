#include "textflag.h"

// func pairAVX2(a, b *byte, n int, v *[2]uint64, keep uint64) (at int, mask uint64)
TEXT ·pairAVX2(SB), NOSPLIT, $0-56
	MOVQ a+0(FP), SI
	MOVQ b+8(FP), DI
	MOVQ n+16(FP), CX
	MOVQ v+24(FP), R10
	VPBROADCASTQ (R10), Y0
	VPBROADCASTQ 8(R10), Y1
	VPBROADCASTQ keep+32(FP), Y2
	VPXOR Y7, Y7, Y7
	XORQ AX, AX
	XORQ R8, R8

	// 64 places at a time: a byte of Y3 and Y5 is all ones where both stand.
	// What lies ahead is asked for, since by themselves processors look ahead
	// no further than the end of a page of 4 KiB; beyond the text that does nothing.
next:
	LEAQ 64(AX), DX
	CMPQ DX, CX
	JGT done
	PREFETCHT0 2048(SI)(AX*1)
	VPXOR (SI)(AX*1), Y0, Y3
	VPXOR (DI)(AX*1), Y1, Y4
	VPXOR 32(SI)(AX*1), Y0, Y5
	VPXOR 32(DI)(AX*1), Y1, Y6
	VPOR Y3, Y4, Y3
	VPOR Y5, Y6, Y5
	VPAND Y2, Y3, Y3
	VPAND Y2, Y5, Y5
	VPCMPEQB Y7, Y3, Y3
	VPCMPEQB Y7, Y5, Y5
	VPOR Y3, Y5, Y4
	VPTEST Y4, Y4
	JNZ found
	MOVQ DX, AX
	JMP next

found:
	VPMOVMSKB Y3, R8
	VPMOVMSKB Y5, R9
	SHLQ $32, R9
	ORQ R9, R8

done:
	VZEROUPPER
	MOVQ AX, at+40(FP)
	MOVQ R8, mask+48(FP)
	RET
