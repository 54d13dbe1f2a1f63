// SPDX-License-Identifier: MIT
/*
 * The creator of a ring: it makes the memory, passes it over a socket and
 * records the holder of each side (docs/ring.md; pkg/ring/server.go is the same
 * in Go). One thread does all of it, and bases no decision on the shared
 * memory.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "ring.h"

enum {
	CONNECTIONS = 64, /* at a time; more wait in the socket's queue */
	ASK_MS = 10000, /* how long one may take to say what it wants */
	RETRY_MS = 10, /* after a failure to accept: no descriptors, say */
	DEFAULT_PACKETS = 61, /* a prime */
	DEFAULT_PACKET = 8192,
};

/* The state of a connection. */
enum client_state {
	CLIENT_SILENT, /* has not sent its request */
	CLIENT_WAITS, /* for its role in the next generation */
	CLIENT_HOLDS,
};

struct ring_client {
	enum client_state state;
	enum nfcomms_ring_role role;
	int conn; /* -1: no client */
	int process; /* readable once it has died; -1 if it cannot be had */
	int64_t until; /* ms of the clock: then a silent one is closed */
	uint64_t since; /* the order in which they began to wait */
};

struct nfcomms_ring_owner {
	uint8_t *area;
	uint64_t bytes;
	int memory, event[2]; /* by role */
	int listener, quit;
	pthread_t thread;
	bool used; /* a role was given up in this generation */
	uint64_t came; /* to wait, so far */
	struct ring_client clients[CONNECTIONS];
};

static int64_t now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000ll + t.tv_nsec / 1000000;
}

/* ---- books ---- */

static struct ring_head *head_of(struct nfcomms_ring_owner *o,
				 enum nfcomms_ring_role role)
{
	return (struct ring_head *)(o->area + (role == NFCOMMS_RING_READ ?
						       OFF_READER :
						       OFF_WRITER));
}

static bool answer(int conn, uint32_t word)
{
	struct ring_message m = { RING_MAGIC, RING_VERSION, word };

	return send(conn, &m, sizeof(m), MSG_NOSIGNAL | MSG_DONTWAIT) ==
	       sizeof(m);
}

/* A client in a state that is about a role; the one that waits longest. */
static struct ring_client *find(struct nfcomms_ring_owner *o,
				enum client_state state,
				enum nfcomms_ring_role role)
{
	struct ring_client *found = NULL;

	for (struct ring_client *c = o->clients; c < o->clients + CONNECTIONS;
	     c++)
		if (c->conn >= 0 && c->state == state && c->role == role &&
		    (!found || c->since < found->since))
			found = c;
	return found;
}

static void forget(struct ring_client *c)
{
	if (c->process >= 0)
		close(c->process);
	close(c->conn);
	c->conn = c->process = -1;
}

/* Grant a role, unless its process has ended meanwhile. */
static bool give(struct ring_client *c)
{
	if (!answer(c->conn, ANSWER_OK))
		return false;
	c->state = CLIENT_HOLDS;
	return true;
}

static void leave(struct nfcomms_ring_owner *o, struct ring_client *c);

/* Begin the next generation, with those who wait for it. */
static void next_generation(struct nfcomms_ring_owner *o)
{
	struct ring_header *h = (struct ring_header *)o->area;

	o->used = false;
	for (int role = NFCOMMS_RING_WRITE; role <= NFCOMMS_RING_READ; role++) {
		struct ring_head *head = head_of(o,
						 (enum nfcomms_ring_role)role);

		atomic_store(&head->pos, POS_INIT);
		atomic_store(&head->parked, 0);
		atomic_store(&head->done, 0);
		atomic_store(&head->status, STATUS_INIT);
	}
	atomic_fetch_add(&h->generation, 1);
	for (int role = NFCOMMS_RING_WRITE; role <= NFCOMMS_RING_READ; role++) {
		struct ring_client *c = find(o, CLIENT_WAITS,
					     (enum nfcomms_ring_role)role);

		if (c && !give(c))
			leave(o, c);
	}
}

/* Take what a connection holds that has ended. */
static void leave(struct nfcomms_ring_owner *o, struct ring_client *c)
{
	bool held = c->state == CLIENT_HOLDS;
	struct ring_head *h = head_of(o, c->role);

	if (held) {
		o->used = true;
		if (atomic_load(&h->status) != STATUS_CLOSED)
			atomic_store(&h->status, STATUS_DIED);
		ring_event(o->event[0]);
		ring_event(o->event[1]);
		c->state = CLIENT_SILENT;
		if (!find(o, CLIENT_HOLDS, NFCOMMS_RING_WRITE) &&
		    !find(o, CLIENT_HOLDS, NFCOMMS_RING_READ))
			next_generation(o);
	}
	forget(c); /* last: a side that closes waits for it */
}

/* Answer who asks for a role; false if it gets none. */
static bool claim_role(struct nfcomms_ring_owner *o, struct ring_client *c,
		       const struct ucred *peer)
{
	if (find(o, CLIENT_WAITS, c->role) ||
	    (!o->used && find(o, CLIENT_HOLDS, c->role))) {
		answer(c->conn, ANSWER_BUSY);
		return false;
	}
	/* A descendant may hold a copy of the socket of a process that died. */
	if (peer->pid != getpid())
		c->process = (int)syscall(SYS_pidfd_open, peer->pid, 0);
	if (!o->used)
		return give(c);
	c->state = CLIENT_WAITS;
	c->since = o->came++;
	return answer(c->conn, ANSWER_WAIT);
}

/* ---- connections ---- */

static void hand_memory(struct nfcomms_ring_owner *o, int conn)
{
	int fds[3] = { o->memory, o->event[0], o->event[1] };
	union {
		char bytes[CMSG_SPACE(sizeof(fds))];
		struct cmsghdr align;
	} control = { .bytes = { 0 } };
	struct ring_message m = { RING_MAGIC, RING_VERSION, ANSWER_OK };
	struct iovec iov = { &m, sizeof(m) };
	struct msghdr msg = { .msg_iov = &iov,
			      .msg_iovlen = 1,
			      .msg_control = control.bytes,
			      .msg_controllen = sizeof(control.bytes) };
	struct cmsghdr *c = CMSG_FIRSTHDR(&msg);
	ssize_t n;

	c->cmsg_level = SOL_SOCKET;
	c->cmsg_type = SCM_RIGHTS;
	c->cmsg_len = CMSG_LEN(sizeof(fds));
	memcpy(CMSG_DATA(c), fds, sizeof(fds));
	n = sendmsg(conn, &msg, MSG_NOSIGNAL | MSG_DONTWAIT);
	(void)n; /* who does not take it finds the connection closed */
}

/* Reads the request of a silent connection; false if it needs no more work. */
static bool heard(struct nfcomms_ring_owner *o, struct ring_client *c)
{
	struct ring_message m[2]; /* one more than fits shows what is too long */
	struct ucred peer;
	ssize_t n = recv(c->conn, m, sizeof(m), MSG_DONTWAIT);

	if (n <= 0)
		return n < 0 && (errno == EAGAIN || errno == EINTR);
	if (ring_peer(c->conn, &peer)) {
		answer(c->conn, ANSWER_DENIED);
		return false;
	}
	if (n != sizeof(*m) || m->magic != RING_MAGIC ||
	    m->version != RING_VERSION) {
		answer(c->conn, ANSWER_OK); /* has our version */
		return false;
	}
	switch (m->word) {
	case WANT_MEMORY:
		hand_memory(o, c->conn);
		return false;
	case NFCOMMS_RING_WRITE:
	case NFCOMMS_RING_READ:
		c->role = (enum nfcomms_ring_role)m->word;
		return claim_role(o, c, &peer);
	}
	return false;
}

/* A message arrived from a connection that holds a role or waits for one. */
static bool ended(struct ring_client *c)
{
	struct ring_message m;
	ssize_t n = recv(c->conn, &m, sizeof(m), MSG_DONTWAIT);

	return !n || (n < 0 && errno != EAGAIN && errno != EINTR);
}

/* A free place: that of the client which has been silent for longest, if need be. */
static struct ring_client *place(struct nfcomms_ring_owner *o)
{
	struct ring_client *oldest = NULL;
	char byte;

	for (struct ring_client *c = o->clients; c < o->clients + CONNECTIONS;
	     c++) {
		if (c->conn < 0)
			return c;
		if (c->state == CLIENT_SILENT &&
		    (!oldest || c->until < oldest->until) &&
		    recv(c->conn, &byte, 1, MSG_PEEK | MSG_DONTWAIT) < 0)
			oldest = c;
	}
	if (oldest)
		leave(o, oldest);
	return oldest;
}

static void enter(struct nfcomms_ring_owner *o)
{
	struct ring_client *c = place(o);
	int conn;

	if (!c)
		return; /* all hold a role, wait for one, or have just spoken */
	conn = accept4(o->listener, NULL, NULL, SOCK_CLOEXEC);
	if (conn < 0) {
		if (errno != EAGAIN && errno != EINTR)
			poll(NULL, 0, RETRY_MS);
		return;
	}
	*c = (struct ring_client){ .conn = conn,
				   .process = -1,
				   .until = now_ms() + ASK_MS };
}

/* Fill in what to wait for; the time after which a silent client is closed. */
static int prepare(struct nfcomms_ring_owner *o,
		   struct pollfd p[2 + 2 * CONNECTIONS])
{
	int64_t now = now_ms(), wait = -1;
	bool room = false;

	p[0] = (struct pollfd){ o->quit, POLLIN, 0 };
	for (int i = 0; i < CONNECTIONS; i++) {
		struct ring_client *c = &o->clients[i];
		bool silent = c->conn >= 0 && c->state == CLIENT_SILENT;

		room |= c->conn < 0 || silent;
		p[2 + 2 * i] = (struct pollfd){ c->conn, POLLIN, 0 };
		p[3 + 2 * i] = (struct pollfd){ c->process, POLLIN, 0 };
		if (silent && (wait < 0 || c->until - now < wait))
			wait = c->until > now ? c->until - now : 0;
	}
	p[1] = (struct pollfd){ room ? o->listener : -1, POLLIN, 0 };
	return (int)wait;
}

static void *serve(void *arg)
{
	struct nfcomms_ring_owner *o = arg;
	struct pollfd p[2 + 2 * CONNECTIONS];

	for (;;) {
		int n = poll(p, 2 + 2 * CONNECTIONS, prepare(o, p));

		if (n < 0)
			continue; /* no memory: it tries again */
		if (p[0].revents)
			return NULL;
		for (int i = 0; i < CONNECTIONS; i++) {
			struct ring_client *c = &o->clients[i];
			struct pollfd *at = &p[2 + 2 * i];
			bool silent = c->state == CLIENT_SILENT, keep = true;

			/* One that left before its turn may be another by now. */
			if (c->conn < 0 || c->conn != at->fd)
				continue;
			if (at->revents)
				keep = silent ? heard(o, c) : !ended(c);
			if (!silent && at[1].revents)
				keep = false;
			if (c->state == CLIENT_SILENT && c->until <= now_ms())
				keep = false;
			if (!keep)
				leave(o, c);
		}
		if (p[1].revents)
			enter(o);
	}
}

/* ---- making ---- */

static int make_memory(struct nfcomms_ring_owner *o,
		       const struct nfcomms_ring_config *c, uint64_t page)
{
	uint64_t data = page > RING_HEADS ? page : RING_HEADS;
	struct ring_header *h;

	o->bytes = data + c->packets * c->packet_size;
	o->memory = memfd_create("nfcomms-ring",
				 MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (o->memory < 0 || ftruncate(o->memory, (off_t)o->bytes) ||
	    fcntl(o->memory, F_ADD_SEALS,
		  F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL))
		return -errno;
	o->area = mmap(NULL, o->bytes, PROT_READ | PROT_WRITE, MAP_SHARED,
		       o->memory, 0);
	if (o->area == MAP_FAILED) {
		o->area = NULL;
		return -errno;
	}
	for (int i = 0; i < 2; i++) {
		o->event[i] = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
		if (o->event[i] < 0)
			return -errno;
	}
	h = (struct ring_header *)o->area;
	h->magic = RING_MAGIC;
	h->version = RING_VERSION;
	h->packets = c->packets;
	h->packet_size = c->packet_size;
	h->data = data;
	next_generation(o);
	return c->prewarm ? ring_populate(o->area, o->bytes) : 0;
}

static int make_socket(struct nfcomms_ring_owner *o, const char *name)
{
	struct sockaddr_un a;
	socklen_t size;
	int rc = ring_address(name, &a, &size);

	if (rc)
		return rc;
	o->quit = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	o->listener = socket(AF_UNIX,
			     SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (o->quit < 0 || o->listener < 0)
		return -errno;
	if (bind(o->listener, (struct sockaddr *)&a, size))
		return errno == EADDRINUSE ? -EEXIST : -errno;
	return listen(o->listener, SOMAXCONN) ? -errno : 0;
}

/* Start the thread, which takes none of the program's signals. */
static int start_thread(struct nfcomms_ring_owner *o)
{
	sigset_t all, before;
	int rc;

	sigfillset(&all);
	pthread_sigmask(SIG_BLOCK, &all, &before);
	rc = pthread_create(&o->thread, NULL, serve, o);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return -rc;
}

static void release(struct nfcomms_ring_owner *o)
{
	int *fds[] = { &o->listener, &o->quit, &o->memory, &o->event[0],
		       &o->event[1] };

	for (struct ring_client *c = o->clients; c < o->clients + CONNECTIONS;
	     c++)
		if (c->conn >= 0)
			forget(c);
	for (size_t i = 0; i < sizeof(fds) / sizeof(*fds); i++)
		if (*fds[i] >= 0)
			close(*fds[i]);
	if (o->area)
		munmap(o->area, o->bytes);
	free(o);
}

int nfcomms_ring_create(const char *name,
			const struct nfcomms_ring_config *config,
			struct nfcomms_ring_owner **out)
{
	struct nfcomms_ring_config c = config ?
					       *config :
					       (struct nfcomms_ring_config){ 0 };
	uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
	struct nfcomms_ring_owner *o;
	int rc;

	c.packets = c.packets ? c.packets : DEFAULT_PACKETS;
	c.packet_size = c.packet_size ? c.packet_size : DEFAULT_PACKET;
	if (!name || !out || c.packets < RING_MIN || c.packets > RING_MAX ||
	    c.packet_size > RING_MAX || c.packet_size % page)
		return -EINVAL;
	o = calloc(1, sizeof(*o));
	if (!o)
		return -ENOMEM;
	o->memory = o->event[0] = o->event[1] = o->listener = o->quit = -1;
	for (int i = 0; i < CONNECTIONS; i++)
		o->clients[i].conn = o->clients[i].process = -1;
	rc = make_memory(o, &c, page);
	if (!rc)
		rc = make_socket(o, name);
	if (!rc)
		rc = start_thread(o);
	if (rc) {
		release(o);
		return rc;
	}
	*out = o;
	return 0;
}

void nfcomms_ring_destroy(struct nfcomms_ring_owner *o)
{
	if (!o)
		return;
	ring_event(o->quit);
	pthread_join(o->thread, NULL);
	release(o);
}
