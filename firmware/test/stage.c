// SPDX-License-Identifier: MIT
#define _GNU_SOURCE
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <unistd.h>

#include "stage.h"

enum {
	IMAGE_AT = HALF / 2, /* in host memory */
};

uint8_t *host_memory;
int host_file[2], host_vector;
static uint8_t *image;
static uint64_t image_size;

/* Calls that rig_host.c makes to its rig: here the device runs on its own. */
bool rig_step(struct rig *r)
{
	(void)r;
	sched_yield();
	return true;
}

void rig_advance(struct rig *r, uint64_t ns)
{
	(void)ns;
	rig_step(r);
}

void *rig_pages(struct rig *r, uint64_t size)
{
	(void)r;
	(void)size;
	abort(); /* nobody asks */
}

/* In turns with their threads. */
static void run_islands(struct stage *s, uint32_t pass)
{
	for (uint32_t i = 0; i < s->r.config.islands; i++) {
		nfc_hosted_ring(s->h, i);
		if ((pass + i) % 2)
			nfc_hosted_run(s->h, i, pass % 3 == 0);
	}
	nfc_hosted_assist(s->h);
}

void stage_look(struct stage *s)
{
	if (s->ring)
		s->ring(s);
	else
		run_islands(s, s->passes++);
	host_drain(&s->r);
	sched_yield();
}

/* The next message of a channel. A device that hangs is the harness's to find. */
static struct nfc_slot await(struct stage *s, uint32_t channel)
{
	struct nfc_slot slot;

	do
		stage_look(s);
	while (!host_take(&s->r, channel, &slot));
	return slot;
}

static uint32_t type_of(const struct nfc_slot *slot)
{
	return nfc_header_type(slot->header);
}

static struct nfc_ack ack_of(const struct nfc_slot *slot)
{
	struct nfc_ack ack;

	memcpy(&ack, slot->payload, sizeof(ack));
	return ack;
}

/* Send lists up to a number, as many as the window has room for. */
static uint64_t send_lists(struct stage *s, uint32_t channel,
			   uint32_t direction, uint64_t id, const uint8_t *buf,
			   uint64_t size, uint64_t sent, uint64_t acked)
{
	uint64_t to = acked + s->r.config.window;

	host_send_lists(&s->r, channel, direction, id, buf, size, sent, to);
	return to < host_lists(buf, size) ? to : host_lists(buf, size);
}

/* Run a transfer whose first `sent` lists are out; 0 or enum nfc_status. */
static int run(struct stage *s, uint32_t channel, uint32_t direction,
	       uint64_t id, const uint8_t *buf, uint64_t size, uint64_t sent)
{
	for (;;) {
		struct nfc_slot slot = await(s, channel);
		struct nfc_ack ack = ack_of(&slot);

		if (type_of(&slot) == NFC_TYPE_ACK) {
			if (ack.state == NFC_STATE_REPEAT)
				sent = ack.lists;
			sent = send_lists(s, channel, direction, id, buf, size,
					  sent, ack.lists);
			continue;
		}
		if (type_of(&slot) == NFC_TYPE_DONE) {
			host_note(&s->r, channel, NFC_TYPE_FIN, direction, id);
			return 0;
		}
		return CHECK_EQ(type_of(&slot), NFC_TYPE_ERROR) ? ack.status :
								  NFC_EPROTO;
	}
}

int stage_give(struct stage *s, uint32_t channel, const uint8_t *buf,
	       uint64_t size)
{
	uint64_t id = host_begin(&s->r, channel, size, 0);

	host_send_lists(&s->r, channel, NFC_H2D, id, buf, size, 0, 1);
	return run(s, channel, NFC_H2D, id, buf, size, 1);
}

int stage_take(struct stage *s, uint32_t channel, uint8_t *buf, uint64_t size)
{
	struct nfc_slot slot = await(s, channel);
	uint64_t id = s->side[channel].next[NFC_D2H]++, sent;

	if (!CHECK_EQ(type_of(&slot), NFC_TYPE_IND_BEGIN))
		return NFC_EPROTO;
	sent = send_lists(s, channel, NFC_D2H, id, buf, size, 0, 0);
	return run(s, channel, NFC_D2H, id, buf, size, sent);
}

void stage_say(struct stage *s, uint32_t channel, const void *data, size_t n)
{
	struct nfc_slot slot;

	host_direct(&s->r, channel, data, n);
	slot = await(s, channel);
	CHECK_EQ(type_of(&slot), NFC_TYPE_ACK);
}

void stage_hear(struct stage *s, uint32_t channel, void *data)
{
	struct nfc_slot slot = await(s, channel);
	uint64_t id = s->side[channel].next[NFC_D2H]++;

	CHECK_EQ(type_of(&slot), NFC_TYPE_DIRECT);
	memcpy(data, slot.payload, NFC_PAYLOAD_SIZE);
	host_reply(&s->r, channel, NFC_TYPE_ACK, NFC_D2H, id,
		   NFC_STATE_CONSUMED, 0, 0);
}

void stage_end(struct stage *s, uint32_t channel)
{
	struct nfc_slot slot = await(s, channel);
	struct nfc_close close;

	memcpy(&close, slot.payload, sizeof(close));
	CHECK_EQ(type_of(&slot), NFC_TYPE_CLOSE);
	CHECK_EQ(close.halves, 3);
}

int stage_ask(struct stage *s, struct nfc_control *c)
{
	const struct nfc_control asked = *c;
	int rc;

	do { /* again, if an island had no processor for half a second */
		*c = asked;
		c->request = ++s->r.request;
		stage_say(s, NFC_TARGET_CONTROL, c, sizeof(*c));
		rc = 0;
		if (c->op == NFC_CONTROL_LOAD)
			rc = stage_give(s, NFC_TARGET_CONTROL, image,
					image_size);
		stage_hear(s, NFC_TARGET_CONTROL, c);
		rc = rc ? rc : c->status;
	} while (rc == NFC_ETIMEOUT);
	return rc;
}

struct nfc_config stage_config(const struct shape *shape)
{
	struct nfc_config c = {
		.channels = CHANNELS,
		.managers = shape->managers,
		.islands = shape->islands,
		.engines_me = 4,
		.contexts = 8,
		.slots = 64,
		.window = 4,
		.beat_ms = 1,
		.lone = 1,
		.memory = { 64 << 10, 64 << 10, 64 << 10, 2 << 20 },
	};

	CHECK_EQ(nfc_config_check(&c), 0);
	return c;
}

void stage_meet(struct stage *s, struct nfc_area *area)
{
	memset(s->side, 0, sizeof(s->side));
	s->r.channel = s->side;
	s->side[0].next[NFC_H2D] = s->side[0].next[NFC_D2H] = 1;
	memset(s->r.mailbox, 0, sizeof(s->r.mailbox));
	s->r.received_count = 0;
	s->r.seat.area = area;
	s->r.epoch = s->r.seat.epoch;
	CHECK_EQ(area->magic, NFC_MAGIC);
	CHECK_EQ(area->state, NFC_DEVICE_READY);
	CHECK_EQ(area->epoch, s->r.epoch);
}

static void meet(struct stage *s)
{
	uint64_t size;
	struct nfc_area *area = nfc_hosted_area(s->h, &size);

	CHECK_EQ(size, nfc_area_size(&s->r.config));
	stage_meet(s, area);
}

int stage_boot(struct stage *s)
{
	struct nfc_hosted_options options = {
		.spin_ns = s->shape->sleeps ? 0 : 20000,
		.engines = s->shape->engines,
		.log_fd = -1,
		.epoch = 1,
		.bus = s->bus,
	};
	int rc;

	s->r.seat.epoch = options.epoch;
	rc = -nfc_hosted_open(&s->r.config, &options, &s->h);

	if (!rc)
		meet(s);
	return rc;
}

int stage_restart(struct stage *s)
{
	struct nfc_computing who;
	int rc;

	s->r.seat.epoch++;
	nfc_hosted_fence(s->h);
	rc = -nfc_hosted_restart(s->h, s->r.seat.epoch, &s->left, &who);
	CHECK(!who.process || !strcmp(who.program, "lone.spin"));
	if (!rc)
		meet(s);
	nfc_hosted_assist(s->h);
	return rc;
}

bool stage_close(struct stage *s)
{
	struct nfc_computing who;
	bool left;

	nfc_hosted_close(s->h, &left, &who);
	CHECK_EQ(who.process != 0, left);
	return !left;
}

int stage_open(struct stage *s, uint32_t target)
{
	struct nfc_control c = { .op = NFC_CONTROL_OPEN, .a = target };
	int rc = stage_ask(s, &c);

	s->side[target].next[NFC_H2D] = c.a;
	s->side[target].next[NFC_D2H] = c.b;
	s->side[target].generation = c.c;
	return rc;
}

uint64_t stage_image_size(void)
{
	return image_size;
}

static int open_file(bool sealed)
{
	int fd = memfd_create("host", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	CHECK_EQ(ftruncate(fd, HALF), 0);
	if (sealed)
		CHECK_EQ(fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK), 0);
	return fd;
}

__attribute__((constructor)) static void prepare(void)
{
	FILE *f = fopen(IMAGE, "rb");

	host_file[0] = open_file(true);
	host_file[1] = open_file(false);
	host_vector = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	host_memory = mmap(NULL, 2 * HALF, PROT_READ | PROT_WRITE,
			   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	for (int i = 0; i < 2; i++)
		CHECK(mmap(host_memory + i * HALF, HALF, PROT_READ | PROT_WRITE,
			   MAP_SHARED | MAP_FIXED, host_file[i],
			   0) != MAP_FAILED);
	image = host_memory + IMAGE_AT;
	image_size = f ? fread(image, 1, HALF - IMAGE_AT, f) : 0;
	if (!image_size || image_size == HALF - IMAGE_AT)
		abort();
	fclose(f);
}
