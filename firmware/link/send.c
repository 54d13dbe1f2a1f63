// SPDX-License-Identifier: MIT
/*
 * The sender: a packet stays in the buffer until it is acked, and enters it
 * only when the other end has room for all of it. Credits are sent in band.
 */
#include "frame.h"

enum {
	TRIES = 16, /* retransmissions without progress before the link is lost */
	RECORDS = 8, /* records in one turn */
};

static uint32_t unacked(const struct nfc_sender *tx)
{
	return tx->buffer.last - tx->buffer.first;
}

void nfc_sender_reset(struct nfc_link_end *l)
{
	struct nfc_sender *tx = &l->tx;

	l->count[NFC_LINK_DROPPED] += unacked(tx);
	while (unacked(tx))
		nfc_fifo_pop(&tx->buffer);
	/* sequence numbers are indices of the buffer, and begin with 0 */
	tx->buffer.first = tx->buffer.last = tx->next = tx->furthest = 0;
	tx->step = tx->tries = tx->asks = 0;
	tx->asking = false;
	tx->acked = 0;
	tx->rtt_ns = tx->rtt_min_ns = 0;
	tx->progress_ns = tx->rated_ns = tx->drained_ns = l->now;
	tx->window = l->config.window ? l->config.window : NFC_LINK_DEPTH_MIN;
	for (uint32_t vc = 0; vc < NFC_VCS; vc++) {
		/* nothing is known to be free until the first credit */
		tx->sent[vc] = 0;
		tx->consumed[vc] = 0 - tx->depth;
		tx->counted[vc] = tx->held[vc] = tx->depth;
	}
}

bool nfc_link_admits(const struct nfc_link_end *l, uint32_t vc, uint32_t words)
{
	const struct nfc_sender *tx = &l->tx;
	uint32_t cost = nfc_packet_cost(words);

	if (l->state != NFC_LINK_UP || !nfc_fifo_room(&tx->buffer, words) ||
	    unacked(tx) >= NFC_LINK_PACKETS_MAX)
		return false;
	if (l->config.flow ==
	    NFC_FLOW_CLASSIC) /* T_RED: room for one packet is left */
		return tx->counted[vc] + cost <= tx->depth - NFC_PACKET_WORDS;
	return tx->sent[vc] - tx->consumed[vc] + cost <= tx->depth &&
	       tx->buffer.end - tx->buffer.begin + cost <= tx->window;
}

void nfc_link_queue(struct nfc_link_end *l, uint32_t vc, struct nfc_word header,
		    uint32_t words, struct nfc_sum sum)
{
	struct nfc_sender *tx = &l->tx;

	if (!unacked(tx))
		tx->progress_ns = l->now;
	tx->sent[vc] += nfc_packet_cost(words);
	tx->counted[vc] += nfc_packet_cost(words);
	nfc_fifo_push(&tx->buffer, header, words, vc, sum);
}

/* ---- reports of the other end ---- */

static void measure(struct nfc_link_end *l, const struct nfc_held *h)
{
	struct nfc_sender *tx = &l->tx;
	uint64_t rtt = l->now - h->sent_ns;

	if (h->repeated)
		return;
	if (!rtt)
		rtt = 1;
	tx->rtt_ns = tx->rtt_ns ? tx->rtt_ns - tx->rtt_ns / 8 + rtt / 8 : rtt;
	if (!tx->rtt_min_ns || rtt < tx->rtt_min_ns)
		tx->rtt_min_ns = rtt;
}

/*
 * The window is a quarter more than what was acked in the shortest round trip:
 * while the link carries more, it grows, and what would only wait is not sent.
 */
static void size_window(struct nfc_link_end *l)
{
	struct nfc_sender *tx = &l->tx;
	uint64_t elapsed = l->now - tx->rated_ns, words;

	if (l->config.window || !tx->rtt_min_ns || elapsed < 2 * tx->rtt_ns)
		return;
	words = (uint64_t)tx->acked * tx->rtt_min_ns / elapsed;
	words += words / 4 + 2 * NFC_PACKET_WORDS;
	if (words > tx->buffer.size)
		words = tx->buffer.size;
	tx->window = (uint32_t)words;
	tx->rtt_min_ns += tx->rtt_min_ns / 16 +
			  1; /* the way may have become longer */
	tx->acked = 0;
	tx->rated_ns = l->now;
}

static void ack(struct nfc_link_end *l, uint32_t packets)
{
	struct nfc_sender *tx = &l->tx;

	for (; packets; packets--) {
		struct nfc_held *h = nfc_fifo_at(&tx->buffer, tx->buffer.first);

		if (tx->step && tx->next == tx->buffer.first)
			break; /* it is being repeated just now: ack it with the next credit */
		measure(l, h);
		tx->acked += nfc_packet_cost(h->words);
		nfc_fifo_pop(&tx->buffer);
		tx->progress_ns = l->now;
		tx->tries = tx->asks = 0;
	}
	if ((int32_t)(tx->next - tx->buffer.first) < 0)
		tx->next = tx->buffer.first;
	nfc_fifo_rewind(&tx->buffer);
	size_window(l);
}

bool nfc_sender_credit(struct nfc_link_end *l, uint64_t lo)
{
	struct nfc_sender *tx = &l->tx;
	uint32_t packets = (lo >> 48) - tx->buffer.first, more[NFC_VCS];

	packets &= NFC_SEQUENCE_MASK;
	if (packets > tx->furthest - tx->buffer.first)
		return false;
	for (uint32_t vc = 0; vc < NFC_VCS; vc++) {
		more[vc] = lo >> (16 * vc) & 0xffff;
		if (l->config.flow == NFC_FLOW_CLASSIC) {
			if (more[vc] > tx->depth)
				return false;
			continue;
		}
		more[vc] = (more[vc] - tx->consumed[vc]) & 0xffff;
		if (more[vc] > tx->sent[vc] - tx->consumed[vc])
			return false;
	}
	for (uint32_t vc = 0; vc < NFC_VCS; vc++) {
		if (l->config.flow == NFC_FLOW_CLASSIC)
			tx->held[vc] = more[vc];
		else
			tx->consumed[vc] += more[vc];
	}
	ack(l, packets);
	return true;
}

void nfc_sender_go_back(struct nfc_link_end *l)
{
	struct nfc_sender *tx = &l->tx;

	if (tx->step && tx->next == tx->buffer.first)
		return; /* it is on its way again */
	tx->next = tx->buffer.first;
	tx->step = 0;
	tx->round++;
	tx->asking = false; /* packets before that ASK are sent again */
}

/*
 * A packet that was sent before an ASK and is not acked by the credit before
 * its answer is lost: the last packet, which no other follows, or a NAK.
 */
void nfc_sender_answered(struct nfc_link_end *l, uint16_t ask)
{
	struct nfc_sender *tx = &l->tx;

	if (!tx->asking || ask != tx->ask)
		return;
	tx->asking = false;
	if ((int32_t)(tx->ask_end - tx->buffer.first) <= 0)
		return;
	l->count[NFC_LINK_TIMEOUTS]++;
	tx->tries++;
	tx->progress_ns = l->now;
	nfc_sender_go_back(l);
}

/* ---- time ---- */

static uint64_t timeout(const struct nfc_link_end *l)
{
	const struct nfc_sender *tx = &l->tx;
	uint64_t t = 4 * tx->rtt_ns;

	if (t < l->config.retry_ns)
		t = l->config.retry_ns;
	return t << (tx->asks < 5 ? tx->asks : 5);
}

/*
 * Classic: all that was sent is acked, W has passed since its last word was
 * sent, and the FIFO drained to T_YEL.
 */
static void resume(struct nfc_link_end *l)
{
	struct nfc_sender *tx = &l->tx;

	if (unacked(tx) || l->now - tx->drained_ns < l->config.wait_ns)
		return;
	for (uint32_t vc = 0; vc < NFC_VCS; vc++)
		if (tx->held[vc] <= l->config.yellow)
			tx->counted[vc] = tx->held[vc];
}

bool nfc_sender_time(struct nfc_link_end *l)
{
	struct nfc_sender *tx = &l->tx;

	if (l->config.flow == NFC_FLOW_CLASSIC)
		resume(l);
	if (unacked(tx) && l->now - tx->progress_ns >= timeout(l)) {
		/*
		 * The last packet may be lost, or its ack, and no NAK reports
		 * it; or the other end waits for a processor, and will
		 * take all packets then.
		 */
		l->pending.ask = true;
		tx->asks++;
		tx->progress_ns = l->now;
	}
	return tx->tries <= TRIES;
}

/*
 * When a link shows itself by itself: its node has all links do so at the same
 * time, a little earlier.
 */
static uint64_t heartbeat(const struct nfc_link_end *l)
{
	return l->config.beat_ns + l->config.beat_ns / 4;
}

uint64_t nfc_sender_due(const struct nfc_link_end *l)
{
	const struct nfc_sender *tx = &l->tx;
	uint64_t due = l->credit_ns + heartbeat(l);
	uint64_t again = tx->progress_ns + timeout(l);
	uint64_t drained = tx->drained_ns + l->config.wait_ns;

	if (unacked(tx) && again < due)
		due = again;
	if (l->pending.credit && l->credit_ns + l->config.credit_ns < due)
		due = l->credit_ns + l->config.credit_ns;
	if (l->config.flow == NFC_FLOW_CLASSIC && l->now < drained &&
	    drained < due)
		due = drained;
	return due;
}

/* ---- the wire ---- */

static void stage(struct nfc_link_end *l, struct nfc_word w)
{
	l->stage[l->staged++] = w;
	l->since++;
}

static void stage_control(struct nfc_link_end *l, struct nfc_word w)
{
	stage(l, NFC_WORD_MAGIC);
	stage(l, w);
}

static void stage_data(struct nfc_link_end *l, struct nfc_word w)
{
	if (nfc_is_magic(w))
		stage_control(l, nfc_control_word(l, NFC_WORD_LITERAL, 0, 0));
	else
		stage(l, w);
}

static void stage_credit(struct nfc_link_end *l)
{
	struct nfc_receiver *rx = &l->rx;
	uint64_t fields = (uint64_t)(rx->expected & NFC_SEQUENCE_MASK) << 48;

	for (uint32_t vc = 0; vc < NFC_VCS; vc++) {
		const struct nfc_fifo *f = &rx->fifo[vc];
		uint32_t words = l->config.flow == NFC_FLOW_CLASSIC ?
					 f->end - f->begin :
					 rx->consumed[vc];

		fields |= (uint64_t)(words & 0xffff) << (16 * vc);
	}
	stage_control(l, nfc_control_word(l,
					  l->pending.nak ? NFC_WORD_NAK :
							   NFC_WORD_CREDIT,
					  fields, l->diagnostic));
	l->count[l->pending.nak ? NFC_LINK_NAKS : NFC_LINK_CREDITS]++;
	l->pending.nak = l->pending.credit = false;
	l->rx.unreported = 0;
	l->since = 0;
	l->credit_ns = l->now;
}

static bool sending(const struct nfc_sender *tx)
{
	return tx->next != tx->buffer.last;
}

/*
 * Credits are sent within packets only if their period requires it: a packet
 * that arrives in one piece is checked without a test of each of its words.
 */
static bool credits_within(const struct nfc_link_end *l)
{
	return l->config.period < NFC_PACKET_WORDS;
}

/*
 * Does the other end wait for a credit? Not within a packet that is sent in one
 * piece.
 */
static bool credit_due(const struct nfc_link_end *l)
{
	if (l->pending.answer && l->pending.credit)
		return true;
	if (l->pending.nak || l->now - l->credit_ns >= heartbeat(l))
		return true;
	if (sending(&l->tx))
		return l->since >= l->config.period &&
		       (l->pending.credit || credits_within(l));
	return l->pending.credit &&
	       (l->rx.unreported >= l->config.depth / 4 ||
		l->now - l->credit_ns >= l->config.credit_ns);
}

static uint64_t start_fields(const struct nfc_sender *tx,
			     const struct nfc_held *h)
{
	return h->words | (uint64_t)h->vc << 16 | (uint64_t)tx->round << 20 |
	       (uint64_t)(tx->next & NFC_SEQUENCE_MASK) << 48;
}

/*
 * May a payload stay in place? Credits within it would require to send it by
 * words.
 */
static bool shares(const struct nfc_link_end *l, const struct nfc_held *h)
{
	const struct nfc_link_port *port = l->port;

	return h->words >= NFC_LINK_SHARED && port->shares &&
	       !credits_within(l) && port->shares(port->self, l->index);
}

/* Begin to send the next packet. */
static void begin_packet(struct nfc_link_end *l, struct nfc_held *h)
{
	struct nfc_sender *tx = &l->tx;

	if (tx->next != tx->furthest) {
		h->repeated = true;
		l->count[NFC_LINK_REPEATED]++;
		return;
	}
	tx->furthest++;
	h->sent_ns = l->now;
	l->count[NFC_LINK_SENT]++;
	l->count[NFC_LINK_BYTES_SENT] += nfc_packet_read(h->header).size;
}

static void stage_start(struct nfc_link_end *l, struct nfc_held *h,
			uint64_t fields)
{
	stage_control(l, nfc_control_word(l, NFC_WORD_START, fields, 0));
	begin_packet(l, h);
}

static void end_packet(struct nfc_link_end *l)
{
	struct nfc_sender *tx = &l->tx;

	tx->step = 0;
	tx->next++;
	tx->drained_ns = l->now;
}

/* Send the end of a packet whose START had these fields. */
static void stage_footer(struct nfc_link_end *l, const struct nfc_held *h,
			 uint64_t fields)
{
	uint64_t start = (uint64_t)NFC_WORD_START << 60 | fields;

	stage_data(l, nfc_footer(l, start, h->header, h->sum.crc));
	end_packet(l);
}

/* Words of the payload, until one is Magic, a credit is due or there is no room. */
static uint32_t stage_payload(struct nfc_link_end *l, const struct nfc_held *h,
			      uint32_t done, uint32_t limit)
{
	uint32_t most = h->words - done, n;
	struct nfc_word *run;

	if (most > limit - l->staged)
		most = limit - l->staged;
	if (credits_within(l) && l->since + most > l->config.period)
		most = l->config.period - l->since;
	most = nfc_fifo_run(&l->tx.buffer, h->at + done, most, &run);
	n = h->sum.magic ? nfc_until_magic(run, most) : most;
	__builtin_memcpy(&l->stage[l->staged], run, n * sizeof(*run));
	l->staged += n;
	l->since += n;
	if (n)
		return n;
	stage_data(l, *run);
	return 1;
}

/* Of START and TRAIN: where the payload of a packet begins in the buffer. */
static uint64_t place_field(const struct nfc_sender *tx,
			    const struct nfc_held *h)
{
	uint64_t at = h->at & (tx->buffer.size - 1);

	return (at + 1) << NFC_START_SHARED_SHIFT;
}

/* Count a shared payload, which stays in place, as sent. */
static void share_payload(struct nfc_link_end *l, const struct nfc_held *h)
{
	l->since += h->words;
	l->count[NFC_LINK_WORDS_SENT] += h->words;
}

static void share_packet(struct nfc_link_end *l, struct nfc_held *h)
{
	uint64_t fields = start_fields(&l->tx, h) | place_field(&l->tx, h) |
			  (uint64_t)h->sum.magic << NFC_START_MAGIC_SHIFT;

	stage_start(l, h, fields);
	stage_data(l, h->header);
	share_payload(l, h);
	stage_footer(l, h, fields);
}

/* How many packets the frame of the next one may name that is shared. */
static uint32_t train_length(const struct nfc_link_end *l,
			     const struct nfc_held *first, uint32_t limit)
{
	const struct nfc_sender *tx = &l->tx;
	uint32_t most = (limit - l->staged - NFC_FRAME_WORDS) /
			NFC_TRAIN_ENTRY_WORDS;
	uint32_t n = 1;

	if (most > NFC_LINK_TRAIN)
		most = NFC_LINK_TRAIN;
	if (most > tx->buffer.last - tx->next)
		most = tx->buffer.last - tx->next;
	for (; n < most; n++) {
		const struct nfc_held *h = nfc_fifo_at(&tx->buffer,
						       tx->next + n);

		if (h->vc != first->vc || h->words < NFC_LINK_SHARED)
			break;
	}
	return n;
}

/*
 * Send the entries of a train, at a place of the port's; with a Magic they are
 * sent as data.
 */
static void stage_named(struct nfc_link_end *l, const struct nfc_word *named,
			uint32_t n)
{
	struct nfc_word word[2 * NFC_LINK_TRAIN];

	if (nfc_until_magic(named, n) == n) {
		l->staged += n;
		l->since += n;
		return;
	}
	__builtin_memcpy(word, named, n * sizeof(*word));
	for (uint32_t i = 0; i < n; i++)
		stage_data(l, word[i]);
}

/* Send so many packets whose payloads stay in place, in one frame. */
static void share_train(struct nfc_link_end *l, const struct nfc_held *first,
			uint32_t packets)
{
	struct nfc_sender *tx = &l->tx;
	uint64_t fields = (start_fields(tx, first) & ~0xffffull) | packets |
			  place_field(tx, first);
	uint64_t start = (uint64_t)NFC_WORD_TRAIN << 60 | fields;
	struct nfc_word *named, footer;

	stage_control(l, nfc_control_word(l, NFC_WORD_TRAIN, fields, 0));
	named = &l->stage[l->staged];
	for (uint32_t i = 0; i < packets; i++) {
		struct nfc_held *h = nfc_fifo_at(&tx->buffer, tx->next);

		begin_packet(l, h);
		named[2 * i].lo = h->header.lo;
		named[2 * i].hi = h->header.hi;
		named[2 * i + 1].lo = nfc_train_entry(h);
		named[2 * i + 1].hi = 0;
		share_payload(l, h);
		end_packet(l);
	}
	footer = nfc_train_footer(l, start, named, 2 * packets);
	stage_named(l, named, 2 * packets);
	stage_data(l, footer);
}

/* The next words of the packet under way. */
static void stage_packet(struct nfc_link_end *l, uint32_t limit)
{
	struct nfc_sender *tx = &l->tx;
	struct nfc_held *h = nfc_fifo_at(&tx->buffer, tx->next);

	if (!tx->step && limit - l->staged >= NFC_SHARED_WORDS && shares(l, h)) {
		uint32_t packets = train_length(l, h, limit);

		if (packets > 1)
			share_train(l, h, packets);
		else
			share_packet(l, h);
	} else if (!tx->step) {
		stage_start(l, h, start_fields(tx, h));
		tx->step = 1;
	} else if (tx->step == 1) {
		stage_data(l, h->header);
		tx->step = 2;
	} else if (tx->step < 2u + h->words) {
		tx->step += stage_payload(l, h, tx->step - 2, limit);
	} else {
		stage_footer(l, h, start_fields(tx, h));
	}
}

/*
 * Send the question whether all packets arrived, or the answer to the other
 * end's.
 */
static void stage_ask(struct nfc_link_end *l)
{
	struct nfc_sender *tx = &l->tx;

	if (l->pending.answer) {
		l->pending.answer = false;
		stage_control(l, nfc_control_word(l, NFC_WORD_ANSWER,
						  l->pending.answer_ask, 0));
		return;
	}
	l->pending.ask = false;
	tx->asking = true;
	tx->ask++;
	tx->ask_end = tx->next;
	stage_control(l, nfc_control_word(l, NFC_WORD_ASK, tx->ask, 0));
}

/* A record of the node's, if it has one. */
static bool stage_record(struct nfc_link_end *l)
{
	uint32_t node, version, diagnostic;

	if (!l->owner || !l->owner->next(l->owner->self, l->index, &node,
					 &version, &diagnostic))
		return false;
	stage_control(l, nfc_control_word(l, NFC_WORD_RECORD,
					  version | (uint64_t)node << 32,
					  diagnostic));
	return true;
}

/* Is the next packet to wait for a place that holds all of it? */
static bool to_be_parted(const struct nfc_link_end *l, uint32_t limit)
{
	const struct nfc_sender *tx = &l->tx;

	return l->staged && sending(tx) && !tx->step &&
	       l->staged + nfc_fifo_at(&tx->buffer, tx->next)->words +
			       NFC_FRAME_WORDS >
		       limit;
}

/* Stage something; false if there is nothing. */
static bool stage_next(struct nfc_link_end *l, uint32_t limit, uint32_t *records)
{
	struct nfc_word w;

	if (l->test_step) {
		l->test_step--;
		stage(l, nfc_test_next(&l->test_prbs));
	} else if (nfc_align_next(l, &w)) {
		stage_control(l, w);
	} else if (l->state != NFC_LINK_UP) {
		return false;
	} else if (l->tx.step && !credits_within(l)) {
		stage_packet(l, limit);
	} else if (credit_due(l)) {
		stage_credit(l);
	} else if (l->pending.answer || l->pending.ask) {
		stage_ask(l);
	} else if (*records && stage_record(l)) {
		--*records;
	} else if (nfc_test_due(l)) {
		stage_control(l, nfc_test_begin(l, NFC_LINK_TEST_WORDS));
	} else if (sending(&l->tx)) {
		stage_packet(l, limit);
	} else {
		return false;
	}
	return true;
}

void nfc_send_words(struct nfc_link_end *l)
{
	const struct nfc_link_port *port = l->port;
	uint32_t records = RECORDS;
	bool more = true;

	while (more) {
		uint32_t limit;

		l->stage = port->reserve(port->self, l->index, &limit);
		l->full = limit < 2;
		/* two words: a control word is not parted from its Magic */
		while (l->staged + 2 <= limit && !to_be_parted(l, limit) &&
		       (more = stage_next(l, limit, &records)))
			;
		if (!l->staged)
			return;
		port->commit(port->self, l->index, l->staged);
		l->count[NFC_LINK_WORDS_SENT] += l->staged;
		l->staged = 0;
	}
}
