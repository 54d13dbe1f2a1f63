// SPDX-License-Identifier: MIT
/*
 * The module is unloaded and loaded again while clients come, work, die and come again:
 * each unload succeeds in the end, and no page stays pinned.
 *
 *	unload [UNLOADS]
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <unistd.h>

#include "bus.h"
#include "region.h"
#include "rig.h"

enum {
	CLIENTS = 20,
	UNLOADS = 2,
	SIZE = 256 << 10,
	PAUSE_US = 20000, /* of a client between two files, to begin with */
	PAUSE_MAX_US = 4000000,
};

/* The state that parent and clients share. */
struct shared {
	volatile bool over;
	volatile unsigned int pause_us;
	volatile unsigned long served; /* files that were open, roughly */
};

/* ---- ways to use a file; each leaves all to the close ---- */

static void messages(int fd, uint8_t *p)
{
	(void)p;
	check_alive(fd, program(fd, "loopback"));
}

static void registered(int fd, uint8_t *p)
{
	uint32_t ch = program(fd, "loopback");

	CHECK_EQ(registers(fd, p, SIZE), 0);
	CHECK_EQ(send_at(fd, ch, p, SIZE).status, NFC_OK);
	CHECK_EQ(receive_at(fd, ch, p, SIZE).status, NFC_OK);
}

static void left_pending(int fd, uint8_t *p)
{
	struct nfcomms_op op = transfer(NFCOMMS_OP_SEND_IND,
					program(fd, "hold"), p, SIZE);

	CHECK_EQ(submit(fd, &op, 1), 1);
}

static void counted(int fd, uint8_t *p)
{
	struct nfcomms_eventfd e = {
		.size = sizeof(e),
		.fd = eventfd(0, EFD_CLOEXEC),
	};
	uint64_t n;

	CHECK_EQ(control(fd, NFCOMMS_IOC_EVENTFD, &e), 0);
	left_pending(fd, p);
	CHECK_EQ(cancel(fd, taken_id()), 0);
	CHECK_EQ(read(e.fd, &n, sizeof(n)), (ssize_t)sizeof(n));
	close(e.fd);
}

/* A child dies with the file in the middle of a transfer. */
static void inherited(int fd, uint8_t *p)
{
	pid_t pid = fork();

	if (pid == 0) {
		left_pending(fd, p);
		kill(getpid(), SIGKILL);
	}
	wait_child(pid);
}

static void (*const ways[])(int fd, uint8_t *p) = { messages, registered,
						    left_pending, counted,
						    inherited };

/* A file after another, until the end. */
static int comes_again(void *argument)
{
	struct shared *s = argument;
	uint64_t seed = (uint64_t)getpid();
	uint8_t *p = pages(SIZE, 1);

	while (!s->over && !test_failures()) {
		int fd = open(node(), O_RDWR | O_CLOEXEC);

		if (fd < 0) {
			CHECK(errno == ENOENT || errno == ENXIO ||
			      errno == ENODEV);
			usleep(1000);
			continue;
		}
		s->served++;
		ways[next_random(&seed) % (sizeof(ways) / sizeof(*ways))](fd, p);
		close(fd);
		usleep(next_random(&seed) % s->pause_us);
	}
	free_pages(p, SIZE);
	return test_failures() != 0;
}

/* Unload the module as soon as no client has it; they give it more and more time. */
static void unload_between(struct shared *s)
{
	uint64_t end = now_ns() + PATIENCE_MS * 1000000ull, later = 0;
	int rc;

	s->pause_us = PAUSE_US;
	while ((rc = unload()) == EAGAIN && now_ns() < end) {
		if (now_ns() > later && s->pause_us < PAUSE_MAX_US) {
			s->pause_us *= 2;
			later = now_ns() + 200000000;
		}
		usleep(500);
	}
	CHECK_EQ(rc, 0);
}

CASE(unloaded_under_clients_that_come_again)
{
	int unloads = test_argument ? atoi(test_argument) : UNLOADS;
	struct shared *s = mmap(NULL, sizeof(*s), PROT_READ | PROT_WRITE,
				MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	pid_t pid[CLIENTS];

	REQUIRE(s != MAP_FAILED);
	close(fresh());
	s->pause_us = PAUSE_US;
	for (int i = 0; i < CLIENTS; i++)
		pid[i] = child(comes_again, s);
	for (int i = 0; i < unloads && !test_failures(); i++) {
		unsigned long served = s->served;

		still_alive();
		progress((uint64_t)i, (uint64_t)unloads);
		while (s->served < served + CLIENTS && !test_failures())
			usleep(1000); /* the harness's watchdog bounds it */
		unload_between(s);
		CHECK_EQ(pinned(), 0);
		CHECK_EQ(load(), 0);
		await_node();
	}
	s->over = true;
	for (int i = 0; i < CLIENTS; i++)
		CHECK_EQ(wait_child(pid[i]), 0);
	check_device();
	check_pins();
	munmap(s, sizeof(*s));
}
