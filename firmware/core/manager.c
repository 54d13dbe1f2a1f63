// SPDX-License-Identifier: MIT
/*
 * Read managers: take messages from h2d, hand each to its channel, answer. A
 * manager never waits for a target; what is not ready is parked in the channel.
 */
#include "calls.h"

/* ---- what the host offers ---- */

/* The offer's transaction starts; false if status ends it at once. */
static bool admit(struct nfc_channel *ch, enum nfc_status status)
{
	struct nfc_half *half = nfc_h2d(ch);

	half->next++;
	half->ready_due = 0;
	ch->begin_ns = ch->island->now;
	if (status)
		nfc_reply(ch, NFC_TYPE_ERROR, NFC_H2D, nfc_present(half),
			  NFC_STATE_FAILED, status, 0);
	return !status;
}

/* The reader on this half meets the new offer, which is parked already. */
static void meet(struct nfc_channel *ch, enum nfc_wait fits)
{
	struct nfc_half *half = nfc_h2d(ch);
	struct nfc_process *p = half->waiter;
	int rc = NFC_AGAIN;

	if (ch->relay)
		nfc_relay_offer(ch);
	if (!p)
		return;
	half->waiter = NULL;
	if (p->wait == fits || p->wait == NFC_WAIT_TAKE ||
	    (p->wait == NFC_WAIT_READ_ANY && fits == NFC_WAIT_READ)) {
		rc = nfc_accept(ch, p);
		if (rc == NFC_AGAIN)
			return;
	} else if (p->wait == NFC_WAIT_READ || p->wait == NFC_WAIT_READ_IND) {
		nfc_refuse(ch, NFC_EKIND);
		rc = -NFC_EKIND;
	}
	nfc_wake(p, rc);
}

/*
 * Deliver a direct message to a process that already waits: nothing is parked,
 * the bytes are copied from the slot to the process's buffer.
 */
static bool direct_at_once(struct nfc_channel *ch, const struct nfc_slot *slot,
			   uint64_t length)
{
	struct nfc_half *half = nfc_h2d(ch);
	struct nfc_process *p = half->waiter;

	if (!p || length > p->length ||
	    (p->wait != NFC_WAIT_READ && p->wait != NFC_WAIT_READ_ANY &&
	     p->wait != NFC_WAIT_TAKE))
		return false;
	half->waiter = NULL;
	nfc_message_taken(ch, p, nfc_header_type(slot->header));
	__builtin_memcpy(p->buf, slot->payload, length);
	nfc_wake(p, (int)length);
	return true;
}

/* DIRECT, and CALL, which may be for a process that waits alone. */
static void on_direct(struct nfc_channel *ch, const struct nfc_slot *slot)
{
	struct nfc_half *half = nfc_h2d(ch);
	uint64_t length = nfc_message_length(slot->header);
	bool now = length != nfc_header_length(slot->header);

	if (half->state != NFC_HALF_IDLE || length > NFC_PAYLOAD_SIZE ||
	    nfc_header_sequence(slot->header) != (half->next & 0xffff)) {
		nfc_drop(ch->rings->share);
		return;
	}
	if (!admit(ch, nfc_refusal(ch)))
		return;
	if (direct_at_once(ch, slot, length))
		return;
	nfc_park(ch, slot, NFC_HALF_MESSAGE, now);
	meet(ch, NFC_WAIT_READ);
}

/* Questions are for processes; other hosts get messages. */
static void on_call(struct nfc_channel *ch, const struct nfc_slot *slot)
{
	if (ch->rings->joint || ch->relay ||
	    !nfc_accepted(ch->rings->host, NFC_CAP_CALLS))
		nfc_drop(ch->rings->share);
	else
		on_direct(ch, slot);
}

static enum nfc_status check_begin(const struct nfc_begin *begin)
{
	for (int i = 0; i < 4; i++)
		if (begin->rsvd[i])
			return NFC_EPROTO;
	return begin->size >> 48 ? NFC_ETOOLARGE : NFC_OK;
}

/*
 * The way of an eager transfer into a process that already waits with room for
 * it: nothing is parked.
 */
static bool eager_at_once(struct nfc_channel *ch, const struct nfc_pages *pages)
{
	struct nfc_process *p = nfc_h2d(ch)->waiter;

	if (!p || (p->wait != NFC_WAIT_READ_IND && p->wait != NFC_WAIT_TAKE) ||
	    !nfc_fits(p, pages->size))
		return false;
	nfc_eager_move(p, ch, NFC_H2D, pages);
	return true;
}

/* IND_BEGIN, and EAGER, which has the same fields and its pages. */
static void on_begin(struct nfc_channel *ch, const struct nfc_slot *slot)
{
	const struct nfc_begin *begin = (const void *)slot->payload;
	bool eager = nfc_header_type(slot->header) == NFC_TYPE_EAGER;
	struct nfc_half *half = nfc_h2d(ch);
	struct nfc_pages pages;
	enum nfc_status status;

	if (half->state != NFC_HALF_IDLE || begin->transaction != half->next ||
	    nfc_header_sequence(slot->header) != (half->next & 0xffff)) {
		nfc_drop(ch->rings->share);
		return;
	}
	status = eager ? nfc_eager_check(ch, slot, &pages) : check_begin(begin);
	if (!admit(ch, status ? status : nfc_refusal(ch)))
		return;
	if (eager && eager_at_once(ch, &pages))
		return;
	nfc_park(ch, slot, NFC_HALF_OFFERED, begin->timeout_ns);
	meet(ch, NFC_WAIT_READ_IND);
}

static void on_h2d_list(struct nfc_channel *ch, const struct nfc_slot *slot)
{
	struct nfc_half *half = nfc_h2d(ch);

	if (half->state == NFC_HALF_MOVING) {
		nfc_transfer_list(half->transfer, slot);
	} else if (half->state == NFC_HALF_OFFERED && !ch->has_list &&
		   nfc_header_type(ch->parked.header) == NFC_TYPE_IND_BEGIN) {
		ch->list = *slot;
		ch->has_list = 1;
	} else if (half->state == NFC_HALF_OFFERED && ch->relay) {
		nfc_ask_back(ch, NFC_EPROTO);
	} else if (half->state == NFC_HALF_OFFERED) {
		nfc_refuse(ch, NFC_EPROTO);
	} else {
		nfc_drop(ch->rings->share);
	}
}

/* The host takes what the device offers, which ends so. */
static void fail_offer(struct nfc_channel *ch, enum nfc_status status)
{
	nfc_reply(ch, NFC_TYPE_ERROR, NFC_D2H, nfc_present(nfc_d2h(ch)),
		  NFC_STATE_FAILED, status, nfc_offered_size(ch));
	nfc_end_offer(ch, status, 0);
}

/* The host takes what another host offers, if that is still there. */
static void take_pair(struct nfc_channel *ch, const struct nfc_pages *pages)
{
	if (!nfc_pair_begin(ch, pages))
		fail_offer(ch, NFC_ECLOSED);
}

static void on_d2h_list(struct nfc_channel *ch, const struct nfc_slot *slot)
{
	struct nfc_half *half = nfc_d2h(ch);
	struct nfc_process *p = half->waiter;

	if (half->state == NFC_HALF_OFFERED && p && p->wait == NFC_WAIT_WRITE_IND)
		nfc_transfer_begin(p, ch, NFC_D2H, p->length);
	else if (half->state == NFC_HALF_OFFERED && !p)
		take_pair(ch, NULL);
	if (half->state == NFC_HALF_MOVING)
		nfc_transfer_list(half->transfer, slot);
	else
		nfc_drop(ch->rings->share);
}

static void on_list(struct nfc_channel *ch, const struct nfc_slot *slot)
{
	bool d2h = nfc_header_length(slot->header) & NFC_LIST_D2H;
	struct nfc_half *half = d2h ? nfc_d2h(ch) : nfc_h2d(ch);

	if (nfc_header_sequence(slot->header) != (nfc_present(half) & 0xffff))
		nfc_drop(ch->rings->share);
	else if (d2h)
		on_d2h_list(ch, slot);
	else
		on_h2d_list(ch, slot);
}

/*
 * EAGER for d2h: pages for the bytes of the present offer, or of the next
 * transfer. If another offer was made while it was in flight, it is ignored.
 */
static void on_post(struct nfc_channel *ch, const struct nfc_slot *slot)
{
	const struct nfc_eager *eager = (const void *)slot->payload;
	struct nfc_half *half = nfc_d2h(ch);
	bool present = eager->transaction == nfc_present(half);
	bool offered = present && half->state == NFC_HALF_OFFERED;
	struct nfc_pages pages;
	enum nfc_status status = nfc_eager_check(ch, slot, &pages);

	if (offered && status) {
		fail_offer(ch, status);
	} else if (offered && nfc_offered_size(ch) == pages.size) {
		if (half->waiter)
			nfc_eager_move(half->waiter, ch, NFC_D2H, &pages);
		else
			take_pair(ch, &pages);
	} else if (!status && half->state == NFC_HALF_IDLE &&
		   eager->transaction == half->next) {
		ch->post = pages;
		ch->posted = 1;
	} else if (!present || half->state == NFC_HALF_MOVING ||
		   half->state == NFC_HALF_COMMIT) {
		nfc_drop(ch->rings->share);
	}
}

static void on_eager(struct nfc_channel *ch, const struct nfc_slot *slot)
{
	if (!ch->rings->joint && (!ch->island->dev->config.eager ||
				  !nfc_accepted(ch->rings->host, NFC_CAP_EAGER)))
		nfc_drop(ch->rings->share);
	else if (nfc_header_length(slot->header) & NFC_LIST_D2H)
		on_post(ch, slot);
	else
		on_begin(ch, slot);
}

/* ---- the manager ---- */

static void dispatch(struct nfc_channel *ch, const struct nfc_slot *slot)
{
	switch (nfc_header_type(slot->header)) {
	case NFC_TYPE_DIRECT:
		on_direct(ch, slot);
		break;
	case NFC_TYPE_CALL:
		on_call(ch, slot);
		break;
	case NFC_TYPE_IND_BEGIN:
		on_begin(ch, slot);
		break;
	case NFC_TYPE_IND_LIST:
		on_list(ch, slot);
		break;
	case NFC_TYPE_EAGER:
		on_eager(ch, slot);
		break;
	case NFC_TYPE_ACK:
	case NFC_TYPE_ERROR:
		nfc_on_answer(ch, slot);
		break;
	case NFC_TYPE_FIN:
	case NFC_TYPE_WITHDRAW:
	case NFC_TYPE_WITHDRAWN:
	case NFC_TYPE_ABORT:
	case NFC_TYPE_OFFER:
	case NFC_TYPE_READY:
		nfc_on_note(ch, slot);
		break;
	case NFC_TYPE_CLOSE:
		nfc_on_close(ch, slot);
		break;
	default:
		nfc_drop(ch->rings->share);
	}
}

/*
 * Payloads that are structs are whole, belong to their header's sequence, and
 * have nothing in their reserved words (a begin's are answered with EPROTO).
 */
static bool well_formed(const struct nfc_slot *slot)
{
	enum nfc_type type = nfc_header_type(slot->header);
	uint64_t id = slot->payload[type == NFC_TYPE_CLOSE];
	uint64_t reserved = 0;

	if (type == NFC_TYPE_DIRECT || type == NFC_TYPE_CALL ||
	    type == NFC_TYPE_IND_LIST)
		return true;
	if (nfc_header_sequence(slot->header) != (id & 0xffff))
		return false;
	if (type == NFC_TYPE_EAGER)
		return true;
	if (nfc_header_length(slot->header) != NFC_PAYLOAD_SIZE)
		return false;
	if (type == NFC_TYPE_IND_BEGIN || type == NFC_TYPE_ACK ||
	    type == NFC_TYPE_ERROR)
		return true;
	for (int i = 2; i < 7; i++)
		reserved |= slot->payload[i];
	return !reserved;
}

/* A message for no open channel of the table: it may be for a guest. */
static void on_stray(struct nfc_rings *rings, const struct nfc_slot *slot)
{
	const struct nfc_host *host = rings->host;
	uint64_t id = nfc_header_channel(slot->header);
	struct nfc_channel *ch = id < host->channel_count ?
					 nfc_channel_at(host, id) :
					 NULL;

	if (ch && ch->guest && ch->open && ch->rings == rings &&
	    nfc_header_epoch(slot->header) == (host->epoch & 0xff) &&
	    well_formed(slot))
		dispatch(ch, slot);
	else
		nfc_drop(rings->share);
}

/* A message for an open channel, if it is one. */
static void hand(struct nfc_rings *rings, const struct nfc_slot *slot)
{
	const struct nfc_host *host = rings->host;
	uint64_t id = nfc_header_channel(slot->header);
	struct nfc_channel *ch = &host->channels[id];

	if (nfc_header_epoch(slot->header) != (host->epoch & 0xff) ||
	    id >= host->channel_count || !ch->open || ch->rings != rings ||
	    !well_formed(slot))
		on_stray(rings, slot);
	else
		dispatch(ch, slot);
}

/*
 * One turn of a read manager: take what is there, up to a budget, while d2h
 * has room for the answers. Returns how many messages it took.
 */
uint32_t nfc_read_manager(struct nfc_rings *rings)
{
	struct nfc_slot slot;
	uint32_t taken = 0;

	while (taken < NFC_TAKE_BUDGET && nfc_rings_room(rings) &&
	       nfc_rings_take(rings, &slot)) {
		taken++;
		hand(rings, &slot);
	}
	nfc_rings_publish(rings);
	nfc_count(rings->share, NFC_COUNT_MESSAGES, taken);
	return taken;
}

void nfc_read_last(struct nfc_rings *rings)
{
	struct nfc_slot slot;

	/* a ring's worth: the host may write all the time */
	for (uint32_t n = 0; n <= rings->mask && nfc_rings_take(rings, &slot);
	     n++) {
		enum nfc_type type = nfc_header_type(slot.header);

		if (type == NFC_TYPE_ACK || type == NFC_TYPE_FIN)
			hand(rings, &slot);
	}
}

/* ---- the same for a joint ---- */

/* Exchange the directions of a message: d2h of one end is h2d of the other. */
static void reverse(struct nfc_slot *slot)
{
	struct nfc_ack *ack = (void *)slot->payload;
	struct nfc_note *note = (void *)slot->payload;
	struct nfc_close *close = (void *)slot->payload;

	switch (nfc_header_type(slot->header)) {
	case NFC_TYPE_ACK:
	case NFC_TYPE_ERROR:
		ack->direction ^= 1;
		break;
	case NFC_TYPE_WITHDRAW:
	case NFC_TYPE_WITHDRAWN:
		note->direction ^= 1;
		break;
	case NFC_TYPE_CLOSE:
		close->halves = (close->halves & 1) << 1 | close->halves >> 1;
		break;
	default:; /* an offer, which needs no change */
	}
}

/* May an end of a joint send this? Another node may send anything. */
static bool of_joint(const struct nfc_slot *slot)
{
	switch (nfc_header_type(slot->header)) {
	case NFC_TYPE_EAGER:
		if (nfc_header_length(slot->header) & NFC_LIST_D2H)
			return false;
		/* fall through */
	case NFC_TYPE_DIRECT:
	case NFC_TYPE_ACK:
	case NFC_TYPE_ERROR:
	case NFC_TYPE_WITHDRAW:
	case NFC_TYPE_WITHDRAWN:
	case NFC_TYPE_CLOSE:
		return well_formed(slot);
	default:
		return false;
	}
}

/*
 * Take all messages of a joint's end, for the call that the other end queued.
 * There is room for the answers. A process and its island have at most six
 * unread messages: an offer, its withdrawal, an answer and three closes.
 */
void nfc_take_joint(struct nfc_rings *rings)
{
	struct nfc_joint *joint = rings->joint;
	struct nfc_channel *ch = joint->channel[rings != joint->rings];
	struct nfc_slot slot;

	while (!nfc_is_detaching(rings->host) && ch->rings == rings &&
	       ch->open && nfc_rings_take(rings, &slot)) {
		if (joint->far.used && !of_joint(&slot)) {
			nfc_drop(rings->share);
			continue;
		}
		reverse(&slot);
		dispatch(ch, &slot);
	}
	nfc_rings_publish(rings);
}

int nfc_read_joint(struct nfc_island *island, void *arg)
{
	struct nfc_rings *rings = arg;
	struct nfc_joint *joint = rings->joint;

	(void)island;
	atomic_exchange(&joint->called[rings != joint->rings],
			0); /* SYNC: joint */
	nfc_take_joint(rings);
	atomic_fetch_sub(&joint->calls, 1); /* it may be another's from here on */
	return NFC_AGAIN;
}
