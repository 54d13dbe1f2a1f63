// SPDX-License-Identifier: MIT
/*
 * Channels that processes open to each other: a joint is taken, and the target's end
 * becomes one of its rings in place of its mailbox. All else is done where channels of
 * the host are. Record 0060.
 */
#include "calls.h"

enum {
	JOIN_NS = 1000000000, /* for another node to answer */
};

struct connection {
	struct nfc_process *self;
	struct nfc_joint *joint;
	uint64_t id; /* of the target, which is */
	uint32_t target;
};

/*
 * Has a process closed one of its joints, and does no other end or call use it?
 */
static bool is_done(struct nfc_joint *joint)
{
	const struct nfc_channel *ch = &joint->caller;
	uint8_t closed = ch->half[0].closed & ch->half[1].closed;

	return !ch->open && !ch->recalled && closed & NFC_CLOSED_DEVICE &&
	       atomic_load(&joint->ends) == 1 && !atomic_load(&joint->calls);
}

/* A joint that the process closed and still owns. */
static struct nfc_joint *own_joint(const struct nfc_process *self)
{
	struct nfc_joint *joint = self->joints;

	while (joint && !is_done(joint))
		joint = joint->next;
	return joint;
}

struct nfc_joint *nfc_joint_take(struct nfc_host *host)
{
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

static void clear(struct nfc_joint *joint)
{
	size_t kept = offsetof(struct nfc_joint, channel);

	__builtin_memset((uint8_t *)joint + kept, 0, sizeof(*joint) - kept);
}

static void init_end(struct nfc_joint *joint, uint32_t end,
		     struct nfc_host *host, const struct nfc_island *island,
		     int (*read)(struct nfc_island *island, void *rings))
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
		.fn = read,
		.arg = &joint->rings[end],
	};
}

void nfc_joint_init_far(struct nfc_joint *joint, uint32_t end,
			struct nfc_host *host, const struct nfc_island *island,
			int (*read)(struct nfc_island *island, void *rings))
{
	clear(joint);
	joint->far.used = true;
	joint->far.here = end;
	init_end(joint, end, host, island, read);
}

/*
 * Initialize the end of a process that connects, before another thread can use
 * it.
 */
static void init_caller(const struct connection *c)
{
	struct nfc_joint *joint = c->joint;

	joint->channel[0] = &joint->caller;
	joint->caller = (struct nfc_channel){
		.process = c->self,
		.island = c->self->island,
		.rings = &joint->rings[0],
		.id = c->target,
	};
}

/* It has the ids and the generation that the target has. */
static void open_caller(struct nfc_channel *ch, const struct nfc_joined *j)
{
	nfc_d2h(ch)->next = j->h2d;
	nfc_h2d(ch)->next = j->d2h;
	ch->generation = j->generation;
	ch->half[0].closed = ch->half[1].closed = 0;
	ch->open = 1;
}

/* Subscribe the target's port, as the host would. */
static int open_target(struct nfc_host *host, uint32_t target,
		       struct nfc_joined *j)
{
	struct nfc_control control = { .a = target };
	int rc;

	if (nfc_is_detaching(host))
		return -NFC_ECLOSED;
	rc = nfc_channel_open(host, &control);
	*j = (struct nfc_joined){ .h2d = control.a,
				  .d2h = control.b,
				  .generation = control.c };
	return rc;
}

/* From here on it is at an end of the joint, and not at its mailbox. */
static void move_target(struct nfc_host *host, struct nfc_joint *joint,
			uint32_t target)
{
	struct nfc_channel *ch = &host->channels[target];

	joint->channel[1] = ch;
	joint->mailbox = ch->rings;
	ch->rings = &joint->rings[1];
}

/* ---- on one node ---- */

/*
 * On the target's island. Messages that the target puts from now on find an end
 * that is ready.
 */
static int connect_here(struct nfc_island *island, void *arg)
{
	const struct connection *c = arg;
	struct nfc_host *host = c->self->host;
	struct nfc_joint *joint = c->joint;
	struct nfc_joined j;
	int rc;

	if (host->channels[c->target].process == c->self)
		return -NFC_EBUSY;
	rc = open_target(host, c->target, &j);
	if (rc)
		return rc;
	clear(joint);
	init_end(joint, 0, host, c->self->island, nfc_read_joint);
	init_end(joint, 1, host, island, nfc_read_joint);
	init_caller(c);
	open_caller(&joint->caller, &j);
	atomic_store(&joint->ends, 2);
	move_target(host, joint, c->target);
	return 0;
}

/* ---- to another node ---- */

/* Its process still waits for the answer, or has given up. */
static void handle_answer(struct nfc_joint *joint)
{
	struct nfc_process *p = joint->caller.process;
	uint32_t status = joint->far.joined.status;

	if (!p || p->wait != NFC_WAIT_JOIN || atomic_load(&joint->far.over))
		return;
	if (!status)
		open_caller(&joint->caller, &joint->far.joined);
	nfc_wake(p, -(int)status);
}

/* A process of another node asked for a port of this island. */
static void answer(struct nfc_joint *joint)
{
	struct nfc_joint_far *far = &joint->far;
	struct nfc_host *host = joint->rings[1].host;
	int rc = open_target(host, far->target, &far->joined);

	if (!rc) {
		atomic_fetch_add(&joint->ends, 1);
		move_target(host, joint, far->target);
	}
	far->joined.status = (uint32_t)-rc;
	atomic_store(&far->answered, true);
	nfc_joint_notify(joint);
}

/* The end's messages have no receiver any more: there always is room. */
static void lose(struct nfc_channel *ch, struct nfc_rings *rings)
{
	rings->limit = rings->tail;
	if (ch->rings == rings && ch->open && !nfc_is_detaching(rings->host))
		nfc_other_closed(ch);
}

/*
 * Handle the events of an end whose other end is at another node. A struct
 * nfc_call's fn.
 */
static int read_far(struct nfc_island *island, void *arg)
{
	struct nfc_rings *rings = arg;
	struct nfc_joint *joint = rings->joint;
	struct nfc_channel *ch;
	uint32_t events;

	(void)island;
	atomic_exchange(&joint->called[joint->far.here], 0); /* SYNC: joint */
	events = atomic_exchange(&joint->far.events, 0);
	if (events & NFC_JOINT_ASKED)
		answer(joint);
	if (events & NFC_JOINT_JOINED)
		handle_answer(joint);
	ch = joint->channel[joint->far.here];
	if (ch)
		nfc_take_joint(rings);
	if (ch && events & NFC_JOINT_LOST)
		lose(ch, rings);
	atomic_fetch_sub(&joint->calls, 1); /* it may be another's from here on */
	return NFC_AGAIN;
}

int nfc_joint_await(struct nfc_process *self)
{
	nfc_read_clock(self->island);
	self->wake_at = self->island->now + JOIN_NS;
	nfc_timer(self->island, self->wake_at);
	return nfc_block(self, NFC_WAIT_JOIN);
}

/* The end here is closed until the answer opens it. */
static int connect_there(const struct connection *c)
{
	struct nfc_process *self = c->self;
	const struct nfc_port *port = self->island->dev->port;
	struct nfc_joint *joint = c->joint;
	int rc;

	nfc_joint_init_far(joint, 0, self->host, self->island, read_far);
	init_caller(c);
	for (int d = 0; d < 2; d++)
		joint->caller.half[d].closed = NFC_CLOSED_DEVICE |
					       NFC_CLOSED_OVER;
	atomic_fetch_add(&joint->ends, 1);
	rc = port->join(port->self, self->host->index, joint,
			nfc_joint_index(joint), c->id);
	if (rc) {
		atomic_fetch_sub(&joint->ends, 1);
		return rc;
	}
	rc = nfc_joint_await(self);
	if (rc) /* who gave up has nothing to do with the answer any more */
		nfc_joint_end(joint);
	return rc;
}

/* ---- both ---- */

static int connect(struct connection *c, bool there)
{
	struct nfc_host *host = c->self->host;

	if (there)
		return connect_there(c);
	return nfc_island_call(c->self, nfc_island_of(host, c->target),
			       connect_here, c);
}

int nfc_join(struct nfc_process *self, uint64_t id, bool there,
	     struct nfc_channel **ch)
{
	struct connection c = { .self = self,
				.id = id,
				.target = (uint32_t)nfc_id_target(id) };
	struct nfc_joint *own;
	int rc;

	if (c.target >= self->host->channel_count ||
	    c.target == NFC_TARGET_CONTROL)
		return -NFC_ENOTARGET;
	own = c.joint = own_joint(self);
	if (!own)
		c.joint = nfc_joint_take(self->host);
	if (!c.joint)
		return -NFC_ENOMEM;
	rc = connect(&c, there);
	if (rc && !own)
		atomic_fetch_sub(&c.joint->ends, 1);
	if (rc)
		return rc;
	if (!own) {
		c.joint->next = self->joints;
		self->joints = c.joint;
	}
	*ch = &c.joint->caller;
	return 0;
}

/* ---- what the port calls ---- */

int nfc_joint_ask(struct nfc_device *dev, uint32_t index, uint32_t target,
		  struct nfc_joint **out, uint32_t *at)
{
	struct nfc_host *host = dev->host[index];
	struct nfc_joint *joint;

	if (target >= host->channel_count || target == NFC_TARGET_CONTROL)
		return -NFC_ENOTARGET;
	joint = nfc_joint_take(host);
	if (!joint)
		return -NFC_ENOMEM;
	nfc_joint_init_far(joint, 1, host, nfc_island_of(host, target),
			   read_far);
	joint->far.target = target;
	atomic_store(&joint->far.events, NFC_JOINT_ASKED);
	*out = joint;
	*at = nfc_joint_index(joint);
	nfc_joint_call(joint, 1);
	return 0;
}

bool nfc_joint_asked(struct nfc_joint *joint, struct nfc_joined *out)
{
	if (!atomic_load(&joint->far.answered))
		return false;
	*out = joint->far.joined;
	return true;
}

static void notify(struct nfc_joint *joint, uint32_t events)
{
	atomic_fetch_or(&joint->far.events, events);
	nfc_joint_call(joint, joint->far.here);
}

void nfc_joint_joined(struct nfc_joint *joint, const struct nfc_joined *answer)
{
	joint->far.joined = *answer;
	notify(joint, NFC_JOINT_JOINED);
}

struct nfc_joint_rings nfc_joint_rings(struct nfc_joint *joint)
{
	uint32_t end = joint->far.here;

	return (struct nfc_joint_rings){
		.out = joint->slot[!end],
		.in = joint->slot[end],
		.out_head = (uint64_t *)&joint->head[!end],
		.in_head = (uint64_t *)&joint->head[end],
	};
}

void nfc_joint_received(struct nfc_joint *joint)
{
	nfc_joint_call(joint, joint->far.here);
}

void nfc_joint_lost(struct nfc_joint *joint)
{
	notify(joint, NFC_JOINT_LOST);
}

bool nfc_joint_over(struct nfc_joint *joint)
{
	return atomic_load(&joint->far.over);
}

void nfc_joint_drop(struct nfc_joint *joint)
{
	atomic_fetch_sub(&joint->ends, 1);
}

int nfc_joints_quiet(const struct nfc_host *host)
{
	for (uint32_t i = 0; i < NFC_JOINTS; i++)
		if (atomic_load(&host->joints[i].calls))
			return -NFC_EBUSY;
	return 0;
}
