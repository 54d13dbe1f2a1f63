// SPDX-License-Identifier: MIT
/*
 * The firmware as a party to conversations: it reads actions of its process and
 * of the host and answers with those of the device. Package internal/proto/talk
 * describes this for its Program.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "rig.h"
#include "talk_guests.h"
#include "talk_moves.h"

enum {
	CHANNEL = 5,
	BUFFER = 1 << 20, /* bus address of every transfer's bytes, and its size */
	NOT_YET = 1 << 24, /* no result of a call */
	LONG_NS = 1000000000, /* offers that wait in vain are over by then */
};

/* The next call of the device's one process, and its result. */
struct target {
	struct nfc_process *self;
	char call[16];
	char half[8];
	uint64_t number;
	int result;
	bool busy; /* in a call */
};

/* The engine, as a conversation has it. */
static struct {
	bool slow; /* no copy ends */
	bool fails; /* no page can be reached */
	unsigned int busy; /* copies that find their page busy */
} engine;

static struct target target;
static struct rig *rig;
static uint64_t window, runs;
static uint8_t buffer[BUFFER];

/* ---- the process ---- */

static int call_ind(struct nfc_process *self, struct nfc_channel *ch, bool read)
{
	uint64_t at = nfc_alloc(self, NFC_EMEM, target.number + 1);
	int rc = read ? channel_read_ind(ch, at, target.number) :
			channel_write_ind(ch, at, target.number);

	nfc_free(self, at);
	return rc;
}

static int call_take(struct nfc_process *self, struct nfc_channel *ch)
{
	uint64_t at = nfc_alloc(self, NFC_EMEM, target.number + 1);
	uint8_t message[NFC_PAYLOAD_SIZE];
	struct nfc_offer offer;
	int rc = channel_take(ch, message, sizeof(message), at, target.number,
			      &offer);

	nfc_free(self, at);
	return rc;
}

static int call_question(struct nfc_channel *ch)
{
	uint8_t message[NFC_PAYLOAD_SIZE];
	struct nfc_offer offer;

	return channel_question(ch, message, target.number, 0, 0, &offer);
}

static int call_reply(struct nfc_channel *ch)
{
	uint64_t id = ch->question == NFC_QUESTION_MESSAGE ?
			      nfc_d2h(ch)->next :
			      nfc_present(nfc_h2d(ch));
	uint8_t message[NFC_PAYLOAD_SIZE];

	for (uint64_t i = 0; i < sizeof(message); i++)
		message[i] = (uint8_t)(id + i);
	return channel_reply(ch, message, target.number);
}

static int call_write(struct nfc_channel *ch)
{
	uint8_t message[NFC_PAYLOAD_SIZE];

	for (uint64_t i = 0; i < sizeof(message); i++)
		message[i] = (uint8_t)(nfc_d2h(ch)->next + i);
	return channel_write(ch, message, target.number);
}

static int call(struct nfc_process *self)
{
	struct nfc_channel *ch = nfc_channel_of(self, 0);
	uint8_t message[NFC_PAYLOAD_SIZE];

	if (!strcmp(target.call, "read"))
		return channel_read(ch, message, target.number);
	if (!strcmp(target.call, "write"))
		return call_write(ch);
	if (!strcmp(target.call, "take"))
		return call_take(self, ch);
	if (!strcmp(target.call, "question"))
		return call_question(ch);
	if (!strcmp(target.call, "reply"))
		return call_reply(ch);
	if (!strcmp(target.call, "wait"))
		return channel_alt(&ch, 1, UINT64_MAX);
	if (!strcmp(target.call, "close")) {
		channel_close(ch, !strcmp(target.half, "both") ? 3 :
				  !strcmp(target.half, "d2h")  ? 1 << NFC_D2H :
								 1 << NFC_H2D);
		return 0;
	}
	return call_ind(self, ch, !strcmp(target.call, "read_ind"));
}

static void target_main(struct nfc_process *self)
{
	target.self = self;
	for (;;) {
		nfc_block(self, NFC_WAIT_NONE);
		target.result = call(self);
		target.busy = false;
	}
}

static const struct nfc_program target_program = { NFC_PROGRAM_ABI, 0, "target",
						   target_main };

/* ---- the device ---- */

static int reach(uint64_t bus, uint64_t len)
{
	if (engine.slow)
		return NFC_PENDING;
	if (engine.busy) {
		engine.busy--;
		return NFC_EBUSY;
	}
	if (engine.fails || bus < BUFFER || bus - BUFFER > BUFFER - len)
		return NFC_EDMA;
	return 0;
}

static int buffer_read(void *self, uint32_t host, void *to, uint64_t bus,
		       uint64_t len)
{
	int rc = reach(bus, len);

	(void)self;
	(void)host;
	if (!rc)
		memcpy(to, buffer + (bus - BUFFER), len);
	return rc;
}

static int buffer_write(void *self, uint32_t host, uint64_t bus,
			const void *from, uint64_t len)
{
	int rc = reach(bus, len);

	(void)self;
	(void)host;
	if (!rc)
		memcpy(buffer + (bus - BUFFER), from, len);
	return rc;
}

static void shape(struct nfc_config *c)
{
	c->window = (uint32_t)window;
	c->runs = (uint32_t)runs;
	c->eager = NFC_EAGER_ENTRIES;
}

/* Let the island find what was done to it from outside. */
static void run(void)
{
	rig->island[0].woken = true;
	rig_step(rig);
}

static const char *open_device(const char *words)
{
	struct nfc_start start = {
		.entry = { .program = &target_program },
		.first = CHANNEL,
		.ports = 1,
	};
	struct nfc_control control = { .a = CHANNEL };
	uint64_t next[2], generation, limit;
	struct nfc_host *host;
	struct nfc_channel *ch;

	if (sscanf(words,
		   "%" SCNu64 "%" SCNu64 "%" SCNu64 "%" SCNu64 "%" SCNu64
		   "%" SCNu64,
		   &next[0], &next[1], &generation, &window, &limit, &runs) != 6)
		return "no: open H2D D2H GENERATION WINDOW LIMIT RUNS";
	memset(&engine, 0, sizeof(engine));
	if (rig)
		rig_free(rig);
	rig = rig_new(shape);
	host_hello(rig, NFC_CAP_KNOWN & ~NFC_CAP_ROUNDS);
	rig->port.dma_read = buffer_read;
	rig->port.dma_write = buffer_write;
	host = rig->dev->host[0];
	host->epoch = rig->epoch = rig->seat.epoch = 1;
	start.host = host;
	ch = &host->channels[CHANNEL];
	ch->half[NFC_H2D].next = next[NFC_H2D];
	ch->half[NFC_D2H].next = next[NFC_D2H];
	host->next_generation = generation;
	if (nfc_process_start(&rig->dev->islands[0], &start) ||
	    nfc_channel_open(host, &control))
		return "no: the target does not start";
	run();
	target.busy = false;
	target.result = NOT_YET;
	return "ok";
}

static const char *device(const char *words)
{
	engine.slow = !strncmp(words, "slow", 4);
	engine.fails = !strncmp(words, "fails", 5);
	engine.busy = 0;
	sscanf(words, "busy %u", &engine.busy);
	if (!strncmp(words, "hasty", 5))
		rig->dev->config.target_timeout_ns = 1;
	run();
	return "ok";
}

static const char *begin_call(const char *words)
{
	if (!strncmp(words, "device ", 7))
		return device(words + 7);
	if (!strncmp(words, "stop", 4)) {
		nfc_process_stop(target.self);
		run();
		return "ok";
	}
	if (target.busy)
		return "no: the process is in a call";
	target.number = 0;
	if (sscanf(words, "%15s%" SCNu64, target.call, &target.number) < 2)
		sscanf(words, "%15s%7s", target.call, target.half);
	target.busy = true;
	target.result = NOT_YET;
	nfc_wake(target.self, 0);
	run();
	return "ok";
}

int talk_read(const char *words, struct nfc_slot *slot)
{
	uint64_t *p = slot->payload;

	return sscanf(words,
		      "%" SCNx64 "%" SCNx64 "%" SCNx64 "%" SCNx64 "%" SCNx64
		      "%" SCNx64 "%" SCNx64 "%" SCNx64,
		      &slot->header, p, p + 1, p + 2, p + 3, p + 4, p + 5,
		      p + 6) == 8;
}

static const char *deliver(const char *words)
{
	struct nfc_slot slot;

	if (!talk_read(words, &slot))
		return "no: a slot has eight words";
	host_slot(rig, &slot, CHANNEL);
	rig_step(rig);
	return "ok";
}

static bool taken(struct nfc_slot *slot)
{
	if (host_take(rig, CHANNEL, slot))
		return true;
	rig_advance(rig, LONG_NS);
	return host_take(rig, CHANNEL, slot);
}

void talk_write(const struct nfc_slot *slot, char answer[TALK_LINE])
{
	int n = snprintf(answer, TALK_LINE, "%" PRIx64,
			 slot->header & ~((uint64_t)1 << NFC_HDR_PHASE_SHIFT));

	for (int i = 0; i < 7; i++)
		n += snprintf(answer + n, (size_t)(TALK_LINE - n), " %" PRIx64,
			      slot->payload[i]);
}

static const char *next_slot(char answer[TALK_LINE])
{
	struct nfc_slot slot;

	if (!taken(&slot))
		return "none";
	talk_write(&slot, answer);
	return answer;
}

static const char *returned(char answer[TALK_LINE])
{
	if (target.result == NOT_YET)
		return "no: the call has not returned";
	snprintf(answer, TALK_LINE, "%d", target.result);
	target.result = NOT_YET;
	return answer;
}

static const char *answer_to(const char *line, char answer[TALK_LINE])
{
	if (!strncmp(line, "open ", 5))
		return open_device(line + 5);
	if (!strncmp(line, "hosts ", 6))
		return hosts_answer(line + 6, answer);
	if (!strncmp(line, "guests ", 7))
		return guests_answer(line + 7, answer);
	if (!strncmp(line, "moves ", 6))
		return moves_answer(line + 6, answer);
	if (!rig)
		return "no: nothing is open";
	if (!strncmp(line, "call ", 5))
		return begin_call(line + 5);
	if (!strncmp(line, "deliver ", 8))
		return deliver(line + 8);
	if (!strncmp(line, "returned", 8))
		return returned(answer);
	if (!strncmp(line, "next", 4))
		return next_slot(answer);
	return "no: unknown word";
}

int main(void)
{
	char line[TALK_LINE], answer[TALK_LINE];

	while (fgets(line, sizeof(line), stdin)) {
		puts(answer_to(line, answer));
		fflush(stdout);
	}
	if (rig)
		rig_free(rig);
	hosts_end();
	guests_end();
	moves_end();
	return test_failures() != 0;
}
