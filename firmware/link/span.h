/* SPDX-License-Identifier: MIT */
/*
 * A span carries a joint between two nodes, with an end at each. It sends slots
 * as the ends of a far host send those of mailboxes, and bytes that the node of
 * the taking process requests. A span acts on the joint by the calls of
 * nfc_port.h. An end belongs to its node: callers hold that node. Freestanding,
 * without allocation. See docs/design/0078-channels-between-nodes.md.
 */
#ifndef NFC_SPAN_H
#define NFC_SPAN_H

#include "far.h"

/* Kinds of packets, each of which begins with a struct nfc_far_head. */
enum nfc_span_kind {
	NFC_SPAN_JOIN = 40, /* a process asks for a target: a struct nfc_span_ask */
	NFC_SPAN_JOINED = 41, /* how that ended: a struct nfc_joined */
	NFC_SPAN_SLOTS = 42, /* as H2D and D2H of a far host */
	NFC_SPAN_READ = 43, /* as there, {transaction:16 | offset:48} for an address */
	NFC_SPAN_DATA = 44,
	NFC_SPAN_GONE = 45, /* the sender has no such span (any more) */
	NFC_SPAN_KINDS = 46,
};

/* The host that owns the requested target, by its node and a number there. */
struct nfc_span_ask {
	uint64_t owner;
	uint32_t home; /* address of that node */
	uint32_t target;
};

enum nfc_span_state {
	NFC_SPAN_ASKS, /* of the connecting end: there is no answer yet */
	NFC_SPAN_ASKED, /* of the target: the device has none yet */
	NFC_SPAN_ANSWERS, /* it may not have arrived */
	NFC_SPAN_UP,
	NFC_SPAN_OVER, /* the joint is to be dropped */
};

/* An end. The connecting node chooses its number, which is its line's epoch. */
struct nfc_span {
	struct nfc_far_line line; /* host: 0 at the connecting end, 1 at the target */
	struct nfc_far_port port; /* islands to wake */
	struct nfc_joint *joint;
	struct nfc_span_ask ask; /* of the connecting end */
	enum nfc_span_state state;
	bool rung; /* the device posted an event */
	bool stirred; /* a packet arrived since the last step: step at once */
	bool ended; /* the other end is over: it needs no notice */
	uint64_t beat_ns, again_ns; /* when to do it next */
	uint64_t come_ns; /* deadline for a notified host to connect to its guest; or 0 */
	struct nfc_far_watch watch;
	struct nfc_far_rings rings;
	struct nfc_far_asker asker;
	struct nfc_far_served served;
};

struct nfc_span_config {
	struct nfc_far_port port;
	struct nfc_joint *joint;
	uint32_t peer, number, islands;
	const struct nfc_span_ask *ask; /* NULL: this end is the target's */
};

void nfc_span_init(struct nfc_span *s, struct nfc_node *node,
		   const struct nfc_span_config *config);
/* Handle a received packet of its number, from the other end. */
void nfc_span_deliver(struct nfc_span *s, const struct nfc_packet *p,
		      const struct nfc_fifo *fifo, uint32_t at);
/* Send what is due; returns when to run again even if no packet arrives. */
uint64_t nfc_span_step(struct nfc_span *s);
/* port.fetch of struct nfc_port. */
int nfc_span_fetch(struct nfc_span *s, void *to, uint64_t at, uint64_t len);
/* The joint is to be dropped: notify the other end, once. */
void nfc_span_leave(struct nfc_span *s);
/* Answer a JOIN that makes no span, or a packet of a span that is unknown. */
void nfc_span_refuse(struct nfc_node *node, const struct nfc_packet *p,
		     const struct nfc_far_head *h, uint32_t status);

#endif /* NFC_SPAN_H */
