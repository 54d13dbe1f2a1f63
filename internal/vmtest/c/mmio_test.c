// SPDX-License-Identifier: MIT
/*
 * One operation, again and again, with a device that counts the accesses to its
 * registers and mailboxes: mmio -n CASE TIMES. See internal/vmtest/mmio.go.
 */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "rig.h"

static int times(void)
{
	return test_argument ? atoi(test_argument) : 1;
}

/* The part that every other case has as well. */
CASE(nothing)
{
	int fd = client();

	program(fd, "loopback");
	close(fd);
}

CASE(echo)
{
	int fd = client();
	uint32_t loop = program(fd, "loopback");

	for (int i = 0; i < times(); i++)
		check_alive(fd, loop);
	close(fd);
}

static void send_all(size_t size)
{
	int fd = client();
	uint32_t sink = program(fd, "sink");
	uint8_t *p = pages(size, 1);
	struct nfcomms_op op = transfer(NFCOMMS_OP_SEND_IND, sink, p, size);

	for (int i = 0; i < times(); i++)
		CHECK_EQ(outcome(fd, &op), NFC_OK);
	close(fd);
	free_pages(p, size);
}

CASE(send_4k)
{
	send_all(4 << 10);
}

CASE(send_64k)
{
	send_all(64 << 10);
}

CASE(send_8m)
{
	send_all(8 << 20);
}

/* With the message that asks for it. */
CASE(receive_4k)
{
	int fd = client();
	uint32_t source = program(fd, "source");
	uint8_t *p = pages(4 << 10, 1);
	struct nfcomms_op op = transfer(NFCOMMS_OP_RECEIVE_IND, source, p,
					4 << 10);

	for (int i = 0; i < times(); i++) {
		ask_source(fd, source, 4 << 10, 1);
		CHECK_EQ(outcome(fd, &op), NFC_OK);
	}
	close(fd);
	free_pages(p, 4 << 10);
}
