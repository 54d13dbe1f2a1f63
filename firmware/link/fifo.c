// SPDX-License-Identifier: MIT
/* Packets in order: headers in one ring, the words of payloads in another. */
#include "link.h"

/* Packets that fit: each takes NFC_PACKET_COST words at least. */
static uint32_t packets(uint32_t words)
{
	return words / NFC_PACKET_COST;
}

uint64_t nfc_fifo_size(uint32_t words)
{
	return words * sizeof(struct nfc_word) +
	       packets(words) * sizeof(struct nfc_held);
}

void *nfc_fifo_init(struct nfc_fifo *f, uint32_t words, void *memory)
{
	__builtin_memset(f, 0, sizeof(*f));
	f->size = words;
	f->word = memory;
	f->held = (struct nfc_held *)(f->word + words);
	return f->held + packets(words);
}

bool nfc_fifo_room(const struct nfc_fifo *f, uint32_t words)
{
	return f->end - f->begin + nfc_packet_cost(words) <= f->size;
}

struct nfc_held *nfc_fifo_at(const struct nfc_fifo *f, uint32_t index)
{
	return &f->held[index & (packets(f->size) - 1)];
}

uint32_t nfc_fifo_run(const struct nfc_fifo *f, uint32_t at, uint32_t n,
		      struct nfc_word **run)
{
	uint32_t i = at & (f->size - 1);

	*run = &f->word[i];
	return n < f->size - i ? n : f->size - i;
}

void nfc_fifo_write(struct nfc_fifo *f, uint32_t offset, const void *word,
		    uint32_t n)
{
	const uint8_t *from = word; /* of any alignment */

	while (n) {
		struct nfc_word *to;
		uint32_t run = nfc_fifo_run(f, f->end + offset, n, &to);

		__builtin_memcpy(to, from, run * sizeof(*to));
		from += run * sizeof(*to);
		offset += run;
		n -= run;
	}
}

void nfc_fifo_copy(struct nfc_fifo *f, const struct nfc_fifo *from, uint32_t at,
		   uint32_t n)
{
	uint32_t done = 0;

	while (done < n) {
		struct nfc_word *run;
		uint32_t some = nfc_fifo_run(from, at + done, n - done, &run);

		nfc_fifo_write(f, done, run, some);
		done += some;
	}
}

void nfc_fifo_read(const struct nfc_fifo *f, uint32_t at, struct nfc_word *out,
		   uint32_t n)
{
	while (n) {
		struct nfc_word *from;
		uint32_t run = nfc_fifo_run(f, at, n, &from);

		__builtin_memcpy(out, from, run * sizeof(*from));
		out += run;
		at += run;
		n -= run;
	}
}

struct nfc_held *nfc_fifo_push(struct nfc_fifo *f, struct nfc_word header,
			       uint32_t words, uint32_t vc, struct nfc_sum sum)
{
	struct nfc_held *h = nfc_fifo_at(f, f->last++);

	*h = (struct nfc_held){
		.header = header,
		.at = f->end,
		.sum = sum,
		.words = (uint16_t)words,
		.vc = (uint8_t)vc,
	};
	f->end += nfc_packet_cost(words);
	return h;
}

void nfc_fifo_pop(struct nfc_fifo *f)
{
	f->begin += nfc_packet_cost(nfc_fifo_at(f, f->first++)->words);
}

void nfc_fifo_rewind(struct nfc_fifo *f)
{
	if (f->begin == f->end)
		f->begin = f->end = 0;
}

/*
 * Header, from its lowest bit: to 24, from 24, size 13, zero 3; kind 8, hops 8,
 * epoch 16, sequence 32.
 */
struct nfc_word nfc_packet_header(const struct nfc_packet *p)
{
	return (struct nfc_word){
		.lo = (uint64_t)p->to | (uint64_t)p->from << 24 |
		      (uint64_t)p->size << 48,
		.hi = (uint64_t)p->kind | (uint64_t)p->hops << 8 |
		      (uint64_t)p->epoch << 16 | (uint64_t)p->sequence << 32,
	};
}

struct nfc_packet nfc_packet_read(struct nfc_word header)
{
	return (struct nfc_packet){
		.to = header.lo & 0xffffff,
		.from = header.lo >> 24 & 0xffffff,
		.size = (uint32_t)(header.lo >> 48),
		.kind = (uint8_t)header.hi,
		.hops = (uint8_t)(header.hi >> 8),
		.epoch = (uint16_t)(header.hi >> 16),
		.sequence = (uint32_t)(header.hi >> 32),
	};
}
