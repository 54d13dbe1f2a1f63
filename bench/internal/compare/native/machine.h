/* SPDX-License-Identifier: MIT */
/* Clocks and processors, for the programs of this folder. */
#ifndef MACHINE_H
#define MACHINE_H

#include <sched.h>
#include <time.h>

static inline double clock_ns(clockid_t clock)
{
	struct timespec t;

	clock_gettime(clock, &t);
	return t.tv_sec * 1e9 + t.tv_nsec;
}

/*
 * Keep the calling thread on the first processor that it may use (side 0), or on the
 * last (side 1); -1 with errno.
 */
static inline int stay_on_one(int side)
{
	cpu_set_t may, one;
	int chosen = -1;

	if (sched_getaffinity(0, sizeof(may), &may) < 0)
		return -1;
	for (int cpu = 0; cpu < CPU_SETSIZE; cpu++)
		if (CPU_ISSET(cpu, &may) && (side == 1 || chosen < 0))
			chosen = cpu;
	CPU_ZERO(&one);
	CPU_SET(chosen, &one);
	return sched_setaffinity(0, sizeof(one), &one);
}

#endif
