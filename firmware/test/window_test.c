// SPDX-License-Identifier: MIT
/* Windows of processes: whose memory they are of, and when they end. */
#include <string.h>

#include "rig.h"

enum {
	TARGET = 20,
	SIZE = 3 * RIG_PAGE,
	BOTH = NFC_WINDOW_READ | NFC_WINDOW_WRITE,
};

/* The fabric as this port plays it: what was made, and has not ended. */
static struct {
	uint64_t key;
	void *memory;
	uint64_t size;
} made[256];

static int refusal; /* what the port answers */

static int port_window(void *self, uint32_t host, void *memory, uint64_t size,
		       uint32_t access, uint64_t *key)
{
	static uint64_t next;
	int i = 0;

	(void)self;
	CHECK_EQ(host, 0);
	CHECK(access && access <= BOTH);
	CHECK(memory != NULL);
	if (refusal)
		return refusal;
	while (made[i].key)
		i++;
	made[i].key = *key = ++next;
	made[i].memory = memory;
	made[i].size = size;
	return 0;
}

static void port_revoke(void *self, uint32_t host, uint64_t key)
{
	int i = 0;

	(void)self;
	CHECK_EQ(host, 0);
	while (i < 256 && made[i].key != key)
		i++;
	if (CHECK(i < 256))
		made[i].key = 0;
}

static int count(void)
{
	int n = 0;

	for (int i = 0; i < 256; i++)
		n += made[i].key != 0;
	return n;
}

/* A device of a fabric that runs fn, which has memory. */
static struct rig *run(void (*fn)(struct nfc_process *self, struct puppet *p),
		       struct puppet **p)
{
	struct rig *r = rig_new(NULL);

	memset(made, 0, sizeof(made));
	refusal = 0;
	r->port.window = port_window;
	r->port.revoke = port_revoke;
	*p = host_launch(r, TARGET, fn, 1);
	go(r);
	return r;
}

static uint64_t allocate(struct nfc_process *self, struct puppet *p)
{
	p->memory = nfc_alloc(self, NFC_EMEM, SIZE);
	CHECK(p->memory != 0);
	return p->memory;
}

static void offers(struct nfc_process *self, struct puppet *p)
{
	uint64_t at = allocate(self, p), key;

	note(p, nfc_window(self, at + 8, SIZE - 8, BOTH, &key));
	CHECK(made[0].memory == nfc_at(self, at + 8, SIZE - 8));
	CHECK_EQ(made[0].size, SIZE - 8);
	CHECK_EQ(made[0].key, key);
	note(p, nfc_revoke(self, key + 1));
	CHECK_EQ(count(), 1);
	note(p, nfc_revoke(self, key));
	CHECK_EQ(count(), 0);
	note(p, nfc_revoke(self, key));
	note(p, nfc_revoke(self, 0));
	stay(self);
}

CASE(a_window_until_it_is_revoked)
{
	struct puppet *p;
	struct rig *r = run(offers, &p);

	CHECK_EQ(p->rc[0], 0);
	CHECK_EQ(p->rc[1], -NFC_ECLOSED);
	CHECK_EQ(p->rc[2], 0);
	CHECK_EQ(p->rc[3], -NFC_ECLOSED);
	CHECK_EQ(p->rc[4], -NFC_ECLOSED);
	rig_free(r);
}

/*
 * Memory that cannot become a window: each case is a status, and nothing is
 * made.
 */
static void offers_wrongly(struct nfc_process *self, struct puppet *p)
{
	uint64_t at = allocate(self, p), key = 0;
	uint64_t other = nfc_memory_alloc(self->host, self->id + 1, NFC_EMEM,
					  SIZE);

	note(p, nfc_window(self, at, SIZE, 0, &key));
	note(p, nfc_window(self, at, SIZE, BOTH + 1, &key));
	note(p, nfc_window(self, at, SIZE + 1, BOTH, &key));
	note(p, nfc_window(self, at + SIZE, 1, BOTH, &key));
	note(p, nfc_window(self, at - 1, 2, BOTH, &key));
	note(p, nfc_window(self, at + 1, UINT64_MAX, BOTH, &key));
	note(p, nfc_window(self, UINT64_MAX, 2, BOTH, &key));
	note(p, nfc_window(self, 0, 1, BOTH, &key));
	note(p, nfc_window(self, other, SIZE, BOTH, &key));
	refusal = -NFC_ERESET;
	note(p, nfc_window(self, at, SIZE, BOTH, &key));
	CHECK_EQ(key, 0);
	CHECK_EQ(count(), 0);
	self->island->dev->port = &(struct nfc_port){ 0 };
	note(p, nfc_window(self, at, SIZE, BOTH, &key));
	self->island->dev->port = &p->rig->port;
	stay(self);
}

CASE(memory_that_is_not_the_process_s)
{
	struct puppet *p;
	struct rig *r = run(offers_wrongly, &p);

	CHECK_EQ(p->step, 11);
	for (int i = 0; i < 9; i++)
		CHECK_EQ(p->rc[i], i < 2 ? -NFC_EINVAL : -NFC_ERANGE);
	CHECK_EQ(p->rc[9], -NFC_ERESET);
	CHECK_EQ(p->rc[10], -NFC_ENOTSUP);
	rig_free(r);
}

static void frees(struct nfc_process *self, struct puppet *p)
{
	uint64_t at = allocate(self, p), key;
	uint64_t other = nfc_alloc(self, NFC_CTM, SIZE);

	CHECK_EQ(nfc_window(self, at, SIZE, BOTH, &key), 0);
	CHECK_EQ(nfc_window(self, at + RIG_PAGE, 1, NFC_WINDOW_READ, &key), 0);
	CHECK_EQ(nfc_window(self, other, SIZE, BOTH, &key), 0);
	nfc_free(self, at + RIG_PAGE); /* no block begins there */
	CHECK_EQ(count(), 3);
	nfc_free(self, at);
	CHECK_EQ(count(), 1);
	note(p, nfc_revoke(self, key));
	CHECK_EQ(count(), 0);
	note(p, nfc_window(self, at, SIZE, BOTH, &key));
	note(p, nfc_window(self, other, SIZE, BOTH, &key));
}

CASE(windows_end_with_their_memory_and_the_process)
{
	struct puppet *p;
	struct rig *r = run(frees, &p);

	CHECK_EQ(p->rc[0], 0);
	CHECK_EQ(p->rc[1], -NFC_ERANGE);
	CHECK_EQ(p->rc[2], 0);
	CHECK(p->done);
	CHECK_EQ(count(), 0);
	rig_free(r);
}

static void offers_many(struct nfc_process *self, struct puppet *p)
{
	uint64_t at = allocate(self, p), key[NFC_HOST_WINDOWS + 1];

	for (int i = 0; i < NFC_HOST_WINDOWS; i++)
		CHECK_EQ(nfc_window(self, at, SIZE, BOTH, &key[i]), 0);
	note(p, nfc_window(self, at, SIZE, BOTH, &key[NFC_HOST_WINDOWS]));
	note(p, nfc_revoke(self, key[7]));
	note(p, nfc_window(self, at, SIZE, BOTH, &key[7]));
	refusal = -NFC_ENOMEM;
	note(p, nfc_revoke(self, key[8]));
	note(p, nfc_window(self, at, SIZE, BOTH, &key[8]));
	refusal = 0;
	note(p, nfc_window(self, at, SIZE, BOTH, &key[8]));
}

CASE(as_many_as_a_host_may_have)
{
	struct puppet *p;
	struct rig *r = run(offers_many, &p);

	for (int i = 0; i < 6; i++)
		CHECK_EQ(p->rc[i], i == 0 || i == 4 ? -NFC_ENOMEM : 0);
	CHECK(p->done);
	CHECK_EQ(count(), 0);
	rig_free(r);
}
