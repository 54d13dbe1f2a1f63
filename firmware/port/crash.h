/* SPDX-License-Identifier: MIT */
/* Processes that crash: who is asked on a thread that runs an island, and what is kept. */
#ifndef PORT_CRASH_H
#define PORT_CRASH_H

#include <stdatomic.h>

#include "fault.h"
#include "hosted.h"

struct epoch;

enum {
	PORT_CRASHES = 64, /* kept of an epoch */
	PORT_CRASH_LINE = 256,
};

/* The crashes of an epoch, the last of them. Handlers of signals write, under no lock. */
struct port_crashes {
	_Atomic uint64_t count;
	struct port_crash {
		_Atomic uint64_t number; /* of count, from 1; 0: it changes */
		struct nfc_crash crash;
		struct nfc_crashed process;
		char line[PORT_CRASH_LINE];
	} at[PORT_CRASHES];
};

/* An island on the thread that runs it. */
struct port_runner {
	struct nfc_fault_owner owner;
	struct epoch *epoch;
	uint32_t island;
};

/*
 * Treat a crash on this thread as one of the island's process, until
 * nfc_fault_own(NULL).
 */
void port_crash_begin(struct port_runner *r, struct epoch *epoch,
		      uint32_t island);

#endif /* PORT_CRASH_H */
