// SPDX-License-Identifier: GPL-2.0-only
/*
 * Epochs of a device start and end here. An epoch ends once: DMA is fenced first,
 * then every operation ends, and only an ended operation gives its memory back.
 */
#include <linux/sched/signal.h>
#include <linux/slab.h>
#include <linux/wait_bit.h>

#include "nfcm_kmod.h"
#include "trace.h"

enum {
	RECOVER_MS = 1000, /* from the end of an epoch that failed to the next */
	ERROR_MS = 5000, /* for the bus to recover from an error, at least */
};

/* Stop DMA and only then end the operations. */
static void fence_work(struct work_struct *work)
{
	struct nfcm_epoch *epoch = container_of(work, struct nfcm_epoch, fence);
	u32 status = atomic_read(&epoch->down), i;

	/* Before processes end with their operations. */
	bool again = epoch->lost && nfcm_requests_blame(epoch);

	trace_nfcomms_epoch(epoch, status);
	nfcm_hw_quiesce(epoch->dev);
	nfcm_watch_stop(epoch);
	for (i = 0; i < epoch->mailboxes; i++) {
		nfcm_mailbox_end(&epoch->mailbox[i], status);
		cond_resched();
	}
	nfcm_hw_take_area(epoch);
	nfcm_control_close(epoch);
	if (again || READ_ONCE(epoch->dev->limits.recovery))
		mod_delayed_work(nfcm_wq, &epoch->dev->recover,
				 msecs_to_jiffies(RECOVER_MS));
	complete_all(&epoch->quiet);
	nfcm_epoch_put(epoch);
}

/* An epoch for a device that has booted. */
static struct nfcm_epoch *epoch_new(struct nfcm_dev *dev,
				    const struct nfcm_layout *l)
{
	struct nfcm_epoch *epoch;
	u32 i;
	int rc;

	epoch = kvzalloc(struct_size(epoch, mailbox, l->mailboxes), GFP_KERNEL);
	if (!epoch)
		return ERR_PTR(-ENOMEM);
	kref_init(&epoch->ref);
	get_device(&dev->dev);
	epoch->dev = dev;
	epoch->layout = *l;
	epoch->mailboxes = l->mailboxes;
	xa_init(&epoch->channels);
	init_completion(&epoch->quiet);
	INIT_WORK(&epoch->fence, fence_work);
	nfcm_control_init(epoch);
	nfcm_hw_give_area(epoch);
	nfcm_epoch_lay(epoch);
	for (i = 0; i < epoch->mailboxes; i++)
		nfcm_mailbox_init(epoch, i);
	trace_nfcomms_epoch(epoch, 0); /* before its first slot */
	nfcm_hw_answer(epoch);
	nfcm_watch_start(epoch);
	rc = nfcm_control_open(epoch);
	if (rc) {
		nfcm_epoch_fail(epoch, NFC_ERESET, NULL);
		wait_for_completion(&epoch->quiet);
		nfcm_epoch_put(epoch);
		return ERR_PTR(rc);
	}
	return epoch;
}

/* End the present epoch and wait until DMA is quiet. */
static void end_epoch(struct nfcm_dev *dev, u32 status)
{
	struct nfcm_epoch *epoch = nfcm_epoch_get(dev);

	lockdep_assert_held(&dev->epoch_mutex);
	if (!epoch)
		return;
	nfcm_epoch_fail(epoch, status, NULL);
	wait_for_completion(&epoch->quiet);
	nfcm_epoch_put(epoch);
}

/* Boot, take the device's hello and make an epoch of it; an errno if that does not work. */
static struct nfcm_epoch *boot_epoch(struct nfcm_dev *dev,
				     const struct nfcomms_reset *shape)
{
	struct nfcm_layout l;
	int rc = nfcm_hw_boot(dev, shape);

	if (!rc)
		rc = nfcm_hw_hello(dev, &l);
	return rc ? ERR_PTR(rc) : epoch_new(dev, &l);
}

/*
 * Start an epoch; there must be none that lives. A device that did not boot is
 * not to do DMA.
 */
static int boot(struct nfcm_dev *dev, const struct nfcomms_reset *shape)
{
	struct nfcm_epoch *epoch = boot_epoch(dev, shape), *old;

	lockdep_assert_held(&dev->epoch_mutex);
	if (IS_ERR(epoch)) {
		nfcm_hw_fence(dev);
		return PTR_ERR(epoch);
	}
	spin_lock(&dev->epoch_lock);
	old = dev->epoch;
	dev->epoch = epoch;
	if (dev->state != NFCOMMS_STATE_REMOVED)
		dev->state = NFCOMMS_STATE_READY;
	spin_unlock(&dev->epoch_lock);
	if (atomic_read(&epoch->down)) /* it failed meanwhile */
		nfcm_dev_set_state(dev, NFCOMMS_STATE_LOST);
	if (old)
		nfcm_epoch_put(old);
	return 0;
}

/*
 * Start an epoch: after probe, FLR, resume, slot reset. One may be alive: of several
 * functions below a port each has its slot reset, also one that saw no error.
 */
int nfcm_dev_up(struct nfcm_dev *dev)
{
	static const struct nfcomms_reset any_shape = {};
	int rc = -ENODEV;

	mutex_lock(&dev->epoch_mutex);
	dev->away = false;
	dev->error_at = 0;
	dev->rests = false;
	if (!dev->removed) {
		end_epoch(dev, NFC_ERESET);
		rc = boot(dev, &any_shape);
	}
	if (rc)
		nfcm_dev_set_state(dev, NFCOMMS_STATE_LOST);
	mutex_unlock(&dev->epoch_mutex);
	return rc;
}

static void take_down(struct nfcm_dev *dev, u32 status, u32 state)
{
	lockdep_assert_held(&dev->epoch_mutex);
	end_epoch(dev, status);
	dev->away = state == NFCOMMS_STATE_RESETTING;
	dev->error_at = 0;
	dev->rests = true;
	nfcm_dev_set_state(dev, state);
}

/*
 * End the epoch and wait until DMA is quiet. state is what the device is in then;
 * of one that is RESETTING nobody boots another until nfcm_dev_up().
 */
void nfcm_dev_down(struct nfcm_dev *dev, u32 status, u32 state)
{
	mutex_lock(&dev->epoch_mutex);
	take_down(dev, status, state);
	mutex_unlock(&dev->epoch_mutex);
}

/* The same for an error of the bus, which need not call nfcm_dev_up(). */
void nfcm_dev_error(struct nfcm_dev *dev)
{
	mutex_lock(&dev->epoch_mutex);
	take_down(dev, NFC_ERESET, NFCOMMS_STATE_RESETTING);
	dev->error_at = jiffies ?: 1;
	mutex_unlock(&dev->epoch_mutex);
}

/*
 * The bus has given up a recovery, without a call: another function below the port
 * could not take part in it. Config space is as after a reset of the link.
 */
static bool given_up(struct nfcm_dev *dev)
{
	lockdep_assert_held(&dev->epoch_mutex);
	return dev->error_at &&
	       time_after(jiffies, dev->error_at + msecs_to_jiffies(ERROR_MS)) &&
	       pci_device_is_present(dev->pdev);
}

/* End the epoch and boot the next, with a shape. */
static int reset(struct nfcm_dev *dev, const struct nfcomms_reset *shape)
{
	int rc;

	lockdep_assert_held(&dev->epoch_mutex);
	end_epoch(dev, NFC_ERESET);
	nfcm_dev_set_state(dev, NFCOMMS_STATE_RESETTING);
	nfcm_count(dev, NFCM_COUNT_RESETS, 1);
	dev->rests = false;
	rc = boot(dev, shape);
	if (rc)
		nfcm_dev_set_state(dev, NFCOMMS_STATE_LOST);
	return rc;
}

/* NFCOMMS_IOC_RESET. -EBUSY while the bus has the function. */
int nfcm_dev_reset(struct nfcm_dev *dev, const struct nfcomms_reset *shape)
{
	int rc;

	if (mutex_lock_killable(&dev->epoch_mutex))
		return -EINTR;
	rc = dev->removed ? -ENODEV : -EBUSY;
	if (!dev->removed && given_up(dev)) {
		nfcm_hw_put_back(dev);
		dev->away = false;
		dev->error_at = 0;
	}
	if (!dev->removed && !dev->away)
		rc = reset(dev, shape);
	mutex_unlock(&dev->epoch_mutex);
	return rc;
}

/* An epoch failed a while ago, and nobody did anything about it since. */
static void recover(struct work_struct *work)
{
	static const struct nfcomms_reset any_shape = {};
	struct nfcm_dev *dev = container_of(to_delayed_work(work),
					    struct nfcm_dev, recover);
	u32 state;

	mutex_lock(&dev->epoch_mutex);
	state = nfcm_dev_state(dev);
	if (!dev->removed && !dev->rests &&
	    (state == NFCOMMS_STATE_LOST || state == NFCOMMS_STATE_FAULT))
		dev_info(&dev->dev, "recovery: %d\n", reset(dev, &any_shape));
	mutex_unlock(&dev->epoch_mutex);
}

/* Have a device that is there keep its limits; another does from its next boot on. */
void nfcm_dev_limit(struct nfcm_dev *dev)
{
	mutex_lock(&dev->epoch_mutex);
	if (!dev->away && !nfcm_hw_gone(dev))
		nfcm_hw_limit(dev);
	mutex_unlock(&dev->epoch_mutex);
}

/* Part of making the record of a function. */
void nfcm_dev_init(struct nfcm_dev *dev)
{
	mutex_init(&dev->epoch_mutex);
	spin_lock_init(&dev->epoch_lock);
	INIT_LIST_HEAD(&dev->files);
	spin_lock_init(&dev->imports_lock);
	INIT_LIST_HEAD(&dev->imports);
	INIT_DELAYED_WORK(&dev->recover, recover);
	dev->state = NFCOMMS_STATE_RESETTING;
	dev->limits = (struct nfcm_limits){
		.holdoff = nfcm_param_holdoff,
		.watchdog_timeout_ms = nfcm_param_watchdog_timeout_ms,
		.max_operations = nfcm_param_max_operations,
		.cancel_timeout_ms = nfcm_param_cancel_timeout_ms,
		.heartbeat_timeout_ms = nfcm_param_heartbeat_timeout_ms,
		.heartbeat_misses = nfcm_param_heartbeat_misses,
		.stall_timeout_ms = nfcm_param_stall_timeout_ms,
		.busy_poll_max = min_t(u32, nfcm_param_busy_poll_max,
				       NFCM_BUSY_POLL_MAX),
		.adaptive = nfcm_param_adaptive,
		.recovery = nfcm_param_recovery,
		.register_access = nfcm_param_register_access,
	};
}

/* An open file of the device that has regions, with a reference; NULL: none has. */
static struct nfcm_file *file_with_regions(struct nfcm_dev *dev)
{
	struct nfcm_file *file, *found = NULL;

	spin_lock(&dev->epoch_lock);
	list_for_each_entry(file, &dev->files, node) {
		xa_lock(&file->regions.handles); /* a REGISTER checks removed under it */
		if (file->regions.count)
			found = file;
		xa_unlock(&file->regions.handles);
		if (found)
			break;
	}
	if (found)
		nfcm_file_get(found);
	spin_unlock(&dev->epoch_lock);
	return found;
}

/* No file has regions any more; none gets one, as the device is removed. */
static void revoke_regions(struct nfcm_dev *dev)
{
	struct nfcm_file *file;

	while ((file = file_with_regions(dev))) {
		nfcm_region_revoke_all(file);
		nfcm_file_put(file);
	}
}

/*
 * The driver releases the function: nothing touches a register, and nothing
 * is mapped for DMA any more.
 */
void nfcm_dev_remove(struct nfcm_dev *dev)
{
	struct nfcm_epoch *epoch;

	mutex_lock(&dev->epoch_mutex);
	end_epoch(dev, NFC_ERESET);
	spin_lock(&dev->epoch_lock);
	epoch = dev->epoch;
	dev->epoch = NULL;
	dev->state = NFCOMMS_STATE_REMOVED;
	WRITE_ONCE(dev->removed, true);
	spin_unlock(&dev->epoch_lock);
	revoke_regions(dev);
	mutex_unlock(&dev->epoch_mutex);
	cancel_delayed_work_sync(&dev->recover);
	/*
	 * A thread that maps checks the epoch first, and this is after its end.
	 * Or it enters a region, which finds that the device is removed, or was
	 * revoked above.
	 */
	wait_var_event(&dev->mapped, !atomic_read(&dev->mapped));
	if (epoch)
		nfcm_epoch_put(epoch);
}
