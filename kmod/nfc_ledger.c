// SPDX-License-Identifier: GPL-2.0-only
/*
 * Cutting a buffer into gather lists, and the host's account of a transfer.
 * Pure: see nfc_core.h.
 */
#include "nfc_core.h"

/* Device pages that the buffer touches. */
u64 nfc_split_pages(const struct nfc_split *s)
{
	if (!s->size)
		return 0;
	return (s->head + s->size + NFC_PAGE_SIZE - 1) >> NFC_PAGE_SHIFT;
}

/* Gather lists that the buffer needs. */
u64 nfc_split_lists(const struct nfc_split *s)
{
	return (nfc_split_pages(s) + NFC_LIST_ENTRIES - 1) / NFC_LIST_ENTRIES;
}

/* Bytes in the lists before list k, which is at most the number of lists. */
u64 nfc_split_up_to(const struct nfc_split *s, u64 k)
{
	u64 bytes;

	if (!k)
		return 0;
	bytes = k * NFC_LIST_ENTRIES * NFC_PAGE_SIZE - s->head;
	return bytes < s->size ? bytes : s->size;
}

/*
 * Write list k, which must be below the number of lists, and return its number
 * of entries. bus holds the bus addresses of the list's device pages.
 */
u32 nfc_split_fill(const struct nfc_split *s, u64 k, const u64 *bus,
		   struct nfc_gather *g)
{
	u64 at = nfc_split_up_to(s, k), end = nfc_split_up_to(s, k + 1);
	u64 left = s->size - end;
	u32 n = 0;

	memset(g, 0, sizeof(*g));
	while (at < end) {
		u64 offset = (s->head + at) & (NFC_PAGE_SIZE - 1);
		u64 length = NFC_PAGE_SIZE - offset;

		if (length > end - at)
			length = end - at;
		g->entry[n] = cpu_to_le64(nfc_entry(bus[n] + offset, length));
		at += length;
		n++;
	}
	g->tail = cpu_to_le64(left << NFC_TAIL_OUTSTANDING_SHIFT |
			      (k & 0xffff) << NFC_TAIL_NUMBER_SHIFT);
	return n;
}

/*
 * Open the account of a transfer. Transfers to the device wait for READY after
 * their first list, transfers from the device do not.
 */
void nfc_ledger_open(struct nfc_ledger *l, const struct nfc_split *cut,
		     u32 window, bool ready)
{
	memset(l, 0, sizeof(*l));
	l->cut = *cut;
	l->lists = nfc_split_lists(cut);
	l->window = window;
	l->ready = ready;
}

/* The list to send now; false if there is none. */
bool nfc_ledger_next(const struct nfc_ledger *l, u64 *k)
{
	if (l->aborting || l->sent == l->lists || (l->sent && !l->ready))
		return false;
	*k = l->sent;
	return l->sent - l->acked < l->window;
}

/* The list that nfc_ledger_next() named was sent. */
void nfc_ledger_sent(struct nfc_ledger *l)
{
	l->sent++;
	l->total++;
}

/*
 * Check the counters of an ack and give its cumulative lists, widened from the
 * 32 bits on the wire.
 */
static bool progress(struct nfc_ledger *l, const struct nfc_record *r,
		     u64 *lists)
{
	*lists = l->acked + (u32)(r->lists - (u32)l->acked);
	if (*lists > l->sent || r->processed < l->processed ||
	    r->processed > nfc_split_up_to(&l->cut, l->sent))
		return false;
	l->processed = r->processed;
	return true;
}

/* Go back to list k, which must be in flight. */
static enum nfc_verdict on_repeat(struct nfc_ledger *l, u64 k, const char **why)
{
	if (k >= l->sent) {
		*why = "repeat of a list that was not sent";
		return NFC_VERDICT_FAULT;
	}
	l->acked = k;
	if (l->aborting)
		return NFC_VERDICT_IGNORE;
	if (!l->tries || k != l->again) {
		l->again = k;
		l->tries = 0;
	}
	if (++l->tries > NFC_REPEATS_MAX)
		return NFC_VERDICT_TIRED;
	l->repeated += l->sent - k;
	l->sent = k;
	return NFC_VERDICT_PROGRESS;
}

/* READY, MOVING and REPEAT. */
static enum nfc_verdict on_ack(struct nfc_ledger *l, const struct nfc_record *r,
			       const char **why)
{
	u64 lists;

	*why = "ack of a transfer makes no sense";
	/* A repeat says why. */
	if ((r->status != NFC_OK && r->state != NFC_STATE_REPEAT) || !l->sent)
		return NFC_VERDICT_FAULT;
	if (!progress(l, r, &lists)) {
		*why = "more lists or bytes acked than were sent";
		return NFC_VERDICT_FAULT;
	}
	switch (r->state) {
	case NFC_STATE_READY:
		if (l->ready)
			return NFC_VERDICT_FAULT;
		l->ready = true;
		break;
	case NFC_STATE_MOVING:
		if (!l->ready && lists < l->lists)
			return NFC_VERDICT_FAULT;
		break;
	case NFC_STATE_REPEAT:
		return on_repeat(l, lists, why);
	default:
		return NFC_VERDICT_FAULT;
	}
	l->acked = lists;
	return l->aborting ? NFC_VERDICT_IGNORE : NFC_VERDICT_PROGRESS;
}

/* Check that nothing is missing. */
static enum nfc_verdict on_done(struct nfc_ledger *l,
				const struct nfc_record *r, const char **why)
{
	if (l->sent != l->lists || r->processed != l->cut.size ||
	    r->outstanding || r->status != NFC_OK || r->state != NFC_STATE_DONE) {
		*why = "done, but not all was moved";
		return NFC_VERDICT_FAULT;
	}
	l->acked = l->lists;
	l->processed = l->cut.size;
	return l->aborting ? NFC_VERDICT_IGNORE : NFC_VERDICT_DONE;
}

/*
 * The end of a transfer that is not done, and where. Its count of bytes may be
 * behind a repeat's.
 */
static enum nfc_verdict last(struct nfc_ledger *l, const struct nfc_record *r,
			     enum nfc_verdict verdict, const char **why)
{
	if (r->state != NFC_STATE_FAILED || r->fault_index >= NFC_LIST_ENTRIES) {
		*why = "ended in a state or an entry that cannot be";
		return NFC_VERDICT_FAULT;
	}
	if (r->processed > l->cut.size) {
		*why = "more bytes processed than there are";
		return NFC_VERDICT_FAULT;
	}
	l->processed = r->processed;
	return verdict;
}

/* Take a completion record of a type into account. */
enum nfc_verdict nfc_ledger_record(struct nfc_ledger *l, enum nfc_type type,
				   const struct nfc_record *r, const char **why)
{
	if (r->status >= NFC_STATUS_COUNT || r->state >= NFC_STATE_COUNT) {
		*why = "unknown status or state";
		return NFC_VERDICT_FAULT;
	}
	switch (type) {
	case NFC_TYPE_ACK:
		return on_ack(l, r, why);
	case NFC_TYPE_DONE:
		return on_done(l, r, why);
	case NFC_TYPE_ABORTED:
		if (l->aborting)
			return last(l, r, NFC_VERDICT_ABORTED, why);
		*why = "aborted, but nobody asked";
		return NFC_VERDICT_FAULT;
	default:
		if (r->status != NFC_OK)
			return last(l, r, NFC_VERDICT_FAILED, why);
		*why = "error without a status";
		return NFC_VERDICT_FAULT;
	}
}

/* How many slots of a ring may be in use for a kind of message. */
u32 nfc_room(u32 slots, enum nfc_room room)
{
	enum { URGENT_SLOTS = 16 };

	switch (room) {
	case NFC_ROOM_LIST:
		return slots / 2;
	case NFC_ROOM_NORMAL:
		return slots / 4 < URGENT_SLOTS ? slots - slots / 4 :
						  slots - URGENT_SLOTS;
	default:
		return slots;
	}
}
