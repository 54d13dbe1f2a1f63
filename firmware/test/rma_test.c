// SPDX-License-Identifier: MIT
/* Windows, and requests as no well-meaning node would send them. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "../port/mesh_state.h"
#include "harness.h"

/* ---- windows ---- */

enum {
	KEYS = 300, /* more than there may be windows */
	PAGES = 5,
};

/* The expected contents of the table. */
struct model {
	uint64_t size[KEYS];
	uint32_t access[KEYS];
	uint8_t memory[KEYS][PAGES][NFC_RMA_PAGE];
	uint32_t windows;
	uint64_t bytes;
};

static uint64_t key_of(uint32_t i)
{
	return 0x1000 + i * 7919ull;
}

static void add_or_remove(struct nfc_rma_table *t, struct model *m, uint32_t i,
			  uint32_t random)
{
	if (m->size[i]) {
		CHECK_EQ(nfc_rma_add(t, key_of(i), 1, NFC_RMA_READ),
			 -NFC_EINVAL);
		CHECK(nfc_rma_remove(t, key_of(i)));
		m->bytes -= m->size[i];
		m->size[i] = 0;
		m->windows--;
		return;
	}
	CHECK(!nfc_rma_remove(t, key_of(i)));
	m->access[i] = 1 + random % 3;
	m->size[i] = 1 + random % (PAGES * NFC_RMA_PAGE);
	if (m->windows == NFC_RMA_WINDOWS) {
		CHECK_EQ(nfc_rma_add(t, key_of(i), m->size[i], m->access[i]),
			 -NFC_ENOMEM);
		m->size[i] = 0;
		return;
	}
	m->windows++;
	m->bytes += m->size[i];
	CHECK_EQ(nfc_rma_add(t, key_of(i), m->size[i], m->access[i]), 0);
	for (uint32_t p = 0; p * NFC_RMA_PAGE < m->size[i]; p++)
		nfc_rma_map(t, key_of(i), p, m->memory[i][p]);
	nfc_rma_map(t, key_of(i), PAGES, m->memory[i][0]); /* none of it */
}

static void check(struct nfc_rma_table *t, struct model *m, uint32_t i,
		  uint64_t offset, uint32_t n, uint32_t access)
{
	uint32_t page = (uint32_t)(offset / NFC_RMA_PAGE), most = n;
	uint8_t *at;
	int why, want = 0;

	if (!m->size[i])
		want = -NFC_ECLOSED;
	else if (!(m->access[i] & access))
		want = -NFC_ENOTSUP;
	else if (offset >= m->size[i] || n > m->size[i] - offset)
		want = -NFC_ERANGE;
	at = nfc_rma_find(t, key_of(i), offset, access, &n, &why);
	CHECK_EQ(why, want);
	if (want) {
		CHECK(!at);
		return;
	}
	CHECK(at == &m->memory[i][page][offset % NFC_RMA_PAGE]);
	CHECK(n && n <= most && offset % NFC_RMA_PAGE + n <= NFC_RMA_PAGE);
}

/*
 * After any sequence of changes each lookup finds the windows that exist, and
 * no others.
 */
CASE(lookups_agree_with_a_model)
{
	struct nfc_rma_table *t = calloc(NFC_RMA_LOOKUPS, sizeof(*t));
	struct model *m = malloc(sizeof(*m));

	for (uint32_t lookup = 0; lookup < NFC_RMA_LOOKUPS; lookup++) {
		uint64_t random = lookup + 1;

		memset(m->size, 0, sizeof(m->size));
		m->windows = 0;
		m->bytes = 0;
		t[lookup].lookup = lookup;
		for (uint32_t n = 0; n < 20000; n++) {
			uint32_t i, r;

			random = random * 6364136223846793005ull + 1442695041;
			i = (uint32_t)(random >> 33) % (n % 3 ? 40 : KEYS);
			r = (uint32_t)(random >> 40);
			if (n % 5 == 0)
				add_or_remove(&t[lookup], m, i, r);
			CHECK_EQ(t[lookup].in_use, m->windows);
			CHECK_EQ(t[lookup].bytes, m->bytes);
			check(&t[lookup], m, i, r % (6 * NFC_RMA_PAGE),
			      1 + r % 5000, 1 + (r >> 13) % 2);
			check(&t[lookup], m, i, UINT64_MAX - r % 9000,
			      1 + r % 5000, 1);
		}
	}
	CHECK(t[NFC_RMA_CACHED].hits > 100);
	CHECK_EQ(t[NFC_RMA_HASHED].hits, 0);
	free(m);
	free(t);
}

CASE(windows_that_make_no_sense)
{
	struct nfc_rma_table *t = calloc(1, sizeof(*t));

	CHECK_EQ(nfc_rma_add(t, 0, 1, 1), -NFC_EINVAL);
	CHECK_EQ(nfc_rma_add(t, 1, 0, 1), -NFC_EINVAL);
	CHECK_EQ(nfc_rma_add(t, 1, 1, 0), -NFC_EINVAL);
	CHECK_EQ(nfc_rma_add(t, 1, NFC_RMA_WINDOW_MAX + 1ull, 1),
		 -NFC_ETOOLARGE);
	CHECK_EQ(nfc_rma_add(t, 1, UINT64_MAX, 1), -NFC_ETOOLARGE);
	CHECK(!nfc_rma_remove(t, 0));
	CHECK_EQ(t->windows + t->leaves, 0);
	for (uint64_t i = 0; i < 5; i++) /* the pool is too small for the last */
		CHECK_EQ(nfc_rma_add(t, i + 1, NFC_RMA_WINDOW_MAX, 1),
			 i < 4 ? 0 : -NFC_ENOMEM);
	CHECK(nfc_rma_remove(t, 2));
	CHECK_EQ(nfc_rma_add(t, 9, NFC_RMA_WINDOW_MAX, 1), 0);
	free(t);
}

/* ---- requests ---- */

/* Node 1 of a mesh, of which node 0 is not as it should be. */
struct rig {
	struct nfc_mesh *m;
	struct nfc_rma *r;
	uint8_t memory[10000];
	uint64_t key;
};

static struct rig *rig_new(void)
{
	struct nfc_mesh_config c = { .node = { .torus = { { 2, 1, 1 } } } };
	struct rig *g = calloc(1, sizeof(*g));

	g->m = nfc_mesh_new(&c, NULL);
	nfc_mesh_step(g->m, 200000000, 100000);
	g->r = g->m->node[1].rma;
	CHECK_EQ(nfc_mesh_window(g->m, 1, g->memory, sizeof(g->memory),
				 NFC_RMA_READ | NFC_RMA_WRITE, &g->key),
		 0);
	return g;
}

static void rig_free(struct rig *g)
{
	nfc_mesh_free(g->m);
	free(g);
}

/* A request as a link delivers it; data: of every byte. */
static void request(struct rig *g, uint8_t kind, uint32_t number,
		    const struct nfc_rma_head *head, uint32_t bytes,
		    uint8_t data)
{
	struct nfc_word word[NFC_PACKET_WORDS * 2] = { 0 };
	struct nfc_fifo f = { .word = word, .size = NFC_PACKET_WORDS * 2 };
	struct nfc_packet p = {
		.to = 1 << 16,
		.from = 0,
		.size = bytes,
		.sequence = number,
		.kind = kind,
	};

	memset(word, data, sizeof(word));
	memcpy(word, head, sizeof(*head));
	nfc_rma_deliver(g->r, &p, &f, 0);
}

static void put(struct rig *g, uint64_t epoch, uint32_t number, uint32_t floor,
		uint64_t offset, uint8_t data)
{
	struct nfc_rma_head head = { g->key, offset, epoch, 16, floor };

	request(g, NFC_RMA_PUT, number, &head, NFC_RMA_HEAD + 16, data);
}

/* A put is done once, in its time: no copy of it undoes later ones. */
CASE(a_put_that_comes_late)
{
	struct rig *g = rig_new();

	put(g, 7, 100, 100, 0, 0xaa);
	CHECK_EQ(g->memory[15], 0xaa);
	CHECK_EQ(g->memory[16], 0);
	put(g, 7, 101, 100, 0, 0xbb); /* beside the first */
	put(g, 7, 100, 100, 0, 0xaa); /* again: its answer was lost */
	CHECK_EQ(g->memory[0], 0xbb);
	CHECK_EQ(g->r->count[NFC_RMA_DOUBLES], 1);
	CHECK_EQ(g->r->count[NFC_RMA_SERVED], 3); /* it is answered again */
	put(g, 7, 110, 105, 0, 0xcc);
	put(g, 7, 104, 100, 0, 0xdd); /* given up long ago */
	put(g, 6, 200, 105, 0, 0xee); /* from the peer's earlier epoch */
	CHECK_EQ(g->memory[0], 0xcc);
	CHECK_EQ(g->r->count[NFC_RMA_STALE], 2);
	put(g, 8, 3, 3, 0, 0x11); /* it started anew */
	put(g, 7, 111, 105, 0, 0x22);
	CHECK_EQ(g->memory[0], 0x11);
	CHECK_EQ(g->r->count[NFC_RMA_STALE], 3);
	rig_free(g);
}

/* Numbers run over; windows of numbers move by any distance. */
CASE(numbers_that_run_over)
{
	struct rig *g = rig_new();
	uint32_t number = UINT32_MAX - 20;

	for (uint32_t i = 0; i < 60; i++, number++) {
		put(g, 1, number, number - 3, 0, (uint8_t)i);
		CHECK_EQ(g->memory[0], i);
	}
	put(g, 1, number + 1000, number + 950, 0, 0x77);
	CHECK_EQ(g->memory[0], 0x77);
	put(g, 1, number + 950 + NFC_RMA_NUMBERS, number + 950, 0, 0x78);
	CHECK_EQ(g->memory[0], 0x77); /* more than may be under way */
	CHECK_EQ(g->r->count[NFC_RMA_MALFORMED], 1);
	CHECK_EQ(g->r->count[NFC_RMA_DOUBLES], 0);
	rig_free(g);
}

/* Wrong lengths, with and without a valid key; an answer nobody asked for. */
CASE(requests_that_lie)
{
	static const uint32_t sizes[] = { 0, 17, 4064, 4065, 4096, UINT32_MAX };
	struct rig *g = rig_new();
	uint8_t before[sizeof(g->memory)];
	uint64_t malformed = 0;

	memcpy(before, g->memory, sizeof(before));
	for (uint32_t i = 0; i < sizeof(sizes) / sizeof(*sizes); i++) {
		struct nfc_rma_head head = { g->key, 0, 1, sizes[i], 1 };

		request(g, NFC_RMA_PUT, 1 + i, &head, NFC_RMA_HEAD + 16, 0xff);
		request(g, NFC_RMA_GET, 1 + i, &head, NFC_RMA_HEAD + 16, 0xff);
		malformed += 2;
		request(g, NFC_RMA_DONE, 1 + i, &head, NFC_RMA_HEAD, 0xff);
		malformed += sizes[i] != 0;
		request(g, NFC_RMA_PUT, 1 + i, &head, 16, 0xff);
		malformed++;
	}
	for (uint32_t i = 0; i < 4; i++) {
		struct nfc_rma_head head = { g->key, sizeof(before) - 15 + i, 1,
					     16, 20 };

		if (i == 3)
			head.offset = UINT64_MAX - 7;
		request(g, NFC_RMA_PUT, 20 + i, &head, NFC_RMA_HEAD + 16, 0xff);
	}
	CHECK_EQ(g->r->count[NFC_RMA_MALFORMED], malformed);
	CHECK_EQ(g->r->count[NFC_RMA_REFUSED], 4);
	CHECK(!memcmp(before, g->memory, sizeof(before)));
	rig_free(g);
}

/*
 * A node that requests more answers than there is room for has some dropped, no
 * more.
 */
CASE(answers_without_room)
{
	struct rig *g = rig_new();
	struct nfc_rma_head head = { g->key, 0, 1, 4000, 0 };

	for (uint32_t i = 0; i < 1000; i++)
		request(g, NFC_RMA_GET, i % NFC_RMA_NUMBERS, &head,
			NFC_RMA_HEAD, 0);
	CHECK(g->r->count[NFC_RMA_CROWDED] > 0);
	nfc_mesh_step(g->m, 100000000, 1000);
	CHECK_EQ(g->r->count[NFC_RMA_CROWDED] + g->r->count[NFC_RMA_SERVED],
		 1000);
	rig_free(g);
}

/* An operation, and which one of all it ended as. */
struct asked {
	struct nfc_rma_op op;
	uint32_t *ended; /* how many have */
	uint32_t order; /* from 1 on */
};

static void asked_ended(struct nfc_rma_op *op)
{
	struct asked *a = (struct asked *)op;

	a->order = ++*a->ended;
}

enum {
	LARGE = 200 * NFC_RMA_PIECE, /* bytes of a large operation */
	LARGES = 8,
};

/* Large operations of some callers, and then a small one: all continue a piece at a time. */
CASE(a_small_operation_behind_large_ones)
{
	struct rig *g = rig_new();
	struct nfc_rma *r = g->m->node[0].rma;
	uint8_t *memory = calloc(2, LARGE);
	struct asked all[LARGES + 1];
	uint32_t ended = 0;
	uint64_t key;

	CHECK_EQ(nfc_mesh_window(g->m, 1, memory, LARGE,
				 NFC_RMA_READ | NFC_RMA_WRITE, &key),
		 0);
	for (uint32_t i = 0; i <= LARGES; i++) {
		all[i] = (struct asked){ .ended = &ended };
		all[i].op = (struct nfc_rma_op){
			.to = 1,
			.put = i % 2,
			.key = key,
			.size = i < LARGES ? LARGE : 8,
			.data = memory + LARGE,
			.ended = asked_ended,
		};
		nfc_rma_begin(r, &all[i].op);
	}
	for (uint32_t i = 0; i < 100000 && !ended; i++)
		nfc_mesh_step(g->m, 1000, 1000);
	CHECK_EQ(all[LARGES].order, 1);
	CHECK(r->count[NFC_RMA_BYTES] < LARGE / 2);
	for (uint32_t i = 0; i < 10000 && ended <= LARGES; i++)
		nfc_mesh_step(g->m, 100000, 1000);
	CHECK_EQ(ended, LARGES + 1);
	for (uint32_t i = 0; i <= LARGES; i++)
		CHECK_EQ(all[i].op.status, 0);
	free(memory);
	rig_free(g);
}

/* A node's own windows are as near as they can be: nothing waits for time to pass. */
CASE(large_operations_of_a_node_with_itself)
{
	struct rig *g = rig_new();
	uint8_t *memory = calloc(2, LARGE);
	struct asked all[2] = { 0 };
	uint32_t ended = 0;
	uint64_t key;

	CHECK_EQ(nfc_mesh_window(g->m, 1, memory, LARGE,
				 NFC_RMA_READ | NFC_RMA_WRITE, &key),
		 0);
	for (uint32_t i = 0; i < 2; i++) {
		all[i].ended = &ended;
		all[i].op = (struct nfc_rma_op){
			.to = 1,
			.put = i,
			.key = key,
			.size = LARGE,
			.data = memory + LARGE,
			.ended = asked_ended,
		};
		nfc_rma_begin(g->r, &all[i].op);
	}
	nfc_mesh_kick(&g->m->node[1]);
	nfc_mesh_step(g->m, 2000000,
		      1000); /* a fifth of what a repeat waits for */
	CHECK_EQ(ended, 2);
	CHECK_EQ(all[0].op.status | all[1].op.status, 0);
	free(memory);
	rig_free(g);
}

/* One at a time, from node 0; how it ended. */
static int ask(struct rig *g, bool put, uint64_t key, uint64_t offset,
	       uint8_t *data, uint64_t size)
{
	struct nfc_mesh_op *op = nfc_mesh_begin(
		g->m, 0,
		&(struct nfc_rma_op){ .to = 1,
				      .put = put,
				      .key = key,
				      .offset = offset,
				      .size = size,
				      .data = data });

	while (!nfc_mesh_poll(op, 0))
		nfc_mesh_step(g->m, 100000, 1000);
	return nfc_mesh_finish(op);
}

/* A caller whose own memory cannot be reached: its operation ends, and others continue. */
CASE(an_operation_of_memory_that_is_not_there)
{
	struct rig *g = rig_new();
	uint64_t size = 2ull * NFC_RMA_PAGE;
	uint8_t *memory = mmap(NULL, size, PROT_READ | PROT_WRITE,
			       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	mprotect(memory + NFC_RMA_PAGE, NFC_RMA_PAGE, PROT_NONE);
	for (uint32_t put = 0; put < 2; put++) {
		CHECK_EQ(ask(g, put, g->key, 0, memory, size), -NFC_EDMA);
		CHECK_EQ(ask(g, put, g->key, 0, memory + NFC_RMA_PAGE, 1),
			 -NFC_EDMA);
		CHECK_EQ(ask(g, put, g->key, 0, memory, NFC_RMA_PAGE), 0);
	}
	munmap(memory, size);
	rig_free(g);
}

/* Memory whose owner had a part of it vanish ends what needs that, and nothing else. */
CASE(a_window_of_memory_that_is_not_there)
{
	struct rig *g = rig_new();
	uint64_t size = 3ull * NFC_RMA_PAGE, key;
	uint8_t data[4], *memory = mmap(NULL, size, PROT_READ | PROT_WRITE,
					MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	CHECK_EQ(nfc_mesh_window(g->m, 1, memory, size,
				 NFC_RMA_READ | NFC_RMA_WRITE, &key),
		 0);
	mprotect(memory + NFC_RMA_PAGE, NFC_RMA_PAGE, PROT_NONE);
	memset(data, 7, sizeof(data));
	for (uint64_t at = 0; at < size; at += NFC_RMA_PAGE / 2) {
		bool there = at / NFC_RMA_PAGE != 1;

		CHECK_EQ(ask(g, true, key, at, data, sizeof(data)),
			 there ? 0 : -NFC_EDMA);
		CHECK_EQ(ask(g, false, key, at, data, sizeof(data)),
			 there ? 0 : -NFC_EDMA);
	}
	CHECK_EQ(ask(g, true, key, NFC_RMA_PAGE - 2, data, sizeof(data)),
		 -NFC_EDMA);
	CHECK_EQ(ask(g, true, g->key, 0, data, sizeof(data)), 0);
	CHECK_EQ(memory[0], 7);
	CHECK_EQ(g->memory[3], 7);
	mprotect(memory, size,
		 PROT_READ); /* as a file that is not to be written */
	CHECK_EQ(ask(g, true, key, 0, data, sizeof(data)), -NFC_EDMA);
	CHECK_EQ(ask(g, false, key, NFC_RMA_PAGE - 2, data, sizeof(data)), 0);
	munmap(memory, size);
	rig_free(g);
}
