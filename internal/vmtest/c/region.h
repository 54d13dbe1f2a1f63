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
/* Register memory, with flags or none, and end that: 0 or errno. The handle is noted. */
int registers(int fd, const void *at, uint64_t length);
int registers_with(int fd, const void *at, uint64_t length, uint32_t flags);
int unregister(int fd, const void *at);
/* An operation whose bytes are all in such memory names its region. */
void by_handle(int fd, struct nfcomms_op *op);

/* The regions of a file, and how many parts were pinned for transfers so far. */
uint64_t regions(int fd);
uint64_t pins(int fd);

/* A transfer of bytes that lie somewhere: how it ended. */
struct nfcomms_completion send_at(int fd, uint32_t ch, const void *at,
				  uint64_t length);
struct nfcomms_completion receive_at(int fd, uint32_t ch, void *at,
				     uint64_t length);

/* Send what lies somewhere and receive it elsewhere: what came is what went. */
void there_and_back(int fd, uint32_t loop, uint8_t *from, uint8_t *to,
		    uint64_t n, uint64_t seed);
/* A transfer that waits for its target. */
uint32_t offer_at(int fd, uint8_t *p, uint64_t n);

enum { BUFFER_SIZE = 512 * NFC_PAGE_SIZE };

/* A dma-buf, and its bytes as this process sees them. */
struct buffer {
	int fd, memory;
	uint8_t *p;
};
/* A dma-buf of udmabuf, which makes it of a memfd. */
struct buffer buffer_new(void);
void buffer_free(struct buffer *b);
/* Addresses that stand for a buffer here, and name nothing. */
uint8_t *name_for(uint64_t size);
/* Register a dma-buf, for which such addresses stand: 0 or errno. */
int import(int fd, const uint8_t *name, uint64_t size, int buffer,
	   uint64_t offset, uint32_t flags);

#endif
