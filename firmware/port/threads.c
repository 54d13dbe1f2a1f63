// SPDX-License-Identifier: MIT
/* The threads of an epoch: one for each island, and DMA engines beside them. */
#define _GNU_SOURCE
#include "epoch.h"

#include <limits.h>
#include <linux/futex.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "fault.h"

enum {
	ENGINE_SPIN = 2000, /* empty polls before an engine sleeps */
	WAKE_FIRST_NS = 20000, /* between two calls to leave at first; it doubles */
	WAKE_NS = 10000000, /* up to this */
};

/* One thread of the firmware; freed as it leaves. */
struct thread {
	struct epoch *epoch;
	void (*run)(struct thread *t);
	uint32_t index;
	struct nfc_fault_thread fault;
};

/* ---- threads ---- */

static void run_island(struct thread *t)
{
	struct port_runner r;

	port_crash_begin(&r, t->epoch, t->index);
	nfc_island_run(t->epoch->dev, t->index);
	nfc_fault_own(NULL);
}

static void engine_sleep(struct epoch *epoch)
{
	atomic_store(&epoch->engine_word, 1);
	if (nfc_dma_step(epoch->dev) || atomic_load(&epoch->stop_engines))
		return;
	syscall(SYS_futex, &epoch->engine_word, FUTEX_WAIT_PRIVATE, 1, NULL,
		NULL, 0);
}

static void run_engine(struct thread *t)
{
	struct epoch *epoch = t->epoch;
	uint32_t empty = 0;

	while (!atomic_load_explicit(&epoch->stop_engines,
				     memory_order_relaxed)) {
		if (nfc_dma_step(epoch->dev)) {
			empty = 0;
		} else if (++empty > ENGINE_SPIN) {
			empty = 0;
			engine_sleep(epoch);
		}
	}
}

static void *thread_main(void *arg)
{
	struct thread *t = arg;

	nfc_fault_thread_begin(&t->fault);
	t->run(t);
	nfc_fault_thread_end();
	free(t);
	return NULL;
}

/*
 * Threads of the firmware take no signals: those are the host program's. But
 * for their own faults, which would kill the process if blocked.
 */
static int spawn(struct epoch *epoch, pthread_t *thread,
		 void (*run)(struct thread *t), uint32_t index)
{
	struct thread *t = calloc(1, sizeof(*t));
	sigset_t most, old;
	int rc;

	if (!t)
		return NFC_ENOMEM;
	t->epoch = epoch;
	t->run = run;
	t->index = index;
	sigfillset(&most);
	nfc_fault_signals(&most);
	pthread_sigmask(SIG_SETMASK, &most, &old);
	rc = pthread_create(thread, NULL, thread_main, t);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	if (!rc)
		return 0;
	free(t);
	return NFC_ENOMEM;
}

int port_threads_start(struct epoch *epoch)
{
	for (uint32_t i = 0; i < epoch->config.islands; i++) {
		if (spawn(epoch, &epoch->thread[i], run_island, i))
			return NFC_ENOMEM;
		epoch->runs[i] = true;
	}
	for (uint32_t i = 0; i < epoch->engines; i++) {
		if (spawn(epoch, &epoch->engine[i], run_engine, i))
			return NFC_ENOMEM;
		epoch->works[i] = true;
	}
	return 0;
}

/*
 * A thread about to sleep may miss one call, and a host may clear the word of
 * an island that sleeps, or set it, without a ring. So this is repeated.
 */
static void wake_all(struct epoch *epoch)
{
	struct nfc_area *area = epoch->seat[0].core.area;

	for (uint32_t i = 0; i < epoch->config.islands; i++) {
		void *word = area ? &area->island[i].word : NULL;

		if (epoch->shared) {
			port_seats_wake(epoch, i);
			continue;
		}
		atomic_store((_Atomic uint64_t *)word, 0);
		port_futex_wake(word);
	}
	atomic_store(&epoch->engine_word, 0);
	port_futex_wake(&epoch->engine_word);
}

/* The processor time of a thread that runs, all there is of one that has left. */
static uint64_t used(pthread_t thread)
{
	struct timespec t;
	clockid_t clock;

	if (pthread_getcpuclockid(thread, &clock) || clock_gettime(clock, &t))
		return UINT64_MAX;
	return t.tv_sec * 1000000000ull + t.tv_nsec;
}

/*
 * True if it left in time; a program may keep its island for itself. A thread that has had
 * little processor time yet may be leaving: it has three times as long.
 */
static bool join(struct epoch *epoch, pthread_t thread, uint64_t began,
		 uint64_t ns)
{
	uint64_t enough = used(thread) + ns / 10, now;
	struct timespec pause = { .tv_nsec = WAKE_FIRST_NS };

	for (;;) {
		wake_all(epoch);
		if (!pthread_tryjoin_np(thread, NULL))
			return true;
		now = port_clock() - began;
		if (now >= ns && (now / 3 >= ns || used(thread) >= enough))
			return false;
		nanosleep(&pause, NULL);
		if (pause.tv_nsec < WAKE_NS)
			pause.tv_nsec *= 2;
	}
}

/* False if a thread stays longer than that. */
static bool join_all(struct epoch *epoch, uint64_t ns)
{
	uint64_t began = port_clock();
	bool all = true;

	for (uint32_t i = 0; i < NFC_ISLANDS_MAX; i++) {
		epoch->runs[i] = epoch->runs[i] &&
				 !join(epoch, epoch->thread[i], began, ns);
		epoch->works[i] = epoch->works[i] &&
				  !join(epoch, epoch->engine[i], began, ns);
		all &= !epoch->runs[i] && !epoch->works[i];
	}
	return all;
}

bool port_threads_stop(struct epoch *epoch, uint64_t seconds)
{
	nfc_device_halt(epoch->dev);
	atomic_store(&epoch->stop_engines, 1);
	return join_all(epoch, seconds * 1000000000);
}

bool port_threads_left(struct epoch *epoch)
{
	return join_all(epoch, 0);
}
