// SPDX-License-Identifier: MIT
/*
 * A device that is lost comes back by itself where its limits say so: nfsim --script
 * hang@N, which only a reset ends.
 */
#include <stdio.h>
#include <unistd.h>

#include "bus.h"
#include "rig.h"

/* Messages until the device does not answer any more. */
static void use_up(void)
{
	int fd = client();
	uint32_t ch = program(fd, "loopback");
	struct nfcomms_op ops[2] = { message(ch, "x", 1),
				     operation(NFCOMMS_OP_RECEIVE, ch) };
	struct nfcomms_completion c = { .status = NFC_OK };

	ops[1].length = NFCOMMS_PAYLOAD_SIZE;
	for (int i = 0; c.status == NFC_OK && !test_failures(); i++)
		CHECK_EQ(call(fd, &ops[i % 2], &c), 0);
	CHECK_EQ(c.status, NFC_ERESET);
	close(fd);
}

CASE(a_lost_device_comes_back)
{
	uint64_t end = now_ns() + PATIENCE_MS * 1000000ull;
	int fd = client();

	set_limit("recovery", "1");
	use_up();
	while (state(fd) != NFCOMMS_STATE_READY && now_ns() < end)
		usleep(10000);
	set_limit("recovery", "0");
	close(fd);
	check_device();
	check_pins();
}
