/* SPDX-License-Identifier: MIT */
/* Stacks to switch between, in a way the address sanitizer can follow. */
#ifndef FIBER_H
#define FIBER_H

#include <stddef.h>
#include <ucontext.h>

struct fiber {
	ucontext_t context;
	void *stack;
	size_t size;
	void *fake;
	void (*fn)(void *arg);
	void *arg;
};

/* The fiber that runs; the thread's own at first. */
extern struct fiber *fiber_current;
/* The thread's own. */
extern struct fiber fiber_main;

struct fiber *fiber_new(size_t size, void (*fn)(void *arg), void *arg);
void fiber_free(struct fiber *f);
void fiber_switch(struct fiber *to);

#endif
