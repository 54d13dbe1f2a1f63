/* SPDX-License-Identifier: GPL-2.0-only */
/* What differs between the kernels that this driver builds for, 6.1 and later. */
#ifndef NFCM_COMPAT_H
#define NFCM_COMPAT_H

#include <linux/version.h>

/* The macro for an event's string took the source a second time. */
#if KERNEL_VERSION(6, 10, 0) > LINUX_VERSION_CODE
#define nfcm_assign_str(field, from) __assign_str(field, from)
#else
#define nfcm_assign_str(field, from) __assign_str(field)
#endif

#endif /* NFCM_COMPAT_H */
