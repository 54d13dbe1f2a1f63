// SPDX-License-Identifier: GPL-2.0-only
/*
 * A file as a client: its references, channels by handle, operations in flight
 * and the processes that it started.
 */
#include <linux/eventfd.h>
#include <linux/poll.h>
#include <linux/sched/clock.h>
#include <linux/slab.h>

#include "nfcm_compat.h"
#include "nfcm_kmod.h"

static void file_free(struct kref *ref)
{
	struct nfcm_file *file = container_of(ref, struct nfcm_file, ref);

	nfcm_assert_left(&file->node);
	nfcm_assert_left(&file->ready);
	nfcm_assert_left(&file->pinning);
	nfcm_assert_left(&file->done);
	nfcm_assert_left(&file->processes);
	xa_destroy(&file->channels);
	WARN_ON_ONCE(!xa_empty(&file->regions.handles));
	xa_erase(&file->ops, file->kept);
	WARN_ON_ONCE(!xa_empty(&file->ops));
	nfcm_user_put(file->user);
	put_device(&file->dev->dev);
	kvfree(file);
}

/* The caller has a reference, or the descriptor open. */
void nfcm_file_get(struct nfcm_file *file)
{
	kref_get(&file->ref);
}

/* The last reference frees the file and releases the device. No locks. */
void nfcm_file_put(struct nfcm_file *file)
{
	kref_put(&file->ref, file_free);
}

/* Something begins or ends that release waits for. The caller has a reference. */
void nfcm_file_live(struct nfcm_file *file, int n)
{
	if (!atomic_add_return(n, &file->live) && READ_ONCE(file->dead))
		wake_up_all(&file->wait);
}

/* ---- who waits for completions ---- */

enum {
	WAKE_NS = 100000, /* that the thread of an interrupt may wake for */
};

static void signal_event(struct nfcm_file *file)
{
	if (!READ_ONCE(file->event))
		return;
	spin_lock(&file->event_lock);
	if (file->event)
		nfcm_signal(file->event);
	spin_unlock(&file->event_lock);
}

/* Wake all that wait for completions, and note if they are many. No locks. */
void nfcm_file_wake_now(struct nfcm_file *file, bool event)
{
	u64 begun = local_clock();

	wake_up_poll(&file->wait, EPOLLIN | EPOLLRDNORM);
	if (event)
		signal_event(file);
	WRITE_ONCE(file->crowded, local_clock() - begun > WAKE_NS);
}

/* A completion of those that the eventfd has yet to count; false if there is none. */
static bool take_wake(struct nfcm_file *file)
{
	return atomic_dec_if_positive(&file->wakes) >= 0;
}

static void wake_later(struct work_struct *work)
{
	struct nfcm_file *file = container_of(work, struct nfcm_file, waking);

	nfcm_file_wake_now(file, take_wake(file));
	while (take_wake(file)) {
		cond_resched();
		signal_event(file);
	}
	nfcm_file_put(file);
}

/*
 * There is something to read. Polls by the thousand may wait for it: they are woken
 * at their user's expense. No locks.
 */
void nfcm_file_wake(struct nfcm_file *file)
{
	if (!READ_ONCE(file->crowded)) {
		nfcm_file_wake_now(file, true);
		return;
	}
	atomic_inc(&file->wakes);
	nfcm_file_get(file);
	if (!queue_work(nfcm_slow_wq, &file->waking))
		nfcm_file_put(file); /* not the last */
}

/* Nobody waits yet. */
void nfcm_file_wake_init(struct nfcm_file *file)
{
	spin_lock_init(&file->event_lock);
	init_waitqueue_head(&file->wait);
	INIT_WORK(&file->waking, wake_later);
}

/* Have an eventfd signalled, or none any more; it is if there is something already. */
int nfcm_file_event(struct nfcm_file *file, int fd)
{
	struct eventfd_ctx *event = NULL, *old = NULL;
	int rc = 0;

	if (fd >= 0) {
		event = eventfd_ctx_fdget(fd);
		if (IS_ERR(event))
			return PTR_ERR(event);
	}
	spin_lock(&file->event_lock);
	if (event && file->event) {
		rc = -EBUSY;
		old = event;
	} else {
		old = file->event;
		WRITE_ONCE(file->event, event);
		atomic_set(&file->wakes, 0); /* for the one before */
	}
	spin_unlock(&file->event_lock);
	if (!rc && event &&
	    (!list_empty_careful(&file->done) || READ_ONCE(file->dev->removed)))
		signal_event(file);
	if (old)
		eventfd_ctx_put(old);
	return event || old ? rc : -ENOENT;
}

/* The channel of a handle, with a reference; NULL if it has none. */
struct nfcm_channel *nfcm_file_channel(struct nfcm_file *file, u32 handle)
{
	struct nfcm_channel *ch;

	xa_lock(&file->channels);
	ch = xa_load(&file->channels, handle);
	if (ch)
		kref_get(&ch->ref);
	xa_unlock(&file->channels);
	return ch;
}

/*
 * An open channel becomes the file's. -ENODEV if the file was closed meanwhile:
 * the channel is to be closed, by its handle all the same.
 */
int nfcm_file_bind(struct nfcm_file *file, struct nfcm_channel *ch, u32 handle)
{
	bool dead;

	kref_get(&ch->ref);
	nfcm_file_live(file, 1);
	set_bit(ch->mailbox->index, file->mailboxes);
	nfcm_mailbox_lock(ch->mailbox);
	ch->handle = handle;
	/* The place is reserved: this does not allocate. */
	xa_store(&file->channels, handle, ch, GFP_ATOMIC);
	nfcm_mailbox_unlock(ch->mailbox);
	spin_lock(&file->lock);
	dead = file->dead;
	spin_unlock(&file->lock);
	return dead ? -ENODEV : 0;
}

/* ---- operations and their completions ---- */

/*
 * Operations that must be possible even when the file is full: they make room.
 */
static bool makes_room(const struct nfcm_op *op)
{
	return op->opcode == NFCOMMS_OP_CLOSE ||
	       op->opcode == NFCOMMS_OP_ACCEPT ||
	       op->opcode == NFCOMMS_OP_REFUSE;
}

enum {
	REQUESTS_MAX = 1024
}; /* of a file, of which the device serves one at a time */

/* Count an operation; -EAGAIN if there are too many. */
static int count_op(struct nfcm_file *file, struct nfcm_op *op)
{
	u32 most = READ_ONCE(file->dev->limits.max_operations);
	u32 requests = nfcm_op_is_request(op);
	int rc = 0;

	if (makes_room(op))
		most *= 2;
	spin_lock(&file->lock);
	if (file->operations >= most ||
	    file->requests + requests > REQUESTS_MAX) {
		rc = -EAGAIN;
	} else {
		file->operations++;
		file->inflight++;
		file->requests += requests;
		nfcm_file_live(file, 1);
	}
	spin_unlock(&file->lock);
	return rc;
}

/*
 * A CANCEL finds the operation no more. Of those that have ended, the last one's place
 * stays reserved, and with it the nodes above, which the next id needs. Otherwise a file
 * with one operation at a time would free and allocate three to five nodes for each.
 */
static void forget_op(struct nfcm_file *file, const struct nfcm_op *op)
{
	u64 id = op->c.id;

	xa_lock(&file->ops);
	if (id > file->kept) {
		swap(id, file->kept);
		__xa_store(&file->ops, file->kept, XA_ZERO_ENTRY, 0);
	}
	__xa_erase(&file->ops, id);
	xa_unlock(&file->ops);
}

/* Let an operation in, whose id no other has; -EAGAIN if there are too many. */
int nfcm_file_admit(struct nfcm_file *file, struct nfcm_op *op)
{
	int rc = 0;

	/* From here on a CANCEL finds it, which withdraws it before it begins. */
	if (!op->called)
		rc = xa_insert(&file->ops, op->c.id, op, GFP_KERNEL);
	if (rc)
		return -ENOMEM;
	rc = count_op(file, op);
	if (rc && !op->called)
		forget_op(file, op);
	return rc;
}

/* The operation in flight with this id, with a reference; NULL if there is none. */
struct nfcm_op *nfcm_file_find(struct nfcm_file *file, u64 id)
{
	struct nfcm_op *op;

	xa_lock(&file->ops);
	op = xa_load(&file->ops, id);
	if (op)
		refcount_inc(&op->ref);
	xa_unlock(&file->ops);
	return op;
}

/* A file's operation has ended: hand its completion over. No locks. */
void nfcm_file_report(struct nfcm_op *op)
{
	struct nfcm_file *file = op->file;
	bool keep = !op->called;

	nfcm_op_stamp(op, &op->stamps.completed_ns);
	if (op->opcode != NFCOMMS_OP_RECEIVE &&
	    (op->opcode != NFCOMMS_OP_ASK || op->c.status ||
	     !(op->c.flags & NFCOMMS_TAKEN)) &&
	    (op->opcode != NFCOMMS_OP_CONTROL || op->c.status || op->c.error))
		memset(op->c.payload, 0, sizeof(op->c.payload));
	if (op->moving)
		atomic_dec(&file->moving);
	nfcm_file_get(file); /* the reader of the completion may close at once */
	if (!op->called)
		forget_op(file, op);
	spin_lock(&file->lock);
	file->inflight--;
	file->requests -= nfcm_op_is_request(op);
	keep &= !file->dead;
	if (keep)
		list_add_tail(&op->node, &file->done);
	else
		file->operations--;
	spin_unlock(&file->lock);
	if (keep) {
		nfcm_file_wake(file);
	} else {
		complete_all(&op->done);
		nfcm_op_put(op);
	}
	nfcm_file_live(file, -1);
	nfcm_file_put(file);
}

/* ---- processes ---- */

/* Another process cannot have these targets while the older one runs. */
static bool replaces(const struct nfcm_process *p,
		     const struct nfcm_process *old)
{
	return old->epoch != p->epoch || old->id == p->id ||
	       (old->first < p->first + p->targets &&
		p->first < old->first + old->targets);
}

/* A process becomes the file's; false if the file was closed meanwhile. */
bool nfcm_file_adopt(struct nfcm_file *file, struct nfcm_process *p)
{
	struct nfcm_process *old, *next;
	LIST_HEAD(ended);
	bool ok;

	spin_lock(&file->process_lock);
	ok = !READ_ONCE(file->dead); /* set before release looks here */
	list_for_each_entry_safe(old, next, &file->processes, node)
		if (replaces(p, old))
			list_move(&old->node, &ended);
	if (ok)
		list_add_tail(&p->node, &file->processes);
	spin_unlock(&file->process_lock);
	list_for_each_entry_safe(old, next, &ended, node) {
		list_del_init(&old->node);
		old->stop.end(&old->stop);
	}
	return ok;
}

/* Find a process. */
static struct nfcm_process *find(struct nfcm_file *file, u32 epoch, u64 id)
{
	struct nfcm_process *p;

	lockdep_assert_held(&file->process_lock);
	list_for_each_entry(p, &file->processes, node)
		if (p->epoch == epoch && p->id == id)
			return p;
	return NULL;
}

/* Did this file start the process? Takes process_lock. */
bool nfcm_file_owns(struct nfcm_file *file, u32 epoch, u64 id)
{
	bool owns;

	spin_lock(&file->process_lock);
	owns = find(file, epoch, id);
	spin_unlock(&file->process_lock);
	return owns;
}

/* A process has ended. */
void nfcm_file_disown(struct nfcm_file *file, u32 epoch, u64 id)
{
	struct nfcm_process *p;

	spin_lock(&file->process_lock);
	p = find(file, epoch, id);
	if (p)
		list_del_init(&p->node);
	spin_unlock(&file->process_lock);
	if (p)
		p->stop.end(&p->stop);
}
