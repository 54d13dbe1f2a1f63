/* SPDX-License-Identifier: MIT */
#ifndef STUB_LINUX_BUILD_BUG_H
#define STUB_LINUX_BUILD_BUG_H

#define static_assert(cond, text) _Static_assert(cond, text)

#endif
