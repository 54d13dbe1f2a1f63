// SPDX-License-Identifier: MIT
/* Device memory: four types, 40-bit addresses, a first-fit allocator. */
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
void *nfc_memory_at(struct nfc_device *dev, uint64_t address, uint64_t size)
{
	uint64_t type = address >> NFC_MEMORY_SHIFT;
	uint64_t offset = address - base_of(type);

	if (type >= NFC_MEMORY_COUNT)
		return NULL;
	if (offset > dev->config.memory[type] ||
	    size > dev->config.memory[type] - offset)
		return NULL;
	return (uint8_t *)dev->port->memory[type] + offset;
}

/*
 * The lowest end of an existing block above which [end, end + size) would
 * collide with none. The first page of a type is not given out, so that no
 * allocation has address 0.
 */
static bool collides(struct nfc_device *dev, uint64_t at, uint64_t size,
		     uint64_t *next)
{
	for (uint32_t i = 0; i < NFC_BLOCKS; i++) {
		const struct nfc_block *b = &dev->block[i];

		if (b->address && at < b->address + b->size &&
		    b->address < at + size) {
			*next = b->address + b->size;
			return true;
		}
	}
	return false;
}

/* Returns the address, page-aligned, or 0 if there is no room. */
uint64_t nfc_memory_alloc(struct nfc_device *dev, uint64_t owner,
			  enum nfc_memory type, uint64_t size)
{
	uint64_t at, end, address = 0;
	struct nfc_block *free = NULL;

	if ((unsigned int)type >= NFC_MEMORY_COUNT || !size ||
	    size > dev->config.memory[type])
		return 0;
	size = (size + ALIGN - 1) & ~(uint64_t)(ALIGN - 1);
	at = base_of(type) + ALIGN;
	end = base_of(type) + dev->config.memory[type];
	nfc_lock(dev);
	for (uint32_t i = 0; i < NFC_BLOCKS && !free; i++)
		if (!dev->block[i].address)
			free = &dev->block[i];
	while (free && size <= end - at) {
		if (!collides(dev, at, size, &at)) {
			*free = (struct nfc_block){ at, size, owner };
			address = at;
			break;
		}
	}
	nfc_unlock(dev);
	return address;
}

/* Free one block of owner, or all of them if address is 0. */
void nfc_memory_free(struct nfc_device *dev, uint64_t owner, uint64_t address)
{
	nfc_lock(dev);
	for (uint32_t i = 0; i < NFC_BLOCKS; i++) {
		struct nfc_block *b = &dev->block[i];

		if (b->address && b->owner == owner &&
		    (!address || b->address == address))
			b->address = 0;
	}
	nfc_unlock(dev);
}

/* Bytes not allocated; a single block of that size may not exist. */
uint64_t nfc_memory_available(struct nfc_device *dev, enum nfc_memory type)
{
	uint64_t left = dev->config.memory[type];

	if (left)
		left -= ALIGN;
	nfc_lock(dev);
	for (uint32_t i = 0; i < NFC_BLOCKS; i++)
		if (dev->block[i].address &&
		    dev->block[i].address >> NFC_MEMORY_SHIFT == (uint64_t)type)
			left -= dev->block[i].size;
	nfc_unlock(dev);
	return left;
}

uint64_t nfc_alloc(struct nfc_process *self, enum nfc_memory type, uint64_t size)
{
	struct nfc_device *dev = self->island->dev;
	uint64_t address = nfc_memory_alloc(dev, self->id, type, size);

	/* what even empty memory could not hold is no sign of sickness */
	if (!address && size && (unsigned int)type < NFC_MEMORY_COUNT &&
	    dev->config.memory[type] > ALIGN &&
	    size <= dev->config.memory[type] - ALIGN)
		nfc_count(self->island, NFC_COUNT_REFUSED, 1);
	return address;
}

void nfc_free(struct nfc_process *self, uint64_t address)
{
	if (address)
		nfc_memory_free(self->island->dev, self->id, address);
}

void *nfc_at(struct nfc_process *self, uint64_t address, uint64_t size)
{
	return nfc_memory_at(self->island->dev, address, size);
}
