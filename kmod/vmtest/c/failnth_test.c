// SPDX-License-Identifier: MIT
/*
 * Every allocation and every copy that an ioctl makes is made to fail, one after
 * the other (/proc/thread-self/fail-nth, a kernel with fault injection). Each
 * failure must give a clean errno, hold nothing back, and leave a file that
 * works.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "rig.h"

enum {
	POINTS_MAX = 2000, /* of one call: more means that it never gets through */
	BULK = 8 << 20,
};

static uint8_t *bulk;
static unsigned long injected;
static int points = -1; /* open before anything may fail */

static bool put(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC);
	bool ok = fd >= 0 && write(fd, text, strlen(text)) > 0;

	if (fd >= 0)
		close(fd);
	return ok;
}

/* What is failed at all: also what may sleep, pages of any order, copies. */
static bool prepare(void)
{
	points = open("/proc/thread-self/fail-nth", O_RDWR | O_CLOEXEC);
	return points >= 0 &&
	       put("/sys/kernel/debug/failslab/ignore-gfp-wait", "N") &&
	       put("/sys/kernel/debug/fail_page_alloc/ignore-gfp-wait", "N") &&
	       put("/sys/kernel/debug/fail_page_alloc/ignore-gfp-highmem", "N") &&
	       put("/sys/kernel/debug/fail_page_alloc/min-order", "0");
}

/* Fail the n-th point of this thread from now on; 0: none. */
static void arm(unsigned int n)
{
	char text[16];
	int length = snprintf(text, sizeof(text), "%u", n);

	CHECK(pwrite(points, text, length, 0) == length);
}

/* True if the point was reached, and so something failed. */
static bool disarm(void)
{
	char text[16] = { 0 };

	CHECK(pread(points, text, sizeof(text) - 1, 0) > 0);
	arm(0);
	return atoi(text) == 0;
}

/* A call under test, with what it needs; returns errno or the op's error. */
struct scenario {
	const char *name;
	int (*run)(int fd, uint32_t ch);
	const char *program;
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
	return run_send_ind(fd, ch, 6 * NFC_PAGE_SIZE);
}

static int run_send_many_lists(int fd, uint32_t ch)
{
	return run_send_ind(fd, ch, BULK);
}

static int run_receive_ind(int fd, uint32_t ch)
{
	uint64_t words[2] = { 1 << 20, 3 };
	struct nfcomms_op ask = message(ch, words, sizeof(words));
	struct nfcomms_op op = transfer(NFCOMMS_OP_RECEIVE_IND, ch, bulk,
					1 << 20);
	int error = by_call(fd, &ask);

	return error ? error : by_call(fd, &op);
}

static int run_subscribe(int fd, uint32_t ch)
{
	struct nfcomms_op op = operation(NFCOMMS_OP_SUBSCRIBE, 0);

	(void)ch;
	op.length = 15; /* nobody's: refused by the device, not before */
	return by_call(fd, &op);
}

static int run_control(int fd, uint32_t ch)
{
	struct nfcomms_op op = operation(NFCOMMS_OP_CONTROL, 0);
	struct nfc_control request = { .op = NFC_CONTROL_MEMORY, .a = 3 };

	(void)ch;
	memcpy(op.payload, &request, sizeof(request));
	return by_call(fd, &op);
}

static int run_load(int fd, uint32_t ch)
{
	struct nfcomms_op op = transfer(NFCOMMS_OP_CONTROL, 0, bulk, 1 << 16);
	struct nfc_control request = { .op = NFC_CONTROL_LOAD, .a = 1 << 16 };

	(void)ch;
	memcpy(op.payload, &request, sizeof(request));
	return by_call(fd, &op);
}

static int run_submit(int fd, uint32_t ch)
{
	struct nfcomms_op ops[16];
	struct nfcomms_completion c;
	int taken, error = 0;

	for (int i = 0; i < 16; i++)
		ops[i] = transfer(NFCOMMS_OP_SEND_IND, ch, bulk, 65536);
	taken = submit(fd, ops, 16);
	for (int i = 0; i < taken; i++)
		if (reap(fd, &c) && c.error)
			error = c.error;
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

static const struct scenario scenarios[] = {
	{ "info", run_info, "sink" },
	{ "health", run_health, "sink" },
	{ "channel", run_channel, "sink" },
	{ "send", run_send, "sink" },
	{ "send, one list", run_send_one_list, "sink" },
	{ "send, many lists", run_send_many_lists, "sink" },
	{ "receive", run_receive_ind, "source" },
	{ "subscribe", run_subscribe, "sink" },
	{ "control", run_control, "sink" },
	{ "load", run_load, "sink" },
	{ "submit", run_submit, "sink" },
	{ "cancel", run_cancel, "sink" },
	{ "open", run_open, "sink" },
	{ "reset", run_reset, "sink" },
};

static bool clean(int error)
{
	switch (error) {
	case 0:
	case ENOMEM:
	case EFAULT:
	case EAGAIN:
	case EIO: /* RESET of a device that could not come back */
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

	arm(n);
	error = s->run(fd, ch);
	reached = disarm();
	if (!CHECK(clean(error)))
		printf("%s: point %u: errno %d\n", s->name, n, error);
	if (!reached)
		CHECK_EQ(error, 0);
	/* The next call works; a source that was asked still offers. */
	check_alive(fd, program(fd, "loopback"));
	close(fd);
	check_pins();
	return reached;
}

CASE(every_point_fails_once)
{
	if (!CHECK(prepare()))
		printf("this kernel has no fault injection\n");
	bulk = pages(BULK, 1);
	for (size_t i = 0; i < sizeof(scenarios) / sizeof(*scenarios); i++) {
		unsigned int n = 1;

		while (n < POINTS_MAX && !test_failures() &&
		       fail_point(&scenarios[i], n))
			n++;
		CHECK(n < POINTS_MAX);
		printf("%-16s %u points\n", scenarios[i].name, n - 1);
		injected += n - 1;
	}
	printf("%lu faults injected\n", injected);
	free_pages(bulk, BULK);
}
