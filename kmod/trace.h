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

/* Numbers have the names of the headers; who reads the raw trace needs them, too. */
#define NFCM_TYPES \
	EM(NFC_TYPE_DIRECT, "DIRECT") \
	EM(NFC_TYPE_IND_BEGIN, "IND_BEGIN") \
	EM(NFC_TYPE_IND_LIST, "IND_LIST") \
	EM(NFC_TYPE_ACK, "ACK") \
	EM(NFC_TYPE_DONE, "DONE") \
	EM(NFC_TYPE_FIN, "FIN") \
	EM(NFC_TYPE_WITHDRAW, "WITHDRAW") \
	EM(NFC_TYPE_WITHDRAWN, "WITHDRAWN") \
	EM(NFC_TYPE_ABORT, "ABORT") \
	EM(NFC_TYPE_ABORTED, "ABORTED") \
	EM(NFC_TYPE_CLOSE, "CLOSE") \
	EM(NFC_TYPE_ERROR, "ERROR") \
	EM(NFC_TYPE_OFFER, "OFFER") \
	EM(NFC_TYPE_READY, "READY") \
	EM(NFC_TYPE_CALL, "CALL") \
	EM(NFC_TYPE_ANSWER, "ANSWER") \
	EM_LAST(NFC_TYPE_EAGER, "EAGER")
#define NFCM_OPCODES \
	EM(NFCOMMS_OP_SUBSCRIBE, "SUBSCRIBE") \
	EM(NFCOMMS_OP_CLOSE, "CLOSE") \
	EM(NFCOMMS_OP_SEND, "SEND") \
	EM(NFCOMMS_OP_RECEIVE, "RECEIVE") \
	EM(NFCOMMS_OP_SEND_IND, "SEND_IND") \
	EM(NFCOMMS_OP_RECEIVE_IND, "RECEIVE_IND") \
	EM(NFCOMMS_OP_NEXT, "NEXT") \
	EM(NFCOMMS_OP_ARM, "ARM") \
	EM(NFCOMMS_OP_ACCEPT, "ACCEPT") \
	EM(NFCOMMS_OP_REFUSE, "REFUSE") \
	EM(NFCOMMS_OP_CONTROL, "CONTROL") \
	EM_LAST(NFCOMMS_OP_ASK, "ASK")

#undef EM
#undef EM_LAST
#define EM(number, name) TRACE_DEFINE_ENUM(number);
#define EM_LAST(number, name) TRACE_DEFINE_ENUM(number);
NFCM_TYPES
NFCM_OPCODES
#undef EM
#undef EM_LAST
#define EM(number, name) { number, name },
#define EM_LAST(number, name) { number, name }

#define nfcm_show_type(header) \
	__print_symbolic(nfc_header_type(header), NFCM_TYPES)
#define nfcm_show_opcode(opcode) __print_symbolic(opcode, NFCM_OPCODES)

DECLARE_EVENT_CLASS(nfcomms_slot,
	TP_PROTO(const struct nfcm_mailbox *mailbox, const struct nfc_slot *slot),
	TP_ARGS(mailbox, slot),
	TP_STRUCT__entry(
		__field(int, minor)
		__field(u32, mailbox)
		__array(u64, word, NFC_SLOT_SIZE / sizeof(u64))
	),
	TP_fast_assign(
		int i;

		__entry->minor = mailbox->epoch->dev->minor;
		__entry->mailbox = mailbox->index;
		__entry->word[0] = le64_to_cpu(slot->header);
		for (i = 0; i < ARRAY_SIZE(slot->payload); i++)
			__entry->word[i + 1] = le64_to_cpu(slot->payload[i]);
	),
	TP_printk("device=%d mailbox=%u channel=%llu type=%s length=%llu sequence=%llu slot=%s",
		  __entry->minor, __entry->mailbox,
		  nfc_header_channel(__entry->word[0]),
		  nfcm_show_type(__entry->word[0]),
		  nfc_header_length(__entry->word[0]),
		  nfc_header_sequence(__entry->word[0]),
		  __print_array(__entry->word, NFC_SLOT_SIZE / sizeof(u64),
				sizeof(u64)))
);

DEFINE_EVENT(nfcomms_slot, nfcomms_slot_out,
	TP_PROTO(const struct nfcm_mailbox *mailbox, const struct nfc_slot *slot),
	TP_ARGS(mailbox, slot)
);

DEFINE_EVENT(nfcomms_slot, nfcomms_slot_in,
	TP_PROTO(const struct nfcm_mailbox *mailbox, const struct nfc_slot *slot),
	TP_ARGS(mailbox, slot)
);

TRACE_EVENT(nfcomms_fault,
	TP_PROTO(const struct nfcm_mailbox *mailbox, const struct nfc_slot *slot,
		 const char *why),
	TP_ARGS(mailbox, slot, why),
	TP_STRUCT__entry(
		__field(int, minor)
		__field(u32, mailbox)
		__field(u64, header)
		__string(why, why)
	),
	TP_fast_assign(
		__entry->minor = mailbox->epoch->dev->minor;
		__entry->mailbox = mailbox->index;
		__entry->header = le64_to_cpu(slot->header);
		nfcm_assign_str(why, why);
	),
	TP_printk("device=%d mailbox=%u channel=%llu type=%s header=%#llx why=%s",
		  __entry->minor, __entry->mailbox,
		  nfc_header_channel(__entry->header),
		  nfcm_show_type(__entry->header), __entry->header,
		  __get_str(why))
);

TRACE_EVENT(nfcomms_irq,
	TP_PROTO(int minor, u32 vector, u32 messages),
	TP_ARGS(minor, vector, messages),
	TP_STRUCT__entry(
		__field(int, minor)
		__field(u32, vector)
		__field(u32, messages)
	),
	TP_fast_assign(
		__entry->minor = minor;
		__entry->vector = vector;
		__entry->messages = messages;
	),
	TP_printk("device=%d vector=%u messages=%u", __entry->minor,
		  __entry->vector, __entry->messages)
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

TRACE_EVENT(nfcomms_access_irq,
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
		__field(int, minor)
		__field(const void *, op)
		__field(u64, user_data)
		__field(u16, opcode)
		__field(u32, channel)
		__field(u64, length)
	),
	TP_fast_assign(
		__entry->minor = nfcm_op_minor(op);
		__entry->op = op;
		__entry->user_data = op->c.user_data;
		__entry->opcode = op->opcode;
		__entry->channel = op->c.channel;
		__entry->length = op->length;
	),
	TP_printk("device=%d op=%p user_data=%#llx opcode=%s channel=%u length=%llu",
		  __entry->minor, __entry->op, __entry->user_data,
		  nfcm_show_opcode(__entry->opcode), __entry->channel,
		  __entry->length)
);

TRACE_EVENT(nfcomms_complete,
	TP_PROTO(const struct nfcm_op *op),
	TP_ARGS(op),
	TP_STRUCT__entry(
		__field(int, minor)
		__field(const void *, op)
		__field(u64, user_data)
		__field(u16, opcode)
		__field(u32, status)
		__field(u32, error)
	),
	TP_fast_assign(
		__entry->minor = nfcm_op_minor(op);
		__entry->op = op;
		__entry->user_data = op->c.user_data;
		__entry->opcode = op->opcode;
		__entry->status = op->c.status;
		__entry->error = op->c.error;
	),
	TP_printk("device=%d op=%p user_data=%#llx opcode=%s status=%u error=%u",
		  __entry->minor, __entry->op, __entry->user_data,
		  nfcm_show_opcode(__entry->opcode), __entry->status,
		  __entry->error)
);

TRACE_EVENT(nfcomms_pin,
	TP_PROTO(const struct nfcm_op *op, u64 first, u64 lists, int error),
	TP_ARGS(op, first, lists, error),
	TP_STRUCT__entry(
		__field(int, minor)
		__field(const void *, op)
		__field(u64, user_data)
		__field(u64, first)
		__field(u64, lists)
		__field(int, error)
	),
	TP_fast_assign(
		__entry->minor = nfcm_op_minor(op);
		__entry->op = op;
		__entry->user_data = op->c.user_data;
		__entry->first = first;
		__entry->lists = lists;
		__entry->error = error;
	),
	TP_printk("device=%d op=%p user_data=%#llx first=%llu lists=%llu error=%d",
		  __entry->minor, __entry->op, __entry->user_data,
		  __entry->first, __entry->lists, __entry->error)
);

TRACE_EVENT(nfcomms_epoch,
	TP_PROTO(const struct nfcm_epoch *epoch, u32 down),
	TP_ARGS(epoch, down),
	TP_STRUCT__entry(
		__field(int, minor)
		__field(u32, epoch)
		__field(u32, down)
		__field(u32, channels)
		__field(u32, mailboxes)
		__field(u32, islands)
		__field(u32, window)
		__field(u64, limit)
	),
	TP_fast_assign(
		__entry->minor = epoch->dev->minor;
		__entry->epoch = epoch->layout.epoch;
		__entry->down = down;
		__entry->channels = epoch->layout.channels;
		__entry->mailboxes = epoch->layout.mailboxes;
		__entry->islands = epoch->layout.islands;
		__entry->window = epoch->layout.window;
		__entry->limit = epoch->layout.max_transfer;
	),
	TP_printk("device=%d epoch=%u down=%u channels=%u mailboxes=%u islands=%u window=%u limit=%llu",
		  __entry->minor, __entry->epoch, __entry->down,
		  __entry->channels, __entry->mailboxes, __entry->islands,
		  __entry->window, __entry->limit)
);
/* clang-format on */

#endif /* NFCM_TRACE_H */

#undef TRACE_INCLUDE_PATH
#define TRACE_INCLUDE_PATH .
#undef TRACE_INCLUDE_FILE
#define TRACE_INCLUDE_FILE trace
#include <trace/define_trace.h>
