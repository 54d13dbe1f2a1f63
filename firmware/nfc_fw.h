/* SPDX-License-Identifier: MIT */
/*
 * The device program interface: channels as a process on the device sees them.
 *
 *	host                         device
 *	ch.Send       ──────────►    channel_read
 *	ch.Receive    ◄──────────    channel_write
 *	ch.SendInd    ═══ DMA ══►    channel_read_ind
 *	ch.ReceiveInd ◄══ DMA ═══    channel_write_ind
 *
 * Every call is a rendezvous: it blocks the calling process, and no other,
 * until the host's end takes part. Calls return a count or 0, or the negated
 * enum nfc_status. A process runs on one island, cooperatively: it is switched
 * away from only inside these calls, so a long computation must call
 * nfc_yield() now and then.
 */
#ifndef NFC_FW_H
#define NFC_FW_H

#include "nfc_abi.h"

struct nfc_channel;
struct nfc_process;

/* The message or transfer that the host offers on a channel. */
struct nfc_offer {
	uint32_t indirect; /* 0: a message; 1: a transfer */
	uint32_t rsvd;
	uint64_t size; /* bytes */
};

enum nfc_stack_limits {
	NFC_STACK_MIN = 16 << 10, /* what asks for less gets this */
	NFC_STACK_MAX = 16 << 20, /* an image with a program that asks for more is refused */
};

/* The accesses to a window that hosts may make, ored. */
enum nfc_window_access {
	NFC_WINDOW_READ = 1, /* get */
	NFC_WINDOW_WRITE = 2, /* put */
};

/* A program, by name; main runs as one process per start. */
struct nfc_program {
	uint32_t abi; /* NFC_PROGRAM_ABI */
	uint32_t stack; /* bytes for each of its processes; 0: the device's default */
	const char *name; /* at most 23 characters */
	void (*main)(struct nfc_process *self);
};

/*
 * The calls a program may make, as one table: a program in a shared object
 * reaches the firmware through it, see NFC_PROGRAM_SHARED below.
 */
struct nfc_api {
	uint32_t abi; /* NFC_PROGRAM_ABI */
	uint32_t size; /* sizeof(struct nfc_api) */

	/*
	 * Take one message of at most n bytes into buf. Returns its length.
	 * -NFC_ETOOLARGE: it is longer; it stays offered.
	 * -NFC_EKIND: the host offers a transfer; both ends see the error.
	 * -NFC_ECLOSED: the host closed this half, or ended its subscription.
	 * -NFC_ESTOPPED: the process is to stop.
	 */
	int (*channel_read)(struct nfc_channel *ch, void *buf, size_t n);

	/*
	 * As channel_read, but report a transfer: take a message and
	 * return its length with offer->indirect 0, or return 0 with
	 * offer->indirect 1 and the transfer's size, still offered. The way to
	 * serve messages and transfers in any order at the speed of
	 * channel_read.
	 */
	int (*channel_read_any)(struct nfc_channel *ch, void *buf, size_t n,
				struct nfc_offer *offer);

	/*
	 * Give one message of n <= 56 bytes. Returns 0 once the host took it;
	 * errors as channel_read, and -NFC_ETOOLARGE.
	 */
	int (*channel_write)(struct nfc_channel *ch, const void *buf, size_t n);

	/*
	 * Take a transfer of exactly size bytes into device memory at the
	 * 40-bit address. Returns 0 once the host committed it.
	 * -NFC_ESIZE: the host offers another size; both ends see the error.
	 * -NFC_ERANGE: [address, address + size) is not device memory; a
	 * transfer the host offers now is refused with the same error.
	 * -NFC_EABORTED, -NFC_EDMA: it ended early; the memory holds a part.
	 */
	int (*channel_read_ind)(struct nfc_channel *ch, uint64_t address,
				uint64_t size);

	/* Give size bytes of device memory; as channel_read_ind. */
	int (*channel_write_ind)(struct nfc_channel *ch, uint64_t address,
				 uint64_t size);

	/* Wait for the host's next offer and describe it without taking it. */
	int (*channel_offer)(struct nfc_channel *ch, struct nfc_offer *offer);

	/*
	 * ALT: wait until one of n channels has an offer (or was closed, which
	 * a read then reports); returns its index. The lowest ready index wins.
	 * -NFC_ETIMEOUT after timeout_ns; 0 polls, UINT64_MAX waits for ever.
	 */
	int (*channel_alt)(struct nfc_channel *const *ch, size_t n,
			   uint64_t timeout_ns);

	/* Close halves (1 << enum nfc_direction); the host's end sees it. */
	void (*channel_close)(struct nfc_channel *ch, uint32_t halves);

	/* The channel behind port i of this process, i < nfc_ports(). */
	struct nfc_channel *(*channel)(struct nfc_process *self, uint32_t i);
	uint32_t (*ports)(struct nfc_process *self);
	/* The argument word of the start. */
	uint64_t (*argument)(struct nfc_process *self);
	/* True once the process is to stop: it should return. */
	int (*stopped)(struct nfc_process *self);

	/*
	 * Device memory: allocate (page-aligned; freed when the process ends),
	 * free, and access it. Address 0 from alloc means there is none left;
	 * at returns NULL unless the whole range is memory. Where the device is
	 * configured so, it takes as long as an access to that type of memory,
	 * during which other processes run: call it for each access to count.
	 */
	uint64_t (*alloc)(struct nfc_process *self, enum nfc_memory type,
			  uint64_t size);
	void (*free)(struct nfc_process *self, uint64_t address);
	void *(*at)(struct nfc_process *self, uint64_t address, uint64_t size);

	/* Let others run; sleep; the device clock; one log line. */
	void (*yield)(struct nfc_process *self);
	void (*sleep)(struct nfc_process *self, uint64_t ns);
	uint64_t (*now)(struct nfc_process *self);
	void (*log)(struct nfc_process *self, const char *line);

	/*
	 * prompt 1: from now on this process computes no longer than some tens
	 * of microseconds between two of these calls. It keeps no lock and no
	 * thread-local state across one, and may run on any thread of its host.
	 * A host that waits for it then runs it itself, which costs no switch
	 * of threads. 0, as at the start: it may compute for as long as it
	 * likes, on its island's own thread.
	 */
	void (*prompt)(struct nfc_process *self, int prompt);

	/*
	 * Subscribe to a port of another process, as the host would. From then
	 * on all of the above works on *ch, and the other process sees the
	 * events of a host on its port. *ch stays closed when this process has
	 * closed both halves, until it connects again, which may return the
	 * same. The target of a host that listens gives a channel to that host,
	 * its own or another: calls on it wait until the host accepts. Only a
	 * host of the same user is found, or one that listens for anyone; at
	 * another node the own one, or that. -NFC_EINVAL, -NFC_ENOTARGET: no
	 * target id; no process, and no host, there. -NFC_EBUSY: it is
	 * subscribed already, or this process's own; as many wait before a
	 * listener as may. -NFC_ENOMEM: the host has 64 such channels, or the
	 * other one has. -NFC_ETIMEOUT: the island of the other process, or its
	 * node, does not answer. -NFC_ENOTSUP: the id names a node, and the
	 * device is of no fabric; the host that listens is of an older build.
	 */
	int (*channel_connect)(struct nfc_process *self, uint64_t target,
			       struct nfc_channel **ch);

	/*
	 * Make [address, address + size) a window: hosts at any node of the
	 * fabric put to it or get from it, as enum nfc_window_access permits,
	 * by the key, at any time. This process is notified of neither. A
	 * window ends with nfc_revoke(), with its memory or with the process;
	 * no access reaches that memory any more then. Pass the key over a
	 * channel.
	 * -NFC_ERANGE: not memory that this process allocated, all of it at once.
	 * -NFC_EINVAL: access makes no sense. -NFC_ETOOLARGE: over 64 MiB.
	 * -NFC_ENOMEM: the host has 64 windows there, or the node 256, or 256 MiB.
	 * -NFC_ENOTSUP: the device is of no fabric. -NFC_ERESET: its node is dead.
	 */
	int (*window)(struct nfc_process *self, uint64_t address, uint64_t size,
		      uint32_t access, uint64_t *key);
	/* -NFC_ECLOSED: this process has no such window, or no more. */
	int (*revoke)(struct nfc_process *self, uint64_t key);

	/*
	 * Take what the host offers next: a message of at most n bytes into
	 * buf, or a transfer of at most room bytes into device memory at
	 * address. As channel_read_any, but a transfer that fits is taken: the
	 * result is 0 once the host committed it. The bytes move as soon as
	 * the host offers them, without a switch to the process that waits.
	 * -NFC_ETOOLARGE: *offer describes what does not fit; it stays offered.
	 * -NFC_ERANGE: [address, address + room) is not device memory.
	 * -NFC_EABORTED, -NFC_EDMA: as channel_read_ind.
	 */
	int (*channel_take)(struct nfc_channel *ch, void *buf, size_t n,
			    uint64_t address, uint64_t room,
			    struct nfc_offer *offer);

	/*
	 * The pointer to memory that the host shares, by the address that the
	 * host named to this process. It is good until this process ends; the host
	 * may write it at any time. NULL where the device does not reach host
	 * memory in place, and unless all of it is shared; a device in the
	 * host's own process cannot tell the latter.
	 */
	void *(*host_at)(struct nfc_process *self, uint64_t address,
			 uint64_t size);

	/*
	 * As channel_take, for a process that answers messages. The host's Call
	 * lasts until channel_reply, its Send until the message is taken. This
	 * process reads the channel again after it has answered: a read before
	 * that acknowledges the question, and the answer is a message then.
	 */
	int (*channel_question)(struct nfc_channel *ch, void *buf, size_t n,
				uint64_t address, uint64_t room,
				struct nfc_offer *offer);

	/*
	 * Answer the last channel_question by n <= 56 bytes. The answer to a
	 * Call is on its way when this returns 0; a message is answered by
	 * channel_write.
	 * -NFC_EWITHDRAWN: the Call has ended, nobody gets the answer.
	 * -NFC_EINVAL: no message was taken so, or it is answered.
	 * -NFC_ETOOLARGE: n is over 56; another reply may follow.
	 * -NFC_ECLOSED, -NFC_ESTOPPED: as channel_write.
	 */
	int (*channel_reply)(struct nfc_channel *ch, const void *buf, size_t n);
};

#ifdef NFC_PROGRAM_SHARED
/*
 * A program built outside the tree: compile with -DNFC_PROGRAM_SHARED -shared
 * -fPIC, define the table with NFC_PROGRAMS once, and load the object. A device
 * refuses one that needs what is not there; with -Wl,--no-undefined the linker does.
 */
extern const struct nfc_api *nfc_api;
#define NFC_PROGRAMS(...)                                \
	const struct nfc_api *nfc_api;                   \
	const struct nfc_program nfc_program_table[] = { \
		__VA_ARGS__,                             \
		{ 0, 0, NULL, NULL },                    \
	}
#define channel_read nfc_api->channel_read
#define channel_read_any nfc_api->channel_read_any
#define channel_write nfc_api->channel_write
#define channel_read_ind nfc_api->channel_read_ind
#define channel_write_ind nfc_api->channel_write_ind
#define channel_offer nfc_api->channel_offer
#define channel_alt nfc_api->channel_alt
#define channel_close nfc_api->channel_close
#define channel_connect nfc_api->channel_connect
#define nfc_channel_of nfc_api->channel
#define nfc_ports nfc_api->ports
#define nfc_argument nfc_api->argument
#define nfc_stopped nfc_api->stopped
#define nfc_alloc nfc_api->alloc
#define nfc_free nfc_api->free
#define nfc_at nfc_api->at
#define nfc_yield nfc_api->yield
#define nfc_sleep nfc_api->sleep
#define nfc_now nfc_api->now
#define nfc_log nfc_api->log
#define nfc_prompt nfc_api->prompt
#define nfc_window nfc_api->window
#define nfc_revoke nfc_api->revoke
#define channel_take nfc_api->channel_take
#define nfc_host_at nfc_api->host_at
#define channel_question nfc_api->channel_question
#define channel_reply nfc_api->channel_reply
#else
int channel_read(struct nfc_channel *ch, void *buf, size_t n);
int channel_read_any(struct nfc_channel *ch, void *buf, size_t n,
		     struct nfc_offer *offer);
int channel_write(struct nfc_channel *ch, const void *buf, size_t n);
int channel_read_ind(struct nfc_channel *ch, uint64_t address, uint64_t size);
int channel_write_ind(struct nfc_channel *ch, uint64_t address, uint64_t size);
int channel_offer(struct nfc_channel *ch, struct nfc_offer *offer);
int channel_alt(struct nfc_channel *const *ch, size_t n, uint64_t timeout_ns);
void channel_close(struct nfc_channel *ch, uint32_t halves);
int channel_connect(struct nfc_process *self, uint64_t target,
		    struct nfc_channel **ch);
struct nfc_channel *nfc_channel_of(struct nfc_process *self, uint32_t i);
uint32_t nfc_ports(struct nfc_process *self);
uint64_t nfc_argument(struct nfc_process *self);
int nfc_stopped(struct nfc_process *self);
uint64_t nfc_alloc(struct nfc_process *self, enum nfc_memory type,
		   uint64_t size);
void nfc_free(struct nfc_process *self, uint64_t address);
void *nfc_at(struct nfc_process *self, uint64_t address, uint64_t size);
void nfc_yield(struct nfc_process *self);
void nfc_sleep(struct nfc_process *self, uint64_t ns);
uint64_t nfc_now(struct nfc_process *self);
void nfc_log(struct nfc_process *self, const char *line);
void nfc_prompt(struct nfc_process *self, int prompt);
int nfc_window(struct nfc_process *self, uint64_t address, uint64_t size,
	       uint32_t access, uint64_t *key);
int nfc_revoke(struct nfc_process *self, uint64_t key);
int channel_take(struct nfc_channel *ch, void *buf, size_t n, uint64_t address,
		 uint64_t room, struct nfc_offer *offer);
void *nfc_host_at(struct nfc_process *self, uint64_t address, uint64_t size);
int channel_question(struct nfc_channel *ch, void *buf, size_t n,
		     uint64_t address, uint64_t room, struct nfc_offer *offer);
int channel_reply(struct nfc_channel *ch, const void *buf, size_t n);
#endif

#endif /* NFC_FW_H */
