// SPDX-License-Identifier: MIT
/* Lists whose entries are runs of pages. */
#include <stdio.h>
#include <string.h>

#include "rig.h"

enum {
	SIZE = 3 * RIG_PAGE -
	       100, /* of the bad ones: three pages, the last is cut */
};

static uint64_t want_size;
static uint32_t direction;

static void move(struct nfc_process *self, struct puppet *p)
{
	struct nfc_channel *ch = nfc_channel_of(self, 0);

	p->memory = nfc_alloc(self, NFC_EMEM, want_size);
	p->more = nfc_at(self, p->memory, want_size);
	fill_pattern(p->more, want_size, 2);
	note(p, direction == NFC_H2D ?
			channel_read_ind(ch, p->memory, want_size) :
			channel_write_ind(ch, p->memory, want_size));
	note(p, channel_read(ch, p->buf, sizeof(p->buf)));
	stay(self);
}

static void shape(struct nfc_config *c)
{
	c->window = 8;
	c->runs = 1;
	c->memory[NFC_EMEM] = 16 << 20;
}

static void without(struct nfc_config *c)
{
	shape(c);
	c->runs = 0;
}

/* A transfer both of whose ends are there; lists may follow. */
static struct puppet *begun(struct rig *r, uint32_t way, uint64_t size,
			    uint64_t *id)
{
	struct puppet *p;

	want_size = size;
	direction = way;
	p = host_start(r, move, 1);
	if (way == NFC_H2D) {
		*id = host_begin(r, p->target, size, 0);
		return p;
	}
	*id = r->channel[p->target].next[NFC_D2H]++;
	host_expect(r, p->target, NFC_TYPE_IND_BEGIN, *id);
	return p;
}

/* The next slot from the device, after it had time to put one. */
static bool receive(struct rig *r, struct puppet *p, struct nfc_slot *slot)
{
	rig_step(r);
	return host_take(r, p->target, slot);
}

/* The run from a byte of a buffer to the end of so many pages. */
static uint64_t run_at(const uint8_t *buf, uint64_t pages)
{
	return nfc_run((uintptr_t)buf, pages);
}

static void check_moved(uint32_t way)
{
	struct rig *r = rig_new(shape);
	uint64_t first = 3 * RIG_PAGE - 5, size = first + (1 << 20) + 7, id;
	uint8_t *buf = host_buffer(r, size + 8 * RIG_PAGE, 1) + 5;
	uint8_t *rest = buf + first + 2 * RIG_PAGE;
	struct puppet *p;
	uint64_t run[2] = { run_at(buf, 3), run_at(rest, 257) };

	host_hello(r, NFC_CAP_RUNS);
	p = begun(r, way, size, &id);
	host_runs(r, p->target, way, id, run, 2, 0, 0);
	for (struct nfc_slot slot; receive(r, p, &slot);) {
		const struct nfc_ack *ack = (const void *)slot.payload;

		if (ack->state == NFC_STATE_DONE)
			break;
		CHECK_EQ(ack->state, NFC_STATE_MOVING);
		CHECK_EQ(ack->lists, 0);
		CHECK(ack->processed > first && ack->processed < size);
	}
	CHECK(!memcmp(p->more, buf, first));
	CHECK(!memcmp((uint8_t *)p->more + first, rest, size - first));
	CHECK_EQ(rest[size - first] == 0, false); /* nothing was written there */
	CHECK(r->dma_calls > 4 && r->dma_calls < 32);
	CHECK_EQ(r->dma_bytes, size);
	host_note(r, p->target, NFC_TYPE_FIN, way, id);
	rig_step(r);
	CHECK_EQ(p->rc[0], 0);
	rig_free(r);
}

/* Runs are moved in pieces, and nothing but the bytes of the transfer. */
CASE(runs_are_moved)
{
	check_moved(NFC_H2D);
	check_moved(NFC_D2H);
}

struct spoiled {
	const char *what;
	uint64_t run[3]; /* pages, and where from in the buffer << 32 */
	uint64_t count, outstanding;
	uint64_t change; /* of the first, xored in */
};

#define FROM(at, pages) ((uint64_t)(at) << 32 | (pages))

static const struct spoiled rows[] = {
	{ "a page too many", { FROM(0, 4) }, 1, 0, 0 },
	{ "pages without end", { FROM(0, 65536) }, 1, 0, 0 },
	{ "a run after the last", { FROM(0, 3), FROM(0, 1) }, 2, 0, 0 },
	{ "a short run after the last", { FROM(0, 3), FROM(4090, 1) }, 2, 0, 0 },
	{ "two runs that are cut", { FROM(0, 2), FROM(0, 2) }, 2, 0, 0 },
	{ "a page too few", { FROM(0, 2) }, 1, 0, 0 },
	{ "past 2^48", { FROM(0, 3) }, 1, 0, 0 },
	{ "outstanding of a whole page", { FROM(0, 3) }, 1, 100, 0 },
	{ "no entries", { 0 }, 0, SIZE, 0 },
	{ "an unused entry", { FROM(0, 3), 0, FROM(0, 1) }, 1, 0, 0 },
};

static void send_row(struct rig *r, struct puppet *p, uint64_t id,
		     const uint8_t *buf, const struct spoiled *row)
{
	uint64_t run[3] = { 0 };

	for (int i = 0; i < 3; i++)
		if (row->run[i])
			run[i] = run_at(buf + (row->run[i] >> 32),
					row->run[i] & 0xffffffff);
	if (!strcmp(row->what, "past 2^48"))
		run[0] = nfc_run((1ull << 48) - RIG_PAGE, 3);
	if (row->run[2]) { /* what is not in use must be zero */
		uint64_t payload[7] = { run[0], 0, run[2] };

		host_put(r, p->target, NFC_TYPE_IND_LIST, 1 | NFC_LIST_RUNS, id,
			 payload);
		return;
	}
	host_runs(r, p->target, NFC_H2D, id, run, row->count, 0,
		  row->outstanding);
}

/* The transfer ends, nothing moved, and the channel works on. */
static void check_refused(struct rig *r, struct puppet *p, uint64_t id)
{
	struct nfc_ack ack = host_expect_ack(r, p->target, NFC_TYPE_ERROR,
					     NFC_H2D, id, NFC_STATE_FAILED,
					     NFC_EPROTO);

	CHECK_EQ(ack.processed, 0);
	CHECK_EQ(r->dma_calls, 0);
	CHECK_EQ(p->rc[0], -NFC_EPROTO);
	id = host_direct(r, p->target, "next", 4);
	host_expect_ack(r, p->target, NFC_TYPE_ACK, NFC_H2D, id,
			NFC_STATE_CONSUMED, NFC_OK);
	rig_free(r);
}

CASE(bad_runs)
{
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		struct rig *r = rig_new(shape);
		uint8_t *buf = host_buffer(r, 8 * RIG_PAGE, 1);
		unsigned int before = test_failures();
		struct puppet *p;
		uint64_t id;

		host_hello(r, NFC_CAP_RUNS);
		p = begun(r, NFC_H2D, SIZE, &id);
		send_row(r, p, id, buf, &rows[i]);
		check_refused(r, p, id);
		if (test_failures() != before)
			printf("... where %s\n", rows[i].what);
	}
}

/* Without the capability, on either side, a run is no entry. */
CASE(runs_need_the_capability)
{
	static const struct spoiled good = { "nothing", { FROM(0, 3) }, 1, 0, 0 };

	for (int device = 0; device < 2; device++) {
		struct rig *r = rig_new(device ? shape : without);
		uint8_t *buf = host_buffer(r, 8 * RIG_PAGE, 1);
		struct puppet *p;
		uint64_t id;

		host_hello(r, device ? NFC_CAP_LOAD : NFC_CAP_KNOWN);
		p = begun(r, NFC_H2D, SIZE, &id);
		send_row(r, p, id, buf, &good);
		check_refused(r, p, id);
	}
}

/* Page entries stay good beside runs: a list names its kind. */
CASE(runs_beside_pages)
{
	struct rig *r = rig_new(shape);
	uint64_t size = 5 * RIG_PAGE, id, entry, run;
	uint8_t *buf = host_buffer(r, size, 1);
	struct puppet *p;

	host_hello(r, NFC_CAP_RUNS);
	p = begun(r, NFC_H2D, size, &id);
	entry = nfc_entry((uintptr_t)buf, RIG_PAGE);
	host_list(r, p->target, NFC_H2D, id, &entry, 1, 0, size - RIG_PAGE);
	host_expect_ack(r, p->target, NFC_TYPE_ACK, NFC_H2D, id,
			NFC_STATE_READY, NFC_OK);
	run = run_at(buf + RIG_PAGE, 4);
	host_runs(r, p->target, NFC_H2D, id, &run, 1, 1, 0);
	host_expect_ack(r, p->target, NFC_TYPE_DONE, NFC_H2D, id,
			NFC_STATE_DONE, NFC_OK);
	CHECK(!memcmp(p->more, buf, size));
	rig_free(r);
}

static uint64_t refused, broken_page;

/* Each piece once. */
static int refuse_once(struct rig *r, uint64_t bus, uint64_t length)
{
	(void)r;
	if (bus < refused)
		return 0;
	refused = bus + length;
	return NFC_EBUSY;
}

static int refuse(struct rig *r, uint64_t bus, uint64_t length)
{
	(void)r;
	return broken_page + RIG_PAGE > bus && broken_page < bus + length ?
		       NFC_EDMA :
		       0;
}

/* A repeat continues where the copy was refused: every round moves on. */
CASE(a_run_is_repeated_from_where_it_was)
{
	struct rig *r = rig_new(shape);
	uint64_t size = 8 << 20, id, run, at = 0, repeats = 0;
	uint8_t *buf = host_buffer(r, size, 1);
	struct nfc_slot slot;
	struct puppet *p;

	host_hello(r, NFC_CAP_RUNS);
	p = begun(r, NFC_H2D, size, &id);
	r->on_dma = refuse_once;
	refused = 0;
	run = run_at(buf, size / RIG_PAGE);
	host_runs(r, p->target, NFC_H2D, id, &run, 1, 0, 0);
	while (receive(r, p, &slot)) {
		const struct nfc_ack *ack = (const void *)slot.payload;

		if (ack->state == NFC_STATE_DONE)
			break;
		CHECK_EQ(ack->lists, 0);
		CHECK_EQ(ack->processed + ack->outstanding, size);
		if (ack->state != NFC_STATE_REPEAT)
			continue;
		CHECK(!repeats || ack->processed > at);
		at = ack->processed;
		repeats++;
		host_runs(r, p->target, NFC_H2D, id, &run, 1, 0, 0);
	}
	CHECK(repeats >= 4);
	CHECK(!memcmp(p->more, buf, size));
	rig_free(r);
}

/*
 * A host that copies in rounds gets an ACK for each list to it, and for none to
 * the device.
 */
CASE(each_list_is_reported)
{
	enum { LISTS = 4, LIST = 40 * RIG_PAGE, SIZE = LISTS * LIST };
	struct rig *r = rig_new(shape);
	uint8_t *buf = host_buffer(r, SIZE, 1);

	host_hello(r, NFC_CAP_RUNS | NFC_CAP_ROUNDS);
	for (uint32_t way = NFC_H2D; way <= NFC_D2H; way++) {
		uint64_t id;
		struct puppet *p = begun(r, way, SIZE, &id);
		uint32_t reported = 0;
		struct nfc_ack ack = { 0 };

		for (uint64_t i = 0; i < LISTS; i++) {
			uint64_t run = run_at(buf + i * LIST, 40);

			host_runs(r, p->target, way, id, &run, 1, i,
				  SIZE - (i + 1) * LIST);
		}
		for (struct nfc_slot slot; ack.state != NFC_STATE_DONE;) {
			REQUIRE(receive(r, p, &slot));
			memcpy(&ack, slot.payload, sizeof(ack));
			if (ack.state != NFC_STATE_MOVING)
				continue;
			CHECK_EQ(ack.lists, ++reported);
			CHECK_EQ(ack.processed, reported * LIST);
			CHECK(!memcmp(p->more, buf, ack.processed));
		}
		CHECK_EQ(reported, way == NFC_D2H ? LISTS - 1 : 0);
		CHECK(!memcmp(p->more, buf, SIZE));
	}
	rig_free(r);
}

/* A list that is sent again in another cut is as good, and a shorter one, too. */
CASE(a_repeat_may_be_cut_anew)
{
	struct rig *r = rig_new(shape);
	uint64_t size = 80 * RIG_PAGE, id, run;
	uint8_t *buf = host_buffer(r, size, 1);
	struct nfc_ack ack;
	struct puppet *p;

	host_hello(r, NFC_CAP_RUNS);
	p = begun(r, NFC_H2D, size, &id);
	r->dma_script[3] = NFC_EBUSY;
	run = run_at(buf, 80);
	host_runs(r, p->target, NFC_H2D, id, &run, 1, 0, 0);
	ack = host_expect_ack(r, p->target, NFC_TYPE_ACK, NFC_H2D, id,
			      NFC_STATE_REPEAT, NFC_EBUSY);
	CHECK(ack.processed > 2 * RIG_PAGE);
	for (uint64_t i = 0; i < 2; i++) {
		run = run_at(buf + i * RIG_PAGE, 1);
		host_runs(r, p->target, NFC_H2D, id, &run, 1, i,
			  size - (i + 1) * RIG_PAGE);
	}
	run = run_at(buf + 2 * RIG_PAGE, 78);
	host_runs(r, p->target, NFC_H2D, id, &run, 1, 2, 0);
	host_expect_ack(r, p->target, NFC_TYPE_DONE, NFC_H2D, id,
			NFC_STATE_DONE, NFC_OK);
	CHECK(!memcmp(p->more, buf, size));
	rig_free(r);
}

/* The place where a run cannot be reached is exact. */
CASE(an_unreachable_page_of_a_run)
{
	for (uint64_t k = 0; k < 300; k += 37) {
		struct rig *r = rig_new(shape);
		uint64_t size = 300 * RIG_PAGE, id, run[2];
		uint8_t *buf = host_buffer(r, size, 1);
		struct nfc_slot slot;
		struct nfc_ack ack = { 0 };
		struct puppet *p;

		host_hello(r, NFC_CAP_RUNS);
		p = begun(r, NFC_H2D, size, &id);
		r->on_dma = refuse;
		broken_page = (uintptr_t)buf + k * RIG_PAGE;
		run[0] = run_at(buf, 100);
		run[1] = run_at(buf + 100 * RIG_PAGE, 200);
		host_runs(r, p->target, NFC_H2D, id, run, 2, 0, 0);
		while (receive(r, p, &slot))
			memcpy(&ack, slot.payload, sizeof(ack));
		CHECK_EQ(ack.status, NFC_EDMA);
		CHECK_EQ(ack.processed, k * RIG_PAGE);
		CHECK_EQ(ack.outstanding, size - k * RIG_PAGE);
		CHECK_EQ(ack.lists, 0);
		CHECK_EQ(ack.fault_index, k / 100 ? 1 : 0);
		CHECK_EQ(p->rc[0], -NFC_EDMA);
		broken_page = 0;
		rig_free(r);
	}
}

static struct puppet *victim;
static uint64_t victim_id;

/* The host gives up while the third piece moves. */
static int give_up(struct rig *r, uint64_t bus, uint64_t length)
{
	(void)bus;
	(void)length;
	if (r->dma_calls == 3)
		host_note(r, victim->target, NFC_TYPE_ABORT, NFC_H2D, victim_id);
	return 0;
}

CASE(a_run_is_aborted_in_the_middle)
{
	struct rig *r = rig_new(shape);
	uint64_t size = 8 << 20, run;
	uint8_t *buf = host_buffer(r, size, 1);
	struct nfc_slot slot = { 0 };
	struct nfc_ack ack = { 0 };
	uint64_t last = 0;

	host_hello(r, NFC_CAP_RUNS);
	victim = begun(r, NFC_H2D, size, &victim_id);
	r->on_dma = give_up;
	run = run_at(buf, size / RIG_PAGE);
	host_runs(r, victim->target, NFC_H2D, victim_id, &run, 1, 0, 0);
	while (receive(r, victim, &slot)) {
		memcpy(&ack, slot.payload, sizeof(ack));
		last = nfc_header_type(slot.header);
	}
	CHECK_EQ(last, NFC_TYPE_ABORTED);
	CHECK_EQ(ack.status, NFC_EABORTED);
	CHECK_EQ(ack.processed + ack.outstanding, size);
	CHECK(r->dma_calls < 16);
	CHECK_EQ(victim->rc[0], -NFC_EABORTED);
	rig_free(r);
}

/* One transfer of two lists, of which a piece has to be moved again. */
static void check_sum(uint32_t way, bool summed)
{
	struct rig *r = rig_new(shape);
	uint64_t first = 40 * RIG_PAGE, size = first + (1 << 20) + 7, id;
	uint8_t *buf = host_buffer(r, size + RIG_PAGE, 1);
	uint64_t run[2] = { run_at(buf, 40), run_at(buf + first, 257) };
	struct puppet *p;
	struct nfc_ack ack = { 0 };

	host_hello(r, NFC_CAP_RUNS | NFC_CAP_SUM);
	r->list_flags = summed ? NFC_LIST_SUM : 0;
	p = begun(r, way, size, &id);
	r->dma_script[3] = NFC_EBUSY;
	for (uint32_t sent = 0; ack.state != NFC_STATE_DONE;) {
		struct nfc_slot slot;

		for (; sent < 2; sent++)
			host_runs(r, p->target, way, id, &run[sent], 1, sent,
				  sent ? 0 : size - first);
		REQUIRE(receive(r, p, &slot));
		memcpy(&ack, slot.payload, sizeof(ack));
		if (ack.state == NFC_STATE_REPEAT)
			sent = ack.lists;
	}
	CHECK_EQ(nfc_counter_sum(r->dev->host[0], NFC_COUNT_REPEATS), 1);
	CHECK(!memcmp(p->more, buf, size));
	if (summed)
		CHECK_EQ(ack.fault_index, r->port.sum(0, p->more, size));
	else
		CHECK_EQ(ack.fault_index, 0);
	rig_free(r);
}

/* DONE has the checksum of all bytes in device memory, each once, if it was asked for. */
CASE(the_end_has_a_checksum)
{
	for (uint32_t way = NFC_H2D; way <= NFC_D2H; way++) {
		check_sum(way, true);
		check_sum(way, false);
	}
}

/* Without the capability, on either side, no list asks for a checksum. */
CASE(checksums_need_the_capability)
{
	static const struct spoiled good = { "nothing", { FROM(0, 3) }, 1, 0, 0 };

	for (int device = 0; device < 2; device++) {
		struct rig *r = rig_new(shape);
		uint8_t *buf = host_buffer(r, 8 * RIG_PAGE, 1);
		struct puppet *p;
		uint64_t id;

		host_hello(r, device ? NFC_CAP_RUNS : NFC_CAP_KNOWN);
		if (!device)
			r->port.sum = NULL;
		r->list_flags = NFC_LIST_SUM;
		p = begun(r, NFC_H2D, SIZE, &id);
		send_row(r, p, id, buf, &good);
		check_refused(r, p, id);
	}
}
