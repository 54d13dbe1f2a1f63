// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* A device's description of itself, checked. Pure: see nfcm_core.h. */
#include "nfcm_core.h"

#ifdef __KERNEL__
#include <linux/errno.h>
#endif

enum {
	NFCM_BEAT_MS_MAX = 1 << 20,
	/* what the driver uses */
	NFCM_ACCEPTS = NFC_CAP_LOAD | NFC_CAP_RUNS | NFC_CAP_EAGER |
		       NFC_CAP_HOST_RINGS | NFC_CAP_CALLS,
};

/* The end of n things of a size; false if they leave the area. */
static bool span(const struct nfcm_layout *l, u64 at, u64 n, u64 size, u64 *end)
{
	/* n and size are bounded: their product cannot overflow. */
	if (at > l->size || n * size > l->size - at)
		return false;
	*end = at + n * size;
	return true;
}

/* Everything is inside the area, apart from everything else. */
static bool places(const struct nfcm_layout *l)
{
	u64 need = sizeof(struct nfc_mailbox) +
		   2 * (u64)l->slots * sizeof(struct nfc_slot);
	u64 first = sizeof(struct nfc_area), park_end, mailbox_end;

	if (l->park_offset % sizeof(nfc_le32) || l->park_offset < first ||
	    !span(l, l->park_offset, l->channels, sizeof(nfc_le32), &park_end))
		return false;
	if (l->mailbox_stride % NFC_SLOT_SIZE || l->mailbox_stride < need ||
	    l->mailbox_stride > l->size)
		return false;
	if (l->mailbox_offset % NFC_SLOT_SIZE || l->mailbox_offset < first ||
	    !span(l, l->mailbox_offset, l->mailboxes, l->mailbox_stride,
		  &mailbox_end))
		return false;
	return l->mailbox_offset >= park_end || l->park_offset >= mailbox_end;
}

static bool in(u64 value, u64 low, u64 high)
{
	return value >= low && value <= high;
}

/* Limits that the driver's own arithmetic relies on. */
static bool limits(const struct nfcm_layout *l)
{
	return in(l->channels, 1, NFC_CHANNELS_MAX) &&
	       in(l->mailboxes, 1, NFC_MAILBOXES_MAX) &&
	       in(l->islands, 1, NFC_ISLANDS_MAX) &&
	       in(l->slots, NFC_SLOTS_MIN, NFC_SLOTS_MAX) &&
	       !(l->slots & (l->slots - 1)) &&
	       in(l->window, 1, NFC_WINDOW_MAX) &&
	       in(l->beat_ms, 1, NFCM_BEAT_MS_MAX) &&
	       in(l->max_transfer, 1, (1ull << 48) - 1) &&
	       l->eager <= NFC_EAGER_ENTRIES &&
	       !l->eager == !(l->capabilities & NFC_CAP_EAGER) &&
	       !(l->mailboxes % l->islands) && l->mailboxes <= l->channels;
}

/* Take the fields of a hello over; nothing is checked. */
static void take(struct nfcm_layout *l, const struct nfc_hello *h)
{
	l->major = le16_to_cpu(h->major);
	l->minor = le16_to_cpu(h->minor);
	l->capabilities = le32_to_cpu(h->capabilities);
	l->channels = le32_to_cpu(h->channels);
	l->mailboxes = le16_to_cpu(h->mailboxes);
	l->islands = le16_to_cpu(h->islands);
	l->slots = le32_to_cpu(h->slots);
	l->window = le32_to_cpu(h->window);
	l->beat_ms = le32_to_cpu(h->beat_ms);
	l->max_transfer = le64_to_cpu(h->max_transfer);
	l->read_managers = le32_to_cpu(h->read_managers);
	l->write_managers = le32_to_cpu(h->write_managers);
	l->contexts = le32_to_cpu(h->contexts);
	l->eager = le16_to_cpu(h->eager);
}

/* Bytes of an area in the host's memory, whole pages. */
u64 nfcm_layout_host_area(const struct nfcm_layout *l)
{
	u64 end = nfc_host_park(l->mailboxes, l->slots, l->channels);

	return (end + NFC_PAGE_SIZE - 1) & ~(u64)(NFC_PAGE_SIZE - 1);
}

/* Leave of the device's capabilities what the driver accepts. */
static void agree(struct nfcm_layout *l)
{
	l->capabilities &= NFCM_ACCEPTS;
	if (!(l->capabilities & NFC_CAP_EAGER))
		l->eager = 0;
	if (nfcm_layout_host_area(l) > NFCM_HOST_AREA_MAX)
		l->capabilities &= ~(u32)NFC_CAP_HOST_RINGS;
}

/*
 * Check a private copy of the area page against the room that the BAR has.
 * 0; -ENOEXEC for another ABI, -EPROTO for one that makes no sense.
 */
int nfcm_layout_check(const struct nfc_area *area, u64 room,
		      struct nfcm_layout *l, const char **why)
{
	u64 header = le64_to_cpu(area->device_hello.header);
	struct nfc_hello hello;

	memset(l, 0, sizeof(*l));
	memcpy(&hello, area->device_hello.payload, sizeof(hello));
	take(l, &hello);
	l->epoch = le32_to_cpu(area->epoch);
	l->size = le64_to_cpu(area->size);
	l->park_offset = le64_to_cpu(area->park_offset);
	l->mailbox_offset = le64_to_cpu(area->mailbox_offset);
	l->mailbox_stride = le64_to_cpu(area->mailbox_stride);
	*why = "no mailbox area";
	if (le32_to_cpu(area->magic) != NFC_MAGIC)
		return -EPROTO;
	*why = "another ABI";
	if (le16_to_cpu(area->major) != NFC_ABI_MAJOR)
		return -ENOEXEC;
	*why = "malformed hello";
	if (nfc_header_type(header) != NFC_TYPE_HELLO ||
	    nfc_header_length(header) != NFC_PAYLOAD_SIZE ||
	    nfc_header_epoch(header) != (l->epoch & 0xff) ||
	    le32_to_cpu(hello.magic) != NFC_MAGIC || le16_to_cpu(hello.rsvd))
		return -EPROTO;
	*why = "another ABI";
	if (l->major != NFC_ABI_MAJOR)
		return -ENOEXEC;
	*why = "limits out of range";
	if (!limits(l))
		return -EPROTO;
	agree(l);
	*why = "rings or park words outside the mailbox area";
	if (l->size < sizeof(*area) || l->size > room || !places(l))
		return -EPROTO;
	*why = NULL;
	return 0;
}

/* The host's hello: what it accepts of the device's offer. */
void nfcm_layout_answer(const struct nfcm_layout *l, struct nfc_slot *hello)
{
	struct nfc_hello h = {
		.magic = cpu_to_le32(NFC_MAGIC),
		.major = cpu_to_le16(NFC_ABI_MAJOR),
		.minor = cpu_to_le16(NFC_ABI_MINOR),
		.capabilities = cpu_to_le32(l->capabilities),
		.channels = cpu_to_le32(l->channels),
		.mailboxes = cpu_to_le16((u16)l->mailboxes),
		.islands = cpu_to_le16((u16)l->islands),
		.slots = cpu_to_le32(l->slots),
		.window = cpu_to_le32(l->window),
		.beat_ms = cpu_to_le32(l->beat_ms),
		.max_transfer = cpu_to_le64(l->max_transfer),
		.eager = cpu_to_le16((u16)l->eager),
	};
	u64 header = nfc_header(NFC_TYPE_HELLO, NFC_PAYLOAD_SIZE, l->epoch, 0,
				0);

	hello->header = cpu_to_le64(header);
	memcpy(hello->payload, &h, sizeof(h));
}

/* The mailbox of a channel, which must be below the number of channels. */
u32 nfcm_layout_mailbox(const struct nfcm_layout *l, u32 channel)
{
	u32 block = (l->channels + l->islands - 1) / l->islands;
	u32 each = l->mailboxes / l->islands;

	return channel / block * each + channel % each;
}

/* How long to wait for a device: at least so many milliseconds and heartbeats. */
u64 nfcm_layout_patience(const struct nfcm_layout *l, u32 least_ms, u32 misses)
{
	u64 ms = (u64)misses * l->beat_ms; /* of 32 bits each */

	return ms > least_ms ? ms : least_ms;
}

/*
 * How old a heartbeat is that is found at now, was not there at before, and was
 * written at device by the device's clock. The clocks need not agree: the least
 * difference that was seen is that of a beat found at once. It may grow by 122 ppm
 * of the time, as a device's clock may be slower.
 */
u64 nfcm_clock_age(struct nfcm_clock *c, u64 now, u64 device, u64 before)
{
	u64 ahead = now - device;

	c->ahead += (now - c->at) >> 13;
	if (!c->at || (s64)(ahead - c->ahead) < 0)
		c->ahead = ahead;
	c->at = now;
	return ahead - c->ahead < now - before ? ahead - c->ahead : now - before;
}
