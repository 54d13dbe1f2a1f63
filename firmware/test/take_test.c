// SPDX-License-Identifier: MIT
/* A read that takes a message, or a transfer of any size that fits. */
#include <string.h>

#include "rig.h"

enum {
	ROOM = 3 * RIG_PAGE,
	SHORT = 16, /* bytes of the buffer for a message */
};

static uint64_t room; /* that the process gives */
static bool late; /* the host offers first */
static struct nfc_offer offers[8]; /* of each call */

/* Takes again and again: rc[] has the results. */
static void take(struct nfc_process *self, struct puppet *p)
{
	struct nfc_channel *ch = nfc_channel_of(self, 0);
	int rc = 0;

	p->memory = nfc_alloc(self, NFC_EMEM, ROOM);
	if (late)
		later(self);
	while (rc != -NFC_ESTOPPED && p->step < 8) {
		struct nfc_offer *offer = &offers[p->step];

		rc = channel_take(ch, p->buf, SHORT, p->memory, room, offer);
		note(p, rc);
		if (rc == -NFC_ETOOLARGE) /* it stays offered */
			note(p,
			     offer->indirect ?
				     channel_read_ind(ch, UINT64_MAX, 1) :
				     channel_read(ch, p->buf, sizeof(p->buf)));
	}
}

static void shape(struct nfc_config *c)
{
	c->eager = NFC_EAGER_ENTRIES;
}

static struct puppet *taker(struct rig *r, uint64_t size, bool offered)
{
	room = size;
	late = offered;
	host_hello(r, NFC_CAP_EAGER);
	return host_start(r, take, 1);
}

static void check_offer(int i, uint32_t indirect, uint64_t size)
{
	CHECK_EQ(offers[i].indirect, indirect);
	CHECK_EQ(offers[i].size, size);
}

static void check_bytes(struct rig *r, const struct puppet *p,
			const uint8_t *buf, uint64_t size)
{
	void *at = nfc_memory_at(r->dev->host[0], p->memory, size);

	CHECK(at && !memcmp(at, buf, size));
}

/* A transfer of any size up to the room, by lists, taken before and after it is offered. */
CASE(transfers_that_fit)
{
	static const uint64_t sizes[] = { 1, 100, RIG_PAGE + 1, ROOM };

	for (size_t i = 0; i < 2 * sizeof(sizes) / sizeof(*sizes); i++) {
		struct rig *r = rig_new(shape);
		uint64_t size = sizes[i / 2], id;
		uint8_t *buf = host_buffer(r, size, i);
		struct puppet *p = taker(r, ROOM, i & 1);
		struct nfc_ack ack;

		id = host_begin(r, p->target, size, 0);
		go(r);
		ack = host_drive(r, p->target, NFC_H2D, id, buf, size);
		CHECK_EQ(ack.state, NFC_STATE_DONE);
		CHECK_EQ(p->step, 0); /* the host commits it */
		host_note(r, p->target, NFC_TYPE_FIN, NFC_H2D, id);
		rig_step(r);
		CHECK_EQ(p->step, 1);
		CHECK_EQ(p->rc[0], 0);
		check_offer(0, 1, size);
		check_bytes(r, p, buf, size);
		CHECK_EQ(rig_heartbeat(r).parked, 0);
		rig_free(r);
	}
}

/* A transfer that brings its pages is over with its slot if the process waits. */
CASE(eager_transfers_move_at_once)
{
	for (int i = 0; i < 2; i++) {
		struct rig *r = rig_new(shape);
		uint8_t *buf = host_buffer(r, RIG_PAGE, 3);
		struct puppet *p = taker(r, ROOM, i);
		struct nfc_eager e = { .transaction = 1,
				       .size = 77,
				       .entry = { nfc_entry((uintptr_t)buf,
							    77) } };

		host_put(r, p->target, NFC_TYPE_EAGER, 1, 1, &e);
		go(r);
		host_expect_ack(r, p->target, NFC_TYPE_ACK, NFC_H2D, 1,
				NFC_STATE_CONSUMED, NFC_OK);
		CHECK_EQ(p->rc[0], 0);
		check_offer(0, 1, 77);
		check_bytes(r, p, buf, 77);
		rig_free(r);
	}
}

CASE(either_kind_one_by_one)
{
	for (int i = 0; i < 2; i++) {
		struct rig *r = rig_new(shape);
		uint8_t *buf = host_buffer(r, 500, 3);
		struct puppet *p = taker(r, ROOM, i);
		uint64_t id = host_direct(r, p->target, "one", 3);

		go(r);
		host_expect_ack(r, p->target, NFC_TYPE_ACK, NFC_H2D, id,
				NFC_STATE_CONSUMED, NFC_OK);
		CHECK_EQ(p->rc[0], 3);
		CHECK(!memcmp(p->buf, "one", 3));
		check_offer(0, 0, 3);
		id = host_begin(r, p->target, 500, 0);
		host_drive(r, p->target, NFC_H2D, id, buf, 500);
		host_note(r, p->target, NFC_TYPE_FIN, NFC_H2D, id);
		id = host_direct(r, p->target, "three", 5);
		host_expect_ack(r, p->target, NFC_TYPE_ACK, NFC_H2D, id,
				NFC_STATE_CONSUMED, NFC_OK);
		CHECK_EQ(p->step, 3);
		CHECK_EQ(p->rc[2], 5);
		check_offer(1, 1, 500);
		check_offer(2, 0, 5);
		CHECK(!memcmp(p->buf, "three", 5));
		rig_free(r);
	}
}

/* A longer offer is described, and is still there for the next call. */
CASE(longer_offers_stay)
{
	for (int i = 0; i < 2; i++) {
		struct rig *r = rig_new(shape);
		struct puppet *p = taker(r, i ? 0 : ROOM, i);
		uint64_t id = host_begin(r, p->target, ROOM + 1, 0);

		go(r);
		host_expect_ack(r, p->target, NFC_TYPE_ERROR, NFC_H2D, id,
				NFC_STATE_FAILED, NFC_ERANGE);
		CHECK_EQ(p->rc[0], -NFC_ETOOLARGE);
		check_offer(0, 1, ROOM + 1);
		CHECK_EQ(p->rc[1], -NFC_ERANGE);
		id = host_direct(r, p->target, "more than sixteen", 17);
		rig_step(r);
		host_expect_ack(r, p->target, NFC_TYPE_ACK, NFC_H2D, id,
				NFC_STATE_CONSUMED, NFC_OK);
		CHECK_EQ(p->rc[2], -NFC_ETOOLARGE);
		check_offer(2, 0, 17);
		CHECK_EQ(p->rc[3], 17);
		CHECK_EQ(r->dma_calls, 0);
		rig_free(r);
	}
}

/* The host takes back what does not fit, and offers what does, before the process runs. */
CASE(longer_offers_that_are_taken_back)
{
	struct rig *r = rig_new(shape);
	struct puppet *p = taker(r, ROOM, false);
	uint64_t id;

	rig_step(r);
	id = host_begin(r, p->target, ROOM + 1, 0);
	host_note(r, p->target, NFC_TYPE_ABORT, NFC_H2D, id);
	host_direct(r, p->target, "fits", 4);
	rig_step(r);
	host_expect_ack(r, p->target, NFC_TYPE_ABORTED, NFC_H2D, id,
			NFC_STATE_FAILED, NFC_EABORTED);
	host_expect_ack(r, p->target, NFC_TYPE_ACK, NFC_H2D, id + 1,
			NFC_STATE_CONSUMED, NFC_OK);
	CHECK_EQ(p->step, 1);
	CHECK_EQ(p->rc[0], 4);
	check_offer(0, 0, 4);
	rig_free(r);
}

/* A transfer without bytes needs no room. */
CASE(room_of_none)
{
	struct rig *r = rig_new(shape);
	struct puppet *p = taker(r, 0, false);
	uint64_t id = host_begin(r, p->target, 0, 0);

	host_expect_ack(r, p->target, NFC_TYPE_DONE, NFC_H2D, id,
			NFC_STATE_DONE, NFC_OK);
	host_note(r, p->target, NFC_TYPE_FIN, NFC_H2D, id);
	rig_step(r);
	CHECK_EQ(p->rc[0], 0);
	check_offer(0, 1, 0);
	rig_free(r);
}

/* Room past the end of memory is an error of the call, whatever is offered, and refuses nothing. */
CASE(room_past_the_end)
{
	static const uint64_t rooms[] = { 1ull << 40, UINT64_MAX - 1,
					  UINT64_MAX };

	for (size_t i = 0; i < sizeof(rooms) / sizeof(*rooms); i++) {
		struct rig *r = rig_new(shape);
		struct puppet *p = taker(r, rooms[i], true);
		uint64_t id = host_direct(r, p->target, "kept", 4);

		go(r);
		CHECK_EQ(p->step, 8);
		CHECK_EQ(p->rc[0], -NFC_ERANGE);
		host_expect_ack(r, p->target, NFC_TYPE_ERROR, NFC_H2D, id,
				NFC_STATE_FAILED,
				NFC_ECLOSED); /* as the process ended */
		rig_free(r);
	}
}

/* The wait ends by a close, a stop and an abort, as that of the other reads. */
CASE(a_wait_ends)
{
	struct rig *r = rig_new(shape);
	struct puppet *p = taker(r, ROOM, false);
	uint64_t id = host_begin(r, p->target, ROOM, 0);

	rig_step(r);
	host_note(r, p->target, NFC_TYPE_ABORT, NFC_H2D, id);
	host_expect_ack(r, p->target, NFC_TYPE_ABORTED, NFC_H2D, id,
			NFC_STATE_FAILED, NFC_EABORTED);
	CHECK_EQ(p->rc[0], -NFC_EABORTED);
	host_close(r, p->target, 3);
	rig_step(r);
	host_expect_close(r, p->target, 3);
	CHECK_EQ(p->rc[1], -NFC_ECLOSED);
	CHECK_EQ(host_open(r, p->target), 0);
	host_control(r, NFC_CONTROL_STOP, p->process, 0, 0, NULL);
	CHECK_EQ(p->rc[2], -NFC_ESTOPPED);
	CHECK_EQ(r->dma_calls, 0);
	rig_free(r);
}
