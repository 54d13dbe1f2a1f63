/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Differences between the kernels that this driver builds for, 6.1 and later.
 */
#ifndef NFCM_COMPAT_H
#define NFCM_COMPAT_H

#include <linux/dim.h>
#include <linux/dma-buf.h>
#include <linux/dma-mapping.h>
#include <linux/eventfd.h>
#include <linux/pagemap.h>
#include <linux/version.h>

/* The macro for an event's string took the source a second time. */
#if KERNEL_VERSION(6, 10, 0) > LINUX_VERSION_CODE
#define nfcm_assign_str(field, from) __assign_str(field, from)
#else
#define nfcm_assign_str(field, from) __assign_str(field)
#endif

/*
 * Fault the pages of memory in, killably. Pinning for long did not release the
 * memory while it waited for them, and nothing could end it.
 */
static inline size_t nfcm_fault_in(unsigned long at, size_t size)
{
#if KERNEL_VERSION(6, 3, 0) > LINUX_VERSION_CODE
	return fault_in_readable((const char __user *)at, size);
#else
	return 0;
#endif
}

/* Add one to an eventfd, as far as it has room. */
static inline void nfcm_signal(struct eventfd_ctx *event)
{
#if KERNEL_VERSION(6, 8, 0) > LINUX_VERSION_CODE
	eventfd_signal(event, 1);
#else
	eventfd_signal(event);
#endif
}

/* A measurement of interrupt moderation. It was passed by value before. */
static inline void nfcm_net_dim(struct dim *dim, const struct dim_sample *now)
{
#if !IS_REACHABLE(CONFIG_DIMLIB)
	/* Nobody calls it: see nfcm_adapts(). */
#elif KERNEL_VERSION(6, 13, 0) > LINUX_VERSION_CODE
	net_dim(dim, *now);
#else
	net_dim(dim, now);
#endif
}

/* The name of symbols that are exported to some became a string. */
#if KERNEL_VERSION(6, 13, 0) > LINUX_VERSION_CODE
#define NFCM_IMPORT_NS(name) MODULE_IMPORT_NS(name)
#else
#define NFCM_IMPORT_NS(name) MODULE_IMPORT_NS(#name)
#endif

/*
 * Mappings may have lines of a cache in common. Before a driver could say so, DMA
 * debugging counted those of a line by which a device may write, and warned of the ninth.
 */
#ifdef DMA_ATTR_DEBUGGING_IGNORE_CACHELINES
#define NFCM_DMA_ATTRS \
	(DMA_ATTR_SKIP_CPU_SYNC | DMA_ATTR_DEBUGGING_IGNORE_CACHELINES)
#else
#define NFCM_DMA_ATTRS DMA_ATTR_SKIP_CPU_SYNC
#ifdef CONFIG_DMA_API_DEBUG
#define NFCM_LINES_ARE_COUNTED
#endif
#endif

/*
 * Map and unmap an attachment whose lock is not held. Earlier kernels took no
 * lock for that; Kbuild checks which it is, as stable kernels have it too.
 */
static inline struct sg_table *nfcm_map_attachment(struct dma_buf_attachment *a,
						   enum dma_data_direction way)
{
#ifdef NFCM_ATTACHMENTS_UNLOCKED
	return dma_buf_map_attachment_unlocked(a, way);
#else
	return dma_buf_map_attachment(a, way);
#endif
}

static inline void nfcm_unmap_attachment(struct dma_buf_attachment *a,
					 struct sg_table *sgt,
					 enum dma_data_direction way)
{
#ifdef NFCM_ATTACHMENTS_UNLOCKED
	dma_buf_unmap_attachment_unlocked(a, sgt, way);
#else
	dma_buf_unmap_attachment(a, sgt, way);
#endif
}

#endif /* NFCM_COMPAT_H */
