// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* Cutting a buffer into gather lists. Pure: see nfcm_core.h. */
#include "nfcm_core.h"

/* Device pages that the buffer touches. */
u64 nfcm_split_pages(const struct nfcm_split *s)
{
	if (!s->size)
		return 0;
	return (s->head + s->size + NFC_PAGE_SIZE - 1) >> NFC_PAGE_SHIFT;
}

/* Gather lists that the buffer needs. */
u64 nfcm_split_lists(const struct nfcm_split *s)
{
	return (nfcm_split_pages(s) + NFC_LIST_ENTRIES - 1) / NFC_LIST_ENTRIES;
}

/* Bytes in the lists before list k, which is at most the number of lists. */
u64 nfcm_split_up_to(const struct nfcm_split *s, u64 k)
{
	u64 bytes;

	if (!k)
		return 0;
	bytes = k * NFC_LIST_ENTRIES * NFC_PAGE_SIZE - s->head;
	return bytes < s->size ? bytes : s->size;
}

/*
 * Write list k, which must be below the number of lists, and return its number
 * of entries. bus holds the bus addresses of the list's device pages.
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
		u64 length = NFC_PAGE_SIZE - offset;

		if (length > end - at)
			length = end - at;
		g->entry[n] = cpu_to_le64(nfc_entry(bus[n] + offset, length));
		at += length;
		n++;
	}
	g->tail = cpu_to_le64(left << NFC_TAIL_OUTSTANDING_SHIFT |
			      (k & 0xffff) << NFC_TAIL_NUMBER_SHIFT);
	return n;
}
