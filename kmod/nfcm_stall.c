// SPDX-License-Identifier: GPL-2.0-only
/*
 * What the device owes although it beats: that a transfer moves on, and that it
 * has every offer which waits for its target. See docs/design/0010-progress.md.
 */
#include "nfcm_kmod.h"

enum {
	LOOK_MS = 250, /* between two comparisons with the heartbeat */
	VISITS = 4096, /* offers of a mailbox that one look visits … */
	ASKS = 256, /* … and of those it asks back */
	ASKED_MOST = 6, /* doublings of the wait of one that was asked back */
};

/* How long a device that beats may let a transfer stand still. */
static u32 limit_ms(const struct nfcm_life *life)
{
	return max(nfcm_param_stall_ms, nfcm_param_beats * life->layout.beat_ms);
}

/*
 * What a half waits for. A transfer whose next list may go is the host's to
 * move: its pages are not pinned yet, or the ring is full. Must hold box.
 */
static u8 wait_of(const struct nfcm_half *half)
{
	const struct nfcm_half_core *core = half->core;
	const struct nfcm_ledger *l = &core->ledger;
	u64 k;

	if (half->due || !half->op)
		return NFCM_WAIT_NOTHING;
	if (core->phase == NFCM_PHASE_MOVING) {
		if (l->aborting)
			return NFCM_WAIT_NOTHING;
		if (!l->ready && !core->recall)
			return NFCM_WAIT_TARGET;
		return nfcm_ledger_next(l, &k) ? NFCM_WAIT_NOTHING :
						 NFCM_WAIT_MOVE;
	}
	if (core->direction == NFC_H2D && core->phase == NFCM_PHASE_OFFERED &&
	    !core->recall)
		return NFCM_WAIT_TARGET;
	return NFCM_WAIT_NOTHING;
}

/* The half is gone from its list. Must hold box. */
void nfcm_stall_forget(struct nfcm_half *half)
{
	if (half->wait == NFCM_WAIT_TARGET)
		nfcm_half_box(half)->offered--;
	half->wait = NFCM_WAIT_NOTHING;
	list_del_init(&half->waits);
}

/* Follow what the half waits for; after every change. Must hold box. */
void nfcm_stall_track(struct nfcm_half *half)
{
	struct nfcm_box *box = nfcm_half_box(half);
	u8 wait = box->dead ? NFCM_WAIT_NOTHING : wait_of(half);

	if (wait == half->wait && half->wait_id == half->core->id)
		return;
	nfcm_stall_forget(half);
	half->wait = wait;
	half->wait_id = half->core->id;
	half->idle_ms = 0;
	half->since = box->clock_ms;
	if (wait == NFCM_WAIT_MOVE) {
		list_add_tail(&half->waits, &box->moving);
	} else if (wait == NFCM_WAIT_TARGET) {
		list_add_tail(&half->waits, &box->offers);
		box->offered++;
	}
}

/*
 * Some time was seen to pass: transfers that did not move on are aborted. Must
 * hold box.
 */
void nfcm_stall_look(struct nfcm_box *box, u32 ms)
{
	struct nfcm_half *half, *next;

	box->clock_ms += ms;
	list_for_each_entry_safe(half, next, &box->moving, waits) {
		half->idle_ms += ms;
		if (half->idle_ms < limit_ms(box->life))
			continue;
		dev_warn_ratelimited(&box->life->dev->dev,
				     "channel %u: a transfer stood still for %u ms\n",
				     half->ch->id, half->idle_ms);
		nfcm_half_stop(half, NFC_ESTALLED, 0);
		nfcm_half_push(half);
	}
}

/* Ask the device whether it still has what the half offers. Must hold box. */
static void ask_back(struct nfcm_half *half)
{
	half->asked_back = true;
	nfcm_half_owe(half, NFC_TYPE_WITHDRAW, 0, 0);
	nfcm_half_push(half);
}

/*
 * Has the offer waited so long that it is asked back? One that was asked before
 * is left alone longer, so that the device's own time-outs come to their end.
 * Must hold box.
 */
static bool waited_enough(struct nfcm_half *half, u32 limit)
{
	u64 waited = nfcm_half_box(half)->clock_ms - half->since;

	return waited >= (u64)limit << min_t(u32, half->op->asked, ASKED_MOST);
}

/*
 * Begin a pass of a mailbox, or go on with it: who was visited goes to the end
 * of the list. True if more are to be visited.
 */
static bool ask_box(struct nfcm_box *box, u32 limit, bool begin)
{
	u32 visits = 0, asks = 0;
	struct nfcm_half *half;
	bool more;

	nfcm_box_lock(box);
	if (begin)
		box->unvisited = box->offered;
	for (; box->unvisited && visits < VISITS && asks < ASKS; visits++) {
		half = list_first_entry_or_null(&box->offers, struct nfcm_half,
						waits);
		if (!half) { /* they were answered meanwhile */
			box->unvisited = 0;
			break;
		}
		box->unvisited--;
		list_move_tail(&half->waits, &box->offers);
		if (waited_enough(half, limit)) {
			ask_back(half);
			asks++;
		}
	}
	more = box->unvisited;
	nfcm_box_unlock(box);
	return more;
}

/* Offers whose answer is still to come. */
static u64 offered(struct nfcm_life *life)
{
	u64 sum = 0;
	u32 i;

	for (i = 0; i < life->boxes; i++)
		sum += READ_ONCE(life->box[i].offered);
	return sum;
}

/*
 * Compare the offers that wait with those that the device has parked, as the
 * last heartbeat says. If it had fewer at most looks of one limit it does not
 * know all of them, and those that have waited so long are asked back. Work of
 * the watch alone; takes the boxes one after the other.
 */
void nfcm_stall_audit(struct nfcm_life *life, u64 parked, u32 ms)
{
	struct nfcm_audit *a = &life->audit;
	bool begin = false, more = false;
	u32 i, limit = limit_ms(life);

	a->ms += ms;
	if (a->ms < LOOK_MS)
		return;
	a->spent_ms += a->ms;
	a->ms = 0;
	a->looks++;
	if (offered(life) > parked)
		a->few++;
	if (a->spent_ms >= limit) {
		begin = 2 * a->few > a->looks;
		a->spent_ms = 0;
		a->looks = 0;
		a->few = 0;
	}
	if (!begin && !a->asks)
		return;
	for (i = 0; i < life->boxes; i++)
		more |= ask_box(&life->box[i], limit, begin);
	a->asks = more;
}
