// SPDX-License-Identifier: MIT
/*
 * Memory that a client has mapped many times: no more than a kernel that debugs DMA
 * can count. Only such kernels refuse it.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <sys/mman.h>
#include <unistd.h>

#include "region.h"
#include "rig.h"

enum {
	PAGE = NFC_PAGE_SIZE,
	SIZE = 64 * PAGE,
	MAPPINGS = 16, /* more than are counted */
	MAY_WRITE = 6, /* at once, by the device */
};

/* Receive to memory that no handle names: the error of the completion. The offer stays. */
static uint32_t received_unregistered(int fd, uint32_t ch, void *at, uint64_t n)
{
	struct nfcomms_op op = transfer(NFCOMMS_OP_RECEIVE_IND, ch, at, n);
	struct nfcomms_completion c = { .status = NFC_STATUS_COUNT };

	CHECK_EQ(call(fd, &op, &c), 0);
	CHECK_EQ(c.status == NFC_OK, !c.error);
	return c.error;
}

/* One line in many regions, of two files: no more than the kernel can count. */
CASE(many_regions_of_a_line)
{
	int fd = fresh(), other = client();
	uint32_t ch = program(fd, "source");
	uint8_t *p = pages(SIZE, 1);

	ask_source(fd, ch, PAGE, 7);
	for (int round = 0; round < 2; round++) {
		for (int i = 0; i < MAPPINGS; i++)
			CHECK_EQ(registers(i % 2 ? fd : other, p, SIZE - i),
				 i < MAY_WRITE ? 0 : EBUSY);
		CHECK_EQ(received_unregistered(fd, ch, p, PAGE), EBUSY);
		for (int i = 0; i < MAPPINGS; i++)
			CHECK_EQ(registers_with(fd, p, SIZE,
						NFCOMMS_REGION_READ_ONLY),
				 0);
		while (!unregister(fd, p) || !unregister(other, p))
			;
		check_pins();
	}
	CHECK_EQ(received_unregistered(fd, ch, p, PAGE), 0);
	CHECK_EQ(p[PAGE - 1], pattern(7, PAGE - 1));
	close(fd);
	close(other);
	free_pages(p, SIZE);
	check_pins();
	check_device();
}

/* One page that is at many addresses in a row. */
CASE(a_page_many_times)
{
	uint8_t *q = name_for(MAPPINGS * PAGE);
	int fd = fresh(), f = memfd_create("page", MFD_CLOEXEC);
	uint32_t sink = program(fd, "sink");

	CHECK_EQ(ftruncate(f, PAGE), 0);
	for (int i = 0; i < MAPPINGS; i++)
		REQUIRE(mmap(q + i * PAGE, PAGE, PROT_READ | PROT_WRITE,
			     MAP_SHARED | MAP_FIXED, f, 0) != MAP_FAILED);
	CHECK_EQ(registers(fd, q, MAPPINGS * PAGE), EBUSY);
	CHECK_EQ(send_at(fd, sink, q, MAPPINGS * PAGE).status, NFC_OK);
	CHECK_EQ(registers(fd, q, MAY_WRITE * PAGE), 0);
	close(fd);
	close(f);
	free_pages(q, MAPPINGS * PAGE);
	check_pins();
	check_device();
}
