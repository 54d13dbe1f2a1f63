// SPDX-License-Identifier: MIT
/* Channels to other hosts of a device, and memory that is given to them. */
#include <errno.h>

#include "library.h"

/* 0 or a negative errno. The kernel module has none of these calls. */
static int meet(struct nfcomms_dev *dev, struct umod_meeting *m,
		const char *name)
{
	if (!dev || !name)
		return -EINVAL;
	return dev->file ? umod_meet(dev, m, name) : -EOPNOTSUPP;
}

/* Make a call whose result is a handle. */
static int make_handle(struct nfcomms_dev *dev, enum umod_verb verb,
		       uint32_t handle, const char *name, uint32_t *out)
{
	struct umod_meeting m = { .verb = verb, .handle = handle };
	int rc = out ? meet(dev, &m, name) : -EINVAL;

	if (!rc)
		*out = m.handle;
	return rc;
}

/* Make a call whose result is memory. */
static int make_memory(struct nfcomms_dev *dev, struct umod_meeting m,
		       struct nfcomms_memory *out)
{
	int rc = out ? meet(dev, &m, "") : -EINVAL;

	if (!rc)
		*out = (struct nfcomms_memory){
			.data = (void *)(uintptr_t)m.address,
			.size = m.size,
			.region = m.region,
		};
	return rc;
}

int nfcomms_listen(struct nfcomms_dev *dev, const char *name, uint32_t *listener)
{
	return make_handle(dev, UMOD_LISTEN, 0, name, listener);
}

int nfcomms_unlisten(struct nfcomms_dev *dev, uint32_t listener)
{
	return make_handle(dev, UMOD_UNLISTEN, listener, "", &listener);
}

int nfcomms_accept(struct nfcomms_dev *dev, uint32_t listener, uint32_t *channel)
{
	return make_handle(dev, UMOD_ACCEPT, listener, "", channel);
}

int nfcomms_dial(struct nfcomms_dev *dev, const char *name, uint32_t *channel)
{
	return make_handle(dev, UMOD_DIAL, 0, name, channel);
}

int nfcomms_alloc(struct nfcomms_dev *dev, uint64_t size,
		  struct nfcomms_memory *out)
{
	return make_memory(dev,
			   (struct umod_meeting){ .verb = UMOD_ALLOC,
						  .size = size },
			   out);
}

int nfcomms_give(struct nfcomms_dev *dev, uint32_t channel, uint32_t region)
{
	struct umod_meeting m = {
		.verb = UMOD_GIVE,
		.handle = channel,
		.region = region,
	};

	return meet(dev, &m, "");
}

int nfcomms_take(struct nfcomms_dev *dev, uint32_t channel,
		 struct nfcomms_memory *out)
{
	return make_memory(dev,
			   (struct umod_meeting){ .verb = UMOD_TAKE,
						  .handle = channel },
			   out);
}
