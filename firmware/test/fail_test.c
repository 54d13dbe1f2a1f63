// SPDX-License-Identifier: MIT
/*
 * Every call of the hosted firmware to its system fails, one at a time: for n =
 * 1, 2, … the test boots, uses and closes a device whose nth call fails. It
 * ends with a run that has none left. A call that failed returns a status,
 * works when it is tried again, and nothing is leaked.
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fail.h"
#include "stage.h"

enum {
	LONG = 100000, /* seconds */
	RUNS = 3, /* of each shape, if none of its calls fails */
};

/* ---- the steps of a run; each returns 0 or enum nfc_status ---- */

static int make_bus(struct stage *s)
{
	s->bus = nfc_bus_new(1 << 20, 3);
	return s->bus ? 0 : NFC_ENOMEM;
}

/* Statuses of the bus are of the kernel's kind. */
static int typed(int rc)
{
	return rc >= 0	     ? 0 :
	       rc == -ENOMEM ? NFC_ENOMEM :
	       rc == -EMFILE ? NFC_ENOMEM :
	       rc == -EIO    ? NFC_EDMA :
	       rc == -EINVAL ? NFC_EINVAL :
			       NFC_STATUS_COUNT;
}

static int map_range(struct stage *s)
{
	return typed(nfc_bus_map(s->bus,
				 &(struct nfc_bus_range){
					 .address = (uintptr_t)host_memory +
						    s->index * (uint64_t)HALF,
					 .size = HALF,
					 .access = NFC_BUS_READ | NFC_BUS_WRITE,
					 .fd = host_file[s->index],
				 }));
}

static int assign(struct stage *s)
{
	return typed(nfc_irq_assign(nfc_bus_irq(s->bus), s->index, host_vector));
}

static int open_services(struct stage *s)
{
	int rc = stage_open(s, NFC_TARGET_LOOPBACK);

	if (!rc)
		rc = stage_open(s, NFC_TARGET_TELEMETRY);
	return rc ? rc : stage_open(s, NFC_TARGET_LOG);
}

static int load(struct stage *s)
{
	struct nfc_control c = { .op = NFC_CONTROL_LOAD,
				 .a = stage_image_size() };
	char line[NFC_PAYLOAD_SIZE];
	int rc = stage_ask(s, &c);

	if (rc && c.b) { /* it has a reason, which is in the log as well */
		stage_hear(s, NFC_TARGET_LOG, line);
		CHECK(!strncmp(line, "load: the image ", 16));
	}
	return rc;
}

static uint32_t target(uint32_t index)
{
	return NFC_TARGET_FIRST + index * 37 % (CHANNELS - NFC_TARGET_FIRST);
}

static int start_program(struct stage *s, uint32_t at, const char *name)
{
	struct nfc_control c = { .op = NFC_CONTROL_START, .a = at, .b = 1 };
	int rc;

	strncpy((char *)c.name, name, NFC_NAME_SIZE - 1);
	rc = stage_ask(s, &c);
	return rc ? rc : stage_open(s, at);
}

static int start(struct stage *s)
{
	return start_program(s, target(s->index), "loopback");
}

static int start_image(struct stage *s)
{
	return start_program(s, target(s->shape->programs), "checksum");
}

/* The program that was loaded answers a transfer with its size. */
static int use_image(struct stage *s)
{
	uint32_t at = target(s->shape->programs);
	uint64_t answer[7];
	int rc = stage_give(s, at, host_memory + 123, s->shape->size);

	if (rc)
		return rc;
	stage_hear(s, at, answer);
	CHECK_EQ(answer[0], s->shape->size);
	return 0;
}

/* A line that is sent to the log is received from it. */
static int write_log(struct stage *s)
{
	char line[NFC_PAYLOAD_SIZE] = "a line", back[NFC_PAYLOAD_SIZE];

	stage_say(s, NFC_TARGET_LOG, line, strlen(line));
	stage_hear(s, NFC_TARGET_LOG, back);
	CHECK_EQ(strcmp(line, back), 0);
	return 0;
}

static int echo(struct stage *s, uint32_t channel)
{
	uint8_t out[NFC_PAYLOAD_SIZE], in[NFC_PAYLOAD_SIZE];

	fill_pattern(out, sizeof(out), channel);
	stage_say(s, channel, out, sizeof(out));
	stage_hear(s, channel, in);
	CHECK_EQ(memcmp(out, in, sizeof(in)), 0);
	return 0;
}

/* The counters of all islands, while they count. */
static int read_counters(struct stage *s)
{
	for (uint32_t page = 0; page < 2; page++) {
		uint64_t counter[7];

		stage_say(s, NFC_TARGET_TELEMETRY, &page, sizeof(page));
		stage_hear(s, NFC_TARGET_TELEMETRY, counter);
		CHECK(page || counter[NFC_COUNT_MESSAGES]);
	}
	return 0;
}

/* Wait until every island sleeps. */
static void until_asleep(struct stage *s)
{
	struct nfc_area *area = s->r.seat.area;

	for (uint32_t i = 0; i < s->r.config.islands; i++)
		while (!atomic_load((_Atomic uint64_t *)&area->island[i].word))
			sched_yield();
}

/* A transfer out of one file and back into the other. */
static int bounce(struct stage *s)
{
	uint8_t *out = host_memory + 123, *in = host_memory + HALF + 77;
	uint64_t size = s->shape->size;
	int rc;

	fill_pattern(out, size, s->index);
	memset(in, 0, size);
	rc = stage_give(s, NFC_TARGET_LOOPBACK, out, size);
	if (!rc)
		rc = stage_take(s, NFC_TARGET_LOOPBACK, in, size);
	if (!rc)
		CHECK_EQ(memcmp(in, out, size), 0);
	return rc;
}

static int talk(struct stage *s)
{
	echo(s, NFC_TARGET_LOOPBACK);
	for (uint32_t i = 0; i < s->shape->programs; i++)
		echo(s, target(i));
	read_counters(s);
	return write_log(s);
}

static int clear_area(struct stage *s)
{
	return nfc_bus_area_clear(s->bus) ? NFC_ENOMEM : 0;
}

/* ---- a run ---- */

/* A step may fail if a call did, with a status; then it works. */
static bool attempt(struct stage *s, int (*step)(struct stage *s))
{
	int rc = step(s);

	if (!rc)
		return !test_failures();
	if (!CHECK(fail_struck() && !s->explained))
		printf("status %d\n", rc);
	CHECK(rc > 0 && rc < NFC_STATUS_COUNT);
	s->explained = true;
	return CHECK_EQ(step(s), 0) && !test_failures();
}

static bool each(struct stage *s, uint32_t n, int (*step)(struct stage *s))
{
	for (s->index = 0; s->index < n; s->index++)
		if (!attempt(s, step))
			return false;
	return true;
}

static bool work(struct stage *s)
{
	return attempt(s, open_services) && attempt(s, load) &&
	       attempt(s, start_image) && each(s, s->shape->programs, start) &&
	       attempt(s, talk) && each(s, 2, bounce) && attempt(s, use_image);
}

/* Two epochs of one device; on a bus, of two devices that differ. */
static bool live(struct stage *s)
{
	bool ok = attempt(s, stage_boot);

	ok = ok && work(s);
	if (ok && !s->bus)
		ok = attempt(s, stage_restart) && work(s);
	if (s->h)
		CHECK(stage_close(s));
	s->h = NULL;
	return ok;
}

static void live_on_bus(struct stage *s)
{
	struct shape other = *s->shape;

	if (!attempt(s, make_bus))
		return;
	nfc_bus_master(s->bus, true);
	if (each(s, 2, map_range) && each(s, 3, assign) && live(s)) {
		other.islands = other.managers = 1;
		s->shape = &other;
		s->r.config = stage_config(&other);
		if (attempt(s, clear_area))
			live(s);
	}
	nfc_bus_free(s->bus);
}

static void live_once(const struct shape *shape)
{
	static struct stage s;

	memset(&s, 0, sizeof(s));
	s.shape = shape;
	s.r.config = stage_config(shape);
	if (shape->bus)
		live_on_bus(&s);
	else
		live(&s);
	free(s.r.received);
}

/* ---- what must be as before ---- */

static unsigned int count(const char *folder)
{
	DIR *dir = opendir(folder);
	unsigned int n = 0;

	while (readdir(dir))
		n++;
	closedir(dir);
	return n;
}

int __lsan_do_recoverable_leak_check(void);

struct census {
	unsigned int files, threads;
	int64_t mapped;
};

static struct census census(void)
{
	return (struct census){ count("/proc/self/fd"),
				count("/proc/self/task"), fail_mapped() };
}

/* A thread that was joined is listed for a moment, also in the census before. */
static void as_before(const struct census *before)
{
	struct census now = census();

	while (now.threads > before->threads) {
		sched_yield();
		now = census();
	}
	CHECK_EQ(now.files, before->files);
	CHECK_EQ(now.mapped, before->mapped);
	CHECK_EQ(__lsan_do_recoverable_leak_check(), 0);
}

#ifdef __SANITIZE_THREAD__ /* here only what threads do to each other counts */
int __lsan_do_recoverable_leak_check(void)
{
	return 0;
}

void __lsan_disable(void)
{
}

void __lsan_enable(void)
{
}

static void exhaust(const struct shape *shape)
{
	struct census before;

	live_once(shape);
	before = census();
	for (int i = 1; i < RUNS; i++)
		live_once(shape);
	as_before(&before);
}

#else
/* One run without a failure, then one for each call that may fail. */
static void exhaust(const struct shape *shape)
{
	struct census before;
	uint64_t n = 0;

	fail_at(0);
	live_once(shape);
	before = census(); /* the first run leaves what libraries keep */
	do {
		fail_at(++n);
		live_once(shape);
		as_before(&before);
		if (test_failures())
			printf("call %" PRIu64 ", %s\n", n, fail_name());
	} while (fail_struck() && !test_failures());
	fail_at(0);
	live_once(shape);
	as_before(&before);
	printf("%" PRIu64 " points\n", n - 1);
}

#endif

/* A device stops, whatever its host did to the words its islands sleep on. */
CASE(stops_whatever_the_host_says)
{
	const struct shape shape = {
		.islands = 4, .managers = 4, .engines = 4, .sleeps = true
	};
	static struct stage s;

	for (int i = 0; i < 60 && !test_failures(); i++) {
		struct nfc_area *area;

		s.shape = &shape;
		s.r.config = stage_config(&shape);
		if (!CHECK_EQ(stage_boot(&s), 0))
			return;
		until_asleep(&s);
		area = s.r.seat.area;
		for (uint32_t j = 0; j < shape.islands; j++)
			atomic_store((_Atomic uint64_t *)&area->island[j].word,
				     (uint64_t)i % 3);
		CHECK(stage_close(&s));
	}
	free(s.r.received);
	s.r.received = NULL;
}

/* A start is answered before the island's thread runs the process. */
static void until_computing(struct stage *s, uint32_t island)
{
	struct nfc_computing who;

	while (!nfc_hosted_computes(s->h, island, &who))
		sched_yield();
}

/*
 * A program keeps its island while the device restarts: the next epoch needs an
 * area of its own. Without memory for it the restart after that makes it. The
 * memory of that thread is freed by the next open or close after it has left.
 */
CASE(restarts_beside_a_thread_that_stays)
{
	const struct shape shape = { .islands = 2, .managers = 2 };
	struct nfc_control c = {
		.op = NFC_CONTROL_START,
		.a = CHANNELS / 2, /* the other island's */
		.b = 1,
		.c = LONG * 1000ull, /* ms */
		.name = "lone.spin",
	};
	static struct stage s;
	struct census before = census();

	s.shape = &shape;
	s.r.config = stage_config(&shape);
	CHECK_EQ(stage_boot(&s), 0);
	CHECK_EQ(stage_ask(&s, &c), 0);
	until_computing(&s, 1);
	fail_at(1);
	CHECK_EQ(stage_restart(&s), NFC_ENOMEM);
	CHECK(s.left);
	nfc_hosted_ring(s.h, 1);
	CHECK_EQ(strcmp(fail_name(), "mmap"), 0);
	fail_at(0);
	CHECK_EQ(stage_restart(&s), 0);
	CHECK_EQ(open_services(&s), 0);
	echo(&s, NFC_TARGET_LOOPBACK);
	CHECK(!stage_close(&s));
	CHECK_EQ(census().files, before.files);
	fail_clock_ahead(LONG + 1);
	while (census().threads > before.threads)
		sched_yield();
	fail_clock_ahead(0);
	CHECK_EQ(stage_boot(&s), 0);
	CHECK(stage_close(&s));
	free(s.r.received);
	s.r.received = NULL;
	as_before(&before);
}

CASE(one_island)
{
	exhaust(&(struct shape){
		.islands = 1, .managers = 1, .programs = 2, .size = 100 });
}

CASE(two_islands_and_an_engine)
{
	exhaust(&(struct shape){ .islands = 2,
				 .managers = 4,
				 .engines = 1,
				 .programs = 8,
				 .size = 60000 });
}

/* The rest is the same however stacks are switched, for which two shapes do. */
#ifndef PORT_SWITCH_PORTABLE

CASE(islands_that_sleep)
{
	exhaust(&(struct shape){ .islands = 4,
				 .managers = 4,
				 .engines = 2,
				 .programs = 4,
				 .size = 300000,
				 .sleeps = true });
}

CASE(many_islands)
{
	exhaust(&(struct shape){ .islands = 16,
				 .managers = 16,
				 .engines = 4,
				 .programs = 16,
				 .size = 4096,
				 .sleeps = true });
}

CASE(on_a_bus)
{
	exhaust(&(struct shape){ .islands = 2,
				 .managers = 2,
				 .programs = 2,
				 .size = 60000,
				 .bus = true });
}

CASE(on_a_bus_with_engines)
{
	exhaust(&(struct shape){ .islands = 4,
				 .managers = 8,
				 .engines = 3,
				 .programs = 6,
				 .size = 200000,
				 .bus = true });
}

#endif
