// SPDX-License-Identifier: GPL-2.0-only
/*
 * Checks of the driver's trust in a device: hellos with one thing wrong,
 * records with one thing wrong, and millions of conversations with a device
 * that breaks the rules.
 */
#include <stdio.h>
#include <stdlib.h>

#include "harness.h"
#include "rig.h"

/* ---- hello ---- */

CASE(a_good_hello)
{
	struct nfc_area area;
	struct nfcm_layout l;
	const char *why = "";

	rig_area(&area);
	CHECK_EQ(nfcm_layout_check(&area, area.size, &l, &why), 0);
	CHECK(!why);
	CHECK_EQ(l.channels, 64);
	CHECK_EQ(nfcm_layout_mailbox(&l, 0), 0);
	CHECK_EQ(nfcm_layout_mailbox(&l, 1), 1);
	CHECK_EQ(nfcm_layout_mailbox(&l, 31), 1);
	CHECK_EQ(nfcm_layout_mailbox(&l, 32), 2);
	CHECK_EQ(nfcm_layout_mailbox(&l, 63), 3);
}

/* Change one field of the area, or of the hello in it. */
static int check_with(size_t at, size_t width, u64 value, bool in_hello)
{
	struct nfc_area area;
	struct nfcm_layout l;
	const char *why;
	u8 *to = (u8 *)&area;

	rig_area(&area);
	if (in_hello)
		to = (u8 *)area.device_hello.payload;
	memcpy(to + at, &value, width);
	return nfcm_layout_check(&area, 8192 + 4 * 8320, &l, &why);
}

#define HELLO(field, value)                           \
	check_with(offsetof(struct nfc_hello, field), \
		   sizeof(((struct nfc_hello *)0)->field), (value), true)
#define AREA(field, value)                           \
	check_with(offsetof(struct nfc_area, field), \
		   sizeof(((struct nfc_area *)0)->field), (value), false)

CASE(hellos_with_one_thing_wrong)
{
	CHECK_EQ(AREA(magic, 1), -EPROTO);
	CHECK_EQ(AREA(major, NFC_ABI_MAJOR - 1), -ENOEXEC);
	CHECK_EQ(AREA(epoch, 8), -EPROTO);
	CHECK_EQ(AREA(size, 100), -EPROTO);
	CHECK_EQ(AREA(size, 1ull << 40), -EPROTO);
	CHECK_EQ(AREA(park_offset, 64), -EPROTO);
	CHECK_EQ(AREA(park_offset, 4098), -EPROTO);
	CHECK_EQ(AREA(park_offset, 8192), -EPROTO); /* on the first mailbox */
	CHECK_EQ(AREA(park_offset, ~0ull), -EPROTO);
	CHECK_EQ(AREA(mailbox_offset, 0), -EPROTO);
	CHECK_EQ(AREA(mailbox_offset, 8256), -EPROTO);
	CHECK_EQ(AREA(mailbox_offset, ~0ull - 63), -EPROTO);
	CHECK_EQ(AREA(mailbox_stride, 64), -EPROTO);
	CHECK_EQ(AREA(mailbox_stride, 8321), -EPROTO);
	CHECK_EQ(AREA(mailbox_stride, ~0ull - 63), -EPROTO);
	CHECK_EQ(AREA(device_hello.header, 0), -EPROTO);
	CHECK_EQ(HELLO(magic, 0), -EPROTO);
	CHECK_EQ(HELLO(major, NFC_ABI_MAJOR + 1), -ENOEXEC);
	CHECK_EQ(HELLO(rsvd, 1), -EPROTO);
	CHECK_EQ(HELLO(eager, 1), -EPROTO);
	CHECK_EQ(HELLO(capabilities, NFC_CAP_EAGER), -EPROTO);
	CHECK_EQ(HELLO(channels, 0), -EPROTO);
	CHECK_EQ(HELLO(channels, 3), -EPROTO); /* fewer than mailboxes */
	CHECK_EQ(HELLO(channels, ~0u), -EPROTO);
	CHECK_EQ(HELLO(mailboxes, 0), -EPROTO);
	CHECK_EQ(HELLO(mailboxes, 3), -EPROTO);
	CHECK_EQ(HELLO(mailboxes, 66), -EPROTO);
	CHECK_EQ(HELLO(islands, 0), -EPROTO);
	CHECK_EQ(HELLO(islands, 17), -EPROTO);
	CHECK_EQ(HELLO(slots, 8), -EPROTO);
	CHECK_EQ(HELLO(slots, 65), -EPROTO);
	CHECK_EQ(HELLO(slots, 1 << 15), -EPROTO);
	CHECK_EQ(HELLO(window, 0), -EPROTO);
	CHECK_EQ(HELLO(window, 1 << 14), -EPROTO);
	CHECK_EQ(HELLO(beat_ms, 0), -EPROTO);
	CHECK_EQ(HELLO(max_transfer, 0), -EPROTO);
	CHECK_EQ(HELLO(max_transfer, 1ull << 48), -EPROTO);
}

/* Memory of the host's is given for what fits in it, and not for more. */
CASE(rings_in_the_hosts_memory)
{
	for (u32 slots = NFC_SLOTS_MIN; slots <= NFC_SLOTS_MAX; slots *= 2) {
		u64 rings = 64ull * slots * NFC_SLOT_SIZE;
		struct nfc_area area;
		struct nfcm_layout l;
		struct nfc_hello *hello = (void *)area.device_hello.payload;
		const char *why;

		rig_area(&area);
		hello->capabilities |= NFC_CAP_HOST_RINGS;
		hello->channels = 1 << 16;
		hello->mailboxes = 64;
		hello->slots = slots;
		area.park_offset = NFC_PAGE_SIZE;
		area.mailbox_offset = NFC_PAGE_SIZE + (4 << 16);
		area.mailbox_stride = 128 + 2 * slots * NFC_SLOT_SIZE;
		area.size = area.mailbox_offset + 64 * area.mailbox_stride;
		CHECK_EQ(nfcm_layout_check(&area, area.size, &l, &why), 0);
		CHECK_EQ(nfcm_layout_host_area(&l),
			 NFC_HOST_AREA_SIZE + rings + (4 << 16));
		CHECK_EQ(!!(l.capabilities & NFC_CAP_HOST_RINGS),
			 nfcm_layout_host_area(&l) <= NFCM_HOST_AREA_MAX);
	}
}

CASE(every_byte_of_the_area)
{
	struct choices c = { .state = 2 };

	for (int i = 0; i < 200000; i++) {
		struct nfc_area area;
		struct nfcm_layout l;
		const char *why;

		rig_area(&area);
		for (u64 n = 1 + choose(&c, 3); n; n--)
			((u8 *)&area)[choose(&c, 128)] = (u8)choose(&c, 256);
		if (nfcm_layout_check(&area, area.size, &l, &why))
			continue;
		for (u32 k = 0; k < l.channels; k += 1 + l.channels / 64)
			if (!CHECK(nfcm_layout_mailbox(&l, k) < l.mailboxes))
				return;
	}
}

/* ---- records ---- */

#define BYTES(lists) ((lists)*6ull * 4096 - RIG_HEAD)

/* A transfer of 20 lists, of which 8 were sent and 4 acked. */
static struct rig moving(void)
{
	struct nfcm_half_core *h;
	struct rig r;
	u64 k;

	rig_init(&r);
	h = &r.core.half[NFC_H2D];
	nfcm_core_transfer(h, BYTES(20), 8);
	h->ledger.ready = true;
	while (nfcm_ledger_next(&h->ledger, &k))
		nfcm_ledger_sent(&h->ledger, BYTES(k + 1));
	h->ledger.acked = 4;
	h->ledger.processed = BYTES(4);
	return r;
}

static enum nfcm_event classify(struct rig *r, enum nfc_type type,
				struct nfcm_record rec)
{
	struct nfc_slot slot = rig_record(r, type, &rec);
	struct nfcm_outcome out = { 0 };

	nfcm_classify(&r->core, &r->layout, &slot, &out);
	CHECK((out.event == NFCM_EVENT_FAULT) == !!out.why);
	return out.event;
}

struct claim {
	const char *name;
	enum nfc_type type;
	struct nfcm_record rec; /* transaction: relative to the present one */
	enum nfcm_event means;
};

static const struct claim claims[] = {
	{ "progress",
	  NFC_TYPE_ACK,
	  { .state = NFC_STATE_MOVING, .lists = 6, .processed = BYTES(6) },
	  NFCM_EVENT_PROGRESS },
	{ "one list too many",
	  NFC_TYPE_ACK,
	  { .state = NFC_STATE_MOVING, .lists = 9, .processed = BYTES(8) },
	  NFCM_EVENT_FAULT },
	{ "one byte too many",
	  NFC_TYPE_ACK,
	  { .state = NFC_STATE_MOVING, .lists = 8, .processed = BYTES(8) + 1 },
	  NFCM_EVENT_FAULT },
	{ "backwards",
	  NFC_TYPE_ACK,
	  { .state = NFC_STATE_MOVING, .lists = 5, .processed = BYTES(4) - 1 },
	  NFCM_EVENT_FAULT },
	{ "ready twice",
	  NFC_TYPE_ACK,
	  { .state = NFC_STATE_READY, .lists = 4, .processed = BYTES(4) },
	  NFCM_EVENT_FAULT },
	{ "consumed",
	  NFC_TYPE_ACK,
	  { .state = NFC_STATE_CONSUMED, .lists = 4, .processed = BYTES(4) },
	  NFCM_EVENT_FAULT },
	{ "unknown state",
	  NFC_TYPE_ACK,
	  { .state = NFC_STATE_COUNT, .lists = 4, .processed = BYTES(4) },
	  NFCM_EVENT_FAULT },
	{ "repeat",
	  NFC_TYPE_ACK,
	  { .state = NFC_STATE_REPEAT,
	    .status = NFC_EBUSY,
	    .lists = 5,
	    .processed = BYTES(5) },
	  NFCM_EVENT_PROGRESS },
	{ "repeat of what was not sent",
	  NFC_TYPE_ACK,
	  { .state = NFC_STATE_REPEAT,
	    .status = NFC_EBUSY,
	    .lists = 8,
	    .processed = BYTES(5) },
	  NFCM_EVENT_FAULT },
	{ "done too early",
	  NFC_TYPE_DONE,
	  { .state = NFC_STATE_DONE, .processed = BYTES(20) },
	  NFCM_EVENT_FAULT },
	{ "aborted unasked",
	  NFC_TYPE_ABORTED,
	  { .state = NFC_STATE_FAILED, .status = NFC_EABORTED },
	  NFCM_EVENT_FAULT },
	{ "error without a status",
	  NFC_TYPE_ERROR,
	  { .state = NFC_STATE_FAILED },
	  NFCM_EVENT_FAULT },
	{ "error with an unknown one",
	  NFC_TYPE_ERROR,
	  { .state = NFC_STATE_FAILED, .status = NFC_STATUS_COUNT },
	  NFCM_EVENT_FAULT },
	{ "error",
	  NFC_TYPE_ERROR,
	  { .state = NFC_STATE_FAILED, .status = NFC_EDMA, .processed = BYTES(5) },
	  NFCM_EVENT_FAILED },
	{ "error with too many bytes",
	  NFC_TYPE_ERROR,
	  { .state = NFC_STATE_FAILED,
	    .status = NFC_EDMA,
	    .processed = BYTES(20) + 1 },
	  NFCM_EVENT_FAULT },
	{ "error with another state",
	  NFC_TYPE_ERROR,
	  { .state = NFC_STATE_MOVING, .status = NFC_EDMA, .processed = BYTES(5) },
	  NFCM_EVENT_FAULT },
	{ "error in an entry that no list has",
	  NFC_TYPE_ERROR,
	  { .state = NFC_STATE_FAILED,
	    .status = NFC_EDMA,
	    .fault_index = NFC_LIST_ENTRIES },
	  NFCM_EVENT_FAULT },
	{ "of the past",
	  NFC_TYPE_ACK,
	  { .transaction = -1ull, .state = NFC_STATE_MOVING, .lists = 99 },
	  NFCM_EVENT_STALE },
	{ "of the future",
	  NFC_TYPE_ACK,
	  { .transaction = 1, .state = NFC_STATE_MOVING, .lists = 6 },
	  NFCM_EVENT_FAULT },
	{ "of no direction",
	  NFC_TYPE_ACK,
	  { .direction = 2, .state = NFC_STATE_MOVING },
	  NFCM_EVENT_FAULT },
};

CASE(records_with_one_thing_wrong)
{
	for (size_t i = 0; i < sizeof(claims) / sizeof(*claims); i++) {
		struct rig r = moving();
		struct nfcm_record rec = claims[i].rec;

		rec.transaction += r.core.half[NFC_H2D].id;
		if (!CHECK_EQ(classify(&r, claims[i].type, rec), claims[i].means))
			printf("%s\n", claims[i].name);
	}
}

/* A transfer all of whose lists were sent; size gets its bytes. */
static struct rig all_sent(u64 *size)
{
	struct rig r = moving();
	struct nfcm_ledger *l = &r.core.half[NFC_H2D].ledger;
	u64 k;

	for (; l->sent < l->lists; l->acked = l->sent)
		while (nfcm_ledger_next(l, &k))
			nfcm_ledger_sent(l, BYTES(k + 1));
	*size = l->size;
	return r;
}

CASE(done_is_all_of_it_in_its_state)
{
	u64 size;
	struct rig r = all_sent(&size);
	const struct nfcm_record right = {
		.transaction = r.core.half[NFC_H2D].id,
		.state = NFC_STATE_DONE,
		.processed = size,
	};
	struct nfcm_record wrong[] = { right, right, right, right };

	wrong[0].state = NFC_STATE_MOVING;
	wrong[1].processed--;
	wrong[2].outstanding = 1;
	wrong[3].status = NFC_EDMA;
	for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++) {
		r = all_sent(&size);
		CHECK_EQ(classify(&r, NFC_TYPE_DONE, wrong[i]),
			 NFCM_EVENT_FAULT);
	}
	r = all_sent(&size);
	CHECK_EQ(classify(&r, NFC_TYPE_DONE, right), NFCM_EVENT_DONE);
}

CASE(the_same_list_again_and_again)
{
	struct rig r = moving();
	struct nfcm_record rec = { .transaction = r.core.half[NFC_H2D].id,
				   .state = NFC_STATE_REPEAT,
				   .status = NFC_EBUSY,
				   .lists = 4,
				   .processed = BYTES(4) };
	u64 k;

	for (int i = 0; i < NFC_REPEATS_MAX; i++) {
		CHECK_EQ(classify(&r, NFC_TYPE_ACK, rec), NFCM_EVENT_PROGRESS);
		while (nfcm_ledger_next(&r.core.half[NFC_H2D].ledger, &k))
			nfcm_ledger_sent(&r.core.half[NFC_H2D].ledger,
					 BYTES(k + 1));
	}
	CHECK_EQ(classify(&r, NFC_TYPE_ACK, rec), NFCM_EVENT_RETRIES_EXHAUSTED);
}

CASE(what_crosses_an_abort)
{
	struct rig r = moving();
	struct nfcm_half_core *h = &r.core.half[NFC_H2D];
	struct nfcm_record rec = { .transaction = h->id,
				   .state = NFC_STATE_MOVING,
				   .lists = 6,
				   .processed = BYTES(6) };
	u64 k;

	nfcm_act(h, NFCM_PUT_ABORT);
	CHECK_EQ(classify(&r, NFC_TYPE_ACK, rec), NFCM_EVENT_NONE);
	CHECK(!nfcm_ledger_next(&h->ledger, &k));
	rec.state = NFC_STATE_FAILED;
	rec.status = NFC_EABORTED;
	CHECK_EQ(classify(&r, NFC_TYPE_ABORTED, rec), NFCM_EVENT_ABORTED);
	CHECK_EQ(h->state, NFCM_STATE_IDLE);
	CHECK_EQ(classify(&r, NFC_TYPE_ABORTED, rec), NFCM_EVENT_STALE);
}

/* Classify a message or a note of a half. */
static enum nfcm_event say_of(struct rig *r, enum nfc_direction direction,
			      enum nfc_type type, u64 id)
{
	struct nfc_note note = { .transaction = cpu_to_le64(id),
				 .direction = cpu_to_le32(direction) };
	struct nfc_slot slot = { 0 };
	struct nfcm_outcome out = { 0 };

	slot.header = cpu_to_le64(nfc_header(type, NFC_PAYLOAD_SIZE, 7, id, 0));
	memcpy(slot.payload, &note, sizeof(note));
	nfcm_classify(&r->core, &r->layout, &slot, &out);
	return out.event;
}

/* The same of the d2h half. */
static enum nfcm_event say(struct rig *r, enum nfc_type type, u64 id)
{
	return say_of(r, NFC_D2H, type, id);
}

/* A transfer that is there with its first list. */
static struct rig lying(void)
{
	struct nfcm_half_core *h;
	struct rig r;

	rig_init(&r);
	h = &r.core.half[NFC_H2D];
	nfcm_core_transfer(h, BYTES(20), 8);
	nfcm_ledger_sent(&h->ledger, BYTES(1));
	return r;
}

static enum nfcm_event give_back(struct rig *r)
{
	return say_of(r, NFC_H2D, NFC_TYPE_WITHDRAWN, r->core.half[NFC_H2D].id);
}

/* Of a transfer that waits for its target one list is put, and no more. */
CASE(one_list_until_the_target_is_ready)
{
	struct rig r = lying();
	struct nfcm_half_core *h = &r.core.half[NFC_H2D];
	struct nfcm_record ready = { .transaction = h->id,
				     .state = NFC_STATE_READY };
	u64 k;

	CHECK(!nfcm_ledger_next(&h->ledger, &k));
	CHECK_EQ(classify(&r, NFC_TYPE_ACK, ready), NFCM_EVENT_PROGRESS);
	CHECK(nfcm_ledger_next(&h->ledger, &k) && k == 1);
}

CASE(a_transfer_that_is_asked_back)
{
	struct rig r = lying();
	struct nfcm_half_core *h = &r.core.half[NFC_H2D];

	h->recall = true; /* WITHDRAW was put */
	CHECK_EQ(give_back(&r), NFCM_EVENT_WITHDRAWN);
	CHECK_EQ(h->state, NFCM_STATE_IDLE);
	CHECK_EQ(give_back(&r), NFCM_EVENT_STALE);

	r = lying();
	h->recall = true;
	nfcm_act(h, NFCM_PUT_ABORT); /* the answer crosses an ABORT */
	CHECK_EQ(give_back(&r), NFCM_EVENT_WITHDRAWN);
	CHECK_EQ(h->state, NFCM_STATE_IDLE);
}

CASE(a_transfer_that_is_not_given_back)
{
	struct rig r = lying();
	struct nfcm_half_core *h = &r.core.half[NFC_H2D];
	struct nfcm_record ready = { .transaction = h->id,
				     .state = NFC_STATE_READY };

	CHECK_EQ(give_back(&r), NFCM_EVENT_FAULT); /* nobody asked */

	h->recall = true;
	CHECK_EQ(classify(&r, NFC_TYPE_ACK, ready), NFCM_EVENT_PROGRESS);
	CHECK_EQ(give_back(&r), NFCM_EVENT_FAULT); /* its target has it */

	r = moving();
	h->recall = true;
	CHECK_EQ(give_back(&r), NFCM_EVENT_FAULT);
}

/* Its process may take it back before the close arrives. */
CASE(an_offer_that_crosses_a_close)
{
	struct nfcm_half_core *h;
	struct rig r;
	u64 id;

	rig_init(&r);
	h = &r.core.half[NFC_D2H];
	id = h->id + 1;
	nfcm_act(h, NFCM_SHUT);
	CHECK_EQ(say(&r, NFC_TYPE_DIRECT, id), NFCM_EVENT_STALE);
	CHECK_EQ(say(&r, NFC_TYPE_WITHDRAW, id), NFCM_EVENT_STALE);
	CHECK_EQ(h->state, NFCM_STATE_IDLE);
}

/*
 * The state decides which operations the host may do; a refused one changes
 * nothing.
 */
CASE(the_host_keeps_to_the_protocol)
{
	static const enum nfcm_input refused[] = {
		NFCM_PUT_WITHDRAW, NFCM_PUT_WITHDRAWN, NFCM_PUT_ACCEPT,
		NFCM_PUT_REFUSE,   NFCM_PUT_ABORT,     NFCM_PUT_FIN,
		NFCM_HOLD,	   NFCM_RELEASE,
	};
	struct nfcm_half_core *h;
	struct rig r;

	rig_init(&r);
	for (int d = 0; d < 2; d++) {
		struct nfcm_half_core before = r.core.half[d];

		h = &r.core.half[d];
		for (size_t i = 0; i < sizeof(refused) / sizeof(*refused); i++)
			CHECK(!nfcm_act(h, refused[i]));
		CHECK(!memcmp(h, &before, sizeof(before)));
	}
	h = &r.core.half[NFC_D2H];
	CHECK(!nfcm_act(h, NFCM_PUT_MESSAGE));
	CHECK_EQ(say(&r, NFC_TYPE_DIRECT, h->id + 1), NFCM_EVENT_OFFER);
	CHECK(!nfcm_act(h, NFCM_PUT_ACCEPT)); /* no call holds it */
	CHECK(nfcm_act(h, NFCM_HOLD) && !nfcm_act(h, NFCM_HOLD));
	CHECK_EQ(say(&r, NFC_TYPE_WITHDRAW, h->id), NFCM_EVENT_NONE);
	CHECK(nfcm_act(h, NFCM_RELEASE));
	CHECK_EQ(h->state, NFCM_STATE_ANSWERING);
	CHECK(nfcm_act(h, NFCM_PUT_WITHDRAWN));
	CHECK_EQ(h->state, NFCM_STATE_IDLE);
}

/* ---- conversations ---- */

CASE(a_device_that_lies)
{
	const char *text = getenv("NFC_SEED");
	u64 seed = text ? strtoull(text, NULL, 0) : 1;
	struct choices c = { .state = seed };
	struct rig r;

	rig_init(&r);
	for (int i = 0; i < 3000000; i++) {
		const char *broken;

		if (choose(&c, 3))
			rig_device(&r, &c);
		else
			rig_host(&r, &c);
		broken = rig_broken(&r);
		if (!CHECK(!broken)) {
			printf("step %d: %s (repeat with NFC_SEED=%llu)\n", i,
			       broken, (unsigned long long)seed);
			return;
		}
	}
	for (int e = 0; e <= NFCM_EVENT_CLOSED; e++)
		if (!CHECK(r.events[e]))
			printf("event %d never came\n", e);
}

/* Heartbeats of any number and length: 32 bits each. */
CASE(patience)
{
	struct nfcm_layout l = { .beat_ms = 100 };

	CHECK_EQ(nfcm_layout_patience(&l, 1000, 5), 1000);
	CHECK_EQ(nfcm_layout_patience(&l, 1000, 50), 5000);
	l.beat_ms = 1 << 20;
	CHECK_EQ(nfcm_layout_patience(&l, 1000, 4096), 1ull << 32);
	CHECK_EQ(nfcm_layout_patience(&l, 1000, ~0u), (u64)~0u << 20);
}

/* The age of a beat, whatever the device's clock says and however it runs. */
CASE(clock)
{
	enum { MS = 1000000 };
	struct nfcm_clock c = { 0 };
	u64 base = 77ull << 40;

	/* Beats each 100 ms; the device's clock began at base. */
	CHECK_EQ(nfcm_clock_age(&c, 1030 * MS, base + 1000 * MS, 900 * MS), 0);
	CHECK_EQ(nfcm_clock_age(&c, 1101 * MS, base + 1100 * MS, 1030 * MS), 0);
	CHECK(nfcm_clock_age(&c, 1260 * MS, base + 1200 * MS, 1101 * MS) >
	      58 * MS);
	CHECK(nfcm_clock_age(&c, 1390 * MS, base + 1300 * MS, 1260 * MS) >
	      88 * MS);
	/* It was not there 10 ms ago. */
	CHECK_EQ(nfcm_clock_age(&c, 1490 * MS, base + 1400 * MS, 1480 * MS),
		 10 * MS);
	/* A clock that is slower by 100 ppm: an hour is not taken for an age. */
	CHECK(nfcm_clock_age(&c, 3601401 * (u64)MS, base + 3601040 * (u64)MS,
			     1490 * MS) < 1 * MS);
	/* With a hostile clock a beat is no older than the last look. */
	for (u64 device = 1; device; device <<= 1) {
		u64 now = c.at + 100 * MS;

		CHECK(nfcm_clock_age(&c, now, device, now - 5 * MS) <= 5 * MS);
	}
}

CASE(rooms)
{
	for (u32 slots = NFC_SLOTS_MIN; slots <= NFC_SLOTS_MAX; slots *= 2) {
		u32 normal = nfcm_room(slots, NFCM_ROOM_NORMAL);

		CHECK_EQ(nfcm_room(slots, NFCM_ROOM_URGENT), slots);
		CHECK_EQ(nfcm_room(slots, NFCM_ROOM_LIST), slots / 2);
		CHECK(normal < slots && normal >= slots * 3 / 4);
	}
}
