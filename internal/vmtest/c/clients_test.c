// SPDX-License-Identifier: MIT
/*
 * Between clients: what one does, with memory that does not come or more requests
 * than the device serves at once, does not keep others from their own.
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bus.h"
#include "lazy.h"
#include "rig.h"

enum {
	PAGE = NFC_PAGE_SIZE,
	NOBODY = 65534,
	BULK = 1 << 20,
	FILES = 20, /* of an attacker … */
	STALLED = 15, /* … and transfers of each that pin and do not get on */
	REQUESTS = 1024, /* that a file may have */
	FEW = 8,
	MANY = 16 << 20, /* bytes, of which the default limit allows half */
	PAIRS = 4,
	ALWAYS = 64, /* requests in flight of a client that asks always */
	CLOSES = 20,
	CLOSE_MS = 900, /* a close that takes longer gave up, after a second */
};

/* One list in flight: long transfers pin again and again. */
static const struct nfcomms_reset narrow = {
	.window = 1,
	.mailboxes = 1,
	.islands = 1,
};

/* Files of a user without any right, and transfers that stall; told when all have begun. */
struct attack {
	uid_t uid;
	uint32_t first; /* target */
	int files, stalled; /* … so many of each file */
	int ready;
};

static int attack(void *argument)
{
	const struct attack *a = argument;
	struct lazy memory = lazy_pages(PAGE, 0);

	if (setgroups(0, NULL) || setgid(NOBODY) || setuid(a->uid))
		return 1;
	for (int i = 0; i < a->files && !test_failures(); i++) {
		uint32_t first = a->first + i * a->stalled;
		int fd = client();

		for (int k = 0; k < a->stalled && !test_failures(); k++)
			stall_worker(fd, subscribe(fd, first + k), &memory);
	}
	await_fault(&memory);
	if (write(a->ready, "", 1) != 1 || test_failures())
		return 1;
	pause();
	return 0;
}

/* A transfer that a worker must pin for. */
static void check_moves(int fd, uint32_t sink, uint8_t *p)
{
	struct nfcomms_op op = transfer(NFCOMMS_OP_SEND_IND, sink, p, BULK);
	struct nfcomms_completion c = { .status = NFC_STATUS_COUNT };

	CHECK_EQ(submit(fd, &op, 1), 1);
	CHECK(reap(fd, &c));
	CHECK_EQ(c.status, NFC_OK);
}

CASE(transfers_that_stall_by_the_hundred)
{
	int fd = fresh_as(narrow), way[2];
	uint8_t *p = pages(BULK, 1);
	struct attack a = { NOBODY, .files = FILES, .stalled = STALLED };
	pid_t pid;
	char byte;

	REQUIRE(pipe(way) == 0);
	a.ready = way[1];
	CHECK_EQ(start(fd, "hold", FILES * STALLED, &a.first), NFC_OK);
	CHECK_EQ(chmod(node(), 0666), 0);
	pid = child(attack, &a);
	close(way[1]);
	CHECK(read(way[0], &byte, 1) == 1);
	check_moves(fd, program(fd, "sink"), p);
	kill(pid, SIGKILL);
	wait_child(pid);
	check_moves(fd, program(fd, "sink"), p);
	close(way[0]);
	close(fd);
	free_pages(p, BULK);
	CHECK_EQ(chmod(node(), 0600), 0);
	check_pins();
}

/* The value of a line of a process's status; zero if the process is gone. */
static uint64_t status_of(const char *pid, const char *line)
{
	char path[300], text[4096];
	const char *at;
	ssize_t n;
	int fd;

	snprintf(path, sizeof(path), "/proc/%s/status", pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	n = read(fd, text, sizeof(text) - 1);
	close(fd);
	text[n > 0 ? n : 0] = 0;
	at = strstr(text, line);
	return at && !strncmp(text, "Name:\tkworker", 13) ?
		       strtoull(at + strlen(line), NULL, 16) :
		       0;
}

/* The workers of the kernel's queues serve every driver: no signal ends their waits. */
static void check_kworkers(void)
{
	DIR *all = opendir("/proc");
	struct dirent *e;

	REQUIRE(all);
	while ((e = readdir(all)))
		if (*e->d_name >= '1' && *e->d_name <= '9')
			CHECK_EQ(status_of(e->d_name, "\nSigCgt:\t") >>
						 (SIGKILL - 1) &
					 1,
				 0);
	closedir(all);
}

/*
 * An operation that waits for memory can be cancelled, and its file be closed.
 */
CASE(a_worker_leaves_a_page_that_does_not_come)
{
	struct lazy memory = lazy_pages(PAGE, 0);
	struct nfcomms_completion c;
	uint32_t first = 0;
	int fd = fresh();

	CHECK_EQ(start(fd, "hold", 2, &first), NFC_OK);
	stall_worker(fd, subscribe(fd, first), &memory);
	await_fault(&memory);
	check_kworkers();
	CHECK_EQ(cancel(fd, taken_id() + 1), 0);
	CHECK(reap(fd, &c));
	CHECK_EQ(c.status, NFC_EWITHDRAWN);
	stall_worker(fd, subscribe(fd, first + 1), &memory);
	await_fault(&memory);
	close(fd);
	check_pins();
	check_device();
	free_lazy(&memory);
}

/* Files of which each keeps all the workers busy that one file may have. */
enum {
	USER_WORKERS = 64,
	FILE_WORKERS = 16,
	BUSY_FILES = USER_WORKERS / FILE_WORKERS,
	LEAVERS = 10,
	BUSY_USERS = 8, /* with all threads of the driver, each with all that it may have */
};

/* Occupy every worker of this user; the channels are to "hold", from first on. */
static void occupy_workers(int files[BUSY_FILES], uint32_t first,
			   const struct lazy *memory)
{
	for (int i = 0; i < BUSY_FILES; i++) {
		files[i] = client();
		for (int k = 0; k < FILE_WORKERS && !test_failures(); k++)
			stall_worker(files[i],
				     subscribe(files[i],
					       first + i * FILE_WORKERS + k),
				     memory);
	}
}

/*
 * The only operation of a file that waits for a worker ends, and then its file: the
 * user's list of files that wait has neither any more.
 */
CASE(files_that_wait_for_a_worker_end)
{
	struct lazy memory = lazy_pages(PAGE, 0);
	int owner = fresh(), files[BUSY_FILES];
	uint8_t *p = pages(BULK, 1);
	struct nfcomms_completion c;
	uint32_t first = 0;

	CHECK_EQ(start(owner, "hold", USER_WORKERS + 1, &first), NFC_OK);
	occupy_workers(files, first, &memory);
	for (int i = 0; i < LEAVERS && !test_failures(); i++) {
		int fd = client();

		stall_worker(fd, subscribe(fd, first + USER_WORKERS), &memory);
		if (i % 2) { /* else the close takes it out */
			CHECK_EQ(cancel(fd, taken_id() + 1), 0);
			CHECK(reap(fd, &c));
			CHECK_EQ(c.status, NFC_EWITHDRAWN);
		}
		close(fd);
	}
	for (int i = 0; i < BUSY_FILES; i++)
		close(files[i]);
	check_moves(owner, program(owner, "sink"), p);
	close(owner);
	free_lazy(&memory);
	free_pages(p, BULK);
	check_pins();
	check_device();
}

/* An operation ends although no thread is free that it could have. */
CASE(an_operation_that_waits_for_a_thread_ends)
{
	struct lazy memory = lazy_pages(PAGE, 0);
	int fd = fresh(), way[2];
	struct nfcomms_completion c;
	pid_t pid[BUSY_USERS];
	uint32_t first = 0;
	char byte;

	REQUIRE(pipe(way) == 0);
	CHECK_EQ(start(fd, "hold", BUSY_USERS * USER_WORKERS + 1, &first),
		 NFC_OK);
	CHECK_EQ(chmod(node(), 0666), 0);
	for (int i = 0; i < BUSY_USERS; i++) {
		struct attack a = { NOBODY - i, first + 1 + i * USER_WORKERS,
				    BUSY_FILES, FILE_WORKERS, way[1] };

		pid[i] = child(attack, &a);
		CHECK(read(way[0], &byte, 1) == 1);
	}
	stall_worker(fd, subscribe(fd, first), &memory);
	CHECK_EQ(cancel(fd, taken_id() + 1), 0);
	CHECK(reap(fd, &c));
	CHECK_EQ(c.status, NFC_EWITHDRAWN);
	for (int i = 0; i < BUSY_USERS; i++) {
		kill(pid[i], SIGKILL);
		wait_child(pid[i]);
	}
	close(way[0]);
	close(way[1]);
	close(fd);
	free_lazy(&memory);
	CHECK_EQ(chmod(node(), 0600), 0);
	check_pins();
	check_device();
}

/* Requests for the control channel, as many as a file may have: how many. */
static int fill_requests(int fd)
{
	struct nfcomms_op ops[256];
	struct nfcomms_request_memory memory = {
		.request = NFCOMMS_CONTROL_MEMORY
	};
	int taken, all = 0;

	for (int i = 0; i < 256; i++) {
		ops[i] = operation(NFCOMMS_OP_CONTROL, 0);
		memcpy(ops[i].payload, &memory, sizeof(memory));
	}
	do {
		taken = submit(fd, ops, 256);
		all += taken > 0 ? taken : 0;
	} while (taken == 256 && all < 4 * REQUESTS);
	CHECK(all >= REQUESTS);
	return all;
}

/* A few requests behind many of another file: how many of those are served later. */
static int left_behind_few(void)
{
	struct nfcomms_request_memory memory = {
		.request = NFCOMMS_CONTROL_MEMORY
	};
	struct nfcomms_op few[FEW];
	int many = fresh(), fd = client(), all, withdrawn = 0;
	struct nfcomms_completion c = { .status = 0 };

	for (int i = 0; i < FEW; i++) {
		few[i] = operation(NFCOMMS_OP_CONTROL, 0);
		memcpy(few[i].payload, &memory, sizeof(memory));
	}
	all = fill_requests(many);
	CHECK_EQ(submit(fd, few, FEW), FEW);
	for (int i = 0; i < FEW; i++) {
		CHECK(reap(fd, &c));
		CHECK_EQ(c.status, NFC_OK);
	}
	cancel_all(many, 1, (uint64_t)all);
	for (int i = 0; i < all && reap(many, &c); i++)
		withdrawn += c.status == NFC_EWITHDRAWN;
	close(many);
	close(fd);
	return withdrawn;
}

/* While this thread waits for a processor the device may serve all: then once more. */
CASE(requests_of_files_alternate)
{
	int tries = 8, left = 0;

	while (!left && tries-- && !test_failures())
		left = left_behind_few();
	CHECK(left > 0);
	check_device();
}

/* Keep the control channel busy, with so many requests at any time. */
static int ask_always(void *argument)
{
	struct nfcomms_request_memory memory = {
		.request = NFCOMMS_CONTROL_MEMORY
	};
	struct nfcomms_op op = operation(NFCOMMS_OP_CONTROL, 0);
	const int *ready = argument;
	struct nfcomms_completion c;
	int fd = client();

	memcpy(op.payload, &memory, sizeof(memory));
	for (int i = 0; i < ALWAYS; i++)
		CHECK_EQ(submit(fd, &op, 1), 1);
	CHECK(write(*ready, "", 1) == 1);
	while (!test_failures() && reap(fd, &c))
		CHECK_EQ(submit(fd, &op, 1), 1);
	return 1;
}

/* How long the end of a file takes that has a process, in milliseconds. */
static uint64_t close_ms(void)
{
	int fd = client();
	uint64_t begun;

	CHECK(program(fd, "hold"));
	begun = now_ns();
	close(fd);
	return (now_ns() - begun) / 1000000;
}

/* A STOP that the device has yet to carry out is sent again beside any client. */
CASE(files_end_beside_requests_of_others)
{
	int way[2], prompt = 0;
	char byte;
	pid_t pid;

	close(fresh());
	REQUIRE(pipe(way) == 0);
	pid = child(ask_always, &way[1]);
	CHECK(read(way[0], &byte, 1) == 1);
	for (int i = 0; i < CLOSES; i++)
		prompt += close_ms() <= CLOSE_MS;
	CHECK(prompt > CLOSES / 2); /* the rest waited for a processor */
	kill(pid, SIGKILL);
	wait_child(pid);
	close(way[0]);
	close(way[1]);
	check_device();
}

/* Transfers that together need more than the default limit of locked memory. */
static int send_pairs(void *argument)
{
	const struct rlimit r = { MANY / 2, MANY / 2 };
	uint8_t *p = argument;
	int fd = client();
	struct nfcomms_op ops[2] = {
		transfer(NFCOMMS_OP_SEND_IND, program(fd, "sink"), p, MANY),
		transfer(NFCOMMS_OP_SEND_IND, program(fd, "sink"), p, MANY),
	};
	struct nfcomms_completion c = { .status = NFC_STATUS_COUNT };

	CHECK_EQ(setrlimit(RLIMIT_MEMLOCK, &r), 0);
	CHECK_EQ(setresuid(NOBODY, NOBODY, NOBODY), 0); /* no CAP_IPC_LOCK */
	for (int i = 0; i < PAIRS * 2; i++) {
		if (i % 2 == 0)
			CHECK_EQ(submit(fd, ops, 2), 2);
		CHECK(reap(fd, &c));
		CHECK_EQ(c.status, NFC_OK);
	}
	close(fd);
	return test_failures() != 0;
}

CASE(two_transfers_under_the_default_limit)
{
	uint8_t *p = pages(MANY, 1);
	int status;

	close(fresh());
	status = wait_child(child(send_pairs, p));
	CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
	free_pages(p, MANY);
	check_pins();
}

/* A submission that cannot report how many operations it took takes none. */
CASE(a_submission_that_cannot_answer)
{
	int fd = fresh();
	struct nfcomms_op op = message(program(fd, "loopback"), "x", 1);
	struct nfcomms_submit *s = (void *)pages(PAGE, 0);
	struct nfcomms_health health = { .size = sizeof(health) };
	struct nfcomms_completion c;

	*s = (struct nfcomms_submit){ .size = sizeof(*s),
				      .count = 1,
				      .ops = (uintptr_t)&op,
				      .op_size = sizeof(op) };
	mprotect(s, PAGE, PROT_READ);
	CHECK_EQ(control(fd, NFCOMMS_IOC_SUBMIT, s), EFAULT);
	CHECK_EQ(control(fd, NFCOMMS_IOC_HEALTH, &health), 0);
	CHECK_EQ(health.operations, 0);
	CHECK_EQ(read(fd, &c, sizeof(c)), -1);
	close(fd);
	free_pages((uint8_t *)s, PAGE);
}

#define TRACING "/sys/kernel/debug/tracing/"

static void empty_trace(void)
{
	CHECK(!close(open(TRACING "trace", O_WRONLY | O_TRUNC | O_CLOEXEC)));
}

/* The lines of the trace that have both. */
static int traced(const char *one, const char *other)
{
	char line[512];
	FILE *f = fopen(TRACING "trace", "r");
	int found = 0;

	CHECK(f);
	while (f && fgets(line, sizeof(line), f))
		found += strstr(line, one) && strstr(line, other);
	if (f)
		fclose(f);
	return found;
}

/*
 * Pages that the device wrote are marked under their lock, which their owner can
 * keep: not in the thread of an interrupt, for which all wait.
 */
CASE(no_interrupt_waits_for_a_page)
{
	uint8_t *p = pages(BULK, 0);
	int fd = fresh();
	uint32_t ch = program(fd, "source");
	struct nfcomms_op op = transfer(NFCOMMS_OP_RECEIVE_IND, ch, p, BULK);
	struct nfcomms_completion c;

	put(TRACING "kprobe_events", "p:nfc/unpin unpin_user_pages_dirty_lock");
	empty_trace();
	put(TRACING "events/nfc/unpin/enable", "1");
	CHECK_EQ(submit(fd, &op, 1), 1);
	ask_source(fd, ch, BULK, 1);
	CHECK(reap(fd, &c));
	CHECK_EQ(c.status, NFC_OK);
	put(TRACING "events/nfc/unpin/enable", "0");
	CHECK(traced("unpin:", ""));
	CHECK(!traced("unpin:", " irq/"));
	put(TRACING "kprobe_events", "-:nfc/unpin");
	close(fd);
	free_pages(p, BULK);
}

/* Complete a message, and wait until so many polls were woken for it. */
static void wake_polls(int fd, uint32_t ch, int polls)
{
	uint64_t end = now_ns() + PATIENCE_MS * 1000000ull;
	struct nfcomms_op op = message(ch, "x", 1);
	struct nfcomms_completion c;

	empty_trace();
	CHECK_EQ(submit(fd, &op, 1), 1);
	CHECK(reap(fd, &c));
	while (traced("wake:", "") < polls && now_ns() < end)
		usleep(1000);
	CHECK(traced("wake:", "") >= polls);
}

/*
 * A thread that wakes thousands of polls sees how long that takes. From then on a
 * worker does it, and not the thread of an interrupt.
 */
CASE(no_interrupt_goes_on_to_wake_polls_by_the_thousand)
{
	enum { POLLS = 2000, TIMES = 6 };
	struct rlimit r = { 2 * POLLS, 2 * POLLS };
	struct epoll_event e = { .events = EPOLLIN | EPOLLET };
	static int polls[POLLS];
	int fd = fresh(), woken = 0;
	uint32_t ch = program(fd, "sink");

	CHECK(!setrlimit(RLIMIT_NOFILE, &r));
	for (int i = 0; i < POLLS; i++) {
		polls[i] = epoll_create1(EPOLL_CLOEXEC);
		CHECK(!epoll_ctl(polls[i], EPOLL_CTL_ADD, fd, &e));
	}
	put(TRACING "kprobe_events", "p:nfc/wake ep_poll_callback");
	put(TRACING "events/nfc/wake/enable", "1");
	for (int i = 0; i < TIMES && !test_failures(); i++) {
		wake_polls(fd, ch, POLLS);
		if (i > 1) /* both processors have seen it */
			woken += traced("wake:", " irq/");
	}
	CHECK_EQ(woken, 0);
	put(TRACING "events/nfc/wake/enable", "0");
	put(TRACING "kprobe_events", "-:nfc/wake");
	for (int i = 0; i < POLLS; i++)
		close(polls[i]);
	close(fd);
}
