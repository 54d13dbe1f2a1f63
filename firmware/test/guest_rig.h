/* SPDX-License-Identifier: MIT */
/*
 * A process that opens a channel to a host that listens: its own, or another; on the
 * island of the listener, or on one that it is not on.
 */
#ifndef GUEST_RIG_H
#define GUEST_RIG_H

#include "pair_rig.h"

enum {
	VISIT_HERE = 20, /* a target of island 0 */
	VISIT_THERE = 280, /* and one of island 1 */
	VISIT_BYTES = 9 * RIG_PAGE + 100, /* of a transfer */
	H2D = 1 << NFC_H2D,
	D2H = 1 << NFC_D2H,
	BOTH = H2D | D2H,
};

extern uint64_t visit_listener; /* whom processes connect to */

typedef void (*visit_role)(struct nfc_process *self, struct puppet *p);

/* near is the host of the process, far the one that listens: it may be the same. */
struct visit {
	struct pair pair;
	struct rig *near, *far;
	struct puppet *guest;
	uint32_t at; /* the target of the channel, at far */
};

struct visit visit_of(uint32_t first, bool own, visit_role guest);
/* Notify the host of the process, and open its channel. */
void visit_accept(struct visit *v);
/* Both. */
struct visit visiting(uint32_t first, bool own, visit_role guest);
void visit_free(struct visit *v);
/* The target is the host's to give away, and no relay is in use. */
void visit_check_over(struct visit *v);
/* The host takes a message of one byte, or gives one. */
void visit_takes(struct visit *v, uint8_t want);
void visit_gives(struct visit *v, uint8_t byte);

#define EVERYWHERE(v, how, guest)                                               \
	for (int where = 0; where < 4; where++)                                 \
		for (struct visit v = how(where & 1 ? VISIT_HERE : VISIT_THERE, \
					  where & 2, guest);                    \
		     v.pair.near; visit_free(&v), v.pair.near = NULL)

/* Steps of processes: the channel, once they connected; … */
struct nfc_channel *visit_connected(struct nfc_process *self, struct puppet *p);
/* … to offer a message; to end; to wait for one, and return it. */
void visit_offers(struct nfc_process *self, struct puppet *p);
void visit_leaves(struct nfc_process *self, struct puppet *p);
void visit_waits(struct nfc_process *self, struct puppet *p);

#endif
