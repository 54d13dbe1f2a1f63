// SPDX-License-Identifier: MIT
/*
 * The driver loses its device, or its module, while clients are at work: every
 * operation ends with an error that says so, nothing hangs, and the next epoch
 * works without a reload.
 *
 *	cycle [CYCLES]	of each kind
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "../../../kmod/uapi/nfcomms_debug.h"
#include "bus.h"
#include "crew.h"
#include "rig.h"

enum {
	CYCLES = 3,
};

static int cycles(void)
{
	return test_argument ? atoi(test_argument) : CYCLES;
}

/* Take the device away from clients at work and bring it back, many times. */
static void check_cycles(const char *kind, void (*away)(const char *device),
			 void (*back)(const char *device))
{
	uint8_t *p = pages(BULK, 1);
	char device[PATH_MAX];
	uint64_t seed = seed_for(kind);

	for (int i = 0; i < cycles() && !test_failures(); i++) {
		struct crew w;

		still_alive();
		progress(i, cycles());
		close(fresh());
		find_device(device);
		w = hire(p);
		usleep(20000 + next_random(&seed) % 50000);
		away(device);
		dismiss(&w);
		check_pins();
		back(device);
		await_node();
		close(fresh());
		check_device();
	}
	free_pages(p, BULK);
}

static void back_rescan(const char *device)
{
	(void)device;
	rescan();
}

/* A function level reset, asked for by another. */
static void away_reset(const char *device)
{
	char path[PATH_MAX + 32];

	snprintf(path, sizeof(path), "%s/reset", device);
	put(path, "1");
}

static void back_nothing(const char *device)
{
	(void)device;
}

CASE(unbound_under_load)
{
	check_cycles("unbind", unbind, bind_to);
}

CASE(removed_under_load)
{
	check_cycles("remove", remove_device, back_rescan);
}

CASE(function_reset_under_load)
{
	check_cycles("reset", away_reset, back_nothing);
}

static void away_ioctl(const char *device)
{
	(void)device;
	close(fresh());
}

CASE(reset_under_load)
{
	check_cycles("ioctl reset", away_ioctl, back_nothing);
}

/* A device goes while a file has its vectors off, and is whole when it is back. */
CASE(a_device_whose_vectors_are_off)
{
	struct nfcomms_interrupt w = { .size = sizeof(w),
				       .flags = NFCOMMS_INTERRUPT_OFF };
	char device[PATH_MAX], switches[PATH_MAX + 32];
	struct nfcomms_info info = { .size = sizeof(info) };
	int fd = fresh(), card = open_registers(O_RDWR);

	find_device(device);
	snprintf(switches, sizeof(switches),
		 "/sys/class/nfcomms/%s/register_access",
		 strrchr(node(), '/') + 1);
	put(switches, "1");
	CHECK_EQ(control(fd, NFCOMMS_IOC_INFO, &info), 0);
	for (w.vector = 0; w.vector < info.vectors; w.vector++, w.count = 0)
		CHECK_EQ(control(card, NFCOMMS_IOC_INTERRUPT, &w), 0);
	close(fd);
	unbind(device);
	w.vector = 0;
	CHECK_EQ(control(card, NFCOMMS_IOC_INTERRUPT, &w), ENODEV);
	bind_to(device);
	await_node();
	close(card); /* after the device that it was of */
	check_device();
}

/* An open file outlives its device: it says so, and can be closed. */
CASE(a_file_whose_device_went)
{
	struct nfcomms_info info = { .size = sizeof(info) };
	struct nfcomms_reset reset = { .size = sizeof(reset) };
	struct nfcomms_health health = { .size = sizeof(health) };
	char device[PATH_MAX];
	int fd = fresh();
	uint32_t ch = program(fd, "hold");
	struct nfcomms_op op = message(ch, "x", 1);
	struct nfcomms_completion c;
	struct pollfd p = { .fd = fd, .events = POLLIN };

	CHECK_EQ(submit(fd, &op, 1), 1);
	find_device(device);
	unbind(device);
	CHECK(reap(fd, &c)); /* what was pending ended */
	CHECK_EQ(c.status, NFC_ERESET);
	CHECK_EQ(poll(&p, 1, PATIENCE_MS), 1);
	CHECK(p.revents & POLLHUP);
	CHECK_EQ(control(fd, NFCOMMS_IOC_INFO, &info), ENODEV);
	CHECK_EQ(control(fd, NFCOMMS_IOC_RESET, &reset), ENODEV);
	CHECK_EQ(submit(fd, &op, 1), -ENODEV);
	CHECK_EQ(call(fd, &op, NULL), ENODEV);
	CHECK_EQ(cancel(fd, taken_id()), ENOENT);
	CHECK_EQ(control(fd, NFCOMMS_IOC_HEALTH, &health), 0);
	CHECK_EQ(health.state, NFCOMMS_STATE_REMOVED);
	CHECK_EQ(read(fd, &c, sizeof(c)), 0); /* the end */
	CHECK_EQ(open(node(), O_RDWR), -1);
	CHECK(errno == ENOENT || errno == ENXIO);
	bind_to(device);
	await_node();
	check_device();
	CHECK_EQ(control(fd, NFCOMMS_IOC_INFO, &info), ENODEV); /* for good */
	close(fd);
}

CASE(unload_is_refused_while_open)
{
	int fd = client();

	CHECK_EQ(unload(), EAGAIN);
	check_alive(fd, program(fd, "loopback"));
	close(fd);
}

/* Clients die, the module goes at once, and comes back. */
CASE(unload_and_load)
{
	unsigned long patience = limit("heartbeat_timeout_ms");
	uint8_t *p = pages(BULK, 1);

	for (int i = 0; i < cycles() && !test_failures(); i++) {
		struct crew w = hire(p);

		still_alive();
		progress(i, cycles());
		usleep(30000);
		fire(&w);
		await_ends(&w);
		CHECK_EQ(unload(), 0);
		check_pins();
		CHECK_EQ(load(), 0);
		await_node();
		CHECK_EQ(limit("heartbeat_timeout_ms"), patience);
		check_device();
	}
	free_pages(p, BULK);
}

/* Suspend to idle as far as devices go, with clients at work. */
CASE(suspend_under_load)
{
	uint8_t *p = pages(BULK, 1);
	struct crew w;

	close(fresh());
	w = hire(p);
	usleep(50000);
	suspend();
	dismiss(&w);
	close(fresh());
	check_device();
	free_pages(p, BULK);
	check_pins();
}
