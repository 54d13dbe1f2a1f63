// SPDX-License-Identifier: MIT
/*
 * Device memory of a host: four types, 40-bit addresses, a first-fit allocator.
 * The addresses are the host's own, so that a program of another host cannot
 * name them.
 */
#include "calls.h"

enum {
	ALIGN = NFC_PAGE_SIZE,
};

static uint64_t base_of(enum nfc_memory type)
{
	return (uint64_t)type << NFC_MEMORY_SHIFT;
}

/*
 * The bytes of [address, address + size), or NULL unless all of it is memory
 * of one type.
 */
void *nfc_memory_at(struct nfc_host *host, uint64_t address, uint64_t size)
{
	uint64_t type = address >> NFC_MEMORY_SHIFT;
	uint64_t offset = address - base_of(type);

	if (type >= NFC_MEMORY_COUNT)
		return NULL;
	if (offset > host->dev->config.memory[type] ||
	    size > host->dev->config.memory[type] - offset)
		return NULL;
	return host->memory[type] + offset;
}

/*
 * The lowest end of an existing block above which [end, end + size) would
 * collide with none. The first page of a type is not given out, so that no
 * allocation has address 0.
 */
static bool collides(struct nfc_host *host, uint64_t at, uint64_t size,
		     uint64_t *next)
{
	for (uint32_t i = 0; i < NFC_BLOCKS; i++) {
		const struct nfc_block *b = &host->block[i];

		if (b->address && at < b->address + b->size &&
		    b->address < at + size) {
			*next = b->address + b->size;
			return true;
		}
	}
	return false;
}

/* Returns the address, page-aligned, or 0 if there is no room. */
uint64_t nfc_memory_alloc(struct nfc_host *host, uint64_t owner,
			  enum nfc_memory type, uint64_t size)
{
	uint64_t at, end, address = 0;
	struct nfc_block *free = NULL;

	if ((unsigned int)type >= NFC_MEMORY_COUNT || !size ||
	    size > host->dev->config.memory[type])
		return 0;
	size = (size + ALIGN - 1) & ~(uint64_t)(ALIGN - 1);
	at = base_of(type) + ALIGN;
	end = base_of(type) + host->dev->config.memory[type];
	nfc_lock(&host->lock);
	for (uint32_t i = 0; i < NFC_BLOCKS && !free; i++)
		if (!host->block[i].address)
			free = &host->block[i];
	while (free && size <= end - at) {
		if (!collides(host, at, size, &at)) {
			*free = (struct nfc_block){ at, size, owner };
			address = at;
			break;
		}
	}
	nfc_unlock(&host->lock);
	return address;
}

static struct nfc_block *find_block(struct nfc_host *host, uint64_t owner,
				    uint64_t address)
{
	for (uint32_t i = 0; i < NFC_BLOCKS; i++) {
		struct nfc_block *b = &host->block[i];

		if (b->address && b->owner == owner &&
		    address - b->address < b->size)
			return b;
	}
	return NULL;
}

/*
 * End windows of owner: the one of a key; those of a block, which starts at address; or
 * all, if both are 0. False: there is none. The port is called without the lock.
 */
static bool end_window(struct nfc_host *host, uint64_t owner, uint64_t key,
		       uint64_t address)
{
	const struct nfc_port *port = host->dev->port;
	uint64_t ended = 0;

	nfc_lock(&host->lock);
	for (uint32_t i = 0; i < NFC_HOST_WINDOWS && !ended; i++) {
		struct nfc_window *w = &host->window[i];

		if (w->owner != owner || (key && w->key != key) ||
		    (address && w->block != address))
			continue;
		ended = w->key;
		w->owner = 0;
	}
	nfc_unlock(&host->lock);
	if (ended)
		port->revoke(port->self, host->index, ended);
	return ended;
}

void nfc_memory_free(struct nfc_host *host, uint64_t owner, uint64_t address)
{
	while (end_window(host, owner, 0, address))
		;
	nfc_lock(&host->lock);
	for (uint32_t i = 0; i < NFC_BLOCKS; i++) {
		struct nfc_block *b = &host->block[i];

		if (b->address && b->owner == owner &&
		    (!address || b->address == address))
			b->address = 0;
	}
	nfc_unlock(&host->lock);
}

/* Bytes not allocated; a single block of that size may not exist. */
uint64_t nfc_memory_available(struct nfc_host *host, enum nfc_memory type)
{
	uint64_t left = host->dev->config.memory[type];

	if (left)
		left -= ALIGN;
	nfc_lock(&host->lock);
	for (uint32_t i = 0; i < NFC_BLOCKS; i++)
		if (host->block[i].address &&
		    host->block[i].address >> NFC_MEMORY_SHIFT == (uint64_t)type)
			left -= host->block[i].size;
	nfc_unlock(&host->lock);
	return left;
}

/* The bytes that a process may have: a part for each of its targets. */
static uint64_t most_of(const struct nfc_process *self)
{
	uint64_t part = self->host->dev->config.buffer;

	return part && !self->service ? part * self->ports : UINT64_MAX;
}

/* The bytes that it has. It allocates no others meanwhile. */
static uint64_t held_by(const struct nfc_process *self)
{
	struct nfc_host *host = self->host;
	uint64_t sum = 0;

	nfc_lock(&host->lock);
	for (uint32_t i = 0; i < NFC_BLOCKS; i++)
		if (host->block[i].address && host->block[i].owner == self->id)
			sum += host->block[i].size;
	nfc_unlock(&host->lock);
	return sum;
}

uint64_t nfc_alloc(struct nfc_process *self, enum nfc_memory type, uint64_t size)
{
	struct nfc_host *host = self->host;
	uint64_t most = most_of(self), address;

	/* what a process or even empty memory could not hold is no sign of sickness */
	if (most != UINT64_MAX && size > most - held_by(self))
		return 0;
	address = nfc_memory_alloc(host, self->id, type, size);
	if (!address && size && (unsigned int)type < NFC_MEMORY_COUNT &&
	    host->dev->config.memory[type] > ALIGN &&
	    size <= host->dev->config.memory[type] - ALIGN)
		nfc_count(self->share, NFC_COUNT_REFUSED, 1);
	return address;
}

void nfc_free(struct nfc_process *self, uint64_t address)
{
	if (address)
		nfc_memory_free(self->host, self->id, address);
}

void *nfc_host_at(struct nfc_process *self, uint64_t address, uint64_t size)
{
	const struct nfc_port *port = self->island->dev->port;

	if (!port->host_at || !size || size - 1 > UINT64_MAX - address)
		return NULL;
	return port->host_at(port->self, self->host->index, address, size);
}

/* A place for a window of a range that the process has; NULL and why. */
static struct nfc_window *take_window(struct nfc_process *self,
				      uint64_t address, uint64_t size, int *why)
{
	struct nfc_host *host = self->host;
	const struct nfc_block *b;
	struct nfc_window *w = NULL;

	nfc_lock(&host->lock);
	b = find_block(host, self->id, address);
	if (!b || size > b->size - (address - b->address)) {
		*why = -NFC_ERANGE;
		b = NULL;
	}
	for (uint32_t i = 0; b && !w && i < NFC_HOST_WINDOWS; i++)
		if (!host->window[i].owner)
			w = &host->window[i];
	if (w)
		*w = (struct nfc_window){ self->id, 0, b->address };
	else if (b)
		*why = -NFC_ENOMEM;
	nfc_unlock(&host->lock);
	return w;
}

int nfc_window(struct nfc_process *self, uint64_t address, uint64_t size,
	       uint32_t access, uint64_t *key)
{
	const struct nfc_port *port = self->island->dev->port;
	struct nfc_host *host = self->host;
	uint64_t made = 0;
	struct nfc_window *w;
	int rc;

	if (!access || access & ~(uint32_t)(NFC_WINDOW_READ | NFC_WINDOW_WRITE))
		return -NFC_EINVAL;
	if (!port->window)
		return -NFC_ENOTSUP;
	w = take_window(self, address, size, &rc);
	if (!w)
		return rc;
	rc = port->window(port->self, host->index,
			  nfc_memory_at(host, address, size), size, access,
			  &made);
	nfc_lock(&host->lock);
	w->key = made;
	if (rc)
		w->owner = 0;
	nfc_unlock(&host->lock);
	if (!rc)
		*key = made;
	return rc;
}

int nfc_revoke(struct nfc_process *self, uint64_t key)
{
	if (!key || !end_window(self->host, self->id, key, 0))
		return -NFC_ECLOSED;
	return 0;
}
