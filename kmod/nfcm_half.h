/* SPDX-License-Identifier: GPL-2.0-only */
/* Channels and their halves: part of nfcm_kmod.h, which lists the callers. */
#ifndef NFCM_HALF_H
#define NFCM_HALF_H

#include <linux/kref.h>
#include <linux/ktime.h>
#include <linux/list.h>

#include "nfcm_core.h"
#include "uapi/nfcomms.h"

enum {
	NFCM_EARLY_MAX = 4, /* messages before the reply that opens a channel */
	NFCM_BOTH = 1 << NFC_H2D | 1 << NFC_D2H,
};

struct nfcm_epoch;
struct nfcm_file;
struct nfcm_mailbox;
struct nfcm_op;

/*
 * A wait for an answer that must arrive; the device is lost if it does not.
 * Time is counted in ticks of the watch, so that a machine that stood still is
 * no reason.
 */
struct nfcm_escalation {
	struct list_head node; /* mailbox->escalations */
	struct nfcm_channel *ch;
	ktime_t start;
	u64 heartbeats; /* that were seen when the wait began, or began again */
	u64 taken; /* mailbox->taken then */
	u64 asked; /* mailbox->tail then, or when what asks was put */
	u32 waited_ms; /* since it was taken */
	u32 untaken_ms; /* before that */
	bool look; /* it need only be taken: a transfer may move then */
};

/* One direction of a channel. The mailbox guards all of it. */
struct nfcm_half {
	struct nfcm_channel *ch;
	struct nfcm_half_core *core;
	struct nfcm_op *op; /* whose transaction it is */
	struct list_head queue; /* h2d: operations that wait for the one before */
	struct list_head armed;
	struct list_head room; /* mailbox->room[], while the ring is full */
	struct nfcm_escalation escalation;
	u8 shut; /* enum nfcm_shut */
	u8 pending; /* enum nfc_type that is put before anything else; 0: none */
	u16 pending_status;
	u64 pending_size;
	bool ready_requested; /* OFFER was put for the next transaction */
	u32 queued; /* operations in queue */
	ktime_t told; /* when op began, or the device last reported about it */
	bool reserved; /* h2d: the next transaction is kept for an ARM … */
	u64 reserved_for; /* … of this id */
	bool probing; /* WITHDRAW was put to see if the device has the offer */
	u8 wait; /* enum nfcm_wait */
	u32 idle_ms; /* NFCM_WAIT_MOVE: since the last message about the half */
	u64 wait_id; /* the transaction that waits */
	u64 since; /* mailbox->clock_ms when the wait began */
	struct list_head waits; /* mailbox->moving or mailbox->offers */
};

/* Work that the device still has to do for a half. */
enum nfcm_wait {
	NFCM_WAIT_NOTHING,
	NFCM_WAIT_TARGET, /* hold the offer until its target takes it */
	NFCM_WAIT_MOVE, /* move the transfer on, in time */
};

enum nfcm_shut {
	NFCM_SHUT_HOST = 1, /* closed here */
	NFCM_SHUT_PEER = 2, /* closed by the device's process */
};

struct nfcm_channel {
	struct kref ref;
	struct nfcm_epoch *epoch;
	struct nfcm_mailbox *mailbox;
	struct nfcm_file *file; /* NULL: the control channel */
	struct list_head node; /* mailbox->channels, then mailbox->retired */
	struct list_head closers; /* CLOSE operations */
	struct nfcm_escalation escalation; /* for the answer to the last CLOSE */
	u32 id;
	u32 handle;
	u32 park; /* value of the park word */
	u8 closes_put; /* halves whose CLOSE was put */
	u8 early_count;
	bool opening; /* ids are not known: messages are kept in early */
	bool gone; /* out of the epoch's table */
	u64 lists; /* sent since SUBSCRIBE */
	u64 repeated; /* lists sent again, of them */
	struct nfcm_channel_core core;
	struct nfcm_half half[2];
	struct nfc_slot early[NFCM_EARLY_MAX];
};

/* ---- halves ---- */

void nfcm_half_init(struct nfcm_channel *ch, enum nfc_direction direction);
void nfcm_half_fini(const struct nfcm_half *half);
struct nfcm_mailbox *nfcm_half_mailbox(struct nfcm_half *half);
void nfcm_half_header(struct nfcm_half *half, struct nfc_slot *slot,
		      enum nfc_type type, u32 length, u64 id);
void nfcm_half_wait_for_room(struct nfcm_half *half, bool urgent);
void nfcm_half_set_pending(struct nfcm_half *half, enum nfc_type type,
			   u32 status, u64 size);
void nfcm_half_act(struct nfcm_half *half, enum nfcm_input in);
void nfcm_half_end(struct nfcm_half *half, u32 status);
void nfcm_half_down(struct nfcm_half *half, u32 status);
void nfcm_half_answer(struct nfcm_half *half, const struct nfc_slot *slot);
void nfcm_half_event(struct nfcm_half *half, const struct nfcm_outcome *out);
void nfcm_half_arm(struct nfcm_half *half, struct nfcm_op *op);
void nfcm_half_fire(struct nfcm_half *half, u32 status);
bool nfcm_half_quiet(const struct nfcm_half *half);
void nfcm_half_queue(struct nfcm_half *half, struct nfcm_op *op, bool first);
void nfcm_half_unqueue(struct nfcm_half *half, struct nfcm_op *op);
void nfcm_half_take(struct nfcm_half *half, struct nfcm_op *op);
void nfcm_half_describe(const struct nfcm_half *half,
			struct nfcomms_half_info *out);
void nfcm_escalation_start(struct nfcm_escalation *escalation,
			   struct nfcm_channel *ch);
void nfcm_escalation_stop(struct nfcm_escalation *escalation,
			  const struct nfcm_channel *ch);
void nfcm_send_start(struct nfcm_half *half, struct nfcm_op *op);
void nfcm_send_next(struct nfcm_half *half);
void nfcm_send_reserve(struct nfcm_half *half);
void nfcm_send_release(struct nfcm_half *half, struct nfcm_op *op);
void nfcm_receive_start(struct nfcm_half *half, struct nfcm_op *op);
void nfcm_receive_next(struct nfcm_half *half);
void nfcm_receive_release(struct nfcm_half *half);
void nfcm_receive_refuse(struct nfcm_half *half, struct nfcm_op *op);
void nfcm_transfer_feed(struct nfcm_half *half);
bool nfcm_transfer_begin(struct nfcm_half *half);
void nfcm_transfer_progress(struct nfcm_half *half, const struct nfcm_record *r);
void nfcm_transfer_account(struct nfcm_half *half, const struct nfcm_record *r);
bool nfcm_eager_fits(const struct nfcm_half *half);
bool nfcm_eager_put(struct nfcm_half *half, u64 id, u64 timeout_ns);
void nfcm_eager_post(struct nfcm_half *half);
void nfcm_eager_matched(struct nfcm_half *half);
void nfcm_eager_account(struct nfcm_op *op, const struct nfcm_record *r);
void nfcm_stall_track(struct nfcm_half *half);
void nfcm_stall_forget(struct nfcm_half *half);
void nfcm_stall_tick(struct nfcm_mailbox *mailbox, u32 ms);
void nfcm_stall_audit(struct nfcm_epoch *epoch, u64 parked, u32 ms);

/* ---- channels ---- */

struct nfcm_channel *nfcm_channel_new(struct nfcm_epoch *epoch, u32 id,
				      struct nfcm_file *file);
int nfcm_channel_enter(struct nfcm_channel *ch);
void nfcm_channel_leave(struct nfcm_channel *ch);
void nfcm_channel_shut(struct nfcm_channel *ch, u32 halves, u8 why);
void nfcm_channel_over(struct nfcm_channel *ch);
void nfcm_channel_close(struct nfcm_channel *ch, struct nfcm_op *op);
void nfcm_channel_opened(struct nfcm_channel *ch, u64 h2d, u64 d2h,
			 u64 generation);
void nfcm_op_start(struct nfcm_op *op);
void nfcm_op_withdraw(struct nfcm_op *op);

#endif /* NFCM_HALF_H */
