/* SPDX-License-Identifier: MIT */
/* Channels between processes of two nodes: what mesh_far.c has of mesh_span.c. */
#ifndef NFC_PORT_MESH_SPAN_H
#define NFC_PORT_MESH_SPAN_H

#include "../link/span.h"
#include "hosted.h"
#include "mesh_state.h"

enum {
	MESH_ENDED = 64, /* spans that a place remembers */
};

struct mesh_span;

/* A host at the device of a node, from where and to where joints lead. The node's. */
struct mesh_place {
	struct nfc_hosted_joints calls;
	struct mesh_place *next; /* of the node's that are active */
	struct mesh_place *sibling; /* of its hosts that are here */
	bool taken; /* by one of those */
	struct mesh_node *node;
	struct nfc_hosted *device;
	struct nfc_device *core; /* of its present epoch */
	uint32_t host; /* at that device */
	uint32_t home; /* address of the node that the host is at */
	uint64_t owner; /* its number there */
	bool active;
	_Atomic uint64_t rung; /* a bit for each joint: the device posted an event */
	struct mesh_span *span[NFC_JOINTS];
	uint64_t window[NFC_HOST_WINDOWS]; /* keys of its processes' windows; 0: none */
	/* JOINs that made a span: a late repetition makes no other. */
	struct {
		uint32_t peer, number;
	} ended[MESH_ENDED];
	uint32_t ends;
};

/*
 * A place at a node for a host of node `home`; device and owner are the
 * caller's.
 */
void nfc_mesh_place(struct mesh_place *at, struct mesh_node *n, uint32_t home);
/* Places of hosts that are at the node of their device. No device uses them any more. */
void nfc_mesh_places_free(struct mesh_node *n);

/* The caller of the following functions holds the node. */

void nfc_mesh_spans_deliver(struct mesh_node *n, const struct nfc_packet *p,
			    const struct nfc_fifo *f, uint32_t at);
uint64_t nfc_mesh_spans_step(struct mesh_node *n);
bool nfc_mesh_spans_stirred(const struct mesh_node *n);

#endif /* NFC_PORT_MESH_SPAN_H */
