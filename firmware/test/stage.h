/* SPDX-License-Identifier: MIT */
/*
 * The hosted device under test, on threads of its own, and a host for it: that
 * of rig_host.c, which waits here where the rig would step its device.
 */
#ifndef STAGE_H
#define STAGE_H

#include "rig.h"
#include "../port/hosted.h"

enum {
	CHANNELS = 64,
	HALF = 1 << 20, /* of host memory: a file that cannot shrink, one that can */
};

/* The shape of a device. */
struct shape {
	uint32_t islands, managers, engines, programs, size;
	bool bus, sleeps;
};

struct stage {
	struct rig r;
	struct rig_channel side[CHANNELS]; /* the host's side of each */
	struct nfc_hosted *h;
	/* Ring a device that is elsewhere; NULL: h is run here as well. */
	void (*ring)(struct stage *s);
	void *near; /* what that is for */
	uint32_t passes; /* that h was run here */
	struct nfc_bus *bus;
	const struct shape *shape;
	uint32_t index; /* of the program or range that the step is about */
	bool explained; /* a step failed already: calls fail once */
	bool left; /* the last restart leaked a thread */
};

/* Memory that both see, two halves, each of a file; an eventfd for interrupts. */
extern uint8_t *host_memory;
extern int host_file[2], host_vector;

/* The configuration of a shape. */
struct nfc_config stage_config(const struct shape *shape);

/* ---- the device: 0 or enum nfc_status ---- */

int stage_boot(struct stage *s);
int stage_restart(struct stage *s);
/* The host begins anew with an epoch of a device that has such an area. */
void stage_meet(struct stage *s, struct nfc_area *area);
/* False: a thread is leaked. */
bool stage_close(struct stage *s);

/* Let the device run, and take the slots that it put. */
void stage_look(struct stage *s);

/* ---- the host: transfers return 0 or enum nfc_status, messages succeed ---- */

int stage_give(struct stage *s, uint32_t channel, const uint8_t *buf,
	       uint64_t size);
int stage_take(struct stage *s, uint32_t channel, uint8_t *buf, uint64_t size);
void stage_say(struct stage *s, uint32_t channel, const void *data, size_t n);
void stage_hear(struct stage *s, uint32_t channel, void *data);
/* The process of a channel has ended: both halves close. */
void stage_end(struct stage *s, uint32_t channel);
/* A control request, which becomes its reply; returns the reply's status. */
int stage_ask(struct stage *s, struct nfc_control *c);
/* The image that LOAD sends. */
uint64_t stage_image_size(void);
int stage_open(struct stage *s, uint32_t target);

#endif
