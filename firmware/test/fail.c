// SPDX-License-Identifier: MIT
/* See fail.h. */
#define _GNU_SOURCE
#include "fail.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sanitizer/asan_interface.h>
#include <search.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>

static _Atomic uint64_t calls, victim;
static _Atomic(const char *) struck;
static _Atomic int64_t mapped;
static _Thread_local bool spared;

void fail_at(uint64_t nth)
{
	calls = 0;
	struck = NULL;
	victim = nth;
}

bool fail_struck(void)
{
	return struck != NULL;
}

const char *fail_name(void)
{
	return struck;
}

void fail_spare(bool on)
{
	spared = on;
}

int64_t fail_mapped(void)
{
	return mapped;
}

static bool fails(const char *name, int why)
{
	if (spared || atomic_fetch_add(&calls, 1) + 1 != victim)
		return false;
	struck = name;
	errno = why;
	return true;
}

static _Atomic int64_t ahead; /* of the system's clocks, seconds */

void fail_clock_ahead(int64_t seconds)
{
	ahead = seconds;
}

int __real_clock_gettime(clockid_t id, struct timespec *t);
int __wrap_clock_gettime(clockid_t id, struct timespec *t);
int __wrap_clock_gettime(clockid_t id, struct timespec *t)
{
	int rc = __real_clock_gettime(id, t);

	t->tv_sec += ahead;
	return rc;
}

/* Parameters and arguments of a call that fails with an errno. */
#define WRAP(type, name, failure, why, params, args) \
	type __real_##name params;                   \
	type __wrap_##name params;                   \
	type __wrap_##name params                    \
	{                                            \
		if (fails(#name, why))               \
			return failure;              \
		return __real_##name args;           \
	}

WRAP(void *, malloc, NULL, ENOMEM, (size_t n), (n))
WRAP(void *, calloc, NULL, ENOMEM, (size_t n, size_t size), (n, size))
WRAP(int, mprotect, -1, ENOMEM, (void *p, size_t n, int prot), (p, n, prot))
WRAP(int, madvise, -1, ENOMEM, (void *p, size_t n, int how), (p, n, how))
WRAP(int, eventfd, -1, EMFILE, (unsigned int n, int flags), (n, flags))
WRAP(int, memfd_create, -1, EMFILE, (const char *name, unsigned int flags),
     (name, flags))
WRAP(int, ftruncate, -1, ENOSPC, (int fd, off_t n), (fd, n))
WRAP(int, fallocate, -1, ENOSPC, (int fd, int mode, off_t at, off_t n),
     (fd, mode, at, n))
WRAP(int, fstat, -1, EIO, (int fd, struct stat *st), (fd, st))
WRAP(ssize_t, write, -1, ENOSPC, (int fd, const void *p, size_t n), (fd, p, n))
WRAP(ssize_t, pread, -1, EIO, (int fd, void *p, size_t n, off_t at),
     (fd, p, n, at))
WRAP(ssize_t, pwrite, -1, ENOSPC, (int fd, const void *p, size_t n, off_t at),
     (fd, p, n, at))
WRAP(ssize_t, readlink, -1, EACCES, (const char *path, char *to, size_t n),
     (path, to, n))
WRAP(int, pthread_create, EAGAIN, EAGAIN,
     (pthread_t * thread, const pthread_attr_t *attr, void *(*fn)(void *),
      void *arg),
     (thread, attr, fn, arg))
WRAP(void *, dlopen, NULL, 0, (const char *path, int how), (path, how))
WRAP(void *, dlsym, NULL, 0, (void *handle, const char *name), (handle, name))
WRAP(void *, tsearch, NULL, ENOMEM,
     (const void *key, void **root, int (*compare)(const void *a, const void *b)),
     (key, root, compare))
WRAP(int, getcontext, -1, EINVAL, (ucontext_t * context), (context))

void *__real_mmap(void *at, size_t n, int prot, int flags, int fd, off_t from);
void *__wrap_mmap(void *at, size_t n, int prot, int flags, int fd, off_t from);
void *__wrap_mmap(void *at, size_t n, int prot, int flags, int fd, off_t from)
{
	void *p;

	if (fails("mmap", ENOMEM))
		return MAP_FAILED;
	p = __real_mmap(at, n, prot, flags, fd, from);
	if (p != MAP_FAILED && !(flags & MAP_FIXED))
		mapped += (int64_t)n;
	return p;
}

int __real_munmap(void *p, size_t n);
int __wrap_munmap(void *p, size_t n);
int __wrap_munmap(void *p, size_t n)
{
	/* A stack that was left for good leaves its frames' marks behind. */
	ASAN_UNPOISON_MEMORY_REGION(p, n);
	mapped -= (int64_t)n;
	return __real_munmap(p, n);
}

int __real_fcntl(int fd, int cmd, ...);
int __wrap_fcntl(int fd, int cmd, ...);
int __wrap_fcntl(int fd, int cmd, ...)
{
	va_list list;
	long arg;

	if (fails("fcntl", EMFILE))
		return -1;
	va_start(list, cmd);
	arg = va_arg(list, long); /* each command has one at the most */
	va_end(list);
	return __real_fcntl(fd, cmd, arg);
}
