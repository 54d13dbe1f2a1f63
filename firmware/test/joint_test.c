// SPDX-License-Identifier: MIT
/*
 * Channels that processes open to each other. Each case runs with both processes on
 * one island, and on two.
 */
#include <string.h>

#include "rig.h"

enum {
	HERE = 20, /* a target of island 0 */
	THERE = 40, /* and one of island 1 */
	H2D = 1 << NFC_H2D,
	D2H = 1 << NFC_D2H,
	BOTH = H2D | D2H,
	MANY = 100, /* more than a ring has slots */
};

static uint64_t peer; /* whom callers connect to */
static uint64_t size; /* of transfers */

static void two_islands(struct nfc_config *c)
{
	c->islands = 2;
}

static void two_hosts(struct nfc_config *c)
{
	c->islands = 2;
	c->hosts = 2;
}

static void impatient(struct nfc_config *c)
{
	c->islands = 2;
	c->target_timeout_ns = 1000000;
}

static struct nfc_channel *port(struct nfc_process *self)
{
	return nfc_channel_of(self, 0);
}

/* Two processes, the second of which connects to the first. */
struct pair {
	struct rig *r;
	struct puppet *target, *caller;
};

typedef void (*role)(struct nfc_process *self, struct puppet *p);

static struct pair pair_of(void (*change)(struct nfc_config *c), uint32_t at,
			   role target, role caller)
{
	struct pair pair = { .r = rig_new(change) };

	peer = at;
	pair.target = host_launch(pair.r, at, target, 1);
	rig_step(pair.r);
	pair.caller = host_launch(pair.r, HERE + 4, caller, 1);
	go(pair.r);
	return pair;
}

/* The port can be subscribed again, and no joint is in use. */
static void check_free(struct rig *r, uint32_t target)
{
	struct nfc_host *host = r->dev->host[0];

	rig_step(r);
	for (int i = 0; i < NFC_JOINTS; i++) {
		CHECK_EQ(host->joints[i].ends, 0);
		CHECK_EQ(host->joints[i].calls, 0);
	}
	CHECK_EQ(host_open(r, target), NFC_OK);
}

static void stop(struct rig *r, struct puppet *p)
{
	uint32_t status = NFC_EBUSY;

	for (int i = 0; i < 8 && status == NFC_EBUSY; i++)
		status = host_control(r, NFC_CONTROL_STOP, p->process, 0, 0,
				      NULL)
				 .status;
	CHECK_EQ(status, NFC_EINVAL);
	CHECK(p->done);
}

#define ON_BOTH(target, caller)                                        \
	for (uint32_t at = HERE; at; at = at == HERE ? THERE : 0)      \
		for (struct pair pair =                                \
			     pair_of(two_islands, at, target, caller); \
		     pair.r; rig_free(pair.r), pair.r = NULL)

static struct nfc_channel *connected(struct nfc_process *self, struct puppet *p)
{
	struct nfc_channel *ch = NULL;

	note(p, channel_connect(self, peer, &ch));
	if (!ch)
		stay(self);
	return ch;
}

/* ---- messages ---- */

static void answers(struct nfc_process *self, struct puppet *p)
{
	for (int i = 0; i < MANY; i++) {
		int n = channel_read(port(self), p->buf, sizeof(p->buf));

		p->buf[0]++;
		p->size += (uint64_t)n;
		CHECK_EQ(channel_write(port(self), p->buf, (size_t)n), 0);
	}
	note(p, channel_read(port(self), p->buf, sizeof(p->buf)));
	stay(self);
}

static void asks(struct nfc_process *self, struct puppet *p)
{
	ask_often(connected(self, p), p, MANY);
}

CASE(messages_go_both_ways)
{
	ON_BOTH (answers, asks) {
		CHECK_EQ(pair.caller->rc[0], 0);
		CHECK(pair.caller->done);
		CHECK_EQ(pair.target->size, MANY);
		CHECK_EQ(pair.target->rc[0], -NFC_ECLOSED);
		CHECK_EQ(rig_dropped(pair.r), 0);
		check_free(pair.r, at);
	}
}

static void reads_late(struct nfc_process *self, struct puppet *p)
{
	later(self);
	later(self);
	note(p, channel_read(port(self), p->buf, sizeof(p->buf)));
	stay(self);
}

static void writes(struct nfc_process *self, struct puppet *p)
{
	struct nfc_channel *ch = connected(self, p);

	note(p, channel_write(ch, "x", 1));
	note(p, channel_write(ch, "y", 1));
	stay(self);
}

CASE(a_write_waits_for_its_reader)
{
	ON_BOTH (reads_late, writes) {
		CHECK_EQ(pair.caller->step, 1);
		/* the host waits for nothing of that */
		rig_advance(pair.r, 0);
		CHECK_EQ(nfc_counter_sum(pair.r->dev->host[0], NFC_COUNT_PARKED),
			 0);
		go(pair.r);
		CHECK_EQ(pair.caller->step, 2);
		CHECK_EQ(pair.caller->rc[1], 0);
		CHECK_EQ(pair.target->rc[0], 1);
	}
}

static void waits(struct nfc_process *self, struct puppet *p)
{
	(void)p;
	stay(self);
}

CASE(an_offer_waits_no_longer_than_the_device_lets_it)
{
	struct pair pair = pair_of(impatient, THERE, waits, writes);

	go(pair.r);
	CHECK_EQ(pair.caller->rc[1], -NFC_ETIMEOUT);
	rig_free(pair.r);
}

/* Waits for a message on its port and on its joint, in turn. */
static void alts(struct nfc_process *self, struct puppet *p)
{
	struct nfc_channel *ch[2] = { port(self), connected(self, p) };

	for (int i = 0; i < 3; i++) {
		int which = channel_alt(ch, 2, UINT64_MAX);

		note(p, which);
		if (which >= 0)
			note(p, channel_read(ch[which], p->buf, sizeof(p->buf)));
	}
	stay(self);
}

static void writes_back(struct nfc_process *self, struct puppet *p)
{
	later(self);
	note(p, channel_write(port(self), "abc", 3));
}

CASE(alt_takes_joints_and_ports)
{
	ON_BOTH (writes_back, alts) {
		uint32_t own = pair.caller->target;

		CHECK_EQ(host_open(pair.r, own), 0);
		go(pair.r);
		host_direct(pair.r, own, "four", 4);
		rig_step(pair.r);
		CHECK_EQ(pair.caller->rc[1], 1);
		CHECK_EQ(pair.caller->rc[2], 3);
		CHECK_EQ(pair.caller->rc[3], 1); /* the process has ended */
		CHECK_EQ(pair.caller->rc[4], -NFC_ECLOSED);
		CHECK_EQ(pair.caller->rc[5], 0);
		CHECK_EQ(pair.caller->rc[6], 4);
	}
}

/* ---- transfers ---- */

static void takes(struct nfc_process *self, struct puppet *p)
{
	p->memory = nfc_alloc(self, NFC_EMEM, size + 1);
	note(p, channel_read_ind(port(self), p->memory + 1, size));
	note(p, channel_write_ind(port(self), p->memory + 1, size));
	stay(self);
}

static void gives(struct nfc_process *self, struct puppet *p)
{
	struct nfc_channel *ch = connected(self, p);
	uint64_t other = nfc_alloc(self, NFC_EMEM, size + 4);
	uint8_t *a, *b;

	p->memory = nfc_alloc(self, NFC_EMEM, size + 3);
	a = nfc_at(self, p->memory + 3, size);
	b = nfc_at(self, other, size + 4);
	fill_pattern(a, size, size);
	note(p, channel_write_ind(ch, p->memory + 3, size));
	note(p, channel_read_ind(ch, other + 2, size));
	CHECK(!memcmp(a, b + 2, size));
	CHECK(!b[1] && !b[size + 2]);
	stay(self);
}

CASE(transfers_of_any_size_and_place)
{
	static const uint64_t sizes[] = { 0, 1, 4096, 100001, 1300001 };

	for (size_t i = 0; i < sizeof(sizes) / sizeof(*sizes); i++) {
		size = sizes[i];
		ON_BOTH (takes, gives) {
			CHECK_EQ(pair.caller->step, 3);
			CHECK_EQ(pair.caller->rc[1], 0);
			CHECK_EQ(pair.caller->rc[2], 0);
			CHECK_EQ(pair.target->rc[0], 0);
			CHECK_EQ(pair.target->rc[1], 0);
			CHECK_EQ(pair.r->dma_calls, 0);
			CHECK_EQ(rig_dropped(pair.r), 0);
		}
	}
}

static void takes_another_size(struct nfc_process *self, struct puppet *p)
{
	p->memory = nfc_alloc(self, NFC_EMEM, 8192);
	note(p, channel_read_ind(port(self), p->memory, 5000));
	note(p, channel_read_ind(port(self), UINT64_MAX, 4096));
	note(p, channel_read(port(self), p->buf, sizeof(p->buf)));
	note(p, channel_read_ind(port(self), p->memory, 5000));
	note(p, channel_read_ind(port(self), p->memory, 4096));
	stay(self);
}

static void gives_all_the_same(struct nfc_process *self, struct puppet *p)
{
	struct nfc_channel *ch = connected(self, p);

	p->memory = nfc_alloc(self, NFC_EMEM, 8192);
	note(p, channel_write_ind(ch, p->memory, 4096));
	later(self); /* a range that is no memory refuses only what is offered */
	note(p, channel_write_ind(ch, p->memory, 4096));
	note(p, channel_write(ch, "x", 1));
	note(p, channel_write_ind(ch, p->memory, 4096));
	note(p, channel_write_ind(ch, UINT64_MAX, 4096));
	stay(self);
}

CASE(what_does_not_agree_fails_at_both_ends)
{
	static const int target[] = { -NFC_ESIZE, -NFC_ERANGE, -NFC_EKIND,
				      -NFC_EKIND, 0 };
	static const int caller[] = { 0,	  -NFC_ESIZE, -NFC_EKIND,
				      -NFC_EKIND, 0,	      -NFC_ERANGE };

	ON_BOTH (takes_another_size, gives_all_the_same) {
		go(pair.r);
		go(pair.r);
		for (int i = 0; i < 5; i++)
			CHECK_EQ(pair.target->rc[i], target[i]);
		for (int i = 0; i < 6; i++)
			CHECK_EQ(pair.caller->rc[i], caller[i]);
		CHECK_EQ(rig_dropped(pair.r), 0);
	}
}

/* ---- ends ---- */

static void offers_ind(struct nfc_process *self, struct puppet *p)
{
	struct nfc_channel *ch = connected(self, p);

	p->memory = nfc_alloc(self, NFC_EMEM, 4096);
	note(p, channel_write_ind(ch, p->memory, 4096));
}

static void polls(struct nfc_process *self, struct puppet *p)
{
	struct nfc_channel *ch = port(self);
	struct nfc_offer offer;

	note(p, channel_alt(&ch, 1, UINT64_MAX));
	nfc_sleep(self, 5000000); /* it is taken back meanwhile */
	note(p, channel_offer(ch, &offer));
	stay(self);
}

/* A process that is stopped takes back what it offers. */
CASE(a_process_that_stops_withdraws)
{
	static const role kinds[] = { writes, offers_ind };

	for (int i = 0; i < 2; i++)
		ON_BOTH (polls, kinds[i]) {
			CHECK_EQ(pair.target->step, 1);
			stop(pair.r, pair.caller);
			CHECK_EQ(pair.caller->rc[1], -NFC_ESTOPPED);
			CHECK_EQ(pair.target->step, 1);
			rig_advance(pair.r, 5000000);
			CHECK_EQ(pair.target->rc[1], -NFC_ECLOSED);
			CHECK_EQ(rig_dropped(pair.r), 0);
			check_free(pair.r, at);
		}
}

static void reads_and_writes(struct nfc_process *self, struct puppet *p)
{
	struct nfc_channel *ch = connected(self, p);

	for (int i = 0; i < 3; i++) {
		note(p, channel_read(ch, p->buf, sizeof(p->buf)));
		note(p, channel_write(ch, "x", 1));
	}
	channel_close(ch, H2D);
	channel_close(ch, D2H);
	stay(self);
}

static void ends(struct nfc_process *self, struct puppet *p)
{
	(void)p;
	later(self);
	later(self);
}

static void closes(struct nfc_process *self, struct puppet *p)
{
	(void)p;
	later(self);
	later(self);
	for (int i = 0; i < MANY; i++)
		channel_close(port(self), i & 1 ? H2D : D2H);
	stay(self);
}

/*
 * The connecting process finds the target closed, each time, and releases it by
 * closing.
 */
CASE(the_caller_hears_the_close)
{
	static const role kinds[] = { ends, closes };

	for (int i = 0; i < 2; i++)
		ON_BOTH (kinds[i], reads_and_writes) {
			go(pair.r);
			CHECK_EQ(pair.caller->step, 7);
			for (int j = 1; j < 7; j++)
				CHECK_EQ(pair.caller->rc[j], -NFC_ECLOSED);
			CHECK_EQ(rig_dropped(pair.r), 0);
			stop(pair.r, pair.caller);
			if (i)
				check_free(pair.r, at);
		}
}

static void reads_twice(struct nfc_process *self, struct puppet *p)
{
	note(p, channel_read(port(self), p->buf, sizeof(p->buf)));
	note(p, channel_write(port(self), "x", 1));
	note(p, channel_read(port(self), p->buf, sizeof(p->buf)));
	stay(self);
}

/* Connects, says a word, closes: again and again. */
static void comes_and_goes(struct nfc_process *self, struct puppet *p)
{
	for (int i = 0; i < 2; i++) {
		struct nfc_channel *ch = connected(self, p);

		if (i)
			note(p, channel_write(ch, "abc", 3));
		for (int j = 0; j < MANY; j++)
			channel_close(ch, BOTH);
		later(self);
		/* closed is closed, and harms nobody */
		CHECK_EQ(channel_write(ch, "x", 1), -NFC_ECLOSED);
		CHECK_EQ(channel_read(ch, p->buf, 1), -NFC_ECLOSED);
		channel_close(ch, BOTH);
	}
	stay(self);
}

/* The target is notified of the lost caller once, and serves the next. */
CASE(the_target_hears_the_close)
{
	ON_BOTH (reads_twice, comes_and_goes) {
		go(pair.r);
		go(pair.r);
		CHECK_EQ(pair.target->rc[0], -NFC_ECLOSED);
		CHECK_EQ(pair.target->rc[1], -NFC_ECLOSED);
		CHECK_EQ(pair.target->rc[2], 3);
		CHECK_EQ(pair.caller->rc[1], 0);
		CHECK_EQ(pair.caller->rc[2], 0);
		stop(pair.r, pair.caller);
		check_free(pair.r, at);
	}
}

static void closes_while_offered(struct nfc_process *self, struct puppet *p)
{
	struct nfc_offer offer;

	note(p, channel_offer(port(self), &offer));
	channel_close(port(self), H2D);
	note(p, channel_read(port(self), p->buf, sizeof(p->buf)));
	note(p, channel_write(port(self), "still", 5));
	stay(self);
}

static void writes_then_reads(struct nfc_process *self, struct puppet *p)
{
	struct nfc_channel *ch = connected(self, p);

	note(p, channel_write(ch, "x", 1));
	note(p, channel_read(ch, p->buf, sizeof(p->buf)));
	stay(self);
}

CASE(halves_close_by_themselves)
{
	ON_BOTH (closes_while_offered, writes_then_reads) {
		CHECK_EQ(pair.caller->rc[1], -NFC_ECLOSED);
		CHECK_EQ(pair.caller->rc[2], 5);
		CHECK_EQ(pair.target->rc[1], -NFC_ECLOSED);
		CHECK_EQ(pair.target->rc[2], 0);
	}
}

/* ---- what is wrong ---- */

static void tries_everything(struct nfc_process *self, struct puppet *p)
{
	struct nfc_channel *ch = NULL;

	note(p, channel_connect(self, 1ull << 24 | peer, &ch));
	note(p, channel_connect(self, nfc_id(0, 0, 0, peer), &ch));
	note(p, channel_connect(self, peer + 1, &ch));
	note(p, channel_connect(self, 1 << 23, &ch));
	note(p, channel_connect(self, NFC_TARGET_CONTROL, &ch));
	note(p, channel_connect(self, HERE + 4, &ch));
	CHECK(!ch);
	note(p, channel_connect(self, peer, &ch));
	note(p, channel_connect(self, peer, &ch));
	stay(self);
	note(p, channel_connect(self, peer, &ch));
}

CASE(a_target_that_cannot_be)
{
	static const int want[] = { -NFC_EINVAL,
				    -NFC_ENOTSUP,
				    -NFC_ENOTARGET,
				    -NFC_ENOTARGET,
				    -NFC_ENOTARGET,
				    -NFC_EBUSY,
				    0,
				    -NFC_EBUSY,
				    -NFC_ESTOPPED };

	ON_BOTH (waits, tries_everything) {
		CHECK_EQ(host_open(pair.r, at), NFC_EBUSY);
		stop(pair.r, pair.caller);
		for (int i = 0; i < 9; i++)
			CHECK_EQ(pair.caller->rc[i], want[i]);
		check_free(pair.r, at);
	}
}

static void reads_for_ever(struct nfc_process *self, struct puppet *p)
{
	while (channel_read(port(self), p->buf, sizeof(p->buf)) != -NFC_ESTOPPED)
		;
}

CASE(a_port_that_the_host_has)
{
	ON_BOTH (reads_for_ever, waits) {
		struct puppet *p;

		CHECK_EQ(host_open(pair.r, at), NFC_OK);
		p = host_launch(pair.r, HERE + 5, writes, 1);
		CHECK_EQ(p->rc[0], -NFC_EBUSY);
		host_close(pair.r, at, BOTH);
		host_expect_close(pair.r, at, BOTH);
		p = host_launch(pair.r, HERE + 6, writes, 1);
		CHECK_EQ(p->rc[0], 0);
		CHECK_EQ(p->rc[1], 0);
	}
}

static void fills_all(struct nfc_process *self, struct puppet *p)
{
	struct nfc_channel *ch[NFC_JOINTS], *more;

	for (uint32_t i = 0; i < NFC_JOINTS; i++)
		CHECK_EQ(channel_connect(self, 64 + i, &ch[i]), 0);
	note(p, channel_connect(self, 63, &more));
	channel_close(ch[7], BOTH);
	later(self);
	note(p, channel_connect(self, 63, &more));
	stay(self);
}

static void many_channels(struct nfc_config *c)
{
	c->channels = 128;
}

CASE(a_host_has_so_many)
{
	struct rig *r = rig_new(many_channels);
	struct puppet *p;

	host_launch(r, 60, waits, 68);
	p = host_launch(r, HERE, fills_all, 1);
	go(r);
	CHECK_EQ(p->rc[0], -NFC_ENOMEM);
	CHECK_EQ(p->rc[1], 0);
	stop(r, p);
	check_free(r, 63);
	rig_free(r);
}

/* Computes until p->more is set: the test runs on, its island does not. */
static void computes(struct nfc_process *self, struct puppet *p)
{
	while (!p->more) {
		p->rig->island[self->island->index].at = fiber_current;
		fiber_switch(&fiber_main);
	}
	stay(self);
}

CASE(a_target_whose_island_does_not_answer)
{
	struct rig *r = rig_new(two_islands);
	struct puppet *target, *caller;

	r->may_spin = true;
	r->answer_ns = 60000000;
	peer = THERE;
	target = host_launch(r, THERE, computes, 1);
	caller = host_launch(r, HERE, writes, 1);
	for (int i = 0; i < 16; i++)
		rig_advance(r, 50000000);
	CHECK_EQ(caller->rc[0], -NFC_ETIMEOUT);
	target->more = target;
	check_free(r, THERE);
	rig_free(r);
}

static void carries_nothing(void *self, uint32_t host, uint32_t index)
{
	(void)self;
	(void)host;
	(void)index;
}

/* A connection of another node to a port, whose answer is OK. */
static struct nfc_joint *asks_for(struct rig *r, uint32_t target)
{
	struct nfc_joint *joint = NULL;
	uint32_t index;

	CHECK_EQ(nfc_joint_ask(r->dev, 0, target, &joint, &index), 0);
	return joint;
}

static void check_joined(struct nfc_joint *joint, struct nfc_joined *out)
{
	CHECK(nfc_joint_asked(joint, out));
	CHECK_EQ(out->status, NFC_OK);
}

/*
 * A message, its withdrawal and the loss of their node arrive at once, and so
 * does another connection. The port is at its mailbox in the end.
 */
CASE(a_port_that_is_connected_to_before_a_recall_is_served)
{
	struct rig *r = rig_new(two_islands);
	struct nfc_joint *first, *second;
	struct nfc_joint_rings rings;
	struct nfc_joined joined;

	r->port.carry = carries_nothing;
	host_launch(r, HERE, waits, 1);
	first = asks_for(r, HERE);
	rig_step(r);
	check_joined(first, &joined);
	rings = nfc_joint_rings(first);
	for (int i = 0; i < 2; i++) {
		struct nfc_note *note = (void *)rings.in[i].payload;
		uint64_t header = nfc_header(
			i ? NFC_TYPE_WITHDRAW : NFC_TYPE_DIRECT,
			i ? NFC_PAYLOAD_SIZE : 1, r->dev->host[0]->epoch,
			joined.h2d, HERE);

		*note = (struct nfc_note){ .transaction = joined.h2d,
					   .direction = NFC_D2H };
		rings.in[i].header = header | 1ull << NFC_HDR_PHASE_SHIFT;
	}
	second = asks_for(r, HERE);
	nfc_joint_lost(first); /* the last call is served first */
	rig_step(r);
	check_joined(second, &joined);
	nfc_joint_drop(first);
	nfc_joint_lost(second);
	rig_step(r);
	nfc_joint_drop(second);
	check_free(r, HERE);
	CHECK_EQ(r->dev->host[0]->channels[HERE].rings->joint, NULL);
	rig_free(r);
}

/* A START that may have any target takes none that its island still needs. */
CASE(a_port_that_is_still_needed_is_not_given_away)
{
	struct rig *r = rig_new(two_islands);
	struct nfc_island *island = &r->dev->islands[0];
	struct nfc_host *host = r->dev->host[0];
	uint32_t first = nfc_free_targets(island, host, 1);
	struct nfc_channel *ch = &host->channels[first], before = *ch;
	struct nfc_joint joint = { .ends = 1 };
	struct nfc_rings rings = { .joint = &joint };

	CHECK(first);
	ch->recalled = 1;
	CHECK_EQ(nfc_free_targets(island, host, 1), first + 1);
	*ch = before;
	ch->rings = &rings;
	CHECK_EQ(nfc_free_targets(island, host, 1), first + 1);
	*ch = before;
	CHECK_EQ(nfc_free_targets(island, host, 1), first);
	rig_free(r);
}

/* ---- hosts ---- */

/* A host may be detached in any state of its joints. */
CASE(a_host_that_goes_takes_its_joints)
{
	static const role targets[] = { waits, takes, polls, waits };
	static const role callers[] = { writes, gives, offers_ind,
					reads_and_writes };

	size = 100000;
	for (int i = 0; i < 4; i++)
		for (int j = 0; j < 2; j++) {
			struct rig *r = rig_new(two_hosts);
			struct rig *other = rig_attach(r, 1);

			peer = j ? HERE : THERE;
			host_launch(other, (uint32_t)peer, targets[i], 1);
			host_launch(other, HERE + 4, callers[i], 1);
			rig_detach(other);
			other = rig_attach(r, 1);
			host_launch(other, (uint32_t)peer, answers, 1);
			CHECK(host_launch(other, HERE + 4, asks, 1)->done);
			rig_free(r);
		}
}

/* A host's processes reach those of no other. */
CASE(a_joint_is_of_one_host)
{
	struct rig *r = rig_new(two_hosts);
	struct rig *other = rig_attach(r, 1);
	struct puppet *p;

	peer = THERE;
	host_launch(r, THERE, waits, 1);
	p = host_launch(other, HERE, writes, 1);
	CHECK_EQ(p->rc[0], -NFC_ENOTARGET);
	rig_free(r);
}
