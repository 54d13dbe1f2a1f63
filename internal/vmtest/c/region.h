/* SPDX-License-Identifier: MIT */
/* Registered memory, for the tests of it. */
#ifndef REGION_H
#define REGION_H

#include <stdint.h>

#include "rig.h"

/* A region of so many bytes at a place; of one byte there, with flags, … */
struct nfcomms_register region_at(const void *at, uint64_t length);
struct nfcomms_register with_flags(const void *at, uint32_t flags);
/* … or of a page there, with a dma-buf. */
struct nfcomms_register with_fd(const void *at, uint32_t flags, int fd,
				uint64_t offset);
/* Register memory, and end that: 0 or errno. */
int registers(int fd, const void *at, uint64_t length);
int unregister(int fd, const void *at);

/* The regions of a file, and how many parts were pinned for transfers so far. */
uint64_t regions(int fd);
uint64_t pins(int fd);

/* A transfer of bytes that lie somewhere: how it ended. */
struct nfcomms_completion send_at(int fd, uint32_t ch, const void *at,
				  uint64_t length);
struct nfcomms_completion receive_at(int fd, uint32_t ch, void *at,
				     uint64_t length);

#endif
