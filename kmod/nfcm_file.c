// SPDX-License-Identifier: GPL-2.0-only
/* /dev/nfcommsN: an open file is a client, and what it made ends with it. */
#include <linux/capability.h>
#include <linux/fs.h>
#include <linux/poll.h>
#include <linux/sched/signal.h>
#include <linux/slab.h>
#include <linux/uaccess.h>
#include <linux/uio.h>

#include "nfcm_kmod.h"

/* How long release waits for what a device that answers ends at once. */
#define RELEASE_TIMEOUT HZ

/* The oldest completion; NULL if there is none. */
static struct nfcm_op *pop(struct nfcm_file *file)
{
	struct nfcm_op *op;

	spin_lock(&file->lock);
	op = list_first_entry_or_null(&file->done, struct nfcm_op, node);
	if (op) {
		list_del_init(&op->node);
		file->reading++;
	}
	spin_unlock(&file->lock);
	return op;
}

static bool any(struct nfcm_file *file)
{
	return !list_empty_careful(&file->done);
}

static bool removed(struct nfcm_file *file)
{
	return READ_ONCE(file->dev->removed);
}

/* The device was removed, and no completion is queued, in flight, or held by a read. */
static bool ended(struct nfcm_file *file)
{
	bool over;

	if (!removed(file))
		return false;
	spin_lock(&file->lock);
	over = list_empty(&file->done) && !file->inflight && !file->reading;
	spin_unlock(&file->lock);
	return over;
}

/* A read is done with a completion: it has it, or leaves it to the next read. */
static void popped(struct nfcm_file *file, struct nfcm_op *op, bool taken)
{
	spin_lock(&file->lock);
	file->reading--;
	if (taken)
		file->operations--;
	else
		list_add(&op->node, &file->done);
	spin_unlock(&file->lock);
	if (!taken)
		nfcm_file_wake_now(file, true);
	else if (removed(file))
		wake_up_all(&file->wait); /* it may have been the last */
	if (taken)
		nfcm_op_put(op);
}

/* Wait for a completion; a signal ends that without having taken one. */
static int await(struct nfcm_file *file, bool nowait)
{
	if (nowait && !any(file))
		return -EAGAIN;
	return wait_event_interruptible(file->wait, any(file) || ended(file));
}

/* Copy a completion as a record of this size; false if it could not be written. */
static bool give(const struct nfcm_op *op, size_t size, struct iov_iter *to)
{
	size_t n = min(size, sizeof(op->record));

	return copy_to_iter(&op->record, n, to) == n &&
	       iov_iter_zero(size - n, to) == size - n;
}

/*
 * Completions, as many as fit; at least one, or an errno. 0 once the
 * device is removed and the last one was read.
 */
static ssize_t nfcm_read(struct kiocb *iocb, struct iov_iter *to)
{
	struct nfcm_file *file = iocb->ki_filp->private_data;
	bool nowait = iocb->ki_filp->f_flags & O_NONBLOCK ||
		      iocb->ki_flags & IOCB_NOWAIT;
	const size_t size = READ_ONCE(file->record);
	ssize_t done = 0;
	struct nfcm_op *op;
	int rc;

	if (iov_iter_count(to) < size)
		return -EINVAL;
	while (iov_iter_count(to) >= size) {
		op = pop(file);
		if (!op && (done || ended(file)))
			break;
		if (!op) {
			if (!(iocb->ki_flags & IOCB_NOWAIT))
				nfcm_busy_wait(file, NULL);
			rc = await(file, nowait);
			if (rc)
				return rc;
			continue;
		}
		if (!give(op, size, to)) {
			popped(file, op, false);
			return done ?: -EFAULT;
		}
		popped(file, op, true);
		done += size;
	}
	return done;
}

static __poll_t nfcm_poll(struct file *f, poll_table *wait)
{
	struct nfcm_file *file = f->private_data;
	__poll_t events = 0;

	poll_wait(f, &file->wait, wait);
	if (any(file))
		events |= EPOLLIN | EPOLLRDNORM;
	if (removed(file))
		events |= EPOLLHUP | EPOLLERR;
	return events;
}

/* Stop all processes of a file that is being closed. */
static void stop_all(struct nfcm_file *file, struct nfcm_epoch *epoch)
{
	struct nfcm_process *p;

	do {
		spin_lock(&file->process_lock);
		p = list_first_entry_or_null(&file->processes,
					     struct nfcm_process, node);
		if (p)
			list_del_init(&p->node);
		spin_unlock(&file->process_lock);
		if (p && epoch && p->epoch == epoch->layout.epoch)
			nfcm_control_stop(epoch, p);
		else if (p)
			p->stop.end(&p->stop);
	} while (p);
}

/* ---- open, close ---- */

static int nfcm_open(struct inode *inode, struct file *f)
{
	struct nfcm_dev *dev = container_of(inode->i_cdev, struct nfcm_dev,
					    cdev);
	struct nfcm_file *file;

	if (READ_ONCE(dev->removed))
		return -ENXIO;
	file = kvzalloc(sizeof(*file), GFP_KERNEL_ACCOUNT);
	if (!file)
		return -ENOMEM;
	file->user = nfcm_user_get(current_uid());
	if (!file->user) {
		kvfree(file);
		return -ENOMEM;
	}
	kref_init(&file->ref);
	get_device(&dev->dev);
	file->dev = dev;
	file->next_handle = 1;
	file->record = NFCOMMS_COMPLETION_SIZE_FIRST;
	spin_lock_init(&file->lock);
	spin_lock_init(&file->process_lock);
	INIT_LIST_HEAD(&file->done);
	INIT_LIST_HEAD(&file->processes);
	INIT_LIST_HEAD(&file->pinning);
	INIT_LIST_HEAD(&file->ready);
	nfcm_region_init(file);
	nfcm_file_wake_init(file);
	xa_init_flags(&file->channels, XA_FLAGS_ALLOC1);
	xa_init_flags(&file->ops, XA_FLAGS_ACCOUNT);
	f->private_data = file;
	spin_lock(&dev->epoch_lock);
	list_add_tail(&file->node, &dev->files);
	spin_unlock(&dev->epoch_lock);
	return stream_open(inode, f);
}

/* The device is removed: wake all readers and pollers. */
void nfcm_file_wake_all(struct nfcm_dev *dev)
{
	struct nfcm_file *file;

	spin_lock(&dev->epoch_lock);
	list_for_each_entry(file, &dev->files, node) {
		spin_lock(&file->event_lock); /* an eventfd that arrives later sees it */
		spin_unlock(&file->event_lock);
		wake_up_all(&file->wait);
		nfcm_file_wake(file);
	}
	spin_unlock(&dev->epoch_lock);
}

/* Close all channels; every operation of theirs ends. */
static void close_all(struct nfcm_file *file)
{
	struct nfcm_channel *ch;
	unsigned long handle;

	xa_for_each(&file->channels, handle, ch) {
		ch = nfcm_file_channel(file, (u32)handle);
		if (!ch)
			continue;
		nfcm_mailbox_lock(ch->mailbox);
		nfcm_channel_close(ch, NULL);
		nfcm_mailbox_unlock(ch->mailbox);
		nfcm_channel_put(ch);
		cond_resched();
	}
}

/* Completions that nobody will read. */
static void forget_done(struct nfcm_file *file)
{
	struct nfcm_op *op;

	while ((op = pop(file))) {
		popped(file, op, true);
		cond_resched();
	}
}

/*
 * Everything of the file ends, as a rule before this returns, so that a program
 * may close a channel and open it again. Slow work, for a device that does not
 * answer or pages that are not available, ends later, as all of it has
 * references.
 */
static int nfcm_release(struct inode *inode, struct file *f)
{
	struct nfcm_file *file = f->private_data;
	struct nfcm_epoch *epoch = nfcm_epoch_get(file->dev);

	spin_lock(&file->dev->epoch_lock);
	list_del_init(&file->node);
	spin_unlock(&file->dev->epoch_lock);
	spin_lock(&file->lock);
	WRITE_ONCE(file->dead, true);
	spin_unlock(&file->lock);
	if (epoch)
		nfcm_control_forget(epoch, file);
	close_all(file);
	stop_all(file, epoch);
	nfcm_region_revoke_all(file);
	nfcm_file_event(file, -1);
	if (epoch)
		nfcm_epoch_put(epoch);
	forget_done(file);
	wait_event_timeout(file->wait, !atomic_read(&file->live),
			   RELEASE_TIMEOUT);
	nfcm_file_put(file);
	return 0;
}

/* ---- ioctls ---- */

static_assert(sizeof(struct nfcomms_info) >= NFCOMMS_INFO_SIZE_FIRST);
static_assert(sizeof(struct nfcomms_health) >= NFCOMMS_HEALTH_SIZE_FIRST);
static_assert(sizeof(struct nfcomms_channel) >= NFCOMMS_CHANNEL_SIZE_FIRST);
static_assert(sizeof(struct nfcomms_reset) >= NFCOMMS_RESET_SIZE_FIRST);
static_assert(sizeof(struct nfcomms_setup) >= NFCOMMS_SETUP_SIZE_FIRST);
static_assert(sizeof(struct nfcomms_register) >= NFCOMMS_REGISTER_SIZE_FIRST);
static_assert(sizeof(struct nfcomms_unregister) >= NFCOMMS_UNREGISTER_SIZE_FIRST);
static_assert(sizeof(struct nfcomms_eventfd) >= NFCOMMS_EVENTFD_SIZE_FIRST);

/* The size that begins a structure which is only written. It stays. */
static int check_out(u32 *size, void __user *arg, size_t ksize, size_t first)
{
	int rc;

	if (get_user(*size, (u32 __user *)arg))
		return -EFAULT;
	if (*size < first)
		return -EINVAL;
	if (*size > PAGE_SIZE)
		return -E2BIG;
	if (*size <= ksize)
		return 0;
	rc = check_zeroed_user(arg + ksize, *size - ksize);
	if (rc < 0)
		return rc;
	return rc ? 0 : -E2BIG;
}

/* Write a structure that begins with its size, as far as the caller has room. */
static int copy_out(void __user *arg, const void *from, size_t ksize)
{
	size_t size = min_t(size_t, *(const u32 *)from, ksize);

	return copy_to_user(arg, from, size) ? -EFAULT : 0;
}

static long ioc_info(struct nfcm_file *file, void __user *arg)
{
	struct nfcomms_info info = {};
	struct nfcm_epoch *epoch;
	const struct nfcm_layout *l;
	int rc = check_out(&info.size, arg, sizeof(info),
			   NFCOMMS_INFO_SIZE_FIRST);

	if (rc)
		return rc;
	epoch = nfcm_epoch_get(file->dev);
	if (!epoch)
		return -ENODEV;
	l = &epoch->layout;
	info.uapi = NFCOMMS_UAPI_MAJOR << 16 | NFCOMMS_UAPI_MINOR;
	info.abi = l->major << 16 | l->minor;
	info.epoch = l->epoch;
	info.channels = l->channels;
	info.mailboxes = l->mailboxes;
	info.islands = l->islands;
	info.slots = l->slots;
	info.window = l->window;
	info.beat_ms = l->beat_ms;
	info.read_managers = l->read_managers;
	info.write_managers = l->write_managers;
	info.contexts = l->contexts;
	info.capabilities = l->capabilities;
	info.vectors = file->dev->vectors;
	info.max_operations = READ_ONCE(file->dev->limits.max_operations);
	info.max_transfer = l->max_transfer;
	info.memlock_limit = capable(CAP_IPC_LOCK) ? U64_MAX :
						     rlimit(RLIMIT_MEMLOCK);
	info.memlock_used = (u64)atomic64_read(&current->mm->pinned_vm)
			    << PAGE_SHIFT;
	strscpy(info.driver, NFCM_MODULE_VERSION, sizeof(info.driver));
	nfcm_epoch_put(epoch);
	return copy_out(arg, &info, sizeof(info));
}

static long ioc_health(struct nfcm_file *file, void __user *arg)
{
	struct nfcomms_health h = {};
	struct nfcm_dev *dev = file->dev;
	struct nfcm_epoch *epoch;
	u32 moving;
	int rc = check_out(&h.size, arg, sizeof(h), NFCOMMS_HEALTH_SIZE_FIRST);

	if (rc)
		return rc;
	h.state = nfcm_dev_state(dev);
	epoch = nfcm_epoch_get(dev);
	if (epoch) {
		nfcm_watch_health(epoch, &h);
		nfcm_epoch_put(epoch);
	}
	h.interrupts = nfcm_counted(dev, NFCM_COUNT_INTERRUPTS);
	h.spurious = nfcm_counted(dev, NFCM_COUNT_SPURIOUS);
	h.doorbells = nfcm_counted(dev, NFCM_COUNT_DOORBELLS);
	h.dropped = nfcm_counted(dev, NFCM_COUNT_DROPPED);
	h.faults = nfcm_counted(dev, NFCM_COUNT_FAULTS);
	h.resets = nfcm_counted(dev, NFCM_COUNT_RESETS);
	h.lists = nfcm_counted(dev, NFCM_COUNT_LISTS);
	h.repeated = nfcm_counted(dev, NFCM_COUNT_REPEATED);
	h.pinned = nfcm_counted(dev, NFCM_COUNT_PINNED);
	h.pins = nfcm_counted(dev, NFCM_COUNT_PINS);
	h.regions = READ_ONCE(file->regions.count);
	h.busy_polled = nfcm_counted(dev, NFCM_COUNT_BUSY_POLLED);
	h.operations = READ_ONCE(file->inflight);
	moving = atomic_read(&file->moving);
	h.blocked = h.operations > moving ? h.operations - moving : 0;
	return copy_out(arg, &h, sizeof(h));
}

static long ioc_channel(struct nfcm_file *file, void __user *arg)
{
	struct nfcomms_channel c, in;
	struct nfcm_channel *ch;
	int d, rc = nfcm_copy_in(&in, sizeof(in), NFCOMMS_CHANNEL_SIZE_FIRST,
				 arg);

	if (rc)
		return rc;
	c = (struct nfcomms_channel){ .size = in.size, .channel = in.channel };
	if (memchr_inv(in.rsvd, 0, sizeof(in.rsvd)))
		return -EINVAL;
	ch = nfcm_file_channel(file, in.channel);
	if (!ch)
		return -ENOENT;
	nfcm_mailbox_lock(ch->mailbox);
	c.target = ch->id;
	c.lists = ch->lists;
	c.repeated = ch->repeated;
	for (d = NFC_H2D; d <= NFC_D2H; d++)
		if (!ch->gone && !ch->half[d].shut)
			c.halves |= d == NFC_H2D ? NFCOMMS_H2D : NFCOMMS_D2H;
	nfcm_half_describe(&ch->half[NFC_H2D], &c.h2d);
	nfcm_half_describe(&ch->half[NFC_D2H], &c.d2h);
	nfcm_mailbox_unlock(ch->mailbox);
	nfcm_channel_put(ch);
	return copy_out(arg, &c, sizeof(c));
}

static bool power_of_two(u32 v, u32 low, u32 high)
{
	return !v || (v >= low && v <= high && !(v & (v - 1)));
}

static long ioc_reset(struct nfcm_file *file, void __user *arg)
{
	struct nfcomms_reset r;
	int rc;

	if (!capable(CAP_SYS_ADMIN))
		return -EPERM;
	rc = nfcm_copy_in(&r, sizeof(r), NFCOMMS_RESET_SIZE_FIRST, arg);
	if (rc)
		return rc;
	if (r.flags || memchr_inv(r.rsvd, 0, sizeof(r.rsvd)) ||
	    r.channels > NFC_CHANNELS_MAX || r.mailboxes > NFC_MAILBOXES_MAX ||
	    r.islands > NFC_ISLANDS_MAX ||
	    !power_of_two(r.slots, NFC_SLOTS_MIN, NFC_SLOTS_MAX) ||
	    !power_of_two(r.window, 1, NFC_WINDOW_MAX) ||
	    r.emem >> NFC_PAGE_SHIFT > U32_MAX)
		return -EINVAL;
	return nfcm_dev_reset(file->dev, &r);
}

static long ioc_setup(struct nfcm_file *file, void __user *arg)
{
	struct nfcomms_setup s;
	int rc = nfcm_copy_in(&s, sizeof(s), NFCOMMS_SETUP_SIZE_FIRST, arg);

	if (rc)
		return rc;
	if (s.flags || memchr_inv(s.rsvd, 0, sizeof(s.rsvd)) ||
	    s.completion_size < NFCOMMS_COMPLETION_SIZE_FIRST ||
	    s.busy_poll_us > NFCM_BUSY_POLL_MAX)
		return -EINVAL;
	if (s.completion_size > PAGE_SIZE)
		return -E2BIG;
	WRITE_ONCE(file->record, s.completion_size);
	WRITE_ONCE(file->busy_poll_us, s.busy_poll_us);
	return 0;
}

static long ioc_register(struct nfcm_file *file, void __user *arg)
{
	struct nfcomms_register r;
	int rc = nfcm_copy_in(&r, sizeof(r), NFCOMMS_REGISTER_SIZE_FIRST, arg);

	if (rc)
		return rc;
	if (r.flags & ~(NFCOMMS_REGION_READ_ONLY | NFCOMMS_REGION_DMA_BUF) ||
	    r.region || memchr_inv(r.rsvd, 0, sizeof(r.rsvd)))
		return -EINVAL;
	if (r.flags & NFCOMMS_REGION_DMA_BUF ?
		    r.address || !PAGE_ALIGNED(r.offset) :
		    r.fd || r.offset)
		return -EINVAL;
	rc = nfcm_region_register(file, &r);
	if (!rc && put_user(r.region,
			    &((struct nfcomms_register __user *)arg)->region)) {
		nfcm_region_unregister(file, r.region);
		rc = -EFAULT;
	}
	return rc;
}

static long ioc_unregister(struct nfcm_file *file, void __user *arg)
{
	struct nfcomms_unregister u;
	int rc = nfcm_copy_in(&u, sizeof(u), NFCOMMS_UNREGISTER_SIZE_FIRST, arg);

	if (rc)
		return rc;
	if (u.flags || u.rsvd0 || memchr_inv(u.rsvd, 0, sizeof(u.rsvd)))
		return -EINVAL;
	return nfcm_region_unregister(file, u.region);
}

static long ioc_eventfd(struct nfcm_file *file, void __user *arg)
{
	struct nfcomms_eventfd e;
	int rc = nfcm_copy_in(&e, sizeof(e), NFCOMMS_EVENTFD_SIZE_FIRST, arg);

	if (rc)
		return rc;
	if (e.flags || memchr_inv(e.rsvd, 0, sizeof(e.rsvd)))
		return -EINVAL;
	return e.fd < -1 ? -EBADF : nfcm_file_event(file, e.fd);
}

/*
 * A call that makes the device act needs a file that is open for writing. One
 * that is open for reading only gets information.
 */
static bool acts(unsigned int cmd)
{
	return cmd == NFCOMMS_IOC_SUBMIT || cmd == NFCOMMS_IOC_CALL ||
	       cmd == NFCOMMS_IOC_RESET || cmd == NFCOMMS_IOC_REGISTER ||
	       cmd == NFCOMMS_IOC_UNREGISTER;
}

static long nfcm_ioctl(struct file *f, unsigned int cmd, unsigned long arg)
{
	struct nfcm_file *file = f->private_data;
	void __user *user = (void __user *)arg;

	if (acts(cmd) && !(f->f_mode & FMODE_WRITE))
		return -EACCES;
	/* Whole commands: they have the first version's sizes, for ever. */
	switch (cmd) {
	case NFCOMMS_IOC_HEALTH:
		return ioc_health(file, user);
	case NFCOMMS_IOC_CHANNEL:
		return ioc_channel(file, user);
	case NFCOMMS_IOC_CANCEL:
		return nfcm_ioc_cancel(file, user);
	case NFCOMMS_IOC_SETUP:
		return ioc_setup(file, user);
	case NFCOMMS_IOC_EVENTFD:
		return ioc_eventfd(file, user);
	case NFCOMMS_IOC_REGISTER:
		return removed(file) ? -ENODEV : ioc_register(file, user);
	case NFCOMMS_IOC_UNREGISTER:
		return removed(file) ? -ENODEV : ioc_unregister(file, user);
	case NFCOMMS_IOC_INFO:
		return removed(file) ? -ENODEV : ioc_info(file, user);
	case NFCOMMS_IOC_SUBMIT:
		return removed(file) ? -ENODEV : nfcm_ioc_submit(file, user);
	case NFCOMMS_IOC_CALL:
		return removed(file) ? -ENODEV : nfcm_ioc_call(file, user);
	case NFCOMMS_IOC_RESET:
		return removed(file) ? -ENODEV : ioc_reset(file, user);
	default:
		return -ENOTTY;
	}
}

const struct file_operations nfcm_fops = {
	.owner = THIS_MODULE,
	.open = nfcm_open,
	.release = nfcm_release,
	.read_iter = nfcm_read,
	.poll = nfcm_poll,
	.unlocked_ioctl = nfcm_ioctl,
	.compat_ioctl = compat_ptr_ioctl,
};
