/* SPDX-License-Identifier: GPL-2.0-only */
/* The clients' memory: part of nfcm_kmod.h, which lists the callers. */
#ifndef NFCM_MEMORY_H
#define NFCM_MEMORY_H

#include <linux/dma-direction.h>
#include <linux/list.h>
#include <linux/mutex.h>
#include <linux/scatterlist.h>
#include <linux/spinlock.h>
#include <linux/uidgid.h>
#include <linux/workqueue.h>
#include <linux/xarray.h>

#include "nfcm_core.h"
#include "uapi/nfcomms.h"

enum {
	NFCM_PART_MAX = SZ_2M, /* a huge page */
};

struct dma_buf;
struct dma_buf_attachment;
struct nfcm_dev;
struct nfcm_file;
struct nfcm_op;
struct nfcm_region;

/* A part of the memory of one transfer, pinned and mapped. */
struct nfcm_chunk {
	struct list_head node; /* in pins.chunks, or in mailbox->trimmed */
	struct nfcm_op *op; /* the chunk counts as one of its holds */
	struct sg_table sgt;
	enum dma_data_direction way;
	bool mapped; /* sgt and list are valid */
	struct work_struct work; /* frees it */
	unsigned long start; /* in the caller's memory */
	u64 size;
	u64 end; /* bytes of the transfer up to its end */
	unsigned long npages;
	struct page **pages;
	struct nfcm_cut cut;
	struct nfc_gather list[];
};

/*
 * The memory of a transfer. The mailbox guards chunks, pinned, lists, freed, busy
 * and error until the operation has ended; from then on they belong to the thread
 * that finishes it.
 */
struct nfcm_pins {
	struct nfcm_region *region; /* that has all of it; then there is no mm */
	struct mm_struct *mm; /* held by mm_count */
	unsigned long limit; /* pages that mm may pin in all; ULONG_MAX: any */
	u64 size; /* bytes of the transfer */
	u64 address;
	bool write; /* the device writes */
	bool busy; /* a thread pins the next chunk */
	int error;
	u64 pinned; /* bytes from the start on that are, or were … */
	u64 freed; /* … and of those that are unpinned again */
	u64 lists; /* of what is pinned: lists below this may be sent */
	struct list_head chunks; /* in order of their lists */
	struct work_struct work;
	struct task_struct *pin_task; /* pins itself when it unlocks the mailbox */
	/* The rest is for nfcm_pool.c, under its lock. */
	struct nfcm_user *user; /* whose workers and memory it shares */
	struct list_head node; /* in file->pinning, in user->lacking, or given to a worker */
	struct list_head holder; /* in user->holders */
	struct delayed_work timer; /* while it lacks */
	struct task_struct *worker; /* that pins for it */
	u8 pool; /* enum nfcm_pool_place */
	bool ended;
	bool refused; /* pages, since some were given back */
	unsigned long used; /* pages pinned */
	unsigned long charged; /* to mm->pinned_vm … */
	unsigned long floor; /* … and at least, until it has ended */
};

/* The resource that an operation that needs pages waits for. */
enum nfcm_pool_place {
	NFCM_POOL_NOTHING,
	NFCM_POOL_WAITS, /* a worker */
	NFCM_POOL_SERVED, /* it has one, which will run */
	NFCM_POOL_LACKS, /* locked memory of its own process */
};

/* State that the open files of a user share. */
struct nfcm_user {
	struct list_head node;
	kuid_t uid;
	u32 files;
	u32 workers; /* that pin for it now */
	u32 regions;
	struct list_head ready; /* files with operations that need a worker */
	struct list_head lacking; /* operations that wait for locked memory … */
	struct list_head holders; /* … and those that have some */
	unsigned long moved; /* when some was given back, in jiffies */
	u32 losses; /* epochs that were lost beside its processes … */
	unsigned long lost_at; /* … since then, in jiffies */
	u64 loss; /* the last of them */
};

/* A dma-buf that is mapped for a device one way, for the regions that import it. */
struct nfcm_import {
	struct list_head node; /* in dev->imports, while there are references */
	u32 refs; /* under dev->imports_lock, as node */
	struct nfcm_dev *dev;
	struct dma_buf *buffer;
	enum dma_data_direction way;
	struct mutex lock; /* guards the rest; it stays while there are regions */
	u32 regions;
	struct dma_buf_attachment *attachment;
	struct sg_table *sgt;
};

struct nfcm_piece;

/* Registered memory as a device reaches it. */
struct nfcm_map {
	struct device *dma;
	enum dma_data_direction way;
	bool sync; /* the device reads and writes copies */
	struct nfcm_import *import; /* or pages, … */
	struct sg_table *part; /* … in so many mappings */
	u32 parts;
	struct nfcm_piece *piece; /* in the order of its bytes */
	u32 pieces;
};

/* The registered memory of a file. */
struct nfcm_regions {
	struct xarray handles; /* its lock guards the rest, and of each region that it is here */
	u32 next; /* handle to try */
	u32 count;
};

/* ---- nfcm_chunk.c, nfcm_pin.c ---- */

struct nfcm_chunk *nfcm_chunk_pin(struct nfcm_op *op, u64 end);
struct nfcm_chunk *nfcm_chunk_new(struct nfcm_op *op, u64 end);
int nfcm_chunk_map(struct nfcm_op *op, struct nfcm_chunk *chunk);
bool nfcm_chunk_free(struct nfcm_chunk *chunk);
int nfcm_pins_init(struct nfcm_op *op, const struct nfcomms_op *in, bool write);
void nfcm_pins_take_over(struct nfcm_op *op, struct nfcm_op *from);
void nfcm_pins_schedule(struct nfcm_op *op);
int nfcm_pins_all(struct nfcm_op *op);
void nfcm_pins_work(struct work_struct *work);
void nfcm_pins_deny(struct nfcm_op *op);
unsigned long nfcm_pins_need(const struct nfcm_op *op);
bool nfcm_pins_spare(const struct nfcm_op *op);
void nfcm_pins_trim(struct nfcm_op *op, u64 acked);
void nfcm_pins_release(struct nfcm_op *op);
void nfcm_pins_done(struct nfcm_op *op);
void nfcm_pins_fini(struct nfcm_op *op);
int nfcm_pin_pages(unsigned long start, unsigned long count,
		   struct page **pages, unsigned int flags);
void nfcm_unpin_pages(struct page **pages, unsigned long count, bool dirty);
const struct nfc_gather *nfcm_pins_list(const struct nfcm_op *op, u64 k,
					u32 *length);

/* ---- nfcm_user.c ---- */

struct nfcm_user *nfcm_user_get(kuid_t uid);
void nfcm_user_put(struct nfcm_user *user);
void nfcm_user_blame(struct nfcm_user *user, u64 loss);
bool nfcm_user_may_start(struct nfcm_user *user);

/* ---- nfcm_pool.c ---- */

int nfcm_pool_admit(struct nfcm_op *op);
int nfcm_pool_queue(struct nfcm_op *op);
int nfcm_pool_charge(struct nfcm_op *op, unsigned long pages);
bool nfcm_pool_refused(struct nfcm_op *op);
bool nfcm_pool_uncharge(struct nfcm_op *op, unsigned long pages);
void nfcm_pool_leave(struct nfcm_op *op);
bool nfcm_pool_begin(struct nfcm_op *op);
void nfcm_pool_end(struct nfcm_op *op);
void nfcm_pool_timer(struct work_struct *work);
int nfcm_pool_register(struct nfcm_user *user, struct mm_struct *mm,
		       unsigned long limit, unsigned long pages);
void nfcm_pool_forget(struct nfcm_user *user, struct mm_struct *mm,
		      unsigned long pages);

/* ---- nfcm_worker.c ---- */

void nfcm_worker_give(struct nfcm_op *op);
bool nfcm_worker_take_back(struct nfcm_op *op);

/* ---- nfcm_region.c, nfcm_map.c, nfcm_import.c ---- */

void nfcm_region_init(struct nfcm_file *file);
int nfcm_region_register(struct nfcm_file *file, struct nfcomms_register *in);
int nfcm_region_unregister(struct nfcm_file *file, u32 handle);
void nfcm_region_revoke_all(struct nfcm_file *file);
struct nfcm_region *nfcm_region_use(struct nfcm_file *file,
				    const struct nfcomms_op *in, bool write,
				    u64 *address);
void nfcm_region_done(struct nfcm_region *r);
bool nfcm_region_cut(const struct nfcm_region *r, struct nfcm_cut *c,
		     u64 address);
void nfcm_region_sync(const struct nfcm_region *r, u64 address, u64 length,
		      bool for_device);
int nfcm_map_table(struct device *dma, struct sg_table *sgt, struct page **pages,
		   unsigned long npages, unsigned long start, u64 size);
int nfcm_map_dma(struct device *dma, struct sg_table *sgt,
		 enum dma_data_direction way);
void nfcm_unmap_dma(struct device *dma, struct sg_table *sgt,
		    enum dma_data_direction way);
int nfcm_map_pages(struct nfcm_map *m, struct page **pages, u64 start, u64 end);
int nfcm_map_import(struct nfcm_map *m, struct nfcm_dev *dev,
		    const struct nfcomms_register *in);
void nfcm_map_undo(struct nfcm_map *m);
bool nfcm_map_cut(const struct nfcm_map *m, struct nfcm_cut *c, u64 at);
void nfcm_map_sync(const struct nfcm_map *m, u64 at, u64 length,
		   bool for_device);
struct nfcm_import *nfcm_import_open(struct nfcm_dev *dev,
				     const struct nfcomms_register *in,
				     enum dma_data_direction way);
void nfcm_import_close(struct nfcm_import *import);

#endif /* NFCM_MEMORY_H */
