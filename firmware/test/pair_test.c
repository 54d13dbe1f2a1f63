// SPDX-License-Identifier: MIT
/* Transfers between hosts: the pages of one meet those of the other, and one commits. */
#include <string.h>

#include "pair_side.h"

enum { KIB = 1024 };

CASE(lists_meet_lists)
{
	static const uint64_t size[] = { 1,	    2,	      PAGE,
					 PAGE + 1,  24 * KIB, 100000,
					 192 * KIB, 500000,   1 << 20 };
	static const uint64_t into[] = { 0, 1, 8, 4095 };

	for (int copies = 0; copies < 2; copies++) {
		struct pair p = pair_copying(pair_hosts, copies);
		uint64_t sum = 0;

		for (size_t i = 0; i < sizeof(size) / sizeof(*size); i++)
			for (int a = 0; a < 16; a++, sum += size[i])
				side_whole(&p, size[i], into[a / 4],
					   into[a % 4]);
		CHECK_EQ(p.near->bad_dma, 0);
		CHECK_EQ(p.near->copied, copies ? sum : 0);
		CHECK_EQ(p.near->dma_bytes, copies ? 0 : 2 * sum);
		pair_works(&p);
		pair_free(&p);
	}
}

/* Which of the two writes runs is its own affair. */
CASE(runs_meet_entries)
{
	struct pair p = pair_new(pair_pages);
	struct side give, take;
	uint64_t run;

	pair_eager(&p);
	give = side_gives(&p, 100000, 0);
	run = nfc_run((uintptr_t)give.buf, 25);
	host_runs(p.near, p.at_near, NFC_H2D, give.id, &run, 1, 0, 0);
	give.sent = 100;
	take = side_takes(&p, 100000, 5);
	side_moved(&give, &take);
	side_fin(&take);
	side_committed(&give);
	pair_free(&p);
}

CASE(an_empty_one_is_an_offer)
{
	struct pair p = pair_new(pair_hosts);
	struct side give = side_gives(&p, 0, 0), take = side_takes(&p, 0, 0);

	host_expect_nothing(p.near, p.at_near);
	side_fin(&take);
	side_committed(&give);
	pair_works(&p);
	pair_free(&p);
}

/* FIN of one that has bytes takes nothing. */
CASE(a_commit_without_the_bytes)
{
	struct pair p = pair_new(pair_hosts);
	struct side give = side_gives(&p, 100000, 0),
		    take = side_takes(&p, 100000, 0);

	side_fin(&take);
	host_expect_nothing(p.near, p.at_near);
	side_moved(&give, &take);
	side_fin(&take);
	side_committed(&give);
	pair_free(&p);
}

/* ---- pages ---- */

static void took(struct side *take)
{
	host_expect_ack(take->rig, take->channel, NFC_TYPE_ACK, NFC_D2H,
			take->id, NFC_STATE_CONSUMED, NFC_OK);
}

static void meet_by_pages(bool copies)
{
	struct pair p = pair_copying(pair_pages, copies);

	pair_eager(&p);
	for (uint64_t size = 1; size <= 3 * PAGE; size += 1234) {
		struct side take = side_posts(&p, size, 3), give, late;

		give = side_gives_pages(&p, size, 5);
		took(&take);
		side_committed(&give);
		CHECK(!memcmp(give.buf, take.buf, size));
		give = side_gives_pages(&p, size, 5);
		late = side_takes(&p, size, 7);
		side_send_eager(p.far, p.at_far, NFC_D2H, late.id, late.buf,
				size);
		took(&late);
		side_committed(&give);
		CHECK(!memcmp(give.buf, late.buf, size));
	}
	pair_works(&p);
	pair_free(&p);
}

CASE(pages_meet_pages)
{
	meet_by_pages(false);
	meet_by_pages(true);
}

CASE(pages_meet_lists)
{
	struct pair p = pair_new(pair_pages);
	struct side give, take;

	pair_eager(&p);
	give = side_gives_pages(&p, 9000, 5);
	take = side_takes(&p, 9000, 0);
	side_moved(&give, &take);
	side_fin(&take);
	side_committed(&give);
	take = side_posts(&p, 16 * KIB, 0);
	give = side_gives(&p, 16 * KIB, 9);
	side_feed(&give);
	took(&take);
	side_committed(&give);
	CHECK(!memcmp(give.buf, take.buf, give.size));
	pair_free(&p);
}

/* Pages for another size are void, as those for a process's transfer are. */
CASE(pages_that_do_not_fit)
{
	struct pair p = pair_new(pair_pages);
	struct side give, take;

	pair_eager(&p);
	side_posts(&p, 100, 0);
	p.far->channel[p.at_far].next[NFC_D2H]--;
	give = side_gives(&p, 200, 0);
	take = side_takes(&p, 200, 0);
	side_moved(&give, &take);
	side_fin(&take);
	side_committed(&give);
	give = side_gives(&p, 100, 0);
	take = side_takes(&p, 100, 0);
	host_put(p.far, p.at_far, NFC_TYPE_EAGER, NFC_LIST_D2H | 1, take.id,
		 &(struct nfc_eager){ .transaction = take.id, .size = 100 });
	side_failed(&take, NFC_TYPE_ERROR, NFC_EPROTO);
	side_failed(&give, NFC_TYPE_ERROR, NFC_EABORTED);
	pair_works(&p);
	pair_free(&p);
}

/*
 * A host with posted pages may not wait for lists without an end: its device
 * would count as lost.
 */
CASE(pages_wait_so_long_for_lists)
{
	struct pair p = pair_new(pair_pages);
	struct side give, take;

	pair_eager(&p);
	take = side_posts(&p, 12 * KIB, 0);
	give = side_gives(&p, 12 * KIB, 0);
	host_expect_nothing(p.far, p.at_far);
	rig_advance(p.near, ANSWER_NS - MS);
	host_expect_nothing(p.far, p.at_far);
	rig_advance(p.near, 2 * MS);
	side_failed(&take, NFC_TYPE_ERROR, NFC_EABORTED);
	side_failed(&give, NFC_TYPE_ERROR, NFC_EABORTED);
	pair_works(&p);
	pair_free(&p);
}

/* ---- copies that fail ---- */

static uint64_t bad_page;
static int bad_status, bad_times;

static int refuse_page(struct rig *r, uint64_t bus, uint64_t length)
{
	(void)r;
	if (bad_page < bus || bad_page >= bus + length || !bad_times)
		return 0;
	bad_times--;
	return bad_status;
}

CASE(a_page_that_cannot_be_reached)
{
	for (int i = 0; i < 4; i++) {
		int far = i % 2;
		struct pair p = pair_copying(pair_hosts, i / 2);
		struct side give = side_gives(&p, 100000, 100);
		struct side take = side_takes(&p, 100000, 3000), *its, *other;

		its = far ? &take : &give;
		other = far ? &give : &take;
		p.near->on_dma = refuse_page;
		bad_page = (uintptr_t)its->buf + 40000;
		bad_status = NFC_EDMA;
		bad_times = -1;
		side_drive(&give, &take);
		rig_step(p.near);
		side_hear(&give);
		CHECK_EQ(its->type, NFC_TYPE_ERROR);
		CHECK_EQ(its->end.status, NFC_EDMA);
		CHECK(its->end.processed <= 40000);
		CHECK_EQ(its->end.lists * 6 + its->end.fault_index,
			 ((uintptr_t)its->buf % PAGE + 40000) / PAGE);
		CHECK_EQ(other->type, NFC_TYPE_ERROR);
		CHECK_EQ(other->end.status, NFC_EABORTED);
		p.near->on_dma = NULL;
		side_whole(&p, 100000, 0, 0);
		pair_free(&p);
	}
}

static void busy_page(bool copies)
{
	struct pair p = pair_copying(pair_hosts, copies);
	struct side give, take;

	p.near->on_dma = refuse_page;
	bad_status = NFC_EBUSY;
	for (int far = 0; far < 2; far++) {
		give = side_gives(&p, 100000, 0);
		take = side_takes(&p, 100000, 0);
		bad_page = (uintptr_t)(far ? take.buf : give.buf) + 30000;
		bad_times = NFC_REPEATS_MAX;
		side_moved(&give, &take);
		side_fin(&take);
		side_committed(&give);
		give = side_gives(&p, 100000, 0);
		take = side_takes(&p, 100000, 0);
		bad_page = (uintptr_t)(far ? take.buf : give.buf) + 30000;
		bad_times = -1;
		side_drive(&give, &take);
		rig_step(p.near);
		side_hear(&give);
		CHECK_EQ(give.end.status, far ? NFC_EABORTED : NFC_EDMA);
		CHECK_EQ(take.end.status, far ? NFC_EDMA : NFC_EABORTED);
	}
	p.near->on_dma = NULL;
	side_whole(&p, 100000, 0, 0);
	pair_free(&p);
}

CASE(a_page_that_is_busy)
{
	busy_page(false);
	busy_page(true);
}

static bool never_copies(void *self, uint32_t to, uint64_t to_bus,
			 uint32_t from, uint64_t from_bus, uint64_t len)
{
	(void)self;
	(void)to;
	(void)from;
	(void)from_bus;
	memset((void *)(uintptr_t)to_bus, 0xee,
	       len); /* nothing is known of them */
	return false;
}

/* As for a host that is far, or where the copy met something. */
CASE(a_port_that_cannot_copy_now)
{
	struct pair p = pair_new(pair_hosts);

	p.near->port.dma_copy = never_copies;
	side_whole(&p, 500000, 1, 4095);
	CHECK_EQ(p.near->dma_bytes, 2 * 500000);
	pair_free(&p);
}

/* ---- invalid slots ---- */

CASE(lists_that_make_no_sense)
{
	static const struct {
		uint64_t entry, number, outstanding;
	} bad[] = {
		{ 0, 0, 95904 }, /* no bytes */
		{ 1, 1, 95904 }, /* another list */
		{ 1, 0, 0 }, /* bytes are missing */
		{ 1, 0, 100000 },
	};

	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
		for (int far = 0; far < 2; far++) {
			struct pair p = pair_new(pair_hosts);
			struct side give = side_gives(&p, 100000, 0);
			struct side take = side_takes(&p, 100000, 0), *liar,
				    *other;
			uint64_t entry;

			liar = far ? &take : &give;
			other = far ? &give : &take;
			entry = bad[i].entry ?
					nfc_entry((uintptr_t)liar->buf, PAGE) :
					0;
			host_list(liar->rig, liar->channel, liar->direction,
				  liar->id, &entry, 1, bad[i].number,
				  bad[i].outstanding);
			side_feed(other);
			side_failed(liar, NFC_TYPE_ERROR, NFC_EPROTO);
			side_failed(other, NFC_TYPE_ERROR, NFC_EABORTED);
			side_whole(&p, 100000, 0, 0);
			pair_works(&p);
			pair_free(&p);
		}
	}
}

/* Lists, and ends, of what does not move. */
CASE(lists_of_nothing)
{
	struct pair p = pair_new(pair_hosts);
	uint64_t entry = nfc_entry(PAGE, PAGE);

	for (uint32_t d = 0; d < 2; d++) {
		for (uint64_t id = 0; id < 3; id++) {
			host_list(p.far, p.at_far, d, id, &entry, 1, 0, 0);
			host_note(p.far, p.at_far, NFC_TYPE_FIN, d, id);
			host_note(p.far, p.at_far, NFC_TYPE_ABORT, d, id);
			host_list(p.near, p.at_near, d, id, &entry, 1, 0, 0);
			host_note(p.near, p.at_near, NFC_TYPE_FIN, d, id);
		}
	}
	host_expect_nothing(p.far, p.at_far);
	host_expect_nothing(p.near, p.at_near);
	side_whole(&p, 100000, 0, 0);
	pair_works(&p);
	pair_free(&p);
}

/* A host may connect to itself; both directions move at a time. */
CASE(both_ends_of_one_host)
{
	struct pair p = pair_listening(pair_pages);
	struct rig *far = p.far;

	p.near = far;
	pair_connect(&p);
	pair_accept(&p);
	host_hello(far, NFC_CAP_EAGER | NFC_CAP_RUNS);
	side_whole(&p, 300000, 1, 2);
	for (int i = 0; i < 3; i++) {
		struct side take = side_posts(&p, 5000, 3);
		struct side give = side_gives_pages(&p, 5000, 5);

		took(&take);
		side_committed(&give);
		CHECK(!memcmp(give.buf, take.buf, 5000));
	}
	p.near = far->main;
	pair_free(&p);
}

CASE(both_directions_at_a_time)
{
	struct pair p = pair_new(pair_hosts), q = p;
	struct side give, take, back, home;

	q.near = p.far;
	q.far = p.near;
	q.at_near = p.at_far;
	q.at_far = p.at_near;
	for (int i = 0; i < 5; i++) {
		give = side_gives(&p, 60000, 0);
		back = side_gives(&q, 60000, 9);
		take = side_takes(&p, 60000, 1);
		home = side_takes(&q, 60000, 2);
		for (int n = 0; n < 2; n++) {
			struct side *all[] = { &give, &back, &take, &home };

			for (int s = 0; s < 4; s++)
				side_feed(all[s]);
			rig_step(p.near);
			for (int s = 0; s < 4; s++) {
				struct nfc_slot slot;

				while (host_take(all[s]->rig, all[s]->channel,
						 &slot)) {
					struct nfc_ack ack;

					memcpy(&ack, slot.payload, sizeof(ack));
					for (int t = 0; t < 4; t++)
						if (all[t]->rig == all[s]->rig &&
						    all[t]->direction ==
							    ack.direction)
							all[t]->allowed = 99,
							all[t]->end = ack;
				}
			}
		}
		CHECK_EQ(take.end.state, NFC_STATE_DONE);
		CHECK_EQ(home.end.state, NFC_STATE_DONE);
		CHECK(!memcmp(give.buf, take.buf, 60000));
		CHECK(!memcmp(back.buf, home.buf, 60000));
		side_fin(&take);
		side_committed(&give);
		side_fin(&home);
		side_committed(&back);
	}
	pair_free(&p);
}
