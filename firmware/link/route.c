// SPDX-License-Identifier: MIT
/* Dimension order with date lines, and up-then-down around what is broken. */
#include "route.h"

int nfc_torus_check(const struct nfc_torus *t)
{
	for (uint32_t d = 0; d < NFC_DIMENSIONS; d++)
		if (!t->side[d] || t->side[d] > NFC_SIDE_MAX)
			return -NFC_EINVAL;
	return nfc_torus_nodes(t) < 2 ? -NFC_EINVAL : 0;
}

uint32_t nfc_torus_nodes(const struct nfc_torus *t)
{
	return t->side[0] * t->side[1] * t->side[2];
}

uint32_t nfc_torus_number(const struct nfc_torus *t)
{
	return t->side[0] | t->side[1] << 6 | t->side[2] << 12;
}

static uint32_t stride(const struct nfc_torus *t, uint32_t dimension)
{
	return dimension == 0 ? 1 :
	       dimension == 1 ? t->side[0] :
				t->side[0] * t->side[1];
}

static uint32_t coordinate(const struct nfc_torus *t, uint32_t index,
			   uint32_t dimension)
{
	return index / stride(t, dimension) % t->side[dimension];
}

uint32_t nfc_torus_index(const struct nfc_torus *t, uint32_t address)
{
	uint32_t index = 0;

	for (uint32_t d = 0; d < NFC_DIMENSIONS; d++) {
		uint32_t c = address >> (16 - 8 * d) & 0xff;

		if (c >= t->side[d])
			return NFC_NODES_MAX;
		index += c * stride(t, d);
	}
	return address >> 24 ? NFC_NODES_MAX : index;
}

uint32_t nfc_torus_address(const struct nfc_torus *t, uint32_t index)
{
	return coordinate(t, index, 0) << 16 | coordinate(t, index, 1) << 8 |
	       coordinate(t, index, 2);
}

uint32_t nfc_torus_neighbour(const struct nfc_torus *t, uint32_t index,
			     uint32_t link)
{
	uint32_t d = link / 2, side = t->side[d], c = coordinate(t, index, d);
	uint32_t to = (c + (link & 1 ? side - 1 : 1)) % side;

	return index + (to - c) * stride(t, d);
}

struct nfc_hop nfc_route_ordered(const struct nfc_torus *t, uint32_t at,
				 uint32_t from, uint32_t to)
{
	for (uint32_t d = 0; d < NFC_DIMENSIONS; d++) {
		uint32_t side = t->side[d], a = coordinate(t, at, d);
		uint32_t f = coordinate(t, from, d), b = coordinate(t, to, d);
		uint32_t plus = (b + side - f) % side;
		bool minus = plus > side - plus, crossed;

		if (a == b)
			continue;
		/* it entered the dimension where its source is */
		crossed = minus ? a > f : a < f;
		return (struct nfc_hop){ (uint8_t)(2 * d + minus),
					 crossed ? NFC_VC_CROSSED :
						   NFC_VC_FIRST };
	}
	return (struct nfc_hop){ NFC_LINKS, 0 };
}

/* ---- views ---- */

uint64_t nfc_view_size(const struct nfc_torus *t)
{
	return nfc_torus_nodes(t) *
	       (sizeof(struct nfc_record) + sizeof(struct nfc_detour) +
		3 * sizeof(uint32_t) + 2 * sizeof(uint8_t));
}

void nfc_view_init(struct nfc_view *v, const struct nfc_torus *t, uint32_t self,
		   void *memory)
{
	uint32_t n = nfc_torus_nodes(t);

	*v = (struct nfc_view){ .torus = *t, .self = self };
	v->record = memory;
	v->order = (uint32_t *)(v->record + n);
	v->queue = v->order + n;
	v->detour = (struct nfc_detour *)(v->queue + 2 * n);
	v->seen = (uint8_t *)(v->detour + n);
	__builtin_memset(memory, 0, nfc_view_size(t));
	nfc_view_compute(v);
}

static bool says_well(const struct nfc_view *v, uint32_t index, uint32_t link)
{
	uint32_t word = v->record[index].diagnostic;

	return word >> NFC_DIAG_VALID_SHIFT &&
	       (word >> nfc_link_shift(link) & 3) < NFC_DIAG_BROKEN;
}

bool nfc_view_usable(const struct nfc_view *v, uint32_t index, uint32_t link)
{
	uint32_t other = nfc_torus_neighbour(&v->torus, index, link);

	return other != index && says_well(v, index, link) &&
	       says_well(v, other, link ^ 1);
}

/* Order all that can be reached from a node by their distance. */
static void measure_from(struct nfc_view *v, uint32_t root)
{
	uint32_t n = nfc_torus_nodes(&v->torus), first = 0, last = 0;

	for (uint32_t i = 0; i < n; i++)
		v->order[i] = UINT32_MAX;
	v->order[root] = 0;
	v->queue[last++] = root;
	while (first < last) {
		uint32_t at = v->queue[first++];

		for (uint32_t link = 0; link < NFC_LINKS; link++) {
			uint32_t to = nfc_torus_neighbour(&v->torus, at, link);

			if (v->order[to] != UINT32_MAX ||
			    !nfc_view_usable(v, at, link))
				continue;
			v->order[to] = v->order[at] + 1;
			v->queue[last++] = to;
		}
	}
}

static bool is_up(const struct nfc_view *v, uint32_t at, uint32_t to)
{
	return v->order[to] != v->order[at] ? v->order[to] < v->order[at] :
					      to < at;
}

/* States of a search are 2 * node + (it has led down). */
struct search {
	struct nfc_view *v;
	uint32_t last;
	uint32_t down; /* how the search began */
};

static void visit(struct search *s, uint32_t state, uint8_t first)
{
	struct nfc_view *v = s->v;
	uint32_t node = state / 2;

	if (v->seen[node] & 1u << (state & 1))
		return;
	v->seen[node] |= (uint8_t)(1u << (state & 1));
	if (v->detour[node].up[s->down] == NFC_NO_ROUTE)
		v->detour[node].up[s->down] = first;
	/* a state's first link travels with it, above the state */
	v->queue[s->last++] = state | (uint32_t)first << 24;
}

/* The first link of the shortest way to each node, for packets in one state here. */
static void find_detours(struct nfc_view *v, uint32_t down)
{
	struct search s = { .v = v, .down = down };
	uint32_t n = nfc_torus_nodes(&v->torus), next = 0;

	for (uint32_t i = 0; i < n; i++) {
		v->detour[i].up[down] = NFC_NO_ROUTE;
		v->seen[i] = 0;
	}
	visit(&s, 2 * v->self + down, NFC_LINKS);
	while (next < s.last) {
		uint32_t state = v->queue[next] & 0xffffff;
		uint32_t first = v->queue[next] >> 24, at = state / 2;

		next++;
		for (uint32_t link = 0; link < NFC_LINKS; link++) {
			uint32_t to = nfc_torus_neighbour(&v->torus, at, link);
			bool up = is_up(v, at, to);

			if (!nfc_view_usable(v, at, link) || (up && state & 1))
				continue;
			visit(&s, 2 * to + !up,
			      (uint8_t)(first == NFC_LINKS ? link : first));
		}
	}
}

void nfc_view_compute(struct nfc_view *v)
{
	uint32_t root = v->self;

	measure_from(v, root);
	for (uint32_t i = 0; i < nfc_torus_nodes(&v->torus); i++) {
		if (v->order[i] != UINT32_MAX) {
			root = i; /* the lowest of this part of the fabric */
			break;
		}
	}
	measure_from(v, root);
	find_detours(v, 0);
	find_detours(v, 1);
}

bool nfc_view_reaches(const struct nfc_view *v, uint32_t to)
{
	return v->detour[to].up[0] != NFC_NO_ROUTE;
}

struct nfc_hop nfc_view_route(const struct nfc_view *v, uint32_t from,
			      uint32_t to, uint32_t from_link, uint32_t vc)
{
	uint32_t down = 0;

	if (to == v->self)
		return (struct nfc_hop){ NFC_LINKS, 0 };
	if (!nfc_view_reaches(v, to))
		return (struct nfc_hop){ NFC_NO_ROUTE, 0 };
	if (vc != NFC_VC_DETOUR) {
		struct nfc_hop hop = nfc_route_ordered(&v->torus, v->self, from,
						       to);

		if (nfc_view_usable(v, v->self, hop.link))
			return hop;
	} else if (from_link < NFC_LINKS) {
		uint32_t before = nfc_torus_neighbour(&v->torus, v->self,
						      from_link);

		down = !is_up(v, before, v->self);
	}
	return (struct nfc_hop){ v->detour[to].up[down], NFC_VC_DETOUR };
}
