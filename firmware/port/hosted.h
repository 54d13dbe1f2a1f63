/* SPDX-License-Identifier: MIT */
/*
 * The hosted port: the firmware on threads of a Linux process. Without a bus,
 * host memory is this process's own and a bus address is a virtual address;
 * with one, the mailbox area, DMA and interrupts are the bus's.
 */
#ifndef PORT_HOSTED_H
#define PORT_HOSTED_H

#include "../nfc_port.h"
#include "bus.h"

struct nfc_hosted;

struct nfc_hosted_options {
	uint64_t spin_ns; /* how long an idle island spins before it sleeps */
	uint32_t engines; /* DMA threads beside the islands */
	uint32_t busy; /* one piece of so many is refused for now; 0: none */
	int32_t log_fd; /* lines are written to a duplicate of it; -1: to none */
	uint32_t epoch; /* of the first start */
	bool shared; /* its hosts are attached by nfc_hosted_attach() */
	struct nfc_bus *bus; /* or NULL. Stays the caller's; one device on it */
};

/*
 * All return 0 or the negated enum nfc_status. A bus's area is zeroed first;
 * NFC_ETOOLARGE if the device's does not fit in it.
 */
int nfc_hosted_open(const struct nfc_config *config,
		    const struct nfc_hosted_options *options,
		    struct nfc_hosted **out);
/* How a shared device reaches a host that is at another node. Any thread. */
struct nfc_hosted_far {
	void *self;
	void (*ring)(void *self);
	/* dma_read or dma_write of struct nfc_port. */
	int (*dma)(void *self, bool write, void *memory, uint64_t bus,
		   uint64_t len);
};

/*
 * Channels of a host's processes to those at other nodes, and their windows: as in struct
 * nfc_port.
 */
struct nfc_hosted_joints {
	void *self;
	int (*locate)(void *self, uint64_t id);
	int (*join)(void *self, struct nfc_joint *joint, uint32_t index,
		    uint64_t id);
	void (*carry)(void *self, uint32_t index);
	int (*fetch)(void *self, uint32_t index, void *to, uint64_t at,
		     uint64_t len);
	void (*whose)(void *self, struct nfc_whose *out);
	int (*window)(void *self, void *memory, uint64_t size, uint32_t access,
		      uint64_t *key);
	void (*revoke)(void *self, uint64_t key);
	/*
	 * From now on the host is that one of a device; NULL: it is about to be
	 * detached, and has no windows any more.
	 */
	void (*serve)(void *self, struct nfc_device *core, uint32_t host);
};

/* How a shared device reaches a host: by a bus and a doorbell, or far away. */
struct nfc_hosted_peer {
	struct nfc_bus *bus; /* its area and its memory; stays the caller's */
	int32_t doorbell; /* a socket: one byte for each ring. A duplicate is kept. */
	const struct nfc_hosted_far *far; /* or NULL. Its area is the device's. */
	const struct nfc_hosted_joints *joints; /* NULL: it is of no fabric */
	uint32_t epoch;
	bool no_load; /* it may load no programs */
	uint64_t user; /* uid of the owner; 0 if unknown */
	uint32_t channels, processes; /* as in struct nfc_seat */
};

/*
 * Attach a host to a shared device, and detach it: nothing reaches its bus after
 * that. One call of both at a time, none beside a close. 0 or the negated enum
 * nfc_status; -NFC_EBUSY if there is no place.
 */
int nfc_hosted_attach(struct nfc_hosted *h, const struct nfc_hosted_peer *peer,
		      uint32_t *host);
void nfc_hosted_detach(struct nfc_hosted *h, uint32_t host);
/* The area of a host that is far. */
struct nfc_area *nfc_hosted_area_of(struct nfc_hosted *h, uint32_t host);
/*
 * Host 0 of a device that is not shared gets joints, once, or loses them: then
 * this returns when no thread is in one of those calls.
 */
void nfc_hosted_join(struct nfc_hosted *h,
		     const struct nfc_hosted_joints *joints);
/* Wake an island. Any thread, until nfc_hosted_close(). */
void nfc_hosted_wake(struct nfc_hosted *h, uint32_t island);
/*
 * The device is to be closed: what waits for its islands, to attach or detach a host,
 * returns.
 */
void nfc_hosted_halt(struct nfc_hosted *h);
/* No DMA of that host starts after this; returns when none runs. */
void nfc_hosted_fence_host(struct nfc_hosted *h, uint32_t host);
/*
 * Fence, end this epoch of the device, boot the next under epoch. Not on a bus,
 * where the next epoch is another device and may have another shape, nor
 * shared. left and `who` are as for nfc_hosted_close().
 */
int nfc_hosted_restart(struct nfc_hosted *h, uint32_t epoch, bool *left,
		       struct nfc_computing *who);
/* No DMA starts after this; returns when none runs. */
void nfc_hosted_fence(struct nfc_hosted *h);
/* Move one DMA piece on this thread; 1 if there was one. */
int nfc_hosted_assist(struct nfc_hosted *h);
/* nfc_island_assist() of the present epoch; not beside a restart or close. */
struct nfc_ran {
	uint64_t undrained;
	uint32_t owner; /* enum nfc_owner */
};

struct nfc_ran nfc_hosted_run(struct nfc_hosted *h, uint32_t island, bool exact);
/* The mailbox area of this epoch. */
void *nfc_hosted_area(struct nfc_hosted *h, uint64_t *size);
/*
 * Set the readings of the device's sensors, as a diagnostic word. The present
 * epoch reads it with its next heartbeat.
 */
void nfc_hosted_sense(struct nfc_hosted *h, uint32_t word);
/* Wake an island that sleeps. */
void nfc_hosted_ring(struct nfc_hosted *h, uint32_t island);
/* An eventfd the device rings the host with, without a bus. Stays the port's. */
int nfc_hosted_doorbell(struct nfc_hosted *h);
/* How a process crashed. */
struct nfc_crash {
	uint64_t process;
	uint32_t island;
	char program[NFC_NAME_SIZE];
	char what[80]; /* it did, as "divided by zero" */
	uint64_t image; /* number of the image where it was; 0: in none */
	uint64_t offset; /* there */
};

/*
 * The crash that ended a subscription of a target in this epoch; false if none did, or
 * if it is too long ago. Not beside a restart or close.
 */
bool nfc_hosted_crash(struct nfc_hosted *h, uint32_t host, uint32_t target,
		      uint64_t generation, struct nfc_crash *out);
/* The file of an image, to free(); NULL if it is not loaded any more. Any thread. */
void *nfc_hosted_image(uint64_t image, uint64_t *size);
/* nfc_island_computes() of the present epoch. */
bool nfc_hosted_computes(struct nfc_hosted *h, uint32_t island,
			 struct nfc_computing *who);
/*
 * Stop everything and free it. A thread that a program keeps for itself is left
 * behind, and with it the memory that it can reach, until it ends and another
 * device is opened or closed. It reaches neither the bus nor a descriptor any
 * more. left reports that, also of an epoch before, and `who` the process that
 * keeps it (0 if unknown).
 */
void nfc_hosted_close(struct nfc_hosted *h, bool *left,
		      struct nfc_computing *who);

#endif /* PORT_HOSTED_H */
