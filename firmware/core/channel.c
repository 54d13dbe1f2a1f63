// SPDX-License-Identifier: MIT
/*
 * Channels as device processes see them. Each call runs on the calling
 * process's stack and meets the managers in the channel's halves.
 */
#include "calls.h"

static struct nfc_process *caller(struct nfc_channel *ch)
{
	return ch->island->current;
}

/*
 * Let others run until d2h has room for what this call may put. False: the process is to
 * stop, and a host that is not its own might keep it from that.
 */
static bool make_room(struct nfc_process *p, struct nfc_channel *ch)
{
	while (!nfc_rings_room(ch->rings)) {
		if (p->stop && ch->guest)
			return false;
		nfc_yield(p);
	}
	return true;
}

/*
 * The host's close of h2d is reported once; a later read waits for the next
 * subscriber. An end that the process itself closed stays closed, and so does
 * one that no other subscriber can open.
 */
static bool h2d_closed(struct nfc_half *half)
{
	uint8_t kept = NFC_CLOSED_DEVICE | NFC_CLOSED_OVER;
	bool closed = half->notice || half->closed & kept;

	half->notice = 0;
	return closed;
}

/* Block on h2d until something changed there. Returns 0 or -NFC_ESTOPPED. */
static int wait_h2d(struct nfc_process *p, struct nfc_channel *ch,
		    enum nfc_wait wait)
{
	struct nfc_half *half = nfc_h2d(ch);
	int rc;

	half->waiter = p;
	nfc_send_ready(ch);
	rc = nfc_block(p, wait);
	if (half->waiter == p)
		half->waiter = NULL;
	return rc;
}

/* Is a message or transfer offered now? If so, describe it in *offer. */
static bool peek(struct nfc_channel *ch, struct nfc_offer *offer)
{
	const struct nfc_begin *begin = (const void *)ch->parked.payload;

	switch (nfc_h2d(ch)->state) {
	case NFC_HALF_MESSAGE:
		*offer = (struct nfc_offer){
			.size = nfc_message_length(ch->parked.header),
		};
		return true;
	case NFC_HALF_OFFERED:
		*offer = (struct nfc_offer){ .indirect = 1,
					     .size = begin->size };
		return true;
	default:
		return false;
	}
}

/*
 * A process that reads has answered the question before, or acknowledges it: its
 * answer, if any, is a message.
 */
static void begin_read(struct nfc_process *p, struct nfc_channel *ch)
{
	if (p->stop)
		return; /* it ends, and the question with it */
	ch->question = NFC_QUESTION_NONE;
	if (nfc_h2d(ch)->state != NFC_HALF_TAKEN)
		return;
	if (make_room(p, ch) && nfc_h2d(ch)->state == NFC_HALF_TAKEN)
		nfc_leave_question(ch, NFC_OK);
}

/*
 * Take a message into buf. A transfer in its place is described in *offer, or
 * refused if offer is NULL.
 */
static int read_message(struct nfc_channel *ch, void *buf, size_t n,
			struct nfc_offer *offer)
{
	enum nfc_wait wait = offer ? NFC_WAIT_READ_ANY : NFC_WAIT_READ;
	struct nfc_process *p = caller(ch);
	struct nfc_half *half = nfc_h2d(ch);
	int rc = NFC_AGAIN;

	begin_read(p, ch);
	p->buf = buf;
	p->length = n;
	while (rc == NFC_AGAIN) {
		make_room(p, ch);
		if (p->stop)
			return -NFC_ESTOPPED;
		if (half->state == NFC_HALF_MESSAGE)
			return nfc_accept(ch, p);
		if (half->state == NFC_HALF_OFFERED) {
			if (offer && peek(ch, offer))
				return 0;
			nfc_refuse(ch, NFC_EKIND);
			return -NFC_EKIND;
		}
		if (h2d_closed(half))
			return -NFC_ECLOSED;
		rc = wait_h2d(p, ch, wait);
	}
	return rc;
}

int channel_read(struct nfc_channel *ch, void *buf, size_t n)
{
	return read_message(ch, buf, n, NULL);
}

int channel_read_any(struct nfc_channel *ch, void *buf, size_t n,
		     struct nfc_offer *offer)
{
	int rc;

	offer->indirect = 0;
	rc = read_message(ch, buf, n, offer);
	if (rc >= 0 && !offer->indirect)
		offer->size = (uint64_t)rc;
	return rc;
}

/* The destination is not memory: an offer of the host fails with it, too. */
static int refuse_range(struct nfc_process *p, struct nfc_channel *ch)
{
	if (make_room(p, ch) && nfc_h2d(ch)->state == NFC_HALF_OFFERED)
		nfc_refuse(ch, NFC_ERANGE);
	return -NFC_ERANGE;
}

int channel_read_ind(struct nfc_channel *ch, uint64_t address, uint64_t size)
{
	struct nfc_process *p = caller(ch);
	struct nfc_half *half = nfc_h2d(ch);
	int rc = NFC_AGAIN;

	begin_read(p, ch);
	p->buf = nfc_memory_at(p->host, address, size);
	p->length = size;
	if (!p->buf)
		return refuse_range(p, ch);
	while (rc == NFC_AGAIN) {
		make_room(p, ch);
		if (p->stop)
			return -NFC_ESTOPPED;
		if (half->state == NFC_HALF_MESSAGE) {
			nfc_refuse(ch, NFC_EKIND);
			return -NFC_EKIND;
		}
		if (half->state == NFC_HALF_OFFERED) {
			rc = nfc_accept(ch, p);
			return rc == NFC_AGAIN ? nfc_block(p, NFC_WAIT_MOVING) :
						 rc;
		}
		if (h2d_closed(half))
			return -NFC_ECLOSED;
		rc = wait_h2d(p, ch, NFC_WAIT_READ_IND);
	}
	return rc;
}

/* Take what is offered, or wait for it. */
static int take_next(struct nfc_process *p, struct nfc_channel *ch)
{
	struct nfc_half *half = nfc_h2d(ch);
	int rc;

	make_room(p, ch);
	if (p->stop)
		return -NFC_ESTOPPED;
	if (nfc_is_offered(half)) {
		rc = nfc_accept(ch, p);
		return rc == NFC_AGAIN ? nfc_block(p, NFC_WAIT_MOVING) : rc;
	}
	if (h2d_closed(half))
		return -NFC_ECLOSED;
	rc = wait_h2d(p, ch, NFC_WAIT_TAKE);
	/* there may be another offer by now */
	return rc == -NFC_ETOOLARGE ? NFC_AGAIN : rc;
}

int channel_take(struct nfc_channel *ch, void *buf, size_t n, uint64_t address,
		 uint64_t room, struct nfc_offer *offer)
{
	struct nfc_process *p = caller(ch);
	int rc = NFC_AGAIN;

	begin_read(p, ch);
	p->room = nfc_memory_at(p->host, address, room);
	p->room_size = room;
	if (room && !p->room)
		return -NFC_ERANGE;
	p->taken = offer;
	while (rc == NFC_AGAIN) {
		*offer = (struct nfc_offer){ 0 };
		p->buf = buf;
		p->length = n;
		rc = take_next(p, ch);
	}
	p->taken = NULL;
	if (rc == -NFC_ETOOLARGE)
		peek(ch, offer);
	if (rc >= 0 && !offer->indirect)
		offer->size = (uint64_t)rc;
	return rc;
}

int channel_question(struct nfc_channel *ch, void *buf, size_t n,
		     uint64_t address, uint64_t room, struct nfc_offer *offer)
{
	struct nfc_process *p = caller(ch);
	int rc;

	p->answers = 1;
	rc = channel_take(ch, buf, n, address, room, offer);
	p->answers = 0;
	return rc;
}

int channel_offer(struct nfc_channel *ch, struct nfc_offer *offer)
{
	struct nfc_process *p = caller(ch);
	int rc = NFC_AGAIN;

	while (rc == NFC_AGAIN) {
		make_room(p, ch);
		if (p->stop)
			return -NFC_ESTOPPED;
		if (peek(ch, offer))
			return 0;
		if (h2d_closed(nfc_h2d(ch)))
			return -NFC_ECLOSED;
		rc = wait_h2d(p, ch, NFC_WAIT_OFFER);
	}
	return rc;
}

/*
 * Nothing is offered on a channel that a process polled. It may never wait there,
 * and would take a message all the same: an OFFER is answered, if there is room.
 */
static void answer_poll(struct nfc_channel *ch)
{
	if (nfc_h2d(ch)->ready_due && nfc_rings_room(ch->rings))
		nfc_send_ready(ch);
}

static int first_ready(struct nfc_channel *const *ch, size_t n)
{
	struct nfc_offer offer;

	for (size_t i = 0; i < n; i++) {
		if (nfc_h2d(ch[i])->notice || peek(ch[i], &offer))
			return (int)i;
		answer_poll(ch[i]);
	}
	return -NFC_ETIMEOUT;
}

static int wait_alt(struct nfc_process *p, struct nfc_channel *const *ch,
		    size_t n, uint64_t until)
{
	int rc;

	for (size_t i = 0; i < n; i++) {
		if (!make_room(p, ch[i]))
			return NFC_AGAIN;
		nfc_send_ready(ch[i]);
	}
	if (first_ready(ch, n) >= 0) /* it arrived while there was no room */
		return NFC_AGAIN;
	for (size_t i = 0; i < n; i++)
		nfc_h2d(ch[i])->waiter = p;
	p->wake_at = until;
	if (until)
		nfc_timer(p->island, until);
	rc = nfc_block(p, NFC_WAIT_ALT);
	for (size_t i = 0; i < n; i++)
		if (nfc_h2d(ch[i])->waiter == p)
			nfc_h2d(ch[i])->waiter = NULL;
	return rc;
}

int channel_alt(struct nfc_channel *const *ch, size_t n, uint64_t timeout_ns)
{
	struct nfc_process *p;
	uint64_t until = 0;
	int rc = NFC_AGAIN, i;

	if (!n)
		return -NFC_EINVAL;
	p = caller(ch[0]);
	if (timeout_ns && timeout_ns < UINT64_MAX / 2)
		until = nfc_now(p) + timeout_ns;
	for (;;) {
		if (p->stop)
			return -NFC_ESTOPPED;
		i = first_ready(ch, n);
		if (i >= 0)
			return i;
		if (!timeout_ns || rc == -NFC_ETIMEOUT)
			return -NFC_ETIMEOUT;
		rc = wait_alt(p, ch, n, until);
	}
}

void nfc_await_open(struct nfc_process *p, struct nfc_channel *ch)
{
	struct nfc_half *half = nfc_d2h(ch);

	half->waiter = p;
	nfc_block(p, NFC_WAIT_OPEN);
	if (half->waiter == p)
		half->waiter = NULL;
}

/*
 * Ready to offer on d2h: there is a subscriber, room, and no order to stop.
 * Returns 0 or a negated status.
 */
static int enter_d2h(struct nfc_process *p, struct nfc_channel *ch)
{
	struct nfc_half *half = nfc_d2h(ch);

	for (;;) {
		make_room(p, ch);
		if (p->stop)
			return -NFC_ESTOPPED;
		if (half->closed) {
			/* reported once after the subscription ended */
			if (!ch->open && !ch->guest &&
			    !(half->closed & NFC_CLOSED_OVER))
				half->closed = 0;
			return -NFC_ECLOSED;
		}
		if (ch->open)
			return 0;
		nfc_await_open(p, ch);
	}
}

/* Offer one slot on d2h and wait for the host. */
static int offer_d2h(struct nfc_process *p, struct nfc_channel *ch,
		     enum nfc_type type, uint64_t length,
		     const uint64_t payload[7])
{
	struct nfc_half *half = nfc_d2h(ch);
	bool message = type == NFC_TYPE_DIRECT;
	int rc;

	half->state = message ? NFC_HALF_MESSAGE : NFC_HALF_OFFERED;
	half->waiter = p;
	ch->posted = 0; /* the host finds that it does not fit */
	ch->begin_ns = ch->island->now;
	nfc_put(ch, type, length, half->next - 1, payload);
	rc = nfc_block(p, message ? NFC_WAIT_WRITE : NFC_WAIT_WRITE_IND);
	if (half->waiter == p)
		half->waiter = NULL;
	return rc == -NFC_EWITHDRAWN ? -NFC_ESTOPPED : rc;
}

int channel_write(struct nfc_channel *ch, const void *buf, size_t n)
{
	struct nfc_process *p = caller(ch);
	uint64_t payload[7] = { 0 };
	int rc;

	if (n > NFC_PAYLOAD_SIZE)
		return -NFC_ETOOLARGE;
	rc = enter_d2h(p, ch);
	if (rc)
		return rc;
	__builtin_memcpy(payload, buf, n);
	nfc_d2h(ch)->next++;
	return offer_d2h(p, ch, NFC_TYPE_DIRECT, n, payload);
}

int channel_reply(struct nfc_channel *ch, const void *buf, size_t n)
{
	struct nfc_process *p = caller(ch);
	struct nfc_half *half = nfc_h2d(ch);
	uint8_t question = ch->question;
	uint64_t payload[7] = { 0 };

	if (n > NFC_PAYLOAD_SIZE)
		return -NFC_ETOOLARGE;
	if (!question)
		return -NFC_EINVAL;
	ch->question = NFC_QUESTION_NONE;
	if (question == NFC_QUESTION_MESSAGE)
		return channel_write(ch, buf, n);
	if (!make_room(p, ch))
		return -NFC_ESTOPPED;
	if (half->state != NFC_HALF_TAKEN)
		return half->closed ? -NFC_ECLOSED : -NFC_EWITHDRAWN;
	__builtin_memcpy(payload, buf, n);
	half->state = NFC_HALF_IDLE;
	nfc_put(ch, NFC_TYPE_ANSWER, n, nfc_present(half), payload);
	return 0;
}

/* The host has posted pages for a transfer of this size: it moves at once. */
static int write_posted(struct nfc_process *p, struct nfc_channel *ch)
{
	int rc;

	nfc_d2h(ch)->next++;
	ch->posted = 0;
	ch->begin_ns = ch->island->now;
	rc = nfc_eager_move(p, ch, NFC_D2H, &ch->post);
	return rc == NFC_AGAIN ? nfc_block(p, NFC_WAIT_MOVING) : rc;
}

int channel_write_ind(struct nfc_channel *ch, uint64_t address, uint64_t size)
{
	struct nfc_process *p = caller(ch);
	uint64_t payload[7] = { 0 };
	int rc;

	p->buf = nfc_memory_at(p->host, address, size);
	if (!p->buf)
		return -NFC_ERANGE;
	rc = enter_d2h(p, ch);
	if (rc)
		return rc;
	p->length = size;
	if (ch->posted && ch->post.size == size)
		return write_posted(p, ch);
	payload[0] = nfc_d2h(ch)->next++;
	payload[1] = size;
	if (!ch->rings->joint)
		return offer_d2h(p, ch, NFC_TYPE_IND_BEGIN, NFC_PAYLOAD_SIZE,
				 payload);
	if (ch->rings->joint->far.used)
		nfc_joint_show(ch->rings->joint, p->buf, size, payload[0]);
	else
		payload[3] = (uintptr_t)p->buf;
	return offer_d2h(p, ch, NFC_TYPE_EAGER, NFC_PAYLOAD_SIZE, payload);
}

void channel_close(struct nfc_channel *ch, uint32_t halves)
{
	halves &= 3;
	if (!make_room(caller(ch), ch))
		return; /* it ends, which closes both */
	for (uint32_t d = 0; d < 2; d++) {
		if (ch->half[d].closed & NFC_CLOSED_DEVICE)
			halves &= ~(1u << d);
		if (halves >> d & 1)
			ch->half[d].closed |= NFC_CLOSED_DEVICE;
	}
	if (nfc_is_offered(nfc_h2d(ch)) && halves & 1 << NFC_H2D)
		nfc_refuse(ch, NFC_ECLOSED);
	if (nfc_h2d(ch)->state == NFC_HALF_TAKEN && halves & 1 << NFC_H2D)
		nfc_leave_question(ch, NFC_ECLOSED);
	if (halves & 1 << NFC_H2D)
		nfc_send_ready(ch); /* an offer is refused as soon as it arrives */
	if (ch->open && halves)
		nfc_send_close(ch, halves);
	else if (ch->guest)
		nfc_guest_close(ch, halves);
}

/* The process of a channel has ended: both halves close for good. */
void nfc_channel_end(struct nfc_channel *ch)
{
	channel_close(ch, 1 << NFC_H2D | 1 << NFC_D2H);
	ch->process = NULL;
	ch->question = NFC_QUESTION_NONE;
	nfc_joint_leave(ch);
}
