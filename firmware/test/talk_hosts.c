// SPDX-License-Identifier: MIT
/*
 * The firmware as a party to conversations of two hosts, of which the second one
 * listens. Package internal/proto/talk describes the lines for its Program.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "rig.h"
#include "talk_hosts.h"

enum {
	CHANNEL = 5, /* of both, in what the other program reads and writes */
	BUFFER = 1 << 20, /* bus address of every transfer's bytes, and its size */
	LATE_NS = 10000000, /* that an offer waits */
	TIME_NS = 2000000000u +
		  2 * LATE_NS, /* until what was asked back is late */
};

static struct rig *rig, *host[2];
static uint64_t next_id[4], listener, from;
static uint32_t at[2];
static uint8_t buffer[2][BUFFER];
static bool failed[2]; /* nothing reaches its buffer */
static bool slow[2]; /* nothing that reaches it is done */

static void hosts_shape(struct nfc_config *c)
{
	c->hosts = 3;
	c->channels = 512;
	c->window = 4;
	c->eager = NFC_EAGER_ENTRIES;
	c->target_timeout_ns = LATE_NS;
}

/* Memory of a host, which the device knows as the next one. */
static int memory_of(uint32_t index, uint64_t bus, uint64_t length, uint8_t **p)
{
	uint32_t i = index - 1;

	if (slow[0] || slow[1])
		return NFC_PENDING;
	if (i > 1 || failed[i] || bus < BUFFER || bus - BUFFER > BUFFER - length)
		return NFC_EDMA;
	*p = buffer[i] + (bus - BUFFER);
	return 0;
}

static int read_bytes(void *self, uint32_t index, void *to, uint64_t bus,
		      uint64_t length)
{
	uint8_t *p;
	int rc = memory_of(index, bus, length, &p);

	(void)self;
	if (!rc)
		memcpy(to, p, length);
	return rc;
}

static int write_bytes(void *self, uint32_t index, uint64_t bus,
		       const void *from, uint64_t length)
{
	uint8_t *p;
	int rc = memory_of(index, bus, length, &p);

	(void)self;
	if (!rc)
		memcpy(p, from, length);
	return rc;
}

void hosts_end(void)
{
	memset(slow, 0, sizeof(slow));
	if (rig)
		rig_free(rig);
	rig = NULL;
}

static const char *open_hosts(const char *words)
{
	uint64_t generation;
	struct nfc_control c;

	if (sscanf(words, "%" SCNu64 "%" SCNu64 "%" SCNu64 "%" SCNu64 "%" SCNu64,
		   next_id, next_id + 1, next_id + 2, next_id + 3,
		   &generation) != 5)
		return "no: four next ids and a generation";
	hosts_end();
	rig = rig_new(hosts_shape);
	rig->port.dma_copy = NULL;
	rig->port.dma_read = read_bytes;
	rig->port.dma_write = write_bytes;
	at[0] = at[1] = 0;
	memset(failed, 0, sizeof(failed));
	memset(slow, 0, sizeof(slow));
	for (uint32_t i = 0; i < 2; i++) {
		host[i] = rig_attach(rig, 1 + i);
		host_hello(host[i], NFC_CAP_KNOWN & ~NFC_CAP_ROUNDS);
		rig->dev->host[1 + i]->epoch = 1;
		host[i]->epoch = host[i]->seat.epoch = 1;
	}
	c = host_control(host[1], NFC_CONTROL_LISTEN, 1, 1, 0, NULL);
	listener = c.b;
	from = c.c;
	if (c.status || host_open(host[1], (uint32_t)listener))
		return "no: it does not listen";
	for (uint32_t i = 0; i < 2; i++)
		rig->dev->host[1 + i]->next_generation = generation;
	return "ok";
}

static const char *connect_hosts(void)
{
	struct nfc_control c = host_control(host[0], NFC_CONTROL_CONNECT, from,
					    0, 0, NULL);

	at[0] = (uint32_t)c.a;
	return c.status ? "no: it does not connect" : "ok";
}

/* The listening host's answer to the target that it is offered. */
static const char *take_target(bool accepts)
{
	uint64_t id = host[1]->channel[listener].next[NFC_D2H];
	struct nfc_slot slot;

	if (!host_take(host[1], (uint32_t)listener, &slot))
		return "no: no host connected";
	at[1] = (uint32_t)slot.payload[0];
	host_reply(host[1], (uint32_t)listener,
		   accepts ? NFC_TYPE_ACK : NFC_TYPE_ERROR, NFC_D2H, id,
		   accepts ? NFC_STATE_CONSUMED : NFC_STATE_FAILED,
		   accepts ? NFC_OK : NFC_ECLOSED, 0);
	rig_step(rig);
	return "ok";
}

static const char *subscribe(uint32_t i)
{
	struct nfc_host *h = rig->dev->host[1 + i];

	for (uint32_t d = 0; d < 2; d++)
		h->channels[at[i]].half[d].next = next_id[2 * i + d];
	return host_open(host[i], at[i]) ? "no: it does not open" : "ok";
}

/* From here on the engine fails at a host's memory, is slow there, or not any more. */
static const char *engine(uint32_t i, char how)
{
	if (how == 'f')
		failed[i] = true;
	else
		slow[i] = how == 's';
	for (uint32_t n = 0; n < rig->config.islands; n++)
		rig->island[n].woken = true;
	rig_step(rig);
	return "ok";
}

/* The device keeps a host until all that moves is done. */
static const char *detach(uint32_t i)
{
	engine(0, 'q');
	engine(1, 'q');
	rig_detach(host[i]);
	host[i] = NULL;
	rig_step(rig);
	return "ok";
}

/* Late: it is taken with the next one. */
static const char *deliver_to(uint32_t i, const char *words, bool late)
{
	struct nfc_slot slot;

	if (!talk_read(words, &slot))
		return "no: a slot has eight words";
	slot.header += (uint64_t)(at[i] - CHANNEL) << NFC_HDR_CHANNEL_SHIFT;
	if (host[i])
		host_slot(host[i], &slot, at[i]);
	if (!late)
		rig_step(rig);
	return "ok";
}

static const char *next_of(uint32_t i, char answer[TALK_LINE])
{
	struct nfc_slot slot;

	if (!host_take(host[i], at[i], &slot))
		return "none";
	slot.header -= (uint64_t)(at[i] - CHANNEL) << NFC_HDR_CHANNEL_SHIFT;
	talk_write(&slot, answer);
	return answer;
}

/* "WORD a …" or "WORD b …". */
static const char *of_host(const char *line, char answer[TALK_LINE])
{
	char word[12], which;
	uint32_t i;
	int n;

	if (sscanf(line, "%11s %c%n", word, &which, &n) != 2 ||
	    (which != 'a' && which != 'b'))
		return "no: unknown words";
	i = which == 'b';
	if (!strcmp(word, "deliver") || !strcmp(word, "put"))
		return deliver_to(i, line + n, *word == 'p');
	if (!host[i])
		return strcmp(word, "next") ? "ok" : "none"; /* detached */
	if (!strcmp(word, "subscribe"))
		return subscribe(i);
	if (!strcmp(word, "detach"))
		return detach(i);
	if (!strcmp(word, "fail") || !strcmp(word, "slow") ||
	    !strcmp(word, "quick"))
		return engine(i, *word);
	if (!strcmp(word, "next"))
		return next_of(i, answer);
	return "no: unknown word";
}

const char *hosts_answer(const char *line, char answer[TALK_LINE])
{
	if (!strncmp(line, "open ", 5))
		return open_hosts(line + 5);
	if (!rig)
		return "no: nothing is open";
	if (!strncmp(line, "connect", 7))
		return connect_hosts();
	if (!strncmp(line, "accept", 6))
		return take_target(true);
	if (!strncmp(line, "refuse", 6))
		return take_target(false);
	if (!strncmp(line, "time", 4)) {
		rig_advance(rig, TIME_NS);
		return "ok";
	}
	return of_host(line, answer);
}
