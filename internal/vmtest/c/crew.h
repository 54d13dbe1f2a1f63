/* SPDX-License-Identifier: MIT */
/* Clients at work, in processes of their own, until they lose their device. */
#ifndef CREW_H
#define CREW_H

#include <stdint.h>
#include <sys/types.h>

enum {
	WORKERS = 3,
	BULK = 4 << 20,
};

struct crew {
	pid_t pid[WORKERS];
};

/* Workers that have all begun; their transfers are of BULK bytes at p. */
struct crew hire(uint8_t *p);
/* Each was told that its device is lost, and left. */
void dismiss(const struct crew *w);
/* Kill them; those that have left already do not mind. */
void fire(const struct crew *w);
/* Each has left, told so or killed. */
void await_ends(const struct crew *w);

#endif
