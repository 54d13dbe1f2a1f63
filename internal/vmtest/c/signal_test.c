// SPDX-License-Identifier: MIT
/*
 * Signals while calls wait and bytes move. Go sends SIGURG all the time: a call
 * that was interrupted says EINTR and did not take effect, or it took effect,
 * and no other error number ever comes out.
 *
 *	signal [SIGNALS]
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "rig.h"

enum {
	SIGNALS = 100000, /* handled, in all, unless the argument says otherwise */
	CHUNK = 1 << 20,
};

static volatile unsigned long handled;

static unsigned long signals(void)
{
	return test_argument ? strtoul(test_argument, NULL, 0) : SIGNALS;
}

static void count(int sig)
{
	(void)sig;
	handled++;
}

static void catch (int sig)
{
	struct sigaction action = { .sa_handler = count }; /* no SA_RESTART */

	sigaction(sig, &action, NULL);
}

/* Signals a thread until told to end. */
struct storm {
	pthread_t thread, victim;
	volatile bool over;
};

static void *rage(void *argument)
{
	struct storm *s = argument;

	for (unsigned long sent = 0; !s->over; sent++) {
		pthread_kill(s->victim, SIGURG);
		/* Two signals at once are one: let the first be handled. */
		while (handled <= sent && !s->over)
			sched_yield();
		sent = handled - 1;
	}
	return NULL;
}

static void storm_begin(struct storm *s)
{
	catch (SIGURG);
	handled = 0;
	s->victim = pthread_self();
	s->over = false;
	REQUIRE(pthread_create(&s->thread, NULL, rage, s) == 0);
}

static void storm_end(struct storm *s)
{
	s->over = true;
	pthread_join(s->thread, NULL);
}

struct tally {
	uint64_t done, interrupted;
};

/* One call under fire: what came out must be one of the two. */
static void attempt(int fd, const struct nfcomms_op *op, struct tally *t)
{
	struct nfcomms_completion c;
	int error = call(fd, op, &c);

	CHECK(error == 0 || error == EINTR);
	if (error == EINTR)
		t->interrupted++;
	else if (CHECK_EQ(c.status, NFC_OK))
		t->done++;
}

/* The counts of a sink: messages and transfer bytes that it has taken. */
static void ask_sink(int fd, uint32_t ch, uint64_t taken[3])
{
	struct nfcomms_op ask = message(ch, "SINKSTAT", 8);
	struct nfcomms_op answer = operation(NFCOMMS_OP_RECEIVE, ch);
	struct nfcomms_completion c = { .length = 0 };

	answer.length = NFCOMMS_PAYLOAD_SIZE;
	CHECK_EQ(outcome(fd, &ask), NFC_OK);
	CHECK_EQ(call(fd, &answer, &c), 0);
	CHECK_EQ(c.length, 24);
	memcpy(taken, c.payload, 24);
}

CASE(signals_during_transfers)
{
	int fd = fresh();
	uint32_t ch = program(fd, "sink");
	uint8_t *buffer = pages(CHUNK, 1);
	struct nfcomms_op op = transfer(NFCOMMS_OP_SEND_IND, ch, buffer + 100,
					CHUNK - 200);
	struct tally t = { 0 };
	struct storm s;
	uint64_t taken[3];

	storm_begin(&s);
	while (handled < signals() && !test_failures())
		attempt(fd, &op, &t);
	storm_end(&s);
	ask_sink(fd, ch, taken);
	CHECK_EQ(taken[1], t.done * op.length); /* exactly what was said */
	printf("%lu signals: %lu transfers, %lu interrupted\n", handled,
	       (unsigned long)t.done, (unsigned long)t.interrupted);
	close(fd);
	free_pages(buffer, CHUNK);
	check_pins();
}

CASE(signals_during_messages)
{
	int fd = fresh();
	uint32_t ch = program(fd, "sink");
	struct nfcomms_op op = message(ch, "under fire", 10);
	struct tally t = { 0 };
	struct storm s;
	uint64_t taken[3];

	storm_begin(&s);
	while (handled < signals() / 10 && !test_failures())
		attempt(fd, &op, &t);
	storm_end(&s);
	ask_sink(fd, ch, taken);
	CHECK_EQ(taken[0], t.done);
	close(fd);
}

/*
 * A call that waits for a target that is never ready is interrupted every time.
 */
CASE(signals_while_parked)
{
	static const uint16_t opcodes[] = { NFCOMMS_OP_SEND, NFCOMMS_OP_SEND_IND,
					    NFCOMMS_OP_RECEIVE,
					    NFCOMMS_OP_RECEIVE_IND,
					    NFCOMMS_OP_NEXT };
	int fd = fresh();
	uint32_t ch = program(fd, "hold");
	uint8_t *buffer = pages(CHUNK, 1);
	struct storm s;

	storm_begin(&s);
	for (unsigned long i = 0; i < signals() / 100 && !test_failures(); i++) {
		struct nfcomms_op op = operation(opcodes[i % 5], ch);

		if (op.opcode == NFCOMMS_OP_SEND_IND ||
		    op.opcode == NFCOMMS_OP_RECEIVE_IND)
			op = transfer(op.opcode, ch, buffer, CHUNK);
		else if (op.opcode != NFCOMMS_OP_NEXT)
			op.length = 56;
		CHECK_EQ(call(fd, &op, NULL), EINTR);
	}
	storm_end(&s);
	close(fd);
	free_pages(buffer, CHUNK);
	check_pins();
}

/* read(2) that blocks: EINTR, and the completion is not lost. */
CASE(signals_while_reading)
{
	int fd = open(node(), O_RDWR | O_CLOEXEC);
	uint32_t ch = program(fd, "hold");
	struct nfcomms_op op = message(ch, "x", 1);
	struct nfcomms_completion c;
	struct storm s;

	CHECK_EQ(submit(fd, &op, 1), 1);
	storm_begin(&s);
	for (unsigned long i = 0; i < signals() / 100 && !test_failures(); i++) {
		CHECK_EQ(read(fd, &c, sizeof(c)), -1);
		CHECK_EQ(errno, EINTR);
	}
	storm_end(&s);
	CHECK_EQ(cancel(fd, taken_id()), 0);
	CHECK(reap(fd, &c));
	CHECK_EQ(c.status, NFC_EWITHDRAWN);
	close(fd);
}
