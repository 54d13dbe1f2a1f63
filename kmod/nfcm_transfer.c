// SPDX-License-Identifier: GPL-2.0-only
/* Gather lists: offering a transfer, feeding it, accounting for its progress. */
#include "nfcm_kmod.h"

/*
 * Compose list k, whose pages are mapped, and return the bytes up to its end.
 */
static u64 compose_list(struct nfcm_half *half, struct nfc_slot *slot, u64 k,
			u64 id)
{
	u32 flag = half->core->direction == NFC_D2H ? NFC_LIST_D2H : 0, n;
	const struct nfc_gather *g = nfcm_pins_list(half->op, k, &n);

	lockdep_assert_held(&half->ch->mailbox->lock);
	memcpy(slot->payload, g, sizeof(*g));
	nfcm_half_header(half, slot, NFC_TYPE_IND_LIST, n | flag, id);
	return nfcm_list_end(half->op->pins.size, g);
}

/* A list was put, of bytes up to an end. */
static void sent(struct nfcm_half *half, u64 end)
{
	lockdep_assert_held(&half->ch->mailbox->lock);
	nfcm_ledger_sent(&half->core->ledger, end);
	nfcm_op_stamp(half->op, &half->op->stamps.put_ns);
	half->ch->lists++;
	nfcm_count(half->ch->epoch->dev, NFCM_COUNT_LISTS, 1);
}

/*
 * How long the target may stay unready; an offer that is made again has the
 * rest.
 */
static u64 timeout_left(struct nfcm_op *op)
{
	if (op->flags &
	    NFCOMMS_NOWAIT) /* after a target that waits had its chance */
		return 1;
	if (!op->timeout_ns)
		return 0;
	if (!op->probes)
		op->deadline = ktime_add_ns(ktime_get(), op->timeout_ns);
	return max_t(s64, 1, ktime_to_ns(ktime_sub(op->deadline, ktime_get())));
}

/*
 * Offer the transfer, with list 0 so that the device sees both. False if it
 * must wait for room or pages.
 */
bool nfcm_transfer_begin(struct nfcm_half *half)
{
	struct nfcm_half_core *core = half->core;
	struct nfcm_mailbox *mailbox = nfcm_half_mailbox(half);
	struct nfc_slot begin = {}, list;
	struct nfcm_op *op = half->op;
	struct nfc_begin b = {
		.transaction = cpu_to_le64(core->id + 1),
		.size = cpu_to_le64(op->length),
		.timeout_ns = cpu_to_le64(timeout_left(op)),
	};
	u64 end = 0;
	bool put;

	lockdep_assert_held(&half->ch->mailbox->lock);
	if (op->length && !op->pins.lists) {
		nfcm_pins_schedule(op);
		return false;
	}
	if (nfcm_eager_fits(half))
		return nfcm_eager_put(half, core->id + 1, timeout_left(op));
	memcpy(begin.payload, &b, sizeof(b));
	nfcm_half_header(half, &begin, NFC_TYPE_IND_BEGIN, NFC_PAYLOAD_SIZE,
			 core->id + 1);
	if (op->length) {
		end = compose_list(half, &list, 0, core->id + 1);
		put = nfcm_mailbox_put_pair(mailbox, &begin, &list);
	} else {
		put = nfcm_mailbox_put(mailbox, &begin, NFCM_ROOM_NORMAL);
	}
	if (!put) {
		nfcm_half_wait_for_room(half, false);
		return false;
	}
	WARN_ON_ONCE(!nfcm_core_transfer(core, op->length,
					 half->ch->epoch->layout.window));
	nfcm_op_stamp(op, &op->stamps.put_ns);
	if (op->length)
		sent(half, end);
	return true;
}

/* Send lists while window, pages and ring allow. */
void nfcm_transfer_feed(struct nfcm_half *half)
{
	struct nfcm_half_core *core = half->core;
	struct nfcm_op *op = half->op;
	struct nfc_slot slot;
	u64 k, end;

	lockdep_assert_held(&half->ch->mailbox->lock);
	if (!op || half->pending || core->state != NFCM_STATE_MOVING)
		return;
	while (nfcm_ledger_next(&core->ledger, &k) && k < op->pins.lists) {
		end = compose_list(half, &slot, k, core->id);
		if (!nfcm_mailbox_put(nfcm_half_mailbox(half), &slot,
				      NFCM_ROOM_LIST)) {
			nfcm_half_wait_for_room(half, false);
			break;
		}
		sent(half, end);
	}
	if (core->ledger.ready)
		nfcm_pins_schedule(op);
}

/* The target agreed: the operation is not blocked any more. */
static void moving(struct nfcm_op *op)
{
	lockdep_assert_held(&op->ch->mailbox->lock);
	if (op->moving || !op->file)
		return;
	op->moving = true;
	atomic_inc(&op->file->moving);
}

/* Lists may be sent, and those that were moved released. */
void nfcm_transfer_progress(struct nfcm_half *half, const struct nfcm_record *r)
{
	struct nfcm_op *op = half->op;

	lockdep_assert_held(&half->ch->mailbox->lock);
	if (!op)
		return;
	moving(op);
	nfcm_transfer_account(half, r);
	nfcm_pins_trim(op, half->core->ledger.acked);
}

/* Note in the completion how many bytes were moved. */
void nfcm_transfer_account(struct nfcm_half *half, const struct nfcm_record *r)
{
	const struct nfcm_ledger *l = &half->core->ledger;
	struct nfcm_op *op = half->op;

	lockdep_assert_held(&half->ch->mailbox->lock);
	if (!op)
		return;
	op->c.processed = l->processed;
	op->c.outstanding = l->size - l->processed;
	op->c.list = (u32)l->acked;
	op->c.entry = r->fault_index;
	if (r->status == NFC_EDMA)
		op->c.list = r->lists;
	if (r->state == NFC_STATE_DONE)
		op->c.length = l->size;
	op->c.lists = (u32)l->total;
	half->ch->repeated += (u32)l->repeated - op->c.repeated;
	nfcm_count(half->ch->epoch->dev, NFCM_COUNT_REPEATED,
		   (u32)l->repeated - op->c.repeated);
	op->c.repeated = (u32)l->repeated;
}
