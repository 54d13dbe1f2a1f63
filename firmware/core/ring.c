// SPDX-License-Identifier: MIT
/* Mailbox rings: take from h2d, put to d2h. See docs/protocol.md. */
#include "calls.h"

/*
 * Copy the next h2d slot out, if there is one. The copy is what is looked at:
 * the host may write the slot again at any time.
 */
bool nfc_rings_take(struct nfc_rings *rings, struct nfc_slot *slot)
{
	uint64_t head = nfc_rings_taken(rings);
	const struct nfc_slot *from = &rings->h2d[head & rings->mask];
	uint64_t header = nfc_load_header(from);

	if (nfc_header_phase(header) != nfc_lap(head, rings->shift))
		return false;
	slot->header = header;
	for (int i = 0; i < 7; i++)
		slot->payload[i] = from->payload[i];
	atomic_store_explicit(&rings->head, head + 1, memory_order_relaxed);
	if (head + 1 - rings->published > rings->mask >> 2)
		nfc_rings_publish(rings);
	return true;
}

/* Publish how far h2d was consumed. */
void nfc_rings_publish(struct nfc_rings *rings)
{
	if (rings->published == nfc_rings_taken(rings))
		return;
	rings->published = nfc_rings_taken(rings);
	atomic_store_explicit((_Atomic uint64_t *)&rings->shared->h2d_head.word,
			      rings->published, memory_order_release);
}

/*
 * Have the host drain a mailbox: by the caller that runs the island, or by its
 * doorbell.
 */
static void ring(const struct nfc_rings *rings)
{
	struct nfc_device *dev = rings->host->dev;
	struct nfc_island *island = &dev->islands[rings->island];
	const struct nfc_port *port = dev->port;

	if (island->assisted) {
		island->unheard |= 1ull << (rings - rings->share->rings);
		return;
	}
	island->rung++;
	port->ring_host(port->self, rings->host->index, island->index);
}

/*
 * Is there room for every answer one message can cause? If not, the host is
 * asked once to make some. A counter that makes no sense reads as "full".
 */
bool nfc_rings_room(struct nfc_rings *rings)
{
	if (rings->tail - rings->limit + NFC_RESERVE <= rings->mask + 1 ||
	    nfc_gone(rings->host))
		return true;
	rings->limit = atomic_load_explicit(
		(_Atomic uint64_t *)&rings->shared->d2h_head.word,
		memory_order_acquire);
	if (rings->tail - rings->limit + NFC_RESERVE <= rings->mask + 1)
		return true;
	if (rings->asked != rings->tail) {
		rings->asked = rings->tail;
		ring(rings);
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
	struct nfc_rings *rings = ch->rings;
	struct nfc_host *host = rings->host;
	struct nfc_slot *slot = &rings->d2h[rings->tail & rings->mask];
	uint64_t header = nfc_header(type, length, host->epoch, id, ch->id);

	if (nfc_gone(host))
		return;
	header |= nfc_lap(rings->tail, rings->shift) << NFC_HDR_PHASE_SHIFT;
	for (int i = 0; i < 7; i++)
		slot->payload[i] = payload[i];
	atomic_store_explicit((_Atomic uint64_t *)&slot->header, header,
			      memory_order_release); /* SYNC: slot */
	rings->tail++;
	atomic_thread_fence(memory_order_seq_cst); /* SYNC: channel park */
	if (atomic_load_explicit(&host->park[ch->id], memory_order_relaxed)) {
		nfc_count(rings->share, NFC_COUNT_DOORBELLS,
			  !ch->island->assisted);
		ring(rings);
	}
}
