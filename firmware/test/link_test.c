// SPDX-License-Identifier: MIT
/* Two ends of a link over a wire that does what wires do. */
#include <stdio.h>
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

/* T0 to T3 of the report: lanes 0 and 3 are a cycle ahead of 1 and 2. */
CASE(lanes_that_are_not_of_one_length)
{
	struct nfc_deskew d = { 0 };
	struct nfc_word w;

	/* T0: the mark arrives on lanes 0 and 3 */
	nfc_deskew_put(&d, 0, 0, true);
	nfc_deskew_put(&d, 3, 0, true);
	CHECK(!nfc_deskew_take(&d, &w));
	/* T1: it is removed there, and arrives on 1 and 2 */
	nfc_deskew_put(&d, 1, 0, true);
	nfc_deskew_put(&d, 2, 0, true);
	CHECK(!nfc_deskew_take(&d, &w));
	/* T2: the first word of 0 and 3 */
	nfc_deskew_put(&d, 0, 0x10, false);
	nfc_deskew_put(&d, 3, 0x13, false);
	CHECK(!nfc_deskew_take(&d, &w));
	/* T3: their second, and the first of 1 and 2: a whole word is read */
	nfc_deskew_put(&d, 0, 0x20, false);
	nfc_deskew_put(&d, 3, 0x23, false);
	nfc_deskew_put(&d, 1, 0x11, false);
	nfc_deskew_put(&d, 2, 0x12, false);
	REQUIRE(nfc_deskew_take(&d, &w));
	CHECK(d.reading);
	CHECK_EQ(w.lo, 0x1100000010);
	CHECK_EQ(w.hi, 0x1300000012);
	CHECK(!nfc_deskew_take(&d, &w));
}

/* Any skew up to the depth is removed; more is noticed, and mended by a mark. */
CASE(lanes_apart_by_every_distance)
{
	for (uint32_t skew = 0; skew <= NFC_DESKEW_DEPTH + 1; skew++) {
		struct nfc_deskew d = { 0 };
		struct nfc_word w;
		uint32_t words = 0;

		for (uint32_t t = 0; t < 100; t++) {
			for (uint32_t lane = 0; lane < NFC_LANES; lane++) {
				uint32_t late = lane == 2 ? skew : 0;

				if (t >= late)
					nfc_deskew_put(&d, lane, t - late,
						       t == late);
			}
			while (nfc_deskew_take(&d, &w)) {
				words++;
				CHECK_EQ(w.lo, words * 0x100000001ull);
				CHECK_EQ(w.hi, words * 0x100000001ull);
			}
		}
		CHECK_EQ(words, skew < NFC_DESKEW_DEPTH ? 99 - skew : 0);
		CHECK_EQ(d.overflows > 0, skew >= NFC_DESKEW_DEPTH);
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
	r->generation = 0; /* it goes, with what it carried */
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
		s->sent = other->came; /* the first was lost, or it came */
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

/* Words are changed, lost, doubled and late: nothing is lost, doubled or changed. */
static void over_a_bad_wire(double rate, uint32_t packets, uint32_t flow)
{
	struct nfc_link_config c = link_quick;
	struct link_rig *r;

	c.flow = flow;
	r = link_rig_new(&c, NULL);
	REQUIRE(link_rig_up(r));
	for (uint32_t i = 0; i < 2; i++) {
		struct nfc_wire_faults f = {
			.seed = 77 + i,
			.flip = link_rig_chance(rate),
			.drop = link_rig_chance(rate),
			.repeat = link_rig_chance(rate),
			.stall = link_rig_chance(rate),
			.stall_ns = 10,
		};

		nfc_wire_break(&r->side[i].wire, &f);
	}
	link_rig_traffic(r, packets, 500);
	if (rate * packets > 1) {
		const uint64_t *n = r->side[0].end.count;

		CHECK(n[NFC_LINK_REPEATED] > 0);
		/* what fails again is asked for again, and waits for no timeout */
		CHECK(n[NFC_LINK_TIMEOUTS] <
		      r->side[1].end.count[NFC_LINK_NAKS] / 4);
	}
	CHECK_EQ(r->side[0].end.count[NFC_LINK_DROPPED], 0);
	CHECK_EQ(r->side[1].end.count[NFC_LINK_DROPPED], 0);
	link_rig_free(r);
}

CASE(one_word_in_a_million_is_bad)
{
	over_a_bad_wire(1e-6, 6000, NFC_FLOW_CUMULATIVE);
}

CASE(one_word_in_ten_thousand_is_bad)
{
	over_a_bad_wire(1e-4, 6000, NFC_FLOW_CUMULATIVE);
}

CASE(one_word_in_a_thousand_is_bad)
{
	over_a_bad_wire(1e-3, 6000, NFC_FLOW_CUMULATIVE);
	over_a_bad_wire(1e-3, 3000, NFC_FLOW_CLASSIC);
}

/* A link that is bad comes up, too: each try of its self-test is short. */
CASE(alignment_over_a_bad_wire)
{
	for (uint32_t seed = 1; seed < 40; seed++) {
		struct link_rig *r = link_rig_new(&link_quick, NULL);
		struct nfc_wire_faults f = {
			.seed = seed,
			.flip = link_rig_chance(3e-3),
			.drop = link_rig_chance(3e-3),
			.repeat = link_rig_chance(3e-3),
		};

		nfc_wire_break(&r->side[0].wire, &f);
		f.seed += 1000;
		nfc_wire_break(&r->side[1].wire, &f);
		CHECK(link_rig_up(r));
		link_rig_free(r);
	}
}

/* The last packet is lost, and nothing follows it that would show the gap (P28). */
CASE(the_last_packet_is_lost)
{
	struct link_rig *r = link_rig_new(&link_quick, NULL);
	struct nfc_wire_faults all = { .seed = 1, .drop = UINT32_MAX };
	struct nfc_wire_faults none = { .seed = 1 };

	REQUIRE(link_rig_up(r));
	for (uint32_t i = 1; i <= 20; i++) {
		REQUIRE(link_rig_send(&r->side[0], 0, 64 * i));
		nfc_wire_break(&r->side[i & 1].wire, &all); /* or its ack */
		link_rig_step(r, 100);
		link_rig_step(r, 100);
		nfc_wire_break(&r->side[i & 1].wire, &none);
		for (int n = 0; n < 400 && r->side[1].came < i; n++)
			link_rig_step(r, 1000);
		CHECK_EQ(r->side[1].came, i);
		for (int n = 0; n < 400; n++)
			link_rig_step(r, 1000);
		CHECK_EQ(r->side[0].end.tx.buffer.first,
			 r->side[0].end.tx.buffer.last);
	}
	CHECK(r->side[0].end.count[NFC_LINK_TIMEOUTS] > 0);
	link_rig_free(r);
}

/*
 * A peer that waits for a processor, many times as long as a packet takes to be acked,
 * lost nothing: nothing goes again, and the link is not sick.
 */
CASE(a_peer_without_a_processor)
{
	struct link_rig *r = link_rig_new(&link_quick, NULL);
	const uint64_t *n = r->side[0].end.count;

	REQUIRE(link_rig_up(r));
	link_rig_traffic(r, 10, 500); /* a round trip is measured */
	for (uint32_t i = 0; i < 50; i++) {
		for (uint32_t k = 0; k < 3; k++)
			REQUIRE(link_rig_send(&r->side[0], 0, 1000));
		link_rig_alone(r, 0, 30 * link_quick.retry_ns);
		for (uint32_t k = 0; k < 20; k++)
			link_rig_step(r, 1000);
		CHECK_EQ(r->side[1].came, r->side[0].sent);
		CHECK_EQ(nfc_link_level(&r->side[0].end), NFC_DIAG_NORMAL);
	}
	CHECK_EQ(n[NFC_LINK_REPEATED], 0);
	CHECK_EQ(n[NFC_LINK_TIMEOUTS], 0);
	link_rig_free(r);
}

/* Who waited for a processor longer than silence lasts looks at what came meanwhile. */
CASE(both_without_a_processor)
{
	struct link_rig *r = link_rig_new(&link_quick, NULL);
	uint64_t restarts;

	REQUIRE(link_rig_up(r));
	restarts = r->side[0].end.count[NFC_LINK_RESTARTS];
	for (uint32_t i = 0; i < 5; i++) {
		r->now += 3 * link_quick.silence_ns;
		for (uint32_t k = 0; k < 100; k++)
			link_rig_step(r, 1000);
	}
	CHECK_EQ(r->side[0].end.count[NFC_LINK_RESTARTS], restarts);
	CHECK_EQ(r->side[0].end.state, NFC_LINK_UP);
	link_rig_free(r);
}

/* A wire that loses all is noticed, and comes back by itself. */
CASE(silence_ends_a_link)
{
	struct link_rig *r = link_rig_new(&link_quick, NULL);
	struct nfc_wire_faults all = { .seed = 1, .drop = UINT32_MAX };
	struct nfc_wire_faults none = { .seed = 1 };

	REQUIRE(link_rig_up(r));
	nfc_wire_break(&r->side[0].wire, &all);
	for (int i = 0; i < 1100; i++)
		link_rig_step(r, 1000);
	CHECK(r->side[1].end.state != NFC_LINK_UP);
	CHECK_EQ(nfc_link_level(&r->side[1].end), NFC_DIAG_BROKEN);
	nfc_wire_break(&r->side[0].wire, &none);
	CHECK(link_rig_up(r));
	link_rig_traffic(r, 10, 500);
	link_rig_free(r);
}

/* Errors above a rate make a link sick, and it gets well when they end. */
CASE(errors_make_a_link_sick)
{
	struct link_rig *r = link_rig_new(&link_quick, NULL);
	struct nfc_wire_faults bad = { .seed = 5,
				       .flip = link_rig_chance(2e-3) };
	struct nfc_wire_faults none = { .seed = 1 };

	REQUIRE(link_rig_up(r));
	nfc_wire_break(&r->side[0].wire, &bad);
	link_rig_traffic(r, 2000, 500);
	for (int i = 0; i < 250; i++)
		link_rig_step(r, 1000);
	CHECK_EQ(nfc_link_level(&r->side[1].end), NFC_DIAG_SICK);
	nfc_wire_break(&r->side[0].wire, &none);
	for (int i = 0; i < 1500; i++)
		link_rig_step(r, 1000);
	CHECK_EQ(nfc_link_level(&r->side[1].end), NFC_DIAG_NORMAL);
	link_rig_free(r);
}

/* The diagnostic word rides in each credit, and is the neighbour's, bit by bit. */
CASE(credits_carry_the_diagnostic_word)
{
	struct link_rig *r = link_rig_new(&link_quick, NULL);

	REQUIRE(link_rig_up(r));
	for (uint32_t bit = 0; bit < 32; bit++) {
		r->side[0].end.diagnostic = 1u << bit;
		for (int i = 0; i < 30; i++)
			link_rig_step(r, 1000);
		CHECK_EQ(r->side[1].end.told, 1u << bit);
	}
	link_rig_free(r);
}

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

/* Answers to no question, or to an old one, have nothing go again; questions cost answers. */
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

/* A header whose length lies is taken from the wire, and given to nobody. */
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

/* However small, no more packets are under way than their numbers tell apart. */
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
