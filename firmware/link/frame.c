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
 * Words of alignment and self-test are readable before both sessions are known;
 * all others begin their checksums with them, so that nothing of an earlier
 * session, or of another link, is taken for one's own.
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

uint32_t nfc_words_sum(const struct nfc_link_port *port, uint32_t sum,
		       const struct nfc_word *word, uint32_t n)
{
	return port_crc(port, sum, word, n * sizeof(*word));
}

uint32_t nfc_payload_sum(const struct nfc_link_port *port,
			 const struct nfc_fifo *f, uint32_t at, uint32_t words)
{
	uint32_t sum = 0;

	while (words) {
		struct nfc_word *run;
		uint32_t n = nfc_fifo_run(f, at, words, &run);

		sum = nfc_words_sum(port, sum, run, n);
		at += n;
		words -= n;
	}
	return sum;
}

struct nfc_word nfc_footer(const struct nfc_link_end *l, uint64_t start,
			   struct nfc_word header, uint32_t sum)
{
	uint64_t data[4] = { start, header.lo, header.hi, sum };
	uint32_t crc = port_crc(l->port, l->seed, data, sizeof(data));

	return (struct nfc_word){ .lo = crc | (uint64_t)NFC_FOOTER << 32,
				  .hi = sum | (uint64_t)~crc << 32 };
}
