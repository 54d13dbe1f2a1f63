/* SPDX-License-Identifier: MIT */
/* Two ends of a link over wires with a clock of their own. */
#ifndef LINK_RIG_H
#define LINK_RIG_H

#include "../link/frame.h"
#include "../port/wire.h"
#include "harness.h"

struct link_rig;

struct link_side {
	struct link_rig *rig;
	struct nfc_link_port port;
	struct nfc_link_end end;
	void *memory;
	struct nfc_wire wire; /* what this side puts */
	/* The ledger: packets sent and received, by their sequence. */
	uint32_t sent, came;
	uint32_t taken; /* of the latter, in place */
};

struct link_rig {
	struct link_side side[2];
	uint64_t now;
	uint32_t generation;
	uint32_t drained; /* packets that a side takes in one turn, at most */
	bool shares; /* payloads of some words stay in the buffers of senders */
	struct nfc_link_owner owner; /* of link_rig_takes() */
};

extern const struct nfc_link_config link_quick;

struct link_rig *link_rig_new(const struct nfc_link_config *config,
			      const struct nfc_wire_config *wire);
void link_rig_free(struct link_rig *r);
/* Give its ends an owner that takes some packets in place. */
void link_rig_takes(struct link_rig *r);
/* One turn of both sides, and some time. */
void link_rig_step(struct link_rig *r, uint64_t ns);
/* Turns until both are up and know of room; false: they do not. */
bool link_rig_up(struct link_rig *r);
/* Offer one packet from a side; false: it was not admitted. */
bool link_rig_send(struct link_side *s, uint32_t vc, uint32_t bytes);
/* Take the packets that a side received, and compare them with the ledger. */
void link_rig_drain(struct link_side *s);
/* Words of the n-th packet of a side. */
struct nfc_word link_rig_word(uint32_t sequence, uint32_t i);
/*
 * Random traffic both ways until so many packets arrived; all of them, in
 * order.
 */
void link_rig_traffic(struct link_rig *r, uint32_t packets, uint64_t ns);
/* Turns of one side while the other has no processor. */
void link_rig_alone(struct link_rig *r, uint32_t side, uint64_t ns);
/* A chance of nfc_wire_faults. */
uint32_t link_rig_chance(double p);
void link_rig_put(struct nfc_wire *w, const struct nfc_word *word, uint32_t n,
		  uint64_t now);
/* Put a control word of a test's own on the wire of side 0, with a valid checksum. */
void link_rig_forge(struct link_rig *r, enum nfc_word_kind kind,
		    uint64_t fields, uint32_t more);

#endif
