// SPDX-License-Identifier: GPL-2.0-only
/* Gather lists against the mapped pieces that they are made of. */
#include <stdio.h>
#include <stdlib.h>

#include "harness.h"
#include "rig.h"

enum { PIECES = 64, LISTS = 512 };

/* A result that dma_map_sg() may have for a part of a buffer. */
struct mapped {
	u64 address[PIECES], length[PIECES];
	int count;
};

static struct nfc_gather lists[LISTS];

static struct nfcm_cut cut_of(u64 head, u64 at, u64 end, u64 size, bool runs)
{
	memset(lists, 0xee, sizeof(lists)); /* what is made is set whole */
	return (struct nfcm_cut){ .list = lists,
				  .most = LISTS,
				  .first = at ? 65530 : 0,
				  .head = head,
				  .size = size,
				  .at = at,
				  .end = end,
				  .runs = runs };
}

/* The next bytes of what is mapped, as a reader of the lists gets them. */
struct reader {
	const struct mapped *m;
	int piece;
	u64 done; /* of it */
};

/* An entry says so many bytes from there: is that what is mapped there? */
static bool reads(struct reader *r, u64 address, u64 length)
{
	const struct mapped *m = r->m;

	if (r->piece == m->count || address != m->address[r->piece] + r->done ||
	    length > m->length[r->piece] - r->done)
		return false; /* elsewhere, or past the end of a mapping */
	r->done += length;
	if (r->done == m->length[r->piece]) {
		r->piece++;
		r->done = 0;
	}
	return true;
}

/* Check an entry; returns its bytes, of which at most left are missing. */
static u64 check_entry(struct reader *r, u64 entry, bool runs, u64 left)
{
	u64 address = runs ? nfc_run_address(entry) : nfc_entry_address(entry);
	u64 length = runs ? nfc_run_length(entry) : nfc_entry_length(entry);

	if (runs && length > left && length - left < NFC_PAGE_SIZE)
		length = left; /* the last run ends with the transfer */
	CHECK(runs || address % NFC_PAGE_SIZE + length <= NFC_PAGE_SIZE);
	CHECK(length <= left);
	CHECK(reads(r, address, length));
	return length;
}

/* All lists of a part, as a device takes them. */
static void check_lists(const struct nfcm_cut *c, const struct mapped *m, u64 at)
{
	struct reader r = { .m = m };

	for (u64 k = 0; k < c->lists && !test_failures(); k++) {
		const struct nfc_gather *g = &lists[k];
		u32 n = nfcm_cut_length(c, k);

		CHECK_EQ(n & ~(u32)NFC_LIST_COUNT_MASK,
			 c->runs ? NFC_LIST_RUNS : 0);
		n &= NFC_LIST_COUNT_MASK;
		CHECK(n >= 1 && n <= NFC_LIST_ENTRIES);
		CHECK(n == NFC_LIST_ENTRIES || k == c->lists - 1);
		for (u32 i = 0; i < NFC_LIST_ENTRIES; i++)
			if (i < n)
				at += check_entry(&r, g->entry[i], c->runs,
						  c->size - at);
			else
				CHECK_EQ(g->entry[i], 0);
		CHECK_EQ(g->tail & 0xffff, (c->first + k) & 0xffff);
		CHECK_EQ(nfcm_list_end(c->size, g), at);
	}
	CHECK_EQ(at, c->end);
	CHECK_EQ(r.piece, m->count);
}

/* Pieces of whole pages, but for both ends of a transfer, anywhere on the bus. */
static u64 any_pieces(struct choices *c, struct mapped *m, u64 head, u64 tail)
{
	u64 bytes = 0;

	m->count = 1 + (int)choose(c, PIECES - 1);
	for (int i = 0; i < m->count; i++) {
		u64 pages = 1 + choose(c, choose(c, 2) ? 40 : 2);

		m->address[i] = choose(c, 1ull << 34) << NFC_PAGE_SHIFT;
		m->length[i] = pages << NFC_PAGE_SHIFT;
		if (i == 0) {
			m->address[i] += head;
			m->length[i] -= head;
		}
		if (i == m->count - 1)
			m->length[i] -= tail * (m->length[i] > tail);
		if (i && choose(c, 4) == 0) /* the neighbour, mapped apart */
			m->address[i] = m->address[i - 1] + m->length[i - 1];
		bytes += m->length[i];
	}
	return bytes;
}

CASE(any_pieces_in_any_part)
{
	struct choices c = { .state = 1 };

	for (int i = 0; i < 20000 && !test_failures(); i++) {
		bool first = choose(&c, 2), last = choose(&c, 2);
		u64 head = choose(&c, NFC_PAGE_SIZE), at = 0, size;
		struct nfcm_cut cut;
		struct mapped m;

		if (!first) /* parts before it end with a page */
			at = (1 + choose(&c, 100)) * NFC_PAGE_SIZE - head;
		size = at + any_pieces(&c, &m, first ? head : 0,
				       last ? choose(&c, NFC_PAGE_SIZE) : 0);
		cut = cut_of(head, at, size, last ? size : size + (1 << 20),
			     choose(&c, 2));
		for (int k = 0; k < m.count; k++)
			CHECK(nfcm_cut_add(&cut, m.address[k], m.length[k]));
		check_lists(&cut, &m, at);
	}
}

/* 2 MiB of a huge page are one entry; 5 GiB of an IOMMU twenty. */
CASE(what_is_mapped_whole_goes_whole)
{
	struct mapped m = { { 1 << 30 }, { 2 << 20 }, 1 };
	struct nfcm_cut cut = cut_of(0, 0, 2 << 20, 2 << 20, true);

	CHECK(nfcm_cut_add(&cut, m.address[0], m.length[0]));
	CHECK_EQ(cut.lists, 1);
	CHECK_EQ(cut.entries, 1);
	check_lists(&cut, &m, 0);
	m.length[0] = NFC_PAGE_SIZE + 1; /* one byte has a page of its own */
	cut = cut_of(0, 0, m.length[0], m.length[0], true);
	CHECK(nfcm_cut_add(&cut, m.address[0], m.length[0]));
	check_lists(&cut, &m, 0);
	cut = cut_of(0, 0, 5ull << 30, 5ull << 30, true);
	CHECK(nfcm_cut_add(&cut, 1ull << 32, 5ull << 30));
	CHECK_EQ(cut.lists, 4);
	CHECK_EQ(cut.entries, 2);
}

/* Pieces that are next to each other were mapped apart, and stay so. */
CASE(no_entry_goes_past_a_mapping)
{
	struct nfcm_cut cut = cut_of(0, 0, 1 << 20, 1 << 20, true);

	for (u64 i = 0; i < 7; i++)
		CHECK(nfcm_cut_add(&cut, (1 << 20) + i * 8192, 8192));
	CHECK_EQ(cut.lists, 2);
	CHECK_EQ(cut.entries, 1);
}

/* Mapped addresses are checked, and no address wraps. */
CASE(pieces_that_cannot_be)
{
	static const struct {
		const char *name;
		u64 address, length;
		bool runs, fits;
	} tries[] = {
		{ "nothing", 0x1000, 0, false, false },
		{ "elsewhere in its page", 0x1010, 4096, false, false },
		{ "ends in a page", 0x1000, 4095, false, false },
		{ "longer than the part", 0x1000, 8 * 4096, false, false },
		{ "the last page", (1ull << 52) - 4096, 4096, false, true },
		{ "past the last page", (1ull << 52) - 4096, 8192, false, false },
		{ "beyond it", 1ull << 52, 4096, false, false },
		{ "the last run", (1ull << 48) - 8192, 8192, true, true },
		{ "past the last run", (1ull << 48) - 4096, 8192, true, false },
		{ "beyond that", 1ull << 48, 4096, true, false },
		{ "as a page, that fits", 1ull << 48, 4096, false, true },
		{ "round the end", ~0ull - 4095, 8192, false, false },
	};

	for (size_t i = 0; i < sizeof(tries) / sizeof(*tries); i++) {
		struct nfcm_cut cut = cut_of(0, 0, 4 * 4096, 1 << 20,
					     tries[i].runs);

		if (!CHECK_EQ(nfcm_cut_add(&cut, tries[i].address,
					   tries[i].length),
			      tries[i].fits))
			printf("%s\n", tries[i].name);
	}
}

/* No list is written for which there is no room. */
CASE(more_than_there_is_room_for)
{
	struct nfcm_cut cut = cut_of(0, 0, 1 << 20, 1 << 20, false);

	cut.most = 2;
	CHECK(nfcm_cut_add(&cut, 0x100000, 12 * 4096));
	CHECK(!nfcm_cut_add(&cut, 0x200000, 4096));
	CHECK_EQ(lists[2].tail, 0xeeeeeeeeeeeeeeee);
}

/* The largest transfer there can be: numbers wrap, bytes do not. */
CASE(largest)
{
	u64 size = (1ull << 48) - 1, at = size - 4095;
	struct nfcm_cut cut = cut_of(0, at, size, size, false);

	CHECK(nfcm_cut_add(&cut, 0x5000, 4095));
	CHECK_EQ(nfcm_list_end(size, &lists[0]), size);
	cut = cut_of(0, 0, 4096, size, false);
	CHECK(nfcm_cut_add(&cut, 0x5000, 4096));
	CHECK_EQ(nfcm_list_end(size, &lists[0]), 4096);
}
