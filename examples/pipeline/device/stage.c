// SPDX-License-Identifier: MIT
/*
 * A stage of a pipeline: what comes on port 0 goes on with 1 added to every byte, to
 * the process whose port is the argument, or, without one, to whom port 1 is of.
 */
#include "nfc_fw.h"

enum {
	STRETCH = 1 << 20, /* bytes between two yields */
};

/* Device memory that grows. */
struct buffer {
	uint64_t address;
	uint64_t size;
};

static int fit(struct nfc_process *self, struct buffer *b, uint64_t size)
{
	if (size <= b->size)
		return 0;
	nfc_free(self, b->address);
	b->address = nfc_alloc(self, NFC_EMEM, size);
	b->size = b->address ? size : 0;
	return b->address ? 0 : -NFC_ENOMEM;
}

static void add_one(struct nfc_process *self, uint8_t *at, uint64_t n)
{
	for (uint64_t done = 0; done < n; nfc_yield(self)) {
		uint64_t end = n - done < STRETCH ? n : done + STRETCH;

		for (; done < end; done++)
			at[done]++;
	}
}

/* One message or transfer from in to out. */
static int pass_on(struct nfc_process *self, struct nfc_channel *in,
		   struct nfc_channel *out, struct buffer *b)
{
	uint8_t message[NFC_PAYLOAD_SIZE];
	struct nfc_offer offer;
	int rc = channel_read_any(in, message, sizeof(message), &offer);

	if (rc < 0)
		return rc;
	if (!offer.indirect) {
		add_one(self, message, offer.size);
		return channel_write(out, message, offer.size);
	}
	if (fit(self, b, offer.size))
		return channel_read_ind(in, UINT64_MAX, offer.size);
	rc = channel_read_ind(in, b->address, offer.size);
	if (rc)
		return rc;
	add_one(self, nfc_at(self, b->address, offer.size), offer.size);
	return channel_write_ind(out, b->address, offer.size);
}

/* A stage ends with the one before it or the one behind, which hear its end. */
static void stage_main(struct nfc_process *self)
{
	struct nfc_channel *in = nfc_channel_of(self, 0), *out;
	struct buffer b = { 0 };
	int rc = 0;

	out = nfc_channel_of(self, 1);
	if (nfc_argument(self))
		rc = channel_connect(self, nfc_argument(self), &out);
	while (!rc)
		rc = pass_on(self, in, out, &b);
}

NFC_PROGRAMS({ NFC_PROGRAM_ABI, 0, "stage", stage_main });
