// SPDX-License-Identifier: MIT
/*
 * Detects the loss of the other end. It counts checks: a node that was stopped
 * received no packet and saw no route meanwhile, and must not declare a peer
 * lost for that. See far.h.
 */
#include "far.h"

/*
 * Is a check due? A late check does not delay those after it, and ends of one
 * clock wake at the same time.
 */
static bool is_due(struct nfc_far_line *l, uint64_t *at, uint64_t every)
{
	bool now = l->now >= *at;

	if (now)
		*at += (1 + (l->now - *at) / every) * every;
	nfc_far_due(l, *at);
	return now;
}

bool nfc_far_lost(struct nfc_far_line *l, struct nfc_far_watch *w, bool way)
{
	if (is_due(l, &w->poll_ns, NFC_FAR_POLL_NS))
		w->silent++;
	if (!way || nfc_node_reaches(l->node, l->peer)) {
		w->astray = 0;
	} else {
		if (!w->astray)
			w->way_ns = l->now; /* the first is at once */
		if (is_due(l, &w->way_ns, NFC_FAR_WAY_NS))
			w->astray++;
	}
	return w->silent > NFC_FAR_SILENT || w->astray > NFC_FAR_ASTRAY;
}

void nfc_far_lose(struct nfc_far *f, enum nfc_device_state state)
{
	atomic_store_explicit((_Atomic nfc_le32 *)&f->config.area->state, state,
			      memory_order_release); /* SYNC: state */
	f->config.port.ring(f->config.port.self, 0);
}
