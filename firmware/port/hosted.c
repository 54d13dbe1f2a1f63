// SPDX-License-Identifier: MIT
/* The hosted port as its owner sees it: a device, and its epochs. See hosted.h. */
#define _GNU_SOURCE
#include "hosted.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <unistd.h>

#include "../nfc_fw.h"
#include "fault.h"
#include "epoch.h"

enum {
	JOIN_SECONDS = 1, /* how long threads may take to leave */
	FOR_EVER = 1 << 30, /* seconds */
};

/*
 * Epochs that were cut off, of devices that may be closed. Each is freed when
 * its
 * last thread has left, when the next device is opened or closed.
 */
static struct {
	pthread_mutex_t lock;
	struct epoch *first;
} cut_off = { .lock = PTHREAD_MUTEX_INITIALIZER };

/* ---- one epoch ---- */

void *port_map(uint64_t size)
{
	void *p = mmap(NULL, size, PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	return p == MAP_FAILED ? NULL : p;
}

void port_unmap(void *p, uint64_t size)
{
	if (p)
		munmap(p, size);
}

static void epoch_free(struct epoch *epoch)
{
	port_unmap(epoch->dev, epoch->device_size);
	port_seats_free(epoch);
	pthread_mutex_destroy(&epoch->refusal.lock);
	free(epoch);
}

static int epoch_init(struct epoch *epoch)
{
	struct nfc_seat *seat = epoch->shared ? NULL : &epoch->seat[0].core;
	int rc = 0;

	epoch->dev = port_map(epoch->device_size);
	if (!epoch->dev)
		return NFC_ENOMEM;
	if (seat)
		rc = port_seat_boot(epoch, epoch->h->area, epoch->h->number);
	if (rc)
		return rc;
	return -nfc_device_init(epoch->dev, &epoch->config, &epoch->port, seat);
}

/* Joints of a host that is here follow its device from epoch to epoch. */
static void serve_joints(struct nfc_hosted *h, bool serve)
{
	const struct nfc_hosted_joints *j = h->joints;

	if (!j || !h->epoch)
		return;
	atomic_store(&h->epoch->seat[0].joints, serve ? j : NULL);
	j->serve(j->self, serve ? h->epoch->dev : NULL, 0);
	if (!serve)
		port_shut(&h->epoch->joints);
}

void nfc_hosted_join(struct nfc_hosted *h,
		     const struct nfc_hosted_joints *joints)
{
	serve_joints(h, false);
	h->joints = joints;
	serve_joints(h, true);
}

/* Boot an epoch in h->area, which is zero. 0 or enum nfc_status. */
static int epoch_start(struct nfc_hosted *h)
{
	struct epoch *epoch = calloc(1, sizeof(*epoch));
	int rc;

	if (!epoch)
		return NFC_ENOMEM;
	epoch->h = h;
	pthread_mutex_init(&epoch->refusal.lock, NULL);
	epoch->config = h->config;
	epoch->shared = h->options.shared;
	epoch->device_size = nfc_device_size(&h->config);
	epoch->area_size = h->area_size;
	epoch->engines = h->options.engines;
	port_calls_init(epoch);
	rc = -nfc_fault_install();
	if (!rc)
		rc = epoch_init(epoch);
	if (rc) {
		epoch_free(epoch);
		return rc;
	}
	rc = port_threads_start(epoch);
	if (rc) { /* nothing but services runs: every thread leaves */
		port_threads_stop(epoch, FOR_EVER);
		nfc_device_fini(epoch->dev);
		epoch_free(epoch);
		return rc;
	}
	h->epoch = epoch;
	serve_joints(h, true);
	return 0;
}

/* Put other memory where a thread that stays behind sees the area of a bus. */
static void cover_area(struct epoch *epoch)
{
	void *p = mmap(epoch->seat[0].core.area, epoch->area_size,
		       PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED,
		       -1, 0);

	(void)p; /* out of mappings: then it still sees the area */
}

/* A thread is leaked: from now on it reaches the epoch's own memory alone. */
static void epoch_cut_off(struct epoch *epoch)
{
	port_shut(&epoch->out);
	if (epoch->h->options.bus)
		cover_area(epoch);
	pthread_mutex_lock(&cut_off.lock);
	epoch->next = cut_off.first;
	cut_off.first = epoch;
	pthread_mutex_unlock(&cut_off.lock);
}

/* Free what was cut off, also by other devices, and has ended since. */
static void free_cut_off(void)
{
	struct epoch **at, *epoch;

	pthread_mutex_lock(&cut_off.lock);
	for (at = &cut_off.first; (epoch = *at);) {
		if (!port_threads_left(epoch)) {
			at = &epoch->next;
			continue;
		}
		*at = epoch->next;
		nfc_device_fini(epoch->dev);
		port_unmap(epoch->seat[0].core.area, epoch->area_size);
		epoch_free(epoch);
	}
	pthread_mutex_unlock(&cut_off.lock);
}

/*
 * Is an epoch of this device that was cut off still running? Names what keeps it. last:
 * no further call asks.
 */
static bool left_behind(struct nfc_hosted *h, bool last,
			struct nfc_computing *who)
{
	bool any = false;

	*who = (struct nfc_computing){ 0 };
	free_cut_off();
	pthread_mutex_lock(&cut_off.lock);
	for (struct epoch *epoch = cut_off.first; epoch; epoch = epoch->next) {
		if (epoch->h != h)
			continue;
		for (uint32_t i = 0; i < epoch->config.islands; i++) {
			if (!epoch->runs[i])
				continue; /* a DMA engine may still end */
			any = true;
			if (!who->process)
				nfc_island_computes(epoch->dev, i, who);
		}
		if (last)
			epoch->h = NULL;
	}
	pthread_mutex_unlock(&cut_off.lock);
	return any;
}

/* If a thread is leaked, so is the epoch's memory, and h has no area. */
static void epoch_end(struct nfc_hosted *h)
{
	struct epoch *epoch = h->epoch;

	serve_joints(h, false);
	h->epoch = NULL;
	if (!epoch)
		return;
	port_shut(&epoch->joints);
	port_shut(&epoch->dma);
	if (port_threads_stop(epoch, JOIN_SECONDS)) {
		nfc_device_fini(epoch->dev);
		epoch_free(epoch);
		return;
	}
	epoch_cut_off(epoch);
	h->area = NULL;
}

/* ---- the mailbox area ---- */

/* The area of a bus is mapped anew for each device on it. */
static int map_area(struct nfc_hosted *h)
{
	struct nfc_bus *bus = h->options.bus;
	uint64_t most;

	h->area_size = nfc_area_size(&h->config);
	if (h->options.shared)
		return 0; /* each host brings one */
	if (!bus) {
		h->area = port_map(h->area_size);
		return h->area ? 0 : NFC_ENOMEM;
	}
	nfc_bus_area(bus, &most);
	if (h->area_size > most)
		return NFC_ETOOLARGE;
	if (nfc_bus_area_clear(bus))
		return NFC_ENOMEM;
	h->area = mmap(NULL, h->area_size, PROT_READ | PROT_WRITE,
		       MAP_SHARED | MAP_NORESERVE, nfc_bus_area_fd(bus), 0);
	if (h->area != MAP_FAILED)
		return 0;
	h->area = NULL;
	return NFC_ENOMEM;
}

/* ---- the port as its owner sees it ---- */

static void hosted_free(struct nfc_hosted *h)
{
	if (h->doorbell >= 0)
		close(h->doorbell);
	if (h->log >= 0)
		close(h->log);
	port_unmap(h->area, h->area_size);
	free(h);
}

/*
 * The port's own descriptors: other code cannot close them under its threads.
 */
static int open_files(struct nfc_hosted *h)
{
	h->doorbell = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	h->log = h->options.log_fd;
	if (h->log >= 0)
		h->log = fcntl(h->log, F_DUPFD_CLOEXEC, 0);
	return h->doorbell < 0 || (h->options.log_fd >= 0 && h->log < 0) ?
		       NFC_ENOMEM :
		       0;
}

int nfc_hosted_open(const struct nfc_config *config,
		    const struct nfc_hosted_options *options,
		    struct nfc_hosted **out)
{
	struct nfc_hosted *h = calloc(1, sizeof(*h));
	int rc;

	if (!h)
		return -NFC_ENOMEM;
	h->config = *config;
	h->options = *options;
	h->number = options->epoch ? options->epoch : 1;
	if (nfc_config_check(&h->config) || options->engines > NFC_ISLANDS_MAX) {
		free(h);
		return -NFC_EINVAL;
	}
	free_cut_off();
	rc = open_files(h);
	if (!rc)
		rc = map_area(h);
	if (!rc)
		rc = epoch_start(h);
	if (rc)
		hosted_free(h);
	else
		*out = h;
	return -rc;
}

/* An epoch that was cut off keeps its area; the next one gets another. */
static int new_area(struct nfc_hosted *h)
{
	if (!h->area)
		return map_area(h);
	return madvise(h->area, h->area_size, MADV_DONTNEED) ? NFC_ENOMEM : 0;
}

int nfc_hosted_restart(struct nfc_hosted *h, uint32_t epoch, bool *left,
		       struct nfc_computing *who)
{
	int rc;

	epoch_end(h);
	*left = left_behind(h, false, who);
	h->number = epoch;
	rc = new_area(h);
	if (!rc)
		rc = epoch_start(h);
	return -rc;
}

void nfc_hosted_fence(struct nfc_hosted *h)
{
	if (h->epoch)
		port_shut(&h->epoch->dma);
}

int nfc_hosted_assist(struct nfc_hosted *h)
{
	return h->epoch && nfc_dma_step(h->epoch->dev);
}

struct nfc_ran nfc_hosted_run(struct nfc_hosted *h, uint32_t island, bool exact)
{
	struct nfc_ran r = { .owner = NFC_OWNER_THREAD };

	struct port_runner runner;

	if (!h->epoch)
		return r;
	port_crash_begin(&runner, h->epoch, island);
	r.owner = nfc_island_assist(h->epoch->dev, island, exact, &r.undrained);
	nfc_fault_own(NULL);
	return r;
}

void *nfc_hosted_area(struct nfc_hosted *h, uint64_t *size)
{
	*size = h->area_size;
	return h->area;
}

int nfc_hosted_doorbell(struct nfc_hosted *h)
{
	return h->doorbell;
}

void nfc_hosted_sense(struct nfc_hosted *h, uint32_t word)
{
	atomic_store(&h->sensed, word);
}

void nfc_hosted_ring(struct nfc_hosted *h, uint32_t island)
{
	struct nfc_area *area = h->area;
	_Atomic uint64_t *word;

	if (!area ||
	    island >= h->config.islands) /* none: no memory at a restart */
		return;
	word = (_Atomic uint64_t *)&area->island[island].word;
	atomic_store(word, 0); /* one with an area of its own leaves that to us */
	port_futex_wake(word);
}

void nfc_hosted_close(struct nfc_hosted *h, bool *left,
		      struct nfc_computing *who)
{
	epoch_end(h);
	*left = left_behind(h, true, who);
	hosted_free(h);
}

bool nfc_hosted_computes(struct nfc_hosted *h, uint32_t island,
			 struct nfc_computing *who)
{
	return h->epoch && nfc_island_computes(h->epoch->dev, island, who);
}
