// SPDX-License-Identifier: MIT
/*
 * Every node knows the state of all: each spreads its diagnostic word with a
 * version, and passes on what is newer than what it knew.
 */
#include "node.h"

static void spread(struct nfc_node *n, uint32_t index, uint32_t links)
{
	struct nfc_record *r = &n->view.record[index];

	for (uint32_t link = 0; link < NFC_LINKS; link++) {
		if (!n->joined[link] || !(links >> link & 1) ||
		    r->spread >> link & 1)
			continue;
		r->spread |= (uint8_t)(1u << link);
		n->waiting[link]++;
	}
}

/* The next record to send over a link. */
static bool next_record(void *self, uint32_t link, uint32_t *node,
			uint32_t *version, uint32_t *diagnostic)
{
	struct nfc_node *n = self;
	uint32_t nodes = nfc_torus_nodes(&n->view.torus);
	struct nfc_record *r;

	if (!n->waiting[link])
		return false;
	do {
		n->scan[link] = (n->scan[link] + 1) % nodes;
		r = &n->view.record[n->scan[link]];
	} while (!(r->spread >> link & 1));
	r->spread &= (uint8_t) ~(1u << link);
	n->waiting[link]--;
	*node = nfc_torus_address(&n->view.torus, n->scan[link]);
	*version = r->version;
	*diagnostic = r->diagnostic;
	return true;
}

/* Somebody knows of this node: from before it started again, unless it is true. */
static void of_oneself(struct nfc_node *n, uint32_t version, uint32_t diagnostic)
{
	struct nfc_record *own = &n->view.record[n->view.self];
	int32_t newer = (int32_t)(version - own->version);

	if (newer < 0 || (!newer && diagnostic == own->diagnostic))
		return;
	own->version = version + 1;
	spread(n, n->view.self, ~0u);
}

static void record_received(void *self, uint32_t link, uint32_t node,
			    uint32_t version, uint32_t diagnostic)
{
	struct nfc_node *n = self;
	uint32_t index = nfc_torus_index(&n->view.torus, node);
	struct nfc_record *r;
	int32_t newer;

	if (index == NFC_NODES_MAX || !(diagnostic >> NFC_DIAG_VALID_SHIFT)) {
		n->count[NFC_NODE_MALFORMED]++;
		return;
	}
	if (index == n->view.self) {
		of_oneself(n, version, diagnostic);
		return;
	}
	r = &n->view.record[index];
	newer = (int32_t)(version - r->version);
	if (r->diagnostic && newer < 0) {
		spread(n, index, 1u << link); /* the neighbour is behind */
		return;
	}
	if (r->diagnostic && !newer)
		return;
	n->stale |= r->diagnostic != diagnostic;
	r->version = version;
	r->diagnostic = diagnostic;
	n->count[NFC_NODE_NEWS]++;
	spread(n, index, ~(1u << link));
}

void nfc_records_init(struct nfc_node *n)
{
	n->owner = (struct nfc_link_owner){ n, next_record, record_received,
					    nfc_node_take };
	for (uint32_t link = 0; link < NFC_LINKS; link++)
		n->link[link].owner = &n->owner;
	nfc_records_update(n);
}

/* The level of the host's side: silent for its interval, or for two. */
static uint32_t host_level(const struct nfc_node *n)
{
	uint64_t silent = n->now - n->host_ns;

	if (!n->config.host_ns || silent <= n->config.host_ns)
		return NFC_DIAG_NORMAL;
	return silent <= 2 * n->config.host_ns ? NFC_DIAG_SICK : NFC_DIAG_BROKEN;
}

void nfc_records_update(struct nfc_node *n)
{
	struct nfc_record *own = &n->view.record[n->view.self];
	uint32_t word = n->sensed, level = host_level(n);

	if ((word >> NFC_DIAG_PERIPHERAL_SHIFT & 3) < level) {
		word &= ~(3u << NFC_DIAG_PERIPHERAL_SHIFT);
		word |= level << NFC_DIAG_PERIPHERAL_SHIFT;
	}
	for (uint32_t link = 0; link < NFC_LINKS; link++)
		if (n->joined[link])
			word |= nfc_link_level(&n->link[link])
				<< nfc_link_shift(link);
	word |= 1u << NFC_DIAG_VALID_SHIFT;
	if (word == own->diagnostic)
		return;
	own->diagnostic = word;
	own->version++;
	n->stale = true;
	for (uint32_t link = 0; link < NFC_LINKS; link++)
		n->link[link].diagnostic = word;
	spread(n, n->view.self, ~0u);
}

void nfc_records_refresh(struct nfc_node *n)
{
	uint32_t nodes = nfc_torus_nodes(&n->view.torus);

	for (uint32_t link = 0; link < NFC_LINKS; link++) {
		uint32_t i = n->refresh[link] = (n->refresh[link] + 1) % nodes;

		if (!n->up[link])
			continue;
		n->link[link].pending.credit = true;
		if (n->view.record[i].diagnostic)
			spread(n, i, 1u << link);
	}
}

void nfc_records_all(struct nfc_node *n, uint32_t link)
{
	for (uint32_t i = 0; i < nfc_torus_nodes(&n->view.torus); i++)
		if (n->view.record[i].diagnostic)
			spread(n, i, 1u << link);
}
