/* SPDX-License-Identifier: MIT */
/*
 * The port: everything the firmware needs from whatever hosts it. The core
 * calls nothing else but memcpy, memmove, memset and memcmp, so it compiles
 * freestanding.
 */
#ifndef NFC_PORT_H
#define NFC_PORT_H

#include <stdbool.h>

#include "nfc_abi.h"

struct nfc_device;
struct nfc_joint;
struct nfc_program;
struct nfc_api;

/* A program image that the port made runnable. */
struct nfc_image {
	const struct nfc_program *table; /* ends with a NULL name */
	void *handle; /* the port's own; never NULL */
	char why[NFC_WHY_SIZE]; /* it is refused, beside the status; may be empty */
};

/* A host, as all nodes of a fabric know it. */
struct nfc_whose {
	uint64_t owner; /* its number there … */
	uint32_t home; /* … at the node of that address */
};

enum {
	NFC_HOSTS_MAX = 64,
	NFC_PROCESSES_MIN = 8, /* of a host on an island: the services are some */
	NFC_JOINTS = 64, /* of a host */
	NFC_HOST_WINDOWS = 64, /* of its processes */
	NFC_JOINT_SHIFT = 4, /* log2 of the next */
	/* of a ring of one, of which 6 are in use at most */
	NFC_JOINT_SLOTS = 1 << NFC_JOINT_SHIFT,
};

/*
 * Shape of a device, as each of its hosts sees it: hosts have mailboxes, channels,
 * contexts and memory of their own, and share the islands. Zero fields take
 * defaults.
 */
struct nfc_config {
	uint32_t channels; /* channel ids are below this */
	uint32_t managers; /* mailboxes, each with a read and a write manager */
	uint32_t islands; /* each runs on one thread of the port */
	uint32_t engines_me; /* microengines per island */
	uint32_t contexts; /* contexts per microengine */
	uint32_t slots; /* per ring, a power of two */
	uint32_t window; /* lists in flight per transfer, a power of two */
	uint32_t beat_ms; /* heartbeat interval */
	uint32_t stack; /* bytes of a context's stack */
	uint32_t runs; /* 1: entries may be runs */
	uint32_t eager; /* entries of an eager transfer; 0: it has none */
	uint32_t host_rings; /* 1: hosts may have rings in memory of their own */
	uint32_t hosts; /* that it serves at a time, each with all of the above */
	uint32_t lone; /* 1: it has programs that may keep an island, if it has one host */
	uint64_t target_timeout_ns; /* offers without one get this; 0: none */
	uint64_t memory[NFC_MEMORY_COUNT]; /* bytes of each type */
	uint64_t buffer; /* bytes of it, a process's for each of its targets; 0: as there is room */
	uint32_t access_ns[NFC_MEMORY_COUNT]; /* of an access to each type, at most 1 s; 0: none */
};

/*
 * Memory that the port gives a host: zeroed, page-aligned, and there until it
 * is detached. The state stays readable until nfc_device_fini(), also when the
 * port has zeroed it again: an engine may still read a transfer that ended.
 */
struct nfc_seat {
	void *area; /* of mailboxes, nfc_area_size() bytes */
	void *state; /* nfc_host_size() bytes */
	void *memory[NFC_MEMORY_COUNT]; /* device memory, config.memory[] bytes */
	uint32_t epoch; /* increments with each start of this host */
	bool no_load; /* it may load no programs: they run as the device */
	uint64_t user; /* uid of the owner; 0 if unknown */
	uint32_t channels; /* ids it has, of config.channels; 0: all */
	uint32_t processes; /* on each island, services included; 0: all contexts */
};

/*
 * From dma_read and dma_write: the piece is under way, and uses the memory. The core
 * calls again with the same arguments until it has another answer, which the port must
 * have in bounded time, and wakes the islands for.
 */
enum {
	NFC_PENDING = 1 << 21,
};

/* A context's saved state; the port decides what it points to. */
struct nfc_stack {
	void *sp; /* saved stack pointer, or the port's own record */
	void *base; /* lowest address */
	uint64_t size; /* bytes */
	void *port; /* the port's own */
};

/*
 * Supplied by the port. The firmware never keeps a lock across a call.
 * "Any thread" means islands and DMA engines call it at the same time.
 */
struct nfc_port {
	void *self; /* handed back in every call */

	/* An island rings a host's doorbell. Any thread. */
	void (*ring_host)(void *self, uint32_t host, uint32_t island);
	/*
	 * Move len bytes between device memory and a host's memory at a bus
	 * address of it. 0, NFC_EDMA (a page cannot be reached; nothing is
	 * known of the bytes), NFC_EBUSY (try this piece again) or NFC_PENDING.
	 * NFC_ERESET: DMA is fenced for good, and the transfer ends without a
	 * word. Any thread.
	 */
	int (*dma_read)(void *self, uint32_t host, void *to, uint64_t bus,
			uint64_t len);
	int (*dma_write)(void *self, uint32_t host, uint64_t bus,
			 const void *from, uint64_t len);
	/*
	 * Copy from one host's memory to another's, or to its own. False: the
	 * bytes at the target are undefined, and the core moves the piece by
	 * the two calls above, which return the cause. It is always false for a
	 * host whose pieces may be NFC_PENDING. Any thread. NULL: it never can.
	 */
	bool (*dma_copy)(void *self, uint32_t to, uint64_t to_bus,
			 uint32_t from, uint64_t from_bus, uint64_t len);
	/*
	 * Store words in a host's memory, the first of them last and with
	 * release. Or load 4 or 8 bytes in one piece, after all that was posted
	 * before is there. 0, or a status: nothing is known of the words, and
	 * nothing will be posted any more. Any thread. NULL: no host has rings
	 * in memory that the device does not share.
	 */
	int (*post)(void *self, uint32_t host, uint64_t bus,
		    const uint64_t *word, uint32_t count);
	int (*peek)(void *self, uint32_t host, void *to, uint64_t bus,
		    uint32_t bytes);
	/*
	 * Where the node of a target id is: 0 here, NFC_PENDING elsewhere, -NFC_EINVAL
	 * nowhere, -NFC_ENOTSUP: the device is of no fabric. NULL: none is.
	 */
	int (*locate)(void *self, uint32_t host, uint64_t id);
	/*
	 * A process connects to a target at another node: the port holds the
	 * joint, of that index, until nfc_joint_drop(). 0, and
	 * nfc_joint_joined() follows, or a negated status. The port also sends
	 * bits 24 to 31 of the id. The device calls carry when it has put
	 * something into the joint, and when its own end is over. fetch is a
	 * dma_read from the bytes that the other end offers, with NFC_EABORTED
	 * in place of all that may fail; at is {its transaction:16 |
	 * offset:48}. Any thread.
	 */
	int (*join)(void *self, uint32_t host, struct nfc_joint *joint,
		    uint32_t index, uint64_t id);
	void (*carry)(void *self, uint32_t host, uint32_t index);
	int (*fetch)(void *self, uint32_t host, uint32_t index, void *to,
		     uint64_t at, uint64_t len);
	/*
	 * How other nodes know a host; false: they do not. NULL: the device is of no fabric.
	 * Any thread.
	 */
	bool (*whose)(void *self, uint32_t host, struct nfc_whose *out);
	/*
	 * Others may put to memory of a host's process, or get from it, by the key: enum
	 * nfc_window_access. 0, or a negated status. When revoke returns, nothing
	 * touches it. The port ends those that are left before it detaches a host.
	 * NULL: the device is of no fabric. Any thread.
	 */
	int (*window)(void *self, uint32_t host, void *memory, uint64_t size,
		      uint32_t access, uint64_t *key);
	void (*revoke)(void *self, uint32_t host, uint64_t key);
	/*
	 * The pointer to memory that a host shares, by its bus address; NULL unless all
	 * of it is shared, in one piece. The host ends that when none of its processes
	 * uses it. NULL: the device reaches no host memory in place. Any thread.
	 */
	void *(*host_at)(void *self, uint32_t host, uint64_t bus, uint64_t len);
	/*
	 * Continue the CRC32C of device memory; 0 begins one. Any thread. NULL: the
	 * device offers no checksums of transfers.
	 */
	uint32_t (*sum)(uint32_t crc, const void *data, uint64_t len);
	/* There are DMA pieces for idle engines: wake them. Any thread. */
	void (*wake_engines)(void *self);
	/* Monotonic nanoseconds. Any thread. */
	uint64_t (*now)(void *self);
	/*
	 * Print one line, of a host's process, for the operator of the device.
	 * Any thread.
	 */
	void (*log)(void *self, uint32_t host, const char *line, uint64_t len);
	/*
	 * Sleep until the island's doorbell in some host's area (island[i].word,
	 * set to 1 by the caller) is cleared and rung, another thread wakes the
	 * island, or the clock passes until_ns. It may return early.
	 */
	void (*sleep)(void *self, uint32_t island, uint64_t until_ns);
	/* Let another thread have the processor, if one waits for it. */
	void (*yield)(void *self);
	/* Wake a sleeping island from another. Any thread. */
	void (*wake)(void *self, uint32_t island);
	/*
	 * The sensors' readings, as a diagnostic word: readings of the parts
	 * they watch,
	 * current, voltage, temperature, links or any other. Asked once for each
	 * heartbeat. Any thread. NULL: there are none.
	 */
	uint32_t (*sense)(void *self);
	/* Nanoseconds an idle island spins before it sleeps. */
	uint64_t spin_ns;

	/* Give a context a stack, and make it enter(arg) at the first switch. */
	int (*stack_init)(void *self, struct nfc_stack *s,
			  void (*enter)(void *arg), void *arg);
	void (*stack_free)(void *self, struct nfc_stack *s);
	/* Save the running context in from and continue to. */
	void (*stack_switch)(struct nfc_stack *from, struct nfc_stack *to);

	/*
	 * Make a program image runnable, until it is unloaded. 0 or a negated
	 * status. Statics are the image's own: one that is loaded twice has
	 * them twice. NULL: this port cannot.
	 */
	int (*load)(void *self, const void *image, uint64_t size,
		    const struct nfc_api *api, struct nfc_image *out);
	/* No process runs the image and none will. Any island. */
	void (*unload)(void *self, void *handle);
};

/* Fill zero fields with defaults; -NFC_EINVAL if a field makes no sense. */
int nfc_config_check(struct nfc_config *config);
/* Bytes of a mailbox area, of a host's state, and of the device's own. */
uint64_t nfc_area_size(const struct nfc_config *config);
uint64_t nfc_host_size(const struct nfc_config *config);
uint64_t nfc_device_size(const struct nfc_config *config);

/*
 * Build a device in zeroed memory of nfc_device_size() bytes, with a host 0 if
 * there is a seat for it, and write its HELLO. The port stays the caller's and
 * must outlive the device. After an error the device holds nothing of it.
 */
int nfc_device_init(struct nfc_device *dev, const struct nfc_config *config,
		    const struct nfc_port *port, const struct nfc_seat *seat);
/* Can a host have the part of the shape that its seat gives it? */
bool nfc_seat_fits(const struct nfc_config *c, const struct nfc_seat *seat);
/*
 * Serve one more host, below config.hosts, while the islands run: its services
 * start, and its HELLO is written. 0 or a negated status. -NFC_ETIMEOUT if a
 * process keeps an island to itself. One attach or detach at a time.
 */
int nfc_host_attach(struct nfc_device *dev, uint32_t host,
		    const struct nfc_seat *seat);
/*
 * Forget a host that is attached: its processes end where they are, its DMA
 * stops, its images are unloaded. Returns when the device cannot reach its seat
 * any more, or when the device was halted.
 */
void nfc_host_detach(struct nfc_device *dev, uint32_t host);
/*
 * Add programs of the device's own to the registry, all or none; table ends
 * with a NULL name. -NFC_EABI, -NFC_EINVAL for a table that makes no sense,
 * -NFC_EBUSY if a name is taken, -NFC_ENOMEM.
 */
int nfc_device_register(struct nfc_device *dev, const struct nfc_program *table);
/* Run one island on the calling thread until nfc_device_halt(). */
void nfc_island_run(struct nfc_device *dev, uint32_t island);
/*
 * Run an island on the calling thread until it has nothing to do, some tens of
 * microseconds at most, beside the thread of nfc_island_run(), which does the
 * rest. Processes that are not prompt are left to that. Records have the time of
 * this run if it is exact, or of one of the last 16. Returns the other owner, which
 * will check for new messages once more, or NFC_OWNER_NONE: it ran here. Answers
 * that a sleeping call waits for ring no doorbell then: bit i of undrained asks the
 * caller to drain the island's i-th mailbox. Any thread, until nfc_device_fini().
 */
enum nfc_owner { NFC_OWNER_NONE, NFC_OWNER_THREAD, NFC_OWNER_CALL };

enum nfc_owner nfc_island_assist(struct nfc_device *dev, uint32_t island,
				 bool exact, uint64_t *undrained);
/*
 * The process that an island runs, and the last moment at which the island
 * served any.
 */
struct nfc_computing {
	uint64_t process;
	uint32_t island;
	uint64_t since_ns; /* by the port's clock, some microseconds early */
	char program[NFC_NAME_SIZE];
};

/*
 * False if it runs no process now: then only island and since_ns are set. Any thread,
 * until nfc_device_fini().
 */
bool nfc_island_computes(struct nfc_device *dev, uint32_t island,
			 struct nfc_computing *out);
/* The stack of that process, NULL if there is none. The thread that runs the island. */
const struct nfc_stack *nfc_island_stack(struct nfc_device *dev,
					 uint32_t island);
/* The crashed process, and the function in which its thread resumes. */
struct nfc_crashed {
	uint32_t host;
	uint32_t first, ports; /* its targets */
	uint64_t generation; /* its subscriptions are before this one */
	void (*enter)(void *arg); /* on its stack, of which nothing is used */
	void *arg;
};

/*
 * The process that an island runs did, on the calling thread, what ends a
 * program. If it was in the code of a loaded image, and not in the firmware, it
 * has crashed. The thread continues with enter(arg) instead, which writes line
 * to the log of the process's host and ends the process. line is read until
 * then. False: it cannot be contained, and nothing has changed. Signal handlers
 * may call it.
 */
bool nfc_island_crash(struct nfc_device *dev, uint32_t island, const char *line,
		      struct nfc_crashed *out);
/* Ask every island to return from nfc_island_run(). Any thread. */
void nfc_device_halt(struct nfc_device *dev);
/* After all islands returned: free what contexts hold in the port. */
void nfc_device_fini(struct nfc_device *dev);
/* ---- joints whose other end is at another node; any thread ---- */

/* How a process was asked, or answered. */
struct nfc_joined {
	uint64_t h2d,
		d2h; /* next transactions of its halves, as the target has them */
	uint64_t generation;
	uint32_t status; /* of enum nfc_status; the rest is there on 0 */
};

/* Two rings of NFC_JOINT_SLOTS, which are to be kept alike with those at the other node. */
struct nfc_joint_rings {
	struct nfc_slot *out, *in;
	uint64_t *out_head; /* written by the port: what was taken of out there */
	uint64_t *in_head; /* and by the device: of in */
};

/*
 * A process elsewhere asks for a target of a host that is attached. 0: the port holds
 * the joint, of an index below NFC_JOINTS, until nfc_joint_drop(), and has nfc_joint_asked()
 * for the answer, which carry announces. -NFC_ENOTARGET, -NFC_ENOMEM.
 */
int nfc_joint_ask(struct nfc_device *dev, uint32_t host, uint32_t target,
		  struct nfc_joint **joint, uint32_t *index);
/* False: there is no answer yet. */
bool nfc_joint_asked(struct nfc_joint *joint, struct nfc_joined *out);
/* The answer to what join() asked for. */
void nfc_joint_joined(struct nfc_joint *joint, const struct nfc_joined *answer);
struct nfc_joint_rings nfc_joint_rings(struct nfc_joint *joint);
/* There are slots in `in`. */
void nfc_joint_received(struct nfc_joint *joint);
/*
 * The other end was lost without a notice: close this end, after its received
 * slots.
 */
void nfc_joint_lost(struct nfc_joint *joint);
/* Has the device done with it, except for the slots in `out`? */
bool nfc_joint_over(struct nfc_joint *joint);
/* Copy from what is offered to the other end; NFC_EABORTED: that is not offered. */
int nfc_joint_give(struct nfc_joint *joint, void *to, uint64_t at, uint64_t len);
/* The port uses the joint no more. */
void nfc_joint_drop(struct nfc_joint *joint);

/* A process elsewhere connects to a host that listens. */
struct nfc_far_guest {
	struct nfc_whose from; /* the host of that process */
	struct nfc_whose to; /* the host that it connects to */
	uint32_t node; /* address of the node that it is at */
	uint32_t target; /* {number of the process there:8 | the listener's id:24} */
};

/*
 * The same as nfc_joint_ask(), for a host that listens at this node: the joint
 * carries no slots, and announces that the process waits for that host. The
 * answer has its owner for h2d and its home for d2h. -NFC_ENOTARGET: that host
 * has no such listener.
 */
int nfc_far_guest_ask(struct nfc_device *dev, uint32_t host,
		      const struct nfc_far_guest *guest,
		      struct nfc_joint **joint, uint32_t *index);
/* Was the host notified of the process? It then has to connect to it. */
bool nfc_far_guest_notified(struct nfc_joint *joint);

/*
 * Move one waiting DMA piece on the calling thread; 1 if there was one. Any
 * thread: DMA engines call it in a loop, a waiting host may assist.
 */
int nfc_dma_step(struct nfc_device *dev);

#endif /* NFC_PORT_H */
