// SPDX-License-Identifier: MIT
/* Programs that move data: loopback, sink, source, flood. */
#include "programs.h"

enum {
	STRETCH = 1 << 20, /* bytes of computing between two yields */
	SOON = 16 << 10, /* bytes of computing that take no time worth a switch */
	KEEP_NS = 10000000, /* loopback keeps memory it may need at once */
	FAR_LESS = 16, /* of it, as part, needs no such buffer */
};

/*
 * loopback: every message or transfer is returned on its own port, one at a
 * time over all ports. As a service it lives as long as the device, so it gives
 * its device memory back when nothing arrives any more, or far less.
 */
void nfc_loopback_main(struct nfc_process *self)
{
	struct nfc_reader r = { .answers = 1 };
	struct nfc_buffer b = { 0 };
	int rc = 0;

	nfc_prompt(self, 1);
	while (rc != -NFC_ESTOPPED) {
		uint8_t message[NFC_PAYLOAD_SIZE];
		struct nfc_offer offer;

		rc = nfc_take_ports(self, &r, message, &offer, &b,
				    b.address ? KEEP_NS : UINT64_MAX);
		if (rc == -NFC_ETIMEOUT)
			nfc_buffer_drop(self, &b);
		if (rc < 0)
			continue;
		if (!offer.indirect) {
			rc = channel_reply(r.ch, message, offer.size);
			continue;
		}
		rc = channel_write_ind(r.ch, b.address, offer.size);
		if (offer.size < b.size / FAR_LESS)
			nfc_buffer_drop(self, &b);
	}
}

/* Byte i of the pattern that source sends and a host may check. */
static uint8_t pattern(uint64_t i, uint64_t seed)
{
	return (uint8_t)((i * 0x9e3779b97f4a7c15 + seed) >> 56);
}

struct sink {
	uint64_t messages;
	uint64_t bytes;
	uint64_t last; /* size of the last transfer, still in the buffer */
	uint64_t seed; /* of the pattern that transfers are held to */
	uint64_t wrong; /* transfers that were not that pattern */
	int verify;
	struct nfc_buffer b;
};

/* FNV-1a over the last transfer; computed when asked, to keep taking fast. */
static uint64_t hash_of(struct nfc_process *self, const struct sink *sink)
{
	const uint8_t *at = nfc_at(self, sink->b.address, sink->last);
	uint64_t hash = 0xcbf29ce484222325;

	nfc_prompt(self, sink->last <= SOON);
	for (uint64_t i = 0; at && i < sink->last; i++) {
		hash = (hash ^ at[i]) * 0x100000001b3;
		if (i % STRETCH == STRETCH - 1)
			nfc_yield(self);
	}
	nfc_prompt(self, 1);
	return hash;
}

/* Is the last transfer the pattern it should be? */
static void verify(struct nfc_process *self, struct sink *sink)
{
	const uint8_t *at = nfc_at(self, sink->b.address, sink->last);
	uint64_t i = 0;

	nfc_prompt(self, sink->last <= SOON);
	while (at && i < sink->last && at[i] == pattern(i, sink->seed))
		if (++i % STRETCH == 0)
			nfc_yield(self);
	nfc_prompt(self, 1);
	sink->wrong += i < sink->last;
}

static int is_word(const uint8_t *message, uint64_t n, const char *word)
{
	return n >= 8 && !__builtin_memcmp(message, word, 8);
}

static int sink_message(struct nfc_process *self, struct nfc_channel *ch,
			struct sink *sink, const uint8_t *message, uint64_t n)
{
	uint64_t answer[3];

	if (n == 16 && is_word(message, n, "SINKSEED")) {
		__builtin_memcpy(&sink->seed, message + 8, 8);
		sink->verify = 1;
		return 0;
	}
	if (n == 8 && is_word(message, n, "SINKDIFF"))
		return channel_write(ch, &sink->wrong, sizeof(sink->wrong));
	if (n != 8 || !is_word(message, n, "SINKSTAT")) {
		sink->messages++;
		return 0;
	}
	answer[0] = sink->messages;
	answer[1] = sink->bytes;
	answer[2] = hash_of(self, sink);
	return channel_write(ch, answer, sizeof(answer));
}

/*
 * sink: takes everything on every port. The message "SINKSTAT" is answered
 * with {messages, transfer bytes, FNV-1a of the last transfer}. After the
 * message "SINKSEED" {seed} every transfer is compared with the pattern that
 * source would send; "SINKDIFF" is answered with how many differed.
 */
void nfc_sink_main(struct nfc_process *self)
{
	struct nfc_reader r = { 0 };
	struct sink sink = { 0 };
	int rc = 0;

	nfc_prompt(self, 1);
	while (rc != -NFC_ESTOPPED) {
		uint8_t message[NFC_PAYLOAD_SIZE];
		struct nfc_offer offer;

		rc = nfc_take_ports(self, &r, message, &offer, &sink.b,
				    UINT64_MAX);
		if (rc < 0)
			continue;
		if (!offer.indirect) {
			rc = sink_message(self, r.ch, &sink, message,
					  offer.size);
			continue;
		}
		sink.bytes += offer.size;
		sink.last = offer.size;
		if (sink.verify)
			verify(self, &sink);
	}
}

static void fill(struct nfc_process *self, uint64_t address, uint64_t size,
		 uint64_t seed)
{
	uint8_t *at = nfc_at(self, address, size);

	nfc_prompt(self, size <= SOON);
	for (uint64_t i = 0; at && i < size; i++) {
		at[i] = pattern(i, seed);
		if (i % STRETCH == STRETCH - 1)
			nfc_yield(self);
	}
	nfc_prompt(self, 1);
}

/* Two words from any port; a transfer there is refused. */
static int read_order(struct nfc_process *self, struct nfc_reader *r,
		      uint64_t want[2])
{
	uint8_t message[NFC_PAYLOAD_SIZE] = { 0 };
	struct nfc_offer offer;
	int rc = nfc_read_ports(self, r, message, &offer, UINT64_MAX);

	if (rc >= 0 && offer.indirect)
		return channel_read(r->ch, message, sizeof(message));
	__builtin_memcpy(want, message, 2 * sizeof(*want));
	return rc;
}

/*
 * source: the message {size, seed} on a port is answered there with a
 * transfer of size bytes of the pattern. Asked for the same again it sends what
 * it has.
 */
void nfc_source_main(struct nfc_process *self)
{
	struct nfc_reader r = { 0 };
	struct nfc_buffer b = { 0 };
	uint64_t have[2] = { 0 };
	int rc = 0;

	nfc_prompt(self, 1);
	while (rc != -NFC_ESTOPPED) {
		uint64_t want[2] = { 0 };

		rc = read_order(self, &r, want);
		if (rc < 0)
			continue;
		if (want[0] != have[0] || want[1] != have[1]) {
			have[0] = 0;
			rc = nfc_buffer_fit(self, &b, want[0]);
			if (rc) {
				channel_close(r.ch, 1 << NFC_D2H);
				continue;
			}
			fill(self, b.address, want[0], want[1]);
			have[0] = want[0];
			have[1] = want[1];
		}
		rc = channel_write_ind(r.ch, b.address, want[0]);
	}
}

/*
 * flood: the message {count, size} on a port is answered with count messages
 * of size bytes, or, with the top bit of size set, transfers.
 */
void nfc_flood_main(struct nfc_process *self)
{
	struct nfc_reader r = { 0 };
	static const uint8_t zero[NFC_PAYLOAD_SIZE];
	uint64_t indirect = 1ull << 63;
	struct nfc_buffer b = { 0 };
	int rc = 0;

	nfc_prompt(self, 1);
	while (rc != -NFC_ESTOPPED) {
		uint64_t want[2] = { 0 };

		rc = read_order(self, &r, want);
		if (rc >= 0 && want[1] & indirect)
			rc = nfc_buffer_fit(self, &b, want[1] & ~indirect);
		for (uint64_t i = 0; rc >= 0 && i < want[0]; i++)
			rc = want[1] & indirect ?
				     channel_write_ind(r.ch, b.address,
						       want[1] & ~indirect) :
				     channel_write(r.ch, zero, want[1]);
	}
}
