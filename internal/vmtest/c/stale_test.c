// SPDX-License-Identifier: MIT
/*
 * A device that continues with DMA of the epoch before when a RESET begins:
 * nfsim --script stale+1. It may reach memory only once the RESET has ended
 * that.
 */
#include <string.h>
#include <unistd.h>

#include "bus.h"
#include "rig.h"

enum { SIZE = 1 << 20 };

/* Have the device write somewhere, and take the memory back. */
static void receive_into(uint8_t *p)
{
	int fd = fresh();
	uint32_t ch = program(fd, "source");
	struct nfcomms_op op = transfer(NFCOMMS_OP_RECEIVE_IND, ch, p, SIZE);
	struct nfcomms_completion c = { .status = NFC_STATUS_COUNT };

	CHECK_EQ(submit(fd, &op, 1), 1);
	ask_source(fd, ch, SIZE, 1);
	CHECK(reap(fd, &c));
	CHECK_EQ(c.status, NFC_OK);
	close(fd);
	check_pins();
	memset(p, 0, SIZE);
}

static size_t written(const uint8_t *p)
{
	size_t n = 0;

	for (size_t i = 0; i < SIZE; i++)
		n += p[i] != 0;
	return n;
}

CASE(dma_of_the_epoch_before_a_reset)
{
	uint8_t *p = small_pages(SIZE, 0);

	receive_into(p);
	close(fresh()); /* which resets the device */
	CHECK_EQ(written(p), 0);
	CHECK(is_master());
	free_pages(p, SIZE);
	check_device();
}

CASE(dma_of_the_epoch_before_an_unbind)
{
	uint8_t *p = small_pages(SIZE, 0);
	char device[PATH_MAX];

	receive_into(p);
	find_device(device);
	unbind(device);
	bind_to(device);
	await_node();
	CHECK_EQ(written(p), 0);
	free_pages(p, SIZE);
	check_device();
}
