// SPDX-License-Identifier: GPL-2.0-only
/*
 * The memory of a region as a device reaches it: pages that are mapped in
 * parts, or a dma-buf, and the bus address of each of their bytes.
 */
#include <linux/dma-mapping.h>
#include <linux/mm.h>
#include <linux/slab.h>

#include "nfcm_compat.h"
#include "nfcm_kmod.h"

/* Bytes that are contiguous for the device. */
struct nfcm_piece {
	u64 address; /* of its first byte */
	u64 end; /* bytes of the region up to its end */
};

/* ---- finding ---- */

/* The piece with a byte. */
static u32 piece_at(const struct nfcm_map *m, u64 at)
{
	u32 low = 0, high = m->pieces;

	while (low < high) {
		u32 mid = low + (high - low) / 2;

		if (m->piece[mid].end <= at)
			low = mid + 1;
		else
			high = mid;
	}
	return low;
}

/*
 * The contiguous bytes from a byte on: their address, and *n of them at most.
 */
static u64 row(const struct nfcm_map *m, u32 i, u64 at, u64 *n)
{
	u64 start = i ? m->piece[i - 1].end : 0;

	*n = min(*n, m->piece[i].end - at);
	return m->piece[i].address + (at - start);
}

/* Cut lists of what is from a byte on. */
bool nfcm_map_cut(const struct nfcm_map *m, struct nfcm_cut *c, u64 at)
{
	u32 i = piece_at(m, at);
	u64 n;

	for (; c->at < c->end; at += n, i++) {
		u64 from;

		n = c->end - c->at;
		from = row(m, i, at, &n);
		if (!nfcm_cut_add(c, from, n))
			return false;
	}
	return true;
}

/*
 * The device is to see what is there, or the processor what the device wrote.
 */
void nfcm_map_sync(const struct nfcm_map *m, u64 at, u64 length, bool for_device)
{
	u64 end = at + length, n;
	u32 i = piece_at(m, at);

	for (; m->sync && at < end; at += n, i++) {
		u64 from;

		n = end - at;
		from = row(m, i, at, &n);
		if (for_device)
			dma_sync_single_for_device(m->dma, from, n, m->way);
		else
			dma_sync_single_for_cpu(m->dma, from, n, m->way);
	}
}

/* ---- mapping ---- */

/*
 * A device's table of pinned pages: the bytes in them, in pieces that it can
 * map.
 */
int nfcm_map_table(struct device *dma, struct sg_table *sgt, struct page **pages,
		   unsigned long npages, unsigned long start, u64 size)
{
	unsigned int most;

	most = min_t(size_t, dma_max_mapping_size(dma), NFCM_PART_MAX) &
	       PAGE_MASK;
	return sg_alloc_table_from_pages_segment(sgt, pages, npages,
						 offset_in_page(start), size,
						 max_t(unsigned int, most,
						       PAGE_SIZE),
						 GFP_KERNEL_ACCOUNT);
}

#ifdef NFCM_LINES_ARE_COUNTED
enum {
	LINE_MAPPINGS = 6, /* of the eight that may be counted, also by other drivers */
};

/*
 * How many mappings of all devices, by which these may write, begin in a line of a
 * cache; by the line's number. Its lock guards it.
 */
static DEFINE_XARRAY(lines);

/* One mapping more or less; -EBUSY: there are as many as may be. It may sleep. */
static int line_add(struct scatterlist *sg, int n)
{
	XA_STATE(xas, &lines, sg_phys(sg) >> L1_CACHE_SHIFT);
	int rc;

	do {
		unsigned long count;
		void *old;

		xas_lock(&xas);
		old = xas_load(&xas);
		count = (old ? xa_to_value(old) : 0) + n;
		rc = count > LINE_MAPPINGS ? -EBUSY : 0;
		if (!rc)
			xas_store(&xas, count ? xa_mk_value(count) : NULL);
		xas_unlock(&xas);
	} while (xas_nomem(&xas, GFP_KERNEL));
	return rc ?: xas_error(&xas);
}

/* Undo lines_take() of the first so many entries. */
static void lines_give_back(struct sg_table *sgt, unsigned int n,
			    enum dma_data_direction way)
{
	struct scatterlist *sg;
	unsigned int i;

	if (way == DMA_TO_DEVICE)
		return;
	for_each_sg(sgt->sgl, sg, n, i)
		WARN_ON_ONCE(line_add(sg, -1));
}

/*
 * Count what is about to be mapped, as DMA debugging does: each entry by its first
 * byte. A user whom nobody counts could have the kernel warn. All, or none and -EBUSY.
 */
static int lines_take(struct sg_table *sgt, enum dma_data_direction way)
{
	struct scatterlist *sg;
	unsigned int i;
	int rc;

	if (way == DMA_TO_DEVICE) /* nobody counts these */
		return 0;
	for_each_sgtable_sg(sgt, sg, i) {
		rc = line_add(sg, 1);
		if (rc) {
			lines_give_back(sgt, i, way);
			return rc;
		}
	}
	return 0;
}
#endif

/*
 * Map pages of clients. Mappings may have a page, or a line of a cache, in common: of
 * transfers and regions of any clients. The kernel allows that where the driver itself
 * makes the one side see what the other wrote, which is done for each transfer. -EBUSY:
 * the kernel's debugging could not count one more. The caller holds the pages; no locks.
 */
int nfcm_map_dma(struct device *dma, struct sg_table *sgt,
		 enum dma_data_direction way)
{
#ifndef NFCM_LINES_ARE_COUNTED
	return dma_map_sgtable(dma, sgt, way, NFCM_DMA_ATTRS);
#else
	int rc = lines_take(sgt, way);

	if (rc)
		return rc;
	rc = dma_map_sgtable(dma, sgt, way, NFCM_DMA_ATTRS);
	if (rc)
		lines_give_back(sgt, sgt->orig_nents, way);
	return rc;
#endif
}

/* Take a mapping of nfcm_map_dma() off the bus. The caller has ended what uses it; no lock. */
void nfcm_unmap_dma(struct device *dma, struct sg_table *sgt,
		    enum dma_data_direction way)
{
	dma_unmap_sgtable(dma, sgt, way, NFCM_DMA_ATTRS);
#ifdef NFCM_LINES_ARE_COUNTED
	lines_give_back(sgt, sgt->orig_nents, way);
#endif
}

static void undo_parts(struct nfcm_map *m)
{
	while (m->parts) {
		struct sg_table *sgt = &m->part[--m->parts];

		nfcm_unmap_dma(m->dma, sgt, m->way);
		sg_free_table(sgt);
		cond_resched();
	}
}

/* Release all that was mapped. */
void nfcm_map_undo(struct nfcm_map *m)
{
	if (m->import)
		nfcm_import_close(m->import);
	undo_parts(m);
	kvfree(m->part);
	kvfree(m->piece);
}

/* Room for so many pieces. */
static int piece_alloc(struct nfcm_map *m, size_t n)
{
	m->piece = kvcalloc(n, sizeof(*m->piece), GFP_KERNEL_ACCOUNT);
	return m->piece ? 0 : -ENOMEM;
}

/*
 * Note the next one: of what one table maps, all from a byte on, up to size in
 * all.
 */
static void note_pieces(struct nfcm_map *m, struct sg_table *sgt, u64 skip,
			u64 size)
{
	u64 at = m->pieces ? m->piece[m->pieces - 1].end : 0;
	struct scatterlist *sg;
	int i;

	for_each_sgtable_dma_sg(sgt, sg, i) {
		u64 n = sg_dma_len(sg), before = min(skip, n);

		skip -= before;
		n = min(n - before, size - at);
		if (!n)
			continue;
		at += n;
		m->piece[m->pieces].address = sg_dma_address(sg) + before;
		m->piece[m->pieces++].end = at;
		m->sync |= !m->import &&
			   dma_need_sync(m->dma, sg_dma_address(sg));
	}
}

/* Were so many bytes noted? */
static int noted(const struct nfcm_map *m, u64 size)
{
	return m->pieces && m->piece[m->pieces - 1].end == size ? 0 : -EIO;
}

/*
 * Map what is between two addresses, the first of which is in the first page.
 */
static int map_part(struct nfcm_map *m, struct page **pages, u64 at, u64 end)
{
	struct sg_table *sgt = &m->part[m->parts];
	int rc = nfcm_map_table(m->dma, sgt, pages, PFN_UP(end) - PHYS_PFN(at),
				at, end - at);

	if (rc)
		return rc;
	rc = nfcm_map_dma(m->dma, sgt, m->way);
	if (rc)
		sg_free_table(sgt);
	else
		m->parts++;
	return rc;
}

/*
 * A part is what one page table of an IOMMU has room for, and its addresses
 * there are aligned to its size. Without memory for the next table some drivers
 * of IOMMUs leave a part mapped: the device would continue reaching pages that
 * are not pinned any more.
 */
static int map_parts(struct nfcm_map *m, struct page **pages, u64 start, u64 end)
{
	u64 at, next;
	int rc = 0;

	for (at = start; !rc && at < end; at = next) {
		next = min(end, ALIGN(at + 1, NFCM_PART_MAX));
		rc = map_part(m, pages + (PHYS_PFN(at) - PHYS_PFN(start)), at,
			      next);
		cond_resched();
	}
	return rc;
}

/* Map the pages of what is between two addresses. */
int nfcm_map_pages(struct nfcm_map *m, struct page **pages, u64 start, u64 end)
{
	u64 n = DIV_ROUND_UP_ULL(end - ALIGN_DOWN(start, NFCM_PART_MAX),
				 NFCM_PART_MAX);
	size_t pieces = 0;
	u32 i;
	int rc;

	m->part = kvcalloc(n, sizeof(*m->part), GFP_KERNEL_ACCOUNT);
	rc = m->part ? map_parts(m, pages, start, end) : -ENOMEM;
	for (i = 0; i < m->parts; i++)
		pieces += m->part[i].nents;
	if (!rc)
		rc = piece_alloc(m, pieces);
	if (rc)
		return rc;
	for (i = 0; i < m->parts; i++) {
		note_pieces(m, &m->part[i], 0, end - start);
		cond_resched();
	}
	return noted(m, end - start);
}

/* Attach and map a dma-buf. */
int nfcm_map_import(struct nfcm_map *m, struct nfcm_dev *dev,
		    const struct nfcomms_register *in)
{
	struct nfcm_import *import = nfcm_import_open(dev, in, m->way);
	int rc;

	if (IS_ERR(import))
		return PTR_ERR(import);
	m->import = import;
	rc = piece_alloc(m, import->sgt->nents);
	if (rc)
		return rc;
	note_pieces(m, import->sgt, in->offset, in->length);
	return noted(m, in->length);
}
