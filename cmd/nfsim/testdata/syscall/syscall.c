// SPDX-License-Identifier: MIT
/*
 * syscall: makes the system call of each message, seven numbers, and answers with
 * its result, or its error negated. A negative number makes it crash.
 */
#define _GNU_SOURCE
#include "nfc_fw.h"

#include <errno.h>
#include <sys/syscall.h>
#include <unistd.h>

static void syscall_main(struct nfc_process *self)
{
	struct nfc_channel *ch = nfc_channel_of(self, 0);
	int64_t a[7], rc = 0;

	while (rc != -NFC_ESTOPPED && rc != -NFC_ECLOSED) {
		rc = channel_read(ch, a, sizeof(a));
		if (rc != sizeof(a))
			continue;
		if (a[0] < 0)
			*(volatile int *)(uintptr_t)a[1] = 0;
		rc = syscall(a[0], a[1], a[2], a[3], a[4], a[5], a[6]);
		if (rc == -1)
			rc = -errno;
		rc = channel_write(ch, &rc, sizeof(rc));
	}
}

NFC_PROGRAMS({ NFC_PROGRAM_ABI, 0, "syscall", syscall_main });
