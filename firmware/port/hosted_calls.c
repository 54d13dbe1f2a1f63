// SPDX-License-Identifier: MIT
/*
 * Calls of the firmware to the hosted port: futexes, and copies or a bus. See
 * hosted.h.
 */
#define _GNU_SOURCE
#include "hosted.h"

#include <limits.h>
#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "../nfc_fw.h"
#include "crc.h"
#include "fault.h"
#include "image.h"
#include "epoch.h"
#include "stack.h"
#include "switch.h"

enum {
	FORGOTTEN = 1000, /* pieces after which a refused one is not expected any more */
};

/* ---- gates ---- */

bool port_enter(struct gate *g)
{
	atomic_fetch_add(&g->inside, 1);
	if (!atomic_load(&g->shut))
		return true;
	atomic_fetch_sub(&g->inside, 1);
	return false;
}

void port_leave(struct gate *g)
{
	atomic_fetch_sub_explicit(&g->inside, 1, memory_order_release);
}

void port_shut(struct gate *g)
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

	if (!port_enter(&epoch->out))
		return;
	if (epoch->shared)
		port_seat_ring(epoch, host);
	else if (epoch->h->options.bus)
		nfc_irq_ring(nfc_bus_irq(epoch->h->options.bus), island);
	else
		n = write(epoch->h->doorbell, &one, sizeof(one));
	(void)n; /* full: it is readable already */
	port_leave(&epoch->out);
}

/*
 * Engines that have no room for a piece, as often as options.busy sets. A piece
 * that was refused succeeds before another is refused: a host gives up when a
 * list is requested again too often. If 1, none ever succeeds.
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

/* A host that was fenced gets NFC_ERESET for a piece that failed since. */
static int reported(struct epoch *epoch, uint32_t host, int rc)
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
	return reported(
		epoch, host,
		write ? nfc_bus_write(bus_of(epoch, host), bus, memory, len) :
			nfc_bus_read(bus_of(epoch, host), memory, bus, len));
}

static int port_dma_read(void *self, uint32_t host, void *to, uint64_t bus,
			 uint64_t len)
{
	struct epoch *epoch = self;
	int rc;

	if (!port_enter(&epoch->dma))
		return NFC_ERESET;
	rc = move_piece(epoch, host, false, to, bus, len);
	port_leave(&epoch->dma);
	return rc;
}

static int port_dma_write(void *self, uint32_t host, uint64_t bus,
			  const void *from, uint64_t len)
{
	struct epoch *epoch = self;
	int rc;

	if (!port_enter(&epoch->dma))
		return NFC_ERESET;
	rc = move_piece(epoch, host, true, (void *)from, bus,
			len); /* it is read */
	port_leave(&epoch->dma);
	return rc;
}

/*
 * Not if pieces are to be refused, a host is far, or the source overlaps the
 * target.
 */
static bool copy_piece(const struct epoch *epoch, uint32_t to, uint64_t to_bus,
		       uint32_t from, uint64_t from_bus, uint64_t len)
{
	struct nfc_bus *there = bus_of(epoch, to), *here = bus_of(epoch, from);

	if (epoch->h->options.busy || epoch->seat[to].far ||
	    epoch->seat[from].far || !there != !here)
		return false;
	if (there)
		return nfc_bus_copy(there, to_bus, here, from_bus, len);
	if (to_bus - from_bus < len || from_bus - to_bus < len)
		return false;
	return !nfc_fault_copy((void *)(uintptr_t)to_bus,
			       (const void *)(uintptr_t)from_bus, len);
}

/* A host that is far has no memory here. */
static void *port_host_at(void *self, uint32_t host, uint64_t bus, uint64_t len)
{
	struct epoch *epoch = self;
	struct nfc_bus *there;
	void *at = NULL;

	if (!port_enter(&epoch->dma))
		return NULL;
	there = bus_of(epoch, host);
	if (there)
		at = nfc_bus_at(there, bus, len);
	else if (!epoch->seat[host].far)
		at = (void *)(uintptr_t)bus;
	port_leave(&epoch->dma);
	return at;
}

static bool port_dma_copy(void *self, uint32_t to, uint64_t to_bus,
			  uint32_t from, uint64_t from_bus, uint64_t len)
{
	struct epoch *epoch = self;
	bool copied;

	if (!port_enter(&epoch->dma))
		return false;
	copied = copy_piece(epoch, to, to_bus, from, from_bus, len);
	port_leave(&epoch->dma);
	return copied;
}

static int port_post(void *self, uint32_t host, uint64_t bus,
		     const uint64_t *word, uint32_t count)
{
	struct epoch *epoch = self;
	int rc = 0;

	if (!port_enter(&epoch->dma))
		return NFC_ERESET;
	if (count > 1)
		rc = nfc_bus_write(bus_of(epoch, host), bus + sizeof(*word),
				   word + 1, (count - 1) * sizeof(*word));
	if (!rc)
		rc = nfc_bus_write(bus_of(epoch, host), bus, word,
				   sizeof(*word));
	port_leave(&epoch->dma);
	return rc;
}

static int port_peek(void *self, uint32_t host, void *to, uint64_t bus,
		     uint32_t bytes)
{
	struct epoch *epoch = self;
	int rc;

	if (!port_enter(&epoch->dma))
		return NFC_ERESET;
	atomic_thread_fence(memory_order_seq_cst); /* after what was posted */
	rc = nfc_bus_read(bus_of(epoch, host), to, bus, bytes);
	port_leave(&epoch->dma);
	return rc;
}

static uint32_t port_sense(void *self)
{
	struct epoch *epoch = self;
	uint32_t word;

	if (!port_enter(&epoch->out))
		return 0;
	word = atomic_load(&epoch->h->sensed);
	port_leave(&epoch->out);
	return word;
}

/* Of a host; NULL: it has none, or no more. Else leave the gate. */
static const struct nfc_hosted_joints *joints_of(struct epoch *epoch,
						 uint32_t host)
{
	const struct nfc_hosted_joints *j;

	if (!port_enter(&epoch->joints))
		return NULL;
	j = atomic_load(&epoch->seat[host].joints);
	if (!j)
		port_leave(&epoch->joints);
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
	port_leave(&epoch->joints);
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
	port_leave(&epoch->joints);
	return rc;
}

static void port_carry(void *self, uint32_t host, uint32_t index)
{
	struct epoch *epoch = self;
	const struct nfc_hosted_joints *j = joints_of(epoch, host);

	if (!j)
		return;
	j->carry(j->self, index);
	port_leave(&epoch->joints);
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
	port_leave(&epoch->joints);
	return rc;
}

static bool port_whose(void *self, uint32_t host, struct nfc_whose *out)
{
	struct epoch *epoch = self;
	const struct nfc_hosted_joints *j = joints_of(epoch, host);

	if (!j)
		return false;
	j->whose(j->self, out);
	port_leave(&epoch->joints);
	return true;
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
	port_leave(&epoch->joints);
	return rc;
}

static void port_revoke(void *self, uint32_t host, uint64_t key)
{
	struct epoch *epoch = self;
	const struct nfc_hosted_joints *j = joints_of(epoch, host);

	if (!j)
		return;
	j->revoke(j->self, key);
	port_leave(&epoch->joints);
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

	if (len > 256 || !port_enter(&epoch->out))
		return;
	if (epoch->shared)
		at = (size_t)sprintf(text, "host %u: ", host);
	memcpy(text + at, line, len);
	text[at + len] = '\n';
	n = write(epoch->h->log, text, at + len + 1);
	(void)n; /* there is none, or a reader that is too slow */
	port_leave(&epoch->out);
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

void port_calls_init(struct epoch *epoch)
{
	epoch->port = (struct nfc_port){
		.self = epoch,
		.ring_host = port_ring_host,
		.dma_read = port_dma_read,
		.dma_write = port_dma_write,
		.dma_copy = port_dma_copy,
		.host_at = port_host_at,
		.locate = port_locate,
		.join = port_join,
		.carry = port_carry,
		.fetch = port_fetch,
		.whose = port_whose,
		.window = port_window,
		.revoke = port_revoke,
		.sum = nfc_port_crc(0),
		.wake_engines = port_wake_engines,
		.now = port_now,
		.log = port_log,
		.sleep = port_sleep,
		.yield = port_yield,
		.sense = port_sense,
		.wake = port_wake,
		.spin_ns = epoch->h->options.spin_ns,
		.stack_init = port_stack_init,
		.stack_free = port_stack_free,
		.stack_switch = port_switch,
		.load = port_load,
		.unload = port_unload,
	};
	if (epoch->h->options.bus && !epoch->shared) {
		epoch->port.post = port_post;
		epoch->port.peek = port_peek;
	}
}
