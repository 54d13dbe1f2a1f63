// SPDX-License-Identifier: MIT
/* Processes, programs and subscriptions. */
#include <errno.h>
#include <string.h>

#include "library.h"

/*
 * Ask the device, with an image or none; the request, one of the structures of
 * CONTROL, becomes the answer.
 */
static int ask(struct nfcomms_dev *dev, void *request, const void *image,
	       size_t size)
{
	struct nfcomms_op op = { .opcode = NFCOMMS_OP_CONTROL };
	struct nfcomms_request_process head;
	struct nfcomms_completion c;
	int rc;

	op.address = (uintptr_t)image;
	op.length = size;
	memcpy(op.payload, request, sizeof(op.payload));
	rc = device_call(dev, &op, &c);
	if (rc)
		return rc;
	memcpy(request, c.payload, sizeof(c.payload));
	memcpy(&head, c.payload, sizeof(head));
	c.status = head.status;
	return completion_result(&c);
}

/* Copy a name out of an answer. */
static int take_name(const void *from, int rc, char name[NFCOMMS_NAME_SIZE])
{
	if (rc)
		return rc;
	if (!memchr(from, 0, NFCOMMS_NAME_SIZE))
		return -EPROTO;
	memcpy(name, from, NFCOMMS_NAME_SIZE);
	return 0;
}

int nfcomms_start(struct nfcomms_dev *dev, const char *program, uint32_t first,
		  uint32_t targets, uint64_t argument,
		  struct nfcomms_process *out)
{
	struct nfcomms_request_start start = { .request = NFCOMMS_CONTROL_START,
					       .first = first,
					       .targets = targets,
					       .argument = argument };
	size_t length = program ? strlen(program) : 0;
	int rc;

	if (!length || length >= sizeof(start.name))
		return -ENOENT;
	if (!out)
		return -EINVAL;
	memcpy(start.name, program, length);
	rc = ask(dev, &start, NULL, 0);
	if (rc)
		return rc;
	out->id = start.process;
	out->first = start.first;
	out->targets = targets;
	return 0;
}

int nfcomms_stop(struct nfcomms_dev *dev, uint64_t process)
{
	struct nfcomms_request_process stop = { .request = NFCOMMS_CONTROL_STOP,
						.process = process };

	return ask(dev, &stop, NULL, 0);
}

int nfcomms_load(struct nfcomms_dev *dev, const void *image, size_t size,
		 char name[NFCOMMS_NAME_SIZE])
{
	struct nfcomms_request_load load = { .request = NFCOMMS_CONTROL_LOAD };
	int rc;

	if (!size || !name)
		return -EINVAL;
	rc = ask(dev, &load, image, size);
	return take_name(load.text, rc, name);
}

int nfcomms_program(struct nfcomms_dev *dev, uint32_t index,
		    char name[NFCOMMS_NAME_SIZE])
{
	struct nfcomms_request_program program = {
		.request = NFCOMMS_CONTROL_PROGRAM, .index = index
	};
	int rc;

	if (!name)
		return -EINVAL;
	rc = ask(dev, &program, NULL, 0);
	return take_name(program.name, rc, name);
}

int nfcomms_subscribe(struct nfcomms_dev *dev, uint32_t target,
		      uint32_t *channel)
{
	struct nfcomms_op op = { .opcode = NFCOMMS_OP_SUBSCRIBE,
				 .target = target };
	struct nfcomms_completion c;
	int rc;

	if (!channel)
		return -EINVAL;
	rc = device_call(dev, &op, &c);
	if (!rc)
		*channel = c.channel;
	return rc;
}

int nfcomms_unsubscribe(struct nfcomms_dev *dev, uint32_t channel,
			unsigned int halves)
{
	struct nfcomms_op op = { .opcode = NFCOMMS_OP_CLOSE,
				 .flags = (uint16_t)halves,
				 .channel = channel };
	int rc;

	if (!halves || halves & ~(NFCOMMS_SENDING | NFCOMMS_RECEIVING))
		return -EINVAL;
	/* A close cannot be taken back: a signal only ended the wait for it. */
	do {
		rc = device_call(dev, &op, NULL);
	} while (rc == -EINTR);
	return rc == -ENOENT ? 0 : rc; /* it is closed already */
}
