// SPDX-License-Identifier: MIT
/*
 * The receiver: one word after the other, whatever they are. A packet is
 * accepted when all of it arrived, in order, unchanged, and fits. Otherwise the
 * receiver asks the sender once to resend from it.
 */
#include "frame.h"

void nfc_receiver_reset(struct nfc_receiver *rx)
{
	rx->expected = 0;
	rx->asked = rx->magic = rx->store = false;
	rx->state = NFC_RECEIVE_IDLE;
	for (uint32_t vc = 0; vc < NFC_VCS; vc++)
		rx->consumed[vc] = rx->fifo[vc].begin - rx->fifo[vc].end;
}

static uint32_t sequence(uint64_t start)
{
	return start >> 48 & NFC_SEQUENCE_MASK;
}

/* How far a packet is ahead of the one that is expected; 0: it is that. */
static uint32_t ahead(const struct nfc_receiver *rx, uint64_t start)
{
	return (sequence(start) - rx->expected) & NFC_SEQUENCE_MASK;
}

/*
 * Ask for the expected packet, once in each round: packets that were under way
 * when the sender restarted are of the round before, and those it sent then are
 * not.
 */
static void ask(struct nfc_link_end *l, uint64_t start)
{
	struct nfc_receiver *rx = &l->rx;
	uint8_t round = (uint8_t)(start >> 20);

	if (rx->asked && rx->round == round)
		return;
	rx->asked = true;
	rx->round = round;
	l->pending.nak = true;
}

/* The packet under way is no good. */
static void bad_packet(struct nfc_link_end *l)
{
	l->count[NFC_LINK_BAD_PACKETS]++;
	l->rx.state = NFC_RECEIVE_IDLE;
	ask(l, l->rx.start);
}

/*
 * Find the payload, if the other end shares it; false: there is no such place.
 */
static bool find_shared(struct nfc_link_end *l, uint64_t start)
{
	const struct nfc_link_port *port = l->port;
	uint32_t shared = start >> NFC_START_SHARED_SHIFT &
			  NFC_START_SHARED_MASK;
	struct nfc_receiver *rx = &l->rx;

	rx->lies = (struct nfc_fifo){ 0 };
	if (!shared)
		return true;
	if (port->shared)
		rx->lies.word = (struct nfc_word *)port->shared(
			port->self, l->index, &rx->lies.size);
	rx->lies_at = shared - 1;
	return rx->lies.word && rx->lies_at < rx->lies.size;
}

/*
 * A packet or a train begins, of so many words on the wire; false: it is
 * invalid.
 */
static bool begins(struct nfc_link_end *l, uint64_t start, uint32_t words)
{
	struct nfc_receiver *rx = &l->rx;
	uint32_t vc = start >> 16 & 0xf;

	if (rx->state != NFC_RECEIVE_IDLE && rx->state != NFC_RECEIVE_TEST)
		bad_packet(l); /* the one before was cut short */
	if (l->state != NFC_LINK_UP)
		return false;
	if (words > NFC_PACKET_WORDS || vc >= NFC_VCS || !find_shared(l, start)) {
		l->count[NFC_LINK_MALFORMED]++;
		return false;
	}
	rx->start = start;
	rx->vc = (uint8_t)vc;
	rx->words = (uint16_t)words;
	rx->got = 0;
	rx->sum = (struct nfc_sum){ 0 };
	return true;
}

static void start_received(struct nfc_link_end *l, struct nfc_word w)
{
	struct nfc_receiver *rx = &l->rx;
	uint32_t words = w.lo & 0xfff;

	if (!begins(l, w.lo, words))
		return;
	rx->state = NFC_RECEIVE_HEADER;
	rx->store = !ahead(rx, w.lo) && nfc_fifo_room(&rx->fifo[rx->vc], words);
	if (ahead(rx, w.lo) && ahead(rx, w.lo) <= NFC_SEQUENCE_MASK / 2)
		ask(l, w.lo); /* one before it was lost */
}

static void consumed(struct nfc_link_end *l, uint32_t words)
{
	l->rx.consumed[l->rx.vc] += nfc_packet_cost(words);
	l->rx.unreported += nfc_packet_cost(words);
}

/* Let the owner use an accepted packet in place; false: it has to be stored. */
static bool use_in_place(struct nfc_link_end *l)
{
	struct nfc_receiver *rx = &l->rx;
	const struct nfc_fifo *f = &rx->fifo[rx->vc];
	struct nfc_held h = { .header = rx->header,
			      .at = rx->lies_at,
			      .sum = rx->sum,
			      .words = rx->words,
			      .vc = rx->vc };

	if (!rx->lies.word)
		return false;
	if (l->owner && f->first == f->last &&
	    l->owner->take(l->owner->self, l->index, &h, &rx->lies)) {
		consumed(l, h.words);
		return true;
	}
	nfc_fifo_copy(&rx->fifo[rx->vc], &rx->lies, h.at, h.words);
	return false;
}

/* The whole of the expected packet is there, and its checksum is right. */
static void accept(struct nfc_link_end *l)
{
	struct nfc_receiver *rx = &l->rx;
	struct nfc_packet p = nfc_packet_read(rx->header);

	if (!rx->store) { /* the sender's fault: what it sent it had no credit for */
		l->count[NFC_LINK_OVERRUNS]++;
		return;
	}
	rx->expected++;
	rx->asked = false;
	l->pending.credit = true;
	if (p.size > NFC_PACKET_SIZE || nfc_words(p.size) != rx->words) {
		l->count[NFC_LINK_MALFORMED]++; /* no repetition will mend that */
		consumed(l, rx->words);
		return;
	}
	if (!use_in_place(l)) {
		nfc_fifo_push(&rx->fifo[rx->vc], rx->header, rx->words, rx->vc,
			      rx->sum);
		rx->stored++;
	}
	l->count[NFC_LINK_RECEIVED]++;
	l->count[NFC_LINK_BYTES_RECEIVED] += p.size;
}

static void footer_received(struct nfc_link_end *l, struct nfc_word w)
{
	struct nfc_receiver *rx = &l->rx;

	if (!ahead(rx, rx->start)) {
		struct nfc_word want = nfc_footer(l, rx->start, rx->header,
						  rx->sum.crc);

		if (rx->store && (w.lo != want.lo || w.hi != want.hi)) {
			bad_packet(l);
			return;
		}
		accept(l);
	} else if (ahead(rx, rx->start) > NFC_SEQUENCE_MASK / 2) {
		l->pending.credit = true; /* it is a repetition: ack it again */
	}
	rx->state = NFC_RECEIVE_IDLE;
}

/* ---- trains: packets whose payloads are shared ---- */

static void train_received(struct nfc_link_end *l, struct nfc_word w)
{
	uint32_t packets = w.lo & NFC_TRAIN_MASK;

	if (!begins(l, w.lo, 2 * packets))
		return;
	if (!packets || packets > NFC_LINK_TRAIN || !l->rx.lies.word) {
		l->count[NFC_LINK_MALFORMED]++;
		return;
	}
	l->rx.state = NFC_RECEIVE_TRAIN;
}

static void train_words_taken(struct nfc_receiver *rx,
			      const struct nfc_word *word, uint32_t n)
{
	__builtin_memcpy(&rx->train[rx->got], word, n * sizeof(*word));
	rx->got += (uint16_t)n;
	if (rx->got == rx->words)
		rx->state = NFC_RECEIVE_TRAIN_FOOTER;
}

/* Words that name packets of a train, up to the next Magic; returns how many. */
static uint32_t train_words(struct nfc_receiver *rx,
			    const struct nfc_word *word, uint32_t n)
{
	uint32_t most = rx->words - rx->got;

	n = nfc_until_magic(word, n < most ? n : most);
	train_words_taken(rx, word, n);
	return n;
}

/* The expected packet, which was named; false: what follows it does not count. */
static bool named_packet_received(struct nfc_link_end *l)
{
	struct nfc_receiver *rx = &l->rx;

	if (rx->words > NFC_PACKET_WORDS) {
		l->count[NFC_LINK_MALFORMED]++;
		return false;
	}
	rx->store = nfc_fifo_room(&rx->fifo[rx->vc], rx->words);
	l->count[NFC_LINK_WORDS_TAKEN] += rx->words;
	if (rx->store && nfc_payload_crc(l->port, &rx->lies, rx->lies_at,
					 rx->words) != rx->sum.crc) {
		bad_packet(l);
		return false;
	}
	accept(l);
	return true;
}

/*
 * All entries of a train are right: accept the packets from the expected one
 * on.
 */
static void take_train(struct nfc_link_end *l, uint32_t packets)
{
	struct nfc_receiver *rx = &l->rx;
	uint32_t before = (rx->expected - sequence(rx->start)) &
			  NFC_SEQUENCE_MASK;

	if (before > NFC_SEQUENCE_MASK / 2) {
		ask(l, rx->start); /* one before them was lost */
		return;
	}
	l->pending.credit = true; /* some may be repetitions: ack them again */
	for (uint32_t i = 0; i < packets; i++) {
		uint64_t entry = rx->train[2 * i + 1].lo;

		rx->header = rx->train[2 * i];
		rx->words = entry >> NFC_TRAIN_WORDS_SHIFT & 0xfff;
		rx->sum = (struct nfc_sum){
			.crc = (uint32_t)entry,
			.magic = entry >> NFC_TRAIN_MAGIC_SHIFT & 1,
		};
		if (i >= before && !named_packet_received(l))
			return;
		rx->lies_at += rx->words;
	}
}

static void train_footer_received(struct nfc_link_end *l, struct nfc_word w)
{
	struct nfc_receiver *rx = &l->rx;
	uint32_t words = rx->words;
	struct nfc_word want = nfc_train_footer(l, rx->start, rx->train, words);

	rx->state = NFC_RECEIVE_IDLE;
	if (w.lo == want.lo && w.hi == want.hi)
		take_train(l, words / 2);
	else
		bad_packet(l);
}

/* ---- payloads ---- */

static void payload_taken(struct nfc_receiver *rx, uint32_t n)
{
	rx->got += (uint16_t)n;
	if (rx->got == rx->words)
		rx->state = NFC_RECEIVE_FOOTER;
}

static void payload_received(struct nfc_link_end *l,
			     const struct nfc_word *word, uint32_t n)
{
	struct nfc_receiver *rx = &l->rx;

	if (rx->store)
		nfc_payload_write(l->port, &rx->fifo[rx->vc], rx->got, word, n,
				  &rx->sum);
	payload_taken(rx, n);
}

/* A payload that stayed in the other end's buffer, which keeps it until it is acked. */
static void shared_payload_received(struct nfc_link_end *l)
{
	struct nfc_receiver *rx = &l->rx;

	if (rx->store)
		rx->sum = (struct nfc_sum){
			.crc = nfc_payload_crc(l->port, &rx->lies, rx->lies_at,
					       rx->words),
			.magic = rx->start >> NFC_START_MAGIC_SHIFT & 1,
		};
	l->count[NFC_LINK_WORDS_TAKEN] += rx->words;
	payload_taken(rx, rx->words);
}

static void data_received(struct nfc_link_end *l, struct nfc_word w)
{
	struct nfc_receiver *rx = &l->rx;

	switch (rx->state) {
	case NFC_RECEIVE_IDLE: /* a word of a packet whose begin was lost */
		break;
	case NFC_RECEIVE_HEADER:
		rx->header = w;
		rx->state = rx->words ? NFC_RECEIVE_PAYLOAD : NFC_RECEIVE_FOOTER;
		if (rx->lies.word)
			shared_payload_received(l);
		break;
	case NFC_RECEIVE_PAYLOAD:
		payload_received(l, &w, 1);
		break;
	case NFC_RECEIVE_FOOTER:
		footer_received(l, w);
		break;
	case NFC_RECEIVE_TEST:
		nfc_test_word(l, w);
		break;
	case NFC_RECEIVE_TRAIN:
		train_words_taken(rx, &w, 1);
		break;
	case NFC_RECEIVE_TRAIN_FOOTER:
		train_footer_received(l, w);
		break;
	}
}

static void credit_received(struct nfc_link_end *l, struct nfc_word w)
{
	if (l->state != NFC_LINK_UP)
		return;
	l->reported = (uint32_t)w.hi;
	if (!nfc_sender_credit(l, w.lo))
		l->count[NFC_LINK_BAD_CREDITS]++;
	else if (nfc_kind(w.lo) == NFC_WORD_NAK)
		nfc_sender_go_back(l);
}

static void literal_received(struct nfc_link_end *l, struct nfc_word w)
{
	(void)w;
	data_received(l, NFC_WORD_MAGIC);
}

static void record_word_received(struct nfc_link_end *l, struct nfc_word w)
{
	if (l->state == NFC_LINK_UP && l->owner)
		l->owner->on_record(l->owner->self, l->index,
				    (uint32_t)(w.lo >> 32 & 0xffffff),
				    (uint32_t)w.lo, (uint32_t)w.hi);
}

static void link_ask_received(struct nfc_link_end *l, struct nfc_word w)
{
	if (l->state != NFC_LINK_UP)
		return;
	l->pending.credit = l->pending.answer = true;
	l->pending.answer_ask = (uint16_t)w.lo;
}

static void link_answer_received(struct nfc_link_end *l, struct nfc_word w)
{
	if (l->state == NFC_LINK_UP)
		nfc_sender_answered(l, (uint16_t)w.lo);
}

static void (*const on_word[NFC_WORD_KINDS])(struct nfc_link_end *l,
					     struct nfc_word w) = {
	[NFC_WORD_START] = start_received,
	[NFC_WORD_CREDIT] = credit_received,
	[NFC_WORD_NAK] = credit_received,
	[NFC_WORD_LITERAL] = literal_received,
	[NFC_WORD_ALIGN] = nfc_align_received,
	[NFC_WORD_ALIGN_OK] = nfc_align_ok_received,
	[NFC_WORD_TEST] = nfc_test_received,
	[NFC_WORD_TEST_OK] = nfc_test_ok_received,
	[NFC_WORD_RECORD] = record_word_received,
	[NFC_WORD_ASK] = link_ask_received,
	[NFC_WORD_ANSWER] = link_answer_received,
	[NFC_WORD_TRAIN] = train_received,
};

static void control_received(struct nfc_link_end *l, struct nfc_word w)
{
	uint32_t kind = nfc_kind(w.lo);

	if (kind >= NFC_WORD_KINDS || !on_word[kind] ||
	    !nfc_control_valid(l, w)) {
		/* before both sessions are known most are unreadable */
		l->count[NFC_LINK_BAD_CONTROLS] += l->state == NFC_LINK_UP;
		return;
	}
	l->seen_ns = l->now;
	on_word[kind](l, w);
}

/*
 * A payload that arrived with its footer, and has no packet before it, may be
 * used in place: it is summed, and not copied.
 */
static bool whole_payload_received(struct nfc_link_end *l,
				   const struct nfc_word *word, uint32_t n)
{
	struct nfc_receiver *rx = &l->rx;
	const struct nfc_fifo *f = &rx->fifo[rx->vc];
	struct nfc_fifo lies = { .word = (struct nfc_word *)word,
				 .size = NFC_PACKET_WORDS };
	struct nfc_sum sum = { 0 };

	if (!l->owner || !rx->store || rx->got || n <= rx->words ||
	    f->first != f->last || nfc_is_magic(word[rx->words]))
		return false;
	nfc_payload_sum(l->port, &lies, 0, rx->words, &sum);
	if (sum.magic)
		return false;
	rx->sum = sum;
	rx->lies = lies;
	rx->lies_at = 0;
	payload_taken(rx, rx->words);
	return true;
}

/*
 * Contiguous words of a payload, as those of most packets are. The pass that
 * copies and sums them detects whether one may be Magic; if so, none is
 * accepted.
 */
static bool plain_words_received(struct nfc_link_end *l,
				 const struct nfc_word *word, uint32_t n)
{
	struct nfc_receiver *rx = &l->rx;
	struct nfc_sum before = rx->sum;

	rx->sum.magic = false;
	nfc_payload_write(l->port, &rx->fifo[rx->vc], rx->got, word, n,
			  &rx->sum);
	if (rx->sum.magic) {
		rx->sum = before;
		return false;
	}
	rx->sum.magic = before.magic;
	payload_taken(rx, n);
	return true;
}

/* Words of a payload, up to the next Magic; returns how many. */
static uint32_t payload_words(struct nfc_link_end *l,
			      const struct nfc_word *word, uint32_t n)
{
	uint32_t most = l->rx.words - l->rx.got;

	if (whole_payload_received(l, word, n))
		return most;
	if (n > most)
		n = most;
	if (l->rx.store && plain_words_received(l, word, n))
		return n;
	n = nfc_until_magic(word, n);
	payload_received(l, word, n);
	return n;
}

void nfc_receive_words(struct nfc_link_end *l, const struct nfc_word *word,
		       uint32_t n)
{
	struct nfc_receiver *rx = &l->rx;

	for (uint32_t i = 0; i < n; i++) {
		if (rx->state == NFC_RECEIVE_PAYLOAD && !rx->magic)
			i += payload_words(l, word + i, n - i);
		else if (rx->state == NFC_RECEIVE_TRAIN && !rx->magic)
			i += train_words(rx, word + i, n - i);
		if (i == n)
			return;
		if (nfc_is_magic(word[i])) {
			rx->magic = true;
		} else if (rx->magic) {
			rx->magic = false;
			control_received(l, word[i]);
		} else {
			data_received(l, word[i]);
		}
	}
}
