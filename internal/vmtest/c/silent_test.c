// SPDX-License-Identifier: MIT
/*
 * A device that interrupts nobody (nfsim --script irq-drop+1). What lies in the
 * ring when a call sets the park word is found by the call itself, which drains
 * the ring once more after that; else the periodic tick finds it.
 */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "rig.h"

enum {
	ROUNDS = 20, /* of which a tick may spoil some */
	SILENT_US = 20000, /* for the device to answer and to offer ... */
	LONGER_US = 10000, /* ... and more with each round, on a busy machine */
};

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
	char line[512], here[32];
	FILE *f = fopen(TRACING "trace", "r");
	int found = 0;

	snprintf(here, sizeof(here), "-%d ", getpid());
	if (!CHECK(f))
		return 0;
	while (fgets(line, sizeof(line), f))
		if (strstr(line, here) && strstr(line, "nfcomms_slot_in:") &&
		    strstr(line, " type=IND_BEGIN "))
			found++;
	fclose(f);
	return found;
}

/*
 * Have a transfer offered, and receive it when it has lain there for a while: on a
 * channel of its own, whose park word is still clear.
 */
static void receive_late(int round)
{
	int fd = client();
	uint32_t ch = program(fd, "source");
	static uint8_t page[NFC_PAGE_SIZE];
	uint64_t words[2] = { sizeof(page), (uint64_t)round };
	struct nfcomms_op op = message(ch, words, sizeof(words));
	struct nfcomms_completion c;

	CHECK_EQ(submit(fd, &op, 1), 1);
	usleep(SILENT_US + round * LONGER_US);
	op = transfer(NFCOMMS_OP_RECEIVE_IND, ch, page, sizeof(page));
	CHECK_EQ(outcome(fd, &op), NFC_OK);
	CHECK(reap(fd, &c));
	close(fd);
}

CASE(the_call_finds_what_came_before)
{
	int found = 0;

	close(fresh());
	for (int i = 0; i < ROUNDS && !found && !test_failures(); i++) {
		trace("trace", "");
		trace("events/nfcomms/nfcomms_slot_in/enable", "1");
		receive_late(i);
		trace("events/nfcomms/nfcomms_slot_in/enable", "0");
		found = taken_here();
	}
	CHECK(found > 0);
}
