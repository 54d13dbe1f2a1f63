/* SPDX-License-Identifier: MIT */
/* Lines of a conversation of an end that moves, see talk_moves.c. */
#ifndef TALK_MOVES_H
#define TALK_MOVES_H

#include "talk_hosts.h"

/* Do what a line asks for, and return the answer, which may be in `answer`. */
const char *moves_answer(const char *line, char answer[TALK_LINE]);
void moves_end(void);

#endif
