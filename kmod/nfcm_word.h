/* SPDX-License-Identifier: GPL-2.0-only */
/* Words of the rings, and how they are loaded and stored. */
#ifndef NFCM_WORD_H
#define NFCM_WORD_H

#include <linux/io.h>
#include <linux/iosys-map.h>

/*
 * A word that both sides reach: in the BAR, which is mapped write-combining, or in
 * the host's memory. A load is ordered before what follows it, a store after what was
 * loaded and stored before.
 */
static inline u64 nfcm_load(const struct iosys_map *at, size_t offset)
{
	u64 word;

	if (at->is_iomem) {
		word = readq(at->vaddr_iomem + offset);
		rmb(); /* loads of such memory may pass each other */
		return word;
	}
	word = le64_to_cpu(READ_ONCE(*(__le64 *)(at->vaddr + offset)));
	dma_rmb(); /* SYNC: slot: its header before its payload */
	return word;
}

static inline void nfcm_store(const struct iosys_map *at, u64 word)
{
	mb(); /* SYNC: slot: copies before the head that lets slots be written again */
	if (at->is_iomem) {
		writeq(word, at->vaddr_iomem);
		wmb(); /* it does not stay in a buffer */
	} else {
		WRITE_ONCE(*(__le64 *)at->vaddr, cpu_to_le64(word));
	}
}

#endif /* NFCM_WORD_H */
