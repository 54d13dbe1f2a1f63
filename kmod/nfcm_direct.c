// SPDX-License-Identifier: GPL-2.0-only
/* What a half does next: offering to the device, taking what it offers. */
#include "nfcm_kmod.h"

/* Why an operation cannot begin on this half; 0 if it can. Must hold box. */
static u32 barred(struct nfcm_half *half, u8 shut)
{
	struct nfcm_life *life = half->ch->life;

	if (nfcm_half_box(half)->dead)
		return atomic_read(&life->down) ?: NFC_ERESET;
	return half->shut & shut ? NFC_ECLOSED : 0;
}

/* It was not there now, and nothing happened. Must hold box. */
static void not_now(struct nfcm_op *op)
{
	op->c.flags |= NFCOMMS_NOT_NOW;
	nfcm_op_over(op, NFC_EWITHDRAWN);
}

/* ---- to the device ---- */

/* SEND and SEND_IND: wait for the half's turn. Must hold box. */
void nfcm_send_start(struct nfcm_half *half, struct nfcm_op *op)
{
	u32 status = barred(half, NFCM_SHUT_HOST | NFCM_SHUT_PEER);
	bool kept = op->flags &
		    NFCOMMS_HOLD; /* it uses the turn that an ARM got */
	struct nfcm_channel *ch = half->ch;

	if (status) {
		nfcm_op_over(op, status);
		return;
	}
	if (op->flags & NFCOMMS_NOWAIT &&
	    (half->op || half->due || half->keeps != kept ||
	     (!kept && !list_empty(&half->queue)))) {
		not_now(op);
		return;
	}
	op->place = NFCM_PLACE_QUEUE;
	if (kept) {
		half->keeps = false;
		op->flags &= ~NFCOMMS_HOLD; /* that is all it meant */
		list_add(&op->node, &half->queue);
	} else {
		list_add_tail(&op->node, &half->queue);
	}
	nfcm_box_park(ch, ch->park | NFC_PARK_H2D);
	nfcm_half_push(half);
}

/* Offer a message; false if it must wait for room. Must hold box. */
static bool offer_message(struct nfcm_half *half)
{
	struct nfcm_box *box = nfcm_half_box(half);
	struct nfcm_half_core *core = half->core;
	struct nfc_slot message, back;
	struct nfcm_op *op = half->op;
	bool nowait = op->flags & NFCOMMS_NOWAIT;
	struct nfc_note note = {
		.transaction = cpu_to_le64(core->id + 1),
		.direction = cpu_to_le32(NFC_H2D),
	};

	nfcm_half_header(half, &message, NFC_TYPE_DIRECT, (u32)op->length,
			 core->id + 1);
	memcpy(message.payload, op->c.payload, sizeof(message.payload));
	if (!nowait) {
		if (!nfcm_box_put(box, &message, NFCM_ROOM_NORMAL))
			return false;
		nfcm_core_message(core);
		return true;
	}
	/* The device answers exactly one of the two. */
	nfcm_half_header(half, &back, NFC_TYPE_WITHDRAW, NFC_PAYLOAD_SIZE,
			 core->id + 1);
	memcpy(back.payload, &note, sizeof(note));
	if (!nfcm_box_put_pair(box, &message, &back)) {
		half->op = NULL;
		not_now(op);
		return true;
	}
	nfcm_core_message(core);
	core->recall = true;
	nfcm_ladder_start(&half->ladder, half->ch);
	return true;
}

/* Ask to be told when the target waits. Must hold box. */
static void ask(struct nfcm_half *half)
{
	u64 next = half->core->id + 1;
	struct nfc_note note = {
		.transaction = cpu_to_le64(next),
		.direction = cpu_to_le32(NFC_H2D),
	};
	struct nfc_slot slot;

	nfcm_half_header(half, &slot, NFC_TYPE_OFFER, NFC_PAYLOAD_SIZE, next);
	memcpy(slot.payload, &note, sizeof(note));
	if (nfcm_box_put(nfcm_half_box(half), &slot, NFCM_ROOM_NORMAL))
		half->asked = true;
	else
		nfcm_half_starve(half, false);
}

/* The half's next offer. False if it must wait for room or pages. Must hold box. */
static bool offer_next(struct nfcm_half *half)
{
	bool put;

	if (half->op->opcode == NFCOMMS_OP_SEND_IND)
		return nfcm_transfer_begin(half);
	put = offer_message(half);
	if (!put)
		nfcm_half_starve(half, false);
	return put;
}

/* Go on with the h2d half. Must hold box. */
void nfcm_send_next(struct nfcm_half *half)
{
	struct nfcm_half_core *core = half->core;

	while (core->phase == NFCM_PHASE_IDLE && !half->keeps) {
		if (!half->op) {
			half->op = list_first_entry_or_null(&half->queue,
							    struct nfcm_op,
							    node);
			if (!half->op)
				break;
			list_del_init(&half->op->node);
			half->op->place = NFCM_PLACE_HALF;
		}
		if (half->op->opcode == NFCOMMS_OP_ARM) {
			if (!half->asked)
				ask(half);
			return;
		}
		half->asked = false; /* an offer makes the device forget */
		if (!offer_next(half))
			return;
	}
	if (core->phase == NFCM_PHASE_MOVING)
		nfcm_transfer_feed(half);
	else if (core->phase == NFCM_PHASE_IDLE && !half->asked &&
		 !list_empty(&half->armed))
		ask(half);
}

/* The target waits: keep the turn for who holds the ARM. Must hold box. */
void nfcm_send_keep(struct nfcm_half *half)
{
	half->keeps = true;
	half->kept = half->op->c.user_data;
	half->op->c.flags |= NFCOMMS_HELD;
	nfcm_half_end(half, NFC_OK);
}

/*
 * REFUSE of the h2d half: nobody needs the turn any more that an ARM got. It
 * may have been used. Must hold box.
 */
void nfcm_send_release(struct nfcm_half *half, struct nfcm_op *op)
{
	if (half->keeps && half->kept == op->length)
		half->keeps = false;
	nfcm_op_over(op, NFC_OK);
	nfcm_half_push(half);
}

/* ---- from the device ---- */

/* Answer the offer; it is over when the answer is put. Must hold box. */
static void answer(struct nfcm_half *half, enum nfc_type type, u32 status,
		   u64 size)
{
	half->core->phase = NFCM_PHASE_ANSWERING;
	half->core->held = false;
	half->core->recall = false;
	nfcm_half_owe(half, type, status, size);
}

/* Commit the transfer. Must hold box. */
static void commit(struct nfcm_half *half)
{
	half->core->phase = NFCM_PHASE_COMPLETE;
	half->core->held = false;
	half->core->recall = false;
	nfcm_half_owe(half, NFC_TYPE_FIN, 0, 0);
}

/* Leave the decision to ACCEPT or REFUSE. Must hold box. */
static void hold(struct nfcm_half *half)
{
	half->core->held = true;
	half->op->c.flags |= NFCOMMS_HELD;
	nfcm_half_end(half, NFC_OK);
}

/* RECEIVE finds an offer; what is not for it stays. Must hold box. */
static void take_message(struct nfcm_half *half)
{
	struct nfcm_half_core *core = half->core;
	u64 length = nfcm_core_offer_size(core);
	struct nfcm_op *op = half->op;

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
	if (op->flags & NFCOMMS_HOLD)
		hold(half);
	else
		answer(half, NFC_TYPE_ACK, NFC_OK, length);
}

/* RECEIVE_IND finds an offer; what is not for it stays. Must hold box. */
static void take_transfer(struct nfcm_half *half)
{
	struct nfcm_half_core *core = half->core;
	u64 size = nfcm_core_offer_size(core);
	struct nfcm_op *op = half->op;

	if (!nfcm_core_offers_transfer(core)) {
		nfcm_half_end(half, NFC_EKIND);
		return;
	}
	if (size != op->length) {
		op->c.peer_size = size;
		nfcm_half_end(half, NFC_ESIZE);
		return;
	}
	if (size) {
		core->held = true;
		nfcm_pins_want(op);
	} else if (op->flags & NFCOMMS_HOLD) {
		hold(half);
	} else {
		commit(half);
	}
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

/* Go on with the d2h half. Must hold box. */
void nfcm_receive_next(struct nfcm_half *half)
{
	struct nfcm_half_core *core = half->core;
	struct nfcm_op *op = half->op;

	if (!op)
		return;
	if (core->phase == NFCM_PHASE_OFFERED && !core->held) {
		take(half);
		if (half->due)
			nfcm_half_push(half);
	} else if (core->phase == NFCM_PHASE_OFFERED && op->pins.lists) {
		nfcm_core_transfer(core, &op->pins.cut,
				   half->ch->life->layout.window);
		nfcm_transfer_feed(half);
	} else if (core->phase == NFCM_PHASE_MOVING) {
		nfcm_transfer_feed(half);
	}
}

/* Leave a held offer where it is, unless the device wants it back. Must hold box. */
void nfcm_receive_release(struct nfcm_half *half)
{
	struct nfcm_half_core *core = half->core;

	core->held = false;
	if (core->recall)
		answer(half, NFC_TYPE_WITHDRAWN, 0, 0);
	else
		nfcm_half_fire(half, NFC_OK);
}

/* ACCEPT what is held. Must hold box. */
static void accept_held(struct nfcm_half *half, struct nfcm_op *op)
{
	struct nfcm_half_core *core = half->core;

	half->op = op;
	op->place = NFCM_PLACE_HALF;
	if (core->phase == NFCM_PHASE_OFFERED && !nfcm_core_offers_transfer(core))
		answer(half, NFC_TYPE_ACK, NFC_OK, nfcm_core_offer_size(core));
	else
		commit(half);
	nfcm_half_push(half);
}

/*
 * Refuse what is held: a message stays offered, a transfer is aborted. op is
 * NULL when the half is closed. Must hold box.
 */
void nfcm_receive_refuse(struct nfcm_half *half, struct nfcm_op *op)
{
	struct nfcm_half_core *core = half->core;

	if (core->phase == NFCM_PHASE_OFFERED &&
	    !nfcm_core_offers_transfer(core)) {
		nfcm_receive_release(half);
		if (op)
			nfcm_op_over(op, NFC_OK);
		nfcm_half_push(half);
		return;
	}
	half->op = op;
	if (op)
		op->place = NFCM_PLACE_HALF;
	core->held = false;
	if (core->phase == NFCM_PHASE_OFFERED) /* an empty one has no lists yet */
		answer(half, NFC_TYPE_ERROR, NFC_EABORTED, 0);
	else
		nfcm_half_owe(half, NFC_TYPE_ABORT, 0, 0);
	nfcm_half_push(half);
}

/* Does a call hold what lies here? One that waits for pages is still at work. */
static bool held(const struct nfcm_half *half)
{
	return half->core->held && !half->op;
}

/* RECEIVE, RECEIVE_IND, NEXT, ACCEPT, REFUSE. Must hold box. */
void nfcm_receive_start(struct nfcm_half *half, struct nfcm_op *op)
{
	struct nfcm_half_core *core = half->core;
	struct nfcm_channel *ch = half->ch;
	u32 status = barred(half, NFCM_SHUT_HOST);

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
	if (!status && op->flags & NFCOMMS_NOWAIT &&
	    core->phase == NFCM_PHASE_IDLE) {
		nfcm_box_drain(ch->box, ch->life->layout.slots);
		status = barred(half, NFCM_SHUT_HOST);
	}
	if (!status && core->phase != NFCM_PHASE_OFFERED &&
	    half->shut & NFCM_SHUT_PEER)
		status = NFC_ECLOSED;
	if (status) {
		nfcm_op_over(op, status);
		return;
	}
	if (op->flags & NFCOMMS_NOWAIT && core->phase != NFCM_PHASE_OFFERED) {
		not_now(op);
		return;
	}
	half->op = op;
	op->place = NFCM_PLACE_HALF;
	nfcm_box_park(ch, ch->park | NFC_PARK_D2H);
	nfcm_half_push(half);
}
