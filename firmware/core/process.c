// SPDX-License-Identifier: MIT
/* Processes: started on their island, bound to targets, stopped, ended. */
#include "calls.h"

enum {
	STOP_AGAIN_NS = 1000000, /* between two checks for room to withdraw an offer */
};

/* Channel ids are dealt to the host's mailboxes on their island in turn. */
static struct nfc_rings *rings_of(struct nfc_host *host, uint32_t channel)
{
	struct nfc_island *island = nfc_island_of(host, channel);

	return &host->shares[island->index].rings[channel % island->rings_count];
}

/* A process, the joint of one that ended, a relay, or the recall list needs the channel. */
static bool is_needed(const struct nfc_channel *ch)
{
	return ch->process || ch->relay || ch->recalled ||
	       (ch->rings && ch->rings->joint);
}

uint32_t nfc_free_targets(struct nfc_island *island, struct nfc_host *host,
			  uint32_t count)
{
	uint32_t end, run = 0, first = nfc_island_channels(island, host, &end);

	for (uint32_t id = first; id < end; id++) {
		const struct nfc_channel *ch = &host->channels[id];

		if (id < NFC_TARGET_FIRST || ch->open || is_needed(ch))
			run = 0;
		else if (++run == count)
			return id + 1 - count;
	}
	return 0;
}

void nfc_channel_init(struct nfc_island *island, struct nfc_host *host,
		      uint32_t id)
{
	struct nfc_channel *ch = &host->channels[id];

	ch->island = island;
	ch->rings = rings_of(host, id);
	ch->id = id;
	for (int h = 0; h < 2; h++) {
		struct nfc_half *half = &ch->half[h];

		if (!half->next)
			half->next = 1;
		/* what closed for the last process is not reported to this */
		half->notice = 0;
		half->closed &= ch->open ? NFC_CLOSED_HOST : 0;
	}
}

static void run_program(struct nfc_process *p)
{
	p->foreign = p->loaded != NULL;
	p->program->main(p);
	p->foreign = 0;
}

/*
 * A process that crashed restarts here on an empty stack, and ends as others
 * do.
 */
static void process_main(void *arg)
{
	struct nfc_process *p = arg;

	for (;;) {
		struct nfc_host *host = p->host;

		if (p->crash)
			nfc_log(p, p->crash);
		else
			run_program(p);
		p->crash = NULL;
		for (uint32_t i = 0; i < p->ports; i++)
			nfc_channel_end(&host->channels[p->first + i]);
		while (p->joints) {
			struct nfc_joint *joint = p->joints;

			p->joints = joint->next;
			nfc_channel_end(&joint->caller);
		}
		while (p->guests) {
			struct nfc_relay *relay = p->guests;

			p->guests = relay->sibling;
			nfc_guest_end(&relay->guest);
		}
		nfc_memory_free(host, p->id, 0);
		nfc_program_leave(host, p->loaded);
		atomic_store(&p->id, 0);
		p->program = NULL;
		atomic_fetch_sub(&host->running, 1);
		nfc_block(p, NFC_WAIT_NONE); /* until started anew */
	}
}

static int bind_targets(struct nfc_island *island, struct nfc_process *p)
{
	struct nfc_host *host = p->host;

	for (uint32_t i = 0; i < p->ports; i++) {
		struct nfc_channel *ch = &host->channels[p->first + i];

		if (nfc_island_of(host, p->first + i) != island)
			return -NFC_EINVAL;
		if (is_needed(ch))
			return -NFC_EBUSY;
	}
	for (uint32_t i = 0; i < p->ports; i++) {
		struct nfc_channel *ch = &host->channels[p->first + i];

		ch->process = p;
		nfc_channel_init(island, host, p->first + i);
	}
	return 0;
}

/* Give a process its number and name, which other threads may read. */
static void publish(struct nfc_process *p, uint64_t id)
{
	uint64_t word[NFC_NAME_SIZE / 8] = { 0 };
	char *name = (char *)word;

	for (int i = 0; i < NFC_NAME_SIZE - 1 && p->program->name[i]; i++)
		name[i] = p->program->name[i];
	for (int i = 0; i < NFC_NAME_SIZE / 8; i++)
		atomic_store_explicit(&p->name[i], word[i],
				      memory_order_relaxed);
	/* SYNC: process name */
	atomic_store_explicit(&p->id, id, memory_order_release);
}

/* A free process, one with a stack of that size if there is any. */
static struct nfc_process *free_process(const struct nfc_share *share,
					uint32_t count, uint64_t stack)
{
	struct nfc_process *any = NULL;

	for (uint32_t i = 0; i < count; i++) {
		struct nfc_process *p = &share->processes[i];

		if (p->program)
			continue;
		if (p->stack.base && p->stack.size == stack)
			return p;
		if (!any)
			any = p;
	}
	return any;
}

/* The stack that its program asks for: that of the one before, or a new one. */
static int give_stack(struct nfc_process *p, uint64_t size)
{
	const struct nfc_port *port = p->island->dev->port;

	if (p->stack.base && p->stack.size == size)
		return 0;
	if (p->stack.base)
		port->stack_free(port->self, &p->stack);
	p->stack.size = size;
	return port->stack_init(port->self, &p->stack, process_main, p);
}

static uint64_t stack_size(struct nfc_device *dev,
			   const struct nfc_program *program)
{
	if (!program->stack)
		return dev->config.stack;
	return program->stack > NFC_STACK_MIN ? program->stack : NFC_STACK_MIN;
}

/* The id of the next process: above its number the epochs that its host had before. */
static uint64_t next_id(struct nfc_host *host)
{
	enum { NUMBER_BITS = 40 };

	return ((uint64_t)(host->epoch - 1) << NUMBER_BITS) +
	       atomic_fetch_add(&host->dev->next_process, 1);
}

/* Start a process on this island. Returns 0 or a negated status. */
int nfc_process_start(struct nfc_island *island, void *arg)
{
	struct nfc_start *start = arg;
	struct nfc_device *dev = island->dev;
	struct nfc_host *host = start->host;
	uint64_t stack = stack_size(dev, start->entry.program);
	struct nfc_process *p = free_process(&host->shares[island->index],
					     host->process_count, stack);
	int rc;

	if (nfc_is_detaching(host))
		return -NFC_ECLOSED;
	if (!p)
		return -NFC_ENOMEM;
	p->first = start->first;
	p->ports = start->ports;
	rc = bind_targets(island, p);
	if (rc)
		return rc;
	if (give_stack(p, stack)) {
		p->ports = 0;
		for (uint32_t i = 0; i < start->ports; i++)
			host->channels[start->first + i].process = NULL;
		return -NFC_ENOMEM;
	}
	p->program = start->entry.program;
	p->loaded = start->entry.loaded;
	p->argument = start->argument;
	p->stop = 0;
	p->taken = NULL;
	p->answers = 0;
	p->prompt = 0; /* that of the process before it; no call may run this one */
	if (start->first < NFC_TARGET_FIRST)
		p->service = 1; /* so for ever: others read it */
	start->process = next_id(host);
	publish(p, start->process);
	atomic_fetch_add(&host->running, 1);
	nfc_wake(p, 0);
	return 0;
}

struct nfc_process *nfc_process_running(const struct nfc_host *host, uint64_t id)
{
	for (uint32_t i = 0; i < host->dev->config.islands && id; i++) {
		struct nfc_process *p = host->shares[i].processes;

		for (uint32_t j = 0; j < host->dev->islands[i].process_count;
		     j++)
			if (atomic_load(&p[j].id) == id)
				return &p[j];
	}
	return NULL;
}

/* Take back what p offers on a channel; false: there is no room for that now. */
static bool withdraw(const struct nfc_process *p, struct nfc_channel *ch)
{
	struct nfc_half *half = nfc_d2h(ch);

	if (half->waiter != p || !nfc_is_offered(half))
		return true;
	if (!nfc_rings_room(ch->rings))
		return false;
	nfc_note(ch, NFC_TYPE_WITHDRAW, NFC_D2H, half->next - 1);
	return true;
}

/*
 * End what a process is blocked in; an offer is withdrawn, a transfer under way runs
 * to its end. Nothing changes while a ring has no room for that.
 */
void nfc_process_stop(struct nfc_process *p)
{
	for (uint32_t i = 0; i < p->ports; i++)
		if (!withdraw(p, &p->host->channels[p->first + i]))
			return;
	for (struct nfc_joint *j = p->joints; j; j = j->next)
		if (!withdraw(p, &j->caller))
			return;
	for (struct nfc_relay *r = p->guests; r; r = r->sibling)
		nfc_guest_stop(&r->guest);
	p->stop = 1;
	switch (p->wait) {
	case NFC_WAIT_NONE:
	case NFC_WAIT_WRITE:
	case NFC_WAIT_WRITE_IND:
	case NFC_WAIT_MOVING:
		break;
	default:
		nfc_wake(p, -NFC_ESTOPPED);
	}
}

uint64_t nfc_stops_due(struct nfc_island *island, struct nfc_share *share)
{
	uint64_t due = UINT64_MAX;

	for (uint32_t i = 0; i < island->process_count; i++) {
		struct nfc_process *p = &share->processes[i];

		if (p->stop || !p->program ||
		    atomic_load(&p->stop_id) != atomic_load(&p->id))
			continue;
		nfc_process_stop(p);
		if (!p->stop)
			due = island->now + STOP_AGAIN_NS;
	}
	return due;
}

/* A struct nfc_call's fn. */
static int stop_now(struct nfc_island *island, void *arg)
{
	(void)arg;
	atomic_exchange(&island->stop_called, 0); /* SYNC: stop */
	nfc_timer(island, 0);
	return NFC_AGAIN;
}

void nfc_process_stop_later(struct nfc_process *p, uint64_t id)
{
	struct nfc_island *to = p->island;

	atomic_store(&p->stop_id, id);
	if (atomic_exchange(&to->stop_called, 1)) /* SYNC: stop */
		return;
	to->stop.fn = stop_now;
	nfc_call_post(to, &to->stop);
}

bool nfc_island_crash(struct nfc_device *dev, uint32_t island, const char *line,
		      struct nfc_crashed *out)
{
	struct nfc_process *p = atomic_load(&dev->islands[island].current);

	if (!p || !p->foreign)
		return false;
	p->foreign = 0;
	p->crash = line;
	*out = (struct nfc_crashed){
		.host = p->host->index,
		.first = p->first,
		.ports = p->ports,
		.generation = atomic_load(&p->host->next_generation),
		.enter = process_main,
		.arg = p,
	};
	return true;
}

struct nfc_channel *nfc_channel_of(struct nfc_process *self, uint32_t i)
{
	if (i >= self->ports)
		return NULL;
	return &self->host->channels[self->first + i];
}

uint32_t nfc_ports(struct nfc_process *self)
{
	return self->ports;
}

uint64_t nfc_argument(struct nfc_process *self)
{
	return self->argument;
}

int nfc_stopped(struct nfc_process *self)
{
	return self->stop;
}
