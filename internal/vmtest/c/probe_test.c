// SPDX-License-Identifier: MIT
/*
 * Every allocation of probing a device and of loading the module is made to
 * fail, one after the other (a kernel with fault injection). Each failure is
 * undone, and the next attempt works.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bus.h"
#include "rig.h"

enum {
	POINTS_MAX = 4000,
	LAST = 70, /* of loading: the kernel's own are first, ours last */
};

static const char *name_of(const char *device)
{
	return strrchr(device, '/') + 1;
}

/* Bind with the n-th point failing; true if there is such a point. */
static bool fail_bind(const char *device, unsigned int n)
{
	bool reached;
	int error;

	fail_at(n);
	error = try_put("/sys/bus/pci/drivers/nfcomms/bind", name_of(device));
	reached = failed();
	if (!reached)
		CHECK_EQ(error, 0);
	if (error)
		bind_to(device);
	await_node();
	unbind(device);
	return reached;
}

/*
 * Load with one parameter more. A device that recovers by itself does so a second
 * after its epoch failed: one whose probe failed must be out of that by then.
 */
static void reload_with(const char *more)
{
	const char *params = getenv("NFC_PARAMS");
	char all[512];

	snprintf(all, sizeof(all), "%s %s", params ? params : "", more);
	setenv("NFC_PARAMS", all, 1);
	CHECK_EQ(unload(), 0);
	CHECK_EQ(load(), 0);
	await_node();
}

CASE(every_point_of_a_probe_fails_once)
{
	char device[PATH_MAX];
	unsigned int n = 1;

	REQUIRE(faults_ready());
	reload_with("recovery=1");
	find_device(device);
	unbind(device);
	while (n < POINTS_MAX && !test_failures() && fail_bind(device, n)) {
		still_alive();
		n++;
	}
	printf("probe: %u points\n", n - 1);
	CHECK(n > 20 && n < POINTS_MAX);
	bind_to(device);
	await_node();
	check_device();
	check_pins();
}

/* Load with the n-th point failing, from unloaded to unloaded. */
static bool fail_load(unsigned int n)
{
	bool reached;
	int error;

	fail_at(n);
	error = load();
	reached = failed();
	if (error)
		CHECK_EQ(load(), 0);
	CHECK_EQ(unload(), 0);
	still_alive();
	return reached;
}

/* How many points loading has. */
static unsigned int count_load(void)
{
	unsigned int low = 0, high = 1;

	while (high < POINTS_MAX && fail_load(high)) {
		low = high;
		high *= 2;
	}
	while (high - low > 1 && !test_failures()) {
		unsigned int middle = (low + high) / 2;

		if (fail_load(middle))
			low = middle;
		else
			high = middle;
	}
	return low;
}

CASE(the_last_points_of_loading_fail_once)
{
	char device[PATH_MAX];
	unsigned int all, n;

	REQUIRE(faults_ready());
	find_device(device);
	remove_device(device); /* so that what comes last is not its probe */
	CHECK_EQ(unload(), 0);
	all = count_load();
	printf("load: %u points\n", all);
	CHECK(all > LAST);
	for (n = all > LAST ? all - LAST : 1; n <= all && !test_failures(); n++)
		fail_load(n);
	CHECK_EQ(load(), 0);
	rescan();
	await_node();
	check_device();
}
