// SPDX-License-Identifier: GPL-2.0-only
/* Messages from the device: classified by the pure part, handed to their half. */
#include "nfcm_kmod.h"
#include "trace.h"

/* The device broke the protocol. */
static void fault(struct nfcm_mailbox *mailbox, const struct nfc_slot *slot,
		  const char *why)
{
	u64 h = le64_to_cpu(slot->header);

	lockdep_assert_held(&mailbox->lock);
	mailbox->dead = true;
	trace_nfcomms_fault(mailbox, slot, why);
	dev_err_ratelimited(&mailbox->epoch->dev->dev,
			    "channel %llu, type %llu, sequence %llu: %s\n",
			    nfc_header_channel(h), nfc_header_type(h),
			    nfc_header_sequence(h), why);
	nfcm_epoch_fail(mailbox->epoch, NFC_EFAULT, why);
}

/* Act on what a message for an open channel means. */
static void act(struct nfcm_channel *ch, const struct nfc_slot *slot,
		const struct nfcm_outcome *out)
{
	lockdep_assert_held(&ch->mailbox->lock);
	switch (out->event) {
	case NFCM_EVENT_NONE:
	case NFCM_EVENT_ASKED: /* the module has no channels to other hosts */
		break;
	case NFCM_EVENT_STALE:
		nfcm_count(ch->epoch->dev, NFCM_COUNT_DROPPED, 1);
		break;
	case NFCM_EVENT_FAULT:
		fault(ch->mailbox, slot, out->why);
		break;
	case NFCM_EVENT_CLOSED:
		nfcm_channel_shut(ch, out->halves, NFCM_SHUT_PEER);
		break;
	case NFCM_EVENT_OVER:
		nfcm_channel_over(ch);
		break;
	case NFCM_EVENT_ANSWERED:
		nfcm_half_answer(&ch->half[out->direction], slot);
		fallthrough;
	default:
		nfcm_half_event(&ch->half[out->direction], out);
	}
}

static void route(struct nfcm_channel *ch, const struct nfc_slot *slot)
{
	struct nfcm_outcome out = {};

	nfcm_classify(&ch->core, &ch->epoch->layout, slot, &out);
	act(ch, slot, &out);
}

/*
 * Hand one message to the half it is about. slot is a private copy: the device
 * cannot change it any more.
 */
void nfcm_dispatch(struct nfcm_mailbox *mailbox, const struct nfc_slot *slot)
{
	u32 id = (u32)nfc_header_channel(le64_to_cpu(slot->header));
	struct nfcm_epoch *epoch = mailbox->epoch;
	struct nfcm_channel *ch;
	struct nfcm_outcome out;

	lockdep_assert_held(&mailbox->lock);
	nfcm_classify_header(&epoch->layout, mailbox->index, slot, &out);
	ch = out.event ? NULL : xa_load(&epoch->channels, id);
	if (!ch && !out.event)
		nfcm_classify_stranger(slot, &out);
	if (out.event == NFCM_EVENT_STALE) {
		nfcm_count(epoch->dev, NFCM_COUNT_DROPPED, 1);
	} else if (out.event) {
		fault(mailbox, slot, out.why);
	} else if (!ch->opening) {
		route(ch, slot);
	} else if (ch->early_count < NFCM_EARLY_MAX) {
		/* The reply that opens it travels through another mailbox. */
		ch->early[ch->early_count++] = *slot;
	} else {
		fault(mailbox, slot, "too much before the channel is open");
	}
}

/* Give a channel its ids and let in what arrived early. */
void nfcm_channel_opened(struct nfcm_channel *ch, u64 h2d, u64 d2h,
			 u64 generation)
{
	int i;

	lockdep_assert_held(&ch->mailbox->lock);
	nfcm_core_open(&ch->core, h2d, d2h, generation);
	ch->opening = false;
	for (i = 0; i < ch->early_count && !ch->mailbox->dead; i++)
		route(ch, &ch->early[i]);
	ch->early_count = 0;
}
