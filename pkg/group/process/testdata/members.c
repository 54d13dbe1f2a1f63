// SPDX-License-Identifier: MIT
/* Members of a group for the tests: each checks all that it gets. */
#include "nfc_group.h"
#include "nfc_log.h"

enum {
	LARGEST = 40000, /* bytes of a package */
};

static uint8_t bytes[4][LARGEST];

/* The size of the packages of a step: none, a few bytes, and more than a page. */
static uint32_t size_of(uint64_t step)
{
	return (uint32_t)(step * step * step * 37 % LARGEST);
}

/* Exchanges the packages of a step, which are the same as those of the test's own members. */
static int give(struct nfc_group *g, uint64_t step)
{
	uint32_t n = size_of(step);
	int rc = 0;

	__builtin_memset(bytes[g->rank], (int)(16 * g->rank + step), n);
	for (uint32_t to = 0; to < g->size && !rc; to++)
		if (to != g->rank)
			rc = nfc_group_put(g, to, bytes[g->rank], n);
	return rc ? rc : nfc_group_exchange(g);
}

/* 0 if each other member gave what it has to. */
static int check(struct nfc_group *g, uint64_t step)
{
	uint32_t from, n, count = 0;
	const uint8_t *data;

	while ((data = nfc_group_next(g, &from, &n))) {
		count++;
		for (uint32_t i = 0; i < n; i++)
			if (n != size_of(step) ||
			    data[i] != (uint8_t)(16 * from + step))
				return -NFC_EPROTO;
	}
	return count == (size_of(step) ? g->size - 1 : 0) ? 0 : -NFC_EPROTO;
}

static int steps(struct nfc_group *g, uint64_t n)
{
	int rc = 0;

	for (uint64_t step = 0; step < n && !rc; step++) {
		rc = give(g, step);
		if (!rc)
			rc = check(g, step);
	}
	return rc;
}

/* All calls that need no member to end; the argument is the number of steps. */
static void member_main(struct nfc_process *self)
{
	struct nfc_group g;
	uint32_t from, n, ranks = 0, late = 0;
	const uint8_t *data;
	int rc = nfc_group_join(&g, self, nfc_channel_of(self, 0));

	if (!rc)
		rc = steps(&g, nfc_argument(self));
	if (!rc)
		rc = nfc_group_barrier(&g);
	if (!rc) /* each gives as many bytes as its rank */
		rc = nfc_group_allgather(&g, bytes[g.rank], g.rank);
	while (!rc && (data = nfc_group_next(&g, &from, &n)))
		ranks += from == ranks && n == from;
	while (!rc && (rc = nfc_group_flush(&g)) > 0)
		for (rc = 0; nfc_group_next(&g, &from, &n);)
			late++;
	if (!rc && (ranks != g.size || late != 1))
		rc = -NFC_EPROTO;
	nfc_logf(self, "member ends: %d", rc);
	if (!rc)
		nfc_group_leave(&g);
}

/* Steps alone; the argument is the number of them. */
static void step_main(struct nfc_process *self)
{
	struct nfc_group g;
	int rc = nfc_group_join(&g, self, nfc_channel_of(self, 0));

	if (!rc)
		rc = steps(&g, nfc_argument(self));
	if (!rc)
		nfc_group_leave(&g);
}

/* Exchanges until another member is lost, and once more without that. */
static void heir_main(struct nfc_process *self)
{
	struct nfc_group g;
	uint32_t from, n;
	int rc = nfc_group_join(&g, self, nfc_channel_of(self, 0));
	uint32_t before = g.size;

	while (!rc)
		rc = nfc_group_exchange(&g);
	if (rc != -NFC_GROUP_GONE && rc != -NFC_GROUP_REVOKED)
		nfc_logf(self, "heir: %d", rc);
	else if (!nfc_group_next(&g, &from, &n))
		nfc_logf(self, "heir: of no rank");
	else if (nfc_group_exchange(&g) != -NFC_GROUP_BROKEN)
		nfc_logf(self, "heir: it is not broken");
	else if (nfc_group_shrink(&g) || g.size != before - 1)
		nfc_logf(self, "heir: %u of %u", g.size, before);
	else if (!steps(&g, 3))
		nfc_group_leave(&g);
}

/* Crashes in its third step. */
static void mortal_main(struct nfc_process *self)
{
	struct nfc_group g;
	int rc = nfc_group_join(&g, self, nfc_channel_of(self, 0));

	for (int i = 0; i < 2 && !rc; i++)
		rc = nfc_group_exchange(&g);
	*(volatile int *)8 = rc;
}

/* Ends while its step waits for the others, once the host says so on port 1. */
static void leaver_main(struct nfc_process *self)
{
	struct nfc_group_head head = { NFC_GROUP_JOIN, 0, NFC_GROUP_VERSION, 0 };
	struct nfc_channel *ch = nfc_channel_of(self, 0);
	char answer[NFC_PAYLOAD_SIZE];

	channel_write(ch, &head, sizeof(head));
	channel_read(ch, answer, sizeof(answer));
	head.what = NFC_GROUP_BARRIER;
	channel_write(ch, &head, sizeof(head));
	channel_read(nfc_channel_of(self, 1), answer, sizeof(answer));
}

/* A call in one message. */
struct said {
	struct nfc_group_head head;
	struct nfc_group_package package;
	uint64_t data;
};

/* Makes a call into one that makes no sense, and returns its size. */
static size_t twist(struct said *call, uint64_t lie)
{
	static const struct {
		uint32_t what, packages, size;
		size_t n;
	} lies[] = {
		{ NFC_GROUP_JOIN, 0, 0, 15 }, /* no whole head */
		{ NFC_GROUP_BARRIER, 0, 0, 16 }, /* before it joins */
		{ NFC_GROUP_JOIN, 0, 0, 16 }, /* again */
		{ 99, 0, 0, 16 },
		{ NFC_GROUP_EXCHANGE, 1, 0, 16 }, /* and none is there */
		{ NFC_GROUP_EXCHANGE, 0, 8, 32 }, /* and one is there */
		{ NFC_GROUP_EXCHANGE, 1, UINT32_MAX, 32 },
		{ NFC_GROUP_EXCHANGE, 1, 0, 28 }, /* and something follows */
		{ NFC_GROUP_ALLGATHER, 0, 0, 16 }, /* of nothing */
	};

	call->head.what = lies[lie].what;
	call->head.packages = lies[lie].packages;
	call->package.size = lies[lie].size;
	return lies[lie].n;
}

/* The reason of an exchange with a package for a rank, which the process survives. */
static uint32_t reason_of(struct nfc_channel *ch, struct said *call,
			  uint32_t rank)
{
	struct nfc_group_head answer[4];

	call->head.what = NFC_GROUP_EXCHANGE;
	call->head.packages = 1;
	call->package.rank = rank;
	channel_write(ch, call, sizeof(*call));
	channel_read(ch, answer, sizeof(answer));
	call->head.packages = 0;
	return answer->what;
}

/* Sends a call that makes no sense, by its argument. */
static void liar_main(struct nfc_process *self)
{
	struct said call = { { NFC_GROUP_JOIN, 0, NFC_GROUP_VERSION, 0 },
			     { 1, 8 },
			     0 };
	struct nfc_channel *ch = nfc_channel_of(self, 0);
	uint64_t lie = nfc_argument(self), n = sizeof(call.head);
	char answer[NFC_PAYLOAD_SIZE];

	if (lie > 1) {
		channel_write(ch, &call, n);
		channel_read(ch, answer, sizeof(answer));
	}
	if (lie < 9)
		n = twist(&call, lie);
	else if (lie == 9)
		channel_write_ind(ch,
				  nfc_alloc(self, NFC_EMEM, NFC_GROUP_BYTES + 1),
				  NFC_GROUP_BYTES + 1);
	else if (reason_of(ch, &call, lie == 10 ? UINT32_MAX : 0) ==
		 NFC_GROUP_RANK)
		call.head.what = NFC_GROUP_LEAVE;
	channel_write(ch, &call, n);
	channel_read(ch, answer, sizeof(answer));
}

/* Asks to join by blocks of another version. */
static void stranger_main(struct nfc_process *self)
{
	struct nfc_group_head head = { NFC_GROUP_JOIN, 0, NFC_GROUP_VERSION + 1,
				       0 };

	channel_write(nfc_channel_of(self, 0), &head, sizeof(head));
}

NFC_PROGRAMS({ NFC_PROGRAM_ABI, 0, "member", member_main },
	     { NFC_PROGRAM_ABI, 0, "step", step_main },
	     { NFC_PROGRAM_ABI, 0, "heir", heir_main },
	     { NFC_PROGRAM_ABI, 0, "mortal", mortal_main },
	     { NFC_PROGRAM_ABI, 0, "leaver", leaver_main },
	     { NFC_PROGRAM_ABI, 0, "liar", liar_main },
	     { NFC_PROGRAM_ABI, 0, "stranger", stranger_main });
