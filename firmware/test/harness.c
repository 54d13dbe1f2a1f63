// SPDX-License-Identifier: MIT
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "harness.h"

enum {
	HANG_SECONDS = 900, /* a case that takes longer hangs */
};

const char *test_argument;

static unsigned int failures; /* of the running case */

/* A fuzzer has no cases: what fails there is a crash. */
static void fail(void)
{
	failures++;
#ifdef HARNESS_NO_MAIN
	abort();
#endif
}

static struct test_case *first, **last = &first;

unsigned int test_failures(void)
{
	return failures;
}

void test_add(struct test_case *c)
{
	*last = c;
	last = &c->next;
}

bool test_true(bool ok, const char *file, int line, const char *text)
{
	if (ok)
		return true;
	printf("%s:%d: not true: %s\n", file, line, text);
	fail();
	return false;
}

bool test_equal(uint64_t got, uint64_t want, const char *file, int line,
		const char *text)
{
	if (got == want)
		return true;
	printf("%s:%d: %s: got %" PRIu64 " (%#" PRIx64 "), want %" PRIu64 "\n",
	       file, line, text, got, got, want);
	fail();
	return false;
}

#ifndef HARNESS_NO_MAIN
static char hangs[128]; /* what is said of the case if it does not end */

/* Name a case that hangs: make would only say that the alarm rang. */
static void hang(int signal)
{
	(void)signal;
	_exit(write(1, hangs, strlen(hangs)) < 0 ? 3 : 2);
}

/* Usage: test [-n NAME-PART] [ARGUMENT] */
int main(int argc, char **argv)
{
	unsigned int passed = 0, failed = 0;
	const char *part = "";

	setvbuf(stdout, NULL, _IOLBF, 0);
	if (argc > 2 && !strcmp(argv[1], "-n")) {
		part = argv[2];
		argc -= 2;
		argv += 2;
	}
	test_argument = argc > 1 ? argv[1] : NULL;
	signal(SIGALRM, hang);
	for (struct test_case *c = first; c; c = c->next) {
		if (!strstr(c->name, part))
			continue;
		failures = 0;
		snprintf(hangs, sizeof(hangs), "FAIL %s does not end\n",
			 c->name);
		alarm(HANG_SECONDS);
		c->fn();
		printf("%s %s\n", failures ? "FAIL" : "ok", c->name);
		if (failures)
			failed++;
		else
			passed++;
	}
	printf("%u passed, %u failed\n", passed, failed);
	return failed || !passed;
}
#endif
