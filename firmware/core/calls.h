/* SPDX-License-Identifier: MIT */
/*
 * The functions that the files of the core call in each other, from the lowest
 * layer to the highest. A file calls only functions that are declared above its
 * own here. Work for a higher layer enters a queue of the island (ready
 * processes, transfers, recalls, calls), which the island's loop serves.
 * firmware/test/layers.sh checks the objects for this order.
 */
#ifndef NFC_CALLS_H
#define NFC_CALLS_H

#include "access.h"

/* ---- call.c: work for other islands ---- */

enum {
	NFC_CALL_NS = 500000000, /* for an island to answer: the host waits longer */
};

/* Queue a call, and wake its island. Any thread. */
void nfc_call_post(struct nfc_island *to, struct nfc_call *call);
/* False: its island has it already, and will be done at once. */
bool nfc_call_take_back(struct nfc_island *to, struct nfc_call *call);
/*
 * Run fn on an island's thread, from a thread that is no island's, and wait for its
 * result. -NFC_ETIMEOUT, and fn never runs, if the device halts, or a process
 * keeps the island for too long.
 */
int nfc_outside_call(struct nfc_island *to,
		     int (*fn)(struct nfc_island *island, void *arg), void *arg);
/* Run what other islands called; true if there was anything. */
bool nfc_serve_calls(struct nfc_island *island);

/* ---- ring.c: slots to and from the host, or another process ---- */

static inline uint64_t nfc_load_header(const struct nfc_slot *slot)
{
	return atomic_load_explicit((const _Atomic uint64_t *)&slot->header,
				    memory_order_acquire); /* SYNC: slot */
}

/* Is the host's HELLO there? */
static inline bool nfc_has_answered(const struct nfc_host *host)
{
	return nfc_header_type(nfc_load_header(&host->area->host_hello)) ==
	       NFC_TYPE_HELLO;
}

static inline uint64_t nfc_rings_taken(const struct nfc_rings *rings)
{
	return atomic_load_explicit(&rings->head, memory_order_relaxed);
}

/* The phase bit that a new slot has on its lap. */
static inline uint64_t nfc_lap(uint64_t index, uint32_t shift)
{
	return ((index >> shift) + 1) & 1;
}

/* Has the host put a slot? Inline: idle islands do little else. */
static inline bool nfc_rings_pending(const struct nfc_rings *rings)
{
	uint64_t head = nfc_rings_taken(rings);
	uint64_t header = nfc_load_header(&rings->h2d[head & rings->mask]);

	return nfc_header_phase(header) == nfc_lap(head, rings->shift);
}

/* Where the host's own area is, by bus address; 0: it has none. Any thread. */
uint64_t nfc_host_there(struct nfc_host *host);
/* Store words there, the first of them last. */
void nfc_post(struct nfc_host *host, uint64_t at, const uint64_t *word,
	      uint32_t count);
/*
 * Write to the host's own area whether an island sleeps; a 1 is stored on
 * return.
 */
void nfc_post_asleep(struct nfc_host *host, uint32_t island, uint64_t word);
bool nfc_rings_take(struct nfc_rings *rings, struct nfc_slot *slot);
/* Count a message that is malformed or stale, and ignore it. */
static inline void nfc_drop(struct nfc_share *share)
{
	nfc_count(share, NFC_COUNT_DROPPED, 1);
}
void nfc_rings_publish(struct nfc_rings *rings);
bool nfc_rings_room(struct nfc_rings *rings);
void nfc_put(struct nfc_channel *ch, enum nfc_type type, uint64_t length,
	     uint64_t id, const uint64_t payload[7]);
/*
 * Call the island of a joint's end to take messages, unless a call is pending
 * already.
 */
void nfc_joint_call(struct nfc_joint *joint, uint32_t end);
/* Ask the port to check a joint whose other end is at another node. */
void nfc_joint_notify(struct nfc_joint *joint);
/* The device is finished with a joint, if its other end is at another node. */
void nfc_joint_end(struct nfc_joint *joint);
/* Bytes that a node may fetch: from when they are offered until the offer has ended. */
void nfc_joint_show(struct nfc_joint *joint, const uint8_t *bytes,
		    uint64_t size, uint64_t id);
void nfc_joint_hide(struct nfc_joint *joint);
static inline uint32_t nfc_joint_index(const struct nfc_joint *joint)
{
	const struct nfc_host *host = joint->rings[joint->far.here].host;

	return (uint32_t)(joint - host->joints);
}

/* ---- memory.c: device memory ---- */

void *nfc_memory_at(struct nfc_host *host, uint64_t address, uint64_t size);
uint64_t nfc_memory_alloc(struct nfc_host *host, uint64_t owner,
			  enum nfc_memory type, uint64_t size);
/* Free one block of owner, or all of them if address is 0, and end their windows. */
void nfc_memory_free(struct nfc_host *host, uint64_t owner, uint64_t address);
uint64_t nfc_memory_available(struct nfc_host *host, enum nfc_memory type);

/* ---- registry.c: programs by name, and loaded images ---- */

/* Find a program and become a user of its image; false: there is none. */
bool nfc_program_use(struct nfc_host *host, const char *name,
		     struct nfc_entry *out);
void nfc_program_leave(struct nfc_host *host, struct nfc_loaded *loaded);
/* The name at an index of the registry, NULL after the last. */
const char *nfc_program_name(struct nfc_host *host, uint64_t index,
			     char name[NFC_NAME_SIZE]);
/* Add the programs of an image, all or none: it is the registry's on 0; or why not. */
int nfc_programs_add(struct nfc_host *host, const struct nfc_image *image,
		     const char **why);
/* Give every image of a host back. Nothing of it runs any more. */
void nfc_programs_drop(struct nfc_host *host);

/* ---- sched.c: processes that block and wake, the clock, other islands ---- */

void nfc_set_clock(struct nfc_island *island, uint64_t now);
void nfc_read_clock(struct nfc_island *island);
int nfc_block(struct nfc_process *p, enum nfc_wait wait);
void nfc_make_ready(struct nfc_process *p);
void nfc_wake(struct nfc_process *p, int result);
void nfc_timer(struct nfc_island *island, uint64_t at);
/* The island that serves a channel of a host. */
struct nfc_island *nfc_island_of(struct nfc_host *host, uint32_t channel);
/* The first channel of a host on an island, and the one after the last. */
uint32_t nfc_island_channels(struct nfc_island *island,
			     const struct nfc_host *host, uint32_t *end);
int nfc_island_call(struct nfc_process *self, struct nfc_island *to,
		    int (*fn)(struct nfc_island *island, void *arg), void *arg);

/* ---- log.c: the last lines of a host's log ---- */

uint64_t nfc_line_length(const char *line, uint64_t most);
/* The oldest kept line and its number; false if there is none. */
bool nfc_oldest_line(struct nfc_host *host, char line[NFC_PAYLOAD_SIZE],
		     uint64_t *number);
void nfc_forget_line(struct nfc_host *host, uint64_t number);

/* ---- relay.c: events between the two ends of a channel between hosts ---- */

struct nfc_relay_end *nfc_relay_other(const struct nfc_relay_end *end);
/*
 * Post events to the other end, if there is one; or call this end's island
 * again.
 */
void nfc_relay_notify(const struct nfc_relay_end *end, uint32_t events);
void nfc_relay_forward(struct nfc_relay_end *end);
/* Offer the channel's parked message or transfer to the other host. */
void nfc_relay_offer(struct nfc_channel *ch);
/* The host has answered what the other one offered. */
void nfc_relay_answer(struct nfc_channel *ch, enum nfc_status status,
		      uint64_t extra);
/* The host withdraws the parked message or transfer. */
void nfc_relay_withdraw(struct nfc_relay_end *end);
/* Make the end act as if the other end had closed. */
void nfc_relay_give_up(struct nfc_relay_end *end);
/*
 * Bytes of device memory for the transfers of a relay; the address of an end's
 * part.
 */
uint64_t nfc_relay_room(const struct nfc_config *c);
uint8_t *nfc_relay_at(const struct nfc_relay_end *end);
/* Separate the two sides of a transfer: no bytes move any more. */
void nfc_relay_part(struct nfc_transfer *t);
/*
 * The same, after a side ended with result: if that side receives, the other
 * ends, too.
 */
void nfc_relay_settle(struct nfc_transfer *t, int result);
/*
 * The end releases the relay, as its channel is over or its host detaches. Runs
 * on its island, when no transfer of it is in the active list any more.
 */
void nfc_relay_drop(struct nfc_relay_end *end);
/*
 * Remove it from its listener's queue; false: it was not in one. Under the
 * device's lock.
 */
bool nfc_relay_unqueue(struct nfc_relay *relay);

/*
 * Make a process the guest of the target that its host's end has; it is not
 * opened yet.
 */
void nfc_guest_init(struct nfc_relay *relay, struct nfc_process *p);
/*
 * A guest's channel is over at its host, which may reuse the target. The
 * process keeps its own part of the channel.
 */
void nfc_guest_over(struct nfc_channel *ch);
/* The process closed halves before the host opened the channel. */
void nfc_guest_close(struct nfc_channel *ch, uint32_t halves);
/*
 * The process is to stop: its host has NFC_ANSWER_NS to end the call that it
 * waits in.
 */
void nfc_guest_stop(struct nfc_channel *ch);
/* The process has ended, or its host detaches. */
void nfc_guest_end(struct nfc_channel *ch);
/* The listener refuses it. Any island, while the relay cannot be reused. */
void nfc_guest_refuse(struct nfc_device *dev, struct nfc_relay *relay);
/*
 * A process connects to a host of another node: closed until that node has
 * answered.
 */
void nfc_guest_wait(struct nfc_relay *relay, struct nfc_process *p);
/*
 * That host has connected: its end, which has a channel, is now the other end.
 */
void nfc_guest_meet(struct nfc_relay *relay);
/*
 * End the connection of a guest with the listener's node, if there is one. On
 * its island.
 */
void nfc_way_leave(struct nfc_relay *relay);
/* End the queued relay of a guest at another node. On its island. */
void nfc_far_guest_leave(struct nfc_relay *relay);

/* ---- half.c: messages about a half, its subscription, its end ---- */

/* Answer with a completion record; extra is its outstanding field. */
void nfc_reply(struct nfc_channel *ch, enum nfc_type type,
	       enum nfc_direction direction, uint64_t id, enum nfc_state state,
	       enum nfc_status status, uint64_t extra);
void nfc_note(struct nfc_channel *ch, enum nfc_type type,
	      enum nfc_direction direction, uint64_t id);
void nfc_send_ready(struct nfc_channel *ch);
void nfc_send_close(struct nfc_channel *ch, uint32_t halves);
void nfc_half_release(struct nfc_channel *ch, enum nfc_direction direction,
		      int result);
int nfc_channel_open(struct nfc_host *host, struct nfc_control *c);
void nfc_channel_over(struct nfc_channel *ch);
/*
 * A channel end that is over releases its joint, if it is an end of one. The
 * target's end does so at once. The end of the connecting process does so when
 * that process has ended, as the process keeps its part until then. Called
 * last, and again when the channel leaves the list of recalls.
 */
void nfc_joint_leave(struct nfc_channel *ch);

/* ---- dma.c: batches of pieces, moved by any engine ---- */

bool nfc_dma_plan(struct nfc_transfer *t);
bool nfc_dma_work(struct nfc_device *dev, struct nfc_transfer *t, bool front);
bool nfc_dma_poll(struct nfc_transfer *t);
uint64_t nfc_piece_start(const struct nfc_transfer *t,
			 const struct nfc_piece *piece);
void nfc_dma_locate(struct nfc_transfer *t, struct nfc_piece *piece);
/* Between hosts: who gives is the cause of a failure. */
#define NFC_AT_GIVER (1u << 15)
/* Both are where they were before the batch. */
void nfc_dma_rewind(struct nfc_transfer *t);
/*
 * After that: find the entry at which a piece fails, in the lists of the side
 * `whose`.
 */
void nfc_dma_find(struct nfc_transfer *t, struct nfc_piece *piece,
		  struct nfc_transfer *whose);
bool nfc_dma_quiet(struct nfc_transfer *t);
void nfc_dma_stop(struct nfc_transfer *t);
void nfc_dma_close(struct nfc_device *dev, struct nfc_transfer *t);

/* ---- transfer.c: lists in, completion records out ---- */

void nfc_transfer_begin(struct nfc_process *p, struct nfc_channel *ch,
			enum nfc_direction direction, uint64_t size);
/* The same without a process: of a relay. */
void nfc_transfer_init(struct nfc_transfer *t, struct nfc_channel *ch,
		       enum nfc_direction direction, uint64_t size);
/* Its pages are known, and all there are. */
void nfc_transfer_pages(struct nfc_transfer *t, const struct nfc_pages *pages);
/* Its other host has a while to do what a device would do at once. */
void nfc_transfer_bound(struct nfc_transfer *t);
/* When the first of a share's is due. */
uint64_t nfc_transfers_due(const struct nfc_share *share);
void nfc_transfer_list(struct nfc_transfer *t, const struct nfc_slot *slot);
void nfc_transfer_abort(struct nfc_transfer *t, enum nfc_status status,
			bool answer);
void nfc_transfer_ack(struct nfc_transfer *t, enum nfc_type type,
		      enum nfc_state state, enum nfc_status status);
/* Why an EAGER makes no sense, NFC_OK if it does; its pages. */
enum nfc_status nfc_eager_check(struct nfc_channel *ch,
				const struct nfc_slot *slot,
				struct nfc_pages *pages);
int nfc_eager_move(struct nfc_process *p, struct nfc_channel *ch,
		   enum nfc_direction direction, const struct nfc_pages *pages);
bool nfc_transfer_pump(struct nfc_share *share, bool sparing);
void nfc_transfer_kick(struct nfc_transfer *t);

/* ---- offer.c: what the host offers, parked, accepted or given back ---- */

/* Why an offer of the host cannot even be parked. */
enum nfc_status nfc_refusal(const struct nfc_channel *ch);
void nfc_park(struct nfc_channel *ch, const struct nfc_slot *slot,
	      enum nfc_half_state state, uint64_t timeout_ns);
void nfc_unpark(struct nfc_channel *ch);
void nfc_refuse(struct nfc_channel *ch, enum nfc_status status);
int nfc_accept(struct nfc_channel *ch, struct nfc_process *p);
/* The message of a DIRECT or CALL, of which only the type counts, is p's. */
void nfc_message_taken(struct nfc_channel *ch, struct nfc_process *p,
		       enum nfc_type type);
/* The process will not answer the question that it has taken: status is the reason. */
void nfc_leave_question(struct nfc_channel *ch, enum nfc_status status);
/*
 * Has the read of p room for a transfer of this size? If that read is channel_take,
 * the transfer is described in its offer.
 */
bool nfc_fits(struct nfc_process *p, uint64_t size);
uint64_t nfc_expire_offers(struct nfc_island *island);
void nfc_recall(struct nfc_channel *ch);
void nfc_serve_recalls(struct nfc_island *island);
/*
 * Ask another host to return the message or transfer that it was offered, for a
 * reason. Its answer, due within NFC_ANSWER_NS, reports whether it does.
 */
void nfc_ask_back(struct nfc_channel *ch, enum nfc_status why);

/* ---- pair.c: transfers between hosts ---- */

/*
 * The host takes the transfer that the other host offers, into pages, or by
 * lists that follow. False: the offer was withdrawn or closed.
 */
bool nfc_pair_begin(struct nfc_channel *ch, const struct nfc_pages *pages);
/* The host withdraws a transfer that the other host has taken. */
void nfc_pair_withdraw(struct nfc_channel *ch);

/* ---- note.c: the host's messages about transactions, and about halves ---- */

/* Bytes of the transfer that is offered to the host, by a process or by another host. */
uint64_t nfc_offered_size(const struct nfc_channel *ch);
/* End the device's offer, by a process or by another host, with a status. */
void nfc_end_offer(struct nfc_channel *ch, enum nfc_status status,
		   uint64_t extra);
/* ACK and ERROR; all that carries a struct nfc_note; CLOSE. */
void nfc_on_answer(struct nfc_channel *ch, const struct nfc_slot *slot);
void nfc_on_note(struct nfc_channel *ch, const struct nfc_slot *slot);
void nfc_on_close(struct nfc_channel *ch, const struct nfc_slot *slot);
/* The other end of a channel has closed both halves. */
void nfc_other_closed(struct nfc_channel *ch);

/* ---- channel.c: what processes call; manager.c: what the host sends ---- */

void nfc_channel_end(struct nfc_channel *ch);
/* Block until the host subscribes, or something else wakes the process. */
void nfc_await_open(struct nfc_process *p, struct nfc_channel *ch);

uint32_t nfc_read_manager(struct nfc_rings *rings);
/*
 * A host detaches: of what it wrote last, take what it received or committed. The
 * rest is withdrawn.
 */
void nfc_read_last(struct nfc_rings *rings);
/*
 * Take the messages of a joint's end, a struct nfc_rings. A struct nfc_call's
 * fn.
 */
int nfc_read_joint(struct nfc_island *island, void *rings);
/* The same, within such a call. */
void nfc_take_joint(struct nfc_rings *rings);

/* ---- forward.c: events that an end of a channel between hosts receives ---- */

/*
 * Handle the events of an end, a struct nfc_relay_end. A struct nfc_call's fn.
 */
int nfc_read_relay(struct nfc_island *island, void *end);
/* Handle the events of ends that waited for room. */
void nfc_serve_relays(struct nfc_island *island);
/* Handle the events of the process's end of a guest. A struct nfc_call's fn. */
int nfc_read_guest(struct nfc_island *island, void *end);
/*
 * A host detaches: end the channels of its processes on this island with other
 * hosts. -NFC_EBUSY while a transfer is under way.
 */
int nfc_guests_part(struct nfc_island *island, const struct nfc_host *host);
/* The host of a guest detaches: nothing of the channel moves any more. */
void nfc_guest_lose(struct nfc_channel *ch);
/*
 * No host will connect: a process that waits on a guest's channel finds it
 * closed.
 */
void nfc_guest_alone(struct nfc_channel *ch);

/* ---- process.c ---- */

/*
 * The first run of free targets of this island that is long enough; 0 if there
 * is none. A target is free when no process owns it and no host is subscribed.
 */
uint32_t nfc_free_targets(struct nfc_island *island, struct nfc_host *host,
			  uint32_t count);
/* Initialize a channel of this island for its first subscriber. */
void nfc_channel_init(struct nfc_island *island, struct nfc_host *host,
		      uint32_t id);
int nfc_process_start(struct nfc_island *island, void *arg);
void nfc_process_stop(struct nfc_process *p);
/* Stop process id, which p is or was, as soon as its island answers. Any island. */
void nfc_process_stop_later(struct nfc_process *p, uint64_t id);
/* Stop the processes here that their host asked to stop; when to try again. */
uint64_t nfc_stops_due(struct nfc_island *island, struct nfc_share *share);
/* The process of that id on any island, NULL if there is none (any more). */
struct nfc_process *nfc_process_running(const struct nfc_host *host,
					uint64_t id);

/* ---- listen.c: channels between hosts ---- */

extern const struct nfc_program nfc_listen_program;
/*
 * Take a place for the listener that a request asks for: its id, and the argument of its
 * process; or a negated status.
 */
int nfc_listen(struct nfc_host *host, const struct nfc_control *request,
	       uint64_t *argument);
/* Its process was started, with that target; or not. */
void nfc_listening(struct nfc_host *host, uint64_t argument, uint32_t target);
void nfc_unlisten(const struct nfc_host *host, uint64_t argument);
/*
 * Connect to the listener that a request names by id or name. The reply has the target of
 * this host to open, and the listener's id. Called by the control service.
 */
int nfc_connect(struct nfc_process *self, struct nfc_control *c);
/* A host detaches: release its relays and listeners on this island. */
void nfc_relays_leave(struct nfc_island *island, const struct nfc_host *host);
/* The listener of that id, if there is one. Must hold the device's lock. */
struct nfc_listener *nfc_listener_at(struct nfc_device *dev, uint64_t id);
bool nfc_may_connect(const struct nfc_listener *l, const struct nfc_host *host);
/* A relay that is not in use, if there is one. Must hold the device's lock. */
struct nfc_relay *nfc_relay_free(struct nfc_device *dev);
/*
 * Put a relay, if there is one, before a listener, with both ends on an island; 0 or a
 * negated status. Must hold the device's lock.
 */
int nfc_relay_queue(struct nfc_listener *l, struct nfc_host *host,
		    struct nfc_island *island, struct nfc_relay *relay);
/*
 * The same for a process of another node, whose host has no end at this node.
 */
int nfc_far_guest_queue(struct nfc_listener *l, const struct nfc_whose *whose,
			const struct nfc_island *island,
			struct nfc_relay *relay);
/*
 * May a host have one more relay to another host? 0, or a negated status where
 * a limit is reached. Must hold the device's lock.
 */
int nfc_relays_bound(const struct nfc_device *dev, const struct nfc_host *from,
		     const struct nfc_host *to);
/* Initialize an end of a relay for a host. */
void nfc_relay_init(struct nfc_relay *relay, uint32_t i, struct nfc_host *host,
		    const struct nfc_island *island);
/* Give the end a channel of its host. On its island. */
void nfc_relay_bind(struct nfc_relay_end *end, uint32_t target);
/* Are they one host? */
bool nfc_is_whose(const struct nfc_whose *a, const struct nfc_whose *b);
/* Somebody waits before it: its process is woken. */
void nfc_listener_wake(struct nfc_device *dev, struct nfc_listener *l);

/* ---- move.c: ends of channels between hosts that go to other hosts ---- */

/* The control requests TICKET, VOID and CLAIM: 0 or a negated status. */
int nfc_ticket(struct nfc_process *self, struct nfc_control *c);
int nfc_void(struct nfc_process *self, struct nfc_control *c);
int nfc_claim(struct nfc_process *self, struct nfc_control *c);

/* ---- joint.c: channels that processes open to each other, here or at two nodes ---- */

/* -NFC_EBUSY while an island has to serve an end of a joint of the host. */
int nfc_joints_quiet(const struct nfc_host *host);
/* A joint that is not in use, for an end here; NULL: there is none. */
struct nfc_joint *nfc_joint_take(struct nfc_host *host);
/*
 * Initialize it with this end here, on an island, and the other end at another
 * node.
 */
void nfc_joint_init_far(struct nfc_joint *joint, uint32_t end,
			struct nfc_host *host, const struct nfc_island *island,
			int (*read)(struct nfc_island *island, void *rings));
/* Wait for the answer of the other node: 0 or a negated status. */
int nfc_joint_await(struct nfc_process *self);
/* channel_connect() to a process, here or there. */
int nfc_join(struct nfc_process *self, uint64_t id, bool there,
	     struct nfc_channel **ch);

/* ---- guest.c: channels that processes open, also to listening hosts ---- */

/*
 * Connect the host of a process, at the process's node, to a guest at it. id is
 * the full id of its listener, number the one that the listener's node was
 * sent. The control service opens *target.
 */
int nfc_guest_connect(struct nfc_process *self, uint64_t id, uint64_t number,
		      uint64_t *target);

/* ---- api.c: the calls of nfc_fw.h as a table, for loaded programs ---- */

extern const struct nfc_api nfc_api_table;

/* ---- health.c: counters, the diagnostic word, the heartbeat ---- */

uint64_t nfc_counter_sum(struct nfc_host *host, enum nfc_counter counter);
/* Pure: the word after one heartbeat more; sensed is a word of the port's. */
uint32_t nfc_health_step(struct nfc_health *h, const uint64_t sign[NFC_SIGNS],
			 uint32_t sensed);
uint64_t nfc_beat_due(struct nfc_island *island);
/* Write the heartbeats if they are due. */
void nfc_heartbeat(struct nfc_island *island);
/*
 * From now on the device knows the host: it has heartbeats, the first at once. Any
 * thread.
 */
void nfc_heartbeat_begin(struct nfc_host *host);
/* It does not any more, and no heartbeat is written to it after this. Any thread. */
void nfc_heartbeat_end(struct nfc_host *host);

/* ---- service.c: the targets that are always there ---- */

extern const struct nfc_program nfc_services[];
/* Start what gives kept log lines to the host; 0 or a negated status. */
int nfc_log_start(struct nfc_host *host);

/* ---- host.c: hosts that the device serves ---- */

/* Attach a host before any island runs; 0 or a negated status. */
int nfc_host_boot(struct nfc_device *dev, uint32_t index,
		  const struct nfc_seat *seat);
/* Free what a host holds in the port. No island runs any more. */
void nfc_host_fini(struct nfc_host *host);

/* ---- island.c, device.c: what the port calls, see nfc_port.h ---- */

#endif /* NFC_CALLS_H */
