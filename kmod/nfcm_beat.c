// SPDX-License-Identifier: GPL-2.0-only
/* The device's heartbeat, as last read, and scheduling the tick of its watch. */
#include <linux/io.h>

#include "nfcm_kmod.h"

/* Copy the heartbeat; false while the device writes it. */
static bool read_beat(struct nfcm_epoch *epoch, struct nfc_heartbeat *b)
{
	__le64 word[sizeof(*b) / sizeof(__le64)];
	u64 header, again;
	u32 i, k;

	for (i = 0; i < 4; i++) {
		header = nfcm_load(&epoch->beat, 0);
		for (k = 0; k < ARRAY_SIZE(word); k++)
			word[k] = cpu_to_le64(nfcm_load(&epoch->beat,
							(k + 1) * sizeof(u64)));
		again = nfcm_load(&epoch->beat, 0);
		memcpy(b, word, sizeof(*b));
		if (header == again &&
		    nfc_header_type(header) == NFC_TYPE_HEARTBEAT &&
		    nfc_header_sequence(header) ==
			    (le64_to_cpu(b->beat) & 0xffff))
			return true;
	}
	return false;
}

/* Read the heartbeat; true if there is a new one. */
static bool sample(struct nfcm_epoch *epoch)
{
	struct nfcm_watch *w = &epoch->watch;
	struct nfc_heartbeat b;
	u64 now = ktime_get_ns(), before = w->looked;

	lockdep_assert_held(&epoch->watch.lock);
	if (w->dead || !read_beat(epoch, &b))
		return false;
	w->looked = now;
	if (b.beat == w->last.beat)
		return false;
	w->last = b;
	w->seen = ns_to_ktime(now);
	w->written = now - nfcm_clock_age(&w->clock, now, le64_to_cpu(b.now_ns),
					  before);
	w->blank = 0;
	w->heartbeats++;
	return true;
}

/* How many heartbeats were seen. Takes watch.lock; a mailbox may be held. */
u64 nfcm_watch_heartbeats(struct nfcm_epoch *epoch)
{
	struct nfcm_watch *w = &epoch->watch;
	u64 heartbeats;

	spin_lock(&w->lock);
	sample(epoch);
	heartbeats = w->heartbeats;
	spin_unlock(&w->lock);
	return heartbeats;
}

enum { SAMPLES = 4 }; /* that must see no beat before it is overdue */

/* How long a device may have no heartbeat. */
static u64 patience_ms(struct nfcm_epoch *epoch)
{
	const struct nfcm_limits *l = &epoch->dev->limits;

	return nfcm_layout_patience(&epoch->layout, l->heartbeat_timeout_ms,
				    l->heartbeat_misses);
}

/*
 * Is the heartbeat overdue? Samples count too: the machine may have stood still,
 * not the device. Takes watch.lock.
 */
bool nfcm_watch_overdue(struct nfcm_epoch *epoch)
{
	struct nfcm_watch *w = &epoch->watch;
	bool late;

	spin_lock(&w->lock);
	if (!sample(epoch))
		w->blank++;
	late = w->blank > SAMPLES &&
	       (u64)ktime_ms_delta(ktime_get(), w->seen) > patience_ms(epoch);
	spin_unlock(&w->lock);
	return late;
}

/* Something waits: tick sooner. Any context but hard interrupts. */
void nfcm_watch_kick(struct nfcm_epoch *epoch)
{
	struct nfcm_watch *w = &epoch->watch;

	spin_lock(&w->lock);
	if (!w->dead && !w->kicked) {
		w->kicked = true;
		mod_delayed_work(nfcm_wq, &w->work,
				 msecs_to_jiffies(NFCM_ROOM_MS));
	}
	spin_unlock(&w->lock);
}

/* The last heartbeat, for NFCOMMS_IOC_HEALTH. */
void nfcm_watch_health(struct nfcm_epoch *epoch, struct nfcomms_health *h)
{
	struct nfcm_watch *w = &epoch->watch;

	spin_lock(&w->lock);
	sample(epoch);
	h->beat = le64_to_cpu(w->last.beat);
	h->age_ns = ktime_get_ns() - w->written;
	h->diagnostic = le32_to_cpu(w->last.diagnostic);
	h->processes = le32_to_cpu(w->last.processes);
	h->messages = le64_to_cpu(w->last.messages);
	h->bytes = le64_to_cpu(w->last.bytes);
	h->device_dropped = le64_to_cpu(w->last.dropped);
	h->parked = le64_to_cpu(w->last.parked);
	spin_unlock(&w->lock);
}
