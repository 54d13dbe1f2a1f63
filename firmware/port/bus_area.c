// SPDX-License-Identifier: MIT
/* The memory behind the BAR of a bus. */
#define _GNU_SOURCE
#include "bus_state.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* Sealed: another process that maps it cannot take it away from the device. */
int nfc_bus_area_open(struct nfc_bus *bus)
{
	int seals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;

	bus->area_fd = memfd_create("nfcomms-bar2",
				    MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (bus->area_fd < 0 || ftruncate(bus->area_fd, (off_t)bus->area_size) ||
	    fcntl(bus->area_fd, F_ADD_SEALS, seals))
		return -errno;
	bus->area = mmap(NULL, bus->area_size, PROT_READ | PROT_WRITE,
			 MAP_SHARED | MAP_NORESERVE, bus->area_fd, 0);
	if (bus->area == MAP_FAILED)
		return -errno;
	return 0;
}

void nfc_bus_area_close(struct nfc_bus *bus)
{
	if (bus->area != MAP_FAILED)
		munmap(bus->area, bus->area_size);
	if (bus->area_fd >= 0)
		close(bus->area_fd);
}

int nfc_bus_area_fd(const struct nfc_bus *bus)
{
	return bus->area_fd;
}

void *nfc_bus_area(const struct nfc_bus *bus, uint64_t *size)
{
	*size = bus->area_size;
	return bus->area;
}

int nfc_bus_area_clear(struct nfc_bus *bus)
{
	int mode = FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE;

	return fallocate(bus->area_fd, mode, 0, (off_t)bus->area_size) ? -errno :
									 0;
}

static bool in_area(const struct nfc_bus *bus, uint64_t offset, uint64_t length)
{
	return offset <= bus->area_size && length <= bus->area_size - offset;
}

int nfc_bus_area_load(struct nfc_bus *bus, uint64_t offset, void *to,
		      uint64_t length)
{
	uint8_t *at = (uint8_t *)bus->area + offset;

	if (!in_area(bus, offset, length))
		return -EINVAL;
	if (length == 8 && !(offset & 7)) {
		uint64_t v = atomic_load_explicit((_Atomic uint64_t *)at,
						  memory_order_acquire);

		memcpy(to, &v, sizeof(v));
	} else if (length == 4 && !(offset & 3)) {
		uint32_t v = atomic_load_explicit((_Atomic uint32_t *)at,
						  memory_order_acquire);

		memcpy(to, &v, sizeof(v));
	} else {
		memcpy(to, at, length);
	}
	return 0;
}

int nfc_bus_area_store(struct nfc_bus *bus, uint64_t offset, const void *from,
		       uint64_t length)
{
	uint8_t *at = (uint8_t *)bus->area + offset;
	uint64_t word;
	uint32_t half;

	if (!in_area(bus, offset, length))
		return -EINVAL;
	if (length == 8 && !(offset & 7)) {
		memcpy(&word, from, sizeof(word));
		atomic_store_explicit((_Atomic uint64_t *)at, word,
				      memory_order_release);
	} else if (length == 4 && !(offset & 3)) {
		memcpy(&half, from, sizeof(half));
		atomic_store_explicit((_Atomic uint32_t *)at, half,
				      memory_order_release);
	} else {
		memcpy(at, from, length);
	}
	return 0;
}
