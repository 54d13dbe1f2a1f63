// SPDX-License-Identifier: MIT
/*
 * Pages of host memory that a remote device may access: those of transfers that
 * are under way, in their direction. The host's end sees every slot that names
 * pages before the device does, and every answer that ends their use before the
 * host does. So no other party has to be asked, and pages that were returned
 * are out of reach. See
 * docs/design/0035-far-hosts.md.
 */
#include "far.h"

/* The pages of a transfer of one half; those that follow each other are one range. */
struct far_pages {
	uint64_t first, end; /* bus addresses; the end is none of it */
	uint64_t begun; /* bytes of the offer of the device … */
	uint32_t begun_id; /* … and its number, plus one */
	uint32_t over; /* number of a transfer that has ended, plus one: no pages for it */
	uint32_t place; /* in the list of those that are open, plus one; 0: it is not */
	uint16_t id; /* low bits of the transaction */
	bool recalled; /* the host has asked for them back */
};

/* Half 2 * channel + direction; then the list of halves that have pages. */
static struct far_pages *pages_of(const struct nfc_far *f)
{
	return f->config.pages;
}

static uint32_t *open_list(const struct nfc_far *f)
{
	return (uint32_t *)(pages_of(f) + 2ull * f->config.channels);
}

uint64_t nfc_far_pages_size(const struct nfc_far_config *c)
{
	return 2ull * c->channels *
	       (sizeof(struct far_pages) + sizeof(uint32_t));
}

static struct far_pages *half(struct nfc_far *f, uint64_t channel,
			      uint32_t direction)
{
	if (channel >= f->config.channels || direction > NFC_D2H)
		return NULL;
	return &pages_of(f)[2 * channel + direction];
}

static void put_in_list(struct nfc_far *f, struct far_pages *g, uint32_t place)
{
	open_list(f)[place] = (uint32_t)(g - pages_of(f));
	g->place = place + 1;
}

static void end_use(struct nfc_far *f, struct far_pages *g)
{
	uint32_t place = g->place;

	if (!place)
		return;
	f->granted--;
	put_in_list(f, &pages_of(f)[open_list(f)[f->granted]], place - 1);
	g->place = 0;
}

/* More pages of a transfer: of a new one, or those behind what it has. */
static void give(struct nfc_far *f, struct far_pages *g, uint16_t id,
		 uint64_t at, uint64_t size)
{
	if (g->over == id + 1u || size > UINT64_MAX - at)
		return;
	if (!g->place || g->id != id) {
		end_use(f, g);
		put_in_list(f, g, f->granted++);
		g->id = id;
		g->first = g->end = at;
	}
	if (at == g->end)
		g->end += size;
}

static uint64_t address_of(uint64_t entry, bool runs)
{
	return runs ? nfc_run_address(entry) : nfc_entry_address(entry);
}

static void list_sent(struct nfc_far *f, struct far_pages *g, uint16_t id,
		      uint64_t length, const struct nfc_gather *l)
{
	uint64_t n = length & NFC_LIST_COUNT_MASK;
	bool runs = length & NFC_LIST_RUNS;

	for (uint64_t i = 0; i < n && i < 6; i++)
		give(f, g, id, address_of(l->entry[i], runs),
		     runs ? nfc_run_length(l->entry[i]) :
			    nfc_entry_length(l->entry[i]));
}

static void eager_sent(struct nfc_far *f, struct far_pages *g, uint16_t id,
		       uint64_t length, const struct nfc_eager *e)
{
	bool about_nothing = length & NFC_LIST_D2H && g->begun_id == id + 1u &&
			     g->begun != e->size;

	if (!(length & NFC_LIST_COUNT_MASK) || e->size > NFC_EAGER_BYTES ||
	    about_nothing)
		return;
	end_use(f, g); /* the same number, where pages are posted again */
	give(f, g, id, address_of(e->entry[0], length & NFC_LIST_RUNS), e->size);
}

/*
 * The host withdraws an offer: a device that guesses may have answered already.
 */
static void withdraw_sent(struct far_pages *g, uint16_t id)
{
	if (g->over == id + 1u)
		g->over = 0;
	else
		g->recalled = true;
}

void nfc_far_sent(struct nfc_far *f, const struct nfc_slot *s)
{
	uint64_t type = nfc_header_type(s->header);
	uint64_t channel = nfc_header_channel(s->header);
	uint64_t length = nfc_header_length(s->header);
	uint16_t id = (uint16_t)nfc_header_sequence(s->header);
	const void *payload = s->payload;
	const struct nfc_note *note = payload;
	struct far_pages *g;

	if (type == NFC_TYPE_WITHDRAW) {
		g = half(f, channel, note->direction);
		if (g)
			withdraw_sent(g, id);
		return;
	}
	if (type != NFC_TYPE_IND_LIST && type != NFC_TYPE_EAGER)
		return;
	g = half(f, channel, length & NFC_LIST_D2H ? NFC_D2H : NFC_H2D);
	if (g && type == NFC_TYPE_IND_LIST)
		list_sent(f, g, id, length, payload);
	else if (g)
		eager_sent(f, g, id, length, payload);
}

/* No page of that transfer is touched any more, nor any that the host still names. */
static void note_received(struct nfc_far *f, struct far_pages *g, uint16_t id)
{
	if (!g)
		return;
	if (g->id == id)
		end_use(f, g);
	g->over = id + 1u;
	g->recalled = false;
}

static void withdrawn_received(struct nfc_far *f, struct far_pages *g,
			       uint16_t id)
{
	bool recalled;

	if (!g)
		return;
	recalled = g->recalled;
	note_received(f, g, id);
	if (recalled) /* its number may be used again */
		g->over = 0;
}

static void begin_received(struct nfc_far *f, struct far_pages *g, uint16_t id,
			   uint64_t size)
{
	if (!g)
		return;
	g->begun = size;
	g->begun_id = id + 1u;
	if (g->id == id && g->end - g->first != size)
		end_use(f, g);
}

void nfc_far_received(struct nfc_far *f, const struct nfc_slot *s)
{
	uint64_t channel = nfc_header_channel(s->header);
	uint16_t id = (uint16_t)nfc_header_sequence(s->header);
	const void *payload = s->payload;
	const struct nfc_ack *ack = payload;
	const struct nfc_note *note = payload;
	const struct nfc_begin *begin = payload;

	switch (nfc_header_type(s->header)) {
	case NFC_TYPE_ACK:
		if (ack->state != NFC_STATE_CONSUMED)
			return;
		/* fall through */
	case NFC_TYPE_DONE:
	case NFC_TYPE_ABORTED:
	case NFC_TYPE_ERROR:
		note_received(f, half(f, channel, ack->direction), id);
		return;
	case NFC_TYPE_WITHDRAWN:
		withdrawn_received(f, half(f, channel, note->direction), id);
		return;
	case NFC_TYPE_ANSWER:
		note_received(f, half(f, channel, NFC_H2D), id);
		return;
	case NFC_TYPE_DIRECT:
		note_received(f, half(f, channel, NFC_D2H), id);
		return;
	case NFC_TYPE_IND_BEGIN:
		begin_received(f, half(f, channel, NFC_D2H), id, begin->size);
	}
}

bool nfc_far_granted(struct nfc_far *f, bool write, uint64_t bus, uint64_t size)
{
	for (uint32_t i = 0; i < f->granted; i++) {
		uint32_t index = open_list(f)[i];
		const struct far_pages *g = &pages_of(f)[index];

		if ((index & 1) == (write ? NFC_D2H : NFC_H2D) &&
		    bus >= g->first && bus <= g->end && size <= g->end - bus)
			return true;
	}
	return false;
}
