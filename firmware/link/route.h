/* SPDX-License-Identifier: MIT */
/*
 * Routes in a torus, intact or not. Pure: the input is a view of the nodes that
 * are present, the output a link and a virtual channel. See
 * docs/design/0033-routes.md.
 */
#ifndef NFC_ROUTE_H
#define NFC_ROUTE_H

#include "link.h"

enum nfc_torus_limits {
	NFC_DIMENSIONS = 3,
	NFC_SIDE_MAX = 32, /* nodes a side */
	NFC_NODES_MAX = NFC_SIDE_MAX * NFC_SIDE_MAX * NFC_SIDE_MAX,
	NFC_NO_ROUTE = 0xff,
};

struct nfc_torus {
	uint32_t side[NFC_DIMENSIONS]; /* x, y, z */
};

/* The last word that a node spread, and its version. */
struct nfc_record {
	uint32_t version, diagnostic; /* diagnostic 0: nothing is known */
	uint8_t spread; /* links over which it has to be sent */
};

/* Routes of a node's packets on virtual channel 2: one entry for each node. */
struct nfc_detour {
	uint8_t up[2]; /* first link: for a packet not yet sent down, for one that was */
};

/* The input and the result of routing; arrays have an entry for each node. */
struct nfc_view {
	struct nfc_torus torus;
	uint32_t self; /* index of the node that has the view */
	struct nfc_record *record;
	struct nfc_detour *detour;
	uint32_t *order; /* distance from the lowest node; UINT32_MAX: not reached */
	uint32_t *queue; /* for searches: two entries for each node */
	uint8_t *seen; /* states that a search saw */
};

/* A way on: a link and the virtual channel there. */
struct nfc_hop {
	uint8_t link; /* enum nfc_link; NFC_LINKS: it is here; NFC_NO_ROUTE: nowhere */
	uint8_t vc;
};

/* -NFC_EINVAL: less than two nodes, or more than a side has. */
int nfc_torus_check(const struct nfc_torus *t);
uint32_t nfc_torus_nodes(const struct nfc_torus *t);
/* A number that ends of a link compare: two tori that differ have two. */
uint32_t nfc_torus_number(const struct nfc_torus *t);
/* Node addresses {x:8 | y:8 | z:8} and indices; an address outside is NFC_NODES_MAX. */
uint32_t nfc_torus_index(const struct nfc_torus *t, uint32_t address);
uint32_t nfc_torus_address(const struct nfc_torus *t, uint32_t index);
/* The node at the other end of a link; the node itself where a side is 1. */
uint32_t nfc_torus_neighbour(const struct nfc_torus *t, uint32_t index,
			     uint32_t link);
/* The way of dimension order, of a packet from that node, as if all were well. */
struct nfc_hop nfc_route_ordered(const struct nfc_torus *t, uint32_t at,
				 uint32_t from, uint32_t to);

/* Bytes behind a view, and their layout. */
uint64_t nfc_view_size(const struct nfc_torus *t);
void nfc_view_init(struct nfc_view *v, const struct nfc_torus *t, uint32_t self,
		   void *memory);
/* May a link be used, by the reports of both its ends? */
bool nfc_view_usable(const struct nfc_view *v, uint32_t index, uint32_t link);
/* Records changed: compute where detours lead. */
void nfc_view_compute(struct nfc_view *v);
/* Is there any way to a node? */
bool nfc_view_reaches(const struct nfc_view *v, uint32_t to);
/*
 * The next hop of a packet at this node that arrived on a link (NFC_LINKS: it
 * is of this node) on a virtual channel.
 */
struct nfc_hop nfc_view_route(const struct nfc_view *v, uint32_t from,
			      uint32_t to, uint32_t from_link, uint32_t vc);

/* Shift of a link's level in a diagnostic word. */
static inline uint32_t nfc_link_shift(uint32_t link)
{
	return NFC_DIAG_X_PLUS_SHIFT - 2 * link;
}

#endif /* NFC_ROUTE_H */
