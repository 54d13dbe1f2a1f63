// SPDX-License-Identifier: MIT
/* Several hosts on one device: what each has, and what none can take from others. */
#include <stdlib.h>
#include <string.h>

#include "rig.h"

static void shared(struct nfc_config *c)
{
	c->hosts = 3;
}

static void two_islands(struct nfc_config *c)
{
	c->hosts = 2;
	c->islands = 2;
}

static void many_contexts(struct nfc_config *c)
{
	c->hosts = 3;
	c->engines_me = 8;
	c->contexts = 8;
	c->channels = 256;
}

static void stay_puppet(struct nfc_process *self, struct puppet *p)
{
	(void)p;
	stay(self);
}

/* A message to the loopback service and back. */
static void echo(struct rig *h, uint8_t byte)
{
	uint64_t sent = host_direct(h, NFC_TARGET_LOOPBACK, &byte, 1);
	uint64_t id = h->channel[NFC_TARGET_LOOPBACK].next[NFC_D2H]++;
	struct nfc_slot slot;

	host_expect_ack(h, NFC_TARGET_LOOPBACK, NFC_TYPE_ACK, NFC_H2D, sent,
			NFC_STATE_CONSUMED, 0);
	slot = host_expect(h, NFC_TARGET_LOOPBACK, NFC_TYPE_DIRECT, id);
	CHECK_EQ(((uint8_t *)slot.payload)[0], byte);
	host_reply(h, NFC_TARGET_LOOPBACK, NFC_TYPE_ACK, NFC_D2H, id,
		   NFC_STATE_CONSUMED, 0, 0);
	host_expect_nothing(h, NFC_TARGET_LOOPBACK);
}

static uint64_t free_memory(struct rig *h)
{
	return host_control(h, NFC_CONTROL_MEMORY, NFC_EMEM, 0, 0, NULL).c;
}

/* Takes what memory and blocks there are. */
static void takes_all(struct nfc_process *self, struct puppet *p)
{
	for (uint64_t size = 4 << 20; size >= RIG_PAGE; size /= 2)
		while (nfc_alloc(self, NFC_EMEM, size))
			note(p, 0);
	stay(self);
}

CASE(each_has_its_own)
{
	struct rig *r = rig_new(shared), *other = rig_attach(r, 1);
	struct puppet *p;
	struct nfc_control c;

	CHECK_EQ(host_open(r, NFC_TARGET_LOOPBACK), 0);
	CHECK_EQ(host_open(other, NFC_TARGET_LOOPBACK), 0);
	for (uint8_t i = 0; i < 100; i++) {
		echo(r, i);
		echo(other, (uint8_t)(200 - i));
	}
	CHECK(rig_heartbeat(other).processes > 0);
	rig_advance(r, 100000000);
	CHECK_EQ(rig_heartbeat(r).processes, rig_heartbeat(other).processes);
	p = host_start(r, stay_puppet, 1);
	CHECK(rig_heartbeat(other).processes > 0);
	rig_advance(r, 100000000);
	CHECK_EQ(rig_heartbeat(r).processes, rig_heartbeat(other).processes + 1);
	CHECK(rig_heartbeat(r).messages > 0);
	c = host_control(other, NFC_CONTROL_STOP, p->process, 0, 0, NULL);
	CHECK_EQ(c.status, NFC_EINVAL);
	CHECK_EQ(host_open(other, p->target), NFC_ENOTARGET);
	CHECK(!p->done);
	rig_free(r);
}

CASE(one_that_takes_all_takes_its_own)
{
	struct rig *r = rig_new(shared), *greedy = rig_attach(r, 2);
	uint64_t before = free_memory(r);
	struct nfc_control c;
	int started = 0;

	host_start(greedy, takes_all, 1);
	rig_step(r);
	CHECK_EQ(free_memory(greedy), 0);
	do {
		c = host_control(greedy, NFC_CONTROL_START, 0, 1, 0, "hold");
		started += !c.status;
	} while (!c.status);
	CHECK_EQ(c.status, NFC_ENOMEM);
	CHECK(started > 4);
	CHECK_EQ(free_memory(r), before);
	CHECK_EQ(host_control(r, NFC_CONTROL_START, 0, 1, 0, "hold").status, 0);
	c = host_control(r, NFC_CONTROL_START, 0, 1, 1000, "lone.spin");
	CHECK_EQ(c.status, NFC_ENOPROGRAM);
	rig_free(r);
}

/* The other hosts are served, no matter how one host writes to its area. */
CASE(a_hostile_host_harms_itself_alone)
{
	struct rig *r = rig_new(shared), *hostile = rig_attach(r, 1);
	uint64_t size = nfc_area_size(&r->config), seed = 1;
	uint64_t *words = hostile->seat.area;

	CHECK_EQ(host_open(r, NFC_TARGET_LOOPBACK), 0);
	hostile->hold = true;
	for (int round = 0; round < 300; round++) {
		for (uint64_t i = 0; i < size / sizeof(*words);
		     i += 1 + round % 7) {
			seed = seed * 6364136223846793005u +
			       1442695040888963407u;
			words[i] = seed >> (round % 5 * 11);
		}
		echo(r, (uint8_t)round);
	}
	rig_detach(hostile);
	echo(r, 1);
	hostile = rig_attach(r, 1);
	CHECK_EQ(host_open(hostile, NFC_TARGET_LOOPBACK), 0);
	echo(hostile, 2);
	rig_free(r);
}

CASE(places_are_bounded)
{
	struct rig *r = rig_new(shared);
	struct nfc_seat seat = rig_seat(r, 1);

	CHECK_EQ(nfc_host_attach(r->dev, 3, &seat), -NFC_EINVAL);
	CHECK_EQ(nfc_host_attach(r->dev, UINT32_MAX, &seat), -NFC_EINVAL);
	CHECK_EQ(nfc_host_attach(r->dev, 0, &seat), -NFC_EBUSY);
	rig_free(r);
}

static const struct nfc_program image_table[];

static int on_load(struct rig *r, const void *image, uint64_t size,
		   const struct nfc_program **table)
{
	(void)r;
	(void)image;
	(void)size;
	*table = image_table;
	return 0;
}

static void image_main(struct nfc_process *self)
{
	nfc_sleep(self, UINT32_MAX);
}

static const struct nfc_program image_table[] = {
	{ NFC_PROGRAM_ABI, 0, "image", image_main },
	{ 0, 0, NULL, NULL },
};

static uint32_t load(struct rig *h)
{
	struct nfc_control c = { .op = NFC_CONTROL_LOAD,
				 .a = 4096,
				 .request = 9 };
	uint8_t *image = host_buffer(h, 4096, 3);
	uint64_t id = host_direct(h, 0, &c, sizeof(c)), reply;
	struct nfc_slot slot;

	host_expect_ack(h, 0, NFC_TYPE_ACK, NFC_H2D, id, NFC_STATE_CONSUMED, 0);
	id = host_begin(h, 0, 4096, 0);
	CHECK_EQ(host_drive(h, 0, NFC_H2D, id, image, 4096).state,
		 NFC_STATE_DONE);
	host_note(h, 0, NFC_TYPE_FIN, NFC_H2D, id);
	reply = h->channel[0].next[NFC_D2H]++;
	slot = host_expect(h, 0, NFC_TYPE_DIRECT, reply);
	host_reply(h, 0, NFC_TYPE_ACK, NFC_D2H, reply, NFC_STATE_CONSUMED, 0, 0);
	rig_step(h);
	memcpy(&c, slot.payload, sizeof(c));
	return c.status;
}

/* Images are a host's: another may have one of the same name, or none. */
CASE(images_are_a_hosts)
{
	struct rig *r = rig_new(shared), *other = rig_attach(r, 1);

	r->load = on_load;
	CHECK_EQ(load(other), NFC_OK);
	CHECK_EQ(load(r), NFC_OK);
	CHECK_EQ(r->images, 2);
	CHECK_EQ(host_control(other, NFC_CONTROL_START, 0, 1, 0, "image").status,
		 0);
	rig_detach(other);
	CHECK_EQ(r->images, 1);
	other = rig_attach(r, 1);
	CHECK_EQ(host_control(other, NFC_CONTROL_START, 0, 1, 0, "image").status,
		 NFC_ENOPROGRAM);
	r->dev->host[1]->no_load = true; /* as a seat says */
	CHECK_EQ(load(other), NFC_ENOTSUP);
	rig_free(r);
}

/* ---- hosts that detach in the middle of something ---- */

static void waits_to_read(struct nfc_process *self, struct puppet *p)
{
	note(p, channel_read(nfc_channel_of(self, 0), p->buf, 8));
}

static void waits_to_write(struct nfc_process *self, struct puppet *p)
{
	note(p, channel_write(nfc_channel_of(self, 0), "x", 1));
}

static void waits_to_give(struct nfc_process *self, struct puppet *p)
{
	p->memory = nfc_alloc(self, NFC_EMEM, 40000);
	note(p, channel_write_ind(nfc_channel_of(self, 0), p->memory, 40000));
}

static void waits_to_take(struct nfc_process *self, struct puppet *p)
{
	p->memory = nfc_alloc(self, NFC_EMEM, 40000);
	note(p, channel_read_ind(nfc_channel_of(self, 0), p->memory, 40000));
}

static void waits_for_one(struct nfc_process *self, struct puppet *p)
{
	struct nfc_channel *ch[2] = { nfc_channel_of(self, 0),
				      nfc_channel_of(self, 1) };

	note(p, channel_alt(ch, 2, 50000000));
}

static void yields_on(struct nfc_process *self, struct puppet *p)
{
	while (p->step < 8)
		nfc_sleep(self, 1000);
}

/* All that a process can be blocked in, and what a host can leave on a channel. */
static void leave_much_behind(struct rig *h)
{
	struct puppet *p;
	uint64_t id;
	uint8_t *buf = host_buffer(h, 40000, 1);

	host_start(h, waits_to_read, 1);
	host_start(h, waits_to_write, 1);
	host_start(h, waits_to_give, 1);
	host_start(h, waits_for_one, 2);
	host_start(h, yields_on, 1);
	p = host_start(h, stay_puppet, 1); /* an offer that has a time */
	host_begin(h, p->target, 100, 50000000);
	p = host_start(h, stay_puppet, 1); /* one that is asked back */
	id = host_begin(h, p->target, 100, 0);
	host_note(h, p->target, NFC_TYPE_WITHDRAW, NFC_H2D, id);
	p = host_start(h, waits_to_take, 1); /* lists of it are missing */
	id = host_begin(h, p->target, 40000, 0);
	host_send_lists(h, p->target, NFC_H2D, id, buf, 40000, 0, 1);
	rig_step(h);
	p = host_start(h, waits_to_take, 1); /* all moved, no FIN */
	id = host_begin(h, p->target, 40000, 0);
	CHECK_EQ(host_drive(h, p->target, NFC_H2D, id, buf, 40000).state,
		 NFC_STATE_DONE);
}

CASE(nothing_is_left_of_a_host_that_goes)
{
	struct rig *r = rig_new(shared);
	unsigned int stacks = r->stacks;

	CHECK_EQ(host_open(r, NFC_TARGET_LOOPBACK), 0);
	for (int round = 0; round < 20; round++) {
		struct rig *other = rig_attach(r, 1 + round % 2);

		CHECK_EQ(host_open(other, NFC_TARGET_LOOPBACK), 0);
		echo(other, 1);
		leave_much_behind(other);
		if (round % 3)
			rig_step(r);
		rig_detach(other);
		CHECK_EQ(r->stacks, stacks);
		rig_advance(r, 100000000); /* their times pass */
		echo(r, 2);
	}
	CHECK_EQ(rig_heartbeat(r).parked, 0);
	rig_free(r);
}

/* A host that neither reads nor rings has its rings full, and detaches all the same. */
CASE(a_host_that_hears_nothing_goes)
{
	struct rig *r = rig_new(shared), *deaf = rig_attach(r, 1);
	struct nfc_control c = { .op = NFC_CONTROL_MEMORY };

	deaf->hold = true;
	for (int i = 0; i < 500; i++)
		host_direct(deaf, 0, &c, sizeof(c));
	rig_step(r);
	rig_detach(deaf);
	CHECK_EQ(host_open(r, NFC_TARGET_LOOPBACK), 0);
	echo(r, 3);
	rig_free(r);
}

/* An island that is late is not waited for: nothing of the host is there. */
CASE(a_host_whose_island_is_late_has_gone)
{
	struct rig *r = rig_new(shared);
	struct nfc_seat seat = rig_seat(r, 7);

	r->tick = 1000000000;
	CHECK_EQ(nfc_host_attach(r->dev, 1, &seat), -NFC_ETIMEOUT);
	r->tick = 0;
	CHECK(!r->dev->host[1]);
	CHECK_EQ(host_open(rig_attach(r, 1), NFC_TARGET_LOOPBACK), 0);
	rig_free(r);
}

static int slow(struct nfc_island *island, void *arg)
{
	(void)island;
	*(int *)arg += 1;
	return 0;
}

static void calls_the_other(struct nfc_process *self, struct puppet *p)
{
	struct nfc_island *to = &self->island->dev->islands[1];
	int called = 0;

	while (p->step < 12)
		note(p, nfc_island_call(self, to, slow, &called));
	stay(self);
}

/* The stack of a process that calls another island is there until that is done. */
CASE(a_call_between_islands_is_waited_for)
{
	struct rig *r = rig_new(two_islands), *other = rig_attach(r, 1);
	struct puppet *p = host_launch(other, NFC_TARGET_FIRST, calls_the_other,
				       1);

	r->tick = 1000; /* time passes while the host is detached */
	CHECK(p->step < 12);
	rig_detach(other);
	r->tick = 0;
	CHECK_EQ(host_open(r, NFC_TARGET_LOOPBACK), 0);
	echo(r, 1);
	rig_free(r);
}

/* ---- fairness ---- */

enum {
	EIGHT = 8,
	PIECES = 4, /* of a window */
	LONG = PIECES * NFC_PIECE_MIN,
};

/* Pieces of each host, and those of the first when the second had all of its own. */
static unsigned int moved[2], before_last;

static int count_moves(struct rig *r, uint64_t bus, uint64_t length)
{
	const struct rig *other = r->host[1];
	unsigned int of = 0;

	(void)length;
	for (unsigned int i = 0; i < other->ranges; i++)
		of |= bus - other->range[i].bus < other->range[i].length;
	if (++moved[of] == PIECES && of)
		before_last = moved[0];
	return 0;
}

static void takes_long(struct nfc_process *self, struct puppet *p)
{
	p->memory = nfc_alloc(self, NFC_EMEM, LONG);
	note(p, channel_read_ind(nfc_channel_of(self, 0), p->memory, LONG));
}

static void whole_transfer(struct rig *h, uint32_t target, const uint8_t *buf)
{
	uint64_t id = host_begin(h, target, LONG, 0);

	host_send_lists(h, target, NFC_H2D, id, buf, LONG, 0, h->config.window);
}

/*
 * A host that moves eight transfers gets no more pieces than a host that moves
 * one.
 */
CASE(dma_of_hosts_alternates)
{
	struct rig *r = rig_new(shared), *other = rig_attach(r, 1);
	uint8_t *many = host_buffer(r, LONG, 1);
	uint8_t *one = host_buffer(other, LONG, 2);
	struct puppet *p = host_start(other, takes_long, 1), *q[EIGHT];

	r->on_dma = count_moves;
	moved[0] = moved[1] = 0;
	for (int i = 0; i < EIGHT; i++)
		q[i] = host_start(r, takes_long, 1);
	for (int i = 0; i < EIGHT; i++)
		whole_transfer(r, q[i]->target, many);
	whole_transfer(other, p->target, one);
	rig_step(r);
	CHECK_EQ(moved[0], EIGHT * PIECES);
	CHECK_EQ(moved[1], PIECES);
	CHECK(before_last <= 2 * PIECES);
	rig_free(r);
}

/* Processes of a program that start until one does not. */
static unsigned int starts(struct rig *h)
{
	unsigned int started = 0;

	while (!host_control(h, NFC_CONTROL_START, 0, 1, 0, "hold").status)
		started++;
	return started;
}

/*
 * A host that has a part of the shape has its ids and processes alone, whatever it
 * asks for. Others have theirs, and the next in its place has all.
 */
CASE(a_part_of_the_shape)
{
	enum { PART = 40, SERVICES = 6 };
	struct rig *r = rig_new(many_contexts);
	struct rig *part = rig_attach_part(r, 1, PART, 0);
	const struct nfc_area *area = part->seat.area;
	struct nfc_seat seat = rig_seat(r, 50);
	uint32_t contexts = r->config.engines_me * r->config.contexts;

	CHECK_EQ(((struct nfc_hello *)area->device_hello.payload)->channels,
		 PART);
	CHECK_EQ(host_open(part, PART), NFC_ENOTARGET);
	CHECK_EQ(host_open(part, NFC_TARGET_LOOPBACK), 0);
	echo(part, 1);
	CHECK_EQ(host_control(part, NFC_CONTROL_START, PART - 1, 2, 0, "hold")
			 .status,
		 NFC_EINVAL);
	CHECK_EQ(starts(part), PART - NFC_TARGET_FIRST);
	rig_detach(part);

	part = rig_attach_part(r, 1, 0, NFC_PROCESSES_MIN);
	area = part->seat.area;
	CHECK_EQ(((struct nfc_hello *)area->device_hello.payload)->contexts,
		 NFC_PROCESSES_MIN);
	CHECK_EQ(starts(part), NFC_PROCESSES_MIN - SERVICES);
	CHECK_EQ(starts(r), contexts - SERVICES);
	rig_detach(part);
	CHECK_EQ(starts(rig_attach(r, 1)), contexts - SERVICES);

	seat.channels = r->config.channels + 1;
	CHECK_EQ(nfc_host_attach(r->dev, 2, &seat), -NFC_EINVAL);
	seat.channels = NFC_TARGET_FIRST - 1;
	CHECK_EQ(nfc_host_attach(r->dev, 2, &seat), -NFC_EINVAL);
	seat.channels = 0;
	seat.processes = NFC_PROCESSES_MIN - 1;
	CHECK_EQ(nfc_host_attach(r->dev, 2, &seat), -NFC_EINVAL);
	seat.processes = contexts + 1;
	CHECK_EQ(nfc_host_attach(r->dev, 2, &seat), -NFC_EINVAL);
	rig_free(r);
}
