// SPDX-License-Identifier: MIT
/*
 * Windows of memory: a hash of keys, a page table for each window, and before both
 * a cache of the pages that were used last.
 */
#include "rma.h"

static uint32_t hash(uint64_t x, uint32_t size)
{
	x *= 0x9e3779b97f4a7c15ull;
	return (uint32_t)(x >> 40) & (size - 1);
}

static struct nfc_rma_window *find_hashed(struct nfc_rma_table *t, uint64_t key)
{
	uint32_t i = t->bucket[hash(key, NFC_RMA_WINDOWS)];

	while (i && t->window[i - 1].key != key)
		i = t->window[i - 1].next;
	return i ? &t->window[i - 1] : NULL;
}

static struct nfc_rma_window *find_linear(struct nfc_rma_table *t, uint64_t key)
{
	for (uint32_t i = 0; i < NFC_RMA_WINDOWS; i++)
		if (t->window[i].key == key)
			return &t->window[i];
	return NULL;
}

static uint64_t leaves(uint64_t size)
{
	return (size + (uint64_t)NFC_RMA_PAGE * NFC_RMA_LEAF - 1) /
	       ((uint64_t)NFC_RMA_PAGE * NFC_RMA_LEAF);
}

static void free_leaves(struct nfc_rma_table *t, struct nfc_rma_window *w)
{
	for (uint32_t i = 0; i < NFC_RMA_LEAVES && w->leaf[i]; i++) {
		t->next_leaf[w->leaf[i] - 1] = t->free_leaf;
		t->free_leaf = w->leaf[i];
		w->leaf[i] = 0;
	}
}

/* One that was used before, or one that never was; 0: there is none. */
static uint16_t take_leaf(struct nfc_rma_table *t)
{
	uint16_t i = t->free_leaf;

	if (i)
		t->free_leaf = t->next_leaf[i - 1];
	else if (t->leaves < NFC_RMA_POOL)
		i = ++t->leaves;
	if (i)
		__builtin_memset(t->leaf[i - 1], 0, sizeof(t->leaf[0]));
	return i;
}

static bool take_leaves(struct nfc_rma_table *t, struct nfc_rma_window *w,
			uint64_t n)
{
	for (uint32_t i = 0; i < n; i++) {
		w->leaf[i] = take_leaf(t);
		if (!w->leaf[i]) {
			free_leaves(t, w);
			return false;
		}
	}
	return true;
}

static struct nfc_rma_window *free_window(struct nfc_rma_table *t)
{
	if (t->free_window)
		return &t->window[t->free_window - 1];
	return t->windows < NFC_RMA_WINDOWS ? &t->window[t->windows] : NULL;
}

int nfc_rma_add(struct nfc_rma_table *t, uint64_t key, uint64_t size,
		uint32_t access)
{
	uint16_t *bucket = &t->bucket[hash(key, NFC_RMA_WINDOWS)];
	struct nfc_rma_window *w = free_window(t);

	if (size > NFC_RMA_WINDOW_MAX)
		return -NFC_ETOOLARGE;
	if (!key || !size || !access || find_hashed(t, key))
		return -NFC_EINVAL;
	if (!w || !take_leaves(t, w, leaves(size)))
		return -NFC_ENOMEM;
	if (t->free_window)
		t->free_window = w->next;
	else
		t->windows++;
	w->key = key;
	w->size = size;
	w->access = access;
	w->next = *bucket;
	*bucket = (uint16_t)(w - t->window + 1);
	t->in_use++;
	t->bytes += size;
	return 0;
}

static uint8_t **page_entry(struct nfc_rma_table *t,
			    const struct nfc_rma_window *w, uint64_t page)
{
	uint32_t leaf = w->leaf[page / NFC_RMA_LEAF];

	return &t->leaf[leaf - 1][page % NFC_RMA_LEAF];
}

void nfc_rma_map(struct nfc_rma_table *t, uint64_t key, uint64_t page,
		 uint8_t *at)
{
	const struct nfc_rma_window *w = find_hashed(t, key);

	if (w && page < (w->size + NFC_RMA_PAGE - 1) / NFC_RMA_PAGE)
		*page_entry(t, w, page) = at;
}

bool nfc_rma_remove(struct nfc_rma_table *t, uint64_t key)
{
	uint16_t *link = &t->bucket[hash(key, NFC_RMA_WINDOWS)], i;
	struct nfc_rma_window *w;

	while (*link && t->window[*link - 1].key != key)
		link = &t->window[*link - 1].next;
	if (!*link || !key)
		return false;
	i = *link;
	w = &t->window[i - 1];
	*link = w->next;
	free_leaves(t, w);
	t->in_use--;
	t->bytes -= w->size;
	w->key = 0;
	w->next = t->free_window;
	t->free_window = i;
	for (uint32_t e = 0; e < NFC_RMA_CACHE; e++)
		if (t->cache[e].key == key)
			t->cache[e].key = 0;
	return true;
}

/* Walk the tables for a page; false: there is no such window. */
static bool walk(struct nfc_rma_table *t, uint64_t key, uint64_t page,
		 struct nfc_rma_entry *e)
{
	const struct nfc_rma_window *w = t->lookup == NFC_RMA_LINEAR ?
						 find_linear(t, key) :
						 find_hashed(t, key);

	if (!w)
		return false;
	e->key = 0;
	e->size = w->size;
	e->access = w->access;
	e->at = page * NFC_RMA_PAGE < w->size ? *page_entry(t, w, page) : NULL;
	if (e->at) {
		e->key = key;
		e->page = page;
	}
	return true;
}

uint8_t *nfc_rma_find(struct nfc_rma_table *t, uint64_t key, uint64_t offset,
		      uint32_t access, uint32_t *n, int *why)
{
	uint64_t page = offset / NFC_RMA_PAGE;
	uint32_t in = offset % NFC_RMA_PAGE;
	struct nfc_rma_entry walked, *e = &walked;

	*why = -NFC_ECLOSED;
	if (!key)
		return NULL;
	if (t->lookup == NFC_RMA_CACHED)
		e = &t->cache[hash(key ^ page << 20, NFC_RMA_CACHE)];
	if (t->lookup == NFC_RMA_CACHED && e->key == key && e->page == page) {
		t->hits++;
	} else {
		t->misses++;
		if (!walk(t, key, page, e))
			return NULL;
	}
	*why = e->access & access ? -NFC_ERANGE : -NFC_ENOTSUP;
	if (!(e->access & access) || *n > e->size || offset > e->size - *n ||
	    !e->at)
		return NULL;
	if (*n > NFC_RMA_PAGE - in)
		*n = NFC_RMA_PAGE - in;
	*why = 0;
	return e->at + in;
}
