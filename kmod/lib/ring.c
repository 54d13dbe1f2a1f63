// SPDX-License-Identifier: MIT
/*
 * One side of a ring between two processes: docs/ring.md is its layout and its
 * rules, pkg/ring the same in Go. Nothing that the other side wrote is believed.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "ring.h"

enum {
	SPINS = 200, /* looks without giving way */
	YIELDS = 20, /* looks that give way, before it sleeps */
};

struct nfcomms_ring {
	enum nfcomms_ring_role role;
	struct ring_head *mine, *far;
	uint8_t *area;
	uint64_t bytes;
	uint64_t packets, size, data; /* as they were checked */
	uint64_t pos; /* the packet under the head */
	int64_t seen; /* the other head, as last seen */
	uint32_t length; /* of the packet under the reader's head */
	bool started;
	bool held; /* the reader has a packet that it did not release */
	int conn; /* holds the role */
	int event[2]; /* by role: wakes it */
	int error; /* the side is of no use any more */
};

static struct ring_packet *packet_at(const struct nfcomms_ring *r, uint64_t n)
{
	return (struct ring_packet *)(r->area + r->data +
				      n % r->packets * r->size);
}

static uint64_t room_of(const struct nfcomms_ring *r)
{
	return r->size - PACKET_HEADER;
}

/* ---- what the creator uses as well ---- */

void ring_event(int fd)
{
	uint64_t one = 1;
	ssize_t n = write(fd, &one, sizeof(one));

	(void)n; /* full: it is readable already */
}

void ring_close_files(int *fd, int n)
{
	while (n--)
		close(fd[n]);
}

int ring_populate(void *area, size_t bytes)
{
	return madvise(area, bytes, MADV_POPULATE_WRITE) ? -errno : 0;
}

int ring_address(const char *name, struct sockaddr_un *address, socklen_t *size)
{
	size_t length = strlen(name);
	int n;

	if (!length || length > NFCOMMS_RING_NAME_MAX)
		return -EINVAL;
	for (const char *c = name; *c; c++)
		if (*c <= ' ' || *c > '~' || *c == '/' || *c == '@')
			return -EINVAL;
	*address = (struct sockaddr_un){ .sun_family = AF_UNIX };
	n = snprintf(address->sun_path + 1, sizeof(address->sun_path) - 1,
		     "nfcomms/ring/%u/%s", (unsigned)getuid(), name);
	*size = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 +
			    (size_t)n);
	return 0;
}

int ring_peer(int conn, struct ucred *peer)
{
	socklen_t size = sizeof(*peer);

	if (getsockopt(conn, SOL_SOCKET, SO_PEERCRED, peer, &size))
		return -errno;
	return peer->uid == getuid() ? 0 : -EACCES;
}

/* ---- waiting ---- */

/* When a call that began now ends: milliseconds of the clock, -1 for never. */
static int64_t end_of(int timeout_ms)
{
	struct timespec t;

	if (timeout_ms < 0)
		return -1;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000ll + t.tv_nsec / 1000000 + timeout_ms;
}

/* Milliseconds left, for poll: -1 for ever. */
static int left_of(int64_t end)
{
	int64_t left;

	if (end < 0)
		return -1;
	left = end - end_of(0);
	return left > 0 ? (int)left : 0;
}

/* Publish a position and wake the other side if it sleeps. */
static void move(struct nfcomms_ring *r, uint64_t pos)
{
	/* SYNC: ring position */
	atomic_store_explicit(&r->mine->pos, (int64_t)pos, memory_order_release);
	atomic_thread_fence(memory_order_seq_cst); /* SYNC: ring park */
	if (atomic_load(&r->far->parked) && atomic_exchange(&r->far->parked, 0))
		ring_event(r->event[!r->role]);
}

/* The creator has ended if the connection is readable: it never says more. */
static bool creator_gone(const struct nfcomms_ring *r)
{
	struct pollfd p = { .fd = r->conn, .events = POLLIN };

	return poll(&p, 1, 0) > 0;
}

/* Why the other side will do no more; 0 while it may. */
static int far_end(const struct nfcomms_ring *r)
{
	switch (atomic_load(&r->far->status)) {
	case STATUS_CLOSED:
		return r->role == NFCOMMS_RING_READ ? -ENODATA : -EPIPE;
	case STATUS_DIED:
		return -ECONNRESET;
	}
	return creator_gone(r) ? -ECONNRESET : 0;
}

/* Sleep until the other side moves, something ends, or the time is over. */
static int park(struct nfcomms_ring *r, int (*ready)(struct nfcomms_ring *r),
		int64_t end)
{
	struct pollfd p[2] = {
		{ .fd = r->event[r->role], .events = POLLIN },
		{ .fd = r->conn, .events = POLLIN },
	};
	int rc, left = left_of(end);
	uint64_t word;
	ssize_t n;

	atomic_store(&r->mine->parked, 1);
	atomic_thread_fence(memory_order_seq_cst); /* SYNC: ring park */
	rc = ready(r);
	if (!rc && !far_end(r)) {
		rc = poll(p, 2, left);
		rc = rc < 0 ? -errno : 0;
		n = read(p[0].fd, &word, sizeof(word));
		(void)n; /* nothing in it: something else ended the wait */
	}
	atomic_store(&r->mine->parked, 0);
	return rc < 0 ? rc : 0;
}

/*
 * Wait until ready() returns 1; a negative value of it ends the wait, and so do
 * a signal (-EINTR), the time (-ETIMEDOUT) and the end of the other side.
 */
static int wait_for(struct nfcomms_ring *r,
		    int (*ready)(struct nfcomms_ring *r), int64_t end)
{
	for (int round = 0;; round++) {
		/* Before the look: what was published precedes the end. */
		int over = round % SPINS == SPINS - 1 || round > SPINS ?
				   far_end(r) :
				   0;
		int rc = ready(r);

		if (rc)
			return rc < 0 ? rc : 0;
		if (over) {
			if (over != -ENODATA)
				r->error = over;
			return over;
		}
		if (end >= 0 && !left_of(end))
			return -ETIMEDOUT;
		if (round < SPINS)
			continue;
		if (round < SPINS + YIELDS) {
			sched_yield();
			continue;
		}
		rc = park(r, ready, end);
		if (rc)
			return rc;
	}
}

/* ---- attaching ---- */

/* One message and its descriptors; 0 or a negative errno. */
static int receive(int conn, struct ring_message *m, int *fd, int *count)
{
	union {
		char bytes[CMSG_SPACE(4 * sizeof(int))];
		struct cmsghdr align;
	} control;
	struct iovec iov = { m, sizeof(*m) };
	struct msghdr msg = { .msg_iov = &iov,
			      .msg_iovlen = 1,
			      .msg_control = control.bytes,
			      .msg_controllen = sizeof(control.bytes) };
	ssize_t n;

	*count = 0;
	do
		n = recvmsg(conn, &msg, MSG_CMSG_CLOEXEC);
	while (n < 0 && errno == EINTR);
	if (n < 0)
		return -errno;
	for (struct cmsghdr *c = CMSG_FIRSTHDR(&msg); c;
	     c = CMSG_NXTHDR(&msg, c)) {
		if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS)
			continue;
		*count = (int)((c->cmsg_len - CMSG_LEN(0)) / sizeof(int));
		memcpy(fd, CMSG_DATA(c), (size_t)*count * sizeof(int));
	}
	if (n != sizeof(*m) || m->magic != RING_MAGIC)
		return -EPROTO;
	return m->version == RING_VERSION ? 0 : -EPROTONOSUPPORT;
}

static int connect_ring(const char *name, uint32_t want)
{
	struct ring_message m = { RING_MAGIC, RING_VERSION, want };
	struct sockaddr_un a;
	struct ucred peer;
	socklen_t size;
	int rc, fd;

	rc = ring_address(name, &a, &size);
	if (rc)
		return rc;
	fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return -errno;
	if (connect(fd, (struct sockaddr *)&a, size))
		rc = errno == ECONNREFUSED ? -ENOENT : -errno;
	if (!rc)
		rc = ring_peer(fd, &peer);
	if (!rc && send(fd, &m, sizeof(m), MSG_NOSIGNAL) < 0 && errno != EPIPE)
		rc = -errno; /* who refuses may answer before it is asked */
	if (!rc)
		return fd;
	close(fd);
	return rc;
}

/* The result for an answer other than OK. */
static int refusal(uint32_t word)
{
	if (word == ANSWER_BUSY)
		return -EBUSY;
	return word == ANSWER_DENIED ? -EACCES : -EPROTO;
}

/* Get the ring's memory and events. */
static int fetch(const char *name, int fd[4])
{
	struct ring_message m;
	int count, rc, conn = connect_ring(name, WANT_MEMORY);

	if (conn < 0)
		return conn;
	rc = receive(conn, &m, fd, &count);
	close(conn);
	if (!rc && m.word)
		rc = refusal(m.word);
	if (!rc && count != 3)
		rc = -EPROTO;
	if (rc)
		ring_close_files(fd, count);
	return rc;
}

/* Take the role; the connection that holds it, or a negative errno. */
static int claim(const char *name, enum nfcomms_ring_role role, int timeout_ms)
{
	struct timeval limit = { timeout_ms / 1000, timeout_ms % 1000 * 1000 };
	struct ring_message m = { 0 };
	int fd[4], count = 0, rc, conn = connect_ring(name, role);

	if (conn < 0)
		return conn;
	if (timeout_ms >= 0) /* 0 would be for ever */
		setsockopt(conn, SOL_SOCKET, SO_RCVTIMEO,
			   timeout_ms ? &limit : &(struct timeval){ 0, 1 },
			   sizeof(limit));
	do {
		rc = receive(conn, &m, fd, &count);
		ring_close_files(fd, count);
	} while (!rc && m.word == ANSWER_WAIT);
	if (rc == -EAGAIN)
		rc = -ETIMEDOUT;
	if (!rc && m.word)
		rc = refusal(m.word);
	if (!rc)
		return conn;
	close(conn);
	return rc;
}

/* Check memory that somebody else made, and map it. */
static int map_ring(struct nfcomms_ring *r, int fd)
{
	const int sealed = F_SEAL_SHRINK | F_SEAL_GROW;
	uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
	int seals = fcntl(fd, F_GET_SEALS);
	struct ring_header h;
	struct stat st;

	if (seals < 0 || (seals & sealed) != sealed || fstat(fd, &st) ||
	    st.st_size < RING_HEADS)
		return -EPROTO;
	if (pread(fd, &h, sizeof(h), 0) != sizeof(h)) /* one copy */
		return -EPROTO;
	if (h.magic != RING_MAGIC || h.version != RING_VERSION)
		return -EPROTONOSUPPORT;
	r->data = page > RING_HEADS ? page : RING_HEADS;
	if (h.packets < RING_MIN || h.packets > RING_MAX || !h.packet_size ||
	    h.packet_size > RING_MAX || h.packet_size % page ||
	    h.data != r->data ||
	    (uint64_t)st.st_size != r->data + h.packets * h.packet_size)
		return -EPROTO;
	r->packets = h.packets;
	r->size = h.packet_size;
	r->bytes = (uint64_t)st.st_size;
	r->area = mmap(NULL, r->bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd,
		       0);
	return r->area == MAP_FAILED ? -errno : 0;
}

static void start_role(struct nfcomms_ring *r)
{
	bool reads = r->role == NFCOMMS_RING_READ;

	r->mine = (struct ring_head *)(r->area +
				       (reads ? OFF_READER : OFF_WRITER));
	r->far = (struct ring_head *)(r->area +
				      (reads ? OFF_WRITER : OFF_READER));
	if (!reads)
		return;
	atomic_store(&r->mine->pos, 0);
	atomic_store(&r->mine->status, STATUS_WAITING);
	if (atomic_exchange(&r->far->parked, 0))
		ring_event(r->event[!r->role]);
}

int nfcomms_ring_attach(const char *name, enum nfcomms_ring_role role,
			int timeout_ms, struct nfcomms_ring **out)
{
	struct nfcomms_ring *r;
	int fd[4], rc;

	if (!name || !out ||
	    (role != NFCOMMS_RING_WRITE && role != NFCOMMS_RING_READ))
		return -EINVAL;
	r = calloc(1, sizeof(*r));
	if (!r)
		return -ENOMEM;
	r->role = role;
	rc = fetch(name, fd);
	if (rc) {
		free(r);
		return rc;
	}
	rc = map_ring(r, fd[0]);
	close(fd[0]);
	memcpy(r->event, fd + 1, sizeof(r->event));
	if (!rc) {
		rc = claim(name, role, timeout_ms);
		r->conn = rc;
		if (rc < 0)
			munmap(r->area, r->bytes);
	}
	if (rc < 0) {
		ring_close_files(r->event, 2);
		free(r);
		return rc;
	}
	start_role(r);
	*out = r;
	return 0;
}

int nfcomms_ring_prewarm(struct nfcomms_ring *r)
{
	return ring_populate(r->area, r->bytes);
}

void nfcomms_ring_close(struct nfcomms_ring *r)
{
	struct ring_message m;

	if (!r)
		return;
	atomic_store(&r->mine->status, STATUS_CLOSED);
	if (atomic_exchange(&r->far->parked, 0))
		ring_event(r->event[!r->role]);
	/* The creator closes once it has booked the role as free. */
	shutdown(r->conn, SHUT_WR);
	setsockopt(r->conn, SOL_SOCKET, SO_RCVTIMEO, &(struct timeval){ 10, 0 },
		   sizeof(struct timeval));
	while (recv(r->conn, &m, sizeof(m), 0) > 0)
		;
	close(r->conn);
	ring_close_files(r->event, 2);
	munmap(r->area, r->bytes);
	free(r);
}

size_t nfcomms_ring_room(const struct nfcomms_ring *r)
{
	return room_of(r);
}

/* ---- writing ---- */

void *nfcomms_ring_reserve(struct nfcomms_ring *r)
{
	if (r->role != NFCOMMS_RING_WRITE || r->error)
		return NULL;
	return packet_at(r, r->pos) + 1;
}

static int reader_there(struct nfcomms_ring *r)
{
	return atomic_load(&r->far->status) != STATUS_INIT;
}

static int corrupt(struct nfcomms_ring *r)
{
	r->error = -EPROTO;
	return r->error;
}

/* May the writer's head move on? */
static int has_room(struct nfcomms_ring *r)
{
	int64_t pos = (int64_t)r->pos, at;

	if (pos + 1 - r->seen < (int64_t)r->packets)
		return 1;
	at = atomic_load(&r->far->pos); /* SYNC: ring position */
	if (at < r->seen || (at > 0 && at >= pos))
		return corrupt(r);
	r->seen = at;
	return pos + 1 - at < (int64_t)r->packets;
}

int nfcomms_ring_commit(struct nfcomms_ring *r, size_t length, int timeout_ms)
{
	int64_t end = end_of(timeout_ms);
	int rc;

	if (r->role != NFCOMMS_RING_WRITE)
		return -EINVAL;
	if (length > room_of(r))
		return -EMSGSIZE;
	if (r->error)
		return r->error;
	if (!r->started) {
		rc = wait_for(r, reader_there, end);
		if (rc)
			return rc;
		atomic_store(&r->mine->pos, 0);
		atomic_store(&r->mine->status, STATUS_RUNNING);
		r->started = true;
	}
	*packet_at(r, r->pos) = (struct ring_packet){ r->pos + 1,
						      (uint32_t)length, 0 };
	rc = wait_for(r, has_room, end);
	if (rc)
		return rc;
	r->pos++;
	move(r, r->pos);
	return 0;
}

static int all_released(struct nfcomms_ring *r)
{
	uint64_t done = atomic_load(&r->far->done);

	return done > r->pos ? corrupt(r) : done == r->pos;
}

int nfcomms_ring_flush(struct nfcomms_ring *r, int timeout_ms)
{
	if (r->role != NFCOMMS_RING_WRITE)
		return -EINVAL;
	return r->error ? r->error :
			  wait_for(r, all_released, end_of(timeout_ms));
}

/* ---- reading ---- */

/* Is the packet after the reader's head published? */
static int has_more(struct nfcomms_ring *r)
{
	int64_t pos = (int64_t)r->pos, next = pos + (r->started ? 1 : 0), at;

	if (r->seen > next)
		return 1;
	at = atomic_load(&r->far->pos); /* SYNC: ring position */
	if (at == POS_INIT && !r->started)
		return 0;
	if (at < r->seen || at > pos + (int64_t)r->packets - 1)
		return corrupt(r);
	r->seen = at;
	return at > next;
}

int nfcomms_ring_peek(struct nfcomms_ring *r, const void **packet,
		      size_t *length, int timeout_ms)
{
	struct ring_packet p;
	int rc;

	if (r->role != NFCOMMS_RING_READ)
		return -EINVAL;
	if (r->error)
		return r->error;
	if (!r->held) {
		rc = wait_for(r, has_more, end_of(timeout_ms));
		if (rc)
			return rc;
		if (r->started) {
			r->pos++;
			move(r, r->pos); /* the packet before is free */
		} else {
			r->started = true;
			atomic_store(&r->mine->status, STATUS_RUNNING);
		}
		p = *(volatile struct ring_packet *)packet_at(r, r->pos);
		if (p.number != r->pos + 1 || p.length > room_of(r))
			return corrupt(r);
		r->length = p.length;
		r->held = true;
	}
	*packet = packet_at(r, r->pos) + 1;
	*length = r->length;
	return 0;
}

void nfcomms_ring_release(struct nfcomms_ring *r)
{
	if (!r->held || r->error)
		return;
	r->held = false;
	atomic_store(&r->mine->done, r->pos + 1);
	if (atomic_load(&r->far->parked) && atomic_exchange(&r->far->parked, 0))
		ring_event(r->event[!r->role]);
}
