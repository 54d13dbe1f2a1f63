// SPDX-License-Identifier: MIT
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "../../../firmware/test/harness.h"
#include "fake.h"

enum {
	FAKE_FD = 77,
};

struct fake fake;

void fake_reset(void)
{
	memset(&fake, 0, sizeof(fake));
	fake.uapi = NFCOMMS_UAPI_MAJOR << 16;
	fake.accepts = ~0u;
}

static int answer(int error)
{
	if (!error)
		return 0;
	errno = error;
	return -1;
}

/* Is this call one that a signal interrupts? */
static bool interrupted(void)
{
	if (!fake.interrupts)
		return false;
	fake.interrupts--;
	return true;
}

static bool zero(const void *at, size_t size)
{
	const unsigned char *p = at;

	while (size && !*p) {
		p++;
		size--;
	}
	return !size;
}

void *fake_dlopen(const char *name, int flags)
{
	(void)flags;
	snprintf(fake.path, sizeof(fake.path), "%s", name);
	return NULL;
}

int fake_open(const char *path, int flags)
{
	snprintf(fake.path, sizeof(fake.path), "%s", path);
	fake.open_flags = flags;
	return fake.open_error ? answer(fake.open_error) : FAKE_FD;
}

int fake_close(int fd)
{
	CHECK_EQ(fd, FAKE_FD);
	fake.closes++;
	return 0;
}

static int info(struct nfcomms_info *i)
{
	CHECK_EQ(i->size, sizeof(*i));
	CHECK(zero(&i->uapi, sizeof(*i) - sizeof(i->size)));
	*i = fake.info;
	i->size = sizeof(*i);
	i->uapi = fake.uapi;
	return 0;
}

static int health(struct nfcomms_health *h)
{
	CHECK_EQ(h->size, sizeof(*h));
	CHECK(zero(&h->state, sizeof(*h) - sizeof(h->size)));
	*h = fake.health;
	return 0;
}

static int call(struct nfcomms_call *c)
{
	const struct nfcomms_op *op = (const void *)(uintptr_t)c->op;
	struct nfcomms_completion *out = (void *)(uintptr_t)c->completion;

	CHECK_EQ(c->size, sizeof(*c));
	CHECK_EQ(c->flags, 0);
	CHECK(zero(c->rsvd, sizeof(c->rsvd)));
	CHECK_EQ(c->op_size, sizeof(*op));
	CHECK_EQ(c->completion_size, sizeof(*out));
	CHECK_EQ(op->rsvd, 0);
	fake.op = *op;
	*out = fake.completion;
	out->opcode = op->opcode;
	return 0;
}

static int submit(struct nfcomms_submit *s)
{
	const struct nfcomms_op *ops = (const void *)(uintptr_t)s->ops;
	unsigned int i;

	fake.submits++;
	s->first_id = 1000 * fake.submits;
	CHECK_EQ(s->size, sizeof(*s));
	CHECK_EQ(s->op_size, sizeof(struct nfcomms_op));
	CHECK(s->count && s->count <= 256 && !s->accepted && !s->error &&
	      !s->rsvd);
	for (i = 0; i < s->count && fake.accepts; i++, fake.accepts--) {
		CHECK_EQ(ops[i].rsvd, 0);
		fake.taken[fake.taken_count++] = ops[i];
	}
	s->accepted = i;
	if (i == s->count)
		return 0;
	s->error = (__u32)fake.refusal;
	return i ? 0 : answer(fake.refusal);
}

int fake_ioctl(int fd, unsigned long number, void *argument)
{
	struct nfcomms_cancel *cancel = argument;
	struct nfcomms_reset *reset = argument;
	struct nfcomms_unregister *unregister = argument;
	int error = fake.fail;

	CHECK_EQ(fd, FAKE_FD);
	fake.ioctls++;
	if (interrupted())
		return answer(EINTR);
	if (number == NFCOMMS_IOC_INFO)
		return info(argument);
	fake.fail = 0;
	if (error)
		return answer(error);
	switch (number) {
	case NFCOMMS_IOC_HEALTH:
		return health(argument);
	case NFCOMMS_IOC_CALL:
		return call(argument);
	case NFCOMMS_IOC_SUBMIT:
		return submit(argument);
	case NFCOMMS_IOC_CANCEL:
		CHECK_EQ(cancel->size, sizeof(*cancel));
		CHECK(!cancel->flags && zero(cancel->rsvd, 16));
		fake.cancelled = cancel->id;
		return 0;
	case NFCOMMS_IOC_RESET:
		CHECK_EQ(reset->size, sizeof(*reset));
		CHECK(zero(&reset->flags, sizeof(*reset) - sizeof(__u32)));
		fake.resets++;
		return 0;
	case NFCOMMS_IOC_SETUP:
		fake.setup = *(struct nfcomms_setup *)argument;
		CHECK(zero(fake.setup.rsvd, sizeof(fake.setup.rsvd)));
		return 0;
	case NFCOMMS_IOC_REGISTER:
		fake.region = *(struct nfcomms_register *)argument;
		((struct nfcomms_register *)argument)->region = FAKE_REGION;
		return 0;
	case NFCOMMS_IOC_UNREGISTER:
		CHECK_EQ(unregister->size, sizeof(*unregister));
		CHECK(!unregister->flags && zero(unregister->rsvd, 16));
		CHECK(!unregister->rsvd0);
		fake.unregistered = unregister->region;
		return 0;
	default:
		return answer(ENOTTY);
	}
}

ssize_t fake_read(int fd, void *to, size_t size)
{
	size_t one = sizeof(fake.ready[0]), n = size / one;

	CHECK_EQ(fd, FAKE_FD);
	if (interrupted())
		return answer(EINTR);
	if (fake.fail)
		return answer(fake.fail);
	if (!fake.ready_count)
		return fake.gone ? 0 : answer(EAGAIN);
	if (n > fake.ready_count)
		n = fake.ready_count;
	memcpy(to, fake.ready, n * one);
	fake.ready_count -= (unsigned int)n;
	memmove(fake.ready, fake.ready + n, fake.ready_count * one);
	return (ssize_t)(n * one);
}
