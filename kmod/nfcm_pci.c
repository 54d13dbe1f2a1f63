// SPDX-License-Identifier: GPL-2.0-only
/* The PCI function: found, lost, reset, suspended, in trouble. */
#include <linux/dma-mapping.h>
#include <linux/module.h>
#include <linux/slab.h>

#include "nfcm_kmod.h"

static void dev_free(struct device *d)
{
	struct nfcm_dev *dev = container_of(d, struct nfcm_dev, dev);

	pci_dev_put(dev->pdev);
	kfree(dev->settings);
	kfree(dev);
}

/* The driver's record of a function; it outlives it while files are open. */
static struct nfcm_dev *dev_new(struct pci_dev *pdev)
{
	struct nfcm_dev *dev = kzalloc(sizeof(*dev), GFP_KERNEL);

	if (!dev)
		return ERR_PTR(-ENOMEM);
	dev->minor = nfcm_minor_get();
	if (dev->minor < 0) {
		int rc = dev->minor;

		kfree(dev);
		return ERR_PTR(rc);
	}
	dev->pdev = pci_dev_get(pdev);
	nfcm_dev_init(dev);
	device_initialize(&dev->dev);
	dev->dev.class = &nfcm_class;
	dev->dev.parent = &pdev->dev;
	dev->dev.devt = nfcm_devt(dev->minor);
	dev->dev.release = dev_free;
	dev_set_drvdata(&dev->dev, dev);
	return dev;
}

/* Find one BAR and make it ours, 0 if it is too small; managed. */
static resource_size_t claim_bar(struct pci_dev *pdev, int bar, u64 least)
{
	resource_size_t at = pci_resource_start(pdev, bar);
	resource_size_t size = pci_resource_len(pdev, bar);

	if (!(pci_resource_flags(pdev, bar) & IORESOURCE_MEM) || size < least) {
		dev_err(&pdev->dev, "BAR %d: %pa bytes, need %llu\n", bar,
			&size, least);
		return 0;
	}
	return devm_request_mem_region(&pdev->dev, at, size, NFCM_NAME) ? size :
									  0;
}

static int map_bars(struct nfcm_dev *dev)
{
	struct pci_dev *pdev = dev->pdev;
	resource_size_t size = claim_bar(pdev, NFC_BAR_REGISTERS,
					 NFC_REGISTERS_SIZE);

	dev->room = claim_bar(pdev, NFC_BAR_MAILBOXES, sizeof(struct nfc_area));
	if (!size || !dev->room)
		return -ENODEV;
	dev->regs = devm_ioremap(&pdev->dev,
				 pci_resource_start(pdev, NFC_BAR_REGISTERS),
				 size);
	/* The stores of a slot become a burst. */
	dev->area = devm_ioremap_wc(&pdev->dev,
				    pci_resource_start(pdev, NFC_BAR_MAILBOXES),
				    dev->room);
	return dev->regs && dev->area ? 0 : -ENODEV;
}

/* Page entries carry 40 bits of page number. */
static int set_dma(struct pci_dev *pdev)
{
	int rc = dma_set_mask_and_coherent(&pdev->dev, DMA_BIT_MASK(52));

	/* A bounce buffer must keep the place of a byte in its page. */
	if (!rc)
		dma_set_min_align_mask(&pdev->dev, NFC_PAGE_SIZE - 1);
	if (!rc)
		dma_set_max_seg_size(&pdev->dev, UINT_MAX);
	return rc;
}

static int set_up(struct nfcm_dev *dev)
{
	struct pci_dev *pdev = dev->pdev;
	int rc = pcim_enable_device(pdev);

	if (!rc)
		rc = set_dma(pdev);
	if (!rc)
		rc = map_bars(dev);
	if (!rc)
		rc = nfcm_hw_identify(dev);
	return rc;
}

/*
 * Start an epoch, and keep config space for an error of the bus, which loses it. The
 * function's lock is held.
 */
static int come_up(struct pci_dev *pdev, struct nfcm_dev *dev)
{
	struct pci_saved_state *settings;
	int rc = nfcm_dev_up(dev);

	if (rc)
		return rc;
	pci_save_state(pdev);
	settings = pci_store_saved_state(pdev);
	if (settings) { /* else those of before are as good */
		kfree(dev->settings);
		dev->settings = settings;
	}
	return 0;
}

static int probe(struct pci_dev *pdev, const struct pci_device_id *id)
{
	struct nfcm_dev *dev = dev_new(pdev);
	int rc;

	if (IS_ERR(dev))
		return PTR_ERR(dev);
	rc = dev_set_name(&dev->dev, NFCM_NAME "%d", dev->minor);
	if (!rc)
		rc = set_up(dev);
	if (rc)
		goto put;
	rc = nfcm_irq_init(dev);
	if (rc)
		goto put;
	rc = come_up(pdev, dev);
	if (rc)
		goto down;
	pci_set_drvdata(pdev, dev);
	cdev_init(&dev->cdev, &nfcm_fops);
	dev->cdev.owner = THIS_MODULE;
	rc = nfcm_access_add(dev);
	if (rc)
		goto down;
	rc = cdev_device_add(&dev->cdev, &dev->dev);
	if (rc) {
		nfcm_access_remove(dev);
		goto down;
	}
	nfcm_debugfs_add(dev);
	return 0;
down: /* also where no epoch began: one that failed may have armed a recovery */
	nfcm_dev_remove(dev);
	nfcm_irq_fini(dev);
put:
	nfcm_minor_put(dev->minor);
	put_device(&dev->dev);
	return rc;
}

static void remove(struct pci_dev *pdev)
{
	struct nfcm_dev *dev = pci_get_drvdata(pdev);

	nfcm_debugfs_remove(dev);
	cdev_device_del(&dev->cdev, &dev->dev);
	nfcm_access_remove(dev);
	nfcm_dev_remove(dev);
	nfcm_irq_fini(dev);
	nfcm_file_wake_all(dev);
	nfcm_minor_put(dev->minor); /* files that are still open need no name */
	put_device(&dev->dev);
}

/* The machine ends, or another kernel takes it over: nobody boots the device again. */
static void shutdown(struct pci_dev *pdev)
{
	nfcm_dev_down(pci_get_drvdata(pdev), NFC_ERESET,
		      NFCOMMS_STATE_RESETTING);
}

/* ---- reset of the function, from sysfs or elsewhere ---- */

static void reset_prepare(struct pci_dev *pdev)
{
	nfcm_dev_down(pci_get_drvdata(pdev), NFC_ERESET,
		      NFCOMMS_STATE_RESETTING);
}

static void reset_done(struct pci_dev *pdev)
{
	int rc;

	nfcm_hw_put_back(pci_get_drvdata(pdev));
	rc = come_up(pdev, pci_get_drvdata(pdev));
	if (rc)
		dev_err(&pdev->dev, "lost after a reset: %d\n", rc);
}

/* ---- errors of the bus ---- */

static pci_ers_result_t error_detected(struct pci_dev *pdev,
				       pci_channel_state_t state)
{
	struct nfcm_dev *dev = pci_get_drvdata(pdev);

	if (state == pci_channel_io_normal)
		return PCI_ERS_RESULT_CAN_RECOVER;
	if (state == pci_channel_io_perm_failure) {
		nfcm_dev_down(dev, NFC_ERESET, NFCOMMS_STATE_LOST);
		return PCI_ERS_RESULT_DISCONNECT;
	}
	nfcm_dev_error(dev);
	return PCI_ERS_RESULT_NEED_RESET;
}

static pci_ers_result_t mmio_enabled(struct pci_dev *pdev)
{
	return PCI_ERS_RESULT_RECOVERED;
}

static pci_ers_result_t slot_reset(struct pci_dev *pdev)
{
	nfcm_hw_put_back(pci_get_drvdata(pdev));
	return come_up(pdev, pci_get_drvdata(pdev)) ? PCI_ERS_RESULT_DISCONNECT :
						      PCI_ERS_RESULT_RECOVERED;
}

static const struct pci_error_handlers error_handlers = {
	.error_detected = error_detected,
	.mmio_enabled = mmio_enabled,
	.slot_reset = slot_reset,
	.reset_prepare = reset_prepare,
	.reset_done = reset_done,
};

/* ---- sleep ---- */

/* A device that sleeps loses its epoch. */
static int suspend(struct device *d)
{
	nfcm_dev_down(dev_get_drvdata(d), NFC_ERESET, NFCOMMS_STATE_RESETTING);
	return 0;
}

static int resume(struct device *d)
{
	return come_up(to_pci_dev(d), dev_get_drvdata(d));
}

static DEFINE_SIMPLE_DEV_PM_OPS(pm_ops, suspend, resume);

static const struct pci_device_id ids[] = { { PCI_DEVICE(NFC_PCI_VENDOR,
							 NFC_PCI_DEVICE) },
					    {} };
MODULE_DEVICE_TABLE(pci, ids);

struct pci_driver nfcm_pci_driver = {
	.name = NFCM_NAME,
	.id_table = ids,
	.probe = probe,
	.remove = remove,
	.shutdown = shutdown,
	.err_handler = &error_handlers,
	.driver.pm = pm_sleep_ptr(&pm_ops),
};
