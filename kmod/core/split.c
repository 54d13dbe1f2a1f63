// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* Cutting a buffer into gather lists. Pure: see nfcm_core.h. */
#include "nfcm_core.h"

/* An entry spans 2^shift bytes at most, from the start of its first page on. */
static u32 span_shift(const struct nfcm_split *s)
{
	enum { RUN_SHIFT = 16 + NFC_PAGE_SHIFT };

	NFC_STATIC_ASSERT(NFC_RUN_PAGES << NFC_PAGE_SHIFT == 1 << RUN_SHIFT,
			  "pages of a run");
	return s->runs ? RUN_SHIFT : NFC_PAGE_SHIFT;
}

/* Gather lists that the buffer needs. */
u64 nfcm_split_lists(const struct nfcm_split *s)
{
	u64 end = s->head + s->size, span = 1ull << span_shift(s);

	if (!s->size)
		return 0;
	return (((end + span - 1) >> span_shift(s)) + NFC_LIST_ENTRIES - 1) /
	       NFC_LIST_ENTRIES;
}

/* Bytes in the lists before list k, which is at most the number of lists. */
u64 nfcm_split_up_to(const struct nfcm_split *s, u64 k)
{
	u64 bytes;

	if (!k)
		return 0;
	bytes = (k * NFC_LIST_ENTRIES << span_shift(s)) - s->head;
	return bytes < s->size ? bytes : s->size;
}

static u64 entry_of(const struct nfcm_split *s, u64 address, u64 length)
{
	u64 in = address & (NFC_PAGE_SIZE - 1);

	if (!s->runs)
		return nfc_entry(address, length);
	return nfc_run(address,
		       (in + length + NFC_PAGE_SIZE - 1) >> NFC_PAGE_SHIFT);
}

/*
 * Write list k, which must be below the number of lists, and return the length of
 * its header: the number of entries, and whether they are runs. bus holds the bus
 * addresses of the first device page of each.
 */
u32 nfcm_split_fill(const struct nfcm_split *s, u64 k, const u64 *bus,
		    struct nfc_gather *g)
{
	u64 at = nfcm_split_up_to(s, k), end = nfcm_split_up_to(s, k + 1);
	u64 left = s->size - end;
	u32 n = 0;

	memset(g, 0, sizeof(*g));
	while (at < end) {
		u64 offset = (s->head + at) & (NFC_PAGE_SIZE - 1);
		u64 length = (1ull << span_shift(s)) - offset;

		if (length > end - at)
			length = end - at;
		g->entry[n] = cpu_to_le64(entry_of(s, bus[n] + offset, length));
		at += length;
		n++;
	}
	g->tail = cpu_to_le64(left << NFC_TAIL_OUTSTANDING_SHIFT |
			      (k & 0xffff) << NFC_TAIL_NUMBER_SHIFT);
	return s->runs ? n | NFC_LIST_RUNS : n;
}
