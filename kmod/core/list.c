// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* Making the gather lists of memory that is mapped. Pure: see nfcm_core.h. */
#include "nfcm_core.h"

enum {
	PAGE_END = 52, /* what page entries can address ends at 1 << … */
	RUN_END = 48, /* … and what runs can */
};

static u64 in_page(u64 address)
{
	return address & (NFC_PAGE_SIZE - 1);
}

/*
 * Can a piece be described? Its first byte must be in its device page as it
 * is in the caller's memory, and it may end within a page only with the
 * transfer.
 */
static bool fits(const struct nfcm_cut *c, u64 address, u64 length)
{
	u64 limit = 1ull << (c->runs ? RUN_END : PAGE_END);

	return length && length <= c->end - c->at && address < limit &&
	       length <= limit - address &&
	       in_page(address) == in_page(c->head + c->at) &&
	       (!in_page(address + length) || c->at + length == c->size);
}

/* An entry from an address on, and the bytes it covers of those that are left. */
static u64 entry_of(const struct nfcm_cut *c, u64 address, u64 *left)
{
	u64 room = c->runs ? (u64)NFC_RUN_PAGES << NFC_PAGE_SHIFT :
			     NFC_PAGE_SIZE;

	room -= in_page(address);
	if (*left > room)
		*left = room;
	if (!c->runs)
		return nfc_entry(address, *left);
	return nfc_run(address, (in_page(address) + *left + NFC_PAGE_SIZE - 1) >>
					NFC_PAGE_SHIFT);
}

/* The list for the next entry; NULL if there is no room for it. */
static struct nfc_gather *list_for(struct nfcm_cut *c)
{
	if (!c->lists || c->entries == NFC_LIST_ENTRIES) {
		if (c->lists == c->most)
			return NULL;
		memset(&c->list[c->lists++], 0, sizeof(*c->list));
		c->entries = 0;
	}
	return &c->list[c->lists - 1];
}

/*
 * Add a mapped piece, the next of the caller's memory. No entry crosses its end.
 * False if it cannot be described, or is more than the part has bytes or room for.
 */
bool nfcm_cut_add(struct nfcm_cut *c, u64 address, u64 length)
{
	if (!fits(c, address, length))
		return false;
	while (length) {
		struct nfc_gather *g = list_for(c);
		u64 step = length, entry, k = c->first + c->lists - 1;

		if (!g)
			return false;
		entry = entry_of(c, address, &step);
		g->entry[c->entries++] = cpu_to_le64(entry);
		c->at += step;
		g->tail = cpu_to_le64((c->size - c->at)
					      << NFC_TAIL_OUTSTANDING_SHIFT |
				      (k & 0xffff) << NFC_TAIL_NUMBER_SHIFT);
		address += step;
		length -= step;
	}
	return true;
}

/* Length of the header of list i of the part: its entries, and what they are. */
u32 nfcm_cut_length(const struct nfcm_cut *c, u64 i)
{
	u32 n = i + 1 < c->lists ? NFC_LIST_ENTRIES : c->entries;

	return c->runs ? n | NFC_LIST_RUNS : n;
}

/* Bytes of the transfer up to the end of a list. */
u64 nfcm_list_end(u64 size, const struct nfc_gather *g)
{
	return size - (le64_to_cpu(g->tail) >> NFC_TAIL_OUTSTANDING_SHIFT);
}
