/* SPDX-License-Identifier: (GPL-2.0 WITH Linux-syscall-note) OR MIT */
/*
 * The registers and interrupts of a board, past its driver: ioctls of
 * /dev/nfcomms_registersN, a node of mode 0600 beside /dev/nfcommsN, for administrators
 * who bring up or examine a card. /dev/nfcommsN itself answers ENOTTY to them.
 *
 * They take CAP_SYS_ADMIN (EPERM), also against a kernel that is locked down, and the
 * device's attribute register_access in sysfs, which begins as the module's parameter
 * of that name, off (EOPNOTSUPP). Each access is in the kernel's log, as far as its
 * rate allows, and an event nfcomms_access.
 *
 * The rules of nfcomms.h hold for sizes and reserved fields.
 */
#ifndef _UAPI_NFCOMMS_DEBUG_H
#define _UAPI_NFCOMMS_DEBUG_H

#include <linux/ioctl.h>
#include <linux/types.h>

/* Bytes of the structures as of the first version, for ever. */
#define NFCOMMS_ACCESS_SIZE_FIRST 64
#define NFCOMMS_INTERRUPT_SIZE_FIRST 56

/* The longest wait for an interrupt, in milliseconds. */
#define NFCOMMS_INTERRUPT_MS_MAX 60000

/**
 * enum nfcomms_access_flags - what an access does.
 * @NFCOMMS_ACCESS_WRITE: it writes, else it reads
 */
enum nfcomms_access_flags {
	NFCOMMS_ACCESS_WRITE = 1 << 0,
};

/**
 * struct nfcomms_access - read or write one register. In and out.
 * @size: sizeof(struct nfcomms_access)
 * @flags: enum nfcomms_access_flags; a write takes a file that is open for writing
 *	(EACCES)
 * @bar: 0 to 5
 * @width: bytes: 4; or 8, but not of the BARs of registers and interrupt vectors
 *	(EINVAL)
 * @offset: in the BAR, a multiple of @width (EINVAL); ERANGE where the BAR has no such
 *	memory
 * @value: in: to write, zero for a read; out: what was read
 * @rsvd: zero
 *
 * EADDRINUSE: a write to what is the driver's: the registers CONTROL, VECTORS,
 * HOLDOFF, VECTOR_HOLDOFF, WATCHDOG and SHAPE, the interrupt vectors, the mailboxes.
 * EBUSY: an epoch begins or ends, or the bus resets the function, or it sleeps.
 * ENODEV: the device is lost.
 */
struct nfcomms_access {
	__u32 size;
	__u32 flags;
	__u32 bar;
	__u32 width;
	__u64 offset;
	__u64 value;
	__u64 rsvd[4];
};

/**
 * enum nfcomms_interrupt_flags - what is done with a vector in place of a wait.
 * @NFCOMMS_INTERRUPT_OFF: switch it off for as long as the file is open
 * @NFCOMMS_INTERRUPT_ON: end that; an interrupt that was held back is served
 */
enum nfcomms_interrupt_flags {
	NFCOMMS_INTERRUPT_OFF = 1 << 0,
	NFCOMMS_INTERRUPT_ON = 1 << 1,
};

/**
 * struct nfcomms_interrupt - wait for an interrupt, or switch it. In and out.
 * @size: sizeof(struct nfcomms_interrupt)
 * @flags: zero to wait, or one of enum nfcomms_interrupt_flags, for which the file is
 *	open for writing (EACCES) and @timeout_ms and @count are zero (EINVAL)
 * @vector: below the vectors in use (EINVAL)
 * @timeout_ms: at most NFCOMMS_INTERRUPT_MS_MAX (EINVAL); 0: do not wait
 * @count: in: return as soon as there were more; out: how many there were since the
 *	driver took the device, also with ETIMEDOUT
 * @rsvd: zero
 *
 * The driver serves the interrupt as ever. While a file has a vector off, the driver
 * looks for messages by itself, later than an interrupt would have it look.
 *
 * EINTR: a signal was first. EBUSY: a switch while an epoch begins or ends. ENODEV: the
 * device was removed.
 */
struct nfcomms_interrupt {
	__u32 size;
	__u32 flags;
	__u32 vector;
	__u32 timeout_ms;
	__u64 count;
	__u64 rsvd[4];
};

/* The letter is that of nfcomms.h, whose numbers are below these. */
#define NFCOMMS_DEBUG_IOC_TYPE 0xE2
#define NFCOMMS_IOC_ACCESS                                         \
	_IOC(_IOC_READ | _IOC_WRITE, NFCOMMS_DEBUG_IOC_TYPE, 0x80, \
	     NFCOMMS_ACCESS_SIZE_FIRST)
#define NFCOMMS_IOC_INTERRUPT                                      \
	_IOC(_IOC_READ | _IOC_WRITE, NFCOMMS_DEBUG_IOC_TYPE, 0x81, \
	     NFCOMMS_INTERRUPT_SIZE_FIRST)

#endif /* _UAPI_NFCOMMS_DEBUG_H */
