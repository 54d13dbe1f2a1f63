// SPDX-License-Identifier: MIT
/* The eventfd of a file: when it is signalled, and what may be one. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <unistd.h>

#include "bus.h"
#include "rig.h"

/* A client with a loopback channel and an eventfd that is not registered. */
struct event_bench {
	int fd, event;
	uint32_t ch;
};

static struct event_bench event_setup(void)
{
	struct event_bench b = {
		.fd = fresh(), .event = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)
	};

	b.ch = program(b.fd, "loopback");
	return b;
}

static void event_teardown(struct event_bench *b)
{
	check_alive(b->fd, b->ch);
	close(b->event);
	close(b->fd);
}

/* Register a descriptor as the file's eventfd; -1: none. 0 or errno. */
static int arm(int fd, int event)
{
	struct nfcomms_eventfd e = { .size = sizeof(e), .fd = event };

	return control(fd, NFCOMMS_IOC_EVENTFD, &e);
}

/* The count since the last read; 0: nothing. */
static uint64_t counted(int event)
{
	uint64_t n = 0;

	return read(event, &n, sizeof(n)) == sizeof(n) ? n : 0;
}

/* Wait until so many were counted. */
static void await(int event, uint64_t want)
{
	struct pollfd p = { .fd = event, .events = POLLIN };
	uint64_t n = 0;

	while (n < want && poll(&p, 1, PATIENCE_MS) == 1)
		n += counted(event);
	CHECK_EQ(n, want);
}

/* Send a message and take it back by a submission; nothing is read. */
static void echo(const struct event_bench *b)
{
	struct nfcomms_op ops[2] = { message(b->ch, "x", 1),
				     operation(NFCOMMS_OP_RECEIVE, b->ch) };

	ops[1].length = NFCOMMS_PAYLOAD_SIZE;
	CHECK_EQ(submit(b->fd, ops, 2), 2);
}

static void read_all(int fd, int n)
{
	struct nfcomms_completion c;

	while (n-- && reap(fd, &c))
		;
}

CASE(each_completion_counts)
{
	struct event_bench b = event_setup();

	CHECK_EQ(arm(b.fd, b.event), 0);
	CHECK_EQ(counted(b.event), 0);
	for (int i = 0; i < 20; i++) {
		echo(&b);
		await(b.event, 2);
		read_all(b.fd, 2);
	}
	check_alive(b.fd, b.ch); /* a CALL is not read */
	CHECK_EQ(counted(b.event), 0);
	event_teardown(&b);
}

CASE(what_waits_already)
{
	struct event_bench b = event_setup();
	struct pollfd p = { .fd = b.fd, .events = POLLIN };

	echo(&b);
	CHECK_EQ(poll(&p, 1, PATIENCE_MS), 1);
	CHECK_EQ(arm(b.fd, b.event), 0);
	CHECK(counted(b.event) > 0);
	read_all(b.fd, 2);
	event_teardown(&b);
}

/* A completion that a read could not write is there again. */
CASE(what_was_put_back)
{
	struct event_bench b = event_setup();
	struct nfcomms_op op = message(b.ch, "x", 1);
	uint8_t *fixed = pages(NFC_PAGE_SIZE, 0);

	mprotect(fixed, NFC_PAGE_SIZE, PROT_READ);
	CHECK_EQ(arm(b.fd, b.event), 0);
	CHECK_EQ(submit(b.fd, &op, 1), 1);
	await(b.event, 1);
	CHECK_EQ(read(b.fd, fixed, NFCOMMS_COMPLETION_SIZE_FIRST), -1);
	CHECK_EQ(errno, EFAULT);
	CHECK_EQ(counted(b.event), 1);
	read_all(b.fd, 1);
	free_pages(fixed, NFC_PAGE_SIZE);
	op = operation(NFCOMMS_OP_RECEIVE, b.ch);
	op.length = NFCOMMS_PAYLOAD_SIZE;
	CHECK_EQ(outcome(b.fd, &op), NFC_OK);
	event_teardown(&b);
}

CASE(bad_descriptors)
{
	struct event_bench b = event_setup();
	struct nfcomms_eventfd e = { .size = sizeof(e), .fd = b.event }, bad;
	int ends[2];

	CHECK_EQ(pipe(ends), 0);
	CHECK_EQ(arm(b.fd, -1), ENOENT);
	CHECK_EQ(arm(b.fd, -2), EBADF);
	CHECK_EQ(arm(b.fd, 9999), EBADF);
	CHECK_EQ(arm(b.fd, ends[0]), EINVAL);
	CHECK_EQ(arm(b.fd, b.fd), EINVAL);
#define WRONG(field, value, error)     \
	(bad = e, bad.field = (value), \
	 CHECK_EQ(control(b.fd, NFCOMMS_IOC_EVENTFD, &bad), error))
	WRONG(size, sizeof(e) - 1, EINVAL);
	WRONG(size, 1 << 20, E2BIG);
	WRONG(flags, 1, EINVAL);
	WRONG(rsvd[0], 1, EINVAL);
	WRONG(rsvd[4], 1, EINVAL);
	CHECK_EQ(control(b.fd, NFCOMMS_IOC_EVENTFD, NULL), EFAULT);
	close(ends[0]);
	close(ends[1]);
	event_teardown(&b);
}

CASE(one_at_a_time)
{
	struct event_bench b = event_setup();
	int other = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);

	CHECK_EQ(arm(b.fd, b.event), 0);
	CHECK_EQ(arm(b.fd, other), EBUSY);
	CHECK_EQ(arm(b.fd, b.event), EBUSY);
	echo(&b);
	await(b.event, 2);
	CHECK_EQ(counted(other), 0);
	read_all(b.fd, 2);
	CHECK_EQ(arm(b.fd, -1), 0);
	CHECK_EQ(arm(b.fd, other), 0);
	echo(&b);
	await(other, 2);
	CHECK_EQ(counted(b.event), 0);
	read_all(b.fd, 2);
	CHECK_EQ(arm(b.fd, -1), 0);
	echo(&b);
	read_all(b.fd, 2);
	CHECK_EQ(counted(other), 0);
	close(other);
	event_teardown(&b);
}

/* Two clients may share one. */
CASE(closed_in_any_order)
{
	struct event_bench b = event_setup();
	struct event_bench second = b;

	second.fd = client();
	second.ch = program(second.fd, "loopback");
	CHECK_EQ(arm(b.fd, b.event), 0);
	CHECK_EQ(arm(second.fd, b.event), 0);
	echo(&b);
	echo(&second);
	await(b.event, 4);
	close(second.fd);
	CHECK_EQ(counted(b.event), 0);
	read_all(b.fd, 2);
	close(b.event); /* the file has it still */
	echo(&b);
	read_all(b.fd, 2);
	b.event = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	CHECK_EQ(arm(b.fd, b.event), EBUSY);
	CHECK_EQ(arm(b.fd, -1), 0);
	event_teardown(&b);
}

/* One that can count no more keeps nobody. */
CASE(a_full_counter)
{
	struct event_bench b = event_setup();
	uint64_t full = ~0ull - 1;

	CHECK_EQ(write(b.event, &full, sizeof(full)), (ssize_t)sizeof(full));
	CHECK_EQ(arm(b.fd, b.event), 0);
	for (int i = 0; i < 10; i++) {
		echo(&b);
		read_all(b.fd, 2);
	}
	event_teardown(&b);
}

/* Polls of a file whose waking takes longer than the thread of an interrupt may spend. */
CASE(polled_by_the_hundred)
{
	enum { POLLS = 800, ROUNDS = 20 };
	struct epoll_event e = { .events = EPOLLIN | EPOLLET };
	struct event_bench b = event_setup();
	int poll_of[POLLS];

	CHECK_EQ(arm(b.fd, b.event), 0);
	for (int i = 0; i < POLLS; i++) {
		poll_of[i] = epoll_create1(EPOLL_CLOEXEC);
		CHECK(!epoll_ctl(poll_of[i], EPOLL_CTL_ADD, b.fd, &e));
	}
	for (int i = 0; i < ROUNDS && !test_failures(); i++) {
		echo(&b);
		await(b.event, 2);
	}
	CHECK_EQ(epoll_wait(poll_of[POLLS - 1], &e, 1, PATIENCE_MS), 1);
	read_all(b.fd, 2 * ROUNDS);
	echo(&b); /* its waking may outlast the file */
	close(b.fd);
	for (int i = 0; i < POLLS; i++)
		close(poll_of[i]);
	close(b.event);
	check_device();
}

static int echo_in_child(void *argument)
{
	echo(argument);
	return 0;
}

/* A child has the same file, and so the same eventfd. */
CASE(after_a_fork)
{
	struct event_bench b = event_setup();

	CHECK_EQ(arm(b.fd, b.event), 0);
	CHECK_EQ(wait_child(child(echo_in_child, &b)), 0);
	await(b.event, 2);
	read_all(b.fd, 2);
	event_teardown(&b);
}

CASE(a_device_that_goes)
{
	struct event_bench b = event_setup();
	struct nfcomms_op op = operation(NFCOMMS_OP_RECEIVE, b.ch);
	char device[PATH_MAX];
	int late = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);

	op.length = NFCOMMS_PAYLOAD_SIZE;
	CHECK_EQ(arm(b.fd, b.event), 0);
	CHECK_EQ(submit(b.fd, &op, 1), 1);
	find_device(device);
	unbind(device);
	await(b.event, 2); /* the receive's end, and the device's */
	CHECK_EQ(arm(b.fd, -1), 0);
	CHECK_EQ(arm(b.fd, late), 0);
	CHECK_EQ(counted(late), 1);
	close(late);
	close(b.event);
	close(b.fd);
	bind_to(device);
	await_node();
	check_device();
}
