// SPDX-License-Identifier: MIT
/*
 * Channels between processes of two nodes, over a fabric that loses, doubles and delays:
 * two devices, and the ends of spans at each.
 */
#include <stdlib.h>
#include <string.h>

#include "../link/span.h"
#include "lossy.h"
#include "rig.h"

enum {
	HERE = 20, /* a target of island 0 */
	THERE = 40, /* and one of island 1 */
	BOTH = 3,
	MANY = 60, /* more than a ring has slots */
	TICK_NS = 200000,
	SECOND = 1000000000,
	OWNER = 5,
};

/* An end of a span at one of the nodes. */
struct end {
	struct nfc_span span;
	bool used;
	uint32_t host, index;
};

static struct {
	struct rig *rig[2];
	struct end end[2][2 * NFC_JOINTS];
	uint32_t number; /* of the last span */
	bool cut; /* the way goes when a JOIN has come */
} w;

static uint64_t peer; /* whom callers connect to */
static uint64_t size; /* of transfers */

/* ---- what devices ask for ---- */

static uint32_t side(const void *self)
{
	return self == w.rig[1];
}

static struct end *end_at(uint32_t at, uint32_t host, uint32_t index)
{
	for (int i = 0; i < 2 * NFC_JOINTS; i++) {
		struct end *e = &w.end[at][i];

		if (e->used && e->host == host && e->index == index)
			return e;
	}
	return NULL;
}

static void wake(void *self, uint32_t island)
{
	struct rig *r = self;

	r->port.wake(r, island);
}

static struct end *add_end(uint32_t at, uint32_t host, uint32_t index,
			   struct nfc_span_config *c)
{
	struct end *e = w.end[at];

	while (e->used)
		e++;
	*e = (struct end){ .used = true, .host = host, .index = index };
	c->port = (struct nfc_far_port){ w.rig[at], wake, NULL };
	c->islands = w.rig[at]->config.islands;
	c->peer = !at;
	nfc_span_init(&e->span, &lossy.node[at], c);
	return e;
}

static void drop_end(struct end *e)
{
	nfc_span_leave(&e->span);
	nfc_joint_drop(e->span.joint);
	e->used = false;
}

static int on_locate(void *self, uint32_t host, uint64_t id)
{
	(void)host;
	if (nfc_id_node(id) > 1)
		return -NFC_EINVAL;
	return nfc_id_node(id) == side(self) ? 0 : NFC_PENDING;
}

static int on_join(void *self, uint32_t host, struct nfc_joint *joint,
		   uint32_t index, uint64_t id)
{
	struct nfc_span_ask ask = { .owner = OWNER + host,
				    .target = (uint32_t)nfc_id_target(id) };
	struct nfc_span_config c = { .joint = joint,
				     .number = ++w.number,
				     .ask = &ask };

	add_end(side(self), host, index, &c);
	return 0;
}

static void on_carry(void *self, uint32_t host, uint32_t index)
{
	struct end *e = end_at(side(self), host, index);

	if (e)
		e->span.rung = true;
}

static int on_fetch(void *self, uint32_t host, uint32_t index, void *to,
		    uint64_t at, uint64_t len)
{
	struct end *e = end_at(side(self), host, index);

	return e ? nfc_span_fetch(&e->span, to, at, len) : NFC_EABORTED;
}

/* ---- the fabric ---- */

static struct end *find(uint32_t at, const struct nfc_far_head *h)
{
	for (int i = 0; i < 2 * NFC_JOINTS; i++) {
		struct end *e = &w.end[at][i];

		if (e->used && e->span.line.epoch == h->epoch &&
		    e->span.line.host != h->host)
			return e;
	}
	return NULL;
}

static int join_came(uint32_t at, uint32_t number, const struct nfc_span_ask *a)
{
	struct nfc_span_config c = { .number = number };
	uint32_t host = (uint32_t)(a->owner - OWNER), index;
	int rc = -NFC_ENOTARGET;

	if (host < RIG_HOSTS && w.rig[at]->host[host])
		rc = nfc_joint_ask(w.rig[at]->dev, host, a->target, &c.joint,
				   &index);
	if (!rc)
		add_end(at, host, index, &c);
	return rc;
}

static void deliver(const struct nfc_packet *p, const struct nfc_fifo *fifo)
{
	struct nfc_span_ask ask;
	struct nfc_far_head h;
	struct end *e;
	int rc;

	nfc_fifo_read(fifo, 0, (struct nfc_word *)&h, 2);
	e = find(p->to, &h);
	if (e) {
		nfc_span_deliver(&e->span, p, fifo, 0);
	} else if (p->kind == NFC_SPAN_JOIN) {
		nfc_fifo_read(fifo, 2, (struct nfc_word *)&ask, 1);
		if (w.cut)
			lossy.lose = 100;
		rc = join_came(p->to, h.epoch, &ask);
		if (rc)
			nfc_span_refuse(&lossy.node[p->to], p, &h,
					(uint32_t)-rc);
	} else if (p->kind != NFC_SPAN_GONE) {
		nfc_span_refuse(&lossy.node[p->to], p, &h, 0);
	}
}

static void tick_by(uint64_t ns)
{
	lossy.now += ns;
	for (int at = 0; at < 2; at++)
		rig_advance(w.rig[at], ns);
	for (int pass = 0; pass < 4; pass++) {
		lossy.now += STEP_NS;
		lossy_deliver(deliver);
		for (int at = 0; at < 2; at++)
			for (int i = 0; i < 2 * NFC_JOINTS; i++) {
				struct end *e = &w.end[at][i];

				if (!e->used)
					continue;
				nfc_span_step(&e->span);
				if (e->span.state == NFC_SPAN_OVER)
					drop_end(e);
			}
		rig_step(w.rig[0]);
		rig_step(w.rig[1]);
	}
}

static void tick(void)
{
	tick_by(TICK_NS);
}

static void pass_time(uint64_t ns)
{
	for (uint64_t t = 0; t < ns; t += 10 * TICK_NS)
		tick_by(10 * TICK_NS);
}

static void two_islands(struct nfc_config *c)
{
	c->islands = 2;
	c->hosts = 2;
}

static void wide(struct nfc_config *c)
{
	c->channels = 192;
}

static void begin_as(void (*shape)(struct nfc_config *c))
{
	memset(&w, 0, sizeof(w));
	for (int at = 0; at < 2; at++) {
		struct rig *r = w.rig[at] = rig_new(shape);

		r->port.locate = on_locate;
		r->port.join = on_join;
		r->port.carry = on_carry;
		r->port.fetch = on_fetch;
	}
}

static void begin(uint32_t lose, uint32_t twice, uint32_t late)
{
	lossy_reset(lose, twice, late);
	begin_as(two_islands);
}

/* The targets can be subscribed again, and no joint is in use nor any span. */
static void check_free(uint32_t at, uint32_t target)
{
	for (int n = 0; n < 2; n++) {
		struct nfc_host *host = w.rig[n]->dev->host[0];

		for (int i = 0; i < NFC_JOINTS; i++) {
			CHECK_EQ(host->joints[i].calls, 0);
			CHECK(!end_at((uint32_t)n, 0, (uint32_t)i));
			/* who connected keeps what it closed until it ends */
			CHECK(!host->joints[i].ends ||
			      !host->joints[i].caller.open);
		}
	}
	CHECK_EQ(host_open(w.rig[at], target), NFC_OK);
}

static void end(void)
{
	for (int at = 0; at < 2; at++) {
		for (int i = 0; i < 2 * NFC_JOINTS; i++)
			if (w.end[at][i].used)
				drop_end(&w.end[at][i]);
		rig_free(w.rig[at]);
	}
}

/* ---- processes ---- */

typedef void (*role)(struct nfc_process *self, struct puppet *p);

static struct nfc_channel *port(struct nfc_process *self)
{
	return nfc_channel_of(self, 0);
}

static struct nfc_channel *connected(struct nfc_process *self, struct puppet *p)
{
	struct nfc_channel *ch = NULL;

	note(p, channel_connect(self, peer, &ch));
	return ch;
}

/* A target at node 1 and who connects to it from node 0. */
static struct puppet *target, *caller;

static void pair_of(uint32_t at, role t, role c)
{
	peer = nfc_id(0, 0, 1, at);
	target = host_launch(w.rig[1], at, t, 1);
	caller = host_launch(w.rig[0], HERE + 4, c, 1);
}

static bool both_done(int t, int c)
{
	for (int i = 0; i < 200000 && (target->step < t || caller->step < c);
	     i++)
		tick();
	return CHECK(target->step >= t) & CHECK(caller->step >= c);
}

static void stop(uint32_t at, struct puppet *p)
{
	uint32_t status = NFC_EBUSY;

	for (int i = 0; i < 8 && status == NFC_EBUSY; i++)
		status = host_control(w.rig[at], NFC_CONTROL_STOP, p->process,
				      0, 0, NULL)
				 .status;
}

static const uint32_t faults[][3] = { { 0, 0, 0 },
				      { 10, 0, 0 },
				      { 0, 30, 0 },
				      { 0, 0, 20 },
				      { 15, 15, 15 } };

#define UNDER_FAULTS                                                        \
	for (size_t f = 0; f < sizeof(faults) / sizeof(*faults); f++)       \
		for (uint32_t at = HERE; at; at = at == HERE ? THERE : 0)   \
			for (bool once = (begin(faults[f][0], faults[f][1], \
						faults[f][2]),              \
					  true);                            \
			     once; end(), once = false)

static void answers(struct nfc_process *self, struct puppet *p)
{
	int n = 0, rc = 0;

	while (!rc && (n = channel_read(port(self), p->buf, 56)) >= 0) {
		p->buf[0]++;
		p->size += (uint64_t)n;
		rc = channel_write(port(self), p->buf, (size_t)n);
	}
	note(p, rc ? rc : n);
	stay(self);
}

/* Notes how many were answered. */
static void asks(struct nfc_process *self, struct puppet *p)
{
	struct nfc_channel *ch = connected(self, p);
	uint8_t i = 0;

	while (ch && i < MANY && !channel_write(ch, &i, 1) &&
	       channel_read(ch, p->buf, 56) == 1)
		CHECK_EQ(p->buf[0], ++i);
	note(p, i);
}

CASE(messages_go_both_ways)
{
	UNDER_FAULTS
	{
		pair_of(at, answers, asks);
		both_done(1, 2);
		CHECK_EQ(caller->rc[1], MANY);
		CHECK_EQ(target->size, MANY);
		CHECK_EQ(target->rc[0], -NFC_ECLOSED);
		CHECK_EQ(rig_dropped(w.rig[0]) + rig_dropped(w.rig[1]), 0);
		lossy_calm();
		pass_time(SECOND / 10);
		check_free(1, at);
	}
}

static void takes(struct nfc_process *self, struct puppet *p)
{
	p->memory = nfc_alloc(self, NFC_EMEM, size + 1);
	note(p, channel_read_ind(port(self), p->memory + 1, size));
	note(p, channel_write_ind(port(self), p->memory + 1, size));
	stay(self);
}

static void gives(struct nfc_process *self, struct puppet *p)
{
	struct nfc_channel *ch = connected(self, p);
	uint64_t other = nfc_alloc(self, NFC_EMEM, size + 4);
	uint8_t *a, *b;

	if (!ch)
		return;
	p->memory = nfc_alloc(self, NFC_EMEM, size + 3);
	a = nfc_at(self, p->memory + 3, size);
	b = nfc_at(self, other, size + 4);
	fill_pattern(a, size, size);
	note(p, channel_write_ind(ch, p->memory + 3, size));
	note(p, channel_read_ind(ch, other + 2, size));
	CHECK(p->rc[1] || p->rc[2] || !memcmp(a, b + 2, size));
	CHECK(!b[1] && !b[size + 2]);
	stay(self);
}

CASE(transfers_of_any_size_and_place)
{
	static const uint64_t sizes[] = { 0, 1, 4096, 100001, 1300001 };

	for (size_t i = 0; i < sizeof(sizes) / sizeof(*sizes); i++) {
		size = sizes[i];
		UNDER_FAULTS
		{
			pair_of(at, takes, gives);
			both_done(2, 3);
			for (int k = 0; k < 3; k++)
				CHECK_EQ(caller->rc[k], 0);
			CHECK_EQ(target->rc[0], 0);
			CHECK_EQ(target->rc[1], 0);
			CHECK_EQ(w.rig[0]->dma_calls + w.rig[1]->dma_calls, 0);
		}
	}
}

/* ---- what is wrong ---- */

static void waits(struct nfc_process *self, struct puppet *p)
{
	(void)p;
	stay(self);
}

static void tries_everything(struct nfc_process *self, struct puppet *p)
{
	struct nfc_channel *ch = NULL;

	note(p, channel_connect(self, 1ull << 30 | peer, &ch));
	note(p, channel_connect(self, nfc_id(0, 1, 0, THERE), &ch));
	note(p, channel_connect(self, peer + 1, &ch));
	note(p, channel_connect(self, nfc_id(0, 0, 1, 1 << 20), &ch));
	note(p, channel_connect(self, nfc_id(0, 0, 1, 0), &ch));
	note(p, channel_connect(self, nfc_id(0, 0, 0, HERE + 4), &ch));
	note(p, channel_connect(self, nfc_id(0, 0, 1, THERE + 2), &ch));
	CHECK(!ch);
	note(p, channel_connect(self, peer, &ch));
	note(p, channel_connect(self, peer, &ch));
	stay(self);
	note(p, channel_connect(self, peer, &ch));
}

CASE(a_target_that_cannot_be)
{
	static const int want[] = { -NFC_EINVAL,    -NFC_EINVAL,
				    -NFC_ENOTARGET, -NFC_ENOTARGET,
				    -NFC_ENOTARGET, -NFC_EBUSY,
				    -NFC_EBUSY,	    0,
				    -NFC_EBUSY,	    -NFC_ESTOPPED };

	begin(0, 0, 0);
	host_launch(w.rig[1], THERE + 2, waits, 1);
	CHECK_EQ(host_open(w.rig[1], THERE + 2), NFC_OK);
	pair_of(THERE, waits, tries_everything);
	both_done(0, 9);
	CHECK_EQ(host_open(w.rig[1], THERE), NFC_EBUSY);
	stop(0, caller);
	for (int i = 0; i < 10; i++)
		CHECK_EQ(caller->rc[i], want[i]);
	pass_time(SECOND / 10);
	check_free(1, THERE);
	end();
}

static void tries_twice(struct nfc_process *self, struct puppet *p)
{
	struct nfc_channel *ch = NULL;

	note(p, channel_connect(self, peer, &ch));
	CHECK(!ch);
	nfc_sleep(self, SECOND / 20);
	ch = connected(self, p);
	note(p, ch ? channel_write(ch, "x", 1) : 1);
	stay(self);
}

static void reads_on(struct nfc_process *self, struct puppet *p)
{
	while (p->step < 8)
		note(p, channel_read(port(self), p->buf, sizeof(p->buf)));
}

/* No answer in a second; one that comes later is closed at once. */
CASE(an_answer_that_is_late)
{
	begin(0, 0, 0);
	w.cut = true;
	pair_of(THERE, reads_on, tries_twice);
	while (!lossy.lose)
		tick();
	w.cut = false;
	pass_time(SECOND - SECOND / 50);
	CHECK_EQ(caller->step, 0);
	pass_time(SECOND / 25);
	CHECK_EQ(caller->rc[0], -NFC_ETIMEOUT);
	lossy.lose = 0;
	both_done(2, 3);
	CHECK_EQ(target->rc[0], -NFC_ECLOSED);
	CHECK_EQ(caller->rc[1], 0);
	CHECK_EQ(caller->rc[2], 0);
	CHECK_EQ(target->rc[1], 1);
	end();
}

static void fills_all(struct nfc_process *self, struct puppet *p)
{
	struct nfc_channel *ch, *first = NULL;

	for (uint32_t i = 0; i < NFC_JOINTS; i++) {
		CHECK_EQ(channel_connect(self, peer + i, &ch), 0);
		first = first ? first : ch;
	}
	note(p, channel_connect(self, peer + NFC_JOINTS, &ch));
	channel_close(first, BOTH);
	nfc_sleep(self, SECOND / 10);
	note(p, channel_connect(self, peer, &ch));
	CHECK(ch == first);
	stay(self);
}

CASE(a_host_has_so_many)
{
	lossy_reset(0, 0, 0);
	begin_as(wide);
	target = host_launch(w.rig[1], 60, waits, NFC_JOINTS + 1);
	peer = nfc_id(0, 0, 1, 60);
	caller = host_launch(w.rig[0], HERE, fills_all, 1);
	both_done(0, 2);
	CHECK_EQ(caller->rc[0], -NFC_ENOMEM);
	CHECK_EQ(caller->rc[1], 0);
	end();
}

/* ---- ends ---- */

static void writes(struct nfc_process *self, struct puppet *p)
{
	struct nfc_channel *ch = connected(self, p);

	if (!ch)
		return;
	note(p, channel_write(ch, "x", 1));
	note(p, channel_write(ch, "y", 1));
	stay(self);
}

static void reads_and_writes(struct nfc_process *self, struct puppet *p)
{
	struct nfc_channel *ch = connected(self, p);

	if (!ch)
		return;
	for (int i = 0; i < 3; i++) {
		note(p, channel_read(ch, p->buf, sizeof(p->buf)));
		note(p, channel_write(ch, "x", 1));
	}
	channel_close(ch, BOTH);
	stay(self);
}

static void ends(struct nfc_process *self, struct puppet *p)
{
	nfc_sleep(self, SECOND / 50);
	note(p, 0);
}

static void ends_after_a_word(struct nfc_process *self, struct puppet *p)
{
	struct nfc_channel *ch = connected(self, p);

	if (ch)
		note(p, channel_write(ch, "x", 1));
}

/* Who connected hears that the target is gone, each time; and the other way round. */
CASE(each_hears_the_other_end)
{
	UNDER_FAULTS
	{
		pair_of(at, ends, reads_and_writes);
		both_done(1, 7);
		for (int i = 1; i < 7; i++)
			CHECK_EQ(caller->rc[i], -NFC_ECLOSED);
		end();
		begin(faults[f][0], faults[f][1], faults[f][2]);
		pair_of(at, reads_on, ends_after_a_word);
		both_done(2, 2);
		CHECK_EQ(target->rc[0], 1);
		CHECK_EQ(target->rc[1], -NFC_ECLOSED);
		caller = host_launch(w.rig[0], HERE + 5, ends_after_a_word, 1);
		both_done(4, 2);
		CHECK_EQ(target->rc[2], 1);
	}
}

static void polls(struct nfc_process *self, struct puppet *p)
{
	struct nfc_channel *ch = port(self);

	nfc_sleep(self, size);
	note(p, channel_alt(&ch, 1, 1));
	if (p->rc[0] == 0)
		note(p, channel_read(ch, p->buf, sizeof(p->buf)));
	stay(self);
}

/* A withdrawal crosses the commit: what was taken was written, and the other way round. */
CASE(a_withdrawal_meets_the_commit)
{
	int taken = 0, rounds = 40;

	for (int round = 0; round < rounds; round++) {
		begin(0, 0, 50);
		lossy.random = (uint64_t)round;
		size = (uint64_t)round * SECOND / 1000;
		pair_of(round & 1 ? HERE : THERE, polls, writes);
		for (int i = 0; i < 100; i++)
			tick();
		stop(0, caller);
		pass_time(SECOND / 3);
		if (caller->step > 1) {
			bool took = target->step > 1 && target->rc[1] == 1;

			taken += took;
			CHECK_EQ(caller->rc[1], took ? 0 : -NFC_ESTOPPED);
		}
		end();
	}
	CHECK(taken > 5 && taken < rounds - 5);
}

/* ---- what breaks ---- */

/* Whatever was before, two processes that are new meet. */
static void check_pair_works(void)
{
	lossy_calm();
	for (int at = 0; at < 2; at++)
		for (int i = 0; i < NFC_JOINTS; i++)
			CHECK_EQ(w.rig[at]->dev->host[0]->joints[i].ends, 0);
	pair_of(THERE + 4, answers, asks);
	both_done(1, 2);
	CHECK_EQ(caller->rc[1], MANY);
}

static const role targets[] = { answers, takes, polls, ends };
static const role callers[] = { asks, gives, writes, reads_and_writes };

/* Wherever two are with each other, the way between them goes: both hear, all is free. */
CASE(a_way_that_breaks_at_any_moment)
{
	size = 300000;
	for (int kind = 0; kind < 4; kind++)
		for (int ticks = 1; ticks < 60; ticks += 1 + ticks / 4) {
			begin(0, 0, ticks % 3 * 20);
			pair_of(THERE, targets[kind], callers[kind]);
			for (int i = 0; i < ticks; i++)
				tick();
			lossy.lose = 100;
			pass_time(SECOND + SECOND / 2);
			CHECK(kind != 1 || caller->step < 2 || caller->rc[1] ||
			      (target->step > 0 && !target->rc[0]));
			for (int at = 0; at < 2; at++)
				for (int i = 0; i < 2 * NFC_JOINTS; i++)
					CHECK(!w.end[at][i].used);
			lossy_calm();
			stop(0, caller);
			stop(1, target);
			pass_time(SECOND / 5);
			check_pair_works();
			end();
		}
}

static int ends_left(void)
{
	int n = 0;

	for (int at = 0; at < 2; at++)
		for (int i = 0; i < 2 * NFC_JOINTS; i++)
			n += w.end[at][i].used;
	return n;
}

/* Both are told in time: at once if no way leads from one to the other. */
CASE(an_end_that_is_gone_is_noticed_in_time)
{
	for (int silent = 0; silent < 2; silent++) {
		uint64_t since;

		begin(0, 0, 0);
		pair_of(THERE, waits, writes);
		while (caller->step < 1 || ends_left() < 2)
			tick();
		pass_time(SECOND / 4);
		since = lossy.now;
		lossy.away = !silent;
		lossy.lose = 100;
		while (ends_left() && lossy.now - since < 2ull * SECOND)
			tick();
		since = lossy.now - since;
		CHECK(since > (silent ? SECOND : SECOND / 20));
		CHECK(since < (silent ? SECOND * 13ull / 10 : SECOND / 14));
		both_done(0, 2);
		CHECK_EQ(caller->rc[1], -NFC_ECLOSED);
		end();
	}
}

/* Ways that come back soon cost time, and nothing else. */
CASE(a_way_that_comes_back)
{
	begin(0, 0, 0);
	pair_of(THERE, answers, asks);
	both_done(0, 1);
	for (int i = 0; i < 100 && caller->step < 2; i++) {
		lossy.away = true;
		pass_time(SECOND * 48ull / 1000);
		lossy.away = false;
		for (int k = 0; k < 8; k++)
			tick();
	}
	both_done(1, 2);
	CHECK_EQ(caller->rc[1], MANY);
	CHECK_EQ(target->size, MANY);
	end();
}

/* The host of one end goes at any moment, and so does its process. */
CASE(an_end_that_goes_at_any_moment)
{
	size = 300000;
	for (int kind = 0; kind < 4; kind++)
		for (int ticks = 1; ticks < 60; ticks += 1 + ticks / 4)
			for (uint32_t at = 0; at < 2; at++) {
				begin(0, 0, ticks % 3 * 20);
				pair_of(HERE, targets[kind], callers[kind]);
				for (int i = 0; i < ticks; i++)
					tick();
				stop(at, at ? target : caller);
				pass_time(SECOND / 3);
				CHECK(at ? target->done : caller->done);
				stop(!at, at ? caller : target);
				pass_time(SECOND / 3);
				check_pair_works();
				end();
			}
}

/* Takes and gives what comes, whatever it is. */
static void babbles(struct nfc_process *self, struct puppet *p)
{
	struct nfc_channel *ch = p->target == THERE ? port(self) :
						      connected(self, p);
	struct nfc_offer offer;

	p->memory = nfc_alloc(self, NFC_EMEM, size);
	for (uint32_t i = 0; ch && !nfc_stopped(self); i++) {
		if (!channel_alt(&ch, 1, SECOND / 1000) &&
		    channel_read_any(ch, p->buf, sizeof(p->buf), &offer) >= 0 &&
		    offer.indirect)
			channel_read_ind(ch, p->memory,
					 i & 1 ? offer.size : size);
		if (i & 1)
			channel_write(ch, "x", 1);
		else
			channel_write_ind(ch, p->memory, size);
		nfc_yield(self);
	}
}

/* Packets that lie harm nobody else. */
CASE(nonsense_is_dropped)
{
	struct nfc_far_packet p;

	begin(0, 0, 0);
	size = 100000;
	pair_of(THERE, babbles, babbles);
	both_done(0, 1);
	for (int i = 0; i < 60000; i++) {
		struct flying f = { .packet.to = chance(2) };
		struct nfc_slot *s = p.slot;

		for (uint32_t k = 0; k < sizeof(p) / 4; k += 1 + chance(64))
			memset((uint8_t *)&p + 4 * k, (int)chance(256), 4);
		p.head.epoch = chance(8) ? 1 : chance(3);
		p.head.host = (uint16_t)(chance(8) ? !f.packet.to : chance(3));
		p.head.count = (uint8_t)chance(4);
		p.head.first = chance(40);
		s->header = nfc_header(chance(NFC_TYPE_COUNT), 56, 0,
				       s->payload[0], THERE) |
			    (uint64_t)chance(2) << NFC_HDR_PHASE_SHIFT;
		f.packet.from = !f.packet.to;
		f.packet.kind = (uint8_t)(NFC_SPAN_JOIN + chance(6));
		f.packet.size = chance(2) ? NFC_FAR_HEAD + p.head.count * 64u :
					    chance(NFC_PACKET_SIZE + 1);
		if (f.packet.size < NFC_FAR_HEAD ||
		    (f.packet.kind == NFC_SPAN_JOIN && i % 64))
			continue;
		memcpy(f.word, &p, sizeof(p));
		lossy_give(&f, deliver);
		if (i % 64 == 0)
			tick();
	}
	stop(0, caller);
	stop(1, target);
	pass_time(2ull * SECOND);
	check_pair_works();
	end();
}
