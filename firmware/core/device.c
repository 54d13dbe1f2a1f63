// SPDX-License-Identifier: MIT
/* The device as a whole: its shape, boot and halt. */
#include "../programs/programs.h"
#include "calls.h"

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
	c->hosts = or_default(c->hosts, 1);
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
	    c->engines_me * c->contexts < NFC_PROCESSES_MIN ||
	    c->stack < NFC_STACK_MIN || c->stack > NFC_STACK_MAX ||
	    c->beat_ms > 60000 || c->runs > 1 || c->lone > 1 ||
	    c->hosts > NFC_HOSTS_MAX || c->eager > NFC_EAGER_ENTRIES)
		return -NFC_EINVAL;
	if (c->buffer > 1ull << NFC_MEMORY_SHIFT ||
	    c->buffer & (NFC_PAGE_SIZE - 1))
		return -NFC_EINVAL;
	for (int i = 0; i < NFC_MEMORY_COUNT; i++)
		if (c->memory[i] > 1ull << NFC_MEMORY_SHIFT ||
		    c->memory[i] & (NFC_PAGE_SIZE - 1) ||
		    c->access_ns[i] > 1000000000)
			return -NFC_EINVAL;
	return 0;
}

uint64_t nfc_device_size(const struct nfc_config *c)
{
	return sizeof(struct nfc_device) +
	       sizeof(struct nfc_island) * c->islands + NFC_SLOT_SIZE +
	       NFC_RELAYS * nfc_relay_room(c);
}

static void init_islands(struct nfc_device *dev)
{
	const struct nfc_config *c = &dev->config;
	uint8_t *end;

	dev->islands = (struct nfc_island *)(dev + 1);
	end = (uint8_t *)(dev->islands + c->islands);
	dev->relay_room = end + (-(uintptr_t)end & (NFC_SLOT_SIZE - 1));
	for (uint32_t i = 0; i < c->islands; i++) {
		struct nfc_island *island = &dev->islands[i];

		island->dev = dev;
		island->index = i;
		island->rings_count = c->managers / c->islands;
		island->process_count = c->engines_me * c->contexts;
		island->timer = UINT64_MAX;
		nfc_read_clock(island);
	}
}

int nfc_device_init(struct nfc_device *dev, const struct nfc_config *config,
		    const struct nfc_port *port, const struct nfc_seat *seat)
{
	struct nfc_config checked = *config;
	int rc = nfc_config_check(&checked);

	if (rc)
		return rc;
	dev->config = checked;
	dev->port = port;
	dev->next_process = 1;
	init_islands(dev);
	rc = nfc_device_register(dev, nfc_programs);
	/* what keeps an island to itself keeps it from other hosts */
	if (!rc && checked.hosts == 1 && checked.lone)
		rc = nfc_device_register(dev, nfc_lone_programs);
	if (!rc && seat)
		rc = nfc_host_boot(dev, 0, seat);
	if (rc)
		nfc_device_fini(dev);
	return rc;
}

void nfc_device_halt(struct nfc_device *dev)
{
	atomic_store(&dev->halt, 1);
	for (uint32_t i = 0; i < dev->config.islands; i++)
		dev->port->wake(dev->port->self, i);
}

void nfc_device_fini(struct nfc_device *dev)
{
	for (uint32_t i = 0; i < NFC_HOSTS_MAX; i++)
		if (dev->host[i])
			nfc_host_fini(dev->host[i]);
}
