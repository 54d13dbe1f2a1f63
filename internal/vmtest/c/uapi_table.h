/* SPDX-License-Identifier: MIT */
/*
 * Calls, structures and fields of kmod/uapi/nfcomms.h. DO NOT EDIT: it is made by
 * go test ./internal/kdev/uapi -args -update
 */
#ifndef UAPI_TABLE_H
#define UAPI_TABLE_H

#include "uapi.h"

/* clang-format off */

static const struct uapi_field nfcomms_info_fields[] = {
	UAPI_SIZE(nfcomms_info, size, nfcomms_info),
	UAPI_ZERO(nfcomms_info, uapi),
	UAPI_ZERO(nfcomms_info, abi),
	UAPI_ZERO(nfcomms_info, epoch),
	UAPI_ZERO(nfcomms_info, channels),
	UAPI_ZERO(nfcomms_info, mailboxes),
	UAPI_ZERO(nfcomms_info, islands),
	UAPI_ZERO(nfcomms_info, slots),
	UAPI_ZERO(nfcomms_info, window),
	UAPI_ZERO(nfcomms_info, beat_ms),
	UAPI_ZERO(nfcomms_info, read_managers),
	UAPI_ZERO(nfcomms_info, write_managers),
	UAPI_ZERO(nfcomms_info, contexts),
	UAPI_ZERO(nfcomms_info, capabilities),
	UAPI_ZERO(nfcomms_info, vectors),
	UAPI_ZERO(nfcomms_info, max_operations),
	UAPI_ZERO(nfcomms_info, max_transfer),
	UAPI_ZERO(nfcomms_info, memlock_limit),
	UAPI_ZERO(nfcomms_info, memlock_used),
	UAPI_ZERO(nfcomms_info, driver),
	UAPI_ZERO(nfcomms_info, rsvd),
};

static const struct uapi_field nfcomms_health_fields[] = {
	UAPI_SIZE(nfcomms_health, size, nfcomms_health),
	UAPI_ZERO(nfcomms_health, state),
	UAPI_ZERO(nfcomms_health, beat),
	UAPI_ZERO(nfcomms_health, age_ns),
	UAPI_ZERO(nfcomms_health, diagnostic),
	UAPI_ZERO(nfcomms_health, processes),
	UAPI_ZERO(nfcomms_health, messages),
	UAPI_ZERO(nfcomms_health, bytes),
	UAPI_ZERO(nfcomms_health, device_dropped),
	UAPI_ZERO(nfcomms_health, parked),
	UAPI_ZERO(nfcomms_health, interrupts),
	UAPI_ZERO(nfcomms_health, spurious),
	UAPI_ZERO(nfcomms_health, doorbells),
	UAPI_ZERO(nfcomms_health, dropped),
	UAPI_ZERO(nfcomms_health, faults),
	UAPI_ZERO(nfcomms_health, resets),
	UAPI_ZERO(nfcomms_health, lists),
	UAPI_ZERO(nfcomms_health, repeated),
	UAPI_ZERO(nfcomms_health, pinned),
	UAPI_ZERO(nfcomms_health, operations),
	UAPI_ZERO(nfcomms_health, blocked),
	UAPI_ZERO(nfcomms_health, pins),
	UAPI_ZERO(nfcomms_health, regions),
	UAPI_ZERO(nfcomms_health, busy_polled),
	UAPI_ZERO(nfcomms_health, rsvd),
};

static const struct uapi_field nfcomms_op_fields[] = {
	UAPI_CHOICE(nfcomms_op, opcode, NFCOMMS_OP_SUBSCRIBE, NFCOMMS_OP_CLOSE, NFCOMMS_OP_SEND, NFCOMMS_OP_RECEIVE, NFCOMMS_OP_SEND_IND, NFCOMMS_OP_RECEIVE_IND, NFCOMMS_OP_NEXT, NFCOMMS_OP_ARM, NFCOMMS_OP_ACCEPT, NFCOMMS_OP_REFUSE, NFCOMMS_OP_CONTROL, NFCOMMS_OP_ASK),
	UAPI_CHOICE(nfcomms_op, flags, NFCOMMS_H2D, NFCOMMS_D2H, NFCOMMS_NOWAIT, NFCOMMS_HOLD, NFCOMMS_STAMPED),
	UAPI_NUMBER(nfcomms_op, channel),
	UAPI_NUMBER(nfcomms_op, user_data),
	UAPI_MEMORY(nfcomms_op, address),
	UAPI_NUMBER(nfcomms_op, length),
	UAPI_NUMBER(nfcomms_op, timeout_ns),
	UAPI_NUMBER(nfcomms_op, epoch),
	UAPI_NUMBER(nfcomms_op, target),
	UAPI_NUMBER(nfcomms_op, region),
	UAPI_ZERO(nfcomms_op, rsvd),
	UAPI_NUMBER(nfcomms_op, offset),
	UAPI_NUMBER(nfcomms_op, operation),
	UAPI_BYTES(nfcomms_op, payload),
};

static const struct uapi_field nfcomms_completion_fields[] = {
	UAPI_NUMBER(nfcomms_completion, user_data),
	UAPI_NUMBER(nfcomms_completion, opcode),
	UAPI_CHOICE(nfcomms_completion, flags, NFCOMMS_INDIRECT, NFCOMMS_NOT_NOW, NFCOMMS_HELD, NFCOMMS_TAKEN),
	UAPI_CHOICE(nfcomms_completion, status, NFCOMMS_STATUS_OK, NFCOMMS_STATUS_CLOSED, NFCOMMS_STATUS_TIMEOUT, NFCOMMS_STATUS_SIZE, NFCOMMS_STATUS_KIND, NFCOMMS_STATUS_TOO_LARGE, NFCOMMS_STATUS_RANGE, NFCOMMS_STATUS_PROTO, NFCOMMS_STATUS_DMA, NFCOMMS_STATUS_ABORTED, NFCOMMS_STATUS_WITHDRAWN, NFCOMMS_STATUS_NO_TARGET, NFCOMMS_STATUS_BUSY, NFCOMMS_STATUS_NO_PROGRAM, NFCOMMS_STATUS_ABI, NFCOMMS_STATUS_NO_MEMORY, NFCOMMS_STATUS_INVALID, NFCOMMS_STATUS_NOT_SUPPORTED, NFCOMMS_STATUS_STOPPED, NFCOMMS_STATUS_RESET, NFCOMMS_STATUS_FAULT, NFCOMMS_STATUS_STALLED),
	UAPI_NUMBER(nfcomms_completion, channel),
	UAPI_NUMBER(nfcomms_completion, error),
	UAPI_NUMBER(nfcomms_completion, length),
	UAPI_NUMBER(nfcomms_completion, processed),
	UAPI_NUMBER(nfcomms_completion, outstanding),
	UAPI_NUMBER(nfcomms_completion, peer_size),
	UAPI_NUMBER(nfcomms_completion, list),
	UAPI_NUMBER(nfcomms_completion, entry),
	UAPI_NUMBER(nfcomms_completion, lists),
	UAPI_NUMBER(nfcomms_completion, repeated),
	UAPI_BYTES(nfcomms_completion, payload),
	UAPI_NUMBER(nfcomms_completion, id),
	UAPI_NUMBER(nfcomms_completion, epoch),
	UAPI_ZERO(nfcomms_completion, rsvd),
	UAPI_NUMBER(nfcomms_completion, limit),
};

static const struct uapi_field nfcomms_stamps_fields[] = {
	UAPI_NUMBER(nfcomms_stamps, taken_ns),
	UAPI_NUMBER(nfcomms_stamps, ready_ns),
	UAPI_NUMBER(nfcomms_stamps, put_ns),
	UAPI_NUMBER(nfcomms_stamps, answered_ns),
	UAPI_NUMBER(nfcomms_stamps, completed_ns),
	UAPI_NUMBER(nfcomms_stamps, began_ns),
	UAPI_NUMBER(nfcomms_stamps, met_ns),
	UAPI_NUMBER(nfcomms_stamps, done_ns),
};

static const struct uapi_field nfcomms_record_fields[] = {
	UAPI_BYTES(nfcomms_record, completion),
	UAPI_BYTES(nfcomms_record, stamps),
};

static const struct uapi_field nfcomms_request_start_fields[] = {
	UAPI_CHOICE(nfcomms_request_start, request, NFCOMMS_CONTROL_START),
	UAPI_ZERO(nfcomms_request_start, status),
	UAPI_NUMBER(nfcomms_request_start, targets),
	UAPI_NUMBER(nfcomms_request_start, argument),
	UAPI_ZERO(nfcomms_request_start, process),
	UAPI_NUMBER(nfcomms_request_start, first),
	UAPI_ZERO(nfcomms_request_start, rsvd),
	UAPI_BYTES(nfcomms_request_start, name),
};

static const struct uapi_field nfcomms_request_process_fields[] = {
	UAPI_CHOICE(nfcomms_request_process, request, NFCOMMS_CONTROL_STOP, NFCOMMS_CONTROL_RUNNING),
	UAPI_ZERO(nfcomms_request_process, status),
	UAPI_ZERO(nfcomms_request_process, running),
	UAPI_NUMBER(nfcomms_request_process, process),
	UAPI_ZERO(nfcomms_request_process, rsvd),
};

static const struct uapi_field nfcomms_request_load_fields[] = {
	UAPI_CHOICE(nfcomms_request_load, request, NFCOMMS_CONTROL_LOAD),
	UAPI_ZERO(nfcomms_request_load, status),
	UAPI_ZERO(nfcomms_request_load, rsvd),
	UAPI_ZERO(nfcomms_request_load, text),
	UAPI_ZERO(nfcomms_request_load, rsvd1),
};

static const struct uapi_field nfcomms_request_program_fields[] = {
	UAPI_CHOICE(nfcomms_request_program, request, NFCOMMS_CONTROL_PROGRAM),
	UAPI_ZERO(nfcomms_request_program, status),
	UAPI_NUMBER(nfcomms_request_program, index),
	UAPI_ZERO(nfcomms_request_program, name),
	UAPI_ZERO(nfcomms_request_program, rsvd),
};

static const struct uapi_field nfcomms_request_memory_fields[] = {
	UAPI_CHOICE(nfcomms_request_memory, request, NFCOMMS_CONTROL_MEMORY),
	UAPI_ZERO(nfcomms_request_memory, status),
	UAPI_NUMBER(nfcomms_request_memory, kind),
	UAPI_ZERO(nfcomms_request_memory, base),
	UAPI_ZERO(nfcomms_request_memory, bytes),
	UAPI_ZERO(nfcomms_request_memory, unused),
	UAPI_ZERO(nfcomms_request_memory, rsvd),
};

static const struct uapi_field nfcomms_submit_fields[] = {
	UAPI_SIZE(nfcomms_submit, size, nfcomms_submit),
	UAPI_NUMBER(nfcomms_submit, count),
	UAPI_ADDRESS(nfcomms_submit, ops, nfcomms_op),
	UAPI_SIZE(nfcomms_submit, op_size, nfcomms_op),
	UAPI_ZERO(nfcomms_submit, accepted),
	UAPI_ZERO(nfcomms_submit, error),
	UAPI_ZERO(nfcomms_submit, rsvd),
	UAPI_ZERO(nfcomms_submit, first_id),
};

static const struct uapi_field nfcomms_call_fields[] = {
	UAPI_SIZE(nfcomms_call, size, nfcomms_call),
	UAPI_NUMBER(nfcomms_call, flags),
	UAPI_ADDRESS(nfcomms_call, op, nfcomms_op),
	UAPI_ADDRESS(nfcomms_call, completion, nfcomms_completion),
	UAPI_SIZE(nfcomms_call, op_size, nfcomms_op),
	UAPI_SIZE(nfcomms_call, completion_size, nfcomms_completion),
	UAPI_ZERO(nfcomms_call, rsvd),
};

static const struct uapi_field nfcomms_setup_fields[] = {
	UAPI_SIZE(nfcomms_setup, size, nfcomms_setup),
	UAPI_NUMBER(nfcomms_setup, flags),
	UAPI_SIZE(nfcomms_setup, completion_size, nfcomms_completion),
	UAPI_NUMBER(nfcomms_setup, busy_poll_us),
	UAPI_ZERO(nfcomms_setup, rsvd),
};

static const struct uapi_field nfcomms_cancel_fields[] = {
	UAPI_SIZE(nfcomms_cancel, size, nfcomms_cancel),
	UAPI_NUMBER(nfcomms_cancel, flags),
	UAPI_NUMBER(nfcomms_cancel, id),
	UAPI_ZERO(nfcomms_cancel, rsvd),
};

static const struct uapi_field nfcomms_reset_fields[] = {
	UAPI_SIZE(nfcomms_reset, size, nfcomms_reset),
	UAPI_NUMBER(nfcomms_reset, flags),
	UAPI_NUMBER(nfcomms_reset, channels),
	UAPI_NUMBER(nfcomms_reset, mailboxes),
	UAPI_NUMBER(nfcomms_reset, islands),
	UAPI_NUMBER(nfcomms_reset, slots),
	UAPI_NUMBER(nfcomms_reset, window),
	UAPI_NUMBER(nfcomms_reset, timeout_ms),
	UAPI_NUMBER(nfcomms_reset, emem),
	UAPI_ZERO(nfcomms_reset, rsvd),
};

static const struct uapi_field nfcomms_register_fields[] = {
	UAPI_SIZE(nfcomms_register, size, nfcomms_register),
	UAPI_CHOICE(nfcomms_register, flags, NFCOMMS_REGION_READ_ONLY, NFCOMMS_REGION_DMA_BUF),
	UAPI_MEMORY(nfcomms_register, address),
	UAPI_NUMBER(nfcomms_register, length),
	UAPI_DESCRIPTOR(nfcomms_register, fd),
	UAPI_ZERO(nfcomms_register, region),
	UAPI_NUMBER(nfcomms_register, offset),
	UAPI_ZERO(nfcomms_register, rsvd),
};

static const struct uapi_field nfcomms_unregister_fields[] = {
	UAPI_SIZE(nfcomms_unregister, size, nfcomms_unregister),
	UAPI_NUMBER(nfcomms_unregister, flags),
	UAPI_NUMBER(nfcomms_unregister, region),
	UAPI_ZERO(nfcomms_unregister, rsvd0),
	UAPI_ZERO(nfcomms_unregister, rsvd),
};

static const struct uapi_field nfcomms_eventfd_fields[] = {
	UAPI_SIZE(nfcomms_eventfd, size, nfcomms_eventfd),
	UAPI_NUMBER(nfcomms_eventfd, flags),
	UAPI_DESCRIPTOR(nfcomms_eventfd, fd),
	UAPI_ZERO(nfcomms_eventfd, rsvd),
};

static const struct uapi_field nfcomms_half_info_fields[] = {
	UAPI_CHOICE(nfcomms_half_info, state, NFCOMMS_HALF_UNKNOWN, NFCOMMS_HALF_IDLE, NFCOMMS_HALF_OFFERED, NFCOMMS_HALF_ANSWERING, NFCOMMS_HALF_MOVING, NFCOMMS_HALF_COMPLETE),
	UAPI_NUMBER(nfcomms_half_info, queued),
	UAPI_NUMBER(nfcomms_half_info, transaction),
	UAPI_NUMBER(nfcomms_half_info, slept_ns),
	UAPI_ZERO(nfcomms_half_info, rsvd),
};

static const struct uapi_field nfcomms_channel_fields[] = {
	UAPI_SIZE(nfcomms_channel, size, nfcomms_channel),
	UAPI_NUMBER(nfcomms_channel, channel),
	UAPI_ZERO(nfcomms_channel, target),
	UAPI_ZERO(nfcomms_channel, halves),
	UAPI_ZERO(nfcomms_channel, lists),
	UAPI_ZERO(nfcomms_channel, repeated),
	UAPI_ZERO(nfcomms_channel, h2d),
	UAPI_ZERO(nfcomms_channel, d2h),
	UAPI_ZERO(nfcomms_channel, rsvd),
};

static const struct uapi_struct uapi_calls[] = {
	UAPI_STRUCT(NFCOMMS_IOC_CALL, nfcomms_call),
	UAPI_STRUCT(NFCOMMS_IOC_CANCEL, nfcomms_cancel),
	UAPI_STRUCT(NFCOMMS_IOC_CHANNEL, nfcomms_channel),
	UAPI_STRUCT(NFCOMMS_IOC_EVENTFD, nfcomms_eventfd),
	UAPI_STRUCT(NFCOMMS_IOC_HEALTH, nfcomms_health),
	UAPI_STRUCT(NFCOMMS_IOC_INFO, nfcomms_info),
	UAPI_STRUCT(NFCOMMS_IOC_REGISTER, nfcomms_register),
	UAPI_STRUCT(NFCOMMS_IOC_RESET, nfcomms_reset),
	UAPI_STRUCT(NFCOMMS_IOC_SETUP, nfcomms_setup),
	UAPI_STRUCT(NFCOMMS_IOC_SUBMIT, nfcomms_submit),
	UAPI_STRUCT(NFCOMMS_IOC_UNREGISTER, nfcomms_unregister),
};

/* Payloads of a CONTROL. */
static const struct uapi_struct uapi_requests[] = {
	UAPI_STRUCT(0, nfcomms_request_start),
	UAPI_STRUCT(0, nfcomms_request_process),
	UAPI_STRUCT(0, nfcomms_request_load),
	UAPI_STRUCT(0, nfcomms_request_program),
	UAPI_STRUCT(0, nfcomms_request_memory),
};

#endif
