// SPDX-License-Identifier: MIT
/*
 * CRC32C by tables, eight bytes at a time. The tables are linear: an entry is the
 * sum of those of its bits, so the 64 numbers below make all of them.
 */
#include "link.h"

/* The effect of bit i of a byte on the checksum after 8 (k + 1) more bits. */
#define BIT(i, n, c) ((i) >> (n)&1 ? (uint32_t)(c) : 0u)
#define ENTRY0(i)                                        \
	(BIT(i, 0, 0xf26b8303) ^ BIT(i, 1, 0xe13b70f7) ^ \
	 BIT(i, 2, 0xc79a971f) ^ BIT(i, 3, 0x8ad958cf) ^ \
	 BIT(i, 4, 0x105ec76f) ^ BIT(i, 5, 0x20bd8ede) ^ \
	 BIT(i, 6, 0x417b1dbc) ^ BIT(i, 7, 0x82f63b78))
#define ENTRY1(i)                                        \
	(BIT(i, 0, 0x13a29877) ^ BIT(i, 1, 0x274530ee) ^ \
	 BIT(i, 2, 0x4e8a61dc) ^ BIT(i, 3, 0x9d14c3b8) ^ \
	 BIT(i, 4, 0x3fc5f181) ^ BIT(i, 5, 0x7f8be302) ^ \
	 BIT(i, 6, 0xff17c604) ^ BIT(i, 7, 0xfbc3faf9))
#define ENTRY2(i)                                        \
	(BIT(i, 0, 0xa541927e) ^ BIT(i, 1, 0x4f6f520d) ^ \
	 BIT(i, 2, 0x9edea41a) ^ BIT(i, 3, 0x38513ec5) ^ \
	 BIT(i, 4, 0x70a27d8a) ^ BIT(i, 5, 0xe144fb14) ^ \
	 BIT(i, 6, 0xc76580d9) ^ BIT(i, 7, 0x8b277743))
#define ENTRY3(i)                                        \
	(BIT(i, 0, 0xdd45aab8) ^ BIT(i, 1, 0xbf672381) ^ \
	 BIT(i, 2, 0x7b2231f3) ^ BIT(i, 3, 0xf64463e6) ^ \
	 BIT(i, 4, 0xe964b13d) ^ BIT(i, 5, 0xd725148b) ^ \
	 BIT(i, 6, 0xaba65fe7) ^ BIT(i, 7, 0x52a0c93f))
#define ENTRY4(i)                                        \
	(BIT(i, 0, 0x38116fac) ^ BIT(i, 1, 0x7022df58) ^ \
	 BIT(i, 2, 0xe045beb0) ^ BIT(i, 3, 0xc5670b91) ^ \
	 BIT(i, 4, 0x8f2261d3) ^ BIT(i, 5, 0x1ba8b557) ^ \
	 BIT(i, 6, 0x37516aae) ^ BIT(i, 7, 0x6ea2d55c))
#define ENTRY5(i)                                        \
	(BIT(i, 0, 0xef306b19) ^ BIT(i, 1, 0xdb8ca0c3) ^ \
	 BIT(i, 2, 0xb2f53777) ^ BIT(i, 3, 0x6006181f) ^ \
	 BIT(i, 4, 0xc00c303e) ^ BIT(i, 5, 0x85f4168d) ^ \
	 BIT(i, 6, 0x0e045beb) ^ BIT(i, 7, 0x1c08b7d6))
#define ENTRY6(i)                                        \
	(BIT(i, 0, 0x68032cc8) ^ BIT(i, 1, 0xd0065990) ^ \
	 BIT(i, 2, 0xa5e0c5d1) ^ BIT(i, 3, 0x4e2dfd53) ^ \
	 BIT(i, 4, 0x9c5bfaa6) ^ BIT(i, 5, 0x3d5b83bd) ^ \
	 BIT(i, 6, 0x7ab7077a) ^ BIT(i, 7, 0xf56e0ef4))
#define ENTRY7(i)                                        \
	(BIT(i, 0, 0x493c7d27) ^ BIT(i, 1, 0x9278fa4e) ^ \
	 BIT(i, 2, 0x211d826d) ^ BIT(i, 3, 0x423b04da) ^ \
	 BIT(i, 4, 0x847609b4) ^ BIT(i, 5, 0x0d006599) ^ \
	 BIT(i, 6, 0x1a00cb32) ^ BIT(i, 7, 0x34019664))

#define FOUR(e, i) e(i), e((i) + 1), e((i) + 2), e((i) + 3)
#define SIXTEEN(e, i) \
	FOUR(e, i), FOUR(e, (i) + 4), FOUR(e, (i) + 8), FOUR(e, (i) + 12)
#define SIXTY_FOUR(e, i)                                           \
	SIXTEEN(e, i), SIXTEEN(e, (i) + 16), SIXTEEN(e, (i) + 32), \
		SIXTEEN(e, (i) + 48)
#define TABLE(e)                                                         \
	{                                                                \
		SIXTY_FOUR(e, 0), SIXTY_FOUR(e, 64), SIXTY_FOUR(e, 128), \
			SIXTY_FOUR(e, 192)                               \
	}

static const uint32_t crc_table[8][256] = {
	TABLE(ENTRY0), TABLE(ENTRY1), TABLE(ENTRY2), TABLE(ENTRY3),
	TABLE(ENTRY4), TABLE(ENTRY5), TABLE(ENTRY6), TABLE(ENTRY7),
};

uint32_t nfc_crc32c(uint32_t crc, const void *data, uint64_t size)
{
	const uint8_t *p = data;

	crc = ~crc;
	for (; size >= 8; size -= 8, p += 8) {
		uint64_t w;

		__builtin_memcpy(&w, p, 8);
		w ^= crc;
		crc = 0;
		for (int i = 0; i < 8; i++)
			crc ^= crc_table[7 - i][w >> (8 * i) & 0xff];
	}
	for (; size; size--)
		crc = crc_table[0][(crc ^ *p++) & 0xff] ^ crc >> 8;
	return ~crc;
}

/* 32 steps of the generator whose newest bit is the lowest. */
uint32_t nfc_prbs(uint32_t *state)
{
	uint32_t s = *state, out = 0;

	for (int i = 0; i < 32; i++) {
		uint32_t bit = (s >> 30 ^ s >> 27) & 1;

		s = (s << 1 | bit) & 0x7fffffff;
		out = out << 1 | bit;
	}
	*state = s;
	return out;
}
