// SPDX-License-Identifier: MIT
/* Processes, programs and subscriptions. */
#include <errno.h>
#include <string.h>

#include "library.h"

/* Ask the device, with an image or none; request becomes the reply. */
static int ask(struct nfcomms_dev *dev, struct nfc_control *request,
	       const void *image, size_t size)
{
	struct nfcomms_op op = { .opcode = NFCOMMS_OP_CONTROL };
	struct nfcomms_completion c;
	int rc;

	op.address = (uintptr_t)image;
	op.length = size;
	memcpy(op.payload, request, sizeof(*request));
	rc = device_call(dev, &op, &c);
	if (rc)
		return rc;
	memcpy(request, c.payload, sizeof(*request));
	c.status = request->status;
	return completion_result(&c);
}

/* Copy a name out of a reply. */
static int take_name(const struct nfc_control *reply, int rc,
		     char name[NFCOMMS_NAME_SIZE])
{
	if (rc)
		return rc;
	if (!memchr(reply->name, 0, sizeof(reply->name)))
		return -EPROTO;
	memcpy(name, reply->name, NFCOMMS_NAME_SIZE);
	return 0;
}

int nfcomms_start(struct nfcomms_dev *dev, const char *program, uint32_t first,
		  uint32_t targets, uint64_t argument,
		  struct nfcomms_process *out)
{
	struct nfc_control control = {
		.op = NFC_CONTROL_START, .a = first, .b = targets, .c = argument
	};
	size_t length = program ? strlen(program) : 0;
	int rc;

	if (!length || length >= sizeof(control.name))
		return -ENOENT;
	if (!out)
		return -EINVAL;
	memcpy(control.name, program, length);
	rc = ask(dev, &control, NULL, 0);
	if (rc)
		return rc;
	out->id = control.a;
	out->first = (uint32_t)control.b;
	out->targets = targets;
	return 0;
}

int nfcomms_stop(struct nfcomms_dev *dev, uint64_t process)
{
	struct nfc_control control = { .op = NFC_CONTROL_STOP, .a = process };

	return ask(dev, &control, NULL, 0);
}

int nfcomms_load(struct nfcomms_dev *dev, const void *image, size_t size,
		 char name[NFCOMMS_NAME_SIZE])
{
	struct nfc_control control = { .op = NFC_CONTROL_LOAD, .a = size };
	int rc;

	if (!size || !name)
		return -EINVAL;
	rc = ask(dev, &control, image, size);
	return take_name(&control, rc, name);
}

int nfcomms_program(struct nfcomms_dev *dev, uint32_t index,
		    char name[NFCOMMS_NAME_SIZE])
{
	struct nfc_control control = { .op = NFC_CONTROL_PROGRAM, .a = index };
	int rc;

	if (!name)
		return -EINVAL;
	rc = ask(dev, &control, NULL, 0);
	return take_name(&control, rc, name);
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
