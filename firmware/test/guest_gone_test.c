// SPDX-License-Identifier: MIT
/*
 * Channels that processes open to hosts that listen: one side closes them, ends, detaches, or does
 * not answer.
 */
#include "guest_rig.h"

static void hears(struct nfc_process *self, struct puppet *p)
{
	struct nfc_channel *ch = visit_connected(self, p), *again;
	uint8_t byte = 1;

	note(p, channel_read(ch, p->buf, sizeof(p->buf)));
	note(p, channel_write(ch, &byte, 1));
	note(p, channel_alt(&ch, 1, 0));
	channel_close(ch, BOTH);
	note(p, channel_read(ch, p->buf, sizeof(p->buf)));
	again = visit_connected(self, p);
	p->more = again == ch ? p : NULL;
	note(p, channel_read(again, p->buf, sizeof(p->buf)));
}

CASE(a_host_that_closes)
{
	EVERYWHERE(v, visiting, hears)
	{
		struct puppet *p = v.guest;

		host_close(v.far, v.at, H2D);
		rig_step(v.far->main);
		CHECK_EQ(p->rc[1], -NFC_ECLOSED);
		visit_takes(&v, 1);
		host_expect_close(v.far, v.at, BOTH);
		host_close(v.far, v.at, D2H);
		host_expect_close(v.far, v.at, BOTH);
		CHECK_EQ(p->rc[4], -NFC_ECLOSED);
		CHECK_EQ(p->rc[5], 0);
		visit_accept(&v);
		visit_gives(&v, 1);
		CHECK_EQ(p->rc[6], 1);
		CHECK(p->done);
		host_expect_close(v.far, v.at, BOTH);
		host_close(v.far, v.at, BOTH);
		host_expect_close(v.far, v.at, BOTH);
		visit_check_over(&v);
	}
}

/* The process's place is used again, as nobody else has to do with it. */
CASE(a_host_that_closes_at_once)
{
	EVERYWHERE(v, visiting, hears)
	{
		host_close(v.far, v.at, BOTH);
		host_expect_close(v.far, v.at, BOTH);
		CHECK_EQ(v.guest->rc[1], -NFC_ECLOSED);
		CHECK_EQ(v.guest->rc[2], -NFC_ECLOSED);
		CHECK_EQ(v.guest->rc[4], -NFC_ECLOSED);
		CHECK_EQ(v.guest->rc[5], 0);
		CHECK(v.guest->more);
		visit_accept(&v);
		visit_gives(&v, 1);
		CHECK(v.guest->done);
	}
}

static void closes_first(struct nfc_process *self, struct puppet *p)
{
	struct nfc_channel *ch = visit_connected(self, p);
	uint8_t byte = 1;

	channel_close(ch, H2D);
	note(p, channel_read(ch, p->buf, sizeof(p->buf)));
	note(p, channel_write(ch, &byte, 1));
	channel_close(ch, D2H);
	note(p, channel_write(ch, &byte, 1));
	note(p, channel_write(ch, &byte, 1));
	stay(self);
}

CASE(a_process_that_closes_before_it_is_accepted)
{
	EVERYWHERE(v, visiting, closes_first)
	{
		uint64_t id;
		uint8_t byte = 2;

		host_expect_close(v.far, v.at, H2D);
		visit_takes(&v, 1);
		host_expect_close(v.far, v.at, D2H);
		CHECK_EQ(v.guest->rc[1], -NFC_ECLOSED);
		CHECK_EQ(v.guest->rc[2], 0);
		CHECK_EQ(v.guest->rc[3], -NFC_ECLOSED);
		CHECK_EQ(v.guest->rc[4], -NFC_ECLOSED);
		id = host_direct(v.far, v.at, &byte, 1);
		host_expect_ack(v.far, v.at, NFC_TYPE_ERROR, NFC_H2D, id,
				NFC_STATE_FAILED, NFC_ECLOSED);
		host_close(v.far, v.at, BOTH);
		host_expect_close(v.far, v.at, BOTH);
	}
}

/* One that ends while it is offered is accepted, and closed then. */
CASE(a_process_that_ends_before_it_is_accepted)
{
	EVERYWHERE(v, visit_of, visit_leaves)
	{
		go(v.near);
		CHECK(v.guest->done);
		visit_accept(&v);
		host_expect_close(v.far, v.at, BOTH);
		host_close(v.far, v.at, BOTH);
		host_expect_close(v.far, v.at, BOTH);
		visit_check_over(&v);
	}
}

/* Those behind the one that is offered leave their places. */
CASE(processes_that_end_leave_their_places)
{
	EVERYWHERE(v, visit_of, visit_leaves)
	{
		uint32_t first = v.guest->target;

		for (uint32_t i = 1; i < NFC_LISTENER_WAITING * 2; i++) {
			struct puppet *p = host_launch(v.near, first + i,
						       visit_leaves, 1);

			rig_step(v.near->main);
			CHECK_EQ(p->rc[0], 0);
			go(v.near);
			CHECK(p->done);
		}
		visit_accept(&v);
		host_expect_close(v.far, v.at, BOTH);
		host_expect_nothing(v.far, (uint32_t)v.pair.target);
	}
}

static void closes_at_once(struct nfc_process *self, struct puppet *p)
{
	for (uint32_t i = 0; i < NFC_LISTENER_WAITING; i++)
		channel_close(visit_connected(self, p), BOTH);
	stay(self);
}

/* So does one that closes both halves, whose connections the host does not learn of. */
CASE(a_process_that_closes_leaves_its_place)
{
	EVERYWHERE(v, visit_of, visit_waits)
	{
		struct puppet *p = host_launch(v.near, v.guest->target + 1,
					       closes_at_once, 1);

		rig_step(v.near->main);
		CHECK_EQ(p->step, NFC_LISTENER_WAITING);
		CHECK_EQ(p->rc[NFC_LISTENER_WAITING - 1], 0);
		visit_accept(&v);
		host_expect_nothing(v.far, (uint32_t)v.pair.target);
	}
}

CASE(a_listener_that_goes_refuses)
{
	EVERYWHERE(v, visit_of, visit_waits)
	{
		uint32_t at = (uint32_t)v.pair.target;
		uint64_t id = v.far->channel[at].next[NFC_D2H];
		struct puppet *second = host_launch(v.near, v.guest->target + 1,
						    visit_offers, 1);

		rig_step(v.near->main);
		host_control(v.far, NFC_CONTROL_STOP, v.pair.process, 0, 0,
			     NULL);
		host_note(v.far, at, NFC_TYPE_WITHDRAWN, NFC_D2H, id);
		rig_step(v.near->main);
		CHECK_EQ(v.guest->rc[1], 0);
		CHECK_EQ(v.guest->rc[2], -NFC_ECLOSED);
		CHECK_EQ(v.guest->rc[3], -NFC_ECLOSED);
		CHECK(v.guest->done);
		CHECK_EQ(second->rc[1], -NFC_ECLOSED);
		CHECK(second->done);
		pair_check_free(v.near->main->dev);
	}
}

/* The host that listens detaches, whatever the process waits for. */
static void reads_ind(struct nfc_process *self, struct puppet *p)
{
	struct nfc_channel *ch = visit_connected(self, p);

	p->memory = nfc_alloc(self, NFC_EMEM, VISIT_BYTES);
	note(p, channel_read_ind(ch, p->memory, VISIT_BYTES));
	note(p, channel_write_ind(ch, p->memory, VISIT_BYTES));
}

static const visit_role waiting[] = { visit_waits, visit_offers, reads_ind };

CASE(a_host_that_listens_goes)
{
	for (size_t i = 0; i < 3 * 4; i++) {
		struct visit v = visiting(i & 1 ? VISIT_HERE : VISIT_THERE,
					  false, waiting[i / 4]);

		if (i / 4 == 2 && i & 2) { /* while lists are expected */
			uint8_t *from = host_buffer(v.far, VISIT_BYTES, 3);
			uint64_t id = host_begin(v.far, v.at, VISIT_BYTES, 0);

			host_send_lists(v.far, v.at, NFC_H2D, id, from,
					VISIT_BYTES, 0, 1);
			rig_step(v.near);
		} else if (i & 2) { /* offered, parked */
			uint8_t byte = 1;

			host_direct(v.far, v.at, &byte, 1);
			rig_step(v.near);
		}
		rig_detach(v.far);
		v.pair.far = NULL;
		rig_step(v.near);
		CHECK(v.guest->done);
		CHECK_EQ(v.guest->rc[v.guest->step - 1], -NFC_ECLOSED);
		pair_check_free(v.near->dev);
		visit_free(&v);
	}
}

/* A message that the host received, or a transfer that it committed, counts. */
CASE(a_host_that_answers_and_goes)
{
	static const visit_role role[] = { visit_offers, reads_ind };

	for (size_t i = 0; i < 4; i++) {
		struct visit v = visiting(i & 1 ? VISIT_HERE : VISIT_THERE,
					  false, role[i / 2]);
		uint64_t id = v.far->channel[v.at].next[NFC_D2H];

		if (i < 2) {
			host_expect(v.far, v.at, NFC_TYPE_DIRECT, id);
			host_reply(v.far, v.at, NFC_TYPE_ACK, NFC_D2H, id,
				   NFC_STATE_CONSUMED, 0, 0);
		} else {
			uint8_t *from = host_buffer(v.far, VISIT_BYTES, 3);

			id = host_begin(v.far, v.at, VISIT_BYTES, 0);
			host_drive(v.far, v.at, NFC_H2D, id, from, VISIT_BYTES);
			host_note(v.far, v.at, NFC_TYPE_FIN, NFC_H2D, id);
		}
		rig_detach(v.far);
		v.pair.far = NULL;
		rig_step(v.near);
		CHECK_EQ(v.guest->rc[1], 0);
		CHECK(v.guest->done);
		pair_check_free(v.near->dev);
		visit_free(&v);
	}
}

/* The process's host detaches. */
static struct visit of_other(uint32_t first, visit_role guest)
{
	struct visit v = { .pair = pair_listening(pair_hosts) };

	v.far = v.pair.far;
	v.near = rig_attach(v.pair.near, 2);
	visit_listener = v.pair.id;
	v.guest = host_launch(v.near, first, guest, 1);
	rig_step(v.pair.near);
	visit_accept(&v);
	return v;
}

CASE(a_host_of_a_process_goes)
{
	for (size_t i = 0; i < 2; i++) {
		struct visit v = of_other(i ? VISIT_HERE : VISIT_THERE,
					  visit_offers);
		uint64_t id = v.far->channel[v.at].next[NFC_D2H]++, sent;
		uint8_t byte = 1;

		host_expect(v.far, v.at, NFC_TYPE_DIRECT, id);
		sent = host_direct(v.far, v.at, &byte, 1);
		rig_detach(v.near);
		host_expect_ack(v.far, v.at, NFC_TYPE_ERROR, NFC_H2D, sent,
				NFC_STATE_FAILED, NFC_ECLOSED);
		host_expect_note(v.far, v.at, NFC_TYPE_WITHDRAW, NFC_D2H, id);
		host_expect_close(v.far, v.at, BOTH);
		host_note(v.far, v.at, NFC_TYPE_WITHDRAWN, NFC_D2H, id);
		host_close(v.far, v.at, BOTH);
		host_expect_close(v.far, v.at, BOTH);
		visit_check_over(&v);
		visit_free(&v);
	}
}

/* Its bytes stop, and the host that listens is notified when it has room. */
CASE(a_host_of_a_process_goes_with_a_transfer)
{
	for (size_t i = 0; i < 2; i++) {
		struct visit v = of_other(i ? VISIT_HERE : VISIT_THERE,
					  reads_ind);
		uint8_t *from = host_buffer(v.far, VISIT_BYTES, 3);
		uint64_t id = host_begin(v.far, v.at, VISIT_BYTES, 0);
		uint32_t slots = v.far->config.slots;

		host_send_lists(v.far, v.at, NFC_H2D, id, from, VISIT_BYTES, 0,
				1);
		host_expect(v.far, v.at, NFC_TYPE_ACK, id);
		v.far->hold = true;
		for (uint32_t k = 0; k < 2 * slots; k++) /* each is refused */
			host_begin(v.far,
				   v.at == VISIT_HERE ? VISIT_HERE + 1 :
							v.at + 2,
				   1ull << 48, 0);
		rig_step(v.pair.near);
		rig_detach(v.near);
		host_send_lists(v.far, v.at, NFC_H2D, id, from, VISIT_BYTES, 1,
				2);
		v.far->hold = false;
		host_drain(v.far);
		rig_advance(v.pair.near, MS);
		host_expect_ack(v.far, v.at, NFC_TYPE_ERROR, NFC_H2D, id,
				NFC_STATE_FAILED, NFC_ECLOSED);
		host_expect_close(v.far, v.at, BOTH);
		host_note(v.far, v.at, NFC_TYPE_ABORT, NFC_H2D, id);
		host_close(v.far, v.at, BOTH);
		host_expect_close(v.far, v.at, BOTH);
		visit_check_over(&v);
		visit_free(&v);
	}
}

/* A transfer that was moved, and not committed yet, is ended by the host. */
CASE(a_host_of_a_process_goes_before_the_commit)
{
	for (size_t i = 0; i < 2; i++) {
		struct visit v = of_other(i ? VISIT_HERE : VISIT_THERE,
					  reads_ind);
		uint8_t *from = host_buffer(v.far, VISIT_BYTES, 3);
		uint64_t id = host_begin(v.far, v.at, VISIT_BYTES, 0);
		struct nfc_ack end = host_drive(v.far, v.at, NFC_H2D, id, from,
						VISIT_BYTES);

		CHECK_EQ(end.state, NFC_STATE_DONE);
		rig_detach(v.near);
		host_expect_close(v.far, v.at, BOTH);
		host_note(v.far, v.at, i ? NFC_TYPE_FIN : NFC_TYPE_ABORT,
			  NFC_H2D, id);
		if (!i)
			host_expect(v.far, v.at, NFC_TYPE_ABORTED, id);
		host_close(v.far, v.at, BOTH);
		host_expect_close(v.far, v.at, BOTH);
		visit_check_over(&v);
		visit_free(&v);
	}
}

/* A host that does not answer keeps no process of another, not even with a full ring. */
static void check_stops(struct visit *v)
{
	uint32_t status = NFC_EBUSY;

	host_control(v->near, NFC_CONTROL_STOP, v->guest->process, 0, 0, NULL);
	rig_advance(v->pair.near, ANSWER_NS - MS);
	CHECK(!v->guest->done);
	for (int i = 0; i < 4; i++)
		rig_advance(v->pair.near, MS);
	CHECK(v->guest->done);
	CHECK_EQ(v->guest->rc[1], -NFC_ESTOPPED);
	status = host_control(v->near, NFC_CONTROL_STOP, v->guest->process, 0,
			      0, NULL)
			 .status;
	CHECK_EQ(status, NFC_EINVAL);
}

CASE(a_host_that_does_not_answer)
{
	for (size_t i = 0; i < 4; i++) {
		struct visit v = of_other(i & 1 ? VISIT_HERE : VISIT_THERE,
					  i & 2 ? reads_ind : visit_offers);
		uint8_t *from = host_buffer(v.far, VISIT_BYTES, 3);
		uint32_t slots = v.far->config.slots;
		uint64_t id = 1;

		if (i & 2) {
			id = host_begin(v.far, v.at, VISIT_BYTES, 0);
			host_send_lists(v.far, v.at, NFC_H2D, id, from,
					VISIT_BYTES, 0, 1);
			host_expect(v.far, v.at, NFC_TYPE_ACK, id);
		}
		v.far->hold = i & 2;
		for (uint32_t k = 0; i & 2 && k < 2 * slots; k++)
			host_begin(v.far, v.at + 2, 1ull << 48, 0);
		rig_step(v.pair.near);
		check_stops(&v);
		v.far->hold = false;
		host_drain(v.far);
		rig_advance(v.pair.near, MS);
		if (i & 2)
			host_expect(v.far, v.at, NFC_TYPE_ERROR, id);
		else
			host_expect(v.far, v.at, NFC_TYPE_DIRECT, id);
		host_close(v.far, v.at, BOTH);
		rig_step(v.pair.near);
		visit_check_over(&v);
		visit_free(&v);
	}
}
