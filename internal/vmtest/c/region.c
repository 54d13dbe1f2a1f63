// SPDX-License-Identifier: MIT
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
