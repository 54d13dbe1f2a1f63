// SPDX-License-Identifier: MIT
/*
 * The DMA engine: turns page entries into merged pieces, and lets any number
 * of engines move them. The island that owns a transfer plans its batches and
 * works on them too; engines and a waiting host take pieces of the batches in
 * the open table.
 */
#include "calls.h"

enum {
	CLAIM_FRONT = 1, /* added to claim: a piece from the front */
	CLAIM_BACK = 1 << 16, /* from the back */
};

static inline uint32_t claim_count(uint64_t claim)
{
	return (uint32_t)(claim >> 32);
}

static inline uint32_t claim_front(uint64_t claim)
{
	return (uint32_t)claim & 0xffff;
}

static inline uint32_t claim_back(uint64_t claim)
{
	return (uint32_t)claim >> 16;
}

/*
 * A piece costs some 100 ns. Four of them let two engines share the rest of a
 * transfer, also if one starts late. An eager transfer ends before a second
 * engine could start.
 */
static uint64_t piece_limit(const struct nfc_transfer *t)
{
	uint64_t each = (t->received - t->planned) / 4;

	if (t->eager)
		return NFC_EAGER_BYTES;
	each &= ~(uint64_t)(NFC_PAGE_SIZE - 1);
	if (each < NFC_PIECE_MIN)
		return NFC_PIECE_MIN;
	return nfc_min(each, NFC_PIECE_MAX);
}

/* Where in the transfer a piece starts. */
uint64_t nfc_piece_start(const struct nfc_transfer *t,
			 const struct nfc_piece *piece)
{
	return (uint64_t)(piece->memory - t->memory);
}

/*
 * Add up to length bytes at bus to the batch; neighbours merge into one piece, and
 * what is longer than the limit is the next piece's. Returns the bytes that fit.
 */
static uint64_t add(struct nfc_transfer *t, uint32_t *count, uint64_t bus,
		    uint64_t length, uint64_t limit)
{
	struct nfc_batch *b = &t->batch;
	struct nfc_piece *last = *count ? &b->piece[*count - 1] : NULL;

	length = nfc_min(length, NFC_BATCH_MAX - b->bytes);
	if (last && last->bus + last->length == bus && last->length < limit) {
		length = nfc_min(length, limit - last->length);
		last->length += length;
		return length;
	}
	if (*count == NFC_PIECES)
		return 0;
	length = nfc_min(length, limit);
	b->piece[(*count)++] = (struct nfc_piece){
		.bus = bus,
		.memory = t->memory + t->planned,
		.length = length,
		.list = t->cursor,
		.entry = t->entry,
	};
	return length;
}

/* Move the cursor past the entry it stands on. */
static void next_entry(struct nfc_transfer *t, const struct nfc_slot *list)
{
	if (++t->entry < nfc_list_entries(list))
		return;
	t->entry = 0;
	t->cursor++;
}

static void offer(struct nfc_device *dev, struct nfc_transfer *t)
{
	for (uint32_t i = 0; i < NFC_OPEN; i++) {
		struct nfc_transfer *none = NULL;

		/* SYNC: dma open */
		if (atomic_compare_exchange_strong(&dev->open[i], &none, t)) {
			t->shared = i + 1;
			break;
		}
	}
	dev->port->wake_engines(dev->port->self);
}

/* Mark a failure as the giver's, unless the copy is still pending. */
static int at_giver(int rc)
{
	return rc && rc != NFC_PENDING ? rc | (int)NFC_AT_GIVER : rc;
}

/* By way of the device; the bit of halfway is the piece's. */
static int bounce(struct nfc_device *dev, struct nfc_transfer *t,
		  const struct nfc_piece *piece, uint32_t bit)
{
	const struct nfc_port *port = dev->port;
	uint32_t to = t->channel->rings->host->index;
	uint32_t from = t->peer->channel->rings->host->index;
	int rc;

	if (!(atomic_load(&t->batch.halfway) & bit)) {
		rc = port->dma_read(port->self, from, piece->memory,
				    piece->from, piece->length);
		if (rc)
			return at_giver(rc);
		atomic_fetch_or(&t->batch.halfway, bit);
	}
	return port->dma_write(port->self, to, piece->bus, piece->memory,
			       piece->length);
}

/*
 * Copy from one host to another. If that fails, bounce() reports why, and on
 * which side.
 */
static int hand_over(struct nfc_device *dev, struct nfc_transfer *t,
		     const struct nfc_piece *piece)
{
	const struct nfc_port *port = dev->port;
	uint32_t bit = 1u << (piece - t->batch.piece);
	uint32_t to = t->channel->rings->host->index;
	uint32_t from = t->peer->channel->rings->host->index;

	if (port->dma_copy && !(atomic_load(&t->batch.halfway) & bit) &&
	    port->dma_copy(port->self, to, piece->bus, from, piece->from,
			   piece->length))
		return 0;
	return bounce(dev, t, piece, bit);
}

static int move(struct nfc_device *dev, struct nfc_transfer *t,
		const struct nfc_piece *piece)
{
	const struct nfc_rings *rings = t->channel->rings;
	const struct nfc_port *port = dev->port;
	uint32_t host = rings->host->index;

	if (t->source == NFC_SOURCE_PEER)
		return hand_over(dev, t, piece);
	if (t->source == NFC_SOURCE_NODE)
		return port->fetch(port->self, host,
				   nfc_joint_index(rings->joint), piece->memory,
				   piece->bus, piece->length);
	if (t->source == NFC_SOURCE_PROCESS) {
		__builtin_memmove(piece->memory, (void *)(uintptr_t)piece->bus,
				  piece->length);
		return 0;
	}
	if (t->direction == NFC_H2D)
		return port->dma_read(port->self, host, piece->memory,
				      piece->bus, piece->length);
	return port->dma_write(port->self, host, piece->bus, piece->memory,
			       piece->length);
}

/* A batch of one piece is not worth sharing: it is done, or pending, when planned. */
static void move_alone(struct nfc_device *dev, struct nfc_transfer *t)
{
	struct nfc_batch *b = &t->batch;
	int rc = move(dev, t, &b->piece[0]);
	bool pending = rc == NFC_PENDING;

	atomic_store_explicit(&b->failed,
			      rc && !pending ? (uint32_t)rc << 16 | 1 : 0,
			      memory_order_relaxed);
	atomic_store_explicit(&b->pending, pending, memory_order_relaxed);
	atomic_store_explicit(&b->done, !pending, memory_order_relaxed);
	atomic_store_explicit(&b->claim, 0, memory_order_relaxed);
}

/*
 * Put some of the entry under the cursor in the batch; false if nothing fits.
 * The bytes before the offset were moved before the list was requested again.
 */
static bool plan_entry(struct nfc_transfer *t, uint32_t *count, uint64_t limit)
{
	uint64_t mask = t->channel->island->dev->config.window - 1;
	const struct nfc_slot *list = &t->queue[t->cursor & mask];
	uint64_t length, left, fit;
	uint64_t bus = nfc_list_entry(list, t->entry, &length);

	if (t->offset >= length) {
		t->offset -= length;
		next_entry(t, list);
		return true;
	}
	left = nfc_min(length - t->offset, t->received - t->planned);
	fit = add(t, count, bus + t->offset, left, limit);
	t->batch.bytes += fit;
	t->planned += fit;
	t->offset += fit;
	if (fit == left) {
		t->offset = 0;
		next_entry(t, list);
	}
	return fit;
}

/* The same for bytes of another process, at their address in its memory. */
static bool plan_from(struct nfc_transfer *t, uint32_t *count, uint64_t limit)
{
	uint64_t fit = add(t, count, t->from + t->planned,
			   t->received - t->planned, limit);

	t->batch.bytes += fit;
	t->planned += fit;
	return fit;
}

/* Where the cursor stands, and the bytes from there on that are in one piece. */
static uint64_t stands_at(const struct nfc_transfer *t, uint64_t *length)
{
	uint64_t mask = t->channel->island->dev->config.window - 1;
	uint64_t bus = nfc_list_entry(&t->queue[t->cursor & mask], t->entry,
				      length);

	*length = nfc_min(*length - t->offset, t->received - t->planned);
	return bus + t->offset;
}

/* Move on by bytes of one entry, of which so many are left. */
static void pass(struct nfc_transfer *t, uint64_t bytes, uint64_t left)
{
	uint64_t mask = t->channel->island->dev->config.window - 1;

	t->planned += bytes;
	t->offset += bytes;
	if (bytes < left)
		return;
	t->offset = 0;
	next_entry(t, &t->queue[t->cursor & mask]);
}

/* As add(), for bytes between hosts. */
static uint64_t add_pair(struct nfc_transfer *t, uint32_t *count, uint64_t bus,
			 uint64_t from, uint64_t length)
{
	struct nfc_batch *b = &t->batch;
	struct nfc_piece *last = *count ? &b->piece[*count - 1] : NULL;

	length = nfc_min(length, NFC_BOUNCE - b->bytes);
	if (last && last->bus + last->length == bus &&
	    last->from + last->length == from &&
	    last->length < NFC_BOUNCE_PIECE) {
		length = nfc_min(length, NFC_BOUNCE_PIECE - last->length);
		last->length += length;
		return length;
	}
	if (*count == NFC_PIECES)
		return 0;
	length = nfc_min(length, NFC_BOUNCE_PIECE);
	b->piece[(*count)++] = (struct nfc_piece){
		.bus = bus,
		.from = from,
		.memory = t->memory + b->bytes,
		.length = length,
	};
	return length;
}

/* The same for what one entry of the lists of both hosts has. */
static bool plan_pair(struct nfc_transfer *t, uint32_t *count)
{
	struct nfc_transfer *give = t->peer;
	uint64_t left, there, bus, from, fit;

	if (t->planned >= give->received || t->batch.bytes == NFC_BOUNCE)
		return false;
	bus = stands_at(t, &left);
	from = stands_at(give, &there);
	fit = add_pair(t, count, bus, from, nfc_min(left, there));
	t->batch.bytes += fit;
	pass(t, fit, left);
	pass(give, fit, there);
	return fit;
}

static void set_mark(struct nfc_transfer *t)
{
	t->mark = (struct nfc_mark){
		.planned = t->planned,
		.cursor = t->cursor,
		.offset = t->offset,
		.entry = t->entry,
	};
}

static void to_mark(struct nfc_transfer *t)
{
	t->planned = t->mark.planned;
	t->cursor = t->mark.cursor;
	t->offset = t->mark.offset;
	t->entry = t->mark.entry;
}

void nfc_dma_rewind(struct nfc_transfer *t)
{
	to_mark(t);
	to_mark(t->peer);
}

static void begin_pair(struct nfc_transfer *t)
{
	set_mark(t);
	set_mark(t->peer);
	atomic_store(&t->batch.halfway, 0);
}

/* Put some more in the batch; false if nothing fits. */
static bool plan_more(struct nfc_transfer *t, uint32_t *count, uint64_t limit)
{
	if (!t->source)
		return plan_entry(t, count, limit);
	if (t->source == NFC_SOURCE_PEER)
		return plan_pair(t, count);
	return plan_from(t, count, limit);
}

/* Fill a batch, of one list if the host waits for each; false if there is nothing to move. */
bool nfc_dma_plan(struct nfc_transfer *t)
{
	struct nfc_device *dev = t->channel->island->dev;
	struct nfc_batch *b = &t->batch;
	uint64_t limit, last = UINT64_MAX;
	uint32_t count = 0;

	if (t->planned >= t->received)
		return false;
	limit = piece_limit(t);
	if (nfc_by_rounds(t))
		last = t->cursor;
	b->bytes = 0;
	if (t->source == NFC_SOURCE_PEER)
		begin_pair(t);
	while (t->planned < t->received && b->bytes < NFC_BATCH_MAX &&
	       t->cursor <= last && plan_more(t, &count, limit))
		;
	if (!count)
		return false;
	b->claimed = count;
	t->busy = 1;
	if (count == 1) {
		move_alone(dev, t);
		return true;
	}
	atomic_store_explicit(&b->done, 0, memory_order_relaxed);
	atomic_store_explicit(&b->pending, 0, memory_order_relaxed);
	atomic_store_explicit(&b->failed, 0, memory_order_relaxed);
	atomic_store_explicit(&b->claim, (uint64_t)count << 32,
			      memory_order_release); /* SYNC: dma claim */
	offer(dev, t);
	return true;
}

/*
 * Engines finish in any order; what counts is the first failure in the order of
 * the bytes, or a repeat would skip the pieces before it.
 */
static void note_failure(struct nfc_batch *b, uint32_t at, int rc)
{
	uint32_t seen = atomic_load(&b->failed);

	while (!seen || (seen & 0xffff) > at + 1)
		if (atomic_compare_exchange_weak(&b->failed, &seen,
						 (uint32_t)rc << 16 | (at + 1)))
			return;
}

static void finish_piece(struct nfc_batch *b, uint32_t at, int rc)
{
	if (rc)
		note_failure(b, at, rc);
	/* SYNC: dma done */
	atomic_fetch_add_explicit(&b->done, 1, memory_order_release);
}

/*
 * Claim one piece and move it; false if none is left. Any thread. The owner
 * takes from the front and helpers from the back, so that a buffer used again
 * meets the same caches.
 */
bool nfc_dma_work(struct nfc_device *dev, struct nfc_transfer *t, bool front)
{
	struct nfc_batch *b = &t->batch;
	/* SYNC: dma claim */
	uint64_t claim = atomic_load_explicit(&b->claim, memory_order_acquire);
	uint64_t take = front ? CLAIM_FRONT : CLAIM_BACK;
	uint32_t at;
	int rc;

	do {
		if (claim_front(claim) + claim_back(claim) >= claim_count(claim))
			return false;
		/* SYNC: dma claim */
	} while (!atomic_compare_exchange_weak(&b->claim, &claim, claim + take));
	at = front ? claim_front(claim) :
		     claim_count(claim) - 1 - claim_back(claim);
	/* The piece is ours, and the batch stays until done. */
	rc = move(dev, t, &b->piece[at]);
	if (rc == NFC_PENDING)
		atomic_fetch_or(&b->pending, 1u << at);
	else
		finish_piece(b, at, rc);
	return true;
}

/*
 * Ask for the pieces that the port has begun; true if one is finished, or an engine
 * still moves one. The owner alone asks.
 */
bool nfc_dma_poll(struct nfc_transfer *t)
{
	struct nfc_batch *b = &t->batch;
	uint32_t pending = atomic_load(&b->pending), waiting = 0;
	bool any = false;

	for (uint32_t at = 0; at < NFC_PIECES; at++) {
		int rc;

		if (!(pending >> at & 1))
			continue;
		rc = move(t->channel->island->dev, t, &b->piece[at]);
		if (rc == NFC_PENDING) {
			waiting++;
			continue;
		}
		any = true;
		atomic_fetch_and(&b->pending, ~(1u << at));
		finish_piece(b, at, rc);
	}
	return any || atomic_load(&b->done) + waiting < b->claimed;
}

/*
 * Which page of a piece that failed cannot be reached: each is moved again, on its
 * own, until one fails. The piece becomes that part of it.
 */
void nfc_dma_locate(struct nfc_transfer *t, struct nfc_piece *piece)
{
	struct nfc_device *dev = t->channel->island->dev;
	uint64_t mask = dev->config.window - 1, left = piece->length;
	struct nfc_piece part = *piece;
	int rc;

	while (left) {
		const struct nfc_slot *list = &t->queue[part.list & mask];
		uint64_t end, start = nfc_list_entry(list, part.entry, &end);

		end += start;
		part.length = NFC_PAGE_SIZE - part.bus % NFC_PAGE_SIZE;
		part.length = nfc_min(part.length, end - part.bus);
		part.length = nfc_min(part.length, left);
		while ((rc = move(dev, t, &part)) == NFC_PENDING)
			dev->port->yield(dev->port->self);
		if (rc == NFC_EDMA) {
			*piece = part;
			return;
		}
		left -= part.length;
		part.bus += part.length;
		part.memory += part.length;
		if (part.bus < end)
			continue;
		if (++part.entry == nfc_list_entries(list)) {
			part.entry = 0;
			part.list++;
		}
	}
}

/* Put the cursor of a side on a byte of the batch that it is at the start of. */
static void seek(struct nfc_transfer *t, uint64_t bytes)
{
	uint64_t length;

	while (bytes) {
		stands_at(t, &length);
		pass(t, nfc_min(bytes, length), length);
		bytes -= nfc_min(bytes, length);
	}
}

void nfc_dma_find(struct nfc_transfer *t, struct nfc_piece *piece,
		  struct nfc_transfer *whose)
{
	struct nfc_device *dev = t->channel->island->dev;
	uint64_t before = (uint64_t)(piece->memory - t->memory);
	uint64_t left = piece->length;
	struct nfc_piece part = *piece;

	for (; left; left -= part.length) {
		int rc;

		part.length = NFC_PAGE_SIZE - part.bus % NFC_PAGE_SIZE;
		part.length = nfc_min(part.length,
				      NFC_PAGE_SIZE - part.from % NFC_PAGE_SIZE);
		part.length = nfc_min(part.length, left);
		atomic_store(&t->batch.halfway, 0);
		while ((rc = bounce(dev, t, &part, 1)) == NFC_PENDING)
			dev->port->yield(dev->port->self);
		if (rc)
			break;
		part.bus += part.length;
		part.from += part.length;
		before += part.length;
	}
	seek(whose, before);
	whose->fault_index = whose->entry;
	whose->finished = whose->cursor;
}

/* True once every claimed piece is finished. */
bool nfc_dma_quiet(struct nfc_transfer *t)
{
	/* SYNC: dma done */
	return !t->busy ||
	       atomic_load_explicit(&t->batch.done, memory_order_acquire) >=
		       t->batch.claimed;
}

/* No piece starts after this; those under way finish. */
void nfc_dma_stop(struct nfc_transfer *t)
{
	uint64_t claim;

	if (!t->busy)
		return;
	claim = atomic_exchange(&t->batch.claim, 0);
	if (claim)
		t->batch.claimed = claim_front(claim) + claim_back(claim);
}

/* Take a finished batch off the open table. */
void nfc_dma_close(struct nfc_device *dev, struct nfc_transfer *t)
{
	if (t->shared)
		atomic_store(&dev->open[t->shared - 1], NULL);
	t->shared = 0;
	t->busy = 0;
}

int nfc_dma_step(struct nfc_device *dev)
{
	for (uint32_t i = 0; i < NFC_OPEN; i++) {
		/* SYNC: dma open */
		struct nfc_transfer *t = atomic_load_explicit(
			&dev->open[i], memory_order_acquire);

		if (t && nfc_dma_work(dev, t, false))
			return 1;
	}
	return 0;
}
