/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * The pure part of the driver: what it believes of a device, and nothing that
 * touches one. No kernel calls, no clocks, no locks: the same files are compiled
 * into the module and into what tests, fuzzes and models it in user space. For that
 * this folder has a licence that both may use.
 */
#ifndef NFCM_CORE_H
#define NFCM_CORE_H

#include "nfc_abi.h"

#ifdef __KERNEL__
#include <linux/string.h>
#include <asm/byteorder.h>
#else
#include "nfcm_user.h"
#endif

/*
 * The gather lists of a part of a buffer, as they are made of what is mapped. A part
 * begins with a list of its own, and ends with a page unless the transfer does.
 */
struct nfcm_cut {
	struct nfc_gather *list; /* those of the part … */
	u64 most; /* … for which there is room … */
	u64 lists; /* … and that are made */
	u64 first; /* number of the first */
	u64 head; /* bytes before the buffer in its first device page */
	u64 size; /* bytes of the transfer, at most 2^48 - 1 */
	u64 at; /* of those, before what is added next … */
	u64 end; /* … and before the bytes behind the part */
	u32 entries; /* in the last list */
	bool runs; /* entries are runs */
};

bool nfcm_cut_add(struct nfcm_cut *c, u64 address, u64 length);
u32 nfcm_cut_length(const struct nfcm_cut *c, u64 i);
u64 nfcm_list_end(u64 size, const struct nfc_gather *g);

/* A completion record of the device, in the host's byte order. */
struct nfcm_record {
	u64 transaction;
	u64 processed;
	u64 outstanding;
	u32 lists;
	u16 state;
	u16 status;
	u32 fault_index;
	u32 direction;
	u64 began; /* by the device's clock, which nobody believes */
	u64 now;
};

/*
 * The host's account of one transfer: what was sent, and what the device reports.
 * It believes nothing that cannot follow from what was sent.
 */
struct nfcm_ledger {
	u64 size; /* bytes of the transfer */
	u64 lists; /* in all of it, known once the last was sent; before that ~0 */
	u64 window; /* lists in flight at the most */
	u64 sent; /* lists given to the device */
	u64 given; /* bytes up to the end of the last that ever was */
	u64 acked; /* lists the device consumed */
	u64 processed; /* bytes the device moved */
	u64 again; /* the list that the device requested last … */
	u64 at; /* … the bytes it had moved when it first did … */
	u32 tries; /* … and how often */
	bool ready; /* more than list 0 may be sent */
	bool aborting; /* ABORT was sent */
	u64 repeated; /* lists sent again */
	u64 total; /* lists sent, with those sent again */
};

/*
 * Inputs of a half; proto.Input in internal/proto: the meaning of a completion
 * record for a transfer, and the host's own operations.
 */
enum nfcm_input {
	NFCM_TAKE_PROGRESS, /* carry on; lists may be sent */
	NFCM_TAKE_CROSSED, /* crossed an ABORT */
	NFCM_TAKE_RETRIES_EXHAUSTED, /* one list was requested too often */
	NFCM_TAKE_DONE, /* every byte moved */
	NFCM_TAKE_CONSUMED, /* the same, and another host took them */
	NFCM_TAKE_FAILED, /* ended by the device */
	NFCM_TAKE_ABORTED, /* ended by ABORT */
	NFCM_TAKE_NONSENSE, /* the device broke the protocol */
	NFCM_PUT_MESSAGE, /* h2d: DIRECT */
	NFCM_PUT_TRANSFER, /* h2d: IND_BEGIN; d2h: the first IND_LIST */
	NFCM_PUT_EAGER, /* EAGER: see nfcm_core_eager() */
	NFCM_PUT_CALL, /* h2d: CALL */
	NFCM_PUT_WITHDRAW, /* h2d, and of what is posted */
	NFCM_PUT_WITHDRAWN, /* d2h */
	NFCM_PUT_ACCEPT, /* d2h: ACK of a message, FIN of an empty transfer */
	NFCM_PUT_REFUSE, /* d2h: ERROR */
	NFCM_PUT_ABORT,
	NFCM_PUT_FIN,
	NFCM_HOLD, /* d2h: a call holds the offer, until it answers … */
	NFCM_RELEASE, /* … or leaves it where it is */
	NFCM_PUT_CLOSE, /* CLOSE with this half */
	NFCM_SHUT, /* the host will close the half: offers are stale from now on */
};

void nfcm_ledger_open(struct nfcm_ledger *l, u64 size, u32 window, bool ready);
bool nfcm_ledger_next(const struct nfcm_ledger *l, u64 *k);
void nfcm_ledger_sent(struct nfcm_ledger *l, u64 end);
enum nfcm_input nfcm_ledger_record(struct nfcm_ledger *l, enum nfc_type type,
				   const struct nfcm_record *r,
				   const char **why);

/* Where a half's transaction stands; proto.State in internal/proto. */
enum nfcm_state {
	NFCM_STATE_IDLE,
	NFCM_STATE_OFFERED, /* a message is there; d2h: an offer is here */
	NFCM_STATE_ANSWERING, /* d2h: the answer to the offer is to be put */
	NFCM_STATE_MOVING, /* a transfer, according to its ledger */
	NFCM_STATE_COMPLETE, /* a transfer: all bytes moved, FIN is to be put */
	NFCM_STATE_GIVEN, /* an eager transfer: the device has the pages, and ends it */
	NFCM_STATE_POSTED, /* d2h: the device has the pages for its next transfer */
	NFCM_STATE_CALLED, /* h2d: a question is at the device */
};

/* One direction of a channel. */
struct nfcm_half_core {
	u64 id; /* of the transaction under way, or of the last one */
	u8 direction; /* enum nfc_direction */
	u8 state; /* enum nfcm_state */
	/* h2d, and of what is posted: WITHDRAW was put; d2h: the device recalled a held offer */
	bool recall;
	bool held; /* d2h: a call holds the offer */
	bool closed; /* by the host: offers are stale */
	u64 size; /* bytes of the pages that the device has: GIVEN, POSTED */
	struct nfcm_ledger ledger;
	struct nfc_slot offer; /* d2h: what is offered */
};

/* Both directions, as far as messages decide about them. */
struct nfcm_channel_core {
	struct nfcm_half_core half[2]; /* by enum nfc_direction */
	u64 generation; /* of the subscription */
	bool last; /* CLOSE was put for both halves */
};

/* The meaning of a message from the device; proto.Event in internal/proto. */
enum nfcm_event {
	NFCM_EVENT_NONE, /* nothing to do */
	NFCM_EVENT_STALE, /* about something that is over */
	NFCM_EVENT_FAULT, /* the device broke the protocol */
	NFCM_EVENT_DELIVERED, /* a message or eager transfer has arrived */
	NFCM_EVENT_REFUSED, /* it is not; see status */
	NFCM_EVENT_WITHDRAWN, /* the offer was returned; d2h: what was posted */
	NFCM_EVENT_READY, /* the target waits to read */
	NFCM_EVENT_OFFER, /* something new is offered to the host */
	NFCM_EVENT_RECALLED, /* the offer was taken back: WITHDRAWN is to be put */
	NFCM_EVENT_PROGRESS, /* lists may be sent */
	NFCM_EVENT_RETRIES_EXHAUSTED, /* the transfer is to be aborted */
	NFCM_EVENT_DONE, /* FIN is to be put */
	NFCM_EVENT_FAILED, /* the transfer ended; see record */
	NFCM_EVENT_ABORTED, /* the transfer ended after ABORT; see record */
	NFCM_EVENT_CLOSED, /* the process closed halves */
	NFCM_EVENT_OVER, /* the subscription is over */
	NFCM_EVENT_ASKED, /* another host asks whether this one waits */
	NFCM_EVENT_ANSWERED, /* the slot has the answer to a question */
	NFCM_EVENT_UNANSWERED, /* no answer follows; see status */
};

struct nfcm_outcome {
	enum nfcm_event event;
	enum nfc_direction direction;
	u32 halves; /* NFCM_EVENT_CLOSED: 1 << enum nfc_direction, ored */
	struct nfcm_record record; /* of the events that end a transaction */
	const char *why; /* NFCM_EVENT_FAULT, else NULL */
};

enum {
	NFCM_HOST_AREA_MAX = 4 << 20, /* bytes; rings that need more are the BAR's */
};

/*
 * The device as a whole: the place of each part, checked against the BAR's
 * size.
 */
struct nfcm_layout {
	u32 epoch;
	u16 major;
	u16 minor;
	u32 capabilities; /* as agreed */
	u32 channels;
	u32 mailboxes;
	u32 islands;
	u32 slots;
	u32 window;
	u32 beat_ms;
	u64 max_transfer;
	u32 read_managers;
	u32 write_managers;
	u32 contexts;
	u32 eager; /* entries of an EAGER, at most */
	u64 size;
	u64 park_offset;
	u64 mailbox_offset;
	u64 mailbox_stride;
};

/* The device's clock beside the host's, in ns. Zero: nothing is known. */
struct nfcm_clock {
	u64 ahead; /* the host's less the device's, the least seen lately */
	u64 at; /* the host's, when that was compared */
};

u64 nfcm_clock_age(struct nfcm_clock *c, u64 now, u64 device, u64 before);
int nfcm_layout_check(const struct nfc_area *area, u64 room,
		      struct nfcm_layout *l, const char **why);
void nfcm_layout_answer(const struct nfcm_layout *l, struct nfc_slot *hello);
u64 nfcm_layout_patience(const struct nfcm_layout *l, u32 least_ms, u32 misses);
u64 nfcm_layout_host_area(const struct nfcm_layout *l);
u32 nfcm_layout_mailbox(const struct nfcm_layout *l, u32 channel);
int nfcm_access_check(u32 bar, u64 room, u64 at, u32 width, bool write);

void nfcm_core_open(struct nfcm_channel_core *c, u64 next_h2d, u64 next_d2h,
		    u64 generation);
bool nfcm_act(struct nfcm_half_core *h, enum nfcm_input in);
bool nfcm_core_transfer(struct nfcm_half_core *h, u64 size, u32 window);
bool nfcm_core_eager(struct nfcm_half_core *h, u64 size);
bool nfcm_core_offers_transfer(const struct nfcm_half_core *h);
u64 nfcm_core_offer_size(const struct nfcm_half_core *h);

void nfcm_classify_header(const struct nfcm_layout *l, u32 mailbox,
			  const struct nfc_slot *slot, struct nfcm_outcome *out);
void nfcm_classify_stranger(const struct nfc_slot *slot,
			    struct nfcm_outcome *out);
void nfcm_classify(struct nfcm_channel_core *c, const struct nfcm_layout *l,
		   const struct nfc_slot *slot, struct nfcm_outcome *out);

/*
 * How full a ring may get: messages that end something must get through when
 * senders have filled it, and gather lists leave half to everybody else.
 */
enum nfcm_room { NFCM_ROOM_LIST, NFCM_ROOM_NORMAL, NFCM_ROOM_URGENT };

u32 nfcm_room(u32 slots, enum nfcm_room room);

/* The phase bit of a slot on the lap of index i; shift is log2(slots). */
static inline u64 nfcm_phase_bit(u64 i, u32 shift)
{
	return ((i >> shift) + 1) & 1;
}

#endif /* NFCM_CORE_H */
