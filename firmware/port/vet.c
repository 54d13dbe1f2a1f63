// SPDX-License-Identifier: MIT
/* The parts that an image may have. See vet.h. */
#define _GNU_SOURCE
#include "vet.h"

#include <elf.h>
#include <link.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "../nfc_fw.h"

/* The relocation that calls a function of the image for its value. */
#if defined(__x86_64__)
#define VET_MACHINE EM_X86_64
#define VET_IRELATIVE R_X86_64_IRELATIVE
#elif defined(__aarch64__)
#define VET_MACHINE EM_AARCH64
#define VET_IRELATIVE R_AARCH64_IRELATIVE
#elif defined(__riscv)
#define VET_MACHINE EM_RISCV
#define VET_IRELATIVE 58
#else
#error "which machine are images for?"
#endif

/*
 * Functions that end the process of the device, or register a call at its end.
 */
static const char *const vet_refused[] = {
	"_Exit",	 "__cxa_at_quick_exit",
	"__cxa_atexit",	 "_exit",
	"at_quick_exit", "atexit",
	"err",		 "error",
	"error_at_line", "errx",
	"exit",		 "on_exit",
	"pthread_exit",	 "quick_exit",
	"thrd_exit",	 "verr",
	"verrx",
};

struct vet {
	uint8_t *file;
	uint64_t size;
	char *why;
	ElfW(Ehdr) header;
	uint64_t strings, strings_size, symbols; /* addresses in the image */
	uint64_t rela, rela_size, jump, jump_size;
	uint64_t first_size,
		last_size; /* of the lists of constructors, destructors */
	bool first,
		last; /* it has the functions that a compiler's own files have */
};

static int vet_refuse(const struct vet *v, const char *format, ...)
{
	va_list list;

	va_start(list, format);
	vsnprintf(v->why, NFC_WHY_SIZE, format, list);
	va_end(list);
	return -NFC_EINVAL;
}

static int vet_cut_short(const struct vet *v)
{
	return vet_refuse(v, "is no whole shared object");
}

static ElfW(Phdr)
	vet_part(const uint8_t *file, const ElfW(Ehdr) * header, uint32_t i)
{
	ElfW(Phdr) part;

	memcpy(&part, file + header->e_phoff + i * sizeof(part), sizeof(part));
	return part;
}

/* Does the file have all that its header lists? */
static bool vet_is_whole(struct vet *v)
{
	ElfW(Ehdr) *h = &v->header;

	if (v->size < sizeof(*h))
		return false;
	memcpy(h, v->file, sizeof(*h));
	if (memcmp(h->e_ident, ELFMAG, SELFMAG) != 0 ||
	    h->e_phentsize != sizeof(ElfW(Phdr)) || h->e_phoff > v->size ||
	    h->e_phnum > (v->size - h->e_phoff) / sizeof(ElfW(Phdr)))
		return false;
	for (uint32_t i = 0; i < h->e_phnum; i++) {
		ElfW(Phdr) part = vet_part(v->file, h, i);

		if (part.p_type == PT_LOAD &&
		    (part.p_offset > v->size ||
		     part.p_filesz > v->size - part.p_offset))
			return false;
	}
	return true;
}

/* Where the file has the bytes of an address in the image; NULL: nowhere. */
static uint8_t *vet_at(const struct vet *v, uint64_t address, uint64_t length)
{
	for (uint32_t i = 0; i < v->header.e_phnum; i++) {
		ElfW(Phdr) part = vet_part(v->file, &v->header, i);
		uint64_t at = address - part.p_vaddr;

		if (part.p_type == PT_LOAD && at <= part.p_filesz &&
		    length <= part.p_filesz - at)
			return v->file + part.p_offset + at;
	}
	return NULL;
}

/* Note an entry of the dynamic section. True: the dynamic linker must not see it. */
static bool vet_entry(struct vet *v, const ElfW(Dyn) * entry)
{
	uint64_t value = entry->d_un.d_val;

	switch (entry->d_tag) {
	case DT_STRTAB:
		v->strings = value;
		return false;
	case DT_STRSZ:
		v->strings_size = value;
		return false;
	case DT_SYMTAB:
		v->symbols = value;
		return false;
	case DT_RELA:
		v->rela = value;
		return false;
	case DT_RELASZ:
		v->rela_size = value;
		return false;
	case DT_JMPREL:
		v->jump = value;
		return false;
	case DT_PLTRELSZ:
		v->jump_size = value;
		return false;
	case DT_INIT:
		v->first = true;
		return true;
	case DT_FINI:
		v->last = true;
		return true;
	case DT_INIT_ARRAYSZ:
		v->first_size = value;
		return true;
	case DT_FINI_ARRAYSZ:
		v->last_size = value;
		return true;
	default:
		return entry->d_tag == DT_INIT_ARRAY ||
		       entry->d_tag == DT_FINI_ARRAY;
	}
}

/* Read the dynamic section, and hide what would be run; false: it has no end. */
static bool vet_section(struct vet *v, const ElfW(Phdr) * part)
{
	uint8_t *at = vet_at(v, part->p_vaddr, part->p_memsz);
	ElfW(Dyn) entry;

	for (uint64_t i = 0; at && i < part->p_memsz / sizeof(entry); i++) {
		memcpy(&entry, at + i * sizeof(entry), sizeof(entry));
		if (entry.d_tag == DT_NULL)
			return true;
		if (!vet_entry(v, &entry))
			continue;
		entry.d_tag = DT_LOOS; /* which means nothing */
		memcpy(at + i * sizeof(entry), &entry, sizeof(entry));
	}
	return false;
}

static bool vet_dynamic(struct vet *v)
{
	uint32_t sections = 0;
	bool ok = true;

	for (uint32_t i = 0; i < v->header.e_phnum; i++) {
		ElfW(Phdr) part = vet_part(v->file, &v->header, i);

		if (part.p_type != PT_DYNAMIC)
			continue;
		sections++;
		ok = ok && vet_section(v, &part);
	}
	return ok && sections == 1;
}

/*
 * More than a compiler adds to each shared object, which is one of each and does nothing
 * for a program.
 */
static bool vet_constructs(const struct vet *v)
{
	uint64_t own = sizeof(ElfW(Addr));

	return v->first_size > (v->first ? own : 0) ||
	       v->last_size > (v->last ? own : 0);
}

static const char *vet_name(const struct vet *v, uint64_t at)
{
	const char *all = (const char *)vet_at(v, v->strings, v->strings_size);

	if (!all || at >= v->strings_size || all[v->strings_size - 1])
		return NULL;
	return all + at;
}

static int vet_symbol(const struct vet *v, uint64_t index)
{
	const uint8_t *at;
	ElfW(Sym) symbol;
	const char *name;

	at = vet_at(v, v->symbols + index * sizeof(symbol), sizeof(symbol));
	if (!at)
		return vet_cut_short(v);
	memcpy(&symbol, at, sizeof(symbol));
	name = vet_name(v, symbol.st_name);
	if (!name)
		return vet_cut_short(v);
	if (symbol.st_shndx != SHN_UNDEF)
		return 0;
	for (size_t i = 0; i < sizeof(vet_refused) / sizeof(*vet_refused); i++)
		if (!strcmp(name, vet_refused[i]))
			return vet_refuse(v, "needs %s", name);
	return 0;
}

/*
 * Check the symbols that the image needs, and the code that would run to
 * resolve them.
 */
static int vet_relocations(const struct vet *v, uint64_t address, uint64_t size)
{
	const uint8_t *at = vet_at(v, address, size);
	ElfW(Rela) one;
	int rc = 0;

	if (size && !at)
		return vet_cut_short(v);
	for (uint64_t i = 0; i < size / sizeof(one) && !rc; i++) {
		memcpy(&one, at + i * sizeof(one), sizeof(one));
		if (ELF64_R_TYPE(one.r_info) == VET_IRELATIVE)
			return vet_refuse(v, "runs code as it is linked");
		if (ELF64_R_SYM(one.r_info))
			rc = vet_symbol(v, ELF64_R_SYM(one.r_info));
	}
	return rc;
}

int port_vet(uint8_t *file, uint64_t size, char why[NFC_WHY_SIZE])
{
	struct vet v = { .file = file, .size = size, .why = why };
	int rc;

	if (!vet_is_whole(&v))
		return vet_cut_short(&v);
	if (v.header.e_type != ET_DYN || v.header.e_machine != VET_MACHINE)
		return vet_refuse(&v, "is for another processor");
	if (!vet_dynamic(&v))
		return vet_cut_short(&v);
	if (vet_constructs(&v))
		return vet_refuse(&v, "has a constructor or destructor");
	rc = vet_relocations(&v, v.rela, v.rela_size);
	return rc ? rc : vet_relocations(&v, v.jump, v.jump_size);
}

/* ---- of a linked image ---- */

bool port_vet_holds(const uint8_t *file, uintptr_t start, const void *p,
		    uint64_t size, uint32_t flags)
{
	uint64_t address = (uintptr_t)p - start;
	bool holds = false;
	ElfW(Ehdr) header;

	memcpy(&header, file, sizeof(header));
	for (uint32_t i = 0; i < header.e_phnum; i++) {
		ElfW(Phdr) part = vet_part(file, &header, i);
		uint64_t at = address - part.p_vaddr;

		if (part.p_type == PT_GNU_RELRO && flags & PF_W &&
		    at < part.p_memsz)
			return false;
		if (part.p_type == PT_LOAD && at <= part.p_memsz &&
		    size <= part.p_memsz - at)
			holds |= (part.p_flags & flags) == flags;
	}
	return holds;
}

static bool vet_text(const uint8_t *file, uintptr_t start, const char *text)
{
	for (int i = 0; i < NFC_NAME_SIZE; i++) {
		if (!port_vet_holds(file, start, text + i, 1, PF_R))
			return false;
		if (!text[i])
			break;
	}
	return true;
}

/* A program of another version ends the check: no caller reads past it. */
bool port_vet_table(const uint8_t *file, uintptr_t start,
		    const struct nfc_program *table)
{
	for (const struct nfc_program *p = table;; p++) {
		const void *code;

		if ((uintptr_t)p % sizeof(void *) ||
		    !port_vet_holds(file, start, p, sizeof(*p), PF_R))
			return false;
		if (!p->name || p->abi != NFC_PROGRAM_ABI)
			return true;
		code = (const void *)(uintptr_t)p->main;
		if (!vet_text(file, start, p->name) ||
		    (code && !port_vet_holds(file, start, code, 1, PF_X)))
			return false;
	}
}
