// SPDX-License-Identifier: MIT
/*
 * The driver's output about itself: sysfs attributes, the state in debugfs
 * while operations wait in it, tracepoints, and the counters of the health.
 */
#define _GNU_SOURCE
#include <fnmatch.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "bus.h"
#include "rig.h"

enum { TEXT = 1 << 18 };

static char text[TEXT];

static const char *short_node(void)
{
	return strrchr(node(), '/') + 1;
}

/* Read a whole file; false if it cannot be read. */
static bool get(const char *path)
{
	FILE *f = fopen(path, "r");
	size_t n;

	if (!f)
		return false;
	n = fread(text, 1, TEXT - 1, f);
	text[n] = 0;
	return !fclose(f) && n > 0;
}

static bool shows(const char *word)
{
	if (CHECK(strstr(text, word)))
		return true;
	printf("no \"%s\" in:\n%s\n", word, text);
	return false;
}

/* Read an attribute of the class device. */
static bool attribute(const char *name)
{
	char path[128];

	snprintf(path, sizeof(path), "/sys/class/nfcomms/%s/%s", short_node(),
		 name);
	return get(path);
}

static void read_state(void)
{
	char path[128];

	snprintf(path, sizeof(path), "/sys/kernel/debug/nfcomms/%s/state",
		 short_node());
	CHECK(get(path));
}

/* Every attribute is there, and says what the ioctls say. */
CASE(attributes)
{
	static const char *const counters[] = {
		"interrupts", "spurious", "doorbells", "dropped", "faults",
		"resets",     "pinned",	  "epoch",     "vectors",
	};
	struct nfcomms_info info = { .size = sizeof(info) };
	int fd = fresh();

	CHECK_EQ(control(fd, NFCOMMS_IOC_INFO, &info), 0);
	const struct {
		const char *name;
		uint32_t value;
	} same[] = {
		{ "epoch", info.epoch },
		{ "channels", info.channels },
		{ "mailboxes", info.mailboxes },
		{ "islands", info.islands },
		{ "slots", info.slots },
		{ "window", info.window },
		{ "vectors", info.vectors },
		{ "pinned", 0 },
		{ "faults", 0 },
		{ "cancel_timeout_ms", 100 },
		{ "stall_timeout_ms", 10000 },
		{ "heartbeat_misses", 5 },
		{ "recovery", 0 },
		{ "holdoff", 50 },
		{ "adaptive", 1 },
		{ "busy_poll_max", 200 },
	};

	CHECK(attribute("state") && !strcmp(text, "ready\n"));
	for (size_t i = 0; i < sizeof(counters) / sizeof(*counters); i++)
		CHECK(attribute(counters[i]) && text[strlen(text) - 1] == '\n');
	for (size_t i = 0; i < sizeof(same) / sizeof(*same); i++)
		if (!CHECK(attribute(same[i].name)) ||
		    !CHECK_EQ(strtoul(text, NULL, 10), same[i].value))
			printf("%s\n", same[i].name);
	CHECK(attribute("resets") && strtoul(text, NULL, 10) > 0);
	CHECK(attribute("interrupts") && strtoul(text, NULL, 10) > 0);
	close(fd);
}

/*
 * The alias in the module is a pattern that the device's own matches: that is
 * how a machine knows which module to load.
 */
CASE(alias)
{
	static const char start[] = "alias=pci:";
	char device[PATH_MAX], path[PATH_MAX + 16];
	struct stat st = { .st_size = 0 };
	const char *module, *found;
	int fd = open_module();

	CHECK(fd >= 0 && !fstat(fd, &st));
	module = mmap(NULL, st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
	REQUIRE(module != MAP_FAILED);
	found = memmem(module, st.st_size, start, sizeof(start) - 1);
	REQUIRE(found);
	find_device(device);
	snprintf(path, sizeof(path), "%s/modalias", device);
	REQUIRE(get(path));
	text[strcspn(text, "\n")] = 0;
	CHECK_EQ(fnmatch(found + strlen("alias="), text, 0), 0);
	munmap((void *)module, st.st_size);
	close(fd);
}

CASE(state_with_operations_in_it)
{
	int fd = fresh();
	uint32_t hold = program(fd, "hold"), source = program(fd, "source");
	uint8_t *p = pages(1 << 20, 1);
	struct nfcomms_op ops[] = {
		transfer(NFCOMMS_OP_SEND_IND, hold, p, 1 << 20),
		message(hold, "x", 1),
		operation(NFCOMMS_OP_ARM, hold),
	};
	struct nfcomms_op held = transfer(NFCOMMS_OP_RECEIVE_IND, source, p,
					  4096);

	ops[2].flags = NFCOMMS_D2H; /* it never says anything */
	CHECK_EQ(submit(fd, ops, 3), 3);
	ask_source(fd, source, 4096, 1);
	held.flags = NFCOMMS_HOLD;
	CHECK_EQ(outcome(fd, &held), NFC_OK);
	read_state();
	shows("state ");
	shows("mailbox 0");
	shows("moving");
	shows("queued");
	shows("armed");
	shows("lists=0/1/");
	shows("held");
	close(fd);
	free_pages(p, 1 << 20);
	check_pins();
}

CASE(state_without_an_epoch)
{
	char device[PATH_MAX], path[PATH_MAX + 16];
	int fd = fresh();

	find_device(device);
	snprintf(path, sizeof(path), "%s/reset", device);
	put(path, "1"); /* FLR: an epoch ends, another begins */
	read_state();
	shows("epoch ");
	close(fd);
	check_device();
}

#define TRACING "/sys/kernel/debug/tracing/"

/* Opening it to be truncated empties it. */
static void clear_trace(void)
{
	FILE *f = fopen(TRACING "trace", "w");

	CHECK(f && !fclose(f));
}

/*
 * A client's actions show in the events of the driver, and only while they are
 * on.
 */
CASE(tracepoints)
{
	static const char *const lines[] = {
		"nfcomms_epoch: device=0 epoch=",
		"nfcomms_slot_out: device=0 mailbox=",
		"nfcomms_slot_in: device=0 mailbox=",
		"type=DIRECT",
		"type=ACK",
		"nfcomms_irq: device=0 vector=",
		"nfcomms_submit: device=0 op=",
		"user_data=0x5eed opcode=SEND_IND channel=",
		"nfcomms_pin: device=0 op=",
		"nfcomms_complete: device=0 op=",
		"user_data=0x5eed opcode=SEND_IND status=0 error=0",
	};
	uint8_t *p = pages(1 << 16, 1);
	struct nfcomms_op op;
	uint32_t ch;
	int fd;

	CHECK(!access(TRACING "events/nfcomms/nfcomms_fault/format", R_OK));
	clear_trace();
	put(TRACING "events/nfcomms/enable", "1");
	fd = fresh();
	ch = program(fd, "sink");
	op = transfer(NFCOMMS_OP_SEND_IND, ch, p, 1 << 16);
	op.user_data = 0x5eed;
	CHECK_EQ(outcome(fd, &op), NFC_OK);
	close(fd);
	put(TRACING "events/nfcomms/enable", "0");
	CHECK(get(TRACING "trace"));
	for (size_t i = 0; i < sizeof(lines) / sizeof(*lines); i++)
		shows(lines[i]);
	clear_trace();
	check_device();
	CHECK(get(TRACING "trace"));
	CHECK(!strstr(text, "nfcomms_submit"));
	free_pages(p, 1 << 16);
}

CASE(health_counts)
{
	struct nfcomms_health before = { .size = sizeof(before) }, after;
	int fd = fresh();
	uint32_t ch = program(fd, "hold");
	struct nfcomms_op op = message(ch, "x", 1);

	CHECK_EQ(control(fd, NFCOMMS_IOC_HEALTH, &before), 0);
	CHECK_EQ(submit(fd, &op, 1), 1);
	after = before;
	CHECK_EQ(control(fd, NFCOMMS_IOC_HEALTH, &after), 0);
	CHECK_EQ(after.operations, before.operations + 1);
	CHECK_EQ(after.blocked, before.blocked + 1);
	CHECK(after.messages >= before.messages);
	close(fd);
}

/* How many of some heartbeats are young when they are asked for, in all phases. */
static int young_of_some(int fd)
{
	struct nfcomms_health health = { .size = sizeof(health) };
	int young = 0;

	for (int i = 0; i < 12; i++) {
		usleep(123000); /* a heartbeat, and a part of one */
		CHECK_EQ(control(fd, NFCOMMS_IOC_HEALTH, &health), 0);
		young += health.age_ns < 20000;
	}
	return young;
}

/* A heartbeat is as old as its writing, also if it is found when the module is asked. */
CASE(age_of_a_heartbeat)
{
	struct bench b = setup();
	int tries = 5, young;

	do /* on a busy machine the phases are as chance has it */
		young = young_of_some(b.fd);
	while (young >= 5 && --tries);
	CHECK(young < 5); /* of those that were found now, some three of four */
	teardown(&b);
}
