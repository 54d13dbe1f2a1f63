// SPDX-License-Identifier: MIT
/*
 * Devices without the kernel module: "sim:", "shm:". The same ioctls, answered
 * by libnfcomms-umod.so in this process (docs/design/0049-c-without-a-module.md),
 * which is loaded with the first such device.
 *
 * The other library is Go. Its code runs on small stacks, also on a caller's
 * thread, where a signal handler of the program would find no room. So signals
 * are blocked while it runs; its own threads inherit that, and never run a
 * handler of the program. It does not survive a fork: the child is notified.
 */
#include <dlfcn.h>
#include <errno.h>
#include <link.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "library.h"

/* The exports of the other library; kmod/lib/umod/main.go describes each. */
static struct {
	int (*open)(const char *address, uintptr_t *file, int *events);
	int (*ioctl)(uintptr_t file, unsigned long number, void *argument);
	int (*call)(uintptr_t file, const void *op, void *completion, int *wait);
	int (*meet)(uintptr_t file, void *meeting, const char *name,
		    void *completion, int *wait);
	void (*take_back)(uintptr_t file, void *completion);
	unsigned int (*take)(uintptr_t file, void *to, unsigned int count);
	void (*close)(uintptr_t file);
} umod;

_Static_assert(sizeof(struct umod_meeting) == 32, "as in Go");

static pthread_once_t once = PTHREAD_ONCE_INIT;
static int load_result;
static volatile sig_atomic_t forked; /* in a child of the process that loaded it */

/* Block what a program may handle, but not what its own code raises. */
static void block_signals(sigset_t *before)
{
	static const int
		kept[] = { SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP,
			   SIGABRT, SIGSYS, SIGURG /* Go interrupts its threads with it */ };
	sigset_t most;
	size_t i;

	sigfillset(&most);
	for (i = 0; i < sizeof(kept) / sizeof(kept[0]); i++)
		sigdelset(&most, kept[i]);
	pthread_sigmask(SIG_BLOCK, &most, before);
}

static void restore_signals(const sigset_t *before)
{
	pthread_sigmask(SIG_SETMASK, before, NULL);
}

static void note_fork(void)
{
	forked = 1;
}

/* The program is the first of all objects; does it need a dynamic linker? */
static int find_interpreter(struct dl_phdr_info *program, size_t size, void *is)
{
	int i;

	(void)size;
	for (i = 0; i < program->dlpi_phnum; i++) {
		if (program->dlpi_phdr[i].p_type == PT_INTERP)
			*(int *)is = 1;
	}
	return 1;
}

static void load(void)
{
	static const struct {
		const char *name;
		void *at;
	} symbols[] = {
		{ "nfcomms_umod_open", &umod.open },
		{ "nfcomms_umod_ioctl", &umod.ioctl },
		{ "nfcomms_umod_call", &umod.call },
		{ "nfcomms_umod_meet", &umod.meet },
		{ "nfcomms_umod_take_back", &umod.take_back },
		{ "nfcomms_umod_take", &umod.take },
		{ "nfcomms_umod_close", &umod.close },
	};
	void *library = NULL, *symbol;
	int dynamic = 0;
	size_t i;

	/* Loaded into a static program it would run on a second C library, and crash. */
	load_result = -ELIBACC;
	dl_iterate_phdr(find_interpreter, &dynamic);
	if (dynamic)
		library = dlopen("libnfcomms-umod.so.1", RTLD_NOW | RTLD_LOCAL);
	if (!library)
		return;
	for (i = 0; i < sizeof(symbols) / sizeof(symbols[0]); i++) {
		symbol = dlsym(library, symbols[i].name);
		if (!symbol)
			return;
		memcpy(symbols[i].at, &symbol, sizeof(symbol));
	}
	load_result = -pthread_atfork(NULL, NULL, note_fork);
}

int umod_open(const char *address, struct nfcomms_dev *dev)
{
	sigset_t before;
	int rc;

	if (forked)
		return -EOPNOTSUPP;
	block_signals(&before);
	pthread_once(&once, load);
	rc = load_result;
	if (!rc)
		rc = umod.open(address, &dev->file, &dev->fd);
	restore_signals(&before);
	return rc;
}

void umod_close(const struct nfcomms_dev *dev)
{
	sigset_t before;

	if (forked)
		return;
	block_signals(&before);
	umod.close(dev->file);
	restore_signals(&before);
}

int umod_ioctl(const struct nfcomms_dev *dev, unsigned long number,
	       void *argument)
{
	sigset_t before;
	int rc;

	if (forked)
		return -ENODEV;
	block_signals(&before);
	rc = umod.ioctl(dev->file, number, argument);
	restore_signals(&before);
	return rc;
}

/*
 * Wait until an operation has ended, in a poll that lets signals in, so that none
 * is missed. One that was handled takes the operation back.
 */
static int wait_called(const struct nfcomms_dev *dev,
		       struct nfcomms_completion *c, int fd,
		       const sigset_t *before)
{
	struct pollfd ended = { .fd = fd, .events = POLLIN };
	int interrupted = 0;

	while (ppoll(&ended, 1, NULL, interrupted ? NULL : before) != 1) {
		if (!interrupted)
			umod.take_back(dev->file, c);
		interrupted = 1;
	}
	close(fd);
	return interrupted && c->status == NFC_EWITHDRAWN ? -EINTR : 0;
}

int umod_call(const struct nfcomms_dev *dev, const struct nfcomms_op *op,
	      struct nfcomms_completion *c)
{
	sigset_t before;
	int rc, wait = -1;

	if (forked)
		return -ENODEV;
	block_signals(&before);
	rc = umod.call(dev->file, op, c, &wait);
	if (!rc && wait >= 0)
		rc = wait_called(dev, c, wait, &before);
	restore_signals(&before);
	return rc;
}

int umod_meet(const struct nfcomms_dev *dev, struct umod_meeting *m,
	      const char *name)
{
	struct nfcomms_completion c = { 0 };
	sigset_t before;
	int rc, wait = -1;

	if (forked)
		return -ENODEV;
	block_signals(&before);
	rc = umod.meet(dev->file, m, name, &c, &wait);
	if (!rc)
		rc = wait_called(dev, &c, wait, &before);
	restore_signals(&before);
	return rc ? rc : completion_result(&c);
}

int umod_take(const struct nfcomms_dev *dev, struct nfcomms_completion *to,
	      unsigned int count)
{
	sigset_t before;
	unsigned int n;

	if (forked)
		return -ENODEV;
	block_signals(&before);
	n = umod.take(dev->file, to, count);
	restore_signals(&before);
	return (int)n;
}
