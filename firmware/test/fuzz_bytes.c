// SPDX-License-Identifier: MIT
/*
 * Fuzz the device with slots of any 64 bytes. The first byte of each record
 * says how: of which host, into which mailbox, and whether the device runs after it.
 */
#include "fuzz_rig.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct pair p = fuzz_pair();

	for (; size > sizeof(struct nfc_slot);
	     size -= 1 + sizeof(struct nfc_slot)) {
		struct nfc_slot slot;
		uint8_t how = *data++;
		struct rig *r = how & 8 ? p.far : p.near;

		memcpy(&slot, data, sizeof(slot));
		data += sizeof(slot);
		fuzz_offer(r, &slot);
		host_slot(r, &slot, how & 1);
		if (how & 2)
			rig_step(r);
		if (how & 4)
			rig_advance(r, 1000000ull << (how >> 4));
		p.near->received_count = 0;
		p.far->received_count = 0;
	}
	pair_free(&p);
	return 0;
}
