// SPDX-License-Identifier: MIT
/*
 * Channels between hosts: each host has an end at the device, of the island of its
 * channel. The ends say to each other what happened by a word of news and a call of the
 * other's island; what follows from it is in hear.c. Record 0086.
 */
#include "calls.h"

static struct nfc_relay_end *other(const struct nfc_relay_end *end)
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

void nfc_relay_hear(struct nfc_relay_end *end)
{
	post(end->host->dev, end);
}

void nfc_relay_notify(const struct nfc_relay_end *end, uint32_t news)
{
	struct nfc_relay_end *to = other(end);

	atomic_fetch_or(&to->news, news);
	if (atomic_load(&to->bound))
		post(end->host->dev, to);
}

void nfc_relay_offer(struct nfc_channel *ch)
{
	struct nfc_relay_end *end = ch->relay, *to = other(end);

	end->asked = 0;
	end->number++;
	to->offer = ch->parked;
	nfc_relay_notify(end, NFC_RELAY_OFFERED);
}

void nfc_relay_withdraw(struct nfc_relay_end *end)
{
	atomic_store(&other(end)->back, end->number);
	nfc_relay_notify(end, NFC_RELAY_WITHDRAWN);
}

void nfc_relay_answer(struct nfc_channel *ch, enum nfc_status status)
{
	atomic_store(&other(ch->relay)->status, status);
	nfc_relay_notify(ch->relay, NFC_RELAY_ANSWERED);
}

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

void nfc_relay_drop(struct nfc_relay_end *end)
{
	struct nfc_device *dev = end->host->dev;

	unlist(&dev->islands[end->island], end);
	atomic_store(&end->bound, 0);
	if (end->ch)
		end->ch->relay = NULL;
	end->ch = NULL;
	nfc_relay_notify(end, NFC_RELAY_GONE);
	nfc_lock(&dev->lock);
	end->host = NULL;
	nfc_unlock(&dev->lock);
	atomic_fetch_sub(&end->relay->ends,
			 1); /* it may be another's from here on */
}
