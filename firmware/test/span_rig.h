/* SPDX-License-Identifier: MIT */
/*
 * Two devices, the ends of spans at each, a fabric between them that loses, doubles and
 * delays, and processes that speak to each other.
 */
#ifndef SPAN_RIG_H
#define SPAN_RIG_H

#include "../link/span.h"
#include "lossy.h"
#include "rig.h"

enum {
	HERE = 20, /* a target of island 0 */
	THERE = 40, /* and one of island 1 */
	BOTH = 3,
	MANY = 60, /* more than a ring has slots */
	TICK_NS = 200000,
	SECOND = 1000000000,
	OWNER = 5,
};

/* An end of a span at one of the nodes. */
struct end {
	struct nfc_span span;
	bool used;
	uint32_t host, index;
};

extern struct span_world {
	struct rig *rig[2];
	struct end end[2][2 * NFC_JOINTS];
	uint32_t number; /* of the last span */
	uint32_t ended[2][64],
		ends[2]; /* numbers of spans that were asked for there */
	bool cut; /* the connection breaks when a JOIN has arrived */
} w;

extern uint64_t peer; /* whom callers connect to */
extern uint64_t size; /* of transfers */

typedef void (*role)(struct nfc_process *self, struct puppet *p);

/* A target at node 1, and the process that connects to it from node 0. */
extern struct puppet *target, *caller;

/* Two devices of a shape, under the faults that there are. */
void span_begin_as(void (*shape)(struct nfc_config *c));
/* Of two islands and two hosts, under faults of so many packets of 100. */
void span_begin(uint32_t lose, uint32_t twice, uint32_t late);
void span_end(void);
/* Before the host of a node is detached: end all spans that lead there. */
void span_leave(uint32_t at, uint32_t host);
/* Deliver a packet to its node. */
void span_deliver(const struct nfc_packet *p, const struct nfc_fifo *fifo);
void span_tick(void);
void span_pass(uint64_t ns);
/* The targets can be subscribed again, and no joint is in use nor any span. */
void span_check_free(uint32_t at, uint32_t target);
/* Start a target there, and the process that connects to it. */
void pair_of(uint32_t at, role t, role c);
/* Until they noted so much. */
bool both_done(int t, int c);
/* Stop a process of a node. */
void span_stop(uint32_t at, struct puppet *p);

struct nfc_channel *span_port(struct nfc_process *self);
struct nfc_channel *span_connected(struct nfc_process *self, struct puppet *p);

/* Roles of processes: targets, and those that connect to them. */
void answers(struct nfc_process *self, struct puppet *p);
void takes(struct nfc_process *self, struct puppet *p);
void waits(struct nfc_process *self, struct puppet *p);
void ends(struct nfc_process *self, struct puppet *p);
void polls(struct nfc_process *self, struct puppet *p);
void asks(struct nfc_process *self, struct puppet *p);
void gives(struct nfc_process *self, struct puppet *p);
void writes(struct nfc_process *self, struct puppet *p);
void reads_and_writes(struct nfc_process *self, struct puppet *p);

#endif
