/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * The functions of a kernel that the pure part of the driver needs, for user
 * space.
 */
#ifndef NFCM_USER_H
#define NFCM_USER_H

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

typedef uint8_t u8;
typedef uint16_t u16;
typedef uint32_t u32;
typedef uint64_t u64;
typedef int16_t s16;
typedef int64_t s64;

#if __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "the tests run on little-endian machines"
#endif

#define le16_to_cpu(x) (x)
#define le32_to_cpu(x) (x)
#define le64_to_cpu(x) (x)
#define cpu_to_le16(x) (x)
#define cpu_to_le32(x) (x)
#define cpu_to_le64(x) (x)

#endif /* NFCM_USER_H */
