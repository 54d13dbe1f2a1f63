// SPDX-License-Identifier: MIT
/*
 * A process keeps its island to itself while another island beats (nfsim --lone).
 * The rest of the device goes on; a call that needs an answer of that island ends with
 * the device, in the time that an island has to look at its mailbox.
 */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "bus.h"
#include "rig.h"

enum {
	ISLANDS = 2,
	PAGE = NFC_PAGE_SIZE,
	LISTS = 40 * PAGE, /* more than is sent with an offer */
	/*
	 * Longer than the island has, also of a guest that waits for a processor. The
	 * RESET after that waits for the end of it, and has ten seconds.
	 */
	SPIN_MS = 7000,
};

static const struct nfcomms_reset two = { .islands = ISLANDS };

/* Have one of the islands compute. */
static void begin_spin(int fd)
{
	struct nfcomms_op op = operation(NFCOMMS_OP_CONTROL, 0);
	struct nfcomms_request_start request = {
		.request = NFCOMMS_CONTROL_START,
		.targets = 1,
		.argument = SPIN_MS,
	};
	struct nfcomms_completion c;

	strcpy((char *)request.name, NFC_LONE "spin");
	memcpy(op.payload, &request, sizeof(request));
	CHECK_EQ(call(fd, &op, &c), 0);
	memcpy(&request, c.payload, sizeof(request));
	CHECK_EQ(request.status, NFC_OK);
}

/* Try a transfer to a process of each island: how many were lost with the device. */
static int try_each(int fd, const uint32_t *sink, const uint8_t *at, size_t size)
{
	struct nfcomms_op ops[ISLANDS];
	int lost = 0;

	for (int i = 0; i < ISLANDS; i++) {
		ops[i] = transfer(NFCOMMS_OP_SEND_IND, sink[i], at, size);
		ops[i].flags = NFCOMMS_NOWAIT;
	}
	CHECK_EQ(submit(fd, ops, ISLANDS), ISLANDS);
	for (int i = 0; i < ISLANDS; i++) {
		struct nfcomms_completion c = { .status = NFC_STATUS_COUNT };

		CHECK(reap(fd, &c));
		if (c.status == NFC_ERESET)
			lost++;
		else if (c.status == NFC_EWITHDRAWN)
			CHECK(c.flags & NFCOMMS_NOT_NOW);
		else
			CHECK_EQ(c.status, NFC_OK);
	}
	return lost;
}

/* A try ends before the process does, with the device. */
static void try_beside_one(size_t size)
{
	uint8_t *at = pages(size, 1);
	uint32_t sink[ISLANDS];
	int fd = fresh_as(two), lost = 0;
	uint64_t end;
	char before[16];

	snprintf(before, sizeof(before), "%lu", limit("heartbeat_timeout_ms"));
	for (int i = 0; i < ISLANDS; i++)
		sink[i] = program(fd, "sink");
	CHECK_EQ(try_each(fd, sink, at, size), 0);
	begin_spin(fd);
	set_limit("heartbeat_timeout_ms", "1000");
	end = now_ns() + SPIN_MS * 1000000ull;
	while (!lost && now_ns() < end && !test_failures())
		lost = try_each(fd, sink, at, size);
	CHECK(lost > 0);
	set_limit("heartbeat_timeout_ms", before);
	close(fd);
	free_pages(at, size);
	close(fresh());
	check_device();
	check_pins();
}

CASE(a_try_of_an_eager_transfer)
{
	try_beside_one(PAGE);
}

CASE(a_try_of_a_transfer_with_lists)
{
	try_beside_one(LISTS);
}
