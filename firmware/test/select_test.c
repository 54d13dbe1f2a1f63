// SPDX-License-Identifier: MIT
/* OFFER and READY, and the device's own choice among channels. */
#include <string.h>

#include "rig.h"

static struct nfc_channel *port(struct nfc_process *self)
{
	return nfc_channel_of(self, 0);
}

static void offer(struct rig *r, uint32_t target)
{
	host_note(r, target, NFC_TYPE_OFFER, NFC_H2D,
		  r->channel[target].next[NFC_H2D]);
}

static void expect_ready(struct rig *r, uint32_t target)
{
	host_expect_note(r, target, NFC_TYPE_READY, NFC_H2D,
			 r->channel[target].next[NFC_H2D]);
}

static void reads(struct nfc_process *self, struct puppet *p)
{
	if (p->size)
		later(self);
	note(p, channel_read(port(self), p->buf, sizeof(p->buf)));
	note(p, channel_read(port(self), p->buf, sizeof(p->buf)));
	stay(self);
}

static void reads_later(struct nfc_process *self, struct puppet *p)
{
	p->size = 1;
	reads(self, p);
}

static void reads_ind_later(struct nfc_process *self, struct puppet *p)
{
	later(self);
	p->memory = nfc_alloc(self, NFC_EMEM, 100);
	note(p, channel_read_ind(port(self), p->memory, 100));
	stay(self);
}

static void offers_later(struct nfc_process *self, struct puppet *p)
{
	struct nfc_offer o;

	later(self);
	note(p, channel_offer(port(self), &o));
	stay(self);
}

static void alts_later(struct nfc_process *self, struct puppet *p)
{
	struct nfc_channel *ch[] = { port(self) };

	later(self);
	note(p, channel_alt(ch, 1, UINT64_MAX));
	stay(self);
}

CASE(ready_at_once_if_the_target_waits)
{
	struct rig *r = rig_new(NULL);
	struct puppet *p = host_start(r, reads, 1);

	offer(r, p->target);
	expect_ready(r, p->target);
	host_expect_nothing(r, p->target);
	CHECK_EQ(p->step, 0); /* it commits nobody */
	rig_free(r);
}

/* READY is sent once, with whatever wait the target enters. */
CASE(ready_when_the_target_waits)
{
	static void (*const waits[])(struct nfc_process *, struct puppet *) = {
		reads_later, reads_ind_later, offers_later, alts_later
	};

	for (size_t i = 0; i < sizeof(waits) / sizeof(*waits); i++) {
		struct rig *r = rig_new(NULL);
		struct puppet *p = host_start(r, waits[i], 1);

		offer(r, p->target);
		host_expect_nothing(r, p->target);
		go(r);
		expect_ready(r, p->target);
		host_expect_nothing(r, p->target);
		rig_free(r);
	}
}

static void looks_later(struct nfc_process *self, struct puppet *p)
{
	struct nfc_channel *ch[] = { port(self) };

	later(self);
	note(p, channel_alt(ch, 1, 0));
	stay(self);
}

/* A message would be there and be found: the host that asks must not wait for ever. */
CASE(ready_when_the_target_looks_and_does_not_wait)
{
	struct rig *r = rig_new(NULL);
	struct puppet *p = host_start(r, looks_later, 1);

	offer(r, p->target);
	host_expect_nothing(r, p->target);
	go(r);
	expect_ready(r, p->target);
	CHECK_EQ(p->rc[0], -NFC_ETIMEOUT);
	host_expect_nothing(r, p->target);
	rig_free(r);
}

CASE(an_offer_is_forgotten_with_the_next_message)
{
	struct rig *r = rig_new(NULL);
	struct puppet *p = host_start(r, reads_later, 1);
	uint64_t id;

	offer(r, p->target);
	host_expect_nothing(r, p->target);
	id = host_direct(r, p->target, "x", 1);
	go(r);
	host_expect_ack(r, p->target, NFC_TYPE_ACK, NFC_H2D, id,
			NFC_STATE_CONSUMED, NFC_OK);
	host_expect_nothing(r, p->target); /* though the second read waits */
	CHECK_EQ(p->step, 1);
	rig_free(r);
}

CASE(a_stale_offer_is_dropped)
{
	struct rig *r = rig_new(NULL);
	struct puppet *p = host_start(r, reads, 1);
	uint64_t dropped = rig_dropped(r);

	r->channel[p->target].next[NFC_H2D]++;
	offer(r, p->target);
	host_expect_nothing(r, p->target);
	CHECK_EQ(rig_dropped(r), dropped + 1);
	rig_free(r);
}

static void ends_later(struct nfc_process *self, struct puppet *p)
{
	(void)p;
	later(self);
}

/* Nobody waits for ever: a target that closes counts as ready, too. */
CASE(an_offer_hears_of_the_end)
{
	struct rig *r = rig_new(NULL);
	struct puppet *p = host_start(r, ends_later, 1);
	struct nfc_slot slot;
	bool ready = false;

	offer(r, p->target);
	host_expect_nothing(r, p->target);
	go(r);
	while (host_take(r, p->target, &slot))
		ready |= nfc_header_type(slot.header) == NFC_TYPE_READY;
	CHECK(ready);
	offer(r, p->target);
	expect_ready(r, p->target);
	rig_free(r);
}

/* ---- ALT ---- */

enum {
	PORTS = 5,
};

static void alt_reads(struct nfc_process *self, struct puppet *p)
{
	struct nfc_channel *ch[PORTS];

	for (uint32_t i = 0; i < PORTS; i++)
		ch[i] = nfc_channel_of(self, i);
	later(self);
	for (;;) {
		int i = channel_alt(ch, PORTS, p->size ? p->size : UINT64_MAX);

		note(p, i);
		if (i < 0)
			break;
		channel_read(ch[i], p->buf, sizeof(p->buf));
	}
	stay(self);
}

static void alt_polls(struct nfc_process *self, struct puppet *p)
{
	struct nfc_channel *ch[] = { port(self) };

	note(p, channel_alt(ch, 1, 0));
	note(p, channel_alt(ch, 0, UINT64_MAX));
	later(self);
	note(p, channel_alt(ch, 1, 0));
	stay(self);
}

CASE(alt_takes_the_lowest_ready)
{
	struct rig *r = rig_new(NULL);
	struct puppet *p = host_start(r, alt_reads, PORTS);

	host_direct(r, p->target + 4, "4", 1);
	host_direct(r, p->target + 1, "1", 1);
	host_begin(r, p->target + 3, 10, 0);
	go(r);
	CHECK_EQ(p->step, 3);
	CHECK_EQ(p->rc[0], 1);
	CHECK_EQ(p->rc[1], 3); /* a read of a transfer: both see EKIND */
	CHECK_EQ(p->rc[2], 4);
	host_direct(r, p->target + 2, "2", 1);
	rig_step(r);
	CHECK_EQ(p->step, 4);
	CHECK_EQ(p->rc[3], 2);
	rig_free(r);
}

static void alt_for_a_while(struct nfc_process *self, struct puppet *p)
{
	p->size = 5000000;
	alt_reads(self, p);
}

CASE(alt_times_out)
{
	struct rig *r = rig_new(NULL);
	struct puppet *p = host_start(r, alt_for_a_while, PORTS);
	uint64_t id;

	go(r);
	rig_advance(r, 4999999);
	CHECK_EQ(p->step, 0);
	rig_advance(r, 1);
	CHECK_EQ(p->step, 1);
	CHECK_EQ(p->rc[0], -NFC_ETIMEOUT);
	/* It left nothing behind on the channels. */
	id = host_direct(r, p->target + 2, "x", 1);
	host_expect_nothing(r, p->target + 2);
	host_note(r, p->target + 2, NFC_TYPE_WITHDRAW, NFC_H2D, id);
	host_expect_note(r, p->target + 2, NFC_TYPE_WITHDRAWN, NFC_H2D, id);
	rig_free(r);
}

CASE(alt_that_is_served_forgets_its_timeout)
{
	struct rig *r = rig_new(NULL);
	struct puppet *p = host_start(r, alt_for_a_while, PORTS);

	go(r);
	rig_advance(r, 4000000);
	host_direct(r, p->target, "x", 1);
	rig_step(r);
	CHECK_EQ(p->step, 1);
	CHECK_EQ(p->rc[0], 0);
	rig_advance(r, 4999999); /* of the second alt */
	CHECK_EQ(p->step, 1);
	rig_advance(r, 1);
	CHECK_EQ(p->rc[1], -NFC_ETIMEOUT);
	rig_free(r);
}

CASE(alt_polls_and_refuses_nothing)
{
	struct rig *r = rig_new(NULL);
	struct puppet *p = host_start(r, alt_polls, 1);

	rig_step(r);
	CHECK_EQ(p->rc[0], -NFC_ETIMEOUT);
	CHECK_EQ(p->rc[1], -NFC_EINVAL);
	host_direct(r, p->target, "x", 1);
	go(r);
	CHECK_EQ(p->rc[2], 0);
	rig_free(r);
}

/* A withdrawn offer does not wake an alt for good. */
CASE(alt_waits_on_after_a_withdrawal)
{
	struct rig *r = rig_new(NULL);
	struct puppet *p = host_start(r, alt_reads, PORTS);
	uint64_t id;

	go(r);
	id = host_direct(r, p->target + 1, "x", 1);
	host_note(r, p->target + 1, NFC_TYPE_WITHDRAW, NFC_H2D, id);
	rig_step(r);
	host_direct(r, p->target + 2, "y", 1);
	rig_step(r);
	CHECK(p->step >= 1);
	CHECK_EQ(p->rc[p->step - 1], 2);
	rig_free(r);
}

/*
 * A select of the host sends DIRECT and WITHDRAW back to back: a process that
 * waits in an alt may take the message, and one answer is sent.
 */
CASE(alt_takes_what_is_withdrawn_at_once)
{
	struct rig *r = rig_new(NULL);
	struct puppet *p = host_start(r, alt_reads, PORTS);
	uint64_t id;

	go(r);
	id = host_direct(r, p->target + 1, "x", 1);
	host_note(r, p->target + 1, NFC_TYPE_WITHDRAW, NFC_H2D, id);
	host_expect_ack(r, p->target + 1, NFC_TYPE_ACK, NFC_H2D, id,
			NFC_STATE_CONSUMED, NFC_OK);
	host_expect_nothing(r, p->target + 1);
	CHECK_EQ(p->step, 1);
	rig_free(r);
}

static void offer_sizes(struct nfc_process *self, struct puppet *p)
{
	struct nfc_offer o;

	note(p, channel_offer(port(self), &o));
	note(p, (int)o.indirect);
	note(p, (int)o.size);
	note(p, channel_offer(port(self), &o)); /* it was not taken */
	note(p, channel_read(port(self), p->buf, sizeof(p->buf)));
	note(p, channel_offer(port(self), &o));
	note(p, (int)o.indirect);
	p->size = o.size;
	stay(self);
}

CASE(an_offer_is_looked_at_without_taking_it)
{
	struct rig *r = rig_new(NULL);
	struct puppet *p = host_start(r, offer_sizes, 1);

	host_direct(r, p->target, "hello", 5);
	rig_step(r);
	CHECK_EQ(p->rc[0], 0);
	CHECK_EQ(p->rc[1], 0);
	CHECK_EQ(p->rc[2], 5);
	CHECK_EQ(p->rc[3], 0);
	CHECK_EQ(p->rc[4], 5);
	host_begin(r, p->target, 5ull << 30, 0);
	rig_step(r);
	CHECK_EQ(p->rc[5], 0);
	CHECK_EQ(p->rc[6], 1);
	CHECK_EQ(p->size, 5ull << 30);
	rig_free(r);
}
