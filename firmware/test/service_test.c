// SPDX-License-Identifier: MIT
/* The targets that are always there, and the programs of this tree. */
#include <stdio.h>
#include <string.h>

#include "rig.h"

static uint64_t say(struct rig *r, uint32_t target, const void *data, size_t n)
{
	uint64_t id = host_direct(r, target, data, n);

	host_expect_ack(r, target, NFC_TYPE_ACK, NFC_H2D, id,
			NFC_STATE_CONSUMED, NFC_OK);
	return id;
}

/* Take a message from a target; returns its length. */
static uint64_t read_message(struct rig *r, uint32_t target, void *data,
			     size_t n)
{
	uint64_t id = r->channel[target].next[NFC_D2H]++;
	struct nfc_slot slot = host_expect(r, target, NFC_TYPE_DIRECT, id);

	memcpy(data, slot.payload, n);
	host_reply(r, target, NFC_TYPE_ACK, NFC_D2H, id, NFC_STATE_CONSUMED,
		   NFC_OK, 0);
	rig_step(r);
	return nfc_header_length(slot.header);
}

static void send(struct rig *r, uint32_t target, const uint8_t *buf,
		 uint64_t size)
{
	uint64_t id = host_begin(r, target, size, 0);
	struct nfc_ack ack = host_drive(r, target, NFC_H2D, id, buf, size);

	CHECK_EQ(ack.state, NFC_STATE_DONE);
	host_note(r, target, NFC_TYPE_FIN, NFC_H2D, id);
	rig_step(r);
}

static void receive(struct rig *r, uint32_t target, uint8_t *buf, uint64_t size)
{
	uint64_t id = r->channel[target].next[NFC_D2H]++;
	struct nfc_slot slot = host_expect(r, target, NFC_TYPE_IND_BEGIN, id);

	CHECK_EQ(slot.payload[1], size);
	if (size)
		CHECK_EQ(host_drive(r, target, NFC_D2H, id, buf, size).state,
			 NFC_STATE_DONE);
	host_note(r, target, NFC_TYPE_FIN, NFC_D2H, id);
	rig_step(r);
}

static uint32_t start(struct rig *r, const char *name, uint32_t ports)
{
	struct nfc_control c = host_control(r, NFC_CONTROL_START, 0, ports, 0,
					    name);

	CHECK_EQ(c.status, NFC_OK);
	for (uint32_t i = 0; i < ports; i++)
		CHECK_EQ(host_open(r, (uint32_t)c.b + i), 0);
	return (uint32_t)c.b;
}

CASE(loopback_returns_everything)
{
	struct rig *r = rig_new(NULL);
	uint8_t *out = host_buffer(r, 100000, 1),
		*in = host_buffer(r, 100000, 2);
	uint8_t data[NFC_PAYLOAD_SIZE];
	uint32_t target = NFC_TARGET_LOOPBACK;

	CHECK_EQ(host_open(r, target), 0);
	for (size_t n = 0; n <= NFC_PAYLOAD_SIZE; n += 7) {
		say(r, target, out, n);
		CHECK_EQ(read_message(r, target, data, n), n);
		CHECK(!memcmp(data, out, n));
	}
	send(r, target, out, 100000);
	receive(r, target, in, 100000);
	CHECK(!memcmp(in, out, 100000));
	send(r, target, out, 0);
	receive(r, target, in, 0);
	rig_free(r);
}

/* More than the device holds is refused, and the service continues. */
CASE(loopback_refuses_what_it_cannot_hold)
{
	struct rig *r = rig_new(NULL);
	uint32_t target = NFC_TARGET_LOOPBACK;
	uint8_t data[8];
	uint64_t id;

	CHECK_EQ(host_open(r, target), 0);
	id = host_begin(r, target, 1ull << 40, 0);
	rig_step(r);
	CHECK_EQ(r->received_count, 1);
	CHECK_EQ(nfc_header_type(r->received[0].header), NFC_TYPE_ERROR);
	CHECK_EQ(nfc_header_sequence(r->received[0].header), id);
	r->received_count = 0;
	say(r, target, "x", 1);
	CHECK_EQ(read_message(r, target, data, 1), 1);
	rig_free(r);
}

static void small_emem(struct nfc_config *c)
{
	c->memory[NFC_EMEM] = 64 * RIG_PAGE;
}

static uint64_t emem_free(struct rig *r)
{
	return host_control(r, NFC_CONTROL_MEMORY, NFC_EMEM, 0, 0, "").c;
}

/* It is a service, which is never stopped: memory it keeps is lost to all others. */
static void check_gives_back(uint32_t ports)
{
	struct rig *r = rig_new(small_emem);
	uint64_t big = 48 * RIG_PAGE, before;
	uint8_t *buf = host_buffer(r, big, 1);
	uint32_t target = NFC_TARGET_LOOPBACK;

	if (ports > 1)
		target = start(r, "loopback", ports);
	else
		CHECK_EQ(host_open(r, target), 0);
	before = emem_free(r);
	for (int i = 0; i < 3; i++) { /* it keeps what it may need at once */
		send(r, target, buf, big);
		receive(r, target, buf, big);
		CHECK(emem_free(r) <= before - big);
	}
	send(r, target, buf, 10);
	receive(r, target, buf, 10);
	CHECK(emem_free(r) >= before - RIG_PAGE);
	rig_advance(r, 1000000000);
	CHECK_EQ(emem_free(r), before);
	send(r, target, buf, big);
	receive(r, target, buf, big);
	rig_advance(r, 1000000000);
	CHECK_EQ(emem_free(r), before);
	rig_free(r);
}

CASE(loopback_gives_its_memory_back)
{
	check_gives_back(1);
	check_gives_back(3);
	check_gives_back(12);
}

static void take_all_emem(struct nfc_process *self, struct puppet *p)
{
	p->memory = nfc_alloc(self, NFC_EMEM, 63 * RIG_PAGE);
	channel_read(nfc_channel_of(self, 0), p->buf, sizeof(p->buf));
	nfc_free(self, p->memory);
	stay(self);
}

/* Without memory for a list of its ports it waits, and others have the island. */
CASE(many_ports_without_memory)
{
	struct rig *r = rig_new(small_emem);
	uint64_t stat[3] = { 0 }, id;
	uint32_t target, hoarder;

	hoarder = host_start(r, take_all_emem, 1)->target;
	CHECK_EQ(emem_free(r), 0);
	target = start(r, "sink", 12);
	id = host_direct(r, target + 11, "x", 1);
	CHECK(rig_step(r));
	host_expect_nothing(r, target + 11);
	say(r, hoarder, "x", 1);
	rig_advance(r, 1000000);
	host_expect_ack(r, target + 11, NFC_TYPE_ACK, NFC_H2D, id,
			NFC_STATE_CONSUMED, NFC_OK);
	say(r, target, "SINKSTAT", 8);
	read_message(r, target, stat, sizeof(stat));
	CHECK_EQ(stat[0], 1);
	rig_free(r);
}

CASE(log_passes_lines)
{
	struct rig *r = rig_new(NULL);
	uint32_t target = NFC_TARGET_LOG;
	char line[NFC_PAYLOAD_SIZE] = { 0 };

	CHECK_EQ(host_open(r, target), 0);
	say(r, target, "from the host", 13);
	CHECK(!strcmp(r->log, "from the host"));
	CHECK_EQ(read_message(r, target, line, 13), 13);
	CHECK(!strcmp(line, "from the host"));
	rig_free(r);
}

/* A short line takes the place of a long one: nothing of that is left. */
CASE(log_lines_are_whole)
{
	struct rig *r = rig_new(NULL);
	uint32_t target = NFC_TARGET_LOG;
	char line[NFC_PAYLOAD_SIZE];

	CHECK_EQ(host_open(r, target), 0);
	for (int i = 0; i < 2 * NFC_LOG_LINES; i++) {
		size_t n = i < NFC_LOG_LINES ? 50 : 1 + i % 9;

		memset(line, 'a' + i % 26, n);
		say(r, target, line, n);
		CHECK_EQ(read_message(r, target, line, n), n);
	}
	rig_free(r);
}

CASE(telemetry_counts)
{
	struct rig *r = rig_new(NULL);
	uint32_t target = NFC_TARGET_TELEMETRY, page = 0;
	uint64_t first[7], second[7];

	CHECK_EQ(host_open(r, target), 0);
	say(r, target, &page, sizeof(page));
	CHECK_EQ(read_message(r, target, first, sizeof(first)), sizeof(first));
	say(r, target, &page, sizeof(page));
	CHECK_EQ(read_message(r, target, second, sizeof(second)),
		 sizeof(second));
	CHECK(second[NFC_COUNT_MESSAGES] > first[NFC_COUNT_MESSAGES]);
	CHECK_EQ(second[NFC_COUNT_DIRECT_H2D], first[NFC_COUNT_DIRECT_H2D] + 1);
	CHECK_EQ(second[NFC_COUNT_DIRECT_D2H], first[NFC_COUNT_DIRECT_D2H] + 1);
	page = 1;
	say(r, target, &page, sizeof(page));
	CHECK_EQ(read_message(r, target, first, sizeof(first)), sizeof(first));
	say(r, target, &page, sizeof(page));
	CHECK_EQ(read_message(r, target, second, sizeof(second)),
		 sizeof(second));
	CHECK(second[NFC_COUNT_SWITCHES - 7] > first[NFC_COUNT_SWITCHES - 7]);
	page = UINT32_MAX;
	say(r, target, &page, sizeof(page));
	CHECK_EQ(read_message(r, target, first, sizeof(first)), sizeof(first));
	for (int i = 0; i < 7; i++)
		CHECK_EQ(first[i], 0);
	rig_free(r);
}

CASE(time_tells_the_clock)
{
	struct rig *r = rig_new(NULL);
	uint64_t ask = 0x1122334455667788, stamp[3];

	CHECK_EQ(host_open(r, NFC_TARGET_TIME), 0);
	say(r, NFC_TARGET_TIME, &ask, sizeof(ask));
	CHECK_EQ(read_message(r, NFC_TARGET_TIME, stamp, sizeof(stamp)),
		 sizeof(stamp));
	CHECK_EQ(stamp[0], ask);
	CHECK(stamp[1] <= stamp[2]);
	CHECK_EQ(stamp[2], r->clock);
	rig_free(r);
}

/*
 * A request of the wrong kind or length must not take the island: whatever
 * arrives, the device sleeps again and its control channel answers.
 */
static void check_odd(struct rig *r, uint32_t target, const char *name)
{
	uint8_t data[NFC_PAYLOAD_SIZE] = { 0 };

	for (size_t n = 0; n <= NFC_PAYLOAD_SIZE; n += 8) {
		unsigned int before = test_failures();

		host_direct(r, target, data, n);
		if (!CHECK(rig_step(r)) || test_failures() != before) {
			printf("... %s spins after %zu bytes\n", name, n);
			return;
		}
		CHECK_EQ(host_control(r, NFC_CONTROL_MEMORY, 0, 0, 0, NULL).status,
			 NFC_OK);
		/*
		 * Any answer is refused; the offer that it left is withdrawn.
		 */
		host_note(r, target, NFC_TYPE_WITHDRAW, NFC_H2D,
			  r->channel[target].next[NFC_H2D] - 1);
		host_reply(r, target, NFC_TYPE_ERROR, NFC_D2H,
			   r->dev->host[0]->channels[target].half[NFC_D2H].next -
				   1,
			   NFC_STATE_FAILED, NFC_EKIND, 0);
		rig_step(r);
		r->received_count = 0;
	}
	host_begin(r, target, 100, 0);
	CHECK(rig_step(r));
	CHECK_EQ(host_control(r, NFC_CONTROL_MEMORY, 0, 0, 0, NULL).status,
		 NFC_OK);
}

CASE(odd_requests_do_not_take_the_island)
{
	static const char *const names[] = { "source", "flood", "expect",
					     "gate", "sink" };
	static const char *const services[] = { "loopback", "log", "telemetry",
						"time" };

	for (uint32_t i = 0; i < 4; i++) {
		struct rig *r = rig_new(NULL);

		r->may_spin = true;
		CHECK_EQ(host_open(r, i + 1), 0);
		check_odd(r, i + 1, services[i]);
		rig_free(r);
	}
	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
		struct rig *r = rig_new(NULL);

		r->may_spin = true;
		check_odd(r, start(r, names[i], 2), names[i]);
		rig_free(r);
	}
}

CASE(sink_counts)
{
	struct rig *r = rig_new(NULL);
	uint32_t target = start(r, "sink", 1);
	uint8_t *buf = host_buffer(r, 5000, 1);
	uint64_t stat[3], hash = 0xcbf29ce484222325;

	say(r, target, "one", 3);
	send(r, target, buf, 5000);
	for (int i = 0; i < 5000; i++)
		hash = (hash ^ buf[i]) * 0x100000001b3;
	say(r, target, "SINKSTAT", 8);
	CHECK_EQ(read_message(r, target, stat, sizeof(stat)), sizeof(stat));
	CHECK_EQ(stat[0], 1);
	CHECK_EQ(stat[1], 5000);
	CHECK_EQ(stat[2], hash);
	rig_free(r);
}

CASE(source_gives_its_pattern)
{
	struct rig *r = rig_new(NULL);
	uint32_t target = start(r, "source", 1);
	uint64_t want[2] = { 5000, 42 };
	uint8_t *in = host_buffer(r, 5000, 1),
		*pattern = host_buffer(r, 5000, 42);

	for (int i = 0; i < 2; i++) {
		say(r, target, want, sizeof(want));
		memset(in, 0, 5000);
		receive(r, target, in, 5000);
		CHECK(!memcmp(in, pattern, 5000));
	}
	rig_free(r);
}

CASE(gate_opens_when_told)
{
	struct rig *r = rig_new(NULL);
	uint32_t key = start(r, "gate", 2), data = key + 1;
	uint64_t id = host_direct(r, data, "held", 4), report[2];

	host_expect_nothing(r, data);
	say(r, key, "", 0);
	host_expect_ack(r, data, NFC_TYPE_ACK, NFC_H2D, id, NFC_STATE_CONSUMED,
			NFC_OK);
	CHECK_EQ(read_message(r, key, report, sizeof(report)), sizeof(report));
	CHECK_EQ(report[0], 0);
	CHECK_EQ(report[1], 4);
	rig_free(r);
}
