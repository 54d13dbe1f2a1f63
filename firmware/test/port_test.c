// SPDX-License-Identifier: MIT
/* The port of the rig: islands as fibers, a clock that stands still. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "rig.h"

enum {
	LOOKS_MAX = 100, /* at the clock before an island counts as spinning */
	SPINS_MAX = 2, /* of an island before a step gives up */
	STACK_SIZE = 64 << 10,
};

static uint64_t on_now(void *self)
{
	struct rig *r = self;

	if (fiber_current != &fiber_main && ++r->looks > LOOKS_MAX) {
		for (uint32_t i = 0; i < r->config.islands; i++)
			if (r->island[i].at == NULL)
				r->island[i].at = fiber_current;
		fiber_switch(&fiber_main);
	}
	r->clock += r->tick;
	return r->clock;
}

static void on_sleep(void *self, uint32_t island, uint64_t until_ns)
{
	struct rig *r = self;
	struct rig_island *i = &r->island[island];

	i->asleep = true;
	i->until = until_ns;
	i->at = fiber_current;
	fiber_switch(&fiber_main);
}

static void on_wake(void *self, uint32_t island)
{
	struct rig *r = self;

	r->island[island].woken = true;
}

static void on_ring(void *self, uint32_t host, uint32_t island)
{
	struct rig *r = self;

	CHECK(island < r->config.islands);
	if (CHECK(r->host[host]))
		r->host[host]->rings++;
	if (r->on_rung)
		r->on_rung(r);
}

/* A thread that is no island's waits for them. */
static void on_yield(void *self)
{
	if (fiber_current == &fiber_main)
		rig_step(self);
}

/* CRC32C by its definition. */
static uint32_t on_sum(uint32_t crc, const void *data, uint64_t len)
{
	const uint8_t *byte = data;

	crc = ~crc;
	for (uint64_t i = 0; i < len; i++) {
		crc ^= byte[i];
		for (int bit = 0; bit < 8; bit++)
			crc = crc >> 1 ^ (crc & 1 ? 0x82f63b78 : 0);
	}
	return ~crc;
}

static void on_engines(void *self)
{
	(void)self; /* the island works alone, or a hook calls nfc_dma_step() */
}

static void on_log(void *self, uint32_t host, const char *line, uint64_t len)
{
	struct rig *r = self;

	CHECK(host < r->config.hosts);
	r->logs++;
	snprintf(r->log, sizeof(r->log), "%.*s", (int)len, line);
}

static bool in_seat(struct rig *r, const uint8_t *p, uint64_t length)
{
	for (int i = 0; i < NFC_MEMORY_COUNT; i++) {
		const uint8_t *base = r->seat.memory[i];

		if (p >= base && length <= r->config.memory[i] &&
		    p + length <= base + r->config.memory[i])
			return true;
	}
	return false;
}

/* Device memory of a host, or of one whose process is a guest; or what relays have. */
static bool in_memory(struct rig *r, const uint8_t *p, uint64_t length)
{
	for (int i = 0; i < RIG_HOSTS; i++)
		if (r->main->host[i] && in_seat(r->main->host[i], p, length))
			return true;
	return p >= r->main->dev->relay_room &&
	       length <= NFC_RELAYS * nfc_relay_room(&r->config) &&
	       p + length <= r->main->dev->relay_room +
				     NFC_RELAYS * nfc_relay_room(&r->config);
}

/*
 * Every byte must have been offered. Ranges that touch count as one, so this
 * walks on from the end of the one that holds the start.
 */
static bool in_ranges(struct rig *r, uint64_t bus, uint64_t length)
{
	while (length) {
		uint64_t most = 0;

		for (unsigned int i = 0; i < r->ranges; i++) {
			uint64_t at = bus - r->range[i].bus;

			if (bus >= r->range[i].bus && at < r->range[i].length &&
			    r->range[i].length - at > most)
				most = r->range[i].length - at;
		}
		if (!most)
			return false;
		most = most < length ? most : length;
		bus += most;
		length -= most;
	}
	return true;
}

static int dma_check(struct rig *r, uint32_t host, const void *memory,
		     uint64_t bus, uint64_t length)
{
	unsigned int call = r->dma_calls++;
	struct rig *h = r->host[host];

	if (!h || !length || !in_memory(h, memory, length) ||
	    !in_ranges(h, bus, length)) {
		r->bad_dma++;
		return NFC_EDMA;
	}
	if (r->on_dma)
		return r->on_dma(r, bus, length);
	return call < 64 ? r->dma_script[call] : 0;
}

static int on_dma_read(void *self, uint32_t host, void *to, uint64_t bus,
		       uint64_t len)
{
	struct rig *r = self;
	int rc = dma_check(r, host, to, bus, len);

	if (rc)
		return rc;
	memcpy(to, (const void *)(uintptr_t)bus, len);
	r->dma_bytes += len;
	return 0;
}

static int on_dma_write(void *self, uint32_t host, uint64_t bus,
			const void *from, uint64_t len)
{
	struct rig *r = self;
	int rc = dma_check(r, host, from, bus, len);

	if (rc)
		return rc;
	memcpy((void *)(uintptr_t)bus, from, len);
	r->dma_bytes += len;
	return 0;
}

/* The core moves a refused piece by the two calls above, which note it. */
static bool on_dma_copy(void *self, uint32_t to, uint64_t to_bus, uint32_t from,
			uint64_t from_bus, uint64_t len)
{
	struct rig *r = self;

	if (!r->host[to] || !r->host[from] || to_bus - from_bus < len ||
	    from_bus - to_bus < len || !in_ranges(r->host[to], to_bus, len) ||
	    !in_ranges(r->host[from], from_bus, len))
		return false;
	if (r->on_dma &&
	    (r->on_dma(r, from_bus, len) || r->on_dma(r, to_bus, len)))
		return false;
	memcpy((void *)(uintptr_t)to_bus, (const void *)(uintptr_t)from_bus,
	       len);
	r->copied += len;
	return true;
}

static int on_stack_init(void *self, struct nfc_stack *s,
			 void (*enter)(void *arg), void *arg)
{
	struct rig *r = self;
	struct fiber *f = fiber_new(s->size, enter, arg);

	s->base = f->stack;
	s->port = f;
	r->stacks++;
	return 0;
}

static void on_stack_free(void *self, struct nfc_stack *s)
{
	struct rig *r = self;

	r->stacks--;
	fiber_free(s->port);
	s->base = NULL;
}

static void on_stack_switch(struct nfc_stack *from, struct nfc_stack *to)
{
	from->port = fiber_current; /* the scheduler's is not known before */
	fiber_switch(to->port);
}

static int on_load(void *self, const void *image, uint64_t size,
		   const struct nfc_api *api, struct nfc_image *out)
{
	struct rig *r = self;
	int rc = -NFC_ENOTSUP;

	CHECK_EQ(api->abi, NFC_PROGRAM_ABI);
	CHECK_EQ(api->size, sizeof(*api));
	if (r->load)
		rc = r->load(r, image, size, &out->table);
	out->handle = r;
	r->images += !rc;
	return rc;
}

static void on_unload(void *self, void *handle)
{
	struct rig *r = self;

	CHECK(handle == r);
	r->images--;
}

void *rig_pages(struct rig *r, uint64_t size)
{
	uint64_t whole = (size + RIG_PAGE - 1) & ~(uint64_t)(RIG_PAGE - 1);
	void *p = aligned_alloc(RIG_PAGE, whole);

	if (!p || r->owned_count == RIG_RANGES)
		abort();
	memset(p, 0, whole);
	r->owned[r->owned_count++] = p;
	return p;
}

/* The state of a host. Zeros behind it would hide a device that reads one joint too many. */
static void *host_state(struct rig *r)
{
	uint64_t size = nfc_host_size(&r->config);
	uint8_t *p = rig_pages(r, size + sizeof(struct nfc_joint));

	memset(p + size, 0xa5, sizeof(struct nfc_joint));
	return p;
}

/* Memory for a device, most of which no test touches; none is behind it. */
static void *device_memory(uint64_t size)
{
	uint8_t *p = mmap(NULL, size + RIG_PAGE, PROT_NONE,
			  MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if (p == MAP_FAILED || mprotect(p, size, PROT_READ | PROT_WRITE))
		abort();
	return p;
}

struct island_start {
	struct rig *rig;
	uint32_t island;
};

static void island_main(void *arg)
{
	struct island_start start = *(struct island_start *)arg;

	free(arg);
	nfc_island_run(start.rig->dev, start.island);
	start.rig->island[start.island].done = true;
	fiber_switch(&fiber_main);
}

static void add_islands(struct rig *r)
{
	for (uint32_t i = 0; i < r->config.islands; i++) {
		struct island_start *start = malloc(sizeof(*start));

		*start = (struct island_start){ r, i };
		r->island[i].fiber = fiber_new(0, island_main, start);
		r->island[i].at = r->island[i].fiber;
	}
}

/* The argument is the puppet, if it is one of this rig's. */
static void puppet_main(struct nfc_process *self)
{
	struct rig *r = self->island->dev->port->self;

	r = r->host[self->host->index];
	for (unsigned int i = 0; i < r->owned_count; i++) {
		struct puppet *p = r->owned[i];

		if ((uintptr_t)p != nfc_argument(self))
			continue;
		p->fn(self, p);
		p->done = true;
	}
}

static const struct nfc_program puppets[] = {
	{ NFC_PROGRAM_ABI, 0, "puppet", puppet_main },
	{ 0, 0, NULL, NULL },
};

struct nfc_seat rig_seat(struct rig *r, uint32_t epoch)
{
	struct nfc_seat seat = {
		.area = rig_pages(r, nfc_area_size(&r->config)),
		.state = host_state(r),
		.epoch = epoch,
	};

	for (int i = 0; i < NFC_MEMORY_COUNT; i++)
		seat.memory[i] = rig_pages(r, r->config.memory[i]);
	return seat;
}

struct rig *rig_attach(struct rig *r, uint32_t index)
{
	return rig_attach_part(r, index, 0, 0);
}

struct rig *rig_attach_part(struct rig *r, uint32_t index, uint32_t channels,
			    uint32_t processes)
{
	struct rig *other = calloc(1, sizeof(*other));

	other->main = r;
	other->config = r->config;
	other->seat = rig_seat(r, 40 + index);
	other->seat.channels = channels;
	other->seat.processes = processes;
	other->epoch = other->seat.epoch;
	other->channel = calloc(r->config.channels, sizeof(*other->channel));
	other->channel[0].next[0] = other->channel[0].next[1] = 1;
	other->dev = r->dev;
	other->answer_ns = r->answer_ns;
	r->host[index] = other;
	if (!CHECK_EQ(nfc_host_attach(r->dev, index, &other->seat), 0))
		abort();
	return other;
}

static void free_host(struct rig *other)
{
	for (unsigned int i = 0; i < other->owned_count; i++)
		free(other->owned[i]);
	free(other->channel);
	free(other->received);
	free(other);
}

void rig_detach(struct rig *other)
{
	struct rig *r = other->main;

	for (uint32_t i = 0; i < RIG_HOSTS; i++) {
		if (r->host[i] != other)
			continue;
		nfc_host_detach(r->dev, i);
		r->host[i] = NULL;
	}
	free_host(other);
}

struct rig *rig_new(void (*change)(struct nfc_config *c))
{
	struct rig *r = calloc(1, sizeof(*r));

	r->main = r->host[0] = r;
	r->config = (struct nfc_config){
		.channels = 64,
		.managers = 2,
		.islands = 1,
		.engines_me = 4,
		.contexts = 4,
		.slots = 64,
		.window = 8,
		.beat_ms = 100,
		.stack = STACK_SIZE,
		.memory = { 64 << 10, 64 << 10, 256 << 10, 4 << 20 },
	};
	if (change)
		change(&r->config);
	if (!CHECK_EQ(nfc_config_check(&r->config), 0))
		abort();
	r->seat = rig_seat(r, 7);
	r->epoch = r->seat.epoch;
	r->clock = 1000000000;
	r->answer_ns = 20000;
	r->port = (struct nfc_port){
		.self = r,
		.ring_host = on_ring,
		.dma_read = on_dma_read,
		.dma_write = on_dma_write,
		.dma_copy = on_dma_copy,
		.sum = on_sum,
		.wake_engines = on_engines,
		.yield = on_yield,
		.now = on_now,
		.log = on_log,
		.sleep = on_sleep,
		.wake = on_wake,
		.stack_init = on_stack_init,
		.stack_free = on_stack_free,
		.stack_switch = on_stack_switch,
		.load = on_load,
		.unload = on_unload,
	};
	r->dev = device_memory(nfc_device_size(&r->config));
	r->channel = calloc(r->config.channels, sizeof(*r->channel));
	r->channel[0].next[0] = r->channel[0].next[1] = 1;
	if (!CHECK_EQ(nfc_device_init(r->dev, &r->config, &r->port, &r->seat),
		      0) ||
	    !CHECK_EQ(nfc_device_register(r->dev, puppets), 0))
		abort();
	add_islands(r);
	CHECK(rig_step(r));
	return r;
}

static void resume(struct rig *r, uint32_t index)
{
	struct rig_island *i = &r->island[index];
	struct fiber *at = i->at;

	i->asleep = false;
	i->woken = false;
	i->at = NULL;
	r->looks = 0;
	fiber_switch(at);
}

static bool runnable(struct rig *r, uint32_t index)
{
	struct rig_island *i = &r->island[index];

	if (i->done)
		return false;
	for (int h = 0; h < RIG_HOSTS; h++) {
		const struct nfc_host *host = r->dev->host[h];

		if (host && host->shares[index].there &&
		    !host->area->island[index].word)
			return true;
	}
	return !i->asleep || i->woken || i->until <= r->clock;
}

bool rig_step(struct rig *r)
{
	r = r->main;
	for (int spins = 0; spins < SPINS_MAX;) {
		bool any = false;

		for (uint32_t i = 0; i < r->config.islands; i++) {
			if (!runnable(r, i))
				continue;
			resume(r, i);
			spins += !r->island[i].asleep ||
				 r->island[i].until <= r->clock;
			any = true;
		}
		for (int h = 0; h < RIG_HOSTS; h++)
			if (r->host[h])
				host_drain(r->host[h]);
		if (!any)
			return true;
	}
	return false;
}

void rig_advance(struct rig *r, uint64_t ns)
{
	r->main->clock += ns;
	rig_step(r);
}

void rig_free(struct rig *r)
{
	for (uint32_t i = 1; i < RIG_HOSTS; i++)
		if (r->host[i])
			rig_detach(r->host[i]);
	nfc_device_halt(r->dev);
	rig_step(r);
	for (uint32_t i = 0; i < r->config.islands; i++) {
		CHECK(r->island[i].done || r->may_spin);
		fiber_free(r->island[i].fiber);
	}
	nfc_device_fini(r->dev);
	CHECK_EQ(r->stacks, 0);
	CHECK_EQ(r->images, 0);
	CHECK_EQ(r->bad_dma, 0);
	munmap(r->dev, nfc_device_size(&r->config) + RIG_PAGE);
	for (unsigned int i = 0; i < r->owned_count; i++)
		free(r->owned[i]);
	free(r->channel);
	free(r->received);
	free(r);
}

struct nfc_heartbeat rig_heartbeat(struct rig *r)
{
	struct nfc_area *area = r->seat.area;
	struct nfc_heartbeat beat;

	memcpy(&beat, area->heartbeat.payload, sizeof(beat));
	CHECK_EQ(nfc_header_type(area->heartbeat.header), NFC_TYPE_HEARTBEAT);
	CHECK_EQ(nfc_header_sequence(area->heartbeat.header),
		 beat.beat & 0xffff);
	return beat;
}

uint64_t rig_dropped(struct rig *r)
{
	rig_advance(r, 100000000);
	return rig_heartbeat(r).dropped;
}
