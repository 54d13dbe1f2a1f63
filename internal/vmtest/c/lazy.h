/* SPDX-License-Identifier: MIT */
/* Memory whose pages come when a test says so, by userfaultfd(2). */
#ifndef LAZY_H
#define LAZY_H

#include <stddef.h>
#include <stdint.h>

struct lazy {
	int fd;
	uint8_t *p;
	size_t size;
};

/* Memory of which the first bytes are there. */
struct lazy lazy_pages(size_t size, size_t there);
/* Wait until somebody waits for one of its pages. */
void await_fault(const struct lazy *l);
/* All pages come, for good. */
void let_come(struct lazy *l);
/* They are lost instead: a waiter gets a fault. */
void let_vanish(struct lazy *l);
/* Free what is left. */
void free_lazy(struct lazy *l);

/*
 * Have a worker of the driver pin memory that does not come, for the operation 2 on
 * a channel to "hold": what waits behind another one begins when that is withdrawn.
 */
void stall_worker(int fd, uint32_t ch, const struct lazy *memory);

#endif
