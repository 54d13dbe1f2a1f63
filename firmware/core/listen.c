// SPDX-License-Identifier: MIT
/*
 * Hosts that connect to each other: a listener is a process that offers its host the
 * target of each host that connected, which that opens as any other. Record 0086.
 */
#include "calls.h"

/* ---- making one ---- */

void nfc_relay_bind(struct nfc_relay_end *end, uint32_t target)
{
	struct nfc_channel *ch = &end->host->channels[target];

	nfc_channel_init(&end->host->dev->islands[end->island], end->host,
			 target);
	ch->relay = end;
	end->ch = ch;
	atomic_store(&end->bound, 1);
}

void nfc_relay_init(struct nfc_relay *relay, uint32_t i, struct nfc_host *host,
		    const struct nfc_island *island)
{
	struct nfc_relay_end *end = &relay->end[i];

	*end = (struct nfc_relay_end){
		.relay = relay,
		.host = host,
		.island = island->index,
		.call = { .fn = nfc_read_relay, .arg = end },
	};
}

/* How many ends a host has. Must hold the device's lock. */
static uint32_t ends_of(const struct nfc_device *dev,
			const struct nfc_host *host)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < NFC_RELAYS; i++)
		for (int e = 0; e < 2; e++)
			n += dev->relay[i].end[e].host == host;
	return n;
}

/* Has a host as many from itself to another as it gets? Must hold the device's lock. */
static bool crowds(const struct nfc_device *dev, const struct nfc_host *from,
		   const struct nfc_host *to)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < NFC_RELAYS; i++)
		n += dev->relay[i].end[0].host == from &&
		     dev->relay[i].end[1].host == to;
	return from != to && n >= NFC_PAIR_RELAYS;
}

bool nfc_is_whose(const struct nfc_whose *a, const struct nfc_whose *b)
{
	return a->owner == b->owner && a->home == b->home;
}

/* Does a relay that waits belong to a host, here or of another node? */
static bool waits_from(const struct nfc_relay *r, const struct nfc_host *host,
		       const struct nfc_whose *whose)
{
	return host ? r->end[0].host == host :
		      r->way && nfc_is_whose(&r->whose, whose);
}

/*
 * Does a host, of this node or another, have as many relays in a listener's
 * queue as are left for others? This limits one that nobody accepts to half the
 * queue. The relay that is offered counts, too. Must hold the device's lock.
 */
static bool crowds_before(const struct nfc_listener *l,
			  const struct nfc_host *host,
			  const struct nfc_whose *whose)
{
	uint32_t left = NFC_LISTENER_WAITING - l->waiting, n = 0;

	for (const struct nfc_relay *r = l->first; r; r = r->next)
		n += waits_from(r, host, whose);
	if (l->offered) {
		left--;
		n += waits_from(l->offered, host, whose);
	}
	return n >= left;
}

/* Must hold the device's lock. */
struct nfc_relay *nfc_relay_free(struct nfc_device *dev)
{
	for (uint32_t i = 0; i < NFC_RELAYS; i++) {
		struct nfc_relay *relay = &dev->relay[i];

		if (!atomic_load(&relay->ends) && !atomic_load(&relay->calls))
			return relay;
	}
	return NULL;
}

/* Must hold the device's lock. */
struct nfc_listener *nfc_listener_at(struct nfc_device *dev, uint64_t id)
{
	for (uint32_t i = 0; i < NFC_LISTENERS; i++)
		if (dev->listener[i].host && dev->listener[i].id == id)
			return &dev->listener[i];
	return NULL;
}

/*
 * Does a listener belong to the user of a host? A host whose user is unknown
 * matches itself only.
 */
static bool is_own(const struct nfc_listener *l, const struct nfc_host *host)
{
	return l->host == host || (host->user && host->user == l->host->user);
}

bool nfc_may_connect(const struct nfc_listener *l, const struct nfc_host *host)
{
	return l->anyone || is_own(l, host);
}

int nfc_relays_bound(const struct nfc_device *dev, const struct nfc_host *from,
		     const struct nfc_host *to)
{
	if (crowds(dev, from, to))
		return -NFC_EBUSY;
	return ends_of(dev, to) < NFC_HOST_RELAYS &&
			       ends_of(dev, from) < NFC_HOST_RELAYS ?
		       0 :
		       -NFC_ENOMEM;
}

/* The last of those that wait. Must hold the device's lock. */
static void line_up(struct nfc_listener *l, struct nfc_relay *relay)
{
	struct nfc_relay **last = &l->first;

	relay->before = l;
	relay->number = ++l->host->dev->relay_number;
	relay->next = NULL;
	relay->has_guest = false;
	relay->ready = true;
	relay->event_word = 0;
	relay->until = 0;
	while (*last)
		last = &(*last)->next;
	*last = relay;
	l->waiting++;
}

int nfc_relay_queue(struct nfc_listener *l, struct nfc_host *host,
		    struct nfc_island *island, struct nfc_relay *relay)
{
	int rc = nfc_relays_bound(island->dev, host, l->host);

	if (crowds_before(l, host, NULL))
		return -NFC_EBUSY;
	if (rc || !relay)
		return rc ? rc : -NFC_ENOMEM;
	atomic_store(&relay->ends, 2);
	nfc_relay_init(relay, 0, host, island);
	nfc_relay_init(relay, 1, l->host, island);
	line_up(l, relay);
	return 0;
}

int nfc_far_guest_queue(struct nfc_listener *l, const struct nfc_whose *whose,
			const struct nfc_island *island, struct nfc_relay *relay)
{
	if (crowds_before(l, NULL, whose))
		return -NFC_EBUSY;
	if (!relay || ends_of(island->dev, l->host) >= NFC_HOST_RELAYS)
		return -NFC_ENOMEM;
	atomic_store(&relay->ends, 1);
	nfc_relay_init(relay, 0, NULL, island);
	nfc_relay_init(relay, 1, l->host, island);
	line_up(l, relay);
	relay->whose = *whose;
	relay->ready = false;
	return 0;
}

/*
 * The island of the process that accepts for a listener, NULL if none does (any
 * more).
 */
static struct nfc_island *accepts(struct nfc_device *dev,
				  const struct nfc_listener *l)
{
	struct nfc_island *island = NULL;

	nfc_lock(&dev->lock);
	if (l->ch)
		island = l->ch->island;
	nfc_unlock(&dev->lock);
	return island;
}

void nfc_listener_wake(struct nfc_device *dev, struct nfc_listener *l)
{
	struct nfc_island *to;

	if (atomic_exchange(&l->called, 1)) /* SYNC: relay */
		return;
	to = accepts(dev, l);
	if (to)
		nfc_call_post(to, &l->call);
	else
		atomic_store(&l->called, 0);
}

/* A struct nfc_call's fn. The place may be another listener's by now. */
static int on_connect(struct nfc_island *island, void *arg)
{
	struct nfc_listener *l = arg;
	struct nfc_island *at;
	struct nfc_process *p;

	atomic_exchange(&l->called, 0); /* SYNC: relay */
	at = accepts(island->dev, l);
	p = at == island ? l->ch->process : NULL;
	if (p && p->wait == NFC_WAIT_CONNECT)
		nfc_wake(p, 0);
	else if (at && at != island)
		nfc_listener_wake(island->dev, l);
	return NFC_AGAIN;
}

struct connecting {
	struct nfc_host *host; /* that connects */
	const char *name; /* of a listener; empty: its id is given */
	bool anyone; /* a listener of that name may be another user's */
	uint64_t id; /* of the listener */
	uint32_t target; /* out: of the host's own */
};

/* ---- names ---- */

static bool is_letter(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

static bool is_name_char(char c)
{
	return is_letter(c) || (c >= '0' && c <= '9') || c == '.' || c == '_' ||
	       c == '-';
}

/* A name, or none: it begins with a letter, and after its first NUL there is nothing else. */
static bool is_name(const char name[NFC_NAME_SIZE])
{
	uint32_t n = 0;

	while (n < NFC_NAME_SIZE && is_name_char(name[n]))
		n++;
	if (n == NFC_NAME_SIZE || (n && !is_letter(name[0])))
		return false;
	while (n < NFC_NAME_SIZE && !name[n])
		n++;
	return n == NFC_NAME_SIZE;
}

static bool is_named(const struct nfc_listener *l, const char *name)
{
	return l->host && name[0] &&
	       !__builtin_memcmp(l->name, name, NFC_NAME_SIZE);
}

/*
 * Does a name belong to another listener? Each user has names of its own, and so have the
 * listeners for anyone. Must hold the device's lock.
 */
static bool is_taken(const struct nfc_device *dev, const struct nfc_host *host,
		     const struct nfc_control *c)
{
	for (uint32_t i = 0; i < NFC_LISTENERS; i++) {
		const struct nfc_listener *l = &dev->listener[i];

		if (is_named(l, (const char *)c->name) &&
		    (is_own(l, host) || (l->anyone && c->a)))
			return true;
	}
	return false;
}

/*
 * The listener of a name that a host may connect to: one of its own user first, as
 * another user may listen by any name. Must hold the device's lock.
 */
static struct nfc_listener *listener_named(struct nfc_device *dev,
					   const struct connecting *c)
{
	struct nfc_listener *found = NULL;

	for (uint32_t i = 0; i < NFC_LISTENERS; i++) {
		struct nfc_listener *l = &dev->listener[i];

		if (!is_named(l, c->name))
			continue;
		if (is_own(l, c->host))
			return l;
		if (l->anyone && c->anyone)
			found = l;
	}
	return found;
}

/*
 * The island of a listener that a host may connect to, NULL if there is none. From here on
 * the listener's id is known.
 */
static struct nfc_island *reach(struct nfc_device *dev, struct connecting *c)
{
	struct nfc_island *island = NULL;
	struct nfc_listener *l;

	nfc_lock(&dev->lock);
	l = c->name[0] ? listener_named(dev, c) : nfc_listener_at(dev, c->id);
	if (l && l->ch && nfc_may_connect(l, c->host)) {
		island = l->ch->island;
		c->id = l->id;
	}
	nfc_unlock(&dev->lock);
	return island;
}

/*
 * On the listener's island, which owns both ends: a transfer between them needs
 * one owner.
 */
static int connect_host(struct nfc_island *island, void *arg)
{
	struct nfc_device *dev = island->dev;
	struct connecting *c = arg;
	struct nfc_relay *relay = NULL;
	struct nfc_listener *l;
	int rc = -NFC_ENOTARGET;

	if (nfc_is_detaching(c->host))
		return -NFC_ECLOSED;
	c->target = nfc_free_targets(island, c->host, 1);
	nfc_lock(&dev->lock);
	l = nfc_listener_at(dev, c->id);
	if (l && l->ch && l->ch->island == island &&
	    nfc_may_connect(l, c->host)) {
		relay = nfc_relay_free(dev);
		rc = c->target ? nfc_relay_queue(l, c->host, island, relay) :
				 -NFC_ENOMEM;
	}
	nfc_unlock(&dev->lock);
	if (rc)
		return rc;
	nfc_relay_bind(&relay->end[0], c->target);
	nfc_listener_wake(dev, l);
	return 0;
}

int nfc_connect(struct nfc_process *self, struct nfc_control *request)
{
	struct connecting c = { .host = self->host,
				.name = (const char *)request->name,
				.anyone = request->b,
				.id = request->a };
	struct nfc_island *island;
	int rc = -NFC_ENOTARGET;

	if (!is_name(c.name) || (c.name[0] && (c.id || request->b > 1)))
		return -NFC_EINVAL;
	island = reach(self->island->dev, &c);
	if (island)
		rc = nfc_island_call(self, island, connect_host, &c);
	if (!rc) {
		request->a = c.target;
		request->b = c.id;
	}
	return rc;
}

/* ---- listening ---- */

/* An id that no listener has. Must hold the device's lock. */
static uint32_t new_id(struct nfc_device *dev)
{
	uint32_t id;

	do
		id = NFC_TARGET_HOSTS + (dev->next_listener++ & 0xffff);
	while (nfc_listener_at(dev, id));
	return id;
}

/* A place, NULL if there is none, or the host has enough. Must hold the device's lock. */
static struct nfc_listener *free_listener(struct nfc_device *dev,
					  const struct nfc_host *host)
{
	struct nfc_listener *free = NULL;
	uint32_t has = 0;

	for (uint32_t i = 0; i < NFC_LISTENERS; i++) {
		struct nfc_listener *l = &dev->listener[i];

		has += l->host == host;
		if (!l->host)
			free = l;
	}
	return has < NFC_HOST_LISTENERS ? free : NULL;
}

/* A listener as a request asks for it. Must hold the device's lock. */
static void init_listener(struct nfc_listener *l, struct nfc_host *host,
			  const struct nfc_control *c)
{
	l->id = new_id(host->dev);
	__builtin_memcpy(l->name, c->name, sizeof(l->name));
	l->anyone = c->a;
	l->guests = (enum nfc_guests)c->b;
	l->call.fn = on_connect; /* it may be queued: the rest stays */
	l->call.arg = l;
	l->offered = NULL;
	l->host = host;
}

int nfc_listen(struct nfc_host *host, const struct nfc_control *c,
	       uint64_t *argument)
{
	struct nfc_device *dev = host->dev;
	struct nfc_listener *l = NULL;
	int rc;

	if (c->a > 1 || c->b > NFC_GUESTS_ALL || !is_name((const char *)c->name))
		return -NFC_EINVAL;
	if (dev->config.channels > NFC_TARGET_HOSTS)
		return -NFC_ENOTSUP;
	nfc_lock(&dev->lock);
	rc = is_taken(dev, host, c) ? -NFC_EBUSY : -NFC_ENOMEM;
	if (rc != -NFC_EBUSY)
		l = free_listener(dev, host);
	if (l) {
		init_listener(l, host, c);
		rc = (int)l->id;
		*argument = (uint64_t)(l - dev->listener);
	}
	nfc_unlock(&dev->lock);
	return rc;
}

/*
 * The word that the host gets about a waiting relay; 0: the target that it
 * gets.
 */
static uint64_t event_of(const struct nfc_relay *relay)
{
	return relay->has_guest ? relay->guest.id | NFC_ACCEPT_PROCESS :
				  relay->event_word;
}

/* The next relay in the queue; NULL: none. All: also one that is not ready. */
static struct nfc_relay *next_waiting(struct nfc_device *dev,
				      struct nfc_listener *l, bool all,
				      uint64_t *word)
{
	struct nfc_relay *relay;

	nfc_lock(&dev->lock);
	relay = l->first;
	while (relay && !relay->ready && !all)
		relay = relay->next;
	if (relay)
		nfc_relay_unqueue(relay);
	*word = relay ? event_of(relay) : 0;
	l->offered = relay;
	nfc_unlock(&dev->lock);
	return relay;
}

/*
 * The host was notified of a guest at another node and has a while to connect;
 * or it was not.
 */
static void end_far_guest(struct nfc_relay *relay, bool notified)
{
	if (!notified) {
		nfc_far_guest_leave(relay);
		return;
	}
	atomic_store(&relay->way->far.notified, true);
	nfc_joint_notify(relay->way);
}

/*
 * The host took the relay that it was offered, or the relay is refused. If the
 * relay is over already it may be in use for another connection.
 */
static void end_offer_of(struct nfc_device *dev, struct nfc_listener *l,
			 bool taken)
{
	struct nfc_relay *relay;

	nfc_lock(&dev->lock);
	relay = l->offered;
	l->offered = NULL;
	if (relay)
		atomic_fetch_add(&relay->calls, 1); /* it stays what it is */
	nfc_unlock(&dev->lock);
	if (!relay)
		return;
	if (relay->way && !relay->has_guest)
		end_far_guest(relay, taken);
	else if (!taken && relay->has_guest)
		nfc_guest_refuse(dev, relay);
	else if (!taken)
		nfc_relay_drop(&relay->end[1]);
	atomic_fetch_sub(&relay->calls, 1);
}

/*
 * Free the place and refuse all relays that wait. On the island of its process.
 */
static void end_listener(struct nfc_device *dev, struct nfc_listener *l)
{
	uint64_t word;

	nfc_lock(&dev->lock);
	l->ch = NULL; /* no relay is queued from here on */
	nfc_unlock(&dev->lock);
	while (next_waiting(dev, l, true, &word))
		end_offer_of(dev, l, false);
	nfc_lock(&dev->lock);
	l->host = NULL;
	nfc_unlock(&dev->lock);
}

void nfc_listening(struct nfc_host *host, uint64_t argument, uint32_t target)
{
	struct nfc_device *dev = host->dev;
	struct nfc_listener *l = &dev->listener[argument];

	nfc_lock(&dev->lock);
	if (l->host == host) /* it may be on its way out */
		l->ch = &host->channels[target];
	nfc_unlock(&dev->lock);
}

void nfc_unlisten(const struct nfc_host *host, uint64_t argument)
{
	struct nfc_device *dev = host->dev;
	struct nfc_listener *l = &dev->listener[argument];

	if (l->host == host)
		end_listener(dev, l);
}

/*
 * Offer the host a relay that connected, by its target here. One of this node
 * gets it now.
 */
static int offer_target(struct nfc_process *self, struct nfc_listener *l,
			struct nfc_relay *relay, uint64_t word)
{
	int rc = 0;

	if (!word) {
		word = nfc_free_targets(self->island, self->host, 1);
		if (word)
			nfc_relay_bind(&relay->end[1], (uint32_t)word);
	}
	if (word)
		rc = channel_write(nfc_channel_of(self, 0), &word, sizeof(word));
	end_offer_of(self->island->dev, l, word && !rc);
	return rc;
}

static void listen_main(struct nfc_process *self)
{
	struct nfc_device *dev = self->island->dev;
	struct nfc_listener *l = &dev->listener[self->argument];
	struct nfc_relay *relay;
	uint64_t word;
	int rc = 0;

	nfc_prompt(self, 1);
	while (!rc && !self->stop) {
		relay = next_waiting(dev, l, false, &word);
		if (relay)
			rc = offer_target(self, l, relay, word);
		else
			rc = nfc_block(self, NFC_WAIT_CONNECT);
	}
	end_listener(dev, l);
}

const struct nfc_program nfc_listen_program = { NFC_PROGRAM_ABI, 0, "listen",
						listen_main };

/* An end that a host has on an island, NULL if it has none (any more). */
static struct nfc_relay_end *end_here(struct nfc_island *island,
				      const struct nfc_host *host)
{
	struct nfc_device *dev = island->dev;
	struct nfc_relay_end *found = NULL;

	nfc_lock(&dev->lock);
	for (uint32_t i = 0; i < 2 * NFC_RELAYS && !found; i++) {
		struct nfc_relay_end *end = &dev->relay[i / 2].end[i % 2];

		if (end->host == host && end->island == island->index)
			found = end;
	}
	nfc_unlock(&dev->lock);
	return found;
}

static void leave(struct nfc_relay_end *end)
{
	struct nfc_relay *relay = end->relay;

	if (relay->way && !relay->has_guest)
		nfc_far_guest_leave(relay);
	else if (!relay->has_guest)
		nfc_relay_drop(end);
	else if (end == relay->end)
		nfc_guest_end(&relay->guest);
	else
		nfc_guest_lose(&relay->guest);
}

void nfc_relays_leave(struct nfc_island *island, const struct nfc_host *host)
{
	struct nfc_device *dev = island->dev;
	struct nfc_relay_end *end;

	for (uint32_t i = 0; i < NFC_LISTENERS; i++) {
		struct nfc_listener *l = &dev->listener[i];

		if (l->host == host && (!l->ch || l->ch->island == island))
			end_listener(dev, l);
	}
	while ((end = end_here(island, host)))
		leave(end);
}
