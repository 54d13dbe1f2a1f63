// SPDX-License-Identifier: GPL-2.0-only
/*
 * Registered memory: pinned and mapped once, and named by a handle. A region has the
 * pages that its addresses named at first. Once some of those addresses are unmapped
 * it is revoked, and its handle names nothing.
 */
#include <linux/capability.h>
#include <linux/mm.h>
#include <linux/mmu_notifier.h>
#include <linux/sched/mm.h>
#include <linux/slab.h>

#include "nfcm_kmod.h"

enum {
	FILE_REGIONS = 1024,
	HANDLE_MAX = (1 << 28) - 1,
};

#define REGION_MAX BIT_ULL(36) /* bytes */

/*
 * A region. References: one of the handle, one of the registering call, and one of
 * each transfer that uses it. They grow under the lock of the handles, and only while
 * it has one. The last one frees it.
 */
struct nfcm_region {
	u32 handle; /* 0: it was revoked, or has none yet */
	refcount_t ref;
	bool ready; /* transfers find it */
	bool write; /* the device may */
	bool charged;
	bool watched; /* notifier is in place */
	bool mapped; /* or about to be: it counts in dev->mapped */
	struct nfcm_file *file;
	struct mm_struct *mm; /* of the process that registered it; held by mm_count */
	u64 start; /* address there; 0 of an import */
	u64 size;
	unsigned long npages; /* that are pinned: of ours, not of an import's */
	struct page **pages;
	struct nfcm_map map;
	struct mmu_interval_notifier notifier;
	struct work_struct release;
};

static struct nfcm_regions *regions_of(struct nfcm_region *r)
{
	return &r->file->regions;
}

/* ---- handles ---- */

/* Nobody finds it any more. True if it had a handle. */
static bool leave(struct nfcm_region *r)
{
	struct nfcm_regions *all = regions_of(r);

	lockdep_assert_held(&all->handles.xa_lock);
	if (!r->handle)
		return false;
	__xa_erase(&all->handles, r->handle);
	r->handle = 0;
	all->count--;
	return true;
}

/*
 * Take a handle, which no other region has, and which is not the last one that was
 * given back. A device that is removed revokes what it finds: look at that afterwards.
 */
static int enter(struct nfcm_region *r, u32 *handle)
{
	struct nfcm_regions *all = regions_of(r);
	int rc = -ENOSPC;

	xa_lock(&all->handles);
	if (all->count < FILE_REGIONS)
		rc = __xa_alloc_cyclic(&all->handles, handle, r,
				       XA_LIMIT(1, HANDLE_MAX), &all->next,
				       GFP_KERNEL_ACCOUNT);
	if (rc >= 0 && all->count == FILE_REGIONS) { /* it dropped the lock */
		__xa_erase(&all->handles, *handle);
		rc = -ENOSPC;
	}
	if (rc >= 0) {
		r->handle = *handle;
		all->count++;
		refcount_inc(&r->ref);
		rc = 0;
	}
	xa_unlock(&all->handles);
	return rc;
}

/* ---- its end ---- */

static void unmap(struct nfcm_region *r)
{
	struct nfcm_dev *dev = r->file->dev;

	if (!r->mapped)
		return;
	nfcm_map_undo(&r->map);
	if (atomic_dec_and_test(&dev->mapped))
		wake_up_var(&dev->mapped);
}

static void unpin(struct nfcm_region *r)
{
	struct nfcm_dev *dev = r->file->dev;

	nfcm_unpin_pages(r->pages, r->npages, r->write);
	nfcm_count(dev, NFCM_COUNT_PINNED, -(s64)(r->npages << PAGE_SHIFT));
}

/* Unmap, unpin and free what was set up. It may wait for a page's lock. */
static void region_free(struct nfcm_region *r)
{
	struct nfcm_file *file = r->file;

	WARN_ON_ONCE(r->handle);
	if (r->watched)
		mmu_interval_notifier_remove(&r->notifier);
	unmap(r);
	if (r->npages)
		unpin(r);
	if (r->charged)
		nfcm_pool_forget(file->user, r->mm, r->npages);
	kvfree(r->pages);
	mmdrop(r->mm);
	kfree(r);
	nfcm_file_live(file, -1);
	nfcm_file_put(file);
}

static void release_work(struct work_struct *work)
{
	region_free(container_of(work, struct nfcm_region, release));
}

/* Release a region, where that must not wait for the client's memory. */
void nfcm_region_done(struct nfcm_region *r)
{
	if (refcount_dec_and_test(&r->ref))
		queue_work(nfcm_slow_wq, &r->release);
}

/* The same for its own client, who finds nothing pinned afterwards. */
static void put_own(struct nfcm_region *r)
{
	if (refcount_dec_and_test(&r->ref))
		region_free(r);
}

/* No transfer finds it; it ends with the last that has it. No locks of ours. */
static void revoke(struct nfcm_region *r)
{
	bool was;

	xa_lock(&regions_of(r)->handles);
	was = leave(r);
	xa_unlock(&regions_of(r)->handles);
	if (was)
		nfcm_region_done(r);
}

/* Some of its addresses are unmapped, or all with their process. */
static bool memory_changes(struct mmu_interval_notifier *notifier,
			   const struct mmu_notifier_range *range,
			   unsigned long seq)
{
	struct nfcm_region *r = container_of(notifier, struct nfcm_region,
					     notifier);

	if (range->event == MMU_NOTIFY_UNMAP ||
	    range->event == MMU_NOTIFY_RELEASE)
		revoke(r);
	return true;
}

static const struct mmu_interval_notifier_ops notifier_ops = {
	.invalidate = memory_changes,
};

/* ---- transfers ---- */

/*
 * The region of a transfer, until nfcm_region_done(), and the place of its first byte
 * as nfcm_region_cut() has it. -ENOENT: there is none, -ERANGE: it has not all bytes,
 * -EACCES: the device may not write to it.
 */
struct nfcm_region *nfcm_region_use(struct nfcm_file *file,
				    const struct nfcomms_op *in, bool write,
				    u64 *address)
{
	struct nfcm_regions *all = &file->regions;
	struct nfcm_region *r;
	int rc = 0;

	xa_lock(&all->handles);
	r = xa_load(&all->handles, in->region);
	if (!r || !r->ready)
		rc = -ENOENT;
	else if (in->offset > r->size || in->length > r->size - in->offset)
		rc = -ERANGE;
	else if (write && !r->write)
		rc = -EACCES;
	else
		refcount_inc(&r->ref);
	xa_unlock(&all->handles);
	if (rc)
		return ERR_PTR(rc);
	*address = r->start + in->offset;
	return r;
}

/* Cut lists of what is from a place on. The caller has a reference. */
bool nfcm_region_cut(const struct nfcm_region *r, struct nfcm_cut *c,
		     u64 address)
{
	return nfcm_map_cut(&r->map, c, address - r->start);
}

/*
 * The device is to see what is there, or the processor what the device wrote.
 */
void nfcm_region_sync(const struct nfcm_region *r, u64 address, u64 length,
		      bool for_device)
{
	nfcm_map_sync(&r->map, address - r->start, length, for_device);
}

/* ---- its beginning ---- */

/* Pin its pages, of which the limit of locked memory must have room for all. */
static int pin(struct nfcm_region *r)
{
	unsigned long start = r->start & PAGE_MASK;
	unsigned long n = PFN_UP(r->start + r->size) - PHYS_PFN(start);
	unsigned long limit = capable(CAP_IPC_LOCK) ?
				      ULONG_MAX :
				      rlimit(RLIMIT_MEMLOCK) >> PAGE_SHIFT;
	int rc;

	/* Charged first: what is not allowed takes no memory for its pages either. */
	rc = nfcm_pool_register(r->file->user, r->mm, limit, n);
	if (rc)
		return rc;
	r->pages = kvcalloc(n, sizeof(*r->pages), GFP_KERNEL_ACCOUNT);
	rc = r->pages ? nfcm_pin_pages(start, n, r->pages,
				       FOLL_LONGTERM |
					       (r->write ? FOLL_WRITE : 0)) :
			-ENOMEM;
	if (rc) {
		nfcm_pool_forget(r->file->user, r->mm, n);
		return rc;
	}
	r->charged = true;
	r->npages = n;
	nfcm_count(r->file->dev, NFCM_COUNT_PINNED, (s64)(n << PAGE_SHIFT));
	return 0;
}

/* Watch its addresses, and pin what they name. */
static int watch_and_pin(struct nfcm_region *r)
{
	unsigned long start = r->start & PAGE_MASK;
	int rc;

	rc = mmu_interval_notifier_insert(&r->notifier, r->mm, start,
					  PAGE_ALIGN(r->start + r->size) - start,
					  &notifier_ops);
	if (rc)
		return rc;
	r->watched = true;
	return pin(r);
}

/* An import pins nothing of ours, and is one of its user's regions. */
static int charge(struct nfcm_region *r)
{
	int rc = nfcm_pool_register(r->file->user, r->mm, ULONG_MAX, 0);

	r->charged = !rc;
	return rc;
}

/*
 * Pin and map. dev->mapped is raised while it has a handle or before that is found
 * out: the removal of a device revokes all regions, and then waits.
 */
static int prepare(struct nfcm_region *r, const struct nfcomms_register *in)
{
	struct nfcm_dev *dev = r->file->dev;
	bool imports = in->flags & NFCOMMS_REGION_DMA_BUF;
	int rc = imports ? charge(r) : watch_and_pin(r);

	if (rc)
		return rc;
	r->mapped = true;
	atomic_inc(&dev->mapped);
	smp_mb__after_atomic(); /* pairs with the wait in nfcm_dev_remove() */
	if (READ_ONCE(dev->removed))
		return -ENODEV;
	return imports ? nfcm_map_import(&r->map, dev, in) :
			 nfcm_map_pages(&r->map, r->pages, r->start,
					r->start + r->size);
}

static struct nfcm_region *region_new(struct nfcm_file *file,
				      const struct nfcomms_register *in)
{
	struct nfcm_region *r = kzalloc(sizeof(*r), GFP_KERNEL_ACCOUNT);

	if (!r)
		return NULL;
	refcount_set(&r->ref, 1);
	INIT_WORK(&r->release, release_work);
	r->write = !(in->flags & NFCOMMS_REGION_READ_ONLY);
	r->mm = current->mm;
	r->start = in->address;
	r->size = in->length;
	mmgrab(r->mm);
	nfcm_file_get(file);
	nfcm_file_live(file, 1);
	r->file = file;
	r->map.dma = &file->dev->pdev->dev;
	r->map.way = r->write ? DMA_BIDIRECTIONAL : DMA_TO_DEVICE;
	return r;
}

/* Transfers may find it, unless it was revoked meanwhile. */
static int publish(struct nfcm_region *r)
{
	int rc = 0;

	xa_lock(&regions_of(r)->handles);
	if (!r->handle)
		rc = READ_ONCE(r->file->dev->removed) ? -ENODEV : -EFAULT;
	else
		r->ready = true;
	xa_unlock(&regions_of(r)->handles);
	return rc;
}

/* NFCOMMS_IOC_REGISTER, whose fields make sense by themselves: the handle. No locks. */
int nfcm_region_register(struct nfcm_file *file, struct nfcomms_register *in)
{
	struct nfcm_region *r;
	int rc;

	if (!in->length || in->length > REGION_MAX)
		return -EINVAL;
	if (!current->mm ||
	    !access_ok((void __user *)(unsigned long)in->address, in->length))
		return -EFAULT;
	r = region_new(file, in);
	if (!r)
		return -ENOMEM;
	rc = enter(r, &in->region);
	if (!rc) {
		rc = prepare(r, in);
		if (!rc)
			rc = publish(r);
		if (rc)
			revoke(r);
	}
	put_own(r);
	return rc;
}

/* NFCOMMS_IOC_UNREGISTER. No locks. */
int nfcm_region_unregister(struct nfcm_file *file, u32 handle)
{
	struct nfcm_regions *all = &file->regions;
	struct nfcm_region *r;
	int rc = 0;

	xa_lock(&all->handles);
	r = xa_load(&all->handles, handle);
	if (!r)
		rc = -ENOENT;
	else if (!r->ready || refcount_read(&r->ref) > 1)
		rc = -EBUSY;
	else
		leave(r);
	xa_unlock(&all->handles);
	if (!rc)
		put_own(r);
	return rc;
}

/* One region less; false if there was none. */
static bool revoke_first(struct nfcm_regions *all)
{
	struct nfcm_region *r;
	unsigned long handle = 0;

	xa_lock(&all->handles);
	r = xa_find(&all->handles, &handle, ULONG_MAX, XA_PRESENT);
	if (r)
		leave(r);
	xa_unlock(&all->handles);
	if (r)
		nfcm_region_done(r);
	return r;
}

/* The file's end: regions end with it, behind the transfers that use them. */
void nfcm_region_revoke_all(struct nfcm_file *file)
{
	while (revoke_first(&file->regions))
		cond_resched();
}

/* Part of making the record of a file. */
void nfcm_region_init(struct nfcm_file *file)
{
	xa_init_flags(&file->regions.handles, XA_FLAGS_ALLOC1);
}
