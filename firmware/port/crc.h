/* SPDX-License-Identifier: MIT */
/* CRC32C by instructions of the processor. */
#ifndef NFC_PORT_CRC_H
#define NFC_PORT_CRC_H

#include <stdint.h>

typedef uint32_t nfc_port_crc_fn(uint32_t crc, const void *data, uint64_t size);

/* What the processor can do it with, from 0, the fastest; NULL: there is no more. */
nfc_port_crc_fn *nfc_port_crc(uint32_t choice);

#endif /* NFC_PORT_CRC_H */
