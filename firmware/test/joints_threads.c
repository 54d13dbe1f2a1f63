// SPDX-License-Identifier: MIT
/*
 * A pipeline of processes that are joined across islands, in a device with all its
 * threads: the program of examples/pipeline under the thread sanitizer.
 */
#define _GNU_SOURCE
#include <stdlib.h>
#include <string.h>

#include "harness.h"
#include "stage.h"

enum {
	FIRST = 20, /* of island 0, */
	MIDDLE = 30, /* 1 */
	LAST = 50, /* and 2 */
	ROUNDS = 3,
	MESSAGES = 100,
	SIZE = 200001,
};

static void start(struct stage *s, uint32_t at, uint64_t ports, uint64_t next)
{
	struct nfc_control c = { .op = NFC_CONTROL_START,
				 .a = at,
				 .b = ports,
				 .c = next,
				 .name = "stage" };

	CHECK_EQ(stage_ask(s, &c), 0);
}

static void pass(struct stage *s)
{
	uint8_t *out = host_memory, *back = host_memory + HALF;
	uint8_t message[NFC_PAYLOAD_SIZE];

	for (uint8_t i = 0; i < MESSAGES; i++) {
		stage_say(s, FIRST, &i, 1);
		stage_hear(s, LAST + 1, message);
		CHECK_EQ(message[0], (uint8_t)(i + 3));
	}
	fill_pattern(out, SIZE, 7);
	CHECK_EQ(stage_give(s, FIRST, out, SIZE), 0);
	CHECK_EQ(stage_take(s, LAST + 1, back, SIZE), 0);
	for (uint32_t i = 0; i < SIZE; i++)
		if (!CHECK_EQ(back[i], (uint8_t)(out[i] + 3)))
			break;
}

CASE(stages_of_three_islands)
{
	static struct stage s;
	struct shape shape = { .islands = 3, .managers = 3, .engines = 1 };
	struct nfc_control c = { .op = NFC_CONTROL_LOAD,
				 .a = stage_image_size() };

	s.shape = &shape;
	s.r.config = stage_config(&shape);
	CHECK_EQ(stage_boot(&s), 0);
	CHECK_EQ(stage_ask(&s, &c), 0);
	for (int i = 0; i < ROUNDS && !test_failures(); i++) {
		start(&s, LAST, 2, 0);
		start(&s, MIDDLE, 1, LAST);
		start(&s, FIRST, 1, MIDDLE);
		CHECK_EQ(stage_open(&s, FIRST), 0);
		CHECK_EQ(stage_open(&s, LAST + 1), 0);
		pass(&s);
		host_close(&s.r, FIRST, 3);
		stage_end(&s, FIRST);
		stage_end(&s, LAST + 1);
		host_close(&s.r, LAST + 1, 3);
		stage_end(&s, LAST + 1);
	}
	CHECK(stage_close(&s));
	free(s.r.received);
}
