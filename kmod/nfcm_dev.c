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

/* Stop DMA and only then end the operations. */
static void fence_work(struct work_struct *work)
{
	struct nfcm_epoch *epoch = container_of(work, struct nfcm_epoch, fence);
	u32 status = atomic_read(&epoch->down), i;

	trace_nfcomms_epoch(epoch->layout.epoch, status);
	nfcm_hw_quiesce(epoch->dev);
	nfcm_watch_stop(epoch);
	for (i = 0; i < epoch->mailboxes; i++) {
		nfcm_mailbox_end(&epoch->mailbox[i], status);
		cond_resched();
	}
	nfcm_control_close(epoch);
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
	for (i = 0; i < epoch->mailboxes; i++)
		nfcm_mailbox_init(epoch, i);
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

/* End the present epoch and wait until DMA is quiet. Must hold epoch_mutex. */
static void end_epoch(struct nfcm_dev *dev, u32 status)
{
	struct nfcm_epoch *epoch = nfcm_epoch_get(dev);

	if (!epoch)
		return;
	nfcm_epoch_fail(epoch, status, NULL);
	wait_for_completion(&epoch->quiet);
	nfcm_epoch_put(epoch);
}

/* Boot and shake hands. Must hold epoch_mutex. */
static int boot(struct nfcm_dev *dev, const struct nfcomms_reset *shape)
{
	struct nfcm_epoch *epoch, *old;
	struct nfcm_layout l;
	int rc;

	rc = nfcm_hw_boot(dev, shape);
	if (!rc)
		rc = nfcm_hw_handshake(dev, &l);
	if (rc)
		return rc;
	epoch = epoch_new(dev, &l);
	if (IS_ERR(epoch))
		return PTR_ERR(epoch);
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
	trace_nfcomms_epoch(epoch->layout.epoch, 0);
	return 0;
}

/* Start an epoch: after probe, FLR, resume, slot reset. */
int nfcm_dev_up(struct nfcm_dev *dev)
{
	static const struct nfcomms_reset any_shape = {};
	int rc;

	mutex_lock(&dev->epoch_mutex);
	rc = dev->removed ? -ENODEV : boot(dev, &any_shape);
	if (rc)
		nfcm_dev_set_state(dev, NFCOMMS_STATE_LOST);
	mutex_unlock(&dev->epoch_mutex);
	return rc;
}

/* End the epoch and wait until DMA is quiet. state is what the device is in then. */
void nfcm_dev_down(struct nfcm_dev *dev, u32 status, u32 state)
{
	mutex_lock(&dev->epoch_mutex);
	end_epoch(dev, status);
	nfcm_dev_set_state(dev, state);
	mutex_unlock(&dev->epoch_mutex);
}

/* NFCOMMS_IOC_RESET: end the epoch and boot the next, with a shape. */
int nfcm_dev_reset(struct nfcm_dev *dev, const struct nfcomms_reset *shape)
{
	int rc;

	if (mutex_lock_killable(&dev->epoch_mutex))
		return -EINTR;
	rc = -ENODEV;
	if (!dev->removed) {
		end_epoch(dev, NFC_ERESET);
		nfcm_dev_set_state(dev, NFCOMMS_STATE_RESETTING);
		nfcm_count(dev, NFCM_COUNT_RESETS, 1);
		rc = boot(dev, shape);
		if (rc)
			nfcm_dev_set_state(dev, NFCOMMS_STATE_LOST);
	}
	mutex_unlock(&dev->epoch_mutex);
	return rc;
}

/*
 * The driver lets go of the function: nothing touches a register, and nothing
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
	mutex_unlock(&dev->epoch_mutex);
	/* Whoever maps checks the epoch first, and this is after its end. */
	wait_var_event(&dev->mapped, !atomic_read(&dev->mapped));
	if (epoch)
		nfcm_epoch_put(epoch);
}
