// SPDX-License-Identifier: MIT
/* Program images as shared objects. See port_image.h. */
#define _GNU_SOURCE
#include "image.h"

#include <dlfcn.h>
#include <link.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "../nfc_fw.h"

enum {
	IMAGES = 256, /* whose crashes can be placed, at one time */
	PATH_SIZE = 160, /* 64 digits of two characters, and what is around */
};

/*
 * The dynamic linker takes an object for one that is loaded if it was opened
 * by the same name, or is the same inode. Each image is a file of its own, and
 * its inode is not used again while it is mapped; but its descriptor is. So
 * the path to it also encodes how many images there were before, in binary: "/"
 * for a 0 and "/." for a 1 lead nowhere else.
 */
static void path_of(char path[PATH_SIZE], int fd)
{
	static _Atomic uint64_t images;
	uint64_t n = atomic_fetch_add(&images, 1) + 1;
	char *to = stpcpy(path, "/proc/self/fd");

	for (; n; n /= 2)
		to = stpcpy(to, n % 2 ? "/." : "/");
	snprintf(to, (size_t)(path + PATH_SIZE - to), "/%d", fd);
}

/*
 * Where images are mapped, for a handler of faults: of those that are more than
 * there are places for it knows nothing. Written under no lock, as places are
 * claimed one by one; start is 0 while a place is free, and 1 while it changes.
 */
static struct {
	_Atomic uintptr_t start;
	uintptr_t end;
} mapped[IMAGES];

/* The bytes of memory that an image takes, from its first to its last part. */
static uintptr_t span(const uint8_t *image)
{
	uintptr_t end = 0;
	ElfW(Ehdr) header;
	ElfW(Phdr) part;

	memcpy(&header, image, sizeof(header));
	for (uint32_t i = 0; i < header.e_phnum; i++) {
		memcpy(&part, image + header.e_phoff + i * sizeof(part),
		       sizeof(part));
		if (part.p_type == PT_LOAD && part.p_vaddr + part.p_memsz > end)
			end = part.p_vaddr + part.p_memsz;
	}
	return end;
}

static uintptr_t start_of(void *handle)
{
	struct link_map *map;

	return dlinfo(handle, RTLD_DI_LINKMAP, &map) ? 0 : map->l_addr;
}

static void remember(void *handle, const uint8_t *image)
{
	uintptr_t start = start_of(handle);

	for (int i = 0; start && i < IMAGES; i++) {
		uintptr_t unused = 0;

		if (!atomic_compare_exchange_strong(&mapped[i].start, &unused, 1))
			continue;
		mapped[i].end = start + span(image);
		atomic_store(&mapped[i].start, start);
		return;
	}
}

static void forget(void *handle)
{
	uintptr_t start = start_of(handle);

	for (int i = 0; i < IMAGES; i++)
		if (start && atomic_load(&mapped[i].start) == start)
			atomic_store(&mapped[i].start, 0);
}

bool port_image_offset(uintptr_t pc, uint64_t *offset)
{
	for (int i = 0; i < IMAGES; i++) {
		uintptr_t start = atomic_load(&mapped[i].start);

		if (start <= 1 || pc < start || pc >= mapped[i].end)
			continue;
		*offset = pc - start;
		return true;
	}
	return false;
}

/*
 * Does all that an image says it has lie in it? The dynamic linker does not
 * ask: it maps past the end of one that was cut short, and dies there.
 */
static bool is_whole(const uint8_t *image, uint64_t size)
{
	ElfW(Ehdr) header;
	ElfW(Phdr) part;

	if (size < sizeof(header))
		return false;
	memcpy(&header, image, sizeof(header));
	if (memcmp(header.e_ident, ELFMAG, SELFMAG) != 0 ||
	    header.e_phentsize != sizeof(part) || header.e_phoff > size ||
	    header.e_phnum > (size - header.e_phoff) / sizeof(part))
		return false;
	for (uint32_t i = 0; i < header.e_phnum; i++) {
		memcpy(&part, image + header.e_phoff + i * sizeof(part),
		       sizeof(part));
		if (part.p_type == PT_LOAD &&
		    (part.p_offset > size ||
		     part.p_filesz > size - part.p_offset))
			return false;
	}
	return true;
}

static void *open_image(const void *image, uint64_t size, int *rc)
{
	int fd = memfd_create("nfc-program", MFD_CLOEXEC);
	void *handle = NULL;
	char path[PATH_SIZE];

	*rc = -NFC_ENOMEM;
	if (fd < 0)
		return NULL;
	if (write(fd, image, size) == (ssize_t)size) {
		path_of(path, fd);
		handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
		*rc = handle ? 0 : -NFC_EINVAL;
	}
	close(fd);
	return handle;
}

int port_image_load(const void *image, uint64_t size, const struct nfc_api *api,
		    struct nfc_image *out)
{
	const struct nfc_api **slot;
	int rc;

	if (!is_whole(image, size))
		return -NFC_EINVAL;
	out->handle = open_image(image, size, &rc);
	if (!out->handle)
		return rc;
	out->table = dlsym(out->handle, "nfc_program_table");
	slot = dlsym(out->handle, "nfc_api");
	if (!out->table || !slot) {
		dlclose(out->handle);
		return -NFC_EINVAL;
	}
	*slot = api;
	remember(out->handle, image);
	return 0;
}

void port_image_unload(void *handle)
{
	forget(handle);
	dlclose(handle);
}
