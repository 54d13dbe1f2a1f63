// SPDX-License-Identifier: GPL-2.0-only
/*
 * Registered memory: pinned and mapped once, and found by its address. A region
 * stands for what its addresses name. The kernel tells when that changes, and a
 * region whose pages are not those any more is revoked: transfers do without it.
 */
#include <linux/bitmap.h>
#include <linux/capability.h>
#include <linux/mm.h>
#include <linux/mmu_notifier.h>
#include <linux/rbtree.h>
#include <linux/sched/mm.h>
#include <linux/slab.h>

#include "nfcm_kmod.h"

enum {
	FILE_REGIONS = 1024,
	COMPARED = 32, /* pages at a time */
};

#define REGION_MAX BIT_ULL(36) /* bytes */

/* Bytes of a process. Those of two regions do not overlap. */
struct span {
	struct mm_struct *mm;
	u64 start, end;
};

/*
 * A region. References: one of the tree, one of the registering call, and one
 * of each transfer that uses it. They grow under the file's lock, and only
 * while it is in the tree. The last one frees it.
 */
struct nfcm_region {
	struct rb_node node; /* file->regions.tree; empty once it is revoked */
	refcount_t ref;
	bool ready; /* transfers find it */
	bool write; /* the device may */
	bool charged;
	bool watched; /* notifier is in place */
	bool mapped; /* or about to be: it counts in dev->mapped */
	struct nfcm_file *file;
	struct span span; /* with a reference to mm by mm_count */
	unsigned long npages; /* that are pinned: of ours, not of an import's */
	struct page **pages;
	struct nfcm_map map;
	struct mmu_interval_notifier notifier;
	unsigned long *stale; /* a bit a page: its address may name another; under the lock */
	struct work_struct check; /* whether pages are gone */
	struct work_struct release;
};

static struct nfcm_regions *regions_of(struct nfcm_region *r)
{
	return &r->file->regions;
}

/* ---- the tree ---- */

/* Where a span is beside a region's: 0 if they overlap. */
static int compare(const void *key, const struct rb_node *node)
{
	const struct nfcm_region *r = rb_entry(node, struct nfcm_region, node);
	const struct span *a = key, *b = &r->span;

	if (a->mm != b->mm)
		return a->mm < b->mm ? -1 : 1;
	if (a->end <= b->start)
		return -1;
	return a->start >= b->end;
}

static int compare_nodes(struct rb_node *node, const struct rb_node *other)
{
	return compare(&rb_entry(node, struct nfcm_region, node)->span, other);
}

/* A region that has some of a span, NULL if none has. */
static struct nfcm_region *find(struct nfcm_regions *all, const struct span *s)
{
	struct rb_node *node;

	lockdep_assert_held(&all->lock);
	node = rb_find(s, &all->tree, compare);
	return node ? rb_entry(node, struct nfcm_region, node) : NULL;
}

/* Take a place in the tree: -EEXIST where others have bytes of it. */
static int enter(struct nfcm_region *r)
{
	struct nfcm_regions *all = regions_of(r);
	int rc = 0;

	spin_lock(&all->lock);
	if (READ_ONCE(r->file->dev->removed))
		rc = -ENODEV;
	else if (all->count == FILE_REGIONS)
		rc = -ENOSPC;
	else if (rb_find_add(&r->node, &all->tree, compare_nodes))
		rc = -EEXIST;
	else
		all->count++;
	if (rc)
		RB_CLEAR_NODE(&r->node);
	else
		refcount_inc(&r->ref);
	spin_unlock(&all->lock);
	return rc;
}

/* Nobody finds it any more. True if it was in the tree. */
static bool leave(struct nfcm_region *r)
{
	struct nfcm_regions *all = regions_of(r);

	lockdep_assert_held(&all->lock);
	if (RB_EMPTY_NODE(&r->node))
		return false;
	rb_erase(&r->node, &all->tree);
	RB_CLEAR_NODE(&r->node);
	all->count--;
	return true;
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

/* Unmap, unpin and free, as far as it came. It may wait for a page's lock. */
static void region_free(struct nfcm_region *r)
{
	struct nfcm_file *file = r->file;

	WARN_ON_ONCE(!RB_EMPTY_NODE(&r->node));
	if (r->watched)
		mmu_interval_notifier_remove(&r->notifier);
	cancel_work_sync(&r->check);
	unmap(r);
	if (r->npages)
		unpin(r);
	if (r->charged)
		nfcm_pool_forget(file->user, r->span.mm, r->npages);
	kvfree(r->stale);
	kvfree(r->pages);
	mmdrop(r->span.mm);
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

/* Transfers do without it; it ends with the last that has it. No locks of ours. */
static void revoke(struct nfcm_region *r)
{
	bool was;

	spin_lock(&regions_of(r)->lock);
	was = leave(r);
	spin_unlock(&regions_of(r)->lock);
	if (was)
		nfcm_region_done(r);
}

/* ---- what its addresses name ---- */

/* Is a page that was pinned out of its file, or nobody's memory any more? */
static bool is_gone(struct page *page)
{
	struct folio *folio = page_folio(page);

	if (folio_test_anon(folio))
		return !folio_mapped(folio);
	return !READ_ONCE(folio->mapping);
}

/* Something of it was unmapped: if the page went too nobody needs the region. */
static void check_work(struct work_struct *work)
{
	struct nfcm_region *r = container_of(work, struct nfcm_region, check);
	unsigned long i;

	mmu_interval_read_begin(&r->notifier); /* until it is over */
	for (i = 0; i < r->npages; i++) {
		if (is_gone(r->pages[i])) {
			revoke(r);
			return;
		}
		cond_resched();
	}
}

/* The page that has an address of the region's. */
static unsigned long index_of(const struct nfcm_region *r, u64 address)
{
	return PHYS_PFN(address) - PHYS_PFN(r->span.start);
}

/* Mark pages whose addresses may name other memory now. */
static void make_stale(struct nfcm_region *r, u64 start, u64 end)
{
	unsigned long first = index_of(r, max(start, r->span.start));
	unsigned long last = index_of(r, min(end, r->span.end) - 1);

	lockdep_assert_held(&regions_of(r)->lock);
	bitmap_set(r->stale, first, last - first + 1);
}

/* The kernel changes what some of the addresses name, or what may be done there. */
static bool memory_changes(struct mmu_interval_notifier *notifier,
			   const struct mmu_notifier_range *range,
			   unsigned long seq)
{
	struct nfcm_region *r = container_of(notifier, struct nfcm_region,
					     notifier);

	if (range->event == MMU_NOTIFY_UNMAP ||
	    range->event == MMU_NOTIFY_RELEASE) {
		revoke(r);
		return true;
	}
	spin_lock(&regions_of(r)->lock);
	mmu_interval_set_seq(notifier, seq);
	if (r->stale) /* else an import: the addresses are its name */
		make_stale(r, range->start, range->end);
	if (range->event == MMU_NOTIFY_CLEAR && r->ready && r->stale)
		queue_work(nfcm_slow_wq, &r->check);
	spin_unlock(&regions_of(r)->lock);
	return true;
}

static const struct mmu_interval_notifier_ops notifier_ops = {
	.invalidate = memory_changes,
};

/*
 * Pages that may be others, from *first on and below end, at most so many as are
 * compared at a time: how many, and *first of them.
 */
static unsigned long next_stale(struct nfcm_region *r, unsigned long *first,
				unsigned long end)
{
	unsigned long last;

	spin_lock(&regions_of(r)->lock);
	*first = find_next_bit(r->stale, end, *first);
	last = find_next_zero_bit(r->stale, min(end, *first + COMPARED), *first);
	spin_unlock(&regions_of(r)->lock);
	return last - *first;
}

/* Do the addresses of these pages still name them? In the owner's context. */
static bool same_pages(struct nfcm_region *r, unsigned long i, unsigned long end)
{
	unsigned long at = r->span.start & PAGE_MASK, k, n;
	struct page *now[COMPARED];
	bool same = true;

	while (same && (n = next_stale(r, &i, end))) {
		if (nfcm_pin_pages(at + (i << PAGE_SHIFT), n, now,
				   r->write ? FOLL_WRITE : 0))
			return false;
		for (k = 0; k < n; k++)
			same &= now[k] == r->pages[i + k];
		unpin_user_pages(now, n);
		i += n;
		cond_resched();
	}
	return same;
}

/*
 * Something was changed since it was last known that the addresses of a transfer name
 * these pages: compare. False if they do not. In the owner's context; it has a reference.
 */
static bool compare_pages(struct nfcm_region *r, const struct span *s)
{
	unsigned long first = index_of(r, s->start);
	unsigned long end = index_of(r, s->end - 1) + 1, seq;
	bool again;

	do {
		seq = mmu_interval_read_begin(&r->notifier);
		if (!same_pages(r, first, end))
			return false;
		spin_lock(&regions_of(r)->lock);
		again = mmu_interval_read_retry(&r->notifier, seq);
		if (!again)
			bitmap_clear(r->stale, first, end - first);
		spin_unlock(&regions_of(r)->lock);
	} while (again);
	return true;
}

/* Are some of these pages stale? */
static bool any_stale(const struct nfcm_region *r, const struct span *s)
{
	unsigned long end = index_of(r, s->end - 1) + 1;

	return r->stale &&
	       find_next_bit(r->stale, end, index_of(r, s->start)) < end;
}

/* ---- transfers ---- */

/*
 * The region of the caller's memory that has all bytes of a transfer, until
 * nfcm_region_done(); NULL if none has. In the caller's context.
 */
struct nfcm_region *nfcm_region_use(struct nfcm_file *file, u64 address,
				    u64 length, bool write)
{
	struct nfcm_regions *all = &file->regions;
	struct span s = { current->mm, address, address + length };
	struct nfcm_region *r;
	bool changed = false;

	if (RB_EMPTY_ROOT(&all->tree))
		return NULL;
	spin_lock(&all->lock);
	r = find(all, &s);
	if (r && (!r->ready || s.start < r->span.start || s.end > r->span.end ||
		  (write && !r->write)))
		r = NULL;
	if (r) {
		refcount_inc(&r->ref);
		changed = any_stale(r, &s);
	}
	spin_unlock(&all->lock);
	if (!changed || compare_pages(r, &s))
		return r;
	revoke(r);
	nfcm_region_done(r);
	return NULL;
}

/* Cut lists of what is from an address on. The caller has a reference. */
bool nfcm_region_cut(const struct nfcm_region *r, struct nfcm_cut *c,
		     u64 address)
{
	return nfcm_map_cut(&r->map, c, address - r->span.start);
}

/*
 * The device is to see what is there, or the processor what the device wrote.
 */
void nfcm_region_sync(const struct nfcm_region *r, u64 address, u64 length,
		      bool for_device)
{
	nfcm_map_sync(&r->map, address - r->span.start, length, for_device);
}

/* ---- its beginning ---- */

/* Note from now on what becomes of so many pages, which are not pinned yet. */
static int watch_pages(struct nfcm_region *r, unsigned long n)
{
	unsigned long *stale = kvcalloc(BITS_TO_LONGS(n), sizeof(*stale),
					GFP_KERNEL_ACCOUNT);

	if (!r->pages || !stale) {
		kvfree(stale);
		return -ENOMEM;
	}
	spin_lock(&regions_of(r)->lock);
	r->stale = stale;
	spin_unlock(&regions_of(r)->lock);
	mmu_interval_read_begin(&r->notifier); /* until what began before is over */
	return 0;
}

/* Pin its pages, of which the limit of locked memory must have room for all. */
static int pin(struct nfcm_region *r)
{
	unsigned long start = r->span.start & PAGE_MASK;
	unsigned long n = PFN_UP(r->span.end) - PHYS_PFN(start);
	unsigned long limit = capable(CAP_IPC_LOCK) ?
				      ULONG_MAX :
				      rlimit(RLIMIT_MEMLOCK) >> PAGE_SHIFT;
	int rc;

	/* Charged first: what is not allowed takes no memory for its pages either. */
	rc = nfcm_pool_register(r->file->user, r->span.mm, limit, n);
	if (rc)
		return rc;
	r->pages = kvcalloc(n, sizeof(*r->pages), GFP_KERNEL_ACCOUNT);
	rc = watch_pages(r, n);
	if (!rc)
		rc = nfcm_pin_pages(start, n, r->pages,
				    FOLL_LONGTERM | (r->write ? FOLL_WRITE : 0));
	if (rc) {
		nfcm_pool_forget(r->file->user, r->span.mm, n);
		return rc;
	}
	r->charged = true;
	r->npages = n;
	nfcm_count(r->file->dev, NFCM_COUNT_PINNED, (s64)(n << PAGE_SHIFT));
	return 0;
}

/* An import pins nothing of ours, and is one of its user's regions. */
static int charge(struct nfcm_region *r)
{
	int rc = nfcm_pool_register(r->file->user, r->span.mm, ULONG_MAX, 0);

	r->charged = !rc;
	return rc;
}

/*
 * Pin and map. dev->mapped is raised while it is in the tree or before that is
 * found out: the removal of a device revokes all regions, and then waits.
 */
static int prepare(struct nfcm_region *r, const struct nfcomms_register *in)
{
	struct nfcm_dev *dev = r->file->dev;
	bool imports = in->flags & NFCOMMS_REGION_DMA_BUF;
	unsigned long start = r->span.start & PAGE_MASK;
	int rc;

	rc = mmu_interval_notifier_insert(&r->notifier, r->span.mm, start,
					  PAGE_ALIGN(r->span.end) - start,
					  &notifier_ops);
	if (rc)
		return rc;
	r->watched = true;
	rc = imports ? charge(r) : pin(r);
	if (rc)
		return rc;
	r->mapped = true;
	atomic_inc(&dev->mapped);
	smp_mb__after_atomic(); /* pairs with the wait in nfcm_dev_remove() */
	if (READ_ONCE(dev->removed))
		return -ENODEV;
	return imports ? nfcm_map_import(&r->map, in) :
			 nfcm_map_pages(&r->map, r->pages, r->span.start,
					r->span.end);
}

static struct nfcm_region *region_new(struct nfcm_file *file,
				      const struct nfcomms_register *in)
{
	struct nfcm_region *r = kzalloc(sizeof(*r), GFP_KERNEL_ACCOUNT);

	if (!r)
		return NULL;
	refcount_set(&r->ref, 1);
	RB_CLEAR_NODE(&r->node);
	INIT_WORK(&r->check, check_work);
	INIT_WORK(&r->release, release_work);
	r->write = !(in->flags & NFCOMMS_REGION_READ_ONLY);
	r->span.mm = current->mm;
	r->span.start = in->address;
	r->span.end = in->address + in->length;
	mmgrab(r->span.mm);
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

	spin_lock(&regions_of(r)->lock);
	if (RB_EMPTY_NODE(&r->node))
		rc = READ_ONCE(r->file->dev->removed) ? -ENODEV : -EFAULT;
	else
		r->ready = true;
	spin_unlock(&regions_of(r)->lock);
	return rc;
}

/* NFCOMMS_IOC_REGISTER, whose fields make sense by themselves. No locks. */
int nfcm_region_register(struct nfcm_file *file,
			 const struct nfcomms_register *in)
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
	rc = enter(r);
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

/* NFCOMMS_IOC_UNREGISTER: the region that begins there. No locks. */
int nfcm_region_unregister(struct nfcm_file *file, u64 address)
{
	struct span s = { current->mm, address, address + 1 };
	struct nfcm_regions *all = &file->regions;
	struct nfcm_region *r;
	int rc = 0;

	spin_lock(&all->lock);
	r = find(all, &s);
	if (!r || r->span.start != address)
		rc = -ENOENT;
	else if (refcount_read(&r->ref) > 1)
		rc = -EBUSY;
	else
		leave(r);
	spin_unlock(&all->lock);
	if (!rc)
		put_own(r);
	return rc;
}

/* One region less; false if there was none. */
static bool revoke_first(struct nfcm_regions *all)
{
	struct nfcm_region *r;

	spin_lock(&all->lock);
	r = rb_entry_safe(rb_first(&all->tree), struct nfcm_region, node);
	if (r)
		leave(r);
	spin_unlock(&all->lock);
	if (r)
		nfcm_region_done(r);
	return r;
}

/* The file's end: regions go with it, behind the transfers that use them. */
void nfcm_region_revoke_all(struct nfcm_file *file)
{
	while (revoke_first(&file->regions))
		cond_resched();
}

/* Part of making the record of a file. */
void nfcm_region_init(struct nfcm_file *file)
{
	spin_lock_init(&file->regions.lock);
	file->regions.tree = RB_ROOT;
}
