// SPDX-License-Identifier: GPL-2.0-only
/* Messages from the device: judged by the pure part, handed to their half. */
#include "nfcm_kmod.h"
#include "trace.h"

/* The device broke the protocol. Must hold box. */
static void fault(struct nfcm_box *box, const struct nfc_slot *slot,
		  const char *why)
{
	u64 h = le64_to_cpu(slot->header);

	box->dead = true;
	trace_nfcomms_fault(box->index, slot, why);
	dev_err_ratelimited(&box->life->dev->dev,
			    "channel %llu, type %llu, sequence %llu: %s\n",
			    nfc_header_channel(h), nfc_header_type(h),
			    nfc_header_sequence(h), why);
	nfcm_life_fail(box->life, NFC_EFAULT, why);
}

/* Act on what a message for an open channel means. Must hold box. */
static void act(struct nfcm_channel *ch, const struct nfc_slot *slot,
		const struct nfcm_judgement *j)
{
	switch (j->event) {
	case NFCM_EVENT_NONE:
		break;
	case NFCM_EVENT_STALE:
		nfcm_count(ch->life->dev, NFCM_COUNT_DROPPED, 1);
		break;
	case NFCM_EVENT_FAULT:
		fault(ch->box, slot, j->why);
		break;
	case NFCM_EVENT_CLOSED:
		nfcm_channel_shut(ch, j->halves, NFCM_SHUT_PEER);
		break;
	case NFCM_EVENT_OVER:
		nfcm_channel_over(ch);
		break;
	default:
		nfcm_half_event(&ch->half[j->direction], j);
	}
}

static void route(struct nfcm_channel *ch, const struct nfc_slot *slot)
{
	struct nfcm_judgement j = {};

	nfcm_judge(&ch->core, &ch->life->layout, slot, &j);
	act(ch, slot, &j);
}

/*
 * Hand one message to the half it is about. slot is the only copy anybody
 * looks at. Must hold box.
 */
void nfcm_dispatch(struct nfcm_box *box, const struct nfc_slot *slot)
{
	u32 id = (u32)nfc_header_channel(le64_to_cpu(slot->header));
	struct nfcm_life *life = box->life;
	struct nfcm_channel *ch;
	struct nfcm_judgement j;

	nfcm_judge_header(&life->layout, box->index, slot, &j);
	ch = j.event ? NULL : xa_load(&life->channels, id);
	if (!ch && !j.event)
		nfcm_judge_stranger(slot, &j);
	if (j.event == NFCM_EVENT_STALE) {
		nfcm_count(life->dev, NFCM_COUNT_DROPPED, 1);
	} else if (j.event) {
		fault(box, slot, j.why);
	} else if (!ch->opening) {
		route(ch, slot);
	} else if (ch->early_count < NFCM_EARLY_MAX) {
		/* The reply that opens it travels through another mailbox. */
		ch->early[ch->early_count++] = *slot;
	} else {
		fault(box, slot, "too much before the channel is open");
	}
}

/* Give a channel its ids and let in what came early. Must hold box. */
void nfcm_channel_opened(struct nfcm_channel *ch, u64 h2d, u64 d2h,
			 u64 generation)
{
	int i;

	nfcm_core_open(&ch->core, h2d, d2h, generation);
	ch->opening = false;
	for (i = 0; i < ch->early_count && !ch->box->dead; i++)
		route(ch, &ch->early[i]);
	ch->early_count = 0;
}
