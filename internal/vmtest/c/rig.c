// SPDX-License-Identifier: MIT
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/pidfd.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "rig.h"

const char *node(void)
{
	const char *name = getenv("NFC_NODE");

	return name ? name : "/dev/nfcomms0";
}

int open_registers(int flags)
{
	char path[64];

	snprintf(path, sizeof(path), "/dev/nfcomms_registers%s",
		 node() + strcspn(node(), "0123456789"));
	return open(path, flags | O_CLOEXEC);
}

enum { DESCRIPTORS = 1024 };

static unsigned int given[DESCRIPTORS];

int client(void)
{
	int fd = open(node(), O_RDWR | O_CLOEXEC | O_NONBLOCK);

	if (fd < 0)
		printf("open %s: %s\n", node(), strerror(errno));
	if (CHECK(fd >= 0) && fd < DESCRIPTORS)
		given[fd]++;
	return fd;
}

unsigned int generation(int fd)
{
	return fd >= 0 && fd < DESCRIPTORS ? given[fd] : 0;
}

int reset(int fd, struct nfcomms_reset shape)
{
	shape.size = sizeof(shape);
	return control(fd, NFCOMMS_IOC_RESET, &shape);
}

int fresh_as(struct nfcomms_reset shape)
{
	int fd = client();

	CHECK_EQ(reset(fd, shape), 0);
	return fd;
}

int fresh(void)
{
	return fresh_as((struct nfcomms_reset){ .size = 0 });
}

struct nfcomms_op operation(uint16_t opcode, uint32_t channel)
{
	return (struct nfcomms_op){ .opcode = opcode, .channel = channel };
}

struct nfcomms_op transfer(uint16_t opcode, uint32_t channel, const void *at,
			   uint64_t length)
{
	struct nfcomms_op op = operation(opcode, channel);

	op.address = (uintptr_t)at;
	op.length = length;
	return op;
}

struct nfcomms_op image(const void *at, uint64_t length)
{
	struct nfcomms_op op = transfer(NFCOMMS_OP_CONTROL, 0, at, length);
	struct nfcomms_request_load request = { .request = NFCOMMS_CONTROL_LOAD };

	memcpy(op.payload, &request, sizeof(request));
	return op;
}

struct nfcomms_op message(uint32_t channel, const void *bytes, uint64_t length)
{
	struct nfcomms_op op = operation(NFCOMMS_OP_SEND, channel);

	memcpy(op.payload, bytes, length);
	op.length = length;
	return op;
}

int control(int fd, unsigned long request, void *argument)
{
	return ioctl(fd, request, argument) < 0 ? errno : 0;
}

struct nfcomms_call call_for(const struct nfcomms_op *op,
			     struct nfcomms_completion *out)
{
	return (struct nfcomms_call){
		.size = sizeof(struct nfcomms_call),
		.op = (uintptr_t)op,
		.completion = (uintptr_t)out,
		.op_size = sizeof(*op),
		.completion_size = sizeof(*out),
	};
}

int call(int fd, const struct nfcomms_op *op, struct nfcomms_completion *out)
{
	struct nfcomms_completion c = { .status = 0 };
	struct nfcomms_call request = call_for(op, out ? out : &c);

	return control(fd, NFCOMMS_IOC_CALL, &request);
}

uint32_t outcome(int fd, const struct nfcomms_op *op)
{
	struct nfcomms_completion c;
	int error = call(fd, op, &c);

	CHECK_EQ(error, 0);
	return error ? NFC_STATUS_COUNT : c.status;
}

static _Thread_local uint64_t first_id; /* that the last SUBMIT returned */

int submit(int fd, const struct nfcomms_op *ops, unsigned int count)
{
	struct nfcomms_submit s = {
		.size = sizeof(s),
		.count = count,
		.ops = (uintptr_t)ops,
		.op_size = sizeof(*ops),
	};
	int error = control(fd, NFCOMMS_IOC_SUBMIT, &s);

	first_id = s.first_id;
	return error ? -error : (int)s.accepted;
}

bool reap(int fd, struct nfcomms_completion *out)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };
	uint64_t end = now_ns() + PATIENCE_MS * 1000000ull;

	while (now_ns() < end) {
		ssize_t n = read(fd, out, sizeof(*out));

		if (n == sizeof(*out))
			return true;
		if (n >= 0 || (errno != EAGAIN && errno != EINTR))
			break;
		poll(&p, 1, 1000);
	}
	return CHECK(!"a completion came");
}

uint64_t taken_id(void)
{
	return first_id;
}

int cancel(int fd, uint64_t id)
{
	struct nfcomms_cancel c = { .size = sizeof(c), .id = id };

	return control(fd, NFCOMMS_IOC_CANCEL, &c);
}

int cancel_all(int fd, uint64_t from, uint64_t to)
{
	int found = 0;

	for (uint64_t id = from; id <= to; id++)
		found += !cancel(fd, id);
	return found;
}

uint32_t start(int fd, const char *name, uint32_t ports, uint32_t *first)
{
	struct nfcomms_op op = operation(NFCOMMS_OP_CONTROL, 0);
	struct nfcomms_request_start request = {
		.request = NFCOMMS_CONTROL_START, .targets = ports
	};
	struct nfcomms_completion c;

	strncpy((char *)request.name, name, NFC_NAME_SIZE - 1);
	memcpy(op.payload, &request, sizeof(request));
	CHECK_EQ(call(fd, &op, &c), 0);
	CHECK_EQ(c.status, NFC_OK);
	memcpy(&request, c.payload, sizeof(request));
	*first = request.first;
	return request.status;
}

uint32_t subscribe(int fd, uint32_t target)
{
	struct nfcomms_op op = operation(NFCOMMS_OP_SUBSCRIBE, 0);
	struct nfcomms_completion c = { .channel = 0 };

	op.target = target;
	CHECK_EQ(call(fd, &op, &c), 0);
	CHECK_EQ(c.status, NFC_OK);
	CHECK(c.channel != 0);
	return c.channel;
}

uint32_t program(int fd, const char *name)
{
	uint32_t first = 0;

	CHECK_EQ(start(fd, name, 1, &first), NFC_OK);
	return subscribe(fd, first);
}

void check_alive(int fd, uint32_t loopback)
{
	struct nfcomms_op send = message(loopback, "still here", 10);
	struct nfcomms_op receive = operation(NFCOMMS_OP_RECEIVE, loopback);
	struct nfcomms_completion c = { .length = 0 };

	receive.length = NFCOMMS_PAYLOAD_SIZE;
	CHECK_EQ(outcome(fd, &send), NFC_OK);
	CHECK_EQ(call(fd, &receive, &c), 0);
	CHECK_EQ(c.status, NFC_OK);
	CHECK_EQ(c.length, 10);
	CHECK(!memcmp(c.payload, "still here", 10));
}

uint32_t state(int fd)
{
	struct nfcomms_health health = { .size = sizeof(health) };

	CHECK_EQ(control(fd, NFCOMMS_IOC_HEALTH, &health), 0);
	return health.state;
}

uint32_t epoch(int fd)
{
	struct nfcomms_info info = { .size = sizeof(info) };

	CHECK_EQ(control(fd, NFCOMMS_IOC_INFO, &info), 0);
	return info.epoch;
}

void check_lost(int fd, uint32_t was)
{
	uint32_t now = state(fd);

	if (now != NFCOMMS_STATE_RESETTING && epoch(fd) == was)
		CHECK_EQ(now, NFCOMMS_STATE_LOST);
}

struct bench setup(void)
{
	struct bench b = { .fd = fresh() };

	b.ch = program(b.fd, "loopback");
	return b;
}

void teardown(struct bench *b)
{
	check_alive(b->fd, b->ch);
	close(b->fd);
}

void check_device(void)
{
	int fd = client();

	check_alive(fd, program(fd, "loopback"));
	close(fd);
}

void ask_source(int fd, uint32_t channel, uint64_t size, uint64_t seed)
{
	uint64_t words[2] = { size, seed };
	struct nfcomms_op op = message(channel, words, sizeof(words));

	CHECK_EQ(outcome(fd, &op), NFC_OK);
}

uint8_t pattern(uint64_t seed, uint64_t i)
{
	return (uint8_t)((i * 0x9E3779B97F4A7C15ull + seed) >> 56);
}

/* A counter of /proc/vmstat. */
static long vmstat(const char *name)
{
	FILE *f = fopen("/proc/vmstat", "r");
	char key[64];
	long value, found = -1;

	while (f && fscanf(f, "%63s %ld", key, &value) == 2)
		if (!strcmp(key, name))
			found = value;
	if (f)
		fclose(f);
	CHECK(found >= 0);
	return found;
}

long released(void)
{
	return vmstat("nr_foll_pin_released");
}

/* Processors add what they counted for themselves. */
static void refresh(void)
{
	FILE *f = fopen("/proc/sys/vm/stat_refresh", "w");

	if (f) {
		fputs("1", f);
		fclose(f);
	}
}

long pinned(void)
{
	long before;

	refresh();
	before = released();
	refresh();
	return vmstat("nr_foll_pin_acquired") - before;
}

void check_pins(void)
{
	enum { EXIT_MS = 20000 };
	static bool leaked; /* for ever: no reason to wait again */
	uint64_t end = now_ns() + (leaked ? 0 : EXIT_MS * 1000000ull);

	/* The last reference to a file may go in another process's exit. */
	while (pinned() && now_ns() < end)
		usleep(1000);
	leaked = !CHECK_EQ(pinned(), 0);
}

/* Memory of no pages yet. */
static uint8_t *addresses(size_t size)
{
	uint8_t *p = mmap(NULL, size, PROT_READ | PROT_WRITE,
			  MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (p == MAP_FAILED) {
		CHECK(!"memory for a buffer");
		exit(1);
	}
	return p;
}

uint8_t *pages(size_t size, int fill)
{
	return memset(addresses(size), fill, size);
}

uint8_t *small_pages(size_t size, int fill)
{
	uint8_t *p = addresses(size);

	madvise(p, size, MADV_NOHUGEPAGE); /* it fails where there are none */
	return memset(p, fill, size);
}

void free_pages(uint8_t *p, size_t size)
{
	munmap(p, size);
}

/* Where a thread may run, and what may run before it. */
static void run_on(const cpu_set_t *processors, bool urgent)
{
	struct sched_param p = { .sched_priority = urgent };

	CHECK_EQ(sched_setaffinity(0, sizeof(*processors), processors), 0);
	CHECK_EQ(sched_setscheduler(0, urgent ? SCHED_FIFO : SCHED_OTHER, &p),
		 0);
}

void on_one_processor(bool urgent)
{
	cpu_set_t first;

	CPU_ZERO(&first);
	CPU_SET(0, &first);
	run_on(&first, urgent);
}

void on_all_processors(void)
{
	cpu_set_t all;

	memset(&all, 0xff, sizeof(all));
	run_on(&all, false);
}

pid_t child(int (*fn)(void *), void *argument)
{
	pid_t pid;

	fflush(stdout);
	pid = fork();
	if (pid == 0)
		_exit(fn(argument));
	CHECK(pid > 0);
	return pid;
}

/* Where in the kernel a process waits. */
static void show_stack(pid_t pid)
{
	char path[32], line[256];
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/stack", pid);
	f = fopen(path, "r");
	if (!f)
		return;
	while (fgets(line, sizeof(line), f))
		printf("%s", line);
	fclose(f);
}

/*
 * Time counts in steps of the caller: where it waits for a processor, the child has
 * more of it.
 */
int wait_child(pid_t pid)
{
	enum { STEP_MS = 10 };
	struct pollfd end = { .fd = pidfd_open(pid, 0), .events = POLLIN };
	int left = PATIENCE_MS / STEP_MS, status;

	CHECK(end.fd >= 0);
	while (left > 0 && poll(&end, 1, STEP_MS) <= 0)
		left--;
	close(end.fd);
	if (waitpid(pid, &status, WNOHANG) == pid)
		return status;
	CHECK(!"a child ends");
	show_stack(pid);
	kill(pid, SIGKILL);
	return -1;
}

uint64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000000000ull + t.tv_nsec;
}

void still_alive(void)
{
	enum { HANG_SECONDS = 300 };

	alarm(HANG_SECONDS);
}

void progress(uint64_t done, uint64_t all)
{
	static uint64_t next;
	uint64_t now = now_ns();
	char line[64]; /* in one write: what kmsg takes is a record */
	int fd, n;

	if (now < next)
		return;
	next = now + 60 * 1000000000ull;
	n = snprintf(line, sizeof(line), "%lu of %lu\n", (long)done, (long)all);
	fd = open("/dev/kmsg", O_WRONLY | O_CLOEXEC);
	CHECK_EQ(write(fd, line, n), n);
	close(fd);
}

/* splitmix64 */
uint64_t next_random(uint64_t *state)
{
	uint64_t z = (*state += 0x9E3779B97F4A7C15ull);

	z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9ull;
	z = (z ^ z >> 27) * 0x94D049BB133111EBull;
	return z ^ z >> 31;
}

uint64_t seed_for(const char *what)
{
	const char *given = getenv("NFC_SEED");
	uint64_t seed = given ? strtoull(given, NULL, 0) : now_ns();

	printf("%s: seed %#" PRIx64 " (repeat with NFC_SEED)\n", what, seed);
	return seed;
}
