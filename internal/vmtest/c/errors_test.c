// SPDX-License-Identifier: MIT
/*
 * Errors of the bus, which the kernel injects into the root port above the
 * device (CONFIG_PCIEAER_INJECT): what can be corrected, and what concerned one
 * transaction, changes nothing; a link that was lost and came back ends the epoch
 * as a reset does.
 */
#define _GNU_SOURCE
#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "bus.h"
#include "rig.h"

enum {
	SIZE = 4 << 20,
	TIMES = 5,
};

/* Have the port above the node's device report an error. */
static void inject(uint32_t uncorrectable, uint32_t correctable)
{
	char device[PATH_MAX];

	find_device(device);
	inject_error(device, uncorrectable, correctable);
}

static uint32_t epoch(int fd)
{
	struct nfcomms_info info = { .size = sizeof(info) };

	CHECK_EQ(control(fd, NFCOMMS_IOC_INFO, &info), 0);
	return info.epoch;
}

/* The kernel has dealt with an error, as its log says. */
static void await_log(const char *text)
{
	uint64_t end = now_ns() + PATIENCE_MS * 1000000ull;

	while (!log_says(text) && now_ns() < end)
		usleep(10000);
	CHECK(log_says(text));
}

/* An error after which a blocked call still waits, and the epoch continues. */
static void check_harmless(uint32_t uncorrectable, uint32_t correctable,
			   const char *logged)
{
	int fd = fresh();
	uint32_t ch = program(fd, "loopback"), before = epoch(fd);
	struct nfcomms_op op = operation(NFCOMMS_OP_RECEIVE, ch), send;
	struct pollfd p = { .fd = fd, .events = POLLIN };
	struct nfcomms_completion c;

	op.length = NFCOMMS_PAYLOAD_SIZE;
	CHECK_EQ(submit(fd, &op, 1), 1);
	inject(uncorrectable, correctable);
	await_log(logged);
	CHECK_EQ(poll(&p, 1, 0), 0);
	CHECK_EQ(epoch(fd), before);
	send = message(ch, "x", 1);
	CHECK_EQ(outcome(fd, &send), NFC_OK);
	CHECK(reap(fd, &c));
	CHECK_EQ(c.status, NFC_OK);
	close(fd);
	check_pins();
}

CASE(a_corrected_error)
{
	check_harmless(0, BAD_TLP, "Corrected");
}

CASE(an_error_of_one_transaction)
{
	check_harmless(COMPLETION_TIMEOUT, 0, "device recovery successful");
}

/* A transfer is under way when the link fails. */
static void check_fatal(uint8_t *p)
{
	int fd = fresh();
	uint32_t ch = program(fd, "hold"), before = epoch(fd);
	struct nfcomms_op op = transfer(NFCOMMS_OP_SEND_IND, ch, p, SIZE);
	uint64_t end = now_ns() + PATIENCE_MS * 1000000ull;
	struct nfcomms_completion c;

	CHECK_EQ(submit(fd, &op, 1), 1);
	inject(LINK_PROTOCOL, 0);
	CHECK(reap(fd, &c));
	CHECK_EQ(c.status, NFC_ERESET);
	while (epoch(fd) == before && now_ns() < end)
		usleep(10000);
	CHECK(epoch(fd) != before);
	check_pins();
	check_device();
	close(fd);
}

CASE(a_link_that_came_back)
{
	uint8_t *p = pages(SIZE, 1);

	for (int i = 0; i < TIMES && !test_failures(); i++)
		check_fatal(p);
	free_pages(p, SIZE);
}

/*
 * A reset of the function while its link recovers has to wait for that, and
 * then saves and restores a config space that the bus has emptied.
 */
static void check_reset_behind_the_link(void)
{
	uint64_t end = now_ns() + PATIENCE_MS * 1000000ull;
	char path[PATH_MAX + sizeof("/reset")];
	int fd = fresh();

	empty_log();
	inject(LINK_PROTOCOL, 0);
	while (state(fd) == NFCOMMS_STATE_READY && now_ns() < end)
		usleep(100);
	find_device(path);
	put(strcat(path, "/reset"), "1");
	await_log("device recovery ");
	close(fd);
	close(fresh());
	check_device();
}

CASE(a_function_reset_behind_the_link)
{
	for (int i = 0; i < TIMES && !test_failures(); i++)
		check_reset_behind_the_link();
}
