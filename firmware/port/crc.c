// SPDX-License-Identifier: MIT
/*
 * CRC32C by instructions. The one for checksums ends three cycles after it
 * began, but another can begin each cycle: long data are cut into three
 * streams, whose checksums a table combines. Where the processor multiplies
 * polynomials of 512 bits, long data are folded first: 4 KiB of a cache in 80
 * ns, in place of 210. Folded data are in registers, and may be written from
 * there: that is a copy in the same pass.
 */
#include <stddef.h>
#include <string.h>

#include "crc.h"

#if defined(__x86_64__)
#define CRC_TARGET __attribute__((target("sse4.2")))
#define CRC_64(crc, word) ((uint32_t)__builtin_ia32_crc32di(crc, word))
#define CRC_8(crc, byte) __builtin_ia32_crc32qi(crc, byte)
#define CRC_FOLDS

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

/* Each four bits of a checksum, advanced over CRC_STREAM bytes of zeros. */
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

/* A place so far behind another, if there is one. */
static inline uint8_t *copy_at(uint8_t *to, size_t n)
{
	return to ? to + n : NULL;
}

/* Write 16 bytes of a stream to a copy, if there is one. */
CRC_TARGET static inline uint32_t copy_step(uint32_t crc, uint8_t *to,
					    const uint8_t *p, uint64_t mark,
					    bool *marked)
{
	uint64_t lo = crc_load(p), hi = crc_load(p + 8);

	if (to) {
		memcpy(to, &lo, sizeof(lo));
		memcpy(to + 8, &hi, sizeof(hi));
	}
	*marked |= lo == mark;
	return CRC_64(CRC_64(crc, lo), hi);
}

CRC_TARGET static bool copy_instruction(uint32_t *crc, void *copy,
					const void *from, uint64_t size,
					uint64_t mark)
{
	const uint8_t *p = from;
	uint8_t *to = copy;
	bool marked = false;
	uint32_t a = ~*crc, b, c;

	for (; size >= 3 * CRC_STREAM; size -= 3 * CRC_STREAM) {
		const size_t second = CRC_STREAM, third = 2 * second;
		const uint8_t *end = p + CRC_STREAM;

		for (b = c = 0; p < end; p += 16, to = copy_at(to, 16)) {
			a = copy_step(a, to, p, mark, &marked);
			b = copy_step(b, copy_at(to, second), p + second, mark,
				      &marked);
			c = copy_step(c, copy_at(to, third), p + third, mark,
				      &marked);
		}
		a = crc_after_stream(crc_after_stream(a) ^ b) ^ c;
		p += third;
		to = copy_at(to, third);
	}
	for (; size; size -= 16, p += 16, to = copy_at(to, 16))
		a = copy_step(a, to, p, mark, &marked);
	*crc = ~a;
	return marked;
}

#endif /* CRC_TARGET */

#ifdef CRC_FOLDS
#include <immintrin.h>

#define FOLD_TARGET __attribute__((target("avx512f,vpclmulqdq,sse4.2")))

enum {
	CRC_FOLD = 256, /* bytes at once: four registers, each for itself */
};

/*
 * x^(8 d + 31) and x^(8 d - 33) modulo the polynomial, bits mirrored: the
 * factors that move the halves of 16 bytes d bytes ahead.
 */
#define FOLD_256 0xdcb17aa4, 0xb9e02b86
#define FOLD_192 0xa87ab8a8, 0xab7aff2a
#define FOLD_128 0x6992cea2, 0x0d3b6092
#define FOLD_64 0x740eef02, 0x9e4addf8
#define FOLD_48 0x1c291d04, 0xddc0152b
#define FOLD_32 0x3da6d0cb, 0xba4fc28e
#define FOLD_16 0xf20c0dfe, 0x493c7d27

FOLD_TARGET static inline __m512i fold_factor(long long low, long long high)
{
	return _mm512_set4_epi64(high, low, high, low);
}

/* As _mm512_set_epi64(), the lowest first. */
FOLD_TARGET static inline __m512i fold_factors(long long a, long long b,
					       long long c, long long d,
					       long long e, long long f)
{
	return _mm512_set_epi64(0, 0, f, e, d, c, b, a);
}

FOLD_TARGET static inline __m512i fold_onto(__m512i x, __m512i k, __m512i y)
{
	return _mm512_ternarylogic_epi64(_mm512_clmulepi64_epi128(x, k, 0x00),
					 _mm512_clmulepi64_epi128(x, k, 0x11),
					 y, 0x96); /* the sum of three */
}

/*
 * 64 bytes that are added to a checksum, are copied if there is a copy, and may
 * have a mark.
 */
struct folding {
	uint8_t *to; /* NULL: there is no copy */
	bool marks; /* search for the mark */
	__m512i mark;
	__mmask8 marked; /* words of 64 bits that are the mark */
};

FOLD_TARGET static inline __m512i fold_take(struct folding *f, const uint8_t *p,
					    size_t at)
{
	__m512i x = _mm512_loadu_si512(p + at);

	if (f->to)
		_mm512_storeu_si512(f->to + at, x);
	if (f->marks)
		f->marked |= _mm512_cmpeq_epi64_mask(x, f->mark);
	return x;
}

/* The last 256 bytes: each part by itself onto the last 16, which the instruction ends. */
FOLD_TARGET static inline uint32_t fold_end(__m512i a, __m512i b, __m512i c,
					    __m512i d)
{
	const __m512i parts = fold_factors(FOLD_48, FOLD_32, FOLD_16);
	const __m512i none = _mm512_setzero_si512();
	__m256i half;
	__m128i last;

	a = fold_onto(a, fold_factor(FOLD_192), d);
	b = fold_onto(b, fold_factor(FOLD_128), none);
	c = fold_onto(c, fold_factor(FOLD_64), none);
	d = _mm512_ternarylogic_epi64(a, b, c, 0x96);
	/*
	 * the first three quarters are folded in, and the last one stays as it
	 * is
	 */
	d = fold_onto(d, parts, _mm512_maskz_mov_epi64(0xc0, d));
	half = _mm256_xor_si256(_mm512_castsi512_si256(d),
				_mm512_extracti64x4_epi64(d, 1));
	last = _mm_xor_si128(_mm256_castsi256_si128(half),
			     _mm256_extracti128_si256(half, 1));
	return CRC_64(CRC_64(0, (uint64_t)_mm_cvtsi128_si64(last)),
		      (uint64_t)_mm_extract_epi64(last, 1));
}

/*
 * Some times 256 bytes: folded, and their last 16 by the instruction. An array
 * in place of the four would be in memory, and take as long as no folding.
 */
FOLD_TARGET static inline __attribute__((always_inline)) uint32_t
fold_all(struct folding *f, uint32_t crc, const uint8_t *p, const uint8_t *end)
{
	const __m512i far = fold_factor(FOLD_256);
	__m512i a = fold_take(f, p, 0), b = fold_take(f, p, 64);
	__m512i c = fold_take(f, p, 128), d = fold_take(f, p, 192);

	a = _mm512_xor_si512(
		a, _mm512_zextsi128_si512(_mm_cvtsi32_si128((int)crc)));
	for (p += CRC_FOLD; p < end; p += CRC_FOLD) {
		if (f->to)
			f->to += CRC_FOLD;
		a = fold_onto(a, far, fold_take(f, p, 0));
		b = fold_onto(b, far, fold_take(f, p, 64));
		c = fold_onto(c, far, fold_take(f, p, 128));
		d = fold_onto(d, far, fold_take(f, p, 192));
	}
	return fold_end(a, b, c, d);
}

FOLD_TARGET static uint32_t crc_folds(uint32_t crc, const uint8_t *p,
				      const uint8_t *end)
{
	struct folding f = { 0 };

	return fold_all(&f, crc, p, end);
}

/* To a copy; each of the two has a loop of its own. */
FOLD_TARGET static uint32_t copy_folds(uint32_t crc, uint8_t *to,
				       const uint8_t *p, const uint8_t *end,
				       uint64_t mark, bool *marked)
{
	struct folding f = { .to = to,
			     .marks = true,
			     .mark = _mm512_set1_epi64((long long)mark) };

	crc = fold_all(&f, crc, p, end);
	*marked = f.marked;
	return crc;
}

/* To none. */
FOLD_TARGET static uint32_t look_folds(uint32_t crc, const uint8_t *p,
				       const uint8_t *end, uint64_t mark,
				       bool *marked)
{
	struct folding f = { .marks = true,
			     .mark = _mm512_set1_epi64((long long)mark) };

	crc = fold_all(&f, crc, p, end);
	*marked = f.marked;
	return crc;
}

/* These are for any processor: what is short touches no wide register. */
static uint32_t crc_folded(uint32_t crc, const void *data, uint64_t size)
{
	const uint8_t *p = data;
	uint64_t whole = size - size % CRC_FOLD;

	if (whole)
		crc = ~crc_folds(~crc, p, p + whole);
	return crc_instruction(crc, p + whole, size - whole);
}

static bool copy_folded(uint32_t *crc, void *to, const void *from,
			uint64_t size, uint64_t mark)
{
	const uint8_t *p = from;
	uint64_t whole = size - size % CRC_FOLD;
	bool marked = false;

	if (whole && to)
		*crc = ~copy_folds(~*crc, to, p, p + whole, mark, &marked);
	else if (whole)
		*crc = ~look_folds(~*crc, p, p + whole, mark, &marked);
	return copy_instruction(crc, copy_at(to, whole), p + whole,
				size - whole, mark) ||
	       marked;
}

static int fold_supported(void)
{
	return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("vpc"
									   "lmu"
									   "lqd"
									   "q");
}
#endif /* CRC_FOLDS */

nfc_port_crc_fn *nfc_port_crc(uint32_t choice)
{
#ifdef CRC_FOLDS
	if (fold_supported() && choice-- == 0)
		return crc_folded;
#endif
#ifdef CRC_TARGET
	if (crc_supported() && choice-- == 0)
		return crc_instruction;
#endif
	(void)choice;
	return NULL;
}

nfc_port_copy_fn *nfc_port_copy(uint32_t choice)
{
#ifdef CRC_FOLDS
	if (fold_supported() && choice-- == 0)
		return copy_folded;
#endif
#ifdef CRC_TARGET
	if (crc_supported() && choice-- == 0)
		return copy_instruction;
#endif
	(void)choice;
	return NULL;
}
