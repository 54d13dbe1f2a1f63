// SPDX-License-Identifier: MIT
/*
 * Hosts of the device: initializes the seat of a host, starts its services, and
 * releases all that it holds when it detaches. Record 0019.
 */
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

/* ---- the area, and the host's own tables ---- */

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

/* Where each table of a host's state starts. */
struct layout {
	uint64_t shares, rings, processes, queues, channels, joints, size;
};

static struct layout layout_of(const struct nfc_config *c)
{
	uint64_t processes = (uint64_t)c->islands * c->engines_me * c->contexts;
	struct layout l;

	l.shares = round_up(sizeof(struct nfc_host), NFC_SLOT_SIZE);
	l.rings = l.shares + round_up(sizeof(struct nfc_share) * c->islands, 64);
	l.processes = l.rings +
		      round_up(sizeof(struct nfc_rings) * c->managers, 64);
	l.queues = l.processes +
		   round_up(sizeof(struct nfc_process) * processes, 64);
	l.channels = l.queues + sizeof(struct nfc_slot) * c->window * processes;
	l.joints = l.channels +
		   round_up(sizeof(struct nfc_channel) * (uint64_t)c->channels,
			    64);
	l.size = l.joints + sizeof(struct nfc_joint) * NFC_JOINTS;
	return l;
}

uint64_t nfc_host_size(const struct nfc_config *c)
{
	return layout_of(c).size;
}

static void init_rings(struct nfc_rings *rings, struct nfc_share *share,
		       uint32_t index)
{
	const struct nfc_config *c = &share->host->dev->config;
	uint8_t *at = (uint8_t *)share->host->area + NFC_PAGE_SIZE +
		      park_size(c) + index * mailbox_stride(c);

	rings->host = share->host;
	rings->share = share;
	rings->island = index / (c->managers / c->islands);
	rings->h2d_head = (void *)&((struct nfc_mailbox *)at)->h2d_head;
	rings->d2h_head = (void *)&((struct nfc_mailbox *)at)->d2h_head;
	rings->h2d = (struct nfc_slot *)(at + sizeof(struct nfc_mailbox));
	rings->d2h = rings->h2d + c->slots;
	rings->mask = c->slots - 1;
	rings->shift = log2_of(c->slots);
	rings->asked = UINT64_MAX;
	rings->limit = NFC_UNMET;
}

static void init_shares(struct nfc_host *host, const struct layout *l)
{
	struct nfc_device *dev = host->dev;
	const struct nfc_config *c = &dev->config;
	uint32_t mailboxes = c->managers / c->islands;
	uint32_t contexts = c->engines_me * c->contexts;
	uint8_t *self = (uint8_t *)host;
	struct nfc_slot *queues = (void *)(self + l->queues);

	host->shares = (void *)(self + l->shares);
	for (uint32_t i = 0; i < c->islands; i++) {
		struct nfc_share *share = &host->shares[i];

		share->host = host;
		share->rings = (struct nfc_rings *)(self + l->rings) +
			       i * mailboxes;
		share->processes = (struct nfc_process *)(self + l->processes) +
				   (uint64_t)i * contexts;
		for (uint32_t j = 0; j < mailboxes; j++)
			init_rings(&share->rings[j], share, i * mailboxes + j);
		for (uint32_t j = 0; j < contexts; j++) {
			struct nfc_process *p = &share->processes[j];
			uint64_t index = (uint64_t)i * contexts + j;

			p->island = &dev->islands[i];
			p->host = host;
			p->share = share;
			p->transfer.queue = queues + index * c->window;
		}
	}
}

static void init_area(struct nfc_host *host)
{
	const struct nfc_config *c = &host->dev->config;
	struct nfc_area *area = host->area;

	area->magic = NFC_MAGIC;
	area->major = NFC_ABI_MAJOR;
	area->minor = NFC_ABI_MINOR;
	area->size = nfc_area_size(c);
	area->park_offset = NFC_PAGE_SIZE;
	area->mailbox_offset = NFC_PAGE_SIZE + park_size(c);
	area->mailbox_stride = mailbox_stride(c);
	area->epoch = host->epoch;
	area->state = NFC_DEVICE_BOOTING;
}

static struct nfc_host *init_host(struct nfc_device *dev, uint32_t index,
				  const struct nfc_seat *seat)
{
	const struct nfc_config *c = &dev->config;
	struct layout l = layout_of(c);
	struct nfc_host *host = seat->state;

	host->dev = dev;
	host->index = index;
	host->area = seat->area;
	host->park = (void *)((uint8_t *)seat->area + NFC_PAGE_SIZE);
	host->channels = (void *)((uint8_t *)host + l.channels);
	host->joints = (void *)((uint8_t *)host + l.joints);
	host->channel_count = seat->channels ? seat->channels : c->channels;
	host->process_count = seat->processes ? seat->processes :
						c->engines_me * c->contexts;
	host->epoch = seat->epoch;
	host->no_load = seat->no_load;
	host->user = seat->user;
	host->next_generation = 1;
	for (int i = 0; i < NFC_MEMORY_COUNT; i++)
		host->memory[i] = seat->memory[i];
	init_shares(host, &l);
	init_area(host);
	return host;
}

static uint32_t capabilities(const struct nfc_host *host)
{
	return (nfc_may_load(host) ? NFC_CAP_LOAD : 0) |
	       (host->dev->config.eager ? NFC_CAP_EAGER : 0) |
	       (host->dev->config.runs ? NFC_CAP_RUNS : 0) | NFC_CAP_ROUNDS |
	       NFC_CAP_READY | NFC_CAP_NAMES | NFC_CAP_CALLS | NFC_CAP_MOVE |
	       (host->dev->port->sum ? NFC_CAP_SUM : 0) |
	       (nfc_may_post(host->dev) ? NFC_CAP_HOST_RINGS : NFC_CAP_NEWS);
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
			.capabilities = capabilities(host),
			.channels = host->channel_count,
			.mailboxes = (uint16_t)c->managers,
			.islands = (uint16_t)c->islands,
			.slots = c->slots,
			.window = c->window,
			.beat_ms = c->beat_ms,
			.max_transfer = (1ull << 48) - 1,
			.read_managers = c->managers,
			.write_managers = c->managers,
			.contexts = c->islands * host->process_count,
			.eager = (uint16_t)c->eager,
		} };

	for (int i = 0; i < 7; i++)
		slot->payload[i] = u.word[i];
	slot->header = nfc_header(NFC_TYPE_HELLO, NFC_PAYLOAD_SIZE, host->epoch,
				  0, 0);
}

/* ---- attaching ---- */

/* Runs fn on an island. */
typedef int (*call_fn)(struct nfc_island *to,
		       int (*fn)(struct nfc_island *island, void *arg),
		       void *arg);

/* No island runs yet. */
static int at_once(struct nfc_island *to,
		   int (*fn)(struct nfc_island *island, void *arg), void *arg)
{
	return fn(to, arg);
}

static int join_here(struct nfc_island *island, void *arg)
{
	struct nfc_host *host = arg;
	struct nfc_share *share = &host->shares[island->index];

	share->there = true;
	share->next = island->shares;
	island->shares = share;
	return 0;
}

static int open_control_here(struct nfc_island *island, void *arg)
{
	struct nfc_control control = { .a = NFC_TARGET_CONTROL };

	(void)island;
	return nfc_channel_open(arg, &control);
}

static int start_log_here(struct nfc_island *island, void *arg)
{
	(void)island;
	return nfc_log_start(arg);
}

/* Every host has the services, and the control channel open. */
static int start_services(struct nfc_host *host, call_fn call)
{
	int rc = 0;

	for (const struct nfc_program *s = nfc_services; s->name && !rc; s++) {
		struct nfc_start start = {
			.host = host,
			.entry = { .program = s },
			.first = (uint32_t)(s - nfc_services),
			.ports = 1,
		};

		rc = call(nfc_island_of(host, start.first), nfc_process_start,
			  &start);
	}
	if (!rc)
		rc = call(nfc_island_of(host, NFC_TARGET_LOG), start_log_here,
			  host);
	if (!rc)
		rc = call(nfc_island_of(host, NFC_TARGET_CONTROL),
			  open_control_here, host);
	return rc;
}

static int attach(struct nfc_device *dev, uint32_t index,
		  const struct nfc_seat *seat, call_fn call)
{
	struct nfc_host *host = init_host(dev, index, seat);
	int rc = 0;

	nfc_heartbeat_begin(host);
	for (uint32_t i = 0; i < dev->config.islands && !rc; i++)
		rc = call(&dev->islands[i], join_here, host);
	if (!rc)
		rc = start_services(host, call);
	if (rc)
		return rc;
	nfc_heartbeat_begin(host); /* anew: it counts the services */
	write_hello(host);
	atomic_store_explicit((_Atomic nfc_le32 *)&host->area->state,
			      NFC_DEVICE_READY,
			      memory_order_release); /* SYNC: state */
	return 0;
}

int nfc_host_boot(struct nfc_device *dev, uint32_t index,
		  const struct nfc_seat *seat)
{
	return attach(dev, index, seat, at_once);
}

bool nfc_seat_fits(const struct nfc_config *c, const struct nfc_seat *seat)
{
	return (!seat->channels || (seat->channels >= NFC_TARGET_FIRST &&
				    seat->channels >= c->managers &&
				    seat->channels <= c->channels)) &&
	       (!seat->processes ||
		(seat->processes >= NFC_PROCESSES_MIN &&
		 seat->processes <= c->engines_me * c->contexts));
}

int nfc_host_attach(struct nfc_device *dev, uint32_t index,
		    const struct nfc_seat *seat)
{
	int rc;

	if (index >= dev->config.hosts)
		return -NFC_EINVAL;
	if (dev->host[index])
		return -NFC_EBUSY;
	if (!nfc_seat_fits(&dev->config, seat))
		return -NFC_EINVAL;
	rc = attach(dev, index, seat, nfc_outside_call);
	if (rc)
		nfc_host_detach(dev, index);
	return rc;
}

/* ---- detaching ---- */

/*
 * No bytes of the host move any more; -NFC_EBUSY while an engine holds a piece.
 * A transfer that is stopped here leaves the list with the island's next pass.
 */
static int stop_moving(struct nfc_share *share)
{
	for (struct nfc_transfer *t = share->active; t; t = t->next)
		nfc_transfer_abort(t, NFC_ERESET, false);
	return share->active ? -NFC_EBUSY : 0;
}

/* -NFC_EBUSY while another island has a pointer to a process's stack. */
static int stop_calling(const struct nfc_island *island,
			const struct nfc_share *share)
{
	for (uint32_t i = 0; i < island->process_count; i++)
		if (share->processes[i].calling)
			return -NFC_EBUSY;
	return 0;
}

/* Free what the processes hold in the port. None of them runs again. */
static void end_processes(const struct nfc_port *port, uint32_t count,
			  struct nfc_process *p)
{
	for (uint32_t i = 0; i < count; i++) {
		if (p[i].stack.base)
			port->stack_free(port->self, &p[i].stack);
		atomic_store(&p[i].id, 0);
	}
}

static bool is_of(const struct nfc_channel *ch, const struct nfc_share *share)
{
	return ch->rings->share == share;
}

/* Take what is the host's out of the island's lists. */
static void forget(struct nfc_island *island, const struct nfc_share *share)
{
	struct nfc_channel **recall = &island->recalls;
	struct nfc_process *p = island->ready_first, *next;

	while (*recall)
		if (is_of(*recall, share))
			*recall = (*recall)->recall_next;
		else
			recall = &(*recall)->recall_next;
	for (struct nfc_channel *ch = island->timed, *after; ch; ch = after) {
		after = ch->timed_next;
		if (is_of(ch, share))
			nfc_unpark(ch);
	}
	island->ready_first = NULL;
	island->ready_last = NULL;
	for (; p; p = next) {
		next = p->next;
		if (p->share != share)
			nfc_make_ready(p);
	}
}

/* The host leaves this island; -NFC_EBUSY: not yet. */
static int leave_here(struct nfc_island *island, void *arg)
{
	struct nfc_host *host = arg;
	struct nfc_share *share = &host->shares[island->index];
	struct nfc_share **link = &island->shares;
	int rc;

	for (uint32_t i = 0; i < island->rings_count; i++)
		nfc_read_last(&share->rings[i]);
	rc = stop_moving(share);
	if (!rc)
		rc = stop_calling(island, share);
	if (!rc)
		rc = nfc_joints_quiet(host);
	if (!rc)
		rc = nfc_guests_part(island, host);
	if (rc)
		return rc;
	nfc_relays_leave(island, host);
	forget(island, share);
	while (*link != share)
		link = &(*link)->next;
	*link = share->next;
	share->there = false;
	return 0;
}

void nfc_host_fini(struct nfc_host *host)
{
	struct nfc_device *dev = host->dev;

	for (uint32_t i = 0; i < dev->config.islands; i++)
		end_processes(dev->port, dev->islands[i].process_count,
			      host->shares[i].processes);
	nfc_heartbeat_end(host);
	nfc_programs_drop(host);
	host->area->state = NFC_DEVICE_OFF;
}

void nfc_host_detach(struct nfc_device *dev, uint32_t index)
{
	struct nfc_host *host = dev->host[index];
	const struct nfc_port *port = dev->port;
	bool busy = true;

	atomic_store(&host->detaching, true);
	while (busy && !atomic_load(&dev->halt)) {
		busy = false;
		for (uint32_t i = 0; i < dev->config.islands; i++)
			if (host->shares[i].there) /* a late island may not be */
				busy |= nfc_outside_call(&dev->islands[i],
							 leave_here, host) != 0;
		if (busy)
			port->yield(port->self);
	}
	if (!busy)
		nfc_host_fini(host);
}
