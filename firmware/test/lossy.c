// SPDX-License-Identifier: MIT
#include "lossy.h"

#include <string.h>

struct lossy lossy;

uint32_t chance(uint32_t n)
{
	lossy.random = lossy.random * 6364136223846793005ull +
		       1442695040888963407ull;
	return (uint32_t)(lossy.random >> 33) % n;
}

static uint64_t clock_now(void *self)
{
	(void)self;
	return lossy.now;
}

void lossy_reset(uint32_t lose, uint32_t twice, uint32_t late)
{
	memset(&lossy, 0, sizeof(lossy));
	lossy.now = 1000000000;
	lossy.port.now = clock_now;
	lossy.lose = lose;
	lossy.twice = twice;
	lossy.late = late;
	for (uint32_t i = 0; i < 2; i++) {
		lossy.node[i].link_port = &lossy.port;
		lossy.node[i].config.address = i;
	}
}

void lossy_calm(void)
{
	lossy.lose = lossy.twice = lossy.late = 0;
	lossy.away = false;
}

static void put(const struct nfc_packet *p, const void *data)
{
	struct flying *f = &lossy.flying[chance(FLYING)];

	while (f->due)
		f = &lossy.flying[chance(FLYING)];
	f->packet = *p;
	f->due = lossy.now + STEP_NS;
	if (chance(100) < lossy.late)
		f->due += chance(60000000);
	memcpy(f->word, data, p->size);
}

int nfc_node_send(struct nfc_node *n, const struct nfc_packet *p,
		  const void *data)
{
	struct nfc_packet q = *p;

	q.from = n->config.address;
	if (!chance(20))
		return -NFC_EBUSY;
	if (lossy.away || !chance(500))
		return -NFC_ENOTARGET;
	if (chance(100) >= lossy.lose)
		put(&q, data);
	if (chance(100) < lossy.twice)
		put(&q, data);
	return 0;
}

bool nfc_node_reaches(const struct nfc_node *n, uint32_t address)
{
	(void)n;
	(void)address;
	return !lossy.away;
}

void lossy_give(struct flying *f,
		void (*to)(const struct nfc_packet *p, const struct nfc_fifo *f))
{
	static uint8_t memory[64 << 10];
	struct nfc_word header = { 0 };
	struct nfc_fifo fifo;

	nfc_fifo_init(&fifo, 1024, memory);
	nfc_fifo_write(&fifo, 0, f->word, nfc_words(f->packet.size));
	nfc_fifo_push(&fifo, header, nfc_words(f->packet.size), 0,
		      (struct nfc_sum){ 0 });
	f->due = 0;
	to(&f->packet, &fifo);
}

void lossy_deliver(void (*to)(const struct nfc_packet *p,
			      const struct nfc_fifo *f))
{
	for (int i = 0; i < FLYING; i++)
		if (lossy.flying[i].due && lossy.flying[i].due <= lossy.now)
			lossy_give(&lossy.flying[i], to);
}
