// SPDX-License-Identifier: MIT
/* Takes a question, and crashes with it. */
#include "nfc_fw.h"

static void crashes_main(struct nfc_process *self)
{
	struct nfc_offer offer;
	uint8_t message[56];

	channel_question(nfc_channel_of(self, 0), message, sizeof(message), 0, 0,
			 &offer);
	__builtin_trap();
}

NFC_PROGRAMS({ NFC_PROGRAM_ABI, 0, "crashes", crashes_main });
