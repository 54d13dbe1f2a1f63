// SPDX-License-Identifier: GPL-2.0-only
/* Operations on a channel: started on their half, and taken back. */
#include "nfcm_kmod.h"

static struct nfcm_half *half_of(const struct nfcm_op *op)
{
	switch (op->opcode) {
	case NFCOMMS_OP_SEND:
	case NFCOMMS_OP_SEND_IND:
	case NFCOMMS_OP_ASK:
		return &op->ch->half[NFC_H2D];
	case NFCOMMS_OP_ARM:
		return &op->ch->half[op->flags & NFCOMMS_D2H ? NFC_D2H : NFC_H2D];
	case NFCOMMS_OP_REFUSE:
		return &op->ch->half[op->flags & NFCOMMS_H2D ? NFC_H2D : NFC_D2H];
	default:
		return &op->ch->half[NFC_D2H];
	}
}

/* Start an operation on its channel. */
static void start(struct nfcm_op *op)
{
	struct nfcm_channel *ch = op->ch;

	lockdep_assert_held(&op->ch->mailbox->lock);
	if (op->cancelled) {
		nfcm_op_over(op, NFC_EWITHDRAWN);
		return;
	}
	switch (op->opcode) {
	case NFCOMMS_OP_CLOSE:
		nfcm_channel_close(ch, op);
		break;
	case NFCOMMS_OP_ARM:
		if (ch->mailbox->dead)
			nfcm_op_over(op, atomic_read(&ch->epoch->down) ?:
						 NFC_ERESET);
		else
			nfcm_half_arm(half_of(op), op);
		break;
	case NFCOMMS_OP_SEND:
	case NFCOMMS_OP_SEND_IND:
	case NFCOMMS_OP_ASK:
		nfcm_send_start(half_of(op), op);
		break;
	default:
		if (op->flags & NFCOMMS_H2D)
			nfcm_send_release(half_of(op), op);
		else
			nfcm_receive_start(half_of(op), op);
	}
}

/* Does it take only what is there, and nothing is known to be? A hint. */
static bool looks(struct nfcm_op *op)
{
	return op->flags & NFCOMMS_NOWAIT &&
	       half_of(op) == &op->ch->half[NFC_D2H] &&
	       READ_ONCE(op->ch->half[NFC_D2H].core->state) == NFCM_STATE_IDLE;
}

/* Start an operation on its channel. The caller has a reference. No locks. */
void nfcm_op_start(struct nfcm_op *op)
{
	struct nfcm_mailbox *mailbox = op->ch->mailbox;

	op->pins.pin_task = current;
	if (looks(op)) /* what is in the ring is there now */
		nfcm_mailbox_drain_all(mailbox, op->ch->epoch->layout.slots);
	nfcm_mailbox_lock(mailbox);
	start(op);
	nfcm_mailbox_unlock(mailbox);
	WRITE_ONCE(op->pins.pin_task, NULL);
}

/*
 * Take an operation of a channel back, wherever it is. Does not wait: it ends with
 * NFC_EWITHDRAWN, or as it would have. The caller has a reference. No locks.
 */
void nfcm_op_withdraw(struct nfcm_op *op)
{
	struct nfcm_mailbox *mailbox = op->ch->mailbox;

	nfcm_mailbox_lock(mailbox);
	switch (op->place) {
	case NFCM_PLACE_NEW:
		op->cancelled = true;
		break;
	case NFCM_PLACE_QUEUE:
		nfcm_half_unqueue(half_of(op), op);
		nfcm_op_over(op, NFC_EWITHDRAWN);
		break;
	case NFCM_PLACE_ARMED:
		list_del_init(&op->node);
		nfcm_op_over(op, NFC_EWITHDRAWN);
		break;
	case NFCM_PLACE_HALF:
		nfcm_half_stop(half_of(op), NFC_EWITHDRAWN, 0);
		nfcm_half_push(half_of(op));
		break;
	default: /* a close continues, what is over is over */
		break;
	}
	nfcm_mailbox_unlock(mailbox);
}
