// SPDX-License-Identifier: MIT
/*
 * What the driver shows of itself: sysfs attributes, the state in debugfs while
 * operations wait in it, and the counters of the health.
 */
#include <dirent.h>
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
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

static void read_state(void)
{
	char path[128];

	snprintf(path, sizeof(path), "/sys/kernel/debug/nfcomms/%s/state",
		 short_node());
	CHECK(get(path));
}

/* Every attribute of the class device can be read, and ends its line. */
CASE(attributes)
{
	char folder[64], path[512];
	struct dirent *e;
	int count = 0;
	DIR *d;

	snprintf(folder, sizeof(folder), "/sys/class/nfcomms/%s", short_node());
	d = opendir(folder);
	REQUIRE(d);
	while ((e = readdir(d))) {
		if (e->d_type != DT_REG || !strcmp(e->d_name, "uevent"))
			continue;
		snprintf(path, sizeof(path), "%s/%s", folder, e->d_name);
		if (!CHECK(get(path)))
			printf("%s\n", path);
		else
			CHECK_EQ(text[strlen(text) - 1], '\n');
		count++;
	}
	closedir(d);
	CHECK(count >= 3);
}

CASE(state_with_operations_in_it)
{
	int fd = fresh();
	uint32_t hold = program(fd, "hold"), source = program(fd, "source");
	uint8_t *p = pages(1 << 20, 1);
	struct nfcomms_op ops[] = {
		transfer(NFCOMMS_OP_SEND_IND, hold, p, 1 << 20),
		message(hold, "x", 1),
		operation(NFCOMMS_OP_ARM, source),
		operation(NFCOMMS_OP_NEXT, source),
	};
	struct nfcomms_op held = transfer(NFCOMMS_OP_RECEIVE_IND, source, p,
					  4096);

	ops[2].flags = NFCOMMS_H2D;
	CHECK_EQ(submit(fd, ops, 3), 3);
	ask_source(fd, source, 4096, 1);
	held.flags = NFCOMMS_HOLD;
	CHECK_EQ(outcome(fd, &held), NFC_OK);
	read_state();
	shows("state ");
	shows("mailbox 0");
	shows("moving");
	shows("queued");
	shows("held");
	close(fd);
	free_pages(p, 1 << 20);
	check_pins();
}

CASE(state_without_a_life)
{
	char device[PATH_MAX], path[PATH_MAX + 16];
	int fd = fresh();

	find_device(device);
	snprintf(path, sizeof(path), "%s/reset", device);
	put(path, "1"); /* FLR: a life ends, another begins */
	read_state();
	shows("epoch ");
	close(fd);
	check_device();
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
