// SPDX-License-Identifier: MIT
/*
 * Probabilistic counting with stochastic averaging (Flajolet and Martin, 1985):
 * how many different flows there are in a stream of packets. Any number of
 * "pcsa.consumer" take batches of packets, in no order, and update the sketches
 * of one "pcsa.handler", which answers the host.
 */
#include <stdatomic.h>

#include "nfc_fw.h"

enum {
	INDEX_BITS = 11, /* of the hash, from the top: which sketch */
	SKETCHES = 1 << INDEX_BITS,
	BATCH = 256 << 10, /* bytes of packets in a transfer, at most */
	STRETCH = 512, /* packets between two yields */
	KEY_MAX = 37, /* bytes that name a flow */
};

/* Memory of the handler and the consumers, of the fastest type. */
struct shared {
	_Atomic uint32_t sketch[SKETCHES];
	uint32_t crc[256]; /* CRC-32, byte by byte */
	_Atomic uint64_t packets; /* that named a flow */
	_Atomic uint64_t skipped; /* that did not */
};

/* The host's answer: it divides, because the card cannot. */
struct answer {
	uint64_t sum; /* of the trailing ones of all sketches */
	uint64_t sketches;
	uint64_t packets, skipped;
	uint64_t shared; /* address of what consumers need */
};

static uint32_t trailing_ones(uint32_t x)
{
	return x == UINT32_MAX ? 32 : (uint32_t)__builtin_ctz(~x);
}

/* ---- packets ---- */

enum {
	ETHERNET = 14,
	TYPE_IP4 = 0x0800,
	TYPE_IP6 = 0x86dd,
	TYPE_VLAN = 0x8100,
	IP4_HEADER = 20,
	IP6_HEADER = 40,
	TCP = 6,
	UDP = 17,
};

static uint32_t big_endian_16(const uint8_t *at)
{
	return (uint32_t)at[0] << 8 | at[1];
}

/* A key: addresses, protocol, and ports where the packet has them. */
struct key {
	uint32_t length;
	uint8_t byte[KEY_MAX];
};

static void put(struct key *k, const uint8_t *from, uint32_t n)
{
	__builtin_memcpy(k->byte + k->length, from, n);
	k->length += n;
}

/* Ports, if the left bytes begin with TCP or UDP, or zero. */
static void put_ports(struct key *k, uint8_t protocol, const uint8_t *at,
		      uint64_t left)
{
	static const uint8_t none[4];
	int has = (protocol == TCP && left >= 20) ||
		  (protocol == UDP && left >= 8);

	put(k, &protocol, 1);
	put(k, has ? at : none, 4);
}

/* Bytes of the packet: by the length field of IP, or as many as there are. */
static uint64_t least(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

/* A header with options that do not fit belongs to no packet. */
static int options_fit(const uint8_t *at, uint64_t left)
{
	while (left && *at) { /* 0: the end of the list */
		uint64_t length = *at == 1 ? 1 : left > 1 ? at[1] : 0;

		if (length > left || length < (*at == 1 ? 1 : 2))
			return 0;
		at += length;
		left -= length;
	}
	return 1;
}

static int key_ip4(struct key *k, const uint8_t *at, uint64_t left)
{
	uint64_t header, total;
	int fragment;

	if (left < IP4_HEADER)
		return 0;
	header = (at[0] & 15) * 4ull;
	total = big_endian_16(at + 2);
	if (total) /* 0: the network card was to fill it in */
		left = least(left, total);
	if (header < IP4_HEADER || header > left ||
	    !options_fit(at + IP4_HEADER, header - IP4_HEADER))
		return 0;
	fragment = big_endian_16(at + 6) & 0x3fff; /* more, or not the first */
	put(k, at + 12, 8);
	put_ports(k, at[9], at + header, fragment ? 0 : left - header);
	return 1;
}

/* Behind extension headers ports are not looked for. */
static int key_ip6(struct key *k, const uint8_t *at, uint64_t left)
{
	uint64_t total;

	if (left < IP6_HEADER)
		return 0;
	total = big_endian_16(at + 4);
	if (!total)
		return 0;
	put(k, at + 8, 32);
	put_ports(k, at[6], at + IP6_HEADER, least(left - IP6_HEADER, total));
	return 1;
}

/* The flow of an Ethernet frame. False: it has none. */
static int key_of(struct key *k, const uint8_t *at, uint64_t left)
{
	uint64_t header = ETHERNET;
	uint32_t type;

	k->length = 0;
	if (left < header)
		return 0;
	type = big_endian_16(at + 12);
	if (type == TYPE_VLAN && left >= header + 4) {
		type = big_endian_16(at + 16);
		header += 4;
	}
	if (type == TYPE_IP4)
		return key_ip4(k, at + header, left - header);
	if (type == TYPE_IP6)
		return key_ip6(k, at + header, left - header);
	return 0;
}

/* ---- the consumer ---- */

static void update(struct shared *s, const struct key *k)
{
	uint32_t hash = UINT32_MAX, bit;
	_Atomic uint32_t *sketch;

	for (uint32_t i = 0; i < k->length; i++)
		hash = hash >> 8 ^ s->crc[(hash ^ k->byte[i]) & 0xff];
	hash = ~hash;
	sketch = &s->sketch[hash >> (32 - INDEX_BITS)];
	/* the bits of the index are no part of r */
	bit = 1u << trailing_ones(hash & (UINT32_MAX >> INDEX_BITS));
	if (!(atomic_load_explicit(sketch, memory_order_relaxed) & bit))
		atomic_fetch_or_explicit(sketch, bit, memory_order_relaxed);
}

/* Count a batch: {u16 length, little-endian; a frame}, again and again. */
static void count(struct nfc_process *self, struct shared *s, const uint8_t *at,
		  uint64_t size)
{
	const uint8_t *end = at + size;
	uint64_t packets = 0, skipped = 0;
	struct key k;

	while (end - at >= 2) {
		uint64_t length = at[0] | (uint64_t)at[1] << 8;

		at += 2;
		if (length > (uint64_t)(end - at))
			length = (uint64_t)(end - at);
		if (key_of(&k, at, length)) {
			update(s, &k);
			packets++;
		} else {
			skipped++;
		}
		at += length;
		if ((packets + skipped) % STRETCH == 0)
			nfc_yield(self);
	}
	atomic_fetch_add(&s->packets, packets);
	atomic_fetch_add(&s->skipped, skipped);
}

/*
 * pcsa.consumer: its argument is the address of what is shared. It takes batches
 * as transfers; a message is taken once all before it are counted.
 */
static void consumer_main(struct nfc_process *self)
{
	struct shared *s = nfc_at(self, nfc_argument(self), sizeof(*s));
	struct nfc_channel *ch = nfc_channel_of(self, 0);
	uint64_t address = nfc_alloc(self, NFC_EMEM, BATCH);
	uint8_t message[NFC_PAYLOAD_SIZE];
	struct nfc_offer offer;
	int rc = s ? 0 : -NFC_ESTOPPED;

	while (rc != -NFC_ESTOPPED) {
		rc = channel_take(ch, message, sizeof(message), address,
				  address ? BATCH : 0, &offer);
		if (rc == -NFC_ETOOLARGE) /* refuse the batch */
			rc = channel_read_ind(ch, UINT64_MAX, offer.size);
		else if (rc >= 0 && offer.indirect)
			count(self, s, nfc_at(self, address, offer.size),
			      offer.size);
	}
}

/* ---- the handler ---- */

static void fill_crc(struct shared *s)
{
	for (uint32_t i = 0; i < 256; i++) {
		uint32_t c = i;

		for (int bit = 0; bit < 8; bit++)
			c = c >> 1 ^ (c & 1 ? 0xedb88320 : 0);
		s->crc[i] = c;
	}
}

static void reset(struct shared *s)
{
	for (uint32_t i = 0; i < SKETCHES; i++)
		atomic_store_explicit(&s->sketch[i], 0, memory_order_relaxed);
	atomic_store(&s->packets, 0);
	atomic_store(&s->skipped, 0);
}

static struct answer sum_up(struct shared *s, uint64_t address)
{
	struct answer a = { .sketches = SKETCHES, .shared = address };

	for (uint32_t i = 0; i < SKETCHES; i++)
		a.sum += trailing_ones(atomic_load_explicit(
			&s->sketch[i], memory_order_relaxed));
	a.packets = atomic_load(&s->packets);
	a.skipped = atomic_load(&s->skipped);
	return a;
}

/*
 * pcsa.handler: a message of the host is answered with the state; after 'z' it
 * counts from zero.
 */
static void handler_main(struct nfc_process *self)
{
	struct nfc_channel *ch = nfc_channel_of(self, 0);
	uint64_t address = nfc_alloc(self, NFC_CLS, sizeof(struct shared));
	struct shared *s = nfc_at(self, address, sizeof(*s));
	int rc = 0;

	if (address) {
		reset(s);
		fill_crc(s);
	}
	while (rc != -NFC_ESTOPPED) {
		char what[NFC_PAYLOAD_SIZE] = { 0 };
		struct answer a = { 0 }; /* no room: there is nothing shared */

		rc = channel_read(ch, what, sizeof(what));
		if (rc < 0)
			continue;
		if (address)
			a = sum_up(s, address);
		if (address && what[0] == 'z')
			reset(s);
		rc = channel_write(ch, &a, sizeof(a));
	}
}

NFC_PROGRAMS({ NFC_PROGRAM_ABI, 0, "pcsa.handler", handler_main },
	     { NFC_PROGRAM_ABI, 0, "pcsa.consumer", consumer_main });
