// SPDX-License-Identifier: GPL-2.0-only
/* Channels: entering the epoch's table, closing half by half, leaving it. */
#include <linux/slab.h>

#include "nfcm_kmod.h"

/* Make the host's end of a channel; it is not in the table yet. */
struct nfcm_channel *nfcm_channel_new(struct nfcm_epoch *epoch, u32 id,
				      struct nfcm_file *file)
{
	struct nfcm_channel *ch = kzalloc(sizeof(*ch), GFP_KERNEL_ACCOUNT);

	if (!ch)
		return NULL;
	kref_init(&ch->ref);
	kref_get(&epoch->ref);
	ch->epoch = epoch;
	ch->mailbox = &epoch->mailbox[nfcm_layout_mailbox(&epoch->layout, id)];
	ch->id = id;
	ch->opening = true;
	INIT_LIST_HEAD(&ch->node);
	INIT_LIST_HEAD(&ch->closers);
	INIT_LIST_HEAD(&ch->escalation.node);
	nfcm_half_init(ch, NFC_H2D);
	nfcm_half_init(ch, NFC_D2H);
	if (file) {
		nfcm_file_get(file);
		ch->file = file;
	}
	return ch;
}

static void channel_free(struct kref *ref)
{
	struct nfcm_channel *ch = container_of(ref, struct nfcm_channel, ref);

	nfcm_assert_left(&ch->node);
	nfcm_assert_left(&ch->closers);
	nfcm_assert_left(&ch->escalation.node);
	nfcm_half_fini(&ch->half[NFC_H2D]);
	nfcm_half_fini(&ch->half[NFC_D2H]);
	if (ch->file)
		nfcm_file_put(ch->file);
	nfcm_epoch_put(ch->epoch);
	kfree(ch);
}

/* Must not hold the mailbox: the last channel may free the epoch. */
void nfcm_channel_put(struct nfcm_channel *ch)
{
	kref_put(&ch->ref, channel_free);
}

/*
 * Enter the epoch's table, which takes a reference. -EBUSY if the id is in use,
 * -ENODEV if the epoch has ended.
 */
int nfcm_channel_enter(struct nfcm_channel *ch)
{
	int rc = xa_insert(&ch->epoch->channels, ch->id, ch, GFP_KERNEL);

	if (rc)
		return rc;
	kref_get(&ch->ref);
	nfcm_mailbox_lock(ch->mailbox);
	if (ch->mailbox->dead) { /* the fence has passed here already */
		xa_erase(&ch->epoch->channels, ch->id);
		ch->gone = true;
		list_add_tail(&ch->node, &ch->mailbox->retired);
		rc = -ENODEV;
	} else {
		list_add_tail(&ch->node, &ch->mailbox->channels);
	}
	nfcm_mailbox_unlock(ch->mailbox);
	return rc;
}

/* Leave the epoch's table; its reference is put at unlock. */
static void leave(struct nfcm_channel *ch)
{
	lockdep_assert_held(&ch->mailbox->lock);
	if (ch->gone)
		return;
	ch->gone = true;
	xa_erase(&ch->epoch->channels, ch->id);
	nfcm_escalation_stop(&ch->escalation, ch);
	list_move_tail(&ch->node, &ch->mailbox->retired);
}

/* The same from outside, for a channel that did not open. */
void nfcm_channel_leave(struct nfcm_channel *ch)
{
	nfcm_mailbox_lock(ch->mailbox);
	leave(ch);
	nfcm_mailbox_unlock(ch->mailbox);
}

/*
 * The file's name for the channel ends. The table or the caller still has a
 * reference.
 */
static void drop_handle(struct nfcm_channel *ch)
{
	lockdep_assert_held(&ch->mailbox->lock);
	if (!ch->handle)
		return;
	xa_erase(&ch->file->channels, ch->handle);
	ch->handle = 0;
	nfcm_file_live(ch->file, -1);
	kref_put(&ch->ref, channel_free); /* never the last */
}

/* CLOSE operations end, as far as their halves are closed. */
static void end_closers(struct nfcm_channel *ch, u32 closes_put)
{
	struct nfcm_op *op, *next;

	lockdep_assert_held(&ch->mailbox->lock);
	list_for_each_entry_safe(op, next, &ch->closers, node) {
		if (op->flags & ~closes_put)
			continue;
		list_del_init(&op->node);
		nfcm_op_over(op, NFC_OK);
	}
}

/* Everything of one half ends, because it is closed. */
static void shut_half(struct nfcm_half *half, u8 why)
{
	struct nfcm_op *op, *next;

	lockdep_assert_held(&half->ch->mailbox->lock);
	if (why == NFCM_SHUT_HOST)
		nfcm_half_act(half, NFCM_SHUT);
	list_for_each_entry_safe(op, next, &half->queue, node) {
		nfcm_half_unqueue(half, op);
		nfcm_op_over(op, NFC_ECLOSED);
	}
	half->reserved = false;
	nfcm_half_fire(half, NFC_OK);
	if (why == NFCM_SHUT_HOST && half->core->held && !half->op)
		nfcm_receive_refuse(half, NULL);
	nfcm_half_stop(half, NFC_ECLOSED, 0);
	nfcm_half_push(half);
}

/* Halves that are closed for this reason. */
static u32 shut_already(const struct nfcm_channel *ch, u8 why)
{
	u32 halves = 0;
	int d;

	lockdep_assert_held(&ch->mailbox->lock);
	for (d = NFC_H2D; d <= NFC_D2H; d++)
		if (ch->half[d].shut & why)
			halves |= 1u << d;
	return halves;
}

/* Some halves are closed, by the host or by the device's process. */
void nfcm_channel_shut(struct nfcm_channel *ch, u32 halves, u8 why)
{
	int d;

	lockdep_assert_held(&ch->mailbox->lock);
	halves &= ~shut_already(ch, why);
	for (d = NFC_H2D; d <= NFC_D2H; d++)
		if (halves >> d & 1)
			ch->half[d].shut |= why;
	for (d = NFC_H2D; d <= NFC_D2H; d++)
		if (halves >> d & 1)
			shut_half(&ch->half[d], why);
	nfcm_channel_step(ch);
}

/*
 * Halves that are closed here and quiet, and whose CLOSE is still to be put. If
 * both are closed one CLOSE is put for both: a process that got one for a
 * single half could still take what is being withdrawn on the other.
 */
static u32 closable(struct nfcm_channel *ch)
{
	u32 halves = 0, shut = 0;
	int d;

	lockdep_assert_held(&ch->mailbox->lock);
	for (d = NFC_H2D; d <= NFC_D2H; d++) {
		if (ch->closes_put >> d & 1 ||
		    !(ch->half[d].shut & NFCM_SHUT_HOST))
			continue;
		shut |= 1u << d;
		if (nfcm_half_quiet(&ch->half[d]))
			halves |= 1u << d;
	}
	return shut == NFCM_BOTH && halves != NFCM_BOTH ? 0 : halves;
}

/* Put CLOSE for some halves; false if there is no room. */
static bool put_close(struct nfcm_channel *ch, u32 halves)
{
	struct nfc_close c = {
		.halves = cpu_to_le32(halves),
		.generation = cpu_to_le64(ch->core.generation),
	};
	struct nfc_slot slot;
	int d;

	lockdep_assert_held(&ch->mailbox->lock);
	memset(&slot, 0, sizeof(slot));
	memcpy(slot.payload, &c, sizeof(c));
	nfcm_half_header(&ch->half[NFC_D2H], &slot, NFC_TYPE_CLOSE,
			 NFC_PAYLOAD_SIZE, ch->core.generation);
	if (!nfcm_mailbox_put(ch->mailbox, &slot, NFCM_ROOM_URGENT)) {
		nfcm_half_wait_for_room(&ch->half[NFC_D2H], true);
		return false;
	}
	ch->closes_put |= halves;
	for (d = NFC_H2D; d <= NFC_D2H; d++)
		if (halves >> d & 1)
			nfcm_half_act(&ch->half[d], NFCM_PUT_CLOSE);
	if (ch->closes_put == NFCM_BOTH) {
		ch->core.last = true;
		nfcm_mailbox_park(ch, NFCM_BOTH);
		nfcm_escalation_start(&ch->escalation, ch);
	}
	return true;
}

/* Go on with a close, as far as the halves are quiet. */
void nfcm_channel_step(struct nfcm_channel *ch)
{
	u32 halves;

	lockdep_assert_held(&ch->mailbox->lock);
	if (ch->gone || ch->opening || ch->mailbox->dead)
		return;
	halves = closable(ch);
	if (halves && !put_close(ch, halves))
		return;
	if (ch->closes_put != NFCM_BOTH)
		end_closers(ch, ch->closes_put);
}

/* The device agreed that the subscription is over. */
void nfcm_channel_over(struct nfcm_channel *ch)
{
	lockdep_assert_held(&ch->mailbox->lock);
	nfcm_mailbox_park(ch, 0);
	nfcm_half_down(&ch->half[NFC_H2D], NFC_ECLOSED);
	nfcm_half_down(&ch->half[NFC_D2H], NFC_ECLOSED);
	drop_handle(ch);
	leave(ch);
	end_closers(ch, NFCM_BOTH);
}

/* In an ended epoch the handle is freed once both halves are closed. */
static void drop_closed(struct nfcm_channel *ch)
{
	lockdep_assert_held(&ch->mailbox->lock);
	if (ch->half[NFC_H2D].shut & ch->half[NFC_D2H].shut & NFCM_SHUT_HOST)
		drop_handle(ch);
}

/*
 * The epoch ended. The file keeps the handle until it closes it: operations on
 * it report the end of the epoch.
 */
void nfcm_channel_down(struct nfcm_channel *ch, u32 status)
{
	lockdep_assert_held(&ch->mailbox->lock);
	nfcm_half_down(&ch->half[NFC_H2D], status);
	nfcm_half_down(&ch->half[NFC_D2H], status);
	drop_closed(ch);
	leave(ch);
	end_closers(ch, NFCM_BOTH);
}

/*
 * Close halves for the file; op, if any, ends when they are closed. The caller
 * has a reference.
 */
void nfcm_channel_close(struct nfcm_channel *ch, struct nfcm_op *op)
{
	u32 halves = op ? op->flags & NFCM_BOTH : NFCM_BOTH;
	int d;

	lockdep_assert_held(&ch->mailbox->lock);
	if (ch->gone || ch->mailbox->dead) {
		for (d = NFC_H2D; d <= NFC_D2H; d++)
			if (halves >> d & 1)
				ch->half[d].shut |= NFCM_SHUT_HOST;
		if (ch->gone)
			drop_closed(ch);
		if (op)
			nfcm_op_over(op, NFC_OK);
		return;
	}
	if (op) {
		op->place = NFCM_PLACE_CLOSING;
		list_add_tail(&op->node, &ch->closers);
	}
	nfcm_channel_shut(ch, halves, NFCM_SHUT_HOST);
}
