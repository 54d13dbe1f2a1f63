// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* Which registers may be reached past the driver. Pure: see nfcm_core.h. */
#include "nfcm_core.h"
#include "nfc_pci.h"

#ifdef __KERNEL__
#include <linux/errno.h>
#endif

/* Is a register one that the driver writes, and counts on? */
static bool own_register(u64 at)
{
	switch (at) {
	case NFC_REG_CONTROL:
	case NFC_REG_VECTORS:
	case NFC_REG_HOLDOFF:
	case NFC_REG_WATCHDOG:
		return true;
	default:
		return (at >= NFC_REG_SHAPE_CHANNELS &&
			at <= NFC_REG_SHAPE_STATUS) ||
		       (at >= NFC_REG_VECTOR_HOLDOFF &&
			at < NFC_REG_VECTOR_HOLDOFF + 4 * NFC_VECTORS_MAX);
	}
}

/*
 * A write there would end an epoch behind the driver's back, have interrupts written
 * to any place in memory, or break the rings.
 */
static bool own(u32 bar, u64 at)
{
	return bar == NFC_BAR_MSIX || bar == NFC_BAR_MAILBOXES ||
	       (bar == NFC_BAR_REGISTERS && own_register(at));
}

/*
 * May a window of so many bytes of memory, 0 if it is none, be accessed so? 0 or a
 * negative errno, as nfcomms_debug.h lists them.
 */
int nfcm_access_check(u32 bar, u64 room, u64 at, u32 width, bool write)
{
	bool narrow = bar == NFC_BAR_REGISTERS || bar == NFC_BAR_MSIX;

	if (width != 4 && (width != 8 || narrow))
		return -EINVAL;
	if (at % width)
		return -EINVAL;
	if (at >= room || width > room - at)
		return -ERANGE;
	return write && own(bar, at) ? -EADDRINUSE : 0;
}
