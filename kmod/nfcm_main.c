// SPDX-License-Identifier: GPL-2.0-only
/* The module: parameters, the class, minors, and what all devices share. */
#include <linux/idr.h>
#include <linux/module.h>
#include <linux/slab.h>

#include "nfcm_kmod.h"

#define CREATE_TRACE_POINTS
#include "trace.h"

enum { MINORS = 256 };

unsigned int nfcm_param_vectors;
module_param_named(vectors, nfcm_param_vectors, uint, 0444);
MODULE_PARM_DESC(vectors,
		 "interrupt vectors to use; 0: one per processor and one (default 0)");

unsigned int nfcm_param_holdoff = 50;
module_param_named(holdoff, nfcm_param_holdoff, uint, 0444);
MODULE_PARM_DESC(holdoff,
		 "least microseconds between two interrupts of a vector, 0..10000 (default 50)");

bool nfcm_param_adaptive = true;
module_param_named(adaptive, nfcm_param_adaptive, bool, 0444);
MODULE_PARM_DESC(adaptive,
		 "each vector's holdoff follows its load, from a sixteenth of it on (default Y)");

unsigned int nfcm_param_max_operations = 32768;
module_param_named(max_operations, nfcm_param_max_operations, uint, 0444);
MODULE_PARM_DESC(max_operations,
		 "operations in flight or unread per open file (default 32768)");

unsigned int nfcm_param_cancel_timeout_ms = 100;
module_param_named(cancel_timeout_ms, nfcm_param_cancel_timeout_ms, uint, 0444);
MODULE_PARM_DESC(cancel_timeout_ms,
		 "milliseconds, and two heartbeats, for a device to answer a cancel or a close (default 100)");

unsigned int nfcm_param_heartbeat_timeout_ms = 1000;
module_param_named(heartbeat_timeout_ms, nfcm_param_heartbeat_timeout_ms, uint,
		   0444);
MODULE_PARM_DESC(heartbeat_timeout_ms,
		 "milliseconds without a heartbeat after which a device is lost, at least (default 1000)");

unsigned int nfcm_param_heartbeat_misses = 5;
module_param_named(heartbeat_misses, nfcm_param_heartbeat_misses, uint, 0444);
MODULE_PARM_DESC(heartbeat_misses,
		 "heartbeats that may be missing, at least (default 5)");

unsigned int nfcm_param_stall_timeout_ms = 10000;
module_param_named(stall_timeout_ms, nfcm_param_stall_timeout_ms, uint, 0444);
MODULE_PARM_DESC(stall_timeout_ms,
		 "milliseconds that a transfer may stand still while the device beats, at least (default 10000)");

unsigned int nfcm_param_busy_poll_max = 200;
module_param_named(busy_poll_max, nfcm_param_busy_poll_max, uint, 0444);
MODULE_PARM_DESC(busy_poll_max,
		 "most microseconds that a wait may busy poll where its file asks for it, 0..10000 (default 200)");

bool nfcm_param_recovery;
module_param_named(recovery, nfcm_param_recovery, bool, 0444);
MODULE_PARM_DESC(recovery,
		 "reset a device that is lost or at fault, by itself (default N)");

bool nfcm_param_register_access;
module_param_named(register_access, nfcm_param_register_access, bool, 0444);
MODULE_PARM_DESC(register_access,
		 "administrators may read and write registers past the driver (default N)");

unsigned int nfcm_param_watchdog_timeout_ms = 10000;
module_param_named(watchdog_timeout_ms, nfcm_param_watchdog_timeout_ms, uint,
		   0444);
MODULE_PARM_DESC(watchdog_timeout_ms,
		 "milliseconds without a sign of the host after which the device fences its DMA; 0: never (default 10000)");

struct class nfcm_class = {
	.name = NFCM_NAME,
	.dev_groups = nfcm_groups,
};

struct workqueue_struct *nfcm_slow_wq;
struct workqueue_struct *nfcm_wq;
struct kmem_cache *nfcm_op_cache;
static DEFINE_IDA(minors);
static dev_t first;

/* The number of a minor's node. */
dev_t nfcm_devt(int minor)
{
	return MKDEV(MAJOR(first), minor);
}

/*
 * The lowest minor that is free, the caller's until nfcm_minor_put(); -ENOSPC.
 */
int nfcm_minor_get(void)
{
	return ida_alloc_max(&minors, MINORS - 1, GFP_KERNEL);
}

/* The next device may have the minor. */
void nfcm_minor_put(int minor)
{
	ida_free(&minors, minor);
}

static int make_shared(void)
{
	/* Of an operation only its record is copied to user space. */
	nfcm_op_cache = kmem_cache_create_usercopy("nfcomms_op",
						   sizeof(struct nfcm_op), 0,
						   SLAB_ACCOUNT,
						   offsetof(struct nfcm_op,
							    record),
						   sizeof_field(struct nfcm_op,
								record),
						   NULL);
	nfcm_slow_wq = alloc_workqueue("nfcomms_slow", WQ_UNBOUND, 0);
	nfcm_wq = alloc_workqueue("nfcomms", WQ_UNBOUND | WQ_HIGHPRI, 0);
	return nfcm_op_cache && nfcm_slow_wq && nfcm_wq ? 0 : -ENOMEM;
}

static void free_shared(void)
{
	nfcm_workers_fini();
	if (nfcm_slow_wq)
		destroy_workqueue(nfcm_slow_wq);
	if (nfcm_wq)
		destroy_workqueue(nfcm_wq);
	nfcm_users_fini();
	kmem_cache_destroy(nfcm_op_cache);
}

static int __init nfcm_init(void)
{
	int rc;

	if (!nfcm_param_max_operations ||
	    nfcm_param_max_operations > NFCM_OPERATIONS_MAX)
		return -EINVAL;
	rc = make_shared();
	if (rc)
		goto shared;
	rc = alloc_chrdev_region(&first, 0, MINORS, NFCM_NAME);
	if (rc)
		goto shared;
	rc = class_register(&nfcm_class);
	if (rc)
		goto region;
	nfcm_debugfs_init();
	rc = pci_register_driver(&nfcm_pci_driver);
	if (rc)
		goto unregister;
	return 0;
unregister:
	nfcm_debugfs_exit();
	class_unregister(&nfcm_class);
region:
	unregister_chrdev_region(first, MINORS);
shared:
	free_shared();
	return rc;
}

static void __exit nfcm_exit(void)
{
	pci_unregister_driver(&nfcm_pci_driver);
	nfcm_debugfs_exit();
	free_shared();
	class_unregister(&nfcm_class);
	unregister_chrdev_region(first, MINORS);
	ida_destroy(&minors);
}

module_init(nfcm_init);
module_exit(nfcm_exit);

MODULE_AUTHOR("The NFComms authors");
MODULE_DESCRIPTION("NFComms: channels to processes on a network accelerator");
MODULE_LICENSE("GPL");
MODULE_VERSION(NFCM_MODULE_VERSION);
