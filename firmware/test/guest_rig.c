// SPDX-License-Identifier: MIT
#include "guest_rig.h"

uint64_t visit_listener;

struct visit visit_of(uint32_t first, bool own, visit_role guest)
{
	struct visit v = { .pair = pair_listening(pair_hosts) };

	v.near = own ? v.pair.far : v.pair.near;
	v.far = v.pair.far;
	visit_listener = v.pair.id;
	v.guest = host_launch(v.near, first, guest, 1);
	rig_step(v.pair.near);
	return v;
}

void visit_accept(struct visit *v)
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

struct visit visiting(uint32_t first, bool own, visit_role guest)
{
	struct visit v = visit_of(first, own, guest);

	visit_accept(&v);
	return v;
}

void visit_free(struct visit *v)
{
	pair_free(&v->pair);
}

void visit_check_over(struct visit *v)
{
	struct nfc_device *dev = v->pair.near->dev;

	rig_step(v->pair.near);
	for (int i = 0; i < NFC_RELAYS; i++) {
		CHECK_EQ(atomic_load(&dev->relay[i].ends), 0);
		CHECK_EQ(atomic_load(&dev->relay[i].calls), 0);
	}
	CHECK_EQ(host_open(v->far, v->at), NFC_ENOTARGET);
}

struct nfc_channel *visit_connected(struct nfc_process *self, struct puppet *p)
{
	struct nfc_channel *ch = NULL;

	note(p, channel_connect(self, visit_listener, &ch));
	if (!ch)
		stay(self);
	return ch;
}

void visit_takes(struct visit *v, uint8_t want)
{
	uint64_t id = v->far->channel[v->at].next[NFC_D2H]++;
	struct nfc_slot slot = host_expect(v->far, v->at, NFC_TYPE_DIRECT, id);

	CHECK_EQ(nfc_header_length(slot.header), 1);
	CHECK_EQ(((uint8_t *)slot.payload)[0], want);
	host_reply(v->far, v->at, NFC_TYPE_ACK, NFC_D2H, id, NFC_STATE_CONSUMED,
		   0, 0);
}

void visit_gives(struct visit *v, uint8_t byte)
{
	uint64_t id = host_direct(v->far, v->at, &byte, 1);

	host_expect_ack(v->far, v->at, NFC_TYPE_ACK, NFC_H2D, id,
			NFC_STATE_CONSUMED, 0);
}

/* ---- roles of the process ---- */

void visit_offers(struct nfc_process *self, struct puppet *p)
{
	struct nfc_channel *ch = visit_connected(self, p);
	uint8_t byte = 7;

	note(p, channel_write(ch, &byte, 1));
}

void visit_leaves(struct nfc_process *self, struct puppet *p)
{
	visit_connected(self, p);
	later(self);
}

void visit_waits(struct nfc_process *self, struct puppet *p)
{
	struct nfc_channel *ch = visit_connected(self, p);

	note(p, channel_alt(&ch, 1, UINT64_MAX));
	note(p, channel_read(ch, p->buf, sizeof(p->buf)));
	note(p, channel_write(ch, p->buf, 1));
}
