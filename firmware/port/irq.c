// SPDX-License-Identifier: MIT
/* Interrupt vectors with moderation; see port_irq.h. */
#define _GNU_SOURCE
#include "irq.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum {
	NO_FD = -1,
};

struct vector {
	int fd;
	bool pending;
	uint64_t next_ns; /* not before */
	uint64_t holdoff_ns;
};

struct nfc_irq {
	pthread_mutex_t lock; /* guards all below */
	pthread_cond_t changed; /* something may be due sooner */
	pthread_t moderator; /* sends what was held off */
	bool stop;
	bool enabled;
	uint32_t count, used;
	struct nfc_irq_stats stats;
	struct vector vector[];
};

static uint64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

/* Send a pending interrupt, if it may be sent. Must hold lock. */
static void send_vector(struct nfc_irq *q, struct vector *v, uint64_t now)
{
	uint64_t one = 1;
	ssize_t n;

	if (!v->pending || v->fd < 0 || !q->enabled || v->next_ns > now)
		return;
	v->pending = false;
	v->next_ns = now + v->holdoff_ns;
	q->stats.sent++;
	n = write(v->fd, &one, sizeof(one));
	(void)n; /* full: it is readable already */
}

static void send_all(struct nfc_irq *q)
{
	uint64_t now = now_ns();

	for (uint32_t i = 0; i < q->count; i++)
		send_vector(q, &q->vector[i], now);
}

/* When the next held interrupt is due; UINT64_MAX: none. Must hold lock. */
static uint64_t next_due(const struct nfc_irq *q)
{
	uint64_t due = UINT64_MAX;

	for (uint32_t i = 0; i < q->count; i++) {
		const struct vector *v = &q->vector[i];

		if (v->pending && v->fd >= 0 && q->enabled && v->next_ns < due)
			due = v->next_ns;
	}
	return due;
}

static void *moderate(void *arg)
{
	struct nfc_irq *q = arg;

	pthread_mutex_lock(&q->lock);
	while (!q->stop) {
		uint64_t due;
		struct timespec t;

		send_all(q);
		due = next_due(q);
		if (due == UINT64_MAX) {
			pthread_cond_wait(&q->changed, &q->lock);
			continue;
		}
		t.tv_sec = (time_t)(due / 1000000000);
		t.tv_nsec = (long)(due % 1000000000);
		pthread_cond_timedwait(&q->changed, &q->lock, &t);
	}
	pthread_mutex_unlock(&q->lock);
	return NULL;
}

/* The moderator takes no signals: those are the program's. */
static int start_moderator(struct nfc_irq *q)
{
	sigset_t all, old;
	int rc;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	rc = pthread_create(&q->moderator, NULL, moderate, q);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	return rc;
}

static void release(struct nfc_irq *q)
{
	for (uint32_t i = 0; i < q->count; i++)
		if (q->vector[i].fd >= 0)
			close(q->vector[i].fd);
	pthread_cond_destroy(&q->changed);
	pthread_mutex_destroy(&q->lock);
	free(q);
}

struct nfc_irq *nfc_irq_new(uint32_t vectors)
{
	struct nfc_irq *q = calloc(1, sizeof(*q) +
					      vectors * sizeof(struct vector));
	pthread_condattr_t attr;

	if (!q)
		return NULL;
	q->count = vectors;
	q->used = 1;
	for (uint32_t i = 0; i < vectors; i++)
		q->vector[i].fd = NO_FD;
	pthread_mutex_init(&q->lock, NULL);
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&q->changed, &attr);
	pthread_condattr_destroy(&attr);
	if (start_moderator(q)) {
		release(q);
		return NULL;
	}
	return q;
}

void nfc_irq_free(struct nfc_irq *q)
{
	pthread_mutex_lock(&q->lock);
	q->stop = true;
	pthread_cond_signal(&q->changed);
	pthread_mutex_unlock(&q->lock);
	pthread_join(q->moderator, NULL);
	release(q);
}

/*
 * Duplicate a descriptor. Only an eventfd that never blocks is accepted: the
 * process that passed it must not be able to stop an island with it.
 */
static int keep_eventfd(int fd)
{
	char path[40], to[40];
	int flags = fcntl(fd, F_GETFL), own;
	ssize_t n;

	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	n = readlink(path, to, sizeof(to) - 1);
	to[n < 0 ? 0 : n] = 0;
	if (flags < 0 || strcmp(to, "anon_inode:[eventfd]"))
		return -EINVAL;
	if (fcntl(fd, F_SETFL, flags | O_NONBLOCK))
		return -errno;
	own = fcntl(fd, F_DUPFD_CLOEXEC, 0);
	return own < 0 ? -errno : own;
}

int nfc_irq_assign(struct nfc_irq *q, uint32_t vector, int fd)
{
	int own = NO_FD, old;

	if (vector >= q->count)
		return -EINVAL;
	if (fd >= 0) {
		own = keep_eventfd(fd);
		if (own < 0)
			return own;
	}
	pthread_mutex_lock(&q->lock);
	old = q->vector[vector].fd;
	q->vector[vector].fd = own;
	send_all(q);
	pthread_cond_signal(&q->changed);
	pthread_mutex_unlock(&q->lock);
	if (old >= 0)
		close(old);
	return 0;
}

void nfc_irq_use(struct nfc_irq *q, uint32_t vectors)
{
	pthread_mutex_lock(&q->lock);
	q->used = vectors;
	pthread_mutex_unlock(&q->lock);
}

void nfc_irq_holdoff(struct nfc_irq *q, uint32_t vector, uint32_t us)
{
	pthread_mutex_lock(&q->lock);
	if (vector < q->count) {
		q->vector[vector].next_ns = 0;
		q->vector[vector].holdoff_ns = us * 1000ull;
		send_all(q);
	}
	pthread_mutex_unlock(&q->lock);
}

void nfc_irq_enable(struct nfc_irq *q, bool on)
{
	pthread_mutex_lock(&q->lock);
	q->enabled = on;
	send_all(q);
	pthread_cond_signal(&q->changed);
	pthread_mutex_unlock(&q->lock);
}

void nfc_irq_clear(struct nfc_irq *q)
{
	pthread_mutex_lock(&q->lock);
	for (uint32_t i = 0; i < q->count; i++)
		q->vector[i].pending = false;
	pthread_mutex_unlock(&q->lock);
}

/* Must hold lock. */
static void raise_vector(struct nfc_irq *q, uint32_t vector)
{
	struct vector *v = &q->vector[vector];

	v->pending = true;
	send_vector(q, v, now_ns());
	if (!v->pending)
		return;
	q->stats.held++;
	pthread_cond_signal(&q->changed);
}

void nfc_irq_raise(struct nfc_irq *q, uint32_t vector)
{
	pthread_mutex_lock(&q->lock);
	if (vector < q->count)
		raise_vector(q, vector);
	pthread_mutex_unlock(&q->lock);
}

void nfc_irq_fire(struct nfc_irq *q, uint32_t vector)
{
	pthread_mutex_lock(&q->lock);
	if (vector < q->count) {
		q->vector[vector].next_ns = 0;
		raise_vector(q, vector);
	}
	pthread_mutex_unlock(&q->lock);
}

/* Vector 0 is the device's own; islands share the others, or it. */
static uint32_t vector_of(const struct nfc_irq *q, uint32_t island)
{
	return q->used < 2 ? 0 : 1 + island % (q->used - 1);
}

uint32_t nfc_irq_vector(struct nfc_irq *q, uint32_t island)
{
	uint32_t vector;

	pthread_mutex_lock(&q->lock);
	vector = vector_of(q, island);
	pthread_mutex_unlock(&q->lock);
	return vector;
}

void nfc_irq_ring(struct nfc_irq *q, uint32_t island)
{
	pthread_mutex_lock(&q->lock);
	raise_vector(q, vector_of(q, island));
	pthread_mutex_unlock(&q->lock);
}

void nfc_irq_stats(struct nfc_irq *q, struct nfc_irq_stats *s)
{
	pthread_mutex_lock(&q->lock);
	*s = q->stats;
	for (uint32_t i = 0; i < q->count; i++)
		s->pending |= (uint64_t)q->vector[i].pending << i;
	pthread_mutex_unlock(&q->lock);
}
