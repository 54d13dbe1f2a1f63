// SPDX-License-Identifier: MIT
/* Transfers that bring their pages. */
#include <stdio.h>
#include <string.h>

#include "rig.h"

enum {
	SIZE = 3 * RIG_PAGE + 100, /* four pages, from 50 bytes into the first */
	FROM = 50,
};

static uint64_t way;
static unsigned int busy; /* copies to refuse for now */

/* One transfer, then messages. */
static void one(struct nfc_process *self, struct puppet *p)
{
	struct nfc_channel *ch = nfc_channel_of(self, 0);

	p->memory = nfc_alloc(self, NFC_EMEM, SIZE);
	p->more = nfc_at(self, p->memory, SIZE);
	fill_pattern(p->more, SIZE, 2);
	later(self);
	note(p, way == NFC_H2D ? channel_read_ind(ch, p->memory, SIZE) :
				 channel_write_ind(ch, p->memory, SIZE));
	note(p, channel_read(ch, p->buf, sizeof(p->buf)));
	stay(self);
}

static void shape(struct nfc_config *c)
{
	c->eager = NFC_EAGER_ENTRIES;
	c->memory[NFC_EMEM] = 16 << 20;
}

static int on_dma(struct rig *r, uint64_t bus, uint64_t length)
{
	(void)r;
	(void)bus;
	(void)length;
	if (!busy)
		return 0;
	busy--;
	return NFC_EBUSY;
}

/* Pages of a buffer, of which the last may be left out. */
static struct nfc_eager pages_of(const uint8_t *buf, uint64_t size, uint64_t id)
{
	struct nfc_eager e = { .transaction = id, .size = size };
	uint64_t at = 0;

	for (int i = 0; i < NFC_EAGER_ENTRIES && at < size; i++) {
		uint64_t bus = (uintptr_t)buf + at;
		uint64_t n = nfc_min(RIG_PAGE - bus % RIG_PAGE, size - at);

		e.entry[i] = nfc_entry(bus, n);
		at += n;
	}
	return e;
}

static void put(struct rig *r, struct puppet *p, const struct nfc_eager *e,
		uint64_t count)
{
	host_put(r, p->target, NFC_TYPE_EAGER,
		 count | (way == NFC_D2H ? NFC_LIST_D2H : 0), e->transaction, e);
}

static struct puppet *begun(struct rig *r, uint32_t direction)
{
	way = direction;
	host_hello(r, NFC_CAP_EAGER);
	return host_start(r, one, 1);
}

/* The pages arrive before the process, or as it waits. */
static void check_moved(uint32_t direction, bool early, unsigned int refused)
{
	struct rig *r = rig_new(shape);
	uint8_t *buf = host_buffer(r, SIZE + RIG_PAGE, 1) + FROM;
	struct puppet *p = begun(r, direction);
	struct nfc_eager e = pages_of(buf, SIZE, 1);
	struct nfc_ack ack;

	r->on_dma = on_dma;
	busy = refused;
	if (!early)
		go(r);
	if (!early && way == NFC_D2H)
		host_expect(r, p->target, NFC_TYPE_IND_BEGIN, 1);
	put(r, p, &e, 4);
	rig_step(r);
	go(r);
	if (refused > NFC_REPEATS_MAX) {
		host_expect_ack(r, p->target, NFC_TYPE_ERROR, direction, 1,
				NFC_STATE_FAILED, NFC_EDMA);
		CHECK_EQ(p->rc[0], -NFC_EDMA);
	} else {
		ack = host_expect_ack(r, p->target, NFC_TYPE_ACK, direction, 1,
				      NFC_STATE_CONSUMED, NFC_OK);
		CHECK_EQ(ack.processed, SIZE);
		CHECK_EQ(p->rc[0], 0);
		CHECK(!memcmp(p->more, buf, SIZE));
	}
	host_expect_nothing(r, p->target);
	CHECK_EQ(r->bad_dma, 0);
	rig_free(r);
}

CASE(pages_are_moved)
{
	for (uint32_t d = NFC_H2D; d <= NFC_D2H; d++) {
		check_moved(d, false, 0);
		check_moved(d, true, 0);
	}
}

CASE(busy_pages_are_tried_again)
{
	for (uint32_t d = NFC_H2D; d <= NFC_D2H; d++) {
		check_moved(d, false, NFC_REPEATS_MAX);
		check_moved(d, true, NFC_REPEATS_MAX);
		check_moved(d, false, NFC_REPEATS_MAX + 1);
		check_moved(d, true, NFC_REPEATS_MAX + 1);
	}
}

/* An invalid EAGER is answered on h2d, and dropped where nothing is offered. */
static void check_bad(struct nfc_eager e, uint64_t count, uint32_t status)
{
	for (uint32_t d = NFC_H2D; d <= NFC_D2H; d++) {
		struct rig *r = rig_new(shape);
		struct puppet *p = begun(r, d);

		put(r, p, &e, count);
		rig_step(r);
		if (d == NFC_H2D)
			host_expect_ack(r, p->target, NFC_TYPE_ERROR, d, 1,
					NFC_STATE_FAILED, status);
		CHECK_EQ(rig_dropped(r), d == NFC_D2H);
		CHECK_EQ(r->dma_calls, 0);
		rig_free(r);
	}
}

CASE(pages_that_make_no_sense)
{
	static uint8_t buf[8 * RIG_PAGE];
	struct nfc_eager good = pages_of(buf, SIZE, 1), e;

	check_bad(good, NFC_EAGER_ENTRIES + 1, NFC_ETOOLARGE);
	check_bad(good, NFC_LIST_COUNT_MASK, NFC_ETOOLARGE);
	check_bad(good, 3, NFC_EPROTO);
	check_bad(good, 0, NFC_EPROTO);
	check_bad(good, 4 | NFC_LIST_RUNS, NFC_EPROTO); /* nobody agreed */
	e = good;
	e.size = NFC_EAGER_BYTES + 1;
	check_bad(e, 4, NFC_ETOOLARGE);
	e.size = ~0ull;
	check_bad(e, 4, NFC_ETOOLARGE);
	e.size = SIZE - 1;
	check_bad(e, 4, NFC_EPROTO);
	e = good;
	e.entry[1] += RIG_PAGE / 2 << NFC_ENTRY_OFFSET_SHIFT; /* over its page */
	check_bad(e, 4, NFC_EPROTO);
	e = (struct nfc_eager){ .transaction = 1 };
	e.entry[2] = good.entry[0];
	check_bad(e, 0, NFC_EPROTO);
}

/* A host that did not accept the capability has none of it. */
CASE(pages_without_the_capability)
{
	for (uint32_t d = NFC_H2D; d <= NFC_D2H; d++) {
		struct rig *r = rig_new(shape);
		uint8_t *buf = host_buffer(r, SIZE + RIG_PAGE, 1);
		struct puppet *p = begun(r, d);
		struct nfc_eager e = pages_of(buf, SIZE, 1);

		host_hello(r, NFC_CAP_LOAD);
		put(r, p, &e, 4);
		CHECK_EQ(rig_dropped(r), 1);
		CHECK_EQ(r->dma_calls, 0);
		rig_free(r);
	}
}

/* Posted pages end with the half. */
CASE(a_close_forgets_the_pages)
{
	struct rig *r = rig_new(shape);
	uint8_t *buf = host_buffer(r, SIZE + RIG_PAGE, 1);
	struct puppet *p = begun(r, NFC_D2H);
	struct nfc_eager e = pages_of(buf, SIZE, 1);

	put(r, p, &e, 4);
	rig_step(r);
	host_close(r, p->target, 3);
	rig_step(r);
	host_expect_close(r, p->target, 3);
	CHECK_EQ(host_open(r, p->target), 0);
	go(r);
	host_expect(r, p->target, NFC_TYPE_IND_BEGIN, 1);
	CHECK_EQ(r->dma_calls, 0);
	rig_free(r);
}
