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

/*
 * The same; it is made if it is not there, with a reference to the buffer. NULL
 * without memory.
 */
int nfcm_import_open(struct nfcm_import *import, struct device *dma,
		     const struct nfcomms_register *in,
		     enum dma_data_direction way)
{
	struct dma_buf *buffer = dma_buf_get(in->fd);
	int rc;

	if (IS_ERR(buffer))
		return PTR_ERR(buffer);
	rc = check(buffer, in, way);
	if (rc)
		goto put;
	import->attachment = dma_buf_attach(buffer, dma);
	rc = PTR_ERR_OR_ZERO(import->attachment);
	if (rc)
		goto put;
	import->sgt = nfcm_map_attachment(import->attachment, way);
	rc = PTR_ERR_OR_ZERO(import->sgt);
	if (rc)
		goto detach;
	import->buffer = buffer;
	return 0;
detach:
	dma_buf_detach(buffer, import->attachment);
put:
	dma_buf_put(buffer);
	return rc;
}

/* Undo nfcm_import_open(). */
void nfcm_import_close(struct nfcm_import *import, enum dma_data_direction way)
{
	nfcm_unmap_attachment(import->attachment, import->sgt, way);
	dma_buf_detach(import->buffer, import->attachment);
	dma_buf_put(import->buffer);
}
