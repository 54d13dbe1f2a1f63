// SPDX-License-Identifier: GPL-2.0-only
/*
 * Decides which operations may pin, and how much. Memory that is available late
 * keeps a worker busy: users and files have a bounded number of workers, and an
 * operation that ends takes its worker out of the wait. Transfers of one
 * process that do not fit under its limit of locked memory run one after the
 * other.
 */
#include <linux/mm.h>
#include <linux/sched/signal.h>
#include <linux/slab.h>

#include "nfcm_kmod.h"

enum {
	USER_WORKERS = 64, /* of the 512 threads that there are for all */
	FILE_WORKERS = 16,
};

/* See the table of locks in nfcm_kmod.h: a leaf. */
static DEFINE_SPINLOCK(pool_lock);

/* ---- workers ---- */

/* Let the file's next operation have a worker, if it may. */
static void queue_up(struct nfcm_file *file)
{
	lockdep_assert_held(&pool_lock);
	if (file->workers < FILE_WORKERS && !list_empty(&file->pinning) &&
	    list_empty(&file->ready))
		list_add_tail(&file->ready, &file->user->ready);
}

/* Give the user's files workers, in turn. */
static void serve(struct nfcm_user *user)
{
	struct nfcm_file *file;
	struct nfcm_op *op;

	lockdep_assert_held(&pool_lock);
	while (user->workers < USER_WORKERS && !list_empty(&user->ready)) {
		file = list_first_entry(&user->ready, struct nfcm_file, ready);
		list_del_init(&file->ready);
		op = list_first_entry_or_null(&file->pinning, struct nfcm_op,
					      pins.node);
		if (!op)
			continue;
		list_del_init(&op->pins.node);
		op->pins.pool = NFCM_POOL_SERVED;
		file->workers++;
		user->workers++;
		nfcm_worker_give(op);
		queue_up(file);
	}
}

/* A file's operation has a worker's place no more: others have their turn. */
static void vacate(struct nfcm_file *file)
{
	lockdep_assert_held(&pool_lock);
	file->workers--;
	file->user->workers--;
	queue_up(file);
	serve(file->user);
}

/* The operation waits for no worker; its file does not either if this was the last. */
static void unqueue(struct nfcm_op *op)
{
	struct nfcm_file *file = op->file;

	lockdep_assert_held(&pool_lock);
	list_del_init(&op->pins.node);
	op->pins.pool = NFCM_POOL_NOTHING;
	if (list_empty(&file->pinning))
		list_del_init(&file->ready);
}

static void enqueue(struct nfcm_op *op)
{
	struct nfcm_file *file = op->file;

	lockdep_assert_held(&pool_lock);
	op->pins.pool = NFCM_POOL_WAITS;
	list_add_tail(&op->pins.node, &file->pinning);
	queue_up(file);
	serve(file->user);
}

/* ---- locked memory ---- */

/* Charge the mm with more pages; false beyond its limit. */
static bool charge(struct nfcm_pins *p, unsigned long pages)
{
	unsigned long now = atomic64_add_return(pages, &p->mm->pinned_vm);

	lockdep_assert_held(&pool_lock);
	if (now > p->limit) {
		atomic64_sub(pages, &p->mm->pinned_vm);
		return false;
	}
	p->charged += pages;
	return true;
}

/* Does an operation of this list have the same memory? */
static bool any_of(struct list_head *list, const struct mm_struct *mm,
		   bool holders)
{
	struct nfcm_pins *p;

	lockdep_assert_held(&pool_lock);
	if (holders) {
		list_for_each_entry(p, list, holder)
			if (p->mm == mm)
				return true;
	} else {
		list_for_each_entry(p, list, node)
			if (p->mm == mm)
				return true;
	}
	return false;
}

/* Charge for what the operation needs to get on for sure. */
static bool reserve(struct nfcm_user *user, struct nfcm_op *op)
{
	struct nfcm_pins *p = &op->pins;
	unsigned long need = nfcm_pins_need(op);

	lockdep_assert_held(&pool_lock);
	if (need > p->limit || !charge(p, need))
		return false;
	p->floor = need;
	list_add(&p->holder, &user->holders);
	return true;
}

/* How long one may wait while nothing of its user's is given back. */
static unsigned long patience(const struct nfcm_op *op)
{
	return msecs_to_jiffies(op->ch->epoch->dev->limits.stall_timeout_ms);
}

/* Others have what the operation needs: wait for it. */
static void lack(struct nfcm_user *user, struct nfcm_op *op)
{
	struct nfcm_pins *p = &op->pins;

	lockdep_assert_held(&pool_lock);
	p->pool = NFCM_POOL_LACKS;
	if (list_empty(&user->lacking))
		user->moved = jiffies;
	list_add_tail(&p->node, &user->lacking);
	refcount_inc(&op->ref); /* the timer's */
	queue_delayed_work(nfcm_wq, &p->timer, patience(op));
}

/* It waits no more. */
static void end_lacking(struct nfcm_op *op)
{
	lockdep_assert_held(&pool_lock);
	list_del_init(&op->pins.node);
	op->pins.pool = NFCM_POOL_NOTHING;
	if (cancel_delayed_work(&op->pins.timer))
		refcount_dec(&op->ref); /* never the last */
}

/* Reserve for those that wait for this memory, in order. */
static void feed(struct nfcm_user *user, const struct mm_struct *mm)
{
	struct nfcm_op *op, *next;

	lockdep_assert_held(&pool_lock);
	user->moved = jiffies;
	list_for_each_entry_safe(op, next, &user->lacking, pins.node) {
		if (op->pins.mm != mm)
			continue;
		if (!reserve(user, op))
			break;
		end_lacking(op);
		enqueue(op);
	}
}

/* It has waited, and nobody gives anything back: its limit denies it. */
void nfcm_pool_timer(struct work_struct *work)
{
	struct nfcm_op *op = container_of(to_delayed_work(work), struct nfcm_op,
					  pins.timer);
	struct nfcm_pins *p = &op->pins;
	unsigned long due;
	bool lacks;

	spin_lock(&pool_lock);
	due = p->user->moved + patience(op);
	lacks = p->pool == NFCM_POOL_LACKS;
	if (lacks && time_before(jiffies, due)) {
		queue_delayed_work(nfcm_wq, &p->timer, due - jiffies);
		spin_unlock(&pool_lock);
		return;
	}
	if (lacks) {
		list_del_init(&p->node);
		p->pool = NFCM_POOL_NOTHING;
	}
	spin_unlock(&pool_lock);
	if (lacks)
		nfcm_pins_deny(op);
	nfcm_op_put(op);
}

/*
 * May the operation pin? 0 if it has what it needs. -EAGAIN: it waits for its own
 * process's transfers, and a worker continues with it. -ENOMEM: its limit denies it,
 * and no wait would help. -ECANCELED: it has ended, and nothing is to be done for it.
 */
static int admit(struct nfcm_op *op)
{
	struct nfcm_user *user = op->file->user;
	struct nfcm_pins *p = &op->pins;
	bool others;

	lockdep_assert_held(&pool_lock);
	if (p->ended)
		return -ECANCELED;
	if (p->floor || (list_empty(&user->lacking) && reserve(user, op)))
		return 0;
	others = any_of(&user->holders, p->mm, true);
	if (!(others && any_of(&user->lacking, p->mm, false)) &&
	    reserve(user, op))
		return 0;
	if (!others || nfcm_pins_need(op) > p->limit)
		return -ENOMEM;
	lack(user, op);
	return -EAGAIN;
}

/* May the caller pin in its own context now? As admit(). */
int nfcm_pool_admit(struct nfcm_op *op)
{
	int rc;

	spin_lock(&pool_lock);
	rc = admit(op);
	spin_unlock(&pool_lock);
	return rc;
}

/*
 * Have a worker pin for the operation: 0 or -EAGAIN, or none will, as admit() says.
 * One that has ended must not be queued: nfcm_pool_leave() was called, so that it
 * would stay until a worker is free.
 */
int nfcm_pool_queue(struct nfcm_op *op)
{
	int rc;

	spin_lock(&pool_lock);
	rc = admit(op);
	if (!rc)
		enqueue(op);
	spin_unlock(&pool_lock);
	return rc;
}

/*
 * Charge for pages that are to be pinned; -EAGAIN beyond the limit: once some are
 * given back, nfcm_pool_uncharge() says that it may be tried again.
 */
int nfcm_pool_charge(struct nfcm_op *op, unsigned long pages)
{
	struct nfcm_pins *p = &op->pins;
	int rc = 0;

	spin_lock(&pool_lock);
	if (p->used + pages > p->charged &&
	    !charge(p, p->used + pages - p->charged))
		rc = -EAGAIN;
	else
		p->used += pages;
	p->refused = rc;
	spin_unlock(&pool_lock);
	return rc;
}

/* Was it refused pages, and none were given back since? */
bool nfcm_pool_refused(struct nfcm_op *op)
{
	bool refused;

	spin_lock(&pool_lock);
	refused = op->pins.refused;
	spin_unlock(&pool_lock);
	return refused;
}

/* They are not pinned any more. True if the operation was refused some before. */
bool nfcm_pool_uncharge(struct nfcm_op *op, unsigned long pages)
{
	struct nfcm_pins *p = &op->pins;
	unsigned long keep;
	bool refused;

	spin_lock(&pool_lock);
	refused = p->refused;
	p->refused = false;
	p->used -= pages;
	keep = max(p->used, p->floor);
	atomic64_sub(p->charged - keep, &p->mm->pinned_vm);
	p->charged = keep;
	feed(p->user, p->mm);
	spin_unlock(&pool_lock);
	return refused;
}

/* The operation has ended: it needs nothing any more, and nobody works for it. */
void nfcm_pool_leave(struct nfcm_op *op)
{
	struct nfcm_pins *p = &op->pins;
	bool release = true;

	spin_lock(&pool_lock);
	p->ended = true;
	p->floor = 0;
	list_del_init(&p->holder);
	if (p->pool == NFCM_POOL_WAITS)
		unqueue(op);
	else if (p->pool == NFCM_POOL_LACKS)
		end_lacking(op);
	else if (p->pool == NFCM_POOL_SERVED && nfcm_worker_take_back(op))
		vacate(op->file);
	else
		release = false;
	if (p->worker)
		send_sig(SIGKILL, p->worker, 1); /* out of its page fault */
	spin_unlock(&pool_lock);
	nfcm_pool_uncharge(op, 0);
	if (release)
		nfcm_op_release_hold(op);
}

/* A worker has the operation's turn; false if it has ended meanwhile. */
bool nfcm_pool_begin(struct nfcm_op *op)
{
	bool wanted;

	spin_lock(&pool_lock);
	op->pins.pool = NFCM_POOL_NOTHING; /* it may be queued for more again */
	op->pins.worker = current;
	wanted = !op->pins.ended;
	spin_unlock(&pool_lock);
	return wanted;
}

/* The worker releases the operation, and others have their turn. */
void nfcm_pool_end(struct nfcm_op *op)
{
	spin_lock(&pool_lock);
	op->pins.worker = NULL;
	vacate(op->file);
	spin_unlock(&pool_lock);
	flush_signals(current); /* also one that arrived when it waited no more */
}

/* ---- regions ---- */

enum {
	USER_REGIONS = 8192,
};

/*
 * Charge a process for a region: it is one of its user's, and its pages are locked.
 * -ENOSPC, -ENOMEM beyond what may be. In the owner's context.
 */
int nfcm_pool_register(struct nfcm_user *user, struct mm_struct *mm,
		       unsigned long limit, unsigned long pages)
{
	int rc = 0;

	spin_lock(&pool_lock);
	if (user->regions == USER_REGIONS) {
		rc = -ENOSPC;
	} else if ((u64)atomic64_add_return(pages, &mm->pinned_vm) > limit) {
		atomic64_sub(pages, &mm->pinned_vm);
		rc = -ENOMEM;
	} else {
		user->regions++;
	}
	spin_unlock(&pool_lock);
	return rc;
}

/* The region is no more: transfers may have its share. */
void nfcm_pool_forget(struct nfcm_user *user, struct mm_struct *mm,
		      unsigned long pages)
{
	spin_lock(&pool_lock);
	user->regions--;
	atomic64_sub(pages, &mm->pinned_vm);
	feed(user, mm);
	spin_unlock(&pool_lock);
}
