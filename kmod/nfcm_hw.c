// SPDX-License-Identifier: GPL-2.0-only
/* The registers of BAR 0, and the device's boot, reset and end. */
#include <linux/delay.h>
#include <linux/dma-mapping.h>
#include <linux/io.h>
#include <linux/iopoll.h>

#include "nfcm_kmod.h"
#include "nfcm_errno.h"

enum {
	BOOT_US = 10 * USEC_PER_SEC, /* for a RESET */
	QUIESCE_US = USEC_PER_SEC,
	POLL_US = 100,
};

static u32 reg(struct nfcm_dev *dev, u32 at)
{
	return readl(dev->regs + at);
}

static void set_reg(struct nfcm_dev *dev, u32 at, u32 value)
{
	writel(value, dev->regs + at);
}

/* A device off the bus reads as all ones. */
bool nfcm_hw_gone(struct nfcm_dev *dev)
{
	return READ_ONCE(dev->removed) || reg(dev, NFC_REG_ID) == ~0u;
}

/* The STATUS register; all ones from a device off the bus. No locks. */
u32 nfcm_hw_status(struct nfcm_dev *dev)
{
	return reg(dev, NFC_REG_STATUS);
}

/* Is it a device that this driver knows? For probe, before interrupts and epochs. */
int nfcm_hw_identify(struct nfcm_dev *dev)
{
	u32 id = reg(dev, NFC_REG_ID), version, abi;

	if (id == ~0u)
		return -ENODEV;
	version = reg(dev, NFC_REG_VERSION);
	abi = reg(dev, NFC_REG_ABI);
	if (id != NFC_MAGIC || version >> 16 != NFC_PCI_MAJOR) {
		dev_err(&dev->pdev->dev,
			"id %#x, register interface %u.%u: this driver knows %u.x\n",
			id, version >> 16, version & 0xffff, NFC_PCI_MAJOR);
		return -ENODEV;
	}
	if (abi >> 16 != NFC_ABI_MAJOR) {
		dev_err(&dev->pdev->dev,
			"firmware of ABI %u.%u: this driver knows %u.x\n",
			abi >> 16, abi & 0xffff, NFC_ABI_MAJOR);
		return -ENODEV;
	}
	dev->capabilities = reg(dev, NFC_REG_CAPABILITIES);
	return 0;
}

/* How far interrupts are apart, at least; what all have, then what a vector adapted to. */
static void hold_off(struct nfcm_dev *dev)
{
	u32 most = min_t(u32, READ_ONCE(dev->limits.holdoff), NFCM_HOLDOFF_MAX);
	bool adapts = nfcm_adapts(dev);
	struct nfcm_vector *v;
	u32 i;

	lockdep_assert_held(&dev->epoch_mutex);
	set_reg(dev, NFC_REG_HOLDOFF, most);
	for (i = 0; i < dev->vectors; i++) {
		v = &dev->vector[i];
		v->holdoff = most;
		if (!adapts)
			continue;
		v->holdoff >>= NFCM_HOLDOFF_STEPS -
			       min_t(u32, v->dim.profile_ix, NFCM_HOLDOFF_STEPS);
		set_reg(dev, NFC_REG_VECTOR_HOLDOFF + 4 * i, v->holdoff);
	}
}

/* The limits that the device keeps itself. */
void nfcm_hw_limit(struct nfcm_dev *dev)
{
	lockdep_assert_held(&dev->epoch_mutex);
	if (dev->capabilities & NFC_PCI_CAP_HOLDOFF)
		hold_off(dev);
	if (dev->capabilities & NFC_PCI_CAP_WATCHDOG)
		set_reg(dev, NFC_REG_WATCHDOG,
			READ_ONCE(dev->limits.watchdog_timeout_ms));
}

/* Interrupts and limits; a reset of the function clears these registers. */
static void configure(struct nfcm_dev *dev)
{
	set_reg(dev, NFC_REG_VECTORS, dev->vectors);
	nfcm_hw_limit(dev);
	nfcm_hw_beat(dev);
}

/* Shape of the next epoch; zeros leave it to the device. */
static int set_shape(struct nfcm_dev *dev, const struct nfcomms_reset *s)
{
	bool any = s->channels || s->mailboxes || s->islands || s->slots ||
		   s->window || s->timeout_ms || s->emem;

	if (!(dev->capabilities & NFC_PCI_CAP_SHAPE))
		return any ? -EOPNOTSUPP : 0;
	set_reg(dev, NFC_REG_SHAPE_CHANNELS, s->channels);
	set_reg(dev, NFC_REG_SHAPE_MAILBOXES, s->mailboxes);
	set_reg(dev, NFC_REG_SHAPE_ISLANDS, s->islands);
	set_reg(dev, NFC_REG_SHAPE_SLOTS, s->slots);
	set_reg(dev, NFC_REG_SHAPE_WINDOW, s->window);
	set_reg(dev, NFC_REG_SHAPE_TIMEOUT, s->timeout_ms);
	set_reg(dev, NFC_REG_SHAPE_EMEM, (u32)(s->emem >> NFC_PAGE_SHIFT));
	return 0;
}

/*
 * Restore the config space of the device's last start. The kernel's saved copy
 * need not be that: a reset of a function whose link was just lost saves
 * nothing.
 */
void nfcm_hw_put_back(struct nfcm_dev *dev)
{
	if (dev->settings)
		pci_load_saved_state(dev->pdev, dev->settings);
	pci_restore_state(dev->pdev);
}

/* Nothing of the device reaches memory any more. */
void nfcm_hw_fence(struct nfcm_dev *dev)
{
	pci_clear_master(dev->pdev);
}

/*
 * End the device's epoch, if it has one, and boot the next. Its mailboxes are
 * in the BAR when this returns 0. Until BUSY is clear the device may continue
 * with DMA of the epoch before, whose memory others have by now: bus mastering
 * is off.
 */
int nfcm_hw_boot(struct nfcm_dev *dev, const struct nfcomms_reset *shape)
{
	u32 status;
	int rc;

	lockdep_assert_held(&dev->epoch_mutex);
	if (nfcm_hw_gone(dev))
		return -ENODEV;
	nfcm_hw_fence(dev);
	configure(dev);
	rc = set_shape(dev, shape);
	if (rc)
		return rc;
	set_reg(dev, NFC_REG_CONTROL, NFC_PCI_CONTROL_RESET);
	rc = readl_poll_timeout(dev->regs + NFC_REG_STATUS, status,
				!(status & NFC_PCI_STATUS_BUSY) || status == ~0u,
				POLL_US, BOOT_US);
	if (status == ~0u)
		return -ENODEV;
	if (rc) {
		dev_err(&dev->pdev->dev, "no boot within %u s\n",
			(unsigned int)(BOOT_US / USEC_PER_SEC));
		return rc;
	}
	if (dev->capabilities & NFC_PCI_CAP_SHAPE) {
		rc = -nfcm_status_errno(reg(dev, NFC_REG_SHAPE_STATUS));
		if (rc)
			return rc;
	}
	configure(dev);
	if ((status & NFC_PCI_STATUS_STATE) == NFC_DEVICE_READY) {
		pci_set_master(dev->pdev);
		return 0;
	}
	dev_err(&dev->pdev->dev, "state %u after boot\n",
		status & NFC_PCI_STATUS_STATE);
	return -EIO;
}

/*
 * Make sure that the device does no more DMA: request it, then turn bus mastering
 * off, also of a device that seems to be off the bus. Sleeps. Memory may be unmapped
 * after it.
 */
void nfcm_hw_quiesce(struct nfcm_dev *dev)
{
	int rc = -ENODEV;
	u32 status;

	if (!nfcm_hw_gone(dev)) {
		set_reg(dev, NFC_REG_CONTROL, NFC_PCI_CONTROL_QUIESCE);
		rc = readl_poll_timeout(dev->regs + NFC_REG_STATUS, status,
					!(status & (NFC_PCI_STATUS_BUSY |
						    NFC_PCI_STATUS_DMA)) ||
						status == ~0u,
					POLL_US, QUIESCE_US);
		rc = status == ~0u ? -ENODEV : rc;
	}
	nfcm_hw_fence(dev);
	if (!pci_device_is_present(dev->pdev))
		return;
	if (!pci_wait_for_pending_transaction(dev->pdev) || rc)
		dev_warn(&dev->pdev->dev,
			 "not quiet by itself: bus mastering is off\n");
}

/* A sign of life for the device's watchdog. No locks. */
void nfcm_hw_beat(struct nfcm_dev *dev)
{
	set_reg(dev, NFC_REG_HOST_BEAT, 1);
}

/* Check the device's hello. */
int nfcm_hw_hello(struct nfcm_dev *dev, struct nfcm_layout *l)
{
	struct nfc_area area;
	const char *why;
	int rc;

	lockdep_assert_held(&dev->epoch_mutex);
	memcpy_fromio(&area, dev->area, sizeof(area));
	rc = nfcm_layout_check(&area, dev->room, l, &why);
	if (rc)
		dev_err(&dev->pdev->dev, "handshake: %s\n", why);
	return rc;
}

/*
 * Give the device memory of the host's to write in, if it knows what to do with it
 * and there is some; else its rings are in the BAR. Before the answer to its hello.
 */
void nfcm_hw_give_area(struct nfcm_epoch *epoch)
{
	struct nfcm_layout *l = &epoch->layout;

	if (!(l->capabilities & NFC_CAP_HOST_RINGS))
		return;
	epoch->host_area = dma_alloc_coherent(&epoch->dev->pdev->dev,
					      nfcm_layout_host_area(l),
					      &epoch->host_area_at,
					      GFP_KERNEL | __GFP_NOWARN);
	if (!epoch->host_area)
		l->capabilities &= ~(u32)NFC_CAP_HOST_RINGS;
}

/* Take it back: DMA is fenced, and nobody looks there any more. */
void nfcm_hw_take_area(struct nfcm_epoch *epoch)
{
	if (epoch->host_area)
		dma_free_coherent(&epoch->dev->pdev->dev,
				  nfcm_layout_host_area(&epoch->layout),
				  epoch->host_area, epoch->host_area_at);
	epoch->host_area = NULL;
}

/* Answer the device's hello: nothing is put before. */
void nfcm_hw_answer(struct nfcm_epoch *epoch)
{
	void __iomem *area = epoch->dev->area;
	void __iomem *to = area + offsetof(struct nfc_area, host_hello);
	struct nfc_slot hello = {};

	nfcm_layout_answer(&epoch->layout, &hello);
	if (epoch->host_area)
		writeq(epoch->host_area_at,
		       area + offsetof(struct nfc_area, host_area));
	memcpy_toio(to + offsetof(struct nfc_slot, payload), hello.payload,
		    sizeof(hello.payload));
	wmb(); /* the area is mapped write-combining */
	writeq(le64_to_cpu(hello.header), to);
	wmb(); /* likewise */
}
