/* SPDX-License-Identifier: GPL-2.0-only */
/* Tracepoints: events/nfcomms in tracefs. */
#undef TRACE_SYSTEM
#define TRACE_SYSTEM nfcomms

#if !defined(NFCM_TRACE_H) || defined(TRACE_HEADER_MULTI_READ)
#define NFCM_TRACE_H

#include <linux/tracepoint.h>

#include "nfcm_compat.h"
#include "nfcm_kmod.h"
#include "uapi/nfcomms_debug.h"

/* clang-format off */

DECLARE_EVENT_CLASS(nfcomms_slot,
	TP_PROTO(u32 mailbox, const struct nfc_slot *slot),
	TP_ARGS(mailbox, slot),
	TP_STRUCT__entry(
		__field(u32, mailbox)
		__field(u64, header)
		__field(u64, first)
	),
	TP_fast_assign(
		__entry->mailbox = mailbox;
		__entry->header = le64_to_cpu(slot->header);
		__entry->first = le64_to_cpu(slot->payload[0]);
	),
	TP_printk("mailbox=%u channel=%llu type=%llu length=%llu sequence=%llu payload0=%#llx",
		  __entry->mailbox, nfc_header_channel(__entry->header),
		  nfc_header_type(__entry->header),
		  nfc_header_length(__entry->header),
		  nfc_header_sequence(__entry->header), __entry->first)
);

DEFINE_EVENT(nfcomms_slot, nfcomms_slot_out,
	TP_PROTO(u32 mailbox, const struct nfc_slot *slot),
	TP_ARGS(mailbox, slot)
);

DEFINE_EVENT(nfcomms_slot, nfcomms_slot_in,
	TP_PROTO(u32 mailbox, const struct nfc_slot *slot),
	TP_ARGS(mailbox, slot)
);

TRACE_EVENT(nfcomms_fault,
	TP_PROTO(u32 mailbox, const struct nfc_slot *slot, const char *why),
	TP_ARGS(mailbox, slot, why),
	TP_STRUCT__entry(
		__field(u32, mailbox)
		__field(u64, header)
		__string(why, why)
	),
	TP_fast_assign(
		__entry->mailbox = mailbox;
		__entry->header = le64_to_cpu(slot->header);
		nfcm_assign_str(why, why);
	),
	TP_printk("mailbox=%u header=%#llx why=%s", __entry->mailbox, __entry->header,
		  __get_str(why))
);

TRACE_EVENT(nfcomms_irq,
	TP_PROTO(u32 vector, u32 messages),
	TP_ARGS(vector, messages),
	TP_STRUCT__entry(
		__field(u32, vector)
		__field(u32, messages)
	),
	TP_fast_assign(
		__entry->vector = vector;
		__entry->messages = messages;
	),
	TP_printk("vector=%u messages=%u", __entry->vector, __entry->messages)
);

TRACE_EVENT(nfcomms_access,
	TP_PROTO(int minor, const struct nfcomms_access *a),
	TP_ARGS(minor, a),
	TP_STRUCT__entry(
		__field(int, minor)
		__field(bool, write)
		__field(u32, bar)
		__field(u32, width)
		__field(u64, offset)
		__field(u64, value)
	),
	TP_fast_assign(
		__entry->minor = minor;
		__entry->write = a->flags & NFCOMMS_ACCESS_WRITE;
		__entry->bar = a->bar;
		__entry->width = a->width;
		__entry->offset = a->offset;
		__entry->value = a->value;
	),
	TP_printk("device=%d %s bar=%u offset=%#llx width=%u value=%#llx",
		  __entry->minor, __entry->write ? "write" : "read",
		  __entry->bar, __entry->offset, __entry->width, __entry->value)
);

TRACE_EVENT(nfcomms_interrupt,
	TP_PROTO(int minor, u32 vector, u64 count),
	TP_ARGS(minor, vector, count),
	TP_STRUCT__entry(
		__field(int, minor)
		__field(u32, vector)
		__field(u64, count)
	),
	TP_fast_assign(
		__entry->minor = minor;
		__entry->vector = vector;
		__entry->count = count;
	),
	TP_printk("device=%d vector=%u count=%llu", __entry->minor, __entry->vector,
		  __entry->count)
);

TRACE_EVENT(nfcomms_submit,
	TP_PROTO(const struct nfcm_op *op),
	TP_ARGS(op),
	TP_STRUCT__entry(
		__field(const void *, op)
		__field(u16, opcode)
		__field(u32, channel)
		__field(u64, length)
	),
	TP_fast_assign(
		__entry->op = op;
		__entry->opcode = op->opcode;
		__entry->channel = op->c.channel;
		__entry->length = op->length;
	),
	TP_printk("op=%p opcode=%u channel=%u length=%llu", __entry->op,
		  __entry->opcode, __entry->channel, __entry->length)
);

TRACE_EVENT(nfcomms_complete,
	TP_PROTO(const struct nfcm_op *op),
	TP_ARGS(op),
	TP_STRUCT__entry(
		__field(const void *, op)
		__field(u16, opcode)
		__field(u32, status)
		__field(u32, error)
	),
	TP_fast_assign(
		__entry->op = op;
		__entry->opcode = op->opcode;
		__entry->status = op->c.status;
		__entry->error = op->c.error;
	),
	TP_printk("op=%p opcode=%u status=%u error=%u", __entry->op,
		  __entry->opcode, __entry->status, __entry->error)
);

TRACE_EVENT(nfcomms_pin,
	TP_PROTO(const struct nfcm_op *op, u64 first, u64 lists, int error),
	TP_ARGS(op, first, lists, error),
	TP_STRUCT__entry(
		__field(const void *, op)
		__field(u64, first)
		__field(u64, lists)
		__field(int, error)
	),
	TP_fast_assign(
		__entry->op = op;
		__entry->first = first;
		__entry->lists = lists;
		__entry->error = error;
	),
	TP_printk("op=%p first=%llu lists=%llu error=%d", __entry->op,
		  __entry->first, __entry->lists, __entry->error)
);

TRACE_EVENT(nfcomms_epoch,
	TP_PROTO(u32 epoch, u32 down),
	TP_ARGS(epoch, down),
	TP_STRUCT__entry(
		__field(u32, epoch)
		__field(u32, down)
	),
	TP_fast_assign(
		__entry->epoch = epoch;
		__entry->down = down;
	),
	TP_printk("epoch=%u down=%u", __entry->epoch, __entry->down)
);
/* clang-format on */

#endif /* NFCM_TRACE_H */

#undef TRACE_INCLUDE_PATH
#define TRACE_INCLUDE_PATH .
#undef TRACE_INCLUDE_FILE
#define TRACE_INCLUDE_FILE trace
#include <trace/define_trace.h>
