/* SPDX-License-Identifier: MIT */
/* Constants that the program visitor and its host share. */
#ifndef VISITOR_H
#define VISITOR_H

#include "../nfc_fw.h"

enum {
	VISITOR_VISITS = 10, /* of a process */
	VISITOR_BYTES = 50001, /* of a transfer, either way */
	VISITOR_OWN = 0x80, /* in each byte that the process has not from the host */
};

#endif
