// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Classifies a message from the device. A message that cannot follow from the
 * host's own ones is a fault; one about a transaction that is over is stale.
 * Pure: see nfcm_core.h.
 */
#include "nfcm_core.h"

static void fault(struct nfcm_outcome *out, const char *why)
{
	out->event = NFCM_EVENT_FAULT;
	out->why = why;
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

/* The header of any message: epoch, channel, length, mailbox. */
void nfcm_classify_header(const struct nfcm_layout *l, u32 mailbox,
			  const struct nfc_slot *slot, struct nfcm_outcome *out)
{
	u64 h = le64_to_cpu(slot->header);

	memset(out, 0, sizeof(*out));
	if (nfc_header_epoch(h) != (l->epoch & 0xff))
		out->event = NFCM_EVENT_STALE;
	else if (nfc_header_channel(h) >= l->channels)
		fault(out, "no such channel");
	else if (nfc_header_type(h) != NFC_TYPE_DIRECT &&
		 nfc_header_type(h) != NFC_TYPE_ANSWER &&
		 nfc_header_length(h) != NFC_PAYLOAD_SIZE)
		fault(out, "wrong length");
	else if (nfcm_layout_mailbox(l, (u32)nfc_header_channel(h)) != mailbox)
		fault(out, "not a channel of this mailbox");
}

/*
 * A message for a channel that is not open here: what crossed its close is
 * stale, but its type must be one the device may send.
 */
void nfcm_classify_stranger(const struct nfc_slot *slot,
			    struct nfcm_outcome *out)
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
	case NFC_TYPE_OFFER:
	case NFC_TYPE_ANSWER:
		out->event = NFCM_EVENT_STALE;
		break;
	default:
		fault(out, "not a message of a device");
	}
}

/* The device's next offer. */
static void on_offer(struct nfcm_half_core *h, const struct nfc_slot *slot,
		     struct nfcm_outcome *out)
{
	if (h->state != NFCM_STATE_IDLE && h->state != NFCM_STATE_POSTED) {
		fault(out, "a second offer");
		return;
	}
	h->id++;
	if (h->closed &&
	    h->state ==
		    NFCM_STATE_IDLE) { /* it crossed the close, which answers it */
		out->event = NFCM_EVENT_STALE;
		return;
	}
	h->offer = *slot;
	h->state = NFCM_STATE_OFFERED;
	h->held = false;
	h->recall = false;
	out->event = NFCM_EVENT_OFFER;
}

/* The offer crossed the pages that were posted, which answer it. */
static void on_match(struct nfcm_half_core *h, struct nfcm_outcome *out)
{
	h->id++;
	h->state = NFCM_STATE_GIVEN;
	h->recall = false;
	out->event = NFCM_EVENT_PROGRESS;
}

static void on_direct(struct nfcm_half_core *h, const struct nfc_slot *slot,
		      struct nfcm_outcome *out)
{
	s16 ahead = (s16)(sequence(slot) - (u16)(h->id + 1));

	if (nfc_header_length(le64_to_cpu(slot->header)) > NFC_PAYLOAD_SIZE)
		fault(out, "message over 56 bytes");
	else if (ahead < 0)
		out->event = NFCM_EVENT_STALE;
	else if (ahead > 0)
		fault(out, "offer from the future");
	else
		on_offer(h, slot, out);
}

static void on_begin(struct nfcm_half_core *h, const struct nfcm_layout *l,
		     const struct nfc_slot *slot, struct nfcm_outcome *out)
{
	struct nfc_begin begin;
	s64 ahead;

	memcpy(&begin, slot->payload, sizeof(begin));
	ahead = (s64)(le64_to_cpu(begin.transaction) - (h->id + 1));
	if ((u16)le64_to_cpu(begin.transaction) != sequence(slot))
		fault(out, "sequence is not the transaction's");
	else if (reserved(slot, 3))
		fault(out, "reserved bits");
	else if (ahead < 0)
		out->event = NFCM_EVENT_STALE;
	else if (ahead > 0)
		fault(out, "offer from the future");
	else if (le64_to_cpu(begin.size) > l->max_transfer)
		fault(out, "offer over the largest transfer");
	else if (h->state == NFCM_STATE_POSTED &&
		 le64_to_cpu(begin.size) == h->size)
		on_match(h, out);
	else
		on_offer(h, slot, out);
}

/* The transaction that a record is about: what is posted is for the next one. */
static u64 current_id(const struct nfcm_half_core *h)
{
	return h->id + (h->state == NFCM_STATE_POSTED);
}

/* How a message of the host ended, or an eager transfer. */
static void end_message(struct nfcm_half_core *h, enum nfc_type type,
			struct nfcm_outcome *out)
{
	const struct nfcm_record *r = &out->record;

	h->id = current_id(h);
	if (type == NFC_TYPE_ACK && r->state == NFC_STATE_CONSUMED &&
	    r->status == NFC_OK) {
		h->state = NFCM_STATE_IDLE;
		out->event = NFCM_EVENT_DELIVERED;
	} else if (type == NFC_TYPE_ERROR && r->state == NFC_STATE_FAILED &&
		   r->status > NFC_OK && r->status < NFC_STATUS_COUNT) {
		h->state = NFCM_STATE_IDLE;
		out->event = NFCM_EVENT_REFUSED;
	} else {
		fault(out, "answer to a message makes no sense");
	}
}

/* How a question of the host ended without an answer. */
static void end_call(struct nfcm_half_core *h, enum nfc_type type,
		     struct nfcm_outcome *out)
{
	const struct nfcm_record *r = &out->record;

	if (type == NFC_TYPE_ACK && r->state == NFC_STATE_CONSUMED &&
	    r->status > NFC_OK && r->status < NFC_STATUS_COUNT) {
		h->state = NFCM_STATE_IDLE;
		out->event = NFCM_EVENT_UNANSWERED;
	} else {
		end_message(h, type, out);
	}
}

/* An eager transfer of so many bytes: all of them moved, or it failed. */
static void end_eager(struct nfcm_half_core *h, enum nfc_type type,
		      struct nfcm_outcome *out)
{
	const struct nfcm_record *r = &out->record;

	if (r->processed > h->size || r->fault_index >= NFC_EAGER_ENTRIES ||
	    (type == NFC_TYPE_ACK && r->processed != h->size))
		fault(out, "answer to an eager transfer makes no sense");
	else
		end_message(h, type, out);
}

static void on_transfer(struct nfcm_half_core *h, enum nfc_type type,
			struct nfcm_outcome *out)
{
	const char *why = NULL;

	switch (nfcm_ledger_record(&h->ledger, type, &out->record, &why)) {
	case NFCM_TAKE_PROGRESS:
		out->event = NFCM_EVENT_PROGRESS;
		break;
	case NFCM_TAKE_CROSSED:
		break;
	case NFCM_TAKE_RETRIES_EXHAUSTED:
		out->event = NFCM_EVENT_RETRIES_EXHAUSTED;
		break;
	case NFCM_TAKE_CONSUMED:
		if (h->direction == NFC_D2H) {
			fault(out, "consumed by the host itself");
			break;
		}
		out->event = NFCM_EVENT_DELIVERED;
		h->state = NFCM_STATE_IDLE;
		break;
	case NFCM_TAKE_DONE:
		h->state = NFCM_STATE_COMPLETE;
		out->event = NFCM_EVENT_DONE;
		break;
	case NFCM_TAKE_FAILED:
		h->state = NFCM_STATE_IDLE;
		out->event = NFCM_EVENT_FAILED;
		break;
	case NFCM_TAKE_ABORTED:
		h->state = NFCM_STATE_IDLE;
		out->event = NFCM_EVENT_ABORTED;
		break;
	default:
		fault(out, why);
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
	r->began = le64_to_cpu(a.begin_ns);
	r->now = le64_to_cpu(a.now_ns);
}

/* ACK, DONE, ERROR, ABORTED. */
static void on_record(struct nfcm_channel_core *c, const struct nfc_slot *slot,
		      struct nfcm_outcome *out)
{
	enum nfc_type type = nfc_header_type(le64_to_cpu(slot->header));
	struct nfcm_half_core *h;
	s64 ahead;

	decode(slot, &out->record);
	if (out->record.direction > NFC_D2H ||
	    (u16)out->record.transaction != sequence(slot)) {
		fault(out, "record of no transaction");
		return;
	}
	out->direction = out->record.direction;
	h = &c->half[out->direction];
	ahead = (s64)(out->record.transaction - current_id(h));
	if (ahead > 0)
		fault(out, "transaction from the future");
	else if (ahead < 0)
		out->event = NFCM_EVENT_STALE;
	else if (h->state == NFCM_STATE_MOVING)
		on_transfer(h, type, out);
	else if (h->state == NFCM_STATE_GIVEN || h->state == NFCM_STATE_POSTED)
		end_eager(h, type, out);
	else if (h->state == NFCM_STATE_CALLED)
		end_call(h, type, out);
	else if (h->state == NFCM_STATE_OFFERED && h->direction == NFC_H2D)
		end_message(h, type, out);
	else if (h->state == NFCM_STATE_OFFERED)
		fault(out, "record of an offer");
	else
		out->event = NFCM_EVENT_STALE;
}

/* May the device give back what is there? */
static bool recalled(const struct nfcm_half_core *h)
{
	if (h->state == NFCM_STATE_MOVING &&
	    (h->ledger.ready || h->ledger.acked || h->ledger.processed))
		return false; /* the target has it */
	if (h->direction == NFC_D2H)
		return h->recall && h->state == NFCM_STATE_POSTED;
	return h->recall &&
	       (h->state == NFCM_STATE_OFFERED || h->state == NFCM_STATE_MOVING ||
		h->state == NFCM_STATE_GIVEN || h->state == NFCM_STATE_CALLED);
}

static void on_withdrawn(struct nfcm_half_core *h, s64 ahead,
			 struct nfcm_outcome *out)
{
	if (ahead > 0) {
		fault(out, "transaction from the future");
	} else if (ahead < 0 || (h->direction == NFC_H2D &&
				 (h->state == NFCM_STATE_IDLE ||
				  h->state == NFCM_STATE_COMPLETE))) {
		out->event = NFCM_EVENT_STALE;
	} else if (!recalled(h)) {
		fault(out, "withdrawn, but nobody asked");
	} else {
		h->state = NFCM_STATE_IDLE;
		out->event = NFCM_EVENT_WITHDRAWN;
	}
}

/* The device recalls its offer; a call that holds it decides. */
static void on_withdraw(struct nfcm_half_core *h, s64 ahead,
			struct nfcm_outcome *out)
{
	if (ahead > 0) {
		fault(out, "transaction from the future");
	} else if (ahead == 0 && h->state == NFCM_STATE_POSTED) {
		fault(out, "withdraw of nothing");
	} else if (ahead < 0 || h->state != NFCM_STATE_OFFERED) {
		out->event = NFCM_EVENT_STALE;
	} else if (h->held) {
		h->recall = true;
	} else {
		h->state = NFCM_STATE_ANSWERING;
		out->event = NFCM_EVENT_RECALLED;
	}
}

static void on_ready(s64 ahead, struct nfcm_outcome *out)
{
	if (ahead > 1)
		fault(out, "ready for a later transaction");
	else
		out->event = ahead < 1 ? NFCM_EVENT_STALE : NFCM_EVENT_READY;
}

/* Another host asks whether this one waits for its next offer. */
static void on_ask(const struct nfcm_half_core *h, s64 ahead,
		   struct nfcm_outcome *out)
{
	if (ahead > 0)
		fault(out, "question from the future");
	else if (ahead < 0 || (h->state == NFCM_STATE_IDLE && h->closed))
		out->event = NFCM_EVENT_STALE;
	else if (h->state == NFCM_STATE_IDLE || h->state == NFCM_STATE_POSTED)
		out->event = NFCM_EVENT_ASKED;
	else
		fault(out, "question while something is offered");
}

/* WITHDRAW, WITHDRAWN, READY, OFFER. */
static void on_note(struct nfcm_channel_core *c, const struct nfc_slot *slot,
		    struct nfcm_outcome *out)
{
	enum nfc_type type = nfc_header_type(le64_to_cpu(slot->header));
	struct nfcm_half_core *h;
	struct nfc_note note;
	s64 ahead;

	memcpy(&note, slot->payload, sizeof(note));
	out->direction = type == NFC_TYPE_WITHDRAW || type == NFC_TYPE_OFFER ?
				 NFC_D2H :
				 NFC_H2D;
	if (type == NFC_TYPE_WITHDRAWN && le32_to_cpu(note.direction) == NFC_D2H)
		out->direction = NFC_D2H;
	h = &c->half[out->direction];
	ahead = (s64)(le64_to_cpu(note.transaction) - current_id(h));
	if (le32_to_cpu(note.direction) != out->direction ||
	    le32_to_cpu(note.status) >= NFC_STATUS_COUNT)
		fault(out, "note of a wrong direction or status");
	else if (reserved(slot, 2))
		fault(out, "reserved bits");
	else if ((u16)le64_to_cpu(note.transaction) != sequence(slot))
		fault(out, "sequence is not the transaction's");
	else if (type == NFC_TYPE_WITHDRAW)
		on_withdraw(h, ahead, out);
	else if (type == NFC_TYPE_WITHDRAWN)
		on_withdrawn(h, ahead, out);
	else if (type == NFC_TYPE_OFFER)
		on_ask(h, (s64)(le64_to_cpu(note.transaction) - h->id - 1), out);
	else
		on_ready(ahead, out);
}

/* The process closed halves, or the device answers the host's last close. */
static void on_close(struct nfcm_channel_core *c, const struct nfc_slot *slot,
		     struct nfcm_outcome *out)
{
	struct nfc_close o;
	u64 generation;
	u32 both = 1 << NFC_H2D | 1 << NFC_D2H;

	memcpy(&o, slot->payload, sizeof(o));
	generation = le64_to_cpu(o.generation);
	out->halves = le32_to_cpu(o.halves);
	if ((u16)generation != sequence(slot) || !out->halves ||
	    out->halves > both || le32_to_cpu(o.status) >= NFC_STATUS_COUNT ||
	    reserved(slot, 2))
		fault(out, "malformed close");
	else if ((s64)(generation - c->generation) > 0)
		fault(out, "close of a later subscription");
	else if (generation != c->generation)
		out->event = NFCM_EVENT_STALE;
	else if (c->last && out->halves == both)
		out->event = NFCM_EVENT_OVER;
	else
		out->event = NFCM_EVENT_CLOSED;
}

/* The slot's payload has the answer to a question. */
static void on_answer(struct nfcm_half_core *h, const struct nfc_slot *slot,
		      struct nfcm_outcome *out)
{
	s16 ahead = (s16)(sequence(slot) - (u16)h->id);

	if (nfc_header_length(le64_to_cpu(slot->header)) > NFC_PAYLOAD_SIZE) {
		fault(out, "answer over 56 bytes");
	} else if (ahead > 0) {
		fault(out, "answer from the future");
	} else if (ahead < 0 || h->state == NFCM_STATE_IDLE ||
		   h->state == NFCM_STATE_COMPLETE) {
		out->event = NFCM_EVENT_STALE;
	} else if (h->state != NFCM_STATE_CALLED) {
		fault(out, "answer to no question");
	} else {
		h->state = NFCM_STATE_IDLE;
		out->event = NFCM_EVENT_ANSWERED;
	}
}

/*
 * A message for an open channel, whose header nfcm_classify_header() passed. The
 * slot is a private copy.
 */
void nfcm_classify(struct nfcm_channel_core *c, const struct nfcm_layout *l,
		   const struct nfc_slot *slot, struct nfcm_outcome *out)
{
	switch (nfc_header_type(le64_to_cpu(slot->header))) {
	case NFC_TYPE_DIRECT:
		out->direction = NFC_D2H;
		on_direct(&c->half[NFC_D2H], slot, out);
		break;
	case NFC_TYPE_ANSWER:
		out->direction = NFC_H2D;
		on_answer(&c->half[NFC_H2D], slot, out);
		break;
	case NFC_TYPE_IND_BEGIN:
		out->direction = NFC_D2H;
		on_begin(&c->half[NFC_D2H], l, slot, out);
		break;
	case NFC_TYPE_ACK:
	case NFC_TYPE_DONE:
	case NFC_TYPE_ERROR:
	case NFC_TYPE_ABORTED:
		on_record(c, slot, out);
		break;
	case NFC_TYPE_WITHDRAW:
	case NFC_TYPE_WITHDRAWN:
	case NFC_TYPE_READY:
	case NFC_TYPE_OFFER:
		on_note(c, slot, out);
		break;
	case NFC_TYPE_CLOSE:
		on_close(c, slot, out);
		break;
	default:
		fault(out, "not a message of a device");
	}
}
