// SPDX-License-Identifier: MIT
/*
 * What an end of a channel between hosts hears of the other it says to its host, as a
 * device process would. Record 0086.
 */
#include "calls.h"

/* The other host's answer to what this one offers. */
static void answered(struct nfc_relay_end *end, struct nfc_channel *ch)
{
	struct nfc_half *half = nfc_h2d(ch);
	enum nfc_status status = atomic_load(&end->status);
	enum nfc_status asked = end->asked;
	uint64_t id = nfc_present(half);

	if (!nfc_is_offered(half))
		return; /* the half was closed meanwhile */
	nfc_unpark(ch);
	if (!status) {
		nfc_count(ch->rings->share, NFC_COUNT_DIRECT_H2D, 1);
		nfc_reply(ch, NFC_TYPE_ACK, NFC_H2D, id, NFC_STATE_CONSUMED,
			  NFC_OK, 0);
		return;
	}
	if (status == NFC_EWITHDRAWN && asked == NFC_EWITHDRAWN) {
		nfc_note(ch, NFC_TYPE_WITHDRAWN, NFC_H2D, id);
		return;
	}
	if (status == NFC_EWITHDRAWN && asked)
		status = asked;
	else if (status != NFC_ECLOSED)
		status = NFC_EABORTED; /* whatever that host says */
	nfc_reply(ch, NFC_TYPE_ERROR, NFC_H2D, id, NFC_STATE_FAILED, status, 0);
}

/* The other host offers a message. */
static void offered(struct nfc_relay_end *end, struct nfc_channel *ch)
{
	struct nfc_half *half = nfc_d2h(ch);
	const struct nfc_slot *slot = &end->offer;

	if (half->closed) {
		nfc_relay_answer(ch, NFC_ECLOSED);
		return;
	}
	half->state = NFC_HALF_MESSAGE;
	ch->posted = 0;
	ch->begin_ns = ch->island->now;
	end->taken++;
	nfc_put(ch, NFC_TYPE_DIRECT, nfc_header_length(slot->header),
		half->next++, slot->payload);
}

/* It wants it back. */
static void withdrawn(struct nfc_relay_end *end, struct nfc_channel *ch)
{
	struct nfc_half *half = nfc_d2h(ch);

	if (half->state == NFC_HALF_MESSAGE &&
	    atomic_load(&end->back) == end->taken)
		nfc_note(ch, NFC_TYPE_WITHDRAW, NFC_D2H, nfc_present(half));
}

static void closed(struct nfc_channel *ch, enum nfc_direction direction)
{
	struct nfc_half *half = &ch->half[direction];

	if (half->closed & NFC_CLOSED_DEVICE)
		return;
	half->closed |= NFC_CLOSED_DEVICE;
	if (direction == NFC_H2D)
		nfc_send_ready(ch);
	nfc_send_close(ch, 1u << direction);
}

static void hear(struct nfc_relay_end *end, enum nfc_relay_news news)
{
	struct nfc_channel *ch = end->ch;

	switch (news) {
	case NFC_RELAY_ANSWERED:
		answered(end, ch);
		break;
	case NFC_RELAY_OFFERED:
		offered(end, ch);
		break;
	case NFC_RELAY_WITHDRAWN:
		withdrawn(end, ch);
		break;
	case NFC_RELAY_GONE:
		nfc_relay_lose(ch);
		break;
	default:
		closed(ch, news == NFC_RELAY_CLOSED ? NFC_H2D : NFC_D2H);
	}
}

/* Hear all news, in their order; false if there is no room for what follows. */
static bool hear_all(struct nfc_relay_end *end)
{
	uint32_t news;

	/* before the host has opened its channel there is nobody to say it to */
	while (end->ch && end->ch->open && (news = atomic_load(&end->news))) {
		if (nfc_gone(end->host))
			return true;
		if (!nfc_rings_room(end->ch->rings))
			return false;
		news &= -news;
		atomic_fetch_and(&end->news, ~news);
		hear(end, (enum nfc_relay_news)news);
	}
	return true;
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
		if (!hear_all(end))
			wait_for_room(island, end);
	}
}

int nfc_read_relay(struct nfc_island *island, void *arg)
{
	struct nfc_relay_end *end = arg;

	atomic_exchange(&end->called, 0); /* SYNC: relay */
	if (!end->waits && !hear_all(end))
		wait_for_room(island, end);
	atomic_fetch_sub(&end->relay->calls,
			 1); /* it may be another's from here on */
	return NFC_AGAIN;
}
