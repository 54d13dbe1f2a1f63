// SPDX-License-Identifier: GPL-2.0-only
/*
 * Interrupts: the hard handler only wakes its thread, which drains the rings of
 * its islands. With one vector all interrupts are on it; with more, vector 0 is
 * for changes of the device's state, and the islands share the others.
 */
#include <linux/delay.h>

#include "nfcm_kmod.h"
#include "trace.h"

enum {
	BURST_MAX = 64, /* interrupts while the thread runs once: a storm */
	MASK_US = 1000, /* the vector is masked for so long then */
};

/* The vector that rings for an island. */
u32 nfcm_irq_vector(struct nfcm_dev *dev, u32 island)
{
	return dev->vectors == 1 ? 0 : 1 + island % (dev->vectors - 1);
}

static irqreturn_t hard_irq(int irq, void *data)
{
	struct nfcm_vector *v = data;

	nfcm_count(v->dev, NFCM_COUNT_INTERRUPTS, 1);
	atomic64_inc(&v->count);
	/*
	 * While it is masked the interrupt core keeps further interrupts pending, so a
	 * storm costs bounded time and nothing is lost.
	 */
	if (atomic_inc_return(&v->burst) == BURST_MAX) {
		disable_irq_nosync(irq);
		WRITE_ONCE(v->masked, true);
	}
	/*
	 * Counting burst was the barrier between count and the check for
	 * waiters.
	 */
	if (waitqueue_active(&v->wait))
		wake_up_all(&v->wait);
	return IRQ_WAKE_THREAD;
}

/* The device's state may have changed. */
static void check_state(struct nfcm_epoch *epoch)
{
	u32 status = nfcm_hw_status(epoch->dev);

	if (nfcm_hw_gone(epoch->dev))
		nfcm_epoch_fail(epoch, NFC_ERESET, "the device is gone");
	else if ((status & NFC_PCI_STATUS_STATE) == NFC_DEVICE_FAULT)
		nfcm_epoch_fail(epoch, NFC_EFAULT, "the device is in fault");
	else if (status & NFC_PCI_STATUS_WATCHDOG)
		nfcm_epoch_fail(epoch, NFC_ERESET, "the device missed the host");
}

static u32 serve(struct nfcm_epoch *epoch, u32 index)
{
	struct nfcm_dev *dev = epoch->dev;
	struct nfcm_mailbox *mailbox;
	u32 i, messages = 0;

	for (i = 0; i < epoch->mailboxes; i++) {
		mailbox = &epoch->mailbox[i];
		if (nfcm_irq_vector(dev, mailbox->island) == index)
			messages += nfcm_mailbox_drain_all(mailbox,
							   epoch->layout.slots);
	}
	if (!index && !messages)
		check_state(epoch);
	return messages;
}

static irqreturn_t thread_irq(int irq, void *data)
{
	struct nfcm_vector *v = data;
	struct nfcm_epoch *epoch;
	u32 messages = 0;

	/* A message from here on starts the thread again. */
	atomic_set(&v->burst, 0);
	epoch = nfcm_epoch_get(v->dev);
	if (epoch && !atomic_read(&epoch->down))
		messages = serve(epoch, v->index);
	if (epoch)
		nfcm_epoch_put(epoch);
	if (!messages)
		nfcm_count(v->dev, NFCM_COUNT_SPURIOUS, 1);
	nfcm_moder_sample(v, messages);
	trace_nfcomms_irq(v->dev->minor, v->index, messages);
	if (READ_ONCE(v->masked)) {
		usleep_range(MASK_US, 2 * MASK_US);
		WRITE_ONCE(v->masked, false);
		enable_irq(irq);
	}
	return IRQ_HANDLED;
}

static int request(struct nfcm_dev *dev, u32 i)
{
	struct nfcm_vector *v = &dev->vector[i];

	v->dev = dev;
	v->index = i;
	init_waitqueue_head(&v->wait);
	nfcm_moder_init(v);
	v->irq = pci_irq_vector(dev->pdev, i);
	snprintf(v->name, sizeof(v->name), NFCM_NAME "%d-%u", dev->minor, i);
	return request_threaded_irq(v->irq, hard_irq, thread_irq, 0, v->name, v);
}

/* No handler of the vector runs or arrives any more. */
static void release(struct nfcm_vector *v)
{
	free_irq(v->irq, v);
	nfcm_moder_fini(v);
}

/* As many vectors as there are processors and one, unless a parameter sets their number. */
int nfcm_irq_init(struct nfcm_dev *dev)
{
	u32 want = nfcm_param_vectors ?: num_online_cpus() + 1;
	u32 i;
	int rc;

	rc = pci_alloc_irq_vectors(dev->pdev, 1,
				   min_t(u32, want, NFC_VECTORS_MAX),
				   PCI_IRQ_MSIX);
	if (rc < 0)
		return rc;
	dev->vectors = rc;
	for (i = 0; i < dev->vectors; i++) {
		rc = request(dev, i);
		if (!rc)
			continue;
		while (i--)
			release(&dev->vector[i]);
		pci_free_irq_vectors(dev->pdev);
		return rc;
	}
	return 0;
}

/* No epoch is left. Waits for handlers that run. No locks. */
void nfcm_irq_fini(struct nfcm_dev *dev)
{
	u32 i;

	for (i = 0; i < dev->vectors; i++) {
		release(&dev->vector[i]);
		wake_up_all(&dev->vector[i].wait);
	}
	pci_free_irq_vectors(dev->pdev);
}
