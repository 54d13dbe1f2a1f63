// SPDX-License-Identifier: MIT
/* Messages of up to 56 bytes, both ways: what is accepted, parked, withdrawn. */
#include <string.h>

#include "rig.h"

static struct nfc_channel *port(struct nfc_process *self)
{
	return nfc_channel_of(self, 0);
}

static void read_once(struct nfc_process *self, struct puppet *p)
{
	note(p, channel_read(port(self), p->buf, sizeof(p->buf)));
	stay(self);
}

static void read_later(struct nfc_process *self, struct puppet *p)
{
	later(self);
	read_once(self, p);
}

static void read_short(struct nfc_process *self, struct puppet *p)
{
	note(p, channel_read(port(self), p->buf, 4));
	read_once(self, p);
}

static void read_ind(struct nfc_process *self, struct puppet *p)
{
	p->memory = nfc_alloc(self, NFC_EMEM, 4096);
	note(p, channel_read_ind(port(self), p->memory, 64));
	stay(self);
}

static void read_ind_later(struct nfc_process *self, struct puppet *p)
{
	later(self);
	read_ind(self, p);
}

static void read_for_ever(struct nfc_process *self, struct puppet *p)
{
	while (channel_read(port(self), p->buf, sizeof(p->buf)) != -NFC_ESTOPPED)
		p->size++;
}

static void expect_consumed(struct rig *r, uint32_t target, uint64_t id)
{
	struct nfc_ack ack = host_expect_ack(r, target, NFC_TYPE_ACK, NFC_H2D,
					     id, NFC_STATE_CONSUMED, NFC_OK);

	CHECK_EQ(ack.outstanding, 0);
	CHECK_EQ(ack.fault_index, 0);
}

static void expect_refused(struct rig *r, uint32_t target, uint64_t id,
			   uint32_t status)
{
	host_expect_ack(r, target, NFC_TYPE_ERROR, NFC_H2D, id,
			NFC_STATE_FAILED, status);
}

CASE(a_waiting_reader_gets_the_message)
{
	struct rig *r = rig_new(NULL);
	struct puppet *p = host_start(r, read_once, 1);
	uint64_t id = host_direct(r, p->target, "hello", 5);

	expect_consumed(r, p->target, id);
	CHECK_EQ(p->rc[0], 5);
	CHECK(!memcmp(p->buf, "hello", 5));
	host_expect_nothing(r, p->target);
	rig_free(r);
}

CASE(a_parked_message_waits_for_its_reader)
{
	struct rig *r = rig_new(NULL);
	struct puppet *p = host_start(r, read_later, 1);
	uint64_t id = host_direct(r, p->target, "hello", 5);

	host_expect_nothing(r, p->target);
	go(r);
	expect_consumed(r, p->target, id);
	CHECK_EQ(p->rc[0], 5);
	CHECK(!memcmp(p->buf, "hello", 5));
	rig_free(r);
}

CASE(messages_of_every_length)
{
	struct rig *r = rig_new(NULL);
	struct puppet *p = host_start(r, read_for_ever, 1);
	uint8_t data[NFC_PAYLOAD_SIZE];

	for (size_t n = 0; n <= NFC_PAYLOAD_SIZE; n++) {
		fill_pattern(data, n, n);
		memset(p->buf, 0, sizeof(p->buf));
		expect_consumed(r, p->target,
				host_direct(r, p->target, data, n));
		CHECK_EQ(p->size, n + 1);
		CHECK(!memcmp(p->buf, data, n));
	}
	rig_free(r);
}

CASE(a_message_over_the_buffer_stays_offered)
{
	struct rig *r = rig_new(NULL);
	struct puppet *p = host_start(r, read_short, 1);
	uint64_t id = host_direct(r, p->target, "hello", 5);

	expect_consumed(r, p->target, id);
	CHECK_EQ(p->rc[0], -NFC_ETOOLARGE);
	CHECK_EQ(p->rc[1], 5);
	CHECK(!memcmp(p->buf, "hello", 5));
	host_expect_nothing(r, p->target);
	rig_free(r);
}

static void check_kind(void (*fn)(struct nfc_process *, struct puppet *))
{
	struct rig *r = rig_new(NULL);
	struct puppet *p = host_start(r, fn, 1);
	uint64_t id = host_direct(r, p->target, "hello", 5);

	go(r);
	expect_refused(r, p->target, id, NFC_EKIND);
	CHECK_EQ(p->rc[0], -NFC_EKIND);
	host_expect_nothing(r, p->target);
	rig_free(r);
}

CASE(a_message_to_a_transfer_reader_is_refused)
{
	check_kind(read_ind);
	check_kind(read_ind_later);
}

CASE(withdraw_before_the_accept)
{
	struct rig *r = rig_new(NULL);
	struct puppet *p = host_start(r, read_later, 1);
	uint64_t id = host_direct(r, p->target, "one", 3);

	host_note(r, p->target, NFC_TYPE_WITHDRAW, NFC_H2D, id);
	host_expect_note(r, p->target, NFC_TYPE_WITHDRAWN, NFC_H2D, id);
	go(r);
	host_expect_nothing(r, p->target);
	CHECK_EQ(p->step, 0);
	id = host_direct(r, p->target, "three", 5);
	expect_consumed(r, p->target, id);
	CHECK_EQ(p->rc[0], 5);
	CHECK_EQ(rig_heartbeat(r).parked, 0);
	rig_free(r);
}

CASE(withdraw_after_the_accept_says_nothing)
{
	struct rig *r = rig_new(NULL);
	struct puppet *p = host_start(r, read_once, 1);
	uint64_t id = host_direct(r, p->target, "one", 3);

	expect_consumed(r, p->target, id);
	host_note(r, p->target, NFC_TYPE_WITHDRAW, NFC_H2D, id);
	host_expect_nothing(r, p->target);
	rig_free(r);
}

/* Both at once: exactly one answer, whichever it is. */
CASE(direct_and_withdraw_back_to_back)
{
	struct rig *r = rig_new(NULL);
	struct puppet *p = host_start(r, read_once, 1);
	uint64_t id = host_direct(r, p->target, "one", 3);
	struct nfc_slot slot;

	host_note(r, p->target, NFC_TYPE_WITHDRAW, NFC_H2D, id);
	rig_step(r);
	REQUIRE(host_take(r, p->target, &slot));
	if (nfc_header_type(slot.header) == NFC_TYPE_ACK)
		CHECK_EQ(p->rc[0], 3);
	else
		CHECK_EQ(nfc_header_type(slot.header), NFC_TYPE_WITHDRAWN);
	CHECK_EQ(p->step, nfc_header_type(slot.header) == NFC_TYPE_ACK);
	host_expect_nothing(r, p->target);
	rig_free(r);
}

static void impatient(struct nfc_config *c)
{
	c->target_timeout_ns = 5000000;
}

static void hold(struct nfc_process *self, struct puppet *p)
{
	(void)p;
	stay(self);
}

/* The host asks whether the device still has a transfer, and offers it again. */
CASE(withdraw_of_a_parked_transfer)
{
	struct rig *r = rig_new(NULL);
	struct puppet *p = host_start(r, hold, 1);

	for (int i = 0; i < 3; i++) {
		uint64_t id = host_begin(r, p->target, 100, 0);

		rig_step(r);
		host_note(r, p->target, NFC_TYPE_WITHDRAW, NFC_H2D, id);
		host_expect_note(r, p->target, NFC_TYPE_WITHDRAWN, NFC_H2D, id);
		host_note(r, p->target, NFC_TYPE_ABORT, NFC_H2D, id);
		host_expect_nothing(r, p->target);
	}
	rig_advance(r, 200000000);
	CHECK_EQ(rig_heartbeat(r).parked, 0);
	rig_free(r);
}

/* The sooner of the host's bound and the device's own ends an offer. */
CASE(a_longer_bound_of_the_host_changes_nothing)
{
	struct rig *r = rig_new(impatient);
	struct puppet *p = host_start(r, hold, 1);
	uint64_t id = host_begin(r, p->target, 100, 3600000000000);

	rig_step(r);
	rig_advance(r, 4999999);
	host_expect_nothing(r, p->target);
	rig_advance(r, 1);
	host_expect_ack(r, p->target, NFC_TYPE_ERROR, NFC_H2D, id,
			NFC_STATE_FAILED, NFC_ETIMEOUT);
	rig_free(r);
}

CASE(an_offer_nobody_takes_times_out)
{
	struct rig *r = rig_new(impatient);
	struct puppet *p = host_start(r, hold, 1);
	uint64_t id = host_direct(r, p->target, "x", 1);

	rig_step(r);
	rig_advance(r, 4999999);
	host_expect_nothing(r, p->target);
	rig_advance(r, 1);
	expect_refused(r, p->target, id, NFC_ETIMEOUT);
	rig_advance(r, 50000000);
	host_expect_nothing(r, p->target);
	CHECK_EQ(rig_heartbeat(r).parked, 0);
	rig_free(r);
}

/* Of several deadlines each ends in its turn, also when others are taken back. */
CASE(deadlines_are_kept_apart)
{
	struct rig *r = rig_new(impatient);
	struct puppet *p = host_start(r, hold, 4);
	uint64_t id[4];

	for (uint32_t i = 0; i < 4; i++) {
		id[i] = host_direct(r, p->target + i, "x", 1);
		rig_step(r);
		r->clock += 1000000;
	}
	host_note(r, p->target + 1, NFC_TYPE_WITHDRAW, NFC_H2D, id[1]);
	host_expect_note(r, p->target + 1, NFC_TYPE_WITHDRAWN, NFC_H2D, id[1]);
	for (uint32_t i = 0; i < 4; i++) {
		rig_advance(r, 1000000);
		if (i != 1)
			expect_refused(r, p->target + i, id[i], NFC_ETIMEOUT);
		for (uint32_t j = i + 1; j < 4; j++)
			host_expect_nothing(r, p->target + j);
	}
	rig_free(r);
}

/* ---- to the host ---- */

static void write_once(struct nfc_process *self, struct puppet *p)
{
	note(p, channel_write(port(self), "hello", 5));
	stay(self);
}

static void write_twice(struct nfc_process *self, struct puppet *p)
{
	note(p, channel_write(port(self), "hello", 5));
	note(p, channel_write(port(self), "again", 5));
	stay(self);
}

static uint64_t expect_offer(struct rig *r, uint32_t target, const char *text)
{
	uint64_t id = r->channel[target].next[NFC_D2H]++;
	struct nfc_slot slot = host_expect(r, target, NFC_TYPE_DIRECT, id);

	CHECK_EQ(nfc_header_length(slot.header), strlen(text));
	CHECK(!memcmp(slot.payload, text, strlen(text)));
	return id;
}

CASE(a_write_ends_when_the_host_took_it)
{
	struct rig *r = rig_new(NULL);
	struct puppet *p = host_start(r, write_twice, 1);
	uint64_t id = expect_offer(r, p->target, "hello");

	CHECK_EQ(p->step, 0);
	host_reply(r, p->target, NFC_TYPE_ACK, NFC_D2H, id, NFC_STATE_CONSUMED,
		   NFC_OK, 0);
	expect_offer(r, p->target, "again");
	CHECK_EQ(p->step, 1);
	CHECK_EQ(p->rc[0], 0);
	rig_free(r);
}

CASE(a_write_waits_for_a_subscriber)
{
	struct rig *r = rig_new(NULL);
	struct puppet *p = host_launch(r, 0, write_once, 1);

	host_expect_nothing(r, p->target);
	CHECK_EQ(host_open(r, p->target), 0);
	expect_offer(r, p->target, "hello");
	rig_free(r);
}

/* Each refusal of the host reaches the process as its own status. */
CASE(a_write_the_host_refuses)
{
	static const uint32_t why[] = { NFC_EKIND, NFC_ECLOSED, NFC_ETIMEOUT,
					NFC_ETOOLARGE };

	for (size_t i = 0; i < sizeof(why) / sizeof(*why); i++) {
		struct rig *r = rig_new(NULL);
		struct puppet *p = host_start(r, write_once, 1);
		uint64_t id = expect_offer(r, p->target, "hello");

		host_reply(r, p->target, NFC_TYPE_ERROR, NFC_D2H, id,
			   NFC_STATE_FAILED, why[i], 0);
		rig_step(r);
		CHECK_EQ(p->step, 1);
		CHECK_EQ(p->rc[0], -(int)why[i]);
		rig_free(r);
	}
}

static void write_much(struct nfc_process *self, struct puppet *p)
{
	uint8_t buf[NFC_PAYLOAD_SIZE + 1] = { 0 };

	note(p, channel_write(port(self), buf, sizeof(buf)));
	note(p, channel_write(port(self), buf, SIZE_MAX));
	stay(self);
}

CASE(a_write_over_56_bytes_is_refused_at_once)
{
	struct rig *r = rig_new(NULL);
	struct puppet *p = host_start(r, write_much, 1);

	rig_step(r);
	CHECK_EQ(p->rc[0], -NFC_ETOOLARGE);
	CHECK_EQ(p->rc[1], -NFC_ETOOLARGE);
	host_expect_nothing(r, p->target);
	rig_free(r);
}

/* Both halves at once: a message in flight each way. */
CASE(the_halves_do_not_mix)
{
	struct rig *r = rig_new(NULL);
	struct puppet *p = host_start(r, write_once, 1);
	uint64_t down = host_direct(r, p->target, "down", 4);
	uint64_t up = expect_offer(r, p->target, "hello");

	host_note(r, p->target, NFC_TYPE_WITHDRAW, NFC_H2D, down);
	host_expect_note(r, p->target, NFC_TYPE_WITHDRAWN, NFC_H2D, down);
	CHECK_EQ(p->step, 0);
	host_reply(r, p->target, NFC_TYPE_ACK, NFC_D2H, up, NFC_STATE_CONSUMED,
		   NFC_OK, 0);
	rig_step(r);
	CHECK_EQ(p->step, 1);
	CHECK_EQ(p->rc[0], 0);
	rig_free(r);
}
