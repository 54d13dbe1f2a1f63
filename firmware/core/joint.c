// SPDX-License-Identifier: MIT
/*
 * Channels that processes open to each other: a joint is taken, and the target's end
 * becomes one of its rings in place of its mailbox. All else is done where channels of
 * the host are. Record 0060.
 */
#include "calls.h"

struct connection {
	struct nfc_process *self;
	struct nfc_joint *joint;
	uint32_t target;
};

/* A free joint, with nothing in it, that two ends hold; NULL: there is none. */
static struct nfc_joint *take_joint(struct nfc_host *host)
{
	size_t kept = offsetof(struct nfc_joint, next);
	struct nfc_joint *joint = NULL;

	nfc_lock(&host->lock);
	for (uint32_t i = 0; i < NFC_JOINTS && !joint; i++) {
		struct nfc_joint *one = &host->joints[i];

		if (!atomic_load(&one->ends) && !atomic_load(&one->calls))
			joint = one;
	}
	if (joint)
		atomic_store(&joint->ends, 2);
	nfc_unlock(&host->lock);
	if (joint)
		__builtin_memset((uint8_t *)joint + kept, 0,
				 sizeof(*joint) - kept);
	return joint;
}

static void lay_end(struct nfc_joint *joint, uint32_t end,
		    struct nfc_host *host, const struct nfc_island *island)
{
	joint->rings[end] = (struct nfc_rings){
		.host = host,
		.share = &host->shares[island->index],
		.joint = joint,
		.h2d_head = &joint->head[end],
		.d2h_head = &joint->head[!end],
		.h2d = joint->slot[end],
		.d2h = joint->slot[!end],
		.island = island->index,
		.mask = NFC_JOINT_SLOTS - 1,
		.shift = 4,
		.asked = UINT64_MAX,
	};
	joint->call[end] = (struct nfc_call){
		.fn = nfc_read_joint,
		.arg = &joint->rings[end],
	};
}

/* Both ends, before anybody looks at them. */
static void lay_out(const struct connection *c, const struct nfc_island *to)
{
	struct nfc_process *self = c->self;
	struct nfc_joint *joint = c->joint;

	lay_end(joint, 0, self->host, self->island);
	lay_end(joint, 1, self->host, to);
	joint->channel[0] = &joint->caller;
	joint->caller = (struct nfc_channel){
		.process = self,
		.island = self->island,
		.rings = &joint->rings[0],
		.id = c->target,
	};
}

/* On the target's island. What it puts from here on meets an end that is ready. */
static int connect_here(struct nfc_island *island, void *arg)
{
	const struct connection *c = arg;
	struct nfc_host *host = c->self->host;
	struct nfc_channel *ch = &host->channels[c->target];
	struct nfc_channel *caller = &c->joint->caller;
	struct nfc_control control = { .a = c->target };
	int rc;

	if (nfc_gone(host))
		return -NFC_ECLOSED;
	if (ch->process == c->self)
		return -NFC_EBUSY;
	rc = nfc_channel_open(host, &control);
	if (rc)
		return rc;
	lay_out(c, island);
	nfc_d2h(caller)->next = control.a;
	nfc_h2d(caller)->next = control.b;
	caller->generation = control.c;
	caller->open = 1;
	c->joint->channel[1] = ch;
	c->joint->mailbox = ch->rings;
	ch->rings = &c->joint->rings[1];
	return 0;
}

int channel_connect(struct nfc_process *self, uint64_t target,
		    struct nfc_channel **ch)
{
	struct nfc_host *host = self->host;
	struct connection c = { .self = self };
	int rc;

	if (self->stop)
		return -NFC_ESTOPPED;
	if (!nfc_id_valid(target))
		return -NFC_EINVAL;
	if (nfc_id_has_node(target))
		return -NFC_ENOTSUP;
	c.target = (uint32_t)nfc_id_target(target);
	if (c.target >= host->channel_count || c.target == NFC_TARGET_CONTROL)
		return -NFC_ENOTARGET;
	c.joint = take_joint(host);
	if (!c.joint)
		return -NFC_ENOMEM;
	rc = nfc_island_call(self, nfc_island_of(host, c.target), connect_here,
			     &c);
	if (rc) {
		atomic_store(&c.joint->ends, 0);
		return rc;
	}
	c.joint->next = self->joints;
	self->joints = c.joint;
	*ch = &c.joint->caller;
	return 0;
}

int nfc_joints_quiet(const struct nfc_host *host)
{
	for (uint32_t i = 0; i < NFC_JOINTS; i++)
		if (atomic_load(&host->joints[i].calls))
			return -NFC_EBUSY;
	return 0;
}
