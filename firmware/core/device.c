// SPDX-License-Identifier: MIT
/* The device as a whole: its shape, its memory, boot and halt. */
#include "../programs/programs.h"
#include "calls.h"

static uint64_t round_up(uint64_t n, uint64_t to)
{
	return (n + to - 1) & ~(to - 1);
}

static uint32_t log2_of(uint32_t n)
{
	uint32_t shift = 0;

	while (n >> (shift + 1))
		shift++;
	return shift;
}

static bool is_power_of_two(uint64_t n)
{
	return n && !(n & (n - 1));
}

static uint32_t or_default(uint32_t value, uint32_t standard)
{
	return value ? value : standard;
}

static void fill_defaults(struct nfc_config *c)
{
	static const uint64_t memory[NFC_MEMORY_COUNT] = {
		[NFC_CLS] = 64ull << 10,
		[NFC_CTM] = 256ull << 10,
		[NFC_IMEM] = 4ull << 20,
		[NFC_EMEM] = 1ull << 30,
	};

	c->channels = or_default(c->channels, 1 << 16);
	c->managers = or_default(c->managers, 8);
	c->islands = or_default(c->islands, 1);
	c->engines_me = or_default(c->engines_me, 8);
	c->contexts = or_default(c->contexts, 8);
	c->slots = or_default(c->slots, 1024);
	c->window = or_default(c->window, 512);
	c->beat_ms = or_default(c->beat_ms, 100);
	c->stack = or_default(c->stack, 64 << 10);
	c->epoch = or_default(c->epoch, 1);
	for (int i = 0; i < NFC_MEMORY_COUNT; i++)
		if (!c->memory[i])
			c->memory[i] = memory[i];
}

int nfc_config_check(struct nfc_config *c)
{
	fill_defaults(c);
	if (c->channels < NFC_TARGET_FIRST || c->channels > NFC_CHANNELS_MAX ||
	    c->managers > NFC_MAILBOXES_MAX || c->islands > NFC_ISLANDS_MAX ||
	    c->managers % c->islands || c->managers > c->channels)
		return -NFC_EINVAL;
	if (!is_power_of_two(c->slots) || c->slots < NFC_SLOTS_MIN ||
	    c->slots > NFC_SLOTS_MAX || !is_power_of_two(c->window) ||
	    c->window > NFC_WINDOW_MAX)
		return -NFC_EINVAL;
	if (c->engines_me > 64 || c->contexts > 64 ||
	    c->engines_me * c->contexts < 8 || c->stack < NFC_STACK_MIN ||
	    c->stack > NFC_STACK_MAX || c->beat_ms > 60000 || c->runs > 1)
		return -NFC_EINVAL;
	for (int i = 0; i < NFC_MEMORY_COUNT; i++)
		if (c->memory[i] > 1ull << NFC_MEMORY_SHIFT ||
		    c->memory[i] & (NFC_PAGE_SIZE - 1))
			return -NFC_EINVAL;
	return 0;
}

static uint64_t park_size(const struct nfc_config *c)
{
	return round_up(sizeof(nfc_le32) * (uint64_t)c->channels, NFC_PAGE_SIZE);
}

static uint64_t mailbox_stride(const struct nfc_config *c)
{
	return round_up(sizeof(struct nfc_mailbox) +
				2 * sizeof(struct nfc_slot) * c->slots,
			NFC_PAGE_SIZE);
}

uint64_t nfc_area_size(const struct nfc_config *c)
{
	return NFC_PAGE_SIZE + park_size(c) + c->managers * mailbox_stride(c);
}

/* Where each table of the device's own memory starts. */
struct layout {
	uint64_t rings, islands, processes, queues, channels, size;
};

static struct layout layout_of(const struct nfc_config *c)
{
	uint64_t processes = (uint64_t)c->islands * c->engines_me * c->contexts;
	struct layout l;

	l.rings = round_up(sizeof(struct nfc_device), NFC_SLOT_SIZE);
	l.islands = l.rings +
		    round_up(sizeof(struct nfc_rings) * c->managers, 64);
	l.processes = l.islands +
		      round_up(sizeof(struct nfc_island) * c->islands, 64);
	l.queues = l.processes +
		   round_up(sizeof(struct nfc_process) * processes, 64);
	l.channels = l.queues + sizeof(struct nfc_slot) * c->window * processes;
	l.size = l.channels + sizeof(struct nfc_channel) * (uint64_t)c->channels;
	return l;
}

uint64_t nfc_device_size(const struct nfc_config *c)
{
	return layout_of(c).size;
}

static void init_rings(struct nfc_rings *rings, struct nfc_host *host,
		       uint32_t index)
{
	const struct nfc_config *c = &host->dev->config;
	struct nfc_area *area = host->area;
	uint8_t *at = (uint8_t *)area + area->mailbox_offset +
		      index * area->mailbox_stride;

	rings->host = host;
	rings->island = index / (c->managers / c->islands);
	rings->shared = (struct nfc_mailbox *)at;
	rings->h2d = (struct nfc_slot *)(rings->shared + 1);
	rings->d2h = rings->h2d + c->slots;
	rings->mask = c->slots - 1;
	rings->shift = log2_of(c->slots);
	rings->asked = UINT64_MAX;
}

static void init_host(struct nfc_host *host, struct nfc_device *dev,
		      struct nfc_area *area, struct nfc_channel *channels)
{
	const struct nfc_config *c = &dev->config;

	host->dev = dev;
	host->area = area;
	host->channels = channels;
	host->channel_count = c->channels;
	host->epoch = c->epoch;
	host->next_generation = 1;
	area->magic = NFC_MAGIC;
	area->major = NFC_ABI_MAJOR;
	area->minor = NFC_ABI_MINOR;
	area->size = nfc_area_size(c);
	area->park_offset = NFC_PAGE_SIZE;
	area->mailbox_offset = NFC_PAGE_SIZE + park_size(c);
	area->mailbox_stride = mailbox_stride(c);
	area->epoch = c->epoch;
	area->state = NFC_DEVICE_BOOTING;
	host->park = (void *)((uint8_t *)area + area->park_offset);
}

static void init_islands(struct nfc_device *dev, uint8_t *self,
			 const struct layout *l)
{
	const struct nfc_config *c = &dev->config;
	uint32_t each = c->engines_me * c->contexts;
	struct nfc_process *processes = (void *)(self + l->processes);
	struct nfc_slot *queues = (void *)(self + l->queues);
	struct nfc_rings *rings = (void *)(self + l->rings);

	for (uint32_t i = 0; i < c->islands; i++) {
		struct nfc_island *island = &dev->islands[i];

		island->dev = dev;
		island->index = i;
		island->rings_count = c->managers / c->islands;
		island->rings = &rings[i * island->rings_count];
		for (uint32_t j = 0; j < island->rings_count; j++)
			init_rings(&island->rings[j], dev->host,
				   i * island->rings_count + j);
		island->processes = processes + (uint64_t)i * each;
		island->process_count = each;
		island->timer = UINT64_MAX;
		nfc_read_clock(island);
		for (uint32_t j = 0; j < each; j++) {
			struct nfc_process *p = &island->processes[j];
			uint64_t index = (uint64_t)i * each + j;

			p->island = island;
			p->transfer.queue = queues + index * c->window;
		}
	}
}

static uint32_t capabilities(const struct nfc_device *dev)
{
	return (dev->port->load ? NFC_CAP_LOAD : 0) |
	       (dev->config.runs ? NFC_CAP_RUNS : 0);
}

static void write_hello(struct nfc_host *host)
{
	const struct nfc_config *c = &host->dev->config;
	struct nfc_slot *slot = &host->area->device_hello;
	union {
		struct nfc_hello hello;
		uint64_t word[7];
	} u = { .hello = {
			.magic = NFC_MAGIC,
			.major = NFC_ABI_MAJOR,
			.minor = NFC_ABI_MINOR,
			.capabilities = capabilities(host->dev),
			.channels = host->channel_count,
			.mailboxes = (uint16_t)c->managers,
			.islands = (uint16_t)c->islands,
			.slots = c->slots,
			.window = c->window,
			.beat_ms = c->beat_ms,
			.max_transfer = (1ull << 48) - 1,
			.read_managers = c->managers,
			.write_managers = c->managers,
			.contexts = c->islands * c->engines_me * c->contexts,
		} };

	for (int i = 0; i < 7; i++)
		slot->payload[i] = u.word[i];
	slot->header = nfc_header(NFC_TYPE_HELLO, NFC_PAYLOAD_SIZE, host->epoch,
				  0, 0);
}

/* Every host has the services, and the control channel open. */
static int start_services(struct nfc_host *host)
{
	struct nfc_control control = { .a = NFC_TARGET_CONTROL };
	int rc;

	for (const struct nfc_program *s = nfc_services; s->name; s++) {
		struct nfc_start start = {
			.host = host,
			.entry = { .program = s },
			.first = (uint32_t)(s - nfc_services),
			.ports = 1,
		};

		rc = nfc_process_start(nfc_island_of(host, start.first), &start);
		if (rc)
			return rc;
	}
	rc = nfc_log_start(host);
	if (rc)
		return rc;
	return nfc_channel_open(host, &control);
}

int nfc_device_init(struct nfc_device *dev, const struct nfc_config *config,
		    const struct nfc_port *port)
{
	uint8_t *self = (uint8_t *)dev;
	struct nfc_config checked = *config;
	struct nfc_host *host = dev->host;
	struct layout l;
	int rc = nfc_config_check(&checked);

	if (rc)
		return rc;
	l = layout_of(&checked);
	dev->config = checked;
	dev->port = port;
	dev->islands = (void *)(self + l.islands);
	dev->next_process = 1;
	init_host(host, dev, port->area, (void *)(self + l.channels));
	init_islands(dev, self, &l);
	rc = nfc_device_register(dev, nfc_programs);
	if (!rc)
		rc = start_services(host);
	if (rc) {
		nfc_device_fini(dev);
		return rc;
	}
	nfc_heartbeat(&dev->islands[0]);
	write_hello(host);
	atomic_store_explicit((_Atomic nfc_le32 *)&host->area->state,
			      NFC_DEVICE_READY, memory_order_release);
	return 0;
}

void nfc_device_halt(struct nfc_device *dev)
{
	atomic_store(&dev->halt, 1);
	for (uint32_t i = 0; i < dev->config.islands; i++)
		dev->port->wake(dev->port->self, i);
}

void nfc_device_fini(struct nfc_device *dev)
{
	for (uint32_t i = 0; i < dev->config.islands; i++) {
		struct nfc_island *island = &dev->islands[i];

		for (uint32_t j = 0; j < island->process_count; j++)
			if (island->processes[j].stack.base)
				dev->port->stack_free(
					dev->port->self,
					&island->processes[j].stack);
	}
	nfc_programs_drop(dev);
	dev->host->area->state = NFC_DEVICE_OFF;
}
