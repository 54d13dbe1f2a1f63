// SPDX-License-Identifier: MIT
/*
 * Channels between processes of two nodes: where the spans of firmware/link/span.h meet
 * the devices of this process.
 */
#include <stdlib.h>
#include <time.h>

#include "epoch.h"
#include "mesh_span.h"

/* An end here. */
struct mesh_span {
	struct nfc_span end;
	struct mesh_span *next; /* of the node's */
	struct mesh_place *place;
	uint32_t index; /* of its joint */
};

/* ---- spans of a node ---- */

static void wake_island(void *self, uint32_t island)
{
	struct mesh_place *at = self;

	nfc_hosted_wake(at->device, island);
}

/* NULL: no memory. */
static struct mesh_span *add_span(struct mesh_place *at, uint32_t index,
				  struct nfc_span_config *c)
{
	struct mesh_span *s = calloc(1, sizeof(*s));
	struct mesh_node *n = at->node;

	if (!s)
		return NULL;
	c->port = (struct nfc_far_port){ at, wake_island, NULL };
	c->islands = at->device->config.islands;
	s->place = at;
	s->index = index;
	nfc_span_init(&s->end, &n->node, c);
	s->next = n->spans;
	n->spans = s;
	at->span[index] = s;
	return s;
}

/* Remove an end that is over, or whose place is given up. */
static void drop_span(struct mesh_span *s)
{
	struct mesh_place *at = s->place;
	struct mesh_span **link = &at->node->spans;
	uint32_t i = at->ends % MESH_ENDED;

	while (*link != s)
		link = &(*link)->next;
	*link = s->next;
	at->span[s->index] = NULL;
	if (s->end.line.host && s->end.state != NFC_SPAN_ASKED) {
		at->ended[i].peer = s->end.line.peer;
		at->ended[i].number = s->end.line.epoch;
		at->ends++;
	}
	if (at->node->running)
		nfc_span_leave(&s->end);
	nfc_joint_drop(s->end.joint);
	free(s);
}

/*
 * A place is served from the attachment of its host until the host is about to
 * be detached.
 */
static void enter_place(struct mesh_place *at, struct nfc_device *core,
			uint32_t host)
{
	struct mesh_node *n = at->node;

	at->core = core;
	at->host = host;
	at->active = true;
	at->next = n->places;
	n->places = at;
}

static void drop_window(struct mesh_place *at, uint64_t *window)
{
	if (*window)
		nfc_rma_remove(&at->node->rma->table, *window);
	*window = 0;
}

/* End all that leads there; nothing reaches its device any more. */
static void leave_place(struct mesh_place *at)
{
	struct mesh_place **link = &at->node->places;

	if (!at->active)
		return;
	while (*link != at)
		link = &(*link)->next;
	*link = at->next;
	at->active = false;
	for (uint32_t i = 0; i < NFC_JOINTS; i++)
		if (at->span[i])
			drop_span(at->span[i]);
	for (uint32_t i = 0; i < NFC_HOST_WINDOWS; i++)
		drop_window(at, &at->window[i]);
	nfc_mesh_kick(at->node); /* the other ends are notified */
}

static void place_serve(void *self, struct nfc_device *core, uint32_t host)
{
	struct mesh_place *at = self;

	pthread_mutex_lock(&at->node->lock);
	if (core)
		enter_place(at, core, host);
	else
		leave_place(at);
	pthread_mutex_unlock(&at->node->lock);
}

uint64_t nfc_mesh_spans_step(struct mesh_node *n)
{
	uint64_t due = UINT64_MAX, at;
	struct mesh_span *s, *next;

	for (s = n->spans; s; s = next) {
		uint64_t bit = 1ull << s->index;

		next = s->next;
		if (atomic_load(&s->place->rung) & bit) {
			atomic_fetch_and(&s->place->rung, ~bit);
			s->end.rung = true;
		}
		at = nfc_span_step(&s->end);
		due = at < due ? at : due;
		if (s->end.state == NFC_SPAN_OVER)
			drop_span(s);
	}
	return due;
}

bool nfc_mesh_spans_stirred(const struct mesh_node *n)
{
	const struct mesh_span *s = n->spans;

	while (s && !s->end.stirred)
		s = s->next;
	return s;
}

/* ---- received packets ---- */

static struct mesh_span *find_span(struct mesh_node *n, uint32_t peer,
				   const struct nfc_far_head *h)
{
	struct mesh_span *s = n->spans;

	while (s && (s->end.line.epoch != h->epoch ||
		     s->end.line.peer != peer || s->end.line.host == h->host))
		s = s->next;
	return s;
}

static bool has_ended(const struct mesh_place *at, uint32_t peer,
		      uint32_t number)
{
	uint32_t n = at->ends < MESH_ENDED ? at->ends : MESH_ENDED;

	for (uint32_t i = 0; i < n; i++)
		if (at->ended[i].peer == peer && at->ended[i].number == number)
			return true;
	return false;
}

/*
 * A process elsewhere asks for a target of a place: of its own host, or for one that listens
 * there. 0 or a negated status.
 */
static int ask_place(struct mesh_place *at, const struct nfc_span_ask *ask,
		     struct nfc_span_config *c)
{
	bool own = at->home == ask->home && at->owner == ask->owner;
	struct nfc_far_guest guest = {
		.from = { ask->owner, ask->home },
		.to = { at->owner, at->home },
		.node = c->peer,
		.target = ask->target,
	};
	uint32_t index;
	int rc = -NFC_ENOTARGET;

	if (has_ended(at, c->peer, c->number))
		return 0;
	if (own)
		rc = nfc_joint_ask(at->core, at->host, ask->target, &c->joint,
				   &index);
	if (rc == -NFC_ENOTARGET)
		rc = nfc_far_guest_ask(at->core, at->host, &guest, &c->joint,
				       &index);
	if (rc || add_span(at, index, c))
		return rc;
	nfc_joint_lost(c->joint);
	nfc_joint_drop(c->joint);
	return -NFC_ENOMEM;
}

/* 0 or enum nfc_status. */
static int join_received(struct mesh_node *n, const struct nfc_packet *p,
			 uint32_t number, const struct nfc_span_ask *ask)
{
	struct nfc_span_config c = { .peer = p->from, .number = number };
	int rc = -NFC_ENOTARGET;

	for (struct mesh_place *at = n->places; at && rc == -NFC_ENOTARGET;
	     at = at->next)
		rc = ask_place(at, ask, &c);
	return -rc;
}

void nfc_mesh_spans_deliver(struct mesh_node *n, const struct nfc_packet *p,
			    const struct nfc_fifo *f, uint32_t at)
{
	uint32_t words = NFC_FAR_HEAD / NFC_WORD_SIZE;
	struct nfc_span_ask ask;
	struct nfc_far_head h;
	struct mesh_span *s;
	int rc;

	if (p->size < NFC_FAR_HEAD)
		return;
	nfc_fifo_read(f, at, (struct nfc_word *)&h, words);
	s = find_span(n, p->from, &h);
	if (s) {
		nfc_span_deliver(&s->end, p, f, at);
		return;
	}
	if (p->kind != NFC_SPAN_JOIN) {
		if (p->kind != NFC_SPAN_GONE)
			nfc_span_refuse(&n->node, p, &h, 0);
		return;
	}
	if (p->size != NFC_FAR_HEAD + sizeof(ask) || h.host)
		return;
	nfc_fifo_read(f, at + words, (struct nfc_word *)&ask,
		      sizeof(ask) / NFC_WORD_SIZE);
	rc = join_received(n, p, h.epoch, &ask);
	if (rc)
		nfc_span_refuse(&n->node, p, &h, (uint32_t)rc);
}

/* ---- what the device asks for ---- */

/* Above each that was given here before, also by a process that was this node. */
static uint32_t next_number(struct mesh_node *n)
{
	struct timespec t;

	if (!n->span_number) {
		clock_gettime(CLOCK_REALTIME, &t);
		n->span_number = (uint32_t)((uint64_t)t.tv_sec * 64);
	}
	return ++n->span_number;
}

static int place_locate(void *self, uint64_t id)
{
	struct mesh_place *at = self;
	uint32_t node = (uint32_t)nfc_id_node(id);
	const struct nfc_torus *torus = &at->node->mesh->config.node.torus;

	if (nfc_torus_index(torus, node) == NFC_NODES_MAX)
		return -NFC_EINVAL;
	return node == nfc_torus_address(torus, at->node->index) ? 0 :
								   NFC_PENDING;
}

static int place_join(void *self, struct nfc_joint *joint, uint32_t index,
		      uint64_t id)
{
	struct mesh_place *at = self;
	struct mesh_node *n = at->node;
	struct nfc_span_ask ask = {
		.owner = at->owner,
		.home = at->home,
		.target = (uint32_t)id,
	};
	struct nfc_span_config c = {
		.joint = joint,
		.peer = (uint32_t)nfc_id_node(id),
		.ask = &ask,
	};
	int rc = -NFC_ECLOSED;

	pthread_mutex_lock(&n->lock);
	c.number = next_number(n);
	if (at->active)
		rc = add_span(at, index, &c) ? 0 : -NFC_ENOMEM;
	pthread_mutex_unlock(&n->lock);
	nfc_mesh_kick(n);
	return rc;
}

static void place_carry(void *self, uint32_t index)
{
	struct mesh_place *at = self;

	atomic_fetch_or(&at->rung, 1ull << index);
	nfc_mesh_kick(at->node);
}

static void place_whose(void *self, struct nfc_whose *out)
{
	struct mesh_place *at = self;

	pthread_mutex_lock(&at->node->lock);
	*out = (struct nfc_whose){ at->owner, at->home };
	pthread_mutex_unlock(&at->node->lock);
}

static int place_fetch(void *self, uint32_t index, void *to, uint64_t at,
		       uint64_t len)
{
	struct mesh_place *place = self;
	int rc = NFC_EABORTED;

	pthread_mutex_lock(&place->node->lock);
	if (!place->active)
		rc = NFC_ERESET;
	else if (place->span[index])
		rc = nfc_span_fetch(&place->span[index]->end, to, at, len);
	pthread_mutex_unlock(&place->node->lock);
	if (rc == NFC_PENDING)
		nfc_mesh_kick(place->node);
	return rc;
}

/* Where a place keeps that key; NULL: nowhere. */
static uint64_t *find_window(struct mesh_place *at, uint64_t key)
{
	for (uint32_t i = 0; i < NFC_HOST_WINDOWS; i++)
		if (at->window[i] == key)
			return &at->window[i];
	return NULL;
}

static int place_window(void *self, void *memory, uint64_t size,
			uint32_t access, uint64_t *key)
{
	struct mesh_place *at = self;
	uint64_t *window;
	int rc = -NFC_ECLOSED;

	pthread_mutex_lock(&at->node->lock);
	window = find_window(at, 0);
	if (at->active)
		rc = window ? nfc_mesh_add_window(at->node, memory, size,
						  access, key) :
			      -NFC_ENOMEM;
	if (!rc)
		*window = *key;
	pthread_mutex_unlock(&at->node->lock);
	return rc;
}

static void place_revoke(void *self, uint64_t key)
{
	struct mesh_place *at = self;
	uint64_t *window;

	pthread_mutex_lock(
		&at->node->lock); /* no step copies meanwhile, or later */
	window = find_window(at, key);
	if (window)
		drop_window(at, window);
	pthread_mutex_unlock(&at->node->lock);
}

void nfc_mesh_place(struct mesh_place *at, struct mesh_node *n, uint32_t home)
{
	at->node = n;
	at->home = home;
	at->calls = (struct nfc_hosted_joints){ at,	      place_locate,
						place_join,   place_carry,
						place_fetch,  place_whose,
						place_window, place_revoke,
						place_serve };
}

/* ---- hosts that are at the node of their device ---- */

const struct nfc_hosted_joints *nfc_mesh_joints(struct nfc_mesh *m,
						uint32_t node,
						struct nfc_hosted *device,
						uint64_t owner)
{
	struct mesh_node *n = &m->node[node];
	struct mesh_place *at;

	pthread_mutex_lock(&n->lock);
	for (at = n->own; at && at->taken; at = at->sibling)
		;
	if (!at) {
		at = calloc(1, sizeof(*at));
		if (at) {
			at->sibling = n->own;
			n->own = at;
		}
	}
	if (at) {
		nfc_mesh_place(at, n,
			       nfc_torus_address(&m->config.node.torus, node));
		at->device = device;
		at->owner = owner;
		at->taken = true;
	}
	pthread_mutex_unlock(&n->lock);
	return at ? &at->calls : NULL;
}

void nfc_mesh_disjoin(const struct nfc_hosted_joints *joints)
{
	struct mesh_place *at = joints->self;

	pthread_mutex_lock(&at->node->lock);
	at->taken = false;
	pthread_mutex_unlock(&at->node->lock);
}

void nfc_mesh_places_free(struct mesh_node *n)
{
	while (n->own) {
		struct mesh_place *at = n->own;

		n->own = at->sibling;
		free(at);
	}
}
