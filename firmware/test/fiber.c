// SPDX-License-Identifier: MIT
#include <pthread.h>
#include <stdlib.h>

#include "fiber.h"

/* Weak: a build without the address sanitizer has none. */
__attribute__((weak)) void
__sanitizer_start_switch_fiber(void **fake, const void *bottom, size_t size);
__attribute__((weak)) void
__sanitizer_finish_switch_fiber(void *fake, const void **bottom, size_t *size);

static void leave_stack(struct fiber *from, const struct fiber *to)
{
	if (__sanitizer_start_switch_fiber)
		__sanitizer_start_switch_fiber(&from->fake, to->stack, to->size);
}

static void enter_stack(void *fake)
{
	if (__sanitizer_finish_switch_fiber)
		__sanitizer_finish_switch_fiber(fake, NULL, NULL);
}

enum {
	STACK_MIN = 256 << 10, /* sanitized frames are large */
};

struct fiber fiber_main;
struct fiber *fiber_current = &fiber_main;

__attribute__((constructor)) static void know_main(void)
{
	pthread_attr_t attr;

	if (pthread_getattr_np(pthread_self(), &attr))
		abort();
	pthread_attr_getstack(&attr, &fiber_main.stack, &fiber_main.size);
	pthread_attr_destroy(&attr);
}

static void trampoline(void)
{
	enter_stack(NULL);
	fiber_current->fn(fiber_current->arg);
	abort(); /* fibers leave by switching */
}

struct fiber *fiber_new(size_t size, void (*fn)(void *arg), void *arg)
{
	struct fiber *f = calloc(1, sizeof(*f));

	if (!f)
		abort();
	f->size = size < STACK_MIN ? STACK_MIN : size;
	f->stack = malloc(f->size);
	f->fn = fn;
	f->arg = arg;
	if (!f->stack || getcontext(&f->context))
		abort();
	f->context.uc_stack.ss_sp = f->stack;
	f->context.uc_stack.ss_size = f->size;
	makecontext(&f->context, trampoline, 0);
	return f;
}

void fiber_free(struct fiber *f)
{
	free(f->stack);
	free(f);
}

void fiber_switch(struct fiber *to)
{
	struct fiber *from = fiber_current;

	fiber_current = to;
	leave_stack(from, to);
	swapcontext(&from->context, &to->context);
	enter_stack(from->fake);
}
