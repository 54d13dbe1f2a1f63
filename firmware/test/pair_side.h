/* SPDX-License-Identifier: MIT */
/*
 * The slots that each host sends and receives in a transfer between two of
 * them.
 */
#ifndef PAIR_SIDE_H
#define PAIR_SIDE_H

#include "pair_rig.h"

enum { PAGE = NFC_PAGE_SIZE };

/* One host's part of a transfer by lists. */
struct side {
	struct rig *rig;
	uint32_t channel, direction;
	uint64_t id;
	uint8_t *buf;
	uint64_t size, sent, acked, allowed;
	struct nfc_ack end; /* what ended it, or DONE; state UINT16_MAX: nothing yet */
	uint32_t type; /* of that */
};

/* The near host's part if it gives, the far one's if that takes: nothing was said yet. */
struct side side_new(struct pair *p, enum nfc_direction direction,
		     uint64_t size, uint64_t into);
/* The near host offers a transfer. */
struct side side_gives(struct pair *p, uint64_t size, uint64_t into);
/* The far host sees the offer, and finds memory for it. */
struct side side_takes(struct pair *p, uint64_t size, uint64_t into);
/* Lists, as far as the window and the other side allow. */
void side_feed(struct side *s);
void side_hear(struct side *s);
/*
 * Run until the taking side has received an end, or nothing happens any more.
 */
void side_drive(struct side *give, struct side *take);
/* All bytes are there, and the receiving host is notified. */
void side_moved(struct side *give, struct side *take);
/* The sending host receives the other host's answer. */
void side_committed(struct side *give);
void side_fin(struct side *s);
void side_failed(struct side *s, uint32_t type, enum nfc_status status);
/* A whole one, and nothing is parked or moves after it. */
void side_whole(struct pair *p, uint64_t size, uint64_t from, uint64_t to);

/* A device that takes transfers with their pages, for pair_new(), and hosts that use it. */
void pair_pages(struct nfc_config *c);
void pair_eager(struct pair *p);
/* Ports differ in it: by way of the device, where they cannot copy. */
struct pair pair_copying(void (*change)(struct nfc_config *c), bool copies);
/* EAGER with what a buffer has of pages. */
uint64_t side_send_eager(struct rig *r, uint32_t channel, uint32_t direction,
			 uint64_t id, const uint8_t *buf, uint64_t size);
/* The near host gives pages; the far host has pages for the next one. */
struct side side_gives_pages(struct pair *p, uint64_t size, uint64_t into);
struct side side_posts(struct pair *p, uint64_t size, uint64_t into);

#endif
