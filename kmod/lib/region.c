// SPDX-License-Identifier: MIT
/* Registered memory. */
#include "library.h"

int nfcomms_register(struct nfcomms_dev *dev, void *data, uint64_t size)
{
	struct nfcomms_register r = {
		.size = sizeof(r),
		.address = (uintptr_t)data,
		.length = size,
	};

	return device_ioctl(dev, NFCOMMS_IOC_REGISTER, &r);
}

int nfcomms_import(struct nfcomms_dev *dev, int fd, uint64_t offset, void *data,
		   uint64_t size)
{
	struct nfcomms_register r = {
		.size = sizeof(r),
		.flags = NFCOMMS_REGION_DMA_BUF,
		.address = (uintptr_t)data,
		.length = size,
		.fd = fd,
		.offset = offset,
	};

	return device_ioctl(dev, NFCOMMS_IOC_REGISTER, &r);
}

int nfcomms_unregister(struct nfcomms_dev *dev, const void *data)
{
	struct nfcomms_unregister u = {
		.size = sizeof(u),
		.address = (uintptr_t)data,
	};

	return device_ioctl(dev, NFCOMMS_IOC_UNREGISTER, &u);
}
