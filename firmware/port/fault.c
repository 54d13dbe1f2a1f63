// SPDX-License-Identifier: MIT
/* A copy that can fail, and the handlers that make it so. See fault.h. */
#define _GNU_SOURCE
#include "fault.h"

#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <ucontext.h>
#include <unistd.h>
#ifdef __SSE2__
#include <emmintrin.h>
#endif

#include "../nfc_abi.h"

enum {
	GIVE_MIN = 32 << 10, /* less stays in the caches, where it is found sooner */
};

/* A copy under way on this thread: the place to resume at if it faults. */
struct copy {
	jmp_buf back;
	uintptr_t to, from;
	uint64_t length;
};

/* The earlier handler of a signal. Never freed: a handler may be reading it. */
struct previous {
	struct sigaction action;
	struct previous *below; /* before that, if ours was replaced once */
};

static const int signals[] = { SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGABRT };
enum { SIGNALS = sizeof(signals) / sizeof(signals[0]) };

static pthread_mutex_t installing = PTHREAD_MUTEX_INITIALIZER;
static _Atomic(struct previous *) previous[SIGNALS];

/* A handler must not allocate, so its thread's variables are there from the start. */
#define OF_THREAD \
	static _Thread_local __attribute__((tls_model("initial-exec")))
OF_THREAD struct copy *volatile copying;
OF_THREAD struct nfc_fault_owner *volatile owning;

/* ---- the handlers ---- */

static bool within(uintptr_t address, uintptr_t start, uint64_t length)
{
	uintptr_t page = ~(uintptr_t)(NFC_PAGE_SIZE - 1);

	return (address & page) - (start & page) < (start & ~page) + length;
}

/* True if it was the copy that faulted, and not a handler that interrupted it. */
static bool is_copy(const struct copy *c, const siginfo_t *info)
{
	uintptr_t address = (uintptr_t)info->si_addr;

	if (info->si_signo != SIGSEGV && info->si_signo != SIGBUS)
		return false;
	/* SI_KERNEL: an address that no memory can have; it is not reported */
	return info->si_code == SI_KERNEL ||
	       within(address, c->from, c->length) ||
	       within(address, c->to, c->length);
}

/* Act as a process without a handler: end by the signal, or ignore it. */
static void by_default(int signal, const siginfo_t *info,
		       const struct sigaction *old)
{
	struct sigaction action = { .sa_handler = SIG_DFL };
	bool sent = info->si_code <= 0;

	if (sent && old->sa_handler == SIG_IGN)
		return;
	sigaction(signal, &action, NULL);
	if (sent)
		raise(signal); /* blocked until the handler returns */
}

/*
 * Counts how often our handler passes on this very signal: one of the handlers
 * that got it may have passed it back to ours. The kernel clears the end of
 * what it reports of a signal, which holds the count; qemu-user leaves the old
 * bytes there.
 */
static uint8_t *passed_on(siginfo_t *info)
{
	return (uint8_t *)info + sizeof(*info) - 1;
}

/*
 * Hand a signal to its earlier handler. If ours was installed above a handler
 * that itself passes on to ours, the second call is for the one below.
 */
static void pass_on(int signal, siginfo_t *info, void *context)
{
	const struct sigaction *old;
	const struct previous *p;
	int i = 0;

	while (signals[i] != signal)
		i++;
	p = atomic_load(&previous[i]);
	for (unsigned int n = (*passed_on(info))++; n && p->below; n--)
		p = p->below;
	old = &p->action;
	if (old->sa_flags & SA_SIGINFO)
		old->sa_sigaction(signal, info, context);
	else if (old->sa_handler == SIG_DFL || old->sa_handler == SIG_IGN)
		by_default(signal, info, old);
	else
		old->sa_handler(signal);
	(*passed_on(info))--;
}

/* Did the thread do it, and not somebody who sent a signal? */
static bool is_fault(const siginfo_t *info)
{
	if (info->si_signo == SIGABRT)
		return info->si_code == SI_TKILL && info->si_pid == getpid();
	return info->si_code > 0;
}

static void on_fault(int signal, siginfo_t *info, void *context)
{
	struct nfc_fault_owner *owner = owning;
	struct copy *c = copying;
	bool fault = is_fault(info);

	if (c && fault && is_copy(c, info)) {
		ucontext_t *at = context;

		pthread_sigmask(SIG_SETMASK, &at->uc_sigmask, NULL);
		_longjmp(c->back, 1);
	}
	if (owner && fault && owner->crashed(owner, info, context))
		return;
	pass_on(signal, info, context);
}

/* ---- installing them ---- */

/*
 * As Go installs its own: on the signal stack, with all other signals blocked.
 */
static int install(int i)
{
	struct sigaction action = { .sa_sigaction = on_fault,
				    .sa_flags = SA_SIGINFO | SA_ONSTACK |
						SA_RESTART };
	struct sigaction old;
	struct previous *p;

	sigaction(signals[i], NULL, &old);
	if (old.sa_flags & SA_SIGINFO && old.sa_sigaction == on_fault)
		return 0;
	p = malloc(sizeof(*p));
	if (!p)
		return -NFC_ENOMEM;
	*p = (struct previous){ old, atomic_load(&previous[i]) };
	atomic_store(&previous[i], p);
	sigfillset(&action.sa_mask);
	sigaction(signals[i], &action, NULL);
	return 0;
}

int nfc_fault_install(void)
{
	int rc = 0;

	pthread_mutex_lock(&installing);
	for (int i = 0; i < SIGNALS && !rc; i++)
		rc = install(i);
	pthread_mutex_unlock(&installing);
	return rc;
}

void nfc_fault_thread_begin(struct nfc_fault_thread *t)
{
	stack_t stack = { .ss_sp = t->stack, .ss_size = sizeof(t->stack) };

	sigaltstack(&stack, NULL);
}

void nfc_fault_thread_end(void)
{
	stack_t none = { .ss_flags = SS_DISABLE };

	owning = NULL;
	sigaltstack(&none, NULL);
}

void nfc_fault_own(struct nfc_fault_owner *owner)
{
	owning = owner;
}

void nfc_fault_signals(sigset_t *set)
{
	for (int i = 0; i < SIGNALS; i++)
		sigdelset(set, signals[i]);
}

/* ---- the copy ---- */

/*
 * Words of 4 and 8 bytes are moved whole: a poll of the other side reads all or
 * nothing.
 */
static void move_whole(void *to, const void *from, uint64_t length)
{
	uintptr_t below = ((uintptr_t)to | (uintptr_t)from) & (length - 1);

	if (length == 8 && !below)
		atomic_store_explicit(
			(_Atomic uint64_t *)to,
			atomic_load_explicit((const _Atomic uint64_t *)from,
					     memory_order_acquire),
			memory_order_release);
	else if (length == 4 && !below)
		atomic_store_explicit(
			(_Atomic uint32_t *)to,
			atomic_load_explicit((const _Atomic uint32_t *)from,
					     memory_order_acquire),
			memory_order_release);
	else
		memcpy(to, from, length);
}

/*
 * Copy with stores that bypass the caches. A line that another processor has is
 * taken from it one by one by a store that waits for it; these do not wait.
 */
static void move_around(void *to, const void *from, uint64_t length)
{
#ifdef __SSE2__
	uint64_t head = -(uintptr_t)to & 63;
	uint64_t whole = (length - head) & ~63ull;
	const uint8_t *at = (const uint8_t *)from + head;
	uint8_t *line = (uint8_t *)to + head;

	memcpy(to, from, head);
	for (uint8_t *end = line + whole; line < end; line += 64, at += 64) {
		__m128i a = _mm_loadu_si128((const __m128i *)at);
		__m128i b = _mm_loadu_si128((const __m128i *)(at + 16));
		__m128i c = _mm_loadu_si128((const __m128i *)(at + 32));
		__m128i d = _mm_loadu_si128((const __m128i *)(at + 48));

		_mm_stream_si128((__m128i *)line, a);
		_mm_stream_si128((__m128i *)(line + 16), b);
		_mm_stream_si128((__m128i *)(line + 32), c);
		_mm_stream_si128((__m128i *)(line + 48), d);
	}
	memcpy(line, at, length - head - whole);
	_mm_sfence();
#else
	memcpy(to, from, length);
#endif
}

/* Call how with the faults of this thread caught. */
static int guarded(void (*how)(void *, const void *, uint64_t), void *to,
		   const void *from, uint64_t length)
{
	struct copy c = { .to = (uintptr_t)to,
			  .from = (uintptr_t)from,
			  .length = length };

	if (_setjmp(c.back)) {
		copying = NULL;
		return NFC_EDMA;
	}
	copying = &c;
	atomic_signal_fence(memory_order_seq_cst);
	how(to, from, length);
	atomic_signal_fence(memory_order_seq_cst);
	copying = NULL;
	return 0;
}

int nfc_fault_copy(void *to, const void *from, uint64_t length)
{
	return guarded(move_whole, to, from, length);
}

int nfc_fault_give(void *to, const void *from, uint64_t length)
{
	return guarded(length < GIVE_MIN ? move_whole : move_around, to, from,
		       length);
}
