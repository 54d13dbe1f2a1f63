// SPDX-License-Identifier: MIT
/*
 * The least code that shows why a ring needs its SYNC points: a writer and a
 * reader of one packet at a time. With -DVOLATILE the heads are as in the HMF
 * Transmitter, volatile and without order, and a compiler that knows the
 * packet's memory breaks it; without, they are those of docs/ring.md. Prints
 * "right", or which packet was wrong.
 *
 *	ring_litmus write	the writer's side: packets are stored before positions
 *	ring_litmus read	the reader's side: positions are loaded before packets
 */
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#ifdef VOLATILE
typedef volatile int64_t position;
#define STORE(p, v) (*(p) = (v))
#define LOAD(p) (*(p))
#else
typedef _Atomic int64_t position;
#define STORE(p, v) atomic_store_explicit(p, v, memory_order_release)
#define LOAD(p) atomic_load_explicit(p, memory_order_acquire)
#endif

enum {
	PACKETS = 100,
};

static struct {
	_Alignas(64) position writer; /* packets that were published */
	_Alignas(64) position reader; /* packets that were read */
	_Alignas(64) uint64_t packet; /* the one under both heads */
} ring;

static void give_way(void)
{
	sched_yield();
}

/* ---- a writer that is watched ---- */

static void *careful_reader(void *wrong)
{
	for (int64_t n = 1; n <= PACKETS; n++) {
		while (__atomic_load_n(&ring.writer, __ATOMIC_ACQUIRE) < n)
			give_way();
		if (__atomic_load_n(&ring.packet, __ATOMIC_RELAXED) !=
		    (uint64_t)n * 3)
			*(int64_t *)wrong = n;
		__atomic_store_n(&ring.reader, n, __ATOMIC_RELEASE);
	}
	return NULL;
}

/* Two packets a lap: the second is written where the first was read. */
static void writer(void)
{
	for (int64_t n = 1; n <= PACKETS; n += 2) {
		ring.packet = (uint64_t)n * 3;
		STORE(&ring.writer, n); /* the order under test */
		while (LOAD(&ring.reader) < n)
			;
		ring.packet = (uint64_t)(n + 1) * 3;
		STORE(&ring.writer, n + 1);
		while (LOAD(&ring.reader) < n + 1)
			;
	}
}

/* ---- a reader that is watched ---- */

static void *careful_writer(void *unused)
{
	for (int64_t n = 1; n <= PACKETS; n++) {
		while (__atomic_load_n(&ring.reader, __ATOMIC_ACQUIRE) < n - 1)
			give_way();
		__atomic_store_n(&ring.packet, (uint64_t)n * 3,
				 __ATOMIC_RELAXED);
		__atomic_store_n(&ring.writer, n, __ATOMIC_RELEASE);
	}
	return unused;
}

static int64_t reader(void)
{
	int64_t wrong = 0;

	for (int64_t n = 1; n <= PACKETS; n++) {
		while (LOAD(&ring.writer) < n) /* the order under test */
			;
		if (ring.packet != (uint64_t)n * 3)
			wrong = n;
		STORE(&ring.reader, n);
	}
	return wrong;
}

int main(int argc, char **argv)
{
	int writes = argc == 2 && !strcmp(argv[1], "write");
	int64_t wrong = 0;
	pthread_t other;

	if (pthread_create(&other, NULL,
			   writes ? careful_reader : careful_writer, &wrong))
		return 1;
	if (writes)
		writer();
	else
		wrong = reader();
	pthread_join(other, NULL);
	if (wrong)
		printf("packet %lld was wrong\n", (long long)wrong);
	else
		puts("right");
	return 0;
}
