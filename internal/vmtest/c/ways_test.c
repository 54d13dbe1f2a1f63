// SPDX-License-Identifier: MIT
/*
 * Echoes by each way into the module, one at a time and over many channels at once:
 * ways -n CASE TIMES. It prints how many system calls an operation takes, and the
 * device counts the accesses to it. See internal/vmtest/mmio.go.
 */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "rig.h"

enum {
	MANY = 16, /* channels, of which each echoes once at a time */
};

static uint64_t calls; /* of the kernel */

static int times(void)
{
	return test_argument ? atoi(test_argument) : 1;
}

static struct nfcomms_op receive(uint32_t ch)
{
	struct nfcomms_op op = operation(NFCOMMS_OP_RECEIVE, ch);

	op.length = NFCOMMS_PAYLOAD_SIZE;
	return op;
}

/* The cost of an operation. */
static void say(const char *way, uint64_t spent, uint64_t operations)
{
	printf("%s: %.2f system calls of an operation\n", way,
	       (double)spent / (double)operations);
}

/* The part that every other case has as well. */
CASE(nothing)
{
	int fd = client();

	for (int i = 0; i < MANY; i++)
		program(fd, "loopback");
	close(fd);
}

/* A client with many channels, of which some are used. */
struct way_bench {
	int fd;
	uint32_t n;
	struct nfcomms_op ops[2 * MANY];
};

static struct way_bench way_setup(uint32_t n)
{
	struct way_bench b = { .fd = client(), .n = n };

	for (uint32_t i = 0; i < MANY; i++) {
		uint32_t ch = program(b.fd, "loopback");

		if (i >= n)
			continue;
		b.ops[2 * i] = receive(ch);
		b.ops[2 * i + 1] = message(ch, "echo", 4);
	}
	return b;
}

/* ioctl CALL, one operation at a time. */
CASE(one_by_call)
{
	struct way_bench b = way_setup(1);

	calls = 0;
	for (int i = 0; i < times(); i++) {
		CHECK_EQ(outcome(b.fd, &b.ops[1]), NFC_OK);
		CHECK_EQ(outcome(b.fd, &b.ops[0]), NFC_OK);
		calls += 2;
	}
	say("CALL", calls, 2 * times());
	close(b.fd);
}

/* ioctl SUBMIT, then poll and read until all have completed. */
static void by_submit(uint32_t n)
{
	struct way_bench b = way_setup(n);
	struct nfcomms_completion c[2 * MANY];
	struct pollfd p = { .fd = b.fd, .events = POLLIN };

	calls = 0;
	for (int i = 0; i < times(); i++) {
		uint32_t left = 2 * n;

		CHECK_EQ(submit(b.fd, b.ops, 2 * n), 2 * n);
		calls++;
		while (left) {
			ssize_t got = read(b.fd, c, sizeof(c));

			calls++;
			if (got > 0) {
				left -= (uint32_t)((size_t)got / sizeof(*c));
				continue;
			}
			REQUIRE(got < 0 && errno == EAGAIN);
			CHECK_EQ(poll(&p, 1, PATIENCE_MS), 1);
			calls++;
		}
	}
	say(n > 1 ? "SUBMIT of 32" : "SUBMIT of 2", calls, 2ull * n * times());
	close(b.fd);
}

CASE(one_by_submit)
{
	by_submit(1);
}

CASE(many_by_submit)
{
	by_submit(MANY);
}
