/* SPDX-License-Identifier: MIT */
/* Lines of a conversation of two hosts, see talk_hosts.c. */
#ifndef TALK_HOSTS_H
#define TALK_HOSTS_H

enum { TALK_LINE = 256 };

/* Do what a line asks for, and return the answer, which may be in `answer`. */
const char *hosts_answer(const char *line, char answer[TALK_LINE]);
/* Write a slot without its phase. */
struct nfc_slot;
void talk_write(const struct nfc_slot *slot, char answer[TALK_LINE]);
/* Read the words of a slot; 0: they are not eight. */
int talk_read(const char *words, struct nfc_slot *slot);
void hosts_end(void);

#endif
