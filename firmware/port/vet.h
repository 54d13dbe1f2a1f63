/* SPDX-License-Identifier: MIT */
/*
 * Checks images before the dynamic linker reads them. The linker crashes on one
 * that was cut short, and would run code of an image where no crash can be
 * contained. Record 0053.
 */
#ifndef PORT_VET_H
#define PORT_VET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "../nfc_port.h"

/*
 * May the image in this file be linked? 0, or -NFC_EINVAL and why. The file may change: from
 * then on the dynamic linker finds nothing in it to run.
 */
int port_vet(uint8_t *file, uint64_t size, char why[NFC_WHY_SIZE]);
/* The same of its table of programs, where it was linked to start. */
bool port_vet_table(const uint8_t *file, uintptr_t start,
		    const struct nfc_program *table);
/* Is [p, p + size) in one part of the linked image that has those PF_ flags? */
bool port_vet_holds(const uint8_t *file, uintptr_t start, const void *p,
		    uint64_t size, uint32_t flags);

#endif /* PORT_VET_H */
