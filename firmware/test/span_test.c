// SPDX-License-Identifier: MIT
/* Channels between processes of two nodes while both ends are there. */
#include <string.h>

#include "span_rig.h"

static const uint32_t faults[][3] = { { 0, 0, 0 },
				      { 10, 0, 0 },
				      { 0, 30, 0 },
				      { 0, 0, 20 },
				      { 15, 15, 15 } };

#define UNDER_FAULTS                                                         \
	for (size_t f = 0; f < sizeof(faults) / sizeof(*faults); f++)        \
		for (uint32_t at = HERE; at; at = at == HERE ? THERE : 0)    \
			for (bool once =                                     \
				     (span_begin(faults[f][0], faults[f][1], \
						 faults[f][2]),              \
				      true);                                 \
			     once; span_end(), once = false)

static void wide(struct nfc_config *c)
{
	c->channels = 192;
}

CASE(messages_go_both_ways)
{
	UNDER_FAULTS
	{
		pair_of(at, answers, asks);
		both_done(1, 2);
		CHECK_EQ(caller->rc[1], MANY);
		CHECK_EQ(target->size, MANY);
		CHECK_EQ(target->rc[0], -NFC_ECLOSED);
		CHECK_EQ(rig_dropped(w.rig[0]) + rig_dropped(w.rig[1]), 0);
		lossy_calm();
		span_pass(SECOND / 10);
		span_check_free(1, at);
	}
}

/* The memory of a transfer that is over is not reached from the other node any more. */
static void check_hidden(void)
{
	for (int k = 0; k < 2; k++)
		for (uint32_t i = 0; i < NFC_JOINTS; i++)
			CHECK(!w.rig[k]->dev->host[0]->joints[i].far.bytes);
}

CASE(transfers_of_any_size_and_place)
{
	static const uint64_t sizes[] = { 0, 1, 4096, 100001, 1300001 };

	for (size_t i = 0; i < sizeof(sizes) / sizeof(*sizes); i++) {
		size = sizes[i];
		UNDER_FAULTS
		{
			pair_of(at, takes, gives);
			both_done(2, 3);
			for (int k = 0; k < 3; k++)
				CHECK_EQ(caller->rc[k], 0);
			CHECK_EQ(target->rc[0], 0);
			CHECK_EQ(target->rc[1], 0);
			check_hidden();
			CHECK_EQ(w.rig[0]->dma_calls + w.rig[1]->dma_calls, 0);
		}
	}
}

/* ---- what is wrong ---- */

static void tries_everything(struct nfc_process *self, struct puppet *p)
{
	struct nfc_channel *ch = NULL;

	note(p, channel_connect(self, 1ull << 30 | peer, &ch));
	note(p, channel_connect(self, nfc_id(0, 1, 0, THERE), &ch));
	note(p, channel_connect(self, peer + 1, &ch));
	note(p, channel_connect(self, nfc_id(0, 0, 1, 1 << 20), &ch));
	note(p, channel_connect(self, nfc_id(0, 0, 1, 0), &ch));
	note(p, channel_connect(self, nfc_id(0, 0, 0, HERE + 4), &ch));
	note(p, channel_connect(self, nfc_id(0, 0, 1, THERE + 2), &ch));
	CHECK(!ch);
	note(p, channel_connect(self, peer, &ch));
	note(p, channel_connect(self, peer, &ch));
	stay(self);
	note(p, channel_connect(self, peer, &ch));
}

CASE(a_target_that_cannot_be)
{
	static const int want[] = { -NFC_EINVAL,    -NFC_EINVAL,
				    -NFC_ENOTARGET, -NFC_ENOTARGET,
				    -NFC_ENOTARGET, -NFC_EBUSY,
				    -NFC_EBUSY,	    0,
				    -NFC_EBUSY,	    -NFC_ESTOPPED };

	span_begin(0, 0, 0);
	host_launch(w.rig[1], THERE + 2, waits, 1);
	CHECK_EQ(host_open(w.rig[1], THERE + 2), NFC_OK);
	pair_of(THERE, waits, tries_everything);
	both_done(0, 9);
	CHECK_EQ(host_open(w.rig[1], THERE), NFC_EBUSY);
	span_stop(0, caller);
	for (int i = 0; i < 10; i++)
		CHECK_EQ(caller->rc[i], want[i]);
	span_pass(SECOND / 10);
	span_check_free(1, THERE);
	span_end();
}

static void tries_twice(struct nfc_process *self, struct puppet *p)
{
	struct nfc_channel *ch = NULL;

	note(p, channel_connect(self, peer, &ch));
	CHECK(!ch);
	nfc_sleep(self, SECOND / 20);
	ch = span_connected(self, p);
	note(p, ch ? channel_write(ch, "x", 1) : 1);
	stay(self);
}

static void reads_on(struct nfc_process *self, struct puppet *p)
{
	while (p->step < 8)
		note(p, channel_read(span_port(self), p->buf, sizeof(p->buf)));
}

/* No answer in a second; a later one is closed at once. */
CASE(an_answer_that_is_late)
{
	span_begin(0, 0, 0);
	w.cut = true;
	pair_of(THERE, reads_on, tries_twice);
	while (!lossy.lose)
		span_tick();
	w.cut = false;
	span_pass(SECOND - SECOND / 50);
	CHECK_EQ(caller->step, 0);
	span_pass(SECOND / 25);
	CHECK_EQ(caller->rc[0], -NFC_ETIMEOUT);
	lossy.lose = 0;
	both_done(2, 3);
	CHECK_EQ(target->rc[0], -NFC_ECLOSED);
	CHECK_EQ(caller->rc[1], 0);
	CHECK_EQ(caller->rc[2], 0);
	CHECK_EQ(target->rc[1], 1);
	span_end();
}

static void fills_all(struct nfc_process *self, struct puppet *p)
{
	struct nfc_channel *ch, *first = NULL;

	for (uint32_t i = 0; i < NFC_JOINTS; i++) {
		CHECK_EQ(channel_connect(self, peer + i, &ch), 0);
		first = first ? first : ch;
	}
	note(p, channel_connect(self, peer + NFC_JOINTS, &ch));
	channel_close(first, BOTH);
	nfc_sleep(self, SECOND / 10);
	note(p, channel_connect(self, peer, &ch));
	CHECK(ch == first);
	stay(self);
}

CASE(a_host_has_so_many)
{
	lossy_reset(0, 0, 0);
	span_begin_as(wide);
	target = host_launch(w.rig[1], 60, waits, NFC_JOINTS + 1);
	peer = nfc_id(0, 0, 1, 60);
	caller = host_launch(w.rig[0], HERE, fills_all, 1);
	both_done(0, 2);
	CHECK_EQ(caller->rc[0], -NFC_ENOMEM);
	CHECK_EQ(caller->rc[1], 0);
	span_end();
}

/* ---- ends ---- */

static void ends_after_a_word(struct nfc_process *self, struct puppet *p)
{
	struct nfc_channel *ch = span_connected(self, p);

	if (ch)
		note(p, channel_write(ch, "x", 1));
}

/*
 * The connecting process finds the target closed, each time; and the other way
 * round.
 */
CASE(each_hears_the_other_end)
{
	UNDER_FAULTS
	{
		pair_of(at, ends, reads_and_writes);
		both_done(1, 7);
		for (int i = 1; i < 7; i++)
			CHECK_EQ(caller->rc[i], -NFC_ECLOSED);
		span_end();
		span_begin(faults[f][0], faults[f][1], faults[f][2]);
		pair_of(at, reads_on, ends_after_a_word);
		both_done(2, 2);
		CHECK_EQ(target->rc[0], 1);
		CHECK_EQ(target->rc[1], -NFC_ECLOSED);
		caller = host_launch(w.rig[0], HERE + 5, ends_after_a_word, 1);
		both_done(4, 2);
		CHECK_EQ(target->rc[2], 1);
	}
}

/* A withdrawal crosses the commit: what was taken was written, and the other way round. */
CASE(a_withdrawal_meets_the_commit)
{
	int taken = 0, rounds = 40;

	for (int round = 0; round < rounds; round++) {
		span_begin(0, 0, 50);
		lossy.random = (uint64_t)round;
		size = (uint64_t)round * SECOND / 1000;
		pair_of(round & 1 ? HERE : THERE, polls, writes);
		for (int i = 0; i < 100; i++)
			span_tick();
		span_stop(0, caller);
		span_pass(SECOND / 3);
		if (caller->step > 1) {
			bool took = target->step > 1 && target->rc[1] == 1;

			taken += took;
			CHECK_EQ(caller->rc[1], took ? 0 : -NFC_ESTOPPED);
		}
		span_end();
	}
	CHECK(taken > 5 && taken < rounds - 5);
}
