// SPDX-License-Identifier: MIT
/*
 * Hosts at one node of a device at another: where the ends of firmware/link/far.h meet
 * this process's memory, its devices and its threads.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <linux/futex.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "../link/far.h"
#include "epoch.h"
#include "fault.h"
#include "mesh_span.h"

/* A host: this process, or a client of it. */
struct nfc_near {
	struct nfc_far end;
	struct nfc_near *next;
	struct mesh_node *node;
	uint32_t to;
	struct nfc_config shape;
	struct nfc_bus *bus; /* NULL: it is this process */
	void *area, *pages;
	uint64_t size, pages_size;
	int doorbell;
	uint64_t owner; /* the same of all hosts here that are one */
	uint32_t epoch;
	uint16_t number; /* among the hosts of that device here */
	bool active;
	_Atomic bool rung;
	pthread_t listener; /* of a client: it waits until that rings */
	bool listens;
	_Atomic uint32_t stop; /* futex */
};

/* The place at a device for the host of another node, with a thread that seats it. */
struct far_seat {
	struct nfc_far end;
	struct far_seat *next;
	struct mesh_node *node;
	struct nfc_hosted_far reach;
	struct mesh_place place;
	uint32_t peer, host;
	uint16_t number; /* among the hosts of that node */
	uint64_t owner; /* of the wanted epoch */
	uint32_t wanted, seated; /* epochs */
	bool active; /* the device serves it */
	_Atomic bool rung;
	pthread_t thread;
	pthread_cond_t changed;
};

enum {
	LAST_NS = 1000000000, /* for the last slots of a host that leaves */
	LAST_POLL_NS = 100000,
};

static struct nfc_far_config end_config(const struct nfc_config *shape,
					uint32_t peer, uint32_t epoch)
{
	return (struct nfc_far_config){
		.peer = peer,
		.epoch = epoch,
		.mailboxes = shape->managers,
		.islands = shape->islands,
		.slots = shape->slots,
		.channels = shape->channels,
	};
}

/* ---- the host ---- */

static void ring_near(void *self, uint32_t island)
{
	struct nfc_near *h = self;
	uint64_t one = 1;
	ssize_t n;

	(void)island;
	if (!h->bus)
		n = write(h->doorbell, &one, sizeof(one));
	else
		n = send(h->doorbell, "", 1, MSG_DONTWAIT | MSG_NOSIGNAL);
	(void)n; /* full: it is readable already */
}

static int reach_near(void *self, bool write, void *memory, uint64_t bus,
		      uint64_t size)
{
	struct nfc_near *h = self;
	void *host = (void *)(uintptr_t)bus;

	if (h->bus)
		return write ? nfc_bus_write(h->bus, bus, memory, size) :
			       nfc_bus_read(h->bus, memory, bus, size);
	return write ? nfc_fault_copy(host, memory, size) :
		       nfc_fault_copy(memory, host, size);
}

static void *listen_near(void *arg)
{
	struct nfc_near *h = arg;
	struct nfc_area *area = h->area;
	struct futex_waitv v[NFC_ISLANDS_MAX + 1] = { 0 };
	uint32_t n = h->shape.islands;

	for (uint32_t i = 0; i < n; i++)
		v[i] = (struct futex_waitv){
			.uaddr = (uintptr_t)&area->island[i].word,
			.val = 1,
			.flags = FUTEX_32
		};
	v[n] = (struct futex_waitv){ .uaddr = (uintptr_t)&h->stop,
				     .flags = FUTEX_32 | FUTEX_PRIVATE_FLAG };
	while (!atomic_load(&h->stop)) {
		if (nfc_far_rung(area, n))
			nfc_near_ring(h);
		else
			syscall(SYS_futex_waitv, v, n + 1, 0, NULL, 0);
	}
	return NULL;
}

/* The lowest number that no other host of that device here has; the node is held. */
static int number_near(struct nfc_near *h)
{
	uint32_t taken = 0;

	for (struct nfc_near *o = h->node->nears; o; o = o->next)
		if (o->to == h->to)
			taken |= 1u << o->number;
	h->number = (uint16_t)__builtin_ctz(~taken);
	return h->number < NFC_FAR_HOSTS ? 0 : -NFC_EBUSY;
}

static void drop_near(struct nfc_near *h)
{
	if (h->listens) {
		atomic_store(&h->stop, 1);
		port_futex_wake(&h->stop);
		pthread_join(h->listener, NULL);
	}
	if (h->doorbell >= 0)
		close(h->doorbell);
	if (!h->bus)
		port_unmap(h->area, h->size);
	port_unmap(h->pages, h->pages_size);
	free(h);
}

static int make_near(struct nfc_near *h, const struct nfc_near_client *client)
{
	struct nfc_far_config c;

	h->doorbell = client ? fcntl(client->doorbell, F_DUPFD_CLOEXEC, 0) :
			       eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (h->doorbell < 0 || nfc_config_check(&h->shape) ||
	    nfc_fault_install())
		return -NFC_ENOMEM;
	h->size = nfc_area_size(&h->shape);
	h->bus = client ? client->bus : NULL;
	h->area = client ? nfc_bus_area(h->bus, &h->size) : port_map(h->size);
	if (h->size < nfc_area_size(&h->shape))
		return -NFC_ETOOLARGE;
	c = end_config(&h->shape, 0, 0);
	h->pages_size = nfc_far_pages_size(&c);
	h->pages = port_map(h->pages_size);
	if (!h->area || !h->pages)
		return -NFC_ENOMEM;
	if (client && pthread_create(&h->listener, NULL, listen_near, h))
		return -NFC_ENOMEM;
	h->listens = client;
	return 0;
}

int nfc_near_new(struct nfc_mesh *m, uint32_t node, uint32_t to,
		 const struct nfc_config *shape, uint64_t owner,
		 const struct nfc_near_client *client, struct nfc_near **out)
{
	struct nfc_near *h = calloc(1, sizeof(*h));
	struct mesh_node *n = &m->node[node];
	int rc;

	if (!h)
		return -NFC_ENOMEM;
	h->node = n;
	h->to = to;
	h->owner = owner;
	h->shape = *shape;
	rc = make_near(h, client);
	pthread_mutex_lock(&n->lock);
	rc = rc ? rc : number_near(h);
	if (!rc) {
		h->next = n->nears;
		n->nears = h;
	}
	pthread_mutex_unlock(&n->lock);
	if (rc)
		drop_near(h);
	else
		*out = h;
	return rc;
}

void nfc_near_free(struct nfc_near *h)
{
	struct nfc_near **at = &h->node->nears;

	nfc_near_stop(h);
	pthread_mutex_lock(&h->node->lock);
	while (*at != h)
		at = &(*at)->next;
	*at = h->next;
	pthread_mutex_unlock(&h->node->lock);
	drop_near(h);
}

/*
 * Above each that a host of that number had, also one of a process that was this node
 * before. The node is held.
 */
static uint32_t epoch_near(struct nfc_near *h)
{
	struct timespec t;
	uint32_t now;

	if (!h->bus)
		return h->epoch + 1;
	clock_gettime(CLOCK_REALTIME, &t);
	now = (uint32_t)((uint64_t)t.tv_sec * 8 +
			 (uint64_t)t.tv_nsec / 125000000);
	h->node->far_epoch++;
	if ((int32_t)(now - h->node->far_epoch) > 0 || !h->node->far_epoch)
		h->node->far_epoch = now ? now : 1;
	return h->node->far_epoch;
}

int nfc_near_start(struct nfc_near *h)
{
	struct mesh_node *n = h->node;
	struct nfc_far_config c = end_config(
		&h->shape,
		nfc_torus_address(&n->mesh->config.node.torus, h->to), 0);

	nfc_near_stop(h);
	if ((!h->bus && madvise(h->area, h->size, MADV_DONTNEED)) ||
	    madvise(h->pages, h->pages_size, MADV_DONTNEED))
		return -NFC_ENOMEM;
	c.area = h->area;
	c.pages = h->pages;
	c.host = h->number;
	c.owner = h->owner;
	c.port = (struct nfc_far_port){ h, ring_near, reach_near };
	pthread_mutex_lock(&n->lock);
	c.epoch = h->epoch = epoch_near(h);
	nfc_far_init(&h->end, &n->node, &c);
	h->active = true;
	pthread_mutex_unlock(&n->lock);
	nfc_mesh_kick(n);
	return 0;
}

int nfc_near_ready(struct nfc_near *h)
{
	int rc = NFC_PENDING;

	pthread_mutex_lock(&h->node->lock);
	if (h->end.latched)
		rc = NFC_EFAULT;
	else if (h->end.misfit)
		rc = NFC_EABI;
	else if (h->end.ready)
		rc = 0;
	pthread_mutex_unlock(&h->node->lock);
	return rc;
}

/*
 * Let the device have what the host put before it leaves: it may have received a
 * message, or committed a transfer. The node is held, but not meanwhile.
 */
static void say_last(struct nfc_near *h)
{
	const struct timespec pause = { .tv_nsec = LAST_POLL_NS };
	struct mesh_node *n = h->node;
	uint64_t until = nfc_mesh_now(n->mesh) + LAST_NS;

	while (n->mesh->config.threads && h->active && n->running &&
	       !nfc_far_sent_all(&h->end) && nfc_mesh_now(n->mesh) < until) {
		h->end.rung = true;
		pthread_mutex_unlock(&n->lock);
		nfc_mesh_kick(n);
		nanosleep(&pause, NULL);
		pthread_mutex_lock(&n->lock);
	}
}

void nfc_near_stop(struct nfc_near *h)
{
	struct mesh_node *n = h->node;

	pthread_mutex_lock(&n->lock);
	say_last(h);
	if (h->active && n->running)
		nfc_far_leave(&h->end);
	h->active = false;
	pthread_mutex_unlock(&n->lock);
	nfc_mesh_kick(n);
}

void nfc_near_fence(struct nfc_near *h)
{
	pthread_mutex_lock(&h->node->lock);
	h->end.fenced = true;
	pthread_mutex_unlock(&h->node->lock);
}

void nfc_near_ring(struct nfc_near *h)
{
	atomic_store(&h->rung, true);
	nfc_mesh_kick(h->node);
}

void *nfc_near_area(struct nfc_near *h, uint64_t *size)
{
	*size = h->size;
	return h->area;
}

int nfc_near_doorbell(struct nfc_near *h)
{
	return h->doorbell;
}

/* ---- the device ---- */

static void ring_island(void *self, uint32_t island)
{
	struct far_seat *s = self;

	nfc_hosted_wake(s->node->device, island);
}

/* The device put something for its host. */
static void seat_rung(void *self)
{
	struct far_seat *s = self;

	atomic_store(&s->rung, true);
	nfc_mesh_kick(s->node);
}

static int seat_dma(void *self, bool write, void *memory, uint64_t bus,
		    uint64_t len)
{
	struct far_seat *s = self;
	int rc = NFC_ERESET;

	pthread_mutex_lock(&s->node->lock);
	if (s->active)
		rc = nfc_far_dma(&s->end, write, memory, bus, len);
	pthread_mutex_unlock(&s->node->lock);
	if (rc == NFC_PENDING)
		nfc_mesh_kick(s->node);
	return rc;
}

/* Have the device serve the host under its epoch. The node is held, but not meanwhile. */
static void seat_come(struct far_seat *s)
{
	struct mesh_node *n = s->node;
	uint32_t epoch = s->wanted;
	struct nfc_hosted_peer peer = { .far = &s->reach, .epoch = epoch };
	uint32_t from = nfc_torus_index(&n->mesh->config.node.torus, s->peer);
	struct nfc_far_config c = end_config(&n->shape, s->peer, epoch);
	int rc;

	if (s->owner)
		peer.joints = &s->place.calls;
	peer.no_load = !n->mesh->node[from].here; /* code is for those who own it */
	s->seated = epoch;
	s->place.device = n->device;
	s->place.owner = s->owner;
	pthread_mutex_unlock(&n->lock);
	pthread_mutex_lock(&n->seating);
	rc = nfc_hosted_attach(n->device, &peer, &s->host);
	pthread_mutex_unlock(&n->seating);
	pthread_mutex_lock(&n->lock);
	if (rc) {
		s->seated = 0; /* when it asks again */
		s->wanted = 0;
		return;
	}
	c.device = true;
	c.area = nfc_hosted_area_of(n->device, s->host);
	c.host = s->number;
	c.port = (struct nfc_far_port){ s, ring_island, NULL };
	nfc_far_init(&s->end, &n->node, &c);
	s->active = true;
	nfc_mesh_kick(n);
}

static void seat_go(struct far_seat *s)
{
	struct mesh_node *n = s->node;

	if (!s->active)
		return;
	s->active = false; /* what is asked of it from now on ends */
	pthread_mutex_unlock(&n->lock);
	for (uint32_t i = 0; i < n->shape.islands; i++)
		nfc_hosted_wake(n->device, i);
	pthread_mutex_lock(&n->seating);
	nfc_hosted_detach(n->device, s->host);
	pthread_mutex_unlock(&n->seating);
	pthread_mutex_lock(&n->lock);
}

static void *seat_run(void *arg)
{
	struct far_seat *s = arg;
	struct mesh_node *n = s->node;

	pthread_mutex_lock(&n->lock);
	while (!n->closing) {
		bool over = s->active && s->end.over;

		if (s->wanted == s->seated && !over) {
			pthread_cond_wait(&s->changed, &n->lock);
			continue;
		}
		seat_go(s);
		if (s->wanted != s->seated && !n->closing)
			seat_come(s);
	}
	seat_go(s);
	pthread_mutex_unlock(&n->lock);
	return NULL;
}

/* A host that was never here. NULL: no memory, it asks again. */
static struct far_seat *add_seat(struct mesh_node *n, uint32_t peer,
				 uint16_t number)
{
	struct far_seat *s = calloc(1, sizeof(*s));

	if (!s)
		return NULL;
	s->node = n;
	s->peer = peer;
	s->number = number;
	s->reach = (struct nfc_hosted_far){ s, seat_rung, seat_dma };
	nfc_mesh_place(&s->place, n, peer);
	pthread_cond_init(&s->changed, NULL);
	if (pthread_create(&s->thread, NULL, seat_run, s)) {
		free(s);
		return NULL;
	}
	s->next = n->seats;
	n->seats = s;
	return s;
}

/* A host shows itself: it is new, or has begun anew. */
static void host_shows(struct mesh_node *n, struct far_seat *s, uint32_t peer,
		       const struct nfc_far_head *h)
{
	if (!s && h->host < NFC_FAR_HOSTS && h->epoch)
		s = add_seat(n, peer, h->host);
	if (!s || (s->wanted && (int32_t)(h->epoch - s->wanted) <= 0))
		return;
	s->wanted = h->epoch;
	s->owner = h->owner;
	pthread_cond_signal(&s->changed);
}

/* ---- both ---- */

static struct nfc_far_head head_of(const struct nfc_fifo *f, uint32_t at)
{
	struct nfc_far_head h;

	nfc_fifo_read(f, at, (struct nfc_word *)&h,
		      NFC_FAR_HEAD / NFC_WORD_SIZE);
	return h;
}

static void to_device(struct mesh_node *n, const struct nfc_packet *p,
		      const struct nfc_fifo *f, uint32_t at)
{
	struct far_seat *s = n->seats;
	struct nfc_far_head h;

	if (!n->device || n->closing || p->size < NFC_FAR_HEAD)
		return;
	h = head_of(f, at);
	while (s && (s->peer != p->from || s->number != h.host))
		s = s->next;
	if (p->kind == NFC_FAR_OPEN)
		host_shows(n, s, p->from, &h);
	if (s && s->active)
		nfc_far_deliver(&s->end, p, f, at);
}

static void far_deliver(struct mesh_node *n, const struct nfc_packet *p,
			const struct nfc_fifo *f, uint32_t at)
{
	struct nfc_near *h = n->nears;
	uint16_t number;

	if (p->kind >= NFC_SPAN_JOIN) {
		nfc_mesh_spans_deliver(n, p, f, at);
		return;
	}
	if (p->kind >= NFC_FAR_OPEN && p->kind < NFC_FAR_AREA)
		to_device(n, p, f, at);
	if (p->kind < NFC_FAR_AREA || p->size < NFC_FAR_HEAD)
		return;
	number = head_of(f, at).host;
	while (h && !(h->active && h->number == number &&
		      h->end.config.peer == p->from))
		h = h->next;
	if (h)
		nfc_far_deliver(&h->end, p, f, at);
}

static uint64_t step_end(struct nfc_far *end, _Atomic bool *rung, uint64_t due)
{
	uint64_t at;

	if (atomic_exchange(rung, false))
		end->rung = true;
	at = nfc_far_step(end);
	return at < due ? at : due;
}

static uint64_t far_step(struct mesh_node *n)
{
	uint64_t due = UINT64_MAX, at;

	for (struct nfc_near *h = n->nears; h; h = h->next)
		if (h->active)
			due = step_end(&h->end, &h->rung, due);
	for (struct far_seat *s = n->seats; s; s = s->next) {
		if (!s->active)
			continue;
		due = step_end(&s->end, &s->rung, due);
		if (s->end.over)
			pthread_cond_signal(&s->changed);
	}
	at = nfc_mesh_spans_step(n);
	return at < due ? at : due;
}

static bool far_stirred(const struct mesh_node *n)
{
	bool any = nfc_mesh_spans_stirred(n);

	for (const struct nfc_near *h = n->nears; h; h = h->next)
		any |= h->active && h->end.stirred;
	for (const struct far_seat *s = n->seats; s; s = s->next)
		any |= s->active && s->end.stirred;
	return any;
}

static void far_free(struct mesh_node *n)
{
	nfc_mesh_places_free(n);
	while (n->nears) {
		struct nfc_near *h = n->nears;

		n->nears = h->next;
		drop_near(h);
	}
	while (n->seats) {
		struct far_seat *s = n->seats;

		n->seats = s->next;
		free(s);
	}
}

static const struct mesh_far calls = { far_deliver, far_step, far_stirred,
				       far_free };

void nfc_mesh_far(struct nfc_mesh *m)
{
	for (uint32_t i = 0; i < m->nodes; i++) {
		struct mesh_node *n = &m->node[i];

		pthread_mutex_lock(&n->lock);
		n->far = &calls;
		pthread_mutex_unlock(&n->lock);
	}
}

void nfc_mesh_serve(struct nfc_mesh *m, uint32_t node,
		    struct nfc_hosted *device, const struct nfc_config *shape)
{
	struct mesh_node *n = &m->node[node];

	pthread_mutex_lock(&n->lock);
	n->shape = *shape;
	nfc_config_check(
		&n->shape); /* the device has it: it fills in what is zero */
	n->device = device;
	pthread_mutex_unlock(&n->lock);
}

void nfc_mesh_unserve(struct nfc_mesh *m, uint32_t node)
{
	struct mesh_node *n = &m->node[node];
	struct far_seat *s;

	if (!n->device)
		return;
	pthread_mutex_lock(&n->lock);
	n->closing = true;
	for (s = n->seats; s; s = s->next)
		pthread_cond_signal(&s->changed);
	pthread_mutex_unlock(&n->lock);
	nfc_hosted_halt(n->device);
	for (s = n->seats; s; s = s->next)
		pthread_join(s->thread, NULL);
}
