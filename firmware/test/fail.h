/* SPDX-License-Identifier: MIT */
/*
 * Every call by which the hosted port asks for something, as the linker's
 * --wrap hands it to fail.c: the one with a given number fails.
 */
#ifndef FAIL_H
#define FAIL_H

#include <stdbool.h>
#include <stdint.h>

/* The nth call from now on fails, once; 0: none does. Starts the count anew. */
void fail_at(uint64_t nth);
/* Has it failed? */
bool fail_struck(void);
/* The function that failed last, or NULL. */
const char *fail_name(void);
/* Fail no call of this thread's while true. */
void fail_spare(bool on);
/* The clocks of the firmware are that far ahead. */
void fail_clock_ahead(int64_t seconds);
/* Bytes that are mapped by mmap() and not given back. */
int64_t fail_mapped(void);

#endif
