// SPDX-License-Identifier: MIT
/*
 * Two rings whose copies at two nodes are kept equal by packets: slot n is
 * written at the same index at both, so that a repetition is recognised.
 * Sending resumes at the first missing slot. See far.h.
 */
#include "far.h"

enum {
	RESEND_NS = 20000000, /* slots that did not arrive */
	PUBLISH_NS = 1000000, /* until received slots are reported to the peer */
	POLL_NS = 1000000, /* between two checks whether a full ring was emptied */
	FULL_NS = 5000, /* until a packet is tried again that there was no room for */
	AWAY_NS = 1000000, /* … or no way */
};

bool nfc_far_send(struct nfc_far_line *l, uint8_t kind,
		  struct nfc_far_packet *p, uint32_t bytes)
{
	struct nfc_packet packet = {
		.to = l->peer,
		.size = NFC_FAR_HEAD + bytes,
		.kind = kind,
	};
	int rc;

	p->head.epoch = l->epoch;
	p->head.host = l->host;
	rc = nfc_node_send(l->node, &packet, p);
	if (rc)
		nfc_far_due(l, l->now + (rc == -NFC_EBUSY ? FULL_NS : AWAY_NS));
	return !rc;
}

/* How many slots were put to a ring and not sent, a packet's worth at most. */
static uint32_t published(const struct nfc_far_rings *m)
{
	uint32_t mask = m->slots - 1, n = 0;

	while (n < NFC_FAR_SLOTS && m->next + n - m->acked <= mask) {
		uint64_t at = m->next + n;
		uint64_t header = atomic_load_explicit(
			(_Atomic uint64_t *)&m->out[at & mask].header,
			memory_order_acquire); /* SYNC: slot */

		if (nfc_header_phase(header) != (((at >> m->shift) + 1) & 1))
			break;
		n++;
	}
	return n;
}

bool nfc_far_rings_idle(const struct nfc_far_rings *m)
{
	return m->next == m->acked && !published(m);
}

/* One packet of slots, or of counters alone; false: there is no room. */
static bool send_slots(struct nfc_far_line *l, struct nfc_far_rings *m,
		       uint32_t n)
{
	struct nfc_far_packet p;

	p.head = (struct nfc_far_head){ .mailbox = m->index,
					.count = (uint8_t)n,
					.first = m->next,
					.received = m->received,
					.consumed = nfc_far_load(m->in_head) };
	for (uint32_t i = 0; i < n; i++) {
		p.slot[i] = m->out[(m->next + i) & (m->slots - 1)];
		if (m->host && m->next + i >= m->sent)
			nfc_far_sent(m->host, &p.slot[i]);
	}
	if (!nfc_far_send(l, m->kind, &p, n * (uint32_t)sizeof(struct nfc_slot)))
		return false;
	if (m->next == m->acked)
		m->sent_ns = l->now;
	m->next += n;
	if (m->sent < m->next)
		m->sent = m->next;
	m->reported = m->received;
	m->reported_head = p.head.consumed;
	return true;
}

bool nfc_far_rings_serve(struct nfc_far_line *l, struct nfc_far_rings *m,
			 bool poll)
{
	uint64_t quarter = m->slots / 4;
	bool publish, room = true;
	uint32_t n;

	if (m->next != m->acked && l->now - m->sent_ns >= RESEND_NS) {
		m->next = m->acked;
		m->sent_ns = l->now;
		poll = true;
	}
	do {
		n = poll ? published(m) : 0;
		publish = (m->received != m->reported &&
			   l->now >= m->publish_ns) ||
			  nfc_far_load(m->in_head) - m->reported_head > quarter;
		if (!n && !publish)
			break;
		room = send_slots(l, m, n);
	} while (room && n == NFC_FAR_SLOTS);
	if (m->next != m->acked)
		nfc_far_due(l, m->sent_ns + RESEND_NS);
	if (m->received != m->reported)
		nfc_far_due(l, m->publish_ns);
	if (m->received - m->reported_head > quarter)
		nfc_far_due(l, l->now + POLL_NS);
	return room;
}

void nfc_far_place(struct nfc_slot *to, const struct nfc_slot *from)
{
	for (int i = 0; i < 7; i++)
		to->payload[i] = from->payload[i];
	atomic_store_explicit((_Atomic uint64_t *)&to->header, from->header,
			      memory_order_release); /* SYNC: slot */
}

/* Take over the peer's report about the ring that is sent. */
static void acked(struct nfc_far_rings *m, const struct nfc_far_head *h,
		  uint64_t now)
{
	if (h->received > m->acked && h->received <= m->sent) {
		m->acked = h->received;
		m->sent_ns = now;
		if (m->next < m->acked) /* it was about to be sent again */
			m->next = m->acked;
	}
	if (h->consumed > *m->out_head && h->consumed <= m->acked)
		atomic_store_explicit((_Atomic uint64_t *)m->out_head,
				      h->consumed,
				      memory_order_release); /* SYNC: room */
}

uint32_t nfc_far_rings_received(struct nfc_far_line *l, struct nfc_far_rings *m,
				const struct nfc_packet *p,
				const struct nfc_far_head *h,
				const struct nfc_fifo *fifo, uint32_t at,
				struct nfc_slot slot[NFC_FAR_SLOTS])
{
	uint32_t words = sizeof(*slot) / NFC_WORD_SIZE;
	uint64_t before = m->received;

	if (h->count > NFC_FAR_SLOTS ||
	    p->size != NFC_FAR_HEAD + h->count * sizeof(*slot))
		return 0;
	acked(m, h, l->now);
	nfc_fifo_read(fifo, at, (struct nfc_word *)slot, h->count * words);
	for (uint32_t i = 0; i < h->count; i++) {
		/* earlier slots are here; later ones will be sent again */
		if (h->first + i != m->received ||
		    m->received - nfc_far_load(m->in_head) >= m->slots)
			continue;
		if (m->host)
			nfc_far_received(m->host, &slot[i]);
		nfc_far_place(&m->in[m->received & (m->slots - 1)], &slot[i]);
		m->received++;
	}
	if (h->count && m->reported == before)
		m->publish_ns = l->now + PUBLISH_NS;
	if (h->count && m->received == before)
		m->reported = before -
			      1; /* the peer missed the report: send it again */
	return (uint32_t)(m->received - before);
}
