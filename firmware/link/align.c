// SPDX-License-Identifier: MIT
/*
 * Bring-up: the link sends ALIGN until the peer's ALIGN OK names this
 * session. Then both ends send pseudo-random words until the other end
 * has received a burst of them unchanged. A step that takes too long starts
 * again with a new session.
 */
#include "frame.h"

enum {
	TEST_HEARTBEATS = 10, /* a burst without an answer for so long is lost */
};

/* The effect of a change of state. */
enum action {
	NOTHING,
	STOP, /* no neighbour: drop what was under way */
	BEGIN, /* a new session */
	FOLLOW, /* align again: the peer has a new session */
	TRY, /* the self-test */
	OPEN, /* packets may flow */
};

struct edge {
	uint8_t state, action;
};

#define STAY(s)            \
	{                  \
		s, NOTHING \
	}

static const struct edge edges[NFC_LINK_STATES][NFC_LINK_EVENTS] = {
	[NFC_LINK_DOWN] = {
		[NFC_LINK_APPEARED] = { NFC_LINK_ALIGN, BEGIN },
		/* anything else: DOWN, NOTHING */
	},
	[NFC_LINK_ALIGN] = {
		[NFC_LINK_APPEARED] = { NFC_LINK_ALIGN, BEGIN },
		[NFC_LINK_GONE] = { NFC_LINK_DOWN, STOP },
		[NFC_LINK_ALIGNED] = { NFC_LINK_TEST, TRY },
		[NFC_LINK_PROVEN] = STAY(NFC_LINK_ALIGN),
		[NFC_LINK_AGAIN] = STAY(NFC_LINK_ALIGN),
		[NFC_LINK_LOST] = { NFC_LINK_ALIGN, BEGIN },
	},
	[NFC_LINK_TEST] = {
		[NFC_LINK_APPEARED] = { NFC_LINK_ALIGN, BEGIN },
		[NFC_LINK_GONE] = { NFC_LINK_DOWN, STOP },
		[NFC_LINK_ALIGNED] = STAY(NFC_LINK_TEST),
		[NFC_LINK_PROVEN] = { NFC_LINK_UP, OPEN },
		[NFC_LINK_AGAIN] = { NFC_LINK_ALIGN, FOLLOW },
		[NFC_LINK_LOST] = { NFC_LINK_ALIGN, BEGIN },
	},
	[NFC_LINK_UP] = {
		[NFC_LINK_APPEARED] = { NFC_LINK_ALIGN, BEGIN },
		[NFC_LINK_GONE] = { NFC_LINK_DOWN, STOP },
		[NFC_LINK_ALIGNED] = STAY(NFC_LINK_UP),
		[NFC_LINK_PROVEN] = STAY(NFC_LINK_UP),
		[NFC_LINK_AGAIN] = { NFC_LINK_ALIGN, FOLLOW },
		[NFC_LINK_LOST] = { NFC_LINK_ALIGN, BEGIN },
	},
};

/* Checksums of both ends begin alike, and unlike those of any other session. */
static void set_seed(struct nfc_link_end *l)
{
	uint32_t own = l->session, peer = l->peer;

	l->seed = (own ^ peer) * 0x9e3779b1u ^ own * peer;
}

static void forget(struct nfc_link_end *l)
{
	l->pending = (struct nfc_pending){ 0 };
	l->words_right = l->proven = l->echoed = false;
	l->staged = l->since = 0;
	l->test_step = 0;
	l->test_words = l->test_left = 0;
	l->level = NFC_DIAG_NORMAL;
	l->clean = 0;
	nfc_receiver_reset(&l->rx);
	nfc_sender_reset(l);
}

static void act(struct nfc_link_end *l, enum action action)
{
	switch (action) {
	case NOTHING:
		return;
	case STOP:
		forget(l);
		return;
	case BEGIN:
		l->session += l->session == 0xffff ? 2 : 1; /* never 0 */
		l->peer = 0;
		/* fall through */
	case FOLLOW:
		l->count[NFC_LINK_RESTARTS]++;
		forget(l);
		l->retry_due = l->seen_ns = l->now;
		return;
	case TRY:
		set_seed(l);
		nfc_receiver_reset(&l->rx);
		l->retry_due = l->now;
		return;
	case OPEN:
		l->pending.credit = true;
		l->credit_ns = l->rate_ns = l->now;
		return;
	}
}

void nfc_link_event(struct nfc_link_end *l, enum nfc_link_event event)
{
	const struct edge *e = &edges[l->state][event];

	if (l->state != e->state || e->action != NOTHING)
		l->state_ns = l->now;
	l->state = e->state;
	act(l, e->action);
}

/* Fields of ALIGN. */
static struct nfc_word align_word(const struct nfc_link_end *l)
{
	uint64_t fields = l->session | (uint64_t)l->config.depth << 16 |
			  (uint64_t)(l->torus & 0xfffff) << 32 |
			  (uint64_t)NFC_LINK_VERSION << 52;

	return nfc_control_word(l, NFC_WORD_ALIGN, fields,
				l->node | l->index << 24 | l->config.flow << 27);
}

static bool fits(const struct nfc_link_end *l, struct nfc_word w)
{
	uint32_t depth = w.lo >> 16 & 0xffff, who = (uint32_t)w.hi;

	return (w.lo & 0xffff) &&
	       (w.lo >> 32 & 0xfffff) == (l->torus & 0xfffff) &&
	       (w.lo >> 52 & 0xff) == NFC_LINK_VERSION &&
	       depth >= NFC_LINK_DEPTH_MIN && depth <= NFC_LINK_DEPTH_MAX &&
	       (who >> 24 & 7) == (l->index ^ 1) &&
	       who >> 27 == l->config.flow &&
	       (l->expect == NFC_ANY_NODE || (who & 0xffffff) == l->expect);
}

static void check_aligned(struct nfc_link_end *l)
{
	if (l->state == NFC_LINK_ALIGN && l->peer && l->echoed)
		nfc_link_event(l, NFC_LINK_ALIGNED);
}

void nfc_align_received(struct nfc_link_end *l, struct nfc_word w)
{
	if (l->state == NFC_LINK_DOWN)
		return;
	if (!fits(l, w)) {
		l->count[NFC_LINK_REFUSED]++;
		return;
	}
	if (l->peer != (w.lo & 0xffff)) {
		l->peer = w.lo & 0xffff;
		nfc_link_event(l, NFC_LINK_AGAIN);
	}
	l->tx.depth = w.lo >> 16 & 0xffff;
	if (l->state <= NFC_LINK_TEST)
		nfc_sender_reset(l); /* it knows the other end's depth now */
	l->pending.align_ok = true;
	check_aligned(l);
}

void nfc_align_ok_received(struct nfc_link_end *l, struct nfc_word w)
{
	if (l->state != NFC_LINK_ALIGN || (w.lo >> 16 & 0xffff) != l->session)
		return;
	l->echoed = true;
	check_aligned(l);
}

static uint32_t test_seed(uint32_t burst)
{
	return (burst * 0x9e3779b1u & 0x7fffffff) | 1;
}

struct nfc_word nfc_test_next(uint32_t *prbs)
{
	uint64_t a = nfc_prbs(prbs), b = nfc_prbs(prbs), c = nfc_prbs(prbs);

	return (struct nfc_word){ a | b << 32, c | (uint64_t)nfc_prbs(prbs)
							       << 32 };
}

static void check_proven(struct nfc_link_end *l)
{
	if (l->state == NFC_LINK_TEST && l->words_right && l->proven)
		nfc_link_event(l, NFC_LINK_PROVEN);
}

void nfc_test_received(struct nfc_link_end *l, struct nfc_word w)
{
	struct nfc_receiver *rx = &l->rx;

	if (l->state < NFC_LINK_TEST || !(w.lo >> 16 & 0xffff))
		return;
	rx->burst = (uint16_t)w.lo;
	rx->words = (uint16_t)(w.lo >> 16);
	rx->got = rx->wrong = 0;
	rx->prbs = test_seed(rx->burst);
	rx->state = NFC_RECEIVE_TEST;
}

void nfc_test_word(struct nfc_link_end *l, struct nfc_word w)
{
	struct nfc_receiver *rx = &l->rx;
	struct nfc_word want = nfc_test_next(&rx->prbs);

	rx->wrong += w.lo != want.lo || w.hi != want.hi;
	if (++rx->got < rx->words)
		return;
	rx->state = NFC_RECEIVE_IDLE;
	l->pending.test_ok = true;
	l->pending.test_burst = rx->burst;
	l->pending.test_wrong = rx->wrong;
	l->words_right |= !rx->wrong;
	check_proven(l);
}

void nfc_test_ok_received(struct nfc_link_end *l, struct nfc_word w)
{
	uint32_t wrong = w.lo >> 16 & 0xffff;

	if (!l->test_words || (w.lo & 0xffff) != l->burst)
		return;
	l->count[NFC_LINK_TESTED] += l->test_words;
	l->count[NFC_LINK_TEST_WRONG] += wrong < l->test_words ? wrong :
								 l->test_words;
	l->test_words = 0;
	if (wrong || l->state != NFC_LINK_TEST)
		return;
	l->proven = true;
	check_proven(l);
}

struct nfc_word nfc_test_begin(struct nfc_link_end *l, uint32_t words)
{
	l->burst++;
	l->test_words = l->test_step = (uint16_t)words;
	l->test_prbs = test_seed(l->burst);
	l->test_ns = l->now;
	return nfc_control_word(l, NFC_WORD_TEST,
				l->burst | (uint64_t)words << 16, 0);
}

bool nfc_test_due(struct nfc_link_end *l)
{
	if (l->tx.step || l->state != NFC_LINK_UP)
		return false;
	if (l->test_words) {
		if (l->now - l->test_ns <= TEST_HEARTBEATS * l->config.beat_ns)
			return false;
		/* it, or its answer, was lost */
		l->count[NFC_LINK_TESTED] += l->test_words;
		l->count[NFC_LINK_TEST_WRONG]++;
		l->test_words = 0;
	}
	if (!l->test_left)
		return false;
	l->test_left--;
	return true;
}

void nfc_link_test(struct nfc_link_end *l, uint32_t bursts)
{
	l->test_left = l->state == NFC_LINK_UP ? bursts : 0;
}

bool nfc_align_next(struct nfc_link_end *l, struct nfc_word *w)
{
	struct nfc_pending *p = &l->pending;

	if (p->align_ok) {
		p->align_ok = false;
		*w = nfc_control_word(l, NFC_WORD_ALIGN_OK,
				      l->session | (uint64_t)l->peer << 16, 0);
	} else if (p->align) {
		p->align = false;
		*w = align_word(l);
	} else if (p->test_ok) {
		p->test_ok = false;
		*w = nfc_control_word(
			l, NFC_WORD_TEST_OK,
			p->test_burst | (uint64_t)p->test_wrong << 16, 0);
	} else if (p->test) {
		p->test = false;
		*w = nfc_test_begin(l, l->config.test);
	} else {
		return false;
	}
	return true;
}

void nfc_align_time(struct nfc_link_end *l)
{
	if (l->state != NFC_LINK_ALIGN && l->state != NFC_LINK_TEST)
		return;
	if (l->now - l->state_ns > l->config.silence_ns)
		nfc_link_event(l, NFC_LINK_LOST);
	if (l->now < l->retry_due)
		return;
	l->retry_due = l->now + l->config.retry_ns;
	if (l->state == NFC_LINK_ALIGN)
		l->pending.align = true;
	else if (!l->test_step && !l->proven)
		l->pending.test = true;
}
