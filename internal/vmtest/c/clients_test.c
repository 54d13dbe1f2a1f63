// SPDX-License-Identifier: MIT
/*
 * Between clients: what one does, with memory that does not come or more requests
 * than the device serves at once, does not keep others from their own.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
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
};

/* One list in flight: long transfers pin again and again. */
static const struct nfcomms_reset narrow = {
	.window = 1,
	.mailboxes = 1,
	.islands = 1,
};

/* Many of them, of a user without any right; told when all have begun. */
struct attack {
	uint32_t first; /* target */
	int ready;
};

static int attack(void *argument)
{
	const struct attack *a = argument;
	struct lazy memory = lazy_pages(PAGE, 0);

	if (setgroups(0, NULL) || setgid(NOBODY) || setuid(NOBODY))
		return 1;
	for (int i = 0; i < FILES && !test_failures(); i++) {
		int fd = client();

		for (int k = 0; k < STALLED && !test_failures(); k++)
			stall_worker(fd,
				     subscribe(fd, a->first + i * STALLED + k),
				     &memory);
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
	struct attack a = { .first = 0 };
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

/* What waits for memory can be taken back, and its file be closed. */
CASE(a_worker_leaves_a_page_that_does_not_come)
{
	struct lazy memory = lazy_pages(PAGE, 0);
	struct nfcomms_completion c;
	uint32_t first = 0;
	int fd = fresh();

	CHECK_EQ(start(fd, "hold", 2, &first), NFC_OK);
	stall_worker(fd, subscribe(fd, first), &memory);
	await_fault(&memory);
	CHECK_EQ(cancel(fd, 2), 0);
	CHECK(reap(fd, &c));
	CHECK_EQ(c.status, NFC_EWITHDRAWN);
	stall_worker(fd, subscribe(fd, first + 1), &memory);
	await_fault(&memory);
	close(fd);
	check_pins();
	check_device();
	free_lazy(&memory);
}

/* A client whose own context waits for its page. */
struct caller {
	pthread_t thread;
	struct lazy memory;
	int fd;
	uint32_t channel;
};

static void *call_and_stall(void *argument)
{
	struct caller *a = argument;
	struct nfcomms_op op = transfer(NFCOMMS_OP_SEND_IND, a->channel,
					a->memory.p, PAGE);

	CHECK_EQ(call(a->fd, &op, NULL), 0);
	return NULL;
}

/*
 * A call drains the ring when it sets a park word, and finds acknowledgements of
 * others, whose next pages are to be pinned; it must not pin its own before. The
 * device is silent, so that it finds some.
 */
CASE(a_call_that_stalls_after_it_took_what_was_for_others)
{
	enum { CALLERS = 6, SMALL = 5 * NFC_LIST_ENTRIES * PAGE };
	struct caller a[CALLERS];
	int fd = fresh_as(narrow);
	uint32_t sink = program(fd, "sink");
	uint8_t *p = pages(SMALL, 1);
	struct nfcomms_completion c;

	for (int i = 0; i < CALLERS; i++) {
		a[i] = (struct caller){ .memory = lazy_pages(PAGE, 0),
					.fd = client() };
		a[i].channel = program(a[i].fd, "sink");
	}
	for (int i = 0; i < CALLERS && !test_failures(); i++) {
		struct nfcomms_op op = transfer(NFCOMMS_OP_SEND_IND, sink, p,
						SMALL);

		CHECK_EQ(submit(fd, &op, 1), 1);
		CHECK(!pthread_create(&a[i].thread, NULL, call_and_stall, &a[i]));
		await_fault(&a[i].memory);
		c.status = NFC_STATUS_COUNT;
		CHECK(reap(fd, &c));
		CHECK_EQ(c.status, NFC_OK);
	}
	for (int i = 0; i < CALLERS; i++) {
		let_come(&a[i].memory);
		pthread_join(a[i].thread, NULL);
		close(a[i].fd);
		free_lazy(&a[i].memory);
	}
	close(fd);
	free_pages(p, SMALL);
	check_pins();
}

/* Requests for the control channel, as many as a file may have. */
static void fill_requests(int fd, uint64_t user_data)
{
	struct nfcomms_op ops[256];
	struct nfc_control memory = { .op = NFC_CONTROL_MEMORY };
	int taken, all = 0;

	for (int i = 0; i < 256; i++) {
		ops[i] = operation(NFCOMMS_OP_CONTROL, 0);
		ops[i].user_data = user_data;
		memcpy(ops[i].payload, &memory, sizeof(memory));
	}
	do {
		taken = submit(fd, ops, 256);
		all += taken > 0 ? taken : 0;
	} while (taken == 256 && all < 4 * REQUESTS);
	CHECK(all >= REQUESTS);
}

CASE(requests_of_files_alternate)
{
	struct nfc_control memory = { .op = NFC_CONTROL_MEMORY };
	struct nfcomms_op few[FEW];
	int many = fresh(), fd = client(), withdrawn = 0;
	struct nfcomms_completion c = { .status = 0 };

	for (int i = 0; i < FEW; i++) {
		few[i] = operation(NFCOMMS_OP_CONTROL, 0);
		memcpy(few[i].payload, &memory, sizeof(memory));
	}
	fill_requests(many, 7);
	CHECK_EQ(submit(fd, few, FEW), FEW);
	for (int i = 0; i < FEW; i++) {
		CHECK(reap(fd, &c));
		CHECK_EQ(c.status, NFC_OK);
	}
	cancel(many, 7); /* ENOENT if none is left: then it was first */
	for (int i = 0; i < REQUESTS && reap(many, &c); i++)
		withdrawn += c.status == NFC_EWITHDRAWN;
	CHECK(withdrawn > 0);
	close(many);
	close(fd);
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

/* What cannot tell how many operations it took takes none. */
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

/*
 * Messages through a ring that is full, as it is with a silent device: a slot is
 * written again once it was read.
 */
CASE(a_full_ring_loses_nothing)
{
	enum { PORTS = 32, TIMES = 8 };
	struct nfcomms_reset tiny = narrow;
	struct nfcomms_op ops[2 * PORTS];
	struct nfcomms_completion c;
	uint32_t first = 0, ch[PORTS], heard;
	int fd;

	tiny.slots = NFC_SLOTS_MIN;
	fd = fresh_as(tiny);
	CHECK_EQ(start(fd, "loopback", PORTS, &first), NFC_OK);
	for (uint32_t i = 0; i < PORTS; i++)
		ch[i] = subscribe(fd, first + i);
	for (uint32_t t = 0; t < TIMES && !test_failures(); t++) {
		heard = 0;
		for (uint32_t i = 0; i < PORTS; i++) {
			uint32_t words[2] = { t, i };

			ops[i] = operation(NFCOMMS_OP_RECEIVE, ch[i]);
			ops[i].length = NFCOMMS_PAYLOAD_SIZE;
			ops[PORTS + i] = message(ch[i], words, sizeof(words));
		}
		CHECK_EQ(submit(fd, ops, 2 * PORTS), 2 * PORTS);
		for (int i = 0; i < 2 * PORTS && reap(fd, &c); i++) {
			uint32_t words[2];

			CHECK_EQ(c.status, NFC_OK);
			memcpy(words, c.payload, sizeof(words));
			if (c.opcode != NFCOMMS_OP_RECEIVE)
				continue;
			CHECK(words[0] == t && words[1] < PORTS &&
			      ch[words[1]] == c.channel);
			heard |= 1u << words[1];
		}
		CHECK_EQ(heard, ~0u);
	}
	close(fd);
}

#define TRACING "/sys/kernel/debug/tracing/"

/* Does a line of the trace have both? */
static bool traced(const char *one, const char *other)
{
	char line[512];
	FILE *f = fopen(TRACING "trace", "r");
	bool found = false;

	CHECK(f);
	while (f && fgets(line, sizeof(line), f))
		found |= strstr(line, one) && strstr(line, other);
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
	put(TRACING "trace", "");
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

/* The most messages that were ever taken in a row with a mailbox locked. */
static unsigned int longest_row(void)
{
	char path[128], line[512], *at;
	unsigned int longest = 0;
	FILE *f;

	snprintf(path, sizeof(path), "/sys/kernel/debug/nfcomms/%s/state",
		 strrchr(node(), '/') + 1);
	f = fopen(path, "r");
	CHECK(f);
	while (f && fgets(line, sizeof(line), f)) {
		at = strncmp(line, "mailbox", 7) ? NULL : strstr(line, "row=");
		if (at && strtoul(at + 4, NULL, 10) > longest)
			longest = (unsigned int)strtoul(at + 4, NULL, 10);
	}
	if (f)
		fclose(f);
	return longest;
}

/* Many messages wait in a ring; a call that drains it lets go of its lock. */
CASE(a_ring_is_not_drained_at_a_stretch)
{
	enum { PORTS = 128, TRIES = 8, SETTLE_US = 20000, BATCH = 32 };
	struct nfcomms_op ops[PORTS], look;
	int fd = fresh_as(narrow), more;
	struct nfcomms_completion c;
	uint32_t first = 0, fresh_one;

	CHECK_EQ(start(fd, "sink", PORTS, &first), NFC_OK);
	for (uint32_t i = 0; i < PORTS; i++)
		ops[i] = message(subscribe(fd, first + i), "x", 1);
	for (int i = 0; i < TRIES && !test_failures(); i++) {
		more = client();
		fresh_one = program(more, "loopback");
		look = operation(NFCOMMS_OP_RECEIVE, fresh_one);
		look.length = NFCOMMS_PAYLOAD_SIZE;
		CHECK_EQ(submit(fd, ops, PORTS), PORTS);
		usleep(SETTLE_US); /* the device answers, and rings nobody */
		CHECK_EQ(submit(more, &look, 1), 1);
		for (int k = 0; k < PORTS; k++)
			CHECK(reap(fd, &c));
		close(more);
	}
	CHECK(longest_row() > 1);
	CHECK(longest_row() <= BATCH);
	close(fd);
}
