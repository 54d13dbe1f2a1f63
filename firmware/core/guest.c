// SPDX-License-Identifier: MIT
/*
 * Channels that processes open: to a process, which joint.c does, or to a host
 * that listens. The process then is a guest of that host. A host at another
 * node connects to the node of the process. Record 0060.
 */
#include "calls.h"

/* Initialize the relay of a process. Its own end only handles refusals. */
static void init_guest(struct nfc_relay *relay, struct nfc_process *p,
		       uint32_t target)
{
	relay->has_guest = true;
	relay->end[0].call.fn = nfc_read_guest;
	nfc_relay_bind(&relay->end[1], target);
	nfc_guest_init(relay, p);
}

/* ---- a process that connects ---- */

/* One of a process that is over, and closed by it. */
static struct nfc_relay *own_guest(const struct nfc_process *self)
{
	struct nfc_relay *relay = self->guests;

	for (; relay; relay = relay->sibling) {
		const struct nfc_half *half = relay->guest.half;

		if (!relay->end[1].ch && !relay->way &&
		    !atomic_load(&relay->calls) &&
		    half[0].closed & half[1].closed & NFC_CLOSED_DEVICE)
			break;
	}
	return relay;
}

static void keep(struct nfc_process *self, struct nfc_relay *relay)
{
	relay->sibling = self->guests;
	self->guests = relay;
}

/* The host that listens, if a process may connect to it; NULL: there is none. */
static struct nfc_host *host_at(const struct nfc_process *self, uint64_t id)
{
	struct nfc_device *dev = self->island->dev;
	struct nfc_host *host = NULL;
	struct nfc_listener *l;

	nfc_lock(&dev->lock);
	l = nfc_listener_at(dev, id);
	if (l && l->ch && nfc_may_connect(l, self->host) &&
	    !nfc_is_detaching(l->host))
		host = l->host;
	nfc_unlock(&dev->lock);
	return host;
}

/* A relay before that listener, with a target that is free there. Must hold the device's lock. */
static int queue_guest(struct nfc_process *self, struct nfc_listener *l,
		       uint32_t target, struct nfc_relay *relay)
{
	bool own = relay && atomic_load(&relay->ends);
	int rc;

	if (own)
		relay->end[0].host = NULL; /* it counts once */
	rc = target ? nfc_relay_queue(l, self->host, self->island, relay) :
		      -NFC_ENOMEM;
	if (!rc)
		init_guest(relay, self, target);
	else if (own)
		relay->end[0].host = self->host;
	return rc;
}

/* On the process's own island, which is its channel's. */
static int connect_near_host(struct nfc_process *self, uint64_t id,
			     struct nfc_channel **ch)
{
	struct nfc_device *dev = self->island->dev;
	struct nfc_relay *own = own_guest(self), *relay = own;
	struct nfc_host *host = host_at(self, id);
	struct nfc_listener *l;
	uint32_t target;
	int rc = -NFC_ENOTARGET;

	if (!host)
		return rc;
	target = nfc_free_targets(self->island, host, 1);
	nfc_lock(&dev->lock);
	l = nfc_listener_at(dev, id);
	if (!relay)
		relay = nfc_relay_free(dev);
	if (l && l->ch && l->host == host)
		rc = l->guests ? queue_guest(self, l, target, relay) :
				 -NFC_ENOTSUP;
	nfc_unlock(&dev->lock);
	if (rc)
		return rc;
	if (!own)
		keep(self, relay);
	nfc_listener_wake(dev, l);
	*ch = &relay->guest;
	return 0;
}

/* ---- to a host of another node, which connects ---- */

_Static_assert(NFC_RELAYS == 1 << 8, "a guest's number has 8 bits");

/* The other node has answered a process that waits for that. */
static void on_way_answer(struct nfc_relay *relay,
			  const struct nfc_joined *answer)
{
	struct nfc_channel *ch = &relay->guest;
	struct nfc_device *dev = ch->island->dev;

	if (ch->process->wait != NFC_WAIT_JOIN)
		return; /* it has given up */
	if (!answer->status) {
		ch->half[0].closed = ch->half[1].closed = 0;
		nfc_lock(&dev->lock);
		relay->whose.owner = answer->h2d;
		relay->whose.home = (uint32_t)answer->d2h;
		relay->awaits = true;
		nfc_unlock(&dev->lock);
	}
	nfc_wake(ch->process, -(int)answer->status);
}

/* That node was lost, or ended the connection. */
static void on_way_loss(struct nfc_relay *relay)
{
	struct nfc_process *p = relay->guest.process;

	if (relay->awaits) {
		nfc_way_leave(relay);
		nfc_guest_alone(&relay->guest);
	} else if (p->wait == NFC_WAIT_JOIN) {
		nfc_wake(p, -NFC_ENOTARGET);
	}
}

static void handle_way(struct nfc_joint *joint)
{
	uint32_t events = atomic_exchange(&joint->far.events, 0);

	if (joint->far.relay && events & NFC_JOINT_JOINED)
		on_way_answer(joint->far.relay, &joint->far.joined);
	if (joint->far.relay && events & NFC_JOINT_LOST)
		on_way_loss(joint->far.relay);
}

/*
 * Handle the events of the process's end of the connection. A struct nfc_call's
 * fn.
 */
static int read_way(struct nfc_island *island, void *arg)
{
	struct nfc_joint *joint = ((struct nfc_rings *)arg)->joint;

	(void)island;
	atomic_exchange(&joint->called[0], 0); /* SYNC: joint */
	handle_way(joint);
	atomic_fetch_sub(&joint->calls, 1); /* it may be another's from here on */
	return NFC_AGAIN;
}

/* Ask the node of the listener, and wait for its answer. */
static int ask_there(struct nfc_process *self, struct nfc_relay *relay)
{
	const struct nfc_port *port = self->island->dev->port;
	uint64_t number = (uint64_t)(relay - self->island->dev->relay);
	struct nfc_joint *joint = nfc_joint_take(self->host);
	int rc;

	if (!joint)
		return -NFC_ENOMEM;
	nfc_joint_init_far(joint, 0, self->host, self->island, read_way);
	joint->far.relay = relay;
	relay->way = joint;
	atomic_fetch_add(&joint->ends, 1); /* the port's */
	rc = port->join(port->self, self->host->index, joint,
			nfc_joint_index(joint), relay->listener | number << 24);
	if (rc)
		atomic_fetch_sub(&joint->ends, 1);
	else
		rc = nfc_joint_await(self);
	if (rc)
		nfc_way_leave(relay);
	return rc;
}

/* A relay for the process alone; NULL: there is none, or its host has as many as it gets. */
static struct nfc_relay *begin_there(struct nfc_process *self)
{
	struct nfc_device *dev = self->island->dev;
	struct nfc_relay *relay = NULL;

	nfc_lock(&dev->lock);
	if (!nfc_relays_bound(dev, self->host, self->host))
		relay = nfc_relay_free(dev);
	if (relay) {
		atomic_store(&relay->ends, 1);
		relay->way = NULL;
		nfc_relay_init(relay, 0, self->host, self->island);
		nfc_relay_init(relay, 1, NULL, self->island);
	}
	nfc_unlock(&dev->lock);
	return relay;
}

static void end_there(struct nfc_device *dev, struct nfc_relay *relay)
{
	nfc_lock(&dev->lock);
	relay->end[0].host = NULL;
	nfc_unlock(&dev->lock);
	atomic_fetch_sub(&relay->ends, 1); /* it may be another's from here on */
}

static int connect_far_host(struct nfc_process *self, uint64_t id,
			    struct nfc_channel **ch)
{
	struct nfc_relay *own = own_guest(self);
	struct nfc_relay *relay = own ? own : begin_there(self);
	int rc;

	if (!relay)
		return -NFC_ENOMEM;
	relay->before = NULL;
	relay->has_guest = true;
	relay->until = 0;
	relay->listener = id;
	relay->end[0].call.fn = nfc_read_guest;
	nfc_guest_wait(relay, self);
	rc = ask_there(self, relay);
	if (rc && !own)
		end_there(self->island->dev, relay);
	if (rc)
		return rc;
	if (!own)
		keep(self, relay);
	*ch = &relay->guest;
	return 0;
}

/* ---- that host ---- */

struct coming {
	struct nfc_host *host;
	struct nfc_whose whose;
	uint64_t id; /* of its listener, with the node */
	struct nfc_relay *relay;
	uint32_t target; /* out */
};

/* Must hold the device's lock. */
static bool is_awaited(const struct coming *c)
{
	const struct nfc_relay *r = c->relay;

	return r->awaits && r->listener == c->id &&
	       nfc_is_whose(&r->whose, &c->whose);
}

/* It gets the other end, if it has a target, and room for one more. Must hold the lock. */
static int let_in(struct nfc_island *island, const struct coming *c)
{
	struct nfc_relay *relay = c->relay;
	int rc = nfc_relays_bound(island->dev, relay->end[0].host, c->host);

	if (!rc && !c->target)
		rc = -NFC_ENOMEM;
	if (rc)
		return rc;
	nfc_relay_init(relay, 1, c->host, island);
	atomic_fetch_add(&relay->ends, 1);
	return 0;
}

/* On the island of the process. */
static int come_here(struct nfc_island *island, void *arg)
{
	struct nfc_device *dev = island->dev;
	struct coming *c = arg;
	struct nfc_relay *relay = c->relay;
	int rc = -NFC_ENOTARGET;
	bool awaited;

	if (nfc_is_detaching(c->host))
		return -NFC_ECLOSED;
	if (relay->end[0].island != island->index)
		return rc;
	if (relay->way) /* the host may be faster than the answer of its node */
		handle_way(relay->way);
	c->target = nfc_free_targets(island, c->host, 1);
	nfc_lock(&dev->lock);
	awaited = is_awaited(c);
	if (awaited)
		rc = let_in(island, c);
	nfc_unlock(&dev->lock);
	if (!awaited)
		return rc;
	nfc_way_leave(relay);
	if (rc) {
		nfc_guest_alone(&relay->guest);
		return rc;
	}
	nfc_relay_bind(&relay->end[1], c->target);
	nfc_guest_meet(relay);
	return 0;
}

int nfc_guest_connect(struct nfc_process *self, uint64_t id, uint64_t number,
		      uint64_t *target)
{
	struct nfc_device *dev = self->island->dev;
	struct coming c = { .host = self->host, .id = id };
	struct nfc_island *island = NULL;
	int rc = -NFC_ENOTARGET;

	if (number >= NFC_RELAYS || !dev->port->whose ||
	    !dev->port->whose(dev->port->self, self->host->index, &c.whose))
		return rc;
	c.relay = &dev->relay[number];
	nfc_lock(&dev->lock);
	if (c.relay->end[0].host && c.relay->listener == id)
		island = &dev->islands[c.relay->end[0].island];
	nfc_unlock(&dev->lock);
	if (island)
		rc = nfc_island_call(self, island, come_here, &c);
	if (!rc)
		*target = c.target;
	return rc;
}

/* ---- a process of another node, before a listener of this one ---- */

/*
 * The listener that is requested, if the caller may connect to it: a listener
 * of the caller's own host, or one that admits any user. Users of other nodes
 * are unknown here. Must hold the device's lock.
 */
static struct nfc_listener *listener_of(struct nfc_host *host,
					const struct nfc_far_guest *v)
{
	struct nfc_listener *l = nfc_listener_at(host->dev,
						 v->target & 0xffffff);

	if (!l || l->host != host || !l->ch || nfc_is_detaching(host))
		return NULL;
	return l->anyone || nfc_is_whose(&v->from, &v->to) ? l : NULL;
}

/* A place before it. */
static int admit_far_guest(struct nfc_island *island, struct nfc_joint *joint)
{
	const struct nfc_far_guest *v = &joint->far.guest;
	struct nfc_device *dev = island->dev;
	struct nfc_relay *relay = NULL;
	int rc = -NFC_ENOTARGET;
	struct nfc_listener *l;

	nfc_lock(&dev->lock);
	l = listener_of(joint->rings[1].host, v);
	if (l && l->ch->island == island) {
		relay = nfc_relay_free(dev);
		rc = nfc_far_guest_queue(l, &v->from, island, relay);
	}
	if (!rc) {
		relay->way = joint;
		relay->event_word = 1ull << NFC_ID_NODE_SHIFT |
				    (uint64_t)v->node << NFC_ID_Z_SHIFT |
				    NFC_ACCEPT_PROCESS | v->target >> 24;
		atomic_fetch_add(&joint->ends, 1);
		joint->far.relay = relay;
	}
	nfc_unlock(&dev->lock);
	return rc;
}

static void answer_far_guest(struct nfc_island *island, struct nfc_joint *joint)
{
	const struct nfc_far_guest *v = &joint->far.guest;

	joint->far.joined = (struct nfc_joined){
		.h2d = v->to.owner,
		.d2h = v->to.home,
		.status = (uint32_t)-admit_far_guest(island, joint),
	};
	atomic_store(&joint->far.answered, true);
	nfc_joint_notify(joint);
}

/* The process's node has the answer: the host may be notified. */
static void ready_far_guest(struct nfc_device *dev, struct nfc_relay *relay)
{
	struct nfc_listener *l;

	nfc_lock(&dev->lock);
	relay->ready = true;
	l = relay->before;
	nfc_unlock(&dev->lock);
	if (l)
		nfc_listener_wake(dev, l);
}

/*
 * Handle the events of the listener's end of the connection. A struct
 * nfc_call's fn.
 */
static int read_far_guest(struct nfc_island *island, void *arg)
{
	struct nfc_joint *joint = ((struct nfc_rings *)arg)->joint;
	uint32_t events;

	atomic_exchange(&joint->called[1], 0); /* SYNC: joint */
	events = atomic_exchange(&joint->far.events, 0);
	if (events & NFC_JOINT_ASKED)
		answer_far_guest(island, joint);
	else if (joint->far.relay && !events)
		ready_far_guest(island->dev, joint->far.relay);
	if (joint->far.relay && events & NFC_JOINT_LOST)
		nfc_far_guest_leave(joint->far.relay);
	atomic_fetch_sub(&joint->calls, 1); /* it may be another's from here on */
	return NFC_AGAIN;
}

int nfc_far_guest_ask(struct nfc_device *dev, uint32_t index,
		      const struct nfc_far_guest *guest, struct nfc_joint **out,
		      uint32_t *at)
{
	struct nfc_host *host = dev->host[index];
	struct nfc_island *island = NULL;
	struct nfc_joint *joint;
	struct nfc_listener *l;

	if (!nfc_is_host(dev, guest->target & 0xffffff))
		return -NFC_ENOTARGET;
	nfc_lock(&dev->lock);
	l = listener_of(host, guest);
	if (l && l->guests == NFC_GUESTS_ALL)
		island = l->ch->island;
	nfc_unlock(&dev->lock);
	if (!island)
		return l ? -NFC_ENOTSUP : -NFC_ENOTARGET;
	joint = nfc_joint_take(host);
	if (!joint)
		return -NFC_ENOMEM;
	nfc_joint_init_far(joint, 1, host, island, read_far_guest);
	joint->far.guest = *guest;
	atomic_store(&joint->far.events, NFC_JOINT_ASKED);
	*out = joint;
	*at = nfc_joint_index(joint);
	nfc_joint_call(joint, 1);
	return 0;
}

bool nfc_far_guest_notified(struct nfc_joint *joint)
{
	return atomic_load(&joint->far.notified);
}

/* ---- both ---- */

/* 0: the target is at this node, NFC_PENDING: at another; else why it is nowhere. */
static int locate(const struct nfc_process *self, uint64_t id)
{
	const struct nfc_port *port = self->island->dev->port;

	if (!nfc_id_valid(id))
		return -NFC_EINVAL;
	if (!nfc_id_has_node(id))
		return 0;
	return port->locate ? port->locate(port->self, self->host->index, id) :
			      -NFC_ENOTSUP;
}

int channel_connect(struct nfc_process *self, uint64_t target,
		    struct nfc_channel **ch)
{
	int where;

	if (self->stop)
		return -NFC_ESTOPPED;
	where = locate(self, target);
	if (where < 0)
		return where;
	if (!nfc_is_host(self->island->dev, nfc_id_target(target)))
		return nfc_join(self, target, where, ch);
	return where ? connect_far_host(self, target, ch) :
		       connect_near_host(self, nfc_id_target(target), ch);
}
