/* SPDX-License-Identifier: MIT */
/*
 * Put and get: memory of any node that others write and read, by a key, without
 * anybody there taking part. Owned by the island of its node; no allocation. See
 * docs/design/0045-put-and-get.md.
 */
#ifndef NFC_RMA_H
#define NFC_RMA_H

#include "node.h"

/* Kinds of packets. */
enum nfc_rma_kind {
	NFC_RMA_PUT = 32, /* bytes for a window */
	NFC_RMA_GET = 33, /* asks for bytes of one */
	NFC_RMA_DONE = 34, /* a put was done, or the bytes of a get; or why not */
};

enum nfc_rma_limits {
	NFC_RMA_HEAD = 32, /* bytes of struct nfc_rma_head */
	NFC_RMA_PIECE = NFC_PACKET_SIZE - NFC_RMA_HEAD,
	NFC_RMA_PAGE = 4096,
	NFC_RMA_LEAF = 64, /* pages of one page table */
	NFC_RMA_LEAVES = 256, /* page tables of a window */
	NFC_RMA_WINDOW_MAX = NFC_RMA_PAGE * NFC_RMA_LEAF * NFC_RMA_LEAVES,
	NFC_RMA_WINDOWS = 256, /* of a node */
	NFC_RMA_POOL = 1024, /* page tables of a node: 256 MiB */
	NFC_RMA_CACHE = 64, /* pages whose place is cached */
	NFC_RMA_PIECES = 64, /* requests of a node under way */
	NFC_RMA_PEER_PIECES = 32, /* of those, to one node */
	NFC_RMA_NUMBERS = 64, /* request numbers that a target remembers */
	NFC_RMA_ANSWERS = 256, /* answers that wait for room */
};

/* The accesses that a window permits to others. */
enum nfc_rma_access {
	NFC_RMA_READ = 1,
	NFC_RMA_WRITE = 2,
};

/* ---- rma_table.c: windows, and where their pages are ---- */

/* How a page is found: one way is used, the others are there to be compared. */
enum nfc_rma_lookup {
	NFC_RMA_CACHED = 0, /* by the cache, else hashed */
	NFC_RMA_HASHED = 1, /* the window by a hash of its key, the page by its table */
	NFC_RMA_LINEAR = 2, /* the window by a search, the page by its table */
	NFC_RMA_LOOKUPS = 3,
};

struct nfc_rma_window {
	uint64_t key; /* 0: none */
	uint64_t size; /* bytes */
	uint32_t access;
	uint16_t next; /* in its bucket, or of those that are free; from 1 on */
	uint16_t leaf[NFC_RMA_LEAVES]; /* page tables, from 1 on */
};

/* A page whose place is known: an entry of a TLB. */
struct nfc_rma_entry {
	uint64_t key, page; /* key 0: none */
	uint64_t size; /* of the window */
	uint32_t access;
	uint8_t *at;
};

struct nfc_rma_table {
	uint32_t lookup; /* enum nfc_rma_lookup */
	struct nfc_rma_entry cache[NFC_RMA_CACHE];
	uint16_t bucket[NFC_RMA_WINDOWS];
	uint16_t free_window, free_leaf; /* that were used before, from 1 on */
	uint16_t windows, leaves; /* those from there on never were */
	struct nfc_rma_window window[NFC_RMA_WINDOWS];
	uint16_t next_leaf[NFC_RMA_POOL];
	uint8_t *leaf[NFC_RMA_POOL][NFC_RMA_LEAF];
	uint32_t in_use; /* windows that there are … */
	uint64_t bytes; /* … and of how much memory */
	uint64_t hits, misses;
};

/*
 * Make a window in a table, which begins as zeros, of so many bytes, without pages yet. The key is not 0 and is not
 * used: -NFC_EINVAL. -NFC_ENOMEM: there are as many windows or pages as there may
 * be. -NFC_ETOOLARGE.
 */
int nfc_rma_add(struct nfc_rma_table *t, uint64_t key, uint64_t size,
		uint32_t access);
/* Set the place of a page of a window. */
void nfc_rma_map(struct nfc_rma_table *t, uint64_t key, uint64_t page,
		 uint8_t *at);
/* False: there is no such window. Nothing of it is found any more. */
bool nfc_rma_remove(struct nfc_rma_table *t, uint64_t key);
/*
 * Where a byte of a window is, and how many are contiguous there, n at most.
 * NULL and
 * why: -NFC_ECLOSED (no such window), -NFC_ENOTSUP (no such access), -NFC_ERANGE (not
 * all of the n bytes are in the window).
 */
uint8_t *nfc_rma_find(struct nfc_rma_table *t, uint64_t key, uint64_t offset,
		      uint32_t access, uint32_t *n, int *why);

/* ---- rma.c: requests and answers ---- */

/* The beginning of a packet. */
struct nfc_rma_head {
	uint64_t key, offset;
	uint64_t epoch; /* of the node that asks */
	uint32_t size; /* bytes put, asked for, or that follow */
	uint32_t more; /* request: its oldest number under way; answer: status */
};

/* A put or a get of any size. It stays where it is until ended(), and is not used after. */
struct nfc_rma_op {
	uint32_t to; /* index of a node */
	bool put;
	uint64_t key, offset, size;
	uint8_t *data;
	void (*ended)(struct nfc_rma_op *op);
	/* The rest is the node's. */
	int status; /* when it ended: 0, or -NFC_E... */
	bool over;
	uint64_t begun, finished; /* bytes */
	struct nfc_rma_op *next;
};

/* A piece of an operation that is under way. */
struct nfc_rma_piece {
	struct nfc_rma_op *op; /* NULL: none */
	uint64_t at; /* in the operation */
	uint32_t size, number, tries;
	uint64_t sent_ns, due_ns;
};

/* State about another node. */
struct nfc_rma_peer {
	/* Requests to it: numbers from floor on are under way where open has a bit. */
	uint32_t next, floor;
	uint64_t open;
	uint32_t pieces;
	/* Requests from it: puts from base on were done where done has a bit. */
	uint32_t base;
	uint64_t done, epoch;
};

/* An answer that waits for room. */
struct nfc_rma_answer {
	uint32_t to, number;
	uint16_t piece; /* of the requester */
	uint8_t kind; /* of the request */
	int status;
	struct nfc_rma_head head; /* of the request */
};

enum nfc_rma_count {
	NFC_RMA_OPS = 0, /* operations that ended well */
	NFC_RMA_FAILED = 1, /* or not */
	NFC_RMA_BYTES = 2, /* that were put or got here */
	NFC_RMA_REPEATED = 3, /* requests sent again */
	NFC_RMA_SERVED = 4, /* requests of others that were done */
	NFC_RMA_REFUSED = 5, /* or not */
	NFC_RMA_DOUBLES = 6, /* puts that were repeated, and not done again */
	NFC_RMA_STALE = 7, /* requests that ended long ago, or of an earlier epoch */
	NFC_RMA_MALFORMED = 8,
	NFC_RMA_CROWDED = 9, /* dropped: as many answers wait as can */
	NFC_RMA_BEGUN = 10, /* operations */
	NFC_RMA_COUNTS = 11,
};

struct nfc_rma {
	struct nfc_node *node;
	struct nfc_rma_table table;
	/*
	 * Copies from and to windows and operations: 0 or enum nfc_status. It may be memory of a
	 * process that takes it away.
	 */
	int (*copy)(void *to, const void *from, uint64_t size);
	struct nfc_rma_peer *peer; /* one for each node */
	uint64_t epoch, retry_ns, rtt_ns;
	uint64_t now,
		due; /* due: when a request is repeated, checked after a step */
	struct nfc_rma_op *first,
		*last; /* operations with pieces that have not begun */
	uint64_t used; /* a bit for each piece that is under way */
	struct nfc_rma_piece piece[NFC_RMA_PIECES];
	struct nfc_rma_answer answer[NFC_RMA_ANSWERS];
	uint32_t answer_first, answer_last; /* run freely */
	uint8_t packet[NFC_PACKET_SIZE];
	uint64_t count[NFC_RMA_COUNTS];
};

/*
 * Make the put and get of a node in zeroed memory; peers: zeroed, one for each node.
 * The epoch is above that of any time before. A request without an answer is
 * repeated after retry_ns, and then later and later. Bytes of windows and
 * operations are copied by
 * memcpy, unless copy is set then.
 */
void nfc_rma_init(struct nfc_rma *r, struct nfc_node *node,
		  struct nfc_rma_peer *peers, uint64_t epoch, uint64_t retry_ns);
/*
 * Begin an operation. It has ended when ended() was called, which may be at once.
 */
void nfc_rma_begin(struct nfc_rma *r, struct nfc_rma_op *op);
/* End an operation that has not ended. Its memory is not touched any more. */
void nfc_rma_cancel(struct nfc_rma *r, struct nfc_rma_op *op, int status);
/* End all of them. */
void nfc_rma_cancel_all(struct nfc_rma *r, int status);
/* Handle a received packet of enum nfc_rma_kind. */
void nfc_rma_deliver(struct nfc_rma *r, const struct nfc_packet *p,
		     const struct nfc_fifo *f, uint32_t at);
/* Send what can be sent, before a step of the node; again when it is due. */
void nfc_rma_step(struct nfc_rma *r, uint64_t now);
/* After a step of the node: is there something that can be sent now? */
bool nfc_rma_stirred(const struct nfc_rma *r);

#endif /* NFC_RMA_H */
