// SPDX-License-Identifier: MIT
/*
 * Routes lead where they should, and nothing on them waits for itself: the graph
 * of which channel waits for which has no cycle, whatever is broken.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../link/route.h"
#include "harness.h"

enum {
	PER_NODE = NFC_LINKS * NFC_VCS,
	BIG = 8 * 8 * 8,
	HOPS = 200,
};

/* A rule that is tested: the way on from a node. */
struct fabric;
typedef struct nfc_hop (*rule)(struct fabric *f, uint32_t at, uint32_t from,
			       uint32_t to, uint32_t from_link, uint32_t vc);

struct fabric {
	struct nfc_torus torus;
	uint32_t nodes;
	struct nfc_view *view; /* of each node; NULL: everything is well */
	uint32_t *waits; /* of each channel: bits of channels at its far end */
	uint8_t *mark; /* for the search for cycles */
	uint32_t *stack;
	uint32_t lost; /* pairs that should be joined and are not */
};

static uint32_t bit_of(uint32_t link, uint32_t vc)
{
	return link * NFC_VCS + vc;
}

/* ---- rules ---- */

static struct nfc_hop ordered(struct fabric *f, uint32_t at, uint32_t from,
			      uint32_t to, uint32_t from_link, uint32_t vc)
{
	(void)from_link;
	(void)vc;
	return nfc_route_ordered(&f->torus, at, from, to);
}

static struct nfc_hop no_date_line(struct fabric *f, uint32_t at, uint32_t from,
				   uint32_t to, uint32_t from_link, uint32_t vc)
{
	struct nfc_hop hop = ordered(f, at, from, to, from_link, vc);

	hop.vc = NFC_VC_FIRST;
	return hop;
}

static struct nfc_hop viewed(struct fabric *f, uint32_t at, uint32_t from,
			     uint32_t to, uint32_t from_link, uint32_t vc)
{
	return nfc_view_route(&f->view[at], from, to, from_link, vc);
}

/* Follows dimension order where it can, also on a detour's channel. */
static struct nfc_hop back_in_order(struct fabric *f, uint32_t at, uint32_t from,
				    uint32_t to, uint32_t from_link, uint32_t vc)
{
	struct nfc_hop hop = ordered(f, at, at, to, from_link, vc);

	if (vc != NFC_VC_DETOUR || hop.link == NFC_LINKS ||
	    !nfc_view_usable(f->view, at, hop.link))
		return viewed(f, at, from, to, from_link, vc);
	hop.vc = NFC_VC_DETOUR;
	return hop;
}

/* The detour's ways, without a channel of their own. */
static struct nfc_hop on_channel_0(struct fabric *f, uint32_t at, uint32_t from,
				   uint32_t to, uint32_t from_link, uint32_t vc)
{
	struct nfc_hop hop = viewed(f, at, from, to, from_link, vc);

	if (hop.vc == NFC_VC_DETOUR && hop.link < NFC_LINKS)
		hop.vc = NFC_VC_FIRST;
	return hop;
}

/* ---- the graph ---- */

/* Follow one packet; false: it did not arrive. */
static bool follow(struct fabric *f, rule rule, uint32_t from, uint32_t to)
{
	uint32_t at = from, from_link = NFC_LINKS, vc = 0, last = UINT32_MAX;

	for (int hops = 0; hops < HOPS; hops++) {
		struct nfc_hop hop = rule(f, at, from, to, from_link, vc);

		if (hop.link == NFC_LINKS)
			return at == to;
		if (hop.link == NFC_NO_ROUTE)
			return false;
		if (last != UINT32_MAX)
			f->waits[last] |= 1u << bit_of(hop.link, hop.vc);
		last = at * PER_NODE + bit_of(hop.link, hop.vc);
		at = nfc_torus_neighbour(&f->torus, at, hop.link);
		from_link = hop.link ^ 1;
		vc = hop.vc;
	}
	return false;
}

/* Follow packets on a detour channel to every node. */
static void follow_anything(struct fabric *f, uint32_t at, uint32_t link)
{
	uint32_t to = nfc_torus_neighbour(&f->torus, at, link);

	for (uint32_t i = 0; i < f->nodes; i++) {
		struct nfc_hop hop = nfc_view_route(&f->view[to], at, i,
						    link ^ 1, NFC_VC_DETOUR);

		if (hop.link < NFC_LINKS)
			f->waits[at * PER_NODE + bit_of(link, NFC_VC_DETOUR)] |=
				1u << bit_of(hop.link, hop.vc);
	}
}

static uint32_t far_channel(const struct fabric *f, uint32_t channel,
			    uint32_t bit)
{
	uint32_t link = channel % PER_NODE / NFC_VCS;
	uint32_t to = nfc_torus_neighbour(&f->torus, channel / PER_NODE, link);

	return to * PER_NODE + bit;
}

/* Depth first: a channel that waits for one still open closes a cycle. */
static bool cyclic_from(struct fabric *f, uint32_t first)
{
	enum { NEW, OPEN, DONE };
	uint32_t depth = 0;

	f->stack[depth++] = first;
	while (depth) {
		uint32_t c = f->stack[depth - 1];

		f->mark[c] = OPEN;
		if (!f->waits[c]) {
			f->mark[c] = DONE;
			depth--;
			continue;
		}
		uint32_t bit = (uint32_t)__builtin_ctz(f->waits[c]);
		uint32_t to = far_channel(f, c, bit);

		if (f->mark[to] == OPEN)
			return true;
		f->waits[c] &= f->waits[c] - 1; /* seen */
		if (f->mark[to] == NEW)
			f->stack[depth++] = to;
	}
	return false;
}

static bool cyclic(struct fabric *f)
{
	memset(f->mark, 0, f->nodes * PER_NODE);
	for (uint32_t c = 0; c < f->nodes * PER_NODE; c++)
		if (f->waits[c] && !f->mark[c] && cyclic_from(f, c))
			return true;
	return false;
}

/* All pairs by a rule: is there a cycle? */
static bool cycle_of(struct fabric *f, rule rule)
{
	memset(f->waits, 0, f->nodes * PER_NODE * sizeof(*f->waits));
	f->lost = 0;
	for (uint32_t from = 0; from < f->nodes; from++)
		for (uint32_t to = 0; to < f->nodes; to++)
			if (!f->view || nfc_view_reaches(&f->view[from], to))
				f->lost += !follow(f, rule, from, to);
	for (uint32_t at = 0; f->view && rule == viewed && at < f->nodes; at++)
		for (uint32_t link = 0; link < NFC_LINKS; link++)
			if (nfc_view_usable(f->view, at, link))
				follow_anything(f, at, link);
	return cyclic(f);
}

/* ---- fabrics ---- */

static struct fabric fabric_new(uint32_t x, uint32_t y, uint32_t z, bool views)
{
	struct fabric f = { .torus = { { x, y, z } }, .nodes = x * y * z };
	uint64_t size = nfc_view_size(&f.torus);

	CHECK_EQ(nfc_torus_check(&f.torus), f.nodes < 2 ? -NFC_EINVAL : 0);
	f.waits = calloc(f.nodes * PER_NODE, sizeof(*f.waits));
	f.mark = calloc(f.nodes, PER_NODE);
	f.stack = calloc(f.nodes * PER_NODE, sizeof(*f.stack));
	if (!views)
		return f;
	f.view = calloc(f.nodes, sizeof(*f.view));
	for (uint32_t i = 0; i < f.nodes; i++)
		nfc_view_init(&f.view[i], &f.torus, i, calloc(1, size));
	return f;
}

static void fabric_free(struct fabric *f)
{
	for (uint32_t i = 0; f->view && i < f->nodes; i++)
		free(f->view[i].record);
	free(f->view);
	free(f->waits);
	free(f->mark);
	free(f->stack);
}

static void all_well(struct fabric *f)
{
	for (uint32_t i = 0; i < f->nodes; i++)
		f->view[0].record[i].diagnostic = 1u << NFC_DIAG_VALID_SHIFT;
}

static void break_link(struct fabric *f, uint32_t at, uint32_t link)
{
	uint32_t to = nfc_torus_neighbour(&f->torus, at, link);

	f->view[0].record[at].diagnostic |= NFC_DIAG_BROKEN
					    << nfc_link_shift(link);
	f->view[0].record[to].diagnostic |= NFC_DIAG_BROKEN
					    << nfc_link_shift(link ^ 1);
}

/* Fault number i: each plus link, then each node. */
static uint32_t faults(const struct fabric *f)
{
	return f->nodes * (NFC_DIMENSIONS + 1);
}

static void break_part(struct fabric *f, uint32_t i)
{
	if (i < f->nodes * NFC_DIMENSIONS)
		break_link(f, i / NFC_DIMENSIONS, i % NFC_DIMENSIONS * 2);
	else
		for (uint32_t link = 0; link < NFC_LINKS; link++)
			break_link(f, i % f->nodes, link);
}

/* All nodes see what the first does. */
static void spread(struct fabric *f)
{
	for (uint32_t i = 0; i < f->nodes; i++) {
		memcpy(f->view[i].record, f->view[0].record,
		       f->nodes * sizeof(*f->view[0].record));
		nfc_view_compute(&f->view[i]);
	}
}

CASE(addresses_and_neighbours)
{
	struct nfc_torus t = { { 5, 3, 2 } };

	for (uint32_t i = 0; i < nfc_torus_nodes(&t); i++) {
		CHECK_EQ(nfc_torus_index(&t, nfc_torus_address(&t, i)), i);
		for (uint32_t link = 0; link < NFC_LINKS; link++)
			CHECK_EQ(nfc_torus_neighbour(
					 &t, nfc_torus_neighbour(&t, i, link),
					 link ^ 1),
				 i);
	}
	CHECK_EQ(nfc_torus_address(&t, 4 + 5 * 2 + 15), 0x040201);
	CHECK_EQ(nfc_torus_index(&t, 0x050000), NFC_NODES_MAX);
	CHECK_EQ(nfc_torus_index(&t, 0x000300), NFC_NODES_MAX);
	CHECK_EQ(nfc_torus_index(&t, 0x000002), NFC_NODES_MAX);
	CHECK_EQ(nfc_torus_index(&t, 0x1000000), NFC_NODES_MAX);
}

CASE(tori_that_make_no_sense)
{
	static const struct nfc_torus bad[] = {
		{ { 1, 1, 1 } },  { { 0, 4, 4 } },   { { 4, 4, 0 } },
		{ { 33, 1, 1 } }, { { 4, 33, 33 } }, { { UINT32_MAX, 1, 1 } },
	};
	struct nfc_torus most = { { 32, 32, 32 } };

	for (uint32_t i = 0; i < sizeof(bad) / sizeof(*bad); i++)
		CHECK_EQ(nfc_torus_check(&bad[i]), -NFC_EINVAL);
	CHECK_EQ(nfc_torus_check(&most), 0);
	CHECK_EQ(nfc_torus_nodes(&most), NFC_NODES_MAX);
}

/* Every torus up to 8 x 8 x 8: all pairs arrive, the shortest way, without a cycle. */
CASE(intact_tori_have_no_cycle)
{
	for (uint32_t i = 1; i < BIG; i++) {
		struct fabric f = fabric_new(1 + i % 8, 1 + i / 8 % 8,
					     1 + i / 64, false);

		CHECK(!cycle_of(&f, ordered));
		CHECK_EQ(f.lost, 0);
		fabric_free(&f);
	}
}

CASE(without_date_lines_there_is_one)
{
	struct fabric f = fabric_new(4, 1, 1, false);
	struct fabric g = fabric_new(2, 2, 5, false);

	CHECK(cycle_of(&f, no_date_line));
	CHECK(cycle_of(&g, no_date_line));
	fabric_free(&f);
	fabric_free(&g);
}

/* An intact fabric takes no detours. */
CASE(detours_are_for_what_is_broken)
{
	struct fabric f = fabric_new(4, 3, 2, true);

	CHECK(!nfc_view_reaches(&f.view[0], 1)); /* nothing is known yet */
	all_well(&f);
	spread(&f);
	CHECK(!cycle_of(&f, viewed));
	CHECK_EQ(f.lost, 0);
	for (uint32_t from = 0; from < f.nodes; from++)
		for (uint32_t to = 0; to < f.nodes; to++) {
			struct nfc_hop a = viewed(&f, from, from, to, 6, 0);
			struct nfc_hop b = ordered(&f, from, from, to, 6, 0);

			CHECK(a.link == b.link && a.vc == b.vc);
		}
	fabric_free(&f);
}

/* Nodes that are not cut off are reached, by every rule that is right. */
static void hold(struct fabric *f, uint32_t a, uint32_t b)
{
	all_well(f);
	break_part(f, a);
	if (b != a)
		break_part(f, b);
	spread(f);
	if (!CHECK(!cycle_of(f, viewed)) || !CHECK_EQ(f->lost, 0))
		printf("  torus %ux%ux%u, faults %u and %u\n", f->torus.side[0],
		       f->torus.side[1], f->torus.side[2], a, b);
}

CASE(single_faults_have_no_cycle)
{
	for (uint32_t i = 1; i < 4 * 4 * 4; i++) {
		struct fabric f = fabric_new(1 + i % 4, 1 + i / 4 % 4,
					     1 + i / 16, true);

		for (uint32_t a = 0; a < faults(&f); a++)
			hold(&f, a, a);
		fabric_free(&f);
	}
}

CASE(double_faults_have_no_cycle)
{
	uint64_t random = 12345;

	for (uint32_t i = 1; i < 4 * 4 * 4; i++) {
		struct fabric f = fabric_new(1 + i % 4, 1 + i / 4 % 4,
					     1 + i / 16, true);

		for (uint32_t n = 0; n < 12; n++) {
			random = random * 6364136223846793005ull + 1442695041;
			hold(&f, (uint32_t)(random >> 33) % faults(&f),
			     (uint32_t)(random >> 13 & 0xfffff) % faults(&f));
		}
		fabric_free(&f);
	}
}

/* Rules that are wrong on purpose are found. */
CASE(wrong_rules_are_found)
{
	struct fabric f = fabric_new(4, 4, 1, true);
	bool back = false, shared = false;

	for (uint32_t a = 0; a < faults(&f); a++) {
		all_well(&f);
		break_part(&f, a);
		break_part(&f, (a + 7) % faults(&f));
		spread(&f);
		back |= cycle_of(&f, back_in_order);
		shared |= cycle_of(&f, on_channel_0);
	}
	CHECK(back);
	CHECK(shared);
	fabric_free(&f);
}

/* Parts that are cut off are known to be. */
CASE(a_node_that_is_gone)
{
	struct fabric f = fabric_new(3, 3, 1, true);

	all_well(&f);
	break_part(&f, f.nodes * NFC_DIMENSIONS + 4); /* node 4 */
	spread(&f);
	for (uint32_t i = 0; i < f.nodes; i++) {
		CHECK_EQ(nfc_view_reaches(&f.view[i], 4), i == 4);
		CHECK_EQ(nfc_view_reaches(&f.view[4], i), i == 4);
		if (i != 4)
			CHECK_EQ(viewed(&f, i, i, 4, NFC_LINKS, 0).link,
				 NFC_NO_ROUTE);
	}
	fabric_free(&f);
}
