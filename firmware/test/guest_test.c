// SPDX-License-Identifier: MIT
/*
 * Channels that processes open to hosts that listen: to their own host, and to another,
 * on the island of the listener, and on one that it is not on.
 */
#include <string.h>

#include "pair_rig.h"

enum {
	HERE = 20, /* a target of island 0 */
	THERE = 280, /* and one of island 1 */
	H2D = 1 << NFC_H2D,
	D2H = 1 << NFC_D2H,
	BOTH = H2D | D2H,
	MANY = 100, /* more than a ring has slots */
};

static uint64_t listener; /* whom processes connect to */

typedef void (*role)(struct nfc_process *self, struct puppet *p);

/* near is the host of the process, far the one that listens: it may be the same. */
struct visit {
	struct pair pair;
	struct rig *near, *far;
	struct puppet *guest;
	uint32_t at; /* the target of the channel, at far */
};

static struct visit visit_of(uint32_t first, bool own, role guest)
{
	struct visit v = { .pair = pair_listening(pair_hosts) };

	v.near = own ? v.pair.far : v.pair.near;
	v.far = v.pair.far;
	listener = v.pair.id;
	v.guest = host_launch(v.near, first, guest, 1);
	rig_step(v.pair.near);
	return v;
}

/* The host is told of the process, and opens the channel. */
static void accept_guest(struct visit *v)
{
	uint32_t at = (uint32_t)v->pair.target;
	uint64_t id = v->far->channel[at].next[NFC_D2H]++;
	struct nfc_slot slot = host_expect(v->far, at, NFC_TYPE_DIRECT, id);

	CHECK_EQ(nfc_header_length(slot.header), 8);
	CHECK(slot.payload[0] & NFC_ACCEPT_PROCESS);
	v->at = (uint32_t)slot.payload[0] & ~(uint32_t)NFC_ACCEPT_PROCESS;
	host_reply(v->far, at, NFC_TYPE_ACK, NFC_D2H, id, NFC_STATE_CONSUMED, 0,
		   0);
	CHECK_EQ(host_open(v->far, v->at), 0);
}

static struct visit visiting(uint32_t first, bool own, role guest)
{
	struct visit v = visit_of(first, own, guest);

	accept_guest(&v);
	return v;
}

static void visit_free(struct visit *v)
{
	pair_free(&v->pair);
}

/* The target is the host's to give away, and no relay is in use. */
static void check_over(struct visit *v)
{
	struct nfc_device *dev = v->pair.near->dev;

	rig_step(v->pair.near);
	for (int i = 0; i < NFC_RELAYS; i++) {
		CHECK_EQ(atomic_load(&dev->relay[i].ends), 0);
		CHECK_EQ(atomic_load(&dev->relay[i].calls), 0);
	}
	CHECK_EQ(host_open(v->far, v->at), NFC_ENOTARGET);
}

static struct nfc_channel *connected(struct nfc_process *self, struct puppet *p)
{
	struct nfc_channel *ch = NULL;

	note(p, channel_connect(self, listener, &ch));
	if (!ch)
		stay(self);
	return ch;
}

#define EVERYWHERE(v, how, guest)                                             \
	for (int where = 0; where < 4; where++)                               \
		for (struct visit v =                                         \
			     how(where & 1 ? HERE : THERE, where & 2, guest); \
		     v.pair.near; visit_free(&v), v.pair.near = NULL)

/* The host takes a message of one byte. */
static void takes(struct visit *v, uint8_t want)
{
	uint64_t id = v->far->channel[v->at].next[NFC_D2H]++;
	struct nfc_slot slot = host_expect(v->far, v->at, NFC_TYPE_DIRECT, id);

	CHECK_EQ(nfc_header_length(slot.header), 1);
	CHECK_EQ(((uint8_t *)slot.payload)[0], want);
	host_reply(v->far, v->at, NFC_TYPE_ACK, NFC_D2H, id, NFC_STATE_CONSUMED,
		   0, 0);
}

static void gives(struct visit *v, uint8_t byte)
{
	uint64_t id = host_direct(v->far, v->at, &byte, 1);

	host_expect_ack(v->far, v->at, NFC_TYPE_ACK, NFC_H2D, id,
			NFC_STATE_CONSUMED, 0);
}

/* ---- messages ---- */

static void asks(struct nfc_process *self, struct puppet *p)
{
	struct nfc_channel *ch = connected(self, p);

	for (int i = 0; i < MANY; i++) {
		uint8_t byte = (uint8_t)i;

		CHECK_EQ(channel_write(ch, &byte, 1), 0);
		CHECK_EQ(channel_read(ch, p->buf, sizeof(p->buf)), 1);
		CHECK_EQ(p->buf[0], (uint8_t)(i + 1));
	}
}

CASE(messages_go_both_ways)
{
	EVERYWHERE(v, visiting, asks)
	{
		for (int i = 0; i < MANY; i++) {
			takes(&v, (uint8_t)i);
			gives(&v, (uint8_t)(i + 1));
		}
		CHECK(v.guest->done);
		host_expect_close(v.far, v.at, BOTH);
		host_close(v.far, v.at, BOTH);
		host_expect_close(v.far, v.at, BOTH);
		check_over(&v);
	}
}

/* What the process offers it takes back when it is told to stop; the host's is given back. */
static void offers(struct nfc_process *self, struct puppet *p)
{
	struct nfc_channel *ch = connected(self, p);
	uint8_t byte = 7;

	note(p, channel_write(ch, &byte, 1));
}

CASE(a_message_is_given_back)
{
	EVERYWHERE(v, visiting, offers)
	{
		uint64_t id = v.far->channel[v.at].next[NFC_D2H]++, sent;
		uint8_t byte = 1;

		host_expect(v.far, v.at, NFC_TYPE_DIRECT, id);
		sent = host_direct(v.far, v.at, &byte, 1);
		host_note(v.far, v.at, NFC_TYPE_WITHDRAW, NFC_H2D, sent);
		host_expect_note(v.far, v.at, NFC_TYPE_WITHDRAWN, NFC_H2D, sent);
		host_control(v.near, NFC_CONTROL_STOP, v.guest->process, 0, 0,
			     NULL);
		host_expect_note(v.far, v.at, NFC_TYPE_WITHDRAW, NFC_D2H, id);
		host_note(v.far, v.at, NFC_TYPE_WITHDRAWN, NFC_D2H, id);
		rig_step(v.far->main);
		CHECK_EQ(v.guest->rc[1], -NFC_ESTOPPED);
		CHECK(v.guest->done);
		host_expect_close(v.far, v.at, BOTH);
	}
}

/* A host that tries to send knows whether the process waits, also in an alternative. */
static void alternates(struct nfc_process *self, struct puppet *p)
{
	struct nfc_channel *ch[2] = { nfc_channel_of(self, 0),
				      connected(self, p) };

	note(p, channel_alt(ch, 2, UINT64_MAX));
	note(p, channel_read(ch[1], p->buf, sizeof(p->buf)));
	note(p, channel_alt(ch, 2, 0));
	stay(self);
}

CASE(a_try_finds_who_waits)
{
	EVERYWHERE(v, visiting, alternates)
	{
		struct rig_channel *c = &v.far->channel[v.at];

		host_note(v.far, v.at, NFC_TYPE_OFFER, NFC_H2D,
			  c->next[NFC_H2D]);
		host_expect_note(v.far, v.at, NFC_TYPE_READY, NFC_H2D,
				 c->next[NFC_H2D]);
		gives(&v, 3);
		CHECK_EQ(v.guest->rc[1], 1);
		CHECK_EQ(v.guest->rc[2], 1);
		CHECK_EQ(v.guest->buf[0], 3);
		CHECK_EQ(v.guest->rc[3], -NFC_ETIMEOUT);
		host_note(v.far, v.at, NFC_TYPE_OFFER, NFC_H2D,
			  c->next[NFC_H2D]);
		host_expect_nothing(v.far, v.at);
	}
}

/* ---- transfers ---- */

enum { BYTES = 9 * RIG_PAGE + 100 };

static void returns(struct nfc_process *self, struct puppet *p)
{
	struct nfc_channel *ch = connected(self, p);

	p->memory = nfc_alloc(self, NFC_EMEM, BYTES);
	note(p, channel_read_ind(ch, p->memory, BYTES));
	note(p, channel_write_ind(ch, p->memory, BYTES));
	note(p, channel_read_ind(ch, p->memory, BYTES));
	stay(self);
}

/* The host's part of a transfer to the process, or from it. */
static void drives(struct visit *v, enum nfc_direction d, uint8_t *buf)
{
	struct rig_channel *c = &v->far->channel[v->at];
	struct nfc_ack end;
	uint64_t id;

	if (d == NFC_D2H)
		host_expect(v->far, v->at, NFC_TYPE_IND_BEGIN,
			    id = c->next[NFC_D2H]++);
	else
		id = host_begin(v->far, v->at, BYTES, 0);
	end = host_drive(v->far, v->at, d, id, buf, BYTES);
	CHECK_EQ(end.state, NFC_STATE_DONE);
	host_note(v->far, v->at, NFC_TYPE_FIN, d, id);
	rig_step(v->far->main);
}

CASE(transfers_go_both_ways)
{
	EVERYWHERE(v, visiting, returns)
	{
		uint8_t *from = host_buffer(v.far, BYTES, 3);
		uint8_t *to = host_buffer(v.far, BYTES, 0);

		drives(&v, NFC_H2D, from);
		CHECK_EQ(v.guest->rc[1], 0);
		drives(&v, NFC_D2H, to);
		CHECK_EQ(v.guest->rc[2], 0);
		CHECK(!memcmp(from, to, BYTES));
		CHECK_EQ(v.far->main->bad_dma, 0);
	}
}

/* ---- who closes, ends, goes ---- */

static void hears(struct nfc_process *self, struct puppet *p)
{
	struct nfc_channel *ch = connected(self, p), *again;
	uint8_t byte = 1;

	note(p, channel_read(ch, p->buf, sizeof(p->buf)));
	note(p, channel_write(ch, &byte, 1));
	note(p, channel_alt(&ch, 1, 0));
	channel_close(ch, BOTH);
	note(p, channel_read(ch, p->buf, sizeof(p->buf)));
	again = connected(self, p);
	p->more = again == ch ? p : NULL;
	note(p, channel_read(again, p->buf, sizeof(p->buf)));
}

CASE(a_host_that_closes)
{
	EVERYWHERE(v, visiting, hears)
	{
		struct puppet *p = v.guest;

		host_close(v.far, v.at, H2D);
		rig_step(v.far->main);
		CHECK_EQ(p->rc[1], -NFC_ECLOSED);
		takes(&v, 1);
		host_expect_close(v.far, v.at, BOTH);
		host_close(v.far, v.at, D2H);
		host_expect_close(v.far, v.at, BOTH);
		CHECK_EQ(p->rc[4], -NFC_ECLOSED);
		CHECK_EQ(p->rc[5], 0);
		accept_guest(&v);
		gives(&v, 1);
		CHECK_EQ(p->rc[6], 1);
		CHECK(p->done);
		host_expect_close(v.far, v.at, BOTH);
		host_close(v.far, v.at, BOTH);
		host_expect_close(v.far, v.at, BOTH);
		check_over(&v);
	}
}

/* The process's place is used again, as nobody else has to do with it. */
CASE(a_host_that_closes_at_once)
{
	EVERYWHERE(v, visiting, hears)
	{
		host_close(v.far, v.at, BOTH);
		host_expect_close(v.far, v.at, BOTH);
		CHECK_EQ(v.guest->rc[1], -NFC_ECLOSED);
		CHECK_EQ(v.guest->rc[2], -NFC_ECLOSED);
		CHECK_EQ(v.guest->rc[4], -NFC_ECLOSED);
		CHECK_EQ(v.guest->rc[5], 0);
		CHECK(v.guest->more);
		accept_guest(&v);
		gives(&v, 1);
		CHECK(v.guest->done);
	}
}

static void closes_first(struct nfc_process *self, struct puppet *p)
{
	struct nfc_channel *ch = connected(self, p);
	uint8_t byte = 1;

	channel_close(ch, H2D);
	note(p, channel_read(ch, p->buf, sizeof(p->buf)));
	note(p, channel_write(ch, &byte, 1));
	channel_close(ch, D2H);
	note(p, channel_write(ch, &byte, 1));
	note(p, channel_write(ch, &byte, 1));
	stay(self);
}

CASE(a_process_that_closes_before_it_is_accepted)
{
	EVERYWHERE(v, visiting, closes_first)
	{
		uint64_t id;
		uint8_t byte = 2;

		host_expect_close(v.far, v.at, H2D);
		takes(&v, 1);
		host_expect_close(v.far, v.at, D2H);
		CHECK_EQ(v.guest->rc[1], -NFC_ECLOSED);
		CHECK_EQ(v.guest->rc[2], 0);
		CHECK_EQ(v.guest->rc[3], -NFC_ECLOSED);
		CHECK_EQ(v.guest->rc[4], -NFC_ECLOSED);
		id = host_direct(v.far, v.at, &byte, 1);
		host_expect_ack(v.far, v.at, NFC_TYPE_ERROR, NFC_H2D, id,
				NFC_STATE_FAILED, NFC_ECLOSED);
		host_close(v.far, v.at, BOTH);
		host_expect_close(v.far, v.at, BOTH);
	}
}

static void leaves(struct nfc_process *self, struct puppet *p)
{
	connected(self, p);
	later(self);
}

/* One that ends while it is offered is accepted, and closed then. */
CASE(a_process_that_ends_before_it_is_accepted)
{
	EVERYWHERE(v, visit_of, leaves)
	{
		go(v.near);
		CHECK(v.guest->done);
		accept_guest(&v);
		host_expect_close(v.far, v.at, BOTH);
		host_close(v.far, v.at, BOTH);
		host_expect_close(v.far, v.at, BOTH);
		check_over(&v);
	}
}

/* Those behind the one that is offered leave their places. */
CASE(processes_that_end_leave_their_places)
{
	EVERYWHERE(v, visit_of, leaves)
	{
		uint32_t first = v.guest->target;

		for (uint32_t i = 1; i < NFC_LISTENER_WAITING * 2; i++) {
			struct puppet *p = host_launch(v.near, first + i,
						       leaves, 1);

			rig_step(v.near->main);
			CHECK_EQ(p->rc[0], 0);
			go(v.near);
			CHECK(p->done);
		}
		accept_guest(&v);
		host_expect_close(v.far, v.at, BOTH);
		host_expect_nothing(v.far, (uint32_t)v.pair.target);
	}
}

static void waits(struct nfc_process *self, struct puppet *p)
{
	struct nfc_channel *ch = connected(self, p);

	note(p, channel_alt(&ch, 1, UINT64_MAX));
	note(p, channel_read(ch, p->buf, sizeof(p->buf)));
	note(p, channel_write(ch, p->buf, 1));
}

CASE(a_listener_that_goes_refuses)
{
	EVERYWHERE(v, visit_of, waits)
	{
		uint32_t at = (uint32_t)v.pair.target;
		uint64_t id = v.far->channel[at].next[NFC_D2H];
		struct puppet *second = host_launch(v.near, v.guest->target + 1,
						    offers, 1);

		rig_step(v.near->main);
		host_control(v.far, NFC_CONTROL_STOP, v.pair.process, 0, 0,
			     NULL);
		host_note(v.far, at, NFC_TYPE_WITHDRAWN, NFC_D2H, id);
		rig_step(v.near->main);
		CHECK_EQ(v.guest->rc[1], 0);
		CHECK_EQ(v.guest->rc[2], -NFC_ECLOSED);
		CHECK_EQ(v.guest->rc[3], -NFC_ECLOSED);
		CHECK(v.guest->done);
		CHECK_EQ(second->rc[1], -NFC_ECLOSED);
		CHECK(second->done);
		pair_check_free(v.near->main->dev);
	}
}

/* The host that listens goes, whatever the process waits for. */
static void reads_ind(struct nfc_process *self, struct puppet *p)
{
	struct nfc_channel *ch = connected(self, p);

	p->memory = nfc_alloc(self, NFC_EMEM, BYTES);
	note(p, channel_read_ind(ch, p->memory, BYTES));
	note(p, channel_write_ind(ch, p->memory, BYTES));
}

static const role waiting[] = { waits, offers, reads_ind };

CASE(a_host_that_listens_goes)
{
	for (size_t i = 0; i < 3 * 4; i++) {
		struct visit v = visiting(i & 1 ? HERE : THERE, false,
					  waiting[i / 4]);

		if (i / 4 == 2 && i & 2) { /* while lists are to come */
			uint8_t *from = host_buffer(v.far, BYTES, 3);
			uint64_t id = host_begin(v.far, v.at, BYTES, 0);

			host_send_lists(v.far, v.at, NFC_H2D, id, from, BYTES,
					0, 1);
			rig_step(v.near);
		} else if (i & 2) { /* offered, parked */
			uint8_t byte = 1;

			host_direct(v.far, v.at, &byte, 1);
			rig_step(v.near);
		}
		rig_detach(v.far);
		v.pair.far = NULL;
		rig_step(v.near);
		CHECK(v.guest->done);
		CHECK_EQ(v.guest->rc[v.guest->step - 1], -NFC_ECLOSED);
		pair_check_free(v.near->dev);
		visit_free(&v);
	}
}

/* The process's host goes. */
static struct visit of_other(uint32_t first, role guest)
{
	struct visit v = { .pair = pair_listening(pair_hosts) };

	v.far = v.pair.far;
	v.near = rig_attach(v.pair.near, 2);
	listener = v.pair.id;
	v.guest = host_launch(v.near, first, guest, 1);
	rig_step(v.pair.near);
	accept_guest(&v);
	return v;
}

CASE(a_host_of_a_process_goes)
{
	for (size_t i = 0; i < 2; i++) {
		struct visit v = of_other(i ? HERE : THERE, offers);
		uint64_t id = v.far->channel[v.at].next[NFC_D2H]++, sent;
		uint8_t byte = 1;

		host_expect(v.far, v.at, NFC_TYPE_DIRECT, id);
		sent = host_direct(v.far, v.at, &byte, 1);
		rig_detach(v.near);
		host_expect_ack(v.far, v.at, NFC_TYPE_ERROR, NFC_H2D, sent,
				NFC_STATE_FAILED, NFC_ECLOSED);
		host_expect_note(v.far, v.at, NFC_TYPE_WITHDRAW, NFC_D2H, id);
		host_expect_close(v.far, v.at, BOTH);
		host_note(v.far, v.at, NFC_TYPE_WITHDRAWN, NFC_D2H, id);
		host_close(v.far, v.at, BOTH);
		host_expect_close(v.far, v.at, BOTH);
		check_over(&v);
		visit_free(&v);
	}
}

/* Its bytes stop, and the host that listens hears it when it has room. */
CASE(a_host_of_a_process_goes_with_a_transfer)
{
	for (size_t i = 0; i < 2; i++) {
		struct visit v = of_other(i ? HERE : THERE, reads_ind);
		uint8_t *from = host_buffer(v.far, BYTES, 3);
		uint64_t id = host_begin(v.far, v.at, BYTES, 0);
		uint32_t slots = v.far->config.slots;

		host_send_lists(v.far, v.at, NFC_H2D, id, from, BYTES, 0, 1);
		host_expect(v.far, v.at, NFC_TYPE_ACK, id);
		v.far->hold = true;
		for (uint32_t k = 0; k < 2 * slots; k++) /* each is refused */
			host_begin(v.far, v.at == HERE ? HERE + 1 : v.at + 2,
				   1ull << 48, 0);
		rig_step(v.pair.near);
		rig_detach(v.near);
		host_send_lists(v.far, v.at, NFC_H2D, id, from, BYTES, 1, 2);
		v.far->hold = false;
		host_drain(v.far);
		rig_advance(v.pair.near, MS);
		host_expect_ack(v.far, v.at, NFC_TYPE_ERROR, NFC_H2D, id,
				NFC_STATE_FAILED, NFC_ECLOSED);
		host_expect_close(v.far, v.at, BOTH);
		host_note(v.far, v.at, NFC_TYPE_ABORT, NFC_H2D, id);
		host_close(v.far, v.at, BOTH);
		host_expect_close(v.far, v.at, BOTH);
		check_over(&v);
		visit_free(&v);
	}
}

/* What was moved, and not committed yet, is the host's to end. */
CASE(a_host_of_a_process_goes_before_the_commit)
{
	for (size_t i = 0; i < 2; i++) {
		struct visit v = of_other(i ? HERE : THERE, reads_ind);
		uint8_t *from = host_buffer(v.far, BYTES, 3);
		uint64_t id = host_begin(v.far, v.at, BYTES, 0);
		struct nfc_ack end = host_drive(v.far, v.at, NFC_H2D, id, from,
						BYTES);

		CHECK_EQ(end.state, NFC_STATE_DONE);
		rig_detach(v.near);
		host_expect_close(v.far, v.at, BOTH);
		host_note(v.far, v.at, i ? NFC_TYPE_FIN : NFC_TYPE_ABORT,
			  NFC_H2D, id);
		if (!i)
			host_expect(v.far, v.at, NFC_TYPE_ABORTED, id);
		host_close(v.far, v.at, BOTH);
		host_expect_close(v.far, v.at, BOTH);
		check_over(&v);
		visit_free(&v);
	}
}

/* A host that does not answer keeps no process of another, not even with a full ring. */
static void check_stops(struct visit *v)
{
	uint32_t status = NFC_EBUSY;

	host_control(v->near, NFC_CONTROL_STOP, v->guest->process, 0, 0, NULL);
	rig_advance(v->pair.near, ANSWER_NS - MS);
	CHECK(!v->guest->done);
	for (int i = 0; i < 4; i++)
		rig_advance(v->pair.near, MS);
	CHECK(v->guest->done);
	CHECK_EQ(v->guest->rc[1], -NFC_ESTOPPED);
	status = host_control(v->near, NFC_CONTROL_STOP, v->guest->process, 0,
			      0, NULL)
			 .status;
	CHECK_EQ(status, NFC_EINVAL);
}

CASE(a_host_that_does_not_answer)
{
	for (size_t i = 0; i < 4; i++) {
		struct visit v = of_other(i & 1 ? HERE : THERE,
					  i & 2 ? reads_ind : offers);
		uint8_t *from = host_buffer(v.far, BYTES, 3);
		uint32_t slots = v.far->config.slots;
		uint64_t id = 1;

		if (i & 2) {
			id = host_begin(v.far, v.at, BYTES, 0);
			host_send_lists(v.far, v.at, NFC_H2D, id, from, BYTES,
					0, 1);
			host_expect(v.far, v.at, NFC_TYPE_ACK, id);
		}
		v.far->hold = i & 2;
		for (uint32_t k = 0; i & 2 && k < 2 * slots; k++)
			host_begin(v.far, v.at + 2, 1ull << 48, 0);
		rig_step(v.pair.near);
		check_stops(&v);
		v.far->hold = false;
		host_drain(v.far);
		rig_advance(v.pair.near, MS);
		if (i & 2)
			host_expect(v.far, v.at, NFC_TYPE_ERROR, id);
		else
			host_expect(v.far, v.at, NFC_TYPE_DIRECT, id);
		host_close(v.far, v.at, BOTH);
		rig_step(v.pair.near);
		check_over(&v);
		visit_free(&v);
	}
}

/* ---- who may, and how often ---- */

/* A host may guess the target, and have done with it before it accepts. */
CASE(a_guessed_target)
{
	EVERYWHERE(v, visit_of, waits)
	{
		uint32_t at = (uint32_t)v.pair.target;
		uint64_t id = v.far->channel[at].next[NFC_D2H];
		uint8_t byte = 1;

		v.at = v.near->main->dev->relay[0].guest.id;
		CHECK_EQ(host_open(v.far, v.at), 0);
		CHECK_EQ(host_open(v.far, v.at), NFC_EBUSY);
		host_direct(v.far, v.at, &byte, 1);
		host_close(v.far, v.at, BOTH);
		rig_step(v.near->main);
		CHECK(v.guest->done);
		host_control(v.far, NFC_CONTROL_STOP, v.pair.process, 0, 0,
			     NULL);
		host_note(v.far, at, NFC_TYPE_WITHDRAWN, NFC_D2H, id);
		rig_step(v.near->main);
		pair_check_free(v.near->main->dev);
	}
}

static void many(struct nfc_process *self, struct puppet *p)
{
	struct nfc_channel *ch;
	int rc = 0;

	while (!rc) {
		rc = channel_connect(self, listener, &ch);
		p->size += !rc;
		later(self);
	}
	note(p, rc);
	note(p, channel_connect(self, listener + 1, &ch));
	note(p, channel_connect(self, UINT32_MAX >> 8, &ch));
	stay(self);
}

CASE(connections_are_bounded)
{
	EVERYWHERE(v, visit_of, many)
	{
		struct puppet *p = v.guest;

		for (int i = 0; i < NFC_LISTENER_WAITING; i++)
			go(v.near);
		CHECK_EQ(p->rc[0], -NFC_EBUSY);
		CHECK_EQ(p->size, NFC_LISTENER_WAITING / 2 + 1);
		CHECK_EQ(p->rc[1], -NFC_ENOTARGET);
		CHECK_EQ(p->rc[2], -NFC_ENOTARGET);
		host_control(v.near, NFC_CONTROL_STOP, p->process, 0, 0, NULL);
	}
}

/* An older host does not say that it takes processes, and takes hosts alone. */
CASE(who_may_connect)
{
	static const struct {
		uint64_t user[2], anyone, guests;
		int rc, host;
	} row[] = {
		{ { 0, 0 }, 0, 1, -NFC_ENOTARGET, NFC_ENOTARGET },
		{ { 5, 6 }, 0, 1, -NFC_ENOTARGET, NFC_ENOTARGET },
		{ { 5, 5 }, 0, 1, 0, 0 },
		{ { 5, 6 }, 1, 1, 0, 0 },
		{ { 5, 5 }, 0, 0, -NFC_ENOTSUP, 0 },
		{ { 5, 6 }, 1, 0, -NFC_ENOTSUP, 0 },
		{ { 5, 6 }, 0, 0, -NFC_ENOTARGET, NFC_ENOTARGET },
	};

	for (size_t i = 0; i < sizeof(row) / sizeof(*row); i++) {
		struct rig *r = rig_new(pair_hosts), *far = rig_attach(r, 1);
		struct nfc_control l;
		struct puppet *p;

		r->dev->host[0]->user = row[i].user[0];
		r->dev->host[1]->user = row[i].user[1];
		l = host_control(far, NFC_CONTROL_LISTEN, row[i].anyone,
				 row[i].guests, 0, NULL);
		listener = l.c;
		p = host_launch(r, HERE, leaves, 1);
		rig_step(r);
		CHECK_EQ(p->rc[0], row[i].rc);
		CHECK_EQ(host_control(r, NFC_CONTROL_CONNECT, l.c, 0, 0, NULL)
				 .status,
			 row[i].host);
		rig_free(r);
	}
}
