/* SPDX-License-Identifier: MIT */
/*
 * State that the parts of the hosted port share: a device, its epochs, their
 * threads.
 */
#ifndef PORT_EPOCH_H
#define PORT_EPOCH_H

#include <pthread.h>
#include <stdatomic.h>

#include "crash.h"
#include "hosted.h"
#include "seat.h"

/*
 * A gate that is shut for good, after which the thread that shut it waits for
 * calls inside.
 */
struct gate {
	_Atomic uint32_t shut;
	_Atomic uint32_t inside;
};

/* The piece that was refused last, if some are. */
struct refusal {
	pthread_mutex_t lock; /* guards what follows */
	bool pending; /* it was not requested again */
	uint64_t bus;
	uint64_t moved; /* pieces since */
};

/*
 * One epoch of the device: what a restart replaces. One that a thread does not
 * leave is cut off: it keeps its memory and reaches nothing else.
 */
struct epoch {
	struct nfc_hosted *h; /* only inside of a gate */
	struct nfc_device *dev;
	struct nfc_port port;
	struct nfc_config config;
	uint64_t device_size;
	uint64_t area_size;
	bool shared; /* as in its options */
	struct seat seat[NFC_HOSTS_MAX];
	_Atomic uint32_t awake[NFC_ISLANDS_MAX]; /* of a shared device: futexes */
	pthread_t thread[NFC_ISLANDS_MAX];
	bool runs[NFC_ISLANDS_MAX]; /* not joined yet */
	uint32_t engines;
	pthread_t engine[NFC_ISLANDS_MAX];
	bool works[NFC_ISLANDS_MAX];
	_Atomic uint32_t engine_word; /* engines asleep: futex */
	_Atomic uint32_t stop_engines;
	struct refusal refusal;
	struct port_crashes crashes;
	struct gate dma; /* shut by a fence */
	struct gate joints; /* to other nodes */
	struct gate out; /* to the host: doorbell, log */
	struct epoch *next; /* of those cut off */
};

struct nfc_hosted {
	struct epoch *epoch; /* NULL after a restart that failed */
	struct nfc_config config;
	struct nfc_hosted_options options;
	const struct nfc_hosted_joints *joints; /* of host 0, if that is here */
	void *area; /* the present epoch's; outlives it: the host may still read it */
	uint32_t number; /* of the present epoch */
	uint64_t area_size;
	int doorbell;
	_Atomic bool halted; /* it is to be closed */
	_Atomic uint32_t sensed; /* diagnostic word of the sensors */
	int log; /* options.log_fd, duplicated; -1: none */
};

/* Memory of the port's own, zeroed, without reserved swap; NULL: none. */
void *port_map(uint64_t size);
void port_unmap(void *p, uint64_t size);

/* By the port's clock, which port_now() of struct nfc_port reads. */
uint64_t port_clock(void);
void port_futex_wake(void *word);

/* A gate: false, it is shut; else leave it again. To shut it waits for that. */
bool port_enter(struct gate *g);
void port_leave(struct gate *g);
void port_shut(struct gate *g);
/* Give an epoch what the firmware may ask for. */
void port_calls_init(struct epoch *epoch);

/* Start the threads of an epoch. 0 or enum nfc_status; some may run then. */
int port_threads_start(struct epoch *epoch);
/*
 * Ask them to leave and wait for that; false if one stays longer. Three times as long for
 * one that has had no tenth of that of processor time.
 */
bool port_threads_stop(struct epoch *epoch, uint64_t seconds);
/* True if all have left, once they were asked to. */
bool port_threads_left(struct epoch *epoch);

#endif /* PORT_EPOCH_H */
