/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The pure part of the driver: what it believes of a device, and nothing that
 * touches one. No kernel calls, no clocks, no locks: the same files are compiled
 * into the module and into the user-space tests in test/.
 */
#ifndef NFC_CORE_H
#define NFC_CORE_H

#include "nfc_abi.h"

#ifdef __KERNEL__
#include <linux/string.h>
#include <asm/byteorder.h>
#else
#include "test/user.h"
#endif

/* A buffer as gather lists see it: list k is computed from k alone. */
struct nfc_split {
	u64 head; /* bytes before the buffer in its first device page */
	u64 size; /* bytes of the buffer, at most 2^48 - 1 */
};

u64 nfc_split_pages(const struct nfc_split *s);
u64 nfc_split_lists(const struct nfc_split *s);
u64 nfc_split_up_to(const struct nfc_split *s, u64 k);
u32 nfc_split_fill(const struct nfc_split *s, u64 k, const u64 *bus,
		   struct nfc_gather *g);

/* A completion record of the device, in the host's byte order. */
struct nfc_record {
	u64 transaction;
	u64 processed;
	u64 outstanding;
	u32 lists;
	u16 state;
	u16 status;
	u32 fault_index;
	u32 direction;
};

/*
 * The host's account of one transfer: what was sent, what the device says it
 * did. It believes nothing that cannot follow from what was sent.
 */
struct nfc_ledger {
	struct nfc_split cut;
	u64 lists; /* in the whole transfer */
	u64 window; /* lists in flight at the most */
	u64 sent; /* lists given to the device */
	u64 acked; /* lists the device consumed */
	u64 processed; /* bytes the device moved */
	u64 again; /* the list the device asked for last … */
	u32 tries; /* … and how often */
	bool ready; /* more than list 0 may be sent */
	bool aborting; /* ABORT was sent */
	u64 repeated; /* rounds sent again */
	u64 total; /* lists sent, with those sent again */
};

/* What a completion record means for a transfer. */
enum nfc_verdict {
	NFC_VERDICT_PROGRESS, /* carry on; lists may be sent */
	NFC_VERDICT_IGNORE, /* crossed an ABORT */
	NFC_VERDICT_TIRED, /* one list was asked for too often */
	NFC_VERDICT_DONE, /* every byte moved */
	NFC_VERDICT_FAILED, /* ended by the device */
	NFC_VERDICT_ABORTED, /* ended by ABORT */
	NFC_VERDICT_FAULT, /* the device broke the protocol */
};

void nfc_ledger_open(struct nfc_ledger *l, const struct nfc_split *cut,
		     u32 window, bool ready);
bool nfc_ledger_next(const struct nfc_ledger *l, u64 *k);
void nfc_ledger_sent(struct nfc_ledger *l);
enum nfc_verdict nfc_ledger_record(struct nfc_ledger *l, enum nfc_type type,
				   const struct nfc_record *r, const char **why);

/* Where a half's transaction stands. */
enum nfc_phase {
	NFC_PHASE_IDLE,
	NFC_PHASE_OFFERED, /* a message lies there; d2h: an offer lies here */
	NFC_PHASE_ANSWERING, /* d2h: the answer to the offer is to be put */
	NFC_PHASE_MOVING, /* a transfer, according to its ledger */
	NFC_PHASE_COMPLETE, /* a transfer: all bytes moved, FIN is to be put */
};

/* One direction of a channel. */
struct nfc_half_core {
	u64 id; /* of the transaction under way, or of the last one */
	u8 direction; /* enum nfc_direction */
	u8 phase; /* enum nfc_phase */
	bool recall; /* h2d: WITHDRAW was put; d2h: the device asked for a held offer */
	bool held; /* d2h: a caller looks at the offer */
	bool closed; /* by the host: offers are stale */
	struct nfc_ledger ledger;
	struct nfc_slot offer; /* d2h: what is offered */
};

/* Both directions, as far as messages decide about them. */
struct nfc_channel_core {
	struct nfc_half_core half[2]; /* by enum nfc_direction */
	u64 generation; /* of the subscription */
	bool last; /* CLOSE was put for both halves */
};

/* What a message from the device means. */
enum nfc_event {
	NFC_EVENT_NONE, /* nothing to do */
	NFC_EVENT_STALE, /* about something that is over */
	NFC_EVENT_FAULT, /* the device broke the protocol */
	NFC_EVENT_DELIVERED, /* the target took the message */
	NFC_EVENT_REFUSED, /* the target did not; see status */
	NFC_EVENT_WITHDRAWN, /* the message came back */
	NFC_EVENT_READY, /* the target waits to read */
	NFC_EVENT_OFFER, /* something new is offered to the host */
	NFC_EVENT_RECALLED, /* the offer is gone: WITHDRAWN is to be put */
	NFC_EVENT_PROGRESS, /* lists may be sent */
	NFC_EVENT_TIRED, /* the transfer is to be aborted */
	NFC_EVENT_DONE, /* FIN is to be put */
	NFC_EVENT_FAILED, /* the transfer ended; see record */
	NFC_EVENT_ABORTED, /* the transfer ended after ABORT; see record */
	NFC_EVENT_CLOSED, /* the process closed halves */
	NFC_EVENT_OVER, /* the subscription is over */
};

struct nfc_judgement {
	enum nfc_event event;
	enum nfc_direction direction;
	u32 halves; /* NFC_EVENT_CLOSED: 1 << enum nfc_direction, ored */
	struct nfc_record record; /* of the events that end a transaction */
	const char *why; /* NFC_EVENT_FAULT, else NULL */
};

/* The device as a whole: where things lie, checked against the BAR's size. */
struct nfc_layout {
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
	u64 size;
	u64 park_offset;
	u64 box_offset;
	u64 box_stride;
};

int nfc_layout_check(const struct nfc_area *area, u64 room,
		     struct nfc_layout *l, const char **why);
void nfc_layout_answer(const struct nfc_layout *l, struct nfc_slot *hello);
u32 nfc_layout_mailbox(const struct nfc_layout *l, u32 channel);

void nfc_core_open(struct nfc_channel_core *c, u64 next_h2d, u64 next_d2h,
		   u64 generation);
void nfc_core_message(struct nfc_half_core *h);
void nfc_core_transfer(struct nfc_half_core *h, const struct nfc_split *cut,
		       u32 window);
void nfc_core_aborting(struct nfc_half_core *h);
bool nfc_core_offers_transfer(const struct nfc_half_core *h);
u64 nfc_core_offer_size(const struct nfc_half_core *h);

void nfc_judge_header(const struct nfc_layout *l, u32 mailbox,
		      const struct nfc_slot *slot, struct nfc_judgement *j);
void nfc_judge_stranger(const struct nfc_slot *slot, struct nfc_judgement *j);
void nfc_judge(struct nfc_channel_core *c, const struct nfc_layout *l,
	       const struct nfc_slot *slot, struct nfc_judgement *j);

/*
 * How full a ring may get: messages that end something must get through when
 * senders have filled it, and gather lists leave half to everybody else.
 */
enum nfc_room { NFC_ROOM_LIST, NFC_ROOM_NORMAL, NFC_ROOM_URGENT };

u32 nfc_room(u32 slots, enum nfc_room room);

/* The phase bit of a slot on the lap of index i; shift is log2(slots). */
static inline u64 nfc_phase_bit(u64 i, u32 shift)
{
	return ((i >> shift) + 1) & 1;
}

#endif /* NFC_CORE_H */
