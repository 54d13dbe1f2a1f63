// SPDX-License-Identifier: MIT
/* Stacks of processes. See port_stack.h. */
#define _GNU_SOURCE
#include "stack.h"

#include <sys/mman.h>
#include <unistd.h>

#include "switch.h"

/* Bytes of a stack's own pages. */
static uint64_t pages_of(const struct nfc_stack *s)
{
	uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);

	return (s->size + page - 1) / page * page;
}

int port_stack_init(void *self, struct nfc_stack *s,
		    void (*enter_fn)(void *arg), void *arg)
{
	uint64_t size = pages_of(s);
	uint8_t *base = mmap(NULL, size + PORT_STACK_GUARD, PROT_NONE,
			     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	(void)self;
	if (base == MAP_FAILED)
		return NFC_ENOMEM;
	s->base = base + PORT_STACK_GUARD;
	if (!mprotect(s->base, size, PROT_READ | PROT_WRITE) &&
	    !port_switch_init(s, enter_fn, arg))
		return 0;
	munmap(base, size + PORT_STACK_GUARD);
	s->base = NULL; /* a stack there is taken for one that works */
	return NFC_ENOMEM;
}

void port_stack_free(void *self, struct nfc_stack *s)
{
	(void)self;
	port_switch_free(s);
	munmap((uint8_t *)s->base - PORT_STACK_GUARD,
	       pages_of(s) + PORT_STACK_GUARD);
	s->base = NULL;
}

bool port_stack_guards(const struct nfc_stack *s, const void *address)
{
	uintptr_t base = (uintptr_t)s->base, at = (uintptr_t)address;

	return at < base && base - at <= PORT_STACK_GUARD;
}

bool port_stack_holds(const struct nfc_stack *s, uintptr_t sp)
{
	uintptr_t base = (uintptr_t)s->base;

	return sp >= base - PORT_STACK_GUARD && sp < base + s->size;
}
