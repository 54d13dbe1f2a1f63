/* SPDX-License-Identifier: MIT */
/* Structures of the module's interface as tables of their fields, see uapi_table.h. */
#ifndef UAPI_H
#define UAPI_H

#include <stddef.h>
#include <stdint.h>

/* How a caller that knows the interface fills a field. */
enum uapi_kind {
	UAPI_KIND_NUMBER,
	UAPI_KIND_ZERO, /* reserved, or an answer */
	UAPI_KIND_SIZE, /* of a structure */
	UAPI_KIND_ADDRESS, /* of a structure */
	UAPI_KIND_MEMORY, /* address of bytes */
	UAPI_KIND_DESCRIPTOR,
	UAPI_KIND_CHOICE, /* a constant, or several of them */
	UAPI_KIND_BYTES, /* of text, or of another structure */
};

struct uapi_field {
	const char *name;
	enum uapi_kind kind;
	uint16_t offset, size;
	uint16_t bytes; /* SIZE, ADDRESS: those of the structure */
	uint16_t choices;
	const uint64_t *choice;
};

struct uapi_struct {
	unsigned long number; /* of the ioctl */
	size_t size;
	size_t fields;
	const struct uapi_field *field;
};

#define UAPI_FIELD(kind_, type, member, ...)                               \
	{                                                                  \
		.name = #member, .kind = UAPI_KIND_##kind_,                \
		.offset = offsetof(struct type, member),                   \
		.size = sizeof(((struct type *)NULL)->member), __VA_ARGS__ \
	}
#define UAPI_NUMBER(type, member) UAPI_FIELD(NUMBER, type, member)
#define UAPI_ZERO(type, member) UAPI_FIELD(ZERO, type, member)
#define UAPI_MEMORY(type, member) UAPI_FIELD(MEMORY, type, member)
#define UAPI_DESCRIPTOR(type, member) UAPI_FIELD(DESCRIPTOR, type, member)
#define UAPI_BYTES(type, member) UAPI_FIELD(BYTES, type, member)
#define UAPI_SIZE(type, member, of) \
	UAPI_FIELD(SIZE, type, member, .bytes = sizeof(struct of))
#define UAPI_ADDRESS(type, member, of) \
	UAPI_FIELD(ADDRESS, type, member, .bytes = sizeof(struct of))
#define UAPI_CHOICE(type, member, ...)                                    \
	UAPI_FIELD(CHOICE, type, member,                                  \
		   .choice = (const uint64_t[]){ __VA_ARGS__ },           \
		   .choices = sizeof((const uint64_t[]){ __VA_ARGS__ }) / \
			      sizeof(uint64_t))
#define UAPI_STRUCT(number_, type)                                        \
	{                                                                 \
		.number = number_, .size = sizeof(struct type),           \
		.fields = sizeof(type##_fields) / sizeof(*type##_fields), \
		.field = type##_fields                                    \
	}

#endif
