// SPDX-License-Identifier: MIT
/*
 * Fuzz the device with a host that mostly keeps the protocol: each input byte
 * picks the next thing to say, with the right ids, sizes and lists, and now
 * and then a bit of it is flipped on its way out.
 */
#include "fuzz_rig.h"

enum {
	TARGETS = 6, /* services 1..4, and two programs with a port each */
};

/* The host's side of one transfer or message of its own. */
struct offer {
	uint64_t id;
	uint64_t size;
	uint64_t at; /* within the buffer */
	uint64_t lists; /* sent */
};

static const uint8_t *input;
static size_t left;
static struct offer offers[TARGETS][2];
static uint32_t targets[TARGETS];
static uint8_t spoil_word, spoil_bit; /* of the next slot, if any */

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static uint8_t next(void)
{
	if (!left)
		return 0;
	left--;
	return *input++;
}

static uint64_t next16(void)
{
	uint64_t low = next();

	return low | (uint64_t)next() << 8;
}

static void put(struct rig *r, struct nfc_slot *slot)
{
	if (spoil_word) {
		uint64_t *word = spoil_word % 8 ?
					 &slot->payload[spoil_word % 8 - 1] :
					 &slot->header;

		*word ^= 1ull << (spoil_bit % 64);
		spoil_word = 0;
	}
	fuzz_offer(r, slot);
}

static void say_direct(struct rig *r, uint32_t i)
{
	uint8_t data[NFC_PAYLOAD_SIZE] = { 0 };
	size_t n = next() % (NFC_PAYLOAD_SIZE + 1);

	for (size_t k = 0; k < n && k < 10; k++)
		data[k] = next();
	offers[i][NFC_H2D] = (struct offer){ .id = host_direct(r, targets[i],
							       data, n) };
}

static void say_begin(struct rig *r, uint32_t i)
{
	struct offer *o = &offers[i][NFC_H2D];

	o->at = next16() % (FUZZ_BUFFER / 2);
	o->size = next16() % (FUZZ_BUFFER / 2);
	o->lists = 0;
	o->id = host_begin(r, targets[i], o->size, next() * 1000000ull);
}

/* Some lists more of what goes one way; now and then one that was sent. */
static void say_lists(struct rig *r, uint32_t i, uint32_t direction)
{
	struct offer *o = &offers[i][direction];
	uint8_t how = next();
	uint64_t count = 1 + how % 4, first = o->lists;

	if (how & 0x80 && first)
		first--;
	host_send_lists(r, targets[i], direction, o->id, fuzz_buffer + o->at,
			o->size, first, first + count);
	o->lists = first + count;
}

/* The rest of what goes one way as one run, now and then with a page too many. */
static void say_run(struct rig *r, uint32_t i, uint32_t direction)
{
	struct offer *o = &offers[i][direction];
	const uint8_t *at = fuzz_buffer + o->at;
	uint64_t in = (uintptr_t)at % RIG_PAGE, run;

	run = nfc_run((uintptr_t)at, (in + o->size) / RIG_PAGE + next() % 4 / 2);
	host_runs(r, targets[i], direction, o->id, &run, 1, o->lists,
		  next() % 8 ? 0 : next16());
	o->lists++;
}

/* A list of any entries and any number: seven of them, none, one too many. */
static void say_odd_list(struct rig *r, uint32_t i, uint32_t direction)
{
	struct offer *o = &offers[i][direction];
	uint64_t entry[6], count = next() % 9;

	for (int k = 0; k < 6; k++)
		entry[k] = nfc_entry((uintptr_t)fuzz_buffer +
					     next16() % FUZZ_BUFFER,
				     1 + next16() % RIG_PAGE);
	host_list(r, targets[i], direction, o->id, entry, count,
		  o->lists + next() % 2, next16());
}

static void say_note(struct rig *r, uint32_t i, uint32_t direction)
{
	static const uint32_t types[] = { NFC_TYPE_FIN, NFC_TYPE_WITHDRAW,
					  NFC_TYPE_WITHDRAWN, NFC_TYPE_ABORT,
					  NFC_TYPE_OFFER };
	uint32_t type = types[next() % 5];
	uint64_t id = offers[i][direction].id;

	if (type == NFC_TYPE_OFFER)
		id = r->channel[targets[i]].next[NFC_H2D];
	host_note(r, targets[i], type, direction, id);
}

static void say_reply(struct rig *r, uint32_t i)
{
	static const uint32_t why[] = { NFC_OK, NFC_ESIZE, NFC_EKIND,
					NFC_ECLOSED };
	uint32_t status = why[next() % 4];

	host_reply(r, targets[i], status ? NFC_TYPE_ERROR : NFC_TYPE_ACK,
		   NFC_D2H, offers[i][NFC_D2H].id,
		   status ? NFC_STATE_FAILED : NFC_STATE_CONSUMED, status, 0);
}

/* Take note of what the device offers, so that the host can answer it. */
static void hear(struct rig *r)
{
	for (size_t n = 0; n < r->received_count; n++) {
		const struct nfc_slot *s = &r->received[n];
		const struct nfc_begin *begin = (const void *)s->payload;

		for (uint32_t i = 0; i < TARGETS; i++) {
			struct offer *o = &offers[i][NFC_D2H];

			if (nfc_header_channel(s->header) != targets[i])
				continue;
			if (nfc_header_type(s->header) == NFC_TYPE_DIRECT)
				*o = (struct offer){
					.id = nfc_header_sequence(s->header),
				};
			if (nfc_header_type(s->header) == NFC_TYPE_IND_BEGIN)
				*o = (struct offer){
					.id = begin->transaction,
					.size = begin->size % (FUZZ_BUFFER / 2),
				};
		}
	}
	r->received_count = 0;
}

/* A control request; its reply is acknowledged as it comes. */
static void say_control(struct rig *r)
{
	static const char *const names[] = { "loopback", "sink", "source",
					     "flood",	 "gate", "expect",
					     "hold" };
	struct nfc_control c = {
		.op = next() % 8,
		.a = next() % 32,
		.b = next() % 4,
		.c = next(),
	};
	uint64_t id;

	strcpy((char *)c.name, names[next() % 7]);
	host_direct(r, 0, &c, sizeof(c));
	rig_step(r);
	id = r->channel[0].next[NFC_D2H]++;
	host_reply(r, 0, NFC_TYPE_ACK, NFC_D2H, id, NFC_STATE_CONSUMED, 0, 0);
}

static void say(struct rig *r, uint8_t what)
{
	uint32_t i = what / 16 % TARGETS;
	uint32_t direction = what >> 7;

	switch (what % 16) {
	case 0:
	case 1:
		say_direct(r, i);
		break;
	case 2:
	case 3:
		say_begin(r, i);
		say_lists(r, i, NFC_H2D);
		break;
	case 4:
	case 5:
		say_lists(r, i, direction);
		break;
	case 6:
		say_run(r, i, direction);
		break;
	case 7:
		say_odd_list(r, i, direction);
		break;
	case 8:
	case 9:
		say_note(r, i, direction);
		break;
	case 10:
		say_reply(r, i);
		break;
	case 11:
		host_close(r, targets[i], 1 + what / 32 % 3);
		break;
	case 12:
		say_control(r);
		break;
	case 13:
		spoil_word = next();
		spoil_bit = next();
		break;
	case 14:
		rig_advance(r, 1000000ull * next());
		break;
	default:
		r->hold = !r->hold;
	}
}

static void prepare(struct rig *r)
{
	static const char *const names[] = { "sink", "source" };

	for (uint32_t i = 0; i < TARGETS; i++)
		targets[i] = i + 1;
	for (uint32_t i = 0; i < 2; i++)
		targets[4 + i] = (uint32_t)host_control(r, NFC_CONTROL_START, 0,
							1, 0, names[i])
					 .b;
	for (uint32_t i = 0; i < TARGETS; i++)
		CHECK_EQ(host_open(r, targets[i]), 0);
	memset(offers, 0, sizeof(offers));
	spoil_word = 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct rig *r = fuzz_rig();

	input = data;
	left = size;
	prepare(r);
	r->on_put = put;
	while (left) {
		say(r, next());
		rig_step(r);
		hear(r);
	}
	r->hold = false;
	rig_free(r);
	return 0;
}
