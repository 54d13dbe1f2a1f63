// SPDX-License-Identifier: MIT
/*
 * Processes that open channels to a host that listens, their own or another, in
 * a device with all its threads, under the thread sanitizer. They connect,
 * send, receive, close and end while the host accepts, answers, closes and
 * detaches.
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>

#include "../port/epoch.h"
#include "stage.h"
#include "visitor.h"

enum {
	ROUNDS = 3,
	GUESTS = 6, /* processes, two on each island */
	SOME = 12, /* visits, and something else happens */
	BOTH = 1 << NFC_H2D | 1 << NFC_D2H,
};

/* How a round ends. */
enum ending {
	THEY_LEAVE, /* the processes, by themselves */
	THEY_ARE_STOPPED,
	NOBODY_LISTENS, /* any more */
	LISTENER_GOES, /* the host that listens */
	OWNER_GOES, /* the host of the processes */
	ENDINGS,
};

/* A transfer, and its host's memory. */
struct way {
	uint64_t id, sent; /* lists */
	uint8_t memory[VISITOR_BYTES];
};

/* A channel to a process that connected. */
struct visitor {
	bool open;
	bool silent; /* what it offers is not taken */
	uint8_t number; /* in each byte that it is given */
	uint8_t own; /* in each that is its own; 0: none yet */
	uint32_t patience; /* passes until the host closes */
	uint32_t closed; /* halves, by the host */
	struct way way[2];
};

/* A host: it listens, or it has the processes, or both. */
struct party {
	struct stage s;
	uint32_t seat;
	uint32_t listener; /* its target, 0: it does not listen */
	uint64_t listens, id; /* its process, and what others connect to */
	uint32_t accepted, open; /* visitors */
	struct visitor visitor[CHANNELS];
	uint64_t guest[CHANNELS]; /* processes, by their target */
	uint32_t guests; /* that run */
};

static const struct shape shape = { .islands = 3, .managers = 3, .engines = 1 };

static struct {
	struct nfc_hosted *h;
	pthread_mutex_t seating; /* one attaches or detaches at a time */
	uint32_t epochs;
	enum ending ending;
	_Atomic uint64_t id; /* of the listener; 0: there is none yet */
	_Atomic bool enough; /* visits */
	_Atomic bool over; /* the processes' part of a round */
	struct party near, far;
} w;

/* ---- hosts that attach and detach ---- */

static void ring(struct stage *s)
{
	for (uint32_t i = 0; i < shape.islands; i++)
		nfc_hosted_wake(s->h, i);
}

static void not_rung(void *self)
{
	(void)self;
}

static int dma(void *self, bool write, void *memory, uint64_t bus, uint64_t len)
{
	void *there = (void *)(uintptr_t)bus;

	(void)self;
	memcpy(write ? there : memory, write ? memory : there, len);
	return 0;
}

static const struct nfc_hosted_far reach = { NULL, not_rung, dma };

/* An island that has no processor for long refuses a host, which may try again. */
static void come(struct party *p)
{
	struct nfc_hosted_peer peer = { .far = &reach };
	int rc;

	pthread_mutex_lock(&w.seating);
	do {
		peer.epoch = p->s.r.seat.epoch = ++w.epochs;
		rc = nfc_hosted_attach(w.h, &peer, &p->seat);
	} while (rc == -NFC_ETIMEOUT);
	CHECK_EQ(rc, 0);
	pthread_mutex_unlock(&w.seating);
	p->s.h = w.h;
	p->s.ring = ring;
	p->s.shape = &shape;
	p->s.r.config = stage_config(&shape);
	stage_meet(&p->s, nfc_hosted_area_of(w.h, p->seat));
}

/* From here on the memory is its own. */
static void leave(struct party *p)
{
	pthread_mutex_lock(&w.seating);
	nfc_hosted_detach(w.h, p->seat);
	pthread_mutex_unlock(&w.seating);
	free(p->s.r.received);
	memset(p, 0, sizeof(*p));
}

/* ---- a host and its visitors ---- */

static void say(struct party *p, uint32_t at)
{
	struct visitor *v = &p->visitor[at];

	if (!(v->closed & 1 << NFC_H2D))
		host_direct(&p->s.r, at, &v->number, 1);
}

static void feed(struct party *p, uint32_t at, enum nfc_direction d,
		 uint64_t taken)
{
	struct visitor *v = &p->visitor[at];
	struct way *way = &v->way[d];
	uint64_t to = taken + p->s.r.config.window;

	if (v->closed & 1 << d)
		return;
	host_send_lists(&p->s.r, at, d, way->id, way->memory, VISITOR_BYTES,
			way->sent, to);
	if (way->sent < to)
		way->sent = to;
}

static void give(struct party *p, uint32_t at)
{
	struct way *way = &p->visitor[at].way[NFC_H2D];

	memset(way->memory, p->visitor[at].number, VISITOR_BYTES);
	way->id = host_begin(&p->s.r, at, VISITOR_BYTES, 0);
	way->sent = 1;
	host_send_lists(&p->s.r, at, NFC_H2D, way->id, way->memory,
			VISITOR_BYTES, 0, 1);
}

static void ask(struct party *p, uint32_t at)
{
	host_note(&p->s.r, at, NFC_TYPE_OFFER, NFC_H2D,
		  p->s.side[at].next[NFC_H2D]);
}

static void close_halves(struct party *p, uint32_t at, uint32_t halves)
{
	struct visitor *v = &p->visitor[at];

	halves &= ~v->closed;
	if (!v->open || !halves)
		return;
	v->closed |= halves;
	host_close(&p->s.r, at, halves);
}

/* All bytes from it are its own, or all are those that it was given. */
static void check(struct visitor *v, const uint8_t *data, uint64_t size)
{
	if (!v->own && data[0] & VISITOR_OWN)
		v->own = data[0];
	CHECK_EQ(data[0], data[0] & VISITOR_OWN ? v->own : v->number);
	for (uint64_t i = 1; i < size; i++)
		if (!CHECK_EQ(data[i], data[0]))
			break;
}

static void react(struct party *p, uint32_t at, const struct nfc_slot *slot);

static void receive(struct party *p, uint32_t at)
{
	struct nfc_slot slot;

	while (host_take(&p->s.r, at, &slot))
		react(p, at, &slot);
}

static void accept_one(struct party *p, const struct nfc_slot *slot)
{
	uint32_t at = (uint32_t)slot->payload[0] & ~(uint32_t)NFC_ACCEPT_PROCESS;
	uint64_t id = p->s.side[p->listener].next[NFC_D2H]++;
	uint32_t number = p->accepted++;
	struct visitor *v = &p->visitor[at % CHANNELS];

	CHECK(slot->payload[0] & NFC_ACCEPT_PROCESS);
	host_reply(&p->s.r, p->listener, NFC_TYPE_ACK, NFC_D2H, id,
		   NFC_STATE_CONSUMED, 0, 0);
	REQUIRE(at < CHANNELS);
	stage_look(&p->s);
	receive(p, at); /* it may be of the one before */
	REQUIRE(!stage_open(&p->s, at));
	p->open += !v->open; /* the end of the one before may not have arrived */
	*v = (struct visitor){
		.open = true,
		.silent = number % 5 == 3,
		.number = (uint8_t)(number % VISITOR_OWN),
		.patience = 20 + number * 37 % 300,
	};
	switch (number % 4) {
	case 0:
		say(p, at);
		break;
	case 1:
		give(p, at);
		break;
	case 2:
		ask(p, at);
		break;
	default:
		if (number % 3 == 0)
			close_halves(p, at, BOTH);
	}
	if (p->accepted == SOME)
		atomic_store(&w.enough, true);
}

static void take_message(struct party *p, uint32_t at,
			 const struct nfc_slot *slot)
{
	struct visitor *v = &p->visitor[at];
	uint64_t id = p->s.side[at].next[NFC_D2H]++;

	check(v, (const uint8_t *)slot->payload, 1);
	if (v->silent || v->closed & 1 << NFC_D2H)
		return;
	host_reply(&p->s.r, at, NFC_TYPE_ACK, NFC_D2H, id, NFC_STATE_CONSUMED,
		   0, 0);
	say(p, at);
}

static void take_transfer(struct party *p, uint32_t at)
{
	struct way *way = &p->visitor[at].way[NFC_D2H];

	way->id = p->s.side[at].next[NFC_D2H]++;
	way->sent = 0;
	if (!p->visitor[at].silent)
		feed(p, at, NFC_D2H, 0);
}

static void hear_record(struct party *p, uint32_t at,
			const struct nfc_slot *slot)
{
	enum nfc_type type = nfc_header_type(slot->header);
	struct nfc_ack ack;
	struct way *way;

	memcpy(&ack, slot->payload, sizeof(ack));
	if (!CHECK(ack.direction <= NFC_D2H))
		return;
	way = &p->visitor[at].way[ack.direction];
	if (ack.transaction != way->id)
		return;
	if (type == NFC_TYPE_DONE) {
		check(&p->visitor[at], way->memory, VISITOR_BYTES);
		if (!(p->visitor[at].closed & 1 << ack.direction))
			host_note(&p->s.r, at, NFC_TYPE_FIN, ack.direction,
				  way->id);
		return;
	}
	if (type != NFC_TYPE_ACK || ack.state == NFC_STATE_CONSUMED)
		return;
	if (ack.state == NFC_STATE_REPEAT)
		way->sent = ack.lists;
	feed(p, at, ack.direction, ack.lists);
}

/* It wants back what was not taken. */
static void give_back(struct party *p, uint32_t at)
{
	if (at != p->listener && p->visitor[at].silent)
		host_note(&p->s.r, at, NFC_TYPE_WITHDRAWN, NFC_D2H,
			  p->s.side[at].next[NFC_D2H] - 1);
}

/* A process has ended: a guest, or the one that listens. */
static void end_process(struct party *p, uint32_t at)
{
	if (at == p->listener) {
		p->listener = 0;
	} else {
		p->guest[at] = 0;
		p->guests--;
	}
	host_close(&p->s.r, at, BOTH);
	stage_end(&p->s, at);
}

static void hear_close(struct party *p, uint32_t at, const struct nfc_slot *slot)
{
	struct visitor *v = &p->visitor[at];
	struct nfc_close close;

	memcpy(&close, slot->payload, sizeof(close));
	if (close.generation != p->s.side[at].generation)
		return;
	if (p->guest[at] || at == p->listener) {
		end_process(p, at);
	} else if (v->open && v->closed == BOTH && close.halves == BOTH) {
		v->open = false;
		p->open--;
	} else {
		close_halves(p, at, close.halves);
	}
}

static void react(struct party *p, uint32_t at, const struct nfc_slot *slot)
{
	switch (nfc_header_type(slot->header)) {
	case NFC_TYPE_DIRECT:
		if (at == p->listener)
			accept_one(p, slot);
		else
			take_message(p, at, slot);
		break;
	case NFC_TYPE_IND_BEGIN:
		take_transfer(p, at);
		break;
	case NFC_TYPE_READY:
		say(p, at);
		break;
	case NFC_TYPE_WITHDRAW:
		give_back(p, at);
		break;
	case NFC_TYPE_CLOSE:
		hear_close(p, at, slot);
		break;
	default:
		hear_record(p, at, slot);
	}
}

/* Take what arrived, and lose patience. */
static void serve(struct party *p)
{
	stage_look(&p->s);
	for (uint32_t at = 1; at < CHANNELS; at++) {
		struct visitor *v = &p->visitor[at];

		receive(p, at);
		if (!v->open || v->closed == BOTH || v->patience--)
			continue;
		v->patience = 20;
		close_halves(p, at, v->number % 3 || v->closed ? BOTH : 1);
	}
}

/* ---- who listens ---- */

static void begin_listening(struct party *p)
{
	struct nfc_control c = { .op = NFC_CONTROL_LISTEN,
				 .a = 1,
				 .b = NFC_GUESTS_HERE };

	CHECK_EQ(stage_ask(&p->s, &c), 0);
	p->listens = c.a;
	p->listener = (uint32_t)c.b;
	p->id = c.c;
	CHECK_EQ(stage_open(&p->s, p->listener), 0);
}

/* No further host is accepted. An offer that was made meanwhile is. */
static void end_listening(struct party *p)
{
	struct nfc_control c = { .op = NFC_CONTROL_STOP, .a = p->listens };

	CHECK_EQ(stage_ask(&p->s, &c), NFC_EBUSY); /* it is on its way out */
}

/* ---- whose processes connect ---- */

static void load(struct party *p)
{
	struct nfc_control c = { .op = NFC_CONTROL_LOAD,
				 .a = stage_image_size() };

	CHECK_EQ(stage_ask(&p->s, &c), 0);
}

static void begin_guest(struct party *p, uint64_t id, uint32_t number)
{
	/* the last targets of an island: visitors get the first */
	static const uint32_t first[GUESTS] = { 20, 42, 62, 21, 43, 63 };
	uint32_t at = first[number % GUESTS];
	struct nfc_control c = { .op = NFC_CONTROL_START,
				 .a = at,
				 .b = 1,
				 .c = id | (uint64_t)number << 32,
				 .name = "visitor" };

	CHECK_EQ(stage_ask(&p->s, &c), 0);
	if (stage_open(&p->s, at)) /* it has ended */
		return;
	p->guest[at] = c.a;
	p->guests++;
}

static void stop_guests(struct party *p)
{
	for (uint32_t at = 0; at < CHANNELS; at++) {
		struct nfc_control c = { .op = NFC_CONTROL_STOP,
					 .a = p->guest[at] };

		if (p->guest[at])
			stage_ask(&p->s, &c); /* it may have ended */
	}
}

/* ---- rounds ---- */

/* No relay is left, although calls may be under way for a moment. */
static void check_free(void)
{
	for (int i = 0; i < NFC_RELAYS; i++) {
		struct nfc_relay *relay = &w.h->epoch->dev->relay[i];

		while (atomic_load(&relay->ends) || atomic_load(&relay->calls))
			sched_yield();
	}
}

/* The host that listens, until nobody connects any more. */
static void *far_part(void *arg)
{
	struct party *p = &w.far;
	bool listens = true;

	(void)arg;
	come(p);
	begin_listening(p);
	atomic_store(&w.id, p->id);
	while (p->listener || p->open) {
		bool enough = atomic_load(&w.enough);

		if (w.ending == LISTENER_GOES && enough)
			break;
		if (listens && (atomic_load(&w.over) ||
				(w.ending == NOBODY_LISTENS && enough))) {
			listens = false;
			end_listening(p);
		}
		serve(p);
	}
	leave(p);
	return NULL;
}

/* Those of the processes, until all have ended. */
static void near_part(uint32_t round)
{
	struct party *p = &w.near;
	bool stopped = w.ending != THEY_ARE_STOPPED;

	while (!atomic_load(&w.id))
		sched_yield();
	for (uint32_t i = 0; i < GUESTS; i++)
		begin_guest(p, atomic_load(&w.id), round * GUESTS + i);
	while (p->guests) {
		bool enough = atomic_load(&w.enough);

		if (w.ending == OWNER_GOES && enough)
			break;
		if (!stopped && enough)
			stop_guests(p);
		stopped |= enough;
		serve(p);
	}
}

static void run_round(enum ending ending, uint32_t round)
{
	pthread_t far;

	w.ending = ending;
	atomic_store(&w.id, 0);
	atomic_store(&w.enough, false);
	atomic_store(&w.over, false);
	come(&w.near);
	load(&w.near);
	CHECK_EQ(pthread_create(&far, NULL, far_part, NULL), 0);
	near_part(round);
	if (ending == OWNER_GOES)
		leave(&w.near);
	atomic_store(&w.over, true);
	pthread_join(far, NULL);
	if (ending != OWNER_GOES)
		leave(&w.near);
	check_free();
}

CASE(guests_of_two_hosts)
{
	struct nfc_hosted_options options = { .spin_ns = 20000,
					      .log_fd = -1,
					      .shared = true };
	struct nfc_config c = stage_config(&shape);
	struct nfc_computing who;
	bool left;

	c.hosts = 2;
	options.engines = shape.engines;
	pthread_mutex_init(&w.seating, NULL);
	CHECK_EQ(nfc_hosted_open(&c, &options, &w.h), 0);
	for (uint32_t i = 0; i < ROUNDS * ENDINGS && !test_failures(); i++)
		run_round(i % ENDINGS, i);
	nfc_hosted_close(w.h, &left, &who);
	CHECK(!left);
}

/* One host has both parts, and runs islands itself, in turns with their threads. */
CASE(guests_of_their_own_host)
{
	static struct party p;

	atomic_store(&w.enough, false);
	p.s.shape = &shape;
	p.s.r.config = stage_config(&shape);
	CHECK_EQ(stage_boot(&p.s), 0);
	w.h = p.s.h;
	load(&p);
	for (uint32_t i = 0; i < ROUNDS && !test_failures(); i++) {
		begin_listening(&p);
		for (uint32_t k = 0; k < GUESTS; k++)
			begin_guest(&p, p.id, i * GUESTS + k);
		while (p.guests)
			serve(&p);
		end_listening(&p);
		while (p.listener || p.open)
			serve(&p);
		check_free();
	}
	begin_listening(&p); /* all ends while they are there */
	for (uint32_t k = 0; k < GUESTS; k++)
		begin_guest(&p, p.id, k);
	for (int k = 0; k < SOME; k++)
		serve(&p);
	CHECK(stage_close(&p.s));
	free(p.s.r.received);
}
