// SPDX-License-Identifier: MIT
/* The rig's host: what a host mailbox manager puts and takes. */
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "rig.h"

static struct nfc_area *area_of(struct rig *r)
{
	return r->seat.area;
}

/* As docs/protocol.md deals channels to islands and mailboxes. */
static uint32_t island_of(struct rig *r, uint32_t channel)
{
	uint32_t islands = r->config.islands;

	return channel / ((r->config.channels + islands - 1) / islands);
}

static uint32_t mailbox_of(struct rig *r, uint32_t channel)
{
	uint32_t each = r->config.managers / r->config.islands;

	return island_of(r, channel) * each + channel % each;
}

static struct nfc_mailbox *mailbox_at(struct rig *r, uint32_t mailbox)
{
	struct nfc_area *area = area_of(r);

	return (struct nfc_mailbox *)((uint8_t *)area + area->mailbox_offset +
				      mailbox * area->mailbox_stride);
}

static struct nfc_slot *h2d_ring(struct rig *r, uint32_t mailbox)
{
	return (struct nfc_slot *)(mailbox_at(r, mailbox) + 1);
}

static struct nfc_slot *d2h_ring(struct rig *r, uint32_t mailbox)
{
	return h2d_ring(r, mailbox) + r->config.slots;
}

static uint64_t lap_phase(struct rig *r, uint64_t index)
{
	return (index / r->config.slots + 1) & 1;
}

/* ---- put ---- */

void host_slot(struct rig *r, const struct nfc_slot *slot, uint32_t channel)
{
	uint32_t index = mailbox_of(r, channel % r->config.channels);
	struct rig_mailbox *mailbox = &r->mailbox[index];
	struct nfc_slot *to = &h2d_ring(r,
					index)[mailbox->tail % r->config.slots];
	uint64_t phase = 1ull << NFC_HDR_PHASE_SHIFT;
	struct nfc_slot copy;
	struct nfc_island_line *line =
		&area_of(r)->island[island_of(r, channel % r->config.channels)];

	for (int tries = 0;; tries++) {
		uint64_t head = atomic_load_explicit(
			(_Atomic uint64_t *)&mailbox_at(r, index)->h2d_head.word,
			memory_order_acquire);

		r->no_room = mailbox->tail - head >= r->config.slots;
		if (!r->no_room)
			break;
		if (tries == 2)
			return;
		rig_step(r);
	}
	copy = *slot;
	if (r->on_put)
		r->on_put(r, &copy);
	copy.header &= ~phase;
	copy.header |= lap_phase(r, mailbox->tail) << NFC_HDR_PHASE_SHIFT;
	memcpy(to->payload, copy.payload, sizeof(copy.payload));
	atomic_store((_Atomic uint64_t *)&to->header, copy.header);
	mailbox->tail++;
	if (!r->silent)
		atomic_fetch_or((_Atomic uint64_t *)&line->news,
				1ull << index % (r->config.managers /
						 r->config.islands));
	atomic_store((_Atomic uint64_t *)&line->word, 0);
}

void host_put(struct rig *r, uint32_t channel, uint32_t type, uint64_t length,
	      uint64_t id, const void *payload)
{
	struct nfc_slot slot = {
		.header = nfc_header(type, length, r->epoch, id, channel),
	};

	if (payload)
		memcpy(slot.payload, payload, NFC_PAYLOAD_SIZE);
	host_slot(r, &slot, channel);
}

uint64_t host_direct(struct rig *r, uint32_t channel, const void *data, size_t n)
{
	uint64_t id = r->channel[channel].next[NFC_H2D]++;
	uint8_t payload[NFC_PAYLOAD_SIZE] = { 0 };

	memcpy(payload, data, n);
	host_put(r, channel, NFC_TYPE_DIRECT, n, id, payload);
	return id;
}

uint64_t host_begin(struct rig *r, uint32_t channel, uint64_t size,
		    uint64_t timeout_ns)
{
	struct nfc_begin begin = {
		.transaction = r->channel[channel].next[NFC_H2D]++,
		.size = size,
		.timeout_ns = timeout_ns,
	};

	host_put(r, channel, NFC_TYPE_IND_BEGIN, NFC_PAYLOAD_SIZE,
		 begin.transaction, &begin);
	return begin.transaction;
}

void host_note(struct rig *r, uint32_t channel, uint32_t type,
	       uint32_t direction, uint64_t id)
{
	struct nfc_note note = { .transaction = id, .direction = direction };

	host_put(r, channel, type, NFC_PAYLOAD_SIZE, id, &note);
}

void host_reply(struct rig *r, uint32_t channel, uint32_t type,
		uint32_t direction, uint64_t id, uint32_t state,
		uint32_t status, uint64_t outstanding)
{
	struct nfc_ack ack = {
		.transaction = id,
		.outstanding = outstanding,
		.state = (uint16_t)state,
		.status = (uint16_t)status,
		.direction = direction,
	};

	host_put(r, channel, type, NFC_PAYLOAD_SIZE, id, &ack);
}

void host_close(struct rig *r, uint32_t channel, uint32_t halves)
{
	struct nfc_close close = {
		.halves = halves,
		.generation = r->channel[channel].generation,
	};

	host_put(r, channel, NFC_TYPE_CLOSE, NFC_PAYLOAD_SIZE, close.generation,
		 &close);
}

void host_offer(struct rig *r, const void *memory, uint64_t length)
{
	if (r->ranges == RIG_RANGES)
		abort();
	r->range[r->ranges].bus = (uintptr_t)memory;
	r->range[r->ranges++].length = length;
}

void host_hello(struct rig *r, uint32_t capabilities)
{
	struct nfc_hello *hello = (void *)area_of(r)->host_hello.payload;

	hello->capabilities = capabilities;
	area_of(r)->host_hello.header = nfc_header(
		NFC_TYPE_HELLO, NFC_PAYLOAD_SIZE, r->epoch, 0, 0);
}

static void put_list(struct rig *r, uint32_t channel, uint32_t flags,
		     uint64_t id, const uint64_t *entry, uint64_t count,
		     uint64_t tail)
{
	uint64_t payload[7] = { 0 };

	for (uint64_t i = 0; i < count && i < NFC_LIST_ENTRIES; i++)
		payload[i] = entry[i];
	payload[6] = tail;
	host_put(r, channel, NFC_TYPE_IND_LIST, count | flags | r->list_flags,
		 id, payload);
}

void host_list(struct rig *r, uint32_t channel, uint32_t direction, uint64_t id,
	       const uint64_t *entry, uint64_t count, uint64_t number,
	       uint64_t outstanding)
{
	put_list(r, channel, direction == NFC_D2H ? NFC_LIST_D2H : 0, id, entry,
		 count,
		 outstanding << NFC_TAIL_OUTSTANDING_SHIFT | (number & 0xffff));
}

void host_runs(struct rig *r, uint32_t channel, uint32_t direction, uint64_t id,
	       const uint64_t *run, uint64_t count, uint64_t number,
	       uint64_t outstanding)
{
	put_list(r, channel,
		 NFC_LIST_RUNS | (direction == NFC_D2H ? NFC_LIST_D2H : 0), id,
		 run, count,
		 outstanding << NFC_TAIL_OUTSTANDING_SHIFT | (number & 0xffff));
}

/* The entry at byte `at` of a buffer. */
static uint64_t entry_at(const uint8_t *buf, uint64_t at, uint64_t size,
			 uint64_t *length)
{
	uint64_t bus = (uintptr_t)buf + at;

	*length = RIG_PAGE - bus % RIG_PAGE;
	if (*length > size - at)
		*length = size - at;
	return nfc_entry(bus, *length);
}

uint64_t host_lists(const void *buf, uint64_t size)
{
	uint64_t first = (uintptr_t)buf % RIG_PAGE;
	uint64_t entries = (first + size + RIG_PAGE - 1) / RIG_PAGE;

	return (entries + NFC_LIST_ENTRIES - 1) / NFC_LIST_ENTRIES;
}

void host_send_lists(struct rig *r, uint32_t channel, uint32_t direction,
		     uint64_t id, const void *buf, uint64_t size,
		     uint64_t first, uint64_t last)
{
	uint64_t at = 0, number = 0;

	while (at < size && number < last) {
		uint64_t entry[NFC_LIST_ENTRIES], count = 0, length;

		while (count < NFC_LIST_ENTRIES && at < size) {
			entry[count++] = entry_at(buf, at, size, &length);
			at += length;
		}
		if (number >= first)
			host_list(r, channel, direction, id, entry, count,
				  number, size - at);
		number++;
	}
}

/* ---- take ---- */

static void keep(struct rig *r, const struct nfc_slot *slot)
{
	if (r->received_count == r->received_room) {
		r->received_room = 2 * r->received_room + 64;
		r->received = realloc(r->received,
				      r->received_room * sizeof(*r->received));
		if (!r->received)
			abort();
	}
	r->received[r->received_count++] = *slot;
}

void host_drain(struct rig *r)
{
	if (r->hold)
		return;
	for (uint32_t i = 0; i < r->config.managers; i++) {
		struct rig_mailbox *mailbox = &r->mailbox[i];
		struct nfc_slot *ring = d2h_ring(r, i);

		for (;;) {
			struct nfc_slot *s = &ring[mailbox->head % r->config.slots];
			uint64_t header = atomic_load(
				(_Atomic uint64_t *)&s->header);

			if (nfc_header_phase(header) !=
			    lap_phase(r, mailbox->head))
				break;
			if (r->on_take)
				r->on_take(r, s);
			keep(r, s);
			mailbox->head++;
		}
		atomic_store((_Atomic uint64_t *)&mailbox_at(r, i)->d2h_head.word,
			     mailbox->head);
	}
}

bool host_take(struct rig *r, uint32_t channel, struct nfc_slot *slot)
{
	for (size_t i = 0; i < r->received_count; i++) {
		if (nfc_header_channel(r->received[i].header) != channel)
			continue;
		*slot = r->received[i];
		memmove(&r->received[i], &r->received[i + 1],
			(--r->received_count - i) * sizeof(*r->received));
		return true;
	}
	return false;
}

struct nfc_slot host_expect(struct rig *r, uint32_t channel, uint32_t type,
			    uint64_t id)
{
	struct nfc_slot slot = { 0 };

	rig_step(r);
	if (!CHECK(host_take(r, channel, &slot)))
		return slot;
	CHECK_EQ(nfc_header_type(slot.header), type);
	CHECK_EQ(nfc_header_sequence(slot.header), id & 0xffff);
	CHECK_EQ(nfc_header_epoch(slot.header), r->seat.epoch & 0xff);
	if (type == NFC_TYPE_IND_BEGIN || type == NFC_TYPE_CLOSE)
		CHECK_EQ(nfc_header_length(slot.header), NFC_PAYLOAD_SIZE);
	return slot;
}

struct nfc_ack host_expect_ack(struct rig *r, uint32_t channel, uint32_t type,
			       uint32_t direction, uint64_t id, uint32_t state,
			       uint32_t status)
{
	struct nfc_slot slot = host_expect(r, channel, type, id);
	struct nfc_ack ack;

	memcpy(&ack, slot.payload, sizeof(ack));
	CHECK_EQ(nfc_header_length(slot.header), NFC_PAYLOAD_SIZE);
	CHECK_EQ(ack.transaction, id);
	CHECK_EQ(ack.direction, direction);
	CHECK_EQ(ack.state, state);
	CHECK_EQ(ack.status, status);
	CHECK(ack.begin_ns <= ack.now_ns);
	return ack;
}

void host_expect_note(struct rig *r, uint32_t channel, uint32_t type,
		      uint32_t direction, uint64_t id)
{
	struct nfc_slot slot = host_expect(r, channel, type, id);
	struct nfc_note note;

	memcpy(&note, slot.payload, sizeof(note));
	CHECK_EQ(nfc_header_length(slot.header), NFC_PAYLOAD_SIZE);
	CHECK_EQ(note.transaction, id);
	CHECK_EQ(note.direction, direction);
	for (int i = 0; i < 5; i++)
		CHECK_EQ(note.rsvd[i], 0);
}

void host_expect_close(struct rig *r, uint32_t channel, uint32_t halves)
{
	uint64_t generation = r->channel[channel].generation;
	struct nfc_slot slot = host_expect(r, channel, NFC_TYPE_CLOSE,
					   generation);
	struct nfc_close close;

	memcpy(&close, slot.payload, sizeof(close));
	CHECK_EQ(close.halves, halves);
	CHECK_EQ(close.generation, generation);
}

void host_expect_nothing(struct rig *r, uint32_t channel)
{
	struct nfc_slot slot = { 0 };

	rig_step(r);
	if (!CHECK(!host_take(r, channel, &slot)))
		printf("unexpected: type %u\n",
		       (unsigned int)nfc_header_type(slot.header));
}

/* ---- a transfer ---- */

struct drive {
	uint64_t lists; /* in all */
	uint64_t sent;
	uint64_t acked;
	uint64_t allowed; /* lists before READY */
};

static void drive_ack(struct rig *r, struct drive *d, const struct nfc_ack *ack)
{
	CHECK(ack->lists <= d->sent);
	if (ack->state == NFC_STATE_READY) {
		d->allowed = d->lists;
	} else if (ack->state == NFC_STATE_REPEAT) {
		d->sent = ack->lists;
		d->acked = ack->lists;
		r->repeats++;
	} else {
		CHECK_EQ(ack->state, NFC_STATE_MOVING);
		CHECK(ack->lists >= d->acked);
		d->acked = ack->lists;
	}
}

struct nfc_ack host_drive(struct rig *r, uint32_t channel, uint32_t direction,
			  uint64_t id, const void *buf, uint64_t size)
{
	struct drive d = { .lists = host_lists(buf, size) };
	struct nfc_ack ack;
	struct nfc_slot slot;

	d.allowed = direction == NFC_H2D ? 1 : d.lists;
	for (int idle = 0; idle < 3; idle++) {
		uint64_t to = d.acked + r->config.window;

		to = to < d.allowed ? to : d.allowed;
		if (d.sent < to) {
			host_send_lists(r, channel, direction, id, buf, size,
					d.sent, to);
			d.sent = to;
		}
		rig_step(r);
		while (host_take(r, channel, &slot)) {
			idle = 0;
			memcpy(&ack, slot.payload, sizeof(ack));
			CHECK_EQ(ack.transaction, id);
			CHECK_EQ(ack.direction, direction);
			if (nfc_header_type(slot.header) != NFC_TYPE_ACK)
				return ack;
			drive_ack(r, &d, &ack);
		}
	}
	return (struct nfc_ack){ .state = UINT16_MAX };
}

/* ---- control ---- */

static struct nfc_control ask(struct rig *r, struct nfc_control request)
{
	struct rig_channel *ch = &r->channel[0];
	struct nfc_control reply = { 0 };
	struct nfc_slot slot;
	uint64_t id;

	request.request = ++r->request;
	id = host_direct(r, 0, &request, sizeof(request));
	host_expect_ack(r, 0, NFC_TYPE_ACK, NFC_H2D, id, NFC_STATE_CONSUMED, 0);
	/* Islands look for each other's answers every now and then. */
	for (int i = 0; i < 10 && r->config.islands > 1; i++)
		rig_advance(r, r->answer_ns);
	id = ch->next[NFC_D2H]++;
	slot = host_expect(r, 0, NFC_TYPE_DIRECT, id);
	CHECK_EQ(nfc_header_length(slot.header), sizeof(reply));
	memcpy(&reply, slot.payload, sizeof(reply));
	host_reply(r, 0, NFC_TYPE_ACK, NFC_D2H, id, NFC_STATE_CONSUMED, 0, 0);
	rig_step(r);
	CHECK_EQ(reply.op, request.op);
	CHECK_EQ(reply.request, request.request);
	return reply;
}

struct nfc_control host_control(struct rig *r, uint32_t op, uint64_t a,
				uint64_t b, uint64_t c, const char *name)
{
	struct nfc_control request = {
		.op = (uint16_t)op, .a = a, .b = b, .c = c
	};

	if (name)
		strncpy((char *)request.name, name, NFC_NAME_SIZE);
	return ask(r, request);
}

struct nfc_control host_control_named(struct rig *r, uint32_t op, uint64_t a,
				      const char name[NFC_NAME_SIZE])
{
	struct nfc_control request = { .op = (uint16_t)op, .a = a };

	memcpy(request.name, name, NFC_NAME_SIZE);
	return ask(r, request);
}

int host_open(struct rig *r, uint32_t target)
{
	struct nfc_control c = host_control(r, NFC_CONTROL_OPEN, target, 0, 0,
					    NULL);

	if (c.status)
		return c.status;
	r->channel[target].next[NFC_H2D] = c.a;
	r->channel[target].next[NFC_D2H] = c.b;
	r->channel[target].generation = c.c;
	return 0;
}

struct puppet *host_launch(struct rig *r, uint32_t first,
			   void (*fn)(struct nfc_process *, struct puppet *),
			   uint32_t ports)
{
	struct puppet *p = rig_pages(r, sizeof(*p));
	struct nfc_control c;

	p->fn = fn;
	p->rig = r;
	c = host_control(r, NFC_CONTROL_START, first, ports, (uintptr_t)p,
			 "puppet");
	CHECK_EQ(c.status, 0);
	p->process = c.a;
	p->target = (uint32_t)c.b;
	return p;
}

struct puppet *host_start(struct rig *r,
			  void (*fn)(struct nfc_process *, struct puppet *),
			  uint32_t ports)
{
	struct puppet *p = host_launch(r, 0, fn, ports);

	for (uint32_t i = 0; i < ports; i++)
		CHECK_EQ(host_open(r, p->target + i), 0);
	return p;
}

void note(struct puppet *p, int rc)
{
	if (p->step == sizeof(p->rc) / sizeof(*p->rc))
		abort();
	p->rc[p->step++] = rc;
}

void ask_often(struct nfc_channel *ch, struct puppet *p, int times)
{
	for (int i = 0; i < times; i++) {
		uint8_t byte = (uint8_t)i;

		CHECK_EQ(channel_write(ch, &byte, 1), 0);
		CHECK_EQ(channel_read(ch, p->buf, sizeof(p->buf)), 1);
		CHECK_EQ(p->buf[0], (uint8_t)(i + 1));
	}
}

void later(struct nfc_process *self)
{
	nfc_sleep(self, 1000000);
}

void stay(struct nfc_process *self)
{
	while (!nfc_stopped(self))
		nfc_sleep(self, 1ull << 60);
}

void go(struct rig *r)
{
	rig_step(r);
	rig_advance(r, 1000000);
}

void fill_pattern(uint8_t *p, uint64_t size, uint64_t seed)
{
	for (uint64_t i = 0; i < size; i++)
		p[i] = (uint8_t)((i * 0x9e3779b97f4a7c15 + seed) >> 56);
}

uint8_t *host_buffer(struct rig *r, uint64_t size, uint64_t seed)
{
	uint8_t *p = rig_pages(r, size ? size : 1);

	fill_pattern(p, size, seed);
	host_offer(r, p, size);
	return p;
}
