// SPDX-License-Identifier: MIT
/*
 * Put and get. A requester numbers its requests to each node, and repeats each
 * until it is answered. A target does no put twice: each request carries the
 * oldest number that is still under way, and the target remembers which puts
 * since then were done.
 */
#include "rma.h"

enum {
	BACKOFF = 6, /* times that the wait for an answer doubles */
};

static int plain_copy(void *to, const void *from, uint64_t size)
{
	__builtin_memcpy(to, from, size);
	return 0;
}

void nfc_rma_init(struct nfc_rma *r, struct nfc_node *node,
		  struct nfc_rma_peer *peers, uint64_t epoch, uint64_t retry_ns)
{
	r->node = node;
	r->peer = peers;
	r->epoch = epoch;
	r->retry_ns = retry_ns;
	r->copy = plain_copy;
}

static uint32_t min32(uint32_t a, uint32_t b)
{
	return a < b ? a : b;
}

/* ---- operations ---- */

static void end_op(struct nfc_rma *r, struct nfc_rma_op *op, int status)
{
	op->status = status;
	op->over = true;
	r->count[status ? NFC_RMA_FAILED : NFC_RMA_OPS]++;
	op->ended(op);
}

/* A number is under way no more. */
static void end_number(struct nfc_rma_peer *p, uint32_t number)
{
	p->open &= ~(1ull << (number - p->floor));
	p->pieces--;
	while (p->floor != p->next && !(p->open & 1)) {
		p->open >>= 1;
		p->floor++;
	}
}

static void end_piece(struct nfc_rma *r, struct nfc_rma_piece *piece)
{
	end_number(&r->peer[piece->op->to], piece->number);
	piece->op = NULL;
	r->used &= ~(1ull << (piece - r->piece));
}

/* All of its pieces have begun, or none more shall. */
static void unqueue(struct nfc_rma *r, const struct nfc_rma_op *op)
{
	struct nfc_rma_op *before = NULL;

	for (struct nfc_rma_op *o = r->first; o; before = o, o = o->next) {
		if (o != op)
			continue;
		if (before)
			before->next = o->next;
		else
			r->first = o->next;
		if (r->last == o)
			r->last = before;
		return;
	}
}

/* It has pieces that have not begun. */
static void enqueue(struct nfc_rma *r, struct nfc_rma_op *op)
{
	op->next = NULL;
	*(r->last ? &r->last->next : &r->first) = op;
	r->last = op;
}

void nfc_rma_cancel(struct nfc_rma *r, struct nfc_rma_op *op, int status)
{
	if (op->over)
		return;
	for (uint32_t i = 0; i < NFC_RMA_PIECES; i++)
		if (r->piece[i].op == op)
			end_piece(r, &r->piece[i]);
	unqueue(r, op);
	end_op(r, op, status);
}

void nfc_rma_cancel_all(struct nfc_rma *r, int status)
{
	while (r->first)
		nfc_rma_cancel(r, r->first, status);
	for (uint32_t i = 0; i < NFC_RMA_PIECES; i++)
		if (r->piece[i].op)
			nfc_rma_cancel(r, r->piece[i].op, status);
}

void nfc_rma_begin(struct nfc_rma *r, struct nfc_rma_op *op)
{
	r->count[NFC_RMA_BEGUN]++;
	op->begun = op->finished = 0;
	op->over = false;
	if (op->to >= nfc_torus_nodes(&r->node->view.torus)) {
		end_op(r, op, -NFC_EINVAL);
	} else if (op->offset > UINT64_MAX - op->size) {
		end_op(r, op, -NFC_ERANGE);
	} else {
		enqueue(r, op);
	}
}

/* ---- requests ---- */

static uint64_t patience(const struct nfc_rma *r, uint32_t tries)
{
	uint64_t t = 4 * r->rtt_ns;

	if (t < r->retry_ns)
		t = r->retry_ns;
	return t << (tries < BACKOFF ? tries : BACKOFF);
}

/*
 * Send a piece, for the first time or again; the result of nfc_node_send(), or -NFC_EDMA if
 * bytes of a put cannot be reached.
 */
static int send_piece(struct nfc_rma *r, struct nfc_rma_piece *piece)
{
	const struct nfc_rma_op *op = piece->op;
	struct nfc_packet p = {
		.to = nfc_torus_address(&r->node->view.torus, op->to),
		.size = NFC_RMA_HEAD + (op->put ? piece->size : 0),
		.sequence = piece->number,
		.epoch = (uint16_t)(piece - r->piece),
		.kind = op->put ? NFC_RMA_PUT : NFC_RMA_GET,
	};
	struct nfc_rma_head head = {
		.key = op->key,
		.offset = op->offset + piece->at,
		.epoch = r->epoch,
		.size = piece->size,
		.more = r->peer[op->to].floor,
	};
	int rc = 0;

	__builtin_memcpy(r->packet, &head, sizeof(head));
	if (op->put && piece->size) /* of no bytes, they may be nowhere */
		rc = -r->copy(r->packet + NFC_RMA_HEAD, op->data + piece->at,
			      piece->size);
	if (!rc)
		rc = nfc_node_send(r->node, &p, r->packet);
	if (!rc) {
		piece->sent_ns = r->now;
		piece->due_ns = r->now + patience(r, piece->tries);
	}
	return rc;
}

/* A piece may begin: there are less than so many to its node, and the target knows its number. */
static bool may_begin(const struct nfc_rma *r, const struct nfc_rma_op *op)
{
	const struct nfc_rma_peer *p = &r->peer[op->to];

	return p->pieces < NFC_RMA_PEER_PIECES &&
	       p->next - p->floor < NFC_RMA_NUMBERS;
}

/* Begin a piece of an operation, which may end it; false: the node takes no more now. */
static bool begin_piece(struct nfc_rma *r, struct nfc_rma_op *op)
{
	struct nfc_rma_peer *p = &r->peer[op->to];
	struct nfc_rma_piece *piece = &r->piece[nfc_lowest_bit(~r->used)];
	uint64_t left = op->size - op->begun;
	int rc;

	*piece = (struct nfc_rma_piece){
		.op = op,
		.at = op->begun,
		.size = left < NFC_RMA_PIECE ? (uint32_t)left : NFC_RMA_PIECE,
		.number = p->next,
	};
	rc = send_piece(r, piece);
	if (rc) {
		piece->op = NULL;
		if (rc != -NFC_EBUSY)
			nfc_rma_cancel(r, op, rc);
		return rc != -NFC_EBUSY;
	}
	r->used |= 1ull << (piece - r->piece);
	p->open |= 1ull << (p->next - p->floor);
	p->next++;
	p->pieces++;
	op->begun += piece->size;
	r->due = piece->due_ns < r->due ? piece->due_ns : r->due;
	unqueue(r, op);
	if (op->begun < op->size)
		enqueue(r, op); /* others first */
	return true;
}

/* Operations begin a piece each in turn, so that a small one does not wait for large ones. */
static void begin_ops(struct nfc_rma *r)
{
	struct nfc_rma_op *op = r->first;

	while (op && ~r->used) {
		struct nfc_rma_op *next = op->next;

		if (may_begin(r, op)) {
			if (!begin_piece(r, op))
				return;
			if (!next)
				next = r->last;
		}
		op = next;
	}
}

/* Repeat requests that had no answer in time. */
static void repeat(struct nfc_rma *r)
{
	r->due = UINT64_MAX;
	for (uint32_t i = 0; i < NFC_RMA_PIECES; i++) {
		struct nfc_rma_piece *piece = &r->piece[i];
		int rc = 0;

		if (piece->op && piece->due_ns <= r->now) {
			piece->tries++;
			rc = send_piece(r, piece);
			r->count[NFC_RMA_REPEATED] += !rc;
			if (rc == -NFC_EBUSY) /* a little later */
				piece->due_ns = r->now + r->retry_ns;
			else if (rc)
				nfc_rma_cancel(r, piece->op, rc);
		}
		if (piece->op && piece->due_ns < r->due)
			r->due = piece->due_ns;
	}
}

/* ---- received answers ---- */

/* The piece that an answer is for, unless it was answered before or given up. */
static struct nfc_rma_piece *
find_piece(struct nfc_rma *r, const struct nfc_packet *p, uint32_t from)
{
	struct nfc_rma_piece *piece = &r->piece[p->epoch % NFC_RMA_PIECES];

	if (!piece->op || piece->op->to != from || piece->number != p->sequence)
		return NULL;
	return piece;
}

/*
 * Copy bytes of a payload out, from the one after the head on; 0, or the error
 * of copy().
 */
static int copy_out(const struct nfc_fifo *f, uint32_t at, uint32_t skip,
		    uint8_t *out, uint32_t size,
		    int (*copy)(void *, const void *, uint64_t))
{
	int rc = 0;

	skip += NFC_RMA_HEAD;
	while (size && !rc) {
		uint32_t in = skip % NFC_WORD_SIZE, bytes;
		struct nfc_word *run;

		bytes = nfc_fifo_run(f, at + skip / NFC_WORD_SIZE,
				     nfc_words(in + size), &run) *
				NFC_WORD_SIZE -
			in;
		bytes = min32(bytes, size);
		rc = copy(out, (uint8_t *)run + in, bytes);
		out += bytes;
		skip += bytes;
		size -= bytes;
	}
	return rc;
}

static void answer_received(struct nfc_rma *r, const struct nfc_packet *p,
			    uint32_t from, const struct nfc_rma_head *head,
			    const struct nfc_fifo *f, uint32_t at)
{
	struct nfc_rma_piece *piece = find_piece(r, p, from);
	struct nfc_rma_op *op;
	uint32_t size, why;

	if (!piece || head->epoch != r->epoch)
		return;
	op = piece->op;
	size = piece->size;
	if (head->more >= NFC_STATUS_COUNT ||
	    (!head->more && head->size != (op->put ? 0 : size))) {
		r->count[NFC_RMA_MALFORMED]++;
		return;
	}
	why = head->more;
	if (!why && !op->put)
		why = (uint32_t)copy_out(f, at, 0, op->data + piece->at, size,
					 r->copy);
	if (why) {
		nfc_rma_cancel(r, op, -(int)why);
		begin_ops(r);
		return;
	}
	if (!piece->tries)
		r->rtt_ns += ((r->now - piece->sent_ns) >> 3) - (r->rtt_ns >> 3);
	end_piece(r, piece);
	r->count[NFC_RMA_BYTES] += size;
	op->finished += size;
	if (op->finished == op->size)
		end_op(r, op, 0);
	begin_ops(r); /* others waited for the place */
}

/* ---- received requests ---- */

/* Note the oldest number under way; false: this one ended, or is none there can be. */
static bool under_way(struct nfc_rma *r, struct nfc_rma_peer *p,
		      const struct nfc_rma_head *head, uint32_t number)
{
	int32_t ahead = (int32_t)(head->more - p->base);

	if (head->epoch < p->epoch) {
		r->count[NFC_RMA_STALE]++;
		return false;
	}
	if (head->epoch > p->epoch) {
		p->epoch = head->epoch;
		p->base = head->more;
		p->done = 0;
	} else if (ahead > 0) {
		p->done = ahead < NFC_RMA_NUMBERS ? p->done >> ahead : 0;
		p->base = head->more;
	}
	if ((int32_t)(number - p->base) < 0) {
		r->count[NFC_RMA_STALE]++;
		return false;
	}
	if (number - p->base >= NFC_RMA_NUMBERS) {
		r->count[NFC_RMA_MALFORMED]++;
		return false;
	}
	return true;
}

/*
 * A request of no bytes, whose place may be the end of the window: 0 or an
 * error.
 */
static int do_nothing(struct nfc_rma *r, const struct nfc_rma_head *head,
		      uint32_t access)
{
	uint64_t last = head->offset ? head->offset - 1 : 0;
	uint32_t n = 1;
	int why;

	nfc_rma_find(&r->table, head->key, last, access, &n, &why);
	return why;
}

/*
 * Do a put: 0, or why not. Nothing is written unless all of it is in the window; of what can
 * not be reached, though it is, a part may be.
 */
static int do_put(struct nfc_rma *r, const struct nfc_rma_head *head,
		  const struct nfc_fifo *f, uint32_t at)
{
	uint32_t done = 0;

	if (!head->size)
		return do_nothing(r, head, NFC_RMA_WRITE);
	while (done < head->size) {
		uint32_t n = head->size - done;
		int why;
		uint8_t *to = nfc_rma_find(&r->table, head->key,
					   head->offset + done, NFC_RMA_WRITE,
					   &n, &why);

		if (to)
			why = -copy_out(f, at, done, to, n, r->copy);
		if (why)
			return why;
		done += n;
	}
	return 0;
}

static int do_get(struct nfc_rma *r, const struct nfc_rma_head *head,
		  uint8_t *out)
{
	uint32_t done = 0;

	if (!head->size)
		return do_nothing(r, head, NFC_RMA_READ);
	while (done < head->size) {
		uint32_t n = head->size - done;
		int why;
		const uint8_t *from = nfc_rma_find(&r->table, head->key,
						   head->offset + done,
						   NFC_RMA_READ, &n, &why);

		if (from)
			why = -r->copy(out + done, from, n);
		if (why)
			return why;
		done += n;
	}
	return 0;
}

/* Answer a request; false: there is no room now. */
static bool send_answer(struct nfc_rma *r, const struct nfc_rma_answer *a)
{
	struct nfc_rma_head head = { .epoch = a->head.epoch };
	struct nfc_packet p = {
		.to = nfc_torus_address(&r->node->view.torus, a->to),
		.size = NFC_RMA_HEAD,
		.sequence = a->number,
		.epoch = a->piece,
		.kind = NFC_RMA_DONE,
	};
	int status = a->status;

	if (!nfc_fifo_room(&r->node->inject, NFC_PACKET_WORDS))
		return false;
	if (a->kind == NFC_RMA_GET && !status)
		status = do_get(r, &a->head, r->packet + NFC_RMA_HEAD);
	if (a->kind == NFC_RMA_GET && !status)
		head.size = a->head.size;
	head.more = (uint32_t)-status;
	p.size += head.size;
	__builtin_memcpy(r->packet, &head, sizeof(head));
	r->count[status ? NFC_RMA_REFUSED : NFC_RMA_SERVED]++;
	/*
	 * without a route the answer is lost: the request is repeated, or was
	 * given up
	 */
	return nfc_node_send(r->node, &p, r->packet) != -NFC_EBUSY;
}

static void send_answers(struct nfc_rma *r)
{
	while (r->answer_first != r->answer_last &&
	       send_answer(r, &r->answer[r->answer_first % NFC_RMA_ANSWERS]))
		r->answer_first++;
}

static void answer(struct nfc_rma *r, const struct nfc_rma_answer *a)
{
	if (r->answer_first == r->answer_last && send_answer(r, a))
		return;
	/* there is room: the caller checked before it did anything */
	r->answer[r->answer_last++ % NFC_RMA_ANSWERS] = *a;
}

static void request_received(struct nfc_rma *r, const struct nfc_packet *p,
			     uint32_t from, const struct nfc_rma_head *head,
			     const struct nfc_fifo *f, uint32_t at)
{
	struct nfc_rma_peer *peer = &r->peer[from];
	struct nfc_rma_answer a = { from,    p->sequence, p->epoch,
				    p->kind, 0,		  *head };
	uint64_t bit;

	if (head->size > NFC_RMA_PIECE ||
	    p->size != NFC_RMA_HEAD + (p->kind == NFC_RMA_PUT ? head->size : 0)) {
		r->count[NFC_RMA_MALFORMED]++;
		return;
	}
	if (r->answer_last - r->answer_first == NFC_RMA_ANSWERS) {
		r->count[NFC_RMA_CROWDED]++;
		return; /* it will be repeated */
	}
	if (!under_way(r, peer, head, p->sequence))
		return;
	bit = 1ull << (p->sequence - peer->base);
	if (p->kind == NFC_RMA_PUT && peer->done & bit) {
		r->count[NFC_RMA_DOUBLES]++;
	} else if (p->kind == NFC_RMA_PUT) {
		a.status = do_put(r, head, f, at);
		if (!a.status)
			peer->done |= bit;
	}
	answer(r, &a);
}

void nfc_rma_deliver(struct nfc_rma *r, const struct nfc_packet *p,
		     const struct nfc_fifo *f, uint32_t at)
{
	uint32_t from = nfc_torus_index(&r->node->view.torus, p->from);
	struct nfc_word word[NFC_RMA_HEAD / NFC_WORD_SIZE];
	struct nfc_rma_head head;

	if (p->size < NFC_RMA_HEAD || from == NFC_NODES_MAX) {
		r->count[NFC_RMA_MALFORMED]++;
		return;
	}
	nfc_fifo_read(f, at, word, NFC_RMA_HEAD / NFC_WORD_SIZE);
	__builtin_memcpy(&head, word, sizeof(head));
	if (p->kind == NFC_RMA_DONE && p->size == NFC_RMA_HEAD + head.size)
		answer_received(r, p, from, &head, f, at);
	else if (p->kind == NFC_RMA_PUT || p->kind == NFC_RMA_GET)
		request_received(r, p, from, &head, f, at);
	else
		r->count[NFC_RMA_MALFORMED]++;
}

void nfc_rma_step(struct nfc_rma *r, uint64_t now)
{
	r->now = now;
	send_answers(r);
	if (r->due <= now)
		repeat(r);
	begin_ops(r);
}

bool nfc_rma_stirred(const struct nfc_rma *r)
{
	const struct nfc_rma_op *op = r->first;

	if (!nfc_fifo_room(&r->node->inject, NFC_PACKET_WORDS))
		return false;
	if (r->answer_first != r->answer_last)
		return true;
	while (op && !may_begin(r, op))
		op = op->next;
	return op && ~r->used;
}
