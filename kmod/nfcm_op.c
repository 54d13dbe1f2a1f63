// SPDX-License-Identifier: GPL-2.0-only
/* Operations: made with their completion, ended, finished. */
#include <linux/slab.h>

#include "nfcm_kmod.h"
#include "trace.h"

/* A zeroed operation with one reference; end reports it. */
void nfcm_op_init(struct nfcm_op *op, u16 opcode, void (*end)(struct nfcm_op *))
{
	refcount_set(&op->ref, 1);
	atomic_set(&op->holds, 1);
	INIT_LIST_HEAD(&op->node);
	INIT_LIST_HEAD(&op->behind);
	INIT_LIST_HEAD(&op->pin_node);
	INIT_LIST_HEAD(&op->pins.chunks);
	INIT_LIST_HEAD(&op->pins.node);
	INIT_LIST_HEAD(&op->pins.holder);
	INIT_WORK(&op->pins.work, nfcm_pins_work);
	INIT_DELAYED_WORK(&op->pins.timer, nfcm_pool_timer);
	init_completion(&op->done);
	op->end = end;
	op->opcode = opcode;
	op->c.opcode = opcode;
}

/* No list has the operation any more. */
static void assert_left(const struct nfcm_op *op)
{
	nfcm_assert_left(&op->node);
	nfcm_assert_left(&op->behind);
	nfcm_assert_left(&op->pin_node);
	nfcm_assert_left(&op->pins.node);
	nfcm_assert_left(&op->pins.holder);
	nfcm_assert_left(&op->pins.chunks);
}

/* Must not hold the mailbox. */
void nfcm_op_put(struct nfcm_op *op)
{
	if (!refcount_dec_and_test(&op->ref))
		return;
	assert_left(op);
	nfcm_pins_fini(op);
	if (op->ch)
		nfcm_channel_put(op->ch);
	if (op->file)
		nfcm_file_put(op->file);
	kmem_cache_free(nfcm_op_cache, op);
}

/* It has ended; it is finished at unlock. */
void nfcm_op_over(struct nfcm_op *op, u32 status)
{
	lockdep_assert_held(&op->ch->mailbox->lock);
	op->place = NFCM_PLACE_OVER;
	op->c.status = status;
	list_add_tail(&op->node, &op->ch->mailbox->ended);
}

/* The same, with the host's errno. */
void nfcm_op_error(struct nfcm_op *op, u32 status, int error)
{
	op->c.error = error;
	nfcm_op_over(op, status);
}

/*
 * Finish an operation that has ended: its memory is given back, and it is
 * reported once its last hold is released. No locks.
 */
void nfcm_op_finish(struct nfcm_op *op)
{
	nfcm_pins_release(op);
	nfcm_op_release_hold(op);
}

/*
 * Release a hold on the operation; the last one reports it. No locks.
 */
void nfcm_op_release_hold(struct nfcm_op *op)
{
	if (!atomic_dec_and_test(&op->holds))
		return;
	trace_nfcomms_complete(op);
	nfcm_pins_done(op);
	op->end(op);
}
