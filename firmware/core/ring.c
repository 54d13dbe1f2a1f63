// SPDX-License-Identifier: MIT
/* Mailbox rings: take from h2d, put to d2h. See docs/protocol.md. */
#include "calls.h"

static inline uint64_t load_header(const struct nfc_slot *slot)
{
	return atomic_load_explicit((const _Atomic uint64_t *)&slot->header,
				    memory_order_acquire); /* SYNC: slot */
}

/* The phase bit a new h2d slot has on this lap. */
static inline uint64_t phase(uint64_t index, uint32_t shift)
{
	return ((index >> shift) + 1) & 1;
}

bool nfc_rings_pending(const struct nfc_rings *rings)
{
	uint64_t header = load_header(&rings->h2d[rings->head & rings->mask]);

	return nfc_header_phase(header) == phase(rings->head, rings->shift);
}

/*
 * Copy the next h2d slot out, if there is one. The copy is what is looked at:
 * the host may write the slot again at any time.
 */
bool nfc_rings_take(struct nfc_rings *rings, struct nfc_slot *slot)
{
	const struct nfc_slot *from = &rings->h2d[rings->head & rings->mask];
	uint64_t header = load_header(from);

	if (nfc_header_phase(header) != phase(rings->head, rings->shift))
		return false;
	slot->header = header;
	for (int i = 0; i < 7; i++)
		slot->payload[i] = from->payload[i];
	rings->head++;
	if (rings->head - rings->published > rings->mask >> 2)
		nfc_rings_publish(rings);
	return true;
}

/* Publish how far h2d was consumed. */
void nfc_rings_publish(struct nfc_rings *rings)
{
	if (rings->published == rings->head)
		return;
	rings->published = rings->head;
	atomic_store_explicit((_Atomic uint64_t *)&rings->shared->h2d_head.word,
			      rings->head, memory_order_release);
}

/*
 * Is there room for every answer one message can cause? If not, the host is
 * asked once to make some. A counter that makes no sense reads as "full".
 */
bool nfc_rings_room(struct nfc_rings *rings)
{
	const struct nfc_port *port = rings->host->dev->port;

	if (rings->tail - rings->limit + NFC_RESERVE <= rings->mask + 1)
		return true;
	rings->limit = atomic_load_explicit(
		(_Atomic uint64_t *)&rings->shared->d2h_head.word,
		memory_order_acquire);
	if (rings->tail - rings->limit + NFC_RESERVE <= rings->mask + 1)
		return true;
	if (rings->asked != rings->tail) {
		rings->asked = rings->tail;
		port->ring_host(port->self, rings->island);
	}
	return false;
}

/*
 * Write one message to the host. The caller made sure of room. The doorbell
 * rings only if somebody sleeps for this channel.
 */
void nfc_put(struct nfc_channel *ch, enum nfc_type type, uint64_t length,
	     uint64_t id, const uint64_t payload[7])
{
	struct nfc_island *island = ch->island;
	const struct nfc_port *port = island->dev->port;
	struct nfc_rings *rings = ch->rings;
	struct nfc_host *host = rings->host;
	struct nfc_slot *slot = &rings->d2h[rings->tail & rings->mask];
	uint64_t header = nfc_header(type, length, host->epoch, id, ch->id);

	header |= phase(rings->tail, rings->shift) << NFC_HDR_PHASE_SHIFT;
	for (int i = 0; i < 7; i++)
		slot->payload[i] = payload[i];
	atomic_store_explicit((_Atomic uint64_t *)&slot->header, header,
			      memory_order_release); /* SYNC: slot */
	rings->tail++;
	atomic_thread_fence(memory_order_seq_cst); /* SYNC: channel park */
	if (atomic_load_explicit(&host->park[ch->id], memory_order_relaxed)) {
		nfc_count(island, NFC_COUNT_DOORBELLS, 1);
		port->ring_host(port->self, island->index);
	}
}
