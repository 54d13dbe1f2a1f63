// SPDX-License-Identifier: MIT
/*
 * How many interrupts a message takes, by how many are sent in a second of the
 * machine's clock: rates -n CASE RATE. See internal/vmtest/rates.go.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "bus.h"
#include "rig.h"

enum {
	MANY = 32, /* channels: as many messages are under way at most */
	LEAST = 5, /* messages that are sent, or … */
};

#define NS 1000000000ull
#define SECONDS 3 /* … as many as are due in that time */

static uint64_t rate(void)
{
	return test_argument ? strtoull(test_argument, NULL, 10) : 1;
}

static struct nfcomms_health health(int fd)
{
	struct nfcomms_health h = { .size = sizeof(h) };

	CHECK_EQ(control(fd, NFCOMMS_IOC_HEALTH, &h), 0);
	return h;
}

/* Sleep until a message is due; what is late is sent at once. */
static void sleep_until(uint64_t due)
{
	struct timespec t = { .tv_sec = (time_t)(due / NS),
			      .tv_nsec = (long)(due % NS) };

	clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, NULL);
}

struct sender {
	int fd;
	struct nfcomms_op ops[MANY]; /* one for each channel */
	uint64_t begun, sent, done;
};

/* Send what is due, as far as there is room, in one call; or wait until some is. */
static void send_due(struct sender *s)
{
	uint64_t due = (now_ns() - s->begun) * rate() / NS + 1;
	uint64_t room = MANY - (s->sent - s->done);
	uint64_t in_row = MANY - s->sent % MANY;
	uint64_t n = due > s->sent ? due - s->sent : 0;

	if (!n)
		sleep_until(s->begun + s->sent * NS / rate());
	n = n > room ? room : n;
	n = n > in_row ? in_row : n;
	if (n)
		CHECK_EQ(submit(s->fd, &s->ops[s->sent % MANY], (unsigned int)n),
			 (int)n);
	s->sent += n;
}

/* Take the completions that are there; wait for one if there is no room. */
static void take(struct sender *s, bool wait)
{
	struct nfcomms_completion c[MANY];
	ssize_t n = read(s->fd, c, sizeof(c));

	if (n > 0)
		s->done += (size_t)n / sizeof(*c);
	else if (wait)
		s->done += reap(s->fd, c);
}

static void measure(const char *how, int fd)
{
	struct sender s = { .fd = fd };
	struct nfcomms_health before, after;
	double seconds;

	for (int i = 0; i < MANY; i++)
		s.ops[i] = message(program(fd, "sink"), "x", 1);
	before = health(fd);
	s.begun = now_ns();
	while (!test_failures() &&
	       (s.sent < LEAST || now_ns() - s.begun < SECONDS * NS)) {
		send_due(&s);
		take(&s, s.sent - s.done == MANY);
	}
	seconds = (double)(now_ns() - s.begun) / NS;
	while (s.done < s.sent && !test_failures())
		take(&s, true);
	after = health(fd);
	printf("%s: %.0f messages a second of %llu, %.3f interrupts of a message, %llu waits by polling\n",
	       how, (double)s.sent / seconds, (unsigned long long)rate(),
	       (double)(after.interrupts - before.interrupts) / (double)s.sent,
	       (unsigned long long)(after.busy_polled - before.busy_polled));
	close(fd);
}

CASE(adaptive)
{
	measure("adaptive", fresh());
}

CASE(fixed)
{
	set_limit("adaptive", "0");
	measure("fixed", fresh());
	set_limit("adaptive", "1");
}

CASE(none)
{
	set_limit("adaptive", "0");
	set_limit("holdoff", "0");
	measure("no hold-off", fresh());
	set_limit("holdoff", "50");
	set_limit("adaptive", "1");
}

CASE(polled)
{
	int fd = fresh();
	struct nfcomms_setup s = {
		.size = sizeof(s),
		.completion_size = NFCOMMS_COMPLETION_SIZE_FIRST,
		.busy_poll_us = 50,
	};

	CHECK_EQ(control(fd, NFCOMMS_IOC_SETUP, &s), 0);
	measure("adaptive, busy poll of 50 us", fd);
}
