/* SPDX-License-Identifier: MIT */
#ifndef STUB_LINUX_STDDEF_H
#define STUB_LINUX_STDDEF_H

#define offsetof(type, member) __builtin_offsetof(type, member)

#endif
