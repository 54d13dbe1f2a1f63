// SPDX-License-Identifier: MIT
/*
 * Transfers between hosts: the lists of the giving and of the taking host meet
 * at the taking side, which moves the bytes. Record 0086.
 */
#include "calls.h"

/* The memory of a side is its end's, for lists, and for bytes on their way. */
static void init_side(struct nfc_relay_end *end, struct nfc_transfer *t,
		      enum nfc_direction direction, uint64_t size)
{
	uint64_t window = end->host->dev->config.window;
	struct nfc_slot *queue = (void *)nfc_relay_at(end);

	t->queue = queue + (direction == NFC_H2D ? 0 : window);
	t->memory = (uint8_t *)(queue + 2 * window);
	nfc_transfer_init(t, end->ch, direction, size);
}

/* The offer is taken. It counts as parked until it ends: its host waits so long. */
static void accept_pair(struct nfc_relay_end *from, struct nfc_relay_end *to)
{
	struct nfc_channel *ch = from->ch;
	const struct nfc_begin *begin = (const void *)ch->parked.payload;

	nfc_unpark(ch);
	nfc_count(ch->rings->share, NFC_COUNT_PARKED, 1);
	init_side(from, &from->give, NFC_H2D, begin->size);
	init_side(to, &to->take, NFC_D2H, begin->size);
	from->give.follows = 1;
	to->take.source = NFC_SOURCE_PEER;
	from->give.peer = &to->take;
	to->take.peer = &from->give;
}

/* Give the pages or the list that the offer carried. */
static void give(struct nfc_channel *ch, struct nfc_transfer *t)
{
	bool has_list = ch->has_list;
	struct nfc_pages pages;

	ch->has_list = 0;
	if (nfc_header_type(ch->parked.header) == NFC_TYPE_EAGER) {
		nfc_eager_check(ch, &ch->parked,
				&pages); /* it was valid when it arrived */
		nfc_transfer_pages(t, &pages);
	} else if (has_list) {
		nfc_transfer_list(t, &ch->list);
	}
}

/* Do now what its host requested while the transfer was offered. */
static void catch_up(struct nfc_relay_end *end)
{
	if (end->asked == NFC_EABORTED)
		nfc_transfer_abort(&end->give, NFC_EABORTED, true);
	else if (end->asked == NFC_EPROTO)
		nfc_transfer_abort(&end->give, NFC_EPROTO, false);
	else if (end->asked == NFC_EWITHDRAWN)
		nfc_pair_withdraw(end->ch);
}

bool nfc_pair_begin(struct nfc_channel *ch, const struct nfc_pages *pages)
{
	struct nfc_relay_end *to = ch->relay, *from;

	if (!to)
		return false;
	from = nfc_relay_other(to);
	if (!from->ch || from->number != to->taken ||
	    nfc_h2d(from->ch)->state != NFC_HALF_OFFERED)
		return false; /* it was closed or removed */
	accept_pair(from, to);
	if (pages)
		nfc_transfer_pages(&to->take, pages);
	give(from->ch, &from->give);
	if (pages && from->give.received < from->give.size)
		nfc_transfer_bound(&from->give);
	catch_up(from);
	nfc_transfer_kick(&to->take);
	nfc_transfer_kick(&from->give);
	return true;
}

void nfc_pair_withdraw(struct nfc_channel *ch)
{
	struct nfc_transfer *t = nfc_h2d(ch)->transfer;

	/* with pages on both sides it is over at once */
	if (t->eager && t->peer && !t->peer->eager)
		nfc_transfer_abort(t, NFC_EWITHDRAWN, false);
}
