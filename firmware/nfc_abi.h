/* SPDX-License-Identifier: (GPL-2.0 WITH Linux-syscall-note) OR MIT */
/*
 * The device ABI: the mailbox area, the 64-byte slot and every payload that
 * travels in one. Firmware, cgo and the kernel module include this header; the
 * Go mirror is bridge/abi and a test compares the two field by field.
 *
 * Rules: little-endian, fixed-size types, natural alignment, no bit-fields, no
 * packed structs, no pointers. Reserved fields are zero and both sides reject
 * anything else. Byte counts are 64 bits wide. Constants are enums, so that
 * debug information carries them.
 */
#ifndef NFC_ABI_H
#define NFC_ABI_H

#ifdef __KERNEL__
#include <linux/build_bug.h>
#include <linux/stddef.h>
#include <linux/types.h>
typedef __u8 nfc_u8;
typedef __le16 nfc_le16;
typedef __le32 nfc_le32;
typedef __le64 nfc_le64;
typedef __u64 nfc_u64;
#define NFC_STATIC_ASSERT(cond, text) static_assert(cond, text)
#else
#include <stddef.h>
#include <stdint.h>
typedef uint8_t nfc_u8;
typedef uint16_t nfc_le16;
typedef uint32_t nfc_le32;
typedef uint64_t nfc_le64;
typedef uint64_t nfc_u64;
#define NFC_STATIC_ASSERT(cond, text) _Static_assert(cond, text)
#endif

#define NFC_ABI_SIZE(type, size) \
	NFC_STATIC_ASSERT(sizeof(struct type) == (size), "size of " #type)
#define NFC_ABI_OFF(type, field, off)                            \
	NFC_STATIC_ASSERT(offsetof(struct type, field) == (off), \
			  "offset of " #type "." #field)

/* Version, sizes and limits. */
enum nfc_limits {
	NFC_ABI_MAJOR = 2,
	NFC_ABI_MINOR = 0,
	NFC_SLOT_SIZE = 64,
	NFC_PAYLOAD_SIZE = 56, /* 14 registers of 4 bytes */
	NFC_LIST_ENTRIES = 6,
	NFC_EAGER_ENTRIES = 4, /* of an eager transfer, at most */
	NFC_EAGER_BYTES = 1 << 16, /* likewise: once it moves nothing ends it early */
	NFC_RUN_PAGES = 1 << 16, /* of a run, at most */
	NFC_PAGE_SHIFT = 12,
	NFC_PAGE_SIZE = 4096,
	NFC_CHANNELS_MAX = 1 << 24, /* channel ids are 24 bits */
	NFC_MAILBOXES_MAX = 64,
	NFC_ISLANDS_MAX = 16,
	NFC_SLOTS_MIN = 16, /* per ring, a power of two */
	NFC_SLOTS_MAX = 1 << 14,
	NFC_WINDOW_MAX = 1 << 13, /* lists in flight per transfer */
	NFC_REPEATS_MAX = 3, /* of one list; a host gives up at more */
	NFC_NAME_SIZE = 24, /* of programs and listeners, NUL included */
	NFC_WHY_SIZE = 40, /* text in b, c and name of the reply to a refused LOAD */
	NFC_MAGIC = 0x314d434e, /* "NCM1" */
};

/*
 * Names of programs that may keep an island to themselves, and with it the device from
 * others, start with this. A driver that many use starts them for administrators alone.
 */
#define NFC_LONE "lone."

/* Types of slots. Directions: h2d from host to device, d2h back. */
enum nfc_type {
	NFC_TYPE_NONE = 0,
	NFC_TYPE_DIRECT = 1, /* both: a message of 0..56 bytes */
	NFC_TYPE_IND_BEGIN = 2, /* both: a transfer is offered (nfc_begin) */
	NFC_TYPE_IND_LIST = 3, /* h2d: page entries (nfc_gather) */
	NFC_TYPE_ACK = 4, /* both: completion record (nfc_ack) */
	NFC_TYPE_DONE = 5, /* d2h: all bytes moved (nfc_ack) */
	NFC_TYPE_FIN = 6, /* h2d: the commit of a transfer (nfc_note) */
	NFC_TYPE_WITHDRAW = 7, /* both: take an unaccepted message back (nfc_note) */
	NFC_TYPE_WITHDRAWN = 8, /* both: it was taken back (nfc_note) */
	NFC_TYPE_ABORT = 9, /* h2d: end a transfer (nfc_note) */
	NFC_TYPE_ABORTED = 10, /* d2h: ended, the DMA engine is quiet (nfc_ack) */
	NFC_TYPE_CLOSE = 11, /* both: an end is closed (nfc_close) */
	NFC_TYPE_ERROR = 12, /* both: refused or failed (nfc_ack) */
	NFC_TYPE_HELLO = 13, /* area page: version and limits (nfc_hello) */
	NFC_TYPE_HEARTBEAT = 14, /* area page: liveness and counters (nfc_heartbeat) */
	NFC_TYPE_OFFER = 15, /* both: asks for READY when the other waits to read (nfc_note) */
	NFC_TYPE_READY = 16, /* both: it waits (nfc_note) */
	NFC_TYPE_EAGER = 17, /* h2d: a transfer with its pages (nfc_eager) */
	NFC_TYPE_CALL = 18, /* h2d: a question of 0..56 bytes, see enum nfc_call_length */
	NFC_TYPE_ANSWER = 19, /* d2h: 0..56 bytes, which end the CALL of that sequence */
	NFC_TYPE_COUNT = 20,
};

/*
 * One status for every refusal and failure. One table, bridge/status.go, has
 * the Go sentinel, the errno and the gRPC code of each.
 */
enum nfc_status {
	NFC_OK = 0,
	NFC_ECLOSED = 1, /* the end is closed */
	NFC_ETIMEOUT = 2, /* the target was not ready in time */
	NFC_ESIZE = 3, /* sizes of the two ends differ */
	NFC_EKIND = 4, /* one end is direct, the other indirect */
	NFC_ETOOLARGE = 5, /* over a limit */
	NFC_ERANGE = 6, /* outside device memory */
	NFC_EPROTO = 7, /* the peer broke the protocol */
	NFC_EDMA = 8, /* the DMA engine could not reach a page */
	NFC_EABORTED = 9, /* the host aborted the transfer */
	NFC_EWITHDRAWN = 10, /* taken back before it was accepted */
	NFC_ENOTARGET = 11, /* no such target, or not subscribed */
	NFC_EBUSY = 12, /* in use */
	NFC_ENOPROGRAM = 13, /* no program of that name */
	NFC_EABI = 14, /* built for another ABI */
	NFC_ENOMEM = 15, /* out of device resources */
	NFC_EINVAL = 16, /* a field has no meaning */
	NFC_ENOTSUP = 17, /* this device cannot */
	NFC_ESTOPPED = 18, /* the process is to stop */
	NFC_ERESET = 19, /* the device was reset */
	NFC_EFAULT = 20, /* the device is in fault */
	NFC_ESTALLED = 21, /* the device beat, but the transfer did not move on */
	NFC_STATUS_COUNT = 22,
};

/* Fields of the slot header, one little-endian 64-bit word. */
enum nfc_header_field {
	NFC_HDR_TYPE_SHIFT = 0, /* 7 bits */
	NFC_HDR_PHASE_SHIFT = 7, /* 1 bit: flips every lap of the ring */
	NFC_HDR_LENGTH_SHIFT =
		8, /* 8 bits: payload bytes; see nfc_list_length, nfc_call_length */
	NFC_HDR_EPOCH_SHIFT = 16, /* 8 bits */
	NFC_HDR_SEQUENCE_SHIFT = 24, /* 16 bits: low bits of the transaction id */
	NFC_HDR_CHANNEL_SHIFT = 40, /* 24 bits */
};

static inline nfc_u64 nfc_header(nfc_u64 type, nfc_u64 length, nfc_u64 epoch,
				 nfc_u64 sequence, nfc_u64 channel)
{
	return (type & 0x7f) << NFC_HDR_TYPE_SHIFT |
	       (length & 0xff) << NFC_HDR_LENGTH_SHIFT |
	       (epoch & 0xff) << NFC_HDR_EPOCH_SHIFT |
	       (sequence & 0xffff) << NFC_HDR_SEQUENCE_SHIFT |
	       (channel & 0xffffff) << NFC_HDR_CHANNEL_SHIFT;
}

static inline nfc_u64 nfc_header_type(nfc_u64 h)
{
	return h >> NFC_HDR_TYPE_SHIFT & 0x7f;
}

static inline nfc_u64 nfc_header_phase(nfc_u64 h)
{
	return h >> NFC_HDR_PHASE_SHIFT & 1;
}

static inline nfc_u64 nfc_header_length(nfc_u64 h)
{
	return h >> NFC_HDR_LENGTH_SHIFT & 0xff;
}

static inline nfc_u64 nfc_header_epoch(nfc_u64 h)
{
	return h >> NFC_HDR_EPOCH_SHIFT & 0xff;
}

static inline nfc_u64 nfc_header_sequence(nfc_u64 h)
{
	return h >> NFC_HDR_SEQUENCE_SHIFT & 0xffff;
}

static inline nfc_u64 nfc_header_channel(nfc_u64 h)
{
	return h >> NFC_HDR_CHANNEL_SHIFT & 0xffffff;
}

/* A mailbox slot: one cache line. The header is stored last, with release. */
struct nfc_slot {
	nfc_le64 header;
	nfc_le64 payload[7];
};
NFC_ABI_SIZE(nfc_slot, 64);
NFC_ABI_OFF(nfc_slot, header, 0);
NFC_ABI_OFF(nfc_slot, payload, 8);

/* Page entry: {pfn:40 | offset:12 | length-1:12}, one page at the most. */
enum nfc_entry_field {
	NFC_ENTRY_LENGTH_SHIFT = 0,
	NFC_ENTRY_OFFSET_SHIFT = 12,
	NFC_ENTRY_PFN_SHIFT = 24,
};

static inline nfc_u64 nfc_entry(nfc_u64 address, nfc_u64 length)
{
	return (address >> NFC_PAGE_SHIFT) << NFC_ENTRY_PFN_SHIFT |
	       (address & 0xfff) << NFC_ENTRY_OFFSET_SHIFT | (length - 1);
}

static inline nfc_u64 nfc_entry_address(nfc_u64 e)
{
	return e >> NFC_ENTRY_OFFSET_SHIFT;
}

static inline nfc_u64 nfc_entry_length(nfc_u64 e)
{
	return (e & 0xfff) + 1;
}

/*
 * Run: {address:48 | pages-1:16}, from an address to the end of so many pages, which
 * is 2^48 at most. The last run of a transfer ends with the transfer, in its last
 * page.
 */
enum nfc_run_field {
	NFC_RUN_PAGES_SHIFT = 0,
	NFC_RUN_ADDRESS_SHIFT = 16,
};

static inline nfc_u64 nfc_run(nfc_u64 address, nfc_u64 pages)
{
	return address << NFC_RUN_ADDRESS_SHIFT | (pages - 1);
}

static inline nfc_u64 nfc_run_address(nfc_u64 e)
{
	return e >> NFC_RUN_ADDRESS_SHIFT;
}

static inline nfc_u64 nfc_run_length(nfc_u64 e)
{
	return (((e & 0xffff) + 1) << NFC_PAGE_SHIFT) -
	       (nfc_run_address(e) & (NFC_PAGE_SIZE - 1));
}

/*
 * IND_LIST: six page entries and what is outstanding after them,
 * {outstanding:48 | list number:16}. The header's length counts the entries in
 * use, with NFC_LIST_D2H set for the pages of a device-to-host transfer: both
 * halves of a channel may move at once. NFC_LIST_RUNS is set if the entries are
 * runs. Unused entries are zero. The length of an EAGER is made the same way, but
 * for NFC_LIST_SUM.
 */
enum nfc_list_length {
	NFC_LIST_COUNT_MASK = 0x1f,
	NFC_LIST_SUM = 0x20, /* all lists of a transfer: DONE has a checksum; see NFC_CAP_SUM */
	NFC_LIST_RUNS = 0x40, /* needs NFC_CAP_RUNS */
	NFC_LIST_D2H = 0x80,
};

struct nfc_gather {
	nfc_le64 entry[6];
	nfc_le64 tail;
};
NFC_ABI_SIZE(nfc_gather, 56);
NFC_ABI_OFF(nfc_gather, entry, 0);
NFC_ABI_OFF(nfc_gather, tail, 48);

enum nfc_gather_field {
	NFC_TAIL_NUMBER_SHIFT = 0,
	NFC_TAIL_OUTSTANDING_SHIFT = 16,
};

/* IND_BEGIN: a transfer of size bytes is offered. */
struct nfc_begin {
	nfc_le64 transaction; /* wide transaction id */
	nfc_le64 size; /* bytes */
	nfc_le64 timeout_ns; /* that the target may stay unready; 0: the device decides */
	nfc_le64 rsvd[4];
};
NFC_ABI_SIZE(nfc_begin, 56);
NFC_ABI_OFF(nfc_begin, transaction, 0);
NFC_ABI_OFF(nfc_begin, size, 8);
NFC_ABI_OFF(nfc_begin, timeout_ns, 16);
NFC_ABI_OFF(nfc_begin, rsvd, 24);

/*
 * EAGER: a transfer whose pages are sent with its size. On h2d it is an offer
 * like IND_BEGIN. With NFC_LIST_D2H its entries are the pages for the bytes of
 * that transaction: the one offered, or the next one if nothing is.
 */
struct nfc_eager {
	nfc_le64 transaction;
	nfc_le64 size; /* bytes, at most NFC_EAGER_BYTES: the sum of the entries */
	nfc_le64 timeout_ns; /* h2d: as in nfc_begin; d2h: zero */
	nfc_le64 entry[4]; /* unused ones are zero */
};
NFC_ABI_SIZE(nfc_eager, 56);
NFC_ABI_OFF(nfc_eager, transaction, 0);
NFC_ABI_OFF(nfc_eager, size, 8);
NFC_ABI_OFF(nfc_eager, timeout_ns, 16);
NFC_ABI_OFF(nfc_eager, entry, 24);

/* The length of a CALL's header: its payload bytes, and what else is asked. */
enum nfc_call_length {
	NFC_CALL_BYTES_MASK = 0x3f,
	NFC_CALL_NOW = 0x80, /* ERROR(ETIMEOUT) unless the target waits */
};

/* How far a transaction is, in its ACK, DONE, ABORTED or ERROR. */
enum nfc_state {
	/*
	 * A message, or an eager transfer, was accepted. Of a CALL with a status: a
	 * process took the question, and no answer follows.
	 */
	NFC_STATE_CONSUMED = 0,
	NFC_STATE_READY = 1, /* both ends agreed: lists may flow */
	NFC_STATE_MOVING = 2, /* progress */
	NFC_STATE_REPEAT = 3, /* send again from list number `lists` */
	NFC_STATE_DONE = 4, /* every byte moved */
	NFC_STATE_FAILED = 5, /* ended, see status */
	NFC_STATE_COUNT = 6,
};

/* ACK, DONE, ABORTED, ERROR: a completion record. */
struct nfc_ack {
	nfc_le64 transaction;
	nfc_le64 processed; /* bytes moved so far */
	nfc_le64 outstanding; /* bytes still to move; the peer's size on ESIZE */
	nfc_le32 lists; /* cumulative lists consumed */
	nfc_le16 state; /* enum nfc_state */
	nfc_le16 status; /* enum nfc_status */
	/* Entry of the list that failed; DONE with NFC_LIST_SUM: CRC32C of the device's bytes. */
	nfc_le32 fault_index;
	nfc_le32 direction; /* enum nfc_direction: direction of the transaction */
	nfc_le64 begin_ns; /* device clock: transaction arrived */
	nfc_le64 now_ns; /* device clock: this record was written */
};
NFC_ABI_SIZE(nfc_ack, 56);
NFC_ABI_OFF(nfc_ack, transaction, 0);
NFC_ABI_OFF(nfc_ack, processed, 8);
NFC_ABI_OFF(nfc_ack, outstanding, 16);
NFC_ABI_OFF(nfc_ack, lists, 24);
NFC_ABI_OFF(nfc_ack, state, 28);
NFC_ABI_OFF(nfc_ack, status, 30);
NFC_ABI_OFF(nfc_ack, fault_index, 32);
NFC_ABI_OFF(nfc_ack, direction, 36);
NFC_ABI_OFF(nfc_ack, begin_ns, 40);
NFC_ABI_OFF(nfc_ack, now_ns, 48);

/* Which half of a channel, by the way its data flows. */
enum nfc_direction {
	NFC_H2D = 0,
	NFC_D2H = 1,
};

/* FIN, WITHDRAW, WITHDRAWN, ABORT, OFFER, READY: a transaction is named. */
struct nfc_note {
	nfc_le64 transaction;
	nfc_le32 direction; /* enum nfc_direction: direction of the transaction */
	nfc_le32 status; /* enum nfc_status: why */
	nfc_le64 rsvd[5];
};
NFC_ABI_SIZE(nfc_note, 56);
NFC_ABI_OFF(nfc_note, transaction, 0);
NFC_ABI_OFF(nfc_note, direction, 8);
NFC_ABI_OFF(nfc_note, status, 12);
NFC_ABI_OFF(nfc_note, rsvd, 16);

/* CLOSE: the sender will not use that half any more. */
struct nfc_close {
	nfc_le32 halves; /* 1 << enum nfc_direction, ored */
	nfc_le32 status; /* enum nfc_status: why */
	nfc_le64 generation; /* subscription this belongs to, from OPEN */
	nfc_le64 rsvd[5];
};
NFC_ABI_SIZE(nfc_close, 56);
NFC_ABI_OFF(nfc_close, halves, 0);
NFC_ABI_OFF(nfc_close, status, 4);
NFC_ABI_OFF(nfc_close, generation, 8);
NFC_ABI_OFF(nfc_close, rsvd, 16);

/* Capability bits of HELLO. */
enum nfc_capability {
	NFC_CAP_LOAD = 1 << 0, /* programs load at run time */
	NFC_CAP_EAGER = 1 << 1, /* EAGER, of at most hello.eager entries */
	NFC_CAP_RUNS = 1 << 2, /* lists may have NFC_LIST_RUNS */
	NFC_CAP_HOST_RINGS = 1 << 3, /* rings to the host are in nfc_area.host_area */
	NFC_CAP_ROUNDS = 1 << 4, /* ACK(MOVING) for each list to the host */
	NFC_CAP_READY = 1 << 5, /* a host answers OFFER, of another host, with READY */
	NFC_CAP_NAMES = 1 << 6, /* LISTEN and CONNECT take a name */
	NFC_CAP_SUM = 1 << 7, /* lists may have NFC_LIST_SUM */
	NFC_CAP_CALLS = 1 << 8, /* CALL and ANSWER */
	NFC_CAP_MOVE = 1 << 9, /* TICKET, VOID and CLAIM */
	NFC_CAP_NEWS = 1 << 10, /* the host reports in nfc_island_line.news where it puts */
	NFC_CAP_KNOWN = (1 << 11) - 1,
};

/*
 * HELLO: the device's version and limits; the host answers with its own.
 *
 * Channel ids are dealt to islands in blocks of ceil(channels / islands), and
 * each island has mailboxes / islands mailboxes in a row. The mailbox of a
 * channel is island * (mailboxes / islands) + id % (mailboxes / islands).
 */
struct nfc_hello {
	nfc_le32 magic;
	nfc_le16 major;
	nfc_le16 minor;
	nfc_le32 capabilities; /* offered by the device, accepted by the host */
	nfc_le32 channels; /* channel ids are below this */
	nfc_le16 mailboxes; /* a multiple of islands; see above */
	nfc_le16 islands;
	nfc_le32 slots; /* per ring */
	nfc_le32 window; /* lists in flight per transfer */
	nfc_le32 beat_ms; /* heartbeat interval */
	nfc_le64 max_transfer; /* bytes */
	nfc_le32 read_managers;
	nfc_le32 write_managers;
	nfc_le32 contexts; /* processes the device can run */
	nfc_le16 eager; /* entries of an EAGER, at most; without the capability zero */
	nfc_le16 rsvd;
};
NFC_ABI_SIZE(nfc_hello, 56);
NFC_ABI_OFF(nfc_hello, magic, 0);
NFC_ABI_OFF(nfc_hello, major, 4);
NFC_ABI_OFF(nfc_hello, minor, 6);
NFC_ABI_OFF(nfc_hello, capabilities, 8);
NFC_ABI_OFF(nfc_hello, channels, 12);
NFC_ABI_OFF(nfc_hello, mailboxes, 16);
NFC_ABI_OFF(nfc_hello, islands, 18);
NFC_ABI_OFF(nfc_hello, slots, 20);
NFC_ABI_OFF(nfc_hello, window, 24);
NFC_ABI_OFF(nfc_hello, beat_ms, 28);
NFC_ABI_OFF(nfc_hello, max_transfer, 32);
NFC_ABI_OFF(nfc_hello, read_managers, 40);
NFC_ABI_OFF(nfc_hello, write_managers, 44);
NFC_ABI_OFF(nfc_hello, contexts, 48);
NFC_ABI_OFF(nfc_hello, eager, 52);
NFC_ABI_OFF(nfc_hello, rsvd, 54);

/* Two-bit readings of the diagnostic word: 0 normal, 1 sick, 2 broken. */
enum nfc_diagnostic_field {
	NFC_DIAG_SERVICE_NETWORK_SHIFT = 0,
	NFC_DIAG_MEMORY_SHIFT = 2,
	NFC_DIAG_PERIPHERAL_SHIFT = 4,
	NFC_DIAG_CORE_SHIFT = 6,
	NFC_DIAG_CURRENT_SHIFT = 8,
	NFC_DIAG_VOLTAGE_SHIFT = 10,
	NFC_DIAG_TEMPERATURE_SHIFT = 12,
	NFC_DIAG_Z_MINUS_SHIFT = 14,
	NFC_DIAG_Z_PLUS_SHIFT = 16,
	NFC_DIAG_Y_MINUS_SHIFT = 18,
	NFC_DIAG_Y_PLUS_SHIFT = 20,
	NFC_DIAG_X_MINUS_SHIFT = 22,
	NFC_DIAG_X_PLUS_SHIFT = 24,
	NFC_DIAG_SPARE_SHIFT = 26, /* 5 bits, zero */
	NFC_DIAG_VALID_SHIFT = 31,
};

enum nfc_diagnostic_level {
	NFC_DIAG_NORMAL = 0,
	NFC_DIAG_SICK = 1,
	NFC_DIAG_BROKEN = 2,
};

/*
 * HEARTBEAT: written in place in the area page. The header's sequence is the
 * low 16 bits of beat; a reader that sees it change reads again.
 */
struct nfc_heartbeat {
	nfc_le64 beat; /* counts up by one each interval */
	nfc_le64 now_ns; /* device clock */
	nfc_le32 diagnostic; /* enum nfc_diagnostic_field */
	nfc_le32 processes; /* running */
	nfc_le64 messages; /* taken from h2d mailboxes */
	nfc_le64 bytes; /* moved by the DMA engines */
	nfc_le64 dropped; /* messages refused as stale or malformed */
	nfc_le64 parked; /* requests waiting for a target */
};
NFC_ABI_SIZE(nfc_heartbeat, 56);
NFC_ABI_OFF(nfc_heartbeat, beat, 0);
NFC_ABI_OFF(nfc_heartbeat, now_ns, 8);
NFC_ABI_OFF(nfc_heartbeat, diagnostic, 16);
NFC_ABI_OFF(nfc_heartbeat, processes, 20);
NFC_ABI_OFF(nfc_heartbeat, messages, 24);
NFC_ABI_OFF(nfc_heartbeat, bytes, 32);
NFC_ABI_OFF(nfc_heartbeat, dropped, 40);
NFC_ABI_OFF(nfc_heartbeat, parked, 48);

/* Targets that are always there. Programs are given ids from FIRST up. */
enum nfc_target {
	NFC_TARGET_CONTROL = 0, /* the host manager's own; not for subscribers */
	NFC_TARGET_LOOPBACK = 1, /* returns every message and transfer */
	NFC_TARGET_LOG = 2, /* messages are log lines; returns the device's */
	NFC_TARGET_TELEMETRY = 3, /* u32 page in, seven u64 counters out */
	NFC_TARGET_TIME = 4, /* u64 host ns in, {host, device in, device out} out */
	NFC_TARGET_FIRST = 16,
	NFC_TARGET_HOSTS = 0xff0000, /* from here on: hosts that listen */
};

/*
 * A target of any node of a fabric in 64 bits: its number, and with bit 63 the
 * node's coordinates. Bits between are zero.
 */
enum nfc_id_field {
	NFC_ID_TARGET_SHIFT = 0, /* 24 bits */
	NFC_ID_Z_SHIFT = 32, /* 8 bits each */
	NFC_ID_Y_SHIFT = 40,
	NFC_ID_X_SHIFT = 48,
	NFC_ID_NODE_SHIFT = 63, /* the coordinates are there */
};

static inline nfc_u64 nfc_id(nfc_u64 x, nfc_u64 y, nfc_u64 z, nfc_u64 target)
{
	return 1ull << NFC_ID_NODE_SHIFT | (x & 0xff) << NFC_ID_X_SHIFT |
	       (y & 0xff) << NFC_ID_Y_SHIFT | (z & 0xff) << NFC_ID_Z_SHIFT |
	       (target & 0xffffff) << NFC_ID_TARGET_SHIFT;
}

/* {x:8 | y:8 | z:8}, as in the header of a packet; 0 without a node. */
static inline nfc_u64 nfc_id_node(nfc_u64 id)
{
	return id >> NFC_ID_Z_SHIFT & 0xffffff;
}

static inline nfc_u64 nfc_id_target(nfc_u64 id)
{
	return id >> NFC_ID_TARGET_SHIFT & 0xffffff;
}

static inline nfc_u64 nfc_id_has_node(nfc_u64 id)
{
	return id >> NFC_ID_NODE_SHIFT;
}

/* Are all bits zero that are to be? */
static inline nfc_u64 nfc_id_valid(nfc_u64 id)
{
	return !(id >> 24 & 0xff) && !(id >> 56 & 0x7f) &&
	       (nfc_id_has_node(id) || !nfc_id_node(id));
}

/* Operations on the control channel; a request is answered by one reply. */
enum nfc_control_op {
	NFC_CONTROL_OPEN = 1, /* a: target; reply a, b: next ids h2d, d2h; c: generation */
	/* name, a: first target or 0, b: targets, c: argument; reply a: process, b: first target */
	NFC_CONTROL_START = 2,
	NFC_CONTROL_STOP = 3, /* a: process */
	NFC_CONTROL_LOAD = 4, /* a: image bytes, then a transfer of them; reply name */
	NFC_CONTROL_PROGRAM = 5, /* a: index; reply name */
	NFC_CONTROL_MEMORY = 6, /* a: enum nfc_memory; reply a: base, b: size, c: free */
	NFC_CONTROL_RUNNING = 7, /* a: process; reply b: 1 until it has returned, then 0 */
	/* name or none, a: anyone, b: enum nfc_guests; reply a: process, b: target, c: own */
	NFC_CONTROL_LISTEN = 8,
	/* a: a target, b: a guest or 0; or name, b: anyone; reply a: to open, b: the listener */
	NFC_CONTROL_CONNECT = 9,
	/* a: target of an end, b: of the channel that it is to pass through; reply a: a ticket */
	NFC_CONTROL_TICKET = 10,
	NFC_CONTROL_VOID = 11, /* a: target, b: ticket; reply b: 1 if the end has moved */
	/* a: target of the channel that the ticket came through, b: ticket; reply a: to open */
	NFC_CONTROL_CLAIM = 12,
};

/* Which processes a host that listens knows of. */
enum nfc_guests {
	NFC_GUESTS_NONE = 0,
	NFC_GUESTS_HERE = 1, /* of the same device */
	NFC_GUESTS_ALL = 2, /* of other nodes as well, which the host connects to */
};

/*
 * Ored with the target that a listener offers its host. Of a process at another
 * node: with that node and the number of the guest, laid out as an id.
 */
enum nfc_accept {
	NFC_ACCEPT_PROCESS = 1 << 30, /* a process connected, and no host */
};

struct nfc_control {
	nfc_le16 op; /* enum nfc_control_op */
	nfc_le16 status; /* reply: enum nfc_status; request: zero */
	nfc_le32 request; /* repeated in the reply */
	nfc_le64 a;
	nfc_le64 b;
	nfc_le64 c;
	nfc_u8 name[NFC_NAME_SIZE]; /* NUL-terminated */
};
NFC_ABI_SIZE(nfc_control, 56);
NFC_ABI_OFF(nfc_control, op, 0);
NFC_ABI_OFF(nfc_control, status, 2);
NFC_ABI_OFF(nfc_control, request, 4);
NFC_ABI_OFF(nfc_control, a, 8);
NFC_ABI_OFF(nfc_control, b, 16);
NFC_ABI_OFF(nfc_control, c, 24);
NFC_ABI_OFF(nfc_control, name, 32);

/* Device memory types. An address is 40 bits: {type:2 | offset:38}. */
enum nfc_memory {
	NFC_CLS = 0, /* cluster local scratch: smallest, fastest */
	NFC_CTM = 1, /* cluster target memory */
	NFC_IMEM = 2, /* internal memory */
	NFC_EMEM = 3, /* external memory: largest, slowest */
	NFC_MEMORY_COUNT = 4,
	NFC_MEMORY_SHIFT = 38,
};

/* State of the device, in the area page. */
enum nfc_device_state {
	NFC_DEVICE_OFF = 0,
	NFC_DEVICE_BOOTING = 1,
	NFC_DEVICE_READY = 2, /* HELLO is valid */
	NFC_DEVICE_FAULT = 3,
};

/* One word on a cache line of its own. */
struct nfc_line {
	nfc_le64 word;
	nfc_le64 rsvd[7];
};
NFC_ABI_SIZE(nfc_line, 64);
NFC_ABI_OFF(nfc_line, word, 0);
NFC_ABI_OFF(nfc_line, rsvd, 8);

/*
 * Words between the host and an island, beside messages. Bit n of news is the n-th mailbox
 * of the island. The host sets it behind a slot there, unless watched is n + 1. The island
 * takes all bits before it looks for slots.
 */
struct nfc_island_line {
	nfc_le64 word; /* (D sets 1, H clears) the island sleeps: ring its doorbell */
	nfc_le64 news; /* (H sets bits, D takes them) with NFC_CAP_NEWS */
	nfc_le64 watched; /* (D) 0: each slot needs its bit */
	nfc_le64 rsvd[5];
};
NFC_ABI_SIZE(nfc_island_line, 64);
NFC_ABI_OFF(nfc_island_line, word, 0);
NFC_ABI_OFF(nfc_island_line, news, 8);
NFC_ABI_OFF(nfc_island_line, watched, 16);
NFC_ABI_OFF(nfc_island_line, rsvd, 24);

/*
 * The first page of the mailbox area. Offsets are from its start.
 * Writers: (D) the device, (H) the host.
 */
struct nfc_area {
	nfc_le32 magic; /* (D) NFC_MAGIC */
	nfc_le16 major; /* (D) */
	nfc_le16 minor; /* (D) */
	nfc_le64 size; /* (D) bytes of the whole area */
	nfc_le64 park_offset; /* (D) nfc_le32 per channel, see NFC_PARK_* */
	nfc_le64 mailbox_offset; /* (D) first mailbox */
	nfc_le64 mailbox_stride; /* (D) bytes from one mailbox to the next */
	nfc_le32 epoch; /* (D) counts resets */
	nfc_le32 state; /* (D) enum nfc_device_state */
	nfc_le64 host_area; /* (H) bus address of nfc_host_area, with NFC_CAP_HOST_RINGS */
	nfc_le64 rsvd;
	struct nfc_slot device_hello; /* (D) */
	struct nfc_slot host_hello; /* (H) */
	struct nfc_slot heartbeat; /* (D) */
	struct nfc_island_line island[16];
};
NFC_ABI_SIZE(nfc_area, 1280);
NFC_ABI_OFF(nfc_area, magic, 0);
NFC_ABI_OFF(nfc_area, major, 4);
NFC_ABI_OFF(nfc_area, minor, 6);
NFC_ABI_OFF(nfc_area, size, 8);
NFC_ABI_OFF(nfc_area, park_offset, 16);
NFC_ABI_OFF(nfc_area, mailbox_offset, 24);
NFC_ABI_OFF(nfc_area, mailbox_stride, 32);
NFC_ABI_OFF(nfc_area, epoch, 40);
NFC_ABI_OFF(nfc_area, state, 44);
NFC_ABI_OFF(nfc_area, host_area, 48);
NFC_ABI_OFF(nfc_area, rsvd, 56);
NFC_ABI_OFF(nfc_area, device_hello, 64);
NFC_ABI_OFF(nfc_area, host_hello, 128);
NFC_ABI_OFF(nfc_area, heartbeat, 192);
NFC_ABI_OFF(nfc_area, island, 256);

/*
 * Park word of a channel, written by the host: a call is parked on that half,
 * so a message to it must ring the host's doorbell.
 */
enum nfc_park {
	NFC_PARK_H2D = 1 << NFC_H2D,
	NFC_PARK_D2H = 1 << NFC_D2H,
};

/*
 * A mailbox: two rings and their consumer counters. Slots follow: first the
 * h2d ring, then the d2h ring. Counters are cumulative and free-running; the
 * producer computes what is in flight from them.
 */
struct nfc_mailbox {
	struct nfc_line h2d_head; /* (D) slots the device consumed */
	struct nfc_line d2h_head; /* (H) slots the host consumed */
};
NFC_ABI_SIZE(nfc_mailbox, 128);
NFC_ABI_OFF(nfc_mailbox, h2d_head, 0);
NFC_ABI_OFF(nfc_mailbox, d2h_head, 64);

/*
 * With NFC_CAP_HOST_RINGS: memory of the host's own, of whole pages, which it
 * gives zeroed. Its words replace those of the area. Behind this structure are
 * the d2h rings,
 * mailbox by mailbox, and the park words; those of the area, its heartbeat, island
 * words and counters are not used. (D) the device, (H) the host.
 */
struct nfc_host_area {
	struct nfc_slot heartbeat; /* (D) */
	struct nfc_line island[16]; /* (D) 1 while the island sleeps, ring its doorbell */
	struct nfc_mailbox mailbox[64]; /* as in the area */
};
NFC_ABI_SIZE(nfc_host_area, 9280);
NFC_ABI_OFF(nfc_host_area, heartbeat, 0);
NFC_ABI_OFF(nfc_host_area, island, 64);
NFC_ABI_OFF(nfc_host_area, mailbox, 1088);

/* Sizes of the parts of an area beside slots. */
enum nfc_sizes {
	NFC_AREA_SIZE = sizeof(struct nfc_area),
	NFC_MAILBOX_SIZE = sizeof(struct nfc_mailbox), /* before its slots */
	NFC_HOST_AREA_SIZE = 12288, /* before the first ring */
};

/* Where the d2h ring of a mailbox is in the host's area; of mailbox n: where they end. */
static inline nfc_u64 nfc_host_ring(nfc_u64 slots, nfc_u64 mailbox)
{
	return NFC_HOST_AREA_SIZE + mailbox * slots * NFC_SLOT_SIZE;
}

/* Where the park word of a channel is there, which is behind the rings. */
static inline nfc_u64 nfc_host_park(nfc_u64 mailboxes, nfc_u64 slots,
				    nfc_u64 channel)
{
	return nfc_host_ring(slots, mailboxes) + channel * sizeof(nfc_le32);
}

/*
 * A device program in a shared object exports `nfc_program_table` of this
 * version; see nfc_fw.h.
 */
enum nfc_program_abi {
	NFC_PROGRAM_ABI = NFC_ABI_MAJOR << 16 | 5, /* counts up with its calls */
};

#endif /* NFC_ABI_H */
