// SPDX-License-Identifier: MIT
#include <stdlib.h>
#include <string.h>

#include "../port/crc.h"
#include "link_rig.h"

/* Short times, so that a test has many of them. */
const struct nfc_link_config link_quick = {
	.beat_ns = 20000,
	.retry_ns = 20000,
	.silence_ns = 1000000,
};

static struct link_side *peer(struct link_side *s)
{
	return &s->rig->side[s == &s->rig->side[0]];
}

static struct nfc_word *rig_reserve(void *self, uint32_t link, uint32_t *n)
{
	struct link_side *s = self;

	(void)link;
	return nfc_wire_reserve(&s->wire, n, s->rig->now);
}

static void rig_commit(void *self, uint32_t link, uint32_t n)
{
	struct link_side *s = self;

	(void)link;
	nfc_wire_commit(&s->wire, n, s->rig->now);
}

static const struct nfc_word *rig_peek(void *self, uint32_t link, uint32_t *n)
{
	struct link_side *s = self;

	(void)link;
	return nfc_wire_peek(&peer(s)->wire, n, s->rig->now);
}

static void rig_release(void *self, uint32_t link, uint32_t n)
{
	struct link_side *s = self;

	(void)link;
	nfc_wire_release(&peer(s)->wire, n);
}

static uint32_t rig_generation(void *self, uint32_t link)
{
	(void)link;
	return ((struct link_side *)self)->rig->generation;
}

static uint64_t rig_now(void *self)
{
	return ((struct link_side *)self)->rig->now;
}

static bool rig_shares(void *self, uint32_t link)
{
	(void)link;
	return ((struct link_side *)self)->rig->shares;
}

static const struct nfc_word *rig_shared(void *self, uint32_t link, uint32_t *n)
{
	const struct nfc_fifo *f = &peer(self)->end.tx.buffer;

	(void)link;
	*n = f->size;
	return f->word;
}

static bool no_news(void *self, uint32_t link, uint32_t *node,
		    uint32_t *version, uint32_t *diagnostic)
{
	(void)self;
	(void)link;
	(void)node;
	(void)version;
	(void)diagnostic;
	return false;
}

struct link_rig *link_rig_new(const struct nfc_link_config *config,
			      const struct nfc_wire_config *wire)
{
	static const struct nfc_wire_config usual = { .words = 4096 };
	struct link_rig *r = calloc(1, sizeof(*r));
	struct nfc_link_config c = *config;

	CHECK_EQ(nfc_link_check(&c), 0);
	r->now = 1000000;
	r->generation = 1;
	r->drained = UINT32_MAX;
	for (uint32_t i = 0; i < 2; i++) {
		struct link_side *s = &r->side[i];

		s->rig = r;
		s->port = (struct nfc_link_port){
			.self = s,
			.reserve = rig_reserve,
			.commit = rig_commit,
			.peek = rig_peek,
			.release = rig_release,
			.generation = rig_generation,
			.now = rig_now,
			.shares = rig_shares,
			.shared = rig_shared,
			.crc = i ? nfc_port_crc(0) : NULL,
			.copy = i ? nfc_port_copy(0) : NULL,
		};
		CHECK(nfc_wire_init(&s->wire, wire ? wire : &usual));
		s->memory = calloc(1, nfc_link_size(&c));
		nfc_link_init(&s->end, &c, &s->port, i, s->memory);
	}
	return r;
}

void link_rig_free(struct link_rig *r)
{
	for (int i = 0; i < 2; i++) {
		nfc_wire_free(&r->side[i].wire);
		free(r->side[i].memory);
	}
	free(r);
}

struct nfc_word link_rig_word(uint32_t sequence, uint32_t i)
{
	uint64_t x = (uint64_t)sequence << 32 | i;

	if (i % 29 == 7 && sequence % 3 == 0)
		return NFC_WORD_MAGIC; /* data that look like the frame */
	x *= 0x9e3779b97f4a7c15ull;
	return (struct nfc_word){ x, ~x ^ x >> 29 };
}

bool link_rig_send(struct link_side *s, uint32_t vc, uint32_t bytes)
{
	struct nfc_word payload[NFC_PACKET_WORDS];
	uint32_t words = nfc_words(bytes);
	struct nfc_sum sum = { 0 };
	struct nfc_packet p = {
		.to = 1, .size = bytes, .sequence = s->sent, .kind = (uint8_t)vc
	};

	if (!nfc_link_admits(&s->end, vc, words))
		return false;
	for (uint32_t i = 0; i < words; i++)
		payload[i] = link_rig_word(s->sent, i);
	nfc_payload_write(&s->port, &s->end.tx.buffer, 0, payload, words, &sum);
	nfc_link_queue(&s->end, vc, nfc_packet_header(&p), words, sum);
	s->sent++;
	return true;
}

/* The next packet, whose payload is in f. */
static void hold_to_ledger(struct link_side *s, uint32_t vc,
			   const struct nfc_held *h, const struct nfc_fifo *f)
{
	struct nfc_packet p = nfc_packet_read(h->header);
	struct nfc_word got[NFC_PACKET_WORDS];

	CHECK_EQ(p.sequence, s->came);
	CHECK_EQ(p.kind, vc);
	CHECK_EQ(nfc_words(p.size), h->words);
	nfc_fifo_read(f, h->at, got, h->words);
	for (uint32_t i = 0; i < h->words; i++) {
		struct nfc_word want = link_rig_word(p.sequence, i);

		if (!CHECK(!memcmp(&got[i], &want, sizeof(want))))
			break;
	}
	s->came++;
}

/* Most packets are taken in place, if all before them were. */
static bool take_in_place(void *self, uint32_t link, const struct nfc_held *h,
			  const struct nfc_fifo *f)
{
	struct link_rig *r = self;
	struct link_side *s = &r->side[link];
	uint32_t sequence = nfc_packet_read(h->header).sequence;

	if (sequence != s->came || sequence % 8 == 5)
		return false;
	hold_to_ledger(s, h->vc, h, f);
	s->taken++;
	return true;
}

void link_rig_takes(struct link_rig *r)
{
	r->owner = (struct nfc_link_owner){ .self = r,
					    .next = no_news,
					    .take = take_in_place };
	for (uint32_t i = 0; i < 2; i++)
		r->side[i].end.owner = &r->owner;
}

/* The next packet by its number, on whatever channel it is. */
static bool drain_next(struct link_side *s)
{
	for (uint32_t vc = 0; vc < NFC_VCS; vc++) {
		const struct nfc_held *h = nfc_link_head(&s->end, vc);

		if (!h || nfc_packet_read(h->header).sequence != s->came)
			continue;
		hold_to_ledger(s, vc, h, &s->end.rx.fifo[vc]);
		nfc_link_consume(&s->end, vc);
		return true;
	}
	return false;
}

void link_rig_drain(struct link_side *s)
{
	for (uint32_t i = 0; i < s->rig->drained && drain_next(s); i++)
		;
}

void link_rig_step(struct link_rig *r, uint64_t ns)
{
	for (int i = 0; i < 2; i++) {
		nfc_link_receive(&r->side[i].end);
		link_rig_drain(&r->side[i]);
		nfc_link_transmit(&r->side[i].end);
	}
	r->now += ns;
}

bool link_rig_up(struct link_rig *r)
{
	for (int i = 0; i < 10000; i++) {
		if (nfc_link_admits(&r->side[0].end, 0, NFC_PACKET_WORDS) &&
		    nfc_link_admits(&r->side[1].end, 0, NFC_PACKET_WORDS))
			return true;
		link_rig_step(r, 1000);
	}
	return false;
}

void link_rig_traffic(struct link_rig *r, uint32_t packets, uint64_t ns)
{
	uint64_t random = 1;

	for (uint64_t n = 0; n < 4000000; n++) {
		bool done = true;

		for (int i = 0; i < 2; i++) {
			struct link_side *s = &r->side[i];

			while (s->sent < packets) {
				uint32_t bytes;

				random = random * 6364136223846793005ull + 1;
				bytes = random >> 33 & 3 ? random >> 40 & 0xff :
							   random >> 40 & 0xfff;
				if (!link_rig_send(s, random >> 60 & 1, bytes))
					break;
			}
			done &= s->came == packets;
		}
		if (done)
			return;
		link_rig_step(r, ns);
	}
	CHECK_EQ(r->side[0].came, packets);
	CHECK_EQ(r->side[1].came, packets);
}

uint32_t link_rig_chance(double p)
{
	return (uint32_t)(p * 4294967296.0);
}

void link_rig_alone(struct link_rig *r, uint32_t side, uint64_t ns)
{
	for (uint64_t end = r->now + ns; r->now < end; r->now += 1000) {
		nfc_link_receive(&r->side[side].end);
		nfc_link_transmit(&r->side[side].end);
	}
}

void link_rig_put(struct nfc_wire *w, const struct nfc_word *word, uint32_t n,
		  uint64_t now)
{
	uint32_t room;
	struct nfc_word *to = nfc_wire_reserve_all(w, &room, now);

	REQUIRE(room >= n);
	memcpy(to, word, n * sizeof(*to));
	nfc_wire_commit(w, n, now);
}

void link_rig_forge(struct link_rig *r, enum nfc_word_kind kind,
		    uint64_t fields, uint32_t more)
{
	struct nfc_word w[2] = { NFC_WORD_MAGIC };

	w[1] = nfc_control_word(&r->side[0].end, kind, fields, more);
	link_rig_put(&r->side[0].wire, w, 2, r->now);
}
