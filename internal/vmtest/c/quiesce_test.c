// SPDX-License-Identifier: MIT
/*
 * Pages stay pinned until the device agreed that it touches them no more, or
 * DMA is fenced, for every kind of end. The device never sends ABORTED (nfsim
 * --script drop+1:aborted); cancel_timeout_ms is raised, to look in time, and lowered
 * once that was done.
 */
#include <signal.h>
#include <stdio.h>
#include <unistd.h>

#include "bus.h"
#include "rig.h"

enum {
	ATTEMPTS = 8,
	KILLS = 2, /* of clients whose transfer moved */
	SIZE = 64 << 20,
	AFTER_US = 200000, /* less than the longer time-out below */
};

static uint8_t *bulk;

/* How long the driver waits for ABORTED. */
static void wait_long(void)
{
	set_limit("cancel_timeout_ms", "30000");
}

static void wait_shortly(void)
{
	set_limit("cancel_timeout_ms", "100");
}

/* A client whose transfer moves. */
static int sender(void)
{
	int fd = client();
	uint32_t ch = program(fd, "sink");
	struct nfcomms_op op = transfer(NFCOMMS_OP_SEND_IND, ch, bulk, SIZE);
	struct nfcomms_channel c = { .size = sizeof(c), .channel = ch };

	CHECK_EQ(submit(fd, &op, 1), 1);
	do
		CHECK_EQ(control(fd, NFCOMMS_IOC_CHANNEL, &c), 0);
	while (!c.lists && !test_failures());
	return fd;
}

/* One that is killed then. */
static int die_sending(void *ready)
{
	sender();
	if (write(*(int *)ready, "", 1) != 1 || test_failures())
		return 1;
	kill(getpid(), SIGKILL);
	return 0;
}

/* Nothing but the fence lets the pages go. */
static void await_fence(int fd, uint32_t was)
{
	wait_shortly();
	while (state(fd) == NFCOMMS_STATE_READY && pinned())
		usleep(1000);
	check_lost(fd, was);
}

/* Have a client killed, true if its transfer had to be aborted. */
static bool kill_sender(void)
{
	int way[2], fd = fresh();
	uint32_t was = epoch(fd);
	bool aborting;
	char byte;
	pid_t pid;

	if (!CHECK(pipe(way) == 0))
		return false;
	pid = child(die_sending, &way[1]);
	close(way[1]);
	CHECK(read(way[0], &byte, 1) == 1);
	close(way[0]);
	usleep(AFTER_US);
	aborting = pinned() > 0;
	if (aborting)
		CHECK_EQ(state(fd), NFCOMMS_STATE_READY);
	wait_child(pid);
	if (aborting)
		await_fence(fd, was);
	close(fd);
	check_pins();
	return aborting;
}

CASE(pages_of_a_killed_client)
{
	int aborted = 0;

	bulk = pages(SIZE, 0x5a);
	for (int i = 0; i < ATTEMPTS && aborted < KILLS; i++) {
		still_alive();
		wait_long();
		aborted += kill_sender();
	}
	printf("%d transfers were aborted\n", aborted);
	CHECK_EQ(aborted, KILLS); /* if not, pages are let go at once */
	free_pages(bulk, SIZE);
	wait_shortly();
}

/*
 * A close of a file whose device does not answer returns; the rest ends later.
 */
CASE(a_close_does_not_wait_for_the_fence)
{
	int aborted = 0, other, fd;
	uint32_t was;

	bulk = pages(SIZE, 0x5a);
	for (int i = 0; i < ATTEMPTS && !aborted && !test_failures(); i++) {
		still_alive();
		wait_long();
		other = fresh();
		was = epoch(other);
		fd = sender();
		close(fd);
		CHECK_EQ(state(other), NFCOMMS_STATE_READY);
		if (pinned()) { /* and not because the transfer was over */
			await_fence(other, was);
			aborted++;
		}
		close(other);
		check_pins();
	}
	CHECK_EQ(aborted, 1);
	free_pages(bulk, SIZE);
	wait_shortly();
}
