// SPDX-License-Identifier: MIT
/*
 * Fairness between files: while one client takes all that it can get of a resource,
 * another one's calls take longer, but 99 of 100 at most five times as long as beside
 * a process that computes as much and leaves the device alone. Of victims there are
 * two: one is like any process, and waits for its turn on a processor as well; the
 * other shares the abuser's processor and is urgent there, so that all it waits
 * for is the driver or the device. Undisturbed times are printed too, and have
 * no limit: the host of a busy emulated processor lets it wait for any reason.
 * All is measured in turn, in short rounds, so that other load of the machine
 * lengthens all alike, and of each the quarter of rounds counts that it
 * disturbed least.
 *
 *	fair [ROUNDS]
 */
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include "lazy.h"
#include "region.h"

enum {
	ROUNDS = 20,
	ROUNDS_MAX = 1000,
	CALLS = 100, /* of a round, each way */
	WARM = 10,
	BATCH = 64,
	MANY = 4 << 20,
	LARGE = 24 << 20, /* in small pages */
	MOST = 5, /* times as long */
	WAITING = 32000, /* operations */
	CANCELLERS = 3,
	CANCELS = 4,
	STALLED = 8, /* transfers */
	POLLS = 2000,
	PIECES = 16, /* of memory, each of … */
	PIECE = 64 << 10,
};

/* The state of an abuser, for an action that it repeats. */
struct abuse {
	int fd;
	uint32_t channel;
	uint8_t *memory;
	struct lazy lazy; /* memory that does not come … */
	uint32_t holds[STALLED]; /* … for transfers to these */
};

static void reap_all(const struct abuse *a, int taken)
{
	struct nfcomms_completion c;

	for (int i = 0; i < taken; i++)
		reap(a->fd, &c);
}

/* Requests of the control channel, a batch at a time. */
static void ask(const struct abuse *a)
{
	struct nfcomms_request_memory memory = {
		.request = NFCOMMS_CONTROL_MEMORY
	};
	struct nfcomms_op ops[BATCH];

	for (int i = 0; i < BATCH; i++) {
		ops[i] = operation(NFCOMMS_OP_CONTROL, 0);
		memcpy(ops[i].payload, &memory, sizeof(memory));
	}
	reap_all(a, submit(a->fd, ops, BATCH));
}

/* Messages to a program that swallows them. */
static void say(const struct abuse *a)
{
	struct nfcomms_op ops[BATCH];

	for (int i = 0; i < BATCH; i++)
		ops[i] = message(a->channel, "x", 1);
	reap_all(a, submit(a->fd, ops, BATCH));
}

/* Operations that wait, all with one name. */
static void wait_by_the_thousand(struct abuse *a)
{
	struct nfcomms_op ops[BATCH];

	ops[0] = message(program(a->fd, "hold"), "x", 1);
	for (int i = 1; i < BATCH; i++)
		ops[i] = ops[0];
	for (int i = 0; i < WAITING; i += BATCH)
		CHECK_EQ(submit(a->fd, ops, BATCH), BATCH);
}

/* A CANCEL that finds none of them, and messages that do complete. */
static void cancel_much(const struct abuse *a)
{
	for (int i = 0; i < CANCELS; i++)
		CHECK_EQ(cancel(a->fd, 1), ENOENT);
	say(a);
}

/* Large transfers. */
static void move_much(const struct abuse *a)
{
	struct nfcomms_op ops[2] = {
		transfer(NFCOMMS_OP_SEND_IND, a->channel, a->memory, MANY),
		transfer(NFCOMMS_OP_SEND_IND, a->channel, a->memory, MANY),
	};

	reap_all(a, submit(a->fd, ops, 2));
}

/* Memory that is registered and given back. */
static void register_much(const struct abuse *a)
{
	registers(a->fd, a->memory, LARGE);
	unregister(a->fd, a->memory);
}

/* Files and channels that come and go. */
static void come_and_go(const struct abuse *a)
{
	int fd = client();

	(void)a;
	program(fd, "hold");
	close(fd);
}

static void prepare_to_stall(struct abuse *a)
{
	uint32_t first = 0;

	a->lazy = lazy_pages(NFC_PAGE_SIZE, 0);
	CHECK_EQ(start(a->fd, "hold", STALLED, &first), NFC_OK);
	for (uint32_t i = 0; i < STALLED; i++)
		a->holds[i] = subscribe(a->fd, first + i);
}

/* Transfers that wait for their memory, and are taken out of that. */
static void stall_and_cancel(const struct abuse *a)
{
	uint64_t ids[STALLED];

	for (int i = 0; i < STALLED; i++) {
		stall_worker(a->fd, a->holds[i], &a->lazy);
		ids[i] = taken_id() + 1;
	}
	for (int i = 0; i < STALLED; i++)
		CHECK_EQ(cancel(a->fd, ids[i]), 0);
	reap_all(a, STALLED);
}

/* Have thousands of polls wait for a descriptor. */
static void poll_by_the_thousand(int fd)
{
	struct rlimit r = { 2 * POLLS, 2 * POLLS };
	struct epoll_event e = { .events = EPOLLIN | EPOLLET };

	CHECK(!setrlimit(RLIMIT_NOFILE, &r));
	for (int i = 0; i < POLLS && !test_failures(); i++)
		CHECK(!epoll_ctl(epoll_create1(EPOLL_CLOEXEC), EPOLL_CTL_ADD,
				 fd, &e));
}

static void poll_the_file(struct abuse *a)
{
	poll_by_the_thousand(a->fd);
}

static void poll_its_event(struct abuse *a)
{
	struct nfcomms_eventfd e = {
		.size = sizeof(e),
		.fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK),
	};

	CHECK_EQ(control(a->fd, NFCOMMS_IOC_EVENTFD, &e), 0);
	poll_by_the_thousand(e.fd);
}

/* Regions whose memory goes away below them. */
static void unmap_much(const struct abuse *a)
{
	uint8_t *p = small_pages(PIECES * PIECE, 1);

	for (int i = 0; i < PIECES; i++)
		CHECK_EQ(registers(a->fd, p + i * PIECE, PIECE), 0);
	munmap(p, PIECES * PIECE);
}

/* Processes that start and are stopped. */
static void start_and_stop(const struct abuse *a)
{
	struct nfcomms_op op = operation(NFCOMMS_OP_CONTROL, 0);
	struct nfcomms_request_start c = { .request = NFCOMMS_CONTROL_START,
					   .targets = 1,
					   .name = "hold" };
	struct nfcomms_request_process stop = { .request = NFCOMMS_CONTROL_STOP };
	struct nfcomms_completion out;

	memcpy(op.payload, &c, sizeof(c));
	CHECK_EQ(call(a->fd, &op, &out), 0);
	memcpy(&c, out.payload, sizeof(c));
	CHECK_EQ(c.status, NFC_OK);
	stop.process = c.process;
	memcpy(op.payload, &stop, sizeof(stop));
	CHECK_EQ(outcome(a->fd, &op), NFC_OK);
}

/* The activity of an abuser, until it is to end. */
enum { RESTS, COMPUTES, ABUSES, WAYS };

/* An abuser, and what it shares with its victim. */
struct role {
	void (*prepare)(struct abuse *a); /* NULL: nothing */
	void (*again)(const struct abuse *a);
	int threads; /* that do it, or compute */
	bool shares; /* its victim's processor, where that is first */
	_Atomic int wanted, does; /* one of the above */
	_Atomic unsigned long times; /* that it did it again */
};

/* One thread of it. */
struct abuser {
	pthread_t thread;
	struct role *role;
	const struct abuse *with;
};

static void *abuse_again(void *argument)
{
	const struct abuser *a = argument;
	struct role *r = a->role;

	while (r->wanted != WAYS) {
		r->does = r->wanted;
		if (r->does == ABUSES) {
			r->again(a->with);
			r->times++;
		} else if (r->does == RESTS) {
			usleep(1000);
		}
	}
	return NULL;
}

static int abuse(void *argument)
{
	struct role *r = argument;
	struct abuse a = { .fd = client(), .memory = small_pages(LARGE, 1) };
	struct abuser abusers[CANCELLERS] = { 0 };

	if (r->shares)
		on_one_processor(false);
	a.channel = program(a.fd, "sink");
	if (r->prepare)
		r->prepare(&a);
	for (int i = 0; i < r->threads; i++) {
		abusers[i].role = r;
		abusers[i].with = &a;
		CHECK(!pthread_create(&abusers[i].thread, NULL, abuse_again,
				      &abusers[i]));
	}
	for (int i = 0; i < r->threads; i++)
		pthread_join(abusers[i].thread, NULL);
	return test_failures() != 0;
}

static void command(struct role *r, int what)
{
	uint64_t end = now_ns() + PATIENCE_MS * 1000000ull;

	r->wanted = what;
	while (r->does != what && now_ns() < end)
		usleep(100);
	CHECK(r->does == what);
}

static int by_size(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

/* The one of so many times that a part of 100 of them do not exceed. */
static uint64_t percentile(uint64_t *took, long n, int part)
{
	qsort(took, n, sizeof(*took), by_size);
	return took[n * part / 100];
}

/* The action that a victim repeats. */
typedef void suffer(const struct bench *b);

static void echo(const struct bench *b)
{
	check_alive(b->fd, b->ch);
}

static void request(const struct bench *b)
{
	struct nfcomms_request_memory memory = {
		.request = NFCOMMS_CONTROL_MEMORY
	};
	struct nfcomms_op op = operation(NFCOMMS_OP_CONTROL, 0);

	memcpy(op.payload, &memory, sizeof(memory));
	CHECK_EQ(outcome(b->fd, &op), NFC_OK);
}

/* The most that 99 of 100 calls of a round take, in nanoseconds. */
static uint64_t p99(suffer *again, const struct bench *b)
{
	uint64_t took[CALLS];

	for (long i = -WARM; i < CALLS; i++) {
		uint64_t begun = now_ns();

		again(b);
		if (i >= 0)
			took[i] = now_ns() - begun;
	}
	return percentile(took, CALLS, 99);
}

/* Rounds of each way; into took what the quieter quarter of them do not exceed. */
static void measure(struct role *r, suffer *again, const struct bench *b,
		    uint64_t took[WAYS])
{
	static uint64_t round[WAYS][ROUNDS_MAX];
	long n = test_argument ? atol(test_argument) : ROUNDS;

	REQUIRE(n > 0 && n <= ROUNDS_MAX);
	for (long i = 0; i < n && !test_failures(); i++)
		for (int way = 0; way < WAYS; way++) {
			command(r, way);
			round[way][i] = p99(again, b);
		}
	for (int way = 0; way < WAYS; way++)
		took[way] = percentile(round[way], n, 25);
	CHECK(r->times >= (unsigned long)n);
}

/* Compare the times beside an abuser with those without one. */
static void decide(const char *name, const char *victim, const uint64_t *took)
{
	double times[WAYS];

	for (int way = 0; way < WAYS; way++)
		times[way] = (double)took[ABUSES] / (double)took[way];
	printf("%s, %s: p99 %lu us, %.1f times that beside one that computes, %.1f times quiet\n",
	       name, victim, (long)took[ABUSES] / 1000, times[COMPUTES],
	       times[RESTS]);
	CHECK(took[ABUSES] <= MOST * took[COMPUTES]);
}

/* One kind of victim. */
static void suffers(struct role *r, suffer *victim, bool urgent,
		    uint64_t took[WAYS])
{
	struct bench b = setup();
	pid_t pid;

	r->shares = urgent;
	r->does = WAYS; /* not there yet */
	pid = child(abuse, r);
	if (urgent)
		on_one_processor(true);
	measure(r, victim, &b, took);
	on_all_processors();
	r->wanted = WAYS;
	CHECK_EQ(wait_child(pid), 0);
	teardown(&b);
}

static void check_fair(const char *name, const struct role *role, suffer *victim)
{
	struct role *r = mmap(NULL, sizeof(*r), PROT_READ | PROT_WRITE,
			      MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	uint64_t took[WAYS] = { 0 };

	REQUIRE(r != MAP_FAILED);
	memcpy(r, role, sizeof(*r));
	suffers(r, victim, false, took);
	decide(name, "any process", took);
	suffers(r, victim, true, took);
	decide(name, "urgent", took);
	munmap(r, sizeof(*r));
	check_pins();
}

/* An abuser prepares and repeats this, with so many threads; its victim does that. */
#define FAIR(name, prepare_, again_, threads_, victim)            \
	CASE(name)                                                \
	{                                                         \
		check_fair(#name,                                 \
			   &(struct role){ .prepare = prepare_,   \
					   .again = again_,       \
					   .threads = threads_ }, \
			   victim);                               \
	}

FAIR(control_requests, NULL, ask, 1, echo)
FAIR(control_requests_beside_others, NULL, ask, 1, request)
FAIR(messages, NULL, say, 1, echo)
FAIR(transfers, NULL, move_much, 1, echo)
FAIR(registered_memory, NULL, register_much, 1, echo)
FAIR(files_and_channels, NULL, come_and_go, 1, echo)
FAIR(cancels, wait_by_the_thousand, cancel_much, CANCELLERS, echo)
FAIR(faults_that_wait, prepare_to_stall, stall_and_cancel, 1, echo)
FAIR(polls, poll_the_file, say, 1, echo)
FAIR(polls_of_an_eventfd, poll_its_event, say, 1, echo)
FAIR(memory_that_goes_away, NULL, unmap_much, 1, echo)
FAIR(processes, NULL, start_and_stop, 1, request)
