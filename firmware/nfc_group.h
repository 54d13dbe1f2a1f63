/* SPDX-License-Identifier: MIT */
/*
 * A device process as a member of a group: it exchanges data every step with
 * members that may be goroutines, processes of hosts or other device processes.
 * A host lends the member its place: pkg/group/process.Serve makes the calls that
 * the process asks for on a channel. This needs no library.
 *
 *	struct nfc_group g;
 *	int rc = nfc_group_join(&g, self, nfc_channel_of(self, 0));
 *
 *	while (!rc) {
 *		const void *data;
 *		uint32_t from, n;
 *
 *		rc = nfc_group_put(&g, (g.rank + 1) % g.size, &state, sizeof(state));
 *		if (!rc)
 *			rc = nfc_group_exchange(&g);
 *		while (!rc && (data = nfc_group_next(&g, &from, &n)))
 *			...
 *	}
 *
 * Calls return 0, a negated enum nfc_status of the channel or of memory, or the
 * negated reason why the group's call failed. After a reason the group answers
 * again, to nfc_group_shrink and nfc_group_leave at least; after a status it does
 * not. Packages of a result are valid until the next call but nfc_group_next.
 */
#ifndef NFC_GROUP_H
#define NFC_GROUP_H

#include "nfc_fw.h"

/* Why a call of the group failed; nfc_group_next then lists the ranks it is about. */
enum nfc_group_reason {
	NFC_GROUP_LATE = 1000, /* the step did not end in time */
	NFC_GROUP_GONE, /* members have ended, or left */
	NFC_GROUP_REVOKED, /* members gave the step up */
	NFC_GROUP_DISAGREE, /* members do something else in this step */
	NFC_GROUP_BROKEN, /* a step failed before: shrink */
	NFC_GROUP_RANK, /* outside of the group, the own one, no target, or named twice */
	NFC_GROUP_EVENT_SIZE, /* no whole number of events */
	NFC_GROUP_TOO_LARGE, /* the transport cannot carry it */
	NFC_GROUP_FAILED, /* any other reason; the host knows it */
};

enum nfc_group_limits {
	NFC_GROUP_VERSION = 1, /* of the blocks below */
	NFC_GROUP_BYTES = 64 << 20, /* of a call, at most */
};

/* The calls of a process. */
enum nfc_group_call {
	NFC_GROUP_JOIN = 1,
	NFC_GROUP_EXCHANGE,
	NFC_GROUP_BARRIER,
	NFC_GROUP_ALLGATHER,
	NFC_GROUP_FLUSH,
	NFC_GROUP_SHRINK,
	NFC_GROUP_LEAVE,
};

/*
 * The start of a block. A call, and its answer, are a block each: a message if it
 * has at most NFC_PAYLOAD_SIZE bytes, else a transfer.
 */
struct nfc_group_head {
	uint32_t what; /* a call; in an answer 0 or a reason */
	uint32_t packages; /* that follow */
	uint32_t rank; /* of the member; of the call that joins: the version */
	uint32_t size; /* of the group; 0: all have flushed */
};

/* The start of a package. Its bytes follow, up to a multiple of 8. */
struct nfc_group_package {
	uint32_t rank;
	uint32_t size; /* bytes */
};

/* Device memory with a block. */
struct nfc_group_block {
	uint64_t address, room, used;
	uint8_t *at;
};

/* A member; rank and size are for the program to read. */
struct nfc_group {
	uint32_t rank, size;
	struct nfc_process *self;
	struct nfc_channel *ch;
	struct nfc_group_block out, in;
	uint64_t next; /* in the result */
	uint32_t left; /* packages that next has not returned */
};

/* Make room for so many bytes; those in use stay. */
static inline int nfc_group_fit(struct nfc_group *g, struct nfc_group_block *b,
				uint64_t size)
{
	uint64_t room = b->room ? b->room : NFC_PAGE_SIZE;
	uint64_t address;

	if (size <= b->room)
		return 0;
	while (room < size)
		room *= 2;
	address = nfc_alloc(g->self, NFC_EMEM, room);
	if (!address)
		return -NFC_ENOMEM;
	if (b->used)
		__builtin_memcpy(nfc_at(g->self, address, room), b->at, b->used);
	if (b->address)
		nfc_free(g->self, b->address);
	b->address = address;
	b->room = room;
	b->at = (uint8_t *)nfc_at(g->self, address, room);
	return 0;
}

/*
 * Add a package for a member to the next exchange.
 * -NFC_ETOOLARGE: the call would have more than NFC_GROUP_BYTES.
 */
static inline int nfc_group_put(struct nfc_group *g, uint32_t rank,
				const void *data, uint32_t n)
{
	struct nfc_group_package p = { rank, n };
	uint64_t size = sizeof(p) + (((uint64_t)n + 7) & ~7ull);
	struct nfc_group_block *b = &g->out;
	int rc;

	if (b->used + size > NFC_GROUP_BYTES)
		return -NFC_ETOOLARGE;
	rc = nfc_group_fit(g, b, b->used + size);
	if (rc)
		return rc;
	__builtin_memcpy(b->at + b->used, &p, sizeof(p));
	if (n)
		__builtin_memcpy(b->at + b->used + sizeof(p), data, n);
	b->used += size;
	((struct nfc_group_head *)b->at)->packages++;
	return 0;
}

/* Drop the packages that were put, and begin a block anew. */
static inline void nfc_group_drop(struct nfc_group *g)
{
	struct nfc_group_head head = { 0, 0, g->rank, g->size };

	__builtin_memcpy(g->out.at, &head, sizeof(head));
	g->out.used = sizeof(head);
}

/* Take the answer, whose size nobody knows before. */
static inline int nfc_group_answer(struct nfc_group *g)
{
	struct nfc_group_block *b = &g->in;
	struct nfc_offer offer;
	int rc;

	b->used = 0;
	rc = channel_take(g->ch, b->at, NFC_PAYLOAD_SIZE, b->address, b->room,
			  &offer);
	if (rc == -NFC_ETOOLARGE && offer.indirect) {
		rc = nfc_group_fit(g, b, offer.size);
		if (rc) { /* refuse it: the host ends this member */
			channel_read_ind(g->ch, UINT64_MAX, offer.size);
			return rc;
		}
		rc = channel_read_ind(g->ch, b->address, offer.size);
	}
	if (rc < 0)
		return rc;
	b->used = offer.indirect ? offer.size : (uint64_t)rc;
	return b->used < sizeof(struct nfc_group_head) ? -NFC_EPROTO : 0;
}

/* Make a call with the packages that were put. */
static inline int nfc_group_ask(struct nfc_group *g, enum nfc_group_call what)
{
	struct nfc_group_head *head = (struct nfc_group_head *)g->out.at;
	int rc;

	g->left = 0;
	head->what = what;
	if (g->out.used <= NFC_PAYLOAD_SIZE)
		rc = channel_write(g->ch, g->out.at, (size_t)g->out.used);
	else
		rc = channel_write_ind(g->ch, g->out.address, g->out.used);
	nfc_group_drop(g);
	if (!rc && what != NFC_GROUP_LEAVE)
		rc = nfc_group_answer(g);
	if (rc || what == NFC_GROUP_LEAVE)
		return rc;
	head = (struct nfc_group_head *)g->in.at;
	g->rank = head->rank;
	if (head->size)
		g->size = head->size;
	g->left = head->packages;
	g->next = sizeof(*head);
	return -(int)head->what;
}

/*
 * Become the member that the host serves on a channel. g->rank and g->size are
 * those of the group then. Call it once, before all others.
 */
static inline int nfc_group_join(struct nfc_group *g, struct nfc_process *self,
				 struct nfc_channel *ch)
{
	int rc;

	__builtin_memset(g, 0, sizeof(*g));
	g->self = self;
	g->ch = ch;
	rc = nfc_group_fit(g, &g->out, NFC_PAGE_SIZE);
	if (!rc)
		rc = nfc_group_fit(g, &g->in, NFC_PAGE_SIZE);
	if (rc)
		return rc;
	g->rank = NFC_GROUP_VERSION;
	nfc_group_drop(g);
	return nfc_group_ask(g, NFC_GROUP_JOIN);
}

/* Give the packages that were put to their members, and get those for this one. */
static inline int nfc_group_exchange(struct nfc_group *g)
{
	return nfc_group_ask(g, NFC_GROUP_EXCHANGE);
}

/* The next package of a result, NULL after the last one. An empty one is none. */
static inline const void *nfc_group_next(struct nfc_group *g, uint32_t *rank,
					 uint32_t *n)
{
	struct nfc_group_package p;
	const void *data;

	if (!g->left || g->next + sizeof(p) > g->in.used)
		return NULL;
	__builtin_memcpy(&p, g->in.at + g->next, sizeof(p));
	if (p.size > g->in.used - g->next - sizeof(p))
		return NULL;
	data = g->in.at + g->next + sizeof(p);
	g->next += sizeof(p) + (((uint64_t)p.size + 7) & ~7ull);
	g->left--;
	*rank = p.rank;
	*n = p.size;
	return data;
}

/* Return once every member has called it. */
static inline int nfc_group_barrier(struct nfc_group *g)
{
	nfc_group_drop(g);
	return nfc_group_ask(g, NFC_GROUP_BARRIER);
}

/* Give n bytes to all members; the result has those of each, by rank. */
static inline int nfc_group_allgather(struct nfc_group *g, const void *data,
				      uint32_t n)
{
	int rc;

	nfc_group_drop(g);
	rc = nfc_group_put(g, g->rank, data, n);
	return rc ? rc : nfc_group_ask(g, NFC_GROUP_ALLGATHER);
}

/*
 * The process has no more data: get the packages of one more step. 1: they are
 * the result, call it again; 0: all members have flushed.
 */
static inline int nfc_group_flush(struct nfc_group *g)
{
	int rc;

	nfc_group_drop(g);
	rc = nfc_group_ask(g, NFC_GROUP_FLUSH);
	return rc ? rc : ((struct nfc_group_head *)g->in.at)->size != 0;
}

/*
 * Continue after a reason, without the members that are gone. The result has, by
 * new rank, the steps that each has finished, in 8 bytes.
 */
static inline int nfc_group_shrink(struct nfc_group *g)
{
	nfc_group_drop(g);
	return nfc_group_ask(g, NFC_GROUP_SHRINK);
}

/* Leave the group. */
static inline int nfc_group_leave(struct nfc_group *g)
{
	nfc_group_drop(g);
	return nfc_group_ask(g, NFC_GROUP_LEAVE);
}

#endif /* NFC_GROUP_H */
