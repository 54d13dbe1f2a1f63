// SPDX-License-Identifier: MIT
/* Programs that use their stack. */
#include <string.h>

#include "nfc_fw.h"

#ifndef STACK
#define STACK (1 << 20)
#endif

/* Fills bytes of stack, and tells with what. */
static __attribute__((noinline)) uint64_t fill(uint64_t bytes)
{
	volatile uint8_t array[bytes];
	uint64_t sum = 0;

	for (uint64_t i = 0; i < bytes; i += 1024)
		array[i] = (uint8_t)(i / 1024);
	for (uint64_t i = 0; i < bytes; i += 1024)
		sum += array[i];
	return sum;
}

/* Answers each message with the sum of what it put on argument bytes of stack. */
static void roomy_main(struct nfc_process *self)
{
	struct nfc_channel *ch = nfc_channel_of(self, 0);
	int rc = 0;

	while (rc != -NFC_ESTOPPED) {
		uint64_t message[7], answer[2];

		rc = channel_read(ch, message, sizeof(message));
		if (rc < 0)
			continue;
		answer[0] = fill(nfc_argument(self));
		answer[1] = nfc_argument(self);
		rc = channel_write(ch, answer, sizeof(answer));
	}
}

NFC_PROGRAMS({ NFC_PROGRAM_ABI, STACK, "roomy", roomy_main },
	     { NFC_PROGRAM_ABI, 1, "narrow", roomy_main });
