// SPDX-License-Identifier: MIT
/* See pair_rig.h. */
#include "pair_rig.h"

void pair_hosts(struct nfc_config *c)
{
	c->hosts = 3;
	c->islands = 2;
	c->channels = 512;
}

struct pair pair_listening(void (*change)(struct nfc_config *c))
{
	struct pair p = { .near = rig_new(change) };
	struct nfc_control c;

	p.far = rig_attach(p.near, 1);
	c = host_control(p.far, NFC_CONTROL_LISTEN, 1, 1, 0, NULL);
	CHECK_EQ(c.status, 0);
	CHECK(c.c >= NFC_TARGET_HOSTS);
	p.process = c.a;
	p.target = c.b;
	p.id = c.c;
	CHECK_EQ(host_open(p.far, (uint32_t)p.target), 0);
	return p;
}

void pair_connect(struct pair *p)
{
	struct nfc_control c = host_control(p->near, NFC_CONTROL_CONNECT, p->id,
					    0, 0, NULL);

	CHECK_EQ(c.status, 0);
	p->at_near = (uint32_t)c.a;
	CHECK_EQ(host_open(p->near, p->at_near), 0);
}

void pair_accept(struct pair *p)
{
	uint32_t at = (uint32_t)p->target;
	uint64_t id = p->far->channel[at].next[NFC_D2H]++;
	struct nfc_slot slot = host_expect(p->far, at, NFC_TYPE_DIRECT, id);

	CHECK_EQ(nfc_header_length(slot.header), 8);
	p->at_far = (uint32_t)slot.payload[0];
	host_reply(p->far, at, NFC_TYPE_ACK, NFC_D2H, id, NFC_STATE_CONSUMED, 0,
		   0);
	CHECK_EQ(host_open(p->far, p->at_far), 0);
}

struct pair pair_new(void (*change)(struct nfc_config *c))
{
	struct pair p = pair_listening(change);

	pair_connect(&p);
	pair_accept(&p);
	return p;
}

void pair_check_free(const struct nfc_device *dev)
{
	for (int i = 0; i < NFC_RELAYS; i++) {
		CHECK_EQ(atomic_load(&dev->relay[i].ends), 0);
		CHECK_EQ(atomic_load(&dev->relay[i].calls), 0);
	}
	for (int i = 0; i < NFC_LISTENERS; i++)
		CHECK(!dev->listener[i].host);
}

void pair_free(struct pair *p)
{
	if (p->far)
		rig_detach(p->far);
	p->far = NULL;
	rig_step(p->near);
	rig_free(p->near);
}

uint64_t pair_offer(struct pair *p, uint8_t byte, uint64_t *sent)
{
	uint64_t id = p->far->channel[p->at_far].next[NFC_D2H]++;
	struct nfc_slot slot;

	*sent = host_direct(p->near, p->at_near, &byte, 1);
	slot = host_expect(p->far, p->at_far, NFC_TYPE_DIRECT, id);
	CHECK_EQ(nfc_header_length(slot.header), 1);
	CHECK_EQ(((uint8_t *)slot.payload)[0], byte);
	host_expect_nothing(p->near, p->at_near);
	return id;
}

void pair_take(struct pair *p, uint64_t id, uint64_t sent)
{
	host_reply(p->far, p->at_far, NFC_TYPE_ACK, NFC_D2H, id,
		   NFC_STATE_CONSUMED, 0, 0);
	host_expect_ack(p->near, p->at_near, NFC_TYPE_ACK, NFC_H2D, sent,
			NFC_STATE_CONSUMED, 0);
}

void pair_works(struct pair *p)
{
	uint64_t sent, id = pair_offer(p, 42, &sent);

	pair_take(p, id, sent);
}
