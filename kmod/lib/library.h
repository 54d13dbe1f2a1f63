/* SPDX-License-Identifier: MIT */
/* Declarations that the files of the library share. */
#ifndef LIBRARY_H
#define LIBRARY_H

#include "libnfcomms.h"
#include "../uapi/nfcomms.h"
#include "../../firmware/nfc_abi.h"

#define LIBRARY_HIDDEN __attribute__((visibility("hidden")))

struct nfcomms_dev {
	int fd; /* of the device node; without a module one that polls alike */
	uintptr_t file; /* without a module: what stands for the node; else 0 */
	int asks; /* it has NFCOMMS_OP_ASK; a module of version 3.0 has not */
};

/*
 * The device without a module: what open, close, ioctl, CALL and read are to a
 * node. 0 or a negative errno, umod_take() the number of completions.
 */
LIBRARY_HIDDEN int umod_open(const char *address, struct nfcomms_dev *dev);
LIBRARY_HIDDEN void umod_close(const struct nfcomms_dev *dev);
LIBRARY_HIDDEN int umod_ioctl(const struct nfcomms_dev *dev,
			      unsigned long number, void *argument);
LIBRARY_HIDDEN int umod_call(const struct nfcomms_dev *dev,
			     const struct nfcomms_op *op,
			     struct nfcomms_completion *c);
/* Calls between hosts of a device; umod.Meeting describes the structure. */
enum umod_verb {
	UMOD_ALLOC = 1,
	UMOD_LISTEN = 2,
	UMOD_UNLISTEN = 3,
	UMOD_ACCEPT = 4,
	UMOD_DIAL = 5,
	UMOD_GIVE = 6,
	UMOD_TAKE = 7,
};
struct umod_meeting {
	uint32_t verb, handle, region, rsvd;
	uint64_t address, size;
};
LIBRARY_HIDDEN int umod_meet(const struct nfcomms_dev *dev,
			     struct umod_meeting *m, const char *name);
LIBRARY_HIDDEN int umod_take(const struct nfcomms_dev *dev,
			     struct nfcomms_completion *to, unsigned int count);

/* An ioctl that a signal does not end: 0 or a negative errno. */
LIBRARY_HIDDEN int device_ioctl(const struct nfcomms_dev *dev,
				unsigned long number, void *argument);
/* 0 or the negative errno of a completion. */
LIBRARY_HIDDEN int completion_result(const struct nfcomms_completion *c);
/* Fill failure, which may be NULL, from a completion. */
LIBRARY_HIDDEN void completion_failure(const struct nfcomms_completion *c,
				       struct nfcomms_failure *failure);
/*
 * Make one operation and wait for it: 0 or a negative errno. Without out the
 * caller wants no more than that.
 */
LIBRARY_HIDDEN int device_call(const struct nfcomms_dev *dev,
			       const struct nfcomms_op *op,
			       struct nfcomms_completion *out);

#endif
