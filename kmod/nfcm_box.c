// SPDX-License-Identifier: GPL-2.0-only
/*
 * The rings of a mailbox. Everything that the device wrote is copied once and
 * judged by the copy; what is put is stored payload first, header last.
 */
#include <linux/io.h>
#include <linux/log2.h>
#include <linux/sched.h>

#include "nfcm_kmod.h"
#include "trace.h"

/* Lay a box over its part of the area, before anybody else knows the life. */
void nfcm_box_init(struct nfcm_life *life, u32 index)
{
	struct nfcm_layout *l = &life->layout;
	struct nfcm_box *box = &life->box[index];
	void __iomem *area = life->dev->area;
	void __iomem *at = area + l->box_offset + index * l->box_stride;

	box->life = life;
	box->index = index;
	box->island = index / (l->mailboxes / l->islands);
	box->shift = ilog2(l->slots);
	box->h2d_head = at + offsetof(struct nfc_mailbox, h2d_head);
	box->d2h_head = at + offsetof(struct nfc_mailbox, d2h_head);
	box->h2d = at + sizeof(struct nfc_mailbox);
	box->d2h = box->h2d + (u64)l->slots * NFC_SLOT_SIZE;
	box->asleep = area + offsetof(struct nfc_area, island) +
		      box->island * sizeof(struct nfc_line);
	spin_lock_init(&box->lock);
	INIT_LIST_HEAD(&box->channels);
	INIT_LIST_HEAD(&box->starved[0]);
	INIT_LIST_HEAD(&box->starved[1]);
	INIT_LIST_HEAD(&box->ladders);
	INIT_LIST_HEAD(&box->moving);
	INIT_LIST_HEAD(&box->offers);
	INIT_LIST_HEAD(&box->ended);
	INIT_LIST_HEAD(&box->pinning);
	INIT_LIST_HEAD(&box->trimmed);
	INIT_LIST_HEAD(&box->retired);
}

static u32 slots(const struct nfcm_box *box)
{
	return box->life->layout.slots;
}

/*
 * Process context, no other box held: nobody holds two. Any lock but a leaf
 * may be held.
 */
void nfcm_box_lock(struct nfcm_box *box) __acquires(&box->lock)
{
	spin_lock(&box->lock);
}

/*
 * Ring the island if it sleeps: it stored 1 and looked at its rings once more;
 * the host stored its slots and looks now. Must hold box.
 */
static void wake_island(struct nfcm_box *box)
{
	struct nfcm_dev *dev = box->life->dev;

	box->published = false;
	mb(); /* SYNC: island park: slots before the look */
	if (readq(box->asleep) != 1)
		return;
	writeq(0, box->asleep);
	writel(1, dev->regs + NFC_REG_DOORBELL + 4 * box->island);
	nfcm_count(dev, NFCM_COUNT_DOORBELLS, 1);
}

/* What was put off while the box was held. */
struct later {
	struct list_head ended, pinning, trimmed, retired;
};

/* Do it. Nothing here touches the box: its life may end with an operation. */
static void do_later(struct later *l)
{
	struct nfcm_channel *ch, *next_ch;
	struct nfcm_chunk *chunk, *next_chunk;
	struct nfcm_op *op, *next;

	list_for_each_entry_safe(chunk, next_chunk, &l->trimmed, node) {
		op = chunk->op;
		nfcm_chunk_free(chunk);
		nfcm_op_release_hold(op);
	}
	list_for_each_entry_safe(op, next, &l->ended, node) {
		list_del_init(&op->node);
		nfcm_op_finish(op);
	}
	list_for_each_entry_safe(op, next, &l->pinning, pin_node) {
		list_del_init(&op->pin_node);
		if (op->pins.lender == current)
			nfcm_pins_run(op);
		else
			queue_work(nfcm_pin_wq, &op->pins.work);
	}
	list_for_each_entry_safe(ch, next_ch, &l->retired, node) {
		list_del_init(&ch->node);
		nfcm_channel_put(ch);
	}
}

/*
 * Let go of the box, and do what could not be done while it was held: unmap
 * what was moved, finish operations that ended, pin pages for those that want
 * some. Process context.
 */
void nfcm_box_unlock(struct nfcm_box *box) __releases(&box->lock)
{
	struct later l;

	while (box->recheck && !box->dead) {
		box->recheck = false;
		mb(); /* SYNC: channel park: the word before the look */
		nfcm_box_drain(box, slots(box));
	}
	if (box->published && !box->dead)
		wake_island(box);
	list_replace_init(&box->ended, &l.ended);
	list_replace_init(&box->pinning, &l.pinning);
	list_replace_init(&box->trimmed, &l.trimmed);
	list_replace_init(&box->retired, &l.retired);
	spin_unlock(&box->lock);
	do_later(&l);
}

/* All ones where they make no sense: is anybody there? Must hold box. */
static void nonsense(struct nfcm_box *box, const char *why)
{
	if (nfcm_hw_gone(box->life->dev))
		nfcm_life_fail(box->life, NFC_ERESET, "the device is gone");
	else
		nfcm_life_fail(box->life, NFC_EFAULT, why);
	box->dead = true;
}

/*
 * Do n more slots fit? The device's counter is read only when the ring seems
 * full, and believed only if it follows from what was put. Must hold box.
 */
static bool has_room(struct nfcm_box *box, u32 n, enum nfcm_room room)
{
	u32 limit = nfcm_room(slots(box), room);
	u64 head;

	if (box->dead)
		return false;
	if (box->tail - box->consumed + n <= limit)
		return true;
	head = readq(box->h2d_head);
	if (head - box->consumed > box->tail - box->consumed) {
		nonsense(box, "more slots consumed than were put");
		return false;
	}
	box->consumed = head;
	return box->tail - head + n <= limit;
}

/* Store slot i. Must hold box. */
static void store(struct nfcm_box *box, u64 i, const struct nfc_slot *slot)
{
	u32 mask = slots(box) - 1;
	void __iomem *to = box->h2d + (i & mask) * NFC_SLOT_SIZE;
	u64 header = le64_to_cpu(slot->header);

	trace_nfcomms_slot_out(box->index, slot);
	header |= nfcm_phase_bit(i, box->shift) << NFC_HDR_PHASE_SHIFT;
	memcpy_toio(to + offsetof(struct nfc_slot, payload), slot->payload,
		    sizeof(slot->payload));
	/* writeq() follows all stores to the device before it. SYNC: slot */
	writeq(header, to);
}

/* Publish one message; false if there is no room. Must hold box. */
bool nfcm_box_put(struct nfcm_box *box, const struct nfc_slot *slot,
		  enum nfcm_room room)
{
	if (!has_room(box, 1, room))
		return false;
	store(box, box->tail, slot);
	box->tail++;
	box->published = true;
	return true;
}

/* Publish two messages so that the device sees both at once. Must hold box. */
bool nfcm_box_put_pair(struct nfcm_box *box, const struct nfc_slot *first,
		       const struct nfc_slot *second)
{
	if (!has_room(box, 2, NFCM_ROOM_NORMAL))
		return false;
	store(box, box->tail + 1, second);
	store(box, box->tail, first);
	box->tail += 2;
	box->published = true;
	return true;
}

/* Tell the device how far d2h was consumed. Must hold box. */
static void publish(struct nfcm_box *box)
{
	if (box->told == box->taken || box->dead)
		return;
	box->told = box->taken;
	writeq(box->taken, box->d2h_head);
}

/*
 * Copy the next message: the device may write the slot again at any time, so
 * only the copy is looked at. Must hold box.
 */
static bool take(struct nfcm_box *box, struct nfc_slot *slot)
{
	u32 mask = slots(box) - 1;
	void __iomem *from = box->d2h + (box->taken & mask) * NFC_SLOT_SIZE;
	u64 header = readq(from); /* SYNC: slot */

	if (nfc_header_phase(header) != nfcm_phase_bit(box->taken, box->shift))
		return false;
	if (header == U64_MAX) {
		nonsense(box, "a slot of all ones");
		return false;
	}
	slot->header = cpu_to_le64(header);
	memcpy_fromio(slot->payload, from + offsetof(struct nfc_slot, payload),
		      sizeof(slot->payload));
	box->taken++;
	if (box->taken - box->told > slots(box) / 4)
		publish(box);
	return true;
}

/*
 * Take what is there, at most so many messages, and publish the room it made.
 * False if there may be more. Must hold box.
 */
bool nfcm_box_drain(struct nfcm_box *box, u32 most)
{
	struct nfc_slot slot;

	while (!box->dead && take(box, &slot)) {
		trace_nfcomms_slot_in(box->index, &slot);
		nfcm_dispatch(box, &slot);
		if (!--most)
			break;
	}
	publish(box);
	return most;
}

/*
 * Drain from process context until the ring is dry, letting go of the box now
 * and then. A device that never stops does not keep the caller for ever.
 * Returns how many messages there were.
 */
u32 nfcm_box_drain_all(struct nfcm_box *box)
{
	enum { BATCH = 32 };
	u64 before, n;
	bool dry;

	nfcm_box_lock(box);
	before = box->taken;
	do {
		dry = nfcm_box_drain(box, BATCH);
		nfcm_box_feed_starved(box);
		n = box->taken - before;
		nfcm_box_unlock(box);
		if (dry || n >= slots(box))
			return (u32)n;
		cond_resched();
		nfcm_box_lock(box);
	} while (true);
}

/* Let halves that found no room try again, in order. Must hold box. */
void nfcm_box_feed_starved(struct nfcm_box *box)
{
	struct nfcm_half *half;
	int i;

	for (i = 0; i < 2; i++) {
		LIST_HEAD(again);

		list_splice_init(&box->starved[i], &again);
		while (!list_empty(&again)) {
			half = list_first_entry(&again, struct nfcm_half,
						starved);
			list_del_init(&half->starved);
			nfcm_half_fed(half);
			if (list_empty(&half->starved))
				continue;
			/* No room yet: the others wait behind it. */
			list_splice_tail(&again, &box->starved[i]);
			break;
		}
	}
}

/* Set bits of a channel's park word, and look at the ring again. Must hold box. */
void nfcm_box_park(struct nfcm_channel *ch, u32 bits)
{
	struct nfcm_life *life = ch->life;

	if (ch->box->dead || ch->park == bits)
		return;
	if (bits & ~ch->park)
		ch->box->recheck = true;
	ch->park = bits;
	writel(bits, life->dev->area + life->layout.park_offset + 4ull * ch->id);
}

/*
 * The life is over: nothing touches the area any more, every call is told. Only
 * the fence calls it, when DMA is quiet. No locks.
 */
void nfcm_box_kill(struct nfcm_box *box, u32 status)
{
	struct nfcm_channel *ch, *next;

	nfcm_box_lock(box);
	box->dead = true;
	list_for_each_entry_safe(ch, next, &box->channels, node)
		nfcm_channel_down(ch, status);
	nfcm_box_unlock(box);
}
