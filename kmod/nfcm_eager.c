// SPDX-License-Identifier: GPL-2.0-only
/*
 * Eager transfers: the pages travel with the offer, or, to the host, before it. They
 * are taken and committed like messages; their memory stays until a record arrives.
 */
#include <linux/mm.h>

#include "nfcm_kmod.h"

/* May the operation's transfer be eager? Its memory is mapped. */
bool nfcm_eager_fits(const struct nfcm_half *half)
{
	const struct nfcm_op *op = half->op;
	const struct nfcm_pins *p = &op->pins;
	u32 most = half->ch->epoch->layout.eager, n = 0;

	lockdep_assert_held(&half->ch->mailbox->lock);
	if (!most || op->length > NFC_EAGER_BYTES || p->pinned != op->length)
		return false;
	if (op->length)
		nfcm_pins_list(op, 0, &n);
	return p->lists <= 1 && (n & NFC_LIST_COUNT_MASK) <= most;
}

/*
 * Put the transfer and its pages, under the id that it has or will have. False
 * if it must wait for room.
 */
bool nfcm_eager_put(struct nfcm_half *half, u64 id, u64 timeout_ns)
{
	u32 n = 0, flag = half->core->direction == NFC_D2H ? NFC_LIST_D2H : 0;
	struct nfcm_op *op = half->op;
	struct nfc_eager e = {
		.transaction = cpu_to_le64(id),
		.size = cpu_to_le64(op->length),
		.timeout_ns = cpu_to_le64(timeout_ns),
	};
	struct nfc_slot slot;

	lockdep_assert_held(&half->ch->mailbox->lock);
	if (op->length)
		memcpy(e.entry, nfcm_pins_list(op, 0, &n)->entry,
		       sizeof(e.entry));
	memcpy(slot.payload, &e, sizeof(e));
	nfcm_half_header(half, &slot, NFC_TYPE_EAGER, n | flag, id);
	if (!nfcm_mailbox_put(nfcm_half_mailbox(half), &slot, NFCM_ROOM_NORMAL)) {
		nfcm_half_wait_for_room(half, false);
		return false;
	}
	WARN_ON_ONCE(!nfcm_core_eager(half->core, op->length));
	nfcm_op_stamp(op, &op->stamps.put_ns);
	return true;
}

/* Is it worth to post pages for a receive that finds no offer? */
static bool may_post(const struct nfcm_half *half)
{
	u64 most = (u64)half->ch->epoch->layout.eager * NFC_PAGE_SIZE;
	const struct nfcm_op *op = half->op;
	u64 in = op->pins.address & (NFC_PAGE_SIZE - 1);

	lockdep_assert_held(&half->ch->mailbox->lock);
	return op->opcode == NFCOMMS_OP_RECEIVE_IND && !op->cause &&
	       !(op->flags & NFCOMMS_HOLD) && !half->shut &&
	       in + op->length <= most && op->length <= NFC_EAGER_BYTES;
}

/*
 * Nothing is offered: pin the pages of a small receive and give them to the
 * device for its next transfer, if there is locked memory to spare.
 */
void nfcm_eager_post(struct nfcm_half *half)
{
	struct nfcm_op *op = half->op;

	lockdep_assert_held(&half->ch->mailbox->lock);
	if (!may_post(half))
		return;
	if (op->pins.pinned < op->length) {
		if (nfcm_pins_spare(op))
			nfcm_pins_schedule(op);
	} else if (nfcm_eager_fits(half)) {
		nfcm_eager_put(half, half->core->id + 1, 0);
	}
}

/* The offer crossed what was posted, which answers it. */
void nfcm_eager_matched(struct nfcm_half *half)
{
	lockdep_assert_held(&half->ch->mailbox->lock);
	if (half->pending == NFC_TYPE_WITHDRAW) /* too late */
		half->pending = 0;
}

/* Note in the completion what the record says of it. */
void nfcm_eager_account(struct nfcm_op *op, const struct nfcm_record *r)
{
	lockdep_assert_held(&op->ch->mailbox->lock);
	op->c.processed = r->processed;
	op->c.outstanding = op->length - r->processed;
	op->c.entry = r->fault_index;
	if (r->status == NFC_OK)
		op->c.length = op->length;
}
