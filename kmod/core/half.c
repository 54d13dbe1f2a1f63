// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * The host's operations on a half. classify.c has the device's. Pure: see
 * nfcm_core.h.
 */
#include "nfcm_core.h"

/* The subscription's first ids. */
void nfcm_core_open(struct nfcm_channel_core *c, u64 next_h2d, u64 next_d2h,
		    u64 generation)
{
	memset(c, 0, sizeof(*c));
	c->half[NFC_H2D].id = next_h2d - 1;
	c->half[NFC_D2H].id = next_d2h - 1;
	c->half[NFC_D2H].direction = NFC_D2H;
	c->generation = generation;
}

/* The transaction is over. */
static bool to_idle(struct nfcm_half_core *h, bool may)
{
	if (!may)
		return false;
	h->state = NFCM_STATE_IDLE;
	h->held = false;
	h->recall = false;
	return true;
}

/* An offer of the host, or the first list of what the device offered. */
static bool to_start(struct nfcm_half_core *h, enum nfcm_state state)
{
	if (h->direction == NFC_H2D ? h->state != NFCM_STATE_IDLE :
				      state != NFCM_STATE_MOVING || !h->held ||
					      h->state != NFCM_STATE_OFFERED)
		return false;
	if (h->direction == NFC_H2D)
		h->id++;
	h->state = state;
	h->held = false;
	h->recall = false;
	return true;
}

/* Pages of an offer to the device, for one that a call holds, or for the next. */
static bool to_eager(struct nfcm_half_core *h)
{
	if (h->direction == NFC_H2D)
		return to_start(h, NFCM_STATE_GIVEN);
	if (h->state == NFCM_STATE_OFFERED && h->held)
		h->state = NFCM_STATE_GIVEN;
	else if (h->state == NFCM_STATE_IDLE && !h->closed)
		h->state = NFCM_STATE_POSTED;
	else
		return false;
	h->held = false;
	h->recall = false;
	return true;
}

static bool to_abort(struct nfcm_half_core *h)
{
	if (h->state != NFCM_STATE_MOVING && h->state != NFCM_STATE_COMPLETE)
		return false;
	h->state = NFCM_STATE_MOVING;
	h->held = false;
	h->ledger.aborting = true;
	return true;
}

/* A call holds what is here, or what was moved but not committed. */
static bool to_hold(struct nfcm_half_core *h)
{
	if (h->direction == NFC_H2D || h->held ||
	    (h->state != NFCM_STATE_OFFERED && h->state != NFCM_STATE_COMPLETE))
		return false;
	h->held = true;
	return true;
}

/* It leaves the offer where it is; WITHDRAWN is to be put if the device recalled it. */
static bool to_release(struct nfcm_half_core *h)
{
	if (h->state != NFCM_STATE_OFFERED || !h->held)
		return false;
	if (h->recall)
		h->state = NFCM_STATE_ANSWERING;
	h->held = false;
	h->recall = false;
	return true;
}

static bool to_withdraw(struct nfcm_half_core *h)
{
	bool may = h->state == NFCM_STATE_POSTED;

	if (h->direction == NFC_H2D)
		may = h->state == NFCM_STATE_OFFERED ||
		      h->state == NFCM_STATE_MOVING ||
		      h->state == NFCM_STATE_GIVEN ||
		      h->state == NFCM_STATE_CALLED;
	if (!may || h->recall)
		return false;
	h->recall = true;
	return true;
}

/* CLOSE of the half answers what is here. */
static bool to_close(struct nfcm_half_core *h)
{
	bool offered = h->direction == NFC_D2H &&
		       h->state == NFCM_STATE_OFFERED && !h->held;

	h->closed = true;
	return to_idle(h, offered || h->state == NFCM_STATE_IDLE);
}

/* The host did something; false if it must not do that now. */
bool nfcm_act(struct nfcm_half_core *h, enum nfcm_input in)
{
	bool held = h->state == NFCM_STATE_OFFERED && h->held;

	switch (in) {
	case NFCM_PUT_MESSAGE:
		return to_start(h, NFCM_STATE_OFFERED);
	case NFCM_PUT_CALL:
		return to_start(h, NFCM_STATE_CALLED);
	case NFCM_PUT_TRANSFER:
		return to_start(h, NFCM_STATE_MOVING);
	case NFCM_PUT_EAGER:
		return to_eager(h);
	case NFCM_PUT_WITHDRAW:
		return to_withdraw(h);
	case NFCM_PUT_WITHDRAWN:
		return to_idle(h, h->state == NFCM_STATE_ANSWERING);
	case NFCM_PUT_ACCEPT:
	case NFCM_PUT_REFUSE:
		return to_idle(h, held);
	case NFCM_PUT_ABORT:
		return to_abort(h);
	case NFCM_PUT_FIN:
		return to_idle(h, h->state == NFCM_STATE_COMPLETE);
	case NFCM_HOLD:
		return to_hold(h);
	case NFCM_RELEASE:
		return to_release(h);
	case NFCM_PUT_CLOSE:
		return to_close(h);
	case NFCM_SHUT:
		h->closed = true;
		return true;
	default:
		return false;
	}
}

/*
 * NFCM_PUT_TRANSFER with its ledger: on an idle h2d half the next transaction,
 * on d2h the one that the device offered and a call holds.
 */
bool nfcm_core_transfer(struct nfcm_half_core *h, u64 size, u32 window)
{
	if (!nfcm_act(h, NFCM_PUT_TRANSFER))
		return false;
	nfcm_ledger_open(&h->ledger, size, window, h->direction == NFC_D2H);
	return true;
}

/*
 * NFCM_PUT_EAGER with the bytes of its pages: on an idle h2d half the next
 * transaction, on d2h the one that a call holds, or the next.
 */
bool nfcm_core_eager(struct nfcm_half_core *h, u64 size)
{
	if (h->state == NFCM_STATE_OFFERED &&
	    !(nfcm_core_offers_transfer(h) && nfcm_core_offer_size(h) == size))
		return false;
	if (!nfcm_act(h, NFCM_PUT_EAGER))
		return false;
	h->size = size;
	return true;
}

/* Is what is here a transfer, not a message? There must be an offer. */
bool nfcm_core_offers_transfer(const struct nfcm_half_core *h)
{
	return nfc_header_type(le64_to_cpu(h->offer.header)) ==
	       NFC_TYPE_IND_BEGIN;
}

/* Bytes of the present offer, checked when it arrived. There must be an offer. */
u64 nfcm_core_offer_size(const struct nfcm_half_core *h)
{
	struct nfc_begin begin;

	if (!nfcm_core_offers_transfer(h))
		return nfc_header_length(le64_to_cpu(h->offer.header));
	memcpy(&begin, h->offer.payload, sizeof(begin));
	return le64_to_cpu(begin.size);
}
