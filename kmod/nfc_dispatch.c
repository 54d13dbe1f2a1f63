// SPDX-License-Identifier: GPL-2.0-only
/* Messages from the device: judged by the pure part, handed to their half. */
#include "nfc_kmod.h"
#include "trace.h"

/* The device broke the protocol. Must hold box. */
static void fault(struct nfc_box *box, const struct nfc_slot *slot,
		  const char *why)
{
	u64 h = le64_to_cpu(slot->header);

	box->dead = true;
	trace_nfcomms_fault(box->index, slot, why);
	dev_err_ratelimited(&box->life->dev->dev,
			    "channel %llu, type %llu, sequence %llu: %s\n",
			    nfc_header_channel(h), nfc_header_type(h),
			    nfc_header_sequence(h), why);
	nfc_life_fail(box->life, NFC_EFAULT, why);
}

/* Act on what a message for an open channel means. Must hold box. */
static void act(struct nfc_channel *ch, const struct nfc_slot *slot,
		const struct nfc_judgement *j)
{
	switch (j->event) {
	case NFC_EVENT_NONE:
		break;
	case NFC_EVENT_STALE:
		nfc_count(ch->life->dev, NFC_COUNT_DROPPED, 1);
		break;
	case NFC_EVENT_FAULT:
		fault(ch->box, slot, j->why);
		break;
	case NFC_EVENT_CLOSED:
		nfc_channel_shut(ch, j->halves, NFC_SHUT_PEER);
		break;
	case NFC_EVENT_OVER:
		nfc_channel_over(ch);
		break;
	default:
		nfc_half_event(&ch->half[j->direction], j);
	}
}

static void route(struct nfc_channel *ch, const struct nfc_slot *slot)
{
	struct nfc_judgement j = {};

	nfc_judge(&ch->core, &ch->life->layout, slot, &j);
	act(ch, slot, &j);
}

/*
 * Hand one message to the half it is about. slot is the only copy anybody
 * looks at. Must hold box.
 */
void nfc_dispatch(struct nfc_box *box, const struct nfc_slot *slot)
{
	u32 id = (u32)nfc_header_channel(le64_to_cpu(slot->header));
	struct nfc_life *life = box->life;
	struct nfc_channel *ch;
	struct nfc_judgement j;

	nfc_judge_header(&life->layout, box->index, slot, &j);
	ch = j.event ? NULL : xa_load(&life->channels, id);
	if (!ch && !j.event)
		nfc_judge_stranger(slot, &j);
	if (j.event == NFC_EVENT_STALE) {
		nfc_count(life->dev, NFC_COUNT_DROPPED, 1);
	} else if (j.event) {
		fault(box, slot, j.why);
	} else if (!ch->opening) {
		route(ch, slot);
	} else if (ch->early_count < NFC_EARLY_MAX) {
		/* The reply that opens it travels through another mailbox. */
		ch->early[ch->early_count++] = *slot;
	} else {
		fault(box, slot, "too much before the channel is open");
	}
}

/* Give a channel its ids and let in what came early. Must hold box. */
void nfc_channel_opened(struct nfc_channel *ch, u64 h2d, u64 d2h, u64 generation)
{
	int i;

	nfc_core_open(&ch->core, h2d, d2h, generation);
	ch->opening = false;
	for (i = 0; i < ch->early_count && !ch->box->dead; i++)
		route(ch, &ch->early[i]);
	ch->early_count = 0;
}
