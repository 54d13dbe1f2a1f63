// SPDX-License-Identifier: MIT
/* Copies that fail, and what becomes of the faults of others. */
#define _GNU_SOURCE
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "harness.h"
#include "../nfc_abi.h"
#include "../port/fault.h"

enum {
	PAGE = 4096,
	HALF = 1 << 20, /* of memory: good, then not */
};

static sigjmp_buf back;
static volatile int first, second;

/* Memory whose second half is at the mercy of a test. */
static uint8_t *memory(int fd)
{
	int flags = fd < 0 ? MAP_PRIVATE | MAP_ANONYMOUS : MAP_SHARED;
	uint8_t *p = mmap(NULL, 2 * HALF, PROT_READ | PROT_WRITE, flags, fd, 0);

	if (p == MAP_FAILED)
		abort();
	memset(p, 1, 2 * HALF);
	return p;
}

static uint8_t *cut_off(void)
{
	int fd = memfd_create("cut", MFD_CLOEXEC);
	uint8_t *p;

	if (fd < 0 || ftruncate(fd, 2 * HALF))
		abort();
	p = memory(fd);
	if (ftruncate(fd, HALF))
		abort();
	close(fd);
	return p;
}

static uint8_t *guarded(int prot)
{
	uint8_t *p = memory(-1);

	mprotect(p + HALF, HALF, prot);
	return p;
}

/* Copies of every size that end in, start in or are within the bad half. */
static void try_half(uint8_t *p, bool readable)
{
	static const uint64_t sizes[] = { 1, 7, 56, 300, PAGE, HALF };
	uint8_t *good = memory(-1);

	for (int i = 0; i < 6; i++) {
		uint64_t n = sizes[i];

		CHECK_EQ(nfc_fault_copy(good, p + HALF - n, n), 0);
		CHECK_EQ(nfc_fault_copy(p + HALF - n, good, n), 0);
		CHECK_EQ(nfc_fault_copy(p + HALF + 1 - n, good, n), NFC_EDMA);
		CHECK_EQ(nfc_fault_copy(p + HALF, good, n), NFC_EDMA);
		CHECK_EQ(nfc_fault_copy(p + HALF + PAGE / 2, good, n), NFC_EDMA);
		CHECK_EQ(nfc_fault_give(p + HALF - n, good, n), 0);
		CHECK_EQ(nfc_fault_give(p + HALF + 1 - n, good, n), NFC_EDMA);
		CHECK_EQ(nfc_fault_copy(good, p + HALF + 1 - n, n),
			 readable ? 0 : NFC_EDMA);
	}
	munmap(good, 2 * HALF);
	munmap(p, 2 * HALF);
}

CASE(a_copy_that_fails_says_so)
{
	uint8_t byte = 0;

	REQUIRE(!nfc_fault_install());
	try_half(cut_off(), false);
	try_half(guarded(PROT_NONE), false);
	try_half(guarded(PROT_READ), true);
	CHECK_EQ(nfc_fault_copy(&byte, (void *)8, 1), NFC_EDMA);
	CHECK_EQ(nfc_fault_copy(&byte, (void *)(1ull << 51), 1), NFC_EDMA);
}

/* Also of a thread of the firmware, and many times; its mask stays. */
static void *copies(void *arg)
{
	struct nfc_fault_thread *t = arg;
	uint8_t *bad = guarded(PROT_NONE), byte = 0;
	sigset_t before = { 0 }, after = { 0 };

	nfc_fault_thread_begin(t);
	pthread_sigmask(SIG_SETMASK, NULL, &before);
	for (int i = 0; i < 1000; i++)
		CHECK_EQ(nfc_fault_copy(&byte, bad + HALF, 1), NFC_EDMA);
	pthread_sigmask(SIG_SETMASK, NULL, &after);
	CHECK(!memcmp(&before, &after, sizeof(before)));
	nfc_fault_thread_end();
	munmap(bad, 2 * HALF);
	return NULL;
}

CASE(threads_fail_apart)
{
	static struct nfc_fault_thread t[4];
	pthread_t thread[4];

	REQUIRE(!nfc_fault_install());
	for (int i = 0; i < 4; i++)
		REQUIRE(!pthread_create(&thread[i], NULL, copies, &t[i]));
	for (int i = 0; i < 4; i++)
		pthread_join(thread[i], NULL);
}

/* ---- faults that are no copy's, each in a process of its own ---- */

static void on_first(int signal, siginfo_t *info, void *context)
{
	(void)signal;
	(void)info;
	(void)context;
	first++;
	siglongjmp(back, 1);
}

static struct sigaction below_second;

static void on_second(int signal, siginfo_t *info, void *context)
{
	second++;
	below_second.sa_sigaction(signal, info, context);
}

static void catch_faults(void (*fn)(int, siginfo_t *, void *),
			 struct sigaction *old)
{
	struct sigaction action = { .sa_sigaction = fn,
				    .sa_flags = SA_SIGINFO | SA_ONSTACK };

	sigaction(SIGSEGV, &action, old);
}

static void touch(uint8_t *bad)
{
	if (!sigsetjmp(back, 1))
		*(volatile uint8_t *)bad = 1;
}

/* How a process ended that ran fn: its exit status, or minus its signal. */
static int ends(void (*fn)(void))
{
	int status = 0;
	pid_t child = fork();

	if (!child) {
		signal(SIGSEGV, SIG_DFL); /* a sanitizer has its own */
		signal(SIGBUS, SIG_DFL);
		signal(SIGFPE, SIG_DFL);
		signal(SIGILL, SIG_DFL);
		fn();
		fflush(stdout);
		_exit((int)test_failures());
	}
	waitpid(child, &status, 0);
	return WIFSIGNALED(status) ? -WTERMSIG(status) : WEXITSTATUS(status);
}

static void others(void)
{
	uint8_t *bad = guarded(PROT_NONE) + HALF, byte = 0;

	catch_faults(on_first, NULL);
	CHECK(!nfc_fault_install());
	touch(bad);
	CHECK_EQ(first, 1);
	CHECK_EQ(nfc_fault_copy(&byte, bad, 1), NFC_EDMA);
	CHECK_EQ(first, 1);
	catch_faults(on_second, &below_second); /* passes on to ours */
	touch(bad);
	CHECK_EQ(second, 1);
	CHECK_EQ(first, 2);
	CHECK_EQ(nfc_fault_copy(&byte, bad, 1), NFC_EDMA);
	CHECK(!nfc_fault_install()); /* above it, which is above ours */
	second = 0;
	CHECK_EQ(nfc_fault_copy(&byte, bad, 1), NFC_EDMA);
	CHECK_EQ(second, 0);
	touch(bad);
	CHECK_EQ(second, 1);
	CHECK_EQ(first, 3);
}

CASE(a_fault_of_others_goes_where_it_went)
{
	CHECK_EQ(ends(others), 0);
}

static void *bad_byte;

static int crash_line[2]; /* a pipe */

static bool refuses(struct nfc_fault_owner *self, const siginfo_t *info,
		    void *context)
{
	ssize_t n = 0;

	(void)self;
	if (info->si_signo == SIGSEGV && info->si_addr == bad_byte && context)
		n = write(crash_line[1], "overrun", 7);
	(void)n;
	return false;
}

static void explains(void)
{
	static struct nfc_fault_owner owner = { .crashed = refuses };
	static struct nfc_fault_thread t;

	bad_byte = guarded(PROT_NONE) + HALF;
	CHECK(!nfc_fault_install());
	nfc_fault_thread_begin(&t);
	nfc_fault_own(&owner);
	*(volatile uint8_t *)bad_byte = 1;
}

/*
 * The thread's owner is called, then the process dies of the fault as before.
 */
CASE(a_fault_that_its_owner_does_not_take_is_fatal)
{
	char line[16] = { 0 };

	REQUIRE(!pipe(crash_line));
	CHECK_EQ(ends(explains), -SIGSEGV);
	CHECK_EQ(read(crash_line[0], line, sizeof(line)), 7);
	close(crash_line[0]);
	close(crash_line[1]);
}

static volatile sig_atomic_t taken[NSIG];

/* The thread continues elsewhere. */
static bool takes(struct nfc_fault_owner *self, const siginfo_t *info,
		  void *context)
{
	(void)self;
	(void)context;
	taken[info->si_signo]++;
	siglongjmp(back, 1);
}

static void each_signal(void)
{
	static struct nfc_fault_owner owner = { .crashed = takes };
	static const int sent[] = { SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP };

	CHECK(!nfc_fault_install());
	nfc_fault_own(&owner);
	if (!sigsetjmp(back, 1))
		abort();
	CHECK_EQ(taken[SIGABRT], 1);
	if (!sigsetjmp(back, 1))
		__builtin_trap();
	CHECK_EQ(taken[SIGILL] + taken[SIGTRAP], 1);
	if (!sigsetjmp(back, 1))
		*(volatile uint8_t *)(guarded(PROT_NONE) + HALF) = 1;
	CHECK_EQ(taken[SIGSEGV], 1);
	nfc_fault_own(NULL);
	for (int i = 0; i < 5; i++) { /* what was sent is nobody's fault */
		signal(sent[i], SIG_IGN);
		CHECK(!nfc_fault_install());
		nfc_fault_own(&owner);
		raise(sent[i]);
		nfc_fault_own(NULL);
	}
	CHECK_EQ(taken[SIGFPE] + taken[SIGBUS], 0);
}

CASE(an_owner_has_every_fault_of_its_thread)
{
	CHECK_EQ(ends(each_signal), 0);
}

static void sent(void)
{
	CHECK(!nfc_fault_install());
	raise(SIGSEGV);
}

static void sent_to_deaf(void)
{
	signal(SIGSEGV, SIG_IGN);
	CHECK(!nfc_fault_install());
	raise(SIGSEGV);
}

CASE(a_signal_that_was_sent_is_no_fault)
{
	CHECK_EQ(ends(sent), -SIGSEGV);
	CHECK_EQ(ends(sent_to_deaf), 0);
}
