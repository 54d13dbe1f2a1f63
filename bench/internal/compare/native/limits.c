// SPDX-License-Identifier: MIT
/*
 * The limits of the machine, with the arguments and the output of peer.c:
 *
 *	PROGRAM KIND SIZE SLOTS BATCHES BATCH MS FULL COPY
 *
 * threads, processes: two of them, each on a processor of its own, hand a cache line
 * there and back. copy1, copy2: memcpy of SIZE bytes by one thread, or by halves by two,
 * between SLOTS pairs of buffers in rotation. read: process_vm_readv of SIZE bytes of the
 * other process, from SLOTS buffers in rotation. FULL and COPY are not used.
 */
#include "machine.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

enum { LAST = UINT32_MAX }; /* in the line: the second one ends */

static struct {
	const char *kind;
	size_t size;
	int slots, batches, batch, ms;
} job;

/* Shared by both. The line is alone in its page, so that nothing else moves with it. */
static _Atomic uint32_t *line;
static char **from, **to; /* by slot */
static uint32_t number; /* of the first one */
static unsigned long strange; /* answers that are not the next number */
static pid_t second;

static _Noreturn void fail(const char *what)
{
	fprintf(stderr, "%s: %s\n", what, strerror(errno));
	exit(1);
}

/* Wait until the line is another than seen; a processor for both is given up at times. */
static uint32_t await(uint32_t seen)
{
	uint32_t now;

	for (unsigned int tries = 1;
	     (now = atomic_load_explicit(line, memory_order_acquire)) == seen;
	     tries++)
		if (tries % 2000 == 0)
			sched_yield();
	return now;
}

static void hand(uint32_t value)
{
	atomic_store_explicit(line, value, memory_order_release);
}

/* A half of a copy; the second half takes what an odd size leaves. */
static void copy_half(uint32_t n, int half)
{
	size_t first = job.size / 2;
	int slot = n % job.slots;

	memcpy(to[slot] + half * first, from[slot] + half * first,
	       half ? job.size - first : first);
}

/* The second one: an even number for each odd one, after its half of the copy. */
static void answer(void)
{
	uint32_t seen = 0;
	int copies = strcmp(job.kind, "copy2") == 0;

	if (stay_on_one(1) < 0)
		fail("processor");
	while ((seen = await(seen)) != LAST) {
		if (copies)
			copy_half(seen / 2, 1);
		hand(++seen);
	}
}

static void *answer_thread(void *unused)
{
	answer();
	return unused;
}

static void there_and_back(void)
{
	hand(++number);
	strange += await(number) != number + 1;
	number++;
}

static void copy_alone(void)
{
	memcpy(to[number % job.slots], from[number % job.slots], job.size);
	number++;
}

static void copy_together(void)
{
	uint32_t n = ++number;

	hand(n);
	copy_half(n / 2, 0);
	strange += await(n) != n + 1;
	number++;
}

static void read_other(void)
{
	int slot = number++ % job.slots;
	struct iovec mine = { to[slot], job.size },
		     its = { from[slot], job.size };

	if (process_vm_readv(second, &mine, 1, &its, 1, 0) != (ssize_t)job.size)
		fail("process_vm_readv");
}

static const struct way {
	const char *kind;
	void (*once)(void);
	int thread, process, memory; /* what it needs */
} ways[] = {
	{ "threads", there_and_back, 1, 0, 0 },
	{ "processes", there_and_back, 0, 1, 0 },
	{ "copy1", copy_alone, 0, 0, 1 },
	{ "copy2", copy_together, 1, 0, 1 },
	{ "read", read_other, 0, 1, 1 },
};

static char *buffer(int filled_with)
{
	char *at = mmap(NULL, job.size, PROT_READ | PROT_WRITE,
			MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (at == MAP_FAILED)
		fail("mmap");
	memset(at, filled_with, job.size); /* touches it */
	return at;
}

static void find_memory(const struct way *w)
{
	line = mmap(NULL, 4096, PROT_READ | PROT_WRITE,
		    MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	from = calloc(job.slots, sizeof(*from));
	to = calloc(job.slots, sizeof(*to));
	if (line == MAP_FAILED || !from || !to)
		fail("memory");
	for (int i = 0; w->memory && i < job.slots; i++) {
		from[i] = buffer(i % 255 + 1);
		to[i] = buffer(0);
	}
}

static void start_second(const struct way *w, pthread_t *thread)
{
	pid_t first = getpid();

	if (w->thread && pthread_create(thread, NULL, answer_thread, NULL) != 0)
		fail("pthread_create");
	if (!w->process)
		return;
	second = fork();
	if (second < 0)
		fail("fork");
	if (second > 0)
		return;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() == first && w->memory)
		pause(); /* until it is killed: its memory is read */
	else if (getppid() == first)
		answer();
	_exit(0);
}

static void end_second(const struct way *w, pthread_t thread)
{
	hand(LAST);
	if (w->thread)
		pthread_join(thread, NULL);
	if (w->process && w->memory)
		kill(second, SIGKILL);
	if (w->process)
		waitpid(second, NULL, 0);
}

/* Batches until time is over, of which the first does not count; how many operations. */
static unsigned long measure(const struct way *w)
{
	double begun = clock_ns(CLOCK_MONOTONIC);
	unsigned long n = 0;

	for (int b = -1; b < job.batches; b++) {
		double start = clock_ns(CLOCK_MONOTONIC);

		if (b > 0 && job.ms > 0 && start - begun > job.ms * 1e6)
			break;
		for (int i = 0; i < job.batch; i++, n++)
			w->once();
		if (b >= 0)
			printf("batch %.0f\n",
			       clock_ns(CLOCK_MONOTONIC) - start);
	}
	return n;
}

/* Strange answers, and buffers that were copied and are not equal now. */
static unsigned long wrong(const struct way *w, unsigned long n)
{
	unsigned long bad = strange;

	for (unsigned long i = 0;
	     w->memory && i < (unsigned long)job.slots && i < n; i++)
		bad += memcmp(from[i], to[i], job.size) != 0;
	return bad;
}

static double seconds_of_others(void)
{
	struct rusage u;

	getrusage(RUSAGE_CHILDREN, &u);
	return u.ru_utime.tv_sec + u.ru_stime.tv_sec +
	       (u.ru_utime.tv_usec + u.ru_stime.tv_usec) / 1e6;
}

int main(int argc, char **argv)
{
	const struct way *w = NULL;
	pthread_t thread = 0;
	unsigned long n, bad;
	double before;

	if (argc == 9) {
		job.kind = argv[1];
		job.size = strtoull(argv[2], NULL, 10);
		job.slots = atoi(argv[3]);
		job.batches = atoi(argv[4]);
		job.batch = atoi(argv[5]);
		job.ms = atoi(argv[6]);
		for (size_t i = 0; i < sizeof(ways) / sizeof(ways[0]); i++)
			if (strcmp(ways[i].kind, job.kind) == 0)
				w = &ways[i];
	}
	if (!w || job.size < 2 || job.slots < 1) {
		fputs("usage: KIND SIZE SLOTS BATCHES BATCH MS FULL COPY\n",
		      stderr);
		return 1;
	}
	find_memory(w);
	start_second(w, &thread);
	if (stay_on_one(0) < 0)
		fail("processor");
	before = clock_ns(CLOCK_PROCESS_CPUTIME_ID);
	n = measure(w);
	end_second(w, thread);
	printf("cpu %.0f\n", clock_ns(CLOCK_PROCESS_CPUTIME_ID) - before +
				     seconds_of_others() * 1e9);
	bad = wrong(w, n);
	printf("wrong %lu\n", bad);
	return 0;
}
