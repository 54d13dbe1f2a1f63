// SPDX-License-Identifier: GPL-2.0-only
/*
 * A half of a channel: whose transaction it is, what must be said before
 * anything else, and what becomes of the operation when the device answers.
 */
#include "nfcm_kmod.h"

/* The mailbox whose lock guards the half. */
struct nfcm_box *nfcm_half_box(struct nfcm_half *half)
{
	return half->ch->box;
}

/* Part of making the channel: nobody else knows it yet. */
void nfcm_half_init(struct nfcm_channel *ch, enum nfc_direction direction)
{
	struct nfcm_half *half = &ch->half[direction];

	half->ch = ch;
	half->core = &ch->core.half[direction];
	half->core->direction = direction;
	INIT_LIST_HEAD(&half->queue);
	INIT_LIST_HEAD(&half->armed);
	INIT_LIST_HEAD(&half->starved);
	INIT_LIST_HEAD(&half->ladder.node);
	INIT_LIST_HEAD(&half->waits);
}

/* The answer must come from now on. Must hold box. */
void nfcm_ladder_start(struct nfcm_ladder *ladder, struct nfcm_channel *ch)
{
	if (!list_empty(&ladder->node))
		return;
	ladder->ch = ch;
	ladder->start = ktime_get();
	ladder->beat = nfcm_watch_beat(ch->life);
	ladder->taken = ch->box->taken;
	ladder->waited_ms = 0;
	list_add_tail(&ladder->node, &ch->box->ladders);
	nfcm_watch_hurry(ch->life);
}

/* It came. Must hold box. */
void nfcm_ladder_stop(struct nfcm_ladder *ladder)
{
	list_del_init(&ladder->node);
}

/* A header about transaction id. Must hold box. */
void nfcm_half_header(struct nfcm_half *half, struct nfc_slot *slot,
		      enum nfc_type type, u32 length, u64 id)
{
	slot->header = cpu_to_le64(nfc_header(type, length,
					      half->ch->life->layout.epoch, id,
					      half->ch->id));
}

/* The half waits for room in the ring. Must hold box. */
void nfcm_half_starve(struct nfcm_half *half, bool urgent)
{
	struct nfcm_box *box = nfcm_half_box(half);

	if (box->dead || !list_empty(&half->starved))
		return;
	list_add_tail(&half->starved, &box->starved[!urgent]);
	nfcm_watch_hurry(box->life);
}

/* There may be room again. Must hold box. */
void nfcm_half_fed(struct nfcm_half *half)
{
	nfcm_half_push(half);
}

/*
 * Say something that ends a transaction, or answers an offer, before anything
 * else. What takes something back must be answered; a transfer that is only asked
 * back is aborted if it is not. Must hold box.
 */
void nfcm_half_owe(struct nfcm_half *half, enum nfc_type type, u32 status,
		   u64 size)
{
	half->due = type;
	half->due_status = status;
	half->due_size = size;
	if (type == NFC_TYPE_ABORT || (type == NFC_TYPE_WITHDRAW &&
				       half->core->phase == NFCM_PHASE_OFFERED))
		nfcm_ladder_start(&half->ladder, half->ch);
}

/* The payload of what is due: a record for an answer, else a note. */
static void compose(struct nfcm_half *half, struct nfc_slot *slot)
{
	struct nfcm_half_core *core = half->core;

	memset(slot, 0, sizeof(*slot));
	nfcm_half_header(half, slot, half->due, NFC_PAYLOAD_SIZE, core->id);
	if (half->due == NFC_TYPE_ACK || half->due == NFC_TYPE_ERROR) {
		bool ok = half->due == NFC_TYPE_ACK;
		struct nfc_ack a = {
			.transaction = cpu_to_le64(core->id),
			.processed = cpu_to_le64(ok ? half->due_size : 0),
			.outstanding = cpu_to_le64(ok ? 0 : half->due_size),
			.state = cpu_to_le16(ok ? NFC_STATE_CONSUMED :
						  NFC_STATE_FAILED),
			.status = cpu_to_le16(half->due_status),
			.direction = cpu_to_le32(core->direction),
		};

		memcpy(slot->payload, &a, sizeof(a));
	} else {
		struct nfc_note n = {
			.transaction = cpu_to_le64(core->id),
			.direction = cpu_to_le32(core->direction),
		};

		memcpy(slot->payload, &n, sizeof(n));
	}
}

/* Put what is due; false if there is no room. Must hold box. */
static bool put_due(struct nfcm_half *half)
{
	struct nfcm_half_core *core = half->core;
	enum nfc_type type = half->due;
	struct nfc_slot slot;

	compose(half, &slot);
	if (!nfcm_box_put(nfcm_half_box(half), &slot, NFCM_ROOM_URGENT)) {
		nfcm_half_starve(half, true);
		return false;
	}
	half->due = 0;
	switch (type) {
	case NFC_TYPE_WITHDRAW:
		core->recall = true;
		break;
	case NFC_TYPE_ABORT:
		nfcm_core_aborting(core);
		break;
	case NFC_TYPE_WITHDRAWN:
		core->phase = NFCM_PHASE_IDLE;
		break;
	case NFC_TYPE_ERROR:
		core->phase = NFCM_PHASE_IDLE;
		nfcm_half_end(half, half->op ? half->op->cause : 0);
		break;
	default: /* FIN, ACK: the commit */
		core->phase = NFCM_PHASE_IDLE;
		nfcm_half_end(half, NFC_OK);
	}
	return true;
}

/* Say what the half has to say. Must hold box. */
static void push(struct nfcm_half *half)
{
	if (half->due && !put_due(half))
		return;
	if (half->core->direction == NFC_H2D)
		nfcm_send_next(half);
	else
		nfcm_receive_next(half);
	nfcm_channel_step(half->ch);
}

/*
 * Say what the half has to say, as far as the ring has room. To be called after
 * every change. Must hold box.
 */
void nfcm_half_push(struct nfcm_half *half)
{
	if (!nfcm_half_box(half)->dead && !half->ch->opening)
		push(half);
	nfcm_stall_track(half);
}

/* The transaction is over, and with it its operation. Must hold box. */
void nfcm_half_end(struct nfcm_half *half, u32 status)
{
	struct nfcm_op *op = half->op;

	if (half->due == NFC_TYPE_WITHDRAW || half->due == NFC_TYPE_ABORT)
		half->due = 0;
	nfcm_ladder_stop(&half->ladder);
	half->asked_back = false;
	half->op = NULL;
	if (!op)
		return;
	if (op->cause == status && op->cause_error)
		nfcm_op_error(op, status, op->cause_error);
	else
		nfcm_op_over(op, status);
}

/*
 * Take the half's operation back, or end it where it stands; cause is its
 * status if that works, error the errno beside it. The caller pushes. Must hold
 * box.
 */
void nfcm_half_stop(struct nfcm_half *half, u32 cause, int error)
{
	struct nfcm_half_core *core = half->core;
	struct nfcm_op *op = half->op;

	if (!op || op->opcode == NFCOMMS_OP_ACCEPT ||
	    op->opcode == NFCOMMS_OP_REFUSE) /* they end by themselves */
		return;
	if (!op->cause) {
		op->cause = cause;
		op->cause_error = error;
	}
	switch (core->phase) {
	case NFCM_PHASE_IDLE: /* waits for the device, the ring, or pages */
		nfcm_half_end(half, op->cause);
		break;
	case NFCM_PHASE_OFFERED:
		if (core->direction == NFC_D2H) { /* waits for pages */
			nfcm_receive_release(half);
			nfcm_half_end(half, op->cause);
		} else if (!core->recall && !half->due) {
			nfcm_half_owe(half, NFC_TYPE_WITHDRAW, 0, 0);
		}
		break;
	case NFCM_PHASE_ANSWERING: /* it may be an earlier offer's answer */
		if (half->due == NFC_TYPE_WITHDRAWN)
			nfcm_half_end(half, op->cause);
		break;
	case NFCM_PHASE_MOVING:
		if (!core->ledger.aborting && half->due != NFC_TYPE_ABORT)
			nfcm_half_owe(half, NFC_TYPE_ABORT, 0, 0);
		break;
	default: /* committed: FIN is due */
		break;
	}
}

/* Nothing of the half moves or is owed. Must hold box. */
bool nfcm_half_quiet(const struct nfcm_half *half)
{
	const struct nfcm_half_core *core = half->core;

	if (half->op || half->due || !list_empty(&half->queue))
		return false;
	return core->phase == NFCM_PHASE_IDLE ||
	       (core->phase == NFCM_PHASE_OFFERED && !core->held);
}

/* The life is over: everything of the half ends. Must hold box. */
void nfcm_half_down(struct nfcm_half *half, u32 status)
{
	struct nfcm_op *op, *next;

	half->due = 0;
	half->keeps = false;
	half->core->held = false;
	list_del_init(&half->starved);
	nfcm_stall_forget(half);
	nfcm_half_end(half, status);
	list_for_each_entry_safe(op, next, &half->queue, node) {
		list_del_init(&op->node);
		nfcm_op_over(op, status);
	}
	nfcm_half_fire(half, status);
}

/* Wait for a hint that the half may be ready. Must hold box. */
void nfcm_half_arm(struct nfcm_half *half, struct nfcm_op *op)
{
	struct nfcm_half_core *core = half->core;
	struct nfcm_channel *ch = half->ch;

	if (half->shut & NFCM_SHUT_HOST) {
		nfcm_op_over(op, NFC_ECLOSED);
		return;
	}
	if (half->shut || (core->direction == NFC_D2H &&
			   core->phase == NFCM_PHASE_OFFERED && !core->held)) {
		nfcm_op_over(op, NFC_OK);
		return;
	}
	if (op->flags & NFCOMMS_HOLD) { /* a place among the sends */
		op->place = NFCM_PLACE_QUEUE;
		list_add_tail(&op->node, &half->queue);
	} else {
		op->place = NFCM_PLACE_ARMED;
		list_add_tail(&op->node, &half->armed);
	}
	nfcm_box_park(ch, ch->park | 1u << core->direction);
	nfcm_half_push(half);
}

/* Whoever is armed looks again. Must hold box. */
void nfcm_half_fire(struct nfcm_half *half, u32 status)
{
	struct nfcm_op *op, *next;

	list_for_each_entry_safe(op, next, &half->armed, node) {
		list_del_init(&op->node);
		nfcm_op_over(op, status);
	}
}

/* A transfer ended otherwise than by DONE. Must hold box. */
static void transfer_ended(struct nfcm_half *half,
			   const struct nfcm_judgement *j)
{
	struct nfcm_op *op = half->op;
	u32 status = j->record.status;

	nfcm_transfer_account(half, &j->record);
	if (op && (op->cause || op->opcode == NFCOMMS_OP_REFUSE)) {
		status = op->cause; /* the host asked for it */
	} else if (op && status == NFC_ETIMEOUT && op->flags & NFCOMMS_NOWAIT) {
		op->c.flags |= NFCOMMS_NOT_NOW;
		status = NFC_EWITHDRAWN;
	} else if (op && status == NFC_ESIZE) {
		op->c.peer_size = j->record.outstanding;
	} else if (!status) {
		status = NFC_EABORTED;
	}
	nfcm_half_end(half, status);
}

/* The device's next offer has come. Must hold box. */
static void offered(struct nfcm_half *half)
{
	bool wanted = half->op || !list_empty(&half->armed);

	nfcm_half_fire(half, NFC_OK);
	if (!wanted) /* the next one need not ring */
		nfcm_box_park(half->ch, half->ch->park & ~NFC_PARK_D2H);
}

/* All bytes are there. Must hold box. */
static void complete_transfer(struct nfcm_half *half,
			      const struct nfcm_judgement *j)
{
	struct nfcm_op *op = half->op;

	nfcm_transfer_account(half, &j->record);
	if (half->due == NFC_TYPE_ABORT) /* it is to be put all the same */
		return;
	if (op && op->flags & NFCOMMS_HOLD) {
		half->core->held = true;
		op->c.flags |= NFCOMMS_HELD;
		op->c.length = op->length;
		nfcm_half_end(half, NFC_OK);
		return;
	}
	nfcm_half_owe(half, NFC_TYPE_FIN, 0, 0);
}

/* The device gave the offer back. Must hold box. */
static void withdrawn(struct nfcm_half *half)
{
	struct nfcm_op *op = half->op;

	if (op && !op->cause && half->asked_back) { /* it is offered again */
		half->asked_back = false;
		op->asked++;
		nfcm_ladder_stop(&half->ladder);
		return;
	}
	if (op && !op->cause && op->flags & NFCOMMS_NOWAIT)
		op->c.flags |= NFCOMMS_NOT_NOW;
	nfcm_half_end(half, op && op->cause ? op->cause : NFC_EWITHDRAWN);
}

/* Act on what a message means for this half. Must hold box. */
void nfcm_half_event(struct nfcm_half *half, const struct nfcm_judgement *j)
{
	struct nfcm_op *op = half->op;

	half->idle_ms = 0;
	switch (j->event) {
	case NFCM_EVENT_DELIVERED:
		nfcm_half_end(half, NFC_OK);
		break;
	case NFCM_EVENT_REFUSED:
		nfcm_half_end(half, j->record.status);
		break;
	case NFCM_EVENT_WITHDRAWN:
		withdrawn(half);
		break;
	case NFCM_EVENT_READY:
		half->asked = false;
		if (op && op->opcode == NFCOMMS_OP_ARM)
			nfcm_send_keep(half);
		nfcm_half_fire(half, NFC_OK);
		break;
	case NFCM_EVENT_OFFER:
		offered(half);
		break;
	case NFCM_EVENT_RECALLED:
		nfcm_half_owe(half, NFC_TYPE_WITHDRAWN, 0, 0);
		break;
	case NFCM_EVENT_PROGRESS:
		nfcm_transfer_progress(half, &j->record);
		break;
	case NFCM_EVENT_TIRED:
		nfcm_transfer_account(half, &j->record);
		nfcm_half_stop(half, NFC_EDMA, 0);
		break;
	case NFCM_EVENT_DONE:
		complete_transfer(half, j);
		break;
	default: /* FAILED, ABORTED */
		transfer_ended(half, j);
	}
	nfcm_half_push(half);
}
