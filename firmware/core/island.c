// SPDX-License-Identifier: MIT
/*
 * Runs islands. The owner of an island serves mailboxes, processes, transfers,
 * timers and other islands in turn. The owner is the island's own thread, which
 * spins for a moment and sleeps, or a call of the host that waits for an
 * answer. Managers run to completion; only processes have stacks.
 */
#include "calls.h"

enum {
	CLOCK_EVERY = 32, /* turns or spins between two reads of the clock */
	PREEMPTED_NS = 500000, /* between two reads: the thread was preempted */
	YIELD_NS = 2000, /* an answer that is due at once arrives sooner */
	SPIN_STEPS = 16, /* quiet spins until the budget is whole again */
	STALLED_NS = 50000, /* between two checks for d2h room */
	CALLED_SPINS = 256, /* beside calls that run the island, after a ring */
	ASSIST_NS = 50000, /* that a call runs an island at a time */
	ASSIST_PASSES = 4, /* of it, between two reads of the clock */
	ASSIST_CLOCK = 16, /* runs by calls that nobody measures, likewise */
	WATCH_AFTER = 16, /* times in a row that a mailbox had slots, and no other */
};

bool nfc_island_computes(struct nfc_device *dev, uint32_t index,
			 struct nfc_computing *out)
{
	struct nfc_island *island = &dev->islands[index];
	struct nfc_process *p = atomic_load(&island->current);
	uint64_t word[NFC_NAME_SIZE / 8];

	out->island = index;
	out->since_ns = atomic_load_explicit(&island->seen,
					     memory_order_relaxed);
	if (!p)
		return false;
	/* SYNC: process name */
	out->process = atomic_load_explicit(&p->id, memory_order_acquire);
	for (int i = 0; i < NFC_NAME_SIZE / 8; i++)
		word[i] = atomic_load(&p->name[i]);
	__builtin_memcpy(out->program, word, sizeof(word));
	return out->process && atomic_load(&p->id) == out->process;
}

const struct nfc_stack *nfc_island_stack(struct nfc_device *dev, uint32_t island)
{
	struct nfc_process *p = atomic_load(&dev->islands[island].current);

	return p ? &p->stack : NULL;
}

/*
 * Run what is ready now; what becomes ready meanwhile runs in the next pass. A caller
 * runs what is prompt, and leaves the rest to the island's thread.
 */
static bool run_ready(struct nfc_island *island)
{
	struct nfc_process *p = island->ready_first, *next;
	bool ran = false;

	if (!p)
		return false;
	island->ready_first = NULL;
	island->ready_last = NULL;
	for (; p; p = next) {
		next = p->next;
		if (island->assisted && !p->prompt) {
			nfc_make_ready(p);
			continue;
		}
		ran = true;
		atomic_store_explicit(&island->current, p, memory_order_relaxed);
		island->dev->port->stack_switch(&island->scheduler, &p->stack);
	}
	atomic_store_explicit(&island->current, NULL, memory_order_relaxed);
	return ran;
}

/* Wake sleepers of a host that are due; returns the next due time. */
static uint64_t wake_sleepers(struct nfc_island *island,
			      const struct nfc_share *share)
{
	uint64_t due = UINT64_MAX;

	for (uint32_t i = 0; i < island->process_count; i++) {
		struct nfc_process *p = &share->processes[i];

		if (!p->wake_at)
			continue;
		if (p->wake_at <= island->now)
			nfc_wake(p, -NFC_ETIMEOUT);
		else
			due = nfc_min(due, p->wake_at);
	}
	return due;
}

/* Stop processes, wake sleepers, refuse offers that waited too long; find the next due. */
static void serve_timers(struct nfc_island *island)
{
	uint64_t due;

	if (island->now >= nfc_beat_due(island))
		nfc_heartbeat(island);
	if (island->now < island->timer)
		return;
	island->timer = UINT64_MAX; /* what follows may set it */
	due = nfc_expire_offers(island);
	for (struct nfc_share *s = island->shares; s; s = s->next)
		due = nfc_min(nfc_min(due, nfc_stops_due(island, s)),
			      nfc_min(wake_sleepers(island, s),
				      nfc_transfers_due(s)));
	nfc_timer(island, due);
}

/* ---- the mailboxes to look at ---- */

static struct nfc_island_line *line_of(const struct nfc_island *island,
				       const struct nfc_share *share)
{
	return &share->host->area->island[island->index];
}

static _Atomic uint64_t *news_of(const struct nfc_island *island,
				 const struct nfc_share *share)
{
	return (_Atomic uint64_t *)&line_of(island, share)->news;
}

static bool reports(const struct nfc_share *share)
{
	return nfc_has_answered(share->host) &&
	       nfc_accepted(share->host, NFC_CAP_NEWS);
}

/* Has the host put something that nobody took? Any thread. */
static bool has_news(const struct nfc_island *island,
		     const struct nfc_share *share)
{
	uint32_t watched;

	if (reports(share)) {
		if (atomic_load(news_of(island, share))) /* SYNC: news */
			return true;
		watched = atomic_load(&share->watched); /* SYNC: news */
		return watched && nfc_rings_pending(&share->rings[watched - 1]);
	}
	for (uint32_t i = 0; i < island->rings_count; i++)
		if (nfc_rings_pending(&share->rings[i]))
			return true;
	return false;
}

/* The mailboxes that may have slots, a bit each. Owned. */
static uint64_t take_news(const struct nfc_island *island,
			  const struct nfc_share *share)
{
	uint64_t all = ~0ull >> (64 - island->rings_count), own;
	uint32_t watched = atomic_load_explicit(&share->watched,
						memory_order_relaxed);
	_Atomic uint64_t *word = news_of(island, share);

	if (!reports(share))
		return all;
	own = watched ? 1ull << (watched - 1) : 0;
	if (!atomic_load_explicit(word, memory_order_relaxed))
		return own;
	return own | (atomic_exchange(word, 0) & all); /* SYNC: news */
}

/*
 * A mailbox that alone has slots is watched: its host then need not report, so that no
 * line but that of the slot moves between the two. The host may have put to the one that
 * was watched before, and not reported it: that is looked at once more.
 */
static void watch(struct nfc_island *island, struct nfc_share *share,
		  uint32_t mailbox)
{
	_Atomic uint64_t *word = (_Atomic uint64_t *)&line_of(island, share)
					 ->watched;
	uint32_t before = atomic_load_explicit(&share->watched,
					       memory_order_relaxed);

	if (mailbox != share->last)
		share->times = 0;
	share->last = mailbox;
	if (before == mailbox + 1 || ++share->times < WATCH_AFTER)
		return;
	atomic_store(&share->watched, mailbox + 1);
	atomic_exchange(word, mailbox + 1); /* SYNC: news */
	if (before)
		atomic_fetch_or(news_of(island, share),
				1ull << (before - 1)); /* SYNC: news */
}

/* The lowest bit of some. The compiler's own needs a library on some processors. */
static uint32_t lowest(uint64_t bits)
{
	uint32_t i = 0;

	for (; !(bits & 0xff); bits >>= 8)
		i += 8;
	for (; !(bits & 1); bits >>= 1)
		i++;
	return i;
}

/* Take what a host's mailboxes have; false if there is nothing to take now. */
static bool serve_rings(struct nfc_island *island, struct nfc_share *share)
{
	uint64_t news = take_news(island, share), more = 0;
	uint32_t all = 0;

	for (; news; news &= news - 1) {
		uint32_t i = lowest(news), taken;
		struct nfc_rings *rings = &share->rings[i];

		if (!nfc_rings_pending(rings))
			continue;
		if (nfc_is_detaching(share->host))
			break;
		taken = nfc_read_manager(rings);
		island->stalled |= !taken; /* it waits for d2h room */
		if (nfc_rings_pending(rings))
			more |= 1ull << i;
		if (reports(share))
			watch(island, share, i);
		all += taken;
	}
	if (more)
		atomic_fetch_or(news_of(island, share), more); /* SYNC: news */
	return all != 0;
}

/* One pass; true if it found anything to do. Owned. */
static bool island_pass(struct nfc_island *island)
{
	bool busy = false;

	island->stalled = false;
	for (struct nfc_share *s = island->shares; s; s = s->next)
		busy |= serve_rings(island, s);
	busy |= run_ready(island);
	/* a process that was woken for an offer runs before it is given back */
	if (island->recalls && !(island->assisted && island->ready_first))
		nfc_serve_recalls(island);
	if (island->relays)
		nfc_serve_relays(island);
	for (struct nfc_share *s = island->shares; s; s = s->next)
		if (s->active)
			busy |= nfc_transfer_pump(s, island->shares->next);
	return busy | nfc_serve_calls(island);
}

/* ---- who runs the island ---- */

/* The work that the last owner did not do. */
enum left {
	LEFT_NOTHING,
	LEFT_STALLED, /* a mailbox that waits for d2h room */
	LEFT_WORK,
};

/* Become the owner, unless there is one, which is returned. Any thread. */
static uint32_t own(struct nfc_island *island, enum nfc_owner who)
{
	uint32_t owner = atomic_load(&island->owner); /* SYNC: island owner */

	if (owner == NFC_OWNER_NONE)
		atomic_compare_exchange_strong(&island->owner, &owner, who);
	return owner;
}

/*
 * Is there something to do? Without being the owner: the shares are what they are
 * at boot, or this is the island's thread, which alone changes them.
 */
static bool has_work(struct nfc_island *island)
{
	uint32_t left = atomic_load(&island->left);

	if (left == LEFT_WORK || atomic_load(&island->calls) ||
	    atomic_load(&island->dev->halt))
		return true;
	for (struct nfc_share *s = island->shares; s && left == LEFT_NOTHING;
	     s = s->next)
		if (has_news(island, s))
			return true;
	return false;
}

/*
 * Stop being the owner. A thread that found an owner left its work to it, so
 * check again. True if there is something to do.
 */
static bool let_go(struct nfc_island *island, bool busy)
{
	uint32_t left = LEFT_NOTHING;

	if (busy || island->ready_first || island->recalls)
		left = LEFT_WORK;
	else if (island->stalled || island->relays)
		left = LEFT_STALLED;
	atomic_store_explicit(&island->left, left, memory_order_relaxed);
	atomic_store_explicit(&island->due,
			      nfc_min(island->timer, nfc_beat_due(island)),
			      memory_order_relaxed);
	atomic_store_explicit(&island->owner, NFC_OWNER_NONE,
			      memory_order_release); /* SYNC: island owner */
	/* SYNC: island work: before the check */
	atomic_thread_fence(memory_order_seq_cst);
	return has_work(island);
}

static inline void pause_cpu(void)
{
#if defined(__x86_64__) || defined(__i386__)
	__builtin_ia32_pause();
#elif defined(__aarch64__)
	__asm__ volatile("yield");
#endif
}

/* ---- the island's own thread ---- */

/* State that only the island's own thread uses. */
struct runner {
	struct nfc_island *island;
	uint64_t now; /* some spins old */
	uint64_t spin_ns; /* adapted between 0 and port->spin_ns */
	uint64_t rung; /* doorbells it gave way after */
	uint64_t assists; /* as of its last run */
	bool assisted; /* calls ran the island since the one before */
	uint32_t called; /* spins left beside calls, since it was rung */
	uint32_t pass;
};

/*
 * Spinning is of no use while other threads wait for the processor: a spin in
 * which the island lost it halves the budget, a quiet one restores it.
 */
static void adapt_spin(struct runner *r, bool preempted)
{
	uint64_t most = r->island->dev->port->spin_ns;

	if (preempted)
		r->spin_ns /= 2;
	else
		r->spin_ns = nfc_min(most, r->spin_ns + most / SPIN_STEPS);
}

/* Is a transfer of some host under way? Owned. */
static bool moves(const struct nfc_island *island)
{
	for (struct nfc_share *s = island->shares; s; s = s->next)
		if (s->active)
			return true;
	return false;
}

/* Run the island until nothing is left; true if there was anything. Owned. */
static bool serve(struct runner *r)
{
	struct nfc_island *island = r->island;
	bool any = false, busy;

	if (r->now > island->now)
		nfc_set_clock(island, r->now);
	r->assisted = island->assists != r->assists;
	r->assists = island->assists;
	do {
		busy = island_pass(island);
		any |= busy;
		/* a pass that moved bytes may have taken long */
		if (++r->pass % CLOCK_EVERY == 0 || (busy && moves(island)) ||
		    island->timer <= island->now)
			nfc_read_clock(island);
		serve_timers(island);
	} while (busy && !atomic_load_explicit(&island->dev->halt,
					       memory_order_relaxed));
	r->now = island->now;
	return any;
}

/* A host that was just woken may wait for this very processor. */
static void give_way(struct runner *r)
{
	const struct nfc_port *port = r->island->dev->port;
	uint64_t rung = r->island->rung;

	if (r->rung == rung)
		return;
	r->rung = rung;
	port->yield(port->self);
}

/*
 * Wait for work without owning the island. A call that waits for an answer may
 * run it meanwhile, also when this thread loses its processor here. False after
 * a while. Past the first moments the thread offers its processor to others:
 * the host may wait for this very one.
 */
static bool spin(struct runner *r)
{
	struct nfc_island *island = r->island;
	const struct nfc_port *port = island->dev->port;
	uint64_t since = 0;

	for (uint32_t n = 1; !has_work(island); n++) {
		uint64_t before = r->now;

		pause_cpu();
		if (n % CLOCK_EVERY)
			continue;
		r->now = port->now(port->self);
		if (!since)
			before = since = r->now;
		if (r->now - before > PREEMPTED_NS)
			adapt_spin(r, true);
		if (r->now >= atomic_load(&island->due))
			return true;
		if (r->now - since >= r->spin_ns) {
			adapt_spin(r, false);
			return false;
		}
		if (r->now - since > YIELD_NS)
			port->yield(port->self);
	}
	return true;
}

/*
 * Set the words by which hosts know that this island sleeps, here, and in their own
 * areas. True if one here was not what it had been: somebody rang.
 */
static bool set_doorbells(struct nfc_island *island, uint64_t word)
{
	uint32_t i = island->index;
	bool rung = false;

	for (struct nfc_share *s = island->shares; s; s = s->next) {
		rung |= atomic_exchange(
				(_Atomic uint64_t *)&s->host->area->island[i].word,
				word) == word;
		nfc_post_asleep(s->host, i, word);
	}
	return rung;
}

/*
 * Sleep once, until the host or another island rings or something is due. The
 * order is: set the doorbell words, fence, check again.
 */
static void island_sleep(struct runner *r)
{
	struct nfc_island *island = r->island;
	const struct nfc_port *port = island->dev->port;
	uint64_t until = atomic_load(&island->due);

	if (atomic_load(&island->left) == LEFT_STALLED)
		until = nfc_min(until, r->now + STALLED_NS);
	atomic_store(&island->until, until);
	set_doorbells(island, 1);
	atomic_thread_fence(memory_order_seq_cst); /* SYNC: island park */
	if (!has_work(island) && atomic_load(&island->due) >= until) {
		atomic_fetch_add(&island->sleeps, 1);
		port->sleep(port->self, island->index, until);
	}
	if (set_doorbells(island, 0))
		r->called = CALLED_SPINS;
	atomic_store(&island->until, 0);
	r->now = port->now(port->self);
}

/*
 * While calls run the island its thread would only be in their way; but when it is
 * rung it may try for a while whether it answers sooner.
 */
static bool may_spin(struct runner *r)
{
	if (!r->assisted)
		return true;
	if (!r->called)
		return false;
	r->called--;
	return true;
}

void nfc_island_run(struct nfc_device *dev, uint32_t index)
{
	struct nfc_island *island = &dev->islands[index];
	struct runner r = { .island = island, .spin_ns = dev->port->spin_ns };

	r.now = dev->port->now(dev->port->self);
	while (!atomic_load_explicit(&dev->halt, memory_order_relaxed)) {
		bool busy = true; /* if another thread owns the island */

		if (!own(island, NFC_OWNER_THREAD)) {
			busy = serve(&r);
			if (let_go(island, false))
				continue;
			give_way(&r);
		}
		/* a heartbeat is no reason to spin, nor is what calls do */
		if (!busy || !may_spin(&r) || !spin(&r))
			island_sleep(&r);
	}
}

/* ---- a caller that waits ---- */

/*
 * Is there work that did not arrive by a ring? let_go() checks the rings.
 * Owned.
 */
static bool has_rest(const struct nfc_island *island)
{
	return island->ready_first || island->recalls || moves(island) ||
	       atomic_load(&island->calls);
}

/*
 * Run passes until only rings can bring work, or for a while; true if there is
 * more. Owned. The clock is a tenth of a call, and only records tell its time: what
 * is to last reads it first.
 */
static bool assist_passes(struct nfc_island *island, bool exact)
{
	uint64_t until = 0;
	bool busy;

	if (exact || island->assists % ASSIST_CLOCK == 0)
		nfc_read_clock(island);
	for (uint32_t n = 1; (busy = island_pass(island) && has_rest(island));
	     n++) {
		if (n % ASSIST_PASSES)
			continue;
		nfc_read_clock(island);
		if (!until)
			until = island->now + ASSIST_NS;
		if (island->now > until)
			break;
	}
	serve_timers(island);
	return busy;
}

enum nfc_owner nfc_island_assist(struct nfc_device *dev, uint32_t index,
				 bool exact, uint64_t *undrained)
{
	struct nfc_island *island = &dev->islands[index];
	const struct nfc_port *port = dev->port;
	enum nfc_owner other = NFC_OWNER_THREAD;
	bool more = false;

	*undrained = 0;
	if (!atomic_load(&dev->halt) && dev->config.hosts == 1)
		other = own(island, NFC_OWNER_CALL);
	if (other)
		return other;
	for (uint64_t until = 0;; exact = true) { /* it takes long */
		bool busy, late;

		island->assists++;
		island->assisted = true;
		island->undrained = 0;
		busy = assist_passes(island, exact);
		late = until && island->now > until;
		if (!until && exact)
			until = island->now + ASSIST_NS;
		*undrained |= island->undrained;
		island->assisted = false;
		more = let_go(island, busy);
		if (!more || late || atomic_load(&island->left) == LEFT_WORK)
			break;
		if (own(island, NFC_OWNER_CALL)) { /* that owner checks */
			more = false;
			break;
		}
	}
	/* the thread does the rest, or has to wake sooner */
	if (more || atomic_load(&island->due) < atomic_load(&island->until))
		port->wake(port->self, index);
	return NFC_OWNER_NONE;
}
