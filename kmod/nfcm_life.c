// SPDX-License-Identifier: GPL-2.0-only
/*
 * Lives of a device. A life ends once: DMA is fenced first, then every
 * operation is told, and only what was told gives its memory back.
 */
#include <linux/sched/signal.h>
#include <linux/slab.h>
#include <linux/wait_bit.h>

#include "nfcm_kmod.h"
#include "trace.h"

static void life_free(struct kref *ref)
{
	struct nfcm_life *life = container_of(ref, struct nfcm_life, ref);

	xa_destroy(&life->channels);
	put_device(&life->dev->dev);
	kvfree(life);
}

/* Must not hold a box of it. */
void nfcm_life_put(struct nfcm_life *life)
{
	kref_put(&life->ref, life_free);
}

/* The present life, with a reference; NULL if there is none, or no device. */
struct nfcm_life *nfcm_life_get(struct nfcm_dev *dev)
{
	struct nfcm_life *life;

	spin_lock(&dev->life_lock);
	life = dev->life;
	if (life)
		kref_get(&life->ref);
	spin_unlock(&dev->life_lock);
	return life;
}

static void set_state(struct nfcm_dev *dev, u32 state)
{
	spin_lock(&dev->life_lock);
	if (dev->state != NFCOMMS_STATE_REMOVED)
		dev->state = state;
	spin_unlock(&dev->life_lock);
}

/* An enum nfcomms_state, which may be another at once. No locks. */
u32 nfcm_dev_state(struct nfcm_dev *dev)
{
	return READ_ONCE(dev->state);
}

/* Stop DMA and only then tell the operations. */
static void fence_work(struct work_struct *work)
{
	struct nfcm_life *life = container_of(work, struct nfcm_life, fence);
	u32 status = atomic_read(&life->down), i;

	trace_nfcomms_life(life->layout.epoch, status);
	nfcm_hw_quiesce(life->dev);
	nfcm_watch_stop(life);
	for (i = 0; i < life->boxes; i++) {
		nfcm_box_kill(&life->box[i], status);
		cond_resched();
	}
	nfcm_control_close(life);
	complete_all(&life->quiet);
	nfcm_life_put(life);
}

/*
 * End a life: NFC_EFAULT for a device that broke the protocol, NFC_ERESET for
 * one that is lost. Does not wait, so it may be called under any lock.
 */
void nfcm_life_fail(struct nfcm_life *life, u32 status, const char *why)
{
	struct nfcm_dev *dev = life->dev;

	if (atomic_cmpxchg(&life->down, 0, status))
		return;
	if (status == NFC_EFAULT)
		nfcm_count(dev, NFCM_COUNT_FAULTS, 1);
	if (why)
		dev_err(&dev->pdev->dev, "epoch %u ends: %s\n",
			life->layout.epoch, why);
	set_state(dev, status == NFC_EFAULT ? NFCOMMS_STATE_FAULT :
					      NFCOMMS_STATE_LOST);
	kref_get(&life->ref);
	queue_work(nfcm_life_wq, &life->fence);
}

/* A life for a device that has booted. */
static struct nfcm_life *life_new(struct nfcm_dev *dev,
				  const struct nfcm_layout *l)
{
	struct nfcm_life *life;
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
	nfcm_control_init(life);
	for (i = 0; i < life->boxes; i++)
		nfcm_box_init(life, i);
	nfcm_watch_start(life);
	rc = nfcm_control_open(life);
	if (rc) {
		nfcm_life_fail(life, NFC_ERESET, NULL);
		wait_for_completion(&life->quiet);
		nfcm_life_put(life);
		return ERR_PTR(rc);
	}
	return life;
}

/* End the present life and wait until DMA is quiet. Must hold life_mutex. */
static void bury(struct nfcm_dev *dev, u32 status)
{
	struct nfcm_life *life = nfcm_life_get(dev);

	if (!life)
		return;
	nfcm_life_fail(life, status, NULL);
	wait_for_completion(&life->quiet);
	nfcm_life_put(life);
}

/* Boot and shake hands. Must hold life_mutex. */
static int boot(struct nfcm_dev *dev, const struct nfcomms_reset *shape)
{
	struct nfcm_life *life, *old;
	struct nfcm_layout l;
	int rc;

	rc = nfcm_hw_boot(dev, shape);
	if (!rc)
		rc = nfcm_hw_handshake(dev, &l);
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
		nfcm_life_put(old);
	trace_nfcomms_life(life->layout.epoch, 0);
	return 0;
}

/* Begin a life: after probe, FLR, resume, slot reset. */
int nfcm_dev_up(struct nfcm_dev *dev)
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
void nfcm_dev_down(struct nfcm_dev *dev, u32 status, u32 state)
{
	mutex_lock(&dev->life_mutex);
	bury(dev, status);
	set_state(dev, state);
	mutex_unlock(&dev->life_mutex);
}

/* NFCOMMS_IOC_RESET: end the life and boot the next, with a shape. */
int nfcm_dev_reset(struct nfcm_dev *dev, const struct nfcomms_reset *shape)
{
	int rc;

	if (mutex_lock_killable(&dev->life_mutex))
		return -EINTR;
	rc = -ENODEV;
	if (!dev->removed) {
		bury(dev, NFC_ERESET);
		set_state(dev, NFCOMMS_STATE_RESETTING);
		nfcm_count(dev, NFCM_COUNT_RESETS, 1);
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
void nfcm_dev_remove(struct nfcm_dev *dev)
{
	struct nfcm_life *life;

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
		nfcm_life_put(life);
}
