/* SPDX-License-Identifier: MIT */
/*
 * A host that is far from its device: both have a mailbox area, and packets keep the
 * two alike. One end is at the host, one at the device. Slots are written at the same
 * index in both, so that a repetition is recognised and a ring needs no other buffer
 * than itself. The device's accesses to the host's memory are sent as requests
 * and answers. An end belongs to its node: callers hold that node's lock.
 * Freestanding,
 * without allocation. See docs/design/0035-far-hosts.md.
 */
#ifndef NFC_FAR_H
#define NFC_FAR_H

#include <stdatomic.h>

#include "../nfc_port.h"
#include "node.h"

/* Kinds of packets; the mesh has those below. */
enum nfc_far_kind {
	/* to the device */
	NFC_FAR_OPEN = 16, /* a host is there: the slot of its hello */
	NFC_FAR_LEAVE = 17, /* the host leaves */
	NFC_FAR_H2D = 18, /* slots of a mailbox, and what is known of the other ring */
	NFC_FAR_DATA = 19, /* bytes that a READ requested */
	NFC_FAR_DONE = 20, /* WRITEs that were done */
	/* to the host */
	NFC_FAR_AREA = 24, /* the area's beginning: device, hello and heartbeat */
	NFC_FAR_D2H = 25,
	NFC_FAR_READ = 26, /* requests for bytes of the host's memory */
	NFC_FAR_WRITE = 27, /* bytes for it */
};

enum nfc_far_limits {
	NFC_FAR_HEAD = 32,
	NFC_FAR_BYTES = NFC_PACKET_SIZE - NFC_FAR_HEAD,
	NFC_FAR_SLOTS = NFC_FAR_BYTES / 64, /* of one packet */
	NFC_FAR_REQUESTS = 64, /* under way, one bit each */
	NFC_FAR_PIECES = 32,
	NFC_FAR_MAILBOXES = 64,
	NFC_FAR_HOSTS = 16, /* of one node, at a device */
	NFC_FAR_BEAT_NS = 200000000, /* between two packets of an idle end */
	NFC_FAR_POLL_NS = 50000000, /* between two checks whether any arrived */
	NFC_FAR_SILENT = 24, /* checks without one, after which the other side is lost */
	NFC_FAR_WAY_NS = 20000000, /* between two checks whether the peer is reachable again */
	NFC_FAR_ASTRAY = 3, /* failed checks in a row, after which it is lost */
};

/* The beginning of a packet. */
struct nfc_far_head {
	uint32_t epoch; /* of the host; packets of another are dropped */
	uint8_t mailbox;
	uint8_t count; /* slots, requests or statuses */
	uint16_t host; /* which of that node's; packets of another are dropped */
	union {
		struct { /* H2D, D2H */
			uint64_t first; /* index of the first slot */
			uint64_t received; /* slots of the other ring that are here … */
			uint64_t consumed; /* … and how many of them were taken */
		};
		uint64_t owner; /* OPEN: id of the owning host, the same at all devices */
		struct { /* WRITE, DATA */
			uint64_t bus; /* DATA: zero */
			uint32_t number, size;
			uint64_t status; /* DATA: 0, or enum nfc_status, and no bytes */
		};
	};
};

/* In a READ; in a DONE with the status for a size, and no bus. */
struct nfc_far_asked {
	uint64_t bus;
	uint32_t number, size;
};

/* Calls that an end needs from its environment. The caller holds the node. */
struct nfc_far_port {
	void *self;
	/* At the device: wake an island. At the host: ring it, whichever it is. */
	void (*ring)(void *self, uint32_t island);
	/* At the host: read or write its memory; 0, or NFC_EDMA where it is out of reach. */
	int (*reach)(void *self, bool write, void *memory, uint64_t bus,
		     uint64_t size);
};

/* The connection to the other end, and the time of the next step. */
struct nfc_far_line {
	struct nfc_node *node;
	uint32_t peer; /* address of the other node */
	uint32_t epoch; /* packets of another are dropped … */
	uint16_t host; /* … and those of another host */
	uint64_t now, due;
};

/* Checks whether the other side is alive. */
struct nfc_far_watch {
	uint32_t silent; /* checks since a packet arrived */
	uint32_t astray; /* checks in a row that found no route */
	uint64_t poll_ns, way_ns; /* time of the next check, for either */
};

/*
 * Two rings of a mailbox or of a joint: one for slots to send, one for received
 * slots.
 */
struct nfc_far_rings {
	uint8_t kind,
		index; /* of packets with slots of the first: their kind, and mailbox */
	uint32_t slots, shift; /* slots = 1 << shift */
	struct nfc_far *host; /* at the host: pages are named in them; else NULL */
	struct nfc_slot *out, *in;
	uint64_t *out_head; /* written here: slots that the peer took of it */
	uint64_t *in_head; /* written by the consumer of received slots */
	uint64_t next,
		sent; /* slot that is sent next; those behind sent never were */
	uint64_t acked; /* slots that arrived */
	uint64_t sent_ns; /* since when no slot arrived that was sent */
	uint64_t received; /* slots that were received */
	uint64_t reported,
		reported_head; /* what the peer knows of it and of in_head */
	uint64_t publish_ns; /* latest time to report that to it */
};

/* Part of a transfer, as the core asked for it. */
struct nfc_far_piece {
	uint8_t *memory;
	uint64_t bus, size;
	uint64_t asked, done; /* bytes in requests, and of those that ended */
	uint32_t open; /* requests under way */
	uint16_t status;
	bool used, write;
};

/* A request, at the end that sends it. */
struct nfc_far_request {
	uint64_t offset; /* in its piece */
	uint64_t sent_ns; /* 0: not yet */
	uint32_t number, size;
	uint32_t piece; /* index + 1; 0: it is free */
};

/* Asks for bytes: pieces, and the requests of a packet's size that they are cut into. */
struct nfc_far_asker {
	const struct nfc_far_port *port; /* islands to wake when a piece has ended */
	uint32_t islands;
	uint8_t read; /* kind of the packets that ask */
	struct nfc_far_piece piece[NFC_FAR_PIECES];
	struct nfc_far_request request[NFC_FAR_REQUESTS];
	uint32_t number, open, first_piece;
};

/*
 * Received requests, each at the place of its number, and the answers that are
 * due.
 */
struct nfc_far_served {
	struct nfc_far_asked list[NFC_FAR_REQUESTS]; /* WRITE: its status for a size */
	uint64_t data, done; /* a bit each: READ, WRITE */
};

struct nfc_far_config {
	struct nfc_far_port port;
	struct nfc_area *area; /* zero at the host, of that shape at the device */
	void *pages; /* at the host: nfc_far_pages_size(), zero */
	uint32_t peer; /* address of the other node */
	uint32_t epoch;
	uint16_t host;
	uint64_t owner; /* at the host: as in an OPEN */
	uint32_t mailboxes, islands, slots, channels;
	bool device; /* this end is the device's */
};

struct nfc_far {
	struct nfc_far_config config;
	struct nfc_far_line line;
	bool over; /* the other side is lost */
	bool fenced; /* at the host: its memory is not touched any more */
	bool latched; /* at the host: the device broke a rule; its packets are ignored */
	bool misfit; /* at the host: the device is of another shape */
	bool ready; /* at the host: the device has shown itself */
	bool known; /* at the host: the device has the host's hello */
	bool asked; /* at the device: the area is to be sent */
	bool rung; /* rings may have new slots */
	bool stirred; /* a packet arrived since the last step: step at once */
	struct nfc_far_watch watch;
	uint64_t show_ns; /* when to show itself again */
	uint64_t beat; /* header of the heartbeat that was sent last */
	nfc_le32 *park;
	struct nfc_far_rings mailbox[NFC_FAR_MAILBOXES];
	struct nfc_far_asker asker; /* at the device */
	/* At the host. */
	uint32_t granted; /* halves that have pages the device may touch */
	struct nfc_far_served served;
};

/* Bytes of an area of that shape. */
uint64_t nfc_far_area_size(const struct nfc_far_config *c);
void nfc_far_init(struct nfc_far *f, struct nfc_node *node,
		  const struct nfc_far_config *config);
/* Handle a received packet of such a kind from the peer. */
void nfc_far_deliver(struct nfc_far *f, const struct nfc_packet *p,
		     const struct nfc_fifo *fifo, uint32_t at);
/* Send all that is due; returns when to run again even if no packet arrives. */
uint64_t nfc_far_step(struct nfc_far *f);
/* Has the device all slots that the host put? Or will it never have them? */
bool nfc_far_sent_all(const struct nfc_far *f);
/* The host takes leave: once, without an answer. */
void nfc_far_leave(struct nfc_far *f);
/*
 * The host's doorbells are words of islands that never are awake: has it found any of them
 * asleep since it was asked last?
 */
bool nfc_far_rung(struct nfc_area *area, uint32_t islands);

/* ---- far_pages.c: at the host, the pages that the device may touch ---- */

/* Bytes of memory for what is noted of them. */
uint64_t nfc_far_pages_size(const struct nfc_far_config *c);
/* The host put a slot, which is sent for the first time. */
void nfc_far_sent(struct nfc_far *f, const struct nfc_slot *s);
/* Note a received slot for the host, before the host sees it. */
void nfc_far_received(struct nfc_far *f, const struct nfc_slot *s);
/* May the device touch that memory? */
bool nfc_far_granted(struct nfc_far *f, bool write, uint64_t bus, uint64_t size);

/* ---- far_rings.c: packets, and rings that they keep alike ---- */

/*
 * Send what is due: new slots if `poll` is set, slots that did not arrive, and
 * the progress of the other ring. False: there was no room for all of it.
 */
bool nfc_far_rings_serve(struct nfc_far_line *l, struct nfc_far_rings *m,
			 bool poll);
/*
 * Store a received packet of slots, in slot as well. Returns how many of them
 * were new.
 */
uint32_t nfc_far_rings_received(struct nfc_far_line *l, struct nfc_far_rings *m,
				const struct nfc_packet *p,
				const struct nfc_far_head *h,
				const struct nfc_fifo *fifo, uint32_t at,
				struct nfc_slot slot[NFC_FAR_SLOTS]);
/* Has every slot of the ring been sent and acked? */
bool nfc_far_rings_idle(const struct nfc_far_rings *m);
/* Write a received slot as its producer wrote it. */
void nfc_far_place(struct nfc_slot *to, const struct nfc_slot *from);

/* ---- far_watch.c ---- */

/*
 * Is the other side lost? First check of a step; way: for want of a route, as
 * well.
 */
bool nfc_far_lost(struct nfc_far_line *l, struct nfc_far_watch *w, bool way);
/* At the host: the device is lost; mark that in the area and ring the host. */
void nfc_far_lose(struct nfc_far *f, enum nfc_device_state state);

/* ---- far_dma.c ---- */

/* A piece: NFC_PENDING until it has ended, then how. */
int nfc_far_piece(struct nfc_far_asker *a, bool write, void *memory,
		  uint64_t bus, uint64_t size);
/* Send requests that are due, and repeat those that had no answer. */
void nfc_far_requests(struct nfc_far_line *l, struct nfc_far_asker *a);
/* Handle a received DATA. */
void nfc_far_data_received(struct nfc_far_asker *a, const struct nfc_packet *p,
			   const struct nfc_far_head *h,
			   const struct nfc_fifo *fifo, uint32_t at);
/*
 * The place of a request; again: it was received before. NULL: it is older than
 * the one in its place.
 */
struct nfc_far_asked *nfc_far_place_of(struct nfc_far_served *s,
				       uint32_t number, bool *again);

/*
 * A piece of DMA at the device: dma_read or dma_write of struct nfc_port, with
 * the same results. The caller holds the node.
 */
int nfc_far_dma(struct nfc_far *f, bool write, void *memory, uint64_t bus,
		uint64_t size);
/* Send the answers that are due. */
void nfc_far_answer(struct nfc_far *f);
void nfc_far_dma_received(struct nfc_far *f, const struct nfc_packet *p,
			  const struct nfc_far_head *h,
			  const struct nfc_fifo *fifo, uint32_t at);

/* A packet as it is made up. */
struct nfc_far_packet {
	struct nfc_far_head head;
	union {
		uint8_t bytes[NFC_FAR_BYTES];
		struct nfc_slot slot[NFC_FAR_SLOTS];
		struct nfc_far_asked asked[NFC_FAR_REQUESTS];
	};
};

/* The value that another thread stored last. */
static inline uint64_t nfc_far_load(const uint64_t *word)
{
	/* SYNC: room, heartbeat */
	return atomic_load_explicit((const _Atomic uint64_t *)word,
				    memory_order_acquire);
}

/* Send it with that many bytes behind its head; false: not now. */
bool nfc_far_send(struct nfc_far_line *l, uint8_t kind,
		  struct nfc_far_packet *p, uint32_t bytes);
/* Run the next step no later than that. */
static inline void nfc_far_due(struct nfc_far_line *l, uint64_t at)
{
	if (at < l->due)
		l->due = at;
}

#endif /* NFC_FAR_H */
