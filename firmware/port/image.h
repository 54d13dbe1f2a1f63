/* SPDX-License-Identifier: MIT */
/*
 * Program images as shared objects. Each is loaded for itself, whatever is
 * loaded already: two images of the same bytes have their statics each.
 */
#ifndef PORT_IMAGE_H
#define PORT_IMAGE_H

#include <stdbool.h>

#include "../nfc_port.h"

/* 0, -NFC_EINVAL if it is none that may run, or -NFC_ENOMEM. None of its code has run. */
int port_image_load(const void *image, uint64_t size, const struct nfc_api *api,
		    struct nfc_image *out);
void port_image_unload(void *handle);

/*
 * Find an instruction: the number of its image, and the offset there, as
 * addr2line has it. False: in none. For signal handlers, too.
 */
bool port_image_place(uintptr_t pc, uint64_t *image, uint64_t *offset);
/*
 * The same of the innermost call that left an image, of which only the stack from sp to
 * top is known: a guess, as a handler of signals can make.
 */
bool port_image_caller(uintptr_t sp, uintptr_t top, uint64_t *image,
		       uint64_t *offset);

#endif /* PORT_IMAGE_H */
