// SPDX-License-Identifier: GPL-2.0-only
/*
 * The caller's memory: pinned and mapped for DMA in parts, never the whole message
 * at once, and given back only when the device is done with it or fenced.
 */
#include <linux/capability.h>
#include <linux/dma-mapping.h>
#include <linux/kthread.h>
#include <linux/memcontrol.h>
#include <linux/mm.h>
#include <linux/overflow.h>
#include <linux/sched/mm.h>
#include <linux/sched/signal.h>
#include <linux/slab.h>

#include "nfcm_kmod.h"
#include "trace.h"

static struct nfcm_dev *dev_of(const struct nfcm_op *op)
{
	return op->ch->epoch->dev;
}

/* Bytes of the device's window, in lists of full pages. */
static u64 window_bytes(const struct nfcm_op *op)
{
	return (u64)op->ch->epoch->layout.window * NFC_LIST_ENTRIES *
	       NFC_PAGE_SIZE;
}

/*
 * Bytes in one part, a power of two, at most a quarter of the device's window.
 * The limit of locked memory has room for two beside the half window that the
 * device needs.
 */
static u64 part_bytes(const struct nfcm_op *op)
{
	u64 window = window_bytes(op);
	u64 part = clamp_t(u64, rounddown_pow_of_two(window / 4), PAGE_SIZE,
			   NFCM_PART_MAX);

	while (part > PAGE_SIZE &&
	       (window / 2 + 2 * part) >> PAGE_SHIFT > op->pins.limit)
		part /= 2;
	return part;
}

/*
 * Bytes that must be pinned for the device to continue for sure: it acks every
 * half window, and a part is released whole.
 */
static u64 enough_bytes(const struct nfcm_op *op)
{
	return max_t(u64, part_bytes(op) + window_bytes(op) / 2,
		     NFC_EAGER_BYTES);
}

/* Bytes that are pinned at once at most. */
static u64 most_bytes(const struct nfcm_op *op)
{
	return part_bytes(op) + window_bytes(op);
}

/*
 * Bytes of the transfer up to the end of its next part. Parts end where a multiple of
 * their size does in the caller's memory, so that a huge page is one.
 */
static u64 part_end(const struct nfcm_op *op)
{
	const struct nfcm_pins *p = &op->pins;
	u64 at = p->address + p->pinned, part = part_bytes(op);

	if (p->size <= NFC_EAGER_BYTES || p->size - p->pinned <= part)
		return p->size;
	return (at & ~(part - 1)) + part - p->address;
}

/* Cut the first part of registered memory: most transfers have no other. */
static int region_first(struct nfcm_op *op)
{
	struct nfcm_pins *p = &op->pins;
	struct nfcm_chunk *chunk;

	p->limit = ULONG_MAX;
	chunk = nfcm_chunk_new(op, part_end(op));
	if (chunk == ERR_PTR(-ENODEV)) /* the epoch's end is what it reports */
		return 0;
	if (IS_ERR(chunk))
		return PTR_ERR(chunk);
	list_add_tail(&chunk->node, &p->chunks);
	p->lists = chunk->cut.lists;
	p->pinned = chunk->end;
	return 0;
}

/*
 * Note whose memory it is, in the context of the caller. 0, or why it cannot be
 * the caller's.
 */
int nfcm_pins_init(struct nfcm_op *op, const struct nfcomms_op *in, bool write)
{
	struct nfcm_pins *p = &op->pins;
	struct nfcm_region *r;

	p->size = op->length;
	p->write = write;
	if (!op->length)
		return 0;
	if (in->region) {
		r = nfcm_region_use(op->file, in, write, &p->address);
		if (IS_ERR(r))
			return PTR_ERR(r);
		p->region = r;
		return region_first(op);
	}
	if (!current->mm || op->length > LONG_MAX ||
	    !access_ok((void __user *)(unsigned long)in->address, op->length))
		return -EFAULT;
	p->address = in->address;
	p->limit = capable(CAP_IPC_LOCK) ? ULONG_MAX :
					   rlimit(RLIMIT_MEMLOCK) >> PAGE_SHIFT;
	p->user = op->file->user;
	p->mm = current->mm;
	mmgrab(p->mm);
	return 0;
}

/* The driver's own operation takes over what was pinned for a caller's. */
void nfcm_pins_take_over(struct nfcm_op *op, struct nfcm_op *from)
{
	struct nfcm_pins *p = &op->pins;
	struct nfcm_chunk *chunk;

	op->length = from->pins.size;
	p->size = from->pins.size;
	p->address = from->pins.address;
	p->pinned = from->pins.pinned;
	p->lists = from->pins.lists;
	p->user = from->pins.user;
	p->used = from->pins.used;
	p->charged = from->pins.charged;
	from->pins.used = 0;
	from->pins.charged = 0;
	p->mm = from->pins.mm;
	mmgrab(p->mm);
	list_splice_init(&from->pins.chunks, &p->chunks);
	list_for_each_entry(chunk, &p->chunks, node)
		chunk->op = op;
}

/*
 * Release the caller's mm. The operation has no chunk any more, and one
 * owner.
 */
void nfcm_pins_fini(struct nfcm_op *op)
{
	if (op->pins.mm)
		mmdrop(op->pins.mm);
	op->pins.mm = NULL;
}

/* Nothing of the operation's memory is in use any more. */
void nfcm_pins_done(struct nfcm_op *op)
{
	if (op->pins.region)
		nfcm_region_done(op->pins.region);
	op->pins.region = NULL;
}

/* Pages that must be allowed at once for the transfer to get on for sure. */
unsigned long nfcm_pins_need(const struct nfcm_op *op)
{
	u64 bytes = min(enough_bytes(op), op->pins.size);

	return DIV_ROUND_UP(bytes + offset_in_page(op->pins.address), PAGE_SIZE);
}

/* Has its process locked memory beside what its largest transfer needs? A hint. */
bool nfcm_pins_spare(const struct nfcm_op *op)
{
	unsigned long rest = nfcm_pins_need(op) + PHYS_PFN(enough_bytes(op)) + 1;
	const struct nfcm_pins *p = &op->pins;

	return !p->mm || (rest <= p->limit &&
			  atomic64_read(&p->mm->pinned_vm) <= p->limit - rest);
}

/* Log how to raise the limit. */
static void hint(struct nfcm_op *op)
{
	struct nfcm_pins *p = &op->pins;

	op->c.limit = (u64)p->limit << PAGE_SHIFT;
	dev_warn_ratelimited(&dev_of(op)->dev,
			     "a transfer of %llu bytes needs more pinned memory than RLIMIT_MEMLOCK allows, %llu bytes: raise it (ulimit -l, LimitMEMLOCK=) or give CAP_IPC_LOCK\n",
			     p->size, op->c.limit);
}

/* Beyond the limit there is no more. */
static int over_limit(struct nfcm_op *op)
{
	hint(op);
	return -ENOMEM;
}

/* Should the next part be pinned? */
static bool more_pages_needed(const struct nfcm_op *op)
{
	const struct nfcm_pins *p = &op->pins;

	lockdep_assert_held(&op->ch->mailbox->lock);
	return op->place == NFCM_PLACE_HALF && !op->cause && !p->error &&
	       p->pinned < p->size && p->pinned - p->freed < most_bytes(op);
}

/* See to it that the next part is pinned soon, if there is one. */
void nfcm_pins_schedule(struct nfcm_op *op)
{
	lockdep_assert_held(&op->ch->mailbox->lock);
	if (op->pins.busy || !more_pages_needed(op))
		return;
	op->pins.busy = true;
	atomic_inc(&op->holds);
	list_add_tail(&op->pin_node, &op->ch->mailbox->pinning);
}

/* Hand a chunk to the thread that unlocks the mailbox. */
static void trim(struct nfcm_op *op, struct nfcm_chunk *chunk)
{
	lockdep_assert_held(&op->ch->mailbox->lock);
	atomic_inc(&op->holds);
	list_move_tail(&chunk->node, &op->ch->mailbox->trimmed);
}

/* The lists below acked were moved: release their memory. */
void nfcm_pins_trim(struct nfcm_op *op, u64 acked)
{
	struct nfcm_chunk *chunk, *next;

	lockdep_assert_held(&op->ch->mailbox->lock);
	list_for_each_entry_safe(chunk, next, &op->pins.chunks, node) {
		if (chunk->cut.first + chunk->cut.lists > acked)
			break;
		op->pins.freed = chunk->end;
		trim(op, chunk);
	}
}

/* The half that an operation with pages works in. */
static struct nfcm_half *half_of(struct nfcm_op *op)
{
	return &op->ch->half[op->opcode == NFCOMMS_OP_RECEIVE_IND ? NFC_D2H :
								    NFC_H2D];
}

/*
 * Take what chunk_new() made into use; true if the next part is wanted at once.
 */
static bool take_chunk(struct nfcm_op *op, struct nfcm_chunk *chunk)
{
	struct nfcm_pins *p = &op->pins;
	int rc = PTR_ERR_OR_ZERO(chunk);

	lockdep_assert_held(&op->ch->mailbox->lock);
	trace_nfcomms_pin(op, p->lists, rc ? 0 : chunk->cut.lists, rc);
	if (!rc)
		INIT_LIST_HEAD(&chunk->node);
	if (op->place == NFCM_PLACE_OVER) {
		if (!rc)
			trim(op, chunk);
	} else if (!rc) {
		list_add_tail(&chunk->node, &p->chunks);
		p->lists += chunk->cut.lists;
		p->pinned = chunk->end;
		nfcm_half_push(half_of(op));
	} else if (rc != -EAGAIN && rc != -ENODEV) { /* the fence ends it */
		p->error = rc;
		nfcm_half_stop(half_of(op),
			       rc == -ENOMEM ? NFC_ENOMEM : NFC_EINVAL, -rc);
		nfcm_half_push(half_of(op));
	}
	/* Memory that was released meanwhile did not wake it: it was busy. */
	if (rc == -EAGAIN && !nfcm_pool_refused(op))
		rc = 0;
	p->busy = !rc && more_pages_needed(op);
	return p->busy;
}

/*
 * A caller that waits may pin all the time. One that only submits pins what the
 * device can be offered at first: others wait for what it submits next.
 */
static bool pinned_enough(const struct nfcm_op *op)
{
	return !op->pins.region && !op->called &&
	       READ_ONCE(op->pins.pin_task) == current &&
	       op->pins.pinned >= most_bytes(op);
}

/* Hand a part over, or why there is none; true if the next one is wanted. No locks. */
static bool hand_over(struct nfcm_op *op, struct nfcm_chunk *chunk)
{
	struct nfcm_mailbox *mailbox = op->ch->mailbox;
	bool again;

	nfcm_mailbox_lock(mailbox);
	again = take_chunk(op, chunk);
	nfcm_mailbox_unlock(mailbox);
	return again;
}

/* Pin as long as it needs pages; true if it needs more. No locks. */
static bool pin_runs(struct nfcm_op *op)
{
	bool again;

	do {
		again = hand_over(op, nfcm_chunk_new(op, part_end(op)));
		cond_resched(); /* the device may take lists as fast as they are put */
	} while (again && !pinned_enough(op));
	return again;
}

/* The limit of locked memory does not allow it. It has busy, and a hold. No locks. */
void nfcm_pins_deny(struct nfcm_op *op)
{
	hand_over(op, ERR_PTR(over_limit(op)));
	nfcm_op_release_hold(op);
}

/* Nobody pins for the operation if the pool says so: then its hold ends here. No locks. */
static void end_unless_queued(struct nfcm_op *op, int rc)
{
	if (rc == -ENOMEM)
		nfcm_pins_deny(op);
	else if (rc == -ECANCELED)
		nfcm_op_release_hold(op);
}

/* Have a worker pin for an operation. It has busy, and a hold. No locks. */
void nfcm_pins_queue(struct nfcm_op *op)
{
	if (op->pins.region)
		queue_work(nfcm_wq, &op->pins.work);
	else
		end_unless_queued(op, nfcm_pool_queue(op));
}

/* Pin in the context of the caller, whose memory it is. It has busy, and a hold. No locks. */
void nfcm_pins_run(struct nfcm_op *op)
{
	int rc = op->pins.region ? 0 : nfcm_pool_admit(op);

	if (rc)
		end_unless_queued(op, rc);
	else if (pin_runs(op))
		nfcm_pins_queue(op);
	else
		nfcm_op_release_hold(op);
}

/* The same for a caller that is elsewhere: on its memory, and on its account. */
static bool pin_for(struct nfcm_op *op)
{
	struct mm_struct *mm = op->pins.mm;
	struct mem_cgroup *group, *before;
	bool again;

	if (!mmget_not_zero(mm))
		return pin_runs(op); /* which fails */
	kthread_use_mm(mm);
	group = get_mem_cgroup_from_mm(mm);
	before = set_active_memcg(group);
	again = pin_runs(op);
	set_active_memcg(before);
	mem_cgroup_put(group);
	kthread_unuse_mm(mm);
	mmput(mm);
	return again;
}

/* Cut more of registered memory, which waits for no page. */
void nfcm_pins_work(struct work_struct *work)
{
	struct nfcm_op *op = container_of(work, struct nfcm_op, pins.work);

	pin_runs(op);
	nfcm_op_release_hold(op);
}

/* A worker's turn with an operation. */
void nfcm_pins_serve(struct nfcm_op *op)
{
	bool again = nfcm_pool_begin(op) && pin_for(op);

	nfcm_pool_end(op);
	if (again)
		nfcm_pins_queue(op);
	else
		nfcm_op_release_hold(op);
}

/*
 * Pin and map all of an operation that is not started yet, in the context of its
 * caller: nobody else waits for its page faults. Mapped is last,
 * for a driver that releases the device waits for what is mapped.
 */
int nfcm_pins_all(struct nfcm_op *op)
{
	struct nfcm_pins *p = &op->pins;
	struct nfcm_chunk *chunk;
	int rc;

	while (p->pinned < p->size) {
		chunk = nfcm_chunk_pin(op, part_end(op));
		if (IS_ERR(chunk))
			return chunk == ERR_PTR(-EAGAIN) ? over_limit(op) :
							   PTR_ERR(chunk);
		list_add_tail(&chunk->node, &p->chunks);
		p->pinned = chunk->end;
		cond_resched();
	}
	list_for_each_entry(chunk, &p->chunks, node) {
		rc = nfcm_chunk_map(op, chunk);
		if (rc)
			return rc;
		p->lists += chunk->cut.lists;
	}
	return 0;
}

/*
 * Release all pages: the operation has ended. A worker that pins for it stops,
 * also where its memory is not available. No locks.
 */
void nfcm_pins_release(struct nfcm_op *op)
{
	struct nfcm_chunk *chunk, *next;

	list_for_each_entry_safe(chunk, next, &op->pins.chunks, node) {
		list_del(&chunk->node);
		atomic_inc(&op->holds);
		nfcm_chunk_let_go(chunk);
	}
	if (op->pins.mm)
		nfcm_pool_leave(op);
}

/* List k, which is pinned, and the length of its header. */
const struct nfc_gather *nfcm_pins_list(const struct nfcm_op *op, u64 k,
					u32 *length)
{
	struct nfcm_chunk *chunk;

	lockdep_assert_held(&op->ch->mailbox->lock);
	/* Lists are sent near the end: search from there. */
	list_for_each_entry_reverse(chunk, &op->pins.chunks, node)
		if (chunk->cut.first <= k)
			break;
	*length = nfcm_cut_length(&chunk->cut, k - chunk->cut.first);
	return &chunk->list[k - chunk->cut.first];
}
