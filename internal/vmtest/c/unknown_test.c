// SPDX-License-Identifier: MIT
/*
 * Devices of another version than the driver's: it says what it found and what
 * it knows, leaves them alone, and serves the one beside them.
 */
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "bus.h"
#include "rig.h"

enum { STRANGERS = 2 };

#define DEVICES "/sys/bus/pci/devices"

/* Is it one of ours by its ids? */
static bool is_ours(const char *name)
{
	char path[PATH_MAX], text[32] = "";
	FILE *f;

	snprintf(path, sizeof(path), DEVICES "/%s/device", name);
	f = fopen(path, "r");
	if (!f)
		return false;
	if (!fgets(text, sizeof(text), f))
		text[0] = 0;
	fclose(f);
	return !strcmp(text, "0x4e46\n");
}

/* Binding it by hand is refused as well, and says the same. */
static void check_stranger(const char *name)
{
	CHECK_EQ(try_put("/sys/bus/pci/drivers/nfcomms/bind", name), ENODEV);
}

/* Nodes of the driver. */
static int nodes(void)
{
	struct dirent *e;
	int n = 0;
	DIR *d = opendir("/dev");

	if (!CHECK(d))
		return -1;
	while ((e = readdir(d)))
		n += !strncmp(e->d_name, "nfcomms", strlen("nfcomms")) &&
		     isdigit((unsigned char)e->d_name[strlen("nfcomms")]);
	closedir(d);
	return n;
}

CASE(strangers_are_left_alone)
{
	int bound = 0, strangers = 0;
	char path[PATH_MAX];
	struct dirent *e;
	DIR *d = opendir(DEVICES);

	REQUIRE(d);
	while ((e = readdir(d))) {
		if (!is_ours(e->d_name))
			continue;
		snprintf(path, sizeof(path), DEVICES "/%s/driver", e->d_name);
		if (!access(path, F_OK)) {
			bound++;
		} else {
			strangers++;
			check_stranger(e->d_name);
		}
	}
	closedir(d);
	CHECK(bound > 0);
	CHECK_EQ(bound, nodes());
	CHECK_EQ(strangers, STRANGERS);
	check_device();
	check_pins();
}

CASE(the_log_says_why)
{
	CHECK(log_says("id 0x314d434e, register interface 2.0: this driver knows 1.x"));
	CHECK(log_says("firmware of ABI 9.1: this driver knows 2.x"));
}
