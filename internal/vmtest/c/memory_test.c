// SPDX-License-Identifier: MIT
/*
 * The caller's memory: what cannot be pinned is refused and nothing was
 * delivered, what changes while it moves harms nobody, and every page is let go.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bus.h"
#include "rig.h"

enum {
	PAGE = NFC_PAGE_SIZE,
	BULK = 16 << 20,
	DISTURBED = 4, /* transfers for each kind of change to their memory */
};

/* The host refused an operation for its memory: which errno. */
static uint32_t refused(int fd, struct nfcomms_op op)
{
	struct nfcomms_completion c = { .error = 0 };
	int error = call(fd, &op, &c);

	if (error) /* refused before it was an operation */
		return error;
	CHECK(c.status != NFC_OK);
	return c.error;
}

CASE(addresses_that_are_not_the_callers)
{
	static const uint64_t bad[] = {
		0,
		0x1000,
		0x00007ffffffff000ull,
		0x0000800000000000ull,
		0x8000000000000000ull,
		0xffff800000000000ull,
		0xffffffff81000000ull,
		0xfffffffffffff000ull,
	};
	int fd = fresh();
	uint32_t sink = program(fd, "sink"), source = program(fd, "source");

	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
		struct nfcomms_op op = transfer(NFCOMMS_OP_SEND_IND, sink, NULL,
						PAGE);

		op.address = bad[i];
		if (!CHECK_EQ(refused(fd, op), EFAULT))
			printf("sending from %#lx\n", (long)bad[i]);
		ask_source(fd, source, PAGE, 1);
		op.opcode = NFCOMMS_OP_RECEIVE_IND;
		op.channel = source;
		if (!CHECK_EQ(refused(fd, op), EFAULT))
			printf("receiving to %#lx\n", (long)bad[i]);
		close(fd);
		fd = fresh(); /* the source still offers: a new epoch */
		sink = program(fd, "sink");
		source = program(fd, "source");
	}
	check_alive(fd, program(fd, "loopback"));
	close(fd);
	check_pins();
}

CASE(lengths_that_wrap)
{
	static const uint64_t bad[] = { 1ull << 48, 1ull << 62, 1ull << 63,
					~0ull - PAGE, ~0ull };
	int fd = fresh();
	uint32_t sink = program(fd, "sink");
	uint8_t *p = pages(PAGE, 1);

	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
		struct nfcomms_op op = transfer(NFCOMMS_OP_SEND_IND, sink, p,
						bad[i]);

		CHECK_EQ(refused(fd, op), EFAULT);
	}
	check_alive(fd, program(fd, "loopback"));
	close(fd);
	free_pages(p, PAGE);
	check_pins();
}

CASE(nothing_needs_no_memory)
{
	int fd = fresh();
	uint32_t sink = program(fd, "sink");
	struct nfcomms_op op = transfer(NFCOMMS_OP_SEND_IND, sink, NULL, 0);

	CHECK_EQ(outcome(fd, &op), NFC_OK);
	close(fd);
}

/* A buffer with a page in its middle that cannot be pinned for this use. */
static void check_hole(const char *name, uint8_t *p, uint16_t opcode)
{
	int fd = fresh();
	uint32_t loop = program(fd, "loopback"), ch;
	struct nfcomms_op op;

	if (opcode == NFCOMMS_OP_SEND_IND) {
		ch = program(fd, "sink");
	} else {
		ch = program(fd, "source");
		ask_source(fd, ch, 32 * PAGE, 1);
	}
	op = transfer(opcode, ch, p, 32 * PAGE);
	if (!CHECK_EQ(refused(fd, op), EFAULT))
		printf("hole: %s\n", name);
	check_alive(fd, loop);
	close(fd);
	check_pins();
}

CASE(holes)
{
	uint8_t *p = pages(32 * PAGE, 1);

	mprotect(p + 17 * PAGE, PAGE, PROT_READ);
	check_hole("read-only page, to receive", p, NFCOMMS_OP_RECEIVE_IND);
	mprotect(p + 17 * PAGE, PAGE, PROT_NONE);
	check_hole("no access, to send", p, NFCOMMS_OP_SEND_IND);
	check_hole("no access, to receive", p, NFCOMMS_OP_RECEIVE_IND);
	munmap(p + 17 * PAGE, PAGE);
	check_hole("unmapped, to send", p, NFCOMMS_OP_SEND_IND);
	check_hole("unmapped, to receive", p, NFCOMMS_OP_RECEIVE_IND);
	munmap(p, 17 * PAGE);
	munmap(p + 18 * PAGE, 14 * PAGE);
}

CASE(a_file_that_became_shorter)
{
	char name[] = "/tmp/nfcXXXXXX";
	int f = mkstemp(name);
	uint8_t *p;

	REQUIRE(f >= 0 && ftruncate(f, 32 * PAGE) == 0);
	unlink(name);
	p = mmap(NULL, 32 * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, f, 0);
	REQUIRE(p != MAP_FAILED);
	memset(p, 1, 32 * PAGE);
	CHECK(ftruncate(f, 10 * PAGE) == 0);
	check_hole("beyond the end, to send", p, NFCOMMS_OP_SEND_IND);
	munmap(p, 32 * PAGE);
	close(f);
}

/* The image of a program is refused before the device is told of it. */
CASE(an_image_with_a_hole)
{
	enum { SIZE = 4 << 20, HOLE = 3 << 20 };
	int fd = fresh();
	uint8_t *p = pages(SIZE, 1);
	struct nfcomms_op op = image(p, SIZE);
	struct nfcomms_info info = { .size = sizeof(info) };
	uint32_t epoch;

	CHECK_EQ(control(fd, NFCOMMS_IOC_INFO, &info), 0);
	epoch = info.epoch;
	munmap(p + HOLE, PAGE);
	for (int i = 0; i < 20; i++)
		CHECK_EQ(refused(fd, op), EFAULT);
	check_alive(fd, program(fd, "loopback"));
	CHECK_EQ(control(fd, NFCOMMS_IOC_INFO, &info), 0);
	CHECK_EQ(info.epoch, epoch);
	close(fd);
	munmap(p, SIZE);
	check_pins();
}

CASE(any_start_and_length)
{
	static const uint32_t lengths[] = { 1,	  7,	 8,	4095,  4096,
					    4097, 24575, 24576, 24577, 100001 };
	static const uint32_t starts[] = { 0, 1, 4, 63, 2048, 4095 };
	size_t size = 32 * PAGE;
	uint8_t *from = pages(size, 0), *to = pages(size, 0);
	int fd = fresh();
	uint32_t ch = program(fd, "loopback");

	for (size_t i = 0; i < size; i++)
		from[i] = pattern(5, i);
	for (unsigned int k = 0; k < 60; k++) {
		uint32_t n = lengths[k % 10], at = starts[k % 6];
		struct nfcomms_op out = transfer(NFCOMMS_OP_SEND_IND, ch,
						 from + at, n);
		struct nfcomms_op in = transfer(NFCOMMS_OP_RECEIVE_IND, ch,
						to + at, n);

		memset(to, 0xee, size);
		CHECK_EQ(outcome(fd, &out), NFC_OK);
		CHECK_EQ(outcome(fd, &in), NFC_OK);
		CHECK(!memcmp(from + at, to + at, n));
		CHECK(at == 0 || to[at - 1] == 0xee);
		CHECK_EQ(to[at + n], 0xee);
	}
	close(fd);
	free_pages(from, size);
	free_pages(to, size);
	check_pins();
}

/* One word of a file of words; false if it is not there. */
static bool word_of(const char *path, uint64_t i, uint64_t *word)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n = pread(fd, word, sizeof(*word), (off_t)(i * sizeof(*word)));

	close(fd);
	return n == (ssize_t)sizeof(*word);
}

/* The kernel's flags of the page at p; not every kernel has them of all. */
static bool flags_of(const uint8_t *p, uint64_t *flags)
{
	uint64_t frame = 0;

	CHECK(word_of("/proc/self/pagemap", (uintptr_t)p / PAGE, &frame));
	return word_of("/proc/kpageflags", frame & ((1ull << 55) - 1), flags);
}

/* Does the kernel know that the page at p was written to? */
static bool is_dirty(const uint8_t *p)
{
	uint64_t flags = 0;

	CHECK(flags_of(p, &flags));
	return flags >> 4 & 1;
}

/* A page that only the device wrote to must not be dropped as clean. */
CASE(received_pages_are_dirty)
{
	enum { PAGES = 20 };
	int fd = fresh();
	uint32_t source = program(fd, "source"), sink = program(fd, "sink");
	uint8_t *p = pages(2 * PAGES * PAGE, 1), *q = p + PAGES * PAGE;
	struct nfcomms_op in = transfer(NFCOMMS_OP_RECEIVE_IND, source, p,
					PAGES * PAGE);
	struct nfcomms_op out = transfer(NFCOMMS_OP_SEND_IND, sink, q,
					 PAGES * PAGE);
	uint64_t none;

	if (!flags_of(p, &none)) {
		printf("this kernel does not show flags of pages\n");
	} else {
		for (int i = 0; i < 2 * PAGES; i++)
			CHECK(!is_dirty(p + i * PAGE));
		ask_source(fd, source, PAGES * PAGE, 1);
		CHECK_EQ(outcome(fd, &in), NFC_OK);
		CHECK_EQ(outcome(fd, &out), NFC_OK);
		for (int i = 0; i < PAGES; i++) {
			CHECK(is_dirty(p + i * PAGE));
			CHECK(!is_dirty(q + i * PAGE)); /* only read */
		}
	}
	close(fd);
	free_pages(p, 2 * PAGES * PAGE);
	check_pins();
}

static int over_memlock(void *argument)
{
	const uint64_t limit = 8 * PAGE;
	struct rlimit r = { limit, limit };
	struct nfcomms_info info = { .size = sizeof(info) };
	struct nfcomms_completion c = { .error = 0 };
	int fd = client();
	uint32_t ch = program(fd, "sink");
	struct nfcomms_op op = transfer(NFCOMMS_OP_SEND_IND, ch, argument, BULK);

	CHECK_EQ(setrlimit(RLIMIT_MEMLOCK, &r), 0);
	CHECK_EQ(setresuid(65534, 65534, 65534), 0); /* no CAP_IPC_LOCK */
	CHECK_EQ(control(fd, NFCOMMS_IOC_INFO, &info), 0);
	CHECK_EQ(info.memlock_limit, limit);
	CHECK_EQ(info.memlock_used, 0);
	CHECK_EQ(call(fd, &op, &c), 0);
	CHECK_EQ(c.error, ENOMEM);
	CHECK_EQ(c.limit, limit);
	CHECK(c.status != NFC_OK);
	op.length = 2 * PAGE; /* within the limit */
	CHECK_EQ(outcome(fd, &op), NFC_OK);
	CHECK_EQ(control(fd, NFCOMMS_IOC_INFO, &info), 0);
	CHECK_EQ(info.memlock_used, 0);
	close(fd);
	return test_failures() != 0;
}

CASE(over_the_memlock_limit)
{
	uint8_t *p = pages(BULK, 1);
	int status;

	close(fresh());
	status = wait_child(child(over_memlock, p));
	CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
	/* The requested bytes, the limit, and how to raise it. */
	CHECK(log_says("a transfer of 16777216 bytes needs more pinned memory than RLIMIT_MEMLOCK allows, 32768 bytes: raise it (ulimit -l, LimitMEMLOCK=) or give CAP_IPC_LOCK"));
	free_pages(p, BULK);
	check_pins();
}

static int scribble(void *argument)
{
	memset(argument, 0xcc, BULK);
	return 0;
}

/* Port 0 of a gate lets one transfer through port 1. */
struct gate {
	int fd;
	uint32_t key, door;
};

static struct gate gate_open(void)
{
	struct gate g = { .fd = fresh() };
	uint32_t first = 0;

	CHECK_EQ(start(g.fd, "gate", 2, &first), NFC_OK);
	g.key = subscribe(g.fd, first);
	g.door = subscribe(g.fd, first + 1);
	return g;
}

static void gate_pass(const struct gate *g)
{
	struct nfcomms_op op = message(g->key, "", 0);

	CHECK_EQ(outcome(g->fd, &op), NFC_OK);
}

/* Sent pages belong to the parent: what a child writes is not delivered. */
CASE(fork_while_offered)
{
	struct gate g = gate_open();
	uint8_t *p = pages(BULK, 0x11);
	struct nfcomms_op op = transfer(NFCOMMS_OP_SEND_IND, g.door, p, BULK);
	struct nfcomms_completion c;

	CHECK_EQ(submit(g.fd, &op, 1), 1);
	CHECK_EQ(wait_child(child(scribble, p)), 0);
	gate_pass(&g);
	CHECK(reap(g.fd, &c));
	CHECK_EQ(c.status, NFC_OK);
	for (size_t i = 0; i < BULK; i += PAGE)
		CHECK_EQ(p[i], 0x11);
	close(g.fd);
	free_pages(p, BULK);
	check_pins();
}

/* Received pages are the parent's, also where it wrote after a fork. */
CASE(fork_while_receiving)
{
	enum { SIZE = 1 << 20 };
	int fd = fresh(), way[2], status;
	uint32_t ch = program(fd, "source");
	uint8_t *p = pages(SIZE, 0x22);
	struct nfcomms_op op = transfer(NFCOMMS_OP_RECEIVE_IND, ch, p, SIZE);
	struct nfcomms_completion c;
	pid_t pid;
	char byte;

	REQUIRE(pipe(way) == 0);
	CHECK_EQ(submit(fd, &op, 1), 1);
	fflush(stdout);
	pid = fork();
	if (pid == 0) { /* sees what was there before, for ever */
		if (read(way[0], &byte, 1) != 1)
			_exit(2);
		for (size_t i = 0; i < SIZE; i += PAGE)
			if (p[i] != 0x22)
				_exit(1);
		_exit(0);
	}
	for (size_t i = 0; i < SIZE; i += PAGE)
		p[i] = 0x33; /* breaks the sharing with the child */
	ask_source(fd, ch, SIZE, 9);
	CHECK(reap(fd, &c));
	CHECK_EQ(c.status, NFC_OK);
	for (size_t i = 0; i < SIZE; i++)
		REQUIRE(p[i] == pattern(9, i));
	CHECK(write(way[1], "", 1) == 1);
	status = wait_child(pid);
	CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
	close(fd);
	close(way[0]);
	close(way[1]);
	free_pages(p, SIZE);
	check_pins();
}

/* The change that a thread makes to a buffer while it moves. */
struct mischief {
	uint8_t *p;
	volatile bool over;
	uint64_t seed;
	int kind;
};

static void *disturb(void *argument)
{
	struct mischief *m = argument;

	while (!m->over) {
		size_t at = next_random(&m->seed) % (BULK / PAGE) * PAGE;

		switch (m->kind) {
		case 0:
			m->p[at]++;
			break;
		case 1:
			madvise(m->p + at, 4 * PAGE, MADV_DONTNEED);
			break;
		case 2:
			mprotect(m->p + at, PAGE, PROT_NONE);
			mprotect(m->p + at, PAGE, PROT_READ | PROT_WRITE);
			break;
		case 3:
			mmap(m->p + at, PAGE, PROT_READ | PROT_WRITE,
			     MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
			break;
		}
	}
	return NULL;
}

/* Send and receive while a thread disturbs; only EFAULT may come of it. */
static void check_disturbed(int kind)
{
	struct mischief m = { .p = pages(BULK + 4 * PAGE, 1),
			      .kind = kind,
			      .seed = seed_for("mischief") };
	int fd = fresh();
	uint32_t ch = program(fd, "loopback");
	struct nfcomms_op out = transfer(NFCOMMS_OP_SEND_IND, ch, m.p, BULK);
	uint8_t *quiet = pages(BULK, 0);
	struct nfcomms_op in = transfer(NFCOMMS_OP_RECEIVE_IND, ch, quiet, BULK);
	pthread_t thread;
	int sent = 0;

	REQUIRE(pthread_create(&thread, NULL, disturb, &m) == 0);
	for (int i = 0; i < DISTURBED; i++) {
		struct nfcomms_completion c = { .status = 0 };

		CHECK_EQ(call(fd, &out, &c), 0);
		CHECK(c.status == NFC_OK || c.error == EFAULT);
		if (c.status != NFC_OK)
			continue; /* not delivered: nothing comes back */
		CHECK_EQ(outcome(fd, &in), NFC_OK);
		sent++;
	}
	m.over = true;
	pthread_join(thread, NULL);
	printf("kind %d: %d of %d delivered\n", kind, sent, DISTURBED);
	mprotect(m.p, BULK, PROT_READ | PROT_WRITE);
	check_alive(fd, ch);
	close(fd);
	free_pages(m.p, BULK + 4 * PAGE);
	free_pages(quiet, BULK);
	check_pins();
}

CASE(rewritten_while_it_moves)
{
	check_disturbed(0);
}

CASE(dropped_while_it_moves)
{
	check_disturbed(1);
}

CASE(protected_while_it_moves)
{
	check_disturbed(2);
}

CASE(replaced_while_it_moves)
{
	check_disturbed(3);
}

CASE(unmapped_while_offered)
{
	struct gate g = gate_open();
	uint8_t *p = pages(BULK, 0x11);
	struct nfcomms_op op = transfer(NFCOMMS_OP_SEND_IND, g.door, p, BULK);
	struct nfcomms_completion c;

	CHECK_EQ(submit(g.fd, &op, 1), 1);
	free_pages(p, BULK);
	gate_pass(&g);
	CHECK(reap(g.fd, &c)); /* its first window was pinned, the rest is gone */
	CHECK_EQ(c.error, EFAULT);
	CHECK(c.status != NFC_OK);
	close(g.fd);
	check_pins();
	check_device();
}
