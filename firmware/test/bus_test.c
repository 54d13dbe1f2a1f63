// SPDX-License-Identifier: MIT
/* The bus: host memory by bus address, and interrupt vectors. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "../nfc_abi.h"
#include "../port/bus.h"
#include "harness.h"

enum {
	PAGE = 4096,
	PAGES = 64, /* of bus addresses and of the file */
	ROUNDS = 4000,
	AREA = 1 << 16,
};

static int memory(uint64_t size, bool sealed)
{
	int fd = memfd_create("host", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	CHECK(fd >= 0);
	CHECK_EQ(ftruncate(fd, (off_t)size), 0);
	if (sealed)
		CHECK_EQ(fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK), 0);
	return fd;
}

static struct nfc_bus *master(void)
{
	struct nfc_bus *bus = nfc_bus_new(AREA, 4);

	CHECK(bus != NULL);
	nfc_bus_master(bus, true);
	return bus;
}

static int map(struct nfc_bus *bus, uint64_t page, uint64_t pages,
	       uint64_t offset, uint32_t access, int fd)
{
	return nfc_bus_map(bus, &(struct nfc_bus_range){
					.address = page * PAGE,
					.size = pages * PAGE,
					.offset = offset * PAGE,
					.access = access,
					.fd = fd,
				});
}

/* The expected table: per page of bus addresses, its range and place. */
struct model {
	struct {
		uint32_t range; /* 0: none */
		uint32_t access;
		uint32_t file_page;
		bool first, last;
	} page[PAGES];
	uint8_t byte[PAGES]; /* every byte of that page of the file */
	uint32_t ranges;
};

static uint32_t below(unsigned int *seed, uint32_t n)
{
	return (uint32_t)rand_r(seed) % n;
}

static void try_map(struct model *m, struct nfc_bus *bus, unsigned int *seed,
		    int fd)
{
	uint32_t at = below(seed, PAGES), n = 1 + below(seed, 8);
	uint32_t file = below(seed, PAGES), access = 1 + below(seed, 3);
	bool free_pages = true;
	int want;

	if (at + n > PAGES)
		n = PAGES - at;
	for (uint32_t i = 0; i < n; i++)
		free_pages &= !m->page[at + i].range;
	want = !free_pages ? -EEXIST : file + n > PAGES ? -EINVAL : 0;
	CHECK_EQ(map(bus, at, n, file, access, fd), want);
	if (want)
		return;
	m->ranges++;
	for (uint32_t i = 0; i < n; i++) {
		m->page[at + i].range = m->ranges;
		m->page[at + i].access = access;
		m->page[at + i].file_page = file + i;
		m->page[at + i].first = i == 0;
		m->page[at + i].last = i == n - 1;
	}
}

static void try_unmap(struct model *m, struct nfc_bus *bus, unsigned int *seed)
{
	uint32_t at = below(seed, PAGES), n = 1 + below(seed, 20);
	bool whole = true;

	if (at + n > PAGES)
		n = PAGES - at;
	whole &= !m->page[at].range || m->page[at].first;
	whole &= !m->page[at + n - 1].range || m->page[at + n - 1].last;
	CHECK_EQ(nfc_bus_unmap(bus, (uint64_t)at * PAGE, (uint64_t)n * PAGE),
		 whole ? 0 : -EINVAL);
	for (uint32_t i = 0; whole && i < n; i++)
		m->page[at + i].range = 0;
}

/* An access of some pages, from the middle of one to the middle of another. */
static void try_access(struct model *m, struct nfc_bus *bus, unsigned int *seed)
{
	static uint8_t data[3 * PAGE];
	uint32_t at = below(seed, PAGES - 2), pages = 1 + below(seed, 3);
	bool write = below(seed, 2), may = true;
	uint32_t skip = below(seed, PAGE), need = write ? 2 : 1;
	uint64_t address = (uint64_t)at * PAGE + (write ? 0 : skip);
	uint64_t length = (uint64_t)pages * PAGE - (write ? 0 : skip);
	uint8_t value = (uint8_t)rand_r(seed);
	uint64_t k = 0;
	int rc;

	for (uint32_t i = 0; i < pages; i++)
		may &= m->page[at + i].range && m->page[at + i].access & need;
	memset(data, write ? value : 0, sizeof(data));
	rc = write ? nfc_bus_write(bus, address, data, length) :
		     nfc_bus_read(bus, data, address, length);
	CHECK_EQ(rc, may ? 0 : NFC_EDMA);
	for (uint32_t i = 0; i < pages; i++) {
		if (!m->page[at + i].range || !(m->page[at + i].access & need))
			return; /* the bytes before it were moved */
		if (write) {
			m->byte[m->page[at + i].file_page] = value;
			continue;
		}
		for (uint32_t j = i ? 0 : skip; j < PAGE; j++, k++)
			if (data[k] != m->byte[m->page[at + i].file_page]) {
				CHECK_EQ(data[k],
					 m->byte[m->page[at + i].file_page]);
				return;
			}
	}
}

/* Random maps, unmaps and accesses do what a simple model does. */
static void against_model(bool sealed)
{
	struct nfc_bus *bus = master();
	struct model *m = calloc(1, sizeof(*m));
	int fd = memory(PAGES * PAGE, sealed);
	unsigned int seed = 1;

	for (int i = 0; i < ROUNDS && !test_failures(); i++) {
		switch (below(&seed, 4)) {
		case 0:
			try_map(m, bus, &seed, fd);
			break;
		case 1:
			try_unmap(m, bus, &seed);
			break;
		default:
			try_access(m, bus, &seed);
		}
	}
	nfc_bus_free(bus);
	close(fd);
	free(m);
}

CASE(ranges_do_what_the_model_does)
{
	against_model(true);
}

CASE(ranges_of_a_file_that_may_shrink_do_too)
{
	against_model(false);
}

/* Reads in a row bypass the caches after a while; the bytes are the same. */
CASE(reads_in_a_long_row)
{
	enum { ROW = 6 << 20, PIECE = 256 << 10, ASKEW = 5 };
	struct nfc_bus *bus = master();
	uint8_t *to = calloc(1, ROW + PAGE), *data;
	int fd = memory(ROW + PAGE, true);

	data = mmap(NULL, ROW + PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	for (uint64_t i = 0; i < ROW + PAGE; i++)
		data[i] = (uint8_t)(i * 31 + i / PAGE);
	CHECK_EQ(map(bus, 0, (ROW + PAGE) / PAGE, 0, 1, fd), 0);
	for (int round = 0; round < 2; round++) {
		memset(to, 0, ROW + PAGE);
		for (uint64_t at = 0; at < ROW; at += PIECE)
			CHECK_EQ(nfc_bus_read(bus, to + at + ASKEW, at + round,
					      PIECE),
				 0);
		CHECK(!memcmp(to + ASKEW, data + round, ROW));
		CHECK_EQ(to[ROW + ASKEW], 0);
	}
	nfc_bus_free(bus);
	munmap(data, ROW + PAGE);
	close(fd);
	free(to);
}

CASE(files_have_a_bound)
{
	struct nfc_bus *bus = master();
	struct nfc_bus_stats s;

	for (int i = 0; i < 65; i++) {
		int fd = memory(PAGE, true);

		CHECK_EQ(map(bus, (uint64_t)i, 1, 0, 1, fd),
			 i < 64 ? 0 : -ENOSPC);
		close(fd);
	}
	nfc_bus_stats(bus, &s);
	CHECK_EQ(s.ranges, 64);
	nfc_bus_unmap_all(bus);
	nfc_bus_stats(bus, &s);
	CHECK_EQ(s.ranges, 0);
	CHECK_EQ(s.unmaps, 64);
	nfc_bus_free(bus);
}

/* The place of a range is that of its bytes, at each edge, and of nothing else. */
CASE(memory_in_place_ends_with_its_range)
{
	struct nfc_bus *bus = master();
	int fd = memory(4 * PAGE, true), loose = memory(PAGE, false);
	uint8_t *at, *file;

	file = mmap(NULL, 4 * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	CHECK(file != MAP_FAILED);
	CHECK_EQ(map(bus, 8, 2, 1, 3, fd), 0);
	CHECK_EQ(map(bus, 10, 1, 3, 3, fd), 0); /* beside it, and another */
	CHECK_EQ(map(bus, 20, 1, 0, NFC_BUS_READ, fd), 0);
	CHECK_EQ(map(bus, 21, 1, 0, 3, loose), 0);
	at = nfc_bus_at(bus, 8 * PAGE, 2 * PAGE);
	CHECK(at != NULL);
	at[2 * PAGE - 1] = 7;
	CHECK_EQ(file[3 * PAGE - 1], 7);
	CHECK(nfc_bus_at(bus, 10 * PAGE - 1, 1) == at + 2 * PAGE - 1);
	CHECK(!nfc_bus_at(bus, 8 * PAGE, 2 * PAGE + 1));
	CHECK(!nfc_bus_at(bus, 10 * PAGE - 1, 2));
	CHECK(!nfc_bus_at(bus, 8 * PAGE - 1, 2));
	CHECK(!nfc_bus_at(bus, 11 * PAGE, 1));
	CHECK(!nfc_bus_at(bus, 9 * PAGE, UINT64_MAX));
	CHECK(!nfc_bus_at(bus, 20 * PAGE, 1)); /* it may not be written */
	CHECK(!nfc_bus_at(bus, 21 * PAGE, 1)); /* it may be cut off */
	nfc_bus_master(bus, false);
	CHECK(!nfc_bus_at(bus, 8 * PAGE, 1));
	nfc_bus_free(bus);
	munmap(file, 4 * PAGE);
	close(loose);
	close(fd);
}

CASE(area_is_loaded_and_stored)
{
	struct nfc_bus *bus = master();
	uint8_t out[40], in[40];
	uint64_t size;

	for (int i = 0; i < 40; i++)
		out[i] = (uint8_t)(i + 1);
	for (uint64_t at = 0; at < 9; at++)
		for (uint64_t n = 1; n <= sizeof(out); n++) {
			memset(in, 0, sizeof(in));
			CHECK_EQ(nfc_bus_area_store(bus, at, out, n), 0);
			CHECK_EQ(nfc_bus_area_load(bus, at, in, n), 0);
			CHECK_EQ(memcmp(in, out, n), 0);
		}
	CHECK_EQ(nfc_bus_area_load(bus, AREA - 4, in, 5), -EINVAL);
	CHECK_EQ(nfc_bus_area_load(bus, UINT64_MAX, in, 4), -EINVAL);
	CHECK_EQ(nfc_bus_area_store(bus, AREA, in, 1), -EINVAL);
	CHECK_EQ(nfc_bus_area_clear(bus), 0);
	CHECK_EQ(((uint8_t *)nfc_bus_area(bus, &size))[3], 0);
	CHECK_EQ(size, AREA);
	CHECK(ftruncate(nfc_bus_area_fd(bus), PAGE) != 0);
	nfc_bus_free(bus);
}

enum {
	WRITERS = 3,
};

struct writer {
	struct nfc_bus *bus;
	_Atomic int stop;
	_Atomic uint64_t next; /* page for the next thread */
};

static void *write_all_the_time(void *arg)
{
	struct writer *w = arg;
	uint64_t at = w->next++ * PAGE;
	uint8_t ones[PAGE];

	memset(ones, 1, sizeof(ones));
	while (!w->stop)
		nfc_bus_write(w->bus, at, ones, sizeof(ones));
	return NULL;
}

/* After an unmap the page can be used again. */
CASE(unmap_waits_for_copies)
{
	struct writer w = { .bus = master() };
	int fd = memory(WRITERS * PAGE, true);
	uint8_t *mem = mmap(NULL, WRITERS * PAGE, PROT_READ | PROT_WRITE,
			    MAP_SHARED, fd, 0);
	pthread_t thread[WRITERS];

	for (int i = 0; i < WRITERS; i++)
		pthread_create(&thread[i], NULL, write_all_the_time, &w);
	for (int i = 0; i < 300; i++) {
		CHECK_EQ(map(w.bus, 0, WRITERS, 0, 3, fd), 0);
		sched_yield();
		if (i % 2)
			CHECK_EQ(nfc_bus_unmap(w.bus, 0, WRITERS * PAGE), 0);
		else
			nfc_bus_master(w.bus, false);
		memset(mem, 0, WRITERS * PAGE);
		sched_yield();
		for (int j = 0; j < WRITERS * PAGE; j++)
			if (!CHECK(!mem[j]))
				break;
		nfc_bus_unmap_all(w.bus);
		nfc_bus_master(w.bus, true);
	}
	w.stop = 1;
	for (int i = 0; i < WRITERS; i++)
		pthread_join(thread[i], NULL);
	nfc_bus_free(w.bus);
	munmap(mem, WRITERS * PAGE);
	close(fd);
}

CASE(copies_from_bus_to_bus)
{
	struct nfc_bus *to = master(), *from = master();
	int there = memory(8 * PAGE, true), here = memory(8 * PAGE, true);
	int short_lived = memory(PAGE, false);
	uint8_t data[2 * PAGE], got[2 * PAGE];
	struct nfc_bus_stats s;

	for (size_t i = 0; i < sizeof(data); i++)
		data[i] = (uint8_t)(i * 7 + i / 256);
	/* neighbours on the bus that are not so in the file */
	CHECK_EQ(map(from, 10, 1, 5, 3, here), 0);
	CHECK_EQ(map(from, 11, 1, 2, 1 | 2, here), 0);
	CHECK_EQ(map(to, 20, 1, 7, NFC_BUS_READ | NFC_BUS_WRITE, there), 0);
	CHECK_EQ(map(to, 21, 1, 0, NFC_BUS_READ | NFC_BUS_WRITE, there), 0);
	CHECK_EQ(map(to, 22, 1, 1, NFC_BUS_READ, there), 0);
	CHECK_EQ(map(to, 23, 1, 0, 3, short_lived), 0);
	CHECK_EQ(map(to, 24, 1, 0, 3, -1), 0);
	CHECK_EQ(nfc_bus_write(from, 10 * PAGE, data, sizeof(data)), 0);
	CHECK(nfc_bus_copy(to, 20 * PAGE + 9, from, 10 * PAGE + 3, 8000));
	CHECK_EQ(nfc_bus_read(to, got, 20 * PAGE + 9, 8000), 0);
	CHECK(!memcmp(got, data + 3, 8000));
	nfc_bus_stats(from, &s);
	CHECK_EQ(s.bytes_read, 8000);
	nfc_bus_stats(to, &s);
	CHECK_EQ(s.bytes_written, 8000);

	/* nothing to write, to read, that may be written, that stays, or that is here */
	CHECK(!nfc_bus_copy(to, 19 * PAGE, from, 10 * PAGE, 8));
	CHECK(!nfc_bus_copy(to, 20 * PAGE, from, 12 * PAGE - 8, 16));
	CHECK(!nfc_bus_copy(to, 22 * PAGE - 8, from, 10 * PAGE, 16));
	CHECK(!nfc_bus_copy(to, 23 * PAGE, from, 10 * PAGE, 8));
	CHECK(!nfc_bus_copy(to, 24 * PAGE, from, 10 * PAGE, 8));
	nfc_bus_stats(to, &s);
	CHECK_EQ(s.faults, 0); /* who moves the bytes by themselves counts them */

	/* on one bus, but not onto what is copied */
	CHECK(nfc_bus_copy(from, 11 * PAGE, from, 10 * PAGE, PAGE));
	CHECK(!nfc_bus_copy(from, 10 * PAGE + 8, from, 10 * PAGE, PAGE / 2));
	CHECK(!nfc_bus_copy(from, 10 * PAGE, from, 10 * PAGE + 8, PAGE / 2));

	/* both may be reached */
	nfc_bus_master(from, false);
	CHECK(!nfc_bus_copy(to, 20 * PAGE, from, 10 * PAGE, 8));
	nfc_bus_master(from, true);
	nfc_bus_master(to, false);
	CHECK(!nfc_bus_copy(to, 20 * PAGE, from, 10 * PAGE, 8));
	nfc_bus_free(to);
	nfc_bus_free(from);
	close(there);
	close(here);
	close(short_lived);
}

struct copier {
	struct nfc_bus *bus[2];
	_Atomic int stop;
	_Atomic uint32_t next; /* whose page the next thread fills */
};

static void *copy_all_the_time(void *arg)
{
	struct copier *c = arg;
	uint32_t to = c->next++ % 2;

	while (!c->stop)
		nfc_bus_copy(c->bus[to], 0, c->bus[!to], PAGE, PAGE);
	return NULL;
}

/* Both ways at a time; after the unmap of either its pages can be used again. */
CASE(unmap_waits_for_copies_between_buses)
{
	struct copier c = { .bus = { master(), master() } };
	pthread_t thread[2];
	uint8_t *mem[2];
	int fd[2];

	for (int i = 0; i < 2; i++) {
		fd[i] = memory(2 * PAGE, true);
		mem[i] = mmap(NULL, 2 * PAGE, PROT_READ | PROT_WRITE,
			      MAP_SHARED, fd[i], 0);
		memset(mem[i] + PAGE, 1, PAGE);
	}
	for (int i = 0; i < 2; i++)
		pthread_create(&thread[i], NULL, copy_all_the_time, &c);
	for (int i = 0; i < 300; i++) {
		struct nfc_bus *bus = c.bus[i % 2];
		uint8_t *page = mem[i % 2];

		CHECK_EQ(map(c.bus[0], 0, 2, 0, 3, fd[0]), 0);
		CHECK_EQ(map(c.bus[1], 0, 2, 0, 3, fd[1]), 0);
		sched_yield();
		CHECK_EQ(nfc_bus_unmap(bus, 0, 2 * PAGE), 0);
		memset(page, 0, PAGE);
		sched_yield();
		for (int j = 0; j < PAGE; j++)
			if (!CHECK(!page[j]))
				break;
		nfc_bus_unmap_all(c.bus[!(i % 2)]);
	}
	c.stop = 1;
	for (int i = 0; i < 2; i++)
		pthread_join(thread[i], NULL);
	for (int i = 0; i < 2; i++) {
		nfc_bus_free(c.bus[i]);
		munmap(mem[i], 2 * PAGE);
		close(fd[i]);
	}
}

struct owner {
	struct nfc_bus *bus;
	uint8_t ram[2 * PAGE];
	int answers;
};

/* Serves requests until the bus is not served any more. */
static void *serve(void *arg)
{
	struct owner *o = arg;

	for (int served = 0; served < o->answers;) {
		struct nfc_bus_request *r = nfc_bus_request_take(o->bus);

		if (!r) {
			sched_yield();
			continue;
		}
		if (r->access == NFC_BUS_READ)
			memcpy(r->memory, o->ram + r->address, r->length);
		else
			memcpy(o->ram + r->address, r->memory, r->length);
		nfc_bus_request_done(o->bus, r, 0);
		served++;
	}
	return NULL;
}

CASE(memory_without_a_file_is_the_owners)
{
	static struct owner o;
	uint8_t data[PAGE] = "by request";
	pthread_t thread;
	uint64_t count;

	o = (struct owner){ .bus = master(), .answers = 2 };
	CHECK_EQ(map(o.bus, 0, 2, 0, 3, -1), 0);
	CHECK_EQ(nfc_bus_read(o.bus, data, 0, 4), NFC_EDMA);
	nfc_bus_serve(o.bus, true);
	pthread_create(&thread, NULL, serve, &o);
	CHECK_EQ(nfc_bus_write(o.bus, 100, data, sizeof(data)), 0);
	memset(data, 0, sizeof(data));
	CHECK_EQ(nfc_bus_read(o.bus, data, 100, sizeof(data)), 0);
	CHECK_EQ(strcmp((char *)data, "by request"), 0);
	pthread_join(thread, NULL);
	CHECK_EQ(read(nfc_bus_request_fd(o.bus), &count, sizeof(count)), 8);
	CHECK_EQ(count, 2);
	nfc_bus_serve(o.bus, false);
	CHECK_EQ(nfc_bus_write(o.bus, 0, data, 1), NFC_EDMA);
	CHECK(nfc_bus_request_take(o.bus) == NULL);
	nfc_bus_free(o.bus);
}

static uint64_t fired(int fd)
{
	uint64_t n = 0;

	return read(fd, &n, sizeof(n)) == sizeof(n) ? n : 0;
}

CASE(interrupts_wait_for_what_they_need)
{
	struct nfc_bus *bus = nfc_bus_new(AREA, 3);
	struct nfc_irq *q = nfc_bus_irq(bus);
	int fd = eventfd(0, EFD_NONBLOCK);

	nfc_irq_raise(q, 0);
	nfc_irq_raise(q, 7);
	CHECK_EQ(nfc_irq_assign(q, 3, fd), -EINVAL);
	CHECK_EQ(nfc_irq_assign(q, 0, 999), -EINVAL);
	CHECK_EQ(nfc_irq_assign(q, 0, nfc_bus_area_fd(bus)), -EINVAL);
	CHECK_EQ(nfc_irq_assign(q, 0, fd), 0);
	CHECK_EQ(fired(fd), 0);
	nfc_bus_master(bus, true);
	CHECK_EQ(fired(fd), 1);
	nfc_irq_use(q, 3);
	for (uint32_t i = 0; i < 6; i++)
		CHECK_EQ(nfc_irq_vector(q, i), 1 + i % 2);
	nfc_irq_ring(q, 2);
	CHECK_EQ(fired(fd), 0);
	nfc_irq_clear(q);
	CHECK_EQ(nfc_irq_assign(q, 1, fd), 0);
	CHECK_EQ(fired(fd), 0);
	close(fd);
	nfc_bus_free(bus);
}

struct raiser {
	struct nfc_irq *q;
	_Atomic int stop;
};

static void *raise_all_the_time(void *arg)
{
	struct raiser *r = arg;

	while (!r->stop)
		nfc_irq_ring(r->q, 0);
	return NULL;
}

/* The last interrupt always arrives, whatever else happens to the vector. */
CASE(no_interrupt_is_lost)
{
	struct nfc_bus *bus = master();
	struct raiser r = { .q = nfc_bus_irq(bus) };
	int fd = eventfd(0, EFD_NONBLOCK);
	struct nfc_irq_stats s;
	pthread_t thread;

	nfc_irq_holdoff(r.q, 0, 50);
	pthread_create(&thread, NULL, raise_all_the_time, &r);
	for (int i = 0; i < 200 || !s.held; i++) { /* the thread may start late */
		struct timespec t = { .tv_nsec = 20000 };

		CHECK_EQ(nfc_irq_assign(r.q, 0, i % 2 ? -1 : fd), 0);
		nanosleep(&t, NULL);
		nfc_irq_stats(r.q, &s);
	}
	r.stop = 1;
	pthread_join(thread, NULL);
	CHECK_EQ(nfc_irq_assign(r.q, 0, fd), 0);
	fired(fd);
	nfc_irq_raise(r.q, 0);
	while (!fired(fd))
		sched_yield();
	nfc_irq_stats(r.q, &s);
	CHECK_EQ(s.pending, 0);
	close(fd);
	nfc_bus_free(bus);
}
