/* SPDX-License-Identifier: (GPL-2.0 WITH Linux-syscall-note) OR MIT */
/*
 * ioctl interface of /dev/nfcommsN.
 *
 * An open file is a client: the channels, processes and operations it makes are
 * its own, nobody else sees them, and they end with it. Work is submitted as
 * operations; each gives exactly one completion, which is read(2) from the same
 * file (POLLIN). Nothing blocks but NFCOMMS_IOC_CALL, NFCOMMS_IOC_RESET and a
 * read(2) without O_NONBLOCK.
 *
 * Rights: a file that is open to read may look (INFO, HEALTH, CHANNEL). SUBMIT,
 * CALL, REGISTER, UNREGISTER and RESET take one that is open for writing
 * (EACCES). A RESET, and a CONTROL that loads a program or starts one that may
 * keep an island (NFC_LONE), need CAP_SYS_ADMIN besides (EPERM). So does one
 * that starts a process, of a user beside whose processes the device was lost
 * three times in ten minutes (EDQUOT).
 *
 * Rules: every structure starts with its size, or its size is given beside its
 * address. The first version's sizes are the macros that end in _SIZE_FIRST:
 * they are part of the ioctl numbers and never change, however the structures
 * grow. A kernel takes any size from there on. It refuses unknown fields with
 * E2BIG unless they are zero, reads fields that an older caller lacks as zero,
 * and writes no more than the caller has room for. Reserved fields and unknown
 * flags must be zero (EINVAL). No field has a pointer type. Statuses are those of
 * the device ABI, firmware/nfc_abi.h, which enum nfcomms_status repeats.
 */
#ifndef _UAPI_NFCOMMS_H
#define _UAPI_NFCOMMS_H

#include <linux/ioctl.h>
#include <linux/types.h>

#define NFCOMMS_UAPI_MAJOR 3
#define NFCOMMS_UAPI_MINOR 1

#define NFCOMMS_PAYLOAD_SIZE 56

/* Bytes of the structures as of version 3.0, for ever. */
#define NFCOMMS_INFO_SIZE_FIRST 144
#define NFCOMMS_HEALTH_SIZE_FIRST 176
#define NFCOMMS_OP_SIZE_FIRST 128
#define NFCOMMS_COMPLETION_SIZE_FIRST 152
#define NFCOMMS_SUBMIT_SIZE_FIRST 40
#define NFCOMMS_CALL_SIZE_FIRST 48
#define NFCOMMS_CANCEL_SIZE_FIRST 32
#define NFCOMMS_RESET_SIZE_FIRST 72
#define NFCOMMS_CHANNEL_SIZE_FIRST 128
#define NFCOMMS_SETUP_SIZE_FIRST 32
#define NFCOMMS_REGISTER_SIZE_FIRST 64
#define NFCOMMS_UNREGISTER_SIZE_FIRST 32
#define NFCOMMS_EVENTFD_SIZE_FIRST 32

/**
 * enum nfcomms_status - how an operation ended; the device's enum nfc_status.
 * @NFCOMMS_STATUS_OK: it took effect
 * @NFCOMMS_STATUS_CLOSED: the end is closed
 * @NFCOMMS_STATUS_TIMEOUT: the target was not ready in time
 * @NFCOMMS_STATUS_SIZE: sizes of the two ends differ
 * @NFCOMMS_STATUS_KIND: one end is direct, the other indirect
 * @NFCOMMS_STATUS_TOO_LARGE: over a limit
 * @NFCOMMS_STATUS_RANGE: outside device memory
 * @NFCOMMS_STATUS_PROTO: the peer broke the protocol
 * @NFCOMMS_STATUS_DMA: the DMA engine could not reach a page
 * @NFCOMMS_STATUS_ABORTED: the host aborted the transfer
 * @NFCOMMS_STATUS_WITHDRAWN: taken back before it was accepted
 * @NFCOMMS_STATUS_NO_TARGET: no such target, or not subscribed
 * @NFCOMMS_STATUS_BUSY: in use
 * @NFCOMMS_STATUS_NO_PROGRAM: no program of that name
 * @NFCOMMS_STATUS_ABI: built for another ABI
 * @NFCOMMS_STATUS_NO_MEMORY: out of resources
 * @NFCOMMS_STATUS_INVALID: a field has no meaning
 * @NFCOMMS_STATUS_NOT_SUPPORTED: this device cannot
 * @NFCOMMS_STATUS_STOPPED: the process is to stop
 * @NFCOMMS_STATUS_RESET: the device was reset
 * @NFCOMMS_STATUS_FAULT: the device is in fault
 * @NFCOMMS_STATUS_STALLED: the device beat, but the transfer did not move on
 * @NFCOMMS_STATUS_COUNT: statuses that this header knows
 */
enum nfcomms_status {
	NFCOMMS_STATUS_OK = 0,
	NFCOMMS_STATUS_CLOSED = 1,
	NFCOMMS_STATUS_TIMEOUT = 2,
	NFCOMMS_STATUS_SIZE = 3,
	NFCOMMS_STATUS_KIND = 4,
	NFCOMMS_STATUS_TOO_LARGE = 5,
	NFCOMMS_STATUS_RANGE = 6,
	NFCOMMS_STATUS_PROTO = 7,
	NFCOMMS_STATUS_DMA = 8,
	NFCOMMS_STATUS_ABORTED = 9,
	NFCOMMS_STATUS_WITHDRAWN = 10,
	NFCOMMS_STATUS_NO_TARGET = 11,
	NFCOMMS_STATUS_BUSY = 12,
	NFCOMMS_STATUS_NO_PROGRAM = 13,
	NFCOMMS_STATUS_ABI = 14,
	NFCOMMS_STATUS_NO_MEMORY = 15,
	NFCOMMS_STATUS_INVALID = 16,
	NFCOMMS_STATUS_NOT_SUPPORTED = 17,
	NFCOMMS_STATUS_STOPPED = 18,
	NFCOMMS_STATUS_RESET = 19,
	NFCOMMS_STATUS_FAULT = 20,
	NFCOMMS_STATUS_STALLED = 21,
	NFCOMMS_STATUS_COUNT = 22,
};

/**
 * struct nfcomms_info - what the device is. Out.
 * @size: in: sizeof(struct nfcomms_info)
 * @uapi: NFCOMMS_UAPI_MAJOR << 16 | NFCOMMS_UAPI_MINOR
 * @abi: of the firmware, major << 16 | minor
 * @epoch: counts resets
 * @channels: target ids are below this
 * @mailboxes: number of mailboxes
 * @islands: number of islands
 * @slots: per ring
 * @window: gather lists in flight per transfer
 * @beat_ms: heartbeat interval
 * @read_managers: serve the h2d rings
 * @write_managers: serve the d2h rings
 * @contexts: processes the device can run
 * @capabilities: enum nfc_capability, as agreed
 * @vectors: interrupt vectors in use
 * @max_transfer: bytes
 * @max_operations: in flight per file
 * @memlock_limit: bytes this process may pin; ~0: no limit
 * @memlock_used: bytes it has pinned now
 * @driver: version of the module, NUL-terminated
 * @rsvd: zero
 */
struct nfcomms_info {
	__u32 size;
	__u32 uapi;
	__u32 abi;
	__u32 epoch;
	__u32 channels;
	__u32 mailboxes;
	__u32 islands;
	__u32 slots;
	__u32 window;
	__u32 beat_ms;
	__u32 read_managers;
	__u32 write_managers;
	__u32 contexts;
	__u32 capabilities;
	__u32 vectors;
	__u32 max_operations;
	__u64 max_transfer;
	__u64 memlock_limit;
	__u64 memlock_used;
	__u8 driver[24];
	__u64 rsvd[4];
};

/* The state of the device, for nfcomms_health.state. */
enum nfcomms_state {
	NFCOMMS_STATE_READY = 0,
	NFCOMMS_STATE_FAULT = 1, /* broke the protocol: RESET clears it */
	NFCOMMS_STATE_LOST =
		2, /* silent, or a call's escalation failed: RESET may bring it back */
	NFCOMMS_STATE_RESETTING = 3,
	NFCOMMS_STATE_REMOVED = 4, /* for good */
};

/**
 * struct nfcomms_health - the last heartbeat, and the driver's counters. Out.
 * @size: in: sizeof(struct nfcomms_health)
 * @state: enum nfcomms_state
 * @beat: counts up
 * @age_ns: since the device wrote the beat, as far as its clock shows
 * @diagnostic: the diagnostic word
 * @processes: running on the device
 * @messages: taken from h2d mailboxes
 * @bytes: moved by the DMA engines
 * @device_dropped: messages the device refused as stale or malformed
 * @parked: requests waiting for a target
 * @interrupts: taken by the driver
 * @spurious: interrupts that brought nothing
 * @doorbells: rung by the driver
 * @dropped: messages from the device that were stale
 * @faults: times the device was latched as faulty
 * @resets: since the module took the device
 * @lists: gather lists sent
 * @repeated: rounds sent again on the device's request
 * @pinned: bytes pinned now, all files
 * @operations: in flight in this file
 * @blocked: of those, not yet taken by the device's target
 * @pins: parts of memory that were pinned for transfers since the module took the
 *	device; what is in a region needs none
 * @regions: of this file
 * @busy_polled: waits that busy polling ended before they slept, all files
 * @rsvd: zero
 */
struct nfcomms_health {
	__u32 size;
	__u32 state;
	__u64 beat;
	__u64 age_ns;
	__u32 diagnostic;
	__u32 processes;
	__u64 messages;
	__u64 bytes;
	__u64 device_dropped;
	__u64 parked;
	__u64 interrupts;
	__u64 spurious;
	__u64 doorbells;
	__u64 dropped;
	__u64 faults;
	__u64 resets;
	__u64 lists;
	__u64 repeated;
	__u64 pinned;
	__u32 operations;
	__u32 blocked;
	__u64 pins;
	__u64 regions;
	__u64 busy_polled;
	__u64 rsvd;
};

enum nfcomms_opcode {
	/* Open the channel to @target; its handle is in @channel. */
	NFCOMMS_OP_SUBSCRIBE = 1,
	/* Close the halves in @flags; completes when nothing of them moves. */
	NFCOMMS_OP_CLOSE = 2,
	/* Give the first @length bytes of @payload; done when the target took them. */
	NFCOMMS_OP_SEND = 3,
	/*
	 * Take a message of at most @length bytes into the completion's payload.
	 * A longer one (NFC_ETOOLARGE), or a transfer (NFC_EKIND), stays
	 * offered.
	 */
	NFCOMMS_OP_RECEIVE = 4,
	/* Give @length bytes, at @address or in @region; done when the target holds them all. */
	NFCOMMS_OP_SEND_IND = 5,
	/*
	 * Take a transfer of exactly @length bytes, to @address or to @region. An offer of
	 * another size (NFC_ESIZE), or a message (NFC_EKIND), stays offered.
	 */
	NFCOMMS_OP_RECEIVE_IND = 6,
	/* Wait for the device's next offer without taking it. */
	NFCOMMS_OP_NEXT = 7,
	/*
	 * Complete as soon as the half in @flags may be ready, is closed or
	 * lost. With NFCOMMS_HOLD, of the half that sends: in its place among
	 * the sends, when the target waits. If the completion has NFCOMMS_HELD
	 * the sends behind it wait, until one with NFCOMMS_NOWAIT and
	 * NFCOMMS_HOLD uses the turn. A REFUSE with NFCOMMS_H2D, whose
	 * @operation is the ARM's id, ends it too.
	 */
	NFCOMMS_OP_ARM = 8,
	/* End what NFCOMMS_HOLD holds: commit it … */
	NFCOMMS_OP_ACCEPT = 9,
	/* … or not: a message stays offered, a transfer is aborted. See also ARM. */
	NFCOMMS_OP_REFUSE = 10,
	/*
	 * @payload is the structure that enum nfcomms_control gives for its first
	 * field; LOAD has @length bytes at @address as well. The completion's
	 * payload is the same structure as the device answered. A process is its
	 * file's: only that file may stop it, and it ends with the file. LOAD
	 * brings code into the device: EPERM without CAP_SYS_ADMIN.
	 */
	NFCOMMS_OP_CONTROL = 11,
	/*
	 * Give the first @length bytes of @payload as a question, which its answer
	 * commits; since version 3.1. See NFCOMMS_TAKEN.
	 */
	NFCOMMS_OP_ASK = 12,
	NFCOMMS_OP_COUNT = 13,
};

/* Flags of an operation; unknown ones, or ones without a meaning for the opcode, are EINVAL. */
enum nfcomms_op_flags {
	NFCOMMS_H2D = 1 << 0, /* CLOSE, ARM, REFUSE: the half that sends */
	NFCOMMS_D2H = 1 << 1, /* CLOSE, ARM: the half that receives */
	NFCOMMS_NOWAIT = 1 << 2, /* sends, receives, NEXT: only if the target is there now */
	/* RECEIVE, RECEIVE_IND: leave the commit to ACCEPT or REFUSE; ARM and sends: see ARM */
	NFCOMMS_HOLD = 1 << 3,
	NFCOMMS_STAMPED = 1 << 4, /* sends, receives: fill struct nfcomms_stamps (3.1) */
};

/**
 * struct nfcomms_op - one operation.
 * @opcode: enum nfcomms_opcode
 * @flags: enum nfcomms_op_flags
 * @channel: handle from SUBSCRIBE; 0 for SUBSCRIBE and CONTROL
 * @user_data: the caller's alone: is returned in the completion, and may repeat
 * @address: of the bytes in the caller's memory; zero with a region
 * @length: bytes; see the opcode
 * @timeout_ns: SEND_IND: how long the target may stay unready, at most; 0: as
 *              long as the device lets it
 * @epoch: SUBSCRIBE, CONTROL: an epoch of nfcomms_info. The operation takes effect in
 *	that epoch, or ends with NFC_ERESET and ESTALE. 0: in any epoch
 * @target: SUBSCRIBE: the far end
 * @region: SEND_IND, RECEIVE_IND: handle of the region that has the bytes; 0: they are at
 *	@address
 * @rsvd: zero
 * @offset: of the first byte in the region
 * @operation: REFUSE with NFCOMMS_H2D: id of an ARM
 * @payload: SEND, ASK: the message; CONTROL: see enum nfcomms_control; else zero
 */
struct nfcomms_op {
	__u16 opcode;
	__u16 flags;
	__u32 channel;
	__u64 user_data;
	__u64 address;
	__u64 length;
	__u64 timeout_ns;
	__u32 epoch;
	__u32 target;
	__u32 region;
	__u32 rsvd;
	__u64 offset;
	__u64 operation;
	__u8 payload[NFCOMMS_PAYLOAD_SIZE];
};

enum nfcomms_completion_flags {
	NFCOMMS_INDIRECT = 1 << 0, /* NEXT: a transfer is offered, else a message */
	NFCOMMS_NOT_NOW = 1 << 1, /* NOWAIT: the target was not there, nothing happened */
	NFCOMMS_HELD = 1 << 2, /* HOLD: waits for ACCEPT or REFUSE, or the turn is kept */
	/*
	 * ASK: the target took it as a question. The answer is in @payload with
	 * NFC_OK; with NFC_EWITHDRAWN and NFC_ECLOSED none follows. Without it
	 * NFC_OK means that the target took a message: its answer is one, too.
	 */
	NFCOMMS_TAKEN = 1 << 3,
};

/**
 * struct nfcomms_completion - how an operation ended.
 * @user_data: of the operation
 * @opcode: of the operation
 * @flags: enum nfcomms_completion_flags
 * @status: enum nfcomms_status; NFC_OK: it took effect, else it did not. The one
 *	exception is a SEND or ASK that ends with NFC_ERESET: the outcome is unknown.
 *	NFC_EWITHDRAWN: a CANCEL was first. NFC_ESTALLED: the device beat, but did
 *	not move the transfer on for the module's stall_timeout_ms; it was aborted
 * @channel: handle
 * @error: errno where the host refused, 0 otherwise: ESTALE (the operation was for
 *	another epoch), EFAULT, EIO (a page cannot be mapped for the device), ENOENT
 *	(no region has this handle, or it was revoked), ERANGE (not all bytes are in
 *	it), EACCES (it is only read), ENOMEM (over the limit of locked memory: see
 *	@limit), EBUSY (a kernel that debugs DMA counts no more mappings of the memory)
 * @length: bytes received or answered; NEXT: bytes offered
 * @processed: bytes moved when a transfer failed
 * @outstanding: bytes that were still to move
 * @peer_size: bytes that the device offers or takes, where they are others than @length
 *	of the operation: NFC_ESIZE; NFC_ETOOLARGE of a RECEIVE
 * @list: gather list that failed
 * @entry: entry in it that failed
 * @lists: of a transfer: gather lists sent
 * @repeated: of a transfer: rounds sent again
 * @payload: RECEIVE: the message; ASK: see NFCOMMS_TAKEN; CONTROL: the answer, where
 *	status is NFC_OK; else zero
 * @id: of the operation, as SUBMIT returned it
 * @epoch: of the device, as in nfcomms_info, that the operation was in: that of its
 *	channel, or the one that it was refused in; 0: in none
 * @rsvd: zero
 * @limit: bytes, at most, where more were asked for: NFC_ETOOLARGE: of a transfer;
 *	ENOMEM: that may be pinned; 0: not known
 */
struct nfcomms_completion {
	__u64 user_data;
	__u16 opcode;
	__u16 flags;
	__u32 status;
	__u32 channel;
	__u32 error;
	__u64 length;
	__u64 processed;
	__u64 outstanding;
	__u64 peer_size;
	__u32 list;
	__u32 entry;
	__u32 lists;
	__u32 repeated;
	__u8 payload[NFCOMMS_PAYLOAD_SIZE];
	__u64 id;
	__u32 epoch;
	__u32 rsvd;
	__u64 limit;
};

/**
 * struct nfcomms_stamps - when parts of an operation were done: nanoseconds; 0: it did not happen.
 * @taken_ns: the module took the operation
 * @ready_ns: sends: it was the first of its half; receives: the device's offer came, zero
 *	where it was there before
 * @put_ns: its offer was put into the ring; receives: the answer to the device's offer, or the
 *	pages
 * @answered_ns: the module took the device's last answer from the ring
 * @completed_ns: the completion could be read, or the CALL could return
 * @began_ns: the device took the offer, or its process offered
 * @met_ns: the target was there; zero where the device did not say that apart
 * @done_ns: the device wrote its last answer
 *
 * The first five are of CLOCK_MONOTONIC. The last three are claims of the device, of
 * its own clock.
 */
struct nfcomms_stamps {
	__u64 taken_ns;
	__u64 ready_ns;
	__u64 put_ns;
	__u64 answered_ns;
	__u64 completed_ns;
	__u64 began_ns;
	__u64 met_ns;
	__u64 done_ns;
};

/**
 * struct nfcomms_record - a completion with what later versions add to it.
 * @completion: how the operation ended
 * @stamps: of a send or receive with NFCOMMS_STAMPED, else zero
 *
 * Files whose SETUP has its size read records, and so does a CALL with that size.
 */
struct nfcomms_record {
	struct nfcomms_completion completion;
	struct nfcomms_stamps stamps;
};

/**
 * enum nfcomms_control - what a CONTROL asks for, the first field of its payload.
 * @NFCOMMS_CONTROL_START: run a program: struct nfcomms_request_start
 * @NFCOMMS_CONTROL_STOP: have a process return: struct nfcomms_request_process
 * @NFCOMMS_CONTROL_LOAD: bring in the programs of an image: struct nfcomms_request_load
 * @NFCOMMS_CONTROL_PROGRAM: name a program: struct nfcomms_request_program
 * @NFCOMMS_CONTROL_MEMORY: describe memory of the device: struct nfcomms_request_memory
 * @NFCOMMS_CONTROL_RUNNING: has a process returned? struct nfcomms_request_process
 */
enum nfcomms_control {
	NFCOMMS_CONTROL_START = 2,
	NFCOMMS_CONTROL_STOP = 3,
	NFCOMMS_CONTROL_LOAD = 4,
	NFCOMMS_CONTROL_PROGRAM = 5,
	NFCOMMS_CONTROL_MEMORY = 6,
	NFCOMMS_CONTROL_RUNNING = 7,
};

#define NFCOMMS_NAME_LENGTH 24
#define NFCOMMS_TEXT_LENGTH 40

/**
 * struct nfcomms_request_start - run a program as a process. Out fields are zero in a request.
 * @request: NFCOMMS_CONTROL_START
 * @status: out: enum nfcomms_status
 * @targets: how many it gets
 * @argument: for the program
 * @process: out: its number
 * @first: in: its first target, 0: any; out: the one that it got
 * @rsvd: zero
 * @name: of the program, NUL-terminated
 */
struct nfcomms_request_start {
	__u16 request;
	__u16 status;
	__u32 targets;
	__u64 argument;
	__u64 process;
	__u32 first;
	__u32 rsvd;
	__u8 name[NFCOMMS_NAME_LENGTH];
};

/**
 * struct nfcomms_request_process - stop a process, or ask for it.
 * @request: NFCOMMS_CONTROL_STOP, NFCOMMS_CONTROL_RUNNING
 * @status: out: enum nfcomms_status
 * @running: out, RUNNING: 1 until it has returned, then 0
 * @process: its number
 * @rsvd: zero
 */
struct nfcomms_request_process {
	__u16 request;
	__u16 status;
	__u32 running;
	__u64 process;
	__u64 rsvd[5];
};

/**
 * struct nfcomms_request_load - bring in the programs of an image.
 * @request: NFCOMMS_CONTROL_LOAD
 * @status: out: enum nfcomms_status
 * @rsvd: zero
 * @text: out, NUL-terminated: the name of the first program, or why it was refused
 * @rsvd1: zero
 */
struct nfcomms_request_load {
	__u16 request;
	__u16 status;
	__u32 rsvd;
	__u8 text[NFCOMMS_TEXT_LENGTH];
	__u64 rsvd1;
};

/**
 * struct nfcomms_request_program - the name of a program that can be started.
 * @request: NFCOMMS_CONTROL_PROGRAM
 * @status: out: enum nfcomms_status; NFC_ENOPROGRAM behind the last one
 * @index: from 0 on
 * @name: out: NUL-terminated
 * @rsvd: zero
 */
struct nfcomms_request_program {
	__u16 request;
	__u16 status;
	__u32 index;
	__u8 name[NFCOMMS_NAME_LENGTH];
	__u64 rsvd[3];
};

/**
 * struct nfcomms_request_memory - one of the device's types of memory.
 * @request: NFCOMMS_CONTROL_MEMORY
 * @status: out: enum nfcomms_status
 * @kind: enum nfc_memory of the device ABI
 * @base: out: address of its first byte
 * @bytes: out: how large it is
 * @unused: out: bytes of it that are free
 * @rsvd: zero
 */
struct nfcomms_request_memory {
	__u16 request;
	__u16 status;
	__u32 kind;
	__u64 base;
	__u64 bytes;
	__u64 unused;
	__u64 rsvd[3];
};

/**
 * struct nfcomms_submit - hand over operations; none of them blocks the call.
 * @size: sizeof(struct nfcomms_submit)
 * @count: number of operations, 1..256
 * @ops: address of struct nfcomms_op[count]
 * @op_size: sizeof(struct nfcomms_op), the distance from one to the next
 * @accepted: out: how many were taken. If fewer than @count, errno says what is
 *	wrong with the next one: EINVAL, ENOENT (channel), EAGAIN (too many in
 *	flight). The call itself succeeds if at least one was taken
 * @error: out: that errno
 * @rsvd: zero
 * @first_id: out: id of the first operation. The next one has the next number, and so
 *	on. A file gives no number twice. It is written before the first one begins
 */
struct nfcomms_submit {
	__u32 size;
	__u32 count;
	__u64 ops;
	__u32 op_size;
	__u32 accepted;
	__u32 error;
	__u32 rsvd;
	__u64 first_id;
};

/**
 * struct nfcomms_call - one operation, waited for; its completion is not read.
 * @size: sizeof(struct nfcomms_call)
 * @flags: zero
 * @op: address of the struct nfcomms_op; its user_data is ignored
 * @completion: address of the struct nfcomms_completion; out
 * @op_size: sizeof(struct nfcomms_op)
 * @completion_size: sizeof(struct nfcomms_completion), or of struct nfcomms_record
 * @rsvd: zero
 *
 * A signal whose handler runs withdraws or aborts the operation and the call
 * returns EINTR: it did not take effect. If it took effect all the same the
 * call succeeds. EFAULT: nothing was begun, unless the memory of @completion
 * was removed meanwhile.
 */
struct nfcomms_call {
	__u32 size;
	__u32 flags;
	__u64 op;
	__u64 completion;
	__u32 op_size;
	__u32 completion_size;
	__u64 rsvd[2];
};

/**
 * struct nfcomms_setup - how this file wants its completions.
 * @size: sizeof(struct nfcomms_setup)
 * @flags: zero
 * @completion_size: sizeof(struct nfcomms_completion), or of nfcomms_record: of the records
 *	that read(2) gives, which is NFCOMMS_COMPLETION_SIZE_FIRST before this. In a
 *	larger one the fields that the module does not know are zero
 * @busy_poll_us: microseconds, 0..10000, that a CALL, and a read(2) that finds nothing, look
 *	at the rings themselves before they sleep or return EAGAIN; 0 before this. The
 *	device's busy_poll_max bounds it. They look for less while others need the
 *	processor, and not at all where nothing is in flight, or the device's rings are
 *	not in the host's memory
 * @rsvd: zero
 *
 * A program that knows no more than the first version needs no SETUP.
 */
struct nfcomms_setup {
	__u32 size;
	__u32 flags;
	__u32 completion_size;
	__u32 busy_poll_us;
	__u32 rsvd[4];
};

/**
 * struct nfcomms_cancel - withdraw what was not taken, abort what moves.
 * @size: sizeof(struct nfcomms_cancel)
 * @flags: zero
 * @id: of an operation that SUBMIT took from this file
 * @rsvd: zero
 *
 * Does not wait: the completion has the result. ENOENT: it has ended, or never was.
 */
struct nfcomms_cancel {
	__u32 size;
	__u32 flags;
	__u64 id;
	__u64 rsvd[2];
};

/**
 * struct nfcomms_reset - end the device's epoch and boot the next (CAP_SYS_ADMIN).
 * @size: sizeof(struct nfcomms_reset)
 * @flags: zero
 * @channels: shape of the next epoch; 0: the device's own
 * @mailboxes: see @channels
 * @islands: see @channels
 * @slots: see @channels
 * @window: see @channels
 * @timeout_ms: how long an offer may wait for its target; 0: for ever
 * @emem: bytes of external memory; 0: as the device likes
 * @rsvd: zero
 *
 * Every operation of every file ends with NFC_ERESET, after DMA is fenced.
 */
struct nfcomms_reset {
	__u32 size;
	__u32 flags;
	__u32 channels;
	__u32 mailboxes;
	__u32 islands;
	__u32 slots;
	__u32 window;
	__u32 timeout_ms;
	__u64 emem;
	__u64 rsvd[4];
};

/**
 * enum nfcomms_region_flags - for nfcomms_register.flags.
 * @NFCOMMS_REGION_READ_ONLY: the device only reads: sends use the region, receives
 *	do not, and the memory need not be writable
 * @NFCOMMS_REGION_DMA_BUF: the bytes are those of the dma-buf @fd, from @offset on,
 *	which is on a page
 */
enum nfcomms_region_flags {
	NFCOMMS_REGION_READ_ONLY = 1 << 0,
	NFCOMMS_REGION_DMA_BUF = 1 << 1,
};

/**
 * struct nfcomms_register - have memory pinned and mapped for the device, once.
 * @size: sizeof(struct nfcomms_register)
 * @flags: enum nfcomms_region_flags
 * @address: of the bytes in the caller's memory; zero with NFCOMMS_REGION_DMA_BUF
 * @length: how many, 1..2^36
 * @fd: NFCOMMS_REGION_DMA_BUF: descriptor of the dma-buf; it may be closed afterwards
 * @region: out: its handle, 1 to 2^28 - 1
 * @offset: NFCOMMS_REGION_DMA_BUF: of the first byte in it
 * @rsvd: zero
 *
 * Operations of this file name the region by its handle, and bytes in it by their
 * offset. It has the pages that the addresses named when it was registered, whatever
 * they name later. Once a part of them is unmapped the region is revoked, as if it had
 * been unregistered. So it is when the process ends or the device is removed. It stays
 * over a RESET and ends with the file. Memory that operations use stays until they have
 * ended.
 *
 * EFAULT: not all of it is memory that the device may use so. ENOMEM: over
 * RLIMIT_MEMLOCK, against which its pages count (not those of a dma-buf). ENOSPC: the
 * file has 1,024 regions, or its user 8,192. EBADF, EINVAL: @fd is no descriptor, no
 * dma-buf, or one with less bytes. EACCES: the dma-buf is to be read only. EIO: it
 * cannot be mapped for the device.
 */
struct nfcomms_register {
	__u32 size;
	__u32 flags;
	__u64 address;
	__u64 length;
	__s32 fd;
	__u32 region;
	__u64 offset;
	__u64 rsvd[3];
};

/**
 * struct nfcomms_unregister - end a region: the device does not reach it any more.
 * @size: sizeof(struct nfcomms_unregister)
 * @flags: zero
 * @region: its handle
 * @rsvd0: zero
 * @rsvd: zero
 *
 * EBUSY: operations use it. ENOENT: no region of this file has the handle, or it was
 * revoked.
 */
struct nfcomms_unregister {
	__u32 size;
	__u32 flags;
	__u32 region;
	__u32 rsvd0;
	__u64 rsvd[2];
};

/**
 * struct nfcomms_eventfd - have an eventfd signalled when there is something to read.
 * @size: sizeof(struct nfcomms_eventfd)
 * @flags: zero
 * @fd: of the eventfd, which may be closed afterwards; -1: it is signalled no more
 * @rsvd: zero
 *
 * One is added to it for each completion that can be read, or that a read could
 * not write. One is added at once if there are completions, and when the device
 * is removed. A counter that is full stays so, and nobody waits for it. It ends
 * with the file.
 *
 * EBUSY: the file has one. ENOENT: it has none that could end. EBADF, EINVAL: @fd is
 * no descriptor, or no eventfd.
 */
struct nfcomms_eventfd {
	__u32 size;
	__u32 flags;
	__s32 fd;
	__u32 rsvd[5];
};

/**
 * enum nfcomms_half_state - where the transaction of a half stands.
 * @NFCOMMS_HALF_UNKNOWN: no state of this header
 * @NFCOMMS_HALF_IDLE: there is none
 * @NFCOMMS_HALF_OFFERED: a message waits for the target, or the device's offer for
 *	a receive
 * @NFCOMMS_HALF_ANSWERING: the device took its offer back, and waits for the host's
 *	answer
 * @NFCOMMS_HALF_MOVING: a transfer is under way
 * @NFCOMMS_HALF_COMPLETE: every byte was moved, and the commit is still missing
 */
enum nfcomms_half_state {
	NFCOMMS_HALF_UNKNOWN = 0,
	NFCOMMS_HALF_IDLE = 1,
	NFCOMMS_HALF_OFFERED = 2,
	NFCOMMS_HALF_ANSWERING = 3,
	NFCOMMS_HALF_MOVING = 4,
	NFCOMMS_HALF_COMPLETE = 5,
};

/**
 * struct nfcomms_half_info - one direction of a channel: who waits for what.
 * @state: enum nfcomms_half_state
 * @queued: operations that wait behind the one under way
 * @transaction: id of the transaction, as in a trace of the device; 0: none
 * @slept_ns: since the operation whose transaction it is began, or the device
 *	last reported about it; 0: there is none
 * @rsvd: zero
 */
struct nfcomms_half_info {
	__u32 state;
	__u32 queued;
	__u64 transaction;
	__u64 slept_ns;
	__u64 rsvd;
};

/**
 * struct nfcomms_channel - what a channel of this file did, and does. Out.
 * @size: sizeof(struct nfcomms_channel)
 * @channel: in: handle; ENOENT if this file has none of that number
 * @target: the far end
 * @halves: NFCOMMS_H2D, NFCOMMS_D2H: the open ones
 * @lists: gather lists sent since SUBSCRIBE, also for what moves now
 * @repeated: rounds sent again on the device's request
 * @h2d: the half that sends
 * @d2h: the half that receives
 * @rsvd: zero
 */
struct nfcomms_channel {
	__u32 size;
	__u32 channel;
	__u32 target;
	__u32 halves;
	__u64 lists;
	__u64 repeated;
	struct nfcomms_half_info h2d;
	struct nfcomms_half_info d2h;
	__u64 rsvd[4];
};

/*
 * The numbers: Documentation/userspace-api/ioctl/ioctl-number.rst has the letter.
 * 0x02 to 0x04, 0x08 and 0x09 were those of interface 2, and stay unused.
 */
#define NFCOMMS_IOC_TYPE 0xE2
#define NFCOMMS_IOC_INFO                                     \
	_IOC(_IOC_READ | _IOC_WRITE, NFCOMMS_IOC_TYPE, 0x00, \
	     NFCOMMS_INFO_SIZE_FIRST)
#define NFCOMMS_IOC_HEALTH                                   \
	_IOC(_IOC_READ | _IOC_WRITE, NFCOMMS_IOC_TYPE, 0x01, \
	     NFCOMMS_HEALTH_SIZE_FIRST)
#define NFCOMMS_IOC_SUBMIT                                   \
	_IOC(_IOC_READ | _IOC_WRITE, NFCOMMS_IOC_TYPE, 0x10, \
	     NFCOMMS_SUBMIT_SIZE_FIRST)
#define NFCOMMS_IOC_CALL                                     \
	_IOC(_IOC_READ | _IOC_WRITE, NFCOMMS_IOC_TYPE, 0x11, \
	     NFCOMMS_CALL_SIZE_FIRST)
#define NFCOMMS_IOC_CANCEL \
	_IOC(_IOC_WRITE, NFCOMMS_IOC_TYPE, 0x12, NFCOMMS_CANCEL_SIZE_FIRST)
#define NFCOMMS_IOC_RESET \
	_IOC(_IOC_WRITE, NFCOMMS_IOC_TYPE, 0x05, NFCOMMS_RESET_SIZE_FIRST)
#define NFCOMMS_IOC_CHANNEL                                  \
	_IOC(_IOC_READ | _IOC_WRITE, NFCOMMS_IOC_TYPE, 0x06, \
	     NFCOMMS_CHANNEL_SIZE_FIRST)
#define NFCOMMS_IOC_SETUP \
	_IOC(_IOC_WRITE, NFCOMMS_IOC_TYPE, 0x07, NFCOMMS_SETUP_SIZE_FIRST)
#define NFCOMMS_IOC_REGISTER                                 \
	_IOC(_IOC_READ | _IOC_WRITE, NFCOMMS_IOC_TYPE, 0x13, \
	     NFCOMMS_REGISTER_SIZE_FIRST)
#define NFCOMMS_IOC_UNREGISTER \
	_IOC(_IOC_WRITE, NFCOMMS_IOC_TYPE, 0x14, NFCOMMS_UNREGISTER_SIZE_FIRST)
#define NFCOMMS_IOC_EVENTFD \
	_IOC(_IOC_WRITE, NFCOMMS_IOC_TYPE, 0x0a, NFCOMMS_EVENTFD_SIZE_FIRST)

#endif /* _UAPI_NFCOMMS_H */
