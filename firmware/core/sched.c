// SPDX-License-Identifier: MIT
/*
 * Islands: cooperative processes, timers, and the loop that serves mailboxes,
 * processes and DMA in turn. Managers run to completion inside the loop; only
 * processes have stacks.
 */
#include "internal.h"

enum {
	CLOCK_EVERY = 32, /* turns between two looks at the clock */
	PREEMPTED_NS = 500000, /* between two looks: somebody else ran */
	YIELD_NS = 2000, /* an answer that comes at once comes sooner */
	CALL_NS = 500000000, /* for an island to answer another: the host waits longer */
	SPIN_STEPS = 16, /* quiet spins until the budget is whole again */
};

/* Channel ids are dealt to islands in blocks, and to mailboxes within one. */
static uint32_t block_size(const struct nfc_config *c)
{
	return (c->channels + c->islands - 1) / c->islands;
}

struct nfc_island *nfc_island_of(struct nfc_device *dev, uint32_t channel)
{
	return &dev->islands[channel / block_size(&dev->config)];
}

uint32_t nfc_island_channels(struct nfc_island *island, uint32_t *end)
{
	const struct nfc_config *c = &island->dev->config;
	uint64_t first = (uint64_t)island->index * block_size(c);

	*end = (uint32_t)nfc_min(c->channels, first + block_size(c));
	return (uint32_t)first;
}

static struct nfc_box *box_of(struct nfc_device *dev, uint32_t channel)
{
	struct nfc_island *island = nfc_island_of(dev, channel);

	return &island->boxes[channel % island->box_count];
}

static void make_ready(struct nfc_process *p)
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
	if (p->ready)
		return;
	p->result = result;
	p->wait = NFC_WAIT_NONE;
	p->wake_at = 0;
	make_ready(p);
}

static void switch_away(struct nfc_process *p)
{
	struct nfc_island *island = p->island;

	nfc_count(island, NFC_COUNT_SWITCHES, 1);
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

void nfc_yield(struct nfc_process *self)
{
	make_ready(self);
	switch_away(self);
}

/* Make sure timers are looked at no later than at. */
void nfc_timer(struct nfc_island *island, uint64_t at)
{
	island->timer = nfc_min(island->timer, at);
}

void nfc_read_clock(struct nfc_island *island)
{
	const struct nfc_port *port = island->dev->port;

	island->now = port->now(port->self);
	atomic_store_explicit(&island->seen, island->now, memory_order_relaxed);
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

static void process_main(void *arg)
{
	struct nfc_process *p = arg;

	for (;;) {
		struct nfc_device *dev = p->island->dev;

		p->program->main(p);
		for (uint32_t i = 0; i < p->ports; i++)
			nfc_channel_end(&dev->channels[p->first + i]);
		nfc_memory_free(dev, p->id, 0);
		nfc_program_leave(dev, p->loaded);
		atomic_store(&p->id, 0);
		p->program = NULL;
		atomic_fetch_sub(&dev->running, 1);
		nfc_block(p, NFC_WAIT_NONE); /* until started anew */
	}
}

static int bind_targets(struct nfc_island *island, struct nfc_process *p)
{
	struct nfc_device *dev = island->dev;

	for (uint32_t i = 0; i < p->ports; i++) {
		if (nfc_island_of(dev, p->first + i) != island)
			return -NFC_EINVAL;
		if (dev->channels[p->first + i].process)
			return -NFC_EBUSY;
	}
	for (uint32_t i = 0; i < p->ports; i++) {
		struct nfc_channel *ch = &dev->channels[p->first + i];

		ch->process = p;
		ch->island = island;
		ch->box = box_of(dev, p->first + i);
		ch->id = p->first + i;
		for (int h = 0; h < 2; h++) {
			struct nfc_half *half = &ch->half[h];

			if (!half->next)
				half->next = 1;
			/* what closed for the last process is not its business */
			half->notice = 0;
			half->closed &= ch->open ? NFC_CLOSED_HOST : 0;
		}
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
	atomic_store_explicit(&p->id, id, memory_order_release);
}

/* A free process, one with a stack of that size if there is any. */
static struct nfc_process *free_process(struct nfc_island *island,
					uint64_t stack)
{
	struct nfc_process *any = NULL;

	for (uint32_t i = 0; i < island->process_count; i++) {
		struct nfc_process *p = &island->processes[i];

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

/* Start a process on this island. Returns 0 or a negated status. */
int nfc_process_start(struct nfc_island *island, void *arg)
{
	struct nfc_start *start = arg;
	struct nfc_device *dev = island->dev;
	uint64_t stack = stack_size(dev, start->entry.program);
	struct nfc_process *p = free_process(island, stack);
	int rc;

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
			dev->channels[start->first + i].process = NULL;
		return -NFC_ENOMEM;
	}
	p->program = start->entry.program;
	p->loaded = start->entry.loaded;
	p->argument = start->argument;
	p->stop = 0;
	start->process = atomic_fetch_add(&dev->next_process, 1);
	publish(p, start->process);
	atomic_fetch_add(&dev->running, 1);
	nfc_wake(p, 0);
	return 0;
}

struct nfc_island *nfc_island_running(struct nfc_device *dev, uint64_t process)
{
	for (uint32_t i = 0; i < dev->config.islands; i++) {
		struct nfc_island *island = &dev->islands[i];

		for (uint32_t j = 0; j < island->process_count; j++)
			if (atomic_load(&island->processes[j].id) == process)
				return island;
	}
	return NULL;
}

bool nfc_island_computes(struct nfc_device *dev, uint32_t index,
			 struct nfc_computing *out)
{
	struct nfc_island *island = &dev->islands[index];
	struct nfc_process *p = atomic_load(&island->current);
	uint64_t word[NFC_NAME_SIZE / 8];

	if (!p)
		return false;
	out->island = index;
	out->since_ns = atomic_load_explicit(&island->seen,
					     memory_order_relaxed);
	out->process = atomic_load_explicit(&p->id, memory_order_acquire);
	for (int i = 0; i < NFC_NAME_SIZE / 8; i++)
		word[i] = atomic_load(&p->name[i]);
	__builtin_memcpy(out->program, word, sizeof(word));
	return out->process && atomic_load(&p->id) == out->process;
}

const struct nfc_stack *nfc_island_stack(struct nfc_device *dev, uint32_t island)
{
	return &atomic_load(&dev->islands[island].current)->stack;
}

static void post_call(struct nfc_island *to, struct nfc_call *call)
{
	const struct nfc_port *port = to->dev->port;

	nfc_lock(to->dev);
	call->next = atomic_load(&to->inbox);
	atomic_exchange(&to->inbox, call); /* SYNC: island park */
	nfc_unlock(to->dev);
	port->wake(port->self, to->index);
}

static struct nfc_call *next_call(struct nfc_island *island)
{
	struct nfc_call *call;

	nfc_lock(island->dev);
	call = atomic_load(&island->inbox);
	if (call)
		atomic_store(&island->inbox, call->next);
	nfc_unlock(island->dev);
	return call;
}

/* False: its island has it already, and will be done at once. */
static bool take_back(struct nfc_island *from, struct nfc_call *call)
{
	struct nfc_call *before;

	nfc_lock(from->dev);
	before = atomic_load(&from->inbox);
	if (before == call)
		atomic_store(&from->inbox, call->next);
	while (before && before != call && before->next != call)
		before = before->next;
	if (before && before != call)
		before->next = call->next;
	nfc_unlock(from->dev);
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
	struct nfc_call call = { .fn = fn, .arg = arg };
	uint64_t since;

	if (to == self->island)
		return fn(to, arg);
	nfc_read_clock(self->island);
	since = self->island->now;
	post_call(to, &call);
	while (!atomic_load(&call.done)) {
		if (self->island->now - since > CALL_NS && take_back(to, &call))
			return -NFC_ETIMEOUT;
		if (atomic_load(&to->dev->halt))
			nfc_block(self, NFC_WAIT_NONE); /* call stays valid */
		else if (self->stop)
			nfc_yield(self);
		else
			nfc_sleep(self, 20000);
	}
	return call.result;
}

static bool serve_inbox(struct nfc_island *island)
{
	struct nfc_call *call;

	if (!atomic_load_explicit(&island->inbox, memory_order_relaxed))
		return false;
	while ((call = next_call(island))) {
		call->result = call->fn(island, call->arg);
		atomic_store(&call->done, 1);
	}
	return true;
}

/* Run what is ready now; what becomes ready meanwhile runs next turn. */
static bool run_ready(struct nfc_island *island)
{
	struct nfc_process *p = island->ready_first, *next;

	if (!p)
		return false;
	island->ready_first = NULL;
	island->ready_last = NULL;
	for (; p; p = next) {
		next = p->next;
		atomic_store_explicit(&island->current, p, memory_order_relaxed);
		island->dev->port->stack_switch(&island->scheduler, &p->stack);
	}
	atomic_store_explicit(&island->current, NULL, memory_order_relaxed);
	return true;
}

/* Wake sleepers and refuse offers that waited too long; find the next due. */
static void serve_timers(struct nfc_island *island)
{
	uint64_t due = UINT64_MAX;

	if (island->now >= nfc_beat_due(island))
		nfc_heartbeat(island);
	if (island->now < island->timer)
		return;
	for (uint32_t i = 0; i < island->process_count; i++) {
		struct nfc_process *p = &island->processes[i];

		if (!p->wake_at)
			continue;
		if (p->wake_at <= island->now)
			nfc_wake(p, -NFC_ETIMEOUT);
		else
			due = nfc_min(due, p->wake_at);
	}
	island->timer = nfc_min(due, nfc_expire_offers(island));
}

static bool serve_boxes(struct nfc_island *island)
{
	uint32_t taken = 0;

	for (uint32_t i = 0; i < island->box_count; i++)
		if (nfc_box_pending(&island->boxes[i]))
			taken += nfc_read_manager(island, &island->boxes[i]);
	return taken != 0;
}

/* True if a mailbox has something; *stalled if that waits for d2h room. */
static bool boxes_pending(struct nfc_island *island, bool *stalled)
{
	bool pending = false;

	*stalled = false;
	for (uint32_t i = 0; i < island->box_count; i++) {
		if (!nfc_box_pending(&island->boxes[i]))
			continue;
		if (nfc_box_room(island->dev, &island->boxes[i]))
			pending = true;
		else
			*stalled = true;
	}
	return pending;
}

/* True if there is nothing to do; *stalled if a mailbox waits for d2h room. */
static bool nothing_to_do(struct nfc_island *island, bool *stalled)
{
	return !boxes_pending(island, stalled) &&
	       !atomic_load(&island->inbox) && !island->recalls &&
	       !island->ready_first && !atomic_load(&island->dev->halt);
}

/*
 * Sleep once, until the host or another island rings or something is due. The
 * order is: say so, fence, look again. False if there is something to do now.
 */
static bool island_sleep(struct nfc_island *island)
{
	struct nfc_device *dev = island->dev;
	const struct nfc_port *port = dev->port;
	_Atomic uint64_t *word =
		(_Atomic uint64_t *)&dev->area->island[island->index].word;
	uint64_t until = nfc_min(island->timer, nfc_beat_due(island));
	bool stalled, nothing;

	atomic_store(word, 1);
	atomic_thread_fence(memory_order_seq_cst); /* SYNC: island park */
	nothing = nothing_to_do(island, &stalled);
	if (nothing) {
		if (stalled)
			until = nfc_min(until, island->now + 50000);
		nfc_count(island, NFC_COUNT_SLEEPS, 1);
		port->sleep(port->self, island->index, until);
	}
	atomic_store(word, 0);
	nfc_read_clock(island);
	nothing = nothing_to_do(island, &stalled);
	if (nothing)
		serve_timers(island);
	return nothing;
}

/* A host that was just woken may wait for this very processor. */
static void give_way(struct nfc_island *island)
{
	const struct nfc_port *port = island->dev->port;
	uint64_t rung = nfc_counted(island, NFC_COUNT_DOORBELLS);

	if (island->rung == rung)
		return;
	island->rung = rung;
	port->yield(port->self);
}

/* One turn; true if it found anything to do. */
static bool island_turn(struct nfc_island *island)
{
	bool busy = serve_boxes(island);

	busy |= run_ready(island);
	if (island->recalls)
		nfc_serve_recalls(island);
	if (island->active)
		busy |= nfc_transfer_pump(island);
	busy |= serve_inbox(island);
	give_way(island);
	return busy;
}

static inline void pause_cpu(void)
{
#if defined(__x86_64__) || defined(__i386__)
	__builtin_ia32_pause();
#elif defined(__aarch64__)
	__asm__ volatile("yield");
#endif
}

/*
 * Spinning helps nobody while others wait for the processor: a spin in which
 * the island lost it halves the budget, a quiet one brings it back.
 */
static void adapt_spin(struct nfc_island *island, bool preempted)
{
	uint64_t most = island->dev->port->spin_ns;

	if (preempted)
		island->spin_ns /= 2;
	else
		island->spin_ns = nfc_min(most,
					  island->spin_ns + most / SPIN_STEPS);
}

/* Look at the clock and at what is due; true if the island lost its processor. */
static bool look_at_clock(struct nfc_island *island)
{
	uint64_t before = island->now;

	nfc_read_clock(island);
	serve_timers(island);
	return island->now - before > PREEMPTED_NS;
}

/*
 * Idle since idle_since: go on spinning, or sleep. Returns the new start. Past
 * the first moments the processor is offered to others: the host may wait for
 * this very one.
 */
static uint64_t idle(struct nfc_island *island, uint64_t idle_since)
{
	const struct nfc_port *port = island->dev->port;

	if (!idle_since)
		idle_since = island->now;
	if (island->now - idle_since < island->spin_ns) {
		if (island->now - idle_since > YIELD_NS)
			port->yield(port->self);
		return idle_since;
	}
	adapt_spin(island, false);
	while (island_sleep(island)) /* a heartbeat is no reason to spin */
		;
	return island->now;
}

void nfc_island_run(struct nfc_device *dev, uint32_t index)
{
	struct nfc_island *island = &dev->islands[index];
	uint64_t idle_since = 0;
	uint32_t turn = 0;

	nfc_read_clock(island);
	while (!atomic_load_explicit(&dev->halt, memory_order_relaxed)) {
		bool busy = island_turn(island), looked = false;

		/* a turn that moved bytes may have taken long */
		if (++turn % CLOCK_EVERY == 0 || (busy && island->active) ||
		    island->timer <= island->now) {
			looked = true;
			if (look_at_clock(island) && !busy)
				adapt_spin(island, true);
		}
		if (busy) {
			idle_since = 0;
			continue;
		}
		pause_cpu();
		if (looked)
			idle_since = idle(island, idle_since);
	}
}
