/* SPDX-License-Identifier: MIT */
/* What the files of the mesh share. */
#ifndef NFC_PORT_MESH_STATE_H
#define NFC_PORT_MESH_STATE_H

#include "mesh.h"

/* What came from one node: the highest number, and which of those before. */
struct pair {
	uint32_t next; /* number of the next packet to that node */
	uint32_t highest;
	uint64_t seen;
};

struct mesh_node {
	struct nfc_node node;
	struct nfc_link_port port;
	struct nfc_mesh *mesh;
	void *memory;
	uint32_t index, thread;
	bool here; /* it is one of this process */
	bool running; /* its owner's: it was made and not ended */
	_Atomic bool dead, silent;
	_Atomic bool ready; /* something came: step it */
	_Atomic uint32_t changes[NFC_LINKS]; /* odd: there is a neighbour */
	int event[NFC_LINKS]; /* of links to elsewhere, -1 */
	struct nfc_wire wire[NFC_LINKS]; /* what this node puts */
	uint64_t due;
	uint64_t now; /* time of the step under way: one reading for all of it */
	/* The load. */
	pthread_mutex_t lock; /* guards the node from readers, and load */
	struct nfc_mesh_load load;
	uint64_t *took_ns; /* of each ping */
	uint64_t left, pinged_ns;
	uint32_t target, pings;
	struct pair *pair;
	uint64_t count[NFC_MESH_COUNTS];
};

struct mesh_thread {
	struct nfc_mesh *mesh;
	pthread_t id;
	pthread_mutex_t lock;
	pthread_cond_t woken;
	_Atomic bool asleep;
	bool started;
};

struct nfc_mesh {
	struct nfc_mesh_config config;
	uint32_t nodes;
	struct mesh_node *node;
	uint64_t clock; /* without threads */
	struct mesh_thread thread[NFC_MESH_THREADS_MAX];
	_Atomic bool halt;
};

uint64_t nfc_mesh_now(struct nfc_mesh *m);
/* The node at the other end of a link. */
struct mesh_node *nfc_mesh_neighbour(struct mesh_node *n, uint32_t link);
/* Have a node's thread look at it. */
void nfc_mesh_kick(struct mesh_node *n);

/* ---- mesh_load.c ---- */

/* A packet for a node; false: not now. */
bool nfc_mesh_deliver(void *self, const struct nfc_packet *p,
		      const struct nfc_fifo *f, uint32_t at);
/* Send what a node was asked to; true: it could send more at once. */
bool nfc_mesh_send_load(struct mesh_node *n);

#endif /* NFC_PORT_MESH_STATE_H */
