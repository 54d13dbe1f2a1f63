/* SPDX-License-Identifier: MIT */
/* Lines of a conversation of a process that connects, see talk_guests.c. */
#ifndef TALK_GUESTS_H
#define TALK_GUESTS_H

#include "talk_hosts.h"

/* Do what a line asks for, and return the answer, which may be in `answer`. */
const char *guests_answer(const char *line, char answer[TALK_LINE]);
void guests_end(void);

#endif
