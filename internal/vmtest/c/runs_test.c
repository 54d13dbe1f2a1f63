// SPDX-License-Identifier: MIT
/*
 * Memory whose pages are next to each other goes out whole, in as few lists as
 * its mapping allows, and every byte comes to its place, also where it is
 * scattered. With a device that knows no runs it goes out page by page.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "bus.h"
#include "rig.h"

#define HUGE_PAGES "/sys/kernel/mm/transparent_hugepage/"

enum {
	PAGE = NFC_PAGE_SIZE,
	HUGE = 2 << 20, /* a huge page, and a part of a transfer */
	SIZE = 4 * HUGE,
	MIXTURES = 6,
	LEAST = NFC_EAGER_BYTES + 1, /* less may need no list */
};

/* Does this kernel have huge pages? With little memory it makes none by itself. */
static bool huge_pages(void)
{
	if (access(HUGE_PAGES "enabled", F_OK))
		return false;
	put(HUGE_PAGES "enabled", "madvise");
	put(HUGE_PAGES "defrag", "madvise");
	return true;
}

/* Memory that begins where a huge page may. */
static uint8_t *huge(size_t size)
{
	uint8_t *p = mmap(NULL, size + HUGE, PROT_READ | PROT_WRITE,
			  MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (p == MAP_FAILED) {
		CHECK(!"memory for a buffer");
		exit(1);
	}
	p += HUGE - (uintptr_t)p % HUGE;
	madvise(p, size, MADV_HUGEPAGE);
	return p;
}

/* The frame that holds the page at p. */
static uint64_t frame(int pagemap, const uint8_t *p)
{
	uint64_t word = 0;
	off_t at = (off_t)((uintptr_t)p / PAGE * sizeof(word));

	CHECK_EQ(pread(pagemap, &word, sizeof(word), at), sizeof(word));
	return word & ((1ull << 55) - 1);
}

/*
 * Lists that a part needs, if each entry is a page or what is next to each
 * other.
 */
static uint32_t lists_of(int pagemap, const uint8_t *p, size_t size, bool runs)
{
	uint64_t last = 0, now;
	uint32_t entries = 0;

	if (runs && has_iommu()) /* it maps next to each other what is not */
		return 1;
	for (size_t at = 0; at < size;
	     at += PAGE - (uintptr_t)(p + at) % PAGE, last = now) {
		now = frame(pagemap, p + at);
		if (!runs || !at || now != last + 1)
			entries++;
	}
	return (entries + NFC_LIST_ENTRIES - 1) / NFC_LIST_ENTRIES;
}

/* The same of a transfer, whose parts end with a multiple of their size. */
static uint32_t expected(const uint8_t *p, size_t size, bool runs)
{
	int pagemap = open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC);
	uint32_t lists = 0;

	CHECK(pagemap >= 0);
	for (size_t at = 0, n; at < size; at += n) {
		n = HUGE - (uintptr_t)(p + at) % HUGE;
		if (size - at <= HUGE)
			n = size - at;
		lists += lists_of(pagemap, p + at, n, runs);
	}
	close(pagemap);
	return lists;
}

static bool device_knows_runs(int fd)
{
	struct nfcomms_info info = { .size = sizeof(info) };

	CHECK_EQ(control(fd, NFCOMMS_IOC_INFO, &info), 0);
	CHECK(info.capabilities & NFC_CAP_LOAD);
	return info.capabilities & NFC_CAP_RUNS;
}

/* Send memory and take it back elsewhere; returns the lists that it took. */
static uint32_t there_and_back(int fd, uint32_t loop, const uint8_t *from,
			       uint8_t *to, size_t size)
{
	struct nfcomms_op out = transfer(NFCOMMS_OP_SEND_IND, loop, from, size);
	struct nfcomms_op in = transfer(NFCOMMS_OP_RECEIVE_IND, loop, to, size);
	struct nfcomms_completion c = { .lists = 0 };

	memset(to, 0xee, size);
	CHECK_EQ(call(fd, &out, &c), 0);
	CHECK_EQ(c.status, NFC_OK);
	CHECK_EQ(c.processed, size);
	CHECK_EQ(outcome(fd, &in), NFC_OK);
	CHECK(!memcmp(from, to, size));
	return c.lists;
}

/* Did it take the lists that its frames need? */
static void check_lists(uint32_t lists, const uint8_t *p, size_t size, bool runs)
{
	uint32_t want = expected(p, size, runs);

	if (CHECK_EQ(lists, want))
		return;
	printf("%zu bytes at %p: %u lists, want %u\n", size, (const void *)p,
	       lists, want);
}

CASE(what_lies_together_goes_whole)
{
	int fd = fresh();
	uint32_t loop = program(fd, "loopback"), lists;
	bool runs = device_knows_runs(fd), whole = huge_pages();
	uint8_t *from = huge(SIZE), *to = huge(SIZE);

	for (size_t i = 0; i < SIZE; i++)
		from[i] = pattern(3, i);
	lists = there_and_back(fd, loop, from, to, SIZE);
	check_lists(lists, from, SIZE, runs);
	if (runs && whole)
		CHECK_EQ(lists, SIZE / HUGE);
	lists = there_and_back(fd, loop, from + 100, to + 100, HUGE);
	check_lists(lists, from + 100, HUGE, runs);
	close(fd);
	munmap(from, SIZE);
	munmap(to, SIZE);
	check_pins();
}

/* Huge pages, small ones in order, and small ones in none. */
static void mix(uint8_t *p, uint64_t *seed)
{
	for (size_t at = 0; at < SIZE; at += HUGE) {
		switch (next_random(seed) % 3) {
		case 0:
			break;
		case 1:
			madvise(p + at, HUGE, MADV_NOHUGEPAGE);
			break;
		default:
			madvise(p + at, HUGE, MADV_NOHUGEPAGE);
			for (size_t k = 0; k < HUGE / PAGE; k += 2)
				p[at + k * PAGE] = 1;
		}
	}
	for (size_t i = 0; i < SIZE; i++)
		p[i] = pattern(*seed, i);
}

CASE(any_mixture_comes_to_its_place)
{
	uint64_t seed = seed_for("mixtures");
	int fd = fresh();
	uint32_t loop = program(fd, "loopback");
	bool runs = device_knows_runs(fd);

	huge_pages();
	for (int i = 0; i < MIXTURES && !test_failures(); i++) {
		uint8_t *from = huge(SIZE), *to = huge(SIZE);
		size_t at = next_random(&seed) % (SIZE / 2);
		size_t size = LEAST + next_random(&seed) % (SIZE / 2 - LEAST);

		mix(from, &seed);
		mix(to, &seed);
		check_lists(there_and_back(fd, loop, from + at, to + at, size),
			    from + at, size, runs);
		munmap(from, SIZE);
		munmap(to, SIZE);
	}
	close(fd);
	check_pins();
}
