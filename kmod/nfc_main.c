// SPDX-License-Identifier: GPL-2.0-only
/* The module: parameters, the class, minors, and what all devices share. */
#include <linux/idr.h>
#include <linux/module.h>
#include <linux/slab.h>

#include "nfc_kmod.h"

#define CREATE_TRACE_POINTS
#include "trace.h"

enum { MINORS = 256 };

unsigned int nfc_param_vectors;
module_param_named(vectors, nfc_param_vectors, uint, 0444);
MODULE_PARM_DESC(vectors,
		 "interrupt vectors to use; 0: one per processor and one (default 0)");

unsigned int nfc_param_holdoff = 50;
module_param_named(holdoff, nfc_param_holdoff, uint, 0444);
MODULE_PARM_DESC(holdoff,
		 "least microseconds between two interrupts of a vector, 0..10000 (default 50)");

unsigned int nfc_param_max_operations = 32768;
module_param_named(max_operations, nfc_param_max_operations, uint, 0444);
MODULE_PARM_DESC(max_operations,
		 "operations in flight or unread per open file (default 32768)");

unsigned int nfc_param_ladder_ms = 100;
module_param_named(ladder_ms, nfc_param_ladder_ms, uint, 0644);
MODULE_PARM_DESC(ladder_ms,
		 "milliseconds, and two heartbeats, for a device to answer a cancel or a close (default 100)");

unsigned int nfc_param_silence_ms = 1000;
module_param_named(silence_ms, nfc_param_silence_ms, uint, 0644);
MODULE_PARM_DESC(silence_ms,
		 "milliseconds without a heartbeat after which a device is lost, at least (default 1000)");

unsigned int nfc_param_beats = 5;
module_param_named(beats, nfc_param_beats, uint, 0644);
MODULE_PARM_DESC(beats, "heartbeats that may be missing, at least (default 5)");

unsigned int nfc_param_stall_ms = 10000;
module_param_named(stall_ms, nfc_param_stall_ms, uint, 0644);
MODULE_PARM_DESC(stall_ms,
		 "milliseconds that a transfer may stand still while the device beats, at least (default 10000)");

unsigned int nfc_param_watchdog_ms = 10000;
module_param_named(watchdog_ms, nfc_param_watchdog_ms, uint, 0444);
MODULE_PARM_DESC(watchdog_ms,
		 "milliseconds without a sign of the host after which the device fences its DMA; 0: never (default 10000)");

struct class nfc_class = {
	.name = NFC_NAME,
	.dev_groups = nfc_groups,
};

struct workqueue_struct *nfc_pin_wq;
struct workqueue_struct *nfc_life_wq;
struct kmem_cache *nfc_op_cache;
static DEFINE_IDA(minors);
static dev_t first;

/* The number of a minor's node. */
dev_t nfc_devt(int minor)
{
	return MKDEV(MAJOR(first), minor);
}

/*
 * The lowest minor that is free, the caller's until nfc_minor_put(); -ENOSPC.
 */
int nfc_minor_get(void)
{
	return ida_alloc_max(&minors, MINORS - 1, GFP_KERNEL);
}

/* The next device may have the minor. */
void nfc_minor_put(int minor)
{
	ida_free(&minors, minor);
}

static int make_shared(void)
{
	nfc_op_cache = kmem_cache_create("nfcomms_op", sizeof(struct nfc_op), 0,
					 SLAB_ACCOUNT, NULL);
	/* Pinning may wait for the caller's own page faults, lives must not. */
	nfc_pin_wq = alloc_workqueue("nfcomms_pin", WQ_UNBOUND, 0);
	nfc_life_wq = alloc_workqueue("nfcomms", WQ_UNBOUND | WQ_HIGHPRI, 0);
	return nfc_op_cache && nfc_pin_wq && nfc_life_wq ? 0 : -ENOMEM;
}

static void free_shared(void)
{
	if (nfc_pin_wq)
		destroy_workqueue(nfc_pin_wq);
	if (nfc_life_wq)
		destroy_workqueue(nfc_life_wq);
	kmem_cache_destroy(nfc_op_cache);
}

static int __init nfc_init(void)
{
	int rc;

	if (!nfc_param_max_operations || nfc_param_max_operations > 1 << 20)
		return -EINVAL;
	rc = make_shared();
	if (rc)
		goto shared;
	rc = alloc_chrdev_region(&first, 0, MINORS, NFC_NAME);
	if (rc)
		goto shared;
	rc = class_register(&nfc_class);
	if (rc)
		goto region;
	nfc_debugfs_init();
	rc = pci_register_driver(&nfc_pci_driver);
	if (rc)
		goto unregister;
	return 0;
unregister:
	nfc_debugfs_exit();
	class_unregister(&nfc_class);
region:
	unregister_chrdev_region(first, MINORS);
shared:
	free_shared();
	return rc;
}

static void __exit nfc_exit(void)
{
	pci_unregister_driver(&nfc_pci_driver);
	nfc_debugfs_exit();
	free_shared();
	class_unregister(&nfc_class);
	unregister_chrdev_region(first, MINORS);
	ida_destroy(&minors);
}

module_init(nfc_init);
module_exit(nfc_exit);

MODULE_AUTHOR("The NFComms authors");
MODULE_DESCRIPTION("NFComms: channels to processes on a network accelerator");
MODULE_LICENSE("GPL");
MODULE_VERSION(NFC_MODULE_VERSION);
