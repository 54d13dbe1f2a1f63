// SPDX-License-Identifier: GPL-2.0-only
/* Which registers an administrator may reach: every border of every window. */
#include "harness.h"
#include "nfc_pci.h"
#include "nfcm_core.h"

enum {
	ROOM = 4096,
	OTHER = 4, /* a BAR that the driver does not know */
};

#define READ(bar, room, at, width) \
	nfcm_access_check(bar, room, at, width, false)
#define WRITE(bar, room, at, width) \
	nfcm_access_check(bar, room, at, width, true)

CASE(an_access_lies_in_its_bar)
{
	CHECK_EQ(READ(0, ROOM, NFC_REG_ID, 4), 0);
	CHECK_EQ(READ(0, ROOM, ROOM - 4, 4), 0);
	CHECK_EQ(READ(0, ROOM, ROOM, 4), -ERANGE);
	CHECK_EQ(READ(0, ROOM, -4ull, 4), -ERANGE);
	CHECK_EQ(READ(2, ROOM, ROOM - 8, 8), 0);
	CHECK_EQ(READ(2, ROOM - 4, ROOM - 8, 8), -ERANGE);
	CHECK_EQ(READ(2, ROOM, 1ull << 63, 8), -ERANGE);
	CHECK_EQ(READ(3, 0, 0, 4), -ERANGE);
	CHECK_EQ(READ(0, 2, 0, 4), -ERANGE);
}

CASE(an_access_has_a_width_and_keeps_to_it)
{
	u32 width;

	for (width = 0; width < 20; width++) {
		CHECK_EQ(READ(0, ROOM, 0, width), width == 4 ? 0 : -EINVAL);
		CHECK_EQ(READ(1, ROOM, 0, width), width == 4 ? 0 : -EINVAL);
		CHECK_EQ(READ(2, ROOM, 0, width),
			 width == 4 || width == 8 ? 0 : -EINVAL);
	}
	CHECK_EQ(READ(0, ROOM, 2, 4), -EINVAL);
	CHECK_EQ(READ(2, ROOM, 4, 8), -EINVAL);
	CHECK_EQ(READ(0, ROOM, -1ull, 4), -EINVAL);
}

CASE(what_is_the_drivers_is_not_written)
{
	u64 at, refused = 0;

	for (at = 0; at < ROOM; at += 4) {
		CHECK_EQ(READ(0, ROOM, at, 4), 0);
		CHECK_EQ(WRITE(1, ROOM, at, 4), -EADDRINUSE);
		CHECK_EQ(WRITE(2, ROOM, at, 4), -EADDRINUSE);
		CHECK_EQ(WRITE(OTHER, ROOM, at, 4), 0);
		refused += WRITE(0, ROOM, at, 4) == -EADDRINUSE;
	}
	CHECK_EQ(refused, 4 + 8 + NFC_VECTORS_MAX);
	CHECK_EQ(WRITE(0, ROOM, NFC_REG_CONTROL, 4), -EADDRINUSE);
	CHECK_EQ(WRITE(0, ROOM, NFC_REG_VECTORS, 4), -EADDRINUSE);
	CHECK_EQ(WRITE(0, ROOM, NFC_REG_HOLDOFF, 4), -EADDRINUSE);
	CHECK_EQ(WRITE(0, ROOM, NFC_REG_WATCHDOG, 4), -EADDRINUSE);
	CHECK_EQ(WRITE(0, ROOM, NFC_REG_SHAPE_CHANNELS, 4), -EADDRINUSE);
	CHECK_EQ(WRITE(0, ROOM, NFC_REG_SHAPE_STATUS, 4), -EADDRINUSE);
	CHECK_EQ(WRITE(0, ROOM, NFC_REG_VECTOR_HOLDOFF, 4), -EADDRINUSE);
	CHECK_EQ(WRITE(0, ROOM, NFC_REG_DOORBELL, 4), 0);
	CHECK_EQ(WRITE(0, ROOM, NFC_REG_HOST_BEAT, 4), 0);
	CHECK_EQ(WRITE(1, ROOM, ROOM, 4), -ERANGE);
}
