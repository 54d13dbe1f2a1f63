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

bool nfc_box_pending(const struct nfc_box *box)
{
	uint64_t header = load_header(&box->h2d[box->head & box->mask]);

	return nfc_header_phase(header) == phase(box->head, box->shift);
}

/*
 * Copy the next h2d slot out, if there is one. The copy is what is looked at:
 * the host may write the slot again at any time.
 */
bool nfc_box_take(struct nfc_box *box, struct nfc_slot *slot)
{
	const struct nfc_slot *from = &box->h2d[box->head & box->mask];
	uint64_t header = load_header(from);

	if (nfc_header_phase(header) != phase(box->head, box->shift))
		return false;
	slot->header = header;
	for (int i = 0; i < 7; i++)
		slot->payload[i] = from->payload[i];
	box->head++;
	if (box->head - box->told > box->mask >> 2)
		nfc_box_publish(box);
	return true;
}

/* Tell the host how far h2d was consumed. */
void nfc_box_publish(struct nfc_box *box)
{
	if (box->told == box->head)
		return;
	box->told = box->head;
	atomic_store_explicit((_Atomic uint64_t *)&box->shared->h2d_head.word,
			      box->head, memory_order_release);
}

static uint32_t island_of(const struct nfc_device *dev,
			  const struct nfc_box *box)
{
	return (uint32_t)(box - dev->boxes) / dev->islands[0].box_count;
}

/*
 * Is there room for every answer one message can cause? If not, the host is
 * asked once to make some. A counter that makes no sense reads as "full".
 */
bool nfc_box_room(struct nfc_device *dev, struct nfc_box *box)
{
	if (box->tail - box->limit + NFC_RESERVE <= box->mask + 1)
		return true;
	box->limit = atomic_load_explicit(
		(_Atomic uint64_t *)&box->shared->d2h_head.word,
		memory_order_acquire);
	if (box->tail - box->limit + NFC_RESERVE <= box->mask + 1)
		return true;
	if (box->nagged != box->tail) {
		box->nagged = box->tail;
		dev->port->ring_host(dev->port->self, island_of(dev, box));
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
	struct nfc_device *dev = island->dev;
	struct nfc_box *box = ch->box;
	struct nfc_slot *slot = &box->d2h[box->tail & box->mask];
	uint64_t header = nfc_header(type, length, dev->config.epoch, id,
				     ch->id);

	header |= phase(box->tail, box->shift) << NFC_HDR_PHASE_SHIFT;
	for (int i = 0; i < 7; i++)
		slot->payload[i] = payload[i];
	atomic_store_explicit((_Atomic uint64_t *)&slot->header, header,
			      memory_order_release); /* SYNC: slot */
	box->tail++;
	atomic_thread_fence(memory_order_seq_cst); /* SYNC: channel park */
	if (atomic_load_explicit(&dev->park[ch->id], memory_order_relaxed)) {
		nfc_count(island, NFC_COUNT_DOORBELLS, 1);
		dev->port->ring_host(dev->port->self, island->index);
	}
}
