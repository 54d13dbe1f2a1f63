// SPDX-License-Identifier: MIT
/* One end of a link: its configuration, and its turns. */
#include "frame.h"

enum {
	RATE_HEARTBEATS = 10, /* heartbeats in which errors are counted */
	RATE_SICK = 8, /* errors that make a link sick */
	RATE_CLEAN = 3, /* intervals without that many before it is well again */
};

static bool power_of_two(uint32_t n)
{
	return n && !(n & (n - 1));
}

static void set32(uint32_t *field, uint32_t value)
{
	if (!*field)
		*field = value;
}

static void set64(uint64_t *field, uint64_t value)
{
	if (!*field)
		*field = value;
}

int nfc_link_check(struct nfc_link_config *c)
{
	set32(&c->depth, 1024);
	set32(&c->buffer, 2048);
	set32(&c->period, c->flow == NFC_FLOW_CLASSIC ? 35 : 256);
	set32(&c->test, 64);
	set64(&c->beat_ns, 100000000);
	set64(&c->retry_ns, 1000000);
	set64(&c->silence_ns, 700000000);
	if (!power_of_two(c->depth) || !power_of_two(c->buffer) ||
	    c->depth < NFC_LINK_DEPTH_MIN || c->depth > NFC_LINK_DEPTH_MAX ||
	    c->buffer < NFC_LINK_DEPTH_MIN || c->buffer > NFC_LINK_BUFFER_MAX)
		return -NFC_EINVAL;
	if (c->flow > NFC_FLOW_CLASSIC || c->period < 3 || c->test > 0xffff ||
	    c->yellow > c->depth || (c->window && c->window < NFC_PACKET_WORDS))
		return -NFC_EINVAL;
	if (c->silence_ns < 3 * c->beat_ns || c->silence_ns < 3 * c->retry_ns)
		return -NFC_EINVAL; /* one heartbeat that is lost is no silence */
	return 0;
}

uint64_t nfc_link_size(const struct nfc_link_config *config)
{
	return NFC_VCS * nfc_fifo_size(config->depth) +
	       nfc_fifo_size(config->buffer);
}

void nfc_link_init(struct nfc_link_end *l, const struct nfc_link_config *config,
		   const struct nfc_link_port *port, uint32_t index,
		   void *memory)
{
	__builtin_memset(l, 0, sizeof(*l));
	l->config = *config;
	l->port = port;
	l->index = index;
	l->expect = NFC_ANY_NODE;
	l->now = port->now(port->self);
	l->session = (uint16_t)(l->now ^ l->now >> 16 ^ index);
	l->tx.depth = config->depth;
	for (uint32_t vc = 0; vc < NFC_VCS; vc++)
		memory = nfc_fifo_init(&l->rx.fifo[vc], config->depth, memory);
	nfc_fifo_init(&l->tx.buffer, config->buffer, memory);
	nfc_receiver_reset(&l->rx);
	nfc_sender_reset(l);
}

/* The port's neighbour appeared, disappeared or changed. */
static void check_generation(struct nfc_link_end *l)
{
	uint32_t generation = l->port->generation(l->port->self, l->index);

	if (generation == l->generation)
		return;
	l->generation = generation;
	nfc_link_event(l, generation ? NFC_LINK_APPEARED : NFC_LINK_GONE);
}

/* How sick errors make the link, with hysteresis. */
static void rate(struct nfc_link_end *l)
{
	uint64_t errors = l->count[NFC_LINK_BAD_PACKETS] +
			  l->count[NFC_LINK_BAD_CONTROLS] +
			  l->count[NFC_LINK_BAD_CREDITS] +
			  l->count[NFC_LINK_TIMEOUTS];

	if (l->now - l->rate_ns < RATE_HEARTBEATS * l->config.beat_ns)
		return;
	if (errors - l->rate_errors >= RATE_SICK) {
		l->level = NFC_DIAG_SICK;
		l->clean = 0;
	} else if (++l->clean >= RATE_CLEAN) {
		l->level = NFC_DIAG_NORMAL;
		l->clean = RATE_CLEAN;
	}
	l->rate_errors = errors;
	l->rate_ns = l->now;
}

bool nfc_link_receive(struct nfc_link_end *l)
{
	const struct nfc_link_port *port = l->port;
	uint64_t polled = l->now;
	uint32_t taken = 0;

	l->now = port->now(port->self);
	/*
	 * this end did not read while its thread had no processor: the other
	 * end was not silent
	 */
	if (l->now - polled > 2 * l->config.beat_ns)
		l->seen_ns += l->now - polled;
	check_generation(l);
	while (taken < NFC_LINK_BUDGET) {
		uint32_t n = 0;
		const struct nfc_word *in = port->peek(port->self, l->index, &n);

		if (!n)
			break;
		nfc_receive_words(l, in, n);
		port->release(port->self, l->index, n);
		taken += n;
	}
	l->count[NFC_LINK_WORDS_TAKEN] += taken;
	nfc_align_time(l);
	if (l->state != NFC_LINK_UP)
		return taken >= NFC_LINK_BUDGET;
	rate(l);
	if (l->now - l->seen_ns > l->config.silence_ns || !nfc_sender_time(l))
		nfc_link_event(l, NFC_LINK_LOST);
	return taken >= NFC_LINK_BUDGET;
}

uint64_t nfc_link_transmit(struct nfc_link_end *l)
{
	uint64_t due, silent = l->seen_ns + l->config.silence_ns;

	nfc_send_words(l);
	if (l->state == NFC_LINK_DOWN)
		return UINT64_MAX;
	if (l->state != NFC_LINK_UP)
		return l->retry_due;
	due = nfc_sender_due(l);
	if (l->full && due < l->now + l->config.retry_ns)
		due = l->now + l->config.retry_ns; /* nothing can leave before */
	return due < silent ? due : silent;
}

const struct nfc_held *nfc_link_head(const struct nfc_link_end *l, uint32_t vc)
{
	const struct nfc_fifo *f = &l->rx.fifo[vc];

	return f->first == f->last ? NULL : nfc_fifo_at(f, f->first);
}

void nfc_link_consume(struct nfc_link_end *l, uint32_t vc)
{
	struct nfc_fifo *f = &l->rx.fifo[vc];
	uint32_t before = f->begin;

	nfc_fifo_pop(f);
	l->rx.stored--;
	l->rx.consumed[vc] += f->begin - before;
	l->rx.unreported += f->begin - before;
	l->pending.credit = true;
}

void nfc_link_restart(struct nfc_link_end *l)
{
	nfc_link_event(l, NFC_LINK_LOST);
}

uint32_t nfc_link_level(const struct nfc_link_end *l)
{
	return l->state == NFC_LINK_UP ? l->level : NFC_DIAG_BROKEN;
}
