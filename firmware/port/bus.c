// SPDX-License-Identifier: MIT
/* The device's side of a bus; see bus.h. */
#define _GNU_SOURCE
#include "bus_state.h"

#include <errno.h>
#include <fcntl.h>
#include <search.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../nfc_abi.h"
#include "fault.h"

enum {
	RANGES_MAX = 65535, /* as promised to the owner of the bus */
	FILES_MAX = 64,
	ROW_PIECE = 128 << 10, /* less is of no long transfer */
	ROW_LONG = 4 << 20, /* bytes in a row */
};

/* ---- files behind ranges ---- */

static int file_open(struct file *f, int fd, const struct stat *st)
{
	int seals = fcntl(fd, F_GET_SEALS);
	int prot = f->writable ? PROT_READ | PROT_WRITE : PROT_READ;

	f->dev = st->st_dev;
	f->ino = st->st_ino;
	f->size = (uint64_t)st->st_size;
	f->fd = -1;
	if (seals < 0 || !(seals & F_SEAL_SHRINK)) {
		f->fd = fcntl(fd, F_DUPFD_CLOEXEC, 0);
		return f->fd < 0 ? -errno : 0;
	}
	f->base = mmap(NULL, f->size, prot, MAP_SHARED | MAP_NORESERVE, fd, 0);
	if (f->base != MAP_FAILED)
		return 0;
	f->base = NULL;
	return -errno;
}

static void file_close(struct file *f)
{
	if (f->base)
		munmap(f->base, f->size);
	if (f->fd >= 0)
		close(f->fd);
	free(f);
}

/* A file of that identity, access and size, opened before or now. */
static int file_get(struct nfc_bus *bus, int fd, const struct stat *st,
		    bool writable, struct file **out)
{
	struct file *f;
	int rc;

	for (f = bus->files; f; f = f->next)
		if (f->dev == st->st_dev && f->ino == st->st_ino &&
		    f->writable == writable && f->size == (uint64_t)st->st_size) {
			*out = f;
			return 0;
		}
	if (bus->file_count == FILES_MAX)
		return -ENOSPC;
	f = calloc(1, sizeof(*f));
	if (!f)
		return -ENOMEM;
	f->writable = writable;
	rc = file_open(f, fd, st);
	if (rc) {
		free(f);
		return rc;
	}
	f->next = bus->files;
	bus->files = f;
	bus->file_count++;
	*out = f;
	return 0;
}

/* Close a file that no range uses. */
static void file_put(struct nfc_bus *bus, struct file *f)
{
	struct file **at = &bus->files;

	if (!f || f->refs)
		return;
	while (*at != f)
		at = &(*at)->next;
	*at = f->next;
	bus->file_count--;
	file_close(f);
}

/* ---- ranges ---- */

/* Ranges that share a byte are equal: then a search finds who is in the way. */
static int compare(const void *a, const void *b)
{
	const struct range *x = a, *y = b;

	if (x->address + (x->size - 1) < y->address)
		return -1;
	if (y->address + (y->size - 1) < x->address)
		return 1;
	return 0;
}

static struct range *find(struct nfc_bus *bus, uint64_t address, uint64_t size)
{
	struct range key = { .address = address, .size = size };
	struct range **at = tfind(&key, &bus->ranges, compare);

	return at ? *at : NULL;
}

static void drop(struct nfc_bus *bus, struct range *r)
{
	tdelete(r, &bus->ranges, compare);
	bus->count--;
	bus->unmaps++;
	if (r->file) {
		r->file->refs--;
		file_put(bus, r->file);
	}
	free(r);
}

static bool sound(uint64_t address, uint64_t size)
{
	const uint64_t below = NFC_PAGE_SIZE - 1;

	return size && !(address & below) && !(size & below) &&
	       size - 1 <= UINT64_MAX - address;
}

/* Find the file of a range; the caller may close the descriptor afterwards. */
static int attach(struct nfc_bus *bus, const struct nfc_bus_range *wish,
		  struct range *r)
{
	int flags = fcntl(wish->fd, F_GETFL);
	struct stat st;
	bool writable;
	int rc;

	if (flags < 0 || fstat(wish->fd, &st))
		return -errno;
	if (!S_ISREG(st.st_mode) || wish->offset > (uint64_t)st.st_size ||
	    wish->size > (uint64_t)st.st_size - wish->offset)
		return -EINVAL;
	writable = (flags & O_ACCMODE) == O_RDWR;
	if (!writable &&
	    ((flags & O_ACCMODE) == O_WRONLY || wish->access & NFC_BUS_WRITE))
		return -EACCES;
	rc = file_get(bus, wish->fd, &st, writable, &r->file);
	if (!rc)
		r->file->refs++;
	return rc;
}

/* Must hold lock for writing. */
static int insert(struct nfc_bus *bus, const struct nfc_bus_range *wish,
		  struct range *r)
{
	int rc;

	if (find(bus, wish->address, wish->size))
		return -EEXIST;
	if (bus->count == RANGES_MAX)
		return -ENOSPC;
	rc = wish->fd < 0 ? 0 : attach(bus, wish, r);
	if (rc)
		return rc;
	if (!tsearch(r, &bus->ranges, compare)) {
		if (r->file) {
			r->file->refs--;
			file_put(bus, r->file);
		}
		return -ENOMEM;
	}
	bus->count++;
	bus->maps++;
	return 0;
}

int nfc_bus_map(struct nfc_bus *bus, const struct nfc_bus_range *wish)
{
	const uint32_t known = NFC_BUS_READ | NFC_BUS_WRITE;
	struct range *r;
	int rc;

	if (!sound(wish->address, wish->size) || !wish->access ||
	    wish->access & ~known || wish->offset & (NFC_PAGE_SIZE - 1))
		return -EINVAL;
	r = malloc(sizeof(*r));
	if (!r)
		return -ENOMEM;
	*r = (struct range){
		.address = wish->address,
		.size = wish->size,
		.offset = wish->offset,
		.access = wish->access,
	};
	pthread_rwlock_wrlock(&bus->lock);
	rc = insert(bus, wish, r);
	pthread_rwlock_unlock(&bus->lock);
	if (rc)
		free(r);
	return rc;
}

static bool inside(const struct range *r, uint64_t address, uint64_t size)
{
	return r->address >= address &&
	       r->address + (r->size - 1) <= address + (size - 1);
}

/*
 * Only the ranges at the two ends can stick out. A range that covers both is
 * one of them. Must hold lock for writing.
 */
static int remove_ranges(struct nfc_bus *bus, uint64_t address, uint64_t size)
{
	struct range *head = find(bus, address, 1);
	struct range *tail = find(bus, address + (size - 1), 1);
	struct range *r;

	if ((head && !inside(head, address, size)) ||
	    (tail && !inside(tail, address, size)))
		return -EINVAL;
	while ((r = find(bus, address, size)))
		drop(bus, r);
	return 0;
}

int nfc_bus_unmap(struct nfc_bus *bus, uint64_t address, uint64_t size)
{
	int rc;

	if (!sound(address, size))
		return -EINVAL;
	pthread_rwlock_wrlock(&bus->lock);
	rc = remove_ranges(bus, address, size);
	pthread_rwlock_unlock(&bus->lock);
	return rc;
}

void nfc_bus_unmap_all(struct nfc_bus *bus)
{
	pthread_rwlock_wrlock(&bus->lock);
	while (bus->ranges)
		drop(bus, *(struct range **)bus->ranges); /* the root */
	pthread_rwlock_unlock(&bus->lock);
}

void nfc_bus_master(struct nfc_bus *bus, bool on)
{
	pthread_rwlock_wrlock(&bus->lock);
	bus->master = on;
	pthread_rwlock_unlock(&bus->lock);
	if (bus->irq)
		nfc_irq_enable(bus->irq, on);
}

/* ---- requests to the owner of the bus ---- */

void nfc_bus_serve(struct nfc_bus *bus, bool on)
{
	pthread_mutex_lock(&bus->requests);
	bus->served = on;
	pthread_mutex_unlock(&bus->requests);
}

int nfc_bus_request_fd(const struct nfc_bus *bus)
{
	return bus->request_fd;
}

struct nfc_bus_request *nfc_bus_request_take(struct nfc_bus *bus)
{
	struct nfc_bus_request *r;

	pthread_mutex_lock(&bus->requests);
	r = bus->first;
	if (r)
		bus->first = r->next;
	if (!bus->first)
		bus->last = &bus->first;
	pthread_mutex_unlock(&bus->requests);
	return r;
}

void nfc_bus_request_done(struct nfc_bus *bus, struct nfc_bus_request *r,
			  int status)
{
	pthread_mutex_lock(&bus->requests);
	r->status = status;
	r->done = true;
	pthread_cond_broadcast(&bus->answered);
	pthread_mutex_unlock(&bus->requests);
}

/* Hand the bytes to the owner and wait for them. */
static int ask(struct nfc_bus *bus, uint64_t address, void *memory,
	       uint64_t length, uint32_t access)
{
	struct nfc_bus_request r = {
		.address = address,
		.length = length,
		.memory = memory,
		.access = access,
		.status = NFC_EDMA,
	};
	uint64_t one = 1;
	ssize_t n;

	pthread_mutex_lock(&bus->requests);
	if (bus->served) {
		*bus->last = &r;
		bus->last = &r.next;
		n = write(bus->request_fd, &one, sizeof(one));
		(void)n; /* full: it is readable already */
		while (!r.done)
			pthread_cond_wait(&bus->answered, &bus->requests);
	}
	pthread_mutex_unlock(&bus->requests);
	return r.status;
}

/* ---- access ---- */

/* Files that may shrink: what is cut off gives a short count, not a signal. */
static int move_file(const struct range *r, uint64_t at, void *memory,
		     uint64_t length, uint32_t access)
{
	uint8_t *p = memory;

	while (length) {
		ssize_t n = access == NFC_BUS_READ ?
				    pread(r->file->fd, p, length, (off_t)at) :
				    pwrite(r->file->fd, p, length, (off_t)at);

		if (n <= 0)
			return NFC_EDMA;
		p += n;
		at += (uint64_t)n;
		length -= (uint64_t)n;
	}
	return 0;
}

/*
 * Does a read continue so many before it, at both ends, that a cache does not
 * keep them? Then its stores bypass the caches, or each would read its line
 * first. Engines that share a transfer do not read in a row.
 */
static bool in_long_row(struct nfc_bus *bus, uint64_t address,
			const void *memory, uint64_t length)
{
	uint64_t to = (uintptr_t)memory, row = length;

	if (length < ROW_PIECE)
		return false;
	if (atomic_load_explicit(&bus->row_address, memory_order_relaxed) ==
		    address &&
	    atomic_load_explicit(&bus->row_memory, memory_order_relaxed) == to)
		row += atomic_load_explicit(&bus->row, memory_order_relaxed);
	atomic_store_explicit(&bus->row, row, memory_order_relaxed);
	atomic_store_explicit(&bus->row_address, address + length,
			      memory_order_relaxed);
	atomic_store_explicit(&bus->row_memory, to + length,
			      memory_order_relaxed);
	return row > ROW_LONG;
}

static int move(struct nfc_bus *bus, const struct range *r, uint64_t address,
		void *memory, uint64_t length, uint32_t access)
{
	uint64_t at = r->offset + (address - r->address);

	if (!(r->access & access))
		return NFC_EDMA;
	if (!r->file)
		return ask(bus, address, memory, length, access);
	if (!r->file->base)
		return move_file(r, at, memory, length, access);
	/* a file that keeps its size may still have no memory for a page */
	if (access == NFC_BUS_WRITE)
		return nfc_fault_give(r->file->base + at, memory, length);
	if (in_long_row(bus, address, memory, length))
		return nfc_fault_give(memory, r->file->base + at, length);
	return nfc_fault_copy(memory, r->file->base + at, length);
}

static int fault(struct nfc_bus *bus, uint64_t address, uint32_t access)
{
	bus->fault_address = address;
	bus->fault_access = access;
	bus->faults++;
	return NFC_EDMA;
}

void *nfc_bus_at(struct nfc_bus *bus, uint64_t address, uint64_t length)
{
	const uint32_t both = NFC_BUS_READ | NFC_BUS_WRITE;
	const struct range *r;
	void *at = NULL;

	pthread_rwlock_rdlock(&bus->lock);
	r = find(bus, address, 1);
	if (r && bus->master && r->access == both && r->file && r->file->base &&
	    length <= r->size - (address - r->address))
		at = r->file->base + r->offset + (address - r->address);
	pthread_rwlock_unlock(&bus->lock);
	return at;
}

/* The lock is held over the copy, so that an unmap waits for it. */
static int copy(struct nfc_bus *bus, uint64_t address, uint8_t *memory,
		uint64_t length, uint32_t access)
{
	int rc = 0;

	pthread_rwlock_rdlock(&bus->lock);
	while (length && !rc) {
		struct range *r = bus->master ? find(bus, address, 1) : NULL;
		uint64_t n = r ? r->size - (address - r->address) : 0;

		if (n > length)
			n = length;
		rc = r ? move(bus, r, address, memory, n, access) : NFC_EDMA;
		if (rc) {
			fault(bus, address, access);
			break;
		}
		address += n;
		memory += n;
		length -= n;
	}
	pthread_rwlock_unlock(&bus->lock);
	return rc;
}

int nfc_bus_read(struct nfc_bus *bus, void *to, uint64_t address,
		 uint64_t length)
{
	int rc = copy(bus, address, to, length, NFC_BUS_READ);

	if (!rc)
		bus->bytes_read += length;
	return rc;
}

int nfc_bus_write(struct nfc_bus *bus, uint64_t address, const void *from,
		  uint64_t length)
{
	int rc = copy(bus, address, (uint8_t *)(uintptr_t)from, length,
		      NFC_BUS_WRITE);

	if (!rc)
		bus->bytes_written += length;
	return rc;
}

/*
 * Where bytes are that a copy between buses may touch, and how many are there in a row.
 * NULL: they are to be moved on their own. Must hold lock.
 */
static uint8_t *bus_bytes(struct nfc_bus *bus, uint64_t address,
			  uint32_t access, uint64_t *length)
{
	struct range *r = bus->master ? find(bus, address, 1) : NULL;
	uint64_t left;

	if (!r || !(r->access & access) || !r->file || !r->file->base)
		return NULL;
	left = r->size - (address - r->address);
	if (*length > left)
		*length = left;
	return r->file->base + r->offset + (address - r->address);
}

/* Must hold both locks. */
static bool copy_across(struct nfc_bus *to, uint64_t to_address,
			struct nfc_bus *from, uint64_t from_address,
			uint64_t length)
{
	while (length) {
		uint64_t n = length;
		uint8_t *there = bus_bytes(to, to_address, NFC_BUS_WRITE, &n);
		uint8_t *here = bus_bytes(from, from_address, NFC_BUS_READ, &n);

		if (!there || !here || (uintptr_t)there - (uintptr_t)here < n ||
		    (uintptr_t)here - (uintptr_t)there < n ||
		    nfc_fault_give(there, here, n))
			return false;
		to_address += n;
		from_address += n;
		length -= n;
	}
	return true;
}

/*
 * Both locks are held over the copy. One of them is only tried, so that a
 * thread that waits for one bus, or the bus itself, never keeps the other.
 */
bool nfc_bus_copy(struct nfc_bus *to, uint64_t to_address, struct nfc_bus *from,
		  uint64_t from_address, uint64_t length)
{
	bool copied = false;

	pthread_rwlock_rdlock(&from->lock);
	if (!pthread_rwlock_tryrdlock(&to->lock)) {
		copied = copy_across(to, to_address, from, from_address, length);
		pthread_rwlock_unlock(&to->lock);
	}
	pthread_rwlock_unlock(&from->lock);
	if (copied) {
		to->bytes_written += length;
		from->bytes_read += length;
	}
	return copied;
}

/* ---- the bus as its owner sees it ---- */

struct nfc_irq *nfc_bus_irq(const struct nfc_bus *bus)
{
	return bus->irq;
}

void nfc_bus_stats(struct nfc_bus *bus, struct nfc_bus_stats *s)
{
	s->maps = bus->maps;
	s->unmaps = bus->unmaps;
	s->ranges = s->maps - s->unmaps;
	s->faults = bus->faults;
	s->fault_address = bus->fault_address;
	s->fault_access = bus->fault_access;
	s->bytes_read = bus->bytes_read;
	s->bytes_written = bus->bytes_written;
	if (bus->irq)
		nfc_irq_stats(bus->irq, &s->irq);
	else
		s->irq = (struct nfc_irq_stats){ 0 };
}

/* Engines that copy all the time must not keep an unmap waiting for ever. */
static void init_locks(struct nfc_bus *bus)
{
	pthread_rwlockattr_t attr;

	pthread_rwlockattr_init(&attr);
	pthread_rwlockattr_setkind_np(
		&attr, PTHREAD_RWLOCK_PREFER_WRITER_NONRECURSIVE_NP);
	pthread_rwlock_init(&bus->lock, &attr);
	pthread_rwlockattr_destroy(&attr);
	pthread_mutex_init(&bus->requests, NULL);
	pthread_cond_init(&bus->answered, NULL);
}

struct nfc_bus *nfc_bus_new(uint64_t area_size, uint32_t vectors)
{
	struct nfc_bus *bus = calloc(1, sizeof(*bus));

	if (!bus)
		return NULL;
	init_locks(bus);
	bus->area_size = area_size;
	bus->last = &bus->first;
	bus->area = MAP_FAILED;
	bus->request_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (vectors)
		bus->irq = nfc_irq_new(vectors);
	if (nfc_bus_area_open(bus) || bus->request_fd < 0 ||
	    (vectors && !bus->irq)) {
		nfc_bus_free(bus);
		return NULL;
	}
	return bus;
}

void nfc_bus_free(struct nfc_bus *bus)
{
	nfc_bus_unmap_all(bus);
	if (bus->irq)
		nfc_irq_free(bus->irq);
	nfc_bus_area_close(bus);
	if (bus->request_fd >= 0)
		close(bus->request_fd);
	pthread_rwlock_destroy(&bus->lock);
	pthread_mutex_destroy(&bus->requests);
	pthread_cond_destroy(&bus->answered);
	free(bus);
}
