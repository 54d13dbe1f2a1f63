// SPDX-License-Identifier: MIT
/* Packets that test and measure a mesh: counted, checked, timed. */
#include <string.h>

#include "mesh_state.h"

enum {
	INJECT = 16, /* packets of a load in one step */
	WINDOW = 64, /* packets of a pair among which doubles are found */
	PING_LOST_MS = 200,
	EPOCH_SHIFT = 20, /* a millisecond, of the ns of a node's epoch */
};

/* ---- packets ---- */

static struct nfc_word pattern(const struct nfc_packet *p, uint32_t i)
{
	uint64_t x = ((uint64_t)p->from << 40 | (uint64_t)p->sequence << 8) + i;

	x *= 0x9e3779b97f4a7c15ull;
	return (struct nfc_word){ x ^ x >> 31, ~x };
}

static bool unchanged(struct mesh_node *n, const struct nfc_packet *p,
		      const struct nfc_fifo *f, uint32_t at)
{
	uint32_t words = nfc_words(p->size), step = words;

	if (n->mesh->config.whole)
		step = 1;
	for (uint32_t i = 0; i < p->size / NFC_WORD_SIZE; i += step) {
		struct nfc_word want = pattern(p, i), got;

		nfc_fifo_read(f, at + i, &got, 1);
		if (memcmp(&got, &want, sizeof(got)))
			return false;
	}
	return true;
}

/*
 * Note the number of a packet; true if it was noted before. Too old a one counts as
 * such. A node that started anew may begin its numbers again.
 */
static bool seen_before(struct pair *p, const struct nfc_packet *packet)
{
	uint32_t sequence = packet->sequence;
	int32_t ahead;

	if (packet->epoch != p->epoch)
		*p = (struct pair){ .next = p->next, .epoch = packet->epoch };
	ahead = (int32_t)(sequence - p->highest);
	if (ahead > 0) {
		p->seen = ahead < WINDOW ? p->seen << ahead : 0;
		p->highest = sequence;
		ahead = 0;
	}
	if (-ahead >= WINDOW || p->seen >> -ahead & 1)
		return true;
	p->seen |= 1ull << -ahead;
	return false;
}

static void data_received(struct mesh_node *n, const struct nfc_packet *p,
			  const struct nfc_fifo *f, uint32_t at)
{
	uint32_t from = nfc_torus_index(&n->mesh->config.node.torus, p->from);

	n->count[NFC_MESH_CHANGED] += !unchanged(n, p, f, at);
	n->count[NFC_MESH_DOUBLED] += seen_before(&n->pair[from], p);
	n->count[NFC_MESH_CAME]++;
	n->count[NFC_MESH_BYTES] += p->size;
}

/* Send the answers that are due, as far as there is room. */
static void send_pongs(struct mesh_node *n)
{
	static const struct nfc_word nothing[NFC_PACKET_WORDS];

	while (n->ponged != n->pinged) {
		struct nfc_packet *p = &n->pong[n->ponged % MESH_PONGS];

		if (nfc_node_send(&n->node, p, nothing) == -NFC_EBUSY)
			return;
		n->ponged++;
	}
}

/*
 * The answer to a ping. It does not wait for room while the ping keeps a place in a
 * FIFO: nodes that ask each other would wait for one another. One too many is dropped,
 * and asked for again.
 */
static void ping_received(struct mesh_node *n, const struct nfc_packet *p)
{
	struct nfc_packet *q;

	if (n->pinged - n->ponged == MESH_PONGS)
		return;
	q = &n->pong[n->pinged++ % MESH_PONGS];
	*q = *p;
	q->to = p->from;
	q->kind = NFC_MESH_PONG;
	send_pongs(n);
}

/* ---- loads ---- */

/* Send one packet; false: not now. */
static bool send_one(struct mesh_node *n, uint32_t to)
{
	struct nfc_word *data = n->payload;
	struct nfc_packet p = {
		.to = nfc_torus_address(&n->mesh->config.node.torus, to),
		.from = n->node.config.address,
		.size = n->load.size,
		.epoch = (uint16_t)(n->epoch >> EPOCH_SHIFT),
		.kind = (uint8_t)n->load.kind,
	};
	uint32_t words = nfc_words(p.size);
	int rc;

	if (n->node.inject.first != n->node.inject.last)
		return false; /* none waits twice */
	p.sequence = p.kind == NFC_MESH_PING ? n->pings + 1 :
					       n->pair[to].next + 1;
	for (uint32_t i = 0; i < words; i += n->mesh->config.whole ? 1 : words)
		data[i] = pattern(&p, i);
	rc = nfc_node_send(&n->node, &p, data);
	if (rc == -NFC_EBUSY)
		return false;
	if (rc) {
		n->count[NFC_MESH_REFUSED]++;
	} else if (p.kind == NFC_MESH_DATA) {
		n->pair[to].next++;
		n->count[NFC_MESH_SENT]++;
	}
	return true;
}

static void send_pings(struct mesh_node *n, uint64_t now)
{
	if (n->pinged_ns && now - n->pinged_ns < PING_LOST_MS * 1000000ull)
		return;
	if (!send_one(n, n->load.to))
		return;
	n->pings++;
	n->pinged_ns = now;
}

static void pong_received(struct mesh_node *n, const struct nfc_packet *p)
{
	uint64_t now = nfc_mesh_now(n->mesh);

	if (!n->pinged_ns || p->sequence != n->pings)
		return; /* of a ping that was given up */
	if (n->took_ns)
		n->took_ns[n->load.count - n->left] = now - n->pinged_ns;
	n->pinged_ns = 0;
	n->left--;
	n->count[NFC_MESH_PONGS]++;
	if (n->left)
		send_pings(n, now);
}

bool nfc_mesh_deliver(void *self, const struct nfc_packet *p,
		      const struct nfc_fifo *f, uint32_t at)
{
	struct mesh_node *n = self;

	switch (p->kind) {
	case NFC_MESH_DATA:
		data_received(n, p, f, at);
		return true;
	case NFC_MESH_PING:
		ping_received(n, p);
		return true;
	case NFC_MESH_PONG:
		pong_received(n, p);
		return true;
	case NFC_RMA_PUT:
	case NFC_RMA_GET:
	case NFC_RMA_DONE:
		nfc_rma_deliver(n->rma, p, f, at);
		return true;
	default:
		if (n->far)
			n->far->deliver(n, p, f, at);
		return true;
	}
}

/* The next node that a load for all is for. */
static uint32_t next_target(struct mesh_node *n)
{
	if (n->load.to != NFC_MESH_ALL)
		return n->load.to;
	n->target = (n->target + 1) % n->mesh->nodes;
	if (n->target == n->index)
		n->target = (n->target + 1) % n->mesh->nodes;
	return n->target;
}

bool nfc_mesh_send_load(struct mesh_node *n)
{
	send_pongs(n);
	if (n->left && n->load.kind == NFC_MESH_PING) {
		send_pings(n, nfc_mesh_now(n->mesh));
		return false;
	}
	for (uint32_t i = 0; i < INJECT && n->left; i++) {
		uint32_t before = n->target;

		if (!send_one(n, next_target(n))) {
			n->target = before;
			return false;
		}
		n->left--;
	}
	return n->left > 0;
}
