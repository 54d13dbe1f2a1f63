// SPDX-License-Identifier: MIT
/*
 * Stack switching for the hosted port. It saves the callee-saved registers on
 * the old stack and the stack's pointer in its record, and restores both from
 * the other.
 */
#define _GNU_SOURCE
#include "switch.h"

#include <ucontext.h>

/* PORT_SWITCH_PORTABLE: test what other processors get. */
#ifdef PORT_SWITCH_PORTABLE
#define ASSEMBLY 0
#elif defined(__x86_64__) || defined(__aarch64__)
#define ASSEMBLY 1
#else
#define ASSEMBLY 0
#endif

#if ASSEMBLY

void nfc_switch_stacks(void **from, void *to);
void nfc_switch_enter(void);

/* The thread sanitizer must know which stack a thread is on. */
#ifdef __SANITIZE_THREAD__
#include <sanitizer/tsan_interface.h>

static void new_fiber(struct nfc_stack *s)
{
	s->port = __tsan_create_fiber(0);
}

void port_switch_free(struct nfc_stack *s)
{
	__tsan_destroy_fiber(s->port);
	s->port = NULL;
}

void port_switch(struct nfc_stack *from, struct nfc_stack *to)
{
	from->port = __tsan_get_current_fiber();
	__tsan_switch_to_fiber(to->port, 0);
	nfc_switch_stacks(&from->sp, to->sp);
}

#else

static void new_fiber(struct nfc_stack *s)
{
	(void)s;
}

void port_switch_free(struct nfc_stack *s)
{
	(void)s;
}

void port_switch(struct nfc_stack *from, struct nfc_stack *to)
{
	nfc_switch_stacks(&from->sp, to->sp);
}

#endif

#endif

#if ASSEMBLY && defined(__x86_64__)

__asm__(".text\n"
	".globl nfc_switch_stacks\n"
	".hidden nfc_switch_stacks\n"
	".type nfc_switch_stacks, @function\n"
	"nfc_switch_stacks:\n"
	"	pushq %rbp\n"
	"	pushq %rbx\n"
	"	pushq %r12\n"
	"	pushq %r13\n"
	"	pushq %r14\n"
	"	pushq %r15\n"
	"	movq %rsp, (%rdi)\n"
	"	movq %rsi, %rsp\n"
	"	popq %r15\n"
	"	popq %r14\n"
	"	popq %r13\n"
	"	popq %r12\n"
	"	popq %rbx\n"
	"	popq %rbp\n"
	"	ret\n"
	".size nfc_switch_stacks, . - nfc_switch_stacks\n"
	/* The first switch to a stack returns here: r12(r13), never back. */
	".globl nfc_switch_enter\n"
	".hidden nfc_switch_enter\n"
	".type nfc_switch_enter, @function\n"
	"nfc_switch_enter:\n"
	"	movq %r13, %rdi\n"
	"	callq *%r12\n"
	"	ud2\n"
	".size nfc_switch_enter, . - nfc_switch_enter\n");

int port_switch_init(struct nfc_stack *s, void (*enter)(void *arg), void *arg)
{
	uint64_t top = ((uint64_t)(uintptr_t)s->base + s->size) & ~15ull;
	uint64_t *sp = (uint64_t *)(uintptr_t)top - 9; /* aligns the call */

	sp[0] = 0; /* r15 */
	sp[1] = 0; /* r14 */
	sp[2] = (uint64_t)(uintptr_t)arg; /* r13 */
	sp[3] = (uint64_t)(uintptr_t)enter; /* r12 */
	sp[4] = 0; /* rbx */
	sp[5] = 0; /* rbp */
	sp[6] = (uint64_t)(uintptr_t)nfc_switch_enter;
	sp[7] = 0;
	s->sp = sp;
	new_fiber(s);
	return 0;
}

/* As a first switch, with the flags and rounding that a function may expect. */
void port_switch_again(void *context, const struct nfc_stack *s,
		       void (*enter)(void *arg), void *arg)
{
	enum { TRAP = 0x100, DIRECTION = 0x400, ALIGNMENT = 0x40000 };
	mcontext_t *at = &((ucontext_t *)context)->uc_mcontext;
	uint64_t top = ((uint64_t)(uintptr_t)s->base + s->size) & ~15ull;

	at->gregs[REG_RSP] = (greg_t)(top - 16);
	at->gregs[REG_RBP] = 0;
	at->gregs[REG_R12] = (greg_t)(uintptr_t)enter;
	at->gregs[REG_R13] = (greg_t)(uintptr_t)arg;
	at->gregs[REG_RIP] = (greg_t)(uintptr_t)nfc_switch_enter;
	at->gregs[REG_EFL] &= ~(greg_t)(TRAP | DIRECTION | ALIGNMENT);
	if (at->fpregs) {
		at->fpregs->cwd = 0x37f;
		at->fpregs->swd = 0;
		at->fpregs->ftw = 0;
		at->fpregs->mxcsr = 0x1f80;
	}
}

uintptr_t port_switch_pc(const void *context)
{
	return (uintptr_t)((const ucontext_t *)context)->uc_mcontext.gregs[REG_RIP];
}

uintptr_t port_switch_sp(const void *context)
{
	return (uintptr_t)((const ucontext_t *)context)->uc_mcontext.gregs[REG_RSP];
}

#elif ASSEMBLY && defined(__aarch64__)

__asm__(".text\n"
	".globl nfc_switch_stacks\n"
	".hidden nfc_switch_stacks\n"
	".type nfc_switch_stacks, %function\n"
	"nfc_switch_stacks:\n"
	"	sub sp, sp, #160\n"
	"	stp x19, x20, [sp, #0]\n"
	"	stp x21, x22, [sp, #16]\n"
	"	stp x23, x24, [sp, #32]\n"
	"	stp x25, x26, [sp, #48]\n"
	"	stp x27, x28, [sp, #64]\n"
	"	stp x29, x30, [sp, #80]\n"
	"	stp d8, d9, [sp, #96]\n"
	"	stp d10, d11, [sp, #112]\n"
	"	stp d12, d13, [sp, #128]\n"
	"	stp d14, d15, [sp, #144]\n"
	"	mov x9, sp\n"
	"	str x9, [x0]\n"
	"	mov sp, x1\n"
	"	ldp x19, x20, [sp, #0]\n"
	"	ldp x21, x22, [sp, #16]\n"
	"	ldp x23, x24, [sp, #32]\n"
	"	ldp x25, x26, [sp, #48]\n"
	"	ldp x27, x28, [sp, #64]\n"
	"	ldp x29, x30, [sp, #80]\n"
	"	ldp d8, d9, [sp, #96]\n"
	"	ldp d10, d11, [sp, #112]\n"
	"	ldp d12, d13, [sp, #128]\n"
	"	ldp d14, d15, [sp, #144]\n"
	"	add sp, sp, #160\n"
	"	ret\n"
	".size nfc_switch_stacks, . - nfc_switch_stacks\n"
	".globl nfc_switch_enter\n"
	".hidden nfc_switch_enter\n"
	".type nfc_switch_enter, %function\n"
	"nfc_switch_enter:\n"
	"	mov x0, x20\n"
	"	blr x19\n"
	"	brk #0\n"
	".size nfc_switch_enter, . - nfc_switch_enter\n");

int port_switch_init(struct nfc_stack *s, void (*enter)(void *arg), void *arg)
{
	uint64_t top = ((uint64_t)(uintptr_t)s->base + s->size) & ~15ull;
	uint64_t *sp = (uint64_t *)(uintptr_t)top - 20;

	for (int i = 0; i < 20; i++)
		sp[i] = 0;
	sp[0] = (uint64_t)(uintptr_t)enter; /* x19 */
	sp[1] = (uint64_t)(uintptr_t)arg; /* x20 */
	sp[11] = (uint64_t)(uintptr_t)nfc_switch_enter; /* x30 */
	s->sp = sp;
	new_fiber(s);
	return 0;
}

void port_switch_again(void *context, const struct nfc_stack *s,
		       void (*enter)(void *arg), void *arg)
{
	mcontext_t *at = &((ucontext_t *)context)->uc_mcontext;

	at->sp = ((uint64_t)(uintptr_t)s->base + s->size) & ~15ull;
	at->regs[19] = (uint64_t)(uintptr_t)enter;
	at->regs[20] = (uint64_t)(uintptr_t)arg;
	at->regs[29] = 0;
	at->pc = (uint64_t)(uintptr_t)nfc_switch_enter;
}

uintptr_t port_switch_pc(const void *context)
{
	return ((const ucontext_t *)context)->uc_mcontext.pc;
}

uintptr_t port_switch_sp(const void *context)
{
	return ((const ucontext_t *)context)->uc_mcontext.sp;
}

#else

#include <stdlib.h>

struct fiber {
	ucontext_t context;
	void (*enter)(void *arg);
	void *arg;
};

static void trampoline(unsigned int high, unsigned int low)
{
	struct fiber *f = (struct fiber *)(uintptr_t)((uint64_t)high << 32 | low);

	f->enter(f->arg);
	abort();
}

int port_switch_init(struct nfc_stack *s, void (*enter)(void *arg), void *arg)
{
	struct fiber *f = calloc(1, sizeof(*f));
	uint64_t address = (uint64_t)(uintptr_t)f;

	if (!f || getcontext(&f->context)) {
		free(f);
		return NFC_ENOMEM;
	}
	f->enter = enter;
	f->arg = arg;
	f->context.uc_stack.ss_sp = s->base;
	f->context.uc_stack.ss_size = s->size;
	makecontext(&f->context, (void (*)(void))trampoline, 2,
		    (unsigned int)(address >> 32), (unsigned int)address);
	s->port = f;
	return 0;
}

void port_switch_free(struct nfc_stack *s)
{
	free(s->port);
	s->port = NULL;
}

void port_switch(struct nfc_stack *from, struct nfc_stack *to)
{
	struct fiber scheduler, *f = from->port;

	if (!f) { /* the thread's own stack has no record: it is here */
		from->port = f = &scheduler;
		swapcontext(&f->context, &((struct fiber *)to->port)->context);
		from->port = NULL;
		return;
	}
	swapcontext(&f->context, &((struct fiber *)to->port)->context);
}

void port_switch_again(void *context, const struct nfc_stack *s,
		       void (*enter)(void *arg), void *arg)
{
	(void)context;
	(void)s;
	(void)enter;
	(void)arg;
}

uintptr_t port_switch_pc(const void *context)
{
	(void)context;
	return 0;
}

uintptr_t port_switch_sp(const void *context)
{
	(void)context;
	return 0;
}

#endif
