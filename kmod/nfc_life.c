// SPDX-License-Identifier: GPL-2.0-only
/*
 * Lives of a device. A life ends once: DMA is fenced first, then every
 * operation is told, and only what was told gives its memory back.
 */
#include <linux/sched/signal.h>
#include <linux/slab.h>
#include <linux/wait_bit.h>

#include "nfc_kmod.h"
#include "trace.h"

static void life_free(struct kref *ref)
{
	struct nfc_life *life = container_of(ref, struct nfc_life, ref);

	xa_destroy(&life->channels);
	put_device(&life->dev->dev);
	kvfree(life);
}

/* Must not hold a box of it. */
void nfc_life_put(struct nfc_life *life)
{
	kref_put(&life->ref, life_free);
}

/* The present life, with a reference; NULL if there is none, or no device. */
struct nfc_life *nfc_life_get(struct nfc_dev *dev)
{
	struct nfc_life *life;

	spin_lock(&dev->life_lock);
	life = dev->life;
	if (life)
		kref_get(&life->ref);
	spin_unlock(&dev->life_lock);
	return life;
}

static void set_state(struct nfc_dev *dev, u32 state)
{
	spin_lock(&dev->life_lock);
	if (dev->state != NFCOMMS_STATE_REMOVED)
		dev->state = state;
	spin_unlock(&dev->life_lock);
}

/* An enum nfcomms_state, which may be another at once. No locks. */
u32 nfc_dev_state(struct nfc_dev *dev)
{
	return READ_ONCE(dev->state);
}

/* Stop DMA and only then tell the operations. */
static void fence_work(struct work_struct *work)
{
	struct nfc_life *life = container_of(work, struct nfc_life, fence);
	u32 status = atomic_read(&life->down), i;

	trace_nfcomms_life(life->layout.epoch, status);
	nfc_hw_quiesce(life->dev);
	nfc_watch_stop(life);
	for (i = 0; i < life->boxes; i++) {
		nfc_box_kill(&life->box[i], status);
		cond_resched();
	}
	nfc_control_close(life);
	complete_all(&life->quiet);
	nfc_life_put(life);
}

/*
 * End a life: NFC_EFAULT for a device that broke the protocol, NFC_ERESET for
 * one that is lost. Does not wait, so it may be called under any lock.
 */
void nfc_life_fail(struct nfc_life *life, u32 status, const char *why)
{
	struct nfc_dev *dev = life->dev;

	if (atomic_cmpxchg(&life->down, 0, status))
		return;
	if (status == NFC_EFAULT)
		nfc_count(dev, NFC_COUNT_FAULTS, 1);
	if (why)
		dev_err(&dev->pdev->dev, "epoch %u ends: %s\n",
			life->layout.epoch, why);
	set_state(dev, status == NFC_EFAULT ? NFCOMMS_STATE_FAULT :
					      NFCOMMS_STATE_LOST);
	kref_get(&life->ref);
	queue_work(nfc_life_wq, &life->fence);
}

/* A life for a device that has booted. */
static struct nfc_life *life_new(struct nfc_dev *dev, const struct nfc_layout *l)
{
	struct nfc_life *life;
	u32 i;
	int rc;

	life = kvzalloc(struct_size(life, box, l->mailboxes), GFP_KERNEL);
	if (!life)
		return ERR_PTR(-ENOMEM);
	kref_init(&life->ref);
	get_device(&dev->dev);
	life->dev = dev;
	life->layout = *l;
	life->boxes = l->mailboxes;
	xa_init(&life->channels);
	init_completion(&life->quiet);
	INIT_WORK(&life->fence, fence_work);
	nfc_control_init(life);
	for (i = 0; i < life->boxes; i++)
		nfc_box_init(life, i);
	nfc_watch_start(life);
	rc = nfc_control_open(life);
	if (rc) {
		nfc_life_fail(life, NFC_ERESET, NULL);
		wait_for_completion(&life->quiet);
		nfc_life_put(life);
		return ERR_PTR(rc);
	}
	return life;
}

/* End the present life and wait until DMA is quiet. Must hold life_mutex. */
static void bury(struct nfc_dev *dev, u32 status)
{
	struct nfc_life *life = nfc_life_get(dev);

	if (!life)
		return;
	nfc_life_fail(life, status, NULL);
	wait_for_completion(&life->quiet);
	nfc_life_put(life);
}

/* Boot and shake hands. Must hold life_mutex. */
static int boot(struct nfc_dev *dev, const struct nfcomms_reset *shape)
{
	struct nfc_life *life, *old;
	struct nfc_layout l;
	int rc;

	rc = nfc_hw_boot(dev, shape);
	if (!rc)
		rc = nfc_hw_handshake(dev, &l);
	if (rc)
		return rc;
	life = life_new(dev, &l);
	if (IS_ERR(life))
		return PTR_ERR(life);
	spin_lock(&dev->life_lock);
	old = dev->life;
	dev->life = life;
	if (dev->state != NFCOMMS_STATE_REMOVED)
		dev->state = NFCOMMS_STATE_READY;
	spin_unlock(&dev->life_lock);
	if (atomic_read(&life->down)) /* it failed meanwhile */
		set_state(dev, NFCOMMS_STATE_LOST);
	if (old)
		nfc_life_put(old);
	trace_nfcomms_life(life->layout.epoch, 0);
	return 0;
}

/* Begin a life: after probe, FLR, resume, slot reset. */
int nfc_dev_up(struct nfc_dev *dev)
{
	static const struct nfcomms_reset as_it_likes = {};
	int rc;

	mutex_lock(&dev->life_mutex);
	rc = dev->removed ? -ENODEV : boot(dev, &as_it_likes);
	if (rc)
		set_state(dev, NFCOMMS_STATE_LOST);
	mutex_unlock(&dev->life_mutex);
	return rc;
}

/* End a life and wait until DMA is quiet. state is what the device is in then. */
void nfc_dev_down(struct nfc_dev *dev, u32 status, u32 state)
{
	mutex_lock(&dev->life_mutex);
	bury(dev, status);
	set_state(dev, state);
	mutex_unlock(&dev->life_mutex);
}

/* NFCOMMS_IOC_RESET: end the life and boot the next, with a shape. */
int nfc_dev_reset(struct nfc_dev *dev, const struct nfcomms_reset *shape)
{
	int rc;

	if (mutex_lock_killable(&dev->life_mutex))
		return -EINTR;
	rc = -ENODEV;
	if (!dev->removed) {
		bury(dev, NFC_ERESET);
		set_state(dev, NFCOMMS_STATE_RESETTING);
		nfc_count(dev, NFC_COUNT_RESETS, 1);
		rc = boot(dev, shape);
		if (rc)
			set_state(dev, NFCOMMS_STATE_LOST);
	}
	mutex_unlock(&dev->life_mutex);
	return rc;
}

/*
 * The driver lets go of the function: nothing touches a register, and nothing
 * is mapped for DMA any more.
 */
void nfc_dev_remove(struct nfc_dev *dev)
{
	struct nfc_life *life;

	mutex_lock(&dev->life_mutex);
	bury(dev, NFC_ERESET);
	spin_lock(&dev->life_lock);
	life = dev->life;
	dev->life = NULL;
	dev->state = NFCOMMS_STATE_REMOVED;
	WRITE_ONCE(dev->removed, true);
	spin_unlock(&dev->life_lock);
	mutex_unlock(&dev->life_mutex);
	/* Who maps looks at the life first, and this is after its end. */
	wait_var_event(&dev->mapped, !atomic_read(&dev->mapped));
	if (life)
		nfc_life_put(life);
}
