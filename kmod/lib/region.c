// SPDX-License-Identifier: MIT
/* Registered memory. */
#include <errno.h>

#include "library.h"

static int make_region(struct nfcomms_dev *dev, struct nfcomms_register *r,
		       uint32_t *region)
{
	int rc;

	if (!region)
		return -EINVAL;
	r->size = sizeof(*r);
	rc = device_ioctl(dev, NFCOMMS_IOC_REGISTER, r);
	if (!rc)
		*region = r->region;
	return rc;
}

int nfcomms_register(struct nfcomms_dev *dev, void *data, uint64_t size,
		     uint32_t *region)
{
	struct nfcomms_register r = { .address = (uintptr_t)data,
				      .length = size };

	return make_region(dev, &r, region);
}

int nfcomms_import(struct nfcomms_dev *dev, int fd, uint64_t offset,
		   uint64_t size, uint32_t *region)
{
	struct nfcomms_register r = { .flags = NFCOMMS_REGION_DMA_BUF,
				      .length = size,
				      .fd = fd,
				      .offset = offset };

	return make_region(dev, &r, region);
}

int nfcomms_unregister(struct nfcomms_dev *dev, uint32_t region)
{
	struct nfcomms_unregister u = {
		.size = sizeof(u),
		.region = region,
	};

	return device_ioctl(dev, NFCOMMS_IOC_UNREGISTER, &u);
}
