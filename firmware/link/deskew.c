// SPDX-License-Identifier: MIT
/*
 * Lanes that are not of one length: each has a FIFO that is written from its
 * mark on, and words are read when no FIFO is empty.
 */
#include "link.h"

void nfc_deskew_put(struct nfc_deskew *d, uint32_t lane, uint32_t symbol,
		    bool mark)
{
	struct nfc_lane *l = &d->lane[lane];

	if (mark) {
		l->marked = true;
		l->head = l->tail = 0;
		d->reading = false;
		return;
	}
	if (!l->marked)
		return;
	if (l->tail - l->head == NFC_DESKEW_DEPTH) {
		d->overflows++;
		l->marked = false; /* until the next mark */
		d->reading = false;
		return;
	}
	l->symbol[l->tail++ % NFC_DESKEW_DEPTH] = symbol;
}

bool nfc_deskew_take(struct nfc_deskew *d, struct nfc_word *word)
{
	uint32_t part[NFC_LANES];

	for (uint32_t i = 0; i < NFC_LANES; i++)
		if (!d->lane[i].marked || d->lane[i].head == d->lane[i].tail)
			return false;
	d->reading = true;
	for (uint32_t i = 0; i < NFC_LANES; i++) {
		struct nfc_lane *l = &d->lane[i];

		part[i] = l->symbol[l->head++ % NFC_DESKEW_DEPTH];
	}
	word->lo = part[0] | (uint64_t)part[1] << 32;
	word->hi = part[2] | (uint64_t)part[3] << 32;
	return true;
}
