// SPDX-License-Identifier: MIT
/*
 * Processes that crash, in every way that internal/sim/testdata/crash.c knows: on its
 * own island's thread, or on that of a host which runs it, each ends alone. And an epoch
 * of which a DMA engine alone runs on.
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "harness.h"
#include "stage.h"
#include "../port/epoch.h"

enum {
	WAYS = 11, /* those that can be contained */
	PROMPT = 10, /* the one that begins with messages */
	CRASHES = 100, /* more than a device remembers */
	BESIDE = 20, /* a target whose process continues */
	FIRST = 30,
};

static int start(struct stage *s, uint32_t at)
{
	struct nfc_control c = {
		.op = NFC_CONTROL_START, .a = at, .b = 1, .name = "crash"
	};
	int rc = stage_ask(s, &c);

	return rc ? rc : stage_open(s, at);
}

static void order(struct stage *s, uint32_t channel, uint64_t way)
{
	stage_say(s, channel, &way, sizeof(way));
}

/* The process beside answers, and so do the services. */
static void others_live(struct stage *s)
{
	uint64_t back[7] = { 0 };

	order(s, BESIDE, WAYS + 100);
	stage_hear(s, BESIDE, back);
	CHECK_EQ(back[0], WAYS + 100);
	order(s, NFC_TARGET_LOOPBACK, 5);
	stage_hear(s, NFC_TARGET_LOOPBACK, back);
	CHECK_EQ(back[0], 5);
}

/* The host closes its end, so that the target is free again. */
static void leave(struct stage *s, uint32_t at)
{
	host_close(&s->r, at, 3);
	stage_end(s, at);
}

static void crash(struct stage *s, uint32_t at, uint64_t way)
{
	uint64_t generation, ignored[7];
	struct nfc_crash c;

	CHECK_EQ(start(s, at), 0);
	generation = s->side[at].generation;
	order(s, at, way);
	for (int i = 0; way == PROMPT && i < 100; i++) {
		stage_hear(s, at, ignored);
		order(s, at, 0);
	}
	stage_end(s, at);
	CHECK(nfc_hosted_crash(s->h, 0, at, generation, &c));
	CHECK(!strcmp(c.program, "crash"));
	CHECK(c.process && c.image && c.offset && c.what[0]);
	CHECK(!nfc_hosted_crash(s->h, 0, at + 1, generation, &c));
	CHECK(!nfc_hosted_crash(s->h, 1, at, generation, &c));
	CHECK(!nfc_hosted_crash(s->h, 0, at, generation + 1, &c));
	leave(s, at);
}

static void prepare_device(struct stage *s)
{
	struct nfc_control c = { .op = NFC_CONTROL_LOAD,
				 .a = stage_image_size() };

	CHECK_EQ(stage_boot(s), 0);
	CHECK_EQ(stage_ask(s, &c), 0);
	CHECK_EQ(stage_open(s, NFC_TARGET_LOOPBACK), 0);
	CHECK_EQ(start(s, BESIDE), 0);
}

static void crash_all(uint32_t islands, bool sleeps)
{
	static struct stage s;
	struct shape shape = { .islands = islands,
			       .managers = islands,
			       .engines = 1,
			       .sleeps = sleeps };

	memset(&s, 0, sizeof(s));
	s.shape = &shape;
	s.r.config = stage_config(&shape);
	prepare_device(&s);
	for (uint64_t i = 0; i < CRASHES && !test_failures(); i++) {
		crash(&s, FIRST + (uint32_t)(i % 3), i % WAYS);
		others_live(&s);
	}
	CHECK(stage_close(&s));
	free(s.r.received);
}

CASE(a_process_that_crashes_ends_alone)
{
	crash_all(1, false);
	crash_all(2, true);
}

/* A program that crashes before it calls the firmware ends alone, too. */
CASE(a_process_that_crashes_at_once)
{
	static struct stage s;
	struct shape shape = { .islands = 1, .managers = 1 };
	struct nfc_control c = {
		.op = NFC_CONTROL_START, .a = FIRST, .b = 1, .name = "early"
	};

	memset(&s, 0, sizeof(s));
	s.shape = &shape;
	s.r.config = stage_config(&shape);
	prepare_device(&s);
	CHECK_EQ(stage_ask(&s, &c), 0);
	others_live(&s);
	CHECK(stage_close(&s));
	free(s.r.received);
}

/* An image's file is there as long as the image. */
CASE(an_image_is_kept_as_it_received)
{
	static struct stage s;
	struct shape shape = { .islands = 1, .managers = 1 };
	struct nfc_crash c;
	uint64_t size = 0;
	void *file;

	memset(&s, 0, sizeof(s));
	s.shape = &shape;
	s.r.config = stage_config(&shape);
	prepare_device(&s);
	CHECK_EQ(start(&s, FIRST), 0);
	order(&s, FIRST, 0);
	stage_end(&s, FIRST);
	REQUIRE(nfc_hosted_crash(s.h, 0, FIRST, s.side[FIRST].generation, &c));
	file = nfc_hosted_image(c.image, &size);
	REQUIRE(file);
	CHECK_EQ(size, stage_image_size());
	free(file);
	CHECK(stage_close(&s));
	CHECK(!nfc_hosted_image(c.image, &size));
	free(s.r.received);
}

/* The thread of a DMA engine that moves its last piece until it is let go. */
static void *last_piece(void *busy)
{
	pthread_mutex_lock(busy);
	pthread_mutex_unlock(busy);
	return NULL;
}

/* Boot a device of one island, and have its threads leave. */
static void boot_without_threads(struct stage *s)
{
	static struct shape shape = { .islands = 1, .managers = 1 };

	memset(s, 0, sizeof(*s));
	s->shape = &shape;
	s->r.config = stage_config(&shape);
	CHECK_EQ(stage_boot(s), 0);
	/* on a busy machine, too */
	CHECK(port_threads_stop(s->h->epoch, 1 << 30));
}

/*
 * An engine that is late is no process that computes: neither Restart nor Close
 * names one.
 */
CASE(an_engine_that_ends_late_is_not_left_behind)
{
	static pthread_mutex_t busy = PTHREAD_MUTEX_INITIALIZER;
	static struct stage s;
	struct epoch *first;

	boot_without_threads(&s);
	first = s.h->epoch;
	pthread_mutex_lock(&busy);
	REQUIRE(!pthread_create(&first->engine[0], NULL, last_piece, &busy));
	first->works[0] = true;
	CHECK_EQ(stage_restart(&s), 0);
	CHECK(!s.left);
	CHECK(first->works[0]); /* it was, and is there still */
	CHECK(stage_close(&s));
	pthread_mutex_unlock(&busy);
	CHECK_EQ(stage_boot(&s), 0); /* frees the epoch if it ended */
	CHECK(stage_close(&s));
	free(s.r.received);
}

/* How often the joining thread has read its clock; 0: the clock is the real one. */
static _Atomic uint32_t reads;

uint64_t __real_port_clock(void);
uint64_t __wrap_port_clock(void);

/* After the first reading each one is 1.2 seconds later than that. */
uint64_t __wrap_port_clock(void)
{
	if (!reads)
		return __real_port_clock();
	return reads++ == 1 ? 1000000000 : 2200000000;
}

/* The thread of an engine that leaves after it was waited for in vain for 1.2 seconds. */
static void *starved(void *unused)
{
	const struct timespec t = { .tv_nsec = 1000000 };

	(void)unused;
	while (reads && reads < 4)
		nanosleep(&t, NULL);
	return NULL;
}

/* Time in which a thread has no processor is no time in which it stays. */
CASE(a_thread_without_a_processor_is_waited_for)
{
	static struct stage s;
	pthread_t *engine;

	boot_without_threads(&s);
	engine = &s.h->epoch->engine[0];
	reads = 1;
	REQUIRE(!pthread_create(engine, NULL, starved, NULL));
	s.h->epoch->works[0] = true;
	CHECK(port_threads_stop(s.h->epoch, 1));
	reads = 0;
	CHECK(stage_close(&s));
	free(s.r.received);
}
