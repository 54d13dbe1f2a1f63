// SPDX-License-Identifier: MIT
/* The hosted port: threads, futexes, and copies or a bus. See port_hosted.h. */
#define _GNU_SOURCE
#include "hosted.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "../nfc_fw.h"
#include "fault.h"
#include "image.h"
#include "life.h"
#include "stack.h"
#include "switch.h"

enum {
	JOIN_SECONDS = 1, /* how long threads may take to leave */
	FOR_EVER = 1 << 30, /* seconds */
	FORGOTTEN = 1000, /* pieces after which a refused one comes no more */
};

/*
 * Lives that were cut off, of devices that may be gone. Each is freed when its
 * last thread has left, as soon as somebody looks.
 */
static struct {
	pthread_mutex_t lock;
	struct life *first;
} cut_off = { .lock = PTHREAD_MUTEX_INITIALIZER };

/* ---- gates ---- */

static bool enter(struct gate *g)
{
	atomic_fetch_add(&g->inside, 1);
	if (!atomic_load(&g->shut))
		return true;
	atomic_fetch_sub(&g->inside, 1);
	return false;
}

static void leave(struct gate *g)
{
	atomic_fetch_sub_explicit(&g->inside, 1, memory_order_release);
}

static void shut(struct gate *g)
{
	atomic_store(&g->shut, 1);
	while (atomic_load(&g->inside))
		sched_yield();
}

/* ---- what the firmware asks for ---- */

uint64_t port_clock(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

static uint64_t port_now(void *self)
{
	(void)self;
	return port_clock();
}

void port_futex_wake(void *word)
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
		port_futex_wake(word);
}

static void port_ring_host(void *self, uint32_t island)
{
	struct life *life = self;
	uint64_t one = 1;
	ssize_t n = 0;

	if (!enter(&life->out))
		return;
	if (life->h->options.bus)
		nfc_irq_ring(nfc_bus_irq(life->h->options.bus), island);
	else
		n = write(life->h->doorbell, &one, sizeof(one));
	(void)n; /* full: it is readable already */
	leave(&life->out);
}

/*
 * Engines that have no room for a piece, as often as options.busy says. The piece
 * that was refused comes through before another is: a host gives up when a list
 * is asked for again too often. If 1, none ever comes through.
 */
static bool is_busy(struct life *life, uint64_t bus, uint64_t len)
{
	uint32_t each = life->h->options.busy;
	struct refusal *r = &life->refusal;
	bool busy = false;

	if (each < 2)
		return each;
	pthread_mutex_lock(&r->lock);
	r->moved++;
	if (r->pending) {
		if (r->bus - bus < len || r->moved > FORGOTTEN) {
			r->pending = false;
			r->moved = 0;
		}
	} else if (r->moved >= each) {
		busy = r->pending = true;
		r->bus = bus;
		r->moved = 0;
	}
	pthread_mutex_unlock(&r->lock);
	return busy;
}

static int port_dma_read(void *self, void *to, uint64_t bus, uint64_t len)
{
	struct life *life = self;
	int rc = 0;

	if (!enter(&life->dma))
		return NFC_ERESET;
	if (is_busy(life, bus, len))
		rc = NFC_EBUSY;
	else if (life->h->options.bus)
		rc = nfc_bus_read(life->h->options.bus, to, bus, len);
	else
		rc = nfc_fault_copy(to, (const void *)(uintptr_t)bus, len);
	leave(&life->dma);
	return rc;
}

static int port_dma_write(void *self, uint64_t bus, const void *from,
			  uint64_t len)
{
	struct life *life = self;
	int rc = 0;

	if (!enter(&life->dma))
		return NFC_ERESET;
	if (is_busy(life, bus, len))
		rc = NFC_EBUSY;
	else if (life->h->options.bus)
		rc = nfc_bus_write(life->h->options.bus, bus, from, len);
	else
		rc = nfc_fault_copy((void *)(uintptr_t)bus, from, len);
	leave(&life->dma);
	return rc;
}

static uint32_t port_sense(void *self)
{
	struct life *life = self;
	uint32_t word;

	if (!enter(&life->out))
		return 0;
	word = atomic_load(&life->h->sensed);
	leave(&life->out);
	return word;
}

static void port_wake_engines(void *self)
{
	struct life *life = self;

	if (life->engines && atomic_exchange(&life->engine_word, 0))
		port_futex_wake(&life->engine_word);
}

static void port_log(void *self, const char *line, uint64_t len)
{
	struct life *life = self;
	char text[260];
	ssize_t n;

	if (len > 256 || !enter(&life->out))
		return;
	memcpy(text, line, len);
	text[len] = '\n';
	n = write(life->h->log, text, len + 1);
	(void)n; /* there is none, or a reader that is too slow */
	leave(&life->out);
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
	pthread_mutex_destroy(&life->refusal.lock);
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
	pthread_mutex_init(&life->refusal.lock, NULL);
	life->config = h->config;
	life->area_size = h->area_size;
	life->engines = h->options.engines;
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
		.sense = port_sense,
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
	rc = port_threads_start(life);
	if (rc) { /* nothing but services runs: every thread leaves */
		port_threads_stop(life, FOR_EVER);
		nfc_device_fini(life->dev);
		life_free(life);
		return rc;
	}
	h->life = life;
	return 0;
}

/* Put other memory where a thread that stays behind sees the area of a bus. */
static void cover_area(struct life *life)
{
	void *p = mmap(life->port.area, life->area_size, PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED,
		       -1, 0);

	(void)p; /* out of mappings: then it still sees the area */
}

/* A thread stays behind: from now on it reaches the life's own memory alone. */
static void life_cut_off(struct life *life)
{
	shut(&life->out);
	if (life->h->options.bus)
		cover_area(life);
	pthread_mutex_lock(&cut_off.lock);
	life->next = cut_off.first;
	cut_off.first = life;
	pthread_mutex_unlock(&cut_off.lock);
}

/* Free what was cut off, also by other devices, and has ended since. */
static void free_cut_off(void)
{
	struct life **at, *life;

	pthread_mutex_lock(&cut_off.lock);
	for (at = &cut_off.first; (life = *at);) {
		if (!port_threads_left(life)) {
			at = &life->next;
			continue;
		}
		*at = life->next;
		nfc_device_fini(life->dev);
		unmap(life->port.area, life->area_size);
		life_free(life);
	}
	pthread_mutex_unlock(&cut_off.lock);
}

/*
 * Does a life of this device that was cut off go on? Tells what keeps it. last:
 * nobody will ask again.
 */
static bool left_behind(struct nfc_hosted *h, bool last,
			struct nfc_computing *who)
{
	bool any = false;

	*who = (struct nfc_computing){ 0 };
	free_cut_off();
	pthread_mutex_lock(&cut_off.lock);
	for (struct life *life = cut_off.first; life; life = life->next) {
		if (life->h != h)
			continue;
		any = true;
		for (uint32_t i = 0; i < life->config.islands; i++)
			if (life->runs[i])
				nfc_island_computes(life->dev, i, who);
		if (last)
			life->h = NULL;
	}
	pthread_mutex_unlock(&cut_off.lock);
	return any;
}

/* If a thread stays behind the life's memory does, too, and h has no area. */
static void life_end(struct nfc_hosted *h)
{
	struct life *life = h->life;

	h->life = NULL;
	if (!life)
		return;
	shut(&life->dma);
	if (port_threads_stop(life, JOIN_SECONDS)) {
		nfc_device_fini(life->dev);
		life_free(life);
		return;
	}
	life_cut_off(life);
	h->area = NULL;
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

/* ---- the port as its owner sees it ---- */

static void hosted_free(struct nfc_hosted *h)
{
	if (h->doorbell >= 0)
		close(h->doorbell);
	if (h->log >= 0)
		close(h->log);
	unmap(h->area, h->area_size);
	free(h);
}

/* The port's own descriptors: nobody else closes them under its threads. */
static int open_files(struct nfc_hosted *h)
{
	h->doorbell = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	h->log = h->options.log_fd;
	if (h->log >= 0)
		h->log = fcntl(h->log, F_DUPFD_CLOEXEC, 0);
	return h->doorbell < 0 || (h->options.log_fd >= 0 && h->log < 0) ?
		       NFC_ENOMEM :
		       0;
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
	free_cut_off();
	rc = open_files(h);
	if (!rc)
		rc = map_area(h);
	if (!rc)
		rc = life_start(h);
	if (rc)
		hosted_free(h);
	else
		*out = h;
	return -rc;
}

/* A life that was cut off keeps its area; the next one gets another. */
static int new_area(struct nfc_hosted *h)
{
	if (!h->area)
		return map_area(h);
	return madvise(h->area, h->area_size, MADV_DONTNEED) ? NFC_ENOMEM : 0;
}

int nfc_hosted_restart(struct nfc_hosted *h, uint32_t epoch, bool *left,
		       struct nfc_computing *who)
{
	int rc;

	life_end(h);
	*left = left_behind(h, false, who);
	h->config.epoch = epoch;
	rc = new_area(h);
	if (!rc)
		rc = life_start(h);
	return -rc;
}

void nfc_hosted_fence(struct nfc_hosted *h)
{
	if (h->life)
		shut(&h->life->dma);
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

void nfc_hosted_sense(struct nfc_hosted *h, uint32_t word)
{
	atomic_store(&h->sensed, word);
}

void nfc_hosted_ring(struct nfc_hosted *h, uint32_t island)
{
	struct nfc_area *area = h->area;

	if (area && island < h->config.islands) /* none: no memory at a restart */
		port_futex_wake(&area->island[island].word);
}

void nfc_hosted_close(struct nfc_hosted *h, bool *left,
		      struct nfc_computing *who)
{
	life_end(h);
	*left = left_behind(h, true, who);
	hosted_free(h);
}

bool nfc_hosted_computes(struct nfc_hosted *h, uint32_t island,
			 struct nfc_computing *who)
{
	return h->life && nfc_island_computes(h->life->dev, island, who);
}
