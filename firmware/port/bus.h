/* SPDX-License-Identifier: MIT */
/*
 * The device's side of a bus: the memory behind the mailbox BAR, the host
 * memory that was mapped for DMA, and the interrupt vectors. It outlives the
 * epochs of the device on it. Any thread may make every call.
 */
#ifndef PORT_BUS_H
#define PORT_BUS_H

#include <stdbool.h>
#include <stdint.h>

#include "irq.h"

struct nfc_bus;

enum nfc_bus_access {
	NFC_BUS_READ = 1, /* the device may read host memory */
	NFC_BUS_WRITE = 2, /* the device may write it */
};

/* A piece of host memory, by bus address. All but access are bytes. */
struct nfc_bus_range {
	uint64_t address;
	uint64_t size;
	uint64_t offset; /* in the file */
	uint32_t access; /* enum nfc_bus_access, ored */
	int32_t fd; /* of the file behind it, not kept; -1: ask the owner */
};

/* An access to memory without a file: the owner of the bus moves the bytes. */
struct nfc_bus_request {
	struct nfc_bus_request *next;
	uint64_t address;
	uint64_t length;
	void *memory;
	uint32_t access;
	bool done;
	int status; /* enum nfc_status */
};

struct nfc_bus_stats {
	uint64_t ranges; /* mapped now */
	uint64_t maps, unmaps; /* ranges, since the start */
	uint64_t faults; /* accesses outside what was mapped */
	uint64_t fault_address; /* of the last one */
	uint32_t fault_access;
	uint64_t bytes_read, bytes_written; /* of host memory */
	struct nfc_irq_stats irq;
};

/*
 * NULL: out of memory, descriptors or threads. area_size: whole pages. vectors:
 * 0 if the process that attaches it rings the host in another way.
 */
struct nfc_bus *nfc_bus_new(uint64_t area_size, uint32_t vectors);
void nfc_bus_free(struct nfc_bus *bus);

/* The memory behind the BAR: its file, which stays the bus's, and a mapping. */
int nfc_bus_area_fd(const struct nfc_bus *bus);
void *nfc_bus_area(const struct nfc_bus *bus, uint64_t *size);
/* Make it zero; 0 or -errno. */
int nfc_bus_area_clear(struct nfc_bus *bus);
/*
 * Access it as the host would through the BAR: aligned words of 4 and 8 bytes
 * whole, a store with release and a load with acquire. -EINVAL outside of it.
 */
int nfc_bus_area_load(struct nfc_bus *bus, uint64_t offset, void *to,
		      uint64_t length);
int nfc_bus_area_store(struct nfc_bus *bus, uint64_t offset, const void *from,
		       uint64_t length);

/* Make host memory reachable; 0 or -errno. */
int nfc_bus_map(struct nfc_bus *bus, const struct nfc_bus_range *range);
/*
 * Take away every range inside [address, address + size). Returns when no copy
 * uses them any more; -EINVAL, and nothing is done, if a range is there in part.
 */
int nfc_bus_unmap(struct nfc_bus *bus, uint64_t address, uint64_t size);
void nfc_bus_unmap_all(struct nfc_bus *bus);
/* May the device reach host memory and interrupt? At first not. Waits, too. */
void nfc_bus_master(struct nfc_bus *bus, bool on);
/* 0 or NFC_EDMA. */
int nfc_bus_read(struct nfc_bus *bus, void *to, uint64_t address,
		 uint64_t length);
int nfc_bus_write(struct nfc_bus *bus, uint64_t address, const void *from,
		  uint64_t length);
/*
 * Copy from one bus to another, or on one. False if a byte is not in a file that is mapped,
 * or is in both, or an unmap waits: nothing is known of the bytes at to then.
 */
bool nfc_bus_copy(struct nfc_bus *to, uint64_t to_address, struct nfc_bus *from,
		  uint64_t from_address, uint64_t length);

/*
 * Where the device has host memory mapped, to read and write, in one piece; NULL if it has not. It
 * stays there until it is unmapped.
 */
void *nfc_bus_at(struct nfc_bus *bus, uint64_t address, uint64_t length);

/* Is there an owner who serves requests? At first not: they are faults. */
void nfc_bus_serve(struct nfc_bus *bus, bool on);
/* Becomes readable (an eventfd) when there is a request. Stays the bus's. */
int nfc_bus_request_fd(const struct nfc_bus *bus);
/* The next request, which must be answered; NULL: none. */
struct nfc_bus_request *nfc_bus_request_take(struct nfc_bus *bus);
void nfc_bus_request_done(struct nfc_bus *bus, struct nfc_bus_request *request,
			  int status);

struct nfc_irq *nfc_bus_irq(const struct nfc_bus *bus);
void nfc_bus_stats(struct nfc_bus *bus, struct nfc_bus_stats *s);

#endif /* PORT_BUS_H */
