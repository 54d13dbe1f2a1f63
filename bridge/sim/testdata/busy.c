// SPDX-License-Identifier: MIT
/*
 * Programs that do not behave, for argument milliseconds: "chatter" logs and
 * keeps its island to itself, "deaf" lets others run and does not stop when told.
 */
#include "nfc_fw.h"

static uint64_t end_of(struct nfc_process *self)
{
	return nfc_now(self) + nfc_argument(self) * 1000000;
}

static void chatter_main(struct nfc_process *self)
{
	for (uint64_t end = end_of(self); nfc_now(self) < end;)
		nfc_log(self, "chatter");
}

static void deaf_main(struct nfc_process *self)
{
	for (uint64_t end = end_of(self); nfc_now(self) < end;)
		nfc_yield(self);
}

NFC_PROGRAMS({ NFC_PROGRAM_ABI, 0, "chatter", chatter_main },
	     { NFC_PROGRAM_ABI, 0, "deaf", deaf_main });
