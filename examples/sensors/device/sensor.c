// SPDX-License-Identifier: MIT
/*
 * A sensor that calls its host: it connects to the host that listens at the target in its argument,
 * receives its order there, sends each event in a message, and sends its log, which is every
 * reading it took, as one transfer. The host that started it receives the outcome on port 0.
 */
#include "nfc_log.h"

enum {
	STRETCH = 1 << 16, /* readings between two yields */
	AGAIN_NS = 1000000, /* until it asks again for a place */
};

/* The host's order to a sensor. */
struct order {
	uint64_t number; /* of the sensor */
	uint64_t above; /* a reading above this is an event */
	uint64_t events; /* after so many it has seen enough */
	uint64_t most; /* readings */
};

/* A sensor's message: an event, or the number of bytes of log that it offers now. */
struct said {
	uint64_t reading; /* of the event, from 0 */
	uint64_t value;
	uint64_t log; /* bytes; 0: this is an event */
};

/* How it went. */
struct outcome {
	int64_t status; /* enum nfc_status, negated; 0: well */
	char step[24];
};

/* Stands for the hardware: reading i of a sensor, the same each time. */
static uint16_t measure(uint64_t number, uint64_t i)
{
	uint64_t x = (number << 32 | i) + 0x9e3779b97f4a7c15;

	x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9;
	x = (x ^ x >> 27) * 0x94d049bb133111eb;
	return (uint16_t)(x >> 48);
}

/* While there is no place, before the listener or at its host, it waits for one. */
static int join(struct nfc_process *self, struct nfc_channel **host)
{
	int rc = channel_connect(self, nfc_argument(self), host);

	if (rc == -NFC_EBUSY || rc == -NFC_ENOMEM)
		nfc_logf(self, "sensor waits for a place: status %d", -rc);
	while (rc == -NFC_EBUSY || rc == -NFC_ENOMEM) {
		if (nfc_stopped(self))
			return -NFC_ESTOPPED;
		nfc_sleep(self, AGAIN_NS);
		rc = channel_connect(self, nfc_argument(self), host);
	}
	return rc;
}

/* Take readings until there were enough events. Their number, or a status. */
static int64_t watch(struct nfc_process *self, struct nfc_channel *host,
		     const struct order *o, uint16_t *log)
{
	uint64_t i, events = 0;
	int rc = 0;

	for (i = 0; i < o->most && events < o->events; i++) {
		log[i] = measure(o->number, i);
		if (log[i] > o->above) {
			struct said event = { .reading = i, .value = log[i] };

			rc = channel_write(host, &event, sizeof(event));
			events++;
		}
		if (i % STRETCH == STRETCH - 1)
			nfc_yield(self);
		if (rc || nfc_stopped(self))
			return rc ? rc : -NFC_ESTOPPED;
	}
	return (int64_t)i;
}

/* The size first, so that the host has room of that size. */
static int give(struct nfc_channel *host, uint64_t address, uint64_t size)
{
	struct said last = { .log = size };
	int rc = channel_write(host, &last, sizeof(last));

	return rc ? rc : channel_write_ind(host, address, size);
}

static struct outcome report(struct nfc_process *self)
{
	struct nfc_channel *host;
	struct order o;
	uint64_t address;
	int64_t n = join(self, &host);

	if (n)
		return (struct outcome){ n, "connect to the host" };
	/* Waits until the host has accepted. */
	n = channel_read(host, &o, sizeof(o));
	if (n >= 0 && n != sizeof(o))
		n = -NFC_ESIZE;
	if (n < 0)
		return (struct outcome){ n, "hear what to do" };
	address = nfc_alloc(self, NFC_EMEM, o.most * sizeof(uint16_t));
	if (!address)
		return (struct outcome){ -NFC_ENOMEM, "have room for its log" };
	n = watch(self, host, &o,
		  nfc_at(self, address, o.most * sizeof(uint16_t)));
	if (n < 0)
		return (struct outcome){ n, "say an event" };
	n = give(host, address, (uint64_t)n * sizeof(uint16_t));
	return (struct outcome){ n, "give its log" };
}

/* Its channel to the host closes when it returns. */
static void sensor_main(struct nfc_process *self)
{
	struct outcome how = report(self);

	channel_write(nfc_channel_of(self, 0), &how, sizeof(how));
}

NFC_PROGRAMS({ NFC_PROGRAM_ABI, 0, "sensor", sensor_main });
