// SPDX-License-Identifier: MIT
/*
 * Offers of the host: parked until a process takes them, refused when their time
 * is over or the process does not fit, given back when the host withdraws them.
 */
#include "calls.h"

/* Put a channel on the deadline list. */
static void set_deadline(struct nfc_channel *ch, uint64_t timeout_ns)
{
	struct nfc_island *island = ch->island;

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

/* The sooner of the host's bound and the device's own; 0 is none. */
static void set_timeout(struct nfc_channel *ch, uint64_t timeout_ns)
{
	uint64_t own = ch->island->dev->config.target_timeout_ns;

	if (!timeout_ns || (own && own < timeout_ns))
		timeout_ns = own;
	if (timeout_ns && timeout_ns <= UINT64_MAX / 2)
		set_deadline(ch, timeout_ns);
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

/* Offers between processes are not counted: the host does not wait for them. */
static void count_parked(struct nfc_channel *ch, uint64_t n)
{
	if (!ch->rings->joint)
		nfc_count(ch->rings->share, NFC_COUNT_PARKED, n);
}

void nfc_park(struct nfc_channel *ch, const struct nfc_slot *slot,
	      enum nfc_half_state state, uint64_t timeout_ns)
{
	struct nfc_half *half = nfc_h2d(ch);

	ch->parked = *slot;
	ch->has_list = 0;
	half->state = (uint8_t)state;
	count_parked(ch, 1);
	set_timeout(ch, timeout_ns);
}

void nfc_unpark(struct nfc_channel *ch)
{
	untime(ch);
	nfc_h2d(ch)->state = NFC_HALF_IDLE;
	count_parked(ch, (uint64_t)-1);
}

enum nfc_status nfc_refusal(const struct nfc_channel *ch)
{
	if (!ch->process && !ch->relay)
		return NFC_ECLOSED;
	return ch->half[NFC_H2D].closed ? NFC_ECLOSED : NFC_OK;
}

/* Refuse what is parked on h2d. */
void nfc_refuse(struct nfc_channel *ch, enum nfc_status status)
{
	nfc_unpark(ch);
	nfc_reply(ch, NFC_TYPE_ERROR, NFC_H2D, nfc_present(nfc_h2d(ch)),
		  NFC_STATE_FAILED, status, 0);
}

void nfc_ask_back(struct nfc_channel *ch, enum nfc_status why)
{
	bool asked = ch->relay->asked;

	ch->relay->asked = (uint8_t)why;
	if (asked)
		return;
	untime(ch);
	set_deadline(ch, NFC_ANSWER_NS);
	nfc_relay_withdraw(ch->relay);
}

/* The time of a channel's offer is over. The caller made sure of room. */
static void expire(struct nfc_channel *ch)
{
	if (!ch->relay) {
		nfc_refuse(ch, NFC_ETIMEOUT);
	} else if (!ch->relay->asked) {
		nfc_ask_back(ch, NFC_ETIMEOUT);
	} else { /* a host that does not answer is treated as closed */
		untime(ch);
		nfc_relay_give_up(ch->relay);
	}
}

/*
 * Refuse offers whose target was not ready in time; returns the next due time.
 */
uint64_t nfc_expire_offers(struct nfc_island *island)
{
	uint64_t due = UINT64_MAX;
	struct nfc_channel *ch, *next;

	for (ch = island->timed; ch; ch = next) {
		next = ch->timed_next;
		if (ch->deadline > island->now)
			due = nfc_min(due, ch->deadline);
		else if (nfc_rings_room(ch->rings))
			expire(ch);
		else
			due = island->now;
	}
	return due;
}

void nfc_message_taken(struct nfc_channel *ch, struct nfc_process *p,
		       enum nfc_type type)
{
	bool call = type == NFC_TYPE_CALL;

	nfc_count(ch->rings->share, NFC_COUNT_DIRECT_H2D, 1);
	if (p->answers)
		ch->question = call ? NFC_QUESTION_CALL : NFC_QUESTION_MESSAGE;
	if (call && p->answers)
		nfc_h2d(ch)->state = NFC_HALF_TAKEN;
	else
		nfc_reply(ch, NFC_TYPE_ACK, NFC_H2D, nfc_present(nfc_h2d(ch)),
			  NFC_STATE_CONSUMED, NFC_OK, 0);
}

void nfc_leave_question(struct nfc_channel *ch, enum nfc_status status)
{
	nfc_h2d(ch)->state = NFC_HALF_IDLE;
	nfc_reply(ch, NFC_TYPE_ACK, NFC_H2D, nfc_present(nfc_h2d(ch)),
		  NFC_STATE_CONSUMED, status, 0);
}

static int accept_message(struct nfc_channel *ch, struct nfc_process *p)
{
	uint64_t length = nfc_message_length(ch->parked.header);

	if (length > p->length)
		return -NFC_ETOOLARGE;
	__builtin_memcpy(p->buf, ch->parked.payload, length);
	nfc_unpark(ch);
	nfc_message_taken(ch, p, nfc_header_type(ch->parked.header));
	return (int)length;
}

bool nfc_fits(struct nfc_process *p, uint64_t size)
{
	if (!p->taken)
		return size == p->length;
	if (size > p->room_size)
		return false;
	*p->taken = (struct nfc_offer){ .indirect = 1, .size = size };
	p->buf = p->room;
	p->length = size;
	return true;
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
	if (!nfc_fits(p, begin->size)) {
		if (p->taken)
			return -NFC_ETOOLARGE;
		nfc_unpark(ch);
		nfc_reply(ch, NFC_TYPE_ERROR, NFC_H2D, nfc_present(half),
			  NFC_STATE_FAILED, NFC_ESIZE, p->length);
		return -NFC_ESIZE;
	}
	nfc_unpark(ch);
	if (nfc_header_type(ch->parked.header) == NFC_TYPE_EAGER) {
		struct nfc_pages pages;

		nfc_eager_check(ch, &ch->parked,
				&pages); /* it was valid when it arrived */
		return nfc_eager_move(p, ch, NFC_H2D, &pages);
	}
	half->waiter = p;
	ch->has_list = 0;
	if (!begin->size) {
		half->state = NFC_HALF_COMMIT;
		p->wait = NFC_WAIT_MOVING;
		nfc_reply(ch, NFC_TYPE_DONE, NFC_H2D, nfc_present(half),
			  NFC_STATE_DONE, NFC_OK, 0);
		return NFC_AGAIN;
	}
	nfc_transfer_begin(p, ch, NFC_H2D, begin->size);
	if (has_list)
		nfc_transfer_list(half->transfer, &ch->list);
	nfc_transfer_kick(half->transfer);
	return NFC_AGAIN;
}

/*
 * The host withdraws what is parked. A process that was just woken for it runs
 * first: had it waited in a read it would hold the message by now.
 */
void nfc_recall(struct nfc_channel *ch)
{
	if (ch->relay) {
		nfc_ask_back(ch, NFC_EWITHDRAWN);
		return;
	}
	ch->recall_id = nfc_present(nfc_h2d(ch));
	if (ch->recalled)
		return;
	ch->recalled = 1;
	ch->recall_next = ch->island->recalls;
	ch->island->recalls = ch;
}

/* The processes have run: end what the host wants back, if that is still there. */
static void give_back(struct nfc_channel *ch)
{
	if (nfc_is_offered(nfc_h2d(ch))) {
		nfc_unpark(ch);
		nfc_note(ch, NFC_TYPE_WITHDRAWN, NFC_H2D, ch->recall_id);
	} else if (nfc_h2d(ch)->state == NFC_HALF_TAKEN) {
		nfc_leave_question(ch, NFC_EWITHDRAWN);
	}
}

/* Give back what the processes left after they ran. */
void nfc_serve_recalls(struct nfc_island *island)
{
	struct nfc_channel *ch = island->recalls, *next;

	island->recalls = NULL;
	for (; ch; ch = next) {
		next = ch->recall_next;
		if (!nfc_rings_room(ch->rings)) {
			ch->recall_next = island->recalls;
			island->recalls = ch;
			continue;
		}
		ch->recalled = 0;
		if (nfc_present(nfc_h2d(ch)) == ch->recall_id)
			give_back(ch);
		nfc_joint_leave(ch); /* it was over, but for the list */
	}
}
