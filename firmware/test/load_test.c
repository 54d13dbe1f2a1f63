// SPDX-License-Identifier: MIT
/* Programs that are loaded: what is refused, replaced, and given back. */
#include <string.h>

#include "rig.h"

static struct nfc_control start(struct rig *r, const char *name)
{
	return host_control(r, NFC_CONTROL_START, 0, 1, 0, name);
}

static void loaded_main(struct nfc_process *self)
{
	nfc_log(self, "loaded");
}

static const struct nfc_program loaded_table[] = {
	{ NFC_PROGRAM_ABI, 0, "loaded", loaded_main },
	{ 0, 0, NULL, NULL },
};

static const struct nfc_program other_abi[] = {
	{ NFC_PROGRAM_ABI + 1, 0, "other", loaded_main },
	{ 0, 0, NULL, NULL },
};

static const struct nfc_program empty_table[] = {
	{ 0, 0, NULL, NULL },
};

static const struct nfc_program long_name[] = {
	{ NFC_PROGRAM_ABI, 0, "a name of twenty-four ch", loaded_main },
	{ 0, 0, NULL, NULL },
};

static const struct nfc_program no_main[] = {
	{ NFC_PROGRAM_ABI, 0, "no main", NULL },
	{ 0, 0, NULL, NULL },
};

static const struct nfc_program own_name[] = {
	{ NFC_PROGRAM_ABI, 0, "loaded", loaded_main },
	{ NFC_PROGRAM_ABI, 0, "sink", loaded_main },
	{ 0, 0, NULL, NULL },
};

static const struct nfc_program name_twice[] = {
	{ NFC_PROGRAM_ABI, 0, "loaded", loaded_main },
	{ NFC_PROGRAM_ABI, 0, "loaded", loaded_main },
	{ 0, 0, NULL, NULL },
};

static const struct nfc_program large_stack[] = {
	{ NFC_PROGRAM_ABI, 0, "loaded", loaded_main },
	{ NFC_PROGRAM_ABI, NFC_STACK_MAX + 1, "large", loaded_main },
	{ 0, 0, NULL, NULL },
};

static const struct nfc_program *load_table;
static int load_status;
static uint8_t load_first;

static int on_load(struct rig *r, const void *image, uint64_t size,
		   const struct nfc_program **table)
{
	CHECK_EQ(size, 5000);
	CHECK_EQ(((const uint8_t *)image)[0], load_first);
	(void)r;
	*table = load_table;
	return load_status;
}

/* LOAD as a host does it; returns the reply. */
static struct nfc_control load(struct rig *r, uint64_t said, uint64_t size)
{
	struct nfc_control c = { .op = NFC_CONTROL_LOAD,
				 .a = said,
				 .request = 9 };
	uint8_t *image = host_buffer(r, size, 3);
	uint64_t id = host_direct(r, 0, &c, sizeof(c)), reply;
	struct nfc_ack ack;
	struct nfc_slot slot;

	load_first = image[0];
	host_expect_ack(r, 0, NFC_TYPE_ACK, NFC_H2D, id, NFC_STATE_CONSUMED, 0);
	id = host_begin(r, 0, size, 0);
	ack = host_drive(r, 0, NFC_H2D, id, image, size);
	if (ack.state == NFC_STATE_DONE)
		host_note(r, 0, NFC_TYPE_FIN, NFC_H2D, id);
	reply = r->channel[0].next[NFC_D2H]++;
	slot = host_expect(r, 0, NFC_TYPE_DIRECT, reply);
	host_reply(r, 0, NFC_TYPE_ACK, NFC_D2H, reply, NFC_STATE_CONSUMED, 0, 0);
	rig_step(r);
	memcpy(&c, slot.payload, sizeof(c));
	return c;
}

static uint32_t program_count(const struct rig *r)
{
	return r->dev->program_count + r->dev->host[0]->program_count;
}

CASE(load_adds_programs)
{
	struct rig *r = rig_new(NULL);
	struct nfc_control c;

	r->load = on_load;
	load_table = loaded_table;
	load_status = 0;
	c = load(r, 5000, 5000);
	CHECK_EQ(c.status, NFC_OK);
	CHECK(!strcmp((char *)c.name, "loaded"));
	CHECK_EQ(start(r, "loaded").status, NFC_OK);
	rig_step(r);
	CHECK(!strcmp(r->log, "loaded"));
	rig_free(r);
}

CASE(load_is_refused)
{
	static const struct {
		const struct nfc_program *table;
		int port;
		uint32_t status;
	} rows[] = {
		{ other_abi, 0, NFC_EABI },
		{ empty_table, 0, NFC_EINVAL },
		{ long_name, 0, NFC_EINVAL },
		{ no_main, 0, NFC_EINVAL },
		{ name_twice, 0, NFC_EINVAL },
		{ own_name, 0, NFC_EBUSY },
		{ large_stack, 0, NFC_ETOOLARGE },
		{ loaded_table, -NFC_EABI, NFC_EABI },
	};
	struct rig *r = rig_new(NULL);
	uint32_t programs = program_count(r);
	uint64_t before =
		host_control(r, NFC_CONTROL_MEMORY, NFC_EMEM, 0, 0, NULL).c;

	r->load = on_load;
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		load_table = rows[i].table;
		load_status = rows[i].port;
		CHECK_EQ(load(r, 5000, 5000).status, rows[i].status);
		CHECK_EQ(r->images, 0);
		CHECK_EQ(program_count(r), programs);
	}
	CHECK_EQ(start(r, "loaded").status, NFC_ENOPROGRAM);
	CHECK_EQ(load(r, 5000, 4999).status, NFC_ESIZE);
	CHECK_EQ(load(r, 0, 5000).status, NFC_ENOMEM);
	CHECK_EQ(load(r, 8 << 20, 5000).status, NFC_ENOMEM);
	CHECK_EQ(load(r, 1ull << 40, 5000).status, NFC_ETOOLARGE);
	CHECK_EQ(start(r, "other").status, NFC_ENOPROGRAM);
	CHECK_EQ(host_control(r, NFC_CONTROL_MEMORY, NFC_EMEM, 0, 0, NULL).c,
		 before);
	rig_free(r);
}

/* The reply has the reason as text, of the table or of the port. */
CASE(a_refusal_has_a_reason)
{
	static const struct {
		const struct nfc_program *table;
		const char *why;
	} rows[] = {
		{ other_abi, "was built for another version" },
		{ empty_table, "has no programs" },
		{ long_name, "has a name of no or over 23 characters" },
		{ no_main, "has a program without a function" },
		{ own_name, "has a name that one of the device's has" },
		{ name_twice, "has two programs of one name" },
		{ large_stack, "asks for a stack over 16 MiB" },
	};
	struct rig *r = rig_new(NULL);

	r->load = on_load;
	load_status = 0;
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		struct nfc_control c;
		char why[NFC_WHY_SIZE];

		load_table = rows[i].table;
		c = load(r, 5000, 5000);
		memcpy(why, (uint8_t *)&c + offsetof(struct nfc_control, b),
		       sizeof(why));
		CHECK(!strcmp(why, rows[i].why));
		CHECK(!strncmp(r->log, "load: the image ", 16));
		CHECK(!strcmp(r->log + 16, rows[i].why));
	}
	rig_free(r);
}

CASE(load_without_a_loader)
{
	struct rig *r = rig_new(NULL);

	r->port.load = NULL;
	CHECK_EQ(load(r, 5000, 5000).status, NFC_ENOTSUP);
	rig_free(r);
}

/* ---- replacing ---- */

static void waiting_main(struct nfc_process *self)
{
	while (!nfc_stopped(self))
		nfc_sleep(self, 1000000000);
}

static const struct nfc_program pair[] = {
	{ NFC_PROGRAM_ABI, 0, "one", waiting_main },
	{ NFC_PROGRAM_ABI, 0, "two", waiting_main },
	{ 0, 0, NULL, NULL },
};

static void stop(struct rig *r, uint64_t process)
{
	CHECK_EQ(host_control(r, NFC_CONTROL_STOP, process, 0, 0, NULL).status,
		 NFC_EBUSY);
	rig_step(r);
}

/* An image is freed when no name leads to it and no process runs it. */
CASE(a_replaced_image_stays_while_it_runs)
{
	struct rig *r = rig_new(NULL);
	uint32_t programs = program_count(r);
	struct nfc_control old, other;

	r->load = on_load;
	load_status = 0;
	load_table = pair;
	CHECK_EQ(load(r, 5000, 5000).status, NFC_OK);
	old = start(r, "one");
	other = start(r, "two");
	CHECK_EQ(old.status | other.status, NFC_OK);
	for (int i = 0; i < 2 * NFC_IMAGES; i++) {
		CHECK_EQ(load(r, 5000, 5000).status, NFC_OK);
		CHECK_EQ(r->images, 2);
		CHECK_EQ(program_count(r), programs + 2);
	}
	stop(r, old.a);
	CHECK_EQ(r->images, 2);
	stop(r, other.a);
	CHECK_EQ(r->images, 1);
	rig_free(r);
}

/* A name is replaced for itself: the image stays for its other one. */
CASE(a_program_is_replaced_for_itself)
{
	struct rig *r = rig_new(NULL);

	r->load = on_load;
	load_status = 0;
	load_table = pair;
	CHECK_EQ(load(r, 5000, 5000).status, NFC_OK);
	load_table = pair + 1; /* "two" alone */
	for (int i = 0; i < 3; i++) {
		CHECK_EQ(load(r, 5000, 5000).status, NFC_OK);
		CHECK_EQ(r->images, 2);
	}
	load_table = pair;
	CHECK_EQ(load(r, 5000, 5000).status, NFC_OK);
	CHECK_EQ(r->images, 1);
	rig_free(r);
}

/* There are more places for images than contexts that may keep one. */
CASE(each_process_may_run_another_image)
{
	struct rig *r = rig_new(NULL);
	struct nfc_control first = { 0 };
	int n = 0;

	r->load = on_load;
	load_status = 0;
	load_table = pair;
	for (struct nfc_control c = { 0 }; !c.status; n++) {
		CHECK_EQ(load(r, 5000, 5000).status, NFC_OK);
		c = start(r, "one");
		if (!n)
			first = c;
	}
	CHECK_EQ(r->images, n); /* contexts end before images do */
	CHECK_EQ(load(r, 5000, 5000).status, NFC_OK);
	CHECK_EQ(r->images, n);
	stop(r, first.a);
	CHECK_EQ(r->images, n - 1);
	CHECK_EQ(start(r, "one").status, NFC_OK);
	rig_free(r);
}

/* ---- stacks ---- */

static void sized_main(struct nfc_process *self)
{
	CHECK_EQ(self->stack.size, nfc_argument(self));
	waiting_main(self);
}

static const struct nfc_program sized[] = {
	{ NFC_PROGRAM_ABI, 0, "standard", sized_main },
	{ NFC_PROGRAM_ABI, 1, "least", sized_main },
	{ NFC_PROGRAM_ABI, 100000, "odd", sized_main },
	{ NFC_PROGRAM_ABI, 1 << 20, "large", sized_main },
	{ 0, 0, NULL, NULL },
};

/* The port is asked for what the program asks for, in any context. */
CASE(stacks_are_what_programs_ask_for)
{
	static const uint64_t size[] = { 64 << 10, NFC_STACK_MIN, 100000,
					 1 << 20 };
	struct rig *r = rig_new(NULL);
	unsigned int stacks = r->stacks;

	r->load = on_load;
	load_status = 0;
	load_table = sized;
	CHECK_EQ(load(r, 5000, 5000).status, NFC_OK);
	for (int i = 0; i < 40; i++) {
		struct nfc_control c = host_control(r, NFC_CONTROL_START, 0, 1,
						    size[i % 4],
						    sized[i % 4].name);

		CHECK_EQ(c.status, NFC_OK);
		stop(r, c.a);
		CHECK_EQ(r->stacks, stacks + 1); /* one context does */
	}
	rig_free(r);
}
