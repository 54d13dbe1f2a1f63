// SPDX-License-Identifier: MIT
/* Links whose wires break words, and whose ends stop: nothing is lost, doubled or changed. */
#include "link_rig.h"

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

/* A link that is bad gets up, too: each try of its self-test is short. */
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

/* The last packet is lost, and nothing follows it that would show the gap. */
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
 * lost nothing: nothing is repeated, and the link is not sick.
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

/*
 * An end without a processor for longer than the silence limit first reads all
 * received words.
 */
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

/* A wire that loses all is noticed, and recovers by itself. */
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
		CHECK_EQ(r->side[1].end.reported, 1u << bit);
	}
	link_rig_free(r);
}
