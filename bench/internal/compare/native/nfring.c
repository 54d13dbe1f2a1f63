// SPDX-License-Identifier: MIT
/* The ring of libnfcomms as a peer of itself: one each way, all in C. */
#include "peer.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "kmod/lib/libnfcomms.h"

static struct nfcomms_ring_owner *owners[2];
static struct nfcomms_ring *to, *from;
static int this_side;

static void must(int rc, const char *what)
{
	if (rc < 0)
		peer_fail(what, strerror(-rc));
}

/* Ring n carries what side n sends. */
static void name_of(char *name, size_t room, int n, pid_t first)
{
	snprintf(name, room, "nfbench-peer-%d-%d", (int)first, n);
}

static struct nfcomms_ring *attach(int n, pid_t first)
{
	enum nfcomms_ring_role role = n == this_side ? NFCOMMS_RING_WRITE :
						       NFCOMMS_RING_READ;
	struct nfcomms_ring *ring;
	char name[64];

	name_of(name, sizeof(name), n, first);
	must(nfcomms_ring_attach(name, role, -1, &ring), "attach to the ring");
	must(nfcomms_ring_prewarm(ring), "touch the ring");
	return ring;
}

int peer_open(const struct peer_job *job, int *argc, char ***argv)
{
	size_t page = sysconf(_SC_PAGESIZE),
	       packet = (job->size + 16 + page - 1) / page * page;
	struct nfcomms_ring_config config = { job->slots, packet, 1 };
	char name[64], ready = 1;
	pid_t first = getpid();
	int conn;

	(void)argc, (void)argv;
	this_side = peer_fork(&conn);
	for (int n = 0; this_side == 0 && n < 2; n++) {
		name_of(name, sizeof(name), n, first);
		must(nfcomms_ring_create(name, &config, &owners[n]), "make the "
								     "ring");
	}
	if (this_side == 0)
		peer_write(conn, &ready, 1);
	else
		peer_read(conn, &ready, 1);
	to = attach(this_side, first);
	from = attach(!this_side, first);
	return this_side;
}

void *peer_loan(size_t size)
{
	void *packet = nfcomms_ring_reserve(to);

	(void)size;
	if (!packet)
		peer_fail("reserve", "the ring is of no use any more");
	return packet;
}

void peer_commit(size_t size)
{
	must(nfcomms_ring_commit(to, size, -1), "commit");
}

void peer_send(const void *message, size_t size)
{
	memcpy(peer_loan(size), message, size);
	peer_commit(size);
}

const void *peer_receive(size_t size)
{
	const void *packet;
	size_t length;

	must(nfcomms_ring_peek(from, &packet, &length, -1), "peek");
	if (length != size)
		peer_fail("peek", "a packet of another length");
	return packet;
}

void peer_release(void)
{
	nfcomms_ring_release(from);
}

void peer_close(void)
{
	must(nfcomms_ring_flush(to, -1), "flush");
	nfcomms_ring_close(to);
	nfcomms_ring_close(from);
	for (int n = 0; n < 2; n++)
		nfcomms_ring_destroy(owners[n]);
}
