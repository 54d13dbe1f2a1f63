/* SPDX-License-Identifier: MIT */
/* State that the files of the mesh share. */
#ifndef NFC_PORT_MESH_STATE_H
#define NFC_PORT_MESH_STATE_H

#include "mesh.h"

enum {
	MESH_PONGS = 16, /* answers of a node that wait for room */
};

/*
 * Packets received from one node: the highest number, and which of those
 * before.
 */
struct pair {
	uint32_t next; /* number of the next packet to that node */
	uint32_t highest;
	uint64_t seen;
	uint16_t epoch; /* of that node when it sent those */
};

/* Why a link leads nowhere; nodes that are dead have their own flag. */
enum mesh_away {
	MESH_AWAY_CUT = 1 << 0,
	MESH_AWAY_APART = 1 << 1, /* its other end is elsewhere, and not connected */
};

struct mesh_node {
	struct nfc_node node;
	struct nfc_link_port port;
	struct nfc_mesh *mesh;
	struct mesh_node *other[NFC_LINKS]; /* where links lead; itself: nowhere */
	void *memory; /* of the node, and what of it is to be freed */
	void *whole;
	uint32_t index, thread;
	bool here; /* it is one of this process */
	bool running; /* its owner's: it was made and not ended */
	_Atomic bool dead, silent;
	_Atomic uint32_t changes[NFC_LINKS]; /* odd: there is a neighbour */
	_Atomic uint32_t away[NFC_LINKS]; /* enum mesh_away: why there is none */
	int event[NFC_LINKS]; /* of links to elsewhere, -1 */
	uint32_t signals; /* of these, a bit each that is due after the step */
	struct nfc_wire wire[NFC_LINKS]; /* what this node puts */
	const struct nfc_word
		*buffer[NFC_LINKS]; /* of links: what it shares; always there */
	uint64_t steps;
	_Atomic uint64_t due; /* when to step it even if no word arrives */
	uint64_t now; /* time of the pass under way: one reading for all of it */
	uint64_t far_due; /* of channels between nodes */
	bool more; /* a load could send more at once */
	struct nfc_rma *rma;
	struct nfc_rma_peer *peers;
	uint64_t epoch; /* of puts and gets: above that of any time before */
	bool closed; /* no more of them begin */
	bool wakes; /* operations with parked waiters ended */
	struct nfc_mesh_op *polled; /* that nfc_mesh_poll() waits for; NULL: none */
	uint64_t poll_end; /* when it shall do so no more */
	/* The load. */
	pthread_mutex_t lock; /* guards the node from readers, and load */
	struct nfc_mesh_load load;
	uint64_t *took_ns; /* of each ping */
	uint64_t left, pinged_ns;
	uint32_t target, pings;
	/* of the next packet */
	_Alignas(NFC_PORT_LINE) struct nfc_word payload[NFC_PACKET_WORDS];
	struct pair *pair;
	uint64_t count[NFC_MESH_COUNTS];
	struct nfc_packet pong[MESH_PONGS]; /* answers that wait for room */
	uint32_t pinged, ponged; /* of those, how many arrived and were sent */
	/* Channels between nodes: mesh_far.c. */
	const struct mesh_far *far; /* NULL: this node has none */
	struct nfc_near *nears; /* hosts here, each of a device elsewhere */
	uint32_t far_epoch; /* of the client that was attached last */
	struct far_seat *seats; /* of hosts elsewhere at the device here */
	struct mesh_place *places; /* hosts of it that joints lead from and to */
	struct mesh_place *own; /* those of hosts here at the device here; kept */
	struct mesh_span *spans; /* ends of those joints here */
	uint32_t span_number; /* the last that was given here */
	struct nfc_hosted *device; /* NULL: there is none */
	struct nfc_config shape; /* of that device */
	pthread_mutex_t seating; /* one host is attached or detached at a time */
	bool closing; /* no more hosts are attached */
};

struct mesh_thread {
	struct nfc_mesh *mesh;
	pthread_t id;
	pthread_mutex_t lock;
	pthread_cond_t woken;
	_Atomic bool asleep;
	_Atomic uint64_t until; /* due, while it sleeps */
	bool started;
	uint32_t first, last; /* its nodes; the last is none of them */
	uint64_t due; /* no node of it is due before */
	uint64_t busy_ns; /* when a packet moved last */
	/* A bit for each node that received something: step it. */
	_Alignas(64) _Atomic uint64_t ready[NFC_MESH_NODES_MAX / 64];
};

struct nfc_mesh {
	void *whole; /* to be freed, as the memory behind the nodes */
	void *whole_nodes;
	struct nfc_mesh_config config;
	uint32_t nodes;
	struct mesh_node *node;
	uint64_t clock; /* without threads */
	struct mesh_thread thread[NFC_MESH_THREADS_MAX];
	_Atomic bool halt;
	int wakes; /* eventfd: there is something in ended */
	_Atomic bool polls; /* a thread is in nfc_mesh_poll() */
	pthread_cond_t polled; /* signalled at the end of the operation that it waits for */
	_Atomic(struct nfc_mesh_op *) ended; /* with parked waiters, last first */
	struct nfc_mesh_op *taken; /* of those, by nfc_mesh_ended() */
};

uint64_t nfc_mesh_now(struct nfc_mesh *m);
/* Have a node's thread step it. */
void nfc_mesh_kick(struct mesh_node *n);
/*
 * The same, but step the node at once if that thread sleeps: to wake it takes longer. It
 * still wakes if it would sleep too long now.
 */
void nfc_mesh_assist(struct mesh_node *n);

/* ---- mesh_rma.c ---- */

/* The node starts, or ends: its windows and operations end with it. */
void nfc_mesh_rma_start(struct mesh_node *n);
void nfc_mesh_rma_end(struct mesh_node *n);
/* The part of a node's step that serves them. */
void nfc_mesh_rma_step(struct mesh_node *n, uint64_t now);
/* As nfc_mesh_window(), of a node that is held. */
int nfc_mesh_add_window(struct mesh_node *n, void *memory, uint64_t size,
			uint32_t access, uint64_t *key);
/* Have nfc_mesh_ended() called: a node with `wakes` set was unlocked. */
void nfc_mesh_wake(struct nfc_mesh *m);

/* Calls of mesh_far.c at a node, which is held. */
struct mesh_far {
	/* A received packet that is not of the mesh's own kinds. */
	void (*deliver)(struct mesh_node *n, const struct nfc_packet *p,
			const struct nfc_fifo *f, uint32_t at);
	/*
	 * In a step, after received packets: send for hosts and devices;
	 * returns when to run again.
	 */
	uint64_t (*step)(struct mesh_node *n);
	/* Has anything arrived since that step? */
	bool (*stirred)(const struct mesh_node *n);
	void (*free)(struct mesh_node *n);
};

/* ---- mesh_load.c ---- */

/* A packet for a node; false: not now. */
bool nfc_mesh_deliver(void *self, const struct nfc_packet *p,
		      const struct nfc_fifo *f, uint32_t at);
/* Send what a node was asked to; true: it could send more at once. */
bool nfc_mesh_send_load(struct mesh_node *n);

#endif /* NFC_PORT_MESH_STATE_H */
