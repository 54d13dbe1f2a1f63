// SPDX-License-Identifier: MIT
/*
 * The two ends of a far host over a fabric that loses, doubles and delays. No
 * slot between host and device is lost, doubled or changed, and nothing late
 * reaches memory that has another owner by then.
 */
#include <stdlib.h>
#include <string.h>

#include "harness.h"
#include "lossy.h"

enum {
	MAILBOXES = 2,
	SLOTS = 16,
	MS = 1000000,
	CHANNELS = 8,
	EPOCH = 7,
};

static struct {
	struct nfc_far end[2]; /* of the host, of the device */
	struct nfc_area *area[2];
	void *pages;
	uint16_t transfer;
	unsigned int rings[2];
} t;

static void ring(void *self, uint32_t island)
{
	unsigned int *rings = self;

	(void)island;
	++*rings;
}

static int reach(void *self, bool write, void *memory, uint64_t bus,
		 uint64_t size)
{
	void *host = (void *)(uintptr_t)bus;

	(void)self;
	memcpy(write ? host : memory, write ? memory : host, size);
	return 0;
}

static void setup(uint32_t lose, uint32_t twice, uint32_t late)
{
	memset(&t, 0, sizeof(t));
	lossy_reset(lose, twice, late);
	for (int i = 0; i < 2; i++) {
		struct nfc_far_config c = {
			.port = { &t.rings[i], ring, reach },
			.peer = (uint32_t)!i,
			.epoch = EPOCH,
			.mailboxes = MAILBOXES,
			.islands = 1,
			.slots = SLOTS,
			.channels = CHANNELS,
			.device = i,
		};
		struct nfc_area *area = calloc(1, (size_t)nfc_far_area_size(&c));

		c.area = t.area[i] = area;
		c.pages = t.pages = i ? t.pages :
					calloc(1,
					       (size_t)nfc_far_pages_size(&c));
		if (i) {
			struct nfc_hello *hello = (void *)area->device_hello.payload;

			hello->channels = CHANNELS;
			hello->mailboxes = MAILBOXES;
			hello->islands = 1;
			hello->slots = SLOTS;
			area->magic = NFC_MAGIC;
			area->size = nfc_far_area_size(&c);
			area->epoch = EPOCH;
			area->state = NFC_DEVICE_READY;
			area->heartbeat.header = nfc_header(NFC_TYPE_HEARTBEAT,
							    56, EPOCH, 1, 0);
		}
		nfc_far_init(&t.end[i], &lossy.node[i], &c);
	}
}

static void teardown(void)
{
	free(t.area[0]);
	free(t.area[1]);
	free(t.pages);
}

static void deliver(const struct nfc_packet *p, const struct nfc_fifo *fifo)
{
	nfc_far_deliver(&t.end[p->to], p, fifo, 0);
}

static void step(void)
{
	lossy.now += STEP_NS;
	t.end[0].rung = t.end[1].rung = true;
	lossy_deliver(deliver);
	nfc_far_step(&t.end[0]);
	nfc_far_step(&t.end[1]);
}

/* Host and device shake hands. */
static void greet(void)
{
	for (int i = 0; i < 1000000 && t.area[0]->state != NFC_DEVICE_READY; i++)
		step();
	CHECK_EQ(t.area[0]->state, NFC_DEVICE_READY);
	CHECK_EQ(t.area[0]->size, t.area[1]->size);
	t.area[0]->host_hello.header = nfc_header(NFC_TYPE_HELLO, 56, EPOCH, 0,
						  0);
	for (int i = 0; i < 1000000 && !t.end[0].known; i++)
		step();
	CHECK_EQ(t.area[1]->host_hello.header, t.area[0]->host_hello.header);
}

/* ---- slots ---- */

/* One side of a ring: who puts has its end's `out`, who takes has `in`. */
struct side {
	struct nfc_far_rings *m;
	uint64_t at;
};

static uint64_t header_of(uint64_t at)
{
	return nfc_header(NFC_TYPE_DIRECT, 8, EPOCH, at & 0xffff, 1) |
	       ((at / SLOTS + 1) & 1) << NFC_HDR_PHASE_SHIFT;
}

static void put_some(struct side *s, uint64_t last)
{
	while (s->at < last && s->at - *s->m->out_head < SLOTS && chance(4)) {
		struct nfc_slot *slot = &s->m->out[s->at % SLOTS];

		slot->payload[0] = s->at * 3;
		slot->header = header_of(s->at++);
	}
}

static void take_some(struct side *s)
{
	while (chance(4)) {
		struct nfc_slot *slot = &s->m->in[s->at % SLOTS];

		if (slot->header != header_of(s->at))
			break;
		CHECK_EQ(slot->payload[0], s->at * 3);
		s->at++;
	}
	if (chance(2))
		*s->m->in_head = s->at;
}

/* Messages both ways through both mailboxes, each once and in order. */
static void exchange(uint64_t count)
{
	struct side puts[2][MAILBOXES], takes[2][MAILBOXES];
	bool done = false;

	for (int e = 0; e < 2; e++)
		for (int m = 0; m < MAILBOXES; m++)
			puts[e][m] = takes[e][m] = (struct side){
				&t.end[e].mailbox[m], 0
			};
	for (int i = 0; i < 20000000 && !done; i++) {
		step();
		done = true;
		for (int e = 0; e < 2; e++)
			for (int m = 0; m < MAILBOXES; m++) {
				put_some(&puts[e][m], count);
				take_some(&takes[e][m]);
				done &= takes[e][m].at == count;
			}
	}
	CHECK(done);
}

CASE(slots_come_once_and_in_order)
{
	static const uint32_t faults[][3] = { { 0, 0, 0 },
					      { 10, 0, 0 },
					      { 0, 30, 0 },
					      { 0, 0, 20 },
					      { 20, 20, 20 } };

	for (unsigned int i = 0; i < sizeof(faults) / sizeof(*faults); i++) {
		setup(faults[i][0], faults[i][1], faults[i][2]);
		greet();
		t.area[1]->island[0].word = 1; /* it sleeps */
		exchange(500);
		CHECK_EQ(t.rings[1], 1);
		teardown();
	}
}

/* ---- DMA ---- */

static struct nfc_slot slot_of(enum nfc_type type, uint64_t length,
			       uint64_t channel)
{
	return (struct nfc_slot){ .header = nfc_header(type, length, EPOCH,
						       t.transfer, channel) };
}

/* The host names the pages of its next transfer on a channel. */
static void names(bool write, uint64_t channel, void *memory, uint64_t size)
{
	uint64_t at = (uint64_t)(uintptr_t)memory, end = at + size, length;
	struct nfc_slot s;
	int n = 0;

	t.transfer++;
	length = NFC_LIST_RUNS | (write ? NFC_LIST_D2H : 0);
	s = slot_of(NFC_TYPE_IND_LIST, length, channel);
	for (; at < end; n++) {
		uint64_t pages = (end - at + (at & 4095) + 4095) >> 12;

		s.payload[n] = nfc_run(at, pages);
		at += nfc_run_length(s.payload[n]);
	}
	s.header |= (uint64_t)n << NFC_HDR_LENGTH_SHIFT;
	nfc_far_sent(&t.end[0], &s);
}

/* The device says how it ended. */
static void answers(enum nfc_type type, bool write, uint64_t channel)
{
	struct nfc_slot s = slot_of(type, 56, channel);
	struct nfc_ack *a = (void *)s.payload;
	struct nfc_note *note = (void *)s.payload;

	if (type == NFC_TYPE_WITHDRAWN || type == NFC_TYPE_WITHDRAW)
		note->direction = write;
	else
		a->direction = write;
	nfc_far_received(&t.end[0], &s);
}

/* A piece, as the core asks for it until it has ended. */
static int piece(bool write, void *memory, void *bus, uint64_t size)
{
	int rc = NFC_PENDING;

	for (int i = 0; i < 1000000 && rc == NFC_PENDING; i++) {
		rc = nfc_far_dma(&t.end[1], write, memory,
				 (uint64_t)(uintptr_t)bus, size);
		step();
	}
	return rc;
}

CASE(bytes_come_whole_and_never_late)
{
	static uint8_t host[1 << 20], device[1 << 20], before[1 << 20];

	setup(10, 30, 30);
	greet();
	for (int round = 0; round < 20; round++) {
		uint64_t size = 1 + chance(sizeof(host) - 1);

		for (uint64_t i = 0; i < size; i++)
			host[i] = (uint8_t)chance(256);
		names(false, 1, host, size);
		CHECK_EQ(piece(false, device, host, size), 0);
		answers(NFC_TYPE_DONE, false, 1);
		CHECK(!memcmp(device, host, size));
		for (uint64_t i = 0; i < size; i++)
			device[i] = (uint8_t)chance(256);
		names(true, 1, host, size);
		CHECK_EQ(piece(true, device, host, size), 0);
		answers(NFC_TYPE_DONE, true, 1);
		CHECK(!memcmp(device, host, size));
		/* what is late meets memory that is another's */
		memset(host, round, sizeof(host));
		memcpy(before, device, sizeof(before));
		for (int i = 0; i < 10000; i++)
			step();
		CHECK(!memcmp(before, device, sizeof(before)));
		for (uint64_t i = 0; i < sizeof(host); i++)
			if (host[i] != (uint8_t)round)
				CHECK(!"a late write came through");
	}
	teardown();
}

/* A fenced host's memory is neither read nor written, and the device gets the error. */
CASE(a_fence_ends_what_is_under_way)
{
	static uint8_t host[64 << 10], device[64 << 10];

	setup(0, 0, 0);
	greet();
	memset(device, 1, sizeof(device));
	t.end[0].fenced = true;
	CHECK_EQ(piece(true, device, host, sizeof(host)), NFC_ERESET);
	CHECK_EQ(host[0], 0);
	memset(host, 2, sizeof(host));
	CHECK_EQ(piece(false, device, host, sizeof(host)), NFC_ERESET);
	CHECK_EQ(device[0], 1);
	teardown();
}

/* Does the device's access break a rule? Each in a new epoch. */
static bool latches(bool write, void *bus, uint64_t size)
{
	static uint8_t device[64 << 10];
	bool latched;

	for (int i = 0; i < 1000 && !t.end[0].latched; i++) {
		int rc = nfc_far_dma(&t.end[1], write, device,
				     (uint64_t)(uintptr_t)bus, size);

		if (rc != NFC_PENDING)
			break;
		step();
	}
	latched = t.end[0].latched;
	CHECK_EQ(t.end[0].fenced, latched);
	teardown();
	setup(0, 0, 0);
	greet();
	return latched;
}

/* A device reaches the pages of a transfer, in its direction and while it lasts: no others. */
CASE(pages_of_transfers_and_no_others)
{
	static uint8_t host[16 << 10];
	uint64_t half = sizeof(host) / 2;

	setup(0, 0, 0);
	greet();
	CHECK(latches(false, host, 1));
	CHECK(latches(true, host, 1));
	names(false, 1, host, half);
	CHECK(!latches(false, host, half));
	names(false, 1, host, half);
	CHECK(latches(true, host, 8)); /* to be read alone */
	names(true, 1, host + half, half);
	CHECK(latches(true, host + half - 1, 8));
	names(true, 1, host, half);
	CHECK(latches(true, host + half - 1, 4098));
	names(true, 1, host, half);
	CHECK(latches(true, (void *)(UINTPTR_MAX - 3), 8));
	names(true, CHANNELS, host, half);
	CHECK(latches(true, host, 8));
	names(true, 2, host, half);
	answers(NFC_TYPE_DONE, true, 2);
	CHECK(latches(true, host, 8)); /* it is over */
	names(true, 2, host, half);
	answers(NFC_TYPE_ABORTED, true, 3);
	CHECK(!latches(true, host, 8)); /* of another channel */
	names(true, 2, host, half);
	names(true, 2, host + half, half);
	CHECK(latches(true, host, 8)); /* of the one before */
	names(true, 2, host, half);
	names(true, 3, host + half, half);
	answers(NFC_TYPE_ERROR, true, 3);
	CHECK(!latches(true, host, half)); /* the other one continues */
	teardown();
}

/* A device that answers before it was asked gets no pages of it afterwards. */
CASE(an_end_that_comes_early_ends_it)
{
	static uint8_t host[8 << 10];
	struct nfc_slot asked;

	setup(0, 0, 0);
	greet();
	t.transfer = 1;
	answers(NFC_TYPE_DONE, true, 2);
	t.transfer = 0;
	names(true, 2, host, sizeof(host));
	CHECK(latches(true, host, 8));
	t.transfer = 1;
	answers(NFC_TYPE_WITHDRAWN, true, 2);
	t.transfer = 0;
	names(true, 2, host, sizeof(host));
	CHECK_EQ(t.end[0].granted, 0);
	asked = slot_of(NFC_TYPE_WITHDRAW, 56, 2);
	((struct nfc_note *)asked.payload)->direction = NFC_D2H;
	nfc_far_sent(&t.end[0], &asked);
	t.transfer = 0;
	names(true, 2, host,
	      sizeof(host)); /* under the number that nothing used */
	CHECK_EQ(t.end[0].granted, 1);
	nfc_far_sent(&t.end[0], &asked);
	answers(NFC_TYPE_WITHDRAWN, true, 2);
	CHECK_EQ(t.end[0].granted, 0);
	t.transfer = 0;
	names(true, 2, host, sizeof(host));
	CHECK(!latches(true, host, 8));
	teardown();
}

/* ---- ends ---- */

/* The slots that it put have arrived then, though links lose packets. */
CASE(a_host_leaves_when_it_has_said_all)
{
	struct side puts, takes;

	setup(20, 20, 20);
	greet();
	puts = (struct side){ &t.end[0].mailbox[1], 0 };
	takes = (struct side){ &t.end[1].mailbox[1], 0 };
	CHECK(nfc_far_sent_all(&t.end[0]));
	while (puts.at < SLOTS)
		put_some(&puts, SLOTS);
	CHECK(!nfc_far_sent_all(&t.end[0]));
	for (int i = 0; i < 1000000 && !nfc_far_sent_all(&t.end[0]); i++)
		step();
	CHECK(nfc_far_sent_all(&t.end[0]));
	for (int i = 0; i < 1000 && takes.at < SLOTS; i++)
		take_some(&takes);
	CHECK_EQ(takes.at, SLOTS);
	teardown();
}

/* It sends nothing to a device that is lost. */
CASE(a_host_leaves_a_device_that_is_gone)
{
	struct side puts;

	setup(0, 0, 0);
	greet();
	puts = (struct side){ &t.end[0].mailbox[0], 0 };
	while (puts.at < SLOTS)
		put_some(&puts, SLOTS);
	lossy.lose = 100;
	for (int i = 0; i < 300000 && !t.end[0].over; i++) {
		step();
		CHECK_EQ(nfc_far_sent_all(&t.end[0]), t.end[0].over);
	}
	CHECK(t.end[0].over);
	teardown();
}

CASE(a_silent_host_is_gone_and_one_that_stood_still_is_not)
{
	setup(0, 0, 0);
	greet();
	lossy.now += 5000000000ull; /* nobody ran */
	step();
	step();
	CHECK(!t.end[1].over);
	lossy.lose = 100;
	for (int i = 0; i < 300000 && !t.end[1].over; i++)
		step();
	CHECK(t.end[1].over);
	CHECK_EQ(piece(true, t.area, NULL, 1), NFC_ERESET);
	teardown();
}

/* How long it takes an end to find the other one lost; some seconds: it does not. */
static uint64_t until_over(int end)
{
	uint64_t begin = lossy.now;

	while (!t.end[end].over && lossy.now - begin < 3000ull * MS)
		step();
	return lossy.now - begin;
}

/* A host is notified in time: at once without a route. Its device forgets it later. */
CASE(a_device_that_is_gone_is_noticed_in_time)
{
	for (int silent = 0; silent < 2; silent++) {
		uint64_t took;

		setup(0, 0, 0);
		greet();
		lossy.away = !silent;
		lossy.lose = 100;
		took = until_over(0);
		CHECK(took > (silent ? 1000 : 50) * (uint64_t)MS);
		CHECK(took < (silent ? 1300 : 70) * (uint64_t)MS);
		CHECK_EQ(t.area[0]->state, NFC_DEVICE_OFF);
		CHECK_EQ(t.rings[0], 1);
		CHECK(until_over(1) < 1300ull * MS);
		teardown();
	}
}

/* A device that has nothing to say, and whose heartbeat takes its time, is not lost. */
CASE(a_device_that_says_nothing_is_not_gone)
{
	setup(0, 0, 0);
	greet();
	CHECK(until_over(0) >= 3000ull * MS);
	CHECK_EQ(t.area[0]->state, NFC_DEVICE_READY);
	teardown();
}

/* A node that has the processor late each time does not wait that long for each look. */
CASE(looks_that_come_late_are_not_added_up)
{
	uint64_t begin;

	setup(0, 0, 0);
	greet();
	begin = lossy.now;
	lossy.away = true;
	step();
	while (!t.end[0].over && lossy.now - begin < 1000ull * MS) {
		lossy.now += 19ull * MS;
		step();
	}
	CHECK(lossy.now - begin < 100ull * MS);
	teardown();
}

/* Routes that return soon are no loss, nor is time in which nobody looked. */
CASE(a_way_that_comes_back_costs_time)
{
	setup(0, 0, 0);
	greet();
	for (int i = 0; i < 20; i++) {
		uint64_t back = lossy.now + 48ull * MS;

		lossy.away = true;
		while (lossy.now < back)
			step();
		lossy.away = false;
		step();
	}
	lossy.away = true;
	for (int i = 0; i < NFC_FAR_ASTRAY; i++) {
		lossy.now += 1000ull * MS;
		step();
	}
	CHECK(!t.end[0].over);
	lossy.away = false;
	t.area[1]->heartbeat.header = nfc_header(NFC_TYPE_HEARTBEAT, 56, EPOCH,
						 2, 0);
	for (int i = 0; i < 1000; i++)
		step();
	CHECK_EQ(t.area[0]->heartbeat.header, t.area[1]->heartbeat.header);
	teardown();
}

/* Invalid packets harm nobody; those of another epoch are not looked at. */
CASE(nonsense_is_dropped)
{
	struct nfc_far_packet p;

	setup(0, 0, 0);
	greet();
	lossy.random = 1;
	for (int i = 0; i < 200000; i++) {
		struct flying f = { .packet.to = chance(2) };

		for (uint32_t k = 0; k < sizeof(p) / 4; k += 1 + chance(64))
			memset((uint8_t *)&p + 4 * k, (int)chance(256), 4);
		p.head.epoch = chance(8) ? EPOCH : chance(9);
		p.head.mailbox = (uint8_t)chance(MAILBOXES + 1);
		p.head.host = chance(8) ? 0 : (uint16_t)chance(3);
		p.head.count = (uint8_t)chance(80);
		p.head.bus = (uint64_t)(uintptr_t)t.area[0];
		f.packet.kind = (uint8_t)(16 + chance(13));
		if (f.packet.kind == NFC_FAR_WRITE ||
		    f.packet.kind == NFC_FAR_READ ||
		    f.packet.kind == NFC_FAR_LEAVE)
			continue; /* a host's device would be latched at once */
		f.packet.size = chance(NFC_PACKET_SIZE + 1);
		memcpy(f.word, &p, sizeof(p));
		lossy_give(&f, deliver);
		if (i % 64 == 0)
			step();
	}
	CHECK(!t.end[1].over);
	teardown();
}
