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
#include "epoch.h"
#include "stack.h"
#include "switch.h"

enum {
	JOIN_SECONDS = 1, /* how long threads may take to leave */
	FOR_EVER = 1 << 30, /* seconds */
	FORGOTTEN = 1000, /* pieces after which a refused one comes no more */
};

/*
 * Epochs that were cut off, of devices that may be gone. Each is freed when its
 * last thread has left, when the next device is opened or closed.
 */
static struct {
	pthread_mutex_t lock;
	struct epoch *first;
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
	struct epoch *epoch = self;
	uint64_t now = port_now(self);
	struct nfc_area *area;
	struct timespec t;

	if (until_ns <= now)
		return;
	if (epoch->shared) {
		port_seats_sleep(epoch, island, until_ns);
		return;
	}
	now = until_ns - now;
	t.tv_sec = (time_t)(now / 1000000000);
	t.tv_nsec = (long)(now % 1000000000);
	area = epoch->seat[0].core.area;
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
	struct epoch *epoch = self;
	_Atomic uint64_t *word;

	if (epoch->shared) {
		port_seats_wake(epoch, island);
		return;
	}
	word = (_Atomic uint64_t *)&epoch->seat[0].area->island[island].word;
	if (atomic_exchange(word, 0)) /* SYNC: island park */
		port_futex_wake(word);
}

static void port_ring_host(void *self, uint32_t host, uint32_t island)
{
	struct epoch *epoch = self;
	uint64_t one = 1;
	ssize_t n = 0;

	if (!enter(&epoch->out))
		return;
	if (epoch->shared)
		port_seat_ring(epoch, host);
	else if (epoch->h->options.bus)
		nfc_irq_ring(nfc_bus_irq(epoch->h->options.bus), island);
	else
		n = write(epoch->h->doorbell, &one, sizeof(one));
	(void)n; /* full: it is readable already */
	leave(&epoch->out);
}

/*
 * Engines that have no room for a piece, as often as options.busy says. The piece
 * that was refused comes through before another is: a host gives up when a list
 * is asked for again too often. If 1, none ever comes through.
 */
static bool is_busy(struct epoch *epoch, uint64_t bus, uint64_t len)
{
	uint32_t each = epoch->h->options.busy;
	struct refusal *r = &epoch->refusal;
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

/* NULL: host memory is this process's own. */
static struct nfc_bus *bus_of(const struct epoch *epoch, uint32_t host)
{
	return epoch->shared ? epoch->seat[host].bus : epoch->h->options.bus;
}

/* A host that was fenced is not told of what failed since. */
static int told(struct epoch *epoch, uint32_t host, int rc)
{
	return rc && atomic_load(&epoch->seat[host].fenced) ? NFC_ERESET : rc;
}

/* Both ways; the host's memory is at bus. */
static int move_piece(struct epoch *epoch, uint32_t host, bool write,
		      void *memory, uint64_t bus, uint64_t len)
{
	const struct nfc_hosted_far *far = epoch->seat[host].far;
	void *there = (void *)(uintptr_t)bus; /* of this process, without a bus */

	if (is_busy(epoch, bus, len))
		return NFC_EBUSY;
	if (far)
		return far->dma(far->self, write, memory, bus, len);
	if (!bus_of(epoch, host))
		return write ? nfc_fault_copy(there, memory, len) :
			       nfc_fault_copy(memory, there, len);
	return told(epoch, host,
		    write ? nfc_bus_write(bus_of(epoch, host), bus, memory, len) :
			    nfc_bus_read(bus_of(epoch, host), memory, bus, len));
}

static int port_dma_read(void *self, uint32_t host, void *to, uint64_t bus,
			 uint64_t len)
{
	struct epoch *epoch = self;
	int rc;

	if (!enter(&epoch->dma))
		return NFC_ERESET;
	rc = move_piece(epoch, host, false, to, bus, len);
	leave(&epoch->dma);
	return rc;
}

static int port_dma_write(void *self, uint32_t host, uint64_t bus,
			  const void *from, uint64_t len)
{
	struct epoch *epoch = self;
	int rc;

	if (!enter(&epoch->dma))
		return NFC_ERESET;
	rc = move_piece(epoch, host, true, (void *)from, bus,
			len); /* it is read */
	leave(&epoch->dma);
	return rc;
}

static int port_post(void *self, uint32_t host, uint64_t bus,
		     const uint64_t *word, uint32_t count)
{
	struct epoch *epoch = self;
	int rc = 0;

	if (!enter(&epoch->dma))
		return NFC_ERESET;
	if (count > 1)
		rc = nfc_bus_write(bus_of(epoch, host), bus + sizeof(*word),
				   word + 1, (count - 1) * sizeof(*word));
	if (!rc)
		rc = nfc_bus_write(bus_of(epoch, host), bus, word,
				   sizeof(*word));
	leave(&epoch->dma);
	return rc;
}

static int port_peek(void *self, uint32_t host, void *to, uint64_t bus,
		     uint32_t bytes)
{
	struct epoch *epoch = self;
	int rc;

	if (!enter(&epoch->dma))
		return NFC_ERESET;
	atomic_thread_fence(memory_order_seq_cst); /* after what was posted */
	rc = nfc_bus_read(bus_of(epoch, host), to, bus, bytes);
	leave(&epoch->dma);
	return rc;
}

static uint32_t port_sense(void *self)
{
	struct epoch *epoch = self;
	uint32_t word;

	if (!enter(&epoch->out))
		return 0;
	word = atomic_load(&epoch->h->sensed);
	leave(&epoch->out);
	return word;
}

/* Of a host; NULL: it has none, or no more. Else leave the gate. */
static const struct nfc_hosted_joints *joints_of(struct epoch *epoch,
						 uint32_t host)
{
	const struct nfc_hosted_joints *j;

	if (!enter(&epoch->joints))
		return NULL;
	j = atomic_load(&epoch->seat[host].joints);
	if (!j)
		leave(&epoch->joints);
	return j;
}

static int port_locate(void *self, uint32_t host, uint64_t id)
{
	struct epoch *epoch = self;
	const struct nfc_hosted_joints *j = joints_of(epoch, host);
	int rc;

	if (!j)
		return -NFC_ENOTSUP;
	rc = j->locate(j->self, id);
	leave(&epoch->joints);
	return rc;
}

static int port_join(void *self, uint32_t host, struct nfc_joint *joint,
		     uint32_t index, uint64_t id)
{
	struct epoch *epoch = self;
	const struct nfc_hosted_joints *j = joints_of(epoch, host);
	int rc;

	if (!j)
		return -NFC_ECLOSED;
	rc = j->join(j->self, joint, index, id);
	leave(&epoch->joints);
	return rc;
}

static void port_carry(void *self, uint32_t host, uint32_t index)
{
	struct epoch *epoch = self;
	const struct nfc_hosted_joints *j = joints_of(epoch, host);

	if (!j)
		return;
	j->carry(j->self, index);
	leave(&epoch->joints);
}

static int port_fetch(void *self, uint32_t host, uint32_t index, void *to,
		      uint64_t at, uint64_t len)
{
	struct epoch *epoch = self;
	const struct nfc_hosted_joints *j = joints_of(epoch, host);
	int rc;

	if (!j)
		return NFC_ERESET;
	rc = j->fetch(j->self, index, to, at, len);
	leave(&epoch->joints);
	return rc;
}

static int port_window(void *self, uint32_t host, void *memory, uint64_t size,
		       uint32_t access, uint64_t *key)
{
	struct epoch *epoch = self;
	const struct nfc_hosted_joints *j = joints_of(epoch, host);
	int rc;

	if (!j)
		return -NFC_ENOTSUP;
	rc = j->window(j->self, memory, size, access, key);
	leave(&epoch->joints);
	return rc;
}

static void port_revoke(void *self, uint32_t host, uint64_t key)
{
	struct epoch *epoch = self;
	const struct nfc_hosted_joints *j = joints_of(epoch, host);

	if (!j)
		return;
	j->revoke(j->self, key);
	leave(&epoch->joints);
}

static void port_wake_engines(void *self)
{
	struct epoch *epoch = self;

	if (epoch->engines && atomic_exchange(&epoch->engine_word, 0))
		port_futex_wake(&epoch->engine_word);
}

static void port_log(void *self, uint32_t host, const char *line, uint64_t len)
{
	struct epoch *epoch = self;
	char text[280];
	size_t at = 0;
	ssize_t n;

	if (len > 256 || !enter(&epoch->out))
		return;
	if (epoch->shared)
		at = (size_t)sprintf(text, "host %u: ", host);
	memcpy(text + at, line, len);
	text[at + len] = '\n';
	n = write(epoch->h->log, text, at + len + 1);
	(void)n; /* there is none, or a reader that is too slow */
	leave(&epoch->out);
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

/* ---- one epoch ---- */

void *port_map(uint64_t size)
{
	void *p = mmap(NULL, size, PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	return p == MAP_FAILED ? NULL : p;
}

void port_unmap(void *p, uint64_t size)
{
	if (p)
		munmap(p, size);
}

static void epoch_free(struct epoch *epoch)
{
	port_unmap(epoch->dev, epoch->device_size);
	port_seats_free(epoch);
	pthread_mutex_destroy(&epoch->refusal.lock);
	free(epoch);
}

static int epoch_init(struct epoch *epoch)
{
	struct nfc_seat *seat = epoch->shared ? NULL : &epoch->seat[0].core;
	int rc = 0;

	epoch->dev = port_map(epoch->device_size);
	if (!epoch->dev)
		return NFC_ENOMEM;
	if (seat)
		rc = port_seat_boot(epoch, epoch->h->area, epoch->h->number);
	if (rc)
		return rc;
	return -nfc_device_init(epoch->dev, &epoch->config, &epoch->port, seat);
}

/* Joints of a host that is here follow its device from epoch to epoch. */
static void serve_joints(struct nfc_hosted *h, bool serve)
{
	const struct nfc_hosted_joints *j = h->joints;

	if (!j || !h->epoch)
		return;
	atomic_store(&h->epoch->seat[0].joints, serve ? j : NULL);
	j->serve(j->self, serve ? h->epoch->dev : NULL, 0);
	if (!serve)
		shut(&h->epoch->joints);
}

void nfc_hosted_join(struct nfc_hosted *h,
		     const struct nfc_hosted_joints *joints)
{
	serve_joints(h, false);
	h->joints = joints;
	serve_joints(h, true);
}

/* Boot an epoch in h->area, which is zero. 0 or enum nfc_status. */
static int epoch_start(struct nfc_hosted *h)
{
	struct epoch *epoch = calloc(1, sizeof(*epoch));
	int rc;

	if (!epoch)
		return NFC_ENOMEM;
	epoch->h = h;
	pthread_mutex_init(&epoch->refusal.lock, NULL);
	epoch->config = h->config;
	epoch->shared = h->options.shared;
	epoch->device_size = nfc_device_size(&h->config);
	epoch->area_size = h->area_size;
	epoch->engines = h->options.engines;
	epoch->port = (struct nfc_port){
		.self = epoch,
		.ring_host = port_ring_host,
		.dma_read = port_dma_read,
		.dma_write = port_dma_write,
		.locate = port_locate,
		.join = port_join,
		.carry = port_carry,
		.fetch = port_fetch,
		.window = port_window,
		.revoke = port_revoke,
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
	if (h->options.bus && !epoch->shared) {
		epoch->port.post = port_post;
		epoch->port.peek = port_peek;
	}
	rc = -nfc_fault_install();
	if (!rc)
		rc = epoch_init(epoch);
	if (rc) {
		epoch_free(epoch);
		return rc;
	}
	rc = port_threads_start(epoch);
	if (rc) { /* nothing but services runs: every thread leaves */
		port_threads_stop(epoch, FOR_EVER);
		nfc_device_fini(epoch->dev);
		epoch_free(epoch);
		return rc;
	}
	h->epoch = epoch;
	serve_joints(h, true);
	return 0;
}

/* Put other memory where a thread that stays behind sees the area of a bus. */
static void cover_area(struct epoch *epoch)
{
	void *p = mmap(epoch->seat[0].core.area, epoch->area_size,
		       PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED,
		       -1, 0);

	(void)p; /* out of mappings: then it still sees the area */
}

/* A thread is leaked: from now on it reaches the epoch's own memory alone. */
static void epoch_cut_off(struct epoch *epoch)
{
	shut(&epoch->out);
	if (epoch->h->options.bus)
		cover_area(epoch);
	pthread_mutex_lock(&cut_off.lock);
	epoch->next = cut_off.first;
	cut_off.first = epoch;
	pthread_mutex_unlock(&cut_off.lock);
}

/* Free what was cut off, also by other devices, and has ended since. */
static void free_cut_off(void)
{
	struct epoch **at, *epoch;

	pthread_mutex_lock(&cut_off.lock);
	for (at = &cut_off.first; (epoch = *at);) {
		if (!port_threads_left(epoch)) {
			at = &epoch->next;
			continue;
		}
		*at = epoch->next;
		nfc_device_fini(epoch->dev);
		port_unmap(epoch->seat[0].core.area, epoch->area_size);
		epoch_free(epoch);
	}
	pthread_mutex_unlock(&cut_off.lock);
}

/*
 * Is an epoch of this device that was cut off still running? Names what keeps it. last:
 * nobody will ask again.
 */
static bool left_behind(struct nfc_hosted *h, bool last,
			struct nfc_computing *who)
{
	bool any = false;

	*who = (struct nfc_computing){ 0 };
	free_cut_off();
	pthread_mutex_lock(&cut_off.lock);
	for (struct epoch *epoch = cut_off.first; epoch; epoch = epoch->next) {
		if (epoch->h != h)
			continue;
		any = true;
		for (uint32_t i = 0; i < epoch->config.islands; i++)
			if (epoch->runs[i])
				nfc_island_computes(epoch->dev, i, who);
		if (last)
			epoch->h = NULL;
	}
	pthread_mutex_unlock(&cut_off.lock);
	return any;
}

/* If a thread is leaked, so is the epoch's memory, and h has no area. */
static void epoch_end(struct nfc_hosted *h)
{
	struct epoch *epoch = h->epoch;

	serve_joints(h, false);
	h->epoch = NULL;
	if (!epoch)
		return;
	shut(&epoch->joints);
	shut(&epoch->dma);
	if (port_threads_stop(epoch, JOIN_SECONDS)) {
		nfc_device_fini(epoch->dev);
		epoch_free(epoch);
		return;
	}
	epoch_cut_off(epoch);
	h->area = NULL;
}

/* ---- the mailbox area ---- */

/* The area of a bus is mapped anew for each device on it. */
static int map_area(struct nfc_hosted *h)
{
	struct nfc_bus *bus = h->options.bus;
	uint64_t most;

	h->area_size = nfc_area_size(&h->config);
	if (h->options.shared)
		return 0; /* each host brings one */
	if (!bus) {
		h->area = port_map(h->area_size);
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
	port_unmap(h->area, h->area_size);
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
	h->number = options->epoch ? options->epoch : 1;
	if (nfc_config_check(&h->config) || options->engines > NFC_ISLANDS_MAX) {
		free(h);
		return -NFC_EINVAL;
	}
	free_cut_off();
	rc = open_files(h);
	if (!rc)
		rc = map_area(h);
	if (!rc)
		rc = epoch_start(h);
	if (rc)
		hosted_free(h);
	else
		*out = h;
	return -rc;
}

/* An epoch that was cut off keeps its area; the next one gets another. */
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

	epoch_end(h);
	*left = left_behind(h, false, who);
	h->number = epoch;
	rc = new_area(h);
	if (!rc)
		rc = epoch_start(h);
	return -rc;
}

void nfc_hosted_fence(struct nfc_hosted *h)
{
	if (h->epoch)
		shut(&h->epoch->dma);
}

int nfc_hosted_assist(struct nfc_hosted *h)
{
	return h->epoch && nfc_dma_step(h->epoch->dev);
}

struct nfc_ran nfc_hosted_run(struct nfc_hosted *h, uint32_t island)
{
	struct nfc_ran r = { .owner = NFC_OWNER_THREAD };

	struct port_runner runner;

	if (!h->epoch)
		return r;
	port_crash_begin(&runner, h->epoch, island);
	r.owner = nfc_island_assist(h->epoch->dev, island, &r.unheard);
	nfc_fault_own(NULL);
	return r;
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
	_Atomic uint64_t *word;

	if (!area ||
	    island >= h->config.islands) /* none: no memory at a restart */
		return;
	word = (_Atomic uint64_t *)&area->island[island].word;
	atomic_store(word, 0); /* one with an area of its own leaves that to us */
	port_futex_wake(word);
}

void nfc_hosted_close(struct nfc_hosted *h, bool *left,
		      struct nfc_computing *who)
{
	epoch_end(h);
	*left = left_behind(h, true, who);
	hosted_free(h);
}

bool nfc_hosted_computes(struct nfc_hosted *h, uint32_t island,
			 struct nfc_computing *who)
{
	return h->epoch && nfc_island_computes(h->epoch->dev, island, who);
}
