// SPDX-License-Identifier: MIT
/*
 * uploads.crc: takes a transfer of a u64, the CRC-32 of what came before, and up to
 * CHUNK bytes, and answers with the CRC-32 of all as a u64. It keeps nothing from
 * one to the next, so that any process may do the next part of an upload.
 */
#include "nfc_fw.h"

enum {
	CHUNK = 256 << 10, /* bytes of an upload in one transfer, at most */
	STRETCH = 16 << 10, /* bytes between two yields */
};

static void fill(uint32_t table[256])
{
	for (uint32_t i = 0; i < 256; i++) {
		uint32_t c = i;

		for (int bit = 0; bit < 8; bit++)
			c = c >> 1 ^ (c & 1 ? 0xedb88320 : 0);
		table[i] = c;
	}
}

static uint64_t crc32(struct nfc_process *self, const uint32_t table[256],
		      const uint8_t *at, uint64_t size)
{
	uint64_t before;
	uint32_t c;

	__builtin_memcpy(&before, at, sizeof(before));
	c = ~(uint32_t)before;
	for (uint64_t i = sizeof(before); i < size; i++) {
		c = c >> 8 ^ table[(c ^ at[i]) & 0xff];
		if (i % STRETCH == 0)
			nfc_yield(self);
	}
	return (uint32_t)~c;
}

static void crc_main(struct nfc_process *self)
{
	struct nfc_channel *ch = nfc_channel_of(self, 0);
	uint64_t most = sizeof(uint64_t) + CHUNK, answer;
	uint64_t address = nfc_alloc(self, NFC_EMEM, most);
	int rc = address ? 0 : -NFC_ESTOPPED;
	uint32_t table[256];
	struct nfc_offer offer;

	fill(table);
	while (rc != -NFC_ESTOPPED) {
		rc = channel_offer(ch, &offer);
		if (rc)
			continue;
		rc = channel_read_ind(ch,
				      offer.size >= sizeof(uint64_t) &&
						      offer.size <= most ?
					      address :
					      UINT64_MAX,
				      offer.size);
		if (rc)
			continue;
		answer = crc32(self, table, nfc_at(self, address, most),
			       offer.size);
		rc = channel_write(ch, &answer, sizeof(answer));
	}
}

NFC_PROGRAMS({ NFC_PROGRAM_ABI, 0, "uploads.crc", crc_main });
