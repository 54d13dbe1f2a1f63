// SPDX-License-Identifier: MIT
/* Transfers: gather lists in, DMA batches out, completion records back. */
#include "calls.h"

/*
 * Bytes whose copy takes long enough to read the clock again. For less, the
 * stamp of a record is the time of the island's pass.
 */
#define STAMP_BYTES (16u << 10)

static uint64_t stamp(const struct nfc_transfer *t)
{
	struct nfc_island *island = t->channel->island;

	if (t->processed - t->reported >= STAMP_BYTES)
		nfc_read_clock(island);
	return island->now;
}

void nfc_transfer_ack(struct nfc_transfer *t, enum nfc_type type,
		      enum nfc_state state, enum nfc_status status)
{
	struct nfc_channel *ch = t->channel;
	struct nfc_ack ack = {
		.transaction = t->id,
		.processed = t->processed,
		.outstanding = t->size - t->processed,
		.lists = (uint32_t)t->finished,
		.state = (uint16_t)state,
		.status = (uint16_t)status,
		.fault_index = type == NFC_TYPE_DONE ? t->sum : t->fault_index,
		.direction = t->direction,
		.begin_ns = ch->begin_ns,
		.now_ns = stamp(t),
	};
	union {
		struct nfc_ack ack;
		uint64_t word[7];
	} u = { .ack = ack };

	t->acked = t->finished;
	t->reported = t->processed;
	nfc_put(ch, type, NFC_PAYLOAD_SIZE, t->id, u.word);
}

static void init_transfer(struct nfc_transfer *t, struct nfc_channel *ch,
			  enum nfc_direction direction, uint64_t size)
{
	struct nfc_half *half = &ch->half[direction];

	t->channel = ch;
	t->source = NFC_SOURCE_HOST;
	t->id = half->next - 1;
	t->size = size;
	t->received = t->planned = t->processed = 0;
	t->lists = t->cursor = t->finished = t->acked = t->reported = 0;
	t->offset = 0;
	t->entry = t->fault_index = 0;
	t->direction = (uint8_t)direction;
	t->busy = t->repeat = t->ending = t->aborted = t->shared = 0;
	t->eager = t->tries = t->summed = 0;
	t->sum = 0;
	half->transfer = t;
	half->state = NFC_HALF_MOVING;
	t->next = ch->rings->share->active;
	ch->rings->share->active = t;
}

void nfc_transfer_init(struct nfc_transfer *t, struct nfc_channel *ch,
		       enum nfc_direction direction, uint64_t size)
{
	init_transfer(t, ch, direction, size);
	t->follows = t->greets = 0;
	t->until = 0;
}

/*
 * Both ends agreed on size: start moving into or out of the memory that p
 * waits with. The transfer ends by waking p.
 */
void nfc_transfer_begin(struct nfc_process *p, struct nfc_channel *ch,
			enum nfc_direction direction, uint64_t size)
{
	p->transfer.memory = p->buf;
	p->wait = NFC_WAIT_MOVING;
	init_transfer(&p->transfer, ch, direction, size);
}

/*
 * Bytes of an entry, of which at most left are missing; 0 if it breaks the
 * rules.
 */
static uint64_t entry_bytes(const struct nfc_slot *list, uint32_t i,
			    uint64_t left)
{
	uint64_t length, address = nfc_list_entry(list, i, &length);

	if (list->header & NFC_LIST_RUNS) {
		/* The last run ends with the transfer, in its last page. */
		if (length > left && length - left < NFC_PAGE_SIZE)
			length = left;
		return length > left || address + length > 1ull << 48 ? 0 :
									length;
	}
	if (address % NFC_PAGE_SIZE + length > NFC_PAGE_SIZE || length > left)
		return 0;
	return length;
}

/*
 * Bytes of a list, of which at most left are missing; more if it breaks the
 * rules.
 */
static uint64_t list_bytes(const struct nfc_slot *list, uint64_t left)
{
	uint64_t entries = nfc_list_entries(list), sum = 0;

	if (entries > NFC_LIST_ENTRIES)
		return UINT64_MAX;
	for (uint32_t i = 0; i < entries; i++) {
		uint64_t bytes = entry_bytes(list, i, left - sum);

		if (!bytes)
			return UINT64_MAX;
		sum += bytes;
	}
	for (uint64_t i = entries; i < NFC_LIST_ENTRIES; i++)
		if (list->payload[i])
			return UINT64_MAX;
	return sum;
}

/* May the host write its lists so? A checksum is of bytes in device memory. */
static bool may_list(const struct nfc_channel *ch, const struct nfc_slot *list)
{
	const struct nfc_device *dev = ch->island->dev;
	const struct nfc_host *host = ch->rings->host;
	bool runs = dev->config.runs && nfc_accepted(host, NFC_CAP_RUNS);
	bool sums = dev->port->sum && !ch->relay &&
		    nfc_accepted(host, NFC_CAP_SUM);

	return (runs || !(list->header & NFC_LIST_RUNS)) &&
	       (sums || !(list->header & NFC_LIST_SUM));
}

/* Do all lists of the transfer ask for a checksum, or none? */
static bool sums_alike(struct nfc_transfer *t, const struct nfc_slot *list)
{
	uint8_t summed = (list->header & NFC_LIST_SUM) != 0;

	if (!t->lists)
		t->summed = summed;
	return t->summed == summed;
}

/* Take a gather list; one that breaks the rules ends the transfer. */
void nfc_transfer_list(struct nfc_transfer *t, const struct nfc_slot *slot)
{
	struct nfc_share *share = t->channel->rings->share;
	uint64_t window = share->host->dev->config.window;
	uint64_t tail = slot->payload[6], left = t->size - t->received, sum;
	struct nfc_slot list = *slot;

	if (t->ending)
		return;
	if ((tail & 0xffff) != (t->lists & 0xffff)) {
		if (!t->repeat)
			nfc_transfer_abort(t, NFC_EPROTO, false);
		return;
	}
	list.header = nfc_header_length(slot->header) & ~(uint64_t)NFC_LIST_D2H;
	list.payload[6] = t->received;
	sum = may_list(t->channel, &list) && sums_alike(t, &list) ?
		      list_bytes(&list, left) :
		      0;
	if (!sum || sum > left ||
	    tail >> NFC_TAIL_OUTSTANDING_SHIFT != left - sum ||
	    t->lists - t->finished >= window) {
		nfc_transfer_abort(t, NFC_EPROTO, false);
		return;
	}
	t->queue[t->lists & (window - 1)] = list;
	t->lists++;
	t->received += sum;
	nfc_count(share, NFC_COUNT_LISTS, 1);
	if (t->lists == 1 && !t->repeat && t->direction == NFC_H2D &&
	    t->received < t->size) {
		if (t->follows)
			t->greets = 1; /* there may be no room now */
		else
			nfc_transfer_ack(t, NFC_TYPE_ACK, NFC_STATE_READY,
					 NFC_OK);
	}
	t->repeat = 0;
}

/* ---- between hosts ---- */

static bool is_moved(const struct nfc_transfer *t)
{
	return t->channel->half[t->direction].state == NFC_HALF_COMMIT;
}

void nfc_transfer_bound(struct nfc_transfer *t)
{
	struct nfc_island *island = t->channel->island;

	nfc_read_clock(island);
	t->until = island->now + NFC_ANSWER_NS;
	nfc_timer(island, t->until);
}

uint64_t nfc_transfers_due(const struct nfc_share *share)
{
	uint64_t due = UINT64_MAX;

	for (struct nfc_transfer *t = share->active; t; t = t->next)
		if (t->until)
			due = nfc_min(due, t->until);
	return due;
}

/*
 * If one of two hosts ends a transfer early, the other's side ends, too. The
 * exception: the receiving host has the bytes. Only that host reports whether
 * it took them.
 */
static void stop_peer(struct nfc_transfer *t, enum nfc_status status)
{
	struct nfc_transfer *peer = t->peer;
	bool closed = status == NFC_ERESET || status == NFC_ECLOSED;

	if (t->follows && is_moved(peer)) {
		if (status == NFC_ERESET)
			nfc_relay_part(t);
		else if (!t->until)
			nfc_transfer_bound(t);
		return;
	}
	if (!peer->ending)
		peer->ending = closed ? NFC_ECLOSED : NFC_EABORTED;
	nfc_dma_stop(peer);
}

/* A list or an answer was not sent in time. */
static void miss(struct nfc_transfer *t)
{
	t->until = 0;
	if (!is_moved(t->peer)) { /* lists, while the other host's pages wait */
		nfc_transfer_abort(t, NFC_EABORTED, false);
		return;
	}
	nfc_relay_part(t);
	nfc_relay_give_up(t->channel->relay);
}

/* ---- the end ---- */

/*
 * End a transfer early. No piece starts any more; when the engines are quiet
 * the pump answers, with ABORTED if the host asked for it, else with ERROR.
 */
void nfc_transfer_abort(struct nfc_transfer *t, enum nfc_status status,
			bool answer)
{
	if (t->follows && !t->peer && status != NFC_ERESET)
		return; /* it is over: the answer is on its way */
	if (!t->ending)
		t->ending = (uint8_t)status;
	t->aborted |= answer;
	if (t->peer)
		stop_peer(t, status);
	nfc_dma_stop(t);
}

static void finish(struct nfc_transfer *t)
{
	struct nfc_channel *ch = t->channel;
	enum nfc_status status = t->ending;

	if (t->aborted)
		nfc_transfer_ack(t, NFC_TYPE_ABORTED, NFC_STATE_FAILED, status);
	else if (status == NFC_EWITHDRAWN)
		nfc_note(ch, NFC_TYPE_WITHDRAWN, NFC_H2D, t->id);
	else
		nfc_transfer_ack(t, NFC_TYPE_ERROR, NFC_STATE_FAILED, status);
	nfc_half_release(ch, t->direction, -(int)status);
	if (ch->ending)
		nfc_channel_over(ch);
}

/* So many bytes are in place, one after the other. */
static void moved(struct nfc_transfer *t, uint64_t processed)
{
	const struct nfc_port *port = t->channel->island->dev->port;

	if (t->summed)
		t->sum = port->sum(t->sum, t->memory + t->processed,
				   processed - t->processed);
	t->processed = processed;
}

/*
 * A copy failed but may succeed yet: ask the host to send again from the list
 * it belongs to, and continue at the entry of that copy. The pages of an eager
 * transfer are tried again by themselves.
 */
static void repeat_from(struct nfc_transfer *t, const struct nfc_piece *piece)
{
	uint64_t mask = t->channel->island->dev->config.window - 1;
	uint64_t start = t->queue[piece->list & mask].payload[6];

	t->cursor = t->finished = piece->list;
	t->planned = nfc_piece_start(t, piece);
	moved(t, t->planned);
	t->entry = 0;
	t->offset = t->planned - start;
	t->fault_index = piece->entry;
	nfc_count(t->channel->rings->share, NFC_COUNT_REPEATS, 1);
	if (t->eager) { /* its pages are here */
		if (++t->tries > NFC_REPEATS_MAX)
			t->ending = NFC_EDMA;
		return;
	}
	t->lists = piece->list;
	t->received = start;
	t->repeat = 1;
	nfc_transfer_ack(t, NFC_TYPE_ACK, NFC_STATE_REPEAT, NFC_EBUSY);
}

/* A copy failed, after all before it succeeded. */
static void batch_failed(struct nfc_transfer *t, struct nfc_piece *piece,
			 uint32_t status)
{
	if (status == NFC_EBUSY) {
		repeat_from(t, piece);
		return;
	}
	if (status == NFC_EDMA)
		nfc_dma_locate(t, piece);
	if (status != NFC_ERESET)
		nfc_count(t->channel->rings->share, NFC_COUNT_UNREACHED, 1);
	t->fault_index = piece->entry;
	t->finished = piece->list;
	t->processed = nfc_piece_start(t, piece);
	t->ending = status == NFC_ERESET || status == NFC_EABORTED ? status :
								     NFC_EDMA;
}

/* The same between hosts: it is tried again, or has failed for one of them. */
static void pair_failed(struct nfc_transfer *t, struct nfc_piece *piece,
			uint32_t status)
{
	struct nfc_transfer *give = t->peer;
	bool at_giver = status & NFC_AT_GIVER;
	struct nfc_transfer *whose = at_giver ? give : t;
	struct nfc_transfer *other = at_giver ? t : give;
	struct nfc_share *share = whose->channel->rings->share;

	status &= ~NFC_AT_GIVER;
	nfc_dma_rewind(t);
	if (status == NFC_EBUSY && ++t->tries <= NFC_REPEATS_MAX) {
		nfc_count(share, NFC_COUNT_REPEATS, 1);
		return;
	}
	whose->ending = status == NFC_ERESET ? NFC_ERESET : NFC_EDMA;
	other->ending = status == NFC_ERESET ? NFC_ECLOSED : NFC_EABORTED;
	if (status == NFC_ERESET)
		return;
	nfc_count(share, NFC_COUNT_UNREACHED, 1);
	nfc_dma_find(t, piece, whose);
}

/*
 * Should the host be notified of the progress? It may wait for room in the
 * window, and it treats a transfer without notices as stalled.
 */
static bool progress_due(const struct nfc_transfer *t)
{
	uint64_t half = t->channel->island->dev->config.window / 2;

	return t->processed < t->size && !t->eager &&
	       (t->finished - t->acked >= (nfc_by_rounds(t) ? 1 : half) ||
		t->processed - t->reported >= half * NFC_LIST_BYTES);
}

static void account(struct nfc_transfer *t, const struct nfc_batch *b)
{
	struct nfc_share *share = t->channel->rings->share;

	t->finished = t->cursor;
	moved(t, t->planned);
	nfc_count(share, NFC_COUNT_BYTES, b->bytes);
	nfc_count(share, NFC_COUNT_DMA, b->claimed);
}

/* A batch is done: account for it. */
static void batch_done(struct nfc_transfer *t)
{
	struct nfc_share *share = t->channel->rings->share;
	struct nfc_batch *b = &t->batch;
	uint32_t failed = atomic_load(&b->failed);

	nfc_dma_close(share->host->dev, t);
	if (t->ending)
		return;
	if (failed) {
		(t->peer ? pair_failed : batch_failed)(
			t, &b->piece[(failed & 0xffff) - 1], failed >> 16);
		return;
	}
	account(t, b);
	if (t->peer) {
		t->tries = 0;
		account(t->peer, b);
	}
	if (progress_due(t))
		nfc_transfer_ack(t, NFC_TYPE_ACK, NFC_STATE_MOVING, NFC_OK);
}

/* Report a transfer that follows to its host; true if that is over. */
static bool follow(struct nfc_transfer *t, bool *busy)
{
	if (t->peer && t->until && t->channel->island->now >= t->until) {
		miss(t);
		*busy = true; /* the other side may have had its turn */
	}
	if (!nfc_rings_room(t->channel->rings))
		return false;
	if (!t->peer)
		return true;
	if (t->greets)
		nfc_transfer_ack(t, NFC_TYPE_ACK, NFC_STATE_READY, NFC_OK);
	else if (progress_due(t))
		nfc_transfer_ack(t, NFC_TYPE_ACK, NFC_STATE_MOVING, NFC_OK);
	t->greets = 0;
	return false;
}

/* Move what is to move; true if it is accounted for now. */
static bool advance(struct nfc_transfer *t, bool *busy)
{
	struct nfc_device *dev = t->channel->island->dev;

	if (t->follows)
		return follow(t, busy);
	if (!t->busy && !t->ending)
		nfc_dma_plan(t);
	if (t->busy) {
		/* pieces that the port has begun are no work: it wakes the island */
		*busy |= nfc_dma_quiet(t) || nfc_dma_work(dev, t, true) ||
			 nfc_dma_poll(t);
		if (!nfc_dma_quiet(t))
			return false;
	}
	if (t->ending && t->peer) /* the other host need not wait for room here */
		nfc_relay_part(t);
	if (!nfc_rings_room(t->channel->rings))
		return false;
	if (t->busy)
		batch_done(t);
	return true;
}

/* An eager transfer is committed as soon as all has moved. */
static void commit(struct nfc_transfer *t)
{
	struct nfc_channel *ch = t->channel;

	nfc_count(ch->rings->share, NFC_COUNT_TRANSFERS_H2D + t->direction, 1);
	nfc_transfer_ack(t, NFC_TYPE_ACK, NFC_STATE_CONSUMED, NFC_OK);
	nfc_half_release(ch, t->direction, 0);
	if (ch->ending)
		nfc_channel_over(ch);
}

/* Put DONE or the failure at the end; false once t left the active list. */
static bool settle(struct nfc_transfer *t)
{
	if (t->ending == NFC_ERESET && t->peer)
		nfc_relay_part(t);
	if (t->ending == NFC_ERESET)
		return false;
	if (t->ending) {
		finish(t);
		return false;
	}
	if (t->processed < t->size)
		return true;
	if (t->eager || t->follows) {
		commit(t);
		return false;
	}
	t->channel->half[t->direction].state = NFC_HALF_COMMIT;
	nfc_transfer_ack(t, NFC_TYPE_DONE, NFC_STATE_DONE, NFC_OK);
	return false;
}

/*
 * A transfer of one piece whose lists have all arrived ends before the pump's
 * turn. It is the island's newest. One that failed is left to the pump: its end
 * wakes the process, which may not have parked yet.
 */
void nfc_transfer_kick(struct nfc_transfer *t)
{
	struct nfc_share *share = t->channel->rings->share;
	uint64_t most = t->eager ? NFC_EAGER_BYTES : NFC_PIECE_MIN;
	bool busy = false;

	if (t->received < t->size || t->size > most || share->active != t)
		return;
	if (advance(t, &busy) && !t->ending && !settle(t))
		share->active = t->next;
}

/* The list that the pages of an eager transfer would be. */
static struct nfc_slot page_list(const struct nfc_pages *pages)
{
	struct nfc_slot list = { .header = pages->length };

	for (int i = 0; i < NFC_EAGER_ENTRIES; i++)
		list.payload[i] = pages->entry[i];
	return list;
}

enum nfc_status nfc_eager_check(struct nfc_channel *ch,
				const struct nfc_slot *slot,
				struct nfc_pages *pages)
{
	const struct nfc_eager *eager = (const void *)slot->payload;
	uint64_t length = nfc_header_length(slot->header);
	struct nfc_slot list;

	pages->source = NFC_SOURCE_HOST;
	if (ch->rings->joint) {
		bool far = ch->rings->joint->far.used;

		pages->source = far ? NFC_SOURCE_NODE : NFC_SOURCE_PROCESS;
		pages->from = far ? eager->transaction << 48 : eager->entry[0];
		pages->size = eager->size;
		return eager->size >> 48 ? NFC_ETOOLARGE : NFC_OK;
	}
	pages->length = length & ~(uint64_t)NFC_LIST_D2H;
	pages->size = eager->size;
	__builtin_memcpy(pages->entry, eager->entry, sizeof(pages->entry));
	list = page_list(pages);
	if (nfc_list_entries(&list) > ch->island->dev->config.eager ||
	    eager->size > NFC_EAGER_BYTES)
		return NFC_ETOOLARGE;
	if ((length & NFC_LIST_D2H && eager->timeout_ns) ||
	    length & NFC_LIST_SUM || !may_list(ch, &list) ||
	    list_bytes(&list, eager->size) != eager->size)
		return NFC_EPROTO;
	return NFC_OK;
}

void nfc_transfer_pages(struct nfc_transfer *t, const struct nfc_pages *pages)
{
	t->eager = 1;
	if (pages->source == NFC_SOURCE_HOST)
		t->queue[0] = page_list(pages);
	t->lists = pages->size != 0;
	t->received = pages->size;
}

/*
 * Both ends agree on an eager transfer, out of or into the memory of p: 0 if it
 * is committed, or NFC_AGAIN, and the pump wakes p when it is.
 */
int nfc_eager_move(struct nfc_process *p, struct nfc_channel *ch,
		   enum nfc_direction direction, const struct nfc_pages *pages)
{
	struct nfc_transfer *t = &p->transfer;
	struct nfc_half *half = &ch->half[direction];

	half->waiter = p;
	nfc_transfer_begin(p, ch, direction, pages->size);
	t->source = pages->source;
	t->from = pages->from;
	nfc_transfer_pages(t, pages);
	nfc_transfer_kick(t);
	if (half->state == NFC_HALF_MOVING)
		return NFC_AGAIN;
	p->wait = NFC_WAIT_NONE;
	return 0;
}

/* Move the part of the list after `link` to its front. */
static void rotate(struct nfc_transfer **first, struct nfc_transfer **link)
{
	struct nfc_transfer *begin = *first, **end = link;

	if (link == first || !*link)
		return;
	while (*end)
		end = &(*end)->next;
	*first = *link;
	*link = NULL;
	*end = begin;
}

/*
 * Move one piece for every active transfer of a host; true if there was any
 * work. If sparing, for one of them alone, a different one each time. So a host
 * with many transfers gets no more of the island than a host with one.
 */
bool nfc_transfer_pump(struct nfc_share *share, bool sparing)
{
	struct nfc_transfer **link = &share->active;
	bool busy = false;

	while (*link && !(sparing && busy)) {
		struct nfc_transfer *t = *link;
		struct nfc_transfer *next = t->next;

		if (!advance(t, &busy) || settle(t)) {
			link = &t->next;
			continue;
		}
		busy = true;
		*link = next;
	}
	if (sparing)
		rotate(&share->active, link);
	return busy;
}
