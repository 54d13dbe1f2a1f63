// SPDX-License-Identifier: MIT
/* Sides of rings for the tests. Port 0 has the ring, port 1 takes the outcome. */
#include "nfc_ring.h"

/* The packets and bytes that a process moved, and its last status. */
struct outcome {
	uint64_t packets, bytes;
	int64_t status;
};

/* The bytes of packet i: its number again and again. */
static uint32_t size_of(const struct nfc_ring *r, uint64_t i)
{
	return (uint32_t)(i * 97 % (nfc_ring_room(r) / 8 + 1) * 8);
}

static void report(struct nfc_process *self, struct nfc_ring *r,
		   struct outcome *o, int status)
{
	o->status = status;
	channel_write(nfc_channel_of(self, 1), o, sizeof(*o));
	nfc_ring_close(r);
}

/* Reads until an end. A reader that is mortal crashes with the packet of its argument. */
static void read_all(struct nfc_process *self, uint64_t last)
{
	struct outcome o = { 0 };
	const uint64_t *packet;
	struct nfc_ring r;
	uint32_t n;
	int rc = nfc_ring_attach(&r, self, nfc_channel_of(self, 0));

	while (!rc) {
		rc = nfc_ring_peek(&r, (const void **)&packet, &n);
		if (rc)
			break;
		for (uint32_t i = 0; i < n / 8 && !rc; i++)
			if (packet[i] != o.packets)
				rc = -NFC_ESIZE;
		if (n != size_of(&r, o.packets))
			rc = -NFC_ESIZE;
		o.packets++;
		o.bytes += n;
		if (o.packets == last)
			*(volatile int *)8 = 0;
		if (!rc)
			rc = nfc_ring_release(&r);
	}
	report(self, &r, &o, rc);
}

static void reader_main(struct nfc_process *self)
{
	read_all(self, 0);
}

static void mortal_main(struct nfc_process *self)
{
	read_all(self, nfc_argument(self));
}

/* Writes as many packets as its argument says, or until an end. */
static void writer_main(struct nfc_process *self)
{
	struct outcome o = { 0 };
	struct nfc_ring r;
	int rc = nfc_ring_attach(&r, self, nfc_channel_of(self, 0));

	while (!rc && o.packets < nfc_argument(self)) {
		uint32_t n = size_of(&r, o.packets);
		uint64_t *packet = nfc_ring_reserve(&r);

		for (uint32_t i = 0; i < n / 8; i++)
			packet[i] = o.packets;
		if (nfc_ring_commit(&r, (uint32_t)nfc_ring_room(&r) + 1) !=
		    -NFC_ETOOLARGE)
			rc = -NFC_ESIZE;
		if (!rc)
			rc = nfc_ring_commit(&r, n);
		o.packets++;
		o.bytes += n;
	}
	report(self, &r, &o, rc);
}

/* Says on the channel what no side says: its argument is the number of bytes. */
static void liar_main(struct nfc_process *self)
{
	char said[NFC_PAYLOAD_SIZE] = { 7 };

	channel_read(nfc_channel_of(self, 0), said, sizeof(said));
	said[0] = 7;
	channel_write(nfc_channel_of(self, 0), said, nfc_argument(self));
	channel_read(nfc_channel_of(self, 0), said, sizeof(said));
}

NFC_PROGRAMS({ NFC_PROGRAM_ABI, 0, "reader", reader_main },
	     { NFC_PROGRAM_ABI, 0, "mortal", mortal_main },
	     { NFC_PROGRAM_ABI, 0, "writer", writer_main },
	     { NFC_PROGRAM_ABI, 0, "liar", liar_main });
