// SPDX-License-Identifier: MIT
/* Nodes of a torus with a clock of their own: packets, news, faults. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../port/mesh_state.h"
#include "harness.h"

enum {
	STEP = 500, /* ns between two steps */
	MS = 1000000,
	WELL = 1u << 31, /* a diagnostic word without any fault */
};

static struct nfc_mesh *mesh(uint32_t x, uint32_t y, uint32_t z, uint64_t host)
{
	struct nfc_mesh_config c = {
		.node = {
			.torus = { { x, y, z } },
			.host_ns = host,
			.link = { .beat_ns = 100000, .retry_ns = 50000, .silence_ns = 2 * MS },
		},
		.whole = true,
	};

	return nfc_mesh_new(&c, NULL);
}

/* The sum of one count of all nodes. */
static uint64_t sum(struct nfc_mesh *m, uint32_t nodes, enum nfc_mesh_count what)
{
	struct nfc_mesh_state s;
	uint64_t total = 0;

	for (uint32_t i = 0; i < nodes; i++) {
		nfc_mesh_read(m, i, &s);
		total += s.count[what];
	}
	return total;
}

/* Do all nodes that are there see the words wanted? */
static bool agree(struct nfc_mesh *m, uint32_t nodes, const uint32_t *want)
{
	uint32_t word[NFC_NODES_MAX / 64];
	struct nfc_mesh_state s;

	for (uint32_t i = 0; i < nodes; i++) {
		nfc_mesh_read(m, i, &s);
		if (!s.alive && !want[i])
			continue;
		nfc_mesh_view(m, i, word);
		for (uint32_t j = 0; j < nodes; j++)
			if (want[j] && word[j] != want[j])
				return false;
	}
	return true;
}

/* Time passes until all see the words wanted, or until it is too much. */
static bool converge(struct nfc_mesh *m, uint32_t nodes, const uint32_t *want)
{
	for (int i = 0; i < 400; i++) {
		if (agree(m, nodes, want))
			return true;
		nfc_mesh_step(m, MS / 10, STEP);
	}
	return false;
}

static bool all_well(struct nfc_mesh *m, uint32_t nodes)
{
	uint32_t want[64];

	for (uint32_t i = 0; i < nodes; i++)
		want[i] = WELL;
	return converge(m, nodes, want);
}

/* Every node sends to every other; time passes until all of it arrived or ended. */
static void all_to_all(struct nfc_mesh *m, uint32_t nodes, uint32_t size,
		       uint64_t count)
{
	struct nfc_mesh_load load = { NFC_MESH_ALL, size, NFC_MESH_DATA, count };
	uint64_t came;

	for (uint32_t i = 0; i < nodes; i++)
		nfc_mesh_send(m, i, &load);
	do { /* until nothing moves any more */
		came = sum(m, nodes, NFC_MESH_CAME) +
		       sum(m, nodes, NFC_MESH_SENT);
		nfc_mesh_step(m, MS, STEP);
	} while (sum(m, nodes, NFC_MESH_CAME) + sum(m, nodes, NFC_MESH_SENT) !=
		 came);
}

static void check_ledger(struct nfc_mesh *m, uint32_t nodes)
{
	CHECK_EQ(sum(m, nodes, NFC_MESH_CHANGED), 0);
	CHECK_EQ(sum(m, nodes, NFC_MESH_DOUBLED), 0);
}

CASE(every_node_reaches_every_other)
{
	static const uint32_t side[][3] = {
		{ 2, 1, 1 }, { 4, 4, 1 }, { 3, 2, 2 }, { 1, 5, 1 }, { 2, 2, 2 }
	};

	for (uint32_t i = 0; i < sizeof(side) / sizeof(*side); i++) {
		uint32_t nodes = side[i][0] * side[i][1] * side[i][2];
		struct nfc_mesh *m = mesh(side[i][0], side[i][1], side[i][2], 0);

		REQUIRE(m);
		CHECK(all_well(m, nodes));
		all_to_all(m, nodes, 700, 10);
		CHECK_EQ(sum(m, nodes, NFC_MESH_SENT), nodes * (nodes - 1) * 10);
		CHECK_EQ(sum(m, nodes, NFC_MESH_CAME), nodes * (nodes - 1) * 10);
		CHECK_EQ(sum(m, nodes, NFC_MESH_REFUSED), 0);
		check_ledger(m, nodes);
		nfc_mesh_free(m);
	}
}

/* A copy across links takes longer. */
CASE(payloads_begin_at_lines)
{
	struct nfc_mesh *m = mesh(3, 2, 1, 0);

	for (uint32_t i = 0; i < m->nodes; i++) {
		const struct mesh_node *n = &m->node[i];

		CHECK_EQ((uintptr_t)n->payload % NFC_PORT_LINE, 0);
		for (uint32_t link = 0; link < NFC_LINKS; link++) {
			CHECK_EQ((uintptr_t)n->wire[link].word % NFC_PORT_LINE,
				 0);
			CHECK_EQ((uintptr_t)n->buffer[link] % NFC_PORT_LINE, 0);
			for (uint32_t vc = 0; vc < NFC_VCS; vc++)
				CHECK_EQ((uintptr_t)n->node.link[link]
							 .rx.fifo[vc]
							 .word %
						 NFC_PORT_LINE,
					 0);
		}
	}
	nfc_mesh_free(m);
}

CASE(tori_and_nodes_that_make_no_sense)
{
	struct nfc_node_config c = { .torus = { { 4, 4, 1 } } };

	CHECK(!mesh(1, 1, 1, 0));
	CHECK(!mesh(33, 1, 1, 0));
	CHECK(!mesh(0, 4, 4, 0));
	c.address = 0x040000;
	CHECK_EQ(nfc_node_check(&c), -NFC_EINVAL);
	c.address = 0x030300;
	CHECK_EQ(nfc_node_check(&c), 0);
	c.inject = 1000;
	CHECK_EQ(nfc_node_check(&c), -NFC_EINVAL);
}

/* Words of all wires are bad now and then: nothing is lost, doubled or changed. */
CASE(bad_wires_lose_nothing)
{
	struct nfc_mesh *m = mesh(3, 3, 1, 0);

	REQUIRE(m);
	CHECK(all_well(m, 9));
	for (uint32_t i = 0; i < 9; i++) {
		for (uint32_t link = 0; link < 4; link++) {
			struct nfc_wire_faults f = {
				.seed = 1 + i * 4 + link,
				.flip = 400000, /* 1e-4 */
				.drop = 400000,
				.repeat = 400000,
			};

			nfc_mesh_break(m, i, link, &f);
		}
	}
	all_to_all(m, 9, 1000, 60);
	nfc_mesh_step(m, 5 * MS, STEP); /* what was repeated last */
	CHECK_EQ(sum(m, 9, NFC_MESH_CAME), 9 * 8 * 60);
	check_ledger(m, 9);
	nfc_mesh_free(m);
}

/* A link is cut: both ends say so, all know it, packets take other links. */
CASE(around_a_link_that_is_cut)
{
	struct nfc_mesh *m = mesh(4, 4, 1, 0);
	uint32_t want[16];
	struct nfc_mesh_state s;

	REQUIRE(m);
	CHECK(all_well(m, 16));
	nfc_mesh_cut(m, 0, NFC_X_PLUS, true);
	for (uint32_t i = 0; i < 16; i++)
		want[i] = WELL;
	want[0] |= NFC_DIAG_BROKEN << NFC_DIAG_X_PLUS_SHIFT;
	want[1] |= NFC_DIAG_BROKEN << NFC_DIAG_X_MINUS_SHIFT;
	CHECK(converge(m, 16, want));
	all_to_all(m, 16, 200, 10);
	CHECK_EQ(sum(m, 16, NFC_MESH_CAME), 16 * 15 * 10);
	nfc_mesh_read(m, 0, &s);
	CHECK(s.node[NFC_NODE_DETOURS] > 0);
	check_ledger(m, 16);
	nfc_mesh_cut(m, 0, NFC_X_PLUS, false); /* and it recovers by itself */
	CHECK(all_well(m, 16));
	nfc_mesh_free(m);
}

/* A node forwarded from one link to another, and nothing of its own. */
CASE(only_packets_of_others_are_forwarded)
{
	struct nfc_mesh *m = mesh(5, 1, 1, 0);
	struct nfc_mesh_load load = { 2, 100, NFC_MESH_DATA, 40 };
	struct nfc_mesh_state s;

	REQUIRE(m);
	CHECK(all_well(m, 5));
	CHECK(nfc_mesh_send(m, 0, &load)); /* 0 -> 1 -> 2 */
	nfc_mesh_step(m, 10 * MS, STEP);
	CHECK_EQ(sum(m, 5, NFC_MESH_CAME), 40);
	for (uint32_t i = 0; i < 5; i++) {
		nfc_mesh_read(m, i, &s);
		CHECK_EQ(s.node[NFC_NODE_FORWARDED], i == 1 ? 40 : 0);
	}
	nfc_mesh_free(m);
}

/* Links are cut and mended while packets flow: what is lost is lost once. */
CASE(cut_and_mended_under_load)
{
	struct nfc_mesh *m = mesh(3, 3, 1, 0);
	struct nfc_mesh_load load = { NFC_MESH_ALL, 600, NFC_MESH_DATA, 400 };
	uint64_t random = 99, sent, came;

	REQUIRE(m);
	CHECK(all_well(m, 9));
	for (uint32_t i = 0; i < 9; i++)
		CHECK(nfc_mesh_send(m, i, &load));
	for (int n = 0; n < 60; n++) {
		random = random * 6364136223846793005ull + 1442695041;
		nfc_mesh_cut(m, random >> 33 & 7, random >> 40 & 3,
			     random >> 50 & 1);
		nfc_mesh_step(m, MS / 20, STEP);
	}
	for (uint32_t i = 0; i < 9; i++)
		for (uint32_t link = 0; link < 4; link++)
			nfc_mesh_cut(m, i, link, false);
	CHECK(all_well(m, 9));
	nfc_mesh_step(m, 20 * MS, STEP);
	sent = sum(m, 9, NFC_MESH_SENT);
	came = sum(m, 9, NFC_MESH_CAME);
	CHECK_EQ(sent + sum(m, 9, NFC_MESH_REFUSED), 9 * 8 * 400);
	CHECK(came <= sent && came > sent / 2);
	check_ledger(m, 9);
	all_to_all(m, 9, 600, 10); /* and all is as before */
	CHECK_EQ(sum(m, 9, NFC_MESH_CAME) - came, 9 * 8 * 10);
	nfc_mesh_free(m);
}

/* A node dies, with and without a sign, and starts anew. */
CASE(a_node_dies_and_comes_back)
{
	for (int silent = 0; silent < 2; silent++) {
		struct nfc_mesh *m = mesh(3, 3, 1, 0);
		uint32_t want[9];
		uint64_t came;

		REQUIRE(m);
		CHECK(all_well(m, 9));
		nfc_mesh_kill(m, 4, true, silent);
		for (uint32_t i = 0; i < 9; i++)
			want[i] = WELL;
		want[4] = 0; /* whatever it said last */
		want[3] |= NFC_DIAG_BROKEN << NFC_DIAG_X_PLUS_SHIFT;
		want[5] |= NFC_DIAG_BROKEN << NFC_DIAG_X_MINUS_SHIFT;
		want[1] |= NFC_DIAG_BROKEN << NFC_DIAG_Y_PLUS_SHIFT;
		want[7] |= NFC_DIAG_BROKEN << NFC_DIAG_Y_MINUS_SHIFT;
		CHECK(converge(m, 9, want));
		CHECK_EQ(nfc_mesh_route(m, 3, 3, 4, NFC_LINKS, 0).link,
			 NFC_NO_ROUTE);
		all_to_all(m, 9, 100, 5);
		CHECK_EQ(sum(m, 9, NFC_MESH_CAME), 8 * 7 * 5);
		CHECK_EQ(sum(m, 9, NFC_MESH_REFUSED), 8 * 5); /* those for it */
		nfc_mesh_kill(m, 4, false, false);
		CHECK(all_well(m, 9)); /* its news are newer than before */
		came = sum(m, 9, NFC_MESH_CAME);
		all_to_all(m, 9, 100, 5);
		CHECK_EQ(sum(m, 9, NFC_MESH_CAME), came + 9 * 8 * 5);
		check_ledger(m, 9);
		nfc_mesh_free(m);
	}
}

/* Milliseconds until no way leads from one node to another. */
static uint32_t until_no_way(struct nfc_mesh *m, uint32_t from, uint32_t to)
{
	for (uint32_t ms = 0; ms < 5000; ms++) {
		if (nfc_mesh_route(m, from, from, to, NFC_LINKS, 0).link ==
		    NFC_NO_ROUTE)
			return ms;
		nfc_mesh_step(m, MS, MS / 10);
	}
	return 5000;
}

/* As links are by default: all know in time, however far they are. */
CASE(a_node_that_is_gone_is_noticed_in_time)
{
	for (int silent = 0; silent < 2; silent++) {
		struct nfc_mesh_config c = {
			.node = { .torus = { { 5, 3, 1 } } },
		};
		struct nfc_mesh *m = nfc_mesh_new(&c, NULL);

		REQUIRE(m);
		nfc_mesh_step(m, 1000ull * MS, MS / 10);
		CHECK_EQ(until_no_way(m, 0, 7), 5000);
		nfc_mesh_kill(m, 7, true, silent);
		CHECK(until_no_way(m, 0, 7) < (silent ? 750 : 5));
		for (uint32_t i = 0; i < 15; i++)
			CHECK(i == 7 || until_no_way(m, i, 7) < 5);
		nfc_mesh_free(m);
	}
}

/* Sensors and a silent host show in the word that all know. */
CASE(sensors_and_the_host)
{
	struct nfc_mesh *m = mesh(2, 2, 1, MS);
	uint32_t want[4] = { 0, WELL, 0, 0 };

	REQUIRE(m);
	nfc_mesh_sense(m, 2, NFC_DIAG_SICK << NFC_DIAG_TEMPERATURE_SHIFT);
	for (int i = 0; i < 40; i++) {
		nfc_mesh_host(m, 1); /* the host of this one alone shows itself */
		nfc_mesh_step(m, MS / 2, STEP);
	}
	want[0] = WELL | NFC_DIAG_BROKEN << NFC_DIAG_PERIPHERAL_SHIFT;
	want[2] = want[0] | NFC_DIAG_SICK << NFC_DIAG_TEMPERATURE_SHIFT;
	CHECK(agree(m, 4, want));
	nfc_mesh_host(m, 0);
	nfc_mesh_step(m, MS / 2, STEP);
	want[0] = WELL;
	want[1] = want[2] = 0;
	CHECK(agree(m, 4, want)); /* it is well at once */
	nfc_mesh_free(m);
}

CASE(pings_by_hops)
{
	struct nfc_mesh *m = mesh(4, 1, 1, 0);
	uint64_t ns[20];

	REQUIRE(m);
	CHECK(all_well(m, 4));
	for (uint32_t to = 1; to <= 2; to++) {
		struct nfc_mesh_load load = { to, 56, NFC_MESH_PING, 20 };

		CHECK(nfc_mesh_send(m, 0, &load));
		CHECK_EQ(nfc_mesh_pings(m, 0, ns, 20), 0); /* not yet */
		nfc_mesh_step(m, MS, STEP);
		CHECK(nfc_mesh_done(m, 0));
		CHECK_EQ(nfc_mesh_pings(m, 0, ns, 20), 20);
		for (int i = 0; i < 20; i++)
			CHECK(ns[i] && ns[i] < MS);
	}
	nfc_mesh_free(m);
}

/*
 * Wait until all nodes know that all links are up. A node drops a packet for which it
 * knows no route, as the news of a link may reach the sender first by another way.
 */
static void wait_until_well(struct nfc_mesh *m, uint32_t nodes)
{
	uint32_t want[64];

	for (uint32_t i = 0; i < nodes; i++)
		want[i] = WELL;
	while (!agree(m, nodes, want))
		;
}

/* The same with threads: a start, traffic with faults, an end. */
CASE(threads)
{
	struct nfc_mesh_config c = {
		.node = { .torus = { { 3, 2, 1 } },
			  .link = { .retry_ns = 10 * MS,
				    .silence_ns = 30000ull * MS } },
		.threads = 2,
		.spin_ns = 20000,
	};
	struct nfc_mesh_load load = { NFC_MESH_ALL, 1500, NFC_MESH_DATA, 200 };
	struct nfc_wire_faults f = { .seed = 3, .flip = 400000, .drop = 400000 };
	struct nfc_mesh *m = nfc_mesh_new(&c, NULL);

	REQUIRE(m);
	nfc_mesh_break(m, 0, NFC_X_PLUS, &f);
	wait_until_well(m, 6);
	for (uint32_t i = 0; i < 6; i++)
		CHECK(nfc_mesh_send(m, i, &load));
	while (sum(m, 6, NFC_MESH_CAME) < 6 * 5 * 200)
		;
	CHECK_EQ(sum(m, 6, NFC_MESH_REFUSED), 0);
	check_ledger(m, 6);
	nfc_mesh_free(m);
}

/*
 * Nodes end and begin anew, neighbours notified and not, while all share to all: what arrives is
 * what was sent. The thread sanitizer sees who reads what another writes.
 */
CASE(nodes_die_while_they_share)
{
	struct nfc_mesh_config c = {
		.node = { .torus = { { 3, 1, 1 } },
			  .link = { .beat_ns = MS,
				    .retry_ns = MS,
				    .silence_ns = 20 * MS } },
		.threads = 2,
		.spin_ns = 20000,
		.whole = true,
	};
	struct nfc_mesh_load load = { NFC_MESH_ALL, 4096, NFC_MESH_DATA,
				      1 << 30 };
	struct nfc_mesh *m = nfc_mesh_new(&c, NULL);

	REQUIRE(m);
	for (uint32_t i = 0; i < 12; i++) {
		uint64_t came;

		nfc_mesh_kill(m, i % 3, true, i & 1);
		nfc_mesh_kill(m, i % 3, false, i & 1);
		came = sum(m, 3, NFC_MESH_CAME);
		while (sum(m, 3, NFC_MESH_CAME) < came + 500)
			for (uint32_t n = 0; n < 3; n++)
				nfc_mesh_send(m, n, &load); /* if it has none */
	}
	CHECK_EQ(sum(m, 3, NFC_MESH_CHANGED), 0);
	CHECK_EQ(sum(m, 3, NFC_MESH_DOUBLED), 0);
	nfc_mesh_free(m);
}

/* A blocked packet keeps no node busy: it waits for time, not in a loop. */
CASE(a_silent_neighbour_costs_little)
{
	struct nfc_mesh_config c = {
		.node = { .torus = { { 3, 1, 1 } },
			  .link = { .beat_ns = 100000,
				    .retry_ns = 50000,
				    .silence_ns = 2 * MS } },
		.wire = { .words = 1024 },
	};
	struct nfc_mesh_load load = { 1, 4096, NFC_MESH_DATA, 1000 };
	struct nfc_mesh *m = nfc_mesh_new(&c, NULL);
	struct nfc_mesh_state before, after;

	REQUIRE(m);
	CHECK(all_well(m, 3));
	nfc_mesh_kill(m, 1, true, true);
	CHECK(nfc_mesh_send(m, 0, &load));
	nfc_mesh_step(m, MS, STEP);
	nfc_mesh_read(m, 0, &before);
	nfc_mesh_step(m, MS / 2, STEP); /* it is not taken for dead yet */
	nfc_mesh_read(m, 0, &after);
	CHECK(after.steps - before.steps < 100);
	nfc_mesh_free(m);
}
