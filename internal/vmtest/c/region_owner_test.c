// SPDX-License-Identifier: MIT
/*
 * Registered memory whose owner or device ends, that is over a limit, or whose
 * pages change while transfers use it. These cases are of the program region.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bus.h"
#include "region.h"
#include "rig.h"

enum {
	PAGE = NFC_PAGE_SIZE,
	SIZE = 64 * PAGE,
	BULK = 6 << 20, /* some parts */
	LARGE = 24 << 20, /* many parts, of small pages each */
	ROUNDS = 40, /* of each pair */
	NOBODY = 65534,
	GREEDY = 8, /* threads */
	LATE = 512, /* pages that processors have not counted yet */
};

#define HUGE (1ull << 36) /* bytes, whose pages take 128 MiB to list */

/* A file that is open, and memory that its first owner registered with it. */
struct inherited {
	int fd;
	uint32_t loop;
	uint8_t *p, *q;
};

/* The addresses are the child's own memory; the file's region has the parent's. */
static int in_a_child(void *argument)
{
	struct inherited *i = argument;
	uint64_t before = pins(i->fd);

	CHECK_EQ(setresuid(NOBODY, NOBODY, NOBODY), 0);
	memset(i->p, 0x77, SIZE);
	CHECK_EQ(send_at(i->fd, i->loop, i->p, SIZE).status, NFC_OK);
	CHECK_EQ(pins(i->fd), before);
	CHECK_EQ(receive_at(i->fd, i->loop, i->q, SIZE).status, NFC_OK);
	for (int k = 0; k < SIZE; k += PAGE)
		CHECK_EQ(i->q[k], 1);
	CHECK_EQ(registers(i->fd, i->p, SIZE), 0); /* of its own */
	there_and_back(i->fd, i->loop, i->p, i->p, SIZE, 9);
	return test_failures() != 0; /* which ends with it */
}

CASE(forked_and_used_by_another_user)
{
	struct inherited i = { .fd = fresh() };
	uint64_t before;

	i.loop = program(i.fd, "loopback");
	i.p = pages(SIZE, 1);
	i.q = pages(SIZE, 2);
	CHECK_EQ(registers(i.fd, i.p, SIZE), 0);
	CHECK_EQ(wait_child(child(in_a_child, &i)), 0);
	before = pins(i.fd);
	there_and_back(i.fd, i.loop, i.p, i.p, SIZE, 2);
	CHECK_EQ(pins(i.fd), before);
	CHECK_EQ(unregister(i.fd, i.p), 0);
	check_pins();
	CHECK_EQ(regions(i.fd), 0);
	close(i.fd);
	free_pages(i.p, SIZE);
	free_pages(i.q, SIZE);
	check_pins();
}

/* The owner ends, and another process has the file. */
static int registers_and_ends(void *argument)
{
	struct inherited *i = argument;

	return registers(i->fd, i->p, SIZE);
}

CASE(its_owner_ended)
{
	struct inherited i = { .fd = fresh(), .p = pages(SIZE, 1) };

	CHECK_EQ(wait_child(child(registers_and_ends, &i)), 0);
	check_pins();
	CHECK_EQ(regions(i.fd), 0);
	close(i.fd);
	free_pages(i.p, SIZE);
	check_pins();
}

static int over_memlock(void *argument)
{
	struct rlimit r = { 8 * PAGE, 8 * PAGE };
	struct nfcomms_info info = { .size = sizeof(info) };
	uint8_t *p = argument;
	int fd = client();
	uint32_t loop = program(fd, "loopback");

	CHECK_EQ(setrlimit(RLIMIT_MEMLOCK, &r), 0);
	CHECK_EQ(setresuid(NOBODY, NOBODY, NOBODY), 0);
	CHECK_EQ(registers(fd, p, SIZE), ENOMEM);
	CHECK_EQ(registers(fd, p, 6 * PAGE), 0);
	CHECK_EQ(registers(fd, p + 6 * PAGE, 3 * PAGE), ENOMEM);
	CHECK_EQ(control(fd, NFCOMMS_IOC_INFO, &info), 0);
	CHECK_EQ(info.memlock_used, 6 * PAGE);
	there_and_back(fd, loop, p, p, 6 * PAGE, 1);
	CHECK_EQ(unregister(fd, p), 0);
	CHECK_EQ(control(fd, NFCOMMS_IOC_INFO, &info), 0);
	CHECK_EQ(info.memlock_used, 0);
	CHECK_EQ(registers(fd, p, 8 * PAGE), 0);
	close(fd);
	return test_failures() != 0;
}

CASE(over_the_memlock_limit)
{
	uint8_t *p = pages(SIZE, 1);

	close(fresh());
	CHECK_EQ(wait_child(child(over_memlock, p)), 0);
	free_pages(p, SIZE);
	check_pins();
}

/* Threads that register more than they may, more than a machine has memory for. */
static void *register_too_much(void *argument)
{
	const struct bench *b = argument;
	const uint8_t *p = mmap(NULL, HUGE, PROT_READ | PROT_WRITE,
				MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1,
				0);

	if (p == MAP_FAILED)
		return NULL;
	for (int i = 0; i < 4; i++)
		if (registers(b->fd, p, HUGE) != ENOMEM)
			return NULL;
	munmap((void *)p, HUGE);
	return argument;
}

static int many_register_too_much(void *argument)
{
	const struct rlimit r = { 8 * PAGE, 8 * PAGE };
	pthread_t thread[GREEDY];
	struct bench b = { .fd = client() };
	int good = 0;

	(void)argument;
	CHECK_EQ(setrlimit(RLIMIT_MEMLOCK, &r), 0);
	CHECK_EQ(setresuid(NOBODY, NOBODY, NOBODY), 0);
	for (int i = 0; i < GREEDY; i++)
		CHECK(!pthread_create(&thread[i], NULL, register_too_much, &b));
	for (int i = 0; i < GREEDY; i++) {
		void *well = NULL;

		pthread_join(thread[i], &well);
		good += well != NULL;
	}
	CHECK_EQ(good, GREEDY);
	close(b.fd);
	return test_failures() != 0;
}

/* A region over the limit is refused before its pages have a list. */
CASE(far_over_the_memlock_limit)
{
	close(fresh());
	CHECK_EQ(wait_child(child(many_register_too_much, NULL)), 0);
	check_device();
}

/* Registered memory stays over the end of an epoch, of every kind. */
static void stays_over(void (*end)(int fd))
{
	int fd = fresh();
	uint8_t *p = pages(BULK, 1);
	struct nfcomms_completion c = { .status = 0 };
	uint64_t before;
	uint32_t loop;

	CHECK_EQ(registers(fd, p, BULK), 0);
	offer_at(fd, p, BULK);
	end(fd);
	CHECK(reap(fd, &c));
	CHECK_EQ(c.status, NFC_ERESET);
	loop = program(fd, "loopback");
	before = pins(fd);
	there_and_back(fd, loop, p, p, BULK, 6);
	CHECK_EQ(pins(fd), before);
	CHECK_EQ(unregister(fd, p), 0);
	CHECK_EQ(pinned(), 0);
	close(fd);
	free_pages(p, BULK);
	check_pins();
}

static void by_ioctl(int fd)
{
	CHECK_EQ(reset(fd, (struct nfcomms_reset){ .size = 0 }), 0);
}

static void by_function(int fd)
{
	char device[PATH_MAX], path[PATH_MAX + 8];

	(void)fd;
	find_device(device);
	snprintf(path, sizeof(path), "%s/reset", device);
	put(path, "1");
}

CASE(over_a_reset)
{
	stays_over(by_ioctl);
}

CASE(over_a_function_reset)
{
	stays_over(by_function);
}

/* With the device the mappings go; what is open says so. */
CASE(its_device_went)
{
	char device[PATH_MAX];
	int fd = fresh();
	uint8_t *p = pages(BULK, 1);
	struct nfcomms_completion c = { .status = 0 };

	CHECK_EQ(registers(fd, p, BULK), 0);
	offer_at(fd, p, BULK);
	find_device(device);
	unbind(device);
	CHECK(reap(fd, &c));
	CHECK_EQ(c.status, NFC_ERESET);
	check_pins();
	CHECK_EQ(registers(fd, p, BULK), ENODEV);
	CHECK_EQ(unregister(fd, p), ENODEV);
	bind_to(device);
	await_node();
	close(fd);
	check_device();
	free_pages(p, BULK);
	check_pins();
}

/*
 * ---- a large region, and a thread that waits for the processor that frees it
 * ----
 */

/*
 * A thread that polls, as often as it can, the number of pages freed since the
 * machine began.
 */
struct watch {
	pthread_barrier_t ready;
	volatile bool over;
	long seen; /* times that it was between these: */
	long first, last;
};

static void *watcher(void *argument)
{
	struct watch *w = argument;

	on_one_processor(true);
	pthread_barrier_wait(&w->ready);
	while (!w->over) {
		long n = released();

		w->seen += n > w->first && n < w->last;
		usleep(100);
	}
	return NULL;
}

/* Register and give back: how often the watcher had the processor half way. */
static long seen_half_way(int fd, const uint8_t *p)
{
	struct watch w = { .seen = 0 };
	pthread_t thread;

	CHECK_EQ(registers(fd, p, LARGE), 0);
	CHECK_EQ(pinned(), LARGE / PAGE);
	w.first = released() + LATE;
	w.last = w.first + LARGE / PAGE - 2 * LATE;
	pthread_barrier_init(&w.ready, NULL, 2);
	if (!CHECK(!pthread_create(&thread, NULL, watcher, &w)))
		return 0;
	pthread_barrier_wait(&w.ready);
	CHECK_EQ(unregister(fd, p), 0);
	w.over = true;
	pthread_join(thread, NULL);
	pthread_barrier_destroy(&w.ready);
	return w.seen;
}

CASE(a_large_one_leaves_the_processor_to_others)
{
	int fd = fresh(), tries = 20;
	long seen = 0;
	uint8_t *p = small_pages(LARGE, 1);

	on_one_processor(false);
	seen_half_way(fd,
		      p); /* clean pages wait for their locks, dirty ones do not */
	while (!seen && tries--)
		seen = seen_half_way(fd, p);
	CHECK(seen > 0);
	on_all_processors();
	close(fd);
	free_pages(p, LARGE);
	check_pins();
}

/* ---- pairs: what one thread does to the memory while another moves it ---- */

struct pair {
	int fd;
	uint8_t *p;
	volatile bool over;
	void (*disturb)(struct pair *pair);
};

static void *disturber(void *argument)
{
	struct pair *pair = argument;

	while (!pair->over)
		pair->disturb(pair);
	return NULL;
}

static void comes_and_goes(struct pair *pair)
{
	int rc = unregister(pair->fd, pair->p);

	CHECK(rc == 0 || rc == EBUSY || rc == ENOENT);
	if (rc != EBUSY)
		CHECK_EQ(registers(pair->fd, pair->p, BULK), 0);
}

static void is_mapped_anew(struct pair *pair)
{
	comes_and_goes(pair);
	CHECK(mmap(pair->p + BULK / 2, PAGE, PROT_READ | PROT_WRITE,
		   MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) != MAP_FAILED);
}

static void is_dropped(struct pair *pair)
{
	comes_and_goes(pair);
	CHECK_EQ(madvise(pair->p, PAGE, MADV_DONTNEED), 0);
}

static int at_once(void *argument)
{
	(void)argument;
	return 0;
}

static void is_forked(struct pair *pair)
{
	comes_and_goes(pair);
	CHECK_EQ(wait_child(child(at_once, NULL)), 0);
}

/* A transfer that is made again as often as its region went meanwhile. */
static uint32_t made(struct nfcomms_completion (*move)(int, uint32_t, uint8_t *,
						       uint64_t),
		     const struct pair *pair, uint32_t ch, uint64_t n)
{
	struct nfcomms_completion c;

	do {
		c = move(pair->fd, ch, pair->p, n);
	} while (c.error == ENOENT);
	return c.status;
}

static struct nfcomms_completion sends(int fd, uint32_t ch, uint8_t *p,
				       uint64_t n)
{
	return send_at(fd, ch, p, n);
}

static struct nfcomms_completion receives(int fd, uint32_t ch, uint8_t *p,
					  uint64_t n)
{
	return receive_at(fd, ch, p, n);
}

static void against_transfers(void (*disturb)(struct pair *pair))
{
	struct pair pair = { .fd = fresh(), .disturb = disturb };
	long rounds = test_argument ? atol(test_argument) : ROUNDS;
	uint32_t loop = program(pair.fd, "loopback");
	pthread_t thread;

	pair.p = pages(BULK, 1);
	REQUIRE(!pthread_create(&thread, NULL, disturber, &pair));
	for (long i = 0; i < rounds && !test_failures(); i++) {
		uint64_t n = i % 2 ? BULK : PAGE;

		still_alive();
		CHECK_EQ(made(sends, &pair, loop, n), NFC_OK);
		CHECK_EQ(made(receives, &pair, loop, n), NFC_OK);
	}
	pair.over = true;
	pthread_join(thread, NULL);
	close(pair.fd);
	free_pages(pair.p, BULK);
	check_pins();
	check_device();
}

CASE(pair_unregister)
{
	against_transfers(comes_and_goes);
}

CASE(pair_mapped_anew)
{
	against_transfers(is_mapped_anew);
}

CASE(pair_dropped)
{
	against_transfers(is_dropped);
}

CASE(pair_fork)
{
	against_transfers(is_forked);
}
