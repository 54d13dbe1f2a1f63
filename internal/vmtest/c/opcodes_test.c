// SPDX-License-Identifier: MIT
/*
 * One test for each way an operation can be wrong, with everything else valid.
 * A refused one changes nothing: after each the channel still works.
 */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "rig.h"

#define COUNT(a) (sizeof(a) / sizeof(*(a)))

/* Flags of what moves bytes. */
enum { MOVES = NFCOMMS_NOWAIT | NFCOMMS_HOLD | NFCOMMS_STAMPED };

/* The fields that an opcode may carry; all else must be zero. */
static const struct {
	const char *name;
	uint16_t opcode, flags;
	bool channel, address, length, timeout, payload, target;
} opcodes[] = {
	{ "SUBSCRIBE", NFCOMMS_OP_SUBSCRIBE, 0, .target = true },
	{ "CLOSE", NFCOMMS_OP_CLOSE, NFCOMMS_H2D | NFCOMMS_D2H, .channel = true },
	{ "SEND", NFCOMMS_OP_SEND, MOVES, .channel = true, .length = true,
	  .payload = true },
	{ "ASK", NFCOMMS_OP_ASK, NFCOMMS_NOWAIT | NFCOMMS_HOLD, .channel = true,
	  .length = true, .payload = true },
	{ "RECEIVE", NFCOMMS_OP_RECEIVE, MOVES, .channel = true, .length = true },
	{ "SEND_IND", NFCOMMS_OP_SEND_IND, MOVES, .channel = true,
	  .address = true, .length = true, .timeout = true },
	{ "RECEIVE_IND", NFCOMMS_OP_RECEIVE_IND, MOVES, .channel = true,
	  .address = true, .length = true },
	{ "NEXT", NFCOMMS_OP_NEXT, NFCOMMS_NOWAIT, .channel = true },
	{ "ARM", NFCOMMS_OP_ARM, NFCOMMS_H2D | NFCOMMS_D2H | NFCOMMS_HOLD,
	  .channel = true },
	{ "ACCEPT", NFCOMMS_OP_ACCEPT, 0, .channel = true },
	{ "REFUSE", NFCOMMS_OP_REFUSE, NFCOMMS_H2D, .channel = true },
	{ "CONTROL", NFCOMMS_OP_CONTROL, 0, .address = true, .length = true,
	  .payload = true },
};

static uint8_t somewhere[NFC_PAGE_SIZE];

/* A valid operation of an opcode, that is never made: one flaw is added. */
static struct nfcomms_op valid(const struct bench *b, size_t i)
{
	struct nfcomms_op op = operation(opcodes[i].opcode, 0);
	struct nfcomms_request_memory request = {
		.request = NFCOMMS_CONTROL_MEMORY
	};

	op.channel = opcodes[i].channel ? b->ch : 0;
	if (op.opcode == NFCOMMS_OP_CLOSE || op.opcode == NFCOMMS_OP_ARM)
		op.flags = NFCOMMS_H2D;
	if (op.opcode == NFCOMMS_OP_SUBSCRIBE)
		op.target = NFC_TARGET_LOG;
	if (op.opcode == NFCOMMS_OP_CONTROL)
		memcpy(op.payload, &request, sizeof(request));
	return op;
}

/* Both ways in refuse it with the same error, and it never completes. */
static void check_refused(const struct bench *b, const char *opcode,
			  const char *what, const struct nfcomms_op *op,
			  int error)
{
	struct pollfd p = { .fd = b->fd, .events = POLLIN };

	if (!CHECK_EQ(submit(b->fd, op, 1), -error) ||
	    !CHECK_EQ(call(b->fd, op, NULL), error) ||
	    !CHECK_EQ(poll(&p, 1, 0), 0))
		printf("%s: %s\n", opcode, what);
}

CASE(operations_with_what_they_do_not_take)
{
	struct bench b = setup();

	for (size_t i = 0; i < COUNT(opcodes); i++) {
		const char *name = opcodes[i].name;
		struct nfcomms_op op;

		op = valid(&b, i);
		op.rsvd = 1u << 31;
		check_refused(&b, name, "reserved", &op, EINVAL);
		op = valid(&b, i);
		op.offset = 1;
		check_refused(&b, name, "offset", &op, EINVAL);
		op = valid(&b, i);
		op.region = 1;
		if (!opcodes[i].address || op.opcode == NFCOMMS_OP_CONTROL)
			check_refused(&b, name, "region", &op, EINVAL);
		op = valid(&b, i);
		op.target = 1;
		if (!opcodes[i].target)
			check_refused(&b, name, "target", &op, EINVAL);
		op = valid(&b, i);
		op.operation = 1;
		check_refused(&b, name, "operation", &op, EINVAL);
		op = valid(&b, i);
		op.epoch = 1;
		if (opcodes[i].channel)
			check_refused(&b, name, "epoch", &op, EINVAL);
		for (int bit = 0; bit < 16; bit++) {
			op = valid(&b, i);
			op.flags |= 1 << bit;
			if (!(opcodes[i].flags & 1 << bit))
				check_refused(&b, name, "flag", &op, EINVAL);
		}
		op = valid(&b, i);
		op.channel = opcodes[i].channel ? 54321 : 1;
		check_refused(&b, name, "channel", &op,
			      opcodes[i].channel ? ENOENT : EINVAL);
		op = valid(&b, i);
		op.address = (uintptr_t)somewhere;
		if (!opcodes[i].address || op.opcode == NFCOMMS_OP_CONTROL)
			check_refused(&b, name, "address", &op, EINVAL);
		op = valid(&b, i);
		op.length = 1;
		if (!opcodes[i].length || op.opcode == NFCOMMS_OP_CONTROL)
			check_refused(&b, name, "length", &op, EINVAL);
		op = valid(&b, i);
		op.timeout_ns = 1;
		if (!opcodes[i].timeout)
			check_refused(&b, name, "timeout", &op, EINVAL);
		op = valid(&b, i);
		op.payload[NFCOMMS_PAYLOAD_SIZE - 1] = 1;
		check_refused(&b, name, "payload", &op, EINVAL);
	}
	teardown(&b);
}

CASE(unknown_opcodes)
{
	static const uint16_t bad[] = { 0, NFCOMMS_OP_COUNT, 100, 0xffff };
	struct bench b = setup();

	for (size_t i = 0; i < COUNT(bad); i++) {
		struct nfcomms_op op = operation(bad[i], 0);

		check_refused(&b, "opcode", "unknown", &op, EINVAL);
	}
	teardown(&b);
}

CASE(halves_that_are_none)
{
	struct bench b = setup();
	struct nfcomms_op op = operation(NFCOMMS_OP_CLOSE, b.ch);

	check_refused(&b, "CLOSE", "no half", &op, EINVAL);
	op.opcode = NFCOMMS_OP_ARM;
	check_refused(&b, "ARM", "no half", &op, EINVAL);
	op.flags = NFCOMMS_H2D | NFCOMMS_D2H;
	check_refused(&b, "ARM", "two halves", &op, EINVAL);
	op.flags = NFCOMMS_HOLD;
	check_refused(&b, "ARM", "a place on no half", &op, EINVAL);
	op.flags = NFCOMMS_D2H | NFCOMMS_HOLD;
	check_refused(&b, "ARM", "a place among receives", &op, EINVAL);
	op = operation(NFCOMMS_OP_SEND_IND, b.ch);
	op.flags = NFCOMMS_NOWAIT;
	op.timeout_ns = 1;
	check_refused(&b, "SEND_IND", "no time, and some", &op, EINVAL);
	op.timeout_ns = 0;
	op.flags = NFCOMMS_HOLD;
	check_refused(&b, "SEND_IND", "a turn, and time", &op, EINVAL);
	op.opcode = NFCOMMS_OP_SEND;
	check_refused(&b, "SEND", "a turn, and time", &op, EINVAL);
	teardown(&b);
}

CASE(messages_over_56_bytes)
{
	struct bench b = setup();
	struct nfcomms_op op = message(b.ch, "", 0);

	op.length = NFCOMMS_PAYLOAD_SIZE + 1;
	check_refused(&b, "SEND", "57 bytes", &op, EINVAL);
	op.length = ~0ull;
	check_refused(&b, "SEND", "2^64-1 bytes", &op, EINVAL);
	op.opcode = NFCOMMS_OP_RECEIVE;
	check_refused(&b, "RECEIVE", "2^64-1 bytes", &op, EINVAL);
	op.length = NFCOMMS_PAYLOAD_SIZE + 1;
	check_refused(&b, "RECEIVE", "57 bytes", &op, EINVAL);
	op = message(b.ch, "xy", 2);
	op.length = 1;
	check_refused(&b, "SEND", "a byte behind its length", &op, EINVAL);
	teardown(&b);
}

static void wrong_control(const struct bench *b, const char *what,
			  const void *request)
{
	struct nfcomms_op op = operation(NFCOMMS_OP_CONTROL, 0);

	memcpy(op.payload, request, sizeof(op.payload));
	check_refused(b, "CONTROL", what, &op, EINVAL);
}

CASE(control_requests)
{
	struct bench b = setup();
	struct nfcomms_request_process p = { .request = 0 };
	struct nfcomms_request_start s = { .request = NFCOMMS_CONTROL_START,
					   .targets = 1 };
	struct nfcomms_request_memory m = { .request = NFCOMMS_CONTROL_MEMORY };
	struct nfcomms_request_load l = { .request = NFCOMMS_CONTROL_LOAD };
	struct nfcomms_op op;

	wrong_control(&b, "no request", &p);
	p.request = 8;
	wrong_control(&b, "unknown request", &p);
	p.request = NFC_CONTROL_OPEN; /* the driver's own: SUBSCRIBE */
	wrong_control(&b, "OPEN", &p);
	p.request = NFCOMMS_CONTROL_RUNNING;
	p.running = 1;
	wrong_control(&b, "an answer", &p);
	s.process = 1;
	wrong_control(&b, "a process", &s);
	s.process = 0;
	memset(s.name, 'a', sizeof(s.name));
	wrong_control(&b, "a name without an end", &s);
	m.status = 1;
	wrong_control(&b, "a status", &m);
	m.status = 0;
	m.rsvd[2] = 1;
	wrong_control(&b, "reserved", &m);
	wrong_control(&b, "an image of no bytes", &l);
	l.text[0] = 'x';
	op = operation(NFCOMMS_OP_CONTROL, 0);
	op.address = (uintptr_t)somewhere;
	op.length = sizeof(somewhere);
	memcpy(op.payload, &l, sizeof(l));
	check_refused(&b, "CONTROL", "an image with a text", &op, EINVAL);
	teardown(&b);
}

/* ACCEPT and REFUSE of nothing, and a target that is not there. */
CASE(operations_at_the_wrong_time)
{
	struct bench b = setup();
	struct nfcomms_op op = operation(NFCOMMS_OP_ACCEPT, b.ch);
	struct nfcomms_completion c = { .status = NFC_OK };

	CHECK(call(b.fd, &op, &c) == EINVAL || c.status == NFC_EINVAL);
	op.opcode = NFCOMMS_OP_REFUSE;
	c.status = NFC_OK;
	CHECK(call(b.fd, &op, &c) == EINVAL || c.status == NFC_EINVAL);
	op = operation(NFCOMMS_OP_SUBSCRIBE, 0);
	op.target = 4000;
	CHECK_EQ(outcome(b.fd, &op), NFC_ENOTARGET);
	op.target = NFC_TARGET_CONTROL; /* the driver's own */
	c.status = NFC_OK;
	CHECK(call(b.fd, &op, &c) == EINVAL || c.status != NFC_OK);
	op.target = ~0u;
	c.status = NFC_OK;
	CHECK(call(b.fd, &op, &c) == EINVAL || c.status == NFC_ENOTARGET);
	teardown(&b);
}

/* Operations before the first wrong one are taken, and it is named. */
CASE(a_batch_with_a_wrong_one)
{
	struct bench b = setup();
	struct nfcomms_op ops[3] = { message(b.ch, "a", 1), operation(0, b.ch),
				     message(b.ch, "b", 1) };
	struct nfcomms_submit s = { .size = sizeof(s),
				    .count = 3,
				    .op_size = sizeof(*ops),
				    .ops = (uintptr_t)ops };
	struct nfcomms_op receive = operation(NFCOMMS_OP_RECEIVE, b.ch);
	struct nfcomms_completion c;

	CHECK_EQ(control(b.fd, NFCOMMS_IOC_SUBMIT, &s), 0);
	CHECK_EQ(s.accepted, 1);
	CHECK_EQ(s.error, EINVAL);
	CHECK(reap(b.fd, &c));
	CHECK_EQ(c.status, NFC_OK);
	receive.length = 56;
	CHECK_EQ(outcome(b.fd, &receive), NFC_OK);
	teardown(&b);
}

CASE(more_operations_than_a_file_may_have)
{
	struct bench b = setup();
	uint32_t ch = program(b.fd, "hold");
	struct nfcomms_info info = { .size = sizeof(info) };
	struct nfcomms_op op = message(ch, "x", 1);
	struct nfcomms_completion c;
	unsigned int taken = 0;
	int last;

	CHECK_EQ(control(b.fd, NFCOMMS_IOC_INFO, &info), 0);
	while ((last = submit(b.fd, &op, 1)) == 1 && taken <= info.max_operations)
		taken++;
	CHECK_EQ(last, -EAGAIN);
	CHECK_EQ(taken, info.max_operations);
	CHECK_EQ(cancel_all(b.fd, taken_id() - taken, taken_id()), (int)taken);
	for (unsigned int i = 0; i < taken; i++)
		REQUIRE(reap(b.fd, &c) && CHECK_EQ(c.status, NFC_EWITHDRAWN));
	teardown(&b);
}
