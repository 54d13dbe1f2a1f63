// SPDX-License-Identifier: MIT
/*
 * A program that was built with the header of interface 2, which is beside it: it finds
 * out that the module has another interface, and nothing that it asks for is begun.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "../../../../firmware/test/harness.h"
#include "nfcomms.h"

static int open_node(void)
{
	const char *name = getenv("NFC_NODE");
	int fd = open(name ? name : "/dev/nfcomms0",
		      O_RDWR | O_NONBLOCK | O_CLOEXEC);

	CHECK(fd >= 0);
	return fd;
}

CASE(another_major_version)
{
	struct nfcomms_info info = { .size = sizeof(info) };
	int fd = open_node();

	CHECK_EQ(NFCOMMS_UAPI_MAJOR, 2);
	CHECK_EQ(ioctl(fd, NFCOMMS_IOC_INFO, &info), 0);
	CHECK(info.uapi >> 16 > NFCOMMS_UAPI_MAJOR);
	close(fd);
}

CASE(no_call_that_changed)
{
	struct nfcomms_op op = { .opcode = NFCOMMS_OP_SUBSCRIBE, .length = 2 };
	struct nfcomms_completion c;
	struct nfcomms_submit submit = { .size = sizeof(submit),
					 .count = 1,
					 .ops = (uintptr_t)&op,
					 .op_size = sizeof(op) };
	struct nfcomms_call call = { .size = sizeof(call),
				     .op = (uintptr_t)&op,
				     .completion = (uintptr_t)&c,
				     .op_size = sizeof(op),
				     .completion_size = sizeof(c) };
	struct nfcomms_cancel cancel = { .size = sizeof(cancel) };
	struct nfcomms_health health = { .size = sizeof(health) };
	const struct {
		unsigned long number;
		void *argument;
	} calls[] = {
		{ NFCOMMS_IOC_SUBMIT, &submit },
		{ NFCOMMS_IOC_CALL, &call },
		{ NFCOMMS_IOC_CANCEL, &cancel },
	};
	int fd = open_node();

	for (size_t i = 0; i < sizeof(calls) / sizeof(calls[0]); i++) {
		CHECK_EQ(ioctl(fd, calls[i].number, calls[i].argument), -1);
		CHECK_EQ(errno, ENOTTY);
	}
	CHECK_EQ(ioctl(fd, NFCOMMS_IOC_HEALTH, &health), 0);
	CHECK_EQ(health.operations, 0);
	CHECK_EQ(read(fd, &c, sizeof(c)), -1);
	close(fd);
}
