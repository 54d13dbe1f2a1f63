// SPDX-License-Identifier: MIT
/*
 * CRC32C by an instruction. It ends three cycles after it began, but another can
 * begin each cycle: long data are cut into three streams, whose checksums are put
 * together by a table.
 */
#include <stddef.h>
#include <string.h>

#include "crc.h"

#if defined(__x86_64__)
#define CRC_TARGET __attribute__((target("sse4.2")))
#define CRC_64(crc, word) ((uint32_t)__builtin_ia32_crc32di(crc, word))
#define CRC_8(crc, byte) __builtin_ia32_crc32qi(crc, byte)

static int crc_supported(void)
{
	return __builtin_cpu_supports("sse4.2");
}
#elif defined(__aarch64__) && defined(__linux__) && defined(__AARCH64EL__)
#include <sys/auxv.h>

#define CRC_TARGET __attribute__((target("+crc")))
#define CRC_64(crc, word) __builtin_aarch64_crc32cx(crc, word)
#define CRC_8(crc, byte) __builtin_aarch64_crc32cb(crc, byte)

static int crc_supported(void)
{
	return (getauxval(AT_HWCAP) >> 7 & 1) != 0; /* HWCAP_CRC32 */
}
#endif

#ifdef CRC_TARGET

enum {
	CRC_STREAM = 256, /* bytes of each of the three */
};

/* Values of four bits, which are linear in their bits. */
#define NIBBLE(a, b, c, d)                                           \
	{                                                            \
		0, (a), (b), (a) ^ (b), (c), (c) ^ (a), (c) ^ (b),   \
			(c) ^ (b) ^ (a), (d), (d) ^ (a), (d) ^ (b),  \
			(d) ^ (b) ^ (a), (d) ^ (c), (d) ^ (c) ^ (a), \
			(d) ^ (c) ^ (b), (d) ^ (c) ^ (b) ^ (a)       \
	}

/* What each four bits of a checksum become after CRC_STREAM bytes of zeros. */
static const uint32_t crc_later[8][16] = {
	NIBBLE(0xdcb17aa4, 0xbc8e83b9, 0x7cf17183, 0xf9e2e306),
	NIBBLE(0xf629b0fd, 0xe9bf170b, 0xd69258e7, 0xa8c8c73f),
	NIBBLE(0x547df88f, 0xa8fbf11e, 0x541b94cd, 0xa837299a),
	NIBBLE(0x558225c5, 0xab044b8a, 0x53e4e1e5, 0xa7c9c3ca),
	NIBBLE(0x4a7ff165, 0x94ffe2ca, 0x2c13b365, 0x582766ca),
	NIBBLE(0xb04ecd94, 0x6571edd9, 0xcae3dbb2, 0x902bc195),
	NIBBLE(0x25bbf5db, 0x4b77ebb6, 0x96efd76c, 0x2833d829),
	NIBBLE(0x5067b052, 0xa0cf60a4, 0x4472b7b9, 0x88e56f72),
};

static uint32_t crc_after_stream(uint32_t crc)
{
	const uint32_t(*t)[16] = crc_later;

	return t[0][crc & 15] ^ t[1][crc >> 4 & 15] ^ t[2][crc >> 8 & 15] ^
	       t[3][crc >> 12 & 15] ^ t[4][crc >> 16 & 15] ^
	       t[5][crc >> 20 & 15] ^ t[6][crc >> 24 & 15] ^ t[7][crc >> 28];
}

static inline uint64_t crc_load(const uint8_t *p)
{
	uint64_t w;

	memcpy(&w, p, sizeof(w));
	return w;
}

/* Three streams that follow each other, at once. */
CRC_TARGET static uint32_t crc_streams(uint32_t crc, const uint8_t *p)
{
	uint32_t a = crc, b = 0, c = 0;

	for (const uint8_t *end = p + CRC_STREAM; p < end; p += 8) {
		a = CRC_64(a, crc_load(p));
		b = CRC_64(b, crc_load(p + CRC_STREAM));
		c = CRC_64(c, crc_load(p + 2 * (size_t)CRC_STREAM));
	}
	return crc_after_stream(crc_after_stream(a) ^ b) ^ c;
}

CRC_TARGET static uint32_t crc_instruction(uint32_t crc, const void *data,
					   uint64_t size)
{
	const uint8_t *p = data;

	crc = ~crc;
	for (; size >= 3 * CRC_STREAM; size -= 3 * CRC_STREAM) {
		crc = crc_streams(crc, p);
		p += 3 * CRC_STREAM;
	}
	for (; size >= 8; size -= 8, p += 8)
		crc = CRC_64(crc, crc_load(p));
	for (; size; size--)
		crc = CRC_8(crc, *p++);
	return ~crc;
}

uint32_t (*nfc_port_crc(void))(uint32_t crc, const void *data, uint64_t size)
{
	return crc_supported() ? crc_instruction : NULL;
}
#else
uint32_t (*nfc_port_crc(void))(uint32_t crc, const void *data, uint64_t size)
{
	return NULL;
}
#endif
