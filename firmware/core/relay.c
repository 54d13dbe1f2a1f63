// SPDX-License-Identifier: MIT
/*
 * Channels between hosts: each host has an end at the device, on the island of
 * its channel. An end reports an event to the other by a bit in its word of
 * events and a call on its island; forward.c handles the events. Record 0086.
 */
#include <stddef.h>

#include "calls.h"

struct nfc_relay_end *nfc_relay_other(const struct nfc_relay_end *end)
{
	struct nfc_relay *relay = end->relay;

	return &relay->end[end == relay->end];
}

static void post(struct nfc_device *dev, struct nfc_relay_end *end)
{
	if (atomic_exchange(&end->called, 1)) /* SYNC: relay */
		return;
	atomic_fetch_add(&end->relay->calls, 1);
	nfc_call_post(&dev->islands[end->island], &end->call);
}

void nfc_relay_forward(struct nfc_relay_end *end)
{
	post(end->host->dev, end);
}

void nfc_relay_notify(const struct nfc_relay_end *end, uint32_t events)
{
	struct nfc_relay_end *to = nfc_relay_other(end);

	atomic_fetch_or(&to->events, events);
	if (atomic_load(&to->bound))
		post(end->host->dev, to);
}

void nfc_relay_offer(struct nfc_channel *ch)
{
	struct nfc_relay_end *end = ch->relay, *to = nfc_relay_other(end);

	end->asked = 0;
	end->number++;
	to->offer = ch->parked;
	nfc_relay_notify(end, NFC_RELAY_OFFERED);
}

void nfc_relay_withdraw(struct nfc_relay_end *end)
{
	atomic_store(&nfc_relay_other(end)->back, end->number);
	nfc_relay_notify(end, NFC_RELAY_WITHDRAWN);
}

void nfc_relay_answer(struct nfc_channel *ch, enum nfc_status status,
		      uint64_t extra)
{
	struct nfc_relay_end *to = nfc_relay_other(ch->relay);

	to->extra = extra;
	atomic_store(&to->status, status);
	nfc_relay_notify(ch->relay, NFC_RELAY_ANSWERED);
}

void nfc_relay_give_up(struct nfc_relay_end *end)
{
	atomic_fetch_or(&end->events, NFC_RELAY_ENDED);
	nfc_relay_forward(end);
}

/* ---- transfers ---- */

uint64_t nfc_relay_room(const struct nfc_config *c)
{
	return 4 * sizeof(struct nfc_slot) * c->window + 2ull * NFC_BOUNCE;
}

uint8_t *nfc_relay_at(const struct nfc_relay_end *end)
{
	struct nfc_device *dev = end->host->dev;
	uint64_t each = nfc_relay_room(&dev->config);

	return dev->relay_room + (uint64_t)(end->relay - dev->relay) * each +
	       (end == end->relay->end ? 0 : each / 2);
}

void nfc_relay_part(struct nfc_transfer *t)
{
	struct nfc_transfer *give = t->follows ? t : t->peer;

	t->peer->peer = NULL;
	t->peer = NULL;
	give->until = 0;
	nfc_count(give->channel->rings->share, NFC_COUNT_PARKED, (uint64_t)-1);
}

void nfc_relay_settle(struct nfc_transfer *t, int result)
{
	struct nfc_transfer *give = t->peer;

	nfc_relay_part(t);
	if (t->follows)
		return;
	if (!result)
		give->ending = NFC_OK; /* also if its host withdraws it */
	else if (!give->ending)
		give->ending = result == -NFC_ECLOSED ? NFC_ECLOSED :
							NFC_EABORTED;
}

/* ---- an end that is released ---- */

/* Take an end off its island's list. */
static void unlist(struct nfc_island *island, struct nfc_relay_end *end)
{
	struct nfc_relay_end **link = &island->relays;

	while (end->waits && *link != end)
		link = &(*link)->next;
	if (end->waits)
		*link = end->next;
	end->waits = 0;
}

bool nfc_relay_unqueue(struct nfc_relay *relay)
{
	struct nfc_listener *l = relay->before;
	struct nfc_relay **link;

	if (!l)
		return false;
	for (link = &l->first; *link != relay; link = &(*link)->next)
		;
	*link = relay->next;
	l->waiting--;
	relay->before = NULL;
	return true;
}

/*
 * Remove the relay from listeners that offer it. Must hold the device's lock.
 */
static void end_offered(struct nfc_device *dev, const struct nfc_relay *relay)
{
	for (uint32_t i = 0; i < NFC_LISTENERS; i++)
		if (dev->listener[i].offered == relay)
			dev->listener[i].offered = NULL;
}

void nfc_relay_drop(struct nfc_relay_end *end)
{
	struct nfc_device *dev = end->host->dev;
	struct nfc_relay_end *other = nfc_relay_other(end);
	bool alone;

	unlist(&dev->islands[end->island], end);
	for (uint32_t d = 0; d < 2 && end->ch; d++) {
		struct nfc_transfer *t = end->ch->half[d].transfer;

		if (t && t->peer)
			nfc_relay_settle(t, -NFC_ECLOSED);
		end->ch->half[d].transfer = NULL; /* it is the relay's */
	}
	atomic_store(&end->bound, 0);
	if (end->ch)
		end->ch->relay = NULL;
	end->ch = NULL;
	nfc_relay_notify(end, NFC_RELAY_ENDED);
	nfc_lock(&dev->lock);
	/* who was not accepted yet leaves its place to others */
	alone = end == end->relay->end && nfc_relay_unqueue(end->relay);
	if (end != end->relay->end)
		end_offered(dev, end->relay);
	end->host = NULL;
	if (alone)
		other->host = NULL;
	nfc_unlock(&dev->lock);
	atomic_fetch_sub(&end->relay->ends,
			 alone ? 2 : 1); /* it may be another's from here on */
}

/* ---- guests ---- */

/* Where a channel is that is over: there is room, and nothing is ever put. */
static struct nfc_rings nowhere = { .mask = NFC_JOINT_SLOTS - 1 };

static struct nfc_relay *relay_of(struct nfc_channel *ch)
{
	return (void *)((uint8_t *)ch - offsetof(struct nfc_relay, guest));
}

void nfc_guest_init(struct nfc_relay *relay, struct nfc_process *p)
{
	struct nfc_relay_end *end = &relay->end[1];

	relay->guest = *end->ch;
	relay->guest.relay = NULL;
	relay->guest.guest = 1;
	relay->guest.process = p;
	end->ch = &relay->guest;
}

/* Nothing is given back any more. */
static void unrecall(struct nfc_channel *ch)
{
	struct nfc_channel **link = &ch->island->recalls;

	while (ch->recalled && *link != ch)
		link = &(*link)->recall_next;
	if (ch->recalled)
		*link = ch->recall_next;
	ch->recalled = 0;
}

void nfc_guest_wait(struct nfc_relay *relay, struct nfc_process *p)
{
	const uint8_t closed = NFC_CLOSED_DEVICE | NFC_CLOSED_OVER;

	relay->guest = (struct nfc_channel){
		.half = { { .closed = closed }, { .closed = closed } },
		.process = p,
		.island = p->island,
		.rings = &nowhere,
		.guest = 1,
	};
}

void nfc_guest_meet(struct nfc_relay *relay)
{
	struct nfc_relay_end *end = &relay->end[1];
	struct nfc_channel *ch = &relay->guest;
	uint32_t closed = 0;

	ch->rings = end->ch->rings;
	ch->id = end->ch->id;
	for (uint32_t d = 0; d < 2; d++) {
		ch->half[d].next = end->ch->half[d].next;
		if (ch->half[d].closed)
			closed |= 1u << d;
	}
	end->ch = ch;
	if (closed)
		nfc_relay_notify(relay->end, NFC_RELAY_CLOSED * closed);
}

/*
 * End the connection with the listener's node: no event and no host arrives any
 * more.
 */
void nfc_way_leave(struct nfc_relay *relay)
{
	struct nfc_joint *joint = relay->way;
	struct nfc_device *dev;

	if (!joint)
		return;
	dev = joint->rings[joint->far.here].host->dev;
	nfc_lock(&dev->lock);
	relay->awaits = false;
	nfc_unlock(&dev->lock);
	relay->way = NULL;
	joint->far.relay = NULL;
	nfc_joint_end(joint);
	atomic_fetch_sub(&joint->ends, 1); /* it may be another's from here on */
}

void nfc_far_guest_leave(struct nfc_relay *relay)
{
	struct nfc_device *dev = relay->end[1].host->dev;

	nfc_way_leave(relay);
	nfc_lock(&dev->lock);
	nfc_relay_unqueue(relay);
	end_offered(dev, relay);
	relay->end[1].host = NULL;
	nfc_unlock(&dev->lock);
	atomic_fetch_sub(&relay->ends, 1); /* it may be another's from here on */
}

void nfc_guest_over(struct nfc_channel *ch)
{
	struct nfc_relay *relay = relay_of(ch);
	struct nfc_relay_end *end = &relay->end[1];
	struct nfc_device *dev = end->host->dev;
	struct nfc_channel *entry = &end->host->channels[ch->id];

	unlist(ch->island, end);
	unrecall(ch);
	for (int d = 0; d < 2; d++) {
		entry->half[d].next = ch->half[d].next;
		ch->half[d].closed |= NFC_CLOSED_OVER;
	}
	entry->relay = NULL;
	ch->rings = &nowhere;
	atomic_store(&end->bound, 0);
	end->ch = NULL;
	nfc_lock(&dev->lock);
	nfc_relay_unqueue(relay);
	end_offered(dev, relay);
	end->host = NULL;
	nfc_unlock(&dev->lock);
	atomic_fetch_sub(&relay->ends, 1);
}

/* Does a guest wait for the listener, and leaves its place to others? */
static bool leaves_queue(struct nfc_channel *ch)
{
	struct nfc_device *dev = ch->island->dev;
	bool waits;

	nfc_lock(&dev->lock);
	waits = !ch->open && nfc_relay_unqueue(relay_of(ch));
	nfc_unlock(&dev->lock);
	return waits;
}

void nfc_guest_close(struct nfc_channel *ch, uint32_t halves)
{
	struct nfc_relay *relay = relay_of(ch);
	bool both = ch->half[0].closed && ch->half[1].closed;

	if (both && leaves_queue(ch)) {
		nfc_guest_over(ch);
	} else if (relay->end[1].ch) {
		nfc_relay_notify(relay->end, NFC_RELAY_CLOSED * halves);
	} else if (both) {
		nfc_way_leave(relay); /* no host has to connect */
		ch->half[0].closed |= NFC_CLOSED_OVER;
		ch->half[1].closed |= NFC_CLOSED_OVER;
	}
}

void nfc_guest_stop(struct nfc_channel *ch)
{
	struct nfc_relay *relay = relay_of(ch);

	if (!ch->half[0].waiter && !ch->half[1].waiter)
		return;
	nfc_read_clock(ch->island);
	relay->until = ch->island->now + NFC_ANSWER_NS;
	nfc_relay_notify(relay->end, NFC_RELAY_STOPPED);
}

void nfc_guest_end(struct nfc_channel *ch)
{
	struct nfc_relay *relay = relay_of(ch);
	struct nfc_device *dev = ch->island->dev;
	bool alone;

	ch->process = NULL;
	nfc_way_leave(relay);
	if (relay->end[1].ch)
		nfc_relay_notify(relay->end, NFC_RELAY_ENDED);
	nfc_lock(&dev->lock);
	/* who was not accepted yet leaves its place to others */
	alone = !ch->open && nfc_relay_unqueue(relay);
	relay->end[0].host = NULL;
	nfc_unlock(&dev->lock);
	if (alone)
		nfc_guest_over(ch);
	atomic_fetch_sub(&relay->ends, 1); /* it may be another's from here on */
}

void nfc_guest_refuse(struct nfc_device *dev, struct nfc_relay *relay)
{
	atomic_fetch_or(&relay->end[0].events, NFC_RELAY_ENDED);
	post(dev, &relay->end[0]);
}
