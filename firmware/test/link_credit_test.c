// SPDX-License-Identifier: MIT
/*
 * Words of a hostile peer, credits first, and the rate that credits leave of
 * a wire.
 */
#include <stdio.h>

#include "link_rig.h"

/* Take a word from a wire: false: none has arrived. */
static bool take_word(struct nfc_wire *w, struct nfc_word *word, uint64_t now)
{
	uint32_t n;
	const struct nfc_word *from = nfc_wire_peek(w, &n, now);

	if (!n)
		return false;
	*word = *from;
	nfc_wire_release(w, 1);
	return true;
}

/* Credits that run backwards, or are for more than was sent, change nothing. */
CASE(credits_that_lie)
{
	struct link_rig *r = link_rig_new(&link_quick, NULL);
	struct nfc_sender *tx = &r->side[1].end.tx;
	struct nfc_sender before;

	REQUIRE(link_rig_up(r));
	link_rig_traffic(r, 50, 500);
	for (int i = 0; i < 100; i++)
		link_rig_step(r, 1000);
	before = *tx;
	for (uint32_t vc = 0; vc < NFC_VCS; vc++) {
		uint64_t fields = (uint64_t)(tx->buffer.first & 0xfff) << 48;

		for (uint32_t i = 0; i < NFC_VCS; i++)
			fields |= (uint64_t)(tx->consumed[i] & 0xffff) << 16 * i;
		link_rig_forge(r, NFC_WORD_CREDIT,
			       fields ^ (uint64_t)0x8000 << 16 * vc, 0);
		link_rig_forge(r, NFC_WORD_CREDIT,
			       (fields & ~(0xffffull << 16 * vc)) |
				       ((tx->consumed[vc] - 1ull) & 0xffff)
					       << 16 * vc,
			       0);
		link_rig_forge(r, NFC_WORD_NAK, fields + (1ull << 48), 0);
	}
	link_rig_step(r, 1000);
	link_rig_step(r, 1000);
	CHECK_EQ(r->side[1].end.count[NFC_LINK_BAD_CREDITS], 9);
	CHECK_EQ(tx->buffer.first, before.buffer.first);
	for (uint32_t vc = 0; vc < NFC_VCS; vc++)
		CHECK_EQ(tx->consumed[vc], before.consumed[vc]);
	link_rig_traffic(r, 100, 500);
	link_rig_free(r);
}

/* Answers to no question, or to an old one, repeat nothing; questions cost answers. */
CASE(answers_that_lie)
{
	struct link_rig *r = link_rig_new(&link_quick, NULL);
	const uint64_t *n = r->side[1].end.count;

	REQUIRE(link_rig_up(r));
	for (uint32_t i = 0; i < 200; i++) {
		link_rig_forge(r, NFC_WORD_ANSWER, i % 3, 0);
		link_rig_forge(r, NFC_WORD_ASK, i, 0);
		REQUIRE(link_rig_send(&r->side[1], 0, 100));
		link_rig_step(r, 100);
		link_rig_step(r, 100);
	}
	for (uint32_t i = 0; i < 50; i++)
		link_rig_step(r, 1000);
	CHECK_EQ(r->side[0].came, 200);
	CHECK_EQ(n[NFC_LINK_REPEATED], 0);
	CHECK_EQ(n[NFC_LINK_TIMEOUTS], 0);
	CHECK_EQ(r->side[1].end.state, NFC_LINK_UP);
	link_rig_free(r);
}

/* A header with a wrong length is taken from the wire, and given to nobody. */
CASE(lengths_that_lie)
{
	struct link_rig *r = link_rig_new(&link_quick, NULL);
	struct nfc_link_end *a = &r->side[0].end, *b = &r->side[1].end;
	static const uint32_t sizes[] = { 0, 1, 48, 65, 4097, 0x1fff, 0xffff };
	static const struct nfc_word nothing[4];

	REQUIRE(link_rig_up(r));
	for (uint32_t i = 0; i < sizeof(sizes) / sizeof(*sizes); i++) {
		struct nfc_packet p = { .size = sizes[i] };
		struct nfc_sum sum = { 0 };

		REQUIRE(nfc_link_admits(a, 0, 4));
		nfc_payload_write(&r->side[0].port, &a->tx.buffer, 0, nothing,
				  4, &sum);
		nfc_link_queue(a, 0, nfc_packet_header(&p), 4, sum);
		link_rig_step(r, 1000);
		link_rig_step(r, 1000);
		CHECK_EQ(b->count[NFC_LINK_MALFORMED], i + 1);
		CHECK(!nfc_link_head(b, 0));
	}
	/* a start that names too many words, or a channel there is not */
	link_rig_forge(r, NFC_WORD_START, 257, 0);
	link_rig_forge(r, NFC_WORD_START, 3 << 16, 0);
	link_rig_step(r, 1000);
	CHECK_EQ(b->count[NFC_LINK_MALFORMED], 9);
	link_rig_traffic(r, 20, 500); /* and the room they took was given back */
	CHECK_EQ(b->count[NFC_LINK_RESTARTS], 1);
	link_rig_free(r);
}

/* A peer that sends Magic as data, with a checksum that is right, has sent no packet. */
CASE(magic_that_is_data)
{
	struct link_rig *r = link_rig_new(&link_quick, NULL);
	struct nfc_link_end *a = &r->side[0].end, *b = &r->side[1].end;
	struct nfc_packet p = { .size = 20 * NFC_WORD_SIZE };
	struct nfc_word payload[20] = { 0 };
	struct nfc_sum sum = { 0 };

	REQUIRE(link_rig_up(r));
	nfc_payload_write(&r->side[0].port, &a->tx.buffer, 0, payload, 20, &sum);
	CHECK(!sum.magic);
	sum = (struct nfc_sum){ 0 };
	payload[11] = NFC_WORD_MAGIC;
	nfc_payload_write(&r->side[0].port, &a->tx.buffer, 0, payload, 20, &sum);
	CHECK(sum.magic);
	sum.magic = false;
	nfc_link_queue(a, 0, nfc_packet_header(&p), 20, sum);
	link_rig_step(r, 1000);
	CHECK_EQ(b->count[NFC_LINK_RECEIVED], 0);
	CHECK(b->count[NFC_LINK_BAD_CONTROLS] > 0);
	link_rig_free(r);
}

/* A sender that does not care for credits is not believed. */
CASE(packets_without_credit)
{
	struct link_rig *r = link_rig_new(&link_quick, NULL);
	struct nfc_link_end *a = &r->side[0].end, *b = &r->side[1].end;

	REQUIRE(link_rig_up(r));
	r->drained = 0;
	for (int i = 0; i < 40; i++) {
		a->tx.consumed[0] = a->tx.sent[0];
		a->tx.window = 1 << 20;
		link_rig_send(&r->side[0], 0, 4096);
		link_rig_step(r, 1000);
	}
	CHECK(b->count[NFC_LINK_OVERRUNS] > 0);
	CHECK(b->rx.fifo[0].end - b->rx.fifo[0].begin <= b->config.depth);
	link_rig_free(r);
}

/* Efficiency of a saturated link where a nanosecond is a cycle. */
static double efficiency(uint32_t flow, uint32_t depth)
{
	static const struct nfc_wire_config cycles = {
		.words = 4096, .slack = 4, .word_ps = 1000, .delay_ns = 55
	};
	struct nfc_link_config c = {
		.flow = flow,
		.depth = depth,
		.buffer = 8192,
		.period = 100000,
		.wait_ns = 145,
		.credit_ns = 35,
		.beat_ns = 100000,
		.retry_ns = 20000,
		.silence_ns = 10000000,
	};
	struct link_rig *r = link_rig_new(&c, &cycles);
	uint64_t began, bytes;

	CHECK(link_rig_up(r));
	for (int t = 0; t < 20000; t++) {
		while (link_rig_send(&r->side[0], 0, 4096))
			;
		link_rig_step(r, 1);
	}
	began = r->now;
	bytes = r->side[1].end.count[NFC_LINK_BYTES_RECEIVED];
	for (int t = 0; t < 100000; t++) {
		while (link_rig_send(&r->side[0], 0, 4096))
			;
		link_rig_step(r, 1);
	}
	bytes = r->side[1].end.count[NFC_LINK_BYTES_RECEIVED] - bytes;
	began = r->now - began;
	link_rig_free(r);
	return (double)bytes / NFC_WORD_SIZE / (double)began;
}

/* Cumulative credits need no waiting time: full rate at 512 words. */
CASE(cumulative_credits_fill_the_link)
{
	double small = efficiency(NFC_FLOW_CUMULATIVE, 512);
	double frame = 256.0 / 270.0; /* 9 Magic words in a packet are stuffed */

	printf("cumulative, 512 words: %.3f; classic: %.3f; 2048: %.3f\n",
	       small, efficiency(NFC_FLOW_CLASSIC, 512),
	       efficiency(NFC_FLOW_CLASSIC, 2048));
	CHECK(small > 0.98 * frame);
	CHECK(efficiency(NFC_FLOW_CLASSIC, 512) < 0.7 * frame);
	CHECK(efficiency(NFC_FLOW_CLASSIC, 2048) > 0.88 * frame);
}

/* Words that the FIFO holds when a stopped sender sends again. */
static uint32_t resumes_at(uint32_t yellow)
{
	struct nfc_link_config c = link_quick;
	struct link_rig *r;
	struct nfc_link_end *b;
	uint32_t held = 0;
	uint64_t before;

	c.flow = NFC_FLOW_CLASSIC;
	c.depth = 2048;
	c.yellow = yellow;
	r = link_rig_new(&c, NULL);
	b = &r->side[1].end;
	CHECK(link_rig_up(r));
	r->drained = 0;
	for (int t = 0; t < 200; t++) {
		while (link_rig_send(&r->side[0], 0, 4096))
			;
		link_rig_step(r, 1000);
	}
	before = b->count[NFC_LINK_RECEIVED];
	CHECK(b->rx.fifo[0].end - b->rx.fifo[0].begin >
	      c.depth - 2 * NFC_PACKET_WORDS);
	while (b->count[NFC_LINK_RECEIVED] == before &&
	       b->rx.fifo[0].end != b->rx.fifo[0].begin) {
		r->drained = 1;
		link_rig_step(r, 0);
		r->drained = 0;
		held = b->rx.fifo[0].end - b->rx.fifo[0].begin;
		for (int t = 0; t < 100; t++) {
			link_rig_send(&r->side[0], 0, 4096);
			link_rig_step(r, 1000);
		}
	}
	CHECK(b->count[NFC_LINK_RECEIVED] > before);
	CHECK(b->count[NFC_LINK_WORDS_TAKEN] > b->count[NFC_LINK_RECEIVED]);
	CHECK_EQ(b->count[NFC_LINK_OVERRUNS], 0);
	link_rig_free(r);
	return held;
}

/* Classic: a sender that stopped at T_RED resumes once no more than T_YEL is held. */
CASE(a_stopped_sender_resumes_at_yellow)
{
	static const uint32_t yellow[] = { 0, 300, 512, 600, 1024, 1500 };

	for (uint32_t i = 0; i < sizeof(yellow) / sizeof(*yellow); i++) {
		uint32_t held = resumes_at(yellow[i]);

		CHECK(held <= yellow[i]);
		CHECK(held + NFC_PACKET_WORDS > yellow[i]);
	}
}

/* However small, no more packets are under way than there are numbers. */
CASE(many_small_packets)
{
	struct nfc_link_config c = link_quick;
	struct link_rig *r;

	c.depth = c.buffer = c.window = 1 << 15;
	r = link_rig_new(&c, NULL);
	REQUIRE(link_rig_up(r));
	for (uint32_t i = 0; i < NFC_LINK_PACKETS_MAX; i++)
		REQUIRE(link_rig_send(&r->side[0], 0, 16));
	CHECK(!link_rig_send(&r->side[0], 0, 16));
	CHECK(nfc_fifo_room(&r->side[0].end.tx.buffer, NFC_PACKET_WORDS));
	for (uint32_t i = 0; i < 1000; i++)
		link_rig_step(r, 100);
	CHECK_EQ(r->side[1].came, NFC_LINK_PACKETS_MAX);
	link_rig_free(r);
}

/* Words that are late are late once: those long after them are on time. */
CASE(a_wire_that_stalls_catches_up)
{
	static const struct nfc_wire_config config = { .words = 64 };
	struct nfc_wire_faults all = { .seed = 1,
				       .stall = UINT32_MAX,
				       .stall_ns = 100 };
	struct nfc_wire_faults none = { .seed = 1 };
	struct nfc_word word = { 1, 2 };
	struct nfc_wire w;

	REQUIRE(nfc_wire_init(&w, &config));
	nfc_wire_break(&w, &all);
	for (uint64_t now = 0; now < 10; now++) {
		link_rig_put(&w, &word, 1, now);
		CHECK(!take_word(&w, &word, now));
	}
	CHECK(!take_word(&w, &word, 99));
	for (uint64_t now = 100; now < 110; now++)
		CHECK(take_word(&w, &word, now));
	nfc_wire_break(&w, &none);
	link_rig_put(&w, &word, 1, 200);
	CHECK(take_word(&w, &word, 200));
	nfc_wire_free(&w);
}
