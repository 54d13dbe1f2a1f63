// SPDX-License-Identifier: MIT
/*
 * Every call of the hosted firmware to its system fails, one at a time: for n =
 * 1, 2, … a device is booted, used and closed with the nth call failing, until a
 * run has none left. What could not be done returns a status, works when it is
 * tried again, and nothing is leaked.
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "fail.h"
#include "rig.h"
#include "../port/hosted.h"

enum {
	CHANNELS = 64,
	PROGRAMS_MAX = 16,
	HALF = 1 << 20, /* of host memory: a file that cannot shrink, one that can */
	IMAGE_AT = HALF / 2,
	WATCHDOG = 60, /* seconds without an answer: the device hangs */
	PATIENCE = 10, /* seconds for threads to be gone */
	RUNS = 3, /* of each shape, if none of its calls fails */
};

/* What a run is made of. */
struct shape {
	uint32_t islands, managers, engines, programs, size;
	bool bus, sleeps;
};

struct stage {
	struct rig r;
	struct nfc_hosted *h;
	struct nfc_bus *bus;
	const struct shape *shape;
	uint32_t index; /* of the program or range that the step is about */
	bool explained; /* a step failed already: calls fail once */
};

static struct rig_channel host_side[CHANNELS];
static uint8_t *host_memory;
static uint8_t *image; /* in host memory */
static uint64_t image_size;
static int file[2], vector_fd;

/* What rig_host.c asks of its rig: here the device runs on its own. */
bool rig_step(struct rig *r)
{
	(void)r;
	sched_yield();
	return true;
}

void rig_advance(struct rig *r, uint64_t ns)
{
	(void)ns;
	rig_step(r);
}

void *rig_pages(struct rig *r, uint64_t size)
{
	(void)r;
	(void)size;
	abort(); /* nobody asks */
}

/* ---- the host ---- */

/* The next message of a channel; its type is TYPE_COUNT if none comes. */
static struct nfc_slot await(struct stage *s, uint32_t channel)
{
	struct nfc_slot slot = { .header = NFC_TYPE_COUNT };
	time_t end = time(NULL) + WATCHDOG;

	do {
		for (uint32_t i = 0; i < s->r.config.islands; i++)
			nfc_hosted_ring(s->h, i);
		host_drain(&s->r);
		if (host_take(&s->r, channel, &slot))
			return slot;
		nfc_hosted_assist(s->h);
		sched_yield();
	} while (time(NULL) < end);
	CHECK(!"an answer");
	return slot;
}

static uint32_t type_of(const struct nfc_slot *slot)
{
	return nfc_header_type(slot->header);
}

static struct nfc_ack ack_of(const struct nfc_slot *slot)
{
	struct nfc_ack ack;

	memcpy(&ack, slot->payload, sizeof(ack));
	return ack;
}

/* Send lists up to a number, as many as the window has room for. */
static uint64_t send_lists(struct stage *s, uint32_t channel,
			   uint32_t direction, uint64_t id, const uint8_t *buf,
			   uint64_t size, uint64_t sent, uint64_t acked)
{
	uint64_t to = acked + s->r.config.window;

	host_send_lists(&s->r, channel, direction, id, buf, size, sent, to);
	return to < host_lists(buf, size) ? to : host_lists(buf, size);
}

/* Run a transfer whose first `sent` lists are out; 0 or enum nfc_status. */
static int run(struct stage *s, uint32_t channel, uint32_t direction,
	       uint64_t id, const uint8_t *buf, uint64_t size, uint64_t sent)
{
	for (;;) {
		struct nfc_slot slot = await(s, channel);
		struct nfc_ack ack = ack_of(&slot);

		if (type_of(&slot) == NFC_TYPE_ACK) {
			if (ack.state == NFC_STATE_REPEAT)
				sent = ack.lists;
			sent = send_lists(s, channel, direction, id, buf, size,
					  sent, ack.lists);
			continue;
		}
		if (type_of(&slot) == NFC_TYPE_DONE) {
			host_note(&s->r, channel, NFC_TYPE_FIN, direction, id);
			return 0;
		}
		return CHECK_EQ(type_of(&slot), NFC_TYPE_ERROR) ? ack.status :
								  NFC_EPROTO;
	}
}

static int give(struct stage *s, uint32_t channel, const uint8_t *buf,
		uint64_t size)
{
	uint64_t id = host_begin(&s->r, channel, size, 0);

	host_send_lists(&s->r, channel, NFC_H2D, id, buf, size, 0, 1);
	return run(s, channel, NFC_H2D, id, buf, size, 1);
}

static int take(struct stage *s, uint32_t channel, uint8_t *buf, uint64_t size)
{
	struct nfc_slot slot = await(s, channel);
	uint64_t id = host_side[channel].next[NFC_D2H]++, sent;

	if (!CHECK_EQ(type_of(&slot), NFC_TYPE_IND_BEGIN))
		return NFC_EPROTO;
	sent = send_lists(s, channel, NFC_D2H, id, buf, size, 0, 0);
	return run(s, channel, NFC_D2H, id, buf, size, sent);
}

static void say(struct stage *s, uint32_t channel, const void *data, size_t n)
{
	struct nfc_slot slot;

	host_direct(&s->r, channel, data, n);
	slot = await(s, channel);
	CHECK_EQ(type_of(&slot), NFC_TYPE_ACK);
}

static void hear(struct stage *s, uint32_t channel, void *data)
{
	struct nfc_slot slot = await(s, channel);
	uint64_t id = host_side[channel].next[NFC_D2H]++;

	CHECK_EQ(type_of(&slot), NFC_TYPE_DIRECT);
	memcpy(data, slot.payload, NFC_PAYLOAD_SIZE);
	host_reply(&s->r, channel, NFC_TYPE_ACK, NFC_D2H, id,
		   NFC_STATE_CONSUMED, 0, 0);
}

/* A control request; returns the status of its reply. */
static int ask(struct stage *s, struct nfc_control *c)
{
	int rc = 0;

	c->request = ++s->r.request;
	say(s, NFC_TARGET_CONTROL, c, sizeof(*c));
	if (c->op == NFC_CONTROL_LOAD)
		rc = give(s, NFC_TARGET_CONTROL, image, image_size);
	hear(s, NFC_TARGET_CONTROL, c);
	return rc ? rc : c->status;
}

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
					 .fd = file[s->index],
				 }));
}

static int assign(struct stage *s)
{
	return typed(nfc_irq_assign(nfc_bus_irq(s->bus), s->index, vector_fd));
}

/* The host begins anew with each epoch. */
static void meet(struct stage *s)
{
	uint64_t size;
	struct nfc_area *area = nfc_hosted_area(s->h, &size);

	memset(host_side, 0, sizeof(host_side));
	host_side[0].next[NFC_H2D] = host_side[0].next[NFC_D2H] = 1;
	memset(s->r.mailbox, 0, sizeof(s->r.mailbox));
	s->r.received_count = 0;
	s->r.port.area = area;
	s->r.epoch = s->r.config.epoch;
	CHECK_EQ(size, nfc_area_size(&s->r.config));
	CHECK_EQ(area->magic, NFC_MAGIC);
	CHECK_EQ(area->state, NFC_DEVICE_READY);
	CHECK_EQ(area->epoch, s->r.epoch);
}

static int boot(struct stage *s)
{
	struct nfc_hosted_options options = {
		.spin_ns = s->shape->sleeps ? 0 : 20000,
		.engines = s->shape->engines,
		.log_fd = -1,
		.bus = s->bus,
	};
	int rc = -nfc_hosted_open(&s->r.config, &options, &s->h);

	if (!rc)
		meet(s);
	return rc;
}

static bool rebooted_beside; /* of the last reboot: a thread stayed behind */

static int reboot(struct stage *s)
{
	struct nfc_computing who;
	int rc;

	s->r.config.epoch++;
	nfc_hosted_fence(s->h);
	rc = -nfc_hosted_restart(s->h, s->r.config.epoch, &rebooted_beside,
				 &who);
	CHECK(!who.process || !strcmp(who.program, "spin"));
	if (!rc)
		meet(s);
	nfc_hosted_assist(s->h);
	return rc;
}

/* False: a thread stayed behind. */
static bool shut_down(struct stage *s)
{
	struct nfc_computing who;
	bool left;

	nfc_hosted_close(s->h, &left, &who);
	CHECK_EQ(who.process != 0, left);
	return !left;
}

static int subscribe(struct stage *s, uint32_t target)
{
	struct nfc_control c = { .op = NFC_CONTROL_OPEN, .a = target };
	int rc = ask(s, &c);

	host_side[target].next[NFC_H2D] = c.a;
	host_side[target].next[NFC_D2H] = c.b;
	host_side[target].generation = c.c;
	return rc;
}

static int open_services(struct stage *s)
{
	int rc = subscribe(s, NFC_TARGET_LOOPBACK);

	if (!rc)
		rc = subscribe(s, NFC_TARGET_TELEMETRY);
	return rc ? rc : subscribe(s, NFC_TARGET_LOG);
}

static int load(struct stage *s)
{
	struct nfc_control c = { .op = NFC_CONTROL_LOAD, .a = image_size };

	return ask(s, &c);
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
	rc = ask(s, &c);
	return rc ? rc : subscribe(s, at);
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
	int rc = give(s, at, host_memory + 123, s->shape->size);

	if (rc)
		return rc;
	hear(s, at, answer);
	CHECK_EQ(answer[0], s->shape->size);
	return 0;
}

/* What the log is told comes out of it. */
static int write_log(struct stage *s)
{
	char line[NFC_PAYLOAD_SIZE] = "a line", back[NFC_PAYLOAD_SIZE];

	say(s, NFC_TARGET_LOG, line, strlen(line));
	hear(s, NFC_TARGET_LOG, back);
	CHECK_EQ(strcmp(line, back), 0);
	return 0;
}

static int echo(struct stage *s, uint32_t channel)
{
	uint8_t out[NFC_PAYLOAD_SIZE], in[NFC_PAYLOAD_SIZE];

	fill_pattern(out, sizeof(out), channel);
	say(s, channel, out, sizeof(out));
	hear(s, channel, in);
	CHECK_EQ(memcmp(out, in, sizeof(in)), 0);
	return 0;
}

/* The counters of all islands, while they count. */
static int read_counters(struct stage *s)
{
	for (uint32_t page = 0; page < 2; page++) {
		uint64_t counter[7];

		say(s, NFC_TARGET_TELEMETRY, &page, sizeof(page));
		hear(s, NFC_TARGET_TELEMETRY, counter);
		CHECK(page || counter[NFC_COUNT_MESSAGES]);
	}
	return 0;
}

/* Wait until every island sleeps. */
static void until_asleep(struct stage *s)
{
	struct nfc_area *area = s->r.port.area;

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
	rc = give(s, NFC_TARGET_LOOPBACK, out, size);
	if (!rc)
		rc = take(s, NFC_TARGET_LOOPBACK, in, size);
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
	CHECK(fail_struck() && !s->explained);
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

static struct nfc_config config_of(const struct shape *shape)
{
	struct nfc_config c = {
		.channels = CHANNELS,
		.managers = shape->managers,
		.islands = shape->islands,
		.engines_me = 4,
		.contexts = 8,
		.slots = 64,
		.window = 4,
		.beat_ms = 1,
		.epoch = 1,
		.memory = { 64 << 10, 64 << 10, 64 << 10, 2 << 20 },
	};

	CHECK_EQ(nfc_config_check(&c), 0);
	return c;
}

/* Two epochs of one device; on a bus, of two devices that differ. */
static bool live(struct stage *s)
{
	bool ok = attempt(s, boot);

	ok = ok && work(s);
	if (ok && !s->bus)
		ok = attempt(s, reboot) && work(s);
	if (s->h)
		CHECK(shut_down(s));
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
		s->r.config = config_of(&other);
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
	s.r.config = config_of(shape);
	s.r.channel = host_side;
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

static void as_before(const struct census *before)
{
	time_t end = time(NULL) + PATIENCE;
	struct census now = census();

	while (now.threads > before->threads && time(NULL) < end)
		now = census();
	CHECK_EQ(now.files, before->files);
	CHECK_EQ(now.threads, before->threads);
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

static int open_file(bool sealed)
{
	int fd = memfd_create("host", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	CHECK_EQ(ftruncate(fd, HALF), 0);
	if (sealed)
		CHECK_EQ(fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK), 0);
	return fd;
}

__attribute__((constructor)) static void prepare(void)
{
	FILE *f = fopen(IMAGE, "rb");

	file[0] = open_file(true);
	file[1] = open_file(false);
	vector_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	host_memory = mmap(NULL, 2 * HALF, PROT_READ | PROT_WRITE,
			   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	for (int i = 0; i < 2; i++)
		CHECK(mmap(host_memory + i * HALF, HALF, PROT_READ | PROT_WRITE,
			   MAP_SHARED | MAP_FIXED, file[i], 0) != MAP_FAILED);
	image = host_memory + IMAGE_AT;
	image_size = f ? fread(image, 1, HALF - IMAGE_AT, f) : 0;
	if (!image_size || image_size == HALF - IMAGE_AT)
		abort();
	fclose(f);
}

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
		s.r.config = config_of(&shape);
		s.r.channel = host_side;
		if (!CHECK_EQ(boot(&s), 0))
			return;
		until_asleep(&s);
		area = s.r.port.area;
		for (uint32_t j = 0; j < shape.islands; j++)
			atomic_store((_Atomic uint64_t *)&area->island[j].word,
				     (uint64_t)i % 3);
		CHECK(shut_down(&s));
	}
	free(s.r.received);
	s.r.received = NULL;
}

/*
 * A program keeps its island while the device restarts: the next epoch needs an
 * area of its own. Without memory for it the restart after that makes it. What
 * that thread kept is freed by whoever comes after it has left.
 */
CASE(restarts_beside_a_thread_that_stays)
{
	const struct shape shape = { .islands = 2, .managers = 2 };
	struct nfc_control c = {
		.op = NFC_CONTROL_START,
		.a = CHANNELS / 2, /* the other island's */
		.b = 1,
		.c = 1500, /* ms */
		.name = "spin",
	};
	static struct stage s;
	struct census before = census();

	s.shape = &shape;
	s.r.config = config_of(&shape);
	s.r.channel = host_side;
	CHECK_EQ(boot(&s), 0);
	CHECK_EQ(ask(&s, &c), 0);
	fail_at(1);
	CHECK_EQ(reboot(&s), NFC_ENOMEM);
	CHECK(rebooted_beside);
	nfc_hosted_ring(s.h, 1);
	CHECK_EQ(strcmp(fail_name(), "mmap"), 0);
	CHECK_EQ(reboot(&s), 0);
	CHECK_EQ(open_services(&s), 0);
	echo(&s, NFC_TARGET_LOOPBACK);
	CHECK(!shut_down(&s));
	CHECK_EQ(census().files, before.files);
	while (census().threads > before.threads)
		sched_yield();
	CHECK_EQ(boot(&s), 0);
	CHECK(shut_down(&s));
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
