// SPDX-License-Identifier: MIT
/*
 * A device that sends no interrupt (nfsim --script irq-drop+1). A message in
 * the ring when a call sets the park word is found by the call itself, which
 * drains the ring once more after that; else the periodic tick finds it. Rings
 * are full here: messages that were not taken stay. Every reply waits for a
 * tick, so that few are requested.
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lazy.h"
#include "rig.h"

enum {
	PAGE = NFC_PAGE_SIZE,
	WINDOW = 2, /* lists, of which a transfer here needs many */
	ROUNDS = 20, /* of which a tick may spoil some */
	SILENT_US = 20000, /* for the device to answer and to offer ... */
	LONGER_US = 10000, /* ... and more with each round, on a busy machine */
};

/* One ring, and few lists in flight: transfers pin again and again. */
static const struct nfcomms_reset narrow = {
	.window = WINDOW,
	.mailboxes = 1,
	.islands = 1,
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

/* How many messages of a type did a thread, or 0: any, take from the rings? */
static int taken_by(pid_t thread, const char *type)
{
	char line[512], by[32] = "", is[32];
	FILE *f = fopen(TRACING "trace", "r");
	int found = 0;

	if (thread)
		snprintf(by, sizeof(by), "-%d ", thread);
	snprintf(is, sizeof(is), " type=%s ", type);
	if (!CHECK(f))
		return 0;
	while (fgets(line, sizeof(line), f))
		if (strstr(line, by) && strstr(line, "nfcomms_slot_in:") &&
		    strstr(line, is))
			found++;
	fclose(f);
	return found;
}

/* Trace what is taken from the rings, from now on. */
static void trace_slots(void)
{
	trace("trace", "");
	trace("events/nfcomms/nfcomms_slot_in/enable", "1");
}

static void trace_no_slots(void)
{
	trace("events/nfcomms/nfcomms_slot_in/enable", "0");
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
		trace_slots();
		receive_late(i);
		trace_no_slots();
		found = taken_by(getpid(), "IND_BEGIN");
	}
	CHECK(found > 0);
}

/* A client whose own context waits for its page. */
struct caller {
	pthread_t thread;
	_Atomic pid_t id; /* of it */
	struct lazy memory;
	int fd;
	uint32_t channel, other; /* whose park words are still clear */
};

static void *call_and_stall(void *argument)
{
	struct caller *a = argument;
	struct nfcomms_op op = transfer(NFCOMMS_OP_SEND_IND, a->channel,
					a->memory.p, PAGE);

	a->id = gettid();
	CHECK_EQ(call(a->fd, &op, NULL), 0);
	return NULL;
}

/*
 * Begin a transfer that is pinned bit by bit, take the acknowledgement that it begins,
 * and call when the device has moved a part of it: did the call take that one?
 */
static bool call_beside(struct caller *a, int fd, struct nfcomms_op op, int wait)
{
	struct nfcomms_op look = operation(NFCOMMS_OP_RECEIVE, a->other);
	struct nfcomms_completion c = { .status = NFC_STATUS_COUNT };
	int taken;

	trace_slots();
	CHECK_EQ(submit(fd, &op, 1), 1);
	usleep(wait);
	CHECK_EQ(submit(a->fd, &look, 1), 1);
	usleep(wait);
	CHECK(!pthread_create(&a->thread, NULL, call_and_stall, a));
	await_fault(&a->memory);
	trace_no_slots();
	CHECK(reap(fd, &c));
	CHECK_EQ(c.status, NFC_OK);
	taken = taken_by(a->id, "ACK");
	return taken > 0 && taken_by(0, "ACK") > taken;
}

/*
 * A call drains the ring when it sets a park word, and finds acknowledgements of
 * others, whose next pages are to be pinned; it must not pin its own before. The
 * device is silent, so that it finds some, unless a tick was first.
 */
CASE(a_call_that_stalls_after_it_took_what_was_for_others)
{
	enum { SMALL = 4 * WINDOW * NFC_LIST_ENTRIES * PAGE };
	static struct caller a[ROUNDS];
	int fd = fresh_as(narrow), rounds = 0;
	uint8_t *p = pages(SMALL, 1);
	uint32_t first = 0, sink;
	bool found = false;

	CHECK_EQ(start(fd, "sink", 1 + 2 * ROUNDS, &first), NFC_OK);
	sink = subscribe(fd, first++);
	while (rounds < ROUNDS && !found && !test_failures()) {
		struct caller *c = &a[rounds];

		c->memory = lazy_pages(PAGE, 0);
		c->fd = client();
		c->channel = subscribe(c->fd, first++);
		c->other = subscribe(c->fd, first++);
		found = call_beside(c, fd,
				    transfer(NFCOMMS_OP_SEND_IND, sink, p, SMALL),
				    SILENT_US + rounds++ * LONGER_US);
	}
	CHECK(found || test_failures());
	for (int i = 0; i < rounds; i++) {
		let_come(&a[i].memory);
		pthread_join(a[i].thread, NULL);
		close(a[i].fd);
		free_lazy(&a[i].memory);
	}
	close(fd);
	free_pages(p, SMALL);
	check_pins();
}

/*
 * Messages through a ring that is full, as it is with a silent device: a slot is
 * written again once it was read.
 */
CASE(a_full_ring_loses_nothing)
{
	enum { PORTS = NFC_SLOTS_MIN, TIMES = 8 };
	struct nfcomms_reset tiny = narrow;
	struct nfcomms_op ops[2 * PORTS];
	struct nfcomms_completion c;
	uint32_t first = 0, ch[PORTS], heard;
	int fd;

	tiny.slots = NFC_SLOTS_MIN;
	fd = fresh_as(tiny);
	CHECK_EQ(start(fd, "loopback", PORTS, &first), NFC_OK);
	for (uint32_t i = 0; i < PORTS; i++)
		ch[i] = subscribe(fd, first + i);
	for (uint32_t t = 0; t < TIMES && !test_failures(); t++) {
		heard = 0;
		for (uint32_t i = 0; i < PORTS; i++) {
			uint32_t words[2] = { t, i };

			ops[i] = operation(NFCOMMS_OP_RECEIVE, ch[i]);
			ops[i].length = NFCOMMS_PAYLOAD_SIZE;
			ops[PORTS + i] = message(ch[i], words, sizeof(words));
		}
		CHECK_EQ(submit(fd, ops, 2 * PORTS), 2 * PORTS);
		for (int i = 0; i < 2 * PORTS && reap(fd, &c); i++) {
			uint32_t words[2];

			CHECK_EQ(c.status, NFC_OK);
			memcpy(words, c.payload, sizeof(words));
			if (c.opcode != NFCOMMS_OP_RECEIVE)
				continue;
			CHECK(words[0] == t && words[1] < PORTS &&
			      ch[words[1]] == c.channel);
			heard |= 1u << words[1];
		}
		CHECK_EQ(heard, (1u << PORTS) - 1);
	}
	close(fd);
}

/* The most messages that were ever taken in a row with a mailbox locked. */
static unsigned int longest_row(void)
{
	char path[128], line[512], *at;
	unsigned int longest = 0;
	FILE *f;

	snprintf(path, sizeof(path), "/sys/kernel/debug/nfcomms/%s/state",
		 strrchr(node(), '/') + 1);
	f = fopen(path, "r");
	CHECK(f);
	while (f && fgets(line, sizeof(line), f)) {
		at = strncmp(line, "mailbox", 7) ? NULL : strstr(line, "row=");
		if (at && strtoul(at + 4, NULL, 10) > longest)
			longest = (unsigned int)strtoul(at + 4, NULL, 10);
	}
	if (f)
		fclose(f);
	return longest;
}

/*
 * More messages wait in a ring than a call takes before it releases the lock.
 */
CASE(a_ring_is_not_drained_at_a_stretch)
{
	enum { BATCH = 32, PORTS = 48, TRIES = 8 };
	struct nfcomms_op ops[PORTS], look;
	int fd = fresh_as(narrow), more;
	struct nfcomms_completion c;
	uint32_t first = 0, fresh_one;

	CHECK_EQ(start(fd, "sink", PORTS, &first), NFC_OK);
	for (uint32_t i = 0; i < PORTS; i++)
		ops[i] = message(subscribe(fd, first + i), "x", 1);
	for (int i = 0; i < TRIES && longest_row() < BATCH && !test_failures();
	     i++) {
		more = client();
		fresh_one = program(more, "loopback");
		look = operation(NFCOMMS_OP_RECEIVE, fresh_one);
		look.length = NFCOMMS_PAYLOAD_SIZE;
		CHECK_EQ(submit(fd, ops, PORTS), PORTS);
		usleep(SILENT_US);
		CHECK_EQ(submit(more, &look, 1), 1);
		for (int k = 0; k < PORTS; k++)
			CHECK(reap(fd, &c));
		close(more);
	}
	CHECK(longest_row() > 1);
	CHECK(longest_row() <= BATCH);
	close(fd);
}
