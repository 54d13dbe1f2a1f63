// SPDX-License-Identifier: MIT
/* See pair_side.h. */
#include "pair_side.h"

#include <string.h>

/* Memory of a host that starts so far into a page. */
static uint8_t *side_memory(struct rig *r, uint64_t size, uint64_t into,
			    uint64_t seed)
{
	uint8_t *p = rig_pages(r, size + PAGE);

	host_offer(r, p, size + PAGE);
	fill_pattern(p + into, size, seed);
	return p + into;
}

struct side side_new(struct pair *p, enum nfc_direction direction,
		     uint64_t size, uint64_t into)
{
	bool gives = direction == NFC_H2D;
	struct rig *r = gives ? p->near : p->far;

	return (struct side){
		.rig = r,
		.channel = gives ? p->at_near : p->at_far,
		.direction = direction,
		.buf = side_memory(r, size, into, gives ? size : 0),
		.size = size,
		.end = { .state = UINT16_MAX },
	};
}

struct side side_gives(struct pair *p, uint64_t size, uint64_t into)
{
	struct side s = side_new(p, NFC_H2D, size, into);

	s.allowed = 1;
	s.id = host_begin(p->near, p->at_near, size, 0);
	return s;
}

struct side side_takes(struct pair *p, uint64_t size, uint64_t into)
{
	struct side s = side_new(p, NFC_D2H, size, into);
	struct nfc_slot slot;

	s.allowed = UINT64_MAX;
	s.id = p->far->channel[p->at_far].next[NFC_D2H]++;
	slot = host_expect(p->far, p->at_far, NFC_TYPE_IND_BEGIN, s.id);
	CHECK_EQ(slot.payload[0], s.id);
	CHECK_EQ(slot.payload[1], size);
	return s;
}

void side_feed(struct side *s)
{
	uint64_t to = s->acked + s->rig->config.window;
	uint64_t lists = host_lists(s->buf, s->size);

	to = to < s->allowed ? to : s->allowed;
	to = to < lists ? to : lists;
	if (s->sent < to)
		host_send_lists(s->rig, s->channel, s->direction, s->id, s->buf,
				s->size, s->sent, to);
	s->sent = s->sent < to ? to : s->sent;
}

void side_hear(struct side *s)
{
	struct nfc_slot slot;

	while (host_take(s->rig, s->channel, &slot)) {
		struct nfc_ack ack;

		memcpy(&ack, slot.payload, sizeof(ack));
		CHECK_EQ(ack.transaction, s->id);
		CHECK_EQ(ack.direction, s->direction);
		if (nfc_header_type(slot.header) == NFC_TYPE_ACK &&
		    ack.state != NFC_STATE_CONSUMED) {
			CHECK(ack.lists >= s->acked && ack.lists <= s->sent);
			CHECK(ack.processed <= s->size);
			s->acked = ack.lists;
			if (ack.state == NFC_STATE_READY)
				s->allowed = UINT64_MAX;
			continue;
		}
		CHECK_EQ(s->end.state, UINT16_MAX); /* one end */
		s->end = ack;
		s->type = (uint32_t)nfc_header_type(slot.header);
	}
}

void side_drive(struct side *give, struct side *take)
{
	for (int i = 0; i < 200 && take->end.state == UINT16_MAX; i++) {
		side_feed(give);
		side_feed(take);
		rig_step(give->rig);
		side_hear(give);
		side_hear(take);
	}
}

void side_moved(struct side *give, struct side *take)
{
	side_drive(give, take);
	CHECK_EQ(take->type, NFC_TYPE_DONE);
	CHECK_EQ(take->end.processed, take->size);
	CHECK_EQ(give->end.state, UINT16_MAX); /* the other has not said so yet */
	CHECK(!memcmp(give->buf, take->buf, give->size));
}

void side_committed(struct side *give)
{
	struct nfc_ack ack = host_expect_ack(give->rig, give->channel,
					     NFC_TYPE_ACK, NFC_H2D, give->id,
					     NFC_STATE_CONSUMED, NFC_OK);

	CHECK_EQ(ack.processed, give->size);
	CHECK_EQ(ack.outstanding, 0);
}

void side_fin(struct side *s)
{
	host_note(s->rig, s->channel, NFC_TYPE_FIN, s->direction, s->id);
}

void side_failed(struct side *s, uint32_t type, enum nfc_status status)
{
	host_expect_ack(s->rig, s->channel, type, s->direction, s->id,
			NFC_STATE_FAILED, status);
}

void side_whole(struct pair *p, uint64_t size, uint64_t from, uint64_t to)
{
	struct side give = side_gives(p, size, from),
		    take = side_takes(p, size, to);

	side_moved(&give, &take);
	side_fin(&take);
	side_committed(&give);
	CHECK_EQ(nfc_counter_sum(p->near->dev->host[0], NFC_COUNT_PARKED), 0);
	host_expect_nothing(p->near, p->at_near);
	host_expect_nothing(p->far, p->at_far);
}

/* ---- pages ---- */

void pair_pages(struct nfc_config *c)
{
	pair_hosts(c);
	c->eager = 4;
	c->runs = 1;
}

void pair_eager(struct pair *p)
{
	host_hello(p->near, NFC_CAP_EAGER | NFC_CAP_RUNS);
	host_hello(p->far, NFC_CAP_EAGER | NFC_CAP_RUNS);
}

struct pair pair_copying(void (*change)(struct nfc_config *c), bool copies)
{
	struct pair p = pair_new(change);

	if (!copies)
		p.near->port.dma_copy = NULL;
	return p;
}

uint64_t side_send_eager(struct rig *r, uint32_t channel, uint32_t direction,
			 uint64_t id, const uint8_t *buf, uint64_t size)
{
	struct nfc_eager e = { .transaction = id, .size = size };
	uint64_t count = 0;

	for (uint64_t at = 0; at < size; count++) {
		uint64_t bus = (uintptr_t)buf + at, n = PAGE - bus % PAGE;

		n = n < size - at ? n : size - at;
		e.entry[count] = nfc_entry(bus, n);
		at += n;
	}
	host_put(r, channel, NFC_TYPE_EAGER,
		 count | (direction == NFC_D2H ? NFC_LIST_D2H : 0), id, &e);
	return id;
}

static struct side by_pages(struct pair *p, enum nfc_direction direction,
			    uint64_t size, uint64_t into)
{
	struct side s = side_new(p, direction, size, into);

	s.id = side_send_eager(s.rig, s.channel, direction,
			       s.rig->channel[s.channel].next[direction]++,
			       s.buf, size);
	return s;
}

struct side side_gives_pages(struct pair *p, uint64_t size, uint64_t into)
{
	return by_pages(p, NFC_H2D, size, into);
}

struct side side_posts(struct pair *p, uint64_t size, uint64_t into)
{
	struct side s = by_pages(p, NFC_D2H, size, into);

	rig_step(p->far);
	return s;
}
