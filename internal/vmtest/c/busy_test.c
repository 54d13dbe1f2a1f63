// SPDX-License-Identifier: MIT
/*
 * Busy polling: a file's waits look at the rings before they sleep, where it asked
 * for that, never for longer than it asked for or is allowed, and miss nothing.
 */
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

#include "bus.h"
#include "rig.h"

enum {
	LONGEST_US = 10000,
	ROUNDS = 60,
	READS = 20, /* that find nothing … */
	READ_US = 100, /* … and look for so long */
	STUCK_MS = 100, /* what they take if they look for as long as nobody comes */
	TRIES = 3, /* … in each of so many: a machine that stands still counts as well */
	TICK_MS = 200, /* less than the period of the driver's watch */
};

/* Have a file's waits look for so long: 0 or errno. */
static int ask_for(int fd, uint32_t us)
{
	struct nfcomms_setup s = {
		.size = sizeof(s),
		.completion_size = NFCOMMS_COMPLETION_SIZE_FIRST,
		.busy_poll_us = us,
	};

	return control(fd, NFCOMMS_IOC_SETUP, &s);
}

static uint64_t polled(int fd)
{
	struct nfcomms_health h = { .size = sizeof(h) };

	CHECK_EQ(control(fd, NFCOMMS_IOC_HEALTH, &h), 0);
	return h.busy_polled;
}

/* A client that asked for this, where as much as can be is allowed. */
static int busy_client(uint32_t us)
{
	int fd = fresh();

	set_limit("busy_poll_max", "10000");
	CHECK_EQ(ask_for(fd, us), 0);
	return fd;
}

static void busy_end(int fd)
{
	set_limit("busy_poll_max", "200");
	close(fd);
}

static void call_often(int fd)
{
	struct nfcomms_op op = message(program(fd, "sink"), "x", 1);

	for (int i = 0; i < ROUNDS; i++)
		CHECK_EQ(outcome(fd, &op), NFC_OK);
}

/* The node is O_NONBLOCK: a read that looks in vain is EAGAIN. */
static void read_often(int fd)
{
	struct nfcomms_op op = message(program(fd, "sink"), "x", 1);
	struct nfcomms_completion c;

	for (int i = 0; i < ROUNDS; i++) {
		ssize_t n;

		REQUIRE(submit(fd, &op, 1) == 1);
		while ((n = read(fd, &c, sizeof(c))) < 0 && errno == EAGAIN)
			;
		REQUIRE(n == sizeof(c));
	}
}

CASE(calls_find_it_before_they_sleep)
{
	int fd = busy_client(LONGEST_US);
	uint64_t before = polled(fd);

	do /* on a busy machine an answer may take longer than a look */
		call_often(fd);
	while (polled(fd) == before && !test_failures());
	busy_end(fd);
}

CASE(reads_find_it_before_they_return)
{
	int fd = busy_client(LONGEST_US);
	uint64_t before = polled(fd);

	do /* on a busy machine an answer may take longer than a look */
		read_often(fd);
	while (polled(fd) == before && !test_failures());
	busy_end(fd);
}

/*
 * A caller that does not ask for polling, asks no more, or may not, sleeps as
 * before.
 */
CASE(nobody_looks_unasked)
{
	int fd = fresh();
	uint64_t before = polled(fd);

	call_often(fd);
	CHECK_EQ(ask_for(fd, LONGEST_US + 1), EINVAL);
	CHECK_EQ(ask_for(fd, 100), 0);
	CHECK_EQ(ask_for(fd, 0), 0);
	read_often(fd);
	set_limit("busy_poll_max", "0");
	CHECK_EQ(ask_for(fd, LONGEST_US), 0);
	call_often(fd);
	CHECK_EQ(polled(fd), before);
	busy_end(fd);
}

static uint64_t processor_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

/* The least that some tries of reads that find nothing take of a processor. */
static uint64_t reads_ms(int fd)
{
	struct nfcomms_completion c;
	uint64_t least = STUCK_MS;

	for (int k = 0; k < TRIES && least >= STUCK_MS; k++) {
		uint64_t before = processor_ms(), took;

		for (int i = 0; i < READS; i++)
			CHECK(read(fd, &c, sizeof(c)) < 0 && errno == EAGAIN);
		took = processor_ms() - before;
		least = took < least ? took : least;
	}
	return least;
}

/*
 * Nothing comes, and a machine that is idle needs the processor for nothing else:
 * only its budget ends a look.
 */
CASE(a_budget_is_kept)
{
	int fd = busy_client(READ_US);
	struct nfcomms_op op = operation(NFCOMMS_OP_RECEIVE,
					 program(fd, "sink"));
	uint64_t took;

	op.length = NFCOMMS_PAYLOAD_SIZE;
	CHECK_EQ(submit(fd, &op, 1), 1);
	took = reads_ms(fd);
	printf("%d reads of %d us: %llu ms of a processor\n", READS, READ_US,
	       (unsigned long long)took);
	CHECK(took < STUCK_MS);
	busy_end(fd);
}

/* Nothing is in flight: there is nothing to look for. */
CASE(an_idle_file_does_not_look)
{
	int fd = busy_client(LONGEST_US);

	CHECK(reads_ms(fd) < STUCK_MS);
	busy_end(fd);
}

/*
 * A message that arrives as a poll ends wakes the sleeper; polls of all
 * lengths, by call and by read.
 */
CASE(no_wake_up_is_lost_at_its_end)
{
	int fd = busy_client(0), late = 0;
	struct nfcomms_op op = message(program(fd, "sink"), "x", 1);
	struct pollfd p = { .fd = fd, .events = POLLIN };
	struct nfcomms_completion c;

	for (int i = 0; i < 2 * ROUNDS && !test_failures(); i++) {
		uint64_t begun = now_ns();

		CHECK_EQ(ask_for(fd, (uint32_t)i * 3), 0);
		if (i % 2) {
			CHECK_EQ(outcome(fd, &op), NFC_OK);
		} else {
			CHECK_EQ(submit(fd, &op, 1), 1);
			if (read(fd, &c, sizeof(c)) < 0) {
				CHECK_EQ(poll(&p, 1, PATIENCE_MS), 1);
				CHECK(reap(fd, &c));
			}
		}
		late += (now_ns() - begun) / 1000000 >= TICK_MS;
	}
	printf("%d of %d waits took a tick\n", late, 2 * ROUNDS);
	CHECK(late < ROUNDS);
	busy_end(fd);
}

static _Atomic bool over;

/* One that looks again as soon as it may, for what never comes. */
static void *look_for_ever(void *unused)
{
	int fd = client();
	struct nfcomms_op op = operation(NFCOMMS_OP_RECEIVE,
					 program(fd, "sink"));
	struct nfcomms_completion c;

	op.length = NFCOMMS_PAYLOAD_SIZE;
	CHECK_EQ(ask_for(fd, LONGEST_US), 0);
	CHECK_EQ(submit(fd, &op, 1), 1);
	while (!over)
		CHECK(read(fd, &c, sizeof(c)) < 0 && errno == EAGAIN);
	close(fd);
	return unused;
}

/* As many as there are processors, and then some: others get on, and a reset ends it. */
CASE(others_get_on)
{
	enum { ABUSERS = 3 };
	int fd = busy_client(0);
	pthread_t thread[ABUSERS];
	struct nfcomms_op op = message(program(fd, "sink"), "x", 1);

	over = false;
	for (int i = 0; i < ABUSERS; i++)
		REQUIRE(!pthread_create(&thread[i], NULL, look_for_ever, NULL));
	for (int i = 0; i < ROUNDS; i++)
		CHECK_EQ(outcome(fd, &op), NFC_OK);
	over = true;
	for (int i = 0; i < ABUSERS; i++)
		pthread_join(thread[i], NULL);
	busy_end(fd);
	check_device();
}
