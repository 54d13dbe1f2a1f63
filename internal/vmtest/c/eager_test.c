// SPDX-License-Identifier: MIT
/*
 * Small transfers are sent with their pages, or the pages wait at the device
 * before the transfer does. In any crossing, each transfer arrives once and
 * whole or not at all, and its pages are released when the device has answered.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "rig.h"

enum {
	PAGE = NFC_PAGE_SIZE,
	CROSSINGS = 300,
	MANY = 40, /* receives that wait at once */
};

static bool device_is_eager(int fd)
{
	struct nfcomms_info info = { .size = sizeof(info) };

	CHECK_EQ(control(fd, NFCOMMS_IOC_INFO, &info), 0);
	return info.capabilities & NFC_CAP_EAGER;
}

/* Submit one operation that must be accepted: its id. */
static uint64_t give(int fd, struct nfcomms_op op, uint64_t user_data)
{
	op.user_data = user_data;
	CHECK_EQ(submit(fd, &op, 1), 1);
	return taken_id();
}

/* Does memory hold what a source program makes? */
static bool is_pattern(const uint8_t *p, size_t size, uint64_t seed)
{
	for (size_t i = 0; i < size; i++)
		if (p[i] != pattern(seed, i))
			return false;
	return true;
}

/* Pages that are pinned once the machine has come to rest: some, or none. */
static bool stays_pinned(bool some)
{
	uint64_t end = now_ns() + PATIENCE_MS * 1000000ull;

	while (!pinned() == some && now_ns() < end)
		usleep(1000);
	return !pinned() != some;
}

/*
 * A transfer that fits is sent as one slot, without a list; all of it arrives
 * in its place.
 */
CASE(small_transfers_need_no_list)
{
	static const uint32_t sizes[] = { 0, 1, 56, 4096, 4097, 12288 };
	int fd = fresh();
	uint32_t loop = program(fd, "loopback");
	uint8_t *from = pages(8 * PAGE, 0), *to = pages(8 * PAGE, 0);
	bool eager = device_is_eager(fd);

	for (size_t i = 0; i < 8 * PAGE; i++)
		from[i] = pattern(9, i);
	for (uint32_t i = 0; i < 6 * 3; i++) {
		uint32_t n = sizes[i % 6], at = i / 6 * 1000;
		struct nfcomms_op out = transfer(NFCOMMS_OP_SEND_IND, loop,
						 n ? from + at : NULL, n);
		struct nfcomms_op in = transfer(NFCOMMS_OP_RECEIVE_IND, loop,
						n ? to + at : NULL, n);
		struct nfcomms_completion c = { .lists = 9 };

		memset(to, 0xee, 8 * PAGE);
		CHECK_EQ(call(fd, &out, &c), 0);
		CHECK_EQ(c.status, NFC_OK);
		CHECK_EQ(c.length, n);
		CHECK_EQ(c.processed, n);
		CHECK_EQ(c.lists, eager || !n ? 0 : 1);
		CHECK_EQ(call(fd, &in, &c), 0);
		CHECK_EQ(c.status, NFC_OK);
		CHECK_EQ(c.length, n);
		CHECK_EQ(c.lists, eager || !n ? 0 : 1);
		CHECK(!memcmp(from + at, to + at, n));
		CHECK_EQ(to[at + n], 0xee);
	}
	close(fd);
	free_pages(from, 8 * PAGE);
	free_pages(to, 8 * PAGE);
	check_pins();
}

/* A receive that waits has its pages at the device, and gets them back. */
CASE(pages_wait_for_the_transfer)
{
	int fd = fresh();
	uint32_t source = program(fd, "source");
	uint8_t *p = pages(3 * PAGE, 0);
	struct nfcomms_op in = transfer(NFCOMMS_OP_RECEIVE_IND, source, p + 100,
					2 * PAGE);
	struct nfcomms_completion c;
	bool eager = device_is_eager(fd);

	give(fd, in, 1);
	CHECK(stays_pinned(eager));
	ask_source(fd, source, 2 * PAGE, 7);
	CHECK(reap(fd, &c));
	CHECK_EQ(c.status, NFC_OK);
	CHECK_EQ(c.lists, !eager);
	CHECK(is_pattern(p + 100, 2 * PAGE, 7));
	check_pins();

	give(fd, in, 2);
	CHECK(stays_pinned(eager));
	CHECK_EQ(cancel(fd, taken_id()), 0);
	CHECK(reap(fd, &c));
	CHECK_EQ(c.status, NFC_EWITHDRAWN);
	check_pins();
	ask_source(fd, source, 2 * PAGE, 8);
	CHECK_EQ(outcome(fd, &in), NFC_OK);
	CHECK(is_pattern(p + 100, 2 * PAGE, 8));
	close(fd);
	free_pages(p, 3 * PAGE);
	check_pins();
}

/*
 * An offer that does not fit the pages stays offered, and the pages are
 * returned.
 */
CASE(something_else_comes)
{
	int fd = fresh();
	uint32_t source = program(fd, "source"), loop = program(fd, "loopback");
	uint8_t *p = pages(4 * PAGE, 0);
	struct nfcomms_op in = transfer(NFCOMMS_OP_RECEIVE_IND, source, p, PAGE);
	struct nfcomms_completion c;

	give(fd, in, 1);
	ask_source(fd, source, 2 * PAGE, 7);
	CHECK(reap(fd, &c));
	CHECK_EQ(c.status, NFC_ESIZE);
	CHECK_EQ(c.peer_size, 2 * PAGE);
	check_pins();
	in.length = 2 * PAGE;
	CHECK_EQ(outcome(fd, &in), NFC_OK);
	CHECK(is_pattern(p, 2 * PAGE, 7));

	give(fd, transfer(NFCOMMS_OP_RECEIVE_IND, loop, p, PAGE), 1);
	give(fd, message(loop, "still here", 10), 2);
	for (int i = 0; i < 2; i++) {
		CHECK(reap(fd, &c));
		CHECK_EQ(c.status, c.user_data == 1 ? NFC_EKIND : NFC_OK);
	}
	in = operation(NFCOMMS_OP_RECEIVE, loop);
	in.length = NFCOMMS_PAYLOAD_SIZE;
	CHECK_EQ(call(fd, &in, &c), 0);
	CHECK_EQ(c.status, NFC_OK);
	CHECK_EQ(c.length, 10);
	close(fd);
	free_pages(p, 4 * PAGE);
	check_pins();
}

/* Both ends and a cancel at about the same time: each transfer arrives once. */
CASE(everything_crosses)
{
	uint64_t seed = seed_for("crossings");
	int fd = fresh();
	uint32_t source = program(fd, "source");
	uint8_t *p = pages(2 * PAGE, 0);
	bool eager = device_is_eager(fd); /* else a cancel may abort it */
	int came = 0, withdrawn = 0;

	for (int i = 0; i < CROSSINGS && !test_failures(); i++) {
		uint64_t words[2] = { 1 + next_random(&seed) % PAGE, seed };
		struct nfcomms_op in = transfer(NFCOMMS_OP_RECEIVE_IND, source,
						p + seed % PAGE, words[0]);
		struct nfcomms_completion c;
		bool first = next_random(&seed) % 2;
		uint64_t receive = 0;

		words[1] = (uint64_t)i;
		if (first)
			receive = give(fd, in, 1);
		give(fd, message(source, words, sizeof(words)), 2);
		if (!first)
			receive = give(fd, in, 1);
		if (eager && next_random(&seed) % 2) {
			usleep((unsigned int)(next_random(&seed) % 200));
			cancel(fd, receive); /* it may be over */
		}
		for (int k = 0; k < 2; k++) {
			CHECK(reap(fd, &c));
			if (c.user_data == 2 || c.status == NFC_OK)
				CHECK_EQ(c.status, NFC_OK);
			else
				CHECK_EQ(c.status, NFC_EWITHDRAWN);
			if (c.user_data == 1 && c.status != NFC_OK) {
				withdrawn++; /* so it still is there */
				CHECK_EQ(outcome(fd, &in), NFC_OK);
			}
		}
		came += CHECK(is_pattern((uint8_t *)(uintptr_t)in.address,
					 words[0], words[1]));
	}
	printf("%d came, %d of them at the second attempt\n", came, withdrawn);
	CHECK_EQ(came, CROSSINGS);
	close(fd);
	free_pages(p, 2 * PAGE);
	check_pins();
}

static int idle(void *argument)
{
	(void)argument;
	pause();
	return 0;
}

/* Change memory whose pages wait at the device; true if it is still the caller's. */
static bool disturb(int how, uint8_t *p, pid_t *pid)
{
	switch (how) {
	case 0:
		*pid = child(idle, NULL); /* shares it until one of both writes */
		p[0] = 1;
		return true;
	case 1:
		CHECK_EQ(mprotect(p, PAGE, PROT_NONE), 0);
		CHECK_EQ(mprotect(p, PAGE, PROT_READ | PROT_WRITE), 0);
		return true;
	case 2:
		CHECK_EQ(madvise(p, PAGE, MADV_DONTNEED), 0);
		return false;
	default:
		CHECK(mmap(p, PAGE, PROT_READ | PROT_WRITE,
			   MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == p);
		return false;
	}
}

/* Changes of their owner's memory do not move the pages that wait. */
CASE(memory_changes_while_its_pages_wait)
{
	int fd = fresh();
	uint32_t source = program(fd, "source");

	for (int how = 0; how < 4; how++) {
		uint8_t *p = pages(PAGE, 0x55);
		struct nfcomms_completion c;
		pid_t pid = 0;
		bool own;

		give(fd, transfer(NFCOMMS_OP_RECEIVE_IND, source, p, PAGE), 1);
		CHECK(stays_pinned(device_is_eager(fd)));
		own = disturb(how, p, &pid);
		ask_source(fd, source, PAGE, 7);
		CHECK(reap(fd, &c));
		CHECK_EQ(c.status, NFC_OK);
		if (own || !device_is_eager(fd))
			CHECK(is_pattern(p, PAGE, 7));
		else
			CHECK_EQ(p[1], 0); /* the new page, not the old one */
		if (pid) {
			kill(pid, SIGKILL);
			wait_child(pid);
		}
		free_pages(p, PAGE);
		check_pins();
	}
	close(fd);
}

/* Pages at the device when everything ends: they are let go. */
CASE(the_end_comes_first)
{
	for (int i = 0; i < 3; i++) {
		int fd = fresh();
		uint32_t hold = program(fd, "hold");
		uint32_t source = program(fd, "source");
		uint8_t *p = pages(2 * PAGE, 0);
		struct nfcomms_op shut = operation(NFCOMMS_OP_CLOSE, source);
		bool eager = device_is_eager(fd);
		struct nfcomms_completion c;
		uint64_t send;

		send = give(fd, transfer(NFCOMMS_OP_SEND_IND, hold, p, PAGE), 1);
		give(fd,
		     transfer(NFCOMMS_OP_RECEIVE_IND, source, p + PAGE, PAGE),
		     2);
		CHECK(stays_pinned(true));
		if (i == 0) {
			shut.flags = NFCOMMS_D2H;
			CHECK_EQ(outcome(fd, &shut), NFC_OK);
			CHECK(reap(fd, &c));
			CHECK_EQ(c.status, NFC_ECLOSED);
			CHECK_EQ(cancel(fd, send), 0);
			CHECK(reap(fd, &c));
			CHECK_EQ(c.status, NFC_EWITHDRAWN);
			CHECK(eager || c.lists == 1);
		} else if (i == 1) {
			CHECK_EQ(reset(fd, (struct nfcomms_reset){ .size = 0 }),
				 0);
			for (int k = 0; k < 2; k++) {
				CHECK(reap(fd, &c));
				CHECK_EQ(c.status, NFC_ERESET);
			}
		}
		close(fd);
		check_pins();
		free_pages(p, 2 * PAGE);
	}
	check_device();
}

/* A process with little to lock: its receives wait as they did without pages. */
static int poor(void *argument)
{
	const struct rlimit r = { 8 << 20, 8 << 20 };
	uint8_t *p = argument;
	int fd = client();
	uint32_t channels[MANY], sink = program(fd, "sink");
	struct nfcomms_op bulk = transfer(NFCOMMS_OP_SEND_IND, sink, p,
					  16 << 20);
	struct nfcomms_completion c;

	CHECK_EQ(setrlimit(RLIMIT_MEMLOCK, &r), 0);
	CHECK_EQ(setresuid(65534, 65534, 65534), 0); /* no CAP_IPC_LOCK */
	for (int i = 0; i < MANY; i++) {
		channels[i] = program(fd, "source");
		give(fd,
		     transfer(NFCOMMS_OP_RECEIVE_IND, channels[i],
			      p + (size_t)i * 16 * PAGE, 4 * PAGE),
		     1);
	}
	CHECK_EQ(outcome(fd, &bulk), NFC_OK); /* there is still room for it */
	for (int i = 0; i < MANY; i++) {
		ask_source(fd, channels[i], 4 * PAGE, (uint64_t)i);
		CHECK(reap(fd, &c));
		CHECK_EQ(c.status, NFC_OK);
		CHECK(is_pattern(p + (size_t)i * 16 * PAGE, 4 * PAGE,
				 (uint64_t)i));
	}
	close(fd);
	return test_failures() != 0;
}

CASE(pages_that_wait_leave_room)
{
	uint8_t *p = pages(16 << 20, 1);
	int status;

	close(fresh());
	status = wait_child(child(poor, p));
	CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
	free_pages(p, 16 << 20);
	check_pins();
}
