/* SPDX-License-Identifier: MIT */
/*
 * Faults in a process that hosts devices. A process has one handler of each
 * signal that they raise. This file owns those of the hosted port; other files
 * register here:
 *
 *   - nfc_fault_copy() is a memcpy that fails instead of killing the process;
 *   - a thread that runs an island may end the device's process that crashed there,
 * and continue.
 *
 * Every other fault is passed to the handler that was installed before, which
 * in a Go program is the runtime's: a nil pointer still panics.
 */
#ifndef PORT_FAULT_H
#define PORT_FAULT_H

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>

enum {
	/* Bytes of a thread's signal stack: Go's handler needs some of it. */
	NFC_FAULT_STACK = 64 << 10,
};

/* Called for a fault of a thread that was not in a copy. */
struct nfc_fault_owner {
	/*
	 * True: context was changed, and the thread resumes there. Runs on the
	 * signal stack and may only do what a signal handler may.
	 */
	bool (*crashed)(struct nfc_fault_owner *self, const siginfo_t *info,
			void *context);
};

/* Memory of one thread of the firmware. It outlives the thread. */
struct nfc_fault_thread {
	uint8_t stack[NFC_FAULT_STACK];
};

/*
 * Install the handlers, or install them anew over those of a library that was
 * loaded
 * since. 0 or -NFC_ENOMEM. Any thread; called for each epoch of a device.
 */
int nfc_fault_install(void);

/*
 * The calling thread is one of the firmware's: its faults find a stack to be
 * handled on, also when its own is used up.
 */
void nfc_fault_thread_begin(struct nfc_fault_thread *t);
void nfc_fault_thread_end(void);
/*
 * Faults of the calling thread belong to that owner from now on; NULL: to none.
 */
void nfc_fault_own(struct nfc_fault_owner *owner);
/* Take the signals of faults out of a set: a thread must not block them. */
void nfc_fault_signals(sigset_t *set);

/*
 * Copy length bytes, which do not overlap. 0, or NFC_EDMA if memory of either
 * side cannot be reached; then nothing is known of the bytes at to. Any thread
 * that does not block the two signals.
 */
int nfc_fault_copy(void *to, const void *from, uint64_t length);
/* The same, for bytes that another processor reads next, and this one does not. */
int nfc_fault_give(void *to, const void *from, uint64_t length);

#endif /* PORT_FAULT_H */
