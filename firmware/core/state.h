/* SPDX-License-Identifier: MIT */
/*
 * The device's own state. Everything below struct nfc_island is touched by its
 * owner only, its thread or a call that runs it, so it needs no lock. Islands
 * share the DMA claim word, calls, the memory allocator and the registry.
 */
#ifndef NFC_STATE_H
#define NFC_STATE_H

#include <stdatomic.h>
#include <stdbool.h>

#include "../nfc_abi.h"
#include "../nfc_fw.h"
#include "../nfc_port.h"

enum nfc_internal_limits {
	NFC_RESERVE = 4, /* d2h slots one h2d message may need */
	NFC_TAKE_BUDGET = 64, /* h2d messages per manager turn */
	NFC_PIECES = 32, /* DMA pieces per batch */
	NFC_PIECE_MIN = 32 << 10, /* bytes; a batch is cut no finer */
	NFC_PIECE_MAX = 256 << 10, /* bytes between two checks of the mailbox */
	NFC_BATCH_MAX = 2 << 20, /* bytes */
	NFC_LIST_BYTES = NFC_LIST_ENTRIES * NFC_PAGE_SIZE, /* of full pages */
	NFC_OPEN = 16, /* batches on offer to other DMA engines */
	NFC_BLOCKS = 1024, /* allocations of a host */
	NFC_PROGRAMS = 64, /* the device's own, and as many of each host */
	NFC_IMAGES = 64, /* of a host, those included that only run */
	NFC_LISTENERS = 64,
	NFC_HOST_LISTENERS = 8,
	NFC_LISTENER_WAITING = 16, /* hosts that connected, and were not accepted */
	NFC_RELAYS = 256, /* their numbers are sent in 8 bits */
	NFC_HOST_RELAYS = 64, /* ends */
	NFC_PAIR_RELAYS = 16, /* from one host to another: others get theirs */
	NFC_ANSWER_NS = 2000000000, /* for a host that another one, or its process, waits for */
	NFC_BOUNCE = 64 << 10, /* bytes of a transfer between hosts, on their way */
	NFC_BOUNCE_PIECE = 16 << 10, /* so that some of them are */
	NFC_LOG_LINES = 64, /* kept for a host's log service */
	NFC_LOG_LINE = 256, /* bytes of a line that reach the port */
	NFC_AGAIN = 1 << 20, /* a wake-up that means: check again */
};

/* State of a half of a channel. */
enum nfc_half_state {
	NFC_HALF_IDLE = 0,
	NFC_HALF_MESSAGE, /* a direct message is offered */
	NFC_HALF_OFFERED, /* a transfer is offered */
	NFC_HALF_MOVING, /* lists flow, the engine moves bytes */
	NFC_HALF_COMMIT, /* DONE is out, FIN is not in */
	NFC_HALF_TAKEN, /* h2d: the process has the question, and answers it */
};

/* The kind of the message that channel_question took last, until its answer. */
enum nfc_question {
	NFC_QUESTION_NONE = 0,
	NFC_QUESTION_MESSAGE, /* a message: its answer is one, too */
	NFC_QUESTION_CALL, /* the host waits, as long as h2d is TAKEN */
};

/* The sides that closed a half. */
enum nfc_closed {
	NFC_CLOSED_HOST = 1,
	NFC_CLOSED_DEVICE = 2,
	NFC_CLOSED_OVER = 4, /* of a channel that cannot be subscribed again */
};

/* The call in which a process is blocked. */
enum nfc_wait {
	NFC_WAIT_NONE = 0,
	NFC_WAIT_READ,
	NFC_WAIT_READ_ANY,
	NFC_WAIT_READ_IND,
	NFC_WAIT_TAKE,
	NFC_WAIT_OFFER,
	NFC_WAIT_ALT,
	NFC_WAIT_WRITE,
	NFC_WAIT_WRITE_IND,
	NFC_WAIT_MOVING, /* a transfer of its own is under way */
	NFC_WAIT_OPEN, /* for a subscriber */
	NFC_WAIT_JOIN, /* for the answer of another node */
	NFC_WAIT_CONNECT, /* for a host that connects */
	NFC_WAIT_SLEEP,
	NFC_WAIT_LOG,
};

/* Where the bytes of a transfer are. */
enum nfc_source {
	NFC_SOURCE_HOST = 0, /* at the addresses of lists or pages */
	NFC_SOURCE_PROCESS, /* another process has them, at this node */
	NFC_SOURCE_NODE, /* or at another, which is asked for them */
	NFC_SOURCE_PEER, /* another host has them, at the addresses of its lists */
};

/* One copy: part of a batch. */
struct nfc_piece {
	uint64_t bus;
	uint64_t from; /* of NFC_SOURCE_PEER: bus address there */
	uint8_t *memory;
	uint64_t length;
	uint64_t list; /* number of its first list */
	uint32_t entry; /* index of its first entry */
};

/*
 * A run of pieces that any engine may work on. The owner fills it and stores
 * claim; engines take pieces by moving claim.
 */
struct nfc_batch {
	_Atomic uint64_t
		claim; /* {count:32 | taken from the back:16 | from the front:16} */
	_Atomic uint32_t done; /* pieces finished */
	_Atomic uint32_t pending; /* a bit each: the port has begun it */
	_Atomic uint32_t halfway; /* a bit each: it was read, and is to be written */
	_Atomic uint32_t failed; /* {status:16 | piece+1:16} of the first failure */
	uint32_t claimed; /* at an abort: pieces that will finish */
	uint64_t bytes;
	struct nfc_piece piece[NFC_PIECES];
};

/* Where in its lists a transfer is. */
struct nfc_mark {
	uint64_t planned, cursor, offset;
	uint32_t entry;
};

/*
 * A transfer under way. Embedded in the process that takes part in it, or in a relay: one
 * for each host, of which the receiving one's moves the bytes, and the other follows.
 */
struct nfc_transfer {
	struct nfc_transfer *next; /* active list of its share */
	struct nfc_transfer *peer; /* the other host's, until one has done; or NULL */
	struct nfc_channel *channel;
	uint8_t *memory;
	uint64_t from; /* another process's: its address, or {transaction:16 | 0} */
	uint64_t id;
	uint64_t size;
	uint64_t received; /* bytes described by lists so far */
	uint64_t planned; /* bytes put in batches so far */
	uint64_t processed; /* bytes moved: all before this one */
	uint64_t lists; /* lists received */
	uint64_t cursor; /* list the next batch starts in */
	uint64_t finished; /* lists moved */
	uint64_t acked; /* lists the host knows to be finished … */
	uint64_t reported; /* … and bytes */
	uint64_t offset; /* bytes from the cursor's entry on already planned */
	uint32_t entry; /* within the cursor's list */
	uint32_t fault_index;
	uint32_t sum; /* CRC32C of the bytes moved, if summed */
	uint8_t direction; /* enum nfc_direction */
	uint8_t busy; /* a batch is out */
	uint8_t summed; /* its lists ask for a checksum */
	uint8_t repeat; /* dropping lists until `lists` is sent again */
	uint8_t ending; /* enum nfc_status: finish when quiet */
	uint8_t aborted; /* the host asked: answer ABORTED */
	uint8_t shared; /* index + 1 in the open table */
	uint8_t eager; /* it ends like a message */
	uint8_t source; /* enum nfc_source */
	uint8_t tries; /* of an eager one, whose page was busy; or between hosts */
	uint8_t follows; /* its peer moves the bytes */
	uint8_t greets; /* READY is due, of one that follows */
	struct nfc_mark mark; /* between hosts: before the batch */
	uint64_t until; /* clock: what its host, or the other, owes is due; 0: nothing */
	/* Lists, one per slot of the window: the header's length alone, entries, where it starts. */
	struct nfc_slot *queue;
	struct nfc_batch batch;
};

/* A loaded image. The port gets it back when its last user releases it. */
struct nfc_loaded {
	struct nfc_image image; /* no handle: the place is free */
	uint32_t users; /* names in the registry, and processes */
};

/* A name that Start knows. */
struct nfc_entry {
	const struct nfc_program *program;
	struct nfc_loaded *loaded; /* NULL: the device's own program */
};

struct nfc_process {
	struct nfc_stack stack;
	struct nfc_island *island;
	struct nfc_host *host; /* its ports are channels of */
	struct nfc_share *share; /* of the island, which is that host's */
	struct nfc_process *next; /* ready queue */
	const struct nfc_program *program; /* NULL: free */
	struct nfc_loaded *loaded; /* it is a user of */
	_Atomic uint64_t id; /* 0: none; stored last, so that name belongs to it */
	_Atomic uint64_t
		stop_id; /* the host asked this id to stop; any island stores it */
	_Atomic uint64_t name[NFC_NAME_SIZE / 8]; /* of program, for other threads */
	uint64_t argument;
	uint32_t first; /* target of port 0 */
	uint32_t ports;
	uint8_t ready; /* in the ready queue or running */
	uint8_t stop;
	uint8_t service; /* not to be stopped; other threads read it */
	uint8_t prompt; /* a call may run it */
	uint8_t calling; /* another island holds a pointer to its stack */
	uint8_t foreign; /* it is in the code of its image, not in the firmware */
	uint8_t wait; /* enum nfc_wait */
	int32_t result;
	void *buf; /* of the read it waits in */
	uint64_t length;
	struct nfc_offer *taken; /* of channel_take; NULL: another call */
	uint8_t answers; /* that call is channel_question */
	void *room; /* … its device memory for a transfer */
	uint64_t room_size;
	uint64_t wake_at; /* clock, 0: never */
	struct nfc_joint *joints; /* that it made, those it closed included */
	struct nfc_relay *guests; /* the same, to hosts that listen */
	struct nfc_transfer transfer;
	const char *crash; /* how it crashed; NULL: it did not */
};

/*
 * The pages of an eager transfer: a list's length, entries, and the bytes. Those of
 * another process are in one piece.
 */
struct nfc_pages {
	uint64_t from; /* as in a transfer; 0: the entries have addresses */
	uint8_t source;
	uint64_t length; /* without NFC_LIST_D2H */
	uint64_t size;
	uint64_t entry[NFC_EAGER_ENTRIES];
};

struct nfc_half {
	uint64_t next; /* next transaction id */
	struct nfc_process *waiter;
	struct nfc_transfer *transfer; /* MOVING */
	uint8_t state; /* enum nfc_half_state */
	uint8_t closed; /* enum nfc_closed, ored */
	uint8_t notice; /* h2d: the host's close is not yet reported */
	uint8_t ready_due; /* h2d: an OFFER waits for READY */
};

struct nfc_channel {
	struct nfc_half half[2]; /* by enum nfc_direction */
	struct nfc_process *process; /* NULL: no such target */
	struct nfc_island *island;
	struct nfc_rings *rings;
	uint64_t generation; /* of the subscription; 0: never opened */
	uint32_t id;
	uint8_t open;
	uint8_t ending; /* CLOSE is to be answered when quiet */
	uint8_t has_list;
	uint8_t timed; /* in the island's deadline list */
	uint8_t posted; /* pages are posted here for the next transfer to the host */
	uint8_t recalled; /* in the island's recall list */
	uint8_t question; /* enum nfc_question */
	uint8_t guest; /* it is one's, see struct nfc_relay */
	uint8_t moved; /* the end that it had is another channel's now */
	struct nfc_relay_end
		*relay; /* another host is at the far end; NULL: a process is */
	uint64_t offered; /* bytes of the transfer that another host offered last */
	uint64_t begin_ns; /* the parked offer arrived */
	uint64_t deadline;
	struct nfc_channel *timed_prev, *timed_next;
	struct nfc_channel *recall_next;
	uint64_t recall_id; /* transaction to give back */
	struct nfc_pages post; /* posted */
	struct nfc_slot parked; /* DIRECT, CALL, IND_BEGIN or EAGER, MESSAGE or OFFERED on h2d */
	struct nfc_slot list; /* list 0 beside it */
};

/* limit of rings that were not used: there is no room until it is known where d2h is. */
#define NFC_UNMET (1ull << 63)

/* The device's side of a mailbox, a read manager and a write manager; or a joint's end. */
struct nfc_rings {
	struct nfc_host *host;
	struct nfc_share *share; /* it belongs to */
	struct nfc_joint *joint; /* NULL: the host is at the other end */
	_Atomic uint64_t *h2d_head, *d2h_head; /* slots consumed */
	struct nfc_slot *h2d, *d2h;
	uint32_t island; /* that serves it */
	uint64_t mask; /* slots - 1 */
	uint32_t shift; /* log2 slots */
	_Atomic uint64_t head; /* h2d slots taken; others read it, too */
	uint64_t published; /* head as last stored for the host */
	uint64_t tail; /* d2h slots put */
	uint64_t limit; /* d2h_head as last read, or NFC_UNMET */
	uint64_t d2h_at; /* bus address of d2h in the host's own area; 0: it is here */
	uint64_t asked; /* tail at the last doorbell for room */
};

/*
 * Work for another island, done on its thread. It is on the caller's stack.
 * While it is queued the caller may withdraw it. A function that returns
 * NFC_AGAIN has no waiting caller.
 */
struct nfc_call {
	struct nfc_call *next;
	int (*fn)(struct nfc_island *island, void *arg);
	void *arg;
	int result;
	_Atomic uint32_t done;
};

/* Events of a joint whose other end is at another node. */
enum nfc_joint_events {
	NFC_JOINT_ASKED = 1, /* for its target */
	NFC_JOINT_JOINED = 2, /* its process's call was answered */
	NFC_JOINT_LOST = 4,
};

/* Such a joint, beside what each has. */
struct nfc_joint_far {
	bool used; /* it is one */
	uint32_t here; /* which end is this device's */
	uint32_t target; /* that is asked for */
	_Atomic uint32_t events; /* enum nfc_joint_events, ored */
	_Atomic bool answered; /* joined is there, at the target's node */
	_Atomic bool over; /* the device has done with it */
	struct nfc_joined joined;
	_Atomic uint32_t
		lock; /* guards what follows: what is offered to the other end */
	const uint8_t *bytes; /* NULL: nothing */
	uint64_t size, id;
	/* Of a guest's way to a host at another node. */
	struct nfc_relay *relay; /* NULL: it is over */
	struct nfc_far_guest guest; /* at that node */
	_Atomic bool notified; /* … whose host is notified */
};

/*
 * A channel between two processes of a host: rings of which each is the h2d ring of
 * one end and the d2h ring of the other. An end is of its process's island; what it
 * has to take is a call to that. Record 0060.
 */
struct nfc_joint {
	_Atomic uint32_t ends; /* that hold it */
	_Atomic uint32_t calls; /* queued or served; at 0, without ends, it is free */
	struct nfc_joint *next; /* of the process that made it */
	/* The fields below are zero when two ends begin to use it. */
	struct nfc_channel *channel[2]; /* of its ends: that process's, the target */
	struct nfc_channel caller; /* the former */
	struct nfc_rings *mailbox; /* the target's own */
	struct nfc_rings rings[2];
	struct nfc_call call[2];
	_Atomic uint32_t called[2];
	struct nfc_joint_far far;
	_Atomic uint64_t head[2]; /* of the rings */
	struct nfc_slot slot[2][NFC_JOINT_SLOTS];
};

/* Events of an end of a relay. */
enum nfc_relay_events {
	NFC_RELAY_ANSWERED = 1, /* its message, with a status */
	NFC_RELAY_OFFERED = 2, /* a message of the other end, which is in `offer` */
	NFC_RELAY_WITHDRAWN = 4, /* that one is withdrawn */
	NFC_RELAY_ASKED = 8, /* the other host asks whether this one waits */
	NFC_RELAY_READY = 16, /* the other host waits */
	NFC_RELAY_CLOSED = 32, /* its h2d half, and d2h the bit above */
	NFC_RELAY_ENDED = 128, /* there is no other end any more: the last event */
	NFC_RELAY_STOPPED = 256, /* but for a guest's: its process is to stop */
};

/*
 * An end of a relay, with a channel of its host. Of its island's owner, but for what the
 * other end puts: events, and what they are about.
 */
struct nfc_relay_end {
	struct nfc_relay *relay;
	struct nfc_transfer give,
		take; /* of its host: what that offered, what it takes */
	struct nfc_host *host; /* NULL: the end is released. Under the device's lock. */
	struct nfc_channel *ch; /* NULL: it has none yet, or is released */
	struct nfc_relay_end *next; /* of the island's that wait for room */
	uint32_t island;
	uint8_t waits; /* in that list */
	uint8_t asked; /* to return its message: enum nfc_status is the reason */
	uint8_t ready_due; /* its host was asked, and has not sent READY */
	uint32_t number; /* of the message that it offered last */
	uint32_t taken; /* of the other's that its host was offered last */
	struct nfc_call call; /* to handle the events */
	_Atomic uint32_t bound; /* it has a channel */
	_Atomic uint32_t called;
	_Atomic uint32_t events; /* enum nfc_relay_events, ored */
	_Atomic uint32_t status; /* of the answer … */
	uint64_t extra; /* … and its outstanding field */
	_Atomic uint32_t back; /* number of the message that is withdrawn */
	struct nfc_slot offer; /* until it is answered */
	/* The number of its ticket; 0: it has none. This and the next two: the device's lock. */
	uint64_t ticket;
	uint64_t through; /* number of the relay whose other end may claim it … */
	uint8_t through_end; /* … and which end the sender has */
};

/*
 * A channel between two hosts: a message that one host offers is offered to the
 * other, and the answer is returned. Both ends are on one island. Record 0086.
 *
 * Or a channel that a process opened to a host. Then end 0 is the process's,
 * which is a guest of that host. End 1 sends the host messages that the process
 * cannot send. The host's channel table has the target. All are on the
 * process's island. Record 0060.
 *
 * Before a guest's host has connected from another node, both nodes have a
 * relay, and a connection (`way`) joins them. The relay at the process's node
 * lacks end 1. The relay at the listener's node lacks end 0 and waits in the
 * listener's queue.
 */
struct nfc_relay {
	_Atomic uint32_t ends; /* that hold it */
	_Atomic uint32_t calls; /* queued or served; at 0, without ends, it is free */
	/* The fields below are new when two hosts begin to use it. */
	struct nfc_listener *before; /* the listener that has not accepted it yet … */
	struct nfc_relay *next; /* … and the next such relay. Under the device's lock. */
	uint64_t number; /* no other relay has it. Under the device's lock. */
	struct nfc_relay_end end[2]; /* of the connecting host, of the listening one */
	bool has_guest;
	struct nfc_relay *sibling; /* the next guest of its process */
	struct nfc_joint *way; /* NULL: there is none (any more) */
	uint64_t listener; /* of the process's: its id, with the node */
	bool awaits; /* … whose host may connect. Under the device's lock. */
	uint64_t event_word; /* at the listener's node: the word that its host gets */
	struct nfc_whose whose; /* the host that is at the other end of the way */
	bool ready; /* the listener's host may be notified of it */
	uint64_t until; /* clock: the end of its wait for the host; 0: it may wait */
	struct nfc_channel guest; /* the process's, until that ends, and the host's */
};

/* A host that others may connect to. Under the device's lock. */
struct nfc_listener {
	struct nfc_host *host; /* NULL: the place is free */
	struct nfc_channel *
		ch; /* of the process that accepts; NULL: it did not begin, or ended */
	uint32_t id; /* of the target that it is */
	char name[NFC_NAME_SIZE]; /* empty: hosts know its id */
	uint32_t waiting; /* relays that wait for it */
	bool anyone; /* not hosts of its own user alone */
	enum nfc_guests guests; /* the processes that its host knows of */
	struct nfc_relay *first; /* of those, in order */
	struct nfc_relay *offered; /* to its host, which did not take it yet */
	struct nfc_call call; /* to wake its process */
	_Atomic uint32_t called;
};

enum nfc_counter {
	NFC_COUNT_MESSAGES, /* h2d slots taken */
	NFC_COUNT_DROPPED, /* stale or malformed */
	NFC_COUNT_DIRECT_H2D, /* accepted */
	NFC_COUNT_DIRECT_D2H,
	NFC_COUNT_TRANSFERS_H2D, /* committed */
	NFC_COUNT_TRANSFERS_D2H,
	NFC_COUNT_BYTES, /* moved by DMA */
	NFC_COUNT_LISTS,
	NFC_COUNT_DMA, /* copies after merging */
	NFC_COUNT_REPEATS,
	NFC_COUNT_PARKED, /* offers waiting now */
	NFC_COUNT_DOORBELLS, /* rung at the host */
	NFC_COUNT_SLEEPS, /* of islands, for all hosts */
	NFC_COUNT_SWITCHES,
	NFC_COUNT_REFUSED, /* allocations, for want of free memory */
	NFC_COUNT_UNREACHED, /* transfers that DMA could not finish */
	NFC_COUNTERS,
};

/*
 * The part of an island that belongs to one host: mailboxes, contexts,
 * transfers, counters. Owned by the island's owner, except the counters.
 */
struct nfc_share {
	struct nfc_host *host;
	struct nfc_share *next; /* of the island's hosts */
	struct nfc_rings *rings; /* rings_count of the island */
	struct nfc_process *processes; /* process_count of it */
	struct nfc_transfer *active;
	bool there; /* in the island's list */
	_Atomic uint32_t watched; /* as in nfc_island_line; other threads read it */
	uint32_t last; /* the mailbox that had slots */
	uint32_t times; /* … and how often in a row */
	_Atomic uint64_t count[NFC_COUNTERS]; /* other threads read them */
};

/*
 * A part of the device, as the card has them: some microengines, whose contexts
 * are processes, with a share of the channels and of the mailboxes of each host.
 * One thread of the port runs it, and owns what it points to.
 */
struct nfc_island {
	struct nfc_device *dev;
	uint32_t index;
	struct nfc_share *shares; /* of the hosts that are there */
	uint32_t rings_count; /* of a host */
	uint32_t process_count; /* of a host */
	_Atomic(struct nfc_process *) current; /* runs now; other threads read it */
	struct nfc_process *ready_first, *ready_last;
	struct nfc_channel *timed; /* parked offers with a deadline */
	struct nfc_channel *recalls; /* WITHDRAW to answer after the processes ran */
	struct nfc_relay_end *relays; /* with events, and without room for them */
	struct nfc_stack scheduler;
	uint64_t now; /* clock as last read, some microseconds ago at most */
	_Atomic uint64_t seen; /* the same, for other threads */
	uint64_t timer; /* no process or offer is due before */
	uint64_t undrained; /* mailboxes with an answer, which that call drains */
	uint64_t rung; /* doorbells of hosts that it rang */
	uint64_t assists; /* times that calls ran it */
	bool assisted; /* a call runs it, not its thread */
	bool stalled; /* a mailbox waits for d2h room */
	_Atomic uint32_t owner; /* enum nfc_owner. All above is the owner's. */
	_Atomic uint32_t left; /* enum left: of the last owner */
	_Atomic uint64_t due; /* it must run again, as of the last owner */
	_Atomic uint64_t until; /* its thread sleeps so long, 0: it does not */
	_Atomic(struct nfc_call *) calls; /* changed under the device's lock */
	struct nfc_call stop; /* for processes with a stop_id */
	_Atomic uint32_t stop_called; /* that is queued */
	_Atomic uint64_t sleeps; /* other threads read them */
};

struct nfc_block {
	uint64_t address; /* 0: unused */
	uint64_t size;
	uint64_t owner; /* process id */
};

/* Memory that hosts anywhere put to and get from. */
struct nfc_window {
	uint64_t owner; /* process id; 0: unused */
	uint64_t key; /* 0: it is being made */
	uint64_t block; /* address of the block that contains it */
};

/* Counts from which a part's health is computed, over one heartbeat. */
enum nfc_sign {
	NFC_SIGN_DROPPED, /* messages */
	NFC_SIGN_REFUSED, /* allocations */
	NFC_SIGN_DMA, /* pieces refused for now or for good */
	NFC_SIGN_LATE, /* ms that an island is behind */
	NFC_SIGNS,
};

enum { NFC_PARTS = 13 }; /* of the diagnostic word */

/* Owned by the holder of `beating`. */
struct nfc_health {
	uint8_t level[NFC_PARTS]; /* enum nfc_diagnostic_level */
	uint8_t same[NFC_PARTS]; /* heartbeats in a row with another reading */
	bool rising[NFC_PARTS]; /* … and worse */
	uint64_t counted[NFC_SIGNS]; /* as of the last heartbeat */
	uint64_t beat_ns; /* it */
};

/*
 * A host that the device serves: an area with mailboxes of its own, a channel
 * table, contexts, memory, images and log lines, an epoch. Code about a channel
 * reaches these through the host of its rings, code about a process through the
 * process's host. The structure is at the start of its seat's state. Fields
 * without a comment about their writer are set when the host is attached.
 */
struct nfc_host {
	struct nfc_device *dev;
	struct nfc_area *area;
	_Atomic nfc_le32 *park; /* word per channel, the host writes them */
	struct nfc_channel *channels;
	struct nfc_joint *joints; /* NFC_JOINTS of them */
	uint32_t channel_count; /* ids are below this */
	uint32_t process_count; /* at most so many on each island */
	uint32_t index;
	uint32_t epoch;
	bool no_load; /* as in its seat */
	uint64_t user; /* likewise */
	struct nfc_share *shares; /* one of each island */
	uint8_t *memory[NFC_MEMORY_COUNT];
	_Atomic bool detaching; /* it is being detached: nothing reaches it */
	_Atomic uint64_t
		there; /* bus address of its own area; 0: it has none, or has not sent it */
	_Atomic bool lost; /* that cannot be written any more */
	_Atomic uint64_t next_generation; /* of a subscription */
	_Atomic uint32_t running; /* processes */
	uint32_t next_island; /* for a start anywhere; owned by the control process */
	struct nfc_health health; /* owned by the holder of the device's `beating` */

	_Atomic uint32_t lock; /* guards what follows */
	struct nfc_entry programs[NFC_PROGRAMS]; /* of its images */
	uint32_t program_count;
	struct nfc_loaded loaded[NFC_IMAGES];
	struct nfc_block block[NFC_BLOCKS];
	struct nfc_window window[NFC_HOST_WINDOWS];
	uint64_t log_head, log_tail; /* lines read, written */
	uint64_t log_lost;
	char log_line[NFC_LOG_LINES][NFC_PAYLOAD_SIZE];
};

struct nfc_device {
	struct nfc_config config;
	const struct nfc_port *port;
	struct nfc_host *host[NFC_HOSTS_MAX]; /* owned by the holder of beating; NULL: none */
	struct nfc_island *islands;
	_Atomic uint32_t halt;
	_Atomic uint64_t next_process; /* number in its id */
	_Atomic uint32_t beating; /* an island writes the heartbeat */
	_Atomic uint64_t next_beat;
	uint64_t beat; /* owned by the holder of beating */
	_Atomic(struct nfc_transfer *) open[NFC_OPEN];

	_Atomic uint32_t lock; /* guards what follows, and calls of islands */
	struct nfc_entry programs[NFC_PROGRAMS]; /* its own, that every host may start */
	uint32_t program_count;
	struct nfc_listener listener[NFC_LISTENERS];
	uint32_t next_listener; /* the ids of listeners count up */
	uint64_t relay_number, ticket; /* the last ones given */
	struct nfc_relay relay[NFC_RELAYS];
	uint8_t *relay_room; /* queues of their transfers, and what these pass through */
};

/* Arguments and result of nfc_process_start(). */
struct nfc_start {
	struct nfc_host *host;
	struct nfc_entry entry; /* its process becomes the user */
	uint32_t first;
	uint32_t ports;
	uint64_t argument;
	uint64_t process; /* out */
};

#endif /* NFC_STATE_H */
