// SPDX-License-Identifier: MIT
/*
 * Halves of channels: what both the managers and the calls of processes do with
 * one. The messages about it, its subscription, its end. The channel's island.
 */
#include "calls.h"

/* Answer with a completion record; extra is its outstanding field. */
void nfc_reply(struct nfc_channel *ch, enum nfc_type type,
	       enum nfc_direction direction, uint64_t id, enum nfc_state state,
	       enum nfc_status status, uint64_t extra)
{
	union {
		struct nfc_ack ack;
		uint64_t word[7];
	} u = { .ack = {
			.transaction = id,
			.outstanding = extra,
			.state = (uint16_t)state,
			.status = (uint16_t)status,
			.direction = direction,
			.begin_ns = ch->begin_ns,
			.now_ns = ch->island->now,
		} };

	nfc_put(ch, type, NFC_PAYLOAD_SIZE, id, u.word);
}

void nfc_note(struct nfc_channel *ch, enum nfc_type type,
	      enum nfc_direction direction, uint64_t id)
{
	union {
		struct nfc_note note;
		uint64_t word[7];
	} u = { .note = { .transaction = id, .direction = direction } };

	nfc_put(ch, type, NFC_PAYLOAD_SIZE, id, u.word);
}

/* Answer an OFFER that waits for a reader. The caller made sure of room. */
void nfc_send_ready(struct nfc_channel *ch)
{
	struct nfc_half *half = nfc_h2d(ch);

	if (!half->ready_due)
		return;
	half->ready_due = 0;
	nfc_note(ch, NFC_TYPE_READY, NFC_H2D, half->next);
}

void nfc_send_close(struct nfc_channel *ch, uint32_t halves)
{
	union {
		struct nfc_close close;
		uint64_t word[7];
	} u = { .close = { .halves = halves, .generation = ch->generation } };

	nfc_put(ch, NFC_TYPE_CLOSE, NFC_PAYLOAD_SIZE, ch->generation, u.word);
}

/* Free the half; a process that waits on it gets result. */
void nfc_half_release(struct nfc_channel *ch, enum nfc_direction direction,
		      int result)
{
	struct nfc_half *half = &ch->half[direction];

	if (half->state == NFC_HALF_OFFERED && ch->rings->joint)
		nfc_joint_hide(ch->rings->joint);
	if (half->transfer && half->transfer->peer)
		nfc_relay_settle(half->transfer, result);
	half->state = NFC_HALF_IDLE;
	half->transfer = NULL;
	if (half->waiter)
		nfc_wake(half->waiter, result);
	half->waiter = NULL;
}

/* Open the channel that a control request names. Its island's thread. */
int nfc_channel_open(struct nfc_host *host, struct nfc_control *c)
{
	struct nfc_relay_end *end = host->channels[c->a].relay;
	struct nfc_channel *ch = nfc_channel_at(host, c->a);

	if (!ch->process && !end)
		return -NFC_ENOTARGET;
	if (ch->open)
		return -NFC_EBUSY;
	ch->open = 1;
	ch->moved = 0;
	ch->ending = 0;
	ch->posted = 0;
	if (ch->question) /* nobody waits for that answer any more */
		ch->question = NFC_QUESTION_CALL;
	ch->generation = atomic_fetch_add(&host->next_generation, 1);
	for (int d = 0; d < 2; d++) {
		struct nfc_half *half = &ch->half[d];

		half->closed &= ch->guest ? NFC_CLOSED_DEVICE : 0;
		half->notice = 0;
		half->ready_due = 0;
		if (half->waiter && half->waiter->wait == NFC_WAIT_OPEN) {
			nfc_wake(half->waiter, NFC_AGAIN);
			half->waiter = NULL;
		}
	}
	c->a = nfc_h2d(ch)->next;
	c->b = nfc_d2h(ch)->next;
	c->c = ch->generation;
	if (end)
		nfc_relay_forward(end);
	return 0;
}

void nfc_joint_leave(struct nfc_channel *ch)
{
	struct nfc_joint *joint = ch->rings->joint;

	if (!joint || ch->open)
		return;
	if (ch != &joint->caller)
		ch->rings = joint->mailbox; /* the port may be subscribed again at once */
	else if (ch->process || ch->recalled)
		return;
	atomic_fetch_sub(&joint->ends, 1); /* it may be another's from here on */
}

/*
 * The other end closed both halves: when nothing moves any more the subscription
 * is over and the target may be opened again. The caller made sure of room.
 */
void nfc_channel_over(struct nfc_channel *ch)
{
	for (int d = 0; d < 2; d++)
		if (ch->half[d].state == NFC_HALF_MOVING)
			return;
	ch->ending = 0;
	nfc_send_close(ch, 1 << NFC_H2D | 1 << NFC_D2H);
	ch->open = 0;
	if (ch->rings->joint && ch == &ch->rings->joint->caller)
		for (int d = 0; d < 2; d++)
			ch->half[d].closed |= NFC_CLOSED_OVER;
	if (ch->rings->joint)
		nfc_joint_end(ch->rings->joint);
	nfc_joint_leave(ch);
	if (ch->relay)
		nfc_relay_drop(ch->relay);
	if (ch->guest)
		nfc_guest_over(ch);
}
