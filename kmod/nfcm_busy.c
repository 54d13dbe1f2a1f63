// SPDX-License-Identifier: GPL-2.0-only
/*
 * Busy polling: a file may request that its waits poll the rings for a while
 * before they sleep. A message that arrives meanwhile needs no thread of an
 * interrupt and no wake-up.
 */
#include <linux/sched/signal.h>

#include "nfcm_kmod.h"

/* Is there what the wait is for? */
static bool came(struct nfcm_file *file, struct nfcm_op *called)
{
	return called ? completion_done(&called->done) :
			!list_empty_careful(&file->done);
}

/*
 * Take what is in the mailbox of a called operation, or in those of the file's
 * channels.
 */
static void look(struct nfcm_epoch *epoch, struct nfcm_file *file,
		 struct nfcm_op *called)
{
	u32 i;

	if (called) {
		nfcm_mailbox_drain_all(called->ch->mailbox, 1);
		return;
	}
	for_each_set_bit(i, file->mailboxes, epoch->mailboxes)
		nfcm_mailbox_drain_all(&epoch->mailbox[i], 1);
}

/*
 * Nobody else needs the processor or the caller, the epoch continues, and there
 * is time.
 */
static bool may_go_on(struct nfcm_epoch *epoch, u64 end)
{
	return !need_resched() && !signal_pending(current) &&
	       !atomic_read(&epoch->down) && ktime_get_ns() < end;
}

static void poll_rings(struct nfcm_epoch *epoch, struct nfcm_file *file,
		       struct nfcm_op *called, u32 us)
{
	u64 end = ktime_get_ns() + (u64)us * NSEC_PER_USEC;

	do {
		look(epoch, file, called);
		if (came(file, called)) {
			nfcm_count(file->dev, NFCM_COUNT_BUSY_POLLED, 1);
			return;
		}
		cpu_relax();
	} while (may_go_on(epoch, end));
}

/*
 * Poll for an operation of a channel, or for any completion of the file, for
 * which the caller is about to wait. Poll as long as the file asks for and the
 * device allows. Rings in the BAR are left alone: each look would cross the
 * bus. No locks.
 */
void nfcm_busy_wait(struct nfcm_file *file, struct nfcm_op *called)
{
	u32 us = min(READ_ONCE(file->busy_poll_us),
		     READ_ONCE(file->dev->limits.busy_poll_max));
	struct nfcm_epoch *epoch;

	if (!us || came(file, called) || !READ_ONCE(file->inflight))
		return;
	epoch = nfcm_epoch_get(file->dev);
	if (!epoch)
		return;
	if (epoch->host_area && (!called || called->ch->epoch == epoch))
		poll_rings(epoch, file, called, us);
	nfcm_epoch_put(epoch);
}
