// SPDX-License-Identifier: MIT
#include "span_rig.h"

#include <stdlib.h>
#include <string.h>

struct span_world w;
uint64_t peer, size;
struct puppet *target, *caller;

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
	uint32_t at = e >= w.end[1];

	if (e->span.line.host && e->span.state != NFC_SPAN_ASKED)
		w.ended[at][w.ends[at]++ % 64] = e->span.line.epoch;
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
				    .target = (uint32_t)id };
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

static bool on_whose(void *self, uint32_t host, struct nfc_whose *out)
{
	(void)self;
	*out = (struct nfc_whose){ .owner = OWNER + host };
	return true;
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

/* For a target of its own host, or for one that listens. */
static int ask_host(uint32_t at, uint32_t host, uint32_t number,
		    const struct nfc_span_ask *a)
{
	struct nfc_far_guest visit = { .from = { a->owner, a->home },
				       .to = { .owner = OWNER + host },
				       .node = !at,
				       .target = a->target };
	struct nfc_device *dev = w.rig[at]->dev;
	struct nfc_span_config c = { .number = number };
	int rc = -NFC_ENOTARGET;
	uint32_t index;

	if (a->owner == OWNER + host)
		rc = nfc_joint_ask(dev, host, a->target, &c.joint, &index);
	if (rc == -NFC_ENOTARGET)
		rc = nfc_far_guest_ask(dev, host, &visit, &c.joint, &index);
	if (!rc)
		add_end(at, host, index, &c);
	return rc;
}

static int join_received(uint32_t at, uint32_t number,
			 const struct nfc_span_ask *a)
{
	int rc = -NFC_ENOTARGET;

	for (int i = 0; i < 64; i++) /* one that arrives late makes no other */
		if (w.ended[at][i] == number)
			return 0;
	for (uint32_t host = 0; host < RIG_HOSTS && rc == -NFC_ENOTARGET; host++)
		if (w.rig[at]->host[host])
			rc = ask_host(at, host, number, a);
	return rc;
}

void span_deliver(const struct nfc_packet *p, const struct nfc_fifo *fifo)
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
		rc = join_received(p->to, h.epoch, &ask);
		if (rc)
			nfc_span_refuse(&lossy.node[p->to], p, &h,
					(uint32_t)-rc);
	} else if (p->kind != NFC_SPAN_GONE) {
		nfc_span_refuse(&lossy.node[p->to], p, &h, 0);
	}
}

static void span_tick_by(uint64_t ns)
{
	lossy.now += ns;
	for (int at = 0; at < 2; at++)
		rig_advance(w.rig[at], ns);
	for (int pass = 0; pass < 4; pass++) {
		lossy.now += STEP_NS;
		lossy_deliver(span_deliver);
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

void span_tick(void)
{
	span_tick_by(TICK_NS);
}

void span_pass(uint64_t ns)
{
	for (uint64_t t = 0; t < ns; t += 10 * TICK_NS)
		span_tick_by(10 * TICK_NS);
}

static void two_islands(struct nfc_config *c)
{
	c->islands = 2;
	c->hosts = 2;
}
void span_begin_as(void (*shape)(struct nfc_config *c))
{
	memset(&w, 0, sizeof(w));
	for (int at = 0; at < 2; at++) {
		struct rig *r = w.rig[at] = rig_new(shape);

		r->port.locate = on_locate;
		r->port.join = on_join;
		r->port.carry = on_carry;
		r->port.fetch = on_fetch;
		r->port.whose = on_whose;
	}
}

void span_begin(uint32_t lose, uint32_t twice, uint32_t late)
{
	lossy_reset(lose, twice, late);
	span_begin_as(two_islands);
}

/* The targets can be subscribed again, and no joint is in use nor any span. */
void span_check_free(uint32_t at, uint32_t target)
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

void span_leave(uint32_t at, uint32_t host)
{
	for (int i = 0; i < 2 * NFC_JOINTS; i++)
		if (w.end[at][i].used && w.end[at][i].host == host)
			drop_end(&w.end[at][i]);
}

void span_end(void)
{
	for (int at = 0; at < 2; at++) {
		for (int i = 0; i < 2 * NFC_JOINTS; i++)
			if (w.end[at][i].used)
				drop_end(&w.end[at][i]);
		rig_free(w.rig[at]);
	}
}

/* ---- processes ---- */

struct nfc_channel *span_port(struct nfc_process *self)
{
	return nfc_channel_of(self, 0);
}

struct nfc_channel *span_connected(struct nfc_process *self, struct puppet *p)
{
	struct nfc_channel *ch = NULL;

	note(p, channel_connect(self, peer, &ch));
	return ch;
}

void pair_of(uint32_t at, role t, role c)
{
	peer = nfc_id(0, 0, 1, at);
	target = host_launch(w.rig[1], at, t, 1);
	caller = host_launch(w.rig[0], HERE + 4, c, 1);
}

bool both_done(int t, int c)
{
	for (int i = 0; i < 200000 && (target->step < t || caller->step < c);
	     i++)
		span_tick();
	return CHECK(target->step >= t) & CHECK(caller->step >= c);
}

void span_stop(uint32_t at, struct puppet *p)
{
	uint32_t status = NFC_EBUSY;

	for (int i = 0; i < 8 && status == NFC_EBUSY; i++)
		status = host_control(w.rig[at], NFC_CONTROL_STOP, p->process,
				      0, 0, NULL)
				 .status;
}

void answers(struct nfc_process *self, struct puppet *p)
{
	int n = 0, rc = 0;

	while (!rc && (n = channel_read(span_port(self), p->buf, 56)) >= 0) {
		p->buf[0]++;
		p->size += (uint64_t)n;
		rc = channel_write(span_port(self), p->buf, (size_t)n);
	}
	note(p, rc ? rc : n);
	stay(self);
}

/* Notes how many were answered. */
void asks(struct nfc_process *self, struct puppet *p)
{
	struct nfc_channel *ch = span_connected(self, p);
	uint8_t i = 0;

	while (ch && i < MANY && !channel_write(ch, &i, 1) &&
	       channel_read(ch, p->buf, 56) == 1)
		CHECK_EQ(p->buf[0], ++i);
	note(p, i);
}

void takes(struct nfc_process *self, struct puppet *p)
{
	p->memory = nfc_alloc(self, NFC_EMEM, size + 1);
	note(p, channel_read_ind(span_port(self), p->memory + 1, size));
	note(p, channel_write_ind(span_port(self), p->memory + 1, size));
	stay(self);
}

void gives(struct nfc_process *self, struct puppet *p)
{
	struct nfc_channel *ch = span_connected(self, p);
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

void waits(struct nfc_process *self, struct puppet *p)
{
	(void)p;
	stay(self);
}

void writes(struct nfc_process *self, struct puppet *p)
{
	struct nfc_channel *ch = span_connected(self, p);

	if (!ch)
		return;
	note(p, channel_write(ch, "x", 1));
	note(p, channel_write(ch, "y", 1));
	stay(self);
}

void reads_and_writes(struct nfc_process *self, struct puppet *p)
{
	struct nfc_channel *ch = span_connected(self, p);

	if (!ch)
		return;
	for (int i = 0; i < 3; i++) {
		note(p, channel_read(ch, p->buf, sizeof(p->buf)));
		note(p, channel_write(ch, "x", 1));
	}
	channel_close(ch, BOTH);
	stay(self);
}

void ends(struct nfc_process *self, struct puppet *p)
{
	nfc_sleep(self, SECOND / 50);
	note(p, 0);
}

void polls(struct nfc_process *self, struct puppet *p)
{
	struct nfc_channel *ch = span_port(self);

	nfc_sleep(self, size);
	note(p, channel_alt(&ch, 1, 1));
	if (p->rc[0] == 0)
		note(p, channel_read(ch, p->buf, sizeof(p->buf)));
	stay(self);
}
