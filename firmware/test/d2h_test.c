// SPDX-License-Identifier: MIT
/* Transfers to the host: offer, destination pages, commit, refusal, abort. */
#include <stdio.h>
#include <string.h>

#include "rig.h"

static uint64_t give_size;

static struct nfc_channel *port(struct nfc_process *self)
{
	return nfc_channel_of(self, 0);
}

static void give(struct nfc_process *self, struct puppet *p)
{
	p->size = give_size;
	p->memory = nfc_alloc(self, NFC_EMEM, give_size + 100) + 33;
	p->more = nfc_at(self, p->memory, give_size);
	fill_pattern(p->more, give_size, 77);
	note(p, channel_write_ind(port(self), p->memory, p->size));
	note(p, channel_read(port(self), p->buf, sizeof(p->buf)));
	stay(self);
}

static struct puppet *giver(struct rig *r, uint64_t size, uint64_t *id)
{
	struct puppet *p;
	struct nfc_slot slot;
	struct nfc_begin begin;

	give_size = size;
	p = host_start(r, give, 1);
	*id = r->channel[p->target].next[NFC_D2H]++;
	slot = host_expect(r, p->target, NFC_TYPE_IND_BEGIN, *id);
	memcpy(&begin, slot.payload, sizeof(begin));
	CHECK_EQ(begin.transaction, *id);
	CHECK_EQ(begin.size, size);
	CHECK_EQ(begin.timeout_ns, 0);
	for (int i = 0; i < 4; i++)
		CHECK_EQ(begin.rsvd[i], 0);
	return p;
}

static void check_alive(struct rig *r, struct puppet *p, int first_rc)
{
	uint64_t id = host_direct(r, p->target, "next", 4);

	host_expect_ack(r, p->target, NFC_TYPE_ACK, NFC_H2D, id,
			NFC_STATE_CONSUMED, NFC_OK);
	CHECK_EQ(p->step, 2);
	CHECK_EQ(p->rc[0], first_rc);
	CHECK_EQ(p->rc[1], 4);
	host_expect_nothing(r, p->target);
}

static void receive(struct rig *r, struct puppet *p, uint64_t id, uint8_t *buf,
		    uint64_t size)
{
	struct nfc_ack ack = host_drive(r, p->target, NFC_D2H, id, buf, size);

	CHECK_EQ(ack.state, NFC_STATE_DONE);
	CHECK_EQ(ack.processed, size);
	CHECK_EQ(ack.outstanding, 0);
	CHECK_EQ(p->step, 0);
	CHECK(!memcmp(buf, p->more, size));
	host_note(r, p->target, NFC_TYPE_FIN, NFC_D2H, id);
	check_alive(r, p, 0);
}

/* Bytes around the destination stay as they are, whatever its alignment. */
CASE(transfers_of_many_shapes)
{
	static const uint64_t sizes[] = { 1,	 4095,	4096,	4097,
					  24576, 24577, 100000, 1000000 };
	static const uint64_t offsets[] = { 0, 1, 63, 4095 };

	for (size_t i = 0; i < sizeof(sizes) / sizeof(*sizes); i++) {
		for (size_t j = 0; j < sizeof(offsets) / sizeof(*offsets); j++) {
			struct rig *r = rig_new(NULL);
			uint64_t size = sizes[i], offset = offsets[j], id;
			struct puppet *p = giver(r, size, &id);
			uint8_t *all = host_buffer(r, size + 8192, 1);

			memset(all, 0xa5, size + 8192);
			receive(r, p, id, all + offset, size);
			for (uint64_t k = 0; k < size + 8192; k++)
				if (k < offset || k >= offset + size)
					REQUIRE(all[k] == 0xa5);
			rig_free(r);
		}
	}
}

CASE(a_zero_length_transfer_is_answered_with_fin)
{
	struct rig *r = rig_new(NULL);
	uint64_t id;
	struct puppet *p = giver(r, 0, &id);

	CHECK_EQ(p->step, 0);
	host_note(r, p->target, NFC_TYPE_FIN, NFC_D2H, id);
	check_alive(r, p, 0);
	rig_free(r);
}

CASE(fin_does_not_commit_what_did_not_move)
{
	struct rig *r = rig_new(NULL);
	uint64_t id, dropped;
	struct puppet *p = giver(r, 100, &id);

	dropped = rig_dropped(r);
	host_note(r, p->target, NFC_TYPE_FIN, NFC_D2H, id);
	rig_step(r);
	CHECK_EQ(p->step, 0);
	CHECK_EQ(rig_dropped(r), dropped + 1);
	rig_free(r);
}

CASE(the_host_refuses)
{
	static const uint32_t why[] = { NFC_ESIZE, NFC_EKIND, NFC_ECLOSED,
					NFC_EABORTED };

	for (size_t i = 0; i < sizeof(why) / sizeof(*why); i++) {
		struct rig *r = rig_new(NULL);
		uint64_t id;
		struct puppet *p = giver(r, 100, &id);

		host_reply(r, p->target, NFC_TYPE_ERROR, NFC_D2H, id,
			   NFC_STATE_FAILED, why[i], 99);
		check_alive(r, p, -(int)why[i]);
		rig_free(r);
	}
}

CASE(a_busy_engine_repeats)
{
	for (unsigned int k = 0; k < 6; k++) {
		struct rig *r = rig_new(NULL);
		uint64_t size = 40 * 6 * RIG_PAGE + 17, id;
		struct puppet *p = giver(r, size, &id);
		uint8_t *buf = host_buffer(r, size + 5, k) + 5;

		r->dma_script[k] = NFC_EBUSY;
		receive(r, p, id, buf, size);
		CHECK_EQ(r->repeats, 1);
		rig_free(r);
	}
}

CASE(an_unreachable_page_ends_it)
{
	struct rig *r = rig_new(NULL);
	uint64_t size = 10 * 6 * RIG_PAGE, id;
	struct puppet *p = giver(r, size, &id);
	uint8_t *buf = host_buffer(r, size, 1);
	struct nfc_ack ack;

	r->dma_script[1] = NFC_EDMA;
	ack = host_drive(r, p->target, NFC_D2H, id, buf, size);
	CHECK_EQ(ack.state, NFC_STATE_FAILED);
	CHECK_EQ(ack.status, NFC_EDMA);
	CHECK_EQ(ack.processed + ack.outstanding, size);
	check_alive(r, p, -NFC_EDMA);
	rig_free(r);
}

enum step { AFTER_BEGIN, AFTER_SOME, AFTER_DONE, STEPS };

static const char *const step_names[] = { "BEGIN", "some lists", "DONE" };

static void check_abort(enum step step)
{
	struct rig *r = rig_new(NULL);
	uint64_t size = 24 * 6 * RIG_PAGE, id;
	struct puppet *p = giver(r, size, &id);
	uint8_t *buf = host_buffer(r, size, 1);
	struct nfc_slot slot = { 0 };
	struct nfc_ack ack;
	unsigned int copies;

	if (step == AFTER_DONE)
		host_drive(r, p->target, NFC_D2H, id, buf, size);
	else if (step == AFTER_SOME)
		host_send_lists(r, p->target, NFC_D2H, id, buf, size, 0, 5);
	host_note(r, p->target, NFC_TYPE_ABORT, NFC_D2H, id);
	rig_step(r);
	while (host_take(r, p->target, &slot) &&
	       nfc_header_type(slot.header) == NFC_TYPE_ACK)
		;
	memcpy(&ack, slot.payload, sizeof(ack));
	CHECK_EQ(nfc_header_type(slot.header), NFC_TYPE_ABORTED);
	CHECK_EQ(ack.status, NFC_EABORTED);
	CHECK_EQ(ack.processed + ack.outstanding, size);
	copies = r->dma_calls;
	host_send_lists(r, p->target, NFC_D2H, id, buf, size, 5, 7);
	host_note(r, p->target, NFC_TYPE_FIN, NFC_D2H, id);
	check_alive(r, p, -NFC_EABORTED);
	CHECK_EQ(r->dma_calls, copies);
	rig_free(r);
}

CASE(abort_at_each_step)
{
	for (int step = 0; step < STEPS; step++) {
		unsigned int before = test_failures();

		check_abort((enum step)step);
		if (test_failures() != before)
			printf("... after %s\n", step_names[step]);
	}
}

/* A transfer waits on h2d while another moves on d2h: lists find their own. */
CASE(both_halves_move_apart)
{
	struct rig *r = rig_new(NULL);
	uint64_t size = 12 * RIG_PAGE, up;
	struct puppet *p = giver(r, size, &up);
	uint8_t *to = host_buffer(r, size, 1), *from = host_buffer(r, size, 2);
	uint64_t down = host_begin(r, p->target, size, 0);

	host_send_lists(r, p->target, NFC_D2H, up, to, size, 0, 1);
	host_send_lists(r, p->target, NFC_H2D, down, from, size, 0, 1);
	host_send_lists(r, p->target, NFC_D2H, up, to, size, 1, 2);
	host_expect_ack(r, p->target, NFC_TYPE_DONE, NFC_D2H, up,
			NFC_STATE_DONE, NFC_OK);
	CHECK(!memcmp(to, p->more, size));
	host_note(r, p->target, NFC_TYPE_FIN, NFC_D2H, up);
	/* The puppet reads a message next: the parked transfer is no message. */
	host_expect_ack(r, p->target, NFC_TYPE_ERROR, NFC_H2D, down,
			NFC_STATE_FAILED, NFC_EKIND);
	CHECK_EQ(p->rc[0], 0);
	CHECK_EQ(p->rc[1], -NFC_EKIND);
	rig_free(r);
}

static void give_badly(struct nfc_process *self, struct puppet *p)
{
	uint64_t end = ((uint64_t)NFC_EMEM << NFC_MEMORY_SHIFT) + (4 << 20);

	note(p, channel_write_ind(port(self), end - 1, 2));
	note(p, channel_write_ind(port(self), UINT64_MAX, 1));
	stay(self);
}

CASE(a_range_that_is_not_memory)
{
	struct rig *r = rig_new(NULL);
	struct puppet *p = host_start(r, give_badly, 1);

	host_expect_nothing(r, p->target);
	CHECK_EQ(p->rc[0], -NFC_ERANGE);
	CHECK_EQ(p->rc[1], -NFC_ERANGE);
	rig_free(r);
}
