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
	return 0;
}

void port_image_unload(void *handle)
{
	dlclose(handle);
}
