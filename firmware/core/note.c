// SPDX-License-Identifier: MIT
/*
 * The host's messages about transactions that are under way. The host answers,
 * finishes, withdraws or aborts them, asks whether a process waits, and closes
 * halves.
 */
#include "calls.h"

uint64_t nfc_offered_size(const struct nfc_channel *ch)
{
	const struct nfc_half *half = &ch->half[NFC_D2H];

	return half->waiter ? half->waiter->length : ch->offered;
}

void nfc_end_offer(struct nfc_channel *ch, enum nfc_status status,
		   uint64_t extra)
{
	nfc_half_release(ch, NFC_D2H, -(int)status);
	if (ch->relay)
		nfc_relay_answer(ch, status, extra);
}

/* The host's answer to what the device offered. */
void nfc_on_answer(struct nfc_channel *ch, const struct nfc_slot *slot)
{
	const struct nfc_ack *ack = (const void *)slot->payload;
	struct nfc_half *half = nfc_d2h(ch);
	bool error = nfc_header_type(slot->header) == NFC_TYPE_ERROR;
	bool message = half->state == NFC_HALF_MESSAGE;

	if (ack->direction != NFC_D2H || ack->transaction != nfc_present(half) ||
	    ack->status >= NFC_STATUS_COUNT || error != (ack->status != 0) ||
	    (!message && !(half->state == NFC_HALF_OFFERED &&
			   (error || ch->rings->joint)))) {
		nfc_drop(ch->rings->share);
		return;
	}
	if (!error)
		nfc_count(ch->rings->share,
			  message ? NFC_COUNT_DIRECT_D2H :
				    NFC_COUNT_TRANSFERS_D2H,
			  1);
	nfc_end_offer(ch, ack->status, ack->outstanding);
}

static void on_fin(struct nfc_channel *ch, enum nfc_direction direction)
{
	struct nfc_half *half = &ch->half[direction];
	bool empty = direction == NFC_D2H && half->state == NFC_HALF_OFFERED &&
		     !nfc_offered_size(ch);

	if (half->state != NFC_HALF_COMMIT && !empty) {
		nfc_drop(ch->rings->share);
		return;
	}
	nfc_count(ch->rings->share, NFC_COUNT_TRANSFERS_H2D + direction, 1);
	if (empty)
		nfc_end_offer(ch, NFC_OK, 0);
	else
		nfc_half_release(ch, direction, 0);
}

static void on_withdraw(struct nfc_channel *ch, uint64_t id)
{
	if (id != nfc_present(nfc_h2d(ch)))
		nfc_drop(ch->rings->share);
	else if (nfc_is_offered(nfc_h2d(ch)) ||
		 nfc_h2d(ch)->state == NFC_HALF_TAKEN)
		nfc_recall(ch);
	else if (ch->relay && nfc_h2d(ch)->state == NFC_HALF_MOVING)
		nfc_pair_withdraw(ch);
	/* else it was accepted meanwhile: the answer is on its way */
}

/* The host withdraws the pages that it posted for the next transfer. */
static void on_unpost(struct nfc_channel *ch, uint64_t id)
{
	struct nfc_half *half = nfc_d2h(ch);

	if (ch->posted && id == half->next) {
		ch->posted = 0;
		nfc_note(ch, NFC_TYPE_WITHDRAWN, NFC_D2H, id);
	} else if (id != nfc_present(half)) {
		nfc_drop(ch->rings->share);
	}
	/* else something was offered meanwhile, or the bytes have moved */
}

static void on_withdrawn(struct nfc_channel *ch, enum nfc_direction direction)
{
	struct nfc_half *half = nfc_d2h(ch);

	if (direction != NFC_D2H || !nfc_is_offered(half)) {
		nfc_drop(ch->rings->share);
		return;
	}
	nfc_end_offer(ch, NFC_EWITHDRAWN, 0);
}

static void on_abort(struct nfc_channel *ch, enum nfc_direction direction,
		     uint64_t id)
{
	const struct nfc_begin *begin = (const void *)ch->parked.payload;
	struct nfc_half *half = &ch->half[direction];
	uint64_t left = 0;

	switch (half->state) {
	case NFC_HALF_MOVING:
		nfc_transfer_abort(half->transfer, NFC_EABORTED, true);
		return;
	case NFC_HALF_OFFERED:
		if (direction == NFC_H2D && ch->relay) {
			nfc_ask_back(ch, NFC_EABORTED);
			return;
		}
		left = direction == NFC_H2D ? begin->size : nfc_offered_size(ch);
		if (direction == NFC_H2D)
			nfc_unpark(ch);
		break;
	case NFC_HALF_COMMIT:
		break;
	default:
		return; /* over already: the answer is on its way */
	}
	if (half->state == NFC_HALF_COMMIT && half->transfer)
		nfc_transfer_ack(half->transfer, NFC_TYPE_ABORTED,
				 NFC_STATE_FAILED, NFC_EABORTED);
	else
		nfc_reply(ch, NFC_TYPE_ABORTED, direction, id, NFC_STATE_FAILED,
			  NFC_EABORTED, left);
	if (direction == NFC_D2H && half->state == NFC_HALF_OFFERED)
		nfc_end_offer(ch, NFC_EABORTED, 0);
	else if (half->state == NFC_HALF_COMMIT)
		nfc_half_release(ch, direction, -NFC_EABORTED);
}

static void on_offer(struct nfc_channel *ch, uint64_t id)
{
	struct nfc_half *half = nfc_h2d(ch);

	if (half->state != NFC_HALF_IDLE || id != half->next) {
		nfc_drop(ch->rings->share);
		return;
	}
	half->ready_due = 1;
	/*
	 * A process that was just woken has its message, and sends READY when
	 * it waits again.
	 */
	if ((half->waiter && !half->waiter->ready) || nfc_refusal(ch))
		nfc_send_ready(ch);
	else if (ch->relay)
		nfc_relay_notify(ch->relay, NFC_RELAY_ASKED);
}

/* The host waits to receive, and another one asked. Something may be offered meanwhile. */
static void on_ready(struct nfc_channel *ch, enum nfc_direction direction,
		     uint64_t id)
{
	const struct nfc_half *half = nfc_d2h(ch);
	bool asked = ch->relay && direction == NFC_D2H;

	if (asked && ch->relay->ready_due && id == half->next) {
		ch->relay->ready_due = 0;
		nfc_relay_notify(ch->relay, NFC_RELAY_READY);
	} else if (!asked || !id || id != nfc_present(half)) {
		nfc_drop(ch->rings->share);
	}
}

void nfc_on_note(struct nfc_channel *ch, const struct nfc_slot *slot)
{
	const struct nfc_note *note = (const void *)slot->payload;
	enum nfc_type type = nfc_header_type(slot->header);
	enum nfc_direction direction = note->direction;
	uint64_t id = note->transaction;

	if (note->direction > NFC_D2H) {
		nfc_drop(ch->rings->share);
		return;
	}
	if (type == NFC_TYPE_OFFER) {
		on_offer(ch, id);
		return;
	}
	if (type == NFC_TYPE_WITHDRAW) {
		if (direction == NFC_H2D)
			on_withdraw(ch, id);
		else
			on_unpost(ch, id);
		return;
	}
	if (type == NFC_TYPE_READY) {
		on_ready(ch, direction, id);
		return;
	}
	if (id != nfc_present(&ch->half[direction])) {
		nfc_drop(ch->rings->share);
		return;
	}
	if (type == NFC_TYPE_FIN)
		on_fin(ch, direction);
	else if (type == NFC_TYPE_WITHDRAWN)
		on_withdrawn(ch, direction);
	else
		on_abort(ch, direction, id);
}

/* ---- closes ---- */

/* Does p check the half again by itself when woken? */
static bool checks_again(const struct nfc_process *p)
{
	return p && p->wait != NFC_WAIT_WRITE &&
	       p->wait != NFC_WAIT_WRITE_IND && p->wait != NFC_WAIT_MOVING;
}

/* Notify the other host of the close, and return its message on this half. */
static void close_relay(struct nfc_channel *ch, enum nfc_direction direction)
{
	bool offered = nfc_is_offered(&ch->half[direction]);

	if (offered && direction == NFC_H2D)
		nfc_relay_withdraw(ch->relay);
	else if (offered)
		nfc_relay_answer(ch, NFC_ECLOSED, 0);
	nfc_relay_notify(ch->relay, NFC_RELAY_CLOSED << !direction);
}

/* The host closed a half: what was on it ends, and its process is woken. */
static void close_half(struct nfc_channel *ch, enum nfc_direction direction)
{
	struct nfc_half *half = &ch->half[direction];

	half->closed |= NFC_CLOSED_HOST;
	half->notice = 1;
	half->ready_due = 0;
	if (ch->relay)
		close_relay(ch, direction);
	if (half->state == NFC_HALF_MOVING) {
		nfc_transfer_abort(half->transfer, NFC_EABORTED, false);
		return;
	}
	if (direction == NFC_D2H)
		ch->posted = 0;
	if (direction == NFC_H2D && nfc_is_offered(half))
		nfc_unpark(ch);
	nfc_half_release(ch, direction,
			 checks_again(half->waiter) ? NFC_AGAIN : -NFC_ECLOSED);
}

static void close_halves(struct nfc_channel *ch, uint32_t halves)
{
	for (int d = 0; d < 2; d++)
		if (halves >> d & 1)
			close_half(ch, d);
	if (!(ch->half[0].closed & ch->half[1].closed & NFC_CLOSED_HOST))
		return;
	ch->ending = 1;
	nfc_channel_over(ch);
}

void nfc_on_close(struct nfc_channel *ch, const struct nfc_slot *slot)
{
	const struct nfc_close *close = (const void *)slot->payload;

	if (close->generation != ch->generation || !close->halves ||
	    close->halves > 3)
		nfc_drop(ch->rings->share);
	else
		close_halves(ch, close->halves);
}

void nfc_other_closed(struct nfc_channel *ch)
{
	close_halves(ch, 3);
}
