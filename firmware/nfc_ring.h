/* SPDX-License-Identifier: MIT */
/*
 * A device process as one side of a ring of docs/ring.md: it writes packets, or
 * reads them, where they lie in the memory of its host. The other side is a
 * process of that machine. The host gives the side by pkg/nfcomms/rings, over a
 * channel, which carries the wake-ups. This needs no library.
 *
 *	struct nfc_ring r;
 *	int rc = nfc_ring_attach(&r, self, nfc_channel_of(self, 0));
 *
 *	while (!rc) {
 *		const void *packet;
 *		uint32_t n;
 *
 *		rc = nfc_ring_peek(&r, &packet, &n);
 *		if (!rc)
 *			use(packet, n), nfc_ring_release(&r);
 *	}
 *	nfc_ring_close(&r);
 *
 * Calls return 0 or a negated enum nfc_status, which is for good:
 * -NFC_ECLOSED: the other side closed; a reader has read all that it wrote.
 * -NFC_EABORTED: it ended without a close, or the host took the ring back.
 * -NFC_EPROTO: it wrote what cannot be; nothing that it writes is believed.
 * -NFC_ESTOPPED and others: those of the channel.
 */
#ifndef NFC_RING_H
#define NFC_RING_H

#include <stdatomic.h>

#include "nfc_fw.h"

enum nfc_ring_role {
	NFC_RING_WRITE,
	NFC_RING_READ,
};

enum nfc_ring_layout {
	NFC_RING_VERSION = 1,
	NFC_RING_WRITER = 1024, /* offsets of the heads */
	NFC_RING_READER = 2048,
	NFC_RING_HEADS = 4096, /* bytes before the packets, at least */
	NFC_RING_HEADER = 16, /* of a packet */
	NFC_RING_BEFORE = -42, /* position of a side that has not started */
	NFC_RING_LOOKS = 200, /* before a side sleeps */
};

enum nfc_ring_status {
	NFC_RING_INIT,
	NFC_RING_WAITING,
	NFC_RING_RUNNING,
	NFC_RING_CLOSED,
	NFC_RING_DIED,
};

/* The head of a side. */
struct nfc_ring_head {
	_Atomic int64_t pos; /* its side writes */
	_Atomic uint32_t status; /* its side, and the ring's creator */
	uint8_t rsvd0[116];
	_Atomic uint32_t parked; /* its side sets, the other one clears */
	uint8_t rsvd1[124];
	_Atomic uint64_t done; /* its side */
};

_Static_assert(sizeof(struct nfc_ring_head) == 264, "docs/ring.md");

/* The start of a packet. */
struct nfc_ring_packet {
	uint64_t number; /* counts from 1 */
	uint32_t length;
	uint32_t rsvd;
};

/* The host's first message: the ring that it gives a side of. */
struct nfc_ring_place {
	uint64_t address;
	uint64_t bytes;
	uint64_t packets;
	uint64_t size; /* of a packet */
	uint32_t role;
	uint32_t version;
};

/* Messages after that, in both directions. */
enum nfc_ring_word {
	NFC_RING_WAKE = 1, /* the receiver's side may sleep */
	NFC_RING_END, /* from the process: it has closed */
};

struct nfc_ring {
	struct nfc_process *self;
	struct nfc_channel *ch;
	struct nfc_ring_head *mine, *far;
	uint8_t *packets; /* the first one */
	uint64_t count, size;
	uint64_t pos; /* the packet under the head */
	int64_t seen; /* the other head, when it was last read */
	uint32_t role, length;
	uint32_t started, held;
	int error;
};

static inline struct nfc_ring_packet *nfc_ring_at(const struct nfc_ring *r)
{
	return (struct nfc_ring_packet *)(r->packets +
					  r->pos % r->count * r->size);
}

/* The bytes that a packet has room for. */
static inline uint64_t nfc_ring_room(const struct nfc_ring *r)
{
	return r->size - NFC_RING_HEADER;
}

/* Any later call returns the first error. */
static inline int nfc_ring_fail(struct nfc_ring *r, int error)
{
	if (!r->error)
		r->error = error;
	return r->error;
}

/* The error for the status of a call of the channel: its end is the ring's. */
static inline int nfc_ring_lost(int status)
{
	return status == -NFC_ECLOSED ? -NFC_EABORTED : status;
}

/* Wake the other side if it sleeps: the host writes its event. */
static inline int nfc_ring_wake(struct nfc_ring *r)
{
	uint32_t word = NFC_RING_WAKE;

	if (!atomic_load(&r->far->parked) ||
	    !atomic_exchange(&r->far->parked, 0))
		return 0;
	return nfc_ring_lost(channel_write(r->ch, &word, sizeof(word)));
}

/* Publish a position. */
static inline int nfc_ring_move(struct nfc_ring *r, uint64_t pos)
{
	int rc;

	r->pos = pos;
	/* SYNC: ring position */
	atomic_store_explicit(&r->mine->pos, (int64_t)pos, memory_order_release);
	atomic_thread_fence(memory_order_seq_cst); /* SYNC: ring park */
	rc = nfc_ring_wake(r);
	return rc ? nfc_ring_fail(r, rc) : 0;
}

/* Why the other side will do no more; 0 while it may. */
static inline int nfc_ring_far_end(const struct nfc_ring *r)
{
	uint32_t status = atomic_load(&r->far->status);

	if (status == NFC_RING_CLOSED)
		return -NFC_ECLOSED;
	return status == NFC_RING_DIED ? -NFC_EABORTED : 0;
}

/* Sleep until the host passes on a wake-up; an old one ends it too early. */
static inline int nfc_ring_park(struct nfc_ring *r,
				int (*ready)(struct nfc_ring *r))
{
	uint32_t word = 0;
	int rc;

	atomic_store(&r->mine->parked, 1);
	atomic_thread_fence(memory_order_seq_cst); /* SYNC: ring park */
	rc = ready(r);
	if (!rc && !nfc_ring_far_end(r)) {
		rc = nfc_ring_lost(channel_read(r->ch, &word, sizeof(word)));
	}
	atomic_store(&r->mine->parked, 0);
	return rc < 0 ? rc : 0;
}

/* Wait until ready() is 1. A negative value of it, or an end, is the error. */
static inline int nfc_ring_wait(struct nfc_ring *r,
				int (*ready)(struct nfc_ring *r))
{
	for (uint32_t look = 0; !r->error; look++) {
		int over = nfc_ring_far_end(r); /* before the look */
		int rc = ready(r);

		if (rc > 0)
			return 0;
		if (rc < 0 || over)
			return nfc_ring_fail(r, rc < 0 ? rc : over);
		if (nfc_stopped(r->self))
			return nfc_ring_fail(r, -NFC_ESTOPPED);
		if (look < NFC_RING_LOOKS) {
			nfc_yield(r->self);
			continue;
		}
		rc = nfc_ring_park(r, ready);
		if (rc)
			return nfc_ring_fail(r, rc);
	}
	return r->error;
}

/*
 * Take the side that the host gives on a channel. -NFC_ENOTSUP: this device does
 * not reach the memory. Call it once, before all others.
 */
static inline int nfc_ring_attach(struct nfc_ring *r, struct nfc_process *self,
				  struct nfc_channel *ch)
{
	struct nfc_ring_place p;
	uint8_t *at;
	int rc = channel_read(ch, &p, sizeof(p));

	__builtin_memset(r, 0, sizeof(*r));
	if (rc < 0)
		return nfc_ring_fail(r, rc);
	if (rc != sizeof(p) || p.version != NFC_RING_VERSION ||
	    p.role > NFC_RING_READ || p.packets < 3 || !p.size ||
	    p.bytes < NFC_RING_HEADS || p.size > p.bytes / p.packets ||
	    p.bytes - p.packets * p.size < NFC_RING_HEADS)
		return nfc_ring_fail(r, -NFC_EPROTO);
	at = (uint8_t *)nfc_host_at(self, p.address, p.bytes);
	if (!at)
		return nfc_ring_fail(r, -NFC_ENOTSUP);
	r->self = self;
	r->ch = ch;
	r->role = p.role;
	r->count = p.packets;
	r->size = p.size;
	r->packets = at + (p.bytes - p.packets * p.size);
	r->mine = (struct nfc_ring_head *)(at + (p.role ? NFC_RING_READER :
							  NFC_RING_WRITER));
	r->far = (struct nfc_ring_head *)(at + (p.role ? NFC_RING_WRITER :
							 NFC_RING_READER));
	if (p.role == NFC_RING_WRITE)
		return 0;
	atomic_store(&r->mine->pos, 0);
	atomic_store(&r->mine->status, NFC_RING_WAITING);
	rc = nfc_ring_wake(r);
	return rc ? nfc_ring_fail(r, rc) : 0;
}

/* Say that this side does no more. After an error of the side, too. */
static inline void nfc_ring_close(struct nfc_ring *r)
{
	uint32_t word = NFC_RING_END;

	if (!r->mine)
		return;
	atomic_store(&r->mine->status, NFC_RING_CLOSED);
	r->mine = NULL;
	nfc_ring_fail(r, -NFC_ECLOSED);
	channel_write(r->ch, &word, sizeof(word)); /* the host wakes the other */
}

/* ---- writing ---- */

static inline int nfc_ring_begun(struct nfc_ring *r)
{
	return atomic_load(&r->far->status) != NFC_RING_INIT;
}

/* May the writer's head move on? */
static inline int nfc_ring_has_room(struct nfc_ring *r)
{
	int64_t pos = (int64_t)r->pos, at;

	if (pos + 1 - r->seen < (int64_t)r->count)
		return 1;
	at = atomic_load(&r->far->pos); /* SYNC: ring position */
	if (at < r->seen || (at > 0 && at >= pos))
		return -NFC_EPROTO;
	r->seen = at;
	return pos + 1 - at < (int64_t)r->count;
}

/* The packet to fill, of nfc_ring_room() bytes; NULL after an error. */
static inline void *nfc_ring_reserve(struct nfc_ring *r)
{
	return r->error || r->role != NFC_RING_WRITE ? NULL : nfc_ring_at(r) + 1;
}

/* Publish it. -NFC_ETOOLARGE changes nothing. */
static inline int nfc_ring_commit(struct nfc_ring *r, uint32_t length)
{
	int rc;

	if (r->error || r->role != NFC_RING_WRITE)
		return r->error ? r->error : -NFC_EINVAL;
	if (length > nfc_ring_room(r))
		return -NFC_ETOOLARGE;
	if (!r->started) {
		rc = nfc_ring_wait(r, nfc_ring_begun);
		if (rc)
			return rc;
		atomic_store(&r->mine->pos, 0);
		atomic_store(&r->mine->status, NFC_RING_RUNNING);
		r->started = 1;
	}
	*nfc_ring_at(r) = (struct nfc_ring_packet){ r->pos + 1, length, 0 };
	rc = nfc_ring_wait(r, nfc_ring_has_room);
	return rc ? rc : nfc_ring_move(r, r->pos + 1);
}

/* ---- reading ---- */

/* Is the packet after the reader's head published? */
static inline int nfc_ring_has_more(struct nfc_ring *r)
{
	int64_t pos = (int64_t)r->pos, next = pos + (r->started ? 1 : 0), at;

	if (r->seen > next)
		return 1;
	at = atomic_load(&r->far->pos); /* SYNC: ring position */
	if (at == NFC_RING_BEFORE && !r->started)
		return 0;
	if (at < r->seen || at > pos + (int64_t)r->count - 1)
		return -NFC_EPROTO;
	r->seen = at;
	return at > next;
}

/* The next packet, where it lies, until it is released and another one is asked for. */
static inline int nfc_ring_peek(struct nfc_ring *r, const void **packet,
				uint32_t *length)
{
	struct nfc_ring_packet p;
	int rc;

	if (r->error || r->role != NFC_RING_READ)
		return r->error ? r->error : -NFC_EINVAL;
	if (!r->held) {
		rc = nfc_ring_wait(r, nfc_ring_has_more);
		if (!rc && r->started)
			rc = nfc_ring_move(
				r, r->pos + 1); /* the one before is free */
		if (rc)
			return rc;
		if (!r->started)
			atomic_store(&r->mine->status, NFC_RING_RUNNING);
		r->started = 1;
		p = *(volatile struct nfc_ring_packet *)nfc_ring_at(r);
		if (p.number != r->pos + 1 || p.length > nfc_ring_room(r))
			return nfc_ring_fail(r, -NFC_EPROTO);
		r->length = p.length;
		r->held = 1;
	}
	*packet = nfc_ring_at(r) + 1;
	*length = r->length;
	return 0;
}

static inline int nfc_ring_release(struct nfc_ring *r)
{
	int rc;

	if (!r->held || r->error)
		return r->error;
	r->held = 0;
	atomic_store(&r->mine->done, r->pos + 1);
	rc = nfc_ring_wake(r);
	return rc ? nfc_ring_fail(r, rc) : 0;
}

#endif /* NFC_RING_H */
