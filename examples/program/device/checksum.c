// SPDX-License-Identifier: MIT
/*
 * checksum: takes a transfer of any size on its port and answers with a message
 * of two u64: its size and its CRC-32.
 */
#include "nfc_fw.h"

enum {
	STRETCH = 1 << 20, /* bytes between two turns for others */
};

static uint32_t crc32(struct nfc_process *self, const uint8_t *data,
		      uint64_t size)
{
	uint32_t crc = UINT32_MAX;

	for (uint64_t i = 0; i < size; i++) {
		crc ^= data[i];
		for (int bit = 0; bit < 8; bit++)
			crc = crc >> 1 ^ (crc & 1 ? 0xedb88320 : 0);
		if (i % STRETCH == STRETCH - 1)
			nfc_yield(self);
	}
	return ~crc;
}

/* Take the transfer that is offered. The read refuses an offer that is not a transfer. */
static int serve(struct nfc_process *self, struct nfc_channel *ch, uint64_t size)
{
	uint64_t address = nfc_alloc(self, NFC_EMEM, size ? size : 1);
	uint64_t answer[2] = { size, 0 };
	int rc;

	if (!address)
		return channel_read_ind(ch, UINT64_MAX, size); /* refuses it */
	rc = channel_read_ind(ch, address, size);
	if (!rc) {
		answer[1] = crc32(self, nfc_at(self, address, size), size);
		rc = channel_write(ch, answer, sizeof(answer));
	}
	nfc_free(self, address);
	return rc;
}

static void checksum_main(struct nfc_process *self)
{
	struct nfc_channel *ch = nfc_channel_of(self, 0);
	struct nfc_offer offer;
	int rc = 0;

	while (rc != -NFC_ESTOPPED) {
		rc = channel_offer(ch, &offer);
		if (!rc)
			rc = serve(self, ch, offer.size);
	}
}

NFC_PROGRAMS({ NFC_PROGRAM_ABI, 0, "checksum", checksum_main });
