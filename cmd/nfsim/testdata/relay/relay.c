// SPDX-License-Identifier: MIT
/*
 * Passes messages of port 0 to the process whose port is the argument, and
 * returns the answers. It ends with either. Where there is no such process, the
 * status of that is the only message.
 */
#include "nfc_fw.h"

enum {
	MOST = 1 << 20, /* bytes of a transfer */
};

static int message(struct nfc_channel *host, struct nfc_channel *other,
		   uint8_t *bytes, uint64_t size)
{
	int n = channel_write(other, bytes, size);

	if (!n)
		n = channel_read(other, bytes, NFC_PAYLOAD_SIZE);
	return n < 0 ? n : channel_write(host, bytes, (uint64_t)n);
}

static int transfer(struct nfc_channel *host, struct nfc_channel *other,
		    uint64_t memory, uint64_t size)
{
	int rc = channel_read_ind(host, memory, size);

	if (!rc)
		rc = channel_write_ind(other, memory, size);
	if (!rc)
		rc = channel_read_ind(other, memory, size);
	return rc ? rc : channel_write_ind(host, memory, size);
}

static void relay_main(struct nfc_process *self)
{
	struct nfc_channel *host = nfc_channel_of(self, 0), *other;
	uint64_t memory = nfc_alloc(self, NFC_EMEM, MOST);
	uint8_t bytes[NFC_PAYLOAD_SIZE];
	struct nfc_offer offer;
	int rc = channel_connect(self, nfc_argument(self), &other);

	if (rc) {
		bytes[0] = (uint8_t)-rc;
		channel_write(host, bytes, 1);
	}
	while (!rc) {
		rc = channel_read_any(host, bytes, sizeof(bytes), &offer);
		if (rc >= 0)
			rc = offer.indirect ?
				     transfer(host, other, memory, offer.size) :
				     message(host, other, bytes, offer.size);
	}
}

NFC_PROGRAMS({ NFC_PROGRAM_ABI, 0, "relay", relay_main });
