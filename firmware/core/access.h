/* SPDX-License-Identifier: MIT */
/*
 * Small functions on the device's own state, which each file of the core calls.
 */
#ifndef NFC_ACCESS_H
#define NFC_ACCESS_H

#include "state.h"

static inline struct nfc_half *nfc_h2d(struct nfc_channel *ch)
{
	return &ch->half[NFC_H2D];
}

static inline struct nfc_half *nfc_d2h(struct nfc_channel *ch)
{
	return &ch->half[NFC_D2H];
}

/* The id of the half's present transaction. */
static inline uint64_t nfc_present(const struct nfc_half *half)
{
	return half->next - 1;
}

/* Bytes of the message of a DIRECT or a CALL. */
static inline uint64_t nfc_message_length(uint64_t header)
{
	uint64_t length = nfc_header_length(header);

	return nfc_header_type(header) == NFC_TYPE_CALL ?
		       length & ~(uint64_t)NFC_CALL_NOW :
		       length;
}

/* Is a message or a transfer offered, and not accepted yet? */
static inline bool nfc_is_offered(const struct nfc_half *half)
{
	return half->state == NFC_HALF_MESSAGE ||
	       half->state == NFC_HALF_OFFERED;
}

static inline uint64_t nfc_counted(const struct nfc_share *share,
				   enum nfc_counter counter)
{
	return atomic_load_explicit(&share->count[counter],
				    memory_order_relaxed);
}

/* By the island's owner, who alone writes: no atomic addition. */
static inline void nfc_count(struct nfc_share *share, enum nfc_counter counter,
			     uint64_t n)
{
	atomic_store_explicit(&share->count[counter],
			      nfc_counted(share, counter) + n,
			      memory_order_relaxed);
}

/* The channel of a target: the table's, or that of a guest. */
static inline struct nfc_channel *nfc_channel_at(const struct nfc_host *host,
						 uint64_t id)
{
	struct nfc_channel *ch = &host->channels[id];

	return ch->relay && ch->relay->relay->has_guest ?
		       &ch->relay->relay->guest :
		       ch;
}

/* Does the host use a capability? It may change its mind, to its own harm. */
static inline bool nfc_accepted(const struct nfc_host *host,
				enum nfc_capability capability)
{
	const struct nfc_hello *hello = (const void *)
						host->area->host_hello.payload;

	return hello->capabilities & capability;
}

/* Does the host copy each list of a transfer while the next one moves? */
static inline bool nfc_by_rounds(const struct nfc_transfer *t)
{
	return t->direction == NFC_D2H &&
	       nfc_accepted(t->channel->rings->host, NFC_CAP_ROUNDS);
}

/* Entries of a list in a transfer's queue. */
static inline uint64_t nfc_list_entries(const struct nfc_slot *list)
{
	return list->header & NFC_LIST_COUNT_MASK;
}

/* Where an entry of such a list starts, and the bytes to its end. */
static inline uint64_t nfc_list_entry(const struct nfc_slot *list, uint32_t i,
				      uint64_t *length)
{
	uint64_t e = list->payload[i];

	if (list->header & NFC_LIST_RUNS) {
		*length = nfc_run_length(e);
		return nfc_run_address(e);
	}
	*length = nfc_entry_length(e);
	return nfc_entry_address(e);
}

/* Is it the id of a host that listens, or of none? */
static inline bool nfc_is_host(const struct nfc_device *dev, uint64_t id)
{
	return id >= NFC_TARGET_HOSTS &&
	       dev->config.channels <= NFC_TARGET_HOSTS;
}

/* May hosts have rings in memory of their own? */
static inline bool nfc_may_post(const struct nfc_device *dev)
{
	return dev->config.host_rings && dev->port->post;
}

static inline bool nfc_may_load(const struct nfc_host *host)
{
	return !host->no_load && host->dev->port->load;
}

/* Is the host being detached? Then what is put is lost, and there always is room. */
static inline bool nfc_is_detaching(const struct nfc_host *host)
{
	return atomic_load_explicit(&host->detaching, memory_order_relaxed);
}

static inline uint64_t nfc_min(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

/*
 * The lock of the device or of a host, taken in that order: a few instructions are
 * run under it, no call to the port.
 */
static inline void nfc_lock(_Atomic uint32_t *lock)
{
	/* SYNC: lock */
	while (atomic_exchange_explicit(lock, 1, memory_order_acquire))
		;
}

static inline void nfc_unlock(_Atomic uint32_t *lock)
{
	atomic_store_explicit(lock, 0, memory_order_release); /* SYNC: lock */
}

#endif /* NFC_ACCESS_H */
