// SPDX-License-Identifier: MIT
/*
 * Nobody sleeps through what the device says. The driver sets the park word, so
 * that it is told, and looks at the ring once more, for what was said before. If
 * it did not, its periodic look would find it, up to a quarter of a second later.
 */
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "rig.h"

enum {
	ROUNDS = 60,
	TICK_MS = 200, /* less than the periodic look's period */
	SETTLE_US = 3000, /* the device offers before the driver asks */
	SILENT_US = 60000, /* the same where others compute, at first */
	LONGER_US = 20000, /* more of it with each round, on a busy machine ... */
	LONGEST = 8, /* ... but less than the periodic look's period */
	COMPUTED = 16 << 20, /* bytes that they make meanwhile */
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

#define TRACING "/sys/kernel/debug/tracing/"

static void trace(const char *file, const char *value)
{
	char path[128];
	FILE *f;

	snprintf(path, sizeof(path), TRACING "%s", file);
	f = fopen(path, "w"); /* empties the trace */
	CHECK(f && fputs(value, f) >= 0 && !fclose(f));
}

/* How many offers of transfers did this very process take from the ring? */
static int taken_here(void)
{
	char line[512], type[32];
	FILE *f = fopen(TRACING "trace", "r");
	int pid, found = 0;

	snprintf(type, sizeof(type), " type=%d ", NFC_TYPE_IND_BEGIN);
	if (!CHECK(f))
		return 0;
	while (fgets(line, sizeof(line), f)) {
		const char *name = strstr(line, "-");

		if (name && sscanf(name, "-%d ", &pid) == 1 && pid == getpid() &&
		    strstr(line, "nfcomms_slot_in:") && strstr(line, type))
			found++;
	}
	fclose(f);
	return found;
}

/*
 * A process is told on one port to offer on another one, of which nobody has
 * asked for anything yet: its park word is clear, and the offer rings nobody.
 * Others compute meanwhile, so that it comes after the interrupt for the order.
 */
static void offer_in_silence(int round)
{
	static uint8_t page[NFC_PAGE_SIZE];
	uint64_t order = 1ull << 63 | sizeof(page);
	uint32_t busy[2], first = 0, ports[2];
	struct nfcomms_op op;
	int fd = client();

	for (int i = 0; i < 2; i++)
		busy[i] = program(fd, "source");
	CHECK_EQ(start(fd, "expect", 2, &first), NFC_OK);
	for (int i = 0; i < 2; i++)
		ports[i] = subscribe(fd, first + i);
	for (int i = 0; i < 2; i++)
		ask_source(fd, busy[i], COMPUTED, i);
	op = message(ports[0], &order, sizeof(order));
	CHECK_EQ(outcome(fd, &op), NFC_OK);
	usleep(SILENT_US + round % LONGEST * LONGER_US);
	op = transfer(NFCOMMS_OP_RECEIVE_IND, ports[1], page, sizeof(page));
	CHECK_EQ(outcome(fd, &op), NFC_OK);
	close(fd);
}

/* The call itself finds some of them: no interrupt does, and no periodic look. */
CASE(the_second_look)
{
	int second_looks = 0;

	close(fresh());
	for (int i = 0; i < ROUNDS && !second_looks && !test_failures(); i++) {
		trace("trace", "");
		trace("events/nfcomms/nfcomms_slot_in/enable", "1");
		offer_in_silence(i);
		trace("events/nfcomms/nfcomms_slot_in/enable", "0");
		second_looks = taken_here();
	}
	CHECK(second_looks > 0);
}
