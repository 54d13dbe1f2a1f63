// SPDX-License-Identifier: MIT
/* An end of a channel between hosts moves to another host: record 0108. */
#include "pair_rig.h"

/*
 * The far host of `moves` has also accepted `via`, by which the host `next` connected. The
 * end at the far host moves to `next`.
 */
struct move {
	struct pair moves, via;
	struct rig *next;
	uint64_t ticket;
};

static struct move move_new(void)
{
	struct move m = { .moves = pair_new(pair_hosts) };

	m.next = rig_attach(m.moves.near, 2);
	m.via = m.moves;
	m.via.near = m.next;
	pair_connect(&m.via);
	pair_accept(&m.via);
	return m;
}

static struct nfc_control ask_ticket(const struct move *m, uint32_t end,
				     uint32_t via)
{
	return host_control(m->moves.far, NFC_CONTROL_TICKET, end, via, 0, NULL);
}

static void get_ticket(struct move *m)
{
	struct nfc_control c = ask_ticket(m, m->moves.at_far, m->via.at_far);

	CHECK_EQ(c.status, 0);
	m->ticket = c.a;
}

static struct nfc_control claim(const struct move *m, uint64_t ticket)
{
	return host_control(m->next, NFC_CONTROL_CLAIM, m->via.at_near, ticket,
			    0, NULL);
}

/* The next host has the end, and has not opened it. The channel as it is now. */
static struct pair claimed(const struct move *m)
{
	struct nfc_control c = claim(m, m->ticket);
	struct pair p = m->moves;

	CHECK_EQ(c.status, 0);
	p.far = m->next;
	p.at_far = (uint32_t)c.a;
	return p;
}

static void check_moved(const struct move *m, uint64_t moved)
{
	struct nfc_control c = host_control(m->moves.far, NFC_CONTROL_VOID,
					    m->moves.at_far, m->ticket, 0, NULL);

	CHECK_EQ(c.status, 0);
	CHECK_EQ(c.b, moved);
}

static void move_free(struct move *m)
{
	struct nfc_device *dev = m->moves.near->dev;

	if (m->moves.far)
		rig_detach(m->moves.far);
	if (m->next)
		rig_detach(m->next);
	rig_step(m->moves.near);
	host_close(m->moves.near, m->moves.at_near, 3);
	rig_step(m->moves.near);
	pair_check_free(dev);
	rig_free(m->moves.near);
}

CASE(an_end_moves)
{
	struct move m = move_new();
	struct pair p;

	pair_works(&m.moves);
	get_ticket(&m);
	pair_works(&m.moves); /* it is its host's until it is claimed */
	p = claimed(&m);
	check_moved(&m, 1);
	CHECK_EQ(host_open(p.far, p.at_far), 0);
	for (int i = 0; i < 10; i++)
		pair_works(&p);
	host_expect_nothing(m.moves.far, m.moves.at_far);
	host_close(m.moves.far, m.moves.at_far, 3);
	host_expect_close(m.moves.far, m.moves.at_far, 3);
	CHECK_EQ(host_open(m.moves.far, m.moves.at_far), NFC_ENOTARGET);
	pair_works(&p);
	move_free(&m);
}

CASE(an_offer_goes_along)
{
	struct move m = move_new();
	uint64_t sent, old = pair_offer(&m.moves, 7, &sent), id;
	struct nfc_slot slot;
	struct pair p;

	get_ticket(&m);
	p = claimed(&m);
	host_reply(m.moves.far, m.moves.at_far, NFC_TYPE_ACK, NFC_D2H, old,
		   NFC_STATE_CONSUMED, 0,
		   0); /* it is not for that host any more */
	host_expect_nothing(p.near, p.at_near);
	CHECK_EQ(host_open(p.far, p.at_far), 0);
	id = p.far->channel[p.at_far].next[NFC_D2H]++;
	slot = host_expect(p.far, p.at_far, NFC_TYPE_DIRECT, id);
	CHECK_EQ(((uint8_t *)slot.payload)[0], 7);
	host_note(p.near, p.at_near, NFC_TYPE_WITHDRAW, NFC_H2D, sent);
	host_expect_note(p.far, p.at_far, NFC_TYPE_WITHDRAW, NFC_D2H, id);
	pair_take(&p, id, sent);
	pair_works(&p);
	move_free(&m);
}

CASE(a_transfer_goes_along)
{
	struct move m = move_new();
	struct rig *near = m.moves.near;
	uint8_t *from = host_buffer(near, 100, 1);
	uint8_t *to = host_buffer(m.next, 100, 0);
	uint64_t sent = host_begin(near, m.moves.at_near, 100, 0), id;
	struct pair p;

	host_send_lists(near, m.moves.at_near, NFC_H2D, sent, from, 100, 0, 1);
	host_expect(m.moves.far, m.moves.at_far, NFC_TYPE_IND_BEGIN,
		    m.moves.far->channel[m.moves.at_far].next[NFC_D2H]++);
	get_ticket(&m);
	p = claimed(&m);
	CHECK_EQ(host_open(p.far, p.at_far), 0);
	id = p.far->channel[p.at_far].next[NFC_D2H]++;
	host_expect(p.far, p.at_far, NFC_TYPE_IND_BEGIN, id);
	host_send_lists(p.far, p.at_far, NFC_D2H, id, to, 100, 0, 1);
	host_expect(p.far, p.at_far, NFC_TYPE_DONE, id);
	host_note(p.far, p.at_far, NFC_TYPE_FIN, NFC_D2H, id);
	host_expect_ack(near, p.at_near, NFC_TYPE_ACK, NFC_H2D, sent,
			NFC_STATE_CONSUMED, 0);
	CHECK(!__builtin_memcmp(from, to, 100));
	move_free(&m);
}

/* A host that asked whether somebody waits is answered by the next one. */
CASE(a_question_goes_along)
{
	struct move m = move_new();
	struct rig *near = m.moves.near;
	uint64_t next = near->channel[m.moves.at_near].next[NFC_H2D], id;
	struct pair p;

	host_hello(m.moves.far, NFC_CAP_KNOWN);
	host_hello(m.next, NFC_CAP_KNOWN);
	host_note(near, m.moves.at_near, NFC_TYPE_OFFER, NFC_H2D, next);
	host_expect_note(m.moves.far, m.moves.at_far, NFC_TYPE_OFFER, NFC_D2H,
			 m.moves.far->channel[m.moves.at_far].next[NFC_D2H]);
	get_ticket(&m);
	p = claimed(&m);
	CHECK_EQ(host_open(p.far, p.at_far), 0);
	id = p.far->channel[p.at_far].next[NFC_D2H];
	host_expect_note(p.far, p.at_far, NFC_TYPE_OFFER, NFC_D2H, id);
	host_note(p.far, p.at_far, NFC_TYPE_READY, NFC_D2H, id);
	host_expect_note(near, p.at_near, NFC_TYPE_READY, NFC_H2D, next);
	move_free(&m);
}

CASE(a_closed_half_goes_along)
{
	struct move m = move_new();
	struct pair p;

	host_close(m.moves.near, m.moves.at_near, 1 << NFC_H2D);
	host_expect_close(m.moves.far, m.moves.at_far, 1 << NFC_D2H);
	host_close(m.moves.far, m.moves.at_far, 1 << NFC_H2D);
	host_expect_close(m.moves.near, m.moves.at_near, 1 << NFC_D2H);
	get_ticket(&m);
	p = claimed(&m);
	CHECK_EQ(host_open(p.far, p.at_far), 0);
	host_expect_close(p.far, p.at_far, 1 << NFC_H2D);
	host_expect_close(p.far, p.at_far, 1 << NFC_D2H);
	move_free(&m);
}

/* Events that find no host that has opened the end wait for it. */
CASE(what_comes_meanwhile_waits)
{
	struct move m = move_new();
	uint64_t sent, id;
	uint8_t byte = 3;
	struct pair p;

	get_ticket(&m);
	p = claimed(&m);
	sent = host_direct(p.near, p.at_near, &byte, 1);
	host_expect_nothing(p.near, p.at_near);
	CHECK_EQ(host_open(p.far, p.at_far), 0);
	id = p.far->channel[p.at_far].next[NFC_D2H]++;
	host_expect(p.far, p.at_far, NFC_TYPE_DIRECT, id);
	pair_take(&p, id, sent);
	move_free(&m);
}

/* Room for more messages than a manager takes in a turn, and no call between islands. */
static void one_island(struct nfc_config *c)
{
	pair_hosts(c);
	c->islands = 1;
	c->slots = 256;
}

/* A request whose answer is not awaited. */
static void ask_only(struct rig *r, enum nfc_control_op op, uint64_t a,
		     uint64_t b)
{
	struct nfc_control c = {
		.op = (uint16_t)op, .request = ++r->request, .a = a, .b = b
	};

	host_direct(r, 0, &c, sizeof(c));
}

static struct nfc_control answer_of(struct rig *r)
{
	uint64_t id = r->channel[0].next[NFC_D2H]++;
	struct nfc_control c;
	struct nfc_slot slot;

	host_expect(r, 0, NFC_TYPE_ACK, r->channel[0].next[NFC_H2D] - 1);
	slot = host_expect(r, 0, NFC_TYPE_DIRECT, id);
	__builtin_memcpy(&c, slot.payload, sizeof(c));
	host_reply(r, 0, NFC_TYPE_ACK, NFC_D2H, id, NFC_STATE_CONSUMED, 0, 0);
	return c;
}

/*
 * An answer from before the request is read before the end has a ticket, however full the
 * mailbox: else the claim, which follows at once, would have it offered again.
 */
CASE(an_answer_is_not_overtaken)
{
	struct pair p = pair_new(one_island), via = p;
	struct rig *far = p.far;
	uint64_t sent, id = pair_offer(&p, 7, &sent);
	struct nfc_control c;

	pair_connect(&via);
	pair_accept(&via);
	for (int i = 0; i < 200; i++)
		host_note(far, p.at_far, NFC_TYPE_FIN, NFC_D2H, 0);
	host_reply(far, p.at_far, NFC_TYPE_ACK, NFC_D2H, id, NFC_STATE_CONSUMED,
		   0, 0);
	ask_only(far, NFC_CONTROL_TICKET, p.at_far, via.at_far);
	ask_only(p.near, NFC_CONTROL_CLAIM, via.at_near, 1);
	c = answer_of(far);
	CHECK_EQ(c.status, 0);
	CHECK_EQ(c.a, 1);
	c = answer_of(p.near);
	CHECK_EQ(c.status, 0);
	p.far = p.near; /* it has both ends now */
	p.at_far = (uint32_t)c.a;
	CHECK_EQ(host_open(p.far, p.at_far), 0);
	host_expect_nothing(p.far, p.at_far);
	host_expect_ack(p.near, p.at_near, NFC_TYPE_ACK, NFC_H2D, sent,
			NFC_STATE_CONSUMED, 0);
	p.far = far;
	pair_free(&p);
}

CASE(an_end_has_to_be_quiet)
{
	struct move m = move_new();
	uint64_t sent, id;
	uint8_t byte = 1;

	sent = host_direct(m.moves.far, m.moves.at_far, &byte, 1);
	CHECK_EQ(ask_ticket(&m, m.moves.at_far, m.via.at_far).status, NFC_EBUSY);
	id = m.moves.near->channel[m.moves.at_near].next[NFC_D2H]++;
	host_expect(m.moves.near, m.moves.at_near, NFC_TYPE_DIRECT, id);
	host_reply(m.moves.near, m.moves.at_near, NFC_TYPE_ACK, NFC_D2H, id,
		   NFC_STATE_CONSUMED, 0, 0);
	host_expect(m.moves.far, m.moves.at_far, NFC_TYPE_ACK, sent);
	get_ticket(&m);
	id = pair_offer(&m.moves, 7, &sent);
	host_note(m.moves.near, m.moves.at_near, NFC_TYPE_WITHDRAW, NFC_H2D,
		  sent);
	host_expect_note(m.moves.far, m.moves.at_far, NFC_TYPE_WITHDRAW,
			 NFC_D2H, id);
	CHECK_EQ(claim(&m, m.ticket).status, NFC_EBUSY);
	host_note(m.moves.far, m.moves.at_far, NFC_TYPE_WITHDRAWN, NFC_D2H, id);
	host_expect_note(m.moves.near, m.moves.at_near, NFC_TYPE_WITHDRAWN,
			 NFC_H2D, sent);
	claimed(&m);
	move_free(&m);
}

CASE(a_ticket_is_good_once)
{
	struct move m = move_new();
	uint64_t first;

	CHECK_EQ(claim(&m, 0).status, NFC_ENOTARGET);
	CHECK_EQ(claim(&m, 1).status, NFC_ENOTARGET);
	get_ticket(&m);
	first = m.ticket;
	check_moved(&m, 0);
	CHECK_EQ(claim(&m, first).status, NFC_ENOTARGET);
	get_ticket(&m);
	first = m.ticket;
	get_ticket(&m); /* the second voids the first */
	CHECK_EQ(claim(&m, first).status, NFC_ENOTARGET);
	claimed(&m);
	CHECK_EQ(claim(&m, m.ticket).status, NFC_ENOTARGET);
	check_moved(&m, 1);
	move_free(&m);
}

/* Only the other end of the channel that was named may claim. */
CASE(a_ticket_is_for_one_channel)
{
	struct move m = move_new();
	struct pair other = m.via;
	struct nfc_control c;

	pair_connect(&other);
	pair_accept(&other);
	get_ticket(&m);
	c = host_control(m.next, NFC_CONTROL_CLAIM, other.at_near, m.ticket, 0,
			 NULL);
	CHECK_EQ(c.status, NFC_ENOTARGET);
	c = host_control(m.moves.near, NFC_CONTROL_CLAIM, m.moves.at_near,
			 m.ticket, 0, NULL);
	CHECK_EQ(c.status, NFC_ENOTARGET);
	c = host_control(m.via.far, NFC_CONTROL_CLAIM, m.via.at_far, m.ticket,
			 0, NULL); /* the sender's own end of it */
	CHECK_EQ(c.status, NFC_ENOTARGET);
	claimed(&m);
	move_free(&m);
}

CASE(nonsense_is_refused)
{
	struct move m = move_new();
	uint32_t end = m.moves.at_far, via = m.via.at_far;

	CHECK_EQ(ask_ticket(&m, end, end).status, NFC_EINVAL);
	CHECK_EQ(ask_ticket(&m, NFC_TARGET_LOOPBACK, via).status, NFC_ENOTARGET);
	CHECK_EQ(ask_ticket(&m, end, NFC_TARGET_LOOPBACK).status, NFC_ENOTARGET);
	CHECK_EQ(ask_ticket(&m, UINT32_MAX, via).status, NFC_ENOTARGET);
	CHECK_EQ(ask_ticket(&m, 300, via).status, NFC_ENOTARGET);
	CHECK_EQ(ask_ticket(&m, end, 300).status, NFC_ENOTARGET);
	CHECK_EQ(ask_ticket(&m, end, UINT32_MAX).status, NFC_ENOTARGET);
	m.moves.at_far = 300;
	CHECK_EQ(host_control(m.moves.far, NFC_CONTROL_VOID, 300, 1, 0, NULL).status,
		 NFC_ENOTARGET);
	CHECK_EQ(host_control(m.moves.far, NFC_CONTROL_VOID, UINT64_MAX, 1, 0,
			      NULL)
			 .status,
		 NFC_ENOTARGET);
	CHECK_EQ(host_control(m.next, NFC_CONTROL_CLAIM, UINT64_MAX, 1, 0, NULL)
			 .status,
		 NFC_ENOTARGET);
	host_close(m.moves.far, end, 3);
	CHECK_EQ(ask_ticket(&m, end, via).status, NFC_ENOTARGET);
	move_free(&m);
}

CASE(a_sender_that_goes_keeps_nothing)
{
	struct move m = move_new();
	uint64_t sent;
	struct pair p;

	get_ticket(&m);
	pair_offer(&m.moves, 1, &sent);
	rig_detach(m.moves.far);
	host_expect(m.moves.near, m.moves.at_near, NFC_TYPE_ERROR, sent);
	host_expect_close(m.moves.near, m.moves.at_near, 3);
	CHECK_EQ(claim(&m, m.ticket).status, NFC_ENOTARGET);
	m.moves.far = NULL;
	move_free(&m);

	m = move_new();
	get_ticket(&m);
	p = claimed(&m);
	rig_detach(m.moves.far);
	m.moves.far = NULL;
	CHECK_EQ(host_open(p.far, p.at_far), 0);
	pair_works(&p);
	move_free(&m);
}

CASE(a_claimer_that_goes_takes_the_end_along)
{
	struct move m = move_new();

	get_ticket(&m);
	claimed(&m);
	rig_detach(m.next);
	m.next = NULL;
	host_expect_close(m.moves.near, m.moves.at_near, 3);
	check_moved(&m, 1);
	move_free(&m);

	m = move_new();
	get_ticket(&m);
	rig_detach(m.next);
	m.next = NULL;
	check_moved(&m, 0);
	pair_works(&m.moves);
	move_free(&m);
}

CASE(a_far_host_that_goes_voids_the_ticket)
{
	struct move m = move_new();

	get_ticket(&m);
	host_close(m.moves.near, m.moves.at_near, 3);
	host_expect_close(m.moves.near, m.moves.at_near, 3);
	host_expect_close(m.moves.far, m.moves.at_far, 1 << NFC_H2D);
	host_expect_close(m.moves.far, m.moves.at_far, 1 << NFC_D2H);
	CHECK_EQ(claim(&m, m.ticket).status, NFC_ENOTARGET);
	check_moved(&m, 0);
	move_free(&m);
}

/* The bounds of a connection hold: of a pair, and of a host's targets. */
CASE(a_host_has_no_more_ends_by_moves)
{
	struct move m = move_new();
	uint32_t ends[16];
	struct pair p = m.moves;

	ends[0] = p.at_far;
	for (int i = 1; i < 16; i++) {
		pair_connect(&p);
		pair_accept(&p);
		ends[i] = p.at_far;
	}
	for (int i = 0; i < 16; i++) {
		m.moves.at_far = ends[i];
		get_ticket(&m);
		claimed(&m);
	}
	pair_connect(&p);
	pair_accept(&p);
	m.moves.at_far = p.at_far;
	get_ticket(&m);
	CHECK_EQ(claim(&m, m.ticket).status, NFC_EBUSY);
	check_moved(&m, 0);
	pair_works(&p);
	rig_detach(m.moves.far);
	rig_detach(m.next);
	rig_free(m.moves.near);
}

/* The far host has as many ends as it may; a move gives it no further one. */
CASE(a_move_adds_no_end_to_the_far_host)
{
	struct move m = move_new();
	struct pair self = { .near = m.moves.near, .far = m.moves.near };
	struct nfc_control c = host_control(self.far, NFC_CONTROL_LISTEN, 0, 1,
					    0, NULL);

	CHECK_EQ(c.status, 0);
	self.target = c.b;
	self.id = c.c;
	CHECK_EQ(host_open(self.far, (uint32_t)c.b), 0);
	for (uint32_t i = 1; i + 1 < NFC_HOST_RELAYS; i += 2) {
		pair_connect(&self);
		pair_accept(&self);
	}
	self = m.moves;
	pair_connect(&self);
	pair_accept(&self);
	get_ticket(&m);
	claimed(&m);
	rig_detach(m.moves.far);
	rig_detach(m.next);
	rig_free(m.moves.near);
}
