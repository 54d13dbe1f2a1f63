/* SPDX-License-Identifier: MIT */
/*
 * The memory that the sides of a ring and its creator share: docs/ring.md in C.
 */
#ifndef RING_H
#define RING_H

#include <stdatomic.h>
#include <stdbool.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "library.h"

enum {
	RING_VERSION = 1,
	RING_MIN = 3, /* packets */
	RING_MAX = 1 << 30, /* packets, and bytes of one */
	RING_HEADS = 4096, /* bytes of header and heads */
	OFF_WRITER = 1024,
	OFF_READER = 2048,
	PACKET_HEADER = 16,
	POS_INIT = -42,
	WANT_MEMORY = 2,
};

#define RING_MAGIC 0x31474e495243464eull /* NFCRING1 */

enum ring_status {
	STATUS_INIT,
	STATUS_WAITING,
	STATUS_RUNNING,
	STATUS_CLOSED,
	STATUS_DIED,
};

enum ring_answer {
	ANSWER_OK,
	ANSWER_BUSY,
	ANSWER_WAIT,
	ANSWER_DENIED,
};

struct ring_header {
	uint64_t magic;
	uint32_t version;
	uint32_t rsvd;
	uint64_t packets;
	uint64_t packet_size;
	uint64_t data;
	_Atomic uint64_t generation; /* grows when both roles were given up */
};

struct ring_head {
	_Atomic int64_t pos; /* its owner writes */
	_Atomic uint32_t status; /* its owner, and the ring's creator */
	uint8_t rsvd0[116];
	_Atomic uint32_t parked; /* its owner sets, the other side clears */
	uint8_t rsvd1[124];
	_Atomic uint64_t done; /* its owner */
};

struct ring_packet {
	uint64_t number; /* counts from 1 */
	uint32_t length;
	uint32_t rsvd;
};

_Static_assert(offsetof(struct ring_head, parked) == 128, "docs/ring.md");
_Static_assert(offsetof(struct ring_head, done) == 256, "docs/ring.md");
_Static_assert(sizeof(struct ring_header) == 48, "docs/ring.md");
_Static_assert(sizeof(struct ring_packet) == PACKET_HEADER, "docs/ring.md");

/* The common form of requests and answers. */
struct ring_message {
	uint64_t magic;
	uint32_t version;
	uint32_t word;
};

/* Wake the side that sleeps on an event. */
LIBRARY_HIDDEN void ring_event(int fd);
LIBRARY_HIDDEN void ring_close_files(int *fd, int n);
/* The abstract address of a ring; -EINVAL if the name is none. */
LIBRARY_HIDDEN int ring_address(const char *name, struct sockaddr_un *address,
				socklen_t *size);
/* The process at the other end; -EACCES if it is of another user. */
LIBRARY_HIDDEN int ring_peer(int conn, struct ucred *peer);
/* Make the pages of memory present; what they hold stays. */
LIBRARY_HIDDEN int ring_populate(void *area, size_t bytes);

#endif
