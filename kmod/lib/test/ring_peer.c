// SPDX-License-Identifier: MIT
/*
 * One side of a ring, for the tests of package ring: reads or writes a stream
 * whose packets follow from their numbers, and says how it ended.
 *
 *	ring_peer read NAME
 *	ring_peer write NAME PACKETS
 *	ring_peer create NAME PACKETS SIZE	until standard input ends
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../libnfcomms.h"

/* Write packet n into p, or compare it; its length, or 0 if it differs. */
static size_t stream_packet(uint8_t *p, uint64_t n, size_t room, int compare)
{
	size_t length = 8 + n * 37 % (room - 7);
	uint64_t word;

	for (size_t at = 0; at + 8 <= length; at += at ? 512 : 8) {
		word = at ? n * 0x9e3779b97f4a7c15ull + at : n;
		if (compare && memcmp(p + at, &word, 8))
			return 0;
		if (!compare)
			memcpy(p + at, &word, 8);
	}
	return length;
}

static int read_all(struct nfcomms_ring *r, uint64_t *n)
{
	const void *packet;
	size_t length;
	int rc;

	for (;; ++*n) {
		rc = nfcomms_ring_peek(r, &packet, &length, -1);
		if (rc)
			return rc;
		if (stream_packet((uint8_t *)packet, *n, nfcomms_ring_room(r),
				  1) != length)
			return -EBADMSG;
		nfcomms_ring_release(r);
	}
}

static int write_all(struct nfcomms_ring *r, uint64_t packets, uint64_t *n)
{
	int rc = 0;

	for (; !rc && *n < packets; ++*n) {
		uint8_t *p = nfcomms_ring_reserve(r);

		if (!p)
			return -EBADFD;
		rc = nfcomms_ring_commit(r,
					 stream_packet(p, *n,
						       nfcomms_ring_room(r), 0),
					 -1);
	}
	return rc ? rc : nfcomms_ring_flush(r, -1);
}

/* Serve a ring until standard input ends. */
static int create(const char *name, uint64_t packets, uint64_t size)
{
	struct nfcomms_ring_config c = { packets, size, 1 };
	struct nfcomms_ring_owner *owner;
	int rc = nfcomms_ring_create(name, &c, &owner);

	printf("%s\n", rc ? strerror(-rc) : "ready");
	fflush(stdout);
	if (rc)
		return 0;
	while (getchar() != EOF)
		;
	nfcomms_ring_destroy(owner);
	puts("destroyed");
	return 0;
}

int main(int argc, char **argv)
{
	int reads = argc == 3 && !strcmp(argv[1], "read");
	struct nfcomms_ring *r;
	uint64_t n = 0;
	int rc;

	if (argc == 5 && !strcmp(argv[1], "create"))
		return create(argv[2], strtoull(argv[3], NULL, 10),
			      strtoull(argv[4], NULL, 10));
	if (!reads && (argc != 4 || strcmp(argv[1], "write"))) {
		fprintf(stderr,
			"usage: ring_peer read NAME | write NAME PACKETS | create NAME PACKETS SIZE\n");
		return 2;
	}
	rc = nfcomms_ring_attach(argv[2],
				 reads ? NFCOMMS_RING_READ : NFCOMMS_RING_WRITE,
				 60000, &r);
	if (!rc) {
		rc = reads ? read_all(r, &n) :
			     write_all(r, strtoull(argv[3], NULL, 10), &n);
		nfcomms_ring_close(r);
	}
	printf("%llu %s\n", (unsigned long long)n, rc ? strerror(-rc) : "done");
	return 0;
}
