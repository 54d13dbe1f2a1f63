// SPDX-License-Identifier: MIT
/* Windows of a mesh's nodes, and puts and gets that somebody waits for. */
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>
#include <unistd.h>

#include "../nfc_fw.h"
#include "fault.h"
#include "mesh_state.h"

_Static_assert((int)NFC_RMA_READ == (int)NFC_WINDOW_READ &&
		       (int)NFC_RMA_WRITE == (int)NFC_WINDOW_WRITE,
	       "programs and hosts name access alike");

/* Owned by the holder of its node. */
struct nfc_mesh_op {
	struct nfc_rma_op op;
	struct mesh_node *node;
	uintptr_t waiter; /* that is parked; 0: none */
	struct nfc_mesh_op *next; /* of those that ended, in the mesh's list */
};

static uint64_t wall_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_REALTIME, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

void nfc_mesh_rma_start(struct mesh_node *n)
{
	uint64_t wall = wall_ns();

	n->epoch = wall > n->epoch ? wall : n->epoch + 1;
	nfc_rma_init(n->rma, &n->node, n->peers, n->epoch,
		     n->mesh->config.ask_ns);
	n->rma->copy = nfc_fault_copy;
}

void nfc_mesh_rma_end(struct mesh_node *n)
{
	nfc_rma_cancel_all(n->rma, -NFC_ERESET);
	memset(n->rma, 0, sizeof(*n->rma));
	memset(n->peers, 0, n->mesh->nodes * sizeof(*n->peers));
}

void nfc_mesh_rma_step(struct mesh_node *n, uint64_t now)
{
	nfc_rma_step(n->rma, now);
	if (n->polled && n->poll_end <= now)
		pthread_cond_signal(&n->mesh->polled);
}

/* ---- windows ---- */

/* A key that cannot be guessed; 0: there was no random number. */
static uint64_t new_key(void)
{
	uint64_t key;

	return getrandom(&key, sizeof(key), 0) == sizeof(key) ? key : 0;
}

int nfc_mesh_add_window(struct mesh_node *n, void *memory, uint64_t size,
			uint32_t access, uint64_t *key)
{
	struct nfc_rma_table *t = &n->rma->table;
	int rc;

	if (!n->running)
		return -NFC_ERESET;
	*key = new_key();
	rc = nfc_rma_add(t, *key, size, access);
	for (uint64_t page = 0; !rc && page * NFC_RMA_PAGE < size; page++)
		nfc_rma_map(t, *key, page,
			    (uint8_t *)memory + page * NFC_RMA_PAGE);
	return rc;
}

int nfc_mesh_window(struct nfc_mesh *m, uint32_t node, void *memory,
		    uint64_t size, uint32_t access, uint64_t *key)
{
	struct mesh_node *n = &m->node[node];
	int rc;

	pthread_mutex_lock(&n->lock);
	rc = nfc_mesh_add_window(n, memory, size, access, key);
	pthread_mutex_unlock(&n->lock);
	return rc;
}

bool nfc_mesh_revoke(struct nfc_mesh *m, uint32_t node, uint64_t key)
{
	struct mesh_node *n = &m->node[node];
	bool was;

	pthread_mutex_lock(&n->lock); /* no step copies meanwhile, or later */
	was = nfc_rma_remove(&n->rma->table, key);
	pthread_mutex_unlock(&n->lock);
	return was;
}

/* ---- operations ---- */

/*
 * A parked one may be freed when it is in the list, others when the node is
 * unlocked.
 */
static void op_ended(struct nfc_rma_op *op)
{
	struct nfc_mesh_op *o = (struct nfc_mesh_op *)op, *before;
	struct mesh_node *n = o->node;

	if (n->polled == o)
		pthread_cond_signal(&n->mesh->polled);
	if (!o->waiter)
		return;
	before = atomic_load(&n->mesh->ended);
	do
		o->next = before;
	while (!atomic_compare_exchange_weak(&n->mesh->ended, &before, o));
	n->wakes |= !before;
}

void nfc_mesh_wake(struct nfc_mesh *m)
{
	uint64_t one = 1;
	ssize_t n = write(m->wakes, &one, sizeof(one));

	(void)n; /* its counter is full: it is readable */
}

/* Unlock a node in which operations may have ended. */
static void unlock_and_wake(struct mesh_node *n)
{
	bool wakes = n->wakes;

	n->wakes = false;
	pthread_mutex_unlock(&n->lock);
	if (wakes)
		nfc_mesh_wake(n->mesh);
}

struct nfc_mesh_op *nfc_mesh_begin(struct nfc_mesh *m, uint32_t node,
				   const struct nfc_rma_op *op)
{
	struct nfc_mesh_op *o = calloc(1, sizeof(*o));
	struct mesh_node *n = &m->node[node];

	if (!o)
		return NULL;
	o->op = *op;
	o->op.ended = op_ended;
	o->node = n;
	pthread_mutex_lock(&n->lock);
	if (n->running && !n->closed) {
		nfc_rma_begin(n->rma, &o->op);
	} else {
		o->op.status = n->closed ? -NFC_ESTOPPED : -NFC_ERESET;
		o->op.over = true;
	}
	pthread_mutex_unlock(&n->lock);
	nfc_mesh_kick(n);
	return o;
}

bool nfc_mesh_poll(struct nfc_mesh_op *op, uint64_t ns)
{
	struct mesh_node *n = op->node;
	struct nfc_mesh *m = n->mesh;
	bool over;

	if (atomic_exchange(&m->polls, true))
		return false;
	pthread_mutex_lock(&n->lock);
	n->polled = op;
	n->poll_end = nfc_mesh_now(m) + ns;
	while (ns && !op->op.over && nfc_mesh_now(m) < n->poll_end)
		pthread_cond_wait(&m->polled, &n->lock);
	n->polled = NULL;
	over = op->op.over;
	pthread_mutex_unlock(&n->lock);
	atomic_store(&m->polls, false);
	return over;
}

bool nfc_mesh_park(struct nfc_mesh_op *op, uintptr_t waiter)
{
	bool over;

	pthread_mutex_lock(&op->node->lock);
	over = op->op.over;
	if (!over)
		op->waiter = waiter;
	pthread_mutex_unlock(&op->node->lock);
	return !over;
}

int nfc_mesh_wakes(struct nfc_mesh *m)
{
	return m->wakes;
}

uintptr_t nfc_mesh_ended(struct nfc_mesh *m)
{
	struct nfc_mesh_op *o;

	if (!m->taken)
		m->taken = atomic_exchange(&m->ended, NULL);
	o = m->taken;
	if (!o)
		return 0;
	m->taken = o->next;
	return o->waiter;
}

void nfc_mesh_withdraw(struct nfc_mesh_op *op)
{
	struct mesh_node *n = op->node;

	pthread_mutex_lock(&n->lock);
	if (!op->op.over)
		nfc_rma_cancel(n->rma, &op->op, -NFC_EWITHDRAWN);
	unlock_and_wake(n);
	nfc_mesh_kick(n); /* others may have its place */
}

int nfc_mesh_finish(struct nfc_mesh_op *op)
{
	int status = op->op.status;

	free(op);
	return status;
}

void nfc_mesh_close_ops(struct nfc_mesh *m)
{
	for (uint32_t i = 0; i < m->nodes; i++) {
		struct mesh_node *n = &m->node[i];

		pthread_mutex_lock(&n->lock);
		n->closed = true;
		if (n->running)
			nfc_rma_cancel_all(n->rma, -NFC_ESTOPPED);
		unlock_and_wake(n);
	}
}

/* ---- lookups ---- */

enum {
	MEASURED_PAGES = 16, /* of a window */
};

static uint64_t key_of(uint64_t window)
{
	return (window + 1) * 0xd1342543de82ef95ull;
}

static uint64_t look_up(struct nfc_rma_table *t, uint32_t pages, uint64_t count)
{
	uint64_t random = 1, found = 0;

	for (uint64_t i = 0; i < count; i++) {
		uint32_t n = 64, page;
		int why;

		random = random * 6364136223846793005ull + 1442695041;
		page = (uint32_t)((random >> 32) * pages >> 32);
		found += nfc_rma_find(t, key_of(page / MEASURED_PAGES),
				      (uint64_t)page % MEASURED_PAGES *
						      NFC_RMA_PAGE +
					      8,
				      NFC_RMA_READ, &n, &why) != NULL;
	}
	return found;
}

uint64_t nfc_mesh_measure_lookups(uint32_t lookup, uint32_t pages,
				  uint64_t count, uint64_t *hits)
{
	struct nfc_rma_table *t = calloc(1, sizeof(*t));
	struct timespec a, b;
	uint8_t byte;

	if (!t)
		return 0;
	for (uint32_t i = 0; i < pages; i++) {
		uint64_t key = key_of(i / MEASURED_PAGES);

		if (i % MEASURED_PAGES == 0)
			nfc_rma_add(t, key, MEASURED_PAGES * NFC_RMA_PAGE,
				    NFC_RMA_READ);
		nfc_rma_map(t, key, i % MEASURED_PAGES, &byte);
	}
	t->lookup = lookup;
	look_up(t, pages, pages * 4ull); /* the cache knows what it can */
	t->hits = 0;
	clock_gettime(CLOCK_MONOTONIC, &a);
	if (look_up(t, pages, count) != count)
		count = 0;
	clock_gettime(CLOCK_MONOTONIC, &b);
	*hits = t->hits;
	free(t);
	if (!count)
		return 0;
	return (uint64_t)(b.tv_sec - a.tv_sec) * 1000000000 +
	       (uint64_t)b.tv_nsec - (uint64_t)a.tv_nsec;
}
