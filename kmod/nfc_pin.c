// SPDX-License-Identifier: GPL-2.0-only
/*
 * The caller's memory: pinned and mapped for DMA in runs of gather lists, never
 * the whole message at once, and given back only when the device is done with
 * it or fenced.
 */
#include <linux/capability.h>
#include <linux/dma-mapping.h>
#include <linux/mm.h>
#include <linux/overflow.h>
#include <linux/sched/mm.h>
#include <linux/sched/signal.h>
#include <linux/slab.h>

#include "nfc_compat.h"
#include "nfc_kmod.h"
#include "trace.h"

static struct nfc_dev *dev_of(const struct nfc_op *op)
{
	return op->ch->life->dev;
}

/* Lists in one run: a quarter of the device's window. */
static u64 run_lists(const struct nfc_op *op)
{
	enum { RUN_MAX = 64 };

	return clamp_t(u64, op->ch->life->layout.window / 4, 1, RUN_MAX);
}

/*
 * Lists that must be pinned for the device to go on for sure: it acks every
 * half window, and a run is let go whole.
 */
static u64 enough_lists(const struct nfc_op *op)
{
	return run_lists(op) + op->ch->life->layout.window / 2;
}

static u64 pinned_lists(const struct nfc_pins *p)
{
	return p->lists - p->freed;
}

/*
 * Note whose memory it is, in the context of the caller. 0, or why it cannot be
 * the caller's.
 */
int nfc_pins_init(struct nfc_op *op, u64 address, bool write)
{
	struct nfc_pins *p = &op->pins;

	p->cut.size = op->length;
	if (!op->length)
		return 0;
	if (!current->mm || op->length > LONG_MAX ||
	    !access_ok((void __user *)(unsigned long)address, op->length))
		return -EFAULT;
	p->address = address;
	p->write = write;
	p->cut.head = address & (NFC_PAGE_SIZE - 1);
	p->total = nfc_split_lists(&p->cut);
	p->limit = capable(CAP_IPC_LOCK) ? ULONG_MAX :
					   rlimit(RLIMIT_MEMLOCK) >> PAGE_SHIFT;
	p->mm = current->mm;
	mmgrab(p->mm);
	return 0;
}

/* The driver's own operation works on the memory of a caller's. */
void nfc_pins_borrow(struct nfc_op *op, const struct nfc_op *from)
{
	struct nfc_pins *p = &op->pins;
	const struct nfc_pins *f = &from->pins;

	op->length = f->cut.size;
	p->cut = f->cut;
	p->address = f->address;
	p->total = f->total;
	p->limit = f->limit;
	p->mm = f->mm;
	mmgrab(p->mm);
}

/*
 * Let go of the caller's mm. The operation has no chunk any more, and one
 * owner.
 */
void nfc_pins_fini(struct nfc_op *op)
{
	if (op->pins.mm)
		mmdrop(op->pins.mm);
	op->pins.mm = NULL;
}

/* Account for pages; -ENOMEM beyond the limit. */
static int charge(struct nfc_op *op, unsigned long npages)
{
	struct nfc_pins *p = &op->pins;
	unsigned long now = atomic64_add_return(npages, &p->mm->pinned_vm);

	if (now <= p->limit)
		return 0;
	atomic64_sub(npages, &p->mm->pinned_vm);
	return -ENOMEM;
}

static void uncharge(struct nfc_op *op, unsigned long npages)
{
	atomic64_sub(npages, &op->pins.mm->pinned_vm);
}

/* Say how to raise the limit, for whoever reads the log. */
static void hint(struct nfc_op *op)
{
	struct nfc_pins *p = &op->pins;

	op->c.peer_size = (u64)p->limit << PAGE_SHIFT;
	dev_warn_ratelimited(&dev_of(op)->dev,
			     "a transfer of %llu bytes needs more pinned memory than RLIMIT_MEMLOCK allows, %llu bytes: raise it (ulimit -l, LimitMEMLOCK=) or give CAP_IPC_LOCK\n",
			     p->cut.size, op->c.peer_size);
}

static long pin_remote(struct mm_struct *mm, unsigned long start,
		       unsigned long n, unsigned int flags, struct page **pages)
{
	long got;

	if (!mmget_not_zero(mm))
		return -EFAULT;
	mmap_read_lock(mm);
	got = nfc_pin_remote(mm, start, n, flags, pages);
	mmap_read_unlock(mm);
	mmput(mm);
	return got;
}

static void unpin(struct nfc_chunk *chunk, unsigned long n)
{
	if (chunk->way == DMA_FROM_DEVICE)
		unpin_user_pages_dirty_lock(chunk->pages, n, true);
	else
		unpin_user_pages(chunk->pages, n);
}

/* Pin the pages of a chunk from start on: all of them, or none. */
static int pin(struct nfc_op *op, struct nfc_chunk *chunk, unsigned long start)
{
	unsigned int flags = FOLL_LONGTERM;
	struct mm_struct *mm = op->pins.mm;
	unsigned long done = 0;
	long got;

	if (op->pins.write)
		flags |= FOLL_WRITE;
	start &= PAGE_MASK;
	while (done < chunk->npages) {
		unsigned long at = start + (done << PAGE_SHIFT);
		unsigned long n = chunk->npages - done;

		if (mm == current->mm)
			got = pin_user_pages_fast(at, (int)n, flags,
						  chunk->pages + done);
		else
			got = pin_remote(mm, at, n, flags, chunk->pages + done);
		if (got <= 0) {
			unpin(chunk, done);
			return got == -ENOMEM ? -ENOMEM : -EFAULT;
		}
		done += got;
	}
	return 0;
}

/*
 * Cut the mapped segments into device pages. Lists are computed from the
 * caller's address, so each page must lie in its bus page as it lies in memory.
 */
static int cut_pages(struct nfc_chunk *chunk, u64 offset, u64 units)
{
	struct scatterlist *sg;
	u64 n = 0;
	int i;

	for_each_sgtable_dma_sg(&chunk->sgt, sg, i) {
		u64 at = sg_dma_address(sg), left = sg_dma_len(sg);

		while (left) {
			u64 in = at & (NFC_PAGE_SIZE - 1);
			u64 step = min_t(u64, left, NFC_PAGE_SIZE - in);

			if (n == units || in != (n ? 0 : offset))
				return -EIO;
			chunk->bus[n++] = at - in;
			at += step;
			left -= step;
		}
	}
	return n == units ? 0 : -EIO;
}

/*
 * Map a pinned chunk. dev->mapped says so before the life is looked at: whoever
 * ends a life looks at it afterwards.
 */
static int map(struct nfc_op *op, struct nfc_chunk *chunk, unsigned long start,
	       u64 size)
{
	struct nfc_dev *dev = dev_of(op);
	struct device *dma = &dev->pdev->dev;
	unsigned int most;
	u64 units;
	int rc;

	most = min_t(size_t, dma_max_mapping_size(dma), SZ_1M) & PAGE_MASK;
	rc = sg_alloc_table_from_pages_segment(&chunk->sgt, chunk->pages,
					       chunk->npages,
					       offset_in_page(start), size,
					       max_t(unsigned int, most,
						     PAGE_SIZE),
					       GFP_KERNEL_ACCOUNT);
	if (rc)
		return rc;
	atomic_inc(&dev->mapped);
	smp_mb__after_atomic(); /* pairs with the wait in nfc_dev_remove() */
	rc = atomic_read(&op->ch->life->down) ?
		     -ENODEV :
		     dma_map_sgtable(dma, &chunk->sgt, chunk->way, 0);
	if (rc)
		goto free;
	units = DIV_ROUND_UP((start & (NFC_PAGE_SIZE - 1)) + size,
			     (u64)NFC_PAGE_SIZE);
	rc = cut_pages(chunk, start & (NFC_PAGE_SIZE - 1), units);
	if (!rc)
		return 0;
	dma_unmap_sgtable(dma, &chunk->sgt, chunk->way, 0);
free:
	sg_free_table(&chunk->sgt);
	if (atomic_dec_and_test(&dev->mapped))
		wake_up_var(&dev->mapped);
	return rc;
}

/* Unmap, unpin and free. Process context; whoever calls has a hold on the operation. */
void nfc_chunk_free(struct nfc_chunk *chunk)
{
	struct nfc_op *op = chunk->op;
	struct nfc_dev *dev = dev_of(op);

	dma_unmap_sgtable(&dev->pdev->dev, &chunk->sgt, chunk->way, 0);
	if (atomic_dec_and_test(&dev->mapped))
		wake_up_var(&dev->mapped);
	sg_free_table(&chunk->sgt);
	unpin(chunk, chunk->npages);
	uncharge(op, chunk->npages);
	nfc_count(dev, NFC_COUNT_PINNED, -(s64)(chunk->npages << PAGE_SHIFT));
	kvfree(chunk->pages);
	kvfree(chunk);
}

static struct nfc_chunk *chunk_alloc(struct nfc_op *op, u64 lists,
				     unsigned long npages)
{
	struct nfc_chunk *chunk;

	chunk = kvzalloc(struct_size(chunk, bus, lists * NFC_LIST_ENTRIES),
			 GFP_KERNEL_ACCOUNT);
	if (!chunk)
		return NULL;
	chunk->pages = kvcalloc(npages, sizeof(*chunk->pages),
				GFP_KERNEL_ACCOUNT);
	if (!chunk->pages) {
		kvfree(chunk);
		return NULL;
	}
	chunk->op = op;
	chunk->way = op->pins.write ? DMA_FROM_DEVICE : DMA_TO_DEVICE;
	chunk->first = op->pins.lists;
	chunk->lists = lists;
	chunk->npages = npages;
	return chunk;
}

/* Pin and map the next run of lists; -EAGAIN if the limit says: later. */
static struct nfc_chunk *chunk_new(struct nfc_op *op)
{
	struct nfc_pins *p = &op->pins;
	u64 lists = min(run_lists(op), p->total - p->lists);
	u64 from = nfc_split_up_to(&p->cut, p->lists);
	u64 size = nfc_split_up_to(&p->cut, p->lists + lists) - from;
	unsigned long start = (unsigned long)(p->address + from);
	unsigned long npages = DIV_ROUND_UP(offset_in_page(start) + size,
					    PAGE_SIZE);
	struct nfc_chunk *chunk;
	int rc;

	if (charge(op, npages)) {
		if (pinned_lists(p) >= enough_lists(op))
			return ERR_PTR(-EAGAIN);
		hint(op);
		return ERR_PTR(-ENOMEM);
	}
	rc = -ENOMEM;
	chunk = chunk_alloc(op, lists, npages);
	if (!chunk)
		goto uncharge;
	rc = pin(op, chunk, start);
	if (rc)
		goto free;
	rc = map(op, chunk, start, size);
	if (rc)
		goto unpin;
	nfc_count(dev_of(op), NFC_COUNT_PINNED, npages << PAGE_SHIFT);
	return chunk;
unpin:
	unpin(chunk, npages);
free:
	kvfree(chunk->pages);
	kvfree(chunk);
uncharge:
	uncharge(op, npages);
	return ERR_PTR(rc);
}

/* Should the next run be pinned? Must hold box. */
static bool wanted(const struct nfc_op *op)
{
	const struct nfc_pins *p = &op->pins;

	return op->place == NFC_PLACE_HALF && !op->cause && !p->error &&
	       p->lists < p->total &&
	       pinned_lists(p) < op->ch->life->layout.window + run_lists(op);
}

/* See to it that the next run is pinned soon, if there is one. Must hold box. */
void nfc_pins_want(struct nfc_op *op)
{
	if (op->pins.busy || !wanted(op))
		return;
	op->pins.busy = true;
	atomic_inc(&op->holds);
	list_add_tail(&op->pin_node, &op->ch->box->pinning);
}

/* Hand a chunk to the thread that lets go of the box. Must hold box. */
static void trim(struct nfc_op *op, struct nfc_chunk *chunk)
{
	atomic_inc(&op->holds);
	list_move_tail(&chunk->node, &op->ch->box->trimmed);
}

/* The lists below acked were moved: let their memory go. Must hold box. */
void nfc_pins_trim(struct nfc_op *op, u64 acked)
{
	struct nfc_chunk *chunk, *next;

	list_for_each_entry_safe(chunk, next, &op->pins.chunks, node) {
		if (chunk->first + chunk->lists > acked)
			break;
		op->pins.freed = chunk->first + chunk->lists;
		trim(op, chunk);
	}
}

/* The half that an operation with pages works in. */
static struct nfc_half *half_of(struct nfc_op *op)
{
	return &op->ch->half[op->opcode == NFCOMMS_OP_RECEIVE_IND ? NFC_D2H :
								    NFC_H2D];
}

/*
 * Take what nfc_chunk_new() made into use; true if the next run is wanted at
 * once. Must hold box.
 */
static bool take_chunk(struct nfc_op *op, struct nfc_chunk *chunk)
{
	struct nfc_pins *p = &op->pins;
	int rc = PTR_ERR_OR_ZERO(chunk);

	trace_nfcomms_pin(op, p->lists, rc ? 0 : chunk->lists, rc);
	if (!rc)
		INIT_LIST_HEAD(&chunk->node);
	if (op->place == NFC_PLACE_OVER) {
		if (!rc)
			trim(op, chunk);
	} else if (!rc) {
		list_add_tail(&chunk->node, &p->chunks);
		p->lists += chunk->lists;
		nfc_half_push(half_of(op));
	} else if (rc != -EAGAIN && rc != -ENODEV) { /* the fence ends it */
		p->error = rc;
		nfc_half_stop(half_of(op),
			      rc == -ENOMEM ? NFC_ENOMEM : NFC_EINVAL, -rc);
		nfc_half_push(half_of(op));
	}
	p->busy = !rc && wanted(op);
	return p->busy;
}

/* Pin for an operation as long as it wants. It has busy, and a hold. No locks. */
void nfc_pins_run(struct nfc_op *op)
{
	struct nfc_box *box = op->ch->box;
	struct nfc_chunk *chunk;
	bool again;

	do {
		chunk = chunk_new(op);
		nfc_box_lock(box);
		again = take_chunk(op, chunk);
		nfc_box_unlock(box);
		cond_resched(); /* the device may take lists as fast as they come */
	} while (again);
	nfc_op_release_hold(op);
}

/* Pin the first run of an operation that was not started yet. */
int nfc_pins_first(struct nfc_op *op)
{
	struct nfc_chunk *chunk = chunk_new(op);

	if (IS_ERR(chunk))
		return PTR_ERR(chunk);
	list_add_tail(&chunk->node, &op->pins.chunks);
	op->pins.lists = chunk->lists;
	return 0;
}

/* Give everything back: the operation has ended. No locks. */
void nfc_pins_release(struct nfc_op *op)
{
	struct nfc_chunk *chunk, *next;

	list_for_each_entry_safe(chunk, next, &op->pins.chunks, node) {
		list_del(&chunk->node);
		nfc_chunk_free(chunk);
	}
}

/* Bus addresses of the device pages of a list that is pinned. Must hold box. */
const u64 *nfc_pins_bus(struct nfc_pins *p, u64 list)
{
	struct nfc_chunk *chunk;

	/* Lists are asked for near the end: look from there. */
	list_for_each_entry_reverse(chunk, &p->chunks, node)
		if (chunk->first <= list)
			return chunk->bus +
			       (list - chunk->first) * NFC_LIST_ENTRIES;
	WARN_ON_ONCE(1);
	return NULL;
}
