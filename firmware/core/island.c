// SPDX-License-Identifier: MIT
/*
 * The loop of an island: it serves mailboxes, processes, transfers, timers and
 * other islands in turn, spins for a moment, and sleeps. Managers run to
 * completion inside it; only processes have stacks.
 */
#include "calls.h"

enum {
	CLOCK_EVERY = 32, /* turns between two reads of the clock */
	PREEMPTED_NS = 500000, /* between two reads: the thread was preempted */
	YIELD_NS = 2000, /* an answer that comes at once comes sooner */
	SPIN_STEPS = 16, /* quiet spins until the budget is whole again */
};

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

static bool serve_rings(struct nfc_island *island)
{
	uint32_t taken = 0;

	for (uint32_t i = 0; i < island->rings_count; i++)
		if (nfc_rings_pending(&island->rings[i]))
			taken += nfc_read_manager(island, &island->rings[i]);
	return taken != 0;
}

/* True if a mailbox has something; *stalled if that waits for d2h room. */
static bool rings_pending(struct nfc_island *island, bool *stalled)
{
	bool pending = false;

	*stalled = false;
	for (uint32_t i = 0; i < island->rings_count; i++) {
		if (!nfc_rings_pending(&island->rings[i]))
			continue;
		if (nfc_rings_room(&island->rings[i]))
			pending = true;
		else
			*stalled = true;
	}
	return pending;
}

/* True if there is nothing to do; *stalled if a mailbox waits for d2h room. */
static bool nothing_to_do(struct nfc_island *island, bool *stalled)
{
	return !rings_pending(island, stalled) &&
	       !atomic_load(&island->calls) && !island->recalls &&
	       !island->ready_first && !atomic_load(&island->dev->halt);
}

/* The words by which hosts know that this island sleeps. */
static void set_doorbells(struct nfc_island *island, uint64_t word)
{
	struct nfc_host *host = island->dev->host;

	for (uint32_t i = 0; i < NFC_HOSTS; i++)
		atomic_store(
			(_Atomic uint64_t *)&host[i].area->island[island->index].word,
			word);
}

/*
 * Sleep once, until the host or another island rings or something is due. The
 * order is: set the doorbell words, fence, check again. False if there is
 * something to do now.
 */
static bool island_sleep(struct nfc_island *island)
{
	const struct nfc_port *port = island->dev->port;
	uint64_t until = nfc_min(island->timer, nfc_beat_due(island));
	bool stalled, nothing;

	set_doorbells(island, 1);
	atomic_thread_fence(memory_order_seq_cst); /* SYNC: island park */
	nothing = nothing_to_do(island, &stalled);
	if (nothing) {
		if (stalled)
			until = nfc_min(until, island->now + 50000);
		nfc_count(island, NFC_COUNT_SLEEPS, 1);
		port->sleep(port->self, island->index, until);
	}
	set_doorbells(island, 0);
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
	bool busy = serve_rings(island);

	busy |= run_ready(island);
	if (island->recalls)
		nfc_serve_recalls(island);
	if (island->active)
		busy |= nfc_transfer_pump(island);
	busy |= nfc_serve_calls(island);
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
 * Spinning is no use while other threads wait for the processor: a spin in which
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

/* Read the clock and do what is due; true if the island lost its processor. */
static bool read_clock(struct nfc_island *island)
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
		bool busy = island_turn(island), read = false;

		/* a turn that moved bytes may have taken long */
		if (++turn % CLOCK_EVERY == 0 || (busy && island->active) ||
		    island->timer <= island->now) {
			read = true;
			if (read_clock(island) && !busy)
				adapt_spin(island, true);
		}
		if (busy) {
			idle_since = 0;
			continue;
		}
		pause_cpu();
		if (read)
			idle_since = idle(island, idle_since);
	}
}
