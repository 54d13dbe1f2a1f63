// SPDX-License-Identifier: MIT
/* Control words and footers: what is in them, and their checksums. */
#include "frame.h"

static uint32_t port_crc(const struct nfc_link_port *port, uint32_t crc,
			 const void *data, uint64_t size)
{
	return port->crc ? port->crc(crc, data, size) :
			   nfc_crc32c(crc, data, size);
}

/*
 * Words of alignment and self-test are readable before both sessions are known.
 * All others begin their checksums with them, so no word of an earlier session,
 * or of another link, is accepted.
 */
static uint32_t checksum(const struct nfc_link_end *l, uint64_t lo,
			 uint32_t more)
{
	uint64_t data[2] = { lo, more };
	uint32_t kind = nfc_kind(lo);
	bool open = kind >= NFC_WORD_ALIGN && kind <= NFC_WORD_TEST_OK;

	return port_crc(l->port, open ? 0 : l->seed, data, sizeof(data));
}

struct nfc_word nfc_control_word(const struct nfc_link_end *l,
				 enum nfc_word_kind kind, uint64_t fields,
				 uint32_t more)
{
	struct nfc_word w = { .lo = (uint64_t)kind << 60 | fields };

	w.hi = more | (uint64_t)checksum(l, w.lo, more) << 32;
	return w;
}

bool nfc_control_valid(const struct nfc_link_end *l, struct nfc_word w)
{
	return w.hi >> 32 == checksum(l, w.lo, (uint32_t)w.hi);
}

/* Copy contiguous words, if there is a destination, and add them to a sum. */
static void copy_words(const struct nfc_link_port *port, struct nfc_word *to,
		       const void *from, uint32_t n, struct nfc_sum *sum)
{
	const struct nfc_word *lie = to ? to : from;
	uint64_t size = n * sizeof(*to);

	if (port->copy) {
		sum->magic |= port->copy(&sum->crc, to, from, size,
					 NFC_WORD_MAGIC.lo);
		return;
	}
	if (to)
		__builtin_memcpy(to, from, size);
	sum->crc = port_crc(port, sum->crc, lie, size);
	sum->magic |= nfc_until_magic(lie, n) < n;
}

void nfc_payload_write(const struct nfc_link_port *port, struct nfc_fifo *f,
		       uint32_t offset, const void *word, uint32_t n,
		       struct nfc_sum *sum)
{
	const uint8_t *from = word; /* of any alignment */

	while (n) {
		struct nfc_word *to;
		uint32_t run = nfc_fifo_run(f, f->end + offset, n, &to);

		copy_words(port, to, from, run, sum);
		from += run * sizeof(*to);
		offset += run;
		n -= run;
	}
}

void nfc_payload_sum(const struct nfc_link_port *port, const struct nfc_fifo *f,
		     uint32_t at, uint32_t n, struct nfc_sum *sum)
{
	while (n) {
		struct nfc_word *run;
		uint32_t some = nfc_fifo_run(f, at, n, &run);

		copy_words(port, NULL, run, some, sum);
		at += some;
		n -= some;
	}
}

uint32_t nfc_payload_crc(const struct nfc_link_port *port,
			 const struct nfc_fifo *f, uint32_t at, uint32_t n)
{
	uint32_t crc = 0;

	while (n) {
		struct nfc_word *run;
		uint32_t some = nfc_fifo_run(f, at, n, &run);

		crc = port_crc(port, crc, run, some * sizeof(*run));
		at += some;
		n -= some;
	}
	return crc;
}

struct nfc_word nfc_footer(const struct nfc_link_end *l, uint64_t start,
			   struct nfc_word header, uint32_t sum)
{
	uint64_t data[4] = { start, header.lo, header.hi, sum };
	uint32_t crc = port_crc(l->port, l->seed, data, sizeof(data));

	return (struct nfc_word){ .lo = crc | (uint64_t)NFC_FOOTER << 32,
				  .hi = sum | (uint64_t)~crc << 32 };
}

struct nfc_word nfc_train_footer(const struct nfc_link_end *l, uint64_t start,
				 const struct nfc_word *word, uint32_t n)
{
	uint32_t crc = port_crc(l->port, l->seed, &start, sizeof(start));

	crc = port_crc(l->port, crc, word, n * sizeof(*word));
	return (struct nfc_word){ .lo = crc | (uint64_t)NFC_FOOTER << 32,
				  .hi = n | (uint64_t)~crc << 32 };
}
