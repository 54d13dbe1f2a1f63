// SPDX-License-Identifier: MIT
/* Rings: take from h2d, put to d2h, of mailboxes and of joints. See docs/protocol.md. */
#include <stddef.h>

#include "calls.h"

/* ---- an area of the host's own ---- */

uint64_t nfc_host_there(struct nfc_host *host)
{
	uint64_t at = atomic_load_explicit(&host->there, memory_order_relaxed);
	struct nfc_area *area = host->area;

	if (at || !nfc_may_post(host->dev) || !nfc_has_answered(host) ||
	    !nfc_accepted(host, NFC_CAP_HOST_RINGS))
		return at;
	at = atomic_load_explicit((_Atomic uint64_t *)&area->host_area,
				  memory_order_relaxed);
	atomic_store_explicit(&host->there, at, memory_order_relaxed);
	return at;
}

/*
 * A store that failed may have been a message. So nothing is stored any more,
 * not even a heartbeat; the host detects that.
 */
void nfc_post(struct nfc_host *host, uint64_t at, const uint64_t *word,
	      uint32_t count)
{
	const struct nfc_port *port = host->dev->port;

	if (!atomic_load_explicit(&host->lost, memory_order_relaxed) &&
	    port->post(port->self, host->index, at, word, count))
		atomic_store_explicit(&host->lost, true, memory_order_relaxed);
}

/* Load what the host has there; false if that cannot be. */
static bool load_there(struct nfc_host *host, void *to, uint64_t at,
		       uint32_t bytes)
{
	const struct nfc_port *port = host->dev->port;

	if (!atomic_load_explicit(&host->lost, memory_order_relaxed) &&
	    port->peek(port->self, host->index, to, at, bytes))
		atomic_store_explicit(&host->lost, true, memory_order_relaxed);
	return !atomic_load_explicit(&host->lost, memory_order_relaxed);
}

void nfc_post_asleep(struct nfc_host *host, uint32_t island, uint64_t word)
{
	uint64_t at = nfc_host_there(host), back;

	if (!at)
		return;
	at += offsetof(struct nfc_host_area, island) +
	      island * sizeof(struct nfc_line);
	nfc_post(host, at, &word, 1);
	if (word)
		load_there(host, &back, at,
			   sizeof(back)); /* it pushes the word there */
}

/* The counters of a mailbox in the host's own area. */
static uint64_t counters_there(const struct nfc_rings *rings)
{
	uint64_t index = (uint64_t)(rings - rings->host->shares[0].rings);

	return atomic_load_explicit(&rings->host->there, memory_order_relaxed) +
	       offsetof(struct nfc_host_area, mailbox) +
	       index * sizeof(struct nfc_mailbox);
}

/*
 * Find the d2h ring. False: the host has not named it yet, and nothing is put
 * before.
 */
static bool find_d2h(struct nfc_rings *rings)
{
	struct nfc_host *host = rings->host;
	uint64_t index = (uint64_t)(rings - host->shares[0].rings);
	uint64_t at = nfc_host_there(host);

	if (at)
		rings->d2h_at = at + nfc_host_ring(rings->mask + 1, index);
	return !nfc_may_post(host->dev) || nfc_has_answered(host);
}

/* ---- to the device ---- */

/*
 * Copy the next h2d slot out, if there is one. Only the copy is checked and
 * used: the host may write the slot again at any time.
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
	if (rings->d2h_at)
		nfc_post(rings->host,
			 counters_there(rings) +
				 offsetof(struct nfc_mailbox, h2d_head),
			 &rings->published, 1);
	else
		atomic_store_explicit(rings->h2d_head, rings->published,
				      memory_order_release); /* SYNC: room */
}

/* ---- to the host ---- */

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
		island->undrained |= 1ull << (rings - rings->share->rings);
		return;
	}
	island->rung++;
	port->ring_host(port->self, rings->host->index, island->index);
}

/* How far the host consumed d2h; of one that is lost nothing waits any more. */
static uint64_t consumed(const struct nfc_rings *rings)
{
	uint64_t head;

	if (!rings->d2h_at)
		return atomic_load_explicit(
			rings->d2h_head, memory_order_acquire); /* SYNC: room */
	return load_there(rings->host, &head,
			  counters_there(rings) +
				  offsetof(struct nfc_mailbox, d2h_head),
			  sizeof(head)) ?
		       head :
		       rings->tail;
}

/*
 * Is there room for every answer one message can cause? If not, the host is
 * asked once to make some. A counter that makes no sense reads as "full".
 */
bool nfc_rings_room(struct nfc_rings *rings)
{
	if (rings->tail - rings->limit + NFC_RESERVE <= rings->mask + 1 ||
	    nfc_is_detaching(rings->host))
		return true;
	if (rings->limit == NFC_UNMET && !find_d2h(rings))
		return true;
	rings->limit = consumed(rings);
	if (rings->tail - rings->limit + NFC_RESERVE <= rings->mask + 1)
		return true;
	if (!rings->joint && rings->asked != rings->tail) {
		rings->asked = rings->tail;
		ring(rings);
	}
	return false;
}

/* Is a waiter parked on the channel? Checked after the message is stored. */
static bool is_parked(const struct nfc_channel *ch)
{
	struct nfc_host *host = ch->rings->host;
	const struct nfc_config *c = &host->dev->config;
	uint32_t word;

	atomic_thread_fence(memory_order_seq_cst); /* SYNC: channel park */
	if (!ch->rings->d2h_at)
		return atomic_load_explicit(&host->park[ch->id],
					    memory_order_relaxed);
	return load_there(host, &word,
			  nfc_host_there(host) +
				  nfc_host_park(c->managers, c->slots, ch->id),
			  sizeof(word)) &&
	       word;
}

/* Payload first, header last. */
static void store(struct nfc_rings *rings, uint64_t header,
		  const uint64_t payload[7])
{
	uint64_t i = rings->tail & rings->mask;
	struct nfc_slot *slot = &rings->d2h[i];
	uint64_t word[8] = { header };

	if (rings->d2h_at) {
		for (int k = 0; k < 7; k++)
			word[k + 1] = payload[k];
		nfc_post(rings->host, rings->d2h_at + i * sizeof(*slot), word,
			 8);
		return;
	}
	for (int k = 0; k < 7; k++)
		slot->payload[k] = payload[k];
	atomic_store_explicit((_Atomic uint64_t *)&slot->header, header,
			      memory_order_release); /* SYNC: slot */
}

void nfc_joint_call(struct nfc_joint *joint, uint32_t end)
{
	struct nfc_rings *to = &joint->rings[end];

	if (atomic_exchange(&joint->called[end], 1)) /* SYNC: joint */
		return;
	atomic_fetch_add(&joint->calls, 1);
	nfc_call_post(&to->host->dev->islands[to->island], &joint->call[end]);
}

void nfc_joint_notify(struct nfc_joint *joint)
{
	const struct nfc_host *host = joint->rings[joint->far.here].host;
	const struct nfc_port *port = host->dev->port;

	port->carry(port->self, host->index, nfc_joint_index(joint));
}

/* The other end of a joint has to take what was stored. */
static void call_other(struct nfc_rings *rings)
{
	struct nfc_joint *joint = rings->joint;

	if (joint->far.used)
		nfc_joint_notify(joint);
	else
		nfc_joint_call(joint, rings == joint->rings);
}

void nfc_joint_end(struct nfc_joint *joint)
{
	struct nfc_rings *rings = &joint->rings[joint->far.here];

	if (!joint->far.used)
		return;
	rings->limit = rings->tail; /* nothing is put any more */
	atomic_store(&joint->far.over, true);
	nfc_joint_notify(joint);
}

void nfc_joint_show(struct nfc_joint *joint, const uint8_t *bytes,
		    uint64_t size, uint64_t id)
{
	nfc_lock(&joint->far.lock);
	joint->far.bytes = bytes;
	joint->far.size = size;
	joint->far.id = id;
	nfc_unlock(&joint->far.lock);
}

void nfc_joint_hide(struct nfc_joint *joint)
{
	if (joint->far.used)
		nfc_joint_show(joint, NULL, 0, 0);
}

int nfc_joint_give(struct nfc_joint *joint, void *to, uint64_t at, uint64_t len)
{
	const struct nfc_joint_far *far = &joint->far;
	uint64_t offset = at & ((1ull << 48) - 1);
	int rc = NFC_EABORTED;

	nfc_lock(&joint->far.lock);
	if (far->bytes && (far->id & 0xffff) == at >> 48 &&
	    offset <= far->size && len <= far->size - offset) {
		__builtin_memcpy(to, far->bytes + offset, len);
		rc = 0;
	}
	nfc_unlock(&joint->far.lock);
	return rc;
}

/*
 * Write one message to the other end. The caller made sure of room. The host's
 * doorbell rings only if a waiter is parked on this channel, or for a WITHDRAW,
 * which needs an answer even if no call waits.
 */
void nfc_put(struct nfc_channel *ch, enum nfc_type type, uint64_t length,
	     uint64_t id, const uint64_t payload[7])
{
	struct nfc_rings *rings = ch->rings;
	struct nfc_host *host = rings->host;
	uint64_t header = nfc_header(type, length, host->epoch, id, ch->id);

	if (nfc_is_detaching(host))
		return;
	header |= nfc_lap(rings->tail, rings->shift) << NFC_HDR_PHASE_SHIFT;
	store(rings, header, payload);
	rings->tail++;
	if (rings->joint) {
		call_other(rings);
	} else if (type == NFC_TYPE_WITHDRAW || is_parked(ch)) {
		nfc_count(rings->share, NFC_COUNT_DOORBELLS,
			  !ch->island->assisted);
		ring(rings);
	}
}
