// SPDX-License-Identifier: MIT
/* The hosted port: threads, futexes, and copies or a bus. See port_hosted.h. */
#define _GNU_SOURCE
#include "port_hosted.h"

#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "nfc_fw.h"
#include "port_fault.h"
#include "port_image.h"
#include "port_switch.h"

enum {
	ENGINE_SPIN = 2000, /* empty looks before an engine sleeps */
	JOIN_SECONDS = 1, /* how long threads may take to leave */
	FOR_EVER = 1 << 30, /* seconds */
	WAKE_NS = 10000000, /* between two calls to leave */
};

/* One life of the device: what a restart replaces. */
struct life {
	struct nfc_hosted *h;
	struct nfc_device *dev;
	struct nfc_port port;
	struct nfc_config config;
	uint64_t device_size;
	pthread_t thread[NFC_ISLANDS_MAX];
	uint32_t threads;
	pthread_t engine[NFC_ISLANDS_MAX];
	uint32_t engines;
	_Atomic uint32_t engine_word; /* engines asleep: futex */
	_Atomic uint32_t stop_engines;
	_Atomic uint32_t gate; /* 1: DMA is off */
	_Atomic uint32_t moving; /* copies under way */
};

struct nfc_hosted {
	struct life *life; /* NULL after a restart that failed */
	struct nfc_config config;
	struct nfc_hosted_options options;
	void *area; /* outlives a life: the host may be looking at it */
	uint64_t area_size;
	int doorbell;
	bool haunted; /* a thread of an ended life still runs */
};

/* One thread of the firmware; freed as it leaves. */
struct thread {
	struct life *life;
	void (*run)(struct thread *t);
	uint32_t index;
	struct nfc_fault_thread fault;
};

/* ---- what the firmware asks for ---- */

static uint64_t port_now(void *self)
{
	struct timespec t;

	(void)self;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

static void futex_wake(void *word)
{
	syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, INT_MAX, NULL, NULL, 0);
}

static void port_sleep(void *self, uint32_t island, uint64_t until_ns)
{
	struct life *life = self;
	struct nfc_area *area = life->port.area;
	uint64_t now = port_now(self);
	struct timespec t;

	if (until_ns <= now)
		return;
	now = until_ns - now;
	t.tv_sec = (time_t)(now / 1000000000);
	t.tv_nsec = (long)(now % 1000000000);
	/* SYNC: island park: the low half of the word is the futex */
	syscall(SYS_futex, &area->island[island].word, FUTEX_WAIT_PRIVATE, 1,
		until_ns == UINT64_MAX ? NULL : &t, NULL, 0);
}

static void port_yield(void *self)
{
	(void)self;
	sched_yield();
}

static void port_wake(void *self, uint32_t island)
{
	struct life *life = self;
	struct nfc_area *area = life->port.area;
	_Atomic uint64_t *word = (_Atomic uint64_t *)&area->island[island].word;

	if (atomic_exchange(word, 0)) /* SYNC: island park */
		futex_wake(word);
}

static void port_ring_host(void *self, uint32_t island)
{
	struct life *life = self;
	struct nfc_bus *bus = life->h->options.bus;
	uint64_t one = 1;
	ssize_t n;

	if (bus) {
		nfc_irq_ring(nfc_bus_irq(bus), island);
		return;
	}
	n = write(life->h->doorbell, &one, sizeof(one));
	(void)n; /* full: it is readable already */
}

/* DMA passes a gate, so that a fence can wait for the last copy. */
static bool enter(struct life *life)
{
	atomic_fetch_add(&life->moving, 1);
	if (!atomic_load(&life->gate))
		return true;
	atomic_fetch_sub(&life->moving, 1);
	return false;
}

static void leave(struct life *life)
{
	atomic_fetch_sub_explicit(&life->moving, 1, memory_order_release);
}

static int port_dma_read(void *self, void *to, uint64_t bus, uint64_t len)
{
	struct life *life = self;
	int rc = 0;

	if (!enter(life))
		return NFC_ERESET;
	if (life->h->options.bus)
		rc = nfc_bus_read(life->h->options.bus, to, bus, len);
	else
		rc = nfc_fault_copy(to, (const void *)(uintptr_t)bus, len);
	leave(life);
	return rc;
}

static int port_dma_write(void *self, uint64_t bus, const void *from,
			  uint64_t len)
{
	struct life *life = self;
	int rc = 0;

	if (!enter(life))
		return NFC_ERESET;
	if (life->h->options.bus)
		rc = nfc_bus_write(life->h->options.bus, bus, from, len);
	else
		rc = nfc_fault_copy((void *)(uintptr_t)bus, from, len);
	leave(life);
	return rc;
}

static void port_wake_engines(void *self)
{
	struct life *life = self;

	if (life->engines && atomic_exchange(&life->engine_word, 0))
		futex_wake(&life->engine_word);
}

static void port_log(void *self, const char *line, uint64_t len)
{
	struct life *life = self;
	char text[260];
	ssize_t n;

	if (life->h->options.log_fd < 0 || len > 256)
		return;
	memcpy(text, line, len);
	text[len] = '\n';
	n = write(life->h->options.log_fd, text, len + 1);
	(void)n; /* a reader that is too slow loses lines */
}

static int port_stack_init(void *self, struct nfc_stack *s,
			   void (*enter_fn)(void *arg), void *arg)
{
	long page = sysconf(_SC_PAGESIZE);
	uint8_t *base = mmap(NULL, s->size + (uint64_t)page, PROT_NONE,
			     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	(void)self;
	if (base == MAP_FAILED)
		return NFC_ENOMEM;
	s->base = base + page; /* below it lies a guard page */
	if (!mprotect(s->base, s->size, PROT_READ | PROT_WRITE) &&
	    !port_switch_init(s, enter_fn, arg))
		return 0;
	munmap(base, s->size + (uint64_t)page);
	s->base = NULL; /* a stack there is taken for one that works */
	return NFC_ENOMEM;
}

static void port_stack_free(void *self, struct nfc_stack *s)
{
	long page = sysconf(_SC_PAGESIZE);

	(void)self;
	port_switch_free(s);
	munmap((uint8_t *)s->base - page, s->size + (uint64_t)page);
	s->base = NULL;
}

static int port_load(void *self, const void *image, uint64_t size,
		     const struct nfc_api *api, struct nfc_image *out)
{
	(void)self;
	return port_image_load(image, size, api, out);
}

static void port_unload(void *self, void *handle)
{
	(void)self;
	port_image_unload(handle);
}

/* ---- threads ---- */

static void run_island(struct thread *t)
{
	nfc_island_run(t->life->dev, t->index);
}

static void engine_sleep(struct life *life)
{
	atomic_store(&life->engine_word, 1);
	if (nfc_dma_step(life->dev) || atomic_load(&life->stop_engines))
		return;
	syscall(SYS_futex, &life->engine_word, FUTEX_WAIT_PRIVATE, 1, NULL,
		NULL, 0);
}

static void run_engine(struct thread *t)
{
	struct life *life = t->life;
	uint32_t empty = 0;

	while (!atomic_load_explicit(&life->stop_engines, memory_order_relaxed)) {
		if (nfc_dma_step(life->dev)) {
			empty = 0;
		} else if (++empty > ENGINE_SPIN) {
			empty = 0;
			engine_sleep(life);
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
 * for the faults of their own memory, which would kill the process if blocked.
 */
static int spawn(struct life *life, pthread_t *thread,
		 void (*run)(struct thread *t), uint32_t index)
{
	struct thread *t = calloc(1, sizeof(*t));
	sigset_t most, old;
	int rc;

	if (!t)
		return NFC_ENOMEM;
	t->life = life;
	t->run = run;
	t->index = index;
	sigfillset(&most);
	sigdelset(&most, SIGSEGV);
	sigdelset(&most, SIGBUS);
	pthread_sigmask(SIG_SETMASK, &most, &old);
	rc = pthread_create(thread, NULL, thread_main, t);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	if (!rc)
		return 0;
	free(t);
	return NFC_ENOMEM;
}

static int start_threads(struct life *life)
{
	for (uint32_t i = 0; i < life->config.islands; i++) {
		if (spawn(life, &life->thread[i], run_island, i))
			return NFC_ENOMEM;
		life->threads++;
	}
	for (uint32_t i = 0; i < life->h->options.engines; i++) {
		if (spawn(life, &life->engine[i], run_engine, i))
			return NFC_ENOMEM;
		life->engines++;
	}
	return 0;
}

/*
 * A thread about to sleep may miss one call, and a host may clear the word of an
 * island that sleeps, or set it, without a ring: so this is said again.
 */
static void wake_all(struct life *life)
{
	struct nfc_area *area = life->port.area;

	for (uint32_t i = 0; i < life->config.islands; i++) {
		void *word = &area->island[i].word;

		atomic_store((_Atomic uint64_t *)word, 0);
		futex_wake(word);
	}
	atomic_store(&life->engine_word, 0);
	futex_wake(&life->engine_word);
}

/* True if it left in time; a program may keep its island for itself. */
static bool join(struct life *life, pthread_t thread, uint64_t until_ns)
{
	struct timespec t;

	do {
		wake_all(life);
		clock_gettime(CLOCK_REALTIME, &t);
		t.tv_nsec += WAKE_NS;
		t.tv_sec += t.tv_nsec / 1000000000;
		t.tv_nsec %= 1000000000;
		if (!pthread_timedjoin_np(thread, NULL, &t))
			return true;
	} while (port_now(life) < until_ns);
	return false;
}

static bool stop_threads(struct life *life, uint64_t seconds)
{
	uint64_t until_ns = port_now(life) + seconds * 1000000000;
	bool all = true;

	nfc_device_halt(life->dev);
	atomic_store(&life->stop_engines, 1);
	for (uint32_t i = 0; i < life->threads; i++)
		all &= join(life, life->thread[i], until_ns);
	for (uint32_t i = 0; i < life->engines; i++)
		all &= join(life, life->engine[i], until_ns);
	return all;
}

/* ---- one life ---- */

static void *map(uint64_t size)
{
	void *p = mmap(NULL, size, PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	return p == MAP_FAILED ? NULL : p;
}

static void unmap(void *p, uint64_t size)
{
	if (p)
		munmap(p, size);
}

static void life_free(struct life *life)
{
	unmap(life->dev, life->device_size);
	for (int i = 0; i < NFC_MEMORY_COUNT; i++)
		unmap(life->port.memory[i], life->config.memory[i]);
	free(life);
}

static int life_map(struct life *life)
{
	const struct nfc_config *c = &life->config;

	life->device_size = nfc_device_size(c);
	life->dev = map(life->device_size);
	if (!life->dev)
		return NFC_ENOMEM;
	for (int i = 0; i < NFC_MEMORY_COUNT; i++) {
		life->port.memory[i] = map(c->memory[i]);
		if (!life->port.memory[i])
			return NFC_ENOMEM;
		if (c->memory[i] >= 64 << 20)
			madvise(life->port.memory[i], c->memory[i],
				MADV_HUGEPAGE);
	}
	return 0;
}

/* Boot a life in h->area, which is zero. 0 or enum nfc_status. */
static int life_start(struct nfc_hosted *h)
{
	struct life *life = calloc(1, sizeof(*life));
	int rc;

	if (!life)
		return NFC_ENOMEM;
	life->h = h;
	life->config = h->config;
	life->port = (struct nfc_port){
		.self = life,
		.area = h->area,
		.ring_host = port_ring_host,
		.dma_read = port_dma_read,
		.dma_write = port_dma_write,
		.wake_engines = port_wake_engines,
		.now = port_now,
		.log = port_log,
		.sleep = port_sleep,
		.yield = port_yield,
		.wake = port_wake,
		.spin_ns = h->options.spin_ns,
		.stack_init = port_stack_init,
		.stack_free = port_stack_free,
		.stack_switch = port_switch,
		.load = port_load,
		.unload = port_unload,
	};
	rc = -nfc_fault_install();
	if (!rc)
		rc = life_map(life);
	if (!rc)
		rc = -nfc_device_init(life->dev, &h->config, &life->port);
	if (rc) {
		life_free(life);
		return rc;
	}
	rc = start_threads(life);
	if (rc) { /* nothing but services runs: every thread leaves */
		stop_threads(life, FOR_EVER);
		nfc_device_fini(life->dev);
		life_free(life);
		return rc;
	}
	h->life = life;
	return 0;
}

static void life_fence(struct life *life)
{
	atomic_store(&life->gate, 1);
	while (atomic_load(&life->moving))
		sched_yield();
}

/* False if a thread stayed behind; then its memory stays, too. */
static bool life_end(struct life *life)
{
	life_fence(life);
	if (!stop_threads(life, JOIN_SECONDS))
		return false;
	nfc_device_fini(life->dev);
	life_free(life);
	return true;
}

/* ---- the mailbox area ---- */

/* The area of a bus is mapped anew for each device on it. */
static int map_area(struct nfc_hosted *h)
{
	struct nfc_bus *bus = h->options.bus;
	uint64_t most;

	h->area_size = nfc_area_size(&h->config);
	if (!bus) {
		h->area = map(h->area_size);
		return h->area ? 0 : NFC_ENOMEM;
	}
	nfc_bus_area(bus, &most);
	if (h->area_size > most)
		return NFC_ETOOLARGE;
	if (nfc_bus_area_clear(bus))
		return NFC_ENOMEM;
	h->area = mmap(NULL, h->area_size, PROT_READ | PROT_WRITE,
		       MAP_SHARED | MAP_NORESERVE, nfc_bus_area_fd(bus), 0);
	if (h->area != MAP_FAILED)
		return 0;
	h->area = NULL;
	return NFC_ENOMEM;
}

/* Put other memory where a thread that stays behind sees the area. */
static void cut_off(struct nfc_hosted *h)
{
	void *p = mmap(h->area, h->area_size, PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED,
		       -1, 0);

	(void)p; /* out of mappings: then it still sees the area */
}

/* ---- the port as its owner sees it ---- */

static void hosted_free(struct nfc_hosted *h)
{
	if (h->doorbell >= 0)
		close(h->doorbell);
	unmap(h->area, h->area_size);
	free(h);
}

int nfc_hosted_open(const struct nfc_config *config,
		    const struct nfc_hosted_options *options,
		    struct nfc_hosted **out)
{
	struct nfc_hosted *h = calloc(1, sizeof(*h));
	int rc;

	if (!h)
		return -NFC_ENOMEM;
	h->config = *config;
	h->options = *options;
	if (nfc_config_check(&h->config) || options->engines > NFC_ISLANDS_MAX) {
		free(h);
		return -NFC_EINVAL;
	}
	h->doorbell = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	rc = h->doorbell < 0 ? NFC_ENOMEM : map_area(h);
	if (!rc)
		rc = life_start(h);
	if (rc)
		hosted_free(h);
	else
		*out = h;
	return -rc;
}

/*
 * A thread that stays behind keeps its area; the next life gets another, at a
 * later restart if there is no memory for it now.
 */
static int new_area(struct nfc_hosted *h, bool gone)
{
	if (!gone || !h->area)
		return map_area(h);
	return madvise(h->area, h->area_size, MADV_DONTNEED) ? NFC_ENOMEM : 0;
}

int nfc_hosted_restart(struct nfc_hosted *h, uint32_t epoch)
{
	bool gone = !h->life || life_end(h->life);
	int rc;

	h->life = NULL;
	h->haunted |= !gone;
	h->config.epoch = epoch;
	rc = new_area(h, gone);
	if (!rc)
		rc = life_start(h);
	return -rc;
}

void nfc_hosted_fence(struct nfc_hosted *h)
{
	if (h->life)
		life_fence(h->life);
}

int nfc_hosted_assist(struct nfc_hosted *h)
{
	return h->life && nfc_dma_step(h->life->dev);
}

void *nfc_hosted_area(struct nfc_hosted *h, uint64_t *size)
{
	*size = h->area_size;
	return h->area;
}

int nfc_hosted_doorbell(struct nfc_hosted *h)
{
	return h->doorbell;
}

void nfc_hosted_ring(struct nfc_hosted *h, uint32_t island)
{
	struct nfc_area *area = h->area;

	if (area && island < h->config.islands) /* none: no memory at a restart */
		futex_wake(&area->island[island].word);
}

bool nfc_hosted_close(struct nfc_hosted *h)
{
	if (h->life && !life_end(h->life)) {
		h->haunted = true;
		if (h->options.bus)
			cut_off(h);
	}
	if (h->haunted)
		return false; /* that thread may still ring, log or load */
	hosted_free(h);
	return true;
}
