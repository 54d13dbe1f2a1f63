// SPDX-License-Identifier: MIT
/* Transfers between hosts that one of them ends early: by a word, a close, or its death. */
#include <string.h>

#include "pair_side.h"

/* ---- who ends it early ---- */

CASE(given_back_before_it_is_taken)
{
	struct pair p = pair_new(pair_pages);
	struct side give = side_gives(&p, 100000, 0),
		    take = side_takes(&p, 100000, 0);

	host_note(p.near, p.at_near, NFC_TYPE_ABORT, NFC_H2D, give.id);
	host_expect_note(p.far, p.at_far, NFC_TYPE_WITHDRAW, NFC_D2H, take.id);
	host_expect_nothing(p.near, p.at_near);
	host_note(p.far, p.at_far, NFC_TYPE_WITHDRAWN, NFC_D2H, take.id);
	side_failed(&give, NFC_TYPE_ABORTED, NFC_EABORTED);
	pair_eager(&p);
	give = side_gives_pages(&p, 100, 0);
	take = side_takes(&p, 100, 0);
	host_note(p.near, p.at_near, NFC_TYPE_WITHDRAW, NFC_H2D, give.id);
	host_expect_note(p.far, p.at_far, NFC_TYPE_WITHDRAW, NFC_D2H, take.id);
	host_note(p.far, p.at_far, NFC_TYPE_WITHDRAWN, NFC_D2H, take.id);
	host_expect_note(p.near, p.at_near, NFC_TYPE_WITHDRAWN, NFC_H2D,
			 give.id);
	side_whole(&p, 100000, 0, 0);
	pair_free(&p);
}

/* An abort that crosses the first list still ends it. */
CASE(aborted_as_it_is_taken)
{
	struct pair p = pair_new(pair_pages);
	struct side give = side_gives(&p, 100000, 0),
		    take = side_takes(&p, 100000, 0);

	host_note(p.near, p.at_near, NFC_TYPE_ABORT, NFC_H2D, give.id);
	host_expect_note(p.far, p.at_far, NFC_TYPE_WITHDRAW, NFC_D2H, take.id);
	side_feed(&take);
	side_failed(&give, NFC_TYPE_ABORTED, NFC_EABORTED);
	side_failed(&take, NFC_TYPE_ERROR, NFC_EABORTED);
	pair_eager(&p);
	give = side_gives_pages(&p, 9000, 0);
	take = side_takes(&p, 9000, 0);
	host_note(p.near, p.at_near, NFC_TYPE_WITHDRAW, NFC_H2D, give.id);
	host_expect_note(p.far, p.at_far, NFC_TYPE_WITHDRAW, NFC_D2H, take.id);
	side_feed(&take);
	host_expect_note(p.near, p.at_near, NFC_TYPE_WITHDRAWN, NFC_H2D,
			 give.id);
	side_failed(&take, NFC_TYPE_ERROR, NFC_EABORTED);
	side_whole(&p, 100000, 0, 0);
	pair_free(&p);
}

/* Half of it has moved. */
static void halfway(struct pair *p, struct side *give, struct side *take)
{
	*give = side_gives(p, 400000, 0);
	*take = side_takes(p, 400000, 0);
	host_send_lists(p->near, p->at_near, NFC_H2D, give->id, give->buf,
			give->size, 0, 3);
	give->sent = 3;
	host_send_lists(p->far, p->at_far, NFC_D2H, take->id, take->buf,
			take->size, 0, 6);
	take->sent = 6;
	rig_step(p->near);
	side_hear(give);
	side_hear(take);
}

CASE(aborted_on_its_way)
{
	struct pair p = pair_new(pair_hosts);
	struct side give, take;
	struct nfc_ack ack;

	halfway(&p, &give, &take);
	host_note(p.near, p.at_near, NFC_TYPE_ABORT, NFC_H2D, give.id);
	ack = host_expect_ack(p.near, p.at_near, NFC_TYPE_ABORTED, NFC_H2D,
			      give.id, NFC_STATE_FAILED, NFC_EABORTED);
	CHECK_EQ(ack.processed, 18 * PAGE);
	side_failed(&take, NFC_TYPE_ERROR, NFC_EABORTED);
	halfway(&p, &give, &take);
	host_note(p.far, p.at_far, NFC_TYPE_ABORT, NFC_D2H, take.id);
	side_failed(&take, NFC_TYPE_ABORTED, NFC_EABORTED);
	side_failed(&give, NFC_TYPE_ERROR, NFC_EABORTED);
	side_whole(&p, 100000, 0, 0);
	pair_free(&p);
}

/* All has moved: who takes has the last word, and the other waits for it. */
CASE(aborted_when_all_has_moved)
{
	struct pair p = pair_new(pair_hosts);

	for (int taken = 0; taken < 2; taken++) {
		struct side give = side_gives(&p, 50000, 0);
		struct side take = side_takes(&p, 50000, 0);

		side_moved(&give, &take);
		host_note(p.near, p.at_near, NFC_TYPE_ABORT, NFC_H2D, give.id);
		host_expect_nothing(p.near, p.at_near);
		host_note(p.far, p.at_far, taken ? NFC_TYPE_FIN : NFC_TYPE_ABORT,
			  NFC_D2H, take.id);
		if (taken) {
			side_committed(&give);
			continue;
		}
		side_failed(&take, NFC_TYPE_ABORTED, NFC_EABORTED);
		side_failed(&give, NFC_TYPE_ABORTED, NFC_EABORTED);
	}
	pair_works(&p);
	pair_free(&p);
}

/* The commit stands, also before its host has the record. */
CASE(aborted_as_it_is_committed)
{
	struct pair p = pair_new(pair_hosts);

	for (int first = 0; first < 2; first++) {
		struct side give = side_gives(&p, 50000, 0);
		struct side take = side_takes(&p, 50000, 0);

		side_moved(&give, &take);
		if (first)
			side_fin(&take);
		host_note(p.near, p.at_near, NFC_TYPE_ABORT, NFC_H2D, give.id);
		if (!first)
			side_fin(&take);
		side_committed(&give);
	}
	pair_works(&p);
	pair_free(&p);
}

CASE(a_host_that_does_not_say)
{
	struct pair p = pair_new(pair_hosts);
	struct side give = side_gives(&p, 50000, 0),
		    take = side_takes(&p, 50000, 0);

	side_moved(&give, &take);
	rig_advance(p.near, 10ull * ANSWER_NS); /* nobody asked */
	host_expect_nothing(p.near, p.at_near);
	host_note(p.near, p.at_near, NFC_TYPE_ABORT, NFC_H2D, give.id);
	host_expect_nothing(p.near, p.at_near);
	rig_advance(p.near, ANSWER_NS - MS);
	host_expect_nothing(p.near, p.at_near);
	rig_advance(p.near, 2 * MS);
	side_failed(&give, NFC_TYPE_ABORTED, NFC_EABORTED);
	host_expect_close(p.near, p.at_near, 3);
	host_expect_close(p.far, p.at_far, 3);
	side_fin(&take);
	host_expect_nothing(p.near, p.at_near);
	pair_free(&p);
}

CASE(a_target_has_its_time_for_transfers)
{
	struct pair p = pair_new(pair_hosts);
	uint64_t sent = host_begin(p.near, p.at_near, 5000, 10 * MS);
	uint64_t id = side_takes(&p, 5000, 0).id;

	rig_advance(p.near, 20 * MS);
	host_expect_note(p.far, p.at_far, NFC_TYPE_WITHDRAW, NFC_D2H, id);
	host_note(p.far, p.at_far, NFC_TYPE_WITHDRAWN, NFC_D2H, id);
	host_expect_ack(p.near, p.at_near, NFC_TYPE_ERROR, NFC_H2D, sent,
			NFC_STATE_FAILED, NFC_ETIMEOUT);
	side_whole(&p, 100000, 0, 0);
	pair_free(&p);
}

/* ---- closes and deaths ---- */

CASE(closed_on_its_way)
{
	for (int far = 0; far < 2; far++) {
		struct pair p = pair_new(pair_hosts);
		struct side give, take;
		struct nfc_slot slot;

		halfway(&p, &give, &take);
		if (far)
			host_close(p.far, p.at_far, 1 << NFC_D2H);
		else
			host_close(p.near, p.at_near, 1 << NFC_H2D);
		rig_step(p.near);
		for (int i = 0; i < 2; i++) {
			struct side *s = i ? &take : &give;

			while (host_take(s->rig, s->channel, &slot))
				if (nfc_header_type(slot.header) ==
				    NFC_TYPE_ERROR)
					s->type = NFC_TYPE_ERROR;
			CHECK_EQ(s->type, NFC_TYPE_ERROR);
		}
		pair_free(&p);
	}
}

/* The offer was closed before the other host takes it. */
CASE(closed_as_it_is_taken)
{
	for (int pages = 0; pages < 2; pages++) {
		struct pair p = pair_new(pair_pages);
		struct side give, take;

		pair_eager(&p);
		give = side_gives(&p, 5000, 0);
		take = side_takes(&p, 5000, 0);
		host_close(p.near, p.at_near, 1 << NFC_H2D);
		host_expect_note(p.far, p.at_far, NFC_TYPE_WITHDRAW, NFC_D2H,
				 take.id);
		host_expect_close(p.far, p.at_far, 1 << NFC_D2H);
		if (pages)
			side_send_eager(p.far, p.at_far, NFC_D2H, take.id,
					take.buf, take.size);
		else
			side_feed(&take);
		side_failed(&take, NFC_TYPE_ERROR, NFC_ECLOSED);
		host_expect_nothing(p.near, give.channel);
		pair_free(&p);
	}
}

/* The same when there is no other host any more. */
CASE(taken_from_nobody)
{
	static const uint32_t type[] = { NFC_TYPE_IND_LIST, NFC_TYPE_EAGER,
					 NFC_TYPE_ABORT, NFC_TYPE_FIN };

	for (size_t i = 0; i < sizeof(type) / sizeof(*type); i++) {
		struct pair p = pair_new(pair_pages);
		struct side take;

		pair_eager(&p);
		side_gives(&p, 5000, 0);
		take = side_takes(&p, 5000, 0);
		host_close(p.near, p.at_near, 3);
		rig_step(p.near);
		host_expect_note(p.far, p.at_far, NFC_TYPE_WITHDRAW, NFC_D2H,
				 take.id);
		p.far->received_count = 0; /* closes */
		if (type[i] == NFC_TYPE_IND_LIST)
			side_feed(&take);
		else if (type[i] == NFC_TYPE_EAGER)
			side_send_eager(p.far, p.at_far, NFC_D2H, take.id,
					take.buf, take.size);
		else
			host_note(p.far, p.at_far, type[i], NFC_D2H, take.id);
		rig_step(p.far);
		if (type[i] == NFC_TYPE_ABORT)
			side_failed(&take, NFC_TYPE_ABORTED, NFC_EABORTED);
		else if (type[i] != NFC_TYPE_FIN)
			side_failed(&take, NFC_TYPE_ERROR, NFC_ECLOSED);
		p.far->received_count = 0;
		host_close(p.far, p.at_far, 3);
		host_expect_close(p.far, p.at_far, 3);
		pair_free(&p);
	}
}

CASE(a_host_goes_on_its_way)
{
	for (int i = 0; i < 8; i++) {
		struct pair p = pair_copying(pair_hosts, i / 4);
		struct nfc_device *dev = p.near->dev;
		struct side give, take;

		if (i % 4 < 2) {
			halfway(&p, &give, &take);
		} else { /* all has moved */
			give = side_gives(&p, 50000, 0);
			take = side_takes(&p, 50000, 0);
			side_moved(&give, &take);
		}
		if (i % 2) { /* the one that takes */
			rig_detach(p.far);
			p.far = NULL;
			side_failed(&give, NFC_TYPE_ERROR, NFC_ECLOSED);
			host_expect_close(p.near, p.at_near, 3);
		} else {
			nfc_host_detach(dev, 0);
			if (i % 4 < 2)
				side_failed(&take, NFC_TYPE_ERROR, NFC_ECLOSED);
			host_expect_close(p.far, p.at_far, 3);
			side_fin(&take);
			rig_step(p.far);
			host_expect_nothing(p.far, p.at_far);
			rig_detach(p.far);
			p.far = NULL;
		}
		pair_check_free(dev);
		rig_free(p.near);
	}
}

/* The giving host aborts halfway, and the taking host's ring has no room for the end. */
static void aborts_before_a_full_ring(struct pair *p, struct side *give,
				      struct side *take)
{
	halfway(p, give, take);
	p->far->hold = true;
	for (uint32_t i = 0; i < p->near->config.slots; i++)
		host_begin(p->far, p->at_far, 1ull << 48, 0);
	rig_step(p->near);
	host_note(p->near, p->at_near, NFC_TYPE_ABORT, NFC_H2D, give->id);
	side_failed(give, NFC_TYPE_ABORTED, NFC_EABORTED);
}

/* A host that does not drain its ring keeps nobody. */
CASE(a_full_ring_on_its_way)
{
	struct pair p = pair_new(pair_hosts);
	struct side give, take;

	aborts_before_a_full_ring(&p, &give, &take);
	give = side_gives(&p, 100, 0);
	host_expect_nothing(p.near, p.at_near);
	rig_detach(p.far);
	p.far = NULL;
	side_failed(&give, NFC_TYPE_ERROR, NFC_ECLOSED);
	pair_free(&p);
}

/* Its host gets an end before it gets the next offer. */
CASE(offered_again_while_the_end_waits_for_room)
{
	struct pair p = pair_new(pair_hosts);
	struct side give, take;
	struct nfc_slot slot;

	aborts_before_a_full_ring(&p, &give, &take);
	give = side_gives(&p, 50000, 0);
	host_expect_nothing(p.near, p.at_near);
	p.far->hold = false;
	rig_advance(p.near, MS);
	rig_advance(p.near, MS); /* there is room from here on */
	while (CHECK(host_take(p.far, p.at_far, &slot)) &&
	       ((struct nfc_ack *)slot.payload)->direction != NFC_D2H)
		CHECK_EQ(nfc_header_type(slot.header), NFC_TYPE_ERROR);
	CHECK_EQ(slot.payload[0], take.id);
	take = side_takes(&p, 50000, 0);
	side_moved(&give, &take);
	side_fin(&take);
	side_committed(&give);
	pair_works(&p);
	pair_free(&p);
}

/* ---- the last words of a host that detaches, which its island has not read ---- */

/* A message that it received counts. */
CASE(a_message_is_taken_at_the_last_moment)
{
	struct pair p = pair_new(pair_hosts);
	uint64_t sent, id = pair_offer(&p, 42, &sent);

	host_reply(p.far, p.at_far, NFC_TYPE_ACK, NFC_D2H, id,
		   NFC_STATE_CONSUMED, 0, 0);
	rig_detach(p.far);
	p.far = NULL;
	host_expect_ack(p.near, p.at_near, NFC_TYPE_ACK, NFC_H2D, sent,
			NFC_STATE_CONSUMED, 0);
	host_expect_close(p.near, p.at_near, 3);
	pair_free(&p);
}

CASE(a_transfer_is_committed_at_the_last_moment)
{
	for (int size = 0; size <= 50000; size += 50000) {
		struct pair p = pair_new(pair_hosts);
		struct side give = side_gives(&p, (uint64_t)size, 0),
			    take = side_takes(&p, (uint64_t)size, 0);

		if (size)
			side_moved(&give, &take);
		host_note(p.far, p.at_far, NFC_TYPE_FIN, NFC_D2H, take.id);
		rig_detach(p.far);
		p.far = NULL;
		side_committed(&give);
		host_expect_close(p.near, p.at_near, 3);
		pair_free(&p);
	}
}

/* All else that it wrote is withdrawn with it. */
CASE(nothing_begins_at_the_last_moment)
{
	struct pair p = pair_new(pair_hosts);
	uint64_t sent, id = pair_offer(&p, 42, &sent);
	uint8_t byte = 1;

	p.far->epoch++;
	host_reply(p.far, p.at_far, NFC_TYPE_ACK, NFC_D2H, id,
		   NFC_STATE_CONSUMED, 0, 0);
	p.far->epoch--;
	host_direct(p.far, p.at_far, &byte, 1);
	for (uint32_t i = 2; i < p.far->config.slots; i++)
		host_put(p.far, p.at_far, i % 20, NFC_PAYLOAD_SIZE, id + i,
			 NULL);
	rig_detach(p.far);
	p.far = NULL;
	host_expect_ack(p.near, p.at_near, NFC_TYPE_ERROR, NFC_H2D, sent,
			NFC_STATE_FAILED, NFC_ECLOSED);
	host_expect_close(p.near, p.at_near, 3);
	host_expect_nothing(p.near, p.at_near);
	pair_free(&p);
}
