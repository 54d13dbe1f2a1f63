/* SPDX-License-Identifier: MIT */
/*
 * The functions that the files of the link call in each other, from the lowest
 * to the highest; crc.c and fifo.c are below all and are in link.h.
 */
#ifndef NFC_FRAME_H
#define NFC_FRAME_H

#include "link.h"

/* The word before every control word. */
#define NFC_WORD_MAGIC \
	((struct nfc_word){ 0x6b3f95c8e1a4d27full, 0x17e2c4b9705ad386ull })

/*
 * Kinds of control words, in the top four bits of lo. The upper half of hi is the
 * checksum of the rest.
 */
enum nfc_word_kind {
	NFC_WORD_START = 1, /* words 12, magic 1, zero 3; vc 4, round 8, shared 16, zero 4; sequence 12: a packet */
	NFC_WORD_CREDIT = 2, /* words of three channels, 16 each; acked 12; hi: diagnostic */
	NFC_WORD_NAK = 3, /* a credit, and: resend from the first packet that is not acked */
	NFC_WORD_LITERAL = 4, /* the data word that is Magic */
	NFC_WORD_ALIGN = 5, /* session 16, depth 16, torus 20, version 8; hi: who */
	NFC_WORD_ALIGN_OK = 6, /* session 16, the peer's 16 */
	NFC_WORD_TEST = 7, /* burst 16, words 16: so many pseudo-random words */
	NFC_WORD_TEST_OK = 8, /* burst 16, wrong words 16 */
	NFC_WORD_RECORD = 9, /* version 32, node 24; hi: diagnostic */
	NFC_WORD_ASK = 10, /* number 16: answer behind a credit */
	NFC_WORD_ANSWER = 11, /* number 16 of an ASK */
	NFC_WORD_TRAIN = 12, /* packets 5, zero 11; vc, round, shared, sequence as START: see below */
	NFC_WORD_KINDS = 13,
};

enum {
	NFC_FOOTER = 0x7a5e, /* in a footer beside the checksum */
	NFC_SEQUENCE_MASK = 0xfff,
	NFC_START_MAGIC_SHIFT =
		12, /* in START, if it is shared: a word of the payload may be Magic */
	NFC_START_SHARED_SHIFT =
		28, /* in START: 0, or 1 + the word of the buffer it is shared from */
	NFC_START_SHARED_MASK = 0xffff,
	NFC_SHARED_WORDS = 6, /* of a packet whose payload is shared, at most: each may be Magic */
	NFC_FRAME_WORDS = 4, /* around a payload: Magic, START, header, footer */
	NFC_TRAIN_MASK = 0x1f, /* of TRAIN: packets */
	NFC_TRAIN_ENTRY_WORDS =
		4, /* what names a packet of a train, at most: each may be Magic */
	NFC_TRAIN_WORDS_SHIFT = 32, /* of an entry: words of the payload, 12 */
	NFC_TRAIN_MAGIC_SHIFT = 44, /* a word of it may be Magic */
};

/*
 * Packets that follow each other on one virtual channel, and whose payloads are
 * shared, are sent in one frame. It has TRAIN, for each the header and an
 * entry, and a footer over all of these. In the buffer each one begins where
 * the one before has ended.
 */
static inline uint64_t nfc_train_entry(const struct nfc_held *h)
{
	return h->sum.crc | (uint64_t)h->words << NFC_TRAIN_WORDS_SHIFT |
	       (uint64_t)h->sum.magic << NFC_TRAIN_MAGIC_SHIFT;
}

static inline bool nfc_is_magic(struct nfc_word w)
{
	return w.lo == NFC_WORD_MAGIC.lo && w.hi == NFC_WORD_MAGIC.hi;
}

/* Words before the first that is Magic. */
static inline uint32_t nfc_until_magic(const struct nfc_word *w, uint32_t n)
{
	const uint64_t lo = NFC_WORD_MAGIC.lo;
	uint32_t i = 0;

	/* four at once, by the half that no other data are likely to have */
	while (i + 4 <= n && w[i].lo != lo && w[i + 1].lo != lo &&
	       w[i + 2].lo != lo && w[i + 3].lo != lo)
		i += 4;
	while (i < n && !nfc_is_magic(w[i]))
		i++;
	return i;
}

static inline uint32_t nfc_kind(uint64_t lo)
{
	return (uint32_t)(lo >> 60);
}

/* ---- frame.c: words and their checksums ---- */

struct nfc_word nfc_control_word(const struct nfc_link_end *l,
				 enum nfc_word_kind kind, uint64_t fields,
				 uint32_t more);
/* Is its checksum right? */
bool nfc_control_valid(const struct nfc_link_end *l, struct nfc_word w);
/* The word that ends a packet, whose payload has that checksum. */
struct nfc_word nfc_footer(const struct nfc_link_end *l, uint64_t start,
			   struct nfc_word header, uint32_t sum);
/* The word that ends a train of packets, of which these are headers and entries. */
struct nfc_word nfc_train_footer(const struct nfc_link_end *l, uint64_t start,
				 const struct nfc_word *word, uint32_t n);

/* ---- receive.c: received words ---- */

void nfc_receive_words(struct nfc_link_end *l, const struct nfc_word *word,
		       uint32_t n);
/* Forget the packet under way; what was accepted stays. */
void nfc_receiver_reset(struct nfc_receiver *rx);

/* ---- send.c: packets, credits, all words that are sent ---- */

void nfc_sender_reset(struct nfc_link_end *l);
/* Handle a received credit: false if it cannot be true. */
bool nfc_sender_credit(struct nfc_link_end *l, uint64_t lo);
void nfc_sender_go_back(struct nfc_link_end *l);
/* Handle a received ANSWER, behind the credit that the ASK requested. */
void nfc_sender_answered(struct nfc_link_end *l, uint16_t ask);
/* Put what can be put. */
void nfc_send_words(struct nfc_link_end *l);
/* The time at which something is due even if no word arrives. */
uint64_t nfc_sender_due(const struct nfc_link_end *l);
/* Time passed: retransmission, classic flow control. False: the link is lost. */
bool nfc_sender_time(struct nfc_link_end *l);

/* ---- align.c: from nothing to a link that is up ---- */

enum nfc_link_event {
	NFC_LINK_APPEARED = 0, /* the port has a neighbour */
	NFC_LINK_GONE,
	NFC_LINK_ALIGNED, /* each end received the other's words */
	NFC_LINK_PROVEN, /* the self-test passed both ways */
	NFC_LINK_AGAIN, /* the peer began again */
	NFC_LINK_LOST, /* silence, or nothing gets through */
	NFC_LINK_EVENTS,
};

void nfc_link_event(struct nfc_link_end *l, enum nfc_link_event event);
void nfc_align_received(struct nfc_link_end *l, struct nfc_word w);
void nfc_align_ok_received(struct nfc_link_end *l, struct nfc_word w);
void nfc_test_received(struct nfc_link_end *l, struct nfc_word w);
void nfc_test_word(struct nfc_link_end *l, struct nfc_word w);
void nfc_test_ok_received(struct nfc_link_end *l, struct nfc_word w);
/* The control word that alignment or the self-test has to send, if there is one. */
bool nfc_align_next(struct nfc_link_end *l, struct nfc_word *w);
/* Does a burst of a link that is up begin now? Not within a packet. */
bool nfc_test_due(struct nfc_link_end *l);
/* The control word that begins a burst of so many words. */
struct nfc_word nfc_test_begin(struct nfc_link_end *l, uint32_t words);
struct nfc_word nfc_test_next(uint32_t *prbs);
void nfc_align_time(struct nfc_link_end *l);

#endif /* NFC_FRAME_H */
