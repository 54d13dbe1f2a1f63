/* SPDX-License-Identifier: MIT */
/* CRC32C by an instruction of the processor. */
#ifndef NFC_PORT_CRC_H
#define NFC_PORT_CRC_H

#include <stdint.h>

/* The function that does it, NULL if the processor has no such instruction. */
uint32_t (*nfc_port_crc(void))(uint32_t crc, const void *data, uint64_t size);

#endif /* NFC_PORT_CRC_H */
