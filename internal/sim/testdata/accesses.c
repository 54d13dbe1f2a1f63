// SPDX-License-Identifier: MIT
/* A program for the tests of memory that takes time: the nanoseconds of an access to each type. */
#include "nfc_fw.h"

static void accesses_main(struct nfc_process *self)
{
	uint64_t ns[NFC_MEMORY_COUNT];

	for (int type = 0; type < NFC_MEMORY_COUNT; type++) {
		uint64_t at = nfc_alloc(self, (enum nfc_memory)type, 64);
		uint64_t since = nfc_now(self);

		ns[type] = nfc_at(self, at, 64) ? nfc_now(self) - since : 0;
	}
	channel_write(nfc_channel_of(self, 0), ns, sizeof(ns));
}

NFC_PROGRAMS({ NFC_PROGRAM_ABI, 0, "accesses", accesses_main });
