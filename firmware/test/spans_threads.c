// SPDX-License-Identifier: MIT
/*
 * A pipeline of processes at two nodes of a mesh, with all their threads, under
 * the thread sanitizer. The device of the first node is the host's own, that of
 * the second is reached over the mesh.
 */
#define _GNU_SOURCE
#include <sched.h>
#include <stdlib.h>
#include <string.h>

#include "../port/mesh.h"
#include "harness.h"
#include "stage.h"

enum {
	FIRST = 20, /* at node 0 */
	LAST = 30, /* at node 1 */
	ROUNDS = 3,
	MESSAGES = 30,
	SIZE = 200001,
	OWNER = 9,
};

static const struct shape shape = { .islands = 2, .managers = 2, .engines = 1 };

static struct {
	struct nfc_mesh *mesh;
	struct nfc_hosted *there; /* the device of node 1 */
	struct nfc_near *near; /* the host of it */
	struct stage stage[2];
} w;

static void ring(struct stage *s)
{
	nfc_near_ring(s->near);
}

/* This process becomes the host of the device at node 1. */
static void reach(const struct nfc_config *c)
{
	struct stage *s = &w.stage[1];
	struct nfc_area *area;
	uint64_t size;

	CHECK_EQ(nfc_near_new(w.mesh, 0, 1, c, OWNER, NULL, &w.near), 0);
	CHECK_EQ(nfc_near_start(w.near), 0);
	while (nfc_near_ready(w.near) == NFC_PENDING)
		sched_yield();
	CHECK_EQ(nfc_near_ready(w.near), 0);
	area = nfc_near_area(w.near, &size);
	s->near = w.near;
	s->ring = ring;
	s->r.config = *c;
	s->r.seat.epoch = area->epoch;
	stage_meet(s, area);
	atomic_store((_Atomic uint64_t *)&area->host_hello.header,
		     nfc_header(NFC_TYPE_HELLO, NFC_PAYLOAD_SIZE, area->epoch,
				0, 0));
	nfc_near_ring(w.near);
}

static void begin(void)
{
	struct nfc_mesh_config mesh = { .threads = 2 };
	struct nfc_hosted_options options = { .spin_ns = 20000,
					      .log_fd = -1,
					      .shared = true };
	struct nfc_config c = stage_config(&shape);

	memset(&w, 0, sizeof(w));
	mesh.node.link.silence_ns = 30000000000000; /* no thread is late for its link */
	mesh.node.torus.side[0] = 2;
	mesh.node.torus.side[1] = mesh.node.torus.side[2] = 1;
	w.mesh = nfc_mesh_new(&mesh, NULL);
	nfc_mesh_far(w.mesh);
	w.stage[0].shape = &shape;
	w.stage[0].r.config = c;
	CHECK_EQ(stage_boot(&w.stage[0]), 0);
	nfc_hosted_join(w.stage[0].h,
			nfc_mesh_joints(w.mesh, 0, w.stage[0].h, OWNER));
	CHECK_EQ(nfc_hosted_open(&c, &options, &w.there), 0);
	nfc_mesh_serve(w.mesh, 1, w.there, &c);
	reach(&c);
}

static void end(void)
{
	struct nfc_computing who;
	bool left;

	nfc_hosted_join(w.stage[0].h, NULL);
	nfc_near_stop(w.near);
	nfc_mesh_unserve(w.mesh, 1);
	nfc_hosted_close(w.there, &left, &who);
	CHECK(!left);
	CHECK(stage_close(&w.stage[0]));
	nfc_mesh_free(w.mesh);
	free(w.stage[0].r.received);
	free(w.stage[1].r.received);
}

static void start(struct stage *s, uint32_t at, uint64_t ports, uint64_t next)
{
	struct nfc_control c = { .op = NFC_CONTROL_START,
				 .a = at,
				 .b = ports,
				 .c = next,
				 .name = "stage" };

	CHECK_EQ(stage_ask(s, &c), 0);
}

/* From one node to the other and to the host, each of which is one of the two. */
static void pass(struct stage *in, struct stage *out)
{
	uint8_t *data = host_memory, *back = host_memory + HALF;
	uint8_t message[NFC_PAYLOAD_SIZE];

	for (uint8_t i = 0; i < MESSAGES; i++) {
		stage_say(in, FIRST, &i, 1);
		stage_hear(out, LAST + 1, message);
		CHECK_EQ(message[0], (uint8_t)(i + 2));
	}
	fill_pattern(data, SIZE, 7);
	CHECK_EQ(stage_give(in, FIRST, data, SIZE), 0);
	CHECK_EQ(stage_take(out, LAST + 1, back, SIZE), 0);
	for (uint32_t i = 0; i < SIZE; i++)
		if (!CHECK_EQ(back[i], (uint8_t)(data[i] + 2)))
			break;
}

static void load_both(void)
{
	struct nfc_control c = { .op = NFC_CONTROL_LOAD,
				 .a = stage_image_size() };

	for (int at = 0; at < 2; at++)
		CHECK_EQ(stage_ask(&w.stage[at], &c), 0);
}

/* The first stage is with one of the two hosts, the last with the other. */
static void join(struct stage *in, struct stage *out)
{
	uint64_t there = out == &w.stage[1];

	start(out, LAST, 2, 0);
	start(in, FIRST, 1, nfc_id(there, 0, 0, LAST));
	CHECK_EQ(stage_open(in, FIRST), 0);
	CHECK_EQ(stage_open(out, LAST + 1), 0);
}

CASE(stages_of_two_nodes)
{
	begin();
	load_both();
	for (int i = 0; i < ROUNDS && !test_failures(); i++) {
		struct stage *in = &w.stage[i & 1], *out = &w.stage[!(i & 1)];

		join(in, out);
		pass(in, out);
		if (i == ROUNDS - 1) /* all ends while they are joined */
			break;
		host_close(&in->r, FIRST, 3);
		stage_end(in, FIRST);
		stage_end(out, LAST + 1);
		host_close(&out->r, LAST + 1, 3);
		stage_end(out, LAST + 1);
	}
	end();
}

/* The stage that is left is notified that the other is lost, and ends. */
CASE(a_node_that_dies)
{
	uint8_t message[NFC_PAYLOAD_SIZE], byte = 1;

	begin();
	load_both();
	join(&w.stage[0], &w.stage[1]);
	stage_say(&w.stage[0], FIRST, &byte, 1);
	stage_hear(&w.stage[1], LAST + 1, message);
	nfc_mesh_kill(w.mesh, 1, true, false);
	stage_say(&w.stage[0], FIRST, &byte, 1);
	stage_end(&w.stage[0], FIRST);
	end();
}
