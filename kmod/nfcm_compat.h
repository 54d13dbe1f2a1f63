/* SPDX-License-Identifier: GPL-2.0-only */
/* What differs between the kernels that this driver builds for, 6.1 and later. */
#ifndef NFCM_COMPAT_H
#define NFCM_COMPAT_H

#include <linux/pagemap.h>
#include <linux/version.h>

/* The macro for an event's string took the source a second time. */
#if KERNEL_VERSION(6, 10, 0) > LINUX_VERSION_CODE
#define nfcm_assign_str(field, from) __assign_str(field, from)
#else
#define nfcm_assign_str(field, from) __assign_str(field)
#endif

/*
 * Have the pages of memory come, killably. Pinning for long did not let go of the
 * memory while it waited for them, and nothing could end it.
 */
static inline size_t nfcm_fault_in(unsigned long at, size_t size)
{
#if KERNEL_VERSION(6, 3, 0) > LINUX_VERSION_CODE
	return fault_in_readable((const char __user *)at, size);
#else
	return 0;
#endif
}

#endif /* NFCM_COMPAT_H */
