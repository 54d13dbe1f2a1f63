/* SPDX-License-Identifier: MIT */
/*
 * The functions of a library for peer.c, which measures all of them by the same loops. A
 * program is peer.c and one file that has the functions peer_open() to
 * peer_close(). Two processes run it; nothing returns after an error.
 */
#ifndef PEER_H
#define PEER_H

#include <stdbool.h>
#include <stddef.h>

struct peer_job {
	const char *kind; /* echo, take, place or stream */
	size_t size; /* bytes of a message, at least 8 */
	int slots; /* messages that a stream's memory holds */
	int batches; /* measurements */
	int batch; /* messages of one */
	int ms; /* no more batches of an exchange after this time */
	bool full; /* compare every byte of a stream, not the number alone */
	bool copy; /* copy a message of a stream before it is looked at */
};

/* Connect the two processes; which of them this is, 0 or 1. */
int peer_open(const struct peer_job *job, int *argc, char ***argv);
/* Where the next message is written, if it is not the caller's memory. */
void *peer_loan(size_t size);
/* Send what was written there. */
void peer_commit(size_t size);
/* Send memory of the caller, who may change it afterwards. */
void peer_send(const void *from, size_t size);
/* The next message, which stays until peer_release(). */
const void *peer_receive(size_t size);
void peer_release(void);
void peer_close(void);

/* For libraries that do not start processes: the second one and a socket to it. */
int peer_fork(int *conn);
/* For libraries that have no memory of their own: message n of the job's slots. */
void *peer_slot(const struct peer_job *job, unsigned long n);
/* For libraries that do not wait: give way after many tries in a row. */
void peer_pause(unsigned int *tries);
/* Write all to the other process, or read all, before there is another way. */
void peer_write(int conn, const void *from, size_t size);
void peer_read(int conn, void *to, size_t size);
_Noreturn void peer_fail(const char *what, const char *why);

#endif
