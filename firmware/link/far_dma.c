// SPDX-License-Identifier: MIT
/*
 * DMA between a device and the memory of a host that is far: requests of a packet's
 * size, so many at a time. A request that had no answer is repeated. Its number
 * shows the host whether it was done already, so that no late copy of one
 * writes to
 * memory that the host has given to somebody else.
 */
#include "far.h"

enum {
	AGAIN_NS = 20000000, /* a request without an answer */
};

/* ---- at the device: pieces ---- */

static struct nfc_far_piece *find(struct nfc_far_asker *a, bool write,
				  const void *memory, uint64_t bus,
				  uint64_t size)
{
	for (uint32_t i = 0; i < NFC_FAR_PIECES; i++) {
		struct nfc_far_piece *p = &a->piece[i];

		if (p->used && p->memory == memory && p->bus == bus &&
		    p->size == size && p->write == write)
			return p;
	}
	return NULL;
}

static bool ended(const struct nfc_far_piece *p)
{
	return !p->open && (p->status || p->done == p->size);
}

static void begin(struct nfc_far_asker *a, bool write, void *memory,
		  uint64_t bus, uint64_t size)
{
	for (uint32_t i = 0; i < NFC_FAR_PIECES; i++) {
		if (a->piece[i].used)
			continue;
		a->piece[i] = (struct nfc_far_piece){ .memory = memory,
						      .bus = bus,
						      .size = size,
						      .used = true,
						      .write = write };
		return;
	} /* full: it begins when another has ended */
}

int nfc_far_piece(struct nfc_far_asker *a, bool write, void *memory,
		  uint64_t bus, uint64_t size)
{
	struct nfc_far_piece *p = find(a, write, memory, bus, size);

	if (!p) {
		begin(a, write, memory, bus, size);
		return NFC_PENDING;
	}
	if (!ended(p))
		return NFC_PENDING;
	p->used = false;
	return p->status;
}

int nfc_far_dma(struct nfc_far *f, bool write, void *memory, uint64_t bus,
		uint64_t size)
{
	return f->over ? NFC_ERESET :
			 nfc_far_piece(&f->asker, write, memory, bus, size);
}

/* ---- at the device: requests ---- */

/* Cut requests off a piece, as far as the window allows. */
static void cut(struct nfc_far_asker *a, uint32_t index)
{
	struct nfc_far_piece *p = &a->piece[index];

	while (p->used && !p->status && p->asked < p->size) {
		struct nfc_far_request
			*r = &a->request[a->number % NFC_FAR_REQUESTS];
		uint64_t left = p->size - p->asked;

		if (r->piece)
			return; /* the oldest has no answer yet */
		*r = (struct nfc_far_request){
			.offset = p->asked,
			.number = a->number++,
			.size = left < NFC_FAR_BYTES ? (uint32_t)left :
						       NFC_FAR_BYTES,
			.piece = index + 1,
		};
		p->asked += r->size;
		p->open++;
		a->open++;
	}
}

static bool send_write(struct nfc_far_line *l, const struct nfc_far_asker *a,
		       const struct nfc_far_request *r)
{
	const struct nfc_far_piece *piece = &a->piece[r->piece - 1];
	struct nfc_far_packet p;

	p.head = (struct nfc_far_head){ .bus = piece->bus + r->offset,
					.number = r->number,
					.size = r->size };
	__builtin_memcpy(p.bytes, piece->memory + r->offset, r->size);
	return nfc_far_send(l, NFC_FAR_WRITE, &p, r->size);
}

/*
 * Send READs together; those that could not be sent are sent with the next
 * step.
 */
static void send_reads(struct nfc_far_line *l, struct nfc_far_asker *a,
		       struct nfc_far_packet *p)
{
	uint32_t n = p->head.count;

	if (!n || nfc_far_send(l, a->read, p, n * (uint32_t)sizeof(p->asked[0])))
		return;
	for (uint32_t i = 0; i < n; i++)
		a->request[p->asked[i].number % NFC_FAR_REQUESTS].sent_ns = 0;
}

void nfc_far_requests(struct nfc_far_line *l, struct nfc_far_asker *a)
{
	struct nfc_far_packet reads = { .head = { .count = 0 } };

	for (uint32_t i = 0; i < NFC_FAR_PIECES; i++)
		cut(a, (a->first_piece + i) % NFC_FAR_PIECES);
	a->first_piece++; /* who is first */
	for (uint32_t i = 0; a->open && i < NFC_FAR_REQUESTS; i++) {
		struct nfc_far_request
			*r = &a->request[(a->number + i) % NFC_FAR_REQUESTS];
		const struct nfc_far_piece *p;

		if (!r->piece)
			continue;
		if (r->sent_ns && l->now - r->sent_ns < AGAIN_NS) {
			nfc_far_due(l, r->sent_ns + AGAIN_NS);
			continue;
		}
		p = &a->piece[r->piece - 1];
		if (!p->write)
			reads.asked[reads.head.count++] = (struct nfc_far_asked){
				p->bus + r->offset, r->number, r->size
			};
		else if (!send_write(l, a, r))
			break;
		r->sent_ns = l->now;
		nfc_far_due(l, l->now + AGAIN_NS);
	}
	send_reads(l, a, &reads);
}

static struct nfc_far_request *asked(struct nfc_far_asker *a, uint32_t number)
{
	struct nfc_far_request *r = &a->request[number % NFC_FAR_REQUESTS];

	return r->piece && r->number == number ? r : NULL;
}

static void request_done(struct nfc_far_asker *a, struct nfc_far_request *r,
			 uint64_t status)
{
	struct nfc_far_piece *p = &a->piece[r->piece - 1];

	p->open--;
	p->done += r->size;
	if (status && !p->status)
		p->status = status <= UINT16_MAX ? (uint16_t)status : NFC_EDMA;
	r->piece = 0;
	a->open--;
	if (!ended(p))
		return;
	for (uint32_t i = 0; i < a->islands; i++)
		a->port->ring(a->port->self, i);
}

/* Bytes of a packet, out of the FIFO, to memory: of the host by its bus address, else here. */
static int unload(const struct nfc_fifo *fifo, uint32_t at, uint64_t to,
		  uint32_t size, const struct nfc_far_port *host)
{
	while (size) {
		struct nfc_word *from;
		uint32_t words = nfc_fifo_run(fifo, at, nfc_words(size), &from);
		uint32_t n = words * NFC_WORD_SIZE;
		int rc = 0;

		n = n < size ? n : size;
		if (host)
			rc = host->reach(host->self, true, from, to, n);
		else
			__builtin_memcpy((void *)(uintptr_t)to, from, n);
		if (rc)
			return rc;
		to += n;
		at += words;
		size -= n;
	}
	return 0;
}

void nfc_far_data_received(struct nfc_far_asker *a, const struct nfc_packet *p,
			   const struct nfc_far_head *h,
			   const struct nfc_fifo *fifo, uint32_t at)
{
	struct nfc_far_request *r = asked(a, h->number);
	const struct nfc_far_piece *piece;

	if (!r)
		return; /* it was answered before */
	piece = &a->piece[r->piece - 1];
	if (piece->write || (!h->status && p->size != NFC_FAR_HEAD + r->size))
		return;
	if (!h->status)
		unload(fifo, at, (uintptr_t)piece->memory + r->offset, r->size,
		       NULL);
	request_done(a, r, h->status);
}

static void done_received(struct nfc_far_asker *a,
			  const struct nfc_far_asked *list, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++) {
		struct nfc_far_request *r = asked(a, list[i].number);

		if (r && a->piece[r->piece - 1].write)
			request_done(a, r, list[i].size);
	}
}

/* ---- at the host ---- */

/*
 * Is a new request not for pages of a transfer? Then the device is ignored from
 * now on.
 */
static bool breaks_rule(struct nfc_far *f, bool write, uint64_t bus,
			uint64_t size)
{
	if (f->fenced || nfc_far_granted(f, write, bus, size))
		return false;
	f->latched = f->fenced = true;
	nfc_far_lose(f, NFC_DEVICE_FAULT);
	return true;
}

struct nfc_far_asked *nfc_far_place_of(struct nfc_far_served *s,
				       uint32_t number, bool *again)
{
	struct nfc_far_asked *at = &s->list[number % NFC_FAR_REQUESTS];

	*again = at->number == number;
	return (int32_t)(number - at->number) >= 0 ? at : NULL;
}

static void read_received(struct nfc_far *f, const struct nfc_far_asked *list,
			  uint32_t count)
{
	for (uint32_t i = 0; i < count; i++) {
		bool again;
		struct nfc_far_asked *s = nfc_far_place_of(
			&f->served, list[i].number, &again);

		if (!s || list[i].size > NFC_FAR_BYTES)
			continue;
		if (!again && breaks_rule(f, false, list[i].bus, list[i].size))
			return;
		*s = list[i];
		f->served.data |= 1ull << s->number % NFC_FAR_REQUESTS;
	}
}

static void write_received(struct nfc_far *f, const struct nfc_packet *p,
			   const struct nfc_far_head *h,
			   const struct nfc_fifo *fifo, uint32_t at)
{
	bool again;
	struct nfc_far_asked *s = nfc_far_place_of(&f->served, h->number,
						   &again);

	if (!s || p->size != NFC_FAR_HEAD + h->size)
		return;
	f->served.done |= 1ull << h->number % NFC_FAR_REQUESTS;
	if (again) /* the memory may be another's by now */
		return;
	s->number = h->number;
	s->size = NFC_ERESET;
	if (!breaks_rule(f, true, h->bus, h->size) && !f->fenced)
		s->size = (uint32_t)unload(fifo, at, h->bus, h->size,
					   &f->config.port);
}

static void send_done(struct nfc_far *f)
{
	struct nfc_far_packet p = { .head = { .count = 0 } };

	for (uint32_t i = 0; i < NFC_FAR_REQUESTS; i++)
		if (f->served.done >> i & 1)
			p.asked[p.head.count++] = f->served.list[i];
	if (p.head.count &&
	    nfc_far_send(&f->line, NFC_FAR_DONE, &p,
			 p.head.count * (uint32_t)sizeof(p.asked[0])))
		f->served.done = 0;
}

static bool send_data(struct nfc_far *f, const struct nfc_far_asked *s)
{
	struct nfc_far_packet p;
	int rc = NFC_ERESET;

	/* one that is asked for again after its transfer gets nothing */
	if (!f->fenced && nfc_far_granted(f, false, s->bus, s->size))
		rc = f->config.port.reach(f->config.port.self, false, p.bytes,
					  s->bus, s->size);
	p.head = (struct nfc_far_head){ .number = s->number,
					.size = s->size,
					.status = (uint64_t)rc };
	return nfc_far_send(&f->line, NFC_FAR_DATA, &p, rc ? 0 : s->size);
}

void nfc_far_answer(struct nfc_far *f)
{
	if (f->served.done)
		send_done(f);
	for (uint32_t i = 0; f->served.data && i < NFC_FAR_REQUESTS; i++) {
		if (!(f->served.data >> i & 1))
			continue;
		if (!send_data(f, &f->served.list[i]))
			return;
		f->served.data &= ~(1ull << i);
	}
}

/* ---- both ---- */

void nfc_far_dma_received(struct nfc_far *f, const struct nfc_packet *p,
			  const struct nfc_far_head *h,
			  const struct nfc_fifo *fifo, uint32_t at)
{
	struct nfc_far_asked list[NFC_FAR_REQUESTS];
	bool device = f->config.device;

	if (device && p->kind == NFC_FAR_DATA) {
		nfc_far_data_received(&f->asker, p, h, fifo, at);
		return;
	}
	if (!device && p->kind == NFC_FAR_WRITE) {
		write_received(f, p, h, fifo, at);
		return;
	}
	if (h->count > NFC_FAR_REQUESTS ||
	    p->size != NFC_FAR_HEAD + h->count * sizeof(*list))
		return;
	nfc_fifo_read(fifo, at, (struct nfc_word *)list, h->count);
	if (device && p->kind == NFC_FAR_DONE)
		done_received(&f->asker, list, h->count);
	else if (!device && p->kind == NFC_FAR_READ)
		read_received(f, list, h->count);
}
