// SPDX-License-Identifier: MIT
/*
 * residue: counts the bytes of a fresh block of device memory that are not zero, writes others, and
 * frees it. The first half is left out: the program's own image was copied there.
 */
#include "nfc_fw.h"

static void residue_main(struct nfc_process *self)
{
	const uint64_t size = 1 << 20;
	uint64_t address = nfc_alloc(self, NFC_EMEM, size), left = size;
	uint8_t *at = address ? nfc_at(self, address, size) : 0;

	if (at)
		left = 0;
	for (uint64_t i = size / 2; at && i < size; i++) {
		left += at[i] != 0;
		at[i] = 0xa5;
	}
	nfc_free(self, address);
	(void)channel_write(nfc_channel_of(self, 0), &left,
			    sizeof(left)); /* nobody else waits */
}

NFC_PROGRAMS({ NFC_PROGRAM_ABI, 0, "residue", residue_main });
