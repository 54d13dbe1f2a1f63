// SPDX-License-Identifier: MIT
/* The targets that are always there. Each is an ordinary process. */
#include "../programs/programs.h"
#include "calls.h"

enum {
	IMAGE_MAX = 64 << 20, /* bytes of a program image */
};

/* ---- control ---- */

/*
 * -NFC_EBUSY until the process has returned, so always the first time; -NFC_EINVAL if
 * there is none of that id (any more), or it is a service.
 */
static int control_stop(const struct nfc_process *self,
			const struct nfc_control *c)
{
	struct nfc_process *p = nfc_process_running(self->host, c->a);

	if (!p || p->service)
		return -NFC_EINVAL;
	nfc_process_stop_later(p, c->a);
	return -NFC_EBUSY;
}

struct open {
	struct nfc_host *host;
	struct nfc_control *control;
};

static int open_here(struct nfc_island *island, void *arg)
{
	struct open *open = arg;

	(void)island;
	return nfc_channel_open(open->host, open->control);
}

static int control_open(struct nfc_process *self, struct nfc_control *c)
{
	struct open open = { self->host, c };

	if (c->a >= self->host->channel_count || c->a == NFC_TARGET_CONTROL)
		return -NFC_ENOTARGET;
	return nfc_island_call(self, nfc_island_of(self->host, (uint32_t)c->a),
			       open_here, &open);
}

static int start_here(struct nfc_island *island, void *arg)
{
	struct nfc_start *start = arg;

	start->first = nfc_free_targets(island, start->host, start->ports);
	return start->first ? nfc_process_start(island, start) : -NFC_ENOMEM;
}

/*
 * Islands take processes in turn. One that lacks the targets or a context, or does not
 * answer, is passed over.
 */
static int start_anywhere(struct nfc_process *self, struct nfc_start *start)
{
	struct nfc_device *dev = self->island->dev;
	uint32_t count = dev->config.islands, first = self->host->next_island;
	int rc = -NFC_ENOMEM;

	for (uint32_t i = 0; i < count; i++) {
		uint32_t at = (first + i) % count;

		rc = nfc_island_call(self, &dev->islands[at], start_here, start);
		if (!rc)
			self->host->next_island = (at + 1) % count;
		if (rc != -NFC_ENOMEM && rc != -NFC_ETIMEOUT)
			break;
	}
	return rc;
}

static int start_at(struct nfc_process *self, struct nfc_start *start)
{
	struct nfc_island *island = nfc_island_of(self->host, start->first);

	return nfc_island_call(self, island, nfc_process_start, start);
}

static int control_start(struct nfc_process *self, struct nfc_control *c)
{
	uint32_t channels = self->host->channel_count;
	struct nfc_start start = {
		.host = self->host,
		.first = (uint32_t)c->a,
		.ports = (uint32_t)c->b,
		.argument = c->c,
	};
	int rc;

	if (c->name[NFC_NAME_SIZE - 1] || !c->b || c->b > channels ||
	    c->a > channels - c->b || (c->a && c->a < NFC_TARGET_FIRST))
		return -NFC_EINVAL;
	if (!nfc_program_use(self->host, (const char *)c->name, &start.entry))
		return -NFC_ENOPROGRAM;
	rc = c->a ? start_at(self, &start) : start_anywhere(self, &start);
	if (rc)
		nfc_program_leave(self->host, start.entry.loaded);
	c->a = start.process;
	c->b = start.first;
	return rc;
}

static int control_listen(struct nfc_process *self, struct nfc_control *c)
{
	struct nfc_start start = {
		.host = self->host,
		.entry = { .program = &nfc_listen_program },
		.ports = 1,
	};
	int rc = nfc_listen(self->host, c, &start.argument);

	if (rc < 0)
		return rc;
	c->c = (uint64_t)rc;
	rc = start_anywhere(self, &start);
	if (rc)
		nfc_unlisten(self->host, start.argument);
	else
		nfc_listening(self->host, start.argument, start.first);
	c->a = start.process;
	c->b = start.first;
	return rc;
}

static void put_name(struct nfc_control *c, const char *name)
{
	for (int i = 0; i < NFC_NAME_SIZE - 1 && name[i]; i++)
		c->name[i] = (uint8_t)name[i];
}

/* Report why an image is refused, in the reply and in the log. */
static void put_why(struct nfc_process *self, struct nfc_control *c,
		    const char *why)
{
	char line[16 + NFC_WHY_SIZE] = "load: the image ";
	uint64_t length = nfc_line_length(why, NFC_WHY_SIZE - 1);

	__builtin_memset((uint8_t *)c + offsetof(struct nfc_control, b), 0,
			 NFC_WHY_SIZE);
	__builtin_memcpy((uint8_t *)c + offsetof(struct nfc_control, b), why,
			 length);
	__builtin_memcpy(line + 16, why, length);
	nfc_log(self, line);
}

static int load_image(struct nfc_process *self, uint64_t address,
		      struct nfc_control *c)
{
	const struct nfc_port *port = self->island->dev->port;
	struct nfc_image image = { 0 };
	const char *why = image.why;
	int rc = port->load(port->self, nfc_at(self, address, c->a), c->a,
			    &nfc_api_table, &image);

	if (!rc) {
		rc = nfc_programs_add(self->host, &image, &why);
		if (rc)
			port->unload(port->self, image.handle);
		else
			put_name(c, image.table->name);
	}
	if (rc && why[0])
		put_why(self, c, why);
	return rc;
}

/*
 * The image follows as a transfer. A message in its place means the host gave
 * up: that is no error and gets no reply (1).
 */
static int control_load(struct nfc_process *self, struct nfc_channel *ch,
			struct nfc_control *c)
{
	uint64_t address = 0;
	struct nfc_offer offer;
	int rc = channel_offer(ch, &offer);

	if (rc)
		return rc;
	if (!offer.indirect)
		return 1;
	if (c->a && c->a <= IMAGE_MAX)
		address = nfc_alloc(self, NFC_EMEM, c->a);
	if (!address) {
		channel_read_ind(ch, UINT64_MAX, 1); /* refuses it */
		return c->a > IMAGE_MAX ? -NFC_ETOOLARGE : -NFC_ENOMEM;
	}
	rc = channel_read_ind(ch, address, c->a);
	if (!rc && !nfc_may_load(self->host))
		rc = -NFC_ENOTSUP;
	if (!rc) {
		nfc_prompt(self, 0);
		rc = load_image(self, address, c);
		nfc_prompt(self, 1);
	}
	nfc_free(self, address);
	return rc;
}

static int control_program(struct nfc_process *self, struct nfc_control *c)
{
	char name[NFC_NAME_SIZE];

	if (!nfc_program_name(self->host, c->a, name))
		return -NFC_ENOPROGRAM;
	put_name(c, name);
	return 0;
}

static int control_memory(struct nfc_process *self, struct nfc_control *c)
{
	struct nfc_device *dev = self->island->dev;
	enum nfc_memory type = (enum nfc_memory)c->a;

	if (c->a >= NFC_MEMORY_COUNT)
		return -NFC_EINVAL;
	c->a = (uint64_t)type << NFC_MEMORY_SHIFT;
	c->b = dev->config.memory[type];
	c->c = nfc_memory_available(self->host, type);
	return 0;
}

static int control(struct nfc_process *self, struct nfc_channel *ch,
		   struct nfc_control *c)
{
	if (c->status)
		return -NFC_EINVAL;
	switch (c->op) {
	case NFC_CONTROL_OPEN:
		return control_open(self, c);
	case NFC_CONTROL_START:
		return control_start(self, c);
	case NFC_CONTROL_STOP:
		return control_stop(self, c);
	case NFC_CONTROL_LOAD:
		return control_load(self, ch, c);
	case NFC_CONTROL_PROGRAM:
		return control_program(self, c);
	case NFC_CONTROL_MEMORY:
		return control_memory(self, c);
	case NFC_CONTROL_LISTEN:
		return control_listen(self, c);
	case NFC_CONTROL_CONNECT:
		return nfc_id_has_node(c->a) ?
			       nfc_guest_connect(self, c->a, c->b, &c->a) :
			       nfc_connect(self, c);
	case NFC_CONTROL_TICKET:
		return nfc_ticket(self, c);
	case NFC_CONTROL_VOID:
		return nfc_void(self, c);
	case NFC_CONTROL_CLAIM:
		return nfc_claim(self, c);
	case NFC_CONTROL_RUNNING:
		c->b = nfc_process_running(self->host, c->a) != NULL;
		return 0;
	default:
		return -NFC_ENOTSUP;
	}
}

static void control_main(struct nfc_process *self)
{
	struct nfc_channel *ch = nfc_channel_of(self, 0);

	nfc_prompt(self, 1);
	for (;;) {
		struct nfc_control c = { 0 };
		int rc = channel_read(ch, &c, sizeof(c));

		if (rc == -NFC_ESTOPPED)
			return;
		if (rc < 0)
			continue;
		rc = rc == sizeof(c) ? control(self, ch, &c) : -NFC_EINVAL;
		if (rc > 0)
			continue;
		c.status = (uint16_t)-rc;
		channel_write(ch, &c, sizeof(c));
	}
}

/* ---- log ---- */

/* Sends the kept lines to the receiver of the log target. */
static void log_writer(struct nfc_process *self)
{
	struct nfc_host *host = self->host;
	struct nfc_channel *ch = &host->channels[NFC_TARGET_LOG];

	for (;;) {
		char line[NFC_PAYLOAD_SIZE];
		uint64_t number, length;

		while (!nfc_oldest_line(host, line, &number))
			nfc_block(self, NFC_WAIT_LOG);
		length = nfc_line_length(line, NFC_PAYLOAD_SIZE);
		if (!channel_write(ch, line, length))
			nfc_forget_line(host, number);
		while (ch->open && nfc_d2h(ch)->closed) /* it takes none */
			nfc_await_open(self, ch);
	}
}

static const struct nfc_program log_writer_program = { NFC_PROGRAM_ABI, 0,
						       "log.writer",
						       log_writer };

int nfc_log_start(struct nfc_host *host)
{
	struct nfc_start writer = {
		.host = host, .entry = { .program = &log_writer_program }
	};

	return nfc_process_start(nfc_island_of(host, NFC_TARGET_LOG), &writer);
}

static void log_main(struct nfc_process *self)
{
	struct nfc_channel *ch = nfc_channel_of(self, 0);

	nfc_prompt(self, 1);
	for (;;) {
		char line[NFC_PAYLOAD_SIZE + 1] = { 0 };

		if (channel_read(ch, line, NFC_PAYLOAD_SIZE) >= 0)
			nfc_log(self, line);
	}
}

/* ---- telemetry and time ---- */

static void telemetry_main(struct nfc_process *self)
{
	struct nfc_channel *ch = nfc_channel_of(self, 0);

	nfc_prompt(self, 1);
	for (;;) {
		/* Room for any message: one that does not fit stays offered. */
		uint64_t ask[7] = { 0 }, value[7] = { 0 };
		uint32_t page = UINT32_MAX;
		int n = channel_read(ch, ask, sizeof(ask));

		if (n < 0)
			continue;
		if (n == sizeof(page))
			page = (uint32_t)ask[0];
		for (uint64_t i = 0; i < 7; i++)
			if (page * 7ull + i < NFC_COUNTERS)
				value[i] = nfc_counter_sum(
					self->host,
					(enum nfc_counter)(page * 7ull + i));
		channel_write(ch, value, sizeof(value));
	}
}

static void time_main(struct nfc_process *self)
{
	struct nfc_channel *ch = nfc_channel_of(self, 0);

	nfc_prompt(self, 1);
	for (;;) {
		uint64_t stamp[7] = { 0 }; /* room for any message */

		if (channel_read(ch, stamp, sizeof(stamp)) < 0)
			continue;
		stamp[1] = nfc_now(self);
		stamp[2] = nfc_now(self);
		channel_write(ch, stamp, 3 * sizeof(stamp[0]));
	}
}

/* By target id: enum nfc_target. */
const struct nfc_program nfc_services[] = {
	{ NFC_PROGRAM_ABI, 0, "control", control_main },
	{ NFC_PROGRAM_ABI, 0, "loopback", nfc_loopback_main },
	{ NFC_PROGRAM_ABI, 0, "log", log_main },
	{ NFC_PROGRAM_ABI, 0, "telemetry", telemetry_main },
	{ NFC_PROGRAM_ABI, 0, "time", time_main },
	{ 0, 0, NULL, NULL },
};
