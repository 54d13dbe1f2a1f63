// SPDX-License-Identifier: MIT
/* Operations that are handed over, and the events they give. */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "library.h"

enum {
	BATCH = 32, /* operations or completions on the stack at once */
};

/* The opcode of each kind; kinds and opcodes are independent. */
static const uint16_t opcodes[] = {
	[NFCOMMS_SEND] = NFCOMMS_OP_SEND,
	[NFCOMMS_RECEIVE] = NFCOMMS_OP_RECEIVE,
	[NFCOMMS_SEND_IND] = NFCOMMS_OP_SEND_IND,
	[NFCOMMS_RECEIVE_IND] = NFCOMMS_OP_RECEIVE_IND,
	[NFCOMMS_NEXT] = NFCOMMS_OP_NEXT,
	[NFCOMMS_CLOSE] = NFCOMMS_OP_CLOSE,
};

enum {
	KINDS = sizeof(opcodes) / sizeof(opcodes[0]),
};

/* Translate a request; 0 or a negative errno. */
static int translate(const struct nfcomms_request *r, struct nfcomms_op *op)
{
	memset(op, 0, sizeof(*op));
	if (r->kind >= KINDS || !opcodes[r->kind])
		return -EINVAL;
	op->opcode = opcodes[r->kind];
	op->channel = r->channel;
	op->user_data = r->token;
	switch (r->kind) {
	case NFCOMMS_SEND:
		if (r->size > NFCOMMS_MESSAGE_MAX)
			return -E2BIG;
		if (r->size && !r->data)
			return -EFAULT;
		if (r->size)
			memcpy(op->payload, r->data, r->size);
		op->length = r->size;
		break;
	case NFCOMMS_RECEIVE:
		op->length = NFCOMMS_MESSAGE_MAX;
		break;
	case NFCOMMS_SEND_IND:
	case NFCOMMS_RECEIVE_IND:
		op->address = r->size ? (uintptr_t)r->data : 0;
		op->length = r->size;
		op->region = r->region;
		op->offset = r->offset;
		break;
	case NFCOMMS_CLOSE:
		if (!r->size ||
		    r->size & ~(uint64_t)(NFCOMMS_SENDING | NFCOMMS_RECEIVING))
			return -EINVAL;
		op->flags = (uint16_t)r->size;
		break;
	}
	return 0;
}

/* Hand over one batch: how many were taken, or a negative errno. */
static int submit_batch(const struct nfcomms_dev *dev, struct nfcomms_op *ops,
			unsigned int count, uint64_t *ids)
{
	struct nfcomms_submit submit = { .size = sizeof(submit),
					 .count = count,
					 .ops = (uintptr_t)ops,
					 .op_size = sizeof(*ops) };
	unsigned int i;
	int rc;

	rc = device_ioctl(dev, NFCOMMS_IOC_SUBMIT, &submit);
	if (rc)
		return rc;
	for (i = 0; ids && i < submit.accepted && i < count; i++)
		ids[i] = submit.first_id + i;
	return (int)submit.accepted;
}

int nfcomms_submit(struct nfcomms_dev *dev,
		   const struct nfcomms_request *requests, unsigned int count,
		   uint64_t *ids)
{
	struct nfcomms_op ops[BATCH];
	unsigned int done = 0, n;
	int rc = 0, taken;

	if (!dev || (count && !requests))
		return -EINVAL;
	while (done < count && !rc) {
		for (n = 0; n < BATCH && done + n < count; n++) {
			rc = translate(&requests[done + n], &ops[n]);
			if (rc)
				break;
		}
		taken = n ? submit_batch(dev, ops, n, ids ? ids + done : NULL) :
			    0;
		if (taken < 0)
			return done ? (int)done : taken;
		done += (unsigned int)taken;
		if ((unsigned int)taken < n)
			break;
	}
	return rc && !done ? rc : (int)done;
}

static uint32_t kind_of(uint16_t opcode)
{
	uint32_t kind;

	for (kind = 1; kind < KINDS; kind++) {
		if (opcodes[kind] == opcode)
			return kind;
	}
	return 0;
}

static void translate_back(const struct nfcomms_completion *c,
			   struct nfcomms_event *e)
{
	*e = (struct nfcomms_event){
		.token = c->user_data,
		.id = c->id,
		.epoch = c->epoch,
		.kind = kind_of(c->opcode),
		.channel = c->channel,
		.result = completion_result(c),
		.indirect = !!(c->flags & NFCOMMS_INDIRECT),
		.size = c->length,
	};
	completion_failure(c, &e->failure);
	memcpy(e->message, c->payload, sizeof(e->message));
}

/* Take completions that are there: how many, or a negative errno. */
static int take(const struct nfcomms_dev *dev, struct nfcomms_completion *to,
		unsigned int count)
{
	ssize_t got;

	if (dev->file)
		return umod_take(dev, to, count);
	do {
		got = read(dev->fd, to, count * sizeof(to[0]));
	} while (got < 0 && errno == EINTR);
	if (got < 0)
		return errno == EAGAIN ? 0 : -errno;
	return got ? (int)((size_t)got / sizeof(to[0])) : -ENODEV;
}

int nfcomms_events(struct nfcomms_dev *dev, struct nfcomms_event *events,
		   unsigned int max)
{
	struct nfcomms_completion c[BATCH];
	int i, n;

	if (!dev || !events || !max)
		return -EINVAL;
	n = take(dev, c, max < BATCH ? max : BATCH);
	for (i = 0; i < n; i++)
		translate_back(&c[i], &events[i]);
	return n;
}

int nfcomms_cancel(struct nfcomms_dev *dev, uint64_t id)
{
	struct nfcomms_cancel cancel = { .size = sizeof(cancel), .id = id };

	return device_ioctl(dev, NFCOMMS_IOC_CANCEL, &cancel);
}
