// SPDX-License-Identifier: MIT
/*
 * Cooperative processes on an island, its clock and timer, and calls of a process to
 * another island.
 */
#include "calls.h"

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
 * A process that declares itself prompt may run on any thread, see nfc_fw.h.
 * One that no longer is prompt continues where it delays no call: on the
 * island's own thread.
 */
void nfc_prompt(struct nfc_process *self, int prompt)
{
	bool moves = self->prompt && !prompt;

	self->prompt = prompt != 0;
	if (moves && self->island->assisted)
		nfc_yield(self);
}

/* Make sure that timers are checked no later than at. */
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

/* A context that waits for memory lets the others of its island compute. */
void *nfc_at(struct nfc_process *self, uint64_t address, uint64_t size)
{
	const struct nfc_config *c = &self->host->dev->config;
	void *at = nfc_memory_at(self->host, address, size);

	if (at && c->access_ns[address >> NFC_MEMORY_SHIFT])
		nfc_sleep(self, c->access_ns[address >> NFC_MEMORY_SHIFT]);
	return at;
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
	nfc_call_post(to, &call);
	while (!atomic_load(&call.done)) {
		if (self->island->now - since > NFC_CALL_NS &&
		    nfc_call_take_back(to, &call))
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

uint64_t nfc_now(struct nfc_process *self)
{
	const struct nfc_port *port = self->island->dev->port;

	return port->now(port->self);
}
