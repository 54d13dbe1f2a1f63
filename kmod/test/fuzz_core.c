// SPDX-License-Identifier: GPL-2.0-only
/* A fuzzer speaks for the device, and decides what the host does. */
#include <stdlib.h>

#include "rig.h"

int LLVMFuzzerTestOneInput(const u8 *data, size_t size);

int LLVMFuzzerTestOneInput(const u8 *data, size_t size)
{
	struct choices c = { .data = data, .left = size };
	struct rig r;

	rig_init(&r);
	while (c.left) {
		if (choose(&c, 3))
			rig_device(&r, &c);
		else
			rig_host(&r, &c);
		if (rig_broken(&r))
			abort();
	}
	return 0;
}
