// SPDX-License-Identifier: MIT
/* Packets of one frame, as their payloads stay in the sender's buffer. */
#include "link_rig.h"

enum {
	PACKETS = 6, /* of a train here */
	BYTES = 500,
	FRAME = 3 + 2 * PACKETS, /* Magic, TRAIN, what names them, footer */
};

static struct link_rig *shared_rig(void)
{
	struct link_rig *r = link_rig_new(&link_quick, NULL);

	r->shares = true;
	CHECK(link_rig_up(r));
	return r;
}

static void send_train(struct link_side *s)
{
	for (uint32_t i = 0; i < PACKETS; i++)
		REQUIRE(link_rig_send(s, 0, BYTES));
}

static void settle(struct link_rig *r)
{
	for (int i = 0; i < 50; i++)
		link_rig_step(r, 1000);
}

/* All that wait for one virtual channel are one frame, up to its most. */
CASE(packets_go_in_one_frame)
{
	struct link_rig *r = shared_rig();
	struct link_side *a = &r->side[0];
	uint64_t before = atomic_load(&a->wire.tail);

	send_train(a);
	nfc_link_transmit(&a->end);
	CHECK_EQ(atomic_load(&a->wire.tail) - before, FRAME);
	settle(r);
	CHECK_EQ(r->side[1].came, PACKETS);
	CHECK_EQ(a->end.count[NFC_LINK_SENT], PACKETS);
	CHECK_EQ(a->end.count[NFC_LINK_REPEATED], 0);

	before = atomic_load(&a->wire.tail);
	for (uint32_t i = 0; i < NFC_LINK_TRAIN + 1; i++)
		REQUIRE(link_rig_send(a, 1, 16 * NFC_LINK_SHARED));
	nfc_link_transmit(&a->end);
	CHECK_EQ(atomic_load(&a->wire.tail) - before,
		 3 + 2 * NFC_LINK_TRAIN + NFC_FRAME_WORDS);
	settle(r);
	CHECK_EQ(r->side[1].came, PACKETS + NFC_LINK_TRAIN + 1);
	link_rig_free(r);
}

/* Another channel, or a payload that is not shared, begins a frame of its own. */
CASE(what_ends_a_train)
{
	struct link_rig *r = shared_rig();
	struct link_side *a = &r->side[0];
	uint64_t before = atomic_load(&a->wire.tail);

	REQUIRE(link_rig_send(a, 0, BYTES));
	REQUIRE(link_rig_send(a, 0, BYTES));
	REQUIRE(link_rig_send(a, 1, BYTES));
	REQUIRE(link_rig_send(a, 1, 16));
	nfc_link_transmit(&a->end);
	CHECK_EQ(atomic_load(&a->wire.tail) - before,
		 3 + 4 + NFC_FRAME_WORDS + NFC_FRAME_WORDS + 1);
	settle(r);
	CHECK_EQ(r->side[1].came, 4);
	link_rig_free(r);
}

/*
 * After a change of any word of the frame all packets are sent again, and none
 * arrives twice.
 */
CASE(each_word_of_a_train_may_be_bad)
{
	for (uint32_t i = 0; i < FRAME; i++) {
		struct link_rig *r = shared_rig();
		struct link_side *a = &r->side[0];
		uint64_t at = atomic_load(&a->wire.tail) + i;

		send_train(a);
		nfc_link_transmit(&a->end);
		a->wire.word[at % a->wire.config.words].lo ^= 1ull << i * 3;
		settle(r);
		CHECK_EQ(r->side[1].came, PACKETS);
		CHECK_EQ(a->end.count[NFC_LINK_REPEATED], PACKETS);
		CHECK_EQ(a->end.count[NFC_LINK_DROPPED], 0);
		link_rig_free(r);
	}
}

/* A payload that is another ends the train there: it and those behind it are repeated. */
CASE(each_packet_of_a_train_may_be_bad)
{
	for (uint32_t i = 0; i < PACKETS; i++) {
		struct link_rig *r = shared_rig();
		struct link_side *a = &r->side[0], *b = &r->side[1];
		struct nfc_fifo *f = &a->end.tx.buffer;
		struct nfc_word *word;

		if (i & 1)
			link_rig_takes(r);
		send_train(a);
		nfc_fifo_run(f, nfc_fifo_at(f, f->first + i)->at + 5 * i, 1,
			     &word);
		word->hi ^= 1ull << i;
		nfc_link_transmit(&a->end);
		nfc_link_receive(&b->end);
		link_rig_drain(b);
		CHECK_EQ(b->came, i);
		CHECK_EQ(b->end.count[NFC_LINK_BAD_PACKETS], 1);
		word->hi ^= 1ull << i;
		settle(r);
		CHECK_EQ(b->came, PACKETS);
		CHECK_EQ(a->end.count[NFC_LINK_REPEATED], PACKETS - i);
		link_rig_free(r);
	}
}

/* A train of which some arrived before: those are acked again, and the others taken. */
CASE(a_train_that_came_before)
{
	for (uint32_t i = 1; i <= PACKETS; i++) {
		struct link_rig *r = shared_rig();
		struct link_side *a = &r->side[0], *b = &r->side[1];

		for (uint32_t n = 0; n < PACKETS; n++) {
			REQUIRE(link_rig_send(a, 0, BYTES));
			if (n + 1 != i)
				continue;
			nfc_link_transmit(&a->end);
			nfc_link_receive(&b->end);
			link_rig_drain(b);
		}
		CHECK_EQ(b->came, i);
		nfc_sender_go_back(&a->end); /* before the ack */
		settle(r);
		CHECK_EQ(b->came, PACKETS);
		CHECK_EQ(a->end.count[NFC_LINK_REPEATED], i);
		CHECK_EQ(b->end.count[NFC_LINK_BAD_PACKETS], 0);
		link_rig_free(r);
	}
}

/* A train behind one that was lost is asked for. */
CASE(a_train_that_is_ahead)
{
	struct link_rig *r = shared_rig();
	struct link_side *a = &r->side[0], *b = &r->side[1];

	send_train(a);
	nfc_link_transmit(&a->end);
	atomic_store(&a->wire.head, atomic_load(&a->wire.tail)); /* it is lost */
	send_train(a);
	nfc_link_transmit(&a->end);
	nfc_link_receive(&b->end);
	CHECK(b->end.pending.nak);
	CHECK_EQ(b->end.rx.stored, 0);
	settle(r);
	CHECK_EQ(b->came, 2 * PACKETS);
	link_rig_free(r);
}

/* The header of a packet may be Magic, as its sender chooses the contents. */
CASE(a_train_with_magic)
{
	struct link_rig *r = shared_rig();
	struct link_side *a = &r->side[0], *b = &r->side[1];
	struct nfc_word payload[NFC_LINK_SHARED] = { { 1, 2 } };
	struct nfc_sum sum = { 0 };
	uint32_t before = b->end.rx.consumed[0];

	REQUIRE(link_rig_send(a, 0, BYTES));
	nfc_payload_write(&a->port, &a->end.tx.buffer, 0, payload,
			  NFC_LINK_SHARED, &sum);
	nfc_link_queue(&a->end, 0, NFC_WORD_MAGIC, NFC_LINK_SHARED, sum);
	REQUIRE(link_rig_send(a, 0, BYTES));
	settle(r);
	CHECK_EQ(b->end.count[NFC_LINK_MALFORMED], 1); /* its size is none */
	CHECK_EQ(b->came, 2);
	CHECK_EQ(b->end.rx.consumed[0] - before,
		 2 * nfc_words(BYTES) + NFC_LINK_SHARED);
	CHECK_EQ(b->end.count[NFC_LINK_BAD_PACKETS], 0);
	link_rig_free(r);
}

/* A TRAIN that names no packets, too many, no place or no channel. */
CASE(trains_that_lie)
{
	struct link_rig *r = shared_rig();
	struct nfc_link_end *b = &r->side[1].end;
	const uint64_t place = 1ull << NFC_START_SHARED_SHIFT;
	const uint64_t bad[] = { place, place | (NFC_LINK_TRAIN + 1), 2,
				 place | 2 | 5 << 16,
				 0xffffull << NFC_START_SHARED_SHIFT | 2 };

	for (uint32_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
		link_rig_forge(r, NFC_WORD_TRAIN, bad[i], 0);
		link_rig_step(r, 1000);
		CHECK_EQ(b->count[NFC_LINK_MALFORMED], i + 1);
	}
	r->side[1].port.shared = NULL; /* as from another process */
	link_rig_forge(r, NFC_WORD_TRAIN, place | 2, 0);
	link_rig_step(r, 1000);
	r->shares = false;
	CHECK_EQ(b->count[NFC_LINK_MALFORMED], sizeof(bad) / sizeof(*bad) + 1);
	link_rig_traffic(r, 20, 500);
	link_rig_free(r);
}

/* A train whose entry has more words than a packet: nothing of it is taken, and nothing held. */
CASE(entries_that_lie)
{
	struct link_rig *r = shared_rig();
	struct nfc_link_end *a = &r->side[0].end, *b = &r->side[1].end;
	uint64_t fields = 1 | 1ull << NFC_START_SHARED_SHIFT;
	uint64_t start = (uint64_t)NFC_WORD_TRAIN << 60 | fields;
	struct nfc_word word[3] = {
		{ 1, 2 }, { (uint64_t)4000 << NFC_TRAIN_WORDS_SHIFT, 0 }
	};

	word[2] = nfc_train_footer(a, start, word, 2);
	link_rig_forge(r, NFC_WORD_TRAIN, fields, 0);
	link_rig_put(&r->side[0].wire, word, 3, r->now);
	link_rig_step(r, 1000);
	CHECK_EQ(b->count[NFC_LINK_MALFORMED], 1);
	CHECK_EQ(b->count[NFC_LINK_BAD_PACKETS], 0);
	CHECK_EQ(b->rx.stored, 0);
	link_rig_free(r);
}
