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

/* Has a process done with one of its joints, and nobody else to do with it? */
static bool is_done(struct nfc_joint *joint)
{
	const struct nfc_channel *ch = &joint->caller;
	uint8_t closed = ch->half[0].closed & ch->half[1].closed;

	return !ch->open && !ch->recalled && closed & NFC_CLOSED_DEVICE &&
	       atomic_load(&joint->ends) == 1 && !atomic_load(&joint->calls);
}

/* One that the process closed, which stays its own. */
static struct nfc_joint *own_joint(const struct nfc_process *self)
{
	struct nfc_joint *joint = self->joints;

	while (joint && !is_done(joint))
		joint = joint->next;
	return joint;
}

/* A joint that is nobody's; NULL: there is none. */
static struct nfc_joint *free_joint(struct nfc_process *self)
{
	struct nfc_host *host = self->host;
	struct nfc_joint *joint = NULL;

	nfc_lock(&host->lock);
	for (uint32_t i = 0; i < NFC_JOINTS && !joint; i++) {
		struct nfc_joint *one = &host->joints[i];

		if (!atomic_load(&one->ends) && !atomic_load(&one->calls))
			joint = one;
	}
	if (joint)
		atomic_store(&joint->ends, 1);
	nfc_unlock(&host->lock);
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
		.shift = NFC_JOINT_SHIFT,
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
	size_t kept = offsetof(struct nfc_joint, channel);
	struct nfc_process *self = c->self;
	struct nfc_joint *joint = c->joint;

	__builtin_memset((uint8_t *)joint + kept, 0, sizeof(*joint) - kept);
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
	atomic_store(&c->joint->ends, 2);
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
	struct nfc_joint *own;
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
	own = c.joint = own_joint(self);
	if (!own)
		c.joint = free_joint(self);
	if (!c.joint)
		return -NFC_ENOMEM;
	rc = nfc_island_call(self, nfc_island_of(host, c.target), connect_here,
			     &c);
	if (rc && !own)
		atomic_store(&c.joint->ends, 0);
	if (rc)
		return rc;
	if (!own) {
		c.joint->next = self->joints;
		self->joints = c.joint;
	}
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
