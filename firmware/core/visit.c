// SPDX-License-Identifier: MIT
/*
 * Channels that processes open: to a process, which joint.c does, or to a host that listens,
 * whose guest the process is then. Record 0060.
 */
#include "calls.h"

/* For a process the end is nothing but what refuses it. */
static void lay_guest(struct nfc_relay *relay, struct nfc_process *p,
		      uint32_t target)
{
	relay->has_guest = true;
	relay->end[0].call.fn = nfc_read_guest;
	nfc_relay_bind(&relay->end[1], target);
	nfc_guest_lay(relay, p);
}

/* ---- a process that connects ---- */

/* One of a process that is over, and closed by it. */
static struct nfc_relay *own_guest(const struct nfc_process *self)
{
	struct nfc_relay *relay = self->guests;

	for (; relay; relay = relay->sibling) {
		const struct nfc_half *half = relay->guest.half;

		if (!relay->end[1].ch && !atomic_load(&relay->calls) &&
		    half[0].closed & half[1].closed & NFC_CLOSED_DEVICE)
			break;
	}
	return relay;
}

/* The host that listens, if a process may connect to it; NULL: there is none. */
static struct nfc_host *host_at(const struct nfc_process *self, uint64_t id)
{
	struct nfc_device *dev = self->island->dev;
	struct nfc_host *host = NULL;
	struct nfc_listener *l;

	nfc_lock(&dev->lock);
	l = nfc_listener_at(dev, id);
	if (l && l->ch && nfc_may_connect(l, self->host) && !nfc_gone(l->host))
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
		lay_guest(relay, self, target);
	else if (own)
		relay->end[0].host = self->host;
	return rc;
}

/* On the process's own island, which is its channel's. */
static int visit(struct nfc_process *self, uint64_t id, struct nfc_channel **ch)
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
	if (!own) {
		relay->sibling = self->guests;
		self->guests = relay;
	}
	nfc_listener_wake(dev, l);
	*ch = &relay->guest;
	return 0;
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
	return where ? -NFC_ENOTSUP : visit(self, nfc_id_target(target), ch);
}
