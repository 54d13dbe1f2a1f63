/* SPDX-License-Identifier: MIT */
/*
 * A small test harness: CASE defines a test that runs by itself, CHECK notes a
 * failure and continues, REQUIRE returns from the (void) function that contains
 * it.
 */
#ifndef HARNESS_H
#define HARNESS_H

#include <inttypes.h>
#include <stdbool.h>
#include <stdint.h>

struct test_case {
	const char *name;
	void (*fn)(void);
	struct test_case *next;
};

void test_add(struct test_case *c);
bool test_true(bool ok, const char *file, int line, const char *text);
bool test_equal(uint64_t got, uint64_t want, const char *file, int line,
		const char *text);
/* The argument of the command line after the test names' filter, or NULL. */
extern const char *test_argument;
/* Failed checks of the running case. */
unsigned int test_failures(void);

#define CASE(id)                                                    \
	static void id(void);                                       \
	__attribute__((constructor)) static void add_##id(void)     \
	{                                                           \
		static struct test_case c = { #id, id, (void *)0 }; \
		test_add(&c);                                       \
	}                                                           \
	static void id(void)

#define CHECK(cond) test_true((cond), __FILE__, __LINE__, #cond)
#define CHECK_EQ(got, want)                                               \
	test_equal((uint64_t)(got), (uint64_t)(want), __FILE__, __LINE__, \
		   #got " == " #want)
#define REQUIRE(cond)             \
	do {                      \
		if (!CHECK(cond)) \
			return;   \
	} while (0)

#endif
