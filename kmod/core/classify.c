// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * What a message from the device means. Whatever cannot follow from what the
 * host sent is a fault; what is about something that is over is stale. Pure:
 * see nfcm_core.h.
 */
#include "nfcm_core.h"

static void fault(struct nfcm_judgement *j, const char *why)
{
	j->event = NFCM_EVENT_FAULT;
	j->why = why;
}

static u16 sequence(const struct nfc_slot *slot)
{
	return (u16)nfc_header_sequence(le64_to_cpu(slot->header));
}

static bool reserved(const struct nfc_slot *slot, int from)
{
	int i;

	for (i = from; i < 7; i++)
		if (slot->payload[i])
			return true;
	return false;
}

/* The subscription's first ids. */
void nfcm_core_open(struct nfcm_channel_core *c, u64 next_h2d, u64 next_d2h,
		    u64 generation)
{
	memset(c, 0, sizeof(*c));
	c->half[NFC_H2D].id = next_h2d - 1;
	c->half[NFC_D2H].id = next_d2h - 1;
	c->half[NFC_D2H].direction = NFC_D2H;
	c->generation = generation;
}

/* A message is put: the next transaction of an idle h2d half begins. */
void nfcm_core_message(struct nfcm_half_core *h)
{
	h->id++;
	h->phase = NFCM_PHASE_OFFERED;
	h->recall = false;
}

/*
 * A transfer begins: on an idle h2d half the next transaction, on d2h the one
 * that the device offered.
 */
void nfcm_core_transfer(struct nfcm_half_core *h, const struct nfcm_split *cut,
			u32 window)
{
	if (h->direction == NFC_H2D)
		h->id++;
	h->phase = NFCM_PHASE_MOVING;
	h->recall = false;
	h->held = false;
	nfcm_ledger_open(&h->ledger, cut, window, h->direction == NFC_D2H);
}

/* ABORT is put for a transfer that is not committed. */
void nfcm_core_aborting(struct nfcm_half_core *h)
{
	h->phase = NFCM_PHASE_MOVING;
	h->held = false;
	h->ledger.aborting = true;
}

/* Is what lies here a transfer, not a message? There must be an offer. */
bool nfcm_core_offers_transfer(const struct nfcm_half_core *h)
{
	return nfc_header_type(le64_to_cpu(h->offer.header)) ==
	       NFC_TYPE_IND_BEGIN;
}

/* Bytes of what lies here, checked when it came. There must be an offer. */
u64 nfcm_core_offer_size(const struct nfcm_half_core *h)
{
	struct nfc_begin begin;

	if (!nfcm_core_offers_transfer(h))
		return nfc_header_length(le64_to_cpu(h->offer.header));
	memcpy(&begin, h->offer.payload, sizeof(begin));
	return le64_to_cpu(begin.size);
}

/* The header of any message: epoch, channel, length, mailbox. */
void nfcm_judge_header(const struct nfcm_layout *l, u32 mailbox,
		       const struct nfc_slot *slot, struct nfcm_judgement *j)
{
	u64 h = le64_to_cpu(slot->header);

	memset(j, 0, sizeof(*j));
	if (nfc_header_epoch(h) != (l->epoch & 0xff))
		j->event = NFCM_EVENT_STALE;
	else if (nfc_header_channel(h) >= l->channels)
		fault(j, "no such channel");
	else if (nfc_header_type(h) != NFC_TYPE_DIRECT &&
		 nfc_header_length(h) != NFC_PAYLOAD_SIZE)
		fault(j, "wrong length");
	else if (nfcm_layout_mailbox(l, (u32)nfc_header_channel(h)) != mailbox)
		fault(j, "not a channel of this mailbox");
}

/*
 * A message for a channel that is not open here: what crossed its close is
 * stale, but its type must be one the device may send.
 */
void nfcm_judge_stranger(const struct nfc_slot *slot, struct nfcm_judgement *j)
{
	switch (nfc_header_type(le64_to_cpu(slot->header))) {
	case NFC_TYPE_DIRECT:
	case NFC_TYPE_IND_BEGIN:
	case NFC_TYPE_ACK:
	case NFC_TYPE_DONE:
	case NFC_TYPE_ERROR:
	case NFC_TYPE_WITHDRAW:
	case NFC_TYPE_WITHDRAWN:
	case NFC_TYPE_ABORTED:
	case NFC_TYPE_CLOSE:
	case NFC_TYPE_READY:
		j->event = NFCM_EVENT_STALE;
		break;
	default:
		fault(j, "not a message of a device");
	}
}

/* The device's next offer. */
static void on_offer(struct nfcm_half_core *h, const struct nfc_slot *slot,
		     struct nfcm_judgement *j)
{
	if (h->phase != NFCM_PHASE_IDLE) {
		fault(j, "a second offer");
		return;
	}
	h->id++;
	if (h->closed) { /* it crossed the close, which answers it */
		j->event = NFCM_EVENT_STALE;
		return;
	}
	h->offer = *slot;
	h->phase = NFCM_PHASE_OFFERED;
	h->held = false;
	h->recall = false;
	j->event = NFCM_EVENT_OFFER;
}

static void on_direct(struct nfcm_half_core *h, const struct nfc_slot *slot,
		      struct nfcm_judgement *j)
{
	s16 ahead = (s16)(sequence(slot) - (u16)(h->id + 1));

	if (nfc_header_length(le64_to_cpu(slot->header)) > NFC_PAYLOAD_SIZE)
		fault(j, "message over 56 bytes");
	else if (ahead < 0)
		j->event = NFCM_EVENT_STALE;
	else if (ahead > 0)
		fault(j, "offer from the future");
	else
		on_offer(h, slot, j);
}

static void on_begin(struct nfcm_half_core *h, const struct nfcm_layout *l,
		     const struct nfc_slot *slot, struct nfcm_judgement *j)
{
	struct nfc_begin begin;
	s64 ahead;

	memcpy(&begin, slot->payload, sizeof(begin));
	ahead = (s64)(le64_to_cpu(begin.transaction) - (h->id + 1));
	if ((u16)le64_to_cpu(begin.transaction) != sequence(slot))
		fault(j, "sequence is not the transaction's");
	else if (reserved(slot, 3))
		fault(j, "reserved bits");
	else if (ahead < 0)
		j->event = NFCM_EVENT_STALE;
	else if (ahead > 0)
		fault(j, "offer from the future");
	else if (le64_to_cpu(begin.size) > l->max_transfer)
		fault(j, "offer over the largest transfer");
	else
		on_offer(h, slot, j);
}

/* How a message of the host ended. */
static void end_message(struct nfcm_half_core *h, enum nfc_type type,
			struct nfcm_judgement *j)
{
	const struct nfcm_record *r = &j->record;

	if (type == NFC_TYPE_ACK && r->state == NFC_STATE_CONSUMED &&
	    r->status == NFC_OK) {
		h->phase = NFCM_PHASE_IDLE;
		j->event = NFCM_EVENT_DELIVERED;
	} else if (type == NFC_TYPE_ERROR && r->state == NFC_STATE_FAILED &&
		   r->status > NFC_OK && r->status < NFC_STATUS_COUNT) {
		h->phase = NFCM_PHASE_IDLE;
		j->event = NFCM_EVENT_REFUSED;
	} else {
		fault(j, "answer to a message makes no sense");
	}
}

static void on_transfer(struct nfcm_half_core *h, enum nfc_type type,
			struct nfcm_judgement *j)
{
	const char *why = NULL;

	switch (nfcm_ledger_record(&h->ledger, type, &j->record, &why)) {
	case NFCM_VERDICT_PROGRESS:
		j->event = NFCM_EVENT_PROGRESS;
		break;
	case NFCM_VERDICT_IGNORE:
		break;
	case NFCM_VERDICT_TIRED:
		j->event = NFCM_EVENT_TIRED;
		break;
	case NFCM_VERDICT_DONE:
		h->phase = NFCM_PHASE_COMPLETE;
		j->event = NFCM_EVENT_DONE;
		break;
	case NFCM_VERDICT_FAILED:
		h->phase = NFCM_PHASE_IDLE;
		j->event = NFCM_EVENT_FAILED;
		break;
	case NFCM_VERDICT_ABORTED:
		h->phase = NFCM_PHASE_IDLE;
		j->event = NFCM_EVENT_ABORTED;
		break;
	default:
		fault(j, why);
	}
}

static void decode(const struct nfc_slot *slot, struct nfcm_record *r)
{
	struct nfc_ack a;

	memcpy(&a, slot->payload, sizeof(a));
	r->transaction = le64_to_cpu(a.transaction);
	r->processed = le64_to_cpu(a.processed);
	r->outstanding = le64_to_cpu(a.outstanding);
	r->lists = le32_to_cpu(a.lists);
	r->state = le16_to_cpu(a.state);
	r->status = le16_to_cpu(a.status);
	r->fault_index = le32_to_cpu(a.fault_index);
	r->direction = le32_to_cpu(a.direction);
}

/* ACK, DONE, ERROR, ABORTED. */
static void on_record(struct nfcm_channel_core *c, const struct nfc_slot *slot,
		      struct nfcm_judgement *j)
{
	enum nfc_type type = nfc_header_type(le64_to_cpu(slot->header));
	struct nfcm_half_core *h;
	s64 ahead;

	decode(slot, &j->record);
	if (j->record.direction > NFC_D2H ||
	    (u16)j->record.transaction != sequence(slot)) {
		fault(j, "record of no transaction");
		return;
	}
	j->direction = j->record.direction;
	h = &c->half[j->direction];
	ahead = (s64)(j->record.transaction - h->id);
	if (ahead > 0)
		fault(j, "transaction from the future");
	else if (ahead < 0)
		j->event = NFCM_EVENT_STALE;
	else if (h->phase == NFCM_PHASE_MOVING)
		on_transfer(h, type, j);
	else if (h->phase == NFCM_PHASE_OFFERED && h->direction == NFC_H2D)
		end_message(h, type, j);
	else if (h->phase == NFCM_PHASE_OFFERED)
		fault(j, "record of an offer");
	else
		j->event = NFCM_EVENT_STALE;
}

/* May the device give back what lies there? */
static bool recalled(const struct nfcm_half_core *h)
{
	if (h->phase == NFCM_PHASE_MOVING && (h->ledger.ready || h->ledger.acked))
		return false; /* the target has it */
	return h->recall && (h->phase == NFCM_PHASE_OFFERED ||
			     h->phase == NFCM_PHASE_MOVING);
}

static void on_withdrawn(struct nfcm_half_core *h, s64 ahead,
			 struct nfcm_judgement *j)
{
	if (ahead > 0) {
		fault(j, "transaction from the future");
	} else if (ahead < 0 || h->phase == NFCM_PHASE_IDLE) {
		j->event = NFCM_EVENT_STALE;
	} else if (!recalled(h)) {
		fault(j, "withdrawn, but nobody asked");
	} else {
		h->phase = NFCM_PHASE_IDLE;
		j->event = NFCM_EVENT_WITHDRAWN;
	}
}

/* The device wants its offer back; whoever looks at it decides. */
static void on_withdraw(struct nfcm_half_core *h, s64 ahead,
			struct nfcm_judgement *j)
{
	if (ahead > 0) {
		fault(j, "transaction from the future");
	} else if (ahead < 0 || h->phase != NFCM_PHASE_OFFERED) {
		j->event = NFCM_EVENT_STALE;
	} else if (h->held) {
		h->recall = true;
	} else {
		h->phase = NFCM_PHASE_ANSWERING;
		j->event = NFCM_EVENT_RECALLED;
	}
}

static void on_ready(s64 ahead, struct nfcm_judgement *j)
{
	if (ahead > 1)
		fault(j, "ready for a later transaction");
	else
		j->event = ahead < 1 ? NFCM_EVENT_STALE : NFCM_EVENT_READY;
}

/* WITHDRAW, WITHDRAWN, READY. */
static void on_note(struct nfcm_channel_core *c, const struct nfc_slot *slot,
		    struct nfcm_judgement *j)
{
	enum nfc_type type = nfc_header_type(le64_to_cpu(slot->header));
	struct nfcm_half_core *h;
	struct nfc_note note;
	s64 ahead;

	memcpy(&note, slot->payload, sizeof(note));
	j->direction = type == NFC_TYPE_WITHDRAW ? NFC_D2H : NFC_H2D;
	h = &c->half[j->direction];
	ahead = (s64)(le64_to_cpu(note.transaction) - h->id);
	if (le32_to_cpu(note.direction) != j->direction ||
	    le32_to_cpu(note.status) >= NFC_STATUS_COUNT)
		fault(j, "note of a wrong direction or status");
	else if (reserved(slot, 2))
		fault(j, "reserved bits");
	else if ((u16)le64_to_cpu(note.transaction) != sequence(slot))
		fault(j, "sequence is not the transaction's");
	else if (type == NFC_TYPE_WITHDRAW)
		on_withdraw(h, ahead, j);
	else if (type == NFC_TYPE_WITHDRAWN)
		on_withdrawn(h, ahead, j);
	else
		on_ready(ahead, j);
}

/* The process closed halves, or the device answers the host's last close. */
static void on_close(struct nfcm_channel_core *c, const struct nfc_slot *slot,
		     struct nfcm_judgement *j)
{
	struct nfc_close o;
	u64 generation;
	u32 both = 1 << NFC_H2D | 1 << NFC_D2H;

	memcpy(&o, slot->payload, sizeof(o));
	generation = le64_to_cpu(o.generation);
	j->halves = le32_to_cpu(o.halves);
	if ((u16)generation != sequence(slot) || !j->halves || j->halves > both ||
	    le32_to_cpu(o.status) >= NFC_STATUS_COUNT || reserved(slot, 2))
		fault(j, "malformed close");
	else if ((s64)(generation - c->generation) > 0)
		fault(j, "close of a later subscription");
	else if (generation != c->generation)
		j->event = NFCM_EVENT_STALE;
	else if (c->last && j->halves == both)
		j->event = NFCM_EVENT_OVER;
	else
		j->event = NFCM_EVENT_CLOSED;
}

/*
 * A message for an open channel, whose header nfcm_judge_header() passed. The
 * slot is the only copy anybody looks at.
 */
void nfcm_judge(struct nfcm_channel_core *c, const struct nfcm_layout *l,
		const struct nfc_slot *slot, struct nfcm_judgement *j)
{
	switch (nfc_header_type(le64_to_cpu(slot->header))) {
	case NFC_TYPE_DIRECT:
		j->direction = NFC_D2H;
		on_direct(&c->half[NFC_D2H], slot, j);
		break;
	case NFC_TYPE_IND_BEGIN:
		j->direction = NFC_D2H;
		on_begin(&c->half[NFC_D2H], l, slot, j);
		break;
	case NFC_TYPE_ACK:
	case NFC_TYPE_DONE:
	case NFC_TYPE_ERROR:
	case NFC_TYPE_ABORTED:
		on_record(c, slot, j);
		break;
	case NFC_TYPE_WITHDRAW:
	case NFC_TYPE_WITHDRAWN:
	case NFC_TYPE_READY:
		on_note(c, slot, j);
		break;
	case NFC_TYPE_CLOSE:
		on_close(c, slot, j);
		break;
	default:
		fault(j, "not a message of a device");
	}
}
