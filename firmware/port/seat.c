// SPDX-License-Identifier: MIT
/* The hosts of a hosted device; see port_seat.h. */
#define _GNU_SOURCE
#include "seat.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "epoch.h"

/* ---- memory ---- */

static uint64_t state_size(const struct epoch *epoch)
{
	return nfc_host_size(&epoch->config);
}

static void drop_memory(struct epoch *epoch, struct seat *s)
{
	for (int i = 0; i < NFC_MEMORY_COUNT; i++) {
		port_unmap(s->core.memory[i], epoch->config.memory[i]);
		s->core.memory[i] = NULL;
	}
}

/* The state is mapped once, and zeroed for each host: engines may read it. */
static int give_memory(struct epoch *epoch, struct seat *s)
{
	const struct nfc_config *c = &epoch->config;

	if (!s->core.state)
		s->core.state = port_map(state_size(epoch));
	if (!s->core.state)
		return NFC_ENOMEM;
	for (int i = 0; i < NFC_MEMORY_COUNT; i++) {
		s->core.memory[i] = port_map(c->memory[i]);
		if (!s->core.memory[i]) {
			drop_memory(epoch, s);
			return NFC_ENOMEM;
		}
		if (c->memory[i] >= 64 << 20)
			madvise(s->core.memory[i], c->memory[i], MADV_HUGEPAGE);
	}
	return 0;
}

int port_seat_boot(struct epoch *epoch, void *area, uint32_t number)
{
	struct seat *s = &epoch->seat[0];

	s->core.area = area;
	s->core.epoch = number;
	s->doorbell = -1;
	atomic_store(&s->area, area);
	return give_memory(epoch, s);
}

void port_seats_free(struct epoch *epoch)
{
	for (uint32_t i = 0; i < NFC_HOSTS_MAX; i++) {
		drop_memory(epoch, &epoch->seat[i]);
		port_unmap(epoch->seat[i].core.state, state_size(epoch));
		port_unmap(epoch->seat[i].far_area, epoch->area_size);
	}
}

/* ---- sleep and wake ---- */

/*
 * A thread that is not the host's woke the island: its own word records that.
 */
void port_seats_wake(struct epoch *epoch, uint32_t island)
{
	if (!atomic_exchange(&epoch->awake[island], 1)) /* SYNC: island park */
		port_futex_wake(&epoch->awake[island]);
}

static void add_word(struct futex_waitv *v, uint32_t *n, void *word,
		     uint64_t value, uint32_t flags)
{
	v[(*n)++] = (struct futex_waitv){ .uaddr = (uintptr_t)word,
					  .val = value,
					  .flags = FUTEX_32 | flags };
}

/*
 * A host that is detached meanwhile takes its area away: then the kernel
 * refuses the list, and the island checks again.
 */
void port_seats_sleep(struct epoch *epoch, uint32_t island, uint64_t until_ns)
{
	uint64_t most = (uint64_t)INT64_MAX;
	struct futex_waitv v[NFC_HOSTS_MAX + 1];
	struct timespec t;
	uint32_t n = 0;

	if (until_ns > most)
		until_ns = most;
	t.tv_sec = (time_t)(until_ns / 1000000000);
	t.tv_nsec = (long)(until_ns % 1000000000);
	add_word(v, &n, &epoch->awake[island], 0, FUTEX_PRIVATE_FLAG);
	for (uint32_t i = 0; i < epoch->config.hosts; i++) {
		struct nfc_area *area = atomic_load(&epoch->seat[i].area);

		/* the low half of the word is the futex */
		if (area)
			add_word(v, &n, &area->island[island].word, 1, 0);
	}
	/* SYNC: island park */
	syscall(SYS_futex_waitv, v, n, 0, &t, CLOCK_MONOTONIC);
	atomic_store(&epoch->awake[island], 0);
}

/*
 * A socket and no eventfd: a host has its end of the descriptor, and could make
 * a write to an eventfd block. A full socket is readable already.
 */
void port_seat_ring(struct epoch *epoch, uint32_t host)
{
	const struct nfc_hosted_far *far = epoch->seat[host].far;
	ssize_t n = 0;

	if (far)
		far->ring(far->self);
	else
		n = send(epoch->seat[host].doorbell, "", 1,
			 MSG_DONTWAIT | MSG_NOSIGNAL);
	(void)n;
}

/* ---- hosts that are attached and detached ---- */

static void take_back(struct epoch *epoch, struct seat *s)
{
	atomic_store(&s->area, NULL);
	for (uint32_t i = 0; i < epoch->config.islands; i++)
		port_seats_wake(epoch, i); /* it sleeps on that area */
	drop_memory(epoch, s);
	madvise(s->core.state, state_size(epoch), MADV_DONTNEED);
	if (s->doorbell >= 0)
		close(s->doorbell);
	s->bus = NULL;
	s->far = NULL;
	atomic_store(&s->joints, NULL);
	s->used = false;
}

static int seat_free(const struct epoch *epoch)
{
	for (uint32_t i = 0; i < epoch->config.hosts; i++)
		if (!epoch->seat[i].used)
			return (int)i;
	return -1;
}

/* The area of a far host is of this process: mapped once, and zero for each. */
static int give_area(struct epoch *epoch, struct seat *s)
{
	if (!s->far_area)
		s->far_area = port_map(epoch->area_size);
	else if (madvise(s->far_area, epoch->area_size, MADV_DONTNEED))
		return NFC_ENOMEM;
	s->core.area = s->far_area;
	return s->far_area ? 0 : NFC_ENOMEM;
}

/* How a host is reached. */
static int connect_seat(struct epoch *epoch, struct seat *s,
			const struct nfc_hosted_peer *peer)
{
	uint64_t size;

	s->doorbell = -1;
	if (peer->far)
		return give_area(epoch, s);
	s->core.area = nfc_bus_area(peer->bus, &size);
	if (size < nfc_area_size(&epoch->config))
		return NFC_ETOOLARGE;
	s->doorbell = fcntl(peer->doorbell, F_DUPFD_CLOEXEC, 0);
	return s->doorbell < 0 ? NFC_ENOMEM : 0;
}

int nfc_hosted_attach(struct nfc_hosted *h, const struct nfc_hosted_peer *peer,
		      uint32_t *host)
{
	struct epoch *epoch = h->epoch;
	int index = seat_free(epoch), rc;
	struct seat *s = &epoch->seat[index < 0 ? 0 : index];

	if (index < 0)
		return -NFC_EBUSY;
	s->core.epoch = peer->epoch;
	s->core.no_load = peer->no_load;
	s->core.user = peer->user;
	s->core.channels = peer->channels;
	s->core.processes = peer->processes;
	rc = -connect_seat(epoch, s, peer);
	if (rc)
		return rc;
	rc = -give_memory(epoch, s);
	if (rc) {
		if (s->doorbell >= 0)
			close(s->doorbell);
		return rc;
	}
	s->used = true;
	s->bus = peer->bus;
	s->far = peer->far;
	atomic_store(&s->joints, peer->joints);
	atomic_store(&s->fenced, false);
	atomic_store(&s->area, s->core.area);
	rc = nfc_host_attach(epoch->dev, (uint32_t)index, &s->core);
	if (rc && !atomic_load(&h->halted)) /* else the device has it still */
		take_back(epoch, s);
	else if (!rc && peer->joints)
		peer->joints->serve(peer->joints->self, epoch->dev,
				    (uint32_t)index);
	*host = (uint32_t)index;
	return rc;
}

void nfc_hosted_fence_host(struct nfc_hosted *h, uint32_t host)
{
	struct seat *s = &h->epoch->seat[host];

	atomic_store(&s->fenced, true);
	nfc_bus_master(s->bus, false);
}

void nfc_hosted_detach(struct nfc_hosted *h, uint32_t host)
{
	const struct nfc_hosted_joints *j = atomic_load(
		&h->epoch->seat[host].joints);

	if (j)
		j->serve(j->self, NULL, host);
	nfc_host_detach(h->epoch->dev, host);
	if (!atomic_load(&h->halted)) /* a process may have it still */
		take_back(h->epoch, &h->epoch->seat[host]);
}

struct nfc_area *nfc_hosted_area_of(struct nfc_hosted *h, uint32_t host)
{
	return h->epoch->seat[host].core.area;
}

void nfc_hosted_wake(struct nfc_hosted *h, uint32_t island)
{
	h->epoch->port.wake(h->epoch, island);
}

void nfc_hosted_halt(struct nfc_hosted *h)
{
	atomic_store(&h->halted, true);
	nfc_device_halt(h->epoch->dev);
	for (uint32_t i = 0; i < h->config.islands; i++)
		port_seats_wake(h->epoch, i);
}
