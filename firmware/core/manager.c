// SPDX-License-Identifier: MIT
/*
 * Read managers: take messages from h2d, hand each to its channel, answer. A
 * manager never waits for a target; what is not ready is parked in the channel.
 */
#include "internal.h"

static void drop(struct nfc_island *island)
{
	nfc_count(island, NFC_COUNT_DROPPED, 1);
}

/* Answer with a completion record; extra is its outstanding field. */
static void reply(struct nfc_channel *ch, enum nfc_type type,
		  enum nfc_direction direction, uint64_t id,
		  enum nfc_state state, enum nfc_status status, uint64_t extra)
{
	union {
		struct nfc_ack ack;
		uint64_t word[7];
	} u = { .ack = {
			.transaction = id,
			.outstanding = extra,
			.state = (uint16_t)state,
			.status = (uint16_t)status,
			.direction = direction,
			.begin_ns = ch->begin_ns,
			.now_ns = ch->island->now,
		} };

	nfc_put(ch, type, NFC_PAYLOAD_SIZE, id, u.word);
}

void nfc_note(struct nfc_channel *ch, enum nfc_type type,
	      enum nfc_direction direction, uint64_t id)
{
	union {
		struct nfc_note note;
		uint64_t word[7];
	} u = { .note = { .transaction = id, .direction = direction } };

	nfc_put(ch, type, NFC_PAYLOAD_SIZE, id, u.word);
}

/* The id of the half's present transaction. */
static uint64_t present(const struct nfc_half *half)
{
	return half->next - 1;
}

/* ---- parked offers and their time-outs ---- */

/* The sooner of the host's bound and the device's own; 0 is none. */
static void set_timeout(struct nfc_channel *ch, uint64_t timeout_ns)
{
	struct nfc_island *island = ch->island;
	uint64_t own = island->dev->config.target_timeout_ns;

	if (!timeout_ns || (own && own < timeout_ns))
		timeout_ns = own;
	if (!timeout_ns || timeout_ns > UINT64_MAX / 2)
		return;
	/* From a clock that was read before, it would end before the host's. */
	nfc_read_clock(island);
	ch->deadline = island->now + timeout_ns;
	ch->timed = 1;
	ch->timed_prev = NULL;
	ch->timed_next = island->timed;
	if (ch->timed_next)
		ch->timed_next->timed_prev = ch;
	island->timed = ch;
	nfc_timer(island, ch->deadline);
}

/* Take a channel off the deadline list. */
static void untime(struct nfc_channel *ch)
{
	if (!ch->timed)
		return;
	ch->timed = 0;
	if (ch->timed_prev)
		ch->timed_prev->timed_next = ch->timed_next;
	else
		ch->island->timed = ch->timed_next;
	if (ch->timed_next)
		ch->timed_next->timed_prev = ch->timed_prev;
}

static void park(struct nfc_channel *ch, const struct nfc_slot *slot,
		 enum nfc_half_state state, uint64_t timeout_ns)
{
	struct nfc_half *half = nfc_h2d(ch);

	ch->parked = *slot;
	ch->has_list = 0;
	half->state = (uint8_t)state;
	nfc_count(ch->island, NFC_COUNT_PARKED, 1);
	set_timeout(ch, timeout_ns);
}

static void unpark(struct nfc_channel *ch)
{
	untime(ch);
	nfc_h2d(ch)->state = NFC_HALF_IDLE;
	nfc_count(ch->island, NFC_COUNT_PARKED, (uint64_t)-1);
}

/* Refuse what is parked on h2d. */
void nfc_refuse(struct nfc_channel *ch, enum nfc_status status)
{
	unpark(ch);
	reply(ch, NFC_TYPE_ERROR, NFC_H2D, present(nfc_h2d(ch)),
	      NFC_STATE_FAILED, status, 0);
}

/* Refuse offers whose target was not ready in time; returns the next due. */
uint64_t nfc_expire_offers(struct nfc_island *island)
{
	uint64_t due = UINT64_MAX;
	struct nfc_channel *ch, *next;

	for (ch = island->timed; ch; ch = next) {
		next = ch->timed_next;
		if (ch->deadline > island->now)
			due = nfc_min(due, ch->deadline);
		else if (nfc_box_room(island->dev, ch->box))
			nfc_refuse(ch, NFC_ETIMEOUT);
		else
			due = island->now;
	}
	return due;
}

/* ---- what the host offers ---- */

static int accept_message(struct nfc_channel *ch, struct nfc_process *p)
{
	uint64_t length = nfc_header_length(ch->parked.header);

	if (length > p->length)
		return -NFC_ETOOLARGE;
	__builtin_memcpy(p->buf, ch->parked.payload, length);
	unpark(ch);
	nfc_count(ch->island, NFC_COUNT_DIRECT_H2D, 1);
	reply(ch, NFC_TYPE_ACK, NFC_H2D, present(nfc_h2d(ch)),
	      NFC_STATE_CONSUMED, NFC_OK, 0);
	return (int)length;
}

/*
 * A process in a fitting read takes what is parked. Returns what that read
 * returns, or NFC_AGAIN if a transfer is under way now, which wakes p.
 */
int nfc_accept(struct nfc_channel *ch, struct nfc_process *p)
{
	struct nfc_half *half = nfc_h2d(ch);
	const struct nfc_begin *begin = (const void *)ch->parked.payload;
	bool has_list = ch->has_list;

	if (half->state == NFC_HALF_MESSAGE)
		return accept_message(ch, p);
	unpark(ch);
	if (begin->size != p->length) {
		reply(ch, NFC_TYPE_ERROR, NFC_H2D, present(half),
		      NFC_STATE_FAILED, NFC_ESIZE, p->length);
		return -NFC_ESIZE;
	}
	half->waiter = p;
	ch->has_list = 0;
	if (!begin->size) {
		half->state = NFC_HALF_COMMIT;
		p->wait = NFC_WAIT_MOVING;
		reply(ch, NFC_TYPE_DONE, NFC_H2D, present(half), NFC_STATE_DONE,
		      NFC_OK, 0);
		return NFC_AGAIN;
	}
	nfc_transfer_begin(p, ch, NFC_H2D, begin->size);
	if (has_list)
		nfc_transfer_list(half->transfer, &ch->list);
	nfc_transfer_hurry(half->transfer);
	return NFC_AGAIN;
}

/* Why an offer cannot even be parked. */
static enum nfc_status unwelcome(const struct nfc_channel *ch)
{
	if (!ch->process)
		return NFC_ECLOSED;
	return ch->half[NFC_H2D].closed ? NFC_ECLOSED : NFC_OK;
}

/* The offer's transaction starts; false if status ends it at once. */
static bool admit(struct nfc_channel *ch, enum nfc_status status)
{
	struct nfc_half *half = nfc_h2d(ch);

	half->next++;
	half->tell_ready = 0;
	ch->begin_ns = ch->island->now;
	if (status)
		reply(ch, NFC_TYPE_ERROR, NFC_H2D, present(half),
		      NFC_STATE_FAILED, status, 0);
	return !status;
}

/* The reader on this half meets the new offer, which is parked already. */
static void meet(struct nfc_channel *ch, enum nfc_wait fits)
{
	struct nfc_half *half = nfc_h2d(ch);
	struct nfc_process *p = half->waiter;
	int rc = NFC_AGAIN;

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
	nfc_count(ch->island, NFC_COUNT_DIRECT_H2D, 1);
	reply(ch, NFC_TYPE_ACK, NFC_H2D, present(half), NFC_STATE_CONSUMED,
	      NFC_OK, 0);
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
		drop(ch->island);
		return;
	}
	if (!admit(ch, unwelcome(ch)))
		return;
	if (direct_at_once(ch, slot, length))
		return;
	park(ch, slot, NFC_HALF_MESSAGE, 0);
	meet(ch, NFC_WAIT_READ);
}

static enum nfc_status check_begin(struct nfc_channel *ch,
				   const struct nfc_begin *begin)
{
	for (int i = 0; i < 4; i++)
		if (begin->rsvd[i])
			return NFC_EPROTO;
	if (begin->size >> 48)
		return NFC_ETOOLARGE;
	return unwelcome(ch);
}

static void on_begin(struct nfc_channel *ch, const struct nfc_slot *slot)
{
	const struct nfc_begin *begin = (const void *)slot->payload;
	struct nfc_half *half = nfc_h2d(ch);

	if (half->state != NFC_HALF_IDLE || begin->transaction != half->next ||
	    nfc_header_sequence(slot->header) != (half->next & 0xffff)) {
		drop(ch->island);
		return;
	}
	if (!admit(ch, check_begin(ch, begin)))
		return;
	park(ch, slot, NFC_HALF_OFFERED, begin->timeout_ns);
	meet(ch, NFC_WAIT_READ_IND);
}

static void on_h2d_list(struct nfc_channel *ch, const struct nfc_slot *slot)
{
	struct nfc_half *half = nfc_h2d(ch);

	if (half->state == NFC_HALF_MOVING) {
		nfc_transfer_list(half->transfer, slot);
	} else if (half->state == NFC_HALF_OFFERED && !ch->has_list) {
		ch->list = *slot;
		ch->has_list = 1;
	} else if (half->state == NFC_HALF_OFFERED) {
		nfc_refuse(ch, NFC_EPROTO);
	} else {
		drop(ch->island);
	}
}

static void on_d2h_list(struct nfc_channel *ch, const struct nfc_slot *slot)
{
	struct nfc_half *half = nfc_d2h(ch);
	struct nfc_process *p = half->waiter;

	if (half->state == NFC_HALF_OFFERED && p && p->wait == NFC_WAIT_WRITE_IND)
		nfc_transfer_begin(p, ch, NFC_D2H, p->length);
	if (half->state == NFC_HALF_MOVING)
		nfc_transfer_list(half->transfer, slot);
	else
		drop(ch->island);
}

static void on_list(struct nfc_channel *ch, const struct nfc_slot *slot)
{
	bool d2h = nfc_header_length(slot->header) & NFC_LIST_D2H;
	struct nfc_half *half = d2h ? nfc_d2h(ch) : nfc_h2d(ch);

	if (nfc_header_sequence(slot->header) != (present(half) & 0xffff))
		drop(ch->island);
	else if (d2h)
		on_d2h_list(ch, slot);
	else
		on_h2d_list(ch, slot);
}

/* ---- what ends a transaction ---- */

/* The host's answer to what the device offered. */
static void on_answer(struct nfc_channel *ch, const struct nfc_slot *slot)
{
	const struct nfc_ack *ack = (const void *)slot->payload;
	struct nfc_half *half = nfc_d2h(ch);
	bool error = nfc_header_type(slot->header) == NFC_TYPE_ERROR;

	if (ack->direction != NFC_D2H || ack->transaction != present(half) ||
	    ack->status >= NFC_STATUS_COUNT || error != (ack->status != 0) ||
	    (half->state != NFC_HALF_MESSAGE &&
	     !(error && half->state == NFC_HALF_OFFERED))) {
		drop(ch->island);
		return;
	}
	if (!error)
		nfc_count(ch->island, NFC_COUNT_DIRECT_D2H, 1);
	nfc_half_release(ch, NFC_D2H, -(int)ack->status);
}

static void on_fin(struct nfc_channel *ch, enum nfc_direction direction)
{
	struct nfc_half *half = &ch->half[direction];
	bool empty = direction == NFC_D2H && half->state == NFC_HALF_OFFERED &&
		     half->waiter && half->waiter->length == 0;

	if (half->state != NFC_HALF_COMMIT && !empty) {
		drop(ch->island);
		return;
	}
	nfc_count(ch->island, NFC_COUNT_TRANSFERS_H2D + direction, 1);
	nfc_half_release(ch, direction, 0);
}

/* Is there an offer of the host that it may take back? */
static bool is_parked(const struct nfc_half *half)
{
	return half->state == NFC_HALF_MESSAGE ||
	       half->state == NFC_HALF_OFFERED;
}

/*
 * The host wants an offer back. A process that was just woken for it runs
 * first: had it waited in a read it would hold the message by now.
 */
static void on_withdraw(struct nfc_channel *ch, enum nfc_direction direction)
{
	if (direction != NFC_H2D || !is_parked(nfc_h2d(ch)))
		return; /* accepted meanwhile: the answer is on its way */
	ch->recall_id = present(nfc_h2d(ch));
	if (ch->recalled)
		return;
	ch->recalled = 1;
	ch->recall_next = ch->island->recalls;
	ch->island->recalls = ch;
}

/* Give back what the processes left after they ran. */
void nfc_serve_recalls(struct nfc_island *island)
{
	struct nfc_channel *ch = island->recalls, *next;

	island->recalls = NULL;
	for (; ch; ch = next) {
		next = ch->recall_next;
		if (!nfc_box_room(island->dev, ch->box)) {
			ch->recall_next = island->recalls;
			island->recalls = ch;
			continue;
		}
		ch->recalled = 0;
		if (!is_parked(nfc_h2d(ch)) ||
		    present(nfc_h2d(ch)) != ch->recall_id)
			continue;
		unpark(ch);
		nfc_note(ch, NFC_TYPE_WITHDRAWN, NFC_H2D, ch->recall_id);
	}
}

static void on_withdrawn(struct nfc_channel *ch, enum nfc_direction direction)
{
	struct nfc_half *half = nfc_d2h(ch);

	if (direction != NFC_D2H || (half->state != NFC_HALF_MESSAGE &&
				     half->state != NFC_HALF_OFFERED)) {
		drop(ch->island);
		return;
	}
	nfc_half_release(ch, NFC_D2H, -NFC_EWITHDRAWN);
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
		left = direction == NFC_H2D ? begin->size : half->waiter->length;
		if (direction == NFC_H2D)
			unpark(ch);
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
		reply(ch, NFC_TYPE_ABORTED, direction, id, NFC_STATE_FAILED,
		      NFC_EABORTED, left);
	if (direction == NFC_D2H || half->state == NFC_HALF_COMMIT)
		nfc_half_release(ch, direction, -NFC_EABORTED);
}

static void on_offer(struct nfc_channel *ch, uint64_t id)
{
	struct nfc_half *half = nfc_h2d(ch);

	if (half->state != NFC_HALF_IDLE || id != half->next) {
		drop(ch->island);
		return;
	}
	half->tell_ready = 1;
	if (half->waiter || unwelcome(ch))
		nfc_tell_ready(ch);
}

static void on_note(struct nfc_channel *ch, const struct nfc_slot *slot)
{
	const struct nfc_note *note = (const void *)slot->payload;
	enum nfc_type type = nfc_header_type(slot->header);
	enum nfc_direction direction = note->direction;
	uint64_t id = note->transaction;

	if (note->direction > NFC_D2H) {
		drop(ch->island);
		return;
	}
	if (type == NFC_TYPE_OFFER) {
		on_offer(ch, id);
		return;
	}
	if (id != present(&ch->half[direction])) {
		drop(ch->island);
		return;
	}
	if (type == NFC_TYPE_FIN)
		on_fin(ch, direction);
	else if (type == NFC_TYPE_WITHDRAW)
		on_withdraw(ch, direction);
	else if (type == NFC_TYPE_WITHDRAWN)
		on_withdrawn(ch, direction);
	else
		on_abort(ch, direction, id);
}

/* Does p look at the half again by itself when woken? */
static bool looking(const struct nfc_process *p)
{
	return p && p->wait != NFC_WAIT_WRITE &&
	       p->wait != NFC_WAIT_WRITE_IND && p->wait != NFC_WAIT_MOVING;
}

/* The host closed a half: nothing is left on it, and its process hears it. */
static void close_half(struct nfc_channel *ch, enum nfc_direction direction)
{
	struct nfc_half *half = &ch->half[direction];

	half->closed |= NFC_CLOSED_HOST;
	half->notice = 1;
	half->tell_ready = 0;
	if (half->state == NFC_HALF_MOVING) {
		nfc_transfer_abort(half->transfer, NFC_EABORTED, false);
		return;
	}
	if (direction == NFC_H2D && (half->state == NFC_HALF_MESSAGE ||
				     half->state == NFC_HALF_OFFERED))
		unpark(ch);
	nfc_half_release(ch, direction,
			 looking(half->waiter) ? NFC_AGAIN : -NFC_ECLOSED);
}

static void on_close(struct nfc_channel *ch, const struct nfc_slot *slot)
{
	const struct nfc_close *close = (const void *)slot->payload;

	if (close->generation != ch->generation || !close->halves ||
	    close->halves > 3) {
		drop(ch->island);
		return;
	}
	for (int d = 0; d < 2; d++)
		if (close->halves >> d & 1)
			close_half(ch, d);
	if (!(ch->half[0].closed & ch->half[1].closed & NFC_CLOSED_HOST))
		return;
	ch->ending = 1;
	nfc_channel_over(ch);
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
	case NFC_TYPE_ACK:
	case NFC_TYPE_ERROR:
		on_answer(ch, slot);
		break;
	case NFC_TYPE_FIN:
	case NFC_TYPE_WITHDRAW:
	case NFC_TYPE_WITHDRAWN:
	case NFC_TYPE_ABORT:
	case NFC_TYPE_OFFER:
		on_note(ch, slot);
		break;
	case NFC_TYPE_CLOSE:
		on_close(ch, slot);
		break;
	default:
		drop(ch->island);
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
	if (nfc_header_length(slot->header) != NFC_PAYLOAD_SIZE ||
	    nfc_header_sequence(slot->header) != (id & 0xffff))
		return false;
	if (type == NFC_TYPE_IND_BEGIN || type == NFC_TYPE_ACK ||
	    type == NFC_TYPE_ERROR)
		return true;
	for (int i = 2; i < 7; i++)
		reserved |= slot->payload[i];
	return !reserved;
}

/*
 * One turn of a read manager: take what is there, up to a budget, while d2h
 * has room for the answers. Returns how many messages it took.
 */
uint32_t nfc_read_manager(struct nfc_island *island, struct nfc_box *box)
{
	struct nfc_device *dev = island->dev;
	uint64_t epoch = dev->config.epoch & 0xff;
	struct nfc_slot slot;
	uint32_t taken = 0;

	while (taken < NFC_TAKE_BUDGET && nfc_box_room(dev, box) &&
	       nfc_box_take(box, &slot)) {
		uint64_t id = nfc_header_channel(slot.header);
		struct nfc_channel *ch = &dev->channels[id];

		taken++;
		if (nfc_header_epoch(slot.header) != epoch ||
		    id >= dev->config.channels || !ch->open || ch->box != box ||
		    !well_formed(&slot))
			drop(island);
		else
			dispatch(ch, &slot);
	}
	nfc_box_publish(box);
	nfc_count(island, NFC_COUNT_MESSAGES, taken);
	return taken;
}

/* Open the channel whose control request arg is; runs on its island. */
int nfc_channel_open(struct nfc_island *island, void *arg)
{
	struct nfc_control *c = arg;
	struct nfc_channel *ch = &island->dev->channels[c->a];

	if (!ch->process)
		return -NFC_ENOTARGET;
	if (ch->open)
		return -NFC_EBUSY;
	ch->open = 1;
	ch->ending = 0;
	ch->generation = atomic_fetch_add(&island->dev->next_generation, 1);
	for (int d = 0; d < 2; d++) {
		struct nfc_half *half = &ch->half[d];

		half->closed = 0;
		half->notice = 0;
		half->tell_ready = 0;
		if (half->waiter && half->waiter->wait == NFC_WAIT_OPEN) {
			nfc_wake(half->waiter, NFC_AGAIN);
			half->waiter = NULL;
		}
	}
	c->a = nfc_h2d(ch)->next;
	c->b = nfc_d2h(ch)->next;
	c->c = ch->generation;
	return 0;
}
