/* SPDX-License-Identifier: GPL-2.0-only */
/* A device and a host around the pure part: what both may put and do. */
#ifndef NFCM_TEST_RIG_H
#define NFCM_TEST_RIG_H

#include "nfcm_core.h"

/* Where choices are from: a generator's state, or a fuzzer's bytes. */
struct choices {
	const u8 *data;
	size_t left;
	u64 state; /* used when data is NULL */
};

u64 choose(struct choices *c, u64 below);

enum {
	RIG_HEAD = 100
}; /* where the buffers of transfers begin in their page */

/* Bytes of so many lists of a transfer whose pages are scattered. */
u64 rig_up_to(u64 size, u64 lists);

/* One channel, its host and a device that may break the rules. */
struct rig {
	struct nfcm_layout layout;
	struct nfcm_channel_core core;
	u64 events[NFCM_EVENT_OVER + 1];
};

void rig_init(struct rig *r);
/* A layout that a good device would give. */
void rig_area(struct nfc_area *area);
/* The host does something it may do now. */
void rig_host(struct rig *r, struct choices *c);
/* The device puts something, mostly what fits; returns what it means. */
enum nfcm_event rig_device(struct rig *r, struct choices *c);
/*
 * Check the invariants after any message; NULL, or the one that does not hold.
 */
const char *rig_broken(const struct rig *r);

/* A completion record as the device writes it. */
struct nfc_slot rig_record(const struct rig *r, enum nfc_type type,
			   const struct nfcm_record *record);

#endif /* NFCM_TEST_RIG_H */
