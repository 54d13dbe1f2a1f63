/* SPDX-License-Identifier: MIT */
/* The few kernel types nfc_abi.h uses, for a compile outside the kernel. */
#ifndef STUB_LINUX_TYPES_H
#define STUB_LINUX_TYPES_H

typedef unsigned char __u8;
typedef unsigned short __u16;
typedef unsigned int __u32;
typedef unsigned long long __u64;
typedef __u16 __le16;
typedef __u32 __le32;
typedef __u64 __le64;

#endif
