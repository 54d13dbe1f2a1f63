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

enum {
	RETRY_NS = 1000000, /* when device memory ran out */
};

/* Fill the list of ports. 0, or a status after a pause: others run meanwhile. */
static int list_ports(struct nfc_process *self, struct nfc_reader *r)
{
	uint32_t n = nfc_ports(self);
	uint64_t size = 2 * n * sizeof(*r->ports), at = 0;

	if (n > NFC_READER_FEW)
		at = nfc_alloc(self, NFC_EMEM, size);
	if (n > NFC_READER_FEW && !at) {
		nfc_sleep(self, RETRY_NS);
		return nfc_stopped(self) ? -NFC_ESTOPPED : -NFC_ENOMEM;
	}
	r->ports = at ? nfc_at(self, at, size) : r->few;
	for (uint32_t i = 0; i < 2 * n; i++)
		r->ports[i] = nfc_channel_of(self, i % n);
	return 0;
}

/*
 * Wait for a port that has something. channel_alt prefers the first of its list:
 * that is the one after the last, so that every port has its turn.
 */
static int any_port(struct nfc_process *self, struct nfc_reader *r,
		    uint64_t timeout_ns)
{
	int i = r->ports ? 0 : list_ports(self, r);

	if (i < 0)
		return i;
	i = channel_alt(r->ports + r->next, nfc_ports(self), timeout_ns);
	if (i < 0)
		return i;
	r->ch = r->ports[r->next + (uint32_t)i];
	r->next = (r->next + (uint32_t)i + 1) % nfc_ports(self);
	return 0;
}

/* Choose the port to read: the only one, or one that has something. */
static int next_port(struct nfc_process *self, struct nfc_reader *r,
		     uint64_t timeout_ns)
{
	if (nfc_ports(self) > 1 || timeout_ns < UINT64_MAX)
		return any_port(self, r, timeout_ns);
	r->ch = nfc_channel_of(self, 0);
	return 0;
}

int nfc_read_ports(struct nfc_process *self, struct nfc_reader *r,
		   uint8_t message[NFC_PAYLOAD_SIZE], struct nfc_offer *offer,
		   uint64_t timeout_ns)
{
	int rc = next_port(self, r, timeout_ns);

	if (rc)
		return rc;
	return channel_read_any(r->ch, message, NFC_PAYLOAD_SIZE, offer);
}

int nfc_take_ports(struct nfc_process *self, struct nfc_reader *r,
		   uint8_t message[NFC_PAYLOAD_SIZE], struct nfc_offer *offer,
		   struct nfc_buffer *b, uint64_t timeout_ns)
{
	int rc = next_port(self, r, timeout_ns);

	if (rc)
		return rc;
	rc = r->answers ? channel_question(r->ch, message, NFC_PAYLOAD_SIZE,
					   b->address, b->size, offer) :
			  channel_take(r->ch, message, NFC_PAYLOAD_SIZE,
				       b->address, b->size, offer);
	if (rc == -NFC_ETOOLARGE)
		rc = nfc_take_transfer(self, r->ch, b, offer->size);
	return rc;
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
	{ NFC_PROGRAM_ABI, 0, "asked", nfc_asked_main },
	{ NFC_PROGRAM_ABI, 0, "hold", nfc_hold_main },
	{ 0, 0, NULL, NULL },
};

const struct nfc_program nfc_lone_programs[] = {
	{ NFC_PROGRAM_ABI, 0, NFC_LONE "spin", nfc_spin_main },
	{ 0, 0, NULL, NULL },
};
