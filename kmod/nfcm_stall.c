// SPDX-License-Identifier: GPL-2.0-only
/*
 * The device's duties beside its heartbeat: move transfers on, and have every
 * offer that waits for its target. See docs/design/0010-progress.md.
 */
#include "nfcm_kmod.h"

enum {
	COMPARE_MS = 250, /* between two comparisons with the heartbeat */
	VISITS = 4096, /* offers of a mailbox that one tick visits … */
	PROBES = 256, /* … and of those it recalls */
	DOUBLINGS = 6, /* doublings of the wait of an offer that was recalled */
};

/* How long a device that beats may let a transfer stand still. */
static u64 limit_ms(const struct nfcm_epoch *epoch)
{
	const struct nfcm_limits *l = &epoch->dev->limits;

	return nfcm_layout_patience(&epoch->layout, l->stall_timeout_ms,
				    l->heartbeat_misses);
}

/*
 * The work that a half waits for. A transfer whose next list may be sent is the
 * host's to move: its pages are not pinned yet, or the ring is full.
 */
static u8 wait_of(const struct nfcm_half *half)
{
	const struct nfcm_half_core *core = half->core;
	const struct nfcm_ledger *l = &core->ledger;
	u64 k;

	lockdep_assert_held(&half->ch->mailbox->lock);
	if (half->pending || !half->op)
		return NFCM_WAIT_NOTHING;
	if (core->state == NFCM_STATE_MOVING) {
		if (l->aborting)
			return NFCM_WAIT_NOTHING;
		if (!l->ready && !core->recall)
			return NFCM_WAIT_TARGET;
		return nfcm_ledger_next(l, &k) ? NFCM_WAIT_NOTHING :
						 NFCM_WAIT_MOVE;
	}
	if (core->direction == NFC_D2H) /* it has offered, and got pages */
		return core->state == NFCM_STATE_GIVEN && !half->op->cause ?
			       NFCM_WAIT_MOVE :
			       NFCM_WAIT_NOTHING;
	if ((core->state == NFCM_STATE_OFFERED ||
	     core->state == NFCM_STATE_GIVEN) &&
	    !core->recall)
		return NFCM_WAIT_TARGET;
	return NFCM_WAIT_NOTHING;
}

/* The half was removed from its list. */
void nfcm_stall_forget(struct nfcm_half *half)
{
	lockdep_assert_held(&half->ch->mailbox->lock);
	if (half->wait == NFCM_WAIT_TARGET)
		nfcm_half_mailbox(half)->offered--;
	half->wait = NFCM_WAIT_NOTHING;
	list_del_init(&half->waits);
}

/* Follow what the half waits for; after every change. */
void nfcm_stall_track(struct nfcm_half *half)
{
	struct nfcm_mailbox *mailbox = nfcm_half_mailbox(half);
	u8 wait = mailbox->dead ? NFCM_WAIT_NOTHING : wait_of(half);

	lockdep_assert_held(&half->ch->mailbox->lock);
	if (wait == half->wait && half->wait_id == half->core->id)
		return;
	nfcm_stall_forget(half);
	half->wait = wait;
	half->wait_id = half->core->id;
	half->idle_ms = 0;
	half->since = mailbox->clock_ms;
	if (wait == NFCM_WAIT_MOVE) {
		list_add_tail(&half->waits, &mailbox->moving);
	} else if (wait == NFCM_WAIT_TARGET) {
		list_add_tail(&half->waits, &mailbox->offers);
		mailbox->offered++;
	}
}

/* Some time was seen to pass: transfers that did not move on are aborted. */
void nfcm_stall_tick(struct nfcm_mailbox *mailbox, u32 ms)
{
	struct nfcm_half *half, *next;

	lockdep_assert_held(&mailbox->lock);
	mailbox->clock_ms += ms;
	list_for_each_entry_safe(half, next, &mailbox->moving, waits) {
		half->idle_ms += ms;
		if (half->idle_ms < limit_ms(mailbox->epoch))
			continue;
		dev_warn_ratelimited(&mailbox->epoch->dev->dev,
				     "channel %u: a transfer stood still for %u ms\n",
				     half->ch->id, half->idle_ms);
		nfcm_half_stop(half, NFC_ESTALLED, 0);
		nfcm_half_push(half);
	}
}

/* Recall the offer to find out if the device has it. */
static void probe(struct nfcm_half *half)
{
	lockdep_assert_held(&half->ch->mailbox->lock);
	half->probing = true;
	nfcm_half_set_pending(half, NFC_TYPE_WITHDRAW, 0, 0);
	nfcm_half_push(half);
}

/*
 * Has the offer waited so long that it is recalled? One that was recalled
 * before is left alone longer, so that the device's own time-outs end
 * first.
 */
static bool waited_enough(struct nfcm_half *half, u64 limit)
{
	u64 waited = nfcm_half_mailbox(half)->clock_ms - half->since;

	lockdep_assert_held(&half->ch->mailbox->lock);
	return waited >= limit << min_t(u32, half->op->probes, DOUBLINGS);
}

/*
 * Begin a pass of a mailbox, or continue with it: a visited half moves to the
 * end of the list. True if more are to be visited.
 */
static bool probe_mailbox(struct nfcm_mailbox *mailbox, u64 limit, bool begin)
{
	u32 visits = 0, probing = 0;
	struct nfcm_half *half;
	bool more;

	nfcm_mailbox_lock(mailbox);
	if (begin)
		mailbox->unvisited = mailbox->offered;
	for (; mailbox->unvisited && visits < VISITS && probing < PROBES;
	     visits++) {
		half = list_first_entry_or_null(&mailbox->offers,
						struct nfcm_half, waits);
		if (!half) { /* they were answered meanwhile */
			mailbox->unvisited = 0;
			break;
		}
		mailbox->unvisited--;
		list_move_tail(&half->waits, &mailbox->offers);
		if (waited_enough(half, limit)) {
			probe(half);
			probing++;
		}
	}
	more = mailbox->unvisited;
	nfcm_mailbox_unlock(mailbox);
	return more;
}

/* Offers whose answer is still missing. */
static u64 offered(struct nfcm_epoch *epoch)
{
	u64 sum = 0;
	u32 i;

	for (i = 0; i < epoch->mailboxes; i++)
		sum += READ_ONCE(epoch->mailbox[i].offered);
	return sum;
}

/*
 * Compare the offers that wait with those that the device has parked, as the
 * last heartbeat counts. If it had fewer in most samples of one limit it lost
 * some, and those that have waited so long are recalled. Only the watch's work
 * calls it; locks the mailboxes one after the other.
 */
void nfcm_stall_audit(struct nfcm_epoch *epoch, u64 parked, u32 ms)
{
	struct nfcm_audit *a = &epoch->audit;
	bool begin = false, more = false;
	u64 limit = limit_ms(epoch);
	u32 i;

	a->ms += ms;
	if (a->ms < COMPARE_MS)
		return;
	a->spent_ms += a->ms;
	a->ms = 0;
	a->samples++;
	if (offered(epoch) > parked)
		a->few++;
	if (a->spent_ms >= limit) {
		begin = 2 * a->few > a->samples;
		a->spent_ms = 0;
		a->samples = 0;
		a->few = 0;
	}
	if (!begin && !a->probing)
		return;
	for (i = 0; i < epoch->mailboxes; i++)
		more |= probe_mailbox(&epoch->mailbox[i], limit, begin);
	a->probing = more;
}
