// SPDX-License-Identifier: MIT
/* Links in memory, with a rate, a length and faults where they are asked for. */
#include <stdlib.h>
#include <string.h>

#include "wire.h"

bool nfc_wire_init(struct nfc_wire *w, const struct nfc_wire_config *config)
{
	memset(w, 0, sizeof(*w));
	w->config = *config;
	w->dated = config->word_ps || config->delay_ns;
	w->word = calloc(config->words, sizeof(*w->word));
	w->due = calloc(config->words, sizeof(*w->due));
	if (w->word && w->due)
		return true;
	nfc_wire_free(w);
	return false;
}

void nfc_wire_free(struct nfc_wire *w)
{
	free(w->word);
	free(w->due);
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

/* Is anything about this wire but that it carries words? */
static bool plain(const struct nfc_wire *w)
{
	return !atomic_load_explicit(&w->dated, memory_order_relaxed) &&
	       !w->faults.flip && !w->faults.drop && !w->faults.repeat;
}

uint32_t nfc_wire_room(struct nfc_wire *w, uint64_t now)
{
	uint64_t used = atomic_load_explicit(&w->tail, memory_order_relaxed) -
			atomic_load_explicit(&w->head, memory_order_acquire);
	uint64_t room = w->config.words - used, waiting;

	room /= 2; /* each may come twice */
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
	if (happens(w, w->faults.stall)) {
		w->stalled++;
		w->late_ns += w->faults.stall_ns;
	}
	due = w->free_ps / 1000 + w->config.delay_ns + w->late_ns;
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
	if (happens(w, w->faults.repeat)) {
		w->repeated++;
		append(w, word, due);
	}
}

void nfc_wire_put(struct nfc_wire *w, const struct nfc_word *word, uint32_t n,
		  uint64_t now)
{
	uint64_t tail = atomic_load_explicit(&w->tail, memory_order_relaxed);
	uint32_t first = (uint32_t)(tail & (w->config.words - 1));
	uint32_t run = w->config.words - first < n ? w->config.words - first : n;

	if (!plain(w)) {
		for (uint32_t i = 0; i < n; i++)
			put_word(w, word[i], now);
		return;
	}
	memcpy(&w->word[first], word, run * sizeof(*word));
	memcpy(w->word, word + run, (n - run) * sizeof(*word));
	/* SYNC: wire */
	atomic_store_explicit(&w->tail, tail + n, memory_order_release);
}

uint32_t nfc_wire_take(struct nfc_wire *w, struct nfc_word *word, uint32_t n,
		       uint64_t now)
{
	uint64_t head = atomic_load_explicit(&w->head, memory_order_relaxed);
	/* SYNC: wire */
	uint64_t tail = atomic_load_explicit(&w->tail, memory_order_acquire);
	bool dated = atomic_load_explicit(&w->dated, memory_order_relaxed);
	uint32_t taken = 0;

	if (n > tail - head)
		n = (uint32_t)(tail - head);
	while (taken < n) {
		uint32_t i = (uint32_t)((head + taken) & (w->config.words - 1));
		uint32_t most = n - taken, run = 0;

		if (most > w->config.words - i)
			most = w->config.words - i;
		while (dated && run < most && w->due[i + run] <= now)
			run++;
		if (!dated)
			run = most;
		memcpy(word + taken, &w->word[i], run * sizeof(*word));
		taken += run;
		if (run < most)
			break;
	}
	atomic_store_explicit(&w->head, head + taken, memory_order_release);
	return taken;
}

uint64_t nfc_wire_due(struct nfc_wire *w)
{
	uint64_t head = atomic_load_explicit(&w->head, memory_order_relaxed);

	if (head == atomic_load_explicit(&w->tail, memory_order_acquire))
		return UINT64_MAX;
	return atomic_load(&w->dated) ? w->due[head & (w->config.words - 1)] : 0;
}
