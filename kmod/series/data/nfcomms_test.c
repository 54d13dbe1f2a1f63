// SPDX-License-Identifier: GPL-2.0-only
/*
 * The rules that every call of /dev/nfcommsN keeps, and an echo through a
 * process of the device. Skipped where there is no device.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdint.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <misc/nfc_abi.h>
#include <misc/nfcomms.h>

#include "../../kselftest_harness.h"

#define NODE "/dev/nfcomms0"

FIXTURE(client) {
	int fd;
};

FIXTURE_SETUP(client)
{
	self->fd = open(NODE, O_RDWR | O_CLOEXEC);
}

FIXTURE_TEARDOWN(client)
{
	if (self->fd >= 0)
		close(self->fd);
}

/* The errno of an ioctl, 0 if there is none. */
static int control(int fd, unsigned long request, void *argument)
{
	return ioctl(fd, request, argument) < 0 ? errno : 0;
}

static int call(int fd, struct nfcomms_op *op, struct nfcomms_completion *c)
{
	struct nfcomms_call request = {
		.size = sizeof(request),
		.op = (uintptr_t)op,
		.completion = (uintptr_t)c,
		.op_size = sizeof(*op),
		.completion_size = sizeof(*c),
	};

	return control(fd, NFCOMMS_IOC_CALL, &request);
}

TEST_F(client, sizes)
{
	struct {
		struct nfcomms_info info;
		__u64 later;
	} larger = { .info = { .size = sizeof(larger) } };

	if (self->fd < 0)
		SKIP(return, NODE " cannot be opened");
	EXPECT_EQ(0, control(self->fd, NFCOMMS_IOC_INFO, &larger));
	larger.info.size = sizeof(larger);
	larger.later = 1;
	EXPECT_EQ(E2BIG, control(self->fd, NFCOMMS_IOC_INFO, &larger));
	larger.info.size = NFCOMMS_INFO_SIZE_FIRST - 1;
	EXPECT_EQ(EINVAL, control(self->fd, NFCOMMS_IOC_INFO, &larger));
}

TEST_F(client, unknown_command)
{
	if (self->fd < 0)
		SKIP(return, NODE " cannot be opened");
	EXPECT_EQ(ENOTTY, control(self->fd, _IO(NFCOMMS_IOC_TYPE, 0x7f), NULL));
}

TEST_F(client, reserved_fields)
{
	struct nfcomms_op op = { .opcode = NFCOMMS_OP_SUBSCRIBE, .rsvd = 1 };
	struct nfcomms_completion c;

	if (self->fd < 0)
		SKIP(return, NODE " cannot be opened");
	EXPECT_EQ(EINVAL, call(self->fd, &op, &c));
}

TEST_F(client, a_read_only_file_looks)
{
	struct nfcomms_info info = { .size = sizeof(info) };
	struct nfcomms_op op = { .opcode = NFCOMMS_OP_SUBSCRIBE };
	struct nfcomms_completion c;
	int fd = open(NODE, O_RDONLY | O_CLOEXEC);

	if (self->fd < 0)
		SKIP(return, NODE " cannot be opened");
	ASSERT_LE(0, fd);
	EXPECT_EQ(0, control(fd, NFCOMMS_IOC_INFO, &info));
	EXPECT_EQ(EACCES, call(fd, &op, &c));
	close(fd);
}

TEST_F(client, nothing_to_read)
{
	struct nfcomms_completion c;
	struct pollfd p = { .fd = self->fd, .events = POLLIN };

	if (self->fd < 0)
		SKIP(return, NODE " cannot be opened");
	EXPECT_EQ(0, fcntl(self->fd, F_SETFL, O_NONBLOCK));
	EXPECT_EQ(-1, read(self->fd, &c, sizeof(c)));
	EXPECT_EQ(EAGAIN, errno);
	EXPECT_EQ(0, poll(&p, 1, 0));
}

TEST_F(client, echo)
{
	struct nfcomms_request_start start = {
		.request = NFCOMMS_CONTROL_START, .targets = 1,
		.name = "loopback",
	};
	struct nfcomms_op op = { .opcode = NFCOMMS_OP_CONTROL };
	struct nfcomms_completion c;
	__u32 channel;

	if (self->fd < 0)
		SKIP(return, NODE " cannot be opened");
	memcpy(op.payload, &start, sizeof(start));
	ASSERT_EQ(0, call(self->fd, &op, &c));
	memcpy(&start, c.payload, sizeof(start));
	ASSERT_EQ(NFC_OK, start.status);
	op = (struct nfcomms_op){
		.opcode = NFCOMMS_OP_SUBSCRIBE,
		.target = start.first,
	};
	ASSERT_EQ(0, call(self->fd, &op, &c));
	ASSERT_EQ(NFC_OK, c.status);
	channel = c.channel;
	op = (struct nfcomms_op){
		.opcode = NFCOMMS_OP_SEND, .channel = channel,
		.length = 5, .payload = "hello",
	};
	ASSERT_EQ(0, call(self->fd, &op, &c));
	EXPECT_EQ(NFC_OK, c.status);
	op = (struct nfcomms_op){
		.opcode = NFCOMMS_OP_RECEIVE, .channel = channel,
		.length = NFCOMMS_PAYLOAD_SIZE,
	};
	ASSERT_EQ(0, call(self->fd, &op, &c));
	EXPECT_EQ(NFC_OK, c.status);
	EXPECT_EQ(5, c.length);
	EXPECT_EQ(0, memcmp(c.payload, "hello", 5));
}

TEST_HARNESS_MAIN
