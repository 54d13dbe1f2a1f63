// SPDX-License-Identifier: MIT
/* Programs that help to check a host: gate, expect, asked, hold, spin. */
#include "programs.h"

/* Take whatever is offered on ch; reports {indirect, size}. */
static int take_any(struct nfc_process *self, struct nfc_channel *ch,
		    struct nfc_buffer *b, uint64_t report[2])
{
	uint8_t message[NFC_PAYLOAD_SIZE];
	struct nfc_offer offer;
	int rc = channel_offer(ch, &offer);

	if (rc)
		return rc;
	report[0] = offer.indirect;
	report[1] = offer.size;
	if (offer.indirect)
		return nfc_take_transfer(self, ch, b, offer.size);
	rc = channel_read(ch, message, sizeof(message));
	return rc < 0 ? rc : 0;
}

/*
 * gate: for each message on port 0, takes one message or transfer from port 1
 * and answers {indirect, size} on port 0.
 */
void nfc_gate_main(struct nfc_process *self)
{
	struct nfc_channel *key = nfc_channel_of(self, 0);
	struct nfc_channel *data = nfc_channel_of(self, 1);
	struct nfc_buffer b = { 0 };
	int rc = data ? 0 : -NFC_ESTOPPED;

	nfc_prompt(self, 1);
	while (rc != -NFC_ESTOPPED) {
		uint8_t message[NFC_PAYLOAD_SIZE];
		uint64_t report[2] = { 0 };

		rc = channel_read(key, message, sizeof(message));
		if (rc < 0)
			continue;
		rc = take_any(self, data, &b, report);
		if (!rc)
			rc = channel_write(key, report, sizeof(report));
	}
}

static int give_transfer(struct nfc_process *self, struct nfc_channel *ch,
			 struct nfc_buffer *b, uint64_t size)
{
	int rc = nfc_buffer_fit(self, b, size);

	if (!rc)
		return channel_write_ind(ch, b->address, size);
	channel_close(ch, 1 << NFC_D2H); /* the host must not wait for it */
	return rc;
}

/*
 * expect: the message u64 size on port 0 makes it take a transfer of exactly
 * size bytes from port 1 (top bit set: give one). It answers the enum
 * nfc_status of that as u64 on port 0.
 */
void nfc_expect_main(struct nfc_process *self)
{
	struct nfc_channel *ask = nfc_channel_of(self, 0);
	struct nfc_channel *data = nfc_channel_of(self, 1);
	uint64_t give = 1ull << 63;
	struct nfc_buffer b = { 0 };
	int rc = data ? 0 : -NFC_ESTOPPED;

	nfc_prompt(self, 1);
	while (rc != -NFC_ESTOPPED) {
		uint64_t message[7] = { 0 }; /* room for any message */
		uint64_t size, status;

		rc = channel_read(ask, message, sizeof(message));
		if (rc < 0)
			continue;
		size = message[0];
		rc = size & give ? give_transfer(self, data, &b, size & ~give) :
				   nfc_take_transfer(self, data, &b, size);
		status = (uint64_t)-rc;
		if (rc != -NFC_ESTOPPED)
			rc = channel_write(ask, &status, sizeof(status));
	}
}

struct asked_order {
	int64_t what, n;
};

/* Do what the order says with ch, and with the message that it had last. */
static int64_t obey(struct nfc_channel *ch, const struct asked_order *o,
		    uint8_t message[NFC_PAYLOAD_SIZE + 1])
{
	size_t n = o->n < 0 || o->n > NFC_PAYLOAD_SIZE ? NFC_PAYLOAD_SIZE + 1 :
							 (size_t)o->n;
	struct nfc_offer offer;

	switch (o->what) {
	case 'q':
		return channel_question(ch, message, NFC_PAYLOAD_SIZE, 0, 0,
					&offer);
	case 'p':
		return channel_read(ch, message, NFC_PAYLOAD_SIZE);
	case 'r':
		return channel_reply(ch, message, n);
	case 'w':
		return channel_write(ch, message, n);
	case 'c':
		channel_close(ch, 1 << NFC_H2D);
		return 0;
	default:
		return -NFC_EINVAL;
	}
}

/*
 * asked: does what the message {what, n} on port 0 says, and answers the result
 * there, as i64. 'q' takes a question from port 1, and 'p' reads it plainly. 'r'
 * replies by its first n bytes, and 'w' writes those. 'c' closes that half, and
 * 'e' ends the process.
 */
void nfc_asked_main(struct nfc_process *self)
{
	struct nfc_channel *orders = nfc_channel_of(self, 0);
	struct nfc_channel *data = nfc_channel_of(self, 1);
	uint8_t message[NFC_PAYLOAD_SIZE + 1] = { 0 };
	int rc = data ? 0 : -NFC_ESTOPPED;

	nfc_prompt(self, 1);
	while (rc != -NFC_ESTOPPED) {
		union {
			struct asked_order order;
			uint8_t room[NFC_PAYLOAD_SIZE];
		} in = { 0 };
		int64_t result;

		rc = channel_read(orders, &in, sizeof(in));
		if (rc < 0)
			continue;
		if (in.order.what == 'e')
			return;
		result = obey(data, &in.order, message);
		rc = (int)result;
		if (rc != -NFC_ESTOPPED)
			rc = channel_write(orders, &result, sizeof(result));
	}
}

/* hold: takes nothing, for ever. */
void nfc_hold_main(struct nfc_process *self)
{
	while (!nfc_stopped(self))
		nfc_sleep(self, 3600ull * 1000000000);
}

/* spin: keeps its island to itself for argument milliseconds, then ends. */
void nfc_spin_main(struct nfc_process *self)
{
	uint64_t until = nfc_now(self) + nfc_argument(self) * 1000000;

	while (nfc_now(self) < until)
		;
}
