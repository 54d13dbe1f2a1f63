// SPDX-License-Identifier: MIT
/*
 * What the device says before the driver asks to be told is found all the same:
 * the driver sets the park word and looks at the ring once more. If it did not,
 * its periodic look would find it, a quarter of a second later each time.
 */
#include <poll.h>
#include <stdio.h>
#include <unistd.h>

#include "rig.h"

enum {
	ROUNDS = 60,
	TICK_MS = 200, /* less than the periodic look's period */
	SETTLE_US = 3000, /* the device offers before the driver asks */
};

static uint64_t elapsed_ms(uint64_t since)
{
	return (now_ns() - since) / 1000000;
}

/* A wait that only the periodic look ends, every other time: that is no load. */
static void check_rounds(const char *what, int late)
{
	printf("%s: %d of %d waits took a tick\n", what, late, ROUNDS);
	CHECK(late < ROUNDS / 2);
}

/*
 * On a channel of which nothing was received yet nobody is told of offers, and a
 * sent transfer ends here before the device offers its echo.
 */
CASE(offers_that_came_first)
{
	static uint8_t page[NFC_PAGE_SIZE];
	int late = 0;

	for (int i = 0; i < ROUNDS && !test_failures(); i++) {
		int fd = fresh();
		uint32_t ch = program(fd, "loopback");
		struct nfcomms_op send = transfer(NFCOMMS_OP_SEND_IND, ch, page,
						  sizeof(page));
		struct nfcomms_op receive = transfer(NFCOMMS_OP_RECEIVE_IND, ch,
						     page, sizeof(page));
		uint64_t begun;

		CHECK_EQ(outcome(fd, &send), NFC_OK);
		usleep(SETTLE_US);
		begun = now_ns();
		CHECK_EQ(outcome(fd, &receive), NFC_OK);
		late += elapsed_ms(begun) >= TICK_MS;
		close(fd);
	}
	check_rounds("offers", late);
}

CASE(completions_wake_a_poll)
{
	int fd = fresh(), late = 0;
	struct nfcomms_op op = message(program(fd, "sink"), "x", 1);
	struct pollfd p = { .fd = fd, .events = POLLIN };
	struct nfcomms_completion c;

	for (int i = 0; i < ROUNDS && !test_failures(); i++) {
		uint64_t begun = now_ns();

		CHECK_EQ(submit(fd, &op, 1), 1);
		CHECK_EQ(poll(&p, 1, PATIENCE_MS), 1);
		late += elapsed_ms(begun) >= TICK_MS;
		CHECK(reap(fd, &c));
	}
	check_rounds("completions", late);
	close(fd);
}
