// SPDX-License-Identifier: MIT
/*
 * Every allocation and every copy that an ioctl makes is made to fail, one after
 * the other (/proc/thread-self/fail-nth, a kernel with fault injection). Each
 * failure must give a clean errno, hold nothing back, and leave a file that
 * works.
 *
 *	failnth [ROUNDS]
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bus.h"
#include "region.h"

enum {
	POINTS_MAX = 2000, /* of one call: more means that it never gets through */
	BULK = 8 << 20, /* several runs of lists, pinned one after the other */
	FEW = 6 * NFC_PAGE_SIZE,
	BATCH = 16,
};

static uint8_t *bulk;
static struct buffer buffer; /* of another device */

/* A call under test: what it needs, and the call, which returns an errno. */
struct scenario {
	const char *name;
	int (*run)(int fd, uint32_t ch);
	const char *program;
	void (*before)(int fd, uint32_t ch);
};

static int by_call(int fd, const struct nfcomms_op *op)
{
	struct nfcomms_completion c = { .status = 0 };
	int error = call(fd, op, &c);

	return error ? error : (int)c.error;
}

static int run_info(int fd, uint32_t ch)
{
	struct nfcomms_info info = { .size = sizeof(info) };

	(void)ch;
	return control(fd, NFCOMMS_IOC_INFO, &info);
}

static int run_health(int fd, uint32_t ch)
{
	struct nfcomms_health health = { .size = sizeof(health) };

	(void)ch;
	return control(fd, NFCOMMS_IOC_HEALTH, &health);
}

static int run_channel(int fd, uint32_t ch)
{
	struct nfcomms_channel info = { .size = sizeof(info), .channel = ch };

	return control(fd, NFCOMMS_IOC_CHANNEL, &info);
}

static int run_send(int fd, uint32_t ch)
{
	struct nfcomms_op op = message(ch, "x", 1);

	return by_call(fd, &op);
}

static int run_send_ind(int fd, uint32_t ch, uint64_t size)
{
	struct nfcomms_op op = transfer(NFCOMMS_OP_SEND_IND, ch, bulk, size);

	return by_call(fd, &op);
}

static int run_send_one_list(int fd, uint32_t ch)
{
	return run_send_ind(fd, ch, FEW);
}

static int run_send_many_lists(int fd, uint32_t ch)
{
	return run_send_ind(fd, ch, BULK);
}

/* The offer is there: pages are pinned by the call, not by a worker. */
static void offer(int fd, uint32_t ch, uint64_t size)
{
	struct nfcomms_op next = operation(NFCOMMS_OP_NEXT, ch);

	ask_source(fd, ch, size, 3);
	CHECK_EQ(outcome(fd, &next), NFC_OK);
}

static void offer_one_list(int fd, uint32_t ch)
{
	offer(fd, ch, FEW);
}

static void offer_many_lists(int fd, uint32_t ch)
{
	offer(fd, ch, BULK);
}

static int run_receive_ind(int fd, uint32_t ch, uint64_t size)
{
	struct nfcomms_op op = transfer(NFCOMMS_OP_RECEIVE_IND, ch, bulk, size);

	return by_call(fd, &op);
}

static int run_receive_one_list(int fd, uint32_t ch)
{
	return run_receive_ind(fd, ch, FEW);
}

static int run_receive_many_lists(int fd, uint32_t ch)
{
	return run_receive_ind(fd, ch, BULK);
}

static void offer_message(int fd, uint32_t ch)
{
	struct nfcomms_op op = message(ch, "x", 1);

	CHECK_EQ(outcome(fd, &op), NFC_OK);
}

static int run_receive(int fd, uint32_t ch)
{
	struct nfcomms_op op = operation(NFCOMMS_OP_RECEIVE, ch);

	op.length = NFCOMMS_PAYLOAD_SIZE;
	return by_call(fd, &op);
}

static int run_close(int fd, uint32_t ch)
{
	struct nfcomms_op op = operation(NFCOMMS_OP_CLOSE, ch);

	op.flags = NFCOMMS_H2D | NFCOMMS_D2H;
	return by_call(fd, &op);
}

static int run_subscribe(int fd, uint32_t ch)
{
	struct nfcomms_op op = operation(NFCOMMS_OP_SUBSCRIBE, 0);

	(void)ch;
	op.target = 15; /* nobody's: refused by the device, not before */
	return by_call(fd, &op);
}

static int run_control(int fd, uint32_t ch)
{
	struct nfcomms_op op = operation(NFCOMMS_OP_CONTROL, 0);
	struct nfcomms_request_memory request = {
		.request = NFCOMMS_CONTROL_MEMORY, .kind = 3
	};

	(void)ch;
	memcpy(op.payload, &request, sizeof(request));
	return by_call(fd, &op);
}

static int run_load(int fd, uint32_t ch)
{
	struct nfcomms_op op = image(bulk, 1 << 16);

	(void)ch;
	return by_call(fd, &op);
}

/* A completion whose copy fails is there for the next read. */
static bool take(int fd, struct nfcomms_completion *c, int *error)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };

	for (uint64_t end = now_ns() + PATIENCE_MS * 1000000ull; now_ns() < end;
	     poll(&p, 1, 100)) {
		if (read(fd, c, sizeof(*c)) == sizeof(*c))
			return true;
		if (errno == EFAULT)
			*error = EFAULT;
		else if (errno != EAGAIN)
			break;
	}
	return CHECK(!"a completion came");
}

static int run_submit(int fd, uint32_t ch)
{
	struct nfcomms_op ops[BATCH];
	struct nfcomms_completion c = { .error = 0 };
	int taken, error = 0;

	for (int i = 0; i < BATCH; i++)
		ops[i] = transfer(NFCOMMS_OP_SEND_IND, ch, bulk, 65536);
	taken = submit(fd, ops, BATCH);
	for (int i = 0; i < taken; i++)
		if (take(fd, &c, &error) && c.error)
			error = c.error;
	if (!error && taken >= 0 && taken < BATCH)
		error = EAGAIN; /* of the one that was not taken */
	return taken < 0 ? -taken : error;
}

static int run_cancel(int fd, uint32_t ch)
{
	(void)ch;
	cancel(fd, 12345);
	return 0;
}

static int run_open(int fd, uint32_t ch)
{
	int other = open(node(), O_RDWR | O_CLOEXEC);

	(void)fd;
	(void)ch;
	if (other < 0)
		return errno;
	close(other);
	return 0;
}

static int run_reset(int fd, uint32_t ch)
{
	struct nfcomms_reset reset = { .size = sizeof(reset) };

	(void)ch;
	return control(fd, NFCOMMS_IOC_RESET, &reset);
}

static int run_register(int fd, uint32_t ch)
{
	int error = registers(fd, bulk, BULK);

	(void)ch;
	CHECK_EQ(error && regions(fd), 0);
	return error;
}

static void registered(int fd, uint32_t ch)
{
	CHECK_EQ(run_register(fd, ch), 0);
}

static int run_send_region(int fd, uint32_t ch)
{
	return run_send_ind(fd, ch, BULK);
}

static int run_unregister(int fd, uint32_t ch)
{
	(void)ch;
	return unregister(fd, bulk);
}

static int run_import(int fd, uint32_t ch)
{
	int error = import(fd, bulk, BUFFER_SIZE, buffer.fd, 0, 0);

	(void)ch;
	CHECK_EQ(error && regions(fd), 0);
	return error;
}

static const struct scenario scenarios[] = {
	{ "info", run_info, "sink", NULL },
	{ "health", run_health, "sink", NULL },
	{ "channel", run_channel, "sink", NULL },
	{ "send", run_send, "sink", NULL },
	{ "send one list", run_send_one_list, "sink", NULL },
	{ "send many lists", run_send_many_lists, "sink", NULL },
	{ "receive", run_receive, "loopback", offer_message },
	{ "receive one list", run_receive_one_list, "source", offer_one_list },
	{ "receive many lists", run_receive_many_lists, "source",
	  offer_many_lists },
	{ "subscribe", run_subscribe, "sink", NULL },
	{ "control", run_control, "sink", NULL },
	{ "load", run_load, "sink", NULL },
	{ "close", run_close, "sink", NULL },
	{ "submit", run_submit, "sink", NULL },
	{ "cancel", run_cancel, "sink", NULL },
	{ "open", run_open, "sink", NULL },
	{ "reset", run_reset, "sink", NULL },
	{ "register", run_register, "sink", NULL },
	{ "unregister", run_unregister, "sink", registered },
	{ "send from a region", run_send_region, "sink", registered },
	{ "import", run_import, "sink", NULL },
};

static bool clean(int error)
{
	switch (error) {
	case 0:
	case ENOMEM:
	case EFAULT:
	case EAGAIN:
	case EIO: /* memory for a mapping */
		return true;
	}
	return false;
}

/* Fail the n-th point of a scenario; false when there is no such point. */
static bool fail_point(const struct scenario *s, unsigned int n)
{
	int fd = fresh(), error;
	uint32_t ch = program(fd, s->program);
	bool reached;

	if (s->before)
		s->before(fd, ch);
	fail_at(n);
	error = s->run(fd, ch);
	reached = failed();
	if (!CHECK(clean(error)))
		printf("%s: point %u: errno %d\n", s->name, n, error);
	if (!reached)
		CHECK_EQ(error, 0);
	if (s->run == run_reset && error)
		CHECK_EQ(run_reset(fd, ch), 0);
	/* The next call works; a source that was asked still offers. */
	check_alive(fd, program(fd, "loopback"));
	close(fd);
	check_pins();
	if (test_failures())
		printf("after: %s, point %u\n", s->name, n);
	return reached;
}

/* Every point of a scenario; how many there are. */
static unsigned int fail_all(const struct scenario *s)
{
	unsigned int n = 1;

	while (n < POINTS_MAX && !test_failures() && fail_point(s, n)) {
		still_alive();
		n++;
	}
	CHECK(n < POINTS_MAX);
	return n - 1;
}

CASE(every_point_fails_once)
{
	long rounds = test_argument ? atol(test_argument) : 1;
	unsigned long injected = 0;

	if (!CHECK(faults_ready()))
		printf("this kernel has no fault injection\n");
	bulk = pages(BULK, 1);
	buffer = buffer_new();
	for (long k = 0; k < rounds && !test_failures(); k++) {
		progress(k, rounds);
		for (size_t i = 0; i < sizeof(scenarios) / sizeof(*scenarios);
		     i++) {
			unsigned int n = fail_all(&scenarios[i]);

			if (k == 0)
				printf("%-18s %u points\n", scenarios[i].name,
				       n);
			injected += n;
		}
	}
	printf("%lu faults injected\n", injected);
	buffer_free(&buffer);
	free_pages(bulk, BULK);
}
