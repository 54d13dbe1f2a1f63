// SPDX-License-Identifier: MIT
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include "uring.h"

enum {
	COMMAND_AT = 48, /* in an SQE */
};

bool has_uring(int fd)
{
	struct nfcomms_info info = { .size = sizeof(info) };

	CHECK_EQ(control(fd, NFCOMMS_IOC_INFO, &info), 0);
	return info.features & NFCOMMS_FEATURE_URING;
}

static size_t sqe_size(const struct uring *u)
{
	return u->flags & IORING_SETUP_SQE128 ? 128 : 64;
}

static size_t cqe_size(const struct uring *u)
{
	return u->flags & IORING_SETUP_CQE32 ? 32 : 16;
}

static void *map(int fd, size_t size, off_t what)
{
	void *p = mmap(NULL, size, PROT_READ | PROT_WRITE,
		       MAP_SHARED | MAP_POPULATE, fd, what);

	CHECK(p != MAP_FAILED);
	return p;
}

struct uring plain_ring(uint32_t entries, uint32_t flags)
{
	struct io_uring_params p = { .flags = flags };
	struct uring u = { .flags = flags };
	uint8_t *at;

	u.fd = (int)syscall(SYS_io_uring_setup, entries, &p);
	if (!CHECK(u.fd >= 0)) {
		printf("io_uring_setup: %s\n", strerror(errno));
		return u;
	}
	u.entries = p.sq_entries;
	u.rings_size = p.cq_off.cqes + p.cq_entries * cqe_size(&u);
	if (u.rings_size < p.sq_off.array + p.sq_entries * sizeof(uint32_t))
		u.rings_size = p.sq_off.array + p.sq_entries * sizeof(uint32_t);
	u.sqes_size = p.sq_entries * sqe_size(&u);
	u.rings = at = map(u.fd, u.rings_size, IORING_OFF_SQ_RING);
	u.sqes = map(u.fd, u.sqes_size, IORING_OFF_SQES);
	u.mask = *(uint32_t *)(at + p.sq_off.ring_mask);
	u.cq_mask = *(uint32_t *)(at + p.cq_off.ring_mask);
	u.sq_tail = (uint32_t *)(at + p.sq_off.tail);
	u.sq_array = (uint32_t *)(at + p.sq_off.array);
	u.cq_head = (uint32_t *)(at + p.cq_off.head);
	u.cq_tail = (uint32_t *)(at + p.cq_off.tail);
	u.cqes = at + p.cq_off.cqes;
	return u;
}

struct uring ring(uint32_t entries, uint32_t flags)
{
	return plain_ring(entries,
			  flags | IORING_SETUP_SQE128 | IORING_SETUP_CQE32);
}

void ring_close(struct uring *u)
{
	munmap(u->sqes, u->sqes_size);
	munmap(u->rings, u->rings_size);
	close(u->fd);
}

struct io_uring_sqe *sqe_next(struct uring *u)
{
	uint32_t at = *u->sq_tail + u->queued;
	struct io_uring_sqe *sqe = (struct io_uring_sqe *)(u->sqes +
							   (at & u->mask) *
								   sqe_size(u));

	u->sq_array[at & u->mask] = at & u->mask;
	u->queued++;
	memset(sqe, 0, sqe_size(u));
	return sqe;
}

struct io_uring_sqe *sqe_command(struct uring *u, int fd, uint32_t number,
				 const void *data, uint32_t size)
{
	struct io_uring_sqe *sqe = sqe_next(u);

	sqe->opcode = IORING_OP_URING_CMD;
	sqe->fd = fd;
	sqe->cmd_op = number;
	if (size > sqe_size(u) - COMMAND_AT)
		size = (uint32_t)(sqe_size(u) - COMMAND_AT);
	memcpy((uint8_t *)sqe + COMMAND_AT, data, size);
	return sqe;
}

struct io_uring_sqe *sqe_call(struct uring *u, int fd,
			      const struct nfcomms_op *op,
			      struct nfcomms_completion *out)
{
	struct nfcomms_call request = call_for(op, out);

	if (!out)
		request.completion_size = 0;
	return sqe_command(u, fd, NFCOMMS_IOC_CALL, &request, sizeof(request));
}

static int enter(struct uring *u, uint32_t wait, uint32_t flags)
{
	uint32_t n = u->queued;

	__atomic_store_n(u->sq_tail, *u->sq_tail + n, __ATOMIC_RELEASE);
	u->queued = 0;
	u->calls++;
	return (int)syscall(SYS_io_uring_enter, u->fd, n, wait, flags, NULL, 0);
}

int ring_enter(struct uring *u, uint32_t wait)
{
	return enter(u, wait, wait ? IORING_ENTER_GETEVENTS : 0);
}

bool ring_wake(struct uring *u)
{
	return CHECK(enter(u, 0, IORING_ENTER_SQ_WAKEUP) >= 0);
}

bool ring_take(struct uring *u, struct answer *out)
{
	uint32_t head = *u->cq_head;
	uint8_t *at = u->cqes + (head & u->cq_mask) * cqe_size(u);
	struct io_uring_cqe cqe;

	if (head == __atomic_load_n(u->cq_tail, __ATOMIC_ACQUIRE))
		return false;
	memcpy(&cqe, at, sizeof(cqe));
	*out = (struct answer){ .user_data = cqe.user_data, .res = cqe.res };
	if (cqe_size(u) == 32)
		memcpy(&out->value, at + sizeof(cqe), sizeof(out->value));
	__atomic_store_n(u->cq_head, head + 1, __ATOMIC_RELEASE);
	return true;
}

bool ring_reap(struct uring *u, struct answer *out)
{
	uint64_t until = now_ns() + PATIENCE_MS * 1000000ull;
	struct pollfd p = { .fd = u->fd, .events = POLLIN };

	if (u->queued)
		CHECK(ring_enter(u, 0) >= 0);
	while (!ring_take(u, out)) {
		if (now_ns() > until)
			return CHECK(!"a CQE came");
		poll(&p, 1, 1000);
	}
	return true;
}

int32_t ring_call(struct uring *u, int fd, const struct nfcomms_op *op,
		  struct nfcomms_completion *out, uint64_t *value)
{
	struct answer a = { .res = -ETIME };

	sqe_call(u, fd, op, out);
	ring_reap(u, &a);
	if (value)
		*value = a.value;
	return a.res;
}

int ring_buffer(struct uring *u, void *at, size_t size)
{
	struct iovec v = { .iov_base = at, .iov_len = size };

	return syscall(SYS_io_uring_register, u->fd, IORING_REGISTER_BUFFERS,
		       &v, 1) < 0 ?
		       errno :
		       0;
}
