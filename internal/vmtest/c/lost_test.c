// SPDX-License-Identifier: MIT
/*
 * A device that continues beating but loses one message, its own or the host's
 * (nfsim --script drop, lose). The call that it was about has no deadline, and
 * ends all the same; what only waits for its target waits on.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bus.h"
#include "rig.h"

/* Short, but longer than a loaded machine keeps a transfer waiting. */
#define STALL_MS "4000"

enum {
	SIZE = 40 * NFC_PAGE_SIZE, /* seven lists */
	WAITING = 2, /* a message and a transfer, by their user_data */
};

/*
 * The messages that a script loses, and the end of the call that meets the
 * loss.
 */
static const struct loss {
	const char *script;
	uint16_t call;
	uint32_t status;
} losses[] = {
	/* Nobody can tell whether these were delivered. The first of each kind is
	 * what waits at a gate. */
	{ "lose@2:direct", NFCOMMS_OP_SEND, NFC_ERESET },
	{ "drop:ack", NFCOMMS_OP_SEND, NFC_ERESET },
	{ "lose@2:begin", NFCOMMS_OP_SEND_IND, NFC_ERESET },
	/* READY is the second ACK: the message had one. */
	{ "drop@2:ack", NFCOMMS_OP_SEND_IND, NFC_ESTALLED },
	{ "lose@2:list", NFCOMMS_OP_SEND_IND, NFC_ESTALLED },
	{ "lose@8:list", NFCOMMS_OP_SEND_IND, NFC_ESTALLED },
	{ "drop:done", NFCOMMS_OP_SEND_IND, NFC_ESTALLED },
	/* On a busy machine the offer at its gate may be asked back, and brings its list
	 * again: then the ninth is the last of the send. */
	{ "lose@9:list", NFCOMMS_OP_RECEIVE_IND, NFC_ESTALLED },
	{ "drop@2:done", NFCOMMS_OP_RECEIVE_IND, NFC_ESTALLED },
};

static uint8_t *buffer;

static const struct loss *expected(void)
{
	const char *script = getenv("NFC_SCRIPT");

	for (size_t i = 0; i < sizeof(losses) / sizeof(*losses); i++)
		if (script && !strcmp(script, losses[i].script))
			return &losses[i];
	CHECK(!"a script that is known");
	return losses;
}

/*
 * A message and a transfer, there and back: how it ended, and by which call if
 * it was not well.
 */
static uint32_t converse(int fd, uint32_t channel, uint16_t *call)
{
	struct nfcomms_op ops[] = {
		message(channel, "hello", 5),
		operation(NFCOMMS_OP_RECEIVE, channel),
		transfer(NFCOMMS_OP_SEND_IND, channel, buffer, SIZE),
		transfer(NFCOMMS_OP_RECEIVE_IND, channel, buffer, SIZE),
	};
	uint32_t status = NFC_OK;

	ops[1].length = NFCOMMS_PAYLOAD_SIZE;
	for (size_t i = 0; i < sizeof(ops) / sizeof(*ops) && !status; i++) {
		*call = ops[i].opcode;
		status = outcome(fd, &ops[i]);
	}
	return status;
}

/* A message and a transfer to gates that nobody opens. */
static void wait_at_gates(int fd, uint32_t ports[WAITING][2])
{
	struct nfcomms_op ops[WAITING];
	uint32_t first = 0;

	for (int i = 0; i < WAITING; i++) {
		CHECK_EQ(start(fd, "gate", 2, &first), NFC_OK);
		ports[i][0] = subscribe(fd, first);
		ports[i][1] = subscribe(fd, first + 1);
	}
	ops[0] = message(ports[0][1], "patience", 8);
	ops[1] = transfer(NFCOMMS_OP_SEND_IND, ports[1][1], buffer, SIZE);
	for (int i = 0; i < WAITING; i++)
		ops[i].user_data = i;
	CHECK_EQ(submit(fd, ops, WAITING), WAITING);
}

/* Each is delivered, once, when its gate opens. */
static void open_gates(int fd, uint32_t ports[WAITING][2])
{
	for (uint64_t i = 0; i < WAITING; i++) {
		struct nfcomms_op open = message(ports[i][0], "", 0);
		struct nfcomms_op told = operation(NFCOMMS_OP_RECEIVE,
						   ports[i][0]);
		struct nfcomms_completion c = { .status = NFC_STATUS_COUNT };
		uint64_t words[2] = { 0, 0 };

		CHECK_EQ(outcome(fd, &open), NFC_OK);
		if (reap(fd, &c)) {
			CHECK_EQ(c.user_data, i);
			CHECK_EQ(c.status, NFC_OK);
		}
		told.length = NFCOMMS_PAYLOAD_SIZE;
		CHECK_EQ(call(fd, &told, &c), 0);
		CHECK_EQ(c.status, NFC_OK);
		memcpy(words, c.payload, sizeof(words));
		CHECK_EQ(words[0], i);
		CHECK_EQ(words[1], i ? SIZE : 8);
	}
}

/* The device is lost, and with it what waited: nothing else was safe. */
static void end_with_device(int fd, uint32_t was)
{
	struct nfcomms_completion c = { .status = NFC_STATUS_COUNT };

	check_lost(fd, was);
	for (int i = 0; i < WAITING; i++)
		if (reap(fd, &c))
			CHECK_EQ(c.status, NFC_ERESET);
}

CASE(a_lost_message)
{
	struct nfcomms_health health = { .size = sizeof(health) };
	const struct loss *loss = expected();
	uint32_t ports[WAITING][2];
	uint16_t call = 0;
	int fd = fresh();
	uint32_t status, was = epoch(fd);
	char before[16];

	snprintf(before, sizeof(before), "%lu", limit("stall_timeout_ms"));
	set_limit("stall_timeout_ms", STALL_MS);
	buffer = pages(SIZE, 0x5a);
	wait_at_gates(fd, ports);
	still_alive();
	status = converse(fd, program(fd, "loopback"), &call);
	/* A device that meets the list after the lost one refuses that one. */
	if (strstr(loss->script, "list") && status == NFC_EPROTO)
		printf("%s: refused\n", loss->script);
	else
		CHECK_EQ(status, loss->status);
	if (!strcmp(loss->script, "lose@9:list") && call == NFCOMMS_OP_SEND_IND)
		printf("%s: a list came twice\n", loss->script);
	else
		CHECK_EQ(call, loss->call);
	if (loss->status == NFC_ERESET)
		end_with_device(fd, was);
	else
		open_gates(fd, ports);
	CHECK_EQ(control(fd, NFCOMMS_IOC_HEALTH, &health), 0);
	CHECK_EQ(health.faults, 0);
	close(fd);
	check_pins();

	set_limit("stall_timeout_ms", before);
	fd = loss->status == NFC_ERESET ? fresh() : client();
	CHECK_EQ(converse(fd, program(fd, "loopback"), &call), NFC_OK);
	CHECK_EQ(state(fd), NFCOMMS_STATE_READY);
	close(fd);
	free_pages(buffer, SIZE);
	check_pins();
}
