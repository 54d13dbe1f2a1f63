// SPDX-License-Identifier: GPL-2.0-only
/*
 * The rings of a mailbox. Everything that the device wrote is copied once and
 * classified by the copy; what is put is stored payload first, header last.
 */
#include <linux/io.h>
#include <linux/log2.h>
#include <linux/sched.h>

#include "nfcm_kmod.h"
#include "trace.h"

/* A place in the area of the BAR, or in the one that the device was given. */
static struct iosys_map place(const struct nfcm_epoch *epoch, u64 in_bar,
			      u64 in_host)
{
	struct iosys_map map;

	if (epoch->host_area)
		iosys_map_set_vaddr(&map, epoch->host_area + in_host);
	else
		iosys_map_set_vaddr_iomem(&map, epoch->dev->area + in_bar);
	return map;
}

/* Find what belongs to no mailbox, before the epoch is published. */
void nfcm_epoch_lay(struct nfcm_epoch *epoch)
{
	const struct nfcm_layout *l = &epoch->layout;

	epoch->beat = place(epoch, offsetof(struct nfc_area, heartbeat),
			    offsetof(struct nfc_host_area, heartbeat));
	epoch->park = place(epoch, l->park_offset,
			    nfc_host_park(l->mailboxes, l->slots, 0));
}

/* Find its part of the areas, before the epoch is published. */
static void lay(struct nfcm_mailbox *mailbox)
{
	const struct nfcm_epoch *epoch = mailbox->epoch;
	const struct nfcm_layout *l = &epoch->layout;
	u64 at = l->mailbox_offset + mailbox->index * l->mailbox_stride;
	u64 own = offsetof(struct nfc_host_area, mailbox) +
		  mailbox->index * sizeof(struct nfc_mailbox);
	u64 island = mailbox->island * sizeof(struct nfc_line);
	u64 h2d = at + sizeof(struct nfc_mailbox);

	mailbox->h2d = epoch->dev->area + h2d;
	mailbox->d2h = place(epoch, h2d + (u64)l->slots * NFC_SLOT_SIZE,
			     nfc_host_ring(l->slots, mailbox->index));
	mailbox->h2d_head = place(epoch,
				  at + offsetof(struct nfc_mailbox, h2d_head),
				  own + offsetof(struct nfc_mailbox, h2d_head));
	mailbox->d2h_head = place(epoch,
				  at + offsetof(struct nfc_mailbox, d2h_head),
				  own + offsetof(struct nfc_mailbox, d2h_head));
	mailbox->asleep = place(epoch,
				offsetof(struct nfc_area, island) + island,
				offsetof(struct nfc_host_area, island) + island);
}

/* Make a mailbox of an epoch that is laid, before it is published. */
void nfcm_mailbox_init(struct nfcm_epoch *epoch, u32 index)
{
	struct nfcm_layout *l = &epoch->layout;
	struct nfcm_mailbox *mailbox = &epoch->mailbox[index];

	mailbox->epoch = epoch;
	mailbox->index = index;
	mailbox->island = index / (l->mailboxes / l->islands);
	mailbox->shift = ilog2(l->slots);
	lay(mailbox);
	spin_lock_init(&mailbox->lock);
	INIT_LIST_HEAD(&mailbox->channels);
	INIT_LIST_HEAD(&mailbox->room[0]);
	INIT_LIST_HEAD(&mailbox->room[1]);
	INIT_LIST_HEAD(&mailbox->escalations);
	INIT_LIST_HEAD(&mailbox->moving);
	INIT_LIST_HEAD(&mailbox->offers);
	INIT_LIST_HEAD(&mailbox->ended);
	INIT_LIST_HEAD(&mailbox->pinning);
	INIT_LIST_HEAD(&mailbox->trimmed);
	INIT_LIST_HEAD(&mailbox->retired);
}

static u32 slots(const struct nfcm_mailbox *mailbox)
{
	return mailbox->epoch->layout.slots;
}

/*
 * Process context, no other mailbox held. Any lock but a leaf
 * may be held.
 */
void nfcm_mailbox_lock(struct nfcm_mailbox *mailbox) __acquires(&mailbox->lock)
{
	spin_lock(&mailbox->lock);
	mailbox->row = 0;
}

/*
 * Ring the island if it sleeps: it stored 1 and read its rings once more; the
 * host stored its slots and reads the word now.
 */
static void wake_island(struct nfcm_mailbox *mailbox)
{
	struct nfcm_dev *dev = mailbox->epoch->dev;

	lockdep_assert_held(&mailbox->lock);
	mailbox->published = false;
	mb(); /* SYNC: island park: slots before the word */
	if (nfcm_load(&mailbox->asleep, 0) != 1)
		return;
	if (mailbox->asleep.is_iomem) /* the other it clears itself */
		nfcm_store(&mailbox->asleep, 0);
	writel(1, dev->regs + NFC_REG_DOORBELL + 4 * mailbox->island);
	nfcm_count(dev, NFCM_COUNT_DOORBELLS, 1);
}

/* Work that was put off while the mailbox was locked. */
struct later {
	struct list_head ended, pinning, trimmed, retired;
};

/*
 * Pin for operations that need pages. The caller's own operation is last: its
 * memory may never be available, and others' must not wait for it.
 */
static void pin_later(struct list_head *pinning)
{
	struct nfcm_op *op, *next, *own = NULL;

	list_for_each_entry_safe(op, next, pinning, pin_node) {
		list_del_init(&op->pin_node);
		if (op->pins.pin_task == current) /* it starts one at a time */
			own = op;
		else
			nfcm_pins_queue(op);
	}
	if (own)
		nfcm_pins_run(own);
}

/* Do it. Nothing here touches the mailbox: the last operation may free its epoch. */
static void do_later(struct later *l)
{
	struct nfcm_channel *ch, *next_ch;
	struct nfcm_chunk *chunk, *next_chunk;
	struct nfcm_op *op, *next;

	list_for_each_entry_safe(chunk, next_chunk, &l->trimmed, node)
		nfcm_chunk_let_go(chunk);
	list_for_each_entry_safe(op, next, &l->ended, node) {
		list_del_init(&op->node);
		nfcm_op_finish(op);
	}
	list_for_each_entry_safe(ch, next_ch, &l->retired, node) {
		list_del_init(&ch->node);
		nfcm_channel_put(ch);
	}
	pin_later(&l->pinning);
}

/*
 * A park word was set: slots before it do not ring. Take them, and have
 * the watch take the rest if there is much.
 */
static void check_again(struct nfcm_mailbox *mailbox)
{
	lockdep_assert_held(&mailbox->lock);
	while (mailbox->recheck && !mailbox->dead) {
		mailbox->recheck = false;
		mb(); /* SYNC: channel park: the word before the ring */
		if (mailbox->row >= NFCM_BATCH ||
		    !nfcm_mailbox_drain(mailbox, NFCM_BATCH - mailbox->row))
			nfcm_watch_kick(mailbox->epoch);
	}
}

/*
 * Unlock the mailbox, and do what could not be done while it was locked: unmap
 * what was moved, finish operations that ended, pin pages for those that need
 * some. Process context.
 */
void nfcm_mailbox_unlock(struct nfcm_mailbox *mailbox) __releases(&mailbox->lock)
{
	struct later l;

	check_again(mailbox);
	if (mailbox->published && !mailbox->dead)
		wake_island(mailbox);
	list_replace_init(&mailbox->ended, &l.ended);
	list_replace_init(&mailbox->pinning, &l.pinning);
	list_replace_init(&mailbox->trimmed, &l.trimmed);
	list_replace_init(&mailbox->retired, &l.retired);
	spin_unlock(&mailbox->lock);
	do_later(&l);
}

/* A value that cannot be: a broken device, or one off the bus. */
static void impossible(struct nfcm_mailbox *mailbox, const char *why)
{
	lockdep_assert_held(&mailbox->lock);
	if (nfcm_hw_gone(mailbox->epoch->dev))
		nfcm_epoch_fail(mailbox->epoch, NFC_ERESET,
				"the device is gone");
	else
		nfcm_epoch_fail(mailbox->epoch, NFC_EFAULT, why);
	mailbox->dead = true;
}

/*
 * Do n more slots fit? The device's counter is read only when the ring seems
 * full, and believed only if it follows from what was put.
 */
static bool has_room(struct nfcm_mailbox *mailbox, u32 n, enum nfcm_room room)
{
	u32 limit = nfcm_room(slots(mailbox), room);
	u64 head;

	lockdep_assert_held(&mailbox->lock);
	if (mailbox->dead)
		return false;
	if (mailbox->tail - mailbox->consumed + n <= limit)
		return true;
	head = nfcm_load(&mailbox->h2d_head, 0);
	if (head - mailbox->consumed > mailbox->tail - mailbox->consumed) {
		impossible(mailbox, "more slots consumed than were put");
		return false;
	}
	mailbox->consumed = head;
	return mailbox->tail - head + n <= limit;
}

/* Store slot i. */
static void store(struct nfcm_mailbox *mailbox, u64 i,
		  const struct nfc_slot *slot)
{
	u32 mask = slots(mailbox) - 1;
	void __iomem *to = mailbox->h2d + (i & mask) * NFC_SLOT_SIZE;
	u64 header = le64_to_cpu(slot->header);

	lockdep_assert_held(&mailbox->lock);
	header |= nfcm_phase_bit(i, mailbox->shift) << NFC_HDR_PHASE_SHIFT;
	/* memcpy_toio() may store four bytes at a time. */
	__iowrite64_copy(to + offsetof(struct nfc_slot, payload), slot->payload,
			 ARRAY_SIZE(slot->payload));
	wmb(); /* the area is mapped write-combining */
	writeq(header, to); /* SYNC: slot */
}

/* Publish one message; false if there is no room. */
bool nfcm_mailbox_put(struct nfcm_mailbox *mailbox, const struct nfc_slot *slot,
		      enum nfcm_room room)
{
	lockdep_assert_held(&mailbox->lock);
	if (!has_room(mailbox, 1, room))
		return false;
	trace_nfcomms_slot_out(mailbox, slot);
	store(mailbox, mailbox->tail, slot);
	mailbox->tail++;
	mailbox->published = true;
	return true;
}

/* Publish two messages so that the device sees both at once. */
bool nfcm_mailbox_put_pair(struct nfcm_mailbox *mailbox,
			   const struct nfc_slot *first,
			   const struct nfc_slot *second)
{
	lockdep_assert_held(&mailbox->lock);
	if (!has_room(mailbox, 2, NFCM_ROOM_NORMAL))
		return false;
	trace_nfcomms_slot_out(mailbox, first);
	trace_nfcomms_slot_out(mailbox, second);
	store(mailbox, mailbox->tail + 1, second);
	store(mailbox, mailbox->tail, first);
	mailbox->tail += 2;
	mailbox->published = true;
	return true;
}

/* Publish how far d2h was consumed. */
static void publish(struct nfcm_mailbox *mailbox)
{
	lockdep_assert_held(&mailbox->lock);
	if (mailbox->reported == mailbox->taken || mailbox->dead)
		return;
	mailbox->reported = mailbox->taken;
	nfcm_store(&mailbox->d2h_head, mailbox->taken);
}

/*
 * Copy the next message: the device may write the slot again at any time, so
 * only the copy is used.
 */
static bool take(struct nfcm_mailbox *mailbox, struct nfc_slot *slot)
{
	u32 mask = slots(mailbox) - 1;
	size_t from = (mailbox->taken & mask) * NFC_SLOT_SIZE;
	u64 header = nfcm_load(&mailbox->d2h, from);
	u32 i;

	lockdep_assert_held(&mailbox->lock);
	if (nfc_header_phase(header) !=
	    nfcm_phase_bit(mailbox->taken, mailbox->shift))
		return false;
	if (header == U64_MAX) {
		impossible(mailbox, "a slot of all ones");
		return false;
	}
	slot->header = cpu_to_le64(header);
	for (i = 0; i < ARRAY_SIZE(slot->payload); i++)
		slot->payload[i] =
			cpu_to_le64(nfcm_load(&mailbox->d2h,
					      from + (i + 1) * sizeof(u64)));
	mailbox->taken++;
	if (++mailbox->row > mailbox->longest_row)
		mailbox->longest_row = mailbox->row;
	if (mailbox->taken - mailbox->reported > slots(mailbox) / 4)
		publish(mailbox);
	return true;
}

/*
 * Take what is there, at most so many messages, and publish the room it made.
 * Returns how many more it would have taken; 0 if there may be some.
 */
u32 nfcm_mailbox_drain(struct nfcm_mailbox *mailbox, u32 most)
{
	struct nfc_slot slot;

	lockdep_assert_held(&mailbox->lock);
	while (!mailbox->dead && take(mailbox, &slot)) {
		trace_nfcomms_slot_in(mailbox, &slot);
		nfcm_dispatch(mailbox, &slot);
		if (!--most)
			break;
	}
	publish(mailbox);
	return most;
}

/*
 * Drain from process context until the ring is dry or so many messages were taken,
 * unlocking the mailbox now and then. Returns how many messages there were.
 */
u32 nfcm_mailbox_drain_all(struct nfcm_mailbox *mailbox, u32 most)
{
	u64 before, n;
	bool dry;

	nfcm_mailbox_lock(mailbox);
	before = mailbox->taken;
	do {
		dry = nfcm_mailbox_drain(mailbox, NFCM_BATCH);
		nfcm_mailbox_room(mailbox);
		n = mailbox->taken - before;
		nfcm_mailbox_unlock(mailbox);
		if (dry || n >= most)
			return (u32)n;
		cond_resched();
		nfcm_mailbox_lock(mailbox);
	} while (true);
}

/* Let halves that found no room try again, in order. */
void nfcm_mailbox_room(struct nfcm_mailbox *mailbox)
{
	struct nfcm_half *half;
	int i;

	lockdep_assert_held(&mailbox->lock);
	for (i = 0; i < 2; i++) {
		LIST_HEAD(again);

		list_splice_init(&mailbox->room[i], &again);
		while (!list_empty(&again)) {
			half = list_first_entry(&again, struct nfcm_half, room);
			list_del_init(&half->room);
			nfcm_half_push(half);
			if (list_empty(&half->room))
				continue;
			/* No room yet: the others wait behind it. */
			list_splice_tail(&again, &mailbox->room[i]);
			break;
		}
	}
}

/* Set a channel's park word; the ring is drained once more after it. */
void nfcm_mailbox_park(struct nfcm_channel *ch, u32 bits)
{
	struct nfcm_epoch *epoch = ch->epoch;
	size_t at = ch->id * sizeof(nfc_le32);

	lockdep_assert_held(&ch->mailbox->lock);
	if (ch->mailbox->dead || ch->park == bits)
		return;
	if (bits & ~ch->park)
		ch->mailbox->recheck = true;
	ch->park = bits;
	if (epoch->park.is_iomem)
		writel(bits, epoch->park.vaddr_iomem + at);
	else
		WRITE_ONCE(*(__le32 *)(epoch->park.vaddr + at),
			   cpu_to_le32(bits));
}

/*
 * The epoch ended: nothing touches the area any more, every operation ends. Only
 * the fence calls it, when DMA is quiet. No locks.
 */
void nfcm_mailbox_end(struct nfcm_mailbox *mailbox, u32 status)
{
	struct nfcm_channel *ch, *next;

	nfcm_mailbox_lock(mailbox);
	mailbox->dead = true;
	list_for_each_entry_safe(ch, next, &mailbox->channels, node)
		nfcm_channel_down(ch, status);
	nfcm_mailbox_unlock(mailbox);
}
