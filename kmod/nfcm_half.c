// SPDX-License-Identifier: GPL-2.0-only
/*
 * A half of a channel: whose transaction it is, which message must be put before
 * any other, and what becomes of the operation when the device answers.
 */
#include "nfcm_kmod.h"

/* The mailbox whose lock guards the half. */
struct nfcm_mailbox *nfcm_half_mailbox(struct nfcm_half *half)
{
	return half->ch->mailbox;
}

/* Part of making the channel, before it is published. */
void nfcm_half_init(struct nfcm_channel *ch, enum nfc_direction direction)
{
	struct nfcm_half *half = &ch->half[direction];

	half->ch = ch;
	half->core = &ch->core.half[direction];
	half->core->direction = direction;
	INIT_LIST_HEAD(&half->queue);
	INIT_LIST_HEAD(&half->armed);
	INIT_LIST_HEAD(&half->room);
	INIT_LIST_HEAD(&half->escalation.node);
	INIT_LIST_HEAD(&half->waits);
}

/* The channel is about to be freed: the half has nothing, and no list has it. */
void nfcm_half_fini(const struct nfcm_half *half)
{
	nfcm_assert_left(&half->queue);
	nfcm_assert_left(&half->armed);
	nfcm_assert_left(&half->room);
	nfcm_assert_left(&half->escalation.node);
	nfcm_assert_left(&half->waits);
}

/* An operation waits among those of the half. */
void nfcm_half_queue(struct nfcm_half *half, struct nfcm_op *op, bool first)
{
	lockdep_assert_held(&half->ch->mailbox->lock);
	op->place = NFCM_PLACE_QUEUE;
	list_add(&op->node, first ? &half->queue : half->queue.prev);
	half->queued++;
}

/* It waits no more. */
void nfcm_half_unqueue(struct nfcm_half *half, struct nfcm_op *op)
{
	lockdep_assert_held(&half->ch->mailbox->lock);
	list_del_init(&op->node);
	half->queued--;
}

/* The half's next transaction is the operation's. */
void nfcm_half_take(struct nfcm_half *half, struct nfcm_op *op)
{
	lockdep_assert_held(&half->ch->mailbox->lock);
	half->op = op;
	half->told = ktime_get_coarse();
	if (!op)
		return;
	op->place = NFCM_PLACE_HALF;
	if (half->core->direction == NFC_H2D)
		nfcm_op_stamp(op, &op->stamps.ready_ns);
}

/* Describe the state of a half and its queue. */
void nfcm_half_describe(const struct nfcm_half *half,
			struct nfcomms_half_info *out)
{
	static const u32 states[] = {
		[NFCM_STATE_IDLE] = NFCOMMS_HALF_IDLE,
		[NFCM_STATE_OFFERED] = NFCOMMS_HALF_OFFERED,
		[NFCM_STATE_ANSWERING] = NFCOMMS_HALF_ANSWERING,
		[NFCM_STATE_MOVING] = NFCOMMS_HALF_MOVING,
		[NFCM_STATE_COMPLETE] = NFCOMMS_HALF_COMPLETE,
		[NFCM_STATE_GIVEN] = NFCOMMS_HALF_MOVING,
		[NFCM_STATE_POSTED] = NFCOMMS_HALF_MOVING,
		[NFCM_STATE_CALLED] = NFCOMMS_HALF_OFFERED,
	};
	bool over = half->ch->gone || half->ch->mailbox->dead;
	u8 state = over ? NFCM_STATE_IDLE : half->core->state;

	lockdep_assert_held(&half->ch->mailbox->lock);
	out->state = states[state];
	out->queued = half->queued;
	if (state != NFCM_STATE_IDLE)
		out->transaction = half->core->id;
	if (half->op)
		out->slept_ns = ktime_to_ns(ktime_sub(ktime_get_coarse(),
						      half->told));
}

/* From now on an answer must arrive. */
void nfcm_escalation_start(struct nfcm_escalation *escalation,
			   struct nfcm_channel *ch)
{
	lockdep_assert_held(&ch->mailbox->lock);
	if (!list_empty(&escalation->node))
		return;
	escalation->ch = ch;
	escalation->start = ktime_get();
	escalation->heartbeats = nfcm_watch_heartbeats(ch->epoch);
	escalation->taken = ch->mailbox->taken;
	escalation->asked = ch->mailbox->tail;
	escalation->waited_ms = 0;
	escalation->untaken_ms = 0;
	escalation->look = false;
	list_add_tail(&escalation->node, &ch->mailbox->escalations);
	nfcm_watch_kick(ch->epoch);
}

/* The answer arrived: nothing is recalled. */
void nfcm_escalation_stop(struct nfcm_escalation *escalation,
			  const struct nfcm_channel *ch)
{
	lockdep_assert_held(&ch->mailbox->lock);
	escalation->look = false;
	list_del_init(&escalation->node);
}

/* A header about transaction id. */
void nfcm_half_header(struct nfcm_half *half, struct nfc_slot *slot,
		      enum nfc_type type, u32 length, u64 id)
{
	lockdep_assert_held(&half->ch->mailbox->lock);
	slot->header = cpu_to_le64(nfc_header(type, length,
					      half->ch->epoch->layout.epoch, id,
					      half->ch->id));
}

/* The half waits for room in the ring. */
void nfcm_half_wait_for_room(struct nfcm_half *half, bool urgent)
{
	struct nfcm_mailbox *mailbox = nfcm_half_mailbox(half);

	lockdep_assert_held(&half->ch->mailbox->lock);
	if (mailbox->dead || !list_empty(&half->room))
		return;
	list_add_tail(&half->room, &mailbox->room[!urgent]);
	nfcm_watch_kick(mailbox->epoch);
}

/*
 * Have a message put before any other that ends a transaction or answers an
 * offer. A WITHDRAW and an ABORT must be answered; but a transfer whose lists
 * move, and whose WITHDRAW is not answered, is aborted. That of a try must be
 * looked at.
 */
void nfcm_half_set_pending(struct nfcm_half *half, enum nfc_type type,
			   u32 status, u64 size)
{
	struct nfcm_escalation *escalation = &half->escalation;
	bool moves = half->core->state == NFCM_STATE_MOVING;

	lockdep_assert_held(&half->ch->mailbox->lock);
	half->pending = type;
	half->pending_status = status;
	half->pending_size = size;
	if (type == NFC_TYPE_ABORT || (type == NFC_TYPE_WITHDRAW && !moves)) {
		if (escalation->look)
			nfcm_escalation_stop(escalation, half->ch);
		nfcm_escalation_start(escalation, half->ch);
	} else if (type == NFC_TYPE_WITHDRAW && half->op &&
		   half->op->flags & NFCOMMS_NOWAIT) {
		nfcm_escalation_start(escalation, half->ch);
		escalation->look = true;
		escalation->asked = U64_MAX; /* until it is put */
	}
}

/* The payload of the pending message: a record for an answer, else a note. */
static void compose(struct nfcm_half *half, struct nfc_slot *slot)
{
	struct nfcm_half_core *core = half->core;
	/* Posted pages are for the next transaction. */
	u64 id = core->id + (core->state == NFCM_STATE_POSTED);

	memset(slot, 0, sizeof(*slot));
	nfcm_half_header(half, slot, half->pending, NFC_PAYLOAD_SIZE, id);
	if (half->pending == NFC_TYPE_ACK || half->pending == NFC_TYPE_ERROR) {
		bool ok = half->pending == NFC_TYPE_ACK;
		struct nfc_ack a = {
			.transaction = cpu_to_le64(id),
			.processed = cpu_to_le64(ok ? half->pending_size : 0),
			.outstanding = cpu_to_le64(ok ? 0 : half->pending_size),
			.state = cpu_to_le16(ok ? NFC_STATE_CONSUMED :
						  NFC_STATE_FAILED),
			.status = cpu_to_le16(half->pending_status),
			.direction = cpu_to_le32(core->direction),
		};

		memcpy(slot->payload, &a, sizeof(a));
	} else {
		struct nfc_note n = {
			.transaction = cpu_to_le64(id),
			.direction = cpu_to_le32(core->direction),
		};

		memcpy(slot->payload, &n, sizeof(n));
	}
}

/* The host did something; it may, or the driver has a defect. */
void nfcm_half_act(struct nfcm_half *half, enum nfcm_input in)
{
	lockdep_assert_held(&half->ch->mailbox->lock);
	WARN_ON_ONCE(!nfcm_act(half->core, in));
}

/* The input of a half that putting a pending message is. */
static enum nfcm_input input_of(const struct nfcm_half_core *core,
				enum nfc_type type)
{
	switch (type) {
	case NFC_TYPE_WITHDRAW:
		return NFCM_PUT_WITHDRAW;
	case NFC_TYPE_ABORT:
		return NFCM_PUT_ABORT;
	case NFC_TYPE_WITHDRAWN:
		return NFCM_PUT_WITHDRAWN;
	case NFC_TYPE_ERROR:
		return NFCM_PUT_REFUSE;
	case NFC_TYPE_FIN:
		if (core->state == NFCM_STATE_COMPLETE)
			return NFCM_PUT_FIN;
		fallthrough; /* of an empty transfer */
	default:
		return NFCM_PUT_ACCEPT;
	}
}

/* Put the pending message; false if there is no room. */
static bool put_pending(struct nfcm_half *half)
{
	enum nfc_type type = half->pending;
	struct nfc_slot slot;

	lockdep_assert_held(&half->ch->mailbox->lock);
	compose(half, &slot);
	if (!nfcm_mailbox_put(nfcm_half_mailbox(half), &slot, NFCM_ROOM_URGENT)) {
		nfcm_half_wait_for_room(half, true);
		return false;
	}
	half->pending = 0;
	if (half->op && (type == NFC_TYPE_FIN || type == NFC_TYPE_ACK))
		nfcm_op_stamp(half->op, &half->op->stamps.put_ns);
	half->escalation.asked = nfcm_half_mailbox(half)->tail;
	nfcm_half_act(half, input_of(half->core, type));
	if (type == NFC_TYPE_ERROR)
		nfcm_half_end(half, half->op ? half->op->cause : 0);
	else if (type == NFC_TYPE_FIN || type == NFC_TYPE_ACK) /* the commit */
		nfcm_half_end(half, NFC_OK);
	return true;
}

/* Put what the half has to put. */
static void push(struct nfcm_half *half)
{
	lockdep_assert_held(&half->ch->mailbox->lock);
	if (half->pending && !put_pending(half))
		return;
	if (half->core->direction == NFC_H2D)
		nfcm_send_next(half);
	else
		nfcm_receive_next(half);
	if (half->pending == NFC_TYPE_WITHDRAW) /* of a try */
		put_pending(half);
	nfcm_channel_step(half->ch);
}

/*
 * Put what the half has to put, as far as the ring has room. To be called after
 * every change.
 */
void nfcm_half_push(struct nfcm_half *half)
{
	lockdep_assert_held(&half->ch->mailbox->lock);
	if (!nfcm_half_mailbox(half)->dead && !half->ch->opening)
		push(half);
	nfcm_stall_track(half);
}

/* The transaction is over, and with it its operation. */
void nfcm_half_end(struct nfcm_half *half, u32 status)
{
	struct nfcm_op *op = half->op;

	lockdep_assert_held(&half->ch->mailbox->lock);
	if (half->pending == NFC_TYPE_WITHDRAW ||
	    half->pending == NFC_TYPE_ABORT)
		half->pending = 0;
	nfcm_escalation_stop(&half->escalation, half->ch);
	half->probing = false;
	half->op = NULL;
	if (!op)
		return;
	if (op->cause == status && op->cause_error)
		nfcm_op_error(op, status, op->cause_error);
	else
		nfcm_op_over(op, status);
}

/*
 * The device has the pages, or the question: they return with its answer. To an
 * offer of its own it owes that already.
 */
static void take_back(struct nfcm_half *half)
{
	const struct nfcm_half_core *core = half->core;

	lockdep_assert_held(&half->ch->mailbox->lock);
	if (core->direction == NFC_D2H && core->state == NFCM_STATE_GIVEN)
		nfcm_escalation_start(&half->escalation, half->ch);
	else if (!half->pending && !core->recall)
		nfcm_half_set_pending(half, NFC_TYPE_WITHDRAW, 0, 0);
}

/*
 * Take the half's operation back, or end it where it stands; cause is its
 * status if that works, error the errno beside it. The caller pushes.
 */
void nfcm_half_stop(struct nfcm_half *half, u32 cause, int error)
{
	struct nfcm_half_core *core = half->core;
	struct nfcm_op *op = half->op;

	lockdep_assert_held(&half->ch->mailbox->lock);
	if (!op || op->opcode == NFCOMMS_OP_ACCEPT ||
	    op->opcode == NFCOMMS_OP_REFUSE) /* they end by themselves */
		return;
	if (!op->cause) {
		op->cause = cause;
		op->cause_error = error;
	}
	switch (core->state) {
	case NFCM_STATE_IDLE: /* waits for the device, the ring, or pages */
		nfcm_half_end(half, op->cause);
		break;
	case NFCM_STATE_OFFERED:
		if (half->pending) /* it is withdrawn, or answered */
			break;
		if (core->direction == NFC_D2H) { /* waits for pages */
			nfcm_receive_release(half);
			nfcm_half_end(half, op->cause);
		} else if (!core->recall) {
			nfcm_half_set_pending(half, NFC_TYPE_WITHDRAW, 0, 0);
		}
		break;
	case NFCM_STATE_ANSWERING: /* an earlier offer, which the device recalled */
		nfcm_half_end(half, op->cause);
		break;
	case NFCM_STATE_MOVING:
		if (!core->ledger.aborting && half->pending != NFC_TYPE_ABORT)
			nfcm_half_set_pending(half, NFC_TYPE_ABORT, 0, 0);
		break;
	case NFCM_STATE_GIVEN:
	case NFCM_STATE_POSTED:
	case NFCM_STATE_CALLED:
		take_back(half);
		break;
	default: /* committed: FIN is pending */
		break;
	}
}

/* Nothing of the half moves or is pending. */
bool nfcm_half_quiet(const struct nfcm_half *half)
{
	const struct nfcm_half_core *core = half->core;

	lockdep_assert_held(&half->ch->mailbox->lock);
	if (half->op || half->pending || !list_empty(&half->queue))
		return false;
	return core->state == NFCM_STATE_IDLE ||
	       (core->state == NFCM_STATE_OFFERED && !core->held);
}

/* The epoch ended: everything of the half ends. */
void nfcm_half_down(struct nfcm_half *half, u32 status)
{
	struct nfcm_op *op, *next;

	lockdep_assert_held(&half->ch->mailbox->lock);
	half->pending = 0;
	half->reserved = false;
	half->core->held = false;
	list_del_init(&half->room);
	nfcm_stall_forget(half);
	nfcm_half_end(half, status);
	list_for_each_entry_safe(op, next, &half->queue, node) {
		nfcm_half_unqueue(half, op);
		nfcm_op_over(op, status);
	}
	nfcm_half_fire(half, status);
}

/* Wait for a hint that the half may be ready. */
void nfcm_half_arm(struct nfcm_half *half, struct nfcm_op *op)
{
	struct nfcm_half_core *core = half->core;
	struct nfcm_channel *ch = half->ch;

	lockdep_assert_held(&half->ch->mailbox->lock);
	if (half->shut & NFCM_SHUT_HOST) {
		nfcm_op_over(op, NFC_ECLOSED);
		return;
	}
	if (half->shut || (core->direction == NFC_D2H &&
			   core->state == NFCM_STATE_OFFERED && !core->held)) {
		nfcm_op_over(op, NFC_OK);
		return;
	}
	if (op->flags & NFCOMMS_HOLD) { /* a place among the sends */
		nfcm_half_queue(half, op, false);
	} else {
		op->place = NFCM_PLACE_ARMED;
		list_add_tail(&op->node, &half->armed);
	}
	nfcm_mailbox_park(ch, ch->park | 1u << core->direction);
	nfcm_half_push(half);
}

/* Every ARM of the half completes: its file tries again. */
void nfcm_half_fire(struct nfcm_half *half, u32 status)
{
	struct nfcm_op *op, *next;

	lockdep_assert_held(&half->ch->mailbox->lock);
	list_for_each_entry_safe(op, next, &half->armed, node) {
		list_del_init(&op->node);
		nfcm_op_over(op, status);
	}
}

/* The status of an operation for the device's record of a failure. */
static u32 status_of(struct nfcm_op *op, const struct nfcm_record *r)
{
	if (op && r->status == NFC_ETIMEOUT && op->flags & NFCOMMS_NOWAIT) {
		op->c.flags |= NFCOMMS_NOT_NOW;
		return NFC_EWITHDRAWN;
	}
	if (op && r->status == NFC_ESIZE)
		op->c.peer_size = r->outstanding;
	return r->status ?: NFC_EABORTED;
}

/* A transfer ended otherwise than by DONE. */
static void transfer_ended(struct nfcm_half *half,
			   const struct nfcm_outcome *out)
{
	struct nfcm_op *op = half->op;

	lockdep_assert_held(&half->ch->mailbox->lock);
	nfcm_transfer_account(half, &out->record);
	if (op && (op->cause || op->opcode == NFCOMMS_OP_REFUSE))
		nfcm_half_end(half, op->cause); /* the host asked for it */
	else
		nfcm_half_end(half, status_of(op, &out->record));
}

/* The process has the question; the slot has its answer. */
void nfcm_half_answer(struct nfcm_half *half, const struct nfc_slot *slot)
{
	u64 length = nfc_header_length(le64_to_cpu(slot->header));
	struct nfcm_op *op = half->op;

	lockdep_assert_held(&half->ch->mailbox->lock);
	if (!op)
		return;
	memset(op->c.payload, 0, sizeof(op->c.payload));
	memcpy(op->c.payload, slot->payload, length);
	op->c.length = length;
	op->c.flags |= NFCOMMS_TAKEN;
}

/* The process had the question, and does not answer it. */
static void unanswered(struct nfcm_half *half, const struct nfcm_outcome *out)
{
	struct nfcm_op *op = half->op;

	lockdep_assert_held(&half->ch->mailbox->lock);
	if (op)
		op->c.flags |= NFCOMMS_TAKEN;
	nfcm_half_end(half, op && op->cause ? op->cause : out->record.status);
}

/* A message was taken or refused, an eager transfer, or a question. */
static void answered(struct nfcm_half *half, const struct nfcm_outcome *out)
{
	u32 status = out->event == NFCM_EVENT_REFUSED ? out->record.status :
							NFC_OK;
	struct nfcm_op *op = half->op;

	lockdep_assert_held(&half->ch->mailbox->lock);
	if (op && (op->opcode == NFCOMMS_OP_SEND_IND ||
		   op->opcode == NFCOMMS_OP_RECEIVE_IND)) {
		nfcm_eager_account(op, &out->record);
		if (status)
			status = status_of(op, &out->record);
	} else if (op && status && op->opcode == NFCOMMS_OP_ASK) {
		status = status_of(op, &out->record);
	}
	nfcm_half_end(half, status);
}

/* The device's next offer has arrived. */
static void offered(struct nfcm_half *half)
{
	bool expected = half->op || !list_empty(&half->armed);
	struct nfcm_op *op;

	lockdep_assert_held(&half->ch->mailbox->lock);
	nfcm_half_fire(half, NFC_OK);
	if (!expected) /* the next one need not ring */
		nfcm_mailbox_park(half->ch, half->ch->park & ~NFC_PARK_D2H);
	op = half->op;
	if (op && op->cause) /* it was taking back what it had posted */
		nfcm_half_end(half, op->cause);
}

/* All bytes are there. */
static void complete_transfer(struct nfcm_half *half,
			      const struct nfcm_outcome *out)
{
	struct nfcm_op *op = half->op;

	lockdep_assert_held(&half->ch->mailbox->lock);
	nfcm_transfer_account(half, &out->record);
	if (half->pending == NFC_TYPE_ABORT) /* it is to be put all the same */
		return;
	if (op && op->flags & NFCOMMS_HOLD) {
		nfcm_half_act(half, NFCM_HOLD);
		op->c.flags |= NFCOMMS_HELD;
		op->c.length = op->length;
		nfcm_half_end(half, NFC_OK);
		return;
	}
	nfcm_half_set_pending(half, NFC_TYPE_FIN, 0, 0);
}

/* The device gave the offer back. */
static void withdrawn(struct nfcm_half *half)
{
	struct nfcm_op *op = half->op;

	lockdep_assert_held(&half->ch->mailbox->lock);
	if (op && !op->cause && half->probing) { /* it is offered again */
		half->probing = false;
		op->probes++;
		nfcm_escalation_stop(&half->escalation, half->ch);
		return;
	}
	if (op && !op->cause && op->flags & NFCOMMS_NOWAIT)
		op->c.flags |= NFCOMMS_NOT_NOW;
	nfcm_half_end(half, op && op->cause ? op->cause : NFC_EWITHDRAWN);
}

/* A message of the device came that the caller wants to know the times of. */
static void stamp_message(struct nfcm_op *op, const struct nfcm_outcome *out)
{
	const struct nfcm_record *r = &out->record;

	if (out->event == NFCM_EVENT_OFFER) {
		nfcm_op_stamp(op, &op->stamps.ready_ns);
		return;
	}
	op->stamps.answered_ns = 0; /* that of the last one counts */
	nfcm_op_stamp(op, &op->stamps.answered_ns);
	if (!r->transaction) /* it is no record */
		return;
	op->stamps.began_ns = r->began;
	if (r->state == NFC_STATE_READY)
		op->stamps.met_ns = r->now;
	else
		op->stamps.done_ns = r->now;
}

/* Act on what a message means for this half. */
void nfcm_half_event(struct nfcm_half *half, const struct nfcm_outcome *out)
{
	struct nfcm_op *op = half->op;

	lockdep_assert_held(&half->ch->mailbox->lock);
	half->idle_ms = 0;
	half->told = ktime_get_coarse();
	if (op && op->flags & NFCOMMS_STAMPED)
		stamp_message(op, out);
	switch (out->event) {
	case NFCM_EVENT_DELIVERED:
	case NFCM_EVENT_REFUSED:
	case NFCM_EVENT_ANSWERED:
		answered(half, out);
		break;
	case NFCM_EVENT_UNANSWERED:
		unanswered(half, out);
		break;
	case NFCM_EVENT_WITHDRAWN:
		withdrawn(half);
		break;
	case NFCM_EVENT_READY:
		half->ready_requested = false;
		if (op && op->opcode == NFCOMMS_OP_ARM)
			nfcm_send_reserve(half);
		nfcm_half_fire(half, NFC_OK);
		break;
	case NFCM_EVENT_OFFER:
		offered(half);
		break;
	case NFCM_EVENT_RECALLED:
		nfcm_half_set_pending(half, NFC_TYPE_WITHDRAWN, 0, 0);
		break;
	case NFCM_EVENT_PROGRESS:
		if (half->core->state == NFCM_STATE_GIVEN)
			nfcm_eager_matched(half);
		else
			nfcm_transfer_progress(half, &out->record);
		break;
	case NFCM_EVENT_RETRIES_EXHAUSTED:
		nfcm_transfer_account(half, &out->record);
		nfcm_half_stop(half, NFC_EDMA, 0);
		break;
	case NFCM_EVENT_DONE:
		complete_transfer(half, out);
		break;
	default: /* FAILED, ABORTED */
		transfer_ended(half, out);
	}
	nfcm_half_push(half);
}
