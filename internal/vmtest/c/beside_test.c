// SPDX-License-Identifier: MIT
/*
 * An error of the bus from which it does not recover, as another function below the
 * same port has no driver: nobody calls this driver then. A RESET has the device back.
 */
#include <errno.h>
#include <unistd.h>

#include "bus.h"
#include "rig.h"

static const struct nfcomms_reset any_shape;

CASE(a_recovery_that_fails_elsewhere)
{
	uint64_t end = now_ns() + PATIENCE_MS * 1000000ull;
	char device[PATH_MAX];
	int fd = fresh(), error;

	empty_log();
	find_device(device);
	inject_error(device, LINK_PROTOCOL, 0);
	while (!log_says("device recovery failed") && now_ns() < end)
		usleep(10000);
	CHECK_EQ(reset(fd, any_shape),
		 EBUSY); /* it may be under way, for all that is known */
	do {
		error = reset(fd, any_shape);
	} while (error == EBUSY && now_ns() < end);
	CHECK_EQ(error, 0);
	close(fd);
	check_device();
	check_pins();
}
