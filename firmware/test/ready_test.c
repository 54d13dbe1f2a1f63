// SPDX-License-Identifier: MIT
/*
 * Sends to a host as attempts: one host asks, the other answers READY, truly or
 * falsely.
 */
#include "pair_rig.h"

static struct pair pair_ready(void)
{
	struct pair p = pair_new(pair_hosts);

	host_hello(p.near, NFC_CAP_READY);
	host_hello(p.far, NFC_CAP_READY);
	return p;
}

static uint64_t next_sent(const struct pair *p)
{
	return p->near->channel[p->at_near].next[NFC_H2D];
}

static uint64_t next_offered(const struct pair *p)
{
	return p->far->channel[p->at_far].next[NFC_D2H];
}

static void ask(struct pair *p)
{
	host_note(p->near, p->at_near, NFC_TYPE_OFFER, NFC_H2D, next_sent(p));
}

static void expect_asked(struct pair *p)
{
	host_expect_note(p->far, p->at_far, NFC_TYPE_OFFER, NFC_D2H,
			 next_offered(p));
	host_expect_nothing(p->near, p->at_near);
}

static void say_ready(struct pair *p, uint64_t id)
{
	host_note(p->far, p->at_far, NFC_TYPE_READY, NFC_D2H, id);
}

static void expect_ready(struct pair *p)
{
	host_expect_note(p->near, p->at_near, NFC_TYPE_READY, NFC_H2D,
			 next_sent(p));
}

/* A message that is given and taken back in the same breath, as the far host sees it. */
static uint64_t try(struct pair *p, uint64_t *sent)
{
	uint64_t id = p->far->channel[p->at_far].next[NFC_D2H]++;
	uint8_t byte = 7;

	*sent = host_direct(p->near, p->at_near, &byte, 1);
	host_note(p->near, p->at_near, NFC_TYPE_WITHDRAW, NFC_H2D, *sent);
	host_expect(p->far, p->at_far, NFC_TYPE_DIRECT, id);
	host_expect_note(p->far, p->at_far, NFC_TYPE_WITHDRAW, NFC_D2H, id);
	host_expect_nothing(p->near, p->at_near);
	return id;
}

CASE(a_host_that_waits_is_ready)
{
	struct pair p = pair_ready();
	uint64_t id, sent;

	for (int i = 0; i < 3; i++) {
		ask(&p);
		expect_asked(&p);
		say_ready(&p, next_offered(&p));
		expect_ready(&p);
		id = try(&p, &sent);
		pair_take(&p, id, sent);
	}
	CHECK_EQ(rig_dropped(p.near) + rig_dropped(p.far), 0);
	pair_free(&p);
}

CASE(a_try_that_is_not_taken_comes_back)
{
	struct pair p = pair_ready();
	uint64_t sent, id = try(&p, &sent);

	host_note(p.far, p.at_far, NFC_TYPE_WITHDRAWN, NFC_D2H, id);
	host_expect_note(p.near, p.at_near, NFC_TYPE_WITHDRAWN, NFC_H2D, sent);
	pair_works(&p);
	pair_free(&p);
}

CASE(a_transfer_that_is_tried)
{
	struct pair p = pair_ready();
	uint64_t id = next_offered(&p), sent;

	p.far->channel[p.at_far].next[NFC_D2H]++;
	sent = host_begin(p.near, p.at_near, 100000, 1);
	host_expect(p.far, p.at_far, NFC_TYPE_IND_BEGIN, id);
	rig_advance(p.near, MS);
	host_expect_note(p.far, p.at_far, NFC_TYPE_WITHDRAW, NFC_D2H, id);
	host_expect_nothing(p.near, p.at_near);
	host_note(p.far, p.at_far, NFC_TYPE_WITHDRAWN, NFC_D2H, id);
	host_expect_ack(p.near, p.at_near, NFC_TYPE_ERROR, NFC_H2D, sent,
			NFC_STATE_FAILED, NFC_ETIMEOUT);
	pair_works(&p);
	pair_free(&p);
}

/*
 * A returned transfer is returned once, no matter what its host sends after
 * that.
 */
CASE(a_transfer_that_is_given_back_twice)
{
	struct pair p = pair_ready();
	uint64_t id = next_offered(&p), sent, before = rig_dropped(p.far);

	p.far->channel[p.at_far].next[NFC_D2H]++;
	sent = host_begin(p.near, p.at_near, 0, 1);
	host_expect(p.far, p.at_far, NFC_TYPE_IND_BEGIN, id);
	rig_advance(p.near, MS);
	host_expect_note(p.far, p.at_far, NFC_TYPE_WITHDRAW, NFC_D2H, id);
	host_note(p.far, p.at_far, NFC_TYPE_WITHDRAWN, NFC_D2H, id);
	host_note(p.far, p.at_far, NFC_TYPE_WITHDRAWN, NFC_D2H, id);
	host_note(p.far, p.at_far, NFC_TYPE_FIN, NFC_D2H, id);
	host_expect_ack(p.near, p.at_near, NFC_TYPE_ERROR, NFC_H2D, sent,
			NFC_STATE_FAILED, NFC_ETIMEOUT);
	host_expect_nothing(p.near, p.at_near);
	CHECK_EQ(rig_dropped(p.far), before + 2);
	pair_works(&p);
	pair_free(&p);
}

/* One that is taken first is taken, although it was wanted back, and once. */
CASE(a_transfer_that_is_taken_and_given_back)
{
	struct pair p = pair_ready();
	uint64_t id = next_offered(&p), sent, before = rig_dropped(p.far);

	p.far->channel[p.at_far].next[NFC_D2H]++;
	sent = host_begin(p.near, p.at_near, 0, 1);
	host_expect(p.far, p.at_far, NFC_TYPE_IND_BEGIN, id);
	rig_advance(p.near, MS);
	host_expect_note(p.far, p.at_far, NFC_TYPE_WITHDRAW, NFC_D2H, id);
	host_note(p.far, p.at_far, NFC_TYPE_FIN, NFC_D2H, id);
	host_note(p.far, p.at_far, NFC_TYPE_WITHDRAWN, NFC_D2H, id);
	host_note(p.far, p.at_far, NFC_TYPE_FIN, NFC_D2H, id);
	host_expect_ack(p.near, p.at_near, NFC_TYPE_ACK, NFC_H2D, sent,
			NFC_STATE_CONSUMED, NFC_OK);
	host_expect_nothing(p.near, p.at_near);
	CHECK_EQ(rig_dropped(p.far), before + 2);
	pair_works(&p);
	pair_free(&p);
}

/*
 * A question that is repeated before its answer costs the other host nothing.
 */
CASE(it_is_asked_once)
{
	struct pair p = pair_ready();

	for (int i = 0; i < 1000; i++)
		ask(&p);
	expect_asked(&p);
	host_expect_nothing(p.far, p.at_far);
	say_ready(&p, next_offered(&p));
	expect_ready(&p);
	host_expect_nothing(p.near, p.at_near);
	pair_free(&p);
}

/* A message takes the question back, and an answer that crosses it is about nothing. */
CASE(a_message_takes_the_question_back)
{
	struct pair p = pair_ready();
	uint64_t id, sent;

	ask(&p);
	expect_asked(&p);
	id = pair_offer(&p, 1, &sent);
	say_ready(&p, id);
	host_expect_nothing(p.near, p.at_near);
	pair_take(&p, id, sent);
	CHECK_EQ(rig_dropped(p.far), 0);
	ask(&p);
	expect_asked(&p);
	say_ready(&p, next_offered(&p));
	expect_ready(&p);
	pair_free(&p);
}

CASE(nobody_is_asked_who_does_not_answer)
{
	struct pair p = pair_new(pair_hosts);

	ask(&p);
	host_expect_nothing(p.far, p.at_far);
	host_expect_nothing(p.near, p.at_near);
	host_close(p.far, p.at_far, 1 << NFC_D2H);
	expect_ready(&p); /* it refuses now */
	host_expect_close(p.near, p.at_near, 1 << NFC_H2D);
	pair_free(&p);
}

CASE(one_that_goes_is_ready)
{
	struct pair p = pair_ready();

	ask(&p);
	expect_asked(&p);
	rig_detach(p.far);
	p.far = NULL;
	expect_ready(&p);
	host_expect_close(p.near, p.at_near, 3);
	pair_free(&p);
}

/* It may be asked while the listener has not accepted, and is notified of it then. */
CASE(asked_before_it_accepts)
{
	struct pair p = pair_listening(pair_hosts);

	host_hello(p.far, NFC_CAP_READY);
	pair_connect(&p);
	ask(&p);
	pair_accept(&p);
	expect_asked(&p);
	say_ready(&p, next_offered(&p));
	expect_ready(&p);
	pair_free(&p);
}

/* A READY that was not asked for, or is about another offer, has no effect. */
CASE(lies_about_waiting)
{
	struct pair p = pair_ready();
	uint64_t id = next_offered(&p), said = 0;

	for (int i = 0; i < 1000; i++, said++)
		say_ready(&p, id);
	ask(&p);
	expect_asked(&p);
	for (uint64_t off = 1; off < 1ull << 40; off *= 8, said++)
		say_ready(&p, id + off);
	host_note(p.far, p.at_far, NFC_TYPE_READY, NFC_H2D, id);
	host_note(p.far, p.at_far, NFC_TYPE_READY, 2, id);
	host_expect_nothing(p.near, p.at_near);
	CHECK_EQ(rig_dropped(p.far), said + 2);
	say_ready(&p, id);
	expect_ready(&p);
	say_ready(&p, id);
	host_expect_nothing(p.near, p.at_near);
	pair_works(&p);
	pair_free(&p);
}

/*
 * A host that sends READY, and neither takes nor returns the message, has its
 * time and no more.
 */
CASE(ready_and_then_nothing)
{
	struct pair p = pair_ready();
	uint64_t sent;

	ask(&p);
	expect_asked(&p);
	say_ready(&p, next_offered(&p));
	expect_ready(&p);
	try(&p, &sent);
	rig_advance(p.near, ANSWER_NS + MS);
	host_expect_ack(p.near, p.at_near, NFC_TYPE_ERROR, NFC_H2D, sent,
			NFC_STATE_FAILED, NFC_ECLOSED);
	host_expect_close(p.near, p.at_near, 3);
	pair_connect(&p);
	pair_accept(&p);
	pair_works(&p);
	pair_free(&p);
}

/* A process has no use for READY. */
CASE(ready_to_a_process)
{
	struct pair p = pair_ready();
	uint64_t before = rig_dropped(p.far);

	host_note(p.far, (uint32_t)p.target, NFC_TYPE_READY, NFC_D2H,
		  p.far->channel[p.target].next[NFC_D2H]);
	CHECK_EQ(rig_dropped(p.far), before + 1);
	pair_works(&p);
	pair_free(&p);
}
