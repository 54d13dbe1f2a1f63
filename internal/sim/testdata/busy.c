// SPDX-License-Identifier: MIT
/*
 * Programs that do not behave, until the host says enough in the byte that the argument is the address
 * of. "quiet" and "chatter" keep their island to themselves, which they log; "chatter" logs all the
 * while, and counts in the byte behind. "late" keeps its island, then waits until it is stopped.
 * "deaf" lets others run and does not stop when told.
 */
#include "nfc_fw.h"

static volatile uint8_t *enough(struct nfc_process *self)
{
	return (volatile uint8_t *)(uintptr_t)nfc_argument(self);
}

static void quiet_main(struct nfc_process *self)
{
	nfc_log(self, "begins");
	while (!enough(self)[0])
		;
}

static void chatter_main(struct nfc_process *self)
{
	for (; !enough(self)[0]; enough(self)[1]++)
		nfc_log(self, "begins");
}

static void deaf_main(struct nfc_process *self)
{
	while (!enough(self)[0])
		nfc_yield(self);
}

static void late_main(struct nfc_process *self)
{
	quiet_main(self);
	while (!nfc_stopped(self))
		nfc_sleep(self, UINT64_MAX / 2);
}

NFC_PROGRAMS({ NFC_PROGRAM_ABI, 0, "quiet", quiet_main },
	     { NFC_PROGRAM_ABI, 0, "late", late_main },
	     { NFC_PROGRAM_ABI, 0, "chatter", chatter_main },
	     { NFC_PROGRAM_ABI, 0, "deaf", deaf_main });
