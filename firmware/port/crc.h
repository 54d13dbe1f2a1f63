/* SPDX-License-Identifier: MIT */
/* CRC32C by instructions of the processor, alone and while data are copied. */
#ifndef NFC_PORT_CRC_H
#define NFC_PORT_CRC_H

#include <stdbool.h>
#include <stdint.h>

typedef uint32_t nfc_port_crc_fn(uint32_t crc, const void *data, uint64_t size);

/*
 * Checksum functions that the processor supports, from 0, the fastest; NULL: no
 * more.
 */
nfc_port_crc_fn *nfc_port_crc(uint32_t choice);

/*
 * Copy some times 16 bytes and add what was copied to a checksum, in one pass. Returns
 * whether any 16 of them may begin with mark. Without to they are summed only.
 */
typedef bool nfc_port_copy_fn(uint32_t *crc, void *to, const void *from,
			      uint64_t size, uint64_t mark);

/* Copy functions that the processor supports, from 0; NULL: no more. */
nfc_port_copy_fn *nfc_port_copy(uint32_t choice);

#endif /* NFC_PORT_CRC_H */
