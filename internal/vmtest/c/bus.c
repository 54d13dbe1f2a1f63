// SPDX-License-Identifier: MIT
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/klog.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "bus.h"
#include "rig.h"

int try_put(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC), error = 0;

	if (fd < 0 || write(fd, text, strlen(text)) < 0)
		error = errno;
	if (fd >= 0)
		close(fd);
	return error;
}

bool put(const char *path, const char *text)
{
	int error = try_put(path, text);

	if (!CHECK_EQ(error, 0))
		printf("%s > %s: %s\n", text, path, strerror(error));
	return !error;
}

static void find_limit(const char *name, char path[PATH_MAX])
{
	snprintf(path, PATH_MAX, "/sys/class/nfcomms/%s/%s",
		 strrchr(node(), '/') + 1, name);
}

void set_limit(const char *name, const char *value)
{
	char path[PATH_MAX];

	find_limit(name, path);
	put(path, value);
}

unsigned long limit(const char *name)
{
	char path[PATH_MAX];
	unsigned long value = 0;
	FILE *f;

	find_limit(name, path);
	f = fopen(path, "r");
	CHECK(f && fscanf(f, "%lu", &value) == 1);
	if (f)
		fclose(f);
	return value;
}

bool log_says(const char *text)
{
	enum { READ_ALL = 3, SIZE = 1 << 20 };
	char *log = calloc(1, SIZE);
	bool found;

	if (!CHECK(log && klogctl(READ_ALL, log, SIZE - 1) >= 0))
		exit(1);
	found = strstr(log, text);
	free(log);
	return found;
}

void empty_log(void)
{
	enum { CLEAR = 5 };

	CHECK(klogctl(CLEAR, NULL, 0) >= 0);
}

void find_device(char path[PATH_MAX])
{
	const char *name = strrchr(node(), '/') + 1;
	char link[64];

	snprintf(link, sizeof(link), "/sys/class/nfcomms/%s/device", name);
	if (!CHECK(realpath(link, path)))
		exit(1);
}

bool has_iommu(void)
{
	return !access("/sys/class/iommu/dmar0", F_OK);
}

bool is_master(void)
{
	enum { COMMAND = 4, MASTER = 1 << 2 };
	char path[PATH_MAX + sizeof("/config")];
	uint16_t command = MASTER;
	int fd;

	find_device(path);
	fd = open(strcat(path, "/config"), O_RDONLY | O_CLOEXEC);
	CHECK_EQ(pread(fd, &command, sizeof(command), COMMAND), 2);
	close(fd);
	return command & MASTER;
}

void await_node(void)
{
	uint64_t end = now_ns() + PATIENCE_MS * 1000000ull;

	while (access(node(), F_OK) && now_ns() < end)
		usleep(1000);
	CHECK(!access(node(), F_OK));
}

void unbind(const char *device)
{
	char path[PATH_MAX + 32];

	snprintf(path, sizeof(path), "%s/driver/unbind", device);
	put(path, strrchr(device, '/') + 1);
}

void bind_to(const char *device)
{
	put("/sys/bus/pci/drivers/nfcomms/bind", strrchr(device, '/') + 1);
}

void remove_device(const char *device)
{
	char path[PATH_MAX + 32];

	snprintf(path, sizeof(path), "%s/remove", device);
	put(path, "1");
}

void rescan(void)
{
	put("/sys/bus/pci/rescan", "1");
}

/* The input of /dev/aer_inject. */
struct injection {
	uint8_t bus, device, function;
	uint32_t uncorrectable, correctable;
	uint32_t log[4];
	uint32_t domain;
};

void inject_error(const char *device, uint32_t uncorrectable,
		  uint32_t correctable)
{
	struct injection e = { .uncorrectable = uncorrectable,
			       .correctable = correctable };
	unsigned int bus, slot, function;
	char path[PATH_MAX];
	int fd;

	snprintf(path, sizeof(path), "%s", device);
	if (!CHECK(sscanf(basename(dirname(path)), "%x:%x:%x.%x", &e.domain,
			  &bus, &slot, &function) == 4))
		return;
	e.bus = (uint8_t)bus;
	e.device = (uint8_t)slot;
	e.function = (uint8_t)function;
	fd = open("/dev/aer_inject", O_WRONLY | O_CLOEXEC);
	CHECK_EQ(write(fd, &e, sizeof(e)), sizeof(e));
	close(fd);
}

int try_suspend(void)
{
	int error;

	put("/sys/module/suspend/parameters/pm_test_delay", "0");
	put("/sys/power/pm_test", "devices");
	error = try_put("/sys/power/state", "freeze");
	put("/sys/power/pm_test", "none");
	return error;
}

void suspend(void)
{
	CHECK_EQ(try_suspend(), 0);
}

int unload(void)
{
	return syscall(SYS_delete_module, "nfcomms", O_NONBLOCK) ? errno : 0;
}

int open_module(void)
{
	const char *path = getenv("NFC_MODULE");

	return open(path ? path : "/modules/nfcomms.ko", O_RDONLY | O_CLOEXEC);
}

int load(void)
{
	const char *params = getenv("NFC_PARAMS");
	int fd = open_module();
	int error = syscall(SYS_finit_module, fd, params ? params : "", 0) ?
			    errno :
			    0;

	close(fd);
	return error;
}

/* ---- fault injection ---- */

static int points = -1; /* open before anything may fail */

/*
 * Allocations and copies that are failed: also those that may sleep, pages of
 * any order.
 */
bool faults_ready(void)
{
	static const char *const settings[][2] = {
		{ "failslab/ignore-gfp-wait", "N" },
		{ "failslab/verbose", "0" },
		{ "fail_page_alloc/ignore-gfp-wait", "N" },
		{ "fail_page_alloc/ignore-gfp-highmem", "N" },
		{ "fail_page_alloc/min-order", "0" },
		{ "fail_page_alloc/verbose", "0" },
		{ "fail_usercopy/verbose", "0" },
	};
	char path[128];

	points = open("/proc/thread-self/fail-nth", O_RDWR | O_CLOEXEC);
	for (size_t i = 0; i < sizeof(settings) / sizeof(*settings); i++) {
		snprintf(path, sizeof(path), "/sys/kernel/debug/%s",
			 settings[i][0]);
		if (try_put(path, settings[i][1]))
			return false;
	}
	return points >= 0;
}

void fail_at(unsigned int n)
{
	char text[16];
	int length = snprintf(text, sizeof(text), "%u", n);

	/* The earlier setting still may fail this write itself, once. */
	if (pwrite(points, text, length, 0) < 0)
		CHECK(pwrite(points, text, length, 0) == length);
}

/*
 * The number is taken before the copy of it, which is a point, too: where that
 * fails, nothing had.
 */
bool failed(void)
{
	char text[16] = { 0 };
	bool reached = pread(points, text, sizeof(text) - 1, 0) > 0 &&
		       atoi(text) == 0;

	fail_at(0);
	return reached;
}
