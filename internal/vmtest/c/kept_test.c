// SPDX-License-Identifier: MIT
/*
 * Pages that the device has for an eager transfer come back with its answer, and not
 * before: with a device that never says WITHDRAWN (nfsim --script drop+1:withdrawn)
 * when it has been fenced. cancel_timeout_ms is raised, to look in time.
 */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "bus.h"
#include "rig.h"

enum { AFTER_US = 300000 }; /* less than the cancel time-out below */

static void set_timeout(const char *ms)
{
	char path[128];

	snprintf(path, sizeof(path), "/sys/class/nfcomms/%s/cancel_timeout_ms",
		 strrchr(node(), '/') + 1);
	put(path, ms);
}

/* Take an operation back whose pages the device has, and which it keeps. */
static void check_kept(int fd, struct nfcomms_op op)
{
	struct nfcomms_completion c = { .status = 0 };
	uint32_t was = epoch(fd);

	set_timeout("2000");
	CHECK_EQ(submit(fd, &op, 1), 1);
	while (!pinned() && !test_failures())
		usleep(1000);
	CHECK_EQ(cancel(fd, taken_id()), 0);
	usleep(AFTER_US);
	/* In this order: the time may be over meanwhile. */
	CHECK(pinned() > 0 || state(fd) != NFCOMMS_STATE_READY ||
	      epoch(fd) != was);
	CHECK(reap(fd, &c));
	CHECK_EQ(c.status, NFC_ERESET);
	check_lost(fd, was);
	set_timeout("100");
	close(fd);
	check_pins();
}

CASE(pages_of_an_offer)
{
	uint8_t *p = pages(NFC_PAGE_SIZE, 1);
	int fd = fresh();

	check_kept(fd, transfer(NFCOMMS_OP_SEND_IND, program(fd, "hold"), p,
				NFC_PAGE_SIZE));
	free_pages(p, NFC_PAGE_SIZE);
}

CASE(pages_that_wait)
{
	uint8_t *p = pages(NFC_PAGE_SIZE, 1);
	int fd = fresh();

	check_kept(fd, transfer(NFCOMMS_OP_RECEIVE_IND, program(fd, "source"),
				p, NFC_PAGE_SIZE));
	free_pages(p, NFC_PAGE_SIZE);
	close(fresh()); /* for the next opener */
}
