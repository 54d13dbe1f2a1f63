// SPDX-License-Identifier: MIT
/* Gather lists that break the rules end a transfer, and nothing but it. */
#include <stdio.h>
#include <string.h>

#include "rig.h"

enum {
	SIZE = 6 * RIG_PAGE + 1, /* list 0 is full, list 1 holds one byte */
	COUNT = 7, /* a spoiled field: 0..5 an entry, 6 the tail */
};

struct spoiled {
	const char *what;
	uint64_t list;
	unsigned int field;
	uint64_t change; /* xored in */
};

static const struct spoiled rows[] = {
	{ "list 0 has no entries", 0, COUNT, 6 },
	{ "list 0 leaves its last entry unused", 0, COUNT, 6 ^ 5 },
	{ "list 0 has seven entries", 0, COUNT, 6 ^ 7 },
	{ "list 0 has 127 entries", 0, COUNT, 6 ^ 127 },
	{ "entry 0 of list 0 crosses its page", 0, 0,
	  1 << NFC_ENTRY_OFFSET_SHIFT },
	{ "entry 5 of list 0 crosses its page", 0, 5,
	  0xfffull << NFC_ENTRY_OFFSET_SHIFT },
	{ "entry 2 of list 0 is a byte short", 0, 2, 1 },
	{ "outstanding after list 0 is zero", 0, 6,
	  1 << NFC_TAIL_OUTSTANDING_SHIFT },
	{ "outstanding after list 0 is three", 0, 6,
	  2 << NFC_TAIL_OUTSTANDING_SHIFT },
	{ "outstanding after list 0 is huge", 0, 6, 1ull << 63 },
	{ "list 0 says it is list 1", 0, 6, 1 },
	{ "list 0 says it is list 65535", 0, 6, 0xffff },
	{ "list 1 has no entries", 1, COUNT, 1 },
	{ "list 1 has two entries", 1, COUNT, 1 ^ 2 },
	{ "list 1 has seven entries", 1, COUNT, 1 ^ 7 },
	{ "an unused entry 1 is not zero", 1, 1, 1 },
	{ "an unused entry 5 is not zero", 1, 5, 1ull << 63 },
	{ "list 1 has a byte too many", 1, 0, 1 },
	{ "list 1 has a page too many", 1, 0, 0xfff },
	{ "outstanding after list 1 is one", 1, 6,
	  1 << NFC_TAIL_OUTSTANDING_SHIFT },
	{ "list 1 says it is list 0", 1, 6, 1 },
	{ "list 1 says it is list 3", 1, 6, 2 },
};

static uint32_t direction;
static bool late;

static void move(struct nfc_process *self, struct puppet *p)
{
	struct nfc_channel *ch = nfc_channel_of(self, 0);

	p->memory = nfc_alloc(self, NFC_EMEM, SIZE);
	if (late)
		later(self);
	note(p, direction == NFC_H2D ? channel_read_ind(ch, p->memory, SIZE) :
				       channel_write_ind(ch, p->memory, SIZE));
	note(p, channel_read(ch, p->buf, sizeof(p->buf)));
	stay(self);
}

/* The two lists of the transfer, list `spoiled` with one field changed. */
static void send_list(struct rig *r, struct puppet *p, uint64_t id,
		      const uint8_t *buf, uint64_t list,
		      const struct spoiled *row)
{
	uint64_t flag = direction == NFC_D2H ? NFC_LIST_D2H : 0;
	uint64_t payload[7] = { 0 }, count = list ? 1 : 6;

	for (uint64_t i = 0; i < count; i++)
		payload[i] = nfc_entry((uintptr_t)buf + (list * 6 + i) * RIG_PAGE,
				       list ? 1 : RIG_PAGE);
	payload[6] = (uint64_t)!list << NFC_TAIL_OUTSTANDING_SHIFT | list;
	if (row->list == list && row->field < COUNT)
		payload[row->field] ^= row->change;
	else if (row->list == list)
		count ^= row->change;
	host_put(r, p->target, NFC_TYPE_IND_LIST, count | flag, id, payload);
}

static uint64_t offer(struct rig *r, struct puppet *p)
{
	uint64_t id;

	if (direction == NFC_H2D)
		return host_begin(r, p->target, SIZE, 0);
	go(r);
	id = r->channel[p->target].next[NFC_D2H]++;
	host_expect(r, p->target, NFC_TYPE_IND_BEGIN, id);
	return id;
}

static void check_row(const struct spoiled *row)
{
	struct rig *r = rig_new(NULL);
	struct puppet *p = host_start(r, move, 1);
	uint8_t *buf = host_buffer(r, 7 * RIG_PAGE, 1);
	uint64_t id = offer(r, p);
	struct nfc_ack ack;

	send_list(r, p, id, buf, 0, row);
	go(r);
	if (row->list == 1 && direction == NFC_H2D)
		host_expect_ack(r, p->target, NFC_TYPE_ACK, NFC_H2D, id,
				NFC_STATE_READY, NFC_OK);
	if (row->list == 1)
		send_list(r, p, id, buf, 1, row);
	ack = host_expect_ack(r, p->target, NFC_TYPE_ERROR, direction, id,
			      NFC_STATE_FAILED, NFC_EPROTO);
	CHECK_EQ(ack.processed + ack.outstanding, SIZE);
	CHECK_EQ(p->rc[0], -NFC_EPROTO);
	/*
	 * Slots that were under way are dropped, and the channel still works.
	 */
	send_list(r, p, id, buf, 1, row);
	host_note(r, p->target, NFC_TYPE_FIN, direction, id);
	host_expect_nothing(r, p->target);
	id = host_direct(r, p->target, "next", 4);
	host_expect_ack(r, p->target, NFC_TYPE_ACK, NFC_H2D, id,
			NFC_STATE_CONSUMED, NFC_OK);
	CHECK_EQ(p->rc[1], 4);
	rig_free(r);
}

static void check_all(void)
{
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		unsigned int before = test_failures();

		check_row(&rows[i]);
		if (test_failures() != before)
			printf("... where %s (%s)\n", rows[i].what,
			       late ? "parked" : "awaited");
	}
}

CASE(bad_lists_to_the_device)
{
	direction = NFC_H2D;
	late = false;
	check_all();
	late = true;
	check_all();
}

CASE(bad_lists_to_the_host)
{
	direction = NFC_D2H;
	late = false;
	check_all();
}

/* Before READY only list 0 may be sent. */
CASE(a_second_list_before_ready)
{
	static const struct spoiled none = { "nothing", 9, 0, 0 };
	struct rig *r = rig_new(NULL);
	struct puppet *p;
	uint8_t *buf;
	uint64_t id;

	direction = NFC_H2D;
	late = true;
	p = host_start(r, move, 1);
	buf = host_buffer(r, 7 * RIG_PAGE, 1);
	id = offer(r, p);
	send_list(r, p, id, buf, 0, &none);
	send_list(r, p, id, buf, 1, &none);
	host_expect_ack(r, p->target, NFC_TYPE_ERROR, NFC_H2D, id,
			NFC_STATE_FAILED, NFC_EPROTO);
	go(r);
	host_expect_nothing(r, p->target);
	CHECK_EQ(p->step, 0);
	CHECK_EQ(r->dma_calls, 0);
	rig_free(r);
}

/* A list of an entry per list: the ledger holds with any split. */
CASE(short_lists_are_lists)
{
	struct rig *r = rig_new(NULL);
	struct puppet *p;
	uint8_t *buf;
	uint64_t id;

	direction = NFC_H2D;
	late = false;
	p = host_start(r, move, 1);
	buf = host_buffer(r, 7 * RIG_PAGE, 1);
	id = offer(r, p);
	for (uint64_t i = 0, left = SIZE; i < 7; i++) {
		uint64_t length = i < 6 ? RIG_PAGE : 1;
		uint64_t entry = nfc_entry((uintptr_t)buf + i * RIG_PAGE,
					   length);

		left -= length;
		host_list(r, p->target, NFC_H2D, id, &entry, 1, i, left);
		if (i == 0)
			host_expect_ack(r, p->target, NFC_TYPE_ACK, NFC_H2D, id,
					NFC_STATE_READY, NFC_OK);
	}
	rig_step(r);
	for (struct nfc_slot slot; host_take(r, p->target, &slot);)
		if (nfc_header_type(slot.header) != NFC_TYPE_ACK)
			CHECK_EQ(nfc_header_type(slot.header), NFC_TYPE_DONE);
	host_note(r, p->target, NFC_TYPE_FIN, NFC_H2D, id);
	rig_step(r);
	CHECK_EQ(p->step, 1);
	CHECK_EQ(p->rc[0], 0);
	rig_free(r);
}
