// SPDX-License-Identifier: MIT
/* Program images as shared objects. See port_image.h. */
#define _GNU_SOURCE
#include "image.h"

#include <dlfcn.h>
#include <link.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "../nfc_fw.h"
#include "hosted.h"
#include "vet.h"

enum {
	IMAGES = 256, /* mapped at one time, for which a crash can be located */
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
 * there are places for it knows nothing. start is 0 while a place is free, and is
 * stored last. The file is mapped whole beside the image that the dynamic linker made
 * of it, which has no line table.
 */
static struct mapped {
	_Atomic uintptr_t start;
	uintptr_t end, code, code_end;
	uint64_t number; /* of image, from 1 */
	void *file;
	uint64_t size;
} mapped[IMAGES];
static pthread_mutex_t mapping = PTHREAD_MUTEX_INITIALIZER; /* who changes it */

/* The memory that an image takes at start, from its first to its last part. */
static void measure(struct mapped *m, uintptr_t start, const uint8_t *image)
{
	ElfW(Ehdr) header;
	ElfW(Phdr) part;

	m->end = m->code = m->code_end = start;
	memcpy(&header, image, sizeof(header));
	for (uint32_t i = 0; i < header.e_phnum; i++) {
		uintptr_t end;

		memcpy(&part, image + header.e_phoff + i * sizeof(part),
		       sizeof(part));
		end = start + part.p_vaddr + part.p_memsz;
		if (part.p_type != PT_LOAD)
			continue;
		if (end > m->end)
			m->end = end;
		if (part.p_flags & PF_X) {
			m->code = start + part.p_vaddr;
			m->code_end = end;
		}
	}
}

static uintptr_t start_of(void *handle)
{
	struct link_map *map;

	return dlinfo(handle, RTLD_DI_LINKMAP, &map) ? 0 : map->l_addr;
}

/* file stays mapped until the image is forgotten. */
static void remember(void *handle, void *file, uint64_t size)
{
	static uint64_t images;
	uintptr_t start = start_of(handle);
	struct mapped *m = mapped;

	pthread_mutex_lock(&mapping);
	while (m < mapped + IMAGES && atomic_load(&m->start))
		m++;
	if (start && m < mapped + IMAGES) {
		measure(m, start, file);
		m->number = ++images;
		m->file = file;
		m->size = size;
		atomic_store(&m->start, start);
		file = NULL;
	}
	pthread_mutex_unlock(&mapping);
	if (file)
		munmap(file, size);
}

static void forget(void *handle)
{
	uintptr_t start = start_of(handle);

	pthread_mutex_lock(&mapping);
	for (struct mapped *m = mapped; start && m < mapped + IMAGES; m++) {
		if (atomic_load(&m->start) != start)
			continue;
		atomic_store(&m->start, 0);
		munmap(m->file, m->size);
	}
	pthread_mutex_unlock(&mapping);
}

void *nfc_hosted_image(uint64_t image, uint64_t *size)
{
	void *copy = NULL;

	pthread_mutex_lock(&mapping);
	for (struct mapped *m = mapped; m < mapped + IMAGES; m++) {
		if (!atomic_load(&m->start) || m->number != image)
			continue;
		copy = malloc(m->size);
		*size = m->size;
		if (copy)
			memcpy(copy, m->file, m->size);
	}
	pthread_mutex_unlock(&mapping);
	return copy;
}

bool port_image_place(uintptr_t pc, uint64_t *image, uint64_t *offset)
{
	for (struct mapped *m = mapped; m < mapped + IMAGES; m++) {
		uintptr_t start = atomic_load(&m->start);

		if (!start || pc < start || pc >= m->end)
			continue;
		*image = m->number;
		*offset = pc - start;
		return true;
	}
	return false;
}

/* Does a call end before this instruction? Not for certain where it is not known. */
static bool follows_call(const struct mapped *m, uintptr_t at)
{
	const uint8_t *p = (const uint8_t *)at;

	if (at < m->code + 7 || at > m->code_end)
		return false;
#if defined(__x86_64__)
	return p[-5] == 0xe8 || p[-6] == 0xff || p[-3] == 0xff || p[-2] == 0xff;
#elif defined(__aarch64__)
	return (p[-1] & 0xfc) == 0x94 || (p[-1] == 0xd6 && p[-2] == 0x3f);
#else
	return p[-1] || true;
#endif
}

bool port_image_caller(uintptr_t sp, uintptr_t top, uint64_t *image,
		       uint64_t *offset)
{
	for (sp &= ~(uintptr_t)7; sp && sp + 8 <= top; sp += 8) {
		uintptr_t at = *(const uintptr_t *)sp;

		for (struct mapped *m = mapped; m < mapped + IMAGES; m++)
			if (atomic_load(&m->start) && follows_call(m, at))
				return port_image_place(at - 1, image, offset);
	}
	return false;
}

/*
 * Why the dynamic linker refused. Its text begins with a path, which is none that anybody
 * knows.
 */
static void describe_refusal(char why[NFC_WHY_SIZE])
{
	static const char undefined[] = "undefined symbol: ";
	const char *text = dlerror(), *at;

	if (!text)
		return;
	at = strstr(text, undefined);
	if (at) {
		at += sizeof(undefined) - 1;
		snprintf(why, NFC_WHY_SIZE, "needs %.*s", (int)strcspn(at, ","),
			 at);
		return;
	}
	at = strncmp(text, "/proc/", 6) == 0 ? strstr(text, ": ") : NULL;
	snprintf(why, NFC_WHY_SIZE, "%s", at ? at + 2 : text);
}

/* Link the image in a file. */
static int link_image(int fd, void **handle, char why[NFC_WHY_SIZE])
{
	char path[PATH_SIZE];

	path_of(path, fd);
	*handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	if (*handle)
		return 0;
	describe_refusal(why);
	return -NFC_EINVAL;
}

/* Link a copy of an image; its bytes stay mapped. */
static int open_image(const void *image, uint64_t size, void **handle,
		      uint8_t **file, char why[NFC_WHY_SIZE])
{
	int fd = memfd_create("nfc-program", MFD_CLOEXEC), rc = -NFC_ENOMEM;
	void *bytes = MAP_FAILED;

	if (fd < 0)
		return rc;
	if (write(fd, image, size) == (ssize_t)size)
		bytes = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd,
			     0);
	if (bytes != MAP_FAILED) {
		rc = port_vet(bytes, size, why);
		if (!rc)
			rc = mprotect(bytes, size, PROT_READ) ?
				     -NFC_ENOMEM :
				     link_image(fd, handle, why);
		if (rc)
			munmap(bytes, size);
	}
	close(fd);
	*file = bytes;
	return rc;
}

/* Its table, and where it takes that of the calls: in itself, and where it can be written. */
static const struct nfc_api **find_table(struct nfc_image *image,
					 const uint8_t *file)
{
	const struct nfc_api **slot = dlsym(image->handle, "nfc_api");
	uintptr_t start = start_of(image->handle);

	image->table = dlsym(image->handle, "nfc_program_table");
	if (!start || (uintptr_t)slot % sizeof(*slot) ||
	    !port_vet_holds(file, start, slot, sizeof(*slot), PF_W) ||
	    !port_vet_table(file, start, image->table))
		return NULL;
	return slot;
}

int port_image_load(const void *image, uint64_t size, const struct nfc_api *api,
		    struct nfc_image *out)
{
	const struct nfc_api **slot;
	uint8_t *file;
	int rc;

	rc = open_image(image, size, &out->handle, &file, out->why);
	if (rc)
		return rc;
	slot = find_table(out, file);
	if (!slot) {
		snprintf(out->why, NFC_WHY_SIZE, "has no sound NFC_PROGRAMS");
		dlclose(out->handle);
		munmap(file, size);
		return -NFC_EINVAL;
	}
	*slot = api;
	remember(out->handle, file, size);
	return 0;
}

void port_image_unload(void *handle)
{
	forget(handle);
	dlclose(handle);
}
