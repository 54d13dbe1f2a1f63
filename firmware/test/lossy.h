/* SPDX-License-Identifier: MIT */
/*
 * A fabric of two nodes in place of firmware/link/node.c, which loses, doubles and delays
 * whole packets, as one does whose links break.
 */
#ifndef LOSSY_H
#define LOSSY_H

#include "../link/far.h"

enum {
	FLYING = 512, /* packets under way */
	STEP_NS = 10000, /* that a packet takes */
};

struct flying {
	struct nfc_packet packet;
	struct nfc_word word[NFC_PACKET_WORDS];
	uint64_t due; /* 0: the place is free */
};

extern struct lossy {
	struct nfc_node node[2];
	struct nfc_link_port port;
	struct flying flying[FLYING];
	uint64_t now, random;
	uint32_t lose, twice, late; /* of 100 packets */
	bool away; /* no way leads from either to the other */
} lossy;

void lossy_reset(uint32_t lose, uint32_t twice, uint32_t late);
/* Nothing of that any more. */
void lossy_calm(void);
uint32_t chance(uint32_t n);
/* Give each packet that is due to its node. */
void lossy_deliver(void (*to)(const struct nfc_packet *p,
			      const struct nfc_fifo *f));
/* Give one to its node now. */
void lossy_give(struct flying *f, void (*to)(const struct nfc_packet *p,
					     const struct nfc_fifo *f));

#endif
