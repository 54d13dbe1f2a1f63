// SPDX-License-Identifier: MIT
/* Messages and transfers, waited for in the kernel. */
#include <errno.h>
#include <string.h>

#include "library.h"

/* Give a message by an operation; *c is its completion. */
static int give(struct nfcomms_dev *dev, struct nfcomms_op op,
		const void *message, size_t size, struct nfcomms_completion *c)
{
	op.length = size;
	if (size > NFCOMMS_MESSAGE_MAX)
		return -E2BIG;
	if (size && !message)
		return -EFAULT;
	if (size)
		memcpy(op.payload, message, size);
	return device_call(dev, &op, c);
}

static int send_message(struct nfcomms_dev *dev, uint32_t channel,
			const void *message, size_t size, uint16_t flags)
{
	struct nfcomms_op op = { .opcode = NFCOMMS_OP_SEND,
				 .flags = flags,
				 .channel = channel };
	struct nfcomms_completion c = { 0 };
	int rc = give(dev, op, message, size, &c);

	return c.flags & NFCOMMS_NOT_NOW ? -EAGAIN : rc;
}

int nfcomms_send(struct nfcomms_dev *dev, uint32_t channel, const void *message,
		 size_t size)
{
	return send_message(dev, channel, message, size, 0);
}

int nfcomms_try_send(struct nfcomms_dev *dev, uint32_t channel,
		     const void *message, size_t size)
{
	return send_message(dev, channel, message, size, NFCOMMS_NOWAIT);
}

static int receive_message(struct nfcomms_dev *dev, uint32_t channel,
			   void *message, size_t size, uint16_t flags)
{
	struct nfcomms_op op = { .opcode = NFCOMMS_OP_RECEIVE,
				 .flags = flags,
				 .channel = channel };
	struct nfcomms_completion c = { 0 };
	int rc;

	if (size && !message)
		return -EFAULT;
	op.length = size < NFCOMMS_MESSAGE_MAX ? size : NFCOMMS_MESSAGE_MAX;
	rc = device_call(dev, &op, &c);
	if (c.flags & NFCOMMS_NOT_NOW)
		return -EAGAIN;
	if (rc)
		return rc;
	if (c.length > op.length)
		return -EPROTO;
	if (c.length)
		memcpy(message, c.payload, c.length);
	return (int)c.length;
}

int nfcomms_receive(struct nfcomms_dev *dev, uint32_t channel, void *message,
		    size_t size)
{
	return receive_message(dev, channel, message, size, 0);
}

int nfcomms_try_receive(struct nfcomms_dev *dev, uint32_t channel,
			void *message, size_t size)
{
	return receive_message(dev, channel, message, size, NFCOMMS_NOWAIT);
}

/* The answer to a question that was taken as a message is one. */
static int receive_answer(struct nfcomms_dev *dev, uint32_t channel,
			  void *answer, size_t room)
{
	int rc = nfcomms_receive(dev, channel, answer, room);

	switch (rc) {
	case -EINTR:
	case -EBUSY:
		return -EINPROGRESS;
	case -EPIPE:
		return -ENODATA;
	default:
		return rc;
	}
}

int nfcomms_call(struct nfcomms_dev *dev, uint32_t channel,
		 const void *question, size_t size, void *answer, size_t room)
{
	struct nfcomms_op op = { .channel = channel };
	struct nfcomms_completion c = { 0 };
	int rc;

	if (!dev)
		return -EINVAL;
	if (room && !answer)
		return -EFAULT;
	op.opcode = dev->asks ? NFCOMMS_OP_ASK : NFCOMMS_OP_SEND;
	rc = give(dev, op, question, size, &c);
	if (rc && c.flags & NFCOMMS_TAKEN)
		return -ENODATA;
	if (rc)
		return rc;
	if (!(c.flags & NFCOMMS_TAKEN))
		return receive_answer(dev, channel, answer, room);
	if (c.length > NFCOMMS_MESSAGE_MAX)
		return -EPROTO;
	if (c.length > room)
		return -E2BIG;
	if (c.length)
		memcpy(answer, c.payload, c.length);
	return (int)c.length;
}

static int move(struct nfcomms_dev *dev, const struct nfcomms_op *op,
		struct nfcomms_failure *failure)
{
	struct nfcomms_completion c = { 0 };
	int rc = device_call(dev, op, &c);

	completion_failure(&c, failure);
	return rc;
}

static struct nfcomms_op move_at(uint16_t opcode, uint32_t channel,
				 const void *data, uint64_t size)
{
	return (struct nfcomms_op){ .opcode = opcode,
				    .channel = channel,
				    .address = size ? (uintptr_t)data : 0,
				    .length = size };
}

static struct nfcomms_op move_in(uint16_t opcode, uint32_t channel,
				 uint32_t region, uint64_t offset, uint64_t size)
{
	return (struct nfcomms_op){ .opcode = opcode,
				    .channel = channel,
				    .region = region,
				    .offset = offset,
				    .length = size };
}

int nfcomms_send_ind(struct nfcomms_dev *dev, uint32_t channel, const void *data,
		     uint64_t size, struct nfcomms_failure *failure)
{
	struct nfcomms_op op = move_at(NFCOMMS_OP_SEND_IND, channel, data, size);

	return move(dev, &op, failure);
}

int nfcomms_receive_ind(struct nfcomms_dev *dev, uint32_t channel, void *data,
			uint64_t size, struct nfcomms_failure *failure)
{
	struct nfcomms_op op = move_at(NFCOMMS_OP_RECEIVE_IND, channel, data,
				       size);

	return move(dev, &op, failure);
}

int nfcomms_send_region(struct nfcomms_dev *dev, uint32_t channel,
			uint32_t region, uint64_t offset, uint64_t size,
			struct nfcomms_failure *failure)
{
	struct nfcomms_op op = move_in(NFCOMMS_OP_SEND_IND, channel, region,
				       offset, size);

	return region ? move(dev, &op, failure) : -ENOENT;
}

int nfcomms_receive_region(struct nfcomms_dev *dev, uint32_t channel,
			   uint32_t region, uint64_t offset, uint64_t size,
			   struct nfcomms_failure *failure)
{
	struct nfcomms_op op = move_in(NFCOMMS_OP_RECEIVE_IND, channel, region,
				       offset, size);

	return region ? move(dev, &op, failure) : -ENOENT;
}

int nfcomms_next(struct nfcomms_dev *dev, uint32_t channel,
		 struct nfcomms_offer *out)
{
	struct nfcomms_op op = { .opcode = NFCOMMS_OP_NEXT, .channel = channel };
	struct nfcomms_completion c;
	int rc;

	if (!out)
		return -EINVAL;
	rc = device_call(dev, &op, &c);
	if (rc)
		return rc;
	out->size = c.length;
	out->indirect = !!(c.flags & NFCOMMS_INDIRECT);
	return 0;
}
