// SPDX-License-Identifier: MIT
/*
 * An end of a channel between hosts goes to the host at the other end of another channel.
 * The end has a ticket until that host claims it, or the sender voids the ticket. Both run
 * on the end's island, so one of them is first. Record 0108.
 */
#include "calls.h"

struct moving {
	struct nfc_host *host; /* that asks */
	uint32_t target; /* of the end; CLAIM, out: the one to open */
	uint32_t via; /* target of the channel that it passes through */
	uint64_t ticket;
	uint64_t through; /* number of that channel's relay … */
	uint8_t through_end; /* … and the end that the sender has */
	bool moved; /* VOID, out */
};

/* The end that a host has at a target, if it is one of two hosts. On the target's island. */
static struct nfc_relay_end *end_at(const struct nfc_host *host, uint32_t target)
{
	struct nfc_channel *ch = &host->channels[target];
	struct nfc_relay_end *end = ch->relay;

	return ch->open && end && !end->relay->has_guest && !end->relay->way ?
		       end :
		       NULL;
}

static int find_via(struct nfc_island *island, void *arg)
{
	struct moving *m = arg;
	const struct nfc_relay_end *end = end_at(m->host, m->via);

	if (!end)
		return -NFC_ENOTARGET;
	nfc_lock(&island->dev->lock);
	m->through = end->relay->number;
	nfc_unlock(&island->dev->lock);
	m->through_end = end != end->relay->end;
	return 0;
}

/* Find the channel that an end passes through. */
static int look_up_via(struct nfc_process *self, struct moving *m, uint64_t via)
{
	if (via >= self->host->channel_count)
		return -NFC_ENOTARGET;
	m->via = (uint32_t)via;
	return nfc_island_call(self, nfc_island_of(self->host, m->via),
			       find_via, m);
}

/*
 * Is nothing under way at an end, but for an offer of the other host? That host must not
 * have asked it back, as the time for the answer runs.
 */
static bool is_quiet(struct nfc_relay_end *end)
{
	struct nfc_channel *ch = end->ch;
	const struct nfc_half *d2h = nfc_d2h(ch);

	if (nfc_h2d(ch)->state != NFC_HALF_IDLE || ch->posted || ch->ending)
		return false;
	return d2h->state == NFC_HALF_IDLE ||
	       (nfc_is_offered(d2h) && atomic_load(&end->back) != end->taken);
}

/* ---- TICKET ---- */

/*
 * Take all that a host put in a mailbox before its request: an answer of that time must
 * not be read after the end has moved. False: there is no room for the answers.
 */
static bool take_all(struct nfc_rings *rings)
{
	for (uint64_t n = 0; n <= rings->mask; n += NFC_TAKE_BUDGET)
		if (nfc_read_manager(rings) < NFC_TAKE_BUDGET)
			return !nfc_rings_pending(rings) ||
			       nfc_rings_room(rings);
	return true;
}

static int ticket_here(struct nfc_island *island, void *arg)
{
	struct moving *m = arg;
	struct nfc_relay_end *end = end_at(m->host, m->target);
	bool has_room;

	if (!end) /* nor has it a mailbox before its first use */
		return -NFC_ENOTARGET;
	has_room = take_all(m->host->channels[m->target].rings);
	end = end_at(m->host, m->target); /* the host may have closed it */
	if (!end)
		return -NFC_ENOTARGET;
	if (!has_room || !is_quiet(end))
		return -NFC_EBUSY;
	nfc_lock(&island->dev->lock);
	m->ticket = end->relay->number == m->through ? 0 : ++island->dev->ticket;
	end->ticket = m->ticket;
	end->through = m->through;
	end->through_end = m->through_end;
	nfc_unlock(&island->dev->lock);
	return m->ticket ? 0 : -NFC_EINVAL;
}

int nfc_ticket(struct nfc_process *self, struct nfc_control *c)
{
	struct moving m = { .host = self->host, .target = (uint32_t)c->a };
	int rc = c->a < self->host->channel_count ? look_up_via(self, &m, c->b) :
						    -NFC_ENOTARGET;

	if (!rc)
		rc = nfc_island_call(self, nfc_island_of(m.host, m.target),
				     ticket_here, &m);
	c->a = m.ticket;
	return rc;
}

/* ---- VOID ---- */

static int void_here(struct nfc_island *island, void *arg)
{
	struct moving *m = arg;
	const struct nfc_channel *ch = &m->host->channels[m->target];

	if (!ch->open)
		return -NFC_ENOTARGET;
	m->moved = ch->moved;
	nfc_lock(&island->dev->lock);
	if (ch->relay && ch->relay->ticket == m->ticket)
		ch->relay->ticket = 0;
	nfc_unlock(&island->dev->lock);
	return 0;
}

int nfc_void(struct nfc_process *self, struct nfc_control *c)
{
	struct moving m = { .host = self->host,
			    .target = (uint32_t)c->a,
			    .ticket = c->b };
	int rc;

	if (c->a >= self->host->channel_count)
		return -NFC_ENOTARGET;
	rc = nfc_island_call(self, nfc_island_of(m.host, m.target), void_here,
			     &m);
	c->b = m.moved;
	return rc;
}

/* ---- CLAIM ---- */

/* The end that a ticket names, for the other end of its channel. Must hold the device's lock. */
static struct nfc_relay_end *ticketed(struct nfc_device *dev,
				      const struct moving *m)
{
	for (uint32_t i = 0; m->ticket && i < 2 * NFC_RELAYS; i++) {
		struct nfc_relay_end *end = &dev->relay[i / 2].end[i % 2];

		if (end->host && end->ticket == m->ticket &&
		    end->through == m->through &&
		    end->through_end != m->through_end)
			return end;
	}
	return NULL;
}

/* May a host have the end, by the bounds of a new relay? Must hold the device's lock. */
static int may_have(struct nfc_relay_end *end, const struct nfc_host *host)
{
	struct nfc_relay_end *other = nfc_relay_other(end);
	struct nfc_host *is[2] = { end->host, other->host };
	int rc;

	if (is[0] == host || !is[1])
		return 0;
	end->host = other->host = NULL; /* they do not count themselves */
	rc = end == end->relay->end ? nfc_relays_bound(host->dev, host, is[1]) :
				      nfc_relays_bound(host->dev, is[1], host);
	end->host = is[0];
	other->host = is[1];
	return rc;
}

/* The events that tell the next host how the end stands. */
static uint32_t events_of(const struct nfc_relay_end *end)
{
	uint32_t events = end->ready_due ? NFC_RELAY_ASKED : 0;

	if (nfc_is_offered(nfc_d2h(end->ch)))
		events |= NFC_RELAY_OFFERED;
	for (uint32_t d = 0; d < 2; d++)
		if (end->ch->half[d].closed)
			events |= NFC_RELAY_CLOSED << d;
	return events;
}

/* The channel has no end any more; its host closes it. */
static void part_from_end(struct nfc_channel *ch)
{
	for (int d = 0; d < 2; d++) {
		ch->half[d].closed |= NFC_CLOSED_DEVICE;
		ch->half[d].state = NFC_HALF_IDLE;
	}
	ch->relay = NULL;
	ch->moved = 1;
}

static void give_end(struct nfc_relay_end *end, uint32_t target)
{
	struct nfc_channel *from = end->ch;
	uint32_t events = events_of(end);

	atomic_store(&end->bound, 0);
	part_from_end(from);
	nfc_relay_bind(end, target);
	end->ready_due = 0;
	if (events & NFC_RELAY_OFFERED)
		end->taken--; /* it is counted again */
	atomic_fetch_or(&end->events, events); /* OPEN handles them */
}

static int claim_here(struct nfc_island *island, void *arg)
{
	struct nfc_device *dev = island->dev;
	struct moving *m = arg;
	struct nfc_relay_end *end;
	int rc = -NFC_ENOTARGET;

	if (nfc_is_detaching(m->host))
		return -NFC_ECLOSED;
	m->target = nfc_free_targets(island, m->host, 1);
	nfc_lock(&dev->lock);
	end = ticketed(dev, m);
	if (end && end->island == island->index)
		rc = !end->ch || !is_quiet(end) ? -NFC_EBUSY :
		     !m->target			? -NFC_ENOMEM :
						  may_have(end, m->host);
	if (!rc) {
		end->ticket = 0;
		end->host = m->host;
	}
	nfc_unlock(&dev->lock);
	if (!rc)
		give_end(end, m->target);
	return rc;
}

int nfc_claim(struct nfc_process *self, struct nfc_control *c)
{
	struct moving m = { .host = self->host, .ticket = c->b };
	struct nfc_device *dev = self->island->dev;
	struct nfc_relay_end *end;
	uint32_t island = 0;
	int rc = look_up_via(self, &m, c->a);

	if (rc)
		return rc;
	nfc_lock(&dev->lock);
	end = ticketed(dev, &m);
	if (end)
		island = end->island;
	nfc_unlock(&dev->lock);
	rc = end ? nfc_island_call(self, &dev->islands[island], claim_here, &m) :
		   -NFC_ENOTARGET;
	c->a = m.target;
	return rc;
}
