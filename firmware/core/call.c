// SPDX-License-Identifier: MIT
/* Work for an island that others give it: a list of calls, under the device's lock. */
#include "calls.h"

void nfc_call_post(struct nfc_island *to, struct nfc_call *call)
{
	const struct nfc_port *port = to->dev->port;

	nfc_lock(&to->dev->lock);
	call->next = atomic_load(&to->calls);
	atomic_exchange(&to->calls, call); /* SYNC: island park */
	nfc_unlock(&to->dev->lock);
	port->wake(port->self, to->index);
}

static struct nfc_call *next_call(struct nfc_island *island)
{
	struct nfc_call *call;

	nfc_lock(&island->dev->lock);
	call = atomic_load(&island->calls);
	if (call)
		atomic_store(&island->calls, call->next);
	nfc_unlock(&island->dev->lock);
	return call;
}

bool nfc_call_take_back(struct nfc_island *to, struct nfc_call *call)
{
	struct nfc_call *before;

	nfc_lock(&to->dev->lock);
	before = atomic_load(&to->calls);
	if (before == call)
		atomic_store(&to->calls, call->next);
	while (before && before != call && before->next != call)
		before = before->next;
	if (before && before != call)
		before->next = call->next;
	nfc_unlock(&to->dev->lock);
	return before != NULL;
}

int nfc_outside_call(struct nfc_island *to,
		     int (*fn)(struct nfc_island *island, void *arg), void *arg)
{
	struct nfc_call call = { .fn = fn, .arg = arg, .result = -NFC_ETIMEOUT };
	const struct nfc_port *port = to->dev->port;
	uint64_t since = port->now(port->self);

	nfc_call_post(to, &call);
	while (!atomic_load(&call.done)) {
		bool late = port->now(port->self) - since > NFC_CALL_NS;

		if ((late || atomic_load(&to->dev->halt)) &&
		    nfc_call_take_back(to, &call))
			break;
		port->yield(port->self);
	}
	return call.result;
}

bool nfc_serve_calls(struct nfc_island *island)
{
	struct nfc_call *call;

	if (!atomic_load_explicit(&island->calls, memory_order_relaxed))
		return false;
	while ((call = next_call(island))) {
		int rc = call->fn(island, call->arg);

		if (rc ==
		    NFC_AGAIN) /* it has no waiting caller and may be queued again */
			continue;
		call->result = rc;
		atomic_store(&call->done, 1);
	}
	return true;
}
