/* SPDX-License-Identifier: MIT */
/*
 * One end of a link between two nodes: packets of at most 4 KiB in frames of
 * 128-bit words. They are checked, repeated until they arrived, and sent only
 * when the other end can hold them. Freestanding, without allocation, owned by
 * one island. See docs/design/0032-links.md.
 */
#ifndef NFC_LINK_H
#define NFC_LINK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "../nfc_abi.h"

/*
 * The lowest bit of a word that is not 0. The compiler's own builtin calls a function
 * where the processor has no instruction, and nothing is linked here but memcpy's kind.
 */
static inline uint32_t nfc_lowest_bit(uint64_t word)
{
	uint32_t bit = 0;

	for (uint32_t half = 32; half; half /= 2)
		if (!(word & ((1ull << half) - 1))) {
			word >>= half;
			bit += half;
		}
	return bit;
}

enum nfc_link_limits {
	NFC_WORD_SIZE = 16,
	NFC_PACKET_SIZE = 4096, /* bytes of payload */
	NFC_PACKET_WORDS = NFC_PACKET_SIZE / NFC_WORD_SIZE,
	NFC_PACKET_COST = 4, /* words that a packet takes of a FIFO, at least */
	NFC_LINK_DEPTH_MIN = 2 * NFC_PACKET_WORDS,
	NFC_LINK_DEPTH_MAX = 1 << 15, /* words: counters on the wire have 16 bits */
	NFC_LINK_BUFFER_MAX = 1 << 15, /* words */
	NFC_LINK_PACKETS_MAX = 2048, /* not acked: half of the sequences */
	NFC_LINK_BURST = 1088, /* words given to the port at once: four packets and their credits */
	NFC_LINK_BUDGET = 4096, /* words taken from the port in one turn */
	NFC_LINK_TEST_WORDS = 256, /* of a burst between packets, as long as one of those */
	NFC_LINK_SHARED = 8, /* words of a payload that is shared, at least: less are soon copied */
	NFC_LINK_TRAIN = 16, /* packets with shared payloads that one frame names */
	NFC_LINK_VERSION = 3,
};

/* A link's direction in the torus, in the order of the diagnostic word from its top. */
enum nfc_link {
	NFC_X_PLUS = 0,
	NFC_X_MINUS = 1,
	NFC_Y_PLUS = 2,
	NFC_Y_MINUS = 3,
	NFC_Z_PLUS = 4,
	NFC_Z_MINUS = 5,
	NFC_LINKS = 6,
};

/* Virtual channels: two of the date-line rule, one around what is broken. */
enum nfc_vc {
	NFC_VC_FIRST = 0, /* has not crossed the date line of its dimension */
	NFC_VC_CROSSED = 1, /* has crossed it */
	NFC_VC_DETOUR = 2, /* leads up, then down, and never back to the others */
	NFC_VCS = 3,
};

/* How a sender learns that the other end has room. */
enum nfc_flow {
	NFC_FLOW_CUMULATIVE = 0, /* credits count what was ever consumed */
	NFC_FLOW_CLASSIC = 1, /* credits report words held: stop at T_RED, resume at T_YEL */
};

/* 128 bits, the width of a link. */
struct nfc_word {
	uint64_t lo, hi;
};

/* Calls that the link needs from the carrier of its words: docs/design/0017. */
struct nfc_link_port {
	void *self; /* handed back in every call */
	/*
	 * The place for words to send, and how many fit: at most
	 * NFC_LINK_BURST. The place is the link's until the next commit.
	 */
	struct nfc_word *(*reserve)(void *self, uint32_t link, uint32_t *n);
	/* Send that many words of the place. */
	void (*commit)(void *self, uint32_t link, uint32_t n);
	/* Received words that are contiguous, and how many; they stay there. */
	const struct nfc_word *(*peek)(void *self, uint32_t link, uint32_t *n);
	/* That many received words were used. */
	void (*release)(void *self, uint32_t link, uint32_t n);
	/* 0: no neighbour; changes whenever one appears or disappears. */
	uint32_t (*generation)(void *self, uint32_t link);
	/* Monotonic nanoseconds. */
	uint64_t (*now)(void *self);
	/* CRC32C by an instruction of the processor; NULL: there is none. */
	uint32_t (*crc)(uint32_t crc, const void *data, uint64_t size);
	/*
	 * Copy some times 16 bytes and add what was copied to a checksum, in one pass;
	 * returns whether any 16 may begin with mark. Without to they are summed only.
	 * NULL: there is no such pass.
	 */
	bool (*copy)(uint32_t *crc, void *to, const void *from, uint64_t size,
		     uint64_t mark);
	/*
	 * May payloads stay in the buffer of this end, because the other reads them there?
	 * NULL: never.
	 */
	bool (*shares)(void *self, uint32_t link);
	/* The buffer of the other end, if it shares, and its words; NULL: it is not reached. */
	const struct nfc_word *(*shared)(void *self, uint32_t link,
					 uint32_t *words);
};

/* Zero fields take the defaults of nfc_link_check(). */
struct nfc_link_config {
	uint32_t depth; /* words of the FIFO of each virtual channel, a power of two */
	uint32_t buffer; /* words kept until they are acked, a power of two */
	uint32_t flow; /* enum nfc_flow; both ends alike */
	uint32_t period; /* words between two credits while data are sent */
	uint32_t yellow; /* classic: T_YEL in words */
	uint32_t window; /* cumulative: words under way at most; 0: as measured */
	uint32_t test; /* words of the self-test */
	uint64_t wait_ns; /* classic: W, after which a credit covers all that was sent */
	uint64_t credit_ns; /* between two small credits while no data are sent */
	uint64_t beat_ns; /* a credit at least that often */
	uint64_t retry_ns; /* alignment and retransmission, at the least */
	uint64_t silence_ns; /* after so long without a valid word the link is lost */
};

enum nfc_link_state {
	NFC_LINK_DOWN = 0, /* there is no neighbour */
	NFC_LINK_ALIGN = 1, /* the end sends ALIGN and awaits ALIGN OK */
	NFC_LINK_TEST = 2, /* both ends send pseudo-random words */
	NFC_LINK_UP = 3,
	NFC_LINK_STATES = 4,
};

enum nfc_link_count {
	NFC_LINK_WORDS_SENT = 0, /* words put to the port, or shared */
	NFC_LINK_WORDS_TAKEN = 1,
	NFC_LINK_SENT = 2, /* packets, for the first time */
	NFC_LINK_REPEATED = 3, /* packets sent again */
	NFC_LINK_RECEIVED = 4, /* packets accepted */
	NFC_LINK_BYTES_SENT = 5, /* payload of packets sent for the first time */
	NFC_LINK_BYTES_RECEIVED = 6,
	NFC_LINK_BAD_PACKETS = 7, /* wrong checksum, cut short, or out of order */
	NFC_LINK_BAD_CONTROLS = 8, /* control words with a wrong checksum */
	NFC_LINK_BAD_CREDITS = 9, /* credits that ran backwards or for more than was sent */
	NFC_LINK_OVERRUNS = 10, /* packets the FIFO had no room for: a peer at fault */
	NFC_LINK_MALFORMED = 11, /* packets with an invalid header */
	NFC_LINK_CREDITS = 12, /* sent */
	NFC_LINK_NAKS = 13, /* sent */
	NFC_LINK_TIMEOUTS = 14, /* retransmissions that no NAK asked for */
	NFC_LINK_RESTARTS = 15, /* alignments begun */
	NFC_LINK_DROPPED = 16, /* packets lost with the link they were on */
	NFC_LINK_REFUSED = 17, /* alignments with a peer that does not fit */
	NFC_LINK_TESTED = 18, /* pseudo-random words that the other end checked */
	NFC_LINK_TEST_WRONG =
		19, /* of these, other than sent; a burst without answer is one */
	NFC_LINK_COUNTS = 20,
};

/* Facts about a payload, kept from its source on. */
struct nfc_sum {
	uint32_t crc; /* CRC32C */
	bool magic; /* a word of it may be Magic */
};

/* A packet that is held: its header, and the place of its payload. */
struct nfc_held {
	struct nfc_word header;
	uint32_t at; /* index of its first word in the FIFO */
	struct nfc_sum sum;
	uint16_t words; /* of payload */
	uint8_t vc;
	bool repeated; /* was sent more than once: its ack measures nothing */
	uint64_t sent_ns;
};

/* Packets in order, and the words of their payloads. Indices run freely. */
struct nfc_fifo {
	struct nfc_word *word;
	struct nfc_held *held;
	uint32_t size; /* words, a power of two */
	uint32_t first, last; /* packets */
	uint32_t begin, end; /* words */
};

/* The sender: packets wait in the buffer until they are acked. */
struct nfc_sender {
	struct nfc_fifo buffer;
	uint32_t next; /* the packet that is sent next */
	uint32_t step; /* words of its frame that were sent; 0: not begun */
	uint32_t furthest; /* packets before it were sent once */
	uint32_t depth; /* words of the other end's FIFOs */
	uint32_t sent[NFC_VCS]; /* words, ever */
	uint32_t consumed[NFC_VCS]; /* cumulative: words the other end consumed */
	uint32_t counted[NFC_VCS]; /* classic: words since it was empty enough */
	uint32_t held[NFC_VCS]; /* classic: words it holds, by its last report */
	uint32_t window; /* words under way at most */
	uint32_t acked; /* words since the rate was measured */
	uint64_t rated_ns; /* when that was */
	uint64_t rtt_ns; /* smoothed; 0: not measured */
	uint64_t rtt_min_ns;
	uint64_t drained_ns; /* when the last word of the buffer was sent */
	uint64_t progress_ns; /* since when nothing was acked */
	uint32_t tries; /* retransmissions without progress */
	uint32_t asks; /* that were sent without progress */
	bool asking; /* the last of them has no answer yet */
	uint16_t ask; /* its number */
	uint32_t ask_end; /* packets before it were sent before that ASK */
	uint8_t round; /* number of restarts from the first unacked packet */
};

/* Where the receiver stands between two words. */
enum nfc_receive_state {
	NFC_RECEIVE_IDLE = 0, /* data words mean nothing here */
	NFC_RECEIVE_HEADER,
	NFC_RECEIVE_PAYLOAD,
	NFC_RECEIVE_FOOTER,
	NFC_RECEIVE_TEST,
	NFC_RECEIVE_TRAIN,
	NFC_RECEIVE_TRAIN_FOOTER,
};

struct nfc_receiver {
	struct nfc_fifo fifo[NFC_VCS];
	uint32_t stored; /* packets in these */
	uint32_t consumed[NFC_VCS]; /* words, modulo 2^16 on the wire */
	uint32_t unreported; /* words consumed since the last credit */
	uint32_t expected; /* sequence number of the next packet */
	bool asked; /* a NAK for it was sent, in this round of the sender's */
	uint8_t round;
	bool magic; /* the last word was Magic */
	uint8_t state; /* enum nfc_receive_state */
	uint8_t vc;
	bool store; /* the packet under way is expected, and there is room */
	uint16_t words, got; /* of the payload, or of what names a train */
	uint64_t start; /* the control word it began with */
	struct nfc_word header;
	struct nfc_sum sum; /* of the received words, if they are used */
	struct nfc_fifo lies; /* the payload in place; word NULL: it was stored */
	uint32_t lies_at; /* index of the first there */
	struct nfc_word train[2 * NFC_LINK_TRAIN]; /* what names the packets of one */
	uint32_t prbs; /* generator of the self-test */
	uint16_t burst, wrong;
};

/* Words to send beside packets. */
struct nfc_pending {
	bool credit, nak, align, align_ok, test, ask, answer;
	uint16_t answer_ask; /* the ASK that is answered */
	bool test_ok;
	uint16_t test_burst, test_wrong;
};

/* Calls that the link needs from the node that owns it; see node.h. */
struct nfc_link_owner {
	void *self;
	/* A record to send over this link, if there is one. */
	bool (*next)(void *self, uint32_t link, uint32_t *node,
		     uint32_t *version, uint32_t *diagnostic);
	/* A record was received. */
	void (*on_record)(void *self, uint32_t link, uint32_t node,
			  uint32_t version, uint32_t diagnostic);
	/*
	 * A packet was received, and none is before it: use it in place, in f.
	 * False: not now, it has to enter the FIFO.
	 */
	bool (*take)(void *self, uint32_t link, const struct nfc_held *h,
		     const struct nfc_fifo *f);
};

struct nfc_link_end {
	struct nfc_link_config config;
	const struct nfc_link_port *port;
	const struct nfc_link_owner *owner; /* NULL: there is none */
	uint32_t index; /* enum nfc_link */
	uint32_t node; /* own address, and torus as a number that both ends share */
	uint32_t torus;
	uint32_t expect; /* node that must be at the other end; NFC_ANY_NODE: any */
	uint8_t state; /* enum nfc_link_state */
	uint8_t level; /* enum nfc_diagnostic_level, by error rates */
	uint8_t clean; /* intervals without many errors */
	bool words_right,
		proven; /* self-test: the peer's words, and one's own */
	bool echoed; /* ALIGN OK named one's own session */
	uint16_t session, peer; /* peer: 0 until its ALIGN arrived */
	uint32_t seed; /* of checksums: both sessions */
	uint32_t generation;
	uint32_t diagnostic; /* word to send with credits */
	uint32_t reported; /* word of the neighbour, from its last credit */
	struct nfc_sender tx;
	struct nfc_receiver rx;
	struct nfc_pending pending;
	uint32_t since; /* words since the last credit */
	uint16_t burst; /* number of the self-test under way */
	uint16_t test_step; /* words of it that were sent */
	uint32_t test_prbs;
	uint32_t test_words; /* of the burst that has no answer yet; 0: none */
	uint32_t test_left; /* bursts to send between packets */
	uint64_t test_ns; /* when the last one began */
	uint64_t now;
	uint64_t credit_ns; /* when the last credit was sent */
	uint64_t seen_ns; /* when the last valid control word arrived */
	uint64_t retry_due; /* alignment: when to repeat */
	uint64_t state_ns; /* since when the state is what it is */
	uint64_t rate_ns; /* begin of the interval errors are counted in */
	uint64_t rate_errors; /* errors at that moment */
	struct nfc_word *stage; /* where the port lets words be written */
	uint32_t staged; /* words there */
	bool full; /* the port had no room */
	uint64_t count[NFC_LINK_COUNTS];
};

enum {
	NFC_ANY_NODE = 1 << 24, /* no node has that address */
};

/* Fill zero fields with defaults; -NFC_EINVAL for what makes no sense. */
int nfc_link_check(struct nfc_link_config *config);
/* Bytes of memory behind one end, for nfc_link_init(). */
uint64_t nfc_link_size(const struct nfc_link_config *config);
/*
 * Make an end in memory, which is aligned to 16 bytes and, as the port, outlives it.
 * The configuration was checked.
 */
void nfc_link_init(struct nfc_link_end *l, const struct nfc_link_config *config,
		   const struct nfc_link_port *port, uint32_t index,
		   void *memory);

/*
 * Handle received words and timers. True: more may be waiting than one turn
 * takes.
 */
bool nfc_link_receive(struct nfc_link_end *l);
/* Send what can be sent. Returns when to run again even if no word arrives. */
uint64_t nfc_link_transmit(struct nfc_link_end *l);

/* May a packet of that many payload words be sent now? */
bool nfc_link_admits(const struct nfc_link_end *l, uint32_t vc, uint32_t words);
/*
 * Send a packet that was admitted, and whose payload is in l->tx.buffer: written by
 * nfc_payload_write(), or copied with the sum that it was held with.
 */
void nfc_link_queue(struct nfc_link_end *l, uint32_t vc, struct nfc_word header,
		    uint32_t words, struct nfc_sum sum);

/* The oldest packet of a virtual channel, NULL if there is none. */
const struct nfc_held *nfc_link_head(const struct nfc_link_end *l, uint32_t vc);
/* It was used: return its room to the other end. */
void nfc_link_consume(struct nfc_link_end *l, uint32_t vc);

/*
 * Send so many bursts of pseudo-random words between packets, in place of those
 * that are left. Each waits for the answer to the one before. The answers are
 * counted; a link that is lost forgets the bursts.
 */
void nfc_link_test(struct nfc_link_end *l, uint32_t bursts);

/* Begin alignment again, as when the link was lost. */
void nfc_link_restart(struct nfc_link_end *l);
/* enum nfc_diagnostic_level of the link as a part of its node. */
uint32_t nfc_link_level(const struct nfc_link_end *l);

/* ---- packets: header, and FIFOs of them ---- */

/* End to end: the fields of a packet's header. */
struct nfc_packet {
	uint32_t to, from; /* nodes: x, y and z in 8 bits each, z lowest */
	uint32_t size; /* bytes of payload */
	uint32_t sequence; /* the sender's own */
	uint16_t epoch; /* the sender's own */
	uint8_t kind; /* the sender's own */
	uint8_t hops; /* links that were crossed */
};

struct nfc_word nfc_packet_header(const struct nfc_packet *p);
struct nfc_packet nfc_packet_read(struct nfc_word header);

static inline uint32_t nfc_words(uint32_t bytes)
{
	return (bytes + NFC_WORD_SIZE - 1) / NFC_WORD_SIZE;
}

/* Words of a FIFO that a packet takes: no less, so that headers are bounded. */
static inline uint32_t nfc_packet_cost(uint32_t words)
{
	return words < NFC_PACKET_COST ? NFC_PACKET_COST : words;
}

uint64_t nfc_fifo_size(uint32_t words);
void *nfc_fifo_init(struct nfc_fifo *f, uint32_t words, void *memory);
bool nfc_fifo_room(const struct nfc_fifo *f, uint32_t words);
/* Write payload of the packet after the last, from word offset on. */
void nfc_fifo_write(struct nfc_fifo *f, uint32_t offset, const void *word,
		    uint32_t n);
/* The same, of the words of another that begin at index at. */
void nfc_fifo_copy(struct nfc_fifo *f, const struct nfc_fifo *from, uint32_t at,
		   uint32_t n);
struct nfc_held *nfc_fifo_push(struct nfc_fifo *f, struct nfc_word header,
			       uint32_t words, uint32_t vc, struct nfc_sum sum);
struct nfc_held *nfc_fifo_at(const struct nfc_fifo *f, uint32_t index);
void nfc_fifo_pop(struct nfc_fifo *f);
/* Begin anew if it is empty: words that were used last are near. */
void nfc_fifo_rewind(struct nfc_fifo *f);
/*
 * The contiguous words of a payload from word at on, n at most; returns how
 * many.
 */
uint32_t nfc_fifo_run(const struct nfc_fifo *f, uint32_t at, uint32_t n,
		      struct nfc_word **run);
/* Copy words out. */
void nfc_fifo_read(const struct nfc_fifo *f, uint32_t at, struct nfc_word *out,
		   uint32_t n);

/* ---- checksum and generator ---- */

uint32_t nfc_crc32c(uint32_t crc, const void *data, uint64_t size);
/*
 * Write n words of a payload behind what a FIFO holds, from word offset on, and add them
 * to its sum.
 */
void nfc_payload_write(const struct nfc_link_port *port, struct nfc_fifo *f,
		       uint32_t offset, const void *word, uint32_t n,
		       struct nfc_sum *sum);
/* Add n words of a FIFO, from index at on, to a sum. */
void nfc_payload_sum(const struct nfc_link_port *port, const struct nfc_fifo *f,
		     uint32_t at, uint32_t n, struct nfc_sum *sum);
/* The checksum of n words of a FIFO, from index at on: in less time than their sum. */
uint32_t nfc_payload_crc(const struct nfc_link_port *port,
			 const struct nfc_fifo *f, uint32_t at, uint32_t n);
/* The next 32 bits of the pseudo-random sequence x^31 + x^28 + 1. */
uint32_t nfc_prbs(uint32_t *state);

#endif /* NFC_LINK_H */
