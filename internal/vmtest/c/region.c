// SPDX-License-Identifier: MIT
#define _GNU_SOURCE
#include <fcntl.h>
#include <linux/udmabuf.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "region.h"

struct nfcomms_register region_at(const void *at, uint64_t length)
{
	return (struct nfcomms_register){
		.size = sizeof(struct nfcomms_register),
		.address = (uintptr_t)at,
		.length = length,
	};
}

struct nfcomms_register with_flags(const void *at, uint32_t flags)
{
	struct nfcomms_register r = region_at(at, 1);

	r.flags = flags;
	return r;
}

struct nfcomms_register with_fd(const void *at, uint32_t flags, int fd,
				uint64_t offset)
{
	struct nfcomms_register r = region_at(at, NFC_PAGE_SIZE);

	r.flags = flags;
	r.fd = fd;
	r.offset = offset;
	return r;
}

int registers(int fd, const void *at, uint64_t length)
{
	struct nfcomms_register r = region_at(at, length);

	return control(fd, NFCOMMS_IOC_REGISTER, &r);
}

int unregister(int fd, const void *at)
{
	struct nfcomms_unregister u = { .size = sizeof(u),
					.address = (uintptr_t)at };

	return control(fd, NFCOMMS_IOC_UNREGISTER, &u);
}

static struct nfcomms_health health_of(int fd)
{
	struct nfcomms_health h = { .size = sizeof(h) };

	CHECK_EQ(control(fd, NFCOMMS_IOC_HEALTH, &h), 0);
	return h;
}

uint64_t regions(int fd)
{
	return health_of(fd).regions;
}

uint64_t pins(int fd)
{
	return health_of(fd).pins;
}

static struct nfcomms_completion move(int fd, uint16_t opcode, uint32_t ch,
				      const void *at, uint64_t length)
{
	struct nfcomms_op op = transfer(opcode, ch, at, length);
	struct nfcomms_completion c = { .status = NFC_STATUS_COUNT };

	CHECK_EQ(call(fd, &op, &c), 0);
	return c;
}

struct nfcomms_completion send_at(int fd, uint32_t ch, const void *at,
				  uint64_t length)
{
	return move(fd, NFCOMMS_OP_SEND_IND, ch, at, length);
}

struct nfcomms_completion receive_at(int fd, uint32_t ch, void *at,
				     uint64_t length)
{
	return move(fd, NFCOMMS_OP_RECEIVE_IND, ch, at, length);
}

struct buffer buffer_new(void)
{
	struct buffer b = {
		.memory = memfd_create("buffer", MFD_CLOEXEC | MFD_ALLOW_SEALING),
	};
	struct udmabuf_create create = { .size = BUFFER_SIZE };
	int maker = open("/dev/udmabuf", O_RDWR | O_CLOEXEC);

	CHECK(maker >= 0 && b.memory >= 0);
	CHECK_EQ(ftruncate(b.memory, BUFFER_SIZE), 0);
	CHECK_EQ(fcntl(b.memory, F_ADD_SEALS, F_SEAL_SHRINK), 0);
	create.memfd = (uint32_t)b.memory;
	b.fd = ioctl(maker, UDMABUF_CREATE, &create);
	CHECK(b.fd >= 0);
	close(maker);
	b.p = mmap(NULL, BUFFER_SIZE, PROT_READ | PROT_WRITE, MAP_SHARED,
		   b.memory, 0);
	CHECK(b.p != MAP_FAILED);
	memset(b.p, 1, BUFFER_SIZE);
	return b;
}

void buffer_free(struct buffer *b)
{
	close(b->fd);
	close(b->memory);
	munmap(b->p, BUFFER_SIZE);
}

uint8_t *name_for(uint64_t size)
{
	uint8_t *p = mmap(NULL, size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS,
			  -1, 0);

	CHECK(p != MAP_FAILED);
	return p;
}

int import(int fd, const uint8_t *name, uint64_t size, int buffer,
	   uint64_t offset, uint32_t flags)
{
	struct nfcomms_register r = with_fd(name, NFCOMMS_REGION_DMA_BUF | flags,
					    buffer, offset);

	r.length = size;
	return control(fd, NFCOMMS_IOC_REGISTER, &r);
}
