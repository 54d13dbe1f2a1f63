// SPDX-License-Identifier: MIT
/* The router: packets of seven inputs to seven outputs, each when it has room. */
#include "node.h"

/* Of a header: to and from. */
#define ENDS ((1ull << 48) - 1)

enum {
	OWN = NFC_NODE_INPUTS - 1, /* the input of packets of this node */
	/* In place of a link: an address is none of the torus. */
	OUTSIDE = NFC_NO_ROUTE - 1,
};

int nfc_node_check(struct nfc_node_config *c)
{
	int rc = nfc_link_check(&c->link);

	if (rc || nfc_torus_check(&c->torus))
		return -NFC_EINVAL;
	if (!c->inject)
		c->inject = NFC_LINK_DEPTH_MIN;
	if (nfc_torus_index(&c->torus, c->address) == NFC_NODES_MAX)
		return -NFC_EINVAL;
	if (c->inject & (c->inject - 1) || c->inject < NFC_LINK_DEPTH_MIN ||
	    c->inject > NFC_LINK_DEPTH_MAX)
		return -NFC_EINVAL;
	return 0;
}

static uint64_t aligned(uint64_t size)
{
	return (size + 15) & ~15ull;
}

/* Routes are others now. */
static void forget_ways(struct nfc_node *n)
{
	for (uint32_t i = 0; i < NFC_NODE_INPUTS; i++)
		n->way[i].ends = UINT64_MAX;
}

uint64_t nfc_node_size(const struct nfc_node_config *c)
{
	return NFC_LINKS * aligned(nfc_link_size(&c->link)) +
	       aligned(nfc_fifo_size(c->inject)) +
	       aligned(nfc_view_size(&c->torus));
}

void nfc_node_init(struct nfc_node *n, const struct nfc_node_config *config,
		   const struct nfc_link_port *link_port,
		   const struct nfc_node_port *port, void *memory)
{
	const struct nfc_torus *t = &config->torus;
	uint32_t self = nfc_torus_index(t, config->address);
	uint8_t *m = memory;

	__builtin_memset(n, 0, sizeof(*n));
	n->config = *config;
	n->link_port = link_port;
	n->port = *port;
	n->now = n->host_ns = link_port->now(link_port->self);
	for (uint32_t i = 0; i < NFC_LINKS; i++) {
		uint32_t other = nfc_torus_neighbour(t, self, i);

		nfc_link_init(&n->link[i], &config->link, link_port, i, m);
		n->link[i].node = config->address;
		n->link[i].torus = nfc_torus_number(t);
		n->link[i].expect = nfc_torus_address(t, other);
		n->joined[i] = other != self;
		m += aligned(nfc_link_size(&config->link));
	}
	nfc_fifo_init(&n->inject, config->inject, m);
	m += aligned(nfc_fifo_size(config->inject));
	nfc_view_init(&n->view, t, self, m);
	forget_ways(n);
	nfc_records_init(n);
}

/* ---- the switch ---- */

/* Send a packet whose payload is in the buffer of a link over that link. */
static void leave(struct nfc_node *n, struct nfc_word header, uint32_t words,
		  struct nfc_sum sum, struct nfc_hop hop)
{
	header.hi += 1 << 8; /* hops */
	nfc_link_queue(&n->link[hop.link], hop.vc, header, words, sum);
}

/* Send a packet over a link that admitted it. */
static void forward(struct nfc_node *n, const struct nfc_fifo *f,
		    const struct nfc_held *h, struct nfc_hop hop)
{
	nfc_fifo_copy(&n->link[hop.link].tx.buffer, f, h->at, h->words);
	leave(n, h->header, h->words, h->sum, hop);
}

static struct nfc_hop find_way(const struct nfc_node *n, struct nfc_word header,
			       uint32_t input)
{
	const struct nfc_torus *t = &n->view.torus;
	struct nfc_packet p = nfc_packet_read(header);
	uint32_t from = nfc_torus_index(t, p.from);
	uint32_t to = nfc_torus_index(t, p.to);

	if (from == NFC_NODES_MAX || to == NFC_NODES_MAX)
		return (struct nfc_hop){ OUTSIDE, 0 };
	return nfc_view_route(&n->view, from, to, input / NFC_VCS,
			      input == OWN ? NFC_VC_FIRST : input % NFC_VCS);
}

/* The way on of a packet of an input: most follow one of the same ends. */
static struct nfc_hop way_on(struct nfc_node *n, struct nfc_word header,
			     uint32_t input)
{
	struct nfc_way *w = &n->way[input];

	if (w->ends != (header.lo & ENDS)) {
		w->ends = header.lo & ENDS;
		w->hop = find_way(n, header, input);
	}
	return w->hop;
}

/* Route a packet, whose payload is in f; false: it has to wait. */
static bool route(struct nfc_node *n, const struct nfc_fifo *f,
		  const struct nfc_held *h, uint32_t input)
{
	struct nfc_packet p = nfc_packet_read(h->header);
	struct nfc_hop hop = way_on(n, h->header, input);

	if (hop.link == OUTSIDE) {
		n->count[NFC_NODE_MALFORMED]++;
	} else if (hop.link == NFC_LINKS) {
		if (!n->port.deliver(n->port.self, &p, f, h->at))
			return false;
		n->count[NFC_NODE_DELIVERED]++;
	} else if (hop.link == NFC_NO_ROUTE) {
		n->count[NFC_NODE_UNREACHABLE]++;
	} else if (p.hops == NFC_HOPS_MAX) {
		n->count[NFC_NODE_HOPS]++;
	} else {
		if (!nfc_link_admits(&n->link[hop.link], hop.vc, h->words))
			return false;
		n->count[NFC_NODE_DETOURS] += hop.vc == NFC_VC_DETOUR &&
					      h->vc != NFC_VC_DETOUR;
		n->count[NFC_NODE_FORWARDED] += input != OWN;
		forward(n, f, h, hop);
	}
	return true;
}

static void moved(struct nfc_node *n, uint32_t input)
{
	if (n->waits >> input & 1)
		n->count[NFC_NODE_BLOCKED_NS] += n->now - n->blocked[input];
	n->waits &= ~(1u << input);
	n->moves++;
	if (input == OWN)
		nfc_fifo_pop(&n->inject);
	else
		nfc_link_consume(&n->link[input / NFC_VCS], input % NFC_VCS);
}

static struct nfc_fifo *input_fifo(struct nfc_node *n, uint32_t input)
{
	if (input == OWN)
		return &n->inject;
	return &n->link[input / NFC_VCS].rx.fifo[input % NFC_VCS];
}

/* Packets of one input. */
static void serve(struct nfc_node *n, uint32_t input)
{
	const struct nfc_fifo *f = input_fifo(n, input);

	for (uint32_t i = 0; i < NFC_NODE_BUDGET && f->first != f->last; i++) {
		if (!route(n, f, nfc_fifo_at(f, f->first), input)) {
			if (!(n->waits >> input & 1))
				n->blocked[input] = n->now;
			n->waits |= 1u << input;
			return;
		}
		moved(n, input);
	}
}

/* Inputs that hold packets, a bit each. */
static uint32_t holding(const struct nfc_node *n)
{
	uint32_t inputs = n->inject.first != n->inject.last;

	for (uint32_t i = NFC_LINKS; i-- > 0;) {
		const struct nfc_fifo *f = n->link[i].rx.fifo;

		if (!n->link[i].rx.stored) {
			inputs <<= NFC_VCS;
			continue;
		}
		for (uint32_t vc = NFC_VCS; vc-- > 0;)
			inputs = inputs << 1 | (f[vc].first != f[vc].last);
	}
	return inputs;
}

/* Unless a packet waits: then all have their turn. */
bool nfc_node_take(void *self, uint32_t link, const struct nfc_held *h,
		   const struct nfc_fifo *f)
{
	struct nfc_node *n = self;

	if (n->waits || n->stale || !route(n, f, h, link * NFC_VCS + h->vc))
		return false;
	n->moves++;
	return true;
}

/*
 * Serve all inputs, each time another first; returns whether more can be sent.
 */
static bool serve_all(struct nfc_node *n)
{
	uint32_t inputs = holding(n), below = (1u << n->first) - 1;
	uint64_t before = n->moves;

	if (!inputs)
		return false;
	for (uint32_t left = inputs & ~below; left; left &= left - 1)
		serve(n, nfc_lowest_bit(left));
	for (uint32_t left = inputs & below; left; left &= left - 1)
		serve(n, nfc_lowest_bit(left));
	n->first = (n->first + 1) % NFC_NODE_INPUTS;
	/* what moved last may be what another waited for */
	return (holding(n) & ~n->waits) || (n->waits && n->moves != before);
}

/* ---- packets of this node ---- */

/* Write a payload behind what a FIFO holds; returns its sum. */
static struct nfc_sum write_payload(const struct nfc_node *n, struct nfc_fifo *f,
				    const void *data, uint32_t size)
{
	uint32_t whole = size / NFC_WORD_SIZE, rest = size % NFC_WORD_SIZE;
	struct nfc_word last = { 0 };
	struct nfc_sum sum = { 0 };

	nfc_payload_write(n->link_port, f, 0, data, whole, &sum);
	if (rest) {
		__builtin_memcpy(&last,
				 (const uint8_t *)data + whole * NFC_WORD_SIZE,
				 rest);
		nfc_payload_write(n->link_port, f, whole, &last, 1, &sum);
	}
	return sum;
}

/*
 * Straight into a link's buffer, unless a packet waits: then those of this node
 * have their turn as those of the links.
 */
static bool send_at_once(struct nfc_node *n, const struct nfc_packet *p,
			 struct nfc_hop hop, const void *data)
{
	struct nfc_link_end *out;
	struct nfc_sum sum;

	if (n->waits || n->inject.first != n->inject.last || n->stale)
		return false;
	if (hop.link >= NFC_LINKS ||
	    !nfc_link_admits(&n->link[hop.link], hop.vc, nfc_words(p->size)))
		return false;
	out = &n->link[hop.link];
	out->now = n->link_port->now(n->link_port->self);
	sum = write_payload(n, &out->tx.buffer, data, p->size);
	n->count[NFC_NODE_DETOURS] += hop.vc == NFC_VC_DETOUR;
	leave(n, nfc_packet_header(p), nfc_words(p->size), sum, hop);
	return true;
}

int nfc_node_send(struct nfc_node *n, const struct nfc_packet *p,
		  const void *data)
{
	struct nfc_packet q = *p;
	struct nfc_hop hop;
	struct nfc_sum sum;

	if (p->to >> 24)
		return -NFC_EINVAL;
	q.from = n->config.address;
	q.hops = 0;
	hop = way_on(n, nfc_packet_header(&q), OWN);
	if (hop.link == OUTSIDE)
		return -NFC_EINVAL;
	if (p->size > NFC_PACKET_SIZE)
		return -NFC_ETOOLARGE;
	if (hop.link == NFC_NO_ROUTE)
		return -NFC_ENOTARGET;
	if (!send_at_once(n, &q, hop, data)) {
		if (!nfc_fifo_room(&n->inject, nfc_words(p->size)))
			return -NFC_EBUSY;
		sum = write_payload(n, &n->inject, data, p->size);
		nfc_fifo_push(&n->inject, nfc_packet_header(&q),
			      nfc_words(p->size), NFC_VC_FIRST, sum);
	}
	n->count[NFC_NODE_SENT]++;
	return 0;
}

bool nfc_node_reaches(const struct nfc_node *n, uint32_t address)
{
	uint32_t to = nfc_torus_index(&n->view.torus, address);

	return to != NFC_NODES_MAX && nfc_view_reaches(&n->view, to);
}

/* ---- a turn ---- */

uint64_t nfc_node_step(struct nfc_node *n)
{
	uint64_t due = UINT64_MAX;
	bool more = false;

	n->now = n->link_port->now(n->link_port->self);
	for (uint32_t i = 0; i < NFC_LINKS; i++) {
		bool up;

		if (!n->joined[i])
			continue;
		more |= nfc_link_receive(&n->link[i]);
		up = n->link[i].state == NFC_LINK_UP;
		if (up && !n->up[i])
			nfc_records_all(n, i);
		n->up[i] = up;
	}
	nfc_records_update(n);
	if (n->now >= n->beat_due) {
		/* nodes of one clock wake at the same time */
		n->beat_due = n->now - n->now % n->config.link.beat_ns +
			      n->config.link.beat_ns;
		nfc_records_refresh(n);
	}
	if (n->stale) {
		n->stale = false;
		n->count[NFC_NODE_VIEWS]++;
		nfc_view_compute(&n->view);
		forget_ways(n);
		more = true; /* the owner may use the new routes */
	}
	more |= serve_all(n);
	if (n->port.offer)
		n->port.offer(n->port.self);
	more |= n->inject.first != n->inject.last && !(n->waits >> OWN & 1);
	for (uint32_t i = 0; i < NFC_LINKS; i++) {
		uint64_t at = n->joined[i] ? nfc_link_transmit(&n->link[i]) :
					     UINT64_MAX;

		if (at < due)
			due = at;
	}
	if (n->beat_due < due)
		due = n->beat_due;
	return more ? n->now : due;
}

void nfc_node_host(struct nfc_node *n)
{
	n->host_ns = n->link_port->now(n->link_port->self);
}

void nfc_node_sense(struct nfc_node *n, uint32_t word)
{
	const uint32_t links = 0xfffu << NFC_DIAG_Z_MINUS_SHIFT;

	n->sensed = word & ~links & ((1u << NFC_DIAG_SPARE_SHIFT) - 1);
}
