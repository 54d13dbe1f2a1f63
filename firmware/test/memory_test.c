// SPDX-License-Identifier: MIT
/* Device memory: the edges of each type, and what the allocator gives. */
#include <string.h>

#include "rig.h"

static uint64_t base(uint64_t type)
{
	return type << NFC_MEMORY_SHIFT;
}

/* A range is memory or it is not: at each edge of each type. */
CASE(edges_of_each_type)
{
	struct rig *r = rig_new(NULL);
	struct nfc_host *host = r->dev->host[0];

	for (uint64_t type = 0; type < NFC_MEMORY_COUNT; type++) {
		uint64_t size = r->config.memory[type], at = base(type);
		uint8_t *memory = r->seat.memory[type];

		CHECK(nfc_memory_at(host, at, size) == memory);
		CHECK(nfc_memory_at(host, at, 0) == memory);
		CHECK(nfc_memory_at(host, at, 1) == memory);
		CHECK(nfc_memory_at(host, at + size - 1, 1) == memory + size - 1);
		CHECK(!nfc_memory_at(host, at, size + 1));
		CHECK(!nfc_memory_at(host, at + 1, size));
		CHECK(!nfc_memory_at(host, at + size, 1));
		CHECK(!nfc_memory_at(host, at + size - 1, 2));
		CHECK(!nfc_memory_at(host, at + size - 1, UINT64_MAX));
		CHECK(!nfc_memory_at(host, at, UINT64_MAX));
		if (type)
			CHECK(!nfc_memory_at(host, at - 1, 1));
	}
	rig_free(r);
}

CASE(addresses_over_40_bits)
{
	struct rig *r = rig_new(NULL);

	for (uint64_t bit = 40; bit < 64; bit++)
		CHECK(!nfc_memory_at(r->dev->host[0], 1ull << bit, 1));
	CHECK(!nfc_memory_at(r->dev->host[0], UINT64_MAX, 1));
	CHECK(!nfc_memory_at(r->dev->host[0], UINT64_MAX, 0));
	CHECK(!nfc_memory_at(r->dev->host[0], UINT64_MAX - 4095, 4096));
	rig_free(r);
}

CASE(allocations_are_pages_apart)
{
	struct rig *r = rig_new(NULL);
	uint64_t at[64], size[64];

	for (uint64_t i = 0; i < 64; i++) {
		size[i] = 1 + i * 997;
		at[i] = nfc_memory_alloc(r->dev->host[0], 1, NFC_EMEM, size[i]);
		CHECK(at[i] && at[i] % RIG_PAGE == 0);
		CHECK(nfc_memory_at(r->dev->host[0], at[i], size[i]) != NULL);
		for (uint64_t j = 0; j < i; j++)
			CHECK(at[j] + size[j] <= at[i] ||
			      at[i] + size[i] <= at[j]);
	}
	rig_free(r);
}

CASE(allocations_that_are_refused)
{
	struct rig *r = rig_new(NULL);
	uint64_t size = r->config.memory[NFC_EMEM];

	CHECK_EQ(nfc_memory_alloc(r->dev->host[0], 1, NFC_EMEM, 0), 0);
	CHECK_EQ(nfc_memory_alloc(r->dev->host[0], 1, NFC_EMEM, size + 1), 0);
	CHECK_EQ(nfc_memory_alloc(r->dev->host[0], 1, NFC_EMEM, UINT64_MAX), 0);
	CHECK_EQ(nfc_memory_alloc(r->dev->host[0], 1, NFC_EMEM,
				  UINT64_MAX - 4094),
		 0);
	CHECK_EQ(nfc_memory_alloc(r->dev->host[0], 1, NFC_MEMORY_COUNT, 1), 0);
	CHECK_EQ(nfc_memory_alloc(r->dev->host[0], 1, (enum nfc_memory) - 1, 1),
		 0);
	rig_free(r);
}

/* Each type is given out to its last page, and given out again when freed. */
CASE(memory_runs_out_and_comes_back)
{
	struct rig *r = rig_new(NULL);

	for (uint64_t type = 0; type < NFC_MEMORY_COUNT; type++) {
		uint64_t free = nfc_memory_available(r->dev->host[0], type),
			 pages = 0;
		uint64_t first = nfc_memory_alloc(r->dev->host[0], 1, type, 1),
			 at = first;

		while (at) {
			CHECK_EQ(at >> NFC_MEMORY_SHIFT, type);
			pages++;
			at = nfc_memory_alloc(r->dev->host[0], 1, type,
					      RIG_PAGE);
			if (pages > 2048)
				break;
		}
		/* Either every page is out, or the table of blocks is full. */
		CHECK(pages == free / RIG_PAGE || pages >= NFC_BLOCKS);
		CHECK_EQ(nfc_memory_available(r->dev->host[0], type),
			 free - pages * RIG_PAGE);
		nfc_memory_free(r->dev->host[0], 1, first);
		CHECK_EQ(nfc_memory_alloc(r->dev->host[0], 1, type, 1), first);
		nfc_memory_free(r->dev->host[0], 1, 0);
		CHECK_EQ(nfc_memory_available(r->dev->host[0], type), free);
	}
	rig_free(r);
}

CASE(a_hole_is_filled_only_by_what_fits)
{
	struct rig *r = rig_new(NULL);
	uint64_t a = nfc_memory_alloc(r->dev->host[0], 1, NFC_EMEM,
				      2 * RIG_PAGE);
	uint64_t b = nfc_memory_alloc(r->dev->host[0], 1, NFC_EMEM, 1);
	uint64_t c;

	nfc_memory_free(r->dev->host[0], 1, a);
	c = nfc_memory_alloc(r->dev->host[0], 1, NFC_EMEM, 3 * RIG_PAGE);
	CHECK(c > b);
	CHECK_EQ(nfc_memory_alloc(r->dev->host[0], 1, NFC_EMEM, 2 * RIG_PAGE),
		 a);
	rig_free(r);
}

/* Nobody frees what is not its own, or twice. */
CASE(frees_that_make_no_sense)
{
	struct rig *r = rig_new(NULL);
	uint64_t free = nfc_memory_available(r->dev->host[0], NFC_EMEM);
	uint64_t a = nfc_memory_alloc(r->dev->host[0], 1, NFC_EMEM, RIG_PAGE);

	nfc_memory_free(r->dev->host[0], 2, a);
	nfc_memory_free(r->dev->host[0], 1, a + 1);
	nfc_memory_free(r->dev->host[0], 1, UINT64_MAX);
	nfc_memory_free(r->dev->host[0], 2, 0);
	CHECK_EQ(nfc_memory_available(r->dev->host[0], NFC_EMEM),
		 free - RIG_PAGE);
	nfc_memory_free(r->dev->host[0], 1, a);
	nfc_memory_free(r->dev->host[0], 1, a);
	CHECK_EQ(nfc_memory_available(r->dev->host[0], NFC_EMEM), free);
	rig_free(r);
}

/* As a process sees it. */
static void uses_memory(struct nfc_process *self, struct puppet *p)
{
	uint64_t a = nfc_alloc(self, NFC_CTM, 100);
	uint8_t *at = nfc_at(self, a, 100);

	note(p, a != 0 && at != NULL);
	if (at)
		memset(at, 1, 100);
	nfc_free(self, 0); /* nothing */
	note(p, nfc_at(self, a, 1 << 20) == NULL);
	nfc_free(self, a);
	note(p, nfc_alloc(self, NFC_CTM, 1) == a);
	note(p, nfc_ports(self) == 1 && !nfc_channel_of(self, 1));
	stay(self);
}

CASE(a_process_uses_memory)
{
	struct rig *r = rig_new(NULL);
	struct puppet *p = host_start(r, uses_memory, 1);

	rig_step(r);
	CHECK_EQ(p->step, 4);
	for (int i = 0; i < p->step; i++)
		CHECK_EQ(p->rc[i], 1);
	rig_free(r);
}

static void two_pages(struct nfc_config *c)
{
	c->buffer = 2 * RIG_PAGE;
}

/* A part of two pages for each target, of one type or several. */
static void fills_its_parts(struct nfc_process *self, struct puppet *p)
{
	uint64_t most = nfc_ports(self) * 2 * RIG_PAGE, a;

	note(p, !nfc_alloc(self, NFC_EMEM, most + 1));
	a = nfc_alloc(self, NFC_EMEM, most - RIG_PAGE);
	note(p, a && !nfc_alloc(self, NFC_CTM, RIG_PAGE + 1));
	note(p, nfc_alloc(self, NFC_CTM, RIG_PAGE) != 0);
	note(p, !nfc_alloc(self, NFC_EMEM, 1));
	nfc_free(self, a);
	note(p, nfc_alloc(self, NFC_EMEM, most - RIG_PAGE) == a);
	stay(self);
}

/* Each process has its own, beside others. Bounds of processes make no device sick. */
CASE(a_target_has_a_part_of_memory)
{
	struct rig *r = rig_new(two_pages);

	for (uint32_t targets = 1; targets <= 3; targets++) {
		struct puppet *p = host_launch(r, 0, fills_its_parts, targets);

		CHECK_EQ(p->step, 5);
		for (int k = 0; k < p->step; k++)
			CHECK_EQ(p->rc[k], 1);
	}
	rig_advance(r, 1000000000);
	CHECK_EQ(rig_heartbeat(r).diagnostic, 1u << NFC_DIAG_VALID_SHIFT);
	rig_free(r);
}

enum { ACCESSES = 8 };

static const uint32_t costs[NFC_MEMORY_COUNT] = { 62, 125, 333, 541 };

static void accesses_cost(struct nfc_config *c)
{
	memcpy(c->access_ns, costs, sizeof(costs));
}

static enum nfc_memory accessed;

static void accesses(struct nfc_process *self, struct puppet *p)
{
	uint64_t at = nfc_alloc(self, accessed, 100);

	for (int i = 0; i < ACCESSES; i++)
		note(p, nfc_at(self, at, 100) != NULL);
	note(p, nfc_at(self, at, 1ull << 40) == NULL); /* no access */
	p->done = true;
}

/* Nanoseconds of the rig's clock that some processes take, each with so many accesses. */
static uint64_t takes(void (*change)(struct nfc_config *c), uint32_t processes)
{
	struct rig *r = rig_new(change);
	struct puppet *p[2];
	uint64_t ns = 0;

	for (uint32_t i = 0; i < processes; i++)
		p[i] = host_launch(r, 0, accesses, 1);
	while (!(p[0]->done && p[processes - 1]->done) && ns < 100000) {
		rig_advance(r, 1);
		ns++;
	}
	for (uint32_t i = 0; i < processes; i++)
		CHECK_EQ(p[i]->step, ACCESSES + 1);
	rig_free(r);
	return ns;
}

/* An access costs what its type does; a second context hides its own behind those of the first. */
CASE(accesses_take_the_time_of_their_type)
{
	for (int type = 0; type < NFC_MEMORY_COUNT; type++) {
		accessed = (enum nfc_memory)type;
		CHECK_EQ(takes(NULL, 1), 0);
		CHECK_EQ(takes(accesses_cost, 1), ACCESSES * costs[type]);
		CHECK_EQ(takes(accesses_cost, 2), ACCESSES * costs[type]);
	}
}
