// SPDX-License-Identifier: MIT
/* The two ends of a far host: areas that packets keep alike. See far.h. */
#include "far.h"

#include <stdatomic.h>

enum {
	OPEN_NS = 5000000, /* between two OPEN, until the device has the hello */
	BEAT_NS = 200000000, /* between two OPEN from then on */
	LOOK_NS = 50000000, /* between two looks at the device's heartbeat */
	SILENT_LOOKS = 20, /* without a packet, after which a host is gone */
	RESEND_NS = 20000000, /* slots that did not arrive */
	PUBLISH_NS = 1000000, /* until the peer is told what came */
	POLL_NS = 1000000, /* between two looks whether a ring that fills was emptied */
	FULL_NS = 5000, /* until a packet is tried again that there was no room for */
	AWAY_NS = 1000000, /* … or no way */
};

static uint64_t load(const uint64_t *word)
{
	return atomic_load_explicit((const _Atomic uint64_t *)word,
				    memory_order_acquire);
}

/* The next of moments that are so far apart: ends of one clock wake at the same time. */
static uint64_t next(uint64_t now, uint64_t every)
{
	return now - now % every + every;
}

static void store(uint64_t *word, uint64_t value)
{
	atomic_store_explicit((_Atomic uint64_t *)word, value,
			      memory_order_release);
}

/* ---- the area ---- */

static uint64_t pages(uint64_t bytes)
{
	return (bytes + NFC_PAGE_SIZE - 1) & ~(uint64_t)(NFC_PAGE_SIZE - 1);
}

static uint64_t park_size(const struct nfc_far_config *c)
{
	return pages(sizeof(nfc_le32) * (uint64_t)c->channels);
}

static uint64_t mailbox_stride(const struct nfc_far_config *c)
{
	return pages(sizeof(struct nfc_mailbox) +
		     2 * sizeof(struct nfc_slot) * c->slots);
}

uint64_t nfc_far_area_size(const struct nfc_far_config *c)
{
	return NFC_PAGE_SIZE + park_size(c) + c->mailboxes * mailbox_stride(c);
}

static void init_mailbox(struct nfc_far *f, uint32_t index)
{
	const struct nfc_far_config *c = &f->config;
	struct nfc_far_mailbox *m = &f->mailbox[index];
	struct nfc_mailbox *shared = (void *)((uint8_t *)c->area +
					      NFC_PAGE_SIZE + park_size(c) +
					      index * mailbox_stride(c));
	struct nfc_slot *h2d = (void *)(shared + 1);
	struct nfc_slot *d2h = h2d + c->slots;

	m->out = c->device ? d2h : h2d;
	m->in = c->device ? h2d : d2h;
	m->out_head = (uint64_t *)(c->device ? &shared->d2h_head.word :
					       &shared->h2d_head.word);
	m->in_head = (uint64_t *)(c->device ? &shared->h2d_head.word :
					      &shared->d2h_head.word);
}

void nfc_far_init(struct nfc_far *f, struct nfc_node *node,
		  const struct nfc_far_config *config)
{
	__builtin_memset(f, 0, sizeof(*f));
	f->config = *config;
	f->node = node;
	f->park = (nfc_le32 *)((uint8_t *)config->area + NFC_PAGE_SIZE);
	while (config->slots >> (f->shift + 1))
		f->shift++;
	for (uint32_t i = 0; i < config->mailboxes; i++)
		init_mailbox(f, i);
	f->now = node->link_port->now(node->link_port->self);
	f->rung = f->asked = true;
	f->number = NFC_FAR_REQUESTS; /* above those of a table that is zero */
	if (config->device) { /* every answer rings: the host's park words are at the host */
		for (uint32_t i = 0; i < config->channels; i++)
			f->park[i] = NFC_PARK_H2D | NFC_PARK_D2H;
		return;
	}
	for (uint32_t i = 0; i < config->islands; i++)
		config->area->island[i].word = 1; /* every slot rings */
}

/* ---- packets ---- */

bool nfc_far_send(struct nfc_far *f, enum nfc_far_kind kind,
		  struct nfc_far_packet *p, uint32_t bytes)
{
	struct nfc_packet packet = {
		.to = f->config.peer,
		.size = NFC_FAR_HEAD + bytes,
		.kind = (uint8_t)kind,
	};
	int rc;

	p->head.epoch = f->config.epoch;
	p->head.host = f->config.host;
	rc = nfc_node_send(f->node, &packet, p);
	if (rc)
		nfc_far_due(f, f->now + (rc == -NFC_EBUSY ? FULL_NS : AWAY_NS));
	return !rc;
}

/* ---- slots ---- */

/* How many slots were put to a ring and not sent, a packet's worth at most. */
static uint32_t published(const struct nfc_far *f,
			  const struct nfc_far_mailbox *m)
{
	uint32_t mask = f->config.slots - 1, n = 0;

	while (n < NFC_FAR_SLOTS && m->next + n - m->acked <= mask) {
		uint64_t at = m->next + n;
		uint64_t header = atomic_load_explicit(
			(_Atomic uint64_t *)&m->out[at & mask].header,
			memory_order_acquire); /* SYNC: slot */

		if (nfc_header_phase(header) != (((at >> f->shift) + 1) & 1))
			break;
		n++;
	}
	return n;
}

/* One packet of slots, or of counters alone; false: there is nothing to say, or no room. */
static bool send_slots(struct nfc_far *f, uint32_t index, uint32_t n)
{
	struct nfc_far_mailbox *m = &f->mailbox[index];
	struct nfc_far_packet p;

	p.head = (struct nfc_far_head){ .mailbox = (uint8_t)index,
					.count = (uint8_t)n,
					.first = m->next,
					.received = m->received,
					.consumed = load(m->in_head) };
	for (uint32_t i = 0; i < n; i++) {
		p.slot[i] = m->out[(m->next + i) & (f->config.slots - 1)];
		if (!f->config.device && m->next + i >= m->sent)
			nfc_far_said(f, &p.slot[i]);
	}
	if (!nfc_far_send(f, f->config.device ? NFC_FAR_D2H : NFC_FAR_H2D, &p,
			  n * (uint32_t)sizeof(struct nfc_slot)))
		return false;
	if (m->next == m->acked)
		m->sent_ns = f->now;
	m->next += n;
	if (m->sent < m->next)
		m->sent = m->next;
	m->told = m->received;
	m->told_head = p.head.consumed;
	return true;
}

static void serve_mailbox(struct nfc_far *f, uint32_t index, bool look)
{
	struct nfc_far_mailbox *m = &f->mailbox[index];
	uint64_t quarter = f->config.slots / 4;
	bool may = f->config.device || f->known, publish;
	uint32_t n;

	if (m->next != m->acked && f->now - m->sent_ns >= RESEND_NS) {
		m->next = m->acked;
		m->sent_ns = f->now;
		look = true;
	}
	do {
		n = look && may ? published(f, m) : 0;
		publish = (m->received != m->told && f->now >= m->publish_ns) ||
			  load(m->in_head) - m->told_head > quarter;
		if (!n && !publish)
			break;
		if (!send_slots(f, index, n)) {
			f->rung = true;
			break;
		}
	} while (n == NFC_FAR_SLOTS);
	if (m->next != m->acked)
		nfc_far_due(f, m->sent_ns + RESEND_NS);
	if (m->received != m->told)
		nfc_far_due(f, m->publish_ns);
	if (m->received - m->told_head > quarter)
		nfc_far_due(f, f->now + POLL_NS);
}

/* Write a slot that came, as its producer did there. */
static void place(struct nfc_slot *to, const struct nfc_slot *from)
{
	for (int i = 0; i < 7; i++)
		to->payload[i] = from->payload[i];
	atomic_store_explicit((_Atomic uint64_t *)&to->header, from->header,
			      memory_order_release); /* SYNC: slot */
}

/* What the peer knows of the ring that goes out. */
static void acked(struct nfc_far_mailbox *m, const struct nfc_far_head *h,
		  uint64_t now)
{
	if (h->received > m->acked && h->received <= m->sent) {
		m->acked = h->received;
		m->sent_ns = now;
		if (m->next < m->acked) /* it was about to go again */
			m->next = m->acked;
	}
	if (h->consumed > *m->out_head && h->consumed <= m->acked)
		store(m->out_head, h->consumed);
}

/* Does whoever takes from a ring sleep until something comes for a channel? */
static bool has_to_ring(struct nfc_far *f, uint32_t mailbox, uint64_t channel)
{
	uint32_t each = f->config.mailboxes / f->config.islands;
	_Atomic uint64_t *word;

	if (!f->config.device) {
		atomic_thread_fence(memory_order_seq_cst); /* SYNC: channel park */
		return channel < f->config.channels &&
		       atomic_load_explicit((_Atomic nfc_le32 *)&f->park[channel],
					    memory_order_relaxed);
	}
	word = (_Atomic uint64_t *)&f->config.area->island[mailbox / each].word;
	atomic_thread_fence(memory_order_seq_cst); /* SYNC: island park */
	return atomic_load(word) == 1 && atomic_exchange(word, 0) == 1;
}

static void slots_came(struct nfc_far *f, const struct nfc_packet *p,
		       const struct nfc_far_head *h,
		       const struct nfc_fifo *fifo, uint32_t at)
{
	uint32_t words = sizeof(struct nfc_slot) / NFC_WORD_SIZE;
	struct nfc_slot slot[NFC_FAR_SLOTS];
	struct nfc_far_mailbox *m;
	bool ring = false;
	uint64_t before;

	if (h->mailbox >= f->config.mailboxes || h->count > NFC_FAR_SLOTS ||
	    p->size != NFC_FAR_HEAD + h->count * sizeof(*slot))
		return;
	m = &f->mailbox[h->mailbox];
	before = m->received;
	acked(m, h, f->now);
	nfc_fifo_read(fifo, at, (struct nfc_word *)slot, h->count * words);
	for (uint32_t i = 0; i < h->count; i++) {
		/* what came before is here; what lies ahead comes again */
		if (h->first + i != m->received ||
		    m->received - load(m->in_head) >= f->config.slots)
			continue;
		if (!f->config.device)
			nfc_far_heard(f, &slot[i]);
		place(&m->in[m->received & (f->config.slots - 1)], &slot[i]);
		m->received++;
	}
	if (h->count && m->told == before)
		m->publish_ns = f->now + PUBLISH_NS;
	if (h->count && m->received == before)
		m->told = before - 1; /* it was not heard: say it again */
	for (uint32_t i = 0; i < h->count && !ring; i++)
		ring = has_to_ring(f, h->mailbox,
				   nfc_header_channel(slot[i].header));
	if (ring && m->received != before)
		f->config.port.ring(
			f->config.port.self,
			h->mailbox / (f->config.mailboxes / f->config.islands));
}

/* ---- the area's beginning ---- */

enum {
	BEGINNING = offsetof(struct nfc_area, island), /* bytes that an AREA has */
};

static bool is_beat(uint64_t header)
{
	return nfc_header_type(header) == NFC_TYPE_HEARTBEAT;
}

/* The heartbeat is written in place: one that changed meanwhile comes later. */
static void send_area(struct nfc_far *f)
{
	struct nfc_area *area = f->config.area;
	struct nfc_far_packet p = { .head = { .count = 0 } };
	uint64_t header = load((uint64_t *)&area->heartbeat.header);

	if (!f->asked && header == f->beat)
		return;
	__builtin_memcpy(p.bytes, area, BEGINNING);
	atomic_thread_fence(memory_order_seq_cst);
	if (!is_beat(header) ||
	    load((uint64_t *)&area->heartbeat.header) != header) {
		nfc_far_due(f, f->now);
		return;
	}
	if (!nfc_far_send(f, NFC_FAR_AREA, &p, BEGINNING))
		return;
	f->beat = header;
	f->asked = false;
}

static void write_beat(struct nfc_slot *to, const struct nfc_slot *from)
{
	if (!is_beat(from->header) || from->header == to->header)
		return;
	store((uint64_t *)&to->header, NFC_TYPE_NONE);
	atomic_thread_fence(memory_order_seq_cst);
	place(to, from);
}

/* Is a device of the shape that its host has to know? */
static bool same_shape(const struct nfc_far_config *c, const struct nfc_area *a)
{
	const struct nfc_hello *h = (const void *)a->device_hello.payload;

	return a->size == nfc_far_area_size(c) && h->channels == c->channels &&
	       h->mailboxes == c->mailboxes && h->islands == c->islands &&
	       h->slots == c->slots;
}

static void area_came(struct nfc_far *f, const struct nfc_packet *p,
		      const struct nfc_fifo *fifo, uint32_t at)
{
	struct nfc_area *area = f->config.area, from;

	if (p->size != NFC_FAR_HEAD + BEGINNING)
		return;
	nfc_fifo_read(fifo, at, (struct nfc_word *)&from,
		      BEGINNING / NFC_WORD_SIZE);
	if (from.epoch != f->config.epoch || from.state != NFC_DEVICE_READY)
		return;
	f->misfit |= !same_shape(&f->config, &from);
	if (f->misfit)
		return;
	write_beat(&area->heartbeat, &from.heartbeat);
	f->known = from.host_hello.header &&
		   from.host_hello.header ==
			   load((uint64_t *)&area->host_hello.header);
	f->rung = true;
	if (f->ready)
		return;
	__builtin_memcpy(area, &from, offsetof(struct nfc_area, state));
	area->device_hello = from.device_hello;
	f->ready = true;
	atomic_store_explicit((_Atomic nfc_le32 *)&area->state, from.state,
			      memory_order_release);
}

static void send_open(struct nfc_far *f)
{
	struct nfc_slot *hello = &f->config.area->host_hello;
	struct nfc_far_packet p = { .head = { .count = 0 } };

	if (f->now < f->open_ns) {
		nfc_far_due(f, f->open_ns);
		return;
	}
	p.slot[0].header = load((uint64_t *)&hello->header);
	__builtin_memcpy(p.slot[0].payload, hello->payload,
			 sizeof(hello->payload));
	if (!nfc_far_send(f, NFC_FAR_OPEN, &p, sizeof(*hello)))
		return;
	f->open_ns = next(f->now, f->known ? BEAT_NS : OPEN_NS);
	nfc_far_due(f, f->open_ns);
}

static void open_came(struct nfc_far *f, const struct nfc_packet *p,
		      const struct nfc_fifo *fifo, uint32_t at)
{
	struct nfc_slot *hello = &f->config.area->host_hello, from;

	if (p->size != NFC_FAR_HEAD + sizeof(from))
		return;
	nfc_fifo_read(fifo, at, (struct nfc_word *)&from,
		      sizeof(from) / NFC_WORD_SIZE);
	if (hello->header == from.header)
		return;
	place(hello, &from);
	f->asked = true;
}

/* ---- an end ---- */

void nfc_far_deliver(struct nfc_far *f, const struct nfc_packet *p,
		     const struct nfc_fifo *fifo, uint32_t at)
{
	bool device = f->config.device;
	struct nfc_far_head h;

	if (p->size < NFC_FAR_HEAD || f->over || f->latched)
		return;
	nfc_fifo_read(fifo, at, (struct nfc_word *)&h,
		      NFC_FAR_HEAD / NFC_WORD_SIZE);
	at += NFC_FAR_HEAD / NFC_WORD_SIZE;
	if (h.epoch != f->config.epoch || h.host != f->config.host)
		return;
	f->now = f->node->link_port->now(f->node->link_port->self);
	f->silent = 0;
	f->stirred = true;
	if (p->kind == (device ? NFC_FAR_H2D : NFC_FAR_D2H))
		slots_came(f, p, &h, fifo, at);
	else if (device && p->kind == NFC_FAR_OPEN)
		open_came(f, p, fifo, at);
	else if (device && p->kind == NFC_FAR_LEAVE)
		f->over = true;
	else if (!device && p->kind == NFC_FAR_AREA)
		area_came(f, p, fifo, at);
	else
		nfc_far_dma_came(f, p, &h, fifo, at);
}

bool nfc_far_rung(struct nfc_area *area, uint32_t islands)
{
	bool rung = false;

	for (uint32_t i = 0; i < islands; i++)
		rung |= !atomic_exchange(
			(_Atomic uint64_t *)&area->island[i].word, 1);
	return rung;
}

/* Are there new slots, as a doorbell says? */
static bool look_again(struct nfc_far *f)
{
	bool rung = f->rung;

	f->rung = false;
	if (!f->config.device)
		rung |= nfc_far_rung(f->config.area, f->config.islands);
	atomic_thread_fence(memory_order_seq_cst); /* SYNC: island park */
	return rung;
}

/* It counts looks: a process that stood still heard nothing, and nobody is gone. */
static void look_at_host(struct nfc_far *f)
{
	if (f->now >= f->look_ns) {
		f->look_ns = next(f->now, LOOK_NS);
		f->over = f->silent++ == SILENT_LOOKS;
	}
	nfc_far_due(f, f->look_ns);
}

uint64_t nfc_far_step(struct nfc_far *f)
{
	bool look;

	f->stirred = false;
	f->now = f->node->link_port->now(f->node->link_port->self);
	f->due = UINT64_MAX;
	if (f->over || f->latched)
		return f->due;
	look = look_again(f);
	if (f->config.device) {
		look_at_host(f);
		send_area(f);
		nfc_far_ask(f);
	} else {
		send_open(f);
		nfc_far_answer(f);
	}
	for (uint32_t i = 0; i < f->config.mailboxes; i++)
		serve_mailbox(f, i, look);
	return f->due;
}

void nfc_far_leave(struct nfc_far *f)
{
	struct nfc_far_packet p = { .head = { .count = 0 } };

	nfc_far_send(f, NFC_FAR_LEAVE, &p, 0);
}
