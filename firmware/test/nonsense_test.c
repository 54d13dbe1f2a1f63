// SPDX-License-Identifier: MIT
/* The device drops and counts messages that make no sense. */
#include <stdio.h>
#include <string.h>

#include "pair_rig.h"

static void hold(struct nfc_process *self, struct puppet *p)
{
	(void)p;
	stay(self);
}

static void read_for_ever(struct nfc_process *self, struct puppet *p)
{
	int rc;

	do {
		rc = channel_read(nfc_channel_of(self, 0), p->buf,
				  sizeof(p->buf));
		p->size++;
	} while (rc != -NFC_ESTOPPED);
}

enum {
	TARGET = NFC_TARGET_FIRST, /* of the only puppet */
	EPOCH = 7,
};

static void two_hosts(struct nfc_config *c)
{
	c->hosts = 2;
}

/* A slot about the puppet's channel as one about a channel of r, in the epoch of r. */
static struct nfc_slot slot_at(const struct rig *r, uint32_t at,
			       const struct nfc_slot *slot)
{
	uint64_t channel = nfc_header_channel(slot->header);
	uint64_t epoch = nfc_header_epoch(slot->header);
	struct nfc_slot out = *slot;

	if (channel == TARGET || channel == TARGET + 1)
		channel += at - TARGET;
	out.header = nfc_header(nfc_header_type(slot->header),
				nfc_header_length(slot->header),
				epoch - EPOCH + r->epoch,
				nfc_header_sequence(slot->header), channel);
	return out;
}

/* At an end of a channel between hosts: the other one gets nothing of it. */
static void check_dropped_between(const struct nfc_slot *slot,
				  uint32_t mailbox_of, bool far_says)
{
	struct pair p = pair_new(two_hosts);
	struct rig *r = far_says ? p.far : p.near;
	uint32_t at = far_says ? p.at_far : p.at_near;
	struct nfc_slot lie = slot_at(r, at, slot);
	unsigned int before = test_failures();
	uint64_t dropped = rig_dropped(r);

	host_slot(r, &lie, mailbox_of - TARGET + at);
	rig_step(r);
	for (uint32_t c = 0; c < r->config.channels; c++) {
		host_expect_nothing(p.near, c);
		host_expect_nothing(p.far, c);
	}
	CHECK_EQ(rig_dropped(r), dropped + 1);
	pair_works(&p);
	if (test_failures() != before)
		printf("... of %s\n",
		       far_says ? "who listens" : "who connected");
	pair_free(&p);
}

/* One slot as given: it is dropped, counted, and changes nothing. */
static void check_dropped(const char *what, const struct nfc_slot *slot,
			  uint32_t mailbox_of)
{
	struct rig *r = rig_new(NULL);
	struct puppet *p = host_start(r, read_for_ever, 1);
	unsigned int before = test_failures();
	uint64_t dropped = rig_dropped(r), id;

	host_slot(r, slot, mailbox_of);
	rig_step(r);
	for (uint32_t c = 0; c < r->config.channels; c++)
		host_expect_nothing(r, c);
	CHECK_EQ(rig_dropped(r), dropped + 1);
	CHECK_EQ(p->size, 0);
	id = host_direct(r, p->target, "x", 1);
	host_expect_ack(r, p->target, NFC_TYPE_ACK, NFC_H2D, id,
			NFC_STATE_CONSUMED, NFC_OK);
	rig_free(r);
	check_dropped_between(slot, mailbox_of, false);
	check_dropped_between(slot, mailbox_of, true);
	if (test_failures() != before)
		printf("... with %s\n", what);
}

static struct nfc_slot slot_of(uint64_t type, uint64_t length, uint64_t epoch,
			       uint64_t sequence, uint64_t channel)
{
	return (struct nfc_slot){
		.header = nfc_header(type, length, epoch, sequence, channel),
	};
}

static void drop_slot(const char *what, uint64_t type, uint64_t length,
		      uint64_t epoch, uint64_t sequence, uint64_t channel)
{
	struct nfc_slot slot = slot_of(type, length, epoch, sequence, channel);

	check_dropped(what, &slot, (uint32_t)channel);
}

CASE(headers_that_make_no_sense)
{
	drop_slot("a message of 57 bytes", NFC_TYPE_DIRECT, 57, EPOCH, 1,
		  TARGET);
	drop_slot("a message of 255 bytes", NFC_TYPE_DIRECT, 255, EPOCH, 1,
		  TARGET);
	drop_slot("the epoch before", NFC_TYPE_DIRECT, 1, EPOCH - 1, 1, TARGET);
	drop_slot("the epoch after", NFC_TYPE_DIRECT, 1, EPOCH + 1, 1, TARGET);
	drop_slot("a message from the past", NFC_TYPE_DIRECT, 1, EPOCH, 0,
		  TARGET);
	drop_slot("a message from the future", NFC_TYPE_DIRECT, 1, EPOCH, 2,
		  TARGET);
	drop_slot("a channel nobody opened", NFC_TYPE_DIRECT, 1, EPOCH, 1,
		  TARGET + 1);
	drop_slot("a channel over the limit", NFC_TYPE_DIRECT, 1, EPOCH, 1, 64);
	drop_slot("the last channel id", NFC_TYPE_DIRECT, 1, EPOCH, 1, 0xffffff);
	drop_slot("a begin with a stale sequence", NFC_TYPE_IND_BEGIN, 56,
		  EPOCH, 9, TARGET);
	drop_slot("a list without a transfer", NFC_TYPE_IND_LIST, 1, EPOCH, 0,
		  TARGET);
	drop_slot("a d2h list without a transfer", NFC_TYPE_IND_LIST,
		  1 | NFC_LIST_D2H, EPOCH, 0, TARGET);
}

CASE(types_the_host_must_not_send)
{
	static const uint32_t types[] = {
		NFC_TYPE_NONE,
		NFC_TYPE_DONE,
		NFC_TYPE_ABORTED,
		NFC_TYPE_HELLO,
		NFC_TYPE_HEARTBEAT,
		NFC_TYPE_READY,
		NFC_TYPE_COUNT,
		100,
		127,
	};
	char what[32];

	for (size_t i = 0; i < sizeof(types) / sizeof(*types); i++) {
		snprintf(what, sizeof(what), "type %u", types[i]);
		drop_slot(what, types[i], 56, EPOCH, 0, TARGET);
	}
}

/* Channel 1 belongs to mailbox 1; in mailbox 0 it is invalid. */
CASE(a_channel_in_the_wrong_mailbox)
{
	struct nfc_slot slot = slot_of(NFC_TYPE_DIRECT, 1, EPOCH, 1, TARGET);

	check_dropped("another mailbox", &slot, TARGET + 1);
}

static void drop_payload(const char *what, uint32_t type, uint64_t sequence,
			 const void *payload)
{
	struct nfc_slot slot = slot_of(type, 56, EPOCH, sequence, TARGET);

	memcpy(slot.payload, payload, NFC_PAYLOAD_SIZE);
	check_dropped(what, &slot, TARGET);
}

CASE(notes_that_make_no_sense)
{
	static const uint32_t types[] = { NFC_TYPE_FIN,	      NFC_TYPE_WITHDRAW,
					  NFC_TYPE_WITHDRAWN, NFC_TYPE_ABORT,
					  NFC_TYPE_OFFER,     NFC_TYPE_READY };
	char what[64];

	for (size_t i = 0; i < sizeof(types) / sizeof(*types); i++) {
		struct nfc_note note = { .transaction = 77 };

		snprintf(what, sizeof(what), "note %u of a stranger", types[i]);
		drop_payload(what, types[i], 77, &note);
		note.direction = 2;
		note.transaction = 0;
		snprintf(what, sizeof(what), "note %u without direction",
			 types[i]);
		drop_payload(what, types[i], 0, &note);
	}
}

CASE(records_that_make_no_sense)
{
	struct nfc_ack ack = { .transaction = 1, .direction = NFC_D2H };

	drop_payload("an ack of nothing", NFC_TYPE_ACK, 1, &ack);
	ack.status = NFC_EKIND;
	drop_payload("an error of nothing", NFC_TYPE_ERROR, 1, &ack);
	ack.direction = NFC_H2D;
	drop_payload("an error the wrong way", NFC_TYPE_ERROR, 1, &ack);
}

CASE(closes_that_make_no_sense)
{
	struct nfc_close close = { .halves = 3, .generation = 999 };

	drop_payload("a close of another subscription", NFC_TYPE_CLOSE,
		     999 & 0xffff, &close);
	close = (struct nfc_close){ .halves = 0, .generation = 2 };
	drop_payload("a close of nothing", NFC_TYPE_CLOSE, 2, &close);
	close = (struct nfc_close){ .halves = 4, .generation = 2 };
	drop_payload("a close of a third half", NFC_TYPE_CLOSE, 2, &close);
}

/* The same of a message that another host sees: it still sees it. */
static void check_strict_between(const struct nfc_slot *slot)
{
	struct pair p = pair_new(two_hosts);
	struct nfc_slot lie = slot_at(p.near, p.at_near, slot);
	uint64_t sent, id = pair_offer(&p, 1, &sent), dropped;

	CHECK_EQ(sent, 1);
	dropped = rig_dropped(p.near);
	host_slot(p.near, &lie, p.at_near);
	host_expect_nothing(p.near, p.at_near);
	host_expect_nothing(p.far, p.at_far);
	CHECK_EQ(rig_dropped(p.near), dropped + 1);
	pair_take(&p, id, sent);
	pair_free(&p);
}

/*
 * "Unknown type, length, channel or epoch, reserved bits set: dropped." For
 * payloads that are read the length is 56 and what is reserved is zero.
 */
static void check_strict(const char *what, uint32_t type, uint64_t length,
			 const void *payload, uint64_t sequence)
{
	struct rig *r = rig_new(NULL);
	struct puppet *p = host_start(r, hold, 1);
	unsigned int before = test_failures();
	uint64_t id = host_direct(r, p->target, "x", 1), dropped;
	struct nfc_slot slot = slot_of(type, length, EPOCH, sequence, TARGET);

	CHECK_EQ(id, 1);
	rig_step(r);
	dropped = rig_dropped(r);
	memcpy(slot.payload, payload, NFC_PAYLOAD_SIZE);
	host_slot(r, &slot, p->target);
	host_expect_nothing(r, p->target);
	CHECK_EQ(rig_dropped(r), dropped + 1);
	host_note(r, p->target, NFC_TYPE_WITHDRAW, NFC_H2D, id);
	host_expect_note(r, p->target, NFC_TYPE_WITHDRAWN, NFC_H2D, id);
	rig_free(r);
	check_strict_between(&slot);
	if (test_failures() != before)
		printf("... with %s\n", what);
}

CASE(notes_are_whole)
{
	struct nfc_note note = { .transaction = 1 };

	check_strict("a note of 55 bytes", NFC_TYPE_WITHDRAW, 55, &note, 1);
	check_strict("a note of 0 bytes", NFC_TYPE_WITHDRAW, 0, &note, 1);
	check_strict("a note of another sequence", NFC_TYPE_WITHDRAW, 56, &note,
		     2);
	for (int i = 0; i < 5; i++) {
		note = (struct nfc_note){ .transaction = 1 };
		note.rsvd[i] = 1;
		check_strict("a note with reserved bits", NFC_TYPE_WITHDRAW, 56,
			     &note, 1);
	}
	note = (struct nfc_note){ .transaction = 1 | 1ull << 40 };
	check_strict("a note of a far transaction", NFC_TYPE_WITHDRAW, 56,
		     &note, 1);
	note = (struct nfc_note){ .transaction = 1, .direction = NFC_H2D };
	check_strict("an answer that is the device's", NFC_TYPE_WITHDRAWN, 56,
		     &note, 1);
}

CASE(closes_are_whole)
{
	struct nfc_close close = { .halves = 3, .generation = 2 };

	check_strict("a close of 55 bytes", NFC_TYPE_CLOSE, 55, &close, 2);
	check_strict("a close of another sequence", NFC_TYPE_CLOSE, 56, &close,
		     3);
	for (int i = 0; i < 5; i++) {
		close = (struct nfc_close){ .halves = 3, .generation = 2 };
		close.rsvd[i] = 1;
		check_strict("a close with reserved bits", NFC_TYPE_CLOSE, 56,
			     &close, 2);
	}
}

/* A begin that is no begin is dropped: its id is still the next one. */
CASE(begins_are_whole)
{
	struct rig *r = rig_new(NULL);
	struct puppet *p = host_start(r, hold, 1);
	struct nfc_begin begin = { .transaction = 1, .size = 10 };
	uint64_t dropped = rig_dropped(r);

	host_put(r, p->target, NFC_TYPE_IND_BEGIN, 55, 1, &begin);
	host_expect_nothing(r, p->target);
	CHECK_EQ(rig_dropped(r), dropped + 1);
	CHECK_EQ(rig_heartbeat(r).parked, 0);
	rig_free(r);
}

/* A second offer while one is parked is from the future: dropped. */
CASE(one_transaction_per_half)
{
	struct rig *r = rig_new(NULL);
	struct puppet *p = host_start(r, hold, 1);
	uint64_t id = host_direct(r, p->target, "x", 1), dropped;

	rig_step(r);
	dropped = rig_dropped(r);
	host_direct(r, p->target, "y", 1);
	host_begin(r, p->target, 10, 0);
	host_expect_nothing(r, p->target);
	CHECK_EQ(rig_dropped(r), dropped + 2);
	host_note(r, p->target, NFC_TYPE_WITHDRAW, NFC_H2D, id);
	host_expect_note(r, p->target, NFC_TYPE_WITHDRAWN, NFC_H2D, id);
	rig_free(r);
}

/* Ids are 64 bits wide; the sequence wraps with their low 16. */
CASE(ids_wrap_their_sequence)
{
	struct rig *r = rig_new(NULL);
	struct puppet *p = host_start(r, read_for_ever, 1);
	uint64_t id = 0;

	while (id < 0x10003) {
		id = host_direct(r, p->target, "x", 1);
		rig_step(r);
		for (struct nfc_slot slot; host_take(r, p->target, &slot);)
			if (nfc_header_type(slot.header) != NFC_TYPE_ACK)
				REQUIRE(!"an ack for each");
	}
	rig_step(r);
	CHECK_EQ(p->size, id);
	rig_free(r);
}
