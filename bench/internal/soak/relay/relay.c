// SPDX-License-Identifier: MIT
/*
 * Forwards between port 0 and the process whose port is the argument, both ways. It ends
 * with either.
 */
#include "nfc_fw.h"

enum {
	MOST = 256 << 10, /* bytes of a transfer */
};

/* One message or transfer from one channel to the other. */
static int pass_on(struct nfc_channel *from, struct nfc_channel *to,
		   uint64_t memory)
{
	uint8_t message[NFC_PAYLOAD_SIZE];
	struct nfc_offer offer;
	int rc = channel_read_any(from, message, sizeof(message), &offer);

	if (rc < 0)
		return rc;
	if (!offer.indirect)
		return channel_write(to, message, offer.size);
	rc = channel_read_ind(from, memory, offer.size);
	return rc ? rc : channel_write_ind(to, memory, offer.size);
}

static void relay_main(struct nfc_process *self)
{
	struct nfc_channel *end[2] = { nfc_channel_of(self, 0) };
	uint64_t memory = nfc_alloc(self, NFC_EMEM, MOST);
	int rc = channel_connect(self, nfc_argument(self), &end[1]);

	while (memory && !rc) {
		int ready = channel_alt(end, 2, UINT64_MAX);

		rc = ready < 0 ? ready :
				 pass_on(end[ready], end[1 - ready], memory);
	}
}

NFC_PROGRAMS({ NFC_PROGRAM_ABI, 0, "relay", relay_main });
