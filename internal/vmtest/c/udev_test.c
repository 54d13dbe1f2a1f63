// SPDX-License-Identifier: MIT
/*
 * The promises of an installed package: a card that appears gets its driver, by
 * the module's alias, and its node the group, the mode and the name of the
 * rule. Debian's udev does it; nothing here loads the module.
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bus.h"
#include "rig.h"

enum {
	GROUP = 977, /* nfcomms-dev in the guest's /etc/group */
};

#define BY_PATH "/dev/nfcomms/by-path"

/* A program, and how it is called. */
struct command {
	const char *path;
	const char *const *argv;
};

static int become(void *argument)
{
	const struct command *c = argument;

	execv(c->path, (char *const *)c->argv);
	return 127;
}

/* Run a program to its end. */
static void run(const char *path, const char *const argv[])
{
	struct command c = { path, argv };
	int status = wait_child(child(become, &c));

	if (!CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0))
		printf("%s: status %#x\n", argv[0], status);
}

/* Wait until all that happened was handled. */
static void settle(void)
{
	run("/bin/udevadm", (const char *[]){ "udevadm", "settle", NULL });
}

/* The module's parameters where an installation puts them. */
static void configure_module(void)
{
	FILE *f;

	mkdir("/etc/modprobe.d", 0755);
	f = fopen("/etc/modprobe.d/nfcomms.conf", "w");
	REQUIRE(f);
	fprintf(f, "options nfcomms %s\n", getenv("NFC_PARAMS"));
	CHECK(!fclose(f));
}

/* The module where an installation puts it, and what finds it there. */
static void install_module(void)
{
	char folder[128], file[192];
	struct utsname u;

	REQUIRE(uname(&u) == 0);
	snprintf(folder, sizeof(folder), "/lib/modules/%s", u.release);
	snprintf(file, sizeof(file), "%s/nfcomms.ko", folder);
	mkdir("/lib/modules", 0755);
	REQUIRE(mkdir(folder, 0755) == 0);
	REQUIRE(symlink("/modules/nfcomms.ko", file) == 0);
	run("/bin/kmod", (const char *[]){ "depmod", NULL });
}

static void start_udev(void)
{
	run("/bin/udevadm",
	    (const char *[]){ "systemd-udevd", "--daemon", NULL });
	run("/bin/udevadm",
	    (const char *[]){ "udevadm", "trigger", "--type=devices",
			      "--action=add", NULL });
	settle();
}

/* The one name by path, where it leads; empty if there is none. */
static void by_path(char target[PATH_MAX])
{
	DIR *dir = opendir(BY_PATH);
	struct dirent *e;
	char name[PATH_MAX];
	int names = 0;

	target[0] = 0;
	while (dir && (e = readdir(dir))) {
		if (e->d_name[0] == '.')
			continue;
		names++;
		CHECK(!strncmp(e->d_name, "pci-0000:", 9));
		snprintf(name, sizeof(name), BY_PATH "/%s", e->d_name);
		CHECK(realpath(name, target));
	}
	if (dir)
		closedir(dir);
	CHECK(names <= 1);
}

static void check_node(void)
{
	char target[PATH_MAX];
	struct stat st;

	await_node();
	REQUIRE(stat(node(), &st) == 0);
	CHECK_EQ(st.st_gid, GROUP);
	CHECK_EQ(st.st_mode, S_IFCHR | 0660);
	by_path(target);
	if (!CHECK(!strcmp(target, node())))
		printf("by path: \"%s\"\n", target);
	check_device();
}

CASE(a_card_gets_its_driver_and_its_node)
{
	char device[PATH_MAX], target[PATH_MAX];

	CHECK(access("/sys/module/nfcomms", F_OK) != 0);
	install_module();
	configure_module();
	start_udev();
	CHECK(access("/sys/module/nfcomms", F_OK) == 0);
	check_node();
	CHECK(limit("heartbeat_timeout_ms") > 1000);

	find_device(device);
	remove_device(device);
	settle();
	CHECK(access(node(), F_OK) != 0);
	by_path(target);
	CHECK(!target[0]);
	rescan();
	settle();
	check_node();

	run("/bin/udevadm",
	    (const char *[]){ "udevadm", "control", "--exit", NULL });
	CHECK_EQ(unload(), 0);
}
