// SPDX-License-Identifier: MIT
/*
 * Fuzz the device with two hosts that mostly keep the protocol, and have
 * channels to each other. Each input byte picks the next slot, with the right
 * ids, sizes and lists; now and then a bit of it is flipped. A process of each
 * connects to the one that listens, again and again.
 */
#include "fuzz_rig.h"

enum {
	TO_SERVICES = 4,
	TO_PROGRAMS = 2, /* with a port each; at the listening host the last is a listener's */
	TO_HOSTS = 2,
	TARGETS = TO_SERVICES + TO_PROGRAMS + TO_HOSTS,
	GUEST_MS = 20, /* between two channels that one opens */
	GUEST_MOST = 3 * RIG_PAGE, /* bytes of its memory */
};

/* The host's side of one transfer or message of its own. */
struct offer {
	uint64_t id;
	uint64_t size;
	uint64_t at; /* within the buffer */
	uint64_t lists; /* sent */
};

/* A host, and what it speaks on. */
struct party {
	struct rig *rig;
	uint32_t targets[TARGETS];
	struct offer offers[TARGETS][2];
	uint32_t opens; /* asked for last */
	uint32_t came; /* the target that its listener named last, or 0 */
};

static const uint8_t *input;
static size_t left;
static struct party parties[2];
static uint64_t listener, listening; /* its target, and the channel of its own */
static uint8_t spoil_word, spoil_bit; /* of the next slot, if any */

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* ---- processes that connect to the listening host ---- */

/* The process returns the transfer that it received, or the message. */
static int visit(struct nfc_channel *ch, uint64_t memory)
{
	uint8_t message[NFC_PAYLOAD_SIZE];
	struct nfc_offer offer;
	int rc = channel_alt(&ch, 1, GUEST_MS * 1000000ull);

	if (rc >= 0)
		rc = channel_read_any(ch, message, sizeof(message), &offer);
	if (rc < 0)
		return rc;
	if (!offer.indirect)
		return channel_write(ch, message, offer.size);
	rc = channel_read_ind(ch, offer.size <= GUEST_MOST ? memory : UINT64_MAX,
			      offer.size);
	return rc ? rc : channel_write_ind(ch, memory, offer.size);
}

/* It says hello, gives back what it gets, and closes one half before the other. */
static void guest(struct nfc_process *self, struct puppet *p)
{
	uint64_t memory = nfc_alloc(self, NFC_EMEM, GUEST_MOST);

	(void)p;
	while (!nfc_stopped(self)) {
		struct nfc_channel *ch;
		int rc = channel_connect(self, listener, &ch);

		if (!rc)
			rc = channel_write(ch, &memory, sizeof(memory));
		while (!rc || rc == -NFC_ESIZE)
			rc = visit(ch, memory);
		if (rc == -NFC_ETIMEOUT)
			channel_close(ch, 1 << NFC_D2H);
		nfc_sleep(self, GUEST_MS * 1000000ull);
		if (rc == -NFC_ETIMEOUT || rc == -NFC_ECLOSED)
			channel_close(ch, 1 << NFC_H2D | 1 << NFC_D2H);
	}
}

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

static void say_direct(struct party *p, uint32_t i)
{
	uint8_t data[NFC_PAYLOAD_SIZE] = { 0 };
	size_t n = next() % (NFC_PAYLOAD_SIZE + 1);

	for (size_t k = 0; k < n && k < 10; k++)
		data[k] = next();
	p->offers[i][NFC_H2D] = (struct offer){
		.id = host_direct(p->rig, p->targets[i], data, n)
	};
}

static void say_begin(struct party *p, uint32_t i)
{
	struct offer *o = &p->offers[i][NFC_H2D];

	o->at = next16() % (FUZZ_BUFFER / 2);
	o->size = next16() % (FUZZ_BUFFER / 2);
	o->lists = 0;
	o->id = host_begin(p->rig, p->targets[i], o->size, next() * 1000000ull);
}

/* Some more lists of one direction; now and then one that was sent. */
static void say_lists(struct party *p, uint32_t i, uint32_t direction)
{
	struct offer *o = &p->offers[i][direction];
	uint8_t how = next();
	uint64_t count = 1 + how % 4, first = o->lists;

	if (how & 0x80 && first)
		first--;
	host_send_lists(p->rig, p->targets[i], direction, o->id,
			fuzz_buffer + o->at, o->size, first, first + count);
	o->lists = first + count;
}

/* The rest of one direction as one run, now and then with a page too many. */
static void say_run(struct party *p, uint32_t i, uint32_t direction)
{
	struct offer *o = &p->offers[i][direction];
	const uint8_t *at = fuzz_buffer + o->at;
	uint64_t in = (uintptr_t)at % RIG_PAGE, run;

	run = nfc_run((uintptr_t)at, (in + o->size) / RIG_PAGE + next() % 4 / 2);
	host_runs(p->rig, p->targets[i], direction, o->id, &run, 1, o->lists,
		  next() % 8 ? 0 : next16());
	o->lists++;
}

/* A list of any entries and any number: seven of them, none, one too many. */
static void say_odd_list(struct party *p, uint32_t i, uint32_t direction)
{
	struct offer *o = &p->offers[i][direction];
	uint64_t entry[6], count = next() % 9;

	for (int k = 0; k < 6; k++)
		entry[k] = nfc_entry((uintptr_t)fuzz_buffer +
					     next16() % FUZZ_BUFFER,
				     1 + next16() % RIG_PAGE);
	host_list(p->rig, p->targets[i], direction, o->id, entry, count,
		  o->lists + next() % 2, next16());
}

static void say_note(struct party *p, uint32_t i, uint32_t direction)
{
	static const uint32_t types[] = { NFC_TYPE_FIN,	      NFC_TYPE_WITHDRAW,
					  NFC_TYPE_WITHDRAWN, NFC_TYPE_ABORT,
					  NFC_TYPE_OFFER,     NFC_TYPE_READY };
	uint32_t type = types[next() % 6];
	uint64_t id = p->offers[i][direction].id;

	if (type == NFC_TYPE_OFFER)
		id = p->rig->channel[p->targets[i]].next[NFC_H2D];
	if (type == NFC_TYPE_READY)
		id = p->rig->channel[p->targets[i]].next[NFC_D2H];
	host_note(p->rig, p->targets[i], type, direction, id);
}

static void say_reply(struct party *p, uint32_t i)
{
	static const uint32_t why[] = { NFC_OK, NFC_ESIZE, NFC_EKIND,
					NFC_ECLOSED };
	uint32_t status = why[next() % 4];

	host_reply(p->rig, p->targets[i], status ? NFC_TYPE_ERROR : NFC_TYPE_ACK,
		   NFC_D2H, p->offers[i][NFC_D2H].id,
		   status ? NFC_STATE_FAILED : NFC_STATE_CONSUMED, status, 0);
}

/* A transfer with its pages, or a target for the offer, or the next offer. */
static void say_eager(struct party *p, uint32_t i, uint32_t direction)
{
	struct offer *o = &p->offers[i][direction];
	struct rig_channel *ch = &p->rig->channel[p->targets[i]];
	uint8_t how = next();
	struct nfc_eager e = { .timeout_ns = how % 8 ? 0 : 1000000 };
	uint64_t at = (uintptr_t)fuzz_buffer + next16() % (FUZZ_BUFFER / 2);
	uint64_t count = 0;

	if (direction == NFC_H2D)
		o->id = ch->next[NFC_H2D]++;
	else if (how & 0x80)
		o->id++;
	e.transaction = o->id;
	e.size = direction == NFC_D2H && how & 0x40 ?
			 o->size :
			 next16() % (NFC_EAGER_ENTRIES * RIG_PAGE);
	for (uint64_t n = 0; n < e.size && count < NFC_EAGER_ENTRIES; count++) {
		uint64_t length = nfc_min(RIG_PAGE - (at + n) % RIG_PAGE,
					  e.size - n);

		e.entry[count] = nfc_entry(at + n, length);
		n += length;
	}
	host_put(p->rig, p->targets[i], NFC_TYPE_EAGER,
		 count | (direction == NFC_D2H ? NFC_LIST_D2H : 0),
		 e.transaction, &e);
}

/* A subscription that was asked for: what follows is for it. */
static void note_open(struct party *p, const struct nfc_control *c)
{
	struct rig_channel *ch = &p->rig->channel[p->opens];

	if (c->op != NFC_CONTROL_OPEN || c->status)
		return;
	ch->next[NFC_H2D] = c->a;
	ch->next[NFC_D2H] = c->b;
	ch->generation = c->c;
	p->targets[TARGETS - 1 - p->opens % TO_HOSTS] = p->opens;
}

/*
 * Note a connection: the target of a process is the host's, as the others are.
 */
static void note_listener(struct party *p, const struct nfc_slot *s)
{
	if (p == &parties[1] && nfc_header_channel(s->header) == listening &&
	    nfc_header_type(s->header) == NFC_TYPE_DIRECT)
		p->came = (uint32_t)s->payload[0] & 0xffffff;
}

/* Take note of what the device offers, so that the host can answer it. */
static void receive(struct party *p)
{
	for (size_t n = 0; n < p->rig->received_count; n++) {
		const struct nfc_slot *s = &p->rig->received[n];
		const struct nfc_begin *begin = (const void *)s->payload;

		if (!nfc_header_channel(s->header) &&
		    nfc_header_type(s->header) == NFC_TYPE_DIRECT)
			note_open(p, (const void *)s->payload);
		note_listener(p, s);
		for (uint32_t i = 0; i < TARGETS; i++) {
			struct offer *o = &p->offers[i][NFC_D2H];

			if (nfc_header_channel(s->header) != p->targets[i])
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
	p->rig->received_count = 0;
}

/* A control request; its reply is acknowledged at once. */
static void say_control(struct party *p)
{
	static const char *const names[] = { "loopback", "sink", "source",
					     "flood",	 "gate", "expect",
					     "asked",	 "hold" };
	struct nfc_control c = {
		.op = next() % (NFC_CONTROL_CLAIM + 1),
		.a = next() % 32,
		.b = next() % 4,
		.c = next(),
	};
	uint64_t id;

	if (c.op == NFC_CONTROL_OPEN && c.c & 1 && p->came)
		c.a = p->came;
	if (c.op == NFC_CONTROL_OPEN)
		p->opens = (uint32_t)c.a % p->rig->config.channels;
	if (c.op == NFC_CONTROL_CONNECT)
		c.a = listener + c.a % 2;
	strcpy((char *)c.name, names[next() % 8]);
	host_direct(p->rig, 0, &c, sizeof(c));
	rig_step(p->rig);
	id = p->rig->channel[0].next[NFC_D2H]++;
	host_reply(p->rig, 0, NFC_TYPE_ACK, NFC_D2H, id, NFC_STATE_CONSUMED, 0,
		   0);
}

static void say(struct party *p, uint8_t what)
{
	uint32_t i = what / 16 % TARGETS;
	uint32_t direction = what >> 7;

	switch (what % 16) {
	case 0:
		say_direct(p, i);
		break;
	case 1:
		say_eager(p, i, direction);
		break;
	case 2:
	case 3:
		say_begin(p, i);
		say_lists(p, i, NFC_H2D);
		break;
	case 4:
	case 5:
		say_lists(p, i, direction);
		break;
	case 6:
		say_run(p, i, direction);
		break;
	case 7:
		say_odd_list(p, i, direction);
		break;
	case 8:
	case 9:
		say_note(p, i, direction);
		break;
	case 10:
		say_reply(p, i);
		break;
	case 11:
		host_close(p->rig, p->targets[i], 1 + what / 32 % 3);
		break;
	case 12:
		say_control(p);
		break;
	case 13:
		spoil_word = next();
		spoil_bit = next();
		break;
	case 14:
		rig_advance(p->rig, 1000000ull * next());
		break;
	default:
		p->rig->hold = !p->rig->hold;
	}
}

/* The other one speaks from here on. */
static struct party *switch_party(const struct party *p)
{
	return p == parties ? &parties[1] : parties;
}

static void prepare(struct party *p, struct rig *r)
{
	static const char *const names[TO_PROGRAMS] = { "sink", "source" };

	*p = (struct party){ .rig = r };
	for (uint32_t i = 0; i < TO_SERVICES; i++)
		p->targets[i] = i + 1;
	for (uint32_t i = 0; i < TO_PROGRAMS; i++)
		p->targets[TO_SERVICES + i] = (uint32_t)host_control(
						      r, NFC_CONTROL_START, 0,
						      1, 0, names[i])
						      .b;
	for (uint32_t i = 0; i < TO_SERVICES + TO_PROGRAMS; i++)
		CHECK_EQ(host_open(r, p->targets[i]), 0);
}

/* Two channels between the hosts, and a process of each that wants one. */
static struct pair prepare_pair(void)
{
	struct pair p = fuzz_pair();

	prepare(&parties[0], p.near);
	prepare(&parties[1], p.far);
	for (uint32_t i = TARGETS - TO_HOSTS; i < TARGETS; i++) {
		parties[0].targets[i] = p.at_near;
		parties[1].targets[i] = p.at_far;
		if (i + 1 < TARGETS) {
			pair_connect(&p);
			pair_accept(&p);
		}
	}
	parties[1].targets[TARGETS - TO_HOSTS - 1] = (uint32_t)p.target;
	listener = p.id;
	listening = p.target;
	host_launch(p.near, 0, guest, 1);
	host_launch(p.far, 0, guest, 1);
	spoil_word = 0;
	p.near->on_put = put;
	p.far->on_put = put;
	return p;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct party *p = parties;
	struct pair pair;

	input = data;
	left = size;
	pair = prepare_pair();
	while (left) {
		uint8_t what = next();

		if (what % 16 == 15 && what & 0x10)
			p = switch_party(p);
		else
			say(p, what);
		rig_step(p->rig);
		receive(&parties[0]);
		receive(&parties[1]);
	}
	pair.near->hold = false;
	pair.far->hold = false;
	pair_free(&pair);
	return 0;
}
