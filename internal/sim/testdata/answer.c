// SPDX-License-Identifier: MIT
/*
 * A program for the tests of Load: answers each message with TAG and how many
 * messages this image has answered, whichever process did.
 */
#include "nfc_fw.h"

static uint64_t answered;
static const volatile uint64_t tag = TAG;

static void answer_main(struct nfc_process *self)
{
	struct nfc_channel *ch = nfc_channel_of(self, 0);

	for (;;) {
		uint8_t message[NFC_PAYLOAD_SIZE];
		uint64_t answer[2] = { tag };
		int rc = channel_read(ch, message, sizeof(message));

		if (rc == -NFC_ESTOPPED)
			return;
		if (rc < 0)
			continue;
		answer[1] = ++answered;
		channel_write(ch, answer, sizeof(answer));
	}
}

NFC_PROGRAMS({ NFC_PROGRAM_ABI, 0, FIRST, answer_main },
	     { NFC_PROGRAM_ABI, 0, SECOND, answer_main });
