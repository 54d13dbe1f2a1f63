// SPDX-License-Identifier: MIT
/*
 * A program that connects to a host that listens, again and again until there
 * is no listener. Its argument, and the number of its connections, select its
 * next step: it answers, gives, waits or leaves.
 */
#include <string.h>

#include "visitor.h"

/* Returns each message or transfer that arrives. */
static int echo(struct nfc_channel *ch, uint64_t memory)
{
	uint8_t message[NFC_PAYLOAD_SIZE];
	struct nfc_offer offer;
	int rc = channel_read_any(ch, message, sizeof(message), &offer);

	if (rc < 0)
		return rc;
	if (!offer.indirect)
		return channel_write(ch, message, offer.size);
	rc = channel_read_ind(ch, memory, offer.size);
	return rc ? rc : channel_write_ind(ch, memory, offer.size);
}

/* A message of its own, or as a transfer. */
static int give(struct nfc_process *self, struct nfc_channel *ch,
		uint64_t memory, uint8_t byte, int indirect)
{
	if (!indirect)
		return channel_write(ch, &byte, 1);
	memset(nfc_at(self, memory, VISITOR_BYTES), byte, VISITOR_BYTES);
	return channel_write_ind(ch, memory, VISITOR_BYTES);
}

/* Wait a little for what the host gives, and close half of the channel. */
static int hesitate(struct nfc_channel *ch, uint32_t half)
{
	int rc = channel_alt(&ch, 1, 50000);

	channel_close(ch, 1 << half);
	return rc;
}

/* False: it ends while it is there. */
static int visit(struct nfc_process *self, struct nfc_channel *ch,
		 uint64_t memory, uint32_t how)
{
	uint8_t byte = (uint8_t)(VISITOR_OWN | how);
	int rc = 0;

	switch (how % 7) {
	case 0:
		while (rc >= 0)
			rc = echo(ch, memory);
		break;
	case 1:
		break;
	case 2:
		while (rc >= 0)
			rc = give(self, ch, memory, byte, 0);
		break;
	case 3:
		hesitate(ch, NFC_H2D);
		give(self, ch, memory, byte, 0);
		break;
	case 4:
		give(self, ch, memory, byte, 1);
		hesitate(ch, NFC_D2H);
		while (rc >= 0)
			rc = channel_read(ch, &byte, 1);
		break;
	case 5:
		give(self, ch, memory, byte, 0);
		echo(ch, memory);
		break;
	default:
		return how % 3;
	}
	return 1;
}

static void visitor_main(struct nfc_process *self)
{
	uint64_t memory = nfc_alloc(self, NFC_EMEM, VISITOR_BYTES);
	uint32_t how = (uint32_t)(nfc_argument(self) >> 32);
	struct nfc_channel *ch;
	int rc = memory ? 0 : -NFC_ENOTARGET;

	for (uint32_t i = 0; i < VISITOR_VISITS && rc != -NFC_ENOTARGET &&
			     !nfc_stopped(self);) {
		rc = channel_connect(self, (uint32_t)nfc_argument(self), &ch);
		if (rc) { /* a place is free in a while */
			nfc_sleep(self, 50000);
			continue;
		}
		if (!visit(self, ch, memory, how + i++))
			return;
		channel_close(ch, 1 << NFC_H2D | 1 << NFC_D2H);
	}
}

NFC_PROGRAMS({ NFC_PROGRAM_ABI, 0, "visitor", visitor_main });
