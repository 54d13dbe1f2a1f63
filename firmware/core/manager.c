// SPDX-License-Identifier: MIT
/*
 * Read managers: take messages from h2d, hand each to its channel, answer. A
 * manager never waits for a target; what is not ready is parked in the channel.
 */
#include "calls.h"

static void drop(struct nfc_share *share)
{
	nfc_count(share, NFC_COUNT_DROPPED, 1);
}

/* ---- what the host offers ---- */

/* Why an offer cannot even be parked. */
static enum nfc_status unwelcome(const struct nfc_channel *ch)
{
	if (!ch->process && !ch->relay)
		return NFC_ECLOSED;
	return ch->half[NFC_H2D].closed ? NFC_ECLOSED : NFC_OK;
}

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
	if (p->wait == fits ||
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
 * The way of a direct message into a process that already waits: nothing is
 * parked, the bytes go from the slot to the process's buffer.
 */
static bool direct_at_once(struct nfc_channel *ch, const struct nfc_slot *slot,
			   uint64_t length)
{
	struct nfc_half *half = nfc_h2d(ch);
	struct nfc_process *p = half->waiter;

	if (!p || length > p->length ||
	    (p->wait != NFC_WAIT_READ && p->wait != NFC_WAIT_READ_ANY))
		return false;
	half->waiter = NULL;
	nfc_count(ch->rings->share, NFC_COUNT_DIRECT_H2D, 1);
	nfc_reply(ch, NFC_TYPE_ACK, NFC_H2D, nfc_present(half),
		  NFC_STATE_CONSUMED, NFC_OK, 0);
	__builtin_memcpy(p->buf, slot->payload, length);
	nfc_wake(p, (int)length);
	return true;
}

static void on_direct(struct nfc_channel *ch, const struct nfc_slot *slot)
{
	struct nfc_half *half = nfc_h2d(ch);
	uint64_t length = nfc_header_length(slot->header);

	if (half->state != NFC_HALF_IDLE || length > NFC_PAYLOAD_SIZE ||
	    nfc_header_sequence(slot->header) != (half->next & 0xffff)) {
		drop(ch->rings->share);
		return;
	}
	if (!admit(ch, unwelcome(ch)))
		return;
	if (direct_at_once(ch, slot, length))
		return;
	nfc_park(ch, slot, NFC_HALF_MESSAGE, 0);
	meet(ch, NFC_WAIT_READ);
}

static enum nfc_status check_begin(const struct nfc_begin *begin)
{
	for (int i = 0; i < 4; i++)
		if (begin->rsvd[i])
			return NFC_EPROTO;
	return begin->size >> 48 ? NFC_ETOOLARGE : NFC_OK;
}

/*
 * The way of an eager transfer into a process that already waits for one of its
 * size: nothing is parked.
 */
static bool eager_at_once(struct nfc_channel *ch, const struct nfc_pages *pages)
{
	struct nfc_process *p = nfc_h2d(ch)->waiter;

	if (!p || p->wait != NFC_WAIT_READ_IND || p->length != pages->size)
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
		drop(ch->rings->share);
		return;
	}
	status = eager ? nfc_eager_check(ch, slot, &pages) : check_begin(begin);
	if (!admit(ch, status ? status : unwelcome(ch)))
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
	} else if (half->state == NFC_HALF_OFFERED) {
		nfc_refuse(ch, NFC_EPROTO);
	} else {
		drop(ch->rings->share);
	}
}

/* Bytes of the transfer that is offered to the host, by a process or by another host. */
static uint64_t offered_size(const struct nfc_channel *ch)
{
	const struct nfc_half *half = &ch->half[NFC_D2H];

	return half->waiter ? half->waiter->length : ch->offered;
}

/* What the device offered is over, whoever offered it. */
static void end_offer(struct nfc_channel *ch, enum nfc_status status,
		      uint64_t extra)
{
	nfc_half_release(ch, NFC_D2H, -(int)status);
	if (ch->relay)
		nfc_relay_answer(ch, status, extra);
}

/* The host takes what the device offers, which ends so. */
static void fail_offer(struct nfc_channel *ch, enum nfc_status status)
{
	nfc_reply(ch, NFC_TYPE_ERROR, NFC_D2H, nfc_present(nfc_d2h(ch)),
		  NFC_STATE_FAILED, status, offered_size(ch));
	end_offer(ch, status, 0);
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
		drop(ch->rings->share);
}

static void on_list(struct nfc_channel *ch, const struct nfc_slot *slot)
{
	bool d2h = nfc_header_length(slot->header) & NFC_LIST_D2H;
	struct nfc_half *half = d2h ? nfc_d2h(ch) : nfc_h2d(ch);

	if (nfc_header_sequence(slot->header) != (nfc_present(half) & 0xffff))
		drop(ch->rings->share);
	else if (d2h)
		on_d2h_list(ch, slot);
	else
		on_h2d_list(ch, slot);
}

/*
 * EAGER for d2h: where the bytes go of what is offered, or of the next transfer.
 * Something else may have been offered as it came: then it is about nothing.
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
	} else if (offered && offered_size(ch) == pages.size) {
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
		drop(ch->rings->share);
	}
}

static void on_eager(struct nfc_channel *ch, const struct nfc_slot *slot)
{
	if (!ch->rings->joint && (!ch->island->dev->config.eager ||
				  !nfc_accepted(ch->rings->host, NFC_CAP_EAGER)))
		drop(ch->rings->share);
	else if (nfc_header_length(slot->header) & NFC_LIST_D2H)
		on_post(ch, slot);
	else
		on_begin(ch, slot);
}

/* ---- what ends a transaction ---- */

/* The host's answer to what the device offered. */
static void on_answer(struct nfc_channel *ch, const struct nfc_slot *slot)
{
	const struct nfc_ack *ack = (const void *)slot->payload;
	struct nfc_half *half = nfc_d2h(ch);
	bool error = nfc_header_type(slot->header) == NFC_TYPE_ERROR;
	bool message = half->state == NFC_HALF_MESSAGE;

	if (ack->direction != NFC_D2H || ack->transaction != nfc_present(half) ||
	    ack->status >= NFC_STATUS_COUNT || error != (ack->status != 0) ||
	    (!message && !(half->state == NFC_HALF_OFFERED &&
			   (error || ch->rings->joint)))) {
		drop(ch->rings->share);
		return;
	}
	if (!error)
		nfc_count(ch->rings->share,
			  message ? NFC_COUNT_DIRECT_D2H :
				    NFC_COUNT_TRANSFERS_D2H,
			  1);
	end_offer(ch, ack->status, ack->outstanding);
}

static void on_fin(struct nfc_channel *ch, enum nfc_direction direction)
{
	struct nfc_half *half = &ch->half[direction];
	bool empty = direction == NFC_D2H && half->state == NFC_HALF_OFFERED &&
		     !offered_size(ch);

	if (half->state != NFC_HALF_COMMIT && !empty) {
		drop(ch->rings->share);
		return;
	}
	nfc_count(ch->rings->share, NFC_COUNT_TRANSFERS_H2D + direction, 1);
	if (empty)
		end_offer(ch, NFC_OK, 0);
	else
		nfc_half_release(ch, direction, 0);
}

static void on_withdraw(struct nfc_channel *ch, uint64_t id)
{
	if (id != nfc_present(nfc_h2d(ch)))
		drop(ch->rings->share);
	else if (nfc_is_offered(nfc_h2d(ch)))
		nfc_recall(ch);
	else if (ch->relay && nfc_h2d(ch)->state == NFC_HALF_MOVING)
		nfc_pair_withdraw(ch);
	/* else it was accepted meanwhile: the answer is on its way */
}

/* The host wants the pages back that it posted for the next transfer. */
static void on_unpost(struct nfc_channel *ch, uint64_t id)
{
	struct nfc_half *half = nfc_d2h(ch);

	if (ch->posted && id == half->next) {
		ch->posted = 0;
		nfc_note(ch, NFC_TYPE_WITHDRAWN, NFC_D2H, id);
	} else if (id != nfc_present(half)) {
		drop(ch->rings->share);
	}
	/* else something was offered meanwhile, or the bytes have moved */
}

static void on_withdrawn(struct nfc_channel *ch, enum nfc_direction direction)
{
	struct nfc_half *half = nfc_d2h(ch);

	if (direction != NFC_D2H || !nfc_is_offered(half)) {
		drop(ch->rings->share);
		return;
	}
	end_offer(ch, NFC_EWITHDRAWN, 0);
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
		left = direction == NFC_H2D ? begin->size : offered_size(ch);
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
		end_offer(ch, NFC_EABORTED, 0);
	else if (half->state == NFC_HALF_COMMIT)
		nfc_half_release(ch, direction, -NFC_EABORTED);
}

static void on_offer(struct nfc_channel *ch, uint64_t id)
{
	struct nfc_half *half = nfc_h2d(ch);

	if (half->state != NFC_HALF_IDLE || id != half->next) {
		drop(ch->rings->share);
		return;
	}
	half->ready_due = 1;
	/* One that was just woken has what it read, and says so when it waits again. */
	if ((half->waiter && !half->waiter->ready) || unwelcome(ch))
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
		drop(ch->rings->share);
	}
}

static void on_note(struct nfc_channel *ch, const struct nfc_slot *slot)
{
	const struct nfc_note *note = (const void *)slot->payload;
	enum nfc_type type = nfc_header_type(slot->header);
	enum nfc_direction direction = note->direction;
	uint64_t id = note->transaction;

	if (note->direction > NFC_D2H) {
		drop(ch->rings->share);
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
		drop(ch->rings->share);
		return;
	}
	if (type == NFC_TYPE_FIN)
		on_fin(ch, direction);
	else if (type == NFC_TYPE_WITHDRAWN)
		on_withdrawn(ch, direction);
	else
		on_abort(ch, direction, id);
}

/* Does p check the half again by itself when woken? */
static bool checks_again(const struct nfc_process *p)
{
	return p && p->wait != NFC_WAIT_WRITE &&
	       p->wait != NFC_WAIT_WRITE_IND && p->wait != NFC_WAIT_MOVING;
}

/* The other host hears of it, and has its message back that was on this half. */
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

static void on_close(struct nfc_channel *ch, const struct nfc_slot *slot)
{
	const struct nfc_close *close = (const void *)slot->payload;

	if (close->generation != ch->generation || !close->halves ||
	    close->halves > 3)
		drop(ch->rings->share);
	else
		close_halves(ch, close->halves);
}

void nfc_other_gone(struct nfc_channel *ch)
{
	close_halves(ch, 3);
}

/* ---- the manager ---- */

static void dispatch(struct nfc_channel *ch, const struct nfc_slot *slot)
{
	switch (nfc_header_type(slot->header)) {
	case NFC_TYPE_DIRECT:
		on_direct(ch, slot);
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
		on_answer(ch, slot);
		break;
	case NFC_TYPE_FIN:
	case NFC_TYPE_WITHDRAW:
	case NFC_TYPE_WITHDRAWN:
	case NFC_TYPE_ABORT:
	case NFC_TYPE_OFFER:
	case NFC_TYPE_READY:
		on_note(ch, slot);
		break;
	case NFC_TYPE_CLOSE:
		on_close(ch, slot);
		break;
	default:
		drop(ch->rings->share);
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

	if (type == NFC_TYPE_DIRECT || type == NFC_TYPE_IND_LIST)
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

/* What is for no channel of the table that is open: it may be for a guest. */
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
		drop(rings->share);
}

/*
 * One turn of a read manager: take what is there, up to a budget, while d2h
 * has room for the answers. Returns how many messages it took.
 */
uint32_t nfc_read_manager(struct nfc_rings *rings)
{
	const struct nfc_host *host = rings->host;
	uint64_t epoch = host->epoch & 0xff;
	struct nfc_slot slot;
	uint32_t taken = 0;

	while (taken < NFC_TAKE_BUDGET && nfc_rings_room(rings) &&
	       nfc_rings_take(rings, &slot)) {
		uint64_t id = nfc_header_channel(slot.header);
		struct nfc_channel *ch = &host->channels[id];

		taken++;
		if (nfc_header_epoch(slot.header) != epoch ||
		    id >= host->channel_count || !ch->open ||
		    ch->rings != rings || !well_formed(&slot))
			on_stray(rings, &slot);
		else
			dispatch(ch, &slot);
	}
	nfc_rings_publish(rings);
	nfc_count(rings->share, NFC_COUNT_MESSAGES, taken);
	return taken;
}

/* ---- the same for a joint ---- */

/* What one end calls d2h is h2d to the other. */
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
	default:; /* an offer, which travels as it says */
	}
}

/* Is it what an end of a joint says? Another node may send anything. */
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
 * Take all that came to an end of a joint, as the call that the other end made of
 * it. There is room for the answers: what a process and its island put, and nobody
 * has taken yet, is an offer, its withdrawal, an answer and three closes at most.
 */
void nfc_take_joint(struct nfc_rings *rings)
{
	struct nfc_joint *joint = rings->joint;
	struct nfc_channel *ch = joint->channel[rings != joint->rings];
	struct nfc_slot slot;

	while (!nfc_gone(rings->host) && ch->rings == rings && ch->open &&
	       nfc_rings_take(rings, &slot)) {
		if (joint->far.used && !of_joint(&slot)) {
			drop(rings->share);
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
