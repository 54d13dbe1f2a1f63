// SPDX-License-Identifier: MIT
/* Full rings, full windows, thousands parked: nothing is lost, no channel starves. */
#include <string.h>

#include "rig.h"

static struct nfc_channel *port(struct nfc_process *self)
{
	return nfc_channel_of(self, 0);
}

static void counts(struct nfc_process *self, struct puppet *p)
{
	while (channel_read(port(self), p->buf, sizeof(p->buf)) >= 0)
		p->size++;
}

/* Of all ports. */
static void counts_all(struct nfc_process *self, struct puppet *p)
{
	struct nfc_channel *ch[2] = { port(self), nfc_channel_of(self, 1) };
	int i;

	while ((i = channel_alt(ch, 2, UINT64_MAX)) >= 0)
		if (channel_read(ch[i], p->buf, sizeof(p->buf)) >= 0)
			p->size++;
}

static void hold(struct nfc_process *self, struct puppet *p)
{
	(void)p;
	stay(self);
}

static void small_rings(struct nfc_config *c)
{
	c->slots = 16;
	c->managers = 1;
}

/* Withdrawals, each of which is answered, while the host does not listen. */
CASE(a_full_d2h_ring_stops_the_intake)
{
	struct rig *r = rig_new(small_rings);
	struct puppet *p = host_start(r, hold, 40);
	unsigned int rings = r->rings;
	uint32_t sent = 0, heard = 0;
	struct nfc_slot slot;

	r->hold = true;
	for (; sent < 40; sent++) {
		uint64_t id = host_direct(r, p->target + sent, "x", 1);

		if (r->no_room)
			break;
		host_note(r, p->target + sent, NFC_TYPE_WITHDRAW, NFC_H2D, id);
		if (r->no_room)
			break;
	}
	CHECK(r->no_room);
	CHECK(sent > 12 && sent < 32);
	CHECK(r->rings > rings); /* the host is asked to make room */
	r->hold = false;
	host_drain(r);
	for (int i = 0; i < 10; i++)
		rig_advance(r, 100000); /* it looks again by itself */
	for (uint32_t i = 0; i < sent; i++) {
		if (!host_take(r, p->target + i, &slot))
			continue;
		CHECK_EQ(nfc_header_type(slot.header), NFC_TYPE_WITHDRAWN);
		heard++;
	}
	CHECK_EQ(heard, sent);
	rig_free(r);
}

static void large_rings(struct nfc_config *c)
{
	c->slots = 256;
}

static struct nfc_island_line *line(struct rig *r)
{
	return &((struct nfc_area *)r->seat.area)->island[0];
}

/* A host that reports where it puts, and a process that counts the messages of two ports. */
static struct rig *reporting(struct puppet **p)
{
	struct rig *r = rig_new(large_rings);

	*p = host_start(r, counts_all, 2);
	host_hello(r, NFC_CAP_NEWS);
	line(r)->news = 0; /* what was put before that */
	return r;
}

static void send_often(struct rig *r, uint32_t channel, int times)
{
	for (int i = 0; i < times; i++) {
		uint64_t id = host_direct(r, channel, "x", 1);

		host_expect_ack(r, channel, NFC_TYPE_ACK, NFC_H2D, id,
				NFC_STATE_CONSUMED, NFC_OK);
	}
}

/* A host that does not report what it said it would waits: until it reports. */
CASE(an_island_looks_where_it_was_told)
{
	struct puppet *p;
	struct rig *r = reporting(&p);
	uint64_t dropped;

	r->silent = true;
	host_direct(r, p->target, "x", 1);
	rig_step(r);
	CHECK_EQ(p->size, 0);
	line(r)->news = ~0ull; /* of mailboxes that are not there, too */
	line(r)->word = 0;
	rig_step(r);
	CHECK_EQ(p->size, 1);
	CHECK_EQ(line(r)->news, 0);
	r->silent = false;
	line(r)->watched = 77; /* which hosts do not write */
	dropped = rig_dropped(r);
	for (int i = 0; i < 200; i++) /* more than an island takes at a time */
		host_note(r, p->target, NFC_TYPE_FIN, NFC_H2D, 77);
	rig_step(r);
	CHECK_EQ(rig_dropped(r) - dropped, 200);
	rig_free(r);
}

static uint32_t late; /* the channel that is put to without a report */

static void put_late(struct rig *r)
{
	r->on_rung = NULL;
	r->silent = true;
	host_direct(r, late, "x", 1);
	r->silent = false;
}

/* The mailbox that was watched has a slot that was not reported when another is. */
CASE(a_mailbox_that_is_watched_needs_no_report)
{
	struct puppet *p;
	struct rig *r = reporting(&p);
	uint32_t other = p->target | 1;

	late = p->target & ~1u;
	send_often(r, late, 40);
	CHECK_EQ(line(r)->watched, 1);
	r->silent = true;
	send_often(r, late, 5);
	r->silent = false;
	send_often(r, other, 15);
	CHECK_EQ(line(r)->watched, 1);
	atomic_store(&r->dev->host[0]->park[other], NFC_PARK_H2D);
	r->on_rung = put_late;
	send_often(r, other, 1);
	CHECK_EQ(line(r)->watched, 2);
	CHECK_EQ(p->size, 40 + 5 + 15 + 1 + 1);
	rig_free(r);
}

static void offers(struct nfc_process *self, struct puppet *p)
{
	note(p, channel_write(port(self), "x", 1));
}

/* A process is stopped once: its offer is taken back when there is room for that. */
CASE(a_stop_waits_for_room)
{
	struct rig *r = rig_new(small_rings);
	struct puppet *p = host_start(r, offers, 1);
	struct nfc_channel *ch = &r->dev->host[0]->channels[p->target];
	uint64_t id = r->channel[p->target].next[NFC_D2H]++;
	uint64_t payload[7] = { 0 };

	host_expect(r, p->target, NFC_TYPE_DIRECT, id);
	r->hold = true;
	while (nfc_rings_room(ch->rings))
		nfc_put(ch, NFC_TYPE_NONE, 0, 0, payload);
	nfc_process_stop_later(ch->process, p->process);
	for (int i = 0; i < 3; i++)
		rig_advance(r, 2000000);
	CHECK(!ch->process->stop);
	r->hold = false;
	host_drain(r);
	rig_advance(r, 2000000);
	CHECK(ch->process->stop);
	for (struct nfc_slot slot; host_take(r, p->target, &slot);)
		if (nfc_header_type(slot.header) == NFC_TYPE_WITHDRAW)
			host_note(r, p->target, NFC_TYPE_WITHDRAWN, NFC_D2H, id);
	rig_step(r);
	CHECK(p->done);
	CHECK_EQ(p->rc[0], -NFC_ESTOPPED);
	rig_free(r);
}

enum {
	SIZE = 6 * RIG_PAGE,
};

static void takes(struct nfc_process *self, struct puppet *p)
{
	p->memory = nfc_alloc(self, NFC_EMEM, SIZE);
	note(p, channel_read_ind(port(self), p->memory, SIZE));
	stay(self);
}

/* While the engine copies, others fill the d2h ring to its reserve. */
static int fill_d2h(struct rig *r, uint64_t bus, uint64_t length)
{
	struct nfc_channel *ch = &r->dev->host[0]->channels[NFC_TARGET_FIRST];
	uint64_t payload[7] = { 0 };

	(void)bus;
	(void)length;
	while (nfc_rings_room(ch->rings))
		nfc_put(ch, NFC_TYPE_NONE, 0, 0, payload);
	return 0;
}

/*
 * A transfer ends while d2h is full and h2d is empty: its record follows as soon
 * as there is room, though no message of the host wakes the device.
 */
static void check_record(int status, uint32_t type)
{
	struct rig *r = rig_new(small_rings);
	struct puppet *p = host_start(r, takes, 1);
	uint8_t *buf = host_buffer(r, SIZE, 1);
	uint64_t id = host_begin(r, p->target, SIZE, 0);
	struct nfc_slot slot = { 0 };

	CHECK_EQ(p->target, NFC_TARGET_FIRST);
	r->dma_script[0] = status;
	r->on_dma = status ? NULL : fill_d2h;
	r->hold = true;
	host_send_lists(r, p->target, NFC_H2D, id, buf, SIZE, 0, 1);
	rig_step(r);
	CHECK_EQ(p->step, 0);
	r->on_dma = NULL;
	r->hold = false;
	host_drain(r);
	rig_advance(r, 1000000);
	while (host_take(r, p->target, &slot) &&
	       nfc_header_type(slot.header) == NFC_TYPE_NONE)
		;
	CHECK_EQ(nfc_header_type(slot.header), type);
	rig_free(r);
}

CASE(a_completion_waits_for_room)
{
	check_record(0, NFC_TYPE_DONE);
}

static void impatient(struct nfc_config *c)
{
	small_rings(c);
	c->target_timeout_ns = 5000000;
}

/* A deadline that finds d2h full is not lost. */
CASE(a_timeout_waits_for_room)
{
	struct rig *r = rig_new(impatient);
	struct puppet *p = host_start(r, hold, 1);
	struct nfc_slot slot = { 0 };
	uint64_t id = host_direct(r, p->target, "x", 1);

	rig_step(r);
	r->hold = true;
	fill_d2h(r, 0, 0);
	rig_advance(r, 6000000);
	r->hold = false;
	host_drain(r);
	rig_advance(r, 1000000);
	while (host_take(r, p->target, &slot) &&
	       nfc_header_type(slot.header) == NFC_TYPE_NONE)
		;
	CHECK_EQ(nfc_header_type(slot.header), NFC_TYPE_ERROR);
	CHECK_EQ(nfc_header_sequence(slot.header), id);
	rig_free(r);
}

static void writes(struct nfc_process *self, struct puppet *p)
{
	later(self);
	note(p, channel_write(port(self), "x", 1));
	stay(self);
}

/* A process that finds d2h full lets the others run, and is served later. */
CASE(a_writer_waits_for_room)
{
	struct rig *r = rig_new(small_rings);
	struct puppet *w = host_start(r, writes, 1);
	struct nfc_slot slot = { 0 };

	rig_step(r);
	r->hold = true;
	fill_d2h(r, 0, 0);
	rig_advance(r, 1000000);
	CHECK_EQ(w->step, 0);
	r->hold = false;
	host_drain(r);
	rig_advance(r, 1000000);
	while (host_take(r, w->target, &slot) &&
	       nfc_header_type(slot.header) == NFC_TYPE_NONE)
		;
	CHECK_EQ(nfc_header_type(slot.header), NFC_TYPE_DIRECT);
	rig_free(r);
}

/* A host with a wrong counter gets nothing, and breaks nothing. */
CASE(a_counter_that_makes_no_sense)
{
	struct rig *r = rig_new(small_rings);
	struct puppet *p = host_start(r, counts, 1);
	struct nfc_area *area = r->seat.area;
	struct nfc_mailbox *mailbox = (void *)((uint8_t *)area +
					       area->mailbox_offset);
	uint64_t head = mailbox->d2h_head.word, id;

	r->hold = true;
	for (int i = 0; i < 40; i++) {
		mailbox->d2h_head.word = i % 2 ? UINT64_MAX : head + 1000;
		host_direct(r, p->target, "x", 1);
		rig_step(r);
	}
	r->hold = false;
	host_drain(r);
	rig_advance(r, 1000000);
	id = r->channel[p->target].next[NFC_H2D];
	CHECK(p->size < id);
	rig_free(r);
}

/* ---- many ---- */

enum {
	CROWD = 4000,
};

static void big(struct nfc_config *c)
{
	c->channels = CROWD + 100;
	c->managers = 8;
	c->slots = 256;
}

/* Thousands parked on a target that takes nothing: a live one does not feel it. */
CASE(a_crowd_delays_nobody)
{
	struct rig *r = rig_new(big);
	struct puppet *crowd = host_start(r, hold, CROWD);
	struct puppet *live = host_start(r, counts, 1);

	for (uint32_t i = 0; i < CROWD; i++) {
		if (i % 2)
			host_direct(r, crowd->target + i, "x", 1);
		else
			host_begin(r, crowd->target + i, 1 << 20, 0);
		REQUIRE(!r->no_room);
		if (i % 100)
			continue;
		host_direct(r, live->target, "y", 1);
		rig_step(r);
		CHECK_EQ(live->size, i / 100 + 1);
	}
	rig_advance(r, 100000000);
	CHECK_EQ(rig_heartbeat(r).parked, CROWD);
	/* Each can still be taken back. */
	r->received_count = 0;
	for (uint32_t i = 0; i < CROWD; i++) {
		uint32_t target = crowd->target + i;

		host_note(r, target, i % 2 ? NFC_TYPE_WITHDRAW : NFC_TYPE_ABORT,
			  NFC_H2D, r->channel[target].next[NFC_H2D] - 1);
		rig_step(r);
	}
	CHECK_EQ(r->received_count, CROWD);
	rig_advance(r, 100000000);
	CHECK_EQ(rig_heartbeat(r).parked, 0);
	rig_free(r);
}

/* More messages than a manager's turn takes, to one target among many. */
CASE(a_flood_does_not_delay_the_rest)
{
	struct rig *r = rig_new(big);
	struct puppet *quiet = host_start(r, counts, 1);
	struct puppet *loud = host_start(r, hold, 1);

	for (int round = 0; round < 8; round++) {
		for (int i = 0; i < 100; i++)
			host_note(r, loud->target, NFC_TYPE_OFFER, NFC_H2D, 77);
		host_direct(r, quiet->target, "x", 1);
		rig_step(r);
		CHECK_EQ(quiet->size, (uint64_t)round + 1);
	}
	rig_free(r);
}

/* Every slot of the ring, many laps. */
CASE(rings_go_round)
{
	struct rig *r = rig_new(small_rings);
	struct puppet *p = host_start(r, counts, 1);

	for (uint64_t i = 1; i <= 1000; i++) {
		host_direct(r, p->target, &i, sizeof(i));
		rig_step(r);
		REQUIRE(p->size == i);
		REQUIRE(!memcmp(p->buf, &i, sizeof(i)));
	}
	rig_free(r);
}

/* The host's doorbell rings for a channel on which a caller sleeps, and no other. */
CASE(the_doorbell_rings_for_sleepers)
{
	struct rig *r = rig_new(NULL);
	struct puppet *p = host_start(r, counts, 2);
	struct nfc_area *area = r->seat.area;
	nfc_le32 *park = (void *)((uint8_t *)area + area->park_offset);
	unsigned int rings;

	rig_step(r);
	rings = r->rings;
	host_direct(r, p->target, "x", 1);
	rig_step(r);
	CHECK_EQ(r->rings, rings);
	park[p->target + 1] = NFC_PARK_H2D;
	host_direct(r, p->target, "x", 1);
	rig_step(r);
	CHECK_EQ(r->rings, rings);
	park[p->target] = NFC_PARK_H2D;
	host_direct(r, p->target, "x", 1);
	rig_step(r);
	CHECK_EQ(r->rings, rings + 1);
	rig_free(r);
}

static void two_islands(struct nfc_config *c)
{
	c->islands = 2;
	c->managers = 4;
}

/* A process on each island, each channel in its own mailbox. */
CASE(islands_serve_their_own)
{
	struct rig *r = rig_new(two_islands);
	struct puppet *a = host_launch(r, 20, counts, 1);
	struct puppet *b = host_launch(r, 40, counts, 2);

	CHECK_EQ(host_open(r, a->target), 0);
	CHECK_EQ(host_open(r, b->target), 0);
	for (uint64_t i = 1; i <= 50; i++) {
		host_direct(r, a->target, "x", 1);
		host_direct(r, b->target, "y", 1);
		rig_step(r);
		CHECK_EQ(a->size, i);
		CHECK_EQ(b->size, i);
	}
	/* Ports of one process cannot be on two islands. */
	CHECK_EQ(host_control(r, NFC_CONTROL_START, 31, 2, 0, "hold").status,
		 NFC_EINVAL);
	CHECK_EQ(host_control(r, NFC_CONTROL_STOP, b->process, 0, 0, NULL).status,
		 NFC_EBUSY);
	rig_advance(r, 1000000);
	CHECK_EQ(host_control(r, NFC_CONTROL_STOP, b->process, 0, 0, NULL).status,
		 NFC_EINVAL);
	CHECK(b->done);
	rig_free(r);
}

static void ticks(struct nfc_process *self, struct puppet *p)
{
	uint64_t from = nfc_now(self);

	while (!nfc_stopped(self)) {
		nfc_sleep(self, 40000 + p->size * 100);
		if (nfc_now(self) - from > 200000)
			p->step++; /* far too late */
		from = nfc_now(self);
		p->size++;
	}
}

/* A timer that is due just when the spin ends is served, not slept over. */
CASE(spinning_does_not_miss_a_timer)
{
	struct rig *r = rig_new(NULL);
	struct puppet *p;

	r->port.spin_ns = 50000;
	r->tick = 500;
	p = host_start(r, ticks, 1);
	for (int i = 0; i < 20000 && p->size < 200; i++)
		rig_advance(r, 500);
	CHECK_EQ(p->size, 200);
	CHECK_EQ(p->step, 0);
	r->tick = 0;
	rig_free(r);
}
