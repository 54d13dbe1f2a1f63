// SPDX-License-Identifier: MIT
/* Routes that break, ends that close and invalid packets: both ends are notified, all is free. */
#include <string.h>

#include "span_rig.h"

/* After any fault, two new processes connect. */
static void check_pair_works(void)
{
	lossy_calm();
	for (int at = 0; at < 2; at++)
		for (int i = 0; i < NFC_JOINTS; i++)
			CHECK_EQ(w.rig[at]->dev->host[0]->joints[i].ends, 0);
	pair_of(THERE + 4, answers, asks);
	both_done(1, 2);
	CHECK_EQ(caller->rc[1], MANY);
}

static const role targets[] = { answers, takes, polls, ends };
static const role callers[] = { asks, gives, writes, reads_and_writes };

/* The route between two ends breaks in each state of their connection: both end, all is free. */
CASE(a_way_that_breaks_at_any_moment)
{
	size = 300000;
	for (int kind = 0; kind < 4; kind++)
		for (int ticks = 1; ticks < 60; ticks += 1 + ticks / 4) {
			span_begin(0, 0, ticks % 3 * 20);
			pair_of(THERE, targets[kind], callers[kind]);
			for (int i = 0; i < ticks; i++)
				span_tick();
			lossy.lose = 100;
			span_pass(SECOND + SECOND / 2);
			CHECK(kind != 1 || caller->step < 2 || caller->rc[1] ||
			      (target->step > 0 && !target->rc[0]));
			for (int at = 0; at < 2; at++)
				for (int i = 0; i < 2 * NFC_JOINTS; i++)
					CHECK(!w.end[at][i].used);
			lossy_calm();
			span_stop(0, caller);
			span_stop(1, target);
			span_pass(SECOND / 5);
			check_pair_works();
			span_end();
		}
}

static int ends_left(void)
{
	int n = 0;

	for (int at = 0; at < 2; at++)
		for (int i = 0; i < 2 * NFC_JOINTS; i++)
			n += w.end[at][i].used;
	return n;
}

/* Both are notified in time: at once without a route from one to the other. */
CASE(an_end_that_is_gone_is_noticed_in_time)
{
	for (int silent = 0; silent < 2; silent++) {
		uint64_t since;

		span_begin(0, 0, 0);
		pair_of(THERE, waits, writes);
		while (caller->step < 1 || ends_left() < 2)
			span_tick();
		span_pass(SECOND / 4);
		since = lossy.now;
		lossy.away = !silent;
		lossy.lose = 100;
		while (ends_left() && lossy.now - since < 2ull * SECOND)
			span_tick();
		since = lossy.now - since;
		CHECK(since > (silent ? SECOND : SECOND / 20));
		CHECK(since < (silent ? SECOND * 13ull / 10 : SECOND / 14));
		both_done(0, 2);
		CHECK_EQ(caller->rc[1], -NFC_ECLOSED);
		span_end();
	}
}

/* Routes that return soon cost time, and nothing else. */
CASE(a_way_that_comes_back)
{
	span_begin(0, 0, 0);
	pair_of(THERE, answers, asks);
	both_done(0, 1);
	for (int i = 0; i < 100 && caller->step < 2; i++) {
		lossy.away = true;
		span_pass(SECOND * 48ull / 1000);
		lossy.away = false;
		for (int k = 0; k < 8; k++)
			span_tick();
	}
	both_done(1, 2);
	CHECK_EQ(caller->rc[1], MANY);
	CHECK_EQ(target->size, MANY);
	span_end();
}

/* The host of one end detaches at any moment, and so does its process. */
CASE(an_end_that_goes_at_any_moment)
{
	size = 300000;
	for (int kind = 0; kind < 4; kind++)
		for (int ticks = 1; ticks < 60; ticks += 1 + ticks / 4)
			for (uint32_t at = 0; at < 2; at++) {
				span_begin(0, 0, ticks % 3 * 20);
				pair_of(HERE, targets[kind], callers[kind]);
				for (int i = 0; i < ticks; i++)
					span_tick();
				span_stop(at, at ? target : caller);
				span_pass(SECOND / 3);
				CHECK(at ? target->done : caller->done);
				span_stop(!at, at ? caller : target);
				span_pass(SECOND / 3);
				check_pair_works();
				span_end();
			}
}

/* Takes and gives each offer, whatever it is. */
static void babbles(struct nfc_process *self, struct puppet *p)
{
	struct nfc_channel *ch = p->target == THERE ? span_port(self) :
						      span_connected(self, p);
	struct nfc_offer offer;

	p->memory = nfc_alloc(self, NFC_EMEM, size);
	for (uint32_t i = 0; ch && !nfc_stopped(self); i++) {
		if (!channel_alt(&ch, 1, SECOND / 1000) &&
		    channel_read_any(ch, p->buf, sizeof(p->buf), &offer) >= 0 &&
		    offer.indirect)
			channel_read_ind(ch, p->memory,
					 i & 1 ? offer.size : size);
		if (i & 1)
			channel_write(ch, "x", 1);
		else
			channel_write_ind(ch, p->memory, size);
		nfc_yield(self);
	}
}

/* Invalid packets harm nobody else. */
CASE(nonsense_is_dropped)
{
	struct nfc_far_packet p;

	span_begin(0, 0, 0);
	size = 100000;
	pair_of(THERE, babbles, babbles);
	both_done(0, 1);
	for (int i = 0; i < 60000; i++) {
		struct flying f = { .packet.to = chance(2) };
		struct nfc_slot *s = p.slot;

		for (uint32_t k = 0; k < sizeof(p) / 4; k += 1 + chance(64))
			memset((uint8_t *)&p + 4 * k, (int)chance(256), 4);
		p.head.epoch = chance(8) ? 1 : chance(3);
		p.head.host = (uint16_t)(chance(8) ? !f.packet.to : chance(3));
		p.head.count = (uint8_t)chance(4);
		p.head.first = chance(40);
		s->header = nfc_header(chance(NFC_TYPE_COUNT), 56, 0,
				       s->payload[0], THERE) |
			    (uint64_t)chance(2) << NFC_HDR_PHASE_SHIFT;
		f.packet.from = !f.packet.to;
		f.packet.kind = (uint8_t)(NFC_SPAN_JOIN + chance(6));
		f.packet.size = chance(2) ? NFC_FAR_HEAD + p.head.count * 64u :
					    chance(NFC_PACKET_SIZE + 1);
		if (f.packet.size < NFC_FAR_HEAD ||
		    (f.packet.kind == NFC_SPAN_JOIN && i % 64))
			continue;
		memcpy(f.word, &p, sizeof(p));
		lossy_give(&f, span_deliver);
		if (i % 64 == 0)
			span_tick();
	}
	span_stop(0, caller);
	span_stop(1, target);
	span_pass(2ull * SECOND);
	check_pair_works();
	span_end();
}
