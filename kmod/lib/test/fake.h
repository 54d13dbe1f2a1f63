/* SPDX-License-Identifier: MIT */
/*
 * A kernel module made of a few variables: the library is compiled with its
 * system calls named after those below, and a test says what they answer.
 */
#ifndef FAKE_H
#define FAKE_H

#include <stddef.h>
#include <sys/types.h>

#include "../../uapi/nfcomms.h"

enum {
	FAKE_REGION = 31, /* handle of each region */
};

struct fake {
	/* Set by the test. */
	int open_error; /* of the next open */
	int fail; /* errno of the next ioctl other than INFO, or of read */
	int interrupts; /* so many calls end with EINTR first */
	unsigned int uapi; /* major << 16 */
	struct nfcomms_info info;
	struct nfcomms_health health;
	struct nfcomms_completion completion; /* of CALL */
	unsigned int accepts; /* operations SUBMIT takes before refusal */
	int refusal; /* errno of the one after */
	struct nfcomms_completion ready[80]; /* for read */
	unsigned int ready_count;
	int gone; /* read answers 0 when nothing is ready */

	/* Received calls. */
	char path[256]; /* of a node, or the name of a library */
	int open_flags;
	unsigned int closes, ioctls, submits, cancels, resets;
	struct nfcomms_op op; /* the last one of CALL */
	struct nfcomms_op taken[300]; /* of SUBMIT, in order */
	unsigned int taken_count;
	__u64 cancelled;
	struct nfcomms_setup setup; /* the last one */
	struct nfcomms_register region; /* the last one */
	__u32 unregistered; /* its handle */
};

extern struct fake fake;

/* Start anew, with a module that answers everything with success. */
void fake_reset(void);

/* No other library is there. */
void *fake_dlopen(const char *name, int flags);
int fake_open(const char *path, int flags);
int fake_close(int fd);
int fake_ioctl(int fd, unsigned long number, void *argument);
ssize_t fake_read(int fd, void *to, size_t size);

#endif
