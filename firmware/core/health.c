// SPDX-License-Identifier: MIT
/*
 * The heartbeat and its diagnostic word: what the firmware saw since the last
 * heartbeat, and what the port's sensors read, becomes a level for each part,
 * with hysteresis.
 */
#include "calls.h"

enum {
	CLEAR = 20, /* heartbeats in a row without a reason to stay */
	LEVEL = 3, /* mask of a reading */
};

/* When a sign makes a part sick or broken, and after how many heartbeats in a row. */
struct rule {
	uint8_t part; /* enum nfc_diagnostic_field */
	uint8_t sign; /* enum nfc_sign */
	uint8_t heartbeats;
	uint32_t sick, broken; /* at least; 0: never */
};

static const struct rule rules[] = {
	{ NFC_DIAG_SERVICE_NETWORK_SHIFT, NFC_SIGN_DROPPED, 2, 100, 0 },
	{ NFC_DIAG_MEMORY_SHIFT, NFC_SIGN_REFUSED, 2, 1, 0 },
	{ NFC_DIAG_PERIPHERAL_SHIFT, NFC_SIGN_DMA, 2, 8, 64 },
	{ NFC_DIAG_CORE_SHIFT, NFC_SIGN_LATE, 1, 1000, 5000 },
};

/* A new reading of one part; it rises after so many heartbeats. */
static void read_part(struct nfc_health *h, uint32_t part, uint8_t reading,
		      uint8_t heartbeats)
{
	uint8_t *level = &h->level[part], *same = &h->same[part];

	if (reading == *level || (reading > *level) != h->rising[part])
		*same = 0;
	h->rising[part] = reading > *level;
	if (reading == *level)
		return;
	if (++*same < (reading > *level ? heartbeats : CLEAR))
		return;
	*level = reading;
	*same = 0;
}

static uint8_t level_of(const struct rule *r, const uint64_t sign[NFC_SIGNS])
{
	uint64_t seen = sign[r->sign];

	if (r->broken && seen >= r->broken)
		return NFC_DIAG_BROKEN;
	return seen >= r->sick ? NFC_DIAG_SICK : NFC_DIAG_NORMAL;
}

uint32_t nfc_health_step(struct nfc_health *h, const uint64_t sign[NFC_SIGNS],
			 uint32_t sensed)
{
	uint32_t word = 1u << NFC_DIAG_VALID_SHIFT;

	for (uint32_t part = 0; part < NFC_PARTS; part++) {
		uint8_t reading = sensed >> (2 * part) & LEVEL, heartbeats = 1;

		for (uint32_t i = 0; i < sizeof(rules) / sizeof(*rules); i++) {
			uint8_t level = level_of(&rules[i], sign);

			if (rules[i].part != 2 * part || level <= reading)
				continue;
			reading = level;
			heartbeats = rules[i].heartbeats;
		}
		if (reading > NFC_DIAG_BROKEN) /* no level has that number */
			reading = NFC_DIAG_BROKEN;
		read_part(h, part, reading, heartbeats);
		word |= (uint32_t)h->level[part] << (2 * part);
	}
	return word;
}

/* Sum over islands; each may be counting meanwhile. */
uint64_t nfc_counter_sum(struct nfc_host *host, enum nfc_counter counter)
{
	uint64_t sum = 0;

	for (uint32_t i = 0; i < host->dev->config.islands; i++)
		sum += counter == NFC_COUNT_SLEEPS ?
			       atomic_load(&host->dev->islands[i].sleeps) :
			       nfc_counted(&host->shares[i], counter);
	return sum;
}

/* How far the last of the islands is behind, in ms: a process keeps it. */
static uint64_t latest(const struct nfc_host *host, uint64_t now)
{
	const struct nfc_device *dev = host->dev;
	uint64_t late = now - nfc_min(host->health.beat_ns, now);

	for (uint32_t i = 0; i < dev->config.islands; i++) {
		uint64_t seen = atomic_load_explicit(&dev->islands[i].seen,
						     memory_order_relaxed);

		if (seen < now && now - seen > late)
			late = now - seen;
	}
	late -= nfc_min(late, dev->config.beat_ms * 2000000ull);
	return late / 1000000;
}

static uint32_t health_beat(struct nfc_host *host, uint64_t now, uint32_t sensed)
{
	static const enum nfc_counter counters[NFC_SIGNS][2] = {
		[NFC_SIGN_DROPPED] = { NFC_COUNT_DROPPED, NFC_COUNT_DROPPED },
		[NFC_SIGN_REFUSED] = { NFC_COUNT_REFUSED, NFC_COUNT_REFUSED },
		[NFC_SIGN_DMA] = { NFC_COUNT_REPEATS, NFC_COUNT_UNREACHED },
	};
	struct nfc_health *h = &host->health;
	uint64_t sign[NFC_SIGNS];

	for (uint32_t i = 0; i < NFC_SIGNS; i++) {
		uint64_t sum = nfc_counter_sum(host, counters[i][0]);

		if (counters[i][1] != counters[i][0])
			sum += nfc_counter_sum(host, counters[i][1]);
		sign[i] = sum - h->counted[i];
		h->counted[i] = sum;
	}
	sign[NFC_SIGN_LATE] = h->beat_ns ? latest(host, now) : 0;
	h->beat_ns = now;
	return nfc_health_step(h, sign, sensed);
}

static uint64_t beat_header(const struct nfc_host *host)
{
	return nfc_header(NFC_TYPE_HEARTBEAT, NFC_PAYLOAD_SIZE, host->epoch,
			  host->dev->beat, 0);
}

/* The same in the host's own area. */
static void post_beat(struct nfc_host *host, uint64_t at, const uint64_t word[7])
{
	uint64_t slot[8] = { 0 };

	nfc_post(host, at, slot, 1);
	slot[0] = beat_header(host);
	for (int i = 0; i < 7; i++)
		slot[i + 1] = word[i];
	nfc_post(host, at, slot, 8);
}

/* Write a heartbeat in place; readers retry when the header changed. */
static void write_beat(struct nfc_host *host, const uint64_t word[7])
{
	struct nfc_slot *slot = &host->area->heartbeat;
	_Atomic uint64_t *header = (_Atomic uint64_t *)&slot->header;
	uint64_t there = nfc_host_there(host);

	if (there) {
		post_beat(host, there, word);
		return;
	}
	atomic_store_explicit(header, 0, memory_order_relaxed);
	atomic_thread_fence(memory_order_seq_cst); /* SYNC: heartbeat */
	for (int i = 0; i < 7; i++)
		atomic_store_explicit((_Atomic uint64_t *)&slot->payload[i],
				      word[i], memory_order_relaxed);
	/* SYNC: heartbeat */
	atomic_store_explicit(header, beat_header(host), memory_order_release);
}

/* Must hold `beating`. */
static void beat_host(struct nfc_host *host, uint64_t now, uint32_t sensed)
{
	union {
		struct nfc_heartbeat beat;
		uint64_t word[7];
	} u = { .beat = {
			.beat = host->dev->beat,
			.now_ns = now,
			.diagnostic = health_beat(host, now, sensed),
			.processes = atomic_load(&host->running),
			.messages = nfc_counter_sum(host, NFC_COUNT_MESSAGES),
			.bytes = nfc_counter_sum(host, NFC_COUNT_BYTES),
			.dropped = nfc_counter_sum(host, NFC_COUNT_DROPPED),
			.parked = nfc_counter_sum(host, NFC_COUNT_PARKED),
		} };

	write_beat(host, u.word);
}

static void write_heartbeats(struct nfc_island *island)
{
	struct nfc_device *dev = island->dev;
	const struct nfc_port *port = dev->port;
	uint32_t sensed = port->sense ? port->sense(port->self) : 0;

	dev->beat++;
	for (uint32_t i = 0; i < dev->config.hosts; i++)
		if (dev->host[i])
			beat_host(dev->host[i], island->now, sensed);
}

static void hold_beating(struct nfc_device *dev)
{
	while (atomic_exchange(&dev->beating, 1))
		;
}

void nfc_heartbeat_begin(struct nfc_host *host)
{
	struct nfc_device *dev = host->dev;
	const struct nfc_port *port = dev->port;

	hold_beating(dev);
	dev->host[host->index] = host;
	if (!dev->beat)
		dev->beat = 1;
	beat_host(host, port->now(port->self),
		  port->sense ? port->sense(port->self) : 0);
	atomic_store(&dev->beating, 0);
}

void nfc_heartbeat_end(struct nfc_host *host)
{
	hold_beating(host->dev);
	host->dev->host[host->index] = NULL;
	atomic_store(&host->dev->beating, 0);
}

/*
 * When an island writes the heartbeat. It is island 0's task; the others step
 * in when a process keeps that from it.
 */
uint64_t nfc_beat_due(struct nfc_island *island)
{
	struct nfc_device *dev = island->dev;
	uint64_t due = atomic_load_explicit(&dev->next_beat,
					    memory_order_relaxed);

	return island->index ? due + dev->config.beat_ms * 1000000ull : due;
}

void nfc_heartbeat(struct nfc_island *island)
{
	struct nfc_device *dev = island->dev;

	if (atomic_exchange(&dev->beating, 1))
		return; /* another island is at it */
	if (island->now >= nfc_beat_due(island)) {
		write_heartbeats(island);
		atomic_store(&dev->next_beat,
			     island->now + dev->config.beat_ms * 1000000ull);
	}
	atomic_store(&dev->beating, 0);
}
