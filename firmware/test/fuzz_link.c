// SPDX-License-Identifier: MIT
/*
 * Fuzz the receiver of a link that is up. Each record is a byte with the kind,
 * and 16 more: a word as it is, the fields of a control word whose checksum is
 * right, or a footer. Those are the words that a hostile end can send.
 */
#include <stdlib.h>
#include <string.h>

#include "link_rig.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void take_all(struct nfc_link_end *l)
{
	for (uint32_t vc = 0; vc < NFC_VCS; vc++) {
		struct nfc_fifo *f = &l->rx.fifo[vc];
		const struct nfc_held *h;

		if (f->end - f->begin > f->size)
			abort();
		while ((h = nfc_link_head(l, vc))) {
			struct nfc_packet p = nfc_packet_read(h->header);

			if (nfc_words(p.size) != h->words)
				abort();
			nfc_link_consume(l, vc);
		}
	}
}

/* The footer that ends what a receiver is at. */
static struct nfc_word footer(const struct nfc_link_end *forger,
			      const struct nfc_receiver *rx)
{
	if (rx->state == NFC_RECEIVE_TRAIN_FOOTER)
		return nfc_train_footer(forger, rx->start, rx->train, rx->words);
	return nfc_footer(forger, rx->start, rx->header, rx->sum.crc);
}

/* The words of one record; returns how many. */
static uint32_t record(const struct nfc_link_end *forger,
		       const struct nfc_receiver *rx, const uint8_t *data,
		       struct nfc_word out[2])
{
	if (*data >> 4 == 15) {
		out[0] = footer(forger, rx);
		return 1;
	}
	memcpy(&out[1], data + 1, sizeof(out[1]));
	out[0] = NFC_WORD_MAGIC;
	if (*data & 1)
		out[1] = nfc_control_word(forger, *data >> 4,
					  out[1].lo & ~(15ull << 60),
					  (uint32_t)out[1].hi);
	else if (!(*data & 2))
		out[0] = out[1];
	return *data & 3 ? 2 : 1;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct link_rig *r = link_rig_new(&link_quick, NULL);
	struct nfc_link_end *l = &r->side[1].end;

	if (!link_rig_up(r))
		abort();
	link_rig_send(&r->side[1], 0, 300); /* something that acks are for */
	nfc_link_transmit(l);
	for (; size > NFC_WORD_SIZE; size -= NFC_WORD_SIZE + 1) {
		struct nfc_word word[2];

		nfc_receive_words(l, word,
				  record(&r->side[0].end, &l->rx, data, word));
		if (*data & 4)
			take_all(l);
		if (*data & 8) {
			r->now += 1 << (*data >> 4);
			nfc_link_receive(l);
			nfc_link_transmit(l);
		}
		data += NFC_WORD_SIZE + 1;
	}
	take_all(l);
	link_rig_free(r);
	return 0;
}
