// SPDX-License-Identifier: MIT
/*
 * Registered memory: what is inside is not pinned again, what the addresses
 * name is what moves, whatever happens to them, and nothing stays pinned.
 *
 *	region [ROUNDS]	of each pair
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "bus.h"
#include "region.h"
#include "rig.h"

enum {
	PAGE = NFC_PAGE_SIZE,
	SIZE = 64 * PAGE,
	BULK = 6 << 20, /* some parts */
	LINE = 64, /* two mappings of one the DMA debugging warns of */
};

CASE(what_cannot_be_a_region)
{
	int fd = fresh();
	uint8_t *p = pages(SIZE, 1);
	struct {
		struct nfcomms_register r;
		int want;
	} bad[] = {
		{ region_at(p, 0), EINVAL },
		{ region_at(p, (1ull << 36) + 1), EINVAL },
		{ region_at(p, ~0ull), EINVAL },
		{ region_at((void *)0xffff800000000000ull, PAGE), EFAULT },
		{ region_at(NULL, PAGE), EFAULT },
		{ region_at(p + SIZE - PAGE, 64 * BULK), EFAULT },
		{ with_flags(p, 1u << 9), EINVAL },
		{ with_fd(p, 0, 3, 0), EINVAL }, /* not without the flag */
		{ with_fd(p, 0, 0, PAGE), EINVAL },
		{ with_fd(p + 1, NFCOMMS_REGION_DMA_BUF, 0, 0), EINVAL },
		{ with_fd(NULL, NFCOMMS_REGION_DMA_BUF, 0, 1), EINVAL },
		{ with_fd(NULL, NFCOMMS_REGION_DMA_BUF, 9999, 0), EBADF },
		{ with_fd(NULL, NFCOMMS_REGION_DMA_BUF, -1, 0), EBADF },
		{ with_fd(NULL, NFCOMMS_REGION_DMA_BUF, fd, 0), EINVAL },
	};

	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++)
		if (!CHECK_EQ(control(fd, NFCOMMS_IOC_REGISTER, &bad[i].r),
			      bad[i].want))
			printf("register %zu\n", i);
	bad[0].r = region_at(p, PAGE);
	bad[0].r.rsvd[2] = 1;
	CHECK_EQ(control(fd, NFCOMMS_IOC_REGISTER, &bad[0].r), EINVAL);
	bad[0].r = region_at(p, PAGE);
	bad[0].r.region = 1;
	CHECK_EQ(control(fd, NFCOMMS_IOC_REGISTER, &bad[0].r), EINVAL);
	CHECK_EQ(unregister(fd, p), ENOENT);
	CHECK_EQ(regions(fd), 0);
	CHECK_EQ(pinned(), 0);
	close(fd);
	free_pages(p, SIZE);
	check_pins();
}

/* Each has pages of its own to the device, whatever other regions have them. */
CASE(regions_may_overlap)
{
	int fd = fresh();
	uint32_t loop = program(fd, "loopback");
	uint8_t *p = pages(SIZE, 1), *q = pages(SIZE, 2);

	CHECK_EQ(registers(fd, p, SIZE), 0);
	CHECK_EQ(registers(fd, p + LINE, PAGE), 0);
	CHECK_EQ(regions(fd), 2);
	CHECK_EQ(send_at(fd, loop, p + LINE, PAGE).status, NFC_OK);
	CHECK_EQ(receive_at(fd, loop, q, PAGE).status, NFC_OK);
	CHECK(!memcmp(p, q, PAGE));
	CHECK_EQ(unregister(fd, p + LINE + 1), ENOENT);
	CHECK_EQ(unregister(fd, p + LINE), 0);
	CHECK_EQ(unregister(fd, p + LINE), ENOENT);
	CHECK_EQ(send_at(fd, loop, p + LINE, PAGE).status, NFC_OK);
	CHECK_EQ(receive_at(fd, loop, q, PAGE).status, NFC_OK);
	CHECK_EQ(unregister(fd, p), 0);
	CHECK_EQ(pinned(), 0);
	close(fd);
	free_pages(p, SIZE);
	free_pages(q, SIZE);
	check_pins();
}

/* An operation that names a region has its bytes from there, or fails. */
CASE(handles_and_offsets)
{
	int fd = fresh();
	uint8_t *p = pages(SIZE, 1);
	struct nfcomms_op op = transfer(NFCOMMS_OP_SEND_IND,
					program(fd, "sink"), NULL, PAGE);
	struct nfcomms_register r = region_at(p, SIZE);
	struct nfcomms_unregister u = { .size = sizeof(u) };
	struct nfcomms_completion c;
	const struct {
		uint64_t offset, length;
		uint32_t error;
	} places[] = {
		{ 0, SIZE, 0 },	     { SIZE - 1, 1, 0 },   { SIZE, 1, ERANGE },
		{ 1, SIZE, ERANGE }, { ~0ull, 2, ERANGE }, { 0, ~0ull, ERANGE },
	};

	CHECK_EQ(control(fd, NFCOMMS_IOC_REGISTER, &r), 0);
	CHECK(r.region);
	op.region = r.region;
	for (size_t i = 0; i < sizeof(places) / sizeof(*places); i++) {
		op.offset = places[i].offset;
		op.length = places[i].length;
		CHECK_EQ(call(fd, &op, &c), 0);
		CHECK_EQ(c.error, places[i].error);
		CHECK_EQ(c.status == NFC_OK, !places[i].error);
	}
	op.offset = 0;
	op.length = PAGE;
	op.address = (uintptr_t)p; /* one or the other */
	CHECK_EQ(call(fd, &op, &c), EINVAL);
	op.address = 0;
	op.region++;
	CHECK_EQ(call(fd, &op, &c), 0);
	CHECK_EQ(c.error, ENOENT);
	u.region = op.region;
	CHECK_EQ(control(fd, NFCOMMS_IOC_UNREGISTER, &u), ENOENT);
	u.rsvd0 = 1;
	u.region = r.region;
	CHECK_EQ(control(fd, NFCOMMS_IOC_UNREGISTER, &u), EINVAL);
	u.rsvd0 = 0;
	CHECK_EQ(control(fd, NFCOMMS_IOC_UNREGISTER, &u), 0);
	op.region = r.region;
	CHECK_EQ(call(fd, &op, &c), 0);
	CHECK_EQ(c.error, ENOENT);
	op.region = 0;
	op.offset = 1;
	CHECK_EQ(call(fd, &op, &c), EINVAL);
	close(fd);
	free_pages(p, SIZE);
	check_pins();
}

/* Two in one page, even in one line of a cache: the page is mapped once for each. */
CASE(two_in_a_page)
{
	enum { SHORT = 16 };
	int fd = fresh();
	uint8_t *p = pages(PAGE, 0), want[SHORT];
	uint32_t ch = program(fd, "source");

	CHECK_EQ(registers(fd, p, SHORT), 0);
	CHECK_EQ(registers(fd, p + SHORT, SHORT), 0);
	for (uint64_t i = 0; i < SHORT; i++)
		want[i] = pattern(7, i);
	for (int i = 0; i < 2; i++) {
		ask_source(fd, ch, SHORT, 7);
		CHECK_EQ(receive_at(fd, ch, p + i * SHORT, SHORT).status,
			 NFC_OK);
	}
	CHECK(!memcmp(p, want, SHORT));
	CHECK(!memcmp(p + SHORT, want, SHORT));
	CHECK_EQ(unregister(fd, p), 0);
	CHECK_EQ(unregister(fd, p + SHORT), 0);
	close(fd);
	free_pages(p, PAGE);
	check_pins();
}

CASE(as_many_as_there_may_be)
{
	int fd = fresh(), n = 0, rc;
	uint8_t *p = pages(SIZE, 1);

	while (!(rc = registers(fd, p + n * LINE, 1)))
		n++;
	CHECK_EQ(rc, ENOSPC);
	CHECK_EQ(n, 1024);
	CHECK_EQ(unregister(fd, p + 7 * LINE), 0);
	CHECK_EQ(registers(fd, p + 7 * LINE, 1), 0);
	close(fd);
	free_pages(p, SIZE);
	check_pins();
}

CASE(inside_nothing_is_pinned)
{
	static const uint32_t at[] = { 100, 100, 101, 4095, 9000, 100 + BULK / 2 };
	static const uint32_t n[] = { BULK - 100, 1,	   4096,
				      20000,	  1 << 20, BULK / 2 - 100 };
	uint8_t *p = pages(BULK, 1), *q = pages(BULK, 2);
	int fd = fresh();
	uint32_t loop = program(fd, "loopback");
	uint64_t before;

	CHECK_EQ(registers(fd, p + 100, BULK - 100), 0);
	CHECK_EQ(registers(fd, q, BULK), 0);
	before = pins(fd);
	for (size_t i = 0; i < sizeof(at) / sizeof(*at); i++)
		there_and_back(fd, loop, p + at[i], q + at[i] / 3, n[i], i);
	CHECK_EQ(pins(fd), before);
	there_and_back(fd, loop, p + 99, q, 2 * PAGE, 7); /* one byte outside */
	CHECK_EQ(pins(fd), before + 1);
	CHECK_EQ(unregister(fd, p + 100), 0);
	there_and_back(fd, loop, p + 100, q, 2 * PAGE, 8);
	CHECK_EQ(pins(fd), before + 2);
	CHECK_EQ(unregister(fd, q), 0);
	CHECK_EQ(pinned(), 0);
	close(fd);
	free_pages(p, BULK);
	free_pages(q, BULK);
	check_pins();
}

CASE(memory_that_is_only_read)
{
	uint8_t *p = pages(SIZE, 5), *q = pages(SIZE, 2);
	int fd = fresh();
	uint32_t loop = program(fd, "loopback");
	uint64_t before;

	CHECK_EQ(registers_with(fd, p, SIZE, NFCOMMS_REGION_READ_ONLY), 0);
	before = pins(fd);
	CHECK_EQ(send_at(fd, loop, p, SIZE).status, NFC_OK);
	CHECK_EQ(receive_at(fd, loop, p, SIZE).error, EACCES);
	CHECK_EQ(pins(fd), before);
	CHECK_EQ(receive_at(fd, loop, q, SIZE).status, NFC_OK);
	CHECK_EQ(unregister(fd, p), 0);
	mprotect(p, SIZE, PROT_READ);
	CHECK_EQ(registers(fd, p, SIZE), EFAULT);
	CHECK_EQ(pinned(), 0);
	CHECK_EQ(registers_with(fd, p, SIZE, NFCOMMS_REGION_READ_ONLY), 0);
	there_and_back(fd, loop, q, q, SIZE, 3);
	close(fd);
	free_pages(p, SIZE);
	free_pages(q, SIZE);
	check_pins();
}

static void taken_back(int fd)
{
	struct nfcomms_completion c = { .status = 0 };

	CHECK_EQ(cancel(fd, taken_id()), 0);
	CHECK(reap(fd, &c));
	CHECK_EQ(c.status, NFC_EWITHDRAWN);
}

CASE(not_under_a_transfer)
{
	int fd = fresh();
	uint8_t *p = pages(BULK, 1);

	CHECK_EQ(registers(fd, p, BULK), 0);
	for (uint64_t n = 1; n <= BULK; n *= BULK) {
		offer_at(fd, p, n);
		CHECK_EQ(unregister(fd, p), EBUSY);
		taken_back(fd);
	}
	CHECK_EQ(unregister(fd, p), 0);
	CHECK_EQ(pinned(), 0);
	close(fd);
	free_pages(p, BULK);
	check_pins();
}

CASE(closed_under_a_transfer)
{
	int fd = fresh();
	uint8_t *p = pages(BULK, 1);

	CHECK_EQ(registers(fd, p, BULK), 0);
	offer_at(fd, p, BULK);
	offer_at(fd, p + 5, 6);
	close(fd);
	check_pins();
	free_pages(p, BULK);
	check_device();
}

CASE(unmapped)
{
	int fd = fresh();
	uint32_t loop = program(fd, "loopback");
	uint8_t *p = pages(SIZE, 1), *q = pages(SIZE, 2);

	CHECK_EQ(registers(fd, p, SIZE), 0);
	munmap(p + 5 * PAGE, PAGE); /* some of it is enough */
	check_pins();
	CHECK_EQ(regions(fd), 0);
	CHECK_EQ(send_at(fd, loop, p, SIZE).error, ENOENT);
	CHECK_EQ(unregister(fd, p), ENOENT);
	CHECK_EQ(send_at(fd, loop, p, SIZE).error, EFAULT);
	CHECK(mmap(p + 5 * PAGE, PAGE, PROT_READ | PROT_WRITE,
		   MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) != MAP_FAILED);
	there_and_back(fd, loop, p, q, SIZE, 4); /* memory as any other */
	CHECK_EQ(registers(fd, p, SIZE), 0);
	there_and_back(fd, loop, p, q, SIZE, 5);
	close(fd);
	free_pages(p, SIZE);
	free_pages(q, SIZE);
	check_pins();
}

/* Offered pages stay until they have moved; nothing of the new memory does. */
CASE(unmapped_under_a_transfer)
{
	int fd = fresh();
	uint8_t *p = pages(BULK, 1);

	CHECK_EQ(registers(fd, p, BULK), 0);
	offer_at(fd, p, BULK);
	munmap(p, BULK);
	CHECK_EQ(regions(fd), 0);
	CHECK(pinned() > 0);
	taken_back(fd);
	check_pins();
	close(fd);
	check_pins();
	check_device();
}

/* It keeps its pages when the addresses name others; only unmapping them ends it. */
CASE(other_pages_at_its_addresses)
{
	int fd = fresh();
	uint32_t loop = program(fd, "loopback");
	uint8_t *p = pages(SIZE, 1), *q = pages(SIZE, 2), *s = pages(SIZE, 3);

	CHECK_EQ(registers(fd, p, SIZE), 0);
	CHECK_EQ(madvise(p, SIZE, MADV_DONTNEED), 0);
	CHECK_EQ(p[0], 0);
	CHECK_EQ(send_at(fd, loop, p, SIZE).status, NFC_OK);
	CHECK_EQ(receive_at(fd, loop, q, SIZE).status, NFC_OK);
	for (int i = 0; i < SIZE; i += PAGE)
		CHECK_EQ(q[i], 1);
	CHECK(mremap(s, SIZE, SIZE, MREMAP_MAYMOVE | MREMAP_FIXED, p) == p);
	CHECK_EQ(regions(fd), 0);
	CHECK_EQ(send_at(fd, loop, p, SIZE).error, ENOENT);
	check_pins();
	close(fd);
	free_pages(p, SIZE);
	free_pages(q, SIZE);
	check_pins();
}

/* Rights of the process to its addresses are not the region's. */
CASE(protected)
{
	int fd = fresh();
	uint32_t loop = program(fd, "loopback");
	uint8_t *p = pages(SIZE, 1);

	CHECK_EQ(registers(fd, p, SIZE), 0);
	mprotect(p, SIZE, PROT_NONE);
	CHECK_EQ(send_at(fd, loop, p, SIZE).status, NFC_OK);
	CHECK_EQ(receive_at(fd, loop, p, SIZE).status, NFC_OK);
	CHECK_EQ(regions(fd), 1);
	close(fd);
	free_pages(p, SIZE);
	check_pins();
}

static int memfd(size_t size, uint8_t **p)
{
	int f = memfd_create("region", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	CHECK(f >= 0 && ftruncate(f, (off_t)size) == 0);
	*p = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, f, 0);
	CHECK(*p != MAP_FAILED);
	memset(*p, 1, size);
	return f;
}

CASE(truncated)
{
	uint8_t *p, *q = pages(SIZE, 2);
	int fd = fresh(), f = memfd(SIZE, &p);
	uint32_t loop = program(fd, "loopback");

	CHECK_EQ(registers(fd, p, SIZE), 0);
	CHECK_EQ(ftruncate(f, 3 * PAGE), 0);
	CHECK_EQ(send_at(fd, loop, p, SIZE).status, NFC_OK);
	CHECK_EQ(receive_at(fd, loop, q, SIZE).status, NFC_OK);
	CHECK_EQ(q[SIZE - 1], 1); /* as it was */
	CHECK_EQ(unregister(fd, p), 0);
	check_pins();
	CHECK_EQ(send_at(fd, loop, p, SIZE).error, EFAULT);
	CHECK_EQ(registers(fd, p, SIZE), EFAULT);
	CHECK_EQ(pinned(), 0);
	CHECK_EQ(registers(fd, p, 3 * PAGE), 0);
	close(fd);
	close(f);
	munmap(p, SIZE);
	free_pages(q, SIZE);
	check_pins();
}

CASE(sealed)
{
	uint8_t *p, *q;
	int fd = fresh(), f = memfd(SIZE, &p);
	uint32_t loop = program(fd, "loopback");

	CHECK_EQ(registers(fd, p, SIZE), 0);
	CHECK_EQ(fcntl(f, F_ADD_SEALS, F_SEAL_SHRINK), 0);
	CHECK_EQ(ftruncate(f, 0), -1);
	there_and_back(fd, loop, p, p, SIZE, 1);
	CHECK_EQ(fcntl(f, F_ADD_SEALS, F_SEAL_WRITE), -1);
	CHECK_EQ(errno, EBUSY);
	munmap(p, SIZE);
	check_pins();
	CHECK_EQ(fcntl(f, F_ADD_SEALS, F_SEAL_WRITE), 0);
	q = mmap(NULL, SIZE, PROT_READ, MAP_SHARED, f, 0);
	REQUIRE(q != MAP_FAILED);
	CHECK_EQ(registers(fd, q, SIZE), EFAULT);
	CHECK_EQ(registers_with(fd, q, SIZE, NFCOMMS_REGION_READ_ONLY), 0);
	CHECK_EQ(send_at(fd, loop, q, SIZE).status, NFC_OK);
	close(fd);
	close(f);
	munmap(q, SIZE);
	check_pins();
}
