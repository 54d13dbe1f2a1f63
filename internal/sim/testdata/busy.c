// SPDX-License-Identifier: MIT
/*
 * Programs that do not behave, for argument milliseconds: "quiet" and "chatter"
 * keep their island to themselves, which they log; "chatter" logs all the while; "deaf" lets others run
 * and does not stop when told; "late" does as "quiet", and waits until it is stopped.
 */
#include "nfc_fw.h"

static uint64_t end_of(struct nfc_process *self)
{
	return nfc_now(self) + nfc_argument(self) * 1000000;
}

static void quiet_main(struct nfc_process *self)
{
	nfc_log(self, "begins");
	for (uint64_t end = end_of(self); nfc_now(self) < end;)
		;
}

static void chatter_main(struct nfc_process *self)
{
	for (uint64_t end = end_of(self); nfc_now(self) < end;)
		nfc_log(self, "begins");
}

static void deaf_main(struct nfc_process *self)
{
	for (uint64_t end = end_of(self); nfc_now(self) < end;)
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
