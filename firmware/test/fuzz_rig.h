/* SPDX-License-Identifier: MIT */
/*
 * Code that the fuzz targets share: a small device whose every word is checked.
 * A
 * failed check aborts, so that the fuzzer keeps the input.
 */
#ifndef FUZZ_RIG_H
#define FUZZ_RIG_H

#include <stdlib.h>
#include <string.h>

#include "pair_rig.h"

enum {
	FUZZ_BUFFER = 64 * RIG_PAGE, /* host memory that is there */
};

static uint8_t *fuzz_buffer;

/* Every word to the host keeps the protocol, whatever the host said. */
static void fuzz_take(struct rig *r, const struct nfc_slot *slot)
{
	uint64_t type = nfc_header_type(slot->header);
	uint64_t length = nfc_header_length(slot->header);
	uint64_t channel = nfc_header_channel(slot->header);
	const struct nfc_ack *ack = (const void *)slot->payload;
	const struct nfc_note *word = (const void *)slot->payload;
	const struct nfc_close *close = (const void *)slot->payload;

	CHECK(channel < r->config.channels);
	CHECK_EQ(nfc_header_epoch(slot->header), r->seat.epoch & 0xff);
	CHECK(length <= NFC_PAYLOAD_SIZE);
	switch (type) {
	case NFC_TYPE_DIRECT:
		return;
	case NFC_TYPE_IND_BEGIN:
		CHECK_EQ(length, NFC_PAYLOAD_SIZE);
		return;
	case NFC_TYPE_ACK:
	case NFC_TYPE_DONE:
	case NFC_TYPE_ABORTED:
	case NFC_TYPE_ERROR:
		CHECK_EQ(length, NFC_PAYLOAD_SIZE);
		CHECK(ack->state < NFC_STATE_COUNT);
		CHECK(ack->status < NFC_STATUS_COUNT);
		CHECK(ack->direction <= NFC_D2H);
		CHECK((type == NFC_TYPE_ERROR || type == NFC_TYPE_ABORTED) ==
		      (ack->state == NFC_STATE_FAILED));
		return;
	case NFC_TYPE_WITHDRAW:
	case NFC_TYPE_WITHDRAWN:
	case NFC_TYPE_READY:
		CHECK(word->direction <= NFC_D2H);
		return;
	case NFC_TYPE_OFFER:
		CHECK_EQ(word->direction, NFC_D2H);
		return;
	case NFC_TYPE_CLOSE:
		CHECK(close->halves >= 1 && close->halves <= 3);
		return;
	default:
		CHECK(!"a type the device must not say");
	}
}

/*
 * The pages of a list, or of a transfer with its pages, may be accessed; no
 * others may.
 */
static void fuzz_offer(struct rig *r, const struct nfc_slot *slot)
{
	bool eager = nfc_header_type(slot->header) == NFC_TYPE_EAGER;
	uint32_t first = eager ? NFC_PAYLOAD_SIZE / 8 - NFC_EAGER_ENTRIES : 0;
	uint32_t entries = eager ? NFC_EAGER_ENTRIES : NFC_LIST_ENTRIES;

	if (!eager && nfc_header_type(slot->header) != NFC_TYPE_IND_LIST)
		return;
	for (uint32_t i = first; i < first + entries; i++) {
		struct nfc_slot list = *slot;
		uint64_t length;

		list.header = nfc_header_length(slot->header);
		if (r->ranges == RIG_RANGES)
			r->ranges = 0; /* transfers are shorter than that */
		r->range[r->ranges].bus = nfc_list_entry(&list, i, &length);
		r->range[r->ranges++].length = length;
	}
}

/* Pages that are named but not there cannot be reached. */
static int fuzz_dma(struct rig *r, uint64_t bus, uint64_t length)
{
	uint64_t at = bus - (uintptr_t)fuzz_buffer;

	(void)r;
	return at < FUZZ_BUFFER && length <= FUZZ_BUFFER - at ? 0 : NFC_EDMA;
}

static void fuzz_shape(struct nfc_config *c)
{
	c->hosts = 2;
	c->channels = 24;
	c->managers = 2;
	c->engines_me = 2;
	c->contexts = 8;
	c->slots = 16;
	c->window = 4;
	c->runs = 1;
	c->eager = NFC_EAGER_ENTRIES;
	c->target_timeout_ns = 50000000;
	c->memory[NFC_CLS] = 8 << 10;
	c->memory[NFC_CTM] = 8 << 10;
	c->memory[NFC_IMEM] = 16 << 10;
	c->memory[NFC_EMEM] = 512 << 10;
}

/* Two hosts that are connected, and may say anything from now on. */
static struct pair fuzz_pair(void)
{
	struct pair p = pair_new(fuzz_shape);

	host_hello(p.near, NFC_CAP_KNOWN);
	host_hello(p.far, NFC_CAP_KNOWN);
	fuzz_buffer = rig_pages(p.near, FUZZ_BUFFER);
	fill_pattern(fuzz_buffer, FUZZ_BUFFER, 1);
	p.near->may_spin = true;
	p.near->on_take = fuzz_take;
	p.near->on_dma = fuzz_dma;
	p.far->on_take = fuzz_take;
	return p;
}

#endif
