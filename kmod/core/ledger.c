// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * The host's account of a transfer, and of how full a ring may get. Pure: see
 * nfcm_core.h.
 */
#include "nfcm_core.h"

/*
 * Open the account of a transfer. Transfers to the device wait for READY after
 * their first list, transfers from the device do not.
 */
void nfcm_ledger_open(struct nfcm_ledger *l, u64 size, u32 window, bool ready)
{
	memset(l, 0, sizeof(*l));
	l->size = size;
	l->lists = size ? ~0ull : 0;
	l->window = window;
	l->ready = ready;
}

/* The list to send now; false if there is none. */
bool nfcm_ledger_next(const struct nfcm_ledger *l, u64 *k)
{
	if (l->aborting || l->sent == l->lists || (l->sent && !l->ready))
		return false;
	*k = l->sent;
	return l->sent - l->acked < l->window;
}

/* The list that nfcm_ledger_next() named was sent: bytes up to its end. */
void nfcm_ledger_sent(struct nfcm_ledger *l, u64 end)
{
	l->sent++;
	l->total++;
	if (end > l->given)
		l->given = end;
	if (end == l->size)
		l->lists = l->sent;
}

/*
 * Check the counters of an ack and give its cumulative lists, widened from the
 * 32 bits on the wire.
 */
static bool progress(struct nfcm_ledger *l, const struct nfcm_record *r,
		     u64 *lists)
{
	*lists = l->acked + (u32)(r->lists - (u32)l->acked);
	if (*lists > l->sent || r->processed < l->processed ||
	    r->processed > l->given)
		return false;
	l->processed = r->processed;
	return true;
}

/*
 * Return to list k, which must be in flight. A list may be requested again and
 * again as long as its bytes follow.
 */
static enum nfcm_input on_repeat(struct nfcm_ledger *l, u64 k, const char **why)
{
	if (k >= l->sent) {
		*why = "repeat of a list that was not sent";
		return NFCM_TAKE_NONSENSE;
	}
	l->acked = k;
	if (l->aborting)
		return NFCM_TAKE_CROSSED;
	if (!l->tries || k != l->again || l->processed > l->at) {
		l->again = k;
		l->at = l->processed;
		l->tries = 0;
	}
	if (++l->tries > NFC_REPEATS_MAX)
		return NFCM_TAKE_RETRIES_EXHAUSTED;
	l->repeated += l->sent - k;
	l->sent = k;
	return NFCM_TAKE_PROGRESS;
}

/* Check that nothing is missing of what another host took: there is no FIN to put. */
static enum nfcm_input on_consumed(struct nfcm_ledger *l,
				   const struct nfcm_record *r, const char **why)
{
	if (l->sent != l->lists || r->processed != l->size || r->outstanding ||
	    r->status != NFC_OK) {
		*why = "consumed, but not all was moved";
		return NFCM_TAKE_NONSENSE;
	}
	l->acked = l->lists;
	l->processed = l->size;
	return NFCM_TAKE_CONSUMED;
}

/* READY, MOVING, REPEAT and CONSUMED. */
static enum nfcm_input on_ack(struct nfcm_ledger *l,
			      const struct nfcm_record *r, const char **why)
{
	u64 lists;

	if (r->state == NFC_STATE_CONSUMED)
		return on_consumed(l, r, why);
	*why = "ack of a transfer makes no sense";
	/* A repeat carries its reason. */
	if ((r->status != NFC_OK && r->state != NFC_STATE_REPEAT) || !l->sent)
		return NFCM_TAKE_NONSENSE;
	if (!progress(l, r, &lists)) {
		*why = "more lists or bytes acked than were sent";
		return NFCM_TAKE_NONSENSE;
	}
	switch (r->state) {
	case NFC_STATE_READY:
		if (l->ready)
			return NFCM_TAKE_NONSENSE;
		l->ready = true;
		break;
	case NFC_STATE_MOVING:
		if (!l->ready &&
		    (l->sent < l->lists || (!lists && !l->processed)))
			return NFCM_TAKE_NONSENSE;
		break;
	case NFC_STATE_REPEAT:
		return on_repeat(l, lists, why);
	default:
		return NFCM_TAKE_NONSENSE;
	}
	l->acked = lists;
	return l->aborting ? NFCM_TAKE_CROSSED : NFCM_TAKE_PROGRESS;
}

/* Check that nothing is missing. */
static enum nfcm_input on_done(struct nfcm_ledger *l,
			       const struct nfcm_record *r, const char **why)
{
	if (l->sent != l->lists || r->processed != l->size || r->outstanding ||
	    r->status != NFC_OK || r->state != NFC_STATE_DONE) {
		*why = "done, but not all was moved";
		return NFCM_TAKE_NONSENSE;
	}
	l->acked = l->lists;
	l->processed = l->size;
	return l->aborting ? NFCM_TAKE_CROSSED : NFCM_TAKE_DONE;
}

/*
 * The end of a transfer that is not done, and where. Its count of bytes may be
 * behind a repeat's.
 */
static enum nfcm_input last(struct nfcm_ledger *l, const struct nfcm_record *r,
			    enum nfcm_input input, const char **why)
{
	if (r->state != NFC_STATE_FAILED || r->fault_index >= NFC_LIST_ENTRIES) {
		*why = "ended in a state or an entry that cannot be";
		return NFCM_TAKE_NONSENSE;
	}
	if (r->processed > l->size) {
		*why = "more bytes processed than there are";
		return NFCM_TAKE_NONSENSE;
	}
	l->processed = r->processed;
	return input;
}

/* Take a completion record of a type into account. */
enum nfcm_input nfcm_ledger_record(struct nfcm_ledger *l, enum nfc_type type,
				   const struct nfcm_record *r, const char **why)
{
	if (r->status >= NFC_STATUS_COUNT || r->state >= NFC_STATE_COUNT) {
		*why = "unknown status or state";
		return NFCM_TAKE_NONSENSE;
	}
	switch (type) {
	case NFC_TYPE_ACK:
		return on_ack(l, r, why);
	case NFC_TYPE_DONE:
		return on_done(l, r, why);
	case NFC_TYPE_ABORTED:
		if (l->aborting)
			return last(l, r, NFCM_TAKE_ABORTED, why);
		*why = "aborted, but nobody asked";
		return NFCM_TAKE_NONSENSE;
	default:
		if (r->status != NFC_OK)
			return last(l, r, NFCM_TAKE_FAILED, why);
		*why = "error without a status";
		return NFCM_TAKE_NONSENSE;
	}
}

/* How many slots of a ring may be in use for a kind of message. */
u32 nfcm_room(u32 slots, enum nfcm_room room)
{
	enum { URGENT_SLOTS = 16 };

	switch (room) {
	case NFCM_ROOM_LIST:
		return slots / 2;
	case NFCM_ROOM_NORMAL:
		return slots / 4 < URGENT_SLOTS ? slots - slots / 4 :
						  slots - URGENT_SLOTS;
	default:
		return slots;
	}
}
