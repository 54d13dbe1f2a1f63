// SPDX-License-Identifier: MIT
/*
 * Forwards events of the remote end of a channel between hosts to the local
 * host, in the form that a device process would use. Record 0086.
 */
#include "calls.h"

/* The other host's answer to what this one offers. */
static void answered(struct nfc_relay_end *end, struct nfc_channel *ch)
{
	struct nfc_half *half = nfc_h2d(ch);
	enum nfc_status status = atomic_load(&end->status);
	enum nfc_status asked = end->asked;
	const struct nfc_begin *begin = (const void *)ch->parked.payload;
	uint64_t id = nfc_present(half);
	bool message;

	if (!nfc_is_offered(half))
		return; /* the half was closed meanwhile */
	message = half->state == NFC_HALF_MESSAGE;
	nfc_unpark(ch);
	if (!status) {
		nfc_count(ch->rings->share,
			  message ? NFC_COUNT_DIRECT_H2D :
				    NFC_COUNT_TRANSFERS_H2D,
			  1);
		nfc_reply(ch, NFC_TYPE_ACK, NFC_H2D, id, NFC_STATE_CONSUMED,
			  NFC_OK, 0);
		return;
	}
	if (status == NFC_EWITHDRAWN && asked == NFC_EWITHDRAWN) {
		nfc_note(ch, NFC_TYPE_WITHDRAWN, NFC_H2D, id);
		return;
	}
	if (status == NFC_EWITHDRAWN && asked == NFC_EABORTED) {
		nfc_reply(ch, NFC_TYPE_ABORTED, NFC_H2D, id, NFC_STATE_FAILED,
			  asked, begin->size);
		return;
	}
	if (status == NFC_EWITHDRAWN && asked)
		status = asked;
	else if (status != NFC_ECLOSED && status != NFC_ESIZE &&
		 status != NFC_EKIND)
		status = NFC_EABORTED; /* whatever status that host sent */
	nfc_reply(ch, NFC_TYPE_ERROR, NFC_H2D, id, NFC_STATE_FAILED, status,
		  status == NFC_ESIZE ? end->extra : 0);
}

/* The other host offers a transfer: into pages that wait for one of its size, at once. */
static void offered_ind(struct nfc_relay_end *end, struct nfc_channel *ch)
{
	const struct nfc_begin *begin = (const void *)end->offer.payload;
	struct nfc_half *half = nfc_d2h(ch);
	uint64_t payload[7] = { half->next++, begin->size };
	bool fits = ch->posted && ch->post.size == begin->size;

	half->state = NFC_HALF_OFFERED;
	ch->offered = begin->size;
	ch->posted = 0;
	if (!fits) {
		nfc_put(ch, NFC_TYPE_IND_BEGIN, NFC_PAYLOAD_SIZE, payload[0],
			payload);
	} else if (!nfc_pair_begin(ch, &ch->post)) {
		nfc_reply(ch, NFC_TYPE_ERROR, NFC_D2H, payload[0],
			  NFC_STATE_FAILED, NFC_ECLOSED, 0);
		nfc_half_release(ch, NFC_D2H, -NFC_ECLOSED);
	}
}

/* The other host offers something. */
static void offered(struct nfc_relay_end *end, struct nfc_channel *ch)
{
	struct nfc_half *half = nfc_d2h(ch);
	const struct nfc_slot *slot = &end->offer;

	if (half->closed) {
		nfc_relay_answer(ch, NFC_ECLOSED, 0);
		return;
	}
	ch->begin_ns = ch->island->now;
	end->taken++;
	end->ready_due = 0;
	if (nfc_header_type(slot->header) != NFC_TYPE_DIRECT) {
		offered_ind(end, ch);
		return;
	}
	half->state = NFC_HALF_MESSAGE;
	ch->posted = 0;
	nfc_put(ch, NFC_TYPE_DIRECT, nfc_header_length(slot->header),
		half->next++, slot->payload);
}

/* It asks whether this host waits. One that does not know of that never does. */
static void asked(struct nfc_relay_end *end, struct nfc_channel *ch)
{
	struct nfc_half *half = nfc_d2h(ch);

	if (half->closed || half->state != NFC_HALF_IDLE || end->ready_due ||
	    !nfc_accepted(end->host, NFC_CAP_READY))
		return;
	end->ready_due = 1;
	nfc_note(ch, NFC_TYPE_OFFER, NFC_D2H, half->next);
}

/* The sender withdrew its offer. */
static void withdrawn(struct nfc_relay_end *end, struct nfc_channel *ch)
{
	struct nfc_half *half = nfc_d2h(ch);

	if (nfc_is_offered(half) && atomic_load(&end->back) == end->taken)
		nfc_note(ch, NFC_TYPE_WITHDRAW, NFC_D2H, nfc_present(half));
}

static void closed(struct nfc_channel *ch, enum nfc_direction direction)
{
	struct nfc_half *half = &ch->half[direction];

	if (half->closed & NFC_CLOSED_DEVICE && !ch->guest)
		return;
	half->closed |= NFC_CLOSED_DEVICE;
	if (direction == NFC_H2D)
		nfc_send_ready(ch);
	nfc_send_close(ch, 1u << direction);
}

/* There is no host at the far end any more: what is offered ends, and both halves close. */
static void lose_other(struct nfc_channel *ch)
{
	uint32_t halves = 0;

	if (nfc_is_offered(nfc_h2d(ch)))
		nfc_refuse(ch, NFC_ECLOSED);
	if (nfc_is_offered(nfc_d2h(ch)))
		nfc_note(ch, NFC_TYPE_WITHDRAW, NFC_D2H,
			 nfc_present(nfc_d2h(ch)));
	for (uint32_t d = 0; d < 2; d++) {
		if (!(ch->half[d].closed & NFC_CLOSED_DEVICE))
			halves |= 1u << d;
		ch->half[d].closed |= NFC_CLOSED_DEVICE;
	}
	nfc_send_ready(ch);
	if (halves)
		nfc_send_close(ch, halves);
	if (ch->relay)
		nfc_relay_drop(ch->relay);
}

/* End what moves: the memory that it uses is the relay's. False: not yet. */
static bool stop_pairs(struct nfc_channel *ch)
{
	bool quiet = true;

	for (uint32_t d = 0; d < 2; d++) {
		if (ch->half[d].state != NFC_HALF_MOVING)
			continue;
		nfc_transfer_abort(ch->half[d].transfer, NFC_ECLOSED, false);
		quiet = false;
	}
	return quiet;
}

/* ---- guests, whose processes end or are to stop ---- */

/* In the list of what moves one transfer takes the place of another. */
static void replace(struct nfc_share *share, const struct nfc_transfer *t,
		    struct nfc_transfer *by)
{
	struct nfc_transfer **link = &share->active;

	while (*link && *link != t)
		link = &(*link)->next;
	if (*link)
		*link = by;
}

/*
 * Stop a transfer of a process if it moves. The rest of it, which reports the
 * end to the host, then does not need the process. False: not yet.
 */
static bool part_transfer(struct nfc_relay *relay, struct nfc_half *half)
{
	struct nfc_relay_end *end = &relay->end[1];
	struct nfc_transfer *t = half->transfer, *rest;

	if (!half->waiter || !t)
		return true;
	if (half->state == NFC_HALF_MOVING)
		nfc_transfer_abort(t, NFC_ECLOSED, false);
	if (!nfc_dma_quiet(t))
		return false;
	nfc_dma_close(end->host->dev, t);
	rest = t->direction == NFC_H2D ? &end->give : &end->take;
	*rest = *t;
	replace(relay->guest.rings->share, t, rest);
	half->transfer = rest;
	return true;
}

/*
 * Release a process that is to stop and waits for its host, when the host's
 * time is over. The host may still receive the message or transfer that the
 * process offered or moved. False: it waits.
 */
static bool release(struct nfc_relay *relay)
{
	struct nfc_channel *ch = &relay->guest;
	bool waits = ch->half[0].waiter || ch->half[1].waiter;

	if (relay->until && waits && ch->island->now < relay->until)
		return false;
	for (int d = 0; relay->until && d < 2; d++) {
		if (!part_transfer(relay, &ch->half[d]))
			return false;
		if (ch->half[d].waiter)
			nfc_wake(ch->half[d].waiter, -NFC_ESTOPPED);
		ch->half[d].waiter = NULL;
	}
	relay->until = 0;
	return true;
}

/* It takes back what it offers. */
static void stopped(struct nfc_channel *ch)
{
	struct nfc_half *half = nfc_d2h(ch);

	if (half->waiter && nfc_is_offered(half))
		nfc_note(ch, NFC_TYPE_WITHDRAW, NFC_D2H, nfc_present(half));
}

/* ---- events ---- */

static void forward_event(struct nfc_relay_end *end,
			  enum nfc_relay_events events)
{
	struct nfc_channel *ch = end->ch;

	switch (events) {
	case NFC_RELAY_ANSWERED:
		answered(end, ch);
		break;
	case NFC_RELAY_OFFERED:
		offered(end, ch);
		break;
	case NFC_RELAY_WITHDRAWN:
		withdrawn(end, ch);
		break;
	case NFC_RELAY_ASKED:
		asked(end, ch);
		break;
	case NFC_RELAY_READY:
		nfc_send_ready(ch);
		break;
	case NFC_RELAY_ENDED:
		lose_other(ch);
		break;
	case NFC_RELAY_STOPPED:
		stopped(ch);
		break;
	default:
		closed(ch, events == NFC_RELAY_CLOSED ? NFC_H2D : NFC_D2H);
	}
}

/*
 * Has the event to wait? Another host's next offer waits until the end of the
 * transfer before it has been reported.
 */
static bool comes_early(struct nfc_relay_end *end, uint32_t event)
{
	if (event == NFC_RELAY_OFFERED)
		return nfc_d2h(end->ch)->state == NFC_HALF_MOVING;
	return event == NFC_RELAY_ENDED && !stop_pairs(end->ch);
}

/*
 * Handle all events in order; false if it has to run again, usually for lack of
 * room.
 */
static bool forward_events(struct nfc_relay_end *end)
{
	bool released = release(end->relay);
	uint32_t events;

	/* a host that has not opened its channel yet cannot be notified */
	while (end->ch && end->ch->open && (events = atomic_load(&end->events))) {
		if (nfc_is_detaching(end->host))
			return true;
		if (!nfc_rings_room(end->ch->rings))
			return false;
		events &= -events;
		if (comes_early(end, events))
			return false;
		atomic_fetch_and(&end->events, ~events);
		forward_event(end, (enum nfc_relay_events)events);
	}
	return released;
}

static void wait_for_room(struct nfc_island *island, struct nfc_relay_end *end)
{
	end->waits = 1;
	end->next = island->relays;
	island->relays = end;
}

void nfc_serve_relays(struct nfc_island *island)
{
	struct nfc_relay_end *end = island->relays, *next;

	island->relays = NULL;
	for (; end; end = next) {
		next = end->next;
		end->waits = 0;
		if (!forward_events(end))
			wait_for_room(island, end);
	}
}

int nfc_read_relay(struct nfc_island *island, void *arg)
{
	struct nfc_relay_end *end = arg;

	atomic_exchange(&end->called, 0); /* SYNC: relay */
	if (!end->waits && !forward_events(end))
		wait_for_room(island, end);
	atomic_fetch_sub(&end->relay->calls,
			 1); /* it may be another's from here on */
	return NFC_AGAIN;
}

/* ---- guests ---- */

void nfc_guest_alone(struct nfc_channel *ch)
{
	for (int d = 0; d < 2; d++)
		ch->half[d].closed |= NFC_CLOSED_OVER;
	nfc_h2d(ch)->notice = 1;
	nfc_half_release(ch, NFC_H2D, NFC_AGAIN);
	nfc_half_release(ch, NFC_D2H, NFC_AGAIN);
}

int nfc_read_guest(struct nfc_island *island, void *arg)
{
	struct nfc_relay_end *end = arg;
	struct nfc_relay *relay = end->relay;
	struct nfc_channel *ch = &relay->guest;

	(void)island;
	atomic_exchange(&end->called, 0); /* SYNC: relay */
	/* a host may have guessed the target, and opened it: that is as good */
	if (atomic_load(&end->events) & NFC_RELAY_ENDED && relay->end[1].ch &&
	    !ch->open) {
		nfc_guest_over(ch);
		nfc_guest_alone(ch);
	}
	atomic_fetch_sub(&relay->calls, 1); /* it may be another's from here on */
	return NFC_AGAIN;
}

void nfc_guest_lose(struct nfc_channel *ch)
{
	for (int d = 0; d < 2; d++)
		if (ch->half[d].state == NFC_HALF_MOVING)
			nfc_half_release(ch, d, -NFC_ECLOSED);
	if (ch->open) {
		nfc_other_closed(ch);
		return;
	}
	nfc_guest_over(ch);
	nfc_guest_alone(ch);
}

/*
 * Separate a process that makes no further call of a guest, and gets no result
 * of one.
 */
static bool part(struct nfc_relay *relay)
{
	struct nfc_half *half = relay->guest.half;

	if (relay->end[1].ch && !nfc_is_detaching(relay->end[1].host) &&
	    (!part_transfer(relay, &half[0]) || !part_transfer(relay, &half[1])))
		return false;
	half[0].waiter = half[1].waiter = NULL;
	return true;
}

int nfc_guests_part(struct nfc_island *island, const struct nfc_host *host)
{
	struct nfc_process *p = host->shares[island->index].processes;

	for (uint32_t i = 0; i < island->process_count; i++)
		for (struct nfc_relay *r = p[i].guests; r; r = r->sibling)
			if (!part(r))
				return -NFC_EBUSY;
	return 0;
}
