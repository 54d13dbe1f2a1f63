// SPDX-License-Identifier: GPL-2.0-only
/*
 * A part of a transfer's memory: pinned, mapped and cut into lists, or cut out of a
 * region; and given back.
 */
#include <linux/dma-mapping.h>
#include <linux/mm.h>
#include <linux/overflow.h>
#include <linux/slab.h>

#include "nfcm_compat.h"
#include "nfcm_kmod.h"

enum {
	AT_ONCE = PFN_DOWN(NFCM_PART_MAX), /* pages, until others get the processor */
};

static struct nfcm_dev *dev_of(const struct nfcm_op *op)
{
	return op->ch->epoch->dev;
}

/* Lists that so much memory may need: one for each six device pages that it touches. */
static u64 most_lists(u64 address, u64 size)
{
	u64 bytes = (address & (NFC_PAGE_SIZE - 1)) + size;

	return DIV_ROUND_UP_ULL(bytes, NFC_LIST_ENTRIES * NFC_PAGE_SIZE);
}

static void unpin(struct nfcm_chunk *chunk, unsigned long n)
{
	if (chunk->way == DMA_FROM_DEVICE)
		unpin_user_pages_dirty_lock(chunk->pages, n, true);
	else
		unpin_user_pages(chunk->pages, n);
}

/* Release so many pages, which may wait for their locks. */
void nfcm_unpin_pages(struct page **pages, unsigned long count, bool dirty)
{
	unsigned long done, n;

	for (done = 0; done < count; done += n) {
		n = min_t(unsigned long, count - done, AT_ONCE);
		unpin_user_pages_dirty_lock(pages + done, n, dirty);
		cond_resched();
	}
}

/* Pin so many pages of the caller's, from one on: all of them, or none. */
int nfcm_pin_pages(unsigned long start, unsigned long count,
		   struct page **pages, unsigned int flags)
{
	unsigned long done = 0;

	while (done < count) {
		unsigned long at = start + (done << PAGE_SHIFT);
		unsigned long n = min_t(unsigned long, count - done, AT_ONCE);
		int got = -EFAULT;

		if (!nfcm_fault_in(at, n << PAGE_SHIFT))
			got = pin_user_pages_fast(at, (int)n, flags,
						  pages + done);
		if (got <= 0) {
			nfcm_unpin_pages(pages, done, false);
			return got == -ENOMEM ? -ENOMEM : -EFAULT;
		}
		done += got;
		cond_resched();
	}
	return 0;
}

/* Pin the pages of a chunk: all of them, or none. */
static int pin(struct nfcm_op *op, struct nfcm_chunk *chunk)
{
	unsigned int flags = FOLL_LONGTERM;

	if (current->mm != op->pins.mm) /* its process has ended */
		return -EFAULT;
	if (op->pins.write)
		flags |= FOLL_WRITE;
	return nfcm_pin_pages(chunk->start & PAGE_MASK, chunk->npages,
			      chunk->pages, flags);
}

/* Make the lists of a chunk of what its mapping gave: all of it, or -EIO. */
static int cut(struct nfcm_op *op, struct nfcm_chunk *chunk, bool runs)
{
	struct nfcm_cut *c = &chunk->cut;
	struct scatterlist *sg;
	int i;

	*c = (struct nfcm_cut){
		.list = chunk->list,
		.most = most_lists(chunk->start, chunk->size),
		.first = op->pins.lists,
		.head = op->pins.address & (NFC_PAGE_SIZE - 1),
		.size = op->pins.size,
		.at = chunk->end - chunk->size,
		.end = chunk->end,
		.runs = runs,
	};
	if (op->pins.region)
		return nfcm_region_cut(op->pins.region, c, chunk->start) ? 0 :
									   -EIO;
	for_each_sgtable_dma_sg(&chunk->sgt, sg, i)
		if (!nfcm_cut_add(c, sg_dma_address(sg), sg_dma_len(sg)))
			return -EIO;
	return c->at == c->end ? 0 : -EIO;
}

/* Runs, where the device agreed to them and they reach; else pages. */
static int cut_lists(struct nfcm_op *op, struct nfcm_chunk *chunk)
{
	bool runs = op->ch->epoch->layout.capabilities & NFC_CAP_RUNS;

	if (runs && !cut(op, chunk, true))
		return 0;
	return cut(op, chunk, false);
}

/* Undo map(), as far as it succeeded. */
static void unmap(struct nfcm_dev *dev, struct nfcm_chunk *chunk)
{
	struct device *dma = &dev->pdev->dev;

	if (chunk->mapped) {
		dma_sync_sgtable_for_cpu(dma, &chunk->sgt, chunk->way);
		nfcm_unmap_dma(dma, &chunk->sgt, chunk->way);
	}
	chunk->mapped = false;
	if (atomic_dec_and_test(&dev->mapped))
		wake_up_var(&dev->mapped);
	sg_free_table(&chunk->sgt);
}

/*
 * Map a pinned chunk. dev->mapped is raised before the epoch is checked: the
 * thread that ends an epoch reads it afterwards.
 */
int nfcm_chunk_map(struct nfcm_op *op, struct nfcm_chunk *chunk)
{
	struct nfcm_dev *dev = dev_of(op);
	struct device *dma = &dev->pdev->dev;
	int rc = nfcm_map_table(dma, &chunk->sgt, chunk->pages, chunk->npages,
				chunk->start, chunk->size);

	if (rc)
		return rc;
	atomic_inc(&dev->mapped);
	smp_mb__after_atomic(); /* pairs with the wait in nfcm_dev_remove() */
	rc = atomic_read(&op->ch->epoch->down) ?
		     -ENODEV :
		     nfcm_map_dma(dma, &chunk->sgt, chunk->way);
	chunk->mapped = !rc;
	if (!rc)
		dma_sync_sgtable_for_device(dma, &chunk->sgt, chunk->way);
	if (!rc)
		rc = cut_lists(op, chunk);
	if (rc)
		unmap(dev, chunk);
	return rc;
}

static void chunk_forget(struct nfcm_chunk *chunk)
{
	kvfree(chunk->pages);
	kvfree(chunk);
}

/* A part of a region: what the device wrote there is to be seen. */
static void region_chunk_free(struct nfcm_chunk *chunk)
{
	if (chunk->way == DMA_FROM_DEVICE)
		nfcm_region_sync(chunk->op->pins.region, chunk->start,
				 chunk->size, false);
	kvfree(chunk);
}

/*
 * Unmap, unpin and free. True if the operation was refused pages that may be there
 * now. Process context; the caller has a hold on the operation.
 */
bool nfcm_chunk_free(struct nfcm_chunk *chunk)
{
	struct nfcm_op *op = chunk->op;
	struct nfcm_dev *dev = dev_of(op);
	bool refused;

	if (op->pins.region) {
		region_chunk_free(chunk);
		return false;
	}
	if (chunk->mapped)
		unmap(dev, chunk);
	unpin(chunk, chunk->npages);
	refused = nfcm_pool_uncharge(op, chunk->npages);
	nfcm_count(dev, NFCM_COUNT_PINNED, -(s64)(chunk->npages << PAGE_SHIFT));
	chunk_forget(chunk);
	return refused;
}

static void chunk_work(struct work_struct *work)
{
	struct nfcm_chunk *chunk = container_of(work, struct nfcm_chunk, work);
	struct nfcm_op *op = chunk->op;

	if (nfcm_chunk_free(chunk)) {
		nfcm_mailbox_lock(op->ch->mailbox);
		nfcm_pins_schedule(op);
		nfcm_mailbox_unlock(op->ch->mailbox);
	}
	nfcm_op_release_hold(op);
}

/* May unpinning wait for a page's lock, which its owner can keep? */
static bool may_wait(const struct nfcm_chunk *chunk)
{
	unsigned long i;

	if (chunk->way != DMA_FROM_DEVICE || current->mm == chunk->op->pins.mm)
		return false;
	for (i = 0; i < chunk->npages; i++)
		if (!folio_test_dirty(page_folio(chunk->pages[i])))
			return true;
	return false;
}

/*
 * Free a chunk and release its hold. A caller of another client, or an
 * interrupt's thread, does not wait for this client's memory: a worker does. No
 * locks.
 */
void nfcm_chunk_let_go(struct nfcm_chunk *chunk)
{
	if (may_wait(chunk))
		queue_work(nfcm_slow_wq, &chunk->work);
	else
		chunk_work(&chunk->work);
}

/* The record of the next part. */
static struct nfcm_chunk *chunk_alloc(struct nfcm_op *op, u64 end)
{
	struct nfcm_pins *p = &op->pins;
	u64 size = end - p->pinned;
	struct nfcm_chunk *chunk;

	chunk = kvzalloc(struct_size(chunk, list,
				     most_lists(p->address + p->pinned, size)),
			 GFP_KERNEL_ACCOUNT);
	if (!chunk)
		return NULL;
	chunk->op = op;
	INIT_WORK(&chunk->work, chunk_work);
	chunk->way = p->write ? DMA_FROM_DEVICE : DMA_TO_DEVICE;
	chunk->start = (unsigned long)(p->address + p->pinned);
	chunk->size = size;
	chunk->end = end;
	if (p->region)
		return chunk;
	chunk->npages = DIV_ROUND_UP(offset_in_page(chunk->start) + chunk->size,
				     PAGE_SIZE);
	chunk->pages = kvcalloc(chunk->npages, sizeof(*chunk->pages),
				GFP_KERNEL_ACCOUNT);
	if (!chunk->pages) {
		kvfree(chunk);
		return NULL;
	}
	return chunk;
}

/* Pin the next part; -EAGAIN beyond the limit. It may fault, for ever. */
struct nfcm_chunk *nfcm_chunk_pin(struct nfcm_op *op, u64 end)
{
	struct nfcm_chunk *chunk = chunk_alloc(op, end);
	int rc;

	if (!chunk)
		return ERR_PTR(-ENOMEM);
	rc = nfcm_pool_charge(op, chunk->npages);
	if (rc)
		goto free;
	rc = pin(op, chunk);
	if (rc)
		goto uncharge;
	nfcm_count(dev_of(op), NFCM_COUNT_PINNED,
		   (s64)(chunk->npages << PAGE_SHIFT));
	nfcm_count(dev_of(op), NFCM_COUNT_PINS, 1);
	return chunk;
uncharge:
	nfcm_pool_uncharge(op, chunk->npages);
free:
	chunk_forget(chunk);
	return ERR_PTR(rc);
}

/* The next part of registered memory: its lists are all there is to make. */
static struct nfcm_chunk *region_chunk(struct nfcm_op *op, u64 end)
{
	struct nfcm_chunk *chunk = chunk_alloc(op, end);

	if (!chunk)
		return ERR_PTR(-ENOMEM);
	if (cut_lists(op, chunk)) {
		kvfree(chunk);
		return ERR_PTR(-EIO);
	}
	nfcm_region_sync(op->pins.region, chunk->start, chunk->size, true);
	return chunk;
}

/* Pin and map the next part; -EAGAIN if the limit allows it later. */
struct nfcm_chunk *nfcm_chunk_new(struct nfcm_op *op, u64 end)
{
	struct nfcm_chunk *chunk;
	int rc;

	if (op->pins.region)
		return region_chunk(op, end);
	chunk = nfcm_chunk_pin(op, end);
	if (IS_ERR(chunk))
		return chunk;
	rc = nfcm_chunk_map(op, chunk);
	if (rc) {
		nfcm_chunk_free(chunk);
		return ERR_PTR(rc);
	}
	return chunk;
}
