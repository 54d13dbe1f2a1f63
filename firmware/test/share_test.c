// SPDX-License-Identifier: MIT
/* Packets that are used in place, and payloads that stay in the sender's buffer. */
#include "link_rig.h"

/* Payloads in one piece are used there, by words and shared; the others are stored. */
CASE(packets_are_taken_where_they_lie)
{
	for (int shared = 0; shared < 2; shared++) {
		struct link_rig *r = link_rig_new(&link_quick, NULL);

		link_rig_takes(r);
		r->shares = shared;
		REQUIRE(link_rig_up(r));
		link_rig_traffic(r, 3000, 500);
		for (int i = 0; i < 2; i++) {
			const uint64_t *n = r->side[i].end.count;

			CHECK(r->side[i].taken > 100);
			CHECK(r->side[i].taken < 2900);
			CHECK_EQ(n[NFC_LINK_BAD_PACKETS] +
					 n[NFC_LINK_BAD_CONTROLS] +
					 n[NFC_LINK_BAD_CREDITS] +
					 n[NFC_LINK_OVERRUNS],
				 0);
			CHECK_EQ(n[NFC_LINK_REPEATED], 0);
			CHECK_EQ(n[NFC_LINK_RECEIVED], 3000);
		}
		link_rig_free(r);
	}
}

/* Shared payloads are not sent over the wire. */
CASE(payloads_that_are_shared)
{
	struct link_rig *r = link_rig_new(&link_quick, NULL);
	struct link_side *a = &r->side[0];
	uint64_t before;

	r->shares = true;
	REQUIRE(link_rig_up(r));
	before = atomic_load(&a->wire.tail);
	for (uint32_t i = 0; i < 100; i++) {
		REQUIRE(link_rig_send(a, 0, 4096));
		link_rig_step(r, 1000);
		link_rig_step(r, 1000);
	}
	CHECK_EQ(r->side[1].came, 100);
	CHECK(atomic_load(&a->wire.tail) - before < 100 * 10);
	CHECK(a->end.count[NFC_LINK_WORDS_SENT] > 100 * NFC_PACKET_WORDS);
	CHECK(r->side[1].end.count[NFC_LINK_WORDS_TAKEN] >
	      100 * NFC_PACKET_WORDS);
	link_rig_free(r);
}

/* Whether a word of it may be Magic is shared with it: it may continue by words. */
CASE(shared_payloads_with_magic)
{
	struct link_rig *r = link_rig_new(&link_quick, NULL);
	struct nfc_link_end *b = &r->side[1].end;

	r->shares = true;
	r->drained = 0;
	REQUIRE(link_rig_up(r));
	for (uint32_t i = 0; i < 6; i++)
		REQUIRE(link_rig_send(&r->side[0], 0, 1000));
	link_rig_step(r, 1000);
	for (uint32_t i = 0; i < 6; i++) {
		const struct nfc_held *h = nfc_link_head(b, 0);

		REQUIRE(h);
		CHECK_EQ(h->sum.magic, i % 3 == 0);
		nfc_link_consume(b, 0);
	}
	CHECK_EQ(b->rx.stored, 0);
	link_rig_free(r);
}

/* The words that name them may be bad as any. */
CASE(shared_over_a_bad_wire)
{
	for (uint32_t seed = 1; seed <= 4; seed++) {
		struct link_rig *r = link_rig_new(&link_quick, NULL);

		if (seed & 1)
			link_rig_takes(r);
		r->shares = true;
		REQUIRE(link_rig_up(r));
		for (uint32_t i = 0; i < 2; i++) {
			struct nfc_wire_faults f = {
				.seed = 10 * seed + i,
				.flip = link_rig_chance(3e-3),
				.drop = link_rig_chance(3e-3),
				.repeat = link_rig_chance(3e-3)
			};

			nfc_wire_break(&r->side[i].wire, &f);
		}
		link_rig_traffic(r, 2000, 500);
		CHECK(r->side[0].end.count[NFC_LINK_REPEATED] > 0);
		CHECK_EQ(r->side[0].end.count[NFC_LINK_DROPPED] +
				 r->side[1].end.count[NFC_LINK_DROPPED],
			 0);
		link_rig_free(r);
	}
}

/* A bit of a shared payload that is another is found, and asked for. */
CASE(a_shared_payload_that_changed)
{
	struct link_rig *r = link_rig_new(&link_quick, NULL);
	struct nfc_link_end *a = &r->side[0].end, *b = &r->side[1].end;

	r->shares = true;
	REQUIRE(link_rig_up(r));
	for (uint32_t i = 0; i < 40; i++) {
		struct nfc_word *word;

		REQUIRE(link_rig_send(&r->side[0], 0, 1000));
		nfc_fifo_run(&a->tx.buffer,
			     nfc_fifo_at(&a->tx.buffer, a->tx.buffer.first)->at +
				     i % 20,
			     1, &word);
		word->lo ^= 1ull << i;
		link_rig_step(r, 500);
		CHECK_EQ(b->count[NFC_LINK_BAD_PACKETS], i + 1);
		CHECK_EQ(r->side[1].came, i);
		word->lo ^= 1ull << i;
		for (int n = 0; n < 20; n++)
			link_rig_step(r, 500);
		CHECK_EQ(r->side[1].came, i + 1);
	}
	link_rig_free(r);
}

/* A START that names a place which the other end has not, or shares nobody. */
CASE(places_that_lie)
{
	struct link_rig *r = link_rig_new(&link_quick, NULL);
	struct nfc_link_end *b = &r->side[1].end;
	uint64_t end = b->config.buffer;

	REQUIRE(link_rig_up(r));
	link_rig_forge(r, NFC_WORD_START,
		       16 | (end + 1) << NFC_START_SHARED_SHIFT, 0);
	link_rig_forge(r, NFC_WORD_START,
		       16 | 0xffffull << NFC_START_SHARED_SHIFT, 0);
	link_rig_step(r, 1000);
	CHECK_EQ(b->count[NFC_LINK_MALFORMED], 2);
	/* the last that there is: its words continue at the first */
	link_rig_forge(r, NFC_WORD_START, 256 | end << NFC_START_SHARED_SHIFT,
		       0);
	link_rig_step(r, 1000);
	CHECK_EQ(b->count[NFC_LINK_MALFORMED], 2);
	r->side[1].port.shared = NULL; /* as from another process */
	link_rig_forge(r, NFC_WORD_START, 16 | 1ull << NFC_START_SHARED_SHIFT,
		       0);
	link_rig_step(r, 1000);
	CHECK_EQ(b->count[NFC_LINK_MALFORMED], 3);
	link_rig_traffic(r, 20, 500);
	link_rig_free(r);
}

/*
 * A buffer that may still be read is not written: who begins a session may send when the
 * other end has read all that was before it, and not sooner.
 */
CASE(nothing_shared_is_written)
{
	struct link_rig *r = link_rig_new(&link_quick, NULL);
	struct nfc_link_end *a = &r->side[0].end, *b = &r->side[1].end;

	r->shares = true;
	REQUIRE(link_rig_up(r));
	for (uint32_t i = 0; i < 20; i++) {
		uint64_t behind;

		r->side[0].sent = r->side[1].came; /* what was sent in a session is lost */
		REQUIRE(link_rig_send(&r->side[0], 0, 4096));
		nfc_link_transmit(a);
		behind = atomic_load(&r->side[0].wire.tail);
		nfc_link_restart(a);
		link_rig_alone(r, 0, 3 * link_quick.silence_ns);
		CHECK(!nfc_link_admits(a, 0, NFC_PACKET_WORDS));
		while (!nfc_link_admits(a, 0, NFC_PACKET_WORDS)) {
			nfc_link_receive(b);
			link_rig_drain(&r->side[1]);
			nfc_link_transmit(b);
			nfc_link_receive(a);
			nfc_link_transmit(a);
			r->now += 1000;
		}
		CHECK(atomic_load(&r->side[0].wire.head) >= behind);
		CHECK(link_rig_up(r));
	}
	link_rig_free(r);
}
