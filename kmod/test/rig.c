// SPDX-License-Identifier: GPL-2.0-only
/* See rig.h. */
#include "rig.h"

enum { CHANNEL = 21 };

static u64 mix(u64 *state)
{
	u64 z = *state += 0x9e3779b97f4a7c15ull;

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9ull;
	z = (z ^ z >> 27) * 0x94d049bb133111ebull;
	return z ^ z >> 31;
}

u64 choose(struct choices *c, u64 below)
{
	u64 v = 0;

	if (!c->data)
		return mix(&c->state) % below;
	for (u64 most = below - 1; most; most >>= 8) {
		if (!c->left)
			break;
		v = v << 8 | *c->data++;
		c->left--;
	}
	return v % below;
}

u64 rig_up_to(u64 size, u64 lists)
{
	u64 bytes = lists * NFC_LIST_ENTRIES * NFC_PAGE_SIZE - RIG_HEAD;

	if (!lists)
		return 0;
	return bytes < size ? bytes : size;
}

void rig_area(struct nfc_area *area)
{
	struct nfc_hello h = {
		.magic = NFC_MAGIC,
		.major = NFC_ABI_MAJOR,
		.channels = 64,
		.mailboxes = 4,
		.islands = 2,
		.slots = 64,
		.window = 8,
		.beat_ms = 100,
		.max_transfer = 1ull << 40,
		.contexts = 8,
	};

	memset(area, 0, sizeof(*area));
	area->magic = NFC_MAGIC;
	area->major = NFC_ABI_MAJOR;
	area->epoch = 7;
	area->park_offset = 4096;
	area->mailbox_offset = 8192;
	area->mailbox_stride = sizeof(struct nfc_mailbox) +
			       2 * 64 * NFC_SLOT_SIZE;
	area->size = area->mailbox_offset + 4 * area->mailbox_stride;
	area->device_hello.header = nfc_header(NFC_TYPE_HELLO, NFC_PAYLOAD_SIZE,
					       7, 0, 0);
	memcpy(area->device_hello.payload, &h, sizeof(h));
}

void rig_init(struct rig *r)
{
	struct nfc_area area;
	const char *why;

	memset(r, 0, sizeof(*r));
	rig_area(&area);
	nfcm_layout_check(&area, area.size, &r->layout, &why);
	nfcm_core_open(&r->core, 65530, 65531, 3); /* the sequence wraps soon */
}

static void header(struct nfc_slot *slot, u64 type, u64 length, u64 id)
{
	slot->header = nfc_header(type, length, 7, id, CHANNEL);
}

struct nfc_slot rig_record(const struct rig *r, enum nfc_type type,
			   const struct nfcm_record *record)
{
	struct nfc_ack a = {
		.transaction = record->transaction,
		.processed = record->processed,
		.outstanding = record->outstanding,
		.lists = record->lists,
		.state = record->state,
		.status = record->status,
		.fault_index = record->fault_index,
		.direction = record->direction,
	};
	struct nfc_slot slot;

	(void)r;
	header(&slot, type, NFC_PAYLOAD_SIZE, record->transaction);
	memcpy(slot.payload, &a, sizeof(a));
	return slot;
}

/* ---- the host ---- */

static void begin(struct nfcm_half_core *h, struct choices *c)
{
	u64 size = choose(c, 1 << 20);

	if (choose(c, 3) == 0) { /* of the right size, mostly */
		if (h->direction == NFC_D2H && h->state == NFCM_STATE_OFFERED &&
		    choose(c, 4))
			size = nfcm_core_offer_size(h);
		nfcm_core_eager(h, size % (NFC_EAGER_BYTES + 1));
		return;
	}
	if (h->direction == NFC_D2H && h->state != NFCM_STATE_OFFERED)
		return;

	if (h->direction == NFC_D2H) {
		size = nfcm_core_offer_size(h);
		if (!size || !nfcm_core_offers_transfer(h))
			return;
	}
	nfcm_core_transfer(h, size, 8);
	if (h->direction == NFC_H2D && size)
		nfcm_ledger_sent(&h->ledger, rig_up_to(size, 1));
}

static void feed(struct nfcm_half_core *h)
{
	u64 k;

	while (nfcm_ledger_next(&h->ledger, &k))
		nfcm_ledger_sent(&h->ledger, rig_up_to(h->ledger.size, k + 1));
}

void rig_host(struct rig *r, struct choices *c)
{
	u32 d = (u32)choose(c, 2);
	struct nfcm_half_core *h = &r->core.half[d];

	switch (h->state) {
	case NFCM_STATE_IDLE:
		if (d == NFC_H2D && choose(c, 2))
			begin(h, c);
		else if (d == NFC_H2D)
			nfcm_act(h, NFCM_PUT_MESSAGE);
		else
			begin(h, c);
		break;
	case NFCM_STATE_OFFERED:
		if (d == NFC_H2D)
			nfcm_act(h, NFCM_PUT_WITHDRAW);
		else if (!h->held)
			nfcm_act(h, choose(c, 8) ? NFCM_HOLD : NFCM_PUT_CLOSE);
		else if (choose(c, 2))
			begin(h, c);
		else
			nfcm_act(h,
				 choose(c, 2) ? NFCM_RELEASE : NFCM_PUT_ACCEPT);
		break;
	case NFCM_STATE_MOVING:
		if (d == NFC_H2D && !choose(c, 16))
			nfcm_act(h, NFCM_PUT_WITHDRAW);
		else if (choose(c, 16))
			feed(h);
		else
			nfcm_act(h, NFCM_PUT_ABORT);
		break;
	case NFCM_STATE_ANSWERING:
		nfcm_act(h, NFCM_PUT_WITHDRAWN);
		break;
	case NFCM_STATE_GIVEN:
	case NFCM_STATE_POSTED:
		nfcm_act(h, NFCM_PUT_WITHDRAW);
		break;
	default:
		nfcm_act(h, NFCM_PUT_FIN);
	}
}

/* ---- the device ---- */

/* The list in flight that the last repeat asked for: it gets tiring. */
static struct nfc_slot say_repeat(struct rig *r, struct choices *c)
{
	u32 d = (u32)choose(c, 2);
	const struct nfcm_ledger *l = &r->core.half[d].ledger;
	struct nfcm_record rec = {
		.transaction = r->core.half[d].id,
		.direction = d,
		.lists = (u32)l->acked,
		.processed = l->processed,
		.state = NFC_STATE_REPEAT,
		.status = NFC_EBUSY,
	};

	return rig_record(r, NFC_TYPE_ACK, &rec);
}

/* A number that fits, or is a little off, or is anything. */
static u64 near(struct choices *c, u64 right)
{
	switch (choose(c, 24)) {
	case 0:
		return right + 1;
	case 1:
		return right - 1;
	case 2:
		return choose(c, 1ull << 48);
	case 3:
		return ~0ull;
	default:
		return right;
	}
}

/* The transaction that the device has in hand: of what is posted, the next. */
static u64 at_hand(const struct nfcm_half_core *h)
{
	return h->id + (h->state == NFCM_STATE_POSTED);
}

/* A message or an eager transfer, which is over. */
static void say_consumed(const struct nfcm_half_core *h, struct choices *c,
			 struct nfcm_record *rec)
{
	rec->state = NFC_STATE_CONSUMED;
	if (h->state != NFCM_STATE_OFFERED)
		rec->processed = near(c, h->size);
}

static struct nfc_slot say_record(struct rig *r, struct choices *c)
{
	static const enum nfc_type types[] = { NFC_TYPE_ACK, NFC_TYPE_ACK,
					       NFC_TYPE_DONE, NFC_TYPE_ERROR,
					       NFC_TYPE_ABORTED };
	u32 d = (u32)choose(c, 2);
	const struct nfcm_half_core *h = &r->core.half[d];
	const struct nfcm_ledger *l = &h->ledger;
	enum nfc_type type = types[choose(c, 5)];
	u64 lists = l->acked + choose(c, l->sent - l->acked + 1);
	u64 bytes = rig_up_to(l->size, lists);
	struct nfcm_record rec = {
		.transaction = near(c, at_hand(h)),
		.direction = (u32)near(c, d),
		.lists = (u32)near(c, lists),
		.processed = near(c, bytes > l->processed ? bytes : l->processed),
		.fault_index = (u32)choose(c, 8),
	};

	if (h->state == NFCM_STATE_OFFERED || h->state >= NFCM_STATE_GIVEN)
		say_consumed(h, c, &rec);
	else
		rec.state = (u16)(1 + choose(c, 3));
	if (type == NFC_TYPE_DONE) {
		rec.state = NFC_STATE_DONE;
		rec.processed = near(c, l->size);
	} else if (type != NFC_TYPE_ACK) {
		rec.state = NFC_STATE_FAILED;
		rec.status = (u16)near(c, 1 + choose(c, NFC_EFAULT));
	}
	rec.outstanding = near(c, l->size - rec.processed);
	return rig_record(r, type, &rec);
}

static struct nfc_slot say_offer(struct rig *r, struct choices *c)
{
	u64 id = near(c, r->core.half[NFC_D2H].id + 1);
	struct nfc_begin b = { .transaction = id,
			       .size = near(c, choose(c, 1 << 18)) };
	struct nfc_slot slot = { 0 };

	if (r->core.half[NFC_D2H].state == NFCM_STATE_POSTED && choose(c, 2))
		b.size = r->core.half[NFC_D2H].size; /* it crosses the pages */
	if (choose(c, 2)) {
		header(&slot, NFC_TYPE_DIRECT, near(c, choose(c, 57)), id);
		return slot;
	}
	b.rsvd[choose(c, 4)] = near(c, 0);
	header(&slot, NFC_TYPE_IND_BEGIN, NFC_PAYLOAD_SIZE, near(c, id));
	memcpy(slot.payload, &b, sizeof(b));
	return slot;
}

static struct nfc_slot say_note(struct rig *r, struct choices *c)
{
	static const enum nfc_type types[] = { NFC_TYPE_WITHDRAW,
					       NFC_TYPE_WITHDRAWN,
					       NFC_TYPE_READY };
	enum nfc_type type = types[choose(c, 3)];
	u32 d = type == NFC_TYPE_WITHDRAW ||
		(type == NFC_TYPE_WITHDRAWN && choose(c, 2));
	u64 id = at_hand(&r->core.half[d]) + (type == NFC_TYPE_READY);
	struct nfc_note n = { .transaction = near(c, id),
			      .direction = (u32)near(c, d),
			      .status = (u32)near(c, 0) };
	struct nfc_slot slot = { 0 };

	header(&slot, type, near(c, NFC_PAYLOAD_SIZE), n.transaction);
	memcpy(slot.payload, &n, sizeof(n));
	return slot;
}

static struct nfc_slot put_close(struct rig *r, struct choices *c)
{
	struct nfc_close o = { .halves = (u32)near(c, 1 + choose(c, 3)),
			       .generation = near(c, r->core.generation) };
	struct nfc_slot slot = { 0 };

	header(&slot, NFC_TYPE_CLOSE, NFC_PAYLOAD_SIZE, o.generation);
	memcpy(slot.payload, &o, sizeof(o));
	return slot;
}

static struct nfc_slot say_anything(struct rig *r, struct choices *c)
{
	struct nfc_slot slot;

	(void)r;
	slot.header = choose(c, ~0ull);
	for (int i = 0; i < 7; i++)
		slot.payload[i] = choose(c, 4) ? 0 : choose(c, ~0ull);
	if (choose(c, 2)) /* a header that passes, mostly */
		header(&slot, choose(c, 20), NFC_PAYLOAD_SIZE, slot.payload[0]);
	return slot;
}

enum nfcm_event rig_device(struct rig *r, struct choices *c)
{
	static struct nfc_slot (*const say[])(struct rig *, struct choices *) = {
		say_record, say_record, say_record, say_repeat, say_repeat,
		say_offer,  say_note,	say_note,   put_close,	say_anything,
	};
	struct nfc_slot slot = say[choose(c, 10)](r, c);
	struct nfcm_outcome out;

	nfcm_classify_header(&r->layout,
			     nfcm_layout_mailbox(&r->layout, CHANNEL), &slot,
			     &out);
	if (!out.event && nfc_header_channel(slot.header) == CHANNEL)
		nfcm_classify(&r->core, &r->layout, &slot, &out);
	else if (!out.event)
		nfcm_classify_stranger(&slot, &out);
	r->events[out.event]++;
	if (out.event == NFCM_EVENT_OVER || out.event == NFCM_EVENT_FAULT)
		nfcm_core_open(&r->core, 65530, 65531, r->core.generation + 1);
	return out.event;
}

const char *rig_broken(const struct rig *r)
{
	for (int d = 0; d < 2; d++) {
		const struct nfcm_half_core *h = &r->core.half[d];
		const struct nfcm_ledger *l = &h->ledger;

		if (h->direction != d || h->state > NFCM_STATE_POSTED)
			return "a half that is none";
		if (h->state == NFCM_STATE_POSTED && d == NFC_H2D)
			return "posted to the device";
		if (h->state >= NFCM_STATE_GIVEN && h->size > NFC_EAGER_BYTES)
			return "more pages than an eager transfer has";
		if (l->acked > l->sent || l->sent > l->lists)
			return "lists that were not sent";
		if (l->processed > l->size)
			return "more bytes than there are";
		if (l->sent - l->acked > l->window)
			return "more lists than the window";
		if (h->state == NFCM_STATE_COMPLETE && l->processed != l->size)
			return "complete, but it is not";
		if (d == NFC_D2H && h->state == NFCM_STATE_OFFERED &&
		    nfcm_core_offer_size(h) > r->layout.max_transfer)
			return "an offer over the limit";
	}
	return NULL;
}
