// SPDX-License-Identifier: MIT
/*
 * Fairness between files: while one client takes all that it can get of a resource,
 * another one's echoes take longer, but 99 of 100 at most five times as long as on a
 * quiet device. A measurement: it belongs on a machine that does nothing else.
 *
 *	fair [ECHOES]
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "region.h"

enum {
	ECHOES = 2000,
	WARM = 200,
	BATCH = 64,
	MANY = 4 << 20,
	MOST = 5, /* times as long */
};

/* What an abuser does, again and again. */
struct abuse {
	int fd;
	uint32_t channel;
	uint8_t *memory;
};

static void reap_all(const struct abuse *a, int taken)
{
	struct nfcomms_completion c;

	for (int i = 0; i < taken; i++)
		reap(a->fd, &c);
}

/* Requests of the control channel, a batch at a time. */
static void ask(const struct abuse *a)
{
	struct nfc_control memory = { .op = NFC_CONTROL_MEMORY };
	struct nfcomms_op ops[BATCH];

	for (int i = 0; i < BATCH; i++) {
		ops[i] = operation(NFCOMMS_OP_CONTROL, 0);
		memcpy(ops[i].payload, &memory, sizeof(memory));
	}
	reap_all(a, submit(a->fd, ops, BATCH));
}

/* Messages to a program that swallows them. */
static void say(const struct abuse *a)
{
	struct nfcomms_op ops[BATCH];

	for (int i = 0; i < BATCH; i++)
		ops[i] = message(a->channel, "x", 1);
	reap_all(a, submit(a->fd, ops, BATCH));
}

/* Large transfers. */
static void move_much(const struct abuse *a)
{
	struct nfcomms_op ops[2] = {
		transfer(NFCOMMS_OP_SEND_IND, a->channel, a->memory, MANY),
		transfer(NFCOMMS_OP_SEND_IND, a->channel, a->memory, MANY),
	};

	reap_all(a, submit(a->fd, ops, 2));
}

/* Memory that is registered and given back. */
static void register_much(const struct abuse *a)
{
	registers(a->fd, a->memory, MANY);
	unregister(a->fd, a->memory);
}

/* Files and channels that come and go. */
static void come_and_go(const struct abuse *a)
{
	int fd = client();

	(void)a;
	program(fd, "hold");
	close(fd);
}

/* An abuser; told to begin by being started, ended by a signal. */
struct role {
	void (*again)(const struct abuse *a);
	int ready;
};

static int abuse(void *argument)
{
	const struct role *r = argument;
	struct abuse a = { .fd = client(), .memory = pages(MANY, 1) };

	a.channel = program(a.fd, "sink");
	if (write(r->ready, "", 1) != 1)
		return 1;
	for (;;)
		r->again(&a);
}

static int by_size(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

/* What 99 of 100 echoes take at most, in nanoseconds. */
static uint64_t p99(int fd, uint32_t loopback)
{
	long n = test_argument ? atol(test_argument) : ECHOES;
	uint64_t *took = calloc(n, sizeof(*took)), result;

	for (long i = -WARM; i < n && !test_failures(); i++) {
		uint64_t begun = now_ns();

		check_alive(fd, loopback);
		if (i >= 0)
			took[i] = now_ns() - begun;
	}
	qsort(took, n, sizeof(*took), by_size);
	result = took[n * 99 / 100];
	free(took);
	return result;
}

static void check_fair(const char *name, void (*again)(const struct abuse *a))
{
	struct bench b = setup();
	uint64_t quiet = p99(b.fd, b.ch), abused;
	struct role r = { .again = again };
	int way[2];
	pid_t pid;
	char byte;

	REQUIRE(pipe(way) == 0);
	r.ready = way[1];
	pid = child(abuse, &r);
	REQUIRE(read(way[0], &byte, 1) == 1);
	abused = p99(b.fd, b.ch);
	kill(pid, SIGKILL);
	wait_child(pid);
	printf("%s: p99 of an echo %lu us, quiet %lu us: %.1f times\n", name,
	       (long)abused / 1000, (long)quiet / 1000,
	       (double)abused / (double)quiet);
	CHECK(abused <= MOST * quiet);
	close(way[0]);
	close(way[1]);
	teardown(&b);
	check_pins();
}

CASE(control_requests)
{
	check_fair("control requests", ask);
}

CASE(messages)
{
	check_fair("messages", say);
}

CASE(transfers)
{
	check_fair("transfers", move_much);
}

CASE(registered_memory)
{
	check_fair("registered memory", register_much);
}

CASE(files_and_channels)
{
	check_fair("files and channels", come_and_go);
}
