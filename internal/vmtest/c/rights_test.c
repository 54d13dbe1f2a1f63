// SPDX-License-Identifier: MIT
/*
 * Rights on a node: a file that is open to read may query, one that is open for
 * writing may use channels and start processes of its own. To load code or to
 * end the processes of others takes CAP_SYS_ADMIN.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <string.h>
#include <unistd.h>

#include "rig.h"

enum {
	NOBODY = 65534,
};

/* A descriptor that a process without any right was handed. */
struct handed {
	int fd;
	uint32_t channel;
	int use, load, reset; /* what the ioctls say */
};

/* One operation of each kind that makes the device do something. */
static struct nfcomms_op ask(uint16_t what)
{
	struct nfcomms_op op = operation(NFCOMMS_OP_CONTROL, 0);
	struct nfcomms_request_start start = { .request = what };
	struct nfcomms_request_process process = { .request = what };

	strcpy((char *)start.name, "loopback");
	process.process = 0x7fff; /* of nobody */
	if (what == NFCOMMS_CONTROL_START)
		memcpy(op.payload, &start, sizeof(start));
	else if (what == NFCOMMS_CONTROL_STOP)
		memcpy(op.payload, &process, sizeof(process));
	else
		memcpy(op.payload, &what, sizeof(what));
	return op;
}

/* A START of a program that may keep an island to itself. */
static struct nfcomms_op ask_lone(void)
{
	struct nfcomms_op op = ask(NFCOMMS_CONTROL_START);
	struct nfcomms_request_start c;

	memcpy(&c, op.payload, sizeof(c));
	c.targets = 1;
	strcpy((char *)c.name, NFC_LONE "spin");
	memcpy(op.payload, &c, sizeof(c));
	return op;
}

static bool says(int fd, const struct nfcomms_op *op, int want)
{
	struct nfcomms_completion c;
	int rc = call(fd, op, &c);

	if (rc != want || (want && submit(fd, op, 1) != -want))
		return false;
	return true;
}

/* Every way to make the device do something, as nobody. Bits say what failed. */
static int try_as_nobody(void *argument)
{
	const struct handed *h = argument;
	struct nfcomms_info info = { .size = sizeof(info) };
	struct nfcomms_health health = { .size = sizeof(health) };
	struct nfcomms_reset r = { .size = sizeof(r) };
	struct nfcomms_op send = message(h->channel, "x", 1);
	struct nfcomms_op take = operation(NFCOMMS_OP_RECEIVE, h->channel);
	struct nfcomms_op start = ask(NFCOMMS_CONTROL_START);
	struct nfcomms_op stop = ask(NFCOMMS_CONTROL_STOP);
	struct nfcomms_op load = image("no image", 8);
	struct nfcomms_op lone = ask_lone();
	int wrong = 0;

	take.length = NFCOMMS_PAYLOAD_SIZE;
	if (setgroups(0, NULL) || setgid(NOBODY) || setuid(NOBODY))
		return 1;
	wrong |= control(h->fd, NFCOMMS_IOC_INFO, &info) ? 2 : 0;
	wrong |= control(h->fd, NFCOMMS_IOC_HEALTH, &health) ? 2 : 0;
	wrong |= !says(h->fd, &send, h->use) ? 4 : 0;
	wrong |= !says(h->fd, &take, h->use) ? 8 : 0;
	wrong |= !says(h->fd, &start, h->use) ? 16 : 0;
	wrong |= !says(h->fd, &stop, h->use) ? 32 : 0;
	wrong |= !says(h->fd, &load, h->load) ? 64 : 0;
	wrong |= !says(h->fd, &lone, h->load) ? 64 : 0;
	wrong |= control(h->fd, NFCOMMS_IOC_RESET, &r) != h->reset ? 128 : 0;
	return wrong;
}

CASE(a_file_that_is_open_to_read_only_looks)
{
	int fd = fresh();
	struct handed h = { .use = EACCES, .load = EACCES, .reset = EACCES };
	uint32_t ch = program(fd, "loopback");

	h.fd = open(node(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	REQUIRE(h.fd >= 0);
	CHECK_EQ(wait_child(child(try_as_nobody, &h)), 0);
	/* Root is held to it as well: it opened the file to read. */
	CHECK_EQ(call(h.fd,
		      &(struct nfcomms_op){ .opcode = NFCOMMS_OP_SUBSCRIBE },
		      &(struct nfcomms_completion){}),
		 EACCES);
	close(h.fd);
	check_alive(fd, ch);
	close(fd);
}

CASE(a_file_that_is_open_for_writing_brings_in_no_code)
{
	struct handed h = { .fd = fresh(), .load = EPERM, .reset = EPERM };

	h.channel = program(h.fd, "loopback");
	CHECK_EQ(wait_child(child(try_as_nobody, &h)), 0);
	check_alive(h.fd, h.channel);
	close(h.fd);
}

CASE(an_administrator_brings_in_code)
{
	struct nfcomms_op load = image("no image", 8);
	int fd = fresh();
	uint32_t ch = program(fd, "loopback");

	CHECK_EQ(outcome(fd, &load), NFC_OK); /* the device's answer is in it */
	check_alive(fd, ch);
	close(fd);
}

/* A device has no such program unless it is made with them. */
CASE(no_program_keeps_an_island_by_default)
{
	struct nfcomms_completion c = { 0 };
	struct nfcomms_op op = ask_lone();
	struct nfcomms_request_start reply;
	int fd = fresh();

	CHECK_EQ(call(fd, &op, &c), 0);
	memcpy(&reply, c.payload, sizeof(reply));
	CHECK_EQ(reply.status, NFC_ENOPROGRAM);
	check_alive(fd, program(fd, "loopback"));
	close(fd);
}
