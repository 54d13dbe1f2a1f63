// SPDX-License-Identifier: GPL-2.0-only
/* Epochs of a device: references to them, and that they fail. */
#include <linux/slab.h>

#include "nfcm_kmod.h"

static void epoch_free(struct kref *ref)
{
	struct nfcm_epoch *epoch = container_of(ref, struct nfcm_epoch, ref);

	nfcm_assert_left(&epoch->control.queue);
	nfcm_assert_left(&epoch->control.later);
	nfcm_assert_left(&epoch->control.processes);
	xa_destroy(&epoch->channels);
	put_device(&epoch->dev->dev);
	kvfree(epoch);
}

/* Must not hold a mailbox of it. */
void nfcm_epoch_put(struct nfcm_epoch *epoch)
{
	kref_put(&epoch->ref, epoch_free);
}

/* The present epoch, with a reference; NULL if there is none, or no device. */
struct nfcm_epoch *nfcm_epoch_get(struct nfcm_dev *dev)
{
	struct nfcm_epoch *epoch;

	spin_lock(&dev->epoch_lock);
	epoch = dev->epoch;
	if (epoch)
		kref_get(&epoch->ref);
	spin_unlock(&dev->epoch_lock);
	return epoch;
}

/* A device that is removed stays so. Takes epoch_lock. */
void nfcm_dev_set_state(struct nfcm_dev *dev, u32 state)
{
	spin_lock(&dev->epoch_lock);
	if (dev->state != NFCOMMS_STATE_REMOVED)
		dev->state = state;
	spin_unlock(&dev->epoch_lock);
}

/* An enum nfcomms_state, which may be another at once. No locks. */
u32 nfcm_dev_state(struct nfcm_dev *dev)
{
	return READ_ONCE(dev->state);
}

/*
 * End an epoch: NFC_EFAULT for a device that broke the protocol, NFC_ERESET for
 * one that is lost. Does not wait, so it may be called under any lock.
 */
void nfcm_epoch_fail(struct nfcm_epoch *epoch, u32 status, const char *why)
{
	struct nfcm_dev *dev = epoch->dev;

	if (atomic_cmpxchg(&epoch->down, 0, status))
		return;
	epoch->lost = why && status == NFC_ERESET;
	if (status == NFC_EFAULT)
		nfcm_count(dev, NFCM_COUNT_FAULTS, 1);
	if (why)
		dev_err(&dev->pdev->dev, "epoch %u ends: %s\n",
			epoch->layout.epoch, why);
	nfcm_dev_set_state(dev, status == NFC_EFAULT ? NFCOMMS_STATE_FAULT :
						       NFCOMMS_STATE_LOST);
	kref_get(&epoch->ref);
	queue_work(nfcm_wq, &epoch->fence);
}
