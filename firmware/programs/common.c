// SPDX-License-Identifier: MIT
/* Helpers of the programs of this tree, and their registry. */
#include "programs.h"

void nfc_buffer_drop(struct nfc_process *self, struct nfc_buffer *b)
{
	nfc_free(self, b->address);
	*b = (struct nfc_buffer){ 0 };
}

int nfc_buffer_fit(struct nfc_process *self, struct nfc_buffer *b, uint64_t size)
{
	if (size <= b->size)
		return 0;
	nfc_free(self, b->address);
	b->address = nfc_alloc(self, NFC_EMEM, size);
	b->size = b->address ? size : 0;
	return b->address ? 0 : -NFC_ENOMEM;
}

/*
 * The port that has something, waiting timeout_ns for it. channel_alt prefers the first of
 * its list: the one after *ch goes there, so that none of them starves.
 */
static int any_port(struct nfc_process *self, struct nfc_channel **ch,
		    uint64_t timeout_ns)
{
	uint32_t n = nfc_ports(self), first = 0;
	struct nfc_channel *few[8], **all = few;
	uint64_t list = 0;
	int i;

	if (n > 8) {
		list = nfc_alloc(self, NFC_EMEM, n * sizeof(*all));
		all = nfc_at(self, list, n * sizeof(*all));
		if (!list || !all)
			return -NFC_ENOMEM;
	}
	for (uint32_t port = 0; port < n; port++)
		if (nfc_channel_of(self, port) == *ch)
			first = port + 1;
	for (uint32_t i = 0; i < n; i++)
		all[i] = nfc_channel_of(self, (first + i) % n);
	i = channel_alt(all, n, timeout_ns);
	if (i >= 0)
		*ch = all[i];
	nfc_free(self, list);
	return i;
}

int nfc_read_ports(struct nfc_process *self, struct nfc_channel **ch,
		   uint8_t message[NFC_PAYLOAD_SIZE], struct nfc_offer *offer,
		   uint64_t timeout_ns)
{
	int i = 0;

	if (nfc_ports(self) > 1 || timeout_ns < UINT64_MAX)
		i = any_port(self, ch, timeout_ns);
	else
		*ch = nfc_channel_of(self, 0);
	if (i < 0)
		return i;
	return channel_read_any(*ch, message, NFC_PAYLOAD_SIZE, offer);
}

int nfc_take_transfer(struct nfc_process *self, struct nfc_channel *ch,
		      struct nfc_buffer *b, uint64_t size)
{
	struct nfc_offer offer;
	int rc = nfc_buffer_fit(self, b, size);

	if (rc) {
		rc = channel_offer(ch, &offer);
		return rc ? rc : channel_read_ind(ch, UINT64_MAX, size);
	}
	return channel_read_ind(ch, b->address, size);
}

const struct nfc_program nfc_programs[] = {
	{ NFC_PROGRAM_ABI, 0, "loopback", nfc_loopback_main },
	{ NFC_PROGRAM_ABI, 0, "sink", nfc_sink_main },
	{ NFC_PROGRAM_ABI, 0, "source", nfc_source_main },
	{ NFC_PROGRAM_ABI, 0, "flood", nfc_flood_main },
	{ NFC_PROGRAM_ABI, 0, "gate", nfc_gate_main },
	{ NFC_PROGRAM_ABI, 0, "expect", nfc_expect_main },
	{ NFC_PROGRAM_ABI, 0, "hold", nfc_hold_main },
	{ NFC_PROGRAM_ABI, 0, "spin", nfc_spin_main },
	{ 0, 0, NULL, NULL },
};
