// SPDX-License-Identifier: MIT
/*
 * The shortest way through all cities, by 2-opt and random restarts. One
 * "tsp.manager" and any number of "tsp.climber" share a board in device memory:
 * the cities, a circular queue of work elements {cost, buffer index}, and
 * buffers for candidates with flags that say which are in use.
 */
#include <stdatomic.h>

#include "nfc_fw.h"

enum {
	NODES_MIN = 4,
	NODES_MAX = 1000,
	BUFFERS = 64, /* candidates that may wait for the manager */
	LOOK_NS = 100000, /* between two looks at an empty queue */
	REPORTS = 100, /* of progress */
};

/* A city as the host sends it. */
struct city {
	int32_t x, y;
};

/* A candidate in the queue. */
struct element {
	_Atomic uint64_t ready; /* 1 + its number in the queue, once it is filled */
	uint64_t cost;
	uint32_t number;
	uint32_t buffer;
};

/* Memory of the manager and the climbers; the arrays behind it are at offsets. */
struct board {
	uint64_t nodes;
	uint64_t climbs; /* that are required */
	uint64_t seed;
	_Atomic uint64_t next; /* number of the ascent that begins next */
	_Atomic uint64_t done; /* enough: climbers leave */
	_Atomic uint64_t climbers; /* at work */
	_Atomic uint64_t local; /* climbers with distances of their own */
	/*
	 * The queue. It has as many places as there are buffers, and an element
	 * for each at most, so that it always has room.
	 */
	_Atomic uint64_t tail;
	struct element queue[BUFFERS];
	_Atomic uint32_t used[BUFFERS]; /* the buffer holds a candidate */
};

/* The arrays of a board, in this order. */
struct view {
	struct board *board;
	struct city *city; /* the default buffer, from which climbers begin */
	int32_t *distance; /* [nodes][nodes] */
	uint16_t *buffer; /* [BUFFERS][nodes] */
};

static uint64_t board_size(uint64_t n)
{
	return sizeof(struct board) + n * sizeof(struct city) +
	       n * n * sizeof(int32_t) + BUFFERS * n * sizeof(uint16_t);
}

static struct view view_of(struct board *board, uint64_t n)
{
	struct view v = { .board = board };

	v.city = (struct city *)(board + 1);
	v.distance = (int32_t *)(v.city + n);
	v.buffer = (uint16_t *)(v.distance + n * n);
	return v;
}

/* ---- numbers ---- */

/* The largest integer whose square is not above n. */
static uint64_t root(uint64_t n)
{
	uint64_t r = 0;

	for (uint64_t bit = 1ull << 62; bit; bit >>= 2) {
		if (n >= r + bit) {
			n -= r + bit;
			r = (r >> 1) + bit;
		} else {
			r >>= 1;
		}
	}
	return r;
}

/* The distance as TSPLIB's EUC_2D has it: rounded to the nearest integer. */
static int32_t distance(const struct city *a, const struct city *b)
{
	int64_t dx = (int64_t)a->x - b->x, dy = (int64_t)a->y - b->y;

	return (int32_t)((root(4 * (uint64_t)(dx * dx + dy * dy)) + 1) / 2);
}

/* splitmix64 */
static uint64_t random_bits(uint64_t *state)
{
	uint64_t x = *state += 0x9e3779b97f4a7c15;

	x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9;
	x = (x ^ x >> 27) * 0x94d049bb133111eb;
	return x ^ x >> 31;
}

/* ---- the climber ---- */

/* A tour in a climber's own memory. The first city stands again at its end. */
struct tour {
	uint64_t n;
	uint64_t cost;
	uint16_t city[NODES_MAX + 1];
	int32_t edge[NODES_MAX]; /* from city[i] to city[i + 1] */
};

static void measure(struct tour *t, const struct view *v)
{
	t->city[t->n] = t->city[0];
	t->cost = 0;
	for (uint64_t i = 0; i < t->n; i++) {
		t->edge[i] = v->distance[t->city[i] * t->n + t->city[i + 1]];
		t->cost += (uint64_t)t->edge[i];
	}
}

static void shuffle(struct tour *t, uint64_t seed)
{
	for (uint64_t i = 0; i < t->n; i++)
		t->city[i] = (uint16_t)i;
	for (uint64_t i = t->n - 1; i > 0; i--) {
		uint64_t j = (random_bits(&seed) >> 32) * (i + 1) >> 32;
		uint16_t c = t->city[i];

		t->city[i] = t->city[j];
		t->city[j] = c;
	}
}

/* Two edges, by where they begin in the tour, and what exchanging them saves. */
struct exchange {
	int32_t gain;
	uint32_t i, j;
};

/* The exchange of edge i with one after it that saves most, if that is more. */
static void best_of_edge(const struct tour *t, const struct view *v, uint32_t i,
			 struct exchange *best)
{
	const int32_t *from = &v->distance[t->city[i] * t->n];
	const int32_t *to = &v->distance[t->city[i + 1] * t->n];
	uint32_t end = (uint32_t)t->n - (i == 0); /* edges that meet stay */

	for (uint32_t j = i + 2; j < end; j++) {
		int32_t gain = t->edge[i] + t->edge[j] - from[t->city[j]] -
			       to[t->city[j + 1]];

		if (gain > best->gain)
			*best = (struct exchange){ gain, i, j };
	}
}

/* Untwist: what lies between the two edges is passed the other way round. */
static void reverse(struct tour *t, uint32_t i, uint32_t j)
{
	for (i++; i < j; i++, j--) {
		uint16_t c = t->city[i];

		t->city[i] = t->city[j];
		t->city[j] = c;
	}
}

/* One step of 2-opt. False: no single exchange makes the tour shorter. */
static int improve(struct tour *t, const struct view *v)
{
	struct exchange best = { 0 };

	for (uint32_t i = 0; i + 2 < t->n; i++)
		best_of_edge(t, v, i, &best);
	if (!best.gain)
		return 0;
	reverse(t, best.i, best.j);
	measure(t, v);
	return 1;
}

static int leaves(struct nfc_process *self, struct board *b)
{
	nfc_yield(self);
	return atomic_load(&b->done) || nfc_stopped(self);
}

/* Reserve a buffer. False: the climber leaves before one was free. */
static int reserve(struct nfc_process *self, struct board *b, uint32_t *buffer)
{
	do {
		for (uint32_t i = 0; i < BUFFERS; i++) {
			uint32_t unused = 0;

			*buffer = i;
			if (atomic_compare_exchange_strong(&b->used[i], &unused,
							   1))
				return 1;
		}
	} while (!leaves(self, b));
	return 0;
}

/* Give a candidate to the manager. */
static void submit(struct view *v, const struct tour *t, uint64_t number,
		   uint32_t buffer)
{
	uint64_t at = atomic_fetch_add(&v->board->tail, 1);
	struct element *e = &v->board->queue[at % BUFFERS];

	__builtin_memcpy(&v->buffer[buffer * t->n], t->city,
			 t->n * sizeof(t->city[0]));
	e->cost = t->cost;
	e->number = (uint32_t)number;
	e->buffer = buffer;
	atomic_store(&e->ready, at + 1);
}

/* One ascent from a random tour to a local optimum. False: the climber leaves. */
static int ascend(struct nfc_process *self, struct view *v, struct tour *t)
{
	uint64_t number = atomic_fetch_add(&v->board->next, 1);
	uint32_t buffer;

	shuffle(t, v->board->seed + number);
	measure(t, v);
	do {
		if (leaves(self, v->board))
			return 0;
	} while (improve(t, v));
	if (!reserve(self, v->board, &buffer))
		return 0;
	submit(v, t, number, buffer);
	return 1;
}

/*
 * Copy the distances to memory of the climber's own, of the fastest type that has
 * room. Without room it reads those of the board.
 */
static void localise(struct nfc_process *self, struct view *v)
{
	static const enum nfc_memory types[] = { NFC_CTM, NFC_IMEM, NFC_EMEM };
	uint64_t size = v->board->nodes * v->board->nodes * sizeof(int32_t);

	for (uint32_t i = 0; i < sizeof(types) / sizeof(*types); i++) {
		uint64_t at = nfc_alloc(self, types[i], size);
		int32_t *own = at ? nfc_at(self, at, size) : 0;

		if (!own)
			continue;
		__builtin_memcpy(own, v->distance, size);
		v->distance = own;
		atomic_fetch_add(&v->board->local, 1);
		return;
	}
}

/* tsp.climber: its argument is the address of the board. */
static void climber_main(struct nfc_process *self)
{
	struct board *b = nfc_at(self, nfc_argument(self), sizeof(*b));
	struct nfc_offer offer;
	struct tour t;
	struct view v;

	if (!b)
		return;
	atomic_fetch_add(&b->climbers, 1);
	v = view_of(b, b->nodes);
	localise(self, &v);
	t.n = b->nodes;
	while (ascend(self, &v, &t))
		;
	atomic_fetch_sub(&b->climbers, 1);
	channel_offer(nfc_channel_of(self, 0),
		      &offer); /* until the host closes */
}

/* ---- the manager ---- */

/* A request of the host; the cities follow as a transfer. */
struct order {
	uint64_t nodes, climbs, seed;
};

/* Progress and, once all climbs are in, the result; the tour follows it. */
struct report {
	uint64_t climbs, cost, winner, excess, local;
};

/* The best so far. */
struct best {
	struct report report;
	uint32_t buffer;
	int any;
};

/* A candidate that is not the best frees its buffer. */
static void consider(struct board *b, struct best *best, const struct element *e)
{
	int better = !best->any || e->cost < best->report.cost ||
		     (e->cost == best->report.cost &&
		      e->number < best->report.winner);
	uint32_t freed = e->buffer;

	if (e->number >= b->climbs) {
		best->report.excess++;
		better = 0;
	} else {
		best->report.climbs++;
	}
	if (better) {
		freed = best->buffer;
		best->buffer = e->buffer;
		best->report.cost = e->cost;
		best->report.winner = e->number;
	}
	if (!better || best->any)
		atomic_store(&b->used[freed], 0);
	best->any |= better;
}

/* Consume the queue until the climbs that were asked for are in. */
static int collect(struct nfc_process *self, struct nfc_channel *ch,
		   struct board *b, struct best *best)
{
	uint64_t each = b->climbs / REPORTS + 1, due = each;
	int rc = 0;

	for (uint64_t head = 0; !rc && best->report.climbs < b->climbs;) {
		struct element *e = &b->queue[head % BUFFERS];

		if (atomic_load(&e->ready) != head + 1) {
			nfc_sleep(self, LOOK_NS);
			rc = nfc_stopped(self) ? -NFC_ESTOPPED : 0;
			continue;
		}
		consider(b, best, e);
		head++;
		if (best->report.climbs < due ||
		    best->report.climbs == b->climbs)
			continue;
		due += each;
		rc = channel_write(ch, &best->report, sizeof(best->report));
	}
	return rc;
}

/* Give the host its result: the best tour as a sequence of cities. */
static int answer(struct nfc_channel *ch, struct view *v, uint64_t address,
		  const struct best *best)
{
	uint64_t n = v->board->nodes;
	/* the distances are not needed any more */
	struct city *sequence = (struct city *)v->distance;
	uint64_t offset = (uint64_t)((uint8_t *)sequence - (uint8_t *)v->board);
	int rc;

	for (uint64_t i = 0; i < n; i++)
		sequence[i] = v->city[v->buffer[best->buffer * n + i]];
	rc = channel_write(ch, &best->report, sizeof(best->report));
	return rc ? rc :
		    channel_write_ind(ch, address + offset,
				      n * sizeof(*sequence));
}

/* Climbers see that it is done; the board is theirs until the last has left. */
static void dismiss(struct nfc_process *self, struct board *b)
{
	atomic_store(&b->done, 1);
	while (atomic_load(&b->climbers))
		nfc_yield(self);
}

static void prepare(struct nfc_process *self, struct view *v,
		    const struct order *o)
{
	struct board *b = v->board;

	__builtin_memset(b, 0, sizeof(*b));
	b->nodes = o->nodes;
	b->climbs = o->climbs;
	b->seed = o->seed;
	for (uint64_t i = 0; i < o->nodes; i++) {
		for (uint64_t j = 0; j < o->nodes; j++)
			v->distance[i * o->nodes + j] = distance(&v->city[i],
								 &v->city[j]);
		nfc_yield(self);
	}
}

/* Work off an order whose board is at address. */
static int work(struct nfc_process *self, struct nfc_channel *ch,
		uint64_t address, const struct order *o)
{
	struct view v = view_of(nfc_at(self, address, board_size(o->nodes)),
				o->nodes);
	struct best best = { 0 };
	int rc = channel_read_ind(ch, address + sizeof(struct board),
				  o->nodes * sizeof(struct city));

	if (rc)
		return rc;
	prepare(self, &v, o);
	rc = channel_write(ch, &address, sizeof(address));
	if (!rc)
		rc = collect(self, ch, v.board, &best);
	best.report.local = atomic_load(&v.board->local);
	dismiss(self, v.board);
	return rc ? rc : answer(ch, &v, address, &best);
}

/* The manager has no room for a request: refuse the cities that follow. */
static int refuse(struct nfc_channel *ch)
{
	struct nfc_offer offer;
	int rc = channel_offer(ch, &offer);

	return rc ? rc : channel_read_ind(ch, UINT64_MAX, 1);
}

/* tsp.manager: an order and its cities on its port, progress and tour back. */
static void manager_main(struct nfc_process *self)
{
	struct nfc_channel *ch = nfc_channel_of(self, 0);
	int rc = 0;

	while (rc != -NFC_ESTOPPED) {
		struct order o;
		uint64_t address = 0;

		rc = channel_read(ch, &o, sizeof(o));
		if (rc < 0)
			continue;
		if (rc == sizeof(o) && o.climbs && o.climbs <= UINT32_MAX &&
		    o.nodes >= NODES_MIN && o.nodes <= NODES_MAX)
			address = nfc_alloc(self, NFC_EMEM, board_size(o.nodes));
		if (address)
			rc = work(self, ch, address, &o);
		else
			rc = refuse(ch);
		nfc_free(self, address);
	}
}

NFC_PROGRAMS({ NFC_PROGRAM_ABI, 0, "tsp.manager", manager_main },
	     { NFC_PROGRAM_ABI, 0, "tsp.climber", climber_main });
