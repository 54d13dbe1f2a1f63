// SPDX-License-Identifier: MIT
/* The DMA engine: merging, several engines on one batch, who fails first. */
#include <string.h>

#include "rig.h"

static uint64_t want_size;
static bool want_late;

static void take(struct nfc_process *self, struct puppet *p)
{
	p->memory = nfc_alloc(self, NFC_EMEM, want_size);
	p->more = nfc_at(self, p->memory, want_size);
	if (want_late)
		later(self);
	note(p, channel_read_ind(nfc_channel_of(self, 0), p->memory, want_size));
	stay(self);
}

static struct puppet *taker(struct rig *r, uint64_t size)
{
	want_size = size;
	return host_start(r, take, 1);
}

/* One list of six pages, `stride` pages apart. Returns the copies made. */
static unsigned int copies_of(unsigned int stride)
{
	struct rig *r = rig_new(NULL);
	struct puppet *p = taker(r, 6 * RIG_PAGE);
	uint8_t *buf = host_buffer(r, 6ull * stride * RIG_PAGE, 1);
	uint64_t id = host_begin(r, p->target, 6 * RIG_PAGE, 0), entry[6];
	unsigned int copies;

	for (uint64_t i = 0; i < 6; i++)
		entry[i] = nfc_entry((uintptr_t)buf + i * stride * RIG_PAGE,
				     RIG_PAGE);
	host_list(r, p->target, NFC_H2D, id, entry, 6, 0, 0);
	host_expect_ack(r, p->target, NFC_TYPE_DONE, NFC_H2D, id,
			NFC_STATE_DONE, NFC_OK);
	for (uint64_t i = 0; i < 6; i++)
		CHECK(!memcmp((uint8_t *)p->more + i * RIG_PAGE,
			      buf + i * stride * RIG_PAGE, RIG_PAGE));
	copies = r->dma_calls;
	rig_free(r);
	return copies;
}

CASE(neighbours_merge)
{
	CHECK_EQ(copies_of(1), 1);
	CHECK_EQ(copies_of(2), 6);
}

/* Neighbours merge across lists, too, and every byte is copied once. */
CASE(lists_merge)
{
	struct rig *r = rig_new(NULL);
	uint64_t size = 8 * 6 * RIG_PAGE;
	struct puppet *p = taker(r, size);
	uint8_t *buf = host_buffer(r, size, 1);
	uint64_t id = host_begin(r, p->target, size, 0);

	CHECK_EQ(host_drive(r, p->target, NFC_H2D, id, buf, size).state,
		 NFC_STATE_DONE);
	CHECK_EQ(r->dma_bytes, size);
	CHECK(r->dma_calls < 8 * 6 / 2);
	CHECK(!memcmp(p->more, buf, size));
	rig_free(r);
}

static uint64_t oldest_beat;

enum {
	COPY_NS = 200000000,
};

/* A slow bus. */
static int slowly(struct rig *r, uint64_t bus, uint64_t length)
{
	const struct nfc_area *area = r->seat.area;
	uint64_t age = r->clock - area->heartbeat.payload[1];

	(void)bus;
	(void)length;
	if (age > oldest_beat)
		oldest_beat = age;
	r->clock += COPY_NS;
	return 0;
}

/* The host must not take a device that moves bytes slowly for a dead one. */
CASE(heartbeats_come_between_slow_pieces)
{
	struct rig *r = rig_new(NULL);
	uint64_t size = 1 << 20;
	struct puppet *p = taker(r, size);
	uint8_t *buf = host_buffer(r, size, 1);
	uint64_t id = host_begin(r, p->target, size, 0);

	oldest_beat = 0;
	r->on_dma = slowly;
	CHECK_EQ(host_drive(r, p->target, NFC_H2D, id, buf, size).state,
		 NFC_STATE_DONE);
	CHECK(r->dma_calls > 16);
	CHECK(oldest_beat < 3 * COPY_NS);
	rig_free(r);
}

/* ---- several engines ---- */

static bool nested;

/* While the island copies its piece another engine takes all the others. */
static int engine_meanwhile(struct rig *r, uint64_t bus, uint64_t length)
{
	(void)bus;
	(void)length;
	if (nested)
		return 0;
	nested = true;
	while (nfc_dma_step(r->dev))
		;
	nested = false;
	return 0;
}

static void scattered_lists(struct rig *r, uint32_t target, uint64_t id,
			    const uint8_t *buf, uint64_t size, uint64_t first,
			    uint64_t last)
{
	uint64_t entry[6];

	for (uint64_t n = first; n < last; n++) {
		for (uint64_t i = 0; i < 6; i++)
			entry[i] = nfc_entry((uintptr_t)buf +
						     2 * (n * 6 + i) * RIG_PAGE,
					     RIG_PAGE);
		host_list(r, target, NFC_H2D, id, entry, 6, n,
			  size - (n + 1) * 6 * RIG_PAGE);
	}
}

static bool arrived(struct puppet *p, const uint8_t *buf, uint64_t size)
{
	for (uint64_t i = 0; i < size / RIG_PAGE; i++)
		if (memcmp((uint8_t *)p->more + i * RIG_PAGE,
			   buf + 2 * i * RIG_PAGE, RIG_PAGE))
			return false;
	return true;
}

CASE(engines_share_a_batch)
{
	struct rig *r = rig_new(NULL);
	uint64_t size = 4 * 6 * RIG_PAGE;
	struct puppet *p = taker(r, size);
	uint8_t *buf = host_buffer(r, 2 * size, 1);
	uint64_t id = host_begin(r, p->target, size, 0);

	r->on_dma = engine_meanwhile;
	scattered_lists(r, p->target, id, buf, size, 0, 1);
	host_expect_ack(r, p->target, NFC_TYPE_ACK, NFC_H2D, id,
			NFC_STATE_READY, NFC_OK);
	scattered_lists(r, p->target, id, buf, size, 1, 4);
	host_expect_ack(r, p->target, NFC_TYPE_DONE, NFC_H2D, id,
			NFC_STATE_DONE, NFC_OK);
	CHECK_EQ(r->dma_calls, 24);
	CHECK(arrived(p, buf, size));
	CHECK_EQ(nfc_dma_step(r->dev), 0);
	rig_free(r);
}

/* ---- pieces that the port has begun ---- */

static bool answered; /* the port has its answers */

/* A port far away: it begins what it is asked for, and has the answer later. */
static int far_away(struct rig *r, uint64_t bus, uint64_t length)
{
	(void)r;
	(void)bus;
	(void)length;
	return answered ? 0 : NFC_PENDING;
}

static void answer(struct rig *r)
{
	answered = true;
	r->island[0].woken = true;
}

/* Bring lists whose pieces do not merge to a device with such a port. */
static uint64_t begin_far_away(struct rig *r, struct puppet *p,
			       const uint8_t *buf, uint64_t size)
{
	uint64_t id = host_begin(r, p->target, size, 0);

	answered = false;
	r->on_dma = far_away;
	scattered_lists(r, p->target, id, buf, size, 0, 1);
	host_expect_ack(r, p->target, NFC_TYPE_ACK, NFC_H2D, id,
			NFC_STATE_READY, NFC_OK);
	CHECK(rig_step(r)); /* it sleeps: the port wakes it */
	CHECK(r->dma_calls >= 6);
	return id;
}

/* All pieces of a batch are begun before one has its answer. */
CASE(pieces_are_begun_side_by_side)
{
	struct rig *r = rig_new(NULL);
	uint64_t size = 4 * 6 * RIG_PAGE;
	struct puppet *p = taker(r, size);
	uint8_t *buf = host_buffer(r, 2 * size, 1);
	uint64_t id = begin_far_away(r, p, buf, size);

	scattered_lists(r, p->target, id, buf, size, 1, 4);
	rig_step(r);
	host_expect_nothing(r, p->target);
	answer(r);
	host_expect_ack(r, p->target, NFC_TYPE_DONE, NFC_H2D, id,
			NFC_STATE_DONE, NFC_OK);
	CHECK_EQ(r->dma_bytes, size);
	CHECK(arrived(p, buf, size));
	rig_free(r);
}

/*
 * The port may still write a piece that it has begun: an abort waits for its
 * answers.
 */
CASE(an_abort_waits_for_pieces_that_were_begun)
{
	struct rig *r = rig_new(NULL);
	uint64_t size = 4 * 6 * RIG_PAGE;
	struct puppet *p = taker(r, size);
	uint8_t *buf = host_buffer(r, 2 * size, 1);
	uint64_t id = begin_far_away(r, p, buf, size);

	host_note(r, p->target, NFC_TYPE_ABORT, NFC_H2D, id);
	rig_step(r);
	host_expect_nothing(r, p->target);
	answer(r);
	host_expect_ack(r, p->target, NFC_TYPE_ABORTED, NFC_H2D, id,
			NFC_STATE_FAILED, NFC_EABORTED);
	rig_free(r);
}

static unsigned int pieces_seen;
static uint32_t late_status; /* of the batch's first piece, which ends last */

/*
 * The first piece is slow: another engine meanwhile finds the pieces after it,
 * and the second list's first piece is busy. Then the slow piece fails, too.
 */
static int fails_out_of_order(struct rig *r, uint64_t bus, uint64_t length)
{
	unsigned int piece = pieces_seen++;

	(void)bus;
	(void)length;
	if (piece == 0) {
		while (nfc_dma_step(r->dev))
			;
		return (int)late_status;
	}
	return piece == 8 ? NFC_EBUSY : 0;
}

/* Bring scattered lists 0..3 into one batch, which fails out of order. */
static struct nfc_ack out_of_order(struct rig *r, struct puppet *p, uint64_t id,
				   const uint8_t *buf, uint64_t size)
{
	struct nfc_ack ack = { 0 };
	struct nfc_slot slot;

	scattered_lists(r, p->target, id, buf, size, 0, 1);
	host_expect_ack(r, p->target, NFC_TYPE_ACK, NFC_H2D, id,
			NFC_STATE_READY, NFC_OK);
	r->on_dma = fails_out_of_order;
	scattered_lists(r, p->target, id, buf, size, 1, 4);
	rig_step(r);
	r->on_dma = NULL;
	while (host_take(r, p->target, &slot))
		memcpy(&ack, slot.payload, sizeof(ack));
	return ack;
}

/* Nothing before the list named by REPEAT may be missing. */
CASE(the_first_of_several_failures_counts)
{
	struct rig *r = rig_new(NULL);
	uint64_t size = 4 * 6 * RIG_PAGE;
	struct puppet *p = taker(r, size);
	uint8_t *buf = host_buffer(r, 2 * size, 1);
	uint64_t id = host_begin(r, p->target, size, 0);
	struct nfc_ack ack;

	pieces_seen = 0;
	late_status = NFC_EBUSY;
	ack = out_of_order(r, p, id, buf, size);
	CHECK_EQ(ack.state, NFC_STATE_REPEAT);
	CHECK_EQ(ack.lists, 1); /* where the slow piece is */
	scattered_lists(r, p->target, id, buf, size, ack.lists, 4);
	rig_step(r);
	CHECK(arrived(p, buf, size));
	rig_free(r);
}

/* A page that cannot be reached is not repaired by a repeat further on. */
CASE(an_unreachable_page_counts_more_than_a_busy_one)
{
	struct rig *r = rig_new(NULL);
	uint64_t size = 4 * 6 * RIG_PAGE;
	struct puppet *p = taker(r, size);
	uint8_t *buf = host_buffer(r, 2 * size, 1);
	uint64_t id = host_begin(r, p->target, size, 0);
	struct nfc_ack ack;

	pieces_seen = 0;
	late_status = NFC_EDMA;
	ack = out_of_order(r, p, id, buf, size);
	CHECK_EQ(ack.state, NFC_STATE_FAILED);
	CHECK_EQ(ack.status, NFC_EDMA);
	CHECK_EQ(ack.lists, 1);
	CHECK_EQ(ack.fault_index, 0);
	CHECK_EQ(p->rc[0], -NFC_EDMA);
	rig_free(r);
}

static uint64_t broken_page;

static int refuse_page(struct rig *r, uint64_t bus, uint64_t length)
{
	(void)r;
	return broken_page + RIG_PAGE > bus && broken_page < bus + length ?
		       NFC_EDMA :
		       0;
}

/* Page k of a buffer whose pages all merge cannot be reached. */
static void check_broken(uint64_t size, uint64_t k, bool late)
{
	struct rig *r = rig_new(NULL);
	uint64_t moved = k ? k * RIG_PAGE - 5 : 0, id;
	struct nfc_ack ack;
	struct puppet *p;
	uint8_t *buf;

	want_late = late;
	p = taker(r, size);
	buf = host_buffer(r, size + 5, 1) + 5;
	id = host_begin(r, p->target, size, 0);
	r->on_dma = refuse_page;
	broken_page = (uintptr_t)buf - 5 + k * RIG_PAGE;
	if (late) { /* the offer and a list are parked as it begins to read */
		host_send_lists(r, p->target, NFC_H2D, id, buf, size, 0, 1);
		rig_step(r);
		go(r);
	}
	ack = host_drive(r, p->target, NFC_H2D, id, buf, size);
	CHECK_EQ(ack.status, NFC_EDMA);
	CHECK_EQ(ack.lists, k / 6);
	CHECK_EQ(ack.fault_index, k % 6);
	CHECK_EQ(ack.processed, moved);
	CHECK_EQ(ack.outstanding, size - moved);
	CHECK_EQ(p->step, 1); /* it was woken */
	CHECK_EQ(p->rc[0], -NFC_EDMA);
	want_late = false;
	rig_free(r);
}

/* However pieces were cut, the entry that failed is named. */
CASE(an_unreachable_page_within_a_piece_is_named)
{
	check_broken(100, 0, false);
	check_broken(3 * RIG_PAGE, 2, false);
	for (uint64_t k = 0; k < 40; k += 3)
		check_broken(40 * RIG_PAGE, k, false);
}

/* One piece is moved as its reader begins: it must not miss how that ended. */
CASE(a_late_reader_learns_of_an_unreachable_page)
{
	check_broken(100, 0, true);
	check_broken(3 * RIG_PAGE, 0, true);
	check_broken(3 * RIG_PAGE, 2, true);
}

/* ABORT arrives while an engine holds a piece: the answer waits for it. */
static bool aborted_early;

static int abort_meanwhile(struct rig *r, uint64_t bus, uint64_t length)
{
	struct nfc_slot slot;

	(void)bus;
	(void)length;
	host_drain(r);
	while (host_take(r, NFC_TARGET_FIRST, &slot))
		if (nfc_header_type(slot.header) == NFC_TYPE_ABORTED)
			aborted_early = true;
	return 0;
}

CASE(aborted_means_quiet)
{
	struct rig *r = rig_new(NULL);
	uint64_t size = 4 * 6 * RIG_PAGE;
	struct puppet *p = taker(r, size);
	uint8_t *buf = host_buffer(r, 2 * size, 1);
	uint64_t id = host_begin(r, p->target, size, 0);
	unsigned int copies;

	CHECK_EQ(p->target, NFC_TARGET_FIRST);
	scattered_lists(r, p->target, id, buf, size, 0, 1);
	host_expect_ack(r, p->target, NFC_TYPE_ACK, NFC_H2D, id,
			NFC_STATE_READY, NFC_OK);
	r->on_dma = abort_meanwhile;
	scattered_lists(r, p->target, id, buf, size, 1, 4);
	host_note(r, p->target, NFC_TYPE_ABORT, NFC_H2D, id);
	host_expect_ack(r, p->target, NFC_TYPE_ABORTED, NFC_H2D, id,
			NFC_STATE_FAILED, NFC_EABORTED);
	CHECK(!aborted_early);
	copies = r->dma_calls;
	while (nfc_dma_step(r->dev))
		;
	CHECK_EQ(r->dma_calls, copies);
	CHECK_EQ(p->rc[0], -NFC_EABORTED);
	rig_free(r);
}

/* A port that is fenced for good: the transfer ends without a word. */
CASE(a_fenced_port_ends_it_silently)
{
	struct rig *r = rig_new(NULL);
	struct puppet *p = taker(r, 6 * RIG_PAGE);
	uint8_t *buf = host_buffer(r, 6 * RIG_PAGE, 1);
	uint64_t id = host_begin(r, p->target, 6 * RIG_PAGE, 0);

	r->dma_script[0] = NFC_ERESET;
	host_send_lists(r, p->target, NFC_H2D, id, buf, 6 * RIG_PAGE, 0, 1);
	host_expect_nothing(r, p->target);
	CHECK_EQ(p->step, 0);
	CHECK(rig_step(r));
	rig_free(r);
}
