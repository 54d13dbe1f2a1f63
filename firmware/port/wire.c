// SPDX-License-Identifier: MIT
/* Links in memory, with a rate, a length and faults where they are asked for. */
#include <stdlib.h>
#include <string.h>

#include "wire.h"

void *nfc_port_lines(uint64_t size, void **whole)
{
	uintptr_t at;

	*whole = calloc(1, size + NFC_PORT_LINE - 1);
	at = (uintptr_t)*whole + NFC_PORT_LINE - 1;
	return *whole ? (void *)(at - at % NFC_PORT_LINE) : NULL;
}

bool nfc_wire_init(struct nfc_wire *w, const struct nfc_wire_config *config)
{
	memset(w, 0, sizeof(*w));
	w->config = *config;
	w->dated = config->word_ps || config->delay_ns;
	w->word = nfc_port_lines((config->words + 2 * NFC_LINK_BURST) *
					 sizeof(*w->word),
				 &w->memory);
	w->due = calloc(config->words, sizeof(*w->due));
	if (w->word && w->due)
		return true;
	nfc_wire_free(w);
	return false;
}

void nfc_wire_free(struct nfc_wire *w)
{
	free(w->memory);
	free(w->due);
	w->memory = NULL;
	w->word = NULL;
	w->due = NULL;
}

void nfc_wire_break(struct nfc_wire *w, const struct nfc_wire_faults *faults)
{
	w->faults = *faults;
	if (faults->stall)
		atomic_store(&w->dated, true);
	w->random = faults->seed * 0x9e3779b97f4a7c15ull + 1;
}

static uint32_t next(struct nfc_wire *w)
{
	w->random ^= w->random << 13;
	w->random ^= w->random >> 7;
	w->random ^= w->random << 17;
	return (uint32_t)(w->random >> 32);
}

static bool happens(struct nfc_wire *w, uint32_t chance)
{
	return chance && next(w) < chance;
}

bool nfc_wire_plain(const struct nfc_wire *w)
{
	return !atomic_load_explicit(&w->dated, memory_order_relaxed) &&
	       !w->faults.flip && !w->faults.drop && !w->faults.repeat;
}

/* Room in the ring, by the last read of the head. */
static uint64_t ring_room(const struct nfc_wire *w)
{
	return w->config.words -
	       (atomic_load_explicit(&w->tail, memory_order_relaxed) - w->seen);
}

uint32_t nfc_wire_room(struct nfc_wire *w, uint64_t now)
{
	uint64_t room = ring_room(w), waiting;

	if (room < 2 * NFC_LINK_BURST) {
		w->seen = atomic_load_explicit(&w->head, memory_order_acquire);
		room = ring_room(w);
	}
	if (room < 2) {
		atomic_store(&w->full, true);
		/* SYNC: pump */
		atomic_thread_fence(memory_order_seq_cst);
		w->seen = atomic_load_explicit(&w->head, memory_order_acquire);
		room = ring_room(w);
	}
	if (w->faults.repeat)
		room /= 2; /* each may arrive twice */
	if (!w->config.word_ps)
		return (uint32_t)room;
	waiting = w->free_ps > now * 1000 ?
			  (w->free_ps - now * 1000) / w->config.word_ps :
			  0;
	if (waiting >= w->config.slack)
		return 0;
	if (room > w->config.slack - waiting)
		room = w->config.slack - waiting;
	return (uint32_t)room;
}

uint64_t nfc_wire_again(const struct nfc_wire *w, uint64_t now)
{
	uint64_t some = w->config.slack / 2 * w->config.word_ps;

	if (w->free_ps <= now * 1000 + some)
		return UINT64_MAX;
	return (w->free_ps - some) / 1000 + 1;
}

/* One word, at the end of those that are under way. */
static void append(struct nfc_wire *w, struct nfc_word word, uint64_t due)
{
	uint64_t tail = atomic_load_explicit(&w->tail, memory_order_relaxed);
	uint64_t i = tail & (w->config.words - 1);

	w->word[i] = word;
	w->due[i] = due;
	/* SYNC: wire */
	atomic_store_explicit(&w->tail, tail + 1, memory_order_release);
}

static void put_word(struct nfc_wire *w, struct nfc_word word, uint64_t now)
{
	uint64_t due;

	if (w->free_ps < now * 1000)
		w->free_ps = now * 1000;
	w->free_ps += w->config.word_ps;
	due = w->free_ps / 1000 + w->config.delay_ns;
	if (happens(w, w->faults.stall)) {
		w->stalled++;
		due += w->faults.stall_ns;
	}
	if (due < w->held_ns)
		due = w->held_ns;
	w->held_ns = due;
	if (happens(w, w->faults.drop)) {
		w->dropped++;
		return;
	}
	if (happens(w, w->faults.flip)) {
		uint32_t bit = next(w) % 128;

		w->flipped++;
		if (bit < 64)
			word.lo ^= 1ull << bit;
		else
			word.hi ^= 1ull << (bit - 64);
	}
	append(w, word, due);
	/* the place may have been reserved before this fault was asked for */
	if (happens(w, w->faults.repeat) &&
	    atomic_load(&w->tail) - atomic_load(&w->head) < w->config.words) {
		w->repeated++;
		append(w, word, due);
	}
}

/*
 * Words of a plain wire are written in place, beyond the end of the ring too;
 * those of any other are written aside and put one by one.
 */
static struct nfc_word *reserve(struct nfc_wire *w, uint32_t room, uint32_t *n)
{
	uint64_t tail = atomic_load_explicit(&w->tail, memory_order_relaxed);
	uint32_t first = (uint32_t)(tail & (w->config.words - 1));
	uint32_t most = NFC_LINK_BURST;

	w->aside = !nfc_wire_plain(w);
	if (!w->aside)
		most += w->config.words - first;
	*n = room < most ? room : most;
	return &w->word[w->aside ? w->config.words + NFC_LINK_BURST : first];
}

struct nfc_word *nfc_wire_reserve(struct nfc_wire *w, uint32_t *n, uint64_t now)
{
	uint32_t room = nfc_wire_room(w, now);

	return reserve(w, room < NFC_LINK_BURST ? room : NFC_LINK_BURST, n);
}

struct nfc_word *nfc_wire_reserve_all(struct nfc_wire *w, uint32_t *n,
				      uint64_t now)
{
	w->seen = atomic_load_explicit(&w->head, memory_order_acquire);
	return reserve(w, nfc_wire_room(w, now), n);
}

void nfc_wire_commit(struct nfc_wire *w, uint32_t n, uint64_t now)
{
	uint64_t tail = atomic_load_explicit(&w->tail, memory_order_relaxed);
	uint32_t words = w->config.words, first = (uint32_t)(tail & (words - 1));

	if (w->aside) {
		for (uint32_t i = 0; i < n; i++)
			put_word(w, w->word[words + NFC_LINK_BURST + i], now);
		return;
	}
	if (first + n > words)
		memcpy(w->word, w->word + words,
		       (first + n - words) * sizeof(*w->word));
	/* SYNC: wire */
	atomic_store_explicit(&w->tail, tail + n, memory_order_release);
}

bool nfc_wire_commit_wakes(struct nfc_wire *w, uint32_t n, uint64_t now)
{
	uint64_t before = atomic_load_explicit(&w->tail, memory_order_relaxed);

	nfc_wire_commit(w, n, now);
	/* SYNC: pump */
	atomic_thread_fence(memory_order_seq_cst);
	return atomic_load_explicit(&w->head, memory_order_relaxed) == before;
}

void nfc_wire_before_waiting(void)
{
	/* SYNC: pump */
	atomic_thread_fence(memory_order_seq_cst);
}

const struct nfc_word *nfc_wire_peek(struct nfc_wire *w, uint32_t *n,
				     uint64_t now)
{
	uint64_t head = atomic_load_explicit(&w->head, memory_order_relaxed);
	/* SYNC: wire */
	uint64_t tail = atomic_load_explicit(&w->tail, memory_order_acquire);
	uint32_t i = (uint32_t)(head & (w->config.words - 1));
	uint32_t run = 0, most = w->config.words - i;

	if (most > tail - head)
		most = (uint32_t)(tail - head);
	*n = most;
	if (atomic_load_explicit(&w->dated, memory_order_relaxed)) {
		while (run < most && w->due[i + run] <= now)
			run++;
		*n = run;
	}
	return &w->word[i];
}

void nfc_wire_release(struct nfc_wire *w, uint32_t n)
{
	uint64_t head = atomic_load_explicit(&w->head, memory_order_relaxed);

	atomic_store_explicit(&w->head, head + n, memory_order_release);
}

bool nfc_wire_release_wakes(struct nfc_wire *w, uint32_t n)
{
	nfc_wire_release(w, n);
	/* SYNC: pump */
	atomic_thread_fence(memory_order_seq_cst);
	return atomic_load_explicit(&w->full, memory_order_relaxed) &&
	       atomic_exchange(&w->full, false);
}

uint64_t nfc_wire_due(struct nfc_wire *w)
{
	uint64_t head = atomic_load_explicit(&w->head, memory_order_relaxed);

	if (head == atomic_load_explicit(&w->tail, memory_order_acquire))
		return UINT64_MAX;
	return atomic_load(&w->dated) ? w->due[head & (w->config.words - 1)] : 0;
}
