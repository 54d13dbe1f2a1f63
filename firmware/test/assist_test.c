// SPDX-License-Identifier: MIT
/* A call of the host that runs an island in place of its thread. */
#include <string.h>

#include "rig.h"

static uint64_t assist_by(struct rig *r, bool exact)
{
	uint64_t undrained = ~0ull;

	CHECK_EQ(nfc_island_assist(r->dev, 0, exact, &undrained),
		 NFC_OWNER_NONE);
	host_drain(r);
	return undrained;
}

/* Run island 0 as a call would; the mailboxes it must drain. */
static uint64_t assist(struct rig *r)
{
	return assist_by(r, true);
}

/* The type of the next message, NFC_TYPE_NONE if there is none. */
static uint32_t next(struct rig *r, uint32_t channel)
{
	struct nfc_slot slot = { 0 };

	if (!host_take(r, channel, &slot))
		return NFC_TYPE_NONE;
	return nfc_header_type(slot.header);
}

static void set_park(struct rig *r, uint32_t channel, uint32_t word)
{
	struct nfc_area *area = r->seat.area;
	uint8_t *base = (uint8_t *)area + area->park_offset;

	atomic_store((_Atomic uint32_t *)base + channel, word);
}

static void read_all(struct nfc_process *self, struct puppet *p)
{
	nfc_prompt(self, p->more != NULL);
	while (channel_read(nfc_channel_of(self, 0), p->buf, sizeof(p->buf)) >= 0)
		p->size++;
}

static struct rig *rig_with(struct puppet **p)
{
	struct rig *r = rig_new(NULL);

	*p = host_start(r, read_all, 1);
	rig_step(r);
	return r;
}

CASE(a_call_has_its_answer_from_itself)
{
	struct rig *r = rig_new(NULL);
	unsigned int rings = r->rings;

	CHECK_EQ(host_open(r, NFC_TARGET_LOOPBACK), 0);
	host_direct(r, NFC_TARGET_LOOPBACK, "x", 1);
	CHECK_EQ(assist(r), 0);
	CHECK_EQ(next(r, NFC_TARGET_LOOPBACK), NFC_TYPE_ACK);
	CHECK_EQ(next(r, NFC_TARGET_LOOPBACK), NFC_TYPE_DIRECT);
	CHECK_EQ(r->rings, rings);
	rig_free(r);
}

CASE(answers_to_sleeping_calls_ring_no_doorbell)
{
	for (int by_thread = 0; by_thread < 2; by_thread++) {
		struct rig *r = rig_new(NULL);
		uint64_t bit = 1ull << NFC_TARGET_LOOPBACK % r->config.managers;
		unsigned int rings;

		CHECK_EQ(host_open(r, NFC_TARGET_LOOPBACK), 0);
		rings = r->rings;
		set_park(r, NFC_TARGET_LOOPBACK, 1);
		host_direct(r, NFC_TARGET_LOOPBACK, "x", 1);
		if (by_thread)
			rig_step(r);
		else
			CHECK_EQ(assist(r), bit);
		CHECK_EQ(r->rings > rings, by_thread);
		rig_free(r);
	}
}

/* Has a message the time of the run that takes it, 1 ms after the last? */
static bool has_its_time(struct rig *r, struct puppet *p, bool exact)
{
	uint64_t id = host_direct(r, p->target, "x", 1);
	struct nfc_ack ack;

	r->clock += 1000000;
	assist_by(r, exact);
	ack = host_expect_ack(r, p->target, NFC_TYPE_ACK, NFC_H2D, id,
			      NFC_STATE_CONSUMED, NFC_OK);
	return ack.now_ns == r->clock && ack.begin_ns == r->clock;
}

CASE(a_run_that_nobody_measures_reads_the_clock_now_and_then)
{
	struct puppet *p;
	struct rig *r = rig_with(&p);
	uint64_t read = 0;

	for (int i = 0; i < 64; i++)
		read += has_its_time(r, p, false);
	CHECK_EQ(read, 4);
	for (int i = 0; i < 20; i++)
		CHECK(has_its_time(r, p, true));
	rig_free(r);
}

CASE(what_may_compute_is_left_to_the_thread)
{
	struct puppet *p;
	struct rig *r = rig_with(&p);

	host_direct(r, p->target, "x", 1);
	assist(r);
	CHECK_EQ(p->size, 0);
	CHECK_EQ(next(r, p->target), NFC_TYPE_ACK);
	rig_step(r);
	CHECK_EQ(p->size, 1);
	rig_free(r);
}

/* Waits for an offer, and takes it when it runs. */
static void poll_first(struct nfc_process *self, struct puppet *p)
{
	struct nfc_channel *ch = nfc_channel_of(self, 0);
	struct nfc_offer offer;

	note(p, channel_offer(ch, &offer));
	note(p, channel_read(ch, p->buf, sizeof(p->buf)));
	stay(self);
}

CASE(a_withdrawal_waits_for_who_was_woken)
{
	struct rig *r = rig_new(NULL);
	struct puppet *p = host_start(r, poll_first, 1);
	uint64_t id;

	rig_step(r);
	id = host_direct(r, p->target, "x", 1);
	host_note(r, p->target, NFC_TYPE_WITHDRAW, NFC_H2D, id);
	assist(r);
	CHECK_EQ(next(r, p->target), NFC_TYPE_NONE);
	rig_step(r);
	host_drain(r);
	CHECK_EQ(next(r, p->target), NFC_TYPE_ACK);
	CHECK_EQ(next(r, p->target), NFC_TYPE_NONE);
	rig_free(r);
}

/* Prompt but for what it does with each message. */
static void compute(struct nfc_process *self, struct puppet *p)
{
	nfc_prompt(self, 1);
	while (channel_read(nfc_channel_of(self, 0), p->buf, sizeof(p->buf)) >=
	       0) {
		p->step++;
		nfc_prompt(self, 0);
		p->size++;
		nfc_prompt(self, 1);
	}
}

CASE(who_takes_its_word_back_moves_to_the_thread)
{
	struct rig *r = rig_new(NULL);
	struct puppet *p = host_start(r, compute, 1);

	rig_step(r);
	host_direct(r, p->target, "x", 1);
	assist(r);
	CHECK_EQ(p->step, 1);
	CHECK_EQ(p->size, 0);
	rig_step(r);
	CHECK_EQ(p->size, 1);
	rig_free(r);
}

/* A prompt process that ends at once. */
static void end_prompt(struct nfc_process *self, struct puppet *p)
{
	(void)p;
	nfc_prompt(self, 1);
}

static void run_once(struct nfc_process *self, struct puppet *p)
{
	p->size++;
	stay(self);
}

CASE(a_process_is_not_prompt_because_the_one_before_it_was)
{
	struct rig *r = rig_new(NULL);
	struct puppet *p = rig_pages(r, sizeof(*p));
	struct nfc_control start = { .op = NFC_CONTROL_START,
				     .b = 1,
				     .c = (uintptr_t)p,
				     .name = "puppet" };

	host_launch(r, 0, end_prompt, 1);
	p->fn = run_once;
	p->rig = r;
	start.request = ++r->request;
	host_direct(r, 0, &start, sizeof(start));
	assist(r);
	assist(r);
	CHECK_EQ(p->size, 0);
	rig_step(r);
	CHECK_EQ(p->size, 1);
	rig_free(r);
}

/* Tries to run the island that runs it. */
static void again(struct nfc_process *self, struct puppet *p)
{
	uint64_t undrained;

	note(p, nfc_island_assist(p->rig->dev, 0, true, &undrained));
	nfc_prompt(self, 1);
	note(p, channel_read(nfc_channel_of(self, 0), p->buf, sizeof(p->buf)));
	note(p, nfc_island_assist(p->rig->dev, 0, true, &undrained));
	stay(self);
}

CASE(an_island_has_one_owner)
{
	struct rig *r = rig_new(NULL);
	struct puppet *p = host_start(r, again, 1);

	rig_step(r);
	host_direct(r, p->target, "x", 1);
	assist(r);
	CHECK_EQ(p->rc[0], NFC_OWNER_THREAD);
	CHECK_EQ(p->rc[2], NFC_OWNER_CALL);
	rig_free(r);
}
