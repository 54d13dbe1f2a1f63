/* SPDX-License-Identifier: MIT */
/* Stacks of processes, as mappings with a guard below. */
#ifndef PORT_STACK_H
#define PORT_STACK_H

#include "../nfc_port.h"

enum {
	/*
	 * Bytes below a stack that must not be accessed: a whole large array.
	 */
	PORT_STACK_GUARD = 1 << 20,
};

/* As struct nfc_port has them. */
int port_stack_init(void *self, struct nfc_stack *s,
		    void (*enter_fn)(void *arg), void *arg);
void port_stack_free(void *self, struct nfc_stack *s);
/* Is an address in the guard of a stack? */
bool port_stack_guards(const struct nfc_stack *s, const void *address);

/* Does a stack pointer belong to a stack, be it overrun? */
bool port_stack_holds(const struct nfc_stack *s, uintptr_t sp);

#endif /* PORT_STACK_H */
