/* SPDX-License-Identifier: MIT */
/*
 * The guest's C tests reach the driver here from outside of its node: by sysfs,
 * the module, and the kernel's fault injection.
 */
#ifndef BUS_H
#define BUS_H

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>

/* Write a text to a file of the kernel's; a failed check if that does not work. */
bool put(const char *path, const char *text);
/* The same, for what may fail: 0 or errno. */
int try_put(const char *path, const char *text);

/* Set a limit of the device, such as "stall_timeout_ms". */
void set_limit(const char *name, const char *value);
unsigned long limit(const char *name);

/* Does the kernel's log say this, since it was last emptied? */
bool log_says(const char *text);
void empty_log(void);

/* The PCI device below the node, as /sys/devices/… */
void find_device(char path[PATH_MAX]);
/* Is there an IOMMU between devices and memory? */
bool has_iommu(void);
/* May the device do DMA, as far as its config space says? */
bool is_master(void);
/* The node comes with the device; devtmpfs makes it. */
void await_node(void);
/* Take the driver from a device, and give it back. */
void unbind(const char *device);
void bind_to(const char *device);
/* Take a device from the bus, and look for it again. */
void remove_device(const char *device);
void rescan(void);

enum {
	/* Bits of the Advanced Error Reporting capability. */
	BAD_TLP = 1 << 6, /* correctable */
	COMPLETION_TIMEOUT = 1 << 14, /* not fatal by default */
	LINK_PROTOCOL = 1 << 4, /* fatal by default */
};

/* Have the port above a device report an error (CONFIG_PCIEAER_INJECT). */
void inject_error(const char *device, uint32_t uncorrectable,
		  uint32_t correctable);
/* Suspend to idle as far as devices go, and resume; it may be refused: errno. */
int try_suspend(void);
/* The same, where nothing is in its way. */
void suspend(void);

/* Open the module's file: $NFC_MODULE, or /modules/nfcomms.ko. */
int open_module(void);
/* Unload it, and load it with $NFC_PARAMS, as the job has it: 0 or errno. */
int unload(void);
int load(void);

/* Prepare to let allocations and copies fail; false if the kernel cannot. */
bool faults_ready(void);
/* Fail the n-th point of this thread from now on; 0: none. */
void fail_at(unsigned int n);
/* No more failures; true if the point was reached, and so something failed. */
bool failed(void);

#endif
