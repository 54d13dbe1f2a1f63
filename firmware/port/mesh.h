/* SPDX-License-Identifier: MIT */
/*
 * Nodes of a fabric in one process, joined by wires in memory, with packets
 * that test and measure them. For nodes of other processes, the owner of a
 * connection moves the words.
 */
#ifndef NFC_PORT_MESH_H
#define NFC_PORT_MESH_H

#include <pthread.h>

#include "../link/rma.h"
#include "../nfc_port.h"
#include "bus.h"
#include "wire.h"

enum nfc_mesh_limits {
	NFC_MESH_THREADS_MAX = 64,
	NFC_MESH_NODES_MAX = 1024, /* in one process: half a MiB each */
	NFC_MESH_ALL = NFC_NODES_MAX, /* as a destination: each other node in its order */
};

/* Kinds of packets of the mesh's own. */
enum nfc_mesh_kind {
	NFC_MESH_DATA = 1, /* counted, checked and forgotten */
	NFC_MESH_PING = 2, /* the receiver returns it as a PONG */
	NFC_MESH_PONG = 3,
};

enum nfc_mesh_count {
	NFC_MESH_SENT = 0, /* data packets that entered the fabric here */
	NFC_MESH_CAME = 1, /* data packets for this node */
	NFC_MESH_BYTES = 2, /* their payload */
	NFC_MESH_CHANGED = 3, /* whose payload was changed on the way */
	NFC_MESH_DOUBLED = 4, /* that were received before */
	NFC_MESH_REFUSED = 5, /* that had no route */
	NFC_MESH_PONGS = 6,
	NFC_MESH_COUNTS = 7,
};

struct nfc_mesh_config {
	struct nfc_node_config node; /* address: not used */
	struct nfc_wire_config wire;
	uint32_t threads; /* 0: the caller runs nfc_mesh_step(), with a clock of its own */
	uint64_t spin_ns; /* before a thread without work sleeps */
	uint64_t ask_ns; /* time after which a put or get is repeated; 0: 10 ms */
	bool whole; /* payloads are checked word by word */
};

/* Packets that a node is asked to send. */
struct nfc_mesh_load {
	uint32_t to; /* index of a node, or NFC_MESH_ALL */
	uint32_t size; /* bytes of each packet */
	uint32_t kind; /* enum nfc_mesh_kind */
	uint64_t count; /* packets; for each destination if it is all */
};

struct nfc_mesh;

/*
 * Build a mesh of the nodes whose byte in `here` is not 0; NULL: all. Returns
 * NULL: no
 * memory, or a configuration that makes no sense.
 */
struct nfc_mesh *nfc_mesh_new(const struct nfc_mesh_config *config,
			      const uint8_t *here);
void nfc_mesh_free(struct nfc_mesh *m);

/* Without threads: let that much time pass in steps of step_ns. */
void nfc_mesh_step(struct nfc_mesh *m, uint64_t ns, uint64_t step_ns);

/* Packets from a node, when it is done with those before. False: it is not. */
bool nfc_mesh_send(struct nfc_mesh *m, uint32_t from,
		   const struct nfc_mesh_load *load);
/* Are all packets of a node sent, and its pings back? */
bool nfc_mesh_done(struct nfc_mesh *m, uint32_t from);
/* How long each ping took, there and back, when they are done; returns how many. */
uint64_t nfc_mesh_pings(struct nfc_mesh *m, uint32_t from, uint64_t *ns,
			uint64_t count);

/* Cut the link of a node in both directions, or mend it. */
void nfc_mesh_cut(struct nfc_mesh *m, uint32_t node, uint32_t link, bool cut);
/*
 * End a node, or start it anew. Silent: its neighbours are not notified. One
 * thread at a time.
 */
void nfc_mesh_kill(struct nfc_mesh *m, uint32_t node, bool dead, bool silent);
/* Set the effect of a link on words that leave a node. */
void nfc_mesh_break(struct nfc_mesh *m, uint32_t node, uint32_t link,
		    const struct nfc_wire_faults *faults);
/*
 * Bursts of the self-test to send by a link, in place of those that are left; those
 * of a link that is not up are none.
 */
void nfc_mesh_test(struct nfc_mesh *m, uint32_t node, uint32_t link,
		   uint32_t bursts);
void nfc_mesh_sense(struct nfc_mesh *m, uint32_t node, uint32_t word);
/* The host of a node shows itself. */
void nfc_mesh_host(struct nfc_mesh *m, uint32_t node);

/* The state of a link, as its node reports it. */
struct nfc_mesh_link {
	bool joined; /* there is a node at the other end, by the torus */
	uint32_t state, level, window;
	uint64_t rtt_ns;
	uint64_t count[NFC_LINK_COUNTS];
};

struct nfc_mesh_state {
	bool alive;
	uint64_t steps; /* of the node, since the mesh began */
	uint64_t count[NFC_MESH_COUNTS];
	uint64_t node[NFC_NODE_COUNTS];
	uint64_t rma[NFC_RMA_COUNTS];
	uint64_t windows, window_bytes; /* that there are */
	uint64_t hits, misses; /* of the cache of pages */
	struct nfc_mesh_link link[NFC_LINKS];
};

void nfc_mesh_read(struct nfc_mesh *m, uint32_t node,
		   struct nfc_mesh_state *out);
/* A node's view of all nodes: a diagnostic word each. */
void nfc_mesh_view(struct nfc_mesh *m, uint32_t node, uint32_t *word);
/*
 * The next hop of a packet at a node, that arrived on a link (NFC_LINKS: it is
 * of that node) on a virtual channel. A node elsewhere has the view of the
 * first one here.
 */
struct nfc_hop nfc_mesh_route(struct nfc_mesh *m, uint32_t node, uint32_t from,
			      uint32_t to, uint32_t from_link, uint32_t vc);

/* ---- put and get: mesh_rma.c ---- */

/* A put or a get, and the caller that waits for it. */
struct nfc_mesh_op;

/*
 * Others may put to memory of a node, or get from it, by the key. -NFC_ERESET: the
 * node is dead; else as nfc_rma_add().
 */
int nfc_mesh_window(struct nfc_mesh *m, uint32_t node, void *memory,
		    uint64_t size, uint32_t access, uint64_t *key);
/*
 * End that: no access reaches the memory any more. False: there was no such
 * window.
 */
bool nfc_mesh_revoke(struct nfc_mesh *m, uint32_t node, uint64_t key);
/*
 * Begin an operation of a node; op.ended is not used. NULL: no memory. It is freed by
 * nfc_mesh_finish().
 */
struct nfc_mesh_op *nfc_mesh_begin(struct nfc_mesh *m, uint32_t node,
				   const struct nfc_rma_op *op);
/*
 * Has it ended? Wait as a thread, until the first step of the node after so
 * long, or at the latest until its requests are repeated. If another caller
 * does so in this mesh: false at once. A clock of its own for that would cost
 * more than the wait.
 */
bool nfc_mesh_poll(struct nfc_mesh_op *op, uint64_t ns);
/*
 * Have nfc_mesh_ended() return waiter, which is not 0, when it ended: then it may be
 * finished. False: it has ended.
 */
bool nfc_mesh_park(struct nfc_mesh_op *op, uintptr_t waiter);
/* An eventfd that is readable when nfc_mesh_ended() has something. */
int nfc_mesh_wakes(struct nfc_mesh *m);
/* The next waiter whose operation ended; 0: none. One thread at a time. */
uintptr_t nfc_mesh_ended(struct nfc_mesh *m);
/* End it, if it did not end: -NFC_EWITHDRAWN. */
void nfc_mesh_withdraw(struct nfc_mesh_op *op);
/* How it ended, which it did: 0, or -NFC_E... Its memory is freed. */
int nfc_mesh_finish(struct nfc_mesh_op *op);
/* End all operations with -NFC_ESTOPPED; no more begin. */
void nfc_mesh_close_ops(struct nfc_mesh *m);
/*
 * Look up random bytes of that many pages, in windows of 16 pages each. Returns
 * the ns that all took, and how many the cache had. 0: no memory.
 */
uint64_t nfc_mesh_measure_lookups(uint32_t lookup, uint32_t pages,
				  uint64_t count, uint64_t *hits);

/* ---- links to nodes that are elsewhere ---- */

/* There is, or is no more, a connection behind a link. */
void nfc_mesh_join(struct nfc_mesh *m, uint32_t node, uint32_t link,
		   bool joined);
/*
 * Contiguous words to send, and how many; they stay there until nfc_mesh_sent()
 * reports that so many were sent. One thread at a time.
 */
const struct nfc_word *nfc_mesh_outgoing(struct nfc_mesh *m, uint32_t node,
					 uint32_t link, uint32_t *n);
void nfc_mesh_sent(struct nfc_mesh *m, uint32_t node, uint32_t link, uint32_t n);
/*
 * The place for received words, and how many fit; it is the caller's until
 * nfc_mesh_received() reports that so many were written. One thread at a time.
 */
struct nfc_word *nfc_mesh_incoming(struct nfc_mesh *m, uint32_t node,
				   uint32_t link, uint32_t *n);
void nfc_mesh_received(struct nfc_mesh *m, uint32_t node, uint32_t link,
		       uint32_t n);
/*
 * An eventfd that is readable when there may be words to send, or room for
 * some.
 */
int nfc_mesh_event(struct nfc_mesh *m, uint32_t node, uint32_t link);

/* ---- channels between nodes: mesh_far.c ---- */

struct nfc_hosted;
struct nfc_hosted_joints;
struct nfc_near;

/* Nodes here take the packets of such channels. */
void nfc_mesh_far(struct nfc_mesh *m);
/*
 * The joints of a host, of that owner, which is at the node of its device: for
 * nfc_hosted_join() or nfc_hosted_attach(), and one at a time. NULL: no memory. Their
 * memory is the mesh's; no device may use it when that ends.
 */
const struct nfc_hosted_joints *nfc_mesh_joints(struct nfc_mesh *m,
						uint32_t node,
						struct nfc_hosted *device,
						uint64_t owner);
/* That host was detached. */
void nfc_mesh_disjoin(const struct nfc_hosted_joints *joints);
/*
 * The device of a node, which is a shared one of that shape. It serves hosts of other
 * nodes until nfc_mesh_unserve(), which returns when no host is being attached
 * or detached any more: then the device may be closed.
 */
void nfc_mesh_serve(struct nfc_mesh *m, uint32_t node,
		    struct nfc_hosted *device, const struct nfc_config *shape);
void nfc_mesh_unserve(struct nfc_mesh *m, uint32_t node);

/* A host in another process: its area is the bus's, which no host has used. */
struct nfc_near_client {
	struct nfc_bus *bus;
	int32_t doorbell; /* a socket: a byte for each ring, and it is shut when the device is */
};

/*
 * A host at node, of the device at the node to, which must have that shape:
 * this process, or a client. Hosts of one owner are one: their processes may
 * have channels between them,
 * unless it is 0.
 * 0; -NFC_EBUSY: there are as many as a device takes of one node; -NFC_ENOMEM.
 */
int nfc_near_new(struct nfc_mesh *m, uint32_t node, uint32_t to,
		 const struct nfc_config *shape, uint64_t owner,
		 const struct nfc_near_client *client, struct nfc_near **out);
/*
 * Detach the host from the device and free it; the mesh's end does so for the
 * others.
 */
void nfc_near_free(struct nfc_near *h);
/* 0 when the device has shown itself, NFC_PENDING until then; else why it never will. */
int nfc_near_ready(struct nfc_near *h);
/* Begin an epoch: the area is zero, and written when the device shows itself. */
int nfc_near_start(struct nfc_near *h);
/* Nothing reaches this host's memory or its area any more. */
void nfc_near_stop(struct nfc_near *h);
/* Nothing reads or writes the memory of its transfers any more. */
void nfc_near_fence(struct nfc_near *h);
/* There is a new slot. */
void nfc_near_ring(struct nfc_near *h);
void *nfc_near_area(struct nfc_near *h, uint64_t *size);
/* An eventfd by which the host is rung. It stays the mesh's. */
int nfc_near_doorbell(struct nfc_near *h);

#endif /* NFC_PORT_MESH_H */
