// SPDX-License-Identifier: MIT
/* Transfers to the device: agreement, lists, completion records, the end. */
#include <stdio.h>
#include <string.h>

#include "rig.h"

enum {
	HEADROOM = 64, /* bytes beyond a buffer that must stay as they are */
	GUARD = 0xa5,
};

/* How much the puppets take; the device memory around it is guarded. */
static uint64_t want_size;
static bool want_later;

static struct nfc_channel *port(struct nfc_process *self)
{
	return nfc_channel_of(self, 0);
}

static void take(struct nfc_process *self, struct puppet *p)
{
	uint8_t *at;

	p->size = want_size;
	p->memory = nfc_alloc(self, NFC_EMEM, want_size + 2 * HEADROOM);
	p->memory += HEADROOM;
	at = nfc_at(self, p->memory - HEADROOM, want_size + 2 * HEADROOM);
	p->more = at + HEADROOM;
	memset(at, GUARD, want_size + 2 * HEADROOM);
	if (want_later)
		later(self);
	note(p, channel_read_ind(port(self), p->memory, p->size));
	note(p, channel_read(port(self), p->buf, sizeof(p->buf)));
	stay(self);
}

static struct puppet *taker(struct rig *r, uint64_t size, bool late)
{
	want_size = size;
	want_later = late;
	return host_start(r, take, 1);
}

static void check_guard(struct puppet *p)
{
	const uint8_t *at = p->more;

	for (uint64_t i = 1; i <= HEADROOM; i++)
		if (!CHECK(at[-(int64_t)i] == GUARD &&
			   at[p->size + i - 1] == GUARD))
			return;
}

/* The channel works on: the puppet's second call takes a message. */
static void check_alive(struct rig *r, struct puppet *p, int first_rc)
{
	uint64_t id = host_direct(r, p->target, "next", 4);

	host_expect_ack(r, p->target, NFC_TYPE_ACK, NFC_H2D, id,
			NFC_STATE_CONSUMED, NFC_OK);
	CHECK_EQ(p->step, 2);
	CHECK_EQ(p->rc[0], first_rc);
	CHECK_EQ(p->rc[1], 4);
	host_expect_nothing(r, p->target);
	CHECK_EQ(rig_heartbeat(r).parked, 0);
	check_guard(p);
}

static struct nfc_ack done(struct rig *r, struct puppet *p, uint64_t id,
			   const uint8_t *buf, uint64_t size)
{
	struct nfc_ack ack = host_drive(r, p->target, NFC_H2D, id, buf, size);

	CHECK_EQ(ack.state, NFC_STATE_DONE);
	CHECK_EQ(ack.status, NFC_OK);
	CHECK_EQ(ack.processed, size);
	CHECK_EQ(ack.outstanding, 0);
	CHECK_EQ(ack.lists, host_lists(buf, size));
	CHECK_EQ(p->step, 0); /* nothing is committed yet */
	CHECK(!memcmp(p->more, buf, size));
	host_note(r, p->target, NFC_TYPE_FIN, NFC_H2D, id);
	rig_step(r);
	return ack;
}

static void whole(uint64_t size, uint64_t offset, bool late)
{
	struct rig *r = rig_new(NULL);
	struct puppet *p = taker(r, size, late);
	uint8_t *buf = host_buffer(r, size + offset, size) + offset;
	uint64_t id = host_begin(r, p->target, size, 0);

	if (late) {
		host_send_lists(r, p->target, NFC_H2D, id, buf, size, 0, 0);
		rig_step(r);
		host_expect_nothing(r, p->target);
		r->clock += 1000000;
	}
	done(r, p, id, buf, size);
	check_alive(r, p, 0);
	rig_free(r);
}

CASE(transfers_of_many_shapes)
{
	static const uint64_t sizes[] = { 1,	 2,	4095,  4096,   4097,
					  24575, 24576, 24577, 100000, 1000000 };
	static const uint64_t offsets[] = { 0, 1, 63, 4095 };

	for (size_t i = 0; i < sizeof(sizes) / sizeof(*sizes); i++)
		for (size_t j = 0; j < sizeof(offsets) / sizeof(*offsets); j++)
			whole(sizes[i], offsets[j], (i + j) % 2);
}

CASE(a_zero_length_transfer_has_no_list)
{
	for (int late = 0; late < 2; late++) {
		struct rig *r = rig_new(NULL);
		struct puppet *p = taker(r, 0, late);
		uint64_t id = host_begin(r, p->target, 0, 0);

		go(r);
		host_expect_ack(r, p->target, NFC_TYPE_DONE, NFC_H2D, id,
				NFC_STATE_DONE, NFC_OK);
		CHECK_EQ(p->step, 0);
		host_note(r, p->target, NFC_TYPE_FIN, NFC_H2D, id);
		check_alive(r, p, 0);
		CHECK_EQ(r->dma_calls, 0);
		rig_free(r);
	}
}

/* READY is said only when more lists are expected. */
CASE(ready_is_for_transfers_of_several_lists)
{
	for (uint64_t lists = 1; lists <= 2; lists++) {
		struct rig *r = rig_new(NULL);
		uint64_t size = lists * 6 * RIG_PAGE;
		struct puppet *p = taker(r, size, false);
		uint8_t *buf = host_buffer(r, size, 1);
		uint64_t id = host_begin(r, p->target, size, 0);

		host_send_lists(r, p->target, NFC_H2D, id, buf, size, 0, 1);
		if (lists > 1)
			host_expect_ack(r, p->target, NFC_TYPE_ACK, NFC_H2D, id,
					NFC_STATE_READY, NFC_OK);
		host_send_lists(r, p->target, NFC_H2D, id, buf, size, 1, lists);
		host_expect_ack(r, p->target, NFC_TYPE_DONE, NFC_H2D, id,
				NFC_STATE_DONE, NFC_OK);
		host_expect_nothing(r, p->target);
		rig_free(r);
	}
}

/* Acks are cumulative and sent at least every half window. */
CASE(acks_keep_the_window_open)
{
	struct rig *r = rig_new(NULL);
	uint64_t size = 64 * 6 * RIG_PAGE, acked = 0, sent = 1;
	struct puppet *p = taker(r, size, false);
	uint8_t *buf = host_buffer(r, size, 1);
	uint64_t id = host_begin(r, p->target, size, 0);

	host_send_lists(r, p->target, NFC_H2D, id, buf, size, 0, 1);
	host_expect_ack(r, p->target, NFC_TYPE_ACK, NFC_H2D, id,
			NFC_STATE_READY, NFC_OK);
	while (sent < 64) {
		struct nfc_slot slot;
		const struct nfc_ack *ack = (void *)slot.payload;

		host_send_lists(r, p->target, NFC_H2D, id, buf, size, sent,
				sent + 1);
		sent++;
		rig_step(r);
		while (host_take(r, p->target, &slot) &&
		       ack->state == NFC_STATE_MOVING) {
			CHECK(ack->lists > acked && ack->lists <= sent);
			CHECK_EQ(ack->processed, ack->lists * 6 * RIG_PAGE);
			CHECK_EQ(ack->outstanding, size - ack->processed);
			acked = ack->lists;
		}
		REQUIRE(sent - acked <= r->config.window / 2 || sent == 64);
	}
	rig_free(r);
}

/* ---- disagreement ---- */

static void check_refused(uint64_t host_size, uint64_t device_size, bool late)
{
	struct rig *r = rig_new(NULL);
	struct puppet *p = taker(r, device_size, late);
	uint8_t *buf = host_buffer(r, host_size, 1);
	uint64_t id = host_begin(r, p->target, host_size, 0);
	struct nfc_ack ack;

	host_send_lists(r, p->target, NFC_H2D, id, buf, host_size, 0, 1);
	go(r);
	ack = host_expect_ack(r, p->target, NFC_TYPE_ERROR, NFC_H2D, id,
			      NFC_STATE_FAILED, NFC_ESIZE);
	CHECK_EQ(ack.outstanding, device_size);
	CHECK_EQ(ack.processed, 0);
	CHECK_EQ(r->dma_calls, 0);
	check_alive(r, p, -NFC_ESIZE);
	rig_free(r);
}

CASE(sizes_must_agree)
{
	check_refused(8192, 8191, false);
	check_refused(8192, 8193, true);
	check_refused(1, 0, true);
	check_refused(0, 1, false);
	check_refused(1 << 20, 1, true);
}

static void read_direct(struct nfc_process *self, struct puppet *p)
{
	if (want_later)
		later(self);
	note(p, channel_read(port(self), p->buf, sizeof(p->buf)));
	stay(self);
}

CASE(a_transfer_to_a_message_reader_is_refused)
{
	for (int late = 0; late < 2; late++) {
		struct rig *r = rig_new(NULL);
		struct puppet *p;
		uint64_t id;

		want_later = late;
		p = host_start(r, read_direct, 1);
		id = host_begin(r, p->target, 100, 0);
		go(r);
		host_expect_ack(r, p->target, NFC_TYPE_ERROR, NFC_H2D, id,
				NFC_STATE_FAILED, NFC_EKIND);
		CHECK_EQ(p->rc[0], -NFC_EKIND);
		rig_free(r);
	}
}

static void take_badly(struct nfc_process *self, struct puppet *p)
{
	uint64_t end = ((uint64_t)NFC_EMEM << NFC_MEMORY_SHIFT) + (4 << 20);

	if (want_later)
		later(self);
	note(p, channel_read_ind(port(self), end - 4095, 4096));
	note(p, channel_read(port(self), p->buf, sizeof(p->buf)));
	stay(self);
}

CASE(a_range_that_is_not_memory)
{
	struct rig *r = rig_new(NULL);
	struct puppet *p;
	uint64_t id;

	want_later = true;
	p = host_start(r, take_badly, 1);
	id = host_begin(r, p->target, 4096, 0);
	go(r);
	host_expect_ack(r, p->target, NFC_TYPE_ERROR, NFC_H2D, id,
			NFC_STATE_FAILED, NFC_ERANGE);
	CHECK_EQ(p->rc[0], -NFC_ERANGE);
	rig_free(r);

	want_later = false; /* nothing is offered: nobody else is notified of it */
	r = rig_new(NULL);
	p = host_start(r, take_badly, 1);
	host_expect_nothing(r, p->target);
	CHECK_EQ(p->rc[0], -NFC_ERANGE);
	rig_free(r);
}

CASE(an_offer_with_a_timeout)
{
	struct rig *r = rig_new(NULL);
	struct puppet *p;
	uint64_t id;

	want_later = true;
	p = host_start(r, read_direct, 1);
	id = host_begin(r, p->target, 100, 900000);
	rig_step(r);
	rig_advance(r, 899999);
	host_expect_nothing(r, p->target);
	rig_advance(r, 1);
	host_expect_ack(r, p->target, NFC_TYPE_ERROR, NFC_H2D, id,
			NFC_STATE_FAILED, NFC_ETIMEOUT);
	CHECK_EQ(p->step, 0);
	rig_advance(r, 1000000);
	host_expect_nothing(r, p->target);
	id = host_direct(r, p->target, "x", 1);
	host_expect_ack(r, p->target, NFC_TYPE_ACK, NFC_H2D, id,
			NFC_STATE_CONSUMED, NFC_OK);
	rig_free(r);
}

/*
 * Computes for a millisecond when it gets a message. Its host then offers
 * something to the target that its message names.
 */
static void computes(struct nfc_process *self, struct puppet *p)
{
	struct nfc_channel *ch = nfc_channel_of(self, 0);

	note(p, channel_read(ch, p->buf, 1));
	p->rig->clock += 1000000;
	p->size = host_begin(p->rig, p->buf[0], 100, 900000);
	note(p, channel_read(ch, p->buf, 1));
}

static void takes_nothing(struct nfc_process *self, struct puppet *p)
{
	(void)p;
	stay(self);
}

/* The time of an offer begins as it arrives, also on an island that was busy. */
CASE(a_timeout_begins_with_the_offer)
{
	struct rig *r = rig_new(NULL);
	struct puppet *busy = host_start(r, computes, 1), *p;
	uint8_t target;

	p = host_start(r, takes_nothing, 1);
	target = (uint8_t)p->target;
	host_direct(r, busy->target, &target, 1);
	rig_step(r);
	CHECK_EQ(busy->step, 1);
	rig_advance(r, 899999);
	host_expect(r, busy->target, NFC_TYPE_ACK, 1);
	host_expect_nothing(r, p->target);
	rig_advance(r, 1);
	host_expect_ack(r, p->target, NFC_TYPE_ERROR, NFC_H2D, busy->size,
			NFC_STATE_FAILED, NFC_ETIMEOUT);
	rig_free(r);
}

/* A target that took the offer has no time-out any more. */
CASE(a_timeout_ends_with_the_accept)
{
	struct rig *r = rig_new(NULL);
	uint64_t size = 12 * RIG_PAGE;
	struct puppet *p = taker(r, size, false);
	uint8_t *buf = host_buffer(r, size, 1);
	uint64_t id = host_begin(r, p->target, size, 900000);

	host_send_lists(r, p->target, NFC_H2D, id, buf, size, 0, 1);
	host_expect_ack(r, p->target, NFC_TYPE_ACK, NFC_H2D, id,
			NFC_STATE_READY, NFC_OK);
	rig_advance(r, 5000000);
	host_expect_nothing(r, p->target);
	host_send_lists(r, p->target, NFC_H2D, id, buf, size, 1, 2);
	host_expect_ack(r, p->target, NFC_TYPE_DONE, NFC_H2D, id,
			NFC_STATE_DONE, NFC_OK);
	rig_free(r);
}

CASE(a_begin_that_makes_no_sense)
{
	struct rig *r = rig_new(NULL);
	struct puppet *p = taker(r, 10, false);
	uint64_t *next = &r->channel[p->target].next[NFC_H2D];
	struct nfc_begin begin = { .transaction = *next, .size = 1ull << 48 };

	host_put(r, p->target, NFC_TYPE_IND_BEGIN, NFC_PAYLOAD_SIZE, *next,
		 &begin);
	host_expect_ack(r, p->target, NFC_TYPE_ERROR, NFC_H2D, (*next)++,
			NFC_STATE_FAILED, NFC_ETOOLARGE);
	for (int i = 0; i < 4; i++) {
		begin = (struct nfc_begin){ .transaction = *next, .size = 10 };
		begin.rsvd[i] = 1ull << 63;
		host_put(r, p->target, NFC_TYPE_IND_BEGIN, NFC_PAYLOAD_SIZE,
			 *next, &begin);
		host_expect_ack(r, p->target, NFC_TYPE_ERROR, NFC_H2D,
				(*next)++, NFC_STATE_FAILED, NFC_EPROTO);
	}
	CHECK_EQ(p->step, 0);
	rig_free(r);
}

/* ---- what the engine cannot do ---- */

/* The k-th copy is refused once: the lists are sent again, nothing is lost. */
CASE(a_busy_engine_repeats)
{
	for (unsigned int k = 0; k < 6; k++) {
		struct rig *r = rig_new(NULL);
		uint64_t size = 40 * 6 * RIG_PAGE + 17;
		struct puppet *p = taker(r, size, k % 2);
		uint8_t *buf = host_buffer(r, size + 5, k) + 5;
		uint64_t id = host_begin(r, p->target, size, 0);

		r->dma_script[k] = NFC_EBUSY;
		if (k % 2)
			go(r);
		done(r, p, id, buf, size);
		CHECK_EQ(r->repeats, 1);
		CHECK_EQ(nfc_counter_sum(r->dev->host[0], NFC_COUNT_REPEATS), 1);
		check_alive(r, p, 0);
		rig_free(r);
	}
}

CASE(a_busy_engine_repeats_often)
{
	struct rig *r = rig_new(NULL);
	uint64_t size = 40 * 6 * RIG_PAGE;
	struct puppet *p = taker(r, size, false);
	uint8_t *buf = host_buffer(r, size, 3);
	uint64_t id = host_begin(r, p->target, size, 0);

	for (int i = 0; i < 64; i += 2)
		r->dma_script[i] = NFC_EBUSY;
	done(r, p, id, buf, size);
	CHECK(r->repeats > 4);
	check_alive(r, p, 0);
	rig_free(r);
}

static uint64_t broken_page;

static int refuse_page(struct rig *r, uint64_t bus, uint64_t length)
{
	(void)r;
	return broken_page >= bus && broken_page < bus + length ? NFC_EDMA : 0;
}

/* Pages that are no neighbours, so that each is a piece of its own. */
static void scattered(uint64_t entry[6], const uint8_t *buf, uint64_t list)
{
	for (uint64_t i = 0; i < 6; i++)
		entry[i] = nfc_entry((uintptr_t)buf +
					     2 * (list * 6 + i) * RIG_PAGE,
				     RIG_PAGE);
}

/* Entry 3 of list 2 cannot be reached: the record names the entry. */
CASE(an_unreachable_page_is_named)
{
	struct rig *r = rig_new(NULL);
	uint64_t size = 4 * 6 * RIG_PAGE, entry[6];
	struct puppet *p = taker(r, size, false);
	uint8_t *buf = host_buffer(r, 2 * size, 1);
	uint64_t id = host_begin(r, p->target, size, 0);
	struct nfc_ack ack;

	r->on_dma = refuse_page;
	broken_page = (uintptr_t)buf + 2 * (2 * 6 + 3) * RIG_PAGE;
	scattered(entry, buf, 0);
	host_list(r, p->target, NFC_H2D, id, entry, 6, 0, size - 6 * RIG_PAGE);
	host_expect_ack(r, p->target, NFC_TYPE_ACK, NFC_H2D, id,
			NFC_STATE_READY, NFC_OK);
	for (uint64_t i = 1; i < 4; i++) {
		scattered(entry, buf, i);
		host_list(r, p->target, NFC_H2D, id, entry, 6, i,
			  size - (i + 1) * 6 * RIG_PAGE);
	}
	ack = host_expect_ack(r, p->target, NFC_TYPE_ERROR, NFC_H2D, id,
			      NFC_STATE_FAILED, NFC_EDMA);
	CHECK_EQ(ack.lists, 2);
	CHECK_EQ(ack.fault_index, 3);
	CHECK(ack.processed >= 6 * RIG_PAGE);
	CHECK(ack.processed <= (2 * 6 + 3) * RIG_PAGE);
	CHECK_EQ(ack.outstanding, size - ack.processed);
	check_alive(r, p, -NFC_EDMA);
	rig_free(r);
}

/* ---- abort, at each step ---- */

enum step {
	AFTER_BEGIN,
	AFTER_LIST,
	AFTER_READY,
	AFTER_SOME,
	AFTER_DONE,
	STEPS,
};

static const char *const step_names[] = { "BEGIN", "list 0", "READY",
					  "some lists", "DONE" };

/* Bring a transfer of 24 lists to a step. */
static uint64_t bring_to(struct rig *r, struct puppet *p, const uint8_t *buf,
			 uint64_t size, enum step step)
{
	uint64_t id = host_begin(r, p->target, size, 0);

	rig_step(r);
	if (step == AFTER_DONE) {
		CHECK_EQ(host_drive(r, p->target, NFC_H2D, id, buf, size).state,
			 NFC_STATE_DONE);
		return id;
	}
	if (step >= AFTER_LIST)
		host_send_lists(r, p->target, NFC_H2D, id, buf, size, 0, 1);
	if (step >= AFTER_READY)
		host_expect_ack(r, p->target, NFC_TYPE_ACK, NFC_H2D, id,
				NFC_STATE_READY, NFC_OK);
	if (step >= AFTER_SOME)
		host_send_lists(r, p->target, NFC_H2D, id, buf, size, 1, 5);
	return id;
}

/* Skip progress, as a host that gave up does. */
static struct nfc_ack last_word(struct rig *r, uint32_t target, uint32_t *type)
{
	struct nfc_ack ack = { 0 };
	struct nfc_slot slot;

	rig_step(r);
	*type = NFC_TYPE_NONE;
	while (host_take(r, target, &slot)) {
		*type = (uint32_t)nfc_header_type(slot.header);
		memcpy(&ack, slot.payload, sizeof(ack));
		if (*type != NFC_TYPE_ACK)
			return ack;
	}
	return ack;
}

static void check_abort(enum step step, bool late)
{
	struct rig *r = rig_new(NULL);
	uint64_t size = 24 * 6 * RIG_PAGE;
	struct puppet *p = taker(r, size, late);
	uint8_t *buf = host_buffer(r, size, 1);
	uint64_t id = bring_to(r, p, buf, size, step);
	struct nfc_ack ack;
	unsigned int copies;
	uint32_t type;

	host_note(r, p->target, NFC_TYPE_ABORT, NFC_H2D, id);
	ack = last_word(r, p->target, &type);
	CHECK_EQ(type, NFC_TYPE_ABORTED);
	CHECK_EQ(ack.transaction, id);
	CHECK_EQ(ack.status, NFC_EABORTED);
	CHECK_EQ(ack.state, NFC_STATE_FAILED);
	CHECK_EQ(ack.direction, NFC_H2D);
	CHECK_EQ(ack.processed + ack.outstanding, size);
	if (step == AFTER_DONE)
		CHECK_EQ(ack.processed, size);
	copies = r->dma_calls;
	/* Messages that were under way move nothing any more. */
	host_send_lists(r, p->target, NFC_H2D, id, buf, size, 1, 3);
	host_note(r, p->target, NFC_TYPE_FIN, NFC_H2D, id);
	host_note(r, p->target, NFC_TYPE_ABORT, NFC_H2D, id);
	host_expect_nothing(r, p->target);
	CHECK_EQ(r->dma_calls, copies);
	if (late) {
		/* The target never saw that offer: the next one is taken. */
		CHECK_EQ(p->step, 0);
		go(r);
		id = host_begin(r, p->target, size, 0);
		done(r, p, id, buf, size);
		check_alive(r, p, 0);
	} else if (p->step == 0) {
		/* Aborted before the target saw it, or while it waits for lists. */
		CHECK(!"the process still waits");
	} else {
		check_alive(r, p, -NFC_EABORTED);
	}
	rig_free(r);
}

CASE(abort_at_each_step)
{
	for (int step = 0; step < STEPS; step++) {
		unsigned int before = test_failures();

		check_abort((enum step)step, false);
		if (step <= AFTER_LIST)
			check_abort((enum step)step, true);
		if (test_failures() != before)
			printf("... after %s\n", step_names[step]);
	}
}

CASE(abort_after_fin_says_nothing)
{
	struct rig *r = rig_new(NULL);
	struct puppet *p = taker(r, 100, false);
	uint8_t *buf = host_buffer(r, 100, 1);
	uint64_t id = host_begin(r, p->target, 100, 0);

	done(r, p, id, buf, 100);
	host_note(r, p->target, NFC_TYPE_ABORT, NFC_H2D, id);
	host_expect_nothing(r, p->target);
	CHECK_EQ(p->rc[0], 0);
	rig_free(r);
}

/* FIN commits nothing that is not DONE. */
CASE(fin_before_done_is_dropped)
{
	for (int step = 0; step < AFTER_DONE; step++) {
		struct rig *r = rig_new(NULL);
		uint64_t size = 24 * 6 * RIG_PAGE, dropped;
		struct puppet *p = taker(r, size, false);
		uint8_t *buf = host_buffer(r, size, 1);
		uint64_t id = bring_to(r, p, buf, size, (enum step)step);

		rig_step(r);
		dropped = rig_dropped(r);
		host_note(r, p->target, NFC_TYPE_FIN, NFC_H2D, id);
		rig_step(r);
		CHECK_EQ(p->step, 0);
		CHECK_EQ(rig_dropped(r), dropped + 1);
		rig_free(r);
	}
}

/* More lists in flight than the window holds are a violation, not an overrun. */
CASE(the_window_is_a_bound)
{
	struct rig *r = rig_new(NULL);
	uint64_t size = 40 * 6 * RIG_PAGE;
	struct puppet *p = taker(r, size, false);
	uint8_t *buf = host_buffer(r, size, 1);
	uint64_t id = bring_to(r, p, buf, size, AFTER_READY);
	struct nfc_ack ack;
	uint32_t type;

	host_send_lists(r, p->target, NFC_H2D, id, buf, size, 1,
			2 + 2 * r->config.window);
	ack = last_word(r, p->target, &type);
	CHECK_EQ(type, NFC_TYPE_ERROR);
	CHECK_EQ(ack.status, NFC_EPROTO);
	check_alive(r, p, -NFC_EPROTO);
	rig_free(r);
}
