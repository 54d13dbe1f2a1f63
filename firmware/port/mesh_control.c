// SPDX-License-Identifier: MIT
/* Requests to a mesh from outside of its threads. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "mesh_state.h"

bool nfc_mesh_done(struct nfc_mesh *m, uint32_t from)
{
	struct mesh_node *n = &m->node[from];
	bool done;

	pthread_mutex_lock(&n->lock);
	done = !n->left;
	pthread_mutex_unlock(&n->lock);
	return done;
}

bool nfc_mesh_send(struct nfc_mesh *m, uint32_t from,
		   const struct nfc_mesh_load *load)
{
	struct mesh_node *n = &m->node[from];
	uint64_t others = load->to == NFC_MESH_ALL ? m->nodes - 1 : 1;
	uint64_t *took = NULL;
	bool free_now;

	if (load->kind == NFC_MESH_PING &&
	    !(took = calloc(load->count, sizeof(*took))))
		return false;
	pthread_mutex_lock(&n->lock);
	free_now = !n->left && n->running;
	if (free_now) {
		uint64_t *before = n->took_ns;

		n->load = *load;
		n->left = load->count * others;
		n->pinged_ns = 0;
		n->took_ns = took;
		took = before;
	}
	pthread_mutex_unlock(&n->lock);
	free(took);
	nfc_mesh_kick(n);
	return free_now;
}

uint64_t nfc_mesh_pings(struct nfc_mesh *m, uint32_t from, uint64_t *ns,
			uint64_t count)
{
	struct mesh_node *n = &m->node[from];

	pthread_mutex_lock(&n->lock);
	if (!n->took_ns || n->left)
		count = 0;
	else if (count > n->load.count)
		count = n->load.count;
	if (count)
		memcpy(ns, n->took_ns, count * sizeof(*ns));
	pthread_mutex_unlock(&n->lock);
	return count;
}

/* A link of a node appears or disappears: its generation is another. */
static void change(struct mesh_node *n, uint32_t link, uint32_t by)
{
	if (n->other[link] == n || !n->here)
		return;
	atomic_fetch_add(&n->changes[link], by);
	nfc_mesh_kick(n);
}

/* A link that is cut stays so when it is joined, and one that is not joined when it is mended. */
static void set_away(struct mesh_node *n, uint32_t link, uint32_t why, bool away)
{
	uint32_t before, after;

	if (away) {
		before = atomic_fetch_or(&n->away[link], why);
		after = before | why;
	} else {
		before = atomic_fetch_and(&n->away[link], ~why);
		after = before & ~why;
	}
	if (!before != !after)
		change(n, link, 1);
}

void nfc_mesh_cut(struct nfc_mesh *m, uint32_t node, uint32_t link, bool cut)
{
	struct mesh_node *n = &m->node[node];

	set_away(n, link, MESH_AWAY_CUT, cut);
	set_away(n->other[link], link ^ 1, MESH_AWAY_CUT, cut);
}

void nfc_mesh_kill(struct nfc_mesh *m, uint32_t node, bool dead, bool silent)
{
	struct mesh_node *n = &m->node[node];

	if (atomic_load(&n->dead) == dead)
		return;
	atomic_store(&n->silent, silent);
	if (dead)
		atomic_store(&n->dead, true);
	/* all generations are new before the node is there again */
	for (uint32_t link = 0; link < NFC_LINKS; link++) {
		if (!silent)
			change(n->other[link], link ^ 1, 2);
		change(n, link, 2);
	}
	if (!dead)
		atomic_store(&n->dead, false);
	nfc_mesh_kick(n);
}

void nfc_mesh_break(struct nfc_mesh *m, uint32_t node, uint32_t link,
		    const struct nfc_wire_faults *faults)
{
	struct mesh_node *n = &m->node[node];

	pthread_mutex_lock(&n->lock); /* the node's step is what puts */
	nfc_wire_break(&n->wire[link], faults);
	pthread_mutex_unlock(&n->lock);
}

void nfc_mesh_test(struct nfc_mesh *m, uint32_t node, uint32_t link,
		   uint32_t bursts)
{
	struct mesh_node *n = &m->node[node];

	pthread_mutex_lock(&n->lock);
	if (n->running)
		nfc_link_test(&n->node.link[link], bursts);
	pthread_mutex_unlock(&n->lock);
	nfc_mesh_kick(n);
}

void nfc_mesh_sense(struct nfc_mesh *m, uint32_t node, uint32_t word)
{
	struct mesh_node *n = &m->node[node];

	pthread_mutex_lock(&n->lock);
	nfc_node_sense(&n->node, word);
	pthread_mutex_unlock(&n->lock);
	nfc_mesh_kick(n);
}

void nfc_mesh_host(struct nfc_mesh *m, uint32_t node)
{
	struct mesh_node *n = &m->node[node];

	pthread_mutex_lock(&n->lock);
	n->now = nfc_mesh_now(m);
	if (n->running)
		nfc_node_host(&n->node);
	pthread_mutex_unlock(&n->lock);
	nfc_mesh_kick(n);
}

void nfc_mesh_read(struct nfc_mesh *m, uint32_t node, struct nfc_mesh_state *out)
{
	struct mesh_node *n = &m->node[node];

	memset(out, 0, sizeof(*out));
	pthread_mutex_lock(&n->lock);
	out->alive = n->running;
	out->steps = n->steps;
	memcpy(out->count, n->count, sizeof(out->count));
	memcpy(out->node, n->node.count, sizeof(out->node));
	if (n->here) {
		memcpy(out->rma, n->rma->count, sizeof(out->rma));
		out->windows = n->rma->table.in_use;
		out->window_bytes = n->rma->table.bytes;
		out->hits = n->rma->table.hits;
		out->misses = n->rma->table.misses;
	}
	for (uint32_t i = 0; n->running && i < NFC_LINKS; i++) {
		const struct nfc_link_end *l = &n->node.link[i];

		out->link[i].joined = n->node.joined[i];
		out->link[i].state = l->state;
		out->link[i].level = nfc_link_level(l);
		out->link[i].window = l->tx.window;
		out->link[i].rtt_ns = l->tx.rtt_ns;
		memcpy(out->link[i].count, l->count, sizeof(l->count));
	}
	pthread_mutex_unlock(&n->lock);
}

void nfc_mesh_view(struct nfc_mesh *m, uint32_t node, uint32_t *word)
{
	struct mesh_node *n = &m->node[node];

	pthread_mutex_lock(&n->lock);
	for (uint32_t i = 0; i < m->nodes; i++)
		word[i] = n->running ? n->node.view.record[i].diagnostic : 0;
	pthread_mutex_unlock(&n->lock);
}

/* The view that a node elsewhere has if it knows what the first one here does. */
static void guess_view(struct nfc_view *v, struct nfc_mesh *m, uint32_t node,
		       void *memory)
{
	uint32_t i = 0;

	nfc_view_init(v, &m->config.node.torus, node, memory);
	while (i < m->nodes && !m->node[i].here)
		i++;
	if (i == m->nodes)
		return;
	pthread_mutex_lock(&m->node[i].lock);
	if (m->node[i].running)
		memcpy(v->record, m->node[i].node.view.record,
		       m->nodes * sizeof(*v->record));
	pthread_mutex_unlock(&m->node[i].lock);
	nfc_view_compute(v);
}

struct nfc_hop nfc_mesh_route(struct nfc_mesh *m, uint32_t node, uint32_t from,
			      uint32_t to, uint32_t from_link, uint32_t vc)
{
	struct nfc_hop hop = { NFC_NO_ROUTE, 0 };
	struct mesh_node *n = &m->node[node];
	struct nfc_view guess;
	void *memory;

	if (!n->here) {
		memory = calloc(1, nfc_view_size(&m->config.node.torus));
		if (!memory)
			return hop;
		guess_view(&guess, m, node, memory);
		hop = nfc_view_route(&guess, from, to, from_link, vc);
		free(memory);
		return hop;
	}
	pthread_mutex_lock(&n->lock);
	if (n->running)
		hop = nfc_view_route(&n->node.view, from, to, from_link, vc);
	pthread_mutex_unlock(&n->lock);
	return hop;
}

/* ---- links to nodes that are elsewhere ---- */

void nfc_mesh_join(struct nfc_mesh *m, uint32_t node, uint32_t link, bool joined)
{
	set_away(&m->node[node], link, MESH_AWAY_APART, !joined);
}

const struct nfc_word *nfc_mesh_outgoing(struct nfc_mesh *m, uint32_t node,
					 uint32_t link, uint32_t *n)
{
	nfc_wire_before_waiting();
	return nfc_wire_peek(&m->node[node].wire[link], n, nfc_mesh_now(m));
}

void nfc_mesh_sent(struct nfc_mesh *m, uint32_t node, uint32_t link, uint32_t n)
{
	struct mesh_node *from = &m->node[node];

	if (nfc_wire_release_wakes(&from->wire[link], n))
		nfc_mesh_assist(from);
}

struct nfc_word *nfc_mesh_incoming(struct nfc_mesh *m, uint32_t node,
				   uint32_t link, uint32_t *n)
{
	struct mesh_node *from = m->node[node].other[link];
	struct nfc_word *place;

	nfc_wire_before_waiting();
	pthread_mutex_lock(&from->lock); /* against nfc_mesh_break() */
	place = nfc_wire_reserve_all(&from->wire[link ^ 1], n, nfc_mesh_now(m));
	pthread_mutex_unlock(&from->lock);
	return place;
}

void nfc_mesh_received(struct nfc_mesh *m, uint32_t node, uint32_t link,
		       uint32_t n)
{
	struct mesh_node *to = &m->node[node], *from = to->other[link];

	pthread_mutex_lock(&from->lock);
	nfc_wire_commit(&from->wire[link ^ 1], n, nfc_mesh_now(m));
	pthread_mutex_unlock(&from->lock);
	if (n)
		nfc_mesh_assist(to);
}

int nfc_mesh_event(struct nfc_mesh *m, uint32_t node, uint32_t link)
{
	return m->node[node].event[link];
}
