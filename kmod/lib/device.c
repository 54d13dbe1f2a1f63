// SPDX-License-Identifier: MIT
/* Opening and describing a device, and what all calls share. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "library.h"
#include "../core/nfcm_errno.h"

enum {
	BUSY_POLL_MAX_US = 10000, /* that the module takes */
};

static const struct {
	int value;
	const char *text;
} meanings[] = {
	{ EPIPE, "closed" },
	{ ETIMEDOUT, "target not ready in time" },
	{ EMSGSIZE, "sizes differ" },
	{ EPROTOTYPE, "one end sends a message, the other a transfer" },
	{ E2BIG, "too large" },
	{ ERANGE, "outside device memory" },
	{ EPROTO, "protocol violation" },
	{ EIO, "page not reachable by DMA" },
	{ ECONNABORTED, "transfer aborted" },
	{ ETIME, "transfer stood still" },
	{ ECANCELED, "withdrawn" },
	{ ENXIO, "no such target" },
	{ EBUSY, "in use" },
	{ ENOENT, "no such program, channel or device" },
	{ ENOEXEC, "built for another ABI" },
	{ ENOMEM, "out of memory, or over the limit of locked memory (ulimit "
		  "-l)" },
	{ EINVAL, "invalid argument" },
	{ EOPNOTSUPP, "not supported" },
	{ EINTR, "interrupted, nothing was delivered" },
	{ ENODATA, "a process took the question, and does not answer it" },
	{ EINPROGRESS, "a process took the question, and may answer late" },
	{ ENODEV, "device lost" },
	{ EHOSTDOWN, "device in fault" },
	{ EAGAIN, "not now" },
	{ EREMOTE, "another host has this memory" },
	{ EFAULT, "memory cannot be used" },
	{ EPERM, "needs CAP_SYS_ADMIN" },
	{ EDQUOT, "the device was lost too often beside processes of this "
		  "user" },
	{ EACCES, "permission denied: join the group nfcomms-dev" },
	{ ENOTTY, "no device of the module nfcomms" },
	{ ECONNREFUSED, "nobody serves the socket" },
	{ ELIBACC, "libnfcomms-umod.so.1 cannot be loaded" },
};

const char *nfcomms_strerror(int result)
{
	size_t i;

	if (result >= 0)
		return "success";
	for (i = 0; i < sizeof(meanings) / sizeof(meanings[0]); i++) {
		if (meanings[i].value == -result)
			return meanings[i].text;
	}
	return "unexpected error";
}

int completion_result(const struct nfcomms_completion *c)
{
	if (c->error)
		return -(int)c->error;
	return -nfcm_status_errno(c->status);
}

void completion_failure(const struct nfcomms_completion *c,
			struct nfcomms_failure *failure)
{
	if (!failure)
		return;
	failure->processed = c->processed;
	failure->outstanding = c->outstanding;
	failure->peer_size = c->peer_size;
	failure->limit = c->limit;
	failure->list = c->list;
	failure->entry = c->entry;
}

int device_ioctl(const struct nfcomms_dev *dev, unsigned long number,
		 void *argument)
{
	int rc;

	if (!dev)
		return -EINVAL;
	if (dev->file)
		return umod_ioctl(dev, number, argument);
	do {
		rc = ioctl(dev->fd, number, argument);
	} while (rc < 0 && errno == EINTR);
	return rc < 0 ? -errno : 0;
}

int device_call(const struct nfcomms_dev *dev, const struct nfcomms_op *op,
		struct nfcomms_completion *out)
{
	struct nfcomms_completion c = { 0 };
	struct nfcomms_call call = {
		.size = sizeof(call),
		.op = (uintptr_t)op,
		.completion = (uintptr_t)&c,
		.op_size = sizeof(*op),
		.completion_size = sizeof(c),
	};
	int rc = 0;

	/* A signal is the caller's: it took the operation back. */
	if (!dev)
		return -EINVAL;
	if (dev->file)
		rc = umod_call(dev, op, &c);
	else if (ioctl(dev->fd, NFCOMMS_IOC_CALL, &call) < 0)
		rc = -errno;
	if (rc)
		return rc;
	if (out)
		*out = c;
	return completion_result(&c);
}

/* Read the option that an address may end with; 0 or a negative errno. */
static int read_option(const char *option, uint32_t *busy_us)
{
	static const char name[] = "?busy-poll=";
	unsigned long us;
	char *end;

	*busy_us = 0;
	if (!*option)
		return 0;
	if (strncmp(option, name, strlen(name)) ||
	    !strchr("0123456789", option[strlen(name)]))
		return -EINVAL;
	errno = 0;
	us = strtoul(option + strlen(name), &end, 10);
	if (errno || us > BUSY_POLL_MAX_US || strcmp(end, "us"))
		return -EINVAL;
	*busy_us = (uint32_t)us;
	return 0;
}

/* Take an address apart: the path of its node, its option; 0 or a negative errno. */
static int node_path(const char *address, char *path, size_t size,
		     uint32_t *busy_us)
{
	const char *number = address;
	size_t length;
	int n;

	if (!strncmp(number, "dev:", 4))
		number += 4;
	length = strcspn(number, "?");
	if (memchr(number, '/', length))
		n = snprintf(path, size, "%.*s", (int)length, number);
	else if (length && strspn(number, "0123456789") == length)
		n = snprintf(path, size, "/dev/nfcomms%.*s", (int)length,
			     number);
	else
		return -EINVAL;
	if (n >= (int)size)
		return -ENAMETOOLONG;
	return read_option(number + length, busy_us);
}

static int read_info(const struct nfcomms_dev *dev, struct nfcomms_info *info)
{
	int rc;

	memset(info, 0, sizeof(*info));
	info->size = sizeof(*info);
	rc = device_ioctl(dev, NFCOMMS_IOC_INFO, info);
	if (rc)
		return rc;
	return info->uapi >> 16 == NFCOMMS_UAPI_MAJOR ? 0 : -ENOEXEC;
}

/* Have waits poll before they sleep; 0 or a negative errno. */
static int busy_poll(const struct nfcomms_dev *dev, uint32_t us)
{
	struct nfcomms_setup setup = {
		.size = sizeof(setup),
		.completion_size = sizeof(struct nfcomms_completion),
		.busy_poll_us = us,
	};

	if (!us)
		return 0;
	return device_ioctl(dev, NFCOMMS_IOC_SETUP, &setup);
}

int nfcomms_open_fd(int fd, struct nfcomms_dev **dev)
{
	struct nfcomms_dev *opened;
	struct nfcomms_info info;
	int rc;

	if (!dev)
		return -EINVAL;
	opened = calloc(1, sizeof(*opened));
	if (!opened)
		return -ENOMEM;
	opened->fd = fd;
	rc = read_info(opened, &info);
	if (rc) {
		free(opened);
		return rc;
	}
	opened->asks = (info.uapi & 0xffff) >= 1;
	*dev = opened;
	return 0;
}

/* Is this an address of a device without the module, as "sim:" is? */
static int names_scheme(const char *address)
{
	size_t length = strcspn(address, ":/");

	return length && address[length] == ':' && strncmp(address, "dev:", 4);
}

static int open_umod(const char *address, struct nfcomms_dev **dev)
{
	struct nfcomms_dev *opened = calloc(1, sizeof(*opened));
	int rc;

	if (!opened)
		return -ENOMEM;
	opened->asks = 1;
	rc = umod_open(address, opened);
	if (rc)
		free(opened);
	else
		*dev = opened;
	return rc;
}

int nfcomms_open(const char *address, struct nfcomms_dev **dev)
{
	struct nfcomms_dev *opened;
	uint32_t busy_us;
	char path[256];
	int fd, rc;

	if (!address || !dev)
		return -EINVAL;
	if (names_scheme(address))
		return open_umod(address, dev);
	rc = node_path(address, path, sizeof(path), &busy_us);
	if (rc)
		return rc;
	fd = open(path, O_RDWR | O_NONBLOCK | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	rc = nfcomms_open_fd(fd, &opened);
	if (rc) {
		close(fd);
		return rc;
	}
	rc = busy_poll(opened, busy_us);
	if (rc)
		nfcomms_close(opened);
	else
		*dev = opened;
	return rc;
}

void nfcomms_close(struct nfcomms_dev *dev)
{
	if (!dev)
		return;
	if (dev->file)
		umod_close(dev);
	close(dev->fd);
	free(dev);
}

int nfcomms_fd(const struct nfcomms_dev *dev)
{
	return dev ? dev->fd : -EINVAL;
}

int nfcomms_describe(struct nfcomms_dev *dev, struct nfcomms_description *out)
{
	struct nfcomms_info info;
	int rc;

	if (!out)
		return -EINVAL;
	rc = read_info(dev, &info);
	if (rc)
		return rc;
	*out = (struct nfcomms_description){
		.abi = info.abi,
		.epoch = info.epoch,
		.channels = info.channels,
		.mailboxes = info.mailboxes,
		.islands = info.islands,
		.slots = info.slots,
		.window = info.window,
		.contexts = info.contexts,
		.can_load = !!(info.capabilities & NFC_CAP_LOAD),
		.max_operations = info.max_operations,
		.max_transfer = info.max_transfer,
		.memlock_limit = info.memlock_limit,
		.memlock_used = info.memlock_used,
	};
	memcpy(out->driver, info.driver, sizeof(out->driver));
	out->driver[sizeof(out->driver) - 1] = 0;
	return 0;
}

int nfcomms_health(struct nfcomms_dev *dev, struct nfcomms_heartbeat *out)
{
	struct nfcomms_health health = { .size = sizeof(health) };
	int rc;

	if (!out)
		return -EINVAL;
	rc = device_ioctl(dev, NFCOMMS_IOC_HEALTH, &health);
	if (rc)
		return rc;
	*out = (struct nfcomms_heartbeat){
		.beat = health.beat,
		.age_ns = health.age_ns,
		.diagnostic = health.diagnostic,
		.processes = health.processes,
		.messages = health.messages,
		.bytes = health.bytes,
		.parked = health.parked,
	};
	switch (health.state) {
	case NFCOMMS_STATE_READY:
		return 0;
	case NFCOMMS_STATE_FAULT:
		return -EHOSTDOWN;
	default:
		return -ENODEV;
	}
}

int nfcomms_reset(struct nfcomms_dev *dev)
{
	struct nfcomms_reset reset = { .size = sizeof(reset) };

	return device_ioctl(dev, NFCOMMS_IOC_RESET, &reset);
}
