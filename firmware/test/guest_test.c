// SPDX-License-Identifier: MIT
/*
 * Channels that processes open to hosts that listen: to their own host, and to another,
 * on the island of the listener, and on one that it is not on.
 */
#include <string.h>

#include "guest_rig.h"

enum { MANY = 100 }; /* more than a ring has slots */

/* ---- messages ---- */

static void asks(struct nfc_process *self, struct puppet *p)
{
	ask_often(visit_connected(self, p), p, MANY);
}

CASE(messages_go_both_ways)
{
	EVERYWHERE(v, visiting, asks)
	{
		for (int i = 0; i < MANY; i++) {
			visit_takes(&v, (uint8_t)i);
			visit_gives(&v, (uint8_t)(i + 1));
		}
		CHECK(v.guest->done);
		host_expect_close(v.far, v.at, BOTH);
		host_close(v.far, v.at, BOTH);
		host_expect_close(v.far, v.at, BOTH);
		visit_check_over(&v);
	}
}

/* A process that is stopped withdraws its own offer, and returns the host's. */
CASE(a_message_is_given_back)
{
	EVERYWHERE(v, visiting, visit_offers)
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
				      visit_connected(self, p) };

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
		visit_gives(&v, 3);
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

static void returns(struct nfc_process *self, struct puppet *p)
{
	struct nfc_channel *ch = visit_connected(self, p);

	p->memory = nfc_alloc(self, NFC_EMEM, VISIT_BYTES);
	note(p, channel_read_ind(ch, p->memory, VISIT_BYTES));
	note(p, channel_write_ind(ch, p->memory, VISIT_BYTES));
	note(p, channel_read_ind(ch, p->memory, VISIT_BYTES));
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
		id = host_begin(v->far, v->at, VISIT_BYTES, 0);
	end = host_drive(v->far, v->at, d, id, buf, VISIT_BYTES);
	CHECK_EQ(end.state, NFC_STATE_DONE);
	host_note(v->far, v->at, NFC_TYPE_FIN, d, id);
	rig_step(v->far->main);
}

CASE(transfers_go_both_ways)
{
	EVERYWHERE(v, visiting, returns)
	{
		uint8_t *from = host_buffer(v.far, VISIT_BYTES, 3);
		uint8_t *to = host_buffer(v.far, VISIT_BYTES, 0);

		drives(&v, NFC_H2D, from);
		CHECK_EQ(v.guest->rc[1], 0);
		drives(&v, NFC_D2H, to);
		CHECK_EQ(v.guest->rc[2], 0);
		CHECK(!memcmp(from, to, VISIT_BYTES));
		CHECK_EQ(v.far->main->bad_dma, 0);
	}
}

/* ---- who may, and how often ---- */

/* A host may guess the target, and have done with it before it accepts. */
CASE(a_guessed_target)
{
	EVERYWHERE(v, visit_of, visit_waits)
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
		rc = channel_connect(self, visit_listener, &ch);
		p->size += !rc;
		later(self);
	}
	note(p, rc);
	note(p, channel_connect(self, visit_listener + 1, &ch));
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
		CHECK_EQ(p->size, NFC_LISTENER_WAITING / 2);
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
		visit_listener = l.c;
		p = host_launch(r, VISIT_HERE, visit_leaves, 1);
		rig_step(r);
		CHECK_EQ(p->rc[0], row[i].rc);
		CHECK_EQ(host_control(r, NFC_CONTROL_CONNECT, l.c, 0, 0, NULL)
				 .status,
			 row[i].host);
		rig_free(r);
	}
}
