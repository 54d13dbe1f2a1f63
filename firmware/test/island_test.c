// SPDX-License-Identifier: MIT
/* A process that keeps its island to itself: what the others do meanwhile. */
#include <string.h>

#include "rig.h"

enum {
	HERE = 20, /* a target of island 0, where control is, */
	THERE = 40, /* and one of island 1 */
	BEAT = 100000000,
};

static void two_islands(struct nfc_config *c)
{
	c->islands = 2;
}

/* Computes until p->more is set: the test runs on, its island does not. */
static void compute(struct nfc_process *self, struct puppet *p)
{
	uint32_t island = self->island->index;

	while (!p->more) {
		p->rig->island[island].at = fiber_current;
		fiber_switch(&fiber_main);
	}
}

static void hold(struct nfc_process *self, struct puppet *p)
{
	(void)p;
	stay(self);
}

static struct rig *rig_with(uint32_t target, struct puppet **p)
{
	struct rig *r = rig_new(two_islands);

	r->may_spin = true;
	*p = host_launch(r, target, compute, 1);
	return r;
}

static uint32_t status_of(struct rig *r, uint32_t op, uint64_t a, uint64_t b,
			  const char *name)
{
	return host_control(r, op, a, b, 0, name).status;
}

CASE(any_island_writes_the_heartbeat)
{
	static const uint32_t targets[] = { HERE, THERE };

	for (int i = 0; i < 2; i++) {
		struct puppet *p;
		struct rig *r = rig_with(targets[i], &p);
		uint64_t beat = rig_heartbeat(r).beat;

		for (int j = 0; j < 8; j++)
			rig_advance(r, BEAT);
		CHECK(rig_heartbeat(r).beat - beat >= 3);
		p->more = p;
		rig_free(r);
	}
}

/* One island writes it at a time, and both together no more often than one. */
CASE(the_heartbeat_is_written_once)
{
	struct rig *r = rig_new(two_islands);
	uint64_t beat = rig_heartbeat(r).beat;

	for (uint64_t j = 1; j <= 20; j++) {
		rig_advance(r, BEAT);
		CHECK_EQ(rig_heartbeat(r).beat, beat + j);
	}
	rig_free(r);
}

CASE(a_process_that_computes_is_named)
{
	struct puppet *p;
	struct rig *r = rig_with(THERE, &p);
	struct nfc_computing c;
	uint64_t start = r->clock;

	CHECK(!nfc_island_computes(r->dev, 0, &c));
	rig_advance(r, BEAT);
	REQUIRE(nfc_island_computes(r->dev, 1, &c));
	CHECK_EQ(c.process, p->process);
	CHECK(!strcmp(c.program, "puppet"));
	CHECK(c.since_ns <= start);
	p->more = p;
	rig_step(r);
	c = (struct nfc_computing){ 0 };
	CHECK(!nfc_island_computes(r->dev, 1, &c));
	CHECK_EQ(c.island, 1);
	CHECK(c.since_ns); /* the thread may not leave all the same */
	CHECK(!c.process);
	rig_free(r);
}

/* Calls that need the island end; others continue; later all of them work. */
CASE(control_does_not_wait_for_an_island_that_computes)
{
	struct puppet *p, *other;
	struct rig *r = rig_new(two_islands);
	struct nfc_control c;

	r->may_spin = true;
	other = host_launch(r, THERE + 1, hold, 1);
	p = host_launch(r, THERE, compute, 1);
	CHECK_EQ(status_of(r, NFC_CONTROL_STOP, p->process, 0, NULL), NFC_EBUSY);
	r->answer_ns = 60000000;
	CHECK_EQ(status_of(r, NFC_CONTROL_OPEN, THERE, 0, NULL), NFC_ETIMEOUT);
	CHECK_EQ(status_of(r, NFC_CONTROL_START, THERE + 2, 1, "hold"),
		 NFC_ETIMEOUT);
	c = host_control(r, NFC_CONTROL_START, 0, 1, 0, "hold");
	CHECK_EQ(c.status, NFC_OK);
	CHECK(c.b < 32);
	CHECK_EQ(host_open(r, (uint32_t)c.b), NFC_OK);
	CHECK_EQ(status_of(r, NFC_CONTROL_STOP, c.a, 0, NULL), NFC_EBUSY);
	CHECK_EQ(status_of(r, NFC_CONTROL_STOP, c.a, 0, NULL), NFC_EINVAL);
	p->more = p;
	rig_step(r);
	CHECK_EQ(status_of(r, NFC_CONTROL_STOP, p->process, 0, NULL),
		 NFC_EINVAL);
	CHECK_EQ(status_of(r, NFC_CONTROL_START, THERE + 2, 1, "hold"), NFC_OK);
	CHECK_EQ(status_of(r, NFC_CONTROL_STOP, other->process, 0, NULL),
		 NFC_EBUSY);
	rig_free(r);
}

static void compute_and_hold(struct nfc_process *self, struct puppet *p)
{
	compute(self, p);
	stay(self);
}

/* A STOP that met an island which computes is done later, unasked; a START or an OPEN that ended is not. */
CASE(a_stop_is_remembered_and_nothing_else)
{
	struct rig *r = rig_new(two_islands);
	struct puppet *p, *left;

	r->may_spin = true;
	left = host_launch(r, THERE + 1, hold, 1);
	p = host_launch(r, THERE, compute_and_hold, 1);
	CHECK_EQ(status_of(r, NFC_CONTROL_STOP, p->process, 0, NULL), NFC_EBUSY);
	CHECK_EQ(status_of(r, NFC_CONTROL_STOP, left->process + 100, 0, NULL),
		 NFC_EINVAL);
	r->answer_ns = 60000000;
	CHECK_EQ(status_of(r, NFC_CONTROL_OPEN, THERE + 1, 0, NULL),
		 NFC_ETIMEOUT);
	CHECK_EQ(status_of(r, NFC_CONTROL_START, THERE + 2, 1, "hold"),
		 NFC_ETIMEOUT);
	CHECK(!p->done);
	p->more = p;
	rig_step(r);
	CHECK(p->done);
	CHECK(!left->done);
	CHECK_EQ(status_of(r, NFC_CONTROL_STOP, p->process, 0, NULL),
		 NFC_EINVAL);
	CHECK_EQ(host_open(r, THERE + 1), NFC_OK);
	CHECK_EQ(status_of(r, NFC_CONTROL_START, THERE, 1, "hold"), NFC_OK);
	CHECK_EQ(status_of(r, NFC_CONTROL_START, THERE + 2, 1, "hold"), NFC_OK);
	rig_free(r);
}

static int nothing(struct nfc_island *island, void *arg)
{
	(void)island;
	(void)arg;
	return 7;
}

static void call_other(struct nfc_process *self, struct puppet *p)
{
	note(p, nfc_island_call(self, &self->island->dev->islands[1], nothing,
				NULL));
	stay(self);
}

/* Calls that are given up leave the queue from behind, and the last one stays. */
CASE(a_call_is_taken_back_from_among_others)
{
	struct puppet *p, *caller[4];
	struct rig *r = rig_with(THERE, &p);

	for (int i = 0; i < 4; i++) {
		caller[i] = host_launch(r, HERE + 1 + i, call_other, 1);
		rig_advance(r, BEAT);
	}
	for (int i = 0; i < 3; i++) {
		CHECK_EQ(caller[i]->step, 0);
		for (int j = 0; j < 5 && !caller[i]->step; j++)
			rig_advance(r, BEAT);
		CHECK_EQ(caller[i]->step, 1);
		CHECK_EQ(caller[i]->rc[0], -NFC_ETIMEOUT);
	}
	p->more = p;
	rig_step(r);
	rig_advance(r, 20000);
	CHECK_EQ(caller[3]->step, 1);
	CHECK_EQ(caller[3]->rc[0], 7);
	CHECK(!r->dev->islands[1].calls);
	rig_free(r);
}
