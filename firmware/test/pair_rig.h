/* SPDX-License-Identifier: MIT */
/* Two hosts of a device, of which one listens, and the channel between them. */
#ifndef PAIR_RIG_H
#define PAIR_RIG_H

#include "rig.h"

enum {
	MS = 1000000,
	ANSWER_NS = 2000 * MS, /* for a host that another one waits for */
};

struct pair {
	struct rig *near, *far; /* who connects, who listens */
	uint64_t process, target; /* of the listener, and its own channel */
	uint64_t id;
	uint32_t at_near, at_far; /* targets of the channel */
};

/* A device with room for three hosts. */
void pair_hosts(struct nfc_config *c);
/* change is pair_hosts(), or calls it. */
struct pair pair_listening(void (*change)(struct nfc_config *c));
/* The near host connects, and opens its target. */
void pair_connect(struct pair *p);
void pair_accept(struct pair *p);
struct pair pair_new(void (*change)(struct nfc_config *c));
void pair_free(struct pair *p);
/* Nothing of relays and listeners is left. */
void pair_check_free(const struct nfc_device *dev);
/* The near host offers a message, which the far one sees: its transaction there. */
uint64_t pair_offer(struct pair *p, uint8_t byte, uint64_t *sent);
void pair_take(struct pair *p, uint64_t id, uint64_t sent);
/* A message passes. */
void pair_works(struct pair *p);

#endif
