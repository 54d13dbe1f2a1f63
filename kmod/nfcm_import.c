// SPDX-License-Identifier: GPL-2.0-only
/*
 * Memory of another device, as a dma-buf: mapped for ours as it is, without a
 * processor's view of it. All regions of a device that use a buffer the same way have
 * one attachment.
 *
 * The attachment is static. In move_notify() a dynamic one would have to take the
 * addresses from the device, which may never answer an abort. No fence is waited for
 * or added: an operation waits for a process of the device, which no fence may.
 */
#include <linux/dma-buf.h>
#include <linux/module.h>

#include "nfcm_compat.h"
#include "nfcm_kmod.h"

NFCM_IMPORT_NS(DMA_BUF);

/* May these bytes of the buffer be used this way? */
static int check(const struct dma_buf *buffer,
		 const struct nfcomms_register *in, enum dma_data_direction way)
{
	if (in->offset > buffer->size || in->length > buffer->size - in->offset)
		return -EINVAL;
	if (way != DMA_TO_DEVICE && !(buffer->file->f_mode & FMODE_WRITE))
		return -EACCES;
	return 0;
}

/* A device's import of a buffer, one way, with a reference; NULL: there is none. */
static struct nfcm_import *find(struct nfcm_dev *dev, struct dma_buf *buffer,
				enum dma_data_direction way)
{
	struct nfcm_import *import;

	lockdep_assert_held(&dev->imports_lock);
	list_for_each_entry(import, &dev->imports, node)
		if (import->buffer == buffer && import->way == way) {
			import->refs++;
			return import;
		}
	return NULL;
}

/*
 * The same; it is made if it is not there, with a reference to the buffer. NULL
 * without memory.
 */
static struct nfcm_import *find_or_make(struct nfcm_dev *dev,
					struct dma_buf *buffer,
					enum dma_data_direction way)
{
	struct nfcm_import *fresh = kzalloc(sizeof(*fresh), GFP_KERNEL_ACCOUNT);
	struct nfcm_import *import;

	spin_lock(&dev->imports_lock);
	import = find(dev, buffer, way);
	if (!import && fresh) {
		import = fresh;
		fresh = NULL;
		import->refs = 1;
		import->dev = dev;
		import->buffer = buffer;
		import->way = way;
		mutex_init(&import->lock);
		get_dma_buf(buffer);
		list_add(&import->node, &dev->imports);
	}
	spin_unlock(&dev->imports_lock);
	kfree(fresh);
	return import;
}

/* Nobody holds the import's lock with the last reference. */
static void put(struct nfcm_import *import)
{
	struct nfcm_dev *dev = import->dev;
	bool last;

	spin_lock(&dev->imports_lock);
	last = !--import->refs;
	if (last)
		list_del(&import->node);
	spin_unlock(&dev->imports_lock);
	if (!last)
		return;
	WARN_ON_ONCE(import->regions);
	dma_buf_put(import->buffer);
	mutex_destroy(&import->lock);
	kfree(import);
}

/* Attach and map, for the first region. */
static int attach(struct nfcm_import *import)
{
	struct dma_buf_attachment *attachment;
	struct sg_table *sgt;

	lockdep_assert_held(&import->lock);
	attachment = dma_buf_attach(import->buffer, &import->dev->pdev->dev);
	if (IS_ERR(attachment))
		return PTR_ERR(attachment);
	sgt = nfcm_map_attachment(attachment, import->way);
	if (IS_ERR(sgt)) {
		dma_buf_detach(import->buffer, attachment);
		return PTR_ERR(sgt);
	}
	import->attachment = attachment;
	import->sgt = sgt;
	return 0;
}

/* Undo attach(), after the last region. */
static void detach(struct nfcm_import *import)
{
	lockdep_assert_held(&import->lock);
	nfcm_unmap_attachment(import->attachment, import->sgt, import->way);
	dma_buf_detach(import->buffer, import->attachment);
}

/*
 * The mapping of what a descriptor stands for, which all regions of the device share
 * that use it this way; it cannot move or vanish before nfcm_import_close(). -EBADF: no
 * descriptor, -EINVAL: not of a dma-buf, or it has not so many bytes. Process context,
 * no locks.
 */
struct nfcm_import *nfcm_import_open(struct nfcm_dev *dev,
				     const struct nfcomms_register *in,
				     enum dma_data_direction way)
{
	struct dma_buf *buffer = dma_buf_get(in->fd);
	struct nfcm_import *import = NULL;
	int rc;

	if (IS_ERR(buffer))
		return ERR_CAST(buffer);
	rc = check(buffer, in, way);
	if (!rc) {
		import = find_or_make(dev, buffer, way);
		rc = import ? 0 : -ENOMEM;
	}
	dma_buf_put(buffer);
	if (rc)
		return ERR_PTR(rc);
	mutex_lock(&import->lock);
	rc = import->regions ? 0 : attach(import);
	import->regions += !rc;
	mutex_unlock(&import->lock);
	if (!rc)
		return import;
	put(import);
	return ERR_PTR(rc);
}

/* Undo nfcm_import_open(). Process context, no locks. */
void nfcm_import_close(struct nfcm_import *import)
{
	mutex_lock(&import->lock);
	if (!--import->regions)
		detach(import);
	mutex_unlock(&import->lock);
	put(import);
}
