// SPDX-License-Identifier: MIT
/* An end of a span. See span.h. */
#include "span.h"

enum {
	JOIN_NS = 20000000, /* between two JOINs or JOINEDs */
};

/* Time for a host to connect to another node, which it may not have opened. */
static const uint64_t come_time_ns = 10000000000;

static void init_rings(struct nfc_span *s)
{
	struct nfc_joint_rings r = nfc_joint_rings(s->joint);

	s->rings = (struct nfc_far_rings){
		.kind = NFC_SPAN_SLOTS,
		.slots = NFC_JOINT_SLOTS,
		.shift = NFC_JOINT_SHIFT,
		.out = r.out,
		.in = r.in,
		.out_head = r.out_head,
		.in_head = r.in_head,
	};
}

void nfc_span_init(struct nfc_span *s, struct nfc_node *node,
		   const struct nfc_span_config *config)
{
	__builtin_memset(s, 0, sizeof(*s));
	s->line = (struct nfc_far_line){
		.node = node,
		.peer = config->peer,
		.epoch = config->number,
		.host = !config->ask,
		.now = node->link_port->now(node->link_port->self),
	};
	s->port = config->port;
	s->joint = config->joint;
	s->state = config->ask ? NFC_SPAN_ASKS : NFC_SPAN_ASKED;
	if (config->ask)
		s->ask = *config->ask;
	s->rung = true;
	s->asker.port = &s->port;
	s->asker.islands = config->islands;
	s->asker.read = NFC_SPAN_READ;
	s->asker.number = NFC_FAR_REQUESTS; /* above those of a table that is zero */
	init_rings(s);
}

/* ---- sending ---- */

static bool ready(const struct nfc_span *s, uint64_t *at)
{
	return s->line.now >= *at;
}

/*
 * The other end missed the report, or does not know that this end exists:
 * repeat it.
 */
static void say_again(struct nfc_span *s)
{
	s->rings.reported = s->rings.received - 1;
	s->rings.publish_ns = s->line.now;
}

static void send_ask(struct nfc_span *s)
{
	struct nfc_far_packet p = { .head = { .count = 0 } };

	if (nfc_joint_over(s->joint)) { /* its process has given up */
		s->state = NFC_SPAN_OVER;
		return;
	}
	__builtin_memcpy(p.bytes, &s->ask, sizeof(s->ask));
	if (ready(s, &s->again_ns) &&
	    nfc_far_send(&s->line, NFC_SPAN_JOIN, &p, sizeof(s->ask)))
		s->again_ns = s->line.now + JOIN_NS;
	nfc_far_due(&s->line, s->again_ns);
}

static void send_joined(struct nfc_span *s)
{
	struct nfc_far_packet p = { .head = { .count = 0 } };
	struct nfc_joined answer;

	if (!nfc_joint_asked(s->joint, &answer))
		return;
	s->state = NFC_SPAN_ANSWERS;
	__builtin_memcpy(p.bytes, &answer, sizeof(answer));
	if (ready(s, &s->again_ns) &&
	    nfc_far_send(&s->line, NFC_SPAN_JOINED, &p, sizeof(answer))) {
		s->again_ns = s->line.now + JOIN_NS;
		s->ended = answer.status; /* a repeated request gets the same answer */
		if (answer.status)
			s->state = NFC_SPAN_OVER;
	}
	nfc_far_due(&s->line, s->again_ns);
}

static bool send_given(struct nfc_span *s, const struct nfc_far_asked *a)
{
	struct nfc_far_packet p;
	int rc = nfc_joint_give(s->joint, p.bytes, a->bus, a->size);

	p.head = (struct nfc_far_head){ .number = a->number,
					.size = a->size,
					.status = (uint64_t)rc };
	return nfc_far_send(&s->line, NFC_SPAN_DATA, &p, rc ? 0 : a->size);
}

static void send_bytes(struct nfc_span *s)
{
	struct nfc_far_served *served = &s->served;

	for (uint32_t i = 0; served->data && i < NFC_FAR_REQUESTS; i++) {
		if (!(served->data >> i & 1))
			continue;
		if (!send_given(s, &served->list[i]))
			return;
		served->data &= ~(1ull << i);
	}
}

static void carry(struct nfc_span *s)
{
	bool poll = s->rung, over = nfc_joint_over(s->joint);

	s->rung = false;
	if (ready(s, &s->beat_ns)) {
		say_again(s);
		s->beat_ns = s->line.now + NFC_FAR_BEAT_NS;
	}
	s->rung |= !nfc_far_rings_serve(&s->line, &s->rings, poll);
	nfc_far_requests(&s->line, &s->asker);
	send_bytes(s);
	nfc_far_due(&s->line, s->beat_ns);
	if (over && nfc_far_rings_idle(&s->rings))
		s->state = NFC_SPAN_OVER;
}

static void lose(struct nfc_span *s)
{
	if (!nfc_joint_over(s->joint))
		nfc_joint_lost(s->joint);
	s->state = NFC_SPAN_OVER;
}

/* While it asks, its process knows how long to wait. */
static void check_end(struct nfc_span *s)
{
	if (s->state != NFC_SPAN_ASKS && nfc_far_lost(&s->line, &s->watch, true))
		lose(s);
}

/*
 * If a guest's host was notified of the guest and does not connect in time, end
 * the guest.
 */
static void check_guest(struct nfc_span *s)
{
	if (!nfc_far_guest_notified(s->joint))
		return;
	if (!s->come_ns)
		s->come_ns = s->line.now + come_time_ns;
	if (ready(s, &s->come_ns))
		lose(s);
	nfc_far_due(&s->line, s->come_ns);
}

uint64_t nfc_span_step(struct nfc_span *s)
{
	struct nfc_far_line *l = &s->line;

	s->stirred = false;
	l->now = l->node->link_port->now(l->node->link_port->self);
	l->due = UINT64_MAX;
	check_end(s);
	check_guest(s);
	if (s->state == NFC_SPAN_ASKS)
		send_ask(s);
	else if (s->state < NFC_SPAN_UP)
		send_joined(s);
	else if (s->state == NFC_SPAN_UP)
		carry(s);
	return l->due;
}

void nfc_span_leave(struct nfc_span *s)
{
	struct nfc_far_packet p = { .head = { .count = 0 } };

	if (!s->ended)
		nfc_far_send(&s->line, NFC_SPAN_GONE, &p, 0);
}

void nfc_span_refuse(struct nfc_node *node, const struct nfc_packet *p,
		     const struct nfc_far_head *h, uint32_t status)
{
	bool asks = p->kind == NFC_SPAN_JOIN;
	struct nfc_far_line l = { .node = node,
				  .peer = p->from,
				  .epoch = h->epoch,
				  .host = !h->host };
	struct nfc_joined answer = { .status = status };
	struct nfc_far_packet out = { .head = { .count = 0 } };

	__builtin_memcpy(out.bytes, &answer, sizeof(answer));
	nfc_far_send(&l, asks ? NFC_SPAN_JOINED : NFC_SPAN_GONE, &out,
		     asks ? sizeof(answer) : 0);
}

/* ---- receiving ---- */

static void joined_received(struct nfc_span *s, const struct nfc_packet *p,
			    const struct nfc_fifo *fifo, uint32_t at)
{
	struct nfc_joined answer;

	if (p->size != NFC_FAR_HEAD + sizeof(answer) || s->line.host)
		return;
	nfc_fifo_read(fifo, at, (struct nfc_word *)&answer,
		      sizeof(answer) / NFC_WORD_SIZE);
	say_again(s);
	if (s->state != NFC_SPAN_ASKS)
		return;
	if (answer.status >= NFC_STATUS_COUNT)
		answer.status = NFC_EPROTO;
	nfc_joint_joined(s->joint, &answer);
	s->ended = answer.status;
	s->state = answer.status ? NFC_SPAN_OVER : NFC_SPAN_UP;
}

static void span_slots_received(struct nfc_span *s, const struct nfc_packet *p,
				const struct nfc_far_head *h,
				const struct nfc_fifo *fifo, uint32_t at)
{
	struct nfc_slot slot[NFC_FAR_SLOTS];

	if (s->state == NFC_SPAN_ANSWERS) {
		s->state = NFC_SPAN_UP;
		nfc_joint_received(s->joint); /* the other side has its answer */
	}
	if (s->state == NFC_SPAN_UP &&
	    nfc_far_rings_received(&s->line, &s->rings, p, h, fifo, at, slot))
		nfc_joint_received(s->joint);
}

static void reads_received(struct nfc_span *s, const struct nfc_packet *p,
			   const struct nfc_far_head *h,
			   const struct nfc_fifo *fifo, uint32_t at)
{
	struct nfc_far_asked list[NFC_FAR_REQUESTS];

	if (h->count > NFC_FAR_REQUESTS ||
	    p->size != NFC_FAR_HEAD + h->count * sizeof(*list))
		return;
	nfc_fifo_read(fifo, at, (struct nfc_word *)list, h->count);
	for (uint32_t i = 0; i < h->count; i++) {
		bool again;
		struct nfc_far_asked *a = nfc_far_place_of(
			&s->served, list[i].number, &again);

		if (!a || list[i].size > NFC_FAR_BYTES)
			continue;
		*a = list[i];
		s->served.data |= 1ull << a->number % NFC_FAR_REQUESTS;
	}
}

void nfc_span_deliver(struct nfc_span *s, const struct nfc_packet *p,
		      const struct nfc_fifo *fifo, uint32_t at)
{
	struct nfc_far_head h;

	nfc_fifo_read(fifo, at, (struct nfc_word *)&h,
		      NFC_FAR_HEAD / NFC_WORD_SIZE);
	at += NFC_FAR_HEAD / NFC_WORD_SIZE;
	s->line.now = s->line.node->link_port->now(s->line.node->link_port->self);
	s->watch.silent = 0;
	s->stirred = true;
	if (s->state == NFC_SPAN_OVER)
		return;
	if (p->kind == NFC_SPAN_GONE) {
		s->ended = true;
		lose(s);
	} else if (p->kind == NFC_SPAN_JOINED) {
		joined_received(s, p, fifo, at);
	} else if (p->kind == NFC_SPAN_SLOTS) {
		span_slots_received(s, p, &h, fifo, at);
	} else if (s->state == NFC_SPAN_UP && p->kind == NFC_SPAN_READ) {
		reads_received(s, p, &h, fifo, at);
	} else if (s->state == NFC_SPAN_UP && p->kind == NFC_SPAN_DATA) {
		nfc_far_data_received(&s->asker, p, &h, fifo, at);
	}
}

int nfc_span_fetch(struct nfc_span *s, void *to, uint64_t at, uint64_t len)
{
	int rc = nfc_far_piece(&s->asker, false, to, at, len);

	return rc && rc != NFC_PENDING ? NFC_EABORTED : rc;
}
