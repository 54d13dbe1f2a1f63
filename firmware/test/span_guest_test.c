// SPDX-License-Identifier: MIT
/*
 * Processes of node 0 that connect to a host that listens at node 1: that host opens
 * node 0, where it has a seat, or does not.
 */
#include <string.h>

#include "span_rig.h"

enum {
	BYTES = 5 * RIG_PAGE + 100,
	COME_S = 10, /* for a host that was asked to open */
	ANYONE = 1, /* who may connect … */
	NODES = 2, /* … from other nodes, too */
};

/* far is the host where it listens, near is the same at the node of the process. */
struct visit {
	struct rig *near, *far;
	struct puppet *guest;
	uint64_t process; /* of the listener … */
	uint32_t told_at; /* … and its own channel at far */
	uint64_t number; /* of the guest, as the host has it */
	uint32_t at; /* the target of the channel, at near */
};

static struct visit visit_of(uint32_t first, int how, role guest)
{
	struct visit v = { .far = rig_attach(w.rig[1], 1),
			   .near = rig_attach(w.rig[0], 1) };
	struct nfc_control c = host_control(
		v.far, NFC_CONTROL_LISTEN, how & ANYONE,
		how & NODES ? NFC_GUESTS_ALL : NFC_GUESTS_HERE, 0, NULL);

	CHECK_EQ(c.status, 0);
	v.process = c.a;
	v.told_at = (uint32_t)c.b;
	peer = nfc_id(0, 0, 1, c.c);
	CHECK_EQ(host_open(v.far, v.told_at), 0);
	v.guest = host_launch(w.rig[0], first, guest, 1);
	return v;
}

/* The host gets the record of a process, and takes it. False: none, in some time. */
static bool told(struct visit *v)
{
	uint64_t id = v->far->channel[v->told_at].next[NFC_D2H];
	struct nfc_slot slot;
	bool any = false;

	for (int i = 0; i < 2000 && !any; i++) {
		span_tick();
		any = host_take(v->far, v->told_at, &slot);
	}
	if (!any)
		return false;
	CHECK_EQ(nfc_header_type(slot.header), NFC_TYPE_DIRECT);
	CHECK_EQ(nfc_header_length(slot.header), 8);
	CHECK_EQ(slot.payload[0] & ~0xffull,
		 nfc_id(0, 0, 0, 0) | NFC_ACCEPT_PROCESS);
	v->number = slot.payload[0] & 0xff;
	v->far->channel[v->told_at].next[NFC_D2H]++;
	host_reply(v->far, v->told_at, NFC_TYPE_ACK, NFC_D2H, id,
		   NFC_STATE_CONSUMED, 0, 0);
	return true;
}

/* A host at the node of the process asks for it. */
static int comes(struct rig *r, struct visit *v, uint64_t id)
{
	struct nfc_control c = host_control(r, NFC_CONTROL_CONNECT, id,
					    v->number, 0, NULL);

	if (!c.status)
		v->at = (uint32_t)c.a;
	return c.status;
}

static void accept(struct visit *v)
{
	CHECK(told(v));
	CHECK_EQ(comes(v->near, v, peer), 0);
	CHECK_EQ(host_open(v->near, v->at), 0);
}

static void visit_free(struct visit *v)
{
	for (uint32_t at = 0; at < 2; at++) {
		struct rig **r = at ? &v->far : &v->near;

		span_leave(at, 1);
		if (*r)
			rig_detach(*r);
		*r = NULL;
	}
	span_end();
}

/* Nothing is left of any guest, at neither node. */
static void check_over(void)
{
	lossy_calm();
	span_pass(SECOND / 4);
	for (int at = 0; at < 2; at++) {
		struct nfc_device *dev = w.rig[at]->dev;

		for (int i = 0; i < NFC_RELAYS; i++) {
			CHECK_EQ(dev->relay[i].ends, 0);
			CHECK_EQ(dev->relay[i].calls, 0);
			CHECK(!dev->relay[i].way && !dev->relay[i].awaits);
		}
		for (int h = 0; h < 2; h++)
			for (int i = 0; dev->host[h] && i < NFC_JOINTS; i++)
				CHECK_EQ(dev->host[h]->joints[i].ends, 0);
		for (int i = 0; i < 2 * NFC_JOINTS; i++)
			CHECK(!w.end[at][i].used);
	}
}

static void until(const struct puppet *p, int steps)
{
	for (int i = 0; i < 2000 && p->step < steps; i++)
		span_tick();
	CHECK(p->step >= steps);
}

static void stop_guest(struct visit *v)
{
	span_stop(0, v->guest);
	span_pass(SECOND / 20);
	CHECK(v->guest->done);
}

static const uint32_t faults[][3] = { { 0, 0, 0 }, { 15, 15, 15 } };

#define EVERYWHERE(v, guest)                                              \
	for (uint32_t where = 0; where < 4; where++)                      \
		for (struct visit v = (span_begin(faults[where / 2][0],   \
						  faults[where / 2][1],   \
						  faults[where / 2][2]),  \
				       visit_of(where & 1 ? HERE : THERE, \
						ANYONE | NODES, guest));  \
		     v.near; visit_free(&v))

static struct nfc_channel *connected(struct nfc_process *self, struct puppet *p)
{
	struct nfc_channel *ch = span_connected(self, p);

	if (!ch)
		stay(self);
	return ch;
}

/* ---- the bytes of such a channel ---- */

static void host_takes(struct visit *v, uint8_t want)
{
	uint64_t id = v->near->channel[v->at].next[NFC_D2H]++;
	struct nfc_slot slot = host_expect(v->near, v->at, NFC_TYPE_DIRECT, id);

	CHECK_EQ(nfc_header_length(slot.header), 1);
	CHECK_EQ(((uint8_t *)slot.payload)[0], want);
	host_reply(v->near, v->at, NFC_TYPE_ACK, NFC_D2H, id,
		   NFC_STATE_CONSUMED, 0, 0);
}

static void host_gives(struct visit *v, uint8_t byte)
{
	uint64_t id = host_direct(v->near, v->at, &byte, 1);

	host_expect_ack(v->near, v->at, NFC_TYPE_ACK, NFC_H2D, id,
			NFC_STATE_CONSUMED, 0);
}

static void speaks(struct nfc_process *self, struct puppet *p)
{
	ask_often(connected(self, p), p, MANY);
}

CASE(messages_go_both_ways)
{
	EVERYWHERE(v, speaks)
	{
		accept(&v);
		CHECK_EQ(v.guest->rc[0], 0);
		for (int i = 0; i < MANY; i++) {
			host_takes(&v, (uint8_t)i);
			host_gives(&v, (uint8_t)(i + 1));
		}
		CHECK(v.guest->done);
		host_expect_close(v.near, v.at, BOTH);
		host_close(v.near, v.at, BOTH);
		host_expect_close(v.near, v.at, BOTH);
		check_over();
		CHECK_EQ(rig_dropped(w.rig[0]) + rig_dropped(w.rig[1]), 0);
	}
}

static void returns(struct nfc_process *self, struct puppet *p)
{
	struct nfc_channel *ch = connected(self, p);

	p->memory = nfc_alloc(self, NFC_EMEM, BYTES);
	note(p, channel_read_ind(ch, p->memory, BYTES));
	note(p, channel_write_ind(ch, p->memory, BYTES));
	stay(self);
}

static void host_drives(struct visit *v, enum nfc_direction d, uint8_t *buf)
{
	struct rig_channel *c = &v->near->channel[v->at];
	uint64_t id = c->next[NFC_D2H];
	struct nfc_ack end;

	if (d == NFC_D2H)
		host_expect(v->near, v->at, NFC_TYPE_IND_BEGIN,
			    c->next[NFC_D2H]++);
	else
		id = host_begin(v->near, v->at, BYTES, 0);
	end = host_drive(v->near, v->at, d, id, buf, BYTES);
	CHECK_EQ(end.state, NFC_STATE_DONE);
	host_note(v->near, v->at, NFC_TYPE_FIN, d, id);
	rig_step(w.rig[0]);
}

CASE(transfers_go_both_ways)
{
	EVERYWHERE(v, returns)
	{
		uint8_t *from, *to;

		accept(&v);
		from = host_buffer(v.near, BYTES, 3);
		to = host_buffer(v.near, BYTES, 0);
		host_drives(&v, NFC_H2D, from);
		CHECK_EQ(v.guest->rc[1], 0);
		host_drives(&v, NFC_D2H, to);
		CHECK_EQ(v.guest->rc[2], 0);
		CHECK(!memcmp(from, to, BYTES));
	}
}

/* ---- nobody opens ---- */

static void reads(struct nfc_process *self, struct puppet *p)
{
	struct nfc_channel *ch = connected(self, p);

	if (!ch)
		return;
	note(p, channel_read(ch, p->buf, sizeof(p->buf)));
	note(p, channel_write(ch, "x", 1));
	stay(self);
}

static void offers(struct nfc_process *self, struct puppet *p)
{
	struct nfc_channel *ch = connected(self, p);

	if (!ch)
		return;
	note(p, channel_write(ch, "x", 1));
	note(p, 0);
	stay(self);
}

static void alternates(struct nfc_process *self, struct puppet *p)
{
	struct nfc_channel *ch[2] = { span_port(self), connected(self, p) };

	if (!ch[1])
		return;
	note(p, channel_alt(ch, 2, UINT64_MAX));
	note(p, channel_read(ch[1], p->buf, sizeof(p->buf)));
	stay(self);
}

static const role waiting[] = { reads, offers, alternates };

/* The process was closed to, however it waits. */
static void check_closed(const struct visit *v, role guest)
{
	until(v->guest, 3);
	CHECK_EQ(v->guest->rc[0], 0);
	CHECK_EQ(v->guest->rc[1], guest == alternates ? 1 : -NFC_ECLOSED);
	if (guest != offers)
		CHECK_EQ(v->guest->rc[2], -NFC_ECLOSED);
}

#define WAITING(v, guest)                                                 \
	for (role *guest = (role *)waiting; guest < waiting + 3; guest++) \
	EVERYWHERE(v, *guest)

CASE(a_listener_that_closes)
{
	WAITING(v, guest)
	{
		until(v.guest, 1);
		span_pass(SECOND / 10);
		host_close(v.far, v.told_at, BOTH);
		host_control(v.far, NFC_CONTROL_STOP, v.process, 0, 0, NULL);
		check_closed(&v, *guest);
		stop_guest(&v);
		check_over();
	}
}

CASE(a_host_that_goes_before_it_received)
{
	for (int knows = 0; knows < 2; knows++)
		WAITING(v, guest)
		{
			until(v.guest, 1);
			if (knows)
				CHECK(told(&v));
			else
				span_pass(SECOND / 10);
			span_leave(1, 1);
			rig_detach(v.far);
			v.far = NULL;
			check_closed(&v, *guest);
			stop_guest(&v);
			check_over();
		}
}

CASE(a_host_that_does_not_come)
{
	WAITING(v, guest)
	{
		CHECK(told(&v));
		span_pass((COME_S - 1) * (uint64_t)SECOND);
		CHECK_EQ(v.guest->step, 1);
		span_pass(2ull * SECOND);
		check_closed(&v, *guest);
		CHECK_EQ(comes(v.near, &v, peer), NFC_ENOTARGET);
		stop_guest(&v);
		check_over();
	}
}

CASE(a_host_without_a_target_for_it)
{
	WAITING(v, guest)
	{
		CHECK(told(&v));
		for (uint32_t at = 0; at < 64; at++)
			w.rig[0]->dev->host[1]->channels[at].open |= 2;
		CHECK_EQ(comes(v.near, &v, peer), NFC_ENOMEM);
		for (uint32_t at = 0; at < 64; at++)
			w.rig[0]->dev->host[1]->channels[at].open &= 1;
		check_closed(&v, *guest);
		stop_guest(&v);
		check_over();
	}
}

/* It leaves the process's node: before it opened, or after that. */
CASE(a_host_that_goes_where_it_received)
{
	for (int opens = 0; opens < 2; opens++)
		WAITING(v, guest)
		{
			CHECK(told(&v));
			CHECK_EQ(comes(v.near, &v, peer), 0);
			if (opens)
				CHECK_EQ(host_open(v.near, v.at), 0);
			span_leave(0, 1);
			rig_detach(v.near);
			check_closed(&v, *guest);
			stop_guest(&v);
			check_over();
			v.near = rig_attach(w.rig[0], 1);
		}
}

/* ---- the process gives up ---- */

static void closes(struct nfc_process *self, struct puppet *p)
{
	struct nfc_channel *ch = connected(self, p);

	channel_close(ch, 1 << NFC_H2D);
	nfc_sleep(self, p->size);
	channel_close(ch, BOTH);
	note(p, channel_read(ch, p->buf, sizeof(p->buf)));
	note(p, channel_write(ch, "x", 1));
	stay(self);
}

static void leaves(struct nfc_process *self, struct puppet *p)
{
	connected(self, p);
	nfc_sleep(self, p->size);
}

/* At any moment: the host finds nobody, or one that has closed, and all is free. */
CASE(a_process_that_closes_or_ends)
{
	for (uint64_t after = 1; after < SECOND / 10; after += 1 + after / 2)
		EVERYWHERE(v, where & 1 ? closes : leaves)
		{
			v.guest->size = after;
			if (told(&v) && !comes(v.near, &v, peer) &&
			    !host_open(v.near, v.at)) {
				span_pass(SECOND / 10);
				host_close(v.near, v.at, BOTH);
			}
			stop_guest(&v);
			check_over();
		}
}

/* The half that it closed before is closed when the host opens the channel. */
CASE(a_half_that_is_closed_already)
{
	EVERYWHERE(v, closes)
	{
		v.guest->size = 2ull * SECOND;
		accept(&v);
		host_expect_close(v.near, v.at, 1 << NFC_H2D);
		span_pass(3ull * SECOND);
		host_expect_close(v.near, v.at, 1 << NFC_D2H);
		CHECK_EQ(v.guest->rc[2], -NFC_ECLOSED);
	}
}

static void comes_again(struct nfc_process *self, struct puppet *p)
{
	struct nfc_channel *ch = connected(self, p), *again;

	note(p, channel_write(ch, "x", 1));
	channel_close(ch, BOTH);
	nfc_sleep(self, SECOND / 10);
	again = connected(self, p);
	CHECK(again == ch);
	note(p, channel_write(again, "y", 1));
	stay(self);
}

CASE(a_place_that_is_used_again)
{
	EVERYWHERE(v, comes_again)
	{
		accept(&v);
		host_takes(&v, 'x');
		host_expect_close(v.near, v.at, BOTH);
		host_close(v.near, v.at, BOTH);
		host_expect_close(v.near, v.at, BOTH);
		accept(&v);
		host_takes(&v, 'y');
		CHECK_EQ(v.guest->rc[1], 0);
		CHECK_EQ(v.guest->rc[3], 0);
	}
}

/* Its host detaches at any moment, and nothing of it is left anywhere. */
CASE(the_host_of_a_process_goes)
{
	for (int ticks = 1; ticks < 60; ticks += 1 + ticks / 4) {
		struct puppet *p;
		struct visit v;

		span_begin(0, 0, ticks % 3 * 20);
		v = visit_of(THERE, ANYONE | NODES, waits);
		/* host 0 cannot detach: here it is the one that listens, and 1 the process's */
		p = host_launch(v.near, HERE, reads, 1);
		for (int i = 0; i < ticks; i++)
			span_tick();
		span_leave(0, 1);
		rig_detach(v.near);
		(void)p;
		stop_guest(&v);
		check_over();
		v.near = rig_attach(w.rig[0], 1);
		visit_free(&v);
	}
}

/* ---- the way ---- */

CASE(a_way_that_breaks_at_any_moment)
{
	for (int kind = 0; kind < 3; kind++)
		for (int ticks = 1; ticks < 60; ticks += 1 + ticks / 4) {
			struct visit v;

			span_begin(0, 0, ticks % 3 * 20);
			v = visit_of(THERE, ANYONE | NODES, waiting[kind]);
			for (int i = 0; i < ticks; i++)
				span_tick();
			lossy.lose = 100;
			span_pass(2ull * SECOND);
			CHECK(v.guest->rc[0] ||
			      (v.guest->step > 1 &&
			       v.guest->rc[1] != -NFC_ESTOPPED));
			stop_guest(&v);
			if (told(&v)) /* it was so before */
				CHECK_EQ(comes(v.near, &v, peer), NFC_ENOTARGET);
			check_over();
			visit_free(&v);
		}
}

/*
 * The channel that was opened over it continues without it: the host is at the
 * node.
 */
CASE(a_way_that_is_not_needed_any_more)
{
	EVERYWHERE(v, speaks)
	{
		accept(&v);
		span_pass(SECOND / 10);
		lossy.lose = 100;
		span_leave(1, 1);
		rig_detach(v.far);
		v.far = NULL;
		span_pass(2ull * SECOND);
		for (int i = 0; i < MANY; i++) {
			host_takes(&v, (uint8_t)i);
			host_gives(&v, (uint8_t)(i + 1));
		}
		CHECK(v.guest->done);
	}
}

/* ---- who may, and how many ---- */

static void tries(struct nfc_process *self, struct puppet *p)
{
	struct nfc_channel *ch = NULL;
	uint64_t listens = peer;

	note(p, channel_connect(self, listens + 1, &ch));
	note(p, channel_connect(self, listens, &ch));
	stay(self);
}

CASE(a_host_that_listens_for_its_own)
{
	struct visit v;
	struct puppet *own;

	span_begin(0, 0, 0);
	v = visit_of(THERE, NODES, tries);
	until(v.guest, 2);
	CHECK_EQ(v.guest->rc[0], -NFC_ENOTARGET);
	CHECK_EQ(v.guest->rc[1], -NFC_ENOTARGET);
	own = host_launch(v.near, HERE, tries, 1);
	until(own, 2);
	CHECK_EQ(own->rc[0], -NFC_ENOTARGET);
	CHECK_EQ(own->rc[1], 0);
	accept(&v);
	visit_free(&v);
	span_begin(0, 0, 0);
	v = visit_of(THERE, ANYONE, tries);
	until(v.guest, 2);
	CHECK_EQ(v.guest->rc[1], -NFC_ENOTSUP); /* it would not open */
	visit_free(&v);
}

static void crowds_in(struct nfc_process *self, struct puppet *p)
{
	struct nfc_channel *ch;
	int rc = 0;

	while (!rc) {
		rc = channel_connect(self, peer, &ch);
		p->size += !rc;
	}
	note(p, rc);
	stay(self);
}

CASE(a_listener_that_is_crowded)
{
	EVERYWHERE(v, crowds_in)
	{
		struct puppet *second;

		until(v.guest, 1);
		CHECK_EQ(v.guest->rc[0], -NFC_EBUSY);
		CHECK_EQ(v.guest->size, 8);
		second = host_launch(v.near, HERE + 2, crowds_in, 1);
		until(second, 1);
		CHECK_EQ(second->rc[0], -NFC_EBUSY);
		CHECK_EQ(second->size, 4);
		for (int i = 0; i < 12; i++)
			accept(&v);
		CHECK(!told(&v));
	}
}

/* ---- invalid packets ---- */

CASE(nobody_else_comes)
{
	EVERYWHERE(v, reads)
	{
		uint64_t number, id = peer;

		CHECK(told(&v));
		number = v.number;
		CHECK_EQ(comes(w.rig[0], &v, id), NFC_ENOTARGET);
		CHECK_EQ(comes(v.near, &v, id ^ 1), NFC_ENOTARGET);
		CHECK_EQ(comes(v.near, &v, id ^ 1ull << NFC_ID_X_SHIFT),
			 NFC_ENOTARGET);
		for (uint64_t n = 1; n; n <<= 1) {
			v.number = number ^ n;
			CHECK_EQ(comes(v.near, &v, id), NFC_ENOTARGET);
		}
		v.number = number;
		CHECK_EQ(comes(v.far, &v, id), NFC_ENOTARGET);
		CHECK_EQ(v.guest->step, 1);
		CHECK_EQ(comes(v.near, &v, id), 0);
		CHECK_EQ(host_open(w.rig[0], v.at), NFC_ENOTARGET);
		CHECK_EQ(comes(v.near, &v, id), NFC_ENOTARGET);
		CHECK_EQ(host_open(v.near, v.at), 0);
		host_gives(&v, 1);
		CHECK_EQ(v.guest->rc[1], 1);
	}
}

CASE(a_device_of_no_fabric)
{
	EVERYWHERE(v, reads)
	{
		CHECK(told(&v));
		w.rig[0]->port.whose = NULL;
		CHECK_EQ(comes(v.near, &v, peer), NFC_ENOTARGET);
	}
}

static void babbles_on(struct nfc_process *self, struct puppet *p)
{
	struct nfc_channel *ch;

	for (uint32_t i = 0; !nfc_stopped(self); i++) {
		if (channel_connect(self, peer, &ch))
			nfc_sleep(self, SECOND / 100);
		else if (i & 1)
			channel_write(ch, "x", 1);
		else
			nfc_sleep(self, SECOND / 1000);
		if (i % 3)
			channel_close(ch, BOTH);
	}
	note(p, 0);
}

/* Packets of any kind at any time: others do not suffer, and all is free. */
CASE(nonsense_is_dropped)
{
	struct nfc_far_packet p;
	struct visit v;

	span_begin(0, 0, 0);
	v = visit_of(THERE, ANYONE | NODES, babbles_on);
	for (int i = 0; i < 40000; i++) {
		struct flying f = { .packet.to = chance(2) };

		for (uint32_t k = 0; k < sizeof(p) / 4; k += 1 + chance(64))
			memset((uint8_t *)&p + 4 * k, (int)chance(256), 4);
		p.head.epoch = w.number + 1 - chance(3);
		p.head.host = (uint16_t)(chance(8) ? !f.packet.to : chance(3));
		p.head.count = (uint8_t)chance(4);
		p.head.first = chance(40);
		f.packet.from = !f.packet.to;
		f.packet.kind = (uint8_t)(NFC_SPAN_JOIN + chance(6));
		f.packet.size = NFC_FAR_HEAD + 16 * chance(5);
		if (f.packet.kind == NFC_SPAN_JOIN)
			continue;
		if (f.packet.kind == NFC_SPAN_JOINED) {
			struct nfc_joined j = { .h2d = OWNER + chance(2),
						.status = chance(40) };

			memcpy(p.bytes, &j, sizeof(j));
			f.packet.size = NFC_FAR_HEAD + sizeof(j);
		}
		memcpy(f.word, &p, sizeof(p));
		lossy_give(&f, span_deliver);
		if (i % 64)
			continue;
		span_tick();
		v.number = chance(4);
		if (!chance(20) && !comes(v.near, &v, peer) && chance(2))
			host_open(v.near, v.at);
	}
	stop_guest(&v);
	span_leave(0, 1);
	rig_detach(v.near);
	v.near = rig_attach(w.rig[0], 1);
	host_close(v.far, v.told_at, BOTH);
	span_pass(2ull * COME_S * SECOND);
	check_over();
	visit_free(&v);
}
