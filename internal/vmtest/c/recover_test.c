// SPDX-License-Identifier: MIT
/*
 * A device that is lost comes back by itself where its limits say so, or where a
 * process of a client may be why: nfsim --script hang@N, which only a reset ends.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <grp.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bus.h"
#include "rig.h"

enum {
	NOBODY = 65534,
	LOSSES = 3, /* that a user may have in ten minutes */
};

static void await_ready(int fd)
{
	uint64_t end = now_ns() + PATIENCE_MS * 1000000ull;

	while (state(fd) != NFCOMMS_STATE_READY && now_ns() < end)
		usleep(10000);
}

/* Messages until the device does not answer any more. */
static void use_up(void)
{
	int fd = client();
	uint32_t ch = program(fd, "loopback");
	struct nfcomms_op ops[2] = { message(ch, "x", 1),
				     operation(NFCOMMS_OP_RECEIVE, ch) };
	struct nfcomms_completion c = { .status = NFC_OK };

	ops[1].length = NFCOMMS_PAYLOAD_SIZE;
	for (int i = 0; c.status == NFC_OK && !test_failures(); i++)
		CHECK_EQ(call(fd, &ops[i % 2], &c), 0);
	CHECK_EQ(c.status, NFC_ERESET);
	close(fd);
}

CASE(a_lost_device_comes_back)
{
	int fd = client();

	set_limit("recovery", "1");
	use_up();
	await_ready(fd);
	set_limit("recovery", "0");
	close(fd);
	check_device();
	check_pins();
}

/* Lose the device beside a process of one's own, so often: what a START says then. */
static int lose(void *argument)
{
	struct nfcomms_op op = operation(NFCOMMS_OP_CONTROL, 0);
	struct nfcomms_request_start start = { .request = NFCOMMS_CONTROL_START,
					       .targets = 1 };
	struct nfcomms_completion c;
	int fd;

	(void)argument;
	if (setgroups(0, NULL) || setgid(NOBODY) || setuid(NOBODY))
		return 1;
	for (int i = 0; i < LOSSES && !test_failures(); i++) {
		use_up(); /* each time another file */
		fd = client();
		await_ready(fd);
		close(fd);
	}
	strcpy((char *)start.name, "loopback");
	memcpy(op.payload, &start, sizeof(start));
	fd = client();
	return test_failures() ? 1 : call(fd, &op, &c);
}

CASE(a_user_loses_it_so_often)
{
	char before[16];

	snprintf(before, sizeof(before), "%lu", limit("heartbeat_timeout_ms"));
	CHECK_EQ(limit("recovery"), 0);
	/* A device on a busy machine is not silent so long. */
	set_limit("heartbeat_timeout_ms", "3000");
	CHECK(!chmod(node(), 0666));
	CHECK_EQ(WEXITSTATUS(wait_child(child(lose, NULL))), EDQUOT);
	CHECK(!chmod(node(), 0600));
	set_limit("heartbeat_timeout_ms", before);
	check_device(); /* of another user, who has the right besides */
	check_pins();
}
