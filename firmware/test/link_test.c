// SPDX-License-Identifier: MIT
/* The parts of links, bring-up, and two ends over a wire without errors. */
#include <string.h>

#include "../port/crc.h"
#include "link_rig.h"

CASE(checksum_is_crc32c)
{
	uint8_t zero[32] = { 0 },
		text[4 * 768 + 40]; /* streams, and what is left */
	nfc_port_crc_fn *crc;

	CHECK_EQ(nfc_crc32c(0, "123456789", 9), 0xe3069283);
	CHECK_EQ(nfc_crc32c(0, zero, 32), 0x8a9136aa); /* RFC 3720, B.4 */
	for (uint32_t i = 0; i < sizeof(text); i++)
		text[i] = (uint8_t)(i * i * 37 >> 3);
	for (uint32_t n = 0; n <= sizeof(text); n++) {
		uint32_t whole = nfc_crc32c(7, text, n);

		CHECK_EQ(nfc_crc32c(nfc_crc32c(7, text, n / 3), text + n / 3,
				    n - n / 3),
			 whole);
		for (uint32_t i = 0; (crc = nfc_port_crc(i)); i++)
			CHECK_EQ(crc(7, text + sizeof(text) - n, n),
				 nfc_crc32c(7, text + sizeof(text) - n, n));
	}
}

CASE(words_go_round_the_end_of_a_fifo)
{
	struct nfc_word memory[128], in[8], out[8] = { 0 };
	struct nfc_fifo f;

	CHECK(nfc_fifo_size(16) <= sizeof(memory));
	nfc_fifo_init(&f, 16, memory);
	for (uint32_t i = 0; i < 8; i++)
		in[i] = link_rig_word(1, i);
	f.end = 12;
	nfc_fifo_write(&f, 0, in, 8);
	nfc_fifo_read(&f, 12, out, 8);
	CHECK(!memcmp(in, out, sizeof(in)));
}

/* A pass that copies: the same bytes, their checksum, and whether one word begins so. */
CASE(copies_are_summed)
{
	const uint64_t mark = NFC_WORD_MAGIC.lo;
	enum { LONG = 70 };
	struct nfc_word from[LONG], to[LONG + 1];
	nfc_port_copy_fn *copy;

	for (uint32_t i = 0; i < LONG; i++)
		from[i] = link_rig_word(1, i);
	for (uint32_t k = 0; (copy = nfc_port_copy(k)); k++)
		for (uint32_t n = 0; n <= LONG; n++) {
			uint64_t size = n * sizeof(*from);
			uint32_t crc = 7;

			memset(to, 0xa5, sizeof(to));
			CHECK(!copy(&crc, to, from, size, mark));
			CHECK_EQ(crc, nfc_crc32c(7, from, size));
			CHECK(!memcmp(to, from, size));
			CHECK_EQ(to[n].hi, 0xa5a5a5a5a5a5a5a5);
			crc = 7;
			CHECK(!copy(&crc, NULL, from, size, mark));
			CHECK_EQ(crc, nfc_crc32c(7, from, size));
			for (uint32_t i = 0; i < n; i++) {
				uint64_t was = from[i].lo;

				from[i].lo = mark;
				CHECK(copy(&crc, to, from, size, mark));
				CHECK(copy(&crc, NULL, from, size, mark));
				from[i].lo = was;
			}
		}
}

CASE(header_keeps_every_field)
{
	struct nfc_packet p = { 0x020001, 0xff00fe, 4096, 0x89abcdef,
				0x7654,	  0x5a,	    0xa5 };
	struct nfc_packet q = nfc_packet_read(nfc_packet_header(&p));

	CHECK_EQ(q.to, p.to);
	CHECK_EQ(q.from, p.from);
	CHECK_EQ(q.size, p.size);
	CHECK_EQ(q.sequence, p.sequence);
	CHECK_EQ(q.epoch, p.epoch);
	CHECK_EQ(q.kind, p.kind);
	CHECK_EQ(q.hops, p.hops);
}

CASE(configurations_that_make_no_sense)
{
	static const struct nfc_link_config bad[] = {
		{ .depth = 256 },
		{ .depth = 1000 },
		{ .depth = 1 << 16 },
		{ .buffer = 300 },
		{ .buffer = 1 << 16 },
		{ .flow = 2 },
		{ .period = 2 },
		{ .test = 1 << 16 },
		{ .yellow = 2048, .depth = 1024 },
		{ .window = 100 },
		{ .beat_ns = 100, .silence_ns = 200 },
	};

	for (uint32_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
		struct nfc_link_config c = bad[i];

		CHECK_EQ(nfc_link_check(&c), -NFC_EINVAL);
	}
}

/* Bring-up takes ALIGN, ALIGN OK and a self-test; without a neighbour it waits. */
CASE(alignment)
{
	struct link_rig *r = link_rig_new(&link_quick, NULL);

	r->generation = 0;
	for (int i = 0; i < 100; i++)
		link_rig_step(r, 100000);
	CHECK_EQ(r->side[0].end.state, NFC_LINK_DOWN);
	CHECK_EQ(r->side[0].end.count[NFC_LINK_WORDS_SENT], 0);
	r->generation = 2;
	CHECK(link_rig_up(r));
	CHECK_EQ(r->side[0].end.peer, r->side[1].end.session);
	CHECK_EQ(r->side[1].end.peer, r->side[0].end.session);
	r->generation = 0; /* it is lost, with what it carried */
	REQUIRE(link_rig_send(&r->side[0], 0, 100));
	link_rig_step(r, 1);
	CHECK_EQ(r->side[0].end.state, NFC_LINK_DOWN);
	CHECK_EQ(nfc_link_level(&r->side[0].end), NFC_DIAG_BROKEN);
	link_rig_free(r);
}

/* An end that began again takes the other along; nothing of before is taken for new. */
CASE(one_end_begins_again)
{
	struct link_rig *r = link_rig_new(&link_quick, NULL);

	REQUIRE(link_rig_up(r));
	for (uint32_t i = 0; i < 20; i++) {
		struct link_side *s = &r->side[i & 1];
		struct link_side *other = &r->side[!(i & 1)];

		REQUIRE(link_rig_send(s, 0, 200));
		nfc_link_restart(&r->side[i >> 1 & 1].end);
		CHECK(link_rig_up(r));
		s->sent = other->came; /* the first was lost, or it arrived */
		REQUIRE(link_rig_send(s, 1, 300));
		for (int n = 0; n < 100; n++)
			link_rig_step(r, 1000);
		CHECK_EQ(other->came, s->sent);
	}
	link_rig_free(r);
}

CASE(peers_that_do_not_fit)
{
	for (int what = 0; what < 4; what++) {
		struct link_rig *r = link_rig_new(&link_quick, NULL);
		struct nfc_link_end *a = &r->side[0].end;

		switch (what) {
		case 0:
			a->torus = 7;
			break;
		case 1:
			a->index = 2;
			break;
		case 2:
			a->config.flow = NFC_FLOW_CLASSIC;
			break;
		case 3:
			a->expect = 0x010203; /* the other is 0 */
			break;
		}
		CHECK(!link_rig_up(r));
		CHECK(a->count[NFC_LINK_REFUSED] > 0);
		link_rig_free(r);
	}
}

CASE(packets_both_ways)
{
	struct link_rig *r = link_rig_new(&link_quick, NULL);

	REQUIRE(link_rig_up(r));
	link_rig_traffic(r, 3000, 500);
	for (int i = 0; i < 2; i++) {
		const uint64_t *n = r->side[i].end.count;

		CHECK_EQ(n[NFC_LINK_BAD_PACKETS] + n[NFC_LINK_BAD_CONTROLS] +
				 n[NFC_LINK_BAD_CREDITS] + n[NFC_LINK_OVERRUNS] +
				 n[NFC_LINK_MALFORMED] + n[NFC_LINK_DROPPED],
			 0);
		CHECK_EQ(n[NFC_LINK_REPEATED], 0);
		CHECK_EQ(n[NFC_LINK_RECEIVED], 3000);
		CHECK_EQ(nfc_link_level(&r->side[i].end), NFC_DIAG_NORMAL);
	}
	link_rig_free(r);
}

/* Receivers that take little at a time never hold more than they have room for. */
CASE(a_slow_receiver)
{
	for (uint32_t flow = 0; flow <= NFC_FLOW_CLASSIC; flow++) {
		struct nfc_link_config c = link_quick;
		struct link_rig *r;

		c.flow = flow;
		c.depth = 512;
		c.wait_ns = 100;
		r = link_rig_new(&c, NULL);
		REQUIRE(link_rig_up(r));
		r->drained = 1;
		link_rig_traffic(r, 1000, 200);
		CHECK_EQ(r->side[0].end.count[NFC_LINK_OVERRUNS], 0);
		CHECK_EQ(r->side[1].end.count[NFC_LINK_OVERRUNS], 0);
		link_rig_free(r);
	}
}

static void test_ends(struct link_rig *r)
{
	struct nfc_link_end *l = &r->side[0].end;

	for (int i = 0; i < 1000000 && (l->test_left || l->test_words); i++)
		link_rig_step(r, 500);
	CHECK_EQ(l->test_left + l->test_words, 0);
}

/* A test of a link that is up: it counts words, and packets do not notice. */
CASE(self_test_between_packets)
{
	struct link_rig *r = link_rig_new(&link_quick, NULL);
	struct nfc_link_end *l = &r->side[0].end;
	struct nfc_wire_faults f = { .seed = 5, .flip = link_rig_chance(1e-3) };
	uint64_t before;

	nfc_link_test(l, 1000); /* it is not up */
	REQUIRE(link_rig_up(r));
	before = l->count[NFC_LINK_TESTED];
	nfc_link_test(l, 1000);
	link_rig_traffic(r, 1000, 500);
	test_ends(r);
	CHECK_EQ(l->count[NFC_LINK_TESTED] - before, 1000 * NFC_LINK_TEST_WORDS);
	CHECK_EQ(l->count[NFC_LINK_TEST_WRONG], 0);
	CHECK_EQ(l->count[NFC_LINK_REPEATED] +
			 r->side[1].end.count[NFC_LINK_BAD_PACKETS],
		 0);

	nfc_wire_break(&r->side[0].wire, &f);
	before = l->count[NFC_LINK_TESTED];
	nfc_link_test(l, 1000);
	test_ends(r);
	before = l->count[NFC_LINK_TESTED] - before;
	CHECK_EQ(before, 1000 * NFC_LINK_TEST_WORDS);
	CHECK(l->count[NFC_LINK_TEST_WRONG] > before / 2000);
	CHECK(l->count[NFC_LINK_TEST_WRONG] < before / 500);

	nfc_link_test(l, 1000);
	link_rig_step(r, 500);
	r->generation = 0;
	link_rig_step(r, 500);
	CHECK_EQ(l->test_left + l->test_words, 0);
	link_rig_free(r);
}

/* A word behind a burst is none of it: it is of a packet whose start was lost. */
CASE(a_burst_ends_with_its_last_word)
{
	struct link_rig *r = link_rig_new(&link_quick, NULL);
	struct nfc_link_end *b = &r->side[1].end;
	uint32_t burst = 7, prbs = (burst * 0x9e3779b1u & 0x7fffffff) | 1;
	struct nfc_word word[3];

	REQUIRE(link_rig_up(r));
	for (int i = 0; i < 2; i++)
		word[i] = nfc_test_next(&prbs);
	word[2] = (struct nfc_word){ 1, 2 };
	link_rig_forge(r, NFC_WORD_TEST, burst | 2 << 16, 0);
	link_rig_put(&r->side[0].wire, word, 3, r->now);
	nfc_link_receive(b);
	CHECK(b->pending.test_ok);
	CHECK_EQ(b->pending.test_burst, burst);
	CHECK_EQ(b->pending.test_wrong, 0);
	link_rig_traffic(r, 10, 500);
	link_rig_free(r);
}

/* A bad wire and a test at once: packets still are not lost, doubled or changed. */
CASE(self_test_on_a_bad_wire)
{
	struct link_rig *r = link_rig_new(&link_quick, NULL);
	struct nfc_link_end *l = &r->side[0].end;
	struct nfc_wire_faults f = { .seed = 9,
				     .flip = link_rig_chance(1e-3),
				     .drop = link_rig_chance(1e-3),
				     .repeat = link_rig_chance(1e-3) };

	REQUIRE(link_rig_up(r));
	nfc_wire_break(&r->side[0].wire, &f);
	nfc_link_test(l, 200);
	link_rig_traffic(r, 1000, 500);
	test_ends(r);
	CHECK(l->count[NFC_LINK_TEST_WRONG] > 0);
	link_rig_free(r);
}
