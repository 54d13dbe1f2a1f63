/* SPDX-License-Identifier: MIT */
/*
 * A node of a fabric: six links, a router between them and what is here, and what
 * it knows of all others. Owned by one island; no allocation.
 */
#ifndef NFC_NODE_H
#define NFC_NODE_H

#include "route.h"

enum nfc_node_limits {
	NFC_HOPS_MAX = 255, /* a packet that crossed so many links runs in circles */
	NFC_NODE_BUDGET = 8, /* packets of one input before the next has its chance */
	NFC_NODE_INPUTS = NFC_LINKS * NFC_VCS +
			  1, /* the last: packets of this node */
};

struct nfc_node_config {
	struct nfc_torus torus;
	uint32_t address; /* {x:8 | y:8 | z:8} */
	uint32_t inject; /* words of the FIFO of packets of this node that wait; 0: two packets */
	uint64_t host_ns; /* the host shows itself that often; 0: it is not watched */
	struct nfc_link_config link;
};

enum nfc_node_count {
	NFC_NODE_SENT = 0, /* packets of this node that entered the fabric */
	NFC_NODE_DELIVERED = 1, /* packets for this node */
	NFC_NODE_FORWARDED = 2, /* packets that arrived on a link and left by another */
	NFC_NODE_DETOURS = 3, /* packets, its own too, that left dimension order here */
	NFC_NODE_UNREACHABLE = 4, /* dropped: no way leads there any more */
	NFC_NODE_HOPS = 5, /* dropped: ran in circles */
	NFC_NODE_MALFORMED = 6, /* dropped: addresses outside of the torus */
	NFC_NODE_BLOCKED_NS = 7, /* time that first packets of inputs waited */
	NFC_NODE_VIEWS = 8, /* times routes were computed */
	NFC_NODE_NEWS = 9, /* records that were new */
	NFC_NODE_COUNTS = 10,
};

/* The way that the last packet of an input had, until routes are computed again. */
struct nfc_way {
	uint64_t ends; /* of its header: where from and where to */
	struct nfc_hop hop;
};

struct nfc_node;

struct nfc_node_port {
	void *self;
	/*
	 * A packet for this node; its payload begins at word at of the FIFO.
	 * False: not now, it stays.
	 */
	bool (*deliver)(void *self, const struct nfc_packet *p,
			const struct nfc_fifo *f, uint32_t at);
	/*
	 * Called in each step after received packets: the owner may send. NULL:
	 * not needed.
	 */
	void (*offer)(void *self);
};

struct nfc_node {
	struct nfc_node_config config;
	const struct nfc_link_port *link_port;
	struct nfc_node_port port;
	struct nfc_link_owner owner;
	struct nfc_link_end link[NFC_LINKS];
	struct nfc_fifo inject;
	struct nfc_view view;
	bool joined[NFC_LINKS]; /* there is a node at the other end, by the torus */
	bool up[NFC_LINKS]; /* the link was up in the last step */
	bool stale; /* records changed since routes were computed */
	struct nfc_way way[NFC_NODE_INPUTS];
	uint32_t sensed; /* word of the port's sensors */
	uint32_t waiting[NFC_LINKS]; /* records to send */
	uint32_t scan[NFC_LINKS]; /* where the search for one continues */
	uint32_t refresh[NFC_LINKS]; /* the record that is repeated next */
	uint32_t first; /* input that has its chance first */
	uint32_t waits; /* inputs whose first packet is blocked */
	uint64_t blocked[NFC_NODE_INPUTS]; /* since when, of those */
	uint64_t moves; /* packets that left an input */
	uint64_t now, host_ns, beat_due;
	uint64_t count[NFC_NODE_COUNTS];
};

/* Fill zero fields with defaults; -NFC_EINVAL for what makes no sense. */
int nfc_node_check(struct nfc_node_config *config);
/* Bytes behind a node, aligned to 16. */
uint64_t nfc_node_size(const struct nfc_node_config *config);
/* Make a node in memory; the configuration was checked. */
void nfc_node_init(struct nfc_node *n, const struct nfc_node_config *config,
		   const struct nfc_link_port *link_port,
		   const struct nfc_node_port *port, void *memory);
/*
 * Receive, route, send. Returns when to run again even if no packet arrives; at
 * once if there is more to do.
 */
uint64_t nfc_node_step(struct nfc_node *n);
/*
 * Send a packet from this node: 0, -NFC_EBUSY (no room: after the next step),
 * -NFC_ENOTARGET (no way leads there), -NFC_EINVAL (no such node),
 * -NFC_ETOOLARGE.
 */
int nfc_node_send(struct nfc_node *n, const struct nfc_packet *p,
		  const void *data);
/* Does the node know of a way there? */
bool nfc_node_reaches(const struct nfc_node *n, uint32_t address);
/* The host is there. */
void nfc_node_host(struct nfc_node *n);
/* Levels of parts as sensors read them, links excepted. */
void nfc_node_sense(struct nfc_node *n, uint32_t word);

/* ---- node.c: for the links of a node ---- */

/* A received packet: struct nfc_link_owner. */
bool nfc_node_take(void *self, uint32_t link, const struct nfc_held *h,
		   const struct nfc_fifo *f);

/* ---- records.c: what all nodes know of all ---- */

void nfc_records_init(struct nfc_node *n);
/* The state of links, host and sensors: spread it if it is another. */
void nfc_records_update(struct nfc_node *n);
/* A heartbeat: a credit and one record more over each link. */
void nfc_records_refresh(struct nfc_node *n);
/* A link is in use now: send all records over it. */
void nfc_records_all(struct nfc_node *n, uint32_t link);

#endif /* NFC_NODE_H */
