// SPDX-License-Identifier: MIT
/*
 * Thousands of regions end with their device: the thread that revokes them holds no lock
 * for long, and lets others have its processor.
 *
 *	revoke [FILES]	with 1,024 regions each, eight at most
 */
#define _GNU_SOURCE
#include <limits.h>
#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

#include "bus.h"
#include "region.h"
#include "rig.h"

enum {
	FILES = 2,
	FILES_MAX = 8, /* a user has no more regions than these hold */
	REGIONS = 1024, /* of a file */
	LINE = 64,
	SIZE = REGIONS * LINE,
	TRIES = 5,
};

/* Files with as many regions as they may have, of one memory. */
struct many {
	int fd[FILES_MAX], files;
	uint8_t *p;
};

static struct many many_regions(void)
{
	struct many m = { .files = test_argument ? atoi(test_argument) : FILES,
			  .p = pages(SIZE, 1) };

	if (m.files > FILES_MAX)
		m.files = FILES_MAX;
	for (int i = 0; i < m.files; i++) {
		m.fd[i] = client();
		for (int k = 0; k < REGIONS && !test_failures(); k++)
			CHECK_EQ(registers(m.fd[i], m.p + k * LINE, 1), 0);
	}
	return m;
}

static void check_regions(const struct many *m, uint64_t want)
{
	for (int i = 0; i < m->files; i++)
		CHECK_EQ(regions(m->fd[i]), want);
}

static void close_many(struct many *m)
{
	for (int i = 0; i < m->files; i++)
		close(m->fd[i]);
	free_pages(m->p, SIZE);
	check_pins();
}

/* A reset ends what the device does; regions are the clients' and stay. */
CASE(a_reset_keeps_them)
{
	struct many m;

	close(fresh());
	m = many_regions();
	CHECK_EQ(reset(m.fd[0], (struct nfcomms_reset){ .size = 0 }), 0);
	check_regions(&m, REGIONS);
	close_many(&m);
	check_device();
}

/* A thread that polls how many regions a file has, before all others of a processor. */
struct watch {
	pthread_barrier_t ready;
	int fd;
	long seen; /* times that it was some of them */
	volatile bool over;
};

static void *watcher(void *argument)
{
	struct watch *w = argument;

	on_one_processor(true);
	pthread_barrier_wait(&w->ready);
	while (!w->over) {
		uint64_t n = regions(w->fd);

		w->seen += n > 0 && n < REGIONS;
		usleep(50);
	}
	return NULL;
}

/* Unbind and bind again: how often the watcher had the processor half way. */
static long seen_half_way(void)
{
	struct watch w = { .seen = 0 };
	struct many m = many_regions();
	char device[PATH_MAX];
	pthread_t thread;

	w.fd = m.fd[0];
	find_device(device);
	pthread_barrier_init(&w.ready, NULL, 2);
	if (!CHECK(!pthread_create(&thread, NULL, watcher, &w)))
		return 0;
	pthread_barrier_wait(&w.ready);
	unbind(device);
	w.over = true;
	pthread_join(thread, NULL);
	pthread_barrier_destroy(&w.ready);
	check_regions(&m, 0);
	check_pins();
	bind_to(device);
	await_node();
	close_many(&m);
	return w.seen;
}

CASE(an_unbind_leaves_the_processor_to_others)
{
	int tries = TRIES;
	long seen = 0;

	close(fresh());
	on_one_processor(false);
	while (!seen && tries-- && !test_failures())
		seen = seen_half_way();
	CHECK(seen > 0);
	on_all_processors();
	check_device();
}
