// SPDX-License-Identifier: GPL-2.0-only
/* The next action of a half: an offer to the device, or receiving its offer. */
#include "nfcm_kmod.h"

/* Why an operation cannot begin on this half; 0 if it can. */
static u32 barred(struct nfcm_half *half, u8 shut)
{
	struct nfcm_epoch *epoch = half->ch->epoch;

	lockdep_assert_held(&half->ch->mailbox->lock);
	if (nfcm_half_mailbox(half)->dead)
		return atomic_read(&epoch->down) ?: NFC_ERESET;
	return half->shut & shut ? NFC_ECLOSED : 0;
}

/* It was not there now, and nothing happened. */
static void not_now(struct nfcm_op *op)
{
	lockdep_assert_held(&op->ch->mailbox->lock);
	op->c.flags |= NFCOMMS_NOT_NOW;
	nfcm_op_over(op, NFC_EWITHDRAWN);
}

/* ---- to the device ---- */

/* SEND, ASK and SEND_IND: wait in the half's queue. */
void nfcm_send_start(struct nfcm_half *half, struct nfcm_op *op)
{
	u32 status = barred(half, NFCM_SHUT_HOST | NFCM_SHUT_PEER);
	bool reserved_for = op->flags &
			    NFCOMMS_HOLD; /* it uses what an ARM reserved */
	struct nfcm_channel *ch = half->ch;

	lockdep_assert_held(&half->ch->mailbox->lock);
	if (status) {
		nfcm_op_over(op, status);
		return;
	}
	if (op->flags & NFCOMMS_NOWAIT &&
	    (half->op || half->pending || half->reserved != reserved_for ||
	     (!reserved_for && !list_empty(&half->queue)))) {
		not_now(op);
		return;
	}
	nfcm_half_queue(half, op, reserved_for);
	if (reserved_for) {
		half->reserved = false;
		op->flags &= ~NFCOMMS_HOLD; /* that is all it meant */
	}
	nfcm_mailbox_park(ch, ch->park | NFC_PARK_H2D);
	nfcm_half_push(half);
}

/* Offer a message; false if it must wait for room. */
static bool offer_message(struct nfcm_half *half)
{
	struct nfcm_mailbox *mailbox = nfcm_half_mailbox(half);
	struct nfcm_half_core *core = half->core;
	struct nfc_slot message, back;
	struct nfcm_op *op = half->op;
	bool nowait = op->flags & NFCOMMS_NOWAIT;
	struct nfc_note note = {
		.transaction = cpu_to_le64(core->id + 1),
		.direction = cpu_to_le32(NFC_H2D),
	};

	lockdep_assert_held(&half->ch->mailbox->lock);
	nfcm_half_header(half, &message, NFC_TYPE_DIRECT, (u32)op->length,
			 core->id + 1);
	memcpy(message.payload, op->c.payload, sizeof(message.payload));
	if (!nowait) {
		if (!nfcm_mailbox_put(mailbox, &message, NFCM_ROOM_NORMAL))
			return false;
		nfcm_half_act(half, NFCM_PUT_MESSAGE);
		nfcm_op_stamp(op, &op->stamps.put_ns);
		return true;
	}
	/* The device answers exactly one of the two. */
	nfcm_half_header(half, &back, NFC_TYPE_WITHDRAW, NFC_PAYLOAD_SIZE,
			 core->id + 1);
	memcpy(back.payload, &note, sizeof(note));
	if (!nfcm_mailbox_put_pair(mailbox, &message, &back)) {
		half->op = NULL;
		not_now(op);
		return true;
	}
	nfcm_half_act(half, NFCM_PUT_MESSAGE);
	nfcm_half_act(half, NFCM_PUT_WITHDRAW);
	nfcm_op_stamp(op, &op->stamps.put_ns);
	nfcm_escalation_start(&half->escalation, half->ch);
	return true;
}

/* Does the device take it as a question? Else it is a message. */
static bool is_question(const struct nfcm_half *half)
{
	return half->op->opcode == NFCOMMS_OP_ASK &&
	       half->ch->epoch->layout.capabilities & NFC_CAP_CALLS;
}

/* Put a question; false if it must wait for room. */
static bool offer_question(struct nfcm_half *half)
{
	struct nfcm_op *op = half->op;
	bool nowait = op->flags & NFCOMMS_NOWAIT;
	struct nfc_slot slot;

	lockdep_assert_held(&half->ch->mailbox->lock);
	nfcm_half_header(half, &slot, NFC_TYPE_CALL,
			 (u32)op->length | (nowait ? NFC_CALL_NOW : 0),
			 half->core->id + 1);
	memcpy(slot.payload, op->c.payload, sizeof(slot.payload));
	if (nfcm_mailbox_put(nfcm_half_mailbox(half), &slot, NFCM_ROOM_NORMAL)) {
		nfcm_half_act(half, NFCM_PUT_CALL);
		return true;
	}
	if (!nowait)
		return false;
	half->op = NULL;
	not_now(op);
	return true;
}

/* Put OFFER: the device answers READY when the target waits. */
static void request_ready(struct nfcm_half *half)
{
	u64 next = half->core->id + 1;
	struct nfc_note note = {
		.transaction = cpu_to_le64(next),
		.direction = cpu_to_le32(NFC_H2D),
	};
	struct nfc_slot slot;

	lockdep_assert_held(&half->ch->mailbox->lock);
	nfcm_half_header(half, &slot, NFC_TYPE_OFFER, NFC_PAYLOAD_SIZE, next);
	memcpy(slot.payload, &note, sizeof(note));
	if (nfcm_mailbox_put(nfcm_half_mailbox(half), &slot, NFCM_ROOM_NORMAL))
		half->ready_requested = true;
	else
		nfcm_half_wait_for_room(half, false);
}

/* The half's next offer. False if it must wait for room or pages. */
static bool offer_next(struct nfcm_half *half)
{
	bool put;

	lockdep_assert_held(&half->ch->mailbox->lock);
	if (half->op->opcode == NFCOMMS_OP_SEND_IND) {
		put = nfcm_transfer_begin(half);
		if (put && half->op->flags & NFCOMMS_NOWAIT) /* ask it back */
			nfcm_half_set_pending(half, NFC_TYPE_WITHDRAW, 0, 0);
		return put;
	}
	put = is_question(half) ? offer_question(half) : offer_message(half);
	if (!put)
		nfcm_half_wait_for_room(half, false);
	return put;
}

/* Go on with the h2d half. */
void nfcm_send_next(struct nfcm_half *half)
{
	struct nfcm_half_core *core = half->core;
	struct nfcm_op *next;

	lockdep_assert_held(&half->ch->mailbox->lock);
	while (core->state == NFCM_STATE_IDLE && !half->reserved) {
		if (!half->op) {
			next = list_first_entry_or_null(&half->queue,
							struct nfcm_op, node);
			if (!next)
				break;
			nfcm_half_unqueue(half, next);
			nfcm_half_take(half, next);
		}
		if (half->op->opcode == NFCOMMS_OP_ARM) {
			if (!half->ready_requested)
				request_ready(half);
			return;
		}
		half->ready_requested = false; /* an offer makes the device forget */
		if (!offer_next(half))
			return;
	}
	if (core->state == NFCM_STATE_MOVING)
		nfcm_transfer_feed(half);
	else if (core->state == NFCM_STATE_IDLE && !half->ready_requested &&
		 !list_empty(&half->armed))
		request_ready(half);
}

/* The target waits: reserve the next transaction for the ARM. */
void nfcm_send_reserve(struct nfcm_half *half)
{
	lockdep_assert_held(&half->ch->mailbox->lock);
	half->reserved = true;
	half->reserved_for = half->op->c.id;
	half->op->c.flags |= NFCOMMS_HELD;
	nfcm_half_end(half, NFC_OK);
}

/*
 * REFUSE of the h2d half: what an ARM reserved is not needed any more. It may
 * have been used.
 */
void nfcm_send_release(struct nfcm_half *half, struct nfcm_op *op)
{
	lockdep_assert_held(&half->ch->mailbox->lock);
	if (half->reserved && half->reserved_for == op->arm)
		half->reserved = false;
	nfcm_op_over(op, NFC_OK);
	nfcm_half_push(half);
}

/* ---- from the device ---- */

/* Leave the decision on what is held to ACCEPT or REFUSE. */
static void leave_held(struct nfcm_half *half)
{
	lockdep_assert_held(&half->ch->mailbox->lock);
	half->op->c.flags |= NFCOMMS_HELD;
	nfcm_half_end(half, NFC_OK);
}

/* RECEIVE finds an offer; what is not for it stays. */
static void take_message(struct nfcm_half *half)
{
	struct nfcm_half_core *core = half->core;
	u64 length = nfcm_core_offer_size(core);
	struct nfcm_op *op = half->op;

	lockdep_assert_held(&half->ch->mailbox->lock);
	if (nfcm_core_offers_transfer(core)) {
		nfcm_half_end(half, NFC_EKIND);
		return;
	}
	if (length > op->length) {
		op->c.peer_size = length;
		nfcm_half_end(half, NFC_ETOOLARGE);
		return;
	}
	memcpy(op->c.payload, core->offer.payload, length);
	op->c.length = length;
	nfcm_half_act(half, NFCM_HOLD);
	if (op->flags & NFCOMMS_HOLD)
		leave_held(half);
	else
		nfcm_half_set_pending(half, NFC_TYPE_ACK, NFC_OK, length);
}

/* RECEIVE_IND finds an offer; what is not for it stays. */
static void take_transfer(struct nfcm_half *half)
{
	struct nfcm_half_core *core = half->core;
	u64 size = nfcm_core_offer_size(core);
	struct nfcm_op *op = half->op;

	lockdep_assert_held(&half->ch->mailbox->lock);
	if (!nfcm_core_offers_transfer(core)) {
		nfcm_half_end(half, NFC_EKIND);
		return;
	}
	if (size != op->length) {
		op->c.peer_size = size;
		nfcm_half_end(half, NFC_ESIZE);
		return;
	}
	nfcm_half_act(half, NFCM_HOLD);
	if (size)
		nfcm_pins_schedule(op);
	else if (op->flags & NFCOMMS_HOLD)
		leave_held(half);
	else
		nfcm_half_set_pending(half, NFC_TYPE_FIN, 0, 0);
}

static void take(struct nfcm_half *half)
{
	struct nfcm_half_core *core = half->core;
	struct nfcm_op *op = half->op;

	switch (op->opcode) {
	case NFCOMMS_OP_RECEIVE:
		take_message(half);
		break;
	case NFCOMMS_OP_RECEIVE_IND:
		take_transfer(half);
		break;
	default: /* NEXT */
		op->c.length = nfcm_core_offer_size(core);
		if (nfcm_core_offers_transfer(core))
			op->c.flags |= NFCOMMS_INDIRECT;
		nfcm_half_end(half, NFC_OK);
	}
}

/* Go on with the d2h half. */
void nfcm_receive_next(struct nfcm_half *half)
{
	struct nfcm_half_core *core = half->core;
	struct nfcm_op *op = half->op;

	lockdep_assert_held(&half->ch->mailbox->lock);
	if (!op)
		return;
	if (core->state == NFCM_STATE_IDLE) {
		nfcm_eager_post(half);
	} else if (core->state == NFCM_STATE_OFFERED && !core->held) {
		take(half);
		if (half->pending || (half->op == op && op->pins.lists))
			nfcm_half_push(half);
	} else if (core->state == NFCM_STATE_OFFERED && op->pins.lists &&
		   !(op->flags & NFCOMMS_HOLD) && nfcm_eager_fits(half)) {
		nfcm_eager_put(half, core->id, 0);
	} else if (core->state == NFCM_STATE_OFFERED && op->pins.lists) {
		WARN_ON_ONCE(!nfcm_core_transfer(core, op->length,
						 half->ch->epoch->layout.window));
		nfcm_transfer_feed(half);
	} else if (core->state == NFCM_STATE_MOVING) {
		nfcm_transfer_feed(half);
	}
}

/* Leave a held offer where it is, unless the device recalled it. */
void nfcm_receive_release(struct nfcm_half *half)
{
	lockdep_assert_held(&half->ch->mailbox->lock);
	nfcm_half_act(half, NFCM_RELEASE);
	if (half->core->state == NFCM_STATE_ANSWERING)
		nfcm_half_set_pending(half, NFC_TYPE_WITHDRAWN, 0, 0);
	else
		nfcm_half_fire(half, NFC_OK);
}

/* ACCEPT what is held. */
static void accept_held(struct nfcm_half *half, struct nfcm_op *op)
{
	struct nfcm_half_core *core = half->core;

	lockdep_assert_held(&half->ch->mailbox->lock);
	nfcm_half_take(half, op);
	if (core->state == NFCM_STATE_OFFERED && !nfcm_core_offers_transfer(core))
		nfcm_half_set_pending(half, NFC_TYPE_ACK, NFC_OK,
				      nfcm_core_offer_size(core));
	else
		nfcm_half_set_pending(half, NFC_TYPE_FIN, 0, 0);
	nfcm_half_push(half);
}

/*
 * Refuse what is held: a message stays offered, a transfer is aborted. op is
 * NULL when the half is closed.
 */
void nfcm_receive_refuse(struct nfcm_half *half, struct nfcm_op *op)
{
	struct nfcm_half_core *core = half->core;

	lockdep_assert_held(&half->ch->mailbox->lock);
	if (core->state == NFCM_STATE_OFFERED &&
	    !nfcm_core_offers_transfer(core)) {
		nfcm_receive_release(half);
		if (op)
			nfcm_op_over(op, NFC_OK);
		nfcm_half_push(half);
		return;
	}
	nfcm_half_take(half, op);
	if (core->state == NFCM_STATE_OFFERED) /* an empty one has no lists yet */
		nfcm_half_set_pending(half, NFC_TYPE_ERROR, NFC_EABORTED, 0);
	else
		nfcm_half_set_pending(half, NFC_TYPE_ABORT, 0, 0);
	nfcm_half_push(half);
}

/* Does a call hold what is here? One that waits for pages is still at work. */
static bool held(const struct nfcm_half *half)
{
	return half->core->held && !half->op;
}

/* RECEIVE, RECEIVE_IND, NEXT, ACCEPT, REFUSE. */
void nfcm_receive_start(struct nfcm_half *half, struct nfcm_op *op)
{
	struct nfcm_half_core *core = half->core;
	struct nfcm_channel *ch = half->ch;
	u32 status = barred(half, NFCM_SHUT_HOST);

	lockdep_assert_held(&half->ch->mailbox->lock);
	if (!status && op->opcode == NFCOMMS_OP_ACCEPT && held(half)) {
		accept_held(half, op);
		return;
	}
	if (!status && op->opcode == NFCOMMS_OP_REFUSE && held(half)) {
		nfcm_receive_refuse(half, op);
		return;
	}
	if (!status && (op->opcode == NFCOMMS_OP_ACCEPT ||
			op->opcode == NFCOMMS_OP_REFUSE))
		status = NFC_EINVAL;
	if (!status && (half->op || core->held))
		status = NFC_EBUSY;
	if (!status && core->state != NFCM_STATE_OFFERED &&
	    half->shut & NFCM_SHUT_PEER)
		status = NFC_ECLOSED;
	if (status) {
		nfcm_op_over(op, status);
		return;
	}
	if (op->flags & NFCOMMS_NOWAIT && core->state != NFCM_STATE_OFFERED) {
		not_now(op);
		return;
	}
	nfcm_half_take(half, op);
	nfcm_mailbox_park(ch, ch->park | NFC_PARK_D2H);
	nfcm_half_push(half);
}
