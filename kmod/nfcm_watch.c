// SPDX-License-Identifier: GPL-2.0-only
/*
 * What needs time to pass: the heartbeats of both sides, answers that must
 * come, rings that were full, interrupts that were lost.
 */
#include <linux/io.h>

#include "nfcm_kmod.h"

enum {
	TICK_MS = 250, /* when nothing presses */
	HURRY_MS = 25, /* while an answer must come */
	STARVE_MS = 4, /* while somebody waits for room */
	CROWD_MS = 10000, /* for a device that answers, but others first */
	LOOKS = 4, /* that must see no beat before it is overdue */
};

/* Copy the heartbeat; false while the device writes it. */
static bool read_beat(struct nfcm_life *life, struct nfc_heartbeat *b)
{
	void __iomem *from = life->dev->area +
			     offsetof(struct nfc_area, heartbeat);
	u64 header, again;
	int i;

	for (i = 0; i < 4; i++) {
		header = readq(from);
		memcpy_fromio(b, from + offsetof(struct nfc_slot, payload),
			      sizeof(*b));
		again = readq(from);
		if (header == again &&
		    nfc_header_type(header) == NFC_TYPE_HEARTBEAT &&
		    nfc_header_sequence(header) ==
			    (le64_to_cpu(b->beat) & 0xffff))
			return true;
	}
	return false;
}

/* Look at the heartbeat; true if there is a new one. Must hold watch.lock. */
static bool look(struct nfcm_life *life)
{
	struct nfcm_watch *w = &life->watch;
	struct nfc_heartbeat b;

	if (w->dead || !read_beat(life, &b) || b.beat == w->last.beat)
		return false;
	w->last = b;
	w->seen = ktime_get();
	w->blank = 0;
	return true;
}

/* The number of the last heartbeat. Takes watch.lock; box may be held. */
u64 nfcm_watch_beat(struct nfcm_life *life)
{
	struct nfcm_watch *w = &life->watch;
	u64 beat;

	spin_lock(&w->lock);
	look(life);
	beat = le64_to_cpu(w->last.beat);
	spin_unlock(&w->lock);
	return beat;
}

/* How long a device may be silent. */
static u32 patience_ms(struct nfcm_life *life)
{
	return max(nfcm_param_silence_ms,
		   nfcm_param_beats * life->layout.beat_ms);
}

/* Is the heartbeat overdue? It counts looks too: a machine that stood still is no dead device. */
static bool overdue(struct nfcm_life *life)
{
	struct nfcm_watch *w = &life->watch;
	bool late;

	spin_lock(&w->lock);
	if (!look(life))
		w->blank++;
	late = w->blank > LOOKS &&
	       ktime_ms_delta(ktime_get(), w->seen) > patience_ms(life);
	spin_unlock(&w->lock);
	return late;
}

/*
 * One wait for an answer. A device that beats but does not answer is lost; one
 * that answers others first, because thousands ask at once, gets more time.
 * Time is counted in ticks that were seen to pass. Must hold box.
 */
static void climb(struct nfcm_ladder *l, u32 ms)
{
	struct nfcm_box *box = l->ch->box;
	u64 beat = nfcm_watch_beat(box->life);
	bool crowd = ktime_ms_delta(ktime_get(), l->start) < CROWD_MS;

	l->waited_ms += ms;
	if (l->waited_ms < nfcm_param_ladder_ms)
		return;
	if (l->taken != box->taken && crowd) {
		l->taken = box->taken;
		l->beat = beat;
		l->waited_ms = 0;
	} else if (l->waited_ms >= nfcm_param_silence_ms ||
		   (s64)(beat - l->beat) >= 2) {
		dev_err(&box->life->dev->dev,
			"channel %u: no answer in %lld ms\n", l->ch->id,
			ktime_ms_delta(ktime_get(), l->start));
		nfcm_life_fail(box->life, NFC_ERESET, "no answer");
	}
}

/*
 * One mailbox: take what an interrupt may have been lost for, let starving
 * halves try, climb the ladders. Returns when to look again.
 */
static u32 look_at_box(struct nfcm_box *box, u32 ms)
{
	struct nfcm_ladder *l, *next;
	u32 wait = TICK_MS;

	nfcm_box_drain_all(box);
	nfcm_box_lock(box);
	list_for_each_entry_safe(l, next, &box->ladders, node)
		climb(l, ms);
	nfcm_stall_look(box, ms);
	if (!list_empty(&box->ladders))
		wait = HURRY_MS;
	if (list_empty(&box->starved[0]) && list_empty(&box->starved[1])) {
		box->stuck_ms = 0;
	} else {
		box->stuck_ms = box->stuck == box->consumed ?
					box->stuck_ms + ms :
					0;
		box->stuck = box->consumed;
		wait = STARVE_MS;
		if (box->stuck_ms >= 2 * nfcm_param_silence_ms)
			nfcm_life_fail(box->life, NFC_ERESET,
				       "a mailbox that is not emptied");
	}
	nfcm_box_unlock(box);
	return wait;
}

/* Signs that the device gave up; all of them end the life. */
static void check_device(struct nfcm_life *life)
{
	struct nfcm_dev *dev = life->dev;
	u32 status = nfcm_hw_status(dev);

	if (nfcm_hw_gone(dev))
		nfcm_life_fail(life, NFC_ERESET, "the device is gone");
	else if ((status & NFC_PCI_STATUS_STATE) == NFC_DEVICE_FAULT)
		nfcm_life_fail(life, NFC_EFAULT, "the device is in fault");
	else if (status & NFC_PCI_STATUS_WATCHDOG)
		nfcm_life_fail(life, NFC_ERESET, "the device missed the host");
	else if ((status & NFC_PCI_STATUS_STATE) != NFC_DEVICE_READY)
		nfcm_life_fail(life, NFC_ERESET, "the device was reset");
	else if (overdue(life))
		nfcm_life_fail(life, NFC_ERESET, "no heartbeat");
}

/* Offers that the device had parked at its last heartbeat. Takes watch.lock. */
static u64 parked_offers(struct nfcm_watch *w)
{
	u64 parked;

	spin_lock(&w->lock);
	parked = le64_to_cpu(w->last.parked);
	spin_unlock(&w->lock);
	return parked;
}

static void tick(struct work_struct *work)
{
	struct nfcm_life *life = container_of(to_delayed_work(work),
					      struct nfcm_life, watch.work);
	struct nfcm_watch *w = &life->watch;
	ktime_t now = ktime_get();
	u32 ms, i, wait = TICK_MS;

	if (atomic_read(&life->down))
		return;
	spin_lock(&w->lock);
	w->hurry = false;
	spin_unlock(&w->lock);
	ms = (u32)clamp_t(s64, ktime_ms_delta(now, w->tick), 0, TICK_MS);
	w->tick = now;
	nfcm_hw_beat(life->dev);
	check_device(life);
	for (i = 0; i < life->boxes; i++)
		wait = min(wait, look_at_box(&life->box[i], ms));
	nfcm_stall_audit(life, parked_offers(w), ms);
	/* Does nothing if somebody hurried meanwhile. */
	queue_delayed_work(nfcm_life_wq, &w->work, msecs_to_jiffies(wait));
}

/*
 * Watch a life, until nfcm_watch_stop(). The work needs no reference: a life is
 * stopped before it is freed.
 */
void nfcm_watch_start(struct nfcm_life *life)
{
	struct nfcm_watch *w = &life->watch;

	spin_lock_init(&w->lock);
	INIT_DELAYED_WORK(&w->work, tick);
	w->seen = ktime_get();
	w->tick = w->seen;
	queue_delayed_work(nfcm_life_wq, &w->work, msecs_to_jiffies(TICK_MS));
}

/* Somebody waits: look sooner. Any context but hard interrupts. */
void nfcm_watch_hurry(struct nfcm_life *life)
{
	struct nfcm_watch *w = &life->watch;

	spin_lock(&w->lock);
	if (!w->dead && !w->hurry) {
		w->hurry = true;
		mod_delayed_work(nfcm_life_wq, &w->work,
				 msecs_to_jiffies(STARVE_MS));
	}
	spin_unlock(&w->lock);
}

/* Nobody looks any more. Sleeps. */
void nfcm_watch_stop(struct nfcm_life *life)
{
	struct nfcm_watch *w = &life->watch;

	spin_lock(&w->lock);
	w->dead = true;
	spin_unlock(&w->lock);
	cancel_delayed_work_sync(&w->work);
}

/* The last heartbeat, for NFCOMMS_IOC_HEALTH. */
void nfcm_watch_health(struct nfcm_life *life, struct nfcomms_health *h)
{
	struct nfcm_watch *w = &life->watch;

	spin_lock(&w->lock);
	look(life);
	h->beat = le64_to_cpu(w->last.beat);
	h->age_ns = ktime_to_ns(ktime_sub(ktime_get(), w->seen));
	h->diagnostic = le32_to_cpu(w->last.diagnostic);
	h->processes = le32_to_cpu(w->last.processes);
	h->messages = le64_to_cpu(w->last.messages);
	h->bytes = le64_to_cpu(w->last.bytes);
	h->device_dropped = le64_to_cpu(w->last.dropped);
	h->parked = le64_to_cpu(w->last.parked);
	spin_unlock(&w->lock);
}
