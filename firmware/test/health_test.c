// SPDX-License-Identifier: MIT
/* The diagnostic word: what makes a part sick or broken, and what clears it. */
#include <string.h>

#include "rig.h"

enum {
	VALID = 1u << NFC_DIAG_VALID_SHIFT,
	CLEAR = 20, /* heartbeats until a part is well again */
};

static uint32_t sick(uint32_t part)
{
	return VALID | NFC_DIAG_SICK << part;
}

static uint32_t broken(uint32_t part)
{
	return VALID | (uint32_t)NFC_DIAG_BROKEN << part;
}

/* One heartbeat with one sign. */
static uint32_t step(struct nfc_health *h, enum nfc_sign sign, uint64_t n)
{
	uint64_t signs[NFC_SIGNS] = { 0 };

	signs[sign] = n;
	return nfc_health_step(h, signs, 0);
}

CASE(a_sign_makes_its_part_sick_and_clears)
{
	static const struct {
		uint32_t part;
		enum nfc_sign sign;
		uint64_t below, sick, broken;
		int heartbeats;
	} rows[] = {
		{ NFC_DIAG_SERVICE_NETWORK_SHIFT, NFC_SIGN_DROPPED, 99, 100, 0,
		  2 },
		{ NFC_DIAG_MEMORY_SHIFT, NFC_SIGN_REFUSED, 0, 1, 0, 2 },
		{ NFC_DIAG_PERIPHERAL_SHIFT, NFC_SIGN_DMA, 7, 8, 64, 2 },
		{ NFC_DIAG_CORE_SHIFT, NFC_SIGN_LATE, 999, 1000, 5000, 1 },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		struct nfc_health h = { 0 };
		int heartbeats = rows[i].heartbeats;

		for (int n = 0; n < 100; n++)
			CHECK_EQ(step(&h, rows[i].sign, rows[i].below), VALID);
		for (int n = 1; n < heartbeats; n++)
			CHECK_EQ(step(&h, rows[i].sign, rows[i].sick), VALID);
		CHECK_EQ(step(&h, rows[i].sign, rows[i].sick),
			 sick(rows[i].part));
		for (int n = 1; rows[i].broken && n <= heartbeats; n++)
			CHECK_EQ(step(&h, rows[i].sign, rows[i].broken),
				 n < heartbeats ? sick(rows[i].part) :
						  broken(rows[i].part));
		for (int n = 1; n < CLEAR; n++)
			CHECK(step(&h, rows[i].sign, 0) != VALID);
		CHECK_EQ(step(&h, rows[i].sign, 0), VALID);
	}
}

/* A sign that appears and disappears makes a part neither flicker nor heal. */
CASE(a_part_does_not_flicker)
{
	struct nfc_health h = { 0 };

	for (int n = 0; n < 100; n++)
		CHECK_EQ(step(&h, NFC_SIGN_REFUSED, n % 2), VALID);
	step(&h, NFC_SIGN_REFUSED, 1);
	step(&h, NFC_SIGN_REFUSED, 1);
	for (int n = 0; n < 100; n++)
		CHECK_EQ(step(&h, NFC_SIGN_REFUSED, n % (CLEAR - 1) == 0),
			 sick(NFC_DIAG_MEMORY_SHIFT));
}

/* Sensors count at once, for every part; a level that is none is broken. */
CASE(sensors_are_believed)
{
	static const uint64_t none[NFC_SIGNS];

	for (uint32_t part = 0; part < NFC_PARTS; part++) {
		struct nfc_health h = { 0 };

		CHECK_EQ(nfc_health_step(&h, none, 1u << 2 * part),
			 sick(2 * part));
		CHECK_EQ(nfc_health_step(&h, none, 2u << 2 * part),
			 broken(2 * part));
		CHECK_EQ(nfc_health_step(&h, none, 3u << 2 * part),
			 broken(2 * part));
	}
	struct nfc_health h = { 0 };
	uint64_t refused[NFC_SIGNS] = { [NFC_SIGN_REFUSED] = 1 };

	/* A sign of the same level makes it wait for no second heartbeat. */
	CHECK_EQ(nfc_health_step(&h, refused,
				 NFC_DIAG_SICK << NFC_DIAG_MEMORY_SHIFT),
		 sick(NFC_DIAG_MEMORY_SHIFT));
}

/* ---- on a device ---- */

static uint32_t sensed;

static uint32_t sense(void *self)
{
	(void)self;
	return sensed;
}

static uint32_t word_after(struct rig *r, int heartbeats)
{
	for (int i = 0; i < heartbeats; i++)
		rig_advance(r, r->config.beat_ms * 1000000ull);
	return rig_heartbeat(r).diagnostic;
}

static int refuse(struct rig *r, uint64_t bus, uint64_t length)
{
	(void)r;
	(void)bus;
	(void)length;
	return NFC_EDMA;
}

static void send(struct rig *r, uint32_t target, uint64_t size)
{
	uint8_t *buf = host_buffer(r, size, 1);
	uint64_t id = host_begin(r, target, size, 0);

	host_drive(r, target, NFC_H2D, id, buf, size);
}

/* Three heartbeats in each of which transfers end badly. */
static void suffer(struct rig *r, int each, uint64_t size)
{
	for (int beat = 0; beat < 3; beat++) {
		for (int i = 0; i < each; i++)
			send(r, NFC_TARGET_LOOPBACK, size);
		word_after(r, 1);
	}
}

static void small_emem(struct nfc_config *c)
{
	c->memory[NFC_EMEM] = 4 * RIG_PAGE;
}

static void take_memory(struct nfc_process *self, struct puppet *p)
{
	p->memory = nfc_alloc(self, NFC_EMEM, 2 * RIG_PAGE);
	stay(self);
}

CASE(memory_that_is_used_up_is_sick)
{
	struct rig *r = rig_new(small_emem);

	CHECK_EQ(host_open(r, NFC_TARGET_LOOPBACK), 0);
	suffer(r, 1, 100 * RIG_PAGE); /* more than there ever was */
	CHECK_EQ(word_after(r, 1), VALID);
	host_start(r, take_memory, 1);
	suffer(r, 1, 3 * RIG_PAGE); /* as much as there is when it is empty */
	CHECK_EQ(rig_heartbeat(r).diagnostic, sick(NFC_DIAG_MEMORY_SHIFT));
	CHECK_EQ(word_after(r, CLEAR + 1), VALID);
	rig_free(r);
}

CASE(dma_that_fails_is_sick)
{
	struct rig *r = rig_new(NULL);

	CHECK_EQ(host_open(r, NFC_TARGET_LOOPBACK), 0);
	r->on_dma = refuse;
	suffer(r, 10, 100);
	CHECK_EQ(rig_heartbeat(r).diagnostic, sick(NFC_DIAG_PERIPHERAL_SHIFT));
	CHECK_EQ(word_after(r, CLEAR + 1), VALID);
	rig_free(r);
}

/* As after a process that computed for that long. */
CASE(an_island_that_is_late_is_sick)
{
	struct rig *r = rig_new(NULL);

	word_after(r, 3);
	rig_advance(r, 2000000000);
	CHECK_EQ(rig_heartbeat(r).diagnostic, sick(NFC_DIAG_CORE_SHIFT));
	word_after(r, 3);
	rig_advance(r, 6000000000);
	CHECK_EQ(rig_heartbeat(r).diagnostic, broken(NFC_DIAG_CORE_SHIFT));
	CHECK_EQ(word_after(r, CLEAR + 1), VALID);
	rig_free(r);
}

CASE(sensors_show_in_the_heartbeat)
{
	struct rig *r = rig_new(NULL);

	r->port.sense = sense;
	sensed = NFC_DIAG_SICK << NFC_DIAG_TEMPERATURE_SHIFT;
	CHECK_EQ(word_after(r, 1), sick(NFC_DIAG_TEMPERATURE_SHIFT));
	sensed = 0;
	CHECK_EQ(word_after(r, CLEAR + 1), VALID);
	rig_free(r);
}
