// SPDX-License-Identifier: MIT
#define _GNU_SOURCE
#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <poll.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "lazy.h"
#include "rig.h"

struct lazy lazy_pages(size_t size, size_t there)
{
	struct uffdio_api api = { .api = UFFD_API };
	struct lazy l = { .size = size };
	struct uffdio_register all;

	l.p = mmap(NULL, size, PROT_READ | PROT_WRITE,
		   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	memset(l.p, 1, there);
	l.fd = (int)syscall(SYS_userfaultfd, O_CLOEXEC | O_NONBLOCK);
	all = (struct uffdio_register){
		.range = { (uintptr_t)l.p, size },
		.mode = UFFDIO_REGISTER_MODE_MISSING,
	};
	CHECK(l.fd >= 0 && !ioctl(l.fd, UFFDIO_API, &api) &&
	      !ioctl(l.fd, UFFDIO_REGISTER, &all));
	return l;
}

void await_fault(const struct lazy *l)
{
	struct pollfd p = { .fd = l->fd, .events = POLLIN };
	struct uffd_msg m;

	CHECK_EQ(poll(&p, 1, PATIENCE_MS), 1);
	CHECK_EQ(read(l->fd, &m, sizeof(m)), sizeof(m));
}

void let_come(struct lazy *l)
{
	close(l->fd); /* wakes who waits; from now on it is memory as any other */
	l->fd = -1;
}

void let_vanish(struct lazy *l)
{
	struct uffdio_range all = { (uintptr_t)l->p, l->size };

	mprotect(l->p, l->size, PROT_NONE);
	CHECK(!ioctl(l->fd, UFFDIO_WAKE, &all));
}

void free_lazy(struct lazy *l)
{
	munmap(l->p, l->size);
	if (l->fd >= 0)
		close(l->fd);
}

void stall_worker(int fd, uint32_t ch, const struct lazy *memory)
{
	static uint8_t byte;
	struct nfcomms_op ops[2] = {
		transfer(NFCOMMS_OP_SEND_IND, ch, &byte, 1),
		transfer(NFCOMMS_OP_SEND_IND, ch, memory->p, NFC_PAGE_SIZE),
	};
	struct nfcomms_completion c;

	CHECK_EQ(submit(fd, ops, 2), 2);
	CHECK_EQ(cancel(fd, taken_id()), 0);
	CHECK(reap(fd, &c));
	CHECK_EQ(c.status, NFC_EWITHDRAWN);
}
