// SPDX-License-Identifier: MIT
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/udmabuf.h>
#include <pthread.h>
#include <stdlib.h>
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

/* Memory that was registered, and its handle; the newest first. */
struct noted {
	struct noted *next;
	int fd;
	unsigned int generation;
	uint64_t at, length;
	uint32_t region;
};

static struct noted *all_noted;
static pthread_mutex_t noting = PTHREAD_MUTEX_INITIALIZER;

static void note_region(int fd, const void *at, const struct nfcomms_register *r)
{
	struct noted *n = malloc(sizeof(*n));

	if (!CHECK(n))
		return;
	*n = (struct noted){ .fd = fd,
			     .generation = generation(fd),
			     .at = (uintptr_t)at,
			     .length = r->length,
			     .region = r->region };
	pthread_mutex_lock(&noting);
	n->next = all_noted;
	all_noted = n;
	pthread_mutex_unlock(&noting);
}

static bool is_of(const struct noted *n, int fd)
{
	return n->fd == fd && n->generation == generation(fd);
}

/* Take out what begins there: its handle, 0 if there is none. */
static uint32_t forget_region(int fd, const void *at)
{
	uint32_t region = 0;
	struct noted *n;

	pthread_mutex_lock(&noting);
	for (struct noted **link = &all_noted; (n = *link);) {
		if (!is_of(n, fd) || n->at != (uintptr_t)at) {
			link = &n->next;
			continue;
		}
		region = n->region;
		*link = n->next;
		free(n);
		break;
	}
	pthread_mutex_unlock(&noting);
	return region;
}

int registers_with(int fd, const void *at, uint64_t length, uint32_t flags)
{
	struct nfcomms_register r = region_at(at, length);
	int error;

	r.flags = flags;
	error = control(fd, NFCOMMS_IOC_REGISTER, &r);
	if (!error)
		note_region(fd, at, &r);
	return error;
}

int registers(int fd, const void *at, uint64_t length)
{
	return registers_with(fd, at, length, 0);
}

int unregister(int fd, const void *at)
{
	struct nfcomms_register r = region_at(at, 1);
	struct nfcomms_unregister u = { .size = sizeof(u) };
	const struct noted *n;
	int error;

	pthread_mutex_lock(&noting);
	for (n = all_noted; n && !(is_of(n, fd) && n->at == r.address);)
		n = n->next;
	u.region = n ? n->region : 0;
	pthread_mutex_unlock(&noting);
	error = control(fd, NFCOMMS_IOC_UNREGISTER, &u);
	if (!error || error == ENOENT)
		forget_region(fd, at);
	return error;
}

void by_handle(int fd, struct nfcomms_op *op)
{
	pthread_mutex_lock(&noting);
	for (const struct noted *n = all_noted; n; n = n->next)
		if (is_of(n, fd) && op->address >= n->at &&
		    op->address + op->length <= n->at + n->length) {
			op->region = n->region;
			op->offset = op->address - n->at;
			op->address = 0;
			break;
		}
	pthread_mutex_unlock(&noting);
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

	by_handle(fd, &op);
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
	struct nfcomms_register r = with_fd(NULL, NFCOMMS_REGION_DMA_BUF | flags,
					    buffer, offset);
	int error;

	r.length = size;
	error = control(fd, NFCOMMS_IOC_REGISTER, &r);
	if (!error)
		note_region(fd, name, &r);
	return error;
}

void there_and_back(int fd, uint32_t loop, uint8_t *from, uint8_t *to,
		    uint64_t n, uint64_t seed)
{
	for (uint64_t i = 0; i < n; i++)
		from[i] = pattern(seed, i);
	CHECK_EQ(send_at(fd, loop, from, n).status, NFC_OK);
	CHECK_EQ(receive_at(fd, loop, to, n).status, NFC_OK);
	for (uint64_t i = 0; i < n; i++)
		if (to[i] != pattern(seed, i)) {
			CHECK(!"the bytes that were sent");
			return;
		}
}

uint32_t offer_at(int fd, uint8_t *p, uint64_t n)
{
	uint32_t ch = program(fd, "hold");
	struct nfcomms_op op = transfer(NFCOMMS_OP_SEND_IND, ch, p, n);

	by_handle(fd, &op);
	CHECK_EQ(submit(fd, &op, 1), 1);
	return ch;
}
