/* SPDX-License-Identifier: MIT */
/*
 * A device under test: the firmware core over a port without threads. Islands
 * are fibers that run only inside rig_step(), the clock stands still unless a
 * test moves it, and DMA reaches plain buffers through a hook that may refuse.
 * The host is this test, slot by slot, by docs/protocol.md.
 */
#ifndef RIG_H
#define RIG_H

#include <stddef.h>

#include "fiber.h"
#include "harness.h"
#include "../core/calls.h"

enum {
	RIG_MAILBOXES = 64,
	RIG_ISLANDS = 16,
	RIG_RANGES = 1024,
	RIG_PAGE = NFC_PAGE_SIZE,
	RIG_HOSTS = 4,
};

struct rig;

/* A device process whose code is a function of the test. */
struct puppet {
	void (*fn)(struct nfc_process *self, struct puppet *p);
	struct rig *rig;
	uint32_t target; /* of port 0 */
	uint64_t process;
	int rc[16]; /* what calls returned */
	int step; /* calls made */
	bool done;
	uint64_t memory; /* device address */
	uint64_t size;
	uint8_t buf[64];
	void *more;
};

struct rig_island {
	struct fiber *fiber, *at;
	uint64_t until;
	bool asleep, woken, done;
};

struct rig_mailbox {
	uint64_t tail; /* h2d slots put */
	uint64_t head; /* d2h slots taken */
};

/* The host's side of a channel. */
struct rig_channel {
	uint64_t next[2];
	uint64_t generation;
};

struct rig {
	struct rig *main; /* whose device it is: that of host 0 */
	struct rig *host[RIG_HOSTS]; /* of main: the hosts that are attached */
	struct nfc_config config;
	struct nfc_port port;
	struct nfc_seat seat; /* of host 0 */
	struct nfc_device *dev;
	struct rig_island island[RIG_ISLANDS];
	struct rig_mailbox mailbox[RIG_MAILBOXES];
	struct rig_channel *channel;
	uint64_t clock;
	uint64_t tick; /* the clock moves by this at each look */
	uint64_t answer_ns; /* a tenth of what islands have to answer each other */
	uint64_t looks; /* at the clock, since a fiber was resumed */
	uint32_t epoch; /* low bits for what the host sends */
	uint32_t request;
	unsigned int rings; /* of the host's doorbell */
	void (*on_rung)(struct rig *r); /* then; NULL: nothing */
	unsigned int dma_calls;
	uint64_t dma_bytes;
	uint64_t copied; /* from host to host, without the device */
	unsigned int bad_dma; /* outside what was offered */
	unsigned int stacks; /* live */
	unsigned int images; /* loaded */
	unsigned int repeats; /* host_drive was asked for */
	unsigned int logs;
	char log[256];
	bool hold; /* do not drain d2h */
	bool may_spin; /* a program may keep its island to itself */
	bool silent; /* do not report news */
	bool no_room; /* the last put found the h2d ring full */
	/* Return NFC_EDMA or NFC_EBUSY to refuse a copy. */
	int (*on_dma)(struct rig *r, uint64_t bus, uint64_t length);
	/* Look at each slot on its way out; NULL: leave it alone. */
	void (*on_put)(struct rig *r, struct nfc_slot *slot);
	/* Called for each slot that the host takes. */
	void (*on_take)(struct rig *r, const struct nfc_slot *slot);
	uint32_t list_flags; /* that each list of a host has, too */
	int dma_script[64]; /* by call; used if there is no hook */
	int (*load)(struct rig *r, const void *image, uint64_t size,
		    const struct nfc_program **table);
	struct nfc_slot *received; /* from d2h, not expected yet */
	size_t received_count, received_room;
	struct {
		uint64_t bus, length;
	} range[RIG_RANGES]; /* host memory the device may reach */
	unsigned int ranges;
	void *owned[RIG_RANGES]; /* freed with the rig */
	unsigned int owned_count;
};

/* A small device; change may edit the configuration before it boots. */
struct rig *rig_new(void (*change)(struct nfc_config *c));
void rig_free(struct rig *r);
/*
 * Another host of the rig's device: all of host_…() works on it. It is detached by
 * rig_detach() or with the rig.
 */
struct rig *rig_attach(struct rig *r, uint32_t index);
struct rig *rig_attach_part(struct rig *r, uint32_t index, uint32_t channels,
			    uint32_t processes);
void rig_detach(struct rig *other);
/* Run the device until it sleeps; false if it still spins. */
bool rig_step(struct rig *r);
void rig_advance(struct rig *r, uint64_t ns);
/* The memory that a host gets of the device. */
struct nfc_seat rig_seat(struct rig *r, uint32_t epoch);
/* Memory that lives as long as the rig, zeroed and page-aligned. */
void *rig_pages(struct rig *r, uint64_t size);
/* The last heartbeat, which must be whole. */
struct nfc_heartbeat rig_heartbeat(struct rig *r);
uint64_t rig_dropped(struct rig *r);

/* ---- host: put ---- */
void host_slot(struct rig *r, const struct nfc_slot *slot, uint32_t channel);
void host_put(struct rig *r, uint32_t channel, uint32_t type, uint64_t length,
	      uint64_t id, const void *payload);
uint64_t host_direct(struct rig *r, uint32_t channel, const void *data,
		     size_t n);
uint64_t host_begin(struct rig *r, uint32_t channel, uint64_t size,
		    uint64_t timeout_ns);
void host_note(struct rig *r, uint32_t channel, uint32_t type,
	       uint32_t direction, uint64_t id);
void host_reply(struct rig *r, uint32_t channel, uint32_t type,
		uint32_t direction, uint64_t id, uint32_t state,
		uint32_t status, uint64_t outstanding);
void host_close(struct rig *r, uint32_t channel, uint32_t halves);
/* Let DMA reach host memory; its bus address is its address. */
void host_offer(struct rig *r, const void *memory, uint64_t length);
/* Answer the device's HELLO: the host uses these capabilities. */
void host_hello(struct rig *r, uint32_t capabilities);
/* A list as it stands: entries, number and outstanding are the caller's. */
void host_list(struct rig *r, uint32_t channel, uint32_t direction, uint64_t id,
	       const uint64_t *entry, uint64_t count, uint64_t number,
	       uint64_t outstanding);
/* The same with runs for entries. */
void host_runs(struct rig *r, uint32_t channel, uint32_t direction, uint64_t id,
	       const uint64_t *run, uint64_t count, uint64_t number,
	       uint64_t outstanding);
/* How many lists a buffer needs. */
uint64_t host_lists(const void *buf, uint64_t size);
/* Lists first..last-1 of a buffer. */
void host_send_lists(struct rig *r, uint32_t channel, uint32_t direction,
		     uint64_t id, const void *buf, uint64_t size,
		     uint64_t first, uint64_t last);

/*
 * Play the host's part of a transfer whose BEGIN is out: lists within the
 * window, again where the device asks, up to DONE, ERROR or ABORTED. Returns
 * that record; its state is UINT16_MAX if the device fell silent. FIN is left
 * to the caller.
 */
struct nfc_ack host_drive(struct rig *r, uint32_t channel, uint32_t direction,
			  uint64_t id, const void *buf, uint64_t size);

/* ---- host: take ---- */
void host_drain(struct rig *r);
/* The next message of a channel; false if there is none. */
bool host_take(struct rig *r, uint32_t channel, struct nfc_slot *slot);
/* The next message must be of that type, for that transaction. */
struct nfc_slot host_expect(struct rig *r, uint32_t channel, uint32_t type,
			    uint64_t id);
struct nfc_ack host_expect_ack(struct rig *r, uint32_t channel, uint32_t type,
			       uint32_t direction, uint64_t id, uint32_t state,
			       uint32_t status);
void host_expect_note(struct rig *r, uint32_t channel, uint32_t type,
		      uint32_t direction, uint64_t id);
void host_expect_close(struct rig *r, uint32_t channel, uint32_t halves);
void host_expect_nothing(struct rig *r, uint32_t channel);

/* ---- host: control ---- */
struct nfc_control host_control(struct rig *r, uint32_t op, uint64_t a,
				uint64_t b, uint64_t c, const char *name);
/* The same, with all bytes of the name as they are. */
struct nfc_control host_control_named(struct rig *r, uint32_t op, uint64_t a,
				      const char name[NFC_NAME_SIZE]);
int host_open(struct rig *r, uint32_t target);
/* Start a puppet with ports targets and subscribe them all. */
struct puppet *host_start(struct rig *r,
			  void (*fn)(struct nfc_process *, struct puppet *),
			  uint32_t ports);
/* As host_start, but subscribe nothing. */
struct puppet *host_launch(struct rig *r, uint32_t first,
			   void (*fn)(struct nfc_process *, struct puppet *),
			   uint32_t ports);

/* ---- puppets ---- */
/* Note what a call returned, in p->rc. */
void note(struct puppet *p, int rc);
/* Write bytes that count up, each of which the other end answers by the next one. */
void ask_often(struct nfc_channel *ch, struct puppet *p, int times);
/* Sleep a millisecond of the test's clock, so that the host acts first. */
void later(struct nfc_process *self);
/* Stay until stopped: a process that ends closes its channels. */
void stay(struct nfc_process *self);
/* Let puppets that called later() continue. */
void go(struct rig *r);

/* Page-aligned host memory, within reach of DMA, filled with a pattern. */
uint8_t *host_buffer(struct rig *r, uint64_t size, uint64_t seed);
void fill_pattern(uint8_t *p, uint64_t size, uint64_t seed);

#endif
