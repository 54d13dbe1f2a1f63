// SPDX-License-Identifier: MIT
/*
 * A peer of nfbench:
 *
 *	PROGRAM KIND SIZE SLOTS BATCHES BATCH MS FULL COPY
 *
 * echo: the second process sends each message back. take: it answers each with
 * eight bytes. place: so it does, and the first one writes nothing but the number of a
 * message, where that lies. stream: it takes messages that the first one fills, and looks at
 * them. Prints a line for each batch, "batch NS", then "cpu NS" of both processes,
 * and "wrong N" messages. Echoes and takes pass one batch that does not count, and
 * end after MS milliseconds.
 */
#include "machine.h"
#include "peer.h"

#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

_Noreturn void peer_fail(const char *what, const char *why)
{
	fprintf(stderr, "%s: %s\n", what, why);
	exit(1);
}

static const char died[] = "the second process ended\n";

/* The first process must not wait for one that has died. */
static void second_ended(int signal)
{
	int status;

	(void)signal;
	if (wait(&status) > 0 && status == 0)
		return;
	if (write(STDERR_FILENO, died, sizeof(died) - 1) > 0)
		_exit(1);
	_exit(1);
}

int peer_fork(int *conn)
{
	struct sigaction ended = { .sa_handler = second_ended,
				   .sa_flags = SA_RESTART };
	int ends[2], side;
	pid_t first = getpid(), second;

	sigaction(SIGCHLD, &ended, NULL);
	if (socketpair(AF_UNIX, SOCK_STREAM, 0, ends) < 0)
		peer_fail("socketpair", strerror(errno));
	second = fork();
	if (second < 0)
		peer_fail("fork", strerror(errno));
	side = second == 0;
	if (side) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (getppid() != first)
			exit(1);
	}
	close(ends[!side]);
	*conn = ends[side];
	return side;
}

void peer_write(int conn, const void *from, size_t size)
{
	const char *at = from;

	while (size > 0) {
		ssize_t n = write(conn, at, size);

		if (n <= 0)
			peer_fail("write to the other process", strerror(errno));
		at += n;
		size -= n;
	}
}

void peer_read(int conn, void *to, size_t size)
{
	char *at = to;

	while (size > 0) {
		ssize_t n = read(conn, at, size);

		if (n <= 0)
			peer_fail("read from the other process",
				  n ? strerror(errno) : "it ended");
		at += n;
		size -= n;
	}
}

void *peer_slot(const struct peer_job *job, unsigned long n)
{
	static char *slots;

	if (!slots) {
		slots = malloc(job->slots * job->size);
		if (!slots)
			peer_fail("memory", strerror(errno));
		memset(slots, 7, job->slots * job->size); /* touches it */
	}
	return slots + n % job->slots * job->size;
}

void peer_pause(unsigned int *tries)
{
	if (++*tries % 2000 == 0)
		sched_yield();
}

enum { LAST = -1 }; /* the number of the last message of an exchange */

/* A message and its answer; 1 if that is wrong. Without a message it lies in place. */
static uint64_t ask(const struct peer_job *job, char *message, size_t answer,
		    int64_t number)
{
	char *at = message ? message : peer_loan(job->size);
	uint64_t wrong;

	memcpy(at, &number, sizeof(number));
	if (message)
		peer_send(message, job->size);
	else
		peer_commit(job->size);
	wrong = memcmp(peer_receive(answer), &number, sizeof(number)) != 0;
	peer_release();
	return wrong;
}

/* Messages and their answers, until the last one. */
static void answer_all(const struct peer_job *job, size_t answer)
{
	int64_t number = 0;

	while (number != LAST) {
		const void *came = peer_receive(job->size);

		memcpy(&number, came, sizeof(number));
		peer_send(answer == job->size ? came : &number, answer);
		peer_release();
	}
}

/* Batches until time is over; a busy machine has few of them. */
static uint64_t exchange(const struct peer_job *job, int side, char *message)
{
	size_t answer = strcmp(job->kind, "echo") == 0 ? job->size :
							 sizeof(int64_t);
	double begun = clock_ns(CLOCK_MONOTONIC);
	uint64_t wrong = 0;

	if (strcmp(job->kind, "place") == 0)
		message = NULL;

	if (side == 1) {
		answer_all(job, answer);
		return 0;
	}
	for (int b = -1; b < job->batches; b++) {
		double start = clock_ns(CLOCK_MONOTONIC);

		if (b > 0 && job->ms > 0 && start - begun > job->ms * 1e6)
			break;
		for (int i = 0; i < job->batch; i++)
			wrong += ask(job, message, answer, i);
		if (b >= 0)
			printf("batch %.0f\n",
			       clock_ns(CLOCK_MONOTONIC) - start);
		else
			begun = clock_ns(CLOCK_MONOTONIC);
	}
	return wrong + ask(job, message, answer, LAST);
}

/* Batches of messages that one side fills and the other looks at. */
static uint64_t stream(const struct peer_job *job, int side,
		       const char *message, char *local)
{
	uint64_t wrong = 0, number = 0;
	double start = 0;

	for (; number < (uint64_t)job->batches * job->batch; number++) {
		if (side == 0) {
			char *to;

			if (number % job->batch == 0)
				start = clock_ns(CLOCK_MONOTONIC);
			to = peer_loan(job->size);
			memcpy(to, message, job->size);
			memcpy(to, &number, sizeof(number));
			peer_commit(job->size);
			if ((number + 1) % job->batch == 0)
				printf("batch %.0f\n",
				       clock_ns(CLOCK_MONOTONIC) - start);
		} else {
			const char *came = peer_receive(job->size);

			if (job->copy)
				came = memcpy(local, came, job->size);
			wrong += memcmp(came, &number, sizeof(number)) != 0 ||
				 (job->full && memcmp(came + 8, message + 8,
						      job->size - 8) != 0);
			peer_release();
		}
	}
	return wrong;
}

static uint64_t measure(const struct peer_job *job, int side)
{
	char *message = malloc(job->size), *local = malloc(job->size);
	uint64_t wrong;

	if (!message || !local)
		peer_fail("memory", strerror(errno));
	memset(message, 7, job->size);
	wrong = strcmp(job->kind, "stream") == 0 ?
			stream(job, side, message, local) :
			exchange(job, side, message);
	free(message);
	free(local);
	return wrong;
}

/* The second process tells what it used and found, the first one prints it. */
static void report(int side, uint64_t cpu, uint64_t wrong)
{
	uint64_t words[2] = { cpu, wrong };

	for (int i = 0; i < 2; i++) {
		if (side == 1) {
			peer_send(&words[i], sizeof(words[i]));
			continue;
		}
		uint64_t other;

		memcpy(&other, peer_receive(sizeof(other)), sizeof(other));
		peer_release();
		printf("%s %llu\n", i ? "wrong" : "cpu",
		       (unsigned long long)(words[i] + other));
	}
	fflush(stdout);
}

int main(int argc, char **argv)
{
	if (argc != 9)
		peer_fail("usage", "PROGRAM echo|take|place|stream SIZE SLOTS "
				   "BATCHES BATCH MS FULL COPY");
	struct peer_job job = {
		.kind = argv[1],
		.size = strtoull(argv[2], NULL, 10),
		.slots = atoi(argv[3]),
		.batches = atoi(argv[4]),
		.batch = atoi(argv[5]),
		.ms = atoi(argv[6]),
		.full = atoi(argv[7]),
		.copy = atoi(argv[8]),
	};
	if (job.size < sizeof(uint64_t) || job.slots < 1)
		peer_fail("usage", "SIZE is at least 8, SLOTS at least 1");
	int side = peer_open(&job, &argc, &argv);
	uint64_t wrong = measure(&job, side);

	report(side, clock_ns(CLOCK_PROCESS_CPUTIME_ID), wrong);
	peer_close();
	signal(SIGCHLD, SIG_DFL);
	while (wait(NULL) > 0)
		; /* its processor time is this one's */
	return 0;
}
