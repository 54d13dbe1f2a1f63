/* SPDX-License-Identifier: MIT */
/*
 * An io_uring by bare system calls, of SQEs of 128 bytes and CQEs of 32, for the
 * commands of the device node. It counts the system calls that it takes.
 */
#ifndef URING_H
#define URING_H

#include <linux/io_uring.h>
#include <stdbool.h>
#include <stdint.h>

#include "rig.h"

struct uring {
	int fd;
	uint32_t entries, mask, cq_mask, queued;
	uint32_t *sq_tail, *sq_array, *cq_head, *cq_tail;
	uint8_t *sqes, *cqes; /* of 128 and of 32 bytes, or of 64 and 16 */
	void *rings;
	size_t rings_size, sqes_size;
	uint32_t flags;
	uint64_t calls; /* of the kernel */
};

/* The completion of a command. */
struct answer {
	uint64_t user_data;
	int32_t res;
	uint64_t value; /* big_cqe[0]; 0 where CQEs have 16 bytes */
};

/* Does the module have the feature? */
bool has_uring(int fd);
/* Make a ring; flags beside those of the sizes. A check fails if that does not work. */
struct uring ring(uint32_t entries, uint32_t flags);
/* The same, with these flags alone. */
struct uring plain_ring(uint32_t entries, uint32_t flags);
void ring_close(struct uring *u);

/* The next SQE, zero; it goes with the next ring_enter(). */
struct io_uring_sqe *sqe_next(struct uring *u);
/* A command with a structure of so many bytes. */
struct io_uring_sqe *sqe_command(struct uring *u, int fd, uint32_t number,
				 const void *data, uint32_t size);
/* An operation; out may be NULL. It must stay until it was entered. */
struct io_uring_sqe *sqe_call(struct uring *u, int fd,
			      const struct nfcomms_op *op,
			      struct nfcomms_completion *out);
/* Hand over what is queued, and wait for so many CQEs in all: what the call returns. */
int ring_enter(struct uring *u, uint32_t wait);
/* Hand over what is queued to a ring whose kernel thread submits, which may sleep. */
bool ring_wake(struct uring *u);
/* Take a CQE if one is there. */
bool ring_take(struct uring *u, struct answer *out);
/* Hand over what is queued, and wait for a CQE; false if none comes in time. */
bool ring_reap(struct uring *u, struct answer *out);
/* One operation: its CQE's res; *value may be NULL. */
int32_t ring_call(struct uring *u, int fd, const struct nfcomms_op *op,
		  struct nfcomms_completion *out, uint64_t *value);
/* Register one buffer: 0 or errno. */
int ring_buffer(struct uring *u, void *at, size_t size);

#endif
