/* SPDX-License-Identifier: MIT */
/* Switching between stacks: assembly where we have it, ucontext elsewhere. */
#ifndef PORT_SWITCH_H
#define PORT_SWITCH_H

#include "../nfc_port.h"

/* Make enter(arg) run on s at the first switch to it. 0 or enum nfc_status. */
int port_switch_init(struct nfc_stack *s, void (*enter)(void *arg), void *arg);
void port_switch_free(struct nfc_stack *s);
/* Save what runs in from and continue to. */
void port_switch(struct nfc_stack *from, struct nfc_stack *to);

/*
 * In a handler of a signal: the instruction that it interrupted, and the stack pointer;
 * 0 on a processor that is not known.
 */
uintptr_t port_switch_pc(const void *context);
uintptr_t port_switch_sp(const void *context);
/*
 * On known processors: resume with enter(arg) on s instead, of which nothing is
 * used.
 */
void port_switch_again(void *context, const struct nfc_stack *s,
		       void (*enter)(void *arg), void *arg);

#endif /* PORT_SWITCH_H */
