// SPDX-License-Identifier: MIT
/*
 * Cooperative processes on an island, its clock and timer, and calls from one
 * island to another.
 */
#include "calls.h"

enum {
	CALL_NS = 500000000, /* for an island to answer another: the host waits longer */
};

/* Channel ids are dealt to islands in blocks, and to mailboxes within one. */
static uint32_t block_size(const struct nfc_host *host)
{
	uint32_t islands = host->dev->config.islands;

	return (host->channel_count + islands - 1) / islands;
}

struct nfc_island *nfc_island_of(struct nfc_host *host, uint32_t channel)
{
	return &host->dev->islands[channel / block_size(host)];
}

uint32_t nfc_island_channels(struct nfc_island *island,
			     const struct nfc_host *host, uint32_t *end)
{
	uint64_t first = (uint64_t)island->index * block_size(host);

	*end = (uint32_t)nfc_min(host->channel_count, first + block_size(host));
	return (uint32_t)first;
}

/* Let a process run in the next pass. */
void nfc_make_ready(struct nfc_process *p)
{
	struct nfc_island *island = p->island;

	p->ready = 1;
	p->next = NULL;
	if (island->ready_last)
		island->ready_last->next = p;
	else
		island->ready_first = p;
	island->ready_last = p;
}

/* Let a blocked process return from nfc_block() with result. */
void nfc_wake(struct nfc_process *p, int result)
{
	if (p->ready || !p->share->there)
		return;
	p->result = result;
	p->wait = NFC_WAIT_NONE;
	p->wake_at = 0;
	nfc_make_ready(p);
}

static void switch_away(struct nfc_process *p)
{
	struct nfc_island *island = p->island;

	nfc_count(p->share, NFC_COUNT_SWITCHES, 1);
	island->dev->port->stack_switch(&p->stack, &island->scheduler);
}

/* Give the island to others until nfc_wake(); returns its result. */
int nfc_block(struct nfc_process *p, enum nfc_wait wait)
{
	p->wait = wait;
	p->ready = 0;
	switch_away(p);
	return p->result;
}

/* The process may have computed for long: the loop gets the present time. */
void nfc_yield(struct nfc_process *self)
{
	nfc_read_clock(self->island);
	nfc_make_ready(self);
	switch_away(self);
}

/*
 * A process that says so may run on any thread, see nfc_fw.h. One that no longer
 * is prompt goes on where it holds up nobody: on the island's own thread.
 */
void nfc_prompt(struct nfc_process *self, int prompt)
{
	bool moves = self->prompt && !prompt;

	self->prompt = prompt != 0;
	if (moves && self->island->assisted)
		nfc_yield(self);
}

/* Make sure timers are looked at no later than at. */
void nfc_timer(struct nfc_island *island, uint64_t at)
{
	island->timer = nfc_min(island->timer, at);
}

/* The clock was now a moment ago. */
void nfc_set_clock(struct nfc_island *island, uint64_t now)
{
	island->now = now;
	atomic_store_explicit(&island->seen, now, memory_order_relaxed);
}

void nfc_read_clock(struct nfc_island *island)
{
	const struct nfc_port *port = island->dev->port;

	nfc_set_clock(island, port->now(port->self));
}

void nfc_sleep(struct nfc_process *self, uint64_t ns)
{
	struct nfc_island *island = self->island;

	if (self->stop)
		return;
	nfc_read_clock(island);
	self->wake_at = island->now + ns;
	nfc_timer(island, self->wake_at);
	nfc_block(self, NFC_WAIT_SLEEP);
}

static void post_call(struct nfc_island *to, struct nfc_call *call)
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

/* False: its island has it already, and will be done at once. */
static bool take_back(struct nfc_island *from, struct nfc_call *call)
{
	struct nfc_call *before;

	nfc_lock(&from->dev->lock);
	before = atomic_load(&from->calls);
	if (before == call)
		atomic_store(&from->calls, call->next);
	while (before && before != call && before->next != call)
		before = before->next;
	if (before && before != call)
		before->next = call->next;
	nfc_unlock(&from->dev->lock);
	return before != NULL;
}

/*
 * Run fn on another island's thread and wait for its result, cooperatively.
 * Called by a process; on its own island fn runs at once. -NFC_ETIMEOUT, and fn
 * never runs, if a process keeps that island for too long.
 */
int nfc_island_call(struct nfc_process *self, struct nfc_island *to,
		    int (*fn)(struct nfc_island *island, void *arg), void *arg)
{
	struct nfc_call call = { .fn = fn, .arg = arg, .result = -NFC_ETIMEOUT };
	uint64_t since;

	if (to == self->island)
		return fn(to, arg);
	nfc_read_clock(self->island);
	since = self->island->now;
	self->calling = 1;
	post_call(to, &call);
	while (!atomic_load(&call.done)) {
		if (self->island->now - since > CALL_NS && take_back(to, &call))
			break;
		if (atomic_load(&to->dev->halt))
			nfc_block(self, NFC_WAIT_NONE); /* call stays valid */
		else if (self->stop)
			nfc_yield(self);
		else
			nfc_sleep(self, 20000);
	}
	self->calling = 0;
	return call.result;
}

int nfc_outside_call(struct nfc_island *to,
		     int (*fn)(struct nfc_island *island, void *arg), void *arg)
{
	struct nfc_call call = { .fn = fn, .arg = arg, .result = -NFC_ETIMEOUT };
	const struct nfc_port *port = to->dev->port;
	uint64_t since = port->now(port->self);

	post_call(to, &call);
	while (!atomic_load(&call.done)) {
		bool late = port->now(port->self) - since > CALL_NS;

		if ((late || atomic_load(&to->dev->halt)) && take_back(to, &call))
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
		call->result = call->fn(island, call->arg);
		atomic_store(&call->done, 1);
	}
	return true;
}

uint64_t nfc_now(struct nfc_process *self)
{
	const struct nfc_port *port = self->island->dev->port;

	return port->now(port->self);
}
