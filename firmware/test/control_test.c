// SPDX-License-Identifier: MIT
/* The control channel: every operation, every way it is refused; heartbeats. */
#include <stdio.h>
#include <string.h>

#include "rig.h"

static struct nfc_channel *port(struct nfc_process *self)
{
	return nfc_channel_of(self, 0);
}

static void hold(struct nfc_process *self, struct puppet *p)
{
	(void)p;
	stay(self);
}

static uint32_t status_of(struct rig *r, uint32_t op, uint64_t a, uint64_t b,
			  const char *name)
{
	return host_control(r, op, a, b, 0, name).status;
}

CASE(open_is_refused)
{
	struct rig *r = rig_new(NULL);
	struct puppet *p = host_start(r, hold, 1);

	CHECK_EQ(host_open(r, p->target), NFC_EBUSY);
	CHECK_EQ(host_open(r, p->target + 1), NFC_ENOTARGET);
	CHECK_EQ(host_open(r, NFC_TARGET_CONTROL), NFC_ENOTARGET);
	CHECK_EQ(status_of(r, NFC_CONTROL_OPEN, 64, 0, NULL), NFC_ENOTARGET);
	CHECK_EQ(status_of(r, NFC_CONTROL_OPEN, UINT64_MAX, 0, NULL),
		 NFC_ENOTARGET);
	CHECK_EQ(status_of(r, NFC_CONTROL_OPEN, 1ull << 32 | p->target, 0, NULL),
		 NFC_ENOTARGET);
	rig_free(r);
}

CASE(start_is_refused)
{
	struct rig *r = rig_new(NULL);
	struct puppet *p = host_launch(r, 20, hold, 2);
	uint32_t op = NFC_CONTROL_START;

	CHECK_EQ(p->target, 20);
	CHECK_EQ(status_of(r, op, 0, 1, "nobody"), NFC_ENOPROGRAM);
	CHECK_EQ(status_of(r, op, 0, 1, ""), NFC_ENOPROGRAM);
	CHECK_EQ(status_of(r, op, 0, 1, "aaaaaaaaaaaaaaaaaaaaaaaa"), NFC_EINVAL);
	CHECK_EQ(status_of(r, op, 0, 0, "hold"), NFC_EINVAL);
	CHECK_EQ(status_of(r, op, 1, 1, "hold"), NFC_EINVAL);
	CHECK_EQ(status_of(r, op, 15, 1, "hold"), NFC_EINVAL);
	CHECK_EQ(status_of(r, op, 63, 2, "hold"), NFC_EINVAL);
	CHECK_EQ(status_of(r, op, UINT64_MAX, 1, "hold"), NFC_EINVAL);
	CHECK_EQ(status_of(r, op, 16, UINT64_MAX, "hold"), NFC_EINVAL);
	CHECK_EQ(status_of(r, op, 1ull << 32 | 16, 1, "hold"), NFC_EINVAL);
	CHECK_EQ(status_of(r, op, 0, 1ull << 32 | 1, "hold"), NFC_EINVAL);
	CHECK_EQ(status_of(r, op, 20, 1, "hold"), NFC_EBUSY);
	CHECK_EQ(status_of(r, op, 19, 2, "hold"), NFC_EBUSY);
	CHECK_EQ(status_of(r, op, 21, 1, "hold"), NFC_EBUSY);
	CHECK_EQ(status_of(r, op, 22, 1, "hold"), NFC_OK);
	rig_free(r);
}

/* A refused start leaves nothing behind. */
CASE(targets_of_a_refused_start_stay_free)
{
	struct rig *r = rig_new(NULL);

	host_launch(r, 20, hold, 1);
	CHECK_EQ(status_of(r, NFC_CONTROL_START, 17, 4, "hold"), NFC_EBUSY);
	CHECK_EQ(host_open(r, 17), NFC_ENOTARGET);
	CHECK_EQ(status_of(r, NFC_CONTROL_START, 17, 3, "hold"), NFC_OK);
	CHECK_EQ(host_open(r, 17), 0);
	rig_free(r);
}

CASE(contexts_run_out)
{
	struct rig *r = rig_new(NULL);
	uint32_t before, started = 0, status;
	struct nfc_control c = { 0 };

	rig_advance(r, 100000000);
	before = rig_heartbeat(r).processes;
	do {
		c = host_control(r, NFC_CONTROL_START, 0, 1, 0, "hold");
		status = c.status;
		started += !status;
	} while (!status && started < 100);
	CHECK_EQ(status, NFC_ENOMEM);
	CHECK(started > 0 && before + started <= 16);
	rig_advance(r, 100000000);
	CHECK_EQ(rig_heartbeat(r).processes, before + started);
	rig_free(r);
}

CASE(targets_run_out)
{
	struct rig *r = rig_new(NULL);
	struct nfc_control c = host_control(r, NFC_CONTROL_START, 0, 40, 0,
					    "hold");

	CHECK_EQ(c.status, NFC_OK);
	c = host_control(r, NFC_CONTROL_START, 0, 40, 0, "hold");
	CHECK_EQ(c.status, NFC_ENOMEM);
	c = host_control(r, NFC_CONTROL_START, 0, 8, 0, "hold");
	CHECK_EQ(c.status, NFC_OK);
	rig_free(r);
}

CASE(running_until_it_returned)
{
	struct rig *r = rig_new(NULL);
	struct nfc_control c = host_control(r, NFC_CONTROL_START, 0, 1, 0,
					    "hold");
	uint64_t id = c.a;

	CHECK_EQ(host_control(r, NFC_CONTROL_RUNNING, id, 0, 0, NULL).b, 1);
	CHECK_EQ(status_of(r, NFC_CONTROL_STOP, id, 0, NULL), NFC_EBUSY);
	while (status_of(r, NFC_CONTROL_STOP, id, 0, NULL) == NFC_EBUSY)
		;
	CHECK_EQ(host_control(r, NFC_CONTROL_RUNNING, id, 7, 0, NULL).b, 0);
	CHECK_EQ(host_control(r, NFC_CONTROL_RUNNING, 0, 7, 0, NULL).b, 0);
	CHECK_EQ(status_of(r, NFC_CONTROL_RUNNING, UINT64_MAX, 0, NULL), NFC_OK);
	rig_free(r);
}

CASE(stop_is_refused)
{
	struct rig *r = rig_new(NULL);

	CHECK_EQ(status_of(r, NFC_CONTROL_STOP, 0, 0, NULL), NFC_EINVAL);
	CHECK_EQ(status_of(r, NFC_CONTROL_STOP, 1, 0, NULL), NFC_EINVAL);
	CHECK_EQ(status_of(r, NFC_CONTROL_STOP, 999999, 0, NULL), NFC_EINVAL);
	CHECK_EQ(status_of(r, NFC_CONTROL_STOP, UINT64_MAX, 0, NULL),
		 NFC_EINVAL);
	rig_free(r);
}

/* ---- STOP, whatever the process is blocked in ---- */

static void in_read(struct nfc_process *self, struct puppet *p)
{
	note(p, channel_read(port(self), p->buf, sizeof(p->buf)));
	note(p, channel_read(port(self), p->buf, sizeof(p->buf)));
}

static void in_read_ind(struct nfc_process *self, struct puppet *p)
{
	note(p, channel_read_ind(port(self), nfc_alloc(self, NFC_EMEM, 8), 8));
}

static void in_offer(struct nfc_process *self, struct puppet *p)
{
	struct nfc_offer offer;

	note(p, channel_offer(port(self), &offer));
}

static void in_alt(struct nfc_process *self, struct puppet *p)
{
	struct nfc_channel *ch[] = { port(self), nfc_channel_of(self, 1) };

	note(p, channel_alt(ch, 2, UINT64_MAX));
	note(p, channel_alt(ch, 2, 0));
}

static void in_timed_alt(struct nfc_process *self, struct puppet *p)
{
	struct nfc_channel *ch[] = { port(self), nfc_channel_of(self, 1) };

	note(p, channel_alt(ch, 2, 1ull << 60));
}

static void in_open(struct nfc_process *self, struct puppet *p)
{
	note(p, channel_write(port(self), "x", 1));
}

static void in_sleep(struct nfc_process *self, struct puppet *p)
{
	nfc_sleep(self, 1ull << 60);
	nfc_sleep(self, 1ull << 60);
	note(p, nfc_stopped(self) ? -NFC_ESTOPPED : 0);
}

static void in_yield(struct nfc_process *self, struct puppet *p)
{
	while (!nfc_stopped(self))
		nfc_sleep(self, 1000);
	note(p, -NFC_ESTOPPED);
}

/* Repeat STOP as a host does until the process has ended. */
static void stop(struct rig *r, struct puppet *p)
{
	uint32_t status = NFC_EBUSY;

	for (int i = 0; i < 5 && status == NFC_EBUSY; i++) {
		status = status_of(r, NFC_CONTROL_STOP, p->process, 0, NULL);
		rig_advance(r, 1000000);
	}
	CHECK_EQ(status, NFC_EINVAL); /* there is none of that id any more */
	CHECK(p->done);
}

CASE(stop_ends_every_wait)
{
	static void (*const waits[])(struct nfc_process *, struct puppet *) = {
		in_read,      in_read_ind, in_offer, in_alt,
		in_timed_alt, in_sleep,	   in_yield, in_open,
	};

	for (size_t i = 0; i < sizeof(waits) / sizeof(*waits); i++) {
		struct rig *r = rig_new(NULL);
		struct puppet *p = waits[i] == in_open ?
					   host_launch(r, 0, in_open, 1) :
					   host_start(r, waits[i], 2);

		rig_step(r);
		CHECK(!p->done);
		stop(r, p);
		for (int j = 0; j < p->step; j++)
			CHECK_EQ(p->rc[j], -NFC_ESTOPPED);
		CHECK(p->step > 0);
		if (waits[i] != in_open)
			host_expect_close(r, p->target, 3);
		rig_free(r);
	}
}

static void gives(struct nfc_process *self, struct puppet *p)
{
	uint64_t at = nfc_alloc(self, NFC_EMEM, 8192);

	note(p, p->size ? channel_write_ind(port(self), at, 8192) :
			  channel_write(port(self), "x", 1));
}

static void gives_ind(struct nfc_process *self, struct puppet *p)
{
	p->size = 8192;
	gives(self, p);
}

/* An offer to the host is withdrawn; the host has the last word. */
static void check_withdraw(bool indirect, bool taken)
{
	struct rig *r = rig_new(NULL);
	struct puppet *p = host_start(r, indirect ? gives_ind : gives, 1);
	uint64_t id = r->channel[p->target].next[NFC_D2H]++;

	host_expect(r, p->target,
		    indirect ? NFC_TYPE_IND_BEGIN : NFC_TYPE_DIRECT, id);
	CHECK_EQ(status_of(r, NFC_CONTROL_STOP, p->process, 0, NULL), NFC_EBUSY);
	host_expect_note(r, p->target, NFC_TYPE_WITHDRAW, NFC_D2H, id);
	CHECK(!p->done);
	/* Asked again it does not withdraw twice. */
	CHECK_EQ(status_of(r, NFC_CONTROL_STOP, p->process, 0, NULL), NFC_EBUSY);
	host_expect_nothing(r, p->target);
	if (taken)
		host_reply(r, p->target, NFC_TYPE_ACK, NFC_D2H, id,
			   NFC_STATE_CONSUMED, NFC_OK, 0);
	else
		host_note(r, p->target, NFC_TYPE_WITHDRAWN, NFC_D2H, id);
	rig_step(r);
	CHECK(p->done);
	CHECK_EQ(p->rc[0], taken ? 0 : -NFC_ESTOPPED);
	host_expect_close(r, p->target, 3);
	CHECK_EQ(status_of(r, NFC_CONTROL_STOP, p->process, 0, NULL),
		 NFC_EINVAL);
	rig_free(r);
}

CASE(stop_withdraws_an_offer)
{
	check_withdraw(false, false);
	check_withdraw(false, true);
	check_withdraw(true, false);
}

/* A transfer that the host took meanwhile runs to its end. */
CASE(stop_lets_a_transfer_end)
{
	struct rig *r = rig_new(NULL);
	struct puppet *p = host_start(r, gives_ind, 1);
	uint8_t *buf = host_buffer(r, 8192, 1);
	uint64_t id = r->channel[p->target].next[NFC_D2H]++;
	struct nfc_ack ack;

	host_expect(r, p->target, NFC_TYPE_IND_BEGIN, id);
	ack = host_drive(r, p->target, NFC_D2H, id, buf, 8192);
	CHECK_EQ(ack.state, NFC_STATE_DONE);
	CHECK_EQ(status_of(r, NFC_CONTROL_STOP, p->process, 0, NULL), NFC_EBUSY);
	host_note(r, p->target, NFC_TYPE_FIN, NFC_D2H, id);
	stop(r, p);
	CHECK_EQ(p->rc[0], 0);
	rig_free(r);
}

/* A stopped process frees its context, its targets and its memory. */
CASE(stop_returns_what_it_held)
{
	struct rig *r = rig_new(NULL);
	uint64_t before =
		host_control(r, NFC_CONTROL_MEMORY, NFC_EMEM, 0, 0, NULL).c;

	for (int i = 0; i < 40; i++) {
		struct puppet *p = host_launch(r, 30, in_read_ind, 1);
		struct nfc_control c;

		rig_step(r);
		stop(r, p);
		c = host_control(r, NFC_CONTROL_MEMORY, NFC_EMEM, 0, 0, NULL);
		REQUIRE(c.c == before);
	}
	rig_free(r);
}

/* ---- other operations ---- */

CASE(requests_that_make_no_sense)
{
	struct rig *r = rig_new(NULL);
	struct nfc_control c = { .op = NFC_CONTROL_MEMORY, .status = 1 };
	uint64_t id;

	CHECK_EQ(status_of(r, 0, 0, 0, NULL), NFC_ENOTSUP);
	CHECK_EQ(status_of(r, NFC_CONTROL_CLAIM + 1, 0, 0, NULL), NFC_ENOTSUP);
	CHECK_EQ(status_of(r, 0xffff, 0, 0, NULL), NFC_ENOTSUP);
	for (int cut = 0; cut < 2; cut++) {
		struct nfc_slot slot;
		struct nfc_control reply;

		id = host_direct(r, 0, &c, cut ? 55 : 56);
		host_expect_ack(r, 0, NFC_TYPE_ACK, NFC_H2D, id,
				NFC_STATE_CONSUMED, NFC_OK);
		id = r->channel[0].next[NFC_D2H]++;
		slot = host_expect(r, 0, NFC_TYPE_DIRECT, id);
		memcpy(&reply, slot.payload, sizeof(reply));
		CHECK_EQ(reply.status, NFC_EINVAL);
		host_reply(r, 0, NFC_TYPE_ACK, NFC_D2H, id, NFC_STATE_CONSUMED,
			   NFC_OK, 0);
		c.status = 0;
	}
	CHECK_EQ(status_of(r, NFC_CONTROL_MEMORY, NFC_CLS, 0, NULL), NFC_OK);
	rig_free(r);
}

CASE(memory_is_described)
{
	struct rig *r = rig_new(NULL);

	for (uint64_t type = 0; type < NFC_MEMORY_COUNT; type++) {
		struct nfc_control c = host_control(r, NFC_CONTROL_MEMORY, type,
						    0, 0, NULL);

		CHECK_EQ(c.status, NFC_OK);
		CHECK_EQ(c.a, type << NFC_MEMORY_SHIFT);
		CHECK_EQ(c.b, r->config.memory[type]);
		CHECK(c.c <= c.b);
	}
	CHECK_EQ(status_of(r, NFC_CONTROL_MEMORY, NFC_MEMORY_COUNT, 0, NULL),
		 NFC_EINVAL);
	CHECK_EQ(status_of(r, NFC_CONTROL_MEMORY, UINT64_MAX, 0, NULL),
		 NFC_EINVAL);
	rig_free(r);
}

CASE(programs_are_listed)
{
	struct rig *r = rig_new(NULL);
	bool puppet = false, sink = false;
	struct nfc_control c;
	uint64_t n = 0;

	for (;; n++) {
		c = host_control(r, NFC_CONTROL_PROGRAM, n, 0, 0, NULL);
		if (c.status)
			break;
		puppet |= !strcmp((char *)c.name, "puppet");
		sink |= !strcmp((char *)c.name, "sink");
	}
	CHECK_EQ(c.status, NFC_ENOPROGRAM);
	CHECK(puppet && sink);
	CHECK_EQ(status_of(r, NFC_CONTROL_PROGRAM, UINT64_MAX, 0, NULL),
		 NFC_ENOPROGRAM);
	rig_free(r);
}

/* ---- heartbeats ---- */

CASE(heartbeats_are_written)
{
	struct rig *r = rig_new(NULL);
	struct nfc_heartbeat first = rig_heartbeat(r), beat;

	CHECK(first.diagnostic >> NFC_DIAG_VALID_SHIFT);
	for (uint64_t i = 1; i <= 3; i++) {
		rig_advance(r, 100000000);
		beat = rig_heartbeat(r);
		CHECK_EQ(beat.beat, first.beat + i);
		CHECK_EQ(beat.now_ns, r->clock);
	}
	rig_advance(r, 99999999);
	CHECK_EQ(rig_heartbeat(r).beat, beat.beat);
	rig_free(r);
}

/* Computes for ten heartbeats, and yields twice in each. */
static void compute(struct nfc_process *self, struct puppet *p)
{
	p->size = rig_heartbeat(p->rig).beat;
	for (int i = 0; i < 20; i++) {
		p->rig->clock += 50000000;
		nfc_yield(self);
	}
	p->size = rig_heartbeat(p->rig).beat - p->size;
	stay(self);
}

CASE(heartbeats_go_on_beside_a_process_that_yields)
{
	struct rig *r = rig_new(NULL);

	CHECK_EQ(host_start(r, compute, 1)->size, 10);
	rig_free(r);
}

CASE(the_heartbeat_counts)
{
	struct rig *r = rig_new(NULL);
	struct puppet *p = host_start(r, hold, 3);
	uint64_t messages;

	rig_advance(r, 100000000);
	messages = rig_heartbeat(r).messages;
	for (uint32_t i = 0; i < 3; i++)
		host_direct(r, p->target + i, "x", 1);
	rig_advance(r, 100000000);
	CHECK_EQ(rig_heartbeat(r).messages, messages + 3);
	CHECK_EQ(rig_heartbeat(r).parked, 3);
	rig_free(r);
}

CASE(hello_describes_the_device)
{
	struct rig *r = rig_new(NULL);
	struct nfc_area *area = r->seat.area;
	struct nfc_hello hello;

	memcpy(&hello, area->device_hello.payload, sizeof(hello));
	CHECK_EQ(nfc_header_type(area->device_hello.header), NFC_TYPE_HELLO);
	CHECK_EQ(hello.magic, NFC_MAGIC);
	CHECK_EQ(hello.major, NFC_ABI_MAJOR);
	CHECK_EQ(hello.minor, NFC_ABI_MINOR);
	CHECK_EQ(hello.capabilities & ~NFC_CAP_KNOWN, 0);
	CHECK_EQ(hello.channels, r->config.channels);
	CHECK_EQ(hello.mailboxes, r->config.managers);
	CHECK_EQ(hello.islands, r->config.islands);
	CHECK_EQ(hello.slots, r->config.slots);
	CHECK_EQ(hello.window, r->config.window);
	CHECK_EQ(hello.beat_ms, r->config.beat_ms);
	CHECK_EQ(hello.contexts, 16);
	CHECK_EQ(hello.rsvd, 0);
	CHECK_EQ(area->magic, NFC_MAGIC);
	CHECK_EQ(area->size, nfc_area_size(&r->config));
	CHECK_EQ(area->state, NFC_DEVICE_READY);
	CHECK_EQ(area->epoch, r->seat.epoch);
	rig_free(r);
}

/* ---- shapes that make no sense ---- */

static void check_shape(struct nfc_config c, bool good)
{
	CHECK_EQ(nfc_config_check(&c), good ? 0 : -NFC_EINVAL);
}

CASE(shapes_are_checked)
{
	check_shape((struct nfc_config){ 0 }, true);
	check_shape((struct nfc_config){ .channels = 15 }, false);
	check_shape((struct nfc_config){ .channels = NFC_CHANNELS_MAX }, true);
	check_shape((struct nfc_config){ .channels = NFC_CHANNELS_MAX + 1 },
		    false);
	check_shape((struct nfc_config){ .managers = 64 }, true);
	check_shape((struct nfc_config){ .managers = 65 }, false);
	check_shape((struct nfc_config){ .managers = 32, .islands = 16 }, true);
	check_shape((struct nfc_config){ .managers = 64, .islands = 17 }, false);
	check_shape((struct nfc_config){ .managers = 3, .islands = 2 }, false);
	check_shape((struct nfc_config){ .slots = 8 }, false);
	check_shape((struct nfc_config){ .slots = 16 }, true);
	check_shape((struct nfc_config){ .slots = 17 }, false);
	check_shape((struct nfc_config){ .slots = NFC_SLOTS_MAX }, true);
	check_shape((struct nfc_config){ .slots = 2 * NFC_SLOTS_MAX }, false);
	check_shape((struct nfc_config){ .window = 1 }, true);
	check_shape((struct nfc_config){ .window = 3 }, false);
	check_shape((struct nfc_config){ .window = 2 * NFC_WINDOW_MAX }, false);
	check_shape((struct nfc_config){ .stack = 1024 }, false);
	check_shape((struct nfc_config){ .memory = { 4097 } }, false);
	check_shape((struct nfc_config){ .memory = { 0, 0, 0, 1ull << 38 } },
		    true);
	check_shape((struct nfc_config){ .memory = { 0, 0, 0,
						     (1ull << 38) + 4096 } },
		    false);
	check_shape((struct nfc_config){ .buffer = 1ull << 38 }, true);
	check_shape((struct nfc_config){ .buffer = 1ull << 39 }, false);
	check_shape((struct nfc_config){ .buffer = 4097 }, false);
	check_shape((struct nfc_config){ .access_ns = { 0, 0, 0, 1000000000 } },
		    true);
	check_shape((struct nfc_config){ .access_ns = { 1000000001 } }, false);
}
