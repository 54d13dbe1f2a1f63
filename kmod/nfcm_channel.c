// SPDX-License-Identifier: GPL-2.0-only
/* Channels: entering the life's table, closing half by half, leaving it. */
#include <linux/slab.h>

#include "nfcm_kmod.h"

/* Make the host's end of a channel; it is not in the table yet. */
struct nfcm_channel *nfcm_channel_new(struct nfcm_life *life, u32 id,
				      struct nfcm_file *file)
{
	struct nfcm_channel *ch = kzalloc(sizeof(*ch), GFP_KERNEL_ACCOUNT);

	if (!ch)
		return NULL;
	kref_init(&ch->ref);
	kref_get(&life->ref);
	ch->life = life;
	ch->box = &life->box[nfcm_layout_mailbox(&life->layout, id)];
	ch->id = id;
	ch->opening = true;
	INIT_LIST_HEAD(&ch->node);
	INIT_LIST_HEAD(&ch->closers);
	INIT_LIST_HEAD(&ch->ladder.node);
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

	if (ch->file)
		nfcm_file_put(ch->file);
	nfcm_life_put(ch->life);
	kfree(ch);
}

/* Must not hold box: the life may end with the last channel. */
void nfcm_channel_put(struct nfcm_channel *ch)
{
	kref_put(&ch->ref, channel_free);
}

/*
 * Enter the life's table, which takes a reference. -EBUSY if the id is in use,
 * -ENODEV if the life has ended.
 */
int nfcm_channel_enter(struct nfcm_channel *ch)
{
	int rc = xa_insert(&ch->life->channels, ch->id, ch, GFP_KERNEL);

	if (rc)
		return rc;
	kref_get(&ch->ref);
	nfcm_box_lock(ch->box);
	if (ch->box->dead) { /* the fence has passed here already */
		xa_erase(&ch->life->channels, ch->id);
		ch->gone = true;
		list_add_tail(&ch->node, &ch->box->retired);
		rc = -ENODEV;
	} else {
		list_add_tail(&ch->node, &ch->box->channels);
	}
	nfcm_box_unlock(ch->box);
	return rc;
}

/* Leave the life's table; its reference goes when the box is let go. Must hold box. */
static void leave(struct nfcm_channel *ch)
{
	if (ch->gone)
		return;
	ch->gone = true;
	xa_erase(&ch->life->channels, ch->id);
	nfcm_ladder_stop(&ch->ladder);
	list_move_tail(&ch->node, &ch->box->retired);
}

/* The same from outside, for a channel that did not open. */
void nfcm_channel_leave(struct nfcm_channel *ch)
{
	nfcm_box_lock(ch->box);
	leave(ch);
	nfcm_box_unlock(ch->box);
}

/*
 * The file's name for the channel ends. The table or the caller still has a
 * reference. Must hold box.
 */
static void drop_handle(struct nfcm_channel *ch)
{
	if (!ch->handle)
		return;
	xa_erase(&ch->file->channels, ch->handle);
	ch->handle = 0;
	nfcm_file_live(ch->file, -1);
	kref_put(&ch->ref, channel_free); /* never the last */
}

/* CLOSE operations end, as far as their halves are closed. Must hold box. */
static void end_closers(struct nfcm_channel *ch, u32 said)
{
	struct nfcm_op *op, *next;

	list_for_each_entry_safe(op, next, &ch->closers, node) {
		if (op->flags & ~said)
			continue;
		list_del_init(&op->node);
		nfcm_op_over(op, NFC_OK);
	}
}

/* Everything of one half ends, because it is closed. Must hold box. */
static void shut_half(struct nfcm_half *half, u8 why)
{
	struct nfcm_half_core *core = half->core;
	struct nfcm_op *op, *next;

	if (why == NFCM_SHUT_HOST)
		core->closed = true;
	list_for_each_entry_safe(op, next, &half->queue, node) {
		list_del_init(&op->node);
		nfcm_op_over(op, NFC_ECLOSED);
	}
	half->keeps = false;
	nfcm_half_fire(half, NFC_OK);
	if (why == NFCM_SHUT_HOST && core->held && !half->op)
		nfcm_receive_refuse(half, NULL);
	nfcm_half_stop(half, NFC_ECLOSED, 0);
	nfcm_half_push(half);
}

/* Halves that are closed for this reason. Must hold box. */
static u32 shut_already(const struct nfcm_channel *ch, u8 why)
{
	u32 halves = 0;
	int d;

	for (d = NFC_H2D; d <= NFC_D2H; d++)
		if (ch->half[d].shut & why)
			halves |= 1u << d;
	return halves;
}

/* Some halves are closed, by the host or by the device's process. Must hold box. */
void nfcm_channel_shut(struct nfcm_channel *ch, u32 halves, u8 why)
{
	int d;

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
 * Halves that are closed here, quiet, and not yet said to be. Both at once are
 * said at once: a process that heard of one alone could still take what is
 * being withdrawn on the other. Must hold box.
 */
static u32 sayable(struct nfcm_channel *ch)
{
	u32 halves = 0, shut = 0;
	int d;

	for (d = NFC_H2D; d <= NFC_D2H; d++) {
		if (ch->said >> d & 1 || !(ch->half[d].shut & NFCM_SHUT_HOST))
			continue;
		shut |= 1u << d;
		if (nfcm_half_quiet(&ch->half[d]))
			halves |= 1u << d;
	}
	return shut == NFCM_BOTH && halves != NFCM_BOTH ? 0 : halves;
}

/* Tell the device that some halves are not used any more. Must hold box. */
static bool say_close(struct nfcm_channel *ch, u32 halves)
{
	struct nfcm_half_core *core = &ch->core.half[NFC_D2H];
	struct nfc_close c = {
		.halves = cpu_to_le32(halves),
		.generation = cpu_to_le64(ch->core.generation),
	};
	struct nfc_slot slot;

	memset(&slot, 0, sizeof(slot));
	memcpy(slot.payload, &c, sizeof(c));
	nfcm_half_header(&ch->half[NFC_D2H], &slot, NFC_TYPE_CLOSE,
			 NFC_PAYLOAD_SIZE, ch->core.generation);
	if (!nfcm_box_put(ch->box, &slot, NFCM_ROOM_URGENT)) {
		nfcm_half_starve(&ch->half[NFC_D2H], true);
		return false;
	}
	ch->said |= halves;
	if (halves >> NFC_D2H & 1) /* the close answers what lies here */
		core->phase = NFCM_PHASE_IDLE;
	if (ch->said == NFCM_BOTH) {
		ch->core.last = true;
		nfcm_box_park(ch, NFCM_BOTH);
		nfcm_ladder_start(&ch->ladder, ch);
	}
	return true;
}

/* Go on with a close, as far as the halves are quiet. Must hold box. */
void nfcm_channel_step(struct nfcm_channel *ch)
{
	u32 halves;

	if (ch->gone || ch->opening || ch->box->dead)
		return;
	halves = sayable(ch);
	if (halves && !say_close(ch, halves))
		return;
	if (ch->said != NFCM_BOTH)
		end_closers(ch, ch->said);
}

/* The device agreed that the subscription is over. Must hold box. */
void nfcm_channel_over(struct nfcm_channel *ch)
{
	nfcm_box_park(ch, 0);
	nfcm_half_down(&ch->half[NFC_H2D], NFC_ECLOSED);
	nfcm_half_down(&ch->half[NFC_D2H], NFC_ECLOSED);
	drop_handle(ch);
	leave(ch);
	end_closers(ch, NFCM_BOTH);
}

/* Both halves closed on a channel that no device knows any more. Must hold box. */
static void bury(struct nfcm_channel *ch)
{
	if (ch->half[NFC_H2D].shut & ch->half[NFC_D2H].shut & NFCM_SHUT_HOST)
		drop_handle(ch);
}

/*
 * The life is over. The file keeps the handle, for operations that say so,
 * until it closes it. Must hold box.
 */
void nfcm_channel_down(struct nfcm_channel *ch, u32 status)
{
	nfcm_half_down(&ch->half[NFC_H2D], status);
	nfcm_half_down(&ch->half[NFC_D2H], status);
	bury(ch);
	leave(ch);
	end_closers(ch, NFCM_BOTH);
}

/*
 * Close halves for the file; op, if any, ends when they are closed. Must hold
 * box, and a reference.
 */
void nfcm_channel_close(struct nfcm_channel *ch, struct nfcm_op *op)
{
	u32 halves = op ? op->flags & NFCM_BOTH : NFCM_BOTH;
	int d;

	if (ch->gone || ch->box->dead) {
		for (d = NFC_H2D; d <= NFC_D2H; d++)
			if (halves >> d & 1)
				ch->half[d].shut |= NFCM_SHUT_HOST;
		if (ch->gone)
			bury(ch);
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
