// SPDX-License-Identifier: GPL-2.0-only
/*
 * Work that depends on time: the heartbeats of both sides, answers that must
 * arrive, rings that were full, interrupts that were lost.
 */
#include "nfcm_kmod.h"

enum {
	TICK_MS = 250, /* when nothing waits */
	ANSWER_MS = 25, /* while an answer must arrive */
	TAKE = 256, /* messages of a mailbox at one tick, of a device that never stops */
	CROWD_MS = 10000, /* for a device that answers, but others first */
};

/*
 * One wait for an answer. A device that beats but does not answer is lost. One
 * that does not beat either may wait for a processor: that is check_device()'s
 * to find. An island may wait as well, while others beat: it has the time of a
 * heartbeat to take what asks, and then as long to answer as any. One that
 * answers others first, because thousands of them wait, gets more time. Time is
 * counted in ticks that were seen to pass. The heartbeats were counted before
 * the ring was read: what the device put before them has been taken.
 */
static void escalate(struct nfcm_escalation *l, u64 heartbeats, u32 ms)
{
	struct nfcm_mailbox *mailbox = l->ch->mailbox;
	const struct nfcm_limits *limits = &mailbox->epoch->dev->limits;
	s64 age = ktime_ms_delta(ktime_get(), l->start);

	lockdep_assert_held(&mailbox->lock);
	ms = min_t(s64, ms, age); /* it may be younger than the tick */
	if (nfcm_load(&mailbox->h2d_head, 0) >= l->asked) {
		if (l->look) {
			nfcm_escalation_stop(l, l->ch);
			return;
		}
	} else if (l->untaken_ms < limits->heartbeat_timeout_ms) {
		l->heartbeats = heartbeats;
		l->untaken_ms += ms;
		l->waited_ms = 0;
		return;
	}
	l->waited_ms += ms;
	if (l->waited_ms < limits->cancel_timeout_ms)
		return;
	if (l->taken != mailbox->taken && age < CROWD_MS) {
		l->taken = mailbox->taken;
		l->heartbeats = nfcm_watch_heartbeats(mailbox->epoch);
		l->waited_ms = 0;
		l->untaken_ms = 0;
	} else if ((s64)(heartbeats - l->heartbeats) >= 2) {
		dev_err(&mailbox->epoch->dev->dev,
			"channel %u: no answer in %lld ms\n", l->ch->id, age);
		nfcm_epoch_fail(mailbox->epoch, NFC_ERESET, "no answer");
	}
}

/*
 * One mailbox: take what an interrupt may have been lost for, let halves that
 * wait for room try, escalate. Returns the time to the next tick.
 */
static u32 check_mailbox(struct nfcm_mailbox *mailbox, u64 heartbeats, u32 ms)
{
	struct nfcm_escalation *l, *next;
	u32 wait = TICK_MS;

	if (nfcm_mailbox_drain_all(mailbox, TAKE) >= TAKE)
		wait = NFCM_ROOM_MS;
	nfcm_mailbox_lock(mailbox);
	list_for_each_entry_safe(l, next, &mailbox->escalations, node)
		escalate(l, heartbeats, ms);
	nfcm_stall_tick(mailbox, ms);
	if (!list_empty(&mailbox->escalations))
		wait = min_t(u32, wait, ANSWER_MS);
	if (list_empty(&mailbox->room[0]) && list_empty(&mailbox->room[1])) {
		mailbox->stuck_ms = 0;
	} else {
		mailbox->stuck_ms = mailbox->stuck == mailbox->consumed ?
					    mailbox->stuck_ms + ms :
					    0;
		mailbox->stuck = mailbox->consumed;
		wait = NFCM_ROOM_MS;
		if (mailbox->stuck_ms / 2 >=
		    mailbox->epoch->dev->limits.heartbeat_timeout_ms)
			nfcm_epoch_fail(mailbox->epoch, NFC_ERESET,
					"a mailbox that is not emptied");
	}
	nfcm_mailbox_unlock(mailbox);
	return wait;
}

/* Signs that the device gave up; all of them end the epoch. */
static void check_device(struct nfcm_epoch *epoch)
{
	struct nfcm_dev *dev = epoch->dev;
	u32 status = nfcm_hw_status(dev);

	if (nfcm_hw_gone(dev))
		nfcm_epoch_fail(epoch, NFC_ERESET, "the device is gone");
	else if ((status & NFC_PCI_STATUS_STATE) == NFC_DEVICE_FAULT)
		nfcm_epoch_fail(epoch, NFC_EFAULT, "the device is in fault");
	else if (status & NFC_PCI_STATUS_WATCHDOG)
		nfcm_epoch_fail(epoch, NFC_ERESET, "the device missed the host");
	else if ((status & NFC_PCI_STATUS_STATE) != NFC_DEVICE_READY)
		nfcm_epoch_fail(epoch, NFC_ERESET, "the device was reset");
	else if (nfcm_watch_overdue(epoch))
		nfcm_epoch_fail(epoch, NFC_ERESET, "no heartbeat");
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

/* Heartbeats that check_device() has seen. Takes watch.lock. */
static u64 heartbeats_seen(struct nfcm_watch *w)
{
	u64 heartbeats;

	spin_lock(&w->lock);
	heartbeats = w->heartbeats;
	spin_unlock(&w->lock);
	return heartbeats;
}

static void tick(struct work_struct *work)
{
	struct nfcm_epoch *epoch = container_of(to_delayed_work(work),
						struct nfcm_epoch, watch.work);
	struct nfcm_watch *w = &epoch->watch;
	ktime_t now = ktime_get();
	u32 ms, i, wait = TICK_MS;
	u64 heartbeats;

	if (atomic_read(&epoch->down))
		return;
	spin_lock(&w->lock);
	w->kicked = false;
	spin_unlock(&w->lock);
	ms = (u32)clamp_t(s64, ktime_ms_delta(now, w->tick), 0, TICK_MS);
	w->tick = now;
	nfcm_hw_beat(epoch->dev);
	check_device(epoch);
	heartbeats = heartbeats_seen(w);
	for (i = 0; i < epoch->mailboxes; i++)
		wait = min(wait,
			   check_mailbox(&epoch->mailbox[i], heartbeats, ms));
	nfcm_stall_audit(epoch, parked_offers(w), ms);
	/* Does nothing if it was kicked meanwhile. */
	queue_delayed_work(nfcm_wq, &w->work, msecs_to_jiffies(wait));
}

/*
 * Watch an epoch, until nfcm_watch_stop(). The work needs no reference: it is
 * stopped before the epoch is freed.
 */
void nfcm_watch_start(struct nfcm_epoch *epoch)
{
	struct nfcm_watch *w = &epoch->watch;

	spin_lock_init(&w->lock);
	INIT_DELAYED_WORK(&w->work, tick);
	w->seen = ktime_get();
	w->tick = w->seen;
	w->looked = ktime_to_ns(w->seen);
	w->written = w->looked;
	queue_delayed_work(nfcm_wq, &w->work, msecs_to_jiffies(TICK_MS));
}

/* No tick runs or arrives any more. Sleeps. */
void nfcm_watch_stop(struct nfcm_epoch *epoch)
{
	struct nfcm_watch *w = &epoch->watch;

	spin_lock(&w->lock);
	w->dead = true;
	spin_unlock(&w->lock);
	cancel_delayed_work_sync(&w->work);
}
