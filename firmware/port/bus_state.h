/* SPDX-License-Identifier: MIT */
/* State that the files of the bus share. */
#ifndef NFC_PORT_BUS_STATE_H
#define NFC_PORT_BUS_STATE_H

#include <pthread.h>
#include <stdatomic.h>
#include <sys/types.h>

#include "bus.h"

/*
 * A file behind ranges. One that cannot shrink is mapped, whole and once; a
 * mapping of another would kill this process where the file was cut off, so
 * those are read and written instead.
 */
struct file {
	struct file *next;
	dev_t dev;
	ino_t ino;
	bool writable;
	uint64_t size;
	uint64_t refs; /* ranges */
	uint8_t *base; /* NULL: use fd */
	int fd; /* -1: use base */
};

struct range {
	uint64_t address;
	uint64_t size;
	uint64_t offset;
	uint32_t access;
	struct file *file; /* NULL: the owner of the bus moves the bytes */
};

struct nfc_bus {
	int area_fd;
	void *area;
	uint64_t area_size;
	struct nfc_irq *irq;

	pthread_rwlock_t lock; /* guards what follows; held over every copy */
	void *ranges; /* tsearch(3), ranges are disjoint */
	uint64_t count;
	struct file *files;
	uint64_t file_count;
	bool master;

	pthread_mutex_t requests; /* guards what follows */
	pthread_cond_t answered;
	struct nfc_bus_request *first, **last;
	bool served;
	int request_fd;

	_Atomic uint64_t row_address,
		row_memory; /* a read at these continues the row */
	_Atomic uint64_t
		row; /* bytes of reads of which each continued the one before */

	_Atomic uint64_t maps, unmaps, faults, bytes_read, bytes_written;
	_Atomic uint64_t fault_address;
	_Atomic uint32_t fault_access;
};

/* Make the memory behind the BAR, and give it up; bus_area.c. */
int nfc_bus_area_open(struct nfc_bus *bus);
void nfc_bus_area_close(struct nfc_bus *bus);

#endif
