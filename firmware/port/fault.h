/* SPDX-License-Identifier: MIT */
/*
 * Faults of memory in a process that hosts devices. A process has one handler
 * of SIGSEGV and one of SIGBUS; this file owns the ones of the hosted port,
 * whoever needs one hooks in here:
 *
 *   - nfc_fault_copy() is a memcpy that fails instead of killing the process;
 *   - a thread of the firmware may explain a fault before the process dies of
 *     it, as one on the guard page below a program's stack.
 *
 * Every other fault goes to the handler that was there before, which in a Go
 * program is the runtime's: a nil pointer still panics.
 */
#ifndef PORT_FAULT_H
#define PORT_FAULT_H

#include <stdint.h>

enum {
	/* Bytes of a thread's signal stack: Go's handler needs some of it. */
	NFC_FAULT_STACK = 64 << 10,
};

/* What a thread of the firmware has of its own. It outlives the thread. */
struct nfc_fault_thread {
	/*
	 * This thread faulted at address, and it was no copy: the process is
	 * about to die. Runs on the signal stack and may only do what a signal
	 * handler may. pc is the instruction, 0 where that is not known. NULL:
	 * nothing to add.
	 */
	void (*explain)(void *self, int signal, const void *address,
			uintptr_t pc);
	void *self;
	uint8_t stack[NFC_FAULT_STACK];
};

/*
 * Install the handlers, or install them anew over those of a library that came
 * since. 0 or -NFC_ENOMEM. Any thread; called for each epoch of a device.
 */
int nfc_fault_install(void);

/*
 * The calling thread is one of the firmware's: its faults find a stack to be
 * handled on, also when its own is used up. SIGSEGV and SIGBUS must not be
 * blocked in it.
 */
void nfc_fault_thread_begin(struct nfc_fault_thread *t);
void nfc_fault_thread_end(void);

/*
 * Copy length bytes, which do not overlap. 0, or NFC_EDMA if memory of either
 * side cannot be reached; then nothing is known of the bytes at to. Any thread
 * that does not block the two signals.
 */
int nfc_fault_copy(void *to, const void *from, uint64_t length);

#endif /* PORT_FAULT_H */
