// SPDX-License-Identifier: GPL-2.0-only
/* Gather lists against a page walk that knows nothing of lists. */
#include <stdio.h>

#include "harness.h"
#include "rig.h"

enum { PAGES = 4096 };

/* Device pages lie anywhere on the bus, but not in order. */
static u64 bus_page(u64 i)
{
	return (i * 0x9e3779b1 % 0xfffffffb + 1) << NFC_PAGE_SHIFT;
}

/* Check a run; returns the bytes it covers of those from `at` on. */
static u64 check_run(const struct nfcm_split *s, u64 run, u64 address, u64 at)
{
	u64 length = nfc_run_length(run);

	CHECK_EQ(nfc_run_address(run), address);
	if (length <= s->size - at)
		return length;
	CHECK(length - (s->size - at) < NFC_PAGE_SIZE);
	return s->size - at;
}

/* Check one list; returns the bytes it covers. */
static u64 check_list(const struct nfcm_split *s, u64 k, u64 at)
{
	u64 bus[NFC_LIST_ENTRIES], bytes = 0;
	struct nfc_gather g;
	u32 n;

	for (int i = 0; i < NFC_LIST_ENTRIES; i++)
		bus[i] = bus_page((k * NFC_LIST_ENTRIES + (u64)i) *
				  (s->runs ? NFC_RUN_PAGES : 1));
	n = nfcm_split_fill(s, k, bus, &g);
	CHECK_EQ(n & ~(u32)NFC_LIST_COUNT_MASK, s->runs ? NFC_LIST_RUNS : 0);
	n &= NFC_LIST_COUNT_MASK;
	if (!CHECK(n >= 1 && n <= NFC_LIST_ENTRIES))
		return 0;
	for (u32 i = 0; i < NFC_LIST_ENTRIES; i++) {
		u64 page = (s->head + at + bytes) >> NFC_PAGE_SHIFT;
		u64 offset = (s->head + at + bytes) & (NFC_PAGE_SIZE - 1);

		if (i >= n) {
			CHECK_EQ(g.entry[i], 0);
			continue;
		}
		if (s->runs) {
			bytes += check_run(s, g.entry[i],
					   bus_page(page) + offset, at + bytes);
			continue;
		}
		CHECK_EQ(nfc_entry_address(g.entry[i]), bus_page(page) + offset);
		bytes += nfc_entry_length(g.entry[i]);
		CHECK(offset + nfc_entry_length(g.entry[i]) <= NFC_PAGE_SIZE);
	}
	CHECK_EQ(g.tail & 0xffff, k & 0xffff);
	CHECK_EQ(g.tail >> NFC_TAIL_OUTSTANDING_SHIFT, s->size - at - bytes);
	return bytes;
}

static void check_cut(struct nfcm_split s)
{
	u64 lists = nfcm_split_lists(&s), at = 0;

	for (u64 k = 0; k < lists && !test_failures(); k++) {
		CHECK_EQ(nfcm_split_up_to(&s, k), at);
		at += check_list(&s, k, at);
	}
	if (!CHECK_EQ(at, s.size) ||
	    !CHECK_EQ(nfcm_split_up_to(&s, lists), s.size))
		printf("head %llu, size %llu, runs %d\n",
		       (unsigned long long)s.head, (unsigned long long)s.size,
		       s.runs);
}

static void check_split(u64 head, u64 size)
{
	check_cut((struct nfcm_split){ .head = head, .size = size });
	check_cut((struct nfcm_split){
		.head = head, .size = size, .runs = true });
}

/* Runs of 256 MiB: 5 GiB in four lists. */
CASE(runs)
{
	struct nfcm_split s = { .size = 5ull << 30, .runs = true };

	CHECK_EQ(nfcm_split_lists(&s), 4);
	check_cut(s);
	s.head = 1;
	check_cut(s);
	s.size = 1ull << 47;
	check_cut(s);
}

CASE(edges)
{
	static const u64 sizes[] = { 0,	    1,	   4095,  4096,	 4097,
				     24575, 24576, 24577, 49152, 1 << 20 };
	static const u64 heads[] = { 0, 1, 2048, 4095 };

	for (size_t i = 0; i < sizeof(sizes) / sizeof(*sizes); i++)
		for (size_t k = 0; k < sizeof(heads) / sizeof(*heads); k++)
			check_split(heads[k], sizes[i]);
}

CASE(any_start_and_size)
{
	struct choices c = { .state = 1 };

	for (int i = 0; i < 20000 && !test_failures(); i++)
		check_split(choose(&c, NFC_PAGE_SIZE),
			    choose(&c, 1 + choose(&c, 1 << 19)));
}

/* The largest transfer there can be: numbers wrap, bytes do not. */
CASE(largest)
{
	struct nfcm_split s = { .head = 4095, .size = (1ull << 48) - 1 };
	u64 lists = nfcm_split_lists(&s);

	CHECK_EQ(nfcm_split_up_to(&s, lists), s.size);
	CHECK(nfcm_split_up_to(&s, lists - 1) < s.size);
	check_list(&s, lists - 1, nfcm_split_up_to(&s, lists - 1));
	check_list(&s, 65536, nfcm_split_up_to(&s, 65536));
}
