// SPDX-License-Identifier: MIT
/*
 * A waiter is woken by an interrupt: the driver has set the park word. If it
 * had not, its periodic tick would find the message, up to a quarter of a
 * second later. silent_test.c is about messages that arrived before the park
 * word was set.
 */
#include <poll.h>
#include <stdio.h>
#include <unistd.h>

#include "rig.h"

enum {
	ROUNDS = 60,
	TICK_MS = 200, /* less than the tick's period */
	SETTLE_US = 3000, /* the device offers before the host receives */
};

static uint64_t elapsed_ms(uint64_t since)
{
	return (now_ns() - since) / 1000000;
}

/* Every other wait ended by the tick alone is not due to load. */
static void check_rounds(const char *what, int late)
{
	printf("%s: %d of %d waits took a tick\n", what, late, ROUNDS);
	CHECK(late < ROUNDS / 2);
}

/* A sent transfer ends here before the device offers its echo. */
CASE(offers_after_a_send)
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
