// SPDX-License-Identifier: MIT
/*
 * Golden byte vectors: every file of bridge/abi/testdata is a slot as fields
 * and as bytes. Decode the bytes and compare the fields, encode the fields and
 * compare the bytes. The Go test bridge/abi/golden_test.go does the same.
 */
#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "harness.h"
#include "../nfc_abi.h"

enum {
	FIELDS_MAX = 40,
};

struct pair {
	char key[32];
	char value[160];
	bool used;
};

struct vector {
	struct pair pair[FIELDS_MAX];
	unsigned int pairs;
	uint8_t bytes[NFC_SLOT_SIZE];
};

/* A member of a payload: its offset and its width. */
struct member {
	const char *payload, *name;
	size_t offset, width;
};

#define MEMBER(type, field)                                        \
	{                                                          \
#type, #field, offsetof(struct nfc_##type, field), \
			sizeof(((struct nfc_##type *)0)->field)    \
	}

static const struct member members[] = {
	MEMBER(begin, transaction),
	MEMBER(begin, size),
	MEMBER(begin, timeout_ns),
	MEMBER(eager, transaction),
	MEMBER(eager, size),
	MEMBER(eager, timeout_ns),
	MEMBER(ack, transaction),
	MEMBER(ack, processed),
	MEMBER(ack, outstanding),
	MEMBER(ack, lists),
	MEMBER(ack, state),
	MEMBER(ack, status),
	MEMBER(ack, fault_index),
	MEMBER(ack, direction),
	MEMBER(ack, begin_ns),
	MEMBER(ack, now_ns),
	MEMBER(note, transaction),
	MEMBER(note, direction),
	MEMBER(note, status),
	MEMBER(close, halves),
	MEMBER(close, status),
	MEMBER(close, generation),
	MEMBER(hello, magic),
	MEMBER(hello, major),
	MEMBER(hello, minor),
	MEMBER(hello, capabilities),
	MEMBER(hello, channels),
	MEMBER(hello, mailboxes),
	MEMBER(hello, islands),
	MEMBER(hello, slots),
	MEMBER(hello, window),
	MEMBER(hello, beat_ms),
	MEMBER(hello, max_transfer),
	MEMBER(hello, read_managers),
	MEMBER(hello, write_managers),
	MEMBER(hello, contexts),
	MEMBER(hello, eager),
	MEMBER(heartbeat, beat),
	MEMBER(heartbeat, now_ns),
	MEMBER(heartbeat, diagnostic),
	MEMBER(heartbeat, processes),
	MEMBER(heartbeat, messages),
	MEMBER(heartbeat, bytes),
	MEMBER(heartbeat, dropped),
	MEMBER(heartbeat, parked),
	MEMBER(control, op),
	MEMBER(control, status),
	MEMBER(control, request),
	MEMBER(control, a),
	MEMBER(control, b),
	MEMBER(control, c),
	MEMBER(control, name),
};

static const char *text(struct vector *v, const char *key)
{
	for (unsigned int i = 0; i < v->pairs; i++) {
		if (strcmp(v->pair[i].key, key))
			continue;
		v->pair[i].used = true;
		return v->pair[i].value;
	}
	printf("no field %s\n", key);
	CHECK(!"field missing");
	return "0";
}

static uint64_t number(struct vector *v, const char *key)
{
	return strtoull(text(v, key), NULL, 0);
}

static size_t unhex(const char *from, uint8_t *to, size_t room)
{
	size_t n = 0;
	unsigned int byte;

	while (n < room && sscanf(from, " %2x", &byte) == 1) {
		to[n++] = (uint8_t)byte;
		from += strspn(from, " \n");
		from += 2;
	}
	return n;
}

static bool read_vector(const char *path, struct vector *v)
{
	char line[256], hex[512] = "";
	bool bytes = false;
	FILE *f = fopen(path, "r");

	if (!CHECK(f != NULL))
		return false;
	memset(v, 0, sizeof(*v));
	while (fgets(line, sizeof(line), f)) {
		struct pair *p = &v->pair[v->pairs];

		line[strcspn(line, "\n")] = 0;
		if (bytes) {
			strncat(hex, line, sizeof(hex) - strlen(hex) - 2);
			strcat(hex, " ");
		} else if (!strcmp(line, "hex")) {
			bytes = true;
		} else if (line[0] != '#' && v->pairs < FIELDS_MAX &&
			   sscanf(line, "%31s = %159s", p->key, p->value) >= 1) {
			v->pairs++;
		}
	}
	fclose(f);
	return CHECK_EQ(unhex(hex, v->bytes, sizeof(v->bytes)), NFC_SLOT_SIZE);
}

static uint64_t encode_header(struct vector *v)
{
	uint64_t h = nfc_header(number(v, "type"), number(v, "length"),
				number(v, "epoch"), number(v, "sequence"),
				number(v, "channel"));

	CHECK_EQ(nfc_header_phase(h), 0);
	return h | number(v, "phase") << NFC_HDR_PHASE_SHIFT;
}

static void decode_header(struct vector *v, uint64_t h)
{
	CHECK_EQ(nfc_header_type(h), number(v, "type"));
	CHECK_EQ(nfc_header_phase(h), number(v, "phase"));
	CHECK_EQ(nfc_header_length(h), number(v, "length"));
	CHECK_EQ(nfc_header_epoch(h), number(v, "epoch"));
	CHECK_EQ(nfc_header_sequence(h), number(v, "sequence"));
	CHECK_EQ(nfc_header_channel(h), number(v, "channel"));
}

/* Members of a payload, both ways at once: encode into to, compare with from. */
static void walk_members(struct vector *v, const char *payload,
			 const uint8_t *from, uint8_t *to)
{
	for (size_t i = 0; i < sizeof(members) / sizeof(*members); i++) {
		const struct member *m = &members[i];
		uint64_t want, got = 0;

		if (strcmp(m->payload, payload))
			continue;
		if (!strcmp(m->name, "name")) {
			const char *name = text(v, m->name);

			CHECK(!strncmp((const char *)from + m->offset, name,
				       m->width));
			memcpy(to + m->offset, name, strlen(name));
			continue;
		}
		want = number(v, m->name);
		memcpy(&got, from + m->offset, m->width);
		CHECK_EQ(got, want);
		memcpy(to + m->offset, &want, m->width);
	}
}

static void walk_entries(struct vector *v, const uint64_t *from, uint64_t *to)
{
	uint64_t count = number(v, "length") & NFC_LIST_COUNT_MASK;
	bool runs = number(v, "length") & NFC_LIST_RUNS;
	char key[32];

	for (uint64_t i = 0; i < count; i++) {
		uint64_t address, length, pages;

		snprintf(key, sizeof(key), "entry%" PRIu64 "_address", i);
		address = number(v, key);
		snprintf(key, sizeof(key), "entry%" PRIu64 "_length", i);
		length = number(v, key);
		CHECK_EQ(runs ? nfc_run_address(from[i]) :
				nfc_entry_address(from[i]),
			 address);
		CHECK_EQ(runs ? nfc_run_length(from[i]) :
				nfc_entry_length(from[i]),
			 length);
		pages = (address % NFC_PAGE_SIZE + length) / NFC_PAGE_SIZE;
		to[i] = runs ? nfc_run(address, pages) :
			       nfc_entry(address, length);
	}
}

static void walk_gather(struct vector *v, const struct nfc_gather *from,
			struct nfc_gather *to)
{
	walk_entries(v, from->entry, to->entry);
	CHECK_EQ(from->tail >> NFC_TAIL_OUTSTANDING_SHIFT, number(v, "outstandi"
								     "ng"));
	CHECK_EQ(from->tail >> NFC_TAIL_NUMBER_SHIFT & 0xffff, number(v, "numbe"
									 "r"));
	to->tail = number(v, "outstanding") << NFC_TAIL_OUTSTANDING_SHIFT |
		   number(v, "number") << NFC_TAIL_NUMBER_SHIFT;
}

static void walk_bytes(struct vector *v, const uint8_t *from, uint8_t *to)
{
	size_t length = number(v, "length");

	CHECK_EQ(unhex(text(v, "data"), to, NFC_PAYLOAD_SIZE), length);
	CHECK(!memcmp(from, to, length));
}

static void check_vector(const char *path)
{
	struct nfc_slot from, to = { 0 };
	const char *payload;
	struct vector v;

	REQUIRE(read_vector(path, &v));
	memcpy(&from, v.bytes, sizeof(from));
	decode_header(&v, from.header);
	to.header = encode_header(&v);
	payload = text(&v, "payload");
	if (!strcmp(payload, "eager"))
		walk_entries(&v, ((const struct nfc_eager *)from.payload)->entry,
			     ((struct nfc_eager *)to.payload)->entry);
	if (!strcmp(payload, "gather"))
		walk_gather(&v, (const void *)from.payload, (void *)to.payload);
	else if (!strcmp(payload, "bytes"))
		walk_bytes(&v, (const void *)from.payload, (void *)to.payload);
	else
		walk_members(&v, payload, (const void *)from.payload,
			     (void *)to.payload);
	if (!CHECK(!memcmp(&to, v.bytes, sizeof(to))))
		printf("in %s\n", path);
	for (unsigned int i = 0; i < v.pairs; i++)
		if (!CHECK(v.pair[i].used))
			printf("%s: field %s is not of a %s\n", path,
			       v.pair[i].key, payload);
}

CASE(golden_vectors)
{
	char pattern[512];
	glob_t files;

	REQUIRE(test_argument != NULL);
	snprintf(pattern, sizeof(pattern), "%s/*.hex", test_argument);
	REQUIRE(glob(pattern, 0, NULL, &files) == 0);
	CHECK(files.gl_pathc >= NFC_TYPE_COUNT - 1);
	for (size_t i = 0; i < files.gl_pathc; i++)
		check_vector(files.gl_pathv[i]);
	globfree(&files);
}

/* Targets of nodes: a text and an id a line. */
CASE(golden_ids)
{
	char path[512], line[128], text[64];
	uint64_t id;
	unsigned int x, y, z, target, lines = 0;
	FILE *f;

	snprintf(path, sizeof(path), "%s/target.ids", test_argument);
	f = fopen(path, "r");
	REQUIRE(f);
	while (fgets(line, sizeof(line), f)) {
		if (sscanf(line, "%63s %" SCNx64, text, &id) != 2 ||
		    *text == '#')
			continue;
		lines++;
		CHECK(nfc_id_valid(id));
		if (sscanf(text, "%u.%u.%u/%u", &x, &y, &z, &target) == 4) {
			CHECK_EQ(nfc_id(x, y, z, target), id);
			CHECK_EQ(nfc_id_node(id), x << 16 | y << 8 | z);
			CHECK(nfc_id_has_node(id));
		} else {
			CHECK_EQ(sscanf(text, "%u", &target), 1);
			CHECK(!nfc_id_has_node(id));
		}
		CHECK_EQ(nfc_id_target(id), target);
	}
	fclose(f);
	CHECK(lines >= 7);
	for (uint32_t bit = 0; bit < 64; bit++) {
		bool field = bit < 24 || bit == 63;

		CHECK_EQ(nfc_id_valid(1ull << bit), field);
		CHECK_EQ(nfc_id_valid(1ull << 63 | 1ull << bit),
			 field || (bit >= 32 && bit < 56));
	}
}
