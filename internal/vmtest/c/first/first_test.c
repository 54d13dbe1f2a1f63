// SPDX-License-Identifier: MIT
/*
 * A program of the first version of the ioctl interface, with that version's
 * header beside it. Neither is ever changed: what they do works with every module
 * of the same major version.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "../../../../firmware/test/harness.h"
#include "nfcomms.h"

enum {
	WAIT_MS = 60000,
	SIZE = 1 << 20,
};

static __u8 buffer[SIZE], back[SIZE];

static int open_node(void)
{
	const char *name = getenv("NFC_NODE");
	int fd = open(name ? name : "/dev/nfcomms0",
		      O_RDWR | O_NONBLOCK | O_CLOEXEC);

	CHECK(fd >= 0);
	return fd;
}

/* One operation, waited for. */
static struct nfcomms_completion call(int fd, struct nfcomms_op op)
{
	struct nfcomms_completion c = { .status = NFCOMMS_STATUS_COUNT };
	struct nfcomms_call call = {
		.size = sizeof(call),
		.op = (uintptr_t)&op,
		.completion = (uintptr_t)&c,
		.op_size = sizeof(op),
		.completion_size = sizeof(c),
	};

	CHECK_EQ(ioctl(fd, NFCOMMS_IOC_CALL, &call), 0);
	CHECK_EQ(c.status, NFCOMMS_STATUS_OK);
	return c;
}

/* The channel to a new loopback process. */
static __u32 loopback(int fd)
{
	struct nfcomms_op op = { .opcode = NFCOMMS_OP_CONTROL };
	struct nfcomms_request_start start = { .request = NFCOMMS_CONTROL_START,
					       .targets = 1,
					       .name = "loopback" };
	struct nfcomms_completion c;

	memcpy(op.payload, &start, sizeof(start));
	c = call(fd, op);
	memcpy(&start, c.payload, sizeof(start));
	CHECK_EQ(start.status, NFCOMMS_STATUS_OK);
	op = (struct nfcomms_op){ .opcode = NFCOMMS_OP_SUBSCRIBE,
				  .target = start.first };
	return call(fd, op).channel;
}

CASE(describes)
{
	struct nfcomms_info info = { .size = sizeof(info) };
	struct nfcomms_health health = { .size = sizeof(health) };
	struct nfcomms_channel channel = { .size = sizeof(channel) };
	int fd = open_node();

	CHECK_EQ(ioctl(fd, NFCOMMS_IOC_INFO, &info), 0);
	CHECK_EQ(info.uapi >> 16, NFCOMMS_UAPI_MAJOR);
	CHECK_EQ(info.size, sizeof(info));
	CHECK(info.channels > 0 && info.max_transfer >= SIZE);
	CHECK_EQ(ioctl(fd, NFCOMMS_IOC_HEALTH, &health), 0);
	CHECK_EQ(health.state, NFCOMMS_STATE_READY);
	channel.channel = loopback(fd);
	CHECK_EQ(ioctl(fd, NFCOMMS_IOC_CHANNEL, &channel), 0);
	CHECK_EQ(channel.halves, NFCOMMS_H2D | NFCOMMS_D2H);
	CHECK_EQ(channel.h2d.state, NFCOMMS_HALF_IDLE);
	CHECK_EQ(channel.d2h.state, NFCOMMS_HALF_IDLE);
	close(fd);
}

CASE(sends_and_receives)
{
	int fd = open_node();
	__u32 ch = loopback(fd);
	struct nfcomms_op op = { .opcode = NFCOMMS_OP_SEND,
				 .channel = ch,
				 .length = 5,
				 .payload = "first" };

	call(fd, op);
	op = (struct nfcomms_op){ .opcode = NFCOMMS_OP_RECEIVE,
				  .channel = ch,
				  .length = NFCOMMS_PAYLOAD_SIZE };
	CHECK(!memcmp(call(fd, op).payload, "first", 6));
	memset(buffer, 7, SIZE);
	op = (struct nfcomms_op){ .opcode = NFCOMMS_OP_SEND_IND,
				  .channel = ch,
				  .address = (uintptr_t)buffer,
				  .length = SIZE };
	call(fd, op);
	op.opcode = NFCOMMS_OP_RECEIVE_IND;
	op.address = (uintptr_t)back;
	call(fd, op);
	CHECK(!memcmp(buffer, back, SIZE));
	close(fd);
}

CASE(submits_reads_and_cancels)
{
	int fd = open_node();
	__u32 ch = loopback(fd);
	struct nfcomms_op ops[2] = {
		{ .opcode = NFCOMMS_OP_SEND,
		  .channel = ch,
		  .user_data = 1,
		  .length = 1 },
		{ .opcode = NFCOMMS_OP_ARM,
		  .channel = ch,
		  .user_data = 1,
		  .flags = NFCOMMS_D2H },
	};
	struct nfcomms_submit s = { .size = sizeof(s),
				    .count = 2,
				    .ops = (uintptr_t)ops,
				    .op_size = sizeof(ops[0]) };
	struct nfcomms_cancel cancel = { .size = sizeof(cancel) };
	struct pollfd p = { .fd = fd, .events = POLLIN };
	struct nfcomms_completion c[4];
	ssize_t n, got = 0;

	CHECK_EQ(ioctl(fd, NFCOMMS_IOC_SUBMIT, &s), 0);
	CHECK_EQ(s.accepted, 2);
	while (got < 2 && poll(&p, 1, WAIT_MS) == 1) {
		n = read(fd, c + got, sizeof(c) - got * sizeof(c[0]));
		if (!CHECK(n > 0 && n % sizeof(c[0]) == 0))
			break;
		got += n / sizeof(c[0]);
	}
	CHECK_EQ(got, 2);
	CHECK_EQ(c[0].user_data + c[1].user_data, 2);
	CHECK_EQ(c[0].id + c[1].id, 2 * s.first_id + 1);
	CHECK_EQ(c[0].epoch, c[1].epoch);
	CHECK_EQ(c[0].status, NFCOMMS_STATUS_OK);
	CHECK_EQ(c[1].status, NFCOMMS_STATUS_OK);
	cancel.id = s.first_id;
	CHECK_EQ(ioctl(fd, NFCOMMS_IOC_CANCEL, &cancel), -1);
	CHECK_EQ(errno, ENOENT);
	close(fd);
}

CASE(registers)
{
	struct nfcomms_register r = { .size = sizeof(r),
				      .address = (uintptr_t)buffer,
				      .length = SIZE };
	struct nfcomms_unregister u = { .size = sizeof(u) };
	int fd = open_node();
	struct nfcomms_op op = { .opcode = NFCOMMS_OP_SEND_IND,
				 .channel = loopback(fd),
				 .offset = SIZE / 2,
				 .length = SIZE / 2 };

	CHECK_EQ(ioctl(fd, NFCOMMS_IOC_REGISTER, &r), 0);
	memset(buffer + SIZE / 2, 9, SIZE / 2);
	op.region = r.region;
	call(fd, op);
	op.opcode = NFCOMMS_OP_RECEIVE_IND;
	op.offset = 0;
	call(fd, op);
	CHECK(!memcmp(buffer, buffer + SIZE / 2, SIZE / 2));
	u.region = r.region;
	CHECK_EQ(ioctl(fd, NFCOMMS_IOC_UNREGISTER, &u), 0);
	close(fd);
}

CASE(resets)
{
	struct nfcomms_reset reset = { .size = sizeof(reset) };
	struct nfcomms_setup setup = { .size = sizeof(setup) };
	int fd = open_node();

	setup.completion_size = sizeof(struct nfcomms_completion);
	CHECK_EQ(ioctl(fd, NFCOMMS_IOC_SETUP, &setup), 0);
	CHECK_EQ(ioctl(fd, NFCOMMS_IOC_RESET, &reset), 0);
	loopback(fd);
	close(fd);
}
