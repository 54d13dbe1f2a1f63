// SPDX-License-Identifier: MIT
/* The two ends of a far host: areas that packets keep alike. See far.h. */
#include "far.h"

enum {
	OPEN_NS = 5000000, /* between two OPEN, until the device has the hello */
};

/* The next of moments that are so far apart: ends of one clock wake at the same time. */
static uint64_t next(uint64_t now, uint64_t every)
{
	return now - now % every + every;
}

static void store(uint64_t *word, uint64_t value)
{
	atomic_store_explicit((_Atomic uint64_t *)word, value,
			      memory_order_release); /* SYNC: heartbeat */
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
	struct nfc_far_rings *m = &f->mailbox[index];
	struct nfc_mailbox *shared = (void *)((uint8_t *)c->area +
					      NFC_PAGE_SIZE + park_size(c) +
					      index * mailbox_stride(c));
	struct nfc_slot *h2d = (void *)(shared + 1);
	struct nfc_slot *d2h = h2d + c->slots;

	m->kind = c->device ? NFC_FAR_D2H : NFC_FAR_H2D;
	m->index = (uint8_t)index;
	m->slots = c->slots;
	while (c->slots >> (m->shift + 1))
		m->shift++;
	m->host = c->device ? NULL : f;
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
	f->line = (struct nfc_far_line){
		.node = node,
		.peer = config->peer,
		.epoch = config->epoch,
		.host = config->host,
	};
	f->asker.port = &f->config.port;
	f->asker.islands = config->islands;
	f->asker.read = NFC_FAR_READ;
	f->park = (nfc_le32 *)((uint8_t *)config->area + NFC_PAGE_SIZE);
	for (uint32_t i = 0; i < config->mailboxes; i++)
		init_mailbox(f, i);
	f->line.now = node->link_port->now(node->link_port->self);
	f->rung = f->asked = true;
	f->asker.number = NFC_FAR_REQUESTS; /* above those of a table that is zero */
	if (config->device) { /* every answer rings: the host's park words are at the host */
		for (uint32_t i = 0; i < config->channels; i++)
			f->park[i] = NFC_PARK_H2D | NFC_PARK_D2H;
		return;
	}
	for (uint32_t i = 0; i < config->islands; i++)
		config->area->island[i].word = 1; /* every slot rings */
}

/* ---- slots ---- */

/* Does the receiver of a ring sleep until a message like this one arrives? */
static bool has_to_ring(struct nfc_far *f, uint32_t mailbox, uint64_t header)
{
	uint64_t channel = nfc_header_channel(header);
	uint32_t each = f->config.mailboxes / f->config.islands;
	_Atomic uint64_t *word;

	if (!f->config.device) {
		atomic_thread_fence(memory_order_seq_cst); /* SYNC: channel park */
		return nfc_header_type(header) == NFC_TYPE_WITHDRAW ||
		       (channel < f->config.channels &&
			atomic_load_explicit(
				(_Atomic nfc_le32 *)&f->park[channel],
				memory_order_relaxed));
	}
	word = (_Atomic uint64_t *)&f->config.area->island[mailbox / each].word;
	atomic_thread_fence(memory_order_seq_cst); /* SYNC: island park */
	return atomic_load(word) == 1 && atomic_exchange(word, 0) == 1;
}

static void slots_received(struct nfc_far *f, const struct nfc_packet *p,
			   const struct nfc_far_head *h,
			   const struct nfc_fifo *fifo, uint32_t at)
{
	struct nfc_slot slot[NFC_FAR_SLOTS];
	uint32_t each = f->config.mailboxes / f->config.islands;
	struct nfc_island_line *line;
	bool ring = false;

	if (h->mailbox >= f->config.mailboxes ||
	    !nfc_far_rings_received(&f->line, &f->mailbox[h->mailbox], p, h,
				    fifo, at, slot))
		return;
	line = &f->config.area->island[h->mailbox / each];
	atomic_fetch_or((_Atomic uint64_t *)&line->news,
			1ull << h->mailbox % each); /* SYNC: news */
	for (uint32_t i = 0; i < h->count && !ring; i++)
		ring = has_to_ring(f, h->mailbox, slot[i].header);
	if (ring)
		f->config.port.ring(f->config.port.self, h->mailbox / each);
}

/* ---- the area's beginning ---- */

enum {
	BEGINNING = offsetof(struct nfc_area, island), /* bytes that an AREA has */
};

static bool is_beat(uint64_t header)
{
	return nfc_header_type(header) == NFC_TYPE_HEARTBEAT;
}

/*
 * The heartbeat is written in place: if it changed meanwhile it is sent later.
 */
static void send_area(struct nfc_far *f)
{
	struct nfc_area *area = f->config.area;
	struct nfc_far_packet p = { .head = { .count = 0 } };
	uint64_t header = nfc_far_load((uint64_t *)&area->heartbeat.header);

	nfc_far_due(&f->line, f->show_ns);
	if (!f->asked && header == f->beat && f->line.now < f->show_ns)
		return;
	__builtin_memcpy(p.bytes, area, BEGINNING);
	atomic_thread_fence(memory_order_seq_cst); /* SYNC: heartbeat */
	if (!is_beat(header) ||
	    nfc_far_load((uint64_t *)&area->heartbeat.header) != header) {
		nfc_far_due(&f->line, f->line.now);
		return;
	}
	if (!nfc_far_send(&f->line, NFC_FAR_AREA, &p, BEGINNING))
		return;
	f->beat = header;
	f->asked = false;
	f->show_ns = next(f->line.now, NFC_FAR_BEAT_NS);
}

static void write_beat(struct nfc_slot *to, const struct nfc_slot *from)
{
	if (!is_beat(from->header) || from->header == to->header)
		return;
	store((uint64_t *)&to->header, NFC_TYPE_NONE);
	atomic_thread_fence(memory_order_seq_cst); /* SYNC: heartbeat */
	nfc_far_place(to, from);
}

/* Is a device of the shape that its host has to know? */
static bool same_shape(const struct nfc_far_config *c, const struct nfc_area *a)
{
	const struct nfc_hello *h = (const void *)a->device_hello.payload;

	return a->size == nfc_far_area_size(c) && h->channels == c->channels &&
	       h->mailboxes == c->mailboxes && h->islands == c->islands &&
	       h->slots == c->slots;
}

static void area_received(struct nfc_far *f, const struct nfc_packet *p,
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
			   nfc_far_load((uint64_t *)&area->host_hello.header);
	f->rung = true;
	if (f->ready)
		return;
	__builtin_memcpy(area, &from, offsetof(struct nfc_area, state));
	area->device_hello = from.device_hello;
	f->ready = true;
	atomic_store_explicit((_Atomic nfc_le32 *)&area->state, from.state,
			      memory_order_release); /* SYNC: state */
}

static void send_open(struct nfc_far *f)
{
	struct nfc_slot *hello = &f->config.area->host_hello;
	struct nfc_far_packet p = { .head = { .owner = f->config.owner } };

	if (f->line.now < f->show_ns) {
		nfc_far_due(&f->line, f->show_ns);
		return;
	}
	p.slot[0].header = nfc_far_load((uint64_t *)&hello->header);
	__builtin_memcpy(p.slot[0].payload, hello->payload,
			 sizeof(hello->payload));
	if (!nfc_far_send(&f->line, NFC_FAR_OPEN, &p, sizeof(*hello)))
		return;
	f->show_ns = next(f->line.now, f->known ? NFC_FAR_BEAT_NS : OPEN_NS);
	nfc_far_due(&f->line, f->show_ns);
}

static void open_received(struct nfc_far *f, const struct nfc_packet *p,
			  const struct nfc_fifo *fifo, uint32_t at)
{
	struct nfc_slot *hello = &f->config.area->host_hello, from;

	if (p->size != NFC_FAR_HEAD + sizeof(from))
		return;
	nfc_fifo_read(fifo, at, (struct nfc_word *)&from,
		      sizeof(from) / NFC_WORD_SIZE);
	if (hello->header == from.header)
		return;
	nfc_far_place(hello, &from);
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
	f->line.now = f->line.node->link_port->now(f->line.node->link_port->self);
	f->watch.silent = 0;
	f->stirred = true;
	if (p->kind == (device ? NFC_FAR_H2D : NFC_FAR_D2H))
		slots_received(f, p, &h, fifo, at);
	else if (device && p->kind == NFC_FAR_OPEN)
		open_received(f, p, fifo, at);
	else if (device && p->kind == NFC_FAR_LEAVE)
		f->over = true;
	else if (!device && p->kind == NFC_FAR_AREA)
		area_received(f, p, fifo, at);
	else
		nfc_far_dma_received(f, p, &h, fifo, at);
}

bool nfc_far_rung(struct nfc_area *area, uint32_t islands)
{
	bool rung = false;

	for (uint32_t i = 0; i < islands; i++)
		rung |= !atomic_exchange(
			(_Atomic uint64_t *)&area->island[i].word, 1);
	return rung;
}

/* Are there new slots, as a doorbell reports? */
static bool poll_again(struct nfc_far *f)
{
	bool rung = f->rung;

	f->rung = false;
	if (!f->config.device)
		rung |= nfc_far_rung(f->config.area, f->config.islands);
	atomic_thread_fence(memory_order_seq_cst); /* SYNC: island park */
	return rung;
}

/*
 * A host that is lost is forgotten; a device counts as lost only if it was
 * ready before.
 */
static void check_peer(struct nfc_far *f)
{
	bool device = f->config.device;

	f->over = (device || f->ready) &&
		  nfc_far_lost(&f->line, &f->watch, !device);
	if (f->over && !device)
		nfc_far_lose(f, NFC_DEVICE_OFF);
}

uint64_t nfc_far_step(struct nfc_far *f)
{
	bool poll, may;

	f->stirred = false;
	f->line.now = f->line.node->link_port->now(f->line.node->link_port->self);
	f->line.due = UINT64_MAX;
	if (f->over || f->latched)
		return f->line.due;
	check_peer(f);
	poll = poll_again(f);
	if (f->config.device) {
		send_area(f);
		nfc_far_requests(&f->line, &f->asker);
	} else {
		send_open(f);
		nfc_far_answer(f);
	}
	may = f->config.device || f->known;
	for (uint32_t i = 0; i < f->config.mailboxes; i++)
		f->rung |= !nfc_far_rings_serve(&f->line, &f->mailbox[i],
						poll && may);
	return f->line.due;
}

bool nfc_far_sent_all(const struct nfc_far *f)
{
	bool idle = true;

	for (uint32_t i = 0; i < f->config.mailboxes; i++)
		idle &= nfc_far_rings_idle(&f->mailbox[i]);
	return idle || !f->known || f->over || f->latched;
}

void nfc_far_leave(struct nfc_far *f)
{
	struct nfc_far_packet p = { .head = { .count = 0 } };

	nfc_far_send(&f->line, NFC_FAR_LEAVE, &p, 0);
}
