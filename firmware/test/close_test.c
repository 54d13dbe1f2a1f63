// SPDX-License-Identifier: MIT
/* Ends that close, from either side, at every step, and open again. */
#include <stdio.h>
#include <string.h>

#include "rig.h"

enum {
	H2D = 1 << NFC_H2D,
	D2H = 1 << NFC_D2H,
	BOTH = H2D | D2H,
	SIZE = 24 * 6 * RIG_PAGE,
};

static struct nfc_channel *port(struct nfc_process *self)
{
	return nfc_channel_of(self, 0);
}

static void reads(struct nfc_process *self, struct puppet *p)
{
	note(p, channel_read(port(self), p->buf, sizeof(p->buf)));
	note(p, channel_read(port(self), p->buf, sizeof(p->buf)));
	stay(self);
}

static void reads_ind(struct nfc_process *self, struct puppet *p)
{
	p->memory = nfc_alloc(self, NFC_EMEM, SIZE);
	note(p, channel_read_ind(port(self), p->memory, SIZE));
	note(p, channel_read(port(self), p->buf, sizeof(p->buf)));
	stay(self);
}

static void offers(struct nfc_process *self, struct puppet *p)
{
	struct nfc_offer offer;

	note(p, channel_offer(port(self), &offer));
	note(p, channel_read(port(self), p->buf, sizeof(p->buf)));
	stay(self);
}

static void alts(struct nfc_process *self, struct puppet *p)
{
	struct nfc_channel *ch = port(self);

	note(p, channel_alt(&ch, 1, UINT64_MAX));
	note(p, channel_read(ch, p->buf, sizeof(p->buf)));
	stay(self);
}

static void writes(struct nfc_process *self, struct puppet *p)
{
	note(p, channel_write(port(self), "x", 1));
	note(p, channel_write(port(self), "y", 1));
	stay(self);
}

static void writes_ind(struct nfc_process *self, struct puppet *p)
{
	p->memory = nfc_alloc(self, NFC_EMEM, SIZE);
	note(p, channel_write_ind(port(self), p->memory, SIZE));
	note(p, channel_write(port(self), "y", 1));
	stay(self);
}

static void hold(struct nfc_process *self, struct puppet *p)
{
	(void)p;
	stay(self);
}

/* Close both halves and take the answer; the target may be opened again. */
static void close_all(struct rig *r, uint32_t target)
{
	host_close(r, target, BOTH);
	host_expect_close(r, target, BOTH);
	host_expect_nothing(r, target);
}

/* ---- the host closes ---- */

static void check_reader(void (*fn)(struct nfc_process *, struct puppet *))
{
	struct rig *r = rig_new(NULL);
	struct puppet *p = host_start(r, fn, 1);

	host_close(r, p->target, H2D);
	host_expect_nothing(r, p->target);
	/* Reported once: alt names the channel, the read after it returns why. */
	CHECK_EQ(p->step, fn == alts ? 2 : 1);
	CHECK_EQ(p->rc[p->step - 1], -NFC_ECLOSED);
	host_close(r, p->target, D2H);
	host_expect_close(r, p->target, BOTH);
	rig_free(r);
}

CASE(a_reader_hears_the_close)
{
	check_reader(reads);
	check_reader(reads_ind);
	check_reader(offers);
	check_reader(alts);
}

CASE(a_writer_hears_the_close)
{
	for (int i = 0; i < 2; i++) {
		struct rig *r = rig_new(NULL);
		struct puppet *p = host_start(r, i ? writes_ind : writes, 1);
		struct nfc_slot slot;

		REQUIRE(host_take(r, p->target, &slot));
		host_close(r, p->target, D2H);
		host_expect_nothing(r, p->target);
		CHECK_EQ(p->rc[0], -NFC_ECLOSED);
		CHECK_EQ(p->rc[1], -NFC_ECLOSED);
		rig_free(r);
	}
}

CASE(what_is_parked_goes_with_the_close)
{
	for (int i = 0; i < 2; i++) {
		struct rig *r = rig_new(NULL);
		struct puppet *p = host_start(r, hold, 1);

		if (i)
			host_begin(r, p->target, 100, 1000000);
		else
			host_direct(r, p->target, "x", 1);
		rig_step(r);
		close_all(r, p->target);
		rig_advance(r, 200000000);
		host_expect_nothing(r, p->target);
		CHECK_EQ(rig_heartbeat(r).parked, 0);
		rig_free(r);
	}
}

CASE(a_target_opens_again)
{
	struct rig *r = rig_new(NULL);
	struct puppet *p = host_start(r, reads, 1);
	uint64_t first = r->channel[p->target].generation, id;

	CHECK_EQ(host_open(r, p->target), NFC_EBUSY);
	close_all(r, p->target);
	CHECK_EQ(p->rc[0], -NFC_ECLOSED);
	CHECK_EQ(host_open(r, p->target), 0);
	CHECK(r->channel[p->target].generation > first);
	id = host_direct(r, p->target, "new", 3);
	host_expect_ack(r, p->target, NFC_TYPE_ACK, NFC_H2D, id,
			NFC_STATE_CONSUMED, NFC_OK);
	CHECK_EQ(p->rc[1], 3);
	rig_free(r);
}

/* Ids continue from those of the last subscription. */
CASE(ids_outlive_a_subscription)
{
	struct rig *r = rig_new(NULL);
	struct puppet *p = host_start(r, hold, 1);
	uint64_t id = host_direct(r, p->target, "x", 1);

	rig_step(r);
	close_all(r, p->target);
	CHECK_EQ(host_open(r, p->target), 0);
	CHECK_EQ(r->channel[p->target].next[NFC_H2D], id + 1);
	rig_free(r);
}

CASE(an_old_close_does_not_close_the_new)
{
	struct rig *r = rig_new(NULL);
	struct puppet *p = host_start(r, hold, 1);
	uint64_t old = r->channel[p->target].generation, now;

	close_all(r, p->target);
	CHECK_EQ(host_open(r, p->target), 0);
	now = r->channel[p->target].generation;
	r->channel[p->target].generation = old;
	host_close(r, p->target, BOTH);
	host_expect_nothing(r, p->target);
	r->channel[p->target].generation = now;
	close_all(r, p->target);
	rig_free(r);
}

/* A closed subscription is no subscription. */
CASE(messages_after_the_close_are_dropped)
{
	struct rig *r = rig_new(NULL);
	struct puppet *p = host_start(r, reads, 1);
	uint64_t dropped;

	close_all(r, p->target);
	dropped = rig_dropped(r);
	host_direct(r, p->target, "x", 1);
	host_expect_nothing(r, p->target);
	CHECK_EQ(rig_dropped(r), dropped + 1);
	rig_free(r);
}

/* ---- while a transfer is under way ---- */

static void check_moving(uint32_t direction, bool done)
{
	struct rig *r = rig_new(NULL);
	struct puppet *p = host_start(
		r, direction == NFC_H2D ? reads_ind : writes_ind, 1);
	uint8_t *buf = host_buffer(r, SIZE, 1);
	uint64_t id = direction == NFC_H2D ?
			      host_begin(r, p->target, SIZE, 0) :
			      r->channel[p->target].next[NFC_D2H]++;
	unsigned int copies;
	struct nfc_slot slot;

	rig_step(r);
	if (direction == NFC_D2H)
		host_expect(r, p->target, NFC_TYPE_IND_BEGIN, id);
	if (done)
		host_drive(r, p->target, direction, id, buf, SIZE);
	else
		host_send_lists(r, p->target, direction, id, buf, SIZE, 0, 1);
	host_close(r, p->target, BOTH);
	rig_step(r);
	copies = r->dma_calls;
	memset(&slot, 0, sizeof(slot));
	while (host_take(r, p->target, &slot))
		;
	CHECK_EQ(nfc_header_type(slot.header), NFC_TYPE_CLOSE);
	CHECK(p->step >= 1);
	CHECK(p->rc[0] == -NFC_ECLOSED || p->rc[0] == -NFC_EABORTED);
	host_send_lists(r, p->target, direction, id, buf, SIZE, 1, 4);
	host_note(r, p->target, NFC_TYPE_FIN, direction, id);
	host_expect_nothing(r, p->target);
	CHECK_EQ(r->dma_calls, copies);
	CHECK_EQ(host_open(r, p->target), 0);
	rig_free(r);
}

CASE(a_close_ends_a_transfer)
{
	check_moving(NFC_H2D, false);
	check_moving(NFC_H2D, true);
	check_moving(NFC_D2H, false);
	check_moving(NFC_D2H, true);
}

/* ---- the device closes ---- */

static void closes_h2d(struct nfc_process *self, struct puppet *p)
{
	later(self);
	channel_close(port(self), H2D);
	note(p, channel_read(port(self), p->buf, sizeof(p->buf)));
	note(p, channel_write(port(self), "up", 2));
	stay(self);
}

CASE(a_process_closes_one_half)
{
	struct rig *r = rig_new(NULL);
	struct puppet *p = host_start(r, closes_h2d, 1);
	uint64_t id = host_direct(r, p->target, "x", 1), up;

	go(r);
	host_expect_ack(r, p->target, NFC_TYPE_ERROR, NFC_H2D, id,
			NFC_STATE_FAILED, NFC_ECLOSED);
	host_expect_close(r, p->target, H2D);
	CHECK_EQ(p->rc[0], -NFC_ECLOSED);
	/* The other half works on. */
	up = r->channel[p->target].next[NFC_D2H]++;
	host_expect(r, p->target, NFC_TYPE_DIRECT, up);
	host_reply(r, p->target, NFC_TYPE_ACK, NFC_D2H, up, NFC_STATE_CONSUMED,
		   NFC_OK, 0);
	id = host_begin(r, p->target, 10, 0);
	host_expect_ack(r, p->target, NFC_TYPE_ERROR, NFC_H2D, id,
			NFC_STATE_FAILED, NFC_ECLOSED);
	CHECK_EQ(p->rc[1], 0);
	rig_free(r);
}

static void ends(struct nfc_process *self, struct puppet *p)
{
	(void)p;
	later(self);
}

CASE(a_process_that_ends_closes_its_channels)
{
	struct rig *r = rig_new(NULL);
	struct puppet *p = host_start(r, ends, 2);
	uint64_t id = host_direct(r, p->target, "x", 1);

	go(r);
	CHECK(p->done);
	host_expect_ack(r, p->target, NFC_TYPE_ERROR, NFC_H2D, id,
			NFC_STATE_FAILED, NFC_ECLOSED);
	for (uint32_t i = 0; i < 2; i++) {
		host_expect_close(r, p->target + i, BOTH);
		id = host_direct(r, p->target + i, "y", 1);
		host_expect_ack(r, p->target + i, NFC_TYPE_ERROR, NFC_H2D, id,
				NFC_STATE_FAILED, NFC_ECLOSED);
		close_all(r, p->target + i);
		CHECK_EQ(host_open(r, p->target + i), NFC_ENOTARGET);
	}
	rig_free(r);
}

/* The next process on the same target starts with a clean channel. */
CASE(a_target_is_used_again)
{
	struct rig *r = rig_new(NULL);
	struct puppet *p = host_start(r, ends, 1), *q;
	uint64_t id;

	go(r);
	host_expect_close(r, p->target, BOTH);
	close_all(r, p->target);
	q = host_launch(r, p->target, reads, 1);
	CHECK_EQ(q->target, p->target);
	CHECK_EQ(host_open(r, q->target), 0);
	id = host_direct(r, q->target, "new", 3);
	host_expect_ack(r, q->target, NFC_TYPE_ACK, NFC_H2D, id,
			NFC_STATE_CONSUMED, NFC_OK);
	CHECK_EQ(q->rc[0], 3);
	rig_free(r);
}

/* A new process may start before the old subscriber took notice and closed. */
CASE(a_new_process_on_an_old_subscription)
{
	struct rig *r = rig_new(NULL);
	struct puppet *p = host_start(r, ends, 1), *q;
	uint64_t id;

	go(r);
	host_expect_close(r, p->target, BOTH);
	q = host_launch(r, p->target, reads, 1);
	CHECK(rig_step(r));
	CHECK_EQ(q->step, 0);
	CHECK_EQ(host_open(r, q->target), NFC_EBUSY);
	close_all(r, p->target);
	CHECK_EQ(q->rc[0], -NFC_ECLOSED);
	CHECK_EQ(host_open(r, q->target), 0);
	id = host_direct(r, q->target, "new", 3);
	host_expect_ack(r, q->target, NFC_TYPE_ACK, NFC_H2D, id,
			NFC_STATE_CONSUMED, NFC_OK);
	CHECK_EQ(q->rc[1], 3);
	rig_free(r);
}

/*
 * A service whose caller closes one half must wait for the next one; a
 * busy loop would take the island from everybody.
 */
static void check_half_close(struct rig *r, uint32_t target, uint32_t halves,
			     const char *name)
{
	struct nfc_control c;
	unsigned int before = test_failures();
	struct nfc_slot slot;

	CHECK_EQ(host_open(r, target), 0);
	if (target == NFC_TARGET_LOG) { /* it has a line to give then */
		host_direct(r, target, "kept", 4);
		rig_step(r);
	}
	host_close(r, target, halves);
	if (!CHECK(rig_step(r))) {
		printf("... %s spins after close %u\n", name, halves);
		return;
	}
	/* The device still serves: control answers, and the rest closes. */
	c = host_control(r, NFC_CONTROL_MEMORY, NFC_EMEM, 0, 0, NULL);
	CHECK_EQ(c.status, 0);
	if (halves != BOTH)
		host_close(r, target, BOTH & ~halves);
	rig_step(r);
	memset(&slot, 0, sizeof(slot));
	while (host_take(r, target, &slot))
		;
	CHECK_EQ(nfc_header_type(slot.header), NFC_TYPE_CLOSE);
	CHECK_EQ(host_open(r, target), 0);
	host_close(r, target, BOTH);
	rig_step(r);
	while (host_take(r, target, &slot))
		;
	if (test_failures() != before)
		printf("... %s, halves %u\n", name, halves);
}

CASE(services_survive_a_half_close)
{
	static const char *const names[] = { "control", "loopback", "log",
					     "telemetry", "time" };

	for (uint32_t target = 1; target <= 4; target++) {
		for (uint32_t halves = 1; halves <= 3; halves++) {
			struct rig *r = rig_new(NULL);

			check_half_close(r, target, halves, names[target]);
			rig_free(r);
		}
	}
}

CASE(programs_survive_a_half_close)
{
	static const char *const names[] = { "loopback", "sink", "source",
					     "flood",	 "gate", "expect",
					     "asked",	 "hold" };

	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
		for (uint32_t halves = 1; halves <= 3; halves++) {
			struct rig *r = rig_new(NULL);
			struct nfc_control c = host_control(r, NFC_CONTROL_START,
							    0, 2, 0, names[i]);

			CHECK_EQ(c.status, 0);
			check_half_close(r, (uint32_t)c.b, halves, names[i]);
			rig_free(r);
		}
	}
}
