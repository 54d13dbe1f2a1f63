// SPDX-License-Identifier: MIT
/*
 * The diagnostic word: what the firmware saw since the last heartbeat, and what
 * the port's sensors say, becomes a level for each part, with hysteresis.
 */
#include "internal.h"

enum {
	CLEAR = 20, /* heartbeats in a row without a reason to stay */
	LEVEL = 3, /* mask of a reading */
};

/* When a sign makes a part sick or broken, and after how many heartbeats in a row. */
struct rule {
	uint8_t part; /* enum nfc_diagnostic_field */
	uint8_t sign; /* enum nfc_sign */
	uint8_t beats;
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
		      uint8_t beats)
{
	uint8_t *level = &h->level[part], *same = &h->same[part];

	if (reading == *level || (reading > *level) != h->rising[part])
		*same = 0;
	h->rising[part] = reading > *level;
	if (reading == *level)
		return;
	if (++*same < (reading > *level ? beats : CLEAR))
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
		uint8_t reading = sensed >> (2 * part) & LEVEL, beats = 1;

		for (uint32_t i = 0; i < sizeof(rules) / sizeof(*rules); i++) {
			uint8_t level = level_of(&rules[i], sign);

			if (rules[i].part != 2 * part || level <= reading)
				continue;
			reading = level;
			beats = rules[i].beats;
		}
		if (reading > NFC_DIAG_BROKEN) /* no level has that number */
			reading = NFC_DIAG_BROKEN;
		read_part(h, part, reading, beats);
		word |= (uint32_t)h->level[part] << (2 * part);
	}
	return word;
}

/* How far the last of the islands is behind, in ms: a process keeps it. */
static uint64_t latest(const struct nfc_device *dev, uint64_t now)
{
	uint64_t late = now - nfc_min(dev->health.beat_ns, now);

	for (uint32_t i = 0; i < dev->config.islands; i++) {
		uint64_t seen = atomic_load_explicit(&dev->islands[i].seen,
						     memory_order_relaxed);

		if (seen < now && now - seen > late)
			late = now - seen;
	}
	late -= nfc_min(late, dev->config.beat_ms * 2000000ull);
	return late / 1000000;
}

uint32_t nfc_health_beat(struct nfc_device *dev, uint64_t now)
{
	static const enum nfc_counter counters[NFC_SIGNS][2] = {
		[NFC_SIGN_DROPPED] = { NFC_COUNT_DROPPED, NFC_COUNT_DROPPED },
		[NFC_SIGN_REFUSED] = { NFC_COUNT_REFUSED, NFC_COUNT_REFUSED },
		[NFC_SIGN_DMA] = { NFC_COUNT_REPEATS, NFC_COUNT_UNREACHED },
	};
	struct nfc_health *h = &dev->health;
	const struct nfc_port *port = dev->port;
	uint64_t sign[NFC_SIGNS];

	for (uint32_t i = 0; i < NFC_SIGNS; i++) {
		uint64_t sum = nfc_counter_sum(dev, counters[i][0]);

		if (counters[i][1] != counters[i][0])
			sum += nfc_counter_sum(dev, counters[i][1]);
		sign[i] = sum - h->counted[i];
		h->counted[i] = sum;
	}
	sign[NFC_SIGN_LATE] = h->beat_ns ? latest(dev, now) : 0;
	h->beat_ns = now;
	return nfc_health_step(h, sign,
			       port->sense ? port->sense(port->self) : 0);
}
