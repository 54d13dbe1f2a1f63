// SPDX-License-Identifier: MIT
/*
 * Operations by an io_uring: what a CALL does, SQEs that are wrong, and rings, files,
 * threads, processes and devices that end under them.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bus.h"
#include "region.h"
#include "uring.h"

enum {
	MANY = 16, /* operations that wait */
	LARGE = 4 << 20,
};

#define COUNT(a) (sizeof(a) / sizeof(*(a)))

/* A client with a loopback channel, and a ring. */
struct ring_bench {
	int fd;
	uint32_t ch;
	struct uring u;
};

static struct ring_bench ring_setup(void)
{
	struct ring_bench b = { .fd = fresh() };

	CHECK(has_uring(b.fd));
	b.ch = program(b.fd, "loopback");
	b.u = ring(64, 0);
	return b;
}

static void ring_teardown(struct ring_bench *b)
{
	check_alive(b->fd, b->ch);
	ring_close(&b->u);
	close(b->fd);
	check_pins();
}

static struct nfcomms_op receive(uint32_t ch)
{
	struct nfcomms_op op = operation(NFCOMMS_OP_RECEIVE, ch);

	op.length = NFCOMMS_PAYLOAD_SIZE;
	return op;
}

/* Operations that wait for messages which never come. */
static void wait_many(struct uring *u, int fd, uint32_t ch)
{
	struct nfcomms_op op = operation(NFCOMMS_OP_ARM, ch);

	op.flags = NFCOMMS_D2H;
	for (int i = 0; i < MANY; i++) {
		op.user_data = i;
		sqe_call(u, fd, &op, NULL);
		CHECK_EQ(ring_enter(u, 0), 1);
	}
}

static uint32_t operations(int fd)
{
	struct nfcomms_health h = { .size = sizeof(h) };

	CHECK_EQ(control(fd, NFCOMMS_IOC_HEALTH, &h), 0);
	return h.operations;
}

/* All of a file's operations end, sooner or later. */
static void await_none(int fd)
{
	uint64_t until = now_ns() + PATIENCE_MS * 1000000ull;

	while (operations(fd) && now_ns() < until)
		usleep(1000);
	CHECK_EQ(operations(fd), 0);
}

/* A kernel that cannot tell the driver to end its commands is offered none. */
CASE(offered_where_it_can_be_ended)
{
	int fd = fresh();
	struct uring u = ring(4, 0);
	struct nfcomms_op op = message(program(fd, "sink"), "x", 1);

	CHECK_EQ(ring_call(&u, fd, &op, NULL, NULL),
		 has_uring(fd) ? NFC_OK : -EOPNOTSUPP);
	ring_close(&u);
	close(fd);
	check_device();
}

CASE(messages)
{
	struct ring_bench b = ring_setup();
	struct nfcomms_op op = operation(NFCOMMS_OP_CONTROL, 0);
	struct nfc_control start = { .op = NFC_CONTROL_START,
				     .b = 1,
				     .name = "loopback" };
	struct pollfd p = { .fd = b.fd, .events = POLLIN };
	struct nfcomms_completion c;
	uint64_t value;

	memcpy(op.payload, &start, sizeof(start));
	CHECK_EQ(ring_call(&b.u, b.fd, &op, &c, NULL), NFC_OK);
	memcpy(&start, c.payload, sizeof(start));
	op = operation(NFCOMMS_OP_SUBSCRIBE, 0);
	op.length = start.b;
	CHECK_EQ(ring_call(&b.u, b.fd, &op, NULL, &value), NFC_OK);
	op = message((uint32_t)value, "hello", 5);
	CHECK_EQ(ring_call(&b.u, b.fd, &op, NULL, NULL), NFC_OK);
	op = receive((uint32_t)value);
	memset(&c, 0xff, sizeof(c));
	CHECK_EQ(ring_call(&b.u, b.fd, &op, &c, &value), NFC_OK);
	CHECK_EQ(value, 5);
	CHECK_EQ(c.length, 5);
	CHECK(!memcmp(c.payload, "hello", 5));
	/* What did not happen is in the flags. */
	op.flags = NFCOMMS_NOWAIT;
	CHECK_EQ(ring_call(&b.u, b.fd, &op, &c, NULL),
		 NFC_EWITHDRAWN | NFCOMMS_NOT_NOW << 16);
	CHECK_EQ(poll(&p, 1, 0), 0); /* nothing is to be read */
	CHECK_EQ(operations(b.fd), 0);
	ring_teardown(&b);
}

/* Send bytes to the loopback and take them back, both at once. */
static void move(struct ring_bench *b, uint8_t *out, uint8_t *in, size_t size,
		 uint32_t flags)
{
	struct nfcomms_op send = transfer(NFCOMMS_OP_SEND_IND, b->ch, out, size);
	struct nfcomms_op take = transfer(NFCOMMS_OP_RECEIVE_IND, b->ch, in,
					  size);
	struct answer a;

	for (size_t i = 0; i < size; i++)
		out[i] = pattern(size, i);
	memset(in, 0, size);
	sqe_call(&b->u, b->fd, &take, NULL)->uring_cmd_flags = flags;
	sqe_call(&b->u, b->fd, &send, NULL)->uring_cmd_flags = flags;
	for (int i = 0; i < 2; i++) {
		REQUIRE(ring_reap(&b->u, &a));
		if (!CHECK_EQ(a.res, NFC_OK) || !CHECK_EQ(a.value, size))
			printf("%zu bytes, flags %u\n", size, flags);
	}
	CHECK(!memcmp(out, in, size));
}

static const size_t sizes[] = { 1,     56,     4096,	4097,
				65536, 100001, 2 << 20, LARGE - NFC_PAGE_SIZE };

CASE(transfers)
{
	struct ring_bench b = ring_setup();
	uint8_t *p = pages(2 * LARGE, 0);

	for (size_t i = 0; i < COUNT(sizes); i++)
		move(&b, p + 100, p + LARGE + 7, sizes[i], 0);
	ring_teardown(&b);
	free_pages(p, 2 * LARGE);
}

/* What the ring has pinned is not pinned once more, nor is it unpinned. */
CASE(registered_buffers)
{
	struct ring_bench b = ring_setup();
	uint8_t *p = pages(2 * LARGE, 0);
	uint64_t before = pins(b.fd);
	long held;

	CHECK_EQ(ring_buffer(&b.u, p, 2 * LARGE), 0);
	held = pinned();
	CHECK(held > 0);
	for (size_t i = 0; i < COUNT(sizes); i++)
		move(&b, p + 100, p + LARGE + 7, sizes[i],
		     IORING_URING_CMD_FIXED);
	CHECK_EQ(pins(b.fd), before);
	CHECK_EQ(pinned(), held);
	ring_teardown(&b);
	free_pages(p, 2 * LARGE);
}

/* Memory of a region is used as it is by any other way in. */
CASE(regions_serve_too)
{
	struct ring_bench b = ring_setup();
	uint8_t *p = pages(2 * LARGE, 0);
	uint64_t before = pins(b.fd);

	CHECK_EQ(registers(b.fd, p, 2 * LARGE), 0);
	for (size_t i = 0; i < COUNT(sizes); i++)
		move(&b, p + 100, p + LARGE + 7, sizes[i], 0);
	CHECK_EQ(pins(b.fd), before);
	ring_teardown(&b);
	free_pages(p, 2 * LARGE);
}

/* ---- SQEs that are wrong ---- */

static void check_wrong(struct ring_bench *b, const char *name, int error)
{
	struct answer a;

	REQUIRE(ring_reap(&b->u, &a));
	if (!CHECK_EQ(a.res, -error))
		printf("%s: %d, want %d\n", name, a.res, -error);
	CHECK_EQ(operations(b->fd), 0);
}

CASE(wrong_calls)
{
	struct ring_bench b = ring_setup();
	struct nfcomms_op op = message(b.ch, "x", 1), bad = op;
	struct nfcomms_completion c;
	struct nfcomms_call ok = call_for(&op, &c), t;
	uint8_t more[80] = { 0 };

	bad.rsvd[3] = 1;
#define WRONG(field, value, error)                                 \
	(t = ok, t.field = (value),                                \
	 sqe_command(&b.u, b.fd, NFCOMMS_IOC_CALL, &t, sizeof(t)), \
	 check_wrong(&b, #field, error))
	WRONG(size, 0, EINVAL);
	WRONG(size, NFCOMMS_CALL_SIZE_FIRST - 1, EINVAL);
	WRONG(size, 81, E2BIG);
	WRONG(size, ~0u, E2BIG);
	WRONG(flags, 1, EINVAL);
	WRONG(rsvd[1], 1, EINVAL);
	WRONG(op, 0, EFAULT);
	WRONG(op, 0xffff888000000000ull, EFAULT);
	WRONG(op, (uintptr_t)&bad, EINVAL);
	WRONG(op_size, 64, EINVAL);
	WRONG(op_size, 1 << 20, E2BIG);
	WRONG(completion, 0, EINVAL); /* with a size */
	WRONG(completion, 0xffff888000000000ull, EFAULT);
	WRONG(completion, 8, EFAULT);
	WRONG(completion_size, 0, EINVAL);
	WRONG(completion_size, NFCOMMS_COMPLETION_SIZE_FIRST - 1, EINVAL);
	WRONG(completion_size, 1 << 20, E2BIG);
	ok.size = sizeof(more);
	memcpy(more, &ok, sizeof(ok));
	more[79] = 1;
	sqe_command(&b.u, b.fd, NFCOMMS_IOC_CALL, more, sizeof(more));
	check_wrong(&b, "unknown tail", E2BIG);
	op.channel = 54321;
	sqe_call(&b.u, b.fd, &op, NULL);
	check_wrong(&b, "channel", ENOENT);
	ring_teardown(&b);
}

CASE(wrong_commands)
{
	static const uint32_t numbers[] = { 0, NFCOMMS_IOC_SUBMIT,
					    NFCOMMS_IOC_RESET, NFCOMMS_IOC_INFO,
					    ~0u };
	struct ring_bench b = ring_setup();
	struct nfcomms_op op = message(b.ch, "x", 1);
	struct nfcomms_call call = call_for(&op, NULL);
	struct nfcomms_cancel cancel = { .size = sizeof(cancel),
					 .user_data = 4711 };
	struct uring narrow = plain_ring(4, 0);

	for (size_t i = 0; i < COUNT(numbers); i++) {
		sqe_command(&b.u, b.fd, numbers[i], &call, sizeof(call));
		check_wrong(&b, "number", ENOTTY);
	}
	sqe_command(&b.u, b.fd, NFCOMMS_IOC_CANCEL, &cancel, sizeof(cancel));
	check_wrong(&b, "cancel of nothing", ENOENT);
	cancel.flags = 1;
	sqe_command(&b.u, b.fd, NFCOMMS_IOC_CANCEL, &cancel, sizeof(cancel));
	check_wrong(&b, "cancel with flags", EINVAL);
	sqe_call(&b.u, b.fd, &op, NULL)->__pad1 = 1;
	check_wrong(&b, "padding", EINVAL);
	sqe_call(&b.u, b.fd, &op, NULL)->uring_cmd_flags = 1 << 30;
	check_wrong(&b, "the kernel's own flag", EINVAL);
	CHECK_EQ(ring_call(&narrow, b.fd, &op, NULL, NULL), -EOPNOTSUPP);
	ring_close(&narrow);
	ring_teardown(&b);
}

CASE(wrong_buffers)
{
	struct ring_bench b = ring_setup();
	uint8_t *p = pages(3 * NFC_PAGE_SIZE, 0);
	struct nfcomms_op op = transfer(NFCOMMS_OP_SEND_IND, b.ch, p, 1);

#define FIXED(what, error)                                                          \
	(sqe_call(&b.u, b.fd, &op, NULL)->uring_cmd_flags = IORING_URING_CMD_FIXED, \
	 check_wrong(&b, what, error))
	FIXED("none is registered", EFAULT);
	CHECK_EQ(ring_buffer(&b.u, p + NFC_PAGE_SIZE, NFC_PAGE_SIZE), 0);
	FIXED("before it", EFAULT);
	op.address = (uintptr_t)p + 2 * NFC_PAGE_SIZE - 1;
	op.length = 2;
	FIXED("across its end", EFAULT);
	op.length = ~0ull;
	FIXED("more than there is", EFAULT);
	op = message(b.ch, "x", 1);
	FIXED("a message", EINVAL);
	ring_teardown(&b);
	free_pages(p, 3 * NFC_PAGE_SIZE);
}

CASE(rights_and_bounds)
{
	struct ring_bench b = ring_setup();
	int looks = open(node(), O_RDONLY | O_CLOEXEC);
	struct nfcomms_op op = message(b.ch, "x", 1);

	CHECK_EQ(ring_call(&b.u, looks, &op, NULL, NULL), -EACCES);
	set_limit("max_operations", "4");
	op = operation(NFCOMMS_OP_ARM, b.ch);
	op.flags = NFCOMMS_D2H;
	for (int i = 0; i < 4; i++)
		sqe_call(&b.u, b.fd, &op, NULL);
	CHECK_EQ(ring_enter(&b.u, 0), 4);
	CHECK_EQ(ring_call(&b.u, b.fd, &op, NULL, NULL), -EBUSY);
	set_limit("max_operations", "32768");
	CHECK_EQ(cancel(b.fd, 0), 0);
	for (int i = 0; i < 4; i++) {
		struct answer a;

		REQUIRE(ring_reap(&b.u, &a));
		CHECK_EQ(a.res, NFC_EWITHDRAWN);
	}
	close(looks);
	ring_teardown(&b);
}

/* ---- what ends under them ---- */

CASE(taken_back_one_by_one)
{
	struct ring_bench b = ring_setup();
	struct nfcomms_cancel c = { .size = sizeof(c) };
	struct answer a;

	wait_many(&b.u, b.fd, b.ch);
	for (int i = 0; i < MANY; i++) {
		int zeros = 0;

		c.user_data = i;
		sqe_command(&b.u, b.fd, NFCOMMS_IOC_CANCEL, &c, sizeof(c));
		for (int k = 0; k < 2; k++) {
			REQUIRE(ring_reap(&b.u, &a));
			zeros += a.res == 0;
			CHECK(a.res == 0 || a.res == NFC_EWITHDRAWN);
		}
		CHECK_EQ(zeros, 1);
	}
	ring_teardown(&b);
}

CASE(a_ring_that_is_closed)
{
	struct ring_bench b = ring_setup();
	uint8_t *p = pages(LARGE, 1);
	uint32_t hold = program(b.fd, "hold");
	struct nfcomms_op op = transfer(NFCOMMS_OP_SEND_IND, hold, p, LARGE);

	for (int i = 0; i < 20 && !test_failures(); i++) {
		wait_many(&b.u, b.fd, b.ch);
		sqe_call(&b.u, b.fd, &op, NULL);
		CHECK_EQ(ring_enter(&b.u, 0), 1);
		ring_close(&b.u);
		await_none(b.fd);
		b.u = ring(64, 0);
	}
	ring_teardown(&b);
	free_pages(p, LARGE);
}

/* The ring has the file until its operations have ended. */
CASE(a_file_that_is_closed)
{
	struct ring_bench b = ring_setup();
	struct nfcomms_op take = receive(b.ch), send = message(b.ch, "late", 4);
	struct nfcomms_completion c;
	struct answer a;

	sqe_call(&b.u, b.fd, &take, &c);
	sqe_call(&b.u, b.fd, &send, NULL);
	CHECK_EQ(ring_enter(&b.u, 0), 2);
	close(b.fd);
	for (int i = 0; i < 2; i++) {
		REQUIRE(ring_reap(&b.u, &a));
		CHECK_EQ(a.res, NFC_OK);
	}
	CHECK(!memcmp(c.payload, "late", 4));
	ring_close(&b.u);
	check_device();
	check_pins();
}

/* A thread submits and ends; what it asked for comes all the same. */
static void *submit_and_end(void *argument)
{
	ring_enter(argument, 0);
	return NULL;
}

CASE(a_thread_that_ends)
{
	struct ring_bench b = ring_setup();
	struct nfcomms_op op = receive(b.ch);
	struct nfcomms_completion c = { .length = 0 };
	struct answer a;
	pthread_t t;

	sqe_call(&b.u, b.fd, &op, &c)->user_data = 7;
	pthread_create(&t, NULL, submit_and_end, &b.u);
	pthread_join(t, NULL);
	op = message(b.ch, "to the dead", 11);
	CHECK_EQ(outcome(b.fd, &op), NFC_OK);
	REQUIRE(ring_reap(&b.u, &a));
	CHECK_EQ(a.user_data, 7);
	CHECK_EQ(a.res, NFC_OK);
	CHECK_EQ(c.length, 11);
	CHECK(!memcmp(c.payload, "to the dead", 11));
	ring_teardown(&b);
}

/* Use a descriptor that was inherited, by a ring of one's own. */
static int use_passed(void *argument)
{
	struct ring_bench *b = argument;
	struct uring u = ring(8, 0);
	struct nfcomms_op op = message(b->ch, "child", 5);
	struct nfcomms_completion c;
	int bad = ring_call(&u, b->fd, &op, NULL, NULL) != NFC_OK;

	op = receive(b->ch);
	bad |= ring_call(&u, b->fd, &op, &c, NULL) != NFC_OK;
	return bad | (memcmp(c.payload, "child", 5) ? 2 : 0);
}

/* Leave operations behind in the ring that was inherited. */
static int leave_behind(void *argument)
{
	struct ring_bench *b = argument;
	struct nfcomms_completion c;
	struct nfcomms_op op = receive(b->ch);

	sqe_call(&b->u, b->fd, &op, &c);
	return ring_enter(&b->u, 0) != 1;
}

CASE(another_process)
{
	struct ring_bench b = ring_setup();
	struct nfcomms_op op = message(b.ch, "x", 1);
	struct answer a;

	CHECK_EQ(wait_child(child(use_passed, &b)), 0);
	CHECK_EQ(wait_child(child(leave_behind, &b)), 0);
	CHECK_EQ(outcome(b.fd, &op), NFC_OK);
	REQUIRE(ring_reap(&b.u, &a));
	CHECK_EQ(a.res, -EFAULT); /* there is nobody whose memory it could be */
	ring_teardown(&b);
}

/* Wait for ever in a ring; the parent kills. */
static int wait_for_ever(void *argument)
{
	struct ring_bench *b = argument;
	uint8_t *p = pages(LARGE, 1);
	struct uring u = ring(64, 0);
	int fd = client();
	struct nfcomms_op op = transfer(NFCOMMS_OP_SEND_IND,
					program(fd, "hold"), p, LARGE);

	wait_many(&u, fd, program(fd, "loopback"));
	sqe_call(&u, fd, &op, NULL);
	ring_enter(&u, 0);
	if (b->ch)
		execl("/proc/self/exe", "exec", "-n", "no_such_case", NULL);
	kill(getpid(), SIGKILL);
	return 1;
}

CASE(processes_that_are_killed)
{
	struct ring_bench b = { .fd = fresh() };

	for (int i = 0; i < 5; i++)
		CHECK_EQ(wait_child(child(wait_for_ever, &b)), SIGKILL);
	check_pins();
	check_device();
	close(b.fd);
}

CASE(processes_that_exec)
{
	struct ring_bench b = { .fd = fresh(), .ch = 1 };

	CHECK(WIFEXITED(wait_child(child(wait_for_ever, &b))));
	check_pins();
	check_device();
	close(b.fd);
}

CASE(a_device_that_is_reset)
{
	struct ring_bench b = ring_setup();
	struct nfcomms_op op;
	struct answer a;
	int fd = client();

	wait_many(&b.u, b.fd, b.ch);
	CHECK_EQ(reset(fd, (struct nfcomms_reset){ .size = 0 }), 0);
	for (int i = 0; i < MANY; i++) {
		REQUIRE(ring_reap(&b.u, &a));
		CHECK_EQ(a.res, NFC_ERESET);
	}
	op = receive(b.ch);
	CHECK_EQ(ring_call(&b.u, b.fd, &op, NULL, NULL), NFC_ERESET);
	b.ch = program(b.fd, "loopback");
	close(fd);
	ring_teardown(&b);
}

CASE(a_device_that_is_removed)
{
	struct ring_bench b = ring_setup();
	char device[PATH_MAX];
	struct nfcomms_op op;
	struct answer a;

	find_device(device);
	wait_many(&b.u, b.fd, b.ch);
	unbind(device);
	for (int i = 0; i < MANY; i++) {
		REQUIRE(ring_reap(&b.u, &a));
		CHECK_EQ(a.res, NFC_ERESET);
	}
	op = receive(b.ch);
	CHECK_EQ(ring_call(&b.u, b.fd, &op, NULL, NULL), -ENODEV);
	CHECK_EQ(unload(), EWOULDBLOCK); /* the file is open */
	close(b.fd);
	ring_close(&b.u);
	bind_to(device);
	await_node();
	check_device();
}

/* The last that has the file is a ring: once it is closed the module may go. */
CASE(a_module_that_is_unloaded)
{
	struct ring_bench b = ring_setup();
	uint64_t until = now_ns() + PATIENCE_MS * 1000000ull;

	wait_many(&b.u, b.fd, b.ch);
	close(b.fd);
	CHECK_EQ(unload(), EWOULDBLOCK);
	ring_close(&b.u);
	while (unload() && now_ns() < until)
		usleep(1000);
	CHECK_EQ(load(), 0);
	await_node();
	check_device();
}

/* ---- other ways to have a ring work ---- */

static void check_echo(struct uring *u, int fd, uint32_t ch, uint8_t flags)
{
	struct nfcomms_op send = message(ch, "echo", 4), take = receive(ch);
	struct nfcomms_completion c;
	struct answer a;

	for (int i = 0; i < 50; i++) {
		sqe_call(u, fd, &send, NULL)->flags = flags;
		sqe_call(u, fd, &take, &c)->flags = flags & ~IOSQE_IO_LINK;
		for (int k = 0; k < 2; k++) {
			REQUIRE(ring_reap(u, &a));
			CHECK_EQ(a.res, NFC_OK);
		}
		CHECK(!memcmp(c.payload, "echo", 4));
	}
}

CASE(links_and_workers)
{
	struct ring_bench b = ring_setup();

	check_echo(&b.u, b.fd, b.ch, IOSQE_IO_LINK);
	check_echo(&b.u, b.fd, b.ch, IOSQE_ASYNC);
	check_echo(&b.u, b.fd, b.ch, IOSQE_IO_DRAIN);
	ring_teardown(&b);
}

CASE(a_thread_of_the_kernel_submits)
{
	struct ring_bench b = ring_setup();
	struct uring u = ring(8, IORING_SETUP_SQPOLL);

	for (int i = 0; i < 20; i++) {
		struct nfcomms_op send = message(b.ch, "poll", 4);
		struct nfcomms_op take = receive(b.ch);
		struct nfcomms_completion c;
		struct answer a;

		sqe_call(&u, b.fd, &send, NULL);
		REQUIRE(ring_wake(&u) && ring_reap(&u, &a));
		CHECK_EQ(a.res, NFC_OK);
		sqe_call(&u, b.fd, &take, &c);
		REQUIRE(ring_wake(&u) && ring_reap(&u, &a));
		CHECK_EQ(a.res, NFC_OK);
		CHECK(!memcmp(c.payload, "poll", 4));
	}
	wait_many(&b.u, b.fd, b.ch);
	sqe_call(&u, b.fd,
		 &(struct nfcomms_op){ .opcode = NFCOMMS_OP_RECEIVE,
				       .channel = b.ch,
				       .length = 56 },
		 NULL);
	CHECK(ring_wake(&u));
	ring_close(&u);
	ring_close(&b.u);
	await_none(b.fd);
	b.u = ring(4, 0);
	ring_teardown(&b);
}
