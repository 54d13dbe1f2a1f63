// SPDX-License-Identifier: MIT
/*
 * A device without flow control, for "nfbench stack". The engine takes each chunk as
 * soon as the host offers it, into the buffer of its port. The reader reads the buffers
 * in turn, at its own pace. Nothing tells the engine that the reader is done with a
 * buffer: there is no credit, and no READY.
 *
 * The first word of a chunk has its number, and in the upper half the checksum of all
 * that follows.
 */
#include "nfc_fw.h"

enum { BUFFERS = 64 };

/* Memory of both processes. Chunk n comes over port n % buffers. */
struct shared {
	uint64_t memory; /* of the buffers, one after the other */
	uint64_t size; /* bytes of each */
	uint32_t filled[BUFFERS]; /* chunks that came into each */
};

/* A run, as the host sends it. */
struct run {
	uint64_t size, chunks, buffers;
};

/* The result of the reader: chunks that came, and those that were others, or torn. None came if there
 * is no memory for the run.
 */
struct found {
	uint64_t chunks, wrong;
};

static void engine(struct nfc_process *self)
{
	struct shared *s = nfc_at(self, nfc_argument(self), sizeof(*s));
	struct nfc_channel *ports[BUFFERS];
	uint32_t i, n = nfc_ports(self);
	int port;

	if (!s || n > BUFFERS)
		return;
	for (i = 0; i < n; i++)
		ports[i] = nfc_channel_of(self, i);
	while ((port = channel_alt(ports, n, UINT64_MAX)) >= 0) {
		if (channel_read_ind(ports[port], s->memory + port * s->size,
				     s->size))
			return;
		__atomic_fetch_add(&s->filled[port], 1, __ATOMIC_RELEASE);
	}
}

/* As overrun.go and stack.c have it. */
static uint32_t checksum(const uint8_t *at, uint64_t size)
{
	uint64_t sum = 0xcbf29ce484222325, word, i;

	for (i = 0; i + sizeof(word) <= size; i += sizeof(word)) {
		__builtin_memcpy(&word, at + i, sizeof(word));
		sum = (sum ^ word) * 0x100000001b3;
	}
	for (; i < size; i++)
		sum = (sum ^ at[i]) * 0x100000001b3;
	return (uint32_t)(sum ^ sum >> 32);
}

static int is_chunk(const uint8_t *at, uint64_t size, uint64_t n)
{
	uint64_t word;

	__builtin_memcpy(&word, at, sizeof(word));
	return (uint32_t)word == (uint32_t)n &&
	       word >> 32 == checksum(at + sizeof(word), size - sizeof(word));
}

/* Read as many chunks as the host sends; returns how many were others, or torn. */
static uint64_t read_all(struct nfc_process *self, struct shared *s,
			 const struct run *r)
{
	const uint8_t *mem = nfc_at(self, s->memory, r->buffers * r->size);
	uint64_t n, wrong = 0;

	for (n = 0; n < r->chunks; n++) {
		uint64_t port = n % r->buffers, before = n / r->buffers;

		while (__atomic_load_n(&s->filled[port], __ATOMIC_ACQUIRE) <=
		       before) {
			if (nfc_stopped(self))
				return wrong;
			nfc_sleep(self, 2000);
		}
		wrong += !is_chunk(mem + port * r->size, r->size, n);
	}
	return wrong;
}

/* Chunks that came into all buffers. */
static uint64_t came(const struct shared *s, uint64_t buffers)
{
	uint64_t i, n = 0;

	for (i = 0; i < buffers; i++)
		n += __atomic_load_n(&s->filled[i], __ATOMIC_ACQUIRE);
	return n;
}

static void reader(struct nfc_process *self)
{
	struct nfc_channel *host = nfc_channel_of(self, 0);
	uint64_t at = nfc_alloc(self, NFC_EMEM, sizeof(struct shared));
	struct shared *s = nfc_at(self, at, sizeof(*s));
	struct run r;

	if (!s || channel_write(host, &at, sizeof(at)))
		return;
	while (channel_read(host, &r, sizeof(r)) == sizeof(r)) {
		struct found f = { 0 };

		if (r.size < sizeof(uint64_t) || !r.buffers ||
		    r.buffers > BUFFERS)
			return;
		__builtin_memset(s, 0, sizeof(*s));
		s->size = r.size;
		s->memory = nfc_alloc(self, NFC_EMEM, r.buffers * r.size);
		if (channel_write(host, &s->memory, sizeof(s->memory)))
			return;
		if (s->memory) {
			f.wrong = read_all(self, s, &r);
			f.chunks = came(s, r.buffers);
			nfc_free(self, s->memory);
		}
		if (channel_write(host, &f, sizeof(f)))
			return;
	}
}

NFC_PROGRAMS({ NFC_PROGRAM_ABI, 0, "overrun.reader", reader },
	     { NFC_PROGRAM_ABI, 0, "overrun.engine", engine });
