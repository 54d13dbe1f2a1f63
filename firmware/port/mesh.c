// SPDX-License-Identifier: MIT
/* Nodes on threads of this process, and the wires between them. */
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#include "fault.h"
#include "crc.h"
#include "mesh_state.h"

enum {
	ASK_NS = 10000000,
	CREDIT_NS = 5000, /* small credits wait so long for something to ride with */
	ASSISTS = 8, /* steps on another thread before the node's own wakes */
};

uint64_t nfc_mesh_now(struct nfc_mesh *m)
{
	struct timespec t;

	if (!m->config.threads)
		return m->clock;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

/* Note that a node has to be stepped. */
static void set_ready(struct mesh_node *n)
{
	struct mesh_thread *t = &n->mesh->thread[n->thread];

	atomic_fetch_or(&t->ready[n->index / 64], 1ull << n->index % 64);
}

void nfc_mesh_kick(struct mesh_node *n)
{
	struct mesh_thread *t = &n->mesh->thread[n->thread];

	set_ready(n);
	if (!n->mesh->config.threads || !atomic_load(&t->asleep))
		return;
	pthread_mutex_lock(&t->lock);
	pthread_cond_signal(&t->woken);
	pthread_mutex_unlock(&t->lock);
}

/* Pumps have much to do at once, and are woken once, when a step is over. */
static void signal_events(struct mesh_node *n, uint32_t links)
{
	uint64_t one = 1;

	for (uint32_t i = 0; links >> i; i++)
		if (links >> i & 1 && write(n->event[i], &one, sizeof(one)) < 0)
			continue; /* its counter is full: it is readable */
}

/* ---- what nodes call ---- */

/* The time for a wire, which most have no use for. */
static uint64_t wire_now(struct mesh_node *n, struct nfc_wire *w)
{
	return nfc_wire_dated(w) ? nfc_mesh_now(n->mesh) : 0;
}

static struct nfc_word *mesh_reserve(void *self, uint32_t link, uint32_t *words)
{
	struct mesh_node *n = self;

	return nfc_wire_reserve(&n->wire[link], words,
				wire_now(n, &n->wire[link]));
}

static void mesh_commit(void *self, uint32_t link, uint32_t words)
{
	struct mesh_node *n = self, *to = n->other[link];

	if (!to->here) {
		if (nfc_wire_commit_wakes(&n->wire[link], words,
					  wire_now(n, &n->wire[link])))
			n->signals |= 1u << link;
		return;
	}
	nfc_wire_commit(&n->wire[link], words, wire_now(n, &n->wire[link]));
	if (to->thread == n->thread)
		set_ready(to); /* its thread is the one that runs this */
	else
		nfc_mesh_kick(to);
}

static const struct nfc_word *mesh_peek(void *self, uint32_t link,
					uint32_t *words)
{
	struct mesh_node *n = self, *from = n->other[link];
	struct nfc_wire *w = &from->wire[link ^ 1];

	return nfc_wire_peek(w, words, wire_now(n, w));
}

static void mesh_release(void *self, uint32_t link, uint32_t words)
{
	struct mesh_node *n = self, *from = n->other[link];
	struct nfc_wire *w = &from->wire[link ^ 1];

	if (from->here)
		nfc_wire_release(w, words);
	else if (nfc_wire_release_wakes(w, words))
		n->signals |= 1u << link;
}

static uint32_t mesh_generation(void *self, uint32_t link)
{
	struct mesh_node *n = self, *to = n->other[link];
	uint32_t changes = atomic_load(&n->changes[link]);

	if (to->here && atomic_load(&to->dead) && !atomic_load(&to->silent))
		return 0;
	return changes & 1 ? changes : 0;
}

/* The other end reads memory of this process: docs/design/0091. */
static bool mesh_shares(void *self, uint32_t link)
{
	struct mesh_node *n = self;

	return n->other[link]->here && nfc_wire_plain(&n->wire[link]);
}

static const struct nfc_word *mesh_shared(void *self, uint32_t link,
					  uint32_t *words)
{
	struct mesh_node *n = self, *from = n->other[link];

	*words = n->mesh->config.node.link.buffer;
	return from->buffer[link ^ 1];
}

static uint64_t mesh_clock(void *self)
{
	return ((struct mesh_node *)self)->now;
}

/* ---- steps ---- */

static void mesh_offer(void *self)
{
	struct mesh_node *n = self;

	nfc_mesh_rma_step(n, n->now);
	n->far_due = n->far ? n->far->step(n) : UINT64_MAX;
	n->more = nfc_mesh_send_load(n);
}

static void make_node(struct mesh_node *n)
{
	struct nfc_mesh *m = n->mesh;
	struct nfc_node_config c = m->config.node;
	struct nfc_node_port port = { n, nfc_mesh_deliver, mesh_offer };

	c.address = nfc_torus_address(&c.torus, n->index);
	n->now = nfc_mesh_now(m);
	/* neighbours may still read what the node shared before it died: nothing is cleared */
	nfc_node_init(&n->node, &c, &n->port, &port, n->memory);
	n->left = n->pinged_ns = 0;
	n->pinged = n->ponged = 0;
	nfc_mesh_rma_start(n);
	n->running = true;
}

/* Wires that take time: when words arrive, and when there is room for more. */
static uint64_t wires_due(struct mesh_node *n, uint64_t due)
{
	const struct nfc_wire_config *c = &n->mesh->config.wire;
	uint64_t now;

	if (!c->delay_ns && !c->word_ps)
		return due;
	now = nfc_mesh_now(n->mesh);
	for (uint32_t i = 0; i < NFC_LINKS; i++) {
		struct mesh_node *other = n->other[i];
		uint64_t at;

		if (other == n)
			continue;
		at = nfc_wire_due(&other->wire[i ^ 1]);
		if (at < due)
			due = at;
		at = nfc_wire_again(&n->wire[i], now);
		if (at < due)
			due = at;
	}
	return due;
}

/* Step a node that is locked, and unlock it; true if a packet moved. */
static bool step_locked(struct mesh_node *n, uint64_t now)
{
	const struct nfc_node *node = &n->node;
	uint64_t moved, due = UINT64_MAX;
	bool more = false, wakes;
	uint32_t signals;

	moved = node->moves + node->count[NFC_NODE_SENT];
	n->now = now;
	n->steps++;
	if (atomic_load(&n->dead)) {
		if (n->running)
			nfc_mesh_rma_end(n);
		n->running = false;
	} else {
		if (!n->running)
			make_node(n);
		n->rma->now = now;
		due = nfc_node_step(&n->node);
		if (n->rma->due < due)
			due = n->rma->due;
		if (n->far_due < due)
			due = n->far_due;
		more = n->more || (n->far && n->far->stirred(n));
		/* packets to the node itself were delivered within that step */
		more |= nfc_rma_stirred(n->rma);
	}
	due = wires_due(n, due);
	/* a store that all see at once would wait for those of the step */
	atomic_store_explicit(&n->due, due, memory_order_release);
	if (more || due <= now)
		set_ready(n);
	moved -= node->moves + node->count[NFC_NODE_SENT];
	signals = n->signals;
	n->signals = 0;
	wakes = n->wakes;
	n->wakes = false;
	pthread_mutex_unlock(&n->lock);
	signal_events(n, signals);
	if (wakes)
		nfc_mesh_wake(n->mesh);
	return moved != 0;
}

static bool step_node(struct mesh_node *n, uint64_t now)
{
	pthread_mutex_lock(&n->lock);
	return step_locked(n, now);
}

static bool any_ready(struct mesh_thread *t)
{
	for (uint32_t i = t->first / 64; 64 * i < t->last; i++)
		if (atomic_load(&t->ready[i]))
			return true;
	return atomic_load(&t->mesh->halt);
}

void nfc_mesh_assist(struct mesh_node *n)
{
	struct mesh_thread *t = &n->mesh->thread[n->thread];
	uint64_t bit = 1ull << n->index % 64;

	set_ready(n);
	if (!n->mesh->config.threads)
		return;
	for (int i = 0; i < ASSISTS && atomic_load(&t->asleep); i++) {
		if (pthread_mutex_trylock(&n->lock))
			break;
		atomic_fetch_and(&t->ready[n->index / 64], ~bit);
		step_locked(n, nfc_mesh_now(n->mesh));
		/* others may be ready by this step, which that thread knows nothing of */
		if (!any_ready(t) && n->due >= atomic_load(&t->until) &&
		    atomic_load(&t->asleep))
			return;
	}
	nfc_mesh_kick(n);
}

/* Nodes for which it is time are ready, and when the next one is, is known. */
static void see_to_time(struct mesh_thread *t, uint64_t now)
{
	t->due = UINT64_MAX;
	for (uint32_t i = t->first; i < t->last; i++) {
		struct mesh_node *n = &t->mesh->node[i];

		if (n->here && n->due <= now)
			set_ready(n);
		else if (n->here && n->due < t->due)
			t->due = n->due;
	}
}

/* Each node of a thread that has something to do, once. */
static void step_all(struct mesh_thread *t, uint64_t now)
{
	if (t->due <= now)
		see_to_time(t, now);
	for (uint32_t i = t->first / 64; 64 * i < t->last; i++) {
		uint64_t left = ~0ull, ready;

		/* what becomes ready behind has its turn in the next pass */
		while ((ready = atomic_load(&t->ready[i]) & left)) {
			uint32_t bit = (uint32_t)__builtin_ctzll(ready);
			struct mesh_node *n = &t->mesh->node[64 * i + bit];

			left = bit == 63 ? 0 : ~0ull << (bit + 1);
			atomic_fetch_and(&t->ready[i], ~(1ull << bit));
			if (step_node(n, now))
				t->busy_ns = now;
			if (n->due < t->due)
				t->due = n->due;
		}
	}
}

static void sleep_until_due(struct mesh_thread *t)
{
	struct timespec at = { .tv_sec = (time_t)(t->due / 1000000000),
			       .tv_nsec = (long)(t->due % 1000000000) };

	pthread_mutex_lock(&t->lock);
	atomic_store(&t->until, t->due);
	atomic_store(&t->asleep, true);
	if (!any_ready(t)) {
		if (t->due == UINT64_MAX)
			pthread_cond_wait(&t->woken, &t->lock);
		else
			pthread_cond_timedwait(&t->woken, &t->lock, &at);
	}
	atomic_store(&t->asleep, false);
	pthread_mutex_unlock(&t->lock);
}

/* A thread spins for a while after packets; heartbeats alone are not worth it. */
static void *run_thread(void *arg)
{
	struct mesh_thread *t = arg;
	struct nfc_mesh *m = t->mesh;

	while (!atomic_load(&m->halt)) {
		uint64_t now = nfc_mesh_now(m);

		step_all(t, now);
		if (!any_ready(t) && t->due > now &&
		    now - t->busy_ns >= m->config.spin_ns)
			sleep_until_due(t);
	}
	return NULL;
}

void nfc_mesh_step(struct nfc_mesh *m, uint64_t ns, uint64_t step_ns)
{
	for (uint64_t end = m->clock + ns; m->clock < end; m->clock += step_ns)
		step_all(&m->thread[0], m->clock);
}

/* ---- a mesh ---- */

static bool init_node(struct nfc_mesh *m, uint32_t i, bool here)
{
	struct mesh_node *n = &m->node[i];

	n->mesh = m;
	n->index = i;
	n->here = here;
	n->port = (struct nfc_link_port){
		n,	     mesh_reserve,    mesh_commit,
		mesh_peek,   mesh_release,    mesh_generation,
		mesh_clock,  nfc_port_crc(0), nfc_port_copy(0),
		mesh_shares, mesh_shared
	};
	pthread_mutex_init(&n->lock, NULL);
	pthread_mutex_init(&n->seating, NULL);
	n->memory = here ? nfc_port_lines(nfc_node_size(&m->config.node),
					  &n->whole) :
			   NULL;
	n->pair = calloc(m->nodes, sizeof(*n->pair));
	n->rma = here ? calloc(1, sizeof(*n->rma)) : NULL;
	n->peers = here ? calloc(m->nodes, sizeof(*n->peers)) : NULL;
	if (!n->pair || (here && (!n->memory || !n->rma || !n->peers)))
		return false;
	for (uint32_t link = 0; link < NFC_LINKS; link++) {
		uint32_t to = nfc_torus_neighbour(&m->config.node.torus, i,
						  link);

		n->event[link] = -1;
		n->other[link] = &m->node[to];
		if (to != i && !nfc_wire_init(&n->wire[link], &m->config.wire))
			return false;
	}
	return true;
}

/* Nodes of this process, and links between them, are there from the start. */
static bool begin_nodes(struct nfc_mesh *m)
{
	for (uint32_t i = 0; i < m->nodes; i++) {
		struct mesh_node *n = &m->node[i];

		if (n->here)
			make_node(n);
		for (uint32_t link = 0; n->here && link < NFC_LINKS; link++)
			n->buffer[link] = n->node.link[link].tx.buffer.word;
		for (uint32_t link = 0; n->here && link < NFC_LINKS; link++) {
			if (n->other[link] == n)
				continue;
			if (n->other[link]->here) {
				atomic_store(&n->changes[link], 1);
				continue;
			}
			atomic_store(&n->away[link], MESH_AWAY_APART);
			n->event[link] = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
			if (n->event[link] < 0)
				return false;
		}
	}
	return true;
}

/* Each thread has nodes that follow each other; without any, the first has all. */
static void share_nodes(struct nfc_mesh *m)
{
	uint64_t threads = m->config.threads ? m->config.threads : 1;

	for (uint32_t i = 0; i < m->nodes; i++) {
		uint32_t thread = (uint32_t)(i * threads / m->nodes);
		struct mesh_thread *t = &m->thread[thread];

		if (!t->mesh)
			t->first = i;
		t->mesh = m;
		t->last = i + 1;
		m->node[i].thread = thread;
	}
}

static bool start_threads(struct nfc_mesh *m)
{
	for (uint32_t i = 0; i < m->config.threads; i++) {
		struct mesh_thread *t = &m->thread[i];
		pthread_condattr_t attr;

		t->mesh = m;
		pthread_mutex_init(&t->lock, NULL);
		pthread_condattr_init(&attr);
		pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
		pthread_cond_init(&t->woken, &attr);
		pthread_condattr_destroy(&attr);
		if (pthread_create(&t->id, NULL, run_thread, t))
			return false;
		t->started = true;
	}
	return true;
}

static bool check(struct nfc_mesh_config *c)
{
	c->node.address = 0;
	if (!c->node.link.credit_ns)
		c->node.link.credit_ns = CREDIT_NS;
	if (!c->ask_ns)
		c->ask_ns = ASK_NS;
	if (!c->wire.words)
		c->wire.words = 4096;
	if (!c->wire.slack)
		c->wire.slack = c->wire.words / 4;
	return !nfc_node_check(&c->node) &&
	       nfc_torus_nodes(&c->node.torus) <= NFC_MESH_NODES_MAX &&
	       c->threads <= NFC_MESH_THREADS_MAX &&
	       !(c->wire.words & (c->wire.words - 1)) && c->wire.words >= 64 &&
	       c->wire.words <= 1 << 20;
}

struct nfc_mesh *nfc_mesh_new(const struct nfc_mesh_config *config,
			      const uint8_t *here)
{
	void *whole;
	struct nfc_mesh *m = nfc_port_lines(sizeof(*m), &whole);
	bool ok;

	if (!m)
		return NULL;
	m->whole = whole;
	m->config = *config;
	m->clock = 1000000000;
	if (!check(&m->config)) {
		free(whole);
		return NULL;
	}
	pthread_cond_init(&m->polled, NULL);
	m->wakes = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	m->nodes = nfc_torus_nodes(&m->config.node.torus);
	m->node = nfc_port_lines(m->nodes * sizeof(*m->node), &m->whole_nodes);
	ok = m->node && m->wakes >= 0 && !nfc_fault_install();
	for (uint32_t i = 0; ok && i < m->nodes; i++)
		ok = init_node(m, i, !here || here[i]);
	if (ok)
		share_nodes(m);
	if (ok && begin_nodes(m) && start_threads(m))
		return m;
	nfc_mesh_free(m);
	return NULL;
}

void nfc_mesh_free(struct nfc_mesh *m)
{
	atomic_store(&m->halt, true);
	for (uint32_t i = 0; i < m->config.threads; i++) {
		struct mesh_thread *t = &m->thread[i];

		if (!t->started)
			continue;
		pthread_mutex_lock(&t->lock);
		pthread_cond_signal(&t->woken);
		pthread_mutex_unlock(&t->lock);
		pthread_join(t->id, NULL);
	}
	for (uint32_t i = 0; m->node && i < m->nodes; i++) {
		struct mesh_node *n = &m->node[i];

		for (uint32_t link = 0; n->mesh && link < NFC_LINKS; link++) {
			nfc_wire_free(&n->wire[link]);
			if (n->event[link] > 0)
				close(n->event[link]);
		}
		if (n->far)
			n->far->free(n);
		free(n->whole);
		free(n->pair);
		free(n->rma);
		free(n->peers);
		free(n->took_ns);
	}
	if (m->wakes >= 0)
		close(m->wakes);
	free(m->whole_nodes);
	free(m->whole);
}
