/* SPDX-License-Identifier: MIT */
/*
 * One direction of a link in memory: a ring of words that may be slow, far, and
 * bad as a test asks. One thread puts, another takes.
 */
#ifndef NFC_PORT_WIRE_H
#define NFC_PORT_WIRE_H

#include <stdatomic.h>

#include "../link/link.h"

/* Chances are of each word, in units of 2^-32. */
struct nfc_wire_faults {
	uint64_t seed;
	uint32_t flip; /* one bit of it changes */
	uint32_t drop; /* it is lost */
	uint32_t repeat; /* it arrives twice */
	uint32_t stall; /* it arrives stall_ns later, and none after it before */
	uint64_t stall_ns;
};

struct nfc_wire_config {
	uint32_t words; /* of the ring, a power of two */
	uint32_t slack; /* timed: words that may wait for their time at once */
	uint64_t word_ps; /* time that a word takes; 0: none */
	uint64_t delay_ns; /* from one end to the other */
};

enum {
	NFC_PORT_LINE = 64, /* bytes that caches keep together */
};

struct nfc_wire {
	struct nfc_wire_config config;
	void *memory; /* of the words */
	struct nfc_word *word; /* the ring, and two places to write a burst */
	uint64_t *due; /* ns at which each word arrives, of a wire that is dated */
	_Atomic bool dated; /* words take time, or did: dues are to be read */
	/* Written by the side that puts. */
	_Alignas(64) _Atomic uint64_t tail;
	uint64_t seen; /* head, as it was last read */
	bool aside; /* the place that was reserved is not the ring's */
	uint64_t free_ps; /* when the wire has sent all that was put */
	uint64_t random, held_ns; /* held: no word arrives before */
	struct nfc_wire_faults faults;
	uint64_t flipped, dropped, repeated, stalled;
	/* Written by the side that takes, but for full. */
	_Alignas(64) _Atomic uint64_t head;
	_Atomic bool full; /* the side that puts found no room, and waits */
};

/*
 * Memory of zeros that begins at a line: copies of payloads take longer across two. It is
 * freed by what is put to whole. NULL: there is none.
 */
void *nfc_port_lines(uint64_t size, void **whole);
/* False: no memory. */
bool nfc_wire_init(struct nfc_wire *w, const struct nfc_wire_config *config);
void nfc_wire_free(struct nfc_wire *w);
/* Does time mean anything to this wire? */
static inline bool nfc_wire_dated(struct nfc_wire *w)
{
	return atomic_load_explicit(&w->dated, memory_order_relaxed);
}

/* The side that puts. */
/* Are words only carried, at once and unchanged? */
bool nfc_wire_plain(const struct nfc_wire *w);
void nfc_wire_break(struct nfc_wire *w, const struct nfc_wire_faults *faults);
uint32_t nfc_wire_room(struct nfc_wire *w, uint64_t now);
/* Where words may be written, and how many: at most NFC_LINK_BURST. */
struct nfc_word *nfc_wire_reserve(struct nfc_wire *w, uint32_t *n, uint64_t now);
/* As nfc_wire_reserve(): all that are contiguous. */
struct nfc_word *nfc_wire_reserve_all(struct nfc_wire *w, uint32_t *n,
				      uint64_t now);
/* That many of them are on their way. */
void nfc_wire_commit(struct nfc_wire *w, uint32_t n, uint64_t now);
/*
 * As nfc_wire_commit(). Returns whether the side that takes may have found the wire
 * empty before, and wait.
 */
bool nfc_wire_commit_wakes(struct nfc_wire *w, uint32_t n, uint64_t now);
/* When a wire that is timed and full has room again; UINT64_MAX: it has. */
uint64_t nfc_wire_again(const struct nfc_wire *w, uint64_t now);
/* The side that takes: contiguous words that arrived, and how many. */
const struct nfc_word *nfc_wire_peek(struct nfc_wire *w, uint32_t *n,
				     uint64_t now);
/* That many of them were used. */
void nfc_wire_release(struct nfc_wire *w, uint32_t n);
/* As nfc_wire_release(). Returns whether the side that puts found no room, and waits. */
bool nfc_wire_release_wakes(struct nfc_wire *w, uint32_t n);
/*
 * A side that waits checks once more after this: it sees what the other did, or
 * the other sees that it waits.
 */
void nfc_wire_before_waiting(void);
/* When the next word arrives; UINT64_MAX: none is under way. */
uint64_t nfc_wire_due(struct nfc_wire *w);

#endif /* NFC_PORT_WIRE_H */
