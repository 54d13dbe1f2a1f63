// SPDX-License-Identifier: MIT
/* Channels between hosts: each end says what the other did, whatever the other host says. */
#include <string.h>

#include "pair_rig.h"

static void impatient(struct nfc_config *c)
{
	pair_hosts(c);
	c->target_timeout_ns = 10 * MS;
}

CASE(a_message_is_committed_by_the_other_host)
{
	struct pair p = pair_new(pair_hosts);

	for (int i = 0; i < 100; i++)
		pair_works(&p);
	host_close(p.near, p.at_near, 3);
	host_expect_close(p.near, p.at_near, 3);
	host_expect_close(p.far, p.at_far, 1 << NFC_H2D);
	host_expect_close(p.far, p.at_far, 1 << NFC_D2H);
	host_close(p.far, p.at_far, 3);
	host_expect_close(p.far, p.at_far, 3);
	rig_detach(p.far);
	p.far = NULL;
	pair_check_free(p.near->dev);
	pair_free(&p);
}

CASE(a_message_waits_for_who_accepts)
{
	struct pair p = pair_listening(pair_hosts);
	uint64_t sent, id;
	uint8_t byte = 9;

	pair_connect(&p);
	sent = host_direct(p.near, p.at_near, &byte, 1);
	host_expect_nothing(p.near, p.at_near);
	pair_accept(&p);
	id = p.far->channel[p.at_far].next[NFC_D2H]++;
	host_expect(p.far, p.at_far, NFC_TYPE_DIRECT, id);
	pair_take(&p, id, sent);
	pair_works(&p);
	pair_free(&p);
}

CASE(a_message_is_given_back)
{
	struct pair p = pair_new(pair_hosts);
	uint64_t sent, id = pair_offer(&p, 1, &sent);
	unsigned int rings = p.far->rings;

	host_note(p.near, p.at_near, NFC_TYPE_WITHDRAW, NFC_H2D, sent);
	host_expect_note(p.far, p.at_far, NFC_TYPE_WITHDRAW, NFC_D2H, id);
	CHECK_EQ(p.far->rings, rings + 1); /* nobody may wait there */
	host_expect_nothing(p.near, p.at_near);
	host_note(p.far, p.at_far, NFC_TYPE_WITHDRAWN, NFC_D2H, id);
	host_expect_note(p.near, p.at_near, NFC_TYPE_WITHDRAWN, NFC_H2D, sent);
	pair_works(&p);
	pair_free(&p);
}

/* A withdrawal that crosses the answer is not about the next message. */
CASE(a_late_withdrawal_is_about_nothing)
{
	struct pair p = pair_new(pair_hosts);
	uint64_t sent, id = pair_offer(&p, 1, &sent);

	host_reply(p.far, p.at_far, NFC_TYPE_ACK, NFC_D2H, id,
		   NFC_STATE_CONSUMED, 0, 0);
	host_note(p.near, p.at_near, NFC_TYPE_WITHDRAW, NFC_H2D, sent);
	host_expect_ack(p.near, p.at_near, NFC_TYPE_ACK, NFC_H2D, sent,
			NFC_STATE_CONSUMED, 0);
	id = pair_offer(&p, 2, &sent);
	host_expect_nothing(p.far, p.at_far);
	pair_take(&p, id, sent);
	pair_free(&p);
}

CASE(a_target_has_its_time)
{
	struct pair p = pair_new(impatient);
	uint64_t sent, id = pair_offer(&p, 1, &sent);

	rig_advance(p.near, 20 * MS);
	host_expect_note(p.far, p.at_far, NFC_TYPE_WITHDRAW, NFC_D2H, id);
	host_note(p.far, p.at_far, NFC_TYPE_WITHDRAWN, NFC_D2H, id);
	host_expect_ack(p.near, p.at_near, NFC_TYPE_ERROR, NFC_H2D, sent,
			NFC_STATE_FAILED, NFC_ETIMEOUT);
	pair_works(&p);
	pair_free(&p);
}

/* A host that stands still keeps nobody for ever. */
CASE(a_host_that_does_not_answer_is_gone)
{
	struct pair p = pair_new(pair_hosts);
	uint64_t sent, id = pair_offer(&p, 1, &sent);

	host_note(p.near, p.at_near, NFC_TYPE_WITHDRAW, NFC_H2D, sent);
	host_expect_note(p.far, p.at_far, NFC_TYPE_WITHDRAW, NFC_D2H, id);
	rig_advance(p.near, ANSWER_NS - MS);
	host_expect_nothing(p.near, p.at_near);
	rig_advance(p.near, 2 * MS);
	host_expect_ack(p.near, p.at_near, NFC_TYPE_ERROR, NFC_H2D, sent,
			NFC_STATE_FAILED, NFC_ECLOSED);
	host_expect_close(p.near, p.at_near, 3);
	host_expect_note(p.far, p.at_far, NFC_TYPE_WITHDRAW, NFC_D2H, id);
	host_expect_close(p.far, p.at_far, 3);
	host_reply(p.far, p.at_far, NFC_TYPE_ACK, NFC_D2H, id,
		   NFC_STATE_CONSUMED, 0, 0);
	host_expect_nothing(p.near, p.at_near);
	host_close(p.near, p.at_near, 3);
	host_expect_close(p.near, p.at_near, 3);
	pair_connect(&p);
	pair_accept(&p);
	pair_works(&p);
	pair_free(&p);
}

/* Also where nothing but the time of the offer asked it. */
CASE(a_host_that_is_late_and_does_not_answer_is_gone)
{
	struct pair p = pair_new(impatient);
	uint64_t sent, id = pair_offer(&p, 1, &sent);

	rig_advance(p.near, 20 * MS);
	host_expect_note(p.far, p.at_far, NFC_TYPE_WITHDRAW, NFC_D2H, id);
	rig_advance(p.near, ANSWER_NS + MS);
	host_expect_ack(p.near, p.at_near, NFC_TYPE_ERROR, NFC_H2D, sent,
			NFC_STATE_FAILED, NFC_ECLOSED);
	host_expect_close(p.near, p.at_near, 3);
	pair_free(&p);
}

/* A status that a host may not send does not reach the other. */
CASE(forged_answers)
{
	static const struct {
		uint16_t status, want;
	} answer[] = {
		{ NFC_ECLOSED, NFC_ECLOSED },
		{ NFC_ERESET, NFC_EABORTED },
		{ NFC_EPROTO, NFC_EABORTED },
		{ NFC_EWITHDRAWN, NFC_EABORTED },
		{ NFC_ETIMEOUT, NFC_EABORTED },
	};
	struct pair p = pair_new(pair_hosts);
	uint64_t sent, id = pair_offer(&p, 1, &sent);

	host_note(p.far, p.at_far, NFC_TYPE_WITHDRAWN, NFC_D2H, id);
	host_expect_ack(p.near, p.at_near, NFC_TYPE_ERROR, NFC_H2D, sent,
			NFC_STATE_FAILED, NFC_EABORTED);
	for (size_t i = 0; i < sizeof(answer) / sizeof(*answer); i++) {
		id = pair_offer(&p, 1, &sent);
		host_reply(p.far, p.at_far, NFC_TYPE_ACK, NFC_D2H, id + 1,
			   NFC_STATE_CONSUMED, 0, 0);
		host_reply(p.far, p.at_far, NFC_TYPE_ERROR, NFC_D2H, id,
			   NFC_STATE_FAILED, NFC_STATUS_COUNT, 0);
		host_note(p.far, p.at_far, NFC_TYPE_FIN, NFC_D2H, id);
		host_note(p.far, p.at_far, NFC_TYPE_ABORT, NFC_D2H, id);
		host_expect_nothing(p.near, p.at_near);
		host_reply(p.far, p.at_far, NFC_TYPE_ERROR, NFC_D2H, id,
			   NFC_STATE_FAILED, answer[i].status, 0);
		host_expect_ack(p.near, p.at_near, NFC_TYPE_ERROR, NFC_H2D,
				sent, NFC_STATE_FAILED, answer[i].want);
	}
	pair_works(&p);
	pair_free(&p);
}

/* A host that closes with what it offers has broken a rule; the other one has not. */
CASE(a_close_takes_the_message_with_it)
{
	struct pair p = pair_new(pair_hosts);
	uint64_t sent, id = pair_offer(&p, 1, &sent);

	host_close(p.near, p.at_near, 1 << NFC_H2D);
	host_expect_note(p.far, p.at_far, NFC_TYPE_WITHDRAW, NFC_D2H, id);
	host_expect_close(p.far, p.at_far, 1 << NFC_D2H);
	host_note(p.far, p.at_far, NFC_TYPE_WITHDRAWN, NFC_D2H, id);
	host_expect_nothing(p.near, p.at_near);
	pair_free(&p);
}

CASE(a_closed_half_refuses)
{
	struct pair p = pair_new(pair_hosts);
	uint64_t sent;
	uint8_t byte = 0;

	pair_offer(&p, 1, &sent);
	host_close(p.far, p.at_far, 1 << NFC_D2H);
	host_expect_ack(p.near, p.at_near, NFC_TYPE_ERROR, NFC_H2D, sent,
			NFC_STATE_FAILED, NFC_ECLOSED);
	host_expect_close(p.near, p.at_near, 1 << NFC_H2D);
	sent = host_direct(p.near, p.at_near, &byte, 1);
	host_expect_ack(p.near, p.at_near, NFC_TYPE_ERROR, NFC_H2D, sent,
			NFC_STATE_FAILED, NFC_ECLOSED);
	rig_detach(p.far); /* a half closes once */
	p.far = NULL;
	host_expect_close(p.near, p.at_near, 1 << NFC_D2H);
	pair_free(&p);
}

/* One that does not drain its ring waits for room, and nobody spins for it. */
CASE(a_full_ring_waits_for_room)
{
	struct pair p = pair_new(pair_hosts);
	uint32_t slots = p.near->config.slots;
	uint64_t sent, id;
	uint8_t byte = 5;

	p.far->hold = true;
	for (uint32_t i = 0; i < slots; i++)
		host_begin(p.far, p.at_far, 1ull << 48, 0); /* each is refused */
	rig_step(p.near);
	sent = host_direct(p.near, p.at_near, &byte, 1);
	CHECK(rig_step(p.near));
	CHECK(p.near->dev->islands[0].relays || p.near->dev->islands[1].relays);
	p.far->hold = false;
	host_drain(p.far);
	rig_advance(p.near, MS);
	CHECK(!p.near->dev->islands[0].relays && !p.near->dev->islands[1].relays);
	id = p.far->channel[p.at_far].next[NFC_D2H]++;
	for (uint32_t i = 0; i < slots; i++)
		host_expect(p.far, p.at_far, NFC_TYPE_ERROR, 1 + i);
	host_expect(p.far, p.at_far, NFC_TYPE_DIRECT, id);
	pair_take(&p, id, sent);
	pair_free(&p);
}

CASE(a_host_that_goes_closes)
{
	struct pair p = pair_new(pair_hosts);
	uint64_t sent;
	struct nfc_device *dev = p.near->dev;

	pair_offer(&p, 1, &sent);
	rig_detach(p.far);
	p.far = NULL;
	host_expect_ack(p.near, p.at_near, NFC_TYPE_ERROR, NFC_H2D, sent,
			NFC_STATE_FAILED, NFC_ECLOSED);
	host_expect_close(p.near, p.at_near, 3);
	pair_check_free(dev);
	pair_free(&p);
}

/* An abort that a host sent late is not applied to its next relay. */
CASE(an_abort_after_the_relay)
{
	struct pair p = pair_new(pair_hosts), q;
	uint8_t *from = host_buffer(p.near, 100, 1);
	uint8_t *to = host_buffer(p.far, 100, 0);
	uint64_t sent = host_begin(p.near, p.at_near, 100, 0);
	uint64_t id = p.far->channel[p.at_far].next[NFC_D2H]++;

	host_send_lists(p.near, p.at_near, NFC_H2D, sent, from, 100, 0, 1);
	host_expect(p.far, p.at_far, NFC_TYPE_IND_BEGIN, id);
	host_send_lists(p.far, p.at_far, NFC_D2H, id, to, 100, 0, 1);
	host_expect(p.far, p.at_far, NFC_TYPE_DONE, id);
	host_note(p.near, p.at_near, NFC_TYPE_ABORT, NFC_H2D, sent);
	host_expect_nothing(p.near, p.at_near);
	rig_advance(p.near, ANSWER_NS + MS); /* it is given up */
	host_expect(p.near, p.at_near, NFC_TYPE_ABORTED, sent);
	host_expect_close(p.near, p.at_near, 3);
	host_expect_close(p.far, p.at_far, 3);
	q = p;
	pair_connect(&q);
	pair_accept(&q);
	host_note(p.far, p.at_far, NFC_TYPE_ABORT, NFC_D2H, id);
	host_expect(p.far, p.at_far, NFC_TYPE_ABORTED, id);
	host_expect_nothing(q.far, q.at_far);
	pair_works(&q);
	pair_free(&p);
}

/*
 * Offer a transfer from one host to the other with a list 0 too many, which breaks a
 * rule: the offer is asked back. Its id at the first host; that at the other in *id.
 */
static uint64_t offer_a_list_too_many(struct pair *p, uint64_t *id)
{
	uint8_t *from = host_buffer(p->near, 100, 1);
	uint64_t sent = host_begin(p->near, p->at_near, 100, 0);

	*id = p->far->channel[p->at_far].next[NFC_D2H]++;
	host_expect(p->far, p->at_far, NFC_TYPE_IND_BEGIN, *id);
	for (int i = 0; i < 2; i++)
		host_send_lists(p->near, p->at_near, NFC_H2D, sent, from, 100,
				0, 1);
	host_expect_note(p->far, p->at_far, NFC_TYPE_WITHDRAW, NFC_D2H, *id);
	return sent;
}

/*
 * The other host, which has broken no rule, gives the offer back before it gets
 * another.
 */
CASE(a_list_too_many_is_asked_back)
{
	struct pair p = pair_new(pair_hosts);
	uint64_t id, sent = offer_a_list_too_many(&p, &id);

	host_expect_nothing(p.near, p.at_near);
	host_note(p.far, p.at_far, NFC_TYPE_WITHDRAWN, NFC_D2H, id);
	host_expect_ack(p.near, p.at_near, NFC_TYPE_ERROR, NFC_H2D, sent,
			NFC_STATE_FAILED, NFC_EPROTO);
	pair_works(&p);
	pair_free(&p);
}

/* The other host takes the offer all the same: the transfer moves nothing. */
CASE(a_list_too_many_ends_what_is_taken)
{
	struct pair p = pair_new(pair_hosts);
	uint64_t id, sent = offer_a_list_too_many(&p, &id);
	uint8_t *to = host_buffer(p.far, 100, 0);

	host_send_lists(p.far, p.at_far, NFC_D2H, id, to, 100, 0, 1);
	host_expect_ack(p.far, p.at_far, NFC_TYPE_ERROR, NFC_D2H, id,
			NFC_STATE_FAILED, NFC_EABORTED);
	host_expect_ack(p.near, p.at_near, NFC_TYPE_ERROR, NFC_H2D, sent,
			NFC_STATE_FAILED, NFC_EPROTO);
	CHECK_EQ(p.near->dma_bytes, 0);
	pair_works(&p);
	pair_free(&p);
}

/*
 * A host that connects and leaves, before the listening one answers the offer
 * of it, leaves nothing.
 */
CASE(who_leaves_before_the_answer_leaves_nothing)
{
	struct pair p = pair_listening(pair_hosts);
	uint64_t id;

	pair_connect(&p);
	host_close(p.near, p.at_near, 3);
	host_expect_close(p.near, p.at_near, 3);
	id = p.far->channel[p.target].next[NFC_D2H]++;
	host_expect(p.far, (uint32_t)p.target, NFC_TYPE_DIRECT, id);
	host_reply(p.far, (uint32_t)p.target, NFC_TYPE_ERROR, NFC_D2H, id,
		   NFC_STATE_FAILED, NFC_ECLOSED, 0);
	rig_step(p.near);
	for (int i = 0; i < NFC_RELAYS; i++)
		CHECK_EQ(atomic_load(&p.near->dev->relay[i].ends), 0);
	pair_free(&p);
}

enum { HALF_WAITING = NFC_LISTENER_WAITING / 2 };

/* Connect until it is refused; how often it was not. */
static uint32_t fill_places(struct pair *p, uint32_t at[HALF_WAITING])
{
	struct nfc_control c;
	uint32_t n;

	for (n = 0; n < HALF_WAITING; n++) {
		pair_connect(p);
		at[n] = p->at_near;
	}
	c = host_control(p->near, NFC_CONTROL_CONNECT, p->id, 0, 0, NULL);
	CHECK_EQ(c.status, NFC_EBUSY);
	return n;
}

/* Nobody takes the last place of a listener that has one before it. */
CASE(a_flood_leaves_places)
{
	struct pair p = pair_listening(pair_hosts), other = p, own = p;
	uint32_t at[HALF_WAITING];

	fill_places(&p, at);
	other.near = rig_attach(p.near, 2);
	own.near = p.far;
	for (uint32_t n = 0; n < HALF_WAITING / 2; n++)
		pair_connect(&other);
	CHECK_EQ(host_control(other.near, NFC_CONTROL_CONNECT, p.id, 0, 0, NULL)
			 .status,
		 NFC_EBUSY);
	pair_connect(&own);
	pair_connect(&own);
	CHECK_EQ(host_control(own.near, NFC_CONTROL_CONNECT, p.id, 0, 0, NULL)
			 .status,
		 NFC_EBUSY);
	rig_detach(other.near);
	for (uint32_t n = 0; n < HALF_WAITING + 2; n++)
		pair_accept(&own); /* those of the host that detached are closed */
	pair_works(&own);
	pair_free(&p);
}

/* A host that closes before it was accepted frees its place, however often. */
CASE(who_was_not_accepted_leaves)
{
	struct pair p = pair_listening(pair_hosts);
	uint8_t byte = 3;

	pair_connect(&p); /* is offered */
	for (uint32_t n = 0; n < 2 * NFC_RELAYS; n++) {
		struct pair q = p;

		pair_connect(&q);
		host_direct(q.near, q.at_near, &byte, 1);
		host_close(q.near, q.at_near, 3);
		host_expect_close(q.near, q.at_near, 3);
	}
	pair_accept(&p);
	pair_works(&p);
	host_expect_nothing(p.far, (uint32_t)p.target);
	host_close(p.near, p.at_near, 3);
	host_expect_close(p.near, p.at_near, 3);
	pair_free(&p);
}

/* Those that wait to be accepted are refused when their listener closes. */
CASE(a_listener_that_goes_refuses)
{
	struct pair p = pair_listening(pair_hosts), other = p;
	uint32_t at[HALF_WAITING], n = fill_places(&p, at);
	struct nfc_control c;

	other.near = rig_attach(p.near, 2);
	pair_connect(&other);
	c = host_control(p.far, NFC_CONTROL_STOP, p.process, 0, 0, NULL);
	CHECK_EQ(c.status, NFC_EBUSY);
	host_expect(p.far, (uint32_t)p.target, NFC_TYPE_DIRECT,
		    p.far->channel[p.target].next[NFC_D2H]);
	host_expect_note(p.far, (uint32_t)p.target, NFC_TYPE_WITHDRAW, NFC_D2H,
			 p.far->channel[p.target].next[NFC_D2H]);
	host_note(p.far, (uint32_t)p.target, NFC_TYPE_WITHDRAWN, NFC_D2H,
		  p.far->channel[p.target].next[NFC_D2H]);
	while (n)
		host_expect_close(p.near, at[--n], 3);
	host_expect_close(other.near, other.at_near, 3);
	pair_check_free(p.near->dev);
	c = host_control(p.near, NFC_CONTROL_CONNECT, p.id, 0, 0, NULL);
	CHECK_EQ(c.status, NFC_ENOTARGET);
	rig_detach(other.near);
	pair_free(&p);
}

/* A host may guess the target that it is offered, and have done with it before it takes that. */
CASE(a_guessed_target)
{
	struct pair p = pair_listening(pair_hosts);
	uint32_t at = (uint32_t)p.target;
	uint64_t id = p.far->channel[at].next[NFC_D2H];
	uint32_t guess;

	pair_connect(&p);
	guess = p.near->dev->relay[0].end[1].ch->id;
	CHECK_EQ(host_open(p.far, guess), 0);
	host_close(p.far, guess, 3);
	host_expect_close(p.far, guess, 3);
	host_expect_close(p.near, p.at_near, 1 << NFC_H2D);
	host_expect_close(p.near, p.at_near, 1 << NFC_D2H);
	host_close(p.near, p.at_near, 3);
	host_expect_close(p.near, p.at_near, 3);
	host_expect(p.far, at, NFC_TYPE_DIRECT, id);
	host_control(p.far, NFC_CONTROL_STOP, p.process, 0, 0, NULL);
	host_expect_note(p.far, at, NFC_TYPE_WITHDRAW, NFC_D2H, id);
	host_note(p.far, at, NFC_TYPE_WITHDRAWN, NFC_D2H, id);
	host_expect_close(p.far, at, 3);
	pair_check_free(p.near->dev);
	pair_free(&p);
}

/* Only a listener decides who may reach its host, and a host is its own user. */
CASE(who_may_connect)
{
	struct rig *r = rig_new(pair_hosts), *other = rig_attach(r, 1);
	static const struct {
		uint64_t user[2], anyone;
		uint32_t status;
	} row[] = {
		{ { 0, 0 }, 0, NFC_ENOTARGET }, { { 5, 6 }, 0, NFC_ENOTARGET },
		{ { 0, 6 }, 0, NFC_ENOTARGET }, { { 5, 5 }, 0, NFC_OK },
		{ { 0, 0 }, 1, NFC_OK },	{ { 5, 6 }, 1, NFC_OK },
	};
	struct nfc_control c, l;

	for (size_t i = 0; i < sizeof(row) / sizeof(*row); i++) {
		r->dev->host[0]->user = row[i].user[0];
		r->dev->host[1]->user = row[i].user[1];
		l = host_control(other, NFC_CONTROL_LISTEN, row[i].anyone, 0, 0,
				 NULL);
		CHECK_EQ(l.status, 0);
		c = host_control(r, NFC_CONTROL_CONNECT, l.c, 0, 0, NULL);
		CHECK_EQ(c.status, row[i].status);
		c = host_control(other, NFC_CONTROL_CONNECT, l.c, 0, 0, NULL);
		CHECK_EQ(c.status, 0);
	}
	rig_free(r);
}

CASE(requests_are_checked_and_bounded)
{
	struct pair p = pair_listening(pair_hosts);
	struct nfc_control c;
	uint32_t n = 1;

	static const uint64_t wrong[] = { 0,
					  NFC_TARGET_LOOPBACK,
					  NFC_TARGET_HOSTS - 1,
					  NFC_TARGET_HOSTS + 0x9999,
					  UINT64_MAX,
					  1ull << 63 };

	CHECK_EQ(host_control(p.near, NFC_CONTROL_LISTEN, 2, 0, 0, NULL).status,
		 NFC_EINVAL);
	CHECK_EQ(host_control(p.near, NFC_CONTROL_LISTEN, 0, 3, 0, NULL).status,
		 NFC_EINVAL);
	for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++) {
		c = host_control(p.near, NFC_CONTROL_CONNECT, wrong[i], 0, 0,
				 NULL);
		CHECK_EQ(c.status, NFC_ENOTARGET);
	}
	do {
		c = host_control(p.far, NFC_CONTROL_LISTEN, 0, 0, 0, NULL);
		n += !c.status;
	} while (!c.status);
	CHECK_EQ(c.status, NFC_ENOMEM);
	CHECK_EQ(n, NFC_HOST_LISTENERS);
	pair_free(&p);
}

/* A host that takes all it gets leaves others theirs, until the one they connect to has no more. */
CASE(a_greedy_host_leaves_room)
{
	struct pair p = pair_listening(pair_hosts), own = p, good = p;
	struct nfc_control c;

	good.near = rig_attach(p.near, 2);
	own.near = p.far;
	for (uint32_t n = 0; n < NFC_PAIR_RELAYS; n++) {
		pair_connect(&p);
		pair_accept(&p);
	}
	c = host_control(p.near, NFC_CONTROL_CONNECT, p.id, 0, 0, NULL);
	CHECK_EQ(c.status, NFC_EBUSY);
	for (uint32_t n = 0; n < NFC_PAIR_RELAYS; n++) {
		pair_connect(&good);
		pair_accept(&good);
	}
	pair_works(&good);
	for (uint32_t n = 2 * NFC_PAIR_RELAYS; n < NFC_HOST_RELAYS; n += 2) {
		pair_connect(&own);
		pair_accept(&own);
	}
	c = host_control(p.far, NFC_CONTROL_CONNECT, p.id, 0, 0, NULL);
	CHECK_EQ(c.status, NFC_ENOMEM);
	pair_works(&p);
	rig_detach(good.near);
	pair_free(&p);
}

/* LISTEN of a host by a name; its answer. */
static struct nfc_control listen_as(struct rig *r, const char *name, bool anyone)
{
	return host_control(r, NFC_CONTROL_LISTEN, anyone, 0, 0, name);
}

/* The listener that a host reaches by a name; 0: none. */
static uint64_t dial(struct rig *r, const char *name, bool anyone)
{
	struct nfc_control c = host_control(r, NFC_CONTROL_CONNECT, 0, anyone,
					    0, name);

	CHECK(c.status == 0 || c.status == NFC_ENOTARGET);
	return c.status ? 0 : c.b;
}

/* A user has its names, and a name for anyone has one owner. A user's own has precedence. */
CASE(names_belong_to_users)
{
	struct rig *r = rig_new(pair_hosts), *same = rig_attach(r, 1),
		   *other = rig_attach(r, 2);
	struct nfc_control l;
	uint64_t own;

	r->dev->host[0]->user = r->dev->host[1]->user = 5;
	r->dev->host[2]->user = 6;
	CHECK_EQ(dial(r, "mail", true), 0);
	l = listen_as(other, "mail", true);
	CHECK_EQ(l.status, 0);
	CHECK_EQ(dial(r, "mail", false), 0); /* of another user: not by default */
	CHECK_EQ(dial(r, "mail", true), l.c);
	CHECK_EQ(listen_as(r, "mail", true).status, NFC_EBUSY);
	own = listen_as(same, "mail", false).c;
	CHECK(own);
	CHECK_EQ(listen_as(r, "mail", false).status, NFC_EBUSY);
	CHECK_EQ(dial(r, "mail", true), own);
	CHECK_EQ(dial(r, "mail", false), own);
	CHECK_EQ(dial(other, "mail", false), l.c);
	CHECK_EQ(listen_as(r, "Mail", true).status, 0);
	rig_detach(same); /* its host ends, and so does the name */
	CHECK_EQ(dial(r, "mail", false), 0);
	CHECK_EQ(listen_as(r, "mail", false).status, 0);
	rig_detach(other);
	rig_free(r);
}

CASE(names_are_checked)
{
	struct rig *r = rig_new(pair_hosts);
	static const char *const wrong[] = { "a b",
					     "7",
					     ".a",
					     "a/b",
					     "\033[2J",
					     "\xc3\xa9",
					     "abcdefghijklmnopqrstuvwx" };
	static const char rest[NFC_NAME_SIZE] = "a\0b";
	struct nfc_control c;

	for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++) {
		CHECK_EQ(listen_as(r, wrong[i], false).status, NFC_EINVAL);
		c = host_control(r, NFC_CONTROL_CONNECT, 0, 0, 0, wrong[i]);
		CHECK_EQ(c.status, NFC_EINVAL);
	}
	c = host_control_named(r, NFC_CONTROL_LISTEN, 0, rest);
	CHECK_EQ(c.status, NFC_EINVAL);
	CHECK_EQ(listen_as(r, "abcdefghijklmnopqrstuvw", false).status, 0);
	CHECK_EQ(listen_as(r, "A-Z.0_9", false).status, 0);
	c = host_control(r, NFC_CONTROL_CONNECT, 0, 2, 0, "A-Z.0_9");
	CHECK_EQ(c.status, NFC_EINVAL);
	c = host_control(r, NFC_CONTROL_CONNECT, NFC_TARGET_HOSTS, 0, 0,
			 "A-Z.0_9");
	CHECK_EQ(c.status, NFC_EINVAL);
	rig_free(r);
}
